/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange at the home; see exchange.h. */
#include "exchange.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "sync.h"
#include "user.h"

#include "hcomm/hcomm.h"

#include <stdio.h>
#include <string.h>

#define ENTRY_BYTES 256u        /* charged for an entry besides its cells */
#define BRIEF_NS    2000000000u /* a get that would not wait, while values may still be put again */
#define SMALL_BYTES 1024u       /* goes along with an answer in any case */
#define FREE_SLICE  64u

/* ---- tables ---- */

static uint32_t number(const struct hc_core *c, const struct hc_exch *e)
{
	return (uint32_t)(e - c->exchs);
}

static struct hc_exch *find(struct hc_core *c, uint64_t id)
{
	uint32_t n = hc_index_find(&c->exch_by_id, id);

	return n == HC_NONE ? NULL : &c->exchs[n];
}

/* That of the home's epoch; NULL: too many are being taken down. */
static struct hc_exch *make(struct hc_core *c, const struct hc_home *h)
{
	struct hc_exch *e = find(c, h->id);
	uint32_t n;

	if (e && e->epoch != h->epoch) {
		hc_exchange_over(c, h->id, "the domain has a new epoch");
		e = NULL;
	}
	if (e)
		return e;
	n = hc_pool_get(&c->exch_pool);
	if (n == HC_NONE)
		return NULL;
	e = &c->exchs[n];
	*e = (struct hc_exch){.id = h->id,
			      .uid = h->uid,
			      .epoch = h->epoch,
			      .nranks = h->nranks,
			      .calls = HC_NONE};
	hc_index_add(&c->exch_by_id, h->id, n);
	return e;
}

static uint64_t key_hash(const struct hc_core *c, uint64_t id, struct hc_str key)
{
	const struct hc_hash_key k = {c->rng.k0 ^ id, c->rng.k1};

	return hc_hash(&k, key.p, key.len);
}

static struct hc_entry *entry_of(struct hc_core *c, const struct hc_exch *e, struct hc_str key)
{
	uint32_t n;

	for (n = hc_index_find(&c->entry_by_key, key_hash(c, e->id, key)); n != HC_NONE;
	     n = hc_index_next(&c->entry_by_key, n))
		if (c->entries[n].exch == number(c, e) && hc_str_eq(hc_str(c->entries[n].key), key))
			return &c->entries[n];
	return NULL;
}

void hc_exchange_count(const struct hc_core *c, uint64_t id, uint32_t *values, uint64_t *bytes)
{
	const uint32_t n = hc_index_find(&c->exch_by_id, id);

	*values = n == HC_NONE ? 0 : c->exchs[n].entries.count;
	*bytes = n == HC_NONE ? 0 : c->exchs[n].bytes;
}

/* ---- cells ---- */

static void charge(struct hc_core *c, struct hc_exch *e, int64_t bytes)
{
	e->bytes = (uint64_t)((int64_t)e->bytes + bytes);
	if (bytes > 0)
		hc_user_charge_memory(c, e->uid, (uint64_t)bytes);
	else
		hc_user_release_memory(c, e->uid, (uint64_t)-bytes);
}

static void cells_free(struct hc_core *c, struct hc_entry *t)
{
	uint32_t at = t->first, next;

	for (; t->cells; t->cells--) {
		next = c->cell_next[at];
		c->cell_next[at] = 0;
		hc_pool_put(&c->cell_pool, at);
		at = next - 1;
	}
}

static void cells_fill(struct hc_core *c, struct hc_entry *t, struct hc_str value)
{
	uint32_t *link = &t->first, done = 0, len, at;

	t->bytes = value.len;
	do {
		at = hc_pool_get(&c->cell_pool);
		hc_assert(at != HC_NONE); /* counted before */
		len = value.len - done < HC_CELL_BYTES ? value.len - done : HC_CELL_BYTES;
		if (len)
			memcpy(c->cells[at], value.p + done, len);
		/* the first is a number, the others are + 1 so that zero is the end */
		*link = t->cells ? at + 1 : at;
		link = &c->cell_next[at];
		done += len;
		t->cells++;
	} while (done < value.len);
}

/* The value in one piece, valid until the next use of the scratch buffer. */
static struct hc_str value_of(struct hc_core *c, const struct hc_entry *t)
{
	uint32_t at = t->first, done = 0, len;

