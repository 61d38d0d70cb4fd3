/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: clients of this node that wait for an answer of a home, here or elsewhere. */
#ifndef HC_ASK_H
#define HC_ASK_H

#include "state.h"

/* A ticket, never 0; or 0 when too many wait. */
uint64_t hc_ask_open(struct hc_core *c, uint64_t session, uint32_t request);
/* Answer the client (when it is still there) and forget the ticket. An unknown one is fine. */
void hc_ask_answer(struct hc_core *c, uint64_t ticket, int code, const char *text);
/* Who that was, and forget the ticket; false when it is unknown or the client has gone. */
bool hc_ask_take(struct hc_core *c, uint64_t ticket, uint64_t *session, uint32_t *request);
void hc_ask_drop(struct hc_core *c, uint64_t ticket);
/* Number `n`, which stands in a list of a home or a part. */
void hc_ask_forget(struct hc_core *c, struct hc_list *asks, uint32_t n);
/* It is that node which answers; leaves: for a rank that is out even when nobody answers. */
void hc_ask_to(struct hc_core *c, uint64_t ticket, uint32_t node, bool leaves);
/* What it is asked, without strings: it is repeated when that node begins anew. */
void hc_ask_keep(struct hc_core *c, uint64_t ticket, const struct hc_desc *d, const void *msg);
/* The answer is to wait for this node's own row, too. */
void hc_ask_after(struct hc_core *c, uint64_t ticket, uint64_t stored);
void hc_ask_on_answer(struct hc_core *c, const struct hc_m_control_r *m);
/* Number `n` of all is asked again, when it is that node which answers. */
bool hc_ask_again(struct hc_core *c, uint32_t n, uint32_t node);
/* Answer those whose node was lost; false when there was no room for all. */
bool hc_ask_lost(struct hc_core *c);

#endif
