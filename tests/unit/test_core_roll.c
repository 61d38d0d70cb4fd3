/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank table of a domain whose home has not seen it.
 *
 * Rank 0 is late, and with it its node a, the home. Ranks of b wait, and whoever looks at a wants
 * to know who is missing and from where: a asks b for what the table says, in slices. What comes
 * unasked, of another table or out of order is not taken.
 */
#include "home.h"
#include "state.h"
#include "suite.h"
#include "world.h"

#include <string.h>

enum { RANKS = 150 };

static struct world w;
static struct world_table t;
static struct world_client *b1, *b3;

static void start(void)
{
	struct hc_settings set;
	struct hc_limits lim;

	world_defaults(&lim, &set);
	lim.ranks_per_domain = RANKS;
	lim.ranks = 4 * RANKS;
	world_start_with(&w, 2, &lim, &set, 8, 1);
	world_table(&t, RANKS, 2);
	b1 = world_client(&w, 1, 200, 1000, HC_W_role_MEMBER);
	b3 = world_client(&w, 1, 201, 1000, HC_W_role_MEMBER);
}

static void end(void)
{
	world_hold_none(&w);
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

/* The only home of node a. */
static struct hc_home *home(void)
{
	struct hc_core *c = w.core[0];
	uint32_t i;

	for (i = 0; i < c->home_pool.fresh; i++)
		if (c->homes[i].id)
			return &c->homes[i];
	return NULL;
}

static const struct hc_roll_entry *known(uint32_t rank)
{
	return hc_home_roll(w.core[0], home(), rank);
}

START_TEST(the_home_asks_for_the_table)
{
	uint32_t i;

	start();
	world_join_table(&w, b1, &t, 1);
	ck_assert_ptr_nonnull(home());
	ck_assert_ptr_null(known(0));
	world_advance(&w, 100);
	for (i = 0; i < RANKS; i++) {
		ck_assert_msg(known(i) != NULL, "rank %u", i);
		ck_assert_str_eq(known(i)->server, i % 2 ? "b" : "a");
		ck_assert_uint_eq(known(i)->device, i / 2);
		ck_assert(hc_addr_eq(&known(i)->addr, &t.ranks[i].addr));
		ck_assert_uint_eq(known(i)->host.family, 0);
	}
	/* and once: the next arrival says nothing new */
	w.show = SHOW_MESSAGES;
	world_forget(&w);
	world_join_table(&w, b3, &t, 3);
	world_advance(&w, 100);
	ck_transcript(&w, "[  100ms] b -> a: arrive\n"
			  "[  100ms] a -> b: verdict\n"
			  "[  200ms] a -> b: missing\n");
	end();
}
END_TEST

/* Said by somebody who has it wrong. */
START_TEST(only_what_was_asked_is_taken)
{
	struct hc_m_roll_rank r = {.server = hc_str("liar"), .family = 9, .device = 7};
	struct hc_m_roll m = {.nranks = RANKS};
	uint8_t bytes[256];

	start();
	world_join_table(&w, b1, &t, 1);
	w.hold[1][0] = true;
	world_advance(&w, 100);
	m.ranks.bytes = bytes;
	ck_assert(
		!hc_arr_put(&m.ranks, bytes, sizeof(bytes), &hc_desc_roll_rank, HC_PROTO_MAX, &r));
	m.id = home()->id;
	m.list_a = t.roster.hash[0];
	m.list_b = t.roster.hash[1] + 1; /* another table */
	world_say(&w, 1, 0, &hc_desc_roll, &m);
	m.list_b = t.roster.hash[1];
	m.first = 64; /* not the next ones */
	world_say(&w, 1, 0, &hc_desc_roll, &m);
	m.first = 0;
	m.nranks = RANKS + 1; /* more than the domain has */
	world_say(&w, 1, 0, &hc_desc_roll, &m);
	m.nranks = RANKS;
	m.id++; /* no domain */
	world_say(&w, 1, 0, &hc_desc_roll, &m);
	world_hold(&w, 1, 0, false);
	world_advance(&w, 1);
	ck_assert_ptr_nonnull(known(RANKS - 1));
	ck_assert_str_eq(known(0)->server, "a");
	end();
}
END_TEST

/* Its node forgets it, as it has read so many others since: the home does without. */
START_TEST(a_table_that_is_forgotten)
{
	uint32_t i;

	start();
	world_join_table(&w, b1, &t, 1);
	for (i = 0; i < HC_ROLLS; i++)
		w.core[1]->rolls[i].nranks = 0;
	world_advance(&w, 1000);
	ck_assert_ptr_null(known(0));
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, the_home_asks_for_the_table);
	tcase_add_test(c, only_what_was_asked_is_taken);
	tcase_add_test(c, a_table_that_is_forgotten);
}

int main(void)
{
	return hc_suite_run("core_roll", add, 60);
}
