/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beats: when silence becomes a verdict, to the nanosecond, and what must not become one: loss by
 * chance, our own stalls, another interval, other keys, repeated and misdirected frames.
 */
#include "pathrig.h"
#include "suite.h"

static void end(void)
{
	rig_end_all();
}

static uint8_t state(uint32_t node, uint32_t of)
{
	return rig_path(node, of)->state;
}

#define NORMAL   HC_W_path_state_NORMAL
#define UNSTABLE HC_W_path_state_UNSTABLE
#define DOWN     HC_W_path_state_DOWN

START_TEST(both_ends_prove_a_new_path_in_a_round_trip_or_two)
{
	rig_start(2);
	rig_for(MS);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->id, rig_path(1, 0)->id);
	ck_assert(rig_said(0,
			   "path to node1 over eth0 (10.0.0.1:16660 to 10.0.0.2:16660) is normal"));
	rig_for(SEC);
	ck_assert_uint_ge(rig_path(0, 1)->rtt_us, 200); /* cut to microseconds twice */
	ck_assert_uint_le(rig_path(0, 1)->rtt_us, 201);
	ck_assert_uint_eq(rig_path(0, 1)->jitter_us, 0);
	ck_assert_uint_eq(rig_path(0, 1)->missed, 0);
	end();
}
END_TEST

/* Ages of the link when the other end falls silent, in ms; and the interval. */
static const uint32_t silences[][3] = {{1000, 100, 3}, {60000, 100, 3}, {1000, 10, 3},
				       {60000, 10, 3}, {1237, 50, 3},   {60000, 1000, 3},
				       {5000, 100, 2}, {5000, 20, 7}};

START_TEST(silence_is_a_verdict_at_the_exact_time)
{
	const uint64_t interval = silences[_i][1] * MS;
	const uint32_t misses = silences[_i][2];
	uint64_t last;

	rig_start_at(2, interval, misses, misses + 2);
	rig_for(silences[_i][0] * MS);
	rig.loses = rig_lose_all;
	rig_for(MS);
	last = rig_path(0, 1)->heard_at;
	rig_until(last + misses * interval - 1);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	rig_until(last + misses * interval);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	ck_assert_uint_eq(rig_path(0, 1)->cause, HC_W_path_cause_MISSES);
	ck_assert_uint_eq(rig_path(0, 1)->run, misses);
	ck_assert_uint_eq(rig_path(0, 1)->urgent, 3);
	rig_until(last + (misses + 2) * interval - 1);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	rig_until(last + (misses + 2) * interval);
	ck_assert_uint_eq(state(0, 1), DOWN);
	ck_assert_uint_eq(rig_path(0, 1)->worst, misses + 2);
	rig.loses = NULL;
	rig_for(interval + 2 * MS);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	end();
}
END_TEST

static bool lose_2_percent(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	(void)p;
	return rig_random() % 1000 < 20;
}

START_TEST(two_percent_of_loss_never_become_a_verdict)
{
	const uint64_t minutes = hc_long() ? 600 : 30;
	uint32_t beats;

	rig_start_at(2, 10 * MS, 3, 5);
	rig_for(SEC);
	rig.loses = lose_2_percent;
	rig_forget();
	rig_for(minutes * 60 * SEC);
	beats = rig.node[0].sent[HC_MSG_beat];
	ck_assert_uint_gt(beats, minutes * 6000);
	ck_assert_uint_eq(rig_times(0, "is unstable") + rig_times(1, "is unstable"), 0);
	/* what was lost is counted: no more, and not much less */
	ck_assert_uint_gt(rig_path(1, 0)->missed, beats / 1000 * 15);
	ck_assert_uint_lt(rig_path(1, 0)->missed, beats / 1000 * 25);
	end();
}
END_TEST

/*
 * 3,000 beats at 200 ms. A beat in a hundred that is lost is counted and is no event; of three in
 * ten it is one within a minute, though urgent probes ask again: it is seldom that all of them and
 * their answers are lost as well, and so it is true of most minutes and not of each.
 */
static bool lose_1_percent(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	(void)p;
	return rig_random() % 100 < 1;
}

static bool lose_30_percent(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	(void)p;
	return rig_random() % 10 < 3;
}

