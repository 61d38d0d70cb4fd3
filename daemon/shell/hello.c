/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a session begins.
 *
 * The hello is judged in this order: is it well formed, is there a common protocol version, who
 * is it, is a slot free, is the arena that it brings its own. Only then does the core hear of
 * it. Every refusal is one line that says what to do, and ends the connection.
 *
 * A process that brings its arena back has given its earlier session up, also when that looks
 * alive here: a child by fork may hold the socket open. So that session ends.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ctlimp.h"
#include "ident.h"
#include "log.h"
#include "loop.h"

static void refuse(struct hc_ctl *ctl, struct hc_in *in, int code, const char *why)
{
	struct hc_conn *c = in->conn;

	hc_log(HC_LOG_WARN, "client pid %u uid %u is refused: %s", c->pid, c->uid, why);
	hc_ctl_error(ctl, c, in->frame.head.id, code, why);
	c->ending = true;
}

static bool version_fits(struct hc_ctl *ctl, struct hc_in *in, const struct hc_m_hello *m)
{
	char why[640], build[160];
	const char *side = m->proto_max < HC_PROTO_MIN ? "library" : "daemon";

	if (m->proto_max >= HC_PROTO_MIN && m->proto_min <= HC_PROTO_MAX)
		return true;
	hc_str_copy(m->build, build, sizeof(build));
	snprintf(why, sizeof(why),
		 "the library (%s) speaks protocol %u to %u, the daemon (%s) %u to %u; upgrade the "
		 "%s",
		 build, m->proto_min, m->proto_max, HC_VERSION, HC_PROTO_MIN, HC_PROTO_MAX, side);
	refuse(ctl, in, HC_E_VERSION, why);
	return false;
}

/* ---- slots ---- */

static bool take_slot(struct hc_ctl *ctl, struct hc_conn *c)
{
	uint32_t slot = ctl->free_slot;
	struct hc_slot *s;

	if (slot >= ctl->sessions_max)
		return false;
	s = &ctl->slots[slot];
	ctl->free_slot = s->next_free;
	s->generation++;
	if (!s->generation)
		s->generation = 1; /* a session number is never 0 */
	s->conn = c;
	c->session = (uint64_t)s->generation << 32 | slot;
	ctl->waiting--;
	ctl->counts.sessions++;
	return true;
}

void hc_ctl_free_slot(struct hc_ctl *ctl, uint64_t session)
{
	uint32_t slot = (uint32_t)session;
	struct hc_slot *s = &ctl->slots[slot];

	hc_assert(slot < ctl->sessions_max && s->conn);
	s->conn = NULL;
	s->next_free = ctl->free_slot;
	ctl->free_slot = slot;
	ctl->counts.sessions--;
}

/* ---- hello ---- */

/*
 * The last sixteenth of the table is for others: whatever one user does, the next one and the
 * operator find a place. Root and admins are not bound by it.
 */
static bool has_its_share(const struct hc_ctl *ctl, const struct hc_caller *caller, char *why,
			  size_t size)
{
	const uint32_t most = ctl->sessions_max - ctl->sessions_max / 16;
	const struct hc_conn *c;
	uint32_t n = 0;

	if (caller->cred.role == HC_W_role_ADMIN || ctl->counts.sessions < most)
		return false;
	for (c = ctl->conns; c; c = c->next)
		n += c->session && !c->closed && c->uid == caller->cred.uid;
	if (n < most)
		return false;
	snprintf(why, size,
		 "uid %u has %u sessions; of clients_max (%u) one user may have %u, so that others "
		 "find a place",
		 caller->cred.uid, n, ctl->sessions_max, most);
	return true;
}

