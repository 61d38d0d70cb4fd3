/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables under strain: bytes that are not JSON, texts without end, tables of the largest
 * size, no memory; and the hash, by which nodes tell whether they read the same table.
 *
 * What means the same has the same hash, and each field that changes the meaning changes it.
 */
#include <errno.h>
#include <time.h>
#include "judge.h"

#define KNOWN_HASH_0 14779166628944125365u
#define KNOWN_HASH_1 17146994658070614795u

/* ---- odd input ---- */

START_TEST(odd_bytes_are_refused_with_a_place)
{
	static const struct {
		const char *text;
		size_t len;
		enum hc_verdict_kind kind;
		uint32_t line, column;
		const char *word;
	} t[] = {
		{"{\"a\":\"x\0y\"}", 11, HC_V_SYNTAX, 1, 0, ""},
		{"{\"a\":\0}", 7, HC_V_SYNTAX, 1, 6, ""},
		{"{\"a\":\"\\u0000\"}", 14, HC_V_SYNTAX, 1, 0, ""},
		{"\xef\xbb\xbf{}", 5, HC_V_SYNTAX, 1, 1, "byte order mark"},
		{"{\n\"a\":\"\xff\"}", 10, HC_V_SYNTAX, 2, 0, ""},
		{"{\n\"a\":\"\xc0\x80\"}", 11, HC_V_SYNTAX, 2, 0, ""},
		{"{\n \"a\": tru}", 12, HC_V_SYNTAX, 2, 7, "tru"},
		{"{\"a\":01}", 8, HC_V_SYNTAX, 1, 0, ""},
		{"{\"a\":1,}", 8, HC_V_SYNTAX, 1, 8, "comma"},
		{"{'a':1}", 7, HC_V_SYNTAX, 1, 2, ""},
		{"   \n ", 5, HC_V_SYNTAX, 2, 2, "end of file"},
		{"{\"a\":\"", 6, HC_V_SYNTAX, 1, 7, "end of file"},
		{"{} {}", 5, HC_V_SYNTAX, 1, 4, "after the end"},
		{"{\"k\":1,\"k\":2}", 13, HC_V_DUPLICATE_KEY, 1, 8, "k"},
		{"{\"k\":1e999}", 11, HC_V_BAD_NUMBER, 1, 6, "too large"},
		{"", 0, HC_V_EMPTY_FILE, 1, 1, "empty"},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ck_assert_int_eq(judge_bytes(TABLE, t[i].text, t[i].len), HC_FILE_REFUSED);
		ck_assert_msg(v.kind == t[i].kind, "%zu %s: %s", i, t[i].text, v.message);
		ck_assert_msg(v.line == t[i].line, "%s: line %u", t[i].text, v.line);
		ck_assert_msg(!t[i].column || v.column == t[i].column, "%s: column %u: %s",
			      t[i].text, v.column, v.message);
		ck_assert_msg(strstr(v.message, t[i].word) != NULL, "%s: %s", t[i].text, v.message);
	}
}
END_TEST

START_TEST(nesting_has_a_bound)
{
	size_t n = 1 << 20, i;
	char *deep = malloc(n);

	memset(deep, '[', n);
	ck_assert_int_eq(judge_bytes(TABLE, deep, n), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_SYNTAX);
	for (i = 0; i + 5 < n; i += 5)
		memcpy(deep + i, "{\"a\":", 5);
	ck_assert_int_eq(judge_bytes(TABLE, deep, n), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_SYNTAX);
	free(deep);
}
END_TEST

START_TEST(texts_of_a_megabyte_are_cut_in_messages)
{
	static const char head[] = "{\"version\":\"";
	size_t n = 1 << 20;
	char *text = malloc(n + 64);

	memcpy(text, head, sizeof(head) - 1);
	memset(text + sizeof(head) - 1, 'v', n);
	memcpy(text + sizeof(head) - 1 + n, "\"}", 2);
	ck_assert_int_eq(judge_bytes(TABLE, text, sizeof(head) + 1 + n), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_BAD_VERSION);
	ck_assert_ptr_nonnull(strstr(v.message, "..."));
	ck_assert_ptr_nonnull(strstr(v.message, "1.0, 1.2 and 2.0"));
	free(text);
}
END_TEST

