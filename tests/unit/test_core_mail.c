/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mail between nodes: what is sent arrives once and in order, whatever happens to connections.
 *
 * The messages are of types that no daemon knows, each the successor of the one before: the far
 * end logs them, and so says what came, in which order, and how often.
 */
#include "peering.h"

#include <stdio.h>

#define TYPES_FROM 150u
#define TYPES      47u /* no divisor of any window: a hole or a repetition shows */

static struct sim *s;
static char *log_text;
static size_t log_len;
static FILE *log_file;

static void start(uint32_t mail, uint64_t seed)
{
	struct sim_args a;

	log_file = open_memstream(&log_text, &log_len);
	ck_assert_ptr_nonnull(log_file);
	sim_defaults(&a);
	a.seed = seed;
	a.limits.mail = mail;
	a.trace = log_file;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, SIM_S);
}

static void end(void)
{
	sim_free(s);
	fclose(log_file);
	free(log_text);
}

struct letter {
	uint32_t of, number, bytes;
	int result;
};

static void send_it(struct hc_core *c, void *arg)
{
	struct letter *l = arg;
	static char text[4352];
	struct hc_desc d = hc_desc_exch_put;
	struct hc_m_exch_put m = {.value = {text, l->bytes}};
	uint8_t id[16];

	sim_identity(s, l->of, id);
	d.number = (uint16_t)(TYPES_FROM + l->number % TYPES);
	l->result = hc_peer_send(c, hc_peer_find(c, id), &d, &m);
}

static int post(uint32_t from, uint32_t number, uint32_t bytes)
{
	struct letter l = {.of = !from, .number = number, .bytes = bytes};

	sim_do(s, from, send_it, &l);
	return l.result;
}

/* What `node` got: each is the successor of the one before. Returns how many. */
static uint32_t came(uint32_t node, uint32_t first)
{
	const char *at, *type;
	char who[80];
	uint32_t n = 0, number;

	fflush(log_file);
	snprintf(who, sizeof(who), "] %u log: node n%u sent a message of type ", node, !node);
	for (at = log_text; at && (at = strstr(at, who)); at = type) {
		type = at + strlen(who);
		number = (uint32_t)strtoul(type, NULL, 10);
		ck_assert_msg(number == TYPES_FROM + (first + n) % TYPES,
			      "message %u on node %u is of type %u, wanted %u", n, node, number,
			      TYPES_FROM + (first + n) % TYPES);
		n++;
	}
	return n;
}

START_TEST(messages_arrive_once_and_in_order)
{
	uint32_t i;

	start(1024, 1);
	for (i = 0; i < 500; i++)
		ck_assert_int_eq(post(0, i, i % 4000), 0);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 500);
	ck_assert_uint_eq(came(0, 0), 0);
	/* all are acknowledged, and nothing is kept */
	ck_assert_uint_eq(peering_get(s, 0, 1)->mail_count, 0);
	ck_assert_uint_eq(sim_core(s, 0)->net->mail_pool.used, 0);
	end();
}
END_TEST

START_TEST(one_message_is_acknowledged_in_time)
{
	start(1024, 2);
	ck_assert_int_eq(post(0, 0, 10), 0);
	sim_run(s, 10 * SIM_MS);
	ck_assert_uint_eq(peering_get(s, 0, 1)->mail_count, 1);
	sim_run(s, 15 * SIM_MS);
	ck_assert_uint_eq(peering_get(s, 0, 1)->mail_count, 0);
	end();
}
END_TEST

START_TEST(numbers_go_round)
{
	uint32_t i;

	start(1024, 3);
	peering_get(s, 0, 1)->sent = peering_get(s, 0, 1)->acked = 0xfffffff0;
	peering_get(s, 1, 0)->received = peering_get(s, 1, 0)->told = 0xfffffff0;
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(post(0, i, 100), 0);
		if (i == 40)
			sim_reset(s, 0, 1, HC_W_conn_end_TIMEOUT);
	}
	sim_run(s, 2 * SIM_S);
	ck_assert_uint_eq(came(1, 0), 100);
	ck_assert_uint_eq(peering_get(s, 0, 1)->mail_count, 0);
	ck_assert_uint_eq(peering_get(s, 0, 1)->sent, 100 - 15); /* 0 is no number */
	end();
}
END_TEST

