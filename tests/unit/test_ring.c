/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of a channel: what is sent comes out, once, in order and whole, or not at all.
 *
 * One thread plays both ends where the order of steps matters; two threads, or two processes,
 * where the waiting does. The smallest buffer is used throughout, so that everything wraps often.
 * A partner that writes anything anywhere may stop a channel and falsify its data, and nothing
 * else: with the address sanitizer a step outside would end the test.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"
#include "suite.h"

#define BUFFER HC_CHANNEL_BUFFER_MIN

struct pair { /* both sides of a channel */
	void *map;
	size_t bytes;
	struct hc_ring_tx tx[2];
	struct hc_ring_rx rx[2];
	uint8_t *stash[2];
	struct hc_ring_watch watch;
	_Atomic uint32_t word; /* 1: the channel is over */
};

static bool is_over(void *context)
{
	struct pair *p = context;

	return atomic_load(&p->word) != 0;
}

static void attach(struct pair *p, unsigned side)
{
	hc_ring_tx_init(&p->tx[side], p->map, BUFFER, side, &p->watch);
	hc_ring_rx_init(&p->rx[side], p->map, BUFFER, side, p->stash[side], &p->watch);
}

/* In memory that a forked child shares. */
static struct pair *pair_new(void)
{
	struct pair *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	hc_want(p != MAP_FAILED);
	p->bytes = HC_RING_FILE_BYTES(BUFFER);
	p->map = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	hc_want(p->map != MAP_FAILED);
	p->stash[0] = malloc(HC_RING_MESSAGE_MAX);
	p->stash[1] = malloc(HC_RING_MESSAGE_MAX);
	p->watch = (struct hc_ring_watch){.word = &p->word, .over = is_over, .context = p};
	attach(p, 0);
	attach(p, 1);
	return p;
}

static void pair_free(struct pair *p)
{
	free(p->stash[0]);
	free(p->stash[1]);
	munmap(p->map, p->bytes);
	munmap(p, sizeof(*p));
}

/* What message `number` of `n` bytes holds. */
static void fill(uint8_t *to, uint32_t n, uint32_t number)
{
	uint32_t i, x = number * 2654435761u + n;

	for (i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		to[i] = (uint8_t)(x >> 24);
	}
}

static bool holds(const uint8_t *at, uint32_t n, uint32_t number)
{
	uint32_t i, x = number * 2654435761u + n;

	for (i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		if (at[i] != (uint8_t)(x >> 24))
			return false;
	}
	return true;
}

static uint8_t data[HC_RING_MESSAGE_MAX], got[HC_RING_MESSAGE_MAX];

static int put(struct pair *p, uint32_t n, uint32_t number, uint32_t ms)
{
	fill(data, n, number);
	return hc_ring_send(&p->tx[0], data, n, HC_RING_WAIT(ms));
}

static void take(struct pair *p, uint32_t n, uint32_t number)
{
	uint32_t bytes = sizeof(got);

	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &bytes, HC_RING_WAIT(0)), 0);
	ck_assert_uint_eq(bytes, n);
	ck_assert(holds(got, n, number));
}

static void none(struct pair *p)
{
	uint32_t bytes = sizeof(got);

	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &bytes, HC_RING_WAIT(0)), HC_E_AGAIN);
	ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(0)), HC_E_AGAIN);
}

/* ---- one thread ---- */

START_TEST(every_size_up_to_the_buffer_comes_out)
{
	struct pair *p = pair_new();
	uint32_t n;

	none(p);
	for (n = 0; n <= BUFFER; n++) {
		ck_assert_int_eq(put(p, n, n, 0), 0);
		ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(0)), 0);
		take(p, n, n);
		none(p);
	}
	pair_free(p);
}
END_TEST

START_TEST(a_full_ring_says_so_and_goes_on_where_it_was)
{
	struct pair *p = pair_new();
	uint32_t i, k, count;

	for (k = 0; k < 20; k++) {
		for (count = 0; !put(p, 8, k + count, 0); count++)
			ck_assert_uint_lt(count, HC_RING_SLOTS);
		/* one descriptor is kept for the word that a message is given up */
		ck_assert_uint_eq(count, HC_RING_SLOTS - 1);
		ck_assert_int_eq(put(p, 8, 0, 0), HC_E_AGAIN);
		ck_assert_int_eq(put(p, 8, 0, 1), HC_E_TIMEOUT);
		for (i = 0; i < count; i++)
			take(p, 8, k + i);
		none(p);
	}
	pair_free(p);
}
END_TEST

