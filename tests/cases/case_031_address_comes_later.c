/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 31: the daemon starts before its address exists.
 *
 * At boot a bind to the address fails, the unit is restarted a few times and given up. Here the
 * daemon stays up and answers, its status says which address is waited for, and the link is normal
 * within two seconds of the address; also one of IPv6, which is tentative at first.
 */
#include <string.h>

#include "hosts.h"
#include "ranks.h"
#include "suite.h"

static struct hc_hosts h;
static struct hc_run run;

static void remark(const char *text)
{
	hc_ctl(&run, &h.a, "status", (char *)NULL);
	ck_assert_msg(strstr(run.out, text) != NULL, "no '%s' in: %s", text, run.out);
}

START_TEST(the_link_is_normal_soon_after_the_address)
{
	uint64_t since;

	if (!hc_hosts_prepare(&h, "listen_address = 10.71.0.1", NULL))
		return;
	hc_netns_join(h.other, "a0", "10.71.9.1", "b0", "10.71.0.2");
	hc_ip("addr del 10.71.9.1/24 dev a0\nlink set a0 down\n");
	hc_node_run(&h.b);
	hc_node_run(&h.a);
	remark("10.71.0.1 not on this host yet");
	ck_assert(!hc_path_is(&h.a, "hB", "normal"));
	hc_ip("addr add 10.71.0.1/24 dev a0\nlink set a0 up\n");
	since = hc_now_ms();
	hc_path_await(&h.a, "hB", "normal", 2000);
	hc_path_await(&h.b, "hA", "normal", 2000);
	ck_assert_uint_le(hc_now_ms() - since, hc_patience(2000));
	ck_assert(hc_node_logged(&h.a, "10.71.0.1 is on this host now, at a0"));
	hc_ctl(&run, &h.a, "status", (char *)NULL);
	ck_assert_ptr_null(strstr(run.out, "not on this host"));
	ck_assert(hc_node_alive(&h.a));
	ck_assert_uint_eq(h.a.starts, 1);
	hc_hosts_end(&h);
}
END_TEST

START_TEST(a_tentative_address_is_waited_for_too)
{
	/* so that hB is called unreachable for want of a path before the address comes */
	if (!hc_hosts_prepare(&h, "listen_address = fd71::1\nprobe_timeout_ms = 100", NULL))
		return;
	hc_hosts_join(&h);
	hc_ip_in(h.other, "addr add fd71::2/64 dev b0 nodad\n");
	hc_node_run(&h.b);
	hc_node_run(&h.a);
	remark("fd71::1 not on this host yet");
	hc_ip("addr add fd71::1/64 dev a0\n");
	remark("fd71::1 not on this host yet"); /* for a second or two it is no address */
	hc_path_await(&h.a, "hB", "normal", 5000);
	hc_hosts_end(&h);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_link_is_normal_soon_after_the_address);
	tcase_add_test(t, a_tentative_address_is_waited_for_too);
}

int main(void)
{
	return hc_suite_run("case 31", add, 60);
}
