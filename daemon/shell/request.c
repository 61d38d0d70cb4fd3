/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request goes: to the core, or to the one of the shell who has what it asks for.
 *
 * A rank table is read before the core hears of the request. A large one is read by the worker;
 * the request is parked meanwhile and others of the same session pass it, which the ids of
 * requests allow. When the session is gone by then, nothing follows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctlimp.h"
#include "log.h"
#include "loop.h"
#include "rights.h"
#include "views.h"

#define VERDICT_BYTES 1400

struct parked {
	struct hc_job job; /* first */
	struct hc_ctl *ctl;
	uint64_t session;
	int fd;
	size_t size;
	char origin[HC_TEXT_MAX + 1];
	struct hc_table *table;
	int result;
	char why[VERDICT_BYTES];
	struct hc_frame frame; /* its body is below */
	uint8_t body[];
};

/* ---- rank tables ---- */

static void pass_on(struct hc_ctl *ctl, uint64_t session, const struct hc_frame *f,
		    struct hc_table *table)
{
	hc_loop_request(ctl->loop, session, f, hc_table_roster(table));
	hc_table_put(ctl->tables, table);
}

static void parked_run(struct hc_job *job)
{
	struct parked *p = (struct parked *)job;

	p->result = hc_tables_read(p->ctl->tables, p->fd, p->size, hc_str(p->origin), &p->table,
				   p->why, sizeof(p->why));
}

static void parked_done(struct hc_job *job)
{
	struct parked *p = (struct parked *)job;

	if (!hc_ctl_conn(p->ctl, p->session)) {
		hc_table_put(p->ctl->tables, p->table);
	} else if (p->result) {
		hc_ctl_refuse(p->ctl, p->session, p->frame.head.id, p->result, p->why);
	} else {
		hc_loop_clock(p->ctl->loop);
		pass_on(p->ctl, p->session, &p->frame, p->table);
	}
	close(p->fd);
	free(p);
}

static int park(struct hc_ctl *ctl, struct hc_in *in, size_t size, const char *origin)
{
	struct parked *p = calloc(1, sizeof(*p) + in->frame.body_len);

	if (!p)
		return HC_E_NO_MEMORY;
	p->job.run = parked_run;
	p->job.done = parked_done;
	p->ctl = ctl;
	p->session = in->conn->session;
	p->fd = in->fd;
	p->size = size;
	p->result = HC_E_GONE; /* should the worker stop before it ran */
	strcpy(p->why, "the daemon is stopping");
	strcpy(p->origin, origin);
	p->frame = in->frame;
	memcpy(p->body, in->frame.body, in->frame.body_len);
	p->frame.body = p->body;
	in->fd = -1;
	hc_worker_submit(ctl->worker, &p->job);
	return 0;
}

static void with_table(struct hc_ctl *ctl, struct hc_in *in, const char *origin)
{
	struct hc_table *table = NULL;
	char why[VERDICT_BYTES];
	size_t size;
	int r;

	r = hc_tables_check(in->fd, ctl->table_bytes_max, &size, why, sizeof(why));
	if (!r && size > HC_TABLE_INLINE_MAX) {
		r = park(ctl, in, size, origin);
		if (!r)
			return;
		strcpy(why, "the daemon is out of memory");
	}
	if (!r)
		r = hc_tables_read(ctl->tables, in->fd, size, hc_str(origin), &table, why,
				   sizeof(why));
	if (r)
		hc_ctl_error(ctl, in->conn, in->frame.head.id, r, why);
	else
		pass_on(ctl, in->conn->session, &in->frame, table);
	close(in->fd);
	in->fd = -1;
}

/* A small table, in the message itself. */
static void with_text(struct hc_ctl *ctl, struct hc_in *in, struct hc_str text, const char *origin)
{
	struct hc_table *table;
	char why[VERDICT_BYTES];
	int r;

	if (text.len > ctl->table_bytes_max) {
		snprintf(why, sizeof(why), "the table has %u bytes; table_bytes_max is %llu",
			 text.len, (unsigned long long)ctl->table_bytes_max);
		r = HC_E_LIMIT;
	} else {
		r = hc_tables_read_text(ctl->tables, text, hc_str(origin), &table, why,
					sizeof(why));
	}
	if (r)
		hc_ctl_error(ctl, in->conn, in->frame.head.id, r, why);
	else
		pass_on(ctl, in->conn->session, &in->frame, table);
}

