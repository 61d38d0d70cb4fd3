/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: every request, said by everybody.
 *
 * Four callers: a stranger, whom no group lets in; a member who owns nothing here; the owner's
 * process, which holds the ranks; an administrator. What each may do stands in whomay.h
 * and is compared with what the core does, so a wrong row of rights.tbl.h fails as a
 * wrong look at it does. A row that this list lacks fails too.
 *
 * And what one uid may have: quota_domains is for each uid, names itself, and is free again when
 * the domain is over.
 */
#include "rights.h"
#include "suite.h"
#include "whomay.h"
#include "world.h"

#include <string.h>

enum { OWNER_UID = 1000, OTHER_UID = 2000 };

static struct world w;
static struct world_table t;
static struct world_client *rank0, *rank1, *maker;
static uint64_t active, staged;

/* A running domain and a created one, both of OWNER_UID. */
static void furnish(void)
{
	world_start(&w, 1);
	world_link(&w, 0,
		   &(struct hc_link_fact){.type = HC_W_link_type_SHM,
					  .a = HC_NONE,
					  .b = HC_NONE,
					  .vcs = 64,
					  .present = true});
	rank0 = world_client(&w, 0, 100, OWNER_UID, HC_W_role_MEMBER);
	rank1 = world_client(&w, 0, 101, OWNER_UID, HC_W_role_MEMBER);
	maker = world_client(&w, 0, 102, OWNER_UID, HC_W_role_MEMBER);
	world_table(&t, 2, 1);
	world_join_table(&w, rank0, &t, 0);
	world_join_table(&w, rank1, &t, 1);
	active = rank0->id;
	w.opt.name = "made";
	world_create(&w, maker, 1);
	staged = maker->value;
	ck_assert(active && staged);
}

static struct world_client *caller(enum who who)
{
	switch (who) {
	case STRANGER: return world_client(&w, 0, 200, OTHER_UID, HC_W_role_NONE);
	case OTHER: return world_client(&w, 0, 201, OTHER_UID, HC_W_role_MEMBER);
	case OWNER: return rank0;
	case ADMIN: return world_client(&w, 0, 202, 0, HC_W_role_ADMIN);
	case WHO: break;
	}
	return NULL;
}

static void say(struct world_client *cl, const struct hc_desc *d, const void *msg)
{
	static uint8_t bytes[2048];
	const uint8_t *at = bytes;
	struct hc_frame f;
	size_t len;

	ck_assert_int_eq(hc_frame_write(bytes, sizeof(bytes), d, HC_PROTO_MAX, 1, 0, msg, &len), 0);
	ck_assert_int_eq(hc_frame_next(&at, &len, &f), 0);
	world_raw(&w, cl, &f);
}

