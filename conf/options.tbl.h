/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of hcommd, one row each; nothing else in the tree says what an option is.
 *
 * From these rows come the typed fields of struct hc_conf, the reading, checking and printing of
 * values, the precedence of layers, the sample conf/hcommd.conf, the table of hcommd.conf(5), and
 * what a reload may change. A row:
 *
 *     TOP(kind, name, unit, lowest, highest, default, RELOAD|FIXED, ENV|NOENV, group, text)
 *
 * TOP rows stand above the first section of a file; NODE, DEVICE and LINK rows in sections
 * [node NAME], [device N] and [link A B]. `lowest` and `highest` are values for INT, SIZE, MODE
 * and PORTS, bytes of text for the other kinds; a text whose lowest is 0 may be empty, which
 * means "not given" or "automatic". An empty default means that too. For ENUM the unit column
 * lists the words. RELOAD rows follow SIGHUP; FIXED ones need a restart. An ENV row is also read
 * from HCOMM_<NAME IN CAPITALS>; NOENV keeps a name free that libhcomm reads (HCOMM_SOCKET,
 * HCOMM_LOG_LEVEL, ...), so that a variable meant for a client does not steer the daemon.
 *
 * Include with the macros wanted defined; those left out expand to nothing. Default ports lie
 * below 32768: above it the kernel hands them to outgoing connections.
 */
/* clang-format off */

#ifndef HC_OPTION_WORDS
#define HC_OPTION_WORDS
#define HC_WORDS_security(W)   W(security, key) W(security, none)
#define HC_WORDS_profile(W)    W(profile, default) W(profile, fast) W(profile, wan)
#define HC_WORDS_log_target(W) W(log_target, auto) W(log_target, stderr) W(log_target, journal)
#define HC_WORDS_log_level(W)  W(log_level, error) W(log_level, warn) W(log_level, info) \
                               W(log_level, debug)
#define HC_WORDS_channel_owner(W) W(channel_owner, domain) W(channel_owner, uid)
#define HC_WORDS_kind(W)       W(kind, cpu) W(kind, gpu) W(kind, npu)
#define HC_WORDS_type(W)       W(type, hccs) W(type, sio) W(type, pcie) W(type, roce) W(type, ib) \
                               W(type, eth) W(type, shm) W(type, hcclink) W(type, nvlink)
/* "|key|none": what the unit column of an ENUM row holds */
#define HC_WORD_TEXT(option, word) "|" #word
#endif

#ifndef TOP
#define TOP(...)
#endif
#ifndef NODE
#define NODE(...)
#endif
#ifndef DEVICE
#define DEVICE(...)
#endif
#ifndef LINK
#define LINK(...)
#endif

TOP(WORD, instance, "", 1, 32, "main", FIXED, ENV, "Identity",
    "Name of this daemon among several on one node. Another name than main moves the defaults of runtime_dir and state_dir to directories of its own")
TOP(WORD, node_name, "", 0, 64, "", FIXED, ENV, "Identity",
    "Name of this node as other nodes and people see it; empty takes the host name")
TOP(WORD, cluster, "", 1, 64, "default", FIXED, ENV, "Identity",
    "Name of the cluster; nodes of another cluster are turned away")

TOP(IFACES, listen_interface, "", 0, 1023, "", FIXED, ENV, "Network",
    "Interfaces to use between nodes, by exact name; ^NAME excludes one. Empty lets the route to each peer decide")
TOP(ADDRS, listen_address, "", 0, 1023, "", FIXED, ENV, "Network",
    "Addresses to listen on. Empty takes those of the interfaces in use")
TOP(PORTS, listen_port, "", 1, 65535, "16660", FIXED, ENV, "Network",
    "Port for control (TCP) and heartbeats (UDP) between nodes. Of a range A-B the first free one is taken and announced")
TOP(ENUM, security, HC_WORDS_security(HC_WORD_TEXT), 0, 1, "key", FIXED, ENV, "Network",
    "key: TLS 1.3 with the cluster key. none: neither encrypted nor authenticated, for tests on a closed network")
