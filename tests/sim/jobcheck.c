/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of domains over nodes, after every step and in the end; see jobs.h.
 *
 * A domain is judged by what was seen of it from outside, on all nodes together: which row its
 * home has stored, which records were published, which ranks were given to whom.
 */
#include "jobsimp.h"

#include "net.h"
#include "who.h"
#include "worldcore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- words ---- */

void job_broken(struct job_world *w, const char *fmt, ...)
{
	struct jobs *j = w->j;
	va_list ap;
	int n;

	if (j->bad)
		return;
	j->bad = true;
	n = snprintf(j->why, sizeof(j->why), "[%" PRIu64 " ms] ", sim_now(w->sim) / SIM_MS);
	va_start(ap, fmt);
	vsnprintf(j->why + n, sizeof(j->why) - (size_t)n, fmt, ap);
	va_end(ap);
}

void job_line(struct job_world *w, uint32_t node, const char *fmt, ...)
{
	char *line = w->j->tail[w->j->tail_at++ % JOBS_TAIL];
	const size_t size = sizeof(w->j->tail[0]);
	va_list ap;
	int n = snprintf(line, size, "[%9.3f ms] n%u ", (double)sim_now(w->sim) / 1e6, node);

	va_start(ap, fmt);
	vsnprintf(line + n, size - (size_t)n, fmt, ap);
	va_end(ap);
	if (w->j->trace)
		fprintf(w->j->trace, "%s\n", line);
}

void jobs_print_tail(const struct jobs *j, FILE *to)
{
	uint32_t i = j->tail_at > JOBS_TAIL ? j->tail_at - JOBS_TAIL : 0;

	for (; i < j->tail_at; i++)
		fprintf(to, "  %s\n", j->tail[i % JOBS_TAIL]);
}

/* ---- a domain ---- */

struct job_domain *job_domain(struct job_world *w, uint64_t id)
{
	uint32_t at = HC_NONE, n = sim_map_find(&w->domain_map, id, &at);

	if (n != HC_NONE)
		return &w->domains[n];
	w->domains = sim_grow(w->domains, w->ndomains, &w->domains_cap, sizeof(*w->domains));
	w->domains[w->ndomains] = (struct job_domain){.id = id, .job = HC_NONE, .home = HC_NONE};
	sim_map_add(&w->domain_map, id, w->ndomains);
	return &w->domains[w->ndomains++];
}

void job_check_joined(struct job_world *w, uint32_t node, uint32_t proc, uint64_t id, uint32_t rank)
{
	struct job_domain *d = job_domain(w, id);
	const uint32_t owner = d->owner[rank];

	if (owner && owner != proc + 1 && w->procs[owner - 1].alive)
		job_broken(w,
			   "node %u: rank %u of %016" PRIx64 " is of pid %u, and of pid %u on node "
			   "%u",
			   node, rank, id, w->procs[proc].pid, w->procs[owner - 1].pid,
			   w->procs[owner - 1].node);
	if (!d->committed)
		job_broken(w, "node %u: pid %u joined %016" PRIx64 ", which is not committed", node,
			   w->procs[proc].pid, id);
	/* one that comes back may find it about to end, its row gone and nobody told yet */
	if (!job_store_row(w, node, id) && owner != proc + 1)
		job_broken(w, "node %u: pid %u joined %016" PRIx64 ", of which no row is stored",
			   node, w->procs[proc].pid, id);
	d->owner[rank] = proc + 1;
}

static bool home_is_here(struct job_world *w, uint32_t node, uint64_t id)
{
	const struct hc_core *c = sim_core(w->sim, node);
	const uint32_t n = hc_index_find(&c->part_by_id, id);

	return n != HC_NONE && c->parts[n].home_node == HC_SELF_NODE;
}

