/* SPDX-License-Identifier: Apache-2.0 */
/* Hostfiles; see hostfile.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "field.h"
#include "hostfile.h"

#define LINE_MAX_BYTES 1024
#define RANKS_MAX      65536

struct line {
	char text[LINE_MAX_BYTES + 1];
	uint32_t number;
};

static int fault(struct hc_verdict *v, const struct line *l, enum hc_verdict_kind kind,
		 const char *what)
{
	hc_verdict_set(v, kind, "line %u: %s: \"%s\"", l->number, what, l->text);
	hc_verdict_detail(v, "", l->text, "name, name:N or name slots=N");
	v->line = l->number;
	v->column = 1;
	return HC_FILE_REFUSED;
}

/* Cuts the count off the name: after " slots=", or after the last colon of a name or bracket. */
static char *split_count(char *text)
{
	char *blank = strpbrk(text, " \t"), *colon;

	if (blank) {
		*blank++ = '\0';
		blank += strspn(blank, " \t");
		return strncmp(blank, "slots=", 6) ? blank : blank + 6;
	}
	colon = strrchr(text, ':');
	if (!colon || (*text != '[' && strchr(text, ':') != colon))
		return NULL; /* no count; a bare IPv6 address has several colons */
	if (*text == '[' && colon[-1] != ']')
		return NULL;
	*colon = '\0';
	return colon + 1;
}

static int take_line(struct hc_hostfile *h, struct line *l, char **names, struct hc_verdict *v)
{
	struct hc_host *host = &h->hosts[h->nhosts];
	char copy[LINE_MAX_BYTES + 1], *count;
	size_t n;

	memcpy(copy, l->text, sizeof(copy));
	count = split_count(copy);
	host->ranks = 1;
	if (!*copy)
		return fault(v, l, HC_V_EMPTY, "a host without a name");
	if (count && hc_number_parse(count, RANKS_MAX, &host->ranks))
		return fault(v, l, HC_V_BAD_NUMBER, "the count is no whole number 1..65536");
	if (!host->ranks || host->ranks > RANKS_MAX - h->nranks)
		return fault(v, l, HC_V_OUT_OF_RANGE, "a host has 1..65536 ranks, as have all");
	n = strlen(copy) + 1;
	host->name = memcpy(*names, copy, n);
	*names += n;
	h->nranks += host->ranks;
	h->nhosts++;
	return 0;
}

/* The next line without comment and outer blanks. False when it is too long. */
static bool next_line(const char **p, const char *end, struct line *l)
{
	const char *nl = memchr(*p, '\n', (size_t)(end - *p)), *stop = nl ? nl : end, *hash;
	const char *from = *p;

	*p = nl ? nl + 1 : end;
	l->number++;
	hash = memchr(from, '#', (size_t)(stop - from));
	if (hash)
		stop = hash;
	while (from < stop && strchr(" \t\r", *from))
		from++;
	while (from < stop && strchr(" \t\r", stop[-1]))
		stop--;
	memset(l->text, 0, sizeof(l->text));
	if (stop - from > LINE_MAX_BYTES)
		return false;
	memcpy(l->text, from, (size_t)(stop - from));
	return true;
}

static int same_host(const void *x, const void *y)
{
	return strcmp(((const struct hc_host *)x)->name, ((const struct hc_host *)y)->name);
}

static int check_names(const struct hc_hostfile *h, struct hc_verdict *v)
{
	struct hc_host *sorted = hc_file_alloc(h->nhosts * sizeof(*sorted));
	uint32_t i;
	int r = 0;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, h->hosts, h->nhosts * sizeof(*sorted));
	qsort(sorted, h->nhosts, sizeof(*sorted), same_host);
	for (i = 1; i < h->nhosts && !r; i++) {
		if (same_host(&sorted[i - 1], &sorted[i]))
			continue;
		hc_verdict_set(v, HC_V_DUPLICATE_SERVER, "host %s is listed twice",
			       HC_CLIP(sorted[i].name));
		r = HC_FILE_REFUSED;
	}
	hc_file_free(sorted);
	return r;
}

static int walk(struct hc_hostfile *h, const struct hc_jsontext *in, char *names,
		struct hc_verdict *v)
{
	const char *p = in->data, *end = p + in->len;
	struct line l = {.number = 0};
	int r = 0;

	while (p < end && !r) {
		if (!next_line(&p, end, &l))
			r = fault(v, &l, HC_V_TOO_LONG, "longer than 1024 bytes");
		else if (*l.text)
			r = take_line(h, &l, &names, v);
	}
	if (!r && !h->nhosts) {
		hc_verdict_set(v, HC_V_EMPTY, "no host is listed");
		r = HC_FILE_REFUSED;
	}
	return r ? r : check_names(h, v);
}

int hc_hostfile_read(const struct hc_jsontext *in, struct hc_hostfile **hosts, struct hc_verdict *v)
{
	struct hc_hostfile *h;
	size_t lines = 1, i;
	int r;

	*hosts = NULL;
	for (i = 0; i < in->len; i++)
		lines += in->data[i] == '\n';
	h = hc_file_alloc(sizeof(*h) + lines * sizeof(*h->hosts) + in->len + lines);
	if (!h)
		return hc_verdict_system(v, ENOMEM, "cannot read the hostfile");
	memset(h, 0, sizeof(*h));
	h->hosts = (struct hc_host *)(void *)(h + 1);
	r = walk(h, in, (char *)(h->hosts + lines), v);
	if (r) {
		hc_file_free(h);
		return r == -ENOMEM ? hc_verdict_system(v, ENOMEM, "cannot read the hostfile") : r;
	}
	hc_verdict_set(v, HC_V_NONE, "hostfile, %u rank%s on %u host%s", h->nranks,
		       h->nranks == 1 ? "" : "s", h->nhosts, h->nhosts == 1 ? "" : "s");
	*hosts = h;
	return 0;
}

void hc_hostfile_free(struct hc_hostfile *hosts)
{
	hc_file_free(hosts);
}
