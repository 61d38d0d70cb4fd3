/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world: one to three nodes' cores on a virtual clock, with simulated clients.
 *
 * The world is the shell of its cores. It answers PERSIST and SCAN, keeps what PUBLISH wrote,
 * carries messages between nodes and wakes a core at its deadline. Each of these can be held back,
 * so that a test puts two things in the order that it wants. Nothing here waits: time goes on in
 * world_advance alone.
 *
 * What comes out is a line of the transcript, "[  300ms] a 102 rank 2: refused BUSY: ...":
 * milliseconds since the start, node, process, request. Numbers of 16 hexadecimal digits (domain
 * ids, hashes) are written #1, #2, ... in order of their appearance.
 *
 * After each step the world looks whether the promises hold that never may be broken:
 * one answer to a request, to a session that is open; one process on a rank; nothing told before
 * it is stored; records as the parts; devices, seats, sessions, timers and counts agree. A broken
 * one ends the program (libcheck and the fuzzer both take that for a failure).
 */
#ifndef HC_WORLD_H
#define HC_WORLD_H

#include "core.h"

#include <stdio.h>

enum {
	WORLD_NODES = 3,
	WORLD_RECORDS = 2048,
	WORLD_RANKS = 64,
	WORLD_ITEMS = 512,
	WORLD_GRANTS = 64,
	WORLD_LINKS = 16,
	WORLD_REGISTERS = 4096,
	WORLD_MS = 1000000, /* nanoseconds */
};

enum world_show { /* what is written to the transcript */
		  SHOW_REPLIES = 1,
		  SHOW_EVENTS = 2,
		  SHOW_RECORDS = 4,
		  SHOW_MESSAGES = 8, /* when they are handed over */
		  SHOW_LOG = 16,
		  SHOW_JOURNAL = 32,
};

struct world_request {
	uint32_t id;
	char label[32];
};

/* A connection of a simulated process, and the last answer that it got. */
struct world_client {
	uint32_t node, pid, uid;
	uint64_t started, session;
	bool open, refused; /* refused: hello was */
	uint32_t next_request;
	struct world_request *waits;
	uint32_t nwaits, waits_cap;
	/* the last answer */
	uint32_t answers, events;
	uint32_t answered; /* id of the request */
	int code;
	uint64_t id, value, sub_id, cursor, snapshot;
	uint32_t epoch, nranks, slot, nrows, state, arrived;
	uint16_t event_kind;
	uint32_t event_rank, event_pid;
	struct world_grant {
		uint64_t channel;
		uint32_t slot, peer, mbps, back_mbps, vc, buffer, latency_us;
		uint8_t side, type;
		bool carries;
	} grants[WORLD_GRANTS];
	uint32_t ngrants, retry_ms, ring_bytes;
	uint8_t side;
	bool rings, last; /* channel_open brought them; the daemon has let go of them */
	uint64_t event_channel;
	char text[1024], info[HC_BLOB_MAX], event_text[1024], event_node[128];
	uint32_t info_len;
	uint32_t group[WORLD_RANKS], ngroup;
	uint64_t made[WORLD_ITEMS]; /* of a batch: id of each item's domain, 0 = it failed */
	uint16_t codes[WORLD_ITEMS];
	uint32_t nitems;
	uint8_t got[HC_PACKET_MAX]; /* value of a get */
	uint32_t got_len, got_bytes;
	uint64_t version;
	uint32_t lines; /* of a sync page */
};

/* A seat that was handed out, with the counters of its process. */
struct world_seat {
	uint64_t domain, session;
	uint32_t node, pid, rank, block, device;
	uint64_t begun;
	uint32_t running;
	uint8_t kind;
	bool live; /* the process holds the rank */
};

struct world_record {
	uint64_t id, cut;
	uint32_t uid, tag, epoch, number, nranks, cause_kind, cause_rank, cause_pid, writes;
	uint8_t state, cut_set; /* enum hc_page_cut */
	char cause[512];
};

struct world_register {
	uint64_t id;
	uint8_t state;  /* HC_W_channel_state_* */
	uint32_t start; /* of the daemon that wrote it */
};

/* A process whose end its kernel knows. */
struct world_dead {
	uint32_t node, pid;
	bool watched; /* the node's core wants to hear of it */
};

struct world_message {
	uint32_t from, to, len;
	uint8_t *bytes;
};

/* What a join says besides its rank; taken by the next request and then as at the start. */
struct world_options {
	const char *name, *server;
	uint32_t device, timeout_ms;
	bool shared;
	uint8_t priority, weight;
	uint32_t channels, channel_mbps, channel_hold_ms;
	uint8_t channel_wait;
	uint64_t number; /* of a split */
};

struct world {
	uint32_t nodes;
	uint64_t now, start;
	unsigned show;
	struct hc_core *core[WORLD_NODES];
	void *memory[WORLD_NODES];
	size_t bytes;
	struct hc_limits limits;
	struct hc_settings settings;
	struct hc_out *out;
	struct world_options opt;
	uint32_t starts[WORLD_NODES], devices;
	uint32_t node_of[WORLD_NODES][WORLD_NODES]; /* index of node j in core i */

