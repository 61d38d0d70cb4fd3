/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an attacker on the network can do with datagrams: nothing moves, all of it is counted, and
 * nobody gets more bytes from us than came in the name of that source.
 *
 * Node 0 is attacked. Node 1 is its peer, whose frames are recorded; node 2 is another peer. Each
 * attack is made at one moment, so that nothing but it can be the cause of a change. Frames with a
 * wrong authenticator are turned away by the shell, here by the simulation; those marked authentic
 * show what the core does when a key is known, or when a peer itself is hostile.
 */
#include "peering.h"

#include "datagram.h"

#define AT_START 8u
#define AT_SEQ   16u

static struct sim *s;
static uint8_t frame[2048];
static uint32_t frame_len;

/* ---- a cluster, and a frame of it ---- */

static void put(uint8_t *to, uint64_t v, uint32_t bytes)
{
	while (bytes--) {
		to[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get(const uint8_t *from, uint32_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *from++;
	return v;
}

static bool records(struct sim *sim, void *arg)
{
	const uint32_t *who = arg;

	frame_len = sim_last_datagram(sim, who[0], who[1], frame, sizeof(frame));
	return frame_len && frame[HC_DATAGRAM_AT_TYPE] == who[2];
}

static void record(uint32_t from, uint32_t to, uint8_t type)
{
	uint32_t who[3] = {from, to, type};

	ck_assert(sim_until(s, records, who, 2 * SIM_S));
	sim_run(s, 20 * SIM_MS); /* it has arrived */
}

static void start(void)
{
	struct sim_args a;

	sim_defaults(&a);
	a.nodes = 3;
	a.rails = 2;
	a.seed = 21;
	a.wire.jitter = 0;
	a.settings.mtu_recheck_ns = SIM_S;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 2 * SIM_S);
	record(1, 0, HC_MSG_beat);
}

/* ---- what must not move ---- */

struct picture {
	struct hc_peer peers[2];
	struct hc_path paths[4];
	uint64_t out[3], refused;
	uint32_t npaths, logged;
};

static uint64_t refused(void)
{
	struct hc_core_counts counts = {0};

	hc_net_counts(sim_core(s, 0), &counts);
	return counts.refused_datagrams;
}

/* Counters are there to move. */
static void without_counters(struct picture *p)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		p->paths[i].refused = p->paths[i].replays = p->paths[i].late = 0;
}

static void look(struct picture *p)
{
	const struct hc_net *n = sim_core(s, 0)->net;
	uint32_t i;

	memset(p, 0, sizeof(*p));
	p->npaths = n->path_pool.used;
	ck_assert_uint_eq(p->npaths, 4);
	memcpy(p->peers, n->peers, sizeof(p->peers));
	memcpy(p->paths, n->paths, sizeof(p->paths));
	for (i = 0; i < 3; i++)
		p->out[i] = sim_datagram_bytes(s, 0, i);
	p->refused = refused();
	sim_said(s, &p->logged);
	without_counters(p);
}

/* `times` frames at one moment. Nothing moves; so many were counted. */
static void strike(uint32_t from, uint32_t rail, uint32_t len, bool authentic, uint32_t times,
		   uint32_t counted)
{
	struct picture before, after;
	uint32_t i;

	sim_run(s, 0);
	look(&before);
	for (i = 0; i < times; i++)
		sim_inject(s, 0, from, rail, frame, len, authentic);
	sim_run(s, 0);
	look(&after);
	ck_assert_uint_eq(after.refused, before.refused + counted);
	after.refused = before.refused;
	ck_assert_mem_eq(before.out, after.out, sizeof(before.out));
	ck_assert_mem_eq(before.peers, after.peers, sizeof(before.peers));
	ck_assert_mem_eq(before.paths, after.paths, sizeof(before.paths));
	ck_assert_uint_eq(before.npaths, after.npaths);
	ck_assert_uint_eq(before.logged, after.logged);
}

/* A number that was not used, so that it is not turned away as a replay. */
static void fresh(void)
{
	put(frame + AT_SEQ, get(frame + AT_SEQ, 8) + 1000000, 8);
}

static uint32_t rail_of_frame(void)
{
	const struct hc_net *n = sim_core(s, 0)->net;
	const uint32_t id = (uint32_t)get(frame + HC_DATAGRAM_AT_PATH, 4);
	uint32_t i;

	for (i = 0; i < n->path_top; i++)
		if (n->paths[i].id == id)
			return n->paths[i].remote.addr.bytes[1];
	ck_abort_msg("no such path");
	return 0;
}

static void stays_well(void)
{
	const uint64_t at = sim_now(s);

	sim_run(s, 3 * SIM_S);
	ck_assert(peering_all_up(s, NULL));
	ck_silent(s, HC_NONE, PATH_UNSTABLE, at);
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	sim_free(s);
}

/* ---- attacks ---- */

START_TEST(a_frame_without_the_key_changes_nothing)
{
	start();
	fresh();
	strike(1, rail_of_frame(), frame_len, false, 1000, 0);
	strike(2, rail_of_frame(), frame_len, false, 1000, 0);
	frame[HC_DATAGRAM_AT_TYPE] = HC_MSG_probe; /* it wants an answer */
	strike(1, rail_of_frame(), HC_PROBE_BYTES, false, 1000, 0);
	stays_well();
}
END_TEST

START_TEST(a_frame_that_was_recorded_is_taken_once)
{
	start();
	strike(1, rail_of_frame(), frame_len, true, 1000, 1000);
	sim_run(s, 20 * SIM_S); /* far behind the window of numbers */
	strike(1, rail_of_frame(), frame_len, true, 1000, 1000);
	record(1, 0, HC_MSG_probe); /* its answer would be of use for an attack on node 1 */
	strike(1, rail_of_frame(), frame_len, true, 1000, 1000);
	stays_well();
}
END_TEST

START_TEST(a_frame_from_another_source_changes_nothing)
{
	start();
	fresh();
	strike(2, rail_of_frame(), frame_len, true, 100, 100);
	strike(1, !rail_of_frame(), frame_len, true, 100, 100);
	frame[HC_DATAGRAM_AT_TYPE] = HC_MSG_probe;
	strike(2, rail_of_frame(), HC_PROBE_BYTES, true, 100, 100);
	stays_well();
}
END_TEST

START_TEST(a_frame_that_is_cut_short_or_too_long_changes_nothing)
{
	uint32_t len;

	start();
	fresh();
	for (len = HC_DATAGRAM_HEAD; len < frame_len; len++)
		strike(1, rail_of_frame(), len, true, 2, 2);
	strike(1, rail_of_frame(), frame_len + 1, true, 2, 2);
	frame[HC_DATAGRAM_AT_TYPE] = 243;
	strike(1, rail_of_frame(), frame_len, true, 2, 2);
	stays_well();
}
END_TEST

START_TEST(a_frame_of_a_path_that_is_none_changes_nothing)
{
	const uint8_t *path = frame + HC_DATAGRAM_AT_PATH;
	uint32_t i;

	start();
	fresh();
	for (i = 1; i < 64; i++) {
		const uint64_t id = get(path, 4);

		put(frame + HC_DATAGRAM_AT_PATH, id ^ (uint64_t)i * 2654435761u, 4);
		strike(1, 0, frame_len, true, 1, 1);
		put(frame + HC_DATAGRAM_AT_PATH, id, 4);
	}
	stays_well();
}
END_TEST

/* Node 2 has a key of its own: what it says is never of node 1. */
START_TEST(a_peer_cannot_speak_for_another)
{
	uint64_t path, seq;
	uint32_t rail;

	start();
	fresh();
	path = get(frame + HC_DATAGRAM_AT_PATH, 4);
	seq = get(frame + AT_SEQ, 8);
	rail = rail_of_frame();
	record(2, 0, HC_MSG_beat);
	put(frame + HC_DATAGRAM_AT_PATH, path, 4);
	put(frame + AT_SEQ, seq, 8);
	strike(1, rail, frame_len, true, 100, 100); /* with the address of node 1 */
	strike(2, rail, frame_len, true, 100, 100); /* with its own */
	stays_well();
}
END_TEST

START_TEST(a_frame_that_is_sent_back_to_its_sender_changes_nothing)
{
	start();
	record(0, 1, HC_MSG_beat);
	strike(1, rail_of_frame(), frame_len, false, 100, 0);
	fresh();
	strike(1, 0, frame_len, false, 100, 0);
	stays_well();
}
END_TEST

/* Another cluster derives other keys, whatever ids it takes: all that can be guessed. */
START_TEST(a_frame_of_another_cluster_changes_nothing)
{
	uint32_t id;

	start();
	fresh();
	for (id = 0; id < 64; id++) {
		put(frame + HC_DATAGRAM_AT_KEY, (uint64_t)(id / 4) << 16 | id % 4, 4);
		strike(1, 0, frame_len, false, 1, 0);
	}
	stays_well();
}
END_TEST

START_TEST(frames_of_the_last_start_change_nothing)
{
	uint8_t old[sizeof(frame)];
	uint32_t old_len, rail;
	uint64_t key;

	start();
	memcpy(old, frame, old_len = frame_len);
	rail = rail_of_frame();
	sim_kill(s, 1);
	sim_start(s, 1, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 5 * SIM_S));
	sim_run(s, 3 * SIM_S);
	record(1, 0, HC_MSG_beat);
	key = get(frame + HC_DATAGRAM_AT_KEY, 4);
	ck_assert_uint_ne(key, get(old + HC_DATAGRAM_AT_KEY, 4));
	ck_assert_uint_ne(get(frame + AT_START, 4), get(old + AT_START, 4));
	memcpy(frame, old, frame_len = old_len);
	strike(1, rail, frame_len, true, 100, 0); /* its key is gone: nobody can check it */
	fresh();
	put(frame + HC_DATAGRAM_AT_KEY, key, 4); /* under the new key, with the old start */
	strike(1, rail, frame_len, true, 100, 100);
	stays_well();
}
END_TEST

