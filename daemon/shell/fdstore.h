/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Op arenas in the fd store of the service manager.
 *
 * A memfd is gone when the daemon that holds it dies, unless somebody else has it: its process,
 * which brings it back at its next hello, and the service manager, for a process that is slow to
 * come or in the middle of a long operation. The name of each says whose it is:
 *
 *	arena-<pid>-<start time>-<session, hexadecimal>
 *
 * The manager is told by the worker, since its socket may be full; in the order of the calls, so
 * a removal never passes the arrival. At a stop, arenas that the worker has not come to are told
 * by the main thread, which does not wait. Without a manager nothing is done.
 */
#ifndef HC_FDSTORE_H
#define HC_FDSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_FDSTORE_NAME 64u

struct hc_worker;

struct hc_stored_arena {
	uint32_t pid;
	uint64_t started, session;
	int fd;
};

/* The name of an arena, and back. False: it is no name that we give. */
void hc_fdstore_name(char name[HC_FDSTORE_NAME], uint32_t pid, uint64_t started, uint64_t session);
bool hc_fdstore_parse(const char *name, struct hc_stored_arena *a);

struct hc_fdstore {
	struct hc_worker *worker; /* NULL: nothing is told */
};
/* Is there a manager that can be told? */
bool hc_fdstore_exists(void);
/* `fd` stays the caller's. */
void hc_fdstore_keep(const struct hc_fdstore *store, const struct hc_stored_arena *a);
void hc_fdstore_drop(const struct hc_fdstore *store, const struct hc_stored_arena *a);

#endif
