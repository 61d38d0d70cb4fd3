/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts: see verdict.h. Formatting goes through one scratch buffer and hc_escape, so no caller
 * can forget to clean text that came out of a file.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "verdict.h"

struct row {
	const char *name, *about;
};

static const struct row rows[HC_V_COUNT] = {[HC_V_NONE] = {"", "accepted"},
#define X(sym, name, text) [HC_V_##sym] = {name, text},
					    HC_VERDICT_KINDS(X)
#undef X
};

const char *hc_verdict_name(enum hc_verdict_kind kind)
{
	return kind < HC_V_COUNT ? rows[kind].name : "?";
}

const char *hc_verdict_about(enum hc_verdict_kind kind)
{
	return kind < HC_V_COUNT ? rows[kind].about : "?";
}

const char *hc_verdict_outcome(const struct hc_verdict *v)
{
	if (v->kind == HC_V_NONE)
		return "accept";
	return v->kind == HC_V_NOT_READY ? "not-ready" : "reject";
}

/* ---- clean text ---- */

/* Length of the UTF-8 character at p, 0 when it is not one (surrogates and long forms included). */
static size_t utf8_len(const unsigned char *p, size_t left, uint32_t *cp)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i;

	if (!n || p[0] > 0xf4 || n > left)
		return 0;
	*cp = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (p[i] & 0x3fu);
	}
	if ((n == 3 && *cp < 0x800) || (n == 4 && (*cp < 0x10000 || *cp > 0x10ffff)))
		return 0;
	return *cp >= 0xd800 && *cp <= 0xdfff ? 0 : n;
}

static bool harmless(uint32_t cp)
{
	if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || cp == 0xfeff)
		return false;
	if ((cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e))
		return false;
	return cp < 0x2060 || (cp > 0x206f && (cp < 0xe0000 || cp > 0xe0fff));
}

size_t hc_escape(char *dst, size_t size, const char *src, size_t len)
{
	const unsigned char *p = (const unsigned char *)src;
	size_t out = 0, keep = 0, i = 0, n, k;
	char piece[20];
	uint32_t cp;

	if (!size)
		return 0;
	while (i < len) {
		n = utf8_len(p + i, len - i, &cp);
		if (n && harmless(cp)) {
			memcpy(piece, src + i, n);
			k = n;
		} else {
			n = n ? n : 1;
			for (k = 0; k < n; k++)
				snprintf(piece + 4 * k, 5, "\\x%02x", p[i + k]);
			k = 4 * n;
		}
		if (out + k >= size)
			break;
		memcpy(dst + out, piece, k);
		out += k;
		if (out + 3 < size)
			keep = out;
		i += n;
	}
	if (i < len && size > 4) {
		memcpy(dst + keep, "...", 3);
		out = keep + 3;
	}
	dst[out] = '\0';
	return out;
}

const char *hc_clip(struct hc_clip *c, const char *text)
{
	hc_escape(c->s, sizeof(c->s), text, strlen(text));
	return c->s;
}

static void format(char *dst, size_t size, const char *fmt, va_list ap)
{
	char raw[2048];

	vsnprintf(raw, sizeof(raw), fmt, ap);
	hc_escape(dst, size, raw, strlen(raw));
}

static void copy(char *dst, size_t size, const char *src)
{
	hc_escape(dst, size, src ? src : "", src ? strlen(src) : 0);
}

/* ---- filling one ---- */

void hc_verdict_init(struct hc_verdict *v)
{
	memset(v, 0, sizeof(*v));
}

void hc_verdict_set(struct hc_verdict *v, enum hc_verdict_kind kind, const char *fmt, ...)
{
	va_list ap;

	v->kind = kind;
	va_start(ap, fmt);
	format(v->message, sizeof(v->message), fmt, ap);
	va_end(ap);
}

void hc_verdict_detail(struct hc_verdict *v, const char *path, const char *found,
		       const char *wanted)
{
	copy(v->path, sizeof(v->path), path);
	copy(v->found, sizeof(v->found), found);
	copy(v->wanted, sizeof(v->wanted), wanted);
}

struct hc_warning *hc_verdict_warn(struct hc_verdict *v, enum hc_verdict_kind kind, const char *fmt,
				   ...)
{
	struct hc_warning *w;
	va_list ap;

	if (v->nwarnings == HC_WARNINGS_MAX) {
		v->suppressed++;
		return NULL;
	}
	w = &v->warnings[v->nwarnings++];
	w->kind = kind;
	va_start(ap, fmt);
	format(w->message, sizeof(w->message), fmt, ap);
	va_end(ap);
	return w;
}

int hc_verdict_system(struct hc_verdict *v, int err, const char *what)
{
	hc_verdict_set(v, HC_V_UNREADABLE, "%s: %s", what, strerror(err));
	hc_verdict_detail(v, "", strerror(err), "");
	return -err;
}

/* ---- showing one ---- */

static size_t line(enum hc_verdict_kind kind, const char *lead, uint32_t at_line, uint32_t column,
		   const char *message, const char *file, char *buf, size_t size)
{
	char name[256], place[32] = "";
	int n;

	copy(name, sizeof(name), file);
	if (at_line)
		snprintf(place, sizeof(place), ":%u:%u", at_line, column);
	n = snprintf(buf, size, "%s%s: %s%s: %s", name, place, lead,
		     kind == HC_V_NONE ? "ok" : hc_verdict_name(kind), message);
	if (n < 0 || !size)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}

size_t hc_verdict_line(const struct hc_verdict *v, const char *file, char *buf, size_t size)
{
	return line(v->kind, "", v->line, v->column, v->message, file, buf, size);
}

size_t hc_warning_line(const struct hc_warning *w, const char *file, char *buf, size_t size)
{
	return line(w->kind, "warning: ", w->line, w->column, w->message, file, buf, size);
}

static json_t *text_or_null(const char *s)
{
	return *s ? json_string(s) : json_null();
}

static json_t *number_or_null(uint32_t n)
{
	return n ? json_integer(n) : json_null();
}

static json_t *warning_json(const struct hc_warning *w)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:s}", "kind", hc_verdict_name(w->kind), "path",
			 text_or_null(w->path), "line", number_or_null(w->line), "column",
			 number_or_null(w->column), "message", w->message);
}

json_t *hc_verdict_json(const struct hc_verdict *v, const char *file)
{
	json_t *list = json_array();
	char name[4096];
	uint32_t i;

	copy(name, sizeof(name), file);
	for (i = 0; list && i < v->nwarnings; i++) {
		if (json_array_append_new(list, warning_json(&v->warnings[i]))) {
			json_decref(list);
			list = NULL;
		}
	}
	/* json_pack takes over each "o", whether it succeeds or not */
	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:I}",
			 "schema_version", 1, "file", name, "verdict", hc_verdict_outcome(v),
			 "kind", text_or_null(hc_verdict_name(v->kind)), "path",
			 text_or_null(v->path), "line", number_or_null(v->line), "column",
			 number_or_null(v->column), "found", text_or_null(v->found), "wanted",
			 text_or_null(v->wanted), "message", v->message, "warnings", list,
			 "warnings_suppressed", (json_int_t)v->suppressed);
}
