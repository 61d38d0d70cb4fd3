/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration, as an operator meets it: layers, values, what follows from what, what ships.
 *
 * Each test writes real files into a directory of its own and loads them. What is asserted is the
 * value with its place of origin, or the whole line of the complaint: file, line, what was found
 * and what is wanted are the promise, so a message that loses one of them fails here. The limits
 * are walked from the table, so a new row is covered without a new test.
 */
#include <check.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confdir.h"
#include "confprint.h"

/* ---- the N-th allocation fails ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_FAIL_ALLOCATIONS 1
extern void *__libc_realloc(void *p, size_t size);
void *realloc(void *p, size_t size);

static int fail_after = -1; /* -1 = never */

/* All memory of conf/ comes from realloc. */
void *realloc(void *p, size_t size)
{
	if (fail_after == 0) {
		errno = ENOMEM;
		return NULL;
	}
	if (fail_after > 0)
		fail_after--;
	return __libc_realloc(p, size);
}
#endif

/* ---- where a value comes from ---- */

START_TEST(the_stronger_layer_wins_and_is_named)
{
	const char *env[] = {"HOME=/", "HCOMM_DRAIN_TIMEOUT_S=40", "HCOMM_AGING_S=41", NULL};
	const char *sets[] = {"aging_s=50", NULL};

	put("hcommd.conf", "# first\ngrant_ttl_s = 20\ntable_wait_s = 20\n"
			   "drain_timeout_s = 20\naging_s = 20\n");
	mkdir(path_of("conf.d"), 0700);
	put("conf.d/a.conf", "\ntable_wait_s = 30\ndrain_timeout_s = 30\naging_s = 30\n");
	ck_assert_int_eq(load(env, sets), 0);
	expect_value("hint_hold_s", "1", "default");
	expect_value("grant_ttl_s", "20", "@/hcommd.conf:2");
	expect_value("table_wait_s", "30", "@/conf.d/a.conf:2");
	expect_value("drain_timeout_s", "40", "environment HCOMM_DRAIN_TIMEOUT_S");
	expect_value("aging_s", "50", "command line");
	ck_assert_uint_eq(conf.aging_s, 50);
	ck_assert_uint_eq(conf.table_wait_s, 30);
}
END_TEST

START_TEST(conf_d_is_read_by_name_and_only_conf_files)
{
	put("hcommd.conf", "aging_s = 1\n");
	mkdir(path_of("conf.d"), 0700);
	/* written out of order: the order of the directory must not matter */
	put("conf.d/20.conf", "aging_s = 20\n");
	put("conf.d/9.conf", "aging_s = 9\n");
	put("conf.d/10.conf", "aging_s = 10\ngrant_ttl_s = 10\n");
	put("conf.d/99.conf.bak", "aging_s = 99\n");
	put("conf.d/.99.conf", "hint_hold_s = 99\n");
	put("conf.d/readme", "not a configuration\n");
	ck_assert_int_eq(load(NULL, NULL), 0);
	expect_value("aging_s", "9", "@/conf.d/9.conf:1"); /* "9" sorts after "10" and "20" */
	expect_value("grant_ttl_s", "10", "@/conf.d/10.conf:2");
	expect_value("hint_hold_s", "1", "default");
}
END_TEST

START_TEST(the_variables_of_the_client_library_do_not_steer_the_daemon)
{
	const char *env[] = {"HCOMM_SOCKET=relative", "HCOMM_LOG_LEVEL=nonsense",
			     "HCOMM_TIMEOUT_SEC=x",   "HCOMM_LOG_FILE=x",
			     "HCOMM_JOB_ID=x",        "HCOMM_DISABLE=1",
			     "HCOMM_RECORDER=no",     NULL};

	put("hcommd.conf", "");
	ck_assert_int_eq(load(env, NULL), 0);
	expect_value("socket", "/run/hcomm/hcommd.sock", "default");
	expect_value("log_level", "info", "default");
	expect_value("recorder", "no", "environment HCOMM_RECORDER");
}
END_TEST

