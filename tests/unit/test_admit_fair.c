/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is served how often: shares of owners, strict classes, aging, and what may overtake what.
 *
 * One link of a few channels; each owner keeps more waiting than it can have, holds what it gets
 * for one second, and asks again. Every grant is written down in order, and the figures are taken
 * from that list.
 */
#include "suite.h"

#include "admission.h"

#define GRANTS 3000u
#define OWNERS 8u

struct owner {
	uint8_t weight, order;
	uint32_t want;     /* how many it keeps asked for and held together */
	uint64_t start;    /* when it begins to ask */
	uint64_t hold;     /* HC_NEVER: until the end */
	uint32_t channels; /* worth of one of its requests */
};

static struct {
	struct hc_admit *s;
	struct owner owner[OWNERS];
	uint32_t owners, asked[OWNERS];
	uint32_t of[256];      /* owner of a request */
	uint64_t ends[256];    /* of a held one; 0 not held */
	uint32_t list[GRANTS]; /* owners in order of grant */
	uint32_t grants;       /* counted from `from` */
	uint64_t from;
} f;

static void start(uint32_t channels)
{
	memset(&f, 0, sizeof(f));
	f.s = adm_new(1, 256, 256);
	adm_link(f.s, 0, 0, 0, 1, channels * 100, 4096);
}

static void holds(uint64_t now, uint32_t request)
{
	const uint32_t o = f.of[request];

	hc_admit_collect(f.s, request);
	f.ends[request] = f.owner[o].hold == HC_NEVER ? HC_NEVER : now + f.owner[o].hold;
	if (now >= f.from && f.grants < GRANTS)
		f.list[f.grants++] = o;
}

static void ask_more(uint64_t now, uint32_t o)
{
	struct hc_admit_piece p = adm_piece(0, 1, 80 * f.owner[o].channels, 0);
	struct hc_admit_ask a = adm_ask(o + 1, &p, 1);
	uint64_t hint;
	uint32_t n;
	int r;

	a.weight = f.owner[o].weight;
	a.order = f.owner[o].order;
	for (; now >= f.owner[o].start && f.asked[o] < f.owner[o].want; f.asked[o]++) {
		r = hc_admit_ask(f.s, now, &a, &n, &hint);
		adm_must(r == 0 || r == HC_E_IN_PROGRESS);
		f.of[n] = o;
		f.ends[n] = 0;
		if (!r)
			holds(now, n);
	}
}

static void pass(uint64_t now)
{
	uint32_t n, o;

	for (n = 0; n < 256; n++) {
		if (!f.ends[n] || f.ends[n] > now)
			continue;
		f.ends[n] = 0;
		f.asked[f.of[n]]--;
		hc_admit_release(f.s, now, n);
	}
	adm_run(f.s, now);
	while ((n = adm_granted(f.s)) != HC_NONE)
		holds(now, n);
	for (o = 0; o < f.owners; o++)
		ask_more(now, o);
	adm_run(f.s, now);
	while ((n = adm_granted(f.s)) != HC_NONE)
		holds(now, n);
}

static void run_until_full(uint64_t step)
{
	uint64_t now;

	for (now = 0; f.grants < GRANTS; now += step) {
		adm_must(now < 4000 * SEC);
		pass(now);
	}
}

static uint32_t grants_of(uint32_t o, uint32_t first, uint32_t count)
{
	uint32_t i, sum = 0;

	for (i = first; i < first + count; i++)
		sum += f.list[i] == o;
	return sum;
}

static double jain(uint32_t owners)
{
	double sum = 0, squares = 0, x;
	uint32_t o;

	for (o = 0; o < owners; o++) {
		x = (double)grants_of(o, 0, GRANTS) / f.owner[o].weight;
		sum += x;
		squares += x * x;
	}
	return sum * sum / (squares * owners);
}

/* Three owners, nine channels; the second and third come 10 s later each. */
static void three(uint8_t w0, uint8_t w1, uint8_t w2)
{
	const uint8_t weight[3] = {w0, w1, w2};
	uint32_t o;

	start(9);
	f.owners = 3;
	f.from = 21 * SEC;
	for (o = 0; o < 3; o++)
		f.owner[o] = (struct owner){.weight = weight[o],
					    .want = 16,
					    .start = o * 10 * SEC,
					    .hold = SEC,
					    .channels = 1};
	run_until_full(SEC);
}

