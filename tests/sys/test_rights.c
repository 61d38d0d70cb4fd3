/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what, through the real socket, by processes of real users.
 *
 * Two domains belong to one uid. A stranger, a member that owns nothing, an administrator of
 * another uid, and the owner's own process say every request there is (whomay.h). The socket's
 * mode is wide open in most of it, so that the daemon's own look is what keeps them out. And what
 * one uid may have: quota_domains and its share of clients_max end at one user and hurt no other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "raw.h"
#include "ranks.h"
#include "suite.h"
#include "users.h"
#include "whomay.h"

struct domains {
	/* the second pair is the administrator's to end; the third domain is left by its rank */
	uint64_t active[3], staged[3], channel[3];
	uint8_t info[HC_BLOB_MAX];
	uint32_t info_len;
};

static struct hc_node node;
static struct domains made;
static uint8_t buf[HC_PACKET_MAX], table[4096];
static uint32_t table_len;

/* ---- one request of each type ---- */

static int outcome(int fd, const struct hc_desc *d, const void *msg)
{
	static uint32_t id = 100;
	struct hc_frame f;

	if (!hc_raw_ask(fd, d, ++id, msg, buf, &f))
		hc_fail("%s: the session was ended", d->name);
	return f.head.type == HC_MSG_error ? -f.head.status : 0;
}

static int say_joins(int fd, uint16_t type, uint64_t staged)
{
	struct hc_arr devices = {0};
	uint8_t room[64];

	switch (type) {
	case HC_MSG_join_root:
		return outcome(
			fd, &hc_desc_join_root,
			&(struct hc_m_join_root){.info = {(const char *)made.info, made.info_len},
						 .nranks = 2,
						 .device = 5,
						 .timeout_ms = 200,
						 .shared = 1,
						 .weight = 1});
	case HC_MSG_join_table:
		return outcome(
			fd, &hc_desc_join_table,
			&(struct hc_m_join_table){.timeout_ms = 200,
						  .shared = 1,
						  .weight = 1,
						  .table = {(const char *)table, table_len}});
	case HC_MSG_join_local:
		ck_assert_int_eq(hc_arr_put(&devices, room, sizeof(room), &hc_desc_device,
					    HC_PROTO_MAX, &(struct hc_m_device){.index = 6}),
				 0);
		return outcome(fd, &hc_desc_join_local,
			       &(struct hc_m_join_local){
				       .shared = 1, .timeout_ms = 1000, .devices = devices});
	case HC_MSG_add_device:
		return outcome(fd, &hc_desc_add_device,
			       &(struct hc_m_add_device){.id = staged, .device = 4});
	case HC_MSG_activate:
		return outcome(fd, &hc_desc_activate,
			       &(struct hc_m_activate){.id = staged, .timeout_ms = 1000});
	}
	return outcome(fd, &hc_desc_attach, &(struct hc_m_attach){.id = staged, .block = HC_NONE});
}

static int say_ways(int fd, uint16_t type, uint64_t active)
{
	struct hc_arr ranks = {0};
	uint8_t room[64];

	if (type == HC_MSG_split)
		return outcome(
			fd, &hc_desc_split,
			&(struct hc_m_split){.parent = active, .epoch = 1, .timeout_ms = 1000});
	ck_assert_int_eq(hc_arr_put(&ranks, room, sizeof(room), &hc_desc_rank, HC_PROTO_MAX,
				    &(struct hc_m_rank){.rank = 0}),
			 0);
	return outcome(fd, &hc_desc_sub,
		       &(struct hc_m_sub){.parent = active,
					  .epoch = 1,
					  .sub_id = 7,
					  .timeout_ms = 1000,
					  .ranks = ranks});
}

/* A batch is answered item by item; here is one item. */
static int say_batch(int fd, uint64_t active)
{
	struct hc_arr items = {0}, ranks = {0};
	uint8_t room[2][64];
	struct hc_m_batch_done done;
	struct hc_m_batch_r r;
	struct hc_frame f;

	ck_assert(!hc_arr_put(&ranks, room[0], sizeof(room[0]), &hc_desc_rank, HC_PROTO_MAX,
			      &(struct hc_m_rank){.rank = 0}));
	ck_assert(!hc_arr_put(&items, room[1], sizeof(room[1]), &hc_desc_batch_item, HC_PROTO_MAX,
			      &(struct hc_m_batch_item){.sub_id = 8, .count = 1}));
	if (!hc_raw_ask(fd, &hc_desc_batch, 77,
			&(struct hc_m_batch){.parent = active,
					     .epoch = 1,
					     .timeout_ms = 1000,
					     .items = items,
					     .ranks = ranks},
			buf, &f))
		hc_fail("batch: the session was ended");
	if (f.head.type == HC_MSG_error)
		return -f.head.status;
	ck_assert(!hc_decode(&hc_desc_batch_r, HC_PROTO_MAX, f.body, f.body_len, &r));
	ck_assert(hc_arr_next(&r.items, &hc_desc_batch_done, HC_PROTO_MAX, &done));
	return done.code;
}

