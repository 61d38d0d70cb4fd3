/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call for channels, from the client's words to what it waits for; see channel.h and
 * channel_want.c.
 *
 * Everything is looked at before anything is changed but marks: a piece that takes an end points
 * to it and the end to the call, which is undone when the call is refused.
 */
#include "channel.h"

#include "emit.h"
#include "pages.h"
#include "part.h"
#include "session.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

#define PAGE 4096u

struct asking {
	struct hc_core *c;
	struct hc_session *s;
	const struct hc_m_channel_want *m;
	struct hc_part *p;
	struct hc_want *w;
	uint64_t key;
	uint32_t request, count, fresh; /* pieces; of them: for which the admission is asked */
	bool out;                       /* the home is to be asked */
	uint32_t retry_ms, admit;       /* the request of the admission */
	char text[900];
};

/* ---- what was said ---- */

static int own_seat(struct asking *a)
{
	struct hc_core *c = a->c;
	struct hc_part *p = hc_part_by_id(c, a->m->id);
	const uint32_t seat = p ? hc_part_find_seat(c, p, a->m->rank) : HC_NONE;

	if (!p || p->epoch != a->m->epoch) {
		HC_TEXT(a->text, "the domain is gone, or in another epoch");
		return HC_E_GONE;
	}
	a->p = p;
	if (seat == HC_NONE || c->seats[seat].process != a->s->process) {
		HC_TEXT(a->text, "rank %u is not a rank of this process (pid %u)", a->m->rank,
			c->processes[a->s->process].pid);
		return HC_E_PERMISSION;
	}
	if (p->state == HC_W_domain_state_ACTIVE && c->seats[seat].state == HC_W_member_state_READY)
		return 0;
	HC_TEXT(a->text, "the domain is %s: %s", hc_word_domain_state(p->state),
		hc_part_cause(c, p));
	return p->state == HC_W_domain_state_DAMAGED ? HC_E_DAMAGED : HC_E_GONE;
}

static int check_peer(struct asking *a, uint32_t peer)
{
	struct hc_core *c = a->c;
	uint32_t seat;

	if (peer >= a->p->nranks || peer == a->m->rank) {
		HC_TEXT(a->text, "peer %u: wanted another rank than %u, below %u", peer, a->m->rank,
			a->p->nranks);
		return HC_E_INVALID;
	}
	seat = hc_part_find_seat(c, a->p, peer);
	if (seat == HC_NONE)
		return 0; /* on another node, whose daemon knows */
	if (c->seats[seat].state != HC_W_member_state_DEAD &&
	    c->seats[seat].state != HC_W_member_state_LEFT)
		return 0;
	HC_TEXT(a->text, "rank %u has %s", peer,
		c->seats[seat].state == HC_W_member_state_DEAD ? "died" : "left");
	return HC_E_PEER_LOST;
}

static int check_piece(struct asking *a, struct hc_m_want_piece *piece)
{
	int r = check_peer(a, piece->peer);

	if (r)
		return r;
	if (piece->path_type > HC_W_link_type_SHM || piece->flags > 1) {
		HC_TEXT(a->text, "path type %u, flags %u: wanted 0 to %u, and 0 or 1",
			piece->path_type, piece->flags, HC_W_link_type_SHM);
		return HC_E_INVALID;
	}
	if (piece->flags & 1) {
		piece->buffer_bytes = 0;
		return 0;
	}
	if (!piece->buffer_bytes)
		piece->buffer_bytes = HC_CHANNEL_BUFFER_DEFAULT;
	if (piece->buffer_bytes < HC_CHANNEL_BUFFER_MIN ||
	    piece->buffer_bytes > HC_CHANNEL_BUFFER_MAX) {
		HC_TEXT(a->text, "buffer of %u bytes: wanted %u to %u, or 0", piece->buffer_bytes,
			HC_CHANNEL_BUFFER_MIN, HC_CHANNEL_BUFFER_MAX);
		return HC_E_INVALID;
	}
	piece->buffer_bytes = (piece->buffer_bytes + PAGE - 1) / PAGE * PAGE;
	return 0;
}

