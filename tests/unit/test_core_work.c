/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that touches many: it goes out in slices, and others are served between them. Then split
 * and sub-domains, pages of views, and the containers against naive models.
 */
#include "suite.h"
#include "table.h"
#include "timers.h"
#include "world.h"

#include <string.h>

#define MANY 4096u

static struct world w;
static struct world_table t;

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

static void end(void)
{
	world_end(&w);
}

static void start_large(void)
{
	struct hc_settings set;
	struct hc_limits lim;

	world_defaults(&lim, &set);
	lim.sessions = MANY + 8;
	lim.domains = 1024;
	lim.ranks = 4 * MANY;
	lim.ranks_per_domain = MANY;
	world_start_with(&w, 1, &lim, &set, 8, 1);
	w.quiet_checks = true; /* looked at between, not after each of many steps */
	w.show = 0;
}

/* ---- slices ---- */

START_TEST(four_thousand_ranks)
{
	static struct world_client *c[MANY];
	struct world_client *other;
	uint32_t i, before, steps = 0;
	uint64_t id;

	start_large();
	c[0] = member(100);
	other = member(50);
	world_root_info(&w, c[0], MANY);
	for (i = 0; i < MANY; i++) {
		if (i)
			c[i] = member(100 + i);
		w.opt.device = i % 8;
		w.opt.shared = true;
		world_join_root(&w, c[i], c[0], MANY, i);
	}
	id = c[0]->id;
	for (i = 0; i < MANY; i++)
		ck_assert(c[i]->id == id && !c[i]->code && c[i]->events == 1);
	world_check(&w, 0);
	/* a death, told to all the others; one request is answered while that goes on */
	w.hold_deadline = true;
	steps = (uint32_t)w.steps;
	world_dead(&w, 0, 100 + 77);
	before = other->answers;
	world_status(&w, other, id);
	ck_assert_uint_eq(other->answers, before + 1);
	w.hold_deadline = false;
	world_settle(&w);
	ck_assert_uint_ge(w.steps - steps, MANY / HC_OUT_ACTIONS);
	for (i = 0; i < MANY; i++)
		if (i != 77)
			ck_assert(c[i]->events == 2 && c[i]->event_rank == 77);
	ck_assert_uint_le(w.most_actions, HC_OUT_ACTIONS);
	ck_assert_uint_le(w.most_bytes, HC_OUT_BYTES);
	world_check(&w, 0);
	/* the whole of it is drained and closed */
	world_destroy(&w, c[0], id);
	ck_assert_int_eq(c[0]->code, 0);
	ck_assert_int_eq(world_record(&w, 0, id)->state, HC_W_domain_state_DESTROYED);
	for (i = 0; i < MANY; i++)
		world_die(&w, c[i]);
	world_lose(&w, other);
	world_check_empty(&w);
	end();
}
END_TEST

/* One process with thousands of seats dies: others are served before all are let go. */
START_TEST(a_process_of_many_seats_is_reaped_in_slices)
{
	struct world_client *c, *other;
	struct hc_core_counts n;
	uint32_t i, before;

	start_large();
	c = member(100);
	other = member(50);
	for (i = 0; i < 512; i++) {
		world_join_local(&w, c, NULL, 0);
		ck_assert_int_eq(c->code, 0);
	}
	hc_core_counts(w.core[0], &n);
	ck_assert_uint_eq(n.ranks, MANY);
	ck_assert_uint_eq(n.active, 512);
	w.hold_deadline = w.hold_store[0] = true;
	world_dead(&w, 0, 100);
	ck_assert(hc_core_deadline(w.core[0]) <= w.now); /* there is more of it */
	before = other->answers;
	world_status(&w, other, c->id);
	ck_assert_uint_eq(other->answers, before + 1);
	w.hold_deadline = w.hold_store[0] = false;
	world_lose(&w, c);
	world_advance(&w, 6000);
	world_lose(&w, other);
	world_check_empty(&w);
	end();
}
END_TEST

/* ---- split and sub-domains ---- */

static struct world_client *cl[8];

