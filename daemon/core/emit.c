/* SPDX-License-Identifier: Apache-2.0 */
/* Actions out; see emit.h. */
#include "emit.h"

#include "frame.h"

#include <stdio.h>
#include <string.h>

/* What is said to a session needs none of the union but the grant: clearing it all takes longer. */
static struct hc_action *say(struct hc_core *c, enum hc_action_kind kind, uint64_t session)
{
	struct hc_action *a;

	hc_assert(c->out->count < HC_OUT_ACTIONS);
	a = &c->out->acts[c->out->count++];
	a->kind = kind;
	a->session = session;
	a->bytes = c->out->bytes + c->out->used;
	a->len = 0;
	a->u.reply.grant = HC_GRANT_NONE;
	a->u.reply.uid = a->u.reply.slab = 0;
	return a;
}

struct hc_action *hc_emit_action(struct hc_core *c, enum hc_action_kind kind)
{
	struct hc_action *a = say(c, kind, 0);

	memset(&a->u, 0, sizeof(a->u));
	return a;
}

static void keep(struct hc_core *c, struct hc_action *a, size_t len)
{
	a->len = (uint32_t)len;
	c->out->used += (uint32_t)len;
}

static void frame(struct hc_core *c, struct hc_action *a, uint32_t request, int status,
		  const struct hc_desc *d, const void *msg)
{
	size_t len;
	int r;

	r = hc_frame_write(c->out->bytes + c->out->used, HC_OUT_BYTES - c->out->used, d,
			   HC_PROTO_MAX, request, status, msg, &len);
	hc_assert(r == 0);
	keep(c, a, len);
}

void hc_emit_reply(struct hc_core *c, uint64_t session, uint32_t request, const struct hc_desc *d,
		   const void *msg)
{
	hc_emit_grant(c, session, request, d, msg, HC_GRANT_NONE, 0, 0);
}

void hc_emit_grant(struct hc_core *c, uint64_t session, uint32_t request, const struct hc_desc *d,
		   const void *msg, enum hc_grant grant, uint32_t uid, uint32_t slab)
{
	struct hc_action *a = say(c, HC_ACT_REPLY, session);

	a->u.reply.grant = grant;
	a->u.reply.uid = uid;
	a->u.reply.slab = slab;
	frame(c, a, request, 0, d, msg);
}

void hc_emit_refusal(struct hc_core *c, uint64_t session, int code, const char *text)
{
	const uint32_t slot = (uint32_t)session;
	const struct hc_process *p;
	char line[512];

	if (code != HC_E_PERMISSION || slot >= c->lim.sessions || c->sessions[slot].id != session)
		return; /* hello: the shell, which knows who it is, has kept such callers out */
	p = &c->processes[c->sessions[slot].process];
	HC_TEXT(line, "client pid %u uid %u is refused: %s", p->pid, p->uid, text);
	hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, line);
}

static void error(struct hc_core *c, uint64_t session, uint32_t request, int code,
		  uint32_t retry_ms, const char *text)
{
	struct hc_m_error m = {.retry_after_ms = retry_ms, .text = hc_str(text)};
	struct hc_action *a = say(c, HC_ACT_REPLY, session);

	if (m.text.len > HC_TEXT_MAX)
		m.text.len = HC_TEXT_MAX;
	c->refused++;
	frame(c, a, request, -code, &hc_desc_error, &m);
	hc_emit_refusal(c, session, code, text);
}

void hc_emit_error(struct hc_core *c, uint64_t session, uint32_t request, int code,
		   const char *text)
{
	error(c, session, request, code, HC_NONE, text);
}

void hc_emit_again(struct hc_core *c, uint64_t session, uint32_t request, uint32_t retry_ms,
		   const char *text)
{
	error(c, session, request, HC_E_AGAIN, retry_ms, text);
}

void hc_emit_refused(struct hc_core *c, uint64_t session, uint32_t request,
		     const struct hc_m_channel_refused *m)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_REPLY);

	a->session = session;
	c->refused++;
	frame(c, a, request, -HC_E_AGAIN, &hc_desc_channel_refused, m);
}

void hc_emit_done(struct hc_core *c, uint64_t session, uint32_t request, uint64_t value,
		  const char *text)
{
	struct hc_m_done m = {.value = value, .text = hc_str(text)};

	hc_emit_reply(c, session, request, &hc_desc_done, &m);
}

void hc_emit_event(struct hc_core *c, uint64_t session, const struct hc_m_event *e)
{
	struct hc_action *a = say(c, HC_ACT_NOTIFY, session);

	frame(c, a, 0, 0, &hc_desc_event, e);
}

void hc_emit_same(struct hc_core *c, uint64_t session, const struct hc_action *event)
{
	struct hc_action *a = say(c, HC_ACT_NOTIFY, session);

	a->bytes = event->bytes;
	a->len = event->len;
}

const struct hc_action *hc_emit_last(const struct hc_core *c)
{
	return &c->out->acts[c->out->count - 1];
}

/* ---- messages between home and part ---- */

