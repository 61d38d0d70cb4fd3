/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a domain after it was joined, and domains made for others.
 *
 * Leaving, destroying and aborting are the daemon's work; the library sends the request and ends
 * the handle once the answer says that the rank is out, also when the daemon had to use force or
 * knew the domain no more. Only when it cannot be known (time-out, lost connection) the handle
 * stays, so that the caller can try again.
 *
 * A domain of one rank without a daemon has nobody to ask: leaving waits here for the references
 * that this process holds.
 */
#include "join.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define LOOK_NS 200000 /* at the references of a local domain */

/* ---- asking ---- */

/* Does a repeated request hear from this that it was carried out the first time? */
static bool was_done(const struct hc_desc *desc, int outcome)
{
	if (desc == &hc_desc_destroy)
		return outcome == HC_E_GONE || outcome == HC_E_NOT_FOUND;
	if (desc == &hc_desc_leave || desc == &hc_desc_abort)
		return outcome == HC_E_GONE || outcome == HC_E_NOT_FOUND ||
		       outcome == HC_E_PERMISSION;
	return desc == &hc_desc_add_device && outcome == HC_E_EXISTS;
}

/* A request that is answered by `done`. */
static int ask(struct hcomm_session *s, const struct hc_desc *desc, const void *msg,
	       uint64_t deadline, uint64_t *value)
{
	struct hc_request q = {desc, msg, -1, deadline, 0};
	struct hc_m_done done = {0};
	struct hc_call c;
	int r;

	/* a drain may last for an hour, but a daemon that is away is not waited for so long */
	if (deadline > hc_deadline(HC_DRAIN_MS / 2))
		q.connect_ms = HC_REQUEST_MS;
	hc_call_init(&c, HC_MSG_done);
	r = hc_call_run(s, &c, &q);
	if (c.repeats && was_done(desc, r))
		r = 0;
	else if (!r && hc_call_answer(&s->sess, &c, &hc_desc_done, &done))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `done`");
	if (!r && value)
		*value = done.value;
	hc_call_fini(&c);
	return r;
}

static int fire(struct hcomm_session *s, const struct hc_desc *desc, const void *msg,
		const char *what)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = hc_wait_ready(s, hc_deadline(HC_HELLO_MS));
	if (!r)
		r = hc_call_fire(s, HC_MSG_done, desc, msg);
	pthread_mutex_unlock(&s->lock);
	return r ? r : hc_refuse(HC_E_IN_PROGRESS, "%s goes on; an event ends it", what);
}

/* Is the rank out, whatever else there is to say? */
static bool is_over(int outcome)
{
	return !outcome || outcome == HC_E_FORCED || outcome == HC_E_GONE ||
	       outcome == HC_E_NOT_FOUND;
}

/* The daemon answers at its deadline; give that a moment. `ms` 0: drain_timeout_s of the daemon. */
static uint64_t drain_deadline(uint32_t ms)
{
	return hc_deadline(ms ? (uint64_t)ms + HC_SLACK_MS : HC_DRAIN_MS);
}

/* ---- leave ---- */

static int leave_alone(const struct hc_domain *d, hcomm_domain handle, int timeout_ms)
{
	uint64_t end = hc_deadline(timeout_ms < 0 ? HC_REQUEST_MS : (uint32_t)timeout_ms);
	struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t running;

	while ((running = hc_ops_running(&d->ops, 0)) && hc_now() < end)
		ppoll(NULL, 0, &pause, NULL);
	hc_domain_forget(handle);
	if (running)
		return hc_refuse(HC_E_FORCED, "left, but %llu operations had not ended",
				 (unsigned long long)running);
	return 0;
}

struct ranks {                           /* of one domain in this process */
	const struct hc_ops_seat *seats; /* they stay until the session closes */
	struct hc_ops_seat one;
	uint32_t count;
};

static int leave_all(struct hcomm_session *s, struct hc_m_leave *m, const struct ranks *ranks,
		     int timeout_ms)
{
	uint64_t deadline = drain_deadline(m->timeout_ms);
	int worst = 0, r;
	uint32_t i;

	for (i = 0; i < ranks->count; i++) {
		m->rank = ranks->seats[i].rank;
		if (timeout_ms == HCOMM_START)
			r = fire(s, &hc_desc_leave, m, "leaving");
		else
			r = ask(s, &hc_desc_leave, m, deadline, NULL);
		if (r && r != HC_E_IN_PROGRESS && !is_over(r))
			return r;
		if (r)
			worst = r;
	}
	return worst;
}

HC_EXPORT int hcomm_leave(hcomm_domain domain, int timeout_ms)
{
	struct hcomm_session *s;
	struct hc_m_leave m = {0};
	struct ranks ranks;
	struct hc_domain *d;
	uint64_t deadline;
	enum hc_phase phase;
	int r = hc_domain_lock(domain, &d);

	if (r)
		return -r;
	s = d->session;
	if (!s)
		return -leave_alone(d, domain, timeout_ms);
	r = hc_timeout(s, timeout_ms, HC_REQUEST_MS, &m.timeout_ms, &deadline);
	phase = d->phase;
	m.id = d->id;
	m.epoch = d->epoch;
	ranks = (struct ranks){d->ops.seats, d->ops.one, d->ops.nseats};
	if (ranks.count == 1)
		ranks.seats = &ranks.one;
	d->ending = true;
	hc_domain_unlock(d);
	if (!r && phase == HC_PHASE_LIVE)
		r = leave_all(s, &m, &ranks, timeout_ms);
	/* not joined yet: the answer, when it comes, is given back */
	if (is_over(r) || r == HC_E_IN_PROGRESS)
		hc_domain_forget(domain);
	return -r;
}