static uint64_t form(uint32_t nranks)
{
	uint32_t i;

	world_start(&w, 1);
	world_table(&t, nranks, 1);
	for (i = 0; i < nranks; i++) {
		cl[i] = member(100 + i);
		world_join_table(&w, cl[i], &t, i);
	}
	for (i = 0; i < nranks; i++)
		world_join_table(&w, cl[i], &t, i); /* a second one: numbers are not mixed up */
	world_forget(&w);
	w.show = SHOW_REPLIES;
	return cl[0]->id;
}

START_TEST(split_by_colour_and_key)
{
	const uint64_t id = form(6);
	const int32_t color[] = {1, 0, 1, -1, 0, 1}, key[] = {9, 0, -3, 0, 0, 9};
	uint32_t i;

	for (i = 0; i < 6; i++)
		world_split(&w, cl[i], id, i, color[i], key[i]);
	ck_transcript(&w, "[    0ms] a 100 split: group 2 0 5\n"
			  "[    0ms] a 101 split: group 1 4\n"
			  "[    0ms] a 102 split: group 2 0 5\n"
			  "[    0ms] a 103 split: group none\n"
			  "[    0ms] a 104 split: group 1 4\n"
			  "[    0ms] a 105 split: group 2 0 5\n");
	ck_assert(cl[0]->sub_id == cl[2]->sub_id && cl[0]->sub_id != cl[1]->sub_id);
	world_sub(&w, cl[2], id, 2, cl[2]->sub_id, cl[2]->group, 3);
	world_sub(&w, cl[0], id, 0, cl[0]->sub_id, cl[0]->group, 3);
	world_sub(&w, cl[5], id, 5, cl[5]->sub_id, cl[5]->group, 3);
	ck_assert(cl[5]->id && cl[5]->id == cl[0]->id && cl[5]->id == cl[2]->id);
	ck_assert_uint_eq(world_seat(&w, cl[5]->id, 0)->pid, 102);
	end();
}
END_TEST

START_TEST(split_names_who_says_nothing)
{
	const uint64_t id = form(3);

	w.opt.timeout_ms = 800;
	world_split(&w, cl[1], id, 1, 0, 0);
	world_advance(&w, 800);
	ck_transcript(&w,
		      "[  800ms] a 101 split: refused TIMEOUT: split: no word from rank 0 2 (2 of "
		      "3)\n");
	world_split(&w, cl[1], id, 1, 0, 0);
	world_split(&w, cl[1], id, 1, 0, 0); /* again: the first is answered */
	ck_assert_uint_eq(cl[1]->nwaits, 1);
	world_die(&w, cl[2]);
	ck_assert_int_eq(cl[1]->code, HC_E_DAMAGED);
	ck_assert(!world_waits(cl[1]));
	world_split(&w, cl[1], id, 1, 0, 0);
	ck_assert_int_eq(cl[1]->code, HC_E_DAMAGED);
	end();
}
END_TEST

START_TEST(a_leave_ends_a_split)
{
	const uint64_t id = form(3);

	world_split(&w, cl[1], id, 1, 0, 0);
	world_leave(&w, cl[0], id, 0);
	ck_assert_int_eq(cl[1]->code, HC_E_GONE);
	ck_assert(!world_waits(cl[1]));
	end();
}
END_TEST

START_TEST(lists_of_a_sub_domain_differ)
{
	const uint64_t id = form(4);
	const uint32_t one[] = {0, 1}, other[] = {1, 0}, odd[] = {0, 9}, twice[] = {0, 0};

	world_sub(&w, cl[0], id, 0, 5, odd, 2);
	ck_assert_int_eq(cl[0]->code, HC_E_INVALID);
	world_sub(&w, cl[0], id, 0, 5, twice, 2);
	ck_assert_int_eq(cl[0]->code, HC_E_INVALID);
	world_sub(&w, cl[2], id, 2, 5, one, 2);
	ck_assert_int_eq(cl[2]->code, HC_E_INVALID);
	world_sub(&w, cl[2], id, 1, 5, one, 2);
	ck_assert_int_eq(cl[2]->code, HC_E_PERMISSION);
	world_sub(&w, cl[0], id, 0, 5, one, 2);
	ck_assert(world_waits(cl[0]));
	world_sub(&w, cl[1], id, 1, 5, other, 2); /* both say that they are rank 0 */
	ck_assert_int_eq(cl[0]->code, HC_E_MISMATCH);
	ck_assert_int_eq(cl[1]->code, HC_E_MISMATCH);
	ck_assert_msg(strstr(cl[0]->text, "pid 100") && strstr(cl[0]->text, "pid 101"), "%s",
		      cl[0]->text);
	end();
}
END_TEST

