/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: who gets how much of which link, and in which order.
 *
 * A *link* joins two end points (devices of this node, or any two of them) and has a bandwidth and
 * a number of virtual channels each way. A share of the bandwidth can be granted, the rest is kept
 * for control. A *request* is a gang of one or more *pieces*, each from one end point to another;
 * it is granted whole or not at all. Which of the parallel links a piece gets is decided when it
 * is granted: in order of bandwidth the first that stays within the limit, the less loaded of
 * those that are equal within 5 %.
 *
 * Each link has its queues, and a queue of one link never holds up another: strict classes, within
 * a class deficit round robin between owners by weight, within an owner first come first served. A
 * request that does not fit is passed over, until it has waited for `aging`: from then on nothing
 * that came later overtakes it on its links, of whatever class. The order of tickets (that of
 * arrival) is the same on every link, so whatever is saved is saved for the smallest, and no two
 * gangs can wait for each other.
 *
 * A *user* may hold so much of a link and no more, whoever of its owners asks: the quota. What the
 * quota holds up waits for its own user alone and saves nothing of a link; see admit_quota.c.
 *
 * A caller who does not wait gets a hint and a ticket. The ticket sleeps until shortly before the
 * hint, so that it costs nobody anything; then it is served like an aged one and kept for the
 * caller until hint_hold past the hint. How long before, and what is promised, follow what was
 * seen on this link: declared durations, the rate of releases, and how good former hints were.
 *
 * Nothing here knows of domains, ranks, sessions or messages; channel.c does. Time is an argument.
 */
#ifndef HC_ADMIT_H
#define HC_ADMIT_H

#include "table.h"

#define HC_ADMIT_CLASSES   8u
#define HC_ADMIT_GANG_MAX  1024u
#define HC_ADMIT_HINT_NONE UINT64_MAX /* not known: never a made-up figure */

/* Bandwidth of a piece is uint32; a link has at most 4096 virtual channels. */
struct hc_admit_limits {
	uint32_t links, requests, pieces; /* waiting and granted ones together */
};
struct hc_admit_settings {
	uint32_t limit_percent; /* of a link's bandwidth, each way */
	uint32_t quota_percent; /* of what can be granted of a link, for one user; 0 = all */
	uint64_t aging_ns, grant_ttl_ns, hint_hold_ns;
};

#define HC_ADMIT_OUT 0xfffffffeu /* an end point outside of this node */

struct hc_admit_link {
	/* End points, a <= b. HC_NONE, HC_NONE: any two of this node. HC_ADMIT_OUT, HC_NONE: any of
	 * it and what is outside. */
	uint32_t a, b;
	uint8_t type;  /* HC_W_link_type_* */
	bool carries;  /* the library can move data over it */
	bool up;       /* false: nothing new is granted; what was granted stays */
	uint32_t mbps; /* each way */
	uint32_t vcs;  /* virtual channels */
};

struct hc_admit_piece {
	uint32_t from, to; /* end points */
	uint8_t type;      /* pinned link type, 0 = any */
	bool carries;      /* only links over which the library moves data */
	uint32_t mbps[2];  /* from -> to, to -> from */
};

struct hc_admit_ask {
	uint64_t owner;    /* key of the round robin: a domain, or a user */
	uint64_t user;     /* whose quota it is; may be the owner */
	uint8_t order;     /* class 0..7 */
	uint8_t weight;    /* 1..100, of the owner */
	uint64_t hold_ns;  /* how long it will be held, 0 = not declared */
	bool wait;         /* queue it; else a refusal leaves a ticket */
	uint64_t deadline; /* of the wait, HC_NEVER = none */
	bool exempt;       /* of the quota, in which it counts all the same */
	const struct hc_admit_piece *pieces;
	uint32_t npieces;
};

enum hc_admit_state {
	HC_ADMIT_FREE,
	HC_ADMIT_WAITING, /* in the queues of its links */
	HC_ADMIT_ASLEEP,  /* a ticket whose turn is not near */
	HC_ADMIT_AWAITED, /* a ticket in the queues, saved for */
	HC_ADMIT_GRANTED, /* whole; nobody has collected it yet */
	HC_ADMIT_HELD,    /* collected */
};

/* What happened to a request without a call for it; see hc_admit_news. */
enum hc_admit_news {
	HC_ADMIT_NEWS_GRANTED, /* the turn of one that waits came; not told of tickets */
	HC_ADMIT_NEWS_EXPIRED, /* its deadline came, or its ticket was not used; it is gone */
	HC_ADMIT_NEWS_LAPSED,  /* granted, not collected within grant_ttl; it is gone */
};

struct hc_admit;

/* Carved from m as all else here; NULL while m only counts. */
struct hc_admit *hc_admit_init(struct hc_mem *m, const struct hc_admit_limits *limits);
void hc_admit_set(struct hc_admit *s, const struct hc_admit_settings *settings);
/* A new link or new facts of one; number < limits.links. Granted shares stay as they are, also
 * when the link has become smaller than they are: then nothing is granted until they fit. */
void hc_admit_link_set(struct hc_admit *s, uint64_t now, uint32_t link,
		       const struct hc_admit_link *fact);

/*
 * Ask. 0: granted, uncollected. IN_PROGRESS: it waits. AGAIN: refused, `hint_ns` from now is when
 * to come again (or HC_ADMIT_HINT_NONE), and the request is the ticket that keeps the place.
 * LINK_UNAVAILABLE: no path that could ever carry it (none there, or more than the limit of each).
 * LIMIT: the limit of requests or pieces of this node, or more than the user's quota on a link.
 * INVALID: no piece, too many, a class or weight out of range.
 * Only the first three leave a request.
 */
