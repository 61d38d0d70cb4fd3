/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the library share.
 *
 * A struct hcomm_session is one connection and what came through it. Its lock covers everything
 * in it but two things: `in` belongs to the thread that has the reader's role, and what hello
 * gave (info, arena) changes only while nobody reads.
 *
 * A struct hc_domain is a slot of the one table of handles (handles.c). It opens with the part
 * that op_begin and op_end use, so a handle leads to them in two loads. A slot stays in place
 * until the last session closes; whose handle does not match is not looked at further.
 *
 * fork: `stamp` says in which process a session was opened. The current stamp is kept in memory
 * that the kernel wipes in a child, so comparing needs no system call. No lock is taken before
 * that comparison: in a child it may be held for ever.
 *
 * Functions return 0 or a positive HC_E_*, whose text was left by hc_refuse; the public calls
 * return it negated.
 */
#ifndef HC_CLIENT_H
#define HC_CLIENT_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "hcomm/hcomm.h"
#include "ops.h"
#include "pending.h"
#include "slots.h"

#define HC_EXPORT __attribute__((visibility("default")))

#define HC_MS              UINT64_C(1000000)
#define HC_SECOND          UINT64_C(1000000000)
#define HC_FOREVER         UINT64_MAX
#define HC_HELLO_MS        2000u    /* first contact */
#define HC_REQUEST_MS      30000u   /* requests without a time-out of their own */
#define HC_DRAIN_MS        3605000u /* beyond the highest drain_timeout_s */
#define HC_SLACK_MS        1000u    /* the daemon answers at its deadline; give that time to come */
#define HC_SOCKET_PATH_MAX 107u
#define HC_SOCKET_DEFAULT  "/run/hcomm/hcommd.sock"
#define HC_EVENTS_MAX      1024u

