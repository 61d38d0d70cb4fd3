/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 74, among others: a subscriber never reads while many others work.
 *
 * Each of the others is a process with a session and a domain of its own, that asks the daemon and
 * takes a channel and gives it back, some ten times a second each, and notes how long that took.
 * Somebody makes events all the while, a thousand a second, which one that reads counts. First
 * without the one that does not read, which is the control, and then with it. Wanted: the 99th
 * percentile of the others is within twice that of the control; the one that does not read has lost
 * events, which are counted, and is the only one; nobody is refused anything; and the daemon's
 * memory does not grow with the time that this lasts.
 *
 * Eight others and some seconds in the short form; fifty and five minutes with HC_LONG=1, as in the
 * case. The figures are printed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <hcomm/views.h>

#include "eye.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { FEW = 8, MANY = 50, RATE = 1000, NOTES = 4096, QUEUE_KIB = 256 };
enum phase { IDLE, CONTROL, DEAF, OVER, PHASES };
enum work { PING, CHANNEL, WORKS };

struct board {
	atomic_int phase;
	struct notes {
		atomic_uint n;
		uint32_t us[NOTES];
	} notes[MANY][PHASES][WORKS];
};

static struct board *board;
static struct hc_node node;
static struct hc_child child[MANY];
static unsigned number[MANY];
static uint64_t events;

static unsigned others(void)
{
	return hc_long() ? MANY : FEW;
}

/* ---- the others ---- */

static void note(unsigned who, int phase, enum work work, uint64_t began_ns)
{
	struct notes *to = &board->notes[who][phase][work];
	const unsigned n = atomic_load(&to->n);

	if (n == NOTES)
		return;
	to->us[n] = (uint32_t)((hc_now_ns() - began_ns) / 1000);
	atomic_store(&to->n, n + 1);
}

static void take_a_channel(hcomm_domain d)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);
	hcomm_channel ch;

	a.peer = 1;
	a.path_type = HCOMM_LINK_HCCS;
	a.flags = HCOMM_CHANNEL_FROM | HCOMM_CHANNEL_GRANT_ONLY;
	if (hcomm_channel_acquire(d, &a, 30000, &ch) || hcomm_channel_release(ch))
		hc_fail("channel: %s", hcomm_last_error());
}

static hcomm_domain join_shared(struct hcomm_session *s)
{
	const uint32_t devices[2] = {0, 1};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.shared = 1;
	if (hcomm_join_all_local(s, devices, 2, &config, 30000, &d))
		hc_fail("%s", hcomm_last_error());
	return d;
}

static int work(void *arg, int in, int out)
{
	const struct timespec rest = {.tv_nsec = 90000000}; /* its own work */
	const unsigned who = *(const unsigned *)arg;
	struct hcomm_session *s;
	hcomm_domain d;
	uint64_t began;
	int phase;
	char x = 1;

	(void)in;
	if (hcomm_open(NULL, &s))
		hc_fail("%s", hcomm_last_error());
	d = join_shared(s);
	hc_tell(out, &x, 1);
	while ((phase = atomic_load(&board->phase)) != OVER) {
		began = hc_now_ns();
		if (hcomm_ping(s, 30000))
			hc_fail("ping: %s", hcomm_last_error());
		note(who, phase, PING, began);
		began = hc_now_ns();
		take_a_channel(d);
		note(who, phase, CHANNEL, began);
		nanosleep(&rest, NULL);
	}
	if (hcomm_leave(d, 30000))
		hc_fail("leave: %s", hcomm_last_error());
	hcomm_close(s);
	return 0;
}

static void all_work(void)
{
	char x;

	for (unsigned i = 0; i < others(); i++) {
		number[i] = i;
		hc_spawn(&child[i], work, &number[i]);
	}
	for (unsigned i = 0; i < others(); i++)
		hc_child_read(&child[i], &x, 1, 30000);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of all others, in us. */
static uint32_t p99(enum phase phase, enum work work)
{
	static uint32_t all[MANY * NOTES];
	unsigned n = 0;

	for (unsigned i = 0; i < others(); i++) {
		const struct notes *of = &board->notes[i][phase][work];

		for (unsigned k = 0; k < atomic_load(&of->n); k++)
			all[n++] = of->us[k];
	}
	ck_assert_uint_gt(n, 0);
	qsort(all, n, sizeof(all[0]), by_size);
	return all[n * 99 / 100];
}

/* ---- the events ---- */

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	events += 1 + e->lost;
}

