/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows between the file and the core; see dbrows.h. They live for some milliseconds: what does not
 * fit into a first small piece gets large pages where there are any, a fault for each and not 512.
 */
#include <string.h>
#include <sys/mman.h>
#include "dbrows.h"

#define PIECE_BYTES ((size_t)256 * 1024)
#define LARGE_BYTES ((size_t)2 * 1024 * 1024) /* a page of the large kind */
#define ALIGN       8u

struct hc_dbrows_piece {
	struct hc_dbrows_piece *next;
	size_t used, size;
};

struct head {
	uint64_t id;
	size_t len;
};

static size_t padded(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static bool more(struct hc_dbrows *rows, size_t need)
{
	struct hc_dbrows_piece *p;
	size_t size = rows->first ? LARGE_BYTES : PIECE_BYTES;

	while (size < sizeof(*p) + need)
		size *= 2;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	if (size >= LARGE_BYTES)
		madvise(p, size, MADV_HUGEPAGE);
	madvise(p, size, MADV_POPULATE_WRITE); /* older kernels: fault by fault */
	*p = (struct hc_dbrows_piece){.used = sizeof(*p), .size = size};
	if (rows->last)
		rows->last->next = p;
	else
		rows->first = p;
	rows->last = p;
	return true;
}

bool hc_dbrows_add(struct hc_dbrows *rows, uint64_t id, const void *row, size_t len)
{
	const struct head head = {.id = id, .len = len};
	const size_t need = sizeof(head) + padded(len);
	uint8_t *at;

	if ((!rows->last || rows->last->size - rows->last->used < need) && !more(rows, need))
		return false;
	at = (uint8_t *)rows->last + rows->last->used;
	memcpy(at, &head, sizeof(head));
	if (len)
		memcpy(at + sizeof(head), row, len);
	rows->last->used += need;
	rows->count++;
	rows->bytes += len;
	return true;
}

static void drop_first(struct hc_dbrows *rows)
{
	struct hc_dbrows_piece *p = rows->first;

	rows->first = p->next;
	munmap(p, p->size);
}

int hc_dbrows_give(struct hc_dbrows *rows,
		   int (*fn)(void *arg, uint64_t id, const void *row, size_t len), void *arg)
{
	const uint8_t *at, *end;
	struct head head;
	int r = 0;

	for (; !r && rows->first; drop_first(rows)) {
		at = (const uint8_t *)rows->first + sizeof(*rows->first);
		end = (const uint8_t *)rows->first + rows->first->used;
		for (; !r && at < end; at += sizeof(head) + padded(head.len)) {
			memcpy(&head, at, sizeof(head));
			r = fn(arg, head.id, at + sizeof(head), head.len);
		}
	}
	hc_dbrows_fini(rows);
	return r;
}

void hc_dbrows_fini(struct hc_dbrows *rows)
{
	while (rows->first)
		drop_first(rows);
	*rows = (struct hc_dbrows){0};
}