static int say_sync(int fd, uint16_t type, uint64_t id)
{
	struct hc_arr ranks = {0};
	uint8_t room[8];

	ck_assert(!hc_arr_put(&ranks, room, sizeof(room), &hc_desc_rank, HC_PROTO_MAX,
			      &(struct hc_m_rank){.rank = 0}));
	switch (type) {
	case HC_MSG_sync_open:
		return outcome(fd, &hc_desc_sync_open,
			       &(struct hc_m_sync_open){.id = id, .epoch = 1});
	case HC_MSG_sync_have:
		return outcome(fd, &hc_desc_sync_have,
			       &(struct hc_m_sync_have){.id = id, .epoch = 1, .ranks = ranks});
	case HC_MSG_put:
		return outcome(fd, &hc_desc_put,
			       &(struct hc_m_put){.id = id,
						  .epoch = 1,
						  .key = hc_str("key"),
						  .value = hc_str("value")});
	case HC_MSG_get:
		return outcome(fd, &hc_desc_get,
			       &(struct hc_m_get){.id = id, .epoch = 1, .key = hc_str("key")});
	}
	return outcome(
		fd, &hc_desc_fence,
		&(struct hc_m_fence){.id = id, .epoch = 1, .timeout_ms = 100, .ranks = ranks});
}

/* A channel from rank 0 to rank 1 of that domain. */
static int say_want(int fd, uint64_t active, uint64_t *channel)
{
	struct hc_m_channel_want m = {.id = active, .epoch = 1};
	struct hc_m_channel_want_r r;
	struct hc_m_channel_grant g;
	uint8_t room[64];
	struct hc_frame f;

	ck_assert(!hc_arr_put(&m.pieces, room, sizeof(room), &hc_desc_want_piece, HC_PROTO_MAX,
			      &(struct hc_m_want_piece){.peer = 1}));
	if (!hc_raw_ask(fd, &hc_desc_channel_want, 78, &m, buf, &f))
		hc_fail("channel_want: the session was ended");
	if (f.head.type != HC_MSG_channel_want_r)
		return -f.head.status;
	ck_assert(!hc_decode(&hc_desc_channel_want_r, HC_PROTO_MAX, f.body, f.body_len, &r));
	ck_assert(hc_arr_next(&r.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &g));
	if (channel)
		*channel = g.channel;
	return 0;
}

