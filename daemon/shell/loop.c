/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop; see loop.h. Timers are timerfds: nanoseconds, and no heap to look at each turn. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "loopimp.h"
#include "sd.h"

#define WARM_ROWS  256u /* fewer cost nothing worth a call */
#define SECOND_NS  1000000000u
#define SCANS_TURN 4096u /* samples taken in one turn at most */
#define WRITE_TURN 256u  /* records of a start written in one turn */

uint64_t hc_loop_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- one step ---- */

static void step(struct hc_loop *l, const struct hc_event *ev)
{
	uint32_t i;

	hc_assert(!l->in_step);
	l->in_step = true;
	hc_out_reset(l->out);
	hc_core_step(l->core, l->now, ev, l->out);
	if (l->net && l->out->count > 1)
		hc_loopnet_soon(l->net, l->out);
	for (i = 0; i < l->out->count; i++)
		hc_loop_perform(l, &l->out->acts[i]);
	l->in_step = false;
	if (l->net)
		hc_loopnet_step_done(l->net);
	/* events and words for other nodes leave before the store's thread wakes up and wants a
	 * processor of its own */
	if (l->net && l->kick)
		hc_loopnet_send(l->net);
	if (l->told && l->kick)
		hc_ctl_flush(l->ctl);
	l->told = false;
	if (l->kick || (l->held && !l->out->more)) {
		l->kick = false;
		l->held = l->out->more;
		if (l->held)
			hc_store_kick_more(l->store);
		else
			hc_store_kick(l->store);
	}
}

/* ---- samples ---- */

static bool fence(struct hc_loop *l)
{
	int r;

	if (!l->fence_pending)
		return true;
	if (l->never_fast) {
		/* their half is a locked instruction, so ours need be no more than a fence here;
		 * what an earlier daemon's clients do is stopped by the start number in the gate.
		 * By its old name, since the thread sanitizer refuses the new one. */
		__sync_synchronize();
		l->fence_pending = false;
		return true;
	}
	r = hc_pages_fence();
	if (r < 0) {
		hc_log(HC_LOG_ERROR, "membarrier failed: %s; no drain is decided until it works",
		       strerror(-r));
		return false;
	}
	if (r > 0 && !l->locked) {
		l->locked = true;
		hc_log(HC_LOG_WARN, "the kernel's fast membarrier failed; references use locked "
				    "instructions from now on");
	}
	l->fence_pending = false;
	return true;
}

/* Of the seat's session; when that is over, or of an earlier daemon's, what its process has. */
static const struct hc_arena *arena_of(struct hc_loop *l, const struct scan *s)
{
	const struct hc_arena *arena = s->session ? hc_ctl_arena(l->ctl, s->session) : NULL;

	if (arena)
		return arena;
	return hc_ctl_arena_of(l->ctl, s->pid, s->started, s->domain, s->block);
}

static void sample(struct hc_loop *l, const struct scan *s)
{
	const struct hc_arena *arena = arena_of(l, s);
	struct hc_event ev = {.kind = HC_EV_OPS_SAMPLE, .session = s->session};
	struct hc_arena_sample got;

	ev.u.ops.domain = s->domain;
	ev.u.ops.epoch = s->epoch;
	ev.u.ops.rank = s->rank;
	memset(&got, 0, sizeof(got));
	if (arena && !hc_arena_scan(arena, s->block, s->domain, s->epoch & 1, &got)) {
		ev.u.ops.readable = got.sane;
		ev.u.ops.begun = got.begun;
		ev.u.ops.running = got.running;
		ev.u.ops.kind = got.kind;
	}
	step(l, &ev);
}

/* A fence that failed leaves them queued for the next turn. */
static void run_scans(struct hc_loop *l)
{
	uint32_t budget = SCANS_TURN;
	struct scan s;

	while (l->scan_count && budget--) {
		if (!fence(l))
			return;
		s = l->scans[l->scan_first];
		l->scan_first = (l->scan_first + 1) % l->scan_cap;
		l->scan_count--;
		sample(l, &s);
	}
}

static void feed_now(struct hc_loop *l, const struct hc_event *ev)
{
	step(l, ev);
	if (l->scan_count)
		run_scans(l);
}

static void feed(struct hc_loop *l, const struct hc_event *ev)
{
	l->now = hc_loop_now();
	feed_now(l, ev);
}

void hc_loop_clock(void *arg)
{
	struct hc_loop *l = arg;

	l->now = hc_loop_now();
}

void hc_loop_event_now(void *arg, const struct hc_event *ev)
{
	feed_now(arg, ev);
}

void hc_loop_event(void *arg, const struct hc_event *ev)
{
	feed(arg, ev);
}

/* ---- events ---- */

/* In one walk, which costs less than a fault for each page. Older kernels: as it was. */
static void warm(void *at, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at & ~(page - 1);

	madvise((void *)from, (uintptr_t)at + bytes - from, MADV_POPULATE_WRITE);
}

