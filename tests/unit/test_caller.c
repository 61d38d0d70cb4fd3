/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a socket, when the daemon has hardly any descriptor left.
 *
 * To know a process takes descriptors. With too few of them, however many these are, it is told
 * that, and never that it is gone, for it lives; nor is it let in as somebody without a start time.
 */
#include "caller.h"
#include "suite.h"
#include "wire.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(without_descriptors_nobody_is_taken_for_dead)
{
	const struct hc_caller_rules rules = {.own = geteuid(), .overflow = (uid_t)-2};
	const uint64_t started = hc_caller_started((uint32_t)getpid());
	unsigned full = 0, known = 0, spare;
	struct rlimit limit;
	int pair[2], first;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	first = dup(pair[0]); /* the lowest number that is free */
	ck_assert_int_ge(first, 0);
	close(first);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (spare = 0; spare < 5; spare++) {
		struct hc_caller c;
		char why[300];
		int r;

		limit.rlim_cur = (rlim_t)first + spare;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		r = hc_caller_identify(pair[0], -1, &rules, &c, why, sizeof(why));
		if (r) {
			ck_assert_msg(r == HC_E_RESOURCE_EXHAUSTED, "%u free: %s", spare, why);
			ck_assert_ptr_nonnull(strstr(why, "no free descriptor"));
			ck_assert_int_eq(c.pidfd, -1);
			full++;
			continue;
		}
		ck_assert_uint_eq(c.cred.started, started);
		close(c.pidfd);
		known++;
	}
	ck_assert_uint_gt(full, 1); /* none, and one */
	ck_assert_uint_gt(known, 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, without_descriptors_nobody_is_taken_for_dead);
}

int main(void)
{
	return hc_suite_run("caller", add, 20);
}
