/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of text; see texts.h. */
#include "texts.h"

uint64_t hc_name_key(uint32_t uid, struct hc_str name)
{
	const struct hc_hash_key k = {0x68636f6d6d2d6e6d, uid};

	return hc_hash(&k, name.p, name.len);
}

uint32_t hc_name_get(struct hc_core *c, uint32_t owner, uint32_t uid, struct hc_str name)
{
	uint32_t n = hc_pool_get(&c->name_pool);

	hc_assert(n != HC_NONE); /* one for each home and part */
	c->names[n].key = hc_name_key(uid, name);
	c->names[n].owner = owner;
	hc_str_copy(name, c->names[n].text, HC_PART_NAME);
	return n;
}

void hc_cause_set(struct hc_core *c, uint32_t *cell, struct hc_str text)
{
	if (!text.len) {
		if (*cell != HC_NONE)
			hc_pool_put_front(&c->cause_pool, *cell);
		*cell = HC_NONE;
		return;
	}
	if (*cell == HC_NONE)
		*cell = hc_pool_get(&c->cause_pool);
	if (*cell != HC_NONE)
		hc_str_copy(text, c->causes[*cell], HC_CAUSE_MAX);
}
