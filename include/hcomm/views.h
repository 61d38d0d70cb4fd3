/* SPDX-License-Identifier: Apache-2.0 */
/* Made by `make gen` from proto/views.tbl.h. Do not edit. */
/*
 * Rows that hcomm_query delivers. `size` says how much of the struct the library filled;
 * later versions append fields, they change none. Strings end with a NUL. There is no
 * hidden padding: the layout is the same for every compiler of a machine.
 */
#ifndef HCOMM_VIEWS_H
#define HCOMM_VIEWS_H

#include <stdint.h>
#include <hcomm/hcomm.h>

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

enum hcomm_view {
	HCOMM_VIEW_STATUS = 1,
	HCOMM_VIEW_DOMAIN = 2,
	HCOMM_VIEW_MEMBER = 3,
	HCOMM_VIEW_CLIENT = 4,
	HCOMM_VIEW_DEVICE = 5,
	HCOMM_VIEW_EVENT = 6,
	HCOMM_VIEW_SETTING = 7,
	HCOMM_VIEW_LINK = 8,
	HCOMM_VIEW_CHANNEL = 9,
	HCOMM_VIEW_WAITING = 10,
	HCOMM_VIEW_NODE = 11,
	HCOMM_VIEW_PATH = 12,
	HCOMM_VIEW_PORT = 13
};

/* the daemon itself, one row */
struct hcomm_view_status {
	uint32_t size;
	char node[HCOMM_NAME_BYTES]; /* name of the node */
	char node_id[HCOMM_NAME_BYTES]; /* identity of the node, hexadecimal */
	char instance[HCOMM_NAME_BYTES]; /* instance of the daemon */
	char version[HCOMM_NAME_BYTES]; /* build of the daemon */
	uint32_t pid; /* process of the daemon */
	uint32_t start; /* start number, +1 at each start */
	uint8_t reserved0_[4];
	uint64_t uptime_s; /* seconds since the start */
	char health[HCOMM_NAME_BYTES]; /* ok, or degraded */
	char remark[HCOMM_TEXT_BYTES]; /* what is missing or wrong, and what to do */
	uint32_t domains; /* domains whose home is here or that have ranks here, not over */
	uint32_t active; /* of them ACTIVE */
	uint32_t forming; /* of them not ACTIVE yet */
	uint32_t damaged; /* of them DAMAGED */
	uint32_t ranks; /* ranks of this node in them */
	uint32_t clients; /* open sessions */
	uint32_t devices; /* devices of this node */
	uint32_t simulated; /* of them simulated, not real */
	uint64_t requests; /* requests served since the start */
	uint64_t refused; /* requests refused since the start */
	uint64_t malformed; /* packets that were no messages */
	uint64_t events_lost; /* events that a client did not read in time */
	char fence[HCOMM_NAME_BYTES]; /* membarrier, or atomics: how references are counted */
	char security[HCOMM_NAME_BYTES]; /* how daemons authenticate each other; alone = no peers */
	char socket[HCOMM_TEXT_BYTES]; /* path of the client socket, and who owns it */
	char storage[HCOMM_NAME_BYTES]; /* ok, or that the disk is slow, or why state is not persistent */
	uint64_t commits; /* database transactions since the start */
	char drain[HCOMM_NAME_BYTES]; /* no, or that the node takes no new domains, and how many are left */
	uint32_t channels; /* channels that are granted */
	uint32_t waiting; /* requests for channels that wait, and tickets */
	uint64_t granted_at_once; /* requests for channels granted at once */
	uint64_t granted_later; /* of those that waited or came back: granted */
	uint64_t channel_refused; /* requests for channels refused with a hint when to come again */
	uint64_t hints_kept; /* hints after which the caller came back and was granted */
	uint64_t hints_broken; /* hints after which it was not */
	uint64_t hints_unknown; /* refusals that could not say when */
	uint64_t lapsed; /* channels that nobody collected in time */
	uint32_t peers; /* other nodes that are known */
	uint32_t peers_up; /* of them connected */
	uint32_t paths; /* paths to other nodes */
	uint32_t paths_good; /* of them normal */
	uint32_t listen_port; /* port for other nodes, 0 when closed */
	uint8_t reserved1_[4];
	uint64_t stalls; /* times that the daemon itself was not scheduled in time */
	uint64_t refused_datagrams; /* datagrams that were not authentic, repeated or misdirected */
	uint64_t wrong_key; /* connections turned away: another cluster key */
	uint64_t wrong_cluster; /* connections turned away: another cluster */
	uint64_t strangers; /* connections turned away: no daemon, or it said nothing in time */
	uint64_t no_room; /* connections turned away: too many that had not said who they are */
	uint32_t suspended; /* of the domains those that are SUSPENDED */
	uint8_t reserved2_[4];
};

