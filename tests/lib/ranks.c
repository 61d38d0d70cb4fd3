/* SPDX-License-Identifier: Apache-2.0 */
/* Rank processes under orders; see ranks.h. */
#include "ranks.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ANSWER_MS = 30000, HEARD_MAX = 64 };

struct heard {
	uint64_t at_ns, id;
	uint32_t code, rank, pid, state; /* code 0: was asked for */
	int error;
	char node[128], text[HCOMM_TEXT_BYTES];
};

struct me {
	struct hcomm_session *session;
	hcomm_domain domain[HC_RANK_SEATS];
	uint32_t nranks[HC_RANK_SEATS];
	struct hcomm_op op[HC_RANK_SEATS];
	uint64_t *count;
	struct hc_order order;
	struct hc_answer answer;
	struct heard heard[HEARD_MAX];
	unsigned nheard;
};

/* ---- the child ---- */

/* Events are kept until they are asked for; of too many the oldest go. */
static void on_event(const struct hcomm_event *e, void *context)
{
	struct me *me = context;
	struct heard *h = &me->heard[me->nheard % HEARD_MAX];

	me->nheard++;
	*h = (struct heard){.at_ns = hc_now_ns(), .code = e->code};
	h->rank = e->rank;
	h->pid = e->pid;
	h->id = e->id;
	h->state = e->state;
	h->error = e->error;
	snprintf(h->node, sizeof(h->node), "%s", e->node);
	snprintf(h->text, sizeof(h->text), "%s", e->text);
}

static struct heard *find_heard(struct me *me, uint32_t code)
{
	unsigned i = me->nheard > HEARD_MAX ? me->nheard - HEARD_MAX : 0;

	for (; i < me->nheard; i++) {
		struct heard *h = &me->heard[i % HEARD_MAX];

		if (h->code && (!code || h->code == code))
			return h;
	}
	return NULL;
}

static void tell_heard(struct hc_answer *a, struct heard *h)
{
	a->end_ns = h->at_ns;
	a->code = h->code;
	a->rank = h->rank;
	a->pid = h->pid;
	a->id = h->id;
	a->state = h->state;
	memcpy(a->node, h->node, sizeof(a->node));
	memcpy(a->text, h->text, sizeof(a->text));
	h->code = 0; /* taken */
}

static int wait_event(struct me *me)
{
	uint64_t end = hc_now_ms() + hc_patience(ANSWER_MS);
	struct heard *h;
	int r;

	while (!(h = find_heard(me, me->order.code))) {
		r = hc_now_ms() < end ? hcomm_dispatch(me->session, 100) : HCOMM_E_TIMEOUT;
		/* without a daemon a host goes on asking */
		if (r < 0 && r != HCOMM_E_PEER_CLOSED && r != HCOMM_E_NO_DAEMON)
			return r;
	}
	r = h->error;
	tell_heard(&me->answer, h);
	return r;
}

static int dispatch_for(struct me *me)
{
	int r = hcomm_dispatch(me->session, me->order.timeout_ms);

	return r < 0 ? r : 0;
}

static void fill_seat(struct me *me, hcomm_domain domain)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct hc_answer *a = &me->answer;

	if (!domain || hcomm_status_get(domain, &s))
		return;
	a->id = s.id;
	a->state = s.state;
	a->rank = s.rank;
	a->nranks = s.nranks;
	a->epoch = s.epoch;
	a->missing_count = s.missing_count;
	memcpy(a->missing, s.missing, sizeof(a->missing));
	snprintf(a->name, sizeof(a->name), "%s", s.name);
}

static int status(struct me *me, hcomm_domain domain)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	int r = hcomm_status_get(domain, &s);

	fill_seat(me, domain);
	if (!r)
		snprintf(me->answer.text, sizeof(me->answer.text), "%s", s.cause);
	return r;
}

static int join(struct me *me, hcomm_domain *domain)
{
	const struct hc_order *o = &me->order;
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	int r = HCOMM_E_INVALID;

	c.name = o->name[0] ? o->name : NULL;
	c.server = o->server[0] ? o->server : NULL;
	c.channels = o->channels;
	if (o->what == HC_DO_JOIN)
		r = hcomm_join(me->session, &o->info, o->nranks, o->rank, o->device,
			       o->channels ? &c : NULL, o->timeout_ms, domain);
	else if (o->what == HC_DO_JOIN_TABLE)
		r = hcomm_join_table(me->session, o->text, o->rank, &c, o->timeout_ms, domain);
	else if (o->what == HC_DO_ATTACH)
		r = hcomm_attach(me->session, o->name, o->rank, NULL, o->timeout_ms, domain);
	else if (o->what == HC_DO_SPLIT)
		r = hcomm_split(me->domain[o->parent], o->color, o->key, NULL, o->timeout_ms,
				domain);
	else if (o->what == HC_DO_SUB)
		r = hcomm_sub(me->domain[o->parent], o->ranks, o->nranks, o->sub_id, &c,
			      o->timeout_ms, domain);
	me->answer.end_ns = hc_now_ns();
	if (!r)
		fill_seat(me, *domain);
	return r;
}

