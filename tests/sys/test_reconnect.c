/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is killed, and two thousand processes come back to the next one at the same moment.
 *
 * Each is a rank of one domain, and asks all the time while there is no daemon; so the first thing
 * that the new one meets is all of them. Each has to be served, within a bound, with its rank back
 * in the domain that never stopped being ACTIVE. The one cause for which one may be refused is
 * clients_max: then the refusal names it, and as many are served as it says.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"
#include "users.h"

enum { MANY = 2000, FEW = 300, PARTS = 20, DEVICES = 8, WAIT_MS = 120000, BOUND_MS = 10000 };

struct shared {
	struct hcomm_root_info info;
	uint32_t clients;
	_Atomic uint32_t joined, served, refused, odd, leave;
	_Atomic uint64_t last_ns; /* when the last one was served */
	char odd_text[600];       /* what one of the odd ones heard */
};

static struct hc_node node;
static struct shared *sh;
static struct hc_child part[PARTS];
static int go[2], leave[2]; /* the writing end closes: now */

/* ---- one of the many ---- */

/* Thousands that look at a flag would leave nobody else any time: they sleep in a read. */
static void sleep_until_closed(int fd)
{
	char c;

	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
}

static void hear_odd(int r)
{
	if (!atomic_fetch_add(&sh->odd, 1))
		snprintf(sh->odd_text, sizeof(sh->odd_text), "%s: %s", hcomm_error_name(r),
			 hcomm_last_error());
}

/* A refusal is counted once for a process, and it asks again until it is served. */
static void come_back(struct hcomm_session *s)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	bool refused = false;
	int r;

	while ((r = hcomm_ping(s, WAIT_MS)) == HCOMM_E_LIMIT) {
		if (!strstr(hcomm_last_error(), "clients_max"))
			break;
		if (!refused)
			atomic_fetch_add(&sh->refused, 1);
		refused = true;
		if (atomic_load(&sh->leave))
			return;
		nanosleep(&pause, NULL); /* as the library cannot know when there is room */
	}
	if (r)
		hear_odd(r);
	atomic_store(&sh->last_ns, hc_now_ns());
	atomic_fetch_add(&sh->served, 1);
}

static int be_client(uint32_t rank)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	struct hcomm_op op;
	hcomm_domain d;

	config.shared = 1;
	args.timeout_ms = WAIT_MS; /* all begin at once, too, and that is not the matter here */
	if (hcomm_open(&args, &s) ||
	    hcomm_join(s, &sh->info, sh->clients, rank, rank % DEVICES, &config, WAIT_MS, &d)) {
		hear_odd(-1);
		return 1;
	}
	atomic_fetch_add(&sh->joined, 1);
	sleep_until_closed(go[0]);
	come_back(s);
	/* the domain is whole: an operation is begun and ended */
	if (hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 8, 0, &op) || hcomm_op_end(&op))
		hear_odd(-1);
	sleep_until_closed(leave[0]);
	hcomm_close(s);
	return 0;
}

/* A part forks its share, so that no process has pipes to all. */
static int be_part(void *arg, int in, int out)
{
	const uint32_t number = *(const uint32_t *)arg;
	uint32_t i, bad = 0;
	int status;

	(void)in;
	(void)out;
	close(go[1]);
	close(leave[1]);
	for (i = number; i < sh->clients; i += PARTS) {
		switch (fork()) {
		case 0: _Exit(be_client(i));
		case -1: hc_fail("fork: %s", strerror(errno));
		default: break;
		}
	}
	while (wait(&status) > 0)
		bad += status != 0;
	return bad != 0;
}

/* ---- the story ---- */

static uint32_t crowd(void)
{
	return hc_patience(1) > 1 ? FEW : MANY; /* a sanitizer's processes are large */
}

static bool all_joined(void *arg)
{
	(void)arg;
	return atomic_load(&sh->joined) == sh->clients || atomic_load(&sh->odd);
}

static bool all_heard(void *arg)
{
	const uint32_t *want = arg;

	return atomic_load(&sh->served) >= *want || atomic_load(&sh->odd);
}

