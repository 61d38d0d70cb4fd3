/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 71: a length field that claims gigabytes.
 *
 * Where the length is trusted the daemon asks for the memory and falls over: any program that
 * talks to the wrong socket does it. Here the connection that said so is closed at once, nobody
 * else notices, the daemon does not grow, and the log has a line with the sender's pid and uid,
 * not one for each attempt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

#define FILE_OF_LENGTHS "tests/cases/open/c071-lengths.hex"

enum { EACH = 100, LENGTHS_MAX = 16 };

static struct hc_node node;

static unsigned read_lengths(uint32_t out[LENGTHS_MAX])
{
	char *text = hc_read_file(FILE_OF_LENGTHS), *line, *rest = text;
	unsigned n = 0;

	hc_want(text != NULL);
	while ((line = strsep(&rest, "\n"))) {
		if (*line && *line != '#' && n < LENGTHS_MAX)
			out[n++] = (uint32_t)strtoul(line, NULL, 16);
	}
	free(text);
	hc_want(n >= 4);
	return n;
}

/* A header of a hello with that length, and one byte. */
static size_t absurd(uint32_t length, uint8_t out[17])
{
	static const uint8_t head[17] = {0, 0, 0, 0, 0, 1, 0, HC_MSG_hello, 0, 0, 0, 9};

	memcpy(out, head, sizeof(head));
	out[0] = (uint8_t)(length >> 24);
	out[1] = (uint8_t)(length >> 16);
	out[2] = (uint8_t)(length >> 8);
	out[3] = (uint8_t)length;
	return sizeof(head);
}

/* Before hello, or as a session. */
static void try_one(uint32_t length, bool greeted)
{
	uint8_t bytes[17];
	size_t n = absurd(length, bytes);
	int fd = greeted ? hc_raw_session(node.socket) : hc_raw_connect(node.socket);

	if (!hc_raw_send(fd, bytes, n))
		hc_fail("the daemon closed before it was asked");
	hc_raw_want_closed(fd);
	close(fd);
}

START_TEST(its_connection_is_closed_and_nothing_else_happens)
{
	static struct hc_rank other[2];
	uint32_t lengths[LENGTHS_MAX];
	unsigned n = read_lengths(lengths), lines;
	unsigned long rss, vm;
	uint64_t began, seconds;
	char sender[64];

	hc_node_start(&node, 2, "log_rate = 1");
	hc_ranks_start(other, 2, "bystander");
	hc_rank_must(&other[0], &(struct hc_order){.what = HC_DO_RUN}, NULL);
	for (unsigned i = 0; i < EACH; i++)
		try_one(lengths[i % n], i % 2); /* what is allocated once is there now */
	rss = hc_proc_kib(node.pid, "VmRSS");
	vm = hc_proc_kib(node.pid, "VmSize");
	began = hc_now_ms();
	for (unsigned i = 0; i < n * EACH; i++)
		try_one(lengths[i % n], false);
	ck_assert_uint_le(hc_proc_kib(node.pid, "VmSize"), vm + hc_growth_kib(65536));
	for (unsigned i = 0; i < n * EACH; i++)
		try_one(lengths[i % n], true); /* a session also has an arena, mapped for a while */
	ck_assert(hc_node_alive(&node));
	ck_assert_uint_le(hc_proc_kib(node.pid, "VmRSS"), rss + hc_growth_kib(1024));

	seconds = (hc_now_ms() - began) / 1000 + 2;
	snprintf(sender, sizeof(sender), "client pid %d uid %u: a frame whose length",
		 (int)getpid(), (unsigned)getuid());
	lines = hc_log_count(&node, sender);
	ck_assert_uint_ge(lines, 1);
	ck_assert_uint_le(lines, seconds + 2); /* log_rate = 1, also in the warm-up */

	began = __atomic_load_n(other[0].count, __ATOMIC_RELAXED);
	hc_rank_must(&other[1], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_rank_must(&other[0], &(struct hc_order){.what = HC_DO_STOP}, NULL);
	ck_assert_uint_gt(__atomic_load_n(other[0].count, __ATOMIC_RELAXED), began);
	hc_ranks_quit(other, 2);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, its_connection_is_closed_and_nothing_else_happens);
}

int main(void)
{
	return hc_suite_run("case_071_absurd_length", add, 60);
}