/* Connections end at any moment, by any side, with messages on the way in both directions. */
START_TEST(nothing_is_lost_or_doubled_when_connections_end)
{
	uint32_t i, sent[2] = {0, 0}, node;

	start(2048, 100 + (uint64_t)_i);
	for (i = 0; i < 300; i++) {
		node = (uint32_t)(sim_rand(s) % 2);
		ck_assert_int_eq(post(node, sent[node]++, (uint32_t)(sim_rand(s) % 4300)), 0);
		if (sim_rand(s) % 12 == 0)
			sim_reset(s, 0, 1,
				  sim_rand(s) % 2 ? HC_W_conn_end_TIMEOUT : HC_W_conn_end_CLOSED);
		if (sim_rand(s) % 20 == 0)
			sim_know(s, 1, 0);
		sim_run(s, sim_rand(s) % (sim_rand(s) % 4 ? 200000 : 60 * SIM_MS));
	}
	ck_assert(sim_until(s, peering_all_up, NULL, 15 * SIM_S));
	sim_run(s, 2 * SIM_S);
	ck_assert_uint_eq(came(1, 0), sent[0]);
	ck_assert_uint_eq(came(0, 0), sent[1]);
	ck_assert_uint_eq(sim_core(s, 0)->net->mail_pool.used, 0);
	ck_assert_uint_eq(sim_core(s, 1)->net->mail_pool.used, 0);
	end();
}
END_TEST

START_TEST(what_waits_for_a_connection_goes_when_it_is_there)
{
	uint32_t i;

	start(1024, 5);
	sim_cut(s, 0, 1, HC_NONE, true);
	sim_cut(s, 1, 0, HC_NONE, true);
	sim_run(s, 2 * SIM_S);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	for (i = 0; i < 200; i++)
		ck_assert_int_eq(post(0, i, 2000), 0);
	sim_run(s, SIM_S);
	sim_cut(s, HC_NONE, HC_NONE, HC_NONE, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 12 * SIM_S));
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 200);
	end();
}
END_TEST

START_TEST(a_restarted_daemon_gets_nothing_that_was_for_its_predecessor)
{
	uint32_t i;

	start(1024, 6);
	sim_kill(s, 1);
	sim_run(s, 100 * SIM_MS);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(post(0, i, 100), 0);
	sim_start(s, 1, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 5 * SIM_S));
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 0);
	ck_assert_uint_eq(peering_get(s, 0, 1)->mail_count, 0);
	/* and what comes afterwards arrives */
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(post(0, i, 100), 0);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 50);
	end();
}
END_TEST

START_TEST(too_much_that_is_not_acknowledged_ends_the_stream)
{
	uint32_t i;

	start(64, 7);
	sim_stop(s, 1);
	for (i = 0; i < 100 && !post(0, i, 1000); i++)
		;
	ck_assert_uint_eq(i, 64 / 2); /* each fills two cells */
	ck_says(s, 0, MAIL_LOST, "node n1: 32 messages");
	ck_says(s, 0, MAIL_LOST, "that it did not acknowledge are dropped");
	ck_assert_uint_eq(sim_core(s, 0)->net->mail_pool.used, 0);
	sim_go(s, 1);
	ck_assert(sim_until(s, peering_all_up, NULL, 15 * SIM_S));
	sim_run(s, SIM_S);
	i = came(1, 0); /* those that had come before the end, in order */
	ck_assert_uint_le(i, 32);
	fclose(log_file); /* from here on a new log */
	free(log_text);
	log_file = s->args.trace = open_memstream(&log_text, &log_len);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(post(0, i, 100), 0);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 20);
	ck_assert_uint_eq(sim_count(s, 0, HC_W_event_code_MAIL_LOST, 0), 1);
	end();
}
END_TEST

/* A frame that skips a number: the connection ends, the mail goes on, the peer is not down. */
static void skip(struct hc_core *c, void *arg)
{
	struct hc_peer *p = arg;
	const struct hc_m_peer_hold m = {.hold_ms = 1};

	hc_conn_send(c, p->conn, p->sent + 2, 0, &hc_desc_peer_hold, &m);
}

START_TEST(a_gap_ends_the_connection_and_no_more)
{
	uint64_t at;

	start(1024, 8);
	at = sim_now(s);
	ck_assert_int_eq(post(0, 0, 10), 0);
	sim_do(s, 0, skip, peering_get(s, 0, 1));
	sim_run(s, 2 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	ck_silent(s, HC_NONE, NODE_HOLD, at);
	ck_assert_uint_ge(peering_get(s, 0, 1)->conns, 2);
	ck_assert_int_eq(post(0, 1, 10), 0);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(came(1, 0), 2);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_mail");
	TCase *t = tcase_create("mail");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, messages_arrive_once_and_in_order);
	tcase_add_test(t, one_message_is_acknowledged_in_time);
	tcase_add_test(t, numbers_go_round);
	tcase_add_loop_test(t, nothing_is_lost_or_doubled_when_connections_end, 0, 60);
	tcase_add_test(t, what_waits_for_a_connection_goes_when_it_is_there);
	tcase_add_test(t, a_restarted_daemon_gets_nothing_that_was_for_its_predecessor);
	tcase_add_test(t, too_much_that_is_not_acknowledged_ends_the_stream);
	tcase_add_test(t, a_gap_ends_the_connection_and_no_more);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
