/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains from their rows after a restart.
 *
 * What was stored comes back as it was: id, epoch, slot, tag, members; ranks are detached and come
 * back with their block. What was not stored is as if it had not been. A row that cannot be is
 * said and left alone, and never hurts another one.
 */
#include "pages.h"
#include "state.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *cl[8];
static uint64_t id;

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

static uint64_t form(uint32_t nranks, uint32_t pid)
{
	uint32_t i;

	world_table(&t, nranks, 1);
	for (i = 0; i < nranks; i++)
		cl[i] = member(pid + i);
	for (i = 0; i < nranks; i++) {
		w.opt.shared = true;
		world_join_table(&w, cl[i], &t, i);
	}
	ck_assert_int_eq(cl[0]->code, 0);
	return cl[0]->id;
}

static void start(uint32_t nranks)
{
	world_start(&w, 1);
	id = form(nranks, 100);
	world_forget(&w);
}

static void end(void)
{
	world_end(&w);
}

static uint8_t state_of(uint64_t domain)
{
	const struct world_record *r = world_record(&w, 0, domain);

	return r ? r->state : HC_W_domain_state_NONE;
}

static struct hc_part *part_of(uint64_t domain)
{
	struct hc_core *c = w.core[0];
	uint32_t n = hc_index_find(&c->part_by_id, domain);

	return n == HC_NONE ? NULL : &c->parts[n];
}

static uint8_t seat_state(uint64_t domain, uint32_t rank)
{
	struct hc_part *p = part_of(domain);
	uint32_t i;

	for (i = 0; p && i < p->nseats; i++)
		if (w.core[0]->seats[p->seats + i].rank == rank)
			return w.core[0]->seats[p->seats + i].state;
	return 255;
}

static void all_die(void)
{
	world_die_all(&w);
	world_advance(&w, 20000);
}

/* ---- the same as before ---- */

START_TEST(comes_back_as_it_was)
{
	struct world_record before, after;
	uint32_t i;

	start(3);
	before = *world_record(&w, 0, id);
	world_restart(&w, 0);
	after = *world_record(&w, 0, id);
	ck_assert_uint_eq(after.state, HC_W_domain_state_ACTIVE);
	ck_assert_uint_eq(after.epoch, before.epoch);
	ck_assert_uint_gt(after.number, before.number);
	ck_assert_uint_eq(after.tag, before.tag);
	ck_assert_uint_eq(after.nranks, 3);
	ck_assert_uint_eq(after.uid, 1000);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(seat_state(id, i), HC_W_member_state_DETACHED);
	for (i = 0; i < 3; i++) {
		struct world_seat *s = world_seat(&w, id, i);
		uint32_t block = s->block;

		cl[i] = member(100 + i);
		world_come_back(&w, cl[i], id, i, block);
		ck_assert_int_eq(cl[i]->code, 0);
		ck_assert_uint_eq(world_seat(&w, id, i)->block, block);
		ck_assert_uint_eq(seat_state(id, i), HC_W_member_state_READY);
	}
	ck_assert_uint_eq(world_record(&w, 0, id)->number, after.number);
	for (i = 0; i < 3; i++) {
		world_leave(&w, cl[i], id, i);
		ck_assert_int_eq(cl[i]->code, 0);
	}
	all_die();
	world_check_empty(&w);
	end();
}
END_TEST

START_TEST(again_and_again)
{
	uint32_t i, k, number;

	start(2);
	number = world_record(&w, 0, id)->number;
	for (k = 0; k < 5; k++) {
		world_restart(&w, 0);
		for (i = 0; i < 2; i++) {
			cl[i] = member(100 + i);
			world_come_back(&w, cl[i], id, i, world_seat(&w, id, i)->block);
			ck_assert_int_eq(cl[i]->code, 0);
		}
		ck_assert_uint_eq(state_of(id), HC_W_domain_state_ACTIVE);
		ck_assert_uint_gt(world_record(&w, 0, id)->number, number);
		number = world_record(&w, 0, id)->number;
	}
	world_destroy(&w, cl[0], id);
	ck_assert_int_eq(cl[0]->code, 0);
	world_restart(&w, 0);
	ck_assert_ptr_null(part_of(id));
	all_die();
	end();
}
END_TEST

START_TEST(another_process_does_not_get_the_seat)
{
	start(2);
	world_restart(&w, 0);
	cl[0] = member(555);
	world_come_back(&w, cl[0], id, 0, 0);
	ck_assert_int_eq(cl[0]->code, HC_E_BUSY);
	all_die();
	end();
}
END_TEST

