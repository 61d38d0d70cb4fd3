/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the jobs: jobs.c makes jobs and faults, heals and ends; jobproc.c is what processes do,
 * jobsplit.c the same of sub-domains, jobchan.c of channels, jobstore.c the shell of a node
 * (database, records, arenas), jobcheck.c looks at what must hold.
 */
#ifndef HC_JOBSIMP_H
#define HC_JOBSIMP_H

#include "jobs.h"

#include "simimp.h"

#include "state.h"

enum {
	JOB_GROUP = 8, /* nodes */
	JOB_RANKS = 16,
	JOB_DEVICES = 8,
	JOB_SESSIONS = 24,
	JOB_DOMAINS = 48,
	JOB_REQUESTS = 16,
	JOB_SEATS = 12, /* jobs that a process may be in */
	JOB_ROUNDS =
		2,     /* calls for sub-domains, that the ranks of a job make one after the other */
	JOB_PARTS = 4, /* sub-domains of a call */
	JOB_TIES = 6,  /* channels of a job */
	JOB_CHANNELS = 24,
	JOB_LINKS = 12,
};

enum job_due {
	DUE_STORED,
	DUE_SCAN,
	DUE_DEAD, /* a process, to its daemon */
	DUE_LOST, /* a session, to its daemon */
	DUE_TURN, /* of a process */
	DUE_OPS,  /* of a job */
	DUE_FAULT,
	DUE_KILL,  /* the daemon, with what it has just said to that node; itself: to none */
	DUE_BEGIN, /* a job, in a group */
	DUE_BOOT,
	DUE_THAW,
};

struct job_row {
	uint64_t id, seq;
	uint8_t what, state; /* enum hc_persist; of a domain */
	bool home;           /* the node is its home */
	uint8_t *bytes;
	uint32_t len;
};

struct job_record {
	uint64_t id, cut;
	uint32_t tag, epoch, number, cause_kind, cause_rank, cause_pid;
	uint32_t life; /* of the daemon that wrote it */
	uint8_t state, cut_set;
	char cause[HC_CAUSE_MAX];
};

/* Status register of a channel. */
struct job_register {
	uint64_t id;
	uint32_t life; /* of the daemon that wrote it */
	uint8_t state;
};

struct job_scan {
	uint64_t session, domain;
	uint32_t epoch, rank, block, pid;
	bool used;
};

/* What of a node is not its daemon. */
struct job_node {
	struct job_row *rows, *pending;
	uint32_t nrows, rows_cap, npending, pending_cap;
	uint64_t asked, stored, last_at; /* of this daemon; last_at: when the disk is free again */
	uint64_t disk_ns;
	struct job_record records[JOB_DOMAINS];
	struct job_register registers[JOB_CHANNELS];
	uint64_t changes;             /* of channels, when they were looked at */
	uint32_t slot[JOB_SESSIONS];  /* process + 1 */
	uint32_t device[JOB_DEVICES]; /* process + 1 */
	uint32_t *by_pid;             /* processes that ever were; pids count from 1000 */
	uint32_t npids, pids_cap, sessions;
	struct job_scan *scans;
	uint32_t nscans, scans_cap;
	uint32_t boots; /* kernels that died */
	bool down, frozen, drained;
	bool fresh;     /* what starts next has nothing of before */
	uint8_t shown;  /* enum hc_shown */
	uint32_t steps; /* that had to do with domains */
};

enum job_ask {
	ASK_HELLO,
	ASK_ROOT,
	ASK_JOIN,
	ASK_ATTACH,
	ASK_LEAVE,
	ASK_DESTROY,
	ASK_ABORT,
	ASK_DRAIN,
	ASK_SPLIT, /* of the parent's job and rank; so is a batch */
	ASK_SUB,
	ASK_BATCH,
	ASK_WANT, /* channels: `what` is the side */
	ASK_OPEN, /* `what`: tie << 1 | side */
	ASK_CLOSE,
};

struct job_request {
	uint32_t id, job, rank, what;
	uint8_t kind; /* enum job_ask */
};

struct job_proc {
	uint32_t node, pid, uid, device;
	uint64_t started, session; /* 0: none */
	uint32_t next_request;
	struct job_request waits[JOB_REQUESTS];
	uint32_t nwaits;
	struct {
		uint32_t job, rank;
	} seats[JOB_SEATS];
	uint32_t nseats;
	bool alive, hello; /* hello: answered */
	uint64_t wake_at;  /* its next turn */
	bool admin, dying; /* dying: it exits when it has nothing more to do */
	uint8_t drain;     /* of an operator: 1 to say, 2 said, 3 off to say, 4 over */
};

enum job_state {
	RANK_NEW,
	RANK_ASKED, /* a join waits */
	RANK_JOINED,
	RANK_LEAVING,
	RANK_OUT, /* left, aborted, or told that its domain is gone */
	RANK_REFUSED,
	RANK_DEAD,
};

