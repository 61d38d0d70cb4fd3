/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold after every step, whatever the faults; see hunt.h.
 *
 * A promise is judged by what the simulation knows and the core does not: whose ways had a fault,
 * who stood still, which life of a daemon sent a message. Where a promise leaves the core some
 * time, the bound is that of its own settings and not a guess.
 */
#include "huntimp.h"

#include "simimp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define POSTED    0xfffffffeu /* ticket of a test message: of no path */
#define LOG_LINES 60u         /* of a path in a minute: see hunt_check_log */

__attribute__((format(printf, 2, 3))) void hunt_broken(struct hunt *h, const char *fmt, ...)
{
	va_list ap;

	if (h->bad)
		return;
	h->bad = true;
	va_start(ap, fmt);
	vsnprintf(h->why, sizeof(h->why), fmt, ap);
	va_end(ap);
}

/* ---- a good path is proven ---- */

/* The verdict about proofs, what was given for the core's own lateness, and a look at them. */
static uint64_t proof_bound(const struct hc_core *c, const struct hc_path *p)
{
	return hc_path_window(c, p) + 2 * hc_path_interval(c, p) + p->discount_ns + 2 * SIM_MS;
}

/*
 * How long there was no proof, as the core may count it: not from before it stood still itself, nor
 * from before it judges again a peer whose daemon was down.
 */
static uint64_t since(const struct hunter *w, uint32_t node, const struct hc_core *c,
		      const struct hc_path *p)
{
	const uint64_t thawed = sim_local(w->sim, node, w->thawed[node]);
	uint64_t from = p->proof_at > thawed ? p->proof_at : thawed;

	from = p->judge_from != HC_NEVER && p->judge_from > from ? p->judge_from : from;
	return c->now > from ? c->now - from : 0;
}

static void check_good(struct hunter *w, uint32_t node, const struct hc_core *c,
		       const struct hc_path *p)
{
	const struct hc_peer *peer = &c->net->peers[p->peer];

	if (p->proof_at == HC_NEVER)
		hunt_broken(w->h,
			    "[%" PRIu64 " ms] node %u: path %x is normal and was never proven",
			    sim_now(w->sim) / SIM_MS, node, p->id);
	else if (!hc_peer_excused(c, peer) && since(w, node, c, p) > proof_bound(c, p))
		hunt_broken(w->h,
			    "[%" PRIu64
			    " ms] node %u: path %x is normal, its last proof is %" PRIu64
			    " ms old; its window is %" PRIu64 " ms",
			    sim_now(w->sim) / SIM_MS, node, p->id, (c->now - p->proof_at) / SIM_MS,
			    hc_path_window(c, p) / SIM_MS);
}

/* ---- nobody is accused without a fault ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b; /* HC_NEVER, a fault now, is the latest */
}

static uint64_t well_since(const struct hunter *w, uint32_t a, uint32_t b, uint32_t rail)
{
	const struct hunt_health *ok = &w->ok;

	return later(
		later(later(ok->node[a], ok->node[b]), later(ok->port[a][rail], ok->port[b][rail])),
		later(*hunt_wire_of(w, a, b, rail), *hunt_wire_of(w, b, a, rail)));
}

static bool accuses(const struct hc_path *p)
{
	return p->cause == HC_W_path_cause_MISSES || p->cause == HC_W_path_cause_DEAF ||
	       p->cause == HC_W_path_cause_PROBE;
}

/* Does it know the daemon that runs there now? */
static bool knows(struct sim *s, uint32_t node, uint32_t other)
{
	const struct hc_core *c = sim_core(s, node), *d = sim_core(s, other);
	const uint32_t n = c && d ? hc_peer_find(c, d->self.node_id) : HC_NONE;

	return n != HC_NONE && c->net->peers[n].start == d->self.start &&
	       c->net->peers[n].incarnation == d->self.incarnation;
}

/*
 * The nodes and rail are bytes of the addresses. A daemon that came after a silent crash has to be
 * met first: until then its frames are nobody's, and the silence of the one before is no false
 * word.
 */
static void check_accused(struct hunter *w, uint32_t node, const struct hc_core *c,
			  const struct hc_path *p)
{
	const uint8_t *at = p->remote.addr.bytes;
	const uint32_t rail = at[1], to = (uint32_t)at[2] << 8 | at[3];
	const uint64_t now = sim_now(w->sim);
	uint64_t well = well_since(w, node, to, rail);

	if (p->since != c->now || !accuses(p) || well == HC_NEVER)
		return;
	if (!knows(w->sim, node, to) || !knows(w->sim, to, node))
		return;
	if (now - well > 2 * hc_path_down_window(c, p) + c->set.probe_timeout_ns)
		hunt_broken(w->h,
			    "[%" PRIu64
			    " ms] node %u: path %x to %u is accused (%s), and nothing was "
			    "wrong for %" PRIu64 " ms",
			    now / SIM_MS, node, p->id, to, p->cause_text, (now - well) / SIM_MS);
}

/* ---- a peer ---- */

