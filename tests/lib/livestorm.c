/* SPDX-License-Identifier: Apache-2.0 */
/* A storm of real clients at a running daemon; see livestorm.h. */
#include "livestorm.h"
#include "ledger.h"
#include "ranks.h"
#include "raw.h"
#include "users.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A client that acts so much later than it meant to, or an answer that takes so long, says that the
 * machine stood still; returns are counted apart until that is made up for. */
#define STILL_NS     20000000u
#define DISTURBED_NS 500000000u

enum { ASKS = 200000, LINK_MBPS = 1000, PATIENCE_MS = 60000 };

enum doing { WAITS, WON, AWAY, HOLDS };

/* What the parent sees of one. */
struct account {
	uint64_t granted, asked, returns, kept, hints, unknown, disturbed, lost;
};

struct shared {
	_Atomic int counting, stop;
	_Atomic uint32_t asks;
	_Atomic uint64_t disturbed_until;
	uint32_t ask_ns[ASKS];
	struct account client[HC_LIVE_CLIENTS];
};

struct client {
	struct hcomm_session *s;
	hcomm_domain d;
	hcomm_channel ch;
	struct hcomm_channel_args args;
	enum doing doing;
	uint64_t at; /* when it acts next, 0 = when it is told */
	uint64_t hold_ns;
	bool hinted;
	struct account *a;
};

struct crew { /* clients of one process */
	const struct hc_live *set;
	struct shared *shared;
	unsigned first, count;
	uint64_t dice;
	struct client c[HC_LIVE_CLIENTS];
};

static struct hc_node node;

/* ---- one client ---- */