struct job_rank {
	uint32_t proc, block, code;
	uint64_t id;               /* of the domain that it joined */
	uint32_t epoch, slot, tag; /* as it was told last, */
	uint32_t life;             /* by that daemon */
	uint64_t start_at, asked_at, until;
	uint64_t begun, ended; /* collectives */
	uint8_t state;         /* enum job_state */
	bool attach;           /* its session ended: it has to come back */
	/* its calls for sub-domains */
	uint32_t round;      /* that is the next, or under way */
	uint64_t call_at;    /* when it began, 0: it has not */
	uint64_t again_at;   /* refused for now: when it tries again */
	uint32_t splits;     /* of this domain that are over for it */
	uint32_t home_life;  /* when the call began */
	bool asked, parted;  /* a split: waits for its answer; has it */
	uint64_t want_at[2]; /* channels: not before, for each side */
};

/* A call of all ranks of a job, by which sub-domains come to be. */
enum job_way { WAY_SPLIT, WAY_SUB, WAY_BATCH };
struct job_round {
	uint64_t at;
	uint32_t first, count; /* jobs: the sub-domains */
	uint8_t way;           /* enum job_way */
	bool torn;             /* of a sub: its last rank lists the ranks in another order */
	int32_t color[JOB_RANKS], key[JOB_RANKS];
	bool answered; /* a split, to some rank */
	uint64_t none; /* number that those in no group are told, 0 = not yet */
};

/* Two ranks that are to be joined by a channel; rank[0] asks with that side. */
enum job_tie_state {
	TIE_NONE,
	TIE_ASKED,
	TIE_GIVEN,
	TIE_OPENING,
	TIE_OPEN,
	TIE_CLOSING,
	TIE_OVER,
};
struct job_tie_end {
	uint64_t channel, until;
	uint32_t slot, epoch;
	uint8_t state; /* enum job_tie_state */
};
struct job_tie {
	uint32_t rank[2], mbps[2];
	uint64_t hold_ns; /* HC_NEVER: while the domain is */
	bool rings, lazy; /* lazy: nobody opens it */
	struct job_tie_end end[2];
};

enum job_end { END_STAY, END_LEAVE, END_DESTROY, END_ABORT, END_DIE };

struct job {
	char info[HC_BLOB_MAX];
	uint32_t info_len;
	uint32_t nranks, group, number;
	bool table, no_info; /* no_info: who should make the root info cannot */
	bool ops;            /* its turn is on its way */
	uint64_t end_at;
	uint8_t end; /* enum job_end */
	uint32_t end_rank;
	uint32_t timeout_ms;
	struct job_rank ranks[JOB_RANKS];
	struct job_round rounds[JOB_ROUNDS];
	uint32_t nrounds;
	struct job_tie ties[JOB_TIES];
	uint32_t nties;
	uint64_t ties_at;
	bool ties_wait;
	uint32_t parent, round; /* of a sub-domain: whose, and by which call; HC_NONE */
	uint8_t of[JOB_RANKS];  /* its ranks, in the parent */
	uint64_t sub, id;       /* number that its ranks were told or agreed on; domain */
	struct hc_roster roster;
	struct hc_roster_server servers[JOB_RANKS];
	struct hc_roster_rank entries[JOB_RANKS];
	char names[JOB_RANKS][16];
};

/* A domain, as it was seen from outside. */
struct job_domain {
	uint64_t id;
	uint32_t job, home; /* node; HC_NONE: not known yet */
	bool committed;     /* its home has stored that it is */
	bool cancelled;     /* its home said that it will not be */
	bool active;        /* a node published it */
	bool lost;          /* a member, or a node of it, was */
	uint8_t gave_up;    /* nodes of the group that have had a row of it, and dropped it */
	uint32_t owner[JOB_RANKS]; /* process + 1 */
	uint64_t op;               /* the highest collective that a rank has begun, */
	uint32_t op_epoch;         /* and the epoch in which it was admitted */
};

struct job_world {
	struct jobs *j;
	struct sim *sim;
	struct sim_args args;
	struct job_node *nodes;
	struct job_proc *procs;
	uint32_t nprocs, procs_cap;
	struct job **jobs;
	uint32_t njobs, jobs_cap;
	struct job_domain *domains;
	uint32_t ndomains, domains_cap;
	struct sim_map domain_map;
	bool healing, ending, booting;
	uint32_t ask_what;        /* of the next request */
	uint64_t talk_at, talked; /* events, by then */
};

