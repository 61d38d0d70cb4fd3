/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 58: one client's end must not hurt the others.
 *
 * The clean-up after one connection once swept everything that the daemon owned. Here twenty
 * clients run, each in a domain of its own, with messages going through a channel, a second channel
 * that is all of a link, and a request that waits for more of that. They are killed one after the
 * other in random order, with a seed that is printed. After each death exactly that client's rank,
 * channels and waiting request are gone, every other client's operations and messages go on, and
 * no other domain has changed its state, not even for a moment: its state number is the one that
 * it had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"
#include "ranks.h"
#include "suite.h"

enum { CLIENTS = 20 };

static struct hc_node node;
static struct hc_child client_of[CLIENTS];
static uint32_t number[CLIENTS];
static bool alive[CLIENTS];
static uint64_t before[CLIENTS];

static const char *name_of(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "job-%u", i);
	return name;
}

struct shared {
	unsigned index;
	uint64_t count;
};
static struct shared *shared;

/* Of each client two channels are granted, and one request waits. */
static struct hcomm_channel_args wants(uint32_t from, uint32_t type)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.rank = from;
	a.peer = !from;
	a.path_type = type;
	a.wait = 1;
	a.flags = HCOMM_CHANNEL_FROM | (type == HCOMM_LINK_HCCS ? HCOMM_CHANNEL_GRANT_ONLY : 0);
	return a;
}

static void takes_channels(unsigned i, hcomm_domain d, hcomm_channel ch[2])
{
	const struct hcomm_channel_args a = wants(0, HCOMM_LINK_SHM), b = wants(1, HCOMM_LINK_SHM),
					c = wants(0, HCOMM_LINK_HCCS);
	hcomm_channel held, waits;

	if (hcomm_channel_acquire(d, &a, 20000, &ch[0]) ||
	    hcomm_channel_acquire(d, &b, 20000, &ch[1]) ||
	    hcomm_channel_acquire(d, &c, 20000, &held) ||
	    hcomm_channel_acquire(d, &c, HCOMM_START, &waits) != HCOMM_E_IN_PROGRESS)
		hc_fail("client %u: %s", i, hcomm_last_error());
}

/* A message there, and back. */
static int exchange(const hcomm_channel ch[2])
{
	uint64_t got = 0, said = 1;
	uint32_t bytes = sizeof(got);
	int r = 0;

	for (unsigned k = 0; k < 2 && !r; k++) {
		r = hcomm_channel_send(ch[k], &said, sizeof(said), 5000);
		if (!r)
			r = hcomm_channel_recv(ch[!k], &got, &bytes, 5000);
		if (!r && (got != said || bytes != sizeof(got)))
			r = HCOMM_E_MALFORMED;
	}
	return r;
}

/* A domain of two devices by one process: it is the client's alone. */
static int client(void *arg, int in, int out)
{
	struct shared *me = arg;
	const unsigned i = me->index;
	const uint32_t devices[2] = {2 * i, 2 * i + 1};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	struct hcomm_op op;
	hcomm_channel ch[2];
	hcomm_domain d;
	int r;

	(void)in;
	c.name = name_of(i);
	if (hcomm_open(NULL, &s) || hcomm_join_all_local(s, devices, 2, &c, 20000, &d))
		hc_fail("client %u: %s", i, hcomm_last_error());
	takes_channels(i, d, ch);
	hc_tell(out, &i, sizeof(i));
	for (;;) {
		r = hcomm_op_begin_rank(d, 0, HCOMM_OP_ALL_REDUCE, 64, 0, &op);
		if (!r)
			r = exchange(ch);
		if (!r)
			r = hcomm_op_end(&op);
		if (!r)
			r = hcomm_ping(s, 20000); /* traffic of its session */
		if (r)
			hc_fail("client %u: %s: %s", i, hcomm_error_name(r), hcomm_last_error());
		__atomic_fetch_add(&me->count, 1, __ATOMIC_RELAXED);
	}
}