START_TEST(loss_is_measured_before_it_is_an_event)
{
	unsigned minute, told = 0;

	rig_start_at(2, 200 * MS, 3, 5);
	rig_for(600 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->missed + rig_path(1, 0)->missed, 0);
	rig.loses = lose_1_percent;
	rig_forget();
	rig_for(600 * SEC);
	ck_assert_uint_eq(rig_times(0, "is unstable") + rig_times(1, "is unstable"), 0);
	ck_assert_uint_ge(rig_path(1, 0)->missed, 15);
	ck_assert_uint_le(rig_path(1, 0)->missed, 50);
	rig.loses = lose_30_percent;
	for (minute = 0; minute < 20; minute++) {
		rig_forget();
		rig_for(60 * SEC);
		told += rig_times(0, "is unstable") + rig_times(1, "is unstable") > 0;
	}
	ck_assert_uint_ge(told, 15);
	end();
}
END_TEST

static bool lose_one_of_0(struct rig *r, const struct rig_packet *p)
{
	if (p->from == 0)
		r->loses = NULL;
	return p->from == 0;
}

START_TEST(a_beat_that_is_lost_is_asked_for_and_counted)
{
	rig_start(2);
	rig_for(2 * SEC);
	rig.loses = lose_one_of_0;
	rig_for(SEC);
	ck_assert_ptr_null(rig.loses);
	ck_assert_uint_eq(rig_path(1, 0)->missed, 1);
	ck_assert_uint_eq(rig_path(1, 0)->worst, 1);
	ck_assert_uint_eq(rig_path(1, 0)->run, 0);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	ck_assert_uint_eq(rig_path(1, 0)->changes, 1);
	end();
}
END_TEST

START_TEST(loss_of_one_direction_is_seen_by_both_ends)
{
	uint64_t cut, seen_0, seen_1;

	rig_start(2);
	rig_for(5 * SEC);
	rig.loses = rig_lose_from_0;
	cut = rig.now;
	rig_for(SEC);
	ck_assert_uint_eq(rig_path(1, 0)->cause, HC_W_path_cause_MISSES);
	ck_assert_uint_eq(state(1, 0), DOWN);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	ck_assert_uint_eq(rig_path(0, 1)->cause, HC_W_path_cause_DEAF);
	seen_0 = rig_path(0, 1)->since - cut;
	ck_assert_uint_le(seen_0, 300 * MS + 130 * MS);
	rig.loses = NULL;
	rig_for(110 * MS);
	seen_1 = rig_path(1, 0)->since - cut;
	ck_assert_uint_gt(seen_1, SEC);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	end();
}
END_TEST

/* ---- frames that must do nothing ---- */

static void nothing_moved(const struct hc_path *was, uint32_t refused)
{
	const struct hc_path *is = rig_path(1, 0);

	ck_assert_uint_eq(is->received, was->received);
	ck_assert_uint_eq(is->heard_at, was->heard_at);
	ck_assert_uint_eq(is->proof_at, was->proof_at);
	ck_assert_uint_eq(is->sent, was->sent);
	ck_assert_uint_eq(is->refused, was->refused + refused);
}

START_TEST(a_repeated_frame_does_nothing)
{
	struct hc_path was;
	struct rig_packet head;
	uint8_t bytes[256];

	rig_start(2);
	rig_for(2 * SEC);
	memcpy(bytes, rig.last[1], sizeof(bytes));
	head = rig.last_head[1];
	was = *rig_path(1, 0);
	rig.now += MS;
	rig_give(1, &head, bytes);
	nothing_moved(&was, 1);
	ck_assert_uint_eq(rig.node[1].core->net->replays, 1);
	rig_for(20 * SEC); /* far below the window by then */
	was = *rig_path(1, 0);
	rig.now += MS;
	rig_give(1, &head, bytes);
	nothing_moved(&was, 1);
	end();
}
END_TEST

START_TEST(a_frame_that_comes_late_is_counted_and_proves_nothing)
{
	struct hc_path was;
	struct rig_packet head;
	uint8_t bytes[256];
	uint64_t late;

	rig_start(2);
	rig_for(2 * SEC);
	rig.loses = rig_lose_from_0;
	rig_for(150 * MS); /* one is held back by somebody */
	rig.loses = NULL;
	rig_for(SEC);
	memcpy(bytes, rig.last[1], sizeof(bytes));
	head = rig.last_head[1];
	late = rig_path(1, 0)->window[0].top - 11;
	while (rig_path(1, 0)->window[0].bits >> (rig_path(1, 0)->window[0].top - late - 1) & 1)
		late--;
	bytes[23] = (uint8_t)late;
	ck_assert_uint_lt(rig_path(1, 0)->window[0].top, 256);
	was = *rig_path(1, 0);
	rig.now += MS;
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->late, was.late + 1);
	ck_assert_uint_eq(rig_path(1, 0)->heard_at, was.heard_at);
	ck_assert_uint_eq(rig_path(1, 0)->echo_at, was.echo_at);
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->replays, was.replays + 1);
	end();
}
END_TEST

