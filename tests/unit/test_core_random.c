/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random lives of many domains on one to three nodes, and then the end of all of them.
 *
 * Each seed is a world of small limits, so that all of them are met, with some thousand events:
 * processes come, ask anything of any domain, lose their connection, die; references come and go;
 * messages between nodes and the store are held for a while; time passes. The world's promises are
 * checked after every step. Then everything is let go and every process dies: nothing may be left,
 * and every request has been answered. A seed that fails is printed; HC_SEED=n runs it alone.
 */
#include "state.h"
#include "suite.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define CLIENTS 24u
#define KNOWN   16u

static struct world w;
static uint64_t dice;

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)((dice * 0x2545f4914f6cdd1dull) >> 33) % n;
}

/* What the processes know and tell each other. */
static struct {
	struct world_client *client[CLIENTS];
	uint64_t domain[KNOWN];
	struct world_client root[4]; /* root infos that are about */
	struct world_table table[4];
	uint64_t sub_id;
} all;

static void know(uint64_t id)
{
	if (id)
		all.domain[roll(KNOWN)] = id;
}

static struct world_client *someone(void)
{
	uint32_t i = roll(CLIENTS), pid;
	struct world_client *c = all.client[i];

	if (c && c->open && !c->refused)
		return c;
	if (c && c->open)
		world_lose(&w, c);
	/* sometimes the same process again, sometimes another one */
	pid = c && roll(2) ? c->pid : 100 + w.nclients;
	c = world_client(&w, c && pid == c->pid ? c->node : roll(w.nodes), pid,
			 c && pid == c->pid ? c->uid : 1000 + (roll(8) == 0),
			 roll(10) ? HC_W_role_MEMBER : HC_W_role_ADMIN);
	all.client[i] = c;
	return c;
}

static void options(void)
{
	static const char *const names[] = {"", "", "x", "y", "z z"};

	w.opt.name = names[roll(5)];
	w.opt.device = roll(3) ? HC_NONE : roll(9);
	w.opt.timeout_ms = roll(3) ? 0 : 1 + roll(5000);
	w.opt.shared = roll(4) != 0;
	w.opt.priority = (uint8_t)(roll(20) ? 0 : roll(9));
	if (!roll(12)) {
		w.opt.channels = 1 + roll(3);
		w.opt.channel_mbps = 100 * roll(9);
		w.opt.channel_hold_ms = roll(2) * 5000;
		w.opt.channel_wait = (uint8_t)roll(2);
	}
}

static void join(struct world_client *c)
{
	uint32_t devices[3] = {roll(9), roll(9), roll(9)}, k = roll(4);
	const uint32_t before = c->answers;

	options();
	switch (roll(5)) {
	case 0:
		world_root_info(&w, c, roll(2) ? 0 : 1 + roll(4));
		if (!c->code && c->answers != before) {
			memcpy(all.root[k].info, c->info, c->info_len);
			all.root[k].info_len = c->info_len;
		}
		return;
	case 1: world_join_root(&w, c, &all.root[k], 1 + roll(3), roll(3)); break;
	case 2: world_join_local(&w, c, devices, 1 + roll(3)); break;
	default: world_join_table(&w, c, &all.table[k], roll(all.table[k].roster.nranks)); break;
	}
	know(c->id);
}

static void stage(struct world_client *c, uint64_t id)
{
	options();
	switch (roll(5)) {
	case 0:
		world_create(&w, c, 1 + roll(3));
		if (!c->code)
			know(c->value);
		return;
	case 1:
	case 2: world_add_device(&w, c, id, roll(3), roll(9)); return;
	case 3: world_activate(&w, c, id); return;
	default: world_attach(&w, c, id, roll(3)); return;
	}
}

static void divide(struct world_client *c, uint64_t id)
{
	uint32_t ranks[3] = {roll(3), roll(3), roll(3)};

	options();
	if (roll(2)) {
		world_split(&w, c, id, roll(3), (int32_t)roll(3) - 1, (int32_t)roll(5));
		if (!c->code && c->sub_id)
			all.sub_id = c->sub_id;
		return;
	}
	world_sub(&w, c, id, roll(3), roll(2) ? all.sub_id : roll(2), ranks, 1 + roll(3));
	know(c->id);
}

static void end_something(struct world_client *c, uint64_t id)
{
	options();
	switch (roll(8)) {
	case 0: world_abort(&w, c, id, roll(3), "so it is"); return;
	case 1:
	case 2: world_destroy(&w, c, id); return;
	default: world_leave(&w, c, id, roll(3)); return;
	}
}

