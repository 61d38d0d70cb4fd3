/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: when a rank process is killed, 99 of 100 times every rank of its domain on another node
 * has the event, with rank, pid and node, within 3 ms.
 *
 * Eight rank processes on each of two nodes in one domain, all but one in hcomm_dispatch; that
 * one is killed by SIGKILL, in turn on the domain's home and on the other node. What counts is
 * the time from just before the kill to the arrival at the last rank of the node where it did not
 * run. Each node has one processor for its daemon and its ranks, as if they were two machines.
 *
 * The same without hcomm is taken in turn: a process is killed, another one that polls its pidfd
 * writes a byte into a TCP connection, at whose other end one writes into the pipes of eight that
 * wait on the other processor. The process that is killed has as many pages as a rank has here,
 * since they are taken apart before anybody is told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "deaths.h"
#include "nodeset.h"
#include "ours.h"
#include "ranks.h"

#define NAME "rank_death_far"
#define GOAL 3.0
#define PORT 16745u

enum { NODES = 2, EACH = 8, RANKS = NODES * EACH, KILLS = 200 };

static struct nodeset nodes;
static struct hc_rank r[RANKS];
static struct bench_samples ours, at_home, elsewhere, near, plain;
static size_t rank_pages; /* in memory, of a rank that has joined */

static void spawn(unsigned rank)
{
	setenv("HCOMM_SOCKET", nodes.node[rank / EACH].socket, 1);
	bench_pin(nodes.cpu[rank / EACH]);
	hc_rank_spawn(&r[rank]);
	bench_unpin();
	setenv("HCOMM_SOCKET", nodes.node[0].socket, 1);
}

/* ---- ours ---- */

static void listen_all(unsigned victim)
{
	const struct hc_order o = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	unsigned i;

	for (i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_tell(&r[i], &o);
		hc_await("a rank to listen", deaths_sleeps, &r[i].child, 5000);
	}
}

/* When the last rank of that node had the event. */
static uint64_t heard_on(unsigned node, unsigned victim, uint32_t pid)
{
	struct hc_answer a;
	uint64_t last = 0;
	unsigned i;

	for (i = node * EACH; i < (node + 1) * EACH; i++) {
		if (i == victim)
			continue;
		hc_rank_hear(&r[i], &a, 10000);
		if (a.result || a.rank != victim || a.pid != pid ||
		    strcmp(a.node, victim / EACH ? "node1" : "node0"))
			bench_die("rank %u was told of rank %u, pid %u, node '%s': %s", i, a.rank,
				  a.pid, a.node, a.text);
		last = a.end_ns > last ? a.end_ns : last;
	}
	return last;
}

static void kill_one(unsigned victim)
{
	const struct hc_order leave = {.what = HC_DO_LEAVE, .timeout_ms = 10000};
	const uint32_t pid = (uint32_t)r[victim].child.pid;
	const unsigned node = victim / EACH;
	uint64_t killed, took;
	unsigned i;

	hc_ranks_join(r, RANKS, 0, 0, NULL);
	listen_all(victim);
	rank_pages = deaths_pages((pid_t)pid);
	killed = hc_now_ns();
	kill((pid_t)pid, SIGKILL);
	bench_samples_add(&near, heard_on(node, victim, pid) - killed);
	took = heard_on(!node, victim, pid) - killed;
	bench_samples_add(&ours, took);
	bench_samples_add(node ? &elsewhere : &at_home, took);
	hc_rank_kill(&r[victim]);
	for (i = 0; i < RANKS; i++) {
		if (i != victim)
			hc_rank_must(&r[i], &leave, NULL);
	}
	spawn(victim);
}

/* ---- without hcomm ---- */

static struct hc_child listeners[EACH], relay, teller;
static int tcp[2];

