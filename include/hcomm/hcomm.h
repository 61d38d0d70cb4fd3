/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm: the client library of the communication-domain daemon hcommd.
 *
 * A session connects a process to the daemon of its node. Through it the process becomes a rank
 * of domains (communicators), marks the operations that it runs, and hears what happens to the
 * others. The library moves no payload of collectives itself.
 *
 * Rules that hold for every call
 *   Return      0 or a negative HCOMM_E_*; hcomm_last_error() has the detail of the calling
 *               thread: what, which rank, node or setting, value found, value wanted.
 *   Structs     start with `uint32_t size`, set by the caller (HCOMM_INIT does it); they only
 *               grow at the end, and a shorter one of an older caller is honoured.
 *   Handles     are 64-bit values with a generation. An old one is answered with HCOMM_E_GONE.
 *   Time-outs   are milliseconds: HCOMM_DEFAULT takes HCOMM_TIMEOUT_SEC, else the daemon's
 *               setting; HCOMM_START (0) starts the work, returns HCOMM_E_IN_PROGRESS, and an
 *               event ends it.
 *   Threads     any thread may call, unless said otherwise. One waiter at a time reads the
 *               socket and hands answers to the others. No library threads, no signal handlers,
 *               no global constructors, no exit. SIGPIPE never reaches the host.
 *   Events      are delivered only inside hcomm_dispatch, with no lock held; any call but
 *               hcomm_close is allowed there.
 *   fork        a child gets HCOMM_E_FORKED, without a system call; it may open its own session.
 *   "blocking"  may wait for the daemon, at most until its time-out.
 *   "later"     declared so that hosts can be written against it; returns
 *               HCOMM_E_NOT_SUPPORTED in this version and does nothing.
 */
#ifndef HCOMM_H
#define HCOMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCOMM_VERSION_MAJOR 0
#define HCOMM_VERSION_MINOR 1
#define HCOMM_VERSION_PATCH 0
#define HCOMM_VERSION                                                                              \
	((HCOMM_VERSION_MAJOR << 16) | (HCOMM_VERSION_MINOR << 8) | HCOMM_VERSION_PATCH)

#define HCOMM_DEFAULT         (-1) /* time-out: the configured one */
#define HCOMM_START           0    /* time-out: do not wait */
#define HCOMM_ANY_DEVICE      0xffffffffu
#define HCOMM_NO_RANK         0xffffffffu
#define HCOMM_UNKNOWN         0xffffffffu /* retry-after is not known */
#define HCOMM_ROOT_INFO_BYTES 4108        /* fits HcclRootInfo */
#define HCOMM_NAME_BYTES      128         /* with the NUL */
#define HCOMM_TEXT_BYTES      1024        /* with the NUL */

/* Set `size` and zero the rest: struct hcomm_join j = HCOMM_INIT(struct hcomm_join); */
#define HCOMM_INIT(type)                                                                           \
	{                                                                                          \
		.size = (uint32_t)sizeof(type)                                                     \
	}

/* ---- errors: the rows of proto/errors.tbl.h ---- */
enum hcomm_error {
	HCOMM_OK = 0,
	HCOMM_E_INVALID = -1,
	HCOMM_E_NOT_SUPPORTED = -2,
	HCOMM_E_NO_DAEMON = -3,
	HCOMM_E_VERSION = -4,
	HCOMM_E_PERMISSION = -5,
	HCOMM_E_TIMEOUT = -6,
	HCOMM_E_IN_PROGRESS = -7,
	HCOMM_E_AGAIN = -8,
	HCOMM_E_NOT_READY = -9,
	HCOMM_E_GONE = -10,
	HCOMM_E_NOT_FOUND = -11,
	HCOMM_E_EXISTS = -12,
	HCOMM_E_LIMIT = -13,
	HCOMM_E_MISMATCH = -14,
	HCOMM_E_LINK_UNAVAILABLE = -15,
	HCOMM_E_DEVICE_OFFLINE = -16,
	HCOMM_E_RESOURCE_EXHAUSTED = -17,
	HCOMM_E_BUFFER_OVERFLOW = -18,
	HCOMM_E_SUSPENDED = -19,
	HCOMM_E_DAMAGED = -20,
	HCOMM_E_ABORTED = -21,
	HCOMM_E_PEER_LOST = -22,
	HCOMM_E_FORKED = -23,
	HCOMM_E_MALFORMED = -24,
	HCOMM_E_STALE = -25,
	HCOMM_E_BUSY = -26,
	HCOMM_E_SYSTEM = -27,
	HCOMM_E_NO_MEMORY = -28,
	HCOMM_E_PORT_IN_USE = -29,
	HCOMM_E_STORAGE = -30,
	HCOMM_E_INTERNAL = -31,
	HCOMM_E_FORCED = -32,
	HCOMM_E_PEER_CLOSED = -33
};

