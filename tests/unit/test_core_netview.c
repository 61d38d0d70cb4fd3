/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, paths and ports as people see them: whole rows, and pages that go on where they ended.
 */
#include "peering.h"

#include "view.h"

static struct sim *s;

static void start(uint32_t nodes, uint32_t rails)
{
	struct sim_args a;

	sim_defaults(&a);
	a.nodes = nodes;
	a.rails = rails;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 2 * SIM_S);
}

struct look {
	struct hc_m_query q;
	struct hc_view_page g;
	uint64_t from, cursor;
};

static void look_at(struct hc_core *c, void *arg)
{
	struct look *l = arg;

	l->g = (struct hc_view_page){.c = c, .q = &l->q, .d = hc_desc_view(l->q.view)};
	switch (l->q.view) {
	case HC_VIEW_node: l->cursor = hc_netview_nodes(&l->g, l->from); return;
	case HC_VIEW_path: l->cursor = hc_netview_paths(&l->g, l->from); return;
	case HC_VIEW_port: l->cursor = hc_netview_ports(&l->g, l->from); return;
	}
	ck_abort_msg("no such view here");
}

/* The first row of node 0, and how many there are. */
static uint32_t rows(uint16_t view, const char *name, void *row)
{
	struct look l = {.q = {.view = view, .name = hc_str(name)}};
	struct hc_str all;

	sim_do(s, 0, look_at, &l);
	ck_assert_uint_eq(l.cursor, 0);
	all = (struct hc_str){(const char *)sim_core(s, 0)->scratch, (uint32_t)l.g.used};
	if (l.g.rows)
		ck_assert_int_eq(hc_decode_front(l.g.d, HC_PROTO_MAX, &all, row), 0);
	return l.g.rows;
}

static bool is(struct hc_str a, const char *text)
{
	return hc_str_eq(a, hc_str(text));
}

START_TEST(a_node_that_is_up_has_its_row)
{
	struct hc_m_view_node r;

	start(3, 2);
	ck_assert_uint_eq(rows(HC_VIEW_node, "", &r), 2);
	ck_assert_uint_eq(rows(HC_VIEW_node, "n2", &r), 1);
	ck_assert_uint_eq(rows(HC_VIEW_node, "n9", &r), 0);
	ck_assert_uint_eq(rows(HC_VIEW_node, "n2", &r), 1);
	ck_assert(is(r.name, "n2"));
	ck_assert(is(r.state, "up"));
	ck_assert_uint_eq(r.node_id.len, 32);
	ck_assert_uint_eq(r.boot_id.len, 32);
	ck_assert_uint_eq(r.paths, 2);
	ck_assert_uint_eq(r.paths_good, 2);
	ck_assert_uint_le(r.heard_ms, 120);
	ck_assert_uint_eq(r.interval_ms, 100);
	ck_assert_uint_eq(r.start, 1);
	ck_assert_uint_eq(r.waiting, 0);
	ck_assert_uint_eq(r.next_ms, 0);
	ck_assert(!strncmp(r.address.p, "10.", 3));
	ck_assert_uint_eq(r.cause.len, 0);
	sim_free(s);
}
END_TEST

START_TEST(a_node_that_is_away_says_why_and_when_it_is_tried)
{
	struct hc_m_view_node r;

	start(2, 1);
	sim_kill(s, 1);
	sim_run(s, 20 * SIM_S);
	ck_assert_uint_eq(rows(HC_VIEW_node, "", &r), 1);
	ck_assert(is(r.state, "unreachable"));
	ck_assert_uint_ge(r.heard_ms, 19000);
	ck_assert_uint_gt(r.next_ms, 0);
	ck_assert_uint_le(r.next_ms, 10000);
	ck_assert_uint_ge(r.dials, 5);
	ck_assert(is(r.address, "10.0.0.1:16660"));
	ck_assert(is(r.cause, "10.0.0.1:16660: connection refused"));
	sim_free(s);
}
END_TEST

START_TEST(a_path_has_its_row)
{
	struct hc_m_view_path r;

	start(3, 2);
	ck_assert_uint_eq(rows(HC_VIEW_path, "", &r), 4);
	ck_assert_uint_eq(rows(HC_VIEW_path, "n1", &r), 2);
	ck_assert(is(r.node, "n1"));
	ck_assert(is(r.state, "normal"));
	ck_assert(is(r.cause, "both directions proven"));
	ck_assert_uint_ne(r.id, 0);
	ck_assert_uint_eq(r.mtu_local, 1500);
	ck_assert_uint_eq(r.mtu_peer, 1500);
	ck_assert_uint_eq(r.mtu_used, 1500);
	ck_assert_uint_eq(r.interval_ms, 100);
	ck_assert_uint_le(r.heard_ms, 120);
	ck_assert_uint_ge(r.rtt_us, 100);
	ck_assert_uint_ge(r.rtt_p99_us, r.rtt_p50_us);
	ck_assert_uint_ge(r.rtt_max_us, r.rtt_p99_us);
	ck_assert_uint_eq(r.flap_ms, HC_NEVER);
	ck_assert_uint_eq(r.held_ms, 0);
	sim_free(s);
}
END_TEST