/* communication domains of this node */
struct hcomm_view_domain {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t id; /* domain id */
	char name[HCOMM_NAME_BYTES]; /* name */
	char state[HCOMM_NAME_BYTES]; /* FORMING, PROBING, ACTIVATING, ACTIVE, SUSPENDED, DAMAGED, DRAINING, DESTROYED or FAILED */
	uint32_t epoch; /* epoch, 0 while forming */
	uint32_t number; /* state number */
	uint32_t ranks; /* number of ranks */
	uint32_t arrived; /* ranks that have come */
	uint32_t local; /* ranks on this node */
	uint32_t uid; /* owner */
	uint8_t priority; /* scheduling class */
	uint8_t weight; /* weight */
	char home[HCOMM_NAME_BYTES]; /* node that decides */
	uint8_t reserved1_[6];
	uint64_t age_ms; /* milliseconds in this state; of one of another home, since this node heard of it */
	uint8_t persistent; /* 1: survives a crash of the daemon */
	char cause[HCOMM_TEXT_BYTES]; /* first cause of not being ACTIVE, or who is missing */
	uint8_t reserved2_[3];
	uint32_t values; /* values in its exchange */
	uint64_t value_bytes; /* memory of this node that they take */
};

/* ranks of domains */
struct hcomm_view_member {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t domain; /* domain id */
	uint32_t rank; /* rank */
	char state[HCOMM_NAME_BYTES]; /* expected, joined, ready, detached, dead or left */
	char node[HCOMM_NAME_BYTES]; /* node, or server of the table */
	uint32_t device; /* device on that node */
	char address[HCOMM_NAME_BYTES]; /* address of the device, where known: of other nodes not after a restart of this daemon */
	uint32_t pid; /* process */
	uint32_t uid; /* its user */
	uint64_t begun; /* number of the last collective begun, as of the last sample */
	uint32_t running; /* references held, as of the last sample */
	char sign[HCOMM_NAME_BYTES]; /* of a rank that has not come: the last sign of life from its node, where known */
	uint8_t reserved1_[4];
};

/* open sessions */
struct hcomm_view_client {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t session; /* number of the session */
	uint32_t pid; /* process */
	uint32_t uid; /* user */
	char role[HCOMM_NAME_BYTES]; /* member, or admin */
	char build[HCOMM_NAME_BYTES]; /* build of its library */
	char job[HCOMM_NAME_BYTES]; /* job tag */
	uint32_t seats; /* ranks that it holds, over all domains */
	uint8_t reserved1_[4];
	uint64_t requests; /* requests served */
	uint64_t events_lost; /* events that it did not read in time */
};

/* devices of this node */
struct hcomm_view_device {
	uint32_t size;
	uint32_t index; /* physical device number */
	char kind[HCOMM_NAME_BYTES]; /* npu, gpu or cpu */
	char model[HCOMM_NAME_BYTES]; /* vendor and device number, or words */
	char pci[HCOMM_NAME_BYTES]; /* PCI address */
	int32_t numa; /* NUMA node, -1 = none */
	char port[HCOMM_NAME_BYTES]; /* network port that it uses */
	char address[HCOMM_NAME_BYTES]; /* its address */
	char health[HCOMM_NAME_BYTES]; /* ok, offline or unknown */
	uint8_t simulated; /* 1: not a real device */
	char source[HCOMM_NAME_BYTES]; /* sysfs, topology-file or config: where the device is known from */
	char address_source[HCOMM_NAME_BYTES]; /* where its address is known from */
	uint8_t reserved0_[3];
	uint32_t holder; /* process that uses it, 0 = none */
	uint32_t domains; /* domains that it is in */
};

/* the event journal */
struct hcomm_view_event {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t seq; /* number of the entry */
	char time[HCOMM_NAME_BYTES]; /* wall clock, UTC */
	char code[HCOMM_NAME_BYTES]; /* code of the event */
	uint64_t domain; /* domain id, 0 for the node */
	uint32_t epoch; /* its epoch */
	int32_t rank; /* rank concerned, -1 = none */
	uint32_t pid; /* process concerned */
	uint32_t uid; /* user concerned */
	char text[HCOMM_TEXT_BYTES]; /* in words */
};