/* What the record says is stored; a death on this node, its kernel would say again. */
static bool is_stored(struct job_world *w, uint32_t node, const struct job_record *r)
{
	const struct job_row *row = job_store_row(w, node, r->id);
	const bool here = home_is_here(w, node, r->id);

	switch (r->state) {
	/* elsewhere than at the home what was prepared is enough: the home knows the rest */
	case HC_W_domain_state_ACTIVE:
		return row && (!here || row->state >= HC_W_domain_state_ACTIVE);
	case HC_W_domain_state_DAMAGED:
		return row && (!here || row->state == HC_W_domain_state_DAMAGED ||
			       r->cause_kind == HC_W_event_code_RANK_DIED);
	case HC_W_domain_state_DESTROYED: return !here || !row;
	}
	return true;
}

static const struct hc_home *home_at(struct job_world *w, uint32_t node, uint64_t id)
{
	struct hc_core *c = sim_core(w->sim, node);
	const uint32_t n = c ? hc_index_find(&c->home_by_id, id) : HC_NONE;

	return n == HC_NONE ? NULL : &c->homes[n];
}

static uint32_t node_of(const struct hc_core *c, uint32_t known)
{
	const uint8_t *id = c->nodes[known].id;
	uint32_t i, n = 0;

	for (i = 16; i-- > 8;)
		n = n << 8 | id[i];
	return n - 1;
}

/*
 * A node that was prepared and gave its home up has dropped its row, and the home may hear only
 * then that it had been prepared. It commits in vain: what lives there is missed in the end, unless
 * the domain is damaged.
 */
void job_check_prepared(struct job_world *w, uint32_t node, uint64_t id)
{
	const struct hc_home *h = home_at(w, node, id);
	struct hc_core *c = sim_core(w->sim, node);
	uint32_t i, at;

	for (i = 0; h && i < h->nranks; i++) {
		at = hc_who(c, &c->places[h->places + i])->node;
		at = at == HC_SELF_NODE ? node : node_of(c, at);
		if (at != node && !job_store_row(w, at, id) && !w->nodes[at].boots &&
		    !(job_domain(w, id)->gave_up >> at % JOB_GROUP & 1))
			job_broken(w,
				   "node %u: %016" PRIx64 " is committed, and node %u has not "
				   "stored that it is prepared",
				   node, id, at);
	}
}

/* It drains because of a loss: its home, which may have shown no record, has counted a member. */
static bool tells_loss(const struct job_record *r)
{
	return r->state == HC_W_domain_state_DRAINING &&
	       (r->cause_kind == HC_W_event_code_RANK_DIED ||
		r->cause_kind == HC_W_event_code_NODE_UNREACHABLE ||
		r->cause_kind == HC_W_event_code_NODE_REBORN);
}

void job_check_record(struct job_world *w, uint32_t node, const struct job_record *r,
		      const struct job_record *before)
{
	struct job_domain *d = job_domain(w, r->id);
	const bool same = before->id == r->id;
	const struct hc_home *h;

	/* a gate says the daemon's start, too */
	if (!same && before->tag == r->tag && before->id && before->life == r->life)
		job_broken(w, "node %u: two domains have one tag in one slot", node);
	/* not every number is stored: a restarted daemon hears the present one from the home */
	if (same && before->life == r->life && before->epoch == r->epoch &&
	    r->number < before->number)
		job_broken(w, "node %u: %016" PRIx64 ": number %u after %u", node, r->id, r->number,
			   before->number);
	if (same && before->state >= HC_W_domain_state_DAMAGED &&
	    before->state != HC_W_domain_state_DRAINING && r->state < before->state &&
	    (before->life == r->life ||
	     (home_is_here(w, node, r->id) && before->cause_kind != HC_W_event_code_RANK_DIED)))
		job_broken(w, "node %u: %016" PRIx64 " is %s, and was %s", node, r->id,
			   hc_word_domain_state(r->state), hc_word_domain_state(before->state));
	if (!is_stored(w, node, r))
		job_broken(w, "node %u: %016" PRIx64 " is published as %s, and that is not stored",
			   node, r->id, hc_word_domain_state(r->state));
	/* at its home no record may say it: without a rank there, or before it is stored */
	h = d->home == HC_NONE ? NULL : home_at(w, d->home, r->id);
	d->lost =
		d->lost || r->state == HC_W_domain_state_DAMAGED || (h && h->lost) || tells_loss(r);
	if (r->state != HC_W_domain_state_ACTIVE)
		return;
	d->active = true;
	if (!d->committed)
		job_broken(w, "node %u: %016" PRIx64 " is ACTIVE, and its home has not committed",
			   node, r->id);
	if (d->cancelled)
		job_broken(w, "node %u: %016" PRIx64 " is ACTIVE, and its home has cancelled it",
			   node, r->id);
}

