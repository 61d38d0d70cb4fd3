/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operation references: lines of threads, and the slow paths of begin and end.
 *
 * A begin writes its intent (begins+1 and, for a collective, its number) and then looks at the
 * gate. Another gate than expected is judged here (verdict). What may come out:
 *
 *	admitted   ACTIVE; DRAINING and the number is within the cut; DRAINING and point-to-point
 *	refused    the intent is withdrawn: number back, ends+1, the daemon is woken
 *	wait       on the record's futex word, without an intent except where the daemon must see it
 *
 * An intent that stands when the gate closes is a promise: the cut counts it. So while the cut is
 * not yet set a begin with an intent waits even with HCOMM_OP_NOWAIT; one without may return.
 *
 * Point-to-point operations have no common number, so no cut can tell whether a partner has begun
 * already. They stay admitted during a drain until the daemon closes the cut (HC_CUT_CLOSED), and
 * then a begin of any kind leaves its intent, wakes the daemon and waits: either the daemon's
 * second scan sees the intent and opens the cut again, or the domain is released and the begin is
 * refused. A send that runs keeps its own node open, and thereby the home from deciding; so a
 * partner is never refused for as long as its peer is admitted. The same second scan makes a
 * withdrawn collective harmless that the first one took for begun.
 *
 * A restarted daemon shows another start number in the gate, nothing else: it is taken over into
 * the expected word, and the library re-attaches when it can.
 *
 * Lines. A thread has one number in the process, valid in every arena of every session, kept in
 * thread-local memory and given back when the thread ends; the counters go on with the next owner.
 * Threads that find none share the last line with locked adds.
 */
#include "ops.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_AGAIN_NS 1000000000ull /* a daemon killed between store and wake is no dead-lock */
#define LINES_ALL     ((1u << HC_BLOCK_LINES) - 1)
#define LINE_SHARED   ((uint32_t)offsetof(struct hc_page_block, shared))

enum step { /* of a begin; refusals are HC_E_*, > 0 */
	    STEP_ADMIT = 0,
	    STEP_WAIT = -1,
	    STEP_WAKE = -2, /* the daemon must look, then wait */
	    STEP_AGAIN = -3 /* withdraw, then wait without an intent */
};

__thread uint32_t hc_ops_line __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t lines_taken; /* bit i: line i has an owner */
static _Atomic int lines_pid;
static pthread_once_t line_once = PTHREAD_ONCE_INIT;
static pthread_key_t line_key;
static bool line_key_made;

/* ---- lines ---- */

static uint32_t line_bit(uint32_t offset)
{
	return 1u << ((offset - offsetof(struct hc_page_block, line)) /
		      sizeof(struct hc_page_line));
}

static void line_return(void *offset)
{
	hc_ops_line = 0;
	atomic_fetch_and_explicit(&lines_taken, ~line_bit((uint32_t)(uintptr_t)offset),
				  memory_order_release);
}

static void line_key_make(void)
{
	line_key_made = !pthread_key_create(&line_key, line_return);
}

/* When the library is unloaded, threads must not call into it at their end. */
static void __attribute__((destructor)) line_key_drop(void)
{
	if (line_key_made)
		pthread_key_delete(line_key);
}

static void line_take(void)
{
	uint32_t taken = atomic_load_explicit(&lines_taken, memory_order_relaxed);
	uint32_t bit, offset;

	pthread_once(&line_once, line_key_make);
	hc_ops_line = LINE_SHARED;
	do {
		bit = ~taken & (taken + 1);
		if (!line_key_made || !(bit & LINES_ALL))
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&lines_taken, &taken, taken | bit, memory_order_acquire, memory_order_relaxed));
	offset = (uint32_t)offsetof(struct hc_page_block, line) +
		 (uint32_t)__builtin_ctz(bit) * (uint32_t)sizeof(struct hc_page_line);
	if (pthread_setspecific(line_key, (void *)(uintptr_t)offset))
		atomic_fetch_and_explicit(&lines_taken, ~bit, memory_order_release);
	else
		hc_ops_line = offset;
}

/* In a forked child the owners of the other lines do not exist. */
static void lines_after_fork(void)
{
	int pid = (int)getpid();
	int old = atomic_exchange_explicit(&lines_pid, pid, memory_order_relaxed);
	bool own = hc_ops_line && hc_ops_line != LINE_SHARED;

	if (old && old != pid)
		atomic_store_explicit(&lines_taken, own ? line_bit(hc_ops_line) : 0,
				      memory_order_relaxed);
}

int hc_ops_register(void)
{
	lines_after_fork();
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0))
		return HC_E_NOT_SUPPORTED;
	return 0;
}

/* ---- the slot ---- */

/* The block of a new domain starts from zero, also if a released one left references behind; at a
 * re-attachment it goes on. The daemon counts a block as empty until its id is there. */
