/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables: what a person hands in, and what must come back.
 *
 * Good tables of each version give the roster they describe; each single fault gives its kind,
 * its path and a message with the word a person would look for. The files of tests/cases/open
 * are checked as users would.
 */
#include "address.h"
#include "bind.h"
#include "judge.h"

/* ---- files from the field ---- */

/* Each word of "a, b and c" must be in the text; a leading dot stands for the end of an address. */
static void has_words(const char *text, const char *words, const char *file)
{
	char copy[256], *rest = copy, *word, *stop;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((stop = strstr(copy, " and ")))
		memcpy(stop, ",,,, ", 5);
	while ((word = strsep(&rest, ","))) {
		word += strspn(word, " ");
		if (!strncmp(word, "local ", 6))
			word += 6;
		ck_assert_msg(strstr(text, word) != NULL, "%s: no '%s' in: %s", file, word, text);
	}
}

static void show_roster(char *buf, size_t size)
{
	char addr[HC_ADDR_TEXT_MAX];
	size_t n = strlen(buf);
	uint32_t i;

	for (i = 0; i < roster->nranks; i++)
		n += (size_t)snprintf(buf + n, size - n, "\nrank %u = device %u %s", i,
				      roster->ranks[i].device,
				      hc_addr_text(&roster->ranks[i].addr, addr));
}

static void bind_case(const char *file, const char *kind, const char *words)
{
	const uint32_t devices[] = {4, 7};
	struct hc_netaddr have;

	ck_assert_ptr_null(hc_ip_parse("192.0.2.11", &have));
	if (!strcmp(kind, "device-not-here")) {
		ck_assert_int_eq(hc_bind_device(roster, 0, devices, 2, &v), 0);
		ck_assert_int_eq(hc_bind_device(roster, 1, devices, 2, &v), HC_FILE_REFUSED);
	} else {
		ck_assert_int_eq(hc_bind_address(roster, 1, &have.a, 1, &v), HC_FILE_REFUSED);
		ck_assert_ptr_nonnull(strstr(v.message, "192.0.2.11"));
	}
	ck_assert_str_eq(hc_verdict_name(v.kind), kind);
	has_words(v.message, words, file);
}

static void one_case(char *file, char *verdict, char *kind, char *words)
{
	enum reader reader = strstr(file, "topo") ? TOPOLOGY : TABLE;
	struct hc_jsontext text;
	char path[256], shown[4096];
	int r;

	snprintf(path, sizeof(path), "tests/cases/open/%s", file);
	let_go();
	hc_verdict_init(&v);
	r = hc_jsontext_load(path, 1 << 20, &text, &v);
	ck_assert_msg(r >= 0, "%s: %s", path, v.message);
	if (!r)
		r = reader == TABLE ? hc_ranktable_read(&text, &roster, &v)
				    : hc_topofile_read(&text, &topo, &v);
	hc_jsontext_fini(&text);
	if (!strncmp(verdict, "accept", 6)) {
		ck_assert_msg(!r, "%s: refused: %s", file, v.message);
		ck_assert_str_eq(hc_verdict_outcome(&v), "accept");
		snprintf(shown, sizeof(shown), "%s", v.message);
		if (roster)
			show_roster(shown, sizeof(shown));
		if (strstr(verdict, "bind"))
			bind_case(file, kind, words);
		else if (!strcmp(verdict, "accept"))
			has_words(shown, words, file);
		return;
	}
	ck_assert_str_eq(hc_verdict_outcome(&v), verdict);
	ck_assert_msg(!strcmp(hc_verdict_name(v.kind), kind), "%s: %s, wanted %s", file,
		      hc_verdict_name(v.kind), kind);
	has_words(v.message, words, file);
	ck_assert_msg(v.line > 0 && v.column > 0, "%s: no position", file);
}

