/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a domain says of itself.
 *
 * While it lives, all of it stands in the shared record, and reading it asks nobody: the gate
 * is loaded before and after, and again if it changed. The cause is text: the writer makes `seq`
 * odd while it writes. A writer that died in the middle must not hold readers up, so after some
 * tries the text is left out rather than waited for. A record that holds another id says only
 * that ours has ended; why is then asked of the daemon, which keeps the reason for a while.
 */
#include "join.h"

#include <string.h>

#define TRIES 64

/* ---- from the record ---- */

static void copy_cause(const struct hc_page_record *r, char *out, size_t size)
{
	uint32_t seq;
	unsigned i;
	size_t at;

	for (i = 0; i < TRIES; i++) {
		seq = atomic_load_explicit(&r->seq, memory_order_acquire);
		/* each load before the second one of seq */
		for (at = 0; at < HC_CAUSE_BYTES && at < size; at++) {
			out[at] = __atomic_load_n(&r->cause[at], __ATOMIC_ACQUIRE);
			if (!out[at])
				break; /* usually the first: an active domain has no cause */
		}
		if (!(seq & 1) && atomic_load_explicit(&r->seq, memory_order_relaxed) == seq) {
			out[HC_CAUSE_BYTES - 1] = '\0';
			return;
		}
	}
	out[0] = '\0';
}

void hc_record_cause(const struct hc_page_record *r, uint64_t id, char *out, size_t size)
{
	copy_cause(r, out, size);
	if (atomic_load_explicit(&r->id, memory_order_acquire) != id)
		out[0] = '\0'; /* that of another domain */
}

/* False when the domain is no longer in its record. */
static bool from_record(const struct hc_domain *d, struct hcomm_status *s)
{
	const struct hc_page_record *r = d->ops.record;
	uint64_t gate, again;
	unsigned i = 0;

	do {
		gate = atomic_load_explicit(&r->gate, memory_order_acquire);
		s->number = atomic_load_explicit(&r->number, memory_order_relaxed);
		s->nranks = atomic_load_explicit(&r->nranks, memory_order_relaxed);
		s->epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
		copy_cause(r, s->cause, sizeof(s->cause));
		if (atomic_load_explicit(&r->id, memory_order_acquire) != d->id)
			return false;
		again = atomic_load_explicit(&r->gate, memory_order_acquire);
	} while (again != gate && ++i < TRIES);
	s->state = (enum hcomm_state)(gate & HC_GATE_STATE_MASK);
	s->arrived = s->nranks;
	return true;
}

/* ---- from the daemon ---- */

static void fill(struct hcomm_status *to, const struct hc_m_status_r *m, uint16_t version)
{
	struct hc_arr a = m->absent;
	struct hc_m_absent absent;

	to->id = m->id;
	to->epoch = m->epoch;
	to->state = (enum hcomm_state)m->state;
	to->number = m->number;
	to->nranks = m->nranks;
	to->arrived = m->arrived;
	hc_str_copy(m->name, to->name, sizeof(to->name));
	hc_str_copy(m->cause, to->cause, sizeof(to->cause));
	to->missing_count = 0;
	while (to->missing_count < 64 && hc_arr_next(&a, &hc_desc_absent, version, &absent))
		to->missing[to->missing_count++] = absent.rank;
}

static int ask(struct hcomm_session *s, uint64_t id, const char *name, struct hcomm_status *status)
{
	struct hc_m_status m = {.id = id, .name = hc_str(id ? NULL : name)};
	struct hc_request q = {&hc_desc_status, &m, -1, 0, 0};
	struct hc_m_status_r answer;
	struct hc_call c;
	uint32_t ms;
	int r = hc_timeout(s, HCOMM_DEFAULT, HC_REQUEST_MS, &ms, &q.deadline);

	if (r)
		return r;
	hc_call_init(&c, HC_MSG_status_r);
	r = hc_call_run(s, &c, &q);
	if (!r && hc_call_answer(&s->sess, &c, &hc_desc_status_r, &answer))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `status_r`");
	if (!r)
		fill(status, &answer, s->sess.version);
	hc_call_fini(&c);
	return r;
}

/* ---- the calls ---- */

static int check_out(const struct hcomm_status *status)
{
	if (!status || status->size < sizeof(status->size))
		return hc_refuse(HC_E_INVALID,
				 "status is NULL or has no size; wanted: set by HCOMM_INIT");
	return 0;
}

HC_EXPORT int hcomm_status_get(hcomm_domain domain, struct hcomm_status *status)
{
	struct hcomm_status full = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s;
	struct hc_domain *d;
	bool known = true;
	int r = check_out(status);

	if (!r)
		r = hc_domain_lock(domain, &d);
	if (r)
		return -r;
	s = d->session;
	full.id = d->id;
	full.rank = d->rank;
	full.nranks = d->nranks;
	full.local = !s;
	memcpy(full.name, d->name, sizeof(full.name));
	switch (d->phase) {
	case HC_PHASE_FREE:
	case HC_PHASE_FORMING: full.state = HCOMM_FORMING; break;
	case HC_PHASE_LIVE: known = from_record(d, &full); break;
	case HC_PHASE_FAILED: full.state = d->id ? HCOMM_DESTROYED : HCOMM_FAILED; break;
	}
	known = known && (d->phase != HC_PHASE_FAILED || !d->id);
	hc_domain_unlock(d);
	if (!known && s)
		r = ask(s, full.id, NULL, &full);
	if (known || !r)
		hc_give(status, &full, sizeof(full));
	return -r;
}

HC_EXPORT int hcomm_by_name(struct hcomm_session *session, uint64_t id, const char *name,
			    struct hcomm_status *status)
{
	struct hcomm_status full = HCOMM_INIT(struct hcomm_status);
	int r = hc_session_check(session);

	if (!r)
		r = check_out(status);
	if (!r && !id && (!name || !*name || strlen(name) > HC_NAME_MAX))
		r = hc_refuse(HC_E_INVALID,
			      "neither id nor name (at most %u bytes) says which domain",
			      HC_NAME_MAX);
	full.rank = HC_NONE;
	if (!r)
		r = ask(session, id, name, &full);
	if (!r)
		hc_give(status, &full, sizeof(full));
	return -r;
}

static int get_number(hcomm_domain domain, uint32_t *out, bool rank)
{
	struct hc_domain *d;
	int r = out ? hc_domain_lock(domain, &d)
		    : hc_refuse(HC_E_INVALID, "the result is NULL; wanted: where to put it");

	if (r)
		return -r;
	*out = rank ? d->rank : d->nranks;
	hc_domain_unlock(d);
	return 0;
}

HC_EXPORT int hcomm_rank(hcomm_domain domain, uint32_t *rank)
{
	return get_number(domain, rank, true);
}

HC_EXPORT int hcomm_nranks(hcomm_domain domain, uint32_t *nranks)
{
	return get_number(domain, nranks, false);
}
