/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's thread; see store.h.
 *
 * Two buffers: the main thread appends to one under a lock while the store's thread writes the
 * other. The lock is never held during a system call of the database. The main thread signals
 * only a store that sleeps, once for each kick.
 *
 * While the core makes many domains in one go (hold), rows are written as they come and the
 * transaction stays open for the next ones: each commit writes every touched page of the table,
 * and ids are random, so a few commits cost what many do. The rows stay in the buffer until the
 * commit, for the case that it fails.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "backlog.h"
#include "log.h"
#include "store.h"

#define PRUNE_EVERY 4096u /* events */
#define LAST_ROUNDS 16u
#define HOLD_BYTES  (64u * 1024u) /* rows that a transaction waits with for others, at most */
#define KEEP_BYTES  (64u * 1024u) /* of a buffer, while there is nothing to store */

struct item {
	uint64_t seq, id;
	uint32_t len; /* of the bytes behind it */
	uint32_t what;
};

struct buffer {
	uint8_t *bytes;
	size_t used, cap;
};

struct hc_store {
	/* shared, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct buffer in;
	struct hc_store_query *asked, **asked_end, *answered;
	struct hc_store_limits limits;
	struct hc_store_state state;
	uint64_t done, kept; /* last row that was dealt with; that was written */
	bool sleeping, stop;
	bool hold;     /* more rows follow at once: a commit may wait for them */
	bool checking; /* the database, until it is interrupted */

	/* of the store's thread */
	struct hc_db *db;
	struct buffer work; /* rows of one transaction */
	size_t written;     /* of them: in the transaction that is open; 0 = none is */
	struct hc_backlog *backlog, *channels;
	uint32_t since_prune;
	uint64_t lost_wall_ns; /* when rows were first not written */
	uint32_t start;
	bool start_stored, again;
	bool idle; /* has had nothing to do for a second */

