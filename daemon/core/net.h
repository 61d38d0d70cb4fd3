/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other nodes: what the core holds of its ports, its peers and the paths between.
 *
 *   port   network port of this node with its addresses; port.c says which are used, and why not
 *   peer   another node: its identity, its control connection, what is not acknowledged yet
 *   path   a pair of one port here and one there, with beats in both directions
 *
 * A peer is made by a section [node NAME] (dialled for ever) or by a hello that is accepted. It
 * gets paths once it is UP: for each endpoint that it announces the kernel is asked for the route,
 * and the address that it names, if it is of a port in use, makes a path with it. The node with
 * the other end finds the same path by its number, a hash of both endpoints.
 *
 *   peer_book.c  which peers there are, and by what they are known
 *   peer.c       life of a peer: states, what is told of it
 *   peer_ports.c what it announces
 *   peer_conn.c  connections: dialling, which one counts, what comes over them
 *   peer_hello.c who speaks: checks of a hello, refusals
 *   peer_watch.c connected, but no path is good: is it there?
 *   peer_mail.c  numbered messages: queue, acknowledgement, sending again
 *   path.c       routes, paths
 *   path_state.c their states, flaps, what is told of them
 *   beat.c       heartbeats: sending, hearing
 *   beat_judge.c judging silence, and our own lateness
 *   probe.c      challenges, sizes that pass
 *   port.c       ports, which addresses are used
 *   netview.c    all of it for people
 *
 * Private to daemon/core.
 */
#ifndef HC_NET_H
#define HC_NET_H

#include "state.h"

#include <string.h>

#define HC_PEER_NONE  HC_NONE
#define HC_PEER_PATHS 16u /* at most, for one peer */
#define HC_PEER_GONE  8u
#define HC_PEER_PORTS 16u /* of a peer that are kept */

struct hc_port_slot {
	struct hc_port_fact fact;
	uint64_t last_tx, last_rx, load_at; /* counters at the last look, for the load */
	uint32_t load_percent;              /* of its speed, the fuller direction */
	uint64_t full_since;                /* above the limit since then; HC_NEVER */
	bool ourselves[HC_PORT_ADDRS];      /* a dial to that address came back to us */
};

struct hc_window {
	uint32_t key;
	uint64_t top, bits; /* highest seq, and the 64 below it */
};

/* A port of a peer, as it announces it. */
struct hc_far_port {
	char name[16];
	struct hc_endpoint at;
	uint32_t mtu, mbps;
	uint8_t prefix;
	bool last;
	uint32_t ask;  /* serial of the question for its route that is open, 0 = none */
	uint32_t path; /* that it has, HC_NONE */
	int route_error;
	bool ourselves;       /* that address reaches ourselves: never dialled */
	struct hc_addr local; /* our address, as the route says; family 0 = not known */
	uint32_t route_mtu;   /* 0 = that of the port */
};

