/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A restart of the daemon under living clients.
 *
 * Whatever ends the daemon (kill, an orderly stop, an upgrade), its domains go on: no operation
 * fails, ids, epochs and the numbers of collectives go on, ranks come back by themselves at their
 * next call. What happened while it was away is told after the start, and a drain that begins
 * then waits for what was begun before it: read in the arena that the service manager kept, or
 * that the process brought back, or else counted as one.
 */
#include "manager.h"
#include "ranks.h"
#include "suite.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 4 };

static struct hc_node node;
static struct hc_rank rank[RANKS];

static void start(void)
{
	hc_node_start(&node, 8, NULL);
	hc_ranks_start(rank, RANKS, "job");
}

static void end(void)
{
	hc_ranks_quit(rank, RANKS);
	hc_node_end(&node);
}

/* ---- what the daemon says ---- */

struct members {
	uint32_t first, count;
	const char *state;
};

static bool members_are(void *arg)
{
	struct members *m = arg;
	struct hcomm_view_member row;
	uint32_t i;

	for (i = m->first; i < m->first + m->count; i++)
		if (!hc_ask_member("job", i, &row) || strcmp(row.state, m->state) != 0)
			return false;
	return true;
}

static void await_members(uint32_t first, uint32_t count, const char *state)
{
	struct members m = {first, count, state};
	char what[80];

	snprintf(what, sizeof(what), "ranks %u to %u are %s", first, first + count - 1, state);
	hc_await(what, members_are, &m, 10000);
}

static void want_domain(uint64_t id, const char *state)
{
	struct hcomm_view_domain d;

	ck_assert(hc_ask_domain("job", &d));
	ck_assert_uint_eq(d.id, id);
	ck_assert_uint_eq(d.epoch, 1);
	ck_assert_str_eq(d.state, state);
}

static uint64_t domain_id(void)
{
	struct hcomm_view_domain d;

	ck_assert(hc_ask_domain("job", &d));
	return d.id;
}

static void look(struct hc_rank *r)
{
	hc_rank_must(r, &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 10000}, NULL);
}

/* ---- how a daemon ends ---- */

enum how { KILLED, STOPPED, UPGRADED };

static void copy_daemon(char *dir, size_t size)
{
	char from[1200], command[2600];

	hc_program("hcommd", from, sizeof(from));
	snprintf(dir, size, "%s/new", node.dir);
	hc_want(!mkdir(dir, 0700));
	snprintf(command, sizeof(command), "cp '%s' '%s/hcommd'", from, dir);
	hc_want(!system(command));
}

static void restart(enum how how)
{
	char dir[300];

	if (how == STOPPED)
		hc_node_stop(&node);
	else
		hc_node_kill(&node);
	if (how == UPGRADED) {
		copy_daemon(dir, sizeof(dir));
		setenv("HC_BIN", dir, 1);
	}
	hc_node_run(&node);
	unsetenv("HC_BIN");
}

/* ---- operations go on ---- */

static bool moved(void *arg)
{
	const uint64_t *from = arg;
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		if (__atomic_load_n(rank[i].count, __ATOMIC_RELAXED) <= from[i] + 100)
			return false;
	return true;
}

static void want_running(const char *when)
{
	uint64_t from[RANKS];
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		from[i] = __atomic_load_n(rank[i].count, __ATOMIC_RELAXED);
	hc_await(when, moved, from, 5000);
}

START_TEST(operations_go_on)
{
	struct hc_answer a;
	uint64_t id;
	uint32_t i;

	start();
	id = domain_id();
	for (i = 0; i < RANKS; i++)
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_RUN}, NULL);
	want_running("operations before");
	if (_i == STOPPED)
		hc_node_stop(&node);
	else
		hc_node_kill(&node);
	want_running("operations without a daemon");
	if (_i == UPGRADED) {
		char dir[300];

		copy_daemon(dir, sizeof(dir));
		setenv("HC_BIN", dir, 1);
	}
	hc_node_run(&node);
	unsetenv("HC_BIN");
	/* nobody calls anything but op_begin and op_end, and yet they come back */
	await_members(0, RANKS, "ready");
	want_domain(id, "ACTIVE");
	want_running("operations afterwards");
	for (i = 0; i < RANKS; i++) {
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_STOP}, NULL);
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_STATUS}, &a);
		ck_assert_uint_eq(a.id, id);
		ck_assert_uint_eq(a.epoch, 1);
		ck_assert_uint_eq(a.state, HCOMM_ACTIVE);
	}
	/* the work of all is counted as ended: leaving has nothing to force */
	for (i = 0; i < RANKS; i++)
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_LEAVE, .timeout_ms = 10000},
			     NULL);
	end();
}
END_TEST