START_TEST(files_from_the_field_get_their_verdicts)
{
	FILE *f = fopen("tests/cases/open/expected.tsv", "re");
	char line[1024], *rest, *col[4];
	int rows = 0, i;

	ck_assert_msg(f != NULL, "run me from the top of the tree");
	while (fgets(line, sizeof(line), f)) {
		rest = line;
		for (i = 0; i < 4; i++)
			col[i] = strsep(&rest, "\t\n");
		if (!col[3] || !strstr(col[0], ".json"))
			continue;
		one_case(col[0], col[1], col[2], col[3]);
		rows++;
	}
	fclose(f);
	ck_assert_int_ge(rows, 50);
	let_go();
}
END_TEST

START_TEST(placeholder_of_rank_5_names_no_other_rank)
{
	struct hc_jsontext text;

	hc_verdict_init(&v);
	ck_assert_int_eq(hc_jsontext_load("tests/cases/open/c001-one-dash-of-eight.json", 1 << 20,
					  &text, &v),
			 0);
	ck_assert_int_eq(hc_ranktable_read(&text, &roster, &v), HC_FILE_REFUSED);
	ck_assert_str_eq(v.path, "server_list[0].device[5].device_ip");
	ck_assert_uint_eq(v.line, 35);
	ck_assert_uint_eq(v.column, 24);
	ck_assert_str_eq(v.found, "-.-.-.-");
	ck_assert_ptr_nonnull(strstr(v.message, "server node_a, device 5, rank 5:"));
	ck_assert_ptr_null(strstr(v.message, "rank 0"));
	hc_jsontext_fini(&text);
}
END_TEST

/* ---- what a good table says ---- */

START_TEST(version_1_0_gives_its_roster)
{
	ck_assert_int_eq(judge(TABLE, table_1), 0);
	ck_assert_str_eq(v.message, "version 1.0, 4 ranks on 2 servers, IPv4");
	ck_assert_uint_eq(roster->nranks, 4);
	ck_assert_uint_eq(roster->nservers, 2);
	ck_assert_str_eq(roster->servers[0].name, "node_a");
	ck_assert_str_eq(roster->servers[1].name, "node_b");
	ck_assert_uint_eq(roster->servers[0].host_ip.family, 4);
	ck_assert_uint_eq(roster->servers[0].host_ip.bytes[3], 1);
	ck_assert_uint_eq(roster->servers[1].host_ip.family, 0);
	ck_assert_uint_eq(roster->ranks[3].server, 1);
	ck_assert_uint_eq(roster->ranks[3].device, 1);
	ck_assert_uint_eq(roster->ranks[3].port, 17000);
	ck_assert_uint_eq(roster->ranks[2].port, 0);
	ck_assert_uint_eq(roster->ranks[3].addr.bytes[3], 11);
	ck_assert_uint_eq(v.nwarnings, 0);
	let_go();
}
END_TEST

START_TEST(version_1_2_gives_its_roster)
{
	ck_assert_int_eq(judge(TABLE, table_12), 0);
	ck_assert_str_eq(v.message, "version 1.2, 4 ranks on 3 servers, 2 super pods, IPv4");
	ck_assert_uint_eq(roster->nservers, 3);
	ck_assert_uint_eq(roster->ranks[1].addr.bytes[3], 2); /* its own, not the backup */
	let_go();
}
END_TEST

START_TEST(version_2_0_takes_servers_from_layer_0_and_the_first_ip)
{
	ck_assert_int_eq(judge(TABLE, table_2), 0);
	ck_assert_str_eq(v.message, "version 2.0, 2 ranks on 2 servers, IPv4 and EID");
	ck_assert_str_eq(roster->servers[roster->ranks[1].server].name, "srv-2");
	ck_assert_uint_eq(roster->ranks[0].addr.family, 4);
	ck_assert_uint_eq(roster->ranks[0].addr.bytes[3], 30);
	ck_assert_uint_eq(roster->ranks[0].port, 17001);
	let_go();
}
END_TEST

