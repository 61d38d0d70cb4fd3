/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs in files of the runtime directory; see slabs.h. */
#include "slabs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"

static void slab_name(const struct hc_slabs *s, uint32_t uid, uint32_t n, char name[48])
{
	snprintf(name, 48, "%s-%u-%u", s->kind->prefix, uid, n);
}

/* Is it ours alone? */
static int check(int fd, size_t bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	if (st.st_size != (off_t)bytes && ftruncate(fd, (off_t)bytes))
		return -errno;
	return 0;
}

static int map(const struct hc_slabs *s, const char *name, void **at)
{
	int fd = openat(s->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	void *p = MAP_FAILED;
	int r;

	if (fd < 0)
		return -errno;
	r = check(fd, s->kind->bytes);
	if (!r) {
		p = mmap(NULL, s->kind->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = p == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (!r)
		*at = p;
	return r;
}

static int add(struct hc_slabs *s, uint32_t uid, uint32_t n)
{
	const uint32_t room = s->room ? 2 * s->room : 16;
	struct hc_slab *more;
	char name[48];
	int r;

	if (s->count == s->room) {
		more = reallocarray(s->slab, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->slab = more;
		s->room = room;
	}
	slab_name(s, uid, n, name);
	r = map(s, name, &s->slab[s->count].at);
	if (r)
		return r;
	s->slab[s->count].uid = uid;
	s->slab[s->count].n = n;
	s->last = s->count++;
	return 0;
}

static struct hc_slab *find(struct hc_slabs *s, uint32_t uid, uint32_t n)
{
	uint32_t i;

	if (s->last < s->count && s->slab[s->last].uid == uid && s->slab[s->last].n == n)
		return &s->slab[s->last];
	for (i = 0; i < s->count; i++)
		if (s->slab[i].uid == uid && s->slab[i].n == n) {
			s->last = i;
			return &s->slab[i];
		}
	return NULL;
}

/* Is that the name of a slab of this kind? */
static bool parse(const struct hc_slabs *s, const char *file, unsigned *uid, unsigned *n)
{
	const size_t len = strlen(s->kind->prefix);
	char name[48];

	if (strncmp(file, s->kind->prefix, len) || sscanf(file + len, "-%u-%u", uid, n) != 2 ||
	    *n >= s->kind->max)
		return false;
	slab_name(s, *uid, *n, name);
	return !strcmp(name, file);
}

static int find_all(struct hc_slabs *s)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct dirent *entry;
	unsigned uid, n;
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		r = -errno;
		close(fd);
		return r;
	}
	while (!r && (entry = readdir(d)))
		if (parse(s, entry->d_name, &uid, &n))
			r = add(s, uid, n);
	closedir(d);
	return r;
}

int hc_slabs_open(struct hc_slabs *s, const struct hc_slab_kind *kind, const char *directory)
{
	int r;

	*s = (struct hc_slabs){.kind = kind,
			       .dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (s->dir < 0)
		return -errno;
	r = find_all(s);
	if (r)
		hc_slabs_fini(s);
	return r;
}

void hc_slabs_fini(struct hc_slabs *s)
{
	uint32_t i;

	for (i = 0; i < s->count; i++)
		munmap(s->slab[i].at, s->kind->bytes);
	close(s->dir);
	free(s->slab);
	*s = (struct hc_slabs){.dir = -1};
}

int hc_slabs_get(struct hc_slabs *s, uint32_t uid, uint32_t n, void **at)
{
	struct hc_slab *slab;
	int r;

	if (n >= s->kind->max)
		return HC_E_LIMIT;
	slab = find(s, uid, n);
	if (!slab) {
		r = add(s, uid, n);
		if (r)
			return r;
		slab = &s->slab[s->last];
	}
	*at = slab->at;
	return 0;
}

int hc_slabs_fd(struct hc_slabs *s, uint32_t uid, uint32_t n, int *fd)
{
	char name[48];

	if (!find(s, uid, n))
		return HC_E_NOT_FOUND;
	slab_name(s, uid, n, name);
	*fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *fd < 0 ? -errno : 0;
}