TOP(PATH, key_file, "", 1, 1023, "/etc/hcomm/cluster.key", FIXED, ENV, "Network",
    "File with the cluster key, as made by hcommctl key generate")

TOP(PATH, runtime_dir, "", 1, 1023, "/run/hcomm", FIXED, ENV, "Files",
    "Directory of the sockets, the state pages and facts.d")
TOP(PATH, state_dir, "", 1, 1023, "/var/lib/hcomm", FIXED, ENV, "Files",
    "Directory of the database, the node id and the lock that keeps a second daemon out")
TOP(PATH, socket, "", 1, 107, "/run/hcomm/hcommd.sock", FIXED, NOENV, "Files",
    "Socket for clients. When it is not set it follows runtime_dir")
TOP(MODE, socket_mode, "", 0, 0777, "0660", FIXED, ENV, "Files",
    "Permission bits of the socket, in octal")
TOP(WORD, socket_group, "", 1, 32, "hcomm", FIXED, ENV, "Files",
    "Group of the socket; its members may create and join domains")
TOP(WORD, admin_group, "", 1, 32, "hcomm-admin", FIXED, ENV, "Files",
    "Group whose members may act on everything, as root does")
TOP(PATH, sysfs_root, "", 1, 1023, "/sys", FIXED, ENV, "Files",
    "Where sysfs is mounted; devices and ports are discovered below it")
TOP(PATH, topology_file, "", 0, 1023, "", RELOAD, ENV, "Files",
    "Topology file that completes or replaces discovery; empty for none")
TOP(SIZE, table_bytes_max, "bytes", 4096, 1073741824, "64 MiB", RELOAD, ENV, "Files",
    "Largest rank table or topology file that is read")

TOP(INT, connect_timeout_s, "seconds", 1, 7200, "120", RELOAD, ENV, "Forming and probing",
    "How long a forming domain waits for its ranks, unless the client gives its own limit; the home node's value counts")
TOP(INT, probe_timeout_ms, "milliseconds", 10, 60000, "1000", RELOAD, ENV, "Forming and probing",
    "How long a path may take to prove itself in both directions")
TOP(INT, mtu_recheck_s, "seconds", 1, 86400, "30", RELOAD, ENV, "Forming and probing",
    "How often the usable packet size of a path is measured again")
TOP(INT, table_wait_s, "seconds", 0, 86400, "1800", RELOAD, ENV, "Forming and probing",
    "How long a rank table may stay unfinished (status initializing); 0 refuses such a table at once. This version does not use it")
TOP(INT, prepare_limit_s, "seconds", 1, 3600, "10", RELOAD, ENV, "Forming and probing",
    "After this long without word from any member a prepared change is given up")

TOP(ENUM, profile, HC_WORDS_profile(HC_WORD_TEXT), 0, 2, "default", RELOAD, ENV, "Heartbeats",
    "Sets the three heartbeat options below where they are not set themselves: default 100 ms, fast 10 ms, wan 1000 ms; each unstable after 3 misses, down after 5")
TOP(INT, heartbeat_interval_ms, "milliseconds", 10, 60000, "100", RELOAD, ENV, "Heartbeats",
    "Time between two beats of a path; of the two ends the slower wish is used")
TOP(INT, heartbeat_misses, "beats", 2, 19, "3", RELOAD, ENV, "Heartbeats",
    "Beats missed in a row after which a path is unstable and traffic leaves it")
TOP(INT, heartbeat_down_misses, "beats", 3, 20, "5", RELOAD, ENV, "Heartbeats",
    "Beats missed in a row after which a path is down; above heartbeat_misses")
TOP(INT, suspend_limit_s, "seconds", 1, 86400, "30", RELOAD, ENV, "Heartbeats",
    "A domain suspended by a fault for longer than this is damaged for good")
TOP(INT, daemon_grace_s, "seconds", 1, 3600, "5", RELOAD, ENV, "Heartbeats",
    "How long the daemon of a live node may be away before the node counts as unreachable")
TOP(INT, orphan_grace_s, "seconds", 1, 3600, "5", RELOAD, ENV, "Heartbeats",
    "A domain without any live member is destroyed after this long")