static int check(struct asking *a)
{
	struct hc_arr pieces = a->m->pieces;
	int r = own_seat(a);

	while (!r && hc_arr_next(&pieces, &hc_desc_want_piece, HC_PROTO_MAX,
				 &a->c->chan->pieces[a->count]))
		r = check_piece(a, &a->c->chan->pieces[a->count++]);
	if (r)
		return r;
	if (a->count)
		return 0;
	HC_TEXT(a->text, "no channel is asked for: wanted 1 to %u", HC_ADMIT_GANG_MAX);
	return HC_E_INVALID;
}

static uint64_t key_of(const struct asking *a)
{
	const struct hc_hash_key k = {a->m->id, (uint64_t)a->m->rank << 32 | a->count};

	return hc_hash(&k, a->m->pieces.bytes, a->m->pieces.len);
}

/* ---- ends that are there ---- */

/* An end that was given to this rank, by an answer that nobody heard. */
static struct hc_channel *lost_answer(struct asking *a, const struct hc_m_want_piece *piece,
				      unsigned *side)
{
	struct hc_core *c = a->c;
	const uint64_t key = hc_end_key(hc_part_number(c, a->p), a->m->rank);
	struct hc_channel *ch, *best = NULL;
	uint32_t e;

	for (e = hc_index_find(&c->chan->by_end, key); e != HC_NONE;
	     e = hc_index_next(&c->chan->by_end, e)) {
		const unsigned me = e & 1;

		ch = &c->chan->at[e / 2];
		if (ch->state != CHANNEL_GRANTED || ch->want[me] != HC_NONE ||
		    ((unsigned)ch->ends >> (2 * me) & (END_GIVEN | END_COLLECTED)) != END_GIVEN ||
		    ch->rank[!me] != piece->peer || hc_session_get(c, ch->session[me]) ||
		    ch->mbps[me] != piece->mbps || ch->mbps[!me] != piece->back_mbps ||
		    (ch->flags & 1) != piece->flags || ch->buffer != piece->buffer_bytes)
			continue;
		if (!best || ch->since < best->since) {
			best = ch;
			*side = me;
		}
	}
	return best;
}

/* The two ends want different things: both values. */
static int mismatch(struct asking *a, const struct hc_channel *ch, const char *what, uint32_t one,
		    uint32_t two)
{
	HC_TEXT(a->text,
		"the two ends of a channel want different things: rank %u says %s %u, "
		"rank %u says %u",
		ch->rank[ch->rank[0] == a->m->rank], what, one, a->m->rank, two);
	return HC_E_MISMATCH;
}

/* What is said of the end that is there holds; 0 leaves it open. */
static int agree(struct asking *a, const struct hc_channel *ch, unsigned side,
		 const struct hc_m_want_piece *piece, uint32_t said_buffer)
{
	if (piece->mbps && piece->mbps != ch->mbps[side])
		return mismatch(a, ch, "back_mbps", ch->mbps[side], piece->mbps);
	if (piece->back_mbps && piece->back_mbps != ch->mbps[!side])
		return mismatch(a, ch, "bandwidth_mbps", ch->mbps[!side], piece->back_mbps);
	if (piece->flags != (ch->flags & 1))
		return mismatch(a, ch, "flags", ch->flags & 1, piece->flags);
	if (piece->path_type && piece->path_type != ch->path_type)
		return mismatch(a, ch, "path_type", ch->path_type, piece->path_type);
	if (said_buffer && piece->buffer_bytes != ch->buffer)
		return mismatch(a, ch, "buffer_bytes", ch->buffer, piece->buffer_bytes);
	return 0;
}

/* What a domain began with, and nobody has taken: does it do for this piece? */
static bool does(const struct asking *a, const struct hc_channel *ch, unsigned side,
		 const struct hc_m_want_piece *piece)
{
	const struct hc_admit_link *link = hc_admit_link_fact(a->c->admit, ch->link);

	return ch->state == CHANNEL_GRANTED && piece->mbps <= ch->mbps[side] &&
	       piece->back_mbps <= ch->mbps[!side] && link && (piece->flags & 1 || link->carries) &&
	       (!piece->path_type || piece->path_type == link->type);
}

