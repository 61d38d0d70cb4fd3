/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: at 64 and at 512 clients the daemon answers at least 0.8 of the requests a second that a
 * bare echo over the same kind of socket answers, and at least twice what redis answers to PING;
 * with 16 requests in a send at least 1.5 times redis with 16 pipelined.
 *
 * One generator drives all three, on a processor of its own; the server has the other. Beside
 * the rates stands the processor time that the server spent for a request: where generator and
 * kernel are the limit, rates come close to each other and the cost still tells them apart.
 *
 * redis is asked twice: by this generator, which alone is a fair comparison and is what "met"
 * looks at, and by redis-benchmark, whose figures are the ones that people know. That tool costs
 * more for a request than the server does, so its figure is rather the tool's than redis's.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "bench.h"
#include "ours.h"
#include "peers.h"
#include "rawecho.h"

#define NAME "request_throughput"

enum {
	ROUNDS = 9,
	ROUND_MS = 150,
	TOOL_RUNS = 3,
};

#define GOAL_FLOOR     0.8
#define GOAL_PEER      2.0
#define GOAL_PEER_DEEP 1.5

enum side {
	OURS,
	ECHO,
	REDIS,
	SIDES,
};

struct contest {
	struct loadgen_target target;
	struct loadgen *gen;
	pid_t server;
	uint64_t cpu_ns;
	double answers;
};

struct mode {
	unsigned clients;
	unsigned depth;
	double ratio;
	double peer_ratio;
	double tool_ratio;
};

static double one_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t before = bench_cpu_ns(c->server);
	uint64_t start = bench_now_ns();
	double rate = loadgen_run(c->gen, ROUND_MS * 1000000ull);

	c->answers += rate * (double)(bench_now_ns() - start) / 1e9;
	c->cpu_ns += bench_cpu_ns(c->server) - before;
	return rate;
}

static void put_side(struct bench_line *l, const char *rate, const char *cost,
		     const struct bench_table *t, size_t side, const struct contest *c)
{
	if (!c[side].server) {
		bench_line_null(l, rate);
		bench_line_null(l, cost);
		return;
	}
	bench_line_num(l, rate, bench_table_median(t, side), 0);
	bench_line_num(l, cost, (double)c[side].cpu_ns / c[side].answers, 0);
}

static void put_peer(struct bench_line *l, const char *key, double ratio)
{
	if (ratio > 0)
		bench_line_num(l, key, ratio, 3);
	else
		bench_line_null(l, key);
}

/* The other way to ask: each server by the generator that its own people use. */
static void put_own_tool(struct bench_line *l, struct mode *m, const struct bench_table *t,
			 const struct peer_redis *redis)
{
	double rate[TOOL_RUNS];
	int i;

	for (i = 0; redis->pid && i < TOOL_RUNS; i++)
		rate[i] = peer_redis_own_tool(redis, m->clients, m->depth);
	m->tool_ratio = 0;
	if (!redis->pid || bench_median(rate, TOOL_RUNS) <= 0) {
		bench_line_null(l, "redis_benchmark_per_s");
	} else {
		bench_line_num(l, "redis_benchmark_per_s", bench_median(rate, TOOL_RUNS), 0);
		m->tool_ratio = bench_table_median(t, OURS) / bench_median(rate, TOOL_RUNS);
	}
	put_peer(l, "redis_benchmark_ratio", m->tool_ratio);
}

static void run_mode(struct mode *m, struct contest *c, const struct peer_redis *redis)
{
	static struct bench_table t;
	struct bench_side side[SIDES];
	size_t i, n = c[REDIS].server ? SIDES : REDIS;
	struct bench_line l;

	for (i = 0; i < n; i++) {
		c[i].gen = loadgen_new(&c[i].target, m->clients, m->depth);
		c[i].cpu_ns = 0;
		c[i].answers = 0;
		side[i] = (struct bench_side){c[i].target.name, one_round, &c[i]};
	}
	bench_interleave(side, n, bench_rounds(ROUNDS), &t);
	m->ratio = bench_table_ratio(&t, OURS, ECHO);
	m->peer_ratio = n == SIDES ? bench_table_ratio(&t, OURS, REDIS) : 0;
	bench_line_open(&l, NAME);
	bench_line_int(&l, "clients", m->clients);
	bench_line_int(&l, "depth", m->depth);
	put_side(&l, "per_s", "server_ns", &t, OURS, c);
	put_side(&l, "echo_per_s", "echo_server_ns", &t, ECHO, c);
	put_side(&l, "redis_per_s", "redis_server_ns", &t, REDIS, c);
	bench_line_num(&l, "ratio", m->ratio, 3);
	put_peer(&l, "peer_ratio", m->peer_ratio);
	put_own_tool(&l, m, &t, redis);
	bench_line_print(&l);
	for (i = 0; i < n; i++)
		c[i].gen = loadgen_free(c[i].gen);
}