START_TEST(a_missing_file_is_fine_unless_it_was_asked_for)
{
	struct hc_conf_source src = {.file = NULL, .dir = path_of("conf.d")};

	/* the default file is whatever this host has; only its absence is sure to be testable */
	if (access(HC_CONF_FILE_DEFAULT, F_OK)) {
		ck_assert_int_eq(hc_conf_load(&conf, &src, &err), 0);
		ck_assert_uint_eq(conf.nfiles, 0);
		ck_assert_uint_eq(conf.connect_timeout_s, 120);
	}
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf: cannot be read: No such file or directory");
	mkdir(path_of("hcommd.conf"), 0700);
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf: cannot be read to its end: Is a directory");
}
END_TEST

START_TEST(too_many_files_in_conf_d_are_refused_as_a_whole)
{
	char name[64];

	put("hcommd.conf", "");
	mkdir(path_of("conf.d"), 0700);
	for (int i = 1; i < HC_CONF_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "conf.d/%d.conf", i);
		put(name, "");
	}
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert_uint_eq(conf.nfiles, HC_CONF_FILES_MAX);
	put("conf.d/0.conf", "");
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/conf.d: too many files; wanted at most 63 named *.conf");
}
END_TEST

/* ---- values ---- */

static const struct {
	const char *text, *why;
} odd_numbers[] = {
	{"abc", "'abc' is not a number"},
	{"", "the value is empty"},
	{"-1", "'-1' is out of range"},
	{"0", "'0' is out of range"},
	{"1e3", "'1e3' is not a number"},
	{"99999999999", "'99999999999' is out of range"},
	{"99999999999999999999999", "'99999999999999999999999' is out of range"},
	{"4294967416", "'4294967416' is out of range"}, /* 2^32 + 120 */
	{"+5", "'+5' is not a number"},
	{"0x10", "'0x10' is not a number"},
	{"5s", "'5s' is not a number"},
	{"5.0", "'5.0' is not a number"},
	{"007", "'007' is not a number"},
	{"1 2", "'1 2' is not a number"},
	{"inf", "'inf' is not a number"},
	{"\xd9\xa3", "'\\xd9\\xa3' is not a number"}, /* a digit, but not of ours */
};

START_TEST(no_odd_number_is_read_as_zero_or_without_limit)
{
	const char *text = odd_numbers[_i].text, *why = odd_numbers[_i].why;
	char line[128];
	const char *env[] = {line, NULL};
	const char *sets[] = {line, NULL};

	snprintf(line, sizeof(line), "\nconnect_timeout_s = %s\n", text);
	ck_assert_int_eq(load_text(line), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf:2: connect_timeout_s: %s; wanted 1..7200 seconds", why);
	put("hcommd.conf", "");
	snprintf(line, sizeof(line), "HCOMM_CONNECT_TIMEOUT_S=%s", text);
	ck_assert_int_eq(load(env, NULL), HC_CONF_REFUSED);
	expect_error(0,
		     "environment HCOMM_CONNECT_TIMEOUT_S: connect_timeout_s: %s; wanted "
		     "1..7200 seconds",
		     why);
	snprintf(line, sizeof(line), "connect_timeout_s=%s", text);
	ck_assert_int_eq(load(NULL, sets), HC_CONF_REFUSED);
	expect_error(0, "command line: connect_timeout_s: %s; wanted 1..7200 seconds", why);
	ck_assert_uint_eq(err.count, 1);
}
END_TEST

START_TEST(blanks_are_no_number)
{
	const char *env[] = {"HCOMM_AGING_S=  ", NULL};
	const char *sets[] = {"aging_s= 5", NULL};

	expect_refused("aging_s =   \t\n",
		       "@/hcommd.conf:1: aging_s: the value is empty; wanted 1..3600 seconds");
	put("hcommd.conf", "");
	ck_assert_int_eq(load(env, sets), HC_CONF_REFUSED);
	expect_error(0, "environment HCOMM_AGING_S: aging_s: '  ' is not a number; wanted "
			"1..3600 seconds");
	expect_error(1, "command line: aging_s: ' 5' is not a number; wanted 1..3600 seconds");
}
END_TEST

START_TEST(every_default_reads_back_as_itself)
{
	size_t n;
	const struct hc_opt *o = hc_opt_table(HC_CONF_TOP, &n);
	char field[2048], why[HC_CONF_WHY_MAX], text[HC_CONF_VALUE_MAX];

	ck_assert_uint_eq(n, HC_OPT_COUNT);
	for (size_t i = 0; i < n; i++) {
		why[0] = '\0';
		ck_assert_msg(!hc_opt_parse(&o[i], o[i].def, field, why, sizeof(why)), "%s: %s",
			      o[i].name, why);
		hc_opt_format(&o[i], field, text, sizeof(text));
		ck_assert_str_eq(text, o[i].def);
		ck_assert_msg(strlen(o[i].text) > 10, "%s has no text", o[i].name);
		ck_assert_uint_lt(strlen(o[i].name), HC_OPT_NAME_MAX);
	}
}
END_TEST

/* Is the value taken? If not, the refusal must name the value and the whole range. */
static bool takes(const struct hc_opt *o, const char *text)
{
	_Alignas(8) char field[2048];
	char why[HC_CONF_WHY_MAX], wanted[256], quoted[352];

	if (!hc_opt_parse(o, text, field, why, sizeof(why)))
		return true;
	hc_opt_wanted(o, wanted, sizeof(wanted));
	hc_opt_quote(text, quoted, sizeof(quoted));
	ck_assert_msg(strstr(why, wanted) != NULL, "%s: %s", o->name, why);
	ck_assert_msg(!*text || strstr(why, quoted) != NULL, "%s: %s", o->name, why);
	return false;
}

static bool takes_number(const struct hc_opt *o, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), o->kind == HC_KIND_MODE ? "0%03" PRIo64 : "%" PRIu64, v);
	return takes(o, text);
}

