/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels that an earlier daemon granted; see channel.h and restore.h.
 *
 * What a uid holds by them counts in quota_link_percent, but none is refused for it: an option that
 * was lowered meanwhile ends no channel.
 *
 * They come after the domains, the devices and the links, and before START. Each keeps its id, its
 * register and its share of its link. The link is found by its name, for its number may be that of
 * another one after a change of the configuration; when it is described no more, the channel is
 * revoked. The rings of one that only one end had opened are lost with
 * the memory that the earlier daemon held for the other; it is ended, and so is one that cannot be
 * placed. Calls that waited are gone: the library repeats them.
 */
#include "channel.h"

#include "emit.h"
#include "link.h"
#include "part.h"

#include <stdio.h>
#include <string.h>

/* Of a rank on another node it is not known here; see channel_again.c. */
static bool is_away(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	return rank < p->nranks && hc_part_find_seat(c, p, rank) == HC_NONE;
}

static bool may_hold(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	const uint32_t seat = hc_part_find_seat(c, p, rank);

	return is_away(c, p, rank) || (seat != HC_NONE && hc_seat_lives(&c->seats[seat]));
}

static const char *check(struct hc_core *c, const struct hc_part *p,
			 const struct hc_m_channel_row *m)
{
	if (!p || p->epoch != m->epoch || p->state == HC_W_domain_state_DAMAGED)
		return "its domain is not here any more";
	if (!m->channel || hc_channel_by_id(c, m->channel))
		return "its id is taken";
	if (m->rank == m->peer || !may_hold(c, p, m->rank) || !may_hold(c, p, m->peer) ||
	    (is_away(c, p, m->rank) && is_away(c, p, m->peer)))
		return "a rank of it is gone";
	return NULL;
}

static void drop(struct hc_core *c, const struct hc_m_channel_row *m, const char *why)
{
	char text[HC_NAME_MAX + 160];

	HC_TEXT(text, "stored channel %016llx is not taken back: %s",
		(unsigned long long)m->channel, why);
	hc_emit_log(c, HC_LOG_WARN, HC_W_event_code_CHANNEL_REVOKED, m->domain, m->rank, text);
	hc_emit_journal(c, HC_W_event_code_CHANNEL_REVOKED, m->domain, m->epoch, m->rank, 0, 0,
			text);
	hc_emit_del_channel(c, m->channel);
}

static const char *find_link(const struct hc_core *c, const struct hc_m_channel_row *m,
			     uint32_t *link, char *text, size_t bytes)
{
	*link = m->link;
	if (!m->link_name.len)
		return NULL;
	*link = hc_link_named(c, m->link_name, m->link);
	if (*link != HC_NONE)
		return NULL;
	snprintf(text, bytes, "its link %.*s is not described any more", (int)m->link_name.len,
		 m->link_name.p);
	return text;
}

static const char *place(struct hc_core *c, const struct hc_part *p, struct hc_channel *ch,
			 const struct hc_m_channel_row *m, uint32_t link)
{
	const struct hc_admit_piece piece = hc_channel_admit_piece(c, p, ch);
	const struct hc_admit_place at = {.link = link, .vc = m->vc};
	const struct hc_want_words words = {.npieces = 1, .hold_ms = ch->hold_ms};
	const struct hc_admit_ask ask = hc_want_admit_ask(c, p, &words, &piece);
	uint32_t request;

	if (hc_admit_take_back(c->admit, c->now, &ask, &at, &request))
		return "its link has no room for it any more";
	hc_channel_bind(c, ch, request, 0);
	ch->link = link;
	ch->vc = m->vc;
	return NULL;
}

/* One end alone has the memory of the rings. */
static bool is_torn(const struct hc_channel *ch)
{
	return ch->buffer &&
	       !(ch->ends & END_BIT(END_COLLECTED, 0)) != !(ch->ends & END_BIT(END_COLLECTED, 1));
}

void hc_channel_restore(struct hc_core *c, struct hc_str row)
{
	struct hc_m_channel_row m = {0};
	struct hc_channel *ch = NULL;
	const struct hc_part *p;
	uint32_t link = HC_NONE;
	const char *why;
	char gone[HC_NAME_MAX + 40];

	if (hc_decode(&hc_desc_channel_row, HC_PROTO_MAX, (const uint8_t *)row.p, row.len, &m)) {
		hc_emit_log(c, HC_LOG_ERROR, 0, 0, HC_NONE, "a stored channel is malformed");
		return;
	}
	p = hc_part_by_id(c, m.domain);
	why = check(c, p, &m);
	if (!why)
		why = find_link(c, &m, &link, gone, sizeof(gone));
	if (!why) {
		ch = hc_channel_claim(c, p, m.channel, m.slot, m.rank, m.peer);
		why = ch ? NULL : "the slot of its register is taken";
	}
	if (!why) {
		ch->mbps[0] = m.mbps;
		ch->mbps[1] = m.back_mbps;
		ch->path_type = m.path_type;
		ch->flags = m.flags & 1;
		ch->reserved = m.flags & 2;
		ch->hold_ms = m.hold_ms;
		ch->ends = m.ends;
		hc_channel_set_buffer(c, ch, m.buffer_bytes);
		why = place(c, p, ch, &m, link);
		if (why)
			hc_channel_free(c, ch);
	}
	if (why) {
		drop(c, &m, why);
		return;
	}
	ch->row = true;
	if (!m.link_name.len)
		hc_channel_store(c, ch);
	ch->state = CHANNEL_GRANTED;
	c->chan->granted++;
	hc_channel_pair(c, ch);
	hc_channel_publish(c, ch, HC_W_channel_state_OK);
}

void hc_channel_restored(struct hc_core *c)
{
	struct hc_channel *ch;
	uint32_t n;

	hc_pool_settle(&c->chan->pool);
	for (n = 0; n < c->chan->pool.fresh; n++) {
		ch = &c->chan->at[n];
		if (ch->state != CHANNEL_GRANTED)
			continue;
		if (is_torn(ch))
			hc_channel_end(c, ch, WHY_RINGS, HC_NONE, 0);
		else
			hc_channel_arm(c, ch);
	}
}