/* Short text, name ("HCOMM_E_TIMEOUT") of an error; fixed strings, never NULL. */
const char *hcomm_error_string(int error);
const char *hcomm_error_name(int error);
/* What it means and what to do, a sentence or two; never NULL. */
const char *hcomm_error_explain(int error);
/* The same outcome as HcclResult and as ncclResult_t; unknown values give the "internal" one. */
int hcomm_to_hccl(int error);
int hcomm_to_nccl(int error);
/* Detail of the last call of this thread that failed, also when open failed. Valid until the
 * thread's next call. Never NULL; "" after none. */
const char *hcomm_last_error(void);
/* After HCOMM_E_AGAIN in this thread: milliseconds to wait, or HCOMM_UNKNOWN. */
uint32_t hcomm_retry_after(void);

/* ---- version ---- */
/* "0.1.0"; and HCOMM_VERSION of the library that runs. */
const char *hcomm_version(void);
uint32_t hcomm_version_number(void);
/* 0 if a program built with `built_with` (its HCOMM_VERSION) can use this library, else
 * HCOMM_E_VERSION; the text says which side to upgrade. */
int hcomm_check_version(uint32_t built_with);

/* ---- session ---- */
struct hcomm_session;

struct hcomm_open_args {
	uint32_t size;
	uint32_t timeout_ms; /* of the first contact; 0 = 2,000 */
	const char *socket;  /* NULL = HCOMM_SOCKET, else /run/hcomm/hcommd.sock */
	const char *job;     /* job tag; NULL = HCOMM_JOB_ID */
	uint32_t flags;      /* 0 */
};

/*
 * Connect. `args` may be NULL. Blocking. The caller owns *session until hcomm_close.
 * NO_DAEMON (also with HCOMM_DISABLE=1), TIMEOUT ("socket there, daemon does not answer"),
 * VERSION, PERMISSION, INVALID (a bad environment variable: named with its value; a socket path
 * of more than 107 bytes), NO_MEMORY, SYSTEM.
 */
int hcomm_open(const struct hcomm_open_args *args, struct hcomm_session **session);
/* Close, and free all of it: descriptors, mappings, memory. NULL is fine. Ranks that were not
 * left stay members (detached) while the process lives. No other thread may be in a call. */
void hcomm_close(struct hcomm_session *session);
/* Descriptor to poll for reading; when readable call hcomm_dispatch. -1 while disconnected. When
 * dispatch says PEER_CLOSED the descriptor is of no more use: call dispatch now and then (it
 * connects again as soon as it can, not before) and ask for the descriptor anew. */
int hcomm_fd(struct hcomm_session *session);
/* Wait at most timeout_ms (0: do not wait) for messages and deliver the events that have come.
 * Returns the number of events delivered, or an error (PEER_CLOSED, NO_DAEMON, FORKED). */
int hcomm_dispatch(struct hcomm_session *session, int timeout_ms);
/* One round trip through the daemon's core. Blocking. */
int hcomm_ping(struct hcomm_session *session, int timeout_ms);

struct hcomm_session_info {
	uint32_t size;
	uint32_t start; /* start number of the daemon */
	uint64_t session;
	uint64_t incarnation;
	uint32_t uid;   /* of this process, as the daemon sees it */
	uint32_t fence; /* 1: references without locked instructions */
	uint32_t protocol;
	char node[HCOMM_NAME_BYTES];
	char build[HCOMM_NAME_BYTES]; /* of the daemon */
	char socket[HCOMM_NAME_BYTES];
};
int hcomm_session_get(struct hcomm_session *session, struct hcomm_session_info *info);

/* ---- domain ---- */
typedef uint64_t hcomm_domain; /* 0 is never a handle */

enum hcomm_state { /* the words domain_state of proto/words.tbl.h */
		   HCOMM_FORMING = 1,
		   HCOMM_PROBING = 2,
		   HCOMM_ACTIVATING = 3,
		   HCOMM_ACTIVE = 4,
		   HCOMM_SUSPENDED = 5,
		   HCOMM_DAMAGED = 6,
		   HCOMM_DRAINING = 7,
		   HCOMM_DESTROYED = 8,
		   HCOMM_FAILED = 9
};

