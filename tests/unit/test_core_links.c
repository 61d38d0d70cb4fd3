/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links in the core: numbers, names and states, and that the admission hears what is usable.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "worldimp.h"

static struct world w;
static struct world_client *cl;

static void start(uint32_t links)
{
	struct hc_limits lim;
	struct hc_settings set;

	world_defaults(&lim, &set);
	lim.links = links;
	world_start_with(&w, 1, &lim, &set, 4, 1);
	cl = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
}

static void end(void)
{
	world_end(&w);
}

static void tell(uint8_t type, uint32_t a, uint32_t b, uint32_t lane, uint32_t mbps, bool present)
{
	struct hc_link_fact f = {.type = type,
				 .a = a,
				 .b = b,
				 .lane = lane,
				 .mbps = mbps,
				 .vcs = 4,
				 .present = present,
				 .source = "test"};

	snprintf(f.mbps_source, sizeof(f.mbps_source), "%s", mbps ? "test" : "unknown");
	world_link(&w, 0, &f);
}

static const char *name(uint32_t n)
{
	static char text[HC_LINK_NAME];

	return hc_link_name(w.core[0], n, text, sizeof(text));
}

static const char *state(uint32_t n)
{
	return hc_link_state(w.core[0], n);
}

static uint32_t limit(uint32_t n)
{
	struct hc_admit_use use;

	hc_admit_link_use(w.core[0]->admit, n, &use);
	return use.limit_mbps;
}

static uint32_t rows(const char *wanted)
{
	w.opt.name = wanted;
	world_query(&w, cl, HC_VIEW_link, 0, 0, 0);
	w.opt.name = NULL;
	return cl->nrows;
}

/* May the admission give one channel from 0 to 1 over that type, with that share? */
static int try_it(uint8_t type, uint32_t mbps)
{
	const struct hc_admit_piece piece = {.from = 0, .to = 1, .type = type, .mbps = {mbps, 0}};
	const struct hc_admit_ask ask = {.owner = 7,
					 .order = 3,
					 .weight = 1,
					 .deadline = HC_NEVER,
					 .pieces = &piece,
					 .npieces = 1};
	uint32_t request = HC_NONE;
	uint64_t hint;
	int r = hc_admit_ask(w.core[0]->admit, w.now, &ask, &request, &hint);

	if (!r || r == HC_E_AGAIN || r == HC_E_IN_PROGRESS)
		hc_admit_release(w.core[0]->admit, w.now, request);
	return r;
}

START_TEST(links_are_numbered_as_they_come_and_named_by_type_and_ends)
{
	start(8);
	tell(HC_W_link_type_SHM, HC_NONE, HC_NONE, 0, 20000, true);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	tell(HC_W_link_type_HCCS, 0, 1, 1, 1000, true);
	tell(HC_W_link_type_SHM, 0, 3, 0, 50, true);
	ck_assert_str_eq(name(0), "shm");
	ck_assert_str_eq(name(1), "hccs:0-1");
	ck_assert_str_eq(name(2), "hccs:0-1.1");
	ck_assert_str_eq(name(3), "shm:0-3");
	ck_assert_uint_eq(rows(NULL), 4);
	ck_assert_uint_eq(rows("hccs:0-1.1"), 1);
	ck_assert_uint_eq(rows("hccs:0-2"), 0);
	end();
}
END_TEST

START_TEST(a_fact_of_the_same_link_replaces_the_earlier)
{
	start(8);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 0, true);
	ck_assert_uint_eq(limit(0), 0);
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 0), 0); /* a channel without a share */
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 1), HC_E_LINK_UNAVAILABLE);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	ck_assert_uint_eq(limit(0), 800);
	ck_assert_uint_eq(rows(NULL), 1);
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 800), 0);
	end();
}
END_TEST

