/* SPDX-License-Identifier: Apache-2.0 */
/* Admission, rule by rule: limits, choice of link, gangs, tickets, quotas, links that change. */
#include "suite.h"

#include "admission.h"

static uint64_t hint;

static int ask(struct hc_admit *s, uint64_t now, uint64_t owner, struct hc_admit_piece p, bool wait,
	       uint32_t *n)
{
	struct hc_admit_ask a = adm_ask(owner, &p, 1);
	int r;

	a.wait = wait;
	r = hc_admit_ask(s, now, &a, n, &hint);
	hc_admit_check(s);
	return r;
}

static uint32_t link_of(const struct hc_admit *s, uint32_t request, uint32_t piece)
{
	struct hc_admit_place place;

	hc_admit_piece_place(s, request, piece, &place);
	return place.link;
}

START_TEST(the_reserve_is_never_lent)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	struct hc_admit_use use;
	uint32_t n;

	adm_link(s, 0, 0, 3, 7, 1000, 64);
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(3, 7, 801, 0), true, &n), HC_E_LINK_UNAVAILABLE);
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(7, 3, 0, 801), true, &n), HC_E_LINK_UNAVAILABLE);
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(3, 7, 500, 100), true, &n), 0);
	/* each direction by itself: 500 there leaves 700 back */
	ck_assert_int_eq(ask(s, 1, 2, adm_piece(3, 7, 301, 0), true, &n), HC_E_IN_PROGRESS);
	ck_assert_int_eq(ask(s, 1, 3, adm_piece(7, 3, 700, 300), true, &n), 0);
	hc_admit_link_use(s, 0, &use);
	ck_assert_uint_eq(use.limit_mbps, 800);
	ck_assert_uint_eq(use.used_mbps[0], 800);
	ck_assert_uint_eq(use.used_mbps[1], 800);
	ck_assert_uint_eq(use.used_vcs, 2);
	ck_assert_uint_eq(use.waiting, 1);
	free(s);
}
END_TEST

START_TEST(virtual_channels_are_a_limit_too)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	struct hc_admit_place place;
	uint32_t n, first = 0, k, seen = 0;

	adm_link(s, 0, 0, 0, 1, 1000, 3);
	for (k = 0; k < 3; k++) {
		ck_assert_int_eq(ask(s, 1, k, adm_piece(0, 1, 0, 0), true, &n), 0);
		hc_admit_piece_place(s, n, 0, &place);
		ck_assert_uint_lt(place.vc, 3);
		ck_assert(!(seen & 1u << place.vc));
		seen |= 1u << place.vc;
		first = k ? first : n;
	}
	ck_assert_int_eq(ask(s, 1, 9, adm_piece(1, 0, 0, 0), true, &n), HC_E_IN_PROGRESS);
	hc_admit_release(s, 2, first);
	adm_run(s, 2);
	ck_assert_uint_eq(adm_granted(s), n);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(the_fastest_link_with_room_is_chosen)
{
	struct hc_admit *s = adm_new(4, 32, 32);
	struct hc_admit_piece p = adm_piece(0, 1, 100, 100);
	const struct hc_admit_link slow_data = {
		.a = 0, .b = 1, .type = 6, .carries = true, .up = true, .mbps = 500, .vcs = 64};
	const struct hc_admit_link fast = {
		.a = 0, .b = 1, .type = 2, .carries = false, .up = true, .mbps = 1000, .vcs = 64};
	const struct hc_admit_link near = {
		.a = 0, .b = 1, .type = 3, .carries = false, .up = true, .mbps = 970, .vcs = 64};
	uint32_t n, k, on[4] = {0};

	hc_admit_link_set(s, 0, 0, &slow_data);
	hc_admit_link_set(s, 0, 1, &fast);
	hc_admit_link_set(s, 0, 2, &near);
	/* 1000 and 970 are equal within 5 %: balanced; 500 only when they are full */
	for (k = 0; k < 19; k++) {
		ck_assert_int_eq(ask(s, 1, k, p, true, &n), 0);
		on[link_of(s, n, 0)]++;
		if (k == 13) {
			ck_assert_uint_eq(on[0], 0);
			ck_assert_uint_eq(on[1], 7);
		}
	}
	ck_assert_uint_eq(on[0], 4);
	ck_assert_uint_eq(on[1], 8);
	ck_assert_uint_eq(on[2], 7);
	ck_assert_int_eq(ask(s, 1, 90, p, true, &n), HC_E_IN_PROGRESS);
	hc_admit_release(s, 1, n);
	p.type = 7;
	ck_assert_int_eq(ask(s, 1, 91, p, true, &n), HC_E_LINK_UNAVAILABLE);
	free(s);
}
END_TEST