/* Its domains last as long as this process. */
static int batch(struct me *me)
{
	const struct hc_order *o = &me->order;
	struct hcomm_batch_item *items = calloc(o->count, sizeof(*items));
	uint32_t i;
	int r;

	hc_want(items);
	for (i = 0; i < o->count; i++) {
		items[i] = (struct hcomm_batch_item)HCOMM_INIT(struct hcomm_batch_item);
		items[i].ranks = o->ranks;
		items[i].count = o->nranks;
		items[i].sub_id = o->sub_id + i;
	}
	r = hcomm_batch(me->domain[o->parent], items, o->count, o->timeout_ms);
	me->answer.end_ns = hc_now_ns();
	for (i = 0; i < o->count; i++)
		me->answer.made += !items[i].result && items[i].domain;
	free(items);
	return r;
}

static int carry_out(struct me *me)
{
	const struct hc_order *o = &me->order;
	hcomm_domain *d = &me->domain[o->seat];

	switch (o->what) {
	case HC_DO_JOIN:
	case HC_DO_JOIN_TABLE:
	case HC_DO_ATTACH:
	case HC_DO_SPLIT:
	case HC_DO_SUB: return join(me, d);
	case HC_DO_BATCH: return batch(me);
	case HC_DO_BEGIN:
		return hcomm_op_begin(*d, (enum hcomm_op_kind)o->kind, 4096, HCOMM_OP_NOWAIT,
				      &me->op[o->seat]);
	case HC_DO_END: return hcomm_op_end(&me->op[o->seat]);
	case HC_DO_LEAVE: return hcomm_leave(*d, o->timeout_ms);
	case HC_DO_DESTROY: return hcomm_destroy(*d, o->timeout_ms);
	case HC_DO_ABORT: return hcomm_abort(*d, o->text);
	case HC_DO_FENCE: return hcomm_fence(*d, o->timeout_ms);
	case HC_DO_STATUS: return status(me, *d);
	case HC_DO_EVENT: return wait_event(me);
	case HC_DO_DISPATCH: return dispatch_for(me);
	case HC_DO_PING: return hcomm_ping(me->session, o->timeout_ms);
	case HC_DO_RUN:
	case HC_DO_STOP:
	case HC_DO_QUIT: return 0;
	}
	return HCOMM_E_INVALID;
}

static void obey(struct me *me, int out)
{
	struct hc_answer *a = &me->answer;
	int r;

	memset(a, 0, sizeof(*a));
	a->began_ns = hc_now_ns();
	r = carry_out(me);
	if (!a->end_ns)
		a->end_ns = hc_now_ns();
	a->result = r;
	if (r && !a->text[0])
		snprintf(a->text, sizeof(a->text), "%s", hcomm_last_error());
	hc_tell(out, a, sizeof(*a));
}

/* Operations in all domains, until an order comes. The result is that of the last begin. */
static int run_ops(struct me *me, int in)
{
	struct pollfd p = {.fd = in, .events = POLLIN};
	struct hcomm_op op;
	unsigned i;
	int r = 0;

	while (!poll(&p, 1, r ? -1 : 0)) {
		for (i = 0; i < HC_RANK_SEATS && !r; i++) {
			if (!me->domain[i])
				continue;
			r = hcomm_op_begin(me->domain[i], HCOMM_OP_ALL_REDUCE, 64, HCOMM_OP_NOWAIT,
					   &op);
			if (!r)
				r = hcomm_op_end(&op);
			if (!r)
				__atomic_fetch_add(me->count, 1, __ATOMIC_RELAXED);
		}
	}
	return r;
}

static int rank_main(void *arg, int in, int out)
{
	static struct me me;
	int r = hcomm_open(NULL, &me.session), last = 0;

	me.count = arg;
	if (r)
		hc_fail("hcomm_open: %s: %s", hcomm_error_name(r), hcomm_last_error());
	hcomm_on_event(me.session, on_event, &me);
	hc_tell(out, &r, sizeof(r));
	for (;;) {
		hc_hear(in, &me.order, sizeof(me.order), 600000);
		if (me.order.what == HC_DO_STOP) {
			memset(&me.answer, 0, sizeof(me.answer));
			me.answer.result = last;
			hc_tell(out, &me.answer, sizeof(me.answer));
			continue;
		}
		obey(&me, out);
		if (me.order.what == HC_DO_QUIT)
			break;
		if (me.order.what == HC_DO_RUN)
			last = run_ops(&me, in);
	}
	hcomm_close(me.session);
	return 0;
}

/* ---- the parent ---- */