static void block_attach(struct hc_page_block *block, uint64_t id)
{
	struct hc_page_line *line;
	unsigned i, p;

	if (atomic_load_explicit(&block->head.domain, memory_order_relaxed) == id)
		return;
	atomic_store_explicit(&block->head.domain, 0, memory_order_seq_cst);
	atomic_store_explicit(&block->head.begun, 0, memory_order_relaxed);
	atomic_store_explicit(&block->head.last_kind, 0, memory_order_relaxed);
	atomic_store_explicit(&block->head.p2p_kind, 0, memory_order_relaxed);
	for (i = 0; i <= HC_BLOCK_LINES; i++) {
		line = i < HC_BLOCK_LINES ? &block->line[i] : &block->shared;
		for (p = 0; p < 2; p++) {
			atomic_store_explicit(&line->begins[p], 0, memory_order_relaxed);
			atomic_store_explicit(&line->ends[p], 0, memory_order_relaxed);
		}
	}
	atomic_store_explicit(&block->head.domain, id, memory_order_seq_cst);
}

void hc_ops_attach(struct hc_ops_domain *d, uint64_t handle, uint64_t id, uint32_t start,
		   uint32_t tag, const struct hc_page_record *record, struct hc_ops_seat *seats,
		   uint32_t nseats, bool fence, const struct hc_ops_hooks *hooks)
{
	d->record = record;
	d->id = id;
	d->hooks = hooks;
	d->nseats = nseats < HC_OPS_SEATS_MAX ? nseats : HC_OPS_SEATS_MAX;
	d->one = seats[0];
	d->seats = nseats == 1 ? &d->one : seats;
	atomic_store_explicit(&d->fast_lines, fence ? HC_OPS_OWN_LINES : 0, memory_order_relaxed);
	atomic_store_explicit(&d->expected, HC_OPS_COLD, memory_order_relaxed);
	hc_ops_rebase(d, start, tag);
	atomic_store_explicit(&d->handle, handle, memory_order_release);
}

static bool is_cold(const struct hc_ops_domain *d)
{
	return atomic_load_explicit(&d->expected, memory_order_relaxed) & HC_OPS_COLD;
}

void hc_ops_rebase(struct hc_ops_domain *d, uint32_t start, uint32_t tag)
{
	uint64_t cold = is_cold(d) ? HC_OPS_COLD : 0;

	atomic_store_explicit(&d->expected, HC_GATE(start, tag, HCOMM_ACTIVE) | cold,
			      memory_order_relaxed);
}

/* Begin is called by one thread at a time, so one comes here. */
static void warm(struct hc_ops_domain *d)
{
	uint32_t i;

	for (i = 0; i < d->nseats; i++)
		block_attach(d->seats[i].block, d->id);
	atomic_fetch_and_explicit(&d->expected, ~(uint64_t)HC_OPS_COLD, memory_order_relaxed);
}

void hc_ops_nonce_answer(struct hc_page_block *block)
{
	uint64_t nonce = atomic_load_explicit(&block->head.nonce, memory_order_acquire);

	atomic_store_explicit(&block->head.nonce, ~nonce, memory_order_seq_cst);
}

void hc_ops_detach(struct hc_ops_domain *d)
{
	atomic_store_explicit(&d->handle, 0, memory_order_release);
}

uint32_t hc_ops_seat(const struct hc_ops_domain *d, uint32_t rank)
{
	uint32_t i;

	if (rank < d->nseats && d->seats[rank].rank == rank)
		return rank;
	for (i = 0; i < d->nseats; i++)
		if (d->seats[i].rank == rank)
			return i;
	return HC_NONE;
}

static uint64_t block_sum(const struct hc_page_block *block, bool ends)
{
	const struct hc_page_line *line;
	uint64_t sum = 0;
	unsigned i, p;

	for (i = 0; i <= HC_BLOCK_LINES; i++) {
		line = i < HC_BLOCK_LINES ? &block->line[i] : &block->shared;
		for (p = 0; p < 2; p++)
			sum += atomic_load_explicit(ends ? &line->ends[p] : &line->begins[p],
						    memory_order_acquire);
	}
	return sum;
}

uint64_t hc_ops_running(const struct hc_ops_domain *d, uint32_t seat)
{
	uint64_t ends;

	if (is_cold(d)) /* what the block holds is of an earlier domain */
		return 0;
	ends = block_sum(d->seats[seat].block, true);
	return block_sum(d->seats[seat].block, false) - ends;
}

/* ---- the gate ---- */

void hc_ops_wait(const struct hc_page_record *record, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec t = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
			     .tv_nsec = (long)(timeout_ns % 1000000000u)};

	/* not PRIVATE: the waker is the daemon. Every way out leads to another look. */
	syscall(SYS_futex, &record->wake, FUTEX_WAIT, seen, &t, NULL, 0);
}

