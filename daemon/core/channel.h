/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: who holds which share of which link, between which two ranks.
 *
 * A *channel* is one piece of a request of the admission (admit.h), with two ends. A *want* is a
 * call that is not answered yet, or the ticket of one that was refused. Its pieces point to ends of
 * channels: new ones that it asked for, or the far ends of channels that the other rank asked for
 * first. It is answered when all of them are granted and stored.
 *
 *   channel   WAITING --the admission grants--> GRANTED --an end goes--> ENDING --told--> free
 *   want      WAITING --nothing is missing--> STORING --rows put--> ANSWERING --rows stored--> free
 *             TICKET  --comes back, or expires--> free
 *
 * Pairing: channels of two ranks with an end that nobody has taken stand in a list, oldest first;
 * a call takes the first that lacks an end of its rank, else it asks for a new one. When the asker
 * goes while it waits, the far end that waits with it takes its request over.
 *
 * The end comes with either rank's release, death or leaving, or with the domain's, never with a
 * lost session. What was held is free at once; registers, events and rows follow in slices.
 * Who was given an end and does not open it within grant_ttl loses the channel.
 *
 * channel.c       life of a channel: made, granted, opened, ended; the slices of that work
 * channel_want.c  calls: waiting, answered, failed; tickets
 * channel_text.c  who holds what; events in words
 * channel_ask.c   the same, from the client's words on
 * channel_home.c  what a domain begins with
 * channel_gang.c  calls that reach other nodes: through the home, in two phases
 * channel_order.c the same at the home
 * channel_back.c  taking channels back after a restart
 * channel_again.c two ends on two nodes of which one was restarted
 */
#ifndef HC_CHANNEL_H
#define HC_CHANNEL_H

#include "admit.h"
#include "state.h"

enum hc_channel_state { CHANNEL_FREE, CHANNEL_WAITING, CHANNEL_GRANTED, CHANNEL_ENDING };
enum hc_channel_why {
	WHY_RELEASED,
	WHY_DIED,
	WHY_LEFT,
	WHY_ABORTED,
	WHY_DOMAIN, /* damaged or gone */
	WHY_LAPSED,
	WHY_RINGS,     /* lost with an earlier daemon */
	WHY_WITHDRAWN, /* the call that it was for */
	WHY_PEER,      /* told by another node */
};

/* Bits of ends, for side 0; side 1: << 2. As channel_row says them. */
#define END_GIVEN          1u
#define END_COLLECTED      2u
#define END_BIT(bit, side) ((uint8_t)((bit) << (2 * (side))))

struct hc_channel {
	uint64_t id; /* 0 = free; drawn, never used again */
	uint64_t domain, since;
	uint64_t session[2]; /* that the end was given to */
	uint32_t epoch, uid, part;
	uint32_t request, piece; /* of the admission; HC_NONE: given back, or none of this node's */
	uint32_t next;           /* of the same request, + 1 */
	uint32_t rank[2];        /* side 0 asked for it */
	uint32_t mbps[2];        /* from side 0 to 1, and back */
	uint32_t want[2];        /* the call that waits with it, HC_NONE */
	uint32_t pair;           /* in whose list it stands, HC_NONE */
	uint32_t buffer, hold_ms, link, vc;
	uint32_t why_rank, why_pid;
	uint8_t path_type, flags, state, ends, why, priority;
	bool row;      /* it is in the database, or on its way there */
	bool reserved; /* of a domain's wish: what its ends want is open until the first comes */
	uint8_t away;  /* a bit for each side that is on another node */
};

enum hc_want_state { WANT_FREE, WANT_TICKET, WANT_WAITING, WANT_STORING, WANT_ANSWERING };
enum hc_want_kind { WANT_CLIENT, WANT_DOMAIN, WANT_GANG };

struct hc_want {
	uint64_t key; /* hash of who asks for what */
	uint64_t domain, session, since, deadline, stored, mbps;
	uint32_t part, rank, pid, uid;
	uint32_t request; /* id of the client's request */
	uint32_t admit;   /* TICKET: the request of the admission */
	uint32_t refs, count, missing, cursor;
	uint32_t yield; /* next channel whose holder may be asked to yield, HC_NONE */
	uint64_t gang; /* ticket of what was asked at the home; of a domain: store before the answer
			*/
	uint8_t state, kind, order, priority;
	uint16_t code; /* it is to fail: why */
	uint8_t lost_why;
	uint32_t lost_rank, lost_pid;
};
/* What a want's piece points to. */
#define REF(channel, side) ((channel) << 1 | (side))
#define REF_CHANNEL(ref)   ((ref) >> 1)
#define REF_SIDE(ref)      ((ref)&1u)

