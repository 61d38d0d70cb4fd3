/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 34: dead interfaces pile up in the state.
 *
 * Containers come and go; a daemon that stores each of their interfaces scans them all for ever.
 * Here 2,500 of them leave nothing: no row, no memory, and the next start takes as long as the
 * first. In the short form there are fewer.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "suite.h"

static struct hc_hosts h;

static unsigned memory_kib(void)
{
	char path[64], *status, *at;
	unsigned kib;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)h.a.pid);
	status = hc_read_file(path);
	ck_assert_ptr_nonnull(status);
	at = strstr(status, "RssAnon:");
	ck_assert_ptr_nonnull(at);
	kib = (unsigned)strtoul(at + 8, NULL, 10);
	free(status);
	return kib;
}

static int on_row(void *total, int n, char **values, char **names)
{
	(void)n;
	(void)names;
	*(unsigned *)total += (unsigned)strtoul(values[0], NULL, 10);
	return 0;
}

/* Rows of all tables but the journal's; the daemon that has the file to itself is stopped. */
static unsigned rows(void)
{
	static const char *const counts[] = {"select count(*) from domain",
					     "select count(*) from channel",
					     "select count(*) from meta"};
	char path[200];
	unsigned total = 0, i;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/state/state.db", h.a.dir);
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(sqlite3_exec(db, counts[i], on_row, &total, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				      "select count(*) from event where text like '% w1%' or "
				      "text like '% v1%'",
				      on_row, &total, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	return total;
}

/* One after the other, as containers start and end. */
static void churn(unsigned count)
{
	char lines[50 * 100];
	unsigned i, k;
	size_t n;

	for (i = 0; i < count; i += 25) {
		for (n = 0, k = 0; k < 25; k++)
			n += (size_t)snprintf(lines + n, sizeof(lines) - n,
					      "link add v%u type veth peer name w%u\n"
					      "link set v%u up\nlink set w%u up\nlink del v%u\n",
					      i + k, i + k, i + k, i + k, i + k);
		hc_ip("%s", lines);
	}
}

static uint64_t start_ms(void)
{
	uint64_t since = hc_now_ms();

	hc_node_run(&h.a);
	return hc_now_ms() - since;
}

START_TEST(they_leave_no_trace)
{
	unsigned before, kib;
	uint64_t first;

	if (!hc_hosts_prepare(&h, NULL, NULL))
		return;
	hc_hosts_join(&h);
	hc_node_run(&h.b);
	hc_node_run(&h.a);
	hc_node_stop(&h.a);
	before = rows();
	first = start_ms();
	hc_path_await(&h.a, "hB", "normal", 10000);
	churn(100);
	kib = memory_kib();
	churn(hc_long() ? 2500 : 300);
	ck_assert_uint_le(memory_kib(), kib + 1024);
	ck_assert(hc_path_is(&h.a, "hB", "normal"));
	hc_node_stop(&h.a);
	ck_assert_uint_eq(rows(), before);
	ck_assert_uint_le(start_ms(), first + hc_patience(100));
	hc_hosts_end(&h);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, they_leave_no_trace);
}

int main(void)
{
	return hc_suite_run("case 34", add, hc_long() ? 300 : 60);
}
