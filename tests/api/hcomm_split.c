/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_split: colours make groups, keys their order. Each call says which split of the domain it
 * is: one more than the last that was answered or is over.
 */
#include "apitest.h"

#include <pthread.h>
#include <sys/mman.h>

struct call {
	hcomm_domain parent, sub;
	int32_t color, key;
	int result;
	char text[HCOMM_TEXT_BYTES];
};

static void *call_split(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_split(c->parent, c->color, c->key, NULL, 20000, &c->sub);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

START_TEST(colours_make_groups_and_keys_their_order)
{
	static const int32_t colors[] = {1, 0, 1, -1, 0}, keys[] = {5, 0, 3, 0, 0};
	static const uint32_t ranks[] = {1, 0, 0, 0, 1};
	struct hcomm_session *s[5] = {0};
	struct call c[5];
	pthread_t threads[5];
	hcomm_domain d[5];
	struct hc_node n;
	uint32_t v;
	int i;

	hc_node_start(&n, 5, NULL);
	form(s, d, 5, NULL);
	for (i = 0; i < 5; i++) {
		c[i] = (struct call){.parent = d[i], .sub = 1, .color = colors[i], .key = keys[i]};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_split, &c[i]), 0);
	}
	for (i = 0; i < 5; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(!c[i].result, "rank %d: %s", i, c[i].text);
	}
	ck_assert_uint_eq(c[3].sub, 0); /* in none */
	for (i = 0; i < 5; i++) {
		if (colors[i] < 0)
			continue;
		works(hcomm_rank(c[i].sub, &v));
		ck_assert_uint_eq(v, ranks[i]);
		works(hcomm_nranks(c[i].sub, &v));
		ck_assert_uint_eq(v, 2);
	}
	ck_assert_uint_eq(id_of(c[0].sub), id_of(c[2].sub));
	ck_assert_uint_eq(id_of(c[1].sub), id_of(c[4].sub));
	ck_assert_uint_ne(id_of(c[0].sub), id_of(c[1].sub));
	close_all(s, 5);
	hc_node_end(&n);
}
END_TEST

static unsigned done;

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	done += e->code == HCOMM_EV_JOIN_DONE;
}

