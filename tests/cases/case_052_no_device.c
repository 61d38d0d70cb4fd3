/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 52: the package is installed on a machine without any device.
 *
 * Services of this kind fail there from the first minute, are restarted for ever and turn the
 * monitoring red. This daemon starts, answers, says "0 devices" and how to configure some, warns
 * once, refuses what needs a device as offline, and stops with status 0.
 */
#include <string.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

static struct hc_run run;
static struct hc_node node;

static void begin(void)
{
	hc_node_start(&node, 0, NULL);
}

static void end(void)
{
	hc_node_end(&node); /* fails the test unless the exit status is 0 */
}

START_TEST(it_answers_and_says_how_to_configure)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	ck_assert_uint_eq(s.devices, 0);
	ck_assert_msg(strstr(s.remark, "[device N]") && strstr(s.remark, "topology_file"), "%s",
		      s.remark);
	ck_assert_int_eq(hc_ctl(&run, &node, "device", "list", (char *)NULL), 0);
	ck_assert_int_eq(hc_ctl(&run, &node, "device", "list", "--no-headings", (char *)NULL), 0);
	ck_assert_str_eq(run.out, "");
	hc_ctl(&run, &node, "status", (char *)NULL);
	ck_assert_int_le(run.status, 1); /* well or degraded, neither usage nor "no daemon" */
	ck_assert_ptr_nonnull(strstr(run.out, "[device N]"));
	ck_assert_uint_eq(hc_log_count(&node, "no device is known here"), 1);
}
END_TEST

START_TEST(what_needs_a_device_is_refused_as_offline)
{
	struct hcomm_root_info info;
	struct hcomm_session *s;
	hcomm_domain d;
	uint64_t id;
	int r;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 2000, &d), HCOMM_E_DEVICE_OFFLINE);
	ck_assert_int_eq(hcomm_root_info(s, 2, NULL, &info), 0);
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, 0, NULL, 2000, &d), HCOMM_E_DEVICE_OFFLINE);
	ck_assert_msg(strstr(hcomm_last_error(), "device 0") != NULL, "%s", hcomm_last_error());
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, HCOMM_ANY_DEVICE, NULL, 2000, &d),
			 HCOMM_E_DEVICE_OFFLINE);
	/* a domain for others may be begun anywhere; a device that is not here ends it */
	r = hcomm_create(s, 1, NULL, &id);
	if (!r)
		r = hcomm_add_device(s, id, 0, 0);
	if (!r)
		r = hcomm_activate(s, id, 2000);
	ck_assert_int_eq(r, HCOMM_E_DEVICE_OFFLINE);
	ck_assert_int_eq(hcomm_ping(s, 2000), 0);
	hcomm_close(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, it_answers_and_says_how_to_configure);
	tcase_add_test(t, what_needs_a_device_is_refused_as_offline);
}

int main(void)
{
	return hc_suite_run("case_052_no_device", add, 60);
}
