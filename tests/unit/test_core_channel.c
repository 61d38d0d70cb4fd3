/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of a core: asked for, paired, waited for, refused, opened, ended.
 *
 * Two links: "hccs:0-1" of 1,000 MB/s, of which 800 can be granted each way, and "shm" between any
 * two ranks. The world looks after each step whether what channels hold is what the admission has
 * given, what users are charged, and what the registers say.
 */
#include "suite.h"
#include "world.h"

#include "pages.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *rank[4];
static uint64_t domain;

static const struct hc_link_fact shm = {.type = HC_W_link_type_SHM,
					.a = HC_NONE,
					.b = HC_NONE,
					.mbps = 10000,
					.vcs = 64,
					.present = true,
					.latency_us = 3};
static const struct hc_link_fact hccs = {
	.type = HC_W_link_type_HCCS, .a = 0, .b = 1, .mbps = 1000, .vcs = 8, .present = true};

/* A domain of n ranks, a process each, rank i on device i. */
static void join_all(uint32_t n, uint32_t pid, uint8_t class, struct world_client **cl)
{
	uint32_t i;

	world_table(&t, n, 1);
	for (i = 0; i < n; i++) {
		cl[i] = world_client(&w, 0, pid + i, 1000, HC_W_role_MEMBER);
		w.opt.shared = true;
		w.opt.priority = class;
		w.opt.weight = 1;
		w.opt.name = class ? "high" : "low";
		world_join_table(&w, cl[i], &t, i);
	}
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_int_eq(cl[n - 1]->code, 0);
}

static void start_with(const struct hc_limits *limits, uint32_t n)
{
	struct hc_settings settings;
	struct hc_limits usual;

	world_defaults(&usual, &settings);
	world_start_with(&w, 1, limits ? limits : &usual, &settings, 8, 1);
	world_link(&w, 0, &shm);
	world_link(&w, 0, &hccs);
	join_all(n, 100, 0, rank);
	domain = rank[0]->id;
	world_forget(&w);
}

static void start(uint32_t n)
{
	start_with(NULL, n);
}

/* Everybody goes; nothing is left. */
static void finish(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	world_advance(&w, 60000);
	world_check_empty(&w);
	world_end(&w);
}

/* The answer can come to a client that waits, so that it is looked for there. */
static void acquire(struct world_client *cl, uint32_t from, uint32_t peer, uint32_t mbps, bool wait)
{
	const struct world_piece p = {.peer = peer,
				      .mbps = mbps,
				      .type = mbps ? HC_W_link_type_HCCS : 0,
				      .flags = mbps != 0};

	world_acquire(&w, cl, domain, from, &p, 1, wait, 0, 0);
}

static uint8_t state_of(uint32_t slot)
{
	return w.registers[0][slot].state;
}

/* ---- pairing ---- */

START_TEST(two_ranks_get_the_two_ends)
{
	start(2);
	acquire(rank[0], 0, 1, 0, false);
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	ck_assert_uint_eq(rank[0]->grants[0].peer, 1);
	ck_assert_uint_eq(rank[0]->grants[0].side, 0);
	ck_assert(rank[0]->grants[0].carries);
	ck_assert_uint_eq(rank[0]->grants[0].buffer, HC_CHANNEL_BUFFER_DEFAULT);
	ck_assert_uint_eq(rank[0]->grants[0].type, HC_W_link_type_SHM);
	ck_assert_uint_eq(rank[0]->grants[0].latency_us, 3);
	acquire(rank[1], 1, 0, 0, false);
	ck_assert_uint_eq(rank[1]->grants[0].channel, rank[0]->grants[0].channel);
	ck_assert_uint_eq(rank[1]->grants[0].side, 1);
	ck_assert_uint_eq(rank[1]->grants[0].slot, rank[0]->grants[0].slot);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_OK);
	/* the memory: the first keeps it with the daemon, the second takes the last hold of it */
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	ck_assert(rank[0]->rings && !rank[0]->last);
	ck_assert_uint_eq(rank[0]->ring_bytes, HC_RING_FILE_BYTES(HC_CHANNEL_BUFFER_DEFAULT));
	world_open(&w, rank[1], rank[0]->grants[0].channel, 1);
	ck_assert(rank[1]->rings && rank[1]->last && rank[1]->side == 1);
	world_open(&w, rank[1], rank[0]->grants[0].channel, 1);
	ck_assert_int_eq(rank[1]->code, HC_E_INVALID);
	finish();
}
END_TEST

