/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world's shell: it steps cores, performs their actions, and writes down what came out; see
 * world.h. Requests are in worldask.c, the promises in worldcheck.c.
 *
 * Everything that a core asks for is queued and then given in a fixed order: what is stored,
 * samples, messages, and at last what is due. So a world of the same calls has the same
 * transcript.
 */
#include "worldimp.h"

#include "pages.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const names[WORLD_NODES] = {"a", "b", "c"};

const char *world_name(uint32_t node)
{
	return names[node];
}

/* ---- memory of a test: never short ---- */

void *world_grow(void *at, uint32_t count, uint32_t *cap, size_t size)
{
	if (count < *cap)
		return at;
	*cap = *cap ? *cap * 2 : 16;
	at = realloc(at, *cap * size);
	if (!at)
		abort();
	return at;
}

/* ---- the transcript ---- */

static uint32_t number_of(struct world *w, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < w->nseen; i++)
		if (w->seen[i] == id)
			return i + 1;
	if (w->nseen == sizeof(w->seen) / sizeof(w->seen[0]))
		return 0;
	w->seen[w->nseen++] = id;
	return w->nseen;
}

/* Length of the 16 hexadecimal digits at p, or 0. */
static size_t digits(const char *p)
{
	size_t n = strspn(p, "0123456789abcdef");

	return n == 16 ? n : 0;
}

static void put(struct world *w, const char *p, size_t len)
{
	if (w->text_len + len + 1 > w->text_cap) {
		w->text_cap = (w->text_len + len + 1) * 2;
		w->text = realloc(w->text, w->text_cap);
		if (!w->text)
			abort();
	}
	memcpy(w->text + w->text_len, p, len);
	w->text_len += len;
	w->text[w->text_len] = '\0';
}

void world_line(struct world *w, unsigned kind, const char *format, ...)
{
	char line[4096], mark[16];
	const char *p;
	va_list ap;
	int n;

	if (!(w->show & kind))
		return;
	n = snprintf(line, sizeof(line), "[%5llums] ",
		     (unsigned long long)((w->now - w->start) / WORLD_MS));
	va_start(ap, format);
	vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
	va_end(ap);
	for (p = line; *p;) {
		if (digits(p)) {
			n = snprintf(mark, sizeof(mark), "#%u",
				     number_of(w, strtoull(p, NULL, 16)));
			put(w, mark, (size_t)n);
			p += 16;
		} else {
			put(w, p++, 1);
		}
	}
	put(w, "\n", 1);
}

void world_forget(struct world *w)
{
	w->text_len = 0;
	if (w->text)
		w->text[0] = '\0';
}

bool world_said(const struct world *w, const char *text)
{
	return w->text_len && strstr(w->text, text);
}

_Noreturn void world_broken(struct world *w, const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken at %llu ms, step %llu: %s\n%s", file, line,
		(unsigned long long)((w->now - w->start) / WORLD_MS), (unsigned long long)w->steps,
		what, w->text_len ? w->text : "");
	abort();
}

void world_transcript(struct world *w, const char *file, int line, const char *want)
{
	const char *have = w->text_len ? w->text : "";

	if (strcmp(have, want)) {
		fprintf(stderr, "%s:%d: the transcript is\n%swanted\n%s", file, line, have, want);
		abort();
	}
	world_forget(w);
}

/* ---- clients ---- */

struct world_client *world_client_of(struct world *w, uint32_t node, uint64_t session)
{
	struct world_client *cl = NULL;

	if ((uint32_t)session < w->limits.sessions)
		cl = w->by_slot[node][(uint32_t)session];
	return cl && cl->session == session ? cl : NULL;
}

static const char *take_label(struct world *w, struct world_client *cl, uint32_t request)
{
	static char label[32];
	uint32_t i;

	for (i = 0; i < cl->nwaits && cl->waits[i].id != request; i++)
		;
	world_want(w, i < cl->nwaits && "a request is answered once");
	memcpy(label, cl->waits[i].label, sizeof(label));
	cl->waits[i] = cl->waits[--cl->nwaits];
	return label;
}

/* ---- answers ---- */