/* Many times over: nothing wears out. */
START_TEST(ten_restarts)
{
	uint64_t id;
	int i, k;

	start();
	id = domain_id();
	for (i = 0; i < 10; i++) {
		restart(i & 1 ? STOPPED : KILLED);
		for (k = 0; k < RANKS; k++)
			look(&rank[k]);
		await_members(0, RANKS, "ready");
		want_domain(id, "ACTIVE");
	}
	end();
}
END_TEST

static bool operates_back(void *arg)
{
	struct members m = {2, 1, "ready"};

	hc_rank_must(arg, &(struct hc_order){.what = HC_DO_BEGIN, .kind = 1}, NULL);
	hc_rank_must(arg, &(struct hc_order){.what = HC_DO_END}, NULL);
	return members_are(&m);
}

/* A host that sleeps is detached, and comes back with its next call, whatever that is. */
START_TEST(idle_ranks_come_back_with_their_next_call)
{
	struct hc_order dispatch = {.what = HC_DO_DISPATCH, .timeout_ms = 5000};
	struct hc_answer a;
	uint64_t id;

	start();
	id = domain_id();
	restart(KILLED);
	await_members(0, RANKS, "detached");
	want_domain(id, "ACTIVE");
	hc_rank_do(&rank[0], &dispatch, &a); /* tells that the connection was lost */
	hc_rank_must(&rank[0], &dispatch, NULL);
	look(&rank[1]);
	/* an operation never waits for the daemon: it may take some of them */
	hc_await("an operation brings it back", operates_back, &rank[2], 10000);
	await_members(0, 3, "ready");
	await_members(3, 1, "detached");
	hc_rank_must(&rank[3], &(struct hc_order){.what = HC_DO_STATUS}, &a);
	ck_assert_uint_eq(a.state, HCOMM_ACTIVE);
	end();
}
END_TEST

/* ---- what happened meanwhile ---- */

static bool is_damaged(void *arg)
{
	struct hcomm_view_domain d;

	(void)arg;
	return hc_ask_domain("job", &d) && !strcmp(d.state, "DAMAGED");
}

START_TEST(a_death_meanwhile_is_told)
{
	struct hc_order hear = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_answer a;
	uint32_t dead, i;
	uint64_t id;

	start();
	id = domain_id();
	dead = (uint32_t)rank[2].child.pid;
	hc_node_kill(&node);
	hc_rank_kill(&rank[2]);
	hc_node_run(&node);
	hc_await("the domain is DAMAGED", is_damaged, NULL, 5000);
	want_domain(id, "DAMAGED");
	for (i = 0; i < RANKS; i++) {
		if (i == 2)
			continue;
		hc_rank_must(&rank[i], &hear, &a);
		ck_assert_uint_eq(a.id, id);
		ck_assert_uint_eq(a.rank, 2);
		ck_assert_uint_eq(a.pid, dead);
		ck_assert_int_eq(hc_rank_do(&rank[i], &begin, &a), HCOMM_E_DAMAGED);
	}
	end();
}
END_TEST

