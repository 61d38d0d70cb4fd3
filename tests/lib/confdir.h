/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the configuration: a directory of its own for each test, in it hcommd.conf and
 * conf.d, and short words for "it loads", "it is refused with exactly this line", "this value
 * comes from there". In expected lines an @ stands for the directory.
 */
#ifndef CONFDIR_H
#define CONFDIR_H

#include "conffile.h"

extern char dir[256];
extern struct hc_conf conf; /* what was loaded last */
extern struct hc_conf_error err;

void conf_setup(void);
void conf_teardown(void);

/* A path in the directory; valid until the next call. */
const char *path_of(const char *name);
void put_bytes(const char *name, const void *bytes, size_t len);
void put(const char *name, const char *text);

/* Loads hcommd.conf with these variables and arguments; each list ends with NULL, or is NULL. */
int load(const char *const *vars, const char *const *sets);
/* Writes hcommd.conf and loads it alone. */
int load_text(const char *text);

void expand(const char *fmt, char *out, size_t size);
void expect_loads(const char *text);
void expect_error(unsigned i, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void expect_refused(const char *text, const char *line);
void expect_value(const char *name, const char *text, const char *origin);

#endif
