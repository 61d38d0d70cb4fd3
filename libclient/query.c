/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: pages of rows from the daemon, and the words of operators.
 *
 * A list comes in pages with a cursor that belongs to a snapshot; when it changed in between, the
 * daemon says STALE and the list begins anew. Rows that were delivered cannot be taken back, so
 * up to a bound all pages are fetched before the first row goes to the caller: short lists are
 * never stale for him. Beyond the bound rows are delivered as they come.
 *
 * A row is decoded by the table of views into a private struct, turned into its public form, and
 * given away there. Both live in one piece of memory that is taken before the first request.
 */
#include "client.h"
#include "print.h"

#include <stdlib.h>
#include <string.h>

#include "hcomm/views.h"

#define PAGES_KEPT 16u
#define RETRIES    3u

struct query {
	struct hcomm_session *session;
	struct hc_m_query m;
	const struct hc_desc *desc;
	const struct hc_print_view *view;
	hcomm_row_fn fn;
	void *context;
	uint32_t left; /* rows wanted, HC_NONE = all */
	int stopped;   /* what the caller's function returned */
	void *wire, *row;
	struct hc_call *pages; /* PAGES_KEPT of them */
	uint32_t npages;
};

/* ---- rows ---- */

static int deliver_page(struct query *q, const struct hc_call *c)
{
	struct hc_m_query_r page;
	uint32_t i;

	if (hc_call_answer(&q->session->sess, c, &hc_desc_query_r, &page))
		return hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `query_r`");
	for (i = 0; i < page.nrows && q->left && !q->stopped; i++) {
		if (hc_decode_front(q->desc, q->session->sess.version, &page.rows, q->wire))
			return hc_refuse(HC_E_MALFORMED, "row %u of view %s cannot be read", i,
					 q->view->name);
		memcpy(q->row, &q->view->size, sizeof(uint32_t));
		hc_view_to_public(q->m.view, q->wire, q->row);
		q->stopped = q->fn(q->row, q->context);
		if (q->left != HC_NONE)
			q->left--;
	}
	return 0;
}

static void free_pages(struct query *q)
{
	while (q->npages)
		hc_call_fini(&q->pages[--q->npages]);
}

static int deliver_pages(struct query *q)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < q->npages && !r && !q->stopped; i++)
		r = deliver_page(q, &q->pages[i]);
	free_pages(q);
	return r;
}

/* ---- pages ---- */

static int fetch(struct query *q, struct hc_call *c, struct hc_m_query_r *page)
{
	struct hc_request request = {&hc_desc_query, &q->m, -1, hc_deadline(HC_REQUEST_MS), 0};
	int r;

	hc_call_init(c, HC_MSG_query_r);
	r = hc_call_run(q->session, c, &request);
	if (!r && (hc_call_answer(&q->session->sess, c, &hc_desc_query_r, page) ||
		   page->view != q->m.view))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no page of view %s",
			      q->view->name);
	if (r)
		hc_call_fini(c);
	return r;
}

/* Pages up to the last, or until there is no more room for them. */
static int fetch_first(struct query *q, bool *last)
{
	struct hc_m_query_r page;
	int r;

	do {
		r = fetch(q, &q->pages[q->npages], &page);
		if (r)
			return r;
		q->npages++;
		q->m.cursor = page.cursor;
		q->m.snapshot = page.snapshot;
	} while (page.cursor && q->npages < PAGES_KEPT);
	*last = !page.cursor;
	return 0;
}

static int run(struct query *q)
{
	unsigned tries = 0;
	bool last;
	int r;

	for (;;) {
		r = fetch_first(q, &last);
		if (r != HC_E_STALE || ++tries > RETRIES)
			break;
		free_pages(q);
		q->m.cursor = q->m.snapshot = 0;
	}
	if (r) {
		free_pages(q);
		return r;
	}
	r = deliver_pages(q);
	while (!r && !last && !q->stopped && q->left) {
		r = fetch_first(q, &last);
		if (r)
			free_pages(q);
		else
			r = deliver_pages(q);
	}
	return r;
}

static int set_filter(struct query *q, const struct hcomm_filter *filter)
{
	struct hcomm_filter f = HCOMM_INIT(struct hcomm_filter);

	if (filter && filter->size < sizeof(filter->size))
		return hc_refuse(HC_E_INVALID, "filter->size is %u; wanted: set by HCOMM_INIT",
				 filter->size);
	if (filter)
		memcpy(&f, filter, filter->size < sizeof(f) ? filter->size : sizeof(f));
	q->m.id = f.id;
	q->m.name = hc_str(f.name);
	q->m.since_s = f.since_s;
	q->m.limit = f.limit;
	q->left = f.limit ? f.limit : HC_NONE;
	if (q->m.name.len > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID, "filter->name has %u bytes; wanted: at most %u",
				 q->m.name.len, HC_NAME_MAX);
	return 0;
}

static int prepare(struct query *q, uint32_t view, const struct hcomm_filter *filter)
{
	size_t wire, row;
	char *memory;
	int r = hc_session_check(q->session);

	if (r)
		return r;
	q->desc = hc_desc_view(view);
	q->view = hc_view_public(view);
	if (!q->desc || !q->view)
		return hc_refuse(HC_E_INVALID, "view is %u; wanted: one of HCOMM_VIEW_*", view);
	q->m.view = (uint16_t)view;
	r = set_filter(q, filter);
	if (r)
		return r;
	wire = (q->desc->size + 15u) & ~15u;
	row = (q->view->size + 15u) & ~15u;
	memory = calloc(1, wire + row + PAGES_KEPT * sizeof(struct hc_call));
	if (!memory)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for a list");
	q->wire = memory;
	q->row = memory + wire;
	q->pages = (struct hc_call *)(void *)(memory + wire + row);
	return 0;
}

