/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configuration file: its names, lines and sections, and everything that can be wrong there.
 *
 * The parser below conf/ would cut a long line or section name, join an indented line to the one
 * before and let the second of two equal names win, all without a word. Each of these is tried
 * here at the length where it would begin, and each refusal must name the line.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "confdir.h"

/* ---- names, lines ---- */

START_TEST(an_unknown_name_is_refused_with_the_nearest)
{
	const char *sets[] = {"heartbeat_interval=1", NULL};

	expect_refused("\n\nconect_timeout_s = 5\n",
		       "@/hcommd.conf:3: unknown option 'conect_timeout_s'; the nearest known is "
		       "'connect_timeout_s'");
	expect_refused("lisetn_port = 5\n", "@/hcommd.conf:1: unknown option 'lisetn_port'; the "
					    "nearest known is 'listen_port'");
	expect_refused("lsiten_prot = 5\n", "@/hcommd.conf:1: unknown option 'lsiten_prot'; the "
					    "nearest known is 'listen_port'");
	expect_refused("xxxket = 5\n", "@/hcommd.conf:1: unknown option 'xxxket'; hcommd.conf(5) "
				       "lists them all"); /* half of it differs: no guess */
	expect_refused("Cluster = a\n", "@/hcommd.conf:1: unknown option 'Cluster'; the nearest "
					"known is 'cluster'");
	expect_refused("nothing_like_it_at_all = 1\n",
		       "@/hcommd.conf:1: unknown option 'nothing_like_it_at_all'; hcommd.conf(5) "
		       "lists them all");
	expect_refused("= 1\n",
		       "@/hcommd.conf:1: unknown option ''; hcommd.conf(5) lists them all");
	put("hcommd.conf", "");
	ck_assert_int_eq(load(NULL, sets), HC_CONF_REFUSED);
	expect_error(0, "command line: unknown option 'heartbeat_interval'; the nearest known is "
			"'heartbeat_interval_ms'");
}
END_TEST

START_TEST(an_option_of_the_wrong_section_says_where_it_goes)
{
	expect_refused("[node a]\naddress = 10.0.0.1\nlisten_port = 5\n",
		       "@/hcommd.conf:3: option 'listen_port' in [node a]; wanted above the first "
		       "section");
	expect_refused("[node a]\nadress = 10.0.0.1\naddress = 10.0.0.1\n",
		       "@/hcommd.conf:2: unknown option 'adress' in [node a]; the nearest known is "
		       "'address'");
}
END_TEST

START_TEST(what_is_given_twice_names_the_first_place)
{
	expect_refused("aging_s = 5\n# no\naging_s = 5\n",
		       "@/hcommd.conf:3: aging_s is given again; first at @/hcommd.conf:1");
	expect_refused("[node a]\naddress = 10.0.0.1\naddress = 10.0.0.1\n",
		       "@/hcommd.conf:3: address is given again; first at @/hcommd.conf:2");
	expect_refused("[node a]\naddress = 10.0.0.1\n[device 1]\n[node a]\naddress = 10.0.0.2\n",
		       "@/hcommd.conf:4: section [node a] is given again; first at "
		       "@/hcommd.conf:1");
	expect_refused("[link a b]\n[link b a]\n", "@/hcommd.conf:2: section [link b a] is given "
						   "again; first at @/hcommd.conf:1");
	expect_refused("[link 0 1]\ntype = hccs\n[link 0 1]\ntype = pcie\n[link 1 0]\n"
		       "latency_us = 1\ntype = nvlink\n",
		       "@/hcommd.conf:5: section [link 1 0] of the same type is given again; first "
		       "at @/hcommd.conf:1");
	expect_refused("[link any any]\n[link any any]\ntype = shm\n",
		       "@/hcommd.conf:2: section [link any any] of the same type is given again; "
		       "first at @/hcommd.conf:1");
}
END_TEST

START_TEST(a_line_that_says_nothing_is_refused)
{
	expect_refused("aging_s = 5\nnonsense\n",
		       "@/hcommd.conf:2: 'nonsense' is not NAME = VALUE");
	expect_refused("aging_s ; = 5\n", "@/hcommd.conf:1: 'aging_s ; = 5' is not NAME = VALUE");
	expect_refused("nonsense", "@/hcommd.conf:1: 'nonsense' is not NAME = VALUE");
}
END_TEST

START_TEST(an_indented_line_is_a_line_of_its_own)
{
	expect_loads("  aging_s = 7\n\tgrant_ttl_s = 8\n");
	ck_assert_uint_eq(conf.aging_s, 7);
	ck_assert_uint_eq(conf.grant_ttl_s, 8);
	expect_refused("key_file = /a\n  /b\n", "@/hcommd.conf:2: '/b' is not NAME = VALUE");
}
END_TEST