/* A block that another rank has, or none at all, is refused; then a new one is given. */
START_TEST(blocks_are_checked)
{
	uint64_t other;

	start(1);
	other = id;
	world_table(&t, 2, 1);
	t.ranks[0].device = 0;
	world_restart(&w, 0);
	cl[0] = member(100);
	world_come_back(&w, cl[0], other, 0, HC_ARENA_BLOCKS);
	ck_assert_int_eq(cl[0]->code, HC_E_INVALID);
	world_come_back(&w, cl[0], other, 0, 7);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_uint_eq(world_seat(&w, other, 0)->block, 7);
	/* that is stored: the next daemon looks there */
	world_restart(&w, 0);
	ck_assert_uint_eq(w.core[0]->seats[part_of(other)->seats].block, 7);
	all_die();
	end();
}
END_TEST

/* ---- what was not stored ---- */

START_TEST(a_commit_that_was_not_stored_has_not_been)
{
	world_start(&w, 1);
	world_table(&t, 1, 1);
	cl[0] = member(100);
	world_store_hold(&w, 0, true);
	w.opt.shared = true;
	world_join_table(&w, cl[0], &t, 0);
	ck_assert(world_waits(cl[0]));
	world_restart(&w, 0);
	w.hold_store[0] = false;
	ck_assert_uint_eq(w.core[0]->nseats, 0);
	/* the library asks again */
	cl[0] = member(100);
	w.opt.shared = true;
	world_join_table(&w, cl[0], &t, 0);
	ck_assert_int_eq(cl[0]->code, 0);
	all_die();
	end();
}
END_TEST

/* It was stored, and the answer was lost: the repeated request gets that very domain. */
START_TEST(a_lost_answer_is_given_again)
{
	start(2);
	world_restart(&w, 0);
	cl[1] = member(101);
	w.opt.shared = true;
	world_join_table(&w, cl[1], &t, 1);
	ck_assert_int_eq(cl[1]->code, 0);
	ck_assert_uint_eq(cl[1]->id, id);
	ck_assert_uint_eq(seat_state(id, 1), HC_W_member_state_READY);
	/* one that has come back and joins again wants another domain */
	w.opt.shared = true;
	world_join_table(&w, cl[1], &t, 1);
	ck_assert(world_waits(cl[1]));
	all_die();
	end();
}
END_TEST

START_TEST(a_lost_answer_of_all_local_devices_is_given_again)
{
	const uint32_t devices[2] = {0, 1};
	uint64_t first;

	world_start(&w, 1);
	cl[0] = member(100);
	world_join_local(&w, cl[0], devices, 2);
	first = cl[0]->id;
	world_restart(&w, 0);
	cl[0] = member(100);
	world_join_local(&w, cl[0], devices, 2);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_uint_eq(cl[0]->id, first);
	world_join_local(&w, cl[0], devices, 2);
	ck_assert_uint_ne(cl[0]->id, first);
	all_die();
	world_check_empty(&w);
	end();
}
END_TEST

/* A root info of the daemon before is good for all, or for none. */
START_TEST(a_root_info_of_the_daemon_before)
{
	static struct world_client root;

	world_start(&w, 1);
	cl[0] = member(100);
	world_root_info(&w, cl[0], 2);
	root = *cl[0];
	world_restart(&w, 0);
	cl[0] = member(100);
	cl[1] = member(101);
	w.opt.shared = true;
	world_join_root(&w, cl[0], &root, 2, 0);
	w.opt.shared = true;
	world_join_root(&w, cl[1], &root, 2, 1);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_int_eq(cl[1]->code, 0);
	ck_assert_uint_eq(cl[0]->id, cl[1]->id);
	all_die();
	end();
}
END_TEST

/* ---- deaths and departures ---- */

START_TEST(a_death_after_the_restart_is_told_once)
{
	start(3);
	world_restart(&w, 0);
	world_forget(&w);
	world_dead(&w, 0, 102);
	world_advance(&w, 1000);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DAMAGED);
	ck_assert_str_eq(world_record(&w, 0, id)->cause, "rank 2, pid 102 on node a, exited");
	/* who comes back later hears it then */
	cl[0] = member(100);
	world_come_back(&w, cl[0], id, 0, world_seat(&w, id, 0)->block);
	ck_assert_uint_eq(cl[0]->events, 1);
	ck_assert_uint_eq(cl[0]->event_kind, HC_W_event_code_RANK_DIED);
	ck_assert_uint_eq(cl[0]->event_rank, 2);
	ck_assert_uint_eq(cl[0]->event_pid, 102);
	/* it stays so over the next restart, and nobody is told again */
	world_restart(&w, 0);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DAMAGED);
	ck_assert_str_eq(world_record(&w, 0, id)->cause, "rank 2, pid 102 on node a, exited");
	ck_assert_uint_eq(seat_state(id, 2), HC_W_member_state_DEAD);
	all_die();
	end();
}
END_TEST

