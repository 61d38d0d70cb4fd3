/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core: one step function that decides everything.
 *
 * hc_core_step(core, now, event, out) takes one event in and puts actions out. The core has no
 * clock, socket, file, thread or global; time is an argument (nanoseconds of a monotonic clock),
 * randomness comes from a seed, memory is handed in once. The daemon's shell performs the actions
 * in order; tests and the simulator carry them by hand. Same events, same actions, byte for byte.
 *
 * What reveals a state waits until it is stored: the core sends PERSIST, and goes on at the
 * event PERSISTED of that number. A death on this node alone does not wait; see home_life.c.
 *
 * Work in a step is bounded: what does not fit in `out` stays in the core, and hc_core_deadline
 * says "now" until it is done.
 */
#ifndef HC_CORE_H
#define HC_CORE_H

#include "frame.h"
#include "roster.h"

#define HC_NEVER UINT64_MAX

struct hc_core;

/* Limits of one instance; hc_core_bytes and hc_core_init want the same values. */
struct hc_limits {
	uint32_t sessions;
	uint32_t domains; /* forming, running and ending ones */
	uint32_t ranks; /* rank slots over all domains of the node; rounded up to a power of two */
	uint32_t ranks_per_domain;
	uint32_t devices;
	uint32_t ended;                         /* ended domains whose reason is kept */
	uint32_t quota_domains;                 /* for one uid */
	uint32_t links;                         /* between devices of this node */
	uint32_t requests, pieces;              /* of channels, waiting and granted ones together */
	uint32_t channels, wants;               /* granted ones; calls that wait, and tickets */
	uint32_t quota_channels, quota_waiting; /* for one uid */
	uint64_t quota_memory;                  /* bytes of shared memory, for one uid */
	uint32_t values; /* of the exchange, of 1 KiB each; larger ones count as several */
};

/* Settings that may change at run time (event CONFIG); origin as in "default" or "FILE:LINE". */
struct hc_settings {
	uint64_t connect_timeout_ns, drain_timeout_ns, orphan_grace_ns, prepare_limit_ns,
		ended_keep_ns;
	char connect_timeout_origin[128];
	char drain_timeout_origin[128];
	uint32_t bandwidth_limit_percent; /* of a link, that channels may be granted */
	uint64_t aging_ns, grant_ttl_ns, hint_hold_ns;
};

/* Who this node is; fixed for the life of the core. */
struct hc_self {
	uint8_t node_id[16];
	char name[HC_NAME_MAX + 1];
	uint64_t incarnation;
	uint32_t start;
	bool fence;       /* the kernel has membarrier */
	uint64_t seed[2]; /* from the kernel's random source */
	char build[HC_NAME_MAX + 1];
};

/* Identity of a client, as the kernel says it. */
struct hc_cred {
	uint32_t pid;
	uint32_t uid;
	uint64_t started; /* start time of the process, clock ticks since boot; 0 = not readable */
	uint8_t role;     /* HC_W_role_* */
};

struct hc_device_fact {
	uint32_t index;
	char kind[16]; /* npu, gpu, cpu */
	char model[64];
	char pci[32];
	int32_t numa;
	char port[32];
	struct hc_addr addr; /* family 0 = not known */
	char health[16];     /* ok, offline, unknown */
	bool simulated;
	bool present; /* false: the device went away */
	char source[24];
	char addr_source[24];
};

/*
 * A link between two devices of this node, or (a and b HC_NONE) between any two ranks of it.
 * Known by type, ends and lane; a fact of the same ones replaces the earlier. b HC_END_NET: the way
 * of device a out of this node, to all others.
 */
#define HC_END_NET 0xfffffffeu
struct hc_link_fact {
	uint8_t type;  /* HC_W_link_type_* */
	uint32_t a, b; /* device numbers, a < b */
	uint32_t lane; /* among parallel links of one type, from 0 */
	uint32_t mbps; /* each way; 0 = not known: it carries no bandwidth, only channels */
	uint32_t vcs;  /* virtual channels */
	bool latency_known;
	uint32_t latency_us;
	bool present;    /* false: the link went away */
	char via[64];    /* what it goes over, for people */
	char source[16]; /* of its type and ends */
	char mbps_source[16], latency_source[16], vcs_source[16];
};

