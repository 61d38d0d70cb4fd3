/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts and the loading of files.
 *
 * Every kind of the table is reached here by an input that deserves it, so a kind that nothing
 * can give any more is noticed. The rest: texts are clean, positions are those a person would
 * count, both forms hold every field, and a file is read whole or refused by its own reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "address.h"
#include "bind.h"
#include "harness.h"
#include "jsonpos.h"
#include "judge.h"

/* ---- every kind ---- */

static enum hc_verdict_kind by_text(enum reader reader, const char *good, const char *from,
				    const char *to)
{
	char *text = edited(good, from, to);

	judge(reader, text);
	free(text);
	let_go();
	return v.nwarnings ? v.warnings[0].kind : v.kind;
}

static enum hc_verdict_kind by_bind(bool device)
{
	const uint32_t devices[] = {4, 7};
	const struct hc_addr have = {.family = 4, .bytes = {192, 0, 2, 200}};

	ck_assert_int_eq(judge(TABLE, table_1), 0);
	if (device)
		hc_bind_device(roster, 1, devices, 2, &v);
	else
		hc_bind_address(roster, 1, &have, 1, &v);
	let_go();
	return v.kind;
}

static enum hc_verdict_kind by_bytes(const char *bytes, size_t max)
{
	struct hc_jsontext in;

	hc_verdict_init(&v);
	ck_assert_int_eq(hc_jsontext_set(bytes, strlen(bytes), max, &in, &v), HC_FILE_REFUSED);
	return v.kind;
}

static enum hc_verdict_kind by_path(const char *path)
{
	struct hc_jsontext in;

	hc_verdict_init(&v);
	ck_assert_int_lt(hc_jsontext_load(path, 1 << 20, &in, &v), 0);
	return v.kind;
}

/* An input of this kind, and what it gave. No default: a new kind needs an input. */
static enum hc_verdict_kind provoke(enum hc_verdict_kind kind)
{
	switch (kind) {
	case HC_V_NONE: return by_text(TABLE, table_1, "node_a", "node_c");
	case HC_V_BAD_ADDRESS: return by_text(TABLE, table_1, "192.0.2.11", "-.-.-.-");
	case HC_V_MISSING_ADDRESS: return by_text(TABLE, table_1, "192.0.2.11", "");
	case HC_V_DUPLICATE_ADDRESS: return by_text(TABLE, table_1, "192.0.2.11", "192.0.2.10");
	case HC_V_DUPLICATE_RANK: return by_text(TABLE, table_1, "'rank_id':'1'", "'rank_id':'0'");
	case HC_V_DUPLICATE_DEVICE:
		return by_text(TABLE, table_1, "'device_id':'1'", "'device_id':'0'");
	case HC_V_DUPLICATE_SERVER: return by_text(TABLE, table_1, "node_b", "node_a");
	case HC_V_DUPLICATE_KEY: return by_text(TABLE, table_1, "{", "{'status':'completed',");
	case HC_V_DUPLICATE_SUPER_DEVICE: return by_text(TABLE, table_12, "'11'", "'10'");
	case HC_V_MISSING_SUPER_DEVICE: return by_text(TABLE, table_12, "'11'", "''");
	case HC_V_RANK_GAP: return by_text(TABLE, table_1, "'rank_id':'3'", "'rank_id':'4'");
	case HC_V_CROSSED_RANKS:
		return by_text(TABLE, table_1,
			       "'rank_id':'1','host_port':'60001'}]},\n"
			       " {'server_id':'node_b','device':[\n"
			       "  {'device_id':'0','device_ip':'198.51.100.10','rank_id':'2'}",
			       "'rank_id':'2'}]},{'server_id':'node_b','device':["
			       "{'device_id':'0','device_ip':'198.51.100.10','rank_id':'1'}");
	case HC_V_COUNT_MISMATCH: return by_text(TABLE, table_1, "'2'", "'7'");
	case HC_V_MISSING_FIELD: return by_text(TABLE, table_1, "'status'", "'state'");
	case HC_V_WRONG_TYPE: return by_text(TABLE, table_1, "'2'", "2");
	case HC_V_BAD_NUMBER: return by_text(TABLE, table_1, "'2'", "'two'");
	case HC_V_BAD_PORT: return by_text(TABLE, table_1, "17000", "0");
	case HC_V_BAD_STATUS: return by_text(TABLE, table_1, "completed", "done");
	case HC_V_BAD_VERSION: return by_text(TABLE, table_1, "1.0", "9.0");
	case HC_V_BAD_PROTOCOL: return by_text(TOPOLOGY, topo_2, "HCCS", "NVLINK");
	case HC_V_MIXED_FAMILY: return by_text(TABLE, table_1, "192.0.2.11", "fd00::1");
	case HC_V_EMPTY: return by_text(TABLE, table_1, "node_a", "");
	case HC_V_EMPTY_FILE: return by_bytes("", 100);
	case HC_V_TOO_LONG: return by_bytes("{}", 1);
	case HC_V_OUT_OF_RANGE: return by_text(TABLE, table_2, "'local_id':1", "'local_id':99");
	case HC_V_UNKNOWN_SERVER:
		return by_text(TABLE, table_12, "[{'server_id':'sc'}]", "[{'server_id':'sx'}]");
	case HC_V_UNKNOWN_PEER: return by_text(TOPOLOGY, topo_2, "'local_b':1", "'local_b':5");
	case HC_V_SELF_EDGE: return by_text(TOPOLOGY, topo_2, "'local_b':1", "'local_b':0");
	case HC_V_PORT_USED_TWICE: return by_text(TOPOLOGY, topo_2, "0/4", "1/0");
	case HC_V_SYNTAX: return by_text(TABLE, table_1, ",", ",,");
	case HC_V_NOT_READY: return by_text(TABLE, table_1, "completed", "initializing");
	case HC_V_DEVICE_NOT_HERE: return by_bind(true);
	case HC_V_ADDRESS_NOT_HERE: return by_bind(false);
	case HC_V_UNREADABLE: return by_path("/nonexistent/table.json");
	case HC_V_LOW_PORT: return by_text(TABLE, table_1, "17000", "170");
	case HC_V_COUNT: break;
	}
	return HC_V_COUNT;
}

