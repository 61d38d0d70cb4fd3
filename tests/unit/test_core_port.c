/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports: which addresses are used towards other nodes, what is said of the rest, and that peers
 * hear of changes.
 */
#include "peering.h"

#include <stdio.h>

static struct sim *s;
static char *log_text;
static size_t log_len;
static FILE *log_file;

static void start(uint32_t nodes, uint32_t rails, uint32_t ports)
{
	struct sim_args a;

	log_file = open_memstream(&log_text, &log_len);
	ck_assert_ptr_nonnull(log_file);
	sim_defaults(&a);
	a.nodes = nodes;
	a.rails = rails;
	a.limits.ports = ports;
	a.trace = log_file;
	s = sim_new(&a);
	sim_start_all(s);
}

static void end(void)
{
	sim_free(s);
	fclose(log_file);
	free(log_text);
}

static bool logged(const char *text)
{
	fflush(log_file);
	return strstr(log_text, text) != NULL;
}

static uint32_t times_logged(const char *text)
{
	const char *at = log_text;
	uint32_t n = 0;

	fflush(log_file);
	for (at = log_text; at && (at = strstr(at, text)); at++)
		n++;
	return n;
}

static struct hc_port_fact port(uint32_t index, const char *name, uint8_t kind)
{
	struct hc_port_fact f = {.index = index,
				 .kind = kind,
				 .present = true,
				 .up = true,
				 .carrier = true,
				 .mtu = 1500,
				 .mbps = 1000};

	snprintf(f.name, sizeof(f.name), "%s", name);
	return f;
}

static void add4(struct hc_port_fact *f, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	struct hc_port_addr *p = &f->addrs[f->naddrs++];

	p->addr = (struct hc_addr){.family = 4, .bytes = {a, b, c, d}};
	p->prefix = 24;
}

static void tell_it(struct hc_core *c, void *arg)
{
	hc_port_fact(c, arg);
}

static void tell(uint32_t node, struct hc_port_fact *f)
{
	sim_do(s, node, tell_it, f);
}

static uint8_t verdict(uint32_t index, uint32_t addr)
{
	struct hc_core *c = sim_core(s, 0);

	return hc_port_verdict(c, hc_port_get(c, index), addr);
}

static bool used(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const struct hc_addr at = {.family = 4, .bytes = {a, b, c, d}};

	return hc_port_of(sim_core(s, 0), &at) != HC_NONE;
}

START_TEST(each_candidate_has_its_verdict)
{
	struct hc_port_fact lo = port(1, "lo", HC_W_port_kind_LOOPBACK);
	struct hc_port_fact eth = port(2, "eth0", HC_W_port_kind_ETHER);
	struct hc_port_fact down = port(3, "eth1", HC_W_port_kind_ETHER);
	struct hc_port_fact bare = port(4, "eth2", HC_W_port_kind_ETHER);
	struct hc_port_fact tun = port(5, "tun0", HC_W_port_kind_TUNNEL);
	struct hc_port_fact docker = port(6, "docker0", HC_W_port_kind_BRIDGE);
	struct hc_port_fact loose = port(7, "eth3", HC_W_port_kind_ETHER);
	struct hc_port_fact not = port(8, "eth4", HC_W_port_kind_ETHER);

	start(1, 0, 16);
	add4(&lo, 127, 0, 0, 1);
	add4(&eth, 10, 1, 0, 1);
	add4(&eth, 169, 254, 3, 4);
	add4(&eth, 10, 1, 0, 2);
	eth.addrs[2].tentative = true;
	add4(&down, 10, 2, 0, 1);
	down.up = down.carrier = false;
	add4(&tun, 10, 3, 0, 1);
	add4(&docker, 172, 17, 0, 1);
	add4(&loose, 10, 4, 0, 1);
	loose.carrier = false;
	add4(&not, 10, 5, 0, 1);
	not .wish = PORT_WISH_EXCLUDED;
	tell(0, &lo);
	tell(0, &docker);
	tell(0, &eth);
	tell(0, &down);
	tell(0, &bare);
	tell(0, &tun);
	tell(0, &loose);
	tell(0, &not );
	ck_assert_uint_eq(verdict(1, 0), HC_W_port_verdict_LOOPBACK);
	ck_assert_uint_eq(verdict(2, 0), HC_W_port_verdict_USED);
	ck_assert_uint_eq(verdict(2, 1), HC_W_port_verdict_LINK_LOCAL);
	ck_assert_uint_eq(verdict(2, 2), HC_W_port_verdict_TENTATIVE);
	ck_assert_uint_eq(verdict(3, 0), HC_W_port_verdict_DOWN);
	ck_assert_uint_eq(verdict(4, 0), HC_W_port_verdict_NO_ADDRESS);
	ck_assert_uint_eq(verdict(5, 0), HC_W_port_verdict_TUNNEL);
	ck_assert_uint_eq(verdict(6, 0), HC_W_port_verdict_LAST);
	ck_assert_uint_eq(verdict(7, 0), HC_W_port_verdict_NO_CARRIER);
	ck_assert_uint_eq(verdict(8, 0), HC_W_port_verdict_EXCLUDED);
	ck_assert(used(10, 1, 0, 1));
	ck_assert(used(172, 17, 0, 1));
	ck_assert(!used(169, 254, 3, 4));
	ck_assert(!used(127, 0, 0, 1));
	ck_assert(!used(10, 3, 0, 1));
	sim_run(s, 50 * SIM_MS);
	/* the usable ones first, in one line */
	ck_assert(
		logged("ports towards other nodes; docker0 172.17.0.1: used when nothing else is; "
		       "eth0 10.1.0.1: used; lo 127.0.0.1: loopback; "
		       "eth0 169.254.3.4: link-local address; "
		       "eth0 10.1.0.2: address not ready yet; eth1 10.2.0.1: down; "
		       "eth2: no address; tun0 10.3.0.1: tunnel; eth3 10.4.0.1: no carrier; "
		       "eth4 10.5.0.1: excluded by listen_interface"));
	ck_assert_uint_eq(times_logged("ports towards other nodes"), 1);
	end();
}
END_TEST