static int say(int fd, uint16_t type, unsigned pair)
{
	const uint64_t id = made.active[pair];

	switch (type) {
	case HC_MSG_hello: return 0; /* said */
	case HC_MSG_ping: return outcome(fd, &hc_desc_ping, &(struct hc_m_ping){.value = 1});
	case HC_MSG_root_info:
		return outcome(fd, &hc_desc_root_info, &(struct hc_m_root_info){.nranks = 1});
	case HC_MSG_join_root:
	case HC_MSG_join_table:
	case HC_MSG_join_local:
	case HC_MSG_add_device:
	case HC_MSG_activate:
	case HC_MSG_attach: return say_joins(fd, type, made.staged[pair]);
	case HC_MSG_create:
		return outcome(fd, &hc_desc_create,
			       &(struct hc_m_create){.nranks = 1, .weight = 1});
	case HC_MSG_sub:
	case HC_MSG_split: return say_ways(fd, type, id);
	case HC_MSG_batch: return say_batch(fd, id);
	case HC_MSG_sync_open:
	case HC_MSG_sync_have:
	case HC_MSG_put:
	case HC_MSG_get:
	case HC_MSG_fence: return say_sync(fd, type, id);
	case HC_MSG_status: return outcome(fd, &hc_desc_status, &(struct hc_m_status){.id = id});
	case HC_MSG_carry: {
		size_t n = hc_raw_frame(buf, sizeof(buf), &hc_desc_carry, 9,
					&(struct hc_m_carry){.packets = 1});

		ck_assert(hc_raw_send(fd, buf, n));
		hc_raw_want_alive(fd); /* not answered, and no harm */
		return 0;
	}
	case HC_MSG_ops_ended: {
		size_t n = hc_raw_frame(buf, sizeof(buf), &hc_desc_ops_ended, 9,
					&(struct hc_m_ops_ended){.id = id});

		ck_assert(hc_raw_send(fd, buf, n));
		hc_raw_want_alive(fd); /* not answered, and no harm */
		return 0;
	}
	case HC_MSG_subscribe:
		return outcome(fd, &hc_desc_subscribe, &(struct hc_m_subscribe){.id = id, .on = 1});
	case HC_MSG_query:
		return outcome(fd, &hc_desc_query, &(struct hc_m_query){.view = HC_VIEW_domain});
	case HC_MSG_channel_want: return say_want(fd, id, NULL);
	case HC_MSG_channel_open:
		return outcome(fd, &hc_desc_channel_open,
			       &(struct hc_m_channel_open){.channel = made.channel[pair]});
	case HC_MSG_channel_release:
		return outcome(fd, &hc_desc_channel_release,
			       &(struct hc_m_channel_release){.channel = made.channel[pair]});
	case HC_MSG_admin:
		return outcome(fd, &hc_desc_admin,
			       &(struct hc_m_admin){.verb = hc_str("log-level"),
						    .argument = hc_str("debug")});
	case HC_MSG_abort:
		return outcome(fd, &hc_desc_abort,
			       &(struct hc_m_abort){.id = id, .reason = hc_str("as told")});
	case HC_MSG_leave:
		return outcome(
			fd, &hc_desc_leave,
			&(struct hc_m_leave){.id = made.active[2], .epoch = 1, .timeout_ms = 1000});
	case HC_MSG_destroy:
		return outcome(fd, &hc_desc_destroy,
			       &(struct hc_m_destroy){.id = id, .timeout_ms = 1000});
	}
	hc_fail("the test does not know request %u", type);
}

static void say_all(int fd, enum who who, unsigned pair)
{
	for (size_t i = 0; i < ROWS; i++) {
		int code = say(fd, list[i].type, pair);

		if (list[i].may[who] != (code != HC_E_PERMISSION))
			hc_fail("request %u of caller %d: outcome %d", list[i].type, who, code);
	}
}

/* ---- the callers ---- */