/* The daemon dies when the word is out, and its row perhaps not yet in the database. */
START_TEST(killed_when_it_has_told_a_death)
{
	struct hc_order hear = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hcomm_view_domain d;
	struct hc_answer a;
	uint32_t dead;
	uint64_t id;
	char cause[sizeof(d.cause)];
	int i;

	start();
	id = domain_id();
	dead = (uint32_t)rank[2].child.pid;
	hc_rank_tell(&rank[0], &hear);
	kill(rank[2].child.pid, SIGKILL); /* and stays a zombie, as under a busy launcher */
	hc_rank_hear(&rank[0], &a, 10000);
	hc_node_kill(&node);
	ck_assert_uint_eq(a.rank, 2);
	ck_assert_uint_eq(a.pid, dead);
	snprintf(cause, sizeof(cause), "%s", a.text);
	/* what it said holds while it is away, and after */
	ck_assert_int_eq(hc_rank_do(&rank[0], &begin, &a), HCOMM_E_DAMAGED);
	hc_node_run(&node);
	ck_assert_int_eq(hc_rank_do(&rank[0], &begin, &a), HCOMM_E_DAMAGED);
	for (i = 0; i < 2; i++) {
		hc_await("the domain is DAMAGED", is_damaged, NULL, 5000);
		want_domain(id, "DAMAGED");
		ck_assert(hc_ask_domain("job", &d));
		ck_assert_str_eq(d.cause, cause);
		restart(i ? STOPPED : KILLED);
	}
	hc_rank_kill(&rank[2]);
	end();
}
END_TEST

/* All die with the daemon: the domain is shown, and goes after its grace. */
static bool is_gone(void *arg)
{
	struct hcomm_view_domain d;

	(void)arg;
	return !hc_ask_domain("job", &d) || !strcmp(d.state, "DESTROYED");
}

START_TEST(all_die_meanwhile)
{
	uint64_t id;
	int i;

	hc_node_start(&node, 8, "orphan_grace_s = 1");
	hc_ranks_start(rank, RANKS, "job");
	id = domain_id();
	hc_node_kill(&node);
	for (i = 0; i < RANKS; i++)
		hc_rank_kill(&rank[i]);
	hc_node_run(&node);
	hc_await("the domain is DAMAGED", is_damaged, NULL, 5000);
	want_domain(id, "DAMAGED");
	hc_await("the orphan goes", is_gone, NULL, 10000);
	hc_node_end(&node);
}
END_TEST

/* ---- drains ---- */

struct destroyer {
	pthread_t thread;
	int timeout_ms;
	int result;
	volatile bool done;
	char text[HCOMM_TEXT_BYTES];
};

static void *destroy_named(void *arg)
{
	struct destroyer *d = arg;
	struct hcomm_session *s;

	d->result = hcomm_open(NULL, &s);
	if (!d->result)
		d->result = hcomm_destroy_named(s, 0, "job", d->timeout_ms);
	snprintf(d->text, sizeof(d->text), "%s", d->result ? hcomm_last_error() : "");
	hcomm_close(s);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void begin_destroy(struct destroyer *d, int timeout_ms)
{
	memset(d, 0, sizeof(*d));
	d->timeout_ms = timeout_ms;
	ck_assert_int_eq(pthread_create(&d->thread, NULL, destroy_named, d), 0);
}

static bool is_done(void *arg)
{
	return __atomic_load_n(&((struct destroyer *)arg)->done, __ATOMIC_ACQUIRE);
}

static void end_destroy(struct destroyer *d)
{
	hc_await("the destroy is answered", is_done, d, 15000);
	pthread_join(d->thread, NULL);
}

static bool is_draining(void *arg)
{
	struct hcomm_view_domain d;

	(void)arg;
	return hc_ask_domain("job", &d) && !strcmp(d.state, "DRAINING");
}

/* All have begun collective 1; all but rank 0 have ended it. */
static void one_runs(void)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_BEGIN, .kind = 1}, NULL);
	for (i = 1; i < RANKS; i++)
		hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_END}, NULL);
}

static void want_drained_by_end_of_rank_0(void)
{
	struct destroyer d;
	uint64_t since = hc_now_ms();

	begin_destroy(&d, 20000);
	hc_await("the drain has begun", is_draining, NULL, 5000);
	/* two of the daemon's looks at what runs */
	while (hc_now_ms() < since + 2200)
		ck_assert(!is_done(&d) && (usleep(20000), true));
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	end_destroy(&d);
	ck_assert_msg(!d.result, "%s: %s", hcomm_error_name(d.result), d.text);
}

