/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl domain: list, show, create, destroy.
 *
 * A domain is named by its id (16 hexadecimal digits) or its name. A name is unique only for its
 * owner, so where two users have the same one the command asks for the id instead of guessing.
 *
 * BEGUN and RUNNING are those of the last sample, which a drain takes; they are not among the
 * columns that are shown unasked, since a stale 0 would say that nothing runs.
 *
 * `show` prints the domain, its ranks, and a line for each rank that has not come, with the last
 * sign of life from its node: that is what one looks for while a job hangs at its start. `create`
 * is in create.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hcomm/views.h>
#include "domain.h"
#include "table.h"
#include "wire.h"

#define LIST_COLUMNS "ID,NAME,STATE,EPOCH,RANKS,ARRIVED,LOCAL,UID,HOME,CAUSE"
#define SHOW_COLUMNS                                                                               \
	"STATE,CAUSE,ID,NAME,EPOCH,RANKS,ARRIVED,LOCAL,UID,HOME,CLASS,WEIGHT,PERSISTENT"
#define MEMBER_COLUMNS "RANK,STATE,NODE,DEVICE,ADDRESS,PID,UID"
#define MISSING_SHOWN  8

bool ctl_is_id(const char *word, uint64_t *id)
{
	if (strlen(word) != 16 || strspn(word, "0123456789abcdefABCDEF") != 16)
		return false;
	*id = strtoull(word, NULL, 16);
	return *id;
}

/* The rows that `word` may mean: by id first, else by name. */
static int query_named(struct ctl *c, struct ctl_rows *r, const char *word)
{
	struct hcomm_filter by_id = HCOMM_INIT(struct hcomm_filter);
	struct hcomm_filter by_name = HCOMM_INIT(struct hcomm_filter);

	by_name.name = word;
	if (ctl_is_id(word, &by_id.id)) {
		int status = ctl_rows_query(c, r, &by_id);

		if (status || ctl_rows_count(r))
			return status;
	}
	return ctl_rows_query(c, r, &by_name);
}

static bool is_over(const struct hcomm_view_domain *row)
{
	return !strcmp(row->state, hc_word_domain_state(HC_W_domain_state_DESTROYED)) ||
	       !strcmp(row->state, hc_word_domain_state(HC_W_domain_state_FAILED));
}

/*
 * Which of the rows is meant: the one that lives, whatever ended under that name before; when all
 * are over, the last that ended. NULL when several live, with their list.
 */
static const struct hcomm_view_domain *meant(const struct ctl_rows *r, char *list, size_t size)
{
	const struct hcomm_view_domain *row, *live = NULL, *last = NULL;
	size_t n = 0, i;

	list[0] = '\0';
	for (i = 0; (row = ctl_rows_at(r, i)); i++) {
		if (is_over(row)) {
			if (!last || row->age_ms < last->age_ms)
				last = row;
			continue;
		}
		live = row;
		if (n++ < 8)
			snprintf(list + strlen(list), size - strlen(list),
				 "%s%016" PRIx64 " of uid %u", n > 1 ? ", " : "", row->id,
				 row->uid);
	}
	return n > 1 ? NULL : live ? live : last;
}

/* A domain that is in no list any more may still have a reason to tell. */
static int not_listed(struct ctl *c, const char *word)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	uint64_t id = 0;
	bool is_id = ctl_is_id(word, &id);
	int r = hcomm_by_name(c->session, id, is_id ? NULL : word, &s);

	if (r)
		return ctl_fail(r, word);
	ctl_say("domain %016" PRIx64 " (%s) is over: %s", s.id, s.name, s.cause);
	return CTL_DEGRADED;
}

int ctl_domain_find(struct ctl *c, const char *word, uint64_t *id)
{
	struct ctl_rows *r = ctl_rows_new(&(struct ctl){0}, HCOMM_VIEW_DOMAIN, LIST_COLUMNS);
	const struct hcomm_view_domain *row = NULL;
	char list[256];
	int status;

	if (!r)
		return CTL_DEGRADED;
	status = ctl_open(c);
	if (!status)
		status = query_named(c, r, word);
	if (!status && ctl_rows_count(r)) {
		row = meant(r, list, sizeof(list));
		if (!row)
			status =
				ctl_usage("'%s' names several domains: %s; give an id", word, list);
	}
	if (row)
		*id = row->id;
	else if (!status)
		status = ctl_is_id(word, id) ? CTL_OK : not_listed(c, word);
	ctl_rows_free(r);
	return status;
}

