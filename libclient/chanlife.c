/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a channel after its grant: opened, ended.
 *
 * The memory of an end is one mapping: the rings of the daemon's file, and behind them room for
 * one message, into which a receiver that runs out of time puts the part that it has. That room
 * costs nothing until then. The file must be sealed and of the size that the layout wants.
 *
 * Once open, an end needs the daemon for nothing: it may die and come back. What is released
 * while it is away keeps its slot (ENDING), and is told over the next connection.
 *
 * An end is shut in this order: the handle leads nowhere, `live` is cleared, the fence, those who
 * are inside are roused and waited for, and then the memory goes.
 */
#include "chan.h"
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- opening ---- */

static int bad_file(const struct hc_channel *c, const char *why)
{
	return hc_refuse(HC_E_MALFORMED, "the rings of channel %016llx: %s",
			 (unsigned long long)c->id, why);
}

static int map_rings(struct hc_channel *c, int fd)
{
	size_t bytes = HC_RING_FILE_BYTES((size_t)c->info.buffer_bytes);
	size_t all = bytes + HC_RING_MESSAGE_MAX;
	int seals;
	struct stat st;
	void *map;

	if (fd < 0)
		return bad_file(c, "hcommd sent no file");
	/* we write there: a file that could shrink would be a SIGBUS in the host */
	seals = fcntl(fd, F_GET_SEALS); /* -1: no memfd at all */
	if (fstat(fd, &st) || (uint64_t)st.st_size != bytes || seals < 0 ||
	    !(seals & F_SEAL_SHRINK))
		return bad_file(c, "hcommd sent a file of another size, or one not sealed");
	map = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (map != MAP_FAILED &&
	    mmap(map, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(map, all);
		map = MAP_FAILED;
	}
	if (map == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "mapping channel %016llx (%zu bytes): %s",
				 (unsigned long long)c->id, all, strerror(errno));
	madvise(map, all, MADV_DONTFORK);
	c->map = map;
	c->map_bytes = all;
	return 0;
}

static bool is_over(void *context)
{
	struct hc_channel *c = context;

	return atomic_load_explicit(&c->ended, memory_order_acquire) || !hc_chan_holds(c);
}

static void go_live(struct hc_channel *c)
{
	uint32_t buffer = c->info.buffer_bytes;

	c->watch = (struct hc_ring_watch){.word = &c->reg->wake, .over = is_over, .context = c};
	if (c->carries) {
		hc_ring_tx_init(&c->tx.ring, c->map, buffer, c->side, &c->watch);
		hc_ring_rx_init(&c->rx.ring, c->map, buffer, c->side,
				(uint8_t *)c->map + (c->map_bytes - HC_RING_MESSAGE_MAX),
				&c->watch);
	}
	c->phase = HC_CHAN_OPEN;
	atomic_store_explicit(&c->live, c->handle, memory_order_release);
}

static int take_open(struct hcomm_session *s, struct hc_channel *c, struct hc_call *call)
{
	struct hc_m_channel_open_r m;
	int r = hc_call_answer(&s->sess, call, &hc_desc_channel_open_r, &m);

	if (r || m.channel != c->id)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave an answer that is no `channel_open_r` of channel "
				 "%016llx",
				 (unsigned long long)c->id);
	if (c->phase == HC_CHAN_OPEN) /* by another thread meanwhile */
		return 0;
	if (c->carries)
		r = map_rings(c, call->fd);
	if (!r)
		go_live(c);
	return r;
}

int hc_chan_open(struct hcomm_session *s, hcomm_channel handle, uint64_t deadline)
{
	struct hc_channel *c = hc_chan_of(s, handle);
	struct hc_m_channel_open m = {.channel = c->id, .rank = c->rank};
	struct hc_request q = {&hc_desc_channel_open, &m, -1, deadline, 0};
	struct hc_call call;
	int r;

	hc_call_init(&call, HC_MSG_channel_open_r);
	r = hc_call_repeat(s, &call, &q);
	c = hc_chan_of(s, handle);
	if (!c)
		r = hc_refuse(HC_E_GONE, "the channel was released while it was opened");
	else if (!r)
		r = take_open(s, c, &call);
	hc_call_fini(&call);
	/* what a daemon that is back may still give is asked for again by the next use */
	if (r && c && r != HC_E_NO_DAEMON && r != HC_E_PEER_CLOSED && r != HC_E_TIMEOUT &&
	    r != HC_E_NO_MEMORY) {
		c->phase = HC_CHAN_FAILED;
		c->error = r;
	}
	return r;
}

