/* SPDX-License-Identifier: Apache-2.0 */
/* The client socket: connections; see ctl.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "ctlimp.h"
#include "log.h"
#include "loop.h"

#define ACCEPT_BATCH   16
#define HELLO_LIMIT_NS 5000000000u /* a connection that says nothing for so long is closed */
#define WAITING_MAX    256u        /* connections without a session */
#define SILENT_NS      250000000u  /* and, when there are so many, so long may one say nothing */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct hc_conn *hc_ctl_conn(struct hc_ctl *ctl, uint64_t session)
{
	uint32_t slot = (uint32_t)session;
	struct hc_conn *c;

	if (slot >= ctl->sessions_max)
		return NULL;
	c = ctl->slots[slot].conn;
	return c && c->session == session && !c->closed ? c : NULL;
}

/* ---- the end of a connection ---- */

void hc_ctl_end(struct hc_ctl *ctl, struct hc_conn *c)
{
	if (c->closed)
		return;
	c->closed = true;
	hc_conn_drop_queue(c, &ctl->pool);
	c->closed_next = ctl->closed;
	ctl->closed = c;
}

/* At the end of the turn: closing takes its time, and when a rank dies others wait to hear it. */
static void shut(struct hc_conn *c)
{
	event_del(&c->in);
	event_del(&c->out);
	close(c->fd);
	c->fd = -1;
}

static void let_go(struct hc_ctl *ctl, struct hc_conn *c)
{
	uint64_t session = c->session;

	shut(c);
	if (c->next)
		c->next->prev = c->prev;
	*c->prev = c->next;
	ctl->counts.connections--;
	if (!session) {
		ctl->waiting--;
	} else {
		hc_procs_detach(c);
		hc_procs_arena_closed(ctl->procs, session);
		if (c->known)
			hc_loop_lost(ctl->loop, session);
		hc_ctl_free_slot(ctl, session);
	}
	free(c);
}

static void reap(struct hc_ctl *ctl)
{
	struct hc_conn *c;

	while ((c = ctl->closed)) {
		ctl->closed = c->closed_next;
		let_go(ctl, c);
	}
}

/* ---- sending ---- */

static void set_dirty(struct hc_ctl *ctl, struct hc_conn *c)
{
	if (c->dirty || c->blocked)
		return;
	c->dirty = true;
	c->dirty_next = ctl->dirty;
	ctl->dirty = c;
}

static void flush(struct hc_ctl *ctl, struct hc_conn *c)
{
	if (c->closed)
		return;
	if (hc_conn_flush(c, &ctl->pool) || (c->ending && !c->first))
		hc_ctl_end(ctl, c);
}

void hc_ctl_flush(struct hc_ctl *ctl)
{
	struct hc_conn *c;

	while ((c = ctl->dirty)) {
		ctl->dirty = c->dirty_next;
		c->dirty = false;
		flush(ctl, c);
	}
}

static void put(struct hc_ctl *ctl, struct hc_conn *c, const uint8_t *frame, uint32_t len, int fd)
{
	int r = hc_conn_put(c, &ctl->pool, frame, len, fd);

	if (!r) {
		set_dirty(ctl, c);
		return;
	}
	hc_log(HC_LOG_WARN, "client pid %u uid %u: its session ends: %s", c->pid, c->uid,
	       r == HC_E_NO_MEMORY ? "out of memory" : "it does not read its answers");
	hc_ctl_end(ctl, c);
}

static void resume_accept(struct hc_ctl *ctl)
{
	if (!ctl->crowded || ctl->waiting > WAITING_MAX / 2)
		return;
	ctl->crowded = false;
	if (ctl->accept_event && !ctl->paused)
		event_add(ctl->accept_event, NULL);
}

void hc_ctl_turn(struct hc_ctl *ctl)
{
	while (ctl->dirty || ctl->closed) { /* the loss of a session may be told to others */
		hc_ctl_flush(ctl);
		reap(ctl);
	}
	resume_accept(ctl);
}

static bool says_malformed(const uint8_t *frame, uint32_t len)
{
	struct hc_frame f;
	size_t left = len;

	if (frame[7] != HC_MSG_error) /* the low byte of the type; nearly always decides */
		return false;
	return !hc_frame_next(&frame, &left, &f) && f.head.type == HC_MSG_error &&
	       f.head.status == -HC_E_MALFORMED;
}

