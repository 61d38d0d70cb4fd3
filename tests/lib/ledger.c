/* SPDX-License-Identifier: Apache-2.0 */
/* The books of the links, seen from outside; see ledger.h. */
#include "ledger.h"
#include "raw.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { FIRST_LINKS = 1001, CHANNELS, WAITING, SECOND_LINKS, ASKED = 4 };

struct reading {
	struct hc_ledger *out;
	struct hc_ledger_link again[HC_LEDGER_LINKS];
	uint32_t links_again;
	bool cut; /* a list did not fit into its first page */
	unsigned answers;
	uint8_t seen[HC_LEDGER_LINKS][HC_LEDGER_VCS];
};

int hc_ledger_open(const struct hc_node *n)
{
	return hc_raw_session(n->socket);
}

static void copy(struct hc_str from, char *to, size_t room)
{
	size_t n = from.len < room ? from.len : room - 1;

	memcpy(to, from.p, n);
	to[n] = '\0';
}

/* ---- lists ---- */

static void take_links(struct hc_m_query_r *page, struct hc_ledger_link *link, uint32_t *count)
{
	struct hc_m_view_link v;

	*count = 0;
	for (uint32_t i = 0; i < page->nrows; i++) {
		struct hc_ledger_link *l = &link[*count];

		hc_want(!hc_decode_front(&hc_desc_view_link, HC_PROTO_MAX, &page->rows, &v));
		if (++*count > HC_LEDGER_LINKS)
			hc_fail("more than %d links", HC_LEDGER_LINKS);
		*l = (struct hc_ledger_link){.limit = v.limit_mbps,
					     .used = {v.used_ab_mbps, v.used_ba_mbps},
					     .vcs = v.vcs,
					     .vcs_used = v.vcs_used,
					     .waiting = v.waiting,
					     .grants = v.grants};
		copy(v.name, l->name, sizeof(l->name));
		if (l->used[0] > l->limit || l->used[1] > l->limit || l->vcs_used > l->vcs)
			hc_fail("link %s: %u and %u of %u MB/s are used, %u of %u channels",
				l->name, l->used[0], l->used[1], l->limit, l->vcs_used, l->vcs);
	}
}

static void take_channels(struct reading *r, struct hc_m_query_r *page)
{
	struct hc_ledger *out = r->out;
	struct hc_m_view_channel v;
	char name[64];
	uint32_t k;

	for (uint32_t i = 0; i < page->nrows; i++) {
		hc_want(!hc_decode_front(&hc_desc_view_channel, HC_PROTO_MAX, &page->rows, &v));
		copy(v.link, name, sizeof(name));
		for (k = 0; k < out->links && strcmp(out->link[k].name, name) != 0; k++)
			;
		if (k == out->links || v.vc >= out->link[k].vcs)
			hc_fail("a channel of link '%s', virtual channel %u", name, v.vc);
		if (r->seen[k][v.vc]++)
			hc_fail("link %s: virtual channel %u is granted twice", name, v.vc);
		/* rank 0 of these tests is the lower device, so a channel's way is the link's */
		out->link[k].sum[v.rank > v.peer] += v.mbps;
		out->link[k].sum[v.rank < v.peer] += v.back_mbps;
		out->link[k].count++;
		out->channels++;
	}
}

static void take_waiting(struct hc_ledger *out, struct hc_m_query_r *page)
{
	struct hc_m_view_waiting v;

	for (uint32_t i = 0; i < page->nrows; i++) {
		hc_want(!hc_decode_front(&hc_desc_view_waiting, HC_PROTO_MAX, &page->rows, &v));
		if (v.kind.len == 6 && !memcmp(v.kind.p, "ticket", 6))
			out->tickets++;
		else
			out->waits++;
	}
}