START_TEST(the_kth_call_of_one_meets_the_kth_of_the_other)
{
	uint64_t first, second;

	start(2);
	acquire(rank[0], 0, 1, 0, false);
	first = rank[0]->grants[0].channel;
	acquire(rank[0], 0, 1, 0, false);
	second = rank[0]->grants[0].channel;
	ck_assert(first != second);
	acquire(rank[1], 1, 0, 0, false);
	ck_assert_uint_eq(rank[1]->grants[0].channel, first);
	acquire(rank[1], 1, 0, 0, false);
	ck_assert_uint_eq(rank[1]->grants[0].channel, second);
	acquire(rank[1], 1, 0, 0, false);
	ck_assert_uint_eq(rank[1]->grants[0].side, 0); /* a third, which waits for rank 0 */
	finish();
}
END_TEST

START_TEST(ends_that_want_different_things_are_told_both)
{
	struct world_piece p = {.peer = 1, .mbps = 300, .back_mbps = 100};

	start(2);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	p = (struct world_piece){.peer = 0, .mbps = 200};
	world_acquire(&w, rank[1], domain, 1, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[1]->code, HC_E_MISMATCH);
	ck_assert_str_eq(rank[1]->text, "the two ends of a channel want different things: rank 0 "
					"says back_mbps 100, rank 1 says 200");
	p = (struct world_piece){.peer = 0, .mbps = 100, .back_mbps = 300};
	world_acquire(&w, rank[1], domain, 1, &p, 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	ck_assert_uint_eq(rank[1]->grants[0].mbps, 100);
	ck_assert_uint_eq(rank[1]->grants[0].back_mbps, 300);
	finish();
}
END_TEST

/* ---- not enough ---- */

START_TEST(who_waits_is_served_when_something_is_given_back)
{
	uint64_t held;

	start(2);
	acquire(rank[0], 0, 1, 600, false);
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	held = rank[0]->grants[0].channel;
	world_open(&w, rank[0], held, 0);
	world_forget(&w);
	/* a second of 600 has no room; the far end comes while it waits, and waits with it */
	acquire(rank[0], 0, 1, 600, true);
	ck_assert(world_waits(rank[0]));
	rank[1]->ngrants = 0;
	acquire(rank[1], 1, 0, 0, true);
	world_release(&w, rank[0], held, 0);
	ck_assert(!world_waits(rank[0]));
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	ck_assert(rank[0]->grants[0].channel != held);
	finish();
}
END_TEST

START_TEST(a_far_end_waits_with_the_asker_and_takes_over)
{
	struct world_piece p = {.peer = 1, .mbps = 600, .type = HC_W_link_type_HCCS, .flags = 1};
	uint64_t held;

	start(2);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	held = rank[0]->grants[0].channel;
	world_open(&w, rank[0], held, 0);
	p.peer = 0;
	p.mbps = 0;
	p.back_mbps = 600;
	world_acquire(&w, rank[1], domain, 1, &p, 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->grants[0].channel, held);
	world_open(&w, rank[1], held, 1);
	/* the next of rank 0 waits 100 ms at most, its far end as long as it takes */
	p = (struct world_piece){.peer = 1, .mbps = 600, .type = HC_W_link_type_HCCS, .flags = 1};
	world_acquire(&w, rank[0], domain, 0, &p, 1, true, 100, 0);
	p = (struct world_piece){
		.peer = 0, .back_mbps = 600, .type = HC_W_link_type_HCCS, .flags = 1};
	rank[1]->ngrants = 0;
	world_acquire(&w, rank[1], domain, 1, &p, 1, true, 0, 0);
	ck_assert(world_waits(rank[0]) && world_waits(rank[1]));
	world_advance(&w, 200);
	ck_assert_int_eq(rank[0]->code, HC_E_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "waited 100 ms"));
	ck_assert(world_waits(rank[1]));
	world_release(&w, rank[0], held, 0);
	ck_assert(!world_waits(rank[1]));
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	/* and rank 0, that asks once more, has the other end of it */
	p = (struct world_piece){.peer = 1, .mbps = 600, .type = HC_W_link_type_HCCS, .flags = 1};
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_uint_eq(rank[0]->grants[0].channel, rank[1]->grants[0].channel);
	finish();
}
END_TEST

