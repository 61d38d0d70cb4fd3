/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who reads the socket, and who sleeps.
 *
 * Of all threads that wait for something, one has the reader's role: it blocks in recvmsg without
 * the lock, then takes the packet apart under it and wakes those whose answer was in it. The
 * others sleep on a condition of their own. A reader that has what it waited for gives the role to
 * a sleeper and goes. One that waits for no packet (a pause, a turn) is no such sleeper: many of
 * those would hand the role to each other and never to one who reads. So there is no thread of
 * ours, and a request that is alone pays for nothing but its send and its recvmsg.
 *
 * When the connection is lost, what was in flight is answered PEER_CLOSED and sent again over a
 * new connection, a few times and up to the caller's deadline; the daemon knows a repeated request
 * for what it is. A new connection brings the op arena of the old one, so references stay where
 * they are, and asks for all domains to be taken back before anything else is sent: the daemon
 * must hear which blocks are taken before it gives any out.
 *
 * Many processes lose their daemon at the same moment. So each waits a random time before it tries,
 * and longer after each attempt in vain.
 *
 * Receiving descriptors costs a little on every packet, and only the answer to a join brings one.
 * So a thread that waits for another answer uses plain recv while no join is on its way, and a
 * join is sent only when no such reader is left.
 *
 * A sender that finds the connection broken while another thread reads does not close it (the
 * number of the descriptor could be another file by the time the reader uses it): it shuts the
 * socket down, and the reader sees its end.
 */
#include "client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS     16u
#define RETRY_MAX_MS 512u
#define TICK_MS      16u /* by which the coarse clock may be late, at least */

/* ---- sleeping ---- */

static void wake(struct hc_sleeper *w)
{
	pthread_cond_signal(&w->cond);
}

static void enlist(struct hcomm_session *s, struct hc_sleeper *w)
{
	w->next = s->sleepers;
	w->link = &s->sleepers;
	if (w->next)
		w->next->link = &w->next;
	s->sleepers = w;
}

static void delist(struct hc_sleeper *w)
{
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
}

int hc_wait_apart(struct hcomm_session *s, pthread_cond_t *cond, uint64_t deadline)
{
	struct timespec t = {.tv_sec = (time_t)(deadline / HC_SECOND),
			     .tv_nsec = (long)(deadline % HC_SECOND)};

	if (deadline == HC_FOREVER) {
		pthread_cond_wait(cond, &s->lock);
		return 0;
	}
	return pthread_cond_clockwait(cond, &s->lock, CLOCK_MONOTONIC, &t) == ETIMEDOUT
		       ? HC_E_TIMEOUT
		       : 0;
}

int hc_wait_sleep(struct hcomm_session *s, struct hc_sleeper *me, uint64_t deadline)
{
	int r;

	pthread_cond_init(&me->cond, NULL);
	enlist(s, me);
	r = hc_wait_apart(s, &me->cond, deadline);
	delist(me);
	pthread_cond_destroy(&me->cond);
	return r;
}

void hc_wait_pass_on(struct hcomm_session *s)
{
	if (!s->reading && s->sleepers)
		wake(s->sleepers);
}

static void wake_all(struct hcomm_session *s)
{
	struct hc_sleeper *w;

	for (w = s->sleepers; w; w = w->next)
		wake(w);
}

/* ---- reading ---- */

static void on_done(void *context, struct hc_call *c)
{
	if (c->finish && hc_aside_put(context, c))
		return;
	if (c->finish)
		c->finish(context, c);
	else if (c->sleeper)
		wake(c->sleeper);
}

static void on_event(void *context, const struct hc_m_event *e)
{
	hc_event_queue(context, e);
}

static void on_slab(void *context, const struct hc_m_slab *slab, int fd)
{
	hc_join_slab(context, slab, fd);
}

static void on_status_slab(void *context, const struct hc_m_status_slab *slab, int fd)
{
	struct hcomm_session *s = context;

	if (fd >= 0 && !hc_chan_slab(s, slab->slab, fd))
		return;
	/* the grant that speaks of it finds no register, and is given back */
	s->status_lost = true;
	hc_note(s, HC_SAY_WARN, "a status slab of hcommd was not mapped: %s",
		fd < 0 ? "it came without its file" : hcomm_last_error());
}

static void on_stray(void *context, const struct hc_frame *f)
{
	hc_join_stray(context, f);
}

