/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins whose home is another node, over the simulated network: real cores that first have to
 * find each other.
 *
 * A node has one client, that joins; what it was answered is kept with the time. So the tests can
 * want that an answer came at the deadline and not a moment before, and that nothing is left of a
 * join that ended.
 */
#include "peering.h"

#define NODES 3

static struct sim *s;
static struct answer {
	uint16_t type;
	uint32_t count; /* of answers to joins */
	uint64_t at, id;
	int32_t code;
	char text[1024];
} got[NODES];
static uint8_t info[HC_BLOB_MAX];
static uint32_t info_len;
static struct hc_roster table;
static struct hc_roster_server servers[2];
static struct hc_roster_rank ranks[2];

static void reply(struct sim *sim, uint32_t node, const struct hc_action *a, void *arg)
{
	struct answer *to = &got[node];
	const uint8_t *at = a->bytes;
	size_t left = a->len;
	struct hc_frame f;
	union {
		struct hc_m_root_info_r root;
		struct hc_m_joined joined;
		struct hc_m_error error;
	} m;

	(void)arg;
	ck_assert(!hc_frame_next(&at, &left, &f));
	if (f.head.type == HC_MSG_hello_r)
		return;
	to->type = f.head.type;
	to->at = sim_now(sim);
	to->count++;
	if (f.head.type == HC_MSG_root_info_r) {
		ck_assert(!hc_decode(&hc_desc_root_info_r, HC_PROTO_MAX, f.body, f.body_len, &m));
		memcpy(info, m.root.info.p, m.root.info.len);
		info_len = m.root.info.len;
		to->count = 0;
	} else if (f.head.type == HC_MSG_joined) {
		ck_assert(!hc_decode(&hc_desc_joined, HC_PROTO_MAX, f.body, f.body_len, &m));
		to->id = m.joined.id;
	} else {
		ck_assert_uint_eq(f.head.type, HC_MSG_error);
		ck_assert(!hc_decode(&hc_desc_error, HC_PROTO_MAX, f.body, f.body_len, &m));
		to->code = -f.head.status;
		hc_str_copy(m.error.text, to->text, sizeof(to->text));
	}
}

#define SESSION(node) (((uint64_t)(node) + 1) << 32)

static void ask(uint32_t node, const struct hc_desc *d, const void *msg, const struct hc_roster *t)
{
	const struct hc_cred cred = {
		.pid = 100 + node, .uid = 1000, .started = 1000, .role = HC_W_role_MEMBER};
	static uint8_t bytes[HC_PACKET_MAX];
	static uint32_t request;
	const uint8_t *at = bytes;
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = SESSION(node)};
	struct hc_frame f;
	size_t len = 0;

	ck_assert(!hc_frame_write(bytes, sizeof(bytes), d, 1, ++request, 0, msg, &len));
	ck_assert(!hc_frame_next(&at, &len, &f));
	ev.u.request.frame = &f;
	ev.u.request.cred = &cred;
	ev.u.request.roster = t;
	sim_feed(s, node, &ev);
}

/* Strangers with a device and a client each. */
static void start(uint32_t nodes)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("test")};
	struct hc_device_fact device = {
		.kind = "npu", .health = "ok", .simulated = true, .present = true};
	struct hc_event ev = {.kind = HC_EV_DEVICE_FACT, .u.device = &device};
	struct sim_args a;
	uint32_t i;

	memset(got, 0, sizeof(got));
	sim_defaults(&a);
	a.nodes = nodes;
	a.reply = reply;
	s = sim_new(&a);
	sim_start_all(s);
	for (i = 0; i < nodes; i++) {
		sim_feed(s, i, &ev);
		ask(i, &hc_desc_hello, &hello, NULL);
	}
	sim_run(s, SIM_S);
}

static void root_info(uint32_t node)
{
	const struct hc_m_root_info m = {.nranks = 2};

	info_len = 0;
	ask(node, &hc_desc_root_info, &m, NULL);
	ck_assert_uint_gt(info_len, 0);
}

