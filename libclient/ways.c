/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways into a domain, but for the rank table (table.c): root info, all local devices, a
 * created domain, a part of another one.
 *
 * What can be seen to be wrong here is refused here, with argument and value; the daemon judges
 * the rest. A root info opens with the length of the daemon's block, so that the message is as
 * long as the block and not as the 4,108 bytes that the application ships.
 *
 * One rank alone needs nobody: without a session it gets a record and a block in the memory of
 * this process, and operations count there as anywhere else.
 *
 * A split is two requests: the first gathers the colours, the answer says who belongs together,
 * and the second is that of a sub-domain. With HCOMM_START the second is sent by whoever reads
 * the answer to the first. The first says which split of the domain it is (handles.c): the one
 * after the last that was answered, or refused as over. One that failed in another way is tried
 * again by the next call, under its number: the others may have their groups with this rank in
 * them, and it gets the same.
 */
#include "join.h"

#include <stdlib.h>
#include <string.h>

#define ROOT_HEAD   2u /* length of the block */
#define LOCAL_TAG   1u
#define RANKS_MAX   8192u
#define DEVICES_MAX 1024u

/* ---- way 1: root info ---- */

static int put_root(const struct hc_call *c, const struct hcomm_session *s,
		    struct hcomm_root_info *info)
{
	struct hc_m_root_info_r m;

	if (hc_call_answer(&s->sess, c, &hc_desc_root_info_r, &m) || !m.info.len ||
	    m.info.len > HCOMM_ROOT_INFO_BYTES - ROOT_HEAD)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave a root info that has no place in %u bytes",
				 HCOMM_ROOT_INFO_BYTES);
	memset(info, 0, sizeof(*info));
	info->bytes[0] = (uint8_t)(m.info.len >> 8);
	info->bytes[1] = (uint8_t)m.info.len;
	memcpy(info->bytes + ROOT_HEAD, m.info.p, m.info.len);
	return 0;
}

HC_EXPORT int hcomm_root_info(struct hcomm_session *session, uint32_t nranks,
			      const struct hcomm_config *config, struct hcomm_root_info *info)
{
	struct hc_m_root_info m = {.nranks = nranks};
	struct hc_request q = {&hc_desc_root_info, &m, -1, 0, 0};
	struct hc_wishes w;
	struct hc_call c;
	uint32_t ms;
	int r = hc_session_check(session);

	if (!r && !info)
		r = hc_refuse(HC_E_INVALID, "info is NULL; wanted: where to put it");
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_timeout(session, HCOMM_DEFAULT, HC_REQUEST_MS, &ms, &q.deadline);
	if (r)
		return -r;
	m.name = w.name;
	hc_call_init(&c, HC_MSG_root_info_r);
	r = hc_call_run(session, &c, &q);
	if (!r)
		r = put_root(&c, session, info);
	hc_call_fini(&c);
	return -r;
}

/* ---- one rank alone ---- */

static void never(struct hc_ops_domain *d, void *context)
{
	(void)d;
	(void)context; /* nobody drains a domain of this process alone, nobody restarts */
}
static const struct hc_ops_hooks local_hooks = {.wake = never, .reattach = never};

static int join_alone(uint32_t rank, const struct hc_wishes *w, hcomm_domain *domain)
{
	static _Atomic uint64_t ids;
	struct hc_ops_seat seat = {.rank = rank};
	struct hc_domain *d;
	uint64_t stamp;
	int r = hc_process_enter(&stamp);

	if (r)
		return r;
	r = hc_domain_new(NULL, &d);
	if (!r && !d->local) {
		r = hc_local_map(&d->local);
		if (r)
			hc_domain_free(d);
	}
	if (r) {
		hc_process_leave(stamp);
		return r;
	}
	memset(d->local, 0, sizeof(*d->local));
	d->stamp = stamp;
	d->id = atomic_fetch_add(&ids, 1) + 1;
	d->rank = rank;
	d->nranks = d->epoch = 1;
	d->tag = LOCAL_TAG;
	hc_str_copy(w->name, d->name, sizeof(d->name));
	atomic_store(&d->local->record.id, d->id);
	atomic_store(&d->local->record.nranks, 1);
	atomic_store(&d->local->record.epoch, 1);
	atomic_store(&d->local->record.gate, HC_GATE(0, LOCAL_TAG, HCOMM_ACTIVE));
	seat.block = &d->local->block;
	hc_ops_attach(&d->ops, d->handle, d->id, 0, d->tag, &d->local->record, &seat, 1, true,
		      &local_hooks);
	d->phase = HC_PHASE_LIVE;
	*domain = d->handle;
	return 0;
}

