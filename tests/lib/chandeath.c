/* SPDX-License-Identifier: Apache-2.0 */
/* A client that dies with channels, and one that waits for them; see chandeath.h. */
#include "chandeath.h"

#include <hcomm/hcomm.h>
#include <stdio.h>

static hcomm_domain joins(struct hcomm_session **s, const char *name)
{
	const uint32_t devices[2] = {0, 1};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.shared = 1;
	config.name = name;
	if (hcomm_open(NULL, s) || hcomm_join_all_local(*s, devices, 2, &config, 20000, &d))
		hc_fail("%s: %s", name, hcomm_last_error());
	return d;
}

static struct hcomm_channel_args wants(uint32_t mbps)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.peer = 1;
	a.bandwidth_mbps = a.back_mbps = mbps;
	a.flags = HCOMM_CHANNEL_FROM;
	a.path_type = HCOMM_LINK_SHM;
	a.buffer_bytes = 4096;
	return a;
}

int hc_chandeath_victim(void *name, int in, int out)
{
	const struct hcomm_channel_args a = wants(HC_VICTIM_MBPS);
	struct hcomm_op op[HC_VICTIM_REFERENCES];
	hcomm_channel ch[HC_VICTIM_CHANNELS];
	struct hcomm_session *s;
	hcomm_domain d = joins(&s, name);
	char x = 1;

	for (unsigned i = 0; i < HC_VICTIM_REFERENCES; i++)
		if (hcomm_op_begin_rank(d, i & 1, HCOMM_OP_ALL_REDUCE, 64, 0, &op[i]))
			hc_fail("reference %u: %s", i, hcomm_last_error());
	for (unsigned i = 0; i < HC_VICTIM_CHANNELS; i++)
		if (hcomm_channel_acquire(d, &a, 20000, &ch[i]) ||
		    hcomm_channel_send(ch[i], "in the middle of it", 19, 1000))
			hc_fail("channel %u: %s", i, hcomm_last_error());
	hc_tell(out, &x, 1);
	hc_hear(in, &x, 1, 600000);
	return 0;
}

int hc_chandeath_waiter(void *name, int in, int out)
{
	struct hcomm_channel_args a = wants(HC_VICTIM_CHANNELS * HC_VICTIM_MBPS);
	struct hcomm_session *s;
	hcomm_domain d = joins(&s, name);
	hcomm_channel ch;
	uint64_t now;
	char go = 1;

	a.wait = 1;
	hc_tell(out, &go, 1);
	for (hc_hear(in, &go, 1, 600000); go; hc_hear(in, &go, 1, 600000)) {
		if (hcomm_channel_acquire(d, &a, 60000, &ch))
			hc_fail("the waiter: %s", hcomm_last_error());
		now = hc_now_ns();
		hc_tell(out, &now, sizeof(now));
		hc_hear(in, &go, 1, 60000);
		if (hcomm_channel_release(ch))
			hc_fail("the waiter: %s", hcomm_last_error());
		hc_tell(out, &go, 1);
	}
	hcomm_close(s);
	return 0;
}

struct looking {
	int books;
	struct hc_ledger *l;
};

static bool one_waits(void *ctx)
{
	const struct looking *k = ctx;

	hc_ledger_read(k->books, k->l);
	return k->l->whole && k->l->waits == 1;
}

void hc_chandeath_begin(struct hc_child *victim, struct hc_child *waiter, unsigned number,
			int books, struct hc_ledger *l)
{
	struct looking k = {books, l};
	char name[32], x = 1;

	snprintf(name, sizeof(name), "victim-%u", number);
	hc_spawn(victim, hc_chandeath_victim, name);
	hc_child_read(victim, &x, 1, 20000);
	hc_child_tell(waiter, &x, 1);
	hc_await("the waiter to wait", one_waits, &k, 5000);
}
