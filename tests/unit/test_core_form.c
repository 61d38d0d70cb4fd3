/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forming a domain on one node: the ways in, and every way that it does not come about.
 *
 * Told as transcripts: what each process is answered, when. Whoever waits is always answered: with
 * a domain, or with a reason that names ranks, processes, values and settings of both sides.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;

static void end(void)
{
	world_end(&w);
}

static void start(uint32_t nodes)
{
	world_start(&w, nodes);
}

/* Those who wait are answered; that the domain failed is told besides. */
static void answers_only(void)
{
	w.show = SHOW_REPLIES;
}

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

/* ---- who has come, who has not ---- */

START_TEST(status_tells_arrivals_while_they_come)
{
	struct world_client *c0, *c2, *looker;

	start(1);
	world_table(&t, 4, 1);
	c0 = member(100);
	c2 = member(102);
	looker = member(999);
	w.opt.name = "live";
	world_join_table(&w, c0, &t, 0);
	w.opt.name = "live";
	world_status(&w, looker, 0);
	w.opt.name = "live";
	world_join_table(&w, c2, &t, 2);
	w.opt.name = "live";
	world_status(&w, looker, 0);
	ck_transcript(
		&w,
		"[    0ms] a 999 status: FORMING, 1 of 4: waiting for rank 1 (192.0.2.2, device "
		"1), 2 (192.0.2.3, device 2), 3 (192.0.2.4, device 3) (3 of 4 missing); absent 1 a "
		"192.0.2.2; absent 2 a 192.0.2.3; absent 3 a 192.0.2.4\n"
		"[    0ms] a 999 status: FORMING, 2 of 4: waiting for rank 1 (192.0.2.2, device "
		"1), 3 (192.0.2.4, device 3) (2 of 4 missing); absent 1 a 192.0.2.2; absent 3 a "
		"192.0.2.4\n");
	end();
}
END_TEST

START_TEST(config_timeout_fails_all_and_names_the_missing)
{
	struct world_client *cl[4];
	struct hc_settings set;
	struct hc_limits lim;
	uint32_t i;

	world_defaults(&lim, &set);
	set.connect_timeout_ns = 3000ull * WORLD_MS;
	snprintf(set.connect_timeout_origin, sizeof(set.connect_timeout_origin),
		 "/etc/hcomm/hcommd.conf:7");
	world_start_with(&w, 1, &lim, &set, 8, 1);
	answers_only();
	world_table(&t, 8, 1);
	for (i = 0; i < 4; i++) {
		cl[i] = member(100 + i);
		world_join_table(&w, cl[i], &t, 2 * i);
	}
	world_advance(&w, 2999);
	ck_transcript(&w, "");
	world_advance(&w, 2);
#define LATE                                                                                       \
	": refused TIMEOUT: domain-#1: no sign of rank 1 (192.0.2.2, device 1), 3 (192.0.2.4, "    \
	"device 3), 5 (192.0.2.6, device 5), 7 (192.0.2.8, device 7) (4 of 8 missing) within 3.0 " \
	"s "                                                                                       \
	"(connect_timeout_s = 3, /etc/hcomm/hcommd.conf:7)\n"
	ck_transcript(&w, "[ 3000ms] a 100 rank 0" LATE "[ 3000ms] a 101 rank 2" LATE
			  "[ 3000ms] a 102 rank 4" LATE "[ 3000ms] a 103 rank 6" LATE);
	for (i = 0; i < 4; i++)
		world_lose(&w, cl[i]);
	world_check_empty(&w);
	end();
}
END_TEST

