/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hellos: who speaks, whether we talk to it, and what is said when we do not.
 *
 * Turned away are other clusters, other modes of security, versions that have nothing in common,
 * ourselves, and a second daemon with an identity that is taken. The last is told from a restart by
 * asking: while the connection of the first one stands, a question goes over it, and the newcomer
 * comes back in a moment. Either its kernel says that the first is gone, and the newcomer is
 * the restarted daemon; or it answers, and then both are told, and the first one stays.
 *
 * A hello without a key only says who speaks: the dialler does not know yet with whom. It says
 * another one, with key and stream of that peer, when the other side has answered.
 *
 * A refusal is a notice for people, at most one in ten seconds for each cause and address.
 */
#include "datagram.h"
#include "emit.h"
#include "net.h"

#include <stdio.h>

#define TOLD_NS 10000000000u
#define MS      1000000u

/* ---- saying it ---- */

/* Of the receiving key: the slot of the peer below a serial number. Never 0. */
static uint32_t new_key(struct hc_core *c, uint32_t peer)
{
	struct hc_net *n = c->net;

	do
		n->key_serial = (n->key_serial + 1) & 0xffff;
	while (!n->key_serial);
	return n->key_serial << 16 | peer;
}

void hc_hello_say(struct hc_core *c, struct hc_conn *k)
{
	const struct hc_peer *p = k->peer == HC_NONE ? NULL : hc_peer_get(c, k->peer);
	const bool known = p && p->known;
	struct hc_m_peer_hello m = {.magic = HC_PEER_MAGIC,
				    .proto_min = HC_PROTO_MIN,
				    .proto_max = HC_PROTO_MAX,
				    .cluster = hc_str(c->self.cluster),
				    .cookie = c->self.cookie,
				    .incarnation = c->self.incarnation,
				    .start = c->self.start,
				    .name = hc_str(c->self.name),
				    .build = hc_str(c->self.build),
				    .security = c->self.security,
				    .interval_ms = (uint16_t)(c->set.beat_ns / MS),
				    .misses = (uint8_t)c->set.misses,
				    .down_misses = (uint8_t)c->set.down_misses};

	memcpy(m.node_id.b, c->self.node_id, 16);
	memcpy(m.boot_id.b, c->self.boot_id, 16);
	if (known) {
		k->key_in = m.key = new_key(c, k->peer);
		m.stream = k->said_stream = p->stream_out;
		k->said_at = c->now;
		k->said = true;
	}
	hc_port_announce(c, &m.ports);
	k->said_ports = hc_port_hash(&m.ports);
	hc_conn_send(c, k->number, 0, 0, &hc_desc_peer_hello, &m);
}

/* ---- refusals ---- */

static bool was_told(struct hc_core *c, uint16_t code, const struct hc_endpoint *at)
{
	const struct hc_hash_key key = {code, 1};
	const uint64_t what = hc_hash(&key, at->addr.bytes, sizeof(at->addr.bytes));
	struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < HC_TOLD; i++)
		if (n->told[i].key == what && n->told[i].until > c->now)
			return true;
	n->told[n->told_next++ % HC_TOLD] = (struct hc_told){what, c->now + TOLD_NS};
	return false;
}

void hc_refusal_notice(struct hc_core *c, uint16_t code, uint32_t node,
		       const struct hc_endpoint *at, const char *text)
{
	if (!was_told(c, code, at))
		hc_notice(c, HC_LOG_WARN, HC_W_event_code_NODE_REFUSED,
			  node == HC_NONE ? HC_SELF_NODE : node, text);
}

/* The peer is not what we looked for, or does not want us: for people, and later again. */
static void rejected(struct hc_core *c, uint32_t peer, const char *text)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (p->conn || p->twin != HC_NONE)
		return;
	hc_str_copy(hc_str(text), p->last_error, sizeof(p->last_error));
	if (p->state == HC_W_node_state_UNKNOWN || p->state == HC_W_node_state_CONNECTING ||
	    p->state == HC_W_node_state_UNREACHABLE) {
		p->state = HC_W_node_state_REFUSED;
		p->since = c->now;
	}
	c->net->node_changes++;
	hc_peer_back_off(c, peer);
}

