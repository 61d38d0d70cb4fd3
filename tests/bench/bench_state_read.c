/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the state of a domain is read from the shared page: no system call, and a small multiple
 * of what reading the same words by the same protocol takes (gate, words, id, gate again).
 *
 * What is above the floor is the handle, the session's lock, and a status struct of more than a
 * kilobyte that is filled for the caller.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "pages.h"

#define NAME "state_read"

enum { READS = 100000, ROUNDS = 31, TIMEOUT_MS = 10000 };

enum side { OURS, PLAIN, SIDES };

struct contest {
	hcomm_domain domain;
	struct hc_page_record *record;
	uint64_t sum;
};

static double our_round(void *ctx)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct contest *c = ctx;
	uint64_t start = bench_now_ns();
	int i;

	for (i = 0; i < READS; i++) {
		ours_must(hcomm_status_get(c->domain, &s), "hcomm_status_get");
		c->sum += s.number;
	}
	return (double)(bench_now_ns() - start) / READS;
}

static uint64_t plain_read(const struct hc_page_record *r, uint64_t id)
{
	uint64_t gate, sum;

	do {
		gate = atomic_load_explicit(&r->gate, memory_order_acquire);
		sum = atomic_load_explicit(&r->number, memory_order_relaxed);
		sum += atomic_load_explicit(&r->nranks, memory_order_relaxed);
		sum += atomic_load_explicit(&r->epoch, memory_order_relaxed);
		if (atomic_load_explicit(&r->id, memory_order_acquire) != id)
			return 0;
	} while (atomic_load_explicit(&r->gate, memory_order_acquire) != gate);
	return sum;
}

static double plain_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t start = bench_now_ns();
	int i;

	for (i = 0; i < READS; i++)
		c->sum += plain_read(c->record, 7);
	return (double)(bench_now_ns() - start) / READS;
}

int main(void)
{
	static struct bench_table t;
	static struct contest c;
	const struct bench_side side[SIDES] = {
		[OURS] = {"status", our_round, &c}, [PLAIN] = {"plain", plain_round, &c}};
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *session;
	size_t rounds = bench_rounds(ROUNDS);
	struct bench_line l;
	struct ours *o;

	bench_line_machine(NAME);
	c.record = mmap(NULL, sizeof(*c.record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (c.record == MAP_FAILED)
		bench_die("no memory for a record");
	atomic_store(&c.record->id, 7);
	o = ours_start(8, -1);
	args.socket = ours_socket(o);
	ours_must(hcomm_open(&args, &session), "hcomm_open");
	ours_must(hcomm_join_all_local(session, NULL, 0, NULL, TIMEOUT_MS, &c.domain),
		  "hcomm_join_all_local");
	bench_interleave(side, SIDES, rounds, &t);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "ns", bench_table_median(&t, OURS), 1);
	bench_line_num(&l, "floor_ns", bench_table_median(&t, PLAIN), 2);
	bench_line_num(&l, "ratio", bench_table_ratio(&t, OURS, PLAIN), 1);
	bench_line_int(&l, "status_bytes", sizeof(struct hcomm_status));
	bench_line_print(&l);
	hcomm_close(session);
	ours_stop(o);
	return 0;
}