struct hc_pair {
	struct hc_list open; /* channels with an end that nobody has taken; links: open_links */
};

/* A gang at the home of its domain, that is not yet had or refused; its pieces in gang_bytes. */
#define HC_GANGS      64u
#define HC_GANG_BYTES 32768u
struct hc_gang {
	uint64_t domain, number, ticket;
	struct hc_arr pieces;
	uint32_t asker, at; /* nodes: who asked; who is asked now, HC_NONE: it is held back */
	uint32_t hold_ms;
	bool wait;
};

/* What a gang has of this node, until the home commits or cancels. */
#define HC_KEEPS 256u
struct hc_keep {
	uint64_t domain, gang;
	uint32_t request; /* of the admission */
	uint32_t part;
	bool granted;
};

/* An answer that waits for its row. */
struct hc_later {
	uint64_t stored, session, channel;
	uint32_t request;
	uint8_t side;
	bool open; /* else: released */
};

struct hc_channels {
	uint32_t nchannels, nwants;
	struct hc_channel *at;
	struct hc_pool pool;
	struct hc_index by_id;
	struct hc_index by_end; /* 2 x channel + side, by (part, rank) */
	struct hc_list ending;  /* links */
	struct hc_links links, open_links;
	struct hc_pair *pairs;
	struct hc_pool pair_pool;
	struct hc_index pair_index;
	uint32_t *of_request; /* first channel of a request of the admission, + 1 */
	uint32_t *ticket_of;  /* want of such a request that is a ticket, + 1 */

	struct hc_want *wants;
	struct hc_pool want_pool;
	struct hc_index want_key, want_seat; /* by key; by (part, rank) */
	struct hc_list storing, answering;   /* links: want_links */
	struct hc_links want_links;
	struct hc_list yielding;
	struct hc_links yield_links;
	uint32_t *refs;
	struct hc_spans ref_spans;

	struct hc_later *laters;
	struct hc_pool later_pool;
	struct hc_list later;
	struct hc_links later_links;

	struct hc_gang *gangs;
	uint8_t *gang_bytes;
	struct hc_pool gang_pool;
	uint64_t gang_number, gang_ticket;
	uint32_t look_at; /* home that is looked at next, see channel_again.c */
	bool looks, look_more;
	struct hc_keep *keeps;
	struct hc_pool keep_pool;
	uint32_t *keep_of; /* of a request of the admission, + 1 */

	struct hc_timers timers;        /* wants, then channels, then HC_GANG_TIMER */
	struct hc_m_want_piece *pieces; /* of the call that is being looked at */
	struct hc_admit_piece *ask;
	uint64_t changes, lapsed;
	uint32_t granted, waiting; /* channels; wants that wait, and tickets */
};

#define HC_GANG_TIMER(c) ((c)->chan->nwants + (c)->chan->nchannels)

static inline struct hc_channel *hc_channel_at(struct hc_core *c, uint32_t n)
{
	hc_assert(n < c->chan->nchannels);
	return &c->chan->at[n];
}
static inline uint32_t hc_channel_number(const struct hc_core *c, const struct hc_channel *ch)
{
	return (uint32_t)(ch - c->chan->at);
}
static inline uint32_t hc_want_number(const struct hc_core *c, const struct hc_want *w)
{
	return (uint32_t)(w - c->chan->wants);
}
static inline uint64_t hc_end_key(uint32_t part, uint32_t rank)
{
	return (uint64_t)part << 32 | rank;
}

/* ---- channel.c ---- */
struct hc_channels *hc_channel_lay_out(struct hc_mem *m, const struct hc_limits *lim);
struct hc_channel *hc_channel_by_id(struct hc_core *c, uint64_t id);
/* A new one in state WAITING; NULL when there are too many. Quotas are the caller's affair. */
struct hc_channel *hc_channel_make(struct hc_core *c, const struct hc_part *p, uint64_t id,
				   uint32_t rank, uint32_t peer);
/* The same with the slot that it had; NULL when that is taken. */
struct hc_channel *hc_channel_claim(struct hc_core *c, const struct hc_part *p, uint64_t id,
				    uint32_t slot, uint32_t rank, uint32_t peer);
