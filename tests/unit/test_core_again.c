/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is killed in the middle of a domain of two nodes, and started again.
 *
 * Two real cores with four ranks. What happens is taken apart into steps: a request, a message
 * handed over, a row stored. The steps are done in an order that a seed gives, and after each
 * number of them one of the daemons is killed: what was not stored and what was on its way is
 * lost. Then it starts, the nodes meet again, and the libraries of its ranks do what libraries do:
 * they attach what they had, and repeat what was not answered. Wanted, wherever that was: both
 * nodes say the same, every request is answered, and nothing is left in the end.
 */
#include "again.h"
#include "away.h"
#include "pages.h"
#include "suite.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 4, STEPS_MAX = 200, SEEDS = 6 };

enum doing {
	DO_JOIN,
	DO_NOTHING,
	DO_LEAVE,
	DO_DESTROY,
	DO_DRAIN, /* destroy, while another rank is in a collective */
	DO_ABORT,
	DO_SUSPEND,
	DOINGS
};

static struct world w;
static struct world_table table;
static struct rank {
	struct world_client *cl;
	uint32_t block;
	uint64_t begun;
	uint32_t running;
	bool joins, joined, asks;
	int code;
} rank[RANKS];
static uint64_t id;
static uint32_t seed, dice;
static enum doing doing;
static uint32_t by; /* rank that does it */

static uint32_t node_of(uint32_t r)
{
	return r % 2;
}

static uint32_t draw(uint32_t below)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 16) % below;
}

static uint8_t state_of(uint32_t node)
{
	const struct world_record *r = world_record(&w, node, id);

	return r ? r->state : HC_W_domain_state_NONE;
}

static const char *about(uint32_t at, uint32_t victim)
{
	static char text[160];

	snprintf(text, sizeof(text), "doing %d by rank %u, seed %u, node %u killed after %u steps",
		 (int)doing, by, seed, victim, at);
	return text;
}

/* ---- what libraries do ---- */

static struct world_client *connect_rank(uint32_t r)
{
	return world_client(&w, node_of(r), 100 + r, 1000, HC_W_role_MEMBER);
}

static void join(uint32_t r)
{
	rank[r].joins = true;
	world_join_table(&w, rank[r].cl, &table, r);
}

static void ask(uint32_t r)
{
	rank[r].asks = true;
	switch (doing) {
	case DO_LEAVE: world_leave(&w, rank[r].cl, id, r); return;
	case DO_DESTROY:
	case DO_DRAIN: world_destroy(&w, rank[r].cl, id); return;
	case DO_ABORT: world_abort(&w, rank[r].cl, id, r, "loss is not a number"); return;
	case DO_JOIN:
	case DO_NOTHING:
	case DO_SUSPEND:
	case DOINGS: return;
	}
}

/* What was answered since. */
static void look(void)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++) {
		struct rank *k = &rank[r];

		if (k->joins && !k->joined && !world_waits(k->cl)) {
			k->joins = false;
			k->joined = !k->cl->code;
			k->code = k->cl->code;
			if (k->joined && !id)
				id = k->cl->id;
			if (k->joined)
				k->block = world_seat(&w, k->cl->id, r)->block;
		} else if (k->asks && !world_waits(k->cl)) {
			k->asks = false;
			k->code = k->cl->code;
		}
	}
}

/* The process is there yet, its session is not. */
static void come_back(uint32_t r)
{
	struct rank *k = &rank[r];
	const bool asks = k->asks;

	k->cl = connect_rank(r);
	if (!k->joined) {
		if (k->joins)
			join(r);
		return;
	}
	world_come_back(&w, k->cl, id, r, k->block);
	if (!k->cl->code)
		world_ops(&w, id, r, k->begun, k->running); /* it is the arena of before */
	if (asks && k->cl->code == HC_E_GONE) {             /* done, or over */
		k->asks = false;
		k->code = 0;
	} else if (asks) {
		ask(r);
	}
}

/* ---- nodes ---- */

static void meet(uint32_t x, uint32_t y)
{
	hc_away_back(w.core[x], w.node_of[x][y], 1000 + y);
	hc_again(w.core[x], w.node_of[x][y]);
}

static void hold(bool on)
{
	w.hold[0][1] = w.hold[1][0] = w.hold_store[0] = w.hold_store[1] = on;
}

static void crash(uint32_t victim)
{
	uint32_t r;

	look();
	while (world_drop(&w, 0, 1) || world_drop(&w, 1, 0))
		;
	hold(false);
	world_restart(&w, victim);
	while (world_drop(&w, 0, 1) || world_drop(&w, 1, 0))
		; /* they have not met yet */
	meet(0, 1);
	meet(1, 0);
	world_settle(&w);
	for (r = 0; r < RANKS; r++)
		if (node_of(r) == victim)
			come_back(r);
	world_advance(&w, 2500);
	look();
}

