/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network ports and routes, in a network namespace of this process: what is fed at the start, what
 * of changes, and that what does not matter costs nothing.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "netif.h"
#include "netns.h"
#include "suite.h"

static struct event_base *base;
static struct hc_netif *netif;
static struct hc_conf conf;
static struct hc_port_fact facts[64];
static unsigned nfacts, gone, routes, strangers;
static struct hc_route_fact answer;
static bool answered;
static char why[1400];

static struct hc_port_fact *fact_of(uint32_t index)
{
	unsigned i;

	for (i = 0; i < nfacts; i++)
		if (facts[i].index == index)
			return &facts[i];
	ck_assert_uint_lt(nfacts, 64);
	return &facts[nfacts++];
}

static void on_event(void *arg, const struct hc_event *ev)
{
	(void)arg;
	if (ev->kind == HC_EV_ROUTES) {
		routes++;
	} else if (ev->kind == HC_EV_ROUTE) {
		answer = *ev->u.route;
		answered = true;
	} else {
		ck_assert_int_eq(ev->kind, HC_EV_PORT_FACT);
		strangers += ev->u.port->name[0] == 'c' || ev->u.port->name[0] == 'd';
		*fact_of(ev->u.port->index) = *ev->u.port;
		if (ev->u.port->present)
			return;
		gone++;
		*fact_of(ev->u.port->index) = facts[nfacts - 1];
		nfacts--;
	}
}

/* The port of that name that is present, or NULL. */
static const struct hc_port_fact *port(const char *name)
{
	unsigned i;

	for (i = 0; i < nfacts; i++)
		if (!strcmp(facts[i].name, name))
			return &facts[i];
	return NULL;
}

static const struct hc_port_addr *addr(const char *name, const char *text)
{
	const struct hc_port_fact *p = port(name);
	char buf[HC_ADDR_TEXT_MAX];
	uint32_t i;

	for (i = 0; p && i < p->naddrs; i++)
		if (!strncmp(hc_addr_text(&p->addrs[i].addr, buf), text, strlen(text)))
			return &p->addrs[i];
	return NULL;
}

static void open_netif(const char *interfaces, const char *addresses)
{
	struct hc_netif_args args = {.conf = &conf, .feed = on_event};

	memset(&conf, 0, sizeof(conf));
	snprintf(conf.listen_interface, sizeof(conf.listen_interface), "%s", interfaces);
	snprintf(conf.listen_address, sizeof(conf.listen_address), "%s", addresses);
	nfacts = gone = routes = strangers = 0;
	base = event_base_new();
	args.base = base;
	ck_assert_int_eq(hc_netif_new(&args, &netif, why, sizeof(why)), 0);
	ck_assert_int_eq(hc_netif_start(netif), 0);
}

static void close_netif(void)
{
	hc_netif_free(netif);
	event_base_free(base);
}

/* Feed what the kernel tells until `cond`. */
struct wait {
	bool (*cond)(const char *arg);
	const char *arg;
};
static bool turn(void *ctx)
{
	struct wait *w = ctx;

	event_base_loop(base, EVLOOP_NONBLOCK);
	return w->cond(w->arg);
}
static void until(const char *what, bool (*cond)(const char *), const char *arg)
{
	struct wait w = {cond, arg};

	hc_await(what, turn, &w, 5000);
}
static bool is_here(const char *name)
{
	return port(name) != NULL;
}
static bool is_gone(const char *name)
{
	return !port(name);
}
static bool is_answered(const char *unused)
{
	(void)unused;
	return answered;
}

static const struct hc_route_fact *ask(const char *text)
{
	static uint32_t serial;
	struct hc_addr to = {.family = strchr(text, ':') ? 6 : 4};

	ck_assert_int_eq(inet_pton(to.family == 6 ? AF_INET6 : AF_INET, text, to.bytes), 1);
	answered = false;
	hc_netif_ask(netif, ++serial, &to);
	ck_assert(!answered); /* not inside of the step that asks */
	until("an answer", is_answered, NULL);
	ck_assert_uint_eq(answer.ask, serial);
	return &answer;
}

static const char *local_text(void)
{
	static char buf[HC_ADDR_TEXT_MAX];

	return hc_addr_text(&answer.local, buf);
}

static void veth(const char *name, const char *address)
{
	hc_ip("link add %s type veth peer name p-%s\naddr add %s dev %s\nlink set %s up\n"
	      "link set p-%s up\n",
	      name, name, address, name, name, name);
}

/* ---- stories ---- */

