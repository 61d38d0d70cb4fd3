/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl channel and perf with a real daemon.
 *
 * The link that all ranks share has 1000 MB/s here, so 800 can be granted. What an operator relies
 * on: who holds what and who waits is shown as it is; a refusal says when to come again, in words
 * and by its exit status, and that is then true; perf ends with a reason, whichever of its two
 * sides is late, refused or killed.
 */
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "suite.h"

#define WAIT_MS 15000
#define WORDS   14

static struct hc_node node;
static struct hc_run run;

#define ctl(...) hc_ctl(&run, &node, __VA_ARGS__, (char *)NULL)

static void start(void)
{
	hc_node_prepare(&node, 8, "orphan_grace_s = 1",
			"[link any any]\ntype = shm\nbandwidth_mbps = 1000\n");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

static void end(void)
{
	hc_node_end(&node);
}

static void want(int status, const char *text)
{
	if (run.status != status || (!strstr(run.out, text) && !strstr(run.err, text)))
		hc_fail("status %d, wanted %d and '%s'; out: %s err: %s", run.status, status, text,
			run.out, run.err);
}

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &e);

	if (!root)
		hc_fail("no JSON: %s in %s", e.text, text);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema_version")), 1);
	return root;
}

static long long number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		hc_fail("no number '%s'", key);
	return json_integer_value(value);
}

/* ---- a second hcommctl beside the first ---- */

static int exec_ctl(void *arg, int in, int out)
{
	char program[1200];

	(void)in;
	dup2(out, 1);
	dup2(out, 2);
	execv(hc_program("hcommctl", program, sizeof(program)), arg);
	return 125;
}

static void beside(struct hc_child *c, ...)
{
	char copy[WORDS][64] = {"hcommctl"}, *argv[WORDS + 1] = {copy[0]};
	const char *word;
	va_list args;

	va_start(args, c);
	for (int i = 1; i < WORDS && (word = va_arg(args, const char *)); i++) {
		snprintf(copy[i], sizeof(copy[i]), "%s", word);
		argv[i] = copy[i];
	}
	va_end(args);
	hc_spawn(c, exec_ctl, argv);
}
#define BESIDE(c, ...) beside(c, __VA_ARGS__, (char *)NULL)

/* Its exit status must be `status` and its words have `text`. */
static void ends(struct hc_child *c, int status, const char *text)
{
	static char said[16384];
	size_t n = 0;
	ssize_t got;
	int fd = dup(c->in), is = hc_child_wait(c, WAIT_MS);

	while (n < sizeof(said) - 1 && (got = read(fd, said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(fd);
	if (is != status || !strstr(said, text))
		hc_fail("status %d, wanted %d and '%s'; it said: %s", is, status, text, said);
}

struct count {
	const char *verb, *domain;
	unsigned rows;
};

static bool rows_are(void *arg)
{
	const struct count *k = arg;
	unsigned rows = 0;

	ctl("channel", k->verb, "--domain", k->domain, "--no-headings", "-o", "RANK");
	for (const char *p = run.out; (p = strchr(p, '\n')); p++)
		rows++;
	return !run.status && rows == k->rows;
}

static void await_rows(const char *verb, const char *domain, unsigned rows)
{
	struct count k = {verb, domain, rows};

	hc_await(verb, rows_are, &k, WAIT_MS);
}

static void hold_all(struct hc_child *c, const char *seconds)
{
	BESIDE(c, "channel", "hold", "--name", "all", "--devices", "0,1", "--bandwidth", "800",
	       "--for", seconds);
	await_rows("list", "all", 1);
}

static void stop(struct hc_child *c)
{
	kill(c->pid, SIGTERM);
	ends(c, 0, "channel ");
}

/* ---- channel ---- */

START_TEST(what_is_held_is_listed_and_shown)
{
	json_t *root, *row;
	struct hc_child c;
	char id[32];

	hold_all(&c, "60");
	ctl("channel", "list", "--json");
	want(0, "\"view\":\"channel\"");
	root = parse(run.out);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "rows")), 1);
	row = json_array_get(json_object_get(root, "rows"), 0);
	ck_assert_int_eq(number(row, "mbps"), 800);
	ck_assert_int_eq(number(row, "hold_ms"), 60000);
	ck_assert_int_eq(number(row, "pid"), c.pid);
	snprintf(id, sizeof(id), "%s", json_string_value(json_object_get(row, "id")));
	json_decref(root);

	ctl("channel", "show", id);
	want(0, "HOLD-MS");
	ctl("channel", "show", id, "-o", "LINK,MBPS", "--no-headings");
	want(0, "shm 800\n");
	ctl("link", "show", "shm", "-o", "USED-AB,LIMIT", "--no-headings");
	want(0, "800 800\n");
	ctl("status", "-o", "CHANNELS", "--no-headings");
	ck_assert_str_eq(run.out, "1\n");
	ctl("channel", "list", "--domain", "nobody");
	want(1, "nobody");
	stop(&c);
	ctl("channel", "show", id);
	want(1, "is granted; hcommctl channel list");
	ctl("channel", "list", "--no-headings");
	ck_assert_str_eq(run.out, "");
}
END_TEST