/* A deadline that one caller gave is its own: the others go on. */
START_TEST(call_timeout_withdraws_one)
{
	struct world_client *c0, *c1, *c2;

	start(1);
	world_table(&t, 3, 1);
	c0 = member(100);
	c1 = member(101);
	c2 = member(102);
	world_join_table(&w, c0, &t, 0);
	world_advance(&w, 100);
	w.opt.timeout_ms = 500;
	world_join_table(&w, c1, &t, 1);
	world_advance(&w, 499);
	ck_transcript(&w, "");
	world_advance(&w, 1);
	ck_transcript(&w,
		      "[  600ms] a 101 rank 1: refused TIMEOUT: domain-#1: no sign of rank 2 "
		      "(192.0.2.3, device 2) (1 of 3 missing) within 0.5 s (limit of the call or "
		      "HCOMM_TIMEOUT_SEC)\n");
	world_join_table(&w, c2, &t, 2);
	world_join_table(&w, c1, &t, 1);
	ck_assert_int_eq(c0->code, 0);
	ck_assert(c0->id && c0->id == c1->id && c0->id == c2->id);
	end();
}
END_TEST

/* A longer wish than the setting holds for the one who said it. */
START_TEST(late_rank_within_a_longer_limit)
{
	struct world_client *c0, *c1;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	w.opt.timeout_ms = 300000;
	world_join_table(&w, c0, &t, 0);
	world_advance(&w, 250000);
	ck_assert(world_waits(c0));
	world_join_table(&w, c1, &t, 1);
	ck_assert_int_eq(c0->code, 0);
	ck_assert(!world_waits(c0) && c0->id == c1->id);
	end();
}
END_TEST

START_TEST(death_while_forming_frees_the_place)
{
	struct world_client *c0, *c1, *again;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	world_join_table(&w, c0, &t, 0);
	world_die(&w, c0);
	world_join_table(&w, c1, &t, 1);
	ck_assert(world_waits(c1));
	again = member(110);
	world_join_table(&w, again, &t, 0);
	ck_transcript(&w,
		      "[    0ms] a 101 rank 1: joined domain-#1, 2 ranks, epoch 1, as 1 on device "
		      "1\n"
		      "[    0ms] a 110 rank 0: joined domain-#1, 2 ranks, epoch 1, as 0 on device "
		      "0\n"
		      "[    0ms] a 101 hears domain-active, ACTIVE\n"
		      "[    0ms] a 110 hears domain-active, ACTIVE\n");
	end();
}
END_TEST

/* What nobody waits for any more is not there: its name is free at once. */
START_TEST(the_last_one_who_withdraws_takes_the_domain_along)
{
	struct world_client *c0, *c1;

	start(1);
	world_table(&t, 3, 1);
	c0 = member(100);
	w.opt.name = "retry";
	world_join_table(&w, c0, &t, 0);
	world_die(&w, c0);
	world_check_empty(&w);
	c1 = member(101);
	world_table(&t, 2, 1); /* another number of ranks is no contradiction with nobody */
	w.opt.name = "retry";
	world_join_table(&w, c1, &t, 0);
	ck_assert(world_waits(c1));
	end();
}
END_TEST

START_TEST(client_gone_before_the_answer)
{
	struct world_client *c0, *c1;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	world_join_table(&w, c0, &t, 0);
	world_lose(&w, c0); /* the process lives: only its connection is gone */
	world_join_table(&w, c1, &t, 1);
	ck_assert(world_waits(c1));
	c0 = member(100);
	world_join_table(&w, c0, &t, 0);
	ck_assert_int_eq(c0->code, 0);
	ck_assert(!world_waits(c1) && c0->id == c1->id);
	world_die(&w, c0);
	world_die(&w, c1);
	world_advance(&w, 6000);
	world_check_empty(&w);
	end();
}
END_TEST

/* Gone while the row is on its way: the domain comes, and is damaged at once. */
START_TEST(client_gone_while_the_row_is_stored)
{
	struct world_client *c0, *c1;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	world_join_table(&w, c0, &t, 0);
	world_store_hold(&w, 0, true);
	world_join_table(&w, c1, &t, 1);
	world_lose(&w, c0);
	ck_assert(world_waits(c1));
	world_store_hold(&w, 0, false);
	ck_assert(!world_waits(c1));
	ck_assert_int_eq(world_record(&w, 0, c1->id)->state, HC_W_domain_state_DAMAGED);
	world_die(&w, c1);
	world_advance(&w, 6000);
	world_lose(&w, c0 = member(7));
	world_check_empty(&w);
	end();
}
END_TEST

