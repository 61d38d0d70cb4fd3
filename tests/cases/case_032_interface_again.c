/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 32: an interface is removed and added again at once.
 *
 * The name is the same, the kernel's index is another one: a daemon that remembers the old one
 * sends into the void for ever, or loses descriptors with each cycle. Here heartbeats flow again
 * after each one, and the number of descriptors stays what it was.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "hosts.h"
#include "suite.h"

#define BEAT_MS 200u

static struct hc_hosts h;

static unsigned fds_of(const struct hc_node *n)
{
	char path[64];
	unsigned count = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)n->pid);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static bool fds_are_as_before(void *before)
{
	return fds_of(&h.a) == *(const unsigned *)before;
}

START_TEST(heartbeats_flow_again_each_time)
{
	unsigned i, before, times = hc_long() ? 500 : 15;

	if (!hc_hosts_prepare(&h, "heartbeat_interval_ms = 200"))
		return;
	hc_hosts_join(&h);
	hc_node_run(&h.a);
	hc_node_run(&h.b);
	hc_path_await(&h.a, "hB", "normal", 5000);
	before = fds_of(&h.a);
	for (i = 0; i < times; i++) {
		hc_ip("link del a0\n"); /* takes the other end along */
		hc_hosts_join(&h);
		hc_path_await(&h.a, "hB", "normal", 3 * BEAT_MS + 1000);
		hc_path_await(&h.b, "hA", "normal", 3 * BEAT_MS + 1000);
	}
	hc_await("as many descriptors as before", fds_are_as_before, &before, 15000);
	hc_hosts_end(&h);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, heartbeats_flow_again_each_time);
}

int main(void)
{
	return hc_suite_run("case 32", add, hc_long() ? 900 : 60);
}
