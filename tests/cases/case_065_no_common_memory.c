/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 65: same machine, no common memory.
 *
 * Containers of one host shared its name and not its /dev/shm, or the reverse: the fast way was
 * chosen and failed, or was never used. Here memory is no name in a directory: the daemon hands
 * descriptors over its socket, and each process touches what it was given before it has a rank. So
 * two ranks in mount namespaces of their own, each with an empty /dev/shm, have the local way as
 * two that share it do, and the list of channels says so. Needs root.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "apitest.h"
#include "suite.h"

enum { LIMIT = 20000, APART = 3 };

static struct hc_node node;
static struct hcomm_root_info root;
static bool apart;

static bool own_memory(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m");
}

/* Rank 0 says a word, rank 1 says it back; each tells when it has a channel and when it is over. */
static bool talk(hcomm_domain d, uint32_t rank, int out)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);
	char word[16] = "touched";
	uint32_t bytes = sizeof(word);
	hcomm_channel ch;

	a.peer = !rank;
	if (hcomm_channel_acquire(d, &a, LIMIT, &ch))
		return false;
	if (!rank && hcomm_channel_send(ch, word, sizeof(word), LIMIT))
		return false;
	memset(word, 0, sizeof(word));
	if (hcomm_channel_recv(ch, word, &bytes, LIMIT) || strcmp(word, "touched"))
		return false;
	if (rank && hcomm_channel_send(ch, word, sizeof(word), LIMIT))
		return false;
	hc_tell(out, "c", 1);
	return true;
}

static int run_rank(void *arg, int in, int out)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	struct hcomm_session *s;
	hcomm_domain d;
	char go;

	if (apart && !own_memory())
		return APART;
	args.socket = node.socket;
	if (hcomm_open(&args, &s) || hcomm_join(s, &root, 2, rank, rank, NULL, LIMIT, &d) ||
	    !talk(d, rank, out)) {
		fprintf(stderr, "rank %u: %s\n", rank, hcomm_last_error());
		return 1;
	}
	if (read(in, &go, 1) != 1)
		return 1;
	hcomm_close(s);
	return 0;
}

static void two_ranks(void)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	static struct hc_child rank[2];
	static struct hc_run run;
	struct hcomm_session *s;
	unsigned i;
	char byte;

	args.socket = node.socket;
	works(hcomm_open(&args, &s));
	works(hcomm_root_info(s, 2, NULL, &root));
	for (i = 0; i < 2; i++)
		hc_spawn(&rank[i], run_rank, (void *)(uintptr_t)i);
	for (i = 0; i < 2; i++)
		hc_child_read(&rank[i], &byte, 1, LIMIT);
	hc_ctl(&run, &node, "channel", "list", "--no-headings", "-o", "TYPE", (char *)NULL);
	ck_assert_str_eq(run.out, "shm\n");
	for (i = 0; i < 2; i++)
		hc_child_tell(&rank[i], "g", 1);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(hc_child_wait(&rank[i], LIMIT), 0);
	hcomm_close(s);
}

START_TEST(each_has_a_shm_of_its_own)
{
	if (geteuid()) {
		printf("SKIP: a mount namespace needs root\n");
		return;
	}
	apart = true;
	hc_node_start(&node, 2, NULL);
	two_ranks();
	hc_node_end(&node);
}
END_TEST

START_TEST(they_share_it)
{
	apart = false;
	hc_node_start(&node, 2, NULL);
	two_ranks();
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, each_has_a_shm_of_its_own);
	tcase_add_test(t, they_share_it);
}

int main(void)
{
	return hc_suite_run("case_065_no_common_memory", add, 60);
}
