/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a link that one user may hold, between processes of two real users.
 *
 * The shared memory of the node is a link of 1,000 MB/s, of which 800 can be granted; with
 * quota_link_percent = 50 a user has 400 of them, in whatever domains. One user has two processes,
 * a domain each, and is refused, for good or for now, with the quota, its value and what is held;
 * one of them waits, also over a kill of the daemon, and is served when the other one's channel
 * ends. The other user never notices. At every look the user's channels are within the quota.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "apitest.h"
#include "hcomm/views.h"
#include "users.h"

enum { QUOTA_MBPS = 400 };

static const char link_section[] = "[link any any]\nbandwidth_mbps = 1000\nvirtual_channels = 8\n";

static struct hc_node node;
static struct hc_child one, two, other;

/* ---- a process of a user ---- */

struct order {
	char what; /* 't'ry, 'w'ait, 'r'elease the last one */
	uint32_t mbps;
};
struct answer {
	int r;
	char text[400];
};

static struct answer carry_out(hcomm_domain d, const struct order *o, hcomm_channel *last)
{
	struct hcomm_channel_args args = HCOMM_INIT(struct hcomm_channel_args);
	struct answer a = {0};

	args.peer = 1;
	args.rank = 0;
	args.flags = HCOMM_CHANNEL_FROM | HCOMM_CHANNEL_GRANT_ONLY; /* no rings to be lost */
	args.bandwidth_mbps = o->mbps;
	args.wait = o->what == 'w';
	if (o->what == 'r')
		a.r = hcomm_channel_release(*last);
	else
		a.r = hcomm_channel_acquire(d, &args, args.wait ? 120000 : 20000, last);
	snprintf(a.text, sizeof(a.text), "%s", hcomm_last_error());
	return a;
}

/* Joins a domain of both devices, and then does as it is told. */
static int user(void *arg, int in, int out)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	const uint32_t devices[2] = {0, 1};
	struct hcomm_session *s;
	hcomm_channel last = 0;
	struct answer a;
	struct order o;
	hcomm_domain d;

	hc_become(*(const uid_t *)arg, HC_MEMBER_GROUP);
	s = open_session();
	config.shared = 1;
	works(hcomm_join_all_local(s, devices, 2, &config, 20000, &d));
	hc_tell(out, "x", 1);
	for (;;) {
		hc_hear(in, &o, sizeof(o), 300000);
		a = carry_out(d, &o, &last);
		hc_tell(out, &a, sizeof(a));
	}
}

static void start_user(struct hc_child *c, uid_t uid)
{
	char x;

	hc_spawn(c, user, &uid);
	hc_child_read(c, &x, 1, 20000);
}

static void tell(struct hc_child *c, char what, uint32_t mbps)
{
	const struct order o = {what, mbps};

	hc_child_tell(c, &o, sizeof(o));
}

static struct answer hear(struct hc_child *c)
{
	struct answer a;

	hc_child_read(c, &a, sizeof(a), 60000);
	return a;
}

static void gets(struct hc_child *c, uint32_t mbps)
{
	struct answer a;

	tell(c, 't', mbps);
	a = hear(c);
	ck_assert_msg(!a.r, "%s: %s", hcomm_error_name(a.r), a.text);
}

static void is_refused(struct hc_child *c, char what, uint32_t mbps, int error, const char *held)
{
	struct answer a;

	tell(c, what, mbps);
	a = hear(c);
	ck_assert_msg(a.r == error, "%s: %s", hcomm_error_name(a.r), a.text);
	ck_assert_msg(strstr(a.text, held) && strstr(a.text, "quota_link_percent (50)") &&
			      strstr(a.text, "uid 12001"),
		      "%s", a.text);
}

/* ---- looking ---- */

struct uses {
	uint32_t mbps, others;
};

static int one_channel(const void *row, void *context)
{
	const struct hcomm_view_channel *r = row;
	struct uses *u = context;

	if (r->pid == (uint32_t)other.pid)
		u->others += r->mbps;
	else
		u->mbps += r->mbps;
	return 0;
}

