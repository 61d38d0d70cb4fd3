/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop: events into the core, actions out, one timer.
 *
 * A turn of the loop waits for descriptors, lets each feed its events to the core, and at its end
 * sends what was packed for each client. The core says when it wants to be called again; the one
 * timer is set only when that has changed, and "at once" becomes a step in every turn, between
 * the others' events.
 *
 * Actions are performed in their order. What an action gives back at once (the sample of an
 * arena) is queued and fed when the step is over, so a step never runs inside of another.
 */
#ifndef HC_LOOP_H
#define HC_LOOP_H

#include <event2/event.h>
#include "core.h"
#include "ctl.h"
#include "nodepages.h"
#include "registers.h"
#include "store.h"

struct hc_loop;
struct hc_loopnet;

struct hc_loop_args {
	struct event_base *base;
	struct hc_limits limits;
	struct hc_self self;
	struct hc_settings settings;
	struct hc_pages *pages;
	struct hc_registers *registers;
	void (*on_tick)(void *arg, uint64_t now_ns); /* every second, or more often */
	void (*on_signal)(void *arg, int signal_number);
	void *arg;
};

/* 0 or a negative errno. The store and the client socket are given later, before the start. */
int hc_loop_new(const struct hc_loop_args *args, struct hc_loop **loop);
void hc_loop_free(struct hc_loop *loop);
void hc_loop_set_store(struct hc_loop *loop, struct hc_store *store);
void hc_loop_set_ctl(struct hc_loop *loop, struct hc_ctl *ctl);
/* What performs the actions for other nodes; NULL: they are dropped, this node is alone. */
void hc_loop_set_net(struct hc_loop *loop, struct hc_loopnet *net);

uint64_t hc_loop_now(void);
/* Runs until hc_loop_stop. 0 or a negative errno. */
int hc_loop_run(struct hc_loop *loop);
void hc_loop_stop(struct hc_loop *loop);

/* Events. Never from inside of an action. */
void hc_loop_event(void *loop, const struct hc_event *ev);
/* The same at the time that hc_loop_clock read: for those that come together. */
void hc_loop_event_now(void *loop, const struct hc_event *ev);
void hc_loop_expect(struct hc_loop *loop, uint32_t rows, size_t bytes);
void hc_loop_row(struct hc_loop *loop, struct hc_str row);
void hc_loop_channel_row(struct hc_loop *loop, struct hc_str row);
void hc_loop_begin(struct hc_loop *loop);
void hc_loop_hello(struct hc_loop *loop, uint64_t session, const struct hc_frame *frame,
		   const struct hc_cred *cred);
/* Reads the clock for the requests that follow: those of one packet come at one time. */
void hc_loop_clock(void *loop);
void hc_loop_request(struct hc_loop *loop, uint64_t session, const struct hc_frame *frame,
		     const struct hc_roster *roster);
/* A request with the sync page that it brings back, or -1; the caller closes it. */
void hc_loop_bring(struct hc_loop *loop, uint64_t session, const struct hc_frame *frame, int fd);
void hc_loop_lost(struct hc_loop *loop, uint64_t session);
void hc_loop_dead(struct hc_loop *loop, uint32_t pid, uint64_t started);
void hc_loop_device(struct hc_loop *loop, const struct hc_device_fact *fact);
void hc_loop_link(struct hc_loop *loop, const struct hc_link_fact *fact);
void hc_loop_settings(struct hc_loop *loop, const struct hc_settings *settings);
void hc_loop_persisted(void *loop, uint64_t seq);
/* How many events the session did not read in time, in all. */
void hc_loop_unread(struct hc_loop *loop, uint64_t session, uint64_t events);
void hc_loop_storage(void *loop, uint64_t kept); /* as hc_store_start calls it */

void hc_loop_counts(const struct hc_loop *loop, struct hc_core_counts *counts);
void hc_loop_away(const struct hc_loop *loop, struct hc_core_away *away);
/* Does the kernel carry references without locked instructions? */
bool hc_loop_fences(const struct hc_loop *loop);

#endif
