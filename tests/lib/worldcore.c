/* SPDX-License-Identifier: Apache-2.0 */
/* See worldcore.h. */
#include "worldcore.h"

#include "channel.h"
#include "digest.h"
#include "home.h"
#include "part.h"
#include "who.h"

#define STR2(x) #x
#define STR(x)  STR2(x)
#define need(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			return __FILE__ ":" STR(__LINE__) ": " #x;                                 \
	} while (0)
#define pass_on(x)                                                                                 \
	do {                                                                                       \
		const char *why_ = (x);                                                            \
		if (why_)                                                                          \
			return why_;                                                               \
	} while (0)

enum { NODES_MAX = 64, SEATS_MAX = 64 }; /* above these a check would cost more than it is worth */

struct tally {
	uint32_t seats, bound, devices, work, busy, attached;
};

static const char *seat_wrong(const struct hc_core *c, uint32_t part, uint32_t seat,
			      struct tally *t)
{
	const struct hc_seat *s = &c->seats[seat];
	const uint64_t session = hc_seat_session(s);
	const struct hc_session *e;

	need(s->part == part && s->state <= HC_W_member_state_LEFT);
	t->seats++;
	t->devices += s->flags & SEAT_DEVICE ? 1 : 0;
	need(!(s->flags & SEAT_WAITS) || hc_part_now(c, &c->parts[part])->requests != HC_NONE);
	if (s->process == HC_NONE) {
		need(!session && s->block == HC_NONE);
		return NULL;
	}
	t->bound++;
	need(s->process < c->process_pool.fresh && c->processes[s->process].pid);
	if (!session || c->sessions[(uint32_t)session].id != session)
		return NULL; /* detached, or about to be */
	e = &c->sessions[(uint32_t)session];
	t->attached++;
	need(e->process == s->process);
	need(s->block == HC_NONE || e->blocks[s->block / 64] >> (s->block % 64) & 1);
	return NULL;
}

static const char *part_wrong(const struct hc_core *c, uint32_t n, struct tally *t)
{
	const struct hc_part *p = &c->parts[n];
	const struct hc_part_busy *b = hc_part_now(c, p);
	uint32_t i, k;

	need(b->queued == (b->work != 0));
	need(p->busy == HC_NONE || b->part == n);
	t->work += b->queued;
	t->busy += p->busy != HC_NONE;
	if (p->state == HC_W_domain_state_ACTIVE && !b->queued && !b->samples && !b->asks.count)
		need(p->busy == HC_NONE && "at rest");
	for (i = 0; i < p->nseats; i++) {
		pass_on(seat_wrong(c, n, p->seats + i, t));
		for (k = 0; p->nseats <= SEATS_MAX && k < i; k++)
			need(c->seats[p->seats + k].rank != c->seats[p->seats + i].rank);
	}
	return NULL;
}

static const char *device_wrong(const struct hc_core *c, const struct hc_device *d)
{
	need(d->held + d->idle <= d->users && d->alone <= d->users);
	if (d->holder == HC_NONE)
		need(!d->held && d->users == d->idle);
	else
		need(d->held && c->processes[d->holder].seats.count >= d->held);
	return NULL;
}

static bool part_used(const struct hc_core *c, uint32_t n)
{
	return c->parts[n].state != HC_W_domain_state_NONE;
}

static const char *parts_wrong(const struct hc_core *c)
{
	uint32_t n, used = 0, bound = 0, sessions = 0, users = 0, attached = 0;
	struct tally t = {0};

	for (n = 0; n < c->part_pool.fresh; n++)
		if (part_used(c, n)) {
			used++;
			pass_on(part_wrong(c, n, &t));
		}
	need(used == c->part_pool.used && t.busy == c->part_busy_pool.used);
	need(t.seats == c->nseats && t.work == c->work.count);
	for (n = 0; n < c->process_pool.fresh; n++) {
		bound += c->processes[n].seats.count;
		sessions += c->processes[n].sessions;
	}
	need(bound == t.bound && sessions == c->nsessions);
	for (n = 0; n < c->lim.sessions; n++)
		attached += c->sessions[n].id ? c->sessions[n].seats : 0;
	need(attached == t.attached);
	for (n = 0; n < c->ndevices; n++) {
		pass_on(device_wrong(c, &c->devices[n]));
		users += c->devices[n].users;
	}
	need(users == t.devices);
	return NULL;
}

static const char *home_wrong(const struct hc_core *c, const struct hc_home *h, uint32_t *known)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	uint32_t r, arrived = 0, gone = 0, untold = 0;

	for (r = 0; r < h->nranks; r++) {
		const struct hc_place *pl = &c->places[h->places + r];

		arrived += pl->state != HC_W_member_state_EXPECTED;
		gone += pl->state == HC_W_member_state_DEAD || pl->state == HC_W_member_state_LEFT;
		untold += pl->state == HC_W_member_state_DEAD && !pl->told;
		need(hc_who(c, pl)->node < c->nnodes && hc_who(c, pl)->places <= c->lim.ranks);
		*known += pl->who != 0;
	}
	need(arrived == h->arrived && gone == b->gone && untold == b->untold);
	if (h->state == HC_W_domain_state_ACTIVE && !h->step && !gone && !b->asks.count)
		need(h->busy == HC_NONE && "at rest");
	if (h->state >= HC_W_domain_state_ACTIVE && h->state != HC_W_domain_state_FAILED)
		need(h->arrived == h->nranks && h->epoch > 0);
	return NULL;
}