TOP(INT, drain_timeout_s, "seconds", 1, 3600, "30", RELOAD, ENV, "Heartbeats",
    "How long a drain waits for running operations before it is forced")
TOP(INT, failback_hold_s, "seconds", 0, 3600, "10", RELOAD, ENV, "Heartbeats",
    "How long a better path must have been good before traffic goes back to it; 0 goes back at once. This version does not use it")
TOP(INT, flap_limit, "flaps", 1, 8, "3", RELOAD, ENV, "Heartbeats",
    "A path that flaps this often within flap_window_s is held out for a growing time")
TOP(INT, flap_window_s, "seconds", 1, 3600, "60", RELOAD, ENV, "Heartbeats",
    "The time in which flaps are counted")

TOP(INT, bandwidth_limit_percent, "percent", 1, 100, "80", RELOAD, ENV, "Channels",
    "Share of a link's bandwidth that channels may be granted; the rest is kept for control")
TOP(INT, virtual_channels, "channels", 1, 4096, "64", RELOAD, ENV, "Channels",
    "Virtual channels of a link between two devices, unless its [link A B] section says otherwise")
TOP(INT, memory_bandwidth_limit_percent, "percent", 1, 100, "70", RELOAD, ENV, "Channels",
    "Share of a device's memory bandwidth that its channels may be granted in sum. This version does not use it")
TOP(INT, aging_s, "seconds", 1, 3600, "10", RELOAD, ENV, "Channels",
    "A request that waited this long counts one priority class higher, and nothing that came later is served before it on its links")
TOP(INT, grant_ttl_s, "seconds", 1, 3600, "5", RELOAD, ENV, "Channels",
    "A grant that nobody collects goes back after this long")
TOP(INT, hint_hold_s, "seconds", 1, 600, "1", RELOAD, ENV, "Channels",
    "How long past its retry hint a caller keeps its place")
TOP(ENUM, channel_owner, HC_WORDS_channel_owner(HC_WORD_TEXT), 0, 1, "domain", RELOAD, ENV, "Channels",
    "Between whom what is free on a link is shared fairly: domains, or uids however many domains they have. A reload holds for requests that come after it")

TOP(INT, op_limit_init_s, "seconds", 1, 86400, "120", RELOAD, ENV, "Operations",
    "An initialisation that runs longer is reported as stuck, with its stragglers. This version does not use it")
TOP(INT, op_limit_collective_s, "seconds", 1, 86400, "600", RELOAD, ENV, "Operations",
    "The same for a collective operation. This version does not use it")
TOP(INT, op_limit_p2p_s, "seconds", 1, 86400, "600", RELOAD, ENV, "Operations",
    "The same for a send or receive. This version does not use it")
TOP(INT, op_limit_barrier_s, "seconds", 1, 86400, "120", RELOAD, ENV, "Operations",
    "The same for a barrier. This version does not use it")
TOP(BOOL, recorder, "", 0, 1, "yes", RELOAD, ENV, "Operations",
    "Keep the last operations of each rank. This version does not use it")

TOP(INT, quota_domains, "domains", 1, 1000000, "10000", FIXED, ENV, "Limits",
    "Domains that one uid may hold")
TOP(INT, quota_channels, "channels", 1, 1000000, "4096", FIXED, ENV, "Limits",
    "Channels that one uid may hold")
TOP(INT, quota_waiting, "requests", 1, 1000000, "1024", FIXED, ENV, "Limits",
    "Requests that one uid may have waiting")
TOP(INT, quota_memory_mib, "MiB", 1, 1048576, "1024", FIXED, ENV, "Limits",
    "Shared memory that one uid may hold")
TOP(INT, quota_link_percent, "percent", 1, 100, "100", RELOAD, ENV, "Limits",
    "Share of what may be granted of one link, each way, that the channels of one uid may hold together, and the same share of the link's virtual channels (at least one). Lowered by a reload it ends no channel")
TOP(INT, clients_max, "clients", 1, 65536, "4096", FIXED, ENV, "Limits",
    "Clients connected at one time")
