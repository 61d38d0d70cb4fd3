/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a domain on one node: deaths, ranks that leave, drains, ends.
 *
 * A death is told to every other rank with rank, process and node. A destroy waits for what runs,
 * up to the cut and no longer than its limit, and never for another domain. The last lines of the
 * tests see that nothing is left behind.
 */
#include "pages.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *cl[8];
static uint64_t id; /* of the domain that form() made */

static void end(void)
{
	world_end(&w);
}

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

/* Processes 100.. form a domain, a rank each. */
static uint64_t form(uint32_t nranks, uint32_t pid, struct world_client **who)
{
	uint32_t i;

	world_table(&t, nranks, 1);
	for (i = 0; i < nranks; i++)
		who[i] = member(pid + i);
	for (i = 0; i < nranks; i++) {
		w.opt.shared = true;
		world_join_table(&w, who[i], &t, i);
	}
	ck_assert_int_eq(who[0]->code, 0);
	ck_assert(who[0]->id);
	world_forget(&w);
	return who[0]->id;
}

static void start(uint32_t nranks)
{
	world_start(&w, 1);
	id = form(nranks, 100, cl);
}

static void all_die(void)
{
	world_die_all(&w);
	world_advance(&w, 40000);
	world_check_empty(&w);
}

static uint8_t state_of(uint64_t domain)
{
	return world_record(&w, 0, domain)->state;
}

/* ---- death ---- */

START_TEST(a_death_is_told_to_all_others)
{
	start(3);
	world_advance(&w, 100);
	world_die(&w, cl[1]);
	ck_transcript(&w,
		      "[  100ms] a 100 hears rank-died, DAMAGED (rank 1, pid 101, node a): rank 1, "
		      "pid 101 on node a, exited\n"
		      "[  100ms] a 102 hears rank-died, DAMAGED (rank 1, pid 101, node a): rank 1, "
		      "pid 101 on node a, exited\n");
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_rank, 1);
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_pid, 101);
	world_status(&w, cl[0], id);
	ck_assert_str_eq(cl[0]->text, "rank 1, pid 101 on node a, exited");
	all_die();
	end();
}
END_TEST

START_TEST(several_deaths_are_each_told)
{
	start(5);
	world_store_hold(&w, 0, true); /* the second and third come while the first is stored */
	world_die(&w, cl[3]);
	ck_assert(world_said(&w, "a 100 hears rank-died, DAMAGED (rank 3, pid 103, node a)"));
	world_forget(&w);
	world_die(&w, cl[1]);
	world_die(&w, cl[2]);
	ck_transcript(&w, "");
	world_store_hold(&w, 0, false);
	ck_assert(world_said(&w, "a 100 hears rank-died, DAMAGED (rank 1, pid 101, node a)"));
	ck_assert(world_said(&w, "a 100 hears rank-died, DAMAGED (rank 2, pid 102, node a)"));
	ck_assert(world_said(&w, "a 104 hears rank-died, DAMAGED (rank 2, pid 102, node a)"));
	ck_assert_uint_eq(cl[0]->events, 4); /* ACTIVE, and three deaths */
	world_status(&w, cl[0], id);
	ck_assert_str_eq(cl[0]->text, "rank 3, pid 103 on node a, exited"); /* the first cause */
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_rank, 3);
	all_die();
	end();
}
END_TEST

/* A process that aborts lives on, and a rank that left may too: no kernel would say it again. */
START_TEST(only_a_death_is_told_before_it_is_stored)
{
	start(4);
	world_store_hold(&w, 0, true);
	world_abort(&w, cl[3], id, 3, "loss is NaN");
	world_die(&w, cl[2]); /* behind the abort, which is the first cause */
	ck_transcript(&w, "[    0ms] a 103 abort: done\n");
	ck_assert_int_eq(state_of(id), HC_W_domain_state_ACTIVE);
	world_store_hold(&w, 0, false);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_kind, HC_W_event_code_RANK_ABORTED);
	/* the first cause is stored: what comes now is told at once */
	world_store_hold(&w, 0, true);
	world_die(&w, cl[1]);
	ck_assert(world_said(&w, "a 100 hears rank-died, DAMAGED (rank 1, pid 101, node a)"));
	world_store_hold(&w, 0, false);
	all_die();
	end();
}
END_TEST

