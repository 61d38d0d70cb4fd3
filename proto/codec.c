/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of the message tables, and the descriptors that it interprets.
 *
 * Both directions are one loop over the fields of a descriptor with a switch on the type; for
 * messages and their records, of which there are thousands in a start or a batch, the same is
 * expanded from the table into straight code. A position is a pair (p, end); every step asks for
 * its bytes first, so that no arithmetic on a length from outside can wrap. Numbers are moved by
 * shifts, which compilers turn into one swapped load or store: the result does not depend on the
 * byte order of the host, and no struct is ever copied onto the wire.
 *
 * An array stays encoded in the decoded message. Decoding only finds its end: by one
 * multiplication where records have a fixed width, else by stepping over each record once.
 * Records hold no arrays, so nothing here calls itself.
 *
 * A field that is newer than the version spoken takes no bytes and decodes to zero.
 *
 * All tables are constant and there is no state, so every function may be called by any thread.
 */
#include <string.h>
#include "codec.h"

/* ---- descriptors ---- */

enum {
	MAX_u8 = 0,
	MAX_u16 = 0,
	MAX_u32 = 0,
	MAX_u64 = 0,
	MAX_id = 0,
	MAX_i32 = 0,
	MAX_id16 = 0,
	MAX_name = HC_NAME_MAX,
	MAX_text = HC_TEXT_MAX,
	MAX_blob = HC_BLOB_MAX,
	MAX_rest = 0,
};

