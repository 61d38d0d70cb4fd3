/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of the shell; see views.h.
 *
 * A page of rows fills at most a packet. The journal is read by the store's thread, which also
 * encodes the rows, so that a long one costs the main loop nothing but the sending.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "codec.h"
#include "frame.h"
#include "log.h"
#include "loopnet.h"
#include "peers.h"
#include "reload.h"
#include "shell.h"
#include "views.h"

#define PAGE_BYTES (HC_PACKET_MAX - HC_HEAD_BYTES - 64u)
#define SECOND_NS  1000000000u

struct page {
	uint16_t view, proto;
	uint32_t nrows;
	uint64_t cursor, snapshot;
	size_t used;
	uint8_t rows[PAGE_BYTES];
};

/* False: the page is full. */
static bool page_add(struct page *p, const struct hc_desc *d, const void *row)
{
	size_t len;

	if (hc_encode(d, p->proto, row, p->rows + p->used, sizeof(p->rows) - p->used, &len))
		return false;
	p->used += len;
	p->nrows++;
	return true;
}

static void page_send(struct hc_shell *sh, uint64_t session, uint32_t id, const struct page *p)
{
	struct hc_m_query_r m = {.view = p->view,
				 .cursor = p->cursor,
				 .snapshot = p->snapshot,
				 .nrows = p->nrows,
				 .rows = {(const char *)p->rows, (uint32_t)p->used}};

	hc_ctl_answer(sh->ctl, session, id, &hc_desc_query_r, &m);
}

static struct hc_str cut(const char *text, uint32_t max)
{
	struct hc_str s = hc_str(text);

	if (s.len > max)
		s.len = max;
	return s;
}

/* ---- status ---- */

static const char *drain_text(const struct hc_core_counts *core, char text[64])
{
	int n;

	if (!core->drained)
		return "no";
	n = snprintf(text, 64, "%u domain%s left", core->domains, core->domains == 1 ? "" : "s");
	if (core->drain_ns)
		snprintf(text + n, 64 - (size_t)n, ", waiting at most %u s more",
			 (unsigned)(core->drain_ns / SECOND_NS) + 1);
	else
		snprintf(text + n, 64 - (size_t)n, ", no new ones");
	return text;
}

static void network_counts(const struct hc_loopnet *net, struct hc_m_view_status *m)
{
	struct hc_peers_counts n;

	m->refused_datagrams += hc_loopnet_refused(net);
	hc_loopnet_strangers(net, &n);
	m->wrong_key = n.wrong_key;
	m->wrong_cluster = n.other_cluster;
	m->strangers = n.strangers;
	m->no_room = n.turned_away;
}

static void status_counts(struct hc_shell *sh, const struct hc_core_counts *core,
			  struct hc_m_view_status *m, char drain[64])
{
	struct hc_ctl_counts ctl;

	hc_ctl_counts(sh->ctl, &ctl);
	m->domains = core->domains;
	m->active = core->active;
	m->forming = core->forming;
	m->damaged = core->damaged;
	m->ranks = core->ranks;
	m->clients = ctl.sessions;
	m->devices = core->devices;
	m->simulated = core->simulated;
	m->channels = core->channels;
	m->waiting = core->waiting;
	m->granted_at_once = core->granted_at_once;
	m->granted_later = core->granted_later;
	m->channel_refused = core->channel_refused;
	m->hints_kept = core->hints_kept;
	m->hints_broken = core->hints_broken;
	m->hints_unknown = core->hints_unknown;
	m->lapsed = core->lapsed;
	m->peers = core->peers;
	m->peers_up = core->peers_up;
	m->paths = core->paths;
	m->paths_good = core->paths_good;
	m->stalls = core->stalls;
	m->refused_datagrams = core->refused_datagrams;
	if (sh->net)
		network_counts(sh->net, m);
	m->requests = core->requests + ctl.served;
	m->refused = core->refused + ctl.refused;
	m->malformed = ctl.malformed;
	m->events_lost = ctl.events_lost;
	m->drain = hc_str(drain_text(core, drain));
}