void hc_loop_expect(struct hc_loop *l, uint32_t rows, size_t bytes)
{
	l->now = hc_loop_now();
	if (rows >= WARM_ROWS)
		hc_core_expect(l->core, rows, bytes, warm);
}

void hc_loop_row(struct hc_loop *l, struct hc_str row)
{
	struct hc_event ev = {.kind = HC_EV_ROW, .u.row.bytes = row};

	feed_now(l, &ev);
	ev.u.row.shown = l->shown;
	l->shown = (struct hc_shown){0};
	if (ev.u.row.shown.asked)
		feed_now(l, &ev);
}

void hc_loop_channel_row(struct hc_loop *l, struct hc_str row)
{
	struct hc_event ev = {.kind = HC_EV_CHANNEL_ROW, .u.row.bytes = row};

	feed(l, &ev);
}

void hc_loop_begin(struct hc_loop *l)
{
	struct hc_event ev = {.kind = HC_EV_TIMEOUT};
	size_t i;

	while (hc_core_deadline(l->core) <= hc_loop_now()) /* what rows of many ranks left to do */
		feed(l, &ev);
	l->begun = true;
	ev.kind = HC_EV_START;
	feed(l, &ev);
	if (!hc_restores_left(&l->restores))
		hc_restores_sweep(l->pages, l->start);
	hc_registers_sweep(l->registers, l->start);
	for (i = 0; i < l->ndead; i++)
		hc_loop_dead(l, l->dead[i].pid, l->dead[i].started);
	free(l->dead);
	l->dead = NULL;
	l->ndead = l->dead_cap = 0;
}

void hc_loop_hello(struct hc_loop *l, uint64_t session, const struct hc_frame *frame,
		   const struct hc_cred *cred)
{
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = session};

	ev.u.request.frame = frame;
	ev.u.request.cred = cred;
	ev.u.request.fence = hc_loop_fences(l);
	feed(l, &ev);
}

void hc_loop_request(struct hc_loop *l, uint64_t session, const struct hc_frame *frame,
		     const struct hc_roster *roster)
{
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = session};

	ev.u.request.frame = frame;
	ev.u.request.roster = roster;
	feed_now(l, &ev);
}

void hc_loop_bring(struct hc_loop *l, uint64_t session, const struct hc_frame *frame, int fd)
{
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = session};
	struct hc_m_sync_have m;

	ev.u.request.frame = frame;
	if (!hc_decode(&hc_desc_sync_have, HC_PROTO_MAX, frame->body, frame->body_len, &m))
		ev.u.request.page = hc_syncpages_check(fd, m.id, m.epoch);
	l->brought = fd;
	feed_now(l, &ev);
	l->brought = -1;
}

/* ---- timers and signals ---- */

static void set_timer(int fd, uint64_t at_ns, uint64_t every_ns)
{
	struct itimerspec t = {
		.it_value = {(time_t)(at_ns / SECOND_NS), (long)(at_ns % SECOND_NS)},
		.it_interval = {(time_t)(every_ns / SECOND_NS), (long)(every_ns % SECOND_NS)}};

	hc_assert(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL));
}

static void rearm(struct hc_loop *l)
{
	uint64_t deadline = hc_core_deadline(l->core);

	if (deadline == l->armed)
		return;
	if (deadline != HC_NEVER && deadline <= hc_loop_now()) {
		l->due = true;
		return; /* the timer stays: it will be right, or set again */
	}
	l->armed = deadline;
	set_timer(l->timer_fd, deadline == HC_NEVER ? 0 : deadline, 0);
}

static void clear_timer(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		hc_assert(errno == EAGAIN || errno == EINTR || errno == ECANCELED);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hc_loop *l = arg;

	(void)what;
	clear_timer(fd);
	l->armed = HC_NEVER; /* it fires once */
	l->due = true;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct hc_loop *l = arg;
	uint64_t now = hc_loop_now();

	(void)what;
	clear_timer(fd);
	if (l->watchdog_ns && now >= l->watchdog_at) {
		l->watchdog_at = now + l->watchdog_ns - l->watchdog_ns / 8;
		hc_sd_watchdog();
	}
	hc_ctl_tick(l->ctl, now);
	hc_log_tick();
	l->on_tick(l->arg, now);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct hc_loop *l = arg;

	(void)what;
	l->on_signal(l->arg, (int)number);
}

static int add_fd(struct hc_loop *l, int *fd, struct event **event, event_callback_fn fn)
{
	*fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*fd < 0)
		return -errno;
	*event = event_new(l->base, *fd, EV_READ | EV_PERSIST, fn, l);
	return *event && !event_add(*event, NULL) ? 0 : -ENOMEM;
}

