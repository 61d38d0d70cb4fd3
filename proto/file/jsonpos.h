/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a JSON text a value stands.
 *
 * The JSON library knows lines and columns only of syntax errors. A wrong value is found later,
 * in the parsed tree, where no positions are left; so the text is walked once more along the
 * path of that value. This costs one pass and happens only when something is wrong.
 *
 * The text is one that the parser has taken. Every step is bounded by its length all the same,
 * nesting is counted and not recursed into, and a text that is not valid gives a place near by.
 */
#ifndef HC_JSONPOS_H
#define HC_JSONPOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The byte offset of the value at `path` (names joined by '.', elements as [N]; "" is the whole).
 * When a part of the path does not exist, `offset` is that of the deepest part that does, and
 * false is returned: a missing field is reported at the object that lacks it.
 */
bool hc_jsonpos_find(const char *text, size_t len, const char *path, size_t *offset);

/* Line and column of an offset, from 1; a column counts UTF-8 characters. */
void hc_jsonpos_line(const char *text, size_t len, size_t offset, uint32_t *line, uint32_t *column);

#endif
