/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core holds. Private to daemon/core.
 *
 * A domain is two objects. Its *home* (one in the cluster) decides: who has come, the epoch, the
 * state, the end. Its *part* (one on each node with members) knows the processes of this node,
 * publishes the state record and talks to clients. The two exchange the messages 100.. of
 * proto/messages.tbl.h and nothing else, also when they are on one node: then the message goes
 * through the core's own ring instead of the network.
 *
 * A *process* is (pid, start time); a *session* is one connection of it. A *seat* is a rank of a
 * part, bound to a process. Death is told of processes, detachment of sessions.
 *
 *        session --> process --> seats --> part ==messages==> home --> places (rank -> who)
 *
 * Most domains are ACTIVE and nothing happens to them, and there may be very many. Such a home or
 * part is *at rest*: it has only what it is known by. What matters only while it forms, changes,
 * is damaged or ends, and its place in lists and timers, is its *busy* side, taken when it is
 * first wanted and given back at rest. For the same reason places share what they know of a
 * process (hc_who), and what is sampled of a seat stands apart from it (hc_reading).
 *
 * Work that touches many ranks is a set of `work` bits on the part (or a process that is being
 * reaped) with a cursor; core.c runs it in slices. A ring message is taken only when no such
 * work is left, so what a part tells its ranks is always the state that it holds.
 */
#ifndef HC_STATE_H
#define HC_STATE_H

#include "admit.h"
#include "core.h"
#include "hash.h"
#include "table.h"
#include "timers.h"

#define HC_PART_NAME  128u /* with the NUL */
#define HC_CAUSE_MAX  384u /* with the NUL; longer causes are cut */
#define HC_SELF_NODE  0u
#define HC_RING_BYTES (512u * 1024u)
#define HC_RING_SPARE (16u * 1024u) /* room that a request may need */

/* Channels that a domain is to begin with, from each rank to the next. */
struct hc_wish {
	uint32_t channels, mbps, hold_ms;
	uint8_t wait;
};
#define HC_WISH_OF(m)                                                                              \
	((struct hc_wish){(m)->channels, (m)->channel_mbps, (m)->channel_hold_ms,                  \
			  (m)->channel_wait})

/* What a uid has, see user.h. */
struct hc_user {
	uint32_t uid;
	uint32_t held[2];    /* by enum hc_hold */
	uint32_t charged[2]; /* domains, by enum hc_charge */
	uint32_t waits;      /* clients that wait for the exchange of a domain of it */
	uint64_t memory;     /* bytes */
};

/* A process of this node that has a session or holds a seat. */
struct hc_process {
	uint64_t started;
	uint32_t pid, uid;
	uint32_t sessions;    /* open ones */
	struct hc_list seats; /* links: core->seat_links */
	uint32_t reap_left;   /* seats that are still to be looked at */
	bool dead, reaping;
	bool unwatched; /* a row named it, and the shell is not yet asked to watch it */
};

struct hc_session {
	uint64_t id; /* 0 = free slot */
	uint32_t process;
	uint16_t proto;
	uint8_t role;
	bool fence, subscribed;
	uint64_t watching;     /* domain of one extra subscription, 0 = none */
	uint32_t mark;         /* told already in this round of a notification */
	uint64_t slabs;        /* slabs whose descriptor it has, a bit each */
	uint64_t status_slabs; /* the same of status registers */
	uint32_t block_hint;
	uint32_t seats;
	uint64_t requests;
	uint64_t events_lost; /* as the shell told last */
	uint64_t *blocks;     /* bitmap of the arena, in session_blocks */
	char build[48], job[48];
};

struct hc_device {
	struct hc_device_fact fact;
	uint32_t holder; /* a process that uses it, HC_NONE = nobody */
	uint32_t users;  /* seats on it; of them: */
	uint32_t held;   /* of the holder */
	uint32_t idle;   /* that no process has attached to */
	uint32_t alone;  /* that do not share it */
};