HC_EXPORT int hcomm_query(struct hcomm_session *session, uint32_t view,
			  const struct hcomm_filter *filter, hcomm_row_fn fn, void *context)
{
	struct query q = {.session = session, .fn = fn, .context = context};
	int r;

	if (!fn)
		return -hc_refuse(HC_E_INVALID, "fn is NULL; wanted: whom to give the rows");
	r = prepare(&q, view, filter);
	if (r)
		return -r;
	r = run(&q);
	free(q.wire);
	return r ? -r : q.stopped;
}

/* ---- members ---- */

struct members {
	struct hcomm_member *to;
	uint32_t room, size, count;
};

static int take_member(const void *row, void *context)
{
	const struct hcomm_view_member *v = row;
	struct members *m = context;
	struct hcomm_member one = HCOMM_INIT(struct hcomm_member);

	if (m->count++ >= m->room)
		return 0;
	one.rank = v->rank;
	one.device = v->device;
	one.pid = v->pid;
	one.uid = v->uid;
	memcpy(one.state, v->state, sizeof(one.state));
	memcpy(one.node, v->node, sizeof(one.node));
	memcpy(one.address, v->address, sizeof(one.address));
	/* the caller's struct may be of another size than ours: so is his step */
	hc_give((char *)m->to + (size_t)(m->count - 1) * m->size, &one, sizeof(one));
	return 0;
}

/* Every element must have the size of the first: else the step is not known. */
static int check_members(const struct hcomm_member *members, const uint32_t *count)
{
	uint32_t i;

	if (!count || (*count && !members))
		return hc_refuse(HC_E_INVALID, "%s is NULL", count ? "members" : "count");
	if (*count && members->size < sizeof(members->size))
		return hc_refuse(HC_E_INVALID, "members[0].size is %u; wanted: set by HCOMM_INIT",
				 members->size);
	for (i = 1; i < *count; i++) {
		uint32_t size;

		memcpy(&size, (const char *)members + (size_t)i * members->size, sizeof(size));
		if (size != members->size)
			return hc_refuse(HC_E_INVALID,
					 "members[%u].size is %u; wanted: %u as of the first", i,
					 size, members->size);
	}
	return 0;
}

HC_EXPORT int hcomm_members(hcomm_domain domain, struct hcomm_member *members, uint32_t *count)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	struct members m = {.to = members};
	struct hcomm_session *s;
	struct hc_domain *d;
	int r = check_members(members, count);

	if (!r)
		r = hc_domain_lock(domain, &d);
	if (r)
		return -r;
	s = d->session;
	filter.id = d->id;
	hc_domain_unlock(d);
	if (!s)
		return -hc_refuse(HC_E_NOT_SUPPORTED,
				  "a domain of one rank without hcommd has no list");
	if (!filter.id)
		return -hc_refuse(HC_E_IN_PROGRESS, "the domain is still forming");
	m.room = *count;
	m.size = m.room ? members->size : 0;
	r = -hcomm_query(s, HCOMM_VIEW_MEMBER, &filter, take_member, &m);
	if (r)
		return -r;
	*count = m.count;
	if (m.count > m.room)
		return -hc_refuse(HC_E_BUFFER_OVERFLOW,
				  "the domain has %u members, and there is room for %u", m.count,
				  m.room);
	return 0;
}

/* ---- operators ---- */

HC_EXPORT int hcomm_admin(struct hcomm_session *session, const char *verb, const char *argument,
			  int timeout_ms, char *answer, size_t bytes)
{
	struct hc_m_admin m = {.verb = hc_str(verb), .argument = hc_str(argument)};
	struct hc_request q = {&hc_desc_admin, &m, -1, 0, 0};
	struct hc_m_done done;
	struct hc_call c;
	int r = hc_session_check(session);

	if (!r && (!m.verb.len || m.verb.len > HC_NAME_MAX || m.argument.len > HC_TEXT_MAX))
		r = hc_refuse(
			HC_E_INVALID,
			"verb is empty, or verb (at most %u bytes) or argument (%u) is too long",
			HC_NAME_MAX, HC_TEXT_MAX);
	if (!r && timeout_ms < 1 && timeout_ms != HCOMM_DEFAULT)
		r = hc_refuse(HC_E_INVALID, "timeout_ms is %d; wanted: 1 or more, or HCOMM_DEFAULT",
			      timeout_ms);
	if (r)
		return -r;
	q.deadline = hc_deadline(timeout_ms > 0            ? (uint32_t)timeout_ms
				 : session->env.timeout_ms ? session->env.timeout_ms
							   : HC_REQUEST_MS);
	hc_call_init(&c, HC_MSG_done);
	r = hc_call_run(session, &c, &q);
	if (!r && hc_call_answer(&session->sess, &c, &hc_desc_done, &done))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `done`");
	if (!r && answer && bytes)
		hc_str_copy(done.text, answer, bytes);
	hc_call_fini(&c);
	return -r;
}