	while (done < t->bytes) {
		len = t->bytes - done < HC_CELL_BYTES ? t->bytes - done : HC_CELL_BYTES;
		memcpy(c->scratch + done, c->cells[at], len);
		done += len;
		at = c->cell_next[at] - 1;
	}
	return (struct hc_str){(const char *)c->scratch, t->bytes};
}

/* ---- answers ---- */

static void send_done(struct hc_core *c, uint32_t node, uint64_t ticket, int code, uint64_t value,
		      const char *text)
{
	struct hc_m_exch_done m = {
		.ticket = ticket, .code = (uint16_t)code, .value = value, .text = hc_str(text)};

	hc_emit_send(c, node, &hc_desc_exch_done, &m);
}

static void send_got(struct hc_core *c, uint32_t node, uint64_t ticket, const struct hc_entry *t,
		     uint64_t known, bool whole)
{
	struct hc_m_exch_got m = {.ticket = ticket, .version = t->version, .bytes = t->bytes};

	if (known != t->version && (whole || t->bytes <= SMALL_BYTES))
		m.value = value_of(c, t);
	hc_emit_send(c, node, &hc_desc_exch_got, &m);
}

/* Room in the ring and for the action, also of a large value. */
static bool may_answer(const struct hc_core *c)
{
	return hc_emit_ring_holds(c, HCOMM_VALUE_BYTES + 512u) && hc_emit_room(c);
}

/* ---- waiters ---- */

static struct hc_waiter *waiter_new(struct hc_core *c, struct hc_exch *e, uint32_t node,
				    uint64_t ticket, enum hc_waiter_kind kind, uint64_t deadline)
{
	uint32_t n = hc_pool_get(&c->waiter_pool);
	struct hc_waiter *w;

	if (n == HC_NONE)
		return NULL;
	w = &c->waiters[n];
	*w = (struct hc_waiter){
		.ticket = ticket, .exch = number(c, e), .node = node, .kind = (uint8_t)kind};
	hc_index_add(&c->waiter_by_ticket, ticket, n);
	hc_list_push(&e->waiters, &c->waiter_links, n);
	hc_timers_set(&c->waiter_timers, n, deadline);
	return w;
}

static void fence_close(struct hc_core *c, struct hc_exch *e)
{
	if (e->calls != HC_NONE)
		hc_spans_put(&c->fence_spans, e->calls, e->order);
	e->calls = HC_NONE;
	e->came = 0;
}

/* The ranks of that call are not in the fence any more. */
static void fence_withdraw(struct hc_core *c, struct hc_exch *e, uint32_t waiter)
{
	uint32_t i;

	for (i = 0; e->calls != HC_NONE && i < e->nranks; i++) {
		if (c->fence_calls[e->calls + i] != waiter + 1)
			continue;
		c->fence_calls[e->calls + i] = 0;
		e->came--;
	}
	if (!e->came)
		fence_close(c, e);
}

/* Its answer is to go out. */
static void waiter_ready(struct hc_core *c, struct hc_exch *e, uint32_t n, int code)
{
	struct hc_waiter *w = &c->waiters[n];

	hc_timers_set(&c->waiter_timers, n, HC_NEVER);
	hc_index_del(&c->waiter_by_key, n);
	hc_list_del(&e->waiters, &c->waiter_links, n);
	hc_list_push(&c->waiters_ready, &c->waiter_links, n);
	e->ready++;
	w->ready = true;
	w->code = (uint16_t)code;
}

static void waiter_free(struct hc_core *c, uint32_t n)
{
	struct hc_waiter *w = &c->waiters[n];
	struct hc_exch *e = &c->exchs[w->exch];

	if (w->ready) {
		hc_list_del(&c->waiters_ready, &c->waiter_links, n);
		e->ready--;
	} else {
		if (w->kind == WAITER_FENCE)
			fence_withdraw(c, e, n);
		hc_list_del(&e->waiters, &c->waiter_links, n);
	}
	hc_timers_set(&c->waiter_timers, n, HC_NEVER);
	hc_index_del(&c->waiter_by_key, n);
	hc_index_del(&c->waiter_by_ticket, n);
	*w = (struct hc_waiter){0};
	hc_pool_put(&c->waiter_pool, n);
}