/* A rank on this node. */
struct hc_seat {
	uint32_t part;
	uint32_t process; /* HC_NONE while nobody is attached */
	uint32_t block;
	uint32_t session_serial; /* hc_seat_session(): high and low half */
	uint16_t session_slot;
	uint16_t rank, device;
	uint8_t state; /* HC_W_member_state_* */
	uint8_t flags;
};
/* What was last read of its operations; of a seat with SEAT_READ, under the seat's number. */
struct hc_reading {
	uint64_t begun;
	uint32_t running;
	uint32_t since_s; /* when the present operation was first seen running, core seconds */
	uint8_t op_kind;
};
#define HC_SESSIONS_MAX 65536u /* slots fit into a seat */
#define HC_RANKS_MAX    65536u
#define HC_DEVICE_LAST  65534u
enum {
	SEAT_WAITS = 1,   /* a join request waits for its answer: hc_part_wait */
	SEAT_SAMPLED = 2, /* read in this round */
	SEAT_LEAVING = 4, /* a leave request waits for its references */
	SEAT_SHARED = 8,
	SEAT_DEVICE = 16, /* it holds its device */
	SEAT_BATCH = 32,  /* with WAITS: the request is the number of an item of a batch */
	SEAT_PAGE = 64,   /* its process has the sync page */
	SEAT_READ = 128,  /* it has a hc_reading */
};

enum hc_work {                   /* of a part, done in this order */
	       WORK_SCAN = 1,    /* ask for a sample of every seat */
	       WORK_JOINED = 2,  /* answer the joins that wait */
	       WORK_NOTIFY = 4,  /* tell the sessions of the seats, and the subscribers */
	       WORK_FAIL = 8,    /* refuse the joins that wait */
	       WORK_CLOSE = 16,  /* let the seats go, then the part */
	       WORK_ARRIVE = 32, /* while forming: tell the home of the seats once more */
};

/* This node's side of a domain. Its number is also the slot of its state record. */
struct hc_part {
	uint64_t id; /* 0 until the home's first word */
	uint64_t key_a, key_b;
	uint32_t uid;
	uint32_t epoch, number, nranks;
	uint32_t seats, nseats; /* first seat, how many */
	uint32_t reuse;         /* of the slot */
	uint32_t name;          /* of core->names, HC_NONE */
	uint32_t cause;         /* cell of core->causes, HC_NONE */
	uint32_t busy;          /* of core->part_busy, HC_NONE at rest */
	uint32_t home_node;
	uint8_t order, state, priority, weight;
	bool published;
	bool kept;           /* rows of this part itself are stored, or on their way */
	bool away;           /* SUSPENDED on our own word: its home cannot be reached */
	bool orphan : 1;     /* its home is lost: it ends here by itself */
	bool first_home : 1; /* rank 0 is on the home's node, as it said when the epoch began */
	uint32_t home_life;
	uint32_t roll;     /* serial of the table that its ranks here had, 0 = none that is known */
	uint32_t since_ds; /* of the present state, as it was heard here; tenths of a second */
};

enum hc_part_step { PART_NOTHING, PART_PREPARING };