START_TEST(a_refusal_says_who_holds_what_and_keeps_the_place)
{
	uint64_t held;

	start(2);
	acquire(rank[0], 0, 1, 600, false);
	held = rank[0]->grants[0].channel;
	world_open(&w, rank[0], held, 0);
	acquire(rank[0], 0, 1, 500, false);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "link hccs:0-1 has 600 of 800 MB/s"));
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "(wanted 500 MB/s)"));
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "rank 0 (pid 100) of domain "));
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "to rank 1: 600 MB/s"));
	/* nothing was declared and nothing was seen: no figure is made up */
	ck_assert_uint_eq(rank[0]->retry_ms, HC_NONE);
	world_query(&w, rank[1], HC_VIEW_waiting, 0, 0, 0);
	ck_assert_uint_eq(rank[1]->nrows, 1);
	/* the same again is the same place, not a second one */
	acquire(rank[0], 0, 1, 500, false);
	world_query(&w, rank[1], HC_VIEW_waiting, 0, 0, 0);
	ck_assert_uint_eq(rank[1]->nrows, 1);
	world_release(&w, rank[0], held, 0);
	acquire(rank[0], 0, 1, 500, false);
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	world_query(&w, rank[1], HC_VIEW_waiting, 0, 0, 0);
	ck_assert_uint_eq(rank[1]->nrows, 0);
	finish();
}
END_TEST

START_TEST(a_hint_that_rests_on_a_declared_time_is_kept)
{
	const struct world_piece p = {
		.peer = 1, .mbps = 800, .type = HC_W_link_type_HCCS, .flags = 1};
	uint64_t held;

	start(2);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 2000); /* for two seconds */
	held = rank[0]->grants[0].channel;
	world_open(&w, rank[0], held, 0);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	ck_assert_uint_ge(rank[0]->retry_ms, 2000);
	ck_assert_uint_lt(rank[0]->retry_ms, 10000);
	world_advance(&w, 2000);
	world_release(&w, rank[0], held, 0);
	world_advance(&w, rank[0]->retry_ms - 2000u);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, 0);
	finish();
}
END_TEST

START_TEST(what_no_link_could_carry_is_said_at_once)
{
	start(2);
	acquire(rank[0], 0, 1, 900, true);
	ck_assert_int_eq(rank[0]->code, HC_E_LINK_UNAVAILABLE);
	ck_assert(!world_waits(rank[0]));
	finish();
}
END_TEST

