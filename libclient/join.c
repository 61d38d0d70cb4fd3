/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an answer `joined` becomes a domain; ways.c has the calls that ask for one.
 *
 * The handle is made first, in phase FORMING, then the request goes out. So nothing can fail
 * for want of a handle once the daemon has made this process a member. When the answer cannot be
 * used after all (no memory, a slab that cannot be mapped), or comes after the caller has given
 * up, the membership is given back by `leave`: no rank may be left that nobody stands for.
 *
 * Started with HCOMM_START, the same work waits on the heap without a waiter and is finished by
 * whoever reads the answer, which queues JOIN_DONE or JOIN_FAILED. When the connection is lost
 * before, it is asked again over the next one (aside.c).
 *
 * Slabs: the answer names a slot; the file of that slot came with this answer or an earlier one.
 * Files of several owners may have the same number, and the record tells: it holds the domain's
 * id. Each file is mapped once for a session.
 *
 * After a new connection each rank asks to be taken back, and says which block of the arena is its
 * own. A refusal means that the domain is over. When the daemon has given another arena, the
 * counters are moved before it is asked, to the blocks of the same numbers: it may read them as
 * soon as it has the request. The old block is then marked as no domain's.
 */
#include "join.h"
#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LONGEST_MS 7200000u /* of connect_timeout_s */
#define SLAB_BYTES ((size_t)HC_SLAB_RECORDS * HC_RECORD_BYTES)

/* ---- arguments ---- */

int hc_timeout(const struct hcomm_session *s, int timeout_ms, uint32_t usual_ms, uint32_t *ms,
	       uint64_t *deadline)
{
	if (timeout_ms < HCOMM_DEFAULT)
		return hc_refuse(
			HC_E_INVALID,
			"timeout_ms is %d; wanted: milliseconds, HCOMM_START or HCOMM_DEFAULT",
			timeout_ms);
	*ms = timeout_ms > 0 ? (uint32_t)timeout_ms : s->env.timeout_ms;
	if (timeout_ms == HCOMM_START)
		*deadline = hc_deadline(HC_HELLO_MS);
	else
		*deadline = hc_deadline(*ms ? *ms : usual_ms);
	return 0;
}

uint64_t hc_join_until(const struct hcomm_session *s)
{
	return hc_deadline(s->env.timeout_ms ? s->env.timeout_ms : s->connect_timeout_ms);
}

static int check_name(const char *name, const char *what, struct hc_str *out)
{
	size_t n = name ? strlen(name) : 0;

	if (n > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID, "config->%s has %zu bytes; wanted: at most %u", what,
				 n, HC_NAME_MAX);
	*out = hc_str(name);
	return 0;
}

int hc_wishes(const struct hcomm_config *config, struct hc_wishes *w)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	int r;

	if (config && config->size < offsetof(struct hcomm_config, name))
		return hc_refuse(HC_E_INVALID, "config->size is %u; wanted: set by HCOMM_INIT",
				 config->size);
	if (config)
		memcpy(&c, config, config->size < sizeof(c) ? config->size : sizeof(c));
	if (c.priority > 7)
		return hc_refuse(HC_E_INVALID, "config->priority is %u; wanted: 0 to 7",
				 c.priority);
	if (c.weight > 100)
		return hc_refuse(HC_E_INVALID, "config->weight is %u; wanted: 1 to 100, or 0",
				 c.weight);
	if (c.shared > 1)
		return hc_refuse(HC_E_INVALID, "config->shared is %u; wanted: 0 or 1", c.shared);
	if (c.channel_wait > 1)
		return hc_refuse(HC_E_INVALID, "config->channel_wait is %u; wanted: 0 or 1",
				 c.channel_wait);
	if (!c.channels && (c.channel_mbps || c.channel_hold_ms || c.channel_wait))
		return hc_refuse(HC_E_INVALID,
				 "config->channels is 0, and other wishes for channels are set; "
				 "wanted: how many from each rank to the next");
	r = check_name(c.name, "name", &w->name);
	if (!r)
		r = check_name(c.server, "server", &w->server);
	w->channels = c.channels;
	w->channel_mbps = c.channel_mbps;
	w->channel_hold_ms = c.channel_hold_ms;
	w->channel_wait = (uint8_t)c.channel_wait;
	w->shared = (uint8_t)c.shared;
	w->priority = (uint8_t)c.priority;
	w->weight = (uint8_t)(c.weight ? c.weight : 1);
	return r;
}