#define HC_MISSING 16u /* ranks that have not come, as other nodes than the home are told them */
struct hc_part_busy {
	uint32_t part;
	uint32_t cursor;
	uint64_t list_a, list_b; /* while forming: of the first joiner here, 0 = none */
	uint64_t odd_a, odd_b;   /* of another one here, where they differ, 0 = none; */
	uint32_t odd_rank;       /* that one */
	struct hc_wish wish;     /* of the first, as its limit */
	uint32_t timeout_ms;
	uint64_t parent;                                 /* of a sub-domain */
	bool prepared;                                   /* while activating: reserved and stored */
	uint32_t arrived, nmissing, missing[HC_MISSING]; /* while forming, once the home told it */
	bool told;
	uint64_t cut;
	uint64_t stored;  /* PERSIST number that is waited for */
	uint32_t samples; /* seats that are being read */
	uint32_t cause_rank, cause_pid;
	uint32_t event_rank, event_pid, event_node; /* whom the notification under way names */
	uint16_t cause_kind, code;                  /* code: outcome for the joins that fail */
	uint16_t event; /* HC_W_event_code_* of the notification under way */
	uint8_t work, step;
	uint8_t cut_set; /* enum hc_page_cut */
	bool queued, draining, cut_wait, reported, drained;
	bool quiet;          /* made by a batch: that it is ACTIVE is told by the answer alone */
	bool formed;         /* it has just become ACTIVE: written down once its ranks know */
	struct hc_list asks; /* leave requests that wait; links: ask_links */
	uint32_t requests;   /* of core->seat_requests: what its seats wait for, in their order;
				HC_NONE */
	uint8_t requests_order;
};

/* A process as homes know it, of any node. Number 0 is nobody. */
struct hc_who {
	uint64_t key; /* node << 32 | pid */
	uint64_t started;
	uint32_t pid, node;
	uint32_t life;   /* of the node, when it came */
	uint32_t places; /* that say so */
};

/* A rank as its home knows it. */
struct hc_place {
	uint32_t who;
	uint16_t device;
	uint8_t state;    /* HC_W_member_state_* */
	uint8_t told : 2; /* of a death: 0 new, 1 told, 2 told by an earlier daemon */
	bool heard : 1;   /* its node has answered in this round */
	bool gave_up : 1; /* expected again: it had come, and went at its own deadline */
};
/* How long a rank that has come waits for the others, in milliseconds. */
struct hc_patience {
	uint32_t limit; /* deadline after the home's first arrival; HC_NONE = the home's */
	uint32_t asked; /* the limit that its caller gave, 0 = none */
};

enum hc_home_step { /* what the home waits for */
		    HOME_NOTHING,
		    HOME_PREPARING,  /* PREPARED of `pending` nodes */
		    HOME_COMMITTING, /* the stored row, then COMMIT */
		    HOME_DAMAGING,   /* the stored row, then STATE if that was not sent at once */
		    HOME_CUTTING,    /* CUT_REPORT of `pending` nodes */
		    HOME_DRAINING,   /* DRAIN_REPORT of `pending` nodes */
		    HOME_ENDING,     /* the deleted row, then GONE */
		    HOME_OVER,       /* answers to those who wait for its end, then nothing */
};

struct hc_home {
	uint64_t id;
	uint64_t since; /* of the present state */
	uint64_t row;   /* PERSIST number of the row of its commit */
	uint32_t uid, epoch, number, nranks, arrived;
	uint32_t places;
	uint32_t name, cause;
	uint32_t busy; /* of core->home_busy, HC_NONE at rest */
	uint32_t roll; /* serial of the table that its ranks had, 0 = none that is known */
	uint8_t order, state, step, priority, weight;
	bool lost, leaving;
	uint8_t across; /* channels between its nodes: see channel_again.c */
};

struct hc_home_busy {
	uint32_t home;
	uint32_t pending;
	/* while it forms */
	uint64_t key_a, key_b, list_a, list_b;
	uint64_t parent;   /* of a sub-domain: id, 0 = it is none */
	uint64_t first;    /* first arrival */
	uint64_t tell_at;  /* who is missing, to other nodes; 0 = nothing new */
	bool afar;         /* a rank of another node has come */
	uint32_t patience; /* of the places, HC_NONE */
	uint8_t patience_order;
	bool staged;
	bool keyed; /* made by the first arrival: gone with the last */
	bool quiet; /* made by a batch, which is told and logged as one */
	/* later */
	bool wish_end; /* a destroy came while something was being stored */
	uint8_t left_kind;
	uint16_t cause_kind, end_code;
	uint32_t cause_rank, cause_pid;
	uint64_t deadline; /* drain, orphan; while forming computed from the places */
	uint64_t stored;   /* PERSIST number that is waited for */
	uint64_t cut;
	uint32_t gone;   /* places that left or died */
	uint32_t untold; /* deaths that were not told yet */
	bool node_lost;  /* all that were on a node, which was not told yet */
	bool said;       /* that it is DAMAGED is in the log and the journal */
	uint32_t wish_timeout_ms, wish_uid;
	struct hc_list asks; /* tickets of those who wait for the end or the activation */
	/* of the last drain report with references */
	uint32_t left_rank, left_pid, left, left_age_s;
	uint64_t left_number;
};

