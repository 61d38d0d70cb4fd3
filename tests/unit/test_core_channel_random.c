/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random lives of channels in a few domains that are there most of the time, on one node or two.
 *
 * Ranks ask for one channel or several, wait or try, come back at the hint or not, open what they
 * get or forget to, release, lose their connection, die; a domain is destroyed and made anew, also
 * with channels to begin with; the daemon is killed. Links are small, so that most calls meet
 * somebody else's, and in each other life a uid has a quota of each link. The world looks after
 * each step that used + free = total on every link, that nobody is over his quota, that
 * registers and charges agree with channels, and that an answer comes once. At the end all
 * processes die, and nothing may be left. HC_SEED=n runs one seed.
 */
#include "channel.h"
#include "suite.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define DOMAINS 3u
#define RANKS   4u
#define KEPT    32u

static struct world w;
static uint64_t dice;

static struct {
	struct world_client *client[DOMAINS][RANKS];
	uint64_t id[DOMAINS];
	uint64_t channel[DOMAINS][KEPT];
	uint32_t next_pid;
	/* what the run has met, over its restarts */
	uint64_t later, refused, lapsed, restarts;
} all;

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)((dice * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static bool is_here(const struct world_client *c)
{
	return c && c->open;
}

static void count(void)
{
	struct hc_admit_counts a;
	uint32_t n;

	for (n = 0; n < w.nodes; n++) {
		hc_admit_counts(w.core[n]->admit, &a);
		all.later += a.granted_later;
		all.refused += a.refused;
		all.lapsed += w.core[n]->chan->lapsed;
	}
}

static void end_domain(uint32_t d)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		if (is_here(all.client[d][i]))
			world_die(&w, all.client[d][i]);
	for (i = 0; i < RANKS; i++)
		if (all.client[d][i])
			world_dead(&w, all.client[d][i]->node, all.client[d][i]->pid);
	memset(all.client[d], 0, sizeof(all.client[d]));
	all.id[d] = 0;
	world_advance(&w, roll(8000));
}

static void make_domain(uint32_t d)
{
	static const char *const names[DOMAINS] = {"a", "b", "c"};
	struct world_table t;
	uint32_t i, channels = roll(2) ? roll(3) : 0, mbps = 50 * roll(8);
	const uint8_t wait = (uint8_t)roll(2);

	world_table(&t, RANKS, w.nodes);
	for (i = 0; i < RANKS; i++) {
		all.client[d][i] = world_client(&w, i % w.nodes, ++all.next_pid, 1000 + d % 2,
						HC_W_role_MEMBER);
		w.opt.name = names[d];
		w.opt.shared = true;
		w.opt.timeout_ms = 3000;
		w.opt.priority = (uint8_t)(d * 3);
		w.opt.weight = (uint8_t)(1 + d);
		w.opt.channels = channels;
		w.opt.channel_mbps = mbps;
		w.opt.channel_wait = wait;
		world_join_table(&w, all.client[d][i], &t, i);
	}
	world_advance(&w, wait && channels ? 4000 : 1);
	for (i = 0; i < RANKS; i++)
		if (all.client[d][i]->code || world_waits(all.client[d][i])) {
			end_domain(d);
			return;
		}
	all.id[d] = all.client[d][0]->id;
}

static void keep(uint32_t d, const struct world_client *c)
{
	uint32_t i;

	for (i = 0; !c->code && i < c->ngrants && i < WORLD_GRANTS; i++)
		all.channel[d][roll(KEPT)] = c->grants[i].channel;
}

static void ask(uint32_t d, uint32_t rank)
{
	struct world_piece p[3];
	const uint32_t n = roll(3) ? 1 : 1 + roll(3);
	uint32_t i;

	for (i = 0; i < n; i++)
		p[i] = (struct world_piece){.peer = (rank + 1 + roll(RANKS - 1)) % RANKS,
					    .mbps = roll(3) ? 100 * roll(8) : 0,
					    .type = (uint8_t)(roll(4) ? HC_W_link_type_HCCS : 0),
					    .flags = 1};
	if (!roll(3))
		for (i = 0; i < n; i++)
			p[i] = (struct world_piece){.peer = p[i].peer};
	world_acquire(&w, all.client[d][rank], all.id[d], rank, p, n, roll(2),
		      roll(2) ? 1 + roll(9000) : 0, roll(2) ? 1 + roll(4000) : 0);
	keep(d, all.client[d][rank]);
	for (i = 0; !all.client[d][rank]->code && i < all.client[d][rank]->ngrants && roll(6); i++)
		world_open(&w, all.client[d][rank], all.client[d][rank]->grants[i].channel, rank);
}

/* Whatever was granted meanwhile is opened, mostly. */
static void look_after(uint32_t d, uint32_t rank)
{
	const struct hc_channels *x = w.core[all.client[d][rank]->node]->chan;
	uint32_t n;

	keep(d, all.client[d][rank]);
	for (n = 0; n < x->pool.fresh; n++)
		if (x->at[n].state == CHANNEL_GRANTED && x->at[n].domain == all.id[d] && roll(4))
			world_open(&w, all.client[d][rank], x->at[n].id, rank);
}

static void come_back(uint32_t d, uint32_t rank)
{
	struct world_client *c = all.client[d][rank];

	if (is_here(c))
		world_lose(&w, c);
	all.client[d][rank] = world_client(&w, c->node, c->pid, c->uid, HC_W_role_MEMBER);
	world_attach(&w, all.client[d][rank], all.id[d], rank);
}

static void restart(void)
{
	uint32_t d, i;

	count();
	all.restarts++;
	world_restart(&w, 0);
	for (d = 0; d < DOMAINS; d++)
		for (i = 0; all.id[d] && i < RANKS; i++)
			if (roll(8))
				come_back(d, i);
}

static void hold_something(void)
{
	const uint32_t i = roll(w.nodes), j = roll(w.nodes);

	if (roll(3))
		w.hold_store[i] = !w.hold_store[i];
	else if (i != j)
		w.hold[i][j] = !w.hold[i][j];
}

static void something(void)
{
	const uint32_t d = roll(DOMAINS), rank = roll(RANKS);
	struct world_client *c = all.client[d][rank];

	if (!all.id[d]) {
		make_domain(d);
		return;
	}
	if (!is_here(c)) {
		come_back(d, rank);
		return;
	}
	switch (roll(24)) {
	case 0: come_back(d, rank); return;
	case 1: look_after(d, rank); return;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
	case 7: world_release(&w, c, all.channel[d][roll(KEPT)], rank); return;
	case 8:
	case 9: world_advance(&w, roll(3000)); return;
	case 10: world_query(&w, c, roll(2) ? HC_VIEW_channel : HC_VIEW_waiting, 0, 0, 0); return;
	case 11:
		hold_something();
		world_settle(&w);
		return;
	case 12:
		if (!roll(6))
			end_domain(d);
		else if (!roll(4))
			world_destroy(&w, c, all.id[d]);
		else if (!roll(4))
			world_leave(&w, c, all.id[d], rank);
		return;
	case 13:
		if (!roll(4) && w.nodes == 1)
			restart();
		return;
	case 14:
		if (!roll(4))
			world_die(&w, c);
		return;
	default: ask(d, rank); return;
	}
}

static void add_ways_out(void)
{
	struct hc_link_fact f = {
		.type = HC_W_link_type_HCCS, .b = HC_END_NET, .mbps = 1000, .present = true};
	uint32_t n;

	for (n = 0; n < 2; n++)
		for (f.a = 0; f.a < 2; f.a++) {
			f.vcs = 2 + roll(8);
			world_link(&w, n, &f);
		}
}

static void begin(uint64_t seed)
{
	struct hc_link_fact f = {.type = HC_W_link_type_HCCS, .present = true};
	struct hc_settings set;
	struct hc_limits lim;
	uint32_t i;

	dice = seed * 0x9e3779b97f4a7c15ull + 1;
	memset(&all, 0, sizeof(all));
	all.next_pid = 100;
	world_defaults(&lim, &set);
	lim.channels = 16 + roll(64);
	lim.wants = 4 + roll(24);
	lim.quota_channels = 8 + roll(60);
	lim.quota_waiting = 2 + roll(16);
	lim.quota_memory = (2 + roll(32)) << 20;
	set.quota_link_percent = seed % 2 ? 0 : 30 + roll(60);
	set.channel_owner_uid = seed % 4 == 2;
	world_start_with(&w, seed % 3 ? 1 : 2, &lim, &set, 8, seed);
	w.show = 0;
	if (w.nodes == 2)
		add_ways_out();
	for (i = 0; i < RANKS; i++) { /* a ring */
		f.a = i < RANKS - 1 ? i : 0;
		f.b = i < RANKS - 1 ? i + 1 : RANKS - 1;
		f.mbps = 1000;
		f.vcs = 2 + roll(8);
		world_link(&w, 0, &f);
	}
	f = (struct hc_link_fact){.type = HC_W_link_type_SHM,
				  .a = HC_NONE,
				  .b = HC_NONE,
				  .mbps = 2000,
				  .vcs = 4 + roll(16),
				  .present = true};
	world_link(&w, 0, &f);
}

static void live(uint64_t seed, uint32_t events)
{
	uint32_t i, d;

	begin(seed);
	for (i = 0; i < events; i++) {
		/* a domain that is over is made anew */
		for (d = 0; d < DOMAINS; d++) {
			const struct world_record *r =
				all.id[d] ? world_record(&w, 0, all.id[d]) : NULL;

			if (all.id[d] && (!r || r->state != HC_W_domain_state_ACTIVE) && !roll(6))
				end_domain(d);
		}
		something();
	}
	memset(w.hold_store, 0, sizeof(w.hold_store));
	memset(w.hold, 0, sizeof(w.hold));
	world_settle(&w);
	for (d = 0; d < DOMAINS; d++)
		end_domain(d);
	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (i = 0; i < w.nclients; i++) /* also those whose connection went before */
		world_dead(&w, w.clients[i]->node, w.clients[i]->pid);
	world_advance(&w, 100000000); /* a hint may be far away, and its place is kept so long */
	world_check_empty(&w);
	count();
	world_end(&w);
}

enum { EACH = 5 };

START_TEST(channels_leave_nothing_behind)
{
	const char *one = getenv("HC_SEED");
	const uint64_t first = one ? strtoull(one, NULL, 10) : (uint64_t)_i * EACH + 1;
	const uint64_t last = one ? first : first + EACH - 1;
	uint64_t seed, later = 0, refused = 0, lapsed = 0, restarts = 0;

	if (one && _i)
		return;
	for (seed = first; seed <= last; seed++) {
		if (one || getenv("HC_SAY"))
			fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
		live(seed, 1500);
		later += all.later;
		refused += all.refused;
		lapsed += all.lapsed;
		restarts += all.restarts;
	}
	/* or it has tested little */
	ck_assert_uint_gt(later, 10);
	ck_assert_uint_gt(refused, 10);
	ck_assert_uint_gt(lapsed, 10);
	ck_assert_uint_gt(restarts, 0);
}
END_TEST

static void add(TCase *c)
{
	tcase_add_loop_test(c, channels_leave_nothing_behind, 0, hc_long() ? 400 : 1);
}

int main(void)
{
	return hc_suite_run("core_channel_random", add, 600);
}
