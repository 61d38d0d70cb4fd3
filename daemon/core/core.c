/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step: one event in, then slices of what is under way, actions out. See core.h, state.h.
 *
 * Order inside of a step, fixed so that the same events give the same actions: the event; then,
 * until nothing is left or the budget is used, the work of parts (what is told must be told of
 * the present state), the ring of messages to this node itself, and dead processes.
 */
#include "core.h"

#include "again.h"
#include "ask.h"
#include "away.h"
#include "channel.h"
#include "device.h"
#include "digest.h"
#include "drain.h"
#include "emit.h"
#include "exchange.h"
#include "home.h"
#include "link.h"
#include "net.h"
#include "pages.h"
#include "part.h"
#include "restore.h"
#include "rights.h"
#include "seek.h"
#include "session.h"
#include "split.h"
#include "sync.h"
#include "user.h"
#include "view.h"

#include <stdio.h>
#include <string.h>

#define BUDGET 256u /* units of work in one step */

/* ---- memory ---- */

static void lay_out_sync(struct hc_core *c, struct hc_mem *m, const struct hc_limits *lim)
{
	const uint32_t waits = lim->sessions * 4 + 1024;

	c->syncs = hc_mem_take(m, lim->domains, sizeof(*c->syncs));
	c->waits = hc_mem_take(m, waits, sizeof(*c->waits));
	hc_pool_init(&c->wait_pool, m, waits);
	hc_index_init(&c->wait_by_session, m, waits);
	hc_links_init(&c->wait_links, m, waits);
	c->exchs = hc_mem_take(m, lim->domains, sizeof(*c->exchs));
	hc_pool_init(&c->exch_pool, m, lim->domains);
	hc_index_init(&c->exch_by_id, m, lim->domains);
	hc_links_init(&c->exch_links, m, lim->domains);
	c->entries = hc_mem_take(m, lim->values, sizeof(*c->entries));
	hc_pool_init(&c->entry_pool, m, lim->values);
	hc_index_init(&c->entry_by_key, m, lim->values);
	hc_links_init(&c->entry_links, m, lim->values);
	c->cells = hc_mem_take(m, lim->values, sizeof(*c->cells));
	c->cell_next = hc_mem_take(m, lim->values, sizeof(*c->cell_next));
	hc_pool_init(&c->cell_pool, m, lim->values);
	c->waiters = hc_mem_take(m, waits, sizeof(*c->waiters));
	hc_pool_init(&c->waiter_pool, m, waits);
	hc_index_init(&c->waiter_by_key, m, waits);
	hc_index_init(&c->waiter_by_ticket, m, waits);
	hc_links_init(&c->waiter_links, m, waits);
	hc_timers_init(&c->waiter_timers, m, waits);
	c->fence_calls = hc_mem_take(m, lim->ranks, sizeof(*c->fence_calls));
	hc_spans_init(&c->fence_spans, m, lim->ranks);
}

/*
 * What seats wait for stands in runs of 2^k, one for each part that has such seats. All together
 * are never longer than all ranks; but runs are not merged again, and those of each length may have
 * been most at another time. With room for all ranks in each length there always is one.
 */
static uint32_t request_room(const struct hc_limits *lim)
{
	uint32_t lengths = 2; /* one rank; and one that grows has two runs for a moment */

	while (1u << (lengths - 2) < lim->ranks_per_domain)
		lengths++;
	return lengths * lim->ranks;
}

