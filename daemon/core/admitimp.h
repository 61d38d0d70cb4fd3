/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside admission; see admit.h for what it does.
 *
 * request   what was asked, its pieces, its state, one timer
 * entry     a request in the queue of one link that it could use
 * share     what one owner or user has of one link: the flows of an owner, the use of a user
 * flow      the waiting entries of one owner in one class of one link, oldest first; its account
 * link      limits, use, and its queues: eight trees of flows, by account, and the *set*
 * set       of a link: the aged and the awaited tickets, by ticket
 * line      of a user on a link: what its quota holds up there, by ticket; see admit_quota.c
 *
 * Who may take from a link: while its set is not empty, the smallest ticket of the set alone; else
 * the first of each flow. Where something gets free on a link, or another becomes first there, the
 * link is *dirty*: it stands in a list by the class that is to be looked at next (the set before
 * all), and hc_admit_run goes on with the first link of the highest class.
 *
 * A request that was looked at and did not fit is *armed* only on the links that it failed on.
 * Nothing else can help it, so that a link passes over those that wait for another link without
 * looking at them. The trees know the least need below each node and pass over what is too large
 * in the same way.
 */
#ifndef HC_ADMITIMP_H
#define HC_ADMITIMP_H

#include "admit.h"
#include "admit_tree.h"
#include "timers.h"

#define HC_ADMIT_VCS_MAX  4096u
#define HC_ADMIT_COST_ONE (1u << 20)       /* cost of a whole link */
#define HC_ADMIT_SET      HC_ADMIT_CLASSES /* the phase before the classes */

struct hc_adm_piece {
	uint32_t from, to, need[2]; /* need in the link's orientation */
	uint32_t request;
	uint32_t link, vc, cost, share; /* granted; or link: where it would go */
	uint16_t choices;               /* links it could use */
	uint8_t type;
	bool carries, granted;
};

struct hc_adm_request {
	uint64_t owner, user, ticket, arrived, deadline, hold_ns;
	uint64_t granted_at, refused_at;
	uint64_t wake_at, hint_at; /* of a ticket; HC_NEVER: no hint */
	uint64_t unit_ns;          /* what the lead of its hint is measured in */
	uint32_t first, npieces, ngranted;
	uint32_t entries; /* number + 1 */
	uint32_t hint_link;
	uint8_t span, state, order, weight, news; /* enum hc_admit_news + 1 */
	bool aged;                                /* in the set, or would be if it had a link */
	bool absent;                              /* granted while the caller was away */
	bool declared;                            /* its hint came from declared durations */
	bool several;                             /* some piece has more than one choice */
	bool exempt; /* of the quota: taken back from an earlier daemon */
	bool capped; /* aged, and held up by the quota of its user */
};

enum hc_adm_where { HC_ADM_OUT, HC_ADM_ASLEEP, HC_ADM_FLOW, HC_ADM_SET, HC_ADM_CAPPED };

struct hc_adm_entry {
	uint32_t request, link, share, next; /* next of the request: number + 1 */
	uint32_t need[HC_NEEDS];             /* the least that it takes here if it is granted */
	uint32_t cost;                       /* what it is expected to take */
	uint8_t where;
	bool several; /* some piece could come here or go elsewhere */
	bool fixed;   /* some piece can go nowhere else */
	bool armed;
	bool lined;    /* in the line of its user here */
	uint32_t held; /* the user's share, if so */
};

struct hc_adm_flow {
	uint64_t account; /* what it was granted, by weight */
	struct hc_list entries;
	uint32_t share;
	uint8_t order;
};

struct hc_adm_share {
	uint64_t owner;
	uint32_t link, refs;
	uint32_t used[2], used_vcs;      /* of a user */
	uint32_t flow[HC_ADMIT_CLASSES]; /* number + 1, of an owner */
	uint32_t line;                   /* tree of entries, of a user; see admit_quota.c */
	bool stirred;
};

struct hc_adm_class {
	uint64_t now, top; /* account of the flow served last; highest account */
	uint64_t demand;   /* cost of its entries */
	uint32_t root, entries, flows;
};