START_TEST(what_is_named_is_used_whatever_it_is)
{
	struct hc_port_fact lo = port(1, "lo", HC_W_port_kind_LOOPBACK);
	struct hc_port_fact tun = port(2, "tun0", HC_W_port_kind_TUNNEL);
	struct hc_port_fact eth = port(3, "eth0", HC_W_port_kind_ETHER);

	start(1, 0, 16);
	add4(&lo, 127, 0, 0, 1);
	add4(&lo, 127, 0, 0, 2);
	lo.addrs[1].unwished = true;
	lo.wish = tun.wish = PORT_WISH_NAMED;
	add4(&tun, 10, 3, 0, 1);
	add4(&eth, 10, 1, 0, 1);
	eth.wish = PORT_WISH_OTHERS;
	tell(0, &lo);
	tell(0, &tun);
	tell(0, &eth);
	ck_assert_uint_eq(verdict(1, 0), HC_W_port_verdict_USED);
	ck_assert_uint_eq(verdict(1, 1), HC_W_port_verdict_NOT_NAMED);
	ck_assert_uint_eq(verdict(2, 0), HC_W_port_verdict_USED);
	ck_assert_uint_eq(verdict(3, 0), HC_W_port_verdict_NOT_NAMED);
	end();
}
END_TEST

START_TEST(without_any_the_warning_lists_them_all)
{
	struct hc_port_fact lo = port(1, "lo", HC_W_port_kind_LOOPBACK);

	start(1, 0, 16);
	add4(&lo, 127, 0, 0, 1);
	tell(0, &lo);
	sim_run(s, 50 * SIM_MS);
	ck_assert(logged("no port is usable towards other nodes: give listen_interface or "
			 "listen_address; lo 127.0.0.1: loopback"));
	end();
}
END_TEST

START_TEST(a_full_table_lets_go_of_what_is_of_no_use)
{
	struct hc_port_fact f;
	char name[16];
	uint32_t i;

	start(1, 0, 4);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "veth%u", i);
		f = port(10 + i, name, HC_W_port_kind_VIRTUAL);
		tell(0, &f);
	}
	f = port(2, "eth0", HC_W_port_kind_ETHER);
	add4(&f, 10, 1, 0, 1);
	tell(0, &f);
	ck_assert(used(10, 1, 0, 1));
	/* one that comes back under its name is another one */
	f.present = false;
	tell(0, &f);
	ck_assert(!used(10, 1, 0, 1));
	f.present = true;
	f.index = 300;
	tell(0, &f);
	ck_assert(used(10, 1, 0, 1));
	ck_assert_ptr_null(hc_port_get(sim_core(s, 0), 2));
	end();
}
END_TEST

