/* SPDX-License-Identifier: Apache-2.0 */
/* Sync pages; see syncpages.h. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "syncpage.h"
#include "syncpages.h"

#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TMPFS_TYPE 0x01021994

void hc_syncpages_fini(struct hc_syncpages *s)
{
	uint32_t i;

	for (i = 0; i < s->room; i++)
		hc_syncpages_close(s, i);
	free(s->fds);
	*s = (struct hc_syncpages){0};
}

void hc_syncpages_close(struct hc_syncpages *s, uint32_t slot)
{
	if (slot >= s->room || !s->fds[slot])
		return;
	close(s->fds[slot] - 1);
	s->fds[slot] = 0;
}

static int make_room(struct hc_syncpages *s, uint32_t slot)
{
	uint32_t room = s->room ? s->room : 64;
	int *fds;

	while (room <= slot)
		room *= 2;
	if (room == s->room)
		return 0;
	fds = reallocarray(s->fds, room, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	memset(fds + s->room, 0, (room - s->room) * sizeof(*fds));
	s->fds = fds;
	s->room = room;
	return 0;
}

static int make(uint64_t id, uint32_t epoch, uint32_t lines, int *out)
{
	const struct hc_sync_page head = {
		.magic = HC_SYNC_MAGIC, .id = id, .epoch = epoch, .lines = lines};
	const size_t written = offsetof(struct hc_sync_page, arrived);
	int fd = memfd_create("hcomm-sync", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)HC_SYNC_BYTES(lines)) ||
	    pwrite(fd, &head, written, 0) != (ssize_t)written || fcntl(fd, F_ADD_SEALS, SEALS))
		r = errno ? -errno : -EIO;
	if (r)
		close(fd);
	else
		*out = fd;
	return r;
}

int hc_syncpages_get(struct hc_syncpages *s, uint32_t slot, uint64_t id, uint32_t epoch,
		     uint32_t lines, int *fd)
{
	int r = make_room(s, slot), page;

	if (!r && !s->fds[slot]) {
		r = make(id, epoch, lines, &page);
		if (!r)
			s->fds[slot] = page + 1;
	}
	if (r)
		return r;
	*fd = fcntl(s->fds[slot] - 1, F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? -errno : 0;
}

uint32_t hc_syncpages_check(int fd, uint64_t id, uint32_t epoch)
{
	struct hc_sync_page head;
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) || fs.f_type != TMPFS_TYPE || fstat(fd, &st) ||
	    !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)HC_SYNC_BYTES(HC_SYNC_LINES) ||
	    (fcntl(fd, F_GET_SEALS) & (SEALS | F_SEAL_WRITE)) != SEALS ||
	    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return 0;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    head.magic != HC_SYNC_MAGIC || head.id != id || head.epoch != epoch)
		return 0;
	return (uint32_t)st.st_size;
}

int hc_syncpages_keep(struct hc_syncpages *s, uint32_t slot, int fd)
{
	int r = make_room(s, slot), own;

	if (r)
		return r;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return -errno;
	hc_syncpages_close(s, slot);
	s->fds[slot] = own + 1;
	return 0;
}