/* The gate, loaded behind everything that this thread has stored. */
static uint64_t gate_fenced(struct hc_ops_domain *d)
{
	atomic_fetch_add_explicit(&d->barrier, 1, memory_order_seq_cst);
	return atomic_load_explicit(&d->record->gate, memory_order_seq_cst);
}

/* Take over what a restarted daemon, or one whose fence fails, has changed in the gate. */
static uint64_t gate_adopt(struct hc_ops_domain *d, uint64_t gate)
{
	const uint64_t mask = HC_GATE_START_MASK | HC_GATE_LOCKED;
	uint64_t want = atomic_load_explicit(&d->expected, memory_order_relaxed);
	uint64_t next = (want & ~mask) | (gate & mask);

	if (next == want)
		return want;
	if (gate & HC_GATE_LOCKED)
		atomic_store_explicit(&d->fast_lines, 0, memory_order_relaxed);
	if (atomic_compare_exchange_strong_explicit(&d->expected, &want, next, memory_order_relaxed,
						    memory_order_relaxed) &&
	    ((next ^ want) & HC_GATE_START_MASK))
		d->hooks->reattach(d, d->hooks->context);
	return next;
}

/* number 0: point-to-point. `intent`: it stands in the block. */
static int verdict_draining(const struct hc_page_record *record, uint64_t number, bool nowait,
			    bool intent)
{
	uint32_t cut_set = atomic_load_explicit(&record->cut_set, memory_order_seq_cst);

	if (number && cut_set == HC_CUT_NONE)
		return nowait && !intent ? HC_E_SUSPENDED : STEP_WAIT;
	if (number > atomic_load_explicit(&record->cut, memory_order_relaxed)) {
		if (atomic_load_explicit(&record->drain, memory_order_relaxed) != HC_DRAIN_CHANGE)
			return HC_E_GONE;
		return nowait ? HC_E_SUSPENDED : intent ? STEP_AGAIN : STEP_WAIT;
	}
	if (cut_set != HC_CUT_CLOSED)
		return STEP_ADMIT;
	return intent ? STEP_WAKE : STEP_ADMIT;
}

static int verdict(const struct hc_page_record *record, uint64_t gate, uint64_t number, bool nowait,
		   bool intent)
{
	switch ((enum hcomm_state)(gate & HC_GATE_STATE_MASK)) {
	case HCOMM_ACTIVE: return STEP_ADMIT;
	case HCOMM_FORMING:
	case HCOMM_PROBING:
	case HCOMM_ACTIVATING:
	case HCOMM_SUSPENDED: return nowait ? HC_E_SUSPENDED : intent ? STEP_AGAIN : STEP_WAIT;
	case HCOMM_DRAINING: return verdict_draining(record, number, nowait, intent);
	case HCOMM_DAMAGED: return HC_E_DAMAGED;
	case HCOMM_DESTROYED:
	case HCOMM_FAILED: return HC_E_GONE;
	}
	return HC_E_GONE;
}

/* Until it is admitted (0), refused (HC_E_*) or has to withdraw and try again (STEP_AGAIN). */
static int settle(struct hc_ops_domain *d, uint64_t number, bool nowait, bool intent)
{
	const struct hc_page_record *record = d->record;
	uint64_t gate, want;
	uint32_t seen;
	int step;

	/* the look without an intent has nothing to be ordered with */
	gate = atomic_load_explicit(&record->gate, memory_order_acquire);
	if (!intent && gate == atomic_load_explicit(&d->expected, memory_order_relaxed))
		return STEP_ADMIT;
	for (;;) {
		seen = atomic_load_explicit(&record->wake, memory_order_acquire);
		gate = gate_fenced(d);
		if (atomic_load_explicit(&record->id, memory_order_relaxed) != d->id)
			return HC_E_GONE;
		want = gate_adopt(d, gate);
		if ((gate ^ want) & HC_GATE_TAG_MASK)
			return HC_E_STALE;
		step = verdict(record, gate, number, nowait, intent);
		/* was the cut that was read that of this gate? */
		if (atomic_load_explicit(&record->gate, memory_order_seq_cst) != gate)
			continue;
		if (step >= 0 || step == STEP_AGAIN)
			return step;
		if (step == STEP_WAKE)
			d->hooks->wake(d, d->hooks->context);
		hc_ops_wait(record, seen, LOOK_AGAIN_NS);
	}
}

/* ---- begin and end ---- */

