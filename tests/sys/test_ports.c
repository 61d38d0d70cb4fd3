/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of two checks that use the same fixed port (hc_ports_own): as root both have it at once,
 * each in a network namespace of its own; as another user the second waits for the first to end.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "pairs.h"
#include "suite.h"

enum { PORT = 25900, LIMIT = 20000 };

static uid_t uid;

/* Takes the port, says so, and keeps it until it is told to end. */
static int use_port(void *arg, int in, int out)
{
	char x = 1;

	(void)arg;
	if (uid && setuid(uid))
		return 2;
	hc_ports_own("test_ports");
	hc_port_hold("127.0.0.1", PORT, false);
	hc_tell(out, &x, 1);
	hc_hear(in, &x, 1, LIMIT);
	return 0;
}

static void start(struct hc_child *c)
{
	hc_spawn(c, use_port, NULL);
}

static void end(struct hc_child *c)
{
	char x = 1;

	hc_child_tell(c, &x, 1);
	ck_assert_int_eq(hc_child_wait(c, LIMIT), 0);
}

static void await_port(struct hc_child *c)
{
	char x;

	hc_child_read(c, &x, 1, LIMIT);
}

START_TEST(root_has_it_twice)
{
	struct hc_child c[2];

	if (geteuid()) {
		printf("SKIP: a network namespace: needs root\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		start(&c[i]);
		await_port(&c[i]);
	}
	for (int i = 0; i < 2; i++)
		end(&c[i]);
}
END_TEST

/* Does one of them say something within the time? One that ends without a word does, too. */
static struct hc_child *who_has_it(struct hc_child *c, int n, unsigned ms)
{
	struct pollfd p[3];

	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = c[i].pid ? c[i].in : -1, .events = POLLIN};
	if (poll(p, (nfds_t)n, (int)hc_patience(ms)) <= 0)
		return NULL;
	for (int i = 0; i < n; i++)
		if (p[i].revents)
			return &c[i];
	return NULL;
}

START_TEST(others_wait_for_each_other)
{
	struct hc_child c[3], *has;

	uid = geteuid() ? 0 : 65534;
	for (int i = 0; i < 3; i++)
		start(&c[i]);
	for (int i = 0; i < 3; i++) {
		has = who_has_it(c, 3, LIMIT);
		ck_assert_ptr_nonnull(has);
		await_port(has);
		ck_assert_ptr_null(who_has_it(c, 3, 50));
		end(has);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, root_has_it_twice);
	tcase_add_test(t, others_wait_for_each_other);
}

int main(void)
{
	return hc_suite_run("ports", add, 60);
}