static void on_join_table(struct hc_ctl *ctl, struct hc_in *in)
{
	char origin[HC_TEXT_MAX + 1];
	struct hc_m_join_table m;

	if (hc_decode(&hc_desc_join_table, in->conn->proto, in->frame.body, in->frame.body_len,
		      &m)) {
		hc_ctl_malformed(ctl, in->conn, in->frame.head.id, true, "a malformed join_table");
		return;
	}
	hc_str_copy(m.origin, origin, sizeof(origin));
	if (in->fd >= 0)
		with_table(ctl, in, origin);
	else
		with_text(ctl, in, m.table, origin);
}

static void on_carry(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	struct hc_m_carry m;

	if (hc_decode(&hc_desc_carry, c->proto, in->frame.body, in->frame.body_len, &m) ||
	    !m.packets || m.packets > HC_CONN_CARRY_MAX)
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a malformed carry");
	else
		c->carry = (uint8_t)m.packets;
}

/* ---- what the shell answers ---- */

static void on_query(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	struct hc_m_query m;

	if (hc_decode(&hc_desc_query, c->proto, in->frame.body, in->frame.body_len, &m)) {
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a malformed query");
		return;
	}
	if (m.view == HC_VIEW_client)
		hc_ctl_tell_unread(ctl);
	if (hc_views_owns(m.view))
		hc_views_query(ctl->shell, c->session, in->frame.head.id, c->proto, &m);
	else
		hc_loop_request(ctl->loop, c->session, &in->frame, NULL);
}

static void on_admin(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	struct hc_m_admin m;

	if (hc_decode(&hc_desc_admin, c->proto, in->frame.body, in->frame.body_len, &m)) {
		hc_ctl_malformed(ctl, c, in->frame.head.id, true, "a malformed admin request");
		return;
	}
	if (!hc_views_verb(m.verb))
		hc_loop_request(ctl->loop, c->session, &in->frame, NULL);
	else
		hc_views_admin(ctl->shell, c->session, in->frame.head.id, &m);
}

static void unknown(struct hc_ctl *ctl, struct hc_in *in)
{
	hc_ctl_error(ctl, in->conn, in->frame.head.id, HC_E_NOT_SUPPORTED,
		     "the daemon does not know this request; upgrade the daemon");
}

static bool takes_rank(uint16_t type)
{
	return type == HC_MSG_join_root || type == HC_MSG_join_table || type == HC_MSG_join_local ||
	       type == HC_MSG_attach || type == HC_MSG_sub || type == HC_MSG_split;
}

static bool may(struct hc_ctl *ctl, struct hc_in *in)
{
	const struct hc_conn *c = in->conn;
	const uint16_t type = in->frame.head.type;

	if (hc_right_role(type, c->role))
		return true;
	if (!hc_right_of(type)) {
		unknown(ctl, in); /* any number may come, also of answers and of peers' messages */
		return false;
	}
	hc_log(HC_LOG_WARN, "client pid %u uid %u is refused request %u: %s", c->pid, c->uid, type,
	       hc_right_text(type));
	hc_ctl_error(ctl, in->conn, in->frame.head.id, HC_E_PERMISSION, hc_right_text(type));
	return false;
}

/*
 * Before the first rank of a session: does it write the memory that we read? A process behind a
 * proxy or in a copy of this machine's files does not, and its references would not be counted.
 */
static bool shares_memory(struct hc_ctl *ctl, struct hc_in *in)
{
	struct hc_conn *c = in->conn;
	const struct hc_arena *arena;

	if (c->proved)
		return true;
	arena = hc_ctl_arena(ctl, c->session);
	c->proved = arena && hc_arena_nonce_proved(arena, HC_NONCE_BLOCK, c->nonce);
	if (!c->proved)
		hc_ctl_error(ctl, c, in->frame.head.id, HC_E_LINK_UNAVAILABLE,
			     "process and daemon do not share memory: the number in the op arena "
			     "was not answered");
	return c->proved;
}

void hc_ctl_request(struct hc_ctl *ctl, struct hc_in *in)
{
	if (!may(ctl, in) || (takes_rank(in->frame.head.type) && !shares_memory(ctl, in)))
		return;
	switch (in->frame.head.type) {
	case HC_MSG_carry: on_carry(ctl, in); return;
	case HC_MSG_join_table: on_join_table(ctl, in); return;
	case HC_MSG_create:
		if (in->fd >= 0) {
			with_table(ctl, in, "table");
			return;
		}
		break;
	case HC_MSG_sync_have:
		hc_loop_bring(ctl->loop, in->conn->session, &in->frame, in->fd);
		if (in->fd >= 0)
			close(in->fd);
		in->fd = -1;
		return;
	case HC_MSG_query: on_query(ctl, in); return;
	case HC_MSG_admin: on_admin(ctl, in); return;
	}
	hc_loop_request(ctl->loop, in->conn->session, &in->frame, NULL);
}
