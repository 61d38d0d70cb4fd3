/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node's shell does for its core: the database, the records, the arenas; see jobs.h.
 *
 * A disk takes its time and does one thing after the other. A daemon that is killed finds again
 * what the disk had taken, told or not; a kernel that dies takes all along, as a new boot drops
 * what is of the one before.
 */
#include "jobsimp.h"

#include "table.h"

#include <stdlib.h>
#include <string.h>

/* ---- the database ---- */

const struct job_row *job_store_row(const struct job_world *w, uint32_t node, uint64_t id)
{
	const struct job_node *n = &w->nodes[node];
	uint32_t i;

	for (i = 0; i < n->nrows; i++)
		if (n->rows[i].id == id)
			return &n->rows[i];
	return NULL;
}

void job_store_put(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	struct job_node *n = &w->nodes[node];
	const struct hc_core *c = sim_core(w->sim, node);
	struct job_row r = {.id = a->u.persist.id,
			    .seq = a->u.persist.seq,
			    .what = (uint8_t)a->u.persist.what,
			    .len = a->len};
	struct hc_m_domain_row row;
	uint64_t now = sim_now(w->sim);

	job_want(w, r.seq == n->asked + 1 && "numbers of rows are dense");
	n->asked = r.seq;
	if (r.what == HC_PUT_DOMAIN) {
		job_want(w, !hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, a->bytes, a->len, &row));
		r.state = row.state;
		r.home = hc_index_find(&c->home_by_id, r.id) != HC_NONE;
	}
	if (r.what == HC_PUT_DOMAIN || r.what == HC_PUT_CHANNEL) {
		r.bytes = malloc(a->len);
		if (!r.bytes)
			abort();
		memcpy(r.bytes, a->bytes, a->len);
	}
	n->pending = sim_grow(n->pending, n->npending, &n->pending_cap, sizeof(*n->pending));
	n->pending[n->npending++] = r;
	if (n->last_at < now)
		n->last_at = now;
	n->last_at += 20000 + sim_rand(w->sim) % n->disk_ns;
	sim_later(w->sim, node, true, n->last_at - now, DUE_STORED, r.seq);
}

static void drop_row(struct job_node *n, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < n->nrows; i++)
		if (n->rows[i].id == id) {
			free(n->rows[i].bytes);
			n->rows[i] = n->rows[--n->nrows];
			return;
		}
}

static void apply(struct job_world *w, uint32_t node, const struct job_row *r)
{
	struct job_node *n = &w->nodes[node];
	struct job_domain *d;

	if (r->what == HC_ADD_EVENT)
		return;
	drop_row(n, r->id);
	if (r->what == HC_DEL_CHANNEL)
		return;
	if (r->what == HC_PUT_CHANNEL) {
		n->rows = sim_grow(n->rows, n->nrows, &n->rows_cap, sizeof(*n->rows));
		n->rows[n->nrows++] = *r;
		return;
	}
	d = job_domain(w, r->id);
	if (r->what == HC_DEL_DOMAIN) {
		d->gave_up |= (uint8_t)(1u << node % JOB_GROUP);
		return;
	}
	n->rows = sim_grow(n->rows, n->nrows, &n->rows_cap, sizeof(*n->rows));
	n->rows[n->nrows++] = *r;
	if (!r->home)
		return;
	if (!d->committed)
		job_check_prepared(w, node, r->id);
	d->committed = true;
	d->home = node;
	if (d->cancelled)
		job_broken(w, "node %u: domain %016llx is committed, and was cancelled", node,
			   (unsigned long long)r->id);
}

static void take_up(struct job_world *w, uint32_t node, uint32_t count)
{
	struct job_node *n = &w->nodes[node];
	uint32_t i;

	for (i = 0; i < count; i++)
		apply(w, node, &n->pending[i]);
	n->npending -= count;
	memmove(n->pending, n->pending + count, n->npending * sizeof(*n->pending));
}

void job_store_done(struct job_world *w, uint32_t node, uint64_t seq)
{
	struct job_node *n = &w->nodes[node];
	struct hc_event ev = {.kind = HC_EV_PERSISTED, .u.persisted = seq};
	uint32_t i;

	for (i = 0; i < n->npending && n->pending[i].seq <= seq; i++)
		;
	take_up(w, node, i);
	n->stored = seq;
	sim_feed(w->sim, node, &ev);
}

void job_store_end(struct job_world *w, uint32_t node, bool boot)
{
	struct job_node *n = &w->nodes[node];
	uint32_t i;

	if (!boot && n->npending)
		take_up(w, node, job_pick(w, n->npending + 1));
	for (i = 0; i < n->npending; i++)
		free(n->pending[i].bytes);
	n->npending = 0;
	n->asked = n->stored = n->last_at = 0;
	n->nscans = 0;
	if (!boot)
		return;
	for (i = 0; i < n->nrows; i++)
		free(n->rows[i].bytes);
	n->nrows = 0;
	n->boots++;
	memset(n->records, 0, sizeof(n->records));
	memset(n->registers, 0, sizeof(n->registers));
}

void job_store_free(struct job_node *n)
{
	uint32_t i;

	for (i = 0; i < n->nrows; i++)
		free(n->rows[i].bytes);
	for (i = 0; i < n->npending; i++)
		free(n->pending[i].bytes);
	free(n->rows);
	free(n->pending);
	free(n->scans);
	free(n->by_pid);
}

