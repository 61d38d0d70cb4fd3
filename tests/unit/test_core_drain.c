/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain of a node in the core: who is refused, who goes on, and when the one who asked hears.
 *
 * The wait is answered by the last domain's end, by its time, or by a second word, and never
 * twice. What runs is not touched by any of them.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_client *admin, *other;
static const uint32_t devices[] = {0, 1};

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

static void start(void)
{
	world_start(&w, 1);
	admin = world_client(&w, 0, 10, 0, HC_W_role_ADMIN);
	other = world_client(&w, 0, 11, 0, HC_W_role_ADMIN);
}

static struct hc_core_counts counts_of(uint32_t node)
{
	struct hc_core_counts n;

	hc_core_counts(w.core[node], &n);
	return n;
}

static struct hc_core_counts counts(void)
{
	return counts_of(0);
}

static void end(void)
{
	world_check_empty(&w);
	world_end(&w);
}

START_TEST(nothing_there_is_answered_at_once)
{
	start();
	ck_assert(!counts().drained);
	world_drain(&w, admin, "");
	ck_assert(!world_waits(admin));
	ck_assert_int_eq(admin->code, 0);
	ck_assert(counts().drained);
	ck_assert_uint_eq(counts().drain_ns, 0);
	end();
}
END_TEST

START_TEST(the_last_end_answers)
{
	struct world_client *a, *b;

	start();
	a = member(100);
	b = member(101);
	world_join_local(&w, a, devices, 1);
	world_join_local(&w, b, devices + 1, 1);
	world_drain(&w, admin, "");
	ck_assert(world_waits(admin));
	ck_assert_uint_gt(counts().drain_ns, 0);
	world_destroy(&w, a, a->id);
	ck_assert(world_waits(admin));
	world_die(&w, b);
	world_advance(&w, 10000); /* beyond orphan_grace_s */
	ck_assert_msg(!world_waits(admin), "%u domains", counts().domains);
	ck_assert_int_eq(admin->code, 0);
	end();
}
END_TEST

/* Rank 0 on the node of the home, rank 1 on the one that is drained; others would be to come. */
static void over_two(uint32_t nranks, struct world_client **far, struct world_client **here)
{
	world_start(&w, 2);
	admin = world_client(&w, 1, 10, 0, HC_W_role_ADMIN);
	*far = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	*here = world_client(&w, 1, 200, 1000, HC_W_role_MEMBER);
	world_root_info(&w, *far, nranks);
	world_join_root(&w, *far, *far, nranks, 0);
	world_join_root(&w, *here, *far, nranks, 1);
}

/* The home is another node; the ranks that run are here. */
START_TEST(ranks_of_another_home_are_waited_for)
{
	struct world_client *far, *here;

	over_two(2, &far, &here);
	ck_assert_int_eq(here->code, 0);
	ck_assert_uint_eq(counts_of(1).domains, 1);
	ck_assert_uint_eq(counts_of(1).active, 1);

	world_drain(&w, admin, "");
	ck_assert(world_waits(admin));
	world_drain(&w, admin, ""); /* a second word ends the wait, and says what is left */
	ck_assert_ptr_nonnull(strstr(admin->text, "1 domain is left: domain-"));
	world_drain(&w, admin, "");
	ck_assert(world_waits(admin));
	world_destroy(&w, far, far->id);
	ck_assert_msg(!world_waits(admin), "%u domains", counts_of(1).domains);
	ck_assert_int_eq(admin->code, 0);
	ck_assert_uint_eq(counts_of(1).domains, 0);
	end();
}
END_TEST

/* A domain that forms at another node, and waits for ranks that would be refused here, fails there
 * at once, for everybody. */
START_TEST(what_forms_elsewhere_fails_at_once)
{
	struct world_client *far, *here;

	over_two(3, &far, &here);
	ck_assert(world_waits(far) && world_waits(here));
	world_drain(&w, admin, "");
	world_settle(&w);
	ck_assert(!world_waits(far) && !world_waits(here) && !world_waits(admin));
	ck_assert_int_eq(far->code, HC_E_AGAIN);
	ck_assert_int_eq(here->code, HC_E_AGAIN);
	ck_assert_str_eq(far->text, "node b is being drained: it takes no new domains");
	ck_assert_str_eq(here->text, far->text);
	ck_assert_int_eq(admin->code, 0);
	end();
}
END_TEST

/* Every way in is refused with the same word, and what lives is not. */
START_TEST(no_way_leads_in)
{
	static const uint32_t ranks[] = {0};
	struct world_client *a, *b;
	struct world_table t;

	start();
	world_table(&t, 2, 1);
	a = member(100);
	b = member(101);
	world_join_local(&w, a, devices, 1);
	world_root_info(&w, b, 2);
	world_drain(&w, admin, "");
	world_settle(&w);

	world_join_root(&w, b, b, 2, 0);
	ck_assert_int_ne(b->code, 0); /* its domain has failed */
	world_root_info(&w, b, 2);
	ck_assert_int_eq(b->code, HC_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(b->text, "hcommctl drain --off"));
	world_join_table(&w, b, &t, 1); /* device 1: the other is held */
	ck_assert_int_eq(b->code, HC_E_AGAIN);
	world_join_local(&w, b, devices + 1, 1);
	ck_assert_int_eq(b->code, HC_E_AGAIN);
	world_create(&w, b, 2);
	ck_assert_int_eq(b->code, HC_E_AGAIN);
	world_sub(&w, a, a->id, 0, 1, ranks, 1);
	ck_assert_int_eq(a->code, HC_E_AGAIN);

	world_lose(&w, a); /* and comes back */
	b = member(100);
	world_attach(&w, b, a->id, 0);
	ck_assert_msg(!b->code, "%s", b->text);
	ck_assert(world_waits(admin));
	world_destroy(&w, b, a->id);
	ck_assert(!world_waits(admin));
	end();
}
END_TEST

