/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_close: nothing is left, also of what was in flight; and dlclose after it leaves no library.
 */
#include "apitest.h"

#include "hcomm/loader.h"

static bool silent_join(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	return f->head.type == HC_MSG_join_root ? true : fake_good(c, f, got, arg);
}

START_TEST(null_is_fine)
{
	hcomm_close(NULL);
}
END_TEST

START_TEST(domains_end_with_their_session)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	struct hcomm_op op, running;
	uint32_t rank;

	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 8, 0, &running));
	hcomm_close(s);
	refused(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 8, 0, &op), HCOMM_E_GONE, "handle");
	refused(hcomm_op_end(&running), HCOMM_E_GONE, "handle");
	refused(hcomm_rank(d, &rank), HCOMM_E_GONE, "handle");
	refused(hcomm_leave(d, 100), HCOMM_E_GONE, "handle");
	/* and a handle of the past is none of the next session */
	s = open_session();
	ck_assert_uint_ne(join_root(s, 2, 0), d);
	refused(hcomm_rank(d, &rank), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(what_was_started_and_not_ended_is_freed)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, silent_join);
	struct hcomm_root_info info;
	unsigned fds;
	hcomm_domain d;

	works(hcomm_root_info(s, 2, NULL, &info));
	fds = hc_count_fds();
	ck_assert_int_ge(hcomm_fd(s), 0);
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS);
	hcomm_close(s);
	ck_assert_uint_lt(hc_count_fds(), fds);
	fake_end(&f);
}
END_TEST

START_TEST(dlclose_leaves_no_mapping_descriptor_or_thread)
{
	unsigned fds, threads = hc_count_threads();
	struct hcomm_loader l;
	struct hcomm_session *s;
	struct fake f = {0};
	char path[1200], copy[256], *text, *at;
	FILE *out;

	/* a copy: this test is itself linked with the library */
	fake_start(&f, fake_good, NULL);
	hc_program("libhcomm.so.1", path, sizeof(path));
	snprintf(copy, sizeof(copy), "%s/libother.so.1", f.dir);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s", "");
	out = fopen(copy, "we");
	hc_want(out);
	fclose(out);
	{
		char *const argv[] = {(char[]){"/bin/cp"}, path, copy, NULL};
		static struct hc_run r;

		ck_assert_int_eq(hc_run(&r, 5000, argv), 0);
	}
	fds = hc_count_fds();
	works(hcomm_load(&l, copy, HCOMM_VERSION));
	ck_assert_uint_gt(hc_count_maps("libother.so.1"), 0);
	ck_assert_int_eq(l.open(NULL, &s), 0);
	ck_assert_int_eq(l.ping(s, 5000), 0);
	l.close(s);
	ck_assert_int_ne(l.open(NULL, NULL), 0); /* an error text was used, too */
	hcomm_unload(&l);
	ck_assert_uint_eq(hc_count_maps("libother.so.1"), 0);
	ck_assert_uint_eq(hc_count_fds(), fds);
	ck_assert_uint_eq(hc_count_threads(), threads);
	text = hc_read_file("/proc/self/maps");
	at = strstr(text, "(deleted)");
	ck_assert_msg(!at || strstr(text, "memfd:fake"), "left: %s", text);
	free(text);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_close", null_is_fine, domains_end_with_their_session,
      what_was_started_and_not_ended_is_freed, dlclose_leaves_no_mapping_descriptor_or_thread)