START_TEST(equal_owners_get_equal_shares)
{
	uint32_t o, i, fewest = GRANTS;

	three(1, 1, 1);
	for (o = 0; o < 3; o++) {
		adm_must(grants_of(o, 0, GRANTS) >= 990);
		adm_must(grants_of(o, 0, GRANTS) <= 1010);
		for (i = 0; i + 30 <= GRANTS; i++)
			if (grants_of(o, i, 30) < fewest)
				fewest = grants_of(o, i, 30);
	}
	adm_must(fewest >= 9);
	adm_must(jain(3) >= 0.99);
}
END_TEST

START_TEST(weights_are_proportions)
{
	uint32_t o, i;

	three(1, 2, 3);
	for (o = 0; o < 3; o++) {
		adm_must(grants_of(o, 0, GRANTS) >= 500 * (o + 1) - 10);
		adm_must(grants_of(o, 0, GRANTS) <= 500 * (o + 1) + 10);
		for (i = 0; i + 30 <= GRANTS; i++)
			adm_must(grants_of(o, i, 30) >= 5 * (o + 1) - 1);
	}
	adm_must(jain(3) >= 0.99);
}
END_TEST

/* Shares are of bandwidth, not of requests: twice as large is half as often (while there is room
 * for a large one at all: what does not fit is passed over). */
START_TEST(large_requests_come_less_often)
{
	uint32_t o;

	start(12);
	f.owners = 2;
	f.from = 5 * SEC;
	for (o = 0; o < 2; o++)
		f.owner[o] =
			(struct owner){.weight = 1, .want = 20, .hold = SEC / 2, .channels = o + 1};
	run_until_full(SEC / 2);
	adm_must(grants_of(0, 0, GRANTS) >= 1980);
	adm_must(grants_of(0, 0, GRANTS) <= 2020);
}
END_TEST

/* Owners who come one by one, each asking once it has given back, share as those who queue up. */
START_TEST(asking_one_at_a_time_gains_nothing)
{
	uint32_t o;

	start(2);
	f.owners = 6;
	f.from = 5 * SEC;
	for (o = 0; o < 6; o++)
		f.owner[o] = (struct owner){
			.weight = 1, .want = o < 3 ? 1 : 8, .hold = SEC / 10, .channels = 1};
	run_until_full(SEC / 10);
	for (o = 0; o < 6; o++) {
		adm_must(grants_of(o, 0, GRANTS) >= 490);
		adm_must(grants_of(o, 0, GRANTS) <= 510);
	}
}
END_TEST

START_TEST(a_higher_class_is_served_first)
{
	uint32_t i;

	start(4);
	f.owners = 2;
	f.owner[0] = (struct owner){.weight = 100, .order = 2, .want = 40, .hold = SEC / 8};
	f.owner[1] = (struct owner){.weight = 1, .order = 3, .want = 12, .hold = SEC / 8};
	f.owner[0].channels = f.owner[1].channels = 1;
	f.owner[1].start = SEC;
	f.from = 2 * SEC;
	for (i = 0; i < 60; i++) /* until shortly before the low ones are old */
		pass(i * SEC / 8);
	adm_must(f.grants > 100);
	adm_must(grants_of(1, 0, f.grants) == f.grants);
}
END_TEST

/* A low request for six of eight channels, while high ones for one come and go at 95 % load. */
static uint64_t low_waits(uint64_t aging, uint64_t seed, uint64_t hold, bool declared)
{
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = aging,
					      .grant_ttl_ns = 5 * SEC,
					      .hint_hold_ns = SEC};
	struct hc_admit_piece six = adm_piece(0, 1, 6 * 80, 0), one = adm_piece(0, 1, 80, 0);
	struct hc_admit_ask low = adm_ask(1, &six, 1), high = adm_ask(2, &one, 1);
	uint64_t now, dice = seed * 77777 + 1, hint, ends[256] = {0};
	uint32_t n, wanted = 0, held = 0;
	int r;

	start(8);
	hc_admit_set(f.s, &set);
	high.order = 7;
	high.hold_ns = declared ? hold : 0;
	for (n = 0; n < 8; n++) {
		adm_must(hc_admit_ask(f.s, 1, &high, &wanted, &hint) == 0);
		hc_admit_collect(f.s, wanted);
		ends[wanted] = 1 + hold * (n + 1) / 8;
	}
	adm_must(hc_admit_ask(f.s, 2, &low, &wanted, &hint) == HC_E_IN_PROGRESS);
	for (now = 3; now < 600 * SEC; now += hold / 40) {
		for (n = 0, held = 0; n < 256; n++) {
			if (ends[n] && ends[n] <= now) {
				hc_admit_release(f.s, now, n);
				ends[n] = 0;
				adm_run(f.s, now);
			}
			held += ends[n] > 0;
		}
		/* as soon as one goes another comes, nearly always: 95 % load */
		for (; held < 8 && adm_roll(&dice, 100) < 95; held++) {
			r = hc_admit_ask(f.s, now, &high, &n, &hint);
			if (r)
				break;
			hc_admit_collect(f.s, n);
			ends[n] = now + hold;
		}
		adm_run(f.s, now);
		while ((n = adm_granted(f.s)) != HC_NONE) {
			if (n == wanted)
				return now;
			hc_admit_collect(f.s, n);
			ends[n] = now + hold;
		}
	}
	return HC_NEVER;
}

