/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a peer that fell silent is called UNSTABLE within T + 2 ms, T = misses x interval: with
 * 10 ms x 3 within 32 ms (p99), whatever the age of the link; and DOWN by the default profile
 * (100 ms, 5) within 510 ms.
 *
 * Real daemons in network namespaces on one bridge: one that watches, several that fall silent in
 * turn. The clock starts when the last datagram of the peer came in at the interface of the
 * watching node, by the kernel's stamp, and ends in a subscribed client that was told. A peer
 * stands still (SIGSTOP), or packets get lost from it and to it, or only from it.
 *
 * For young links the watching daemon is started anew each round, so all links are new, and peers
 * are silenced from a second later on. HC_LONG=1 repeats it with links a minute old.
 *
 * FRR's bfdd takes turns with it, on the same interfaces, observed the same way; its log is the
 * event.
 */
#include <hcomm/hcomm.h>
#include <hcomm/views.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "eventwatch.h"
#include "harness.h"
#include "bed.h"
#include "netns.h"
#include "ours.h"
#include "wire.h"
#include "wirewatch.h"

#define NAME       "detect"
#define PORT       16730u
#define BFD_PORT   3784u
#define MS         1000000ull
#define S          1000000000ull
#define WATCHER_IP 0x0a080001u
#define PEER_IP    0x0a080101u /* of peer 0 */

enum { PEERS = 6, BFD_PEERS = 6, SAMPLES_MAX = 2000 };
enum kind { STOPPED, CUT, ONE_WAY, KINDS };

static const char *const kind_names[KINDS] = {"stopped", "both ways lost", "one way lost"};

struct contest { /* what is measured of one contestant */
	struct bench_samples all, of[KINDS];
	unsigned missed; /* not said within a second */
};

struct lab {
	int watcher_ns, peer_ns[PEERS];
	char key[256];
	struct bed_rules *rules[PEERS];
	struct hc_node watcher, peers[PEERS];
	struct eventwatch *events;
	struct wirewatch *wire;
	struct bed_bfdd bfd, bfd_peers[BFD_PEERS];
	bool bfd_up[BFD_PEERS];
	bool frr;
	/* what is waited for */
	char node[32];
	uint32_t code;
	uint64_t at;
	bool said;
	unsigned not_scheduled; /* how often the watcher said that of itself */
};

static void nap(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / S), (long)(ns % S)};

	nanosleep(&t, NULL);
}

/* ---- the network ---- */

static void join(const char *port, int ns, uint32_t ip)
{
	char end[16];

	snprintf(end, sizeof(end), "%s-e", port);
	bed_veth(port, end, ns);
	hc_ip("link set %s master lab\n", port);
	bed_enter(ns);
	hc_ip("link set %s up\naddr add 10.8.%u.%u/16 dev %s\n", end, ip >> 8 & 255, ip & 255, end);
	bed_enter(bed_home());
}

static void make_network(struct lab *lab)
{
	char port[16];
	unsigned i;

	hc_ip("link add lab type bridge\nlink set lab up\n");
	lab->watcher_ns = bed_netns();
	join("w", lab->watcher_ns, WATCHER_IP);
	for (i = 0; i < PEERS; i++) {
		snprintf(port, sizeof(port), "p%u", i);
		lab->peer_ns[i] = bed_netns();
		join(port, lab->peer_ns[i], PEER_IP + i);
		bed_enter(lab->peer_ns[i]);
		bed_nft("table inet cut {\n chain out { type filter hook output priority 0; }\n"
			" chain in { type filter hook input priority 0; }\n}\n");
		lab->rules[i] = bed_rules_open();
		bed_enter(bed_home());
	}
	bed_enter(lab->watcher_ns);
	lab->wire = wirewatch_open("w-e");
	bed_enter(bed_home());
}

/* ---- daemons ---- */

static void make_key(struct lab *lab)
{
	char key[66];

	snprintf(lab->key, sizeof(lab->key), "%s/cluster.key", bench_tmpdir());
	memset(key, 'a', 64);
	key[64] = '\n';
	key[65] = '\0';
	bench_write_file(lab->key, key);
	chmod(lab->key, 0400);
	setenv("HCOMM_KEY_FILE", lab->key, 1);
}

/* As by default, and not each step. */
static void log_less(void *arg)
{
	(void)arg;
	setenv("HCOMM_LOG_LEVEL", "info", 1);
}