/* ---- destroy, abort ---- */

static int destroy(struct hcomm_session *s, uint64_t id, const char *name, int timeout_ms)
{
	struct hc_m_destroy m = {.id = id, .name = hc_str(id ? NULL : name)};
	uint64_t deadline;
	int r = hc_timeout(s, timeout_ms, HC_REQUEST_MS, &m.timeout_ms, &deadline);

	if (r)
		return r;
	if (timeout_ms == HCOMM_START)
		return fire(s, &hc_desc_destroy, &m, "destroying");
	return ask(s, &hc_desc_destroy, &m, drain_deadline(m.timeout_ms), NULL);
}

HC_EXPORT int hcomm_destroy(hcomm_domain domain, int timeout_ms)
{
	struct hcomm_session *s;
	struct hc_domain *d;
	enum hc_phase phase;
	uint64_t id;
	int r = hc_domain_lock(domain, &d);

	if (r)
		return -r;
	s = d->session;
	id = d->id;
	phase = d->phase;
	if (!s)
		return -leave_alone(d, domain, timeout_ms);
	d->ending = true;
	hc_domain_unlock(d);
	if (phase == HC_PHASE_LIVE)
		r = destroy(s, id, NULL, timeout_ms);
	if (is_over(r) || r == HC_E_IN_PROGRESS)
		hc_domain_forget(domain);
	return -r;
}

static int check_which(const struct hcomm_session *s, uint64_t id, const char *name)
{
	int r = hc_session_check(s);

	if (r)
		return r;
	if (!id && (!name || !*name))
		return hc_refuse(HC_E_INVALID, "neither id nor name says which domain");
	if (!id && strlen(name) > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID, "name has %zu bytes; wanted: at most %u",
				 strlen(name), HC_NAME_MAX);
	return 0;
}

HC_EXPORT int hcomm_destroy_named(struct hcomm_session *session, uint64_t id, const char *name,
				  int timeout_ms)
{
	int r = check_which(session, id, name);

	return -(r ? r : destroy(session, id, name, timeout_ms));
}

HC_EXPORT int hcomm_abort(hcomm_domain domain, const char *reason)
{
	struct hc_m_abort m = {.reason = hc_str(reason)};
	struct hcomm_session *s;
	struct hc_domain *d;
	enum hc_phase phase;
	int r = hc_domain_lock(domain, &d);

	if (r)
		return -r;
	s = d->session;
	phase = d->phase;
	m.id = d->id;
	if (phase == HC_PHASE_LIVE)
		m.rank = d->ops.seats[0].rank;
	if (!s) /* the record is ours */
		atomic_store(&d->local->record.gate, HC_GATE(0, d->tag, HCOMM_DAMAGED));
	hc_domain_unlock(d);
	if (!s)
		return 0;
	if (phase != HC_PHASE_LIVE) {
		hc_domain_forget(domain);
		return 0;
	}
	if (m.reason.len > HC_TEXT_MAX)
		m.reason.len = HC_TEXT_MAX;
	return -ask(s, &hc_desc_abort, &m, hc_deadline(HC_REQUEST_MS), NULL);
}

/* ---- way 3: for others ---- */

HC_EXPORT int hcomm_create(struct hcomm_session *session, uint32_t nranks,
			   const struct hcomm_config *config, uint64_t *id)
{
	struct hc_m_create m = {.nranks = nranks};
	struct hc_wishes w;
	int r = hc_session_check(session);

	if (!r && (!id || !nranks))
		r = hc_refuse(HC_E_INVALID, "id is NULL, or nranks is 0; nranks is %u", nranks);
	if (!r)
		r = hc_wishes(config, &w);
	if (r)
		return -r;
	m.name = w.name;
	m.priority = w.priority;
	m.weight = w.weight;
	HC_WISH_CHANNELS(&m, &w);
	return -ask(session, &hc_desc_create, &m, hc_deadline(HC_REQUEST_MS), id);
}

HC_EXPORT int hcomm_add_device(struct hcomm_session *session, uint64_t id, uint32_t rank,
			       uint32_t device)
{
	struct hc_m_add_device m = {.id = id, .rank = rank, .device = device};
	int r = hc_session_check(session);

	if (!r && !id)
		r = hc_refuse(HC_E_INVALID, "id is 0; wanted: that of hcomm_create");
	return -(r ? r : ask(session, &hc_desc_add_device, &m, hc_deadline(HC_REQUEST_MS), NULL));
}

HC_EXPORT int hcomm_activate(struct hcomm_session *session, uint64_t id, int timeout_ms)
{
	struct hc_m_activate m = {.id = id};
	uint64_t deadline;
	int r = hc_session_check(session);

	if (!r && !id)
		r = hc_refuse(HC_E_INVALID, "id is 0; wanted: that of hcomm_create");
	if (!r)
		r = hc_timeout(session, timeout_ms, session->connect_timeout_ms, &m.timeout_ms,
			       &deadline);
	if (r)
		return -r;
	if (timeout_ms == HCOMM_START)
		return -fire(session, &hc_desc_activate, &m, "activating");
	return -ask(session, &hc_desc_activate, &m, deadline + HC_SLACK_MS * HC_MS, NULL);
}
