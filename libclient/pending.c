/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and their answers; see pending.h.
 *
 * Ids are handed out in turn and skip 0, which marks events. An id still waiting is never given
 * again: the table is asked first, though a wrap takes four billion requests.
 *
 * What the daemon sends is believed no further than its form: an answer of a type that does not
 * fit its request makes the call MALFORMED, an answer without a call is counted and shown to the
 * sink (a late "joined" has to be taken back), and only a packet that cannot be taken apart ends
 * the connection.
 */
#include "pending.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hc_sess_init(struct hc_sess *s)
{
	memset(s, 0, sizeof(*s));
	s->version = 1;
	s->next_id = 1;
}

void hc_call_init(struct hc_call *c, uint16_t want)
{
	/* not `small`: clearing it would cost more than the rest of a request */
	memset(c, 0, offsetof(struct hc_call, small));
	c->want = want;
	c->fd = c->pass = -1;
}

void hc_call_fini(struct hc_call *c)
{
	free(c->heap);
	c->heap = NULL;
	c->body = NULL;
	c->body_len = 0;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	free(c->frame);
	c->frame = NULL;
	if (c->pass >= 0)
		close(c->pass);
	c->pass = -1;
}

static struct hc_call **place(struct hc_sess *s, uint32_t id)
{
	struct hc_call **p = &s->bucket[id % HC_SESS_BUCKETS];

	while (*p && (*p)->id != id)
		p = &(*p)->next;
	return p;
}

bool hc_sess_carries(uint16_t want)
{
	return want == HC_MSG_joined || want == HC_MSG_batch_r || want == HC_MSG_channel_want_r ||
	       want == HC_MSG_channel_open_r || want == HC_MSG_sync_open_r;
}

static uint32_t fresh_id(struct hc_sess *s)
{
	uint32_t id;

	do {
		id = s->next_id++;
	} while (!id || *place(s, id));
	return id;
}

static void enter(struct hc_sess *s, struct hc_call *c, uint32_t id)
{
	c->id = id;
	c->done = false;
	c->waiting = true;
	c->next = s->bucket[id % HC_SESS_BUCKETS];
	s->bucket[id % HC_SESS_BUCKETS] = c;
	s->waiting++;
	s->carriers += hc_sess_carries(c->want);
}

int hc_sess_request(struct hc_sess *s, struct hc_call *c, const struct hc_desc *d, const void *msg,
		    uint8_t *buf, size_t cap, size_t *len)
{
	uint32_t id = fresh_id(s);
	int r = hc_frame_write(buf, cap, d, s->version, id, 0, msg, len);

	if (!r)
		enter(s, c, id);
	return r;
}

int hc_sess_again(struct hc_sess *s, struct hc_call *c, uint8_t *frame, size_t len)
{
	uint32_t id = fresh_id(s);
	int i;

	/* length, then version, type, id; see frame.h */
	if (len < HC_HEAD_BYTES || (frame[4] << 8 | frame[5]) != s->version)
		return HC_E_VERSION;
	for (i = 0; i < 4; i++)
		frame[8 + i] = (uint8_t)(id >> (24 - 8 * i));
	enter(s, c, id);
	return 0;
}

int hc_sess_notice(struct hc_sess *s, const struct hc_desc *d, const void *msg, uint8_t *buf,
		   size_t cap, size_t *len)
{
	return hc_frame_write(buf, cap, d, s->version, 0, 0, msg, len);
}

void hc_sess_forget(struct hc_sess *s, struct hc_call *c)
{
	struct hc_call **p;

	if (!c->waiting)
		return;
	p = place(s, c->id);
	if (*p == c) {
		*p = c->next;
		s->waiting--;
	}
	c->waiting = false;
}

static int keep_body(struct hc_call *c, const struct hc_frame *f)
{
	uint8_t *to = c->small;

	if (f->body_len > sizeof(c->small)) {
		to = c->heap = malloc(f->body_len);
		if (!to)
			return HC_E_NO_MEMORY;
	}
	if (f->body_len)
		memcpy(to, f->body, f->body_len);
	c->body = to;
	c->body_len = f->body_len;
	return 0;
}

/* `channel_refused` is written as `error` is. */
static bool is_refusal(const struct hc_frame *f)
{
	return (f->head.type == HC_MSG_error || f->head.type == HC_MSG_channel_refused) &&
	       f->head.status < 0;
}

