/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: an MTU that differs, or a hole that swallows large packets, is named with both values
 * within 50 ms of the first probe; on a path that was good before, within one interval and the
 * window of the beats (400 ms by default) of the probe or of the change.
 *
 * Two daemons in network namespaces with a veth pair between them. The clock starts with the first
 * probe that is seen at the interface of the watching node, by the kernel's stamp (where there is a
 * hole: the first of its own, since each node finds what swallows its own packets); or just before
 * the system call that changes the MTU of the other one's interface. It ends in a client of the
 * watching daemon that was told both values.
 *
 *   differs   9000 here, less there, from the start
 *   hole      9000 at both, what is larger than 1500 vanishes, from the start
 *   changed   the other node's MTU changes while beats run
 *   opens     a hole opens while beats run; it is seen by the next check (here each second)
 *
 * Both daemons are started anew for each trial of the first two, so the path is a new one.
 */
#include <errno.h>
#include <hcomm/hcomm.h>
#include <hcomm/views.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bed.h"
#include "bench.h"
#include "datagram.h"
#include "eventwatch.h"
#include "harness.h"
#include "netns.h"
#include "ours.h"
#include "wire.h"
#include "wirewatch.h"

#define NAME       "mtu"
#define PORT       16750u
#define HERE_IP    0x0a080201u
#define S          1000000000ull
#define UNIT_NICE  (-10)
#define LARGE      9000
#define GOAL_MS    50.0
#define LIVE_MS    400.0 /* an interval and a window, by default */
#define TRIALS_MAX 1000

enum { HERE, THERE, NODES };

static const char *const ends[NODES] = {"here0", "there0"};

struct lab {
	int ns[NODES];
	struct bed_rules *rules; /* of the watching node, where holes are */
	struct hc_node node[NODES];
	struct eventwatch *events;
	struct wirewatch *wire;
	/* what is waited for */
	char text[64];
	uint64_t at;
	bool said;
};

struct part {
	struct bench_samples ms;
	unsigned missed;
};

static void nap(uint32_t ms)
{
	const struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

/* ---- the network ---- */

static void make_network(struct lab *lab)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		lab->ns[i] = bed_netns();
	bed_enter(lab->ns[HERE]);
	bed_veth(ends[HERE], ends[THERE], lab->ns[THERE]);
	for (i = 0; i < NODES; i++) {
		bed_enter(lab->ns[i]);
		hc_ip("link set %s mtu %d up\naddr add 10.8.2.%u/24 dev %s\n", ends[i], LARGE,
		      i + 1, ends[i]);
		bed_nft("table inet hole {\n chain in { type filter hook input priority 0; }\n}\n");
	}
	bed_enter(lab->ns[HERE]);
	lab->wire = wirewatch_open(ends[HERE]);
	bed_enter(bed_home());
}

static void set_mtu(struct lab *lab, unsigned node, int mtu)
{
	struct ifreq r = {.ifr_mtu = mtu};
	int fd;

	bed_enter(lab->ns[node]);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ends[node]);
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &r))
		bench_die("MTU %d of %s: %s", mtu, ends[node], strerror(errno));
	close(fd);
	bed_enter(bed_home());
}

static void hole(struct lab *lab, int larger_than)
{
	unsigned i;

	for (i = 0; i < NODES; i++) {
		bed_enter(lab->ns[i]);
		if (larger_than)
			bed_nft("add rule inet hole in meta length > %d drop\n", larger_than);
		else
			bed_nft("flush table inet hole\n");
	}
	bed_enter(bed_home());
}

/* ---- daemons ---- */

/* As its unit does. */
static void as_installed(void *arg)
{
	(void)arg;
	setenv("HCOMM_LOG_LEVEL", "info", 1);
	if (setpriority(PRIO_PROCESS, 0, UNIT_NICE))
		bench_die("nice %d: %s", UNIT_NICE, strerror(errno));
}

static void make_key(void)
{
	char path[256], key[66];

	snprintf(path, sizeof(path), "%s/cluster.key", bench_tmpdir());
	memset(key, 'a', 64);
	key[64] = '\n';
	key[65] = '\0';
	bench_write_file(path, key);
	chmod(path, 0400);
	setenv("HCOMM_KEY_FILE", path, 1);
}