static void refuse(struct hc_core *c, struct hc_conn *k, uint16_t code, const char *text)
{
	const uint32_t peer = k->peer;

	hc_refusal_notice(c, code, peer == HC_NONE ? HC_NONE : hc_peer_get(c, peer)->node,
			  &k->remote, text);
	hc_conn_close(c, k, code, text);
	if (peer != HC_NONE)
		rejected(c, peer, text);
}

/* Only the far end of a dial names us; with an address that another node announced, so do we. */
void hc_hello_ourselves(struct hc_core *c, struct hc_conn *k)
{
	const uint32_t peer = k->peer;
	const struct hc_endpoint to = k->remote;
	char text[HC_NAME_MAX + 160], at[HC_ENDPOINT_TEXT_MAX];
	struct hc_peer *p;
	uint32_t i;

	hc_conn_close(c, k, HC_W_refusal_NONE, "reached ourselves");
	if (peer == HC_NONE)
		return;
	p = hc_peer_get(c, peer);
	for (i = 0; i < p->nendpoints; i++)
		if (hc_endpoint_eq(&p->endpoints[i], &to))
			p->ourselves |= 1u << i;
	for (i = 0; i < p->nports; i++)
		if (hc_endpoint_eq(&p->ports[i].at, &to))
			p->ports[i].ourselves = true;
	HC_TEXT(text, "%s of node %s reaches this node itself and is not used",
		hc_endpoint_text(&to, at), p->name);
	hc_emit_log(c, p->known ? HC_LOG_WARN : HC_LOG_INFO, 0, 0, HC_NONE, text);
	if (p->known)
		hc_port_ourselves(c, &to.addr);
	rejected(c, peer, text);
}

/* What the far end says of us. */
void hc_hello_refused(struct hc_core *c, struct hc_conn *k, const struct hc_m_peer_refuse *m)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = peer == HC_NONE ? NULL : hc_peer_get(c, peer);
	const bool counted = p && p->conn == k->number;
	char text[256], at[HC_ENDPOINT_TEXT_MAX];

	if (m->code == HC_W_refusal_NONE || (counted && m->code == HC_W_refusal_MALFORMED)) {
		k->parted = true; /* it ends now, and that says nothing of the peer */
		return;
	}
	if (m->code == HC_W_refusal_OURSELVES) {
		hc_hello_ourselves(c, k);
		return;
	}
	HC_TEXT(text, "%s%.64s at %s refuses this node %.40s: %.*s", p ? "node " : "",
		p ? p->name : "somebody", hc_endpoint_text(&k->remote, at), c->self.name,
		m->text.len < 100 ? (int)m->text.len : 100, m->text.p);
	hc_refusal_notice(c, m->code, p ? p->node : HC_NONE, &k->remote, text);
	if (counted)
		return; /* it only tells: the first of two with one identity stays */
	hc_conn_close(c, k, 0, NULL);
	if (peer != HC_NONE)
		rejected(c, peer, text);
}

/* ---- checks ---- */