START_TEST(every_kind_of_the_table_is_reached)
{
	static const char *const names[] = {
#define X(sym, name, text) name,
		HC_VERDICT_KINDS(X)
#undef X
	};
	int k;

	for (k = HC_V_NONE; k < HC_V_COUNT; k++) {
		ck_assert_msg(provoke((enum hc_verdict_kind)k) == (enum hc_verdict_kind)k,
			      "wanted %s: %s: %s", hc_verdict_name((enum hc_verdict_kind)k),
			      hc_verdict_name(v.kind), v.message);
		if (k == HC_V_NONE)
			continue;
		ck_assert_str_eq(hc_verdict_name((enum hc_verdict_kind)k), names[k - 1]);
		ck_assert_str_ne(hc_verdict_about((enum hc_verdict_kind)k), "");
		ck_assert_str_ne(k == HC_V_LOW_PORT ? v.warnings[0].message : v.message, "");
	}
}
END_TEST

START_TEST(kinds_have_names_of_their_own)
{
	int a, b;

	for (a = 0; a < HC_V_COUNT; a++)
		for (b = a + 1; b < HC_V_COUNT; b++)
			ck_assert_str_ne(hc_verdict_name((enum hc_verdict_kind)a),
					 hc_verdict_name((enum hc_verdict_kind)b));
}
END_TEST

/* ---- binding ---- */

START_TEST(binding_names_what_is_here)
{
	const uint32_t devices[] = {4, 7};
	const struct hc_addr have[] = {{.family = 4, .bytes = {192, 0, 2, 200}},
				       {.family = 4, .bytes = {192, 0, 2, 11}}};

	ck_assert_int_eq(judge(TABLE, table_1), 0);
	ck_assert_int_eq(hc_bind_device(roster, 1, devices, 2, &v), HC_FILE_REFUSED);
	ck_assert_str_eq(v.message, "table says device 1 for rank 1; devices here are 4, 7");
	ck_assert_int_eq(hc_bind_device(roster, 1, devices, 0, &v), HC_FILE_REFUSED);
	ck_assert_int_eq(hc_bind_device(roster, 4, devices, 2, &v), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_OUT_OF_RANGE);
	ck_assert_int_eq(hc_bind_address(roster, 1, have, 1, &v), HC_FILE_REFUSED);
	ck_assert_str_eq(v.message, "rank 1: table 192.0.2.11, this device has 192.0.2.200");
	ck_assert_int_eq(hc_bind_address(roster, 1, have, 2, &v), 0);
	let_go();
}
END_TEST

