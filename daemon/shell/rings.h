/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of channels: a memfd each, made when the first end is opened, sealed in size, handed
 * to both ends. The daemon's own descriptor is kept only until the second end has it, and never
 * mapped: what is in the rings is an affair of the two clients.
 */
#ifndef HC_RINGS_H
#define HC_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hc_rings;

struct hc_rings *hc_rings_new(void); /* NULL: no memory */
void hc_rings_free(struct hc_rings *rings);
/* A descriptor for one end; the caller closes it. last: the other end has its own. 0 or -errno. */
int hc_rings_fd(struct hc_rings *rings, uint64_t channel, uint32_t bytes, bool last, int *fd);
/* The channel is over. */
void hc_rings_forget(struct hc_rings *rings, uint64_t channel);
size_t hc_rings_count(const struct hc_rings *rings);

#endif