static bool is_number(const struct hc_opt *o)
{
	return o->kind == HC_KIND_INT || o->kind == HC_KIND_SIZE || o->kind == HC_KIND_MODE ||
	       o->kind == HC_KIND_PORTS;
}

START_TEST(every_number_takes_its_range_and_no_more)
{
	size_t n, walked = 0;
	const struct hc_opt *o = hc_opt_table((enum hc_conf_section)_i, &n);

	for (size_t i = 0; i < n; i++) {
		if (!is_number(&o[i]))
			continue;
		walked++;
		ck_assert_msg(takes_number(&o[i], o[i].lo), "%s lowest", o[i].name);
		ck_assert_msg(takes_number(&o[i], o[i].hi), "%s highest", o[i].name);
		ck_assert_msg(!takes_number(&o[i], o[i].hi + 1), "%s above", o[i].name);
		if (o[i].lo)
			ck_assert_msg(!takes_number(&o[i], o[i].lo - 1), "%s below", o[i].name);
		ck_assert_msg(!takes(&o[i], "-1") && !takes(&o[i], "") && !takes(&o[i], "1e3"),
			      "%s takes what is no number", o[i].name);
	}
	ck_assert(walked || _i == HC_CONF_NODE);
}
END_TEST

START_TEST(every_path_takes_its_length_and_no_more)
{
	size_t n;
	const struct hc_opt *o = hc_opt_table(HC_CONF_TOP, &n);
	char text[HC_CONF_VALUE_MAX + 8];

	for (size_t i = 0; i < n; i++) {
		if (o[i].kind != HC_KIND_PATH && o[i].kind != HC_KIND_WORD)
			continue;
		memset(text, 'a', sizeof(text));
		if (o[i].kind == HC_KIND_PATH)
			text[0] = '/';
		text[o[i].hi + 1] = '\0';
		ck_assert_msg(!takes(&o[i], text), "%s above", o[i].name);
		text[o[i].hi] = '\0';
		ck_assert_msg(takes(&o[i], text), "%s longest", o[i].name);
		ck_assert(takes(&o[i], "") == !o[i].lo);
	}
}
END_TEST

