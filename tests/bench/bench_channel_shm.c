/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the round trip of a small message over a channel between two processes of one node takes
 * at most 1.5 of what a bare ping-pong in shared memory takes, with the same kind of waiting.
 *
 * Two places are measured, since waking a process on another core and spinning on one's own are
 * different things: both processes on one processor, where each message is a sleep and a wake,
 * and each on its own, where both spin. In each place the channel and the floor take turns with
 * messages of 8 and of 64 bytes. A round counts the least of many short timings: a trip is so
 * short that a single slice of another process would be all that is measured. The worst of the
 * four ratios is judged. Beside it, messages of
 * 1 MiB in a row to the other processor against memcpy of the same, and libqb's IPC in shared
 * memory with the same bytes and places, where it is installed.
 *
 * Rank 0 is this process. Ranks 1 and 2 send back what they receive; rank 1 shares this
 * processor, rank 2 and the daemon have the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "peers.h"
#include "pingpong.h"

#define NAME "channel_shm"

enum {
	TRIPS_SAME = 200, /* of one timing, which is to fit into a slice of the scheduler */
	TRIPS_APART = 1000,
	TIMINGS = 40, /* of a round, of which the least counts: it was interrupted least */
	ROUNDS = 15,
	LARGE = HCOMM_CHANNEL_BYTES_MAX,
	LARGE_TIMES = 8,
	TIMEOUT_MS = 20000,
	PEER_TURNS = 20000,
};

#define GOAL 1.5

enum side { OURS_8, FLOOR_8, OURS_64, FLOOR_64, SIDES };

struct place {
	const char *name;
	hcomm_channel channel;
	struct pingpong *floor;
	unsigned trips;
	struct bench_table table;
};

struct contest { /* one side in one place */
	struct place *place;
	uint32_t bytes;
	bool ours;
};

static uint8_t large[LARGE], copy[LARGE];

static hcomm_channel connect_rank(const char *socket, const char *table, uint32_t rank,
				  hcomm_domain *d, struct hcomm_session **s)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	hcomm_channel channel;

	args.socket = socket;
	ours_must(hcomm_open(&args, s), "hcomm_open");
	ours_must(hcomm_join_table(*s, table, rank, NULL, TIMEOUT_MS, d), "hcomm_join_table");
	if (!rank)
		return 0;
	a.peer = 0;
	ours_must(hcomm_channel_acquire(*d, &a, TIMEOUT_MS, &channel), "hcomm_channel_acquire");
	return channel;
}

/* Small messages come back; of large ones the one that begins with 1, by its first byte. */
_Noreturn static void echo(hcomm_channel channel)
{
	uint32_t bytes;
	int r;

	for (;;) {
		bytes = sizeof(copy);
		r = hcomm_channel_recv(channel, copy, &bytes, HCOMM_DEFAULT);
		if (r == HCOMM_E_TIMEOUT)
			continue;
		ours_must(r, "hcomm_channel_recv");
		if (bytes > 64 && copy[0] != 1)
			continue;
		if (bytes > 64)
			bytes = 1;
		ours_must(hcomm_channel_send(channel, copy, bytes, TIMEOUT_MS),
			  "hcomm_channel_send");
	}
}

static pid_t start_rank(const char *socket, const char *table, uint32_t rank, int cpu)
{
	struct hcomm_session *s;
	hcomm_domain d;
	pid_t pid = bench_fork();

	if (pid)
		return pid;
	bench_pin(cpu);
	echo(connect_rank(socket, table, rank, &d, &s));
}

static double ours_ns(hcomm_channel channel, uint32_t bytes, unsigned trips)
{
	uint64_t start = bench_now_ns();
	uint8_t data[64] = {0};
	uint32_t got;
	unsigned i;

	for (i = 0; i < trips; i++) {
		got = sizeof(data);
		if (hcomm_channel_send(channel, data, bytes, TIMEOUT_MS) ||
		    hcomm_channel_recv(channel, data, &got, TIMEOUT_MS))
			bench_die("trip %u: %s", i, hcomm_last_error());
	}
	return (double)(bench_now_ns() - start) / trips;
}

static double small_round(void *ctx)
{
	const struct contest *c = ctx;
	const struct place *p = c->place;
	double ns, least = 0;
	unsigned i;

	for (i = 0; i < TIMINGS; i++) {
		ns = c->ours ? ours_ns(p->channel, c->bytes, p->trips)
			     : floor_pingpong_ns(p->floor, c->bytes, p->trips);
		least = !i || ns < least ? ns : least;
	}
	return least;
}

static void measure(struct place *p, size_t rounds)
{
	struct contest c[SIDES] = {{p, 8, true}, {p, 8, false}, {p, 64, true}, {p, 64, false}};
	const struct bench_side side[SIDES] = {{"channel 8", small_round, &c[OURS_8]},
					       {"floor 8", small_round, &c[FLOOR_8]},
					       {"channel 64", small_round, &c[OURS_64]},
					       {"floor 64", small_round, &c[FLOOR_64]}};

	bench_interleave(side, SIDES, rounds, &p->table);
}

/* ---- bandwidth ---- */

static double large_ns(const struct place *p)
{
	uint64_t start = bench_now_ns();
	uint32_t got = 1;
	uint8_t answer;
	int i;

	for (i = 1; i <= LARGE_TIMES; i++) {
		large[0] = i == LARGE_TIMES;
		ours_must(hcomm_channel_send(p->channel, large, LARGE, TIMEOUT_MS),
			  "hcomm_channel_send");
	}
	ours_must(hcomm_channel_recv(p->channel, &answer, &got, TIMEOUT_MS), "hcomm_channel_recv");
	return (double)(bench_now_ns() - start) / LARGE_TIMES;
}

