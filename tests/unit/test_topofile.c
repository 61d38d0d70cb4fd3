/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files and hostfiles: what a good one says, each single fault of a bad one. The files
 * of tests/cases/open are judged by test_ranktable.
 */
#include "judge.h"

START_TEST(a_topology_gives_its_peers_and_edges)
{
	const struct hc_topo_edge *e;

	ck_assert_msg(!judge(TOPOLOGY, topo_2), "%s", v.message);
	ck_assert_str_eq(v.message, "version 2.0, 3 peers, 3 edges");
	ck_assert_uint_eq(topo->npeers, 3);
	ck_assert_uint_eq(topo->peers[2], 7);
	ck_assert_uint_eq(topo->nedges, 3);
	e = &topo->edges[0];
	ck_assert_int_eq(e->link_type, HC_TOPO_PEER2PEER);
	ck_assert_uint_eq(e->protocols, 1u << HC_TOPO_UB_CTP | 1u << HC_TOPO_HCCS);
	ck_assert_int_eq(e->topo_type, HC_TOPO_1DMESH);
	ck_assert(e->a.present && e->b.present);
	ck_assert_uint_eq(e->b.local_id, 1);
	ck_assert_uint_eq(e->a.ports[0].die, 1);
	ck_assert_uint_eq(e->a.ports[0].port, 0);
	e = &topo->edges[1];
	ck_assert_int_eq(e->link_type, HC_TOPO_PEER2NET);
	ck_assert(!e->b.present);
	ck_assert_uint_eq(e->a.nports, 2);
	ck_assert(e->a.ports[1].d2h);
	ck_assert_uint_eq(e->topo_instance_id, 3);
	ck_assert_int_eq(e->topo_type, HC_TOPO_CLOS);
	ck_assert_int_eq(e->position, HC_TOPO_HOST);
	ck_assert_uint_eq(topo->edges[2].a.local_id, 7);
	ck_assert_uint_eq(topo->edges[2].a.ports[0].port, 4);
	let_go();
}
END_TEST

START_TEST(faults_of_topologies)
{
	static const struct edit e[] = {
		{"'2.0'", "'1.0'", HC_V_BAD_VERSION, "version", "2.0"},
		{"'version':'2.0',", "", HC_V_MISSING_FIELD, "version", "version"},
		{"'peer_count':3", "'peer_count':4", HC_V_COUNT_MISMATCH, "peer_count", "4 and 3"},
		{"'peer_count':3", "'peer_count':0", HC_V_OUT_OF_RANGE, "peer_count", "1..65"},
		{"'peer_count':3", "'peer_count':'3'", HC_V_WRONG_TYPE, "peer_count",
		 "without quotes"},
		{"'edge_count':3", "'edge_count':2", HC_V_COUNT_MISMATCH, "edge_count", "2 and 3"},
		{"'edge_count':3,", "", HC_V_MISSING_FIELD, "edge_count", "edge_count"},
		{"{'local_id':1}", "{'local_id':0}", HC_V_DUPLICATE_DEVICE, "peer_list[1].local_id",
		 "peer 1: device 0"},
		{"{'local_id':1}", "{'local_id':65}", HC_V_OUT_OF_RANGE, "peer_list[1].local_id",
		 "0..64"},
		{"{'local_id':1}", "[]", HC_V_WRONG_TYPE, "peer_list[1]", "a list"},
		{"'net_layer':1", "'net_layer':8", HC_V_OUT_OF_RANGE, "edge_list[1].net_layer",
		 "edge 1"},
		{"'PEER2PEER'", "'PEER2ALL'", HC_V_OUT_OF_RANGE, "edge_list[0].link_type",
		 "PEER2ALL"},
		{"'1DMESH'", "'RING'", HC_V_OUT_OF_RANGE, "edge_list[0].topo_type", "edge 0"},
		{"'HOST'", "'host'", HC_V_OUT_OF_RANGE, "edge_list[1].position", "DEVICE or HOST"},
		{"'ROCE'", "'roce'", HC_V_BAD_PROTOCOL, "edge_list[1].protocols[0]", "edge 1"},
		{"'ROCE'", "3", HC_V_WRONG_TYPE, "edge_list[1].protocols[0]", "the number 3"},
		{"['ROCE']", "[]", HC_V_EMPTY, "edge_list[1].protocols", "edge 1"},
		{"'local_b':1", "'local_b':5", HC_V_UNKNOWN_PEER, "edge_list[0].local_b",
		 "device 5"},
		{"'local_b':1", "'local_b':4000000000", HC_V_UNKNOWN_PEER, NULL,
		 "device 4000000000"},
		{"'local_b':1", "'local_b':0", HC_V_SELF_EDGE, "edge_list[0].local_b", "device 0"},
		{"'local_b':1,", "", HC_V_MISSING_FIELD, "edge_list[0].local_b", "edge 0"},
		{"'local_a':7,", "", HC_V_MISSING_FIELD, "edge_list[2].local_a", "edge 2"},
		{"'local_b_ports':['1/0'],", "", HC_V_MISSING_FIELD, "edge_list[0].local_b_ports",
		 "edge 0"},
		{"'0/4'", "'0-4'", HC_V_BAD_PORT, "edge_list[1].local_a_ports[0]", "0-4"},
		{"'0/4'", "'1/0'", HC_V_PORT_USED_TWICE, "edge_list[1].local_a_ports[0]",
		 "edge 1: port 1/0 of device 0 is used already by edge 0"},
		{"['1/0'],'local_b'", "['1/0','1/0'],'local_b'", HC_V_PORT_USED_TWICE,
		 "edge_list[0].local_a_ports[1]", "by edge 0"},
		/* two devices may have ports of one name, and edges to the net no far end */
		{"'local_b_ports':['1/0']", "'local_b_ports':['0/4']", HC_V_NONE, NULL, "3 edges"},
		{"'edge_count':3,'edge_list':[", "'edge_count':0,'edge_list':[],'x':[", HC_V_NONE,
		 NULL, "0 edges"},
	};

	CHECK_EDITS(TOPOLOGY, topo_2, e);
}
END_TEST