struct hcomm_root_info {
	uint8_t bytes[HCOMM_ROOT_INFO_BYTES]; /* opaque; ship it to all ranks as it is */
};

struct hcomm_config { /* wishes of a domain; NULL = defaults */
	uint32_t size;
	uint32_t priority;  /* scheduling class 0..7, default 0 */
	uint32_t weight;    /* 1..100, default 1 (0 = default) */
	uint32_t shared;    /* 1: the device may be used by several processes that all say so */
	const char *name;   /* at most 127 bytes, unique for its owner on a node; NULL = derived */
	const char *server; /* join_table: the own server where the table has several */
	/* Channels that the domain is to have from its first moment: `channels` from each rank to
	 * the next (the last to the first), each with this bandwidth. Had whole, or the domain is
	 * not made: wait 1 queues until the time-out, 0 is answered AGAIN with retry-after. */
	uint32_t channels, channel_mbps, channel_hold_ms, channel_wait;
};

/* Way 1. Rank 0 asks for a root info; all ranks join with it. nranks 0: the first joiner says it.
 * Blocking. LIMIT, PERMISSION, NO_DAEMON. */
int hcomm_root_info(struct hcomm_session *session, uint32_t nranks,
		    const struct hcomm_config *config, struct hcomm_root_info *info);
/*
 * Become `rank` of `nranks` with `device` (or HCOMM_ANY_DEVICE). Blocking until the domain is
 * ACTIVE; the same (rank, process) again gets the same domain. With HCOMM_START *domain is valid
 * at once and an event JOIN_DONE or JOIN_FAILED ends it.
 * One rank alone (nranks == 1) needs no daemon: session may be NULL.
 * TIMEOUT names the missing ranks, the setting, its value and origin; MISMATCH; BUSY names the
 * holder of the rank; DEVICE_OFFLINE lists the devices here; GONE (expired); INVALID.
 */
int hcomm_join(struct hcomm_session *session, const struct hcomm_root_info *info, uint32_t nranks,
	       uint32_t rank, uint32_t device, const struct hcomm_config *config, int timeout_ms,
	       hcomm_domain *domain);
/*
 * Way 2. Become `rank` of the rank table at `path` (HCCL 1.0, 1.2, 2.0). The library reads the
 * file and passes its contents; while its status is "initializing" it watches the file until the
 * deadline. As hcomm_join, and NOT_READY; INVALID has the file's fault with line and column.
 */
int hcomm_join_table(struct hcomm_session *session, const char *path, uint32_t rank,
		     const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain);
/* Way 5. This process takes the listed devices (count 0: all of the node), rank i the i-th.
 * One handle stands for all ranks; operations name the rank by hcomm_op_begin_rank. */
int hcomm_join_all_local(struct hcomm_session *session, const uint32_t *devices, uint32_t count,
			 const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain);

/* Way 3. An agent makes a domain for others: create, add_device for each rank, activate; each
 * rank's process then attaches by the domain's name (or id in hexadecimal). Blocking. */
int hcomm_create(struct hcomm_session *session, uint32_t nranks, const struct hcomm_config *config,
		 uint64_t *id);
int hcomm_add_device(struct hcomm_session *session, uint64_t id, uint32_t rank, uint32_t device);
int hcomm_activate(struct hcomm_session *session, uint64_t id, int timeout_ms);
int hcomm_attach(struct hcomm_session *session, const char *name, uint32_t rank,
		 const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain);

/* Way 4. All listed ranks of `parent` call it with the same list and sub_id; the index in the
 * list is the new rank. A list that differs fails at once on every rank, naming who differed. */
int hcomm_sub(hcomm_domain parent, const uint32_t *ranks, uint32_t count, uint64_t sub_id,
	      const struct hcomm_config *config, int timeout_ms, hcomm_domain *domain);
/* Every rank of `parent` calls it; equal colours form a domain, ranked by (key, parent rank).
 * color < 0: in none; then *domain is 0 and the call succeeds. The ranks split in turn, one call
 * at a time; each rank's calls are counted, and only calls of one number make groups together. A
 * call that fails without a verdict (a timeout, a lost connection) is tried again by the next one.
 * HCOMM_E_MISMATCH: the others are beyond this split, and what it gave is known no more, or is
 * complete with another colour of this rank. It counts as over; let all ranks split again. */
int hcomm_split(hcomm_domain parent, int32_t color, int32_t key, const struct hcomm_config *config,
		int timeout_ms, hcomm_domain *domain);
