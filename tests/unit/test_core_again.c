/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is killed in the middle of a domain of two or three nodes, and started again.
 *
 * Real cores with four ranks. What happens is taken apart into steps: a request, a message
 * handed over, a row stored. The steps are done in an order that a seed gives, and after each
 * number of them one of the daemons is killed: what was not stored and what was on its way is
 * lost. Then it starts, the nodes meet again, and the libraries of its ranks do what libraries do:
 * they attach what they had, and repeat what was not answered. Wanted, wherever that was: all
 * nodes say the same, every request is answered, and nothing is left in the end.
 */
#include "again.h"
#include "away.h"
#include "pages.h"
#include "state.h"
#include "suite.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 4, STEPS_MAX = 200 };

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
static uint32_t seed, dice, nodes = 2;
static enum doing doing;
static uint32_t by; /* rank that does it */

static uint32_t node_of(uint32_t r)
{
	return r % nodes;
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

	snprintf(text, sizeof(text),
		 "doing %d by rank %u, %u nodes, seed %u, node %u killed after %u steps",
		 (int)doing, by, nodes, seed, victim, at);
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
	uint32_t i, k;

	for (i = 0; i < nodes; i++) {
		w.hold_store[i] = on;
		for (k = 0; k < nodes; k++)
			w.hold[i][k] = on;
	}
}

/* What was between it and the others, both ways. */
static void lose_mail(uint32_t node)
{
	uint32_t i;

	for (i = 0; i < nodes; i++)
		while (world_drop(&w, node, i) || world_drop(&w, i, node))
			;
}

static void crash(uint32_t victim)
{
	uint32_t r, i;

	look();
	lose_mail(victim);
	for (i = 0; i < nodes; i++)
		w.hold[victim][i] = w.hold[i][victim] = true;
	w.hold_store[victim] = false;
	world_restart(&w, victim);
	lose_mail(victim); /* they have not met yet */
	for (i = 0; i < nodes; i++)
		if (i != victim) {
			meet(i, victim);
			meet(victim, i);
		}
	hold(false);
	if (draw(2)) /* libraries may be there before the nodes have told each other */
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
	world_start(&w, nodes);
	w.show = 0;
	for (r = 0; r < nodes * nodes; r++)
		if (r / nodes != r % nodes)
			hc_away_back(w.core[r / nodes], w.node_of[r / nodes][r % nodes],
				     1000 + r % nodes);
	world_table(&table, RANKS, nodes);
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
	if (what < nodes) {
		if (!anything_to_store(what))
			return false;
		world_store_hold(&w, what, false);
		w.hold_store[what] = true;
		return true;
	}
	what -= nodes;
	if (what < nodes * nodes)
		return what / nodes != what % nodes && world_carry(&w, what / nodes, what % nodes);
	return doing == DO_JOIN && next_join();
}

