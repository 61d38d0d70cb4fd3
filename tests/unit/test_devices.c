/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of a node, from a made-up sysfs, a configuration and a topology file: which are found,
 * how they are numbered, where each fact is said to come from, and what is refused.
 */
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "devices.h"
#include "ident.h"

static char dir[256], why[HC_WHY_BYTES];
static struct hc_conf conf;
static struct hc_devices found;

static void put(const char *name, const char *text)
{
	char path[600], *slash;
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

static void put_pci(const char *address, const char *vendor, const char *device, const char *class,
		    const char *numa)
{
	char name[200];

	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/vendor", address);
	put(name, vendor);
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/device", address);
	put(name, device);
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/class", address);
	put(name, class);
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/numa_node", address);
	put(name, numa);
}

static int find(const char *text)
{
	struct hc_conf_source src = {.dir = "/nonexistent"};
	struct hc_conf_error err;
	char all[2048], path[300];

	snprintf(all, sizeof(all), "sysfs_root = %s/sys\n%s", dir, text);
	put("hcommd.conf", all);
	snprintf(path, sizeof(path), "%s/hcommd.conf", dir);
	src.file = path;
	ck_assert_msg(hc_conf_load(&conf, &src, &err) == HC_CONF_OK, "%s", err.line[0]);
	return hc_devices_find(&conf, &found, why, sizeof(why));
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

	snprintf(dir, sizeof(dir), "%s/hc-devices-XXXXXX", base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	memset(&conf, 0, sizeof(conf));
	memset(&found, 0, sizeof(found));
}

static void teardown(void)
{
	hc_devices_fini(&found);
	hc_conf_fini(&conf);
	nftw(dir, forget, 16, FTW_DEPTH | FTW_PHYS);
}

START_TEST(no_device_is_a_state_and_no_error)
{
	ck_assert_int_eq(find(""), 0);
	ck_assert_uint_eq(found.count, 0);
}
END_TEST

START_TEST(accelerators_are_found_in_order_of_their_addresses)
{
	put_pci("0000:c1:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "1\n");
	put_pci("0000:01:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "0\n");
	put_pci("0000:41:00.0", "0x10de\n", "0x2330\n", "0x030200\n", "-1\n");
	put_pci("0000:42:00.0", "0x1234\n", "0x0001\n", "0x120000\n", "0\n");
	put_pci("0000:00:1f.2", "0x8086\n", "0x2922\n", "0x010601\n", "0\n"); /* a disk */
	put_pci("0000:02:00.0", "0x10de\n", "0x1eb8\n", "0x030000\n", "0\n"); /* a screen */
	ck_assert_int_eq(find(""), 0);
	ck_assert_uint_eq(found.count, 4);
	ck_assert_str_eq(found.facts[0].pci, "0000:01:00.0");
	ck_assert_str_eq(found.facts[0].kind, "npu");
	ck_assert_str_eq(found.facts[0].model, "19e5:d802");
	ck_assert_str_eq(found.facts[0].source, "sysfs");
	ck_assert_int_eq(found.facts[0].numa, 0);
	ck_assert(!found.facts[0].simulated);
	ck_assert_str_eq(found.facts[1].kind, "gpu");
	ck_assert_int_eq(found.facts[1].numa, -1);
	ck_assert_str_eq(found.facts[2].pci, "0000:42:00.0");
	ck_assert_str_eq(found.facts[3].pci, "0000:c1:00.0");
	ck_assert_uint_eq(found.facts[3].index, 3);
}
END_TEST

START_TEST(nonsense_in_sysfs_is_not_a_device)
{
	put_pci("0000:01:00.0", "", "0xd802\n", "0x120000\n", "0\n");
	put_pci("0000:02:00.0", "0x19e5\n", "d802 \n", "0x120000\n", "0\n");
	put_pci("0000:03:00.0", "0x19e5\n", "0xd802\n", "0xffffffffffff\n", "0\n");
	put("sys/bus/pci/devices/not-an-address/vendor", "0x19e5\n");
	put("sys/bus/pci/devices/0000:04:00.0/vendor", "0x19e5\n"); /* the rest is missing */
	put_pci("0000:05:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "many\n");
	ck_assert_int_eq(find(""), 0);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_str_eq(found.facts[0].pci, "0000:05:00.0");
	ck_assert_int_eq(found.facts[0].numa, -1);
}
END_TEST

START_TEST(sections_pin_and_complete_what_was_found)
{
	put_pci("0000:01:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "0\n");
	put_pci("0000:02:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "0\n");
	ck_assert_int_eq(find("[device 0]\npci = 0000:02:00.0\naddress = 10.0.0.7\nport = eth1\n"),
			 0);
	ck_assert_uint_eq(found.count, 2);
	ck_assert_str_eq(found.facts[0].pci, "0000:02:00.0");
	ck_assert_str_eq(found.facts[0].source, "sysfs");
	ck_assert_str_eq(found.facts[0].addr_source, "config");
	ck_assert_uint_eq(found.facts[0].addr.family, 4);
	ck_assert_mem_eq(found.facts[0].addr.bytes, "\x0a\x00\x00\x07", 4);
	ck_assert_str_eq(found.facts[0].port, "eth1");
	ck_assert_str_eq(found.facts[1].pci, "0000:01:00.0");
	ck_assert_uint_eq(found.facts[1].index, 1);
	ck_assert_uint_eq(found.facts[1].addr.family, 0);
}
END_TEST

START_TEST(simulated_devices_are_shown_as_such)
{
	ck_assert_int_eq(find("[device 0]\nsimulated = yes\nkind = npu\n"
			      "[device 3]\nsimulated = yes\n"),
			 0);
	ck_assert_uint_eq(found.count, 2);
	ck_assert_uint_eq(found.simulated, 2);
	ck_assert(found.facts[0].simulated);
	ck_assert_str_eq(found.facts[0].kind, "npu");
	ck_assert_str_eq(found.facts[0].source, "config");
	ck_assert_uint_eq(found.facts[1].index, 3);
	ck_assert_ptr_nonnull(hc_devices_get(&found, 3));
	ck_assert_ptr_null(hc_devices_get(&found, 1));
}
END_TEST

static const char four_peers[] =
	"{\"version\":\"2.0\",\"peer_count\":4,\"peer_list\":[{\"local_id\":0},{\"local_id\":1},"
	"{\"local_id\":2},{\"local_id\":3}],\"edge_count\":0,\"edge_list\":[]}\n";

static int find_with_topology(const char *more)
{
	char text[900];

	put("topo.json", four_peers);
	snprintf(text, sizeof(text), "topology_file = %s/topo.json\n%s", dir, more);
	return find(text);
}

START_TEST(a_topology_gives_the_devices_that_nothing_else_gives)
{
	ck_assert_msg(find_with_topology("") == 0, "%s", why);
	ck_assert_uint_eq(found.count, 4);
	ck_assert_str_eq(found.facts[3].source, "topology-file");
	ck_assert_uint_eq(found.facts[3].index, 3);
}
END_TEST

START_TEST(a_topology_of_another_machine_is_refused_with_its_origin)
{
	char path[300];

	put_pci("0000:01:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "0\n");
	put_pci("0000:02:00.0", "0x19e5\n", "0xd802\n", "0x120000\n", "0\n");
	ck_assert_int_eq(find_with_topology(""), 1);
	ck_assert_ptr_nonnull(strstr(why, "4 peers"));
	ck_assert_ptr_nonnull(strstr(why, "2 devices"));
	snprintf(path, sizeof(path), "%s/topo.json", dir);
	ck_assert_ptr_nonnull(strstr(why, path));
	snprintf(path, sizeof(path), "%s/hcommd.conf:2", dir);
	ck_assert_ptr_nonnull(strstr(why, path));
}
END_TEST

START_TEST(a_missing_topology_is_refused_with_its_origin)
{
	char text[600];

	snprintf(text, sizeof(text), "topology_file = %s/none.json\n", dir);
	ck_assert_int_eq(find(text), 1);
	ck_assert_ptr_nonnull(strstr(why, "none.json"));
	ck_assert_ptr_nonnull(strstr(why, "hcommd.conf:2"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("devices");
	TCase *t = tcase_create("devices");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, no_device_is_a_state_and_no_error);
	tcase_add_test(t, accelerators_are_found_in_order_of_their_addresses);
	tcase_add_test(t, nonsense_in_sysfs_is_not_a_device);
	tcase_add_test(t, sections_pin_and_complete_what_was_found);
	tcase_add_test(t, simulated_devices_are_shown_as_such);
	tcase_add_test(t, a_topology_gives_the_devices_that_nothing_else_gives);
	tcase_add_test(t, a_topology_of_another_machine_is_refused_with_its_origin);
	tcase_add_test(t, a_missing_topology_is_refused_with_its_origin);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