enum hc_event_kind {
	HC_EV_START,        /* first event; the rows that were stored come before it (ROW) */
	HC_EV_TIMEOUT,      /* the deadline has come */
	HC_EV_REQUEST,      /* a frame of a client; the first of a session is its hello */
	HC_EV_SESSION_LOST, /* socket closed */
	HC_EV_PROCESS_DEAD, /* pidfd fired */
	HC_EV_PEER_MSG,     /* a frame of another node */
	HC_EV_DEVICE_FACT,
	HC_EV_LINK_FACT,
	HC_EV_PERSISTED, /* all PERSIST up to this number are stored */
	HC_EV_CONFIG,
	HC_EV_STORAGE,     /* the database fails, or works again */
	HC_EV_OPS_SAMPLE,  /* answer to SCAN */
	HC_EV_ROW,         /* a stored domain, before START */
	HC_EV_CHANNEL_ROW, /* a stored channel, after the domains, devices and links */
	HC_EV_UNREAD,      /* a session did not read its events: so many were dropped */
};

struct hc_event {
	enum hc_event_kind kind;
	uint64_t session; /* REQUEST, SESSION_LOST, UNREAD: low 32 bits are a slot below
			     limits.sessions */
	union {
		struct {
			const struct hc_frame *frame;
			const struct hc_cred *cred; /* with hello */
			const struct hc_roster
				*roster; /* with join_table, create: the parsed table */
			uint8_t fence;   /* with hello: this session needs no atomics */
			uint32_t page;   /* with sync_have: bytes of the page that it brought, 0 */
		} request;
		struct {
			uint32_t pid;
			uint64_t started;
		} process;
		struct {
			uint32_t node; /* index of a node, from hc_core_node */
			const struct hc_frame *frame;
		} peer;
		const struct hc_device_fact *device;
		const struct hc_link_fact *link;
		uint64_t persisted;
		/* STORAGE: PERSIST above this number are not in the database, though PERSISTED
		 * was or will be told of them; HC_NEVER: all are. */
		uint64_t kept;
		const struct hc_settings *settings;
		struct {
			uint64_t domain;
			uint32_t epoch;
			uint32_t rank;
			uint64_t begun;   /* last collective begun */
			uint32_t running; /* begins - ends */
			uint8_t kind;     /* enum hcomm_op_kind of the last one */
			bool readable;    /* false: the arena is gone or holds nonsense */
		} ops;
		struct hc_str row;
		uint64_t unread; /* since the session began */
	} u;
};

enum hc_action_kind {
	HC_ACT_REPLY,     /* frame to a session; never dropped */
	HC_ACT_NOTIFY,    /* event frame to a session; may be dropped and counted */
	HC_ACT_SEND_PEER, /* frame to another node */
	HC_ACT_PERSIST,
	HC_ACT_PUBLISH, /* write a state record */
	HC_ACT_SCAN,    /* read a block of an op arena; answered by OPS_SAMPLE */
	HC_ACT_CLOSE,   /* end a session */
	HC_ACT_WATCH,   /* a process that rows name: tell its end, also if it is gone already */
	HC_ACT_SYNC,    /* a sync page that came with this request is kept, or one is let go */
	HC_ACT_LOG,
	HC_ACT_REGISTER, /* write a status register */
};

enum hc_grant {
	HC_GRANT_NONE,
	HC_GRANT_ARENA,
	HC_GRANT_SLAB,
	HC_GRANT_STATUS,
	HC_GRANT_RINGS,
	HC_GRANT_SYNC
};
enum hc_persist { HC_PUT_DOMAIN, HC_DEL_DOMAIN, HC_ADD_EVENT, HC_PUT_CHANNEL, HC_DEL_CHANNEL };
enum hc_level { HC_LOG_ERROR, HC_LOG_WARN, HC_LOG_INFO, HC_LOG_DEBUG };

