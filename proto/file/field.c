/* SPDX-License-Identifier: Apache-2.0 */
/* Typed field access with faults that name their place; see field.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "field.h"
#include "jsonpos.h"

/* ---- places ---- */

struct hc_at hc_at_in(const struct hc_at *at, const char *key, size_t index)
{
	struct hc_at in = *at;

	if (in.depth < sizeof(in.step) / sizeof(in.step[0]))
		in.step[in.depth++] = (struct hc_step){key, (uint32_t)index};
	return in;
}

static void path_of(const struct hc_at *at, const char *field, char *buf, size_t size)
{
	size_t n = 0;
	uint32_t i;

	buf[0] = '\0';
	for (i = 0; i < at->depth && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s[%u]", i ? "." : "", at->step[i].key,
				      at->step[i].index);
	if (field && n < size)
		snprintf(buf + n, size - n, "%s%s", n ? "." : "", field);
}

static size_t add_label(char *buf, size_t size, size_t n, const char *what, const char *value)
{
	if (n < size)
		snprintf(buf + n, size - n, "%s%s %s", n ? ", " : "", what, value);
	return strlen(buf);
}

static const char *scalar(const json_t *value, struct hc_clip *c)
{
	if (json_is_string(value))
		return hc_clip(c, json_string_value(value));
	if (json_is_integer(value)) {
		snprintf(c->s, sizeof(c->s), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return c->s;
	}
	return "?";
}

const char *hc_at_label(const struct hc_at *at, char *buf, size_t size)
{
	struct hc_clip c;
	size_t n = 0;

	buf[0] = '\0';
	if (at->noun && at->depth) {
		snprintf(c.s, sizeof(c.s), "%u", at->step[0].index);
		n = add_label(buf, size, n, at->noun, c.s);
	}
	if (at->server)
		n = add_label(buf, size, n, "server", hc_clip(&c, at->server));
	if (at->device)
		n = add_label(buf, size, n, "device", scalar(at->device, &c));
	if (at->rank)
		add_label(buf, size, n, "rank", scalar(at->rank, &c));
	return buf;
}

static void place(const struct hc_doc *d, const char *path, uint32_t *line, uint32_t *column)
{
	size_t offset;

	hc_jsonpos_find(d->text->data, d->text->len, path, &offset);
	hc_jsonpos_line(d->text->data, d->text->len, offset, line, column);
}

int hc_doc_fail(const struct hc_doc *d, const struct hc_at *at, const char *field,
		enum hc_verdict_kind kind, const char *found, const char *wanted, const char *fmt,
		...)
{
	char label[256], message[1024], path[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	hc_at_label(at, label, sizeof(label));
	path_of(at, field, path, sizeof(path));
	hc_verdict_set(d->v, kind, "%s%s%s", label, *label ? ": " : "", message);
	hc_verdict_detail(d->v, path, found, wanted);
	place(d, path, &d->v->line, &d->v->column);
	return HC_FILE_REFUSED;
}

void hc_doc_warn(const struct hc_doc *d, const struct hc_at *at, const char *field,
		 enum hc_verdict_kind kind, const char *fmt, ...)
{
	char label[256], message[512];
	struct hc_warning *w;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	hc_at_label(at, label, sizeof(label));
	w = hc_verdict_warn(d->v, kind, "%s%s%s", label, *label ? ": " : "", message);
	if (!w)
		return;
	path_of(at, field, w->path, sizeof(w->path));
	place(d, w->path, &w->line, &w->column);
}

/* ---- values ---- */

const char *hc_value_text(const json_t *value, struct hc_clip *c)
{
	char inner[60];

	switch (json_typeof(value)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "a list";
	case JSON_TRUE: return "true";
	case JSON_FALSE: return "false";
	case JSON_NULL: return "null";
	case JSON_REAL:
		snprintf(c->s, sizeof(c->s), "the number %.17g", json_real_value(value));
		return c->s;
	case JSON_INTEGER:
		snprintf(c->s, sizeof(c->s), "the number %" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		return c->s;
	case JSON_STRING:
		hc_escape(inner, sizeof(inner), json_string_value(value),
			  json_string_length(value));
		snprintf(c->s, sizeof(c->s), "the text \"%s\"", inner);
		return c->s;
	}
	return "?";
}

static int missing(const struct hc_doc *d, const struct hc_at *at, const char *name)
{
	return hc_doc_fail(d, at, name, HC_V_MISSING_FIELD, "", name, "%s is missing", name);
}

static int wrong_type(const struct hc_doc *d, const struct hc_at *at, const char *name,
		      const json_t *value, const char *wanted)
{
	struct hc_clip c;
	const char *found = hc_value_text(value, &c);

	return hc_doc_fail(d, at, name, HC_V_WRONG_TYPE, found, wanted, "%s is %s; %s is wanted",
			   name ? name : "this entry", found, wanted);
}

int hc_want_object(const struct hc_doc *d, const struct hc_at *at, const json_t *value)
{
	return json_is_object(value) ? 0 : wrong_type(d, at, NULL, value, "an object");
}

int hc_get_text(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, size_t len_max, const char **out)
{
	const json_t *value = json_object_get(obj, name);
	char wanted[64];

	*out = NULL;
	if (!value)
		return flags & HC_F_REQUIRED ? missing(d, at, name) : 0;
	if (!json_is_string(value))
		return wrong_type(d, at, name, value, "a text in quotes");
	if (flags & HC_F_FILLED && !json_string_length(value))
		return hc_doc_fail(d, at, name, HC_V_EMPTY, "\"\"", "a text that is not empty",
				   "%s is empty", name);
	if (json_string_length(value) > len_max) {
		snprintf(wanted, sizeof(wanted), "at most %zu bytes", len_max);
		return hc_doc_fail(d, at, name, HC_V_TOO_LONG, json_string_value(value), wanted,
				   "%s has %zu bytes; %s are allowed", name,
				   json_string_length(value), wanted);
	}
	*out = json_string_value(value);
	return 0;
}

int hc_get_list(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, size_t len_max, const json_t **out)
{
	const json_t *value = json_object_get(obj, name);
	char found[32], wanted[32];

	*out = NULL;
	if (!value)
		return flags & HC_F_REQUIRED ? missing(d, at, name) : 0;
	if (!json_is_array(value))
		return wrong_type(d, at, name, value, "a list");
	if (flags & HC_F_FILLED && !json_array_size(value))
		return hc_doc_fail(d, at, name, HC_V_EMPTY, "an empty list", "at least one entry",
				   "%s is an empty list; at least one entry is wanted", name);
	if (json_array_size(value) > len_max) {
		snprintf(found, sizeof(found), "%zu", json_array_size(value));
		snprintf(wanted, sizeof(wanted), "at most %zu", len_max);
		return hc_doc_fail(d, at, name, HC_V_OUT_OF_RANGE, found, wanted,
				   "%s has %s entries; %s are allowed", name, found, wanted);
	}
	*out = value;
	return 0;
}

int hc_number_parse(const char *text, uint32_t max, uint32_t *out)
{
	size_t n = strspn(text, "0123456789"), i;
	uint64_t value = 0;

	if (!n || text[n] || (n > 1 && text[0] == '0'))
		return -1;
	for (i = 0; i < n && value <= max; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (value > max)
		return 1;
	*out = (uint32_t)value;
	return 0;
}

/* -1: no whole number; 1: out of range; 0: in `out` */
static int value_number(const json_t *value, uint32_t min, uint32_t max, uint32_t *out)
{
	int r = 0;

	if (json_is_string(value))
		r = hc_number_parse(json_string_value(value), max, out);
	else if (!json_is_integer(value))
		return -1;
	else if (json_integer_value(value) < 0 || json_integer_value(value) > max)
		return 1;
	else
		*out = (uint32_t)json_integer_value(value);
	return r ? r : *out < min;
}

int hc_get_number(const struct hc_doc *d, const struct hc_at *at, const json_t *obj,
		  const char *name, unsigned flags, uint32_t min, uint32_t max, uint32_t *out)
{
	const json_t *value = json_object_get(obj, name);
	enum hc_verdict_kind kind;
	uint32_t number = 0;
	struct hc_clip c;
	char wanted[64];
	int r;

	if (!value)
		return flags & HC_F_REQUIRED ? missing(d, at, name) : 0;
	if (d->text_numbers && !json_is_string(value))
		return wrong_type(d, at, name, value, "a number in quotes");
	if (!d->text_numbers && !json_is_number(value))
		return wrong_type(d, at, name, value, "a number without quotes");
	r = value_number(value, min, max, &number);
	if (!r) {
		*out = number;
		return 0;
	}
	kind = flags & HC_F_PORT ? HC_V_BAD_PORT : r < 0 ? HC_V_BAD_NUMBER : HC_V_OUT_OF_RANGE;
	snprintf(wanted, sizeof(wanted), "a whole number %u..%u", min, max);
	return hc_doc_fail(d, at, name, kind, hc_value_text(value, &c), wanted,
			   "%s is %s; %s is wanted", name, hc_value_text(value, &c), wanted);
}

int hc_get_word(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, const char *const *words, const char *wanted, unsigned *out)
{
	const char *text;
	unsigned i;
	int r = hc_get_text(d, at, obj, name, flags, SIZE_MAX, &text);

	if (r || !text)
		return r;
	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*out = i;
			return 0;
		}
	}
	return hc_doc_fail(d, at, name, HC_V_OUT_OF_RANGE, text, wanted, "%s is \"%s\"; wanted: %s",
			   name, HC_CLIP(text), wanted);
}

/* ---- ports ---- */

bool hc_port_parse(const char *text, struct hc_port_name *out)
{
	const char *slash = strchr(text, '/');
	char die[6];
	uint32_t a = 0, b = 0;
	size_t n;

	memset(out, 0, sizeof(*out));
	out->d2h = !strcmp(text, "d2h");
	if (out->d2h)
		return true;
	n = slash ? (size_t)(slash - text) : 0;
	if (!n || n >= sizeof(die))
		return false;
	memcpy(die, text, n);
	die[n] = '\0';
	if (hc_number_parse(die, UINT16_MAX, &a) || hc_number_parse(slash + 1, UINT16_MAX, &b))
		return false;
	out->die = (uint16_t)a;
	out->port = (uint16_t)b;
	return true;
}

static int check_port(const struct hc_doc *d, const struct hc_at *at, const json_t *value)
{
	static const char wanted[] = "\"die/port\", like \"0/1\", or \"d2h\"";
	struct hc_port_name port;

	if (!json_is_string(value))
		return wrong_type(d, at, NULL, value, "a text in quotes");
	if (json_string_length(value) > 32)
		return hc_doc_fail(d, at, NULL, HC_V_TOO_LONG, json_string_value(value),
				   "at most 32 bytes",
				   "this port has %zu bytes; at most 32 are allowed",
				   json_string_length(value));
	if (hc_port_parse(json_string_value(value), &port))
		return 0;
	return hc_doc_fail(d, at, NULL, HC_V_BAD_PORT, json_string_value(value), wanted,
			   "port \"%s\"; %s is wanted", HC_CLIP(json_string_value(value)), wanted);
}

int hc_get_ports(const struct hc_doc *d, const struct hc_at *at, const json_t *obj,
		 const char *name, size_t len_max, const json_t **out)
{
	int r = hc_get_list(d, at, obj, name, HC_F_REQUIRED | HC_F_FILLED, len_max, out);
	struct hc_at in;
	size_t i;

	for (i = 0; !r && i < json_array_size(*out); i++) {
		in = hc_at_in(at, name, i);
		r = check_port(d, &in, json_array_get(*out, i));
	}
	return r;
}