START_TEST(a_large_message_goes_at_once_or_not_at_all)
{
	struct pair *p = pair_new();

	ck_assert_int_eq(put(p, 3000, 1, 0), 0);
	ck_assert_int_eq(put(p, 1100, 2, 0), HC_E_AGAIN); /* lines of 64 bytes: none is left */
	ck_assert_int_eq(put(p, 8, 3, 0), 0);
	ck_assert_int_eq(put(p, BUFFER + 1, 4, 0), HC_E_BUFFER_OVERFLOW);
	take(p, 3000, 1);
	take(p, 8, 3);
	none(p);
	ck_assert_int_eq(put(p, BUFFER, 5, 0), 0);
	take(p, BUFFER, 5);
	pair_free(p);
}
END_TEST

START_TEST(a_message_without_room_for_it_stays)
{
	struct pair *p = pair_new();
	uint32_t n, sizes[] = {1, 56, 57, 4000}, i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(put(p, sizes[i], i, 0), 0);
		n = sizes[i] - 1;
		ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)),
				 HC_E_BUFFER_OVERFLOW);
		ck_assert_uint_eq(n, sizes[i]);
		ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(0)), 0); /* into the stash */
		n = sizes[i] - 1;
		ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)),
				 HC_E_BUFFER_OVERFLOW);
		take(p, sizes[i], i);
	}
	none(p);
	pair_free(p);
}
END_TEST

START_TEST(a_sender_that_gives_up_leaves_no_half_message)
{
	struct pair *p = pair_new();
	uint32_t i;

	for (i = 0; i < 600; i++) {
		/* it fits in part, and nobody takes it */
		ck_assert_int_eq(put(p, 3 * BUFFER, i, 1), HC_E_TIMEOUT);
		if (i % 2) /* the receiver has seen the first part already */
			ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(0)), HC_E_AGAIN);
		ck_assert_int_eq(put(p, 8, i, 0), 0);
		take(p, 8, i);
		none(p);
	}
	pair_free(p);
}
END_TEST

START_TEST(a_receiver_out_of_time_goes_on_later)
{
	struct pair *p = pair_new();
	struct hc_ring_tx tx;
	uint32_t n, parts, size = 3 * 1024;

	/* a sender between two fragments: a whole message whose tail is not there yet */
	ck_assert_int_eq(put(p, size, 7, 0), 0);
	tx = p->tx[0];
	n = tx.position - 1; /* the last fragment */
	parts = HC_RING_SLOTS;
	ck_assert_uint_lt(n, parts);
	uint64_t word = atomic_exchange(&p->tx[0].desc[n].word, 0);
	n = sizeof(got);
	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)), HC_E_AGAIN);
	n = sizeof(got);
	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(1)), HC_E_TIMEOUT);
	n = 100;
	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)), HC_E_BUFFER_OVERFLOW);
	ck_assert_uint_eq(n, size);
	memset(got, 0, sizeof(got));
	atomic_store(&p->tx[0].desc[tx.position - 1].word, word);
	take(p, size, 7);
	none(p);
	pair_free(p);
}
END_TEST

/* Counters of 32 bits go round; nothing may be seen of it. */
START_TEST(the_counters_go_round)
{
	struct pair *p = pair_new();
	uint32_t i, at = 0u - 700u;

	for (i = 0; i < HC_RING_SLOTS; i++)
		p->tx[0].desc[(at + i) % HC_RING_SLOTS].word =
			HC_RING_WORD(at + i + 1 - HC_RING_SLOTS, 0, 0);
	p->tx[0].position = p->tx[0].taken = p->rx[1].position = at;
	p->tx[0].lines = p->tx[0].lines_taken = p->rx[1].lines = at;
	p->rx[1].lap = true;
	p->tx[0].control->taken = (uint64_t)at << 32 | at;
	for (i = 0; i < 3000; i++) {
		ck_assert_int_eq(put(p, i % 200, i, 0), 0);
		if (i % 5)
			ck_assert_int_eq(put(p, 1, i, 0), 0);
		take(p, i % 200, i);
		if (i % 5)
			take(p, 1, i);
	}
	none(p);
	pair_free(p);
}
END_TEST

/* All orders of a few steps against a queue that holds what was sent. */
static const uint32_t model_sizes[] = {0, 225, 2000, 4096, 5000};
enum { STEPS = 6, CHOICES = 8 };