static struct hc_sink sink_of(struct hcomm_session *s)
{
	return (struct hc_sink){.done = on_done,
				.event = on_event,
				.slab = on_slab,
				.status_slab = on_status_slab,
				.stray = on_stray,
				.context = s};
}

static void free_quietly(void *context, struct hc_call *c)
{
	(void)context;
	if (c->finish)
		c->finish(NULL, c);
}

struct hc_sink hc_wait_quiet(void)
{
	return (struct hc_sink){.done = free_quietly};
}

/* From `ms` / 2 to `ms` * 3 / 2, in nanoseconds. */
static uint64_t about(struct hcomm_session *s, uint32_t ms)
{
	uint64_t x = s->dice;

	if (!x)
		x = hc_now() ^ (uint64_t)getpid() << 32 ^ (uintptr_t)s;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	s->dice = x;
	return ms * HC_MS / 2 + x % (ms * HC_MS + 1);
}

static void lose(struct hcomm_session *s, const char *why)
{
	struct hc_sink sink = sink_of(s);

	if (s->fd < 0)
		return;
	hc_note(s, HC_SAY_WARN, "connection to hcommd at %s lost: %s", s->socket, why);
	close(s->fd);
	s->fd = -1;
	s->retry_at = hc_now() + about(s, RETRY_MS / 2);
	hc_sess_lost(&s->sess, &sink);
	wake_all(s);
}

/* A packet of the connection; see hc_conn_recv. */
static int receive(struct hcomm_session *s, uint64_t deadline, bool plain, int *got)
{
	int n;

	*got = -1;
	s->reading = true;
	s->plain = plain;
	pthread_mutex_unlock(&s->lock);
	if (plain)
		n = hc_conn_recv_plain(s->fd, s->in, sizeof(s->in));
	else
		n = hc_conn_recv(s->fd, s->in, sizeof(s->in), deadline, got);
	pthread_mutex_lock(&s->lock);
	s->reading = s->plain = false;
	if (s->held)
		wake_all(s);
	return n;
}

/* More than the second that a plain read may take; by the clock of ticks, which costs a fifth. */
static bool far_off(uint64_t deadline)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * HC_SECOND + (uint64_t)t.tv_nsec + HC_SECOND + TICK_MS * HC_MS <
	       deadline;
}

int hc_wait_read(struct hcomm_session *s, uint64_t deadline, bool brief)
{
	bool plain = brief && !s->sess.carriers && !s->held && far_off(deadline);
	struct hc_sink sink = sink_of(s);
	int got, r = 0, n = receive(s, deadline, plain, &got);

	if (n > 0)
		r = hc_sess_packet(&s->sess, s->in, (size_t)n, &got, &sink);
	if (got >= 0)
		close(got);
	if (n == 0 || r) {
		lose(s, r ? "a packet that is no message of the protocol" : "closed by hcommd");
		return HC_E_PEER_CLOSED;
	}
	return n == -HC_E_TIMEOUT ? HC_E_TIMEOUT : 0;
}

/* ---- connecting ---- */

/* The arena of this connection: ours, or one that the daemon gave instead. */
static int take_arena(struct hcomm_session *s, struct hc_greeting *g)
{
	struct hc_arena *arena, *old = s->arena;
	int r;

	if (hc_arena_is(old, g->arena)) {
		close(g->arena);
		return 0;
	}
	r = hc_arena_map(g->arena, g->m.blocks, &arena);
	if (r) {
		close(g->arena);
		return r;
	}
	if (old) {
		hc_join_move(s, arena);
		close(old->fd);
		old->fd = -1;
	}
	arena->next = s->arenas;
	s->arenas = s->arena = arena;
	return 0;
}

static int adopt(struct hcomm_session *s, struct hc_greeting *g)
{
	int r = g->arena >= 0 ? take_arena(s, g) : 0;

	if (r) {
		close(g->fd);
		return r;
	}
	if (g->arena >= 0)
		hc_ops_nonce_answer(&s->arena->blocks[HC_NONCE_BLOCK]);
	hc_sess_init(&s->sess);
	s->sess.version = g->m.proto;
	s->sess.next_id = 2; /* hello was 1 */
	s->fd = g->fd;
	s->generation++;
	s->start = g->m.start;
	s->number = g->m.session;
	s->incarnation = g->m.incarnation;
	s->uid = g->m.uid;
	s->connect_timeout_ms = g->m.connect_timeout_ms;
	s->fence = g->fence && s->registered;
	memcpy(s->node, g->node, sizeof(s->node));
	memcpy(s->build, g->build, sizeof(s->build));
	return 0;
}

