/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages filled by their descriptors, and compared field by field, for the tests of the codec.
 *
 * FILL_GOLDEN gives each field a value that depends on its place and type alone, so that two
 * swapped fields, a swapped byte order or a lost sign show. A field appended in a later version
 * changes nothing in the fields before it. The other ways are the borders of each type.
 */
#ifndef HC_TEST_FILL_H
#define HC_TEST_FILL_H

#include <stdio.h>
#include <string.h>
#include "codec.h"

enum fill { FILL_GOLDEN, FILL_LOW, FILL_HIGH };

#define FILL_STRUCT_MAX  1024 /* bytes of the largest message struct */
#define FILL_MESSAGE_MAX 65536

/* What the filled strings and arrays point to: one for each message that is alive. */
struct fill_mem {
	char bytes[6 * FILL_MESSAGE_MAX];
	size_t used;
};

static inline char *fill_take(struct fill_mem *m, size_t n)
{
	char *p = m->bytes + m->used;

	m->used += n;
	return m->used <= sizeof(m->bytes) ? p : NULL;
}

static inline bool fill_is_string(const struct hc_field *f)
{
	return f->type == HC_T_name || f->type == HC_T_text || f->type == HC_T_blob ||
	       f->type == HC_T_rest;
}

static inline struct hc_str fill_string(const struct hc_field *f, enum fill how, unsigned place,
					struct fill_mem *m)
{
	struct hc_str s = {NULL, 0};
	char *p;

	if (how == FILL_LOW)
		return s;
	if (how == FILL_HIGH) {
		s.len = f->type == HC_T_rest ? 300 : f->max;
		p = fill_take(m, s.len);
		memset(p, 0xff, s.len);
	} else {
		p = fill_take(m, 64);
		if (f->type == HC_T_name)
			s.len = (uint32_t)snprintf(p, 64, "%s", f->name);
		else if (f->type == HC_T_text)
			s.len = (uint32_t)snprintf(p, 64, "%s: \xc3\xa9 %u", f->name, place);
		else
			s.len = (uint32_t)snprintf(p, 64, "%c\xff%s", 0, f->name) + 0u;
	}
	s.p = p;
	return s;
}

/* Arrays are left empty here. */
static inline void fill_field(const struct hc_field *f, enum fill how, unsigned place,
			      struct fill_mem *m, void *to)
{
	uint64_t v = how == FILL_LOW    ? 0
		     : how == FILL_HIGH ? UINT64_MAX
					: 0x0123456789abcd00u + place;
	int32_t i = how == FILL_LOW    ? INT32_MIN
		    : how == FILL_HIGH ? INT32_MAX
				       : -2 - (int32_t)place;
	struct hc_str s;
	unsigned k;

	switch ((enum hc_type)f->type) {
	case HC_T_u8: *(uint8_t *)to = (uint8_t)(how == FILL_GOLDEN ? 0x80 + place : v); break;
	case HC_T_u16: *(uint16_t *)to = (uint16_t)(how == FILL_GOLDEN ? 0x1200 + place : v); break;
	case HC_T_u32: *(uint32_t *)to = (uint32_t)v; break;
	case HC_T_u64: *(uint64_t *)to = v; break;
	case HC_T_id: *(uint64_t *)to = v; break;
	case HC_T_i32: *(int32_t *)to = i; break;
	case HC_T_id16:
		for (k = 0; k < 16; k++)
			((uint8_t *)to)[k] = (uint8_t)(how == FILL_GOLDEN ? place + k : v);
		break;
	case HC_T_name:
	case HC_T_text:
	case HC_T_blob:
	case HC_T_rest:
		s = fill_string(f, how, place, m);
		memcpy(to, &s, sizeof(s));
		break;
	case HC_T_array: memset(to, 0, sizeof(struct hc_arr)); break;
	}
}

static inline void fill_record(const struct hc_desc *rec, enum fill how, unsigned place,
			       struct fill_mem *m, void *out)
{
	unsigned i;

	for (i = 0; i < rec->nfields; i++)
		fill_field(&rec->fields[i], how, place + i, m, (char *)out + rec->fields[i].offset);
}

/* `count` records into the array `a`. Returns as hc_arr_put. */
static inline int fill_array(const struct hc_field *f, enum fill how, uint32_t count,
			     uint16_t version, struct fill_mem *m, struct hc_arr *a)
{
	_Alignas(16) char rec[FILL_STRUCT_MAX];
	const size_t cap = FILL_MESSAGE_MAX;
	char *buf = fill_take(m, cap);
	uint32_t k;
	int r = 0;

	memset(a, 0, sizeof(*a));
	for (k = 0; k < count && !r; k++) {
		fill_record(f->rec, how, 16 * (k % 8 + 1), m, rec);
		r = hc_arr_put(a, (uint8_t *)buf, cap, f->rec, version, rec);
	}
	return r;
}

/* A whole message. Arrays get 2 records, none when low, 5 when high. */
static inline void fill_message(const struct hc_desc *d, enum fill how, uint16_t version,
				struct fill_mem *m, void *msg)
{
	const uint32_t count = how == FILL_LOW ? 0 : how == FILL_HIGH ? 5 : 2;
	unsigned i;

	m->used = 0;
	memset(msg, 0, d->size);
	for (i = 0; i < d->nfields; i++) {
		const struct hc_field *f = &d->fields[i];
		void *to = (char *)msg + f->offset;

		fill_field(f, how, i, m, to);
		if (f->type == HC_T_array)
			fill_array(f, how, count, version, m, to);
	}
}

static inline size_t fill_width(uint8_t type)
{
	return type == HC_T_u8                        ? 1
	       : type == HC_T_u16                     ? 2
	       : type == HC_T_id16                    ? 16
	       : type == HC_T_u32 || type == HC_T_i32 ? 4
						      : 8;
}

/* The first field in which two messages differ, or NULL. */
static inline const char *fill_difference(const struct hc_desc *d, const void *a, const void *b)
{
	unsigned i;

	for (i = 0; i < d->nfields; i++) {
		const struct hc_field *f = &d->fields[i];
		const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;
		const struct hc_arr *p = x, *q = y;
		bool same;

		if (f->type == HC_T_array)
			same = p->count == q->count && p->len == q->len &&
			       (!p->len || !memcmp(p->bytes, q->bytes, p->len));
		else if (fill_is_string(f))
			same = hc_str_eq(*(const struct hc_str *)x, *(const struct hc_str *)y);
		else
			same = !memcmp(x, y, fill_width(f->type));
		if (!same)
			return f->name;
	}
	return NULL;
}

#endif