START_TEST(device_ip_may_list_several)
{
	char *text = edited(table_1, "192.0.2.10'", "192.0.2.10,192.0.2.12'");

	ck_assert_int_eq(judge(TABLE, text), 0);
	ck_assert_uint_eq(roster->ranks[0].addr.bytes[3], 10);
	free(text);
	text = edited(table_1, "192.0.2.10'", "192.0.2.10,192.0.2.11'");
	ck_assert_int_eq(judge(TABLE, text), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_DUPLICATE_ADDRESS);
	free(text);
	text = edited(table_1, "192.0.2.10'", "192.0.2.10, 192.0.2.12'");
	ck_assert_int_eq(judge(TABLE, text), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_BAD_ADDRESS);
	free(text);
}
END_TEST

START_TEST(one_address_with_two_ports_is_two_places)
{
	static const struct edit ok[] = {
		{"'device_ip':'198.51.100.11'", "'device_ip':'198.51.100.10'", HC_V_NONE, NULL, ""},
		{"'192.0.2.11'", "'127.0.0.1'", HC_V_NONE, NULL, "IPv4"},
		{"'server_count':'2',", "", HC_V_NONE, NULL, "4 ranks"},
		{"'host_ip':'192.0.2.1'", "'host_ip':''", HC_V_NONE, NULL, "4 ranks"},
		{"'device_id':'0'", "'color':{'x':[null,true]},'device_id':'0'", HC_V_NONE, NULL,
		 ""},
	};

	CHECK_EDITS(TABLE, table_1, ok);
}
END_TEST

START_TEST(link_local_with_a_scope_is_taken)
{
	static const char text[] =
		"{'version':'1.0','status':'completed','server_list':[{'server_id':'a','device':["
		"{'device_id':'0','device_ip':'fe80::1%7','rank_id':'0'},"
		"{'device_id':'1','device_ip':'fe80::1%8','rank_id':'1'},"
		"{'device_id':'2','device_ip':'fe80::1%nowhere0','rank_id':'2'}]}]}";

	ck_assert_int_eq(judge(TABLE, text), 0);
	ck_assert_uint_eq(roster->ranks[0].addr.scope, 7);
	ck_assert_uint_eq(roster->ranks[2].addr.scope, 0);
	let_go();
}
END_TEST

/* ---- single faults ---- */

