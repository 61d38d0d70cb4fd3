/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of peers look at, in cores of a simulated network. */
#ifndef HC_PEERING_H
#define HC_PEERING_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "simimp.h"

/* What `node` holds of `of`; NULL when it does not know it. */
static inline struct hc_peer *peering_get(struct sim *s, uint32_t node, uint32_t of)
{
	struct hc_core *c = sim_core(s, node);
	uint8_t id[16];
	uint32_t peer;

	sim_identity(s, of, id);
	peer = c ? hc_peer_find(c, id) : HC_NONE;
	return peer == HC_NONE ? NULL : hc_peer_get(c, peer);
}

static inline uint8_t peering_state(struct sim *s, uint32_t node, uint32_t of)
{
	const struct hc_peer *p = peering_get(s, node, of);

	return p ? p->state : (uint8_t)HC_W_node_state_UNKNOWN;
}

/* Connections of a node, whatever their state. */
static inline uint32_t peering_conns(struct sim *s, uint32_t node)
{
	return sim_core(s, node)->net->conn_pool.used;
}

static inline bool peering_are_up(struct sim *s, uint32_t a, uint32_t b)
{
	const struct hc_peer *x = peering_get(s, a, b), *y = peering_get(s, b, a);

	return x && y && x->state == HC_W_node_state_UP && y->state == HC_W_node_state_UP &&
	       x->conn && y->conn;
}

static inline bool peering_all_up(struct sim *s, void *arg)
{
	uint32_t i, j;

	(void)arg;
	for (i = 0; i < s->args.nodes; i++)
		for (j = 0; j < i; j++)
			if (!peering_are_up(s, i, j))
				return false;
	return true;
}

/* Both ends of the connection that counts are of one stream. */
static inline bool peering_same_conn(struct sim *s, uint32_t a, uint32_t b)
{
	const uint64_t x = peering_get(s, a, b)->conn, y = peering_get(s, b, a)->conn;
	uint32_t i;

	for (i = 0; i < s->nstreams; i++) {
		const struct sim_end *e = s->streams[i].end;

		if (e[0].open && e[1].open &&
		    ((e[0].node == a && e[0].number == x && e[1].node == b && e[1].number == y) ||
		     (e[0].node == b && e[0].number == y && e[1].node == a && e[1].number == x)))
			return true;
	}
	return false;
}

/* A line with that code of `node` that holds the text; the last one. */
static inline const struct sim_said *peering_said(struct sim *s, uint32_t node, uint16_t code,
						  const char *text)
{
	uint32_t n, i;
	const struct sim_said *all = sim_said(s, &n);

	for (i = n; i-- > 0;)
		if (all[i].node == node && all[i].code == code && strstr(all[i].text, text))
			return &all[i];
	return NULL;
}

#define ck_says(s, node, code, text)                                                               \
	ck_assert_msg(peering_said(s, node, HC_W_event_code_##code, text) != NULL,                 \
		      "node %u does not say %s with '%s'", node, #code, text)
#define ck_silent(s, node, code, since)                                                            \
	ck_assert_uint_eq(sim_count(s, node, HC_W_event_code_##code, since), 0)

static inline int peering_main(Suite *suite)
{
	SRunner *r = srunner_create(suite);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