START_TEST(started_both_requests_go_on_by_themselves)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], sub[2];
	struct hc_node n;
	uint32_t i, v;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < 2; i++) {
		works(hcomm_on_event(s[i], on_event, NULL));
		refused(hcomm_split(d[i], 3, -(int32_t)i, NULL, HCOMM_START, &sub[i]),
			HCOMM_E_IN_PROGRESS, "event");
		ck_assert_int_eq(state_of(sub[i]), HCOMM_FORMING);
	}
	await_active(s, sub, 2);
	ck_assert_uint_eq(done, 2);
	works(hcomm_rank(sub[0], &v));
	ck_assert_uint_eq(v, 1); /* the lower key goes first */
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_started_split_into_no_group_ends_too)
{
	struct hcomm_session *s = NULL;
	uint64_t end = hc_now_ms() + hc_patience(10000);
	hcomm_domain d, sub;
	struct hc_node n;

	hc_node_start(&n, 1, NULL);
	form(&s, &d, 1, NULL);
	works(hcomm_on_event(s, on_event, NULL));
	ck_assert_int_eq(hcomm_split(d, -1, 0, NULL, HCOMM_START, &sub), HCOMM_E_IN_PROGRESS);
	while (!done) {
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
		ck_assert_uint_lt(hc_now_ms(), end);
	}
	refused(hcomm_nranks(sub, &(uint32_t){0}), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

/* ---- which split it is ---- */

struct script { /* what each split is answered with: 0 well, an error, or as below */
	int answers[8];
	uint64_t numbers[8];
	unsigned count;
};
enum { CLOSES = -1, SILENT = -2 };

static struct script *new_script(void)
{
	void *m = mmap(NULL, sizeof(struct script), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(m, MAP_FAILED);
	return m;
}

static bool by_script(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct script *t = arg;
	struct hc_m_split m;
	int answer;

	if (f->head.type == HC_MSG_attach) /* taken back */
		return fake_joined(c, f, 0x1001, 2, 0, 1);
	if (f->head.type != HC_MSG_split)
		return fake_good(c, f, got, NULL);
	hc_want(!hc_decode(&hc_desc_split, HC_PROTO_MAX, f->body, f->body_len, &m));
	hc_want(t->count < 8);
	answer = t->answers[t->count];
	t->numbers[t->count++] = m.number;
	if (answer == CLOSES)
		return false;
	if (answer == SILENT)
		return true;
	return answer ? fake_error(c, f, answer, "the fake says so", HC_NONE)
		      : fake_good(c, f, got, NULL);
}

START_TEST(a_call_says_which_split_of_the_domain_it_is)
{
	static const int results[] = {0, 0, HCOMM_E_TIMEOUT, 0, HCOMM_E_MISMATCH, 0};
	static const uint64_t numbers[] = {1, 2, 3, 3, 3, 4, 5};
	struct script *t = new_script();
	struct fake f = {0};
	struct hcomm_session *s;
	hcomm_domain d, sub;
	unsigned i;

	t->answers[2] = HC_E_TIMEOUT; /* that split may still be, or have been: it is tried again */
	t->answers[3] = CLOSES;       /* and asked again on the next connection */
	t->answers[5] = HC_E_MISMATCH; /* over for the others: this rank counts it, too */
	fake_start(&f, by_script, t);
	s = open_session();
	d = join_root(s, 2, 0);
	for (i = 0; i < 6; i++)
		ck_assert_int_eq(hcomm_split(d, 0, 0, NULL, 20000, &sub), results[i]);
	ck_assert_uint_eq(t->count, 7);
	for (i = 0; i < 7; i++)
		ck_assert_uint_eq(t->numbers[i], numbers[i]);
	/* another domain has its own */
	d = join_root(s, 2, 0);
	works(hcomm_split(d, 0, 0, NULL, 20000, &sub));
	ck_assert_uint_eq(t->numbers[7], 1);
	hcomm_close(s);
	fake_end(&f);
	munmap(t, sizeof(*t));
}
END_TEST

START_TEST(a_started_one_is_counted_too)
{
	const uint64_t end = hc_now_ms() + hc_patience(10000);
	struct script *t = new_script();
	struct fake f = {0};
	struct hcomm_session *s;
	hcomm_domain d, sub;

	fake_start(&f, by_script, t);
	s = open_session();
	d = join_root(s, 2, 0);
	ck_assert_int_eq(hcomm_split(d, 0, 0, NULL, HCOMM_START, &sub), HCOMM_E_IN_PROGRESS);
	while (state_of(sub) == HCOMM_FORMING) {
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
		ck_assert_uint_lt(hc_now_ms(), end);
	}
	works(hcomm_split(d, 0, 0, NULL, 20000, &sub));
	ck_assert_uint_eq(t->numbers[0], 1);
	ck_assert_uint_eq(t->numbers[1], 2);
	hcomm_close(s);
	fake_end(&f);
	munmap(t, sizeof(*t));
}
END_TEST

START_TEST(one_at_a_time)
{
	struct script *t = new_script();
	struct fake f = {0};
	struct hcomm_session *s;
	hcomm_domain d, first, sub;

	t->answers[0] = SILENT;
	fake_start(&f, by_script, t);
	s = open_session();
	d = join_root(s, 2, 0);
	ck_assert_int_eq(hcomm_split(d, 0, 0, NULL, HCOMM_START, &first), HCOMM_E_IN_PROGRESS);
	refused(hcomm_split(d, 0, 0, NULL, HCOMM_START, &sub), HCOMM_E_INVALID, "under way");
	refused(hcomm_split(d, 0, 0, NULL, 20000, &sub), HCOMM_E_INVALID, "under way");
	/* who gives it up may try again, and means the same one */
	works(hcomm_leave(first, 1000));
	works(hcomm_split(d, 0, 0, NULL, 20000, &sub));
	ck_assert_uint_eq(t->count, 2);
	ck_assert_uint_eq(t->numbers[0], 1);
	ck_assert_uint_eq(t->numbers[1], 1);
	hcomm_close(s);
	fake_end(&f);
	munmap(t, sizeof(*t));
}
END_TEST

static void split_all(struct hcomm_session *const *s, const hcomm_domain *d, hcomm_domain *sub)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		refused(hcomm_split(d[i], 0, 0, NULL, HCOMM_START, &sub[i]), HCOMM_E_IN_PROGRESS,
			"event");
	await_active(s, sub, 2);
	ck_assert_uint_eq(id_of(sub[0]), id_of(sub[1]));
}

/* The process has closed its session and takes the rank up again: the others have counted on. */
START_TEST(a_rank_goes_on_counting_in_another_session)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], sub[2], before;
	struct hc_node n;
	char id[17];

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	split_all(s, d, sub);
	split_all(s, d, sub);
	before = sub[0];
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)id_of(d[0]));
	hcomm_close(s[1]);
	s[1] = open_session();
	works(hcomm_attach(s[1], id, 1, NULL, 20000, &d[1]));
	split_all(s, d, sub);
	ck_assert_uint_ne(id_of(sub[0]), id_of(before));
	/* one that was tried in vain is tried again */
	refused(hcomm_split(d[0], 0, 0, NULL, 200, &sub[0]), HCOMM_E_TIMEOUT,
		"no word from rank 1");
	split_all(s, d, sub);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], x;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_split(d[0], 0, 0, NULL, 100, NULL), HCOMM_E_INVALID, "domain is NULL");
	refused(hcomm_split(d[0], 0, 0, NULL, -4, &x), HCOMM_E_INVALID, "timeout_ms is -4");
	refused(hcomm_split(1, 0, 0, NULL, 100, &x), HCOMM_E_GONE, "handle");
	refused(hcomm_split(d[0], 0, 0, NULL, 200, &x), HCOMM_E_TIMEOUT, "1");
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

TESTS("hcomm_split", colours_make_groups_and_keys_their_order,
      started_both_requests_go_on_by_themselves, a_started_split_into_no_group_ends_too,
      a_call_says_which_split_of_the_domain_it_is, a_started_one_is_counted_too, one_at_a_time,
      a_rank_goes_on_counting_in_another_session, refusals)