START_TEST(a_socket_path_beyond_107_bytes_names_length_and_limit)
{
	static const size_t lengths[] = {108, 200};
	char path[256], line[300];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[107] = '\0';
	snprintf(line, sizeof(line), "socket = %s\n", path);
	expect_loads(line);
	ck_assert_str_eq(conf.socket, path);
	for (size_t i = 0; i < 2; i++) {
		memset(path, 'x', sizeof(path));
		path[0] = '/';
		path[lengths[i]] = '\0';
		snprintf(line, sizeof(line), "socket = %s\n", path);
		ck_assert_int_eq(load_text(line), HC_CONF_REFUSED);
		expect_error(0,
			     "@/hcommd.conf:1: socket: '%.72s...' is %zu bytes long; wanted an "
			     "absolute path of at most 107 bytes",
			     path, lengths[i]);
	}
}
END_TEST

static const struct {
	const char *line, *why;
} bad_values[] = {
	{"security = tls", "security: 'tls' is not known; wanted key or none"},
	{"recorder = 1", "recorder: '1' is neither; wanted yes or no"},
	{"socket_mode = 660",
	 "socket_mode: '660' is not an octal mode of four digits; wanted 0000..0777, octal"},
	{"socket_mode = 01000", "socket_mode: '01000' is out of range; wanted 0000..0777, octal"},
	{"listen_port = 0",
	 "listen_port: '0' is out of range; wanted a port 1..65535 or a range A-B of them"},
	{"listen_port = 9-8",
	 "listen_port: the range '9-8' ends before it begins; wanted a port 1..65535 or a range "
	 "A-B of them"},
	{"listen_port = 9-",
	 "listen_port: '9-' is not a port; wanted a port 1..65535 or a range A-B of them"},
	{"table_bytes_max = 64 MB",
	 "table_bytes_max: '64 MB' is not a size; wanted 4 KiB..1 GiB (bytes, or with KiB, MiB, "
	 "GiB)"},
	{"table_bytes_max = 17179869185 GiB", /* 2^64 + 1 GiB */
	 "table_bytes_max: '17179869185 GiB' is out of range; wanted 4 KiB..1 GiB (bytes, or with "
	 "KiB, MiB, GiB)"},
	{"key_file = cluster.key",
	 "key_file: 'cluster.key' is not an absolute path; wanted an absolute path of at most "
	 "1023 bytes"},
	{"cluster = a b", "cluster: 'a b' is not a word; wanted 1..64 letters, digits, '.', '_' or "
			  "'-'"},
	{"listen_interface = eth0, ^",
	 "listen_interface: '^' is not an interface name; wanted interface names, ^NAME to exclude "
	 "one, at most 1023 bytes, or empty"},
	{"listen_interface = sixteen-is-too-m",
	 "listen_interface: 'sixteen-is-too-m' is not an interface name; wanted interface names, "
	 "^NAME to exclude one, at most 1023 bytes, or empty"},
	{"listen_address = 10.0.0.256",
	 "listen_address: '10.0.0.256' is not an address; wanted IPv4 or IPv6 addresses, at most "
	 "1023 bytes, or empty"},
	{"metrics_address = 10.0.0.1:80",
	 "metrics_address: '10.0.0.1:80' is not a loopback address with a port; wanted "
	 "127.0.0.1:PORT or [::1]:PORT, or empty"},
	{"log_level = \x1b[31m", "log_level: '\\x1b[31m' is not known; wanted error, warn, info or "
				 "debug"},
};

START_TEST(a_bad_value_is_refused_with_what_is_wanted)
{
	char text[256], line[512];
	const char *sets[] = {text, NULL};

	/* by the command line, which lets every byte through to the value */
	put("hcommd.conf", "");
	snprintf(text, sizeof(text), "%s", bad_values[_i].line);
	memmove(strstr(text, " = "), "=", 1);
	memmove(strchr(text, '=') + 1, strchr(text, '=') + 3, strlen(strchr(text, '=') + 3) + 1);
	ck_assert_int_eq(load(NULL, sets), HC_CONF_REFUSED);
	snprintf(line, sizeof(line), "command line: %s", bad_values[_i].why);
	expect_error(0, "%s", line);
}
END_TEST

