/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon says of other nodes: rows of its views, its journal, and events as they come.
 *
 * Rows are asked for by a session of their own, so a daemon may be restarted between two of them.
 * An eye is a subscriber: it keeps the events in the order in which they came and the time at
 * which it saw each. It ends with the daemon that it watches.
 */
#ifndef HC_EYE_H
#define HC_EYE_H

#include <hcomm/hcomm.h>
#include <hcomm/views.h>

#include "harness.h"
#include "wire.h"

/* The row of the node of that name. False: there is none. */
bool hc_row_node(const struct hc_node *n, const char *name, struct hcomm_view_node *row);
/* The first path whose remote end begins with that. */
bool hc_row_path(const struct hc_node *n, const char *remote, struct hcomm_view_path *row);
void hc_row_status(const struct hc_node *n, struct hcomm_view_status *row);
bool hc_row_domain(const struct hc_node *n, uint64_t id, struct hcomm_view_domain *row);
/* How many devices a process has. */
unsigned hc_devices_held(const struct hc_node *n);

/* Wait for a state; at the deadline fail with the last row. */
void hc_await_node(const struct hc_node *n, const char *name, const char *state,
		   unsigned deadline_ms);
void hc_await_path(const struct hc_node *n, const char *remote, const char *state,
		   unsigned deadline_ms);

/* Wait until so many more frames have left on that path: what a test waits for in place of time. */
void hc_await_sent(const struct hc_node *n, const char *remote, uint64_t more,
		   unsigned deadline_ms);

/* Entries of the journal of that kind (HC_W_event_code_*), with that text if it is not NULL. */
unsigned hc_journal_count(const struct hc_node *n, unsigned code, const char *text);
void hc_await_journal(const struct hc_node *n, unsigned code, const char *text,
		      unsigned deadline_ms);
/* The text of the last one, or "". */
const char *hc_journal_last(const struct hc_node *n, unsigned code);

enum { EYE_EVENTS = 512 };

struct hc_eye {
	struct hcomm_session *session;
	unsigned count;
	struct hc_seen {
		unsigned code;
		uint64_t at_ns;
		char text[HCOMM_TEXT_BYTES];
	} seen[EYE_EVENTS];
};

void hc_eye_open(struct hc_eye *e, const struct hc_node *n);
void hc_eye_close(struct hc_eye *e);
/* The first event of that kind with that text (NULL: any), seen already or until the deadline, at
 * which the test fails with all that was seen. */
const struct hc_seen *hc_eye_await(struct hc_eye *e, unsigned code, const char *text,
				   unsigned deadline_ms);
/* How many are there by now. */
unsigned hc_eye_count(struct hc_eye *e, unsigned code);
/* Forget what was seen. */
void hc_eye_blink(struct hc_eye *e);

#endif
