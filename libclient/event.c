/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: queued by whoever reads, delivered by hcomm_dispatch.
 *
 * An event is kept in a piece of memory of its own size. The queue is bounded: when it is full,
 * or memory is short, the event is counted, and the next one that is delivered says how many were
 * lost before it (the daemon counts the same way for its side). Without a function to call there
 * is nobody to tell, and nothing is kept.
 *
 * A host that polls waits on an epoll set, made at the first hcomm_fd: it holds the socket, and an
 * eventfd that rings when another thread, waiting for an answer, read an event from the socket.
 * Without that the host would sleep on a socket that has nothing left to read. The number stays
 * the same over a new connection.
 */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define GLANCE_MS                                                                                  \
	100u /* for hello when dispatch is not to wait: much for a daemon that is well             \
	      */

struct hc_queued {
	struct hc_queued *next;
	struct hc_m_event m;
	int error;
	hcomm_domain domain;   /* 0: look it up by the id */
	hcomm_channel channel; /* the same */
	char bytes[];          /* node, then text */
};

/* ---- the queue ---- */

static void ring(struct hcomm_session *s)
{
	uint64_t one = 1;
	struct hc_sleeper *w;

	for (w = s->sleepers; w; w = w->next) {
		if (w->events)
			pthread_cond_signal(&w->cond);
	}
	if (s->wake_fd >= 0 && write(s->wake_fd, &one, sizeof(one)) < 0)
		return; /* it rings already */
}

static void append(struct hcomm_session *s, const struct hc_m_event *e, hcomm_domain domain,
		   hcomm_channel channel, int error)
{
	struct hc_queued *q;

	if (!s->event_fn)
		return;
	q = s->events < HC_EVENTS_MAX ? malloc(sizeof(*q) + e->node.len + e->text.len) : NULL;
	if (!q) {
		s->events_lost += 1 + e->lost;
		return;
	}
	q->next = NULL;
	q->m = *e;
	q->m.lost += s->events_lost;
	q->error = error;
	q->domain = domain;
	q->channel = channel;
	q->m.node.p = q->bytes;
	q->m.text.p = q->bytes + e->node.len;
	if (e->node.len)
		memcpy(q->bytes, e->node.p, e->node.len);
	if (e->text.len)
		memcpy(q->bytes + e->node.len, e->text.p, e->text.len);
	s->events_lost = 0;
	*s->last_event = q;
	s->last_event = &q->next;
	s->events++;
	ring(s);
}

void hc_event_queue(struct hcomm_session *s, const struct hc_m_event *e)
{
	append(s, e, 0, 0, 0);
}

void hc_event_join_end(struct hcomm_session *s, struct hc_domain *d, int error, const char *text)
{
	struct hc_m_event e = {
		.kind = error ? HC_W_event_code_JOIN_FAILED : HC_W_event_code_JOIN_DONE,
		.id = d->id,
		.epoch = d->epoch,
		.state = error ? HC_W_domain_state_FAILED : HC_W_domain_state_ACTIVE,
		.rank = d->rank,
		.node = hc_str(s->node),
		.text = hc_str(text),
	};

	append(s, &e, d->handle, 0, -error);
}

void hc_event_channel(struct hcomm_session *s, hcomm_channel channel, hcomm_domain domain,
		      uint32_t rank, int error, const char *text)
{
	struct hc_domain *d = hc_slot(domain);
	struct hc_m_event e = {
		.kind = error ? HC_W_event_code_CHANNEL_REFUSED : HC_W_event_code_CHANNEL_GRANTED,
		.state = HC_W_domain_state_ACTIVE,
		.rank = rank,
		.node = hc_str(s->node),
		.text = hc_str(text),
	};

	if (d && d->handle == domain) {
		e.id = d->id;
		e.epoch = d->epoch;
	}
	append(s, &e, domain, channel, -error);
}

static struct hc_queued *take(struct hcomm_session *s)
{
	struct hc_queued *q = s->first_event;
	uint64_t count;

	if (!q)
		return NULL;
	s->first_event = q->next;
	s->events--;
	if (!s->first_event) {
		s->last_event = &s->first_event;
		if (s->wake_fd >= 0 && read(s->wake_fd, &count, sizeof(count)) < 0)
			return q; /* it did not ring */
	}
	return q;
}

void hc_events_free(struct hcomm_session *s)
{
	struct hc_queued *q;

	while ((q = take(s)))
		free(q);
}

/* ---- delivery ---- */

static hcomm_domain handle_of(const struct hcomm_session *s, uint64_t id)
{
	const struct hc_domain *d;

	for (d = s->domains; d && id; d = d->next) {
		if (d->id == id)
			return d->handle;
	}
	return 0;
}

static void deliver(struct hcomm_session *s, struct hc_queued *q)
{
	hcomm_event_fn fn = s->event_fn;
	void *context = s->event_context;
	struct hcomm_event e = HCOMM_INIT(struct hcomm_event);

	e.code = q->m.kind;
	e.id = q->m.id;
	e.domain = q->domain ? q->domain : handle_of(s, q->m.id);
	e.state = (enum hcomm_state)q->m.state;
	e.epoch = q->m.epoch;
	e.number = q->m.number;
	e.rank = q->m.rank;
	e.pid = q->m.pid;
	e.lost = q->m.lost;
	e.error = q->error;
	e.channel = q->channel ? q->channel : hc_chan_by_id(s, q->m.channel);
	hc_str_copy(q->m.node, e.node, sizeof(e.node));
	hc_str_copy(q->m.text, e.text, sizeof(e.text));
	free(q);
	if (!fn)
		return;
	pthread_mutex_unlock(&s->lock);
	fn(&e, context);
	pthread_mutex_lock(&s->lock);
}

