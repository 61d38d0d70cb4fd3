/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: one row for each request of the client socket.
 *
 * RIGHT(request, who, "of what")
 *
 * who, each one narrower than the one before:
 *	MEMBER	root, the daemon's own user, admin_group, socket_group. Nobody else may do anything.
 *	RANK	a member, for a rank that its own process holds
 *	USER	a member, for domains of its own uid
 *	OWNER	as USER, and root and admin_group for all domains
 *	ADMIN	root, the daemon's own user, admin_group
 *
 * A type without a row is no request. The daemon asks this table and nothing else (rights.h);
 * doc/protocol.md shows it; the tests walk all of it.
 */
/* clang-format off */
RIGHT(hello,      MEMBER, "begin a session")
RIGHT(ping,       MEMBER, "be answered")
RIGHT(carry,      MEMBER, "announce a descriptor")
RIGHT(root_info,  MEMBER, "make a domain of its own uid")
RIGHT(join_root,  MEMBER, "join a domain of its own uid whose root info it has")
RIGHT(join_table, MEMBER, "join or make a domain of its own uid")
RIGHT(join_local, MEMBER, "make a domain of its own uid")
RIGHT(create,     MEMBER, "make a domain of its own uid for others")
RIGHT(add_device, OWNER,  "give a rank of a created domain its device")
RIGHT(activate,   OWNER,  "activate a created domain")
RIGHT(attach,     USER,   "become a rank of a created domain, or come back")
RIGHT(sub,        RANK,   "make a sub-domain of its own domain")
RIGHT(split,      RANK,   "split its own domain")
RIGHT(batch,      RANK,   "make many sub-domains of its own domain")
RIGHT(sync_open,  RANK,   "share the barrier of its own domain")
RIGHT(sync_have,  RANK,   "say what it has of its own domain")
RIGHT(put,        RANK,   "put a value for its own domain")
RIGHT(get,        RANK,   "get a value of its own domain")
RIGHT(fence,      RANK,   "fence the values of its own domain")
RIGHT(leave,      RANK,   "let its own rank leave")
RIGHT(destroy,    OWNER,  "end a domain")
RIGHT(abort,      RANK,   "give up its own rank")
RIGHT(status,     MEMBER, "see the state of any domain")
RIGHT(ops_ended,  MEMBER, "say that references were returned")
RIGHT(subscribe,  MEMBER, "hear of a domain by id, and of all of its own uid; admins of all")
RIGHT(query,      MEMBER, "see all views")
RIGHT(channel_want, RANK,    "ask for channels of its own rank")
RIGHT(channel_open, RANK,    "use its end of a channel")
RIGHT(channel_release, RANK, "end a channel that its rank is an end of")
RIGHT(admin,      ADMIN,  "say an operator's word")
/* clang-format on */