/*
 * Many sub-domains in one call: each item is what hcomm_sub takes, and all ranks of this process
 * that its list names join it, under one handle; so it serves a process that is one rank of
 * `parent` and one that is several. Every item gets its handle and result (0 or HCOMM_E_*); the
 * call returns 0 when all are ACTIVE, else the error of the first that is not, whose text names
 * the item. The others stay. No event DOMAIN_ACTIVE comes for them. Blocking (HCOMM_START:
 * NOT_SUPPORTED). An item may list 4,096 ranks at most.
 */
struct hcomm_batch_item {
	uint32_t size;         /* the same in all items of a call */
	uint32_t count;        /* of ranks */
	const uint32_t *ranks; /* of the parent; the index is the new rank */
	uint64_t sub_id;
	const char *name;    /* at most 127 bytes; NULL = derived */
	hcomm_domain domain; /* out; 0 where the item failed */
	int result;          /* out */
};
int hcomm_batch(hcomm_domain parent, struct hcomm_batch_item *items, uint32_t count,
		int timeout_ms);

/* Changes of members. later */
int hcomm_grow(hcomm_domain domain, uint32_t nranks, int timeout_ms, struct hcomm_root_info *info);
int hcomm_shrink(hcomm_domain domain, const uint32_t *ranks, uint32_t count, int timeout_ms);
int hcomm_replace(hcomm_domain domain, uint32_t rank, uint32_t device, int timeout_ms);
int hcomm_rebuild(hcomm_domain domain, const struct hcomm_config *config, int timeout_ms,
		  hcomm_domain *successor);
/* Explicit suspension. later */
int hcomm_suspend(hcomm_domain domain, int timeout_ms);
int hcomm_resume(hcomm_domain domain, int timeout_ms);

/* This rank leaves in order: waits for its own references, then frees the handle. The last one
 * out destroys; it is not a loss. FORCED: left, but references remained. Blocking. */
int hcomm_leave(hcomm_domain domain, int timeout_ms);
/* End the whole domain (owner or admin): waits for the cut, at most timeout_ms (HCOMM_DEFAULT =
 * drain_timeout_s), then releases by force (FORCED; the text names who held on). Blocking. */
int hcomm_destroy(hcomm_domain domain, int timeout_ms);
/* The same by id or name, for those who are no member. */
int hcomm_destroy_named(struct hcomm_session *session, uint64_t id, const char *name,
			int timeout_ms);
/* This rank gives up at once; the others are told `reason`, their domain is DAMAGED. */
int hcomm_abort(hcomm_domain domain, const char *reason);

struct hcomm_status {
	uint32_t size;
	enum hcomm_state state;
	uint64_t id;
	uint32_t epoch;
	uint32_t number; /* state number */
	uint32_t nranks;
	uint32_t rank;          /* own, or HCOMM_NO_RANK */
	uint32_t arrived;       /* while forming */
	uint32_t local;         /* 1: a one-rank domain without a daemon */
	uint32_t missing_count; /* of missing[] */
	uint32_t missing[64];   /* first ranks that have not come */
	char name[HCOMM_NAME_BYTES];
	char cause[HCOMM_TEXT_BYTES]; /* why it is not ACTIVE */
};
/* From the shared page while the domain lives (not blocking); asks the daemon while forming and
 * for the reason of an ended one. */
int hcomm_status_get(hcomm_domain domain, struct hcomm_status *status);
/* Blocking; by id or name, no member needed. */
int hcomm_by_name(struct hcomm_session *session, uint64_t id, const char *name,
		  struct hcomm_status *status);
int hcomm_rank(hcomm_domain domain, uint32_t *rank);
int hcomm_nranks(hcomm_domain domain, uint32_t *nranks);
struct hcomm_member {
	uint32_t size;
	uint32_t rank, device, pid, uid;
	char state[HCOMM_NAME_BYTES], node[HCOMM_NAME_BYTES], address[HCOMM_NAME_BYTES];
};
/* Up to *count members; *count becomes the number there are. BUFFER_OVERFLOW when more. Blocking.
 */
int hcomm_members(hcomm_domain domain, struct hcomm_member *members, uint32_t *count);
/* later */
int hcomm_set_heartbeat(hcomm_domain domain, uint32_t interval_ms, uint32_t misses);

