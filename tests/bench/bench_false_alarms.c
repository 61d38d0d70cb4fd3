/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: no path is called UNSTABLE without a fault, with 64 nodes that beat each 10 ms and with
 * 1,000 that beat each 50 ms, while four busy loops keep both processors and 2 % of all datagrams
 * get lost, either way. And nobody is accused after the daemon itself stood still for a second.
 *
 * The daemon runs as its unit runs it, with nice -10.
 * The nodes are a crowd (crowd.h) that stands for other machines, so it runs before all else; what
 * it sends late nevertheless is in its log, and an alarm about a node that really was silent for
 * two intervals is told apart ("excused") and not counted. Alarms come to a subscribed client.
 *
 * FRR's bfdd does the same beside it: 64 sessions of 10 ms x 3, the watching one like our daemon,
 * the other one like the crowd, the same load and loss.
 *
 * Seconds of each part: 60; HC_BENCH_ROUNDS says another number; with HC_LONG=1: 600.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "crowd.h"
#include "eventwatch.h"
#include "bed.h"
#include "netns.h"
#include "nodebench.h"
#include "wire.h"

#define NAME "false_alarms"
#define PORT 16720u
#define S    1000000000ull
#define MS   1000000ull

enum { BUSY = 4, LOSS = 2, ALARMS_MAX = 4096, STANDSTILLS = 5, SESSIONS = 64 };

struct part {
	const char *name;
	uint32_t nodes, interval_ms;
};

static const struct part parts[] = {{"64 x 10 ms x 3", 64, 10}, {"1000 x 50 ms x 3", 1000, 50}};

struct alarm {
	uint64_t at;
	uint32_t node;
	char text[200];
};

struct heard {
	struct alarm alarms[ALARMS_MAX];
	uint32_t nalarms;
	uint32_t not_scheduled;
};

struct before { /* what had happened before it was counted */
	struct crowd_counts crowd;
	uint64_t overflows;
};

struct verdicts {
	uint32_t alarms, excused;
};

static bool accuses(uint32_t code)
{
	return code == HC_W_event_code_PATH_UNSTABLE || code == HC_W_event_code_PATH_DOWN ||
	       code == HC_W_event_code_PATH_HELD_OUT || code == HC_W_event_code_DAEMON_DOWN ||
	       code == HC_W_event_code_NODE_UNREACHABLE;
}

static void on_event(const struct hcomm_event *e, uint64_t at_ns, void *arg)
{
	struct heard *h = arg;
	struct alarm *a = &h->alarms[h->nalarms];

	h->not_scheduled += e->code == HC_W_event_code_NOT_SCHEDULED;
	if (!accuses(e->code) || h->nalarms == ALARMS_MAX)
		return;
	h->nalarms++;
	a->at = at_ns;
	a->node = UINT32_MAX;
	sscanf(e->node, "crowd-%u", &a->node);
	snprintf(a->text, sizeof(a->text), "%.190s", e->text);
}

static struct verdicts count(const struct heard *h, const struct part *p,
			     const struct crowd_log *log)
{
	const uint64_t interval = p->interval_ms * MS;
	struct verdicts v = {0};
	const struct alarm *a;
	bool late;
	uint32_t i;

	for (i = 0; i < h->nalarms; i++) {
		a = &h->alarms[i];
		late = crowd_log_late(log, a->node, a->at - 6 * interval, a->at, 2 * interval);
		v.excused += late;
		v.alarms += !late;
		if (v.alarms + v.excused <= 10)
			bench_note("%s%s", late ? "the node was late itself: " : "", a->text);
	}
	return v;
}

static void put_verdicts(struct bench_line *l, struct heard *h, const struct part *p,
			 const struct crowd_log *log, struct verdicts *v)
{
	*v = count(h, p, log);
	bench_line_int(l, "alarms", v->alarms);
	bench_line_int(l, "excused", v->excused);
	bench_line_int(l, "not_scheduled", h->not_scheduled);
	memset(h, 0, sizeof(*h));
}

/* ---- ours ---- */

static void stand_still(const struct nodebench *node, struct eventwatch *w)
{
	unsigned i;

	for (i = 0; i < STANDSTILLS; i++) {
		kill(nodebench_pid(node), SIGSTOP);
		nodebench_nap(1000);
		kill(nodebench_pid(node), SIGCONT);
		eventwatch_run(w, bench_now_ns() + 2 * S);
	}
}

static void print_calm(const struct part *p, struct heard *h, struct crowd_log *log,
		       uint32_t seconds, const struct before *before, struct verdicts *v)
{
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "part", p->name);
	bench_line_int(&l, "seconds", seconds);
	put_verdicts(&l, h, p, log, v);
	bench_line_int(&l, "crowd_sent", log->n.sent - before->crowd.sent);
	bench_line_int(&l, "crowd_received", log->n.received - before->crowd.received);
	bench_line_int(&l, "crowd_asked", log->n.asked - before->crowd.asked);
	bench_line_int(&l, "crowd_gaps", log->n.gaps - before->crowd.gaps);
	bench_line_int(&l, "lost", bed_lost());
	bench_line_int(&l, "overflows", bed_overflows() - before->overflows);
	bench_line_print(&l);
}

static void print_still(const struct part *p, struct heard *h, struct crowd_log *log,
			struct verdicts *v)
{
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "part", p->name);
	bench_line_int(&l, "stood_still", STANDSTILLS);
	put_verdicts(&l, h, p, log, v);
	bench_line_print(&l);
}

