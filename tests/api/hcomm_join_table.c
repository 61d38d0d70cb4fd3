/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_join_table: the file goes over as contents; a table that is not ready is waited for.
 */
#include "apitest.h"
#include "failing.h"

#include <grp.h>
#include <pthread.h>
#include <sys/stat.h>

#define INITIALIZING                                                                               \
	"{\"version\":\"1.0\",\"status\":\"initializing\",\"server_count\":\"1\","                 \
	"\"server_list\":[]}\n"

static void in_dir(const struct hc_node *n, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", n->dir, name);
}

START_TEST(ranks_of_a_table_form_a_domain)
{
	struct hcomm_session *s[4] = {0};
	hcomm_domain d[4];
	char path[256];
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, 4, NULL);
	in_dir(&n, "table", path, sizeof(path));
	hc_table_write(path, 4, 1);
	for (i = 0; i < 4; i++) {
		s[i] = open_session();
		refused(hcomm_join_table(s[i], path, i, NULL, HCOMM_START, &d[i]),
			HCOMM_E_IN_PROGRESS, "event");
	}
	await_active(s, d, 4);
	ck_assert_uint_eq(id_of(d[0]), id_of(d[3]));
	close_all(s, 4);
	hc_node_end(&n);
}
END_TEST

START_TEST(each_fault_of_the_file_has_its_own_text)
{
	char path[256], fifo[256], big[256];
	struct hcomm_session *s;
	struct hc_node n;
	hcomm_domain d = 3;

	hc_node_start(&n, 1, NULL);
	s = open_session();
	in_dir(&n, "table", path, sizeof(path));
	refused(hcomm_join_table(s, path, 0, NULL, 1000, &d), HCOMM_E_NOT_FOUND, path);
	refused(hcomm_join_table(s, path, 0, NULL, 1000, &d), HCOMM_E_NOT_FOUND, "No such file");
	refused(hcomm_join_table(s, n.dir, 0, NULL, 1000, &d), HCOMM_E_INVALID, "Is a directory");
	in_dir(&n, "fifo", fifo, sizeof(fifo));
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	refused(hcomm_join_table(s, fifo, 0, NULL, 1000, &d), HCOMM_E_INVALID, "regular file");
	in_dir(&n, "big", big, sizeof(big));
	hc_write_file(big, "{");
	ck_assert_int_eq(truncate(big, (64 << 20) + 1), 0);
	refused(hcomm_join_table(s, big, 0, NULL, 1000, &d), HCOMM_E_LIMIT, "67108865 bytes");
	hc_write_file(path, "{\n \"version\": \"1.0\",,\n}");
	refused(hcomm_join_table(s, path, 0, NULL, 1000, &d), HCOMM_E_INVALID, "2");
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), path));
	hc_write_file(path, "");
	refused(hcomm_join_table(s, path, 0, NULL, 1000, &d), HCOMM_E_INVALID, path);
	ck_assert_uint_eq(d, 0);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

static int join_unreadable(void *arg, int in, int out)
{
	struct hcomm_session *s = open_session();
	hcomm_domain d;
	int r;

	(void)in;
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return 1;
	r = hcomm_join_table(s, arg, 0, NULL, 1000, &d);
	hc_tell(out, &r, sizeof(r));
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "Permission denied"));
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), arg));
	hcomm_close(s);
	return 0;
}