/* The oldest channel that lacks an end of this rank, if any. */
static struct hc_channel *lacks_me(struct asking *a, const struct hc_m_want_piece *piece,
				   unsigned *side)
{
	struct hc_core *c = a->c;
	const struct hc_pair *pair =
		hc_channel_pair_of(c, hc_part_number(c, a->p), a->m->rank, piece->peer);
	struct hc_channel *ch;
	uint32_t n = pair ? hc_list_first(&pair->open) : HC_NONE;

	for (; n != HC_NONE; n = hc_list_next(&c->chan->open_links, n)) {
		ch = &c->chan->at[n];
		*side = ch->rank[1] == a->m->rank;
		if (!hc_channel_lacks(ch, *side))
			continue;
		if (!ch->reserved || !hc_channel_lacks(ch, !*side) || does(a, ch, *side, piece))
			return ch;
	}
	return NULL;
}

static uint64_t ring_bytes(const struct hc_m_want_piece *piece)
{
	return piece->buffer_bytes ? HC_RING_FILE_BYTES(piece->buffer_bytes) : 0;
}

/* The first who takes an end of it says what it is to be. */
static int make_it(struct asking *a, struct hc_channel *ch, const struct hc_m_want_piece *piece)
{
	int r = hc_user_may_memory(a->c, ch->uid, ring_bytes(piece), a->text, sizeof(a->text));

	if (r)
		return r;
	if (ch->buffer)
		hc_user_release_memory(a->c, ch->uid, HC_RING_FILE_BYTES(ch->buffer));
	ch->buffer = 0;
	ch->flags = piece->flags;
	hc_channel_set_buffer(a->c, ch, piece->buffer_bytes);
	return 0;
}

static int match(struct asking *a, uint32_t i)
{
	struct hc_core *c = a->c;
	const struct hc_m_want_piece *piece = &c->chan->pieces[i];
	struct hc_channel *ch;
	unsigned side;
	int r = 0;

	ch = lost_answer(a, piece, &side);
	if (ch) {
		hc_channel_arm(c, ch);
	} else {
		ch = lacks_me(a, piece, &side);
		if (ch && ch->reserved && hc_channel_lacks(ch, !side))
			r = make_it(a, ch, piece);
		else if (ch)
			r = agree(a, ch, side, piece,
				  piece->buffer_bytes != HC_CHANNEL_BUFFER_DEFAULT);
	}
	if (r)
		return r;
	if (!ch)
		a->fresh++;
	else
		hc_want_ref(c, a->w, i, ch, side);
	return 0;
}

/* ---- what is to be had ---- */

static int within_quota(struct asking *a)
{
	struct hc_core *c = a->c;
	uint64_t bytes = 0;
	uint32_t i;
	int r;

	for (i = 0; i < a->count; i++)
		if (c->chan->refs[a->w->refs + i] == HC_NONE)
			bytes += ring_bytes(&c->chan->pieces[i]);
	r = hc_user_may_hold(c, a->p->uid, HC_HOLD_CHANNELS, a->fresh, a->text, sizeof(a->text));
	if (!r)
		r = hc_user_may_memory(c, a->p->uid, bytes, a->text, sizeof(a->text));
	if (r || c->chan->pool.used + a->fresh <= c->chan->nchannels)
		return r;
	HC_TEXT(a->text, "this node has %u channels, which is all that it can keep",
		c->chan->pool.used);
	return HC_E_LIMIT;
}

/* The channel of a piece that nobody has asked for yet. */
static struct hc_channel *make(struct asking *a, const struct hc_m_want_piece *piece)
{
	struct hc_core *c = a->c;
	struct hc_channel *ch = hc_channel_make(c, a->p, 0, a->m->rank, piece->peer);