static void fresh_number(uint8_t *bytes)
{
	bytes[22]++; /* not seen yet */
}

START_TEST(a_misdirected_frame_does_nothing)
{
	struct hc_net *n;
	struct hc_path was;
	struct rig_packet head;
	uint8_t bytes[256];

	rig_start(3);
	rig_for(2 * SEC);
	rig.nodes = 2; /* node 2 is gone: the last packet is one of node 0 */
	rig_for(SEC);
	n = rig.node[1].core->net;
	head = rig.last_head[1];
	memcpy(bytes, rig.last[1], sizeof(bytes));
	fresh_number(bytes);
	was = *rig_path(1, 0);
	head.remote = rig_end(2); /* from where it cannot come */
	rig_give(1, &head, bytes);
	nothing_moved(&was, 1);
	ck_assert_uint_eq(n->wrong_source, 1);
	head.remote = rig_end(0);
	head.local = rig_end(2); /* to where it is not sent */
	rig_give(1, &head, bytes);
	nothing_moved(&was, 2);
	head.local = rig_end(1);
	bytes[15] ^= 1; /* a path that there is not */
	rig_give(1, &head, bytes);
	nothing_moved(&was, 2);
	ck_assert_uint_eq(n->unknown_path, 1);
	bytes[15] ^= 1;
	bytes[11] ^= 1; /* of another start */
	rig_give(1, &head, bytes);
	nothing_moved(&was, 2);
	ck_assert_uint_eq(n->malformed, 1);
	bytes[11] ^= 1;
	bytes[7]++; /* under the key of another peer */
	rig_give(1, &head, bytes);
	nothing_moved(&was, 2);
	ck_assert_uint_eq(n->malformed, 2);
	bytes[7]--;
	rig_give(1, &head, bytes); /* and so it is right */
	ck_assert_uint_eq(rig_path(1, 0)->received, was.received + 1);
	rig.nodes = 3;
	end();
}
END_TEST

START_TEST(our_own_frame_that_comes_back_does_nothing)
{
	struct hc_path was;
	struct rig_packet head;
	uint8_t bytes[256];

	rig_start(2);
	/* ids of keys differ by direction */
	rig_peer(0, 1)->key_in = rig_peer(1, 0)->key_out = 7u << 16;
	rig_for(2 * SEC);
	memcpy(bytes, rig.last[0], sizeof(bytes)); /* that node 1 has sent */
	fresh_number(bytes);
	head = rig.last_head[0];
	head.local = rig_end(1);
	head.remote = rig_end(0);
	was = *rig_path(1, 0);
	rig_give(1, &head, bytes);
	nothing_moved(&was, 0);
	ck_assert_uint_eq(rig.node[1].core->net->malformed, 1);
	end();
}
END_TEST

START_TEST(cut_and_foreign_frames_are_malformed)
{
	struct rig_packet head;
	uint8_t bytes[256];
	uint64_t was;
	uint32_t len;

	rig_start(2);
	rig_for(2 * SEC);
	memcpy(bytes, rig.last[1], sizeof(bytes));
	head = rig.last_head[1];
	was = rig_path(1, 0)->received;
	for (len = 0; len < head.len; len++) {
		struct rig_packet cut = head;

		cut.len = len;
		rig_give(1, &cut, bytes);
	}
	bytes[0] ^= 1;
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->received, was);
	ck_assert_uint_eq(rig.node[1].core->net->malformed, head.len + 1);
	end();
}
END_TEST

/* ---- our own lateness ---- */

static const uint32_t intervals[] = {10, 100, 1000};

START_TEST(who_stood_still_for_a_second_accuses_nobody)
{
	const uint64_t interval = intervals[_i] * MS;
	uint32_t changes;

	rig_start_at(3, interval, 3, 5);
	rig_for(20 * SEC);
	rig_forget();
	changes = rig_path(0, 1)->changes + rig_path(0, 2)->changes;
	rig.node[0].stalled_until = rig.now + SEC;
	rig_for(5 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->changes + rig_path(0, 2)->changes, changes);
	ck_assert_uint_le(rig_path(0, 1)->rtt_max_us, 201);
	ck_assert_uint_eq(rig.node[0].core->net->stalls, 1);
	ck_assert_uint_eq(rig_times(0, "not scheduled for "), 1);
	ck_assert_uint_eq(rig_times(0, "path to"), 0);
	/* others have reason to complain, at short intervals */
	ck_assert_uint_eq(rig_said(1, "path to node0 over eth0 (10.0.0.2:16660 to 10.0.0.1:16660)"
				      " is unstable"),
			  interval < 300 * MS);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	end();
}
END_TEST