START_TEST(what_is_here_is_told_with_its_kind)
{
	const struct hc_port_fact *p;

	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	hc_ip("link add docker0 type bridge\naddr add 172.17.0.1/16 dev docker0\n"
	      "link add v0 type vxlan id 5 dstport 4789\n"
	      "link add slave type veth peer name p-slave\nlink set slave master docker0\n"
	      "link set a0 mtu 9000\n");
	open_netif("", "");
	p = port("a0");
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(p->kind, HC_W_port_kind_VIRTUAL);
	ck_assert(p->up && p->carrier && p->present);
	ck_assert_uint_eq(p->mtu, 9000);
	ck_assert_uint_eq(p->mbps, 1250); /* what a veth says of itself: 10 Gbit/s */
	ck_assert_int_eq(p->wish, PORT_WISH_NONE);
	ck_assert_uint_eq(addr("a0", "10.71.0.1")->prefix, 24);
	ck_assert(!addr("a0", "10.71.0.1")->unwished);
	ck_assert_int_eq(port("docker0")->kind, HC_W_port_kind_BRIDGE);
	ck_assert_int_eq(port("lo")->kind, HC_W_port_kind_LOOPBACK);
	ck_assert_int_eq(port("v0")->kind, HC_W_port_kind_TUNNEL);
	ck_assert(!port("v0")->up); /* told, so that people read why it is not used */
	ck_assert_ptr_null(port("slave"));
	close_netif();
}
END_TEST

START_TEST(an_interface_may_come_late)
{
	if (!hc_netns_enter())
		return;
	open_netif("", "");
	ck_assert_ptr_null(port("a0"));
	veth("a0", "10.71.0.1/24");
	until("the port", is_here, "a0");
	ck_assert_ptr_nonnull(addr("a0", "10.71.0.1"));
	ck_assert_uint_ge(routes, 1);
	ck_assert_ptr_null(port("p-a0")); /* only link-local: it came late and is of no use */
	hc_ip("link del a0\n");
	until("its end", is_gone, "a0");
	ck_assert_uint_eq(gone, 1);
	close_netif();
}
END_TEST

static bool mtu_is_1400(const char *name)
{
	return port(name) && port(name)->mtu == 1400;
}
static bool no_carrier(const char *name)
{
	return port(name) && port(name)->up && !port(name)->carrier;
}
static bool is_down(const char *name)
{
	return port(name) && !port(name)->up;
}
static bool has_no_address(const char *name)
{
	return port(name) && !addr(name, "10.");
}
static bool has_address(const char *name)
{
	return port(name) && addr(name, "10.");
}

START_TEST(changes_of_a_port_are_told)
{
	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("", "");
	hc_ip("link set a0 mtu 1400\n");
	until("the mtu", mtu_is_1400, "a0");
	hc_ip("link set p-a0 down\n");
	until("the carrier", no_carrier, "a0");
	hc_ip("link set a0 down\n");
	until("down", is_down, "a0");
	hc_ip("addr del 10.71.0.1/24 dev a0\n");
	until("no address", has_no_address, "a0");
	hc_ip("addr add 10.71.0.9/24 dev a0\nlink set a0 name b0\n");
	until("another name", has_address, "b0");
	ck_assert_ptr_null(port("a0"));
	ck_assert_uint_eq(gone, 0); /* it is the same one */
	close_netif();
}
END_TEST

static bool is_tentative(const char *name)
{
	return addr(name, "fd00::1") && addr(name, "fd00::1")->tentative;
}
static bool is_ready(const char *name)
{
	return addr(name, "fd00::1") && !addr(name, "fd00::1")->tentative;
}

START_TEST(an_ipv6_address_is_tentative_first)
{
	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("", "fd00::1");
	hc_netif_missing(netif, why, sizeof(why));
	ck_assert_str_eq(why, "fd00::1 not on this host yet");
	hc_ip("addr add fd00::1/64 dev a0\n");
	until("the address", is_tentative, "a0");
	hc_netif_missing(netif, why, sizeof(why));
	ck_assert_str_eq(why, "fd00::1 not on this host yet");
	until("its use", is_ready, "a0");
	hc_netif_missing(netif, why, sizeof(why));
	ck_assert_str_eq(why, "");
	ck_assert_int_eq(port("a0")->wish, PORT_WISH_NAMED);
	close_netif();
}
END_TEST

static uint32_t old_index;
static bool is_another(const char *name)
{
	const struct hc_port_fact *p = port(name);

	return p && p->index != old_index && p->naddrs && p->up && p->carrier;
}