static void start(void)
{
	uint32_t r;

	id = 0;
	dice = seed;
	memset(rank, 0, sizeof(rank));
	world_start(&w, 2);
	w.show = 0;
	hc_away_back(w.core[0], w.node_of[0][1], 1001);
	hc_away_back(w.core[1], w.node_of[1][0], 1000);
	world_table(&table, RANKS, 2);
	for (r = 0; r < RANKS; r++)
		rank[r].cl = connect_rank(r);
}

/* ---- steps ---- */

static bool anything_to_store(uint32_t node)
{
	return w.stored[node] != w.asked[node];
}

static bool next_join(void)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++)
		if (!rank[r].joins && !rank[r].joined) {
			join(r);
			return true;
		}
	return false;
}

/* One step of kind `what`; false when there is none of it. */
static bool step(uint32_t what)
{
	switch (what) {
	case 0: return world_carry(&w, 0, 1);
	case 1: return world_carry(&w, 1, 0);
	case 2:
	case 3:
		if (!anything_to_store(what - 2))
			return false;
		world_store_hold(&w, what - 2, false);
		w.hold_store[what - 2] = true;
		return true;
	}
	return doing == DO_JOIN && next_join();
}

/* Returns whether that many steps were there to be done. */
static bool steps(uint32_t n)
{
	uint32_t i, k, first;
	bool done;

	for (i = 0; i < n; i++) {
		first = draw(5);
		done = false;
		for (k = 0; !done && k < 5; k++)
			done = step((first + k) % 5);
		look();
		if (!done)
			return false;
	}
	return true;
}

/* ---- the end ---- */

static void all_die(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

static void no_rank_waits(const char *where)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++)
		ck_assert_msg(!world_waits(rank[r].cl), "%s: rank %u waits", where, r);
}

/* Ranks begin and end a collective; a drain works; everything is over. */
static void works_and_ends(const char *where)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++)
		world_ops(&w, id, r, 7, 0);
	world_destroy(&w, rank[0].cl, id);
	world_advance(&w, 2500);
	ck_assert_msg(!world_waits(rank[0].cl) && !rank[0].cl->code, "%s: destroy: %d %s", where,
		      rank[0].cl->code, rank[0].cl->text);
	for (r = 0; r < 2; r++)
		ck_assert_msg(state_of(r) == HC_W_domain_state_DESTROYED, "%s: node %u is %s",
			      where, r, hc_word_domain_state(state_of(r)));
	all_die();
}

static void is_active(const char *where)
{
	uint32_t r;

	no_rank_waits(where);
	for (r = 0; r < RANKS; r++)
		ck_assert_msg(rank[r].joined && rank[r].cl->code == 0, "%s: rank %u: %d %s", where,
			      r, rank[r].code, rank[r].cl->text);
	for (r = 0; r < 2; r++)
		ck_assert_msg(state_of(r) == HC_W_domain_state_ACTIVE, "%s: node %u is %s: %s",
			      where, r, hc_word_domain_state(state_of(r)),
			      world_record(&w, r, id) ? world_record(&w, r, id)->cause : "");
}

/* ---- while it forms and activates ---- */

/* Killed between any two steps: the domain is formed all the same, and nobody hears of it. */
START_TEST(killed_while_it_forms)
{
	const uint32_t victim = (uint32_t)_i % 2;
	uint32_t at;
	bool more = true;

	doing = DO_JOIN;
	seed = 1 + (uint32_t)_i / 2;
	for (at = 0; more && at < STEPS_MAX; at++) {
		start();
		hold(true);
		more = steps(at);
		crash(victim);
		while (next_join())
			;
		world_advance(&w, 2500);
		look();
		is_active(about(at, victim));
		works_and_ends(about(at, victim));
	}
	ck_assert_uint_lt(at, STEPS_MAX);
	ck_assert_uint_gt(at, 10);
}
END_TEST

/* ---- later ---- */

static void formed(void)
{
	const enum doing later = doing;

	doing = DO_JOIN;
	start();
	while (next_join())
		;
	world_settle(&w);
	look();
	is_active("at first");
	doing = later;
}

static void begin_doing(void)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++) {
		rank[r].begun = 5;
		rank[r].running = doing == DO_DRAIN && r == (by + 1) % RANKS;
		world_ops(&w, id, r, rank[r].begun, rank[r].running);
	}
	hold(true);
	ask(by);
}

static void agree(const char *where)
{
	const uint8_t a = state_of(0), b = state_of(1);

	ck_assert_msg(a == b, "%s: node 0 is %s, node 1 is %s", where, hc_word_domain_state(a),
		      hc_word_domain_state(b));
}

static void all_others_leave(const char *where)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++) {
		if (r == by)
			continue;
		world_leave(&w, rank[r].cl, id, r);
		world_advance(&w, 1500);
		ck_assert_msg(!world_waits(rank[r].cl) && !rank[r].cl->code, "%s: rank %u: %d %s",
			      where, r, rank[r].cl->code, rank[r].cl->text);
	}
	world_advance(&w, 6000);
}