/* every setting with its value and origin */
struct hcomm_view_setting {
	uint32_t size;
	char name[HCOMM_NAME_BYTES]; /* name */
	char value[HCOMM_TEXT_BYTES]; /* value in force */
	char unit[HCOMM_NAME_BYTES]; /* unit */
	char origin[HCOMM_TEXT_BYTES]; /* default, file:line, environment or command line */
	uint8_t reloadable; /* 1: hcommctl reload takes a new value */
	char what[HCOMM_TEXT_BYTES]; /* meaning */
	uint8_t reserved0_[3];
};

/* links between devices of this node */
struct hcomm_view_link {
	uint32_t size;
	uint32_t number; /* number of the link */
	char name[HCOMM_NAME_BYTES]; /* type and ends; .1, .2 for parallel ones of one type */
	char type[HCOMM_NAME_BYTES]; /* hccs, sio, pcie, roce, ib, eth or shm */
	char a[HCOMM_NAME_BYTES]; /* device at one end, or any */
	char b[HCOMM_NAME_BYTES]; /* device at the other end, any, or out: all other nodes */
	char state[HCOMM_NAME_BYTES]; /* up, down (a device at its end is not usable), or gone (no longer described, but something is still granted) */
	uint32_t bandwidth_mbps; /* MB/s each way, 0 when not known */
	uint32_t limit_mbps; /* of it channels may be granted, MB/s each way */
	uint32_t used_ab_mbps; /* granted from A to B, MB/s */
	uint32_t used_ba_mbps; /* granted from B to A, MB/s */
	uint32_t vcs; /* virtual channels */
	uint32_t vcs_used; /* of them granted */
	uint32_t waiting; /* requests that wait for it */
	uint8_t reserved0_[4];
	uint64_t grants; /* granted since the start */
	uint32_t latency_us; /* latency one way, microseconds; UINT32_MAX, shown as - and null, when not known */
	char via[HCOMM_NAME_BYTES]; /* what it goes over: a bridge, the ports of both ends, or those towards other nodes */
	char source[HCOMM_NAME_BYTES]; /* where the link is known from: sysfs, topology-file, config or default */
	char bandwidth_source[HCOMM_NAME_BYTES]; /* where its bandwidth is known from, or unknown */
	char latency_source[HCOMM_NAME_BYTES]; /* where its latency is known from, or unknown */
	char vcs_source[HCOMM_NAME_BYTES]; /* where its virtual channels are known from */
	uint8_t reserved1_[4];
};

/* granted channels of this node */
struct hcomm_view_channel {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t id; /* channel */
	uint64_t domain; /* domain id */
	uint32_t rank; /* rank that asked for it */
	uint32_t peer; /* rank at the far end */
	uint32_t pid; /* process of the rank, 0 = not here */
	uint32_t peer_pid; /* process of the peer, 0 = not here */
	char link[HCOMM_NAME_BYTES]; /* link that it goes over */
	char type[HCOMM_NAME_BYTES]; /* kind of that link */
	uint32_t mbps; /* share from rank to peer, MB/s */
	uint32_t back_mbps; /* share of the way back */
	uint32_t vc; /* virtual channel of the link */
	uint8_t priority; /* scheduling class of its domain */
	char state[HCOMM_NAME_BYTES]; /* what its status register says */
	uint8_t reserved1_[3];
	uint64_t age_ms; /* milliseconds since the grant, or since the daemon took it back */
	uint32_t hold_ms; /* how long it was to be held, 0 = not said */
	uint8_t collected; /* ends that are in use: 0, 1 or 2 */
	uint8_t reserved2_[3];
};

/* requests for channels that wait */
struct hcomm_view_waiting {
	uint32_t size;
	uint8_t reserved0_[4];
	uint64_t domain; /* domain id */
	uint32_t rank; /* rank that asked */
	uint32_t pid; /* its process */
	uint32_t uid; /* its user */
	uint8_t priority; /* scheduling class that it counts as now */
	uint8_t reserved1_[3];
	uint32_t pieces; /* channels that it asks for */
	uint8_t reserved2_[4];
	uint64_t mbps; /* sum of what it asks for, MB/s */
	uint32_t place; /* how many would be served before it */
	uint8_t reserved3_[4];
	uint64_t waited_ms; /* milliseconds since it came */
	char estimate_ms[HCOMM_NAME_BYTES]; /* milliseconds until its turn, or unknown */
	char kind[HCOMM_NAME_BYTES]; /* wait; ticket: refused, its place is kept; domain: one that activates */
	char link[HCOMM_NAME_BYTES]; /* links that it waits for, for each channel the first that could carry it */
};

