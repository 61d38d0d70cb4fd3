/* SPDX-License-Identifier: Apache-2.0 */
/* The walk along a path of a JSON text; see jsonpos.h. */
#include <string.h>
#include "jsonpos.h"

struct cur {
	const char *p, *end;
};

static char peek(const struct cur *c)
{
	return c->p < c->end ? *c->p : '\0';
}

static void skip_blank(struct cur *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
}

static bool take(struct cur *c, char want)
{
	skip_blank(c);
	if (peek(c) != want)
		return false;
	c->p++;
	return true;
}

static void skip_string(struct cur *c)
{
	c->p++;
	while (c->p < c->end && *c->p != '"')
		c->p += *c->p == '\\' && c->p + 1 < c->end ? 2 : 1;
	if (c->p < c->end)
		c->p++;
}

static void skip_value(struct cur *c)
{
	size_t depth = 0;

	skip_blank(c);
	while (c->p < c->end) {
		if (*c->p == '"') {
			skip_string(c);
		} else if (*c->p == '{' || *c->p == '[') {
			depth++;
			c->p++;
		} else if (depth && (*c->p == '}' || *c->p == ']')) {
			depth--;
			c->p++;
		} else if (!depth) { /* a number or a word runs up to what cannot be in it */
			while (c->p < c->end && !strchr(",]} \t\r\n", *c->p))
				c->p++;
			return;
		} else {
			c->p++;
		}
		if (!depth)
			return;
	}
}

static int hex(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)(ch | 0x20);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* One character of a key, escapes undone; the names we look for are ASCII, others give -1. */
static int key_char(struct cur *c)
{
	int ch = *c->p++, code = 0, i;

	if (ch != '\\' || c->p >= c->end)
		return ch;
	ch = *c->p++;
	if (ch != 'u')
		return ch == 'n' || ch == 't' || ch == 'r' || ch == 'b' || ch == 'f' ? -1 : ch;
	for (i = 0; i < 4 && c->p < c->end && hex(*c->p) >= 0; i++)
		code = code * 16 + hex(*c->p++);
	return code < 0x80 ? code : -1;
}

static bool key_is(struct cur c, const char *name, size_t n)
{
	c.p++;
	while (n && c.p < c.end && *c.p != '"') {
		if (key_char(&c) != *name++)
			return false;
		n--;
	}
	return !n && peek(&c) == '"';
}

static bool enter_key(struct cur *c, const char *name, size_t n)
{
	struct cur key;

	if (!take(c, '{'))
		return false;
	do {
		skip_blank(c);
		if (peek(c) != '"')
			return false;
		key = *c;
		skip_string(c);
		if (!take(c, ':'))
			return false;
		skip_blank(c);
		if (key_is(key, name, n))
			return true;
		skip_value(c);
	} while (take(c, ','));
	return false;
}

static bool enter_index(struct cur *c, size_t index)
{
	if (!take(c, '['))
		return false;
	skip_blank(c);
	if (peek(c) == ']')
		return false;
	while (index--) {
		skip_value(c);
		if (!take(c, ','))
			return false;
	}
	skip_blank(c);
	return c->p < c->end;
}

static bool enter(struct cur *c, const char **path)
{
	const char *p = *path;
	size_t n = 0;

	if (*p == '[') {
		for (p++; *p >= '0' && *p <= '9'; p++)
			n = n * 10 + (size_t)(*p - '0');
		*path = *p == ']' ? p + 1 : p;
		return enter_index(c, n);
	}
	p += *p == '.';
	n = strcspn(p, ".[");
	*path = p + n;
	return n && enter_key(c, p, n);
}

bool hc_jsonpos_find(const char *text, size_t len, const char *path, size_t *offset)
{
	struct cur c = {text, text + len}, next;
	bool found = true;

	skip_blank(&c);
	while (*path && found) {
		next = c;
		found = enter(&next, &path);
		if (found)
			c = next;
	}
	*offset = (size_t)(c.p - text);
	return found;
}

void hc_jsonpos_line(const char *text, size_t len, size_t offset, uint32_t *line, uint32_t *column)
{
	size_t i;

	*line = *column = 1;
	for (i = 0; i < len && i < offset; i++) {
		if (text[i] == '\n') {
			++*line;
			*column = 1;
		} else if ((text[i] & 0xc0) != 0x80) {
			++*column;
		}
	}
}
