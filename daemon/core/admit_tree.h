/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered trees of numbers, for admission: by (key, tie), with what each number needs.
 *
 * A treap whose priorities are a hash of the number: balanced as a random tree is, the same for
 * the same calls, no allocation, no recursion. Each node also knows the least need below it, by
 * kind, so that "the first in order that fits into what is free" skips those that cannot, and how
 * many there are below it, for "how many are before this one".
 *
 * Nodes lie in an array by number; a tree is the number + 1 of its root, 0 when empty. A number is
 * in one tree of its array at a time.
 */
#ifndef HC_ADMIT_TREE_H
#define HC_ADMIT_TREE_H

#include "table.h"

#define HC_NEEDS 3 /* each direction's bandwidth, virtual channels */

struct hc_tree_node {
	uint64_t key, tie;
	uint32_t need[HC_NEEDS], least[HC_NEEDS]; /* its own; of all below and itself */
	uint32_t left, right, up;                 /* number + 1 */
	uint32_t count;                           /* below and itself */
};

/* Key, tie and need of the node are set before. */
void hc_tree_add(struct hc_tree_node *t, uint32_t *root, uint32_t number);
void hc_tree_del(struct hc_tree_node *t, uint32_t *root, uint32_t number);
/* After a change of need. */
void hc_tree_renew(struct hc_tree_node *t, uint32_t number);
uint32_t hc_tree_first(const struct hc_tree_node *t, uint32_t root); /* HC_NONE when empty */
uint32_t hc_tree_last(const struct hc_tree_node *t, uint32_t root);
uint32_t hc_tree_next(const struct hc_tree_node *t, uint32_t number);
/* The first after (key, tie) whose need is within `free`; `any`: from the start. */
uint32_t hc_tree_fit(const struct hc_tree_node *t, uint32_t root, bool any, uint64_t key,
		     uint64_t tie, const uint32_t free[HC_NEEDS]);
static inline uint32_t hc_tree_count(const struct hc_tree_node *t, uint32_t root)
{
	return root ? t[root - 1].count : 0;
}
uint32_t hc_tree_before(const struct hc_tree_node *t, uint32_t number);

#endif