START_TEST(files_of_other_editors_are_read)
{
	expect_loads("\xef\xbb\xbf"
		     "aging_s = 7\r\n; remark \xc3\xa9\r\n\r\n[node a]\r\naddress = 10.0.0.1\r\n");
	ck_assert_uint_eq(conf.aging_s, 7);
	ck_assert_str_eq(conf.nodes[0].address, "10.0.0.1");
	expect_loads("\xef\xbb\xbf[device 1]\n");
	ck_assert_uint_eq(conf.ndevices, 1);
	expect_loads("aging_s: 9 ; as other programs write it");
	ck_assert_uint_eq(conf.aging_s, 9);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
	static const char nul[] = "aging_s = 5\0"
				  "0\ngrant_ttl_s = 5\n";
	static const char wide[] = "\xff\xfe"
				   "a\0g\0i\0n\0g\0";

	put_bytes("hcommd.conf", nul, sizeof(nul) - 1);
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf:1: the line holds a byte 0x00; wanted plain text");
	ck_assert_uint_eq(err.count, 1);
	put_bytes("hcommd.conf", wide, sizeof(wide) - 1);
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf:1: the line holds a byte 0x00; wanted plain text");
	expect_refused("# a comment\x1b[31m\n",
		       "@/hcommd.conf:1: the line holds a byte 0x1b; wanted plain text");
}
END_TEST

START_TEST(a_line_is_whole_or_refused)
{
	static char text[HC_CONF_LINE_MAX + 64];
	char want[HC_CONF_VALUE_MAX];

	/* longer than the line buffer of the parser below, with a remark behind it */
	memset(want, 'p', sizeof(want));
	want[0] = '/';
	want[1023] = '\0';
	snprintf(text, sizeof(text), "key_file = %s ; remark = no\naging_s = 7\n", want);
	expect_loads(text);
	ck_assert_str_eq(conf.key_file, want);
	ck_assert_uint_eq(conf.aging_s, 7);
	/* every length around that buffer's end */
	for (size_t len = 170; len < 215; len++) {
		want[len] = '\0';
		snprintf(text, sizeof(text), "key_file = %s\naging_s = 7\n", want);
		want[len] = 'p';
		expect_loads(text);
		ck_assert_uint_eq(strlen(conf.key_file), len);
		ck_assert_uint_eq(conf.aging_s, 7);
	}
	memset(text, ' ', sizeof(text));
	memcpy(text, "aging_s = 5", 11);
	strcpy(text + HC_CONF_LINE_MAX, "\n");
	expect_loads(text);
	strcpy(text + HC_CONF_LINE_MAX, " \n");
	expect_refused(text, "@/hcommd.conf:1: the line is 2049 bytes long; wanted at most 2048");
}
END_TEST

START_TEST(a_file_without_end_is_refused)
{
	char *text = malloc(HC_CONF_FILE_BYTES + 16);

	ck_assert_ptr_nonnull(text);
	memset(text, '\n', HC_CONF_FILE_BYTES + 1);
	put_bytes("hcommd.conf", text, HC_CONF_FILE_BYTES);
	ck_assert_int_eq(load(NULL, NULL), 0);
	put_bytes("hcommd.conf", text, HC_CONF_FILE_BYTES + 1);
	free(text);
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf:1048577: the file is longer than 1048576 bytes");
}
END_TEST

START_TEST(ten_faults_are_told_in_order_and_the_rest_counted)
{
	char text[1024] = "";

	for (int i = 0; i < 13; i++)
		strcat(text, i % 2 ? "xxxxxxxx = 1\n" : "yyyyyyyy\n");
	ck_assert_int_eq(load_text(text), HC_CONF_REFUSED);
	ck_assert_uint_eq(err.count, 10);
	ck_assert_uint_eq(err.more, 3);
	expect_error(0, "@/hcommd.conf:1: 'yyyyyyyy' is not NAME = VALUE");
	expect_error(9, "@/hcommd.conf:10: unknown option 'xxxxxxxx'; hcommd.conf(5) lists them "
			"all");
	ck_assert_uint_eq(conf.nfiles, 0); /* nothing half-read stays */
}
END_TEST

/* ---- sections ---- */