/* ---- joining by root info ---- */

static int check_rank(uint32_t nranks, uint32_t rank, const hcomm_domain *domain)
{
	if (!domain)
		return hc_refuse(HC_E_INVALID, "domain is NULL; wanted: where to put the handle");
	if (!nranks)
		return hc_refuse(HC_E_INVALID, "nranks is 0; wanted: 1 or more");
	if (rank >= nranks)
		return hc_refuse(HC_E_INVALID, "rank is %u of %u ranks; wanted: 0 to %u", rank,
				 nranks, nranks - 1);
	return 0;
}

static int get_root(const struct hcomm_root_info *info, struct hc_str *block)
{
	uint32_t len;

	if (!info)
		return hc_refuse(HC_E_INVALID, "info is NULL; wanted: the root info of rank 0");
	len = (uint32_t)info->bytes[0] << 8 | info->bytes[1];
	if (!len || len > HCOMM_ROOT_INFO_BYTES - ROOT_HEAD)
		return hc_refuse(
			HC_E_INVALID,
			"the root info says that it has %u bytes; wanted: the %u bytes that "
			"hcomm_root_info gave, as they were",
			len, HCOMM_ROOT_INFO_BYTES);
	*block = (struct hc_str){(const char *)info->bytes + ROOT_HEAD, len};
	return 0;
}

static int join_root(struct hcomm_session *s, const struct hc_m_join_root *base, int timeout_ms,
		     hcomm_domain *domain)
{
	struct hc_m_join_root m = *base;
	struct hc_join j = {.desc = &hc_desc_join_root,
			    .msg = &m,
			    .pass = -1,
			    .rank = m.rank,
			    .nranks = m.nranks,
			    .timeout_ms = timeout_ms};
	int r = hc_session_check(s);

	if (!r)
		r = hc_timeout(s, timeout_ms, s->connect_timeout_ms, &m.timeout_ms, &j.deadline);
	return r ? r : hc_join_run(s, &j, domain);
}

HC_EXPORT int hcomm_join(struct hcomm_session *session, const struct hcomm_root_info *info,
			 uint32_t nranks, uint32_t rank, uint32_t device,
			 const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain)
{
	struct hc_m_join_root m = {.nranks = nranks, .rank = rank, .device = device};
	struct hc_wishes w;
	int r = check_rank(nranks, rank, domain);

	if (r)
		return -r;
	*domain = 0;
	r = hc_wishes(config, &w);
	if (!r && !session && nranks == 1)
		return -join_alone(rank, &w, domain);
	if (!r)
		r = get_root(info, &m.info);
	if (r)
		return -r;
	m.shared = w.shared;
	m.priority = w.priority;
	m.weight = w.weight;
	HC_WISH_CHANNELS(&m, &w);
	return -join_root(session, &m, timeout_ms, domain);
}

/* ---- way 5: all local devices ---- */

static int put_devices(const uint32_t *devices, uint32_t count, uint8_t *buf, size_t cap,
		       struct hc_arr *a)
{
	struct hc_m_device d;
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < count; i++) {
		d.index = devices[i];
		r = hc_arr_put(a, buf, cap, &hc_desc_device, HC_PROTO_MAX, &d);
	}
	return r ? hc_refuse(r, "the list of %u devices does not fit into a request", count) : 0;
}

HC_EXPORT int hcomm_join_all_local(struct hcomm_session *session, const uint32_t *devices,
				   uint32_t count, const struct hcomm_config *config,
				   int timeout_ms, hcomm_domain *domain)
{
	uint8_t list[DEVICES_MAX * 4];
	struct hc_m_join_local m = {0};
	struct hc_join j = {.desc = &hc_desc_join_local,
			    .msg = &m,
			    .pass = -1,
			    .rank = HC_NONE,
			    .nranks = count,
			    .timeout_ms = timeout_ms};
	struct hc_wishes w;
	int r = hc_session_check(session);

	if (!r && (!domain || (count && !devices)))
		r = hc_refuse(HC_E_INVALID, "%s is NULL", domain ? "devices" : "domain");
	if (!r && count > DEVICES_MAX)
		r = hc_refuse(HC_E_INVALID, "count is %u; wanted: at most %u", count, DEVICES_MAX);
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_timeout(session, timeout_ms, session->connect_timeout_ms, &m.timeout_ms,
			       &j.deadline);
	if (!r)
		r = put_devices(devices, count, list, sizeof(list), &m.devices);
	if (r)
		return -r;
	*domain = 0;
	m.name = w.name;
	m.shared = w.shared;
	m.priority = w.priority;
	m.weight = w.weight;
	HC_WISH_CHANNELS(&m, &w);
	return -hc_join_run(session, &j, domain);
}