START_TEST(good_values_arrive_typed)
{
	expect_loads("listen_port = 16700-16799\nsocket_mode = 0600\ntable_bytes_max = 512 KiB\n"
		     "security = none\nallow_foreign_pidns = on\nlog_level = debug\n"
		     "listen_interface = eth0 ,^docker0\tib0\nlisten_address = 10.0.0.1,fd00::1\n"
		     "metrics_address = [::1]:9100\ntopology_file =\n");
	ck_assert_uint_eq(conf.listen_port.lo, 16700);
	ck_assert_uint_eq(conf.listen_port.hi, 16799);
	ck_assert_uint_eq(conf.socket_mode, 0600);
	ck_assert_uint_eq(conf.table_bytes_max, 512 * 1024);
	ck_assert_uint_eq(conf.security, HC_CONF_security_none);
	ck_assert_uint_eq(conf.log_level, HC_CONF_log_level_debug);
	ck_assert(conf.allow_foreign_pidns);
	ck_assert_str_eq(conf.listen_interface, "eth0, ^docker0, ib0");
	ck_assert_str_eq(conf.listen_address, "10.0.0.1, fd00::1");
	expect_value("listen_port", "16700-16799", "@/hcommd.conf:1");
	expect_value("topology_file", "", "@/hcommd.conf:10");
}
END_TEST

START_TEST(an_endpoint_is_an_address_with_or_without_port)
{
	static const char *const bad[] = {
		"",           "host",        "10.0.0.1:",      "10.0.0.1:0", "10.0.0.1:65536",
		":80",        "[fd00::1",    "[fd00::1]80",    "[fd00::1]:", "[10.0.0.1]:80",
		"10.0.0.1:x", "fd00::1::80", "10.0.0.1:80:80", "[]:80",      "fe80::1%eth0"};
	struct hc_conf_endpoint e;

	ck_assert(hc_conf_endpoint("10.0.0.1", &e) && e.family == 4 && !e.port);
	ck_assert(hc_conf_endpoint("10.0.0.1:65535", &e) && e.family == 4 && e.port == 65535);
	ck_assert(hc_conf_endpoint("fd00::1", &e) && e.family == 6 && !e.port);
	ck_assert(hc_conf_endpoint("[fd00::1]", &e) && e.family == 6 && !e.port);
	ck_assert(hc_conf_endpoint("[fd00::1]:80", &e) && e.addr[15] == 1 && e.port == 80);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!hc_conf_endpoint(bad[i], &e), "%s", bad[i]);
}
END_TEST

/* ---- options that concern each other ---- */

START_TEST(contradictions_name_both_sides)
{
	expect_refused("heartbeat_misses = 5\nheartbeat_down_misses = 5\n",
		       "@/hcommd.conf:2: heartbeat_down_misses: '5' is not above heartbeat_misses; "
		       "wanted more than 5 (@/hcommd.conf:1)");
	expect_refused("heartbeat_misses = 7\n",
		       "@/hcommd.conf:1: heartbeat_misses: '7' is not below "
		       "heartbeat_down_misses; wanted less than 5 (default)");
	expect_refused("profile = fast\nheartbeat_down_misses = 3\n",
		       "@/hcommd.conf:2: heartbeat_down_misses: '3' is not above "
		       "heartbeat_misses; wanted more than 3 (profile fast (@/hcommd.conf:1))");
	expect_refused("socket = /a\nmetrics_socket = /a\n",
		       "@/hcommd.conf:2: metrics_socket: '/a' is both socket and metrics_socket; "
		       "wanted two paths");
}
END_TEST

START_TEST(a_profile_sets_what_was_not_set)
{
	expect_loads("heartbeat_misses = 4\nprofile = wan\n");
	expect_value("heartbeat_interval_ms", "1000", "profile wan (@/hcommd.conf:2)");
	expect_value("heartbeat_misses", "4", "@/hcommd.conf:1");
	expect_value("heartbeat_down_misses", "5", "profile wan (@/hcommd.conf:2)");
	ck_assert_uint_eq(conf.heartbeat_interval_ms, 1000);
	expect_loads("profile = fast\n");
	ck_assert_uint_eq(conf.heartbeat_interval_ms, 10);
	expect_loads("");
	expect_value("heartbeat_interval_ms", "100", "default");
}
END_TEST