/* ---- pages ---- */

START_TEST(pages_notice_a_change)
{
	const uint32_t device = 0;
	struct world_client *c;
	uint32_t i, rows = 0, pages = 0;
	uint64_t cursor;

	start_large();
	c = member(100);
	for (i = 0; i < 900; i++)
		world_join_local(&w, c, &device, 1);
	do {
		world_query(&w, c, HC_VIEW_domain, pages ? c->cursor : 0, c->snapshot, 0);
		ck_assert_int_eq(c->code, 0);
		rows += c->nrows;
		pages++;
	} while (c->cursor);
	ck_assert_uint_eq(rows, 900);
	ck_assert_uint_gt(pages, 1);
	world_query(&w, c, HC_VIEW_domain, 0, 0, 0);
	cursor = c->cursor;
	world_join_local(&w, c, &device, 1);
	world_query(&w, c, HC_VIEW_domain, cursor, c->snapshot, 0);
	ck_assert_int_eq(c->code, HC_E_STALE);
	world_query(&w, c, HC_VIEW_domain, 0, 0, 5);
	ck_assert_uint_eq(c->nrows, 5);
	world_query(&w, c, 999, 0, 0, 0);
	ck_assert_int_eq(c->code, HC_E_NOT_FOUND);
	world_query(&w, c, HC_VIEW_member, UINT64_MAX, 0, 0); /* a cursor that nobody gave out */
	ck_assert_uint_eq(c->nrows, 0);
	end();
}
END_TEST

/* ---- containers ---- */

static uint64_t dice = 88172645463325252ull;

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 33) % n;
}

static uint64_t memory[1 << 16];

static struct hc_mem fresh(void)
{
	memset(memory, 0, sizeof(memory));
	return (struct hc_mem){.base = (uint8_t *)memory, .size = sizeof(memory)};
}

START_TEST(timers_against_a_list)
{
	enum { N = 40 };
	uint64_t model[N], next, due;
	struct hc_mem m = fresh();
	struct hc_timers tm;
	uint32_t i, n, round, best;

	hc_timers_init(&tm, &m, N);
	for (i = 0; i < N; i++)
		model[i] = HC_NEVER;
	for (round = 0; round < 50000; round++) {
		n = roll(N);
		model[n] = roll(4) ? roll(100) : HC_NEVER;
		hc_timers_set(&tm, n, model[n]);
		for (i = 0, best = 0; i < N; i++)
			if (model[i] < model[best])
				best = i;
		next = model[best];
		ck_assert_uint_eq(hc_timers_next(&tm), next);
		due = roll(30);
		n = hc_timers_take(&tm, due);
		ck_assert_uint_eq(n, next != HC_NEVER && next <= due ? best : HC_NONE);
		if (n != HC_NONE)
			model[n] = HC_NEVER;
	}
}
END_TEST

