/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of sync pages (proto/syncpage.h), by slot of the domain here, while the core wants
 * them kept. A page is made sealed in size, its head is written once, and it is never mapped here:
 * whatever a rank writes into it is nothing to this process. One that is brought back after a
 * restart is judged by what the kernel says of it, a memfd of ours in kind, size and seals, and by
 * its head: one of another domain would join what has nothing to do with each other.
 */
#ifndef HC_SYNCPAGES_H
#define HC_SYNCPAGES_H

#include <stdint.h>

struct hc_syncpages {
	int *fds; /* by slot: descriptor + 1 */
	uint32_t room;
};

void hc_syncpages_fini(struct hc_syncpages *s);
/* A descriptor for a client, who closes it; the page is made when it is not there. 0 or -errno. */
int hc_syncpages_get(struct hc_syncpages *s, uint32_t slot, uint64_t id, uint32_t epoch,
		     uint32_t lines, int *fd);
/* Size of what a client brought, 0 when it is not the sync page of that domain and epoch. */
uint32_t hc_syncpages_check(int fd, uint64_t id, uint32_t epoch);
/* Keep it (a duplicate), or -errno. */
int hc_syncpages_keep(struct hc_syncpages *s, uint32_t slot, int fd);
void hc_syncpages_close(struct hc_syncpages *s, uint32_t slot);

#endif