/* ---- events ---- */
/* The words event_code of proto/words.tbl.h; further ones may come. */
enum hcomm_event_code {
	HCOMM_EV_DOMAIN_FORMING = 1,   /* its ranks begin to come */
	HCOMM_EV_DOMAIN_ACTIVE = 2,    /* it can be used, perhaps again */
	HCOMM_EV_DOMAIN_DAMAGED = 3,   /* a rank is lost; leave or destroy it */
	HCOMM_EV_DOMAIN_DRAINING = 4,  /* it is being ended, or changed */
	HCOMM_EV_DOMAIN_DESTROYED = 5, /* it has ended in order */
	HCOMM_EV_DOMAIN_FAILED = 6,    /* it could not be made */
	HCOMM_EV_RANK_DIED = 7,        /* its process has exited */
	HCOMM_EV_RANK_LEFT = 8,        /* in order */
	HCOMM_EV_RANK_ABORTED = 9,     /* it cannot go on; `text`: why */
	HCOMM_EV_RANK_DETACHED = 10,   /* its session has ended, the process lives */
	HCOMM_EV_FORCED_RELEASE = 11,  /* of references that a process held */
	HCOMM_EV_DAEMON_STARTED = 12,  /* also after a restart */
	HCOMM_EV_DAEMON_STOPPED = 13,
	HCOMM_EV_CONFIG_RELOADED = 14,
	HCOMM_EV_CONFIG_REFUSED = 15,   /* the new one is wrong, the old one stays */
	HCOMM_EV_JOIN_DONE = 16,        /* of a join with HCOMM_START */
	HCOMM_EV_JOIN_FAILED = 17,      /* `error` and `text`: why */
	HCOMM_EV_DOMAIN_SUSPENDED = 18, /* it waits; `text`: for which node */
	HCOMM_EV_DOMAIN_ORPHANED = 19,  /* no process of it is left */
	HCOMM_EV_STORAGE_LOST = 20,     /* the database cannot be written */
	HCOMM_EV_STORAGE_BACK = 21,
	HCOMM_EV_CHANNEL_GRANTED = 22,
	HCOMM_EV_CHANNEL_REFUSED = 23, /* `error` and `text`: why */
	HCOMM_EV_CHANNEL_REVOKED = 24,
	HCOMM_EV_CHANNEL_YIELD = 25,    /* a higher class waits for what you hold */
	HCOMM_EV_NODE_UP = 26,          /* its daemon is connected; `node`: which */
	HCOMM_EV_NODE_RESTARTED = 27,   /* its daemon was, its state is intact */
	HCOMM_EV_NODE_REBORN = 28,      /* its daemon came back without its state */
	HCOMM_EV_NODE_HOLD = 29,        /* its daemon restarts as planned */
	HCOMM_EV_DAEMON_DOWN = 30,      /* it has ended; node and paths live */
	HCOMM_EV_NODE_UNREACHABLE = 31, /* nothing is heard of it on any path */
	HCOMM_EV_NODE_REFUSED = 32,     /* it or this node refuses; `text`: why */
	HCOMM_EV_PATH_NORMAL = 33,      /* proven in both directions */
	HCOMM_EV_PATH_CONGESTED = 34,   /* its ports are nearly full */
	HCOMM_EV_PATH_UNSTABLE = 35,    /* not to be used; `text`: why */
	HCOMM_EV_PATH_DOWN = 36,        /* nothing passes; `text`: since when */
	HCOMM_EV_PATH_HELD_OUT = 37,    /* it works, but flapped too often */
	HCOMM_EV_MTU_MISMATCH = 38,     /* the ends differ, or large packets vanish */
	HCOMM_EV_NOT_SCHEDULED = 39,    /* the daemon itself stood still */
	HCOMM_EV_PORT_CHANGED = 40,     /* a network port of this node */
	HCOMM_EV_MESSAGES_LOST = 41,    /* for a node that was away for too long */
	HCOMM_EV_SETTING_DIFFERS = 42 /* of this node and the domain's home; `text`: which counts */
};
struct hcomm_event {
	uint32_t size;
	uint32_t code;       /* enum hcomm_event_code */
	uint64_t id;         /* domain id */
	hcomm_domain domain; /* handle of this process, or 0 */
	enum hcomm_state state;
	uint32_t epoch, number;
	uint32_t rank; /* concerned, or HCOMM_NO_RANK */
	uint32_t pid;
	uint32_t lost; /* events dropped before this one because they were not read */
	int error;     /* JOIN_FAILED, CHANNEL_REFUSED: why */
	char node[HCOMM_NAME_BYTES];
	char text[HCOMM_TEXT_BYTES];
	uint64_t channel; /* CHANNEL_*: handle of this process, or 0 */
};
typedef void (*hcomm_event_fn)(const struct hcomm_event *event, void *context);
/* One function for a session; NULL ends it. Events of the domains that the session is in. */
int hcomm_on_event(struct hcomm_session *session, hcomm_event_fn fn, void *context);
/* Also events of domain `id` (0: all that the caller may see) without being a member. Blocking. */
int hcomm_subscribe(struct hcomm_session *session, uint64_t id, int on);