__attribute__((format(printf, 2, 3))) void job_broken(struct job_world *w, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void job_line(struct job_world *w, uint32_t node,
						    const char *fmt, ...);
#define job_want(w, x)                                                                             \
	do {                                                                                       \
		if (!(x))                                                                          \
			job_broken(w, "%s:%d: %s", __FILE__, __LINE__, #x);                        \
	} while (0)

static inline uint32_t job_pick(struct job_world *w, uint32_t below)
{
	return (uint32_t)(sim_rand(w->sim) % below);
}

/* ---- jobs.c ---- */
void job_take_seat(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank);
struct job *job_new(struct job_world *w, uint32_t group, uint32_t nranks);

/* ---- jobproc.c ---- */
uint32_t job_proc_new(struct job_world *w, uint32_t node, uint32_t uid, bool device);
void job_proc_wake(struct job_world *w, uint32_t proc, uint64_t ns);
void job_proc_turn(struct job_world *w, uint32_t proc);
void job_proc_die(struct job_world *w, uint32_t proc);
/* Its socket closes, and it connects again. */
void job_proc_lose(struct job_world *w, uint32_t proc, bool tell);
void job_proc_reply(struct job_world *w, uint32_t node, const struct hc_action *a);
void job_proc_notify(struct job_world *w, uint32_t node, const struct hc_action *a);
void job_ops(struct job_world *w, uint32_t job);
bool job_proc_busy(const struct job_world *w, const struct job_proc *p);
void job_ask(struct job_world *w, uint32_t proc, enum job_ask kind, uint32_t job, uint32_t rank,
	     const struct hc_desc *d, const void *msg);
/* The rank is a member: what it was told. */
struct job_told {
	uint64_t id;
	uint32_t rank, block, epoch, slot, tag;
};
void job_joined(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank,
		const struct job_told *t);
void job_refused(struct job_world *w, uint32_t job, uint32_t rank, uint32_t code);

/* ---- jobsplit.c ---- */
/* Which sub-domains a job will have, drawn when it begins. */
void job_split_plan(struct job_world *w, uint32_t job);
/* A rank that is a member does what is next of its calls. */
void job_split_turn(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank);
/* A rank of a sub-domain that was not asked for yet: can it still be? */
void job_split_waits(struct job_world *w, uint32_t job, uint32_t rank);
void job_split_lost(struct job_rank *r);
void job_split_answer(struct job_world *w, uint32_t proc, const struct job_request *q,
		      const struct hc_frame *f);
void job_split_refused(struct job_world *w, uint32_t proc, const struct job_request *q,
		       uint32_t code);
void job_split_joined(struct job_world *w, uint32_t job, uint32_t rank, const struct job_told *t);

/* ---- jobchan.c ---- */
void job_chan_plan(struct job_world *w, uint32_t job);
void job_chan_turn(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank);
void job_chan_lost(struct job *g, uint32_t rank);
void job_chan_gone(struct job *g, uint32_t rank);
void job_chan_answer(struct job_world *w, const struct job_request *q, const struct hc_frame *f);
void job_chan_refused(struct job_world *w, const struct job_request *q, uint32_t code);
void job_chan_register(struct job_world *w, uint32_t node, const struct hc_action *a);
void job_chan_started(struct job_world *w, uint32_t node);
void job_chan_links(struct job_world *w, uint32_t node);
/* Ranks say something on the channels that they have. */
void job_chan_ops(struct job_world *w, uint32_t job);
const char *job_chan_wrong(struct job_world *w, uint32_t node);
const char *job_chan_unsettled(struct job_world *w, uint32_t node);
const char *job_chan_left(const struct hc_core *c);

/* ---- jobstore.c ---- */
void job_store_put(struct job_world *w, uint32_t node, const struct hc_action *a);
void job_store_done(struct job_world *w, uint32_t node, uint64_t seq);
const struct job_row *job_store_row(const struct job_world *w, uint32_t node, uint64_t id);
/* The daemon is gone; how much of what was on its way to the disk got there. `boot`: all that the
 * kernel and the node's processes had is gone, too. */
void job_store_end(struct job_world *w, uint32_t node, bool boot);
void job_store_free(struct job_node *n);
void job_publish(struct job_world *w, uint32_t node, const struct hc_action *a);
/* Of the row under way: what the record says that the daemon before wrote. */
void job_recall(struct job_world *w, uint32_t node, const struct hc_action *a);
const struct job_record *job_record(const struct job_world *w, uint32_t node, uint64_t id);
void job_scan(struct job_world *w, uint32_t node, const struct hc_action *a);
void job_scanned(struct job_world *w, uint32_t node, uint64_t number);
/* Devices and rows, before START. */
void job_boot(struct sim *s, uint32_t node, void *arg);

/* ---- jobcheck.c ---- */
struct job_domain *job_domain(struct job_world *w, uint64_t id);
void job_check_joined(struct job_world *w, uint32_t node, uint32_t proc, uint64_t id,
		      uint32_t rank);
/* Its home commits: every node of it has stored that it is prepared. */
void job_check_prepared(struct job_world *w, uint32_t node, uint64_t id);
void job_check_record(struct job_world *w, uint32_t node, const struct job_record *r,
		      const struct job_record *before);
void job_check_step(struct sim *s, uint32_t node, void *arg);
void job_check_took(struct sim *s, uint32_t node, uint32_t from, uint32_t life,
		    const struct hc_frame *f, void *arg);
/* What is still to come until all is settled, NULL = nothing; `text` has its words. */
const char *job_unsettled(struct job_world *w, char *text, size_t bytes);
const char *job_left_over(struct job_world *w, char *text, size_t bytes);

#endif