	/* of the main thread */
	pthread_t thread;
	int fd;
	struct event *event;
	uint64_t told;
	void (*on_done)(void *arg, uint64_t persisted);
	void (*on_storage)(void *arg, uint64_t kept);
	uint64_t told_kept;
	void *arg;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- writing: the store's thread ---- */

static bool grow(struct buffer *b, size_t need)
{
	size_t cap = b->cap ? b->cap : 16384;
	uint8_t *p;

	while (cap < need)
		cap *= 2;
	if (cap == b->cap)
		return true;
	p = realloc(b->bytes, cap);
	if (!p)
		return false;
	b->bytes = p;
	b->cap = cap;
	return true;
}

static int write_event(struct hc_store *s, const struct item *it, const uint8_t *bytes,
		       uint64_t wall, uint64_t mono)
{
	struct hc_m_event_row m;
	struct hc_db_event e;

	if (hc_decode(&hc_desc_event_row, HC_PROTO_MAX, bytes, it->len, &m)) {
		hc_log(HC_LOG_ERROR, "an event of the core cannot be read; it is not stored");
		return 0;
	}
	e = (struct hc_db_event){.wall_ns = wall,
				 .mono_ns = mono,
				 .domain = m.domain,
				 .epoch = m.epoch,
				 .rank = m.rank,
				 .pid = m.pid,
				 .uid = m.uid,
				 .kind = m.kind,
				 .text = m.text};
	s->since_prune++;
	return hc_db_add_event(s->db, &e);
}

static int write_item(struct hc_store *s, const struct item *it, const uint8_t *bytes,
		      uint64_t wall, uint64_t mono)
{
	switch ((enum hc_persist)it->what) {
	case HC_PUT_DOMAIN: return hc_db_put_domain(s->db, it->id, bytes, it->len);
	case HC_DEL_DOMAIN: return hc_db_del_domain(s->db, it->id);
	case HC_ADD_EVENT: return write_event(s, it, bytes, wall, mono);
	case HC_PUT_CHANNEL: return hc_db_put_channel(s->db, it->id, bytes, it->len);
	case HC_DEL_CHANNEL: return hc_db_del_channel(s->db, it->id);
	}
	return 0;
}

static bool next_item(const struct buffer *b, size_t *at, struct item *it, const uint8_t **bytes)
{
	if (*at >= b->used)
		return false;
	memcpy(it, b->bytes + *at, sizeof(*it));
	*bytes = b->bytes + *at + sizeof(*it);
	*at += sizeof(*it) + it->len;
	return true;
}

/* What is not written yet of the rows at hand; and the commit, unless more are awaited. */
static int write_all(struct hc_store *s, bool hold)
{
	uint64_t wall = clock_ns(CLOCK_REALTIME), mono = clock_ns(CLOCK_MONOTONIC);
	const uint8_t *bytes;
	struct item it;
	int r = 0;

	if (!s->written)
		r = hc_db_begin(s->db);
	while (!r && next_item(&s->work, &s->written, &it, &bytes))
		r = write_item(s, &it, bytes, wall, mono);
	if (!r && !hold)
		r = hc_db_commit(s->db);
	return r;
}

static uint64_t last_seq(const struct hc_store *s)
{
	const uint8_t *bytes;
	uint64_t last = 0;
	struct item it;
	size_t at = 0;

	while (next_item(&s->work, &at, &it, &bytes))
		if (it.seq > last)
			last = it.seq;
	return last;
}

static void add_note(struct hc_store *s, uint16_t kind, uint64_t wall_ns, const char *text)
{
	struct hc_db_event e = {.wall_ns = wall_ns,
				.mono_ns = clock_ns(CLOCK_MONOTONIC),
				.kind = kind,
				.rank = HC_NONE,
				.text = hc_str(text)};

	hc_db_add_event(s->db, &e);
}

static uint64_t keep_all(struct hc_store *s)
{
	const uint8_t *bytes;
	uint64_t lost = 0;
	struct item it;
	size_t at = 0;

	while (next_item(&s->work, &at, &it, &bytes)) {
		switch ((enum hc_persist)it.what) {
		case HC_ADD_EVENT: lost++; break;
		case HC_PUT_DOMAIN: hc_backlog_put(s->backlog, it.id, bytes, it.len); break;
		case HC_DEL_DOMAIN: hc_backlog_put(s->backlog, it.id, NULL, 0); break;
		case HC_PUT_CHANNEL: hc_backlog_put(s->channels, it.id, bytes, it.len); break;
		case HC_DEL_CHANNEL: hc_backlog_put(s->channels, it.id, NULL, 0); break;
		}
	}
	return lost;
}

static void set_lost(struct hc_store *s, bool lost, const char *why)
{
	pthread_mutex_lock(&s->lock);
	s->state.lost = lost;
	snprintf(s->state.why, sizeof(s->state.why), "%s", why);
	pthread_mutex_unlock(&s->lock);
	if (lost)
		s->lost_wall_ns = clock_ns(CLOCK_REALTIME);
	if (lost)
		hc_log(HC_LOG_ERROR,
		       "state cannot be stored: %s; the daemon goes on, what it makes now is not "
		       "persistent. Free space in state_dir",
		       why);
	else
		hc_log(HC_LOG_WARN, "state is stored again");
}

static void tell_main(struct hc_store *s)
{
	uint64_t one = 1;

	if (write(s->fd, &one, sizeof(one)) < 0)
		hc_assert(errno == EAGAIN);
}

static void count(struct hc_store *s, uint64_t commits, uint64_t events_lost)
{
	pthread_mutex_lock(&s->lock);
	s->state.commits += commits;
	s->state.events_lost += events_lost;
	pthread_mutex_unlock(&s->lock);
}

static int put_one(void *arg, uint64_t id, const void *row, size_t len)
{
	struct hc_store *s = arg;

	return row ? hc_db_put_domain(s->db, id, row, len) : hc_db_del_domain(s->db, id);
}

static int put_channel(void *arg, uint64_t id, const void *row, size_t len)
{
	struct hc_store *s = arg;

	return row ? hc_db_put_channel(s->db, id, row, len) : hc_db_del_channel(s->db, id);
}

/* Everything that was kept, in one transaction; all or nothing. */
static void try_backlog(struct hc_store *s)
{
	int r = hc_db_begin(s->db);
	char text[256];

	if (!r && !s->start_stored)
		r = hc_db_set_start(s->db, s->start);
	if (!r)
		r = hc_backlog_each(s->backlog, put_one, s);
	if (!r)
		r = hc_backlog_each(s->channels, put_channel, s);
	if (!r) {
		snprintf(text, sizeof(text),
			 "state could not be stored: %s; %llu events are missing here",
			 s->state.why, (unsigned long long)s->state.events_lost);
		add_note(s, HC_W_event_code_STORAGE_LOST, s->lost_wall_ns, text);
		add_note(s, HC_W_event_code_STORAGE_BACK, clock_ns(CLOCK_REALTIME),
			 "state is stored again");
		r = hc_db_commit(s->db);
	}
	if (r) {
		hc_db_rollback(s->db);
		return;
	}
	s->start_stored = true;
	hc_backlog_clear(s->backlog);
	hc_backlog_clear(s->channels);
	set_lost(s, false, "");
	count(s, 1, 0);
	tell_main(s);
}

static void store_group(struct hc_store *s, bool hold)
{
	char why[160];
	int r;

	if (!s->work.used)
		return;
	if (s->state.lost) { /* written by this thread alone */
		count(s, 0, keep_all(s));
		return;
	}
	r = write_all(s, hold);
	if (!r && !hold)
		count(s, 1, 0);
	if (!r)
		return;
	snprintf(why, sizeof(why), "%s", r == -ENOMEM ? "out of memory" : hc_db_error(s->db));
	hc_db_rollback(s->db);
	count(s, 0, keep_all(s));
	set_lost(s, true, why);
}

static bool prune(struct hc_store *s, const struct hc_store_limits *limits)
{
	bool more = false;

	if (s->since_prune < PRUNE_EVERY || s->state.lost)
		return false;
	if (hc_db_prune(s->db, clock_ns(CLOCK_REALTIME), limits->journal_days, limits->journal_rows,
			&more))
		more = false; /* the next write will say what is wrong */
	if (!more)
		s->since_prune = 0;
	return more;
}

/* ---- the thread ---- */

/* A rush of rows leaves its memory behind only until there is nothing to do. */
static void trim(struct buffer *b)
{
	if (b->used || b->cap <= KEEP_BYTES)
		return;
	free(b->bytes);
	*b = (struct buffer){0};
}

/* Returns with the lock held, when there is something to do. */
static void wait_for_work(struct hc_store *s)
{
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	s->state.busy_ns = 0;
	s->idle = false;
	if (s->in.used || s->asked || s->stop || (s->again && !s->written) ||
	    (s->written && !s->hold))
		return;
	trim(&s->in);
	trim(&s->work);
	s->sleeping = true;
	if (s->state.lost || hc_db_check_due(s->db)) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		s->idle = pthread_cond_timedwait(&s->wake, &s->lock, &until) == ETIMEDOUT;
	} else {
		pthread_cond_wait(&s->wake, &s->lock);
	}
	s->sleeping = false;
}