/* ---- clean texts ---- */

START_TEST(escaping_cleans_and_settles)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{"plain", "plain"},
		{"a\nb\x1b[0m", "a\\x0ab\\x1b[0m"},
		{"\x7f", "\\x7f"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xff\xc3", "\\xff\\xc3"},
		{"\xc0\xaf", "\\xc0\\xaf"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
		{"\xe2\x80\xae", "\\xe2\\x80\\xae"},
		{"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"back\\slash", "back\\slash"},
	};
	char once[64], twice[64];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		hc_escape(once, sizeof(once), t[i].in, strlen(t[i].in));
		ck_assert_str_eq(once, t[i].out);
		hc_escape(twice, sizeof(twice), once, strlen(once));
		ck_assert_str_eq(twice, once);
	}
}
END_TEST

START_TEST(escaping_cuts_at_characters_and_keeps_to_its_size)
{
	char buf[16];
	size_t size, n;

	for (size = 0; size <= 12; size++) {
		memset(buf, '#', sizeof(buf));
		n = hc_escape(buf, size, "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 12);
		ck_assert(!size || (n < size && buf[n] == '\0' && strlen(buf) == n));
		ck_assert_int_eq(buf[size], '#');
	}
	hc_escape(buf, 9, "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 10);
	ck_assert_str_eq(buf, "\xc3\xbc\xc3\xbc...");
}
END_TEST

/* ---- both forms ---- */

START_TEST(a_line_has_file_place_kind_and_message)
{
	char line[1024];

	judge(TABLE, "{'version':'1.0',\n 'status':'done'}");
	hc_verdict_line(&v, "a\nb.json", line, sizeof(line));
	ck_assert_str_eq(line,
			 "a\\x0ab.json:2:11: bad-status: status is \"done\"; \"completed\" or "
			 "\"initializing\" is wanted");
	ck_assert_uint_eq(hc_verdict_line(&v, "x", line, 10), 9);
	ck_assert_uint_eq(strlen(line), 9);
	ck_assert_int_eq(judge(TABLE, table_1), 0);
	hc_verdict_line(&v, "t.json", line, sizeof(line));
	ck_assert_str_eq(line, "t.json: ok: version 1.0, 4 ranks on 2 servers, IPv4");
	let_go();
}
END_TEST

static const char *field(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "(none)";
}

START_TEST(json_has_every_field)
{
	char *text = edited(table_1, "'60000'", "'80'");
	json_t *o;

	judge(TABLE, "{'version':'1.0',\n 'status':'done'}");
	o = hc_verdict_json(&v, "\xff.json");
	ck_assert_str_eq(field(o, "file"), "\\xff.json");
	ck_assert_str_eq(field(o, "verdict"), "reject");
	ck_assert_str_eq(field(o, "kind"), "bad-status");
	ck_assert_str_eq(field(o, "path"), "status");
	ck_assert_str_eq(field(o, "found"), "done");
	ck_assert_str_eq(field(o, "wanted"), "completed or initializing");
	ck_assert_str_eq(field(o, "message"), v.message);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "line")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "column")), 11);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "schema_version")), 1);
	json_decref(o);

	judge(TABLE, "{'status':'initializing'}");
	o = hc_verdict_json(&v, "f");
	ck_assert_str_eq(field(o, "verdict"), "not-ready");
	json_decref(o);

	ck_assert_int_eq(judge(TABLE, text), 0);
	o = hc_verdict_json(&v, "f");
	ck_assert_str_eq(field(o, "verdict"), "accept");
	ck_assert(json_is_null(json_object_get(o, "kind")));
	ck_assert_uint_eq(json_array_size(json_object_get(o, "warnings")), 1);
	ck_assert_str_eq(field(json_array_get(json_object_get(o, "warnings"), 0), "kind"),
			 "low-port");
	json_decref(o);
	free(text);
	let_go();
}
END_TEST

/* ---- positions ---- */