	hc_assert(ch);
	ch->mbps[0] = piece->mbps;
	ch->mbps[1] = piece->back_mbps;
	ch->path_type = piece->path_type;
	ch->flags = piece->flags;
	ch->hold_ms = a->m->hold_ms;
	hc_channel_set_buffer(c, ch, piece->buffer_bytes);
	return ch;
}

/* The admission's view of the pieces that are fresh. */
static void pieces_of(struct asking *a)
{
	struct hc_core *c = a->c;
	struct hc_channel like = {.rank = {a->m->rank, 0}};
	uint32_t i, n = 0;

	for (i = 0; i < a->count; i++) {
		const struct hc_m_want_piece *piece = &c->chan->pieces[i];

		if (c->chan->refs[a->w->refs + i] != HC_NONE)
			continue;
		like.rank[1] = piece->peer;
		like.mbps[0] = piece->mbps;
		like.mbps[1] = piece->back_mbps;
		like.path_type = piece->path_type;
		like.flags = piece->flags;
		c->chan->ask[n++] = hc_channel_admit_piece(c, a->p, &like);
	}
}

/* Ask, with the ticket that a former call of the same words left. */
static int ask(struct asking *a, uint32_t *request)
{
	struct hc_want *ticket = hc_want_ticket_find(a->c, a->key);
	const struct hc_want_words words = {
		.npieces = a->fresh, .hold_ms = a->m->hold_ms, .wait = a->m->wait == 1};

	/* its place is for as many pieces as were fresh then */
	if (ticket && (a->fresh != a->count || ticket->lost_rank != a->fresh)) {
		hc_want_fail(a->c, ticket, 0, "");
		ticket = NULL;
	}
	return hc_want_ask(a->c, a->p, &words, ticket, request, &a->retry_ms);
}

/* Refused for now: the place is kept, within the quota. */
static int keep_place(struct asking *a, uint32_t request)
{
	struct hc_core *c = a->c;
	struct hc_want *w;
	uint32_t i;
	int r;

	if (c->chan->ticket_of[request])
		return HC_E_AGAIN;
	r = hc_user_may_hold(c, a->p->uid, HC_HOLD_WAITING, 1, a->text, sizeof(a->text));
	w = r ? NULL : hc_want_ticket(c, a->key, request);
	if (!w) {
		hc_admit_release(c->admit, c->now, request);
		return r ? r : HC_E_AGAIN;
	}
	w->part = hc_part_number(c, a->p);
	w->domain = a->p->id;
	w->rank = a->m->rank;
	w->uid = a->p->uid;
	w->pid = c->processes[a->s->process].pid;
	w->priority = a->p->priority;
	w->count = 0;
	for (i = 0; i < a->fresh; i++)
		w->mbps += (uint64_t)c->chan->ask[i].mbps[0] + c->chan->ask[i].mbps[1];
	w->lost_rank = a->fresh; /* pieces, for who looks at it */
	hc_want_index(c, w);
	hc_want_waits(c, w, HC_NEVER);
	return HC_E_AGAIN;
}

static void no_way(struct asking *a)
{
	const struct hc_m_want_piece *one = &a->c->chan->pieces[0];

	if (a->count > 1)
		HC_TEXT(a->text,
			"no links between rank %u and its %u peers could ever carry it; hcommctl "
			"link list shows what there is",
			a->m->rank, a->count);
	else
		HC_TEXT(a->text,
			"no link between rank %u and rank %u could ever carry it (wanted %u MB/s "
			"and %u back, type %s%s); hcommctl link list shows what there is",
			a->m->rank, one->peer, one->mbps, one->back_mbps,
			hc_word_link_type((uint8_t)one->path_type),
			one->flags & 1 ? "" : ", with rings in shared memory");
}

static void put_request(struct asking *a, uint32_t request)
{
	struct hc_core *c = a->c;
	struct hc_channel *ch;
	uint32_t i, n = 0;

	a->admit = request;
	for (i = 0; i < a->count; i++) {
		if (c->chan->refs[a->w->refs + i] != HC_NONE)
			continue;
		ch = make(a, &c->chan->pieces[i]);
		hc_want_ref(c, a->w, i, ch, 0);
		hc_channel_bind(c, ch, request, n++);
		hc_channel_pair(c, ch);
	}
}

