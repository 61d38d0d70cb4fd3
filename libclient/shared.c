/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle has besides its operations; see shared.h. */
#include "shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- life ---- */

static struct hc_shared *make(struct hc_domain *d)
{
	struct hcomm_session *s = d->session;
	struct hc_shared *sh = calloc(1, sizeof(*sh));

	if (!sh)
		return NULL;
	pthread_mutex_init(&sh->memory_lock, NULL);
	sh->session = s;
	sh->lock = s ? &s->lock : &d->local->lock;
	sh->id = d->id;
	sh->epoch = d->epoch;
	sh->tag = d->tag;
	sh->nranks = d->nranks;
	sh->record = d->ops.record;
	sh->one = d->ops.one;
	sh->nseats = d->ops.nseats;
	/* many seats stay until the session closes */
	sh->seats = sh->nseats == 1 ? &sh->one : d->ops.seats;
	sh->rank = sh->seats[0].rank;
	sh->fd = -1;
	sh->counted = !d->attached;
	if (!s)
		return sh;
	sh->told = s->start;
	sh->next = s->shared;
	sh->link = &s->shared;
	if (sh->next)
		sh->next->link = &sh->next;
	s->shared = sh;
	return sh;
}

static void release(struct hc_shared *sh, bool mapped)
{
	if (sh->link) {
		*sh->link = sh->next;
		if (sh->next)
			sh->next->link = sh->link;
	}
	if (sh->page && mapped)
		munmap(sh->page, sh->bytes);
	if (sh->fd >= 0 && mapped)
		close(sh->fd);
	hc_exchange_free(sh);
	hc_memory_free(sh->memory);
	if (mapped) /* in a child another thread may have held it */
		pthread_mutex_destroy(&sh->memory_lock);
	free(sh);
}

static int not_live(const struct hc_domain *d)
{
	if (d->phase == HC_PHASE_FORMING)
		return hc_refuse(HC_E_IN_PROGRESS, "the domain is still forming");
	return hc_refuse(d->error ? d->error : HC_E_GONE, "the domain did not form, or has ended");
}

int hc_shared_enter(hcomm_domain handle, struct hc_shared **shared)
{
	struct hc_domain *d;
	int r = hc_domain_lock(handle, &d);

	if (r)
		return r;
	if (!d->session)
		pthread_mutex_lock(&d->local->lock);
	if (d->phase != HC_PHASE_LIVE)
		r = not_live(d);
	if (!r && !d->shared)
		d->shared = make(d);
	if (!r && !d->shared)
		r = hc_refuse(HC_E_NO_MEMORY, "no memory for what the domain shares");
	if (!r) {
		d->shared->users++;
		*shared = d->shared;
		return 0;
	}
	if (!d->session)
		pthread_mutex_unlock(&d->local->lock);
	hc_domain_unlock(d);
	return r;
}

void hc_shared_leave(struct hc_shared *sh)
{
	pthread_mutex_t *lock = sh->lock;

	if (!--sh->users && sh->gone)
		release(sh, true);
	pthread_mutex_unlock(lock);
}

void hc_shared_drop(struct hc_domain *d)
{
	struct hc_shared *sh = d->shared;

	d->shared = NULL;
	if (!sh)
		return;
	if (!d->session)
		pthread_mutex_lock(sh->lock);
	sh->gone = true;
	if (sh->users)
		sh = NULL;
	if (!d->session)
		pthread_mutex_unlock(&d->local->lock);
	if (sh)
		release(sh, true);
}

void hc_shared_free_all(struct hcomm_session *s, bool mapped)
{
	while (s->shared)
		release(s->shared, mapped);
}

/* ---- asking ---- */

int hc_shared_ranks(const struct hc_shared *sh, struct hc_arr *ranks, uint8_t **bytes)
{
	const size_t cap = sh->nseats * 4u;
	struct hc_m_rank r;
	uint32_t i;

	*ranks = (struct hc_arr){0};
	*bytes = malloc(cap);
	if (!*bytes)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for %u ranks", sh->nseats);
	for (i = 0; i < sh->nseats; i++) {
		r.rank = sh->seats[i].rank;
		if (hc_arr_put(ranks, *bytes, cap, &hc_desc_rank, HC_PROTO_MAX, &r))
			return hc_refuse(HC_E_LIMIT, "%u ranks in one call", sh->nseats);
	}
	return 0;
}

static void pause_until(struct hcomm_session *s, uint64_t until)
{
	pthread_cond_t none = PTHREAD_COND_INITIALIZER;

	while (hc_now() < until)
		hc_wait_apart(s, &none, until);
	pthread_cond_destroy(&none);
}

int hc_shared_ask(struct hc_shared *sh, struct hc_call *c, const struct hc_desc *desc,
		  const void *msg, uint64_t deadline)
{
	struct hcomm_session *s = sh->session;
	struct hc_request q = {desc, msg, -1, deadline, 0};
	const uint16_t want = c->want;
	uint64_t until;
	uint32_t ms;
	int r;

	for (;;) {
		r = hc_call_repeat(s, c, &q);
		if (r != HC_E_AGAIN)
			return r;
		ms = hcomm_retry_after();
		until = hc_deadline(ms < 1000 ? ms + 1 : 1000);
		if (until >= deadline)
			return r;
		pause_until(s, until);
		hc_call_fini(c);
		hc_call_init(c, want);
	}
}

