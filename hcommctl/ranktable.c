/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl ranktable: is a rank table right, and what does it say. The same reader as the
 * daemon's judges it, so what is accepted here is accepted there. Exit status 0 accepted,
 * 2 refused, 75 not ready (its producer has not finished).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "address.h"
#include "filecheck.h"
#include "ranktable.h"

#define TABLE_BYTES_MAX ((size_t)64 * 1024 * 1024)

static json_t *rank_json(const struct hc_roster *ro, uint32_t i)
{
	const struct hc_roster_rank *r = &ro->ranks[i];
	char text[HC_ADDR_TEXT_MAX];

	return json_pack("{s:I, s:s, s:I, s:o, s:o}", "rank", (json_int_t)i, "server",
			 ro->servers[r->server].name, "device", (json_int_t)r->device, "address",
			 r->addr.family ? json_string(hc_addr_text(&r->addr, text)) : json_null(),
			 "port", r->port ? json_integer(r->port) : json_null());
}

static int show_json(const struct hc_roster *ro, const char *file)
{
	json_t *list = json_array();
	char hash[33], name[4096];
	uint32_t i;

	for (i = 0; list && i < ro->nranks; i++) {
		if (json_array_append_new(list, rank_json(ro, i))) {
			json_decref(list);
			list = NULL;
		}
	}
	hc_escape(name, sizeof(name), file, strlen(file));
	snprintf(hash, sizeof(hash), "%016" PRIx64 "%016" PRIx64, ro->hash[0], ro->hash[1]);
	return ctl_print_json(json_pack("{s:i, s:s, s:s, s:I, s:o}", "schema_version", 1, "file",
					name, "hash", hash, "servers", (json_int_t)ro->nservers,
					"ranks", list));
}

static bool add_row(struct file_table *t, const struct hc_roster *ro, uint32_t i)
{
	const struct hc_roster_rank *r = &ro->ranks[i];
	char rank[16], device[16], port[16] = "-", addr[HC_ADDR_TEXT_MAX];
	struct hc_clip server;

	snprintf(rank, sizeof(rank), "%u", i);
	snprintf(device, sizeof(device), "%u", r->device);
	if (r->port)
		snprintf(port, sizeof(port), "%u", r->port);
	return ctl_table_row(t, (const char *const[]){
					rank, hc_clip(&server, ro->servers[r->server].name), device,
					r->addr.family ? hc_addr_text(&r->addr, addr) : "-", port});
}

static int show_table(const struct ctl *c, const struct hc_roster *ro, const char *file,
		      const struct hc_verdict *v)
{
	static const char *const headings[] = {"RANK", "SERVER", "DEVICE", "ADDRESS", "PORT"};
	static const bool right[] = {true, false, true, false, true};
	struct file_table *t = ctl_table_new(c, headings, right, 5);
	char line[1024];
	uint32_t i;
	int r;

	if (!t)
		return CTL_USAGE;
	for (i = 0; i < ro->nranks; i++) {
		if (!add_row(t, ro, i)) {
			ctl_say("out of memory");
			break;
		}
	}
	r = ctl_table_print(t);
	if (!r && i == ro->nranks && !c->no_headings) {
		hc_verdict_line(v, file, line, sizeof(line));
		printf("\n%s\n", line);
	}
	return i < ro->nranks ? CTL_DEGRADED : r;
}

static int read_table(struct ctl *c, const char *file, const struct hc_jsontext *text,
		      struct hc_verdict *v, bool show, int *status)
{
	struct hc_roster *ro;
	int r = hc_ranktable_read(text, &ro, v);

	if (!r && show)
		*status = c->json ? show_json(ro, file) : show_table(c, ro, file, v);
	hc_ranktable_free(ro);
	return r;
}

int ctl_ranktable(struct ctl *c, int argc, char **argv)
{
	static const struct file_noun noun = {"ranktable", TABLE_BYTES_MAX, read_table};

	return ctl_files(c, &noun, argc, argv);
}
