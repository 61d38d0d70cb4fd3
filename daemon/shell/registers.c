/* SPDX-License-Identifier: Apache-2.0 */
/* Status registers of channels; see registers.h. */
#include "registers.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slabs.h"
#include "wire.h"

#define SLAB_BYTES ((size_t)HC_STATUS_SLAB * HC_REGISTER_BYTES)
#define SLABS_MAX  64u /* of one owner: what a session's bitmap holds */

static const struct hc_slab_kind slab_kind = {
	.prefix = "status", .bytes = SLAB_BYTES, .max = SLABS_MAX};

struct hc_registers {
	struct hc_slabs slabs;
};

int hc_registers_open(const char *directory, struct hc_registers **registers)
{
	struct hc_registers *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	r = hc_slabs_open(&g->slabs, &slab_kind, directory);
	if (r)
		free(g);
	else
		*registers = g;
	return r;
}

struct hc_registers *hc_registers_close(struct hc_registers *g)
{
	if (!g)
		return NULL;
	hc_slabs_fini(&g->slabs);
	free(g);
	return NULL;
}

static void write_one(struct hc_page_register *at, uint32_t start, uint64_t channel, uint8_t state)
{
	const uint32_t was = atomic_load_explicit(&at->state, memory_order_relaxed);
	const bool same = atomic_load_explicit(&at->id, memory_order_relaxed) == channel &&
			  HC_STATUS_STATE(was) == state;

	atomic_store_explicit(&at->start, start, memory_order_relaxed);
	if (same)
		return; /* taken back after a restart: who holds it has nothing to learn */
	atomic_store_explicit(&at->id, channel, memory_order_seq_cst);
	atomic_store_explicit(&at->state, HC_STATUS_WORD(state, (was >> 8) + 1),
			      memory_order_seq_cst);
	atomic_fetch_add_explicit(&at->wake, 1, memory_order_seq_cst);
	syscall(SYS_futex, &at->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int hc_registers_write(struct hc_registers *g, uint32_t uid, uint32_t slot, uint32_t start,
		       uint64_t channel, uint8_t state)
{
	struct hc_page_register *registers;
	void *at;
	int r = hc_slabs_get(&g->slabs, uid, slot / HC_STATUS_SLAB, &at);

	if (r)
		return r;
	registers = at;
	write_one(&registers[slot % HC_STATUS_SLAB], start, channel, state);
	return 0;
}

int hc_registers_fd(struct hc_registers *g, uint32_t uid, uint32_t slab, int *fd)
{
	return hc_slabs_fd(&g->slabs, uid, slab, fd);
}

void hc_registers_sweep(struct hc_registers *g, uint32_t start)
{
	struct hc_page_register *at;
	uint32_t i, k, state;

	for (i = 0; i < g->slabs.count; i++)
		for (k = 0; k < HC_STATUS_SLAB; k++) {
			at = (struct hc_page_register *)g->slabs.slab[i].at + k;
			state = HC_STATUS_STATE(
				atomic_load_explicit(&at->state, memory_order_relaxed));
			if (state && state != HC_W_channel_state_REVOKED &&
			    atomic_load_explicit(&at->start, memory_order_relaxed) != start)
				write_one(at, start,
					  atomic_load_explicit(&at->id, memory_order_relaxed),
					  HC_W_channel_state_REVOKED);
		}
}
