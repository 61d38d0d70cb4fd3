/* SPDX-License-Identifier: Apache-2.0 */
/* See nodebench.h. */
#include "nodebench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "bench.h"
#include "crowd.h"
#include "ours.h"

#define CROWD_PORT 16690u
#define UNIT_NICE  (-10) /* of systemd/hcommd.service */

struct nodebench {
	struct ours *daemon;
	uint16_t port;
	char key[256];
};

void nodebench_nap(uint32_t ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

struct nodebench *nodebench_start(uint16_t port, uint32_t interval_ms, int cpu, const char *options)
{
	struct nodebench *n = calloc(1, sizeof(*n));
	char text[1024], key[66];

	if (!n)
		bench_die("out of memory");
	n->port = port;
	snprintf(n->key, sizeof(n->key), "%s/cluster.key", bench_tmpdir());
	memset(key, 'a', 64);
	key[64] = '\n';
	key[65] = '\0';
	bench_write_file(n->key, key);
	chmod(n->key, 0400);
	snprintf(text, sizeof(text),
		 "listen_address = 127.0.0.1\nlisten_port = %u\nheartbeat_interval_ms = %u\n%s",
		 port, interval_ms, options ? options : "");
	setenv("HCOMM_KEY_FILE", n->key, 1); /* before that of the harness, which is none */
	if (setpriority(PRIO_PROCESS, 0, UNIT_NICE))
		bench_note("not allowed to run the daemon with nice %d, as its unit does",
			   UNIT_NICE);
	n->daemon = ours_start_with(1, cpu, text);
	setpriority(PRIO_PROCESS, 0, 0);
	unsetenv("HCOMM_KEY_FILE");
	return n;
}

pid_t nodebench_pid(const struct nodebench *n)
{
	return ours_pid(n->daemon);
}

const char *nodebench_socket(const struct nodebench *n)
{
	return ours_socket(n->daemon);
}

const char *nodebench_key(const struct nodebench *n)
{
	return n->key;
}

static pid_t start_crowd(const struct nodebench *n, struct crowd_args *args, int cpu, bool urgent)
{
	const struct sched_param first = {.sched_priority = 1};
	const pid_t pid = bench_fork();
	struct crowd *c;

	if (pid)
		return pid;
	args->first = (struct hc_endpoint){{.family = 4, .bytes = {127, 1, 0, 1}}, CROWD_PORT};
	args->daemon = (struct hc_endpoint){{.family = 4, .bytes = {127, 0, 0, 1}}, n->port};
	args->key_file = n->key;
	if (cpu >= 0)
		bench_pin(cpu);
	c = crowd_new(args);
	if (urgent && sched_setscheduler(0, SCHED_FIFO, &first))
		bench_die("sched_setscheduler: %s", strerror(errno));
	crowd_run(c, UINT64_MAX);
	return 0;
}

pid_t nodebench_crowd(const struct nodebench *n, uint32_t nodes, uint32_t interval_ms, int cpu)
{
	struct crowd_args args = {.nodes = nodes, .interval_ms = interval_ms};

	return start_crowd(n, &args, cpu, false);
}

pid_t nodebench_crowd_logged(const struct nodebench *n, uint32_t nodes, uint32_t interval_ms,
			     bool urgent, struct crowd_log *log)
{
	struct crowd_args args = {.nodes = nodes, .interval_ms = interval_ms, .log = log};

	return start_crowd(n, &args, -1, urgent);
}

static int keep(const void *row, void *arg)
{
	memcpy(arg, row, sizeof(struct hcomm_view_status));
	return 0;
}

void nodebench_status(const struct nodebench *n, struct hcomm_view_status *out)
{
	struct hcomm_open_args o = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;

	o.socket = ours_socket(n->daemon);
	ours_must(hcomm_open(&o, &s), "open");
	ours_must(hcomm_query(s, HCOMM_VIEW_STATUS, NULL, keep, out), "status");
	hcomm_close(s);
}

void nodebench_wait_paths(const struct nodebench *n, uint32_t paths, uint32_t seconds)
{
	const uint64_t limit = bench_now_ns() + seconds * 1000000000ull;
	struct hcomm_view_status s;

	for (;;) {
		nodebench_status(n, &s);
		if (s.paths_good >= paths)
			return;
		if (bench_now_ns() >= limit)
			bench_die("%u of %u paths are normal, of %u nodes %u are up", s.paths_good,
				  paths, s.peers, s.peers_up);
		nodebench_nap(20);
	}
}

void nodebench_stop(struct nodebench *n)
{
	ours_stop(n->daemon);
	free(n);
}