START_TEST(another_instance_has_places_of_its_own)
{
	const char *sets[] = {"instance=second", NULL};
	char path[256], line[300];

	expect_loads("");
	expect_value("socket", "/run/hcomm/hcommd.sock", "default");
	ck_assert_int_eq(load(NULL, sets), 0);
	expect_value("state_dir", "/var/lib/hcomm-second", "instance second (command line)");
	expect_value("socket", "/run/hcomm-second/hcommd.sock",
		     "runtime_dir /run/hcomm-second (instance second (command line))");
	put("hcommd.conf", "runtime_dir = /r\nmetrics_socket = /m\n");
	ck_assert_int_eq(load(NULL, sets), 0);
	expect_value("socket", "/r/hcommd.sock", "runtime_dir /r (@/hcommd.conf:1)");
	expect_value("metrics_socket", "/m", "@/hcommd.conf:2");
	/* the socket that would follow is too long: told at the option that can be changed */
	memset(path, 'r', sizeof(path));
	path[0] = '/';
	path[100] = '\0';
	snprintf(line, sizeof(line), "runtime_dir = %s\nmetrics_socket =\n", path);
	ck_assert_int_eq(load_text(line), HC_CONF_REFUSED);
	expect_error(0,
		     "@/hcommd.conf:1: runtime_dir: socket: '%.72s...' is 112 bytes long; wanted "
		     "an absolute path of at most 107 bytes",
		     path);
}
END_TEST

START_TEST(the_node_is_called_after_its_host)
{
	char host[65] = "";

	ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
	expect_loads("");
	if (conf.node_name[0])
		expect_value("node_name", host, "host name");
	expect_loads("node_name = me\n");
	expect_value("node_name", "me", "@/hcommd.conf:1");
}
END_TEST

/* ---- what ships ---- */

START_TEST(no_default_port_is_given_to_outgoing_connections)
{
	unsigned lo = 32768, hi = 60999;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	size_t n, ports = 0;
	const struct hc_opt *o = hc_opt_table(HC_CONF_TOP, &n);

	if (f) {
		ck_assert_int_eq(fscanf(f, "%u %u", &lo, &hi), 2);
		fclose(f);
	}
	for (size_t i = 0; i < n; i++) {
		unsigned long port = strtoul(o[i].def, NULL, 10);

		if (o[i].kind != HC_KIND_PORTS)
			continue;
		ports++;
		ck_assert_msg(port < 32768 || port > 60999, "%s = %lu", o[i].name, port);
		ck_assert_msg(port < lo || port > hi, "%s = %lu", o[i].name, port);
		ck_assert_msg(!strchr(o[i].def, '-'), "%s", o[i].name);
	}
	ck_assert_uint_gt(ports, 0);
}
END_TEST

/* The sample as a string, with every option uncommented. */
static char *sample(bool uncommented)
{
	char *text = NULL;
	size_t len = 0, w = 0;
	FILE *f = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(hc_conf_write_sample(f), 0);
	fclose(f);
	for (size_t i = 0; uncommented && i <= len; i++) {
		bool start = !i || text[i - 1] == '\n';

		if (!start || text[i] != '#' || !islower((unsigned char)text[i + 1]))
			text[w++] = text[i];
	}
	return text;
}

static void no_change(void *arg, const struct hc_conf_change *c)
{
	(void)arg;
	ck_abort_msg("%s: '%s' became '%s'", c->label, c->from, c->to);
}

START_TEST(the_sample_says_what_the_daemon_does)
{
	struct hc_conf defaults;
	char *text = sample(false), *set = sample(true);

	expect_loads(text);
	ck_assert_uint_eq(conf.origin[HC_OPT_aging_s].from, HC_CONF_FROM_DEFAULT);
	defaults = conf;
	memset(&conf, 0, sizeof(conf));
	expect_loads(set);
	for (int i = 0; i < HC_OPT_COUNT; i++) {
		bool host = i == HC_OPT_node_name && conf.node_name[0];

		ck_assert_uint_eq(conf.origin[i].from,
				  host ? HC_CONF_FROM_HOST : HC_CONF_FROM_FILE);
	}
	ck_assert_uint_eq(hc_conf_diff(&defaults, &conf, no_change, NULL), 0);
	hc_conf_fini(&defaults);
	free(text);
	free(set);
}
END_TEST