START_TEST(sections_carry_their_options_and_origins)
{
	char origin[HC_CONF_ORIGIN_MAX], want[512];

	expect_loads("[node worker-1]\naddress = 10.0.0.1:80 fd00::1\n[ node  10.0.0.9 ] # remark\n"
		     "address = 10.0.0.9\n"
		     "[device 3]\nkind = npu\npci = 0000:3b:00.0\nnuma = 1\nsimulated = yes\n"
		     "[device 0]\n[link 0 3]\ntype = nvlink\nbandwidth_mbps = 25000\n");
	ck_assert_uint_eq(conf.nnodes, 2);
	ck_assert_str_eq(conf.nodes[0].name, "worker-1");
	ck_assert_str_eq(conf.nodes[0].address, "10.0.0.1:80, fd00::1");
	ck_assert_str_eq(conf.nodes[1].name, "10.0.0.9");
	ck_assert_uint_eq(conf.ndevices, 2);
	ck_assert_uint_eq(conf.devices[0].index, 3);
	ck_assert_uint_eq(conf.devices[0].kind, HC_CONF_kind_npu);
	ck_assert_str_eq(conf.devices[0].pci, "0000:3b:00.0");
	ck_assert(conf.devices[0].simulated);
	ck_assert(!hc_conf_is_set(&conf.devices[1].origin[HC_OPT_DEVICE_numa]));
	ck_assert_uint_eq(conf.links[0].type, HC_CONF_type_hccs); /* nvlink is another word */
	ck_assert(!hc_conf_is_set(&conf.links[0].origin[HC_OPT_LINK_latency_us]));
	hc_conf_origin_text(&conf, hc_opt_find(HC_CONF_LINK, "type"),
			    &conf.links[0].origin[HC_OPT_LINK_type], origin, sizeof(origin));
	expand("@/hcommd.conf:12", want, sizeof(want));
	ck_assert_str_eq(origin, want);
}
END_TEST

START_TEST(names_of_64_bytes_stay_apart)
{
	/* they differ in the last byte only, past what the parser below keeps of a section */
	char a[65], b[65], text[512];

	memset(a, 'n', 64);
	a[64] = '\0';
	memcpy(b, a, 65);
	b[63] = 'm';
	snprintf(text, sizeof(text),
		 "[node %s]\naddress = 10.0.0.1\n[node %s]\naddress = 10.0.0.2\n[link %s %s]\n", a,
		 b, a, b);
	expect_loads(text);
	ck_assert_uint_eq(conf.nnodes, 2);
	ck_assert_str_eq(conf.nodes[1].name, b);
	ck_assert_str_eq(conf.nodes[1].address, "10.0.0.2");
	ck_assert_str_eq(conf.links[0].b, b);
	snprintf(text, sizeof(text), "[node %sx]\naddress = 10.0.0.1\n", a);
	ck_assert_int_eq(load_text(text), HC_CONF_REFUSED);
	ck_assert_ptr_nonnull(strstr(err.line[0], "wanted names of at most 64 letters"));
	ck_assert_uint_eq(err.count, 1); /* the options of a refused section say nothing more */
}
END_TEST

START_TEST(a_later_file_adds_to_a_section)
{
	put("hcommd.conf", "[device 1]\nnuma = 0\nport = eth0\n");
	mkdir(path_of("conf.d"), 0700);
	put("conf.d/a.conf", "[device 1]\nnuma = 1\n");
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert_uint_eq(conf.ndevices, 1);
	ck_assert_uint_eq(conf.devices[0].numa, 1);
	ck_assert_str_eq(conf.devices[0].port, "eth0");
}
END_TEST

START_TEST(links_of_different_types_between_the_same_two_are_apart)
{
	enum hc_conf_link_type type;

	put("hcommd.conf", "[link 0 1]\ntype = hccs\nbandwidth_mbps = 1\n[link 1 0]\n"
			   "type = pcie\nbandwidth_mbps = 2\n[link 0 1]\nlatency_us = 3\n"
			   "[link any any]\nbandwidth_mbps = 4\n");
	mkdir(path_of("conf.d"), 0700);
	put("conf.d/a.conf", "[link any any]\nvirtual_channels = 5\n[link 0 1]\ntype = pcie\n"
			     "bandwidth_mbps = 6\n[link 0 1]\ntype = sio\n");
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert_uint_eq(conf.nlinks, 5);
	ck_assert_uint_eq(conf.links[0].bandwidth_mbps, 1);
	ck_assert_uint_eq(conf.links[1].type, HC_CONF_type_pcie); /* the later file adds to it */
	ck_assert_uint_eq(conf.links[1].bandwidth_mbps, 6);
	ck_assert_uint_eq(conf.links[1].at.line, 3);
	ck_assert(!hc_conf_link_type(&conf.links[2], &type));
	ck_assert(hc_conf_link_is_any(&conf.links[3]));
	ck_assert(hc_conf_link_type(&conf.links[3], &type) && type == HC_CONF_type_shm);
	ck_assert_uint_eq(conf.links[3].bandwidth_mbps, 4);
	ck_assert_uint_eq(conf.links[3].virtual_channels, 5);
	ck_assert_uint_eq(conf.links[4].type, HC_CONF_type_sio);
}
END_TEST

