/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins whose home is another node that is not there yet.
 *
 * A rank comes with a root info or a rank table. The root info names its home by identity and says
 * where that node listens; the table names the server of rank 0, whose node is, in this order:
 *
 *   1. the node of that name, this one included
 *   2. the node that has the server's host_ip, or the address of one of its devices: of the peers
 *      by what they announce, of this one by the ports in use
 *   3. whoever answers at host_ip, at the port where this daemon listens itself
 *
 * Where the home is known and UP the join goes on at once. Else the request waits here, untouched,
 * while the home is dialled if somebody said where: as a peer without a section, which is dropped
 * again when the last join has gone that wants it and it never answered. Whenever a peer comes or
 * says what addresses it has, those who wait are looked at again; at its deadline a join is told
 * who did not come, where that was looked for, and what was found there.
 *
 * A node that works alone can meet nobody: there the join goes to its own home and waits in that.
 */
#ifndef HC_SEEK_H
#define HC_SEEK_H

#include "join.h"

/* The home that is looked for. */
struct hc_goal {
	bool root;                  /* by identity: a root info */
	uint8_t id[16];             /* root */
	uint32_t start;             /* root: start number of its daemon then */
	char name[HC_NAME_MAX + 1]; /* of the node or server; a longer one is nobody's */
	struct hc_addr host;        /* table: host_ip, family 0 = none */
	struct hc_endpoint at[HC_NODE_ENDPOINTS]; /* where to dial */
	uint32_t nat;
};

void hc_seek_lay_out(struct hc_core *c, struct hc_mem *m, const struct hc_limits *lim);
/* The goal of a table's server. */
void hc_seek_server(const struct hc_core *c, const struct hc_roster *t, uint32_t server,
		    struct hc_goal *goal);
/* The node of a goal, without dialling; HC_NONE: nobody that is known. */
uint32_t hc_seek_node(struct hc_core *c, const struct hc_goal *goal, const struct join *j);
/* Goes on with hc_join_one as soon as the home is there, or refuses. */
void hc_seek_join(struct hc_core *c, struct join *j, const struct hc_goal *goal);
/* A peer is up, or announces other addresses. */
void hc_seek_again(struct hc_core *c);
bool hc_seek_work(struct hc_core *c);
void hc_seek_timeout(struct hc_core *c);
void hc_seek_session_lost(struct hc_core *c, uint64_t session);
/* The slot `from` of a peer is free now: `to` is what was in it, HC_NONE = nobody. */
void hc_seek_moved(struct hc_core *c, uint32_t from, uint32_t to);
static inline uint32_t hc_seek_timer(const struct hc_core *c)
{
	return 2 * c->lim.domains + HC_GATHERS + 1;
}

#endif