/* ---- words of one node to another ---- */

void job_check_took(struct sim *s, uint32_t node, uint32_t from, uint32_t life,
		    const struct hc_frame *f, void *arg)
{
	struct job_world *w = arg;
	const struct hc_desc *d = hc_desc_msg(f->head.type);
	struct hc_m_cancel m;
	struct job_domain *dom;

	(void)s;
	(void)life;
	if (f->head.type < 100 || f->head.type >= 200)
		return;
	w->nodes[node].steps++;
	job_line(w, node, "<- n%u: %s", from, d ? d->name : "?");
	if (f->head.type != HC_MSG_cancel ||
	    hc_decode(&hc_desc_cancel, HC_PROTO_MAX, f->body, f->body_len, &m) || !m.id)
		return;
	dom = job_domain(w, m.id);
	if (dom->committed && !home_at(w, from, m.id))
		return; /* it has ended since; a part that was restarted had not stored the commit
			 */
	dom->cancelled = true;
	if (dom->committed)
		job_broken(w, "node %u: domain %016" PRIx64 " is cancelled, and was committed",
			   from, m.id);
}

void job_check_step(struct sim *s, uint32_t node, void *arg)
{
	struct job_world *w = arg;
	const char *wrong;

	if (!w->nodes[node].steps || w->j->bad || w->booting)
		return;
	w->nodes[node].steps = 0;
	wrong = world_core_wrong(sim_core(s, node));
	if (!wrong)
		wrong = job_chan_wrong(w, node);
	if (wrong)
		job_broken(w, "node %u: %s", node, wrong);
}

/* ---- in the end ---- */

static const char *say(char *text, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static const char *say(char *text, size_t bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, bytes, fmt, ap);
	va_end(ap);
	return text;
}

/* A part, compared with its home. Forming ones are judged by the answers that their ranks get. */
static const char *part_unsettled(struct job_world *w, uint32_t node, const struct hc_part *p,
				  char *text, size_t bytes)
{
	const struct hc_core *c = sim_core(w->sim, node);
	const uint32_t at = p->home_node == HC_SELF_NODE ? node : node_of(c, p->home_node);
	const struct hc_home *h = p->id ? home_at(w, at, p->id) : NULL;
	const struct job_record *r = job_record(w, node, p->id), *hr;

	if (p->state < HC_W_domain_state_ACTIVE)
		return say(text, bytes, "node %u: %016" PRIx64 " is %s still", node, p->id,
			   hc_word_domain_state(p->state));
	if (p->orphan || (r && !strncmp(r->cause, "its home is lost", 16)))
		return NULL; /* also after a restart: that is what it knows, and it is final */
	if (!h)
		return say(text, bytes, "node %u: %016" PRIx64 " is %s, and its home %u has none",
			   node, p->id, hc_word_domain_state(p->state), at);
	if (p->state == HC_W_domain_state_SUSPENDED || p->away)
		return say(text, bytes, "node %u: %016" PRIx64 " is suspended: %s", node, p->id,
			   r ? r->cause : "?");
	if (p->state != h->state || p->epoch != h->epoch)
		return say(text, bytes, "node %u: %016" PRIx64 " is %s, at its home %u %s", node,
			   p->id, hc_word_domain_state(p->state), at,
			   hc_word_domain_state(h->state));
	hr = job_record(w, at, p->id);
	if (hr && r && p->state == HC_W_domain_state_DAMAGED &&
	    strcmp(hr->cause, r->cause)) /* the kind is not stored */
		return say(text, bytes,
			   "node %u: %016" PRIx64 " is damaged by '%.200s', at its home %u by "
			   "'%.200s'",
			   node, p->id, r->cause, at, hr->cause);
	return NULL;
}