/* ---- error.c ---- */
/* Leave the detail text for this thread. Returns `outcome`. */
int hc_refuse(int outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with a retry-after. */
int hc_refuse_str(int outcome, struct hc_str text, uint32_t retry_after_ms);

/* ---- env.c ---- */
enum hc_say { HC_SAY_ERROR, HC_SAY_WARN, HC_SAY_INFO, HC_SAY_DEBUG };
struct hc_env {
	char socket[HC_SOCKET_PATH_MAX + 1];
	char job[HC_NAME_MAX + 1];
	uint32_t timeout_ms; /* 0: not given */
	enum hc_say log_level;
	const char *log_file; /* NULL: standard error */
	bool disabled;
};
int hc_env_read(struct hc_env *env);
int hc_env_socket(const char *path, const char *from, char *out);

/* ---- handles.c ---- */
enum hc_phase { HC_PHASE_FREE, HC_PHASE_FORMING, HC_PHASE_LIVE, HC_PHASE_FAILED };

struct hc_domain {
	struct hc_ops_domain ops;
	uint64_t handle; /* under the table's lock; ops.handle is set only while LIVE */
	struct hcomm_session *session;  /* NULL: one rank without a daemon */
	struct hc_domain *next, **link; /* of the session */
	uint64_t id;
	struct hc_slot_link place;
	enum hc_phase phase;
	bool ending;    /* its end was asked for */
	bool attached;  /* joined by hcomm_attach: it may have been ours before */
	uint32_t asked; /* connection at which it asked to be taken back, low bits */
	uint32_t asked_seats;
	int error; /* FAILED: why */
	uint32_t rank, nranks, epoch, tag;
	struct hc_local *local;   /* stays with the slot */
	struct hc_shared *shared; /* barrier, exchange, memory; NULL before the first use */
	uint64_t stamp;           /* of a local domain: its use of the table */
	char name[HC_NAME_MAX + 1];
};

struct hc_local {             /* record and block of a one-rank domain */
	pthread_mutex_t lock; /* of what a session's lock would cover; zero is its beginning */
	struct hc_page_record record;
	struct hc_page_block block;
};

#define HC_SLOT_BITS                                                                               \
	9u /* bytes of a slot, a power of two: a handle is turned into its place by a mask */
#define HC_SLOT_BYTES (1u << HC_SLOT_BITS)
#define HC_SLOTS      65536u
static_assert(sizeof(struct hc_domain) <= HC_SLOT_BYTES, "a domain in its slot");
extern _Atomic(unsigned char *) hc_slots __attribute__((visibility("hidden")));

static inline struct hc_domain *hc_slot_at(unsigned char *slots, uint32_t offset)
{
	return (struct hc_domain *)(void *)(slots + offset);
}

/* The slot that a handle leads to, or NULL before the first one. Its handle may be another. */
static inline struct hc_domain *hc_slot(hcomm_domain handle)
{
	unsigned char *slots = atomic_load_explicit(&hc_slots, memory_order_acquire);

	if (!slots)
		return NULL;
	return hc_slot_at(slots, (uint32_t)handle & ((HC_SLOTS - 1) << HC_SLOT_BITS));
}

/* Taken once for a slot, and not there in a child. */
int hc_local_map(struct hc_local **local);

/* A user of the table more (open session, local domain) or less; the last one frees it. */
int hc_process_enter(uint64_t *stamp);
void hc_process_leave(uint64_t stamp);
/* Has this process, and not the parent that it was forked from, opened a session? */
bool hc_process_known(void);
/* Is this the process, and not a child by fork, in which `stamp` was given? */
bool hc_process_same(uint64_t stamp);

/* A slot in phase FORMING, with a handle. NO_MEMORY, LIMIT. */
int hc_domain_new(struct hcomm_session *session, struct hc_domain **d);
/* Its handle ends. The session's lock is held, if it has one. */
void hc_domain_free(struct hc_domain *d);
/* Free it by its handle, if that is still so; takes the locks. */
void hc_domain_forget(hcomm_domain handle);
/* Find the slot and lock its session. 0, GONE, FORKED. */
int hc_domain_lock(hcomm_domain handle, struct hc_domain **d);
void hc_domain_unlock(struct hc_domain *d);
/* Why a handle leads nowhere: FORKED or GONE, with its text. */
int hc_domain_lost(hcomm_domain handle);
/* Does it lead to a slot? Takes the table's lock alone. */
bool hc_domain_known(hcomm_domain handle);

/* ---- splits.c ---- */
/*
 * A rank of this process splits its domain: which split of it that is, from 1. `busy` is the handle
 * that waits for it, HC_SPLIT_WAITS for a thread. 0, INVALID: one is under way, NO_MEMORY. Over:
 * its number when it is decided for this rank, so that the next one is counted; 0 when it is not.
 */
#define HC_SPLIT_WAITS 1u /* no handle */
int hc_split_enter(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t *number);
void hc_split_leave(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t over);
void hc_split_forget(uint64_t id, uint32_t rank);
void hc_splits_drop(void); /* in a child by fork */

/* ---- the session ---- */
struct hc_slab {
	struct hc_slab *next;
	const struct hc_page_record *records;
	uint32_t index; /* first slot / HC_SLAB_RECORDS */
	dev_t device;
	ino_t inode;
};

struct hc_status_slab { /* registers of channels */
	struct hc_status_slab *next;
	const struct hc_page_register *registers;
	uint32_t index; /* first slot / HC_STATUS_SLAB */
	dev_t device;
	ino_t inode;
};

struct hc_seats { /* the seats of a domain with several ranks here, kept for the session */
	struct hc_seats *next;
	struct hc_ops_seat seat[];
};

struct hc_arena {
	struct hc_arena *next; /* of an earlier connection; tokens may still point into it */
	struct hc_page_block *blocks;
	uint32_t count;
	int fd; /* for the next hello; -1: it is of no use any more */
	dev_t device;
	ino_t inode;
};

struct hc_queued; /* event.c */

struct hc_sleeper {
	pthread_cond_t cond;
	struct hc_sleeper *next, **link;
	bool events; /* waits for events, not for an answer */
};

struct hcomm_session {
	uint64_t stamp;
	pthread_mutex_t lock;
	int fd; /* -1: disconnected */
	bool reading;
	bool plain;    /* the reader takes no descriptors */
	uint32_t held; /* requests that wait for such a reader to end */
	bool connecting;
	bool taking;         /* connected, but domains are still being taken back */
	uint32_t again;      /* requests of that which are not answered */
	uint64_t generation; /* +1 at each connection */
	uint64_t retry_at;   /* not connecting before that time */
	uint64_t dice;
	uint32_t pause_ms; /* doubled at each attempt in vain */
	struct hc_sess sess;
	struct hc_sleeper *sleepers;
	struct hc_call *aside; /* requests that wait for the next connection; aside.c */

	struct hc_env env;
	char socket[HC_SOCKET_PATH_MAX + 1];
	char node[HC_NAME_MAX + 1], build[HC_NAME_MAX + 1];
	uint32_t start, uid, connect_timeout_ms;
	uint64_t number, incarnation;
	bool registered; /* for membarrier */
	bool fence;

	struct hc_arena *arenas;
	struct hc_arena *arena; /* of this and the next connection, or NULL */
	struct hc_slab *slabs;
	struct hc_seats *seats;
	struct hc_domain *domains;
	struct hc_shared *shared; /* those of all domains, also of ended ones that are in use */
	uint32_t fetching;        /* long values on their way */
	pthread_cond_t turn;      /* one of them has come */
	struct hc_status_slab *status_slabs;
	bool status_lost;            /* one came and could not be mapped */
	struct hc_channel *channels; /* chan.h */
	struct hc_ops_hooks hooks;

	hcomm_event_fn event_fn;
	void *event_context;
	struct hc_queued *first_event, **last_event;
	uint32_t events; /* queued */
	uint32_t events_lost;
	int poll_fd, wake_fd; /* hcomm_fd: an epoll set, and an eventfd for events read by others */

	int log_fd;
	uint8_t out[HC_PACKET_MAX];
	uint8_t in[HC_PACKET_MAX];
};

/* FORKED in a child, INVALID for NULL, else 0; takes no lock. */
int hc_session_check(const struct hcomm_session *s);
void hc_note(struct hcomm_session *s, enum hc_say level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Copy a struct to a caller whose size, its first member, may be smaller or larger than ours. */
void hc_give(void *to, const void *from, size_t bytes);

/* ---- conn.c: one connection; no lock ---- */
uint64_t hc_now(void);
/* `ms` from now; saturates. */
uint64_t hc_deadline(uint64_t ms);

struct hc_greeting {           /* what hello gave */
	struct hc_m_hello_r m; /* without its strings */
	char node[HC_NAME_MAX + 1], build[HC_NAME_MAX + 1];
	int fd;    /* the connection */
	int arena; /* descriptor, or -1 */
	bool fence;
};
/* Connect and say hello until `deadline`; `arena` is that of an earlier connection, or -1.
 * NO_DAEMON, TIMEOUT, VERSION, PERMISSION, MALFORMED, INVALID: the arena is refused, ... */
int hc_conn_open(const char *path, const char *job, bool fence, int arena, uint64_t deadline,
		 struct hc_greeting *g);
/* A packet, at most until `deadline` (0: what is there now). Returns its length and *fd (or -1);
 * 0: the other end closed; -HC_E_TIMEOUT. */
int hc_conn_recv(int fd, uint8_t *buf, size_t cap, uint64_t deadline, int *got);
/* The same for the usual answer, without descriptors: those that come are lost. At most a second;
 * -HC_E_AGAIN when it passed. */
int hc_conn_recv_plain(int fd, uint8_t *buf, size_t cap);
/* 0, PEER_CLOSED, TIMEOUT, SYSTEM. `pass` is a descriptor to send along, or -1. */
int hc_conn_send(int fd, const uint8_t *buf, size_t len, int pass, uint64_t deadline);
/* Takes the descriptor when it succeeds. */
int hc_arena_map(int fd, uint32_t blocks, struct hc_arena **arena);
bool hc_arena_is(const struct hc_arena *a, int fd);
void hc_arena_free(struct hc_arena *a, bool mapped);

/* ---- wait.c: calls; the lock is held on entry and exit unless said otherwise ---- */
struct hc_request {
	const struct hc_desc *desc;
	const void *msg;
	int pass; /* descriptor to send along, or -1 */
	uint64_t deadline;
	uint32_t connect_ms; /* how long to wait for a daemon; 0: until the deadline */
};
#define HC_REPEATS 3u /* of a request whose connection was lost, unless its caller forbids it */
/* May an attempt to connect be made now? */
bool hc_wait_may_connect(const struct hcomm_session *s);
/* One attempt to connect. */
int hc_wait_connect(struct hcomm_session *s, uint64_t deadline);
/* Connected, by connecting anew if need be. NO_DAEMON, ... */
int hc_wait_ready(struct hcomm_session *s, uint64_t deadline);
/* Send; the call waits from here on. */
int hc_call_start(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q);
/* Until the call is done. 0, or its refusal with its text. */
int hc_call_wait(struct hcomm_session *s, struct hc_call *c, uint64_t deadline);
/* hc_wait_ready, hc_call_start, hc_call_wait; takes and gives back the lock. hc_call_fini is
 * the caller's. A lost connection repeats all of it: c->repeats says how often. */
int hc_call_run(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q);
/* The same with the lock held. */
int hc_call_repeat(struct hcomm_session *s, struct hc_call *c, const struct hc_request *q);
/* The outcome of a call that is done, its text left behind. */
int hc_call_outcome(struct hcomm_session *s, struct hc_call *c);
/* Send a message that has no answer, if that is possible at once. */
void hc_send_notice(struct hcomm_session *s, const struct hc_desc *d, const void *msg);
/* Read once, at most until `deadline`; the role is free on entry. `brief`: for an answer that comes
 * soon and without a descriptor. 0, TIMEOUT, PEER_CLOSED. */
int hc_wait_read(struct hcomm_session *s, uint64_t deadline, bool brief);
/* Sleep until woken by the reader. 0 or TIMEOUT. */
int hc_wait_sleep(struct hcomm_session *s, struct hc_sleeper *me, uint64_t deadline);
/* The same on a condition of one's own, for what no packet brings: never offered the role. */
int hc_wait_apart(struct hcomm_session *s, pthread_cond_t *cond, uint64_t deadline);
void hc_wait_pass_on(struct hcomm_session *s);
/* A packet and its descriptor (-1: none), over the connection that there is; see hc_conn_send. */
int hc_wait_send(struct hcomm_session *s, const uint8_t *packet, size_t len, int pass,
		 uint64_t deadline);
/* End the connection; the next call makes a new one. */
void hc_wait_drop(struct hcomm_session *s, const char *why);
/* For close: calls without a waiter are finished with no session, others are nobody's. */
struct hc_sink hc_wait_quiet(void);

/* Was hcommd restarted? Connect again, if that can be done at once; true when we are connected to
 * the daemon of that start number. No lock. */
bool hc_session_touch(struct hcomm_session *s, uint32_t start);

/* ---- status.c ---- */
/* Why a domain is not ACTIVE, from its record; "" when it does not say. */
void hc_record_cause(const struct hc_page_record *r, uint64_t id, char *out, size_t size);
/* ---- aside.c: requests without a waiter, sent again; the lock is held ---- */
/* Keep a copy of a request that is about to be sent. */
int hc_aside_keep(struct hc_call *c, const uint8_t *frame, size_t len, int pass);
/* Its connection was lost. False: it was not kept, or was sent often and long enough. */
bool hc_aside_put(struct hcomm_session *s, struct hc_call *c);
void hc_aside_send(struct hcomm_session *s, uint64_t deadline);
/* What has waited for too long has failed. */
void hc_aside_expire(struct hcomm_session *s);
void hc_aside_drop(struct hcomm_session *s); /* at close */

/* ---- event.c ---- */
void hc_event_queue(struct hcomm_session *s, const struct hc_m_event *e);
void hc_event_join_end(struct hcomm_session *s, struct hc_domain *d, int error, const char *text);
/* The end of an acquire without a waiter; `rank` and `domain` are the caller's. */
void hc_event_channel(struct hcomm_session *s, hcomm_channel channel, hcomm_domain domain,
		      uint32_t rank, int error, const char *text);
void hc_events_free(struct hcomm_session *s);
/* The poll set follows a new connection. */
void hc_event_watch(struct hcomm_session *s);

/* ---- join.c; more in join.h ---- */
/* After a new connection: every domain asks to be taken back, and nothing else is sent before all
 * have their answer. */
void hc_join_again(struct hcomm_session *s, uint64_t deadline);
/* All blocks go over to another arena, which the daemon gave instead of ours. */
void hc_join_move(struct hcomm_session *s, struct hc_arena *to);
/* A slab that came before the answer that speaks of it. */
void hc_join_slab(struct hcomm_session *s, const struct hc_m_slab *slab, int fd);
/* A late answer to a join that was given up: leave what it joined. */
void hc_join_stray(struct hcomm_session *s, const struct hc_frame *f);

/* ---- channels; more in chan.h ---- */
/* The table goes, or is a parent's. */
void hc_chans_drop(bool child);
/* A slab of registers came. */
int hc_chan_slab(struct hcomm_session *s, uint32_t index, int fd);
/* The register of a channel, or NULL. */
const struct hc_page_register *hc_chan_register(const struct hcomm_session *s, uint64_t id,
						uint32_t slot);
void hc_chan_slabs_free(struct hcomm_session *s, bool mapped);
/* The handle of a channel by its id, or 0. */
hcomm_channel hc_chan_by_id(const struct hcomm_session *s, uint64_t id);
/* The domain's handle ends, and those of its channels with it. */
void hc_chans_end(struct hc_domain *d);
/* The domain is over: so are its channels, whose handles stay. */
void hc_chans_over(struct hc_domain *d);
/* After a new connection: tell of what was released meanwhile. */
void hc_chans_again(struct hcomm_session *s);
/* For close: nothing is left, nobody is told. */
void hc_chans_close(struct hcomm_session *s);

#endif