int hc_wishes_no_channels(const struct hc_wishes *w)
{
	if (!w->channels)
		return 0;
	return hc_refuse(HC_E_NOT_SUPPORTED,
			 "config->channels is %u; wanted: 0 here, and hcomm_channel_acquire in the "
			 "new domain",
			 w->channels);
}

/* ---- slabs ---- */

static int map_slab(struct hcomm_session *s, uint32_t index, int fd)
{
	struct hc_slab *slab;
	struct stat st;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < SLAB_BYTES)
		return hc_refuse(HC_E_MALFORMED, "the state slab of hcommd is no file of %zu bytes",
				 SLAB_BYTES);
	for (slab = s->slabs; slab; slab = slab->next) {
		if (slab->device == st.st_dev && slab->inode == st.st_ino)
			return 0;
	}
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the domain");
	map = mmap(NULL, SLAB_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		free(slab);
		return hc_refuse(HC_E_NO_MEMORY, "mapping a state slab: %s", strerror(errno));
	}
	slab->records = map;
	slab->index = index;
	slab->device = st.st_dev;
	slab->inode = st.st_ino;
	slab->next = s->slabs;
	s->slabs = slab;
	return 0;
}

void hc_join_slab(struct hcomm_session *s, const struct hc_m_slab *slab, int fd)
{
	if (fd < 0 || map_slab(s, slab->slab, fd))
		hc_note(s, HC_SAY_WARN, "a state slab of hcommd was not mapped: %s",
			fd < 0 ? "it came without its file" : hcomm_last_error());
}

const struct hc_page_record *hc_join_record(const struct hcomm_session *s, uint64_t id,
					    uint32_t slot)
{
	const struct hc_slab *slab;
	const struct hc_page_record *r;

	for (slab = s->slabs; slab; slab = slab->next) {
		if (slab->index != slot / HC_SLAB_RECORDS)
			continue;
		r = &slab->records[slot % HC_SLAB_RECORDS];
		if (atomic_load_explicit(&r->id, memory_order_acquire) == id)
			return r;
	}
	return NULL;
}

/* ---- seats ---- */

int hc_join_seat(const struct hcomm_session *s, uint32_t nranks, const struct hc_m_seat *seat,
		 struct hc_ops_seat *out)
{
	if (!s->arena || seat->block >= s->arena->count || seat->rank >= nranks)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave rank %u of %u block %u of an op arena of %u",
				 seat->rank, nranks, seat->block, s->arena ? s->arena->count : 0);
	*out = (struct hc_ops_seat){.block = &s->arena->blocks[seat->block], .rank = seat->rank};
	return 0;
}

/* One seat goes into *one; more into memory that stays until the session closes. */
static int read_seats(struct hcomm_session *s, const struct hc_m_joined *m, struct hc_ops_seat *one,
		      struct hc_ops_seat **out)
{
	struct hc_arr a = m->seats;
	struct hc_seats *many = NULL;
	struct hc_m_seat seat;
	uint32_t i;
	int r = 0;

	*out = one;
	if (!a.count || a.count > m->nranks)
		return hc_refuse(HC_E_MALFORMED, "hcommd gave %u seats of %u ranks", a.count,
				 m->nranks);
	if (a.count > 1) {
		many = calloc(1, sizeof(*many) + a.count * sizeof(many->seat[0]));
		if (!many)
			return hc_refuse(HC_E_NO_MEMORY, "no memory for %u ranks", a.count);
		*out = many->seat;
	}
	for (i = 0; !r && hc_arr_next(&a, &hc_desc_seat, s->sess.version, &seat); i++)
		r = hc_join_seat(s, m->nranks, &seat, &(*out)[i]);
	if (many && r) {
		free(many);
	} else if (many) {
		many->next = s->seats;
		s->seats = many;
	}
	return r;
}