/* A node of which a home says that ranks live there has them. */
static const char *home_unsettled(struct job_world *w, uint32_t node, const struct hc_home *h,
				  char *text, size_t bytes)
{
	struct hc_core *c = sim_core(w->sim, node), *d;
	uint32_t i, at, n;

	if (h->state < HC_W_domain_state_ACTIVE)
		return say(text, bytes, "node %u: %016" PRIx64 " is %s still", node, h->id,
			   hc_word_domain_state(h->state));
	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = &c->places[h->places + i];

		if (!hc_who_lives(pl))
			continue;
		at = hc_who(c, pl)->node == HC_SELF_NODE ? node : node_of(c, hc_who(c, pl)->node);
		d = sim_core(w->sim, at);
		n = d ? hc_index_find(&d->part_by_id, h->id) : HC_NONE;
		if (n == HC_NONE || d->parts[n].orphan)
			return say(text, bytes,
				   "node %u: %016" PRIx64
				   " is %s, rank %u lives on node %u, and that "
				   "one has %s",
				   node, h->id, hc_word_domain_state(h->state), i, at,
				   n == HC_NONE ? "nothing of it" : "an orphan");
		if (d->parts[n].number < h->number)
			return say(text, bytes,
				   "node %u: %016" PRIx64 " is in number %u, on node %u in %u",
				   node, h->id, h->number, at, d->parts[n].number);
	}
	return NULL;
}

static const char *node_unsettled(struct job_world *w, uint32_t node, char *text, size_t bytes)
{
	const struct hc_core *c = sim_core(w->sim, node);
	const char *why = NULL;
	uint32_t i;

	if (!c)
		return say(text, bytes, "node %u has no daemon", node);
	for (i = 0; i < c->part_pool.fresh && !why; i++)
		if (c->parts[i].state != HC_W_domain_state_NONE)
			why = part_unsettled(w, node, &c->parts[i], text, bytes);
	for (i = 0; i < c->home_pool.fresh && !why; i++)
		if (c->homes[i].id)
			why = home_unsettled(w, node, &c->homes[i], text, bytes);
	if (!why && (why = job_chan_unsettled(w, node)))
		why = say(text, bytes, "node %u: %s", node, why);
	return why;
}

const char *job_unsettled(struct job_world *w, char *text, size_t bytes)
{
	const char *why = NULL;
	uint32_t i;

	for (i = 0; i < w->nprocs; i++) {
		const struct job_proc *p = &w->procs[i];

		if (p->alive && p->nwaits)
			return say(text, bytes,
				   "node %u: pid %u waits for an answer (%u, job %u rank %u)",
				   p->node, p->pid, p->waits[0].kind, p->waits[0].job,
				   p->waits[0].rank);
	}
	for (i = 0; i < w->j->nodes && !why; i++)
		why = node_unsettled(w, i, text, bytes);
	return why;
}

const char *job_left_over(struct job_world *w, char *text, size_t bytes)
{
	const char *why = NULL;
	uint32_t i;

	for (i = 0; i < w->nprocs; i++)
		if (w->procs[i].alive)
			return say(text, bytes, "node %u: pid %u has not come to its end",
				   w->procs[i].node, w->procs[i].pid);
	for (i = 0; i < w->j->nodes && !why; i++) {
		const struct hc_core *c = sim_core(w->sim, i);

		why = world_core_left(c);
		why = why ? why : job_chan_left(c);
		if (!why && (c->nsessions || c->process_pool.used))
			why = "a session or a process is left";
		if (why)
			return say(text, bytes, "node %u: %s", i, why);
	}
	return NULL;
}
