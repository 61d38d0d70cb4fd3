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

#include "addr.h"
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
	uint32_t peers; /* other nodes; 0: messages to them are carried by the caller (SEND_PEER) */
	uint32_t paths; /* pairs of ports, over all peers */
	uint32_t ports; /* network ports of this node */
	uint32_t mail;  /* KiB of control messages that are not acknowledged, over all peers */
	uint32_t values; /* of the exchange, of 1 KiB each; larger ones count as several */
};

/* Settings that may change at run time (event CONFIG); origin as in "default" or "FILE:LINE". */
struct hc_settings {
	uint64_t connect_timeout_ns, drain_timeout_ns, orphan_grace_ns, prepare_limit_ns,
		ended_keep_ns;
	uint64_t suspend_limit_ns; /* a node that cannot be reached for longer is given up */
	char connect_timeout_origin[128];
	char drain_timeout_origin[128];
	uint32_t bandwidth_limit_percent; /* of a link, that channels may be granted */
	uint32_t quota_link_percent;      /* of that, for one uid; 0 = all */
	bool channel_owner_uid;           /* fair shares are between uids, not domains */
	uint64_t aging_ns, grant_ttl_ns, hint_hold_ns;
	uint64_t beat_ns; /* interval wished; the slower wish of two nodes counts */
	uint32_t misses, down_misses;
	uint64_t probe_timeout_ns, mtu_recheck_ns, daemon_grace_ns, flap_window_ns;
	uint32_t flap_limit;
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
	uint8_t boot_id[16];
	uint64_t cookie; /* of this process */
	char cluster[HC_NAME_MAX + 1];
	bool peers;       /* it may talk to other nodes; false: alone, for want of a key */
	uint8_t security; /* as in peer_hello */
	uint16_t port;    /* that it listens on, TCP and UDP */
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
 * of device a out of this node, to all others; a HC_END_NET, b HC_NONE: that of any device.
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

/*
 * A network port of this node. Known by its index: one that goes and comes back under the same
 * name is another one. `wish` is what the configuration says of it.
 */
#define HC_PORT_ADDRS 8u
enum hc_port_wish { PORT_WISH_NONE, PORT_WISH_NAMED, PORT_WISH_EXCLUDED, PORT_WISH_OTHERS };
struct hc_port_addr {
	struct hc_addr addr;
	uint8_t prefix;
	bool tentative; /* not usable yet */
	bool unwished;  /* listen_address names others */
};
struct hc_port_fact {
	uint32_t index;
	char name[16];
	uint8_t kind; /* HC_W_port_kind_* */
	uint8_t wish; /* enum hc_port_wish; OTHERS: only others are named */
	bool present, up, carrier;
	uint32_t mtu;
	uint32_t mbps;               /* MB/s each way, 0 = not known */
	uint64_t rx_bytes, tx_bytes; /* counters of the port */
	uint32_t naddrs;
	struct hc_port_addr addrs[HC_PORT_ADDRS];
};

/* A section [node NAME] of the configuration: where to dial. */
#define HC_NODE_ENDPOINTS 8u
struct hc_node_fact {
	char name[HC_NAME_MAX + 1];
	bool present; /* false: the section went away */
	uint32_t nendpoints;
	struct hc_endpoint endpoints[HC_NODE_ENDPOINTS];
};

/* Answer to ACT_ROUTE: how the kernel would send to that address. */
struct hc_route_fact {
	uint32_t ask; /* number of the question */
	int error;    /* 0, or a positive errno */
	struct hc_addr local;
	uint32_t port; /* index of the port it leaves by */
	uint32_t mtu;  /* of the route, 0 = that of the port */
};

/*
 * Control connections are numbered: those that the core dials by itself (low half of the numbers),
 * those that come in by the shell (HC_CONN_IN and up). A number is never used again.
 */
#define HC_CONN_IN (1ull << 63)

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
	HC_EV_ROW,         /* a stored domain, before START; again, when it was asked with RECALL */
	HC_EV_CHANNEL_ROW, /* a stored channel, after the domains, devices and links */
	HC_EV_UNREAD,      /* a session did not read its events: so many were dropped */
	HC_EV_PORT_FACT,
	HC_EV_NODE_FACT,
	HC_EV_ROUTES,    /* routes have changed: what was answered may be wrong */
	HC_EV_ROUTE,     /* answer to ACT_ROUTE */
	HC_EV_CONN_UP,   /* a control connection is there, and authenticated if there is a key */
	HC_EV_CONN_MSG,  /* a frame of it */
	HC_EV_CONN_LOST, /* it ended, or could not be made */
	HC_EV_DATAGRAM,  /* an authentic one; queued ones are fed before a TIMEOUT */
	HC_EV_HOLD,      /* this daemon is about to stop and to come back: the peers are told */
	HC_EV_BOUNCED,   /* the peer's kernel, or one on the way, returned a datagram */
};