START_TEST(a_refusal_says_who_when_and_75)
{
	struct hc_child c;
	json_t *root;

	hold_all(&c, "60");
	ctl("channel", "hold", "--bandwidth", "100");
	want(75, "link shm has 800 of 800 MB/s");
	want(75, "; try again in ");
	ctl("channel", "hold", "--bandwidth", "801");
	want(1, "could ever carry it (wanted 801 MB/s and 0 back, type any)");
	ctl("channel", "hold", "--bandwidth", "100", "--json");
	want(75, "\"granted\":0,\"retry_after_ms\":");
	root = parse(run.out);
	ck_assert_int_gt(number(root, "retry_after_ms"), 0);
	json_decref(root);
	ctl("channel", "hold", "--bandwidth", "100", "--wait", "--timeout", "0.2");
	want(124, "1 of 1 channels were not granted in 200 ms");
	stop(&c);
	ctl("channel", "hold", "--bandwidth", "100", "--for", "0.01");
	want(0, "over shm: 100 MB/s");
}
END_TEST

/* Neither a domain that waits for its ranks, nor the devices that are there. */
START_TEST(devices_that_cannot_be_had_leave_nothing)
{
	struct hc_child c;

	ctl("channel", "hold", "--devices", "0,77");
	want(1, "77");
	hold_all(&c, "60");
	ctl("channel", "hold", "--devices", "0,1");
	want(75, "held by process");
	ctl("domain", "list", "--no-headings", "-o", "NAME,STATE");
	ck_assert_str_eq(run.out, "all ACTIVE\n");
	stop(&c);
}
END_TEST

START_TEST(coming_again_at_the_hint_succeeds)
{
	struct hc_child c;
	json_t *root, *ch;

	hold_all(&c, "0.4");
	ctl("channel", "hold", "--bandwidth", "400", "--back", "50", "--for", "0.01", "--retry",
	    "--json");
	want(0, "\"granted\":1");
	root = parse(run.out);
	ch = json_array_get(json_object_get(root, "channels"), 0);
	ck_assert_int_eq(number(ch, "mbps"), 400);
	ck_assert_int_eq(number(ch, "back_mbps"), 50);
	if (number(ch, "tries") == 2) { /* not when the link was free by then */
		ck_assert_int_gt(number(ch, "hint_ms"), 0);
		ck_assert_int_ge(number(ch, "waited_ms"), number(ch, "hint_ms"));
	}
	json_decref(root);
	ends(&c, 0, "channel ");
}
END_TEST

START_TEST(who_waits_is_listed_by_place_and_served_by_class)
{
	struct hc_child all, low, high;
	json_t *root, *row;

	hold_all(&all, "60");
	BESIDE(&low, "channel", "hold", "--name", "low", "--bandwidth", "800", "--for", "60",
	       "--wait");
	await_rows("waiting", "low", 1);
	BESIDE(&high, "channel", "hold", "--name", "high", "--bandwidth", "800", "--for", "60",
	       "--class", "5", "--wait");
	await_rows("waiting", "high", 1);
	ctl("channel", "waiting", "--json");
	want(0, "\"view\":\"waiting\"");
	root = parse(run.out);
	row = json_array_get(json_object_get(root, "rows"), 0);
	ck_assert_int_eq(number(row, "priority"), 5);
	ck_assert_int_eq(number(row, "place"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(row, "link")), "shm");
	row = json_array_get(json_object_get(root, "rows"), 1);
	ck_assert_int_ge(number(row, "place"), 1);
	json_decref(root);
	ctl("channel", "waiting", "-o", "CLASS,LINK", "--no-headings");
	want(0, "shm");
	stop(&all);
	await_rows("list", "high", 1);
	await_rows("waiting", "low", 1);
	kill(low.pid, SIGTERM);
	ends(&low, 1, "ended before all 1 channels were granted");
	stop(&high);
	await_rows("waiting", "low", 0);
}
END_TEST

