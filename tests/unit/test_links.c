/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of a node, from a made-up sysfs, topology files and sections: which are found, what is
 * known of each and from where, what a later source does to an earlier one, and what is refused.
 */
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ident.h"
#include "links.h"
#include "wire.h"

#define OPEN "tests/cases/open/"

static char dir[256], why[HC_WHY_BYTES];
static struct hc_conf conf;
static struct hc_devices devices;
static struct hc_link_facts found;

static void put(const char *name, const char *text)
{
	char path[700], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

/* A PCI function below `above` ("pci0000:3a/0000:3a:00.0"); speed NULL: it does not say. */
static void put_pci(const char *above, const char *address, const char *class, const char *speed,
		    const char *width)
{
	static const char *const names[] = {"vendor", "device", "class", "current_link_speed",
					    "current_link_width"};
	const char *const texts[] = {"0x19e5\n", "0xd802\n", class, speed, width};
	char name[300], link[300], target[300];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "sys/devices/%s/%s/%s", above, address, names[i]);
		if (texts[i])
			put(name, texts[i]);
	}
	put("sys/bus/pci/devices/.keep", "");
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", dir, address);
	snprintf(target, sizeof(target), "../../../devices/%s/%s", above, address);
	ck_assert_int_eq(symlink(target, link), 0);
}

static void put_bridge(const char *above, const char *address, const char *speed, const char *width)
{
	char name[300];

	put_pci(above, address, "0x060400\n", speed, width);
	snprintf(name, sizeof(name), "sys/devices/%s/%s/device", above, address);
	put(name, "0x0001\n"); /* no accelerator */
}

static void put_chip(const char *above, const char *address, const char *speed, const char *width)
{
	put_pci(above, address, "0x120000\n", speed, width);
}

static int find(const char *text)
{
	struct hc_conf_source src = {.dir = "/nonexistent"};
	struct hc_conf_error err;
	char all[4096], path[300];
	int r;

	snprintf(all, sizeof(all), "sysfs_root = %s/sys\n%s", dir, text);
	put("hcommd.conf", all);
	snprintf(path, sizeof(path), "%s/hcommd.conf", dir);
	src.file = path;
	ck_assert_msg(hc_conf_load(&conf, &src, &err) == HC_CONF_OK, "%s", err.line[0]);
	r = hc_devices_find(&conf, &devices, why, sizeof(why));
	ck_assert_msg(!r, "%s", why);
	return hc_links_find(&conf, &devices, &found, why, sizeof(why));
}

static void must(const char *text)
{
	ck_assert_msg(find(text) == 0, "%s", why);
}

static void forget_links(void)
{
	hc_links_fini(&found);
	hc_devices_fini(&devices);
	hc_conf_fini(&conf);
}

/* One line that has place and text. */
static void refused(const char *text, const char *place, const char *says)
{
	ck_assert_int_eq(find(text), 1);
	ck_assert_msg(strstr(why, place) && strstr(why, says) && !strchr(why, '\n'), "%s", why);
	ck_assert_ptr_null(found.facts);
	forget_links();
}

static const struct hc_link_fact *link_of(uint8_t type, uint32_t a, uint32_t b, uint32_t lane)
{
	const struct hc_link_fact like = {.type = type, .a = a, .b = b, .lane = lane};

	return hc_links_get(&found, &like);
}

/* "mbps source, latency source, vcs source, source" */
static void want(uint8_t type, uint32_t a, uint32_t b, uint32_t lane, const char *facts)
{
	const struct hc_link_fact *l = link_of(type, a, b, lane);
	char text[200];

	ck_assert_msg(l != NULL, "no link %s %u %u.%u", hc_word_link_type(type), a, b, lane);
	snprintf(text, sizeof(text), "%u %s, %u %s, %u %s, %s", l->mbps, l->mbps_source,
		 l->latency_us, l->latency_source, l->vcs, l->vcs_source, l->source);
	ck_assert_str_eq(text, facts);
	ck_assert(l->present);
	ck_assert(l->latency_known == !!strcmp(l->latency_source, "unknown"));
}

