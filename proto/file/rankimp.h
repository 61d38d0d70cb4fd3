/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the rank table reader: the parsed table between the walk over one version's
 * fields and the rules that all versions share. Texts point into the JSON tree, which lives as
 * long as the table. `canon` is the canonical form; each entry owns a slice of it.
 */
#ifndef HC_RANKIMP_H
#define HC_RANKIMP_H

#include "address.h"
#include "field.h"
#include "ranktable.h"

enum rt_version { RT_1_0, RT_1_2, RT_2_0 };

#define RT_ADDRS_MAX  24 /* of one level, or of one device in 1.x */
#define RT_LEVELS_MAX 8

struct rt_addr {
	struct hc_netaddr net;
	uint32_t entry;
	uint16_t port;        /* defaults filled in; 0 for an EID */
	uint8_t layer;        /* net_layer; 0 in 1.x */
	uint8_t level, place; /* where in level_list and rank_addr_list */
	bool backup;          /* the other die's, so it may repeat */
};

struct rt_entry {
	const json_t *rank_json, *device_json; /* for labels */
	uint32_t server, place; /* server_list[server].device[place]; or rank_list[place] */
	uint32_t rank, device;
	uint32_t local_id; /* 2.0 */
	uint32_t super_device;
	bool has_super_device;
	uint32_t port, host_port; /* 0 = not given */
	uint32_t naddrs;          /* without backups; they start at addrs[addr0] */
	size_t addr0;
	size_t canon, canon_len;
};

struct rt_server {
	const char *id;
	struct hc_netaddr host_ip;
	uint32_t place; /* in server_list */
	uint32_t min, max, count;
	uint32_t pod; /* index into pods + 1; 0 = in none */
};

/* A net instance of one layer, as one rank lists it (2.0). */
struct rt_level {
	const char *instance;
	uint32_t entry;
	uint8_t layer, level;
	uint32_t naddrs;
};

struct rt {
	struct hc_doc doc;
	enum rt_version version;
	struct rt_entry *entries;
	struct rt_server *servers;
	struct rt_addr *addrs;
	struct rt_level *levels;
	const char **pods;
	struct rt_entry **by_rank; /* after the rank rules */
	uint8_t *canon;
	size_t nentries, nservers, naddrs, nlevels, npods, canon_len;
	size_t entries_cap, servers_cap, addrs_cap, levels_cap, pods_cap, canon_cap;
	bool canon_failed; /* no memory; looked at once, at the end of an entry */
	bool super_mode;   /* 1.2 with pods and super device ids */
	bool detour;       /* 2.0 */
};

/* The walks. 0, HC_FILE_REFUSED, -ENOMEM. */
int rt_read_v1(struct rt *t);
int rt_read_v2(struct rt *t);
/* The rules. Same outcomes. */
int rt_check(struct rt *t);
int rt_check_super(struct rt *t); /* rankpod.c: of 1.2, called by rt_check */

struct hc_at rt_entry_at(const struct rt *t, const struct rt_entry *e);
/* The place of an address and the field that holds it. */
struct hc_at rt_addr_at(const struct rt *t, const struct rt_addr *a, const char **field);
int rt_nomem(struct rt *t);

/* New zeroed elements, or NULL without memory. */
struct rt_entry *rt_new_entry(struct rt *t);
struct rt_addr *rt_new_addr(struct rt *t);

/* Little-endian, texts with their length; errors are kept in canon_failed. */
void rt_canon_u32(struct rt *t, uint32_t x);
void rt_canon_text(struct rt *t, const char *s);
void rt_canon_addr(struct rt *t, const struct hc_netaddr *a);

/*
 * Sorts pointers to the `n` elements of `base` by `cmp`; -ENOMEM. The caller frees `*sorted`
 * with hc_file_free.
 */
typedef int rt_cmp(const void *x, const void *y); /* gets pointers to pointers */
int rt_sort(void *base, size_t n, size_t size, rt_cmp *cmp, void ***sorted);
/* Among sorted pointers, the pair of neighbours that `same` calls equal whose later element comes
 * first in the file; NULLs when there is none. */
void rt_first_pair(void **sorted, size_t n, bool (*same)(const void *x, const void *y),
		   void **first, void **second);

#endif