START_TEST(a_pinned_type_and_data_narrow_the_choice)
{
	struct hc_admit *s = adm_new(3, 8, 8);
	struct hc_admit_piece p = adm_piece(1, 0, 10, 10);
	const struct hc_admit_link direct = {
		.a = 0, .b = 1, .type = 1, .carries = false, .up = true, .mbps = 1000, .vcs = 4};
	const struct hc_admit_link shm = {.a = HC_NONE,
					  .b = HC_NONE,
					  .type = 7,
					  .carries = true,
					  .up = true,
					  .mbps = 100,
					  .vcs = 4};
	uint32_t n;

	hc_admit_link_set(s, 0, 0, &direct);
	hc_admit_link_set(s, 0, 1, &shm);
	ck_assert_int_eq(ask(s, 1, 1, p, true, &n), 0);
	ck_assert_uint_eq(link_of(s, n, 0), 0);
	p.carries = true;
	ck_assert_int_eq(ask(s, 1, 1, p, true, &n), 0);
	ck_assert_uint_eq(link_of(s, n, 0), 1);
	p.carries = false;
	p.type = 7;
	ck_assert_int_eq(ask(s, 1, 1, p, true, &n), 0);
	ck_assert_uint_eq(link_of(s, n, 0), 1);
	/* a link of any two end points serves those that no other joins */
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(5, 9, 1, 1), true, &n), 0);
	ck_assert_uint_eq(link_of(s, n, 0), 1);
	free(s);
}
END_TEST

START_TEST(a_gang_is_granted_whole_or_not_at_all)
{
	struct hc_admit *s = adm_new(3, 8, 32);
	struct hc_admit_piece p[3] = {adm_piece(0, 1, 400, 0), adm_piece(1, 2, 400, 0),
				      adm_piece(2, 3, 400, 0)};
	struct hc_admit_ask a = adm_ask(7, p, 3);
	struct hc_admit_use use;
	uint32_t gang, one, k;

	for (k = 0; k < 3; k++)
		adm_link(s, 0, k, k, k + 1, 1000, 64);
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(2, 3, 500, 0), true, &one), 0);
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &gang, &hint), HC_E_IN_PROGRESS);
	for (k = 0; k < 2; k++) {
		hc_admit_link_use(s, k, &use);
		ck_assert_uint_eq(use.used_mbps[0], 0);
		ck_assert_uint_eq(use.waiting, 1);
	}
	/* it holds up nobody on the two links that are free */
	ck_assert_int_eq(ask(s, 1, 2, adm_piece(0, 1, 100, 0), true, &k), 0);
	hc_admit_release(s, 2, one);
	adm_run(s, 2);
	ck_assert_uint_eq(adm_granted(s), gang);
	ck_assert_uint_eq(link_of(s, gang, 2), 2);
	hc_admit_collect(s, gang);
	hc_admit_release_piece(s, 3, gang, 1);
	hc_admit_link_use(s, 1, &use);
	ck_assert_uint_eq(use.used_mbps[0], 0);
	hc_admit_release_piece(s, 3, gang, 0);
	ck_assert_int_eq(hc_admit_state(s, gang), HC_ADMIT_HELD);
	hc_admit_release_piece(s, 3, gang, 2);
	ck_assert_int_eq(hc_admit_state(s, gang), HC_ADMIT_FREE);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(a_gang_larger_than_its_links_is_refused_at_once)
{
	struct hc_admit *s = adm_new(1, 8, 32);
	struct hc_admit_piece p[3] = {adm_piece(0, 1, 300, 0), adm_piece(0, 1, 300, 0),
				      adm_piece(0, 1, 300, 0)};
	struct hc_admit_ask a = adm_ask(7, p, 3);
	uint32_t n;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_LINK_UNAVAILABLE);
	a.npieces = 2;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), 0);
	a.npieces = 0;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_INVALID);
	a.npieces = 1;
	a.weight = 0;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_INVALID);
	a.weight = 1;
	a.order = 8;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_INVALID);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(an_uncollected_grant_goes_back)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	enum hc_admit_news news;
	uint32_t n, k;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask(s, 0, 1, adm_piece(0, 1, 800, 0), true, &n), 0);
	ck_assert_int_eq(ask(s, 1 * SEC, 2, adm_piece(0, 1, 800, 0), true, &k), HC_E_IN_PROGRESS);
	ck_assert_uint_eq(hc_admit_deadline(s), 5 * SEC);
	adm_run(s, 5 * SEC - 1);
	ck_assert(!hc_admit_news(s, &n, &news));
	adm_run(s, 5 * SEC);
	ck_assert(hc_admit_news(s, &n, &news) && news == HC_ADMIT_NEWS_LAPSED);
	ck_assert_int_eq(hc_admit_state(s, n), HC_ADMIT_FREE);
	ck_assert_uint_eq(adm_granted(s), k);
	hc_admit_collect(s, k);
	adm_run(s, 100 * SEC);
	ck_assert_int_eq(hc_admit_state(s, k), HC_ADMIT_HELD);
	free(s);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_piece p = adm_piece(0, 1, 800, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	enum hc_admit_news news;
	uint32_t n, k, ahead;
	uint64_t estimate;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	a.hold_ns = 20 * SEC;
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &n, &hint), 0);
	hc_admit_collect(s, n);
	a.deadline = 3 * SEC;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_IN_PROGRESS);
	a.deadline = HC_NEVER;
	ck_assert_int_eq(hc_admit_ask(s, 2, &a, &k, &hint), HC_E_IN_PROGRESS);
	hc_admit_outlook(s, 2, n, &ahead, &estimate);
	ck_assert_uint_eq(ahead, 0);
	ck_assert_uint_eq(estimate, 20 * SEC - 2);
	hc_admit_outlook(s, 2, k, &ahead, &estimate);
	ck_assert_uint_eq(ahead, 1);
	adm_run(s, 3 * SEC);
	ck_assert(hc_admit_news(s, &k, &news) && k == n && news == HC_ADMIT_NEWS_EXPIRED);
	hc_admit_check(s);
	free(s);
}
END_TEST

