/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and processes: who is there, and who is gone.
 *
 * A session that closes leaves the seats of its process detached; only the death of the process
 * (told by the kernel through its pidfd) ends memberships. The seats of a dead process are let go
 * a few in each step, so that one process with thousands of domains stalls nobody.
 */
#ifndef HC_SESSION_H
#define HC_SESSION_H

#include "state.h"

/* The open session of that id, or NULL. */
struct hc_session *hc_session_get(struct hc_core *c, uint64_t id);

/* Requests: hello, ping, subscribe. */
void hc_session_hello(struct hc_core *c, const struct hc_event *ev);
void hc_session_subscribe(struct hc_core *c, struct hc_session *s, uint32_t request,
			  const struct hc_m_subscribe *m);

/* So many events were dropped since it did not read them; shown in the view. */
void hc_session_unread(struct hc_core *c, uint64_t id, uint64_t events);
void hc_session_lost(struct hc_core *c, uint64_t id);
void hc_session_dead(struct hc_core *c, uint32_t pid, uint64_t started);
/* Let one seat of a dead process go; false when there is none left to do. */
bool hc_session_reap(struct hc_core *c);

/* A block of the session's arena, or HC_NONE. */
uint32_t hc_session_block(struct hc_core *c, struct hc_session *s);
void hc_session_block_free(struct hc_core *c, uint64_t session, uint32_t block);

/* The process, entered if it is new to the core (*fresh); HC_NONE when there are too many. */
uint32_t hc_session_process(struct hc_core *c, const struct hc_cred *cred, bool *fresh);
/* A seat belongs to a process that has no session yet. */
void hc_session_hold(struct hc_core *c, uint32_t seat, uint32_t process);
/* Mark a block as used; false when it is taken or no block. */
bool hc_session_block_claim(struct hc_session *s, uint32_t block);
/* A seat takes or loses its process and session. */
void hc_session_bind(struct hc_core *c, uint32_t seat, struct hc_session *s);
void hc_session_unbind(struct hc_core *c, uint32_t seat);

#endif
