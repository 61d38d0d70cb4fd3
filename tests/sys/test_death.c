/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank process is killed: everybody else knows, and soon.
 *
 * Eight rank processes, one domain; one of them is killed by SIGKILL, so that nothing of it can
 * say goodbye. Every survivor that listens is told which rank, which pid and which node, the
 * domain is DAMAGED, no survivor can begin an operation, and leaving works afterwards and is what
 * remains to do. The time from the kill to the last survivor's event is taken over many kills;
 * its 99th percentile is printed. The limit here is ten times the goal that the benchmark has,
 * since other programs share the machine.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ranks.h"
#include "suite.h"

enum { RANKS = 8, LIMIT_MS = 5, SERIES = 5 };

static struct hc_node node;
static struct hc_rank r[RANKS];
static char own_name[128];

static const struct hc_order listen_death = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
static const struct hc_order begin_op = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
static const struct hc_order leave = {.what = HC_DO_LEAVE, .timeout_ms = 10000};

static void begin(void)
{
	struct hcomm_view_status s;

	hc_node_start(&node, RANKS, "orphan_grace_s = 1");
	hc_ask_status(&s);
	snprintf(own_name, sizeof(own_name), "%s", s.node);
}

static void end(void)
{
	hc_node_end(&node);
}

/* Does that child wait in the kernel for what the daemon may say? */
static bool listens(void *ctx)
{
	const struct hc_rank *rank = ctx;
	char path[64], *text;
	bool asleep;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)rank->child.pid);
	text = hc_read_file(path);
	asleep = text && strrchr(text, ')') && !strncmp(strrchr(text, ')'), ") S", 3);
	free(text);
	return asleep;
}

/* Kills `victim` while the others listen. Nanoseconds to the last one's event. */
static uint64_t kill_and_time(uint32_t victim)
{
	uint64_t killed, last = 0;
	pid_t pid = r[victim].child.pid;
	struct hc_answer a;

	for (uint32_t i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_tell(&r[i], &listen_death);
		hc_await("a survivor to listen", listens, &r[i], 5000);
	}
	killed = hc_now_ns();
	kill(pid, SIGKILL);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_hear(&r[i], &a, 10000);
		ck_assert_msg(!a.result, "rank %u heard nothing: %s", i, a.text);
		ck_assert_uint_eq(a.code, HCOMM_EV_RANK_DIED);
		ck_assert_uint_eq(a.rank, victim);
		ck_assert_uint_eq(a.pid, (uint32_t)pid);
		ck_assert_str_eq(a.node, own_name);
		ck_assert_uint_eq(a.state, HCOMM_DAMAGED);
		last = a.end_ns > last ? a.end_ns : last;
	}
	hc_rank_kill(&r[victim]);
	return last - killed;
}

static void leave_all(uint32_t victim)
{
	struct hc_answer a;

	for (uint32_t i = 0; i < RANKS; i++) {
		if (i != victim)
			hc_rank_tell(&r[i], &leave);
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "rank %u leaves: %s", i, a.text);
	}
}

static bool nothing_lives(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_ask_status(&s);
	return !s.domains && !s.ranks;
}

START_TEST(survivors_know_who_where_and_cannot_go_on)
{
	const struct hc_order status = {.what = HC_DO_STATUS};
	struct hcomm_view_member m;
	struct hcomm_view_event e;
	struct hc_answer a;
	char pid[32];

	hc_ranks_start(r, RANKS, "mourning");
	for (uint32_t i = 0; i < RANKS; i++)
		hc_rank_must(&r[i], &begin_op, NULL);
	snprintf(pid, sizeof(pid), "pid %d", (int)r[3].child.pid);
	kill_and_time(3);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (i == 3)
			continue;
		hc_rank_must(&r[i], &(struct hc_order){.what = HC_DO_END}, NULL);
		ck_assert_int_eq(hc_rank_do(&r[i], &begin_op, &a), HCOMM_E_DAMAGED);
		hc_rank_must(&r[i], &status, &a);
		ck_assert_uint_eq(a.state, HCOMM_DAMAGED);
		ck_assert_msg(strstr(a.text, "rank 3") && strstr(a.text, pid) &&
				      strstr(a.text, own_name),
			      "%s", a.text);
	}
	ck_assert(hc_ask_member("mourning", 3, &m));
	ck_assert_str_eq(m.state, "dead");
	ck_assert(hc_ask_event("rank-died", &e));
	ck_assert_int_eq(e.rank, 3);
	leave_all(3);
	hc_await("all to be free", nothing_lives, NULL, 10000);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (i != 3)
			hc_rank_quit(&r[i]);
	}
}
END_TEST