START_TEST(load_is_that_of_the_fuller_direction)
{
	struct hc_port_fact f = port(2, "eth0", HC_W_port_kind_ETHER);
	struct hc_port_slot *p;

	start(1, 0, 4);
	add4(&f, 10, 1, 0, 1);
	sim_run(s, SIM_S);
	tell(0, &f);
	p = hc_port_get(sim_core(s, 0), 2);
	ck_assert_uint_eq(p->load_percent, 0);
	sim_run(s, SIM_S);
	f.rx_bytes = 900000000; /* of 1,000 MB/s */
	f.tx_bytes = 100000000;
	tell(0, &f);
	ck_assert_uint_eq(p->load_percent, 90);
	ck_assert_uint_ne(p->full_since, HC_NEVER);
	sim_run(s, SIM_S);
	f.rx_bytes += 750000000; /* between the limits: as it was */
	tell(0, &f);
	ck_assert_uint_ne(p->full_since, HC_NEVER);
	sim_run(s, SIM_S);
	f.rx_bytes += 600000000;
	tell(0, &f);
	ck_assert_uint_eq(p->load_percent, 60);
	ck_assert_uint_eq(p->full_since, HC_NEVER);
	sim_run(s, SIM_S);
	f.rx_bytes = 5; /* counters that began anew are no load */
	f.tx_bytes = 5;
	tell(0, &f);
	ck_assert_uint_eq(p->load_percent, 0);
	end();
}
END_TEST

START_TEST(peers_hear_of_ports_that_come_and_go)
{
	struct hc_port_fact f = port(9, "eth9", HC_W_port_kind_ETHER);
	const struct hc_peer *p;
	uint32_t i;
	bool has = false;

	start(2, 1, 16);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, SIM_S);
	p = peering_get(s, 1, 0);
	ck_assert_uint_eq(p->nports, 1);
	add4(&f, 10, 77, 0, 1);
	tell(0, &f);
	sim_run(s, 100 * SIM_MS);
	ck_assert_uint_eq(p->nports, 2);
	for (i = 0; i < p->nports; i++)
		has = has || !strcmp(p->ports[i].name, "eth9");
	ck_assert(has);
	f.present = false;
	tell(0, &f);
	sim_run(s, 100 * SIM_MS);
	ck_assert_uint_eq(p->nports, 1);
	ck_assert(peering_are_up(s, 0, 1));
	end();
}
END_TEST

static bool one_port(struct sim *sim, void *peer)
{
	(void)sim;
	return ((const struct hc_peer *)peer)->nports == 1;
}

/* It went and came back before its change was due to be told, but a hello had told it. */
START_TEST(a_port_that_was_gone_for_a_hello_alone_is_announced_again)
{
	struct hc_port_fact f = port(9, "eth9", HC_W_port_kind_ETHER);
	struct hc_peer *p;

	start(2, 1, 16);
	sim_know_all(s);
	add4(&f, 10, 77, 0, 1);
	tell(0, &f);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, SIM_S);
	p = peering_get(s, 1, 0);
	ck_assert_uint_eq(p->nports, 2);
	f.up = f.carrier = false;
	tell(0, &f);
	sim_reset(s, 0, 1, HC_W_conn_end_CLOSED);
	ck_assert(sim_until(s, one_port, p, 15 * SIM_MS));
	f.up = f.carrier = true;
	tell(0, &f);
	sim_run(s, 200 * SIM_MS);
	ck_assert_uint_eq(p->nports, 2);
	end();
}
END_TEST

/* The other daemon stands still; its kernel takes the connection, and our hello waits there. */
START_TEST(a_port_that_comes_after_the_hello_is_announced_to_who_reads_that_late)
{
	start(2, 2, 16);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, SIM_S);
	sim_port(s, 0, 1, false, 1500);
	sim_run(s, SIM_S);
	ck_assert_uint_eq(peering_get(s, 1, 0)->nports, 1);
	sim_stop(s, 1);
	sim_reset(s, 0, 1, HC_W_conn_end_CLOSED);
	sim_run(s, 2 * SIM_S);
	ck_assert_uint_ne(peering_get(s, 0, 1)->dialled, 0);
	ck_assert_uint_eq(peering_get(s, 0, 1)->conn, 0);
	sim_port(s, 0, 1, true, 1500);
	sim_run(s, 100 * SIM_MS);
	sim_go(s, 1);
	sim_run(s, SIM_S);
	ck_assert(peering_all_up(s, NULL));
	ck_assert_uint_eq(peering_get(s, 1, 0)->nports, 2);
	end();
}
END_TEST