	struct world_client **clients;
	struct world_client **by_slot[WORLD_NODES]; /* the open one of each session slot */
	uint32_t nclients, clients_cap;
	uint32_t generation;
	struct world_seat *seats;
	uint32_t nseats, seats_cap;
	struct world_record records[WORLD_NODES][WORLD_RECORDS];
	uint8_t shown; /* enum hc_shown: of the row that is being given */
	uint64_t pages[WORLD_NODES][WORLD_RECORDS]; /* domains whose sync page is kept, by slot */
	struct world_register registers[WORLD_NODES][WORLD_REGISTERS];
	struct hc_link_fact links[WORLD_NODES][WORLD_LINKS]; /* told at every start */
	uint32_t nlinks[WORLD_NODES];

	struct world_message *queue; /* between nodes, oldest first */
	uint32_t nqueue, queue_cap;
	bool hold[WORLD_NODES][WORLD_NODES]; /* messages from i to j stay in the queue */
	bool hold_store[WORLD_NODES], hold_scan, quiet_checks, hold_deadline;
	bool arenas_lost; /* no block can be read */
	uint64_t asked[WORLD_NODES], stored[WORLD_NODES];
	struct world_dead *dead;
	uint32_t ndead, dead_cap;
	struct world_row *rows; /* what the store was asked for */
	uint32_t nrows, rows_cap;
	struct world_scan *scans;
	uint32_t nscans, scans_cap;

	uint32_t watches; /* processes that the shell was asked to watch */
	uint64_t steps;
	uint32_t most_actions, most_bytes;
	char *text; /* the transcript */
	size_t text_len, text_cap;
	uint64_t seen[512]; /* numbers that have a #k */
	uint32_t nseen;
};

/* Eight devices on each node, named a, b, c. Defaults: 64 sessions, 32 domains, 256 ranks. */
void world_start(struct world *w, uint32_t nodes);
void world_start_with(struct world *w, uint32_t nodes, const struct hc_limits *limits,
		      const struct hc_settings *settings, uint32_t devices, uint64_t seed);
void world_defaults(struct hc_limits *limits, struct hc_settings *settings);
void world_end(struct world *w);
/* The daemon of a node is killed and started: it has what was stored, and its kernel says which of
 * those processes are dead. Connections are gone, processes and their arenas are not. */
void world_restart(struct world *w, uint32_t node);
/* A row that somebody wrote into its database, before a restart. */
void world_put_row(struct world *w, uint32_t node, uint64_t id, const void *bytes, uint32_t len);

/* Give a node a device with the address 192.0.2.`last` (0: none), or take it away. */
void world_device(struct world *w, uint32_t node, uint32_t index, uint8_t last, bool present,
		  const char *health);

/* Tell a node of a link. */
void world_link(struct world *w, uint32_t node, const struct hc_link_fact *fact);

/* A process connects and says hello. The same pid on a node is the same process. */
struct world_client *world_client(struct world *w, uint32_t node, uint32_t pid, uint32_t uid,
				  uint8_t role);
void world_hello(struct world *w, struct world_client *cl, uint8_t role, uint16_t proto_min,
		 uint16_t proto_max);
void world_lose(struct world *w, struct world_client *cl); /* its socket closes */
void world_die(struct world *w, struct world_client *cl);  /* its process exits, then the socket */
void world_die_all(struct world *w);                       /* everybody who is connected */
void world_dead(struct world *w, uint32_t node, uint32_t pid); /* the process alone */
bool world_waits(const struct world_client *cl);

/* A hand-made table: ranks in turn over nodes 0.., devices from 0 on each; change and seal it. */
struct world_table {
	struct hc_roster roster;
	struct hc_roster_server servers[WORLD_NODES];
	struct hc_roster_rank ranks[WORLD_RANKS];
};
void world_table(struct world_table *t, uint32_t nranks, uint32_t nservers);
void world_table_seal(struct world_table *t);

/* Requests; each returns its id. The answer is in the client and in the transcript. */
uint32_t world_root_info(struct world *w, struct world_client *cl, uint32_t nranks);
uint32_t world_join_root(struct world *w, struct world_client *cl, const struct world_client *root,
			 uint32_t nranks, uint32_t rank);
uint32_t world_join_table(struct world *w, struct world_client *cl, const struct world_table *t,
			  uint32_t rank);
uint32_t world_join_local(struct world *w, struct world_client *cl, const uint32_t *devices,
			  uint32_t n);
uint32_t world_create(struct world *w, struct world_client *cl, uint32_t nranks);
uint32_t world_add_device(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			  uint32_t device);
uint32_t world_activate(struct world *w, struct world_client *cl, uint64_t id);
uint32_t world_attach(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank);
/* Coming back with the arena, in which the rank has that block. */
uint32_t world_come_back(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			 uint32_t block);
uint32_t world_sub(struct world *w, struct world_client *cl, uint64_t parent, uint32_t rank,
		   uint64_t sub_id, const uint32_t *ranks, uint32_t n);