START_TEST(removed_and_added_at_once_is_another_one)
{
	unsigned i, fds, times = hc_long() ? 500 : 100;

	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("a0", "");
	fds = hc_count_fds();
	for (i = 0; i < times; i++) {
		ck_assert_ptr_nonnull(port("a0"));
		old_index = port("a0")->index;
		hc_ip("link del a0\nlink add a0 type veth peer name p-a0\n"
		      "addr add 10.71.0.1/24 dev a0\nlink set a0 up\nlink set p-a0 up\n");
		until("the new one", is_another, "a0");
		ck_assert_int_eq(port("a0")->wish, PORT_WISH_NAMED);
	}
	ck_assert_uint_eq(gone, times + 1); /* and the other end of the first */
	ck_assert_uint_eq(hc_count_fds(), fds);
	ck_assert_uint_eq(hc_netif_count(netif), nfacts);
	close_netif();
}
END_TEST

START_TEST(routes_are_answered)
{
	const struct hc_route_fact *r;

	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	veth("b0", "10.72.0.1/24");
	hc_ip("addr add fd00::1/64 dev a0 nodad\n"
	      "route add 10.99.0.0/16 via 10.72.0.2 mtu 1300\n"
	      "route add prohibit 10.98.0.0/16\n"
	      "route add unreachable fd98::/16\n");
	open_netif("", "");
	r = ask("10.71.0.2");
	ck_assert_int_eq(r->error, 0);
	ck_assert_str_eq(local_text(), "10.71.0.1");
	ck_assert_uint_eq(r->port, port("a0")->index);
	ck_assert_uint_eq(r->mtu, 0);
	r = ask("10.99.1.1");
	ck_assert_str_eq(local_text(), "10.72.0.1");
	ck_assert_uint_eq(r->port, port("b0")->index);
	ck_assert_uint_eq(r->mtu, 1300);
	ck_assert_int_eq(ask("192.0.2.1")->error, ENETUNREACH);
	ck_assert_int_eq(ask("10.98.0.1")->error, EACCES);
	ck_assert_int_eq(ask("fd98::1")->error, EHOSTUNREACH);
	ck_assert_int_eq(ask("fd99::1")->error, ENETUNREACH);
	r = ask("fd00::2");
	ck_assert_int_eq(r->error, 0);
	ck_assert_str_eq(local_text(), "fd00::1");
	ck_assert_uint_eq(r->port, port("a0")->index);
	close_netif();
}
END_TEST

static bool routes_told(const char *unused)
{
	(void)unused;
	return routes > 0;
}

START_TEST(a_rush_of_routes_is_told_a_few_times)
{
	char lines[100 * 40] = "";
	uint64_t until_ms;
	size_t n = 0;
	unsigned i;

	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("", "");
	routes = 0;
	for (i = 0; i < 100; i++)
		n += (size_t)snprintf(lines + n, sizeof(lines) - n,
				      "route add 10.80.%u.0/24 dev a0\n", i);
	hc_ip("%s", lines);
	until("routes", routes_told, NULL);
	until_ms = hc_now_ms() + 150;
	while (hc_now_ms() < until_ms)
		event_base_loop(base, EVLOOP_NONBLOCK);
	ck_assert_uint_ge(routes, 1);
	ck_assert_uint_le(routes, 6);
	close_netif();
}
END_TEST

START_TEST(on_loopback_addresses_the_wished_one_is_the_source)
{
	const struct hc_port_fact *lo;

	if (!hc_netns_enter())
		return;
	open_netif("", "127.0.0.3, 127.0.1.3");
	lo = port("lo");
	ck_assert_int_eq(lo->wish, PORT_WISH_NAMED);
	ck_assert(!addr("lo", "127.0.0.3")->unwished);
	ck_assert(!addr("lo", "127.0.1.3")->unwished);
	ck_assert(addr("lo", "127.0.0.1")->unwished);
	ck_assert_int_eq(ask("127.0.0.2")->error, 0);
	ck_assert_str_eq(local_text(), "127.0.0.3");
	ck_assert_uint_eq(answer.port, lo->index);
	ask("127.0.1.2");
	ck_assert_str_eq(local_text(), "127.0.1.3");
	ask("127.0.0.1"); /* the kernel would take the address itself */
	ck_assert_str_eq(local_text(), "127.0.0.3");
	close_netif();
}
END_TEST

START_TEST(wishes_follow_the_configuration)
{
	if (!hc_netns_enter())
		return;
	veth("eth0", "10.71.0.1/24");
	veth("eth1", "10.72.0.1/24");
	open_netif("^eth1", "");
	ck_assert_int_eq(port("eth0")->wish, PORT_WISH_NONE);
	ck_assert_int_eq(port("eth1")->wish, PORT_WISH_EXCLUDED);
	close_netif();
	open_netif("eth1", "");
	ck_assert_int_eq(port("eth0")->wish, PORT_WISH_OTHERS);
	ck_assert_int_eq(port("eth1")->wish, PORT_WISH_NAMED);
	close_netif();
	open_netif("", "10.72.0.1, 10.73.0.1");
	ck_assert_int_eq(port("eth0")->wish, PORT_WISH_OTHERS);
	ck_assert_int_eq(port("eth1")->wish, PORT_WISH_NAMED);
	ck_assert(addr("eth0", "10.71.0.1")->unwished);
	hc_netif_missing(netif, why, sizeof(why));
	ck_assert_str_eq(why, "10.73.0.1 not on this host yet");
	close_netif();
}
END_TEST