static void id_text(const uint8_t id[16], char text[33])
{
	uint32_t i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

/* Returns why it is turned away, with both sides named, or 0. */
static uint16_t check(const struct hc_core *c, const struct hc_conn *k,
		      const struct hc_m_peer_hello *m, char text[320])
{
	char at[HC_ENDPOINT_TEXT_MAX], here[HC_ENDPOINT_TEXT_MAX], id[33];
	const int len = m->name.len < 64 ? (int)m->name.len : 64;
	const char *name = m->name.p;

	hc_endpoint_text(&k->remote, at);
	if (m->proto_min > HC_PROTO_MAX || m->proto_max < HC_PROTO_MIN) {
		snprintf(text, 320, "node %.*s at %s speaks protocol %u to %u, node %.64s %u to %u",
			 len, name, at, m->proto_min, m->proto_max, c->self.name, HC_PROTO_MIN,
			 HC_PROTO_MAX);
		return HC_W_refusal_VERSION;
	}
	if (!hc_str_eq(m->cluster, hc_str(c->self.cluster))) {
		snprintf(text, 320,
			 "node %.*s at %s is of cluster %.*s, node %.64s of cluster %.40s", len,
			 name, at, m->cluster.len < 40 ? (int)m->cluster.len : 40, m->cluster.p,
			 c->self.name, c->self.cluster);
		return HC_W_refusal_CLUSTER;
	}
	if (m->security != c->self.security) {
		snprintf(text, 320, "node %.*s at %s has security = %s, node %.64s security = %s",
			 len, name, at, m->security ? "none" : "key", c->self.name,
			 c->self.security ? "none" : "key");
		return HC_W_refusal_SECURITY;
	}
	if (memcmp(m->node_id.b, c->self.node_id, 16) != 0)
		return HC_W_refusal_NONE;
	if (m->cookie == c->self.cookie) {
		snprintf(text, 320, "%s is this node itself", at);
		return HC_W_refusal_OURSELVES;
	}
	id_text(m->node_id.b, id);
	snprintf(text, 320,
		 "node %.*s at %s and node %.64s at %s have one identity %s: was the state "
		 "directory copied?",
		 len, name, at, c->self.name, hc_endpoint_text(&k->local, here), id);
	return HC_W_refusal_DUPLICATE;
}

/* ---- two with one identity ---- */

static void tell_both(struct hc_core *c, struct hc_conn *k, struct hc_peer *p,
		      const struct hc_m_peer_hello *m)
{
	char text[320], id[33], first[HC_ENDPOINT_TEXT_MAX], second[HC_ENDPOINT_TEXT_MAX];
	struct hc_m_peer_refuse r = {.code = HC_W_refusal_DUPLICATE};

	id_text(p->node_id, id);
	HC_TEXT(text,
		"node %.64s at %s and node %.*s at %s have one identity %s: was the state "
		"directory copied? The first one stays",
		p->name, hc_endpoint_text(&p->address, first),
		m->name.len < 64 ? (int)m->name.len : 64, m->name.p,
		hc_endpoint_text(&k->remote, second), id);
	r.text = hc_str(text);
	hc_conn_send(c, p->conn, 0, 0, &hc_desc_peer_refuse, &r);
	hc_refusal_notice(c, r.code, p->node, &k->remote, text);
	hc_conn_close(c, k, r.code, text);
	p->rival = 0;
	p->asked = p->lives = false; /* asked anew when it comes again */
}

static void ask_first(struct hc_core *c, uint32_t peer, uint64_t rival)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_m_peer_heard m = {.ticket = 0};

	if (p->asked && p->rival == rival)
		return;
	p->rival = rival;
	p->asked = true;
	p->lives = false;
	memcpy(m.node_id.b, c->self.node_id, 16);
	hc_peer_send(c, peer, &hc_desc_peer_heard, &m);
}

/* Another daemon with this identity, while the connection of one stands. */
static bool is_rival(struct hc_core *c, struct hc_conn *k, uint32_t peer,
		     const struct hc_m_peer_hello *m)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (!p->known || !p->conn || p->cookie == m->cookie)
		return false;
	if (p->lives && p->rival == m->cookie) {
		tell_both(c, k, p, m);
		return true;
	}
	ask_first(c, peer, m->cookie);
	hc_conn_close(c, k, HC_W_refusal_NONE, "an earlier connection is looked at: come again");
	return true;
}

/* ---- hearing it ---- */

/* Where we dialled X another node answers: it may have been installed anew. */
static void moved(struct hc_core *c, struct hc_conn *k, uint32_t who)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_node_fact f = {.present = true, .nendpoints = p->nendpoints};
	char text[2 * HC_NAME_MAX], at[HC_ENDPOINT_TEXT_MAX];

	HC_TEXT(text, "%s, of node %s, is another node now", hc_endpoint_text(&k->remote, at),
		p->name);
	hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, text);
	hc_conn_close(c, k, HC_W_refusal_NONE, "another node was looked for");
	if (!p->configured || p->conn || who != HC_NONE) {
		rejected(c, peer, text);
		return;
	}
	memcpy(f.name, p->section, sizeof(f.name));
	memcpy(f.endpoints, p->endpoints, sizeof(f.endpoints));
	p->configured = false; /* the section is of the new one, which is dialled at once */
	p->nendpoints = 0;
	rejected(c, peer, text);
	hc_peer_fact(c, &f);
}