static struct uses look(struct hcomm_session *s)
{
	struct uses u = {0};

	works(hcomm_query(s, HCOMM_VIEW_CHANNEL, NULL, one_channel, &u));
	ck_assert_uint_le(u.mbps, QUOTA_MBPS);
	ck_assert_uint_le(u.others, QUOTA_MBPS);
	return u;
}

static int one_waiting(const void *row, void *context)
{
	const struct hcomm_view_waiting *r = row;

	*(unsigned *)context += !strcmp(r->kind, "wait") && r->uid == HC_UID_OWNER;
	return 0;
}

static bool one_waits(void *s)
{
	unsigned n = 0;

	look(s);
	works(hcomm_query(s, HCOMM_VIEW_WAITING, NULL, one_waiting, &n));
	return n == 1;
}

/* ---- tests ---- */

static void start(void)
{
	char *text, *all;

	hc_users_prepare(&node, 2, "quota_link_percent = 50\naging_s = 1\norphan_grace_s = 1");
	text = hc_read_file(node.conf);
	ck_assert_ptr_nonnull(text);
	all = malloc(strlen(text) + sizeof(link_section));
	ck_assert_ptr_nonnull(all);
	strcat(strcpy(all, text), link_section);
	hc_replace_file(node.conf, all);
	free(all);
	free(text);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	start_user(&one, HC_UID_OWNER);
	start_user(&two, HC_UID_OWNER);
	start_user(&other, HC_UID_OTHER);
}

START_TEST(a_user_has_its_part_of_a_link_and_no_more)
{
	struct hcomm_session *s;
	struct answer a;

	if (!hc_users_work())
		return;
	start();
	s = open_session();
	gets(&one, 300);
	is_refused(&two, 't', 200, HCOMM_E_AGAIN, "holds 300 MB/s of link shm and asks for 200");
	is_refused(&two, 'w', 401, HCOMM_E_LIMIT, "holds 300 MB/s of link shm and asks for 401");
	tell(&two, 'w', 200);
	hc_await("one that waits", one_waits, s, 20000);
	gets(&other, 200);
	hcomm_close(s);

	/* the daemon is killed: what is held counts, who waits goes on waiting */
	hc_node_kill(&node);
	hc_node_run(&node);
	s = open_session();
	hc_await("one that waits", one_waits, s, 60000);
	ck_assert_uint_eq(look(s).mbps, 300);
	gets(&other, 200);
	ck_assert_uint_eq(look(s).others, 400);

	/* its user gives back */
	hc_child_kill(&one);
	a = hear(&two);
	ck_assert_msg(!a.r, "%s: %s", hcomm_error_name(a.r), a.text);
	ck_assert_uint_eq(look(s).mbps, 200);
	hcomm_close(s);
	hc_child_kill(&two);
	hc_child_kill(&other);
	hc_node_end(&node);
}
END_TEST

static bool has_the_rest(void *arg)
{
	struct answer a;

	(void)arg;
	tell(&two, 't', 500);
	a = hear(&two);
	return !a.r;
}

START_TEST(a_reload_gives_more_to_who_was_refused)
{
	if (!hc_users_work())
		return;
	start();
	gets(&one, 300);
	is_refused(&two, 'w', 500, HCOMM_E_LIMIT, "holds 300 MB/s of link shm and asks for 500");
	hc_conf_set(&node, "quota_link_percent", "100");
	hc_conf_set(&node, "channel_owner", "uid");
	kill(node.pid, SIGHUP);
	hc_await("the rest of the link", has_the_rest, NULL, 20000);
	hc_child_kill(&one);
	hc_child_kill(&two);
	hc_child_kill(&other);
	hc_node_end(&node);
}
END_TEST

TESTS("quota_link", a_user_has_its_part_of_a_link_and_no_more,
      a_reload_gives_more_to_who_was_refused)