static bool shares_are_three_to_one(void *unused)
{
	struct count many = {"list", "many", 6}, few = {"list", "few", 2};

	(void)unused;
	return rows_are(&many) && rows_are(&few);
}

START_TEST(a_link_is_shared_by_weight)
{
	struct hc_child all, many, few;
	char round[16];

	hold_all(&all, "60");
	snprintf(round, sizeof(round), "%u", (hc_patience(500) + 999) / 1000);
	BESIDE(&many, "channel", "hold", "--name", "many", "--bandwidth", "100", "--count", "12",
	       "--weight", "3", "--for", round, "--wait");
	await_rows("waiting", "many", 12);
	BESIDE(&few, "channel", "hold", "--name", "few", "--bandwidth", "100", "--count", "4",
	       "--for", round, "--wait");
	await_rows("waiting", "few", 4);
	stop(&all);
	hc_await("shares of 3 to 1", shares_are_three_to_one, NULL, WAIT_MS);
	ends(&many, 0, "channel ");
	ends(&few, 0, "channel ");
}
END_TEST

START_TEST(a_killed_holder_leaves_nothing)
{
	struct hc_child c;

	hold_all(&c, "60");
	hc_child_kill(&c);
	await_rows("list", "all", 0);
	ctl("link", "show", "shm", "-o", "USED-AB,VCS-USED", "--no-headings");
	want(0, "0 0\n");
}
END_TEST

/* ---- perf ---- */

static void want_size(const json_t *row, long long bytes, long long count)
{
	ck_assert_int_eq(number(row, "bytes"), bytes);
	ck_assert_int_eq(number(row, "count"), count);
	ck_assert_int_gt(number(row, "min_ns"), 0);
	ck_assert_int_le(number(row, "min_ns"), number(row, "p50_ns"));
	ck_assert_int_le(number(row, "min_ns"), number(row, "avg_ns"));
	ck_assert_int_le(number(row, "p50_ns"), number(row, "p99_ns"));
	ck_assert_int_le(number(row, "p99_ns"), number(row, "max_ns"));
	ck_assert_int_gt(number(row, "messages_per_s"), 0);
	ck_assert(bytes ? json_is_number(json_object_get(row, "mbps"))
			: json_is_null(json_object_get(row, "mbps")));
}

START_TEST(perf_measures_every_size)
{
	struct hc_child server;
	const json_t *rows;
	json_t *root;

	BESIDE(&server, "perf", "server", "--json");
	ctl("perf", "client", "--sizes", "0,8,1M", "--iterations", "30", "--bandwidth", "100",
	    "--json");
	want(0, "\"role\":\"client\"");
	root = parse(run.out);
	ck_assert_int_eq(number(root, "mbps"), 100);
	rows = json_object_get(root, "rows");
	ck_assert_uint_eq(json_array_size(rows), 3);
	want_size(json_array_get(rows, 0), 0, 30);
	want_size(json_array_get(rows, 1), 8, 30);
	want_size(json_array_get(rows, 2), 1 << 20, 30);
	json_decref(root);
	ends(&server, 0, "\"messages\":192}"); /* 3 * (4 before + 30 + 30) */

	BESIDE(&server, "perf", "server", "--name", "again");
	ctl("perf", "client", "--name", "again", "--sizes", "64", "--iterations", "20", "-o",
	    "size,COUNT,MAX-US", "--no-headings");
	want(0, "64 20 ");
	ends(&server, 0, "served 43 messages over shm");
}
END_TEST

