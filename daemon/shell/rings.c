/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of channels that one end alone has; see rings.h. An open table, doubled when full. */
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct ring {
	uint64_t channel; /* 0 = free */
	int fd;
};

struct hc_rings {
	struct ring *at;
	size_t cap, used; /* cap: a power of two */
};

static size_t place(const struct hc_rings *r, uint64_t channel)
{
	size_t i = (size_t)(channel * 0x9e3779b97f4a7c15u >> 32) & (r->cap - 1);

	while (r->at[i].channel && r->at[i].channel != channel)
		i = (i + 1) & (r->cap - 1);
	return i;
}

struct hc_rings *hc_rings_new(void)
{
	struct hc_rings *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->cap = 64;
	r->at = calloc(r->cap, sizeof(*r->at));
	if (!r->at) {
		free(r);
		return NULL;
	}
	return r;
}

void hc_rings_free(struct hc_rings *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->cap; i++)
		if (r->at[i].channel)
			close(r->at[i].fd);
	free(r->at);
	free(r);
}

size_t hc_rings_count(const struct hc_rings *r)
{
	return r->used;
}

static int grow(struct hc_rings *r)
{
	struct hc_rings more = {.cap = 2 * r->cap, .used = r->used};
	size_t i;

	more.at = calloc(more.cap, sizeof(*more.at));
	if (!more.at)
		return -ENOMEM;
	for (i = 0; i < r->cap; i++)
		if (r->at[i].channel)
			more.at[place(&more, r->at[i].channel)] = r->at[i];
	free(r->at);
	*r = more;
	return 0;
}

static int make(uint32_t bytes)
{
	const int fd = memfd_create("hcomm-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int give(struct hc_rings *r, size_t i, bool last, int *fd)
{
	if (last) {
		*fd = r->at[i].fd;
		r->at[i].fd = -1;
		hc_rings_forget(r, r->at[i].channel);
		return 0;
	}
	*fd = fcntl(r->at[i].fd, F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? -errno : 0;
}

int hc_rings_fd(struct hc_rings *r, uint64_t channel, uint32_t bytes, bool last, int *fd)
{
	size_t i = place(r, channel);
	int made;

	if (r->at[i].channel)
		return give(r, i, last, fd);
	if (2 * r->used >= r->cap) {
		made = grow(r);
		if (made)
			return made;
		i = place(r, channel);
	}
	made = make(bytes);
	if (made < 0)
		return made;
	r->at[i] = (struct ring){channel, made};
	r->used++;
	return give(r, i, false, fd);
}

/* What stood behind it in its run moves up, so that a search still finds it. */
void hc_rings_forget(struct hc_rings *r, uint64_t channel)
{
	size_t i = place(r, channel);
	struct ring moved;

	if (!r->at[i].channel)
		return;
	if (r->at[i].fd >= 0)
		close(r->at[i].fd);
	r->at[i].channel = 0;
	r->used--;
	for (i = (i + 1) & (r->cap - 1); r->at[i].channel; i = (i + 1) & (r->cap - 1)) {
		moved = r->at[i];
		r->at[i].channel = 0;
		r->at[place(r, moved.channel)] = moved;
	}
}