static void put_off(struct hcomm_session *s)
{
	s->pause_ms = s->pause_ms ? 2 * s->pause_ms : RETRY_MS;
	if (s->pause_ms > RETRY_MAX_MS)
		s->pause_ms = RETRY_MAX_MS;
	s->retry_at = hc_now() + about(s, s->pause_ms);
}

bool hc_wait_may_connect(const struct hcomm_session *s)
{
	return !s->connecting && (!s->retry_at || hc_now() >= s->retry_at);
}

/* Without the lock. */
static int dial(struct hcomm_session *s, uint64_t deadline, int arena, struct hc_greeting *g)
{
	uint64_t hello = hc_deadline(HC_HELLO_MS);
	int r;

	/* later ones are tried again; the first has all the time that the caller gave */
	if (hello > deadline || !s->generation)
		hello = deadline;
	r = hc_conn_open(s->socket, s->env.job, s->registered, arena, hello, g);
	if (r == HC_E_INVALID && arena >= 0) /* not wanted: another one will do */
		r = hc_conn_open(s->socket, s->env.job, s->registered, -1, hello, g);
	return r;
}

int hc_wait_connect(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_greeting g = {.fd = -1};
	int r, arena = s->arena ? s->arena->fd : -1;

	s->connecting = true;
	pthread_mutex_unlock(&s->lock);
	r = dial(s, deadline, arena, &g);
	pthread_mutex_lock(&s->lock);
	if (!r)
		r = adopt(s, &g);
	if (r) {
		put_off(s);
	} else {
		s->retry_at = 0;
		s->pause_ms = 0;
		hc_event_watch(s);
		hc_note(s, HC_SAY_INFO, "connected to hcommd %s at %s, session %llu", s->build,
			s->socket, (unsigned long long)s->number);
		if (s->domains)
			hc_join_again(s, deadline);
		if (s->aside && s->fd >= 0)
			hc_aside_send(s, hc_deadline(HC_REQUEST_MS));
		if (s->channels && s->fd >= 0)
			hc_chans_again(s);
	}
	s->connecting = false;
	wake_all(s);
	return r;
}

/* Is it worth trying again? */
static bool passing(int outcome)
{
	return outcome == HC_E_NO_DAEMON || outcome == HC_E_PEER_CLOSED || outcome == HC_E_TIMEOUT;
}

static int not_connected(const struct hcomm_session *s)
{
	return hc_refuse(HC_E_NO_DAEMON, "not connected to hcommd at %s", s->socket);
}

int hc_wait_ready(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_sleeper me = {.events = false};
	int r = 0;

	while (s->fd < 0 || s->taking) {
		if (s->connecting) {
			if (hc_wait_sleep(s, &me, deadline))
				return not_connected(s);
		} else if (hc_wait_may_connect(s)) {
			r = hc_wait_connect(s, deadline);
			if (r && !passing(r))
				return r;
		} else if (hc_now() >= deadline) {
			return r ? r : not_connected(s);
		} else {
			hc_wait_sleep(s, &me, s->retry_at < deadline ? s->retry_at : deadline);
		}
	}
	return 0;
}

/* ---- calls ---- */

static int closed(struct hcomm_session *s)
{
	return hc_refuse(
		HC_E_PEER_CLOSED,
		"hcommd at %s closed the connection during the call; the next call connects "
		"again",
		s->socket);
}

void hc_wait_drop(struct hcomm_session *s, const char *why)
{
	if (s->fd < 0)
		return;
	if (s->reading)
		shutdown(s->fd, SHUT_RDWR);
	else
		lose(s, why);
}

/* The daemon takes a descriptor only when it was told of it; see HC_MSG_carry. */
static int announce(struct hcomm_session *s, uint64_t deadline)
{
	const struct hc_m_carry m = {.packets = 1};
	uint8_t frame[HC_HEAD_BYTES + 16];
	size_t len;

	if (hc_sess_notice(&s->sess, &hc_desc_carry, &m, frame, sizeof(frame), &len))
		return hc_refuse(HC_E_LIMIT, "a descriptor cannot be announced");
	return hc_conn_send(s->fd, frame, len, -1, deadline);
}