static void reset(struct pair *p)
{
	memset(p->map, 0, HC_RING_HEAD_BYTES);
	memset(p->tx[0].desc, 0, 32 * HC_RING_SLOT_BYTES);
	attach(p, 0);
	attach(p, 1);
}

static uint32_t aligned(uint32_t n)
{
	return n <= HC_RING_SMALL_MAX ? 0 : (n + 63) & ~63u;
}

static void follow(struct pair *p, unsigned order)
{
	uint32_t queue[STEPS], first = 0, last = 0, used = 0, i, n, what;
	int r;

	reset(p);
	for (i = 0; i < STEPS; i++, order /= CHOICES) {
		what = order % CHOICES;
		if (what < 5) {
			n = model_sizes[what];
			r = hc_ring_send(&p->tx[0], data, n, HC_RING_WAIT(0));
			ck_assert_int_eq(r, n > BUFFER                   ? HC_E_BUFFER_OVERFLOW
					    : used + aligned(n) > BUFFER ? HC_E_AGAIN
									 : 0);
			if (!r) {
				queue[last++] = n;
				used += aligned(n);
			}
			continue;
		}
		n = what == 6 ? 60 : sizeof(got);
		if (what == 7)
			r = hc_ring_poll(&p->rx[1], HC_RING_WAIT(0));
		else
			r = hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0));
		if (first == last) {
			ck_assert_int_eq(r, HC_E_AGAIN);
		} else if (what == 7) {
			ck_assert_int_eq(r, 0);
			/* a poll may have taken it out of the buffer */
			if (p->rx[1].got && !(queue[first] >> 31)) {
				used -= aligned(queue[first]);
				queue[first] |= 1u << 31;
			}
		} else {
			ck_assert_uint_eq(n, queue[first] & ~(1u << 31));
			ck_assert_int_eq(r, what == 6 && n > 60 ? HC_E_BUFFER_OVERFLOW : 0);
			if (!r && !(queue[first] >> 31))
				used -= aligned(n);
			first += !r;
		}
	}
}

START_TEST(all_orders_of_six_steps)
{
	struct pair *p = pair_new();
	unsigned order;

	for (order = 0; order < 1u << (3 * STEPS); order++)
		follow(p, order);
	pair_free(p);
}
END_TEST

/* ---- waiting ---- */

struct flow {
	struct pair *p;
	unsigned from; /* side that sends */
	uint32_t count, seed, largest;
	bool lazy; /* the receiver stops now and then */
	int result;
};

static uint32_t random_of(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static uint32_t size_of(uint32_t *seed, uint32_t largest)
{
	uint32_t x = random_of(seed);

	switch (x % 8) {
	case 0: return random_of(seed) % (largest + 1);
	case 1: return random_of(seed) % 4096 % (largest + 1);
	default: return random_of(seed) % 70 % (largest + 1);
	}
}

static void *send_all(void *arg)
{
	struct flow *f = arg;
	uint8_t *from = malloc(f->largest + 1);
	uint32_t i, n, seed = f->seed;

	for (i = 0; !f->result && i < f->count; i++) {
		n = size_of(&seed, f->largest);
		fill(from, n, i);
		f->result = hc_ring_send(&f->p->tx[f->from], from, n, HC_RING_WAIT(60000));
		if (f->lazy && !(i % 97))
			usleep(100);
	}
	free(from);
	return NULL;
}

static void *recv_all(void *arg)
{
	struct flow *f = arg;
	uint8_t *to = malloc(f->largest + 1);
	uint32_t i, n, want, seed = f->seed;
	int r = 0;

	for (i = 0; !r && i < f->count; i++) {
		n = f->largest + 1;
		want = size_of(&seed, f->largest);
		if (i % 7 == 3)
			r = hc_ring_poll(&f->p->rx[1 - f->from], HC_RING_WAIT(60000));
		if (!r)
			r = hc_ring_recv(&f->p->rx[1 - f->from], to, &n, HC_RING_WAIT(60000));
		if (!r && (n != want || !holds(to, n, i)))
			r = -1;
		if (f->lazy && !(i % 89))
			usleep(150);
	}
	free(to);
	f->result = r;
	return NULL;
}

static void run_flows(uint32_t count, uint32_t largest)
{
	struct pair *p = pair_new();
	struct flow f[4];
	pthread_t thread[4];
	unsigned i;

	for (i = 0; i < 4; i++) {
		f[i] = (struct flow){.p = p,
				     .from = i / 2,
				     .count = count,
				     .seed = 11 + i / 2,
				     .largest = largest,
				     .lazy = i / 2};
		hc_want(!pthread_create(&thread[i], NULL, i % 2 ? recv_all : send_all, &f[i]));
	}
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 4; i++)
		ck_assert_msg(!f[i].result, "%s of side %u: %d", i % 2 ? "receiver" : "sender",
			      i / 2, f[i].result);
	pair_free(p);
}