START_TEST(faults_of_1_0)
{
	static const struct edit e[] = {
		{"'1.0'", "1.0", HC_V_WRONG_TYPE, "version", "text in quotes"},
		{"'1.0'", "'1.1'", HC_V_BAD_VERSION, "version", "1.0, 1.2 and 2.0"},
		{"'completed'", "'Completed'", HC_V_BAD_STATUS, "status", "Completed"},
		{"'completed'", "7", HC_V_WRONG_TYPE, "status", "the number 7"},
		{"'server_count':'2'", "'server_count':'3'", HC_V_COUNT_MISMATCH, "server_count",
		 "3 and 2"},
		{"'server_count':'2'", "'server_count':2", HC_V_WRONG_TYPE, "server_count",
		 "number in quotes"},
		{"'server_count':'2'", "'server_count':'two'", HC_V_BAD_NUMBER, "server_count",
		 "two"},
		{"'server_list'", "'list'", HC_V_MISSING_FIELD, "server_list", "server_list"},
		{"'server_id':'node_a',", "", HC_V_MISSING_FIELD, "server_list[0].server_id",
		 "server_id"},
		{"'server_id':'node_a'", "'server_id':''", HC_V_EMPTY, "server_list[0].server_id",
		 "empty"},
		{"'node_a'", "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'",
		 HC_V_TOO_LONG, "server_list[0].server_id", "65 bytes"},
		{"'node_b'", "'node_a'", HC_V_DUPLICATE_SERVER, "server_list[1].server_id",
		 "node_a is listed twice"},
		{"'host_ip':'192.0.2.1'", "'host_ip':'node-a.example'", HC_V_BAD_ADDRESS,
		 "server_list[0].host_ip", "node-a.example"},
		{"'rank_id':'2'", "'rank_id':'-2'", HC_V_BAD_NUMBER,
		 "server_list[1].device[0].rank_id", "-2"},
		{"'rank_id':'2'", "'rank_id':'02'", HC_V_BAD_NUMBER,
		 "server_list[1].device[0].rank_id", "02"},
		{"'rank_id':'2'", "'rank_id':'2 '", HC_V_BAD_NUMBER,
		 "server_list[1].device[0].rank_id", "device 0"},
		{"'rank_id':'2'", "'rank_id':'0x2'", HC_V_BAD_NUMBER, NULL, "0x2"},
		{"'rank_id':'2'", "'rank_id':'1e3'", HC_V_BAD_NUMBER, NULL, "1e3"},
		{"'rank_id':'2'", "'rank_id':''", HC_V_BAD_NUMBER, NULL, "node_b"},
		{"'rank_id':'2'", "'rank_id':'4294967296'", HC_V_OUT_OF_RANGE, NULL, "4294967296"},
		{"'rank_id':'2'", "'rank_id':'99999999999999999999999'", HC_V_OUT_OF_RANGE, NULL,
		 "9999999"},
		{"'rank_id':'2'", "'rank_id':'4'", HC_V_RANK_GAP,
		 "server_list[1].device[1].rank_id", "rank 2 is missing of 4"},
		{"'rank_id':'2'", "'rank_id':'1'", HC_V_DUPLICATE_RANK,
		 "server_list[1].device[0].rank_id", "server node_a, device 1"},
		{"'rank_id':'2'}", "'rank_id':2}", HC_V_WRONG_TYPE, NULL, "number in quotes"},
		{"'rank_id':'0',", "", HC_V_MISSING_FIELD, "server_list[0].device[0].rank_id",
		 "device 0"},
		{"'device_id':'1',", "", HC_V_MISSING_FIELD, "server_list[0].device[1].device_id",
		 "rank 1"},
		{"'device_id':'1'", "'device_id':'0'", HC_V_DUPLICATE_DEVICE,
		 "server_list[0].device[1].device_id", "rank 0"},
		{"'device_id':'1'", "'device_id':'65536'", HC_V_OUT_OF_RANGE, NULL, "65536"},
		{"'device_port':'17000'", "'device_port':'0'", HC_V_BAD_PORT,
		 "server_list[1].device[1].device_port", "1..65535"},
		{"'device_port':'17000'", "'device_port':'65536'", HC_V_BAD_PORT, NULL, "65536"},
		{"'device_port':'17000'", "'device_port':'x'", HC_V_BAD_PORT, NULL, "x"},
		{"'host_port':'60001'", "'host_port':'60000'", HC_V_PORT_USED_TWICE,
		 "server_list[0].device[1].host_port", "rank 0"},
		{"'192.0.2.11'", "'192.0.2.10'", HC_V_DUPLICATE_ADDRESS,
		 "server_list[0].device[1].device_ip", "192.0.2.10"},
		{"'192.0.2.11'", "'192.0.2.256'", HC_V_BAD_ADDRESS, NULL, "192.0.2.256"},
		{"'192.0.2.11'", "'192.0.2'", HC_V_BAD_ADDRESS, NULL, "192.0.2"},
		{"'192.0.2.11'", "'0.0.0.0'", HC_V_BAD_ADDRESS, NULL, "unspecified"},
		{"'192.0.2.11'", "'224.0.0.1'", HC_V_BAD_ADDRESS, NULL, "multicast"},
		{"'192.0.2.11'", "'255.255.255.255'", HC_V_BAD_ADDRESS, NULL, "broadcast"},
		{"'192.0.2.11'", "'::'", HC_V_BAD_ADDRESS, NULL, "unspecified"},
		{"'192.0.2.11'", "'ff02::1'", HC_V_BAD_ADDRESS, NULL, "multicast"},
		{"'192.0.2.11'", "'::ffff:192.0.2.11'", HC_V_BAD_ADDRESS, NULL, "write it as IPv4"},
		{"'192.0.2.11'", "'fd00::1%eth0'", HC_V_BAD_ADDRESS, NULL, "only link-local"},
		{"'192.0.2.11'", "'fe80::1%'", HC_V_BAD_ADDRESS, NULL, "scope"},
		{"'192.0.2.11'", "'fe80::1%a/b'", HC_V_BAD_ADDRESS, NULL, "scope"},
		{"'192.0.2.11'", "'fe80::1'", HC_V_BAD_ADDRESS, NULL, "link-local"},
		{"'192.0.2.11'", "'fd00::1'", HC_V_MIXED_FAMILY,
		 "server_list[0].device[1].device_ip", "IPv6"},
		{"'192.0.2.11'", "'192.0.2.11,'", HC_V_BAD_ADDRESS, NULL, "\"\""},
		{"'192.0.2.11'", "null", HC_V_WRONG_TYPE, NULL, "null"},
		{"{'device_id':'0','device_ip':'192.0.2.10','rank_id':'0','host_port':'60000'}",
		 "7", HC_V_WRONG_TYPE, "server_list[0].device[0]", "the number 7"},
		{"'rank_id':'1'", "'rank_id':'2'", HC_V_DUPLICATE_RANK, NULL, "rank 2"},
	};

	CHECK_EDITS(TABLE, table_1, e);
}
END_TEST

