/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank, as small as it can honestly be.
 *
 *     rank SOCKET TABLE RANK [HOLD-MS]
 *
 * It joins by a rank table, takes and returns a reference for one collective operation after the
 * other, prints what it hears about the other ranks, and leaves in order when it is told to by
 * SIGTERM. A real program would run its all-reduce between hcomm_op_begin and hcomm_op_end; this
 * one waits HOLD-MS there (default 5), listening for events meanwhile.
 *
 * What to look at: a refused hcomm_op_begin holds no reference, so there is nothing to return. A
 * domain that is over says so by HCOMM_E_GONE; one that lost a member by HCOMM_E_DAMAGED, and
 * then nothing but leaving (or, in later versions, a change of members) makes sense.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <hcomm/hcomm.h>

#define JOIN_LIMIT_MS 60000
#define LISTEN_MS     100
#define BYTES         (1u << 20)

static volatile sig_atomic_t stop_wanted;

static void on_term(int sig)
{
	(void)sig;
	stop_wanted = 1;
}

static void on_event(const struct hcomm_event *event, void *context)
{
	const uint32_t *own = context;

	if (event->code == HCOMM_EV_RANK_DIED)
		printf("rank %u heard: rank %u, pid %u on node %s, exited\n", *own, event->rank,
		       event->pid, event->node);
	else if (event->code == HCOMM_EV_DOMAIN_ACTIVE)
		printf("rank %u heard: the domain is ACTIVE again\n", *own);
	else
		printf("rank %u heard: %s\n", *own, event->text);
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", what, hcomm_error_name(error), hcomm_last_error());
	return 1;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Listen for `ms`. Events that come end a hcomm_dispatch early, so there may be several. */
static void listen_for(struct hcomm_session *session, long ms)
{
	long end = now_ms() + ms, left = ms;

	while (left > 0 && hcomm_dispatch(session, (int)left) >= 0)
		left = end - now_ms();
}

/* Operations until the domain refuses them or we are told to stop. Returns the refusal, or 0. */
static int operate(struct hcomm_session *session, hcomm_domain domain, uint32_t rank, long hold_ms,
		   unsigned long *count)
{
	struct hcomm_op op;
	int r;

	while (!stop_wanted) {
		r = hcomm_op_begin(domain, HCOMM_OP_ALL_REDUCE, BYTES, 0, &op);
		if (r)
			return r;
		listen_for(session, hold_ms); /* the collective operation would be here */
		r = hcomm_op_end(&op);
		if (r)
			return r;
		if (!(*count)++)
			printf("rank %u has run its first operation\n", rank);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_status status = HCOMM_INIT(struct hcomm_status);
	struct sigaction act = {.sa_handler = on_term};
	struct hcomm_session *session;
	hcomm_domain domain;
	unsigned long count = 0;
	uint32_t rank;
	long hold_ms;
	int r;

	if (argc < 4) {
		fprintf(stderr, "usage: rank SOCKET TABLE RANK [HOLD-MS]\n");
		return 2;
	}
	args.socket = argv[1];
	rank = (uint32_t)strtoul(argv[3], NULL, 10);
	hold_ms = argc > 4 ? strtol(argv[4], NULL, 10) : 5;
	setvbuf(stdout, NULL, _IOLBF, 0);

	r = hcomm_open(&args, &session);
	if (r)
		return fail("open", r);
	r = hcomm_join_table(session, argv[2], rank, NULL, JOIN_LIMIT_MS, &domain);
	if (r) {
		fail("join", r);
		hcomm_close(session);
		return 1;
	}
	sigaction(SIGTERM, &act, NULL); /* until here SIGTERM just ends the process */
	hcomm_on_event(session, on_event, &rank);
	hcomm_status_get(domain, &status);
	printf("rank %u of %u is in domain %016llx, epoch %u\n", rank, status.nranks,
	       (unsigned long long)status.id, status.epoch);

	r = operate(session, domain, rank, hold_ms, &count);
	if (r)
		printf("rank %u ran %lu operations, then: %s: %s\n", rank, count,
		       hcomm_error_name(r), hcomm_last_error());
	while (!stop_wanted && r != HCOMM_E_GONE)
		listen_for(session, LISTEN_MS);
	r = hcomm_leave(domain, HCOMM_DEFAULT);
	printf("rank %u has left after %lu operations: %s\n", rank, count, hcomm_error_string(r));
	hcomm_close(session);
	return r && r != HCOMM_E_GONE;
}