/* The rows that have come join those of the open transaction, or are the next one's. */
static void take_rows(struct hc_store *s)
{
	struct buffer b = s->work;

	if (!s->written) {
		s->work = s->in;
		s->in = b;
	} else {
		if (!grow(&s->work, s->work.used + s->in.used))
			hc_panic(__FILE__, __LINE__, "out of memory for rows to store");
		if (s->in.used)
			memcpy(s->work.bytes + s->work.used, s->in.bytes, s->in.used);
		s->work.used += s->in.used;
	}
	s->in.used = 0;
}

static struct hc_store_query *take_work(struct hc_store *s, struct hc_store_limits *limits,
					bool *stop)
{
	struct hc_store_query *asked = s->asked;

	take_rows(s);
	if (s->work.used || asked || s->state.lost)
		s->state.busy_ns = clock_ns(CLOCK_MONOTONIC);
	s->asked = NULL;
	s->asked_end = &s->asked;
	*limits = s->limits;
	*stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return asked;
}

static int give_row(void *arg, const struct hc_db_event *e)
{
	struct hc_store_query *q = arg;

	return q->row(q, e);
}

static void answer(struct hc_store *s, struct hc_store_query *q)
{
	struct hc_store_query *next;

	for (; q; q = next) {
		next = q->next;
		q->result = hc_db_events(s->db, &q->filter, give_row, q);
		pthread_mutex_lock(&s->lock);
		q->next = s->answered;
		s->answered = q;
		pthread_mutex_unlock(&s->lock);
	}
}