START_TEST(sample_and_manual_name_every_option)
{
	char *man = NULL, *text = sample(false), line[128];
	size_t len = 0, n;
	FILE *f = open_memstream(&man, &len);

	ck_assert_int_eq(hc_conf_write_mdoc(f), 0);
	fclose(f);
	for (int s = 0; s < HC_CONF_SECTIONS; s++) {
		const struct hc_opt *o = hc_opt_table((enum hc_conf_section)s, &n);

		for (size_t i = 0; i < n; i++) {
			snprintf(line, sizeof(line), "\n.It Ic %s\n", o[i].name);
			ck_assert_msg(strstr(man, line) != NULL, "%s", o[i].name);
			snprintf(line, sizeof(line), s ? "\n#     %s\n" : "\n#%s =", o[i].name);
			ck_assert_msg(strstr(text, line) != NULL, "%s", o[i].name);
		}
	}
	free(man);
	free(text);
}
END_TEST

START_TEST(every_option_has_a_variable_of_its_own)
{
	static const char *const taken[] = {"HCOMM_SOCKET",    "HCOMM_TIMEOUT_SEC",
					    "HCOMM_LOG_LEVEL", "HCOMM_LOG_FILE",
					    "HCOMM_JOB_ID",    "HCOMM_DISABLE"};
	size_t n;
	const struct hc_opt *o = hc_opt_table(HC_CONF_TOP, &n);
	char name[HC_OPT_NAME_MAX + 8];

	for (size_t i = 0; i < n; i++) {
		hc_opt_env_name(&o[i], name, sizeof(name));
		for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
			ck_assert_str_ne(name, taken[k]);
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(o[i].name, o[k].name);
	}
}
END_TEST

/* ---- walking and comparing ---- */

START_TEST(a_walk_meets_every_value_once)
{
	struct hc_conf_value v;
	uint64_t cursor = 0;
	unsigned count = 0;

	expect_loads("[node a]\naddress = 10.0.0.1\n[device 2]\n[link x y]\ntype = shm\n"
		     "latency_us = 3\n");
	for (; count < HC_OPT_COUNT; count++) {
		ck_assert(hc_conf_next(&conf, &cursor, &v));
		ck_assert_str_eq(v.label, v.opt->name);
	}
	static const char *const rest[][2] = {
		{"[node a]", ""},           {"[node a] address", "10.0.0.1"},
		{"[device 2]", ""},         {"[link x y]", ""},
		{"[link x y] type", "shm"}, {"[link x y] latency_us", "3"}};
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		ck_assert(hc_conf_next(&conf, &cursor, &v));
		ck_assert_str_eq(v.label, rest[i][0]);
		ck_assert_str_eq(v.text, rest[i][1]);
	}
	ck_assert(!hc_conf_next(&conf, &cursor, &v));
	ck_assert(!hc_conf_next(&conf, &cursor, &v));
}
END_TEST

static void note_change(void *arg, const struct hc_conf_change *c)
{
	char *text = arg;

	snprintf(text + strlen(text), 1024 - strlen(text), "%s: '%s' -> '%s' %s\n", c->label,
		 c->from, c->to, c->reloadable ? "reload" : "restart");
}