START_TEST(a_drain_waits_for_what_was_begun_before)
{
	uint32_t i;

	start();
	one_runs();
	restart(KILLED);
	for (i = 0; i < RANKS; i++)
		look(&rank[i]);
	await_members(0, RANKS, "ready");
	want_drained_by_end_of_rank_0();
	end();
}
END_TEST

/* A host that ends its last operation and then sleeps: that end has to bring it back, be the drain
 * there already (0) or still to come (1). */
START_TEST(the_last_end_brings_its_host_back)
{
	struct destroyer d;
	uint32_t i;

	start();
	one_runs();
	restart(KILLED);
	for (i = 1; i < RANKS; i++)
		look(&rank[i]);
	await_members(0, 1, "detached");
	if (_i)
		hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	begin_destroy(&d, 5000);
	if (!_i) {
		hc_await("the drain has begun", is_draining, NULL, 5000);
		hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	}
	end_destroy(&d);
	ck_assert_msg(!d.result, "%s: %s", hcomm_error_name(d.result), d.text);
	end();
}
END_TEST

START_TEST(a_drain_reads_what_the_manager_kept)
{
	struct hc_manager m;

	hc_node_prepare(&node, 8, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&m, &node);
	hc_node_run(&node);
	hc_ranks_start(rank, RANKS, "job");
	one_runs();
	hc_manager_await_stored(&m, RANKS, 5000);
	restart(_i);
	hc_manager_read(&m);
	ck_assert_uint_eq(m.nstored, RANKS);
	await_members(0, RANKS, "detached");
	/* nobody is back, and still only rank 0 is waited for; its own end brings it back */
	want_drained_by_end_of_rank_0();
	end();
	hc_manager_end(&m);
}
END_TEST

START_TEST(a_forced_release_names_what_was_begun_before)
{
	struct destroyer d;
	char want[80];

	start();
	one_runs();
	restart(KILLED);
	look(&rank[0]);
	await_members(0, 1, "ready");
	begin_destroy(&d, 1500);
	end_destroy(&d);
	ck_assert_int_eq(d.result, HCOMM_E_FORCED);
	snprintf(want, sizeof(want), "rank 0, pid %d, all_reduce #1", (int)rank[0].child.pid);
	ck_assert_msg(strstr(d.text, want) != NULL, "'%s' is not in: %s", want, d.text);
	end();
}
END_TEST

/* Who never comes back counts as one that runs, until its process dies. */
START_TEST(who_does_not_come_back_is_waited_for_until_it_dies)
{
	struct destroyer d;
	uint32_t i;

	start();
	restart(KILLED);
	for (i = 0; i < RANKS - 1; i++)
		look(&rank[i]);
	await_members(0, RANKS - 1, "ready");
	await_members(RANKS - 1, 1, "detached");
	begin_destroy(&d, 20000);
	hc_await("the drain has begun", is_draining, NULL, 5000);
	ck_assert(!is_done(&d));
	hc_rank_kill(&rank[RANKS - 1]);
	end_destroy(&d);
	ck_assert_msg(!d.result, "%s: %s", hcomm_error_name(d.result), d.text);
	end();
}
END_TEST

/* ---- requests on their way ---- */

static bool waits_for_others(void *arg)
{
	struct hcomm_view_domain d;

	(void)arg;
	return hc_ask_domain("job", &d) && !strcmp(d.state, "FORMING");
}

/* The first rank waits for the second while the daemon is restarted. */
static void join_over_a_restart(struct hc_order *o)
{
	struct hc_answer a, b;

	hc_rank_spawn(&rank[0]);
	hc_rank_spawn(&rank[1]);
	o->rank = o->device = 0;
	hc_rank_tell(&rank[0], o);
	hc_await("rank 0 waits", waits_for_others, NULL, 5000);
	restart(KILLED);
	o->rank = o->device = 1;
	hc_rank_tell(&rank[1], o);
	hc_rank_hear(&rank[0], &a, 20000);
	hc_rank_hear(&rank[1], &b, 20000);
	ck_assert_msg(!a.result && !b.result, "%s; %s", a.text, b.text);
	ck_assert_uint_eq(a.id, b.id);
	ck_assert_str_eq(a.name, "job");
	hc_ranks_quit(rank, 2);
	hc_node_end(&node);
}