START_TEST(edges_have_at_most_64_ports)
{
	char text[4096] = "{'version':'2.0','peer_count':1,'peer_list':[{'local_id':0}],"
			  "'edge_count':1,'edge_list':[{'net_layer':1,'link_type':'PEER2NET',"
			  "'protocols':['TCP'],'local_a':0,'local_a_ports':['0/0'";
	size_t n = strlen(text);
	int i;

	for (i = 1; i < 64; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",'0/%d'", i);
	snprintf(text + n, sizeof(text) - n, "]}]}");
	ck_assert_msg(!judge(TOPOLOGY, text), "%s", v.message);
	ck_assert_uint_eq(topo->edges[0].a.nports, 64);
	snprintf(text + n, sizeof(text) - n, ",'1/0']}]}");
	ck_assert_int_eq(judge(TOPOLOGY, text), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_OUT_OF_RANGE);
	ck_assert_ptr_nonnull(strstr(v.message, "edge 0"));
}
END_TEST

/* ---- hostfiles ---- */

static int read_hosts(const char *text, struct hc_hostfile **h)
{
	struct hc_jsontext in;

	hc_verdict_init(&v);
	ck_assert_int_eq(hc_jsontext_set(text, strlen(text), 1 << 20, &in, &v), 0);
	return hc_hostfile_read(&in, h, &v);
}

START_TEST(both_dialects_of_hostfiles_are_read)
{
	struct hc_hostfile *h;

	ck_assert_int_eq(
		read_hosts("# cluster\nnode1 slots=8\n\tnode2  slots=2 # half\r\n\nnode3", &h), 0);
	ck_assert_str_eq(v.message, "hostfile, 11 ranks on 3 hosts");
	ck_assert_str_eq(h->hosts[1].name, "node2");
	ck_assert_uint_eq(h->hosts[1].ranks, 2);
	hc_hostfile_free(h);
	ck_assert_int_eq(read_hosts("127.0.0.1:4\n[fd00::1]:3\nfd00::2\n", &h), 0);
	ck_assert_uint_eq(h->nranks, 8);
	ck_assert_str_eq(h->hosts[1].name, "[fd00::1]");
	ck_assert_str_eq(h->hosts[2].name, "fd00::2");
	hc_hostfile_free(h);
}
END_TEST

START_TEST(hostfiles_from_the_field)
{
	struct hc_jsontext text;
	struct hc_hostfile *h;

	hc_verdict_init(&v);
	ck_assert_int_eq(
		hc_jsontext_load("tests/cases/open/c020-hostfile-uneven.txt", 4096, &text, &v), 0);
	ck_assert_int_eq(hc_hostfile_read(&text, &h, &v), 0);
	ck_assert_uint_eq(h->nranks, 15);
	hc_hostfile_free(h);
	hc_jsontext_fini(&text);
	ck_assert_int_eq(
		hc_jsontext_load("tests/cases/open/c020-hostfile-colon.txt", 4096, &text, &v), 0);
	ck_assert_int_eq(hc_hostfile_read(&text, &h, &v), 0);
	ck_assert_uint_eq(h->nranks, 4);
	hc_hostfile_free(h);
	hc_jsontext_fini(&text);
}
END_TEST

START_TEST(faults_of_hostfiles_give_the_line)
{
	static const struct {
		const char *text;
		enum hc_verdict_kind kind;
		uint32_t line;
	} t[] = {
		{"a slots=2\nb slots=x\n", HC_V_BAD_NUMBER, 2},
		{"a:-1\n", HC_V_BAD_NUMBER, 1},
		{"a slots=\n", HC_V_BAD_NUMBER, 1},
		{"a cores=3\n", HC_V_BAD_NUMBER, 1},
		{"a:0\n", HC_V_OUT_OF_RANGE, 1},
		{"a:65536\nb:1\n", HC_V_OUT_OF_RANGE, 2},
		{":4\n", HC_V_EMPTY, 1},
		{"# nothing\n\n", HC_V_EMPTY, 0},
		{"a:2\nb\na:3\n", HC_V_DUPLICATE_SERVER, 0},
	};
	struct hc_hostfile *h;
	char *text = malloc(3000);
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ck_assert_int_eq(read_hosts(t[i].text, &h), HC_FILE_REFUSED);
		ck_assert_ptr_null(h);
		ck_assert_msg(v.kind == t[i].kind, "%s: %s", t[i].text, v.message);
		ck_assert_uint_eq(v.line, t[i].line);
	}
	memset(text, 'h', 2999);
	text[2999] = '\0';
	ck_assert_int_eq(read_hosts(text, &h), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_TOO_LONG);
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("topofile");
	TCase *t = tcase_create("topofile");
	SRunner *r;
	int failed;

	tcase_add_test(t, a_topology_gives_its_peers_and_edges);
	tcase_add_test(t, faults_of_topologies);
	tcase_add_test(t, edges_have_at_most_64_ports);
	tcase_add_test(t, both_dialects_of_hostfiles_are_read);
	tcase_add_test(t, hostfiles_from_the_field);
	tcase_add_test(t, faults_of_hostfiles_give_the_line);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