static void ring_copy_in(struct hc_core *c, uint32_t at, const uint8_t *p, uint32_t len)
{
	uint32_t first = HC_RING_BYTES - at < len ? HC_RING_BYTES - at : len;

	memcpy(c->ring + at, p, first);
	memcpy(c->ring, p + first, len - first);
}

static void ring_copy_out(const struct hc_core *c, uint32_t at, uint8_t *p, uint32_t len)
{
	uint32_t first = HC_RING_BYTES - at < len ? HC_RING_BYTES - at : len;

	memcpy(p, c->ring + at, first);
	memcpy(p + first, c->ring, len - first);
}

static void ring_put(struct hc_core *c, const uint8_t *p, uint32_t len)
{
	hc_assert(c->ring_used + len <= HC_RING_BYTES);
	ring_copy_in(c, (c->ring_head + c->ring_used) % HC_RING_BYTES, p, len);
	c->ring_used += len;
}

void hc_emit_send(struct hc_core *c, uint32_t node, const struct hc_desc *d, const void *msg)
{
	struct hc_action *a;
	size_t len;
	int r;

	if (node != HC_SELF_NODE) {
		a = hc_emit_action(c, HC_ACT_SEND_PEER);
		a->u.node = node;
		frame(c, a, 0, 0, d, msg);
		return;
	}
	r = hc_frame_write(c->out->bytes + c->out->used, HC_OUT_BYTES - c->out->used, d,
			   HC_PROTO_MAX, 0, 0, msg, &len);
	hc_assert(r == 0);
	ring_put(c, c->out->bytes + c->out->used, (uint32_t)len);
}

bool hc_emit_ring(struct hc_core *c, struct hc_frame *f)
{
	const uint8_t *at = c->taken;
	uint8_t head[4];
	uint32_t len;
	size_t left;
	int r;

	if (!c->ring_used)
		return false;
	ring_copy_out(c, c->ring_head, head, 4);
	len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	hc_assert(len <= c->ring_used);
	ring_copy_out(c, c->ring_head, c->taken, len);
	c->ring_head = (c->ring_head + len) % HC_RING_BYTES;
	c->ring_used -= len;
	if (!c->ring_used)
		c->ring_head = 0; /* the same memory again: it is small and in the cache */
	left = len;
	r = hc_frame_next(&at, &left, f);
	hc_assert(r == 0);
	return true;
}

bool hc_emit_ring_holds(const struct hc_core *c, uint32_t bytes)
{
	return c->ring_used + bytes + HC_RING_SPARE <= HC_RING_BYTES;
}

bool hc_emit_ring_spare(const struct hc_core *c)
{
	return hc_emit_ring_holds(c, 0);
}

/* ---- the store ---- */

static struct hc_action *persist(struct hc_core *c, enum hc_persist what, uint64_t id)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_PERSIST);

	a->u.persist.what = what;
	a->u.persist.seq = ++c->persist_seq;
	a->u.persist.id = id;
	return a;
}

uint64_t hc_emit_del_domain(struct hc_core *c, uint64_t id)
{
	return persist(c, HC_DEL_DOMAIN, id)->u.persist.seq;
}

static uint64_t row(struct hc_core *c, struct hc_action *a, const struct hc_desc *d,
		    const void *msg)
{
	size_t len;
	int r;

	r = hc_encode(d, HC_PROTO_MAX, msg, c->out->bytes + c->out->used,
		      HC_OUT_BYTES - c->out->used, &len);
	hc_assert(r == 0);
	keep(c, a, len);
	return a->u.persist.seq;
}

uint64_t hc_emit_put_domain(struct hc_core *c, uint64_t id, const struct hc_m_domain_row *m)
{
	return row(c, persist(c, HC_PUT_DOMAIN, id), &hc_desc_domain_row, m);
}

void hc_emit_put_channel(struct hc_core *c, uint64_t id, const struct hc_m_channel_row *m)
{
	row(c, persist(c, HC_PUT_CHANNEL, id), &hc_desc_channel_row, m);
}

void hc_emit_del_channel(struct hc_core *c, uint64_t id)
{
	persist(c, HC_DEL_CHANNEL, id);
}

uint64_t hc_emit_journal(struct hc_core *c, uint16_t kind, uint64_t domain, uint32_t epoch,
			 uint32_t rank, uint32_t pid, uint32_t uid, const char *text)
{
	struct hc_m_event_row m = {.kind = kind,
				   .domain = domain,
				   .epoch = epoch,
				   .rank = rank,
				   .pid = pid,
				   .uid = uid,
				   .text = hc_str(text)};

	return row(c, persist(c, HC_ADD_EVENT, domain), &hc_desc_event_row, &m);
}

void hc_emit_log(struct hc_core *c, enum hc_level level, uint16_t code, uint64_t domain,
		 uint32_t rank, const char *text)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_LOG);
	uint8_t *to = c->out->bytes + c->out->used;
	size_t len = strlen(text), i;

	a->u.log.level = level;
	a->u.log.code = code;
	a->u.log.domain = domain;
	a->u.log.rank = rank;
	/* names and reasons come from outside */
	for (i = 0; i < len; i++)
		to[i] = (uint8_t)((uint8_t)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
	to[len] = '\0';
	keep(c, a, len + 1);
	a->len = (uint32_t)len;
}