static void answer(struct hc_core *c, uint32_t n)
{
	const struct hc_waiter *w = &c->waiters[n];
	const struct hc_exch *e = &c->exchs[w->exch];
	const struct hc_entry *t = NULL;

	if (!w->code && w->kind == WAITER_GET && !e->over)
		t = entry_of(c, e, hc_str(w->key));
	if (t)
		send_got(c, w->node, w->ticket, t, w->known, w->whole);
	else if (!w->code && w->kind == WAITER_FENCE)
		send_done(c, w->node, w->ticket, 0, w->known, "");
	else
		send_done(c, w->node, w->ticket, w->code ? w->code : HC_E_GONE, 0, e->text);
	waiter_free(c, n);
}

static void not_there(const struct hc_waiter *w, char *text, size_t bytes)
{
	snprintf(text, bytes, "no rank has put the key %s", w->key);
}

static void ranks_missing(const struct hc_core *c, const struct hc_exch *e, char *text,
			  size_t bytes)
{
	size_t at = (size_t)snprintf(text, bytes, "fence #%llu: no word from rank",
				     (unsigned long long)e->fences + 1);
	uint32_t i;

	for (i = 0; i < e->nranks && at + 32 < bytes; i++)
		if (!c->fence_calls[e->calls + i])
			at += (size_t)snprintf(text + at, bytes - at, " %u", i);
	snprintf(text + at, bytes - at, " (%u of %u)", e->nranks - e->came, e->nranks);
}

void hc_exchange_timeout(struct hc_core *c, uint32_t n)
{
	const struct hc_waiter *w = &c->waiters[n];
	const struct hc_exch *e = &c->exchs[w->exch];
	char text[256];

	if (w->kind == WAITER_FENCE)
		ranks_missing(c, e, text, sizeof(text));
	else
		not_there(w, text, sizeof(text));
	send_done(c, w->node, w->ticket, w->brief ? HC_E_NOT_FOUND : HC_E_TIMEOUT, 0, text);
	waiter_free(c, n);
}

bool hc_exchange_work(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->waiters_ready), i;
	struct hc_exch *e;

	if (n != HC_NONE && may_answer(c)) {
		answer(c, n);
		return true;
	}
	n = hc_list_first(&c->exch_over);
	if (n == HC_NONE)
		return false;
	e = &c->exchs[n];
	for (i = 0; i < FREE_SLICE && e->entries.count; i++) {
		uint32_t t = hc_list_first(&e->entries);

		charge(c, e, -(int64_t)(ENTRY_BYTES + c->entries[t].cells * HC_CELL_BYTES));
		cells_free(c, &c->entries[t]);
		hc_index_del(&c->entry_by_key, t);
		hc_list_del(&e->entries, &c->entry_links, t);
		hc_pool_put(&c->entry_pool, t);
	}
	if (e->entries.count)
		return true;
	if (e->ready) /* they go first, as soon as there is room */
		return i > 0;
	hc_list_del(&c->exch_over, &c->exch_links, n);
	e->id = 0;
	hc_pool_put(&c->exch_pool, n);
	return true;
}

/* ---- the end ---- */

static void cancel(struct hc_core *c, struct hc_exch *e, bool fences, int code, const char *text)
{
	uint32_t n = hc_list_first(&e->waiters), next;

	hc_str_copy(hc_str(text), e->text, sizeof(e->text));
	fence_close(c, e);
	for (; n != HC_NONE; n = next) {
		next = hc_list_next(&c->waiter_links, n);
		if (!fences || c->waiters[n].kind == WAITER_FENCE)
			waiter_ready(c, e, n, code);
	}
}

void hc_exchange_cancel(struct hc_core *c, uint64_t id, bool fences, int code, const char *text)
{
	struct hc_exch *e = find(c, id);

	if (e)
		cancel(c, e, fences, code, text);
}

void hc_exchange_over(struct hc_core *c, uint64_t id, const char *text)
{
	struct hc_exch *e = find(c, id);

	if (!e)
		return;
	cancel(c, e, false, HC_E_GONE, text);
	e->over = true;
	hc_index_del(&c->exch_by_id, number(c, e));
	hc_list_push(&c->exch_over, &c->exch_links, number(c, e));
}

