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
#include <unistd.h>

#include "hosts.h"
#include "suite.h"

#define BEAT_MS 200u
#define TOP     "heartbeat_interval_ms = 200"

static struct hc_hosts h;

/* Sockets that the daemon holds; for a while it also keeps what its clients left. */
static unsigned sockets_of(const struct hc_node *n)
{
	char path[64], target[64];
	unsigned count = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)n->pid);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		target[len > 0 ? len : 0] = '\0';
		count += !strncmp(target, "socket:", 7);
	}
	closedir(d);
	return count;
}

static bool as_before(void *before)
{
	return sockets_of(&h.a) <= *(const unsigned *)before;
}

/* After some flaps the path is held out of use for a while, but beats run. */
static bool beats_flow(void *node)
{
	const char *there = node == &h.a ? "hB a0 " : "hA b0 ";

	return hc_path_is(node, there, "normal") || hc_path_is(node, there, "held out");
}

START_TEST(heartbeats_flow_again_each_time)
{
	unsigned i, before, times = hc_long() ? 500 : 15;

	if (!hc_hosts_prepare(&h, TOP, TOP))
		return;
	hc_hosts_join(&h);
	hc_node_run(&h.a);
	hc_node_run(&h.b);
	hc_path_await(&h.a, "hB", "normal", 5000);
	before = sockets_of(&h.a);
	for (i = 0; i < times; i++) {
		hc_ip("link del a0\n"); /* takes the other end along */
		hc_hosts_join(&h);
		hc_await("heartbeats", beats_flow, &h.a, 3 * BEAT_MS + 1000);
		hc_await("heartbeats there", beats_flow, &h.b, 3 * BEAT_MS + 1000);
	}
	if (!hc_wait_until(as_before, &before, 15000))
		hc_fail("%u sockets, before it were %u", sockets_of(&h.a), before);
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
