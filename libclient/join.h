/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining: shared by join.c (the answer), ways.c and table.c (the requests).
 */
#ifndef HC_JOIN_H
#define HC_JOIN_H

#include "client.h"

/* A time-out argument: *ms for the daemon (0 = its setting), *deadline for us. INVALID. */
int hc_timeout(const struct hcomm_session *s, int timeout_ms, uint32_t usual_ms, uint32_t *ms,
	       uint64_t *deadline);

/* How long a join that was begun now may take. */
uint64_t hc_join_until(const struct hcomm_session *s);

struct hc_wishes {
	uint8_t shared, priority, weight;
	uint8_t channel_wait;
	uint32_t channels, channel_mbps, channel_hold_ms;
	struct hc_str name, server;
};
/* The wishes for channels, in a message that has them. */
#define HC_WISH_CHANNELS(m, w)                                                                     \
	do {                                                                                       \
		(m)->channels = (w)->channels;                                                     \
		(m)->channel_mbps = (w)->channel_mbps;                                             \
		(m)->channel_hold_ms = (w)->channel_hold_ms;                                       \
		(m)->channel_wait = (w)->channel_wait;                                             \
	} while (0)
/* For ways of joining whose requests have no room for them: NOT_SUPPORTED. */
int hc_wishes_no_channels(const struct hc_wishes *w);
int hc_wishes(const struct hcomm_config *config, struct hc_wishes *w);

/* A request that is answered by `joined`. */
struct hc_join {
	const struct hc_desc *desc;
	const void *msg;
	int pass;              /* descriptor to send along, or -1 */
	uint32_t rank, nranks; /* as far as known */
	int timeout_ms;        /* the caller's: HCOMM_START does not wait */
	uint64_t deadline;
};
/* How long to wait for the answer to a request that waits for other ranks. */
void hc_join_limit(const struct hcomm_session *s, int timeout_ms, struct hc_request *q);
/* Send it and make the domain of the answer; takes the lock. 0, IN_PROGRESS (*domain is valid
 * in both), or why not. */
int hc_join_run(struct hcomm_session *s, const struct hc_join *j, hcomm_domain *domain);

/* The rest with the lock held. Make a domain of a good answer. */
int hc_join_take(struct hcomm_session *s, struct hc_domain *d, struct hc_call *c);
/* The end of a join without a waiter: take it, or fail, and queue the event. */
void hc_join_finish(struct hcomm_session *s, hcomm_domain handle, struct hc_call *c);
/* It ended well without a domain: queue the event, end the handle. */
void hc_join_none(struct hcomm_session *s, hcomm_domain handle, const char *text);

/* What an answer speaks of: the record of a domain, or NULL; a seat in the op arena. */
const struct hc_page_record *hc_join_record(const struct hcomm_session *s, uint64_t id,
					    uint32_t slot);
int hc_join_seat(const struct hcomm_session *s, uint32_t nranks, const struct hc_m_seat *seat,
		 struct hc_ops_seat *out);
/* Ask for a membership to be ended that has no handle. */
void hc_join_give_back(struct hcomm_session *s, uint64_t id, uint32_t epoch, uint32_t rank);
/* A late answer to a batch (batch.c). */
void hc_batch_stray(struct hcomm_session *s, const struct hc_m_batch_r *m);

/* Where a sub-domain, a split or a batch starts from (ways.c). */
struct hc_parent {
	struct hcomm_session *session;
	uint64_t id;
	uint32_t epoch, rank, nranks, nseats;
};
/* several: may it be a domain that this process joined with several ranks? */
int hc_parent_get(hcomm_domain handle, bool several, struct hc_parent *p);

/* Send a request whose answer nobody waits for. */
int hc_call_fire(struct hcomm_session *s, uint16_t want, const struct hc_desc *desc,
		 const void *msg);

#endif
