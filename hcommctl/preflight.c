/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl preflight: is this node fit for a job, before the job finds out.
 *
 * Each check is a line: ok, warn or fail, what was found, and what to do. The daemon is asked for
 * its views, nothing is guessed from the machine behind its back. Exit 0: all ok; 1: something
 * warns or fails. A node alone (no key, no other nodes) is fit for jobs of one node, so that is a
 * warning, never a failure.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hcomm/views.h>
#include "filecheck.h"
#include "table.h"

enum verdict { OK, WARN, FAIL };

struct report {
	struct ctl *ctl;
	json_t *checks;
	unsigned warned, failed;
};

__attribute__((format(printf, 4, 5))) static void say(struct report *r, enum verdict v,
						      const char *check, const char *fmt, ...)
{
	static const char *const words[] = {"ok", "warn", "fail"};
	char text[1300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->warned += v == WARN;
	r->failed += v == FAIL;
	if (r->ctl->json)
		json_array_append_new(r->checks, json_pack("{s:s, s:s, s:s}", "check", check,
							   "verdict", words[v], "message", text));
	else
		printf("%-5s %-10s %s\n", words[v], check, text);
}

static void check_status(struct report *r, const struct hcomm_view_status *s)
{
	if (!strcmp(s->health, "ok"))
		say(r, OK, "daemon", "%s on node %s, start %u", s->version, s->node, s->start);
	else
		say(r, FAIL, "daemon", "%s: %s", s->health, s->remark);
	say(r, strcmp(s->storage, "ok") ? FAIL : OK, "storage", "%s", s->storage);
	say(r, !s->devices ? WARN : OK, "devices", "%u, of them %u simulated", s->devices,
	    s->simulated);
	if (!s->listen_port)
		say(r, WARN, "peers", "the node works alone (%s)", s->security);
	else
		say(r, strstr(s->security, "none") ? WARN : OK, "peers",
		    "port %u, TCP and UDP; security %s", s->listen_port, s->security);
	if (strcmp(s->drain, "no"))
		say(r, FAIL, "drain", "%s; hcommctl drain --off ends that", s->drain);
	if (s->stalls)
		say(r, WARN, "schedule", "the daemon was not scheduled in time %llu times",
		    (unsigned long long)s->stalls);
}

static void check_devices(struct report *r, const struct hcomm_view_device *d)
{
	if (!strcmp(d->health, "offline"))
		say(r, FAIL, "device", "%u (%s %s) is offline", d->index, d->kind, d->pci);
}

static void check_node(struct report *r, const struct hcomm_view_node *n)
{
	if (strcmp(n->state, "up"))
		say(r, FAIL, "node", "%s at %s is %s: %s", n->name, n->address, n->state, n->cause);
	else if (n->paths_good != n->paths)
		say(r, FAIL, "node", "%s: %u of %u paths are good", n->name, n->paths_good,
		    n->paths);
	else
		say(r, OK, "node", "%s is up, %u path%s", n->name, n->paths,
		    n->paths == 1 ? "" : "s");
}

static void check_path(struct report *r, const struct hcomm_view_path *p)
{
	if (strcmp(p->state, "normal"))
		say(r, FAIL, "path", "%s %s -> %s is %s: %s", p->node, p->local, p->remote,
		    p->state, p->cause);
	if (p->mtu_local != p->mtu_peer)
		say(r, WARN, "mtu", "%s %s has %u, %s has %u; %u is used", p->node, p->local,
		    p->mtu_local, p->remote, p->mtu_peer, p->mtu_used);
}

static void check_port(struct report *r, const struct hcomm_view_port *p, unsigned *used)
{
	*used += !strcmp(p->verdict, "used");
	if (!strcmp(p->verdict, "down") || !strcmp(p->verdict, "no carrier"))
		say(r, WARN, "port", "%s %s is not used: %s", p->name, p->address, p->verdict);
}

/* The rows of a view, or NULL: said why, and *status is set. */
static struct ctl_rows *rows_of(struct ctl *c, uint32_t view, const char *column, int *status)
{
	struct ctl_rows *rows = ctl_rows_new(c, view, column);

	*status = rows ? ctl_rows_query(c, rows, NULL) : CTL_USAGE;
	return *status ? ctl_rows_free(rows) : rows;
}

static int check_all(struct report *r)
{
	static const struct {
		uint32_t view;
		const char *column; /* any: the rows are read, not printed */
	} views[] = {{HCOMM_VIEW_STATUS, "HEALTH"},
		     {HCOMM_VIEW_DEVICE, "DEVICE"},
		     {HCOMM_VIEW_PORT, "PORT"},
		     {HCOMM_VIEW_NODE, "NODE"},
		     {HCOMM_VIEW_PATH, "NODE"}};
	unsigned used = 0, i;
	int status;

	for (i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		struct ctl_rows *rows = rows_of(r->ctl, views[i].view, views[i].column, &status);
		const void *row;
		size_t n;

		if (!rows)
			return status;
		for (n = 0; (row = ctl_rows_at(rows, n)); n++) {
			switch (views[i].view) {
			case HCOMM_VIEW_STATUS: check_status(r, row); break;
			case HCOMM_VIEW_DEVICE: check_devices(r, row); break;
			case HCOMM_VIEW_PORT: check_port(r, row, &used); break;
			case HCOMM_VIEW_NODE: check_node(r, row); break;
			case HCOMM_VIEW_PATH: check_path(r, row); break;
			}
		}
		if (views[i].view == HCOMM_VIEW_PORT)
			say(r, used ? OK : WARN, "ports", "%u in use for other nodes", used);
		ctl_rows_free(rows);
	}
	return CTL_OK;
}

int ctl_preflight(struct ctl *c, int argc, char **argv)
{
	struct report r = {.ctl = c, .checks = json_array()};
	int status = c->columns ? ctl_usage("preflight has no columns to choose") : ctl_open(c);

	(void)argc;
	(void)argv;
	if (!status)
		status = check_all(&r);
	if (!status && c->json)
		status = ctl_print_json(json_pack("{s:i, s:s, s:O}", "schema_version", 1, "verdict",
						  r.failed   ? "fail"
						  : r.warned ? "warn"
							     : "ok",
						  "checks", r.checks));
	else if (!status)
		printf("%s: %u failed, %u warned\n", r.failed ? "not fit" : "fit", r.failed,
		       r.warned);
	json_decref(r.checks);
	return status ? status : r.failed || r.warned ? CTL_DEGRADED : CTL_OK;
}
