/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 40: busy processors are mistaken for a dead link.
 *
 * On loaded hosts the monitor was not scheduled, and declared its peers dead; sites raised the
 * limits, or gave the daemon a priority that starved others. Here four busy loops run on each
 * processor for a few seconds, in the long form for ten minutes with disk writes after that, and no
 * path may be called unstable. A time in which a daemon itself did not run may be said, of itself.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eye.h"
#include "pairs.h"
#include "suite.h"

enum { PORT = 24500, LOOPS_MAX = 256 };

static struct hc_node n[2];
static struct hc_child loop[LOOPS_MAX];

static int spin(void *arg, int in, int out)
{
	volatile unsigned x = 0;

	(void)arg;
	(void)in;
	(void)out;
	while (getppid() != 1)
		for (unsigned i = 0; i < 10000000; i++)
			x = x + 1;
	return 0;
}

static int write_disk(void *arg, int in, int out)
{
	static char block[1 << 20];
	int fd = open(arg, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)in;
	(void)out;
	while (fd >= 0 && getppid() != 1)
		for (unsigned i = 0; i < 64; i++)
			if (pwrite(fd, block, sizeof(block), (off_t)i << 20) < 0)
				return 1;
	return 0;
}

static void want_no_alarm(void)
{
	static const unsigned alarms[] = {HC_W_event_code_PATH_UNSTABLE, HC_W_event_code_PATH_DOWN,
					  HC_W_event_code_NODE_UNREACHABLE,
					  HC_W_event_code_DAEMON_DOWN};
	struct hcomm_view_path p;
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 4; k++)
			ck_assert_msg(!hc_journal_count(&n[i], alarms[k], NULL), "%s",
				      hc_journal_last(&n[i], alarms[k]));
		ck_assert(hc_row_path(&n[i], "127.0.0.", &p));
		ck_assert_str_eq(p.state, "normal");
		ck_assert_uint_eq(p.interval_ms, 200);
		ck_assert_uint_gt(p.rtt_p99_us, 0); /* how near it was is there to be seen */
	}
}

START_TEST(no_path_is_accused)
{
	const unsigned loops = 4 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	const uint64_t beats = hc_long() ? 3000 : 18;
	char *conf = hc_read_file("tests/cases/open/c040-heartbeat-200ms.conf"), path[160];
	struct hc_child disk;
	unsigned i;

	ck_assert_ptr_nonnull(conf);
	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, conf);
		hc_node_run(&n[i]);
	}
	free(conf);
	hc_await_path(&n[0], "127.0.0.2:", "normal", 10000);
	hc_await_path(&n[1], "127.0.0.1:", "normal", 10000);
	for (i = 0; i < loops && i < LOOPS_MAX; i++)
		hc_spawn(&loop[i], spin, NULL);
	hc_await_sent(&n[0], "127.0.0.2:", beats, 700000);
	want_no_alarm();
	if (hc_long()) {
		snprintf(path, sizeof(path), "%s/block", n[0].dir);
		hc_spawn(&disk, write_disk, path);
		hc_await_sent(&n[0], "127.0.0.2:", 300, 100000);
		hc_child_kill(&disk);
		want_no_alarm();
	}
	for (i = 0; i < loops && i < LOOPS_MAX; i++)
		hc_child_kill(&loop[i]);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, no_path_is_accused);
}

int main(void)
{
	hc_ports_own("case_040_busy_processors");
	return hc_suite_run("case_040_busy_processors", add, hc_long() ? 850 : 60);
}