void hc_channel_free(struct hc_core *c, struct hc_channel *ch);
/* It is a piece of that request. */
void hc_channel_bind(struct hc_core *c, struct hc_channel *ch, uint32_t request, uint32_t piece);
void hc_channel_unbind(struct hc_core *c, struct hc_channel *ch);
/* Rings are charged to its owner from now on. */
void hc_channel_set_buffer(struct hc_core *c, struct hc_channel *ch, uint32_t bytes);
/* In the list of its pair while it lacks an end, else not. */
void hc_channel_pair(struct hc_core *c, struct hc_channel *ch);
struct hc_pair *hc_channel_pair_of(struct hc_core *c, uint32_t part, uint32_t a, uint32_t b);
/* The admission has granted the whole request. */
void hc_channel_granted(struct hc_core *c, uint32_t request);
/* Is that end free for its rank to take? */
static inline bool hc_channel_lacks(const struct hc_channel *ch, unsigned side)
{
	return !(ch->ends & END_BIT(END_GIVEN, side)) && ch->want[side] == HC_NONE;
}
/* Free at once, told in slices. */
void hc_channel_end(struct hc_core *c, struct hc_channel *ch, enum hc_channel_why why,
		    uint32_t rank, uint32_t pid);
/* An end is given: it is to be opened before its time is over. */
void hc_channel_arm(struct hc_core *c, struct hc_channel *ch);
void hc_channel_store(struct hc_core *c, struct hc_channel *ch);
void hc_channel_publish(struct hc_core *c, const struct hc_channel *ch, uint8_t state);
struct hc_admit_piece hc_channel_admit_piece(struct hc_core *c, const struct hc_part *p,
					     const struct hc_channel *ch);
/* Told by the parts. */
void hc_channel_rank_gone(struct hc_core *c, struct hc_part *p, uint32_t seat,
			  enum hc_channel_why why);
void hc_channel_part_gone(struct hc_core *c, struct hc_part *p);
/* One slice of what is under way; false when there is none. */
bool hc_channel_work(struct hc_core *c);
uint64_t hc_channel_deadline(const struct hc_core *c);
uint64_t hc_channel_timer(const struct hc_core *c); /* the same when there is no work */

/* ---- channel_open.c ---- */
void hc_channel_open(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_channel_open *m);
void hc_channel_release(struct hc_core *c, struct hc_session *s, uint32_t request,
			const struct hc_m_channel_release *m);
/* One of those whose row is stored by now is answered; false: there is none. */
bool hc_channel_answer(struct hc_core *c);

/* ---- channel_ask.c ---- */
void hc_channel_want(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_channel_want *m);

/* ---- channel_want.c ---- */
struct hc_want *hc_want_make(struct hc_core *c, enum hc_want_kind kind, uint32_t count);
void hc_want_free(struct hc_core *c, struct hc_want *w);
void hc_want_index(struct hc_core *c, struct hc_want *w);
/* Its n-th piece is that end. */
void hc_want_ref(struct hc_core *c, struct hc_want *w, uint32_t n, struct hc_channel *ch,
		 unsigned side);
/* Nothing of it is missing: store, then answer. */
void hc_want_ready(struct hc_core *c, struct hc_want *w);
/* It is refused for now. */
void hc_want_refuse(struct hc_core *c, struct hc_want *w, uint32_t retry_ms, const char *text);
/* It waits: quota, deadline, and who holds what in its way is asked to yield. */
void hc_want_waits(struct hc_core *c, struct hc_want *w, uint64_t deadline);
/* It will not be: let its ends go, and answer. */
void hc_want_fail(struct hc_core *c, struct hc_want *w, int code, const char *text);
/* A channel of it is over. */
void hc_want_lost(struct hc_core *c, struct hc_want *w, const struct hc_channel *ch);
/* The same of one that waits, with nobody to take it over. */
void hc_want_forget(struct hc_core *c, struct hc_want *w, struct hc_channel *ch);
void hc_want_timeout(struct hc_core *c, struct hc_want *w);
bool hc_want_store_slice(struct hc_core *c);
bool hc_want_answer(struct hc_core *c);
bool hc_want_yield(struct hc_core *c);
/* The ticket has expired, or was freed by the admission. */
void hc_want_ticket_over(struct hc_core *c, uint32_t request);
/* A refused request keeps its place. */
struct hc_want *hc_want_ticket(struct hc_core *c, uint64_t key, uint32_t request);
/* The ticket of that key, or NULL. */
struct hc_want *hc_want_ticket_find(struct hc_core *c, uint64_t key);
uint32_t hc_want_retry_ms(uint64_t hint_ns);
/* Ask the admission for the first pieces of chan->ask; who has a ticket (or NULL) comes back with
 * it, and keeps it only when refused again. As hc_admit_ask. */
