/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core wants done: its actions, one function each.
 *
 * They are performed in order after each step. Nothing here decides: an action that cannot be
 * performed is said, and costs a client its session at most. Records that a start restores are
 * written late, in bulk; the first word to a client that may look at one writes what is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "loopimp.h"

static int grant_fd(struct hc_loop *l, const struct hc_action *a)
{
	const struct hc_arena *arena;
	int fd = -1, r = 0;

	switch (a->u.reply.grant) {
	case HC_GRANT_NONE: return -1;
	case HC_GRANT_ARENA:
		arena = hc_ctl_arena(l->ctl, a->session);
		if (arena)
			fd = fcntl(arena->fd, F_DUPFD_CLOEXEC, 3);
		r = fd < 0 ? -errno : 0;
		break;
	case HC_GRANT_SLAB: /* with the first rank that a session gets */
		hc_ctl_arena_used(l->ctl, a->session);
		r = hc_pages_slab_fd(l->pages, a->u.reply.uid, a->u.reply.slab, &fd);
		break;
	case HC_GRANT_STATUS:
		r = hc_registers_fd(l->registers, a->u.reply.uid, a->u.reply.slab, &fd);
		break;
	case HC_GRANT_RINGS:
		r = hc_rings_fd(l->rings, a->u.reply.channel, a->u.reply.bytes, a->u.reply.last,
				&fd);
		break;
	case HC_GRANT_SYNC:
		r = hc_syncpages_get(&l->syncs, a->u.reply.slot, a->u.reply.id, a->u.reply.epoch,
				     a->u.reply.lines, &fd);
		break;
	}
	if (r)
		hc_log(HC_LOG_ERROR, "a descriptor for a client cannot be made: %s",
		       r < 0 ? strerror(-r) : "no such slab");
	return r ? -1 : fd;
}

/* Nothing is lost with a page that cannot be made: the client is told, and may ask again. */
static void no_page(struct hc_loop *l, const struct hc_action *a)
{
	const uint8_t *at = a->bytes;
	size_t left = a->len;
	struct hc_frame f;

	if (!hc_frame_next(&at, &left, &f))
		hc_ctl_refuse(l->ctl, a->session, f.head.id, HC_E_RESOURCE_EXHAUSTED,
			      "the daemon cannot make shared memory for the barrier");
}

static void do_reply(struct hc_loop *l, const struct hc_action *a)
{
	int fd = grant_fd(l, a);

	if (a->u.reply.grant == HC_GRANT_SYNC && fd < 0)
		no_page(l, a);
	else if (a->u.reply.grant != HC_GRANT_NONE && fd < 0)
		hc_ctl_close(l->ctl, a->session); /* the library tries again */
	else
		hc_ctl_reply(l->ctl, a->session, a->bytes, a->len, fd);
}

void hc_loop_write_restored(struct hc_loop *l, uint32_t most)
{
	hc_restores_write(&l->restores, l->pages, l->start, l->locked, most);
	if (l->begun && !hc_restores_left(&l->restores))
		hc_restores_sweep(l->pages, l->start);
}

static void do_publish(struct hc_loop *l, const struct hc_action *a)
{
	struct hc_page_record *record;
	struct hc_pages_state s = {
		.id = a->u.publish.id,
		.tag = a->u.publish.tag,
		.epoch = a->u.publish.epoch,
		.number = a->u.publish.number,
		.nranks = a->u.publish.nranks,
		.state = a->u.publish.state,
		.cut_set = a->u.publish.cut_set,
		.cut = a->u.publish.cut,
		.cause_kind = a->u.publish.cause_kind,
		.cause_rank = a->u.publish.cause_rank,
		.cause_pid = a->u.publish.cause_pid,
		.cause = {(const char *)a->bytes, a->len},
	};
	int r;

	if (!l->begun && hc_restores_note(&l->restores, a))
		return;
	if (hc_restores_left(&l->restores))
		hc_loop_write_restored(l, UINT32_MAX);
	r = hc_pages_record(l->pages, a->u.publish.uid, a->u.publish.slot, &record);
	if (r) {
		hc_log(HC_LOG_ERROR, "a state record cannot be written: %s",
		       r < 0 ? strerror(-r) : "no such slot");
		return;
	}
	if (!s.id) {
		hc_pages_free(record);
		return;
	}
	s.start = l->start;
	s.locked = l->locked;
	if (l->begun)
		hc_pages_publish(record, &s);
	else
		hc_pages_restore(record, &s);
	l->fence_pending = l->fence_pending || a->u.publish.fence;
}

/* The row is fed again with it, as soon as this step is over. */
static void do_recall(struct hc_loop *l, const struct hc_action *a)
{
	struct hc_page_record *record;

	l->shown = (struct hc_shown){.asked = true};
	if (!hc_pages_record(l->pages, a->u.recall.uid, a->u.recall.slot, &record))
		l->shown.state =
			hc_pages_shown(record, a->u.recall.id, a->u.recall.tag, &l->shown.cut);
}

static bool grow_scans(struct hc_loop *l)
{
	uint32_t cap = l->scan_cap ? 2 * l->scan_cap : 512, i;
	struct scan *fresh = calloc(cap, sizeof(*fresh));

	if (!fresh)
		return false;
	for (i = 0; i < l->scan_count; i++)
		fresh[i] = l->scans[(l->scan_first + i) % l->scan_cap];
	free(l->scans);
	l->scans = fresh;
	l->scan_first = 0;
	l->scan_cap = cap;
	return true;
}

