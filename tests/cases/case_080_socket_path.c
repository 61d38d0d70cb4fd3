/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 80: a socket path that the kernel cannot hold.
 *
 * Beyond 107 bytes a path was cut in silence: two daemons shared one name, or one program bound
 * another name than it later removed. Here 107 bytes work from end to end, and 108 or 200 are
 * refused by the daemon, the library and the command line alike, with the length found and the
 * length allowed. Nothing appears under a cut name.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hcomm/hcomm.h"
#include "raw.h"
#include "suite.h"

static struct hc_run run;
static struct hc_node node;
static char dir[160];

/* A path of exactly `length` bytes in the node's socket directory. */
static const char *path_of(size_t length)
{
	static char path[256];
	size_t n = (size_t)snprintf(path, sizeof(path), "%s/", dir);

	hc_want(n < length && length < sizeof(path));
	memset(path + n, 's', length - n);
	path[length] = '\0';
	return path;
}

/* The daemon's configuration names such a path. */
static void prepare(size_t length)
{
	char *text, *at, *rest, *out;

	hc_node_prepare(&node, 1, NULL, NULL);
	snprintf(dir, sizeof(dir), "%s/run", node.dir);
	text = hc_read_file(node.conf);
	hc_want(text != NULL);
	at = strstr(text, "\nsocket = ") + 1;
	rest = strchr(at, '\n');
	out = malloc(strlen(text) + 300);
	sprintf(out, "%.*ssocket = %s%s", (int)(at - text), text, path_of(length), rest);
	hc_write_file(node.conf, out);
	free(out);
	free(text);
	if (length < sizeof(node.socket))
		snprintf(node.socket, sizeof(node.socket), "%s", path_of(length));
}

static unsigned sockets(void)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir(dir);

	hc_want(d != NULL);
	while ((e = readdir(d)))
		n += e->d_type == DT_SOCK;
	closedir(d);
	return n;
}

START_TEST(a_path_of_107_bytes_works_end_to_end)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;
	struct stat st;

	prepare(107);
	hc_node_run(&node);
	ck_assert_int_eq(stat(path_of(107), &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	args.socket = path_of(107);
	ck_assert_int_eq(hcomm_open(&args, &s), 0);
	ck_assert_int_eq(hcomm_ping(s, 2000), 0);
	hcomm_close(s);
	setenv("HCOMM_SOCKET", path_of(107), 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	hcomm_close(s);
	hc_ctl(&run, &node, "status", (char *)NULL);
	ck_assert_int_le(run.status, 1);
	ck_assert_ptr_nonnull(strstr(run.out, path_of(107)));
	hc_ctl(&run, &node, "--socket", path_of(107), "version", (char *)NULL);
	ck_assert_int_eq(run.status, 0);
	hc_node_end(&node);
}
END_TEST

static const size_t longs[] = {108, 200};

static void want_lengths(const char *text, size_t length)
{
	char found[16];

	snprintf(found, sizeof(found), "%zu", length);
	ck_assert_msg(strstr(text, found) && strstr(text, "107"), "wanted %s and 107 in: %s", found,
		      text);
}

START_TEST(longer_ones_are_refused_by_all_three)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;
	size_t length = longs[_i];

	prepare(length);
	ck_assert_int_ne(hc_raw_daemon(&run, &node, 10000), 0);
	ck_assert_int_lt(run.status, 124);
	want_lengths(run.err, length);
	ck_assert_uint_eq(sockets(), 0); /* also none under a cut name */

	args.socket = path_of(length);
	ck_assert_int_eq(hcomm_open(&args, &s), HCOMM_E_INVALID);
	want_lengths(hcomm_last_error(), length);
	setenv("HCOMM_SOCKET", path_of(length), 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), HCOMM_E_INVALID);
	want_lengths(hcomm_last_error(), length);

	strcpy(node.socket, "/nowhere");
	ck_assert_int_eq(hc_ctl(&run, &node, "--socket", path_of(length), "status", (char *)NULL),
			 2);
	want_lengths(run.err, length);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_path_of_107_bytes_works_end_to_end);
	tcase_add_loop_test(t, longer_ones_are_refused_by_all_three, 0, 2);
}

int main(void)
{
	return hc_suite_run("case_080_socket_path", add, 60);
}