static void look(struct world_client *c, uint64_t id)
{
	static const unsigned views[] = {HC_VIEW_domain, HC_VIEW_member,  HC_VIEW_client,
					 HC_VIEW_device, HC_VIEW_channel, HC_VIEW_waiting};

	switch (roll(3)) {
	case 0: world_status(&w, c, id); return;
	case 1: world_query(&w, c, views[roll(6)], roll(3) ? 0 : c->cursor, 0, roll(4)); return;
	default: world_subscribe(&w, c, roll(2) ? 0 : id, roll(2)); return;
	}
}

/* Any end of any channel that somebody was told of. */
static void channel(void)
{
	struct world_seat *s =
		w.nseats ? &w.seats[w.nseats - 1 - roll(w.nseats < 12 ? w.nseats : 12)] : NULL;
	struct world_client *c = NULL;
	struct world_piece piece[3];
	const struct world_client *told = all.client[roll(CLIENTS)];
	const uint32_t n = 1 + (roll(3) ? 0 : roll(3));
	uint64_t known = told && told->ngrants ? told->grants[roll(told->ngrants)].channel : 1;
	uint32_t i, rank;

	for (i = 0; s && i < CLIENTS; i++)
		if (all.client[i] && all.client[i]->open && !all.client[i]->refused &&
		    all.client[i]->node == s->node && all.client[i]->session == s->session)
			c = all.client[i];
	if (!c)
		return;
	rank = roll(10) ? s->rank : roll(3);
	if (told && told->event_channel && !roll(8))
		known = told->event_channel;
	for (i = 0; i < n; i++)
		piece[i] = (struct world_piece){.peer = roll(12) ? roll(3) : roll(9),
						.mbps = roll(3) ? 0 : 100 * roll(9),
						.back_mbps = roll(5) ? 0 : 100 * roll(9),
						.type = (uint8_t)(roll(3)   ? 0
								  : roll(2) ? HC_W_link_type_HCCS
									    : roll(9)),
						.flags = (uint8_t)(roll(20) ? roll(2) : 7),
						.buffer = roll(4) ? 0 : 4096 * roll(512)};
	switch (roll(5)) {
	case 0: world_open(&w, c, known, rank); return;
	case 1: world_release(&w, c, known, rank); return;
	default:
		world_acquire(&w, c, s->domain, rank, piece, n, roll(2), roll(3) ? roll(20000) : 0,
			      roll(2) ? 0 : roll(8000));
		/* mostly it is used */
		if (!c->code && c->ngrants && roll(4))
			for (i = 0; i < 3; i++)
				world_open(&w, c, c->grants[0].channel, i);
		return;
	}
}

static void operate(void)
{
	struct world_seat *s;
	uint32_t i;

	if (!w.nseats)
		return;
	s = &w.seats[w.nseats - 1 - roll(w.nseats < 32 ? w.nseats : 32)];
	s->kind = (uint8_t)roll(13);
	if (roll(2)) {
		s->begun += roll(3);
		s->running += roll(2);
		return;
	}
	s->running = 0;
	s->begun += roll(4);
	for (i = 0; i < CLIENTS; i++)
		if (all.client[i] && all.client[i]->open && all.client[i]->session == s->session &&
		    all.client[i]->node == s->node)
			world_ops_ended(&w, all.client[i], s->domain);
}

static void fate(struct world_client *c)
{
	switch (roll(6)) {
	case 0: world_die(&w, c); return;
	case 1: world_dead(&w, c->node, c->pid); return;
	case 2:
	case 3: world_lose(&w, c); return;
	case 4:
		world_device(&w, roll(w.nodes), roll(9), 0, roll(5) != 0,
			     roll(6) ? "ok" : "offline");
		return;
	default: world_advance(&w, roll(20) ? roll(3000) : roll(200000)); return;
	}
}

static void hold_something(void)
{
	uint32_t i = roll(w.nodes), j = roll(w.nodes);

	switch (roll(4)) {
	case 0: w.hold[i][j] = true; return;
	case 1: world_hold(&w, i, j, false); return;
	case 2: world_store_hold(&w, i, !w.hold_store[i]); return;
	default:
		w.hold_scan = !w.hold_scan;
		world_settle(&w);
		return;
	}
}