START_TEST(what_died_while_we_stood_still_gets_one_window)
{
	rig_start(2);
	rig_for(20 * SEC);
	rig.loses = rig_lose_all;
	rig.node[0].stalled_until = rig.now + SEC;
	rig_for(SEC);
	rig_for(300 * MS - 1);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	rig_for(1);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	ck_assert(!rig_said(0, "observer starved"));
	end();
}
END_TEST

static uint64_t lose_all_after_a_beat(void)
{
	rig_start(2);
	rig_for(20 * SEC);
	while (rig.now - rig_path(0, 1)->heard_at > MS)
		rig_for(MS / 2);
	rig.loses = rig_lose_all;
	return rig_path(0, 1)->heard_at;
}

/* What had come is heard, and there is time for all urgent probes: nothing is given. */
START_TEST(a_short_standstill_in_time_does_not_delay_the_verdict)
{
	const uint64_t last = lose_all_after_a_beat();

	rig.node[0].stalled_until = last + 148 * MS;
	rig_for(last + 300 * MS - 1 - rig.now);
	ck_assert_uint_eq(rig.node[0].core->net->stalls, 1);
	ck_assert_uint_eq(rig_path(0, 1)->urgent, 3);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	rig_for(MS);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	end();
}
END_TEST

/* The probes of the window still go out, each with time for its answer. */
START_TEST(urgent_probes_are_sent_after_a_short_standstill)
{
	const uint64_t last = lose_all_after_a_beat();

	rig_for(last + 110 * MS - rig.now);
	rig.node[0].stalled_until = last + 290 * MS;
	rig_for(last + 291 * MS - rig.now);
	ck_assert_uint_ge(rig_path(0, 1)->urgent, 1);
	rig_for(last + 420 * MS - rig.now);
	ck_assert_uint_eq(rig_path(0, 1)->urgent, 3);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	rig_for(45 * MS);
	ck_assert_uint_eq(state(0, 1), UNSTABLE);
	ck_assert(!rig_said(0, "observer starved"));
	end();
}
END_TEST

START_TEST(who_is_never_scheduled_accuses_at_last_and_says_so)
{
	uint64_t cut;
	uint32_t i;

	rig_start(2);
	rig_for(20 * SEC);
	rig.loses = rig_lose_all;
	cut = rig.now;
	for (i = 0; i < 40; i++) {
		rig.node[0].stalled_until = rig.now + 320 * MS;
		rig_for(321 * MS);
		if (state(0, 1) != NORMAL)
			break;
	}
	ck_assert_uint_ge(rig.now - cut, 4 * 300 * MS);
	ck_assert_uint_le(rig.now - cut, 3 * SEC);
	ck_assert(rig_said(0, "observer starved"));
	ck_assert_uint_le(rig_times(0, "not scheduled for"), 3);
	end();
}
END_TEST

/* ---- intervals ---- */

static void configure(uint32_t node, uint64_t beat_ns)
{
	struct hc_settings set = rig.node[node].core->set;
	struct hc_event ev = {.kind = HC_EV_CONFIG, .u.settings = &set};

	set.beat_ns = beat_ns;
	rig_step(node, &ev);
}

static uint32_t beats_in(uint32_t node, uint64_t ns)
{
	const uint32_t was = rig.node[node].sent[HC_MSG_beat];

	rig_for(ns);
	return rig.node[node].sent[HC_MSG_beat] - was;
}

static const uint32_t wishes[][2] = {{100, 1000}, {100, 200}, {10, 1000}, {10, 60000}, {100, 110}};

