/* SPDX-License-Identifier: Apache-2.0 */
/* Other nodes: memory, what is due, notices; see net.h. */
#include "net.h"

#include "emit.h"

#include <string.h>

#define NOTICES 256u

/* One that counts and one under way for each peer, and those that come in. */
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
	hc_pool_init(&n->conn_pool, m, n->nconns);
	hc_index_init_in(&n->conn_by_number, m, n->nconns, n->conns, number);
	hc_links_init(&n->conn_links, m, n->nconns);
	hc_links_init(&n->busy_links, m, lim->peers);
	hc_timers_init(&n->timers, m, lim->peers + n->nconns + 1);
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

/* Whose time has come: of a peer, a connection, or the ports. */
static bool timeout(struct hc_core *c)
{
	struct hc_net *n = c->net;
	const uint32_t at = hc_timers_take(&n->timers, c->now);

	if (at == HC_NONE)
		return false;
	if (at < c->lim.peers)
		hc_peer_timeout(c, at);
	else if (at < c->lim.peers + n->nconns)
		hc_conn_timeout(c, at - c->lim.peers);
	else
		hc_port_timeout(c);
	return true;
}

bool hc_net_work(struct hc_core *c)
{
	return hc_beat_work(c) || timeout(c) || hc_peer_work(c) || hc_notice_work(c);
}

uint64_t hc_net_deadline(const struct hc_core *c)
{
	const struct hc_net *n = c->net;
	const uint64_t timers = hc_timers_next(&n->timers);
	uint64_t first = hc_beat_deadline(c);

	if (n->notice_count || n->busy.count)
		return c->now;
	if (timers < first)
		first = timers;
	return n->other_at < first ? n->other_at : first;
}

void hc_net_counts(const struct hc_core *c, struct hc_core_counts *counts)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->peer_pool.fresh; i++) {
		if (!n->peers[i].used)
			continue;
		counts->peers_up += n->peers[i].state == HC_W_node_state_UP;
		if (n->peers[i].state != HC_W_node_state_REFUSED || n->peers[i].ourselves)
			continue;
		if (!counts->peers_refused++)
			memcpy(counts->refused_first, n->peers[i].last_error,
			       sizeof(counts->refused_first));
	}
	for (i = 0; i < n->path_top; i++)
		counts->paths_good += n->paths[i].id && n->paths[i].state == HC_W_path_state_NORMAL;
	counts->peers = n->peer_pool.used;
	counts->paths = n->path_pool.used;
	counts->stalls = n->stalls;
	counts->refused_datagrams = n->unknown_path + n->wrong_source + n->malformed + n->replays;
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
