/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables of clients; see tables.h. The list is in order of last use. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "ranktable.h"
#include "tables.h"

struct hc_table {
	struct hc_table *next;
	char *text;
	size_t size;    /* of the text */
	size_t bytes;   /* of text and parsed form, about */
	uint32_t users; /* the list is one */
	struct hc_roster *roster;
};

struct hc_tables {
	pthread_mutex_t lock;
	struct hc_table *first;
	uint32_t count;
	size_t bytes;
};

struct hc_tables *hc_tables_new(void)
{
	struct hc_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

static void put_locked(struct hc_table *table)
{
	if (--table->users)
		return;
	hc_ranktable_free(table->roster);
	free(table->text);
	free(table);
}

static void drop_last(struct hc_tables *t)
{
	struct hc_table **at = &t->first, *table;

	while ((*at)->next)
		at = &(*at)->next;
	table = *at;
	*at = NULL;
	t->count--;
	t->bytes -= table->bytes;
	put_locked(table);
}

void hc_tables_free(struct hc_tables *t)
{
	if (!t)
		return;
	while (t->first)
		drop_last(t);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int hc_tables_check(int fd, uint64_t bytes_max, size_t *size, char *why, size_t why_size)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & wanted) != wanted) {
		snprintf(
			why, why_size,
			"the table's descriptor is not sealed; wanted: a memfd with F_SEAL_SHRINK, "
			"F_SEAL_GROW and F_SEAL_WRITE");
		return HC_E_INVALID;
	}
	if (fstat(fd, &st)) {
		snprintf(why, why_size, "the table's descriptor cannot be read: %s",
			 strerror(errno));
		return HC_E_INVALID;
	}
	if ((uint64_t)st.st_size > bytes_max) {
		snprintf(why, why_size, "the table has %lld bytes; table_bytes_max is %llu",
			 (long long)st.st_size, (unsigned long long)bytes_max);
		return HC_E_LIMIT;
	}
	*size = (size_t)st.st_size;
	return 0;
}

static struct hc_table *find(struct hc_tables *t, struct hc_str text)
{
	struct hc_table **at, *table;

	for (at = &t->first; (table = *at); at = &table->next) {
		if (table->size != text.len || memcmp(table->text, text.p, text.len))
			continue;
		*at = table->next;
		table->next = t->first;
		t->first = table;
		table->users++;
		return table;
	}
	return NULL;
}

static void keep(struct hc_tables *t, struct hc_table *table)
{
	if (table->bytes > HC_TABLES_BYTES_MAX)
		return;
	table->next = t->first;
	t->first = table;
	t->count++;
	t->bytes += table->bytes;
	table->users++;
	while (t->count > 1 && (t->count > HC_TABLES_KEPT || t->bytes > HC_TABLES_BYTES_MAX))
		drop_last(t);
}

static int explain(int r, const struct hc_verdict *v, struct hc_str origin, char *why,
		   size_t why_size)
{
	char file[256];

	hc_escape(file, sizeof(file), origin.p, origin.len);
	if (r == -ENOMEM) {
		snprintf(why, why_size, "%s: out of memory", file);
		return HC_E_NO_MEMORY;
	}
	hc_verdict_line(v, file[0] ? file : "table", why, why_size);
	return v->kind == HC_V_NOT_READY ? HC_E_NOT_READY : HC_E_INVALID;
}

static int parse(struct hc_str in, struct hc_str origin, struct hc_table **out, char *why,
		 size_t why_size)
{
	struct hc_table *table = calloc(1, sizeof(*table));
	char *copy = malloc(in.len + 1u);
	struct hc_verdict *v = malloc(sizeof(*v)); /* too large for a stack of unknown depth */
	struct hc_jsontext text;
	int r = -ENOMEM;

	if (table && v && copy) {
		hc_verdict_init(v);
		r = hc_jsontext_set(in.p, in.len, in.len, &text, v);
		if (!r) {
			r = hc_ranktable_read(&text, &table->roster, v);
			hc_jsontext_fini(&text);
		}
	}
	if (r) {
		r = explain(v ? r : -ENOMEM, v, origin, why, why_size);
		free(copy);
		free(table);
	} else {
		table->text = memcpy(copy, in.p, in.len);
		table->size = in.len;
		table->bytes = in.len + table->roster->nranks * sizeof(struct hc_roster_rank) +
			       table->roster->nservers * 64u + 256u;
		table->users = 1;
		*out = table;
	}
	free(v);
	return r;
}

int hc_tables_read_text(struct hc_tables *t, struct hc_str text, struct hc_str origin,
			struct hc_table **out, char *why, size_t why_size)
{
	struct hc_table *known;
	int r;

	pthread_mutex_lock(&t->lock);
	*out = known = find(t, text);
	pthread_mutex_unlock(&t->lock);
	if (known)
		return 0;
	r = parse(text, origin, out, why, why_size);
	if (r)
		return r;
	pthread_mutex_lock(&t->lock);
	known = find(t, text); /* another thread may have been faster */
	if (known) {
		put_locked(*out);
		*out = known;
	} else {
		keep(t, *out);
	}
	pthread_mutex_unlock(&t->lock);
	return 0;
}

int hc_tables_read(struct hc_tables *t, int fd, size_t size, struct hc_str origin,
		   struct hc_table **out, char *why, size_t why_size)
{
	void *data;
	int r;

	*out = NULL;
	if (!size)
		return hc_tables_read_text(t, hc_str(""), origin, out, why, why_size);
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		snprintf(why, why_size, "the table's descriptor cannot be read: %s",
			 strerror(errno));
		return HC_E_INVALID;
	}
	r = hc_tables_read_text(t, (struct hc_str){data, (uint32_t)size}, origin, out, why,
				why_size);
	munmap(data, size);
	return r;
}

const struct hc_roster *hc_table_roster(const struct hc_table *table)
{
	return table->roster;
}

void hc_table_put(struct hc_tables *t, struct hc_table *table)
{
	if (!table)
		return;
	pthread_mutex_lock(&t->lock);
	put_locked(table);
	pthread_mutex_unlock(&t->lock);
}