static void lay_out(struct hc_core *c, struct hc_mem *m, const struct hc_limits *lim)
{
	uint32_t asks = lim->sessions * 2 + 1024, processes = lim->sessions + 1024;
	uint32_t batches = lim->sessions < HC_BATCHES ? lim->sessions : HC_BATCHES;
	const struct hc_admit_limits admit = {
		.links = lim->links, .requests = lim->requests, .pieces = lim->pieces};

	c->lim = *lim;
	c->sessions = hc_mem_take(m, lim->sessions, sizeof(*c->sessions));
	hc_links_init(&c->session_links, m, lim->sessions);
	c->session_blocks = hc_mem_take(m, lim->sessions, HC_ARENA_BLOCKS / 8);
	c->users = hc_mem_take(m, HC_USERS(lim->domains) + lim->wants, sizeof(*c->users));
	hc_pool_init(&c->user_pool, m, HC_USERS(lim->domains) + lim->wants);
	hc_index_init_in(&c->user_index, m, HC_USERS(lim->domains) + lim->wants, c->users, uid);
	c->processes = hc_mem_take(m, processes, sizeof(*c->processes));
	hc_pool_init(&c->process_pool, m, processes);
	hc_index_init_in(&c->process_index, m, processes, c->processes, pid);
	hc_links_init(&c->process_links, m, processes);
	c->devices = hc_mem_take(m, lim->devices, sizeof(*c->devices));
	c->link_facts = hc_mem_take(m, lim->links, sizeof(*c->link_facts));
	c->admit = hc_admit_init(m, &admit);
	c->chan = hc_channel_lay_out(m, lim);
	c->wishes = hc_mem_take(m, lim->domains, sizeof(*c->wishes));
	c->parts = hc_mem_take(m, lim->domains, sizeof(*c->parts));
	hc_pool_init(&c->part_pool, m, lim->domains);
	hc_index_init_in(&c->part_by_id, m, lim->domains, c->parts, id);
	hc_index_init_in(&c->part_by_key, m, lim->domains, c->parts, key_a);
	c->part_busy = hc_mem_take(m, lim->domains, sizeof(*c->part_busy));
	hc_pool_init(&c->part_busy_pool, m, lim->domains);
	hc_links_init(&c->work_links, m, lim->domains);
	c->seats = hc_mem_take(m, lim->ranks, sizeof(*c->seats));
	c->readings = hc_mem_take(m, lim->ranks, sizeof(*c->readings));
	hc_spans_init(&c->seat_spans, m, lim->ranks);
	hc_links_init(&c->seat_links, m, lim->ranks);
	c->seat_requests = hc_mem_take(m, request_room(lim), sizeof(*c->seat_requests));
	hc_spans_init(&c->seat_request_spans, m, request_room(lim));
	c->homes = hc_mem_take(m, lim->domains, sizeof(*c->homes));
	hc_pool_init(&c->home_pool, m, lim->domains);
	hc_index_init_in(&c->home_by_id, m, lim->domains, c->homes, id);
	c->home_busy = hc_mem_take(m, lim->domains, sizeof(*c->home_busy));
	hc_pool_init(&c->home_busy_pool, m, lim->domains);
	hc_index_init_in(&c->home_by_key, m, lim->domains, c->home_busy, key_a);
	hc_index_init_in(&c->home_by_parent, m, lim->domains, c->home_busy, parent);
	c->places = hc_mem_take(m, lim->ranks, sizeof(*c->places));
	hc_spans_init(&c->place_spans, m, lim->ranks);
	c->patience = hc_mem_take(m, lim->ranks, sizeof(*c->patience));
	hc_spans_init(&c->patience_spans, m, lim->ranks);
	c->whos = hc_mem_take(m, lim->ranks + 1, sizeof(*c->whos));
	hc_pool_init(&c->who_pool, m, lim->ranks + 1);
	hc_index_init_in(&c->who_index, m, lim->ranks + 1, c->whos, key);
	hc_links_init(&c->store_links, m, 2 * lim->domains);
	c->asks = hc_mem_take(m, asks, sizeof(*c->asks));
	hc_pool_init(&c->ask_pool, m, asks);
	hc_links_init(&c->ask_links, m, asks);
	c->names = hc_mem_take(m, 2 * lim->domains, sizeof(*c->names));
	hc_pool_init(&c->name_pool, m, 2 * lim->domains);
	hc_index_init_in(&c->part_by_name, m, 2 * lim->domains, c->names, key);
	hc_index_init_in(&c->home_by_name, m, 2 * lim->domains, c->names, key);
	c->causes = hc_mem_take(m, 2 * lim->domains, sizeof(*c->causes));
	hc_pool_init(&c->cause_pool, m, 2 * lim->domains);
	c->batches = hc_mem_take(m, batches, sizeof(*c->batches));
	c->batch_items = hc_mem_take(m, (size_t)batches * HC_BATCH_ITEMS, sizeof(*c->batch_items));
	c->batch_bytes = hc_mem_take(m, batches, HC_PACKET_MAX);
	hc_pool_init(&c->batch_pool, m, batches);
	hc_links_init(&c->batch_links, m, batches);
	c->rank_place = hc_mem_take(m, lim->ranks_per_domain, sizeof(*c->rank_place));
	c->rolls = hc_mem_take(m, HC_ROLLS, sizeof(*c->rolls));
	c->roll_entries =
		hc_mem_take(m, (size_t)HC_ROLLS * lim->ranks_per_domain, sizeof(*c->roll_entries));
	hc_seek_lay_out(c, m, lim);
	c->ended = hc_mem_take(m, lim->ended, sizeof(*c->ended));
	c->gathers = hc_mem_take(m, HC_GATHERS, sizeof(*c->gathers));
	c->voices = hc_mem_take(m, lim->ranks, sizeof(*c->voices));
	hc_spans_init(&c->voice_spans, m, lim->ranks);
	hc_timers_init(&c->timers, m, 2 * lim->domains + HC_GATHERS + 2);
	lay_out_sync(c, m, lim);
	c->net = hc_net_lay_out(m, lim);
	c->nodes = hc_mem_take(m, hc_node_max(lim), sizeof(*c->nodes));
	c->node_mark = hc_mem_take(m, hc_node_max(lim), sizeof(*c->node_mark));
	c->row_nodes = hc_mem_take(m, lim->ranks_per_domain + 1, sizeof(*c->row_nodes));
	c->ring = hc_mem_take(m, HC_RING_BYTES, 1);
	c->taken = hc_mem_take(m, HC_RING_BYTES, 1);
	c->scratch = hc_mem_take(m, HC_OUT_BYTES, 1);
}

