/* SPDX-License-Identifier: Apache-2.0 */
/* Status registers of channels; see registers.h. */
#include "registers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire.h"

#define SLAB_BYTES ((size_t)HC_STATUS_SLAB * HC_REGISTER_BYTES)
#define SLABS_MAX  64u /* of one owner: what a session's bitmap holds */

struct slab {
	uint32_t uid, n;
	struct hc_page_register *at;
};

struct hc_registers {
	int dir;
	uint32_t count, room;
	struct slab *slabs;
};

static void slab_name(char name[48], uint32_t uid, uint32_t n)
{
	snprintf(name, 48, "status-%u-%u", uid, n);
}

/* Ours alone, or another could write what clients believe. */
static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	if (st.st_size != (off_t)SLAB_BYTES && ftruncate(fd, (off_t)SLAB_BYTES))
		return -errno;
	return 0;
}

static int map(int dir, const char *name, struct hc_page_register **at)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	void *p = MAP_FAILED;
	int r;

	if (fd < 0)
		return -errno;
	r = check(fd);
	if (!r) {
		p = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = p == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (!r)
		*at = p;
	return r;
}

static int add(struct hc_registers *g, uint32_t uid, uint32_t n)
{
	const uint32_t room = g->room ? 2 * g->room : 8;
	struct slab *more;
	char name[48];
	int r;

	if (g->count == g->room) {
		more = reallocarray(g->slabs, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		g->slabs = more;
		g->room = room;
	}
	slab_name(name, uid, n);
	r = map(g->dir, name, &g->slabs[g->count].at);
	if (r)
		return r;
	g->slabs[g->count].uid = uid;
	g->slabs[g->count++].n = n;
	return 0;
}

static struct slab *find(struct hc_registers *g, uint32_t uid, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		if (g->slabs[i].uid == uid && g->slabs[i].n == n)
			return &g->slabs[i];
	return NULL;
}

/* Map what an earlier daemon left. */
static int find_all(struct hc_registers *g)
{
	struct dirent *entry;
	unsigned uid, n;
	char name[48];
	DIR *d;
	int fd = openat(g->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		r = -errno;
		close(fd);
		return r;
	}
	while (!r && (entry = readdir(d))) {
		if (sscanf(entry->d_name, "status-%u-%u", &uid, &n) != 2 || n >= SLABS_MAX)
			continue;
		slab_name(name, uid, n);
		if (!strcmp(name, entry->d_name))
			r = add(g, uid, n);
	}
	closedir(d);
	return r;
}

int hc_registers_open(const char *directory, struct hc_registers **registers)
{
	struct hc_registers *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = g->dir < 0 ? -errno : find_all(g);
	if (r)
		hc_registers_close(g);
	else
		*registers = g;
	return r;
}

struct hc_registers *hc_registers_close(struct hc_registers *g)
{
	uint32_t i;

	if (!g)
		return NULL;
	for (i = 0; i < g->count; i++)
		munmap(g->slabs[i].at, SLAB_BYTES);
	if (g->dir >= 0)
		close(g->dir);
	free(g->slabs);
	free(g);
	return NULL;
}

static void write_one(struct hc_page_register *at, uint32_t start, uint64_t channel, uint8_t state)
{
	const uint32_t was = atomic_load_explicit(&at->state, memory_order_relaxed);
	const bool same = atomic_load_explicit(&at->id, memory_order_relaxed) == channel &&
			  HC_STATUS_STATE(was) == state;

	atomic_store_explicit(&at->start, start, memory_order_relaxed);
	if (same)
		return; /* taken back after a restart: who holds it has nothing to learn */
	atomic_store_explicit(&at->id, channel, memory_order_seq_cst);
	atomic_store_explicit(&at->state, HC_STATUS_WORD(state, (was >> 8) + 1),
			      memory_order_seq_cst);
	atomic_fetch_add_explicit(&at->wake, 1, memory_order_seq_cst);
	syscall(SYS_futex, &at->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int hc_registers_write(struct hc_registers *g, uint32_t uid, uint32_t slot, uint32_t start,
		       uint64_t channel, uint8_t state)
{
	const uint32_t n = slot / HC_STATUS_SLAB;
	struct slab *s;
	int r;

	if (n >= SLABS_MAX)
		return HC_E_LIMIT;
	s = find(g, uid, n);
	if (!s) {
		r = add(g, uid, n);
		if (r)
			return r;
		s = &g->slabs[g->count - 1];
	}
	write_one(&s->at[slot % HC_STATUS_SLAB], start, channel, state);
	return 0;
}

int hc_registers_fd(struct hc_registers *g, uint32_t uid, uint32_t slab, int *fd)
{
	char name[48];

	if (!find(g, uid, slab))
		return HC_E_NOT_FOUND;
	slab_name(name, uid, slab);
	*fd = openat(g->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *fd < 0 ? -errno : 0;
}

void hc_registers_sweep(struct hc_registers *g, uint32_t start)
{
	struct hc_page_register *at;
	uint32_t i, k, state;

	for (i = 0; i < g->count; i++)
		for (k = 0; k < HC_STATUS_SLAB; k++) {
			at = &g->slabs[i].at[k];
			state = HC_STATUS_STATE(
				atomic_load_explicit(&at->state, memory_order_relaxed));
			if (state && state != HC_W_channel_state_REVOKED &&
			    atomic_load_explicit(&at->start, memory_order_relaxed) != start)
				write_one(at, start,
					  atomic_load_explicit(&at->id, memory_order_relaxed),
					  HC_W_channel_state_REVOKED);
		}
}