static void something(void)
{
	const uint64_t id = all.domain[roll(KNOWN)];

	switch (roll(18)) {
	case 12:
	case 13:
	case 14:
	case 15:
	case 16:
	case 17: channel(); return;
	case 0:
	case 1:
	case 2:
	case 3: join(someone()); return;
	case 4: stage(someone(), id); return;
	case 5: divide(someone(), id); return;
	case 6: end_something(someone(), id); return;
	case 7: look(someone(), id); return;
	case 8:
	case 9: operate(); return;
	case 10: fate(someone()); return;
	default: hold_something(); return;
	}
}

/* Has it a rank without a process? Only one that was created can. */
static bool has_nobody(const struct hc_core *c, const struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++)
		if (!c->places[h->places + i].who)
			return true;
	return false;
}

/* Created domains that nobody has attached to wait for their owner. */
static void end_created(uint32_t node)
{
	struct world_client *admin = world_client(&w, node, 9, 0, HC_W_role_ADMIN);
	uint32_t i;

	for (i = 0; i < w.core[node]->home_pool.fresh; i++)
		if (w.core[node]->homes[i].id) {
			ck_assert(has_nobody(w.core[node], &w.core[node]->homes[i]));
			world_destroy(&w, admin, w.core[node]->homes[i].id);
		}
	world_die(&w, admin);
}

static void let_all_go(void)
{
	uint32_t i, j;

	w.hold_scan = false;
	memset(w.hold_store, 0, sizeof(w.hold_store));
	memset(w.hold, 0, sizeof(w.hold));
	world_settle(&w);
	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (j = 0; j < w.nodes; j++) /* those that died before their connection closed */
		for (i = 0; i < w.nclients; i++)
			if (w.clients[i]->node == j)
				world_dead(&w, j, w.clients[i]->pid);
	world_advance(&w, 1000000);
	for (j = 0; j < w.nodes; j++)
		end_created(j);
	world_check_empty(&w);
}

static void add_links(void)
{
	struct hc_link_fact f = {.type = HC_W_link_type_HCCS, .mbps = 1000, .present = true};
	uint32_t n, i;

	for (n = 0; n < w.nodes; n++) {
		for (i = 0; i < 4; i++) {
			f.a = i == 3 ? 0 : i / 2;
			f.b = i == 3 ? 1 : 1 + (i + 1) / 2;
			f.lane = i == 3; /* two between 0 and 1 */
			f.vcs = 1 + roll(6);
			world_link(&w, n, &f);
		}
		world_link(&w, n,
			   &(struct hc_link_fact){.type = HC_W_link_type_SHM,
						  .a = HC_NONE,
						  .b = HC_NONE,
						  .mbps = 3000,
						  .vcs = 1 + roll(12),
						  .present = true});
	}
}

static void begin(uint64_t seed)
{
	struct hc_settings set;
	struct hc_limits lim;
	uint32_t i;

	dice = seed * 0x9e3779b97f4a7c15ull + 1;
	memset(&all, 0, sizeof(all));
	world_defaults(&lim, &set);
	lim.domains = 6 + roll(12);
	lim.ranks = 32;
	lim.ranks_per_domain = 8;
	lim.ended = 3;
	lim.channels = 8 + roll(40);
	lim.wants = 4 + roll(16);
	lim.quota_channels = 4 + roll(40);
	lim.quota_waiting = 1 + roll(16);
	lim.quota_memory = (1 + roll(32)) << 20;
	set.connect_timeout_ns = 20ull * 1000 * WORLD_MS;
	world_start_with(&w, 1 + roll(3), &lim, &set, 8, seed);
	w.show = 0;
	add_links();
	for (i = 0; i < 4; i++) {
		world_table(&all.table[i], 1 + roll(3), 1 + roll(w.nodes));
		all.root[i].info_len = 1;
	}
}

static void live(uint64_t seed, uint32_t events)
{
	uint32_t i;

	begin(seed);
	for (i = 0; i < events; i++)
		something();
	let_all_go();
	world_end(&w);
}

START_TEST(random_lives_leave_nothing_behind)
{
	const char *one = getenv("HC_SEED");
	const uint64_t first = one ? strtoull(one, NULL, 10) : (uint64_t)_i * 25 + 1;
	const uint64_t last = one ? first : first + 24;
	uint64_t seed;

	if (one && _i)
		return;
	for (seed = first; seed <= last; seed++) {
		/* shown when it fails: the process ends by abort */
		fprintf(stderr, one ? "seed %llu\n" : "", (unsigned long long)seed);
		live(seed, 2000);
	}
}
END_TEST

static void add(TCase *c)
{
	tcase_add_loop_test(c, random_lives_leave_nothing_behind, 0, hc_long() ? 400 : 8);
}

int main(void)
{
	return hc_suite_run("core_random", add, 600);
}
