/* SPDX-License-Identifier: Apache-2.0 */
/* Other policies for a storm; see storm.h. None of them lets a caller wait. */
#include "storm.h"

#include <string.h>

static uint64_t turns(const struct storm_other *o, uint32_t count)
{
	return o->hold_ns * (count + 1) / o->channels;
}

static void give(void *ctx, uint64_t now, uint32_t client)
{
	(void)now;
	(void)client;
	((struct storm_other *)ctx)->free++;
}

static bool no_news(void *ctx, uint64_t now, uint32_t *client)
{
	(void)ctx;
	(void)now;
	(void)client;
	return false;
}

static uint64_t no_deadline(void *ctx)
{
	(void)ctx;
	return STORM_NEVER;
}

/* ---- fifo ---- */

static bool fifo_again(void *ctx, uint64_t now, uint32_t client, uint64_t *retry_ns)
{
	struct storm_other *o = ctx;
	uint32_t place = 0;

	(void)now;
	while (o->queue[(o->head + place) % STORM_CLIENTS] != client)
		place++;
	if (!place && o->free) {
		o->free--;
		o->head++;
		return true;
	}
	*retry_ns = turns(o, place);
	return false;
}

static bool fifo_ask(void *ctx, uint64_t now, uint32_t client, uint64_t hold_ns, bool wait,
		     uint64_t *retry_ns)
{
	struct storm_other *o = ctx;

	(void)hold_ns;
	(void)wait;
	o->queue[o->tail++ % STORM_CLIENTS] = client;
	return fifo_again(ctx, now, client, retry_ns);
}

/* ---- lottery, and no hint ---- */

static bool lottery_again(void *ctx, uint64_t now, uint32_t client, uint64_t *retry_ns)
{
	struct storm_other *o = ctx;

	(void)now;
	(void)client;
	if (o->free) {
		o->free--;
		o->waiting--;
		return true;
	}
	o->dice ^= o->dice << 13;
	o->dice ^= o->dice >> 7;
	o->dice ^= o->dice << 17;
	*retry_ns = 1 + (o->dice >> 11) % (2 * turns(o, o->waiting));
	return false;
}

static bool lottery_ask(void *ctx, uint64_t now, uint32_t client, uint64_t hold_ns, bool wait,
			uint64_t *retry_ns)
{
	(void)hold_ns;
	(void)wait;
	((struct storm_other *)ctx)->waiting++;
	return lottery_again(ctx, now, client, retry_ns);
}

static bool nohint_again(void *ctx, uint64_t now, uint32_t client, uint64_t *retry_ns)
{
	const bool got = lottery_again(ctx, now, client, retry_ns);

	*retry_ns = STORM_NEVER;
	return got;
}

static bool nohint_ask(void *ctx, uint64_t now, uint32_t client, uint64_t hold_ns, bool wait,
		       uint64_t *retry_ns)
{
	const bool got = lottery_ask(ctx, now, client, hold_ns, wait, retry_ns);

	*retry_ns = STORM_NEVER;
	return got;
}

static struct storm_policy start(struct storm_other *o, const struct storm *setup)
{
	*o = (struct storm_other){.channels = setup->channels,
				  .free = setup->channels,
				  .hold_ns = setup->hold_ns,
				  .dice = setup->seed + 1};
	return (struct storm_policy){
		.ctx = o, .release = give, .news = no_news, .deadline = no_deadline};
}

struct storm_policy storm_fifo(struct storm_other *o, const struct storm *setup)
{
	struct storm_policy p = start(o, setup);

	p.name = "fifo";
	p.ask = fifo_ask;
	p.again = fifo_again;
	return p;
}

struct storm_policy storm_lottery(struct storm_other *o, const struct storm *setup)
{
	struct storm_policy p = start(o, setup);

	p.name = "lottery";
	p.ask = lottery_ask;
	p.again = lottery_again;
	return p;
}

struct storm_policy storm_nohint(struct storm_other *o, const struct storm *setup)
{
	struct storm_policy p = start(o, setup);

	p.name = "nohint";
	p.ask = nohint_ask;
	p.again = nohint_again;
	return p;
}