START_TEST(perf_does_not_wait_for_ever)
{
	struct hc_child server;

	ctl("perf", "client", "--timeout", "0.2");
	want(124, "no server 'perf' came in 200 ms");
	ctl("perf", "server", "--timeout", "0.2");
	want(124, "no client came to 'perf' in 200 ms");
	BESIDE(&server, "perf", "server", "--devices", "2,3");
	ctl("perf", "client", "--sizes", "8", "--iterations", "1");
	want(0, "channel ");
	ends(&server, 0, "served");
	ctl("perf", "server", "--devices", "2,99");
	want(1, "devices here are 0, 1, 2");
}
END_TEST

START_TEST(perf_tells_both_sides_of_a_refusal)
{
	struct hc_child all, server;

	hold_all(&all, "60");
	BESIDE(&server, "perf", "server");
	ctl("perf", "client", "--bandwidth", "100");
	want(75, "try again in ");
	ends(&server, 75, "the client got no channel: link shm has 800 of 800 MB/s");
	BESIDE(&server, "perf", "server");
	ctl("perf", "client", "--bandwidth", "100", "--wait", "--timeout", "0.3");
	want(124, "channel");
	ends(&server, 124, "the client got no channel: ");
	BESIDE(&server, "perf", "server");
	ctl("perf", "client", "--bandwidth", "801");
	want(1, "could ever carry it");
	ends(&server, 1, "could ever carry it");
	stop(&all);
}
END_TEST

static bool both_ends_are_in_use(void *unused)
{
	(void)unused;
	ctl("channel", "list", "--no-headings", "-o", "COLLECTED");
	return !strcmp(run.out, "2\n");
}

static void client_for_long(struct hc_child *c)
{
	BESIDE(c, "perf", "client", "--sizes", "8", "--iterations", "1000000");
	hc_await("the two to talk", both_ends_are_in_use, NULL, WAIT_MS);
}

START_TEST(perf_names_a_partner_that_is_killed)
{
	struct hc_child server, client;
	char name[64];

	BESIDE(&server, "perf", "server");
	client_for_long(&client);
	snprintf(name, sizeof(name), "rank 1, pid %d, exited", (int)client.pid);
	hc_child_kill(&client);
	ends(&server, 1, name);

	BESIDE(&server, "perf", "server");
	client_for_long(&client);
	snprintf(name, sizeof(name), "rank 0, pid %d, exited", (int)server.pid);
	hc_child_kill(&server);
	ends(&client, 1, name);
	/* what was left of that run goes by itself, and the next one waits for it */
	BESIDE(&server, "perf", "server");
	ctl("perf", "client", "--sizes", "8", "--iterations", "1");
	want(0, "channel ");
	ends(&server, 0, "served");
}
END_TEST

static bool waits_alone(void *arg)
{
	struct pollfd p = {.fd = ((struct hc_child *)arg)->in, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

START_TEST(a_perf_server_that_waits_can_be_stopped)
{
	struct hc_child server;

	BESIDE(&server, "perf", "server");
	hc_await("the server to wait", waits_alone, &server, WAIT_MS);
	ctl("perf", "server");
	want(75, "rank 0 is held by process");
	kill(server.pid, SIGINT);
	ends(&server, 1, "ended before a client came to 'perf'");
	ctl("domain", "list", "--no-headings", "-o", "STATE");
	want(0, "DESTROYED");
	ck_assert_ptr_null(strstr(run.out, "DAMAGED"));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, start, end);
	tcase_add_test(t, what_is_held_is_listed_and_shown);
	tcase_add_test(t, a_refusal_says_who_when_and_75);
	tcase_add_test(t, devices_that_cannot_be_had_leave_nothing);
	tcase_add_test(t, coming_again_at_the_hint_succeeds);
	tcase_add_test(t, who_waits_is_listed_by_place_and_served_by_class);
	tcase_add_test(t, a_link_is_shared_by_weight);
	tcase_add_test(t, a_killed_holder_leaves_nothing);
	tcase_add_test(t, perf_measures_every_size);
	tcase_add_test(t, perf_does_not_wait_for_ever);
	tcase_add_test(t, perf_tells_both_sides_of_a_refusal);
	tcase_add_test(t, perf_names_a_partner_that_is_killed);
	tcase_add_test(t, a_perf_server_that_waits_can_be_stopped);
}

int main(void)
{
	return hc_suite_run("ctl_channel", add, 60);
}
