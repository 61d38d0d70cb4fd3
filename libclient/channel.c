/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How channels are asked for and granted. Their opening and end is chanlife.c, what goes through
 * them chanuse.c.
 *
 * As for domains the handles are made first, then the request goes out, so that a grant never
 * fails for want of a handle. A call that waits opens what it was granted before it returns; one
 * that was started with HCOMM_START leaves that to the first use of each handle, and the daemon
 * takes back what nobody uses in time. A set is granted, opened and refused whole.
 */
#include "chan.h"
#include "join.h"

#include <stdlib.h>
#include <string.h>

#define GANG_MAX    1024u
#define PIECE_BYTES 18u /* of want_piece, encoded */

/* ---- what is asked for ---- */

static int check_piece(const struct hcomm_channel_args *a, const struct hc_domain *d, uint32_t rank)
{
	if (a->peer >= d->nranks || a->peer == rank)
		return hc_refuse(HC_E_INVALID,
				 "args->peer is %u; wanted: another rank than the own (%u) of the "
				 "%u of the domain",
				 a->peer, rank, d->nranks);
	if (a->path_type > HCOMM_LINK_SHM)
		return hc_refuse(HC_E_INVALID, "args->path_type is %u; wanted: a HCOMM_LINK_*",
				 a->path_type);
	if (a->wait > 1)
		return hc_refuse(HC_E_INVALID, "args->wait is %u; wanted: 0 or 1", a->wait);
	if (a->flags & ~(HCOMM_CHANNEL_GRANT_ONLY | HCOMM_CHANNEL_FROM))
		return hc_refuse(HC_E_INVALID, "args->flags is %#x; wanted: HCOMM_CHANNEL_*",
				 a->flags);
	if (a->buffer_bytes &&
	    (a->buffer_bytes < HC_CHANNEL_BUFFER_MIN || a->buffer_bytes > HC_CHANNEL_BUFFER_MAX))
		return hc_refuse(HC_E_INVALID, "args->buffer_bytes is %u; wanted: %u to %u, or 0",
				 a->buffer_bytes, HC_CHANNEL_BUFFER_MIN, HC_CHANNEL_BUFFER_MAX);
	return 0;
}

static int find_rank(const struct hcomm_channel_args *a, const struct hc_domain *d, uint32_t *rank)
{
	*rank = d->rank;
	if (a->flags & HCOMM_CHANNEL_FROM) {
		*rank = a->rank;
		if (hc_ops_seat(&d->ops, a->rank) == HC_NONE)
			return hc_refuse(HC_E_INVALID,
					 "args->rank is %u, which is none of this process in the "
					 "domain",
					 a->rank);
	} else if (d->ops.nseats != 1) {
		return hc_refuse(HC_E_INVALID,
				 "the handle stands for %u ranks; wanted: HCOMM_CHANNEL_FROM in "
				 "args->flags, and args->rank",
				 d->ops.nseats);
	}
	return 0;
}

/* The i-th of an array whose elements are as large as the first says. */
static void get_args(const struct hcomm_channel_args *args, uint32_t i,
		     struct hcomm_channel_args *full)
{
	uint32_t size = args->size < sizeof(*full) ? args->size : (uint32_t)sizeof(*full);

	memset(full, 0, sizeof(*full));
	memcpy(full, (const char *)args + (size_t)i * args->size, size);
}

static int check_sizes(const struct hcomm_channel_args *args, uint32_t count)
{
	struct hcomm_channel_args a;
	uint32_t i;

	if (!args || args->size < offsetof(struct hcomm_channel_args, path_type))
		return hc_refuse(HC_E_INVALID,
				 "args is NULL or has no size; wanted: set by HCOMM_INIT");
	if (!count || count > GANG_MAX)
		return hc_refuse(HC_E_INVALID, "count is %u; wanted: 1 to %u", count, GANG_MAX);
	for (i = 1; i < count; i++) {
		get_args(args, i, &a);
		if (a.size != args->size)
			return hc_refuse(HC_E_INVALID,
					 "args[%u].size is %u; wanted: that of the first, %u", i,
					 a.size, args->size);
	}
	return 0;
}