START_TEST(the_first_cause_stays)
{
	start(4);
	world_die(&w, cl[1]);
	world_die(&w, cl[3]);
	ck_assert_uint_eq(cl[0]->event_rank, 3);
	ck_assert_str_eq(cl[0]->event_text, "rank 3, pid 103 on node a, exited");
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_rank, 1);
	ck_assert_str_eq(world_record(&w, 0, id)->cause, "rank 1, pid 101 on node a, exited");
	all_die();
	end();
}
END_TEST

START_TEST(nobody_is_left)
{
	start(2);
	world_die(&w, cl[0]);
	world_die(&w, cl[1]);
	world_advance(&w, 4900);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_advance(&w, 200);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DESTROYED);
	cl[2] = member(200);
	world_status(&w, cl[2], id);
	ck_assert_str_eq(cl[2]->text, "no member alive; rank 0, pid 100 on node a, exited");
	all_die();
	end();
}
END_TEST

/* A connection is not a process: the rank stays, and its process comes back to it. */
START_TEST(detached_and_back)
{
	start(2);
	world_lose(&w, cl[1]);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_ACTIVE);
	world_attach(&w, cl[0], id, 1);
	ck_assert_int_eq(cl[0]->code, HC_E_BUSY);
	cl[1] = member(101);
	world_attach(&w, cl[1], id, 1);
	ck_assert_int_eq(cl[1]->code, 0);
	world_leave(&w, cl[1], id, 1);
	ck_assert_int_eq(cl[1]->code, 0);
	world_attach(&w, cl[1], id, 1);
	ck_assert_int_eq(cl[1]->code, HC_E_GONE);
	all_die();
	end();
}
END_TEST

START_TEST(abort_tells_why)
{
	start(3);
	world_abort(&w, cl[2], id, 1, "not mine");
	ck_assert_int_eq(cl[2]->code, HC_E_PERMISSION);
	world_forget(&w);
	world_abort(&w, cl[2], id, 2, "loss is \x1b[31mNaN");
	ck_assert_int_eq(cl[2]->code, 0);
	ck_assert_int_eq(cl[0]->event_kind, HC_W_event_code_RANK_ABORTED);
	ck_assert_uint_eq(cl[0]->event_pid, 102);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_abort(&w, cl[2], id, 2, "again");
	ck_assert_int_eq(cl[2]->code, HC_E_PERMISSION);
	all_die();
	end();
}
END_TEST

/* ---- leave ---- */

START_TEST(the_last_one_out_ends_the_domain)
{
	start(3);
	world_ops(&w, id, 0, 7, 0);
	world_ops(&w, id, 1, 7, 0);
	world_ops(&w, id, 2, 6, 1);
	world_leave(&w, cl[0], id, 0);
	ck_assert_int_eq(cl[0]->code, 0);
	/* what rank 0 did not begin can never complete: the cut is behind its last one */
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DRAINING);
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 7);
	ck_assert_int_eq(world_record(&w, 0, id)->cut_set, HC_CUT_SET);
	world_leave(&w, cl[1], id, 1);
	ck_assert_int_eq(cl[1]->code, 0);
	world_leave(&w, cl[2], id, 2);
	ck_assert(world_waits(cl[2])); /* its own reference */
	world_ops(&w, id, 2, 7, 0);
	world_ops_ended(&w, cl[2], id);
	ck_assert(!world_waits(cl[2]));
	ck_assert_int_eq(cl[2]->code, 0);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DESTROYED);
	world_status(&w, cl[0], id);
	ck_assert_str_eq(cl[0]->text, "all ranks left");
	world_leave(&w, cl[0], id, 0);
	ck_assert_int_eq(cl[0]->code, HC_E_GONE);
	all_die();
	end();
}
END_TEST