static double memcpy_ns(void)
{
	uint64_t start = bench_now_ns();
	int i;

	for (i = 0; i < LARGE_TIMES; i++) {
		large[0] = (uint8_t)i;
		memcpy(copy, large, LARGE);
		__asm__ volatile("" ::: "memory");
	}
	return (double)(bench_now_ns() - start) / LARGE_TIMES;
}

/* The least of the timings, as above; without a place: memcpy. */
static double bulk_round(void *ctx)
{
	double ns, least = 0;
	int i;

	for (i = 0; i < TIMINGS; i++) {
		ns = ctx ? large_ns(ctx) : memcpy_ns();
		least = !i || ns < least ? ns : least;
	}
	return least;
}

/* ---- results ---- */

static double worst_ratio(const struct place *p)
{
	double small = bench_table_ratio(&p->table, OURS_8, FLOOR_8);
	double more = bench_table_ratio(&p->table, OURS_64, FLOOR_64);

	return small > more ? small : more;
}

static void report_place(const struct place *p)
{
	static const char *const names[SIDES] = {"channel_8_us", "floor_8_us", "channel_64_us",
						 "floor_64_us"};
	struct bench_line l;
	size_t i;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "place", p->name);
	for (i = 0; i < SIDES; i++)
		bench_line_num(&l, names[i], bench_table_median(&p->table, i) / 1e3, 3);
	bench_line_num(&l, "ratio_8", bench_table_ratio(&p->table, OURS_8, FLOOR_8), 3);
	bench_line_num(&l, "ratio_64", bench_table_ratio(&p->table, OURS_64, FLOOR_64), 3);
	bench_line_print(&l);
}

static void report_qb(int cpu, int other)
{
	struct peer_qb q[2];
	struct bench_line l;
	bool have = peer_qb_echo(&q[0], bench_tmpdir(), cpu, cpu, PEER_TURNS) &&
		    peer_qb_echo(&q[1], bench_tmpdir(), cpu, other, PEER_TURNS);

	bench_line_open(&l, NAME);
	bench_line_str(&l, "libqb", q[have].what);
	if (have) {
		bench_line_num(&l, "libqb_same_8_us", q[0].us_8, 3);
		bench_line_num(&l, "libqb_same_64_us", q[0].us_64, 3);
		bench_line_num(&l, "libqb_apart_8_us", q[1].us_8, 3);
		bench_line_num(&l, "libqb_apart_64_us", q[1].us_64, 3);
	} else {
		bench_line_null(&l, "libqb_same_8_us");
		bench_line_null(&l, "libqb_same_64_us");
		bench_line_null(&l, "libqb_apart_8_us");
		bench_line_null(&l, "libqb_apart_64_us");
	}
	bench_line_print(&l);
}

static void report(const struct place *same, const struct place *apart,
		   const struct bench_table *bulk)
{
	double ratio = worst_ratio(same), other = worst_ratio(apart);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "same_8_us", bench_table_median(&same->table, OURS_8) / 1e3, 3);
	bench_line_num(&l, "apart_8_us", bench_table_median(&apart->table, OURS_8) / 1e3, 3);
	bench_line_num(&l, "ratio_same", ratio, 3);
	bench_line_num(&l, "ratio_apart", other, 3);
	bench_line_num(&l, "ratio", ratio > other ? ratio : other, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_num(&l, "mib_gb_s", LARGE / bench_table_median(bulk, 0), 2);
	bench_line_num(&l, "memcpy_gb_s", LARGE / bench_table_median(bulk, 1), 2);
	bench_line_num(&l, "memcpy_ratio", bench_table_ratio(bulk, 0, 1), 3);
	bench_line_bool(&l, "met", ratio <= GOAL && other <= GOAL);
	bench_line_print(&l);
}

int main(void)
{
	static struct place same = {.name = "one processor", .trips = TRIPS_SAME},
			    apart = {.name = "two processors", .trips = TRIPS_APART};
	static struct bench_table bulk;
	const struct bench_side side[2] = {{"channel", bulk_round, &apart},
					   {"memcpy", bulk_round, NULL}};
	struct hcomm_channel_args a[2] = {HCOMM_INIT(struct hcomm_channel_args),
					  HCOMM_INIT(struct hcomm_channel_args)};
	size_t rounds = bench_rounds(ROUNDS);
	struct hcomm_session *s;
	hcomm_channel ch[2];
	struct ours *o;
	hcomm_domain d;
	char table[300];
	int cpu, other;
	pid_t pid[2];

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	snprintf(table, sizeof(table), "%s/three.json", bench_tmpdir());
	ours_write_table(table, 0, 3);
	memset(large, 7, sizeof(large));
	o = ours_start(3, other);
	same.floor = floor_pingpong_start(cpu, false);
	apart.floor = floor_pingpong_start(other, true);
	pid[0] = start_rank(ours_socket(o), table, 1, cpu);
	pid[1] = start_rank(ours_socket(o), table, 2, other);
	bench_pin(cpu);
	connect_rank(ours_socket(o), table, 0, &d, &s);
	a[0].peer = 1;
	a[1].peer = 2;
	ours_must(hcomm_channel_acquire_gang(d, a, 2, TIMEOUT_MS, ch),
		  "hcomm_channel_acquire_gang");
	same.channel = ch[0];
	apart.channel = ch[1];
	measure(&same, rounds);
	measure(&apart, rounds);
	bench_interleave(side, 2, rounds, &bulk);
	report_place(&same);
	report_place(&apart);
	report_qb(cpu, other);
	report(&same, &apart, &bulk);
	bench_kill(pid[0]);
	bench_kill(pid[1]);
	hcomm_close(s);
	floor_pingpong_stop(same.floor);
	floor_pingpong_stop(apart.floor);
	ours_stop(o);
	return 0;
}
