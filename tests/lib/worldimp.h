/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the world share; see world.h. */
#ifndef HC_WORLDIMP_H
#define HC_WORLDIMP_H

#include "world.h"

/* A PERSIST that was asked for. */
struct world_row {
	uint64_t id, seq;
	uint32_t node;
	uint8_t what;  /* enum hc_persist */
	uint8_t state; /* of a domain */
	uint8_t *bytes;
	uint32_t len;
};

/* A SCAN that was asked for. */
struct world_scan {
	uint64_t session, domain;
	uint32_t node, epoch, rank, block, pid;
};

const char *world_name(uint32_t node);
void *world_grow(void *at, uint32_t count, uint32_t *cap, size_t size);
void world_line(struct world *w, unsigned kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct world_client *world_client_of(struct world *w, uint32_t node, uint64_t session);
void world_event(struct world *w, uint32_t node, const struct hc_event *ev);
void world_add_seat(struct world *w, struct world_client *cl, const struct hc_m_seat *r);

/* worldlife.c */
struct world_dead *world_knows_dead(struct world *w, uint32_t node, uint32_t pid);
void world_watch(struct world *w, uint32_t node, const struct hc_action *a);

/* worldask.c */
void world_got_batch(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *name, const char *label);

/* worldcheck.c */
void world_persist(struct world *w, uint32_t node, const struct hc_action *a);
/* The node has the row of an active domain in its store. */
bool world_is_stored(const struct world *w, uint32_t node, uint64_t id);
/* That row is what the database holds of its domain. */
bool world_last_row(const struct world *w, uint32_t node, uint32_t at);
/* What the record says is stored, or a death that a restarted daemon would find again. */
bool world_may_publish(struct world *w, uint32_t node, const struct world_record *r);

#endif