static struct hcomm_session *open_maker(void)
{
	struct hcomm_session *s;

	if (hcomm_open(NULL, &s) || hcomm_on_event(s, on_event, NULL) || hcomm_subscribe(s, 0, 1))
		hc_fail("%s", hcomm_last_error());
	return s;
}

/* Domains come and go, as many as give RATE events a second. Returns how many there were. */
static uint64_t make_events(struct hcomm_session *s, enum phase phase, unsigned ms)
{
	static const uint32_t devices[2] = {2, 3};
	const struct timespec moment = {.tv_nsec = 1000000};
	const uint64_t began = hc_now_ms(), first = events;
	hcomm_domain d;
	uint64_t now;

	atomic_store(&board->phase, phase);
	while ((now = hc_now_ms()) < began + ms) {
		if (events - first > (now - began) * RATE / 1000) {
			nanosleep(&moment, NULL); /* ahead of the rate */
			continue;
		}
		if (hcomm_join_all_local(s, devices, 2, NULL, 30000, &d) ||
		    hcomm_destroy(d, 30000) || hcomm_dispatch(s, 0) < 0)
			hc_fail("%s", hcomm_last_error());
	}
	atomic_store(&board->phase, IDLE);
	return events - first;
}

static int add_losers(const void *row, void *arg)
{
	*(unsigned *)arg += ((const struct hcomm_view_client *)row)->events_lost > 0;
	return 0;
}

/* ---- the story ---- */

static void want_alike(const char *what, enum work work)
{
	const uint32_t control = p99(CONTROL, work), deaf = p99(DEAF, work);

	printf("%u others, p99 of %s: %u us in the control, %u us with one that does not read\n",
	       others(), what, control, deaf);
	/* twice, and some slices of a machine that has other programs to run */
	ck_assert_uint_le(deaf, 2 * control + 1000 * hc_patience(50));
}

START_TEST(others_work_while_one_does_not_read)
{
	const unsigned control_ms = hc_long() ? 60000 : 2000, deaf_ms = hc_long() ? 300000 : 5000;
	const struct hc_m_subscribe all = {.id = 0, .on = 1};
	static uint8_t buf[HC_PACKET_MAX];
	struct hcomm_view_status status;
	struct hcomm_session *maker;
	unsigned long rss, rss_end;
	unsigned losers = 0;
	struct hc_frame f;
	uint64_t made;
	int deaf;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert(board != MAP_FAILED);
	hc_node_prepare(&node, 4, NULL, "[link 0 1]\ntype = hccs\nvirtual_channels = 64\n");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	all_work();
	maker = open_maker();
	made = make_events(maker, CONTROL, control_ms);
	printf("control: %llu events in %u ms\n", (unsigned long long)made, control_ms);

	deaf = hc_raw_session(node.socket);
	ck_assert(hc_raw_ask(deaf, &hc_desc_subscribe, 2, &all, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_done);
	made = make_events(maker, IDLE, deaf_ms / 5); /* its queue fills */
	rss = hc_proc_kib(node.pid, "VmRSS");
	made = make_events(maker, DEAF, deaf_ms);
	rss_end = hc_proc_kib(node.pid, "VmRSS");
	hc_ask_status(&status);
	printf("one that does not read: %llu events in %u ms, %llu lost for it; hcommd has %lu "
	       "KiB, "
	       "then %lu KiB\n",
	       (unsigned long long)made, deaf_ms, (unsigned long long)status.events_lost, rss,
	       rss_end);
	want_alike("a ping", PING);
	want_alike("a channel, there and back", CHANNEL);
	ck_assert_uint_gt(status.events_lost, 0);
	ck_assert_int_eq(hcomm_query(maker, HCOMM_VIEW_CLIENT, NULL, add_losers, &losers), 0);
	ck_assert_uint_eq(losers, 1);
	/* its queue may have grown on, and what storing the events takes */
	ck_assert_uint_le(rss_end, rss + hc_growth_kib(QUEUE_KIB + 4096));
	if (hc_long())
		ck_assert_uint_ge(made, (uint64_t)RATE * deaf_ms / 1000 * 9 / 10);

	atomic_store(&board->phase, OVER);
	for (unsigned i = 0; i < others(); i++)
		ck_assert_int_eq(hc_child_wait(&child[i], 60000), 0);
	close(deaf);
	hcomm_close(maker);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, others_work_while_one_does_not_read);
}

int main(void)
{
	return hc_suite_run("case_074_among_others", add, hc_long() ? 800 : 60);
}
