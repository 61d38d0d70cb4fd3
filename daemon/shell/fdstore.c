/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas in the fd store; see fdstore.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fdstore.h"
#include "log.h"
#include "sd.h"
#include "worker.h"

/* ---- names ---- */

void hc_fdstore_name(char name[HC_FDSTORE_NAME], uint32_t pid, uint64_t started, uint64_t session)
{
	snprintf(name, HC_FDSTORE_NAME, "arena-%" PRIu32 "-%" PRIu64 "-%" PRIx64, pid, started,
		 session);
}

bool hc_fdstore_parse(const char *name, struct hc_stored_arena *a)
{
	char again[HC_FDSTORE_NAME];

	if (sscanf(name, "arena-%" SCNu32 "-%" SCNu64 "-%" SCNx64, &a->pid, &a->started,
		   &a->session) != 3)
		return false;
	/* only what we would have written: no signs, blanks, leading zeros, numbers too large */
	hc_fdstore_name(again, a->pid, a->started, a->session);
	return a->pid && !strcmp(name, again);
}

/* ---- telling the manager ---- */

struct notice {
	struct hc_job job; /* first */
	int fd;            /* -1: remove */
	bool told;         /* false in done: the daemon stops, and the worker did not come to it */
	char name[HC_FDSTORE_NAME];
};

static void run(struct hc_job *job)
{
	struct notice *n = (struct notice *)(void *)job;

	n->told = true;
	if (n->fd >= 0)
		hc_sd_store_fd(n->name, n->fd);
	else
		hc_sd_unstore_fd(n->name);
}

static void done(struct hc_job *job)
{
	struct notice *n = (struct notice *)(void *)job;

	/* an arena that the manager never got would be lost; one too many is found at the start */
	if (n->fd >= 0 && !n->told)
		hc_sd_store_fd_now(n->name, n->fd);
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}

bool hc_fdstore_exists(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && *path;
}

static void tell(const struct hc_fdstore *store, const struct hc_stored_arena *a, int fd)
{
	struct notice *n = calloc(1, sizeof(*n));

	if (!n) {
		if (fd >= 0)
			close(fd);
		hc_log(HC_LOG_WARN, "out of memory: the service manager is not told of an arena");
		return;
	}
	n->job.run = run;
	n->job.done = done;
	n->fd = fd;
	hc_fdstore_name(n->name, a->pid, a->started, a->session);
	hc_worker_submit(store->worker, &n->job);
}

void hc_fdstore_keep(const struct hc_fdstore *store, const struct hc_stored_arena *a)
{
	int fd;

	if (!store->worker)
		return;
	fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		tell(store, a, fd);
}

void hc_fdstore_drop(const struct hc_fdstore *store, const struct hc_stored_arena *a)
{
	if (store->worker)
		tell(store, a, -1);
}