static bool all_answered(void *arg)
{
	(void)arg;
	return atomic_load(&sh->served) + atomic_load(&sh->refused) >= sh->clients ||
	       atomic_load(&sh->odd);
}

static void start(uint32_t clients)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	static uint32_t number[PARTS];
	struct hcomm_session *s;
	uint32_t i;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(sh, MAP_FAILED);
	sh->clients = clients;
	hc_node_start(&node, DEVICES, "clients_max = 4096");
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	config.name = "crowd";
	ck_assert_int_eq(hcomm_root_info(s, clients, &config, &sh->info), 0);
	hcomm_close(s);
	ck_assert(!pipe2(go, O_CLOEXEC) && !pipe2(leave, O_CLOEXEC));
	for (i = 0; i < PARTS; i++) {
		number[i] = i;
		hc_spawn(&part[i], be_part, &number[i]);
	}
	hc_await("all have joined", all_joined, NULL, WAIT_MS);
	ck_assert_msg(!atomic_load(&sh->odd), "%s", sh->odd_text);
}

static void end(void)
{
	uint32_t i;

	atomic_store(&sh->leave, 1);
	close(leave[1]);
	for (i = 0; i < PARTS; i++)
		ck_assert_int_eq(hc_child_wait(&part[i], WAIT_MS), 0);
	hc_node_end(&node);
	munmap(sh, sizeof(*sh));
}

/* All ask at once, and only then there is a daemon again. Returns when it was started. */
static uint64_t restart(void)
{
	uint64_t began;

	hc_node_kill(&node);
	close(go[1]); /* all ask, and there is no daemon */
	began = hc_now_ns();
	hc_node_run(&node);
	return began;
}

static void want_domain_whole(uint32_t ranks)
{
	struct hcomm_view_domain d;

	ck_assert(hc_ask_domain("crowd", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	ck_assert_uint_eq(d.arrived, ranks);
	ck_assert_uint_eq(d.epoch, 1);
}

START_TEST(all_come_back_at_once)
{
	struct hcomm_view_member m;
	struct hcomm_view_status st;
	uint64_t began;
	uint32_t n = crowd(), i;

	start(n);
	began = restart();
	hc_await("all are served", all_heard, &n, WAIT_MS);
	ck_assert_msg(!atomic_load(&sh->odd), "%u of %u: %s", atomic_load(&sh->odd), n,
		      sh->odd_text);
	ck_assert_uint_eq(atomic_load(&sh->refused), 0);
	printf("  %u clients are back %.2f s after the start\n", n,
	       (double)(atomic_load(&sh->last_ns) - began) / 1e9);
	ck_assert_uint_lt((atomic_load(&sh->last_ns) - began) / 1000000u, hc_patience(BOUND_MS));
	hc_ask_status(&st);
	ck_assert_uint_ge(st.clients, n);
	ck_assert_uint_eq(st.malformed, 0);
	want_domain_whole(n);
	for (i = 0; i < n; i += n / 10) {
		ck_assert(hc_ask_member("crowd", i, &m));
		ck_assert_str_eq(m.state, "ready");
	}
	end();
}
END_TEST

/* The next daemon has room for half of them. */
START_TEST(only_clients_max_refuses)
{
	char value[16];
	uint32_t n = FEW, room = FEW / 2, served, refused;

	start(n);
	snprintf(value, sizeof(value), "%u", room);
	hc_node_kill(&node);
	hc_conf_set(&node, "clients_max", value);
	close(go[1]); /* all ask, and there is no daemon */
	hc_node_launch(&node);
	hc_await("each is served or refused", all_answered, NULL, WAIT_MS);
	served = atomic_load(&sh->served);
	refused = atomic_load(&sh->refused);
	ck_assert_msg(!atomic_load(&sh->odd), "%u: %s", atomic_load(&sh->odd), sh->odd_text);
	ck_assert_msg(served == room, "%u served, %u refused, room for %u", served, refused, room);
	ck_assert_uint_eq(refused, n - room);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, all_come_back_at_once);
	tcase_add_test(t, only_clients_max_refuses);
}

int main(void)
{
	return hc_suite_run("reconnect", add, 240);
}