/* How much later than its turn a ticket is told to come, in units of 1/256 of what the link takes
 * to give back what it needs; see admit_hint.c. */
struct hc_adm_lead {
	uint32_t factor, judged;
	uint32_t owed; /* hints to be kept before it shrinks */
	uint64_t raised_at;
};

struct hc_adm_link {
	struct hc_admit_link fact;
	bool known;
	uint32_t next; /* same end points; number + 1 */
	uint32_t limit;
	uint32_t used[2], used_vcs, vc_last;
	uint64_t used_cost;
	uint64_t grants, releases;
	struct hc_adm_class class[HC_ADMIT_CLASSES];
	uint32_t set; /* tree of entries */
	uint32_t set_count, capped_count;
	struct hc_list stirred; /* shares whose line is to be looked at */
	uint64_t set_demand, asleep[HC_ADMIT_CLASSES];
	struct hc_list granted; /* pieces, in order of grant */
	/* dirty: */
	bool dirty, fresh; /* fresh: from the start of the phase; else after (key, tie) */
	uint8_t phase;
	uint64_t key, tie;
	/* what was observed: */
	uint32_t ends; /* tree of pieces, by declared end */
	uint64_t declared_cost, declared_time;
	uint64_t used_absent; /* cost granted while the caller was away */
	uint64_t occupied, idle, returned,
		seen_at;                 /* cost * time, of it uncollected, cost; fading */
	uint64_t booked, booked_between; /* when the last ticket wakes; the last of those between */
	struct hc_adm_lead lead[2];      /* of hints from the rate; from declared durations */
	uint32_t absent; /* tree of pieces granted while the caller is away, by hint */
};

/* What one look at a request adds to a link; all zero between two looks. */
struct hc_adm_sketch {
	uint32_t add[2], add_vcs;
	uint32_t entry; /* number + 1 */
	uint32_t held;  /* share of its user, number + 1 */
	bool allowed;
};

struct hc_admit {
	struct hc_admit_limits lim;
	struct hc_admit_settings set;
	uint32_t links_seen; /* no link from here on is known */
	uint64_t tickets;
	struct hc_pool requests, entries, shares, flows;
	struct hc_spans spans;
	struct hc_adm_request *request;
	struct hc_adm_piece *piece;
	struct hc_adm_entry *entry;
	struct hc_adm_share *share;
	struct hc_adm_flow *flow;
	struct hc_adm_link *link;
	struct hc_adm_sketch *sketch;
	struct hc_tree_node *flow_node, *set_node;   /* by flow, entry */
	struct hc_tree_node *end_node, *absent_node; /* by piece */
	struct hc_tree_node *line_node;              /* by entry */
	struct hc_links in_flow, in_link;            /* by entry, piece */
	struct hc_links in_idle, in_dirty, in_news;  /* by flow, link, request */
	struct hc_links in_stirred;                  /* by share */
	struct hc_list idle, dirty[HC_ADMIT_CLASSES + 1], news;
	uint32_t ndirty;               /* links in all of the lists */
	struct hc_index pairs, owners; /* links by end points, shares by link and owner */
	struct hc_timers timers;
	uint64_t *vcs; /* taken ones, HC_ADMIT_VCS_MAX bits a link */
	uint32_t npieces;
	struct hc_admit_counts counts;
};

/* admit_link.c: the links of a piece, and what is given and taken back */
uint32_t hc_adm_choice(const struct hc_admit *s, const struct hc_adm_piece *p, uint32_t after);
uint32_t hc_adm_cost(const struct hc_adm_link *l, const uint32_t need[2]);
void hc_adm_integrate(struct hc_adm_link *l, uint64_t now);
void hc_adm_take(struct hc_admit *s, uint64_t now, uint32_t piece);
/* `over`: its time ended, which says something about how long such are held. */
void hc_adm_give_back(struct hc_admit *s, uint64_t now, uint32_t piece, bool over);
/* The caller is back: it is in use from now on. */
void hc_adm_collected(struct hc_admit *s, uint64_t now, uint32_t request);

