/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log records: one line each, to standard error or to the journal.
 *
 * Text from outside is escaped here, at the last door, so no caller can forget it. A flood of one
 * kind of record must not hide the others nor cost the main loop its time: of each kind at most
 * `rate` are written in a second; what was held back is counted and told by the next record of
 * that kind, or by the tick. The kind of a record is its format string, or the code of an event.
 *
 * There is one log in a process, as there is one standard error. Any thread may log.
 */
#ifndef HC_LOG_H
#define HC_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include "core.h"

enum hc_log_target { HC_LOG_AUTO, HC_LOG_STDERR, HC_LOG_JOURNAL };

#define HC_LIMIT_KINDS 256u

struct hc_limit_kind {
	uint64_t kind; /* 0 = free */
	uint64_t second;
	uint32_t passed, held;
};
/* Judges one kind at a time; pure, time comes in. */
struct hc_log_limit {
	struct hc_limit_kind kinds[HC_LIMIT_KINDS];
};
/* May a record of `kind` be written at `now_ns`? *held: records of it held back before this one. */
bool hc_log_limit_pass(struct hc_log_limit *limit, uint64_t kind, uint32_t rate, uint64_t now_ns,
		       uint32_t *held);

void hc_log_open(enum hc_log_target target, enum hc_level level, uint32_t rate);
/* Write to this descriptor instead of standard error; for tests. */
void hc_log_to(int fd);
void hc_log_set(enum hc_level level, uint32_t rate);
enum hc_level hc_log_level(void);

void hc_log(enum hc_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct hc_log_about {
	uint16_t code; /* HC_W_event_code_*, or 0 */
	uint64_t domain;
	uint32_t rank; /* HC_NONE: no rank */
};
void hc_log_event(enum hc_level level, const struct hc_log_about *about, struct hc_str text);

/* Once a second: tells of records held back whose kind has fallen silent. */
void hc_log_tick(void);

#endif
