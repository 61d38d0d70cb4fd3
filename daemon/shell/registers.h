/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status registers of channels: slabs in files beside those of the state records.
 *
 * A file "status-<uid>-<n>" for each 4,096 slots of an owner (slabs.h). A register that no stored
 * channel stands for after a start is revoked, so that who still looks at it learns of the end.
 *
 * All functions: 0, an HC_E_* (> 0) that is listed, or a fatal -errno.
 */
#ifndef HC_REGISTERS_H
#define HC_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "pages.h"

struct hc_registers;

/* `directory` is there already. */
int hc_registers_open(const char *directory, struct hc_registers **registers);
struct hc_registers *hc_registers_close(struct hc_registers *registers); /* returns NULL */
/* Write one, and wake who waits on it when it says something new. HC_E_LIMIT: no such slot. */
int hc_registers_write(struct hc_registers *registers, uint32_t uid, uint32_t slot, uint32_t start,
		       uint64_t channel, uint8_t state);
/* A read-only descriptor of a slab; the caller closes it. HC_E_NOT_FOUND. */
int hc_registers_fd(struct hc_registers *registers, uint32_t uid, uint32_t slab, int *fd);
/* Revoke all that a daemon of another start wrote last. */
void hc_registers_sweep(struct hc_registers *registers, uint32_t start);

#endif
