/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the simulation: sim.c has the clock and the nodes, simwire.c what is between them. */
#ifndef HC_SIMIMP_H
#define HC_SIMIMP_H

#include "simnet.h"

#include "hash.h"

#define SIM_PORT 16660u

enum sim_what { SIM_WAKE, SIM_EVENT, SIM_ARRIVE, SIM_DUE };

/* Something that happens at a time: to the core of a node, or to the network. */
struct sim_item {
	uint64_t at, serial;
	uint32_t node, life; /* of the daemon that it is for; 0 = of whichever runs */
	uint8_t what;        /* enum sim_what */
	uint8_t kind;        /* EVENT, ARRIVE: enum hc_event_kind */
	uint32_t due;        /* DUE: and `persisted` its number */
	uint64_t conn, persisted;
	struct hc_endpoint local, remote;
	uint32_t from, from_life, rail, secret_key;
	uint64_t secret, seq;
	uint16_t end;
	int error;
	uint32_t mtu;
	struct hc_route_fact route;
	uint8_t *bytes;
	uint32_t len;
	struct sim_item *next; /* of the free ones */
};

struct sim_key {
	uint32_t id, peer;
	uint64_t secret;
	bool out;
};

struct sim_port_state {
	bool up;
	uint32_t mtu;
};

struct sim_node {
	struct hc_core *core;
	void *memory;
	uint32_t life; /* counts daemons */
	uint32_t start, identity;
	uint64_t incarnation;
	bool kernel, stopped; /* kernel: it answers */
	uint64_t epoch;       /* of its clock */
	int32_t ppm;
	uint64_t wake; /* when it is to be called, global; HC_NEVER */
	struct hc_settings settings;
	struct sim_port_state *ports;
	struct sim_key *keys;
	uint32_t nkeys, keys_cap;
	struct sim_item **held; /* while it is stopped */
	uint32_t nheld, held_cap;
};

struct sim_end {
	uint32_t node, life;
	uint64_t number; /* of the connection at this end */
	struct hc_endpoint at;
	uint64_t last;      /* when what was sent towards this end arrives at the latest */
	uint64_t sent, got; /* things sent towards this end; of them told */
	bool open;
	bool doomed; /* it sends to a kernel that does not know it: the answer is a reset */
};

struct sim_stream {
	struct sim_end end[2]; /* 0: that dialled */
	uint32_t rail;
	uint64_t secret;
};

struct sim_last { /* the last datagram of one node to another */
	uint32_t len;
	uint8_t bytes[2048];
};

/* Numbers by key; a key may have several. */
struct sim_map {
	struct sim_slot {
		uint64_t key;
		uint32_t value; /* + 1; 0 = free */
	} * at;
	uint32_t count, cap; /* cap: a power of two */
};

/* What is due, without its contents: they stay where they are while this moves. */
struct sim_due {
	uint64_t at, serial;
	struct sim_item *item;
};

struct sim {
	struct sim_args args;
	uint64_t now, serial, events;
	uint64_t draws, choices;
	struct hc_hash_key key;
	uint64_t hash;
	struct sim_due *heap;
	uint32_t nheap, heap_cap;
	struct sim_item *free; /* items, by `next` */
	struct sim_node *nodes;
	struct sim_wire wire; /* of all ways that have none of their own */
	struct sim_wire *wires;
	uint32_t nwires, wires_cap;
	struct sim_map wire_map; /* of (from, to, rail) */
	struct sim_stream *streams;
	uint32_t nstreams, streams_cap;
	uint32_t *old_streams; /* whose ends both know: to be used again */
	uint32_t nold, old_cap;
	struct sim_map stream_map; /* of an end: number * 2 + end */
	uint64_t conns_in;
	struct sim_said *said;
	uint32_t nsaid, said_cap;
	struct hc_out *out;
	size_t core_bytes;
	uint64_t *traffic;      /* [from][to], bytes of datagrams; or NULL */
	struct sim_last *lasts; /* [from][to]; or NULL */
};

void sim_map_add(struct sim_map *m, uint64_t key, uint32_t value);
void sim_map_del(struct sim_map *m, uint64_t key, uint32_t value);
/* The first value of that key, HC_NONE; *at goes on to the next one. */
uint32_t sim_map_find(const struct sim_map *m, uint64_t key, uint32_t *at);
void sim_map_clear(struct sim_map *m);

void *sim_grow(void *at, uint32_t count, uint32_t *cap, size_t size);
uint64_t sim_draw(struct sim *s); /* for the wire */
bool sim_chance(struct sim *s, uint32_t ppm);
void sim_put(struct sim *s, const struct sim_item *it, const uint8_t *bytes, uint32_t len);
void sim_note(struct sim *s, uint32_t node, const char *what, uint64_t a, uint64_t b,
	      const uint8_t *bytes, uint32_t len);

struct hc_endpoint sim_address(uint32_t node, uint32_t rail);
/* Which port has this address? false: none. */
bool sim_owner(const struct sim *s, const struct hc_addr *a, uint32_t *node, uint32_t *rail);
const struct sim_wire *sim_wire_of(const struct sim *s, uint32_t from, uint32_t to, uint32_t rail);
void sim_identity(const struct sim *s, uint32_t node, uint8_t id[16]);

void sim_act_route(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_dial(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_send(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_close(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_key(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_key_drop(struct sim *s, uint32_t node, const struct hc_action *a);
void sim_act_datagram(struct sim *s, uint32_t node, const struct hc_action *a);
/* Does the datagram get through the kernel and the keys of the node? */
bool sim_admits(struct sim *s, struct sim_item *it);
/* A stream's event that is about to be told; false: nobody is there. Way cut: put off. */
bool sim_stream_ready(struct sim *s, struct sim_item *it);
void sim_streams_end(struct sim *s, uint32_t node, bool silent);

#endif