static void spawn(unsigned i)
{
	unsigned ready;

	shared[i].index = i;
	hc_spawn(&client_of[i], client, &shared[i]);
	hc_child_read(&client_of[i], &ready, sizeof(ready), 30000);
	alive[i] = true;
}

static uint64_t count_of(unsigned i)
{
	return __atomic_load_n(&shared[i].count, __ATOMIC_RELAXED);
}

static bool all_have_gone_on(void *ctx)
{
	(void)ctx;
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (alive[i] && count_of(i) <= before[i])
			return false;
	}
	return true;
}

static int books;

static unsigned how_many(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		n += alive[i];
	return n;
}

/* Channels and requests are those of the living: two, and one that waits. */
static bool books_are_right(void *ctx)
{
	struct hc_ledger l;

	(void)ctx;
	hc_ledger_read(books, &l);
	return l.whole && l.channels == 2 * how_many() && l.waits == how_many() && !l.tickets;
}

static bool victim_is_seen(void *ctx)
{
	struct hcomm_view_domain d;

	return !hc_ask_domain(name_of(*(unsigned *)ctx), &d) || strcmp(d.state, "ACTIVE") != 0;
}

static void check_others(unsigned victim)
{
	struct hcomm_view_domain d;

	for (unsigned i = 0; i < CLIENTS; i++) {
		if (!alive[i])
			continue;
		ck_assert_msg(hc_ask_domain(name_of(i), &d), "%s has vanished with %u", name_of(i),
			      victim);
		ck_assert_str_eq(d.state, "ACTIVE");
		ck_assert_uint_eq(d.number, number[i]);
	}
}

static void kill_one(unsigned victim)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		before[i] = count_of(i);
	alive[victim] = false;
	hc_child_kill(&client_of[victim]);
	hc_await("the death to be seen", victim_is_seen, &victim, 5000);
	for (unsigned i = 0; i < CLIENTS; i++)
		before[i] = count_of(i);
	hc_await("its channels and its request to go, and no others", books_are_right, NULL, 5000);
	hc_await("all others to go on", all_have_gone_on, NULL, 20000);
	check_others(victim);
}

static void one_round(void)
{
	struct hcomm_view_domain d;
	unsigned order[CLIENTS];

	for (unsigned i = 0; i < CLIENTS; i++) {
		order[i] = i;
		spawn(i);
		ck_assert(hc_ask_domain(name_of(i), &d));
		number[i] = d.number;
	}
	ck_assert(books_are_right(NULL));
	for (unsigned i = CLIENTS - 1; i > 0; i--) {
		unsigned k = (unsigned)rand() % (i + 1), was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		kill_one(order[i]);
}

static bool all_is_free(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_ask_status(&s);
	return !s.domains && !s.ranks;
}

/* A link of one channel between the two devices of each client. */
static void start_node(void)
{
	char sections[4096], *at = sections;

	for (unsigned i = 0; i < CLIENTS; i++)
		at += snprintf(at, (size_t)(sections + sizeof(sections) - at),
			       "[link %u %u]\ntype = hccs\nvirtual_channels = 1\n", 2 * i,
			       2 * i + 1);
	hc_node_prepare(&node, 2 * CLIENTS, "orphan_grace_s = 1", sections);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	books = hc_ledger_open(&node);
}

START_TEST(each_death_takes_its_own_and_no_more)
{
	unsigned rounds = hc_long() ? 100 : 1, seed = (unsigned)time(NULL);
	const char *given = getenv("HC_SEED");

	if (given)
		seed = (unsigned)strtoul(given, NULL, 10);
	srand(seed);
	shared = mmap(NULL, CLIENTS * sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	start_node();
	for (unsigned n = 0; n < rounds; n++) {
		one_round();
		if (hc_wait_until(all_is_free, NULL, 10000))
			continue;
		hc_fail("seed %u, round %u: something is left of the dead", seed, n);
	}
	hc_ledger_await_empty(books, 5000);
	close(books);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, each_death_takes_its_own_and_no_more);
}

int main(void)
{
	return hc_suite_run("case_058_clients_die", add, hc_long() ? 800 : 60);
}
