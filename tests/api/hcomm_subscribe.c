/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_subscribe: events of domains that one is no member of.
 */
#include "apitest.h"

static unsigned active, all;
static uint64_t id;

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	all++;
	active += e->code == HCOMM_EV_DOMAIN_ACTIVE;
	id = e->id;
	ck_assert_uint_eq(e->domain, 0); /* no handle of this session */
}

START_TEST(a_watcher_hears_of_all_until_it_stops)
{
	struct hcomm_session *watcher, *s[1] = {0};
	struct hc_node n;
	hcomm_domain d;
	uint64_t end = hc_now_ms() + hc_patience(20000);

	hc_node_start(&n, 1, NULL);
	watcher = open_session();
	works(hcomm_on_event(watcher, on_event, NULL));
	works(hcomm_subscribe(watcher, 0, 1));
	form(s, &d, 1, NULL);
	while (!active) {
		ck_assert_int_ge(hcomm_dispatch(watcher, 100), 0);
		ck_assert_uint_lt(hc_now_ms(), end);
	}
	ck_assert_uint_eq(id, id_of(d));
	works(hcomm_subscribe(watcher, 0, 0));
	hcomm_dispatch(watcher, 0);
	all = 0;
	works(hcomm_leave(d, 5000));
	works(hcomm_ping(watcher, 5000)); /* the daemon has said what it had to say */
	ck_assert_int_eq(hcomm_dispatch(watcher, 0), 0);
	ck_assert_uint_eq(all, 0);
	hcomm_close(s[0]);
	hcomm_close(watcher);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_subscribe(NULL, 0, 1), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_subscribe(s, 0, 2), HCOMM_E_INVALID, "on is 2");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_subscribe", a_watcher_hears_of_all_until_it_stops, refusals)