/* What a counter of the old block grew by since it was copied goes to the line that threads share.
 */
static void carry_line(struct hc_page_line *shared, const struct hc_page_line *copied,
		       const struct hc_page_line *old)
{
	unsigned p;

	for (p = 0; p < 2; p++) {
		atomic_fetch_add(&shared->begins[p],
				 atomic_load(&old->begins[p]) - atomic_load(&copied->begins[p]));
		atomic_fetch_add(&shared->ends[p],
				 atomic_load(&old->ends[p]) - atomic_load(&copied->ends[p]));
	}
}

/*
 * A seat moves to its block in another arena, and operations go on meanwhile: the counters are
 * copied, the seat is turned over, and what was counted in between is added.
 */
static void move_seat(struct hc_ops_seat *seat, struct hc_page_block *to)
{
	struct hc_page_block *old = seat->block, copied;
	uint64_t begun;
	unsigned i;

	if (old == to)
		return;
	memcpy(&copied, old, sizeof(copied));
	memcpy(to, &copied, sizeof(copied));
	__atomic_store_n(&seat->block, to, __ATOMIC_SEQ_CST);
	begun = atomic_load(&old->head.begun);
	if (begun > atomic_load(&copied.head.begun) && begun > atomic_load(&to->head.begun))
		atomic_store(&to->head.begun, begun);
	for (i = 0; i < HC_BLOCK_LINES; i++)
		carry_line(&to->shared, &copied.line[i], &old->line[i]);
	carry_line(&to->shared, &copied.shared, &old->shared);
	atomic_store(&old->head.domain, 0);
}

/* Number of a block in an arena, or HC_NONE. */
static uint32_t block_in(const struct hc_arena *a, const struct hc_page_block *block)
{
	if (!a || block < a->blocks || block >= a->blocks + a->count)
		return HC_NONE;
	return (uint32_t)(block - a->blocks);
}

void hc_join_move(struct hcomm_session *s, struct hc_arena *to)
{
	struct hc_domain *d;
	uint32_t i, n;

	for (d = s->domains; d; d = d->next) {
		for (i = 0; d->phase == HC_PHASE_LIVE && i < d->ops.nseats; i++) {
			n = block_in(s->arena, d->ops.seats[i].block);
			if (n < to->count)
				move_seat(&d->ops.seats[i], &to->blocks[n]);
		}
	}
}

/* ---- the answer ---- */

static int take_new(struct hcomm_session *s, struct hc_domain *d, const struct hc_m_joined *m,
		    const struct hc_page_record *record)
{
	struct hc_ops_seat one, *seats;
	int r = read_seats(s, m, &one, &seats);

	if (r)
		return r;
	d->id = m->id;
	d->epoch = m->epoch;
	d->tag = m->tag;
	d->nranks = m->nranks;
	d->rank = m->seats.count == 1 ? seats[0].rank : HC_NONE;
	hc_str_copy(m->name, d->name, sizeof(d->name));
	hc_ops_attach(&d->ops, d->handle, d->id, s->start, d->tag, record, seats, m->seats.count,
		      s->fence, &s->hooks);
	d->phase = HC_PHASE_LIVE;
	return 0;
}

/* The same domain, over a new connection: record and handle stay. */
static int take_back(struct hcomm_session *s, struct hc_domain *d, const struct hc_m_joined *m)
{
	struct hc_arr a = m->seats;
	struct hc_m_seat seat;
	struct hc_ops_seat at = {0};
	uint32_t i;
	int r;

	while (hc_arr_next(&a, &hc_desc_seat, s->sess.version, &seat)) {
		r = hc_join_seat(s, m->nranks, &seat, &at);
		if (r)
			return r;
		i = hc_ops_seat(&d->ops, seat.rank);
		if (m->id != d->id || m->epoch != d->epoch || i == HC_NONE)
			return hc_refuse(HC_E_MALFORMED,
					 "hcommd gave rank %u of another domain or epoch back",
					 seat.rank);
		move_seat(&d->ops.seats[i], at.block);
	}
	d->tag = m->tag;
	if (!s->fence)
		atomic_store(&d->ops.fast_lines, 0);
	hc_ops_rebase(&d->ops, s->start, d->tag);
	return 0;
}

