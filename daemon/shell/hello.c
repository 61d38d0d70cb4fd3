/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a session begins.
 *
 * The hello is judged in this order: is it well formed, is there a common protocol version, who
 * is it, is a slot free. Only then does the core hear of it. Every refusal is one line that says
 * what to do, and ends the connection.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ctlimp.h"
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

static int enter(struct hc_ctl *ctl, struct hc_conn *c, struct hc_caller *caller, char *why,
		 size_t size)
{
	const struct hc_arena *arena;
	struct hc_proc *p;
	int r;

	p = hc_procs_add(ctl->procs, caller->cred.pid, caller->cred.started, caller->pidfd);
	if (!p) {
		snprintf(why, size, "the daemon is out of memory");
		return HC_E_RESOURCE_EXHAUSTED;
	}
	if (!take_slot(ctl, c)) {
		snprintf(why, size, "%u clients are connected; clients_max is %u",
			 ctl->counts.sessions, ctl->sessions_max);
		return HC_E_LIMIT;
	}
	hc_procs_attach(p, c);
	r = hc_procs_arena_make(p, c->session, &arena);
	if (r) {
		snprintf(why, size, "the daemon cannot make shared memory for the session: %s",
			 r < 0 ? strerror(-r) : "refused");
		return HC_E_RESOURCE_EXHAUSTED;
	}
	return 0;
}

void hc_ctl_hello(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	struct hc_caller caller;
	struct hc_m_hello m;
	char why[512];
	int r, sent = in->fd;

	in->fd = -1;
	if (c->session) {
		hc_ctl_error(ctl, c, in->frame.head.id, HC_E_INVALID,
			     "hello was said already on this connection");
		goto out;
	}
	if (in->frame.head.version != HC_PROTO_MIN ||
	    hc_decode(&hc_desc_hello, HC_PROTO_MIN, in->frame.body, in->frame.body_len, &m) ||
	    m.proto_min > m.proto_max) {
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a malformed hello");
		goto out;
	}
	if (!version_fits(ctl, in, &m))
		goto out;
	r = hc_caller_identify(c->fd, sent, &ctl->rules, &caller, why, sizeof(why));
	if (!r) {
		c->role = caller.cred.role;
		c->proto = m.proto_max < HC_PROTO_MAX ? m.proto_max : HC_PROTO_MAX;
		r = enter(ctl, c, &caller, why, sizeof(why));
	}
	if (r) {
		refuse(ctl, in, r, why);
		goto out;
	}
	c->known = true;
	hc_loop_hello(ctl->loop, c->session, &in->frame, &caller.cred);
out:
	if (sent >= 0)
		close(sent);
}