static void id_text(const uint8_t id[16], char out[33])
{
	int i;

	for (i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

static void storage_text(const struct hc_store_state *st, char text[HC_NAME_MAX + 1])
{
	const unsigned slow_s = hc_shell_slow_s(st);

	if (st->lost)
		snprintf(text, HC_NAME_MAX + 1, "not persistent: %.110s", st->why);
	else if (slow_s)
		snprintf(text, HC_NAME_MAX + 1, "slow: a write has taken %u s so far", slow_s);
	else
		snprintf(text, HC_NAME_MAX + 1, "ok");
}

static void show_status(struct hc_shell *sh, struct page *p)
{
	char node[33], drain[64], remark[HC_TEXT_MAX + 1], socket[256], storage[HC_NAME_MAX + 1];
	struct hc_m_view_status m;
	struct hc_core_counts core;
	struct hc_store_state st;
	bool degraded;

	memset(&m, 0, sizeof(m));
	hc_loop_counts(sh->loop, &core);
	status_counts(sh, &core, &m, drain);
	hc_store_state(sh->store, &st);
	id_text(sh->self.node_id, node);
	degraded = hc_shell_remark(sh, &core, &st, remark, sizeof(remark));
	snprintf(socket, sizeof(socket), "%s (%s)", sh->sock.path,
		 sh->sock.activated ? "of the service manager's socket unit"
		 : sh->sock.foreign ? "replaced by something that is not ours"
				    : "made by hcommd");
	storage_text(&st, storage);
	m.node = cut(sh->self.name, HC_NAME_MAX);
	m.node_id = hc_str(node);
	m.instance = hc_str(sh->conf.instance);
	m.version = hc_str(sh->self.build);
	m.pid = (uint32_t)getpid();
	m.start = sh->self.start;
	m.uptime_s = (hc_loop_now() - sh->started_ns) / SECOND_NS;
	m.health = hc_str(degraded ? "degraded" : "ok");
	m.remark = hc_str(remark);
	m.fence = hc_str(hc_loop_fences(sh->loop) ? "membarrier" : "atomics");
	m.security = hc_str(!sh->self.peers ? "alone" : sh->self.security ? "none" : "key");
	m.listen_port = sh->self.peers ? sh->self.port : 0;
	m.socket = hc_str(socket);
	m.storage = hc_str(storage);
	m.commits = st.commits;
	page_add(p, &hc_desc_view_status, &m);
}

/* ---- settings ---- */

static bool add_setting(const struct hc_shell *sh, struct page *p, const struct hc_conf_value *v)
{
	char origin[HC_CONF_ORIGIN_MAX];
	struct hc_m_view_setting m;

	memset(&m, 0, sizeof(m));
	m.name = cut(v->label, HC_NAME_MAX);
	m.value = cut(v->text, HC_TEXT_MAX);
	m.origin = cut(hc_conf_origin_text(&sh->conf, v->opt, v->origin, origin, sizeof(origin)),
		       HC_TEXT_MAX);
	if (v->opt) {
		m.unit = v->opt->kind == HC_KIND_ENUM ? hc_str("") : cut(v->opt->unit, HC_NAME_MAX);
		m.reloadable = v->opt->reloadable;
		m.what = cut(v->opt->text, HC_TEXT_MAX);
	}
	return page_add(p, &hc_desc_view_setting, &m);
}

static bool is_wanted(const struct hc_m_query *q, const char *name)
{
	return !q->name.len || hc_str_eq(q->name, hc_str(name));
}

static void show_settings(struct hc_shell *sh, const struct hc_m_query *q, struct page *p)
{
	struct hc_conf_value *v = malloc(sizeof(*v));
	size_t cursor = 0;
	uint64_t at;

	p->snapshot = sh->generation;
	for (at = 0; v && hc_conf_next(&sh->conf, &cursor, v); at++) {
		if (at < q->cursor || !is_wanted(q, v->label))
			continue;
		if (q->limit && p->nrows >= q->limit)
			break;
		if (!add_setting(sh, p, v)) {
			p->cursor = at;
			break;
		}
	}
	free(v);
}

/* ---- the journal ---- */

struct journal {
	struct hc_store_query query; /* first */
	struct hc_shell *sh;
	uint64_t session;
	uint32_t id;
	uint64_t last; /* number of the last row of the page */
	struct page page;
};

static void time_text(uint64_t wall_ns, char out[40])
{
	time_t s = (time_t)(wall_ns / SECOND_NS);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 40 - n, ".%06" PRIu64 "Z", wall_ns % SECOND_NS / 1000u);
}

static int add_event(struct hc_store_query *query, const struct hc_db_event *e)
{
	struct journal *j = (struct journal *)query;
	struct hc_m_view_event m;
	char when[40];

	time_text(e->wall_ns, when);
	memset(&m, 0, sizeof(m));
	m.seq = e->seq;
	m.time = hc_str(when);
	m.code = hc_str(hc_word_event_code(e->kind));
	m.domain = e->domain;
	m.epoch = e->epoch;
	m.rank = e->rank == HC_NONE ? -1 : (int32_t)e->rank;
	m.pid = e->pid;
	m.uid = e->uid;
	m.text = e->text;
	if (m.text.len > HC_TEXT_MAX)
		m.text.len = HC_TEXT_MAX;
	if (!page_add(&j->page, &hc_desc_view_event, &m)) {
		j->page.cursor = j->last;
		return 1;
	}
	j->last = e->seq;
	return 0;
}

static void events_done(struct hc_store_query *query)
{
	struct journal *j = (struct journal *)query;

	if (query->result)
		hc_ctl_refuse(j->sh->ctl, j->session, j->id, HC_E_STORAGE,
			      "the event journal cannot be read");
	else
		page_send(j->sh, j->session, j->id, &j->page);
	free(j);
}

static void ask_events(struct hc_shell *sh, uint64_t session, uint32_t id, uint16_t proto,
		       const struct hc_m_query *q)
{
	struct journal *j = calloc(1, sizeof(*j));
	struct timespec now;

	if (!j) {
		hc_ctl_refuse(sh->ctl, session, id, HC_E_RESOURCE_EXHAUSTED,
			      "the daemon is out of memory");
		return;
	}
	j->sh = sh;
	j->session = session;
	j->id = id;
	j->page.view = q->view;
	j->page.proto = proto;
	j->query.row = add_event;
	j->query.done = events_done;
	j->query.filter.after = q->cursor;
	j->query.filter.domain = q->id;
	j->query.filter.limit = q->limit;
	j->query.filter.newest = !q->cursor;
	if (q->since_s) {
		clock_gettime(CLOCK_REALTIME, &now);
		j->query.filter.since_ns =
			(uint64_t)(now.tv_sec > q->since_s ? now.tv_sec - q->since_s : 0) *
			SECOND_NS;
	}
	hc_store_ask(sh->store, &j->query);
}

/* ---- queries ---- */

bool hc_views_owns(unsigned view)
{
	return view == HC_VIEW_status || view == HC_VIEW_setting || view == HC_VIEW_event;
}

void hc_views_query(struct hc_shell *sh, uint64_t session, uint32_t id, uint16_t proto,
		    const struct hc_m_query *q)
{
	struct page *p;

	if (q->view == HC_VIEW_event) {
		if (q->name.len)
			hc_ctl_refuse(sh->ctl, session, id, HC_E_INVALID,
				      "events are selected by domain id, not by name");
		else
			ask_events(sh, session, id, proto, q);
		return;
	}
	if (q->view == HC_VIEW_setting && q->snapshot && q->snapshot != sh->generation) {
		hc_ctl_refuse(sh->ctl, session, id, HC_E_STALE,
			      "the configuration was reloaded while it was listed");
		return;
	}
	p = malloc(sizeof(*p));
	if (!p) {
		hc_ctl_refuse(sh->ctl, session, id, HC_E_RESOURCE_EXHAUSTED,
			      "the daemon is out of memory");
		return;
	}
	memset(p, 0, offsetof(struct page, rows));
	p->view = q->view;
	p->proto = proto;
	if (q->view == HC_VIEW_setting)
		show_settings(sh, q, p);
	else if (!q->cursor)
		show_status(sh, p);
	page_send(sh, session, id, p);
	free(p);
}

/* ---- words of operators ---- */

bool hc_views_verb(struct hc_str verb)
{
	return hc_str_eq(verb, hc_str("reload")) || hc_str_eq(verb, hc_str("log-level"));
}

static bool level_of(struct hc_str word, enum hc_level *level)
{
	static const char *const words[] = {"error", "warn", "info", "debug"};
	unsigned i;

	for (i = 0; i < 4; i++) {
		if (!hc_str_eq(word, hc_str(words[i])))
			continue;
		*level = (enum hc_level)i;
		return true;
	}
	return false;
}

void hc_views_admin(struct hc_shell *sh, uint64_t session, uint32_t id, const struct hc_m_admin *m)
{
	enum hc_level level;

	if (hc_str_eq(m->verb, hc_str("reload"))) {
		hc_reload(sh, session, id);
		return;
	}
	if (!level_of(m->argument, &level)) {
		hc_ctl_refuse(sh->ctl, session, id, HC_E_INVALID,
			      "log-level takes one of error, warn, info, debug");
		return;
	}
	hc_log_set(level, sh->conf.log_rate);
	hc_ctl_done(sh->ctl, session, id, "until the next reload or restart");
}