START_TEST(a_join_by_root_info_on_its_way)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = 2, .timeout_ms = 15000};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;

	hc_node_start(&node, 8, NULL);
	c.name = "job";
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, 2, &c, &o.info), 0);
	hcomm_close(s);
	join_over_a_restart(&o);
}
END_TEST

START_TEST(a_join_by_table_on_its_way)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 15000, .name = "job"};

	hc_node_start(&node, 8, NULL);
	snprintf(o.text, sizeof(o.text), "%s/table.json", node.dir);
	hc_table_write(o.text, 2, 1);
	join_over_a_restart(&o);
}
END_TEST

/* The daemon is away when the rank leaves: the call waits for it. */
START_TEST(a_leave_on_its_way)
{
	struct hc_order leave = {.what = HC_DO_LEAVE, .timeout_ms = 15000};
	struct hcomm_view_domain d;
	struct hc_answer a;
	uint32_t i;

	start();
	hc_rank_tell(&rank[0], &leave);
	hc_node_kill(&node); /* before, during or after the answer */
	hc_rank_tell(&rank[1], &leave);
	hc_node_run(&node);
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&rank[i], &a, 20000);
		ck_assert_msg(!a.result, "rank %u: %s: %s", i, hcomm_error_name(a.result), a.text);
	}
	await_members(0, 2, "left");
	restart(KILLED);
	await_members(0, 2, "left");
	for (i = 2; i < RANKS; i++)
		hc_rank_must(&rank[i], &leave, NULL);
	ck_assert(!hc_ask_domain("job", &d) || strcmp(d.state, "ACTIVE") != 0);
	end();
}
END_TEST

START_TEST(a_destroy_on_its_way)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct destroyer d;
	struct hc_answer a;
	uint32_t i;

	start();
	one_runs();
	begin_destroy(&d, 20000);
	hc_await("the drain has begun", is_draining, NULL, 5000);
	restart(KILLED);
	for (i = 0; i < RANKS; i++)
		look(&rank[i]);
	hc_await("the drain has begun again", is_draining, NULL, 5000);
	ck_assert(!is_done(&d));
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	end_destroy(&d);
	ck_assert_msg(!d.result, "%s: %s", hcomm_error_name(d.result), d.text);
	ck_assert_int_eq(hc_rank_do(&rank[1], &begin, &a), HCOMM_E_GONE);
	/* what has ended stays ended */
	restart(KILLED);
	ck_assert(is_gone(NULL));
	end();
}
END_TEST

/* The database is lost with the domain in it: a handle must not go on in a record of nobody. */
START_TEST(what_is_not_stored_is_over)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_order hear = {.what = HC_DO_EVENT, .code = HCOMM_EV_DOMAIN_DESTROYED};
	struct hc_answer a;
	char path[200];

	start();
	hc_node_kill(&node);
	snprintf(path, sizeof(path), "%s/state/state.db", node.dir);
	ck_assert_int_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/state/state.db-wal", node.dir);
	unlink(path);
	hc_rank_must(&rank[0], &begin, NULL);
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_node_run(&node);
	ck_assert_int_eq(hc_rank_do(&rank[0], &begin, &a), HCOMM_E_GONE);
	hc_rank_must(&rank[1], &hear, &a);
	ck_assert_uint_eq(a.state, HCOMM_DESTROYED);
	end();
}
END_TEST

static bool lost(struct hcomm_session *s)
{
	int r = hcomm_dispatch(s, 0);

	return r == HCOMM_E_PEER_CLOSED || r == HCOMM_E_NO_DAEMON;
}