/* The name of a part or home. */
struct hc_name {
	uint64_t key; /* of the owner's uid and the text */
	uint32_t owner;
	char text[HC_PART_NAME];
};

/*
 * Somebody who waits for an answer that comes later. A client: session and request, named by its
 * ticket. At a home: the ticket of a client and its node. At a part: a rank that leaves.
 */
#define HC_ASKED_BYTES 80u
struct hc_ask {
	uint64_t ticket; /* generation << 32 | number */
	uint64_t session;
	uint64_t deadline; /* of a leave */
	uint64_t stored;   /* PERSIST number that the answer waits for */
	uint32_t request;
	uint32_t rank; /* of a leave */
	uint32_t node; /* that is to answer, or (at a home) that asked */
	uint32_t life; /* of the one that is to answer, when it was asked */
	bool leaves;   /* for a rank that is out in any case */
	/* what was asked, to be asked again of one that begins anew; NULL = nothing to repeat */
	const struct hc_desc *question;
	_Alignas(8) uint8_t asked[HC_ASKED_BYTES];
	bool active; /* at a home: for the activation, not for the end */
};

/* A split at the home of its parent: what each rank has said. */
#define HC_GATHERS 256u
struct hc_voice {
	uint64_t ticket, number; /* number: as in split */
	uint32_t node, sorted;
	int32_t color, key;
	bool here, due; /* due: it is to be answered */
};
enum hc_gather_state { GATHER_FREE, GATHER_OPEN, GATHER_ANSWERING, GATHER_KEPT };
struct hc_gather {
	uint64_t parent;
	uint64_t serial;
	uint32_t number; /* which split of the parent, 0 = none of its ranks counts them */
	uint32_t epoch, nranks, count, first, cursor;
	uint32_t due;         /* answers */
	uint8_t order, state; /* enum hc_gather_state */
	uint16_t code;        /* of the answers: 0, or why there is no group */
	char text[256];
};

/*
 * A request for many sub-domains; see part_batch.c. An item's number is batch * HC_BATCH_ITEMS +
 * its index: what a seat of it has for a request.
 */
#define HC_BATCHES     1024u /* at most; not more than sessions */
#define HC_BATCH_ITEMS 1024u
struct hc_batch_item {
	uint64_t id;   /* of its domain, once it is ACTIVE */
	uint32_t part; /* its number */
	uint16_t code; /* why it failed */
	bool over;     /* its outcome is known */
};
struct hc_batch {
	uint64_t session, parent;
	uint32_t request, epoch, timeout_ms;
	uint32_t items, next, over; /* how many, taken up, ended */
	uint32_t rank_at;           /* ranks of the items taken up */
	struct hc_arr rest, ranks;  /* items not taken up yet; all ranks; in batch_bytes */
	uint32_t failed;            /* the first item that failed, HC_NONE */
	char text[256];             /* why the first item that failed did */
};

/* What the last rank tables of this node said of their ranks: names for those who do not come. */
#define HC_ROLLS 32u
struct hc_roll_entry {
	uint64_t hash;             /* of all that was said */
	struct hc_addr addr, host; /* of the device; host_ip of its server */
	uint32_t device;
	char server[36];
};
struct hc_roll {
	uint64_t hash[2];
	uint32_t nranks, filled; /* of another node's table they come one after another */
	uint32_t serial;
};

