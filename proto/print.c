/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of views as text and JSON; see print.h.
 *
 * Strings come from other processes and other nodes. Both writers read them through one
 * decoder of UTF-8 that accepts only shortest forms below U+110000 without surrogates; what
 * it refuses is replaced byte by byte. So JSON is always valid, and a cell cannot move a
 * terminal's cursor.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "hcomm/views.h"
#include "print.h"

typedef uint8_t pub_u8;
typedef uint16_t pub_u16;
typedef uint32_t pub_u32;
typedef uint64_t pub_u64;
typedef uint64_t pub_id;
typedef int32_t pub_i32;
typedef char pub_name[HC_NAME_MAX + 1];
typedef char pub_text[HC_TEXT_MAX + 1];

/* clang-format off */
/* the generated header is as the table says */
#define VIEW(number, name, owner, what)
#define V(of, type, field, since, heading, what) \
	static_assert(sizeof(((struct hcomm_view_##of *)0)->field) == sizeof(pub_##type), #of "." #field);
#define ENDV(of)
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV

#define VIEW(number, name, owner, what) static const struct hc_print_field fields_##name[] = {
#define V(of, type, field, since, heading, what) \
	{#field, heading, offsetof(struct hcomm_view_##of, field), sizeof(pub_##type), HC_T_##type},
#define ENDV(of)		 };
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV

#define VIEW(number, name, owner, what) \
	[number] = {#name, fields_##name, sizeof(fields_##name) / sizeof(fields_##name[0]), number, \
		    sizeof(struct hcomm_view_##name)},
#define V(of, type, field, since, heading, what)
#define ENDV(of)
static const struct hc_print_view views[] = {
#include "views.tbl.h"
};
#undef VIEW
#undef V
#undef ENDV
/* clang-format on */

#define VIEWS (sizeof(views) / sizeof(views[0]))

const struct hc_print_view *hc_view_public(unsigned view)
{
	return view < VIEWS && views[view].name ? &views[view] : NULL;
}

const struct hc_print_view *hc_view_named(const char *name)
{
	unsigned i;

	for (i = 0; i < VIEWS; i++) {
		if (views[i].name && !strcmp(views[i].name, name))
			return &views[i];
	}
	return NULL;
}

static uint32_t size_of(const void *row)
{
	uint32_t size;

	memcpy(&size, row, sizeof(size));
	return size;
}

static bool has(const void *row, const struct hc_print_field *f)
{
	return f->offset + f->bytes <= size_of(row);
}

static bool is_string(const struct hc_print_field *f)
{
	return f->type == HC_T_name || f->type == HC_T_text;
}

int hc_view_to_public(unsigned view, const void *wire, void *pub)
{
	const struct hc_print_view *v = hc_view_public(view);
	const struct hc_desc *d = hc_desc_view(view);
	uint32_t size = size_of(pub);
	unsigned i;

	if (!v || !d || size < sizeof(size))
		return HC_E_INVALID;
	memset((char *)pub + sizeof(size), 0, size - sizeof(size));
	for (i = 0; i < v->nfields; i++) {
		const struct hc_print_field *f = &v->fields[i];
		const void *from = (const char *)wire + d->fields[i].offset;
		char *to = (char *)pub + f->offset;

		if (!has(pub, f))
			continue;
		if (is_string(f))
			hc_str_copy(*(const struct hc_str *)from, to, f->bytes);
		else
			memcpy(to, from, f->bytes);
	}
	return 0;
}

/* ---- text that grows ---- */

void hc_text_init(struct hc_text *t, char *buf, size_t size)
{
	t->buf = buf;
	t->size = size;
	t->len = 0;
	t->full = !size;
	if (size)
		buf[0] = '\0';
}

static void add(struct hc_text *t, const char *s, size_t n)
{
	if (t->full)
		return;
	if (n >= t->size - t->len) {
		t->full = true;
		return;
	}
	memcpy(t->buf + t->len, s, n);
	t->len += n;
	t->buf[t->len] = '\0';
}

void hc_text_add(struct hc_text *t, const char *s)
{
	add(t, s, strlen(s));
}

/* ---- strings from outside ---- */

/* Bytes of the character at the front of s, or 0 when it is not well-formed UTF-8. */
static unsigned utf8(const unsigned char *s, size_t len)
{
	unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	unsigned i;

	if (s[0] > 0xf4 || n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* U+0000 to U+001F, U+007F to U+009F */
static bool is_control(const unsigned char *s, unsigned n)
{
	return n == 1 ? s[0] < 0x20 || s[0] == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

static void add_escape(struct hc_text *t, const char *form, const unsigned char *s, unsigned n)
{
	char esc[8];

	snprintf(esc, sizeof(esc), form, (unsigned)(n == 2 ? s[1] : s[0]));
	hc_text_add(t, esc);
}

/* `quoted`: what JSON must have escaped besides; `form`: of a control character. */
static void add_outside(struct hc_text *t, const char *str, size_t len, const char *quoted,
			const char *form)
{
	const unsigned char *s = (const unsigned char *)str, *end;
	unsigned n;

	if (!len)
		return;
	for (end = s + len; s < end; s += n ? n : 1) {
		n = utf8(s, (size_t)(end - s));
		if (!n)
			hc_text_add(t, "\xef\xbf\xbd");
		else if (is_control(s, n))
			add_escape(t, form, s, n);
		else if (n == 1 && strchr(quoted, s[0]))
			add_escape(t, "\\%c", s, n);
		else
			add(t, (const char *)s, n);
	}
}

void hc_json_string(struct hc_text *t, const char *s, size_t len)
{
	hc_text_add(t, "\"");
	add_outside(t, s, len, "\"\\", "\\u%04x");
	hc_text_add(t, "\"");
}

/* ---- cells and rows ---- */

static void add_number(struct hc_text *t, const struct hc_print_field *f, const char *p)
{
	uint64_t v64 = 0;
	uint32_t v32 = 0;
	uint16_t v16;
	char s[32];

	if (f->bytes == 8)
		memcpy(&v64, p, 8);
	else if (f->bytes == 4)
		memcpy(&v32, p, 4);
	else if (f->bytes == 2)
		v32 = (memcpy(&v16, p, 2), v16);
	else
		v32 = *(const uint8_t *)p;
	if (f->type == HC_T_id)
		snprintf(s, sizeof(s), "%016llx", (unsigned long long)v64);
	else if (f->type == HC_T_i32)
		snprintf(s, sizeof(s), "%d", (int)v32);
	else
		snprintf(s, sizeof(s), "%llu", (unsigned long long)(v64 | v32));
	hc_text_add(t, s);
}

/* All bits set: there is no such number, as when something has never been. */
static bool is_none(const struct hc_print_field *f, const char *p)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	return (f->type == HC_T_u64 || f->type == HC_T_u32) && !memcmp(p, ones, f->bytes);
}

int hc_print_cell(const struct hc_print_field *f, const void *row, char *buf, size_t size)
{
	const char *p = (const char *)row + f->offset;
	struct hc_text t;

	hc_text_init(&t, buf, size);
	if (!has(row, f) || is_none(f, p))
		hc_text_add(&t, "-");
	else if (is_string(f))
		add_outside(&t, p, strnlen(p, f->bytes), "", "\\x%02x");
	else
		add_number(&t, f, p);
	return t.full ? HC_E_BUFFER_OVERFLOW : 0;
}

static void add_json_value(struct hc_text *t, const struct hc_print_field *f, const void *row)
{
	const char *p = (const char *)row + f->offset;
	const char *quote = f->type == HC_T_id ? "\"" : "";

	if (!has(row, f) || is_none(f, p)) {
		hc_text_add(t, "null");
	} else if (is_string(f)) {
		hc_json_string(t, p, strnlen(p, f->bytes));
	} else {
		hc_text_add(t, quote);
		add_number(t, f, p);
		hc_text_add(t, quote);
	}
}

void hc_json_begin(struct hc_text *t, const struct hc_print_view *v)
{
	char s[48];

	snprintf(s, sizeof(s), "{\"schema_version\":%d,\"view\":\"", HC_SCHEMA_VERSION);
	hc_text_add(t, s);
	hc_text_add(t, v->name);
	hc_text_add(t, "\",\"rows\":[");
}

void hc_json_row(struct hc_text *t, const struct hc_print_view *v, const void *row, bool first)
{
	unsigned i;

	hc_text_add(t, first ? "\n{" : ",\n{");
	for (i = 0; i < v->nfields; i++) {
		hc_text_add(t, i ? ",\"" : "\"");
		hc_text_add(t, v->fields[i].name);
		hc_text_add(t, "\":");
		add_json_value(t, &v->fields[i], row);
	}
	hc_text_add(t, "}");
}

void hc_json_end(struct hc_text *t)
{
	hc_text_add(t, "\n]}\n");
}
