/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: shared memory of an owner uid in files of the runtime directory.
 *
 * A file "<prefix>-<uid>-<n>" of one size, mode 0600, for a run of slots. The daemon keeps it
 * mapped; a client gets a descriptor opened O_RDONLY, which the kernel will neither map nor re-open
 * writable for another uid. The files outlive the daemon: the next one maps the same pages, so a
 * client's mapping never goes stale. What is at the name and is not ours alone is refused, since
 * another could write there what clients believe.
 *
 * What stands in a slab is the affair of nodepages.c (state records) and registers.c (status
 * registers of channels). All functions: 0, an HC_E_* (> 0) that is listed, or a fatal -errno.
 */
#ifndef HC_SLABS_H
#define HC_SLABS_H

#include <stddef.h>
#include <stdint.h>

struct hc_slab_kind {
	const char *prefix;
	size_t bytes;
	uint32_t max; /* of one owner */
};
struct hc_slab {
	uint32_t uid, n;
	void *at;
};
struct hc_slabs {
	const struct hc_slab_kind *kind;
	int dir;
	uint32_t count, room, last; /* last: the one found last */
	struct hc_slab *slab;
};

/* Maps what an earlier daemon left in the directory, which is there. Files of other names are not
 * ours to judge. On failure nothing is open. */
int hc_slabs_open(struct hc_slabs *slabs, const struct hc_slab_kind *kind, const char *directory);
/* Unmaps; the files stay. */
void hc_slabs_fini(struct hc_slabs *slabs);
/* The n-th of an owner, made when it is missing. HC_E_LIMIT: no such slab. */
int hc_slabs_get(struct hc_slabs *slabs, uint32_t uid, uint32_t n, void **at);
/* A read-only descriptor, for a client; the caller closes it. HC_E_NOT_FOUND. */
int hc_slabs_fd(struct hc_slabs *slabs, uint32_t uid, uint32_t n, int *fd);

#endif