START_TEST(the_slower_wish_is_taken_by_both_and_back)
{
	const uint64_t fast = wishes[_i][0] * MS, slow = wishes[_i][1] * MS;
	uint32_t changes, n;

	rig_start_at(2, fast, 3, 5);
	rig.random = 5;
	rig_for(10 * SEC);
	changes = rig_path(0, 1)->changes + rig_path(1, 0)->changes;
	configure(0, slow);
	rig_for(4 * slow);
	n = beats_in(0, 20 * slow);
	ck_assert_uint_ge(n, 20);
	ck_assert_uint_le(n, 23);
	n = beats_in(1, 20 * slow);
	ck_assert_uint_ge(n, 20);
	ck_assert_uint_le(n, 23);
	ck_assert_uint_eq(hc_path_interval(rig.node[1].core, rig_path(1, 0)), slow);
	configure(0, fast / 2); /* the other one's is the slower now */
	rig_for(4 * slow);
	n = beats_in(0, 20 * fast);
	ck_assert_uint_ge(n, 20);
	ck_assert_uint_le(n, 23);
	ck_assert_uint_eq(hc_path_interval(rig.node[0].core, rig_path(0, 1)), fast);
	ck_assert_uint_eq(rig_path(0, 1)->changes + rig_path(1, 0)->changes, changes);
	ck_assert_uint_eq(rig_path(0, 1)->missed + rig_path(1, 0)->missed, 0);
	end();
}
END_TEST

START_TEST(a_new_wish_survives_loss)
{
	uint32_t i, changes;

	rig_start_at(2, 20 * MS, 3, 5);
	rig_for(SEC);
	changes = rig_path(0, 1)->changes + rig_path(1, 0)->changes;
	rig.loses = lose_2_percent;
	for (i = 0; i < 500; i++) {
		configure(i & 1, (10 + rig_random() % 200) * MS);
		rig_for((1 + rig_random() % 1500) * MS);
	}
	ck_assert_uint_eq(rig_path(0, 1)->changes + rig_path(1, 0)->changes, changes);
	end();
}
END_TEST

static uint64_t burst_at[4096];
static uint32_t bursts;

static bool note_bursts(struct rig *r, const struct rig_packet *p)
{
	if (p->from == 0 && bursts < 4096 && (!bursts || burst_at[bursts - 1] != r->now))
		burst_at[bursts++] = r->now;
	return false;
}

START_TEST(bursts_are_drawn_near_and_never_put_off)
{
	uint64_t gap, least = HC_NEVER, most = 0;
	uint32_t i;

	rig_start(3);
	rig_for(SEC);
	bursts = 0;
	rig.loses = note_bursts;
	rig_for(20 * SEC);
	for (i = 1; i < bursts; i++) {
		gap = burst_at[i] - burst_at[i - 1];
		least = gap < least ? gap : least;
		most = gap > most ? gap : most;
	}
	/* both paths in one burst, 90 to 100 ms apart, and not all alike */
	ck_assert_uint_ge(bursts, 200);
	ck_assert_uint_le(bursts, 222);
	ck_assert_uint_ge(least, 90 * MS);
	ck_assert_uint_le(most, 100 * MS);
	ck_assert_uint_gt(most - least, 5 * MS);
	end();
}
END_TEST

START_TEST(a_late_burst_does_not_shift_the_next)
{
	uint64_t planned;

	rig_start(2);
	rig_for(SEC);
	planned = rig.node[0].core->net->common_at;
	rig.node[0].stalled_until = planned + 15 * MS;
	rig_until(planned + 16 * MS);
	ck_assert_uint_ge(rig.node[0].core->net->common_at, planned + 90 * MS);
	ck_assert_uint_le(rig.node[0].core->net->common_at, planned + 100 * MS);
	end();
}
END_TEST

/* ---- keys, clocks ---- */

/* Node `i` gets other keys for both directions; the other node computes the same ones. */
static void new_keys(uint32_t i, uint32_t other)
{
	struct hc_peer *p = rig_peer(i, other);

	p->key_old = p->key_in;
	p->key_in += 1u << 16;
	p->key_out += 1u << 16;
	hc_beat_new_keys(rig.node[i].core, other < i ? other : other - 1);
}

START_TEST(keys_change_without_loss)
{
	uint32_t i;

	rig_start_at(2, 10 * MS, 3, 5);
	rig.delay = 3 * MS; /* some are under way */
	rig_for(SEC);
	for (i = 0; i < 50; i++) {
		new_keys(i & 1, ~i & 1);
		rig_for(rig_random() % (3 * MS)); /* until the welcome has come */
		new_keys(~i & 1, i & 1);
		rig_for(100 * MS);
		ck_assert_uint_eq(rig.node[0].dropped_keys, i + 1);
		ck_assert_uint_eq(rig.node[1].dropped_keys, i + 1);
	}
	ck_assert_uint_eq(rig_path(0, 1)->missed + rig_path(1, 0)->missed, 0);
	ck_assert_uint_eq(rig_path(0, 1)->changes + rig_path(1, 0)->changes, 2);
	ck_assert_uint_eq(rig_path(1, 0)->refused + rig_path(0, 1)->refused, 0);
	ck_assert_uint_eq(rig.node[0].core->net->malformed, 0);
	ck_assert_uint_le(rig_path(0, 1)->tx_seq, 20); /* numbers began anew each time */
	end();
}
END_TEST