static int deliver_all(struct hcomm_session *s)
{
	/* those that are there now: events that come meanwhile are for the next call */
	uint32_t left = s->events;
	struct hc_queued *q;
	int n = 0;

	while (left-- && (q = take(s))) {
		deliver(s, q);
		n++;
	}
	return n;
}

static int away(const struct hcomm_session *s)
{
	return hc_refuse(HC_E_NO_DAEMON, "not connected to hcommd at %s; a later call tries again",
			 s->socket);
}

/* Read what is there, or wait for it. 0, TIMEOUT or why there is no connection. */
static int look(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_sleeper me = {.events = true};

	if (s->fd < 0 && deadline)
		return hc_wait_ready(s, deadline);
	if (s->fd < 0)
		return hc_wait_may_connect(s) ? hc_wait_connect(s, hc_deadline(GLANCE_MS))
					      : away(s);
	if (!s->reading)
		return hc_wait_read(s, deadline, false);
	return deadline ? hc_wait_sleep(s, &me, deadline) : HC_E_TIMEOUT;
}

static int dispatch(struct hcomm_session *s, uint64_t deadline)
{
	int r = 0;

	/* all that has come, so that a host is not called once for each packet */
	while (!r)
		r = look(s, 0);
	if (r == HC_E_NO_DAEMON && deadline)
		r = HC_E_TIMEOUT; /* it may come while we wait */
	while (r == HC_E_TIMEOUT && !s->events && deadline) {
		r = look(s, deadline);
		if (r == HC_E_TIMEOUT)
			break;
		if (!r)
			r = HC_E_TIMEOUT;
	}
	hc_wait_pass_on(s);
	hc_aside_expire(s);
	if (s->events)
		return deliver_all(s);
	if (r == HC_E_TIMEOUT && s->fd < 0)
		return -HC_E_NO_DAEMON; /* the text says that it does not answer */
	if (r == HC_E_PEER_CLOSED)
		hc_refuse(r, "hcommd at %s closed the connection", s->socket);
	return r == HC_E_TIMEOUT ? 0 : -r;
}

HC_EXPORT int hcomm_dispatch(struct hcomm_session *session, int timeout_ms)
{
	uint64_t deadline = 0;
	int n = hc_session_check(session);

	if (n)
		return -n;
	if (timeout_ms < HCOMM_DEFAULT)
		return -hc_refuse(HC_E_INVALID,
				  "timeout_ms is %d; wanted: 0 or more, or HCOMM_DEFAULT",
				  timeout_ms);
	if (timeout_ms)
		deadline = hc_deadline(timeout_ms > 0            ? (uint64_t)timeout_ms
				       : session->env.timeout_ms ? session->env.timeout_ms
								 : HC_REQUEST_MS);
	pthread_mutex_lock(&session->lock);
	n = dispatch(session, deadline);
	pthread_mutex_unlock(&session->lock);
	return n;
}

HC_EXPORT int hcomm_on_event(struct hcomm_session *session, hcomm_event_fn fn, void *context)
{
	int r = hc_session_check(session);

	if (r)
		return -r;
	pthread_mutex_lock(&session->lock);
	session->event_fn = fn;
	session->event_context = context;
	if (!fn)
		hc_events_free(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

HC_EXPORT int hcomm_subscribe(struct hcomm_session *session, uint64_t id, int on)
{
	struct hc_m_subscribe m = {.id = id, .on = on == 1};
	struct hc_request q = {&hc_desc_subscribe, &m, -1, 0, 0};
	struct hc_call c;
	int r = hc_session_check(session);

	if (!r && on != 0 && on != 1)
		r = hc_refuse(HC_E_INVALID, "on is %d; wanted: 0 or 1", on);
	if (r)
		return -r;
	q.deadline = hc_deadline(HC_REQUEST_MS);
	hc_call_init(&c, HC_MSG_done);
	r = hc_call_run(session, &c, &q);
	hc_call_fini(&c);
	return -r;
}

/* ---- for hosts that poll ---- */

static int add(int set, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev);
}

void hc_event_watch(struct hcomm_session *s)
{
	/* the old socket left the set when it was closed */
	if (s->poll_fd >= 0 && add(s->poll_fd, s->fd))
		hc_note(s, HC_SAY_ERROR, "epoll_ctl: %s", strerror(errno));
}

static int make_set(struct hcomm_session *s)
{
	int set = epoll_create1(EPOLL_CLOEXEC),
	    bell = eventfd(s->events != 0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (set < 0 || bell < 0 || add(set, bell) || add(set, s->fd)) {
		hc_refuse(HC_E_SYSTEM, "no descriptors to poll: %s", strerror(errno));
		if (set >= 0)
			close(set);
		if (bell >= 0)
			close(bell);
		return HC_E_SYSTEM;
	}
	s->poll_fd = set;
	s->wake_fd = bell;
	return 0;
}

HC_EXPORT int hcomm_fd(struct hcomm_session *session)
{
	int fd = -1;

	if (hc_session_check(session))
		return -1;
	pthread_mutex_lock(&session->lock);
	if (session->fd >= 0 && (session->poll_fd >= 0 || !make_set(session)))
		fd = session->poll_fd;
	pthread_mutex_unlock(&session->lock);
	return fd;
}