START_TEST(whole_faults_of_1_0)
{
	static const struct {
		const char *text;
		enum hc_verdict_kind kind;
		const char *word;
	} t[] = {
		{"{'version':'1.0','status':'completed','server_list':[]}", HC_V_EMPTY,
		 "server_list"},
		{"{'version':'1.0','status':'completed','server_list':[{'server_id':'a','device':[]"
		 "}]}",
		 HC_V_EMPTY, "server a"},
		{"{'version':'1.0','status':'completed','server_list':{}}", HC_V_WRONG_TYPE,
		 "a list"},
		{"{}", HC_V_MISSING_FIELD, "version"},
		{"7", HC_V_WRONG_TYPE, "object"},
		{"{'status':'completed','group_count':'1','group_list':[]}", HC_V_BAD_VERSION,
		 "group_list"},
		{"{'status':'initializing','version':'9'}", HC_V_NOT_READY, "initializing"},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ck_assert_int_eq(judge(TABLE, t[i].text), HC_FILE_REFUSED);
		ck_assert_msg(v.kind == t[i].kind, "%s: %s", t[i].text, v.message);
		ck_assert_msg(strstr(v.message, t[i].word) != NULL, "%s: %s", t[i].text, v.message);
	}
}
END_TEST

START_TEST(faults_of_1_2)
{
	static const struct edit e[] = {
		{"'super_device_id':'11'", "'super_device_id':'10'", HC_V_DUPLICATE_SUPER_DEVICE,
		 "server_list[0].device[1].super_device_id", "super pod p0"},
		{"'super_device_id':'11',", "", HC_V_MISSING_SUPER_DEVICE,
		 "server_list[0].device[1].super_device_id", "rank 1"},
		{"'super_device_id':'11'", "'super_device_id':''", HC_V_MISSING_SUPER_DEVICE, NULL,
		 "rank 1"},
		{"'super_device_id':'11'", "'super_device_id':'0xb'", HC_V_BAD_NUMBER, NULL, "0xb"},
		{"'super_device_id':'11'", "'super_device_id':'4294967296'", HC_V_OUT_OF_RANGE,
		 NULL, "4294967296"},
		{"[{'server_id':'sc'}]", "[{'server_id':'sx'}]", HC_V_UNKNOWN_SERVER,
		 "super_pod_list[1].server_list[0].server_id", "sx"},
		{"[{'server_id':'sc'}]", "[{'server_id':'sa'}]", HC_V_DUPLICATE_SERVER, NULL,
		 "in super pod p0 already"},
		{",{'server_id':'sb'}", "", HC_V_COUNT_MISMATCH, "server_list[1].server_id",
		 "server sb is in no super pod"},
		{"'p1'", "'p0'", HC_V_DUPLICATE_SERVER, "super_pod_list[1].super_pod_id", "p0"},
		{"'p1'", "''", HC_V_EMPTY, "super_pod_list[1].super_pod_id", "empty"},
		{"[{'server_id':'sa'},{'server_id':'sb'}]},\n  {'super_pod_id':'p1',"
		 "'server_list':[{'server_id':'sc'}]",
		 "[{'server_id':'sa'},{'server_id':'sc'}]},\n  {'super_pod_id':'p1',"
		 "'server_list':[{'server_id':'sb'}]",
		 HC_V_CROSSED_RANKS, "server_list[2].server_id", "sb"},
		{"'backup_device_ip':'10.0.0.2'", "'backup_device_ip':'x'", HC_V_BAD_ADDRESS,
		 "server_list[0].device[0].backup_device_ip", "x"},
		{"'backup_device_port':'16668'", "'backup_device_port':'16666'",
		 HC_V_PORT_USED_TWICE, "server_list[0].device[1].backup_device_ip", "rank 0"},
		{"'super_pod_list':[", "'super_pod_list':7,'x':[", HC_V_WRONG_TYPE,
		 "super_pod_list", "a list"},
	};

	CHECK_EDITS(TABLE, table_12, e);
}
END_TEST