static void set_quota(struct hc_admit *s, uint32_t percent)
{
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .quota_percent = percent,
					      .aging_ns = 10 * SEC,
					      .grant_ttl_ns = 5 * SEC,
					      .hint_hold_ns = 1 * SEC};

	hc_admit_set(s, &set);
}

START_TEST(a_quota_is_refused_only_if_it_can_never_be_had)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_piece p = adm_piece(0, 1, 201, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	uint32_t n, k;

	set_quota(s, 25);
	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), HC_E_LIMIT);
	p.mbps[0] = 150;
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &n, &hint), 0);
	ck_assert_int_eq(hc_admit_ask(s, 1, &a, &k, &hint), HC_E_IN_PROGRESS);
	/* others are not held up by it */
	ck_assert_int_eq(ask(s, 1, 2, adm_piece(0, 1, 200, 0), true, &k), 0);
	hc_admit_release(s, 2, n);
	adm_run(s, 2);
	ck_assert_uint_ne(adm_granted(s), HC_NONE);
	hc_admit_check(s);
	free(s);
}
END_TEST

static int ask_of(struct hc_admit *s, uint64_t now, uint64_t user, uint64_t owner, uint32_t mbps,
		  uint32_t *n)
{
	const struct hc_admit_piece p = adm_piece(0, 1, mbps, 0);
	struct hc_admit_ask a = adm_ask(owner, &p, 1);

	a.user = user;
	return hc_admit_ask(s, now, &a, n, &hint);
}