_Noreturn static void is_refused(const char *what, int r)
{
	hc_fail("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

static bool counts(const struct crew *w)
{
	return w->shared->counting;
}

static unsigned hold_ms(struct crew *w)
{
	w->dice = w->dice * 6364136223846793005u + 1442695040888963407u;
	return w->set->hold_ms / 2 + (unsigned)(w->dice >> 33) % (w->set->hold_ms + 1);
}

static void note_ask(struct crew *w, uint64_t ns)
{
	uint32_t n;

	if (!counts(w))
		return;
	n = atomic_fetch_add(&w->shared->asks, 1);
	if (n < ASKS)
		w->shared->ask_ns[n] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void holds(struct crew *w, struct client *c, uint64_t now)
{
	if (counts(w))
		c->a->granted++;
	c->doing = HOLDS;
	c->at = now + c->hold_ns;
}

static void told_to_come_back(struct crew *w, struct client *c, uint64_t now)
{
	const uint32_t ms = hcomm_retry_after();

	c->doing = AWAY;
	c->hinted = ms != HCOMM_UNKNOWN;
	c->at = now + (c->hinted ? ms : w->set->hold_ms) * 1000000ull;
	if (!counts(w))
		return;
	c->a->hints += c->hinted;
	c->a->unknown += !c->hinted;
}

/* Without waiting. `again`: it came back. */
static void tries(struct crew *w, struct client *c, uint64_t now, bool again)
{
	const bool hinted = again && c->hinted && counts(w);
	const bool disturbed = now < w->shared->disturbed_until;
	int r = hcomm_channel_acquire(c->d, &c->args, PATIENCE_MS, &c->ch);
	const uint64_t end = hc_now_ns();

	if (r && r != HCOMM_E_AGAIN)
		is_refused("try", r);
	if (r)
		note_ask(w, end - now);
	if (end - now > STILL_NS)
		w->shared->disturbed_until = end + DISTURBED_NS;
	c->a->returns += hinted;
	c->a->kept += hinted && !r;
	c->a->disturbed += hinted && disturbed;
	c->a->lost += hinted && disturbed && r;
	if (r)
		told_to_come_back(w, c, end);
	else
		holds(w, c, end);
}

static void asks(struct crew *w, struct client *c, uint64_t now)
{
	const unsigned hold = hold_ms(w);
	int r;

	c->hold_ns = hold * 1000000ull;
	c->args.hold_ms = w->set->declares ? hold : 0;
	if (counts(w))
		c->a->asked++;
	if (!c->args.wait) {
		tries(w, c, now, false);
		return;
	}
	c->doing = WAITS;
	c->at = 0;
	r = hcomm_channel_acquire(c->d, &c->args, HCOMM_START, &c->ch);
	if (r != HCOMM_E_IN_PROGRESS)
		is_refused("wait", r);
}

static void acts(struct crew *w, struct client *c, uint64_t now)
{
	uint32_t word;
	int r;

	switch (c->doing) {
	case WAITS: return;
	case WON:
		r = hcomm_channel_status(c->ch, &word); /* the first use opens it */
		if (r || (word & 0xff) != HCOMM_CHANNEL_OK)
			is_refused("open", r);
		holds(w, c, hc_now_ns());
		return;
	case AWAY: tries(w, c, now, true); return;
	case HOLDS:
		r = hcomm_channel_release(c->ch);
		if (r)
			is_refused("release", r);
		asks(w, c, hc_now_ns());
		return;
	}
}

static void on_event(const struct hcomm_event *e, void *context)
{
	struct client *c = context;

	if (e->code == HCOMM_EV_CHANNEL_REFUSED || e->code == HCOMM_EV_CHANNEL_REVOKED)
		hc_fail("a client was told %u: %s", e->code, e->text);
	if (e->code != HCOMM_EV_CHANNEL_GRANTED || e->channel != c->ch)
		return;
	c->doing = WON;
	c->at = 1;
}

static void begins(struct crew *w, unsigned i)
{
	const unsigned number = w->first + i, link = number % HC_LIVE_LINKS;
	const uint32_t devices[2] = {2 * link, 2 * link + 1};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct client *c = &w->c[i];

	config.shared = 1;
	*c = (struct client){.args = HCOMM_INIT(struct hcomm_channel_args),
			     .a = &w->shared->client[number]};
	c->args.peer = 1;
	c->args.bandwidth_mbps = c->args.back_mbps = LINK_MBPS * 80 / 100 / w->set->at_once;
	c->args.wait = number / HC_LIVE_LINKS % 4 < w->set->waiting;
	c->args.path_type = link == HC_LIVE_LINKS - 1 ? HCOMM_LINK_SHM : HCOMM_LINK_HCCS;
	c->args.flags =
		HCOMM_CHANNEL_FROM | (link == HC_LIVE_LINKS - 1 ? 0 : HCOMM_CHANNEL_GRANT_ONLY);
	c->args.buffer_bytes = link == HC_LIVE_LINKS - 1 ? 4096 : 0;
	if (hcomm_open(NULL, &c->s) || hcomm_on_event(c->s, on_event, c) ||
	    hcomm_join_all_local(c->s, devices, 2, &config, PATIENCE_MS, &c->d))
		hc_fail("client %u: %s", number, hcomm_last_error());
}

/* ---- a process of them ---- */

static int wait_ms(const struct crew *w, uint64_t now)
{
	uint64_t next = now + 50000000u;

	for (unsigned i = 0; i < w->count; i++)
		if (w->c[i].at && w->c[i].at < next)
			next = w->c[i].at;
	return next <= now ? 0 : (int)((next - now + 999999u) / 1000000u);
}

static void round_of(struct crew *w, struct pollfd *p)
{
	uint64_t now = hc_now_ns();

	if (poll(p, w->count, wait_ms(w, now)) < 0 && errno != EINTR)
		hc_fail("poll: %s", strerror(errno));
	for (unsigned i = 0; i < w->count; i++)
		if (p[i].revents && hcomm_dispatch(w->c[i].s, 0) < 0)
			hc_fail("dispatch: %s", hcomm_last_error());
	for (unsigned i = 0; i < w->count; i++) {
		now = hc_now_ns();
		if (w->c[i].at > 1 && w->c[i].at + STILL_NS < now)
			w->shared->disturbed_until = now + DISTURBED_NS;
		if (w->c[i].at && w->c[i].at <= now)
			acts(w, &w->c[i], now);
	}
}

static int process(void *arg, int in, int out)
{
	static struct pollfd p[HC_LIVE_CLIENTS];
	struct crew *w = arg;
	char x = 1;

	for (unsigned i = 0; i < w->count; i++) {
		begins(w, i);
		p[i] = (struct pollfd){.fd = hcomm_fd(w->c[i].s), .events = POLLIN};
	}
	hc_tell(out, &x, 1);
	hc_hear(in, &x, 1, PATIENCE_MS);
	for (unsigned i = 0; i < w->count; i++)
		asks(w, &w->c[i], hc_now_ns());
	while (!w->shared->stop)
		round_of(w, p);
	for (unsigned i = 0; i < w->count; i++)
		hcomm_close(w->c[i].s);
	return 0;
}

/* ---- the parent ---- */

static void start_node(void)
{
	char sections[1024], *at = sections, *end = sections + sizeof(sections);
	unsigned k;

	for (k = 0; k + 1 < HC_LIVE_LINKS; k++)
		at += snprintf(at, (size_t)(end - at),
			       "[link %u %u]\ntype = hccs\nbandwidth_mbps = %d\n", 2 * k, 2 * k + 1,
			       LINK_MBPS);
	snprintf(at, (size_t)(end - at), "[link any any]\nbandwidth_mbps = %d\n", LINK_MBPS);
	hc_node_prepare(&node, 2 * HC_LIVE_LINKS, "orphan_grace_s = 1", sections);
	hc_conf_set(&node, "log_level", "warn");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

static void sample(int fd, uint64_t until_ms, struct hc_live_result *out)
{
	struct hc_ledger l;

	while (hc_now_ms() < until_ms) {
		hc_ledger_read(fd, &l);
		out->samples++;
		out->whole += l.whole;
		poll(NULL, 0, 20);
	}
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 100.0;
}

static bool waits(const struct hc_live *set, unsigned client)
{
	return client / HC_LIVE_LINKS % 4 < set->waiting;
}

/* How equal the shares of one link's clients of one kind are; 1 where there are none. */
static double jain_of(const struct hc_live *set, const struct shared *sh, unsigned link, bool wait,
		      struct hc_live_result *out)
{
	double sum = 0, squares = 0;
	unsigned n = 0;

	for (unsigned i = link; i < set->clients; i += HC_LIVE_LINKS) {
		const uint64_t g = sh->client[i].granted;

		if (waits(set, i) != wait)
			continue;
		n++;
		sum += (double)g;
		squares += (double)g * (double)g;
		if (g < out->fewest[!wait])
			out->fewest[!wait] = g;
		if (g > out->most[!wait])
			out->most[!wait] = g;
	}
	return n ? (squares > 0 ? sum * sum / (squares * n) : 0) : 1;
}

static void judge_shares(const struct hc_live *set, const struct shared *sh,
			 struct hc_live_result *out)
{
	for (int wait = 0; wait < 2; wait++) {
		out->fewest[!wait] = UINT64_MAX;
		out->jain[!wait] = 1;
		for (unsigned link = 0; link < HC_LIVE_LINKS; link++) {
			const double j = jain_of(set, sh, link, wait, out);

			if (j < out->jain[!wait])
				out->jain[!wait] = j;
		}
	}
}

/* A busy machine serves fewer in the time, and few are never equal. */
static void count(int fd, const struct hc_live *set, struct shared *sh, struct hc_live_result *out)
{
	uint64_t granted = 0;

	sh->counting = 1;
	for (int i = 0; i < 10 && granted < (uint64_t)set->grants_least * set->clients + 1; i++) {
		sample(fd, hc_now_ms() + set->length_ms, out);
		granted = 0;
		for (unsigned k = 0; k < set->clients; k++)
			granted += __atomic_load_n(&sh->client[k].granted, __ATOMIC_RELAXED);
	}
	sh->counting = 0;
}

static void sum_up(const struct hc_live *set, const struct shared *sh, struct hc_live_result *out)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < set->clients; i++) {
		const struct account *a = &sh->client[i];

		out->granted += a->granted;
		out->asked += a->asked;
		out->returns += a->returns;
		out->kept += a->kept;
		out->hints += a->hints;
		out->unknown += a->unknown;
		out->disturbed += a->disturbed;
		lost += a->lost;
	}
	out->success_percent = percent(out->kept, out->returns);
	out->calm_percent =
		percent(out->kept + lost - out->disturbed, out->returns - out->disturbed);
	judge_shares(set, sh, out);
}

static int by_size(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void judge_times(struct shared *sh, struct hc_live_result *out)
{
	const uint32_t n = sh->asks < ASKS ? sh->asks : ASKS;

	if (!n)
		return;
	qsort(sh->ask_ns, n, sizeof(sh->ask_ns[0]), by_size);
	out->ask_p50_ns = sh->ask_ns[n / 2];
	out->ask_p99_ns = sh->ask_ns[(uint64_t)n * 99 / 100];
}

static void set_out(const struct hc_live *set, struct shared *sh, struct crew *crew,
		    struct hc_child *child)
{
	const unsigned share = (set->clients + set->processes - 1) / set->processes;
	char x = 1;

	for (unsigned i = 0; i < set->processes; i++) {
		const unsigned first = i * share;

		crew->set = set;
		crew->shared = sh;
		crew->first = first;
		crew->count = set->clients - first < share ? set->clients - first : share;
		crew->dice = set->seed * 1000003u + i;
		hc_spawn(&child[i], process, crew);
	}
	for (unsigned i = 0; i < set->processes; i++)
		hc_child_read(&child[i], &x, 1, PATIENCE_MS);
	for (unsigned i = 0; i < set->processes; i++)
		hc_child_tell(&child[i], &x, 1);
}

/* The daemon's own figures grow from its start. */
static void difference(const struct hcomm_view_status *from, const struct hcomm_view_status *to,
		       uint64_t cpu_ms, struct hc_live_result *out)
{
	const uint64_t kept = to->hints_kept - from->hints_kept;
	const uint64_t grants = to->granted_at_once + to->granted_later - from->granted_at_once -
				from->granted_later;

	out->hint_percent = percent(kept, kept + to->hints_broken - from->hints_broken);
	if (grants)
		out->daemon_cpu_us = 1000.0 * (double)cpu_ms / (double)grants;
}

void hc_live_run(const struct hc_live *set, struct hc_live_result *out)
{
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct crew *crew = calloc(1, sizeof(*crew));
	struct hc_child child[16] = {{0}};
	struct hcomm_view_status from, to;
	uint64_t cpu;
	int fd;

	hc_want(crew && sh != MAP_FAILED && set->clients <= HC_LIVE_CLIENTS &&
		set->processes <= 16);
	memset(out, 0, sizeof(*out));
	start_node();
	fd = hc_ledger_open(&node);
	set_out(set, sh, crew, child);
	sample(fd, hc_now_ms() + set->warm_ms, out);
	hc_ask_status(&from);
	cpu = hc_proc_cpu_ms(node.pid);
	count(fd, set, sh, out);
	hc_ask_status(&to);
	cpu = hc_proc_cpu_ms(node.pid) - cpu;
	sh->stop = 1;
	for (unsigned i = 0; i < set->processes; i++)
		hc_want(hc_child_wait(&child[i], PATIENCE_MS) == 0);
	hc_ledger_await_empty(fd, 10000);
	close(fd);
	hc_node_end(&node);
	difference(&from, &to, cpu, out);
	sum_up(set, sh, out);
	judge_times(sh, out);
	munmap(sh, sizeof(*sh));
	free(crew);
}