static bool stores(const struct hc_home *h)
{
	return h->step == HOME_COMMITTING || h->step == HOME_DAMAGING || h->step == HOME_ENDING;
}

static const char *homes_wrong(struct hc_core *c)
{
	uint32_t n, used = 0, active = 0, forming = 0, damaged = 0, storing = 0, busy = 0;
	uint32_t known = 0, far = 0, over = 0;
	struct hc_core_counts counts;

	for (n = 0; n < c->home_pool.fresh; n++) {
		const struct hc_home *h = &c->homes[n];

		if (!h->id)
			continue;
		used++;
		pass_on(home_wrong(c, h, &known));
		busy += h->busy != HC_NONE;
		need(h->busy == HC_NONE || c->home_busy[h->busy].home == n);
		over += h->step == HOME_OVER;
		active += h->state == HC_W_domain_state_ACTIVE;
		forming += h->state < HC_W_domain_state_ACTIVE;
		damaged += h->state == HC_W_domain_state_DAMAGED;
		storing += stores(h);
	}
	for (n = 0; n < c->part_pool.fresh; n++) {
		const struct hc_part *p = &c->parts[n];

		storing += part_used(c, n) && hc_part_now(c, p)->step != PART_NOTHING;
		if (!part_used(c, n) || p->home_node == HC_SELF_NODE)
			continue;
		far++;
		active += p->state == HC_W_domain_state_ACTIVE;
		forming += p->state < HC_W_domain_state_ACTIVE;
		damaged += p->state == HC_W_domain_state_DAMAGED;
	}
	need(far == c->nfar);
	for (n = 1; n < c->who_pool.fresh; n++)
		known -= c->whos[n].places;
	need(!known);
	need(busy == c->home_busy_pool.used);
	need(storing == c->storing.count && over == c->over.count);
	hc_core_counts(c, &counts);
	need(counts.domains == used + far && counts.active == active);
	need(counts.forming == forming && counts.damaged == damaged);
	need(counts.ranks == c->nseats && counts.sessions == c->nsessions);
	return NULL;
}

/* Tickets: of clients (they have a session), at homes, and of ranks that leave. */
static const char *asks_wrong(const struct hc_core *c)
{
	uint32_t n, used = 0, at_homes = 0, leaving = 0;

	for (n = 0; n < c->ask_pool.fresh; n++)
		used += c->asks[n].ticket && c->asks[n].session;
	for (n = 0; n < c->home_pool.fresh; n++)
		at_homes += c->homes[n].id ? hc_home_now(c, &c->homes[n])->asks.count : 0;
	for (n = 0; n < c->part_pool.fresh; n++)
		leaving += part_used(c, n) ? hc_part_now(c, &c->parts[n])->asks.count : 0;
	need(used + at_homes + leaving + c->departed.count == c->ask_pool.used);
	return NULL;
}

/* The digest of each pair is that of the domains, counted anew. */
static const char *digests_wrong(struct hc_core *c)
{
	uint64_t kept[NODES_MAX];
	uint32_t i, twice;
	bool clean = true;

	if (c->nnodes < 2 || c->nnodes > NODES_MAX)
		return NULL;
	for (i = 0; i < c->nnodes; i++)
		kept[i] = hc_digest_of(c, i);
	for (twice = 0; twice < 2; twice++) {
		for (i = 0; i < c->home_pool.fresh; i++)
			if (c->homes[i].id)
				hc_digest_home(c, &c->homes[i]);
		for (i = 0; i < c->part_pool.fresh; i++)
			if (c->parts[i].id)
				hc_digest_part(c, &c->parts[i]);
		for (i = 0; i < c->nnodes && !twice; i++)
			clean = clean && !hc_digest_of(c, i);
	}
	need(clean && "nothing else is in a digest");
	for (i = 0; i < c->nnodes; i++)
		need(hc_digest_of(c, i) == kept[i]);
	return NULL;
}

const char *world_core_wrong(struct hc_core *c)
{
	pass_on(parts_wrong(c));
	pass_on(homes_wrong(c));
	pass_on(asks_wrong(c));
	pass_on(digests_wrong(c));
	need(c->ring_used <= HC_RING_BYTES);
	return NULL;
}

const char *world_core_left(const struct hc_core *c)
{
	uint32_t i;

	need(!c->home_pool.used && !c->part_pool.used && !c->nseats);
	need(!c->process_pool.used || c->nsessions);
	need(!c->chan->pool.used && !c->chan->pair_pool.used);
	need(!c->chan->later_pool.used && !c->chan->timers.count);
	need(!c->chan->want_pool.used && !c->chan->gang_pool.used && !c->chan->keep_pool.used);
	need(!c->user_pool.used && "nobody is charged for what is over");
	need(!c->ask_pool.used && !c->name_pool.used && !c->cause_pool.used);
	need(!c->timers.count && !c->storing.count && !c->ring_used && !c->seek_pool.used);
	need(!c->wait_pool.used && !c->waiter_pool.used && !c->exch_pool.used);
	need(!c->entry_pool.used && !c->cell_pool.used);
	need(!c->work.count && !c->reaping.count && !c->answering && !c->over.count);
	for (i = 0; i < c->ndevices; i++)
		need(!c->devices[i].users && c->devices[i].holder == HC_NONE);
	for (i = 0; i < HC_GATHERS; i++)
		need(!c->gathers[i].parent);
	for (i = 0; i < c->nnodes; i++)
		need(!c->nodes[i].digest);
	return NULL;
}