void hc_exchange_told(struct hc_core *c, const struct hc_part *p)
{
	struct hc_exch *e = find(c, p->id);
	uint32_t n = e ? hc_list_first(&e->waiters) : HC_NONE, next;

	if (n == HC_NONE || hc_sync_untold(c, p) != HC_NONE)
		return;
	for (; n != HC_NONE; n = next) {
		next = hc_list_next(&c->waiter_links, n);
		if (c->waiters[n].brief)
			hc_timers_set(&c->waiter_timers, n, c->now);
	}
}

/* ---- questions ---- */

/* The home that may be asked, or NULL with the outcome. `whole`: only while every rank is there. */
static struct hc_home *home_of(struct hc_core *c, uint64_t id, uint32_t epoch, bool whole,
			       int *code, char *text, size_t bytes)
{
	struct hc_home *h = hc_home_by_id(c, id);

	*code = HC_E_GONE;
	if (!h || h->epoch != epoch || h->state < HC_W_domain_state_ACTIVE ||
	    h->state > HC_W_domain_state_DRAINING) {
		snprintf(text, bytes, "the domain is gone, or in another epoch");
		return NULL;
	}
	if (whole && h->state == HC_W_domain_state_DRAINING) {
		snprintf(text, bytes, "%s", hc_home_cause(c, h));
		return NULL;
	}
	if (whole && (h->state == HC_W_domain_state_DAMAGED || h->lost)) {
		*code = HC_E_DAMAGED;
		snprintf(text, bytes, "%s", hc_home_cause(c, h));
		return NULL;
	}
	*code = 0;
	return h;
}

/* May `e` take so many cells more? */
static int may_take(const struct hc_core *c, const struct hc_exch *e, bool fresh, uint32_t more,
		    char *text, size_t bytes)
{
	const struct hc_pool *pool = &c->cell_pool;
	const uint32_t free_cells = pool->cap - pool->used;
	const uint32_t kept = hc_user_memory(c, e->uid) / HC_CELL_BYTES > pool->cap / 8 * 7
				      ? pool->cap / 8 /* the last eighth is for others */
				      : 0;

	if (more > free_cells || free_cells - more < kept ||
	    (fresh && c->entry_pool.used == c->entry_pool.cap)) {
		snprintf(text, bytes,
			 "the exchange of this node has room for %u KiB of values, which is taken",
			 pool->cap);
		return HC_E_LIMIT;
	}
	return hc_user_may_memory(
		c, e->uid, (uint64_t)more * HC_CELL_BYTES + (fresh ? ENTRY_BYTES : 0), text, bytes);
}

static void wake_getters(struct hc_core *c, struct hc_exch *e, struct hc_str key)
{
	uint32_t n = hc_index_find(&c->waiter_by_key, key_hash(c, e->id, key)), next;

	for (; n != HC_NONE; n = next) {
		next = hc_index_next(&c->waiter_by_key, n);
		if (c->waiters[n].exch == number(c, e) && hc_str_eq(hc_str(c->waiters[n].key), key))
			waiter_ready(c, e, n, 0);
	}
}

static uint32_t cells_for(uint32_t bytes)
{
	return bytes ? (bytes + HC_CELL_BYTES - 1) / HC_CELL_BYTES : 1;
}

static void store(struct hc_core *c, struct hc_exch *e, struct hc_entry *t,
		  const struct hc_m_exch_put *m, uint64_t version)
{
	const bool fresh = !t;
	uint32_t n, before = t ? t->cells : 0;

	if (fresh) {
		n = hc_pool_get(&c->entry_pool);
		hc_assert(n != HC_NONE);
		t = &c->entries[n];
		*t = (struct hc_entry){.exch = number(c, e)};
		hc_str_copy(m->key, t->key, sizeof(t->key));
		hc_index_add(&c->entry_by_key, key_hash(c, e->id, m->key), n);
		hc_list_push(&e->entries, &c->entry_links, n);
	}
	cells_free(c, t);
	cells_fill(c, t, m->value);
	t->version = version;
	charge(c, e,
	       ((int64_t)t->cells - before) * (int64_t)HC_CELL_BYTES +
		       (fresh ? (int64_t)ENTRY_BYTES : 0));
	wake_getters(c, e, m->key);
}

/* The version that a put gives; 0: what there is is newer. */
static uint64_t version_of(const struct hc_core *c, const struct hc_entry *t, uint64_t again)
{
	const uint64_t first = (uint64_t)c->self.start << 32 | 1;

	if (again)
		return t && t->version >= again ? 0 : again;
	return t && t->version >= first ? t->version + 1 : first;
}