static void request(struct world_client *cl, uint16_t type)
{
	const struct world_piece piece = {.peer = 1};
	const uint32_t device = 5, both[] = {0, 1}, only_rank0[] = {0, WORLD_END};

	switch (type) {
	case HC_MSG_hello: return; /* said by caller() */
	case HC_MSG_ping: say(cl, &hc_desc_ping, &(struct hc_m_ping){.value = 1}); return;
	case HC_MSG_root_info: world_root_info(&w, cl, 1); return;
	case HC_MSG_join_root:
		world_root_info(&w, maker, 2);
		w.opt.device = 6;
		w.opt.timeout_ms = 1000;
		world_join_root(&w, cl, maker, 2, 0);
		world_advance(&w, 2000); /* alone it waits, in vain */
		return;
	case HC_MSG_join_table:
		w.opt.name = "another";
		w.opt.shared = true;
		w.opt.timeout_ms = 1000;
		world_join_table(&w, cl, &t, 0);
		world_advance(&w, 2000);
		return;
	case HC_MSG_join_local: world_join_local(&w, cl, &device, 1); return;
	case HC_MSG_create: world_create(&w, cl, 1); return;
	case HC_MSG_add_device: world_add_device(&w, cl, staged, 0, 5); return;
	case HC_MSG_activate:
		world_add_device(&w, maker, staged, 0, 5);
		world_activate(&w, cl, staged);
		return;
	case HC_MSG_attach:
		world_add_device(&w, maker, staged, 0, 5);
		world_activate(&w, maker, staged);
		world_attach(&w, cl, staged, 0);
		return;
	case HC_MSG_sub: world_sub(&w, cl, active, 0, 7, both, 1); return;
	case HC_MSG_split:
		world_split(&w, cl, active, 0, 1, 1);
		if (cl == rank0)
			world_split(&w, rank1, active, 1, 1, 1);
		return;
	case HC_MSG_batch:
		world_batch(&w, cl, active, &(struct world_item){.sub_id = 8, .ranks = only_rank0},
			    1);
		if (cl->nitems)
			cl->code = cl->codes[0];
		return;
	case HC_MSG_sync_open: world_sync_open(&w, cl, active, 0); return;
	case HC_MSG_sync_have: world_sync_have(&w, cl, active, 0, false, 0, 0); return;
	case HC_MSG_put: world_put(&w, cl, active, 0, "key", "value", 5, 0); return;
	case HC_MSG_get: world_get(&w, cl, active, 0, "key", 0, true, 0); return;
	case HC_MSG_fence:
		world_fence(&w, cl, active, only_rank0, 1, 1000);
		world_advance(&w, 2000); /* alone it waits, in vain */
		return;
	case HC_MSG_leave: world_leave(&w, cl, active, 0); return;
	case HC_MSG_destroy: world_destroy(&w, cl, active); return;
	case HC_MSG_abort: world_abort(&w, cl, active, 0, "as told"); return;
	case HC_MSG_status: world_status(&w, cl, active); return;
	case HC_MSG_carry: say(cl, &hc_desc_carry, &(struct hc_m_carry){.packets = 1}); return;
	case HC_MSG_ops_ended:
		say(cl, &hc_desc_ops_ended, &(struct hc_m_ops_ended){.id = active});
		return;
	case HC_MSG_subscribe: world_subscribe(&w, cl, active, true); return;
	case HC_MSG_query: world_query(&w, cl, HC_VIEW_domain, 0, 0, 0); return;
	case HC_MSG_channel_want: world_acquire(&w, cl, active, 0, &piece, 1, false, 0, 0); return;
	case HC_MSG_channel_open:
		world_acquire(&w, rank0, active, 0, &piece, 1, false, 0, 0);
		world_open(&w, cl, rank0->grants[0].channel, 0);
		return;
	case HC_MSG_channel_release:
		world_acquire(&w, rank0, active, 0, &piece, 1, false, 0, 0);
		world_release(&w, cl, rank0->grants[0].channel, 0);
		return;
	case HC_MSG_admin:
		say(cl, &hc_desc_admin, &(struct hc_m_admin){.verb = hc_str("reload")});
		return;
	}
	ck_abort_msg("the test does not know request %u", type);
}

START_TEST(every_request_by_everybody)
{
	const uint16_t type = list[_i / WHO].type;
	const enum who who = (enum who)(_i % WHO);
	const bool may = list[_i / WHO].may[who];
	struct world_client *cl;

	furnish();
	cl = caller(who);
	if (who == STRANGER) {
		ck_assert(cl->refused);
		ck_assert_int_eq(cl->code, HC_E_PERMISSION);
		cl->code = 0;
	} else {
		ck_assert(!cl->refused);
	}
	w.show = SHOW_REPLIES | SHOW_LOG;
	cl->code = who == STRANGER && type == HC_MSG_hello ? HC_E_PERMISSION : 0;
	request(cl, type);
	if (may)
		ck_assert_msg(cl->code != HC_E_PERMISSION, "request %u by caller %d: %s", type, who,
			      cl->text);
	else if (who == STRANGER) /* has no session, so it has said nothing */
		ck_assert_msg(cl->code == HC_E_MALFORMED || cl->code == HC_E_PERMISSION ||
				      type == HC_MSG_ops_ended,
			      "request %u by a stranger: %d", type, cl->code);
	else
		ck_assert_msg(cl->code == HC_E_PERMISSION, "request %u by caller %d: %d %s", type,
			      who, cl->code, cl->text);
	/* who is refused is told to the operator */
	if (!may && who != STRANGER)
		ck_assert(world_said(&w, who == OTHER   ? "uid 2000 is refused"
					 : who == OWNER ? "uid 1000 is refused"
							: "uid 0 is refused"));
	/* and has changed nothing */
	if (!may) {
		world_status(&w, maker, active);
		ck_assert_uint_eq(maker->state, HC_W_domain_state_ACTIVE);
		ck_assert_uint_eq(maker->nranks, 2);
	}
	world_end(&w);
}
END_TEST