START_TEST(a_reload_knows_what_it_may_change)
{
	struct hc_conf old;
	char text[1024] = "";

	expect_loads("aging_s = 5\n[node a]\naddress = 10.0.0.1\n[node gone]\naddress = 10.0.0.2\n"
		     "[link x y]\n");
	old = conf;
	memset(&conf, 0, sizeof(conf));
	/* moved, written otherwise, or set to its default: no change */
	expect_loads("grant_ttl_s = 5\n\naging_s = 5\n[link y x]\n[node gone]\naddress = 10.0.0.2\n"
		     "[node a]\naddress = 10.0.0.1\n");
	ck_assert_uint_eq(hc_conf_diff(&old, &conf, no_change, NULL), 0);
	expect_loads("aging_s = 6\nlisten_port = 5\n[node a]\naddress = 10.0.0.3\n[device 1]\n"
		     "[link x y]\nlatency_us = 1\n");
	ck_assert_uint_eq(hc_conf_diff(&old, &conf, note_change, text), 2);
	ck_assert_str_eq(text, "listen_port: '16660' -> '5' restart\n"
			       "aging_s: '5' -> '6' reload\n"
			       "[node a] address: '10.0.0.1' -> '10.0.0.3' reload\n"
			       "[node gone]: 'present' -> '' reload\n"
			       "[device 1]: '' -> 'present' restart\n"
			       "[link x y] latency_us: '' -> '1' reload\n");
	hc_conf_fini(&old);
}
END_TEST

#ifdef CAN_FAIL_ALLOCATIONS
START_TEST(without_memory_nothing_is_half_loaded)
{
	struct hc_conf empty = {0};
	int r = -ENOMEM, n = 0;

	put("hcommd.conf", "[node a]\naddress = 10.0.0.1\n[device 1]\n[link a b]\n");
	mkdir(path_of("conf.d"), 0700);
	put("conf.d/a.conf", "[node b]\naddress = 10.0.0.1\n");
	for (; r == -ENOMEM && n < 100; n++) {
		fail_after = n;
		r = load(NULL, NULL);
		fail_after = -1;
		if (r)
			ck_assert_mem_eq(&conf, &empty, sizeof(conf));
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_gt(n, 5); /* files, names, nodes, devices, links: each failed once */
	ck_assert_uint_eq(conf.nnodes, 2);
}
END_TEST
#endif

int main(void)
{
	Suite *s = suite_create("conf");
	TCase *t = tcase_create("conf");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, conf_setup, conf_teardown);
	tcase_add_test(t, the_stronger_layer_wins_and_is_named);
	tcase_add_test(t, conf_d_is_read_by_name_and_only_conf_files);
	tcase_add_test(t, the_variables_of_the_client_library_do_not_steer_the_daemon);
	tcase_add_test(t, a_missing_file_is_fine_unless_it_was_asked_for);
	tcase_add_test(t, too_many_files_in_conf_d_are_refused_as_a_whole);
	tcase_add_loop_test(t, no_odd_number_is_read_as_zero_or_without_limit, 0,
			    sizeof(odd_numbers) / sizeof(odd_numbers[0]));
	tcase_add_test(t, blanks_are_no_number);
	tcase_add_test(t, every_default_reads_back_as_itself);
	tcase_add_loop_test(t, every_number_takes_its_range_and_no_more, 0, HC_CONF_SECTIONS);
	tcase_add_test(t, every_path_takes_its_length_and_no_more);
	tcase_add_test(t, a_socket_path_beyond_107_bytes_names_length_and_limit);
	tcase_add_loop_test(t, a_bad_value_is_refused_with_what_is_wanted, 0,
			    sizeof(bad_values) / sizeof(bad_values[0]));
	tcase_add_test(t, good_values_arrive_typed);
	tcase_add_test(t, an_endpoint_is_an_address_with_or_without_port);
	tcase_add_test(t, contradictions_name_both_sides);
	tcase_add_test(t, a_profile_sets_what_was_not_set);
	tcase_add_test(t, another_instance_has_places_of_its_own);
	tcase_add_test(t, the_node_is_called_after_its_host);
	tcase_add_test(t, no_default_port_is_given_to_outgoing_connections);
	tcase_add_test(t, the_sample_says_what_the_daemon_does);
	tcase_add_test(t, sample_and_manual_name_every_option);
	tcase_add_test(t, every_option_has_a_variable_of_its_own);
	tcase_add_test(t, a_walk_meets_every_value_once);
	tcase_add_test(t, a_reload_knows_what_it_may_change);
#ifdef CAN_FAIL_ALLOCATIONS
	tcase_add_test(t, without_memory_nothing_is_half_loaded);
#endif
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