struct hc_peer {
	bool used, known; /* known: identity below is what a hello said */
	uint8_t state;    /* HC_W_node_state_* */
	bool parted;      /* the peer said that it closes the connection: its end is no sign */
	bool asked,
		lives;    /* a rival came: the connection was asked whether it lives; it answered */
	bool bounce_lies; /* beats were refused though it lived: not believed again until it is up
			   */
	uint32_t node;    /* index into core->nodes, HC_NONE until known */
	uint64_t conn;    /* that counts: welcomed both ways; 0 = none */
	uint64_t heard_at;    /* last sign of life that came over no path; HC_NEVER = none */
	uint64_t watch_at;    /* no path is good: next look at its connection, HC_NEVER */
	uint64_t waits_since; /* what was sent is not acknowledged, HC_NEVER: nothing is waited for
			       */
	uint64_t lost_at;     /* a connection that counted ended, 0 = none did */
	uint64_t since;       /* of the state */
	/* identity, as its last accepted hello said */
	uint8_t node_id[16], boot_id[16];
	uint64_t cookie, incarnation;
	uint32_t start;
	uint16_t proto;
	uint16_t news; /* HC_W_event_code_*, to be told once it is up: NODE_RESTARTED, _REBORN; 0 */
	char name[HC_NAME_MAX + 1]; /* as people see it; of the section until it is known */
	char build[48];
	uint64_t wish_ns; /* its heartbeat interval */
	uint32_t wish_misses, wish_down;
	uint64_t rival; /* cookie of another daemon with this identity, 0 = none */
	/* where to dial */
	bool fresh; /* words were lost between us, or this is another daemon: see again.h */
	bool configured;
	bool sought;                   /* dialled for a join, without a section; see seek.h */
	char section[HC_NAME_MAX + 1]; /* [node NAME] */
	struct hc_endpoint endpoints[HC_NODE_ENDPOINTS];
	uint32_t nendpoints, next_endpoint;
	uint32_t ourselves; /* a bit for each endpoint that reaches ourselves */
	uint32_t twin;      /* another peer that this section turned out to be, HC_NONE */
	/* connections */
	uint64_t dialled; /* under way, 0 = none */
	uint64_t dial_at; /* next attempt, HC_NEVER */
	uint64_t conn_since;
	uint32_t dial_backoff_ms, dials, conns;
	struct hc_list conn_list;   /* links: conn_links */
	struct hc_endpoint address; /* of the last connection that counted, or the last attempt */
	uint16_t last_end;          /* HC_W_conn_end_* of the last one that ended */
	char last_error[160];
	/* numbered messages; mail: cells of net->mail */
	uint64_t stream_out, stream_in;
	uint64_t mail_cookie; /* of the daemon that our numbers are for, 0 = none yet */
	uint32_t sent, acked, received,
		told; /* last sent, acknowledged; last that came, that we acked */
	uint32_t mail_first, mail_last, mail_bytes, mail_count; /* cells; HC_NONE = empty */
	uint32_t unsent;    /* cell of the first frame that was not sent on this connection */
	uint32_t ack_bytes; /* that came since `told` */
	uint64_t ack_at;    /* HC_NEVER: nothing to acknowledge */
	uint64_t overflows;
	uint8_t busy; /* enum hc_peer_busy */
	/* keys of beats */
	uint32_t key_in, key_old, key_out; /* ids, 0 = none; old: accepted until old_until */
	uint64_t old_until;
	uint64_t seq_floor; /* a path that is made anew goes on above */
	struct {
		uint32_t path;
		struct hc_window window[2];
	} gone[HC_PEER_GONE]; /* paths that were dropped: their frames must not come twice */
	uint32_t gone_next;
	/* life */
	uint64_t grace_until; /* of DAEMON_DOWN and HOLD, HC_NEVER */
	uint32_t restarts, downs;
	struct hc_far_port ports[HC_PEER_PORTS];
	uint32_t nports;
	bool ask_routes;                       /* they are to be asked for */
	uint32_t paths[HC_PEER_PATHS], npaths; /* numbers of paths */
	/* comparison of what both hold of shared domains */
	uint64_t digest, far_digest, differ_a, differ_b;
	uint32_t differ_run, sums;
};
enum hc_peer_busy { /* what a peer is still to be told */
		    PEER_RESUMES = 1,
		    PEER_PORTS = 2,
		    PEER_HOLDS = 4,
};

/* When a path has to be looked at, and when it sends, stand in arrays of their own: hc_net. */
struct hc_path {
	/* every frame */
	uint32_t id;   /* hash of both ends; 0 = free slot */
	uint32_t peer; /* HC_NONE while the slot is free */
	struct hc_endpoint local, remote;
	uint8_t state, cause; /* HC_W_path_state_*, HC_W_path_cause_* */
	bool hears_us;        /* as the last beat said */
	bool odd;             /* the next frame changes more than counters */
	uint64_t heard_at;    /* last authentic frame, HC_NEVER = none yet */
	uint32_t heard_us,
		heard_seq;          /* sent_us and low bits of seq of the last that can be echoed */
	uint64_t echo_at;           /* when that came, HC_NEVER = none yet */
	struct hc_window window[2]; /* of the present key and the one before */
	uint64_t proof_at;          /* last frame that proves both directions, HC_NEVER */
	uint64_t proof_of;          /* when we sent what it says was heard, HC_NEVER */
	uint64_t their_wish_ns;
	uint64_t tx_seq; /* last used under key_out */
	uint64_t sent, received;
	uint32_t gen_out, gen_in;
	uint32_t rtt_us, rtt_best_us, rtt_max_us, jitter_us;
	uint32_t rtt_count;
	/* judging */
	uint32_t missed, run, worst; /* beats missed in all, in a row now, and the longest row */
	uint32_t urgent;             /* probes sent in this window */
	uint64_t urgent_at, urgent_step;
	uint64_t judge_from;  /* silence before does not count */
	uint64_t deaf_at;     /* since then the peer says that it does not hear us, HC_NEVER */
	uint64_t discount_ns; /* given for our own stalls in this silence */
	bool starved;         /* and no more will be given */
	uint32_t ticket;      /* of the question to a third node, 0 = none open */
	uint64_t asked_age;   /* ns of silence when it was asked */
	/* probing */
	uint64_t probe_at, challenge; /* next try, HC_NEVER; of the round under way, 0 = none */
	uint32_t tries, step;         /* rounds sent; next size of this one */
	uint32_t plain;               /* answers to the smallest */
	uint32_t local_mtu, far_mtu, used_mtu; /* used: what passes both ways; 0 = not known yet */
	uint32_t mtu_hint;                     /* of the kernel, 0 = none */
	uint32_t mtu_want, mtu_best; /* of this round: the agreed size; largest answered */
	uint64_t mtu_at;             /* next check */
	uint32_t told_local, told_far, told_used; /* in the last notice */
	uint32_t holes;                           /* rounds in a row that found the size lost */
	bool small;                               /* the agreed size does not pass */
	/* flaps */
	bool fell, held;   /* it was good before this; it is held out */
	bool port_changed; /* our port may be another than it was */
	uint32_t port;     /* index (fact.index) of our port */
	char port_name[16];
	uint64_t since, made;
	uint64_t flap_times[8];
	uint32_t flaps, nflap_times, good_run;
	uint64_t last_flap, held_until, held_since; /* last_flap: HC_NEVER = none */
	uint32_t hold_ms;
	/* counters */
	uint64_t late, refused, replays, bounced;
	uint32_t rtt_log[64]; /* the last ones, for p50 and p99 */
	uint32_t changes;
	char cause_text[160];
};