static int put_pieces(const struct hcomm_channel_args *args, uint32_t count,
		      const struct hc_domain *d, struct hc_m_channel_want *m, uint8_t *buf,
		      size_t room)
{
	struct hcomm_channel_args a;
	struct hc_m_want_piece p;
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < count; i++) {
		get_args(args, i, &a);
		r = check_piece(&a, d, m->rank);
		if (r)
			return r;
		p = (struct hc_m_want_piece){
			.peer = a.peer,
			.mbps = a.bandwidth_mbps,
			.back_mbps = a.back_mbps,
			.path_type = (uint8_t)a.path_type,
			.flags = a.flags & HCOMM_CHANNEL_GRANT_ONLY ? 1 : 0,
			.buffer_bytes = a.buffer_bytes,
		};
		r = hc_arr_put(&m->pieces, buf, room, &hc_desc_want_piece, HC_PROTO_MAX, &p);
	}
	return r ? hc_refuse(r, "a set of %u channels does not fit into a request", count) : 0;
}

/* ---- handles of a set ---- */

static int make_handles(struct hcomm_session *s, hcomm_domain domain, uint32_t rank, uint32_t count,
			hcomm_channel *handles)
{
	struct hc_channel *c;
	uint32_t i;
	int r = 0;

	for (i = 0; i < count; i++) {
		r = hc_chan_new(s, &c);
		if (r)
			break;
		c->domain = domain;
		c->rank = rank;
		c->usual_ms = s->env.timeout_ms ? s->env.timeout_ms : s->connect_timeout_ms;
		c->fenced = !s->registered;
		handles[i] = c->handle;
	}
	while (r && i)
		hc_chan_free(hc_chan_of(s, handles[--i]));
	return r;
}

/* Refused: handles that nobody was given go, others say why. */
static void drop_handles(struct hcomm_session *s, uint32_t count, hcomm_channel *handles,
			 int outcome, bool given)
{
	struct hc_channel *c;
	uint32_t i;

	for (i = 0; i < count; i++) {
		c = hc_chan_of(s, handles[i]);
		if (c && given) {
			c->phase = HC_CHAN_FAILED;
			c->error = outcome;
			c->retry_after_ms = hcomm_retry_after();
		} else if (c) {
			hc_chan_shut(c);
			hc_chan_free(c);
		}
		if (!given)
			handles[i] = 0;
	}
}

/* ---- the grant ---- */

static int take_grant(struct hcomm_session *s, struct hc_channel *c,
		      const struct hc_m_channel_grant *g)
{
	if (g->side > 1 || g->carries > 1 ||
	    (g->carries &&
	     (g->buffer_bytes != ((g->buffer_bytes + 4095u) & ~4095u) ||
	      g->buffer_bytes < HC_CHANNEL_BUFFER_MIN || g->buffer_bytes > HC_CHANNEL_BUFFER_MAX)))
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd granted channel %016llx with side %u and buffers of %u",
				 (unsigned long long)g->channel, g->side, g->buffer_bytes);
	c->reg = hc_chan_register(s, g->channel, g->slot);
	if (!c->reg && s->status_lost)
		return hc_refuse(HC_E_NO_MEMORY,
				 "the status register of channel %016llx could "
				 "not be mapped",
				 (unsigned long long)g->channel);
	if (!c->reg)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave register %u for channel %016llx, and no slab has it "
				 "there",
				 g->slot, (unsigned long long)g->channel);
	c->id = g->channel;
	c->side = g->side;
	c->carries = g->carries;
	c->info.rank = c->rank;
	c->info.peer = g->peer;
	c->info.path_type = g->path_type;
	c->info.bandwidth_mbps = g->mbps;
	c->info.back_mbps = g->back_mbps;
	c->info.virtual_channel = g->vc;
	c->info.service_level = g->service_level;
	c->info.dscp = g->dscp;
	c->info.carries = g->carries;
	c->info.buffer_bytes = g->carries ? g->buffer_bytes : 0;
	c->info.latency_us = g->latency_us;
	c->info.id = g->channel;
	hc_str_copy(g->link, c->info.link, sizeof(c->info.link));
	c->phase = HC_CHAN_GRANTED;
	return 0;
}