/* ---- way 3: a domain that an agent made ---- */

/* 16 hexadecimal digits are an id. */
static bool is_id(const char *name, uint64_t *id)
{
	size_t n = strspn(name, "0123456789abcdefABCDEF");

	if (n != 16 || name[n])
		return false;
	*id = strtoull(name, NULL, 16);
	return *id != 0;
}

HC_EXPORT int hcomm_attach(struct hcomm_session *session, const char *name, uint32_t rank,
			   const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain)
{
	struct hc_m_attach m = {.rank = rank, .block = HC_NONE};
	struct hc_join j = {.desc = &hc_desc_attach,
			    .msg = &m,
			    .pass = -1,
			    .rank = rank,
			    .timeout_ms = timeout_ms};
	struct hc_wishes w;
	uint32_t ms;
	int r = hc_session_check(session);

	if (!r && !domain)
		r = hc_refuse(HC_E_INVALID, "domain is NULL; wanted: where to put the handle");
	if (!r && (!name || !*name || strlen(name) > HC_NAME_MAX))
		r = hc_refuse(HC_E_INVALID,
			      "name is %s; wanted: the name or id of a domain, at most %u "
			      "bytes",
			      name && *name ? "too long" : "empty", HC_NAME_MAX);
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_wishes_no_channels(&w);
	if (!r)
		r = hc_timeout(session, timeout_ms, session->connect_timeout_ms, &ms, &j.deadline);
	if (r)
		return -r;
	*domain = 0;
	if (!is_id(name, &m.id))
		m.name = hc_str(name);
	return -hc_join_run(session, &j, domain);
}

/* ---- way 4: part of another domain ---- */

int hc_parent_get(hcomm_domain handle, bool several, struct hc_parent *p)
{
	struct hc_domain *d;
	int r = hc_domain_lock(handle, &d);

	if (r)
		return r;
	*p = (struct hc_parent){d->session, d->id, d->epoch, d->rank, d->nranks, d->ops.nseats};
	if (d->phase == HC_PHASE_FORMING)
		r = hc_refuse(HC_E_IN_PROGRESS, "the domain is still forming");
	else if (d->phase == HC_PHASE_FAILED)
		r = hc_refuse(d->error, "the domain did not form, or has ended");
	else if (!d->session)
		r = hc_refuse(HC_E_NOT_SUPPORTED,
			      "a domain of one rank without hcommd has no parts");
	else if (d->ops.nseats > 1 && !several)
		r = hc_refuse(HC_E_NOT_SUPPORTED,
			      "a domain that this process joined with several ranks is split by "
			      "hcomm_batch");
	hc_domain_unlock(d);
	return r;
}

static int put_ranks(const uint32_t *ranks, uint32_t count, uint32_t nranks, struct hc_arr *a,
		     uint8_t **buf)
{
	struct hc_m_rank row;
	uint32_t i;
	int r = 0;

	*buf = malloc(count * 4u);
	if (!*buf)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for a list of %u ranks", count);
	for (i = 0; !r && i < count; i++) {
		row.rank = ranks[i];
		if (row.rank >= nranks)
			r = hc_refuse(HC_E_INVALID,
				      "ranks[%u] is %u; wanted: a rank of the parent, 0 to %u", i,
				      row.rank, nranks - 1);
		else
			r = hc_arr_put(a, *buf, count * 4u, &hc_desc_rank, HC_PROTO_MAX, &row);
	}
	if (!r)
		return 0;
	free(*buf);
	*buf = NULL;
	return r;
}

static struct hc_m_sub sub_msg(const struct hc_parent *p, struct hc_str name, uint32_t ms)
{
	return (struct hc_m_sub){.parent = p->id,
				 .epoch = p->epoch,
				 .parent_rank = p->rank,
				 .name = name,
				 .timeout_ms = ms};
}