/* ---- contradictions ---- */

START_TEST(numbers_of_ranks_differ)
{
	struct world_client *c0, *c1, *c2;

	start(1);
	answers_only();
	c0 = member(100);
	c1 = member(101);
	c2 = member(102);
	w.opt.name = "n";
	world_root_info(&w, c0, 0);
	world_join_root(&w, c0, c0, 3, 0);
	world_join_root(&w, c1, c0, 3, 1);
	world_forget(&w);
	world_join_root(&w, c2, c0, 4, 2);
#define TWO                                                                                        \
	": refused MISMATCH: the ranks disagree on their number: rank 0 (pid 100 on node a) says " \
	"3, rank 2 (pid 102 on node a) says 4\n"
	ck_transcript(&w, "[    0ms] a 100 rank 0" TWO "[    0ms] a 101 rank 1" TWO
			  "[    0ms] a 102 rank 2" TWO);
	world_join_root(&w, c2, c0, 3, 2);
	ck_assert_int_eq(c2->code, HC_E_GONE);
	world_lose(&w, c0);
	world_lose(&w, c1);
	world_lose(&w, c2);
	world_check_empty(&w);
	end();
}
END_TEST

/* The maker of the root info said a number: the first joiner hears it at once. */
START_TEST(number_of_the_root_info_differs)
{
	struct world_client *c0;

	start(1);
	answers_only();
	c0 = member(100);
	world_root_info(&w, c0, 4);
	world_join_root(&w, c0, c0, 2, 0);
	ck_transcript(&w,
		      "[    0ms] a 100 root: root info\n"
		      "[    0ms] a 100 rank 0: refused MISMATCH: the ranks disagree on their "
		      "number: the maker of the root info says 4, rank 0 (pid 100 on node a) says "
		      "2\n");
	world_lose(&w, c0);
	world_check_empty(&w);
	end();
}
END_TEST

START_TEST(tables_differ)
{
	struct world_client *c0, *c1;
	struct world_table other;

	start(1);
	answers_only();
	world_table(&t, 2, 1);
	other = t;
	other.roster.ranks = other.ranks;
	other.roster.servers = other.servers;
	other.ranks[0].port = 77;
	world_table_seal(&other);
	c0 = member(100);
	c1 = member(101);
	w.opt.name = "tables";
	world_join_table(&w, c0, &t, 0);
	w.opt.name = "tables";
	world_join_table(&w, c1, &other, 1);
#define TABLES                                                                                     \
	": refused MISMATCH: the ranks have different tables or member lists: rank 0 (pid 100 on " \
	"node a) has #1, rank 1 (pid 101 on node a) has #2; the first that differs is rank 0 "     \
	"(192.0.2.1, device 0 of server a), in what else is said of it\n"
	ck_transcript(&w, "[    0ms] a 100 rank 0" TABLES "[    0ms] a 101 rank 1" TABLES);
	end();
}
END_TEST

START_TEST(classes_differ)
{
	struct world_client *c0, *c1;

	start(1);
	answers_only();
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	w.opt.priority = 3;
	w.opt.weight = 10;
	world_join_table(&w, c0, &t, 0);
	w.opt.priority = 3;
	w.opt.weight = 20;
	world_join_table(&w, c1, &t, 1);
#define CLASSES                                                                                    \
	": refused MISMATCH: the ranks disagree on class and weight: rank 0 (pid 100 on node a) "  \
	"says 3, 10; rank 1 (pid 101 on node a) says 3, 20\n"
	ck_transcript(&w, "[    0ms] a 100 rank 0" CLASSES "[    0ms] a 101 rank 1" CLASSES);
	w.opt.priority = 8;
	world_join_table(&w, c0, &t, 0);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	end();
}
END_TEST

