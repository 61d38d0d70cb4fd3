/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and parsing of JSON files; see jsonfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "jsonfile.h"
#include "jsonpos.h"

void *hc_file_alloc(size_t bytes)
{
	json_malloc_t get;
	json_free_t put;

	json_get_alloc_funcs(&get, &put);
	return get(bytes ? bytes : 1);
}

void hc_file_free(void *p)
{
	json_malloc_t get;
	json_free_t put;

	json_get_alloc_funcs(&get, &put);
	if (p)
		put(p);
}

int hc_file_grow(void **array, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 16;
	void *p;

	if (need <= *cap)
		return 0;
	while (n < need)
		n *= 2;
	if (n > SIZE_MAX / size)
		return -ENOMEM;
	p = hc_file_alloc(n * size);
	if (!p)
		return -ENOMEM;
	if (*array)
		memcpy(p, *array, *cap * size);
	hc_file_free(*array);
	*array = p;
	*cap = n;
	return 0;
}

/* ---- loading ---- */

static int too_long(struct hc_verdict *v, uint64_t bytes, bool more, size_t bytes_max)
{
	char found[64], wanted[64];

	snprintf(found, sizeof(found), "%s%llu bytes", more ? "more than " : "",
		 (unsigned long long)bytes);
	snprintf(wanted, sizeof(wanted), "at most %zu bytes", bytes_max);
	hc_verdict_set(v, HC_V_TOO_LONG, "the file has %s; %s are read", found, wanted);
	hc_verdict_detail(v, "", found, wanted);
	return HC_FILE_REFUSED;
}

static int empty_file(struct hc_verdict *v)
{
	hc_verdict_set(v, HC_V_EMPTY_FILE, "the file is empty (0 bytes); a JSON object is wanted");
	hc_verdict_detail(v, "", "0 bytes", "a JSON object");
	v->line = v->column = 1;
	return HC_FILE_REFUSED;
}

int hc_jsontext_set(const void *data, size_t len, size_t bytes_max, struct hc_jsontext *t,
		    struct hc_verdict *v)
{
	memset(t, 0, sizeof(*t));
	if (len > bytes_max)
		return too_long(v, len, false, bytes_max);
	if (!len)
		return empty_file(v);
	t->data = data;
	t->len = len;
	return 0;
}

/* Reads up to one byte more than is allowed, to notice a file that grew or has no known size. */
static int read_all(int fd, size_t expect, size_t bytes_max, struct hc_jsontext *t,
		    struct hc_verdict *v)
{
	size_t cap = 0;
	ssize_t n;
	int r;

	for (;;) {
		r = hc_file_grow((void **)&t->owned, &cap, t->len ? t->len + 1 : expect + 1, 1);
		if (r < 0)
			return hc_verdict_system(v, ENOMEM, "cannot read the file");
		n = read(fd, t->owned + t->len, cap - t->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hc_verdict_system(v, errno, "cannot read the file");
		if (!n)
			return 0;
		t->len += (size_t)n;
		if (t->len > bytes_max)
			return too_long(v, bytes_max, true, bytes_max);
	}
}

int hc_jsontext_load_fd(int fd, size_t bytes_max, struct hc_jsontext *t, struct hc_verdict *v)
{
	struct stat st;
	size_t expect;
	int r;

	memset(t, 0, sizeof(*t));
	if (fstat(fd, &st) < 0)
		return hc_verdict_system(v, errno, "cannot read the file");
	if (S_ISDIR(st.st_mode))
		return hc_verdict_system(v, EISDIR, "cannot read it as a file");
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > bytes_max)
		return too_long(v, (uint64_t)st.st_size, false, bytes_max);
	expect = S_ISREG(st.st_mode) ? (size_t)st.st_size : 4096;
	r = read_all(fd, expect, bytes_max, t, v);
	if (!r && !t->len)
		r = empty_file(v);
	t->data = t->owned;
	if (r)
		hc_jsontext_fini(t);
	return r;
}

int hc_jsontext_load(const char *path, size_t bytes_max, struct hc_jsontext *t,
		     struct hc_verdict *v)
{
	int fd, flags, r;

	memset(t, 0, sizeof(*t));
	/* non-blocking, or a pipe without a writer would hold us for ever */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return hc_verdict_system(v, errno, "cannot open the file");
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	r = hc_jsontext_load_fd(fd, bytes_max, t, v);
	close(fd);
	return r;
}

void hc_jsontext_fini(struct hc_jsontext *t)
{
	hc_file_free(t->owned);
	memset(t, 0, sizeof(*t));
}

/* ---- parsing ---- */

/* The token that the parser stopped at, as it quotes it; moves `at` from its end to its start. */
static size_t near_token(const struct hc_jsontext *t, const json_error_t *e, size_t *at,
			 const char **token)
{
	const char *p = strstr(e->text, " near '"), *q = strrchr(e->text, '\'');
	size_t n;

	if (!p || q < p + 7)
		return 0;
	p += 7;
	n = (size_t)(q - p);
	if (n > *at || memcmp(t->data + *at - n, p, n))
		return 0;
	*at -= n;
	*token = t->data + *at;
	return n;
}