static void prepare(struct hc_node *n, const char *name, uint32_t ip, uint32_t interval_ms,
		    const char *sections)
{
	char top[512];

	snprintf(top, sizeof(top),
		 "node_name = %s\nlisten_address = 10.8.%u.%u\nlisten_port = %u\n"
		 "heartbeat_interval_ms = %u\nflap_limit = 8\nflap_window_s = 1\n",
		 name, ip >> 8 & 255, ip & 255, PORT, interval_ms);
	hc_node_prepare(n, 1, top, sections);
	n->before_exec = log_less;
}

static void on_event(const struct hcomm_event *e, uint64_t at_ns, void *arg)
{
	struct lab *lab = arg;

	lab->not_scheduled += e->code == HC_W_event_code_NOT_SCHEDULED;
	if (getenv("HC_TRIALS"))
		bench_note("%.6f %.150s", (double)at_ns / 1e9, e->text);
	if (lab->said || e->code != lab->code || strcmp(e->node, lab->node))
		return;
	lab->said = true;
	lab->at = at_ns;
}

static void run_watcher(struct lab *lab)
{
	bed_enter(lab->watcher_ns);
	hc_node_run(&lab->watcher);
	bed_enter(bed_home());
	lab->events = eventwatch_open(lab->watcher.socket, on_event, lab);
}

static void stop_watcher(struct lab *lab)
{
	eventwatch_close(lab->events);
	hc_node_stop(&lab->watcher);
}

static void start_daemons(struct lab *lab, uint32_t interval_ms)
{
	char name[32], section[96];
	unsigned i;

	prepare(&lab->watcher, "watcher", WATCHER_IP, interval_ms, NULL);
	snprintf(section, sizeof(section), "[node watcher]\naddress = 10.8.0.1:%u\n", PORT);
	for (i = 0; i < PEERS; i++) {
		snprintf(name, sizeof(name), "peer-%u", i);
		prepare(&lab->peers[i], name, PEER_IP + i, interval_ms, section);
		bed_enter(lab->peer_ns[i]);
		hc_node_run(&lab->peers[i]);
		bed_enter(bed_home());
	}
}

static void end_daemons(struct lab *lab)
{
	unsigned i;

	for (i = 0; i < PEERS; i++)
		hc_node_end(&lab->peers[i]);
	hc_node_end(&lab->watcher);
}

static int keep(const void *row, void *arg)
{
	memcpy(arg, row, sizeof(struct hcomm_view_status));
	return 0;
}

static uint32_t good_paths(const struct lab *lab)
{
	struct hcomm_open_args o = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_view_status v = {0};
	struct hcomm_session *s;

	o.socket = lab->watcher.socket;
	ours_must(hcomm_open(&o, &s), "open");
	ours_must(hcomm_query(s, HCOMM_VIEW_STATUS, NULL, keep, &v), "status");
	hcomm_close(s);
	return v.paths_good;
}

static void wait_good(const struct lab *lab)
{
	const uint64_t limit = bench_now_ns() + 30 * S;

	while (good_paths(lab) < PEERS) {
		if (bench_now_ns() >= limit)
			bench_die("only %u of %d paths are normal", good_paths(lab), PEERS);
		nap(10 * MS);
	}
}

/* ---- faults ---- */

/* Packets of one contestant only, so that the other is not hit. */
static void cut(const struct lab *lab, unsigned peer, uint16_t port, bool both)
{
	char text[512];
	int n;

	n = snprintf(text, sizeof(text),
		     "add rule inet cut out meta l4proto { tcp, udp } th dport %u drop\n"
		     "add rule inet cut out meta l4proto { tcp, udp } th sport %u drop\n",
		     port, port);
	if (both)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "add rule inet cut in meta l4proto { tcp, udp } th dport %u drop\n"
			 "add rule inet cut in meta l4proto { tcp, udp } th sport %u drop\n",
			 port, port);
	bed_rules_say(lab->rules[peer], text);
}

static void silence(const struct lab *lab, unsigned peer, pid_t pid, uint16_t port, enum kind kind)
{
	if (kind == STOPPED)
		kill(pid, SIGSTOP);
	else
		cut(lab, peer, port, kind == CUT);
}

static void heal(const struct lab *lab, unsigned peer, pid_t pid, enum kind kind)
{
	if (kind == STOPPED)
		kill(pid, SIGCONT);
	else
		bed_rules_say(lab->rules[peer], "flush table inet cut\n");
}