START_TEST(a_name_that_is_not_here_is_refused_with_those_that_are)
{
	struct hc_netif_args args = {.conf = &conf, .feed = on_event};

	if (!hc_netns_enter())
		return;
	veth("eth0", "10.71.0.1/24");
	memset(&conf, 0, sizeof(conf));
	strcpy(conf.listen_interface, "eth");
	base = args.base = event_base_new();
	ck_assert_int_eq(hc_netif_new(&args, &netif, why, sizeof(why)), 1);
	ck_assert_ptr_nonnull(strstr(why, "there is no interface 'eth'; here are "));
	ck_assert_ptr_nonnull(strstr(why, "lo (127.0.0.1, ::1)"));
	ck_assert_ptr_nonnull(strstr(why, "eth0 (10.71.0.1"));
	strcpy(conf.listen_interface, "eth0");
	ck_assert_int_eq(hc_netif_check(&conf, why, sizeof(why)), 0);
	strcpy(conf.listen_interface, "^eth");
	ck_assert_int_eq(hc_netif_check(&conf, why, sizeof(why)), 0);
	event_base_free(base);
}
END_TEST

/* Made and removed, a hundred in one go. */
static void churn(unsigned rounds)
{
	char lines[100 * 90];
	unsigned i, k;
	size_t n;

	for (i = 0; i < rounds; i++) {
		for (n = 0, k = 0; k < 50; k++)
			n += (size_t)snprintf(lines + n, sizeof(lines) - n,
					      "link add c%u type veth peer name d%u\n"
					      "link set c%u up\nlink set d%u up\n",
					      k, k, k, k);
		for (k = 0; k < 50; k++)
			n += (size_t)snprintf(lines + n, sizeof(lines) - n, "link del c%u\n", k);
		hc_ip("%s", lines);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
}

START_TEST(thousands_of_others_leave_no_trace)
{
	size_t bytes;

	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("", "");
	churn(1);
	bytes = mallinfo2().uordblks;
	churn(hc_long() ? 50 : 5);
	ck_assert_uint_eq(strangers, 0);
	ck_assert_uint_eq(gone, 0);
	ck_assert_uint_eq(nfacts, hc_netif_count(netif));
	ck_assert_uint_le(mallinfo2().uordblks, bytes + 4096);
	/* and what matters is still followed */
	hc_ip("link set a0 mtu 1400\n");
	until("the mtu", mtu_is_1400, "a0");
	close_netif();
}
END_TEST

static bool count_is_up(const char *name)
{
	return port(name)->tx_bytes > 0;
}

START_TEST(counters_come_with_the_tick)
{
	if (!hc_netns_enter())
		return;
	veth("a0", "10.71.0.1/24");
	open_netif("", "");
	ck_assert_uint_eq(port("a0")->tx_bytes, 0);
	hc_ip("neigh add 10.71.0.2 lladdr 02:00:00:00:00:01 dev a0\n");
	/* the kernel itself sends on a port that came up; what counts is that it is read */
	for (unsigned i = 0; i < 200 && !count_is_up("a0"); i++) {
		hc_netif_tick(netif);
		usleep(10000);
	}
	ck_assert(count_is_up("a0"));
	close_netif();
}
END_TEST

static void add(TCase *t)
{
	hc_log_open(HC_LOG_STDERR, HC_LOG_ERROR, 10);
	tcase_add_test(t, what_is_here_is_told_with_its_kind);
	tcase_add_test(t, an_interface_may_come_late);
	tcase_add_test(t, changes_of_a_port_are_told);
	tcase_add_test(t, an_ipv6_address_is_tentative_first);
	tcase_add_test(t, removed_and_added_at_once_is_another_one);
	tcase_add_test(t, routes_are_answered);
	tcase_add_test(t, a_rush_of_routes_is_told_a_few_times);
	tcase_add_test(t, on_loopback_addresses_the_wished_one_is_the_source);
	tcase_add_test(t, wishes_follow_the_configuration);
	tcase_add_test(t, a_name_that_is_not_here_is_refused_with_those_that_are);
	tcase_add_test(t, thousands_of_others_leave_no_trace);
	tcase_add_test(t, counters_come_with_the_tick);
}

int main(void)
{
	return hc_suite_run("netif", add, 60);
}