static int take(struct hcomm_session *s, struct hc_domain *d, struct hc_call *c,
		struct hc_m_joined *m, bool *unmapped)
{
	const struct hc_page_record *record;
	int r = hc_call_answer(&s->sess, c, &hc_desc_joined, m);

	if (r) {
		m->id = 0; /* the rest is undefined too */
		return hc_refuse(r, "hcommd gave an answer that is no `joined`");
	}
	if (c->fd >= 0 && m->slab_sent == 1)
		r = map_slab(s, m->slot / HC_SLAB_RECORDS, c->fd);
	if (r) {
		*unmapped = true;
		return r;
	}
	if (d->phase == HC_PHASE_LIVE)
		return take_back(s, d, m);
	record = hc_join_record(s, m->id, m->slot);
	if (!record)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave slot %u for domain %016llx, and no slab has it there",
				 m->slot, (unsigned long long)m->id);
	return take_new(s, d, m, record);
}

/* ---- giving back ---- */

static void free_call(struct hcomm_session *s, struct hc_call *c)
{
	(void)s;
	hc_call_fini(c);
	free(c);
}

int hc_call_fire(struct hcomm_session *s, uint16_t want, const struct hc_desc *desc,
		 const void *msg)
{
	struct hc_request q = {desc, msg, -1, 0, 0};
	struct hc_call *c = malloc(sizeof(*c));
	int r;

	if (!c)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the request");
	hc_call_init(c, want);
	c->finish = free_call;
	r = hc_call_start(s, c, &q);
	if (r)
		free_call(s, c);
	return r;
}

void hc_join_give_back(struct hcomm_session *s, uint64_t id, uint32_t epoch, uint32_t rank)
{
	struct hc_m_leave leave = {.id = id, .epoch = epoch, .rank = rank, .timeout_ms = 1};

	hc_call_fire(s, HC_MSG_done, &hc_desc_leave, &leave);
}

static void give_back(struct hcomm_session *s, const struct hc_m_joined *m)
{
	struct hc_arr a = m->seats;
	struct hc_m_seat seat;

	while (hc_arr_next(&a, &hc_desc_seat, s->sess.version, &seat))
		hc_join_give_back(s, m->id, m->epoch, seat.rank);
}

void hc_join_stray(struct hcomm_session *s, const struct hc_frame *f)
{
	struct hc_m_joined m;
	struct hc_m_batch_r b;

	if (f->head.type == HC_MSG_joined &&
	    !hc_decode(&hc_desc_joined, s->sess.version, f->body, f->body_len, &m))
		give_back(s, &m);
	if (f->head.type == HC_MSG_batch_r &&
	    !hc_decode(&hc_desc_batch_r, s->sess.version, f->body, f->body_len, &b))
		hc_batch_stray(s, &b);
}

int hc_join_take(struct hcomm_session *s, struct hc_domain *d, struct hc_call *c)
{
	struct hc_m_joined m = {0};
	bool unmapped = false;
	int r = take(s, d, c, &m, &unmapped);

	if (r && m.id)
		give_back(s, &m);
	/* the daemon sends a slab once for a connection: only a new one brings it again */
	if (unmapped)
		hc_wait_drop(s, hcomm_last_error());
	return r;
}

/* ---- waiting, or not ---- */

struct work { /* started with HCOMM_START */
	struct hc_call call;
	hcomm_domain handle;
};

static struct hc_domain *domain_of(struct hcomm_session *s, hcomm_domain handle)
{
	struct hc_domain *d = hc_slot(handle);

	return d && d->handle == handle && d->session == s ? d : NULL;
}

