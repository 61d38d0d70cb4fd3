/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon says of other nodes; see eye.h. */
#include "eye.h"

#include <stdio.h>
#include <string.h>

/* ---- rows ---- */

struct find {
	uint32_t view;
	const char *name; /* of a node; start of the remote end of a path; text of an event */
	const char *code; /* of an event */
	uint64_t id;      /* of a domain */
	void *row;
	size_t size;
	unsigned count;
};

static bool fits(const struct find *f, const void *row)
{
	switch (f->view) {
	case HCOMM_VIEW_NODE: return !strcmp(((const struct hcomm_view_node *)row)->name, f->name);
	case HCOMM_VIEW_PATH:
		return !strncmp(((const struct hcomm_view_path *)row)->remote, f->name,
				strlen(f->name));
	case HCOMM_VIEW_DOMAIN: return ((const struct hcomm_view_domain *)row)->id == f->id;
	case HCOMM_VIEW_DEVICE: return ((const struct hcomm_view_device *)row)->holder != 0;
	case HCOMM_VIEW_EVENT: {
		const struct hcomm_view_event *e = row;

		return !strcmp(e->code, f->code) && (!f->name || strstr(e->text, f->name));
	}
	}
	return true;
}

static int take(const void *row, void *context)
{
	struct find *f = context;

	if (!fits(f, row))
		return 0;
	if (!f->count || f->view == HCOMM_VIEW_EVENT)
		memcpy(f->row, row, f->size);
	f->count++;
	return 0;
}

static bool ask(const struct hc_node *n, struct find *f)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s = NULL;
	int r;

	args.socket = n->socket;
	r = hcomm_open(&args, &s);
	if (!r)
		r = hcomm_query(s, f->view, NULL, take, f);
	if (r && r != HCOMM_E_NOT_FOUND)
		hc_fail("%s: query: %s: %s", n->dir, hcomm_error_name(r), hcomm_last_error());
	hcomm_close(s);
	return f->count > 0;
}

bool hc_row_node(const struct hc_node *n, const char *name, struct hcomm_view_node *row)
{
	struct find f = {.view = HCOMM_VIEW_NODE, .name = name, .row = row, .size = sizeof(*row)};

	return ask(n, &f);
}

bool hc_row_path(const struct hc_node *n, const char *remote, struct hcomm_view_path *row)
{
	struct find f = {.view = HCOMM_VIEW_PATH, .name = remote, .row = row, .size = sizeof(*row)};

	return ask(n, &f);
}

void hc_row_status(const struct hc_node *n, struct hcomm_view_status *row)
{
	struct find f = {.view = HCOMM_VIEW_STATUS, .row = row, .size = sizeof(*row)};

	hc_want(ask(n, &f));
}

bool hc_row_domain(const struct hc_node *n, uint64_t id, struct hcomm_view_domain *row)
{
	struct find f = {.view = HCOMM_VIEW_DOMAIN, .id = id, .row = row, .size = sizeof(*row)};

	return ask(n, &f);
}

unsigned hc_devices_held(const struct hc_node *n)
{
	struct hcomm_view_device row;
	struct find f = {.view = HCOMM_VIEW_DEVICE, .row = &row, .size = sizeof(row)};

	ask(n, &f);
	return f.count;
}

/* ---- waiting ---- */

struct wish {
	const struct hc_node *n;
	const char *name, *state;
	unsigned code;
	struct hcomm_view_node node;
	struct hcomm_view_path path;
};

static bool node_is(void *ctx)
{
	struct wish *w = ctx;

	return hc_row_node(w->n, w->name, &w->node) && !strcmp(w->node.state, w->state);
}

void hc_await_node(const struct hc_node *n, const char *name, const char *state,
		   unsigned deadline_ms)
{
	struct wish w = {.n = n, .name = name, .state = state};

	if (!hc_wait_until(node_is, &w, deadline_ms))
		hc_fail("%s: node %s is '%s' (%s), not %s, after %u ms", n->dir, name, w.node.state,
			w.node.cause, state, hc_patience(deadline_ms));
}

static bool path_is(void *ctx)
{
	struct wish *w = ctx;

	return hc_row_path(w->n, w->name, &w->path) && !strcmp(w->path.state, w->state);
}

void hc_await_path(const struct hc_node *n, const char *remote, const char *state,
		   unsigned deadline_ms)
{
	struct wish w = {.n = n, .name = remote, .state = state};

	if (!hc_wait_until(path_is, &w, deadline_ms))
		hc_fail("%s: path to %s is '%s' (%s), not %s, after %u ms", n->dir, remote,
			w.path.state, w.path.cause, state, hc_patience(deadline_ms));
}