static void make_pair(int fd, unsigned i)
{
	struct hc_arr devices = {0};
	uint8_t room[64];
	struct hc_frame f;
	struct hc_m_joined joined;
	struct hc_m_done done;

	ck_assert_int_eq(hc_arr_put(&devices, room, sizeof(room), &hc_desc_device, HC_PROTO_MAX,
				    &(struct hc_m_device){.index = i}),
			 0);
	ck_assert_int_eq(hc_arr_put(&devices, room, sizeof(room), &hc_desc_device, HC_PROTO_MAX,
				    &(struct hc_m_device){.index = 8 + i}),
			 0);
	ck_assert(hc_raw_ask(fd, &hc_desc_join_local, 2 + i,
			     &(struct hc_m_join_local){.timeout_ms = 5000, .devices = devices}, buf,
			     &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_joined);
	ck_assert_int_eq(hc_decode(&hc_desc_joined, 1, f.body, f.body_len, &joined), 0);
	made.active[i] = joined.id;
	ck_assert_int_eq(say_want(fd, joined.id, &made.channel[i]), 0);
	ck_assert_int_eq(outcome(fd, &hc_desc_channel_open,
				 &(struct hc_m_channel_open){.channel = made.channel[i]}),
			 0);
	ck_assert(hc_raw_ask(fd, &hc_desc_create, 12 + i,
			     &(struct hc_m_create){.nranks = 1, .weight = 1}, buf, &f));
	ck_assert_int_eq(hc_decode(&hc_desc_done, 1, f.body, f.body_len, &done), 0);
	made.staged[i] = done.value;
}

static int the_owner(void *arg, int in, int out)
{
	struct hc_m_root_info_r info;
	struct hc_frame f;
	int fd, go;

	(void)arg;
	hc_become(HC_UID_OWNER, HC_MEMBER_GROUP);
	fd = hc_raw_session(node.socket);
	make_pair(fd, 0);
	make_pair(fd, 1);
	make_pair(fd, 2);
	ck_assert(hc_raw_ask(fd, &hc_desc_root_info, 30, &(struct hc_m_root_info){.nranks = 2}, buf,
			     &f));
	ck_assert_int_eq(hc_decode(&hc_desc_root_info_r, 1, f.body, f.body_len, &info), 0);
	memcpy(made.info, info.info.p, info.info.len);
	made.info_len = info.info.len;
	hc_tell(out, &made, sizeof(made));
	hc_hear(in, &go, sizeof(go), 60000);
	say_all(fd, OWNER, 0);
	return 0;
}

static int another(void *arg, int in, int out)
{
	const enum who who = *(const enum who *)arg;

	(void)in;
	(void)out;
	hc_become(who == ADMIN ? HC_UID_ADMIN : HC_UID_OTHER,
		  who == ADMIN ? HC_ADMIN_GROUP : HC_MEMBER_GROUP);
	say_all(hc_raw_session(node.socket), who, who == ADMIN);
	return 0;
}

/* Of a stranger not even a hello is taken; whatever it says ends its connection. */
static int a_stranger(void *arg, int in, int out)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("stranger")};
	static const uint8_t zero[1024];
	struct hc_frame f;

	(void)arg;
	(void)in;
	(void)out;
	hc_become(HC_UID_STRANGER, NULL);
	for (size_t i = 0; i < ROWS; i++) {
		const struct hc_desc *d = hc_desc_msg(list[i].type);
		int fd = hc_raw_connect(node.socket);
		size_t n = hc_raw_frame(buf, sizeof(buf), d, 2,
					list[i].type == HC_MSG_hello ? (const void *)&hello : zero);

		ck_assert(!list[i].may[STRANGER]);
		ck_assert(hc_raw_send(fd, buf, n));
		ck_assert(hc_raw_recv(fd, buf, &f));
		ck_assert_uint_eq(f.head.type, HC_MSG_error);
		if (list[i].type == HC_MSG_hello)
			ck_assert_int_eq(-f.head.status, HC_E_PERMISSION);
		hc_raw_want_closed(fd);
		close(fd);
	}
	return 0;
}

static int run(hc_child_fn fn, enum who who)
{
	struct hc_child c;

	hc_spawn(&c, fn, &who);
	return hc_child_wait(&c, 30000);
}

static void want_untouched(void)
{
	int fd = hc_raw_session(node.socket);
	struct hc_frame f;
	struct hc_m_status_r r;

	for (int i = 0; i < 3; i++) {
		ck_assert(hc_raw_ask(fd, &hc_desc_status, 5,
				     &(struct hc_m_status){.id = made.active[i]}, buf, &f));
		ck_assert_int_eq(hc_decode(&hc_desc_status_r, 1, f.body, f.body_len, &r), 0);
		ck_assert_uint_eq(r.state, HC_W_domain_state_ACTIVE);
		ck_assert(hc_raw_ask(fd, &hc_desc_status, 5,
				     &(struct hc_m_status){.id = made.staged[i]}, buf, &f));
		ck_assert_int_eq(hc_decode(&hc_desc_status_r, 1, f.body, f.body_len, &r), 0);
		ck_assert_uint_eq(r.state, HC_W_domain_state_FORMING);
	}
	close(fd);
}

START_TEST(every_request_by_everybody)
{
	struct hc_child owner;
	char path[256], *text;
	int go = 1;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 12, "log_rate = 1000");
	hc_conf_set(&node, "socket_mode", "0666");
	hc_node_run(&node);
	snprintf(path, sizeof(path), "%s/two.json", node.dir);
	hc_table_write(path, 2, 1);
	text = hc_read_file(path);
	table_len = (uint32_t)strlen(text);
	ck_assert_uint_lt(table_len, sizeof(table));
	memcpy(table, text, table_len);
	free(text);
	hc_spawn(&owner, the_owner, NULL);
	hc_child_read(&owner, &made, sizeof(made), 20000);

	ck_assert_int_eq(run(a_stranger, STRANGER), 0);
	want_untouched();
	ck_assert(hc_node_logged(&node, "uid 12003 is refused"));
	ck_assert_int_eq(run(another, OTHER), 0);
	want_untouched();
	ck_assert(hc_node_logged(&node, "uid 12002 is refused: the domain belongs to uid 12001"));
	ck_assert_int_eq(run(another, ADMIN), 0);
	hc_child_tell(&owner, &go, sizeof(go));
	ck_assert_int_eq(hc_child_wait(&owner, 30000), 0);
	hc_node_end(&node);
}
END_TEST