/* Killed when it had told the death and had not stored it. */
START_TEST(a_death_that_was_told_and_not_stored_is_found_again)
{
	struct world_record before, after;
	uint32_t k;

	start(3);
	world_store_hold(&w, 0, true);
	world_die(&w, cl[1]);
	ck_assert_uint_eq(cl[0]->event_kind, HC_W_event_code_RANK_DIED);
	before = *world_record(&w, 0, id);
	ck_assert_uint_eq(before.state, HC_W_domain_state_DAMAGED);
	for (k = 0; k < 2; k++) { /* the second time it has it from its row, or again not */
		world_restart(&w, 0);
		after = *world_record(&w, 0, id);
		ck_assert_uint_eq(after.state, HC_W_domain_state_DAMAGED);
		ck_assert_uint_gt(after.number, before.number);
		ck_assert_uint_eq(after.cause_kind, before.cause_kind);
		ck_assert_uint_eq(after.cause_rank, 1);
		ck_assert_uint_eq(after.cause_pid, 101);
		ck_assert_str_eq(after.cause, before.cause);
		ck_assert_uint_eq(seat_state(id, 1), HC_W_member_state_DEAD);
		before = after;
	}
	world_store_hold(&w, 0, false);
	cl[0] = member(100);
	world_come_back(&w, cl[0], id, 0, world_seat(&w, id, 0)->block);
	ck_assert_uint_eq(cl[0]->event_kind, HC_W_event_code_RANK_DIED);
	ck_assert_uint_eq(cl[0]->event_pid, 101);
	world_restart(&w, 0); /* stored by now */
	after = *world_record(&w, 0, id);
	ck_assert_uint_eq(after.state, HC_W_domain_state_DAMAGED);
	ck_assert_uint_eq(after.cause_kind, HC_W_event_code_RANK_DIED);
	ck_assert_uint_eq(after.cause_rank, 1);
	ck_assert_uint_eq(after.cause_pid, 101);
	ck_assert_str_eq(after.cause, before.cause);
	all_die();
	end();
}
END_TEST

START_TEST(nobody_is_left)
{
	start(2);
	world_restart(&w, 0);
	world_dead(&w, 0, 100);
	world_dead(&w, 0, 101);
	world_advance(&w, 100);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_advance(&w, 6000);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DESTROYED);
	world_restart(&w, 0);
	ck_assert_ptr_null(part_of(id));
	end();
}
END_TEST

/* The restart comes between the last death and the end that follows it. */
START_TEST(nobody_was_left)
{
	start(2);
	world_die(&w, cl[0]);
	world_die(&w, cl[1]);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_restart(&w, 0);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_advance(&w, 6000);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DESTROYED);
	world_check_empty(&w);
	end();
}
END_TEST

/* A rank left in order: the cut that closed the domain behind it holds after the restart. */
START_TEST(a_departure_keeps_its_cut)
{
	const struct world_record *r;

	start(3);
	world_ops(&w, id, 0, 5, 0);
	world_ops(&w, id, 1, 5, 0);
	world_ops(&w, id, 2, 4, 0);
	world_leave(&w, cl[0], id, 0);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DRAINING);
	world_restart(&w, 0);
	r = world_record(&w, 0, id);
	ck_assert_uint_eq(r->state, HC_W_domain_state_DRAINING);
	ck_assert_uint_eq(r->cut_set, HC_CUT_SET);
	ck_assert_uint_eq(r->cut, 5);
	ck_assert_uint_eq(seat_state(id, 0), HC_W_member_state_LEFT);
	cl[0] = member(100);
	world_come_back(&w, cl[0], id, 0, 0);
	ck_assert_int_eq(cl[0]->code, HC_E_GONE);
	cl[1] = member(101);
	world_come_back(&w, cl[1], id, 1, world_seat(&w, id, 1)->block);
	world_leave(&w, cl[1], id, 1);
	ck_assert_int_eq(cl[1]->code, 0);
	cl[2] = member(102);
	world_come_back(&w, cl[2], id, 2, world_seat(&w, id, 2)->block);
	world_leave(&w, cl[2], id, 2);
	ck_assert_int_eq(cl[2]->code, 0);
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_DESTROYED);
	all_die();
	world_check_empty(&w);
	end();
}
END_TEST