/* A control connection, from the dial or its coming in to its end. */
struct hc_conn {
	uint64_t number; /* 0 = free */
	uint32_t peer;   /* that it was dialled for, or that it belongs to; HC_NONE */
	struct hc_endpoint local, remote;
	uint64_t limit; /* hello and welcome by then */
	bool up;
	bool said, heard;              /* our hello with a key went; theirs came and was accepted */
	bool chosen, welcomed;         /* our welcome went; theirs came */
	bool parted;                   /* they said why they close it */
	uint32_t key_in, key_out;      /* ids that both hellos announced */
	uint64_t stream;               /* theirs */
	uint64_t cookie;               /* of the daemon that spoke */
	uint64_t said_stream, said_at; /* ours, as our hello said it, and when */
	uint32_t said_ports;           /* hash of those that it announced */
};

/* A refusal that was told, so that it is not told again at once. */
struct hc_told {
	uint64_t key, until;
};
#define HC_TOLD 32u

struct hc_notice {
	uint16_t kind; /* HC_W_event_code_* */
	uint32_t node;
	char text[256];
};

struct hc_net {
	struct hc_port_slot *ports;
	uint32_t nports;   /* slots in use are those with fact.present, below this */
	uint32_t last_own; /* ours that were announced: to find out that they changed */
	struct hc_peer *peers;
	struct hc_pool peer_pool;
	struct hc_index peer_by_id; /* first 8 bytes of node_id */
	struct hc_path *paths;
	/* Of a path, HC_NEVER = not: when it has to be looked at next; when it sends next. */
	uint64_t *due, *beats;
	struct hc_pool path_pool;
	uint32_t path_top; /* numbers below were used */
	struct hc_index path_by_id, path_by_remote;
	struct hc_conn *conns;
	uint32_t nconns;
	struct hc_pool conn_pool;
	struct hc_index conn_by_number;
	struct hc_links conn_links; /* of the connections of a peer */
	uint64_t conn_serial;
	struct hc_timers timers; /* of peers, then connections, then the ports */
	struct hc_list busy;     /* peers that are still to be told something */
	struct hc_links busy_links;
	struct hc_told told[HC_TOLD];
	uint32_t told_next;
	uint32_t hold_ms;    /* we stop and come back; 0 = no */
	uint64_t hold_until; /* beats carry HOLDS */
	bool ports_chosen;   /* candidates were logged once */
	bool own_odd;        /* some peer was told others than last_own */
	uint8_t (*mail)[1024];
	uint32_t *mail_next;
	struct hc_pool mail_pool;
	uint32_t ask_serial, key_serial;
	struct hc_notice *notices; /* a ring */
	uint32_t notice_first, notice_count, notice_cursor, notices_lost;
	/* the tick of beats: next burst, and next look at paths; see beat.c, beat_judge.c */
	uint64_t tick_at, look_at;
	uint64_t common_at;   /* next burst of those that beat at our own interval */
	uint64_t early;       /* how much the burst under way draws the next one near, of 10,240 */
	uint32_t burst, look; /* next path of the one under way, HC_NONE */
	uint64_t judge_at;    /* last TIMEOUT: all that had come by then is heard; 0: none */
	uint64_t awake_at;    /* after the last time that we did not run ourselves */
	uint64_t late_since;  /* something was due then, and was not done in time; HC_NEVER */
	uint64_t wish_ns, wish_lo, wish_hi,
		wish_until;        /* ours; while it changes: the faster, the slower */
	uint32_t ask_cursor, asks; /* peers whose routes are to be asked: next, how many */
	uint64_t other_at;         /* next of what has no timer: nothing yet */
	uint64_t stalls, stalled_ns, stall_told_at; /* told: HC_NEVER = never */
	uint64_t node_changes, path_changes, port_changes;
	uint64_t unknown_path, wrong_source, malformed, replays;
};