void hc_ctl_reply(struct hc_ctl *ctl, uint64_t session, const uint8_t *frame, uint32_t len, int fd)
{
	struct hc_conn *c = hc_ctl_conn(ctl, session);

	if (!c || c->ending) {
		if (fd >= 0)
			close(fd);
		return;
	}
	put(ctl, c, frame, len, fd);
	if (c->closed || !says_malformed(frame, len))
		return;
	/* the body was at fault, which only the core could see */
	ctl->counts.malformed++;
	hc_log(HC_LOG_WARN, "client pid %u uid %u sent a malformed request; it is disconnected",
	       c->pid, c->uid);
	c->ending = true;
}

void hc_ctl_notify(struct hc_ctl *ctl, uint64_t session, const uint8_t *frame, uint32_t len)
{
	struct hc_conn *c = hc_ctl_conn(ctl, session);

	if (!c || c->ending)
		return;
	if (hc_conn_put_event(c, &ctl->pool, frame, len)) {
		set_dirty(ctl, c);
		return;
	}
	ctl->counts.events_lost++;
	hc_log(HC_LOG_WARN, "client pid %u uid %u does not read: events are dropped", c->pid,
	       c->uid);
}

void hc_ctl_tell_unread(struct hc_ctl *ctl)
{
	struct hc_conn *c;

	for (c = ctl->conns; c; c = c->next) {
		if (!c->known || c->closed || c->lost_told == c->lost_all)
			continue;
		c->lost_told = c->lost_all;
		hc_loop_unread(ctl->loop, c->session, c->lost_all);
	}
}

void hc_ctl_close(struct hc_ctl *ctl, uint64_t session)
{
	struct hc_conn *c = hc_ctl_conn(ctl, session);

	if (!c)
		return;
	c->ending = true;
	set_dirty(ctl, c);
}

const struct hc_arena *hc_ctl_arena(struct hc_ctl *ctl, uint64_t session)
{
	return hc_procs_arena(ctl->procs, session);
}

void hc_ctl_arena_used(struct hc_ctl *ctl, uint64_t session)
{
	hc_procs_arena_used(ctl->procs, session);
}

const struct hc_arena *hc_ctl_arena_of(struct hc_ctl *ctl, uint32_t pid, uint64_t started,
				       uint64_t domain, uint32_t block)
{
	return hc_procs_arena_of(ctl->procs, pid, started, domain, block);
}

void hc_ctl_take_back(struct hc_ctl *ctl, struct hc_stored_arena *a)
{
	struct hc_fdstore store = {.worker = ctl->worker};
	struct hc_proc *p = NULL;
	int r = HC_E_INVALID;

	if (hc_ctl_watch(ctl, a->pid, a->started))
		p = hc_procs_add(ctl->procs, a->pid, a->started, -1);
	if (p)
		r = hc_procs_arena_back(p, a);
	else
		close(a->fd);
	a->fd = -1;
	if (!r)
		return;
	hc_log(p ? HC_LOG_WARN : HC_LOG_INFO, "a stored arena of pid %u is dropped: %s", a->pid,
	       p ? "it is damaged" : "the process is gone");
	hc_fdstore_drop(&store, a);
}

bool hc_ctl_watch(struct hc_ctl *ctl, uint32_t pid, uint64_t started)
{
	int fd;

	if (hc_procs_knows(ctl->procs, pid, started))
		return true;
	fd = hc_caller_open(pid, started);
	return fd >= 0 && hc_procs_add(ctl->procs, pid, started, fd);
}

void hc_ctl_error(struct hc_ctl *ctl, struct hc_conn *c, uint32_t id, int code, const char *text)
{
	struct hc_m_error m = {.retry_after_ms = HC_NONE, .text = hc_str(text)};
	uint8_t frame[HC_TEXT_MAX + 64];
	size_t len;

	if (c->closed)
		return;
	if (m.text.len > HC_TEXT_MAX)
		m.text.len = HC_TEXT_MAX;
	ctl->counts.refused++;
	if (!hc_frame_write(frame, sizeof(frame), &hc_desc_error,
			    c->proto ? c->proto : HC_PROTO_MIN, id, -code, &m, &len))
		put(ctl, c, frame, (uint32_t)len, -1);
}