/* A leave that was not stored was not answered either. */
START_TEST(a_departure_that_was_not_stored)
{
	start(2);
	world_store_hold(&w, 0, true);
	world_leave(&w, cl[0], id, 0);
	ck_assert(world_waits(cl[0]));
	world_restart(&w, 0);
	w.hold_store[0] = false;
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_ACTIVE);
	ck_assert_uint_eq(seat_state(id, 0), HC_W_member_state_DETACHED);
	all_die();
	end();
}
END_TEST

/* ---- drains ---- */

START_TEST(a_drain_reads_the_arena_of_who_is_not_back)
{
	start(2);
	world_ops(&w, id, 0, 1, 1);
	world_ops(&w, id, 1, 1, 0);
	world_restart(&w, 0);
	cl[2] = member(300);
	world_destroy(&w, cl[2], id);
	world_advance(&w, 3000);
	ck_assert(world_waits(cl[2]));
	world_ops(&w, id, 0, 1, 0);
	world_advance(&w, 1500); /* the daemon's next look */
	ck_assert(!world_waits(cl[2]));
	ck_assert_int_eq(cl[2]->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(a_drain_waits_for_who_cannot_be_read)
{
	start(2);
	world_restart(&w, 0);
	w.arenas_lost = true;
	cl[2] = member(300);
	world_destroy(&w, cl[2], id);
	world_advance(&w, 3000);
	ck_assert(world_waits(cl[2]));
	world_dead(&w, 0, 100);
	world_advance(&w, 3000);
	ck_assert(world_waits(cl[2]));
	w.arenas_lost = false;
	cl[1] = member(101);
	world_come_back(&w, cl[1], id, 1, world_seat(&w, id, 1)->block);
	world_advance(&w, 1500);
	ck_assert(!world_waits(cl[2]));
	ck_assert_int_eq(cl[2]->code, 0);
	all_die();
	end();
}
END_TEST

/* ---- rows that cannot be ---- */

static void put(uint64_t domain, uint32_t slot, uint32_t nranks, uint32_t members, uint8_t state)
{
	static uint8_t list[65536], bytes[65536];
	struct hc_m_domain_row row = {.id = domain,
				      .epoch = 1,
				      .state = state,
				      .number = 4,
				      .uid = 1000,
				      .nranks = nranks,
				      .slot = slot,
				      .weight = 1};
	struct hc_m_member_row m = {.pid = 900, .started = 9000, .uid = 1000, .state = 1};
	size_t len;
	uint32_t i;

	for (i = 0; i < members; i++) {
		m.rank = m.device = m.block = i;
		ck_assert(!hc_arr_put(&row.members, list, sizeof(list), &hc_desc_member_row,
				      HC_PROTO_MAX, &m));
	}
	ck_assert(!hc_encode(&hc_desc_domain_row, HC_PROTO_MAX, &row, bytes, sizeof(bytes), &len));
	world_put_row(&w, 0, domain, bytes, (uint32_t)len);
}

static void want_kept_out(uint64_t domain, const char *why)
{
	w.show |= SHOW_LOG;
	world_restart(&w, 0);
	ck_assert_msg(world_said(&w, why), "'%s' was not said: %s", why, w.text ? w.text : "");
	ck_assert_ptr_null(part_of(domain));
	/* and the good one beside it is there */
	ck_assert_uint_eq(state_of(id), HC_W_domain_state_ACTIVE);
	ck_assert_uint_eq(seat_state(id, 1), HC_W_member_state_DETACHED);
	all_die();
	end();
}

START_TEST(garbage)
{
	start(2);
	world_put_row(&w, 0, 77, "no row", 6);
	world_put_row(&w, 0, 78, "", 0);
	want_kept_out(77, "its row is malformed");
}
END_TEST

START_TEST(the_slot_of_another)
{
	start(2);
	put(77, (uint32_t)(world_record(&w, 0, id) - w.records[0]), 2, 2, HC_W_domain_state_ACTIVE);
	want_kept_out(77, "the slot of its record is taken");
}
END_TEST

START_TEST(a_slot_beyond_the_limit)
{
	start(2);
	put(77, w.limits.domains, 2, 2, HC_W_domain_state_ACTIVE);
	want_kept_out(77, "above domains_max");
}
END_TEST

START_TEST(too_many_ranks)
{
	start(2);
	put(77, 9, w.limits.ranks_per_domain + 1, w.limits.ranks_per_domain + 1,
	    HC_W_domain_state_ACTIVE);
	want_kept_out(77, "its number of ranks is above the limit");
}
END_TEST

START_TEST(members_are_missing)
{
	start(2);
	put(77, 9, 3, 2, HC_W_domain_state_ACTIVE);
	want_kept_out(77, "its members are not all there");
}
END_TEST

START_TEST(a_state_that_is_not_stored)
{
	start(2);
	put(77, 9, 2, 2, HC_W_domain_state_FORMING);
	want_kept_out(77, "its state is none that is stored");
}
END_TEST

START_TEST(no_id)
{
	start(2);
	put(0, 9, 2, 2, HC_W_domain_state_ACTIVE);
	want_kept_out(0, "its id is taken");
}
END_TEST

/* More rows than ranks_max holds: those that fit come back, and their ranks are whole. */
START_TEST(the_limit_of_ranks)
{
	uint32_t i, back = 0;

	world_start(&w, 1);
	for (i = 0; i < 8; i++)
		put(70 + i, i, 64, 64, HC_W_domain_state_ACTIVE);
	w.show |= SHOW_LOG;
	world_restart(&w, 0);
	for (i = 0; i < 8; i++)
		back += part_of(70 + i) != NULL;
	ck_assert_uint_eq(back, 4); /* 256 / 64 */
	ck_assert_uint_eq(w.core[0]->nseats, 256);
	ck_assert(world_said(&w, "is not taken back"));
	world_check(&w, 0);
	end();
}
END_TEST

/* One row that names more processes than fit among the actions of a step. */
START_TEST(a_domain_of_many_processes)
{
	enum { PROCESSES = 700 };
	struct world_client *first = NULL, *c;
	struct hc_limits limits;
	struct hc_settings settings;
	uint32_t i;

	world_defaults(&limits, &settings);
	limits.sessions = 1024;
	limits.ranks = 4096;
	limits.ranks_per_domain = 1024;
	world_start_with(&w, 1, &limits, &settings, 8, 1);
	w.quiet_checks = true;
	for (i = 0; i < PROCESSES; i++) {
		c = member(100 + i);
		if (!i)
			world_root_info(&w, first = c, PROCESSES);
		w.opt.shared = true;
		w.opt.device = i % 8;
		world_join_root(&w, c, first, PROCESSES, i);
		ck_assert_msg(world_waits(c) || i == PROCESSES - 1, "%u: %s", i, c->text);
	}
	ck_assert_int_eq(first->code, 0);
	id = first->id;
	ck_assert_uint_eq(w.watches, 0);
	world_restart(&w, 0);
	ck_assert_uint_eq(w.watches, PROCESSES);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(seat_state(id, PROCESSES - 1), HC_W_member_state_DETACHED);
	world_dead(&w, 0, 100 + PROCESSES - 1);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_check(&w, 0);
	end();
}
END_TEST

static void add(TCase *t_)
{
	tcase_add_test(t_, comes_back_as_it_was);
	tcase_add_test(t_, again_and_again);
	tcase_add_test(t_, another_process_does_not_get_the_seat);
	tcase_add_test(t_, blocks_are_checked);
	tcase_add_test(t_, a_commit_that_was_not_stored_has_not_been);
	tcase_add_test(t_, a_lost_answer_is_given_again);
	tcase_add_test(t_, a_lost_answer_of_all_local_devices_is_given_again);
	tcase_add_test(t_, a_root_info_of_the_daemon_before);
	tcase_add_test(t_, a_death_after_the_restart_is_told_once);
	tcase_add_test(t_, a_death_that_was_told_and_not_stored_is_found_again);
	tcase_add_test(t_, nobody_is_left);
	tcase_add_test(t_, nobody_was_left);
	tcase_add_test(t_, a_departure_keeps_its_cut);
	tcase_add_test(t_, a_departure_that_was_not_stored);
	tcase_add_test(t_, a_drain_reads_the_arena_of_who_is_not_back);
	tcase_add_test(t_, a_drain_waits_for_who_cannot_be_read);
	tcase_add_test(t_, garbage);
	tcase_add_test(t_, the_slot_of_another);
	tcase_add_test(t_, a_slot_beyond_the_limit);
	tcase_add_test(t_, too_many_ranks);
	tcase_add_test(t_, members_are_missing);
	tcase_add_test(t_, a_state_that_is_not_stored);
	tcase_add_test(t_, no_id);
	tcase_add_test(t_, the_limit_of_ranks);
	tcase_add_test(t_, a_domain_of_many_processes);
}

int main(void)
{
	return hc_suite_run("core_restore", add, 30);
}