START_TEST(second_claimant_is_refused_alone)
{
	struct world_client *c0, *c1, *thief;

	start(1);
	c0 = member(100);
	c1 = member(101);
	thief = member(105);
	world_root_info(&w, c0, 2);
	world_join_root(&w, c0, c0, 2, 0);
	world_join_root(&w, thief, c0, 2, 0);
	world_join_root(&w, c1, c0, 2, 1);
	ck_transcript(&w,
		      "[    0ms] a 100 root: root info\n"
		      "[    0ms] a 105 rank 0: refused BUSY: rank 0 is held by process 100 on node "
		      "a since it joined first; this is process 105\n"
		      "[    0ms] a 100 rank 0: joined domain-#1, 2 ranks, epoch 1, as 0 on device "
		      "0\n"
		      "[    0ms] a 101 rank 1: joined domain-#1, 2 ranks, epoch 1, as 1 on device "
		      "1\n"
		      "[    0ms] a 100 hears domain-active, ACTIVE\n"
		      "[    0ms] a 101 hears domain-active, ACTIVE\n");
	end();
}
END_TEST

/* The same process asks again, on a new connection or the same: it is one rank, answered. */
START_TEST(same_process_again)
{
	struct world_client *c0, *second, *c1;

	start(1);
	c0 = member(100);
	c1 = member(101);
	world_root_info(&w, c0, 2);
	w.opt.device = 3;
	world_join_root(&w, c0, c0, 2, 0);
	second = member(100);
	world_join_root(&w, second, c0, 2, 0); /* any device: it has one */
	ck_assert_msg(world_waits(second), "%s", second->text);
	ck_assert(!world_waits(c0)); /* told that it asked again */
	world_join_root(&w, second, c0, 2, 0);
	ck_assert_uint_eq(second->nwaits, 1);
	world_lose(&w, c0);
	world_join_root(&w, c1, c0, 2, 1);
	ck_assert_int_eq(second->code, 0);
	ck_assert(second->id && second->id == c1->id);
	ck_assert_uint_eq(world_seat(&w, c1->id, 0)->device, 3);
	world_lose(&w, second); /* its seat goes with it */
	world_query(&w, c1, HC_VIEW_member, 0, 0, 0);
	world_ops(&w, c1->id, 1, 0, 0);
	world_die(&w, second);
	ck_assert_int_eq(c1->event_kind, HC_W_event_code_RANK_DIED);
	end();
}
END_TEST

/* ... also while the row is being stored: its block is one of the new connection's arena. */
START_TEST(same_process_again_while_stored)
{
	struct world_client *c0, *second, *c1;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	world_join_table(&w, c0, &t, 0);
	world_store_hold(&w, 0, true);
	world_join_table(&w, c1, &t, 1);
	second = member(100);
	world_join_table(&w, second, &t, 0);
	world_store_hold(&w, 0, false);
	ck_assert_int_eq(second->code, 0);
	ck_assert(second->id && second->id == c1->id);
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, status_tells_arrivals_while_they_come);
	tcase_add_test(c, config_timeout_fails_all_and_names_the_missing);
	tcase_add_test(c, call_timeout_withdraws_one);
	tcase_add_test(c, late_rank_within_a_longer_limit);
	tcase_add_test(c, death_while_forming_frees_the_place);
	tcase_add_test(c, the_last_one_who_withdraws_takes_the_domain_along);
	tcase_add_test(c, client_gone_before_the_answer);
	tcase_add_test(c, client_gone_while_the_row_is_stored);
	tcase_add_test(c, numbers_of_ranks_differ);
	tcase_add_test(c, number_of_the_root_info_differs);
	tcase_add_test(c, tables_differ);
	tcase_add_test(c, classes_differ);
	tcase_add_test(c, second_claimant_is_refused_alone);
	tcase_add_test(c, same_process_again);
	tcase_add_test(c, same_process_again_while_stored);
}

int main(void)
{
	return hc_suite_run("core_form", add, 60);
}