static int show_json(const struct ctl_rows *domain, const struct ctl_rows *members)
{
	int status;

	printf("{\"schema_version\":%d,\"view\":\"domain\",\"rows\":[", HC_SCHEMA_VERSION);
	status = ctl_rows_json_items(domain);
	printf("\n],\"members\":[");
	if (!status)
		status = ctl_rows_json_items(members);
	printf("\n]}\n");
	return status;
}

static int by_rank(const void *a, const void *b)
{
	const struct hcomm_view_member *one = a, *two = b;

	return (one->rank > two->rank) - (one->rank < two->rank);
}

static void show_missing(const struct ctl_rows *members)
{
	const struct hcomm_view_member *m;
	size_t missing = 0;

	for (size_t i = 0; (m = ctl_rows_at(members, i)); i++) {
		if (strcmp(m->state, "expected") || missing++ >= MISSING_SHOWN)
			continue;
		printf("missing: rank %u", m->rank);
		if (m->node[0])
			printf(" on %s, device %u", m->node, m->device);
		if (m->address[0])
			printf(", %s", m->address);
		if (m->sign[0])
			printf(": %s", m->sign);
		putchar('\n');
	}
	if (missing > MISSING_SHOWN)
		printf("missing: %zu more\n", missing - MISSING_SHOWN);
}

static int show_once(struct ctl *c, struct ctl_rows *domain, struct ctl_rows *members,
		     const char *word)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	int status = ctl_domain_find(c, word, &filter.id);

	if (!status)
		status = ctl_rows_query(c, domain, &filter);
	if (!status && !ctl_rows_count(domain))
		return not_listed(c, word);
	if (!status)
		status = ctl_rows_query(c, members, &filter);
	if (status)
		return status;
	ctl_rows_sort(members, by_rank); /* a node that is not the home has them as they came */
	if (c->json)
		return show_json(domain, members);
	if (!c->columns) {
		ctl_rows_list(c, domain);
		if (!ctl_rows_count(members))
			return CTL_OK; /* over: only the reason is left */
		putchar('\n');
	}
	status = ctl_rows_print(c, members);
	if (!c->columns)
		show_missing(members);
	return status;
}

/* -o picks among the columns of the ranks. */
static int show(struct ctl *c, const char *word)
{
	struct ctl plain = {0};
	struct ctl_rows *members = ctl_rows_new(c, HCOMM_VIEW_MEMBER, MEMBER_COLUMNS);
	struct ctl_rows *domain =
		members ? ctl_rows_new(&plain, HCOMM_VIEW_DOMAIN, SHOW_COLUMNS) : NULL;
	int status = domain ? ctl_open(c) : CTL_USAGE;

	if (!status) {
		do
			status = show_once(c, domain, members, word);
		while (!status && ctl_watch_again(c));
	}
	ctl_rows_free(domain);
	ctl_rows_free(members);
	return status;
}

static int destroy(struct ctl *c, const char *word)
{
	uint64_t id = 0;
	int status = ctl_domain_find(c, word, &id), r;

	if (status)
		return status;
	r = hcomm_destroy_named(c->session, id, NULL, c->timeout_ms);
	if (r)
		return ctl_fail(r, word);
	if (c->json)
		printf("{\"schema_version\":%d,\"id\":\"%016" PRIx64 "\",\"destroyed\":true}\n",
		       HC_SCHEMA_VERSION, id);
	else
		printf("domain %016" PRIx64 " is destroyed\n", id);
	return CTL_OK;
}

int ctl_domain(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[1], "list"))
		return ctl_show(c, HCOMM_VIEW_DOMAIN, NULL, LIST_COLUMNS);
	if (!strcmp(argv[1], "show"))
		return show(c, argv[2]);
	if (!strcmp(argv[1], "create"))
		return ctl_domain_create(c);
	return destroy(c, argv[2]);
}