START_TEST(a_file_that_may_not_be_read_is_told_apart_from_an_absent_one)
{
	struct hc_child child;
	struct fake f = {0};
	char path[256];
	int r;

	if (getuid()) {
		puts("SKIP: only root can become somebody else");
		return;
	}
	fake_start(&f, fake_good, NULL);
	ck_assert_int_eq(chmod(f.dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/table", f.dir);
	hc_table_write(path, 1, 1);
	ck_assert_int_eq(chmod(path, 0600), 0);
	hc_spawn(&child, join_unreadable, path);
	hc_child_read(&child, &r, sizeof(r), 5000);
	ck_assert_int_eq(r, HCOMM_E_PERMISSION);
	ck_assert_int_eq(hc_child_wait(&child, 5000), 0);
	fake_end(&f);
}
END_TEST

START_TEST(a_table_that_never_gets_ready_is_not_ready_after_the_time_given)
{
	struct hcomm_session *s;
	uint64_t began, took;
	char path[256];
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 1, NULL);
	s = open_session();
	in_dir(&n, "table", path, sizeof(path));
	hc_write_file(path, INITIALIZING);
	began = hc_now_ms();
	refused(hcomm_join_table(s, path, 0, NULL, 1200, &d), HCOMM_E_NOT_READY, path);
	took = hc_now_ms() - began;
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "1.2 s"));
	ck_assert_uint_ge(took, 1190);
	ck_assert_uint_le(took, hc_patience(2500));
	refused(hcomm_join_table(s, path, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS, "event");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

struct waiting { /* shared with the fake */
	_Atomic unsigned asked;
};

/* NOT_READY until the file says otherwise: here its size does. */
static bool by_size(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct waiting *w = arg;
	struct hc_m_join_table m;
	struct stat st = {0};

	if (f->head.type != HC_MSG_join_table)
		return fake_good(c, f, got, NULL);
	/* a small table stands in the message, a large one in a descriptor */
	hc_want(!hc_decode(&hc_desc_join_table, 1, f->body, f->body_len, &m));
	hc_want(m.table.len || (got >= 0 && !fstat(got, &st)));
	w->asked++;
	if (m.table.len + (size_t)st.st_size < 200)
		return fake_error(c, f, HC_E_NOT_READY, "initializing", HC_NONE);
	return fake_good(c, f, got, NULL);
}

static bool asked_twice(void *ctx)
{
	return ((struct waiting *)ctx)->asked >= 2;
}

struct job {
	struct waiting *w;
	const char *path;
};

static void *replace_when_asked(void *arg)
{
	struct job *j = arg;
	char beside[300];

	hc_await("the table was looked at", asked_twice, j->w, 20000);
	snprintf(beside, sizeof(beside), "%s.new", j->path);
	hc_table_write(beside, 4, 1);
	ck_assert_int_eq(rename(beside, j->path), 0);
	return NULL;
}

/* The scheduler's way: a new file is renamed over the old one. */
START_TEST(a_table_that_is_replaced_is_taken_at_once)
{
	struct waiting *w =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fake f = {0};
	struct job job = {.w = w};
	struct hcomm_session *s;
	pthread_t thread;
	char path[256];
	uint64_t began;
	hcomm_domain d;

	fake_start(&f, by_size, w);
	s = open_session();
	snprintf(path, sizeof(path), "%s/table", f.dir);
	hc_write_file(path, INITIALIZING);
	job.path = path;
	began = hc_now_ms();
	ck_assert_int_eq(pthread_create(&thread, NULL, replace_when_asked, &job), 0);
	works(hcomm_join_table(s, path, 0, NULL, 30000, &d));
	ck_assert_uint_le(hc_now_ms() - began, hc_patience(5000));
	pthread_join(thread, NULL);
	hcomm_close(s);
	fake_end(&f);
	munmap(w, 4096);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d;

	refused(hcomm_join_table(NULL, "/x", 0, NULL, 1000, &d), HCOMM_E_INVALID, "session");
	refused(hcomm_join_table(s, NULL, 0, NULL, 1000, &d), HCOMM_E_INVALID, "path");
	refused(hcomm_join_table(s, "", 0, NULL, 1000, &d), HCOMM_E_INVALID, "path");
	refused(hcomm_join_table(s, "/x", 0, NULL, 1000, NULL), HCOMM_E_INVALID, "domain");
	refused(hcomm_join_table(s, "/x", 0, NULL, -3, &d), HCOMM_E_INVALID, "timeout_ms is -3");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_nothing_is_left)
{
	struct hcomm_session *s;
	struct fake f;
	char path[256];
	hcomm_domain d;
	unsigned fds;
	int n, r;

	s = open_fake(&f, NULL);
	snprintf(path, sizeof(path), "%s/table", f.dir);
	hc_table_write(path, 2, 1);
	fds = hc_count_fds();
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_join_table(s, path, 0, NULL, 5000, &d);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
		works(hcomm_ping(s, 5000));
		ck_assert_uint_eq(hc_count_fds(), fds);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_join_table", ranks_of_a_table_form_a_domain, each_fault_of_the_file_has_its_own_text,
      a_file_that_may_not_be_read_is_told_apart_from_an_absent_one,
      a_table_that_never_gets_ready_is_not_ready_after_the_time_given,
      a_table_that_is_replaced_is_taken_at_once, refusals,
      the_nth_allocation_fails_and_nothing_is_left)