int hc_wait_send(struct hcomm_session *s, const uint8_t *packet, size_t len, int pass,
		 uint64_t deadline)
{
	int r = pass >= 0 ? announce(s, deadline) : 0;

	return r ? r : hc_conn_send(s->fd, packet, len, pass, deadline);
}

static int dropped(struct hcomm_session *s)
{
	hc_wait_drop(s, "closed by hcommd");
	return closed(s);
}

/* An answer with a descriptor must not meet a reader that takes none. */
static void await_reader(struct hcomm_session *s)
{
	struct hc_sleeper me = {.events = false};

	s->held++;
	while (s->reading && s->plain)
		hc_wait_sleep(s, &me, HC_FOREVER); /* it looks up after a second at the latest */
	s->held--;
	/* the role may have been offered to us, who will perhaps not read */
	hc_wait_pass_on(s);
}

int hc_call_start(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q)
{
	size_t len;
	int r;

	if (hc_sess_carries(c->want))
		await_reader(s);
	if (s->fd < 0)
		return closed(s);
	r = hc_sess_request(&s->sess, c, q->desc, q->msg, s->out, sizeof(s->out), &len);
	if (r)
		return hc_refuse(r, "the request %s is larger than a message may be",
				 q->desc->name);
	if (c->until)
		r = hc_aside_keep(c, s->out, len, q->pass);
	if (!r)
		r = hc_wait_send(s, s->out, len, q->pass, q->deadline);
	if (!r)
		return 0;
	hc_sess_forget(&s->sess, c); /* before a drop: it is the caller's, and not to be finished */
	return r == HC_E_PEER_CLOSED ? dropped(s) : r;
}

int hc_call_outcome(struct hcomm_session *s, struct hc_call *c)
{
	struct hc_m_error e;

	if (!c->outcome)
		return 0;
	if (c->outcome == HC_E_PEER_CLOSED && !c->body)
		return closed(s);
	if (hc_call_refusal(&s->sess, c, &e))
		return hc_refuse_str(c->outcome, e.text, e.retry_after_ms);
	if (c->outcome == HC_E_NO_MEMORY)
		return hc_refuse(c->outcome, "no memory for the answer of hcommd");
	return hc_refuse(c->outcome, "hcommd gave an answer that does not fit the request");
}

int hc_call_wait(struct hcomm_session *s, struct hc_call *c, uint64_t deadline)
{
	int r = 0;

	while (!c->done && r != HC_E_TIMEOUT) {
		if (s->reading) {
			struct hc_sleeper me = {.events = false};

			c->sleeper = &me;
			r = hc_wait_sleep(s, &me, deadline);
			c->sleeper = NULL;
		} else {
			r = hc_wait_read(s, deadline, !hc_sess_carries(c->want));
		}
	}
	hc_wait_pass_on(s);
	if (c->done)
		return hc_call_outcome(s, c);
	hc_sess_forget(&s->sess, c);
	return hc_refuse(HC_E_TIMEOUT, "hcommd at %s has not answered within the time given",
			 s->socket);
}

/* How long to wait for a daemon. */
static uint64_t connect_deadline(const struct hc_request *q)
{
	uint64_t d = q->connect_ms ? hc_deadline(q->connect_ms) : q->deadline;

	return d < q->deadline ? d : q->deadline;
}

static int run_once(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q)
{
	int r = 0;

	if (s->fd < 0 || s->taking)
		r = hc_wait_ready(s, connect_deadline(q));
	if (!r)
		r = hc_call_start(s, c, q);
	if (!r)
		r = hc_call_wait(s, c, q->deadline);
	return r;
}

int hc_call_repeat(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q)
{
	unsigned repeats = 0;
	uint16_t want = c->want;
	int r;

	for (;;) {
		r = run_once(s, c, q);
		if (r != HC_E_PEER_CLOSED || repeats == HC_REPEATS || hc_now() >= q->deadline)
			return r;
		hc_call_fini(c);
		hc_call_init(c, want);
		c->repeats = ++repeats;
	}
}

int hc_call_run(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = hc_call_repeat(s, c, q);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void hc_send_notice(struct hcomm_session *s, const struct hc_desc *d, const void *msg)
{
	size_t len;

	if (s->fd < 0 || hc_sess_notice(&s->sess, d, msg, s->out, sizeof(s->out), &len))
		return;
	if (hc_conn_send(s->fd, s->out, len, -1, 0) == HC_E_PEER_CLOSED)
		dropped(s);
}
