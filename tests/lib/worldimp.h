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
uint32_t world_ask_with(struct world *w, struct world_client *cl, const char *label,
			const struct hc_desc *d, const void *msg, struct hc_event *ev);
uint32_t world_ask(struct world *w, struct world_client *cl, const char *label,
		   const struct hc_desc *d, const void *msg);
void world_got_batch(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *name, const char *label);

/* worldsync.c */
void world_got_value(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *name, const char *label);
void world_got_sync(struct world *w, struct world_client *cl, const struct hc_frame *f,
		    const char *name, const char *label);
void world_sync(struct world *w, uint32_t node, const struct hc_action *a);
void world_grant_sync(struct world *w, uint32_t node, const struct hc_action *a);
void world_check_sync(struct world *w, uint32_t node);

/* worldcheck.c */
void world_persist(struct world *w, uint32_t node, const struct hc_action *a);
/* The node has the row of an active domain in its store. */
bool world_is_stored(const struct world *w, uint32_t node, uint64_t id);
/* worldchan.c */
void world_tell_link(struct world *w, uint32_t node, const struct hc_link_fact *fact);
void world_got_grants(struct world *w, struct world_client *cl, const struct hc_frame *f,
		      const char *node, const char *label);
void world_got_refused(struct world *w, struct world_client *cl, const struct hc_frame *f,
		       const char *node, const char *label);
void world_got_open(struct world *w, struct world_client *cl, const struct hc_frame *f,
		    const struct hc_action *a, const char *node, const char *label);

/* worldcheck.c */
/* That row is what the database holds of its domain, or channel. */
bool world_last_row(const struct world *w, uint32_t node, uint32_t at, uint8_t what);
/* What the record says is stored, or a death that a restarted daemon would find again. */
bool world_may_publish(struct world *w, uint32_t node, const struct world_record *r);

#endif