START_TEST(a_gang_is_had_whole_or_not_at_all)
{
	struct world_piece gang[3] = {
		{.peer = 1, .mbps = 500, .type = HC_W_link_type_HCCS, .flags = 1},
		{.peer = 1, .mbps = 300, .type = HC_W_link_type_HCCS, .flags = 1},
		{.peer = 2},
	};

	start(3);
	world_acquire(&w, rank[0], domain, 0, gang, 3, false, 0, 0);
	ck_assert_uint_eq(rank[0]->ngrants, 3);
	world_query(&w, rank[1], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[1]->nrows, 3);
	world_acquire(&w, rank[0], domain, 0, gang, 3, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	world_query(&w, rank[1], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[1]->nrows, 3);
	finish();
}
END_TEST

START_TEST(a_gang_of_ends_and_new_ones_waits_for_both)
{
	struct world_piece p[2] = {
		{.peer = 1, .mbps = 800, .type = HC_W_link_type_HCCS, .flags = 1}, {.peer = 0}};
	uint64_t held;

	start(3);
	world_acquire(&w, rank[0], domain, 0, p, 1, false, 0, 0);
	held = rank[0]->grants[0].channel;
	world_open(&w, rank[0], held, 0);
	acquire(rank[1], 1, 0, 0, false); /* shm: rank 1 holds one end, not the hccs one */
	ck_assert_int_eq(rank[1]->code, HC_E_MISMATCH);
	p[1] = (struct world_piece){.peer = 0, .type = HC_W_link_type_HCCS, .flags = 1};
	world_acquire(&w, rank[1], domain, 1, &p[1], 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->grants[0].channel, held);
	world_open(&w, rank[1], held, 1);
	/* rank 0 waits for 0-1; rank 1 wants its end of that, and one to rank 2 */
	world_acquire(&w, rank[0], domain, 0, p, 1, true, 0, 0);
	p[0] = (struct world_piece){.peer = 0, .type = HC_W_link_type_HCCS, .flags = 1};
	p[1] = (struct world_piece){.peer = 2};
	rank[1]->ngrants = 0;
	world_acquire(&w, rank[1], domain, 1, p, 2, true, 0, 0);
	ck_assert(world_waits(rank[0]) && world_waits(rank[1]));
	world_advance(&w, 20000); /* the part that is granted does not lapse meanwhile */
	ck_assert(world_waits(rank[1]));
	world_release(&w, rank[1], held, 1);
	ck_assert(!world_waits(rank[0]) && !world_waits(rank[1]));
	ck_assert_uint_eq(rank[1]->ngrants, 2);
	ck_assert_uint_eq(rank[1]->grants[0].channel, rank[0]->grants[0].channel);
	finish();
}
END_TEST

/* The place that a refusal keeps is for the channel that was not there; when all that was there has
 * gone, the same call needs one more. (The daemon once ended itself over the difference.) */
START_TEST(a_place_does_for_as_many_channels_as_it_was_kept_for)
{
	const struct world_piece gang[2] = {
		{.peer = 1, .mbps = 100, .type = HC_W_link_type_HCCS, .flags = 1},
		{.peer = 1, .mbps = 600, .type = HC_W_link_type_HCCS, .flags = 1}};
	struct world_piece far = {
		.peer = 0, .back_mbps = 300, .type = HC_W_link_type_HCCS, .flags = 1};
	uint64_t held, there;

	start(2);
	acquire(rank[0], 0, 1, 300, false);
	held = rank[0]->grants[0].channel;
	world_acquire(&w, rank[1], domain, 1, &far, 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->grants[0].channel, held);
	far.back_mbps = 100;
	world_acquire(&w, rank[1], domain, 1, &far, 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	there = rank[1]->grants[0].channel;
	world_acquire(&w, rank[0], domain, 0, gang, 2, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	world_release(&w, rank[0], held, 0);
	world_release(&w, rank[1], there, 1);
	world_acquire(&w, rank[0], domain, 0, gang, 2, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_uint_eq(rank[0]->ngrants, 2);
	finish();
}
END_TEST

START_TEST(a_lower_class_is_asked_to_yield)
{
	struct world_client *high[2];
	uint64_t low;

	start(2);
	acquire(rank[0], 0, 1, 700, false);
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	low = domain;
	join_all(2, 200, 5, high);
	domain = high[0]->id;
	ck_assert(domain != low);
	world_forget(&w);
	rank[0]->event_channel = 0;
	acquire(high[0], 0, 1, 700, true);
	ck_assert(world_waits(high[0]));
	ck_assert_uint_eq(rank[0]->event_kind, HC_W_event_code_CHANNEL_YIELD);
	ck_assert_uint_eq(rank[0]->event_channel, rank[0]->grants[0].channel);
	rank[0]->event_kind = 0;
	world_advance(&w, 1000);
	ck_assert_uint_eq(rank[0]->event_kind, 0); /* once */
	domain = low;
	world_release(&w, rank[0], rank[0]->grants[0].channel, 0);
	ck_assert(!world_waits(high[0]));
	finish();
}
END_TEST

/* ---- the end ---- */

START_TEST(a_death_ends_its_channels_and_serves_who_waits)
{
	uint32_t slot;

	start(3);
	acquire(rank[0], 0, 1, 800, false);
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	slot = rank[0]->grants[0].slot;
	world_acquire(&w, rank[1], domain, 1,
		      &(struct world_piece){.peer = 0, .type = HC_W_link_type_HCCS, .flags = 1}, 1,
		      false, 0, 0);
	ck_assert_uint_eq(rank[1]->grants[0].channel, rank[0]->grants[0].channel);
	world_open(&w, rank[1], rank[1]->grants[0].channel, 1);
	world_forget(&w);
	world_dead(&w, 0, 100);
	world_settle(&w);
	ck_assert_uint_eq(state_of(slot), HC_W_channel_state_REVOKED);
	ck_assert(world_said(&w, "a 101 hears channel-revoked"));
	ck_assert(world_said(&w, "rank 0, pid 100, exited"));
	world_query(&w, rank[2], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[2]->nrows, 0);
	finish();
}
END_TEST

START_TEST(a_lost_session_ends_nothing)
{
	struct world_client *back;
	uint64_t channel;

	start(2);
	acquire(rank[0], 0, 1, 0, false);
	channel = rank[0]->grants[0].channel;
	world_open(&w, rank[0], channel, 0);
	world_lose(&w, rank[0]);
	world_advance(&w, 60000);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_OK);
	back = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	world_attach(&w, back, domain, 0);
	world_release(&w, back, channel, 0);
	ck_assert_int_eq(back->code, 0);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_REVOKED);
	finish();
}
END_TEST

START_TEST(an_answer_that_was_lost_is_given_again)
{
	struct world_client *back;
	uint64_t channel;

	start(2);
	acquire(rank[0], 0, 1, 0, false);
	channel = rank[0]->grants[0].channel;
	world_lose(&w, rank[0]);
	back = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	world_attach(&w, back, domain, 0);
	acquire(back, 0, 1, 0, false);
	ck_assert_uint_eq(back->grants[0].channel, channel);
	/* and a call that waits is answered where it was repeated */
	world_open(&w, back, channel, 0);
	finish();
}
END_TEST

START_TEST(what_nobody_opens_lapses)
{
	start(2);
	acquire(rank[0], 0, 1, 800, false);
	world_advance(&w, 4000);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_OK);
	world_advance(&w, 2000);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_REVOKED);
	ck_assert(world_said(&w, "channel-revoked"));
	ck_assert(world_said(&w, "not used within grant_ttl_s"));
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_GONE);
	acquire(rank[0], 0, 1, 800, false); /* it is all free */
	ck_assert_int_eq(rank[0]->code, 0);
	finish();
}
END_TEST