void job_boot(struct sim *s, uint32_t node, void *arg)
{
	struct job_world *w = arg;
	struct job_node *n = &w->nodes[node];
	struct hc_event ev = {.kind = HC_EV_ROW};
	uint32_t i;

	w->booting = true; /* counts agree from START on */
	for (i = 0; i < JOB_DEVICES; i++) {
		struct hc_device_fact f = {.index = i,
					   .kind = "npu",
					   .numa = -1,
					   .health = "ok",
					   .simulated = true,
					   .present = true,
					   .source = "sim"};
		struct hc_event dev = {.kind = HC_EV_DEVICE_FACT, .u.device = &f};

		sim_feed(s, node, &dev);
	}
	job_chan_links(w, node);
	for (i = 0; i < 2 * n->nrows; i++) {
		const struct job_row *r = &n->rows[i % n->nrows];

		/* domains, then channels */
		if ((r->what == HC_PUT_CHANNEL) != (i >= n->nrows))
			continue;
		ev.kind = r->what == HC_PUT_CHANNEL ? HC_EV_CHANNEL_ROW : HC_EV_ROW;
		ev.u.row.bytes = (struct hc_str){(const char *)r->bytes, r->len};
		ev.u.row.shown = n->shown = HC_SHOWN_NOT_ASKED;
		sim_feed(s, node, &ev);
		ev.u.row.shown = n->shown;
		if (n->shown)
			sim_feed(s, node, &ev);
	}
	w->booting = false;
}

/* ---- records ---- */

void job_publish(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	struct job_record *to, r = {.id = a->u.publish.id,
				    .cut = a->u.publish.cut,
				    .tag = a->u.publish.tag,
				    .epoch = a->u.publish.epoch,
				    .number = a->u.publish.number,
				    .cause_kind = a->u.publish.cause_kind,
				    .cause_rank = a->u.publish.cause_rank,
				    .cause_pid = a->u.publish.cause_pid,
				    .state = a->u.publish.state,
				    .cut_set = a->u.publish.cut_set,
				    .life = sim_life(w->sim, node)};

	job_want(w, a->u.publish.slot < JOB_DOMAINS && r.id && a->len < sizeof(r.cause));
	if (w->j->bad)
		return;
	memcpy(r.cause, a->bytes, a->len);
	to = &w->nodes[node].records[a->u.publish.slot];
	job_line(w, node, "%016llx is %s, number %u%s%s", (unsigned long long)r.id,
		 hc_word_domain_state(r.state), r.number, r.cause[0] ? ": " : "", r.cause);
	job_check_record(w, node, &r, to);
	if (to->id != r.id && !w->j->calm && !job_pick(w, 100))
		sim_later(w->sim, node, true, job_pick(w, 3 * (uint32_t)SIM_MS / 2), DUE_KILL,
			  node);
	*to = r;
}

void job_recall(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	const struct job_record *r = &w->nodes[node].records[a->u.recall.slot];
	const bool shown = r->id == a->u.recall.id && r->tag == a->u.recall.tag &&
			   r->state >= HC_W_domain_state_ACTIVE &&
			   r->state <= HC_W_domain_state_DRAINING;

	job_want(w, w->booting && a->u.recall.slot < JOB_DOMAINS);
	w->nodes[node].shown = shown ? HC_SHOWN_YES : HC_SHOWN_NO;
}

const struct job_record *job_record(const struct job_world *w, uint32_t node, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < JOB_DOMAINS; i++)
		if (w->nodes[node].records[i].id == id)
			return &w->nodes[node].records[i];
	return NULL;
}

/* ---- arenas ---- */

void job_scan(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	struct job_node *n = &w->nodes[node];
	uint32_t i;

	for (i = 0; i < n->nscans && n->scans[i].used; i++)
		;
	if (i == n->nscans) {
		n->scans = sim_grow(n->scans, n->nscans, &n->scans_cap, sizeof(*n->scans));
		n->nscans++;
	}
	n->scans[i] = (struct job_scan){.session = a->session,
					.domain = a->u.scan.domain,
					.epoch = a->u.scan.epoch,
					.rank = a->u.scan.rank,
					.block = a->u.scan.block,
					.pid = a->u.scan.pid,
					.used = true};
	sim_later(w->sim, node, true, 5000, DUE_SCAN, i);
}

/* The block of a rank, in the arena of its process. */
static const struct job_rank *block_of(const struct job_world *w, uint32_t node,
				       const struct job_scan *s)
{
	const struct job_node *n = &w->nodes[node];
	const struct job_proc *p;
	const struct job_rank *r;
	uint32_t k;

	if (s->pid - 1000 >= n->npids)
		return NULL;
	p = &w->procs[n->by_pid[s->pid - 1000]];
	for (k = 0; k < p->nseats; k++) {
		r = &w->jobs[p->seats[k].job]->ranks[p->seats[k].rank];
		if (r->id == s->domain && p->seats[k].rank == s->rank && r->block == s->block)
			return r;
	}
	return NULL;
}

void job_scanned(struct job_world *w, uint32_t node, uint64_t number)
{
	struct job_node *n = &w->nodes[node];
	struct hc_event ev = {.kind = HC_EV_OPS_SAMPLE};
	const struct job_scan s = n->scans[number];
	const struct job_rank *r = block_of(w, node, &s);

	n->scans[number].used = false;
	ev.session = s.session;
	ev.u.ops.domain = s.domain;
	ev.u.ops.epoch = s.epoch;
	ev.u.ops.rank = s.rank;
	if (r) {
		ev.u.ops.begun = r->begun;
		ev.u.ops.running = (uint32_t)(r->begun - r->ended);
		ev.u.ops.kind = HC_W_op_kind_ALL_REDUCE;
		ev.u.ops.readable = true;
	}
	sim_feed(w->sim, node, &ev);
}