static void on_event(const struct hcomm_event *e, uint64_t at_ns, void *arg)
{
	struct lab *lab = arg;

	if (getenv("HC_TRIALS"))
		bench_note("%.6f %.150s", (double)at_ns / 1e9, e->text);
	if (lab->said || e->code != HC_W_event_code_MTU_MISMATCH || !strstr(e->text, lab->text))
		return;
	lab->said = true;
	lab->at = at_ns;
}

static void run(struct lab *lab, unsigned i)
{
	bed_enter(lab->ns[i]);
	hc_node_run(&lab->node[i]);
	bed_enter(bed_home());
	if (i == HERE)
		lab->events = eventwatch_open(lab->node[HERE].socket, on_event, lab);
}

static void prepare(struct lab *lab)
{
	char top[256], section[96];
	unsigned i;

	snprintf(section, sizeof(section), "[node node-here0]\naddress = 10.8.2.1:%u\n", PORT);
	for (i = 0; i < NODES; i++) {
		snprintf(top, sizeof(top),
			 "node_name = node-%s\nlisten_address = 10.8.2.%u\nlisten_port = %u\n"
			 "mtu_recheck_s = 1\n",
			 ends[i], i + 1, PORT);
		hc_node_prepare(&lab->node[i], 1, top, i == THERE ? section : NULL);
		lab->node[i].before_exec = as_installed;
	}
}

static void stop(struct lab *lab)
{
	eventwatch_close(lab->events);
	hc_node_stop(&lab->node[THERE]);
	hc_node_stop(&lab->node[HERE]);
}

static int keep(const void *row, void *arg)
{
	memcpy(arg, row, sizeof(struct hcomm_view_path));
	return 0;
}

/* Until the path is good and takes that size. */
static void await(struct lab *lab, uint32_t mtu)
{
	const uint64_t limit = bench_now_ns() + 30 * S;
	struct hcomm_open_args o = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_view_path p = {0};
	struct hcomm_session *s;

	o.socket = lab->node[HERE].socket;
	ours_must(hcomm_open(&o, &s), "open");
	for (;;) {
		ours_must(hcomm_query(s, HCOMM_VIEW_PATH, NULL, keep, &p), "paths");
		if (p.mtu_used == mtu && !strcmp(p.state, "normal"))
			break;
		if (bench_now_ns() >= limit)
			bench_die("the path is %s, its MTU %u; wanted: %u", p.state, p.mtu_used,
				  mtu);
		nap(10);
	}
	hcomm_close(s);
}

/* ---- trials ---- */

static void expect(struct lab *lab, const char *text)
{
	eventwatch_run(lab->events, 0);
	snprintf(lab->text, sizeof(lab->text), "%s", text);
	lab->said = false;
	wirewatch_clear(lab->wire);
}

/* When the first probe since expect() was seen, of whomever or of the watching node; 0: none. */
static uint64_t probed(struct lab *lab, bool ours_only)
{
	return wirewatch_first(lab->wire, ours_only ? HERE_IP : 0, PORT, HC_MSG_probe);
}

/* `began`: 0 = with the first probe. */
static void take(struct lab *lab, struct part *p, uint64_t began, bool ours_only)
{
	eventwatch_until(lab->events, bench_now_ns() + 5 * S, &lab->said);
	if (!began)
		began = probed(lab, ours_only);
	if (!lab->said || !began || lab->at < began)
		p->missed++;
	else
		bench_samples_add(&p->ms, lab->at - began);
	if (getenv("HC_TRIALS") && lab->said)
		bench_note("%.3f ms: %s", (double)(lab->at - began) / 1e6, lab->text);
}

static void differs(struct lab *lab, unsigned trial, struct part *p)
{
	const int there = 1500 - (int)(trial % 100);
	char text[64];

	set_mtu(lab, THERE, there);
	snprintf(text, sizeof(text), "%d here, %d there", LARGE, there);
	run(lab, HERE);
	expect(lab, text);
	run(lab, THERE);
	take(lab, p, 0, false);
	stop(lab);
	set_mtu(lab, THERE, LARGE);
}

