/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be wrong with a rank table, a topology file or a binding to this machine: one row a
 * kind. The name is what programs see (`kind` in the JSON form) and never changes its meaning;
 * the text is what manuals say about it. Rows only get added.
 *
 * X(symbol, name, text)
 */
#ifndef HC_VERDICT_TBL_H
#define HC_VERDICT_TBL_H

#define HC_VERDICT_KINDS(X)                                                                        \
	X(BAD_ADDRESS, "bad-address", "an address that cannot be used")                            \
	X(MISSING_ADDRESS, "missing-address", "a device without an address where one is needed")   \
	X(DUPLICATE_ADDRESS, "duplicate-address", "two devices with one address and port")         \
	X(DUPLICATE_RANK, "duplicate-rank", "two devices with one rank")                           \
	X(DUPLICATE_DEVICE, "duplicate-device", "one device of a server listed twice")             \
	X(DUPLICATE_SERVER, "duplicate-server", "one server or super pod listed twice")            \
	X(DUPLICATE_KEY, "duplicate-key", "one JSON key twice in an object")                       \
	X(DUPLICATE_SUPER_DEVICE, "duplicate-super-device", "one super device id twice in a pod")  \
	X(MISSING_SUPER_DEVICE, "missing-super-device", "a super pod's device without its id")     \
	X(RANK_GAP, "rank-gap", "ranks that do not run from 0 without a hole")                     \
	X(CROSSED_RANKS, "crossed-ranks", "ranks or servers of two groups that are mixed")         \
	X(COUNT_MISMATCH, "count-mismatch", "a count that differs from its list")                  \
	X(MISSING_FIELD, "missing-field", "a required field that is absent")                       \
	X(WRONG_TYPE, "wrong-type", "a value of another JSON type")                                \
	X(BAD_NUMBER, "bad-number", "text or a value that is no whole number")                     \
	X(BAD_PORT, "bad-port", "a port that cannot exist")                                        \
	X(BAD_STATUS, "bad-status", "a status other than completed and initializing")              \
	X(BAD_VERSION, "bad-version", "a version or form that is not supported")                   \
	X(BAD_PROTOCOL, "bad-protocol", "a link protocol that is not known")                       \
	X(MIXED_FAMILY, "mixed-family", "IPv4 and IPv6 addresses together")                        \
	X(EMPTY, "empty", "a list or name with nothing in it")                                     \
	X(EMPTY_FILE, "empty-file", "a file with nothing in it")                                   \
	X(TOO_LONG, "too-long", "a file, text or list above its limit")                            \
	X(OUT_OF_RANGE, "out-of-range", "a value outside of what is allowed")                      \
	X(UNKNOWN_SERVER, "unknown-server", "a server that is not in server_list")                 \
	X(UNKNOWN_PEER, "unknown-peer", "a device that is not in peer_list")                       \
	X(SELF_EDGE, "self-edge", "an edge from a device to itself")                               \
	X(PORT_USED_TWICE, "port-used-twice", "one port used for two things")                      \
	X(SYNTAX, "syntax", "text that is not JSON")                                               \
	X(NOT_READY, "not-ready", "a table whose producer has not finished")                       \
	X(DEVICE_NOT_HERE, "device-not-here", "a table device that this machine does not have")    \
	X(ADDRESS_NOT_HERE, "address-not-here", "a table address that this device does not have")  \
	X(UNREADABLE, "unreadable", "a file that the system would not let us read")                \
	X(LOW_PORT, "low-port", "warning: a port below 1024 needs a privilege")

#endif