START_TEST(leave_is_forced_at_its_deadline)
{
	start(2);
	world_ops(&w, id, 1, 42, 1);
	w.opt.timeout_ms = 1500;
	world_leave(&w, cl[1], id, 1);
	world_advance(&w, 1400);
	ck_assert(world_waits(cl[1]));
	world_advance(&w, 100);
	ck_assert_int_eq(cl[1]->code, HC_E_FORCED);
	ck_assert_str_eq(cl[1]->text,
			 "rank 1 left by force: 1 reference left, the last all_reduce #42");
	all_die();
	end();
}
END_TEST

/* The deadline passes while the counters are being read: no busy wait, then the answer. */
START_TEST(leave_at_its_deadline_waits_for_the_sample)
{
	uint64_t steps;

	start(2);
	world_ops(&w, id, 1, 42, 1);
	w.opt.timeout_ms = 500;
	world_leave(&w, cl[1], id, 1);
	w.hold_scan = true;
	world_advance(&w, 900);
	steps = w.steps;
	world_advance(&w, 50);
	ck_assert_uint_eq(w.steps, steps);
	w.hold_scan = false;
	world_settle(&w);
	ck_assert_int_eq(cl[1]->code, HC_E_FORCED);
	all_die();
	end();
}
END_TEST

START_TEST(death_after_a_leave_is_a_damage)
{
	start(3);
	world_leave(&w, cl[0], id, 0);
	world_die(&w, cl[1]);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_leave(&w, cl[2], id, 2);
	world_advance(&w, 5100);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

/* ---- destroy ---- */

START_TEST(destroy_waits_for_the_cut)
{
	start(3);
	w.show |= SHOW_RECORDS;
	world_ops(&w, id, 0, 10, 1);
	world_ops(&w, id, 1, 12, 1);
	world_ops(&w, id, 2, 11, 0);
	world_destroy(&w, cl[0], id);
	ck_assert(world_waits(cl[0]));
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 12);
	world_ops(&w, id, 0, 12, 0);
	world_ops_ended(&w, cl[0], id);
	world_ops(&w, id, 2, 12, 0);
	world_ops_ended(&w, cl[2], id);
	ck_assert(world_waits(cl[0]));
	world_ops(&w, id, 1, 12, 0);
	world_ops_ended(&w, cl[1], id); /* the last one: at once, not at the next scan */
	ck_transcript(&w,
		      "[    0ms] a record 0: DRAINING, fenced\n"
		      "[    0ms] a 100 hears domain-draining, DRAINING: destroyed by uid 1000\n"
		      "[    0ms] a 101 hears domain-draining, DRAINING: destroyed by uid 1000\n"
		      "[    0ms] a 102 hears domain-draining, DRAINING: destroyed by uid 1000\n"
		      "[    0ms] a record 0: DRAINING, cut 12\n"
		      "[    0ms] a record 0: DRAINING, cut 12, closed\n"
		      "[    0ms] a record 0: DESTROYED, cut 12, closed\n"
		      "[    0ms] a 100 hears domain-destroyed, DESTROYED: destroyed by uid 1000\n"
		      "[    0ms] a 101 hears domain-destroyed, DESTROYED: destroyed by uid 1000\n"
		      "[    0ms] a 102 hears domain-destroyed, DESTROYED: destroyed by uid 1000\n"
		      "[    0ms] a 100 destroy: done: destroyed by uid 1000\n");
	world_destroy(&w, cl[1], id);
	ck_assert_int_eq(cl[1]->code, HC_E_GONE);
	all_die();
	end();
}
END_TEST