static void swallows(struct lab *lab, unsigned trial, struct part *p)
{
	(void)trial;
	hole(lab, 1500);
	run(lab, HERE);
	expect(lab, "packets of 9000 bytes are lost, 1500 pass");
	run(lab, THERE);
	take(lab, p, 0, true);
	stop(lab);
	hole(lab, 0);
}

static void changed(struct lab *lab, unsigned trial, struct part *p)
{
	const int there = 8000 - (int)(trial % 60) * 100;
	char text[64];
	uint64_t began;

	snprintf(text, sizeof(text), "%d here, %d there", LARGE, there);
	nap(50 + (uint32_t)random() % 100);
	expect(lab, text);
	began = bench_now_ns();
	set_mtu(lab, THERE, there);
	take(lab, p, began, false);
	await(lab, (uint32_t)there);
}

static void opens(struct lab *lab, unsigned trial, struct part *p)
{
	(void)trial;
	/* rules cost some ms, so they come between two checks */
	wirewatch_clear(lab->wire);
	while (!probed(lab, true))
		nap(1);
	nap(100);
	expect(lab, "packets of 9000 bytes are lost, 1500 pass");
	hole(lab, 1500);
	take(lab, p, 0, true);
	hole(lab, 0);
	await(lab, LARGE);
}

typedef void trial_fn(struct lab *lab, unsigned trial, struct part *p);

/* Whether it held. */
static bool measure(struct lab *lab, const char *what, trial_fn *fn, unsigned trials, double goal,
		    double *p99)
{
	struct bench_line l;
	struct part p = {0};
	unsigned i;

	bench_samples_init(&p.ms, TRIALS_MAX);
	for (i = 0; i < trials; i++)
		fn(lab, i, &p);
	*p99 = (double)bench_samples_at(&p.ms, 99) / 1e6;
	bench_line_open(&l, NAME);
	bench_line_str(&l, "what", what);
	bench_line_int(&l, "trials", trials);
	bench_line_int(&l, "missed", p.missed);
	bench_line_num(&l, "p50_ms", (double)bench_samples_at(&p.ms, 50) / 1e6, 2);
	bench_line_num(&l, "p99_ms", *p99, 2);
	bench_line_num(&l, "goal_ms", goal, 0);
	bench_line_print(&l);
	bench_samples_fini(&p.ms);
	return !p.missed && *p99 <= goal;
}

int main(void)
{
	static struct lab lab;
	const unsigned trials = (unsigned)bench_rounds(20);
	struct bench_line l;
	double p99[4];
	bool met;

	bench_line_machine(NAME);
	if (!bed_begin(NAME))
		return 0;
	make_network(&lab);
	make_key();
	prepare(&lab);
	met = measure(&lab, "differs", differs, trials, GOAL_MS, &p99[0]);
	met &= measure(&lab, "hole", swallows, trials, GOAL_MS, &p99[1]);
	run(&lab, HERE);
	run(&lab, THERE);
	await(&lab, LARGE);
	met &= measure(&lab, "changed", changed, trials, LIVE_MS, &p99[2]);
	set_mtu(&lab, THERE, LARGE);
	await(&lab, LARGE);
	met &= measure(&lab, "opens", opens, trials, LIVE_MS, &p99[3]);
	stop(&lab);
	hc_node_end(&lab.node[THERE]);
	hc_node_end(&lab.node[HERE]);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "trials", trials);
	bench_line_num(&l, "differs_p99_ms", p99[0], 2);
	bench_line_num(&l, "hole_p99_ms", p99[1], 2);
	bench_line_num(&l, "changed_p99_ms", p99[2], 2);
	bench_line_num(&l, "opens_p99_ms", p99[3], 2);
	bench_line_num(&l, "goal", GOAL_MS, 0);
	bench_line_num(&l, "live_goal", LIVE_MS, 0);
	bench_line_bool(&l, "met", met);
	bench_line_print(&l);
	return 0;
}
