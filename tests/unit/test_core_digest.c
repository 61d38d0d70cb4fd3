/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests: two nodes find out that one has missed a word about a domain, and only that word is said
 * again. The homes are on node a; messages are lost by hand. The last tests have beats, over the
 * simulated network.
 */
#include "digest.h"
#include "peering.h"
#include "suite.h"
#include "world.h"

#include "home.h"
#include "part.h"

#define MANY 70u /* domains: three pages */

static struct world w;
static struct world_client *a0, *b1;
static uint64_t id;

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* Rank 0 on a, rank 1 on b. */
static uint64_t form(void)
{
	world_root_info(&w, a0, 2);
	world_join_root(&w, a0, a0, 2, 0);
	world_join_root(&w, b1, a0, 2, 1);
	ck_assert_int_eq(a0->code, 0);
	ck_assert_uint_eq(a0->id, b1->id);
	return a0->id;
}

static void start(void)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	id = form();
	world_forget(&w);
}

static uint64_t digest(uint32_t node)
{
	return hc_digest_of(w.core[node], w.node_of[node][!node]);
}

static const struct hc_part *part(uint32_t node)
{
	return hc_part_by_id(w.core[node], id);
}

/* As if the digests had differed in three beats. */
static void compare(uint32_t round)
{
	const struct hc_m_peer_sum m = {.round = round};

	world_say(&w, 1, 0, &hc_desc_peer_sum, &m);
	world_settle(&w);
}

static void all_die(void)
{
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	ck_assert_uint_eq(digest(0), 0);
	ck_assert_uint_eq(digest(1), 0);
	world_end(&w);
}

START_TEST(what_both_know_is_in_both_digests)
{
	start();
	ck_assert_uint_ne(digest(0), 0);
	ck_assert_uint_eq(digest(0), digest(1));
	world_die(&w, b1); /* damaged: another number */
	world_settle(&w);
	ck_assert_uint_ne(digest(0), 0);
	ck_assert_uint_eq(digest(0), digest(1));
	all_die();
}
END_TEST

START_TEST(a_state_that_was_lost_is_said_again)
{
	start();
	world_hold(&w, 0, 1, true);
	world_die(&w, a0);
	world_settle(&w);
	ck_assert(world_drop(&w, 0, 1)); /* STATE */
	while (world_drop(&w, 0, 1))
		;
	world_hold(&w, 0, 1, false);
	ck_assert_uint_ne(digest(0), digest(1));
	ck_assert_uint_eq(part(1)->state, HC_W_domain_state_ACTIVE);
	world_forget(&w);
	w.show |= SHOW_MESSAGES | SHOW_EVENTS;
	compare(5);
	ck_assert_uint_eq(digest(0), digest(1));
	ck_assert_uint_eq(part(1)->state, HC_W_domain_state_DAMAGED);
	ck_assert(world_said(&w, "a -> b: state"));
	ck_assert(world_said(&w, "b 200 hears rank-died, DAMAGED"));
	all_die();
}
END_TEST

START_TEST(an_end_that_was_lost_is_said_again)
{
	start();
	world_hold(&w, 0, 1, true);
	world_die(&w, a0);
	world_die(&w, b1);
	world_advance(&w, 130000);
	while (world_drop(&w, 0, 1))
		;
	world_hold(&w, 0, 1, false);
	ck_assert_ptr_null(hc_home_by_id(w.core[0], id));
	ck_assert_ptr_nonnull(part(1));
	ck_assert_uint_eq(digest(0), 0);
	ck_assert_uint_ne(digest(1), 0);
	compare(6);
	ck_assert_ptr_null(part(1));
	all_die();
}
END_TEST

START_TEST(when_nothing_differs_nothing_follows)
{
	const uint64_t before = (start(), digest(0));

	w.show |= SHOW_MESSAGES;
	world_forget(&w);
	compare(7);
	world_transcript(&w, __FILE__, __LINE__,
			 "[    0ms] a -> b: peer_sum\n"
			 "[    0ms] b -> a: peer_sum\n");
	ck_assert_uint_eq(digest(0), before);
	all_die();
}
END_TEST