START_TEST(a_link_is_up_while_both_its_devices_are)
{
	start(8);
	tell(HC_W_link_type_SHM, HC_NONE, HC_NONE, 0, 20000, true);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	tell(HC_W_link_type_HCCS, 0, 9, 0, 1000, true); /* no device 9 yet */
	ck_assert_str_eq(state(1), "up");
	ck_assert_str_eq(state(2), "down");
	world_device(&w, 0, 1, 2, true, "offline");
	ck_assert_str_eq(state(0), "up");
	ck_assert_str_eq(state(1), "down");
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 1), HC_E_LINK_UNAVAILABLE);
	world_device(&w, 0, 1, 2, true, "ok");
	ck_assert_str_eq(state(1), "up");
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 1), 0);
	world_device(&w, 0, 9, 0, true, "unknown");
	ck_assert_str_eq(state(2), "up");
	world_device(&w, 0, 0, 1, false, "ok");
	ck_assert_str_eq(state(1), "down");
	ck_assert_str_eq(state(2), "down");
	end();
}
END_TEST

/* What is granted outlives the link, and the link its description, until nothing is. */
START_TEST(a_link_that_went_away_stays_while_something_is_granted)
{
	const struct hc_admit_piece piece = {
		.from = 0, .to = 1, .type = HC_W_link_type_HCCS, .mbps = {100, 0}};
	const struct hc_admit_ask ask = {.owner = 7,
					 .order = 3,
					 .weight = 1,
					 .deadline = HC_NEVER,
					 .pieces = &piece,
					 .npieces = 1};
	uint32_t request;
	uint64_t hint;

	start(2);
	w.quiet_checks = true; /* this request is no channel's */
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	ck_assert_int_eq(hc_admit_ask(w.core[0]->admit, w.now, &ask, &request, &hint), 0);
	hc_admit_collect(w.core[0]->admit, request);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, false);
	ck_assert_str_eq(state(0), "gone");
	ck_assert_uint_eq(rows(NULL), 1);
	ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 1), HC_E_LINK_UNAVAILABLE);
	hc_admit_release(w.core[0]->admit, w.now, request);
	ck_assert_uint_eq(rows(NULL), 0);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 500, true); /* it comes back under its number */
	ck_assert_uint_eq(rows(NULL), 1);
	ck_assert_uint_eq(limit(0), 400);
	end();
}
END_TEST

START_TEST(numbers_of_links_that_went_away_are_used_again)
{
	start(2);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	tell(HC_W_link_type_PCIE, 0, 1, 0, 100, true);
	tell(HC_W_link_type_SIO, 0, 1, 0, 100, true); /* one too many */
	ck_assert_uint_eq(rows(NULL), 2);
	tell(HC_W_link_type_SIO, 0, 1, 0, 100, false); /* of one that is not known */
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, false);
	for (uint32_t i = 0; i < 50; i++) { /* as many reloads */
		tell(HC_W_link_type_SIO, 1, 2 + i % 2, 0, 70 + i, true);
		ck_assert_uint_eq(rows(NULL), 2);
		ck_assert_str_eq(name(0), i % 2 ? "sio:1-3" : "sio:1-2");
		ck_assert_uint_eq(limit(0), (70 + i) * 80 / 100);
		ck_assert_int_eq(try_it(HC_W_link_type_HCCS, 0), HC_E_LINK_UNAVAILABLE);
		ck_assert_int_eq(try_it(HC_W_link_type_PCIE, 0), 0);
		tell(HC_W_link_type_SIO, 1, 2 + i % 2, 0, 70 + i, false);
	}
	ck_assert_uint_eq(rows(NULL), 1);
	end();
}
END_TEST

START_TEST(a_new_share_of_links_holds_at_once)
{
	struct hc_settings set;
	struct hc_limits lim;
	struct hc_event ev = {.kind = HC_EV_CONFIG, .u.settings = &set};

	start(2);
	tell(HC_W_link_type_HCCS, 0, 1, 0, 1000, true);
	ck_assert_uint_eq(limit(0), 800);
	world_defaults(&lim, &set);
	set.bandwidth_limit_percent = 50;
	world_event(&w, 0, &ev);
	ck_assert_uint_eq(limit(0), 500);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_links");
	TCase *t = tcase_create("core_links");
	SRunner *r;
	int failed;

	tcase_add_test(t, links_are_numbered_as_they_come_and_named_by_type_and_ends);
	tcase_add_test(t, a_fact_of_the_same_link_replaces_the_earlier);
	tcase_add_test(t, a_link_is_up_while_both_its_devices_are);
	tcase_add_test(t, a_link_that_went_away_stays_while_something_is_granted);
	tcase_add_test(t, numbers_of_links_that_went_away_are_used_again);
	tcase_add_test(t, a_new_share_of_links_holds_at_once);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