/* admit_place.c: does it fit, and where */
enum hc_adm_mode {
	HC_ADM_NOW,      /* into what is free, where it may go */
	HC_ADM_ANYWAY,   /* into what is free, whoever is before it */
	HC_ADM_MINE,     /* into links that nobody but its user uses */
	HC_ADM_EMPTY,    /* into links that nobody uses */
	HC_ADM_NO_QUOTA, /* and without a quota */
};
/* Sets the link of each piece. False: it does not fit; NOW also arms it where it failed. */
bool hc_adm_place(struct hc_admit *s, uint32_t request, enum hc_adm_mode mode);
void hc_adm_commit(struct hc_admit *s, uint64_t now, uint32_t request);

/* admit_queue.c: entries, flows, sets; what is dirty */
int hc_adm_enter(struct hc_admit *s, uint32_t request);  /* makes the entries; 0, LINK_.., LIMIT */
void hc_adm_leave(struct hc_admit *s, uint32_t request); /* drops them */
void hc_adm_enqueue(struct hc_admit *s, uint32_t request); /* into flows, sets or asleep */
void hc_adm_dequeue(struct hc_admit *s, uint32_t request);
bool hc_adm_may(const struct hc_admit *s, const struct hc_adm_entry *e);
void hc_adm_arm(struct hc_admit *s, uint32_t entry, bool armed);
void hc_adm_dirty(struct hc_admit *s, uint32_t link, uint8_t phase);
bool hc_adm_pump(struct hc_admit *s, uint64_t now); /* looks at one; false: nothing is dirty */
uint32_t hc_adm_share(struct hc_admit *s, uint32_t link, uint64_t owner);
uint32_t hc_adm_share_find(const struct hc_admit *s, uint32_t link, uint64_t owner);
void hc_adm_enter_set(struct hc_admit *s, uint32_t entry);
void hc_adm_leave_set(struct hc_admit *s, uint32_t entry);
void hc_adm_unref(struct hc_admit *s, uint32_t share);
void hc_adm_charge(struct hc_admit *s, uint32_t link, const struct hc_adm_request *r,
		   uint32_t cost);

void hc_adm_uncharge(struct hc_admit *s, uint32_t link, const struct hc_adm_request *r,
		     uint32_t cost);

/* admit_quota.c: what one user may hold of a link */
static inline uint32_t hc_adm_quota(const struct hc_admit *s, const struct hc_adm_request *r)
{
	return r->exempt ? 100 : s->set.quota_percent;
}
/* kind: a direction, or 2 for virtual channels. */
uint64_t hc_adm_quota_most(const struct hc_admit *s, uint32_t link, unsigned kind, uint32_t quota);
bool hc_adm_behind(const struct hc_admit *s, uint32_t share, uint64_t ticket);
bool hc_adm_held_up(const struct hc_admit *s, const struct hc_adm_request *r,
		    const struct hc_adm_entry *e);
void hc_adm_cap(struct hc_admit *s, uint32_t request);
void hc_adm_uncap(struct hc_admit *s, uint32_t request);
void hc_adm_unline(struct hc_admit *s, uint32_t entry);
/* The user has less there than before. */
void hc_adm_stir(struct hc_admit *s, uint32_t share);
/* One that may be held up no more, or HC_NONE. */
uint32_t hc_adm_stirred(struct hc_admit *s, uint32_t link);

/* admit_hint.c */
uint64_t hc_adm_hint(struct hc_admit *s, uint64_t now, uint32_t request); /* ns from now */
uint64_t hc_adm_promise(const struct hc_admit *s, uint64_t now, uint32_t request);
uint64_t hc_adm_estimate(const struct hc_admit *s, uint64_t now, uint32_t request, uint32_t *ahead);
void hc_adm_judge(struct hc_admit *s, uint64_t now, const struct hc_adm_request *r, bool kept);

/* admit.c */
void hc_adm_granted(struct hc_admit *s, uint32_t request);
void hc_adm_timer(struct hc_admit *s, uint32_t request);

static inline struct hc_adm_link *hc_adm_link_of(const struct hc_admit *s,
						 const struct hc_adm_entry *e)
{
	return &s->link[e->link];
}

#define HC_ADM_EACH_ENTRY(s, r, n) for ((n) = (r)->entries; (n); (n) = (s)->entry[(n)-1].next)

#endif