/* Returns whether that many steps were there to be done. */
static bool steps(uint32_t n)
{
	const uint32_t kinds = nodes + nodes * nodes + 1;
	uint32_t i, k, first;
	bool done;

	for (i = 0; i < n; i++) {
		first = draw(kinds);
		done = false;
		for (k = 0; !done && k < kinds; k++)
			done = step((first + k) % kinds);
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

	world_die_all(&w);
	for (i = 0; i < RANKS; i++) /* those that have not come back */
		world_dead(&w, node_of(i), 100 + i);
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
	for (r = 0; r < nodes; r++)
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
	for (r = 0; r < nodes; r++)
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
	nodes = 2 + (uint32_t)_i / 2 % 2;
	seed = 1 + (uint32_t)_i / 4;
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

/* Nodes that find each other again say what they said: an arrival that comes twice, the second time
 * while the home prepares, is the same arrival. (They once began anew for ever, at the speed of the
 * wire.) */
START_TEST(an_arrival_comes_twice)
{
	uint32_t r;

	nodes = 2;
	doing = DO_JOIN;
	seed = 1;
	start();
	w.hold[1][0] = true;
	for (r = 0; r < RANKS; r++)
		join(r);
	hc_again(w.core[1], w.node_of[1][0]);
	world_settle(&w);
	w.show = SHOW_LOG;
	for (r = 0; r < RANKS; r++) { /* two ranks, twice */
		ck_assert_str_eq(world_next_name(&w, 1, 0), "arrive");
		world_carry(&w, 1, 0);
	}
	world_hold(&w, 1, 0, false);
	world_settle(&w);
	look();
	ck_assert_msg(!world_said(&w, "forms again"), "%s", w.text);
	is_active("after it came twice");
	works_and_ends("after it came twice");
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
	const uint8_t a = state_of(0);
	uint32_t i;

	for (i = 1; i < nodes; i++)
		ck_assert_msg(a == state_of(i), "%s: node 0 is %s, node %u is %s", where,
			      hc_word_domain_state(a), i, hc_word_domain_state(state_of(i)));
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

/* On its node, too, whatever was stored when the answer was given. */
static bool is_out(uint32_t r)
{
	const struct hc_core *c = w.core[node_of(r)];
	const uint32_t n = hc_index_find(&c->part_by_id, id);
	uint32_t i;

	for (i = 0; n != HC_NONE && i < c->parts[n].nseats; i++)
		if (c->seats[c->parts[n].seats + i].rank == r)
			return c->seats[c->parts[n].seats + i].state == HC_W_member_state_LEFT;
	return true;
}

static void left(const char *where)
{
	ck_assert_msg(is_out(by), "%s: rank %u has left, and its node has it", where, by);
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
	nodes = 2 + number / 4 % 2;
	seed = 1 + number / 8;
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

/* ---- who does not come ---- */

static void lose_all(void)
{
	while (world_drop(&w, 0, 1) || world_drop(&w, 1, 0))
		;
}

/* It starts alone. For daemon_grace it is as it was; then the other node is away, and at last lost.
 */
START_TEST(alone_after_the_start)
{
	const uint32_t victim = (uint32_t)_i, other = !victim;

	nodes = 2;
	doing = DO_NOTHING;
	seed = 1;
	formed();
	w.hold[0][1] = w.hold[1][0] = true;
	world_restart(&w, victim);
	ck_assert_int_eq(state_of(victim), HC_W_domain_state_ACTIVE);
	world_query(&w, connect_rank(victim ? 1 : 0), HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(w.clients[w.nclients - 1]->nrows, 1);
	world_advance(&w, 4900);
	ck_assert_int_eq(state_of(victim), HC_W_domain_state_ACTIVE);
	world_advance(&w, 200);
	ck_assert_int_eq(state_of(victim), HC_W_domain_state_SUSPENDED);
	ck_assert_msg(strstr(world_record(&w, victim, id)->cause,
			     victim ? "node a, cannot be reached: not connected within 5000 ms"
				    : "node b cannot be reached: not connected within 5000 ms"),
		      "%s", world_record(&w, victim, id)->cause);
	lose_all();
	hold(false);
	meet(victim, other);
	meet(other, victim);
	world_settle(&w);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	all_die();
}
END_TEST

/* The home of a drain is killed, and its nodes come back one by one: the first is told that the
 * domain is suspended, and then that it is active. Nothing of the drain stays anywhere. */
START_TEST(nodes_come_back_one_by_one_after_a_drain)
{
	uint32_t i;

	nodes = 3;
	doing = DO_DRAIN;
	seed = 1;
	by = 0;
	formed();
	begin_doing();
	hold(false);
	world_settle(&w);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DRAINING);
	for (i = 1; i < nodes; i++)
		w.hold[0][i] = w.hold[i][0] = true;
	world_restart(&w, 0);
	lose_mail(0);
	rank[0].asks = false; /* nobody repeats the request */
	come_back(0);
	come_back(3);
	world_advance(&w, 6000);
	lose_mail(0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_SUSPENDED);
	for (i = 1; i < nodes; i++) {
		w.hold[0][i] = w.hold[i][0] = false;
		meet(0, i);
		meet(i, 0);
		world_settle(&w);
		ck_assert_int_eq(state_of(i),
				 i == 1 ? HC_W_domain_state_SUSPENDED : HC_W_domain_state_ACTIVE);
	}
	for (i = 0; i < nodes; i++) {
		ck_assert_int_eq(state_of(i), HC_W_domain_state_ACTIVE);
		ck_assert_msg(!world_record(&w, i, id)->cut, "node %u: only to collective %u", i,
			      (unsigned)world_record(&w, i, id)->cut);
	}
	all_die();
}
END_TEST

/* The other one comes back, and has lost what it had: its row says which incarnation it was. */
START_TEST(the_other_one_was_reborn_meanwhile)
{
	const uint32_t victim = (uint32_t)_i, other = !victim;

	nodes = 2;
	doing = DO_NOTHING;
	seed = 1;
	formed();
	w.hold[0][1] = w.hold[1][0] = true;
	world_restart(&w, victim);
	hc_away_back(w.core[victim], w.node_of[victim][other], 777);
	hc_again(w.core[victim], w.node_of[victim][other]);
	world_settle(&w);
	ck_assert_int_eq(state_of(victim), HC_W_domain_state_DAMAGED);
	ck_assert_msg(strstr(world_record(&w, victim, id)->cause, "began anew"), "%s",
		      world_record(&w, victim, id)->cause);
	/* the old one is heard of once more: it is damaged there as well */
	lose_all();
	hold(false);
	meet(other, victim);
	hc_again(w.core[victim], w.node_of[victim][other]);
	world_advance(&w, 1000);
	ck_assert_int_eq(state_of(other), HC_W_domain_state_DAMAGED);
	all_die();
}
END_TEST

/* Prepared, and the home is gone for longer than prepare_limit_s: what was reserved is given back,
 * also after a restart; and a home that had committed hears of it. */
START_TEST(prepared_and_the_home_does_not_come)
{
	const bool restarts = _i & 1, committed = _i & 2;
	uint32_t r;

	nodes = 2;
	doing = DO_JOIN;
	seed = 1;
	start();
	w.hold[0][1] = true;
	for (r = 0; r < RANKS; r++)
		join(r);
	while (strcmp(world_next_name(&w, 0, 1), "prepare") != 0)
		ck_assert(world_carry(&w, 0, 1));
	w.hold_store[0] = !committed;
	ck_assert(world_carry(&w, 0, 1));
	ck_assert_str_eq(world_next_name(&w, 0, 1), committed ? "commit" : "");
	hold(true);
	lose_all();
	if (restarts) {
		world_restart(&w, 1);
		rank[1].joins = rank[3].joins = false;
	}
	hc_away_gone(w.core[1], w.node_of[1][0], "no path to it is left");
	world_advance(&w, 12000);
	ck_assert_uint_eq(w.core[1]->nseats, 0);
	if (!restarts)
		ck_assert_int_eq(rank[1].cl->code, HC_E_PEER_LOST);
	lose_all();
	hold(false);
	meet(0, 1);
	meet(1, 0);
	world_advance(&w, 100);
	look();
	if (committed) {
		ck_assert_int_eq(rank[0].code, 0);
		ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
		ck_assert_msg(strstr(world_record(&w, 0, id)->cause,
				     "on node b, aborted: its node had given the domain up"),
			      "%s", world_record(&w, 0, id)->cause);
	}
	all_die();
}
END_TEST

/* Its home had committed, and the domain has ended since: that is what the ranks are told. */
START_TEST(prepared_and_it_is_over)
{
	uint32_t r;

	nodes = 2;
	doing = DO_DESTROY;
	seed = 1;
	start();
	w.hold[0][1] = true;
	for (r = 0; r < RANKS; r++)
		join(r);
	while (strcmp(world_next_name(&w, 0, 1), "commit") != 0)
		ck_assert(world_carry(&w, 0, 1));
	id = rank[0].cl->id;
	hold(true);
	lose_all();
	w.hold_store[0] = false;
	world_destroy(&w, rank[0].cl, id);
	world_advance(&w, 40000);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	world_restart(&w, 1);
	rank[1].cl = connect_rank(1);
	join(1); /* as its library does that was not answered */
	lose_all();
	hold(false);
	meet(0, 1);
	meet(1, 0);
	world_advance(&w, 100);
	ck_assert_int_eq(rank[1].cl->code, HC_E_GONE);
	ck_assert_uint_eq(rank[1].cl->event_kind, HC_W_event_code_DOMAIN_DESTROYED);
	ck_assert_uint_eq(w.core[1]->nseats, 0);
	all_die();
}
END_TEST

static void add(TCase *c)
{
	const int seeds = hc_long() ? 12 : 2;

	tcase_add_loop_test(c, killed_while_it_forms, 0, 4 * seeds);
	tcase_add_test(c, an_arrival_comes_twice);
	tcase_add_loop_test(c, killed_at_rest, 0, 8);
	tcase_add_loop_test(c, alone_after_the_start, 0, 2);
	tcase_add_test(c, nodes_come_back_one_by_one_after_a_drain);
	tcase_add_loop_test(c, the_other_one_was_reborn_meanwhile, 0, 2);
	tcase_add_loop_test(c, prepared_and_the_home_does_not_come, 0, 4);
	tcase_add_test(c, prepared_and_it_is_over);
	tcase_add_loop_test(c, killed_while_a_rank_leaves, 0, 8 * seeds);
	tcase_add_loop_test(c, killed_while_it_is_destroyed, 0, 8 * seeds);
	tcase_add_loop_test(c, killed_while_it_drains, 0, 8 * seeds);
	tcase_add_loop_test(c, killed_while_a_rank_aborts, 0, 8 * seeds);
}

int main(void)
{
	return hc_suite_run("core_again", add, 60);
}