void hc_rank_spawn(struct hc_rank *r)
{
	int ready;

	r->count = mmap(NULL, sizeof(*r->count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (r->count == MAP_FAILED)
		hc_fail("no shared page");
	hc_spawn(&r->child, rank_main, r->count);
	hc_child_read(&r->child, &ready, sizeof(ready), ANSWER_MS);
}

void hc_rank_tell(struct hc_rank *r, const struct hc_order *o)
{
	hc_child_tell(&r->child, o, sizeof(*o));
}

void hc_rank_hear(struct hc_rank *r, struct hc_answer *a, unsigned deadline_ms)
{
	hc_child_read(&r->child, a, sizeof(*a), deadline_ms);
}

int hc_rank_do(struct hc_rank *r, const struct hc_order *o, struct hc_answer *a)
{
	static struct hc_answer unused;

	a = a ? a : &unused;
	hc_rank_tell(r, o);
	hc_rank_hear(r, a, ANSWER_MS * 2);
	return a->result;
}

void hc_rank_must(struct hc_rank *r, const struct hc_order *o, struct hc_answer *a)
{
	static struct hc_answer mine;

	a = a ? a : &mine;
	if (hc_rank_do(r, o, a))
		hc_fail("order %d of pid %d: %s: %s", (int)o->what, (int)r->child.pid,
			hcomm_error_name(a->result), a->text);
}

static void done(struct hc_rank *r)
{
	munmap(r->count, sizeof(*r->count));
	r->count = NULL;
}

void hc_rank_quit(struct hc_rank *r)
{
	int status;

	if (!r->count)
		return;
	hc_rank_must(r, &(struct hc_order){.what = HC_DO_QUIT}, NULL);
	status = hc_child_wait(&r->child, ANSWER_MS);
	if (status)
		hc_fail("a rank ended with status %d", status);
	done(r);
}

void hc_rank_kill(struct hc_rank *r)
{
	hc_child_kill(&r->child);
	done(r);
}

static void make_info(struct hcomm_root_info *info, uint32_t n, const char *name)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	int r = hcomm_open(NULL, &s);

	c.name = name;
	if (!r)
		r = hcomm_root_info(s, n, &c, info);
	if (r)
		hc_fail("root info: %s: %s", hcomm_error_name(r), hcomm_last_error());
	hcomm_close(s);
}

void hc_ranks_join(struct hc_rank *r, uint32_t n, unsigned seat, uint32_t first_device,
		   const char *name)
{
	struct hc_order o = {.what = HC_DO_JOIN, .seat = seat, .nranks = n, .timeout_ms = 20000};
	struct hc_answer a;
	uint32_t i;

	make_info(&o.info, n, name);
	for (i = 0; i < n; i++) {
		o.rank = i;
		o.device = first_device + i;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < n; i++) {
		hc_rank_hear(&r[i], &a, ANSWER_MS);
		if (a.result || a.rank != i)
			hc_fail("rank %u joins: %s: %s", i, hcomm_error_name(a.result), a.text);
	}
}

void hc_ranks_start(struct hc_rank *r, uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		hc_rank_spawn(&r[i]);
	hc_ranks_join(r, n, 0, 0, name);
}

void hc_ranks_quit(struct hc_rank *r, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		hc_rank_quit(&r[i]);
}

/* ---- asking ---- */

struct find {
	void *row;
	size_t size;
	const char *code; /* of events */
	uint32_t rank;    /* of members, else HCOMM_NO_RANK */
	bool domain;      /* one that lives before one of that name that has ended */
	bool found;
};

static bool is_over(const void *row)
{
	const struct hcomm_view_domain *d = row;

	return !strcmp(d->state, "DESTROYED") || !strcmp(d->state, "FAILED");
}

static int take_row(const void *row, void *context)
{
	struct find *f = context;

	if (f->rank != HCOMM_NO_RANK && ((const struct hcomm_view_member *)row)->rank != f->rank)
		return 0;
	if (f->code && strcmp(((const struct hcomm_view_event *)row)->code, f->code) != 0)
		return 0;
	if (f->domain && f->found && is_over(row))
		return 0;
	memcpy(f->row, row, f->size);
	f->found = true;
	return 0;
}

static bool ask(uint32_t view, const char *name, struct find *f)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	struct hcomm_session *s;
	int r = hcomm_open(NULL, &s);

	filter.name = name;
	if (!r)
		r = hcomm_query(s, view, &filter, take_row, f);
	if (r && r != HCOMM_E_NOT_FOUND)
		hc_fail("query: %s: %s", hcomm_error_name(r), hcomm_last_error());
	hcomm_close(s);
	return f->found;
}

void hc_ask_status(struct hcomm_view_status *row)
{
	struct find f = {.row = row, .size = sizeof(*row), .rank = HCOMM_NO_RANK};

	if (!ask(HCOMM_VIEW_STATUS, NULL, &f))
		hc_fail("the daemon has no status row");
}

bool hc_ask_domain(const char *name, struct hcomm_view_domain *row)
{
	struct find f = {.row = row, .size = sizeof(*row), .rank = HCOMM_NO_RANK, .domain = true};

	return ask(HCOMM_VIEW_DOMAIN, name, &f);
}

bool hc_ask_member(const char *domain, uint32_t rank, struct hcomm_view_member *row)
{
	struct find f = {.row = row, .size = sizeof(*row), .rank = rank};

	return ask(HCOMM_VIEW_MEMBER, domain, &f);
}

bool hc_ask_event(const char *code, struct hcomm_view_event *row)
{
	struct find f = {.row = row, .size = sizeof(*row), .code = code, .rank = HCOMM_NO_RANK};

	return ask(HCOMM_VIEW_EVENT, NULL, &f);
}