/* ---- after a restart ---- */

struct telling {
	struct hc_call call;      /* first */
	struct hc_shared *shared; /* in use as long */
	uint64_t serial;          /* of what is kept; 0: the rest */
};

static void mark(struct hc_shared *sh, uint64_t serial, uint32_t start)
{
	struct hc_kept *k;

	if (!serial)
		sh->told = start;
	for (k = sh->kept; k && serial; k = k->next)
		if (k->serial == serial)
			k->told = start;
}

static void unuse(struct hc_shared *sh)
{
	if (!--sh->users && sh->gone)
		release(sh, true);
}

static void told(struct hcomm_session *s, struct hc_call *c)
{
	struct telling *t = (struct telling *)(void *)c;

	if (s) {
		/* refused: the daemon does not know the domain, or not as ours, which the attaching
		 * will show; or it has no room */
		if (c->outcome != HC_E_PEER_CLOSED && c->outcome != HC_E_AGAIN)
			mark(t->shared, t->serial, s->start);
		s->again--;
		unuse(t->shared);
	}
	hc_call_fini(c);
	free(t);
}

/* One request; descriptors belong to the first message of a packet, so it has a packet. */
static int tell(struct hcomm_session *s, struct hc_shared *sh, uint64_t serial,
		const struct hc_desc *desc, const void *msg, int fd, uint64_t deadline)
{
	struct hc_request q = {desc, msg, fd, deadline, 0};
	struct telling *t = malloc(sizeof(*t));
	int r;

	if (!t)
		return HC_E_NO_MEMORY;
	hc_call_init(&t->call, HC_MSG_done);
	t->call.finish = told;
	t->shared = sh;
	t->serial = serial;
	sh->users++;
	s->again++;
	r = hc_call_start(s, &t->call, &q);
	if (r) {
		s->again--;
		sh->users--;
		hc_call_fini(&t->call);
		free(t);
	}
	return r;
}

static int tell_kept(struct hcomm_session *s, struct hc_shared *sh, struct hc_kept *k,
		     uint64_t deadline)
{
	struct hc_m_put m = {.id = sh->id,
			     .epoch = sh->epoch,
			     .rank = sh->rank,
			     .version = k->version,
			     .key = hc_str(k->key),
			     .value = {(const char *)k->value, k->bytes}};
	struct hc_m_done done;

	/* answered, and its thread has not seen that yet */
	if (k->call && !hc_call_answer(&s->sess, k->call, &hc_desc_done, &done))
		m.version = done.value;
	return tell(s, sh, k->serial, &hc_desc_put, &m, -1, deadline);
}

static int tell_rest(struct hcomm_session *s, struct hc_shared *sh, uint64_t deadline)
{
	struct hc_m_sync_have m = {.id = sh->id,
				   .epoch = sh->epoch,
				   .fences = sh->counted ? sh->fences : 0,
				   .page = sh->page != NULL};
	uint8_t *bytes;
	int r = hc_shared_ranks(sh, &m.ranks, &bytes);

	if (!r)
		r = tell(s, sh, 0, &hc_desc_sync_have, &m, sh->fd, deadline);
	free(bytes);
	return r;
}

static int await(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_sleeper me = {.events = false};

	while (s->again && s->fd >= 0 && hc_now() < deadline) {
		if (s->reading)
			hc_wait_sleep(s, &me, deadline);
		else
			hc_wait_read(s, deadline, false);
	}
	return s->fd >= 0 && !s->again ? 0 : HC_E_PEER_CLOSED;
}

/* One that is not on its way: what is, its own thread asks again. */
static struct hc_kept *next_kept(struct hc_shared *sh, uint32_t start)
{
	struct hc_kept *k = sh->kept;

	while (k && (k->told == start || (k->call && (!k->call->done || k->call->outcome))))
		k = k->next;
	return k;
}

/* One thing that is not told yet; false: all is. */
static bool tell_next(struct hcomm_session *s, struct hc_shared *sh, uint64_t deadline, int *r)
{
	struct hc_kept *k = next_kept(sh, s->start);

	if (!k && sh->told == s->start)
		return false;
	if (!k && !sh->page && !sh->fences) {
		sh->told = s->start;
		return false;
	}
	*r = k ? tell_kept(s, sh, k, deadline) : tell_rest(s, sh, deadline);
	if (!*r)
		*r = await(s, deadline);
	return true;
}

int hc_shared_again(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_shared *sh = s->shared;
	int r = 0;

	while (sh && !r) {
		/* the list may change while an answer is awaited */
		if (!sh->gone && tell_next(s, sh, deadline, &r))
			sh = s->shared;
		else
			sh = sh->next;
	}
	return r ? HC_E_PEER_CLOSED : 0;
}