size_t hc_core_bytes(const struct hc_limits *limits)
{
	struct hc_mem m = {0};
	struct hc_core none = {0}; /* only counts */

	hc_mem_take(&m, 1, sizeof(none));
	lay_out(&none, &m, limits);
	return m.used;
}

static void set(struct hc_core *c, const struct hc_settings *s)
{
	const struct hc_admit_settings admit = {.limit_percent = s->bandwidth_limit_percent,
						.quota_percent = s->quota_link_percent,
						.aging_ns = s->aging_ns,
						.grant_ttl_ns = s->grant_ttl_ns,
						.hint_hold_ns = s->hint_hold_ns};

	c->set = *s;
	hc_admit_set(c->admit, &admit);
}

struct hc_core *hc_core_init(void *memory, size_t bytes, const struct hc_limits *limits,
			     const struct hc_self *self, const struct hc_settings *settings)
{
	struct hc_mem m = {.base = memory, .size = bytes};
	struct hc_core *c;

	hc_assert(memory && bytes >= hc_core_bytes(limits));
	hc_assert(limits->sessions <= HC_SESSIONS_MAX && limits->ranks_per_domain <= HC_RANKS_MAX);
	c = hc_mem_take(&m, 1, sizeof(*c));
	lay_out(c, &m, limits);
	c->self = *self;
	set(c, settings);
	c->kept = c->away_at = HC_NEVER;
	/* no answer to an earlier daemon finds a question of this one */
	c->ask_generation = self->start << 16;
	hc_assert(!hc_pool_get(&c->who_pool)); /* nobody */
	c->rng = (struct hc_hash_key){self->seed[0], self->seed[1]};
	hc_core_node(c, self->node_id, self->name);
	hc_net_start(c);
	hc_link_ports(c);
	return c;
}

/* Of the row of a domain, and of a rank in it: an estimate, and to expect too few is fine. */
#define ROW_BYTES  105u
#define RANK_BYTES 30u

static void index_expect(struct hc_index *x, uint32_t rows, hc_warm_fn *warm)
{
	hc_index_expect(x, rows);
	warm(x->bucket, x->used * sizeof(*x->bucket));
	warm(x->link, rows * sizeof(*x->link));
}

void hc_core_expect(struct hc_core *c, uint32_t rows, size_t bytes, hc_warm_fn *warm)
{
	size_t ranks = bytes < rows * ROW_BYTES ? 0 : (bytes - rows * ROW_BYTES) / RANK_BYTES;

	if (rows > c->lim.domains)
		rows = c->lim.domains;
	if (ranks > c->lim.ranks)
		ranks = c->lim.ranks;
	index_expect(&c->home_by_id, rows, warm);
	index_expect(&c->part_by_id, rows, warm);
	index_expect(&c->part_by_key, rows, warm);
	warm(c->parts, rows * sizeof(*c->parts));
	warm(c->part_pool.next, rows * sizeof(*c->part_pool.next));
	warm(c->homes, rows * sizeof(*c->homes));
	warm(c->seats, ranks * sizeof(*c->seats));
	warm(c->seat_links.at, ranks * sizeof(*c->seat_links.at));
	warm(c->places, ranks * sizeof(*c->places));
}

uint32_t hc_core_find_node(const struct hc_core *c, const uint8_t id[16])
{
	uint32_t i;

	for (i = 0; i < c->nnodes; i++)
		if (!memcmp(c->nodes[i].id, id, 16))
			return i;
	return HC_NONE;
}

uint32_t hc_core_node_named(const struct hc_core *c, const char *name)
{
	uint32_t i;

	for (i = 0; i < c->nnodes; i++)
		if (!strcmp(c->nodes[i].name, name))
			return i;
	return HC_NONE;
}

