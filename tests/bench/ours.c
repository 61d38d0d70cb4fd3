/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon under test is a node of the test harness with one change: it logs as it does by
 * default and not every step, since writing a log is no part of what is measured. It dies with
 * the benchmark, and one that does not end in order fails it.
 */
#include "ours.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hcomm/hcomm.h>

#include "harness.h"

enum { DEVICES_MAX = 64 };

struct ours {
	struct hc_node node;
};

void ours_must(int r, const char *what)
{
	if (r < 0)
		bench_die("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

const char *ours_socket(const struct ours *o)
{
	return o->node.socket;
}

pid_t ours_pid(const struct ours *o)
{
	return o->node.pid;
}

static void log_less(const struct ours *o)
{
	static const char much[] = "log_level = debug\n";
	static const char less[] = "log_level = info\n\n";
	char *text = hc_read_file(o->node.conf);
	char *at = text ? strstr(text, much) : NULL;

	if (!at)
		bench_die("no log level in %s", o->node.conf);
	memcpy(at, less, sizeof(less) - 1);
	bench_write_file(o->node.conf, text);
	free(text);
}

struct ours *ours_start(unsigned devices, int cpu)
{
	return ours_start_with(devices, cpu, NULL);
}

struct ours *ours_start_with(unsigned devices, int cpu, const char *options)
{
	struct ours *o = calloc(1, sizeof(*o));
	cpu_set_t before;

	if (!o || !devices || devices > DEVICES_MAX)
		bench_die("a daemon with %u devices; wanted: 1 to %d", devices, DEVICES_MAX);
	hc_node_prepare(&o->node, devices, options, NULL);
	log_less(o);
	if (sched_getaffinity(0, sizeof(before), &before))
		bench_die("sched_getaffinity: %s", strerror(errno));
	if (cpu >= 0)
		bench_pin(cpu);
	hc_node_run(&o->node);
	sched_setaffinity(0, sizeof(before), &before);
	return o;
}

struct ours *ours_stop(struct ours *o)
{
	hc_node_end(&o->node);
	free(o);
	return NULL;
}

void ours_write_table(const char *path, unsigned first_device, unsigned ranks)
{
	char text[8192];
	size_t used;
	unsigned r;

	used = (size_t)snprintf(text, sizeof(text),
				"{\"version\": \"1.0\", \"status\": \"completed\", "
				"\"server_count\": \"1\", \"server_list\": [\n"
				"  {\"server_id\": \"bench\", \"host_ip\": \"127.0.0.1\", "
				"\"device\": [");
	for (r = 0; r < ranks && used < sizeof(text); r++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s\n    {\"device_id\": \"%u\", \"rank_id\": \"%u\"}",
					 r ? "," : "", first_device + r, r);
	if (used < sizeof(text))
		used += (size_t)snprintf(text + used, sizeof(text) - used, "]}]}\n");
	if (used >= sizeof(text))
		bench_die("a rank table of %u ranks is too long", ranks);
	bench_write_file(path, text);
}