void hc_ctl_answer(struct hc_ctl *ctl, uint64_t session, uint32_t id, const struct hc_desc *d,
		   const void *msg)
{
	struct hc_conn *c = hc_ctl_conn(ctl, session);
	uint8_t *frame;
	size_t len;
	int r;

	if (!c || c->ending)
		return;
	frame = malloc(HC_PACKET_MAX);
	r = frame ? hc_frame_write(frame, HC_PACKET_MAX, d, c->proto, id, 0, msg, &len)
		  : HC_E_NO_MEMORY;
	if (r)
		hc_ctl_error(ctl, c, id, r, "the answer cannot be made");
	else
		put(ctl, c, frame, (uint32_t)len, -1);
	ctl->counts.served++;
	free(frame);
}

void hc_ctl_done(struct hc_ctl *ctl, uint64_t session, uint32_t id, const char *text)
{
	struct hc_m_done m = {.text = hc_str(text)};

	if (m.text.len > HC_TEXT_MAX)
		m.text.len = HC_TEXT_MAX;
	hc_ctl_answer(ctl, session, id, &hc_desc_done, &m);
}

void hc_ctl_refuse(struct hc_ctl *ctl, uint64_t session, uint32_t id, int code, const char *text)
{
	struct hc_conn *c = hc_ctl_conn(ctl, session);

	if (c && !c->ending)
		hc_ctl_error(ctl, c, id, code, text);
}

/* ---- receiving ---- */

void hc_ctl_malformed(struct hc_ctl *ctl, struct hc_conn *c, uint32_t id, bool has_id,
		      const char *what)
{
	ctl->counts.malformed++;
	hc_log(HC_LOG_WARN, "client pid %u uid %u: %s; it is disconnected", c->pid, c->uid, what);
	if (has_id)
		hc_ctl_error(ctl, c, id, HC_E_MALFORMED, what);
	c->ending = true;
	set_dirty(ctl, c);
}

/* The id of a header whose length is wrong. */
static uint32_t id_of_head(const uint8_t *head)
{
	return (uint32_t)head[8] << 24 | (uint32_t)head[9] << 16 | (uint32_t)head[10] << 8 |
	       head[11];
}

/* All frames of a packet are looked at before the first is obeyed. */
static bool check_frames(struct hc_ctl *ctl, struct hc_conn *c, const struct hc_got *got)
{
	const uint8_t *p = got->bytes;
	size_t left = got->len;
	struct hc_frame f;
	uint32_t id;

	if (got->cut || got->crowded) {
		hc_ctl_malformed(ctl, c, 0, false,
				 "a packet longer than 65536 bytes or with too many descriptors");
		return false;
	}
	while (left) {
		id = left >= HC_HEAD_BYTES ? id_of_head(p) : 0;
		if (hc_frame_next(&p, &left, &f)) {
			hc_ctl_malformed(ctl, c, id, id != 0,
					 "a frame whose length is below 16 or beyond its packet");
			return false;
		}
		if (c->session && f.head.version != c->proto && f.head.type != HC_MSG_hello) {
			hc_ctl_malformed(ctl, c, f.head.id, true,
					 "a frame of another protocol version than agreed");
			return false;
		}
	}
	return true;
}

static void take_frame(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;

	if (in->frame.head.type == HC_MSG_hello)
		hc_ctl_hello(ctl, in);
	else if (c->session)
		hc_ctl_request(ctl, in);
	else
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a request before hello");
}

static void close_unwanted(struct hc_ctl *ctl, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	ctl->counts.descriptors++;
}

static void take_packet(struct hc_ctl *ctl, struct hc_conn *c, struct hc_got *got)
{
	const bool wanted = !c->session || c->carry;
	struct hc_in in = {.conn = c, .fd = -1, .second = -1};
	const uint8_t *p = got->bytes;
	size_t left = got->len;
	unsigned i;

	if (!wanted)
		got->crowded = false; /* they are dropped in any case */
	else if (c->carry && got->nfds)
		c->carry--;
	for (i = wanted ? 2 : 0; i < got->nfds; i++)
		close_unwanted(ctl, &got->fds[i]);
	if (got->nfds > 0)
		in.fd = got->fds[0]; /* -1 when it was not wanted */
	if (got->nfds > 1)
		in.second = got->fds[1];
	if (!c->ending && check_frames(ctl, c, got)) {
		while (left && !c->closed && !c->ending && !hc_frame_next(&p, &left, &in.frame)) {
			if (in.frame.head.type != HC_MSG_hello)
				close_unwanted(ctl, &in.second);
			take_frame(ctl, &in);
			/* not wanted by the first frame, so by none */
			close_unwanted(ctl, &in.fd);
			close_unwanted(ctl, &in.second);
		}
	}
	if (in.fd >= 0)
		close(in.fd);
	if (in.second >= 0)
		close(in.second);
}