/* Many at once: all are served soon, and none gives up. */
START_TEST(a_crowd_comes_back)
{
	enum { CROWD = 400 };
	static struct hcomm_session *s[CROWD];
	unsigned i, left;
	uint64_t began;

	hc_node_start(&node, 2, NULL);
	for (i = 0; i < CROWD; i++)
		ck_assert_int_eq(hcomm_open(NULL, &s[i]), 0);
	hc_node_kill(&node);
	for (i = 0; i < CROWD; i++)
		ck_assert(lost(s[i]));
	hc_node_run(&node);
	began = hc_now_ms();
	do {
		for (i = left = 0; i < CROWD; i++)
			left += hcomm_dispatch(s[i], 0) < 0;
		ck_assert_uint_lt(hc_now_ms() - began, hc_patience(10000));
	} while (left);
	for (i = 0; i < CROWD; i++)
		hcomm_close(s[i]);
	hc_node_end(&node);
}
END_TEST

/* ---- the fd store ---- */

/* Names decide: what is not ours, or damaged, or of a dead process, is closed and let go. */
START_TEST(what_the_manager_hands_over_is_checked)
{
	char name[64];
	struct hc_manager m;
	int fd;

	hc_node_prepare(&node, 8, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&m, &node);
	hc_manager_put(&m, "arena-x-y-z", open("/dev/null", O_RDONLY | O_CLOEXEC));
	hc_manager_put(&m, "stored", open("/dev/null", O_RDONLY | O_CLOEXEC));
	hc_manager_put(&m, "arena-4000000-12345-100000000", open("/dev/null", O_RDWR | O_CLOEXEC));
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	snprintf(name, sizeof(name), "arena-%d-1-100000001", (int)getpid());
	hc_manager_put(&m, name, fd);
	hc_node_run(&node);
	/* the two with a good name and nothing behind it are removed from the store */
	hc_manager_await_stored(&m, 2, 5000);
	ck_assert_uint_eq(m.removed, 2);
	ck_assert(hc_node_logged(&node, "(arena-x-y-z) of the service manager is not used"));
	ck_assert(hc_node_logged(&node, "(stored) of the service manager is not used"));
	hc_node_stop(&node);
	hc_node_end(&node);
	hc_manager_end(&m);
}
END_TEST

/* An arena goes from the store when its process has gone. */
START_TEST(the_store_does_not_grow)
{
	struct hc_manager m;
	unsigned i;

	hc_node_prepare(&node, 8, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&m, &node);
	hc_node_run(&node);
	hc_ranks_start(rank, RANKS, "job");
	for (i = 0; i < 3; i++) {
		restart(i & 1 ? STOPPED : KILLED);
		look(&rank[0]);
		look(&rank[1]);
		hc_manager_read(&m);
	}
	hc_ranks_quit(rank, RANKS);
	/* some seconds after their end, or at the daemon's next start */
	restart(KILLED);
	hc_manager_await_stored(&m, 0, 5000);
	hc_node_end(&node);
	hc_manager_end(&m);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, operations_go_on, KILLED, UPGRADED + 1);
	tcase_add_test(t, ten_restarts);
	tcase_add_test(t, idle_ranks_come_back_with_their_next_call);
	tcase_add_test(t, a_death_meanwhile_is_told);
	tcase_add_loop_test(t, killed_when_it_has_told_a_death, 0, 5);
	tcase_add_test(t, all_die_meanwhile);
	tcase_add_test(t, a_drain_waits_for_what_was_begun_before);
	tcase_add_loop_test(t, the_last_end_brings_its_host_back, 0, 2);
	tcase_add_loop_test(t, a_drain_reads_what_the_manager_kept, KILLED, STOPPED + 1);
	tcase_add_test(t, a_forced_release_names_what_was_begun_before);
	tcase_add_test(t, who_does_not_come_back_is_waited_for_until_it_dies);
	tcase_add_test(t, a_join_by_root_info_on_its_way);
	tcase_add_test(t, a_join_by_table_on_its_way);
	tcase_add_test(t, a_leave_on_its_way);
	tcase_add_test(t, a_destroy_on_its_way);
	tcase_add_test(t, what_is_not_stored_is_over);
	tcase_add_test(t, a_crowd_comes_back);
	tcase_add_test(t, what_the_manager_hands_over_is_checked);
	tcase_add_test(t, the_store_does_not_grow);
}

int main(void)
{
	return hc_suite_run("restart", add, 60);
}