struct hc_action {
	enum hc_action_kind kind;
	uint64_t session;     /* REPLY, NOTIFY, CLOSE, SCAN */
	const uint8_t *bytes; /* in the buffer of `out`, valid until its reset */
	uint32_t len;
	union {
		struct {
			enum hc_grant grant; /* REPLY: descriptor to send along */
			uint32_t uid, slab;  /* of GRANT_SLAB, GRANT_STATUS */
			uint64_t channel;    /* of GRANT_RINGS, also: */
			uint32_t bytes;      /* of the memfd */
			bool last;           /* both ends have it now */
			/* of GRANT_SYNC: made when it is not there */
			uint32_t slot, lines, epoch;
			uint64_t id;
		} reply;
		struct {
			uint32_t slot;
			bool keep; /* else close */
		} sync;
		uint32_t node; /* SEND_PEER */
		struct {
			enum hc_persist what;
			uint64_t seq; /* comes back in PERSISTED */
			uint64_t id;  /* domain id, or channel id */
		} persist;            /* bytes: the encoded row */
		struct {
			uint32_t uid, slot; /* which record */
			uint64_t id;        /* 0 = free the slot */
			uint32_t tag, epoch, number, nranks;
			uint8_t state;
			uint8_t cut_set; /* enum hc_page_cut */
			bool fence;      /* fence: no op_begin may have missed it (membarrier) */
			uint64_t cut;
			uint32_t cause_kind, cause_rank, cause_pid;
		} publish; /* bytes: the cause in words */
		struct {
			uint64_t domain;
			uint32_t epoch, rank, block;
			uint32_t pid; /* session 0: the arena that this process had before */
			uint64_t started;
		} scan;
		struct {
			uint32_t pid;
			uint64_t started;
		} watch;
		struct {
			uint32_t uid, slot;
			uint64_t channel;
			uint8_t state; /* HC_W_channel_state_*; REVOKED: its rings are forgotten */
		} reg;
		struct {
			enum hc_level level;
			uint16_t code;   /* HC_W_event_code_* or 0 */
			uint64_t domain; /* 0 = none */
			uint32_t rank;
		} log; /* bytes: the text, no control bytes */
	} u;
};

/* Where actions go. The caller gives both buffers once and resets before each step. */
#define HC_OUT_ACTIONS 512u
#define HC_OUT_BYTES   (512u * 1024u)
struct hc_out {
	struct hc_action acts[HC_OUT_ACTIONS];
	uint32_t count;
	uint32_t used; /* of bytes */
	bool more;     /* rows of a batch follow at once: a commit may wait for them */
	uint8_t bytes[HC_OUT_BYTES];
};
static inline void hc_out_reset(struct hc_out *out)
{
	out->count = out->used = 0;
	out->more = false;
}

/* Memory that an instance needs. It is touched only as it is used. */
size_t hc_core_bytes(const struct hc_limits *limits);
/* `memory` is zeroed, aligned to 64 and outlives the core. Returns the core, never NULL. */
struct hc_core *hc_core_init(void *memory, size_t bytes, const struct hc_limits *limits,
			     const struct hc_self *self, const struct hc_settings *settings);
/* Before the first event: about so many rows of domains (ROW), of so many bytes together, are to
 * come. `warm` is told what memory they will need, no more than that. */
typedef void hc_warm_fn(void *at, size_t bytes);
void hc_core_expect(struct hc_core *core, uint32_t rows, size_t bytes, hc_warm_fn *warm);
void hc_core_step(struct hc_core *core, uint64_t now, const struct hc_event *event,
		  struct hc_out *out);
/* When to call again with TIMEOUT; HC_NEVER, or `now` and earlier for "at once". */
uint64_t hc_core_deadline(const struct hc_core *core);

/* Other nodes, by name; index 0 is this one. Returns the index (added if new), or HC_NONE. */
uint32_t hc_core_node(struct hc_core *core, const char *name);
/* The same without adding. */
uint32_t hc_core_find_node(const struct hc_core *core, const char *name);

/* For status: what there is now. */
struct hc_core_counts {
	uint32_t domains, active, forming, damaged, ranks, sessions, devices, simulated;
	uint64_t requests, refused;
	uint32_t channels, waiting;
	uint64_t lapsed, granted_at_once, granted_later, channel_refused;
	uint64_t hints_kept, hints_broken, hints_unknown;
	bool drained;      /* no new domains */
	uint64_t drain_ns; /* and somebody waits for those there are, for so long */
};
void hc_core_counts(const struct hc_core *core, struct hc_core_counts *counts);

/* A broken promise inside; supplied by the program. Never returns. */
_Noreturn void hc_panic(const char *file, int line, const char *what);
#define hc_assert(x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			hc_panic(__FILE__, __LINE__, #x);                                          \
	} while (0)

#endif
