/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sync page: where the ranks of a domain on one node meet, without the daemon.
 *
 * One memfd for (domain, epoch, node), made by the daemon, sealed in size, given to the processes
 * of that domain's local ranks and to nobody else; the daemon writes the head once and never looks
 * at it again. So whoever scribbles into it disturbs the barriers of its own domain and nothing
 * else, and each reader checks what it reads.
 *
 * The barrier is central: `arrived` counts ranks, the last one sets it back, raises `generation`
 * and wakes all who sleep, with one call. With more ranks than processors, which is usual, what
 * counts is how often a rank is put to sleep and woken: once, here, against log2(n) times in a
 * dissemination barrier. Each rank first notes in its own line which barrier it has come to: that
 * names the missing ones when the time is up. Nothing in it depends on a daemon, so it goes on
 * while that is restarted.
 *
 * generation is the number of the last barrier that ended (mod 2^32) and the futex word.
 * `sleepers` spares the last one the wake where nobody sleeps; a process that was killed in its
 * sleep leaves it too high, which costs a call and nothing else.
 *
 * Host structs: both sides are the same machine. May only grow into reserved space.
 */
#ifndef HC_SYNCPAGE_H
#define HC_SYNCPAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define HC_SYNC_MAGIC UINT64_C(0x68636f6d6d2d7379)
#define HC_SYNC_UNIT  4096u
#define HC_SYNC_LINES 65536u /* at most */
#define HC_SYNC_BYTES(lines)                                                                       \
	(HC_SYNC_UNIT +                                                                            \
	 (((uint32_t)(lines)*64u + HC_SYNC_UNIT - 1) & ~(uint32_t)(HC_SYNC_UNIT - 1)))

struct hc_sync_line {          /* of one rank; written by its process alone */
	_Atomic uint32_t came; /* barrier that it has come to, mod 2^32 */
	uint32_t reserved[15];
};
static_assert(sizeof(struct hc_sync_line) == 64, "a cache line");

struct hc_sync_page {
	/* written once, by the daemon */
	uint64_t magic, id;
	uint32_t epoch, lines;
	uint64_t reserved0[5];
	_Atomic uint32_t arrived; /* ranks that have come to the present barrier */
	uint32_t reserved1[15];
	_Atomic uint32_t generation; /* futex word */
	_Atomic uint32_t sleepers;
	uint32_t reserved2[14];
	uint8_t reserved3[HC_SYNC_UNIT - 192];
	struct hc_sync_line line[];
};
static_assert(sizeof(struct hc_sync_page) == HC_SYNC_UNIT, "the head of a sync page");

#endif