START_TEST(leaving_and_destroying_end_channels)
{
	start(3);
	acquire(rank[0], 0, 1, 0, false);
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	acquire(rank[1], 1, 2, 0, false);
	world_open(&w, rank[1], rank[1]->grants[0].channel, 1);
	world_leave(&w, rank[0], domain, 0);
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_REVOKED);
	ck_assert_uint_eq(state_of(rank[1]->grants[0].slot), HC_W_channel_state_OK);
	world_destroy(&w, rank[1], domain);
	ck_assert_uint_eq(state_of(rank[1]->grants[0].slot), HC_W_channel_state_REVOKED);
	finish();
}
END_TEST

/* The release is answered when it is stored, and an end is opened when that is. */
START_TEST(nothing_is_said_before_it_is_stored)
{
	uint64_t channel;

	start(2);
	world_store_hold(&w, 0, true);
	acquire(rank[0], 0, 1, 0, false);
	ck_assert(world_waits(rank[0]));
	world_store_hold(&w, 0, false);
	ck_assert(!world_waits(rank[0]));
	channel = rank[0]->grants[0].channel;
	world_store_hold(&w, 0, true);
	world_open(&w, rank[0], channel, 0);
	ck_assert(world_waits(rank[0]));
	world_store_hold(&w, 0, false);
	ck_assert(rank[0]->rings);
	world_store_hold(&w, 0, true);
	world_release(&w, rank[0], channel, 0);
	ck_assert(world_waits(rank[0]));
	world_store_hold(&w, 0, false);
	ck_assert(!world_waits(rank[0]));
	finish();
}
END_TEST

/* ---- quotas ---- */

START_TEST(quotas_name_themselves)
{
	struct hc_limits limits;
	struct hc_settings settings;
	struct world_piece big = {.peer = 1, .buffer = 1u << 20};

	world_defaults(&limits, &settings);
	limits.quota_channels = 3;
	limits.quota_waiting = 1;
	limits.quota_memory = 5u << 20;
	start_with(&limits, 2);
	acquire(rank[0], 0, 1, 700, false);
	acquire(rank[0], 0, 1, 500, true);
	ck_assert(world_waits(rank[0]));
	world_acquire(&w, rank[1], domain, 1, &(struct world_piece){.peer = 0, .mbps = 400}, 1,
		      true, 0, 0);
	ck_assert_int_eq(rank[1]->code, HC_E_MISMATCH); /* it is the far end of the first */
	world_acquire(&w, rank[0], domain, 0, &big, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, 0);
	world_acquire(&w, rank[0], domain, 0, &big, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "quota_channels (3)"));
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "uid 1000"));
	world_release(&w, rank[0], rank[0]->grants[0].channel, 0);
	big.buffer = 4u << 20;
	world_acquire(&w, rank[0], domain, 0, &big, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "quota_memory_mib is 5"));
	acquire(rank[0], 0, 1, 600, true);
	ck_assert_int_eq(rank[0]->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "quota_waiting (1)"));
	finish();
}
END_TEST

