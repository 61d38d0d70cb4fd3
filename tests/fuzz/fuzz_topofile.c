/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a topology file, and as a hostfile. Must hold: no crash; a complete verdict;
 * edges that join listed, different devices, and no physical port in two of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hostfile.h"
#include "topofile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void want(int ok)
{
	if (!ok)
		abort();
}

static int listed(const struct hc_topo *t, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < t->npeers; i++)
		if (t->peers[i] == id)
			return 1;
	return 0;
}

static void check_end(const struct hc_topo *t, const struct hc_topo_end *end)
{
	if (!end->present) {
		want(!end->nports);
		return;
	}
	want(listed(t, end->local_id));
	want(end->nports >= 1 && end->nports <= HC_TOPO_PORTS_MAX);
}

static void check_topo(const struct hc_topo *t)
{
	uint32_t i;

	want(t->npeers >= 1 && t->npeers <= HC_TOPO_PEERS_MAX);
	for (i = 0; i < t->nedges; i++) {
		const struct hc_topo_edge *e = &t->edges[i];

		check_end(t, &e->a);
		check_end(t, &e->b);
		want(e->a.present && e->protocols);
		want(e->b.present || e->link_type == HC_TOPO_PEER2NET);
		want(!e->b.present || e->a.local_id != e->b.local_id);
	}
}

static void check_hosts(const struct hc_jsontext *in)
{
	struct hc_hostfile *h;
	struct hc_verdict v;
	uint32_t i, n = 0;

	hc_verdict_init(&v);
	want((hc_hostfile_read(in, &h, &v) == 0) == (h != NULL));
	for (i = 0; h && i < h->nhosts; i++) {
		want(h->hosts[i].name[0] && h->hosts[i].ranks);
		n += h->hosts[i].ranks;
	}
	want(!h || n == h->nranks);
	hc_hostfile_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hc_topo *topo = NULL;
	struct hc_verdict v;
	struct hc_jsontext in;
	int r;

	hc_verdict_init(&v);
	r = hc_jsontext_set(data, size, HC_TOPO_BYTES_MAX, &in, &v);
	if (!r) {
		check_hosts(&in);
		r = hc_topofile_read(&in, &topo, &v);
	}
	want((r == 0) == (topo != NULL) && (r == 0) == (v.kind == HC_V_NONE));
	want(*v.message != 0);
	if (topo)
		check_topo(topo);
	hc_topofile_free(topo);
	return 0;
}
