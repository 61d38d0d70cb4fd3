/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_query: rows of views, page by page.
 */
#include "apitest.h"
#include "failing.h"

#include "hcomm/views.h"

static unsigned rows, stop_at;

static int count(const void *row, void *context)
{
	(void)context;
	ck_assert_uint_gt(*(const uint32_t *)row, sizeof(uint32_t));
	rows++;
	return stop_at && rows == stop_at ? 4711 : 0;
}

static int is_device(const void *row, void *context)
{
	const struct hcomm_view_device *v = row;

	(void)context;
	ck_assert_uint_eq(v->size, sizeof(*v));
	ck_assert_uint_eq(v->index, rows);
	ck_assert_uint_eq(v->simulated, 1);
	ck_assert_str_eq(v->kind, "npu");
	rows++;
	return 0;
}

START_TEST(every_view_can_be_read)
{
	struct hcomm_session *s = NULL;
	struct hc_node n;
	hcomm_domain d;
	uint32_t view;

	hc_node_start(&n, 3, NULL);
	form(&s, &d, 1, NULL);
	for (view = HCOMM_VIEW_STATUS; view <= HCOMM_VIEW_SETTING; view++) {
		rows = 0;
		works(hcomm_query(s, view, NULL, count, NULL));
		ck_assert_msg(rows > 0, "view %u has no rows", view);
	}
	rows = 0;
	works(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, is_device, NULL));
	ck_assert_uint_eq(rows, 3);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(filters_choose)
{
	struct hcomm_filter f = HCOMM_INIT(struct hcomm_filter);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], e;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	e = join_root(s[0], 1, 0);
	works(hcomm_query(s[0], HCOMM_VIEW_DOMAIN, NULL, count, NULL));
	ck_assert_uint_eq(rows, 2);
	rows = 0;
	f.id = id_of(e);
	works(hcomm_query(s[0], HCOMM_VIEW_MEMBER, &f, count, NULL));
	ck_assert_uint_eq(rows, 1);
	f.id = 0;
	f.limit = 2;
	rows = 0;
	works(hcomm_query(s[0], HCOMM_VIEW_SETTING, &f, count, NULL));
	ck_assert_uint_eq(rows, 2);
	rows = 0;
	stop_at = 1;
	ck_assert_int_eq(hcomm_query(s[0], HCOMM_VIEW_DOMAIN, NULL, count, NULL), 4711);
	ck_assert_uint_eq(rows, 1);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

struct pages {          /* shared with the fake */
	unsigned last;  /* pages there are */
	unsigned stale; /* so many times page 2 is stale */
	unsigned asked;
};

/* A page is one row of the device view; the snapshot must come back. */
static bool paging(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_view_device row = {.kind = hc_str("npu"), .simulated = 1};
	struct hc_m_query_r r = {.view = HCOMM_VIEW_DEVICE, .snapshot = 99, .nrows = 1};
	struct pages *p = arg;
	struct hc_m_query m;
	uint8_t bytes[1024];
	size_t len;

	if (f->head.type != HC_MSG_query)
		return fake_good(c, f, got, NULL);
	hc_want(!hc_decode(&hc_desc_query, 1, f->body, f->body_len, &m));
	hc_want(m.snapshot == (m.cursor ? 99 : 0));
	p->asked++;
	if (m.cursor == 1 && p->stale) {
		p->stale--;
		return fake_error(c, f, HC_E_STALE, "the list has changed", HC_NONE);
	}
	row.index = (uint32_t)m.cursor;
	hc_want(!hc_encode(&hc_desc_view_device, 1, &row, bytes, sizeof(bytes), &len));
	r.rows = (struct hc_str){(char *)bytes, (uint32_t)len};
	r.cursor = m.cursor + 1 < p->last ? m.cursor + 1 : 0;
	return fake_reply(c, f, &hc_desc_query_r, &r, -1);
}

START_TEST(pages_follow_each_other_and_stale_ones_are_read_again)
{
	struct pages *p =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hcomm_session *s;
	struct fake f = {0};

	fake_start(&f, paging, p);
	s = open_session();
	p->last = 3;
	works(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, is_device, NULL));
	ck_assert_uint_eq(rows, 3);
	ck_assert_uint_eq(p->asked, 3);
	rows = 0;
	p->stale = 3;
	works(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, is_device, NULL));
	ck_assert_uint_eq(rows, 3); /* each once */
	rows = 0;
	p->stale = 4;
	refused(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, is_device, NULL), HCOMM_E_STALE, "changed");
	ck_assert_uint_eq(rows, 0);
	p->stale = 0;
	p->last = 50; /* more than are kept before the first row is given away */
	works(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, is_device, NULL));
	ck_assert_uint_eq(rows, 50);
	hcomm_close(s);
	fake_end(&f);
	munmap(p, 4096);
}
END_TEST

static bool odd(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_query_r r = {.view = HCOMM_VIEW_DEVICE, .nrows = 1, .rows = hc_str("no row")};

	(void)got;
	if (*(char *)arg == 'v')
		r.view = HCOMM_VIEW_DOMAIN;
	return fake_reply(c, f, &hc_desc_query_r, &r, -1);
}

START_TEST(odd_pages_are_refused)
{
	const char *how = "vr";

	for (; *how; how++) {
		struct hcomm_session *s;
		struct fake f = {0};
		char one = *how;

		fake_start(&f, odd, &one);
		s = open_session();
		refused(hcomm_query(s, HCOMM_VIEW_DEVICE, NULL, count, NULL), HCOMM_E_MALFORMED,
			"device");
		ck_assert_uint_eq(rows, 0);
		hcomm_close(s);
		fake_end(&f);
	}
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	char name[140];

	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	refused(hcomm_query(NULL, 1, NULL, count, NULL), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_query(s, 1, NULL, NULL, NULL), HCOMM_E_INVALID, "fn is NULL");
	refused(hcomm_query(s, 0, NULL, count, NULL), HCOMM_E_INVALID, "view is 0");
	refused(hcomm_query(s, 4000, NULL, count, NULL), HCOMM_E_INVALID, "view is 4000");
	filter.name = name;
	refused(hcomm_query(s, 1, &filter, count, NULL), HCOMM_E_INVALID, "128 bytes");
	filter.size = 1;
	refused(hcomm_query(s, 1, &filter, count, NULL), HCOMM_E_INVALID, "size is 1");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

/* libcheck's own assertions allocate */
static int only_count(const void *row, void *context)
{
	(void)row;
	(void)context;
	rows++;
	return 0;
}

START_TEST(the_nth_allocation_fails_cleanly)
{
	struct hcomm_session *s;
	struct hc_node node;
	int n, r;

	hc_node_start(&node, 2, NULL);
	s = open_session();
	for (n = 0;; n++) {
		rows = 0;
		hc_failing_begin(n);
		r = hcomm_query(s, HCOMM_VIEW_SETTING, NULL, only_count, NULL);
		if (!hc_failing_end())
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
		ck_assert_uint_eq(rows, 0);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_query", every_view_can_be_read, filters_choose,
      pages_follow_each_other_and_stale_ones_are_read_again, odd_pages_are_refused, refusals,
      the_nth_allocation_fails_cleanly)
