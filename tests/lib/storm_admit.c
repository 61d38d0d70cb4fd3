/* SPDX-License-Identifier: Apache-2.0 */
/* Our admission as a policy of a storm; see storm_admit.h. */
#include "storm_admit.h"

#include <stdlib.h>
#include <string.h>

#define BUDGET 16u

static uint64_t start(const struct storm_admit *a)
{
	return a->clock ? a->clock() : 0;
}

static void stop(const struct storm_admit *a, uint64_t since)
{
	if (a->clock)
		a->took(a->took_ctx, a->clock() - since);
}

static void run(struct storm_admit *a, uint64_t now)
{
	uint64_t since;

	while (hc_admit_deadline(a->s) <= now) {
		since = start(a);
		hc_admit_run(a->s, now, BUDGET);
		stop(a, since);
	}
}

static bool ask(void *ctx, uint64_t now, uint32_t client, uint64_t hold_ns, bool wait,
		uint64_t *retry_ns)
{
	struct storm_admit *a = ctx;
	const struct hc_admit_piece piece = {.from = 0, .to = 1, .mbps = {a->mbps, a->mbps}};
	const struct hc_admit_ask q = {.owner = client,
				       .order = a->order[client],
				       .weight = a->weight[client] ? a->weight[client] : 1,
				       .hold_ns = hold_ns,
				       .wait = wait,
				       .deadline = HC_NEVER,
				       .pieces = &piece,
				       .npieces = 1};
	const uint64_t since = start(a);
	int r;

	r = hc_admit_ask(a->s, now, &q, &a->request[client], retry_ns);
	if (!r)
		hc_admit_collect(a->s, a->request[client]);
	stop(a, since);
	hc_assert(r == 0 || r == HC_E_AGAIN || r == HC_E_IN_PROGRESS);
	a->client[a->request[client]] = client;
	run(a, now);
	return !r;
}

/* A ticket that was too old is a new request. */
static bool again(void *ctx, uint64_t now, uint32_t client, uint64_t *retry_ns)
{
	struct storm_admit *a = ctx;
	const uint32_t request = a->request[client];
	uint64_t since = start(a);
	int r;

	if (request == HC_NONE)
		return ask(ctx, now, client, 0, false, retry_ns);
	r = hc_admit_again(a->s, now, request, false, HC_NEVER, retry_ns);
	if (!r)
		hc_admit_collect(a->s, request);
	stop(a, since);
	hc_assert(r == 0 || r == HC_E_AGAIN);
	run(a, now);
	return !r;
}

static void release(void *ctx, uint64_t now, uint32_t client)
{
	struct storm_admit *a = ctx;
	const uint64_t since = start(a);

	hc_admit_release(a->s, now, a->request[client]);
	stop(a, since);
	run(a, now);
}

static bool news(void *ctx, uint64_t now, uint32_t *client)
{
	struct storm_admit *a = ctx;
	enum hc_admit_news what;
	uint32_t request;

	run(a, now);
	while (hc_admit_news(a->s, &request, &what)) {
		*client = a->client[request];
		if (what == HC_ADMIT_NEWS_GRANTED) {
			hc_admit_collect(a->s, request);
			return true;
		}
		a->request[*client] = HC_NONE;
	}
	return false;
}

static uint64_t deadline(void *ctx)
{
	return hc_admit_deadline(((struct storm_admit *)ctx)->s);
}

struct storm_policy storm_admit_new(struct storm_admit *a, uint32_t channels)
{
	const struct hc_admit_limits lim = {
		.links = 1, .requests = 2 * STORM_CLIENTS, .pieces = 2 * STORM_CLIENTS};
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = 10000000000u,
					      .grant_ttl_ns = 5000000000u,
					      .hint_hold_ns = 1000000000u};
	const struct hc_admit_link fact = {.a = 0,
					   .b = 1,
					   .type = 1,
					   .carries = true,
					   .up = true,
					   .mbps = channels * 100,
					   .vcs = 4096};
	struct hc_mem m = {0};

	hc_admit_init(&m, &lim);
	m = (struct hc_mem){.base = aligned_alloc(64, m.used), .size = m.used};
	memset(m.base, 0, m.size);
	a->s = hc_admit_init(&m, &lim);
	a->mbps = 80;
	hc_admit_set(a->s, &set);
	hc_admit_link_set(a->s, 0, 0, &fact);
	return (struct storm_policy){.name = "ours",
				     .ctx = a,
				     .ask = ask,
				     .again = again,
				     .release = release,
				     .news = news,
				     .deadline = deadline};
}

void storm_admit_end(struct storm_admit *a)
{
	free(a->s); /* the first thing carved */
	a->s = NULL;
}
