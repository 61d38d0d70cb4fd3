/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of this node and who uses them.
 *
 * A device belongs to one process, for any number of its domains; a second process is refused
 * unless both said `shared`.
 */
#ifndef HC_DEVICE_H
#define HC_DEVICE_H

#include "addr.h"
#include "state.h"

void hc_device_fact(struct hc_core *c, const struct hc_device_fact *fact);
struct hc_device *hc_device_get(struct hc_core *c, uint32_t index);
/*
 * May `process` use the device as `rank`? addr: what a table says of it, or family 0. process
 * HC_NONE: nobody yet, only whether it is there. Returns 0, DEVICE_OFFLINE, INVALID or BUSY,
 * with the reason in text.
 */
int hc_device_check(struct hc_core *c, uint32_t index, uint32_t rank, uint32_t process, bool shared,
		    const struct hc_addr *addr, char *text, size_t bytes);
/* A device that nobody uses, or HC_NONE. */
uint32_t hc_device_any(struct hc_core *c, uint32_t process);
void hc_device_take(struct hc_core *c, uint32_t index, uint32_t process, bool shared);
/* The same values as it was taken with; the seat has no process any more. */
void hc_device_release(struct hc_core *c, uint32_t index, uint32_t process, bool shared);

#endif