/* All pieces that are fresh, as one gang. 0 and IN_PROGRESS: they are the call's. */
static int ask_for_rest(struct asking *a)
{
	struct hc_core *c = a->c;
	uint32_t request;
	int r = within_quota(a);

	if (r)
		return r;
	pieces_of(a);
	r = ask(a, &request);
	switch (r) {
	case 0: put_request(a, request); return 0;
	case HC_E_IN_PROGRESS:
		r = hc_user_may_hold(c, a->p->uid, HC_HOLD_WAITING, 1, a->text, sizeof(a->text));
		if (r) {
			hc_admit_release(c->admit, c->now, request);
			return r;
		}
		put_request(a, request);
		return HC_E_IN_PROGRESS;
	case HC_E_AGAIN:
		hc_channel_why_not(c, a->p->uid, c->chan->ask, a->fresh, a->text, sizeof(a->text));
		return keep_place(a, request);
	case HC_E_LINK_UNAVAILABLE: no_way(a); return r;
	case HC_E_LIMIT:
		if (!hc_channel_over_quota(c, a->p->uid, c->chan->ask, a->fresh, true, a->text,
					   sizeof(a->text)))
			HC_TEXT(a->text, "too many requests for channels wait on this node");
		return r;
	}
	HC_TEXT(a->text, "the request cannot be: class %u, weight %u", a->p->priority,
		a->p->weight);
	return HC_E_INVALID;
}

/* Some piece reaches another node. */
static bool goes_out(const struct asking *a)
{
	const struct hc_core *c = a->c;
	uint32_t i;

	for (i = 0; i < a->count; i++)
		if (c->chan->refs[a->w->refs + i] == HC_NONE &&
		    hc_part_find_seat(c, a->p, c->chan->pieces[i].peer) == HC_NONE)
			return true;
	return false;
}

/* Then the home is asked for all that is fresh. */
static int go_out(struct asking *a)
{
	struct hc_core *c = a->c;
	uint32_t i;
	int r = within_quota(a);

	if (!r)
		r = hc_user_may_hold(c, a->p->uid, HC_HOLD_WAITING, 1, a->text, sizeof(a->text));
	if (r)
		return r;
	for (i = 0; i < a->count; i++)
		if (c->chan->refs[a->w->refs + i] == HC_NONE)
			hc_want_ref(c, a->w, i, make(a, &c->chan->pieces[i]), 0);
	a->out = true;
	return HC_E_IN_PROGRESS;
}

/* When a channel that waits will be; of a gang other nodes decide. */
static uint64_t promise(const struct hc_core *c, const struct hc_channel *ch)
{
	if (ch->request == HC_NONE || c->chan->keep_of[ch->request])
		return HC_ADMIT_HINT_NONE;
	return hc_admit_promise(c->admit, c->now, ch->request);
}

/* The far ends of channels that wait themselves: had not at once, but after the last of them. */
static int not_at_once(struct asking *a)
{
	struct hc_core *c = a->c;
	const struct hc_channel *ch;
	uint64_t ns, last = 0;
	uint32_t i, ref, ahead = 0, peer = HC_NONE;

	for (i = 0; i < a->count; i++) {
		ref = c->chan->refs[a->w->refs + i];
		ch = ref == HC_NONE ? NULL : &c->chan->at[REF_CHANNEL(ref)];
		if (!ch || ch->state != CHANNEL_WAITING)
			continue;
		ns = promise(c, ch);
		if (peer == HC_NONE || ns > last) {
			last = ns;
			peer = c->chan->pieces[i].peer;
			if (ch->request != HC_NONE)
				hc_admit_outlook(c->admit, c->now, ch->request, &ahead, &ns);
		}
	}
	a->retry_ms = hc_want_retry_ms(peer == HC_NONE ? HC_ADMIT_HINT_NONE : last);
	HC_TEXT(a->text, "rank %u has asked for this channel and waits for it, behind %u others",
		peer, ahead);
	return HC_E_AGAIN;
}