/* What people do to JSON by hand, in their words; NULL for everything else. */
static const char *habit(const struct hc_jsontext *t, size_t at, enum json_error_code code)
{
	const char *p = t->data;
	size_t i = at;

	if (t->len - at >= 3 && !memcmp(p + at, "\xef\xbb\xbf", 3))
		return "a byte order mark; JSON text begins without one";
	if (at < t->len && (p[at] == '#' || p[at] == '/'))
		return "a comment; JSON has no comments";
	if (code != json_error_invalid_syntax || at >= t->len || (p[at] != ']' && p[at] != '}'))
		return NULL;
	while (i && strchr(" \t\r\n", p[i - 1]))
		i--;
	return i && p[i - 1] == ',' ? "a comma before the closing bracket; JSON has none there"
				    : NULL;
}

static enum hc_verdict_kind syntax_kind(enum json_error_code code)
{
	if (code == json_error_duplicate_key)
		return HC_V_DUPLICATE_KEY;
	return code == json_error_numeric_overflow ? HC_V_BAD_NUMBER : HC_V_SYNTAX;
}

static void syntax_message(struct hc_verdict *v, enum json_error_code code, const char *text,
			   const char *token, const char *hint)
{
	const uint32_t line = v->line, col = v->column;

	if (hint)
		hc_verdict_set(v, HC_V_SYNTAX, "line %u column %u has %s", line, col, hint);
	else if (code == json_error_duplicate_key)
		hc_verdict_set(v, HC_V_DUPLICATE_KEY,
			       "key %s stands twice in one object; one value is wanted", token);
	else if (code == json_error_numeric_overflow)
		hc_verdict_set(v, HC_V_BAD_NUMBER, "number %s is too large", token);
	else if (code == json_error_premature_end_of_input)
		hc_verdict_set(v, HC_V_SYNTAX,
			       "the file breaks off: end of file at line %u "
			       "column %u, before the last bracket is closed",
			       line, col);
	else if (code == json_error_end_of_input_expected)
		hc_verdict_set(v, HC_V_SYNTAX,
			       "more text after the end of the JSON value, at line "
			       "%u column %u: %s",
			       line, col, token);
	else if (*token)
		hc_verdict_set(v, HC_V_SYNTAX, "line %u column %u is not JSON: %s at %s", line, col,
			       text, token);
	else
		hc_verdict_set(v, HC_V_SYNTAX, "line %u column %u is not JSON: %s", line, col,
			       text);
}

static int syntax(const struct hc_jsontext *t, json_error_t *e, struct hc_verdict *v)
{
	size_t at = e->position > 0 ? (size_t)e->position : 0, n;
	enum json_error_code code = json_error_code(e);
	const char *token = "", *hint;
	char text[JSON_ERROR_TEXT_LENGTH];
	struct hc_clip shown = {""};

	if (at > t->len)
		at = t->len;
	snprintf(text, sizeof(text), "%.*s", (int)(sizeof(text) - 1), e->text);
	n = near_token(t, e, &at, &token);
	if (n)
		*strstr(text, " near '") = '\0';
	if (code == json_error_premature_end_of_input)
		at = t->len;
	hc_escape(shown.s, sizeof(shown.s), token, n);
	hc_jsonpos_line(t->data, t->len, at, &v->line, &v->column);
	hint = code == json_error_premature_end_of_input ? NULL : habit(t, at, code);
	syntax_message(v, code, text, shown.s, hint);
	hc_verdict_detail(
		v, "", code == json_error_premature_end_of_input ? "end of file" : shown.s, "JSON");
	v->kind = hint ? HC_V_SYNTAX : syntax_kind(code);
	return HC_FILE_REFUSED;
}

static int nul_byte(const struct hc_jsontext *t, const char *at, struct hc_verdict *v)
{
	hc_jsonpos_line(t->data, t->len, (size_t)(at - t->data), &v->line, &v->column);
	hc_verdict_set(v, HC_V_SYNTAX, "line %u column %u has a NUL byte; JSON is text", v->line,
		       v->column);
	hc_verdict_detail(v, "", "a NUL byte", "JSON");
	return HC_FILE_REFUSED;
}

int hc_jsontext_parse(const struct hc_jsontext *t, json_t **root, struct hc_verdict *v)
{
	const char *nul = memchr(t->data, 0, t->len);
	json_error_t e;

	*root = NULL;
	if (nul) /* the parser takes one for the end of the file */
		return nul_byte(t, nul, v);
	memset(&e, 0, sizeof(e));
	*root = json_loadb(t->data, t->len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (*root)
		return 0;
	/* Without memory the parser often just stops and leaves no text. When it is a token that
	 * finds no memory it says "invalid token", which nobody can tell from a real one. */
	if (!e.text[0] || json_error_code(&e) == json_error_out_of_memory)
		return hc_verdict_system(v, ENOMEM, "cannot parse the file");
	return syntax(t, &e, v);
}