/* Each page is judged for itself; what is lost of many is found in whatever page it stands. */
START_TEST(many_are_compared_in_pages)
{
	struct hc_settings settings;
	struct hc_limits limits;
	uint64_t ids[MANY];
	uint32_t i;

	world_defaults(&limits, &settings);
	limits.domains = 2 * MANY;
	world_start_with(&w, 2, &limits, &settings, 8, 3);
	a0 = member(0, 100);
	b1 = member(1, 200);
	for (i = 0; i < MANY; i++)
		ids[i] = form();
	ck_assert_uint_eq(digest(0), digest(1));
	world_hold(&w, 0, 1, true);
	world_die(&w, a0); /* all are damaged */
	world_settle(&w);
	for (i = 0; i % 7 ? world_carry(&w, 0, 1) : world_drop(&w, 0, 1); i++)
		;
	ck_assert_uint_ge(i, MANY);
	world_hold(&w, 0, 1, false);
	world_settle(&w);
	ck_assert_uint_ne(digest(0), digest(1));
	compare(8);
	ck_assert_uint_eq(digest(0), digest(1));
	for (i = 0; i < MANY; i++) {
		id = ids[i];
		ck_assert_uint_eq(part(1)->state, HC_W_domain_state_DAMAGED);
	}
	all_die();
}
END_TEST

/* ---- with beats ---- */

static struct sim *s;

static void differ(struct hc_core *c, void *arg)
{
	const uint64_t *by = arg;
	struct hc_peer *p = &c->net->peers[0];

	c->nodes[p->node].digest = p->digest = *by;
}

static uint32_t comparisons(void)
{
	return peering_get(s, 0, 1)->sums + peering_get(s, 1, 0)->sums;
}

START_TEST(three_beats_that_differ_start_one_comparison)
{
	uint64_t one = 1, two = 2, none = 0;
	struct sim_args a;

	sim_defaults(&a);
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	sim_run(s, 3 * SIM_S);
	ck_assert(peering_all_up(s, NULL));
	ck_assert_uint_eq(comparisons(), 0);
	sim_do(s, 1, differ, &one);
	sim_run(s, 150 * SIM_MS); /* a beat or two */
	ck_assert_uint_eq(comparisons(), 0);
	sim_run(s, 350 * SIM_MS);
	ck_assert_uint_eq(comparisons(), 1);
	sim_run(s, 60 * SIM_S); /* the same pair says nothing new */
	ck_assert_uint_eq(comparisons(), 1);
	sim_do(s, 1, differ, &two);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(comparisons(), 2);
	sim_do(s, 1, differ, &none);
	sim_run(s, SIM_S);
	sim_do(s, 1, differ, &two);
	sim_run(s, 150 * SIM_MS); /* under way, and over again */
	sim_do(s, 1, differ, &none);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(comparisons(), 2);
	ck_assert(peering_all_up(s, NULL));
	sim_free(s);
}
END_TEST

static void begin_comparison(struct hc_core *c, void *arg)
{
	(void)arg;
	c->at_rest = false;
	hc_digest_differs(c, c->net->peers[0].node);
}

static void count_sums(struct sim *sim, uint32_t node, uint32_t from, uint32_t life,
		       const struct hc_frame *f, void *arg)
{
	uint32_t *count = arg;

	(void)sim;
	(void)node;
	(void)from;
	(void)life;
	*count += f->head.type == HC_MSG_peer_sum;
}

/* The answer to the first is on its way, or yet to be made, when the second begins: it is no
 * question, to be answered in turn, and that one again. */
START_TEST(a_second_comparison_before_the_first_is_answered)
{
	struct sim_args a;
	uint32_t pages = 0, asker;

	sim_defaults(&a);
	a.took = count_sums;
	a.arg = &pages;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	sim_run(s, 3 * SIM_S);
	ck_assert(peering_all_up(s, NULL));
	asker = hc_peer_chooses(sim_core(s, 0), peering_get(s, 0, 1)) ? 0 : 1;
	sim_do(s, asker, begin_comparison, NULL);
	sim_run(s, 1000);
	sim_do(s, asker, begin_comparison, NULL);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(pages, 4);
	sim_free(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, what_both_know_is_in_both_digests);
	tcase_add_test(t, a_state_that_was_lost_is_said_again);
	tcase_add_test(t, an_end_that_was_lost_is_said_again);
	tcase_add_test(t, when_nothing_differs_nothing_follows);
	tcase_add_test(t, many_are_compared_in_pages);
	tcase_add_test(t, three_beats_that_differ_start_one_comparison);
	tcase_add_test(t, a_second_comparison_before_the_first_is_answered);
}

int main(void)
{
	return hc_suite_run("core_digest", add, 60);
}