START_TEST(four_threads_both_ways)
{
	run_flows(hc_long() ? 3000000 : 60000, 20000);
	run_flows(hc_long() ? 3000 : 100, HC_RING_MESSAGE_MAX);
}
END_TEST

/* A partner that answers at once, so that each side sleeps or spins for each message. */
static void *echo(void *arg)
{
	struct flow *f = arg;
	uint32_t i, n, x;
	int r = 0;

	for (i = 0; !r && i < f->count; i++) {
		n = sizeof(x);
		r = hc_ring_recv(&f->p->rx[1], &x, &n, HC_RING_WAIT(60000));
		if (!r)
			r = hc_ring_send(&f->p->tx[1], &x, n, HC_RING_WAIT(60000));
	}
	f->result = r;
	return NULL;
}

START_TEST(no_wake_up_is_lost)
{
	struct pair *p = pair_new();
	struct flow f = {.p = p, .count = hc_long() ? 2000000 : 30000};
	uint32_t i, n, x;
	pthread_t thread;

	hc_want(!pthread_create(&thread, NULL, echo, &f));
	for (i = 0; i < f.count; i++) {
		n = sizeof(x);
		/* a lost one would show as the second after which a sleeper looks up */
		ck_assert_int_eq(hc_ring_send(&p->tx[0], &i, sizeof(i), HC_RING_WAIT(60000)), 0);
		ck_assert_int_eq(hc_ring_recv(&p->rx[0], &x, &n, HC_RING_WAIT(hc_patience(900))),
				 0);
		ck_assert_uint_eq(x, i);
		/* as if there were work between, of many lengths */
		if (!(i % 16))
			p->tx[0].wait.spins = p->rx[0].wait.spins = i / 16 % 64;
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(f.result, 0);
	pair_free(p);
}
END_TEST

static void *end_it(void *arg)
{
	struct pair *p = arg;

	while (!(atomic_load(&p->rx[1].control->consumer.asleep) & 1))
		usleep(100);
	atomic_store(&p->word, 1);
	syscall(SYS_futex, &p->word, 1 /* FUTEX_WAKE */, 100, NULL, NULL, 0);
	return NULL;
}

START_TEST(the_end_of_the_channel_ends_a_wait_at_once)
{
	struct pair *p = pair_new();
	uint64_t start = hc_now_ms();
	uint32_t n = sizeof(got);
	pthread_t thread;

	hc_want(!pthread_create(&thread, NULL, end_it, p));
	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(HC_RING_FOREVER)),
			 HC_E_PEER_LOST);
	/* not by the look of each second */
	ck_assert_uint_lt(hc_now_ms() - start, hc_patience(900));
	pthread_join(thread, NULL);
	/* what had come before is delivered */
	ck_assert_int_eq(put(p, 8, 1, 0), 0);
	ck_assert_int_eq(put(p, 2000, 2, 0), 0);
	take(p, 8, 1);
	take(p, 2000, 2);
	n = sizeof(got);
	ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)), HC_E_PEER_LOST);
	ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(5)), HC_E_PEER_LOST);
	while (!put(p, 8, 1, 0))
		;
	ck_assert_int_eq(put(p, 8, 1, 5), HC_E_PEER_LOST);
	pair_free(p);
}
END_TEST

static int send_for_ever(void *arg, int in, int out)
{
	struct pair *p = arg;

	(void)in;
	hc_tell(out, "x", 1);
	while (!hc_ring_send(&p->tx[0], data, HC_RING_MESSAGE_MAX, HC_RING_WAIT(60000)))
		;
	return 1;
}