static void do_scan(struct hc_loop *l, const struct hc_action *a)
{
	if (l->scan_count == l->scan_cap && !grow_scans(l))
		hc_panic(__FILE__, __LINE__, "out of memory for samples");
	l->scans[(l->scan_first + l->scan_count++) % l->scan_cap] =
		(struct scan){.session = a->session,
			      .domain = a->u.scan.domain,
			      .epoch = a->u.scan.epoch,
			      .rank = a->u.scan.rank,
			      .block = a->u.scan.block,
			      .pid = a->u.scan.pid,
			      .started = a->u.scan.started};
}

static void do_persist(struct hc_loop *l, const struct hc_action *a)
{
	hc_store_put(l->store, a->u.persist.what, a->u.persist.seq, a->u.persist.id, a->bytes,
		     a->len);
	l->kick = true;
}

static void do_log(const struct hc_action *a)
{
	struct hc_log_about about = {
		.code = a->u.log.code, .domain = a->u.log.domain, .rank = a->u.log.rank};

	hc_log_event(a->u.log.level, &about, (struct hc_str){(const char *)a->bytes, a->len});
}

/* Its end is told when all rows are in. */
static void remember_dead(struct hc_loop *l, uint32_t pid, uint64_t started)
{
	size_t cap = l->dead_cap ? 2 * l->dead_cap : 64;
	struct dead *p = l->dead;

	if (l->ndead == l->dead_cap) {
		p = reallocarray(l->dead, cap, sizeof(*p));
		if (!p)
			hc_panic(__FILE__, __LINE__, "out of memory for stored domains");
		l->dead = p;
		l->dead_cap = cap;
	}
	p[l->ndead++] = (struct dead){pid, started};
}

static void do_watch(struct hc_loop *l, const struct hc_action *a)
{
	if (!hc_ctl_watch(l->ctl, a->u.watch.pid, a->u.watch.started))
		remember_dead(l, a->u.watch.pid, a->u.watch.started);
}

static void do_sync(struct hc_loop *l, const struct hc_action *a)
{
	int r;

	if (!a->u.sync.keep) {
		hc_syncpages_close(&l->syncs, a->u.sync.slot);
		return;
	}
	r = hc_syncpages_keep(&l->syncs, a->u.sync.slot, l->brought);
	if (r)
		hc_log(HC_LOG_ERROR, "the page of a barrier cannot be kept: %s", strerror(-r));
}

static void do_register(struct hc_loop *l, const struct hc_action *a)
{
	int r = hc_registers_write(l->registers, a->u.reg.uid, a->u.reg.slot, l->start,
				   a->u.reg.channel, a->u.reg.state);

	if (a->u.reg.state == HC_W_channel_state_REVOKED)
		hc_rings_forget(l->rings, a->u.reg.channel);
	if (r)
		hc_log(HC_LOG_ERROR, "a status register cannot be written: %s",
		       r < 0 ? strerror(-r) : "no such slot");
}

/* May a client conclude from it what a record says? The answer to a hello speaks of no domain. */
static bool speaks(const struct hc_action *a)
{
	return (a->kind == HC_ACT_REPLY && a->u.reply.grant != HC_GRANT_ARENA) ||
	       a->kind == HC_ACT_NOTIFY || a->kind == HC_ACT_SCAN;
}

void hc_loop_perform(struct hc_loop *l, const struct hc_action *a)
{
	if (hc_restores_left(&l->restores) && speaks(a))
		hc_loop_write_restored(l, UINT32_MAX);
	switch (a->kind) {
	case HC_ACT_REPLY: do_reply(l, a); return;
	case HC_ACT_NOTIFY:
		hc_ctl_notify(l->ctl, a->session, a->bytes, a->len);
		l->told = true;
		return;
	case HC_ACT_SEND_PEER:
		hc_log(HC_LOG_DEBUG, "a message for node %u is dropped: this version has no peers",
		       a->u.node);
		return;
	case HC_ACT_PERSIST: do_persist(l, a); return;
	case HC_ACT_PUBLISH: do_publish(l, a); return;
	case HC_ACT_SCAN: do_scan(l, a); return;
	case HC_ACT_CLOSE: hc_ctl_close(l->ctl, a->session); return;
	case HC_ACT_RECALL: do_recall(l, a); return;
	case HC_ACT_WATCH: do_watch(l, a); return;
	case HC_ACT_SYNC: do_sync(l, a); return;
	case HC_ACT_LOG: do_log(a); return;
	case HC_ACT_REGISTER: do_register(l, a); return;
	case HC_ACT_ROUTE:
	case HC_ACT_DIAL:
	case HC_ACT_CONN_SEND:
	case HC_ACT_CONN_CLOSE:
	case HC_ACT_KEY_MAKE:
	case HC_ACT_KEY_DROP:
	case HC_ACT_DATAGRAM:
		if (l->net)
			hc_loopnet_perform(l->net, a);
		return;
	}
	hc_panic(__FILE__, __LINE__, "an action of an unknown kind");
}
