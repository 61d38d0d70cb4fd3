/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pure half of a session: requests that wait for an answer, and packets that come.
 *
 * A request gets an id, is encoded, and waits in a small hash table until the answer of that id
 * comes, in whatever order. Events are handed to the sink as they stand in the packet. There is
 * no socket, clock or lock here: conn.c moves the bytes, wait.c serialises and sleeps.
 *
 * An answer is copied into its call, since the packet's buffer is used again: into `small` when
 * it fits, so that the usual request allocates nothing, else onto the heap.
 */
#ifndef HC_PENDING_H
#define HC_PENDING_H

#include "frame.h"

struct hcomm_session;
struct hc_sleeper;

#define HC_CALL_SMALL   1280u
#define HC_SESS_BUCKETS 64u

struct hc_call {
	struct hc_call *next;
	uint32_t id;
	uint16_t want; /* the type of a good answer */
	bool waiting;  /* in the table */
	bool done;
	int outcome;      /* when done: 0 or HC_E_* */
	unsigned repeats; /* how often it was sent again */
	int fd;           /* descriptor that came with the answer, or -1 */
	const uint8_t *body;
	size_t body_len;
	uint8_t *heap;
	/* work without a waiter: called, with the session's lock held, in place of waking one;
	 * session is NULL when it is being closed */
	void (*finish)(struct hcomm_session *session, struct hc_call *call);
	struct hc_sleeper *sleeper;
	/* without a waiter: sent again over a new connection, until that time (0: never) */
	uint64_t until;
	uint8_t *frame; /* as it was sent */
	size_t frame_len;
	int pass; /* descriptor that goes with it, or -1 */
	uint8_t small[HC_CALL_SMALL];
};

struct hc_sess {
	uint16_t version; /* agreed in hello; 1 before */
	uint32_t next_id;
	uint32_t waiting;
	/* requests whose answer may bring a descriptor; one that was given up counts on, since its
	 * answer may still come */
	uint32_t carriers;
	uint64_t strays; /* answers that nobody waited for (any more) */
	struct hc_call *bucket[HC_SESS_BUCKETS];
};

/* Who is told. All are called from within hc_sess_packet or hc_sess_lost. */
struct hc_sink {
	void (*done)(void *context, struct hc_call *call);
	void (*event)(void *context, const struct hc_m_event *event);
	/* a slab that later answers speak of; fd (or -1) stays the caller's; may be NULL */
	void (*slab)(void *context, const struct hc_m_slab *slab, int fd);
	/* the same of status registers */
	void (*status_slab)(void *context, const struct hc_m_status_slab *slab, int fd);
	/* an answer that nobody waits for any more */
	void (*stray)(void *context, const struct hc_frame *frame);
	void *context;
};

void hc_sess_init(struct hc_sess *s);
void hc_call_init(struct hc_call *c, uint16_t want);
/* Free what the answer took (heap and an unclaimed descriptor), and what was kept to be sent. */
void hc_call_fini(struct hc_call *c);

/* Number and encode a request; it waits from here on. 0, BUFFER_OVERFLOW, LIMIT. */
int hc_sess_request(struct hc_sess *s, struct hc_call *c, const struct hc_desc *d, const void *msg,
		    uint8_t *buf, size_t cap, size_t *len);
/* A request whose connection was lost, for this one: its bytes get a new id. 0, VERSION. */
int hc_sess_again(struct hc_sess *s, struct hc_call *c, uint8_t *frame, size_t len);
/* Encode a message that gets no answer. */
int hc_sess_notice(struct hc_sess *s, const struct hc_desc *d, const void *msg, uint8_t *buf,
		   size_t cap, size_t *len);
/* May an answer of this type come with, or behind, a descriptor? */
bool hc_sess_carries(uint16_t want);
/* Nobody waits for it any more. */
void hc_sess_forget(struct hc_sess *s, struct hc_call *c);

/*
 * Take a packet apart. *fd (or -1) belongs to its first message; it becomes -1 when a call took
 * it, else it stays the caller's to close. 0, or MALFORMED: the connection is of no use then.
 */
int hc_sess_packet(struct hc_sess *s, const uint8_t *packet, size_t len, int *fd,
		   const struct hc_sink *sink);
/* The connection is gone: every call that waits is done with PEER_CLOSED. */
void hc_sess_lost(struct hc_sess *s, const struct hc_sink *sink);

/* Decode the answer of a call whose outcome is 0. 0 or MALFORMED. */
int hc_call_answer(const struct hc_sess *s, const struct hc_call *c, const struct hc_desc *d,
		   void *msg);
/* The refusal of a call whose outcome is not 0. False when the daemon gave none. */
bool hc_call_refusal(const struct hc_sess *s, const struct hc_call *c, struct hc_m_error *error);

/* Read the answer to hello, which is alone in its packet. 0: *m is set and spoken for;
 * VERSION: *m is set, its version is none of ours; MALFORMED; else what the daemon says, *e. */
int hc_sess_hello(const uint8_t *packet, size_t len, struct hc_m_hello_r *m, struct hc_m_error *e);

#endif