START_TEST(a_partner_killed_in_the_middle_of_a_message)
{
	struct pair *p = pair_new();
	struct hc_child c;
	unsigned i;
	uint32_t n;
	char x;
	int r;

	for (i = 0; i < 20; i++) {
		reset(p);
		memset(p->tx[0].desc, 0, HC_RING_SLOTS * HC_RING_SLOT_BYTES);
		atomic_store(&p->word, 0);
		hc_spawn(&c, send_for_ever, p);
		hc_child_read(&c, &x, 1, 5000);
		do {
			n = sizeof(got);
			r = hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0));
			ck_assert(!r || r == HC_E_AGAIN);
		} while (!p->rx[1].got);
		hc_child_kill(&c);
		atomic_store(&p->word, 1);
		do {
			n = sizeof(got);
			r = hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(60000));
		} while (!r);
		ck_assert_int_eq(r, HC_E_PEER_LOST);
	}
	pair_free(p);
}
END_TEST

/* ---- a hostile partner ---- */

#ifndef __SANITIZE_THREAD__ /* that sees the enemy's races, as it should */

struct enemy {
	struct pair *p;
	_Atomic bool stop;
	_Atomic uint32_t position, total; /* where the victim is */
	uint32_t seed;
};

/* Words that are near to right do the most harm. */
static uint64_t evil_word(struct enemy *e)
{
	uint32_t x = random_of(&e->seed), turn = atomic_load(&e->position) + x % 3;

	switch (x / 3 % 4) {
	case 0: return (uint64_t)random_of(&e->seed) << 40 ^ random_of(&e->seed);
	case 1: return HC_RING_WORD(turn, random_of(&e->seed) % 6, random_of(&e->seed) % 100);
	case 2: return HC_RING_WORD(turn, 2 + x % 2, random_of(&e->seed) % (3 << 19));
	default: return HC_RING_WORD(turn, 3, atomic_load(&e->total));
	}
}

static void *scribble(void *arg)
{
	struct enemy *e = arg;
	_Atomic uint64_t *at = e->p->map;
	struct hc_ring_desc *desc = (void *)((uint8_t *)e->p->map + HC_RING_SLOTS_AT(0)), *d;
	size_t words = e->p->bytes / 8, i;

	while (!atomic_load_explicit(&e->stop, memory_order_relaxed)) {
		for (i = 0; i < 64; i++) {
			d = &desc[(atomic_load(&e->position) + i % 3) % HC_RING_SLOTS];
			atomic_store_explicit(&d->word, evil_word(e), memory_order_relaxed);
			atomic_store_explicit(&d->u.fragment, random_of(&e->seed) % 5000,
					      memory_order_relaxed);
		}
		for (i = 0; i < 16; i++)
			atomic_store_explicit(&at[random_of(&e->seed) % words], evil_word(e),
					      memory_order_relaxed);
	}
	return NULL;
}

static void suffer(struct pair *p, uint32_t *seed)
{
	uint32_t room = size_of(seed, HC_RING_MESSAGE_MAX), n = room;
	uint8_t *to = malloc(room + 1); /* as large as said, so that one more byte is seen */
	int r;

	to[room] = 0x5a;
	switch (random_of(seed) % 4) {
	case 0: r = hc_ring_send(&p->tx[1], to, room, HC_RING_WAIT(random_of(seed) % 2)); break;
	case 1: r = hc_ring_poll(&p->rx[1], HC_RING_WAIT(random_of(seed) % 2)); break;
	default:
		r = hc_ring_recv(&p->rx[1], to, &n, HC_RING_WAIT(random_of(seed) % 2));
		ck_assert(r || n <= room);
		break;
	}
	ck_assert_uint_eq(to[room], 0x5a);
	free(to);
	ck_assert(!r || r == HC_E_MALFORMED || r == HC_E_AGAIN || r == HC_E_TIMEOUT ||
		  r == HC_E_BUFFER_OVERFLOW);
	/* it stays so; then a new channel begins, as far as this side knows */
	if (p->rx[1].bad || p->tx[1].bad)
		attach(p, 1);
}