void hc_exchange_on_put(struct hc_core *c, uint32_t node, const struct hc_m_exch_put *m)
{
	char text[HC_CAUSE_MAX];
	struct hc_exch *e = NULL;
	struct hc_entry *t = NULL;
	struct hc_home *h;
	uint64_t version = 0;
	uint32_t need = cells_for(m->value.len);
	int code;

	h = home_of(c, m->id, m->epoch, false, &code, text, sizeof(text));
	if (h && h->state == HC_W_domain_state_DAMAGED) {
		code = HC_E_DAMAGED;
		HC_TEXT(text, "%s", hc_home_cause(c, h));
	}
	if (!code && (!m->key.len || m->value.len > HCOMM_VALUE_BYTES || m->rank >= h->nranks)) {
		code = HC_E_INVALID;
		HC_TEXT(text, "no key, a value of %u bytes, or rank %u of %u", m->value.len,
			m->rank, h->nranks);
	}
	if (!code) {
		e = make(c, h);
		code = e ? 0 : HC_E_LIMIT;
		HC_TEXT(text, "too many domains are being taken down");
	}
	if (!code) {
		t = entry_of(c, e, m->key);
		version = version_of(c, t, m->version);
		if (version && (!t || need > t->cells))
			code = may_take(c, e, !t, need - (t ? t->cells : 0), text, sizeof(text));
	}
	if (!code && version)
		store(c, e, t, m, version);
	send_done(c, node, m->ticket, code,
		  version ? version
		  : t     ? t->version
			  : 0,
		  code ? text : "");
}

void hc_exchange_on_get(struct hc_core *c, uint32_t node, const struct hc_m_exch_get *m)
{
	const struct hc_part *p = hc_part_by_id(c, m->id);
	uint64_t until = m->timeout_ms ? c->now + m->timeout_ms * 1000000ull : c->now + BRIEF_NS;
	const struct hc_entry *t;
	char text[HC_CAUSE_MAX];
	struct hc_waiter *w;
	struct hc_exch *e = NULL;
	struct hc_home *h;
	int code;

	h = home_of(c, m->id, m->epoch, false, &code, text, sizeof(text));
	if (h)
		e = m->timeout_ms || find(c, m->id) ? make(c, h) : NULL;
	t = e ? entry_of(c, e, m->key) : NULL;
	if (t && (t->bytes <= SMALL_BYTES || m->whole != 1)) {
		send_got(c, node, m->ticket, t, m->known, false);
		return;
	}
	if (!t && !code && h->state == HC_W_domain_state_DAMAGED) {
		code = HC_E_DAMAGED;
		HC_TEXT(text, "%s", hc_home_cause(c, h));
	} else if (!t && !code && !m->timeout_ms) {
		code = p && hc_sync_untold(c, p) != HC_NONE ? 0 : HC_E_NOT_FOUND;
		HC_TEXT(text, "no rank has put the key %.*s", (int)m->key.len, m->key.p);
		if (!code && !e)
			e = make(c, h);
	}
	w = !code && e ? waiter_new(c, e, node, m->ticket, WAITER_GET, until) : NULL;
	if (!code && !w) {
		code = HC_E_LIMIT;
		HC_TEXT(text, "too many requests wait for a value");
	}
	if (code) {
		send_done(c, node, m->ticket, code, 0, text);
		return;
	}
	w->known = m->known;
	w->whole = m->whole == 1;
	w->brief = !m->timeout_ms;
	hc_str_copy(m->key, w->key, sizeof(w->key));
	hc_index_add(&c->waiter_by_key, key_hash(c, m->id, m->key), (uint32_t)(w - c->waiters));
	if (t) /* a long one goes out when there is room for it */
		waiter_ready(c, e, (uint32_t)(w - c->waiters), 0);
}

/* ---- the fence ---- */

/* Who is in it is told that it has ended, or (a lost answer) had ended. */
static void fence_over(struct hc_core *c, struct hc_exch *e, uint64_t fences)
{
	uint32_t n = hc_list_first(&e->waiters), next;

	e->fences = fences;
	fence_close(c, e);
	for (; n != HC_NONE; n = next) {
		next = hc_list_next(&c->waiter_links, n);
		if (c->waiters[n].kind == WAITER_FENCE)
			waiter_ready(c, e, n, 0);
	}
}

