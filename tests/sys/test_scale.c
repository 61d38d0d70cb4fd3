/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many domains, many clients, large domains: everything is made, nothing waits for it.
 *
 * Processes make thousands of domains by batches and leave them again, while a client that only
 * pings looks how long its answers take. Its limit is far above what is normal (a few
 * milliseconds), since other programs share the machine: what it would catch is a loop that works
 * at a batch, or at the end of a process with thousands of ranks, to its end before anyone else.
 * The long form has 100,000 domains and 512 clients.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

#include <hcomm/hcomm.h>

#include "ranks.h"
#include "suite.h"

enum {
	RANKS = 8,
	MAKERS = 4,
	BATCH = 500,
	PINGS_MAX = 200000,
	LIMIT_MS = 100,
	TIMEOUT_MS = 120000
};

static struct hc_node node;

struct maker {
	uint32_t first, sessions, each; /* devices from, domains of each session */
	bool leaves;
};

static void must(int r, const char *what)
{
	if (r < 0)
		hc_fail("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

static struct hcomm_session *open_one(void)
{
	struct hcomm_session *s = NULL;

	must(hcomm_open(NULL, &s), "hcomm_open");
	return s;
}

static void make_batches(hcomm_domain parent, uint32_t count, bool leaves)
{
	static struct hcomm_batch_item it[BATCH];
	uint32_t ranks[RANKS], i, n;

	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	for (n = 0; n < count; n += BATCH) {
		for (i = 0; i < BATCH; i++)
			it[i] = (struct hcomm_batch_item){.size = sizeof(it[i]),
							  .ranks = ranks,
							  .count = RANKS,
							  .sub_id = n + i};
		must(hcomm_batch(parent, it, BATCH, TIMEOUT_MS), "hcomm_batch");
		for (i = 0; leaves && i < BATCH; i++)
			must(hcomm_leave(it[i].domain, TIMEOUT_MS), "hcomm_leave");
	}
}

/* Says 'm' when all are made; ends when told, with all its domains still there. */
static int make(void *arg, int in, int out)
{
	struct maker *m = arg;
	uint32_t devices[RANKS], i;
	hcomm_domain parent;
	char c = 'm';

	for (i = 0; i < RANKS; i++)
		devices[i] = m->first + i;
	for (i = 0; i < m->sessions; i++) {
		must(hcomm_join_all_local(open_one(), devices, RANKS, NULL, TIMEOUT_MS, &parent),
		     "hcomm_join_all_local");
		make_batches(parent, m->each, m->leaves);
	}
	hc_tell(out, &c, 1);
	hc_hear(in, &c, 1, TIMEOUT_MS);
	_Exit(0);
}

/* ---- the one who pings ---- */

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Pings until told to stop; says how many there were, and the 99th percentile and the longest. */
static int ping(void *arg, int in, int out)
{
	static uint64_t ns[PINGS_MAX];
	struct hcomm_session *s = open_one();
	uint64_t said[3], start, n = 0;
	struct timespec pause = {.tv_nsec = 200000};
	fd_set fds;
	struct timeval now;

	(void)arg;
	do {
		start = hc_now_ns();
		must(hcomm_ping(s, TIMEOUT_MS), "hcomm_ping");
		ns[n++ % PINGS_MAX] = hc_now_ns() - start;
		nanosleep(&pause, NULL); /* not to wait for something: to leave the others room */
		FD_ZERO(&fds);
		FD_SET(in, &fds);
		now = (struct timeval){0};
	} while (select(in + 1, &fds, NULL, NULL, &now) == 0);
	said[0] = n < PINGS_MAX ? n : PINGS_MAX;
	qsort(ns, said[0], sizeof(*ns), by_time);
	said[1] = ns[said[0] * 99 / 100];
	said[2] = ns[said[0] - 1];
	hc_tell(out, said, sizeof(said));
	hcomm_close(s);
	return 0;
}

static void end_ping(struct hc_child *p, const char *during)
{
	uint64_t said[3];

	hc_child_tell(p, "x", 1);
	hc_child_read(p, said, sizeof(said), TIMEOUT_MS);
	ck_assert_int_eq(hc_child_wait(p, TIMEOUT_MS), 0);
	printf("  %s: %llu pings, p99 %.2f ms, longest %.2f ms\n", during,
	       (unsigned long long)said[0], (double)said[1] / 1e6, (double)said[2] / 1e6);
	ck_assert_uint_gt(said[0], 1); /* a machine that does other things leaves few */
	/* twice: a sanitizer slows what computes by far more than what waits */
	ck_assert_msg(said[1] < hc_patience(hc_patience(LIMIT_MS)) * 1000000ull,
		      "%s: p99 of a ping is %.1f ms", during, (double)said[1] / 1e6);
}

static bool all_gone(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_ask_status(&s);
	return !s.domains;
}

START_TEST(many_are_made_and_their_makers_die)
{
	uint32_t each = hc_long() ? 12500 : 500, clients = hc_long() ? 512 : 64, i;
	struct maker m[MAKERS];
	struct hc_child child[MAKERS], pinger;
	struct hcomm_session **s = calloc(clients, sizeof(*s));
	char c;

	hc_node_start(&node, MAKERS * RANKS + 1,
		      "quota_domains = 200000\ndomains_max = 100100\norphan_grace_s = 1");
	for (i = 0; i < clients; i++)
		s[i] = open_one();
	hc_spawn(&pinger, ping, NULL);
	for (i = 0; i < MAKERS; i++) {
		m[i] = (struct maker){.first = i * RANKS, .sessions = 2, .each = each};
		hc_spawn(&child[i], make, &m[i]);
	}
	for (i = 0; i < MAKERS; i++)
		hc_child_read(&child[i], &c, 1, TIMEOUT_MS);
	end_ping(&pinger, "while they are made");
	hc_spawn(&pinger, ping, NULL);
	for (i = 0; i < MAKERS; i++)
		hc_child_kill(&child[i]);
	for (i = 0; i < clients; i++)
		must(hcomm_ping(s[i], TIMEOUT_MS), "hcomm_ping");
	hc_await("the makers' domains to end", all_gone, NULL, TIMEOUT_MS);
	end_ping(&pinger, "while their makers die");
	for (i = 0; i < clients; i++)
		hcomm_close(s[i]);
	free(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(made_and_left_by_turns)
{
	struct maker m = {.sessions = 1, .each = hc_long() ? 20000 : 1000, .leaves = true};
	struct hc_child maker, pinger;
	char c;

	hc_node_start(&node, RANKS, NULL);
	hc_spawn(&pinger, ping, NULL);
	hc_spawn(&maker, make, &m);
	hc_child_read(&maker, &c, 1, TIMEOUT_MS);
	end_ping(&pinger, "while they are made and left");
	hc_child_tell(&maker, "x", 1);
	ck_assert_int_eq(hc_child_wait(&maker, TIMEOUT_MS), 0);
	hc_node_end(&node);
}
END_TEST

/* ---- one large domain ---- */

struct part {
	const struct hcomm_root_info *info;
	uint32_t first, count, nranks;
};

static void on_event(const struct hcomm_event *e, void *context)
{
	uint32_t *done = context;

	if (e->code == HCOMM_EV_JOIN_FAILED)
		hc_fail("a join failed: %s", e->text);
	*done += e->code == HCOMM_EV_JOIN_DONE;
}

/* A process that is many ranks, each joined by a call of its own. */
static int join_part(void *arg, int in, int out)
{
	struct hcomm_session *s = open_one();
	struct part *p = arg;
	uint32_t i, done = 0, n;
	hcomm_domain d;
	char c = 'j';

	must(hcomm_on_event(s, on_event, &done), "hcomm_on_event");
	for (i = 0; i < p->count; i++)
		if (hcomm_join(s, p->info, p->nranks, p->first + i, p->first / p->count, NULL,
			       HCOMM_START, &d) != HCOMM_E_IN_PROGRESS)
			hc_fail("hcomm_join of rank %u: %s", p->first + i, hcomm_last_error());
	while (done < p->count)
		must(hcomm_dispatch(s, 1000), "hcomm_dispatch");
	must(hcomm_nranks(d, &n), "hcomm_nranks");
	hc_want(n == p->nranks);
	hc_tell(out, &c, 1);
	hc_hear(in, &c, 1, TIMEOUT_MS);
	hcomm_close(s);
	return 0;
}

START_TEST(a_domain_of_4096_ranks)
{
	struct hcomm_root_info info;
	struct part p[MAKERS];
	struct hc_child child[MAKERS], pinger;
	struct hcomm_session *s;
	uint32_t i;
	char c;

	hc_node_start(&node, MAKERS, NULL);
	s = open_one();
	must(hcomm_root_info(s, 4096, NULL, &info), "hcomm_root_info");
	hc_spawn(&pinger, ping, NULL);
	for (i = 0; i < MAKERS; i++) {
		p[i] = (struct part){&info, i * 4096 / MAKERS, 4096 / MAKERS, 4096};
		hc_spawn(&child[i], join_part, &p[i]);
	}
	for (i = 0; i < MAKERS; i++)
		hc_child_read(&child[i], &c, 1, TIMEOUT_MS);
	end_ping(&pinger, "while 4,096 ranks join");
	for (i = 0; i < MAKERS; i++) {
		hc_child_tell(&child[i], "x", 1);
		ck_assert_int_eq(hc_child_wait(&child[i], TIMEOUT_MS), 0);
	}
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(one_process_with_1024_devices)
{
	static struct hcomm_batch_item it[8];
	static uint32_t ranks[8][128];
	struct hcomm_session *s;
	hcomm_domain d;
	uint32_t i, k, n;

	hc_node_start(&node, 1024, NULL);
	s = open_one();
	must(hcomm_join_all_local(s, NULL, 0, NULL, TIMEOUT_MS, &d), "hcomm_join_all_local");
	must(hcomm_nranks(d, &n), "hcomm_nranks");
	ck_assert_uint_eq(n, 1024);
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 128; k++)
			ranks[i][k] = i + 8 * k;
		it[i] = (struct hcomm_batch_item){
			.size = sizeof(it[i]), .ranks = ranks[i], .count = 128, .sub_id = i};
	}
	must(hcomm_batch(d, it, 8, TIMEOUT_MS), "hcomm_batch");
	for (i = 0; i < 8; i++)
		must(hcomm_leave(it[i].domain, TIMEOUT_MS), "hcomm_leave");
	must(hcomm_leave(d, TIMEOUT_MS), "hcomm_leave");
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, many_are_made_and_their_makers_die);
	tcase_add_test(t, made_and_left_by_turns);
	tcase_add_test(t, a_domain_of_4096_ranks);
	tcase_add_test(t, one_process_with_1024_devices);
}

int main(void)
{
	return hc_suite_run("scale", add, 240);
}