/* From now on packets are looked at; enough time for two, and then any moment of the interval. */
static void any_phase(const struct lab *lab, uint32_t interval_ms)
{
	wirewatch_clear(lab->wire);
	nap(2 * MS * interval_ms + (uint64_t)random() % (MS * interval_ms));
}

static void take(struct lab *lab, struct contest *c, unsigned peer, enum kind kind, uint16_t port,
		 uint64_t said_at)
{
	const uint64_t last = wirewatch_last(lab->wire, PEER_IP + peer, port);

	if (!said_at || !last || said_at < last) {
		c->missed++;
		return;
	}
	bench_samples_add(&c->all, said_at - last);
	bench_samples_add(&c->of[kind], said_at - last);
	if (getenv("HC_TRIALS"))
		bench_note("%u %s: %.2f ms", peer, kind_names[kind],
			   (double)(said_at - last) / 1e6);
}

static void expect(struct lab *lab, uint32_t code)
{
	lab->code = code;
	lab->said = false;
}

static void trial(struct lab *lab, struct contest *c, unsigned peer, enum kind kind,
		  uint32_t interval_ms, uint32_t code)
{
	const pid_t pid = lab->peers[peer].pid;

	eventwatch_run(lab->events, 0);
	snprintf(lab->node, sizeof(lab->node), "peer-%u", peer);
	any_phase(lab, interval_ms);
	expect(lab, code);
	silence(lab, peer, pid, PORT, kind);
	eventwatch_until(lab->events, bench_now_ns() + S, &lab->said);
	take(lab, c, peer, kind, PORT, lab->said ? lab->at : 0);
	expect(lab, HC_W_event_code_PATH_NORMAL);
	heal(lab, peer, pid, kind);
	eventwatch_until(lab->events, bench_now_ns() + 10 * S, &lab->said);
	if (!lab->said)
		bench_die("peer %u does not recover: %s", peer, kind_names[kind]);
}

/* ---- FRR ---- */

static void start_bfd(struct lab *lab)
{
	char text[PEERS * 128], name[16];
	size_t used = 0;
	unsigned i;

	lab->frr = bed_bfdd_installed();
	if (!lab->frr)
		return;
	for (i = 0; i < BFD_PEERS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 " peer 10.8.1.%u local-address 10.8.0.1\n"
					 "  profile lab\n exit\n",
					 i + 1);
	bed_enter(lab->watcher_ns);
	bed_bfdd_start(&lab->bfd, "watcher", 10, text);
	for (i = 0; i < BFD_PEERS; i++) {
		snprintf(name, sizeof(name), "peer-%u", i);
		snprintf(text, sizeof(text),
			 " peer 10.8.0.1 local-address 10.8.1.%u\n  profile lab\n exit\n", i + 1);
		bed_enter(lab->peer_ns[i]);
		bed_bfdd_start(&lab->bfd_peers[i], name, 10, text);
	}
	bed_enter(bed_home());
}

/* While one contestant is measured the other stands still, since bfdd takes a third of a processor.
 */
static void signal_bfd(const struct lab *lab, int number)
{
	unsigned i;

	for (i = 0; lab->frr && i < BFD_PEERS; i++)
		kill(lab->bfd_peers[i].pid, number);
	if (lab->frr)
		kill(lab->bfd.pid, number);
}

static void signal_peers(const struct lab *lab, int number)
{
	unsigned i;

	for (i = 0; i < PEERS; i++)
		kill(lab->peers[i].pid, number);
}

static bool bfd_all_up(const struct lab *lab)
{
	unsigned i;

	for (i = 0; i < BFD_PEERS; i++)
		if (!lab->bfd_up[i])
			return false;
	return true;
}

static void bfd_note(struct lab *lab, const char *line)
{
	const char *at = strstr(line, "peer:10.8.1.");
	unsigned peer;

	if (!at || sscanf(at, "peer:10.8.1.%u", &peer) != 1 || !peer || peer > BFD_PEERS)
		return;
	if (strstr(line, "-> up"))
		lab->bfd_up[peer - 1] = true;
	else if (strstr(line, "-> down"))
		lab->bfd_up[peer - 1] = false;
}