START_TEST(positions_are_those_of_values)
{
	static const char text[] = "{ \"a\" : [ 1, {\"x\":\"]}\\\"\", \"b\\u0063\" : true},\n"
				   " [[]],\t\"\xc3\xbc\", -2.5e3 ], \"z\":{}\n}";
	static const struct {
		const char *path;
		bool found;
		char at;
		uint32_t line, column;
	} t[] = {
		{"", true, '{', 1, 1},         {"a", true, '[', 1, 9},
		{"a[0]", true, '1', 1, 11},    {"a[1]", true, '{', 1, 14},
		{"a[1].x", true, '"', 1, 19},  {"a[1].bc", true, 't', 1, 39},
		{"a[2]", true, '[', 2, 2},     {"a[2][0]", true, '[', 2, 3},
		{"a[3]", true, '"', 2, 8},     {"a[4]", true, '-', 2, 13},
		{"z", true, '{', 2, 27},       {"a[5]", false, '[', 1, 9},
		{"a[1].q", false, '{', 1, 14}, {"q.r[3]", false, '{', 1, 1},
		{"a[0].x", false, '1', 1, 11}, {"a[2][0][0]", false, '[', 2, 3},
		{"z.k", false, '{', 2, 27},
	};
	uint32_t line, column;
	size_t i, at;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ck_assert_msg(hc_jsonpos_find(text, sizeof(text) - 1, t[i].path, &at) == t[i].found,
			      "%s", t[i].path);
		ck_assert_msg(text[at] == t[i].at, "%s: at %zu", t[i].path, at);
		hc_jsonpos_line(text, sizeof(text) - 1, at, &line, &column);
		ck_assert_msg(line == t[i].line && column == t[i].column, "%s: %u:%u", t[i].path,
			      line, column);
	}
}
END_TEST

START_TEST(positions_in_broken_text_stay_inside)
{
	static const char *const texts[] = {
		"",   "{",           "{\"a",     "{\"a\"",          "{\"a\":", "{\"a\":[", "[",
		"\"", "{\"a\":\"\\", "{\"\\u00", "{\"a\":{\"b\":1", "]]]]",    "{\"a\" 1}"};
	static const char *const paths[] = {
		"a", "a[0]", "a[7].b", "[0]", "[", "[9999999999999999999999]", "..", "a.b"};
	size_t i, k, at;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
			hc_jsonpos_find(texts[i], strlen(texts[i]), paths[k], &at);
			ck_assert_uint_le(at, strlen(texts[i]));
		}
	}
}
END_TEST

/* ---- loading ---- */

static char dir[128];