/* An ended domain whose reason is kept. */
struct hc_ended {
	uint64_t id;
	uint64_t at;
	uint32_t uid, epoch, nranks;
	uint32_t home; /* node */
	uint8_t state;
	char name[HC_PART_NAME];
	char cause[HC_CAUSE_MAX];
};

/* The sync page of a part, by its number; see sync.h. */
enum hc_sync_state { SYNC_NONE, SYNC_OPEN /* the shell holds it, too */, SYNC_GIVEN };
struct hc_sync {
	uint32_t epoch, bytes;
	uint8_t state; /* enum hc_sync_state */
};

/* At a part: a client that waits for its home's exchange. */
struct hc_wait {
	uint64_t ticket;  /* 0 = free */
	uint64_t session; /* 0: it has gone, and the home is still to hear of it */
	uint64_t domain;
	uint32_t request, home, uid;
};

/* The exchange of a domain at its home; see exchange.h. It is there once anything was put. */
#define HC_CELL_BYTES 1024u
struct hc_entry {
	uint64_t version;
	uint32_t exch, bytes, first; /* first: cell */
	uint16_t cells;
	char key[HC_NAME_MAX + 1];
};
enum hc_waiter_kind { WAITER_GET, WAITER_FENCE };
struct hc_waiter {
	uint64_t ticket, known; /* known: of a get its version, of a fence its number */
	uint32_t exch, node;
	uint16_t code; /* of its answer, once it is ready */
	uint8_t kind;  /* enum hc_waiter_kind */
	bool whole, ready;
	bool brief; /* a get that would not wait, of a key that may be put again any moment */
	char key[HC_NAME_MAX + 1];
};
struct hc_exch {
	uint64_t id; /* 0 = free */
	uint64_t bytes, fences;
	uint32_t uid, epoch, nranks;
	struct hc_list entries, waiters;
	uint32_t ready;       /* waiters whose answer is to go out */
	uint32_t came, calls; /* ranks that are in the fence; calls[] of it, HC_NONE */
	uint8_t order;
	bool over;
	char text[256]; /* why the waiters that are ready failed */
};

/* The node takes no new domains; see drain.h. */
struct hc_drain {
	bool on;
	uint32_t homes, parts; /* those below these numbers are still to be looked at */
	uint64_t session;      /* who waits, 0 = nobody */
	uint32_t request;
	uint64_t until;
};

#define HC_NODES_ALONE 1024u /* of a core that has no peers of its own, and is told of nodes */
/*
 * A node that something was heard of, by number; 0 is this one. Itself, its peers, and as many that
 * were its peers: domains name them, so none is forgotten.
 */
static inline uint32_t hc_node_max(const struct hc_limits *lim)
{
	return lim->peers ? 2 * lim->peers + 1 : HC_NODES_ALONE;
}

struct hc_known_node {
	uint8_t id[16];
	uint32_t peer; /* of core->net, HC_NONE */
	char name[HC_NAME_MAX + 1];
	uint64_t digest;    /* of the domains that are shared with it; see digest.h */
	uint64_t sum_after; /* while they are compared: the last that was sent */
	uint32_t sum_round;
	bool summing;
	/* see away.h */
	uint64_t incarnation; /* 0: it was never connected */
	uint64_t away_since;
	uint32_t life; /* of what it has; what is of an earlier one is lost */
	uint16_t lost_kind;
	bool away, given_up;
	char why[160];
	/* a row names it, and it has not been connected since: away from then on */
	uint64_t expect_until;
	bool expected;
	/* see again.h */
	bool again;
	uint32_t again_at;
};

struct hc_core {
	struct hc_limits lim;
	struct hc_self self;
	struct hc_settings set;
	uint64_t now;
	bool at_rest; /* the last step left nothing to do: only timers are to be looked at */
	struct hc_out *out;
	struct hc_hash_key rng;
	uint64_t rng_count;

	struct hc_session *sessions;
	uint64_t *session_blocks;
	uint32_t nsessions;
	struct hc_list watchers; /* sessions that subscribed; links: session_links */
	struct hc_links session_links;