static void join_root(uint32_t node, uint32_t rank, uint32_t timeout_ms)
{
	const struct hc_m_join_root m = {.info = {(const char *)info, info_len},
					 .nranks = 2,
					 .rank = rank,
					 .device = 0,
					 .timeout_ms = timeout_ms,
					 .weight = 1};

	ask(node, &hc_desc_join_root, &m, NULL);
}

/* Two ranks: of `first`, and of `second`. */
static void make_table(const char *first, const char *second)
{
	uint32_t i;

	memset(servers, 0, sizeof(servers));
	memset(ranks, 0, sizeof(ranks));
	servers[0].name = first;
	servers[1].name = second;
	for (i = 0; i < 2; i++) {
		ranks[i].server = i;
		ranks[i].addr =
			(struct hc_addr){.family = 4, .bytes = {192, 0, 2, (uint8_t)(i + 1)}};
		ranks[i].hash = i + 1;
	}
	table = (struct hc_roster){
		.hash = {7, 8}, .nservers = 2, .nranks = 2, .servers = servers, .ranks = ranks};
}

static void join_table(uint32_t node, uint32_t rank, uint32_t timeout_ms)
{
	const struct hc_m_join_table m = {.rank = rank, .timeout_ms = timeout_ms, .weight = 1};

	ask(node, &hc_desc_join_table, &m, &table);
}

static bool both_answered(struct sim *sim, void *arg)
{
	(void)sim;
	(void)arg;
	return got[0].count && got[1].count;
}

static void want_joined(void)
{
	ck_assert(sim_until(s, both_answered, NULL, 5 * SIM_S));
	ck_assert_msg(got[0].type == HC_MSG_joined, "node 0: %s", got[0].text);
	ck_assert_msg(got[1].type == HC_MSG_joined, "node 1: %s", got[1].text);
	ck_assert(got[0].id && got[0].id == got[1].id);
}

/* Nothing waits, and nobody is dialled any more. */
static void want_nothing_left(uint32_t node, uint32_t peers)
{
	const struct hc_core *c = sim_core(s, node);

	ck_assert_uint_eq(c->seek_pool.used, 0);
	ck_assert_uint_eq(c->seeking.count, 0);
	ck_assert_uint_eq(c->net->peer_pool.used, peers);
	ck_assert_uint_eq(c->part_pool.used, 0);
}

START_TEST(a_root_info_leads_to_a_stranger)
{
	start(2);
	root_info(0);
	join_root(1, 1, 5000);
	ck_assert_uint_eq(sim_core(s, 1)->seeking.count, 1);
	join_root(0, 0, 5000);
	want_joined();
	ck_assert_uint_eq(sim_core(s, 1)->seeking.count, 0);
	ck_assert(peering_are_up(s, 0, 1));
	sim_free(s);
}
END_TEST

/* Frames vanish: the answer comes at the deadline, and nothing stays. */
START_TEST(a_home_that_cannot_be_reached)
{
	uint64_t at;

	start(2);
	root_info(0);
	sim_cut(s, 0, 1, HC_NONE, true);
	sim_cut(s, 1, 0, HC_NONE, true);
	at = sim_now(s);
	join_root(1, 1, 700);
	sim_run(s, 2 * SIM_S);
	ck_assert_uint_eq(got[1].count, 1);
	ck_assert_int_eq(got[1].code, HC_E_TIMEOUT);
	ck_assert_uint_ge(got[1].at - at, 699 * SIM_MS);
	ck_assert_uint_le(got[1].at - at, 701 * SIM_MS);
	ck_assert_msg(strstr(got[1].text, "no sign of node n0") && strstr(got[1].text, "10.0.0.0"),
		      "%s", got[1].text);
	want_nothing_left(1, 0);
	sim_free(s);
}
END_TEST