/* A peer that is not there neither meets nor misses a goal. Sixteen deep only the peer counts:
 * an echo that copies a whole packet does not do for each request what a server must. */
static bool met(const struct mode *m)
{
	bool peer = m->peer_ratio > 0;

	if (m->depth > 1)
		return !peer || m->peer_ratio >= GOAL_PEER_DEEP;
	return m->ratio >= GOAL_FLOOR && (!peer || m->peer_ratio >= GOAL_PEER);
}

static void report(const struct mode *m, size_t n)
{
	struct bench_line l;
	bool all = true;
	size_t i;

	for (i = 0; i < n; i++)
		all = all && met(&m[i]);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "ratio", m[0].ratio, 3);
	bench_line_num(&l, "goal", GOAL_FLOOR, 2);
	bench_line_str(&l, "redis", m[0].peer_ratio > 0 ? "measured" : PEER_NOT_INSTALLED);
	put_peer(&l, "peer_ratio", m[0].peer_ratio);
	bench_line_num(&l, "peer_goal", GOAL_PEER, 2);
	put_peer(&l, "redis_benchmark_ratio", m[0].tool_ratio);
	bench_line_num(&l, "ratio_512", m[1].ratio, 3);
	put_peer(&l, "peer_ratio_512", m[1].peer_ratio);
	put_peer(&l, "redis_benchmark_ratio_512", m[1].tool_ratio);
	bench_line_num(&l, "ratio_deep", m[2].ratio, 3);
	put_peer(&l, "peer_ratio_deep", m[2].peer_ratio);
	put_peer(&l, "redis_benchmark_ratio_deep", m[2].tool_ratio);
	bench_line_num(&l, "peer_goal_deep", GOAL_PEER_DEEP, 2);
	bench_line_bool(&l, "met", all);
	bench_line_print(&l);
}

/* 512 connections to each of three servers, and as many accepted ones in a child. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	l.rlim_cur = l.rlim_max < 4096 ? l.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &l);
}

int main(void)
{
	struct mode mode[] = {
		{64, 1, 0, 0, 0}, {512, 1, 0, 0, 0}, {64, 16, 0, 0, 0}, {512, 16, 0, 0, 0}};
	static struct contest c[SIDES];
	struct peer_redis redis = {.pid = 0};
	struct rawecho echo;
	struct ours *o;
	char path[300];
	int cpu, other;
	size_t i;

	bench_line_machine(NAME);
	raise_limit();
	bench_cpus(&cpu, &other);
	bench_pin(cpu);
	snprintf(path, sizeof(path), "%s/echo.sock", bench_tmpdir());
	rawecho_start(&echo, path, ours_ping_bytes(), ours_done_bytes(), other);
	rawecho_target(&echo, &c[ECHO].target);
	c[ECHO].server = echo.pid;
	o = ours_start(1, other);
	ours_ping_target(o, &c[OURS].target);
	c[OURS].server = ours_pid(o);
	if (peer_redis_start(&redis, bench_tmpdir(), other)) {
		peer_redis_target(&redis, &c[REDIS].target);
		c[REDIS].server = redis.pid;
	}
	for (i = 0; i < sizeof(mode) / sizeof(*mode); i++)
		run_mode(&mode[i], c, &redis);
	report(mode, sizeof(mode) / sizeof(*mode));
	peer_redis_stop(&redis);
	rawecho_stop(&echo);
	ours_stop(o);
	return 0;
}