/* Until all its sessions are up, and for a second at least. */
static void wait_bfd(struct lab *lab)
{
	const uint64_t began = bench_now_ns();
	const char *line;

	while (bench_now_ns() - began < S || !bfd_all_up(lab)) {
		line = bed_bfdd_line(&lab->bfd);
		if (line)
			bfd_note(lab, line);
		else
			nap(MS);
		if (bench_now_ns() - began > 30 * S)
			bench_die("bfdd: not all sessions are up");
	}
}

/* When it said `what` of the peer; 0: not until then. */
static uint64_t bfd_says(struct lab *lab, unsigned peer, const char *what, uint64_t until)
{
	struct pollfd p = {.fd = lab->bfd.log, .events = POLLIN};
	const char *line;
	char name[32];
	uint64_t now;

	snprintf(name, sizeof(name), "peer:10.8.1.%u ", peer + 1);
	while ((now = bench_now_ns()) < until) {
		line = bed_bfdd_line(&lab->bfd);
		if (line && strstr(line, name) && strstr(line, what))
			return now;
		if (!line)
			poll(&p, 1, (int)((until - now) / MS) + 1);
	}
	return 0;
}

static void bfd_trial(struct lab *lab, struct contest *c, unsigned peer, enum kind kind)
{
	const pid_t pid = lab->bfd_peers[peer].pid;
	const char *line;
	uint64_t at;

	while ((line = bed_bfdd_line(&lab->bfd)))
		bfd_note(lab, line);
	any_phase(lab, 10);
	silence(lab, peer, pid, BFD_PORT, kind);
	at = bfd_says(lab, peer, "up -> down", bench_now_ns() + S);
	take(lab, c, peer, kind, BFD_PORT, at);
	heal(lab, peer, pid, kind);
	lab->bfd_up[peer] = bfd_says(lab, peer, "-> up", bench_now_ns() + 20 * S) != 0;
	if (!lab->bfd_up[peer])
		bench_die("bfdd does not recover");
}

static void end_bfd(struct lab *lab)
{
	unsigned i;

	for (i = 0; lab->frr && i < BFD_PEERS; i++)
		bed_bfdd_stop(&lab->bfd_peers[i]);
	if (lab->frr)
		bed_bfdd_stop(&lab->bfd);
	lab->frr = false;
}

/* ---- figures ---- */

static void contest_init(struct contest *c)
{
	unsigned i;

	*c = (struct contest){0};
	bench_samples_init(&c->all, SAMPLES_MAX);
	for (i = 0; i < KINDS; i++)
		bench_samples_init(&c->of[i], SAMPLES_MAX);
}

static void contest_fini(struct contest *c)
{
	unsigned i;

	bench_samples_fini(&c->all);
	for (i = 0; i < KINDS; i++)
		bench_samples_fini(&c->of[i]);
}

static double ms_at(struct bench_samples *s, double percent)
{
	return (double)bench_samples_at(s, percent) / 1e6;
}

static void print(const char *who, const char *what, struct contest *c)
{
	struct bench_line l;
	unsigned i;

	for (i = 0; i < KINDS; i++) {
		if (!c->of[i].count)
			continue;
		bench_line_open(&l, NAME);
		bench_line_str(&l, "who", who);
		bench_line_str(&l, "what", what);
		bench_line_str(&l, "fault", kind_names[i]);
		bench_line_int(&l, "trials", c->of[i].count);
		bench_line_num(&l, "p50_ms", ms_at(&c->of[i], 50), 2);
		bench_line_num(&l, "p99_ms", ms_at(&c->of[i], 99), 2);
		bench_line_num(&l, "max_ms", ms_at(&c->of[i], 100), 2);
		bench_line_print(&l);
	}
	if (c->missed)
		bench_note("%s, %s: %u not noticed within a second", who, what, c->missed);
}

/* ---- parts ---- */

static void round_ours(struct lab *lab, unsigned round, uint32_t age_ms, struct contest *ours)
{
	unsigned i;

	run_watcher(lab);
	wait_good(lab);
	nap(age_ms * MS);
	for (i = 0; i < PEERS; i++)
		trial(lab, ours, i, (enum kind)((i + round) % KINDS), 10,
		      HC_W_event_code_PATH_UNSTABLE);
	stop_watcher(lab);
}

