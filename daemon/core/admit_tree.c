/* SPDX-License-Identifier: Apache-2.0 */
/* Treaps over numbers; see admit_tree.h. */
#include "admit_tree.h"

static uint32_t priority(uint32_t number)
{
	uint32_t x = number * 0x9e3779b1u;

	x ^= x >> 15;
	x *= 0x85ebca77u;
	return x ^ x >> 13;
}

static bool above(uint32_t a, uint32_t b)
{
	const uint32_t x = priority(a), y = priority(b);

	return x != y ? x > y : a < b;
}

static bool sorts_before(const struct hc_tree_node *a, const struct hc_tree_node *b)
{
	return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void sum_up(struct hc_tree_node *t, uint32_t number)
{
	struct hc_tree_node *n = &t[number];
	const uint32_t child[2] = {n->left, n->right};
	unsigned i, k;

	n->count = 1;
	for (k = 0; k < HC_NEEDS; k++)
		n->least[k] = n->need[k];
	for (i = 0; i < 2; i++) {
		const struct hc_tree_node *c = &t[child[i] - 1];

		if (!child[i])
			continue;
		n->count += c->count;
		for (k = 0; k < HC_NEEDS; k++)
			if (c->least[k] < n->least[k])
				n->least[k] = c->least[k];
	}
}

static void sum_up_from(struct hc_tree_node *t, uint32_t link)
{
	for (; link; link = t[link - 1].up)
		sum_up(t, link - 1);
}

/* The place that points to a node. */
static uint32_t *place_of(struct hc_tree_node *t, uint32_t *root, uint32_t number)
{
	const uint32_t up = t[number].up;

	if (!up)
		return root;
	return t[up - 1].left == number + 1 ? &t[up - 1].left : &t[up - 1].right;
}

/* The node takes its parent's place, the parent becomes its child. */
static void rotate_up(struct hc_tree_node *t, uint32_t *root, uint32_t number)
{
	struct hc_tree_node *n = &t[number];
	const uint32_t parent = n->up - 1;
	struct hc_tree_node *p = &t[parent];
	uint32_t inner;

	*place_of(t, root, parent) = number + 1;
	n->up = p->up;
	if (p->left == number + 1) {
		inner = p->left = n->right;
		n->right = parent + 1;
	} else {
		inner = p->right = n->left;
		n->left = parent + 1;
	}
	if (inner)
		t[inner - 1].up = parent + 1;
	p->up = number + 1;
	sum_up(t, parent);
	sum_up(t, number);
}

void hc_tree_add(struct hc_tree_node *t, uint32_t *root, uint32_t number)
{
	struct hc_tree_node *n = &t[number];
	uint32_t *at = root, up = 0;

	while (*at) {
		up = *at;
		at = sorts_before(n, &t[up - 1]) ? &t[up - 1].left : &t[up - 1].right;
	}
	*at = number + 1;
	n->left = n->right = 0;
	n->up = up;
	sum_up_from(t, number + 1);
	while (n->up && above(number, n->up - 1))
		rotate_up(t, root, number);
}

void hc_tree_del(struct hc_tree_node *t, uint32_t *root, uint32_t number)
{
	struct hc_tree_node *n = &t[number];
	uint32_t child, up;

	hc_assert(*place_of(t, root, number) == number + 1);
	while (n->left && n->right)
		rotate_up(t, root, above(n->left - 1, n->right - 1) ? n->left - 1 : n->right - 1);
	child = n->left ? n->left : n->right;
	up = n->up;
	*place_of(t, root, number) = child;
	if (child)
		t[child - 1].up = up;
	n->left = n->right = n->up = n->count = 0;
	sum_up_from(t, up);
}

void hc_tree_renew(struct hc_tree_node *t, uint32_t number)
{
	sum_up_from(t, number + 1);
}

uint32_t hc_tree_first(const struct hc_tree_node *t, uint32_t root)
{
	while (root && t[root - 1].left)
		root = t[root - 1].left;
	return root - 1;
}

uint32_t hc_tree_last(const struct hc_tree_node *t, uint32_t root)
{
	while (root && t[root - 1].right)
		root = t[root - 1].right;
	return root - 1;
}

/* Up from a right child, and one more: the next in order when there is nothing to the right. */
static uint32_t climb(const struct hc_tree_node *t, uint32_t number)
{
	while (t[number].up && t[t[number].up - 1].right == number + 1)
		number = t[number].up - 1;
	return t[number].up - 1;
}

uint32_t hc_tree_next(const struct hc_tree_node *t, uint32_t number)
{
	if (t[number].right)
		return hc_tree_first(t, t[number].right);
	return climb(t, number);
}

static bool within(const uint32_t need[HC_NEEDS], const uint32_t free[HC_NEEDS])
{
	return need[0] <= free[0] && need[1] <= free[1] && need[2] <= free[2];
}

/* May something in this subtree fit? Each need may be another node's, so "yes" is a guess. */
static bool hopeful(const struct hc_tree_node *t, uint32_t link, const uint32_t free[HC_NEEDS])
{
	return link && within(t[link - 1].least, free);
}

uint32_t hc_tree_fit(const struct hc_tree_node *t, uint32_t root, bool any, uint64_t key,
		     uint64_t tie, const uint32_t free[HC_NEEDS])
{
	const struct hc_tree_node after = {.key = key, .tie = tie};
	uint32_t at = root, best = 0;

	while (hopeful(t, at, free)) {
		if (any || sorts_before(&after, &t[at - 1])) {
			best = at;
			at = t[at - 1].left;
		} else {
			at = t[at - 1].right;
		}
	}
	while (best && !within(t[best - 1].need, free)) {
		if (!hopeful(t, t[best - 1].right, free)) {
			best = climb(t, best - 1) + 1;
			continue;
		}
		best = t[best - 1].right;
		while (hopeful(t, t[best - 1].left, free))
			best = t[best - 1].left;
	}
	return best - 1;
}

uint32_t hc_tree_before(const struct hc_tree_node *t, uint32_t number)
{
	uint32_t count = t[number].left ? t[t[number].left - 1].count : 0, at = number;

	for (; t[at].up; at = t[at].up - 1)
		if (t[t[at].up - 1].right == at + 1)
			count += t[t[at].up - 1].count - t[at].count;
	return count;
}