static bool has_room(const struct hc_core *c, const uint8_t id[16])
{
	return c->nnodes < hc_node_max(&c->lim) || hc_core_find_node(c, id) != HC_NONE;
}

/* Which of the two limits it is: peers that are here, or nodes that ever were. */
static const char *full_text(const struct hc_core *c, const struct hc_conn *k,
			     const struct hc_m_peer_hello *m, char text[320])
{
	char at[HC_ENDPOINT_TEXT_MAX];
	int n;

	n = snprintf(text, 320, "node %.*s at %s is one too many for node %.64s: ",
		     m->name.len < 64 ? (int)m->name.len : 64, m->name.p,
		     hc_endpoint_text(&k->remote, at), c->self.name);
	if (has_room(c, m->node_id.b))
		snprintf(text + n, 320 - (size_t)n, "peers_max = %u", c->lim.peers);
	else
		snprintf(text + n, 320 - (size_t)n,
			 "it has met %u others since it started, and remembers no more "
			 "(2 x peers_max)",
			 hc_node_max(&c->lim) - 1);
	return text;
}

/* The peer whose hello it is; HC_NONE: it was dealt with. */
static uint32_t peer_of(struct hc_core *c, struct hc_conn *k, const struct hc_m_peer_hello *m)
{
	uint32_t who = hc_peer_find(c, m->node_id.b), from = k->peer;
	char text[320];

	if (from != HC_NONE && who != from && hc_peer_get(c, from)->known) {
		moved(c, k, who);
		return HC_NONE;
	}
	if (who == HC_NONE && has_room(c, m->node_id.b))
		who = from == HC_NONE ? hc_peer_new(c) : from;
	if (who == HC_NONE) {
		refuse(c, k, HC_W_refusal_FULL, full_text(c, k, m, text));
		return HC_NONE;
	}
	hc_conn_own(c, k, who);
	if (from != HC_NONE && from != who)
		hc_peer_merge(c, from, who);
	return who;
}

static void accept(struct hc_core *c, struct hc_conn *k, uint32_t peer,
		   const struct hc_m_peer_hello *m)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	hc_peer_identify(c, peer, m);
	hc_peer_claim(c, peer, &k->remote.addr);
	if (p->state == HC_W_node_state_UNKNOWN || p->state == HC_W_node_state_REFUSED) {
		p->state = HC_W_node_state_CONNECTING;
		p->since = c->now;
	}
	k->heard = m->key != 0;
	k->key_out = m->key;
	k->stream = m->stream;
	k->cookie = m->cookie;
	if (!k->said)
		hc_hello_say(c, k);
	if (k->heard)
		hc_conn_heard(c, k);
}

void hc_hello_on(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f)
{
	struct hc_m_peer_hello m;
	char text[320], at[HC_ENDPOINT_TEXT_MAX];
	uint16_t code;
	uint32_t peer;

	if (k->heard || hc_decode(&hc_desc_peer_hello, HC_PROTO_MAX, f->body, f->body_len, &m) ||
	    m.magic != HC_PEER_MAGIC) {
		HC_TEXT(text, "what %s says is no hello of this protocol, or a second one",
			hc_endpoint_text(&k->remote, at));
		refuse(c, k, HC_W_refusal_MALFORMED, text);
		return;
	}
	code = check(c, k, &m, text);
	if (code == HC_W_refusal_OURSELVES && k->number < HC_CONN_IN) {
		hc_hello_ourselves(c, k);
	} else if (code == HC_W_refusal_OURSELVES) {
		hc_conn_close(c, k, code, text); /* the dialling end says it */
	} else if (code) {
		refuse(c, k, code, text);
	} else {
		peer = peer_of(c, k, &m);
		if (peer != HC_NONE && !is_rival(c, k, peer, &m))
			accept(c, k, peer, &m);
	}
}
