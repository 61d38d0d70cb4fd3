/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every outcome that a caller can meet, one row each.
 *
 * ERR(number, NAME, hccl, nccl, "short text", "what it means and what to do")
 *
 * Inside, the outcome is HC_E_NAME = +number; at the library's edge it is HCOMM_E_NAME = -number:
 * one cause has one code. hccl and nccl are the result values that a host library built for
 * those interfaces gets (HcclResult, ncclResult_t). Rows are only appended; a number is never
 * used again.
 */
/* clang-format off */
ERR( 1, INVALID,         1, 4, "invalid argument",
    "A value is outside of what the call takes. The detail text names it; correct the call.")
ERR( 2, NOT_SUPPORTED,   5, 5, "not supported",
    "This build or node cannot do that. Nothing was done.")
ERR( 3, NO_DAEMON,       7, 2, "no daemon",
    "hcommd cannot be reached at its socket. Is the service running (systemctl status hcommd)? Is HCOMM_SOCKET right?")
ERR( 4, VERSION,         5, 5, "version mismatch",
    "Library and daemon, or two daemons, share no protocol version. The text says which side to upgrade.")
ERR( 5, PERMISSION,      7, 2, "not permitted",
    "The caller's user may not do that. Members of the group hcomm may create and join domains; a domain is changed by its owner, root or hcomm-admin.")
ERR( 6, TIMEOUT,         9, 6, "timed out",
    "The deadline passed. The text names the ranks that were missing, and the setting that gave the limit with its origin.")
ERR( 7, IN_PROGRESS,    20, 7, "in progress",
    "The work was started; an event ends it (hcomm_dispatch), or ask its status.")
ERR( 8, AGAIN,          20, 7, "try again later",
    "Not enough is free now. hcomm_retry_after() gives the time after which to ask again, or says that it is unknown.")
ERR( 9, NOT_READY,       9, 6, "not ready",
    "A rank table is still being written (status initializing). Wait until its producer completes it.")
ERR(10, GONE,            6, 4, "gone",
    "The domain or handle has ended, or the daemon left before its answer. The reason of an ended domain can be asked for an hour.")
ERR(11, NOT_FOUND,       6, 4, "not found",
    "There is nothing of that name or number here.")
ERR(12, EXISTS,          1, 4, "exists already",
    "The name is taken by another domain of this owner.")
ERR(13, LIMIT,          20, 7, "limit reached",
    "A limit or quota is used up; the text names it. Raise the setting, or free something.")
ERR(14, MISMATCH,        1, 5, "ranks disagree",
    "Two ranks of one domain said different things (number of ranks, table, settings, which split they are at). The text names both and both values.")
ERR(15, LINK_UNAVAILABLE, 19, 2, "link unavailable",
    "No path works between two ranks. The text names them and the root cause.")
ERR(16, DEVICE_OFFLINE,  7, 2, "device offline",
    "The device is not on this node, or not healthy. The text lists the devices that are.")
ERR(17, RESOURCE_EXHAUSTED, 20, 7, "resource exhausted",
    "Memory, descriptors or disk ran out on this node. The text says which.")
ERR(18, BUFFER_OVERFLOW, 3, 3, "buffer too small",
    "The answer does not fit into the caller's buffer, or a message is larger than its limit.")
ERR(19, SUSPENDED,      22, 7, "suspended",
    "The domain waits for a cause to end (a node that cannot be reached). It resumes by itself, or becomes damaged after suspend_limit_s.")
ERR(20, DAMAGED,        21, 6, "damaged",
    "A member is lost for good. Leave or destroy the domain, and form a new one.")
ERR(21, ABORTED,        21, 6, "aborted",
    "The operation cannot complete, because a member is gone or the domain was aborted.")
ERR(22, PEER_LOST,      21, 6, "peer lost",
    "A rank or node that the call needs is gone. The text names it.")
ERR(23, FORKED,          5, 5, "called in a forked child",
    "A session belongs to the process that opened it. Open a new one in the child.")
ERR(24, MALFORMED,       3, 3, "malformed message",
    "Bytes on the socket are not a message of this protocol. A bug, or a foreign program on the socket.")
ERR(25, STALE,          20, 7, "list changed while read",
    "The table changed between two pages of one listing. Ask again from the start.")
ERR(26, BUSY,            7, 2, "held by another",
    "The rank, device or name is held; the text names the holder.")
ERR(27, SYSTEM,          8, 2, "system call failed",
    "The kernel refused something that should work. The text has its words.")
ERR(28, NO_MEMORY,       3, 2, "out of memory",
    "The process could not allocate memory. Nothing was done.")
ERR(29, PORT_IN_USE,     7, 2, "port in use",
    "Another process listens on that address and port; the text names it where it can be read.")
ERR(30, STORAGE,         8, 2, "state cannot be stored",
    "The state directory is full or read-only. The daemon goes on; what it makes now is marked not persistent.")
ERR(31, INTERNAL,        4, 3, "internal error",
    "A bug in hcomm. Please report the text.")
ERR(32, FORCED,          9, 6, "released by force",
    "The domain is gone, but references were left after the drain timeout; the text names rank, pid and operation.")
ERR(33, PEER_CLOSED,    20, 7, "connection to the daemon lost",
    "The daemon went away during the call. Domains live on; calls work again when the daemon is back.")
/* clang-format on */