/* `brought`: a descriptor, or -1 for a new arena. */
static int give_arena(struct hc_ctl *ctl, struct hc_proc *p, uint64_t session, int brought,
		      char *why, size_t size)
{
	const struct hc_arena *arena;
	struct hc_conn *old;
	uint64_t before;
	int r;

	r = brought < 0 ? hc_procs_arena_make(p, session, &arena)
			: hc_procs_arena_adopt(p, session, brought, &before);
	if (r == HC_E_INVALID) {
		snprintf(why, size,
			 "the second descriptor of hello is no op arena of this process (a sealed "
			 "memfd of %u blocks)",
			 HC_ARENA_BLOCKS);
		return r;
	}
	if (r) {
		snprintf(why, size, "the daemon cannot make shared memory for the session: %s",
			 r < 0 ? strerror(-r) : "refused");
		return HC_E_RESOURCE_EXHAUSTED;
	}
	old = brought >= 0 && before ? hc_ctl_conn(ctl, before) : NULL;
	if (old)
		hc_ctl_end(ctl, old);
	return 0;
}

static int enter(struct hc_ctl *ctl, struct hc_conn *c, struct hc_caller *caller, int brought,
		 char *why, size_t size)
{
	struct hc_proc *p;
	int r;

	p = hc_procs_add(ctl->procs, caller->cred.pid, caller->cred.started, caller->pidfd);
	if (!p) {
		snprintf(why, size, "the daemon is out of memory");
		return HC_E_RESOURCE_EXHAUSTED;
	}
	if (has_its_share(ctl, caller, why, size))
		return HC_E_LIMIT;
	if (!take_slot(ctl, c)) {
		snprintf(why, size, "%u clients are connected; clients_max is %u",
			 ctl->counts.sessions, ctl->sessions_max);
		return HC_E_LIMIT;
	}
	hc_procs_attach(p, c);
	r = give_arena(ctl, p, c->session, brought, why, size);
	if (r)
		return r;
	hc_ident_random(&c->nonce, sizeof(c->nonce));
	return hc_arena_nonce_put(hc_ctl_arena(ctl, c->session), HC_NONCE_BLOCK, c->nonce);
}

/* Which of the descriptors is what: a pidfd first, where one was sent; then the arena. */
static void sort_fds(struct hc_in *in, const struct hc_m_hello *m, int *pidfd, int *arena)
{
	*pidfd = in->fd;
	*arena = -1;
	if (!(m->flags & 1))
		return;
	*arena = in->second;
	if (*arena < 0) {
		*arena = in->fd;
		*pidfd = -1;
	}
}

static int admit(struct hc_ctl *ctl, struct hc_in *in, const struct hc_m_hello *m, char *why,
		 size_t size)
{
	struct hc_conn *c = in->conn;
	struct hc_caller caller;
	int r, pidfd, arena;

	sort_fds(in, m, &pidfd, &arena);
	if (m->flags & 1 && arena < 0) {
		snprintf(why, size,
			 "hello says that it brings an op arena, and no descriptor came");
		return HC_E_INVALID;
	}
	r = hc_caller_identify(c->fd, pidfd, &ctl->rules, &caller, why, size);
	if (r)
		return r;
	c->role = caller.cred.role;
	c->proto = m->proto_max < HC_PROTO_MAX ? m->proto_max : HC_PROTO_MAX;
	r = enter(ctl, c, &caller, arena, why, size);
	if (r)
		return r;
	c->known = true;
	hc_loop_hello(ctl->loop, c->session, &in->frame, &caller.cred);
	return 0;
}

static void hear(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	struct hc_m_hello m;
	char why[512];
	int r;

	if (c->session) {
		hc_ctl_error(ctl, c, in->frame.head.id, HC_E_INVALID,
			     "hello was said already on this connection");
		return;
	}
	if (in->frame.head.version != HC_PROTO_MIN ||
	    hc_decode(&hc_desc_hello, HC_PROTO_MIN, in->frame.body, in->frame.body_len, &m) ||
	    m.proto_min > m.proto_max) {
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a malformed hello");
		return;
	}
	if (!version_fits(ctl, in, &m))
		return;
	r = admit(ctl, in, &m, why, sizeof(why));
	if (r)
		refuse(ctl, in, r, why);
}

void hc_ctl_hello(struct hc_ctl *ctl, struct hc_in *in)
{
	hear(ctl, in);
	if (in->fd >= 0)
		close(in->fd);
	if (in->second >= 0)
		close(in->second);
	in->fd = in->second = -1;
}