START_TEST(a_user_has_one_quota_whatever_its_owners_are)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	struct hc_admit_excess x;
	struct hc_admit_piece p = adm_piece(0, 1, 200, 0);
	uint32_t n, k;

	set_quota(s, 50); /* 400 of 800, 2 of 4 */
	adm_link(s, 0, 0, 0, 1, 1000, 4);
	ck_assert_int_eq(ask_of(s, 1, 7, 1, 300, &n), 0);
	ck_assert_int_eq(ask_of(s, 1, 7, 2, 200, &k), HC_E_IN_PROGRESS);
	ck_assert(hc_admit_over_quota(s, 7, &p, 1, false, &x));
	ck_assert_uint_eq(x.held, 300);
	ck_assert_uint_eq(x.asked, 200);
	ck_assert_uint_eq(x.most, 400);
	ck_assert(!hc_admit_over_quota(s, 7, &p, 1, true, &x)); /* not for good */
	ck_assert(!hc_admit_over_quota(s, 8, &p, 1, false, &x));
	ck_assert_int_eq(ask_of(s, 1, 8, 3, 400, &n), 0);
	/* the same of virtual channels */
	ck_assert_int_eq(ask_of(s, 1, 7, 4, 0, &n), 0);
	ck_assert_int_eq(ask_of(s, 1, 7, 5, 0, &n), HC_E_IN_PROGRESS);
	ck_assert_int_eq(ask_of(s, 1, 8, 6, 0, &n), 0);
	p.mbps[0] = 401;
	ck_assert(hc_admit_over_quota(s, 8, &p, 1, true, &x));
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(one_over_its_quota_holds_up_no_other_user)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	struct hc_admit_use use;
	uint32_t first, large, small, n;

	set_quota(s, 50);
	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask_of(s, 0, 7, 1, 300, &first), 0);
	hc_admit_collect(s, first);
	ck_assert_int_eq(ask_of(s, 1, 7, 2, 200, &large), HC_E_IN_PROGRESS);
	/* it ages, and has waited for long; whoever else comes finds the link with room */
	adm_run(s, 60 * SEC);
	hc_admit_link_use(s, 0, &use);
	ck_assert_uint_eq(use.waiting, 1);
	ck_assert_int_eq(ask_of(s, 60 * SEC, 8, 3, 400, &n), 0);
	hc_admit_release(s, 60 * SEC, n);
	/* but of its own user nobody goes past it */
	ck_assert_int_eq(ask_of(s, 60 * SEC, 7, 4, 50, &small), HC_E_IN_PROGRESS);
	adm_run(s, 80 * SEC);
	ck_assert_uint_eq(adm_granted(s), HC_NONE);
	hc_admit_check(s);
	/* its user has room again, the link has not: now the link is saved for it */
	ck_assert_int_eq(ask_of(s, 80 * SEC, 8, 3, 400, &n), 0);
	hc_admit_collect(s, n);
	ck_assert_int_eq(ask_of(s, 80 * SEC, 9, 5, 100, &n), 0);
	hc_admit_collect(s, n);
	ck_assert_int_eq(ask_of(s, 80 * SEC, 9, 5, 250, &n), HC_E_IN_PROGRESS);
	hc_admit_release(s, 81 * SEC, first);
	adm_run(s, 81 * SEC);
	ck_assert_uint_eq(adm_granted(s), large);
	ck_assert_uint_eq(adm_granted(s), small);
	ck_assert_uint_eq(adm_granted(s), HC_NONE);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(one_over_its_quota_that_goes_lets_its_user_go_on)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	uint32_t first, large, small;

	set_quota(s, 50);
	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask_of(s, 0, 7, 1, 300, &first), 0);
	hc_admit_collect(s, first);
	ck_assert_int_eq(ask_of(s, 1, 7, 2, 200, &large), HC_E_IN_PROGRESS);
	adm_run(s, 60 * SEC);
	ck_assert_int_eq(ask_of(s, 60 * SEC, 7, 4, 50, &small), HC_E_IN_PROGRESS);
	hc_admit_release(s, 61 * SEC, large);
	adm_run(s, 61 * SEC);
	ck_assert_uint_eq(adm_granted(s), small);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(a_lowered_quota_takes_nothing_and_gives_nothing)
{
	struct hc_admit *s = adm_new(1, 16, 16);
	struct hc_admit_piece p = adm_piece(0, 1, 300, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	const struct hc_admit_place at = {.link = 0, .vc = 9};
	uint32_t first, back, n, none;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask_of(s, 0, 7, 1, 300, &first), 0);
	hc_admit_collect(s, first);
	set_quota(s, 25); /* 200 */
	/* what an earlier daemon granted is taken back all the same, and counts */
	a.user = 7;
	ck_assert_int_eq(hc_admit_take_back(s, 1, &a, &at, &back), 0);
	ck_assert_int_eq(ask_of(s, 1, 7, 1, 100, &n), HC_E_IN_PROGRESS);
	ck_assert_int_eq(ask_of(s, 1, 7, 1, 201, &none), HC_E_LIMIT);
	ck_assert_int_eq(hc_admit_state(s, first), HC_ADMIT_HELD);
	hc_admit_release(s, 2, first);
	adm_run(s, 2);
	ck_assert_uint_eq(adm_granted(s), HC_NONE);
	hc_admit_release(s, 3, back);
	adm_run(s, 3);
	ck_assert_uint_eq(adm_granted(s), n);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(with_nothing_to_go_by_a_hint_is_unknown)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_counts counts;
	enum hc_admit_news news;
	uint32_t n, k;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask(s, 0, 1, adm_piece(0, 1, 800, 0), false, &n), 0);
	hc_admit_collect(s, n);
	ck_assert_int_eq(ask(s, 1, 2, adm_piece(0, 1, 800, 0), false, &k), HC_E_AGAIN);
	ck_assert(hint == HC_ADMIT_HINT_NONE);
	hc_admit_counts(s, &counts);
	ck_assert_uint_eq(counts.hints, 0);
	ck_assert_uint_eq(counts.hints_unknown, 1);
	/* the ticket costs nobody anything and keeps its place for a while */
	hc_admit_release(s, 2 * SEC, n);
	ck_assert_int_eq(ask(s, 2 * SEC, 3, adm_piece(0, 1, 700, 0), true, &n), 0);
	hc_admit_release(s, 3 * SEC, n);
	ck_assert_int_eq(hc_admit_again(s, 3 * SEC, k, false, HC_NEVER, &hint), 0);
	hc_admit_collect(s, k);
	ck_assert_int_eq(ask(s, 4 * SEC, 2, adm_piece(0, 1, 800, 0), false, &n), HC_E_AGAIN);
	adm_run(s, 60 * SEC);
	ck_assert(hc_admit_news(s, &k, &news) && k == n && news == HC_ADMIT_NEWS_EXPIRED);
	free(s);
}
END_TEST