static void got_error(struct world *w, struct world_client *cl, const struct hc_frame *f,
		      const char *label)
{
	const struct hc_error_row *row = hc_error_row(f->head.status);
	struct hc_m_error m;

	world_want(w, row && f->head.status < 0);
	world_want(w, !hc_decode(&hc_desc_error, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->code = -f->head.status;
	cl->retry_ms = m.retry_after_ms;
	hc_str_copy(m.text, cl->text, sizeof(cl->text));
	world_line(w, SHOW_REPLIES, "%s %u %s: refused %s: %s", names[cl->node], cl->pid, label,
		   row->name, cl->text);
}

static void got_done(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *label)
{
	struct hc_m_done m;

	world_want(w, !hc_decode(&hc_desc_done, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->value = m.value;
	hc_str_copy(m.text, cl->text, sizeof(cl->text));
	world_line(w, SHOW_REPLIES, "%s %u %s: done%s%s", names[cl->node], cl->pid, label,
		   m.text.len ? ": " : "", cl->text);
}

void world_add_seat(struct world *w, struct world_client *cl, const struct hc_m_seat *r)
{
	struct world_seat *s;
	uint32_t i;

	for (i = 0; i < w->nseats; i++) {
		s = &w->seats[i];
		if (!s->live || s->domain != cl->id || s->rank != r->rank)
			continue;
		world_want(w, s->node == cl->node && s->pid == cl->pid && "one process on a rank");
		s->live = false; /* it came back */
	}
	w->seats = world_grow(w->seats, w->nseats, &w->seats_cap, sizeof(*w->seats));
	w->seats[w->nseats++] = (struct world_seat){.domain = cl->id,
						    .session = cl->session,
						    .node = cl->node,
						    .pid = cl->pid,
						    .rank = r->rank,
						    .block = r->block,
						    .device = r->device,
						    .live = true};
}

static void got_joined(struct world *w, struct world_client *cl, const struct hc_frame *f,
		       const char *label)
{
	char ranks[256] = "";
	struct hc_m_joined m;
	struct hc_m_seat r;
	size_t at = 0;

	world_want(w, !hc_decode(&hc_desc_joined, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->id = m.id;
	cl->epoch = m.epoch;
	cl->nranks = m.nranks;
	cl->slot = m.slot;
	hc_str_copy(m.name, cl->text, sizeof(cl->text));
	world_want(w, m.seats.count > 0);
	world_want(w, world_is_stored(w, cl->node, m.id));
	while (hc_arr_next(&m.seats, &hc_desc_seat, HC_PROTO_MAX, &r)) {
		world_want(w, r.block < 131072 && r.rank < m.nranks);
		world_add_seat(w, cl, &r);
		if (at + 40 < sizeof(ranks))
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u on device %u",
					       at ? ", " : "", r.rank, r.device);
	}
	world_line(w, SHOW_REPLIES, "%s %u %s: joined %s, %u ranks, epoch %u, as %s",
		   names[cl->node], cl->pid, label, cl->text, m.nranks, m.epoch, ranks);
}

static void got_status(struct world *w, struct world_client *cl, const struct hc_frame *f,
		       const char *label)
{
	char absent[512] = "", server[128], address[128];
	struct hc_m_status_r m;
	struct hc_m_absent r;
	size_t at = 0;

	world_want(w, !hc_decode(&hc_desc_status_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->state = m.state;
	cl->arrived = m.arrived;
	cl->nranks = m.nranks;
	hc_str_copy(m.cause, cl->text, sizeof(cl->text));
	while (hc_arr_next(&m.absent, &hc_desc_absent, HC_PROTO_MAX, &r) &&
	       at + 300 < sizeof(absent))
		at += (size_t)snprintf(absent + at, sizeof(absent) - at, "; absent %u %s %s",
				       r.rank, hc_str_copy(r.server, server, sizeof(server)),
				       hc_str_copy(r.address, address, sizeof(address)));
	world_line(w, SHOW_REPLIES, "%s %u %s: %s, %u of %u: %s%s", names[cl->node], cl->pid, label,
		   hc_word_domain_state(m.state), m.arrived, m.nranks, cl->text, absent);
}

static void got_split(struct world *w, struct world_client *cl, const struct hc_frame *f,
		      const char *label)
{
	char list[256] = "";
	struct hc_m_split_r m;
	struct hc_m_rank r;
	size_t at = 0;

	world_want(w, !hc_decode(&hc_desc_split_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->sub_id = m.sub_id;
	cl->ngroup = 0;
	while (hc_arr_next(&m.ranks, &hc_desc_rank, HC_PROTO_MAX, &r)) {
		if (cl->ngroup < WORLD_RANKS)
			cl->group[cl->ngroup] = r.rank;
		cl->ngroup++;
		if (at + 16 < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, " %u", r.rank);
	}
	world_line(w, SHOW_REPLIES, "%s %u %s: group%s", names[cl->node], cl->pid, label,
		   at ? list : " none");
}

static void got_page(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *label)
{
	const struct hc_desc *d;
	struct hc_m_query_r m;
	_Alignas(16) char row[1024];
	uint32_t n;

	world_want(w, !hc_decode(&hc_desc_query_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	d = hc_desc_view(m.view);
	world_want(w, d && d->size <= sizeof(row));
	for (n = 0; m.rows.len; n++)
		world_want(w, !hc_decode_front(d, HC_PROTO_MAX, &m.rows, row));
	world_want(w, n == m.nrows);
	cl->nrows = n;
	cl->cursor = m.cursor;
	cl->snapshot = m.snapshot;
	world_line(w, SHOW_REPLIES, "%s %u %s: %u rows%s", names[cl->node], cl->pid, label, n,
		   m.cursor ? ", more" : "");
}

static void got_info(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *label)
{
	struct hc_m_root_info_r m;

	world_want(w, !hc_decode(&hc_desc_root_info_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	world_want(w, m.info.len <= sizeof(cl->info));
	memcpy(cl->info, m.info.p, m.info.len);
	cl->info_len = m.info.len;
	world_line(w, SHOW_REPLIES, "%s %u %s: root info", names[cl->node], cl->pid, label);
}

static void reply(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_client *cl = world_client_of(w, node, a->session);
	const uint8_t *at = a->bytes;
	size_t left = a->len;
	const char *label;
	struct hc_frame f;

	world_want(w, cl && cl->open && "answers go to open sessions");
	world_want(w, a->len <= HC_PACKET_MAX);
	world_want(w, !hc_frame_next(&at, &left, &f) && !left);
	if (f.head.type == HC_MSG_slab) { /* comes before the answer that speaks of it */
		world_want(w, !f.head.id && a->u.reply.grant == HC_GRANT_SLAB);
		return;
	}
	if (f.head.type == HC_MSG_status_slab) {
		world_want(w, !f.head.id && a->u.reply.grant == HC_GRANT_STATUS);
		return;
	}
	if (a->u.reply.grant == HC_GRANT_SYNC)
		world_grant_sync(w, node, a);
	label = take_label(w, cl, f.head.id);
	cl->answers++;
	cl->answered = f.head.id;
	cl->code = 0;
	cl->text[0] = '\0';
	switch (f.head.type) {
	case HC_MSG_error: got_error(w, cl, &f, label); return;
	case HC_MSG_done: got_done(w, cl, &f, label); return;
	case HC_MSG_joined: got_joined(w, cl, &f, label); return;
	case HC_MSG_status_r: got_status(w, cl, &f, label); return;
	case HC_MSG_split_r: got_split(w, cl, &f, label); return;
	case HC_MSG_batch_r: world_got_batch(w, cl, &f, names[node], label); return;
	case HC_MSG_query_r: got_page(w, cl, &f, label); return;
	case HC_MSG_root_info_r: got_info(w, cl, &f, label); return;
	case HC_MSG_get_r: world_got_value(w, cl, &f, names[node], label); return;
	case HC_MSG_sync_open_r: world_got_sync(w, cl, &f, names[node], label); return;
	case HC_MSG_hello_r: return;
	case HC_MSG_channel_want_r: world_got_grants(w, cl, &f, names[node], label); return;
	case HC_MSG_channel_refused: world_got_refused(w, cl, &f, names[node], label); return;
	case HC_MSG_channel_open_r: world_got_open(w, cl, &f, a, names[node], label); return;
	default: world_broken(w, __FILE__, __LINE__, "an answer of an unknown type");
	}
}

static void notify(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_client *cl = world_client_of(w, node, a->session);
	const uint8_t *at = a->bytes;
	char about[200] = "";
	size_t left = a->len;
	struct hc_frame f;
	struct hc_m_event m;

	world_want(w, cl && cl->open && "events go to open sessions");
	world_want(w, !hc_frame_next(&at, &left, &f) && !left && f.head.type == HC_MSG_event);
	world_want(w, !hc_decode(&hc_desc_event, HC_PROTO_MAX, f.body, f.body_len, &m));
	cl->events++;
	cl->event_kind = m.kind;
	cl->event_rank = m.rank;
	cl->event_pid = m.pid;
	cl->event_channel = m.channel;
	hc_str_copy(m.text, cl->event_text, sizeof(cl->event_text));
	hc_str_copy(m.node, cl->event_node, sizeof(cl->event_node));
	if (m.rank != HC_NONE)
		snprintf(about, sizeof(about), " (rank %u, pid %u, node %s)", m.rank, m.pid,
			 cl->event_node);
	world_line(w, SHOW_EVENTS, "%s %u hears %s, %s%s%s%s", names[node], cl->pid,
		   hc_word_event_code(m.kind), hc_word_domain_state(m.state), about,
		   m.text.len ? ": " : "", cl->event_text);
}

/* ---- other actions ---- */

static void publish(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_record *r;

	world_want(w, a->u.publish.slot < WORLD_RECORDS);
	world_want(w, a->u.publish.id != 0);
	r = &w->records[node][a->u.publish.slot];
	*r = (struct world_record){.id = a->u.publish.id,
				   .cut = a->u.publish.cut,
				   .uid = a->u.publish.uid,
				   .tag = a->u.publish.tag,
				   .epoch = a->u.publish.epoch,
				   .number = a->u.publish.number,
				   .nranks = a->u.publish.nranks,
				   .cause_kind = a->u.publish.cause_kind,
				   .cause_rank = a->u.publish.cause_rank,
				   .cause_pid = a->u.publish.cause_pid,
				   .writes = r->writes + 1,
				   .state = a->u.publish.state,
				   .cut_set = a->u.publish.cut_set};
	snprintf(r->cause, sizeof(r->cause), "%.*s", (int)a->len, (const char *)a->bytes);
	world_want(w, world_may_publish(w, node, r));
	if (r->cut_set)
		world_line(w, SHOW_RECORDS, "%s record %u: %s, cut %llu%s", names[node],
			   a->u.publish.slot, hc_word_domain_state(r->state),
			   (unsigned long long)r->cut,
			   r->cut_set == HC_CUT_CLOSED ? ", closed" : "");
	else
		world_line(w, SHOW_RECORDS, "%s record %u: %s%s", names[node], a->u.publish.slot,
			   hc_word_domain_state(r->state), a->u.publish.fence ? ", fenced" : "");
}

/* What the daemon before wrote. */
static struct hc_shown shown(const struct world *w, uint32_t node, const struct hc_action *a)
{
	const struct world_record *r = &w->records[node][a->u.recall.slot % WORLD_RECORDS];
	struct hc_shown s = {.asked = true};

	if (r->id != a->u.recall.id || r->tag != a->u.recall.tag ||
	    r->state < HC_W_domain_state_ACTIVE || r->state > HC_W_domain_state_DRAINING)
		return s;
	s.state = r->state;
	s.cut = r->cut_set ? r->cut : 0;
	return s;
}

static void send_peer(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_message m = {.from = node, .to = WORLD_NODES, .len = a->len};
	uint32_t j;

	for (j = 0; j < w->nodes; j++)
		if (j != node && w->node_of[node][j] == a->u.node)
			m.to = j;
	world_want(w, m.to < w->nodes && "a message goes to a node that is there");
	m.bytes = malloc(a->len);
	if (!m.bytes)
		abort();
	memcpy(m.bytes, a->bytes, a->len);
	w->queue = world_grow(w->queue, w->nqueue, &w->queue_cap, sizeof(*w->queue));
	w->queue[w->nqueue++] = m;
}

static void scan(struct world *w, uint32_t node, const struct hc_action *a)
{
	w->scans = world_grow(w->scans, w->nscans, &w->scans_cap, sizeof(*w->scans));
	w->scans[w->nscans++] = (struct world_scan){.node = node,
						    .session = a->session,
						    .domain = a->u.scan.domain,
						    .epoch = a->u.scan.epoch,
						    .rank = a->u.scan.rank,
						    .block = a->u.scan.block,
						    .pid = a->u.scan.pid};
}

static void put_register(struct world *w, uint32_t node, const struct hc_action *a)
{
	world_want(w, a->u.reg.slot < WORLD_REGISTERS && a->u.reg.channel);
	w->registers[node][a->u.reg.slot] = (struct world_register){
		.id = a->u.reg.channel, .state = a->u.reg.state, .start = w->starts[node]};
}

static void perform(struct world *w, uint32_t node, const struct hc_action *a)
{
	uint32_t i;

	switch (a->kind) {
	case HC_ACT_REPLY: reply(w, node, a); return;
	case HC_ACT_NOTIFY: notify(w, node, a); return;
	case HC_ACT_SEND_PEER: send_peer(w, node, a); return;
	case HC_ACT_PERSIST: world_persist(w, node, a); return;
	case HC_ACT_PUBLISH: publish(w, node, a); return;
	case HC_ACT_SCAN: scan(w, node, a); return;
	case HC_ACT_CLOSE: return;
	case HC_ACT_RECALL: w->shown = shown(w, node, a); return;
	case HC_ACT_WATCH:
		w->watches++;
		world_watch(w, node, a);
		return;
	case HC_ACT_REGISTER: put_register(w, node, a); return;
	case HC_ACT_ROUTE: /* not without peers of its own */
	case HC_ACT_DIAL:
	case HC_ACT_CONN_SEND:
	case HC_ACT_CONN_CLOSE:
	case HC_ACT_KEY_MAKE:
	case HC_ACT_KEY_DROP:
	case HC_ACT_DATAGRAM: world_want(w, false); return;
	case HC_ACT_SYNC: world_sync(w, node, a); return;
	case HC_ACT_LOG:
		world_want(w, a->len == strlen((const char *)a->bytes));
		for (i = 0; i < a->len; i++)
			world_want(w, a->bytes[i] >= ' ' && a->bytes[i] != 0x7f);
		world_line(w, SHOW_LOG, "%s log: %s", names[node], (const char *)a->bytes);
		return;
	}
}

/* ---- steps ---- */

void world_event(struct world *w, uint32_t node, const struct hc_event *ev)
{
	uint32_t i;

	hc_out_reset(w->out);
	hc_core_step(w->core[node], w->now, ev, w->out);
	w->steps++;
	if (w->out->count > w->most_actions)
		w->most_actions = w->out->count;
	if (w->out->used > w->most_bytes)
		w->most_bytes = w->out->used;
	for (i = 0; i < w->out->count; i++)
		perform(w, node, &w->out->acts[i]);
	if (!w->quiet_checks)
		world_check(w, node);
}

static bool give_stored(struct world *w, uint32_t node)
{
	struct hc_event ev = {.kind = HC_EV_PERSISTED, .u.persisted = w->asked[node]};

	if (w->hold_store[node] || w->stored[node] == w->asked[node])
		return false;
	w->stored[node] = w->asked[node];
	world_event(w, node, &ev);
	return true;
}

/* The arena is that of the session, or after a restart what the process has. */
static bool give_sample(struct world *w)
{
	struct hc_event ev = {.kind = HC_EV_OPS_SAMPLE};
	struct world_scan s;
	uint32_t i;

	if (w->hold_scan || !w->nscans)
		return false;
	s = w->scans[0];
	memmove(w->scans, w->scans + 1, --w->nscans * sizeof(s));
	ev.session = s.session;
	ev.u.ops.domain = s.domain;
	ev.u.ops.epoch = s.epoch;
	ev.u.ops.rank = s.rank;
	for (i = w->nseats; i-- > 0;) {
		const struct world_seat *t = &w->seats[i];

		if ((s.session ? t->session != s.session : t->pid != s.pid) || t->node != s.node ||
		    t->block != s.block || t->domain != s.domain || w->arenas_lost)
			continue;
		ev.u.ops.begun = t->begun;
		ev.u.ops.running = t->running;
		ev.u.ops.kind = t->kind;
		ev.u.ops.readable = true;
		break;
	}
	world_event(w, s.node, &ev);
	return true;
}

static void deliver(struct world *w, uint32_t at, bool keep)
{
	struct world_message m = w->queue[at];
	struct hc_event ev = {.kind = HC_EV_PEER_MSG};
	const uint8_t *p = m.bytes;
	const struct hc_desc *d;
	size_t left = m.len;
	struct hc_frame f;

	if (!keep)
		memmove(&w->queue[at], &w->queue[at + 1], (--w->nqueue - at) * sizeof(m));
	world_want(w, !hc_frame_next(&p, &left, &f) && !left);
	d = hc_desc_msg(f.head.type);
	world_line(w, SHOW_MESSAGES, "%s -> %s: %s", names[m.from], names[m.to], d ? d->name : "?");
	ev.u.peer.node = w->node_of[m.to][m.from];
	ev.u.peer.frame = &f;
	world_event(w, m.to, &ev);
	if (!keep)
		free(m.bytes);
}

static bool give_message(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nqueue; i++)
		if (!w->hold[w->queue[i].from][w->queue[i].to]) {
			deliver(w, i, false);
			return true;
		}
	return false;
}

static bool give_due(struct world *w, uint32_t node)
{
	struct hc_event ev = {.kind = HC_EV_TIMEOUT};

	if (w->hold_deadline || hc_core_deadline(w->core[node]) > w->now)
		return false;
	world_event(w, node, &ev);
	return true;
}

/* As a shell does: work that is under way first, then what comes in. */
void world_settle(struct world *w)
{
	uint32_t n, rounds = 0;
	bool more = true;

	while (more) {
		world_want(w, ++rounds < 200000 && "the world comes to rest");
		more = false;
		for (n = 0; n < w->nodes; n++)
			more = more || give_due(w, n) || give_stored(w, n);
		more = more || give_sample(w) || give_message(w);
	}
}

void world_advance(struct world *w, uint64_t ms)
{
	const uint64_t end = w->now + ms * WORLD_MS;
	uint64_t next, d;
	uint32_t n;

	for (;;) {
		world_settle(w);
		next = end;
		for (n = 0; n < w->nodes; n++) {
			d = hc_core_deadline(w->core[n]);
			if (d > w->now && d < next)
				next = d;
		}
		if (next <= w->now || w->now == end)
			break;
		w->now = next;
	}
	w->now = end;
	world_settle(w);
}

/* ---- holding back ---- */

void world_hold(struct world *w, uint32_t from, uint32_t to, bool hold)
{
	w->hold[from][to] = hold;
	if (!hold)
		world_settle(w);
}

void world_hold_none(struct world *w)
{
	memset(w->hold, 0, sizeof(w->hold));
	world_settle(w);
}

void world_store_hold(struct world *w, uint32_t node, bool hold)
{
	w->hold_store[node] = hold;
	if (!hold)
		world_settle(w);
}

static uint32_t oldest(const struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 0; i < w->nqueue; i++)
		if (w->queue[i].from == from && w->queue[i].to == to)
			return i;
	return HC_NONE;
}

bool world_carry(struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i = oldest(w, from, to);

	if (i == HC_NONE)
		return false;
	deliver(w, i, false);
	world_settle(w);
	return true;
}

bool world_duplicate(struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i = oldest(w, from, to);

	if (i == HC_NONE)
		return false;
	deliver(w, i, true);
	world_settle(w);
	return true;
}

bool world_drop(struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i = oldest(w, from, to);

	if (i == HC_NONE)
		return false;
	free(w->queue[i].bytes);
	memmove(&w->queue[i], &w->queue[i + 1], (--w->nqueue - i) * sizeof(*w->queue));
	return true;
}

uint32_t world_on_the_way(const struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i, n = 0;

	for (i = 0; i < w->nqueue; i++)
		n += w->queue[i].from == from && w->queue[i].to == to;
	return n;
}

const char *world_next_name(const struct world *w, uint32_t from, uint32_t to)
{
	uint32_t i = oldest(w, from, to);
	const struct hc_desc *d;

	if (i == HC_NONE)
		return "";
	d = hc_desc_msg((unsigned)(w->queue[i].bytes[6] << 8 | w->queue[i].bytes[7]));
	return d ? d->name : "?";
}