/* A good answer: all handles get their channel, or all grants go back. */
static int take_grants(struct hcomm_session *s, struct hc_call *call, uint32_t rank, uint32_t count,
		       const hcomm_channel *handles)
{
	struct hc_m_channel_want_r m;
	struct hc_m_channel_grant g;
	struct hc_channel *c;
	struct hc_arr a;
	uint32_t i;
	int r = hc_call_answer(&s->sess, call, &hc_desc_channel_want_r, &m);

	if (r || m.grants.count != count)
		return hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that does not fit the "
						 "request for channels");
	a = m.grants;
	for (i = 0; !r && hc_arr_next(&a, &hc_desc_channel_grant, s->sess.version, &g); i++) {
		c = hc_chan_of(s, handles[i]);
		r = c ? take_grant(s, c, &g)
		      : hc_refuse(HC_E_GONE, "the channel was released while it was asked for");
	}
	a = m.grants;
	while (r && hc_arr_next(&a, &hc_desc_channel_grant, s->sess.version, &g))
		hc_chan_give_back(s, g.channel, rank);
	/* the daemon sends a slab once for a connection: only a new one brings it again */
	if (r && s->status_lost) {
		s->status_lost = false;
		hc_wait_drop(s, "a status slab was not mapped");
	}
	return r;
}

/* All of a set, or none. */
static int open_all(struct hcomm_session *s, uint32_t count, const hcomm_channel *handles,
		    uint64_t deadline)
{
	struct hc_channel *c;
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < count; i++) {
		c = hc_chan_of(s, handles[i]);
		r = c ? hc_chan_open(s, handles[i], deadline)
		      : hc_refuse(HC_E_GONE, "the channel was released while it was opened");
	}
	for (i = 0; r && i < count; i++) {
		c = hc_chan_of(s, handles[i]);
		if (c && c->id)
			hc_chan_give_back(s, c->id, c->rank);
	}
	return r;
}

/* ---- asking ---- */

struct work { /* started with HCOMM_START */
	struct hc_call call;
	hcomm_domain domain;
	uint32_t rank, count;
	hcomm_channel handles[];
};

static void finish(struct hcomm_session *s, struct hc_call *call)
{
	struct work *w = (struct work *)(void *)call; /* its first member */
	int r;

	if (s) {
		r = hc_call_outcome(s, call);
		if (!r)
			r = take_grants(s, call, w->rank, w->count, w->handles);
		if (r)
			drop_handles(s, w->count, w->handles, r, true);
		if (hc_chan_of(s, w->handles[0]))
			hc_event_channel(s, w->handles[0], w->domain, w->rank, r,
					 r ? hcomm_last_error() : "");
	}
	hc_call_fini(call);
	free(w);
}

static int begin(struct hcomm_session *s, const struct hc_request *q, hcomm_domain domain,
		 uint32_t rank, uint32_t count, const hcomm_channel *handles)
{
	struct work *w = malloc(sizeof(*w) + count * sizeof(w->handles[0]));
	int r;

	if (!w)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the request");
	hc_call_init(&w->call, HC_MSG_channel_want_r);
	w->call.finish = finish;
	w->call.until = HC_FOREVER;
	w->domain = domain;
	w->rank = rank;
	w->count = count;
	memcpy(w->handles, handles, count * sizeof(w->handles[0]));
	r = hc_call_start(s, &w->call, q);
	if (r) {
		hc_call_fini(&w->call);
		free(w);
		return r;
	}
	return hc_refuse(HC_E_IN_PROGRESS, "the request for channels goes on; an event ends it");
}

static int wait(struct hcomm_session *s, const struct hc_request *q, uint32_t rank, uint32_t count,
		const hcomm_channel *handles)
{
	struct hc_call call;
	int r;

	hc_call_init(&call, HC_MSG_channel_want_r);
	r = hc_call_repeat(s, &call, q);
	if (!r)
		r = take_grants(s, &call, rank, count, handles);
	hc_call_fini(&call);
	if (!r)
		r = open_all(s, count, handles, hc_deadline(HC_REQUEST_MS));
	return r;
}

struct asked { /* of an acquire, beside the request */
	hcomm_domain domain;
	uint32_t rank, count;
	int timeout_ms;
	uint64_t deadline;
	hcomm_channel *handles;
};