/* Alarms while it ran, and after it stood still. */
static uint32_t run_ours(const struct part *p, uint32_t seconds, uint32_t *alarms, uint32_t *still)
{
	struct nodebench *node = nodebench_start(PORT, p->interval_ms, -1, NULL);
	struct crowd_log *log = crowd_log_new();
	const pid_t crowd = nodebench_crowd_logged(node, p->nodes, p->interval_ms, true, log);
	struct heard *h = calloc(1, sizeof(*h));
	struct before before;
	struct eventwatch *w;
	struct verdicts v;

	if (!h)
		bench_die("out of memory");
	nodebench_wait_paths(node, p->nodes, 60);
	bed_loss(LOSS, "16690, 16720");
	bed_busy(BUSY);
	w = eventwatch_open(nodebench_socket(node), on_event, h);
	before = (struct before){log->n, bed_overflows()};
	eventwatch_run(w, bench_now_ns() + seconds * S);
	print_calm(p, h, log, seconds, &before, &v);
	*alarms = v.alarms;
	stand_still(node, w);
	print_still(p, h, log, &v);
	*still = v.alarms;
	bed_idle();
	eventwatch_close(w);
	if (waitpid(crowd, NULL, WNOHANG))
		bench_die("the crowd has ended");
	bench_kill(crowd);
	nodebench_stop(node);
	bed_no_rules();
	crowd_log_free(log);
	free(h);
	return *alarms + *still;
}

/* ---- FRR ---- */

static char *bfd_peers(unsigned here, unsigned there)
{
	char *text = calloc(SESSIONS, 128);
	size_t used = 0;
	unsigned i;

	if (!text)
		bench_die("out of memory");
	for (i = 0; i < SESSIONS; i++)
		used += (size_t)snprintf(text + used, SESSIONS * 128 - used,
					 " peer 10.9.%u.%u local-address 10.9.%u.%u\n"
					 "  profile lab\n exit\n",
					 i, there, i, here);
	return text;
}

static void start_bfdd(struct bed_bfdd *b, const char *name, const char *link, unsigned here,
		       unsigned there)
{
	char *peers = bfd_peers(here, there);
	unsigned i;

	hc_ip("link set %s up\n", link);
	for (i = 0; i < SESSIONS; i++)
		hc_ip("addr add 10.9.%u.%u/24 dev %s\n", i, here, link);
	bed_bfdd_start(b, name, 10, peers);
	free(peers);
}

/* How often a session went from up to down, from now on. */
static uint32_t count_bfd(struct bed_bfdd *b, uint64_t until, const char *what, uint32_t enough)
{
	const char *line;
	uint32_t n = 0;

	while (bench_now_ns() < until && n < enough) {
		line = bed_bfdd_line(b);
		if (line)
			n += strstr(line, what) != NULL;
		else
			nodebench_nap(1);
	}
	return n;
}

static bool run_bfdd(uint32_t seconds, uint32_t *downs)
{
	struct bed_bfdd here, there;
	struct bench_line l;
	int far;

	if (!bed_bfdd_installed())
		return false;
	far = bed_netns();
	bed_veth("bfd0", "bfd1", far);
	start_bfdd(&here, "here", "bfd0", 1, 2);
	bed_enter(far);
	start_bfdd(&there, "there", "bfd1", 2, 1);
	bed_loss(LOSS, "3784");
	bed_enter(bed_home());
	if (count_bfd(&here, bench_now_ns() + 20 * S, "-> up", SESSIONS) < SESSIONS)
		bench_die("bfdd has not all sessions up");
	bed_loss(LOSS, "3784");
	bed_urgent(there.pid);
	bed_busy(BUSY);
	*downs = count_bfd(&here, bench_now_ns() + seconds * S, "up -> down", UINT32_MAX);
	bed_idle();
	bench_line_open(&l, NAME);
	bench_line_str(&l, "part", "bfdd 64 x 10 ms x 3");
	bench_line_int(&l, "seconds", seconds);
	bench_line_int(&l, "bfdd_downs", *downs);
	bench_line_print(&l);
	bed_bfdd_stop(&here);
	bed_bfdd_stop(&there);
	bed_no_rules();
	return true;
}

int main(void)
{
	const char *is_long = getenv("HC_LONG");
	uint32_t seconds, alarms[2], still[2], downs = 0, sum = 0, i;
	struct bench_line l;
	bool frr;

	bench_line_machine(NAME);
	seconds = is_long && *is_long ? 600 : (uint32_t)bench_rounds(60);
	if (!bed_begin(NAME))
		return 0;
	for (i = 0; i < 2; i++)
		sum += run_ours(&parts[i], seconds, &alarms[i], &still[i]);
	frr = run_bfdd(seconds, &downs);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "seconds", seconds);
	bench_line_int(&l, "alarms_64_x_10", alarms[0]);
	bench_line_int(&l, "alarms_1000_x_50", alarms[1]);
	bench_line_int(&l, "after_standstill", still[0] + still[1]);
	if (frr)
		bench_line_int(&l, "bfdd_downs", downs);
	else
		bench_line_null(&l, "bfdd_downs");
	bench_line_int(&l, "false_alarms", sum);
	bench_line_int(&l, "goal", 0);
	bench_line_bool(&l, "met", !sum);
	bench_line_print(&l);
	return 0;
}