START_TEST(who_waits_for_others_is_told_at_once)
{
	struct world_client *a;
	struct world_table t;

	start();
	world_table(&t, 2, 1);
	a = member(100);
	world_join_table(&w, a, &t, 0);
	ck_assert(world_waits(a));
	world_drain(&w, admin, "");
	ck_assert(!world_waits(a));
	ck_assert_int_eq(a->code, HC_E_AGAIN);
	ck_assert(!world_waits(admin)); /* it was the only one */
	ck_assert_int_eq(admin->code, 0);
	end();
}
END_TEST

START_TEST(its_time_ends_the_wait_and_nothing_else)
{
	struct world_client *a;

	start();
	a = member(100);
	world_join_local(&w, a, devices, 1);
	world_drain(&w, admin, "");
	world_advance(&w, w.settings.drain_timeout_ns / 1000000u - 1);
	ck_assert(world_waits(admin));
	world_advance(&w, 1);
	ck_assert(!world_waits(admin));
	ck_assert_int_eq(admin->code, HC_E_TIMEOUT);
	ck_assert_msg(strstr(admin->text, "1 domain is left: ") &&
			      strstr(admin->text, "drain_timeout_s"),
		      "%s", admin->text);
	ck_assert(counts().drained);
	ck_assert_uint_eq(counts().active, 1);
	world_drain(&w, admin, ""); /* nobody waits: a new wait */
	ck_assert(world_waits(admin));
	world_destroy(&w, a, a->id);
	ck_assert(!world_waits(admin));
	end();
}
END_TEST

START_TEST(a_second_word_ends_the_wait)
{
	struct world_client *a;

	start();
	a = member(100);
	world_join_local(&w, a, devices, 1);
	world_drain(&w, admin, "");
	world_drain(&w, other, "");
	ck_assert(!world_waits(admin) && !world_waits(other));
	ck_assert_int_eq(admin->code, HC_E_IN_PROGRESS);
	ck_assert_ptr_nonnull(strstr(admin->text, "process 11"));
	ck_assert_int_eq(other->code, 0);
	ck_assert(counts().drained);
	world_advance(&w, 2 * w.settings.drain_timeout_ns / 1000000u); /* no second answer */
	world_destroy(&w, a, a->id);
	end();
}
END_TEST

START_TEST(off_takes_domains_again)
{
	struct world_client *a;

	start();
	a = member(100);
	world_join_local(&w, a, devices, 1);
	world_drain(&w, admin, "");
	world_drain(&w, other, "off");
	ck_assert_int_eq(other->code, 0);
	ck_assert_int_eq(admin->code, HC_E_IN_PROGRESS);
	ck_assert(!counts().drained);
	world_join_local(&w, a, devices, 1);
	ck_assert_msg(!a->code, "%s", a->text);
	world_drain(&w, other, "off"); /* nothing to end */
	ck_assert_int_eq(other->code, 0);
	world_drain(&w, other, "perhaps");
	ck_assert_int_eq(other->code, HC_E_INVALID);
	world_die(&w, a);
	world_advance(&w, 10000);
	end();
}
END_TEST

/* The one who waits has gone: the node stays drained, and the next word waits again. */
START_TEST(who_waits_may_go)
{
	struct world_client *a;

	start();
	a = member(100);
	world_join_local(&w, a, devices, 1);
	world_drain(&w, admin, "");
	world_lose(&w, admin);
	ck_assert(counts().drained);
	ck_assert_uint_eq(counts().drain_ns, 0);
	world_drain(&w, other, "");
	ck_assert(world_waits(other));
	world_destroy(&w, a, a->id);
	ck_assert(!world_waits(other));
	ck_assert_int_eq(other->code, 0);
	end();
}
END_TEST

START_TEST(members_may_not)
{
	struct world_client *a;

	start();
	a = member(100);
	world_drain(&w, a, "");
	ck_assert_int_eq(a->code, HC_E_PERMISSION);
	ck_assert(!counts().drained);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, nothing_there_is_answered_at_once);
	tcase_add_test(t, the_last_end_answers);
	tcase_add_test(t, ranks_of_another_home_are_waited_for);
	tcase_add_test(t, what_forms_elsewhere_fails_at_once);
	tcase_add_test(t, no_way_leads_in);
	tcase_add_test(t, who_waits_for_others_is_told_at_once);
	tcase_add_test(t, its_time_ends_the_wait_and_nothing_else);
	tcase_add_test(t, a_second_word_ends_the_wait);
	tcase_add_test(t, off_takes_domains_again);
	tcase_add_test(t, who_waits_may_go);
	tcase_add_test(t, members_may_not);
}

int main(void)
{
	return hc_suite_run("core drain", add, 30);
}
