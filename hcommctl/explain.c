/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl explain CODE: what an error means and what to do about it.
 *
 * Our codes come from proto/errors.tbl.h, HCCL's from hccl.tbl.h. A word may be written with or
 * without its prefix and in any case. Ours are negative at the library's edge and HCCL's are
 * positive; a number without a sign is looked up in both, since people copy numbers from logs
 * without knowing whose they are. Nothing here needs a daemon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "ctl.h"
#include "print.h"
#include "verdict.h"

#define ENTRIES_MAX 4

struct hccl_row {
	int value, nccl;
	const char *name, *text, *explain;
};

struct message_row {
	const char *name, *text, *explain;
};

static const struct hccl_row hccl_rows[] = {
#define HCCL(value, name, nccl, text, explain) {value, nccl, "HCCL_" #name, text, explain},
#define EI(code, text, explain)
#include "hccl.tbl.h"
#undef HCCL
#undef EI
};
#define HCCL_ROWS (sizeof(hccl_rows) / sizeof(hccl_rows[0]))

static const struct message_row message_rows[] = {
#define HCCL(value, name, nccl, text, explain)
#define EI(code, text, explain) {code, text, explain},
#include "hccl.tbl.h"
#undef HCCL
#undef EI
};
#define MESSAGE_ROWS (sizeof(message_rows) / sizeof(message_rows[0]))

static const char *const nccl_names[] = {
	"ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
	"ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress",
};
#define NCCL_NAMES (sizeof(nccl_names) / sizeof(nccl_names[0]))

struct entry {
	const char *family; /* hcomm, hccl, hccl-message */
	char name[48];
	int number; /* 0 with hccl-message */
	const char *text, *explain;
	int hccl, nccl; /* -1: none */
};

struct answer {
	struct entry entries[ENTRIES_MAX];
	unsigned count;
};

static struct entry *add(struct answer *a)
{
	static const struct entry zero = {.hccl = -1, .nccl = -1};
	struct entry *e;

	if (a->count == ENTRIES_MAX)
		return NULL;
	e = &a->entries[a->count++];
	*e = zero;
	return e;
}

static void add_own(struct answer *a, const struct hc_error_row *row)
{
	struct entry *e = add(a);

	if (!e)
		return;
	e->family = "hcomm";
	snprintf(e->name, sizeof(e->name), "HCOMM_E_%s", row->name);
	e->number = -row->number;
	e->text = row->text;
	e->explain = row->explain;
	e->hccl = row->hccl;
	e->nccl = row->nccl;
}

static void add_hccl(struct answer *a, const struct hccl_row *row)
{
	struct entry *e = add(a);

	if (!e)
		return;
	e->family = "hccl";
	snprintf(e->name, sizeof(e->name), "%s", row->name);
	e->number = row->value;
	e->text = row->text;
	e->explain = row->explain;
	e->nccl = row->nccl;
}

static void add_message(struct answer *a, const struct message_row *row)
{
	struct entry *e = add(a);

	if (!e)
		return;
	e->family = "hccl-message";
	snprintf(e->name, sizeof(e->name), "%s", row->name);
	e->text = row->text;
	e->explain = row->explain;
}

/* ---- looking up ---- */

/* Is `word` the name, with or without the prefix? */
static bool is_word(const char *word, const char *prefix, const char *name)
{
	size_t n = strlen(prefix);

	if (!strncasecmp(word, prefix, n))
		word += n;
	return !strcasecmp(word, name);
}

static void find_number(struct answer *a, int number)
{
	const struct hc_error_row *own = hc_error_row(number);

	for (size_t i = 0; number >= 0 && i < HCCL_ROWS; i++) {
		if (hccl_rows[i].value == number)
			add_hccl(a, &hccl_rows[i]);
	}
	if (own)
		add_own(a, own);
}

static void find_word(struct answer *a, const char *word)
{
	for (const struct hc_error_row *row = hc_error_rows; row->name; row++) {
		if (is_word(word, "HCOMM_E_", row->name) || is_word(word, "HC_E_", row->name))
			add_own(a, row);
	}
	for (size_t i = 0; i < HCCL_ROWS; i++) {
		const char *name = hccl_rows[i].name + strlen("HCCL_");

		if (is_word(word, "HCCL_", name) ||
		    (!strncmp(name, "E_", 2) && !strcasecmp(word, name + 2)))
			add_hccl(a, &hccl_rows[i]);
	}
	for (size_t i = 0; i < MESSAGE_ROWS; i++) {
		if (!strcasecmp(word, message_rows[i].name))
			add_message(a, &message_rows[i]);
	}
}