START_TEST(a_declared_end_makes_a_hint_that_is_kept)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_piece p = adm_piece(0, 1, 800, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	struct hc_admit_counts counts;
	uint32_t holder, ticket, late;
	uint64_t at;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	a.hold_ns = 2 * SEC;
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &holder, &hint), 0);
	hc_admit_collect(s, holder);
	a.wait = false;
	a.owner = 2;
	ck_assert_int_eq(hc_admit_ask(s, SEC, &a, &ticket, &hint), HC_E_AGAIN);
	ck_assert_uint_ge(hint, 1 * SEC);
	ck_assert_uint_le(hint, 4 * SEC);
	at = SEC + hint;
	/* too early: the rest of the same hint */
	ck_assert_int_eq(hc_admit_again(s, SEC + MS, ticket, false, 0, &hint), HC_E_AGAIN);
	ck_assert_uint_eq(hint, at - SEC - MS);
	adm_run(s, 2 * SEC);
	hc_admit_release(s, 2 * SEC, holder);
	adm_run(s, 2 * SEC);
	/* it is kept for the one who was told to come, and nobody is told anything */
	ck_assert_int_eq(hc_admit_state(s, ticket), HC_ADMIT_GRANTED);
	ck_assert_uint_eq(adm_granted(s), HC_NONE);
	ck_assert_int_eq(ask(s, 2 * SEC, 3, adm_piece(0, 1, 1, 0), true, &late), HC_E_IN_PROGRESS);
	adm_run(s, at);
	ck_assert_int_eq(hc_admit_again(s, at, ticket, false, 0, &hint), 0);
	hc_admit_collect(s, ticket);
	hc_admit_counts(s, &counts);
	ck_assert_uint_eq(counts.hints_kept, 1);
	ck_assert_uint_eq(counts.hints_broken, 0);
	hc_admit_check(s);
	free(s);
}
END_TEST

