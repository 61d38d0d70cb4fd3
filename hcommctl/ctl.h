/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl: what its nouns share.
 *
 * main.c takes the options that stand anywhere on the line (--json, --timeout, ...), finds the
 * command in one table and calls its function. A command returns an exit status, never calls
 * exit, writes its answer to standard output and what went wrong to standard error, one line.
 *
 * A command gets argv as main would: argv[0] is the noun, argv[1] the verb if there is one, then
 * the arguments; argv[argc] is NULL. Options that the table lists for it are taken out of argv
 * and read by ctl_opt. A command marked CTL_RAW in the table parses its own options.
 *
 * Whatever is printed from a running daemon is a view: ctl_show prints rows as a table for people
 * or as JSON through proto/print.h. There is no third form.
 */
#ifndef HC_CTL_H
#define HC_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <hcomm/hcomm.h>

/* Exit statuses: doc/hcommctl.1. ctl_exit_of gives the one of an error of the library. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_DEGRADED = 1, /* also: asked for something that is not so, or that failed */
	CTL_USAGE = 2,    /* usage, or input that is not valid */
	CTL_NO_DAEMON = 3,
	CTL_DENIED = 4,
	CTL_AGAIN = 75,
	CTL_TIMEOUT = 124
};

#define CTL_OPTIONS_MAX 16

struct ctl_given {
	const char *name;  /* without dashes */
	const char *value; /* "" for a flag */
};

struct ctl {
	bool json, no_headings;
	const char *columns;           /* -o, or NULL */
	const char *socket;            /* --socket, or NULL */
	int timeout_ms;                /* --timeout; HCOMM_DEFAULT when not given */
	uint32_t watch_ms;             /* --watch; 0 = once */
	struct hcomm_session *session; /* by ctl_open */
	struct ctl_given given[CTL_OPTIONS_MAX];
	unsigned ngiven;
};

/* ---- main.c: options and words ---- */
/* Value of an option of the command ("" for a flag), or NULL when it was not given. */
const char *ctl_opt(const struct ctl *c, const char *name);
/* Read a whole number of lo..hi. False: said why, naming `what`. */
bool ctl_number(const char *what, const char *text, uint64_t lo, uint64_t hi, uint64_t *out);
/* A time as "90", "90s", "5m", "1h", "2d" in seconds. False: said why. */
bool ctl_seconds(const char *what, const char *text, uint32_t *out);
/* Seconds as "2" or "0.25" in milliseconds, at least 1. False: said why. */
bool ctl_ms(const char *what, const char *text, uint32_t *ms);

/* ---- say.c: messages ---- */
/* "hcommctl: ..." on standard error. */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns CTL_USAGE. */
int ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Say what of a call failed, with the library's detail and when to ask again; returns its exit
 * status. */
int ctl_fail(int error, const char *what);
int ctl_exit_of(int error);
/* The word of `words` (count of them) that is nearest to `word`, or NULL when none is near. */
const char *ctl_nearest(const char *word, const char *const *words, size_t count);

/* ---- session.c ---- */
/* Open c->session if it is not open. CTL_OK, or said why. */
int ctl_open(struct ctl *c);
void ctl_close(struct ctl *c);

/* ---- table.c ---- */
/* Print the rows of a view. `columns`: headings separated by commas, of the default table; -o
 * takes its place. With --watch it repeats until interrupted. */
int ctl_show(struct ctl *c, uint32_t view, const struct hcomm_filter *filter, const char *columns);

/* ---- the nouns ---- */
typedef int ctl_fn(struct ctl *c, int argc, char **argv);
ctl_fn ctl_status;
ctl_fn ctl_domain;
ctl_fn ctl_device;
ctl_fn ctl_link;
ctl_fn ctl_node;
ctl_fn ctl_path;
ctl_fn ctl_port;
ctl_fn ctl_preflight;
ctl_fn ctl_channel;
ctl_fn ctl_perf;
ctl_fn ctl_client;
ctl_fn ctl_setting;
ctl_fn ctl_event;
ctl_fn ctl_explain;
ctl_fn ctl_version;
ctl_fn ctl_admin;
ctl_fn ctl_drain;
ctl_fn ctl_ranktable;
ctl_fn ctl_topology;
ctl_fn ctl_config;
ctl_fn ctl_key;

#endif
