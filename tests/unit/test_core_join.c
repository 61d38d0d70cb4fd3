/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways into a domain on one node, and what each of them refuses: names, users, devices,
 * root infos that are damaged or expired, limits, and words before the first one.
 *
 * Root info, rank table, all local devices and made for others come to the same domain; who holds
 * a rank and a device is the same question for all of them.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;

static void end(void)
{
	world_end(&w);
}

static void start(uint32_t nodes)
{
	world_start(&w, nodes);
}

static struct world_client *member(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

/* ---- ways in ---- */

START_TEST(table_all_ranks_come)
{
	struct world_client *c0, *c1;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	c1 = member(101);
	world_join_table(&w, c0, &t, 0);
	ck_assert(world_waits(c0));
	world_advance(&w, 300);
	world_join_table(&w, c1, &t, 1);
	ck_transcript(&w,
		      "[  300ms] a 100 rank 0: joined domain-#1, 2 ranks, epoch 1, as 0 on device "
		      "0\n"
		      "[  300ms] a 101 rank 1: joined domain-#1, 2 ranks, epoch 1, as 1 on device "
		      "1\n"
		      "[  300ms] a 100 hears domain-active, ACTIVE\n"
		      "[  300ms] a 101 hears domain-active, ACTIVE\n");
	ck_assert_uint_eq(c0->id, c1->id);
	ck_assert_int_eq(world_record(&w, 0, c0->id)->state, HC_W_domain_state_ACTIVE);
	end();
}
END_TEST

/* A complete table is not joined again: the next process begins a new instance. */
START_TEST(table_after_a_complete_one_begins_anew)
{
	struct world_client *c0, *c1;
	uint64_t first;

	start(1);
	world_table(&t, 1, 1);
	c0 = member(100);
	world_join_table(&w, c0, &t, 0);
	first = c0->id;
	ck_assert(first);
	world_join_table(&w, c0, &t, 0);
	ck_assert_int_eq(c0->code, 0);
	ck_assert(c0->id != first);
	c1 = member(101);
	world_join_table(&w, c1, &t, 0);
	ck_assert_int_eq(c1->code, HC_E_BUSY); /* device 0 is the first process's */
	end();
}
END_TEST

START_TEST(root_info_is_shipped_and_joined)
{
	struct world_client *root, *c1;

	start(1);
	root = member(100);
	c1 = member(101);
	w.opt.name = "train";
	world_root_info(&w, root, 0);
	world_join_root(&w, root, root, 2, 0);
	world_join_root(&w, c1, root, 2, 1);
	ck_transcript(&w,
		      "[    0ms] a 100 root: root info\n"
		      "[    0ms] a 100 rank 0: joined train, 2 ranks, epoch 1, as 0 on device 0\n"
		      "[    0ms] a 101 rank 1: joined train, 2 ranks, epoch 1, as 1 on device 1\n"
		      "[    0ms] a 100 hears domain-active, ACTIVE\n"
		      "[    0ms] a 101 hears domain-active, ACTIVE\n");
	/* the number of ranks may be said by the maker */
	world_root_info(&w, root, 1);
	world_join_root(&w, root, root, 1, 0);
	ck_assert_int_eq(root->code, 0);
	end();
}
END_TEST

START_TEST(local_takes_the_listed_devices)
{
	const uint32_t devices[] = {5, 2};
	struct world_client *cl;

	start(1);
	cl = member(100);
	world_join_local(&w, cl, devices, 2);
	ck_transcript(&w,
		      "[    0ms] a 100 local: joined domain-#1, 2 ranks, epoch 1, as 0 on device "
		      "5, 1 on device 2\n"
		      "[    0ms] a 100 hears domain-active, ACTIVE\n");
	world_join_local(&w, cl, NULL, 0); /* all of them: they are this process's or free */
	ck_assert_uint_eq(cl->nranks, 8);
	end();
}
END_TEST

/* A domain that its ranks form is not filled by others. */
START_TEST(devices_are_added_to_created_domains_only)
{
	struct world_client *c0;
	uint64_t id;

	start(1);
	world_table(&t, 2, 1);
	c0 = member(100);
	w.opt.name = "formed";
	world_join_table(&w, c0, &t, 0);
	w.opt.name = "formed";
	world_status(&w, c0, 0);
	ck_assert_int_eq(c0->state, HC_W_domain_state_FORMING);
	world_query(&w, c0, HC_VIEW_domain, 0, 0, 0);
	id = w.seen[0];
	world_add_device(&w, c0, id, 1, 5);
	ck_assert_int_ne(c0->code, 0);
	ck_assert(world_waits(c0));
	end();
}
END_TEST

/* ---- identity ---- */

START_TEST(another_user_does_not_get_in)
{
	struct world_client *c0, *other;

	start(1);
	c0 = member(100);
	other = world_client(&w, 0, 200, 2000, HC_W_role_MEMBER);
	world_root_info(&w, c0, 2);
	world_join_root(&w, other, c0, 2, 1); /* nobody is in yet */
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	world_join_root(&w, c0, c0, 2, 0);
	world_join_root(&w, other, c0, 2, 1);
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	ck_assert(world_waits(c0));
	end();
}
END_TEST

START_TEST(root_info_damaged_or_expired)
{
	struct world_client *c0, *other;
	uint32_t i, good, spoilt;

	start(1);
	c0 = member(100);
	world_root_info(&w, c0, 1);
	good = c0->info_len;
	w.show = 0;
	for (i = 0; i < good; i++) {
		spoilt = i;
		c0->info[spoilt] ^= 1;
		world_join_root(&w, c0, c0, 1, 0);
		ck_assert_int_eq(c0->code, HC_E_INVALID);
		c0->info[spoilt] ^= 1;
	}
	for (i = 0; i < good; i++) {
		c0->info_len = i;
		world_join_root(&w, c0, c0, 1, 0);
		ck_assert_int_eq(c0->code, HC_E_INVALID);
	}
	c0->info_len = 4108; /* as an application carries it, with whatever follows */
	memset(c0->info + good, 0x5a, 4108 - good);
	world_join_root(&w, c0, c0, 1, 0);
	ck_assert_int_eq(c0->code, 0);
	other = member(101);
	world_join_root(&w, other, c0, 1, 0);
	ck_assert_int_eq(other->code, HC_E_GONE);
	ck_assert_msg(strstr(other->text, "expired"), "%s", other->text);
	world_root_info(&w, c0, 2);
	world_advance(&w, 121000);
	world_join_root(&w, c0, c0, 2, 0);
	ck_assert_int_eq(c0->code, HC_E_GONE);
	end();
}
END_TEST

START_TEST(names)
{
	struct world_client *c0, *other;
	char longest[HC_NAME_MAX + 1];

	start(1);
	c0 = member(100);
	w.opt.name = "mine";
	world_root_info(&w, c0, 2);
	w.opt.name = "mine";
	world_root_info(&w, c0, 2);
	ck_assert_int_eq(c0->code, HC_E_EXISTS);
	ck_assert_msg(strstr(c0->text, "name mine is taken by domain") &&
			      strstr(c0->text, "which is FORMING"),
		      "%s", c0->text);
	other = world_client(&w, 0, 101, 2000, HC_W_role_MEMBER);
	w.opt.name = "mine"; /* unique for its owner */
	world_root_info(&w, other, 2);
	ck_assert_int_eq(other->code, 0);
	w.opt.name = "two words";
	world_root_info(&w, c0, 2);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	w.opt.name = "bell\a";
	world_root_info(&w, c0, 2);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	memset(longest, 'x', HC_NAME_MAX);
	longest[HC_NAME_MAX] = '\0';
	w.opt.name = longest;
	world_root_info(&w, c0, 1);
	ck_assert_int_eq(c0->code, 0);
	w.opt.name = longest; /* and asked for by it */
	world_query(&w, c0, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(c0->nrows, 1);
	w.opt.name = longest;
	world_status(&w, c0, 0);
	ck_assert_int_eq(c0->code, 0);
	w.opt.name = "mine"; /* not joined yet, and destroyed by its name */
	world_destroy(&w, c0, 0);
	ck_assert_int_eq(c0->code, 0);
	w.opt.name = "mine";
	world_root_info(&w, c0, 2);
	ck_assert_int_eq(c0->code, 0);
	end();
}
END_TEST

START_TEST(default_names_can_be_used)
{
	struct world_client *c0;
	const uint32_t device = 0;
	char name[128];

	start(1);
	c0 = member(100);
	world_join_local(&w, c0, &device, 1);
	memcpy(name, c0->text, sizeof(name));
	w.opt.name = name;
	world_status(&w, c0, 0);
	ck_assert_int_eq(c0->code, 0);
	w.opt.name = name;
	world_destroy(&w, c0, 0);
	ck_assert_int_eq(c0->code, 0);
	end();
}
END_TEST

/* ---- devices ---- */

START_TEST(device_is_not_here)
{
	struct world_client *c0;
	struct hc_limits lim;
	struct hc_settings set;

	world_defaults(&lim, &set);
	world_start_with(&w, 1, &lim, &set, 0, 1);
	c0 = member(100);
	world_table(&t, 2, 1);
	t.ranks[0].device = 4;
	world_table_seal(&t);
	world_join_table(&w, c0, &t, 1);
	ck_assert_int_eq(c0->code, HC_E_DEVICE_OFFLINE);
	ck_assert_msg(strstr(c0->text, "this node has no device"), "%s", c0->text);
	world_device(&w, 0, 4, 0, true, "ok");
	world_device(&w, 0, 7, 0, true, "ok");
	world_join_table(&w, c0, &t, 1);
	ck_assert_int_eq(c0->code, HC_E_DEVICE_OFFLINE);
	ck_assert_str_eq(c0->text, "rank 1 wants device 1; devices here are 4, 7");
	/* the number of devices is no limit of their numbers */
	t.ranks[1].device = 7;
	world_table_seal(&t);
	world_join_table(&w, c0, &t, 1);
	ck_assert(world_waits(c0));
	world_device(&w, 0, 9, 0, true, "offline");
	t.ranks[1].device = 9;
	world_table_seal(&t);
	world_join_table(&w, c0, &t, 1);
	ck_assert_int_eq(c0->code, HC_E_DEVICE_OFFLINE);
	world_device(&w, 0, 9, 0, false, "ok");
	world_join_table(&w, c0, &t, 1);
	ck_assert_int_eq(c0->code, HC_E_DEVICE_OFFLINE);
	end();
}
END_TEST

START_TEST(address_is_not_the_devices)
{
	struct world_client *c0;

	start(1);
	c0 = member(100);
	world_table(&t, 2, 1);
	t.ranks[1].addr.bytes[3] = 99;
	world_table_seal(&t);
	world_join_table(&w, c0, &t, 1);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	ck_assert_str_eq(c0->text,
			 "address-not-here: rank 1: table 192.0.2.99, this device (1) has "
			 "192.0.2.2");
	world_device(&w, 0, 1, 0, true, "ok"); /* an address that is not known refuses nothing */
	world_join_table(&w, c0, &t, 1);
	ck_assert(world_waits(c0));
	end();
}
END_TEST

START_TEST(device_belongs_to_one_process)
{
	const uint32_t device = 2;
	struct world_client *c0, *c1;

	start(1);
	c0 = member(100);
	c1 = member(101);
	world_join_local(&w, c0, &device, 1);
	world_join_local(&w, c0, &device, 1); /* any number of domains of one process */
	ck_assert_int_eq(c0->code, 0);
	world_join_local(&w, c1, &device, 1);
	ck_assert_int_eq(c1->code, HC_E_BUSY);
	ck_assert_str_eq(c1->text,
			 "device 2 of rank 0 is held by process 100; to share it, both must "
			 "say so");
	w.opt.shared = true;
	world_join_local(&w, c1, &device, 1);
	ck_assert_int_eq(c1->code, HC_E_BUSY);
	world_die(&w, c0);
	world_advance(&w, 6000);
	world_join_local(&w, c1, &device, 1);
	ck_assert_int_eq(c1->code, 0);
	end();
}
END_TEST

START_TEST(device_is_shared_when_all_say_so)
{
	const uint32_t device = 2;
	struct world_client *c0, *c1, *c2;

	start(1);
	c0 = member(100);
	c1 = member(101);
	c2 = member(102);
	w.opt.shared = true;
	world_join_local(&w, c0, &device, 1);
	w.opt.shared = true;
	world_join_local(&w, c1, &device, 1);
	ck_assert_int_eq(c1->code, 0);
	world_join_local(&w, c2, &device, 1);
	ck_assert_int_eq(c2->code, HC_E_BUSY);
	world_die(&w, c0); /* the first holder leaves: it is the other's now */
	world_advance(&w, 6000);
	world_join_local(&w, c2, &device, 1);
	ck_assert_int_eq(c2->code, HC_E_BUSY);
	ck_assert_msg(strstr(c2->text, "held by process 101"), "%s", c2->text);
	w.opt.shared = true;
	world_join_local(&w, c2, &device, 1);
	ck_assert_int_eq(c2->code, 0);
	world_query(&w, c2, HC_VIEW_device, 0, 0, 0);
	ck_assert_uint_eq(c2->nrows, 8);
	world_die(&w, c1);
	world_die(&w, c2);
	world_advance(&w, 6000);
	world_lose(&w, member(1));
	world_check_empty(&w);
	end();
}
END_TEST

/* Shared by the first domain, its own in the second: nobody else gets in any more. */
START_TEST(a_device_is_shared_only_while_all_uses_are)
{
	const uint32_t device = 2;
	struct world_client *c0, *c1;

	start(1);
	c0 = member(100);
	c1 = member(101);
	w.opt.shared = true;
	world_join_local(&w, c0, &device, 1);
	world_join_local(&w, c0, &device, 1);
	ck_assert_int_eq(c0->code, 0);
	w.opt.shared = true;
	world_join_local(&w, c1, &device, 1);
	ck_assert_int_eq(c1->code, HC_E_BUSY);
	end();
}
END_TEST

/* Two domains of two processes, each with its own pair of a table for eight. */
START_TEST(a_subset_takes_its_own_devices)
{
	struct world_client *cl[4];
	uint32_t i;

	start(1);
	for (i = 0; i < 4; i++) {
		cl[i] = member(100 + i);
		world_table(&t, 2, 1);
		t.ranks[0].device = i < 2 ? 2 : 4;
		t.ranks[1].device = i < 2 ? 3 : 5;
		t.ranks[0].addr.bytes[3] = (uint8_t)(t.ranks[0].device + 1);
		t.ranks[1].addr.bytes[3] = (uint8_t)(t.ranks[1].device + 1);
		world_table_seal(&t);
		world_join_table(&w, cl[i], &t, i % 2);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(cl[i]->code, 0);
		ck_assert_uint_eq(world_seat(&w, cl[i]->id, i % 2)->device, 2 + i);
		ck_assert_int_eq(world_record(&w, 0, cl[i]->id)->state, HC_W_domain_state_ACTIVE);
	}
	ck_assert(cl[0]->id != cl[2]->id);
	end();
}
END_TEST

START_TEST(local_refuses_a_list_that_cannot_be)
{
	const uint32_t twice[] = {1, 2, 1}, absent[] = {1, 88};
	struct world_client *c0;

	start(1);
	c0 = member(100);
	world_join_local(&w, c0, twice, 3);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	ck_assert_str_eq(c0->text, "device 1 is listed twice, as rank 0 and rank 2");
	world_join_local(&w, c0, absent, 2);
	ck_assert_int_eq(c0->code, HC_E_DEVICE_OFFLINE);
	world_lose(&w, c0);
	world_check_empty(&w);
	end();
}
END_TEST

/* ---- limits ---- */

START_TEST(limit_of_domains)
{
	struct world_client *c0;
	struct hc_limits lim;
	struct hc_settings set;
	const uint32_t device = 0;
	uint32_t i;

	world_defaults(&lim, &set);
	lim.domains = 3;
	world_start_with(&w, 1, &lim, &set, 8, 1);
	c0 = member(100);
	for (i = 0; i < 3; i++) {
		world_join_local(&w, c0, &device, 1);
		ck_assert_int_eq(c0->code, 0);
	}
	world_join_local(&w, c0, &device, 1);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	ck_assert_str_eq(c0->text, "domains_max (3) is reached on this node");
	world_root_info(&w, c0, 1);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	world_create(&w, c0, 1);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	world_destroy(&w, c0, c0->id);
	world_join_local(&w, c0, &device, 1);
	ck_assert_int_eq(c0->code, 0);
	end();
}
END_TEST

/* Some seats were given before the limit was met: all of them go back, answered once. */
START_TEST(limit_of_ranks)
{
	struct world_client *c0;
	struct hc_limits lim;
	struct hc_settings set;
	uint32_t i;

	world_defaults(&lim, &set);
	lim.ranks = 16;
	world_start_with(&w, 1, &lim, &set, 8, 1);
	c0 = member(100);
	world_table(&t, 4, 1);
	for (i = 0; i < 3; i++) {
		world_join_local(&w, c0, NULL, 0);
		if (c0->code)
			break;
	}
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	ck_assert_msg(strstr(c0->text, "ranks_max"), "%s", c0->text);
	world_create(&w, c0, 60);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	world_join_root(&w, c0, c0, 2, 0);
	world_die(&w, c0);
	world_advance(&w, 130000);
	c0 = member(101);
	world_lose(&w, c0);
	world_check_empty(&w);
	end();
}
END_TEST

START_TEST(limit_of_ranks_in_a_domain)
{
	struct world_client *c0;
	struct hc_limits lim;
	struct hc_settings set;

	world_defaults(&lim, &set);
	lim.ranks_per_domain = 4;
	world_start_with(&w, 1, &lim, &set, 8, 1);
	c0 = member(100);
	world_root_info(&w, c0, 0);
	world_join_root(&w, c0, c0, 5, 0);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	ck_assert_str_eq(c0->text, "5 ranks: a domain has at most 4");
	world_root_info(&w, c0, 5);
	ck_assert_int_eq(c0->code, HC_E_LIMIT);
	world_join_root(&w, c0, c0, 4, 4);
	ck_assert_int_eq(c0->code, HC_E_INVALID);
	end();
}
END_TEST

/* Processes that are detached count too: at their limit a newcomer is refused, and later let in. */
START_TEST(limit_of_processes)
{
	struct world_client *cl = NULL;
	struct hc_limits lim;
	struct hc_settings set;
	const uint32_t device = 0;
	uint32_t i, n;

	world_defaults(&lim, &set);
	lim.sessions = 4;
	lim.domains = 2048;
	lim.ranks = 4096;
	world_start_with(&w, 1, &lim, &set, 8, 1);
	w.show = 0;
	w.quiet_checks = true; /* a thousand processes, looked at in the end */
	for (n = 0; n < 3000; n++) {
		cl = world_client(&w, 0, 1000 + n, 1000, HC_W_role_MEMBER);
		if (cl->refused)
			break;
		w.opt.shared = true;
		world_join_local(&w, cl, &device, 1);
		ck_assert_int_eq(cl->code, 0);
		world_lose(&w, cl);
	}
	ck_assert(cl && cl->refused);
	ck_assert_int_eq(cl->code, HC_E_LIMIT);
	ck_assert_uint_eq(n, 4 + 1024);
	for (i = 0; i < n; i++)
		world_dead(&w, 0, 1000 + i);
	world_hello(&w, cl, HC_W_role_MEMBER, 1, 1);
	ck_assert_int_eq(cl->code, 0);
	world_lose(&w, cl);
	world_advance(&w, 6000);
	world_check_empty(&w);
	end();
}
END_TEST

/* ---- the first word ---- */

START_TEST(hello_comes_first_and_once)
{
	struct world_client *cl;

	start(1);
	cl = member(100);
	world_hello(&w, cl, HC_W_role_MEMBER, 1, 1);
	ck_assert_int_eq(cl->code, HC_E_INVALID);
	world_lose(&w, cl);
	cl->open = true; /* a session that never said hello */
	world_status(&w, cl, 5);
	ck_assert_int_eq(cl->code, HC_E_MALFORMED);
	end();
}
END_TEST

START_TEST(version_that_is_not_shared)
{
	struct world_client *cl;

	start(1);
	cl = member(100);
	world_lose(&w, cl);
	cl->open = true;
	world_hello(&w, cl, HC_W_role_MEMBER, 9, 12);
	ck_assert_int_eq(cl->code, HC_E_VERSION);
	ck_assert_msg(strstr(cl->text, "9") && strstr(cl->text, "12"), "%s", cl->text);
	world_hello(&w, cl, HC_W_role_MEMBER, 0, 0);
	ck_assert_int_eq(cl->code, HC_E_VERSION);
	world_hello(&w, cl, HC_W_role_MEMBER, 1, 12);
	ck_assert_int_eq(cl->code, 0);
	end();
}
END_TEST

START_TEST(unknown_and_malformed_requests_leave_the_session)
{
	static const uint8_t junk[64] = {1, 2, 3};
	struct hc_frame f = {.body = junk};
	struct world_client *cl;
	unsigned type;
	size_t len;

	start(1);
	cl = member(100);
	w.show = 0;
	for (type = 0; type < 130; type++)
		for (len = 0; len < 8; len++) {
			if (type == HC_MSG_join_table)
				continue; /* the shell gives a roster with it */
			f.head.type = (uint16_t)type;
			f.body_len = len;
			world_raw(&w, cl, &f);
			ck_assert(!world_waits(cl));
			ck_assert_int_ne(cl->code, 0);
		}
	world_query(&w, cl, HC_VIEW_device, 0, 0, 0);
	ck_assert_int_eq(cl->code, 0);
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, table_all_ranks_come);
	tcase_add_test(c, table_after_a_complete_one_begins_anew);
	tcase_add_test(c, root_info_is_shipped_and_joined);
	tcase_add_test(c, local_takes_the_listed_devices);
	tcase_add_test(c, devices_are_added_to_created_domains_only);
	tcase_add_test(c, another_user_does_not_get_in);
	tcase_add_test(c, root_info_damaged_or_expired);
	tcase_add_test(c, names);
	tcase_add_test(c, default_names_can_be_used);
	tcase_add_test(c, device_is_not_here);
	tcase_add_test(c, address_is_not_the_devices);
	tcase_add_test(c, device_belongs_to_one_process);
	tcase_add_test(c, device_is_shared_when_all_say_so);
	tcase_add_test(c, a_device_is_shared_only_while_all_uses_are);
	tcase_add_test(c, a_subset_takes_its_own_devices);
	tcase_add_test(c, local_refuses_a_list_that_cannot_be);
	tcase_add_test(c, limit_of_domains);
	tcase_add_test(c, limit_of_ranks);
	tcase_add_test(c, limit_of_ranks_in_a_domain);
	tcase_add_test(c, limit_of_processes);
	tcase_add_test(c, hello_comes_first_and_once);
	tcase_add_test(c, version_that_is_not_shared);
	tcase_add_test(c, unknown_and_malformed_requests_leave_the_session);
}

int main(void)
{
	return hc_suite_run("core_join", add, 60);
}