static int join_sub(const struct hc_parent *p, const struct hc_m_sub *m, int timeout_ms,
		    uint64_t deadline, hcomm_domain *domain)
{
	struct hc_join j = {.desc = &hc_desc_sub,
			    .msg = m,
			    .pass = -1,
			    .rank = HC_NONE,
			    .nranks = m->ranks.count,
			    .timeout_ms = timeout_ms,
			    .deadline = deadline};

	return hc_join_run(p->session, &j, domain);
}

HC_EXPORT int hcomm_sub(hcomm_domain parent, const uint32_t *ranks, uint32_t count, uint64_t sub_id,
			const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain)
{
	struct hc_arr members = {0};
	struct hc_m_sub m;
	struct hc_wishes w;
	struct hc_parent p;
	uint8_t *list = NULL;
	uint64_t deadline;
	uint32_t ms;
	int r = 0;

	if (!domain || !ranks || !count || count > RANKS_MAX)
		r = hc_refuse(HC_E_INVALID,
			      "domain or ranks is NULL, or count is %u; wanted: 1 to %u", count,
			      RANKS_MAX);
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_wishes_no_channels(&w);
	if (!r)
		r = hc_parent_get(parent, false, &p);
	if (!r)
		r = hc_timeout(p.session, timeout_ms, p.session->connect_timeout_ms, &ms,
			       &deadline);
	if (!r)
		r = put_ranks(ranks, count, p.nranks, &members, &list);
	if (r)
		return -r;
	*domain = 0;
	m = sub_msg(&p, w.name, ms);
	m.sub_id = sub_id;
	m.ranks = members;
	r = join_sub(&p, &m, timeout_ms, deadline, domain);
	free(list);
	return -r;
}

/* ---- split ---- */

struct split { /* started with HCOMM_START */
	struct hc_call call;
	hcomm_domain handle;
	struct hc_m_sub sub;
	uint32_t number; /* of the split */
	bool second;
	char name[HC_NAME_MAX + 1];
};

static struct hc_m_split split_msg(const struct hc_parent *p, int32_t color, int32_t key,
				   uint32_t ms)
{
	return (struct hc_m_split){.parent = p->id,
				   .epoch = p->epoch,
				   .parent_rank = p->rank,
				   .color = color,
				   .key = key,
				   .timeout_ms = ms};
}

/* Its number when that split is decided for this rank: answered, or refused as over for the others.
 */
static uint32_t over(uint32_t number, int outcome)
{
	return !outcome || outcome == HC_E_MISMATCH ? number : 0;
}

/* The second request, or the end. True when it was sent. */
static bool go_on(struct hcomm_session *s, struct split *w)
{
	struct hc_m_split_r m;
	struct hc_request q = {&hc_desc_sub, &w->sub, -1, 0, 0};
	uint8_t *body;

	if (w->second || w->call.outcome ||
	    hc_call_answer(&s->sess, &w->call, &hc_desc_split_r, &m) || !m.ranks.count)
		return false;
	/* the list points into the answer, which has to live until it is sent */
	body = w->call.heap;
	w->call.heap = NULL;
	w->sub.sub_id = m.sub_id;
	w->sub.ranks = m.ranks;
	w->second = true;
	w->call.want = HC_MSG_joined;
	w->call.body = NULL;
	w->call.outcome = hc_call_start(s, &w->call, &q);
	free(body);
	return !w->call.outcome;
}

/* No group for this rank: the split has ended well, and the handle with it. */
static bool in_none(struct hcomm_session *s, const struct split *w)
{
	struct hc_m_split_r m;

	return !w->second && !w->call.outcome &&
	       !hc_call_answer(&s->sess, &w->call, &hc_desc_split_r, &m) && !m.ranks.count;
}

static void finish_split(struct hcomm_session *s, struct hc_call *c)
{
	struct split *w = (struct split *)(void *)c; /* its first member */

	if (!w->second)
		hc_split_leave(w->sub.parent, w->sub.parent_rank, w->handle,
			       s ? over(w->number, c->outcome) : 0);
	if (s && go_on(s, w))
		return;
	if (s && in_none(s, w))
		hc_join_none(s, w->handle, "this rank is in no group of the split");
	else if (s)
		hc_join_finish(s, w->handle, c);
	hc_call_fini(c);
	free(w);
}

