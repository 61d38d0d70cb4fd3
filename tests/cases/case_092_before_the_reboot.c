/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 92. State from before the reboot.
 *
 * Stored domains look alive though their owners are gone, and what they held stays taken. Here
 * ten domains are stored, and then: (a) the daemon alone is restarted: they go on; (b) the owner
 * died too: they are shown as damaged and go after their grace; (c) the machine was booted anew:
 * they are gone at once, and their ids are not given again; (d) the clock went backwards since:
 * no matter, order comes from counters.
 */
#include "dbcheck.h"
#include "ranks.h"
#include "suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DOMAINS = 10, BACK_MS = 5000 };

static struct hc_node node;
static char boot[200];

/* ---- the owner of the domains ---- */

static void must(int r, const char *what)
{
	if (r)
		hc_fail("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

/* Makes them, tells their ids, and then says at each byte how many of them are ACTIVE. */
static int owner(void *arg, int in, int out)
{
	static const uint32_t devices[2] = {0, 1};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	hcomm_domain d[DOMAINS];
	uint64_t id[DOMAINS];
	char name[32], byte;
	unsigned i, active;

	(void)arg;
	must(hcomm_open(NULL, &s), "open");
	for (i = 0; i < DOMAINS; i++) {
		struct hcomm_status st = HCOMM_INIT(struct hcomm_status);

		snprintf(name, sizeof(name), "d%u", i);
		c.name = name;
		must(hcomm_join_all_local(s, devices, 2, &c, 10000, &d[i]), "join");
		must(hcomm_status_get(d[i], &st), "status");
		id[i] = st.id;
	}
	hc_tell(out, id, sizeof(id));
	for (;;) {
		hc_hear(in, &byte, 1, 60000);
		if (byte == 'q')
			break;
		must(hcomm_ping(s, 10000), "ping");
		for (i = active = 0; i < DOMAINS; i++) {
			struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
			struct hcomm_op op;

			if (hcomm_status_get(d[i], &st) || st.id != id[i] ||
			    st.state != HCOMM_ACTIVE)
				continue;
			active += !hcomm_op_begin_rank(d[i], 1, HCOMM_OP_BROADCAST, 1, 0, &op) &&
				  !hcomm_op_end(&op);
		}
		hc_tell(out, &active, sizeof(active));
	}
	hcomm_close(s);
	return 0;
}

static unsigned ask_active(struct hc_child *c)
{
	unsigned n;

	hc_child_tell(c, "?", 1);
	hc_child_read(c, &n, sizeof(n), 20000);
	return n;
}

static void quit(struct hc_child *c)
{
	hc_child_tell(c, "q", 1);
	ck_assert_int_eq(hc_child_wait(c, 10000), 0);
}

/* ---- the daemon ---- */

static void other_boot(void *arg)
{
	setenv("HCOMMD_BOOT_ID", arg, 1);
}

static void write_boot(char digit)
{
	char text[40] = "00000000-0000-4000-8000-00000000000x\n";

	text[35] = digit;
	hc_write_file(boot, text);
}

static void start(struct hc_child *c, uint64_t id[DOMAINS], const char *top)
{
	hc_node_prepare(&node, 4, top, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(boot, sizeof(boot), "%s/boot_id", node.dir);
	write_boot('1');
	node.before_exec = other_boot;
	node.arg = boot;
	hc_node_run(&node);
	hc_spawn(c, owner, NULL);
	hc_child_read(c, id, DOMAINS * sizeof(*id), 20000);
}

static unsigned count_state(const char *state)
{
	struct hcomm_view_domain d;
	char name[32];
	unsigned i, n = 0;

	for (i = 0; i < DOMAINS; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		n += hc_ask_domain(name, &d) && !strcmp(d.state, state);
	}
	return n;
}

static bool all_damaged(void *arg)
{
	(void)arg;
	return count_state("DAMAGED") == DOMAINS;
}

static bool none_alive(void *arg)
{
	struct hcomm_view_status s;

	(void)arg;
	hc_ask_status(&s);
	return !s.domains;
}

static uint64_t incarnation(void)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	struct hcomm_session *s;

	must(hcomm_open(NULL, &s), "open");
	must(hcomm_session_get(s, &info), "session");
	hcomm_close(s);
	return info.incarnation;
}

/* ---- (a) to (d) ---- */

START_TEST(the_daemon_alone_is_restarted)
{
	uint64_t id[DOMAINS], began;
	struct hc_child c;

	start(&c, id, NULL);
	hc_node_stop(&node);
	hc_node_run(&node);
	began = hc_now_ms();
	ck_assert_uint_eq(ask_active(&c), DOMAINS);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(BACK_MS));
	ck_assert_uint_eq(count_state("ACTIVE"), DOMAINS);
	quit(&c);
	hc_node_end(&node);
}
END_TEST

START_TEST(the_owner_died_too)
{
	uint64_t id[DOMAINS];
	struct hcomm_view_domain d;
	struct hc_child c;

	start(&c, id, "orphan_grace_s = 2");
	hc_node_kill(&node);
	hc_child_kill(&c);
	hc_node_run(&node);
	hc_await("all are shown as damaged", all_damaged, NULL, 2000);
	ck_assert(hc_ask_domain("d0", &d));
	ck_assert_uint_eq(d.id, id[0]);
	hc_await("they are freed after their grace", none_alive, NULL, 10000);
	ck_assert(hc_node_logged(&node, "no member alive"));
	/* nothing stays taken: the devices are free, the names too */
	hc_spawn(&c, owner, NULL);
	hc_child_read(&c, id, sizeof(id), 20000);
	quit(&c);
	hc_node_end(&node);
}
END_TEST

START_TEST(the_machine_was_booted)
{
	uint64_t id[DOMAINS], again[DOMAINS], was;
	struct hcomm_view_status before, after;
	struct hcomm_view_event e;
	struct hc_child c;
	unsigned i, k;

	start(&c, id, NULL);
	hc_ask_status(&before);
	was = incarnation();
	hc_node_kill(&node);
	hc_child_kill(&c);
	write_boot('2');
	hc_node_run(&node);
	hc_ask_status(&after);
	ck_assert_uint_eq(after.domains, 0);
	ck_assert_uint_ne(was, incarnation());
	ck_assert_uint_gt(after.start, before.start);
	/* the journal stays */
	ck_assert(hc_ask_event("domain-active", &e));
	hc_spawn(&c, owner, NULL);
	hc_child_read(&c, again, sizeof(again), 20000);
	for (i = 0; i < DOMAINS; i++)
		for (k = 0; k < DOMAINS; k++)
			ck_assert_uint_ne(id[i], again[k]);
	quit(&c);
	hc_node_end(&node);
}
END_TEST

static void date_ahead(void)
{
	char path[200];
	struct timespec t[2];

	clock_gettime(CLOCK_REALTIME, &t[0]);
	t[0].tv_sec += 86400;
	t[1] = t[0];
	hc_db_exec(&node, "UPDATE event SET wall_ns = wall_ns + 86400000000000");
	snprintf(path, sizeof(path), "%s/state/state.db", node.dir);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

struct order {
	uint64_t last;
	unsigned rows;
};

static int in_order(const void *row, void *context)
{
	const struct hcomm_view_event *e = row;
	struct order *o = context;

	if (e->seq <= o->last)
		hc_fail("event %llu comes after %llu", (unsigned long long)e->seq,
			(unsigned long long)o->last);
	o->last = e->seq;
	o->rows++;
	return 0;
}

START_TEST(the_database_is_dated_a_day_ahead)
{
	struct hcomm_filter all = HCOMM_INIT(struct hcomm_filter);
	struct order o = {0};
	struct hcomm_session *s;
	uint64_t id[DOMAINS];
	struct hc_child c;

	start(&c, id, NULL);
	hc_node_stop(&node);
	date_ahead();
	hc_node_run(&node);
	ck_assert_uint_eq(ask_active(&c), DOMAINS);
	ck_assert_uint_eq(count_state("ACTIVE"), DOMAINS);
	must(hcomm_open(NULL, &s), "open");
	must(hcomm_query(s, HCOMM_VIEW_EVENT, &all, in_order, &o), "events");
	ck_assert_uint_gt(o.rows, DOMAINS);
	hcomm_close(s);
	quit(&c);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_daemon_alone_is_restarted);
	tcase_add_test(t, the_owner_died_too);
	tcase_add_test(t, the_machine_was_booted);
	tcase_add_test(t, the_database_is_dated_a_day_ahead);
}

int main(void)
{
	return hc_suite_run("case_092_before_the_reboot", add, 60);
}