/* One batch. False: nothing more is there, or the connection ended. */
static bool receive(struct hc_ctl *ctl, struct hc_conn *c)
{
	int n = hc_inbox_read(&ctl->inbox, c), i;
	bool end = n < 0;
	struct hc_got got;

	hc_loop_clock(ctl->loop);
	for (i = 0; i < n; i++) {
		hc_inbox_get(&ctl->inbox, (unsigned)i, &got);
		if (!got.len && !got.nfds)
			end = true;
		if (end || c->closed)
			while (got.nfds)
				close(got.fds[--got.nfds]);
		else
			take_packet(ctl, c, &got);
	}
	if (end)
		hc_ctl_end(ctl, c);
	return n > 0 && !c->closed && !c->ending;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct hc_conn *c = arg;
	struct hc_ctl *ctl = c->ctl;

	(void)fd;
	(void)what;
	if (c->closed)
		return;
	receive(ctl, c);
	if (c->first && !c->blocked)
		flush(ctl, c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct hc_conn *c = arg;

	(void)fd;
	(void)what;
	flush(c->ctl, c);
}

/* What a process sent before it died still counts; then it is dead, and so are its sessions. */
static void on_death(void *arg, struct hc_proc *p)
{
	struct hc_ctl *ctl = arg;
	struct hc_conn *c;

	for (c = p->conns; c; c = c->proc_next)
		while (!c->closed && !c->ending && receive(ctl, c))
			;
	hc_loop_dead(ctl->loop, p->pid, p->started);
	for (c = p->conns; c; c = c->proc_next)
		hc_ctl_end(ctl, c);
}

/* ---- accepting ---- */

static bool says_nothing(const struct hc_conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Whoever connects and says nothing keeps others out for a moment only. */
static void evict_silent(struct hc_ctl *ctl)
{
	uint64_t now = now_ns();
	unsigned ended = 0;
	struct hc_conn *c;

	for (c = ctl->conns; c; c = c->next) {
		if (c->session || c->closed || now < c->opened_ns + SILENT_NS || !says_nothing(c))
			continue;
		hc_ctl_end(ctl, c);
		ended++;
	}
	if (ended)
		hc_log(HC_LOG_WARN,
		       "%u connections that said nothing are closed: others wait to come in",
		       ended);
}

static void on_crowd(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval again = {.tv_usec = SILENT_NS / 1000u};
	struct hc_ctl *ctl = arg;

	(void)fd;
	(void)what;
	if (!ctl->crowded)
		return;
	evict_silent(ctl); /* accepting goes on at the end of the turn */
	event_add(ctl->crowd_event, &again);
}

static int add_conn(struct hc_ctl *ctl, int fd)
{
	struct hc_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->ctl = ctl;
	c->fd = fd;
	c->opened_ns = now_ns();
	hc_caller_cred(fd, &c->pid, &c->uid);
	event_assign(&c->in, ctl->base, fd, EV_READ | EV_PERSIST, on_readable, c);
	event_assign(&c->out, ctl->base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	if (event_add(&c->in, NULL)) {
		free(c);
		return -ENOMEM;
	}
	c->next = ctl->conns;
	c->prev = &ctl->conns;
	if (c->next)
		c->next->prev = &c->next;
	ctl->conns = c;
	ctl->counts.connections++;
	ctl->waiting++;
	return 0;
}

static void pause_accept(struct hc_ctl *ctl, const char *why)
{
	hc_log(HC_LOG_ERROR, "no client can connect for a second: %s", why);
	event_del(ctl->accept_event);
	ctl->paused = true;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct hc_ctl *ctl = arg;
	int n, s;

	(void)what;
	for (n = 0; n < ACCEPT_BATCH; n++) {
		if (ctl->waiting >= WAITING_MAX) { /* they wait in the kernel's queue */
			event_del(ctl->accept_event);
			ctl->crowded = true;
			on_crowd(-1, 0, ctl);
			return;
		}
		s = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (s >= 0) {
			if (add_conn(ctl, s)) {
				close(s);
				pause_accept(ctl, "out of memory");
				return;
			}
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN)
			pause_accept(ctl, strerror(errno));
		return;
	}
}

int hc_ctl_listen(struct hc_ctl *ctl, int fd)
{
	if (ctl->accept_event)
		event_free(ctl->accept_event);
	ctl->accept_event = NULL;
	ctl->paused = false;
	ctl->crowded = false;
	ctl->listen_fd = fd;
	if (fd < 0)
		return 0;
	ctl->accept_event = event_new(ctl->base, fd, EV_READ | EV_PERSIST, on_accept, ctl);
	if (!ctl->accept_event || event_add(ctl->accept_event, NULL))
		return -ENOMEM;
	return 0;
}

void hc_ctl_tick(struct hc_ctl *ctl, uint64_t now)
{
	struct hc_conn *c;

	for (c = ctl->conns; c; c = c->next)
		if (c->ending || (!c->session && now > c->opened_ns + HELLO_LIMIT_NS))
			hc_ctl_end(ctl, c);
	hc_procs_tick(ctl->procs, now);
	if (ctl->crowded)
		hc_log(HC_LOG_WARN, "%u connections have not said hello; new ones wait",
		       ctl->waiting);
	if (ctl->paused) {
		ctl->paused = false;
		if (!ctl->crowded)
			event_add(ctl->accept_event, NULL);
	}
}

/* ---- life ---- */

void hc_ctl_set(struct hc_ctl *ctl, uint64_t table_bytes_max, bool allow_foreign_pidns)
{
	ctl->table_bytes_max = table_bytes_max;
	ctl->rules.allow_foreign_pidns = allow_foreign_pidns;
}

void hc_ctl_counts(const struct hc_ctl *ctl, struct hc_ctl_counts *counts)
{
	*counts = ctl->counts;
}

int hc_ctl_new(const struct hc_ctl_args *args, struct hc_ctl **out)
{
	struct hc_ctl *ctl = calloc(1, sizeof(*ctl));
	uint32_t i;

	if (!ctl)
		return -ENOMEM;
	ctl->base = args->base;
	ctl->loop = args->loop;
	ctl->shell = args->shell;
	ctl->worker = args->worker;
	ctl->rules = args->rules;
	ctl->sessions_max = args->sessions_max;
	ctl->table_bytes_max = args->table_bytes_max;
	ctl->listen_fd = -1;
	ctl->slots = calloc(ctl->sessions_max, sizeof(*ctl->slots));
	ctl->crowd_event = evtimer_new(ctl->base, on_crowd, ctl);
	ctl->procs = hc_procs_new(ctl->base, on_death, ctl);
	ctl->tables = hc_tables_new();
	if (!ctl->slots || !ctl->crowd_event || !ctl->procs || !ctl->tables ||
	    hc_inbox_init(&ctl->inbox)) {
		hc_ctl_free(ctl);
		return -ENOMEM;
	}
	if (hc_fdstore_exists())
		hc_procs_set_fdstore(ctl->procs, &(struct hc_fdstore){.worker = ctl->worker});
	for (i = 0; i < ctl->sessions_max; i++) {
		ctl->slots[i].next_free = i + 1;
		/* a number of an earlier daemon's session is none of this one's */
		ctl->slots[i].generation = args->start << 16;
	}
	*out = ctl;
	return 0;
}

void hc_ctl_free(struct hc_ctl *ctl)
{
	if (!ctl)
		return;
	hc_ctl_listen(ctl, -1);
	if (ctl->crowd_event)
		event_free(ctl->crowd_event);
	while (ctl->conns) {
		struct hc_conn *c = ctl->conns;

		hc_ctl_end(ctl, c);
		shut(c);
		*c->prev = c->next;
		if (c->next)
			c->next->prev = c->prev;
		hc_procs_detach(c);
		free(c);
	}
	hc_procs_free(ctl->procs);
	hc_tables_free(ctl->tables);
	hc_inbox_fini(&ctl->inbox);
	hc_pool_out_fini(&ctl->pool);
	free(ctl->slots);
	free(ctl);
}