	struct hc_user *users;
	struct hc_pool user_pool;
	struct hc_index user_index; /* by uid */

	struct hc_process *processes;
	struct hc_pool process_pool;
	struct hc_index process_index;
	uint32_t process_last;         /* that was found */
	struct hc_list reaping;        /* links: process_links */
	uint32_t watch_from, watch_to; /* processes among which some are unwatched */
	struct hc_links process_links;

	struct hc_device *devices;
	uint32_t ndevices;

	struct hc_link_fact *link_facts; /* by number; see link.h */
	uint32_t nlinks;                 /* numbers that were given out */
	struct hc_admit *admit;
	struct hc_channels *chan; /* see channel.h */
	struct hc_wish *wishes;   /* by number of the home; zero = none */

	struct hc_part *parts;
	struct hc_pool part_pool;
	struct hc_index part_by_id, part_by_key;
	struct hc_index part_by_name; /* of names */
	struct hc_part_busy *part_busy;
	struct hc_pool part_busy_pool;
	struct hc_seat *seats;
	struct hc_reading *readings;
	struct hc_spans seat_spans;
	struct hc_links seat_links;
	uint32_t *seat_requests; /* of seats that wait: ids, or numbers of items */
	struct hc_spans seat_request_spans;
	/* of busy sides: */
	struct hc_list work; /* parts with work; links: work_links */
	struct hc_links work_links;

	struct hc_home *homes;
	struct hc_pool home_pool;
	struct hc_index home_by_id;
	struct hc_index home_by_key;    /* of busy sides, while they form */
	struct hc_index home_by_parent; /* the same of sub-domains */
	struct hc_index home_by_name;   /* of names */
	struct hc_home_busy *home_busy;
	struct hc_pool home_busy_pool;
	struct hc_place *places;
	struct hc_spans place_spans;
	struct hc_patience *patience;
	struct hc_spans patience_spans;
	struct hc_who *whos;
	struct hc_pool who_pool;
	struct hc_index who_index;
	uint32_t who_last; /* that was asked for */
	/* of busy sides: */
	struct hc_list
		storing; /* homes, and domains_max + parts, that wait for their row, in order */
	struct hc_links store_links;
	struct hc_list over; /* homes that are HOME_OVER; links: store_links */

	struct hc_list
		departed; /* asks of ranks that left, in order of `stored`; links: ask_links */

	struct hc_ask *asks;
	struct hc_pool ask_pool;
	uint32_t ask_generation;
	struct hc_links ask_links;

	struct hc_name *names;
	struct hc_pool name_pool;
	char (*causes)[HC_CAUSE_MAX];
	struct hc_pool cause_pool;

	struct hc_gather *gathers;
	struct hc_voice *voices;
	struct hc_spans voice_spans;
	uint32_t gather_serial; /* of this start */
	uint32_t answering;     /* gathers whose answers go out */

	struct hc_batch *batches;
	struct hc_batch_item *batch_items; /* HC_BATCH_ITEMS of each */
	uint8_t *batch_bytes;              /* HC_PACKET_MAX of each: their requests */
	struct hc_pool batch_pool;
	struct hc_list
		batching; /* with items not taken up, or with an answer; links: batch_links */
	struct hc_links batch_links;
	uint32_t *rank_place; /* of a rank of the parent in an item, + 1; zero between uses */

	struct hc_roll *rolls;              /* what tables said of their ranks */
	struct hc_roll_entry *roll_entries; /* HC_ROLLS x ranks_per_domain */
	uint32_t roll_serial;               /* of the last one */

	struct hc_seek *seeks; /* joins whose home is not there yet; see seek.h */
	struct hc_pool seek_pool;
	struct hc_list seeking; /* links: seek_links */
	struct hc_links seek_links;
	uint32_t seek_next; /* of a round over all of them, HC_NONE */

