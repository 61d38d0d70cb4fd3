/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files 2.0: the devices of one server, and the edges between them and to the net.
 *
 * An edge joins two devices (PEER2PEER) or a device and a network (PEER2NET); the second kind has
 * no far end, though the vendor's field table calls local_b required. A port (die and number of
 * one device) is one physical thing, so it appears in one edge only; "d2h", the way to the host,
 * is no such port and may repeat.
 */
#ifndef HC_TOPOFILE_H
#define HC_TOPOFILE_H

#include "field.h"

#define HC_TOPO_BYTES_MAX ((size_t)512 * 1024)
#define HC_TOPO_PEERS_MAX 65
#define HC_TOPO_PORTS_MAX 64

/* Y(symbol, text), bit = position */
#define HC_TOPO_PROTOCOLS(Y)                                                                       \
	Y(UB_CTP, "UB_CTP")                                                                        \
	Y(UB_TP, "UB_TP")                                                                          \
	Y(ROCE, "ROCE")                                                                            \
	Y(HCCS, "HCCS")                                                                            \
	Y(TCP, "TCP")                                                                              \
	Y(UB_MEM, "UB_MEM")                                                                        \
	Y(UBOE, "UBOE")

enum hc_topo_protocol {
#define Y(sym, text) HC_TOPO_##sym,
	HC_TOPO_PROTOCOLS(Y)
#undef Y
		HC_TOPO_PROTOCOL_COUNT
};

enum hc_topo_link { HC_TOPO_PEER2PEER, HC_TOPO_PEER2NET };
enum hc_topo_type { HC_TOPO_CLOS, HC_TOPO_1DMESH };
enum hc_topo_position { HC_TOPO_DEVICE, HC_TOPO_HOST };

struct hc_topo_end {
	bool present;
	uint32_t local_id;
	uint32_t nports;
	const struct hc_port_name *ports;
};

struct hc_topo_edge {
	uint32_t net_layer;
	enum hc_topo_link link_type;
	uint32_t protocols; /* bits 1 << enum hc_topo_protocol */
	struct hc_topo_end a, b;
	uint32_t topo_instance_id;
	enum hc_topo_type topo_type;
	enum hc_topo_position position;
};

struct hc_topo {
	uint32_t npeers, nedges;
	uint32_t *peers; /* local_id of each, in file order */
	struct hc_topo_edge *edges;
};

/* As hc_ranktable_read: 0 with a new topology and a message, HC_FILE_REFUSED, -ENOMEM. */
int hc_topofile_read(const struct hc_jsontext *in, struct hc_topo **topo, struct hc_verdict *v);
void hc_topofile_free(struct hc_topo *topo);
const char *hc_topo_protocol_name(enum hc_topo_protocol p);

#endif
