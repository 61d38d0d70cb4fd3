/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of channels: who holds what, and why one is over. See channel.h. */
#include "channel.h"

#include "emit.h"
#include "link.h"
#include "part.h"

#include <stdio.h>
#include <string.h>

#define NAMED 3u /* holders that a refusal names */

const char *hc_channel_link_name(struct hc_core *c, uint32_t link, char *text, size_t bytes)
{
	if (link < c->nlinks)
		return hc_link_name(c, link, text, bytes);
	return "";
}

void hc_channel_why_text(const struct hc_core *c, const struct hc_channel *ch, char *text,
			 size_t bytes)
{
	const char *what = "";

	(void)c;
	switch ((enum hc_channel_why)ch->why) {
	case WHY_RELEASED: what = "released the channel"; break;
	case WHY_DIED: what = "exited"; break;
	case WHY_LEFT: what = "left the domain"; break;
	case WHY_ABORTED: what = "aborted"; break;
	case WHY_DOMAIN:
		snprintf(text, bytes, "the domain of the channel is over or damaged");
		return;
	case WHY_LAPSED:
		snprintf(text, bytes,
			 "an end of the channel was granted and not used within grant_ttl_s");
		return;
	case WHY_RINGS:
		snprintf(text, bytes,
			 "the daemon or a session ended before both ends of the channel "
			 "were in use; its memory is lost");
		return;
	case WHY_WITHDRAWN: snprintf(text, bytes, "the call for the channel was withdrawn"); return;
	case WHY_PEER: what = "ended the channel, on another node"; break;
	}
	snprintf(text, bytes, "rank %u, pid %u, %s", ch->why_rank, ch->why_pid, what);
}

/* ---- who holds what ---- */

struct holders {
	struct hc_core *c;
	char *text;
	size_t bytes, at;
	uint32_t n;
};

static const struct hc_channel *channel_of(const struct hc_core *c, uint32_t request,
					   uint32_t piece)
{
	uint32_t n = c->chan->of_request[request];

	while (n && c->chan->at[n - 1].piece != piece)
		n = c->chan->at[n - 1].next;
	return n ? &c->chan->at[n - 1] : NULL;
}

static void append(struct holders *h, const char *what)
{
	int n;

	if (h->at >= h->bytes)
		return;
	n = snprintf(h->text + h->at, h->bytes - h->at, "%s", what);
	h->at += n < 0 ? 0 : (size_t)n;
}

static bool holder(uint32_t request, uint32_t piece, void *context)
{
	struct holders *h = context;
	const struct hc_channel *ch;
	const struct hc_part *p;
	uint32_t seat, pid = 0;
	char one[160];

	if (h->n++ >= NAMED)
		return true; /* only counted */
	ch = channel_of(h->c, request, piece);
	if (!ch) {
		append(h, h->n > 1 ? ", a ticket that waits for its caller"
				   : " held by a ticket that waits for its caller");
		return true;
	}
	p = hc_part(h->c, ch->part);
	seat = hc_part_find_seat(h->c, p, ch->rank[0]);
	if (seat != HC_NONE && h->c->seats[seat].process != HC_NONE)
		pid = h->c->processes[h->c->seats[seat].process].pid;
	HC_TEXT(one, "%s rank %u (pid %u) of domain %016llx to rank %u: %u MB/s",
		h->n > 1 ? "," : " held by", ch->rank[0], pid, (unsigned long long)ch->domain,
		ch->rank[1], ch->mbps[0] > ch->mbps[1] ? ch->mbps[0] : ch->mbps[1]);
	append(h, one);
	return true;
}

/* Of the links that could carry the piece, the one with the most room; HC_NONE: it fits. */
static uint32_t tightest(struct hc_core *c, const struct hc_admit_piece *piece)
{
	uint32_t i, best = HC_NONE, room, most = 0;
	struct hc_admit_use use;
	bool now;

	for (i = 0; i < c->nlinks; i++) {
		if (!hc_admit_could(c->admit, i, piece, &now))
			continue;
		if (now)
			return HC_NONE;
		hc_admit_link_use(c->admit, i, &use);
		room = use.limit_mbps -
		       (use.used_mbps[0] > use.used_mbps[1] ? use.used_mbps[0] : use.used_mbps[1]);
		if (best != HC_NONE && room <= most)
			continue;
		best = i;
		most = room;
	}
	return best;
}

static void say_link(struct hc_core *c, uint32_t link, const struct hc_admit_piece *piece,
		     struct holders *h)
{
	const struct hc_admit_link *fact = hc_admit_link_fact(c->admit, link);
	char name[HC_NAME_MAX + 1], one[300];
	struct hc_admit_use use;

	hc_admit_link_use(c->admit, link, &use);
	HC_TEXT(one,
		"link %s has %u of %u MB/s and %u of %u virtual channels in use (wanted %u "
		"MB/s);",
		hc_channel_link_name(c, link, name, sizeof(name)),
		use.used_mbps[0] > use.used_mbps[1] ? use.used_mbps[0] : use.used_mbps[1],
		use.limit_mbps, use.used_vcs, fact ? fact->vcs : 0,
		piece->mbps[0] > piece->mbps[1] ? piece->mbps[0] : piece->mbps[1]);
	append(h, one);
}

void hc_channel_who_holds(struct hc_core *c, const struct hc_admit_piece *pieces, uint32_t count,
			  char *text, size_t bytes)
{
	struct holders h = {.c = c, .text = text, .bytes = bytes};
	uint32_t i, link = HC_NONE;
	char more[32];

	text[0] = '\0';
	for (i = 0; i < count && link == HC_NONE; i++)
		link = tightest(c, &pieces[i]);
	if (link == HC_NONE) {
		snprintf(text, bytes, "others came first, or the channels do not fit together");
		return;
	}
	say_link(c, link, &pieces[i - 1], &h);
	hc_admit_holders(c->admit, link, holder, &h);
	if (!h.n)
		append(&h, " kept for others that came first");
	if (h.n > NAMED) {
		HC_TEXT(more, ", and %u more", h.n - NAMED);
		append(&h, more);
	}
}