START_TEST(without_pods_or_ids_1_2_is_a_plain_table)
{
	static const struct edit ok[] = {
		{"'super_pod_list'", "'other'", HC_V_NONE, NULL, "4 ranks on 3 servers, IPv4"},
	};
	char *text = strdup(table_12), *next;
	int i;

	CHECK_EDITS(TABLE, table_12, ok);
	for (i = 0; i < 4; i++) {
		next = edited(text, "'super_device_id'", "'ignored'");
		free(text);
		text = next;
	}
	/* four keys of one name are fine, being in four objects */
	ck_assert_msg(!judge(TABLE, text), "%s", v.message);
	ck_assert_str_eq(v.message, "version 1.2, 4 ranks on 3 servers, IPv4");
	free(text);
	let_go();
}
END_TEST

START_TEST(one_super_pod_needs_no_addresses)
{
	static const char text[] =
		"{'version':'1.2','status':'completed','server_list':["
		"{'server_id':'a','device':[{'device_id':'0','super_device_id':'1','rank_id':'0'}]}"
		","
		"{'server_id':'b','device':[{'device_id':'0','super_device_id':'2','rank_id':'1'}]}"
		"],"
		"'super_pod_list':[{'super_pod_id':'p','server_list':[{'server_id':'a'},"
		"{'server_id':'b'}]}]}";
	char *plain = edited(text, "super_pod_list", "x");

	ck_assert_msg(!judge(TABLE, text), "%s", v.message);
	ck_assert_int_eq(judge(TABLE, plain), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_MISSING_ADDRESS);
	free(plain);
}
END_TEST