	struct hc_ended *ended;
	uint32_t ended_at, ended_count;

	struct hc_sync *syncs; /* by number of the part */
	struct hc_wait *waits;
	struct hc_pool wait_pool;
	struct hc_index wait_by_session;
	struct hc_list wait_drops; /* of sessions that have gone; links: wait_links */
	struct hc_links wait_links;
	uint32_t wait_generation;

	struct hc_exch *exchs;
	struct hc_pool exch_pool;
	struct hc_index exch_by_id;
	struct hc_list exch_over; /* links: exch_links */
	struct hc_links exch_links;
	struct hc_entry *entries;
	struct hc_pool entry_pool;
	struct hc_index entry_by_key;
	struct hc_links entry_links;
	uint8_t (*cells)[HC_CELL_BYTES];
	uint32_t *cell_next; /* of a value, + 1 */
	struct hc_pool cell_pool;
	struct hc_waiter *waiters;
	struct hc_pool waiter_pool;
	struct hc_index waiter_by_key, waiter_by_ticket;
	struct hc_links waiter_links;
	struct hc_list waiters_ready;   /* links: waiter_links */
	struct hc_timers waiter_timers; /* by number of the waiter */
	uint32_t *fence_calls;          /* by rank: waiter + 1 */
	struct hc_spans fence_spans;

	struct hc_timers timers; /* busy sides of homes, of parts, then gathers, then the drain */

	struct hc_net *net;
	struct hc_known_node *nodes;
	uint32_t nnodes;
	uint32_t *node_mark, node_round; /* nodes met in this round of hc_home_each_node */
	uint32_t *row_nodes; /* of a row that is being read: its nodes by their number in it */
	uint32_t sums;       /* nodes to which pages of a comparison go */
	uint32_t agains;     /* nodes that begin anew with this one */
	uint32_t mark;       /* of the round of notifications under way */
	uint64_t away_at;    /* next node to be given up, HC_NEVER */
	uint32_t sweep;      /* next domain to be looked at, while `sweeping` */
	bool sweeping;

	uint8_t *ring; /* messages to this node itself */
	uint32_t ring_head, ring_used;

	uint8_t *taken;   /* HC_RING_BYTES: the message of the ring that is being handled */
	uint8_t *scratch; /* HC_OUT_BYTES: an array or row in the making */

	uint64_t persist_seq, persisted; /* last number given, last one stored */
	uint64_t kept;         /* last number that is in the database, HC_NEVER when all are */
	uint32_t tell_storage; /* sessions that are still to hear of it, by slot */
	uint64_t member_changes, domain_changes, session_changes;
	uint64_t requests, refused;
	bool started;
	struct hc_drain drain;
	uint32_t nactive, nforming, nsuspended, ndamaged, nseats;
	uint32_t nfar; /* parts of other homes */
};

/* A message of another node to a home or part of this one. */
void hc_core_message(struct hc_core *c, uint32_t node, const struct hc_frame *f);

/* How lists and timers that are for both call the busy side of a part. */
static inline uint32_t hc_part_busy_number(const struct hc_core *c, const struct hc_part *p)
{
	return c->lim.domains + p->busy;
}
static inline uint64_t hc_seat_session(const struct hc_seat *s)
{
	return (uint64_t)s->session_serial << 32 | s->session_slot;
}
static inline struct hc_home *hc_home(struct hc_core *c, uint32_t number)
{
	hc_assert(number < c->home_pool.cap);
	return &c->homes[number];
}
static inline struct hc_part *hc_part(struct hc_core *c, uint32_t number)
{
	hc_assert(number < c->part_pool.cap);
	return &c->parts[number];
}
static inline uint32_t hc_home_number(const struct hc_core *c, const struct hc_home *h)
{
	return (uint32_t)(h - c->homes);
}
static inline uint32_t hc_part_number(const struct hc_core *c, const struct hc_part *p)
{
	return (uint32_t)(p - c->parts);
}

#endif