/* ---- what one uid may have ---- */

/* Makes domains until it is refused; tells how many, and then waits. */
static int makes_many(void *arg, int in, int out)
{
	const uid_t uid = *(const uid_t *)arg;
	struct hcomm_session *s;
	hcomm_domain d[16];
	unsigned n = 0, i;
	int r = 0, go;

	hc_become(uid, HC_MEMBER_GROUP);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (;;) {
		uint32_t device = uid == HC_UID_OWNER ? 0 : 1;
		struct hcomm_config config = HCOMM_INIT(struct hcomm_config);

		config.shared = 1;
		r = hcomm_join_all_local(s, &device, 1, &config, 5000, &d[n]);
		if (r || ++n == 16)
			break;
	}
	ck_assert_int_eq(r, HCOMM_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "quota_domains (5)"));
	ck_assert_ptr_nonnull(
		strstr(hcomm_last_error(), uid == HC_UID_OWNER ? "uid 12001" : "uid 12002"));
	hc_tell(out, &n, sizeof(n));
	hc_hear(in, &go, sizeof(go), 60000);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(hcomm_destroy(d[i], 5000), 0);
	for (i = 0; i < n; i++) { /* all of it is there again */
		uint32_t device = 2;
		struct hcomm_config config = HCOMM_INIT(struct hcomm_config);

		config.shared = 1;
		r = hcomm_join_all_local(s, &device, 1, &config, 5000, &d[i]);
		if (r)
			hc_fail("domain %u after the end of the first ones: %s", i,
				hcomm_last_error());
	}
	hcomm_close(s);
	return 0;
}

START_TEST(a_quota_of_domains_for_each_uid)
{
	uid_t uids[2] = {HC_UID_OWNER, HC_UID_OTHER};
	struct hc_child c[2];
	unsigned n;
	int go = 1;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 3, "quota_domains = 5\norphan_grace_s = 1");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	for (int i = 0; i < 2; i++) {
		hc_spawn(&c[i], makes_many, &uids[i]);
		hc_child_read(&c[i], &n, sizeof(n), 20000);
		ck_assert_uint_eq(n, 5);
	}
	hc_child_tell(&c[0], &go, sizeof(go));
	ck_assert_int_eq(hc_child_wait(&c[0], 20000), 0);
	hc_child_kill(&c[1]);
	hc_node_end(&node);
}
END_TEST

static int opens_all_it_can(void *arg, int in, int out)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("many")};
	struct hc_frame f;
	unsigned n = 0;
	int go;

	(void)arg;
	hc_become(HC_UID_OWNER, HC_MEMBER_GROUP);
	while (n < 64) {
		int fd = hc_raw_connect(node.socket);

		if (!hc_raw_ask(fd, &hc_desc_hello, 1, &hello, buf, &f))
			hc_fail("no answer to hello %u", n);
		if (f.head.type == HC_MSG_error)
			break;
		n++;
	}
	ck_assert_int_eq(-f.head.status, HC_E_LIMIT);
	hc_tell(out, &n, sizeof(n));
	hc_hear(in, &go, sizeof(go), 60000);
	return 0;
}

static int opens_one(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	hc_become(HC_UID_OTHER, HC_MEMBER_GROUP);
	hc_raw_want_alive(hc_raw_session(node.socket));
	return 0;
}

START_TEST(one_user_leaves_sessions_for_others)
{
	struct hc_child hog;
	unsigned n;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 1, "clients_max = 32");
	hc_node_run(&node);
	hc_spawn(&hog, opens_all_it_can, NULL);
	hc_child_read(&hog, &n, sizeof(n), 20000);
	ck_assert_uint_eq(n, 30);
	ck_assert(hc_node_logged(&node, "uid 12001 has 30 sessions; of clients_max (32)"));
	ck_assert_int_eq(run(opens_one, OTHER), 0);
	hc_raw_want_alive(hc_raw_session(node.socket)); /* the operator, too */
	hc_child_kill(&hog);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, every_request_by_everybody);
	tcase_add_test(t, a_quota_of_domains_for_each_uid);
	tcase_add_test(t, one_user_leaves_sessions_for_others);
}

int main(void)
{
	return hc_suite_run("rights", add, 60);
}
