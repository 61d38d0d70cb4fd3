/* SPDX-License-Identifier: Apache-2.0 */
/* Other nodes: memory, what is due, notices; see net.h. */
#include "net.h"

#include "emit.h"

#include <string.h>

#define NOTICES 256u

/* Connections whose hello is not done: those that come in, and one under way for each peer. */
static uint32_t conns_of(const struct hc_limits *lim)
{
	return 2 * lim->peers + 64;
}

struct hc_net *hc_net_lay_out(struct hc_mem *m, const struct hc_limits *lim)
{
	struct hc_net none = {0}, *at = hc_mem_take(m, 1, sizeof(*at));
	struct hc_net *n = at ? at : &none; /* only counts */

	n->ports = hc_mem_take(m, lim->ports, sizeof(*n->ports));
	n->peers = hc_mem_take(m, lim->peers, sizeof(*n->peers));
	hc_pool_init(&n->peer_pool, m, lim->peers);
	hc_index_init(&n->peer_by_id, m, lim->peers);
	n->paths = hc_mem_take(m, lim->paths, sizeof(*n->paths));
	n->due = hc_mem_take(m, lim->paths, sizeof(*n->due));
	n->beats = hc_mem_take(m, lim->paths, sizeof(*n->beats));
	hc_pool_init(&n->path_pool, m, lim->paths);
	hc_index_init_in(&n->path_by_id, m, lim->paths, n->paths, id);
	hc_index_init(&n->path_by_remote, m, lim->paths);
	n->nconns = lim->peers ? conns_of(lim) : 0;
	n->conns = hc_mem_take(m, n->nconns, sizeof(*n->conns));
	n->mail = hc_mem_take(m, lim->mail, sizeof(*n->mail));
	n->mail_next = hc_mem_take(m, lim->mail, sizeof(*n->mail_next));
	hc_pool_init(&n->mail_pool, m, lim->mail);
	n->notices = hc_mem_take(m, NOTICES, sizeof(*n->notices));
	return at;
}

void hc_net_start(struct hc_core *c)
{
	struct hc_net *n = c->net;

	n->other_at = HC_NEVER;
	hc_beat_start(c);
}

bool hc_net_work(struct hc_core *c)
{
	return hc_beat_work(c) || hc_notice_work(c);
}

uint64_t hc_net_deadline(const struct hc_core *c)
{
	const struct hc_net *n = c->net;
	uint64_t first = n->other_at, beats = hc_beat_deadline(c);

	if (n->notice_count)
		return c->now;
	return beats < first ? beats : first;
}

void hc_net_settings(struct hc_core *c)
{
	hc_beat_settings(c);
}

/* ---- notices ---- */

void hc_notice(struct hc_core *c, enum hc_level level, uint16_t kind, uint32_t node,
	       const char *text)
{
	struct hc_net *n = c->net;
	struct hc_notice *to;

	hc_emit_log(c, level, kind, 0, HC_NONE, text);
	hc_emit_journal(c, kind, 0, 0, HC_NONE, 0, 0, text);
	if (!c->watchers.count)
		return;
	if (n->notice_count == NOTICES) {
		n->notices_lost++;
		return;
	}
	to = &n->notices[(n->notice_first + n->notice_count++) % NOTICES];
	to->kind = kind;
	to->node = node;
	hc_str_copy(hc_str(text), to->text, sizeof(to->text));
}

/* The oldest notice, to one more session. */
bool hc_notice_work(struct hc_core *c)
{
	struct hc_net *n = c->net;
	const struct hc_notice *from;
	const struct hc_session *s;
	struct hc_m_event e;

	if (!n->notice_count)
		return false;
	from = &n->notices[n->notice_first];
	while (n->notice_cursor < c->lim.sessions &&
	       !(c->sessions[n->notice_cursor].id && c->sessions[n->notice_cursor].subscribed))
		n->notice_cursor++;
	if (n->notice_cursor == c->lim.sessions) {
		n->notice_cursor = 0;
		n->notice_first = (n->notice_first + 1) % NOTICES;
		n->notice_count--;
		return true;
	}
	s = &c->sessions[n->notice_cursor++];
	e = (struct hc_m_event){
		.kind = from->kind,
		.rank = HC_NONE,
		.node = hc_str(from->node == HC_NONE ? c->self.name : c->nodes[from->node].name),
		.text = hc_str(from->text)};
	hc_emit_event(c, s->id, &e);
	return true;
}