/* Nobody wants the peer any more that was dialled for it. */
START_TEST(a_session_that_ends_takes_its_join_along)
{
	struct hc_event ev = {.kind = HC_EV_SESSION_LOST, .session = SESSION(1)};

	start(2);
	root_info(0);
	sim_kill(s, 0);
	join_root(1, 1, 5000);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(sim_core(s, 1)->net->peer_pool.used, 1);
	sim_feed(s, 1, &ev);
	want_nothing_left(1, 0);
	sim_run(s, 10 * SIM_S);
	ck_assert_uint_eq(got[1].count, 0);
	sim_free(s);
}
END_TEST

START_TEST(a_table_names_the_node)
{
	start(2);
	make_table("n0", "n1");
	join_table(1, 1, 5000); /* nobody of that name is known */
	sim_run(s, SIM_S);
	ck_assert_uint_eq(sim_core(s, 1)->seeking.count, 1);
	sim_know(s, 0, 1); /* it comes by itself */
	join_table(0, 0, 5000);
	want_joined();
	sim_free(s);
}
END_TEST

/* The address of a device, or host_ip, is one that the node announces: names do not matter. */
START_TEST(a_table_has_an_address_of_the_node)
{
	start(2);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	make_table("rack-7", "rack-8");
	if (_i)
		servers[0].host_ip = sim_address(0, 0).addr;
	else
		ranks[0].addr = sim_address(0, 0).addr;
	join_table(1, 1, 5000);
	ck_assert_uint_eq(sim_core(s, 1)->seeking.count, 0);
	join_table(0, 0, 5000);
	want_joined();
	sim_free(s);
}
END_TEST

START_TEST(a_table_says_where_a_stranger_is)
{
	start(2);
	make_table("rack-7", "rack-8");
	servers[0].host_ip = sim_address(0, 0).addr;
	join_table(1, 1, 5000);
	join_table(0, 0, 5000);
	want_joined();
	sim_free(s);
}
END_TEST

START_TEST(a_server_that_nobody_is)
{
	start(2);
	sim_know_all(s);
	make_table("rack-7", "rack-8");
	join_table(1, 1, 700);
	sim_run(s, 2 * SIM_S);
	ck_assert_int_eq(got[1].code, HC_E_TIMEOUT);
	ck_assert_msg(strstr(got[1].text, "no sign of rank 0 (rack-7, 192.0.2.1, device 0)"), "%s",
		      got[1].text);
	want_nothing_left(1, 1);
	sim_free(s);
}
END_TEST

START_TEST(the_tables_of_two_nodes_differ)
{
	start(2);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	make_table("n0", "n1");
	{
		const struct hc_m_join_table m = {.rank = 0, .name = hc_str("job"), .weight = 1};

		ask(0, &hc_desc_join_table, &m, &table);
	}
	sim_run(s, SIM_S);
	table.hash[0]++;
	{
		const struct hc_m_join_table m = {.rank = 1, .name = hc_str("job"), .weight = 1};

		ask(1, &hc_desc_join_table, &m, &table);
	}
	ck_assert(sim_until(s, both_answered, NULL, SIM_S));
	ck_assert_int_eq(got[0].code, HC_E_MISMATCH);
	ck_assert_int_eq(got[1].code, HC_E_MISMATCH);
	ck_assert_str_eq(got[0].text, got[1].text);
	ck_assert(strstr(got[0].text, "on node n0") && strstr(got[0].text, "on node n1"));
	sim_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_seek");
	TCase *t = tcase_create("core_seek");

	tcase_add_test(t, a_root_info_leads_to_a_stranger);
	tcase_add_test(t, a_home_that_cannot_be_reached);
	tcase_add_test(t, a_session_that_ends_takes_its_join_along);
	tcase_add_test(t, a_table_names_the_node);
	tcase_add_loop_test(t, a_table_has_an_address_of_the_node, 0, 2);
	tcase_add_test(t, a_table_says_where_a_stranger_is);
	tcase_add_test(t, a_server_that_nobody_is);
	tcase_add_test(t, the_tables_of_two_nodes_differ);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