/* Key ids begin anew with each start of ours: the same id is another key then. */
START_TEST(frames_to_our_last_start_change_nothing)
{
	uint32_t rail;

	start();
	rail = rail_of_frame();
	sim_kill(s, 0);
	sim_start(s, 0, false);
	sim_know(s, 0, 1);
	sim_know(s, 0, 2);
	ck_assert(sim_until(s, peering_all_up, NULL, 5 * SIM_S));
	sim_run(s, 3 * SIM_S);
	strike(1, rail, frame_len, false, 100, 0);
	stays_well();
}
END_TEST

/* The peer itself: each question has one answer, and none is longer. */
START_TEST(a_flood_of_probes_is_not_amplified)
{
	uint64_t out, in = 0;
	uint32_t i, rail;

	start();
	record(1, 0, HC_MSG_probe);
	rail = rail_of_frame();
	frame_len = HC_PROBE_BYTES; /* the smallest one */
	put(frame + 36, 0, 2);
	fresh();
	sim_run(s, 0);
	out = sim_datagram_bytes(s, 0, 1);
	for (i = 0; i < 10000; i++) {
		put(frame + AT_SEQ, get(frame + AT_SEQ, 8) + 1, 8);
		sim_inject(s, 0, 1, rail, frame, frame_len, true);
		in += frame_len + HC_DATAGRAM_TAG;
	}
	sim_run(s, 0);
	ck_assert_uint_gt(sim_datagram_bytes(s, 0, 1), out); /* they were answered */
	ck_assert_uint_le(sim_datagram_bytes(s, 0, 1) - out, in);
	ck_assert(peering_all_up(s, NULL));
	sim_free(s);
}
END_TEST

