/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verdict: what a check found, for people and for programs.
 *
 * Each reader of proto/file fills one. kind NONE means accepted, and `message` then says what
 * was understood; anything else says what was found, where, and what is wanted. Warnings do not
 * refuse a file; a bounded number is kept and the rest is counted.
 *
 * All texts in it are safe to print: hc_escape has been over them, so bytes from the file can
 * neither move a cursor nor break a log line, and they are always valid UTF-8.
 */
#ifndef HC_VERDICT_H
#define HC_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include "verdict.tbl.h"

enum hc_verdict_kind {
	HC_V_NONE,
#define X(sym, name, text) HC_V_##sym,
	HC_VERDICT_KINDS(X)
#undef X
		HC_V_COUNT
};

#define HC_WARNINGS_MAX 8

struct hc_warning {
	enum hc_verdict_kind kind;
	char path[256];
	uint32_t line, column;
	char message[256];
};

struct hc_verdict {
	enum hc_verdict_kind kind;
	char path[256];        /* like server_list[1].device[0].device_ip; "" = the whole file */
	uint32_t line, column; /* 1-based; 0 = no place; a column is a character, not a byte */
	char found[128];
	char wanted[128];
	char message[512];
	uint32_t nwarnings;  /* how many of warnings[] are filled */
	uint32_t suppressed; /* how many more there were */
	struct hc_warning warnings[HC_WARNINGS_MAX];
};

/* What every reader returns: 0 accepted; this when refused or not ready (the verdict says why);
 * a negative errno when the system failed (the verdict is UNREADABLE and says it as well). */
#define HC_FILE_REFUSED 1

/* Escaped copies of outside text in messages: hc_clip(&(struct hc_clip){0}, text). */
struct hc_clip {
	char s[80];
};

void hc_verdict_init(struct hc_verdict *v);
void hc_verdict_set(struct hc_verdict *v, enum hc_verdict_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void hc_verdict_detail(struct hc_verdict *v, const char *path, const char *found,
		       const char *wanted);
/* The slot of a new warning, or NULL (and counted) when the list is full. */
struct hc_warning *hc_verdict_warn(struct hc_verdict *v, enum hc_verdict_kind kind, const char *fmt,
				   ...) __attribute__((format(printf, 3, 4)));
/* The verdict of a failed system call. Returns -err. */
int hc_verdict_system(struct hc_verdict *v, int err, const char *what);

const char *hc_verdict_name(enum hc_verdict_kind kind); /* "" for NONE */
const char *hc_verdict_about(enum hc_verdict_kind kind);
const char *hc_verdict_outcome(const struct hc_verdict *v); /* accept, reject, not-ready */

/* One line without a newline: FILE:LINE:COL: kind: message. Returns the bytes written. */
size_t hc_verdict_line(const struct hc_verdict *v, const char *file, char *buf, size_t size);
size_t hc_warning_line(const struct hc_warning *w, const char *file, char *buf, size_t size);
/* A new JSON object, or NULL without memory. */
json_t *hc_verdict_json(const struct hc_verdict *v, const char *file);

/*
 * Copies text so that it is printable UTF-8: control characters, invalid bytes and characters
 * that steer a terminal or the writing direction become \xNN. What does not fit is cut at a
 * character and ends with "...". Doing it twice changes nothing.
 */
size_t hc_escape(char *dst, size_t size, const char *src, size_t len);
const char *hc_clip(struct hc_clip *c, const char *text);
#define HC_CLIP(text) hc_clip(&(struct hc_clip){{0}}, (text))

#endif