static void far_bridge(struct hc_core *c, void *arg)
{
	struct hc_peer *p = arg;

	(void)c; /* node 1 announces an address that is ours: both have such a bridge */
	p->ports[1] = p->ports[0];
	p->ports[1].ourselves = false;
	p->ports[1].at.addr.bytes[3] = 0;
	p->nports = 2;
}

START_TEST(an_address_that_leads_to_ourselves_is_marked)
{
	struct hc_peer *p;

	start(2, 1, 16);
	sim_know(s, 1, 0);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, SIM_S);
	p = peering_get(s, 0, 1);
	ck_assert_uint_eq(verdict(2, 0), HC_W_port_verdict_USED);
	sim_do(s, 0, far_bridge, p);
	sim_crash(s, 1);
	sim_run(s, 20 * SIM_S); /* it is dialled where it was announced */
	ck_assert(p->ports[1].ourselves);
	ck_assert_uint_eq(verdict(2, 0), HC_W_port_verdict_OURSELVES);
	ck_says(s, 0, PORT_CHANGED, "reached this node itself");
	end();
}
END_TEST

static const struct hc_link_fact *way_out(void)
{
	const struct hc_core *c = sim_core(s, 0);
	uint32_t i;

	for (i = 0; i < c->nlinks; i++)
		if (c->link_facts[i].a == HC_END_NET)
			return &c->link_facts[i];
	return NULL;
}

/* Of all that are used, as long as each says it; those of last resort only alone. */
START_TEST(the_way_out_has_the_speed_of_its_ports)
{
	struct hc_port_fact first = port(2, "eth0", HC_W_port_kind_ETHER);
	struct hc_port_fact second = port(3, "eth1", HC_W_port_kind_ETHER);
	struct hc_port_fact docker = port(6, "docker0", HC_W_port_kind_BRIDGE);

	start(1, 0, 16);
	ck_assert(way_out() && !way_out()->mbps);
	ck_assert_str_eq(way_out()->mbps_source, "unknown");
	add4(&docker, 172, 17, 0, 1);
	docker.mbps = 7;
	tell(0, &docker);
	ck_assert_uint_eq(way_out()->mbps, 7);
	add4(&first, 10, 1, 0, 1);
	add4(&first, 10, 2, 0, 1);
	tell(0, &first);
	ck_assert_uint_eq(way_out()->mbps, 1000);
	ck_assert_str_eq(way_out()->via, "eth0");
	add4(&second, 10, 3, 0, 1);
	tell(0, &second);
	ck_assert_uint_eq(way_out()->mbps, 2000);
	ck_assert_str_eq(way_out()->via, "eth0, eth1");
	second.mbps = 0;
	tell(0, &second);
	ck_assert_uint_eq(way_out()->mbps, 0);
	second.up = false;
	tell(0, &second);
	ck_assert_uint_eq(way_out()->mbps, 1000);
	ck_assert_str_eq(way_out()->mbps_source, "netlink");
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_port");
	TCase *t = tcase_create("port");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, each_candidate_has_its_verdict);
	tcase_add_test(t, what_is_named_is_used_whatever_it_is);
	tcase_add_test(t, without_any_the_warning_lists_them_all);
	tcase_add_test(t, a_full_table_lets_go_of_what_is_of_no_use);
	tcase_add_test(t, load_is_that_of_the_fuller_direction);
	tcase_add_test(t, the_way_out_has_the_speed_of_its_ports);
	tcase_add_test(t, peers_hear_of_ports_that_come_and_go);
	tcase_add_test(t, a_port_that_was_gone_for_a_hello_alone_is_announced_again);
	tcase_add_test(t, a_port_that_comes_after_the_hello_is_announced_to_who_reads_that_late);
	tcase_add_test(t, an_address_that_leads_to_ourselves_is_marked);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
