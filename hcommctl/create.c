/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl domain create --rank-table FILE: a domain without a training program.
 *
 * The table is read and judged here before anything is asked of the daemon, so its faults come
 * with file, line and column. Which of its servers is this node: the only one, the one of
 * --server, or the one whose host_ip is an address of this machine.
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

static int which_server(const char *path, const struct hc_roster *ro, const char *wanted,
			uint32_t *server)
{
	char list[256] = "";

	for (uint32_t i = 0; i < ro->nservers; i++) {
		*server = i;
		if (wanted ? !strcmp(wanted, ro->servers[i].name)
			   : ro->nservers == 1 || is_own_address(&ro->servers[i].host_ip))
			return CTL_OK;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 ro->servers[i].name);
	}
	if (wanted)
		return ctl_usage("%s has no server '%s'; it has %s", path, wanted, list);
	return ctl_usage("%s has %u servers (%s) and no host_ip of this node; which one is it: "
			 "--server NAME",
			 path, ro->nservers, list);
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
	status = which_server(h->table, ro, h->server, &server);
	for (uint32_t i = 0; i < ro->nranks; i++) {
		if (ro->ranks[i].server == server)
			local[h->nlocal++] = i;
	}
	h->nranks = ro->nranks;
	h->local = local;
	h->server = ro->servers[server].name;
	if (!status)
		status = ctl_hold_run(c, h);
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