TOP(INT, domains_max, "domains", 1, 1000000, "100000", FIXED, ENV, "Limits",
    "Domains on this node")
TOP(INT, ranks_max, "ranks", 1, 1048576, "65536", FIXED, ENV, "Limits",
    "Ranks of one domain")
TOP(INT, peers_max, "nodes", 1, 65536, "4096", FIXED, ENV, "Limits",
    "Other nodes that this one talks to")

TOP(INT, journal_days, "days", 1, 3650, "14", RELOAD, ENV, "Journal and log",
    "Events older than this leave the event journal")
TOP(INT, journal_rows, "rows", 100, 100000000, "1000000", RELOAD, ENV, "Journal and log",
    "Events beyond this number leave the event journal, oldest first")
TOP(ENUM, log_level, HC_WORDS_log_level(HC_WORD_TEXT), 0, 3, "info", RELOAD, NOENV, "Journal and log",
    "The least important kind of record that is logged")
TOP(ENUM, log_target, HC_WORDS_log_target(HC_WORD_TEXT), 0, 2, "auto", FIXED, ENV, "Journal and log",
    "Where records go. auto: to the journal when the service manager started the daemon, else to standard error")
TOP(INT, log_rate, "a second", 1, 10000, "10", RELOAD, ENV, "Journal and log",
    "Records of one kind that are logged in a second; the others are counted")

TOP(PATH, metrics_socket, "", 0, 107, "/run/hcomm/metrics.sock", FIXED, ENV, "Metrics",
    "Socket that serves OpenMetrics; empty for none. When it is not set it follows runtime_dir. This version does not use it")
TOP(LOOPBACK, metrics_address, "", 0, 64, "", FIXED, ENV, "Metrics",
    "Loopback ADDRESS:PORT that serves OpenMetrics too; empty for none. This version does not use it")

TOP(BOOL, allow_foreign_pidns, "", 0, 1, "no", RELOAD, ENV, "Security",
    "Serve clients of another pid namespace that send no pidfd; the death of such a process is then seen late")

NODE(ENDPOINTS, address, "", 1, 511, "", RELOAD, NOENV, "[node NAME]",
    "Where the daemon of that node listens: one or several ADDRESS or ADDRESS:PORT, IPv6 with a port as [ADDRESS]:PORT")

DEVICE(ENUM, kind, HC_WORDS_kind(HC_WORD_TEXT), 0, 2, "", FIXED, NOENV, "[device N]",
    "What the device is")
DEVICE(PCI, pci, "", 12, 12, "", FIXED, NOENV, "[device N]",
    "PCI address of the device, as in 0000:3b:00.0")
DEVICE(INT, numa, "", 0, 1023, "", FIXED, NOENV, "[device N]",
    "NUMA node that the device is attached to")
DEVICE(WORD, port, "", 1, 63, "", FIXED, NOENV, "[device N]",
    "Interface or verbs device that carries the device's traffic to other nodes")
DEVICE(ADDRS, address, "", 1, 511, "", FIXED, NOENV, "[device N]",
    "Addresses of the device's own port")
DEVICE(BOOL, simulated, "", 0, 1, "", FIXED, NOENV, "[device N]",
    "The device does not exist; it is shown as simulated wherever it appears")

LINK(ENUM, type, HC_WORDS_type(HC_WORD_TEXT), 0, 8, "", RELOAD, NOENV, "[link A B]",
    "Kind of link; hcclink and nvlink are other words for hccs")
LINK(INT, bandwidth_mbps, "MB/s", 1, 10000000, "", RELOAD, NOENV, "[link A B]",
    "Bandwidth each way. A link of which nobody knows it carries channels without a share")
LINK(INT, latency_us, "microseconds", 0, 10000000, "", RELOAD, NOENV, "[link A B]",
    "Latency one way")
LINK(INT, virtual_channels, "channels", 1, 4096, "", RELOAD, NOENV, "[link A B]",
    "Virtual channels of this link")

#undef TOP
#undef NODE
#undef DEVICE
#undef LINK
/* clang-format on */
