/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains that an agent makes for others: created, given their devices, activated, attached to.
 *
 * Nobody holds a rank before a process attaches to it, so the end of such a domain is decided by
 * those who came: it goes when they have gone, and not because some never came.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;

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

static uint8_t state_of(uint64_t domain)
{
	return world_record(&w, 0, domain)->state;
}

START_TEST(staged_is_made_for_others)
{
	struct world_client *agent, *c0, *c1;
	uint64_t id;

	start(1);
	agent = member(50);
	w.opt.name = "staged";
	world_create(&w, agent, 2);
	id = agent->value;
	world_add_device(&w, agent, id, 0, 3);
	world_activate(&w, agent, id);
	ck_assert_int_eq(agent->code, HC_E_INVALID);
	ck_assert_msg(strstr(agent->text, "without a device: 1"), "%s", agent->text);
	world_add_device(&w, agent, id, 1, 4);
	world_activate(&w, agent, id);
	ck_assert_int_eq(agent->code, 0);
	world_forget(&w);
	c0 = member(100);
	c1 = member(101);
	world_attach(&w, c0, id, 0);
	w.opt.name = "staged";
	world_attach(&w, c1, 0, 1);
	ck_transcript(&w,
		      "[    0ms] a 100 attach: joined staged, 2 ranks, epoch 1, as 0 on device 3\n"
		      "[    0ms] a 101 attach: joined staged, 2 ranks, epoch 1, as 1 on device "
		      "4\n");
	world_attach(&w, c1, id, 0);
	ck_assert_int_eq(c1->code, HC_E_BUSY);
	world_attach(&w, c1, id, 2);
	ck_assert_int_eq(c1->code, HC_E_NOT_FOUND);
	world_activate(&w, agent, id);
	ck_assert_int_eq(agent->code, HC_E_INVALID);
	end();
}
END_TEST

START_TEST(staged_refuses_what_does_not_fit)
{
	struct world_client *agent, *other;
	uint64_t id;

	start(1);
	agent = member(50);
	other = world_client(&w, 0, 51, 2000, HC_W_role_MEMBER);
	world_create(&w, agent, 0);
	ck_assert_int_eq(agent->code, HC_E_INVALID);
	world_create(&w, agent, 2);
	id = agent->value;
	world_add_device(&w, agent, id, 2, 1);
	ck_assert_int_eq(agent->code, HC_E_INVALID);
	world_add_device(&w, agent, id, 0, 99);
	ck_assert_int_eq(agent->code, HC_E_DEVICE_OFFLINE);
	world_add_device(&w, other, id, 0, 1);
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	world_add_device(&w, agent, id, 0, 1);
	world_add_device(&w, agent, id, 0, 2);
	ck_assert_int_eq(agent->code, HC_E_EXISTS);
	world_attach(&w, agent, id, 0);
	ck_assert_int_eq(agent->code, HC_E_NOT_READY);
	end();
}
END_TEST

/* A created domain that nobody activates ends with its own words, and all of it goes. */
START_TEST(staged_and_forgotten)
{
	struct world_client *agent;

	start(1);
	agent = member(50);
	w.opt.name = "forgotten";
	world_create(&w, agent, 2);
	world_add_device(&w, agent, agent->value, 0, 1);
	w.opt.name = "empty";
	world_create(&w, agent, 2);
	world_advance(&w, 121000);
	w.opt.name = "forgotten";
	world_status(&w, agent, 0);
	ck_assert_int_eq(agent->state, HC_W_domain_state_FAILED);
	ck_assert_msg(strstr(agent->text, "not activated"), "%s", agent->text);
	world_lose(&w, agent);
	world_check_empty(&w);
	end();
}
END_TEST

START_TEST(destroy_of_a_created_domain)
{
	struct world_client *agent;
	uint64_t id;

	start(1);
	agent = member(50);
	world_create(&w, agent, 2);
	id = agent->value;
	world_destroy(&w, agent, id);
	ck_assert_int_eq(agent->code, 0);
	world_check_empty(&w);
	end();
}
END_TEST

/* Two ranks that nobody ever attached to do not keep a damaged domain; one that came late does. */
START_TEST(nobody_is_left_of_those_who_came)
{
	struct world_client *agent, *cl[3];
	uint64_t id;

	start(1);
	agent = member(50);
	world_create(&w, agent, 4);
	id = agent->value;
	for (uint32_t i = 0; i < 4; i++)
		world_add_device(&w, agent, id, i, i);
	world_activate(&w, agent, id);
	for (uint32_t i = 0; i < 2; i++) {
		cl[i] = member(100 + i);
		world_attach(&w, cl[i], id, i);
		ck_assert_int_eq(cl[i]->code, 0);
	}
	world_advance(&w, 10000);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_ACTIVE);
	world_die(&w, cl[0]);
	world_advance(&w, 10000);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_die(&w, cl[1]);
	world_advance(&w, 4000);
	cl[2] = member(102);
	world_attach(&w, cl[2], id, 2);
	ck_assert_int_eq(cl[2]->code, 0);
	world_advance(&w, 10000);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DAMAGED);
	world_die(&w, cl[2]);
	world_advance(&w, 5100);
	ck_assert_int_eq(state_of(id), HC_W_domain_state_DESTROYED);
	world_lose(&w, agent);
	world_check_empty(&w);
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, staged_is_made_for_others);
	tcase_add_test(c, staged_refuses_what_does_not_fit);
	tcase_add_test(c, staged_and_forgotten);
	tcase_add_test(c, destroy_of_a_created_domain);
	tcase_add_test(c, nobody_is_left_of_those_who_came);
}

int main(void)
{
	return hc_suite_run("core_stage", add, 60);
}