static bool parse_number(const char *word, int *number)
{
	char *end;
	long value = strtol(word, &end, 10);

	*number = (int)value;
	return *word && !*end && value > -100000 && value < 100000 && *word != ' ';
}

/* ---- not found ---- */

static int refuse(const char *word)
{
	const char *words[128];
	char own[64][40], upper[48];
	const char *near;
	size_t n = 0, k;

	for (k = 0; hc_error_rows[k].name && k < 64; k++) {
		snprintf(own[k], sizeof(own[k]), "HCOMM_E_%s", hc_error_rows[k].name);
		words[n++] = hc_error_rows[k].name;
		words[n++] = own[k];
	}
	near = NULL;
	snprintf(upper, sizeof(upper), "%s", word);
	for (char *p = upper; *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
	if (n <= 128)
		near = ctl_nearest(upper, words, n);
	for (n = 0; n < HCCL_ROWS; n++)
		words[n] = hccl_rows[n].name;
	for (k = 0; k < MESSAGE_ROWS; k++)
		words[n++] = message_rows[k].name;
	if (!near)
		near = ctl_nearest(upper, words, n);
	if (near)
		return ctl_usage("unknown code '%s'; did you mean '%s'?", word, near);
	return ctl_usage("unknown code '%s'; wanted: one of hcomm (HCOMM_E_TIMEOUT, -6), of HCCL "
			 "(HCCL_E_TIMEOUT, 9) or its messages (EI0006)",
			 word);
}

/* ---- printing ---- */

static const char *hccl_name(int value)
{
	for (size_t i = 0; i < HCCL_ROWS; i++) {
		if (hccl_rows[i].value == value)
			return hccl_rows[i].name;
	}
	return "?";
}

static const char *nccl_name(int value)
{
	return value >= 0 && (size_t)value < NCCL_NAMES ? nccl_names[value] : "?";
}

static void print_entry(const struct entry *e)
{
	if (strcmp(e->family, "hccl-message"))
		printf("%s (%d): %s\n", e->name, e->number, e->text);
	else
		printf("%s: %s\n", e->name, e->text);
	printf("  %s\n", e->explain);
	if (e->hccl >= 0)
		printf("  HCCL: %s (%d)\n", hccl_name(e->hccl), e->hccl);
	if (e->nccl >= 0)
		printf("  NCCL: %s (%d)\n", nccl_name(e->nccl), e->nccl);
}

static void json_pair(struct hc_text *t, const char *key, const char *value)
{
	hc_text_add(t, key);
	if (value)
		hc_json_string(t, value, strlen(value));
	else
		hc_text_add(t, "null");
}

static void print_json(const struct answer *a)
{
	char buf[8192], number[16];
	struct hc_text t;

	hc_text_init(&t, buf, sizeof(buf));
	for (unsigned i = 0; i < a->count; i++) {
		const struct entry *e = &a->entries[i];

		json_pair(&t, i ? ",\n{\"family\":" : "\n{\"family\":", e->family);
		json_pair(&t, ",\"name\":", e->name);
		snprintf(number, sizeof(number), "%d", e->number);
		hc_text_add(&t, ",\"number\":");
		hc_text_add(&t, strcmp(e->family, "hccl-message") ? number : "null");
		json_pair(&t, ",\"text\":", e->text);
		json_pair(&t, ",\"explain\":", e->explain);
		json_pair(&t, ",\"hccl\":", e->hccl >= 0 ? hccl_name(e->hccl) : NULL);
		json_pair(&t, ",\"nccl\":", e->nccl >= 0 ? nccl_name(e->nccl) : NULL);
		hc_text_add(&t, "}");
	}
	printf("{\"schema_version\":%d,\"codes\":[%s\n]}\n", HC_SCHEMA_VERSION, buf);
}

int ctl_explain(struct ctl *c, int argc, char **argv)
{
	struct answer a = {0};
	int number;

	(void)argc;
	if (parse_number(argv[1], &number))
		find_number(&a, number);
	else
		find_word(&a, argv[1]);
	if (!a.count)
		return refuse(argv[1]);
	if (c->json) {
		print_json(&a);
		return CTL_OK;
	}
	for (unsigned i = 0; i < a.count; i++)
		print_entry(&a.entries[i]);
	return CTL_OK;
}