static void take(struct reading *r, const struct hc_frame *f)
{
	struct hc_m_query_r page;

	if (f->head.id < FIRST_LINKS || f->head.id > SECOND_LINKS)
		return;
	if (f->head.type != HC_MSG_query_r ||
	    hc_decode(&hc_desc_query_r, HC_PROTO_MIN, f->body, f->body_len, &page))
		hc_fail("a query was answered by message %u, status %d", f->head.type,
			f->head.status);
	r->answers++;
	r->cut = r->cut || page.cursor;
	switch (f->head.id) {
	case FIRST_LINKS: take_links(&page, r->out->link, &r->out->links); break;
	case CHANNELS: take_channels(r, &page); break;
	case WAITING: take_waiting(r->out, &page); break;
	case SECOND_LINKS: take_links(&page, r->again, &r->links_again); break;
	}
}

/* ---- the check ---- */

static bool is_whole(const struct reading *r)
{
	const struct hc_ledger *l = r->out;

	if (r->cut || l->links != r->links_again)
		return false;
	for (uint32_t i = 0; i < l->links; i++)
		if (l->link[i].grants != r->again[i].grants ||
		    memcmp(l->link[i].used, r->again[i].used, sizeof(l->link[i].used)) != 0 ||
		    l->link[i].vcs_used != r->again[i].vcs_used)
			return false;
	return true;
}

static void check_sums(const struct hc_ledger *out)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < out->links; i++) {
		const struct hc_ledger_link *l = &out->link[i];

		if (l->sum[0] > l->used[0] || l->sum[1] > l->used[1] || l->count > l->vcs_used)
			hc_fail("link %s: %u channels of %u and %u MB/s, but it says %u, %u, %u",
				l->name, l->count, l->sum[0], l->sum[1], l->vcs_used, l->used[0],
				l->used[1]);
		if (l->count == l->vcs_used && (l->sum[0] != l->used[0] || l->sum[1] != l->used[1]))
			hc_fail("link %s: its %u channels are %u and %u MB/s, it says %u and %u",
				l->name, l->count, l->sum[0], l->sum[1], l->used[0], l->used[1]);
		kept += l->vcs_used - l->count;
	}
	if (kept > out->waits + out->tickets)
		hc_fail("%u channels are used by nobody; %u requests wait, and %u tickets", kept,
			out->waits, out->tickets);
}

void hc_ledger_read(int fd, struct hc_ledger *out)
{
	static const uint16_t views[ASKED] = {HC_VIEW_link, HC_VIEW_channel, HC_VIEW_waiting,
					      HC_VIEW_link};
	static uint8_t buf[HC_PACKET_MAX];
	static struct reading r;
	size_t n = 0;

	memset(&r, 0, sizeof(r));
	memset(out, 0, sizeof(*out));
	r.out = out;
	for (uint32_t i = 0; i < ASKED; i++)
		n += hc_raw_frame(buf + n, sizeof(buf) - n, &hc_desc_query, FIRST_LINKS + i,
				  &(struct hc_m_query){.view = views[i]});
	hc_want(hc_raw_send(fd, buf, n));
	while (r.answers < ASKED) {
		const uint8_t *at = buf;
		struct hc_frame f;
		ssize_t got = recv(fd, buf, sizeof(buf), 0);

		if (got <= 0)
			hc_fail("the session of the samples was ended");
		for (size_t left = (size_t)got; left;) {
			hc_want(!hc_frame_next(&at, &left, &f));
			take(&r, &f);
		}
	}
	out->whole = is_whole(&r);
	if (out->whole)
		check_sums(out);
}

static bool is_empty(void *ctx)
{
	struct hc_ledger l;
	uint32_t used = 0;

	hc_ledger_read(*(const int *)ctx, &l);
	for (uint32_t i = 0; i < l.links; i++)
		used += l.link[i].used[0] + l.link[i].used[1] + l.link[i].vcs_used +
			l.link[i].waiting;
	return l.whole && !used && !l.channels && !l.waits && !l.tickets;
}

void hc_ledger_await_empty(int fd, unsigned deadline_ms)
{
	hc_await("all links to be free", is_empty, &fd, deadline_ms);
}