uint32_t hc_core_node(struct hc_core *c, const uint8_t id[16], const char *name)
{
	uint32_t i = hc_core_find_node(c, id);

	if (i == HC_NONE && c->nnodes == hc_node_max(&c->lim))
		return i;
	if (i == HC_NONE) {
		i = c->nnodes++;
		memcpy(c->nodes[i].id, id, 16);
		c->nodes[i].peer = HC_NONE;
	}
	hc_str_copy(hc_str(name), c->nodes[i].name, sizeof(c->nodes[i].name));
	return i;
}

/* ---- requests ---- */

/* One case of a request: decode it, or say that it is malformed. */
#define CASE(type, call)                                                                           \
	case HC_MSG_##type:                                                                        \
		if (hc_decode(&hc_desc_##type, s->proto, f->body, f->body_len, &m.type))           \
			goto malformed;                                                            \
		call;                                                                              \
		return

static void request(struct hc_core *c, struct hc_session *s, const struct hc_event *ev)
{
	const struct hc_frame *f = ev->u.request.frame;
	const uint32_t id = f->head.id;
	union {
		struct hc_m_ping ping;
		struct hc_m_root_info root_info;
		struct hc_m_join_root join_root;
		struct hc_m_join_table join_table;
		struct hc_m_join_local join_local;
		struct hc_m_create create;
		struct hc_m_add_device add_device;
		struct hc_m_activate activate;
		struct hc_m_attach attach;
		struct hc_m_sub sub;
		struct hc_m_split split;
		struct hc_m_batch batch;
		struct hc_m_sync_open sync_open;
		struct hc_m_sync_have sync_have;
		struct hc_m_put put;
		struct hc_m_get get;
		struct hc_m_fence fence;
		struct hc_m_leave leave;
		struct hc_m_destroy destroy;
		struct hc_m_abort abort;
		struct hc_m_status status;
		struct hc_m_ops_ended ops_ended;
		struct hc_m_subscribe subscribe;
		struct hc_m_query query;
		struct hc_m_channel_want channel_want;
		struct hc_m_channel_open channel_open;
		struct hc_m_channel_release channel_release;
		struct hc_m_admin admin;
	} m;
	char text[128];

	switch (f->head.type) {
		CASE(ping, hc_emit_done(c, s->id, id, m.ping.value, ""));
		CASE(root_info, hc_join_root_info(c, s, id, &m.root_info));
		CASE(join_root, hc_join_root(c, s, id, &m.join_root));
		CASE(join_table, hc_join_table(c, s, id, &m.join_table, ev->u.request.roster));
		CASE(join_local, hc_join_local(c, s, id, &m.join_local));
		CASE(create, hc_join_create(c, s, id, &m.create));
		CASE(add_device, hc_join_add_device(c, s, id, &m.add_device));
		CASE(activate, hc_join_activate(c, s, id, &m.activate));
		CASE(attach, hc_join_attach(c, s, id, &m.attach));
		CASE(sub, hc_join_sub(c, s, id, &m.sub));
		CASE(split, hc_split(c, s, id, &m.split));
		CASE(batch, hc_batch(c, s, id, &m.batch));
		CASE(sync_open, hc_sync_open(c, s, id, &m.sync_open));
		CASE(sync_have, hc_sync_have(c, s, id, &m.sync_have, ev->u.request.page));
		CASE(put, hc_sync_put(c, s, id, &m.put));
		CASE(get, hc_sync_get(c, s, id, &m.get));
		CASE(fence, hc_sync_fence(c, s, id, &m.fence));
		CASE(leave, hc_part_leave(c, s, id, &m.leave));
		CASE(destroy, hc_part_destroy(c, s, id, &m.destroy));
		CASE(abort, hc_part_abort(c, s, id, &m.abort));
		CASE(status, hc_view_status(c, s, id, &m.status));
		CASE(ops_ended, hc_part_ops_ended(c, s, m.ops_ended.id));
		CASE(subscribe, hc_session_subscribe(c, s, id, &m.subscribe));
		CASE(query, hc_view_query(c, s, id, &m.query));
		CASE(channel_want, hc_channel_want(c, s, id, &m.channel_want));
		CASE(channel_open, hc_channel_open(c, s, id, &m.channel_open));
		CASE(channel_release, hc_channel_release(c, s, id, &m.channel_release));
		CASE(admin, hc_drain_admin(c, s, id, &m.admin));
	default:
		HC_TEXT(text, "message %u is not a request that this daemon knows", f->head.type);
		hc_emit_error(c, s->id, id, HC_E_NOT_SUPPORTED, text);
		return;
	}
malformed:
	HC_TEXT(text, "message %u is shorter, longer or otherwise than its type says",
		f->head.type);
	hc_emit_error(c, s->id, id, HC_E_MALFORMED, text);
}

static void on_request(struct hc_core *c, const struct hc_event *ev)
{
	const struct hc_frame *f = ev->u.request.frame;
	struct hc_session *s = hc_session_get(c, ev->session);

	c->requests++;
	if (!s) {
		if (f->head.type == HC_MSG_hello)
			hc_session_hello(c, ev);
		else
			hc_emit_error(c, ev->session, f->head.id, HC_E_MALFORMED,
				      "the first message of a session is hello");
		return;
	}
	s->requests++;
	if (f->head.type == HC_MSG_hello)
		hc_emit_error(c, s->id, f->head.id, HC_E_INVALID, "hello was said already");
	else if (!hc_right_role(f->head.type, s->role) && hc_right_of(f->head.type))
		hc_emit_error(c, s->id, f->head.id, HC_E_PERMISSION, hc_right_text(f->head.type));
	else if (!hc_emit_ring_spare(c))
		hc_emit_error(c, s->id, f->head.id, HC_E_AGAIN, "the daemon is busy");
	else
		request(c, s, ev);
}

/* ---- messages between home and part ---- */

#define WORD(type, call)                                                                           \
	case HC_MSG_##type:                                                                        \
		if (hc_decode(&hc_desc_##type, HC_PROTO_MAX, f->body, f->body_len, &m.type))       \
			return HC_E_MALFORMED;                                                     \
		call;                                                                              \
		return 0

static int message(struct hc_core *c, uint32_t node, const struct hc_frame *f)
{
	union {
		struct hc_m_arrive arrive;
		struct hc_m_verdict verdict;
		struct hc_m_depart depart;
		struct hc_m_prepare prepare;
		struct hc_m_prepared prepared;
		struct hc_m_commit commit;
		struct hc_m_cancel cancel;
		struct hc_m_state state;
		struct hc_m_cut_ask cut_ask;
		struct hc_m_cut_report cut_report;
		struct hc_m_cut cut;
		struct hc_m_drain_report drain_report;
		struct hc_m_gone gone;
		struct hc_m_control control;
		struct hc_m_control_r control_r;
		struct hc_m_gather gather;
		struct hc_m_gathered gathered;
		struct hc_m_arrivals arrivals;
		struct hc_m_accepted accepted;
		struct hc_m_missing missing;
		struct hc_m_gang_ask gang_ask;
		struct hc_m_gang_reserve gang_reserve;
		struct hc_m_gang_reserved gang_reserved;
		struct hc_m_gang_commit gang_commit;
		struct hc_m_gang_cancel gang_cancel;
		struct hc_m_gang_r gang_r;
		struct hc_m_gang_end gang_end;
		struct hc_m_gang_over gang_over;
		struct hc_m_gang_have gang_have;
		struct hc_m_gang_held gang_held;
		struct hc_m_exch_put exch_put;
		struct hc_m_exch_get exch_get;
		struct hc_m_exch_got exch_got;
		struct hc_m_exch_fence exch_fence;
		struct hc_m_exch_done exch_done;
		struct hc_m_exch_drop exch_drop;
		struct hc_m_exch_back exch_back;
		struct hc_m_part_ask part_ask;
		struct hc_m_part_back part_back;
		struct hc_m_form_again form_again;
		struct hc_m_roll_ask roll_ask;
		struct hc_m_roll roll;
		struct hc_m_peer_sum peer_sum;
	} m;

	switch (f->head.type) {
		WORD(arrive, hc_home_on_arrive(c, node, &m.arrive));
		WORD(verdict, hc_part_on_verdict(c, node, &m.verdict));
		WORD(depart, hc_home_on_depart(c, node, &m.depart));
		WORD(prepare, hc_part_on_prepare(c, node, &m.prepare));
		WORD(prepared, hc_home_on_prepared(c, node, &m.prepared));
		WORD(commit, hc_part_on_commit(c, node, &m.commit));
		WORD(cancel, hc_part_on_cancel(c, node, &m.cancel));
		WORD(state, hc_part_on_state(c, node, &m.state));
		WORD(cut_ask, hc_part_on_cut_ask(c, node, &m.cut_ask));
		WORD(cut_report, hc_home_on_cut_report(c, node, &m.cut_report));
		WORD(cut, hc_part_on_cut(c, node, &m.cut));
		WORD(drain_report, hc_home_on_drain_report(c, node, &m.drain_report));
		WORD(gone, hc_part_on_gone(c, node, &m.gone));
		WORD(control, hc_home_on_control(c, node, &m.control));
		WORD(control_r, hc_ask_on_answer(c, &m.control_r));
		WORD(gather, hc_split_on_gather(c, node, &m.gather));
		WORD(gathered, hc_split_on_gathered(c, &m.gathered));
		WORD(arrivals, hc_home_on_arrivals(c, node, &m.arrivals));
		WORD(accepted, hc_part_on_accepted(c, node, &m.accepted));
		WORD(missing, hc_part_on_missing(c, node, &m.missing));
		WORD(gang_ask, hc_gang_on_ask(c, node, &m.gang_ask));
		WORD(gang_reserve, hc_gang_on_reserve(c, node, &m.gang_reserve));
		WORD(gang_reserved, hc_gang_on_reserved(c, node, &m.gang_reserved));
		WORD(gang_commit, hc_gang_on_commit(c, node, &m.gang_commit));
		WORD(gang_cancel, hc_gang_on_cancel(c, node, &m.gang_cancel));
		WORD(gang_r, hc_gang_on_r(c, node, &m.gang_r));
		WORD(gang_end, hc_gang_on_end(c, node, &m.gang_end));
		WORD(gang_over, hc_gang_on_over(c, node, &m.gang_over));
		WORD(gang_have, hc_gang_on_have(c, node, &m.gang_have));
		WORD(gang_held, hc_gang_on_held(c, node, &m.gang_held));
		WORD(exch_put, hc_exchange_on_put(c, node, &m.exch_put));
		WORD(exch_get, hc_exchange_on_get(c, node, &m.exch_get));
		WORD(exch_got, hc_sync_on_got(c, &m.exch_got));
		WORD(exch_fence, hc_exchange_on_fence(c, node, &m.exch_fence));
		WORD(exch_done, hc_sync_on_done(c, &m.exch_done));
		WORD(exch_drop, hc_exchange_on_drop(c, node, &m.exch_drop));
		WORD(exch_back, hc_exchange_on_back(c, node, &m.exch_back));
		WORD(part_ask, hc_part_on_ask(c, node, &m.part_ask));
		WORD(part_back, hc_home_on_part_back(c, node, &m.part_back));
		WORD(form_again, hc_part_on_form_again(c, node, &m.form_again));
		WORD(roll_ask, hc_roll_on_ask(c, node, &m.roll_ask));
		WORD(roll, hc_roll_on_roll(c, node, &m.roll));
		WORD(peer_sum, hc_digest_on_sum(c, node, &m.peer_sum));
	}
	return HC_E_NOT_SUPPORTED;
}

void hc_core_message(struct hc_core *c, uint32_t node, const struct hc_frame *f)
{
	char text[HC_NAME_MAX + 64];

	if (!message(c, node, f))
		return;
	HC_TEXT(text, "node %s sent a message of type %u that is none", c->nodes[node].name,
		f->head.type);
	hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, text);
}

/* ---- the step ---- */

/* What number `n` of the list of those that wait for their row waits for. */
static uint64_t stored_of(const struct hc_core *c, uint32_t n)
{
	return n < c->lim.domains ? c->home_busy[n].stored
				  : c->part_busy[n - c->lim.domains].stored;
}

static void on_persisted(struct hc_core *c, uint64_t seq)
{
	uint32_t n;
	uint64_t stored;

	while ((n = hc_list_first(&c->storing)) != HC_NONE && hc_emit_room(c) &&
	       hc_emit_ring_spare(c)) {
		stored = stored_of(c, n);
		if (stored > seq)
			break;
		hc_list_del(&c->storing, &c->store_links, n);
		if (n < c->lim.domains)
			hc_home_stored(c, hc_home(c, c->home_busy[n].home));
		else
			hc_part_stored(c, hc_part(c, c->part_busy[n - c->lim.domains].part));
	}
	c->persisted = seq;
}

/* ---- the database fails, or works again ---- */

static void on_storage(struct hc_core *c, uint64_t kept)
{
	const bool was = c->kept != HC_NEVER, is = kept != HC_NEVER;

	c->kept = kept;
	c->domain_changes++;
	if (was != is)
		c->tell_storage = c->lim.sessions; /* also who has heard half of the last word */
}

/* One session that follows all events is told. */
static bool tell_storage(struct hc_core *c)
{
	const bool lost = c->kept != HC_NEVER;
	struct hc_m_event e = {
		.kind = lost ? HC_W_event_code_STORAGE_LOST : HC_W_event_code_STORAGE_BACK,
		.rank = HC_NONE,
		.node = hc_str(c->self.name),
		.text = hc_str(lost ? "state cannot be stored: domains made now are not persistent"
				    : "state is stored again")};
	const struct hc_session *s;

	if (!c->tell_storage)
		return false;
	if (!c->watchers.count) {
		c->tell_storage = 0;
		return false;
	}
	s = &c->sessions[--c->tell_storage];
	if (s->id && s->subscribed)
		hc_emit_event(c, s->id, &e);
	return true;
}

static void fire(struct hc_core *c, uint32_t timer)
{
	if (timer < c->lim.domains)
		hc_home_timeout(c, hc_home(c, c->home_busy[timer].home));
	else if (timer < 2 * c->lim.domains)
		hc_part_timeout(c, hc_part(c, c->part_busy[timer - c->lim.domains].part));
	else if (timer == hc_drain_timer(c))
		hc_drain_timeout(c);
	else if (timer == hc_seek_timer(c))
		hc_seek_timeout(c);
	else
		hc_split_timeout(c, timer - 2 * c->lim.domains);
}

static void on_event(struct hc_core *c, const struct hc_event *ev)
{
	switch (ev->kind) {
	case HC_EV_START:
		hc_restore_start(c);
		hc_link_ports(c);
		hc_away_expect(c);
		return;
	case HC_EV_TIMEOUT: hc_beat_timeout(c); return; /* the rest is looked at by unit() */
	case HC_EV_REQUEST: on_request(c, ev); return;
	case HC_EV_SESSION_LOST: hc_session_lost(c, ev->session); return;
	case HC_EV_PROCESS_DEAD:
		hc_session_dead(c, ev->u.process.pid, ev->u.process.started);
		return;
	case HC_EV_PEER_MSG: hc_core_message(c, ev->u.peer.node, ev->u.peer.frame); return;
	case HC_EV_DEVICE_FACT:
		hc_device_fact(c, ev->u.device);
		hc_link_device(c, ev->u.device->index);
		return;
	case HC_EV_LINK_FACT: hc_link_fact(c, ev->u.link); return;
	case HC_EV_PERSISTED: on_persisted(c, ev->u.persisted); return;
	case HC_EV_CONFIG:
		set(c, ev->u.settings);
		hc_net_settings(c);
		hc_away_timeout(c);
		return;
	case HC_EV_OPS_SAMPLE: hc_part_sample(c, ev); return;
	case HC_EV_STORAGE: on_storage(c, ev->u.kept); return;
	case HC_EV_ROW: hc_restore_row(c, ev->u.row.bytes, &ev->u.row.shown); return;
	case HC_EV_CHANNEL_ROW: hc_channel_restore(c, ev->u.row.bytes); return;
	case HC_EV_UNREAD: hc_session_unread(c, ev->session, ev->u.unread); return;
	case HC_EV_PORT_FACT: hc_port_fact(c, ev->u.port); return;
	case HC_EV_NODE_FACT: hc_peer_fact(c, ev->u.node); return;
	case HC_EV_ROUTES: hc_path_routes(c, HC_NONE); return;
	case HC_EV_ROUTE: hc_path_route(c, ev->u.route); return;
	case HC_EV_CONN_UP: hc_peer_conn_up(c, ev); return;
	case HC_EV_CONN_MSG: hc_peer_conn_msg(c, ev); return;
	case HC_EV_CONN_LOST: hc_peer_conn_lost(c, ev); return;
	case HC_EV_DATAGRAM: hc_beat_datagram(c, ev); return;
	case HC_EV_HOLD: hc_peer_hold(c, ev->u.hold_ms); return;
	case HC_EV_BOUNCED: hc_beat_bounced(c, ev); return;
	}
}

static bool stored_waits(const struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->storing), gone = hc_list_first(&c->departed);

	if (gone != HC_NONE && c->asks[gone].stored <= c->persisted)
		return true;
	return n != HC_NONE && stored_of(c, n) <= c->persisted;
}

/* For a request that left nothing behind, which most do, this is all that is looked at. */
static bool under_way(const struct hc_core *c)
{
	return c->watch_from != c->watch_to || c->work.count || c->ring_used || c->over.count ||
	       c->reaping.count || c->answering || c->batching.count || c->tell_storage ||
	       c->waiters_ready.count || c->exch_over.count || c->wait_drops.count || c->sweeping ||
	       c->sums || hc_again_ready(c) || c->seek_next != HC_NONE || stored_waits(c) ||
	       hc_drain_has_work(c);
}

/* One unit of what is under way; false when there is nothing. */
static bool work(struct hc_core *c)
{
	struct hc_frame f;

	if (hc_restore_watch(c) || hc_part_work(c))
		return true;
	if (hc_emit_ring(c, &f)) {
		hc_assert(!message(c, HC_SELF_NODE, &f));
		return true;
	}
	if (hc_away_work(c) || hc_again_work(c) || hc_home_work(c))
		return true;
	if (hc_home_departed(c))
		return true;
	if (stored_waits(c)) {
		on_persisted(c, c->persisted);
		return true;
	}
	return hc_split_work(c) || hc_session_reap(c) || hc_batch_work(c) || tell_storage(c) ||
	       hc_drain_work(c) || hc_exchange_work(c) || hc_sync_work(c) || hc_digest_work(c) ||
	       hc_seek_work(c);
}

static bool unit(struct hc_core *c)
{
	bool busy = under_way(c);
	uint32_t timer;

	if (busy && work(c))
		return true;
	if (hc_channel_deadline(c) <= c->now) {
		busy = true;
		if (hc_channel_work(c))
			return true;
	}
	if (hc_net_deadline(c) <= c->now) {
		busy = true;
		if (hc_net_work(c))
			return true;
	}
	if (c->away_at <= c->now) {
		hc_away_timeout(c);
		return true;
	}
	timer = hc_timers_take(&c->waiter_timers, c->now);
	if (timer != HC_NONE) {
		hc_exchange_timeout(c, timer);
		return true;
	}
	timer = hc_timers_take(&c->timers, c->now);
	if (timer == HC_NONE) {
		c->at_rest = !busy;
		return false;
	}
	fire(c, timer);
	return true;
}

void hc_core_step(struct hc_core *c, uint64_t now, const struct hc_event *event, struct hc_out *out)
{
	uint32_t i;

	hc_assert(now >= c->now);
	c->now = now;
	c->out = out;
	c->at_rest = false;
	hc_assert(hc_emit_room(c));
	on_event(c, event);
	for (i = 0; i < BUDGET && hc_emit_room(c) && unit(c); i++)
		;
	out->more = hc_batch_more(c);
	c->out = NULL;
}

uint64_t hc_core_deadline(const struct hc_core *c)
{
	uint64_t first, next;

	if (!c->at_rest && under_way(c))
		return c->now;
	first = c->at_rest ? hc_channel_timer(c) : hc_channel_deadline(c);
	next = hc_timers_next(&c->timers);
	if (next < first)
		first = next;
	next = hc_timers_next(&c->waiter_timers);
	if (next < first)
		first = next;
	if (c->away_at < first)
		first = c->away_at;
	next = hc_net_deadline(c);
	return next < first ? next : first;
}

/* The parts of other homes, which nothing counts by state. */
static void count_far(const struct hc_core *c, struct hc_core_counts *n)
{
	uint32_t i, left = c->nfar;

	n->domains += c->nfar;
	for (i = 0; left && i < c->part_pool.fresh; i++) {
		if (!hc_part_is_far(&c->parts[i]))
			continue;
		left--;
		n->active += c->parts[i].state == HC_W_domain_state_ACTIVE;
		n->forming += c->parts[i].state < HC_W_domain_state_ACTIVE;
		n->suspended += c->parts[i].state == HC_W_domain_state_SUSPENDED;
		n->damaged += c->parts[i].state == HC_W_domain_state_DAMAGED;
	}
}

void hc_core_counts(const struct hc_core *c, struct hc_core_counts *n)
{
	struct hc_admit_counts a;
	uint32_t i;

	hc_admit_counts(c->admit, &a);
	*n = (struct hc_core_counts){.domains = c->home_pool.used,
				     .active = c->nactive,
				     .forming = c->nforming,
				     .suspended = c->nsuspended,
				     .damaged = c->ndamaged,
				     .ranks = c->nseats,
				     .sessions = c->nsessions,
				     .requests = c->requests,
				     .refused = c->refused,
				     .channels = c->chan->granted,
				     .waiting = c->chan->waiting,
				     .lapsed = c->chan->lapsed,
				     .granted_at_once = a.granted_at_once,
				     .granted_later = a.granted_later,
				     .channel_refused = a.refused,
				     .hints_kept = a.hints_kept,
				     .hints_broken = a.hints_broken,
				     .hints_unknown = a.hints_unknown};
	count_far(c, n);
	hc_net_counts(c, n);
	n->drained = c->drain.on;
	if (c->drain.session && c->drain.until > c->now)
		n->drain_ns = c->drain.until - c->now;
	for (i = 0; i < c->ndevices; i++) {
		n->devices += c->devices[i].fact.present;
		n->simulated += c->devices[i].fact.present && c->devices[i].fact.simulated;
	}
}