/* The lock is held. */
static int run(struct hcomm_session *s, const struct asked *a, const struct hc_m_channel_want *m)
{
	struct hc_request q = {&hc_desc_channel_want, m, -1, a->deadline, 0};
	int r = make_handles(s, a->domain, a->rank, a->count, a->handles);

	if (r)
		return r;
	if (a->timeout_ms == HCOMM_START) {
		r = hc_wait_ready(s, q.deadline);
		if (!r)
			r = begin(s, &q, a->domain, a->rank, a->count, a->handles);
	} else {
		if (q.deadline < HC_FOREVER - HC_SLACK_MS * HC_MS)
			q.deadline += HC_SLACK_MS * HC_MS;
		r = wait(s, &q, a->rank, a->count, a->handles);
	}
	if (r && r != HC_E_IN_PROGRESS)
		drop_handles(s, a->count, a->handles, r, false);
	return r;
}

static int check_domain(const struct hc_domain *d)
{
	if (!d->session)
		return hc_refuse(HC_E_INVALID, "a domain of one rank has nobody to join by a "
					       "channel");
	if (d->phase == HC_PHASE_FORMING)
		return hc_refuse(HC_E_IN_PROGRESS, "the domain is still forming");
	if (d->phase != HC_PHASE_LIVE)
		return hc_refuse(d->error ? d->error : HC_E_GONE,
				 "the domain did not form, or has ended");
	return 0;
}

static int prepare(const struct hc_domain *d, const struct hcomm_channel_args *args,
		   struct asked *a, struct hc_m_channel_want *m, uint8_t *buf, size_t room)
{
	struct hcomm_channel_args first;
	uint32_t ms;
	int r = check_domain(d);

	if (r)
		return r;
	get_args(args, 0, &first);
	r = find_rank(&first, d, &a->rank);
	if (!r)
		r = hc_timeout(d->session, a->timeout_ms, d->session->connect_timeout_ms, &ms,
			       &a->deadline);
	if (r)
		return r;
	if (a->timeout_ms == HCOMM_DEFAULT && !ms)
		ms = d->session->connect_timeout_ms;
	*m = (struct hc_m_channel_want){
		.id = d->id,
		.epoch = d->epoch,
		.rank = a->rank,
		.wait = first.wait == 1,
		.timeout_ms = a->timeout_ms == HCOMM_START ? 0 : ms,
		.hold_ms = first.hold_ms,
	};
	return put_pieces(args, a->count, d, m, buf, room);
}

static int acquire(hcomm_domain domain, const struct hcomm_channel_args *args, struct asked *a)
{
	uint8_t few[4 * PIECE_BYTES], *buf = few;
	size_t room = sizeof(few);
	struct hc_m_channel_want m;
	struct hcomm_session *s;
	struct hc_domain *d;
	int r = check_sizes(args, a->count);

	if (r)
		return r;
	memset(a->handles, 0, a->count * sizeof(a->handles[0]));
	if (a->count * PIECE_BYTES > room) {
		room = a->count * PIECE_BYTES;
		buf = malloc(room);
		if (!buf)
			return hc_refuse(HC_E_NO_MEMORY, "no memory for %u channels", a->count);
	}
	r = hc_domain_lock(domain, &d);
	if (!r) {
		s = d->session;
		r = prepare(d, args, a, &m, buf, room);
		if (!r)
			r = run(s, a, &m);
		if (s)
			pthread_mutex_unlock(&s->lock);
	}
	if (buf != few)
		free(buf);
	return r;
}

HC_EXPORT int hcomm_channel_acquire(hcomm_domain domain, const struct hcomm_channel_args *args,
				    int timeout_ms, hcomm_channel *channel)
{
	struct asked a = {domain, 0, 1, timeout_ms, 0, channel};

	if (!channel)
		return -hc_refuse(HC_E_INVALID, "channel is NULL; wanted: where to put the handle");
	return -acquire(domain, args, &a);
}

HC_EXPORT int hcomm_channel_acquire_gang(hcomm_domain domain, const struct hcomm_channel_args *args,
					 uint32_t count, int timeout_ms, hcomm_channel *channels)
{
	struct asked a = {domain, 0, count, timeout_ms, 0, channels};

	if (!channels)
		return -hc_refuse(HC_E_INVALID,
				  "channels is NULL; wanted: where to put the handles");
	return -acquire(domain, args, &a);
}