static void connect_nodes(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	socklen_t n = sizeof(at);

	tcp[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || tcp[0] < 0 || bind(listener, (struct sockaddr *)&at, n) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &n) ||
	    connect(tcp[0], (struct sockaddr *)&at, n))
		bench_die("no connection: %s", strerror(errno));
	tcp[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (tcp[1] < 0 || setsockopt(tcp[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		bench_die("no connection: %s", strerror(errno));
	close(listener);
}

static int pass_on(void *arg, int in, int out)
{
	char byte;
	int i;

	(void)arg;
	(void)in;
	(void)out;
	for (;;) {
		if (read(tcp[1], &byte, 1) != 1)
			return 1;
		for (i = 0; i < EACH; i++)
			hc_tell(listeners[i].out, &byte, 1);
	}
}

static int wait_death(void *arg, int in, int out)
{
	struct pollfd p = {.events = POLLIN};
	char byte = 1;
	pid_t pid;

	(void)arg;
	for (;;) {
		hc_hear(in, &pid, sizeof(pid), 600000);
		p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		hc_tell(out, &byte, 1);
		poll(&p, 1, -1);
		if (write(tcp[0], &byte, 1) != 1)
			return 1;
		close(p.fd);
	}
}

static void begin_plain(void)
{
	int i;

	connect_nodes();
	bench_pin(nodes.cpu[1]);
	for (i = 0; i < EACH; i++)
		hc_spawn(&listeners[i], deaths_listener, NULL);
	hc_spawn(&relay, pass_on, NULL);
	bench_pin(nodes.cpu[0]);
	hc_spawn(&teller, wait_death, NULL);
	bench_unpin();
}

static void kill_plain(void)
{
	struct hc_child victim;
	uint64_t killed, at, last = 0;
	char byte;
	int i;

	bench_pin(nodes.cpu[0]);
	hc_spawn(&victim, deaths_victim, &rank_pages);
	bench_unpin();
	hc_child_read(&victim, &byte, 1, 5000);
	hc_child_tell(&teller, &victim.pid, sizeof(victim.pid));
	hc_child_read(&teller, &byte, 1, 5000);
	hc_await("the teller to wait", deaths_sleeps, &teller, 5000);
	hc_await("the relay to wait", deaths_sleeps, &relay, 5000);
	for (i = 0; i < EACH; i++)
		hc_await("a listener to wait", deaths_sleeps, &listeners[i], 5000);
	killed = hc_now_ns();
	kill(victim.pid, SIGKILL);
	for (i = 0; i < EACH; i++) {
		hc_child_read(&listeners[i], &at, sizeof(at), 5000);
		last = at > last ? at : last;
	}
	bench_samples_add(&plain, last - killed);
	hc_child_kill(&victim);
}

/* ---- figures ---- */

static double ms_at(struct bench_samples *s, double percent)
{
	return s->count ? (double)bench_samples_at(s, percent) / 1e6 : 0;
}

static void print(const char *who, struct bench_samples *s)
{
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "who", who);
	bench_line_int(&l, "kills", s->count);
	bench_line_num(&l, "p50_ms", ms_at(s, 50), 3);
	bench_line_num(&l, "p99_ms", ms_at(s, 99), 3);
	bench_line_num(&l, "max_ms", ms_at(s, 100), 3);
	bench_line_print(&l);
}

static void report(void)
{
	const double p99 = ms_at(&ours, 99);
	struct bench_line l;

	print("killed at the home, heard on the other node", &at_home);
	print("killed on the other node, heard at the home", &elsewhere);
	print("heard on the node where it was killed", &near);
	print("plain: pidfd, TCP, pipes", &plain);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "ranks", RANKS);
	bench_line_int(&l, "kills", ours.count);
	bench_line_num(&l, "p50_ms", ms_at(&ours, 50), 3);
	bench_line_num(&l, "p99_ms", p99, 3);
	bench_line_num(&l, "max_ms", ms_at(&ours, 100), 3);
	bench_line_num(&l, "plain_p50_ms", ms_at(&plain, 50), 3);
	bench_line_num(&l, "plain_p99_ms", ms_at(&plain, 99), 3);
	bench_line_num(&l, "goal", GOAL, 1);
	bench_line_bool(&l, "met", p99 <= GOAL);
	bench_line_print(&l);
}

int main(void)
{
	struct bench_samples *const all[] = {&ours, &at_home, &elsewhere, &near, &plain};
	const size_t kills = bench_rounds(KILLS);
	int cpus[2];
	size_t i;

	bench_line_machine(NAME);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		bench_samples_init(all[i], kills + 1);
	bench_cpus(&cpus[0], &cpus[1]);
	nodeset_start(&nodes, NODES, RANKS, PORT, cpus, NULL);
	begin_plain();
	for (i = 0; i < RANKS; i++)
		spawn((unsigned)i);
	kill_one(0); /* warms up */
	kill_plain();
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		bench_samples_reset(all[i]);
	for (i = 0; i < kills; i++) {
		kill_one((unsigned)(i * (EACH + 1) % RANKS));
		kill_plain();
	}
	report();
	hc_ranks_quit(r, RANKS);
	hc_children_kill();
	nodeset_stop(&nodes);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		bench_samples_fini(all[i]);
	return 0;
}