static int start_split(const struct hc_parent *p, const struct hc_m_split *m,
		       const struct hc_wishes *wish, struct hc_domain *d)
{
	struct hc_request q = {&hc_desc_split, m, -1, 0, 0};
	struct split *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the request");
	hc_call_init(&w->call, HC_MSG_split_r);
	w->call.finish = finish_split;
	w->call.until = hc_join_until(p->session);
	w->handle = d->handle;
	hc_str_copy(wish->name, w->name, sizeof(w->name));
	w->sub = sub_msg(p, hc_str(w->name), m->timeout_ms);
	w->number = (uint32_t)m->number;
	r = hc_call_start(p->session, &w->call, &q);
	if (r) {
		hc_call_fini(&w->call);
		free(w);
		return r;
	}
	return hc_refuse(HC_E_IN_PROGRESS, "the split goes on; an event ends it");
}

static int count_and_start(const struct hc_parent *p, struct hc_m_split *m,
			   const struct hc_wishes *wish, uint64_t deadline, struct hc_domain *d)
{
	uint32_t number;
	int r = hc_split_enter(p->id, p->rank, d->handle, &number);

	if (r)
		return r;
	m->number = number;
	r = start_split(p, m, wish, d);
	if (r == HC_E_PEER_CLOSED && !hc_wait_ready(p->session, deadline))
		r = start_split(p, m, wish, d); /* it was lost before, unnoticed */
	if (r != HC_E_IN_PROGRESS)
		hc_split_leave(p->id, p->rank, d->handle, 0);
	return r;
}

static int split_later(const struct hc_parent *p, struct hc_m_split *m,
		       const struct hc_wishes *wish, uint64_t deadline, hcomm_domain *domain)
{
	struct hc_domain *d;
	int r;

	pthread_mutex_lock(&p->session->lock);
	r = hc_wait_ready(p->session, deadline);
	if (!r)
		r = hc_domain_new(p->session, &d);
	if (!r) {
		r = count_and_start(p, m, wish, deadline, d);
		if (r == HC_E_IN_PROGRESS)
			*domain = d->handle;
		else
			hc_domain_free(d);
	}
	pthread_mutex_unlock(&p->session->lock);
	return r;
}

static int split_now(const struct hc_parent *p, struct hc_m_split *m, const struct hc_wishes *wish,
		     int timeout_ms, uint64_t deadline, hcomm_domain *domain)
{
	struct hc_request q = {&hc_desc_split, m, -1, deadline, 0};
	struct hc_m_sub sub = sub_msg(p, wish->name, m->timeout_ms);
	struct hc_m_split_r group;
	uint32_t number;
	struct hc_call c;
	int r = hc_split_enter(p->id, p->rank, HC_SPLIT_WAITS, &number);

	if (r)
		return r;
	m->number = number;
	hc_call_init(&c, HC_MSG_split_r);
	hc_join_limit(p->session, timeout_ms, &q);
	r = hc_call_run(p->session, &c, &q);
	hc_split_leave(p->id, p->rank, HC_SPLIT_WAITS, over(number, r));
	if (!r && hc_call_answer(&p->session->sess, &c, &hc_desc_split_r, &group))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `split_r`");
	/* an empty group: this rank is in none, which is no failure */
	if (!r && group.ranks.count) {
		sub.sub_id = group.sub_id;
		sub.ranks = group.ranks;
		r = join_sub(p, &sub, timeout_ms, deadline, domain);
	}
	hc_call_fini(&c);
	return r;
}

HC_EXPORT int hcomm_split(hcomm_domain parent, int32_t color, int32_t key,
			  const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain)
{
	struct hc_wishes w;
	struct hc_m_split m;
	struct hc_parent p;
	uint64_t deadline;
	uint32_t ms;
	int r = 0;

	if (!domain)
		r = hc_refuse(HC_E_INVALID, "domain is NULL; wanted: where to put the handle");
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_wishes_no_channels(&w);
	if (!r)
		r = hc_parent_get(parent, false, &p);
	if (!r)
		r = hc_timeout(p.session, timeout_ms, p.session->connect_timeout_ms, &ms,
			       &deadline);
	if (r)
		return -r;
	*domain = 0;
	m = split_msg(&p, color, key, ms);
	if (timeout_ms == HCOMM_START)
		return -split_later(&p, &m, &w, deadline, domain);
	return -split_now(&p, &m, &w, timeout_ms, deadline, domain);
}