START_TEST(a_ticket_that_nobody_uses_ends)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_piece p = adm_piece(0, 1, 800, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	enum hc_admit_news news;
	uint32_t holder, ticket, n;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	a.hold_ns = SEC;
	a.wait = false;
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &holder, &hint), 0);
	hc_admit_collect(s, holder);
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &ticket, &hint), HC_E_AGAIN);
	adm_run(s, SEC);
	hc_admit_release(s, SEC, holder);
	adm_run(s, hint);
	ck_assert_int_eq(hc_admit_state(s, ticket), HC_ADMIT_GRANTED);
	adm_run(s, hint + SEC);
	ck_assert(hc_admit_news(s, &n, &news) && n == ticket && news == HC_ADMIT_NEWS_EXPIRED);
	ck_assert_int_eq(ask(s, 9 * SEC, 5, p, false, &n), 0);
	free(s);
}
END_TEST

/* Two tickets; the first was granted what the second one needs, but the second is here first. */
static void two_tickets(bool with_aged)
{
	struct hc_admit *s = adm_new(1, 32, 32);
	struct hc_admit_piece p = adm_piece(0, 1, 400, 0);
	struct hc_admit_ask a = adm_ask(1, &p, 1);
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = SEC / 10,
					      .grant_ttl_ns = 5 * SEC,
					      .hint_hold_ns = SEC};
	struct hc_admit_counts counts;
	uint32_t held[2], ticket[2], waiter, k;
	uint64_t at[2], now;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	hc_admit_set(s, &set);
	a.hold_ns = SEC;
	for (k = 0; k < 2; k++) {
		ck_assert_int_eq(hc_admit_ask(s, k * SEC / 2, &a, &held[k], &hint), 0);
		hc_admit_collect(s, held[k]);
	}
	a.wait = false;
	for (k = 0; k < 2; k++) {
		ck_assert_int_eq(hc_admit_ask(s, SEC / 2 + k, &a, &ticket[k], &hint), HC_E_AGAIN);
		at[k] = SEC / 2 + k + hint;
		if (with_aged && !k)
			ck_assert_int_eq(ask(s, SEC / 2, 9, p, true, &waiter), HC_E_IN_PROGRESS);
	}
	ck_assert_uint_lt(at[0], at[1]);
	/* nothing comes back in time for the first, which is told again and again, until its time
	 * is after that of the second */
	while (at[0] <= at[1]) {
		adm_run(s, at[0]);
		now = at[0];
		ck_assert_int_eq(hc_admit_again(s, now, ticket[0], false, 0, &hint), HC_E_AGAIN);
		at[0] = now + hint;
	}
	adm_run(s, at[1] - 1);
	ck_assert_int_eq(hc_admit_state(s, ticket[1]), HC_ADMIT_AWAITED);
	ck_assert_uint_gt(at[0], at[1]);
	hc_admit_release(s, at[1] - 1, held[0]);
	adm_run(s, at[1] - 1);
	ck_assert_int_eq(hc_admit_state(s, ticket[0]), HC_ADMIT_GRANTED);
	if (with_aged) { /* it was there before the second: nobody borrows past it */
		ck_assert_int_eq(hc_admit_again(s, at[1], ticket[1], false, 0, &hint), HC_E_AGAIN);
		hc_admit_release(s, at[1], held[1]);
		adm_run(s, at[1]);
		ck_assert_uint_eq(adm_granted(s), waiter);
		free(s);
		return;
	}
	ck_assert_int_eq(hc_admit_again(s, at[1], ticket[1], false, 0, &hint), 0);
	hc_admit_collect(s, ticket[1]);
	ck_assert_int_eq(hc_admit_state(s, ticket[0]), HC_ADMIT_AWAITED);
	hc_admit_check(s);
	/* and it gets it back in time */
	hc_admit_release(s, at[1], held[1]);
	adm_run(s, at[0]);
	ck_assert_int_eq(hc_admit_again(s, at[0], ticket[0], false, 0, &hint), 0);
	hc_admit_counts(s, &counts);
	ck_assert_uint_eq(counts.hints_kept, 2);
	hc_admit_check(s);
	free(s);
}

START_TEST(one_who_is_here_borrows_from_one_who_comes_later)
{
	two_tickets(false);
}
END_TEST

START_TEST(nobody_borrows_past_an_aged_request)
{
	two_tickets(true);
}
END_TEST