/* ---- the end ---- */

static bool is_released(const struct hc_channel *c)
{
	return c->phase == HC_CHAN_TELLING || c->phase == HC_CHAN_ENDING;
}

static bool busy(struct hc_channel *c)
{
	return atomic_load_explicit(&c->tx.busy, memory_order_acquire) ||
	       atomic_load_explicit(&c->rx.busy, memory_order_acquire);
}

void hc_chan_shut(struct hc_channel *c)
{
	bool was_live = c->phase == HC_CHAN_OPEN;

	hc_chan_hide(c);
	atomic_store_explicit(&c->ended, 1, memory_order_seq_cst);
	atomic_store_explicit(&c->live, 0, memory_order_seq_cst);
	if (was_live)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
	while (was_live && busy(c)) {
		if (c->carries) {
			hc_ring_rouse(&c->tx.ring.wait);
			hc_ring_rouse(&c->rx.ring.wait);
		}
		sched_yield();
	}
	if (c->map)
		munmap(c->map, c->map_bytes);
	c->map = NULL;
}

void hc_chan_give_back(struct hcomm_session *s, uint64_t id, uint32_t rank)
{
	struct hc_m_channel_release m = {.channel = id, .rank = rank};

	hc_call_fire(s, HC_MSG_done, &hc_desc_channel_release, &m);
}

/* The daemon hears of it now, or over the next connection. */
static void tell(struct hcomm_session *s, struct hc_channel *c)
{
	struct hc_m_channel_release m = {.channel = c->id, .rank = c->rank};
	struct hc_request q = {&hc_desc_channel_release, &m, -1, hc_deadline(HC_REQUEST_MS), 1};
	struct hc_call call;
	int r;

	c->phase = HC_CHAN_TELLING;
	hc_call_init(&call, HC_MSG_done);
	r = hc_call_repeat(s, &call, &q);
	hc_call_fini(&call);
	if (r == HC_E_NO_DAEMON || r == HC_E_PEER_CLOSED || r == HC_E_TIMEOUT)
		c->phase = HC_CHAN_ENDING;
	else
		hc_chan_free(c);
}

HC_EXPORT int hcomm_channel_release(hcomm_channel channel)
{
	struct hcomm_session *s;
	struct hc_channel *c;
	int r = hc_chan_lock(channel, &c);

	if (r)
		return -r;
	s = c->session;
	hc_chan_shut(c);
	/* not granted yet: what comes for the handle goes back */
	if (c->phase == HC_CHAN_GRANTED || c->phase == HC_CHAN_OPEN)
		tell(s, c);
	else
		hc_chan_free(c);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

hcomm_channel hc_chan_by_id(const struct hcomm_session *s, uint64_t id)
{
	const struct hc_channel *c;

	for (c = s->channels; c && id; c = c->next) {
		if (c->id == id)
			return c->handle;
	}
	return 0;
}

void hc_chans_end(struct hc_domain *d)
{
	struct hc_channel *c, *next;

	for (c = d->session ? d->session->channels : NULL; c; c = next) {
		next = c->next;
		if (c->domain != d->handle || is_released(c))
			continue;
		hc_chan_shut(c); /* the daemon ends them with the membership */
		hc_chan_free(c);
	}
}

void hc_chans_over(struct hc_domain *d)
{
	struct hc_channel *c;

	for (c = d->session ? d->session->channels : NULL; c; c = c->next) {
		if (c->domain != d->handle || is_released(c))
			continue;
		atomic_store_explicit(&c->ended, 1, memory_order_seq_cst);
		if (c->phase != HC_CHAN_OPEN || !c->carries)
			continue;
		hc_ring_rouse(&c->tx.ring.wait);
		hc_ring_rouse(&c->rx.ring.wait);
	}
}

void hc_chans_again(struct hcomm_session *s)
{
	struct hc_channel *c, *next;

	for (c = s->channels; c; c = next) {
		next = c->next;
		if (c->phase != HC_CHAN_ENDING || s->fd < 0)
			continue;
		hc_chan_give_back(s, c->id, c->rank);
		hc_chan_free(c);
	}
}

void hc_chans_close(struct hcomm_session *s)
{
	while (s->channels) {
		hc_chan_shut(s->channels);
		hc_chan_free(s->channels);
	}
}
