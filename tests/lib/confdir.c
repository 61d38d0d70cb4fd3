/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with configuration files, and what loading them gives; see confdir.h. */
#include <check.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "confdir.h"

#define ENV_MAX 8

char dir[256];
struct hc_conf conf;
struct hc_conf_error err;

void conf_setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/hcconf.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void conf_teardown(void)
{
	hc_conf_fini(&conf);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

void put_bytes(const char *name, const void *bytes, size_t len)
{
	FILE *f = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

/* Loads hcommd.conf of the directory with these variables and arguments. */
int load(const char *const *vars, const char *const *sets)
{
	static char text[ENV_MAX][128];
	char *env[ENV_MAX + 1] = {NULL};
	struct hc_conf_source src = {.file = path_of("hcommd.conf"), .env = env, .sets = sets};

	for (size_t i = 0; vars && vars[i]; i++) {
		ck_assert_uint_lt(i, ENV_MAX);
		snprintf(text[i], sizeof(text[i]), "%s", vars[i]);
		env[i] = text[i];
	}
	while (sets && sets[src.nsets])
		src.nsets++;
	hc_conf_fini(&conf);
	return hc_conf_load(&conf, &src, &err);
}

int load_text(const char *text)
{
	put("hcommd.conf", text);
	return load(NULL, NULL);
}

void expect_loads(const char *text)
{
	int r = load_text(text);

	ck_assert_msg(!r, "refused: %s", err.count ? err.line[0] : "(no line)");
}

/* "@" in the format stands for the test's directory. */
void expand(const char *fmt, char *out, size_t size)
{
	size_t w = 0;

	for (; *fmt && w + 1 < size; fmt++) {
		if (*fmt == '@')
			w += (size_t)snprintf(out + w, size - w, "%s", dir);
		else
			out[w++] = *fmt;
	}
	out[w] = '\0';
}

void expect_error(unsigned i, const char *fmt, ...)
{
	char text[4096], want[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	expand(text, want, sizeof(want));
	ck_assert_uint_lt(i, err.count);
	ck_assert_str_eq(err.line[i], want);
}

/* The file is refused with exactly this one line. */
void expect_refused(const char *text, const char *line)
{
	int r = load_text(text);

	ck_assert_msg(r == HC_CONF_REFUSED, "not refused: %s", text);
	expect_error(0, "%s", line);
	ck_assert_uint_eq(err.count, 1);
}

void expect_value(const char *name, const char *text, const char *origin)
{
	struct hc_conf_value v;
	char want[1024], got[HC_CONF_ORIGIN_MAX];

	ck_assert(hc_conf_get(&conf, name, &v));
	ck_assert_str_eq(v.text, text);
	expand(origin, want, sizeof(want));
	ck_assert_str_eq(hc_conf_origin_text(&conf, v.opt, v.origin, got, sizeof(got)), want);
}