START_TEST(a_partner_that_writes_anything_does_no_harm)
{
	struct pair *p = pair_new();
	struct enemy e = {.p = p, .seed = 99};
	uint64_t end = hc_now_ms() + (hc_long() ? 60000 : 2000);
	uint32_t seed = 5, rounds = 0, broken = 0;
	pthread_t thread;

	hc_want(!pthread_create(&thread, NULL, scribble, &e));
	while (hc_now_ms() < end) {
		suffer(p, &seed);
		atomic_store(&e.position, p->rx[1].position);
		atomic_store(&e.total, p->rx[1].total);
		broken += !p->rx[1].position;
		rounds++;
	}
	atomic_store(&e.stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(rounds, 100);
	ck_assert_uint_gt(broken, 10);
	pair_free(p);
}
END_TEST

#endif
START_TEST(each_broken_rule_ends_the_half_for_good)
{
	static const struct {
		uint64_t word;
		uint32_t fragment;
	} bad[] = {
		{HC_RING_WORD(2, HC_RING_SMALL, 8), 0},        /* a turn too early */
		{HC_RING_WORD(1, HC_RING_SMALL, 225), 0},      /* longer than four descriptors */
		{HC_RING_WORD(1, 0, 8), 0},                    /* no kind */
		{HC_RING_WORD(1, HC_RING_MORE, 8), 0},         /* no kind */
		{HC_RING_WORD(1, HC_RING_CONT, 100), 100},     /* of nothing */
		{HC_RING_WORD(1, HC_RING_ABORT, 0), 0},        /* of nothing */
		{HC_RING_WORD(1, HC_RING_FIRST, 224), 224},    /* would have fitted */
		{HC_RING_WORD(1, HC_RING_FIRST, 1048577), 57}, /* beyond the largest message */
		{HC_RING_WORD(1, HC_RING_FIRST, 300), 0},      /* an empty fragment */
		{HC_RING_WORD(1, HC_RING_FIRST, 300), 301},    /* beyond the message */
		{HC_RING_WORD(1, HC_RING_FIRST, 9000), 4097},  /* beyond the buffer */
	};
	struct pair *p = pair_new();
	uint32_t i, n;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reset(p);
		atomic_store(&p->rx[1].desc[0].u.fragment, bad[i].fragment);
		atomic_store(&p->rx[1].desc[0].word, bad[i].word);
		n = sizeof(got);
		ck_assert_msg(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)) == HC_E_MALFORMED,
			      "case %u", i);
		reset(p);
		atomic_store(&p->rx[1].desc[0].u.fragment, bad[i].fragment);
		atomic_store(&p->rx[1].desc[0].word, bad[i].word);
		p->rx[1].bad = false;
		hc_ring_poll(&p->rx[1], HC_RING_WAIT(0));
		n = sizeof(got);
		ck_assert_int_eq(hc_ring_recv(&p->rx[1], got, &n, HC_RING_WAIT(0)), HC_E_MALFORMED);
		memset(p->rx[1].desc, 0, HC_RING_SLOTS * HC_RING_SLOT_BYTES);
		ck_assert_int_eq(hc_ring_poll(&p->rx[1], HC_RING_WAIT(0)), HC_E_MALFORMED);
	}
	for (i = 0; i < 2; i++) { /* taken: more than was sent, descriptors or lines */
		reset(p);
		while (!put(p, 8, 1, 0))
			;
		atomic_store(&p->tx[0].control->taken, i ? 1 : (uint64_t)1 << 32);
		atomic_store(&p->tx[0].control->taken, i ? 256 : (uint64_t)1 << 32 | 2);
		ck_assert_int_eq(put(p, 8, 1, 0), HC_E_MALFORMED);
		ck_assert_int_eq(put(p, 8, 1, 100), HC_E_MALFORMED);
	}
	reset(p); /* taken: back again */
	while (!put(p, 8, 1, 0))
		;
	take(p, 8, 1);
	ck_assert_int_eq(put(p, 8, 1, 0), 0);
	atomic_store(&p->tx[0].control->taken, 0);
	ck_assert_int_eq(put(p, 8, 1, 0), HC_E_MALFORMED);
	pair_free(p);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, every_size_up_to_the_buffer_comes_out);
	tcase_add_test(t, a_full_ring_says_so_and_goes_on_where_it_was);
	tcase_add_test(t, a_large_message_goes_at_once_or_not_at_all);
	tcase_add_test(t, a_message_without_room_for_it_stays);
	tcase_add_test(t, a_sender_that_gives_up_leaves_no_half_message);
	tcase_add_test(t, a_receiver_out_of_time_goes_on_later);
	tcase_add_test(t, the_counters_go_round);
	tcase_add_test(t, all_orders_of_six_steps);
	tcase_add_test(t, four_threads_both_ways);
	tcase_add_test(t, no_wake_up_is_lost);
	tcase_add_test(t, the_end_of_the_channel_ends_a_wait_at_once);
	tcase_add_test(t, a_partner_killed_in_the_middle_of_a_message);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(t, a_partner_that_writes_anything_does_no_harm);
#endif
	tcase_add_test(t, each_broken_rule_ends_the_half_for_good);
}

int main(void)
{
	return hc_suite_run("ring", add, hc_long() ? 900 : 60);
}