START_TEST(a_link_that_shrank_grants_nothing_until_it_fits)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct hc_admit_use use;
	uint32_t a, b, n;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	ck_assert_int_eq(ask(s, 1, 1, adm_piece(0, 1, 400, 0), true, &a), 0);
	ck_assert_int_eq(ask(s, 1, 2, adm_piece(0, 1, 300, 0), true, &b), 0);
	adm_link(s, 2, 0, 0, 1, 500, 64);
	hc_admit_link_use(s, 0, &use);
	ck_assert_uint_eq(use.used_mbps[0], 700);
	ck_assert_uint_eq(use.limit_mbps, 400);
	ck_assert_int_eq(ask(s, 3, 3, adm_piece(0, 1, 0, 10), true, &n), HC_E_IN_PROGRESS);
	hc_admit_release(s, 4, b);
	adm_run(s, 4);
	ck_assert_uint_eq(adm_granted(s), n);
	hc_admit_check(s);
	free(s);
}
END_TEST

/* A gang over a link that fails stays out of the way of others, also when it is old, and goes on
 * when the link is back. */
START_TEST(who_waits_for_a_failed_link_holds_up_nobody)
{
	struct hc_admit *s = adm_new(2, 16, 16);
	struct hc_admit_piece p[2] = {adm_piece(0, 1, 800, 0), adm_piece(1, 2, 800, 0)};
	struct hc_admit_ask a = adm_ask(1, p, 2);
	struct hc_admit_link down = {
		.a = 1, .b = 2, .type = 1, .carries = true, .up = false, .mbps = 1000, .vcs = 64};
	uint32_t gang, n;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	adm_link(s, 0, 1, 1, 2, 1000, 64);
	ck_assert_int_eq(ask(s, 0, 2, adm_piece(1, 2, 1, 0), true, &n), 0);
	hc_admit_collect(s, n);
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &gang, &hint), HC_E_IN_PROGRESS);
	adm_run(s, 11 * SEC);
	/* old: what is free on the first link is saved for it */
	ck_assert_int_eq(ask(s, 11 * SEC, 3, adm_piece(0, 1, 10, 0), true, &n), HC_E_IN_PROGRESS);
	hc_admit_link_set(s, 12 * SEC, 1, &down);
	adm_run(s, 12 * SEC);
	ck_assert_uint_eq(adm_granted(s), n);
	ck_assert_int_eq(ask(s, 12 * SEC, 3, adm_piece(1, 2, 1, 0), true, &n),
			 HC_E_LINK_UNAVAILABLE);
	down.up = true;
	down.mbps = 4000;
	hc_admit_link_set(s, 13 * SEC, 1, &down);
	adm_run(s, 13 * SEC);
	hc_admit_check(s);
	ck_assert_int_eq(ask(s, 14 * SEC, 3, adm_piece(0, 1, 1, 0), true, &n), HC_E_IN_PROGRESS);
	free(s);
}
END_TEST

struct seen {
	uint32_t count, request[4], limit;
};

static bool see(uint32_t request, uint32_t piece, void *context)
{
	struct seen *seen = context;

	ck_assert_uint_eq(piece, 0);
	seen->request[seen->count++] = request;
	return seen->count < seen->limit;
}

START_TEST(holders_are_named_in_order_of_grant)
{
	struct hc_admit *s = adm_new(1, 8, 8);
	struct seen seen = {.limit = 9};
	uint32_t n[3], k;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	for (k = 0; k < 3; k++)
		ck_assert_int_eq(ask(s, k, k, adm_piece(0, 1, 10, 0), true, &n[k]), 0);
	hc_admit_holders(s, 0, see, &seen);
	ck_assert_uint_eq(seen.count, 3);
	for (k = 0; k < 3; k++)
		ck_assert_uint_eq(seen.request[k], n[k]);
	seen = (struct seen){.limit = 2};
	hc_admit_holders(s, 0, see, &seen);
	ck_assert_uint_eq(seen.count, 2);
	free(s);
}
END_TEST