static int judge(const struct hc_call *c, const struct hc_frame *f)
{
	if (f->head.type == c->want)
		return 0;
	if (is_refusal(f) && hc_error_row(f->head.status))
		return -f->head.status;
	/* an outcome of a newer daemon: its text still says what it is */
	if (is_refusal(f))
		return HC_E_INTERNAL;
	return HC_E_MALFORMED;
}

static void answer(struct hc_sess *s, const struct hc_frame *f, int *fd, const struct hc_sink *sink)
{
	struct hc_call *c = *place(s, f->head.id);

	if (!c) {
		s->strays++;
		sink->stray(sink->context, f);
		return;
	}
	hc_sess_forget(s, c);
	s->carriers -= hc_sess_carries(c->want);
	c->outcome = keep_body(c, f);
	if (!c->outcome)
		c->outcome = judge(c, f);
	c->fd = *fd;
	*fd = -1;
	c->done = true;
	sink->done(sink->context, c);
}

static int slab(struct hc_sess *s, const struct hc_frame *f, int fd, const struct hc_sink *sink)
{
	struct hc_m_slab m;
	int r = hc_decode(&hc_desc_slab, s->version, f->body, f->body_len, &m);

	if (!r && sink->slab)
		sink->slab(sink->context, &m, fd);
	return r;
}

static int status_slab(struct hc_sess *s, const struct hc_frame *f, int fd,
		       const struct hc_sink *sink)
{
	struct hc_m_status_slab m;
	int r = hc_decode(&hc_desc_status_slab, s->version, f->body, f->body_len, &m);

	if (!r && sink->status_slab)
		sink->status_slab(sink->context, &m, fd);
	return r;
}

static int event(struct hc_sess *s, const struct hc_frame *f, int fd, const struct hc_sink *sink)
{
	struct hc_m_event m;
	int r;

	if (f->head.type == HC_MSG_slab)
		return slab(s, f, fd, sink);
	if (f->head.type == HC_MSG_status_slab)
		return status_slab(s, f, fd, sink);

	/* a notice of a newer daemon */
	if (f->head.type != HC_MSG_event)
		return 0;
	r = hc_decode(&hc_desc_event, s->version, f->body, f->body_len, &m);
	if (!r)
		sink->event(sink->context, &m);
	return r;
}

int hc_sess_packet(struct hc_sess *s, const uint8_t *packet, size_t len, int *fd,
		   const struct hc_sink *sink)
{
	int none = -1;
	struct hc_frame f;
	int r;

	while (len) {
		r = hc_frame_next(&packet, &len, &f);
		if (r)
			return r;
		if (f.head.version != s->version)
			return HC_E_MALFORMED;
		if (f.head.id)
			answer(s, &f, fd, sink);
		else
			r = event(s, &f, *fd, sink);
		if (r)
			return r;
		fd = &none; /* descriptors belong to the first message */
	}
	return 0;
}

void hc_sess_lost(struct hc_sess *s, const struct hc_sink *sink)
{
	struct hc_call *c;
	unsigned i;

	for (i = 0; i < HC_SESS_BUCKETS; i++) {
		while ((c = s->bucket[i])) {
			hc_sess_forget(s, c);
			c->outcome = HC_E_PEER_CLOSED;
			c->done = true;
			sink->done(sink->context, c);
		}
	}
}

int hc_call_answer(const struct hc_sess *s, const struct hc_call *c, const struct hc_desc *d,
		   void *msg)
{
	return hc_decode(d, s->version, c->body, c->body_len, msg);
}

bool hc_call_refusal(const struct hc_sess *s, const struct hc_call *c, struct hc_m_error *error)
{
	return c->outcome && c->body &&
	       !hc_decode(&hc_desc_error, s->version, c->body, c->body_len, error);
}

int hc_sess_hello(const uint8_t *packet, size_t len, struct hc_m_hello_r *m, struct hc_m_error *e)
{
	struct hc_frame f;

	memset(e, 0, sizeof(*e));
	if (hc_frame_next(&packet, &len, &f) || f.head.id != 1 || f.head.version != 1)
		return HC_E_MALFORMED;
	if (f.head.type == HC_MSG_error && f.head.status < 0 &&
	    !hc_decode(&hc_desc_error, 1, f.body, f.body_len, e))
		return hc_error_row(f.head.status) ? -f.head.status : HC_E_INTERNAL;
	if (f.head.type != HC_MSG_hello_r || hc_decode(&hc_desc_hello_r, 1, f.body, f.body_len, m))
		return HC_E_MALFORMED;
	return m->proto < HC_PROTO_MIN || m->proto > HC_PROTO_MAX ? HC_E_VERSION : 0;
}