/* A counter of the calling thread's line, in every mode. */
static void count(struct hc_ops_domain *d, uint32_t seat, size_t counter)
{
	struct hc_page_line *line = hc_ops_own(d->seats[seat].block, hc_ops_line);
	_Atomic uint64_t *at = (_Atomic uint64_t *)((unsigned char *)line + counter);

	if (hc_ops_line - 1 < atomic_load_explicit(&d->fast_lines, memory_order_relaxed))
		hc_ops_bump(at, memory_order_release);
	else
		atomic_fetch_add_explicit(at, 1, memory_order_seq_cst);
}

static size_t counter_of(bool end, uint64_t word)
{
	return (end ? offsetof(struct hc_page_line, ends) : offsetof(struct hc_page_line, begins)) +
	       (size_t)(word & 1) * sizeof(uint64_t);
}

static void intend(struct hc_ops_domain *d, uint32_t seat, uint32_t kind, struct hcomm_op *op)
{
	struct hc_page_head *head = &d->seats[seat].block->head;
	uint64_t want = atomic_load_explicit(&d->expected, memory_order_relaxed);
	bool p2p = kind > HCOMM_OP_OTHER;
	uint64_t number = 0;

	if (!p2p)
		number = atomic_load_explicit(&head->begun, memory_order_relaxed) + 1;
	op->private_[0] = atomic_load_explicit(&d->handle, memory_order_relaxed);
	op->private_[1] = HC_OPS_TOKEN((want >> 8) & 1, p2p, seat, number);
	/* begins before begun: who sees the number sees the reference */
	count(d, seat, counter_of(false, op->private_[1]));
	if (p2p) {
		atomic_store_explicit(&head->p2p_kind, kind, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&head->begun, number, memory_order_seq_cst);
	atomic_store_explicit(&head->last_kind, kind, memory_order_relaxed);
}

static void withdraw(struct hc_ops_domain *d, struct hcomm_op *op)
{
	uint64_t word = op->private_[1];
	uint32_t seat = HC_OPS_SEAT_OF(word);

	if (!(word & HC_OPS_P2P))
		atomic_store_explicit(&d->seats[seat].block->head.begun, HC_OPS_NUMBER_OF(word) - 1,
				      memory_order_release);
	op->private_[0] = 0;
	count(d, seat, counter_of(true, word));
	hc_ops_end_noticed(d);
}

int hc_ops_begin_slow(struct hc_ops_domain *d, uint32_t seat, uint32_t kind, uint32_t flags,
		      struct hcomm_op *op)
{
	bool nowait = flags & HCOMM_OP_NOWAIT;
	uint64_t number;
	int r;

	if (seat >= d->nseats || kind - 1 >= HCOMM_OP_RECV)
		return HC_E_INVALID;
	if (!hc_ops_line)
		line_take();
	if (is_cold(d))
		warm(d);
	do {
		number = 0;
		if (kind <= HCOMM_OP_OTHER)
			number = 1 + atomic_load_explicit(&d->seats[seat].block->head.begun,
							  memory_order_relaxed);
		/* first without an intent: a host that asks a closed gate again and again
		 * leaves no trace in the block and wakes nobody */
		r = settle(d, number, nowait, false);
		if (r)
			return r;
		intend(d, seat, kind, op);
		r = settle(d, number, nowait, true);
		if (r)
			withdraw(d, op);
	} while (r == STEP_AGAIN);
	return r;
}

int hc_ops_begin_raced(struct hc_ops_domain *d, uint32_t kind, uint32_t flags, struct hcomm_op *op)
{
	uint32_t seat = HC_OPS_SEAT_OF(op->private_[1]);
	int r;

	r = settle(d, HC_OPS_NUMBER_OF(op->private_[1]), flags & HCOMM_OP_NOWAIT, true);
	if (!r)
		return 0;
	withdraw(d, op);
	return r == STEP_AGAIN ? hc_ops_begin_slow(d, seat, kind, flags, op) : r;
}

int hc_ops_end_slow(struct hc_ops_domain *d, struct hcomm_op *op)
{
	uint64_t word = op->private_[1];
	uint32_t seat = HC_OPS_SEAT_OF(word);

	if (seat >= d->nseats)
		return HC_E_INVALID;
	if (!hc_ops_line)
		line_take();
	op->private_[0] = 0;
	count(d, seat, counter_of(true, word));
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&d->record->gate, memory_order_seq_cst) !=
	    atomic_load_explicit(&d->expected, memory_order_relaxed))
		hc_ops_end_noticed(d);
	return 0;
}

/* A reference was returned under another gate than expected: does the daemon wait for it? */
void hc_ops_end_noticed(struct hc_ops_domain *d)
{
	uint64_t gate = gate_fenced(d);
	uint64_t want;

	if (atomic_load_explicit(&d->record->id, memory_order_relaxed) != d->id)
		return;
	want = gate_adopt(d, gate);
	if (gate != want)
		d->hooks->wake(d, d->hooks->context);
}