START_TEST(nonsense_is_refused)
{
	struct world_piece p = {.peer = 7};

	start(2);
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_INVALID);
	p.peer = 0;
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_INVALID);
	world_acquire(&w, rank[0], domain, 0, &p, 0, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_INVALID);
	p = (struct world_piece){.peer = 1, .buffer = 100};
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_INVALID);
	p = (struct world_piece){.peer = 1, .flags = 9};
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_INVALID);
	p = (struct world_piece){.peer = 0};
	world_acquire(&w, rank[0], domain, 1, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_PERMISSION);
	world_acquire(&w, rank[0], domain ^ 1, 0, &p, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_GONE);
	world_release(&w, rank[0], 12345, 0);
	ck_assert_int_eq(rank[0]->code, 0); /* over already, as far as anybody knows */
	finish();
}
END_TEST

/* ---- restart ---- */

START_TEST(grants_are_taken_back_after_a_restart)
{
	struct world_client *back[2];
	struct world_grant was;
	uint64_t torn;

	start(2);
	acquire(rank[0], 0, 1, 500, false);
	was = rank[0]->grants[0];
	world_open(&w, rank[0], was.channel, 0);
	acquire(rank[0], 0, 1, 0, false);
	torn = rank[0]->grants[0].channel;
	world_open(&w, rank[0], torn, 0); /* its rings are with rank 0 and the daemon alone */
	world_restart(&w, 0);
	ck_assert_uint_eq(state_of(was.slot), HC_W_channel_state_OK);
	ck_assert_uint_eq(state_of(rank[0]->grants[0].slot), HC_W_channel_state_REVOKED);
	back[0] = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	back[1] = world_client(&w, 0, 101, 1000, HC_W_role_MEMBER);
	world_attach(&w, back[0], domain, 0);
	world_attach(&w, back[1], domain, 1);
	ck_assert_int_eq(back[1]->code, 0);
	world_query(&w, back[1], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(back[1]->nrows, 1);
	/* its share of the link is still its own */
	acquire(back[0], 0, 1, 400, false);
	ck_assert_int_eq(back[0]->code, HC_E_AGAIN);
	world_acquire(&w, back[1], domain, 1,
		      &(struct world_piece){.peer = 0, .type = HC_W_link_type_HCCS, .flags = 1}, 1,
		      false, 0, 0);
	ck_assert_uint_eq(back[1]->grants[0].channel, was.channel);
	ck_assert_uint_eq(back[1]->grants[0].vc, was.vc);
	ck_assert_uint_eq(back[1]->grants[0].slot, was.slot);
	world_release(&w, back[0], was.channel, 0);
	ck_assert_int_eq(back[0]->code, 0);
	finish();
}
END_TEST

/* ---- what a domain begins with ---- */

static void join_with(uint32_t pid, const char *name, uint32_t mbps, bool wait,
		      struct world_client **cl)
{
	uint32_t i;

	world_table(&t, 2, 1);
	for (i = 0; i < 2; i++) {
		cl[i] = world_client(&w, 0, pid + i, 1000, HC_W_role_MEMBER);
		w.opt.shared = true;
		w.opt.name = name;
		w.opt.channels = 1;
		w.opt.channel_mbps = mbps;
		w.opt.channel_wait = wait;
		world_join_table(&w, cl[i], &t, i);
	}
}

START_TEST(a_domain_begins_with_its_channels)
{
	struct world_client *cl[2];
	uint32_t slot;

	start(2);
	join_with(200, "with", 500, false, cl);
	ck_assert_int_eq(cl[0]->code, 0);
	ck_assert_int_eq(cl[1]->code, 0);
	domain = cl[0]->id;
	world_query(&w, cl[0], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(cl[0]->nrows, 2); /* 0 to 1, and 1 to 0 */
	world_advance(&w, 60000);           /* they are the domain's, and do not lapse */
	world_acquire(&w, cl[1], domain, 1, &(struct world_piece){.peer = 0, .mbps = 400}, 1, false,
		      0, 0);
	ck_assert_int_eq(cl[1]->code, 0);
	ck_assert_uint_eq(cl[1]->grants[0].mbps, 500); /* what is there */
	ck_assert(cl[1]->grants[0].carries);
	slot = cl[1]->grants[0].slot;
	world_open(&w, cl[1], cl[1]->grants[0].channel, 1);
	world_query(&w, cl[0], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(cl[0]->nrows, 2); /* it was taken, not made */
	world_destroy(&w, cl[0], domain);
	ck_assert_uint_eq(state_of(slot), HC_W_channel_state_REVOKED);
	world_query(&w, rank[0], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[0]->nrows, 0);
	finish();
}
END_TEST

START_TEST(a_domain_whose_channels_are_not_free_is_not_made)
{
	struct world_client *cl[2];
	uint32_t i;

	start(2);
	acquire(rank[0], 0, 1, 400, false);
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	join_with(200, "with", 500, false, cl);
	/* shm has room for it, so it is given that */
	ck_assert_int_eq(cl[0]->code, 0);
	world_destroy(&w, cl[0], cl[0]->id);
	join_with(300, "much", 7000, false, cl);
	ck_assert_int_eq(cl[0]->code, 0);
	domain = cl[0]->id;
	join_with(400, "more", 7000, false, cl);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(cl[i]->code, HC_E_AGAIN);
		ck_assert_uint_eq(cl[i]->retry_ms, cl[0]->retry_ms); /* all are told the same */
		ck_assert_ptr_nonnull(strstr(cl[i]->text, "link shm has"));
	}
	/* who waits is made when the other is gone */
	join_with(500, "more", 7000, true, cl);
	ck_assert(world_waits(cl[0]) && world_waits(cl[1]));
	world_advance(&w, 30000); /* longer than prepare_limit */
	ck_assert(world_waits(cl[0]));
	world_destroy(&w, rank[0], domain);
	ck_assert(!world_waits(cl[0]) && !world_waits(cl[1]));
	ck_assert_int_eq(cl[0]->code, 0);
	/* and one that waits too long is told why */
	join_with(600, "last", 7000, true, cl);
	world_advance(&w, 130000);
	ck_assert_int_eq(cl[0]->code, HC_E_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(cl[0]->text, "1 channels of 7000 MB/s"));
	finish();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, two_ranks_get_the_two_ends);
	tcase_add_test(c, the_kth_call_of_one_meets_the_kth_of_the_other);
	tcase_add_test(c, ends_that_want_different_things_are_told_both);
	tcase_add_test(c, who_waits_is_served_when_something_is_given_back);
	tcase_add_test(c, a_far_end_waits_with_the_asker_and_takes_over);
	tcase_add_test(c, a_refusal_says_who_holds_what_and_keeps_the_place);
	tcase_add_test(c, a_hint_that_rests_on_a_declared_time_is_kept);
	tcase_add_test(c, what_no_link_could_carry_is_said_at_once);
	tcase_add_test(c, a_gang_is_had_whole_or_not_at_all);
	tcase_add_test(c, a_gang_of_ends_and_new_ones_waits_for_both);
	tcase_add_test(c, a_place_does_for_as_many_channels_as_it_was_kept_for);
	tcase_add_test(c, a_lower_class_is_asked_to_yield);
	tcase_add_test(c, a_death_ends_its_channels_and_serves_who_waits);
	tcase_add_test(c, a_lost_session_ends_nothing);
	tcase_add_test(c, an_answer_that_was_lost_is_given_again);
	tcase_add_test(c, what_nobody_opens_lapses);
	tcase_add_test(c, leaving_and_destroying_end_channels);
	tcase_add_test(c, nothing_is_said_before_it_is_stored);
	tcase_add_test(c, quotas_name_themselves);
	tcase_add_test(c, nonsense_is_refused);
	tcase_add_test(c, grants_are_taken_back_after_a_restart);
	tcase_add_test(c, a_domain_begins_with_its_channels);
	tcase_add_test(c, a_domain_whose_channels_are_not_free_is_not_made);
}

int main(void)
{
	return hc_suite_run("core channel", add, 60);
}