static void round_bfd(struct lab *lab, unsigned round, struct contest *bfd)
{
	unsigned i;

	signal_peers(lab, SIGSTOP);
	signal_bfd(lab, SIGCONT);
	wait_bfd(lab);
	for (i = 0; i < BFD_PEERS; i++)
		bfd_trial(lab, bfd, i, (enum kind)((i + round) % KINDS));
	signal_bfd(lab, SIGSTOP);
	signal_peers(lab, SIGCONT);
}

/* Rounds of one trial for each peer, of links that old; bfdd's after each of ours. */
static void run_unstable(struct lab *lab, unsigned rounds, uint32_t age_ms, struct contest *ours,
			 struct contest *bfd)
{
	unsigned r;

	for (r = 0; r < rounds; r++) {
		round_ours(lab, r, age_ms, ours);
		if (lab->frr)
			round_bfd(lab, r, bfd);
	}
}

static void run_down(struct lab *lab, unsigned rounds, struct contest *ours)
{
	unsigned r, i;

	run_watcher(lab);
	wait_good(lab);
	nap(1000 * MS);
	for (r = 0; r < rounds; r++)
		for (i = 0; i < PEERS; i++)
			trial(lab, ours, i, (enum kind)((i + r) % KINDS), 100,
			      HC_W_event_code_PATH_DOWN);
	stop_watcher(lab);
}

static void put(struct bench_line *l, const char *key, struct contest *c, double percent)
{
	if (c->all.count)
		bench_line_num(l, key, ms_at(&c->all, percent), 2);
	else
		bench_line_null(l, key);
}

static void print_summary(const struct lab *lab, struct contest *young, struct contest *old,
			  struct contest *down, struct contest *bfd)
{
	const unsigned missed = young->missed + old->missed + down->missed;
	struct bench_line l;
	double p99 = ms_at(&young->all, 99);

	if (old->all.count && ms_at(&old->all, 99) > p99)
		p99 = ms_at(&old->all, 99);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "trials", young->all.count + old->all.count);
	bench_line_int(&l, "missed", missed);
	bench_line_int(&l, "not_scheduled", lab->not_scheduled);
	put(&l, "p50_ms", young, 50);
	bench_line_num(&l, "p99_ms", p99, 2);
	put(&l, "max_ms", young, 100);
	put(&l, "minute_old_p99_ms", old, 99);
	put(&l, "down_p99_ms", down, 99);
	put(&l, "bfdd_p50_ms", bfd, 50);
	put(&l, "bfdd_p99_ms", bfd, 99);
	bench_line_num(&l, "goal", 32, 0);
	bench_line_num(&l, "down_goal", 510, 0);
	bench_line_bool(&l, "met", !missed && p99 <= 32 && ms_at(&down->all, 99) <= 510);
	bench_line_print(&l);
}

int main(void)
{
	static struct lab lab;
	struct contest young, old, down, bfd, bfd_old;
	const char *is_long = getenv("HC_LONG");
	unsigned i;
	const bool whole = is_long && *is_long;

	bench_line_machine(NAME);
	if (!bed_begin(NAME))
		return 0;
	contest_init(&young);
	contest_init(&old);
	contest_init(&down);
	contest_init(&bfd);
	contest_init(&bfd_old);
	make_network(&lab);
	make_key(&lab);
	start_bfd(&lab);
	start_daemons(&lab, 10);
	if (lab.frr)
		wait_bfd(&lab);
	signal_bfd(&lab, SIGSTOP);
	run_unstable(&lab, (unsigned)bench_rounds(whole ? 50 : 17), 1000, &young, &bfd);
	if (whole)
		run_unstable(&lab, 17, 60000, &old, &bfd_old);
	end_daemons(&lab);
	end_bfd(&lab);
	start_daemons(&lab, 100);
	run_down(&lab, whole ? 17 : 4, &down);
	end_daemons(&lab);
	for (i = 0; i < PEERS; i++)
		bed_rules_close(lab.rules[i]);
	print("ours", "unstable, a second old", &young);
	print("ours", "unstable, a minute old", &old);
	print("ours", "down, default profile", &down);
	print("bfdd", "down, 10 ms x 3", &bfd);
	print("bfdd", "down, 10 ms x 3, a minute old", &bfd_old);
	print_summary(&lab, &young, &old, &down, &bfd);
	contest_fini(&young);
	contest_fini(&old);
	contest_fini(&down);
	contest_fini(&bfd);
	contest_fini(&bfd_old);
	return 0;
}