void hc_join_finish(struct hcomm_session *s, hcomm_domain handle, struct hc_call *c)
{
	struct hc_domain *d = domain_of(s, handle);
	struct hc_m_joined m;
	int r = hc_call_outcome(s, c);

	if (!d) { /* left before it was joined */
		if (!r && !hc_call_answer(&s->sess, c, &hc_desc_joined, &m))
			give_back(s, &m);
		return;
	}
	if (!r)
		r = hc_join_take(s, d, c);
	if (r) {
		d->phase = HC_PHASE_FAILED;
		d->error = r;
	}
	hc_event_join_end(s, d, r, r ? hcomm_last_error() : "");
}

void hc_join_none(struct hcomm_session *s, hcomm_domain handle, const char *text)
{
	struct hc_domain *d = domain_of(s, handle);

	if (!d)
		return;
	hc_event_join_end(s, d, 0, text);
	hc_domain_free(d);
}

static void finish(struct hcomm_session *s, struct hc_call *c)
{
	struct work *w = (struct work *)(void *)c; /* its first member */

	if (s)
		hc_join_finish(s, w->handle, c);
	hc_call_fini(c);
	free(w);
}

static int begin(struct hcomm_session *s, const struct hc_request *q, hcomm_domain handle)
{
	struct work *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the request");
	hc_call_init(&w->call, HC_MSG_joined);
	w->call.finish = finish;
	w->call.until = hc_join_until(s);
	w->handle = handle;
	r = hc_call_start(s, &w->call, q);
	if (r) {
		hc_call_fini(&w->call);
		free(w);
		return r;
	}
	return hc_refuse(HC_E_IN_PROGRESS, "joining goes on; an event ends it");
}

static int wait(struct hcomm_session *s, const struct hc_request *q, struct hc_domain *d)
{
	struct hc_call c;
	int r;

	hc_call_init(&c, HC_MSG_joined);
	r = hc_call_repeat(s, &c, q);
	if (!r)
		r = hc_join_take(s, d, &c);
	hc_call_fini(&c);
	return r;
}

static int run(struct hcomm_session *s, const struct hc_join *j, struct hc_request *q,
	       struct hc_domain **out)
{
	struct hc_domain *d;
	int r = hc_wait_ready(s, q->deadline);

	if (!r)
		r = hc_domain_new(s, &d);
	if (r)
		return r;
	d->rank = j->rank;
	d->nranks = j->nranks;
	d->attached = j->desc == &hc_desc_attach;
	if (j->timeout_ms != HCOMM_START) {
		r = wait(s, q, d);
	} else {
		r = begin(s, q, d->handle);
		if (r == HC_E_PEER_CLOSED && !hc_wait_ready(s, q->deadline))
			r = begin(s, q, d->handle); /* it was lost before, unnoticed */
	}
	if (!r || r == HC_E_IN_PROGRESS)
		*out = d;
	else
		hc_domain_free(d);
	return r;
}

/*
 * The daemon answers at the limit, and is given time for that. Where the caller gave none, it is
 * connect_timeout_s of the domain's home, which may be longer than that of our own node: that is
 * how long we wait for our daemon to be there, and not for its answer.
 */
void hc_join_limit(const struct hcomm_session *s, int timeout_ms, struct hc_request *q)
{
	if (timeout_ms == HCOMM_START)
		return;
	if (timeout_ms == HCOMM_DEFAULT && !s->env.timeout_ms && s->connect_timeout_ms) {
		q->connect_ms = s->connect_timeout_ms;
		q->deadline = hc_deadline(LONGEST_MS);
	}
	if (q->deadline < HC_FOREVER - HC_SLACK_MS * HC_MS)
		q->deadline += HC_SLACK_MS * HC_MS;
}