START_TEST(the_list_has_every_request)
{
	unsigned rows = 0, i;

	for (i = 0; i < HC_MSG_MAX; i++)
		rows += hc_right_of((uint16_t)i) != HC_RIGHT_NONE;
	ck_assert_uint_eq(rows, ROWS);
	for (i = 0; i < ROWS; i++) {
		ck_assert_int_ne(hc_right_of(list[i].type), HC_RIGHT_NONE);
		/* nobody without a group may do anything, and each word of refusal is there */
		ck_assert(!hc_right_role(list[i].type, HC_W_role_NONE));
		ck_assert(hc_right_role(list[i].type, HC_W_role_ADMIN));
		ck_assert_ptr_nonnull(strstr(hc_right_text(list[i].type), "only"));
	}
	ck_assert(!hc_right_role(HC_MSG_hello_r, HC_W_role_ADMIN));
	ck_assert(!hc_right_role(HC_MSG_commit, HC_W_role_ADMIN));
	ck_assert(!hc_right_role(60000, HC_W_role_ADMIN));
}
END_TEST

/* ---- quota ---- */

static void start_with_quota(uint32_t quota)
{
	struct hc_limits limits;
	struct hc_settings settings;

	world_defaults(&limits, &settings);
	limits.quota_domains = quota;
	world_start_with(&w, 1, &limits, &settings, 8, 1);
}

START_TEST(a_quota_is_for_each_uid_and_comes_back)
{
	struct world_client *a, *b;
	uint64_t ids[3];
	uint32_t i, device = 0;

	start_with_quota(3);
	a = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	b = world_client(&w, 0, 200, 2000, HC_W_role_MEMBER);
	for (i = 0; i < 3; i++) {
		w.opt.shared = true;
		world_join_local(&w, a, &device, 1);
		ck_assert_int_eq(a->code, 0);
		ids[i] = a->id;
	}
	device = 1;
	world_join_local(&w, a, &device, 1);
	ck_assert_int_eq(a->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(a->text, "uid 1000"));
	ck_assert_ptr_nonnull(strstr(a->text, "quota_domains (3)"));
	world_create(&w, a, 1);
	ck_assert_int_eq(a->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(a->text, "quota_domains (3)"));
	world_root_info(&w, a, 1);
	ck_assert_int_eq(a->code, HC_E_LIMIT);
	/* the other user has its own */
	world_join_local(&w, b, &device, 1);
	ck_assert_int_eq(b->code, 0);
	/* one that is over makes room for one, not for two */
	world_destroy(&w, a, ids[1]);
	ck_assert_int_eq(a->code, 0);
	world_create(&w, a, 1);
	ck_assert_int_eq(a->code, 0);
	world_create(&w, a, 1);
	ck_assert_int_eq(a->code, HC_E_LIMIT);
	world_die(&w, a);
	world_die(&w, b);
	world_end(&w);
}
END_TEST

START_TEST(what_fails_to_form_is_not_charged)
{
	struct world_client *a;
	uint32_t i;

	start_with_quota(2);
	a = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	world_table(&t, 2, 1);
	for (i = 0; i < 20; i++) {
		w.opt.timeout_ms = 100;
		world_join_table(&w, a, &t, 0);
		world_advance(&w, 200);
		ck_assert_int_eq(a->code, HC_E_TIMEOUT);
	}
	world_die(&w, a);
	world_settle(&w);
	world_check_empty(&w);
	world_end(&w);
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, the_list_has_every_request);
	tcase_add_loop_test(c, every_request_by_everybody, 0, (int)(ROWS * WHO));
	tcase_add_test(c, a_quota_is_for_each_uid_and_comes_back);
	tcase_add_test(c, what_fails_to_form_is_not_charged);
}

int main(void)
{
	return hc_suite_run("core rights", add, 60);
}
