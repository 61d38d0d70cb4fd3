/* SPDX-License-Identifier: Apache-2.0 */
/* See nodeset.h. */
#include "nodeset.h"

#include <hcomm/hcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench.h"
#include "ours.h"

enum { KEY_DIGITS = 64 };

/* In the daemon: as by default, and not each step; and where it belongs. */
static void be_node(void *arg)
{
	setenv("HCOMM_LOG_LEVEL", "info", 1);
	bench_pin(*(const int *)arg);
}

static void prepare(struct nodeset *s, unsigned i, unsigned devices, unsigned port,
		    const char *options)
{
	char top[1024], sections[1024] = "", path[200], key[KEY_DIGITS + 2];
	unsigned k;

	snprintf(top, sizeof(top),
		 "node_name = node%u\nlisten_address = 127.0.0.%u\nlisten_port = %u\n%s", i, i + 1,
		 port, options ? options : "");
	for (k = 0; k < s->count; k++) {
		const size_t at = strlen(sections);

		if (k != i)
			snprintf(sections + at, sizeof(sections) - at,
				 "[node node%u]\naddress = 127.0.0.%u\n", k, k + 1);
	}
	hc_node_prepare(&s->node[i], devices, top, sections);
	snprintf(path, sizeof(path), "%s/no.key", s->node[i].dir);
	memset(key, 'a', KEY_DIGITS);
	key[KEY_DIGITS] = '\n';
	key[KEY_DIGITS + 1] = '\0';
	bench_write_file(path, key);
	if (chmod(path, 0400))
		bench_die("%s: its mode cannot be set", path);
	s->node[i].before_exec = be_node;
	s->node[i].arg = &s->cpu[i];
}

static int keep(const void *row, void *arg)
{
	memcpy(arg, row, sizeof(struct hcomm_view_status));
	return 0;
}

void nodeset_status(const struct nodeset *s, unsigned i, struct hcomm_view_status *out)
{
	struct hcomm_open_args o = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *session;

	o.socket = s->node[i].socket;
	ours_must(hcomm_open(&o, &session), "open");
	ours_must(hcomm_query(session, HCOMM_VIEW_STATUS, NULL, keep, out), "status");
	hcomm_close(session);
}

void nodeset_wait(const struct nodeset *s, uint32_t seconds)
{
	const uint64_t limit = bench_now_ns() + seconds * 1000000000ull;
	const struct timespec nap = {.tv_nsec = 10000000};
	struct hcomm_view_status v;
	unsigned i;

	for (i = 0; i < s->count; i++) {
		for (;;) {
			nodeset_status(s, i, &v);
			if (v.peers_up >= s->count - 1 && v.paths_good >= s->count - 1)
				break;
			if (bench_now_ns() >= limit)
				bench_die("node%u sees %u of %u nodes, by %u good paths", i,
					  v.peers_up, s->count - 1, v.paths_good);
			nanosleep(&nap, NULL);
		}
	}
}

void nodeset_start(struct nodeset *s, unsigned count, unsigned devices, unsigned port,
		   const int cpus[2], const char *options)
{
	unsigned i;

	if (count < 2 || count > NODESET_MAX)
		bench_die("a cluster of %u; wanted: 2 to %d", count, NODESET_MAX);
	*s = (struct nodeset){.count = count};
	for (i = 0; i < count; i++) {
		s->cpu[i] = cpus[i % 2];
		prepare(s, i, devices, port, options);
		hc_node_run(&s->node[i]);
	}
	nodeset_wait(s, 30);
}

void nodeset_stop(struct nodeset *s)
{
	while (s->count)
		hc_node_end(&s->node[--s->count]);
}

static void put_server(FILE *f, unsigned node, unsigned first_device, unsigned ranks)
{
	unsigned r;

	fprintf(f, "%s\n  {\"server_id\": \"node%u\", \"device\": [", node ? "," : "", node);
	for (r = 0; r < ranks; r++)
		fprintf(f,
			"%s\n    {\"device_id\": \"%u\", \"device_ip\": \"192.0.2.%u\", "
			"\"rank_id\": \"%u\"}",
			r ? "," : "", first_device + r, node * ranks + r + 1, node * ranks + r);
	fputs("]}", f);
}

void nodeset_write_table(const char *path, unsigned nodes, unsigned first_device, unsigned ranks)
{
	FILE *f = fopen(path, "we");
	unsigned i;

	if (!f)
		bench_die("%s cannot be written", path);
	fprintf(f,
		"{\"version\": \"1.0\", \"status\": \"completed\", \"server_count\": \"%u\", "
		"\"server_list\": [",
		nodes);
	for (i = 0; i < nodes; i++)
		put_server(f, i, first_device, ranks);
	if (fputs("]}\n", f) < 0 || fclose(f))
		bench_die("%s cannot be written", path);
}
