/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of hcommctl have in common: a node, the last run, and what is wanted of it.
 */
#ifndef HC_CTLTEST_H
#define HC_CTLTEST_H

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

#define RANKS   8
#define WAIT_MS 15000

static struct hc_node node;
static struct hc_run run;

static inline void with_daemon(void)
{
	unsetenv("NO_COLOR");
	hc_node_start(&node, RANKS, NULL);
}

static inline void daemon_ends(void)
{
	hc_node_end(&node);
}

/* A node that was never started: its socket is not there. */
static inline void without_daemon(void)
{
	hc_node_prepare(&node, RANKS, NULL, NULL);
}

#define ctl(...) hc_ctl(&run, &node, __VA_ARGS__, (char *)NULL)

static inline void want_status(int status)
{
	if (run.status != status)
		hc_fail("exit status %d, wanted %d; out: %s err: %s", run.status, status, run.out,
			run.err);
}

/* One line on standard error that has `text`. */
static inline void want_line(const char *text)
{
	const char *end = strchr(run.err, '\n');

	if (strncmp(run.err, "hcommctl: ", 10) || !end || end[1] || !strstr(run.err, text))
		hc_fail("wanted one line with '%s', got: %s", text, run.err);
}

static inline json_t *parse(void)
{
	json_error_t e;
	json_t *root = json_loadb(run.out, run.out_bytes, JSON_REJECT_DUPLICATES, &e);

	if (!root)
		hc_fail("no JSON: %s at %d:%d in %s", e.text, e.line, e.column, run.out);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema_version")), 1);
	return root;
}

#endif