struct hc_net *hc_net_lay_out(struct hc_mem *m, const struct hc_limits *lim);
void hc_net_start(struct hc_core *c);
/* One unit of what is due at c->now; false: nothing is. */
bool hc_net_work(struct hc_core *c);
uint64_t hc_net_deadline(const struct hc_core *c);
void hc_net_counts(const struct hc_core *c, struct hc_core_counts *counts);
/* The settings have changed. */
void hc_net_settings(struct hc_core *c);

/* ---- notices: told to everybody who subscribed, logged, and kept in the journal ---- */
void hc_notice(struct hc_core *c, enum hc_level level, uint16_t kind, uint32_t node,
	       const char *text);
bool hc_notice_work(struct hc_core *c);

/* ---- port.c ---- */
void hc_port_timeout(struct hc_core *c); /* the changes of a moment are told together */
void hc_port_fact(struct hc_core *c, const struct hc_port_fact *fact);
/* What is to be said of an address of a port: HC_W_port_verdict_*. */
uint8_t hc_port_verdict(const struct hc_core *c, const struct hc_port_slot *p, uint32_t addr);
/* The port that has this address and may be used, HC_NONE. */
uint32_t hc_port_of(const struct hc_core *c, const struct hc_addr *addr);
/* What the ports in use take together, MB/s each way; 0: not all of them say it. Their names. */
uint32_t hc_port_speed(const struct hc_core *c, char *names, size_t bytes);
struct hc_port_slot *hc_port_get(struct hc_core *c, uint32_t index);
/* Our ports as peer_hello and peer_ports announce them; writes records to c->scratch. */
void hc_port_announce(struct hc_core *c, struct hc_arr *out);
uint32_t hc_port_hash(const struct hc_arr *announced);
/* A dial to that address came back to ourselves. */
void hc_port_ourselves(struct hc_core *c, const struct hc_addr *addr);

/* ---- peer.c ---- */
void hc_peer_fact(struct hc_core *c, const struct hc_node_fact *fact);
/* Dial there for a join: a peer without a section, or one that is dialled there already. HC_NONE:
 * no room. */
uint32_t hc_peer_seek(struct hc_core *c, const char *name, const struct hc_endpoint *at,
		      uint32_t nat);