static int forget(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void setup(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/hc-links-XXXXXX", base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	memset(&conf, 0, sizeof(conf));
	memset(&devices, 0, sizeof(devices));
	memset(&found, 0, sizeof(found));
}

static void teardown(void)
{
	forget_links();
	nftw(dir, forget, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- shared memory ---- */

START_TEST(shared_memory_is_always_there)
{
	must("");
	ck_assert_uint_eq(found.count, 1);
	want(HC_W_link_type_SHM, HC_NONE, HC_NONE, 0,
	     "20000 default, 0 unknown, 4096 default, default");
}
END_TEST

START_TEST(a_section_says_how_fast_shared_memory_is)
{
	must("[link any any]\nbandwidth_mbps = 90000\nlatency_us = 0\nvirtual_channels = 7\n");
	ck_assert_uint_eq(found.count, 1);
	want(HC_W_link_type_SHM, HC_NONE, HC_NONE, 0, "90000 config, 0 config, 7 config, default");
}
END_TEST

/* ---- PCI ---- */

START_TEST(chips_below_one_switch_are_joined_by_it)
{
	put_bridge("pci0000:3a", "0000:3a:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_bridge("pci0000:3a/0000:3a:00.0", "0000:3b:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_bridge("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0000:3c:00.0", "16.0 GT/s PCIe\n",
		   "16\n");
	put_bridge("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0000:3c:01.0", "8.0 GT/s PCIe\n",
		   "16\n");
	put_chip("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.0",
		 "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0", "0000:3e:00.0",
		 "8.0 GT/s PCIe\n", "16\n");
	put_bridge("pci0000:80", "0000:80:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:80/0000:80:00.0", "0000:81:00.0", "16.0 GT/s PCIe\n", "16\n");
	must("");
	ck_assert_uint_eq(devices.count, 3);
	ck_assert_uint_eq(found.count, 2); /* the third hangs elsewhere */
	want(HC_W_link_type_PCIE, 0, 1, 0, "15753 sysfs, 0 unknown, 64 default, sysfs");
	ck_assert_str_eq(link_of(HC_W_link_type_PCIE, 0, 1, 0)->via, "bridge 0000:3b:00.0, 4 hops");
}
END_TEST

/* The way up from one chip is narrower than both ends. */
START_TEST(the_narrowest_link_on_the_way_counts)
{
	put_bridge("pci0000:3a", "0000:3a:00.0", NULL, NULL);
	put_bridge("pci0000:3a/0000:3a:00.0", "0000:3b:00.0", "8.0 GT/s PCIe\n", "4\n");
	put_chip("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0000:3d:00.0", "16.0 GT/s PCIe\n",
		 "16\n");
	put_chip("pci0000:3a/0000:3a:00.0", "0000:3e:00.0", "16.0 GT/s PCIe\n", "16\n");
	must("virtual_channels = 9\n");
	want(HC_W_link_type_PCIE, 0, 1, 0, "3938 sysfs, 0 unknown, 9 config, sysfs");
}
END_TEST

START_TEST(a_speed_that_cannot_be_read_is_not_known)
{
	put_bridge("pci0000:3a", "0000:3a:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:3a/0000:3a:00.0", "0000:3b:00.0", "Unknown\n", "0\n");
	put_chip("pci0000:3a/0000:3a:00.0", "0000:3c:00.0", "16.0 GT/s PCIe\n", "16\n");
	must("");
	want(HC_W_link_type_PCIE, 0, 1, 0, "0 unknown, 0 unknown, 64 default, sysfs");
}
END_TEST

/* Functions right at the root have nothing above them; plain directories say nothing. */
START_TEST(no_common_bridge_is_no_link)
{
	put_chip("pci0000:00", "0000:00:03.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:00", "0000:00:04.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("nowhere/else", "0000:05:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:00/not-an-address", "0000:06:00.0", "16.0 GT/s PCIe\n", "16\n");
	put("sys/bus/pci/devices/0000:07:00.0/vendor", "0x19e5\n");
	put("sys/bus/pci/devices/0000:07:00.0/device", "0xd802\n");
	put("sys/bus/pci/devices/0000:07:00.0/class", "0x120000\n");
	must("");
	ck_assert_uint_eq(devices.count, 5);
	ck_assert_uint_eq(found.count, 1);
}
END_TEST

START_TEST(a_link_speed_becomes_megabytes)
{
	ck_assert_uint_eq(hc_pci_mbps("2.5 GT/s PCIe", "1"), 250);
	ck_assert_uint_eq(hc_pci_mbps("5.0 GT/s PCIe", "8"), 4000);
	ck_assert_uint_eq(hc_pci_mbps("8 GT/s", "8"), 7876);
	ck_assert_uint_eq(hc_pci_mbps("16.0 GT/s PCIe", "16"), 31507);
	ck_assert_uint_eq(hc_pci_mbps("32.0 GT/s PCIe", "16"), 63015);
	ck_assert_uint_eq(hc_pci_mbps("64.0 GT/s PCIe", "16"), 128000);
	ck_assert_uint_eq(hc_pci_mbps("16.0 GT/s PCIe", "0"), 0);
	ck_assert_uint_eq(hc_pci_mbps("16.0 GT/s PCIe", "255"), 0);
	ck_assert_uint_eq(hc_pci_mbps("16.0 GT/s PCIe", "x16"), 0);
	ck_assert_uint_eq(hc_pci_mbps("16.0 GT/s PCIe", "16 lanes"), 0);
	ck_assert_uint_eq(hc_pci_mbps("17.0 GT/s PCIe", "16"), 0);
	ck_assert_uint_eq(hc_pci_mbps("16.0 MT/s", "16"), 0);
	ck_assert_uint_eq(hc_pci_mbps("-16.0 GT/s", "16"), 0);
	ck_assert_uint_eq(hc_pci_mbps("", ""), 0);
}
END_TEST

/* ---- topology files ---- */

static void with_topology(char *text, size_t size, const char *file, const char *more)
{
	char cwd[512];

	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(text, size, "topology_file = %s/%s\n%s", cwd, file, more);
}

START_TEST(edges_between_devices_are_links_and_edges_to_the_net_are_not)
{
	char text[900];

	with_topology(text, sizeof(text), OPEN "c019-topo-two-peers.json", "");
	must(text);
	ck_assert_uint_eq(found.count, 2);
	want(HC_W_link_type_HCCS, 0, 1, 0, "0 unknown, 0 unknown, 64 default, topology-file");
	ck_assert_str_eq(link_of(HC_W_link_type_HCCS, 0, 1, 0)->via, "port 1/0 to 1/0");
	forget_links();
	with_topology(text, sizeof(text), OPEN "c020-topo-four-peers.json", "");
	must(text);
	ck_assert_uint_eq(found.count, 7);
	ck_assert_str_eq(link_of(HC_W_link_type_HCCS, 2, 3, 0)->via, "port 0/3 to 0/2");
}
END_TEST

static const char ports[] =
	"{\"version\":\"2.0\",\"peer_count\":3,\"peer_list\":[{\"local_id\":0},{\"local_id\":1},"
	"{\"local_id\":2}],\"edge_count\":4,\"edge_list\":["
	"{\"net_layer\":0,\"link_type\":\"PEER2PEER\",\"protocols\":[\"UB_MEM\",\"UB_CTP\"],"
	"\"local_a\":1,\"local_a_ports\":[\"0/1\",\"0/2\"],"
	"\"local_b\":0,\"local_b_ports\":[\"1/1\",\"1/2\"]},"
	"{\"net_layer\":0,\"link_type\":\"PEER2PEER\",\"protocols\":[\"HCCS\"],"
	"\"local_a\":0,\"local_a_ports\":[\"1/7\"],\"local_b\":1,\"local_b_ports\":[\"0/7\"]},"
	"{\"net_layer\":2,\"link_type\":\"PEER2PEER\",\"protocols\":[\"ROCE\"],"
	"\"local_a\":0,\"local_a_ports\":[\"1/3\"],\"local_b\":1,\"local_b_ports\":[\"0/3\"]},"
	"{\"net_layer\":2,\"link_type\":\"PEER2PEER\",\"protocols\":[\"TCP\"],"
	"\"local_a\":0,\"local_a_ports\":[\"d2h\",\"1/4\"],"
	"\"local_b\":2,\"local_b_ports\":[\"0/4\",\"0/5\"]}]}\n";

static void with_ports(const char *more)
{
	char text[900];

	put("topo.json", ports);
	snprintf(text, sizeof(text), "topology_file = %s/topo.json\n%s", dir, more);
	must(text);
}

START_TEST(each_pair_of_ports_is_a_link)
{
	with_ports("");
	ck_assert_uint_eq(found.count, 6);
	ck_assert_str_eq(link_of(HC_W_link_type_HCCS, 0, 1, 0)->via, "port 1/1 to 0/1");
	ck_assert_str_eq(link_of(HC_W_link_type_HCCS, 0, 1, 1)->via, "port 1/2 to 0/2");
	ck_assert_str_eq(link_of(HC_W_link_type_HCCS, 0, 1, 2)->via, "port 1/7 to 0/7");
	ck_assert_ptr_nonnull(link_of(HC_W_link_type_ROCE, 0, 1, 0));
	/* the way to the host is no port between the two */
	ck_assert_str_eq(link_of(HC_W_link_type_ETH, 0, 2, 0)->via, "port 1/4 to 0/4");
}
END_TEST

/* ---- sections ---- */

START_TEST(a_section_completes_all_parallel_links_of_its_type)
{
	with_ports("[link 1 0]\ntype = hcclink\nbandwidth_mbps = 28000\nlatency_us = 2\n"
		   "[link 0 1]\ntype = roce\nvirtual_channels = 5\n"
		   "[link 2 0]\nbandwidth_mbps = 1200\n");
	ck_assert_uint_eq(found.count, 6);
	for (uint32_t lane = 0; lane < 3; lane++)
		want(HC_W_link_type_HCCS, 0, 1, lane,
		     "28000 config, 2 config, 64 default, topology-file");
	want(HC_W_link_type_ROCE, 0, 1, 0, "0 unknown, 0 unknown, 5 config, topology-file");
	want(HC_W_link_type_ETH, 0, 2, 0, "1200 config, 0 unknown, 64 default, topology-file");
}
END_TEST

START_TEST(a_section_replaces_what_sysfs_said)
{
	put_bridge("pci0000:3a", "0000:3a:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:3a/0000:3a:00.0", "0000:3b:00.0", "16.0 GT/s PCIe\n", "16\n");
	put_chip("pci0000:3a/0000:3a:00.0", "0000:3c:00.0", "16.0 GT/s PCIe\n", "16\n");
	must("[link 0 1]\nlatency_us = 4\n");
	want(HC_W_link_type_PCIE, 0, 1, 0, "31507 sysfs, 4 config, 64 default, sysfs");
	forget_links();
	must("[link 0 1]\ntype = pcie\nbandwidth_mbps = 26000\n");
	want(HC_W_link_type_PCIE, 0, 1, 0, "26000 config, 0 unknown, 64 default, sysfs");
}
END_TEST

START_TEST(sections_alone_make_links)
{
	must("[device 0]\nsimulated = yes\n[device 1]\nsimulated = yes\n"
	     "[link 0 1]\ntype = hccs\nbandwidth_mbps = 100\n"
	     "[link 0 1]\ntype = pcie\nbandwidth_mbps = 50\n"
	     "[link 1 0]\ntype = shm\nbandwidth_mbps = 25\n"
	     "[link 0 5]\ntype = sio\n"                       /* a device that may come */
	     "[link node_a:eth0 node_b:eth0]\ntype = eth\n"); /* of two nodes */
	ck_assert_uint_eq(found.count, 5);
	want(HC_W_link_type_HCCS, 0, 1, 0, "100 config, 0 unknown, 64 default, config");
	want(HC_W_link_type_PCIE, 0, 1, 0, "50 config, 0 unknown, 64 default, config");
	want(HC_W_link_type_SHM, 0, 1, 0, "25 config, 0 unknown, 64 default, config");
	want(HC_W_link_type_SIO, 0, 5, 0, "0 unknown, 0 unknown, 64 default, config");
	want(HC_W_link_type_SHM, HC_NONE, HC_NONE, 0,
	     "20000 default, 0 unknown, 4096 default, default");
}
END_TEST

START_TEST(a_section_without_a_type_must_mean_one_kind_of_link)
{
	char text[900];

	refused("[device 0]\n[device 1]\n[link 0 1]\nbandwidth_mbps = 1\n",
		"hcommd.conf:4:", "[link 0 1]: no link between the two was found; wanted a type");
	put("topo.json", ports);
	snprintf(text, sizeof(text), "topology_file = %s/topo.json\n[link 0 1]\nlatency_us = 1\n",
		 dir);
	refused(text, "hcommd.conf:3:",
		"[link 0 1]: there are links of the types hccs and roce; wanted a type");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("links");
	TCase *t = tcase_create("links");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, shared_memory_is_always_there);
	tcase_add_test(t, a_section_says_how_fast_shared_memory_is);
	tcase_add_test(t, chips_below_one_switch_are_joined_by_it);
	tcase_add_test(t, the_narrowest_link_on_the_way_counts);
	tcase_add_test(t, a_speed_that_cannot_be_read_is_not_known);
	tcase_add_test(t, no_common_bridge_is_no_link);
	tcase_add_test(t, a_link_speed_becomes_megabytes);
	tcase_add_test(t, edges_between_devices_are_links_and_edges_to_the_net_are_not);
	tcase_add_test(t, each_pair_of_ports_is_a_link);
	tcase_add_test(t, a_section_completes_all_parallel_links_of_its_type);
	tcase_add_test(t, a_section_replaces_what_sysfs_said);
	tcase_add_test(t, sections_alone_make_links);
	tcase_add_test(t, a_section_without_a_type_must_mean_one_kind_of_link);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