/* Who comes meanwhile does not wait for it: see kick. */
static void check(struct hc_store *s)
{
	int r;

	pthread_mutex_lock(&s->lock);
	s->checking = !s->in.used && !s->asked && !s->stop;
	pthread_mutex_unlock(&s->lock);
	if (!s->checking) /* written by this thread alone */
		return;
	r = hc_db_check(s->db);
	pthread_mutex_lock(&s->lock);
	s->checking = false;
	s->state.damaged = r == HC_DB_DAMAGED;
	pthread_mutex_unlock(&s->lock);
	if (r != HC_DB_DAMAGED)
		return;
	hc_log(HC_LOG_ERROR, "the database is damaged: its domains could be read, other parts "
			     "cannot be trusted; the next start moves it aside and begins anew");
	if (hc_db_set_damaged(s->db))
		hc_log(HC_LOG_ERROR, "the database does not take the mark of it: %s",
		       hc_db_error(s->db));
}

/* By whatever: nothing would be stored any more, and nobody be told. */
static void ended(void *arg)
{
	(void)arg;
	hc_panic(__FILE__, __LINE__, "the thread of the database has ended");
}

static void *work(void *arg)
{
	struct hc_store *s = arg;
	struct hc_store_query *asked;
	struct hc_store_limits limits;
	uint64_t last;
	bool stop, hold;

	pthread_cleanup_push(ended, NULL);
	do {
		wait_for_work(s);
		hold = s->hold && !s->asked && !s->stop && !s->state.lost;
		asked = take_work(s, &limits, &stop);
		hold = hold && s->work.used < HOLD_BYTES;
		store_group(s, hold);
		if (hold && !s->state.lost)
			continue;
		last = last_seq(s);
		if (last) {
			pthread_mutex_lock(&s->lock);
			s->done = last;
			if (!s->state.lost)
				s->kept = last;
			pthread_mutex_unlock(&s->lock);
		}
		if (s->work.used && !asked)
			tell_main(s);
		answer(s, asked);
		if (asked)
			tell_main(s);
		if (s->state.lost)
			try_backlog(s);
		s->again = prune(s, &limits);
		stop = stop && !s->work.used;
		s->work.used = s->written = 0;
		if (s->idle && !s->state.lost && hc_db_check_due(s->db))
			check(s);
	} while (!stop);
	pthread_cleanup_pop(0);
	return NULL;
}

/* ---- the main thread ---- */

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct hc_store *s = arg;
	struct hc_store_query *q, *next;
	uint64_t count_, done, kept;

	(void)what;
	if (read(fd, &count_, sizeof(count_)) < 0)
		hc_assert(errno == EAGAIN || errno == EINTR);
	pthread_mutex_lock(&s->lock);
	done = s->done;
	kept = s->state.lost ? s->kept : HC_NEVER;
	q = s->answered;
	s->answered = NULL;
	pthread_mutex_unlock(&s->lock);
	if (s->on_storage && kept != s->told_kept) {
		s->told_kept = kept;
		s->on_storage(s->arg, kept);
	}
	if (done > s->told) {
		s->told = done;
		s->on_done(s->arg, done);
	}
	for (; q; q = next) {
		next = q->next;
		q->done(q);
	}
}

static void init_sync(struct hc_store *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
}