static void left(const char *where)
{
	ck_assert_msg(!rank[by].asks && !rank[by].code, "%s: leave: %d", where, rank[by].code);
	agree(where);
	ck_assert_msg(state_of(0) == HC_W_domain_state_DRAINING, "%s: %s", where,
		      hc_word_domain_state(state_of(0)));
	ck_assert_msg(world_record(&w, 0, id)->cut == 5 && world_record(&w, 1, id)->cut == 5,
		      "%s: cuts %u, %u", where, (unsigned)world_record(&w, 0, id)->cut,
		      (unsigned)world_record(&w, 1, id)->cut);
	all_others_leave(where);
	ck_assert_msg(state_of(0) == HC_W_domain_state_DESTROYED, "%s", where);
	agree(where);
	all_die();
}

static void destroyed(const char *where)
{
	const uint32_t runs = (by + 1) % RANKS;

	if (doing == DO_DRAIN) {
		ck_assert_msg(rank[by].asks, "%s: a reference is left, and it is over: %d", where,
			      rank[by].code);
		agree(where);
		ck_assert_msg(state_of(0) == HC_W_domain_state_DRAINING, "%s: %s", where,
			      hc_word_domain_state(state_of(0)));
		world_ops(&w, id, runs, 5, 0);
		world_ops_ended(&w, rank[runs].cl, id);
		world_advance(&w, 2500);
		look();
	}
	ck_assert_msg(!rank[by].asks && (!rank[by].code || rank[by].code == HC_E_GONE ||
					 rank[by].code == HC_E_NOT_FOUND),
		      "%s: destroy: %d %s", where, rank[by].code, rank[by].cl->text);
	agree(where);
	ck_assert_msg(state_of(0) == HC_W_domain_state_DESTROYED, "%s: %s", where,
		      hc_word_domain_state(state_of(0)));
	all_die();
}

static void aborted(const char *where)
{
	agree(where);
	if (state_of(0) == HC_W_domain_state_ACTIVE) { /* it had been said to nobody */
		no_rank_waits(where);
		works_and_ends(where);
		return;
	}
	ck_assert_msg(state_of(0) == HC_W_domain_state_DAMAGED, "%s: %s", where,
		      hc_word_domain_state(state_of(0)));
	all_others_leave(where);
	ck_assert_msg(state_of(0) == HC_W_domain_state_DESTROYED, "%s: %s", where,
		      hc_word_domain_state(state_of(0)));
	agree(where);
	all_die();
}

static void check_after(const char *where)
{
	switch (doing) {
	case DO_LEAVE: left(where); return;
	case DO_DESTROY:
	case DO_DRAIN: destroyed(where); return;
	case DO_ABORT: aborted(where); return;
	case DO_NOTHING:
	case DO_SUSPEND:
		is_active(where);
		works_and_ends(where);
		return;
	case DO_JOIN:
	case DOINGS: return;
	}
}

static void everywhere(enum doing what, uint32_t number)
{
	const uint32_t victim = number % 2;
	uint32_t at;
	bool more = true;

	doing = what;
	by = number / 2 % 2;
	seed = 1 + number / 4;
	for (at = 0; more && at < STEPS_MAX; at++) {
		formed();
		begin_doing();
		more = steps(at);
		crash(victim);
		check_after(about(at, victim));
	}
	ck_assert_uint_lt(at, STEPS_MAX);
}

START_TEST(killed_at_rest)
{
	everywhere(DO_NOTHING, (uint32_t)_i);
}
END_TEST

START_TEST(killed_while_a_rank_leaves)
{
	everywhere(DO_LEAVE, (uint32_t)_i);
}
END_TEST

START_TEST(killed_while_it_is_destroyed)
{
	everywhere(DO_DESTROY, (uint32_t)_i);
}
END_TEST

START_TEST(killed_while_it_drains)
{
	everywhere(DO_DRAIN, (uint32_t)_i);
}
END_TEST

START_TEST(killed_while_a_rank_aborts)
{
	everywhere(DO_ABORT, (uint32_t)_i);
}
END_TEST

static void add(TCase *c)
{
	tcase_add_loop_test(c, killed_while_it_forms, 0, 2 * SEEDS);
	tcase_add_loop_test(c, killed_at_rest, 0, 2);
	tcase_add_loop_test(c, killed_while_a_rank_leaves, 0, 4 * SEEDS);
	tcase_add_loop_test(c, killed_while_it_is_destroyed, 0, 4 * SEEDS);
	tcase_add_loop_test(c, killed_while_it_drains, 0, 4 * SEEDS);
	tcase_add_loop_test(c, killed_while_a_rank_aborts, 0, 4 * SEEDS);
}

int main(void)
{
	return hc_suite_run("core_again", add, 60);
}
