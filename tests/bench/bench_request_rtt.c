/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a request's round trip, one client on the daemon's own processor, takes at most 1.15 of
 * what a bare epoll echo of the same bytes takes.
 *
 * Two figures of ours against one floor: hcomm_ping through the library, which is what a program
 * pays and what is judged; and the same bytes by the blocking send and recv that drive the echo,
 * which is the daemon's part. A round is the median of some thousand round trips of each.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "rawecho.h"

#define NAME "request_rtt"

enum {
	TRIPS = 4000,
	ROUNDS = 31,
	TIMEOUT_MS = 10000,
};

#define GOAL 1.15

enum side {
	LIBRARY,
	SOCKET,
	ECHO,
	SIDES,
};

struct contest {
	struct hcomm_session *session;
	struct loadgen_target target;
	int fd;
	struct bench_samples round;
	struct bench_samples all;
};

static double close_round(struct contest *c)
{
	size_t i;

	for (i = 0; i < c->round.count; i++)
		bench_samples_add(&c->all, c->round.v[i]);
	return (double)bench_samples_at(&c->round, 50);
}

static double library_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t start, now;
	int i;

	bench_samples_reset(&c->round);
	start = bench_now_ns();
	for (i = 0; i < TRIPS; i++) {
		ours_must(hcomm_ping(c->session, TIMEOUT_MS), "hcomm_ping");
		now = bench_now_ns();
		bench_samples_add(&c->round, now - start);
		start = now;
	}
	return close_round(c);
}

static double socket_round(void *ctx)
{
	struct contest *c = ctx;

	bench_samples_reset(&c->round);
	loadgen_rtt(&c->target, c->fd, TRIPS, &c->round);
	return close_round(c);
}

static void init(struct contest *c, size_t rounds)
{
	bench_samples_init(&c->round, TRIPS);
	bench_samples_init(&c->all, TRIPS * (rounds + 1));
	c->fd = -1;
	if (!c->target.connect)
		return;
	c->fd = c->target.connect(c->target.ctx);
	if (c->fd < 0)
		bench_die("%s: %s", c->target.name, strerror(-c->fd));
}

static void fini(struct contest *c)
{
	bench_samples_fini(&c->round);
	bench_samples_fini(&c->all);
	if (c->fd >= 0)
		close(c->fd);
}

static void put_times(struct bench_line *l, const char *p50, const char *p99, struct contest *c)
{
	bench_line_num(l, p50, (double)bench_samples_at(&c->all, 50) / 1e3, 2);
	bench_line_num(l, p99, (double)bench_samples_at(&c->all, 99) / 1e3, 2);
}

static void report(const struct bench_table *t, struct contest *c)
{
	double ratio = bench_table_ratio(t, LIBRARY, ECHO);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	put_times(&l, "p50_us", "p99_us", &c[LIBRARY]);
	put_times(&l, "socket_p50_us", "socket_p99_us", &c[SOCKET]);
	put_times(&l, "echo_p50_us", "echo_p99_us", &c[ECHO]);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_num(&l, "socket_ratio", bench_table_ratio(t, SOCKET, ECHO), 3);
	bench_line_int(&l, "request_bytes", ours_ping_bytes());
	bench_line_int(&l, "answer_bytes", ours_done_bytes());
	bench_line_bool(&l, "met", ratio <= GOAL);
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	static struct contest c[SIDES];
	const struct bench_side side[SIDES] = {[LIBRARY] = {"library", library_round, &c[LIBRARY]},
					       [SOCKET] = {"socket", socket_round, &c[SOCKET]},
					       [ECHO] = {"echo", socket_round, &c[ECHO]}};
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	size_t rounds = bench_rounds(ROUNDS);
	struct rawecho echo;
	struct ours *o;
	char path[300];
	int cpu, other;
	size_t i;

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	bench_pin(cpu);
	snprintf(path, sizeof(path), "%s/echo.sock", bench_tmpdir());
	rawecho_start(&echo, path, ours_ping_bytes(), ours_done_bytes(), cpu);
	rawecho_target(&echo, &c[ECHO].target);
	o = ours_start(1, cpu);
	ours_ping_target(o, &c[SOCKET].target);
	args.socket = ours_socket(o);
	ours_must(hcomm_open(&args, &c[LIBRARY].session), "hcomm_open");
	for (i = 0; i < SIDES; i++)
		init(&c[i], rounds);
	bench_interleave(side, SIDES, rounds, &t);
	report(&t, c);
	for (i = 0; i < SIDES; i++)
		fini(&c[i]);
	hcomm_close(c[LIBRARY].session);
	rawecho_stop(&echo);
	ours_stop(o);
	return 0;
}