/* ---- operations ---- */
enum hcomm_op_kind { /* the words op_kind of proto/words.tbl.h */
		     HCOMM_OP_ALL_REDUCE = 1,
		     HCOMM_OP_BROADCAST = 2,
		     HCOMM_OP_REDUCE = 3,
		     HCOMM_OP_ALL_GATHER = 4,
		     HCOMM_OP_REDUCE_SCATTER = 5,
		     HCOMM_OP_ALL_TO_ALL = 6,
		     HCOMM_OP_GATHER = 7,
		     HCOMM_OP_SCATTER = 8,
		     HCOMM_OP_BARRIER = 9,
		     HCOMM_OP_OTHER = 10,
		     HCOMM_OP_SEND = 11,
		     HCOMM_OP_RECV = 12
};
#define HCOMM_OP_NOWAIT 1u /* SUSPENDED or DRAINING for a change: return instead of waiting */

struct hcomm_op { /* opaque; lives with the caller from begin to end */
	uint64_t private_[2];
};
/*
 * Take a reference before an operation, and return it after. op_begin of one domain is called by
 * one thread at a time (it numbers the collectives); op_end by any thread, with the token of the
 * begin. Neither makes a system call while the domain is ACTIVE.
 * SUSPENDED, DAMAGED, ABORTED, GONE: refused, no reference is held. A second op_end of one token
 * is HCOMM_E_INVALID where it can be seen.
 */
int hcomm_op_begin(hcomm_domain domain, enum hcomm_op_kind kind, uint64_t bytes, uint32_t flags,
		   struct hcomm_op *op);
int hcomm_op_begin_rank(hcomm_domain domain, uint32_t rank, enum hcomm_op_kind kind, uint64_t bytes,
			uint32_t flags, struct hcomm_op *op);
int hcomm_op_end(struct hcomm_op *op);
/* Switch the flight recorder of a domain. later */
int hcomm_op_record(hcomm_domain domain, int on);

/* ---- sync ---- */
/* All ranks of the domain meet: nobody returns before everybody has called (a handle of several
 * ranks counts for all of them). One thread of a handle at a time. Blocking (HCOMM_START: INVALID);
 * on one node without the daemon, which gives the shared page at the first barrier. TIMEOUT names
 * the ranks that have not come; the barrier is spent: only leave or destroy make sense then, or
 * the same call again, which goes on with it, as after SUSPENDED. DAMAGED, ABORTED (say who), GONE
 * (a rank left, or the domain ends), MALFORMED (a rank wrote nonsense into the page),
 * NOT_SUPPORTED (ranks on several nodes; in this version). */
int hcomm_barrier(hcomm_domain domain, int timeout_ms);

/* ---- exchange: a key-value table for each domain, of one epoch ---- */
#define HCOMM_VALUE_BYTES 32768u /* of one value */
/* Put (or replace) a value; the daemon copies it. Keys: 1 to 127 bytes, printable, no blank;
 * those that begin with "hcomm/" are the library's. The library keeps a copy, and puts it again
 * after a restart of the daemon. Blocking. INVALID, LIMIT (names the quota), DAMAGED, GONE. */
int hcomm_put(hcomm_domain domain, const char *key, const void *value, uint32_t bytes);
/* Get it, waiting until somebody has put it. *bytes: room, then the length; BUFFER_OVERFLOW when
 * the room is too small. TIMEOUT names the key; with HCOMM_START a missing key is NOT_FOUND.
 * DAMAGED, GONE also end the wait. */
int hcomm_get(hcomm_domain domain, const char *key, void *value, uint32_t *bytes, int timeout_ms);
/* All ranks call it; behind it each sees what any had put before. One thread of a handle at a
 * time. Blocking (HCOMM_START: INVALID). TIMEOUT names who is missing, DAMAGED who died. */
int hcomm_fence(hcomm_domain domain, int timeout_ms);

/* ---- memory: who has registered what, kept in the exchange ---- */
enum hcomm_memory_kind { HCOMM_MEM_HOST = 1, HCOMM_MEM_HBM = 2, HCOMM_MEM_DDR = 3 };
/* Say that [address, address + bytes) of this rank can be reached with `key`. EXISTS names the
 * range that overlaps, LIMIT. */