static const char *in_dir(const char *name)
{
	static char path[256];

	if (!*dir)
		hc_tempdir(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int load(const char *path, size_t max)
{
	struct hc_jsontext text;
	int r;

	hc_verdict_init(&v);
	r = hc_jsontext_load(path, max, &text, &v);
	if (!r)
		hc_jsontext_fini(&text);
	return r;
}

/* root reads everything, so the forbidden file is tried as nobody, in a child */
static int forbidden_child(const char *path)
{
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 77;
	return load(path, 100) == -EACCES && strstr(v.message, "Permission denied") ? 0 : 1;
}

START_TEST(absent_forbidden_and_directory_are_told_apart)
{
	const char *path = in_dir("secret.json");
	int status;
	pid_t pid;

	ck_assert_int_eq(load("/nonexistent/t.json", 100), -ENOENT);
	ck_assert_ptr_nonnull(strstr(v.message, "No such file or directory"));
	ck_assert_int_eq(load("/", 100), -EISDIR);
	ck_assert_ptr_nonnull(strstr(v.message, "Is a directory"));
	hc_write_file(path, "{}");
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(forbidden_child(path));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(the_limit_is_tested_before_reading)
{
	const char *path = in_dir("large.json");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	/* a terabyte with nothing in it: reading it would be noticed */
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	ck_assert_int_eq(load(path, 64 << 20), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_TOO_LONG);
	ck_assert_ptr_nonnull(strstr(v.message, "1099511627776 bytes"));
	hc_write_file(path, "{}");
	ck_assert_int_eq(load(path, 2), 0);
	ck_assert_int_eq(load(path, 1), HC_FILE_REFUSED);
}
END_TEST

START_TEST(a_pipe_is_read_to_its_end_and_no_further_than_the_limit)
{
	struct hc_jsontext text;
	int p[2];

	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(write(p[1], "{\"a\":1}", 7), 7);
	close(p[1]);
	hc_verdict_init(&v);
	ck_assert_int_eq(hc_jsontext_load_fd(p[0], 100, &text, &v), 0);
	ck_assert_uint_eq(text.len, 7);
	hc_jsontext_fini(&text);
	close(p[0]);
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(write(p[1], "{\"a\":1}", 7), 7);
	close(p[1]);
	ck_assert_int_eq(hc_jsontext_load_fd(p[0], 6, &text, &v), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_TOO_LONG);
	close(p[0]);
	ck_assert_int_eq(hc_jsontext_load_fd(p[0], 6, &text, &v), -EBADF);
	ck_assert_int_eq(v.kind, HC_V_UNREADABLE);
}
END_TEST

START_TEST(a_pipe_without_a_writer_does_not_hold_us)
{
	const char *path = in_dir("fifo");

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(load(path, 100), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_EMPTY_FILE);
}
END_TEST

START_TEST(a_memfd_is_read_from_its_start)
{
	int fd = memfd_create("table", MFD_CLOEXEC);
	struct hc_jsontext text;
	char *s = quoted(table_1);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, s, strlen(s)), (ssize_t)strlen(s));
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	hc_verdict_init(&v);
	ck_assert_int_eq(hc_jsontext_load_fd(fd, 1 << 20, &text, &v), 0);
	ck_assert_int_eq(hc_ranktable_read(&text, &roster, &v), 0);
	hc_jsontext_fini(&text);
	close(fd);
	free(s);
	let_go();
}
END_TEST

/* ---- replaced while loading ---- */

struct swap {
	char path[256];
	const char *texts[2];
	atomic_bool done;
};

static void *keep_replacing(void *arg)
{
	struct swap *s = arg;
	int i;

	for (i = 0; i < 1000; i++)
		hc_replace_file(s->path, s->texts[i & 1]);
	atomic_store(&s->done, true);
	return NULL;
}

/* Old or new, never a mixture: each has its own whole text, and both are good tables. */
START_TEST(a_file_replaced_while_loading_is_seen_whole)
{
	char *two = quoted(table_12);
	char *one = quoted(table_1);
	struct swap s = {.texts = {one, two}};
	struct hc_jsontext text;
	unsigned loads = 0;
	pthread_t thread;

	snprintf(s.path, sizeof(s.path), "%s", in_dir("live.json"));
	hc_write_file(s.path, one);
	ck_assert_int_eq(pthread_create(&thread, NULL, keep_replacing, &s), 0);
	while (!atomic_load(&s.done) || !loads) {
		hc_verdict_init(&v);
		ck_assert_msg(!hc_jsontext_load(s.path, 1 << 20, &text, &v), "%s", v.message);
		ck_assert((text.len == strlen(one) && !memcmp(text.data, one, text.len)) ||
			  (text.len == strlen(two) && !memcmp(text.data, two, text.len)));
		ck_assert_msg(!hc_ranktable_read(&text, &roster, &v), "%s", v.message);
		hc_jsontext_fini(&text);
		let_go();
		loads++;
	}
	pthread_join(thread, NULL);
	free(one);
	free(two);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("verdict");
	TCase *t = tcase_create("verdict");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, every_kind_of_the_table_is_reached);
	tcase_add_test(t, kinds_have_names_of_their_own);
	tcase_add_test(t, binding_names_what_is_here);
	tcase_add_test(t, escaping_cleans_and_settles);
	tcase_add_test(t, escaping_cuts_at_characters_and_keeps_to_its_size);
	tcase_add_test(t, a_line_has_file_place_kind_and_message);
	tcase_add_test(t, json_has_every_field);
	tcase_add_test(t, positions_are_those_of_values);
	tcase_add_test(t, positions_in_broken_text_stay_inside);
	tcase_add_test(t, absent_forbidden_and_directory_are_told_apart);
	tcase_add_test(t, the_limit_is_tested_before_reading);
	tcase_add_test(t, a_pipe_is_read_to_its_end_and_no_further_than_the_limit);
	tcase_add_test(t, a_pipe_without_a_writer_does_not_hold_us);
	tcase_add_test(t, a_memfd_is_read_from_its_start);
	tcase_add_test(t, a_file_replaced_while_loading_is_seen_whole);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
