/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A roster: who takes part, as a rank table says it, free of its file format.
 *
 * The readers of proto/file turn every table version into this one form; the core binds ranks
 * to devices from it and compares it between nodes. It is plain data with no owner inside:
 * whoever built it (hc_ranktable_read) says how to free it. Two tables that mean the same have
 * the same `hash`, whatever their spelling, order of keys or white space.
 */
#ifndef HC_ROSTER_H
#define HC_ROSTER_H

#include <stdint.h>

#define HC_SERVER_NAME_MAX 1024 /* bytes without the NUL: net_instance_id of tables 2.0 */

/* A network address. family is 0 (none given), 4 or 6; IPv4 uses the first 4 bytes. */
struct hc_addr {
	uint8_t family;
	uint8_t bytes[16];
	uint32_t scope; /* IPv6 scope id, 0 without one */
};

struct hc_roster_server {
	const char *name; /* server_id, or net_instance_id of layer 0 */
	struct hc_addr host_ip;
};

struct hc_roster_rank {
	uint32_t server; /* index into servers */
	uint32_t device; /* physical device id on that server */
	struct hc_addr addr;
	uint16_t port; /* 0 = not given */
	uint64_t hash; /* of this entry alone: two nodes find the entry that differs */
};

struct hc_roster {
	uint64_t hash[2]; /* of the whole, canonical form */
	uint32_t nservers;
	uint32_t nranks; /* ranks[i] is rank i */
	struct hc_roster_server *servers;
	struct hc_roster_rank *ranks;
};

#endif