/* No join wants it any more: it goes, if it never answered. */
void hc_peer_unsought(struct hc_core *c, uint32_t peer);
uint32_t hc_peer_find(const struct hc_core *c, const uint8_t node_id[16]);
struct hc_peer *hc_peer_get(struct hc_core *c, uint32_t peer);
/* Both welcomes went over the connection that counts now. */
void hc_peer_up(struct hc_core *c, uint32_t peer);
/* Its kernel says that its daemon is gone. */
void hc_peer_daemon_down(struct hc_core *c, uint32_t peer, const char *why);
/* No path is left (last = state of the paths), or a path is there again. */
void hc_peer_paths_changed(struct hc_core *c, uint32_t peer);
/* An authentic frame of it came: its daemon lives. */
void hc_peer_alive(struct hc_core *c, uint32_t peer);
/* Frames of paths to it are not judged now: its daemon is down or on hold. */
bool hc_peer_excused(const struct hc_core *c, const struct hc_peer *p);
/* Last sign of life, on whatever way; HC_NEVER = none. */
uint64_t hc_peer_heard_at(const struct hc_core *c, const struct hc_peer *p);
void hc_peer_timeout(struct hc_core *c, uint32_t peer);
uint64_t hc_peer_deadline(const struct hc_core *c, const struct hc_peer *p);
void hc_peer_hold(struct hc_core *c, uint32_t hold_ms); /* tell all: we stop and come back */
void hc_peer_unreachable(struct hc_core *c, uint32_t peer, const char *why);
/* The same, but control works: the connection stays. */
void hc_peer_beatless(struct hc_core *c, uint32_t peer, const char *why);
/* The connection that counted is gone, for a reason of HC_W_conn_end_*. */
void hc_peer_parted(struct hc_core *c, uint32_t peer, uint16_t end, const char *why);
/* Its deadlines may have changed. */
void hc_peer_arm(struct hc_core *c, uint32_t peer);
void hc_peer_busy(struct hc_core *c, uint32_t peer, uint8_t what);
bool hc_peer_work(struct hc_core *c);
void hc_peer_tell_ports(struct hc_core *c); /* ours have changed */
/* What it announces; keeps what is known of ports that stay. */
void hc_peer_ports(struct hc_core *c, uint32_t peer, const struct hc_arr *ports);
/* A new peer without identity; HC_NONE: no room. */
uint32_t hc_peer_new(struct hc_core *c);
void hc_peer_identify(struct hc_core *c, uint32_t peer, const struct hc_m_peer_hello *m);
/* The section `from` names the node that `peer` is. */
void hc_peer_merge(struct hc_core *c, uint32_t from, uint32_t peer);
/* A hello came from there: is the node that of a section that could not be reached yet? */
void hc_peer_claim(struct hc_core *c, uint32_t peer, const struct hc_addr *from);
/* It would be dialled, and is the section of a node that is connected: merged, its slot is gone. */
bool hc_peer_claimed(struct hc_core *c, uint32_t peer);
/* We are the one of the two that chooses the connection. */
static inline bool hc_peer_chooses(const struct hc_core *c, const struct hc_peer *p)
{
	return memcmp(c->self.node_id, p->node_id, 16) < 0;
}
/* The peer says that it stops and comes back: peer_hold, or 0 and a beat with HC_BEAT_HOLDS. */
void hc_peer_on_hold(struct hc_core *c, uint32_t peer, uint32_t hold_ms);

/* ---- peer_watch.c ---- */
/* It is connected, or a path is not good any more: look at its connection, unless all is well. */
void hc_peer_watch(struct hc_core *c, uint32_t peer);
void hc_peer_watch_timeout(struct hc_core *c, uint32_t peer);

/* ---- peer_conn.c ---- */
void hc_peer_conn_up(struct hc_core *c, const struct hc_event *ev);
void hc_peer_conn_lost(struct hc_core *c, const struct hc_event *ev);
void hc_peer_conn_msg(struct hc_core *c, const struct hc_event *ev);
void hc_peer_dial(struct hc_core *c, uint32_t peer);
/* Dial at `delay_ms` from now, unless that is due earlier or under way. */
void hc_peer_dial_in(struct hc_core *c, uint32_t peer, uint32_t delay_ms);
void hc_peer_back_off(struct hc_core *c, uint32_t peer); /* a dial failed: the next one later */
void hc_peer_dial_path(struct hc_core *c, uint32_t peer, uint32_t path); /* from its address */
struct hc_conn *hc_conn_find(struct hc_core *c, uint64_t number);
void hc_conn_send(struct hc_core *c, uint64_t number, uint32_t id, int32_t status,
		  const struct hc_desc *d, const void *msg);
/* End it; `why`, if any, is said first, so that the peer does not take it for our death. */
void hc_conn_close(struct hc_core *c, struct hc_conn *k, uint16_t refusal, const char *why);
void hc_conn_close_all(struct hc_core *c, uint32_t peer, const struct hc_conn *but);
void hc_conn_own(struct hc_core *c, struct hc_conn *k, uint32_t peer);
void hc_conn_timeout(struct hc_core *c, uint32_t slot);
/* All that is heard and said; choose it if that is ours to do. */
void hc_conn_heard(struct hc_core *c, struct hc_conn *k);

/* ---- peer_hello.c ---- */
void hc_hello_say(struct hc_core *c, struct hc_conn *k);
void hc_hello_on(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f);
void hc_hello_refused(struct hc_core *c, struct hc_conn *k, const struct hc_m_peer_refuse *m);
/* Tell people of a refusal, but not again and again. */
void hc_refusal_notice(struct hc_core *c, uint16_t code, uint32_t node,
		       const struct hc_endpoint *at, const char *text);
/* The dial over k reached this node itself. */
void hc_hello_ourselves(struct hc_core *c, struct hc_conn *k);