/* The ranks of a call are in the fence; one that was in it by an earlier call is in this one. */
static void fence_enter(struct hc_core *c, struct hc_exch *e, uint32_t n, struct hc_arr ranks)
{
	struct hc_m_rank r;
	uint32_t *call, old;

	while (hc_arr_next(&ranks, &hc_desc_rank, HC_PROTO_MAX, &r)) {
		call = &c->fence_calls[e->calls + r.rank];
		old = *call;
		if (!old)
			e->came++;
		*call = n + 1;
		if (!old || old == n + 1)
			continue;
		fence_withdraw(c, e, old - 1);
		HC_TEXT(e->text, "rank %u came to the fence again; that call is answered", r.rank);
		waiter_ready(c, e, old - 1, HC_E_IN_PROGRESS);
	}
}

static bool ranks_fit(const struct hc_home *h, struct hc_arr ranks)
{
	struct hc_m_rank r;

	if (!ranks.count)
		return false;
	while (hc_arr_next(&ranks, &hc_desc_rank, HC_PROTO_MAX, &r))
		if (r.rank >= h->nranks)
			return false;
	return true;
}

static bool fence_open(struct hc_core *c, struct hc_exch *e)
{
	if (e->calls != HC_NONE)
		return true;
	e->calls = hc_spans_get(&c->fence_spans, e->nranks, &e->order);
	if (e->calls != HC_NONE)
		memset(&c->fence_calls[e->calls], 0, e->nranks * sizeof(*c->fence_calls));
	return e->calls != HC_NONE;
}

void hc_exchange_on_fence(struct hc_core *c, uint32_t node, const struct hc_m_exch_fence *m)
{
	const uint64_t limit =
		m->timeout_ms ? m->timeout_ms * 1000000ull : c->set.connect_timeout_ns;
	char text[HC_CAUSE_MAX];
	struct hc_exch *e = NULL;
	struct hc_waiter *w = NULL;
	struct hc_home *h;
	uint64_t wanted;
	int code;

	h = home_of(c, m->id, m->epoch, true, &code, text, sizeof(text));
	if (h)
		e = make(c, h);
	if (e && m->number && m->number <= e->fences) {
		send_done(c, node, m->ticket, 0, m->number, "");
		return;
	}
	wanted = e ? e->fences + 1 : 0;
	if (!code && (!ranks_fit(h, m->ranks) || (m->number && m->number != wanted))) {
		code = HC_E_INVALID;
		HC_TEXT(text, "fence #%llu, or its ranks: the next one is #%llu, of %u ranks",
			(unsigned long long)m->number, (unsigned long long)wanted, h->nranks);
	}
	if (!code && e && fence_open(c, e))
		w = waiter_new(c, e, node, m->ticket, WAITER_FENCE, c->now + limit);
	if (!code && !w) {
		code = HC_E_LIMIT;
		HC_TEXT(text, "too many fences are under way");
	}
	if (code) {
		if (e && !e->came)
			fence_close(c, e);
		send_done(c, node, m->ticket, code, 0, text);
		return;
	}
	w->known = wanted;
	fence_enter(c, e, (uint32_t)(w - c->waiters), m->ranks);
	if (e->came == e->nranks)
		fence_over(c, e, wanted);
}

void hc_exchange_on_drop(struct hc_core *c, uint32_t node, const struct hc_m_exch_drop *m)
{
	uint32_t n = m->ticket ? hc_index_find(&c->waiter_by_ticket, m->ticket) : HC_NONE;

	/* tickets of several nodes may be the same */
	while (n != HC_NONE && c->waiters[n].node != node)
		n = hc_index_next(&c->waiter_by_ticket, n);
	if (n != HC_NONE)
		waiter_free(c, n);
}

void hc_exchange_on_back(struct hc_core *c, uint32_t node, const struct hc_m_exch_back *m)
{
	char text[HC_CAUSE_MAX];
	struct hc_exch *e = NULL;
	struct hc_home *h;
	int code;

	(void)node;
	h = home_of(c, m->id, m->epoch, false, &code, text, sizeof(text));
	if (h)
		e = make(c, h);
	if (e && m->fences > e->fences)
		fence_over(c, e, m->fences);
}