/* A child of a rank keeps the socket open and lives on: that is no sign of life. */
static int fork_and_stay(void *arg, int in, int out)
{
	struct hcomm_root_info *info = arg;
	struct hcomm_session *s;
	hcomm_domain d;
	pid_t child;
	int one = 1;

	if (hcomm_open(NULL, &s) || hcomm_join(s, info, 2, 1, 1, NULL, 10000, &d))
		hc_fail("%s", hcomm_last_error());
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, 0);
		hc_hear(in, &one, sizeof(one), 20000);
		_exit(0);
	}
	hc_tell(out, &child, sizeof(child));
	hc_hear(in, &one, sizeof(one), 20000);
	return 0;
}

START_TEST(a_forked_child_does_not_hide_the_death)
{
	struct hcomm_root_info info;
	struct hcomm_session *s;
	struct hc_child c;
	struct hc_answer a;
	struct hc_order join = {
		.what = HC_DO_JOIN, .nranks = 2, .rank = 0, .device = 0, .timeout_ms = 10000};
	pid_t grandchild;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, 2, NULL, &info), 0);
	hc_spawn(&c, fork_and_stay, &info);
	hc_rank_spawn(&r[0]);
	join.info = info;
	hc_rank_must(&r[0], &join, NULL);
	hc_child_read(&c, &grandchild, sizeof(grandchild), 10000);
	hc_rank_tell(&r[0], &listen_death);
	hc_child_kill(&c);
	hc_rank_hear(&r[0], &a, 5000);
	ck_assert_uint_eq(a.rank, 1);
	kill(grandchild, SIGKILL);
	hc_rank_must(&r[0], &leave, NULL);
	hc_rank_quit(&r[0]);
	hcomm_close(s);
}
END_TEST

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static unsigned limit_us(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return hc_patience(LIMIT_MS) * 20000;
#else
	return hc_patience(LIMIT_MS) * 1000;
#endif
}

/* The 99th percentile of `kills` deaths, in microseconds. */
static uint64_t measure(unsigned kills)
{
	uint64_t t[200], p99;

	for (unsigned n = 0; n < kills; n++) {
		uint32_t victim = n % RANKS;

		hc_ranks_join(r, RANKS, 0, 0, NULL);
		t[n] = kill_and_time(victim);
		leave_all(victim);
		hc_rank_spawn(&r[victim]);
	}
	qsort(t, kills, sizeof(t[0]), by_size);
	p99 = t[(kills * 99 + 99) / 100 - 1];
	printf("kill to the last of 7 survivors, %u kills: p50 %.3f ms, p99 %.3f ms\n", kills,
	       (double)t[kills / 2] / 1e6, (double)p99 / 1e6);
	fflush(stdout);
	return p99 / 1000;
}

/* Of few kills the 99th percentile is the worst one, and any other program's time slice is in
 * it. So a series that is over the limit is taken again; what is slow by itself is so each time. */
START_TEST(it_is_known_within_milliseconds)
{
	unsigned kills = hc_long() ? 200 : 40;
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < RANKS; i++)
		hc_rank_spawn(&r[i]);
	for (int n = 0; n < SERIES && best >= limit_us(); n++)
		best = measure(kills);
	ck_assert_uint_lt(best, limit_us());
	hc_await("all to be free", nothing_lives, NULL, 10000);
	hc_ranks_quit(r, RANKS);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, survivors_know_who_where_and_cannot_go_on);
	tcase_add_test(t, a_forked_child_does_not_hide_the_death);
	tcase_add_test(t, it_is_known_within_milliseconds);
}

int main(void)
{
	return hc_suite_run("death", add, 120);
}