START_TEST(a_flood_of_beats_that_ask_is_not_amplified)
{
	uint64_t out, in = 0;
	uint32_t i, rail;

	start();
	rail = rail_of_frame();
	put(frame + 40, HC_BEAT_HEARS | HC_BEAT_ASKS, 2);
	fresh();
	sim_run(s, 0);
	out = sim_datagram_bytes(s, 0, 1);
	for (i = 0; i < 10000; i++) {
		put(frame + AT_SEQ, get(frame + AT_SEQ, 8) + 1, 8);
		sim_inject(s, 0, 1, rail, frame, frame_len, true);
		in += frame_len + HC_DATAGRAM_TAG;
	}
	sim_run(s, 0);
	ck_assert_uint_gt(sim_datagram_bytes(s, 0, 1), out);
	ck_assert_uint_le(sim_datagram_bytes(s, 0, 1) - out, in);
	ck_assert(peering_all_up(s, NULL));
	sim_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_attack");
	TCase *t = tcase_create("attack");

	tcase_add_test(t, a_frame_without_the_key_changes_nothing);
	tcase_add_test(t, a_frame_that_was_recorded_is_taken_once);
	tcase_add_test(t, a_frame_from_another_source_changes_nothing);
	tcase_add_test(t, a_frame_that_is_cut_short_or_too_long_changes_nothing);
	tcase_add_test(t, a_frame_of_a_path_that_is_none_changes_nothing);
	tcase_add_test(t, a_peer_cannot_speak_for_another);
	tcase_add_test(t, a_frame_that_is_sent_back_to_its_sender_changes_nothing);
	tcase_add_test(t, a_frame_of_another_cluster_changes_nothing);
	tcase_add_test(t, frames_of_the_last_start_change_nothing);
	tcase_add_test(t, frames_to_our_last_start_change_nothing);
	tcase_add_test(t, a_flood_of_probes_is_not_amplified);
	tcase_add_test(t, a_flood_of_beats_that_ask_is_not_amplified);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
