/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ways into a domain share, on the side of the client.
 *
 * part_join.c   one rank: root info, rank table, sub-domain, staged, attach
 * part_many.c   several ranks of one process at once: all local devices, the item of a batch
 * part_batch.c  a request for many sub-domains, item by item, and its one answer
 *
 * A join that is refused is answered at once: a request of its own by an error, the item of a
 * batch by its outcome in the batch's answer.
 */
#ifndef HC_JOIN_H
#define HC_JOIN_H

#include "part.h"

struct join {
	struct hc_session *s;
	uint32_t request; /* of a batch: the item's number, see part_batch.c */
	uint64_t key_a, key_b, id, list_a, list_b, entry, parent;
	struct hc_str name;
	uint32_t nranks, rank, device, timeout_ms;
	const struct hc_addr *addr;
	bool shared;
	bool batch;
	uint8_t priority, weight;
	struct hc_wish wish;
	uint32_t home; /* node */
};

/* One of several ranks that come together. */
struct hc_comer {
	uint32_t rank, device;
	bool shared;
};

void hc_join_refuse(struct hc_core *c, const struct join *j, int code, const char *text);
/* Key and list hash of a sub-domain: the same for a request of its own and the item of a batch. */
void hc_join_sub_key(struct join *j, uint64_t parent, uint32_t epoch, uint64_t sub_id,
		     struct hc_str list, uint32_t count);
/* One rank, whose home is known and there: to its seat, or refused. */
void hc_join_one(struct hc_core *c, struct join *j);
/* What every way must satisfy. 0, or the outcome with the reason. */
int hc_join_check(struct hc_core *c, const struct join *j, char *text, size_t bytes);
/* The part that these joiners have in common, made by the first; NULL: refused. */
struct hc_part *hc_join_part(struct hc_core *c, const struct join *j);
enum hc_again {
	AGAIN_NO,      /* nobody has this rank here */
	AGAIN_SEATED,  /* the same process: its seat waits for this request now, or is answered */
	AGAIN_REFUSED, /* answered */
};
enum hc_again hc_join_again(struct hc_core *c, struct hc_part *p, const struct join *j);
/* The rank waits by the home's connect_timeout_s: its session and the log hear of it when the
 * value of this node is another. */
void hc_join_tell_limit(struct hc_core *c, const struct hc_part *p, const struct hc_m_verdict *m);
/* The domain formed, and this process was not told: it is now, when all of the list stand there. */
bool hc_join_back_together(struct hc_core *c, const struct join *j, const struct hc_comer *list,
			   uint32_t n);
/* All of the list (in c->scratch or elsewhere) or none; they arrive at the home together. */
int hc_join_together(struct hc_core *c, struct join *j, const struct hc_comer *list, uint32_t n);

#endif