int hc_admit_ask(struct hc_admit *s, uint64_t now, const struct hc_admit_ask *ask,
		 uint32_t *request, uint64_t *hint_ns);
/* A caller comes back with its ticket: 0 (granted), IN_PROGRESS (`wait`: it waits from now on),
 * AGAIN with a new hint (early: the rest of the old one), GONE (no such ticket any more, or held).
 * One that waits may also come: with `wait` its deadline is changed, else it becomes a ticket. */
int hc_admit_again(struct hc_admit *s, uint64_t now, uint32_t request, bool wait, uint64_t deadline,
		   uint64_t *hint_ns);
/* The owner has it: it stays until released. For what ask or again granted, or news told of. */
void hc_admit_collect(struct hc_admit *s, uint32_t request);
/* Give one piece back, or the request in whatever state it is. Waiting ones may be granted. */
void hc_admit_release_piece(struct hc_admit *s, uint64_t now, uint32_t request, uint32_t piece);
void hc_admit_release(struct hc_admit *s, uint64_t now, uint32_t request);

/* Go on with what is due: grants after releases, aging, deadlines; at most `budget` requests are
 * looked at. To be called until hc_admit_deadline is after now. */
void hc_admit_run(struct hc_admit *s, uint64_t now, uint32_t budget);
uint64_t hc_admit_deadline(const struct hc_admit *s); /* 0: at once; HC_NEVER: nothing is due */
/* The oldest news; false when there is none. EXPIRED and LAPSED: the number is free after this. */
bool hc_admit_news(struct hc_admit *s, uint32_t *request, enum hc_admit_news *news);
bool hc_admit_has_news(const struct hc_admit *s);

/* ---- what there is ---- */
enum hc_admit_state hc_admit_state(const struct hc_admit *s, uint32_t request);
struct hc_admit_place {
	uint32_t link, vc; /* what it was granted */
};
/* Of a granted request. */
void hc_admit_piece_place(const struct hc_admit *s, uint32_t request, uint32_t piece,
			  struct hc_admit_place *place);
struct hc_admit_use {
	uint32_t limit_mbps;             /* grantable each way */
	uint32_t used_mbps[2], used_vcs; /* granted */
	uint32_t waiting;                /* requests in its queues */
	uint64_t grants, releases;       /* so far */
};
void hc_admit_link_use(const struct hc_admit *s, uint32_t link, struct hc_admit_use *use);
/* Of one that waits: how many pieces, and the first of the links that a piece could go over as they
 * are, HC_NONE: none. */
uint32_t hc_admit_pieces(const struct hc_admit *s, uint32_t request);
uint32_t hc_admit_piece_first(const struct hc_admit *s, uint32_t request, uint32_t piece);
/* How many would be served before it, and when it may be its turn (ns from now, or HINT_NONE). */
void hc_admit_outlook(const struct hc_admit *s, uint64_t now, uint32_t request, uint32_t *ahead,
		      uint64_t *estimate_ns);
/* When one that waits can be relied on to have been granted (ns from now, never 0; HINT_NONE):
 * later than the estimate, which is as likely too early. */
uint64_t hc_admit_promise(const struct hc_admit *s, uint64_t now, uint32_t request);
/* Calls fn for each granted piece on a link, the oldest grant first, until it returns false. */
void hc_admit_holders(const struct hc_admit *s, uint32_t link,
		      bool (*fn)(uint32_t request, uint32_t piece, void *context), void *context);
struct hc_admit_counts {
	uint64_t asked, granted_at_once, granted_later, refused, expired, lapsed, released;
	uint64_t hints, hints_unknown;     /* numeric ones, others */
	uint64_t hints_kept, hints_broken; /* came back at the hint and got it, or not */
	uint64_t hints_unused;             /* nobody came back */
};
void hc_admit_counts(const struct hc_admit *s, struct hc_admit_counts *counts);

/* What is known of a link, or NULL. */
const struct hc_admit_link *hc_admit_link_fact(const struct hc_admit *s, uint32_t link);
/* Could that link carry the piece if it were empty? *now: there is room as it is. */
bool hc_admit_could(const struct hc_admit *s, uint32_t link, const struct hc_admit_piece *piece,
		    bool *now);
/* Is it the quota that holds these pieces up, as things are or (`never`) for good? The link and
 * kind of the first that is: held by the user, asked for, and the most that there may be. */
struct hc_admit_excess {
	uint32_t link;
	uint8_t kind; /* bandwidth from the link's a to b, back, virtual channels */
	uint64_t held, asked, most;
};
bool hc_admit_over_quota(struct hc_admit *s, uint64_t user, const struct hc_admit_piece *pieces,
			 uint32_t npieces, bool never, struct hc_admit_excess *excess);
/* A grant of an earlier daemon, of one piece: exactly that place, held. LINK_UNAVAILABLE: it is
 * not to be had; LIMIT. It was within the quota of its time, and counts in that of today. */
int hc_admit_take_back(struct hc_admit *s, uint64_t now, const struct hc_admit_ask *ask,
		       const struct hc_admit_place *place, uint32_t *request);

/* The whole state against itself: used + free = total, queues and grants agree, nothing beyond a
 * limit. For tests and debug builds; panics. O(everything). */
void hc_admit_check(struct hc_admit *s);

#endif