/* ---- peer_mail.c ---- */
/* Queue a message and send it if there is a connection. 0, or HC_E_LIMIT: the stream is broken. */
int hc_peer_send(struct hc_core *c, uint32_t peer, const struct hc_desc *d, const void *msg);
/* A numbered frame came. 0: handle it; HC_E_EXISTS: it came before; HC_E_MALFORMED: a gap. */
int hc_peer_take(struct hc_core *c, uint32_t peer, const struct hc_frame *f);
void hc_peer_acknowledge(struct hc_core *c, uint32_t peer, uint32_t number);
void hc_peer_resume(struct hc_core *c, uint32_t peer, uint32_t received);
void hc_peer_mail_drop(struct hc_core *c, uint32_t peer); /* a new stream begins */
void hc_peer_mail_send(struct hc_core *c, uint32_t peer); /* the next one that was not sent */
void hc_peer_mail_ack(struct hc_core *c, uint32_t peer);  /* say what came */

/* ---- path.c ---- */
/* A peer announced its ports, ours have changed, or routes have: ask for the routes anew. */
void hc_path_routes(struct hc_core *c, uint32_t peer);
void hc_path_route(struct hc_core *c, const struct hc_route_fact *fact);
/* The path of that number to the peer, made if both ends are known to be theirs. HC_NONE. */
uint32_t hc_path_find(struct hc_core *c, uint32_t peer, uint32_t id,
		      const struct hc_endpoint *local, const struct hc_endpoint *remote);
uint32_t hc_path_id(const struct hc_core *c, const uint8_t peer_id[16],
		    const struct hc_endpoint *local, const struct hc_endpoint *remote);
void hc_path_set(struct hc_core *c, uint32_t path, uint8_t state, uint8_t cause, const char *text);
void hc_path_port_changed(struct hc_core *c, uint32_t port);
void hc_path_drop_all(struct hc_core *c, uint32_t peer);
/* Answer of `peer` to peer_heard; age HC_NONE: it has not heard it either. */
void hc_path_confirmed(struct hc_core *c, uint32_t peer, uint32_t ticket, uint32_t age_ms);
/* What to answer to peer_heard: since the last frame of that node, HC_NONE = never. */
uint32_t hc_path_heard_ms(const struct hc_core *c, const uint8_t node_id[16]);
/* Interval and windows that count for a path now: how its silence is judged. */
uint64_t hc_path_interval(const struct hc_core *c, const struct hc_path *p);
uint64_t hc_path_window(const struct hc_core *c, const struct hc_path *p);
uint64_t hc_path_down_window(const struct hc_core *c, const struct hc_path *p);

/* ---- beat.c ---- */
void hc_beat_start(struct hc_core *c);
void hc_beat_timeout(struct hc_core *c); /* all that had come is heard: paths may be judged */
void hc_beat_new_keys(struct hc_core *c, uint32_t peer); /* numbers begin anew */
void hc_beat_datagram(struct hc_core *c, const struct hc_event *ev);
void hc_beat_bounced(struct hc_core *c, const struct hc_event *ev);
void hc_beat_begin(struct hc_core *c, uint32_t path); /* it was made */
void hc_beat_now(struct hc_core *c, uint32_t path, uint16_t flags);
bool hc_beat_work(struct hc_core *c);
uint64_t hc_beat_deadline(const struct hc_core *c);
void hc_beat_settings(struct hc_core *c);

/* ---- probe.c ---- */
void hc_probe_begin(struct hc_core *c, uint32_t path);
void hc_probe_again(struct hc_core *c, uint32_t path); /* the size may have changed */
void hc_probe_ask(struct hc_core *c, uint32_t path, uint32_t size);
void hc_probe_on_probe(struct hc_core *c, uint32_t path, const struct hc_m_probe *m);
void hc_probe_on_answer(struct hc_core *c, uint32_t path, const struct hc_m_probed *m);
void hc_probe_too_big(struct hc_core *c, uint32_t path, uint32_t mtu);
void hc_probe_timeout(struct hc_core *c, uint32_t path);
uint64_t hc_probe_deadline(const struct hc_core *c, const struct hc_path *p);

/* ---- netview.c: rows for view.c; the next cursor, 0 at the end ---- */
struct hc_view_page;
uint64_t hc_netview_nodes(struct hc_view_page *g, uint64_t at);
uint64_t hc_netview_paths(struct hc_view_page *g, uint64_t at);
uint64_t hc_netview_ports(struct hc_view_page *g, uint64_t at);

#endif