START_TEST(a_bad_section_is_refused_and_its_options_skipped)
{
	expect_refused("[nod a]\naddress = x\n", "@/hcommd.conf:1: unknown section '[nod a]'; "
						 "wanted [node NAME], [device N] or [link A B]");
	expect_refused("[node a\naddress = x\n", "@/hcommd.conf:1: '[node a' is not a section; "
						 "wanted [node NAME], [device N] or [link A B]");
	expect_refused("[node a] b\n", "@/hcommd.conf:1: '[node a] b' is not a section; wanted "
				       "[node NAME], [device N] or [link A B]");
	expect_refused("[node]\n", "@/hcommd.conf:1: unknown section '[node]'; wanted [node NAME], "
				   "[device N] or [link A B]");
	expect_refused("[link a b c]\n", "@/hcommd.conf:1: unknown section '[link a b c]'; wanted "
					 "[node NAME], [device N] or [link A B]");
	expect_refused("[]\n", "@/hcommd.conf:1: unknown section '[]'; wanted [node NAME], "
			       "[device N] or [link A B]");
	expect_refused("[device 1024]\n",
		       "@/hcommd.conf:1: [device '1024']: wanted a number 0..1023");
	expect_refused("[device -1]\n", "@/hcommd.conf:1: [device '-1']: wanted a number 0..1023");
	expect_refused("[link a a]\n",
		       "@/hcommd.conf:1: [link a a] joins 'a' to itself; wanted two ends");
	expect_refused("[link any 1]\n", "@/hcommd.conf:1: [link any 1] has 'any' at one end; "
					 "wanted [link any any], or two ends");
	expect_refused(
		"[link 0 eth0]\n",
		"@/hcommd.conf:1: [link 0 eth0] joins a device number and a name; wanted two "
		"device numbers 0..1023 or two ports");
	expect_refused(
		"[link 0 1024]\n",
		"@/hcommd.conf:1: [link 0 1024] joins a device number and a name; wanted two "
		"device numbers 0..1023 or two ports");
	expect_refused("[link any any]\ntype = hccs\n",
		       "@/hcommd.conf:2: the type of [link any any] is shm");
	expect_refused("\n[node a]\n", "@/hcommd.conf:2: section [node a] has no address");
	expect_refused("[device 1]\npci = 3b:00.0\n",
		       "@/hcommd.conf:2: pci: '3b:00.0' is not a PCI address; wanted "
		       "DOMAIN:BUS:DEVICE.FUNCTION in hex");
}
END_TEST

START_TEST(the_number_of_sections_is_bounded)
{
	FILE *f = fopen(path_of("hcommd.conf"), "w");

	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < HC_CONF_DEVICES_MAX; i++)
		fprintf(f, "[device %d]\n", i);
	for (int i = 0; i < HC_CONF_NODES_MAX; i++)
		fprintf(f, "[node n%d]\naddress = 10.0.0.1\n", i);
	fflush(f);
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert_uint_eq(conf.ndevices, HC_CONF_DEVICES_MAX);
	ck_assert_str_eq(conf.nodes[HC_CONF_NODES_MAX - 1].name, "n4095");
	fprintf(f, "[node more]\naddress = 10.0.0.1\n");
	fclose(f);
	ck_assert_int_eq(load(NULL, NULL), HC_CONF_REFUSED);
	expect_error(0, "@/hcommd.conf:9217: section [node more] is one too many; wanted at most "
			"4096");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conffile");
	TCase *t = tcase_create("conffile");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, conf_setup, conf_teardown);
	tcase_add_test(t, an_unknown_name_is_refused_with_the_nearest);
	tcase_add_test(t, an_option_of_the_wrong_section_says_where_it_goes);
	tcase_add_test(t, what_is_given_twice_names_the_first_place);
	tcase_add_test(t, a_line_that_says_nothing_is_refused);
	tcase_add_test(t, an_indented_line_is_a_line_of_its_own);
	tcase_add_test(t, files_of_other_editors_are_read);
	tcase_add_test(t, bytes_that_are_no_text_are_refused);
	tcase_add_test(t, a_line_is_whole_or_refused);
	tcase_add_test(t, a_file_without_end_is_refused);
	tcase_add_test(t, ten_faults_are_told_in_order_and_the_rest_counted);
	tcase_add_test(t, sections_carry_their_options_and_origins);
	tcase_add_test(t, names_of_64_bytes_stay_apart);
	tcase_add_test(t, a_later_file_adds_to_a_section);
	tcase_add_test(t, links_of_different_types_between_the_same_two_are_apart);
	tcase_add_test(t, a_bad_section_is_refused_and_its_options_skipped);
	tcase_add_test(t, the_number_of_sections_is_bounded);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