/* Not before its aging, or it would mean nothing; and then as soon as six holders have ended. */
START_TEST(a_large_low_request_is_served_within_its_bound)
{
	uint64_t seed, at;

	for (seed = 1; seed <= 20; seed++) {
		at = low_waits(10 * SEC, seed, 4 * SEC, seed % 2);
		adm_must(at <= 10 * SEC + 4 * SEC + SEC / 2);
		adm_must(at >= 10 * SEC);
		free(f.s);
	}
	adm_must(low_waits(700 * SEC, 1, 4 * SEC, false) == HC_NEVER);
}
END_TEST

/* Random asks of all sizes and classes over two links. Whoever has waited longer than the aging
 * bound must not see a later one granted on a link of its own. */
START_TEST(nothing_later_overtakes_the_aged)
{
	struct hc_admit *s = adm_new(2, 128, 256);
	uint64_t dice = 12345, now = 1, hint, asked[128] = {0}, ends[128] = {0}, number[128] = {0};
	uint64_t numbers = 0, aged_grants = 0;
	uint8_t links[128] = {0};
	uint32_t i, k, n;

	adm_link(s, now, 0, 0, 1, 1000, 64);
	adm_link(s, now, 1, 1, 2, 1000, 64);
	for (i = 0; i < 60000; i++, now += 50 * MS) {
		for (n = 0; n < 128; n++)
			if (ends[n] && ends[n] <= now) {
				hc_admit_release(s, now, n);
				ends[n] = asked[n] = 0;
			}
		adm_run(s, now);
		for (k = 0; k < 2; k++) {
			const uint32_t which = 1 + adm_roll(&dice, 3);
			const uint32_t size =
				20 + 20 * adm_roll(&dice, adm_roll(&dice, 8) ? 5 : 39);
			struct hc_admit_piece p[2] = {adm_piece(0, 1, size, size),
						      adm_piece(1, 2, size, size)};
			struct hc_admit_ask a = adm_ask(adm_roll(&dice, 12), which == 2 ? p + 1 : p,
							which == 3 ? 2 : 1);

			a.order = (uint8_t)adm_roll(&dice, 8);
			if (hc_admit_ask(s, now, &a, &n, &hint) == HC_E_LIMIT)
				continue;
			asked[n] = now;
			links[n] = (uint8_t)which;
			number[n] = ++numbers;
			if (hc_admit_state(s, n) == HC_ADMIT_GRANTED) {
				hc_admit_collect(s, n);
				ends[n] = now + SEC / 2 + adm_roll(&dice, 1500) * MS;
				for (uint32_t o = 0; o < 128; o++)
					adm_must(!asked[o] || ends[o] || o == n ||
						 asked[o] + 10 * SEC > now ||
						 !(links[o] & links[n]));
			}
			adm_run(s, now);
		}
		while ((n = adm_granted(s)) != HC_NONE) {
			hc_admit_collect(s, n);
			ends[n] = now + SEC / 2 + adm_roll(&dice, 1500) * MS;
			aged_grants += asked[n] + 10 * SEC <= now;
			for (k = 0; k < 128; k++)
				if (asked[k] && !ends[k] && number[k] < number[n])
					adm_must(asked[k] + 10 * SEC > now ||
						 !(links[k] & links[n]));
		}
	}
	adm_must(aged_grants > 1000);
	free(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, equal_owners_get_equal_shares);
	tcase_add_test(t, weights_are_proportions);
	tcase_add_test(t, large_requests_come_less_often);
	tcase_add_test(t, asking_one_at_a_time_gains_nothing);
	tcase_add_test(t, a_higher_class_is_served_first);
	tcase_add_test(t, a_large_low_request_is_served_within_its_bound);
	tcase_add_test(t, nothing_later_overtakes_the_aged);
}

int main(void)
{
	return hc_suite_run("admit_fair", add, 60);
}
