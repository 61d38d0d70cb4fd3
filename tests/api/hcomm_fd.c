/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_fd: a host that polls is woken for every event, also for one that another call has read.
 */
#include "apitest.h"

#include <fcntl.h>
#include <poll.h>

static unsigned nseen;

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)e;
	(void)context;
	nseen++;
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* A ping is answered, then an event comes in a packet of its own; `subscribe`: the event first. */
static bool event_after(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_event e = {.kind = HC_W_event_code_RANK_LEFT};

	if (f->head.type == HC_MSG_subscribe)
		return fake_event(c, &e) && fake_good(c, f, got, arg);
	if (f->head.type == HC_MSG_ping)
		return fake_good(c, f, got, arg) && fake_event(c, &e);
	return fake_good(c, f, got, arg);
}

START_TEST(an_event_makes_it_readable_until_it_was_delivered)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, event_after);
	int fd = hcomm_fd(s);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hcomm_fd(s), fd);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	works(hcomm_on_event(s, on_event, NULL));
	ck_assert(!readable(fd, 0));
	works(hcomm_ping(s, 5000));
	ck_assert(readable(fd, 5000));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 1);
	ck_assert(!readable(fd, 0));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(an_event_that_another_call_has_read_rings_too)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, event_after);
	int fd = hcomm_fd(s);

	works(hcomm_on_event(s, on_event, NULL));
	works(hcomm_subscribe(s, 0, 1)); /* reads the event on its way to the answer */
	ck_assert(readable(fd, 0));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 1);
	ck_assert(!readable(fd, 0));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(it_stays_the_same_over_a_new_connection)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, event_after);
	int fd = hcomm_fd(s);

	works(hcomm_on_event(s, on_event, NULL));
	fake_kill(&f);
	ck_assert(readable(fd, 5000)); /* the loss is news, too */
	refused(hcomm_dispatch(s, 0), HCOMM_E_PEER_CLOSED, f.socket);
	ck_assert_int_eq(hcomm_fd(s), -1);
	fake_again(&f);
	works(hcomm_ping(s, 5000));
	ck_assert_int_eq(hcomm_fd(s), fd);
	ck_assert(readable(fd, 5000));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 1);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(no_session_has_none)
{
	ck_assert_int_eq(hcomm_fd(NULL), -1);
}
END_TEST

TESTS("hcomm_fd", an_event_makes_it_readable_until_it_was_delivered,
      an_event_that_another_call_has_read_rings_too, it_stays_the_same_over_a_new_connection,
      no_session_has_none)