static void check_peer(struct hunter *w, uint32_t node, const struct hc_peer *p)
{
	if (p->state == HC_W_node_state_UP && !p->conns)
		hunt_broken(w->h, "[%" PRIu64 " ms] node %u: %s is up and never had a connection",
			    sim_now(w->sim) / SIM_MS, node, p->name);
	if (p->npaths > HC_PEER_PATHS || (int32_t)(p->sent - p->acked) < 0)
		hunt_broken(w->h, "[%" PRIu64 " ms] node %u: counters of %s are impossible",
			    sim_now(w->sim) / SIM_MS, node, p->name);
}

void hunt_check(struct sim *s, uint32_t node, void *arg)
{
	struct hunter *w = arg;
	const struct hc_core *c = sim_core(s, node);
	const struct hc_path *p;
	uint32_t i;

	for (i = 0; i < c->net->path_top; i++) {
		p = &c->net->paths[i];
		if (!p->id)
			continue;
		if (p->state == HC_W_path_state_NORMAL || p->state == HC_W_path_state_CONGESTED)
			check_good(w, node, c, p);
		else if (p->state != HC_W_path_state_UNKNOWN)
			check_accused(w, node, c, p);
	}
	for (i = 0; i < c->net->peer_pool.fresh; i++)
		if (c->net->peers[i].used)
			check_peer(w, node, &c->net->peers[i]);
}

/* ---- control loses nothing ---- */

struct post {
	uint32_t peer, number;
};

static void send_it(struct hc_core *c, void *arg)
{
	const struct post *p = arg;
	const struct hc_m_peer_heard_r m = {.ticket = POSTED, .age_ms = p->number};

	hc_peer_send(c, p->peer, &hc_desc_peer_heard_r, &m);
}

void hunt_post(struct hunter *w, uint32_t from, uint32_t to)
{
	struct hunt_mail *m = hunt_mail_of(w, from, to);
	struct hc_core *c = sim_runs(w->sim, from) ? sim_core(w->sim, from) : NULL;
	struct hc_peer *p;
	struct post post;
	uint64_t overflows;
	uint8_t id[16];

	sim_identity(w->sim, to, id);
	post.peer = c ? hc_peer_find(c, id) : HC_NONE;
	if (post.peer == HC_NONE)
		return;
	if (m->from_life != sim_life(w->sim, from))
		m->sent = m->took = 0;
	m->from_life = sim_life(w->sim, from);
	post.number = ++m->sent;
	p = &c->net->peers[post.peer];
	overflows = p->overflows;
	sim_do(w->sim, from, send_it, &post);
	if (p->overflows != overflows)
		m->took = m->to_life = 0; /* it was told that some are lost */
}

/* Between two lives, each message is the successor of the one before. */
void hunt_took(struct sim *s, uint32_t node, uint32_t from, uint32_t life, const struct hc_frame *f,
	       void *arg)
{
	struct hunter *w = arg;
	struct hunt_mail *m = hunt_mail_of(w, from, node);
	struct hc_m_peer_heard_r r;

	if (f->head.type != HC_MSG_peer_heard_r ||
	    hc_decode(&hc_desc_peer_heard_r, HC_PROTO_MAX, f->body, f->body_len, &r) ||
	    r.ticket != POSTED || life != m->from_life)
		return; /* no test, or a word of a life that is over */
	if (m->to_life == sim_life(s, node) && m->took && r.age_ms != m->took + 1)
		hunt_broken(w->h,
			    "[%" PRIu64 " ms] node %u: message %u of node %u follows message %u",
			    sim_now(s) / SIM_MS, node, r.age_ms, from, m->took);
	m->to_life = sim_life(s, node);
	m->took = r.age_ms;
}

bool hunt_mail_came(const struct hunter *w)
{
	uint32_t a, b;

	for (a = 0; a < w->h->nodes; a++)
		for (b = 0; b < w->h->nodes; b++)
			if (hunt_mail_of(w, a, b)->took != hunt_mail_of(w, a, b)->sent)
				return false;
	return true;
}

/* ---- the log ---- */

static bool is_of_path(const struct sim_said *l)
{
	return !strncmp(l->text, "path to ", 8) && strchr(l->text, ')');
}

static bool same_path(const struct sim_said *a, const struct sim_said *b)
{
	const size_t len = (size_t)(strchr(a->text, ')') - a->text);

	return a->node == b->node && is_of_path(b) && !strncmp(a->text, b->text, len);
}

/*
 * A path that flaps is told of three times, each time with two or three lines, and when it is held
 * out and comes back: ten lines a round. Then it is held out for a second, two, four, ... without a
 * word, so a minute has room for six rounds, if it flaps again the moment that it is back.
 */
void hunt_check_log(struct hunter *w)
{
	uint32_t n, i, k, lines;
	const struct sim_said *said = sim_said(w->sim, &n);

	for (i = 0; i < n; i++) {
		if (!is_of_path(&said[i]))
			continue;
		for (lines = 0, k = i + 1; k-- && said[i].at - said[k].at < 60 * SIM_S;)
			lines += same_path(&said[i], &said[k]);
		if (lines > w->h->lines)
			w->h->lines = lines;
		if (lines > LOG_LINES)
			hunt_broken(w->h, "[%" PRIu64 " ms] node %u: %u lines in a minute: %s",
				    said[i].at / SIM_MS, said[i].node, lines, said[i].text);
	}
}