static void free_all(struct hc_store *s)
{
	if (s->event)
		event_free(s->event);
	if (s->fd >= 0)
		close(s->fd);
	hc_backlog_free(s->backlog);
	hc_backlog_free(s->channels);
	free(s->in.bytes);
	free(s->work.bytes);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int hc_store_start(struct event_base *base, struct hc_db *db, const struct hc_db_start *begun,
		   const struct hc_store_limits *limits,
		   void (*done)(void *arg, uint64_t persisted), void *arg, struct hc_store **store)
{
	struct hc_store *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return r;
	init_sync(s);
	s->asked_end = &s->asked;
	s->limits = *limits;
	s->db = db;
	s->start = begun->start;
	s->start_stored = begun->stored;
	s->since_prune = PRUNE_EVERY;
	s->on_done = done;
	s->told_kept = HC_NEVER;
	s->arg = arg;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->backlog = hc_backlog_new();
	s->channels = hc_backlog_new();
	if (s->fd >= 0)
		s->event = event_new(base, s->fd, EV_READ | EV_PERSIST, on_ready, s);
	if (!s->backlog || !s->channels || !s->event || event_add(s->event, NULL))
		goto fail;
	if (!begun->stored)
		set_lost(s, true, hc_db_error(db));
	r = -pthread_create(&s->thread, NULL, work, s);
	if (r)
		goto fail;
	*store = s;
	return 0;
fail:
	free_all(s);
	return r;
}

/* What was stored is told, which may bring the last few rows; the thread is gone by now. */
static void finish(struct hc_store *s)
{
	struct hc_store_limits limits;
	unsigned rounds;
	bool stop;

	on_ready(s->fd, 0, s);
	for (rounds = 0; s->in.used && rounds < LAST_ROUNDS; rounds++) {
		pthread_mutex_lock(&s->lock);
		take_work(s, &limits, &stop);
		store_group(s, false);
		if (last_seq(s))
			s->done = last_seq(s);
		s->work.used = s->written = 0;
		on_ready(s->fd, 0, s);
	}
}

void hc_store_stop(struct hc_store *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	if (s->checking)
		hc_db_interrupt(s->db);
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	finish(s);
	hc_db_close(s->db);
	free_all(s);
}

void hc_store_put(struct hc_store *s, enum hc_persist what, uint64_t seq, uint64_t id,
		  const void *bytes, uint32_t len)
{
	struct item it = {.seq = seq, .id = id, .len = len, .what = what};
	struct buffer *b = &s->in;

	pthread_mutex_lock(&s->lock);
	if (!grow(b, b->used + sizeof(it) + len))
		hc_panic(__FILE__, __LINE__, "out of memory for rows to store");
	memcpy(b->bytes + b->used, &it, sizeof(it));
	if (len)
		memcpy(b->bytes + b->used + sizeof(it), bytes, len);
	b->used += sizeof(it) + len;
	pthread_mutex_unlock(&s->lock);
}

static void kick(struct hc_store *s, bool more)
{
	bool sleeping;

	pthread_mutex_lock(&s->lock);
	s->hold = more;
	sleeping = s->sleeping;
	if (s->checking)
		hc_db_interrupt(s->db);
	pthread_mutex_unlock(&s->lock);
	if (sleeping)
		pthread_cond_signal(&s->wake);
}

void hc_store_on_storage(struct hc_store *s, void (*fn)(void *arg, uint64_t kept))
{
	s->on_storage = fn;
	tell_main(s);
}

void hc_store_kick(struct hc_store *s)
{
	kick(s, false);
}

void hc_store_kick_more(struct hc_store *s)
{
	kick(s, true);
}

void hc_store_note(struct hc_store *s, uint16_t kind, const char *text)
{
	struct hc_m_event_row m = {.kind = kind, .rank = HC_NONE, .text = hc_str(text)};
	uint8_t row[HC_TEXT_MAX + 64];
	size_t len;

	if (m.text.len > HC_TEXT_MAX)
		m.text.len = HC_TEXT_MAX;
	if (hc_encode(&hc_desc_event_row, HC_PROTO_MAX, &m, row, sizeof(row), &len))
		return;
	hc_store_put(s, HC_ADD_EVENT, 0, 0, row, (uint32_t)len);
	hc_store_kick(s);
}

void hc_store_set_limits(struct hc_store *s, const struct hc_store_limits *limits)
{
	pthread_mutex_lock(&s->lock);
	s->limits = *limits;
	pthread_mutex_unlock(&s->lock);
}

void hc_store_state(struct hc_store *s, struct hc_store_state *state)
{
	pthread_mutex_lock(&s->lock);
	*state = s->state;
	pthread_mutex_unlock(&s->lock);
}

void hc_store_ask(struct hc_store *s, struct hc_store_query *q)
{
	q->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->asked_end = q;
	s->asked_end = &q->next;
	pthread_mutex_unlock(&s->lock);
	hc_store_kick(s);
}