/* other nodes */
struct hcomm_view_node {
	uint32_t size;
	char name[HCOMM_NAME_BYTES]; /* name; with the start of its identity when two have one name */
	char node_id[HCOMM_NAME_BYTES]; /* identity, hexadecimal; empty until it is known */
	char state[HCOMM_NAME_BYTES]; /* unknown, connecting, up, restarting, daemon-down, unreachable or refused */
	uint8_t reserved0_[4];
	uint64_t age_ms; /* milliseconds in this state */
	char address[HCOMM_NAME_BYTES]; /* where its control connection goes, or is tried next */
	uint32_t paths; /* paths to it */
	uint32_t paths_good; /* of them normal */
	uint64_t heard_ms; /* milliseconds since its last sign of life; 18446744073709551615 = none */
	uint32_t interval_ms; /* heartbeat interval that both use */
	char boot_id[HCOMM_NAME_BYTES]; /* of its kernel */
	uint8_t reserved1_[4];
	uint64_t incarnation; /* of its database */
	uint32_t start; /* start number of its daemon */
	uint32_t restarts; /* restarts of its daemon that were seen */
	uint32_t waiting; /* control messages that it has not acknowledged */
	uint8_t reserved2_[4];
	uint64_t next_ms; /* milliseconds until the next attempt to connect, 0 = none is due */
	uint32_t dials; /* attempts in a row that failed */
	char build[HCOMM_NAME_BYTES]; /* build of its daemon */
	char cause[HCOMM_TEXT_BYTES]; /* why it is not up */
	uint8_t reserved3_[4];
};

/* paths to other nodes */
struct hcomm_view_path {
	uint32_t size;
	char node[HCOMM_NAME_BYTES]; /* the node */
	uint32_t id; /* number of the path, the same on both nodes */
	char port[HCOMM_NAME_BYTES]; /* port of this node */
	char local[HCOMM_NAME_BYTES]; /* our end */
	char remote[HCOMM_NAME_BYTES]; /* its end */
	char state[HCOMM_NAME_BYTES]; /* unknown, normal, congested, unstable or down */
	char cause[HCOMM_TEXT_BYTES]; /* why it is in this state */
	uint64_t age_ms; /* milliseconds in this state */
	uint64_t heard_ms; /* milliseconds since the last frame; 18446744073709551615 = none */
	uint32_t interval_ms; /* heartbeat interval */
	uint32_t mtu_local; /* of our port, bytes */
	uint32_t mtu_peer; /* of its port */
	uint32_t mtu_used; /* what passes both ways; 0 = not known yet */
	uint32_t rtt_us; /* round trip, microseconds, the last */
	uint32_t rtt_p50_us; /* median of the last 64 */
	uint32_t rtt_p99_us; /* of 100, 99 of the last 64 are below */
	uint32_t rtt_max_us; /* longest ever */
	uint32_t jitter_us; /* mean change from one to the next */
	uint8_t reserved0_[4];
	uint64_t sent; /* frames sent */
	uint64_t received; /* frames received */
	uint32_t missed; /* beats that did not come */
	uint32_t run; /* missed in a row now */
	uint32_t worst; /* longest row of missed beats */
	uint32_t flaps; /* times that it went bad and came back */
	uint64_t flap_ms; /* milliseconds since the last; 18446744073709551615 = none */
	uint64_t held_ms; /* milliseconds that it is still held out after flaps */
	uint32_t changes; /* changes of state */
	uint32_t load_percent; /* load of our port, percent of its speed; 0 when that is not known */
	uint64_t refused; /* authentic frames that were repeated or misdirected */
};

/* network ports of this node */
struct hcomm_view_port {
	uint32_t size;
	char name[HCOMM_NAME_BYTES]; /* name of the interface */
	uint32_t index; /* number that the kernel has for it */
	char kind[HCOMM_NAME_BYTES]; /* ethernet, loopback, tunnel, bridge, virtual or infiniband */
	char address[HCOMM_NAME_BYTES]; /* an address of it */
	char verdict[HCOMM_NAME_BYTES]; /* used, or why not */
	uint32_t mtu; /* bytes */
	uint32_t mbps; /* speed each way, MB/s, 0 = not known */
	uint8_t carrier; /* 1: it has a carrier */
	uint8_t reserved0_[3];
	uint32_t load_percent; /* percent of its speed */
};

#ifdef __cplusplus
}
#endif
/* clang-format on */
#endif