START_TEST(control_bytes_of_a_file_never_reach_a_message)
{
	ck_assert_int_eq(judge(TABLE, "{'version':'\\u001b[2J\\u202e\\u0085\\n'}"),
			 HC_FILE_REFUSED);
	ck_assert_ptr_nonnull(strstr(v.message, "\\x1b[2J\\xe2\\x80\\xae\\xc2\\x85\\x0a"));
	ck_assert_ptr_nonnull(strstr(v.found, "\\x1b"));
	for (const char *p = v.message; *p; p++)
		ck_assert_int_ge((unsigned char)*p, 0x20);
}
END_TEST

/* ---- large tables ---- */

static size_t big_table(char **out, unsigned ranks, unsigned per_server)
{
	size_t size = (size_t)ranks * 96 + 4096 + (size_t)ranks / per_server * 64, n;
	char *s = malloc(size);
	unsigned i;

	ck_assert_ptr_nonnull(s);
	n = (size_t)snprintf(s, size,
			     "{\"version\":\"1.0\",\"status\":\"completed\",\"server_list\":[");
	for (i = 0; i < ranks; i++) {
		if (i % per_server == 0)
			n += (size_t)snprintf(s + n, size - n,
					      "%s{\"server_id\":\"s%u\",\"device\":[",
					      i ? "]},\n" : "", i / per_server);
		n += (size_t)snprintf(s + n, size - n,
				      "%s{\"device_id\":\"%u\",\"device_ip\":\"10.%u.%u.%u\","
				      "\"rank_id\":\"%u\"}",
				      i % per_server ? ",\n" : "", i % per_server, (i >> 16) + 1,
				      (i >> 8) & 255, i & 255, i);
	}
	n += (size_t)snprintf(s + n, size - n, "]}]}");
	ck_assert_uint_lt(n, size);
	*out = s;
	return n;
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#ifdef __SANITIZE_ADDRESS__
#define SLOWNESS 20
#elif defined(__SANITIZE_THREAD__)
#define SLOWNESS 30
#else
#define SLOWNESS 1
#endif

START_TEST(four_thousand_ranks_are_checked_in_a_tenth_of_a_second)
{
	char *text;
	size_t n = big_table(&text, 4096, 8);
	double start = cpu_seconds();

	ck_assert_msg(!judge_bytes(TABLE, text, n), "%s", v.message);
	ck_assert_double_lt(cpu_seconds() - start, 0.1 * SLOWNESS);
	ck_assert_uint_eq(roster->nranks, 4096);
	ck_assert_uint_eq(roster->nservers, 512);
	free(text);
	let_go();
}
END_TEST

/* Sorted badly, 16 times the ranks would cost 256 times as much. */
START_TEST(the_cost_grows_no_faster_than_the_table)
{
	char *text;
	size_t n = big_table(&text, HC_TABLE_RANKS_MAX, 8);
	double start = cpu_seconds();

	ck_assert_msg(!judge_bytes(TABLE, text, n), "%s", v.message);
	ck_assert_double_lt(cpu_seconds() - start, 3.0 * SLOWNESS);
	ck_assert_uint_eq(roster->nranks, HC_TABLE_RANKS_MAX);
	free(text);
	n = big_table(&text, HC_TABLE_RANKS_MAX, 32768);
	ck_assert_msg(!judge_bytes(TABLE, text, n), "%s", v.message);
	ck_assert_uint_eq(roster->nservers, 2);
	free(text);
	let_go();
}
END_TEST

START_TEST(one_rank_more_than_the_limit_is_refused)
{
	char *text;
	size_t n = big_table(&text, HC_TABLE_RANKS_MAX + 1, 8);

	ck_assert_int_eq(judge_bytes(TABLE, text, n), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_OUT_OF_RANGE);
	ck_assert_ptr_nonnull(strstr(v.message, "65536"));
	ck_assert_str_eq(v.path, "server_list[8192].device[0]");
	free(text);
}
END_TEST

/* ---- hash ---- */

static void hash_of(const char *text, uint64_t hash[2])
{
	ck_assert_msg(!judge(TABLE, text), "%s", v.message);
	hash[0] = roster->hash[0];
	hash[1] = roster->hash[1];
	ck_assert_uint_ne(hash[0], hash[1]);
}

START_TEST(another_spelling_has_the_same_hash)
{
	static const char again[] =
		"{ 'server_list' : [ {'device':[ {'rank_id':'2','device_id':'0', 'unknown':[1,2],"
		"'device_port':'16666', 'device_ip':'198.51.100.10'},{'device_port':'17000',"
		"'device_ip':'198.51.100.11','device_id':'1','rank_id':'3'}],'server_id':'"
		"node\\u005fb'},"
		"{'server_id':'node_a','container_ip':'192.0.2.9','device':["
		"{'device_id':'1','device_ip':'192.0.2.11','rank_id':'1','host_port':'60001'},"
		"{'device_id':'0','device_ip':'192.0.2.10','rank_id':'0','host_port':'60000'}],"
		"'host_ip':'192.0.2.1'} ], 'status':'completed','version':'1.0' }";
	uint64_t a[2], b[2], rank[4];
	uint32_t i;

	hash_of(table_1, a);
	for (i = 0; i < 4; i++)
		rank[i] = roster->ranks[i].hash;
	hash_of(again, b);
	ck_assert_uint_eq(a[0], b[0]);
	ck_assert_uint_eq(a[1], b[1]);
	ck_assert_str_eq(roster->servers[0].name, "node_a");
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(rank[i], roster->ranks[i].hash);
	let_go();
}
END_TEST

START_TEST(ipv6_spellings_have_the_same_hash)
{
	static const char text[] =
		"{'version':'1.0','status':'completed','server_list':[{'server_id':'a','device':["
		"{'device_id':'0','device_ip':'2001:db8::a','rank_id':'0'}]}]}";
	char *other = edited(text, "2001:db8::a", "2001:DB8:0:0:0:0:0:000A");
	uint64_t a[2], b[2];

	hash_of(text, a);
	hash_of(other, b);
	ck_assert_uint_eq(a[0], b[0]);
	free(other);
	let_go();
}
END_TEST

static void check_differs(const char *good, const struct edit *e, size_t n)
{
	uint64_t first[2], other[2];
	size_t i;

	hash_of(good, first);
	for (i = 0; i < n; i++) {
		char *text = edited(good, e[i].from, e[i].to);

		hash_of(text, other);
		ck_assert_msg(first[0] != other[0] && first[1] != other[1], "%s -> %s: same hash",
			      e[i].from, e[i].to);
		free(text);
	}
	let_go();
}

START_TEST(each_changed_field_changes_the_hash)
{
	static const struct edit e1[] = {
		{"'1.0'", "'1.2'", 0, NULL, NULL},
		{"'node_a'", "'node_c'", 0, NULL, NULL},
		{"'host_ip':'192.0.2.1'", "'host_ip':'192.0.2.2'", 0, NULL, NULL},
		{"'device_id':'0'", "'device_id':'5'", 0, NULL, NULL},
		{"'192.0.2.10'", "'192.0.2.12'", 0, NULL, NULL},
		{"'192.0.2.10'", "'192.0.2.10,192.0.2.12'", 0, NULL, NULL},
		{"'60000'", "'60002'", 0, NULL, NULL},
		{"'17000'", "'17001'", 0, NULL, NULL},
		{"'rank_id':'2'", "'rank_id':'2','backup_device_ip':'198.51.100.9'", 0, NULL, NULL},
		{",\n  "
		 "{'device_id':'1','device_ip':'198.51.100.11','rank_id':'3','device_port':'17000'"
		 "}",
		 "", 0, NULL, NULL},
	};
	static const struct edit e12[] = {
		{"'super_device_id':'11'", "'super_device_id':'14'", 0, NULL, NULL},
		{"'p1'", "'p2'", 0, NULL, NULL},
		{"'16668'", "'16669'", 0, NULL, NULL},
		{"'backup_device_ip':'10.0.0.2'", "'backup_device_ip':'10.0.0.9'", 0, NULL, NULL},
	};
	static const struct edit e2[] = {
		{"'local_id':1", "'local_id':2", 0, NULL, NULL},
		{"'device_id':1", "'device_id':2", 0, NULL, NULL},
		{"17001", "17002", 0, NULL, NULL},
		{"'local_id':1,", "'local_id':1,'host_port':5000,", 0, NULL, NULL},
		{"'net_layer':2", "'net_layer':3", 0, NULL, NULL},
		{"'srv-1'", "'srv-9'", 0, NULL, NULL},
		{"'net_attr':''", "'net_attr':'x'", 0, NULL, NULL},
		{"df000001", "df000009", 0, NULL, NULL},
		{"'0/1'", "'0/3'", 0, NULL, NULL},
		{"'plane_id':'0'", "'plane_id':'1'", 0, NULL, NULL},
		{"'192.0.2.31'", "'192.0.2.32'", 0, NULL, NULL},
		{"'plane_id':'0'", "'backup_addr':['x']", 0, NULL, NULL},
		{"'status':'completed'", "'detour':'true'", 0, NULL, NULL},
	};

	check_differs(table_1, e1, sizeof(e1) / sizeof(e1[0]));
	check_differs(table_12, e12, sizeof(e12) / sizeof(e12[0]));
	check_differs(table_2, e2, sizeof(e2) / sizeof(e2[0]));
}
END_TEST

START_TEST(the_rank_that_differs_can_be_found)
{
	char *text = edited(table_1, "'192.0.2.11'", "'192.0.2.19'");
	uint64_t hash[4];
	uint32_t i;

	ck_assert_int_eq(judge(TABLE, table_1), 0);
	for (i = 0; i < 4; i++)
		hash[i] = roster->ranks[i].hash;
	ck_assert_int_eq(judge(TABLE, text), 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(hash[i] == roster->ranks[i].hash, i != 1);
	free(text);
	let_go();
}
END_TEST

/* Nodes of different builds compare hashes, so this value must never change by accident. */
START_TEST(the_hash_of_a_known_table_is_known)
{
	uint64_t hash[2];

	hash_of("{'version':'1.0','status':'completed','server_list':[{'server_id':'a','device':["
		"{'device_id':'0','device_ip':'192.0.2.1','rank_id':'0'}]}]}",
		hash);
	ck_assert_uint_eq(hash[0], KNOWN_HASH_0);
	ck_assert_uint_eq(hash[1], KNOWN_HASH_1);
	let_go();
}
END_TEST

/* ---- no memory ---- */

static unsigned long budget;

static void *scarce(size_t n)
{
	return budget && budget-- ? malloc(n) : NULL;
}

/*
 * The JSON library calls a token without memory an invalid token, so both kinds may come; and it
 * does not check the growth of its token buffer, so no token here outgrows the first 16 bytes.
 */
START_TEST(failing_any_allocation_refuses_and_leaks_nothing)
{
	static const char text[] =
		"{'version':'1.2','status':'completed','server_list':[{'server_id':'a','host_ip':'"
		"10.0.0.9',"
		"'device':[{'device_id':'0','device_ip':'10.0.0.1','rank_id':'0'},"
		"{'device_id':'1','device_ip':'10.0.0.2','rank_id':'1','host_port':'7'}]},"
		"{'server_id':'b','device':[{'device_id':'0','device_ip':'10.0.0.3','rank_id':'2'}]"
		"}]}";
	unsigned long n, system = 0;
	int r = -1;

	for (n = 0; n < 100000 && r; n++) {
		json_set_alloc_funcs(scarce, free);
		budget = n;
		r = judge(TABLE, text);
		ck_assert(!r || v.kind == HC_V_UNREADABLE || v.kind == HC_V_SYNTAX);
		if (r && v.kind == HC_V_UNREADABLE) {
			ck_assert_int_eq(r, -ENOMEM);
			ck_assert_ptr_nonnull(strstr(v.message, "Cannot allocate memory"));
			system++;
		}
		let_go();
		json_set_alloc_funcs(malloc, free);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_gt(system, 20);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ranktable_odd");
	TCase *t = tcase_create("ranktable_odd");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, odd_bytes_are_refused_with_a_place);
	tcase_add_test(t, nesting_has_a_bound);
	tcase_add_test(t, texts_of_a_megabyte_are_cut_in_messages);
	tcase_add_test(t, control_bytes_of_a_file_never_reach_a_message);
	tcase_add_test(t, four_thousand_ranks_are_checked_in_a_tenth_of_a_second);
	tcase_add_test(t, the_cost_grows_no_faster_than_the_table);
	tcase_add_test(t, one_rank_more_than_the_limit_is_refused);
	tcase_add_test(t, another_spelling_has_the_same_hash);
	tcase_add_test(t, ipv6_spellings_have_the_same_hash);
	tcase_add_test(t, each_changed_field_changes_the_hash);
	tcase_add_test(t, the_rank_that_differs_can_be_found);
	tcase_add_test(t, the_hash_of_a_known_table_is_known);
	tcase_add_test(t, failing_any_allocation_refuses_and_leaks_nothing);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