START_TEST(the_old_key_is_let_go_after_two_intervals)
{
	uint32_t old;
	uint64_t received;

	rig_start(2);
	rig_for(SEC);
	old = rig_peer(0, 1)->key_in;
	new_keys(0, 1);
	rig_for(199 * MS); /* the other one still sends under the old one */
	received = rig_path(0, 1)->received;
	ck_assert_uint_eq(rig.node[0].dropped_keys, 0);
	ck_assert_uint_ge(rig_path(0, 1)->heard_at + 101 * MS, rig.now);
	rig_for(120 * MS);
	ck_assert_uint_eq(rig.node[0].dropped_keys, 1);
	ck_assert_uint_eq(rig.node[0].last_dropped, old);
	rig_for(SEC);
	ck_assert_uint_le(rig_path(0, 1)->received, received + 1);
	end();
}
END_TEST

START_TEST(clocks_of_32_bits_wrap_unseen)
{
	rig_start(2);
	ck_assert_uint_lt(rig.now, (1ull << 32) * 1000);
	rig.start = rig.now = (1ull << 32) * 1000 - 3 * SEC;
	rig_for(2 * SEC);
	ck_assert_uint_eq(state(0, 1), NORMAL);
	rig_forget();
	rig.delay = 700 * 1000;
	rig_for(3 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->changes, 1);
	ck_assert_uint_eq(rig_path(0, 1)->rtt_us / 2, 700);
	ck_assert_uint_eq(rig_path(0, 1)->rtt_max_us / 2, 700);
	ck_assert_uint_eq(rig_path(0, 1)->rtt_best_us, 200);
	rig.loses = rig_lose_from_0; /* and a proof across the wrap is still a proof */
	rig_for(SEC);
	rig.loses = NULL;
	rig_for(SEC);
	ck_assert_uint_eq(state(1, 0), NORMAL);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_beat");
	TCase *t = tcase_create("beat");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, both_ends_prove_a_new_path_in_a_round_trip_or_two);
	tcase_add_loop_test(t, silence_is_a_verdict_at_the_exact_time, 0,
			    sizeof(silences) / sizeof(silences[0]));
	tcase_add_test(t, two_percent_of_loss_never_become_a_verdict);
	tcase_add_test(t, loss_is_measured_before_it_is_an_event);
	tcase_add_test(t, a_beat_that_is_lost_is_asked_for_and_counted);
	tcase_add_test(t, loss_of_one_direction_is_seen_by_both_ends);
	tcase_add_test(t, a_repeated_frame_does_nothing);
	tcase_add_test(t, a_frame_that_comes_late_is_counted_and_proves_nothing);
	tcase_add_test(t, a_misdirected_frame_does_nothing);
	tcase_add_test(t, our_own_frame_that_comes_back_does_nothing);
	tcase_add_test(t, cut_and_foreign_frames_are_malformed);
	tcase_add_loop_test(t, who_stood_still_for_a_second_accuses_nobody, 0, 3);
	tcase_add_test(t, what_died_while_we_stood_still_gets_one_window);
	tcase_add_test(t, a_short_standstill_in_time_does_not_delay_the_verdict);
	tcase_add_test(t, urgent_probes_are_sent_after_a_short_standstill);
	tcase_add_test(t, who_is_never_scheduled_accuses_at_last_and_says_so);
	tcase_add_loop_test(t, the_slower_wish_is_taken_by_both_and_back, 0,
			    sizeof(wishes) / sizeof(wishes[0]));
	tcase_add_test(t, a_new_wish_survives_loss);
	tcase_add_test(t, bursts_are_drawn_near_and_never_put_off);
	tcase_add_test(t, a_late_burst_does_not_shift_the_next);
	tcase_add_test(t, keys_change_without_loss);
	tcase_add_test(t, the_old_key_is_let_go_after_two_intervals);
	tcase_add_test(t, clocks_of_32_bits_wrap_unseen);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