START_TEST(faults_of_2_0)
{
	static const struct edit e[] = {
		{"'status':'completed',", "", HC_V_NONE, NULL, "2 ranks"},
		{"'status':'completed',", "'detour':'true',", HC_V_NONE, NULL, "2 ranks"},
		{"'status':'completed',", "'detour':'yes',", HC_V_OUT_OF_RANGE, "detour", "yes"},
		{"'rank_count':2", "'rank_count':3", HC_V_COUNT_MISMATCH, "rank_count", "3 and 2"},
		{"'rank_count':2", "'rank_count':'2'", HC_V_WRONG_TYPE, "rank_count",
		 "without quotes"},
		{"'rank_count':2", "'rank_count':-2", HC_V_OUT_OF_RANGE, "rank_count", "-2"},
		{"'rank_count':2", "'rank_count':2e0", HC_V_BAD_NUMBER, "rank_count", "2"},
		{"'rank_count':2", "'rank_count':65537", HC_V_OUT_OF_RANGE, "rank_count", "65537"},
		{"'rank_count':2", "'rank_count':99999999999999999999", HC_V_BAD_NUMBER, "",
		 "too large"},
		{"'rank_count':2,", "", HC_V_MISSING_FIELD, "rank_count", "rank_count"},
		{"'rank_id':1", "'rank_id':0", HC_V_DUPLICATE_RANK, "rank_list[1].rank_id",
		 "rank 0"},
		{"'rank_id':1", "'rank_id':2", HC_V_RANK_GAP, "rank_list[1].rank_id", "rank 1"},
		{"'local_id':1", "'local_id':65", HC_V_OUT_OF_RANGE, "rank_list[1].local_id", "65"},
		{"'local_id':1", "'local_id':64", HC_V_MISSING_FIELD,
		 "rank_list[1].replaced_local_id", "replaced_local_id"},
		{"'local_id':1", "'local_id':64,'replaced_local_id':1", HC_V_NONE, NULL, ""},
		{"'device_id':1", "'device_id':65", HC_V_OUT_OF_RANGE, "rank_list[1].device_id",
		 "0..64"},
		{"'device_port':17001", "'device_port':70000", HC_V_BAD_PORT,
		 "rank_list[0].device_port", "70000"},
		{"'device_port':17001", "'device_port':'17001'", HC_V_WRONG_TYPE, NULL,
		 "without quotes"},
		{"'net_layer':2", "'net_layer':0", HC_V_OUT_OF_RANGE,
		 "rank_list[0].level_list[1].net_layer", "ascend"},
		{"'net_layer':2", "'net_layer':8", HC_V_OUT_OF_RANGE, NULL, "0..7"},
		{"'net_layer':0", "'net_layer':1", HC_V_MISSING_FIELD,
		 "rank_list[0].level_list[0].net_layer", "net_layer 0"},
		{"'TOPO_FILE_DESC'", "'CLOS'", HC_V_OUT_OF_RANGE,
		 "rank_list[0].level_list[0].net_type", "TOPO_FILE_DESC"},
		{"'TOPO_FILE_DESC'", "'MESH'", HC_V_OUT_OF_RANGE, NULL, "MESH"},
		{"'srv-1'", "''", HC_V_EMPTY, "rank_list[0].level_list[0].net_instance_id",
		 "empty"},
		{"'EID'", "'IPV5'", HC_V_OUT_OF_RANGE,
		 "rank_list[0].level_list[0].rank_addr_list[0].addr_type", "IPV5"},
		{"df000001", "df00000", HC_V_BAD_ADDRESS,
		 "rank_list[0].level_list[0].rank_addr_list[0].addr", "32 hex digits"},
		{"df000001", "df00000g", HC_V_BAD_ADDRESS, NULL, "32 hex digits"},
		{"000000000000002000100000df000001", "00000000000000000000000000000000",
		 HC_V_BAD_ADDRESS, NULL, "zero"},
		{"df000002", "DF000001", HC_V_DUPLICATE_ADDRESS,
		 "rank_list[1].level_list[0].rank_addr_list[0].addr", "rank 0"},
		{"'IPV4'", "'IPV6'", HC_V_BAD_ADDRESS, NULL, "IPV6"},
		{"'IPV4','addr':'192.0.2.31'", "'IPV6','addr':'fd00::1'", HC_V_MIXED_FAMILY, NULL,
		 "IPv6"},
		{"'0/1'", "'0-1'", HC_V_BAD_PORT,
		 "rank_list[0].level_list[0].rank_addr_list[0].ports[0]", "0-1"},
		{"'0/1'", "'0/'", HC_V_BAD_PORT, NULL, "die/port"},
		{"'0/1'", "'/1'", HC_V_BAD_PORT, NULL, "die/port"},
		{"'0/1'", "'0/1/2'", HC_V_BAD_PORT, NULL, "die/port"},
		{"'0/1'", "'0/65536'", HC_V_BAD_PORT, NULL, "0/65536"},
		{"'0/1'", "'000000000000000000000000000000000'", HC_V_TOO_LONG, NULL, "33 bytes"},
		{"['0/1']", "[]", HC_V_EMPTY, NULL, "ports"},
		{"['0/1']", "[7]", HC_V_WRONG_TYPE, NULL, "7"},
		{"'ports':['0/1'],'plane_id':'0'", "'plane_id':'0'", HC_V_MISSING_FIELD, NULL,
		 "ports"},
		{"{'addr_type':'IPV4','addr':'192.0.2.31','ports':['0/2']}", "",
		 HC_V_COUNT_MISMATCH, NULL, "equally many"},
		{"'srv-2'", "'srv-1'", HC_V_NONE, NULL, "1 server"},
	};

	CHECK_EDITS(TABLE, table_2, e);
}
END_TEST