START_TEST(pool_and_index_against_an_array)
{
	enum { N = 50 };
	struct {
		uint64_t key;
	} item[N];
	bool used[N] = {0};
	struct hc_mem m = fresh();
	struct hc_index x;
	struct hc_pool p;
	uint32_t i, n, round, count = 0, found, wanted;

	hc_pool_init(&p, &m, N);
	hc_index_init_in(&x, &m, N, item, key);
	hc_index_expect(&x, 27); /* more come than were expected */
	for (round = 0; round < 50000; round++) {
		if (roll(2)) {
			n = hc_pool_get(&p);
			ck_assert_int_eq(n == HC_NONE, count == N);
			if (n == HC_NONE)
				continue;
			ck_assert(n < N && !used[n]);
			used[n] = true;
			count++;
			item[n].key = roll(20);
			hc_index_add_in(&x, n);
		} else if (used[n = roll(N)]) {
			used[n] = false;
			count--;
			hc_index_del(&x, n);
			hc_index_del(&x, n); /* fine when it is not in */
			hc_pool_put(&p, n);
		}
		ck_assert_uint_eq(p.used, count);
		for (i = 0, wanted = 0; i < N; i++)
			wanted += used[i] && item[i].key == 7;
		for (found = 0, n = hc_index_find(&x, 7); n != HC_NONE; n = hc_index_next(&x, n)) {
			ck_assert(used[n] && item[n].key == 7);
			found++;
		}
		ck_assert_uint_eq(found, wanted);
	}
}
END_TEST

START_TEST(spans_never_overlap)
{
	enum { N = 256, RUNS = 64 };
	struct {
		uint32_t first, n;
		uint8_t order;
	} run[RUNS] = {0};
	bool taken[N] = {0};
	struct hc_mem m = fresh();
	struct hc_spans s;
	uint32_t i, k, round;

	hc_spans_init(&s, &m, N);
	for (round = 0; round < 50000; round++) {
		i = roll(RUNS);
		if (run[i].n) {
			for (k = 0; k < run[i].n; k++)
				taken[run[i].first + k] = false;
			hc_spans_put(&s, run[i].first, run[i].order);
			run[i].n = 0;
			continue;
		}
		run[i].n = 1 + roll(9);
		run[i].first = hc_spans_get(&s, run[i].n, &run[i].order);
		if (run[i].first == HC_NONE) {
			run[i].n = 0;
			continue;
		}
		ck_assert(run[i].first + run[i].n <= N && 1u << run[i].order >= run[i].n);
		for (k = 0; k < run[i].n; k++) {
			ck_assert(!taken[run[i].first + k]);
			taken[run[i].first + k] = true;
		}
	}
	ck_assert_uint_eq(hc_spans_get(&s, N + 1, &run[0].order), HC_NONE);
}
END_TEST

START_TEST(lists_keep_their_order)
{
	enum { N = 30 };
	uint32_t model[N], count = 0, i, k, n, round;
	struct hc_mem m = fresh();
	struct hc_list list = {0};
	struct hc_links l;

	hc_links_init(&l, &m, N);
	for (round = 0; round < 50000; round++) {
		n = roll(N);
		for (k = 0; k < count && model[k] != n; k++)
			;
		if (k == count) {
			hc_list_push(&list, &l, n);
			model[count++] = n;
		} else if (roll(2)) {
			hc_list_del(&list, &l, n);
			memmove(&model[k], &model[k + 1], (--count - k) * sizeof(*model));
		} else {
			for (i = 0; i < count; i++)
				if (model[i] == (n + 1) % N)
					break;
			if (i == count) { /* n + 1 is not in: it takes n's place */
				hc_list_move(&list, &l, n, (n + 1) % N);
				model[k] = (n + 1) % N;
			}
		}
		ck_assert_uint_eq(list.count, count);
		for (i = 0, n = hc_list_first(&list); i < count; i++, n = hc_list_next(&l, n))
			ck_assert_uint_eq(n, model[i]);
		ck_assert_uint_eq(n, HC_NONE);
	}
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, four_thousand_ranks);
	tcase_add_test(c, a_process_of_many_seats_is_reaped_in_slices);
	tcase_add_test(c, split_by_colour_and_key);
	tcase_add_test(c, split_names_who_says_nothing);
	tcase_add_test(c, a_leave_ends_a_split);
	tcase_add_test(c, lists_of_a_sub_domain_differ);
	tcase_add_test(c, pages_notice_a_change);
	tcase_add_test(c, timers_against_a_list);
	tcase_add_test(c, pool_and_index_against_an_array);
	tcase_add_test(c, spans_never_overlap);
	tcase_add_test(c, lists_keep_their_order);
}

int main(void)
{
	return hc_suite_run("core_work", add, 120);
}