/* What the state record showed of the domain of a row, as the daemon before wrote it. */
struct hc_shown {
	bool asked;    /* by RECALL */
	uint8_t state; /* ACTIVE to DRAINING; NONE: another domain, or it is over */
	uint64_t cut;  /* of DRAINING; 0: not known */
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
		struct {
			struct hc_str bytes;
			struct hc_shown shown; /* of a domain */
		} row;
		uint64_t unread; /* since the session began */
		const struct hc_port_fact *port;
		const struct hc_node_fact *node;
		const struct hc_route_fact *route;
		uint32_t hold_ms; /* HOLD: for so long at most */
		struct {
			uint64_t conn;
			struct hc_endpoint local, remote; /* CONN_UP */
			const struct hc_frame *frame;     /* CONN_MSG */
			uint16_t end;                     /* CONN_LOST: HC_W_conn_end_* */
			int error;                        /* CONN_LOST: a positive errno, 0 */
			struct hc_str text; /* CONN_LOST: of the library, or the other cluster */
		} conn;
		struct {
			struct hc_endpoint local, remote; /* where it came in, and from */
			uint32_t key;                     /* under which it is authentic */
			const uint8_t *bytes;             /* without the tag */
			uint32_t len;
		} datagram;
		struct {
			struct hc_endpoint remote; /* that it was sent to */
			int error;                 /* ECONNREFUSED, EMSGSIZE, EHOSTUNREACH, ... */
			uint32_t mtu;              /* with EMSGSIZE: what passes, 0 = not said */
		} bounced;
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
	HC_ACT_RECALL,  /* the row that came was not taken: it comes again, with `shown` */
	HC_ACT_WATCH,   /* a process that rows name: tell its end, also if it is gone already */
	HC_ACT_SYNC,    /* a sync page that came with this request is kept, or one is let go */
	HC_ACT_LOG,
	HC_ACT_REGISTER, /* write a status register */
	HC_ACT_ROUTE,    /* ask the kernel for the route to an address */
	HC_ACT_DIAL,
	HC_ACT_CONN_SEND,
	HC_ACT_CONN_CLOSE, /* what was sent before still goes out; no CONN_LOST follows */
	HC_ACT_KEY_MAKE,   /* keys of beats, from a connection */
	HC_ACT_KEY_DROP,
	HC_ACT_DATAGRAM, /* authenticate with the key of `peer` and send */
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
			uint32_t uid, slot; /* which record */
			uint64_t id;
			uint32_t tag; /* of the epoch that the row says */
		} recall;
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
			uint32_t ask;
			struct hc_addr to;
		} route;
		struct { /* DIAL, CONN_SEND (bytes: frames), CONN_CLOSE */
			uint64_t conn;
			struct hc_endpoint to;
			struct hc_addr from; /* family 0: as the route says */
		} conn;
		struct {
			uint64_t conn; /* that exports them */
			uint32_t peer; /* that the sending key is for; replaces the one there */
			uint32_t key;  /* id of the receiving key; KEY_DROP: forget this one */
			uint8_t node_id[16];
			uint32_t start;  /* of the peer */
			uint64_t cookie; /* of the peer */
			bool all;        /* KEY_DROP: also what sends to `peer` */
		} key;
		struct {
			uint32_t peer;
			struct hc_endpoint to;
			struct hc_addr from;
			bool urgent; /* not with the burst: at once */
		} datagram;          /* bytes: the frame without the tag */
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
#define HC_OUT_BYTES   (3200u * 1024u) /* a row of 16,384 ranks, each on a node of its own */
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

/*
 * Other nodes, by identity; index 0 is this one. Returns the index (added if new; the name is what
 * people see), or HC_NONE: no room.
 */
uint32_t hc_core_node(struct hc_core *core, const uint8_t id[16], const char *name);
/* Without adding: by identity; by name (the first of that name). */
uint32_t hc_core_find_node(const struct hc_core *core, const uint8_t id[16]);
uint32_t hc_core_node_named(const struct hc_core *core, const char *name);

/* For status: what there is now. */
struct hc_core_counts {
	uint32_t domains, active, forming, suspended, damaged, ranks, sessions, devices, simulated;
	uint64_t requests, refused;
	uint32_t channels, waiting;
	uint64_t lapsed, granted_at_once, granted_later, channel_refused;
	uint64_t hints_kept, hints_broken, hints_unknown;
	uint32_t peers, peers_up, paths, paths_good;
	uint64_t stalls, refused_datagrams;
	uint32_t peers_refused;  /* they turned us away, or we them */
	char refused_first[160]; /* why, of the first of them */
	bool drained;            /* no new domains */
	uint64_t drain_ns;       /* and somebody waits for those there are, for so long */
};
void hc_core_counts(const struct hc_core *core, struct hc_core_counts *counts);

/* Domains that stand still because nodes cannot be reached, and which. */
struct hc_core_away {
	uint32_t domains, nodes;
	char names[256]; /* of the first of the nodes: "b, c and 4 more" */
};
void hc_core_away(struct hc_core *core, struct hc_core_away *away);

/* A broken promise inside; supplied by the program. Never returns. */
_Noreturn void hc_panic(const char *file, int line, const char *what);
#define hc_assert(x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			hc_panic(__FILE__, __LINE__, #x);                                          \
	} while (0)

#endif