/* An item of a batch: its ranks end with WORLD_END. */
#define WORLD_END 0xffffffffu
struct world_item {
	uint64_t sub_id;
	const char *name;
	const uint32_t *ranks;
};
uint32_t world_batch(struct world *w, struct world_client *cl, uint64_t parent,
		     const struct world_item *items, uint32_t n);
uint32_t world_split(struct world *w, struct world_client *cl, uint64_t parent, uint32_t rank,
		     int32_t color, int32_t key);
uint32_t world_leave(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank);
uint32_t world_destroy(struct world *w, struct world_client *cl, uint64_t id);
uint32_t world_abort(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		     const char *reason);
uint32_t world_status(struct world *w, struct world_client *cl, uint64_t id);
uint32_t world_query(struct world *w, struct world_client *cl, unsigned view, uint64_t cursor,
		     uint64_t snapshot, uint32_t limit);
uint32_t world_drain(struct world *w, struct world_client *cl, const char *argument);
uint32_t world_subscribe(struct world *w, struct world_client *cl, uint64_t id, bool on);
/* Channels: the answer is in grants, or code and text (and retry_ms). timeout_ms without `wait`
 * is of no account. */
struct world_piece {
	uint32_t peer, mbps, back_mbps, buffer;
	uint8_t type, flags;
};
uint32_t world_acquire(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		       const struct world_piece *pieces, uint32_t n, bool wait, uint32_t timeout_ms,
		       uint32_t hold_ms);
uint32_t world_open(struct world *w, struct world_client *cl, uint64_t channel, uint32_t rank);
uint32_t world_release(struct world *w, struct world_client *cl, uint64_t channel, uint32_t rank);
void world_ops_ended(struct world *w, struct world_client *cl, uint64_t id);
/* Barrier and exchange (worldsync.c); the epoch is 1. */
uint32_t world_sync_open(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank);
/* page: the client has the page; bytes: what it brings of it, as the kernel would say it. */
uint32_t world_sync_have(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			 bool page, uint32_t bytes, uint64_t fences);
uint32_t world_put(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		   const char *key, const void *value, uint32_t bytes, uint64_t version);
uint32_t world_get(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		   const char *key, uint32_t timeout_ms, bool whole, uint64_t known);
/* ranks end with WORLD_END. */
uint32_t world_fence(struct world *w, struct world_client *cl, uint64_t id, const uint32_t *ranks,
		     uint64_t number, uint32_t timeout_ms);
/* A whole frame as a client's or (frame of node `from`) a peer's; nothing is checked before. */
void world_raw(struct world *w, struct world_client *cl, const struct hc_frame *f);
void world_peer(struct world *w, uint32_t to, uint32_t from, const struct hc_frame *f);
/* A message as if `from` had sent it. */
void world_say(struct world *w, uint32_t from, uint32_t to, const struct hc_desc *d,
	       const void *msg);

/* What the process of a rank has begun and holds. */
struct world_seat *world_seat(struct world *w, uint64_t domain, uint32_t rank);
void world_ops(struct world *w, uint64_t domain, uint32_t rank, uint64_t begun, uint32_t running);

/* Time. Everything that is due happens at its time. */
void world_advance(struct world *w, uint64_t ms);
void world_settle(struct world *w);

/* Between nodes and to the store: hold, let go, and carry by hand. */
void world_hold(struct world *w, uint32_t from, uint32_t to, bool hold);
void world_hold_none(struct world *w); /* all that is held between nodes goes on its way */
void world_store_hold(struct world *w, uint32_t node, bool hold);
bool world_carry(struct world *w, uint32_t from, uint32_t to);     /* the oldest one, held or not */
bool world_drop(struct world *w, uint32_t from, uint32_t to);      /* the oldest one is lost */
bool world_duplicate(struct world *w, uint32_t from, uint32_t to); /* carry it and keep it */
uint32_t world_on_the_way(const struct world *w, uint32_t from, uint32_t to);
/* Name of the oldest message under way, "" when there is none. */
const char *world_next_name(const struct world *w, uint32_t from, uint32_t to);

/* The record of a domain on a node, NULL when none was published. */
const struct world_record *world_record(const struct world *w, uint32_t node, uint64_t id);

/* The transcript since the last look; compared line by line, and forgotten. */
#define ck_transcript(w, want) world_transcript(w, __FILE__, __LINE__, want)
void world_transcript(struct world *w, const char *file, int line, const char *want);
void world_forget(struct world *w); /* the transcript */
/* Whether a line of the transcript holds all of the text. */
bool world_said(const struct world *w, const char *text);

/* Everything of everybody is over: nothing may be left in any core. */
void world_check_empty(struct world *w);
void world_check(struct world *w, uint32_t node); /* the invariants, now */

#define world_want(w, x)                                                                           \
	do {                                                                                       \
		if (!(x))                                                                          \
			world_broken(w, __FILE__, __LINE__, #x);                                   \
	} while (0)
_Noreturn void world_broken(struct world *w, const char *file, int line, const char *what);

#endif