START_TEST(the_limits_of_the_node_are_answers)
{
	struct hc_admit *s = adm_new(1, 3, 8);
	struct hc_admit_piece p[8];
	struct hc_admit_ask a = adm_ask(1, p, 8);
	uint32_t n, k;

	adm_link(s, 0, 0, 0, 1, 1000, 64);
	for (k = 0; k < 8; k++)
		p[k] = adm_piece(0, 1, 1, 1);
	ck_assert_int_eq(hc_admit_ask(s, 0, &a, &n, &hint), 0);
	ck_assert_int_eq(ask(s, 0, 1, p[0], true, &k), HC_E_LIMIT);
	hc_admit_release(s, 1, n);
	for (k = 0; k < 3; k++)
		ck_assert_int_eq(ask(s, 1, k, p[0], true, &n), 0);
	ck_assert_int_eq(ask(s, 1, 9, p[0], true, &n), HC_E_LIMIT);
	hc_admit_check(s);
	free(s);
}
END_TEST

/* Gangs over all pairs of links, in both orders, from many owners: something always moves. */
START_TEST(gangs_never_lock_each_other)
{
	struct hc_admit *s = adm_new(6, 64, 256);
	uint64_t dice = 99, now = 1, ends[64] = {0};
	uint32_t asked = 0, done = 0, n, k, still = 0;

	for (k = 0; k < 6; k++)
		adm_link(s, 0, k, k, k + 1, 1000, 4);
	while (done < 10000) {
		const uint32_t before = done;

		for (n = 0; n < 64; n++)
			if (ends[n] && ends[n] <= now) {
				ends[n] = 0;
				hc_admit_release(s, now, n);
				done++;
			}
		while (asked < 10000 && asked - done < 48) {
			struct hc_admit_piece p[4];
			struct hc_admit_ask a = adm_ask(asked % 16, p, 2 + adm_roll(&dice, 3));

			for (k = 0; k < a.npieces; k++) {
				const uint32_t l = adm_roll(&dice, 6);

				p[k] = adm_piece(l, l + 1, 200 * adm_roll(&dice, 2), 200);
			}
			ck_assert_int_ne(hc_admit_ask(s, now, &a, &n, &hint), HC_E_LIMIT);
			asked++;
			if (hc_admit_state(s, n) == HC_ADMIT_GRANTED) {
				hc_admit_collect(s, n);
				ends[n] = now + SEC;
			}
		}
		adm_run(s, now);
		while ((n = adm_granted(s)) != HC_NONE) {
			hc_admit_collect(s, n);
			ends[n] = now + SEC;
		}
		still = done > before ? 0 : still + 1;
		ck_assert_uint_lt(still, 50);
		now += 100 * MS;
	}
	hc_admit_check(s);
	free(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_reserve_is_never_lent);
	tcase_add_test(t, virtual_channels_are_a_limit_too);
	tcase_add_test(t, the_fastest_link_with_room_is_chosen);
	tcase_add_test(t, a_pinned_type_and_data_narrow_the_choice);
	tcase_add_test(t, a_gang_is_granted_whole_or_not_at_all);
	tcase_add_test(t, a_gang_larger_than_its_links_is_refused_at_once);
	tcase_add_test(t, an_uncollected_grant_goes_back);
	tcase_add_test(t, a_wait_ends_at_its_deadline);
	tcase_add_test(t, a_quota_is_refused_only_if_it_can_never_be_had);
	tcase_add_test(t, a_user_has_one_quota_whatever_its_owners_are);
	tcase_add_test(t, one_over_its_quota_holds_up_no_other_user);
	tcase_add_test(t, one_over_its_quota_that_goes_lets_its_user_go_on);
	tcase_add_test(t, a_lowered_quota_takes_nothing_and_gives_nothing);
	tcase_add_test(t, with_nothing_to_go_by_a_hint_is_unknown);
	tcase_add_test(t, a_declared_end_makes_a_hint_that_is_kept);
	tcase_add_test(t, a_ticket_that_nobody_uses_ends);
	tcase_add_test(t, one_who_is_here_borrows_from_one_who_comes_later);
	tcase_add_test(t, nobody_borrows_past_an_aged_request);
	tcase_add_test(t, a_link_that_shrank_grants_nothing_until_it_fits);
	tcase_add_test(t, who_waits_for_a_failed_link_holds_up_nobody);
	tcase_add_test(t, holders_are_named_in_order_of_grant);
	tcase_add_test(t, the_limits_of_the_node_are_answers);
	tcase_add_test(t, gangs_never_lock_each_other);
}

int main(void)
{
	return hc_suite_run("admit", add, 60);
}
