/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what a table says of a rank fit this machine?
 *
 * A table that is right in itself may still be one for another machine, or hold logical device
 * ids where physical ones are meant. Nobody but the node itself can tell, so these checks come
 * when a rank binds, with the devices and addresses that are really here. They need no system
 * call; the caller brings the facts.
 */
#ifndef HC_BIND_H
#define HC_BIND_H

#include "roster.h"
#include "verdict.h"

/* Is the device of `rank` among `devices` (physical ids)? 0 or HC_FILE_REFUSED. */
int hc_bind_device(const struct hc_roster *ro, uint32_t rank, const uint32_t *devices, size_t n,
		   struct hc_verdict *v);
/* Is the address of `rank` among those of its device? A rank without an address fits. */
int hc_bind_address(const struct hc_roster *ro, uint32_t rank, const struct hc_addr *have, size_t n,
		    struct hc_verdict *v);

#endif