int hcomm_mem_register(hcomm_domain domain, void *address, uint64_t bytes,
		       enum hcomm_memory_kind kind, uint64_t key);
/* The key of the range of `rank` that holds all of [address, address + bytes); NOT_FOUND says
 * which rank's table lacks which range. Answered from what was read before where that holds the
 * range, so one that was unregistered may be found until the next miss. */
int hcomm_mem_lookup(hcomm_domain domain, uint32_t rank, uint64_t address, uint64_t bytes,
		     uint64_t *key);
/* `address` as it was registered. NOT_FOUND. */
int hcomm_mem_unregister(hcomm_domain domain, void *address);

/* ---- channels ---- */
/*
 * A channel joins two ranks of a domain: a share of a link that the daemon grants, rings in shared
 * memory for the data, and a status register. Both ranks call acquire and name each other: the
 * call that comes first asks for the grant; the k-th call of the one and the k-th of the other
 * hold the two ends of one channel. Sending may begin before the other end is there. Either side's
 * release, death or leaving ends the channel for both.
 *
 * When there is not enough: `wait` queues the call until its time-out; else it is refused with
 * AGAIN, hcomm_retry_after() says when the same call will succeed (or HCOMM_UNKNOWN), the place is
 * kept until a second past that, and hcomm_last_error() says who holds what.
 */
typedef uint64_t hcomm_channel; /* 0 is never a handle */

enum hcomm_link_type { /* the words link_type of proto/words.tbl.h */
		       HCOMM_LINK_ANY = 0,
		       HCOMM_LINK_HCCS = 1,
		       HCOMM_LINK_SIO = 2,
		       HCOMM_LINK_PCIE = 3,
		       HCOMM_LINK_ROCE = 4,
		       HCOMM_LINK_IB = 5,
		       HCOMM_LINK_ETH = 6,
		       HCOMM_LINK_SHM = 7
};
enum hcomm_channel_state { /* the words channel_state of proto/words.tbl.h */
			   HCOMM_CHANNEL_OK = 1,
			   HCOMM_CHANNEL_CONGESTED = 2,
			   HCOMM_CHANNEL_SWITCHED = 3, /* it goes over another path since */
			   HCOMM_CHANNEL_DOWN = 4,     /* no path at present */
			   HCOMM_CHANNEL_REVOKED =
				   5 /* over: its other end, rank or domain is gone */
};
#define HCOMM_CHANNEL_GRANT_ONLY 1u       /* the caller moves the data itself: any link, no rings */
#define HCOMM_CHANNEL_FROM       2u       /* `rank` says whose end; for a handle of several ranks */
#define HCOMM_CHANNEL_BYTES_MAX  1048576u /* of one message */

struct hcomm_channel_args {
	uint32_t size;
	uint32_t peer; /* rank */
	uint32_t
		bandwidth_mbps; /* share of the link to the peer, MB/s; 0: only a virtual channel */
	uint32_t hold_ms;       /* how long it will be held; 0 = not known */
	uint32_t wait;          /* 1: queue until the time-out, 0: answer at once */
	uint32_t path_type;     /* enum hcomm_link_type */
	uint32_t back_mbps;     /* share of the way back */
	uint32_t flags;         /* HCOMM_CHANNEL_* */
	uint32_t rank;          /* with HCOMM_CHANNEL_FROM */
	uint32_t buffer_bytes;  /* room each way, 4 KiB to 16 MiB; 0 = 256 KiB */
};
/*
 * Blocking. With `wait` and HCOMM_START: returns IN_PROGRESS, *channel is valid, and an event
 * CHANNEL_GRANTED or CHANNEL_REFUSED ends it; a granted channel that is not used (any call with
 * its handle) within grant_ttl_s goes back.
 * AGAIN (see above); TIMEOUT; LINK_UNAVAILABLE (no link that could ever carry it; between nodes
 * also one that is not GRANT_ONLY, in this version); LIMIT (names the quota); MISMATCH (the two
 * ends want different things: both values); INVALID; DAMAGED, GONE.
 */
int hcomm_channel_acquire(hcomm_domain domain, const struct hcomm_channel_args *args,
			  int timeout_ms, hcomm_channel *channel);
/* All or nothing; wait, hold_ms and the caller's rank are those of the first, whose handle is that
 * of the event where one ends it. At most 1,024. */