/* clang-format off */
#define REC(name)		 static const struct hc_field fields_##name[] = {
#define MSG(number, name, what)	 static const struct hc_field fields_##name[] = {
#define F(of, type, field, since, what) \
	{#field, NULL, what, NULL, offsetof(struct hc_m_##of, field), MAX_##type, since, HC_T_##type},
#define A(of, rec, field, max, since, what) \
	{#field, NULL, what, &hc_desc_##rec, offsetof(struct hc_m_##of, field), max, since, HC_T_array},
#define END(of)			 };
#include "messages.tbl.h"
#undef REC
#undef MSG
#undef F
#undef A
#undef END

#define VIEW(number, name, owner, what) static const struct hc_field fields_view_##name[] = {
#define V(of, type, field, since, heading, what) \
	{#field, heading, what, NULL, offsetof(struct hc_m_view_##of, field), MAX_##type, since, HC_T_##type},
#define ENDV(of)		 };
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV

#define COUNT(array)		 (sizeof(array) / sizeof((array)[0]))
#define F(of, type, field, since, what)
#define A(of, rec, field, max, since, what)
#define END(of)
#define DESC(number, name, what) \
	static bool get_##name(uint16_t version, struct hc_dec *from, void *msg); \
	static int put_##name(uint16_t version, struct hc_enc *to, const void *msg); \
	const struct hc_desc hc_desc_##name = {#name, what, fields_##name, COUNT(fields_##name), number, \
					       sizeof(struct hc_m_##name), get_##name, put_##name};
#define REC(name)		 DESC(0, name, "")
#define MSG(number, name, what)	 DESC(number, name, what)
#include "messages.tbl.h"
#undef DESC
#undef REC
#undef MSG

#define V(of, type, field, since, heading, what)
#define ENDV(of)
#define VIEW(number, name, owner, what) \
	const struct hc_desc hc_desc_view_##name = {#name, what, fields_view_##name, \
						    COUNT(fields_view_##name), number, \
						    sizeof(struct hc_m_view_##name), NULL, NULL};
#include "views.tbl.h"
#undef VIEW

#define REC(name)
#define MSG(number, name, what)	 [number] = &hc_desc_##name,
static const struct hc_desc *const messages[HC_MSG_MAX] = {
#include "messages.tbl.h"
};
#undef REC
#undef MSG
#undef F
#undef A
#undef END

#define VIEW(number, name, owner, what) [number] = &hc_desc_view_##name,
static const struct hc_desc *const views[] = {
#include "views.tbl.h"
};
#undef VIEW
#undef V
#undef ENDV
/* clang-format on */

const struct hc_desc *hc_desc_msg(unsigned number)
{
	return number < COUNT(messages) ? messages[number] : NULL;
}

const struct hc_desc *hc_desc_view(unsigned number)
{
	return number < COUNT(views) ? views[number] : NULL;
}

/* ---- bytes ---- */

static inline uint16_t load16(const uint8_t *p)
{
	return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load64(const uint8_t *p)
{
	return (uint64_t)load32(p) << 32 | load32(p + 4);
}

static inline hc_ct_id16 load_id16(const uint8_t *p)
{
	hc_ct_id16 id;

	memcpy(id.b, p, sizeof(id.b));
	return id;
}

static inline void store8(uint8_t *p, uint8_t v)
{
	*p = v;
}

static inline void store16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline void store64(uint8_t *p, uint64_t v)
{
	store32(p, (uint32_t)(v >> 32));
	store32(p + 4, (uint32_t)v);
}

static inline void store_i32(uint8_t *p, int32_t v)
{
	store32(p, (uint32_t)v);
}

static inline void store_id16(uint8_t *p, hc_ct_id16 v)
{
	memcpy(p, v.b, sizeof(v.b));
}

/* Bytes that a field takes at least; all that it takes, where the width is fixed. */
static inline size_t wire_min(uint8_t type)
{
	switch ((enum hc_type)type) {
	case HC_T_u8: return 1;
	case HC_T_u16: return 2;
	case HC_T_u32: return 4;
	case HC_T_u64: return 8;
	case HC_T_id: return 8;
	case HC_T_i32: return 4;
	case HC_T_id16: return 16;
	case HC_T_name: return 2;
	case HC_T_text: return 2;
	case HC_T_blob: return 2;
	case HC_T_rest: return 0;
	case HC_T_array: return 4;
	}
	return 0;
}

static inline bool is_counted(uint8_t type)
{
	return type == HC_T_name || type == HC_T_text || type == HC_T_blob;
}

/* ---- decoding ---- */

struct hc_dec {
	const uint8_t *p, *end;
};

/* An empty one may have no address, and NULL + 0 is not defined. */
static inline struct hc_dec in_of(const void *bytes, size_t len)
{
	struct hc_dec in = {bytes, bytes};

	if (len)
		in.end += len;
	return in;
}

static inline size_t left(const struct hc_dec *in)
{
	return (size_t)(in->end - in->p);
}

static inline bool skip_counted(struct hc_dec *in, uint32_t max)
{
	size_t n;

	if (left(in) < 2)
		return false;
	n = load16(in->p);
	if (n > max || n > left(in) - 2)
		return false;
	in->p += 2 + n;
	return true;
}

static bool skip_record(const struct hc_desc *rec, uint16_t version, struct hc_dec *in)
{
	const struct hc_field *f = rec->fields, *end = f + rec->nfields;

	for (; f < end; f++) {
		if (f->since > version)
			continue;
		if (is_counted(f->type)) {
			if (!skip_counted(in, f->max))
				return false;
		} else {
			if (left(in) < wire_min(f->type))
				return false;
			in->p += wire_min(f->type);
		}
	}
	return true;
}

/* Step over `count` records; false when they do not fit into what is left. */
static bool skip_records(const struct hc_desc *rec, uint16_t version, uint32_t count,
			 struct hc_dec *in)
{
	const struct hc_field *f = rec->fields, *end = f + rec->nfields;
	bool fixed = true;
	size_t min = 0;

	if (!count)
		return true;
	for (; f < end; f++) {
		if (f->since > version)
			continue;
		min += wire_min(f->type);
		fixed = fixed && !is_counted(f->type);
	}
	if (!min || count > left(in) / min)
		return false;
	if (fixed) {
		in->p += count * min;
		return true;
	}
	while (count--) {
		if (!skip_record(rec, version, in))
			return false;
	}
	return true;
}

static bool get_array(const struct hc_desc *rec, uint32_t max, uint16_t version, struct hc_dec *in,
		      struct hc_arr *a)
{
	if (left(in) < 4)
		return false;
	a->count = load32(in->p);
	in->p += 4;
	a->bytes = in->p;
	if (a->count > max || !skip_records(rec, version, a->count, in))
		return false;
	a->len = (uint32_t)(in->p - a->bytes);
	return true;
}

static bool get_string(uint32_t max, struct hc_dec *in, struct hc_str *s)
{
	const uint8_t *start = in->p;

	if (!skip_counted(in, max))
		return false;
	s->p = (const char *)start + 2;
	s->len = (uint32_t)(in->p - start - 2);
	return true;
}

static void get_rest(struct hc_dec *in, struct hc_str *s)
{
	s->p = (const char *)in->p;
	s->len = (uint32_t)left(in);
	in->p = in->end;
}

static void clear(const struct hc_field *f, void *to)
{
	if (f->type == HC_T_array)
		memset(to, 0, sizeof(struct hc_arr));
	else if (is_counted(f->type) || f->type == HC_T_rest)
		memset(to, 0, sizeof(struct hc_str));
	else
		memset(to, 0, wire_min(f->type));
}

static inline bool get_field(const struct hc_field *f, uint16_t version, struct hc_dec *in,
			     void *to)
{
	const uint8_t *p = in->p;
	size_t n = wire_min(f->type);

	if (left(in) < n)
		return false;
	switch ((enum hc_type)f->type) {
	case HC_T_u8: *(uint8_t *)to = *p; break;
	case HC_T_u16: *(uint16_t *)to = load16(p); break;
	case HC_T_u32: *(uint32_t *)to = load32(p); break;
	case HC_T_u64: *(uint64_t *)to = load64(p); break;
	case HC_T_id: *(uint64_t *)to = load64(p); break;
	case HC_T_i32: *(int32_t *)to = (int32_t)load32(p); break;
	case HC_T_id16: memcpy(to, p, 16); break;
	case HC_T_name: return get_string(f->max, in, to);
	case HC_T_text: return get_string(f->max, in, to);
	case HC_T_blob: return get_string(f->max, in, to);
	case HC_T_rest: get_rest(in, to); return true;
	case HC_T_array: return get_array(f->rec, f->max, version, in, to);
	}
	in->p += n;
	return true;
}

static bool get_fields(const struct hc_desc *d, uint16_t version, struct hc_dec *in, void *msg)
{
	const struct hc_field *f = d->fields, *end = f + d->nfields;

	if (d->get)
		return d->get(version, in, msg);
	for (; f < end; f++) {
		void *to = (char *)msg + f->offset;

		if (f->since > version)
			clear(f, to);
		else if (!get_field(f, version, in, to))
			return false;
	}
	return true;
}

/* The same for each message and record by itself. */
#define FIXED(type, of_c, load)                                                                    \
	static inline __attribute__((always_inline)) bool read_##type(struct hc_dec *in,           \
								      uint32_t max, of_c *to)      \
	{                                                                                          \
		(void)max;                                                                         \
		if (left(in) < sizeof(*to))                                                        \
			return false;                                                              \
		*to = load(in->p);                                                                 \
		in->p += sizeof(*to);                                                              \
		return true;                                                                       \
	}
FIXED(u8, uint8_t, *)
FIXED(u16, uint16_t, load16)
FIXED(u32, uint32_t, load32)
FIXED(u64, uint64_t, load64)
FIXED(i32, int32_t, (int32_t)load32)
FIXED(id16, hc_ct_id16, load_id16)
#undef FIXED
#define read_id                read_u64
#define read_name(in, max, to) get_string(max, in, to)
#define read_text(in, max, to) get_string(max, in, to)
#define read_blob(in, max, to) get_string(max, in, to)
#define read_rest(in, max, to) (get_rest(in, to), true)

/* clang-format off */
#define DESC(name) \
	static bool get_##name(uint16_t version, struct hc_dec *from, void *msg) \
	{ \
		struct hc_dec in = *from; \
		struct hc_m_##name *m = msg; \
		(void)version; \
		(void)m;
#define REC(name)		 DESC(name)
#define MSG(number, name, what)	 DESC(name)
#define F(of, type, field, since, what) \
		if ((since) > version) \
			memset(&m->field, 0, sizeof(m->field)); \
		else if (!read_##type(&in, MAX_##type, &m->field)) \
			return false;
#define A(of, rec, field, max, since, what) \
		if ((since) > version) \
			memset(&m->field, 0, sizeof(m->field)); \
		else if (!get_array(&hc_desc_##rec, max, version, &in, &m->field)) \
			return false;
#define END(of) \
		*from = in; \
		return true; \
	}
#include "messages.tbl.h"
#undef DESC
#undef REC
#undef MSG
#undef F
#undef A
#undef END
/* clang-format on */

int hc_decode(const struct hc_desc *d, uint16_t version, const uint8_t *buf, size_t len, void *msg)
{
	struct hc_dec in = in_of(buf, len);

	if (len > UINT32_MAX || !get_fields(d, version, &in, msg) || in.p != in.end)
		return HC_E_MALFORMED;
	return 0;
}

int hc_decode_front(const struct hc_desc *d, uint16_t version, struct hc_str *s, void *rec)
{
	struct hc_dec in = in_of(s->p, s->len);

	if (!get_fields(d, version, &in, rec))
		return HC_E_MALFORMED;
	s->p = (const char *)in.p;
	s->len = (uint32_t)left(&in);
	return 0;
}

bool hc_arr_next(struct hc_arr *a, const struct hc_desc *rec, uint16_t version, void *out)
{
	struct hc_dec in = in_of(a->bytes, a->len);

	if (!a->count || !get_fields(rec, version, &in, out))
		return false;
	a->count--;
	a->len = (uint32_t)left(&in);
	a->bytes = in.p;
	return true;
}

/* ---- encoding ---- */

struct hc_enc {
	uint8_t *p, *end;
};

static inline size_t room(const struct hc_enc *o)
{
	return (size_t)(o->end - o->p);
}

static inline int put_bytes(struct hc_enc *o, const void *bytes, size_t n)
{
	if (n > room(o))
		return HC_E_BUFFER_OVERFLOW;
	if (n) /* the pointer of an empty string may be NULL, which memcpy does not take */
		memcpy(o->p, bytes, n);
	o->p += n;
	return 0;
}

static int put_string(uint32_t max, struct hc_enc *o, const struct hc_str *s)
{
	if (s->len > max)
		return HC_E_LIMIT;
	store16(o->p, (uint16_t)s->len);
	o->p += 2;
	return put_bytes(o, s->p, s->len);
}

static int put_array(uint32_t max, struct hc_enc *o, const struct hc_arr *a)
{
	if (a->count > max)
		return HC_E_LIMIT;
	store32(o->p, a->count);
	o->p += 4;
	return put_bytes(o, a->bytes, a->len);
}

static inline int put_field(const struct hc_field *f, struct hc_enc *o, const void *from)
{
	const struct hc_str *s = from;
	size_t n = wire_min(f->type);
	uint8_t *p = o->p;

	if (room(o) < n)
		return HC_E_BUFFER_OVERFLOW;
	switch ((enum hc_type)f->type) {
	case HC_T_u8: *p = *(const uint8_t *)from; break;
	case HC_T_u16: store16(p, *(const uint16_t *)from); break;
	case HC_T_u32: store32(p, *(const uint32_t *)from); break;
	case HC_T_u64: store64(p, *(const uint64_t *)from); break;
	case HC_T_id: store64(p, *(const uint64_t *)from); break;
	case HC_T_i32: store32(p, (uint32_t)(*(const int32_t *)from)); break;
	case HC_T_id16: memcpy(p, from, 16); break;
	case HC_T_name: return put_string(f->max, o, s);
	case HC_T_text: return put_string(f->max, o, s);
	case HC_T_blob: return put_string(f->max, o, s);
	case HC_T_rest: return put_bytes(o, s->p, s->len);
	case HC_T_array: return put_array(f->max, o, from);
	}
	o->p += n;
	return 0;
}

static int put_fields(const struct hc_desc *d, uint16_t version, struct hc_enc *o, const void *msg)
{
	const struct hc_field *f = d->fields, *end = f + d->nfields;
	int r = 0;

	if (d->put)
		return d->put(version, o, msg);
	for (; !r && f < end; f++)
		if (f->since <= version)
			r = put_field(f, o, (const char *)msg + f->offset);
	return r;
}

#define FIXED(type, of_c, store)                                                                   \
	static inline __attribute__((always_inline)) int write_##type(                             \
		struct hc_enc *o, uint32_t max, const of_c *from)                                  \
	{                                                                                          \
		(void)max;                                                                         \
		if (room(o) < sizeof(*from))                                                       \
			return HC_E_BUFFER_OVERFLOW;                                               \
		store(o->p, *from);                                                                \
		o->p += sizeof(*from);                                                             \
		return 0;                                                                          \
	}
FIXED(u8, uint8_t, store8)
FIXED(u16, uint16_t, store16)
FIXED(u32, uint32_t, store32)
FIXED(u64, uint64_t, store64)
FIXED(i32, int32_t, store_i32)
FIXED(id16, hc_ct_id16, store_id16)
#undef FIXED

/* Their two or four bytes of length are asked for here. */
static int write_string(struct hc_enc *o, uint32_t max, const struct hc_str *s)
{
	return room(o) < 2 ? HC_E_BUFFER_OVERFLOW : put_string(max, o, s);
}

static int write_array(struct hc_enc *o, uint32_t max, const struct hc_arr *a)
{
	return room(o) < 4 ? HC_E_BUFFER_OVERFLOW : put_array(max, o, a);
}
#define write_id                 write_u64
#define write_name               write_string
#define write_text               write_string
#define write_blob               write_string
#define write_rest(o, max, from) put_bytes(o, (from)->p, (from)->len)

/* clang-format off */
#define DESC(name) \
	static int put_##name(uint16_t version, struct hc_enc *to, const void *msg) \
	{ \
		const struct hc_m_##name *m = msg; \
		struct hc_enc o = *to; \
		int r = 0; \
		(void)version; \
		(void)m;
#define REC(name)		 DESC(name)
#define MSG(number, name, what)	 DESC(name)
#define F(of, type, field, since, what) \
		if ((since) <= version && (r = write_##type(&o, MAX_##type, &m->field))) \
			return r;
#define A(of, rec, field, max, since, what) \
		if ((since) <= version && (r = write_array(&o, max, &m->field))) \
			return r;
#define END(of) \
		*to = o; \
		return r; \
	}
#include "messages.tbl.h"
#undef DESC
#undef REC
#undef MSG
#undef F
#undef A
#undef END
/* clang-format on */

int hc_encode(const struct hc_desc *d, uint16_t version, const void *msg, uint8_t *buf, size_t cap,
	      size_t *len)
{
	struct hc_enc o = {buf, buf + cap};
	int r = put_fields(d, version, &o, msg);

	if (!r)
		*len = (size_t)(o.p - buf);
	return r;
}

int hc_arr_put(struct hc_arr *a, uint8_t *buf, size_t cap, const struct hc_desc *rec,
	       uint16_t version, const void *in)
{
	size_t n;
	int r;

	if (a->len > cap)
		return HC_E_BUFFER_OVERFLOW;
	r = hc_encode(rec, version, in, buf + a->len, cap - a->len, &n);
	if (r)
		return r;
	if (n > UINT32_MAX - a->len)
		return HC_E_BUFFER_OVERFLOW;
	a->bytes = buf;
	a->len += (uint32_t)n;
	a->count++;
	return 0;
}