START_TEST(several_servers_of_2_0_need_addresses)
{
	static const char text[] =
		"{'version':'2.0','rank_count':2,'rank_list':["
		"{'rank_id':0,'local_id':0,'device_id':0,'level_list':[{'net_layer':0,"
		"'net_instance_id':'a','net_type':'TOPO_FILE_DESC','rank_addr_list':[]}]},"
		"{'rank_id':1,'local_id':1,'device_id':1,'level_list':[{'net_layer':0,"
		"'net_instance_id':'b','net_type':'TOPO_FILE_DESC','rank_addr_list':[]}]}]}";
	char *one = edited(text, "'b'", "'a'"), *same;

	ck_assert_int_eq(judge(TABLE, text), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_MISSING_ADDRESS);
	ck_assert_msg(!judge(TABLE, one), "%s", v.message);
	same = edited(one, "'device_id':1", "'device_id':0");
	ck_assert_int_eq(judge(TABLE, same), HC_FILE_REFUSED);
	ck_assert_int_eq(v.kind, HC_V_DUPLICATE_DEVICE);
	free(one);
	free(same);
}
END_TEST

START_TEST(low_ports_warn_and_the_list_of_warnings_is_bounded)
{
	static const char rank[] = "%s{'device_id':'%d','rank_id':'%d','host_port':'%d'}";
	char text[4096] = "{'version':'1.0','status':'completed','server_list':[\n"
			  "{'server_id':'a','device':[";
	size_t n = strlen(text);
	int i;

	for (i = 0; i < HC_WARNINGS_MAX + 3; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, rank, i ? ",\n" : "", i, i,
				      i + 80);
	snprintf(text + n, sizeof(text) - n, "]}]}");
	ck_assert_msg(!judge(TABLE, text), "%s", v.message);
	ck_assert_uint_eq(v.nwarnings, HC_WARNINGS_MAX);
	ck_assert_uint_eq(v.suppressed, 3);
	ck_assert_int_eq(v.warnings[1].kind, HC_V_LOW_PORT);
	ck_assert_str_eq(v.warnings[1].path, "server_list[0].device[1].host_port");
	ck_assert_uint_eq(v.warnings[1].line, 3);
	ck_assert_ptr_nonnull(strstr(v.warnings[1].message, "81"));
	let_go();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ranktable");
	TCase *t = tcase_create("ranktable");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, files_from_the_field_get_their_verdicts);
	tcase_add_test(t, placeholder_of_rank_5_names_no_other_rank);
	tcase_add_test(t, version_1_0_gives_its_roster);
	tcase_add_test(t, version_1_2_gives_its_roster);
	tcase_add_test(t, version_2_0_takes_servers_from_layer_0_and_the_first_ip);
	tcase_add_test(t, device_ip_may_list_several);
	tcase_add_test(t, one_address_with_two_ports_is_two_places);
	tcase_add_test(t, link_local_with_a_scope_is_taken);
	tcase_add_test(t, faults_of_1_0);
	tcase_add_test(t, whole_faults_of_1_0);
	tcase_add_test(t, faults_of_1_2);
	tcase_add_test(t, without_pods_or_ids_1_2_is_a_plain_table);
	tcase_add_test(t, one_super_pod_needs_no_addresses);
	tcase_add_test(t, faults_of_2_0);
	tcase_add_test(t, several_servers_of_2_0_need_addresses);
	tcase_add_test(t, low_ports_warn_and_the_list_of_warnings_is_bounded);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
