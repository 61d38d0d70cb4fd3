/* SPDX-License-Identifier: Apache-2.0 */
/* Admission under test: memory, links and requests in one line each. */
#ifndef HC_TEST_ADMISSION_H
#define HC_TEST_ADMISSION_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "admit.h"
#include "wire.h"

/* As ck_assert, for hot loops: check notes each assertion that holds in a pipe. */
#define adm_must(x)                                                                                \
	do {                                                                                       \
		if (!(x))                                                                          \
			ck_abort_msg("not so: %s", #x);                                            \
	} while (0)

#define SEC 1000000000ull
#define MS  1000000ull

/* A scheduler is one block of so much, and has pointers into itself. */
static inline size_t adm_bytes(uint32_t links, uint32_t requests, uint32_t pieces)
{
	const struct hc_admit_limits lim = {.links = links, .requests = requests, .pieces = pieces};
	struct hc_mem m = {0};

	hc_admit_init(&m, &lim);
	return m.used;
}

static inline struct hc_admit *adm_new(uint32_t links, uint32_t requests, uint32_t pieces)
{
	const struct hc_admit_limits lim = {.links = links, .requests = requests, .pieces = pieces};
	const size_t bytes = adm_bytes(links, requests, pieces);
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = 10 * SEC,
					      .grant_ttl_ns = 5 * SEC,
					      .hint_hold_ns = 1 * SEC};
	struct hc_mem m = {.base = aligned_alloc(64, bytes), .size = bytes};
	struct hc_admit *s;

	memset(m.base, 0, m.size);
	s = hc_admit_init(&m, &lim); /* the first thing carved, so free(s) frees all */
	hc_admit_set(s, &set);
	return s;
}

static inline void adm_link(struct hc_admit *s, uint64_t now, uint32_t link, uint32_t a, uint32_t b,
			    uint32_t mbps, uint32_t vcs)
{
	const struct hc_admit_link fact = {
		.a = a, .b = b, .type = 1, .carries = true, .up = true, .mbps = mbps, .vcs = vcs};

	hc_admit_link_set(s, now, link, &fact);
}

static inline struct hc_admit_piece adm_piece(uint32_t from, uint32_t to, uint32_t there,
					      uint32_t back)
{
	return (struct hc_admit_piece){.from = from, .to = to, .mbps = {there, back}};
}

static inline struct hc_admit_ask adm_ask(uint64_t owner, const struct hc_admit_piece *pieces,
					  uint32_t npieces)
{
	return (struct hc_admit_ask){.owner = owner,
				     .user = owner,
				     .weight = 1,
				     .wait = true,
				     .deadline = HC_NEVER,
				     .pieces = pieces,
				     .npieces = npieces};
}

/* Until nothing is due. */
static inline void adm_run(struct hc_admit *s, uint64_t now)
{
	while (hc_admit_deadline(s) <= now)
		hc_admit_run(s, now, 16);
}

/* The number that was granted by now, or HC_NONE; other news end the test. */
static inline uint32_t adm_granted(struct hc_admit *s)
{
	enum hc_admit_news news;
	uint32_t n;

	if (!hc_admit_news(s, &n, &news))
		return HC_NONE;
	hc_assert(news == HC_ADMIT_NEWS_GRANTED);
	return n;
}

static inline uint32_t adm_roll(uint64_t *dice, uint32_t n)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return (uint32_t)((*dice * 0x2545f4914f6cdd1dull) >> 33) % n;
}

#endif
