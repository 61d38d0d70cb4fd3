/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl domain create --rank-table FILE: a domain without a training program.
 *
 * The table is read and judged here before anything is asked of the daemon, so its faults come
 * with file, line and column. Which of its servers is this node: the only one, the one of
 * --server, the one whose host_ip is an address of this machine, or the one that has the name that
 * the daemon gives this node.
 *
 * Without --hold the domain is staged: created, filled, activated, and left for the processes of
 * the ranks to attach. That needs all ranks on this node. With --hold the ranks of this node are
 * processes of hcommctl itself (hold.c), each joining by the table as a real rank would.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hcomm/views.h>
#include "domain.h"
#include "print.h"
#include "ranktable.h"

#define TABLE_BYTES_MAX (64u << 20)
#define OPS_MAX         1000000000u

static struct hc_roster *read_table(const char *path, int *status)
{
	struct hc_jsontext text = {0};
	struct hc_roster *roster = NULL;
	struct hc_verdict v;
	char line[2048];
	int r;

	hc_verdict_init(&v);
	r = hc_jsontext_load(path, TABLE_BYTES_MAX, &text, &v);
	if (!r)
		r = hc_ranktable_read(&text, &roster, &v);
	hc_jsontext_fini(&text);
	if (!r)
		return roster;
	hc_verdict_line(&v, path, line, sizeof(line));
	ctl_say("%s", line);
	*status = strcmp(hc_verdict_outcome(&v), "not-ready") ? CTL_USAGE : CTL_AGAIN;
	return NULL;
}

/* ---- which server is this node ---- */

static bool is_own_address(const struct hc_addr *a)
{
	struct ifaddrs *all = NULL, *i;
	bool own = false;

	if (!a->family || getifaddrs(&all))
		return false;
	for (i = all; i && !own; i = i->ifa_next) {
		const void *bytes = NULL;

		if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (i->ifa_addr->sa_family == AF_INET && a->family == 4)
			bytes = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
		if (i->ifa_addr->sa_family == AF_INET6 && a->family == 6)
			bytes = &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)
					 ->sin6_addr;
		own = bytes && !memcmp(bytes, a->bytes, a->family == 4 ? 4 : 16);
	}
	freeifaddrs(all);
	return own;
}

static int keep_name(const void *row, void *ctx)
{
	const struct hcomm_view_status *status = row;

	snprintf(ctx, HCOMM_NAME_BYTES, "%s", status->node);
	return 0;
}

/* The processes that run here are forked later, so the session is not kept. */
static int own_name(struct ctl *c, char name[HCOMM_NAME_BYTES])
{
	int r, status = ctl_open(c);

	name[0] = '\0';
	if (status)
		return status;
	r = hcomm_query(c->session, HCOMM_VIEW_STATUS, NULL, keep_name, name);
	ctl_close(c);
	return r ? ctl_fail(r, "create") : CTL_OK;
}

static bool find_server(const struct hc_roster *ro, const char *name, uint32_t *server)
{
	for (*server = 0; *server < ro->nservers; ++*server)
		if (name ? !strcmp(name, ro->servers[*server].name)
			 : ro->nservers == 1 || is_own_address(&ro->servers[*server].host_ip))
			return true;
	return false;
}

static int which_server(struct ctl *c, const char *path, const struct hc_roster *ro,
			const char *wanted, uint32_t *server)
{
	char list[256] = "", name[HCOMM_NAME_BYTES];
	size_t n = 0;
	int status;

	if (find_server(ro, wanted, server))
		return CTL_OK;
	for (uint32_t i = 0; i < ro->nservers && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      ro->servers[i].name);
	if (wanted)
		return ctl_usage("%s has no server '%s'; it has %s", path, wanted, list);
	status = own_name(c, name);
	if (status || find_server(ro, name, server))
		return status;
	return ctl_usage("%s has %u servers (%s), none by the name of this node (%s) and no "
			 "host_ip of it; which one is it: --server NAME",
			 path, ro->nservers, list, name);
}

/* ---- staged ---- */

static int stage(struct ctl *c, const struct hc_roster *ro, const struct ctl_hold *h, uint64_t *id)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	int r;

	config.name = h->name;
	r = hcomm_create(c->session, ro->nranks, &config, id);
	if (r)
		return ctl_fail(r, "create");
	for (uint32_t i = 0; !r && i < ro->nranks; i++)
		r = hcomm_add_device(c->session, *id, i, ro->ranks[i].device);
	if (!r)
		r = hcomm_activate(c->session, *id, c->timeout_ms);
	if (r) {
		int status = ctl_fail(r, "create");

		hcomm_destroy_named(c->session, *id, NULL, HCOMM_DEFAULT);
		return status;
	}
	return CTL_OK;
}

static int create_staged(struct ctl *c, const struct hc_roster *ro, const struct ctl_hold *h)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	uint64_t id = 0;
	int status;

	if (ro->nservers > 1)
		return ctl_usage("%s has %u servers; a domain that is made for others is of one "
				 "node in this version",
				 h->table, ro->nservers);
	status = ctl_open(c);
	if (!status)
		status = stage(c, ro, h, &id);
	if (status)
		return status;
	if (hcomm_by_name(c->session, id, NULL, &s))
		snprintf(s.name, sizeof(s.name), "%s", h->name ? h->name : "");
	if (c->json)
		printf("{\"schema_version\":%d,\"id\":\"%016" PRIx64 "\",\"ranks\":%u}\n",
		       HC_SCHEMA_VERSION, id, ro->nranks);
	else
		printf("domain %016" PRIx64 " (%s) is made: %u ranks may attach\n", id, s.name,
		       ro->nranks);
	return CTL_OK;
}

/* ---- the command ---- */

static int create_local(struct ctl *c, const struct hc_roster *ro, struct ctl_hold *h)
{
	uint32_t *local = calloc(ro->nranks ? ro->nranks : 1, sizeof(*local));
	uint32_t server = 0;
	int status;

	if (!local) {
		ctl_say("out of memory");
		return CTL_DEGRADED;
	}
	status = which_server(c, h->table, ro, h->server, &server);
	if (!status) {
		for (uint32_t i = 0; i < ro->nranks; i++)
			if (ro->ranks[i].server == server)
				local[h->nlocal++] = i;
		h->nranks = ro->nranks;
		h->local = local;
		h->server = ro->servers[server].name;
		status = ctl_hold_run(c, h);
	}
	free(local);
	return status;
}

int ctl_domain_create(struct ctl *c)
{
	struct ctl_hold h = {.table = ctl_opt(c, "rank-table"),
			     .name = ctl_opt(c, "name"),
			     .server = ctl_opt(c, "server")};
	const char *ops = ctl_opt(c, "ops");
	struct hc_roster *roster;
	int status = CTL_DEGRADED;

	if (!h.table)
		return ctl_usage("domain create needs --rank-table FILE");
	if (ops && !ctl_opt(c, "hold"))
		return ctl_usage("--ops is for ranks that run here: give --hold too");
	if (ops && !ctl_number("--ops", ops, 1, OPS_MAX, &h.ops))
		return CTL_USAGE;
	roster = read_table(h.table, &status);
	if (!roster)
		return status;
	status = ctl_opt(c, "hold") ? create_local(c, roster, &h) : create_staged(c, roster, &h);
	hc_ranktable_free(roster);
	return status;
}