static int add_sources(struct hc_loop *l)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	uint64_t tick_ns = SECOND_NS;
	unsigned i;
	int r;

	r = add_fd(l, &l->timer_fd, &l->timer, on_timer);
	if (!r)
		r = add_fd(l, &l->tick_fd, &l->tick, on_tick);
	for (i = 0; !r && i < 3; i++) {
		l->signals[i] = evsignal_new(l->base, numbers[i], on_signal, l);
		if (!l->signals[i] || event_add(l->signals[i], NULL))
			r = -ENOMEM;
	}
	if (r)
		return r;
	l->watchdog_ns = hc_sd_watchdog_ns();
	if (l->watchdog_ns && l->watchdog_ns < tick_ns)
		tick_ns = l->watchdog_ns > 1000000u ? l->watchdog_ns : 1000000u;
	set_timer(l->tick_fd, hc_loop_now() + tick_ns, tick_ns);
	return 0;
}

/* ---- turns ---- */

static void end_turn(struct hc_loop *l)
{
	static const struct hc_event timeout = {.kind = HC_EV_TIMEOUT};

	if (l->due) {
		l->due = false;
		if (l->net) /* what has arrived counts, before anything is called silent */
			hc_loopnet_drain(l->net);
		feed(l, &timeout);
	} else if (l->scan_count && !l->fence_pending) {
		run_scans(l);
	}
	if (l->net) /* first those who have the longest way */
		hc_loopnet_send(l->net);
	hc_ctl_turn(l->ctl);
	rearm(l);
}

static bool more_to_do(const struct hc_loop *l)
{
	return l->due || (l->scan_count && !l->fence_pending) || hc_restores_left(&l->restores);
}

int hc_loop_run(struct hc_loop *l)
{
	int flags;

	if (l->watchdog_ns)
		hc_sd_watchdog();
	end_turn(l);
	while (!l->stopping) {
		flags = EVLOOP_ONCE;
		if (more_to_do(l))
			flags |= EVLOOP_NONBLOCK;
		if (event_base_loop(l->base, flags) < 0)
			return -errno;
		end_turn(l);
		if (hc_restores_left(&l->restores))
			hc_loop_write_restored(l, WRITE_TURN);
	}
	return 0;
}

void hc_loop_stop(struct hc_loop *l)
{
	l->stopping = true;
}

/* ---- life ---- */

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int hc_loop_new(const struct hc_loop_args *args, struct hc_loop **loop)
{
	struct hc_loop *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l)
		return r;
	l->base = args->base;
	l->pages = args->pages;
	l->registers = args->registers;
	l->rings = hc_rings_new();
	l->on_tick = args->on_tick;
	l->on_signal = args->on_signal;
	l->arg = args->arg;
	l->start = args->self.start & 0xffffffu; /* what the gate of a record has room for */
	l->locked = l->never_fast = !args->self.fence;
	l->armed = HC_NEVER;
	l->timer_fd = l->tick_fd = l->brought = -1;
	l->memory_bytes = hc_core_bytes(&args->limits);
	l->memory = reserve(l->memory_bytes);
	l->out = reserve(sizeof(*l->out));
	if (l->memory && l->out && l->rings)
		r = add_sources(l);
	if (r) {
		hc_loop_free(l);
		return r;
	}
	l->core = hc_core_init(l->memory, l->memory_bytes, &args->limits, &args->self,
			       &args->settings);
	*loop = l;
	return 0;
}

void hc_loop_free(struct hc_loop *l)
{
	unsigned i;

	if (!l)
		return;
	if (l->timer)
		event_free(l->timer);
	if (l->tick)
		event_free(l->tick);
	for (i = 0; i < 3; i++)
		if (l->signals[i])
			event_free(l->signals[i]);
	if (l->timer_fd >= 0)
		close(l->timer_fd);
	if (l->tick_fd >= 0)
		close(l->tick_fd);
	if (l->memory)
		munmap(l->memory, l->memory_bytes);
	if (l->out)
		munmap(l->out, sizeof(*l->out));
	hc_restores_fini(&l->restores);
	hc_syncpages_fini(&l->syncs);
	hc_rings_free(l->rings);
	free(l->scans);
	free(l->dead);
	free(l);
}

void hc_loop_set_store(struct hc_loop *l, struct hc_store *store)
{
	l->store = store;
}

void hc_loop_set_ctl(struct hc_loop *l, struct hc_ctl *ctl)
{
	l->ctl = ctl;
}

void hc_loop_set_net(struct hc_loop *l, struct hc_loopnet *net)
{
	l->net = net;
}

void hc_loop_counts(const struct hc_loop *l, struct hc_core_counts *counts)
{
	hc_core_counts(l->core, counts);
}

void hc_loop_away(const struct hc_loop *l, struct hc_core_away *away)
{
	hc_core_away(l->core, away);
}

bool hc_loop_fences(const struct hc_loop *l)
{
	return !l->locked;
}