int hcomm_channel_acquire_gang(hcomm_domain domain, const struct hcomm_channel_args *args,
			       uint32_t count, int timeout_ms, hcomm_channel *channels);
int hcomm_channel_release(hcomm_channel channel);
/*
 * Send a message of 0 to HCOMM_CHANNEL_BYTES_MAX bytes; receive the next one. One sender and one
 * receiver at a time for each end. Blocking, no system call while both sides run. HCOMM_START
 * tries once: AGAIN when there is no room, or no message; BUFFER_OVERFLOW for a message larger than
 * the whole buffer, which can only be sent by waiting. A send that fails has delivered nothing. A
 * second thread on one end is BUSY. recv: *bytes is the room, then the length; BUFFER_OVERFLOW
 * leaves the message where it is. PEER_LOST: the channel is over (revoked)
 * and, for recv, what had come before was delivered; MALFORMED: the other side wrote nonsense
 * into the rings, the channel is of no more use.
 */
int hcomm_channel_send(hcomm_channel channel, const void *data, uint32_t bytes, int timeout_ms);
int hcomm_channel_recv(hcomm_channel channel, void *data, uint32_t *bytes, int timeout_ms);
/* 0 when a message can be received, AGAIN (HCOMM_START) or TIMEOUT, or as recv. */
int hcomm_channel_poll(hcomm_channel channel, int timeout_ms);
/* The status register: enum hcomm_channel_state in the low 8 bits, above it a generation that
 * counts its changes. From a shared page, not blocking. */
int hcomm_channel_status(hcomm_channel channel, uint32_t *status);
struct hcomm_channel_info {
	uint32_t size;
	uint32_t rank, peer;
	uint32_t path_type; /* enum hcomm_link_type of the link it was given */
	uint32_t bandwidth_mbps, back_mbps;
	uint32_t virtual_channel, service_level, dscp;
	uint32_t carries;      /* 1: send and recv work on it */
	uint32_t buffer_bytes; /* each way */
	uint32_t latency_us;   /* of the link, 0 = not known */
	uint64_t id;           /* as in hcommctl channel list */
	char link[HCOMM_NAME_BYTES];
};
int hcomm_channel_info(hcomm_channel channel, struct hcomm_channel_info *info);

/* ---- topology and health. later ---- */
int hcomm_bandwidth(hcomm_domain domain, uint32_t source, uint32_t destination, uint64_t *mbps);
int hcomm_route(hcomm_domain domain, uint32_t source, uint32_t destination, char *text,
		size_t bytes);
struct hcomm_advice {
	uint32_t size;
	uint32_t algorithm;
	uint32_t root;
	double predicted_us;
	char why[HCOMM_TEXT_BYTES];
};
int hcomm_advise(hcomm_domain domain, enum hcomm_op_kind kind, uint64_t bytes,
		 struct hcomm_advice *advice);
struct hcomm_health {
	uint32_t size;
	uint32_t healthy;
	uint32_t running;
	uint32_t stragglers;
	char last_error[HCOMM_TEXT_BYTES];
};
int hcomm_health_get(hcomm_domain domain, struct hcomm_health *health);

/* ---- operators ---- */
struct hcomm_filter { /* NULL = all */
	uint32_t size;
	uint32_t since_s; /* events: only the last so many seconds; 0 = all */
	uint64_t id;      /* only this domain; 0 = all */
	const char *name; /* only this name; NULL = all */
	uint32_t limit;   /* rows at most; 0 = all */
};
/* Called for each row: a struct of hcomm/views.h for `view`, valid during the call. Return 0 to go
 * on; any other value ends the query, which returns it. */
typedef int (*hcomm_row_fn)(const void *row, void *context);
/* Rows of a view (HCOMM_VIEW_* of hcomm/views.h). A list that changes between pages is read again
 * from the start up to 3 times before a row was delivered; later changes end in STALE. Blocking. */
int hcomm_query(struct hcomm_session *session, uint32_t view, const struct hcomm_filter *filter,
		hcomm_row_fn fn, void *context);
/* An operator's word: "reload", "log-level" with its argument, "drain". Blocking. `answer` may be
 * NULL. PERMISSION, INVALID. drain: returns when no domain is left; TIMEOUT: some are, after
 * drain_timeout_s; IN_PROGRESS: another drain ended the wait. The node takes no new domains (AGAIN)
 * until "drain" with the argument "off", or a restart. */
int hcomm_admin(struct hcomm_session *session, const char *verb, const char *argument,
		int timeout_ms, char *answer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