int hc_join_run(struct hcomm_session *s, const struct hc_join *j, hcomm_domain *domain)
{
	struct hc_request q = {j->desc, j->msg, j->pass, j->deadline, 0};
	struct hc_domain *d = NULL;
	int r;

	hc_join_limit(s, j->timeout_ms, &q);
	pthread_mutex_lock(&s->lock);
	r = run(s, j, &q, &d);
	if (d)
		*domain = d->handle;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* ---- after a new connection ---- */

#define AGAIN_MAX                                                                                  \
	512u /* requests on their way: the answers have to fit into the daemon's queue             \
	      */

static void over(struct hcomm_session *s, struct hc_domain *d, const char *why)
{
	struct hc_m_event e = {.kind = HC_W_event_code_DOMAIN_DESTROYED,
			       .id = d->id,
			       .epoch = d->epoch,
			       .state = HC_W_domain_state_DESTROYED,
			       .rank = HC_NONE,
			       .node = hc_str(s->node),
			       .text = hc_str(why)};

	hc_ops_detach(&d->ops);
	hc_chans_over(d);
	d->phase = HC_PHASE_FAILED;
	d->error = HC_E_GONE;
	if (d->ending)
		return;
	hc_note(s, HC_SAY_WARN, "domain %016llx was not taken back: %s", (unsigned long long)d->id,
		why);
	hc_event_queue(s, &e);
}

static void finish_again(struct hcomm_session *s, struct hc_call *c)
{
	struct work *w = (struct work *)(void *)c;
	struct hc_domain *d = s ? domain_of(s, w->handle) : NULL;

	if (d && d->phase == HC_PHASE_LIVE && c->outcome != HC_E_PEER_CLOSED &&
	    (hc_call_outcome(s, c) || hc_join_take(s, d, c)))
		over(s, d, hcomm_last_error());
	if (s)
		s->again--;
	hc_call_fini(c);
	free(w);
}

/* One more request in the packet; false: there is no room or no memory. */
static bool ask_again(struct hcomm_session *s, const struct hc_domain *d,
		      const struct hc_ops_seat *seat, size_t *used)
{
	struct hc_m_attach m = {.id = d->id,
				.epoch = d->epoch,
				.rank = seat->rank,
				.block = block_in(s->arena, seat->block)};
	struct work *w = malloc(sizeof(*w));
	size_t len;

	if (!w)
		return false;
	hc_call_init(&w->call, HC_MSG_joined);
	w->call.finish = finish_again;
	w->handle = d->handle;
	if (hc_sess_request(&s->sess, &w->call, &hc_desc_attach, &m, s->out + *used,
			    sizeof(s->out) - *used, &len)) {
		free(w);
		return false;
	}
	*used += len;
	s->again++;
	return true;
}

/* The first that has not asked for all of its ranks on this connection. */
static struct hc_domain *next_again(struct hcomm_session *s, struct hc_domain *d)
{
	for (; d; d = d->next) {
		if (d->phase != HC_PHASE_LIVE)
			continue;
		if (d->asked != (uint32_t)s->generation) {
			d->asked = (uint32_t)s->generation;
			d->asked_seats = 0;
		}
		if (d->asked_seats < d->ops.nseats)
			return d;
	}
	return NULL;
}

/* As many as go into a packet and may be on their way. Returns its bytes. */
static size_t fill_again(struct hcomm_session *s)
{
	struct hc_domain *d = s->domains;
	size_t used = 0;

	while (s->again < AGAIN_MAX && (d = next_again(s, d))) {
		if (!ask_again(s, d, &d->ops.seats[d->asked_seats], &used))
			break;
		d->asked_seats++;
	}
	return used;
}

/* Until all that was asked is answered; false when the connection is lost or the time is up. */
static bool await_again(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_sleeper me = {.events = false};

	while (s->again && s->fd >= 0 && hc_now() < deadline) {
		if (s->reading)
			hc_wait_sleep(s, &me, deadline);
		else
			hc_wait_read(s, deadline, false);
	}
	return s->fd >= 0 && !s->again;
}

void hc_join_again(struct hcomm_session *s, uint64_t deadline)
{
	uint64_t enough = hc_deadline(HC_REQUEST_MS);
	size_t len;
	int r = 0;

	(void)deadline; /* a connection half taken back is of no use: it is made whole, or dropped
			 */
	s->taking = true;
	s->again = 0;
	r = hc_shared_again(s, enough);
	while (!r && (len = fill_again(s))) {
		r = hc_conn_send(s->fd, s->out, len, -1, enough);
		if (!r && !await_again(s, enough))
			r = HC_E_PEER_CLOSED;
	}
	if (r)
		hc_wait_drop(s, "lost while domains were taken back");
	s->taking = false;
}