START_TEST(pages_go_on_where_they_ended)
{
	const uint16_t views[] = {HC_VIEW_node, HC_VIEW_path, HC_VIEW_port};
	const uint32_t want[] = {2, 4, 2};
	struct look l = {.q = {.limit = 1}};
	uint32_t i, seen;

	start(3, 2);
	for (i = 0; i < 3; i++) {
		l.q.view = views[i];
		l.from = seen = 0;
		do {
			sim_do(s, 0, look_at, &l);
			seen += l.g.rows;
			l.from = l.cursor - 1;
			ck_assert_uint_le(seen, 10);
		} while (l.cursor);
		ck_assert_uint_eq(seen, want[i]);
	}
	sim_free(s);
}
END_TEST

START_TEST(ports_have_a_row_for_each_address)
{
	struct hc_m_view_port r;

	start(2, 2);
	ck_assert_uint_eq(rows(HC_VIEW_port, "eth1", &r), 1);
	ck_assert(is(r.name, "eth1"));
	ck_assert(is(r.kind, "ethernet"));
	ck_assert(is(r.address, "10.1.0.0"));
	ck_assert(is(r.verdict, "used"));
	ck_assert_uint_eq(r.index, 3);
	ck_assert_uint_eq(r.mtu, 1500);
	sim_port(s, 0, 1, false, 1500);
	ck_assert_uint_eq(rows(HC_VIEW_port, "eth1", &r), 1);
	ck_assert(is(r.verdict, "down"));
	sim_free(s);
}
END_TEST

START_TEST(a_path_names_its_port_also_when_that_is_gone)
{
	struct hc_port_fact f = {.index = 3, .name = "eth1", .present = false};
	struct hc_event ev = {.kind = HC_EV_PORT_FACT, .u.port = &f};
	struct hc_m_view_path r;
	uint32_t gone = 0, i;

	start(2, 2);
	sim_feed(s, 0, &ev);
	sim_run(s, SIM_MS);
	for (i = 0; i < 2; i++) {
		struct look l = {.q = {.view = HC_VIEW_path, .limit = 1}, .from = i};
		struct hc_str all;

		sim_do(s, 0, look_at, &l);
		all = (struct hc_str){(const char *)sim_core(s, 0)->scratch, (uint32_t)l.g.used};
		ck_assert_int_eq(hc_decode_front(l.g.d, HC_PROTO_MAX, &all, &r), 0);
		gone += is(r.port, "eth1 (gone)");
		ck_assert_msg(is(r.port, "eth0") ||
				      (is(r.port, "eth1 (gone)") && is(r.state, "down")),
			      "port %.*s is %.*s", (int)r.port.len, r.port.p, (int)r.state.len,
			      r.state.p);
	}
	ck_assert_uint_eq(gone, 1);
	sim_free(s);
}
END_TEST

START_TEST(the_status_counts_them)
{
	struct hc_core_counts n;

	start(3, 2);
	hc_core_counts(sim_core(s, 0), &n);
	ck_assert_uint_eq(n.peers, 2);
	ck_assert_uint_eq(n.peers_up, 2);
	ck_assert_uint_eq(n.paths, 4);
	ck_assert_uint_eq(n.paths_good, 4);
	sim_kill(s, 1);
	sim_run(s, 6 * SIM_S);
	hc_core_counts(sim_core(s, 0), &n);
	ck_assert_uint_eq(n.peers, 2);
	ck_assert_uint_eq(n.peers_up, 1);
	ck_assert_uint_eq(n.paths_good, 2);
	sim_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_netview");
	TCase *t = tcase_create("netview");

	tcase_add_test(t, a_node_that_is_up_has_its_row);
	tcase_add_test(t, a_node_that_is_away_says_why_and_when_it_is_tried);
	tcase_add_test(t, a_path_has_its_row);
	tcase_add_test(t, pages_go_on_where_they_ended);
	tcase_add_test(t, ports_have_a_row_for_each_address);
	tcase_add_test(t, a_path_names_its_port_also_when_that_is_gone);
	tcase_add_test(t, the_status_counts_them);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