struct sent {
	const struct hc_node *n;
	const char *remote;
	uint64_t wanted;
};

static bool has_sent(void *ctx)
{
	const struct sent *s = ctx;
	struct hcomm_view_path p;

	return hc_row_path(s->n, s->remote, &p) && p.sent >= s->wanted;
}

void hc_await_sent(const struct hc_node *n, const char *remote, uint64_t more, unsigned deadline_ms)
{
	struct sent s = {.n = n, .remote = remote};
	struct hcomm_view_path p;

	hc_want(hc_row_path(n, remote, &p));
	s.wanted = p.sent + more;
	hc_await("beats leave", has_sent, &s, deadline_ms);
}

static unsigned journal(const struct hc_node *n, unsigned code, const char *text,
			struct hcomm_view_event *row)
{
	struct find f = {.view = HCOMM_VIEW_EVENT,
			 .name = text,
			 .code = hc_word_event_code(code),
			 .row = row,
			 .size = sizeof(*row)};

	ask(n, &f);
	return f.count;
}

unsigned hc_journal_count(const struct hc_node *n, unsigned code, const char *text)
{
	struct hcomm_view_event row;

	return journal(n, code, text, &row);
}

static bool is_noted(void *ctx)
{
	struct wish *w = ctx;

	return hc_journal_count(w->n, w->code, w->name) > 0;
}

void hc_await_journal(const struct hc_node *n, unsigned code, const char *text,
		      unsigned deadline_ms)
{
	struct wish w = {.n = n, .code = code, .name = text};

	if (!hc_wait_until(is_noted, &w, deadline_ms))
		hc_fail("%s: no event %s with '%s' after %u ms; the last is '%s'", n->dir,
			hc_word_event_code(code), text ? text : "", hc_patience(deadline_ms),
			hc_journal_last(n, code));
}

const char *hc_journal_last(const struct hc_node *n, unsigned code)
{
	static struct hcomm_view_event row;

	return journal(n, code, NULL, &row) ? row.text : "";
}

/* ---- events as they come ---- */

static void on_event(const struct hcomm_event *ev, void *context)
{
	struct hc_eye *e = context;
	struct hc_seen *to = &e->seen[e->count];

	if (e->count == EYE_EVENTS)
		hc_fail("more than %d events", EYE_EVENTS);
	if (ev->lost)
		hc_fail("%u events were lost", ev->lost);
	to->code = ev->code;
	to->at_ns = hc_now_ns();
	snprintf(to->text, sizeof(to->text), "%s", ev->text);
	e->count++;
}

void hc_eye_open(struct hc_eye *e, const struct hc_node *n)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);

	memset(e, 0, sizeof(*e));
	args.socket = n->socket;
	if (hcomm_open(&args, &e->session) || hcomm_on_event(e->session, on_event, e) ||
	    hcomm_subscribe(e->session, 0, 1))
		hc_fail("%s: subscribe: %s", n->dir, hcomm_last_error());
}

void hc_eye_close(struct hc_eye *e)
{
	hcomm_close(e->session);
	e->session = NULL;
}

static void look(struct hc_eye *e, int ms)
{
	if (hcomm_dispatch(e->session, ms) < 0)
		hc_fail("dispatch: %s", hcomm_last_error());
}

static const struct hc_seen *find_seen(const struct hc_eye *e, unsigned code, const char *text)
{
	unsigned i;

	for (i = 0; i < e->count; i++)
		if (e->seen[i].code == code && (!text || strstr(e->seen[i].text, text)))
			return &e->seen[i];
	return NULL;
}

const struct hc_seen *hc_eye_await(struct hc_eye *e, unsigned code, const char *text,
				   unsigned deadline_ms)
{
	const uint64_t end = hc_now_ms() + hc_patience(deadline_ms);
	const struct hc_seen *s;
	unsigned i;

	while (!(s = find_seen(e, code, text)) && hc_now_ms() < end)
		look(e, 20);
	if (s)
		return s;
	for (i = 0; i < e->count; i++)
		fprintf(stderr, "  %s: %s\n", hc_word_event_code(e->seen[i].code), e->seen[i].text);
	hc_fail("no event %s with '%s' after %u ms; the above came", hc_word_event_code(code),
		text ? text : "", hc_patience(deadline_ms));
}

unsigned hc_eye_count(struct hc_eye *e, unsigned code)
{
	unsigned i, n = 0;

	look(e, 0);
	for (i = 0; i < e->count; i++)
		n += e->seen[i].code == code;
	return n;
}

void hc_eye_blink(struct hc_eye *e)
{
	look(e, 0);
	e->count = 0;
}
