/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests for a channel that a rank has: open its end, release it; see channel.h.
 *
 * Both are answered when the row is stored: after a crash the daemon must neither hand out a second
 * memory for the same rings nor bring back what was released. The rings are made for the first end
 * and let go with the answer to the second. So an end that asks again, since its daemon or its
 * session ended before the answer came, can have them as long as the other has not asked; behind
 * that nobody has them any more, and the channel is over.
 */
#include "channel.h"

#include "emit.h"
#include "part.h"
#include "pages.h"
#include "session.h"

#include <stdio.h>

static struct hc_later *later(struct hc_core *c, const struct hc_session *s, uint32_t request,
			      uint64_t channel)
{
	const uint32_t n = hc_pool_get(&c->chan->later_pool);

	if (n == HC_NONE) {
		hc_emit_error(c, s->id, request, HC_E_LIMIT,
			      "too many requests wait for an answer");
		return NULL;
	}
	c->chan->laters[n] =
		(struct hc_later){.session = s->id, .request = request, .channel = channel};
	return &c->chan->laters[n];
}

static void later_push(struct hc_core *c, struct hc_later *l)
{
	l->stored = c->persist_seq;
	hc_list_push(&c->chan->later, &c->chan->later_links, (uint32_t)(l - c->chan->laters));
}

/* The side of the channel that the caller's process has as `rank`, or -1: refused. */
static int own_side(struct hc_core *c, const struct hc_session *s, uint32_t request,
		    const struct hc_channel *ch, uint32_t rank)
{
	const struct hc_part *p = hc_part(c, ch->part);
	const uint32_t seat = hc_part_find_seat(c, p, rank);
	char text[160];

	if ((rank == ch->rank[0] || rank == ch->rank[1]) && seat != HC_NONE &&
	    c->seats[seat].process == s->process)
		return rank == ch->rank[1];
	HC_TEXT(text,
		"channel %016llx joins ranks %u and %u; rank %u of this process (pid %u) is "
		"neither",
		(unsigned long long)ch->id, ch->rank[0], ch->rank[1], rank,
		c->processes[s->process].pid);
	hc_emit_error(c, s->id, request, HC_E_PERMISSION, text);
	return -1;
}

static void gone(struct hc_core *c, const struct hc_session *s, uint32_t request,
		 const struct hc_channel *ch)
{
	char text[256] = "the channel is over";

	if (ch && ch->state == CHANNEL_ENDING)
		hc_channel_why_text(c, ch, text, sizeof(text));
	hc_emit_error(c, s->id, request, HC_E_GONE, text);
}

static bool both_collected(const struct hc_channel *ch)
{
	return ch->ends & END_BIT(END_COLLECTED, 0) && ch->ends & END_BIT(END_COLLECTED, 1);
}

/* Its session, or its daemon, has gone before the answer: so has the memory, for both ends. */
static void open_again(struct hc_core *c, const struct hc_session *s, uint32_t request,
		       struct hc_channel *ch, int side)
{
	if (hc_session_get(c, ch->session[side])) {
		hc_emit_error(c, s->id, request, HC_E_INVALID,
			      "both ends of the channel are open already");
		return;
	}
	hc_channel_end(c, ch, WHY_RINGS, HC_NONE, 0);
	gone(c, s, request, ch);
}

void hc_channel_open(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_channel_open *m)
{
	struct hc_channel *ch = hc_channel_by_id(c, m->channel);
	struct hc_later *l;
	int side;

	if (!ch || ch->state == CHANNEL_ENDING) {
		gone(c, s, request, ch);
		return;
	}
	side = own_side(c, s, request, ch, m->rank);
	if (side < 0)
		return;
	if (ch->state != CHANNEL_GRANTED || !(ch->ends & END_BIT(END_GIVEN, side))) {
		hc_emit_error(c, s->id, request, HC_E_NOT_FOUND,
			      "this end of the channel was not given to its rank yet");
		return;
	}
	if (ch->buffer && both_collected(ch)) {
		open_again(c, s, request, ch, side);
		return;
	}
	l = later(c, s, request, ch->id);
	if (!l)
		return;
	ch->ends |= END_BIT(END_COLLECTED, side);
	ch->session[side] = s->id;
	l->open = true;
	l->side = (uint8_t)side;
	hc_channel_store(c, ch);
	later_push(c, l);
}

void hc_channel_release(struct hc_core *c, struct hc_session *s, uint32_t request,
			const struct hc_m_channel_release *m)
{
	struct hc_channel *ch = hc_channel_by_id(c, m->channel);
	struct hc_later *l;

	if (ch && ch->state != CHANNEL_ENDING && own_side(c, s, request, ch, m->rank) < 0)
		return;
	if (ch && ch->state == CHANNEL_WAITING) {
		hc_emit_error(c, s->id, request, HC_E_INVALID, "the channel is not granted yet");
		return;
	}
	l = later(c, s, request, m->channel);
	if (!l)
		return;
	if (ch)
		hc_channel_end(c, ch, WHY_RELEASED, m->rank, c->processes[s->process].pid);
	if (ch && ch->row) {
		ch->row = false;
		hc_emit_del_channel(c, ch->id);
	}
	later_push(c, l);
}

static void opened(struct hc_core *c, const struct hc_later *l)
{
	struct hc_channel *ch = hc_channel_by_id(c, l->channel);
	const struct hc_session *s = hc_session_get(c, l->session);
	struct hc_m_channel_open_r m = {.channel = l->channel, .side = l->side};
	struct hc_action *a;

	if (!s && ch) {
		ch->ends &= (uint8_t)~END_BIT(END_COLLECTED, l->side); /* it may ask again */
		hc_channel_arm(c, ch);
	}
	if (!s)
		return;
	if (!ch || ch->state != CHANNEL_GRANTED) {
		gone(c, s, l->request, ch);
		return;
	}
	if (ch->buffer)
		m.bytes = HC_RING_FILE_BYTES(ch->buffer);
	hc_emit_grant(c, s->id, l->request, &hc_desc_channel_open_r, &m,
		      ch->buffer ? HC_GRANT_RINGS : HC_GRANT_NONE, ch->uid, 0);
	a = &c->out->acts[c->out->count - 1];
	a->u.reply.channel = ch->id;
	a->u.reply.bytes = m.bytes;
	a->u.reply.last = both_collected(ch);
}

bool hc_channel_answer(struct hc_core *c)
{
	const uint32_t n = hc_list_first(&c->chan->later);
	struct hc_later l;

	if (n == HC_NONE || c->chan->laters[n].stored > c->persisted)
		return false;
	l = c->chan->laters[n];
	hc_list_del(&c->chan->later, &c->chan->later_links, n);
	hc_pool_put(&c->chan->later_pool, n);
	if (l.open)
		opened(c, &l);
	else if (hc_session_get(c, l.session))
		hc_emit_done(c, l.session, l.request, 0, "");
	return true;
}
