/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting actions out: one function for each kind, over the tables' encoder.
 *
 * Every step begins with room (hc_emit_room) for what one unit of work may put out; running out
 * inside of a unit is a bug of ours, not a condition.
 */
#ifndef HC_EMIT_H
#define HC_EMIT_H

#include "state.h"

#define HC_SPARE_ACTIONS 80u
/* the largest of: a row of the database (31 bytes a member, 153 a far node, and its head); the
 * answer to a batch */
#define HC_ROW_BYTES(c)   ((c)->lim.ranks_per_domain * (31u + 153u) + 8192u)
#define HC_SPARE_BYTES(c) (HC_ROW_BYTES(c) > 81920u ? HC_ROW_BYTES(c) : 81920u)

/* Room for one more unit of work: some actions, and the bytes of a large row. */
static inline bool hc_emit_room(const struct hc_core *c)
{
	return c->out->count + HC_SPARE_ACTIONS <= HC_OUT_ACTIONS &&
	       c->out->used + HC_SPARE_BYTES(c) <= HC_OUT_BYTES;
}

/* snprintf into an array. Cut when too long, always terminated. */
#define HC_TEXT(buf, ...) ((void)snprintf(buf, sizeof(buf), __VA_ARGS__))

void hc_emit_reply(struct hc_core *c, uint64_t session, uint32_t request, const struct hc_desc *d,
		   const void *msg);
/* As reply, with a descriptor: the arena, or slab `slab` of `uid`. */
void hc_emit_grant(struct hc_core *c, uint64_t session, uint32_t request, const struct hc_desc *d,
		   const void *msg, enum hc_grant grant, uint32_t uid, uint32_t slab);
void hc_emit_error(struct hc_core *c, uint64_t session, uint32_t request, int code,
		   const char *text);
/* Who tries what is not allowed is told to the operator, with the user's number. */
void hc_emit_refusal(struct hc_core *c, uint64_t session, int code, const char *text);
/* AGAIN, with when to come again. */
void hc_emit_again(struct hc_core *c, uint64_t session, uint32_t request, uint32_t retry_ms,
		   const char *text);
void hc_emit_refused(struct hc_core *c, uint64_t session, uint32_t request,
		     const struct hc_m_channel_refused *m);
void hc_emit_done(struct hc_core *c, uint64_t session, uint32_t request, uint64_t value,
		  const char *text);
void hc_emit_event(struct hc_core *c, uint64_t session, const struct hc_m_event *e);
/* An event that this step has told already, to one more session; and the last action so far. */
void hc_emit_same(struct hc_core *c, uint64_t session, const struct hc_action *event);
const struct hc_action *hc_emit_last(const struct hc_core *c);

/* A message to a node; to this node itself it goes through the ring. */
void hc_emit_send(struct hc_core *c, uint32_t node, const struct hc_desc *d, const void *msg);
/* Take the oldest message of the ring; its bytes are valid until the next call. */
bool hc_emit_ring(struct hc_core *c, struct hc_frame *f);
bool hc_emit_ring_spare(const struct hc_core *c);
/* Room for `bytes`, and the spare after them. */
bool hc_emit_ring_holds(const struct hc_core *c, uint32_t bytes);

/* Store; returns the number that PERSISTED will bring. */
uint64_t hc_emit_del_domain(struct hc_core *c, uint64_t id);
uint64_t hc_emit_put_domain(struct hc_core *c, uint64_t id, const struct hc_m_domain_row *row);
void hc_emit_put_channel(struct hc_core *c, uint64_t id, const struct hc_m_channel_row *row);
void hc_emit_del_channel(struct hc_core *c, uint64_t id);
uint64_t hc_emit_journal(struct hc_core *c, uint16_t kind, uint64_t domain, uint32_t epoch,
			 uint32_t rank, uint32_t pid, uint32_t uid, const char *text);

/* There may be a thousand at once: nothing is cleared that they do not use. */
void hc_emit_datagram(struct hc_core *c, uint32_t peer, const struct hc_endpoint *to,
		      const struct hc_addr *from, bool urgent, const struct hc_desc *d,
		      const void *msg);
struct hc_action *hc_emit_action(struct hc_core *c, enum hc_action_kind kind);
void hc_emit_log(struct hc_core *c, enum hc_level level, uint16_t code, uint64_t domain,
		 uint32_t rank, const char *text);

#endif