static int carry_out(struct asking *a)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < a->count && !r; i++)
		r = match(a, i);
	if (!r && a->w->missing && a->m->wait != 1)
		r = not_at_once(a);
	if (!r && a->fresh)
		r = goes_out(a) ? go_out(a) : ask_for_rest(a);
	return r;
}

/* ---- the request ---- */

static void refuse(struct asking *a, int code)
{
	struct hc_core *c = a->c;
	const struct hc_m_channel_refused m = {.retry_after_ms = a->retry_ms,
					       .text = hc_str(a->text)};

	if (code == HC_E_AGAIN)
		hc_emit_refused(c, a->s->id, a->request, &m);
	else
		hc_emit_error(c, a->s->id, a->request, code, a->text);
}

static uint64_t deadline(const struct asking *a)
{
	return a->m->timeout_ms ? a->c->now + a->m->timeout_ms * 1000000ull : HC_NEVER;
}

/* The same call on a new connection, while the first one waits: that is answered there. */
static bool come_back(struct asking *a)
{
	struct hc_core *c = a->c;
	struct hc_want *w;
	uint32_t n;

	for (n = hc_index_find(&c->chan->want_key, a->key); n != HC_NONE;
	     n = hc_index_next(&c->chan->want_key, n)) {
		w = &c->chan->wants[n];
		if (w->state == WANT_TICKET || w->kind != WANT_CLIENT ||
		    w->part != hc_part_number(c, a->p) || w->rank != a->m->rank ||
		    w->count != a->count || hc_session_get(c, w->session))
			continue;
		w->session = a->s->id;
		w->request = a->request;
		w->deadline = deadline(a);
		if (w->code == HC_E_IN_PROGRESS)
			hc_timers_set(&c->chan->timers, n, w->deadline);
		return true;
	}
	return false;
}

static int begin(struct asking *a)
{
	struct hc_core *c = a->c;

	a->w = hc_want_make(c, WANT_CLIENT, a->count);
	if (!a->w) {
		HC_TEXT(a->text, "too many requests for channels wait on this node");
		return HC_E_LIMIT;
	}
	a->w->key = a->key;
	a->w->domain = a->p->id;
	a->w->session = a->s->id;
	a->w->request = a->request;
	a->w->part = hc_part_number(c, a->p);
	a->w->rank = a->m->rank;
	a->w->uid = a->p->uid;
	a->w->pid = c->processes[a->s->process].pid;
	a->w->priority = a->p->priority;
	return 0;
}

/* Marks that a call has left on ends which it will not have. */
static void undo(struct asking *a)
{
	a->w->kind = WANT_GANG; /* it is answered already */
	hc_want_fail(a->c, a->w, 0, "");
}

/* Who does not wait waits for the answer of other nodes all the same. */
static uint64_t until(const struct asking *a)
{
	return a->out && a->m->wait != 1 ? a->c->now + a->c->set.prepare_limit_ns : deadline(a);
}

void hc_channel_want(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_channel_want *m)
{
	struct asking a = {.c = c, .s = s, .m = m, .request = request, .retry_ms = HC_NONE};
	uint32_t i;
	int r = check(&a);

	if (!r) {
		a.key = key_of(&a);
		if (come_back(&a))
			return;
		r = begin(&a);
	}
	if (r) {
		refuse(&a, r);
		return;
	}
	r = carry_out(&a);
	if (r && r != HC_E_IN_PROGRESS) {
		refuse(&a, r);
		undo(&a);
		return;
	}
	hc_want_index(c, a.w);
	for (i = 0; i < a.count; i++)
		hc_channel_pair(c, &c->chan->at[REF_CHANNEL(c->chan->refs[a.w->refs + i])]);
	if (a.fresh && !r)
		hc_channel_granted(c, a.admit);
	if (a.w->state == WANT_WAITING && a.w->missing)
		hc_want_waits(c, a.w, until(&a));
	else if (a.w->state == WANT_WAITING)
		hc_want_ready(c, a.w);
	if (a.out)
		hc_gang_ask(c, a.w, m->wait == 1);
}