struct hc_want_words {
	uint32_t npieces, hold_ms;
	bool wait;
};
int hc_want_ask(struct hc_core *c, const struct hc_part *p, const struct hc_want_words *words,
		struct hc_want *ticket, uint32_t *request, uint32_t *retry_ms);

/* ---- channel_text.c ---- */
/* Who holds what on the link that piece cannot have. */
void hc_channel_who_holds(struct hc_core *c, const struct hc_admit_piece *pieces, uint32_t count,
			  char *text, size_t bytes);
void hc_channel_why_text(const struct hc_core *c, const struct hc_channel *ch, char *text,
			 size_t bytes);
const char *hc_channel_link_name(struct hc_core *c, uint32_t link, char *text, size_t bytes);

/* ---- channel_home.c ---- */
/* Reserve what the domain is to begin with. 0, IN_PROGRESS (hc_part_reserved follows), or why
 * not, with AGAIN *retry_ms. */
int hc_channel_reserve(struct hc_core *c, struct hc_part *p, const struct hc_m_prepare *m,
		       uint32_t *retry_ms, char *text, size_t bytes);
void hc_channel_reserved(struct hc_core *c, struct hc_want *w, int code, const char *text);

/* ---- channel_gang.c ---- */
/* Ask the home for all channels of the want that nobody was asked for. */
void hc_gang_ask(struct hc_core *c, struct hc_want *w, bool wait);
/* What was asked is no longer wanted. */
void hc_gang_withdraw(struct hc_core *c, struct hc_want *w);
/* The admission has granted what a gang has here. */
void hc_gang_kept(struct hc_core *c, uint32_t request);
/* The end of rank `rank` here of a channel is not, or no more: its home tells the other's node. */
void hc_gang_send_over(struct hc_core *c, const struct hc_part *p, uint64_t channel, uint32_t rank,
		       uint32_t peer);
/* A channel with an end on another node is over. */
void hc_gang_channel_over(struct hc_core *c, const struct hc_channel *ch);
void hc_gang_part_gone(struct hc_core *c, const struct hc_part *p);
/* Its home begins anew with this node, or (at the home) a node with it. */
void hc_gang_part_again(struct hc_core *c, const struct hc_part *p);
void hc_gang_home_again(struct hc_core *c, uint64_t id);
void hc_gang_on_reserve(struct hc_core *c, uint32_t node, const struct hc_m_gang_reserve *m);
void hc_gang_on_commit(struct hc_core *c, uint32_t node, const struct hc_m_gang_commit *m);
void hc_gang_on_cancel(struct hc_core *c, uint32_t node, const struct hc_m_gang_cancel *m);
void hc_gang_on_r(struct hc_core *c, uint32_t node, const struct hc_m_gang_r *m);
void hc_gang_on_over(struct hc_core *c, uint32_t node, const struct hc_m_gang_over *m);

/* ---- channel_order.c ---- */
/* The domain is over, or damaged: its home forgets what is under way. */
void hc_gang_home_gone(struct hc_core *c, uint64_t id);
void hc_gang_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_gang_ask *m);
void hc_gang_on_reserved(struct hc_core *c, uint32_t node, const struct hc_m_gang_reserved *m);
void hc_gang_on_end(struct hc_core *c, uint32_t node, const struct hc_m_gang_end *m);

/* ---- channel_again.c ---- */
/* A node begins anew, maybe with this one: say which channels to other nodes the part has. */
void hc_gang_say(struct hc_core *c, const struct hc_part *p);
/* At the home: there are channels between its nodes; one of these has begun anew; it is time to
 * ask the others. */
void hc_gang_seen(struct hc_home *h);
void hc_gang_unsure(struct hc_core *c, struct hc_home *h);
void hc_gang_look_again(struct hc_core *c);
void hc_gang_on_have(struct hc_core *c, uint32_t node, const struct hc_m_gang_have *m);
void hc_gang_on_held(struct hc_core *c, uint32_t node, const struct hc_m_gang_held *m);

/* ---- channel_back.c ---- */
void hc_channel_restore(struct hc_core *c, struct hc_str row);
void hc_channel_restored(struct hc_core *c);

#endif