START_TEST(forced_text_names_rank_and_operation)
{
	uint32_t i;

	start(4);
	for (i = 0; i < 4; i++)
		world_ops(&w, id, i, 1042, i == 2);
	world_destroy(&w, cl[0], id);
	world_advance(&w, 29999);
	ck_assert(world_waits(cl[0]));
	world_forget(&w);
	w.show = SHOW_REPLIES;
	world_advance(&w, 1);
	ck_transcript(&w,
		      "[30000ms] a 100 destroy: refused FORCED: forced, 1 reference left: rank 2, "
		      "pid 102, all_reduce #1042, running for at least 29 s\n");
	world_status(&w, cl[1], id);
	ck_assert_int_eq(cl[1]->state, HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

START_TEST(forced_at_the_callers_limit)
{
	start(2);
	world_ops(&w, id, 0, 5, 3);
	world_ops(&w, id, 1, 5, 0);
	w.opt.timeout_ms = 2000;
	world_destroy(&w, cl[1], id);
	world_advance(&w, 2000);
	ck_assert_int_eq(cl[1]->code, HC_E_FORCED);
	ck_assert_str_eq(cl[1]->text, "forced, 3 references left: rank 0, pid 100, all_reduce #5, "
				      "running for at least 1 s");
	all_die();
	end();
}
END_TEST

/* Nothing runs, but a rank has not begun what another began: it is waited for, and named. */
START_TEST(forced_because_the_cut_is_not_reached)
{
	start(2);
	world_ops(&w, id, 0, 5, 0);
	world_ops(&w, id, 1, 4, 0);
	world_destroy(&w, cl[1], id);
	world_advance(&w, 30000);
	ck_assert_int_eq(cl[1]->code, HC_E_FORCED);
	ck_assert_str_eq(cl[1]->text,
			 "forced: not every rank reached collective #5, that another had begun");
	all_die();
	end();
}
END_TEST

/* A reference of a dead process counts as returned, and nobody waits for its cut. */
START_TEST(destroy_while_damaged)
{
	start(4);
	world_ops(&w, id, 0, 3, 0);
	world_ops(&w, id, 2, 4, 1);
	world_die(&w, cl[2]);
	world_destroy(&w, cl[0], id);
	ck_assert(!world_waits(cl[0]));
	ck_assert_int_eq(cl[0]->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(death_during_the_drain_ends_it)
{
	start(3);
	world_ops(&w, id, 0, 3, 0);
	world_ops(&w, id, 1, 4, 1);
	world_ops(&w, id, 2, 3, 0);
	world_destroy(&w, cl[0], id);
	world_advance(&w, 700);
	ck_assert(world_waits(cl[0]));
	world_forget(&w);
	world_die(&w, cl[1]);
	ck_assert(!world_waits(cl[0]));
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert(world_said(&w, "a 102 hears rank-died, DRAINING (rank 1, pid 101, node a)"));
	all_die();
	end();
}
END_TEST

/* What a detached rank holds is still read in its arena. */
START_TEST(detached_holds_the_drain_up)
{
	start(2);
	world_ops(&w, id, 0, 1, 0);
	world_ops(&w, id, 1, 1, 1);
	world_lose(&w, cl[1]);
	world_destroy(&w, cl[0], id);
	world_advance(&w, 5000);
	ck_assert(world_waits(cl[0]));
	world_die(&w, cl[1]);
	ck_assert(!world_waits(cl[0]));
	ck_assert_int_eq(cl[0]->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(detached_is_named_when_forced)
{
	start(2);
	world_advance(&w, 500000); /* its age does not begin at the start of the machine */
	w.arenas_lost = true;      /* counts as one reference until it is back or dead */
	world_lose(&w, cl[1]);
	world_destroy(&w, cl[0], id);
	world_advance(&w, 30000);
	ck_assert_int_eq(cl[0]->code, HC_E_FORCED);
	ck_assert_msg(strstr(cl[0]->text, "2 references left: rank 0, pid 100") &&
			      strstr(cl[0]->text, "at least 29 s"),
		      "%s", cl[0]->text);
	all_die();
	end();
}
END_TEST

START_TEST(destroy_while_forming)
{
	struct world_client *owner;

	world_start(&w, 1);
	world_table(&t, 2, 1);
	cl[0] = member(100);
	owner = member(50);
	w.opt.name = "forming";
	world_join_table(&w, cl[0], &t, 0);
	w.opt.name = "forming";
	world_destroy(&w, owner, 0);
	w.show = SHOW_REPLIES;
	ck_assert_int_eq(owner->code, 0);
	ck_assert_int_eq(cl[0]->code, HC_E_GONE);
	ck_assert_str_eq(cl[0]->text, "destroyed by uid 1000 while it formed");
	world_check_empty(&w);
	end();
}
END_TEST

/* While the row of the commit is on its way: answered when it is gone, not when it is made. */
START_TEST(destroy_while_committing)
{
	struct world_client *owner;
	uint64_t of;

	world_start(&w, 1);
	owner = member(50);
	w.opt.name = "early";
	world_create(&w, owner, 1);
	of = owner->value;
	world_add_device(&w, owner, of, 0, 1);
	cl[0] = member(51);
	world_store_hold(&w, 0, true);
	world_activate(&w, owner, of);
	world_destroy(&w, cl[0], of);
	ck_assert(world_waits(owner) && world_waits(cl[0]));
	w.hold_store[0] = false;
	world_settle(&w);
	ck_assert_int_eq(owner->code, 0); /* it was activated */
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert(!world_waits(cl[0]));
	ck_assert_int_eq(state_of(of), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

START_TEST(activation_that_a_destroy_overtakes_has_failed)
{
	struct world_client *agent, *owner;
	uint64_t of;

	world_start(&w, 1);
	agent = member(50);
	owner = member(51);
	world_create(&w, agent, 2);
	of = agent->value;
	world_add_device(&w, agent, of, 0, 1);
	world_destroy(&w, owner, of);
	ck_assert_int_eq(owner->code, 0);
	world_activate(&w, agent, of);
	ck_assert_int_eq(agent->code, HC_E_NOT_FOUND);
	all_die();
	end();
}
END_TEST

START_TEST(two_destroyers_are_both_answered)
{
	start(2);
	world_ops(&w, id, 0, 1, 1);
	world_ops(&w, id, 1, 1, 0);
	world_destroy(&w, cl[0], id);
	world_destroy(&w, cl[1], id);
	ck_assert(world_waits(cl[0]) && world_waits(cl[1]));
	world_ops(&w, id, 0, 1, 0);
	world_ops_ended(&w, cl[0], id);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_int_eq(cl[1]->code, 0);
	ck_assert(!world_waits(cl[0]) && !world_waits(cl[1]));
	all_die();
	end();
}
END_TEST

/* More waiters than one step can answer. */
START_TEST(a_thousand_destroyers)
{
	struct world_client *c;
	struct hc_limits lim;
	struct hc_settings set;
	const uint32_t device = 0;
	uint32_t i;

	world_defaults(&lim, &set);
	world_start_with(&w, 1, &lim, &set, 8, 1);
	c = member(100);
	world_join_local(&w, c, &device, 1);
	world_ops(&w, c->id, 0, 1, 1);
	w.show = 0;
	for (i = 0; i < 570; i++)
		world_destroy(&w, c, c->id);
	ck_assert_uint_eq(c->nwaits, 570);
	world_ops(&w, c->id, 0, 1, 0);
	world_ops_ended(&w, c, c->id);
	ck_assert_uint_eq(c->nwaits, 0);
	ck_assert_int_eq(c->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(a_thousand_leave_requests)
{
	struct world_client *c;
	const uint32_t device = 0;
	uint32_t i;

	world_start(&w, 1);
	c = member(100);
	world_join_local(&w, c, &device, 1);
	world_ops(&w, c->id, 0, 1, 1);
	w.show = 0;
	for (i = 0; i < 1000; i++)
		world_leave(&w, c, c->id, 0);
	ck_assert_uint_eq(c->nwaits, 1000);
	world_ops(&w, c->id, 0, 1, 0);
	world_ops_ended(&w, c, c->id);
	ck_assert_uint_eq(c->nwaits, 0);
	all_die();
	end();
}
END_TEST

/* The drain of one domain does not hold up another, in any order of four. */
START_TEST(one_destroy_never_waits_for_another)
{
	struct world_client *c;
	const uint32_t device = 0;
	uint64_t d[4], next;
	uint32_t order, i, k, left;

	for (order = 0; order < 24; order++) {
		world_start(&w, 1);
		c = member(100);
		for (i = 0; i < 4; i++) {
			world_join_local(&w, c, &device, 1);
			d[i] = c->id;
			world_ops(&w, d[i], 0, 1, 1);
		}
		for (i = 0; i < 4; i++)
			world_destroy(&w, c, d[i]);
		for (i = 0, left = order; i < 4; left /= 4 - i, i++) {
			k = i + left % (4 - i);
			next = d[k];
			d[k] = d[i];
			d[i] = next;
			ck_assert_uint_eq(c->nwaits, 4 - i);
			world_ops(&w, next, 0, 1, 0);
			world_ops_ended(&w, c, next);
			ck_assert_uint_eq(c->nwaits, 3 - i);
			ck_assert_int_eq(state_of(next), HC_W_domain_state_DESTROYED);
		}
		world_end(&w);
	}
}
END_TEST

START_TEST(who_may_destroy)
{
	struct world_client *other, *admin;

	start(2);
	other = world_client(&w, 0, 300, 2000, HC_W_role_MEMBER);
	admin = world_client(&w, 0, 301, 0, HC_W_role_ADMIN);
	world_destroy(&w, other, id);
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_ACTIVE);
	world_destroy(&w, admin, id);
	ck_assert_int_eq(admin->code, 0);
	w.opt.name = "by-name";
	world_root_info(&w, cl[0], 2);
	w.opt.name = "by-name";
	world_destroy(&w, other, 0);
	ck_assert_int_eq(other->code, HC_E_NOT_FOUND);
	w.opt.name = "by-name";
	world_destroy(&w, admin, 0);
	ck_assert_int_eq(admin->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(reasons_are_kept_for_a_time)
{
	struct world_client *c;
	const uint32_t device = 0;

	world_start(&w, 1);
	c = member(100);
	w.opt.name = "kept";
	world_join_local(&w, c, &device, 1);
	id = c->id;
	world_destroy(&w, c, id);
	world_advance(&w, 3599999);
	world_status(&w, c, id);
	ck_assert_int_eq(c->state, HC_W_domain_state_DESTROYED);
	world_query(&w, c, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(c->nrows, 1);
	world_destroy(&w, c, id);
	ck_assert_int_eq(c->code, HC_E_GONE);
	world_advance(&w, 1);
	world_status(&w, c, id);
	ck_assert_int_eq(c->code, HC_E_NOT_FOUND);
	w.opt.name = "kept";
	world_status(&w, c, 0);
	ck_assert_int_eq(c->code, HC_E_NOT_FOUND);
	world_query(&w, c, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(c->nrows, 0);
	end();
}
END_TEST

/* ---- events ---- */

START_TEST(subscribers_hear_what_is_theirs)
{
	struct world_client *mine, *other, *admin, *one;
	const uint32_t device = 7;
	uint64_t first;

	start(2);
	mine = member(200);
	other = world_client(&w, 0, 201, 2000, HC_W_role_MEMBER);
	admin = world_client(&w, 0, 202, 0, HC_W_role_ADMIN);
	one = member(203);
	first = id;
	world_subscribe(&w, mine, 0, true);
	world_subscribe(&w, other, 0, true);
	world_subscribe(&w, admin, 0, true);
	world_subscribe(&w, one, first, true);
	world_subscribe(&w, one, 12345, true);
	ck_assert_int_eq(one->code, HC_E_NOT_FOUND);
	world_destroy(&w, cl[0], first);
	ck_assert_uint_eq(mine->events, 2); /* draining, destroyed */
	ck_assert_uint_eq(admin->events, 2);
	ck_assert_uint_eq(one->events, 2);
	ck_assert_uint_eq(other->events, 0);
	/* the record's slot is taken by another domain: that was not asked for */
	world_join_local(&w, cl[0], &device, 1);
	ck_assert_uint_eq(one->events, 2);
	world_subscribe(&w, mine, 0, false);
	world_destroy(&w, cl[0], cl[0]->id);
	ck_assert_uint_eq(one->events, 2);
	ck_assert_uint_eq(mine->events, 3);
	all_die();
	end();
}
END_TEST

/* One process after the other is killed: each time only what was its own goes. */
START_TEST(one_clients_end_hurts_nobody)
{
	struct world_client *c[20];
	const uint32_t device = 0;
	uint64_t d[20];
	uint32_t i, k;

	world_start(&w, 1);
	for (i = 0; i < 20; i++) {
		c[i] = member(100 + i);
		w.opt.shared = true;
		world_join_local(&w, c[i], &device, 1);
		d[i] = c[i]->id;
		world_ops(&w, d[i], 0, i, 1);
	}
	for (i = 0; i < 20; i++) {
		world_forget(&w);
		world_die(&w, c[i * 7 % 20]);
		ck_transcript(&w, "");
		for (k = i + 1; k < 20; k++)
			ck_assert_int_eq(state_of(d[k * 7 % 20]), HC_W_domain_state_ACTIVE);
	}
	all_die();
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, a_death_is_told_to_all_others);
	tcase_add_test(c, several_deaths_are_each_told);
	tcase_add_test(c, only_a_death_is_told_before_it_is_stored);
	tcase_add_test(c, the_first_cause_stays);
	tcase_add_test(c, nobody_is_left);
	tcase_add_test(c, detached_and_back);
	tcase_add_test(c, abort_tells_why);
	tcase_add_test(c, the_last_one_out_ends_the_domain);
	tcase_add_test(c, leave_is_forced_at_its_deadline);
	tcase_add_test(c, leave_at_its_deadline_waits_for_the_sample);
	tcase_add_test(c, death_after_a_leave_is_a_damage);
	tcase_add_test(c, destroy_waits_for_the_cut);
	tcase_add_test(c, forced_text_names_rank_and_operation);
	tcase_add_test(c, forced_at_the_callers_limit);
	tcase_add_test(c, forced_because_the_cut_is_not_reached);
	tcase_add_test(c, destroy_while_damaged);
	tcase_add_test(c, death_during_the_drain_ends_it);
	tcase_add_test(c, detached_holds_the_drain_up);
	tcase_add_test(c, detached_is_named_when_forced);
	tcase_add_test(c, destroy_while_forming);
	tcase_add_test(c, destroy_while_committing);
	tcase_add_test(c, activation_that_a_destroy_overtakes_has_failed);
	tcase_add_test(c, two_destroyers_are_both_answered);
	tcase_add_test(c, a_thousand_destroyers);
	tcase_add_test(c, a_thousand_leave_requests);
	tcase_add_test(c, one_destroy_never_waits_for_another);
	tcase_add_test(c, who_may_destroy);
	tcase_add_test(c, reasons_are_kept_for_a_time);
	tcase_add_test(c, subscribers_hear_what_is_theirs);
	tcase_add_test(c, one_clients_end_hurts_nobody);
}

int main(void)
{
	return hc_suite_run("core_life", add, 60);
}
