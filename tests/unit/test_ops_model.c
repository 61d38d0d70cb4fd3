/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of operation references and drains, as a model, over every schedule.
 *
 * Two ranks of two threads each run a program of three operations (C: collective, P: one side of
 * a point-to-point pair) on two op blocks; one daemon closes the gate at any moment, makes the
 * cut, waits to be woken and releases. Operations are asynchronous: any thread of the rank begins
 * the next one (one at a time) or ends one that was begun, and one can only end after the other
 * rank was admitted to it. The steps are those of libclient/ops.c and of nodepages.c.
 *
 * Memory: a store of a client goes into a buffer of its thread (in order, five deep) and reaches
 * memory at any later time: before, or long after, the thread's own next load. The daemon's fence
 * empties all buffers; so does a thread's own locked instruction or system call.
 *
 * Demanded on every schedule: nothing is held at the release and nothing admitted after it; a
 * state without a next step is one where the daemon has released (a lost wake-up or a dead-lock
 * would stop before; there is no periodic scan here) and both ranks were admitted to the same;
 * and no schedule is endless (the graph of states has no cycle).
 *
 * The search is depth first over a table of all states met, threads of a rank being
 * interchangeable. A model that cannot fail proves nothing, so each mutation of the protocol
 * below must be found to break a demand.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, THREADS = 4, OPS = 3, DEEP = 5, MOVES = THREADS * (2 + OPS) + 1 };

/* Changes to the protocol; a search may combine them. */
enum mutation {
	NO_FENCE = 1,             /* the daemon does not empty the buffers */
	BEGINS_FIRST = 2,         /* begins are summed before ends */
	CUT_MINIMUM = 4,          /* the cut is the lowest number begun */
	NO_WAKE_ON_WITHDRAW = 8,  /* who withdraws says nothing */
	NO_WAKE_ON_END = 16,      /* who ends under a closed gate says nothing */
	GATE_BEFORE_STORE = 32,   /* begin looks only before it writes its intent */
	NO_SECOND_SCAN = 64,      /* released after the first good scan */
	P2P_REFUSED_AT_CUT = 128, /* point-to-point ends with the cut */
	NO_LIFT = 256,            /* a closed cut is not opened again */
	CLEARED_LATE = 512        /* the wake-up is taken after the scan that it asks for */
};

enum pc { IDLE, LOOKED, GATE, SETTLE, CUT, RECHECK, CLOSED, WITHDRAWN, ENDED };
enum gate { OPEN, DRAINING, RELEASED };
enum cut { NOT_SET, SET, SHUT };
enum op { FRESH, INTENT, HELD, OVER, REFUSED };
/* what a buffer entry does to memory; BEGUN + n stores the number n */
enum { EMPTY, BEGINS, ENDS, BEGUN };
enum daemon {
	D_OPEN,
	D_FENCE,
	D_MAX, /* two: begun of each rank */
	D_PUBLISH = D_MAX + RANKS,
	D_SCAN, /* for each rank: begun, two of one counter, two of the other */
	D_SHUT = D_SCAN + 5 * RANKS,
	D_FENCE_AGAIN,
	D_RELEASE,
	D_WAIT,
	D_DONE
};

struct state {
	uint16_t buffer[THREADS]; /* three bits an entry, oldest lowest */
	uint8_t pc[THREADS], at[THREADS];
	uint8_t begins[THREADS], ends[THREADS]; /* memory */
	uint8_t begun[RANKS];                   /* memory */
	uint8_t op[RANKS][OPS];
	uint8_t gate, cut, cut_set, pending;
	uint8_t daemon, second;
	int8_t sum;
	uint8_t unused;
};
_Static_assert(sizeof(struct state) == 40, "hashed as five words, no padding");

struct search {
	const char *program;
	unsigned mutation;  /* of enum mutation */
	bool fine;          /* a scan reads line by line, else both lines of a counter at once */
	int ops;            /* length of the program */
	const char *broken; /* the demand that does not hold, or NULL */
	struct state *states;
	uint8_t *open; /* on the path of the search */
	uint32_t *table;
	uint32_t count, room, slots, releases;
};

/* ---- clients ---- */

static int rank_of(int t)
{
	return t / 2;
}

static unsigned depth(uint16_t buffer)
{
	unsigned n = 0;

	for (; buffer; buffer = (uint16_t)(buffer >> 3))
		n++;
	return n;
}

static void flush_one(struct state *s, int t)
{
	unsigned entry = s->buffer[t] & 7;

	s->buffer[t] = (uint16_t)(s->buffer[t] >> 3);
	if (entry == BEGINS)
		s->begins[t]++;
	else if (entry == ENDS)
		s->ends[t]++;
	else
		s->begun[rank_of(t)] = (uint8_t)(entry - BEGUN);
}

static void flush(struct state *s, int t)
{
	while (s->buffer[t])
		flush_one(s, t);
}

/*
 * Before the daemon's fence nobody but their own thread looks at these stores, and the fence
 * empties every buffer. So for the larger programs they reach memory at once until then: the
 * same states behind the fence, less than half of them in all.
 */
static void push(const struct search *q, struct state *s, int t, unsigned entry)
{
	s->buffer[t] = (uint16_t)(s->buffer[t] | entry << 3 * depth(s->buffer[t]));
	if (!q->fine && s->daemon <= D_FENCE && !(q->mutation & NO_FENCE))
		flush(s, t);
}

/* Number of the collective at index i of a rank: one more than those admitted before it. */
static unsigned number(const struct search *q, const struct state *s, int rank, int i)
{
	unsigned n = 1;

	if (q->program[i] == 'P')
		return 0;
	while (i--)
		n += q->program[i] == 'C' && (s->op[rank][i] == HELD || s->op[rank][i] == OVER);
	return n;
}

/* Do all begins of the other thread stand in memory, as a lock between the two has it? */
static bool handed_over(const struct state *s, int t)
{
	uint16_t b;

	if (s->pc[t ^ 1] != IDLE && s->pc[t ^ 1] != ENDED)
		return false;
	for (b = s->buffer[t ^ 1]; b; b = (uint16_t)(b >> 3))
		if ((b & 7) != ENDS)
			return false;
	return true;
}

static void admit(struct search *q, struct state *s, int t)
{
	s->op[rank_of(t)][s->at[t]] = HELD;
	s->pc[t] = IDLE;
	s->at[t] = 0;
	if (s->gate == RELEASED)
		q->broken = "an operation is admitted after the release";
}

static void refuse(struct search *q, struct state *s, int t)
{
	unsigned n = number(q, s, rank_of(t), s->at[t]);

	if (n)
		push(q, s, t, BEGUN + n - 1);
	push(q, s, t, ENDS);
	s->op[rank_of(t)][s->at[t]] = REFUSED;
	s->pc[t] = WITHDRAWN;
	s->at[t] = 0;
}

static int next_op(const struct search *q, const struct state *s, int rank)
{
	int i = 0;

	while (i < q->ops && s->op[rank][i] != FRESH)
		i++;
	return i;
}

/* The look without an intent; with one to write, it may be long until that happens. */
static bool look(const struct search *q, struct state *s, int t)
{
	int rank = rank_of(t), i = next_op(q, s, rank);
	unsigned n;

	if (i == q->ops || !handed_over(s, t))
		return false;
	n = number(q, s, rank, i);
	if (s->gate == DRAINING && n && s->cut_set == NOT_SET)
		return false; /* waits */
	if (s->gate == RELEASED || (s->gate == DRAINING && n > s->cut)) {
		s->op[rank][i] = REFUSED;
		return true;
	}
	s->op[rank][i] = INTENT;
	s->at[t] = (uint8_t)i;
	s->pc[t] = LOOKED;
	return true;
}

static bool intend(struct search *q, struct state *s, int t)
{
	unsigned n = number(q, s, rank_of(t), s->at[t]);

	if (depth(s->buffer[t]) + 2 > DEEP)
		return false;
	push(q, s, t, BEGINS);
	if (n)
		push(q, s, t, BEGUN + n);
	s->pc[t] = GATE;
	if (q->mutation & GATE_BEFORE_STORE)
		admit(q, s, t);
	return true;
}

static bool judge_cut(struct search *q, struct state *s, int t)
{
	unsigned n = number(q, s, rank_of(t), s->at[t]);

	if (n && s->cut_set == NOT_SET)
		return false; /* waits with its intent */
	if (!n && s->cut_set != NOT_SET && (q->mutation & P2P_REFUSED_AT_CUT)) {
		refuse(q, s, t);
	} else if (n > s->cut) {
		refuse(q, s, t);
	} else if (s->cut_set == SHUT) {
		s->pending = 1;
		s->pc[t] = CLOSED;
	} else {
		s->pc[t] = RECHECK;
	}
	return true;
}

static bool wake_daemon(const struct search *q, struct state *s, int t, enum mutation unless)
{
	bool closed = s->gate != OPEN;

	s->pc[t] = IDLE;
	if (closed)
		flush(s, t);
	if (closed && !(q->mutation & unless))
		s->pending = 1;
	return true;
}

static bool advance(struct search *q, struct state *s, int t)
{
	switch ((enum pc)s->pc[t]) {
	case IDLE: return look(q, s, t);
	case LOOKED: return intend(q, s, t);
	case GATE:
		if (s->gate == OPEN) {
			admit(q, s, t);
		} else {
			flush(s, t);
			s->pc[t] = SETTLE;
		}
		return true;
	case SETTLE:
		if (s->gate == RELEASED)
			refuse(q, s, t);
		else
			s->pc[t] = CUT;
		return true;
	case CUT: return judge_cut(q, s, t);
	case RECHECK:
		if (s->gate == RELEASED)
			s->pc[t] = SETTLE;
		else
			admit(q, s, t);
		return true;
	case CLOSED:
		if (s->gate != RELEASED && s->cut_set == SHUT)
			return false;
		s->pc[t] = SETTLE;
		return true;
	case WITHDRAWN: return wake_daemon(q, s, t, NO_WAKE_ON_WITHDRAW);
	case ENDED: return wake_daemon(q, s, t, NO_WAKE_ON_END);
	}
	abort();
}

/* A collective ends when the other rank takes part, a send when the other receives. */
static bool partner_takes_part(const struct search *q, const struct state *s, int rank, int i)
{
	unsigned n = number(q, s, rank, i);
	int k, other = 1 - rank;

	if (!n)
		return s->op[other][i] == HELD || s->op[other][i] == OVER;
	for (k = 0; k < q->ops; k++)
		if ((s->op[other][k] == HELD || s->op[other][k] == OVER) &&
		    number(q, s, other, k) == n)
			return true;
	return false;
}

static bool end(const struct search *q, struct state *s, int t, int i)
{
	int rank = rank_of(t);

	if (s->pc[t] != IDLE || s->op[rank][i] != HELD || !partner_takes_part(q, s, rank, i))
		return false;
	if (!handed_over(s, t) || depth(s->buffer[t]) == DEEP)
		return false;
	s->op[rank][i] = OVER;
	push(q, s, t, ENDS);
	s->pc[t] = ENDED;
	return true;
}

/* ---- the daemon ---- */

static void scan_fails(const struct search *q, struct state *s)
{
	if (s->second && !(q->mutation & NO_LIFT))
		s->cut_set = SET;
	s->second = 0;
	s->sum = 0;
	s->daemon = D_WAIT;
	if (q->mutation & CLEARED_LATE)
		s->pending = 0;
}

static void scan_holds(const struct search *q, struct state *s)
{
	if (s->second || (q->mutation & NO_SECOND_SCAN))
		s->daemon = D_RELEASE;
	else
		s->daemon = D_SHUT;
}

static int counted(const struct state *s, int t, bool ends)
{
	return ends ? -(int)s->ends[t] : (int)s->begins[t];
}

static void scan(const struct search *q, struct state *s)
{
	int step = s->daemon - D_SCAN, rank = step / 5, t = 2 * rank + (step % 5 - 1) % 2;
	bool ends = (step % 5 <= 2) != !!(q->mutation & BEGINS_FIRST);

	s->daemon++;
	if (step % 5 == 0) {
		if (s->begun[rank] < s->cut)
			scan_fails(q, s);
		return;
	}
	s->sum = (int8_t)(s->sum + counted(s, t, ends));
	if (!q->fine) {
		s->sum = (int8_t)(s->sum + counted(s, t + 1, ends));
		s->daemon++;
		step++;
	}
	if (step % 5 == 4 && s->sum)
		scan_fails(q, s);
	else if (step == 5 * RANKS - 1)
		scan_holds(q, s);
}

static void fence(const struct search *q, struct state *s)
{
	int t;

	for (t = 0; t < THREADS && !(q->mutation & NO_FENCE); t++)
		flush(s, t);
}

static void take_max(const struct search *q, struct state *s, int rank)
{
	uint8_t b = s->begun[rank];

	if (!rank || ((q->mutation & CUT_MINIMUM) ? b < s->cut : b > s->cut))
		s->cut = b;
}

static void release(struct search *q, struct state *s)
{
	int rank, i;

	for (rank = 0; rank < RANKS; rank++)
		for (i = 0; i < q->ops; i++)
			if (s->op[rank][i] == HELD)
				q->broken = "released while an operation is held";
	s->gate = RELEASED;
	s->daemon = D_DONE;
	s->second = 0;
	q->releases++;
}

static bool daemon_step(struct search *q, struct state *s)
{
	switch (s->daemon) {
	case D_OPEN: s->gate = DRAINING; break;
	case D_FENCE: fence(q, s); break;
	case D_PUBLISH: s->cut_set = SET; break;
	case D_SHUT:
		s->cut_set = SHUT;
		s->second = 1;
		break;
	case D_FENCE_AGAIN:
		fence(q, s);
		s->daemon = D_SCAN;
		return true;
	case D_RELEASE: release(q, s); return true;
	case D_WAIT:
		if (!s->pending)
			return false;
		if (!(q->mutation & CLEARED_LATE))
			s->pending = 0;
		s->daemon = D_SCAN;
		return true;
	case D_DONE: return false;
	default:
		if (s->daemon >= D_SCAN) {
			scan(q, s);
			return true;
		}
		take_max(q, s, s->daemon - D_MAX);
		break;
	}
	s->daemon++;
	return true;
}

/* ---- the search ---- */

static bool move(struct search *q, struct state *s, int m)
{
	int t = m / (2 + OPS), a = m % (2 + OPS);

	if (m == MOVES - 1)
		return daemon_step(q, s);
	if (a == 0) {
		if (!s->buffer[t])
			return false;
		flush_one(s, t);
		return true;
	}
	return a == 1 ? advance(q, s, t) : end(q, s, t, a - 2);
}

static void swap8(uint8_t *a)
{
	uint8_t x = a[0];

	a[0] = a[1];
	a[1] = x;
}

static uint64_t thread_key(const struct state *s, int t)
{
	return (uint64_t)s->buffer[t] << 32 | (uint64_t)s->pc[t] << 24 | (uint64_t)s->at[t] << 16 |
	       (uint64_t)s->begins[t] << 8 | s->ends[t];
}

/* The two threads of a rank differ only for a scan that is between their lines. */
static void canonical(const struct search *q, struct state *s)
{
	uint16_t x;
	int t;

	if (q->fine && s->daemon >= D_SCAN && s->daemon < D_SHUT)
		return;
	for (t = 0; t < THREADS; t += 2) {
		if (thread_key(s, t) <= thread_key(s, t + 1))
			continue;
		x = s->buffer[t];
		s->buffer[t] = s->buffer[t + 1];
		s->buffer[t + 1] = x;
		swap8(&s->pc[t]);
		swap8(&s->at[t]);
		swap8(&s->begins[t]);
		swap8(&s->ends[t]);
	}
}

static uint32_t hash(const struct state *s)
{
	uint64_t w[5], h = 0x9e3779b97f4a7c15ull;
	int i;

	memcpy(w, s, sizeof(w));
	for (i = 0; i < 5; i++) {
		h = (h ^ w[i]) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	return (uint32_t)h;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void rehash(struct search *q)
{
	uint32_t i, h;

	q->slots = q->slots ? 2 * q->slots : 1u << 16;
	free(q->table);
	q->table = must(calloc(q->slots, sizeof(*q->table)));
	for (i = 0; i < q->count; i++) {
		for (h = hash(&q->states[i]); q->table[h & (q->slots - 1)]; h++)
			;
		q->table[h & (q->slots - 1)] = i + 1;
	}
}

/* Index of a state; *fresh says whether it was met for the first time. */
static uint32_t intern(struct search *q, const struct state *s, bool *fresh)
{
	uint32_t h, at;

	if (2 * q->count >= q->slots)
		rehash(q);
	for (h = hash(s); (at = q->table[h & (q->slots - 1)]); h++)
		if (!memcmp(&q->states[at - 1], s, sizeof(*s))) {
			*fresh = false;
			return at - 1;
		}
	if (q->count == q->room) {
		q->room = q->room ? 2 * q->room : 1u << 16;
		q->states = must(realloc(q->states, q->room * sizeof(*q->states)));
		q->open = must(realloc(q->open, q->room));
	}
	q->table[h & (q->slots - 1)] = q->count + 1;
	q->states[q->count] = *s;
	q->open[q->count] = 0;
	*fresh = true;
	return q->count++;
}

static void judge_stop(struct search *q, const struct state *s)
{
	int i, same = 1;

	if (s->daemon != D_DONE)
		q->broken = "stands still before the release";
	for (i = 0; i < q->ops; i++)
		same &= q->program[i] == 'C' || (s->op[0][i] == OVER) == (s->op[1][i] == OVER);
	for (i = 0; i < q->ops; i++)
		same &= s->op[0][i] >= OVER && s->op[1][i] >= OVER;
	if (!same && !q->broken)
		q->broken = "the ranks were not admitted to the same operations";
	if (s->begun[0] != s->begun[1] && !q->broken)
		q->broken = "the ranks end at different numbers";
}

struct frame {
	uint32_t state;
	int move;
	bool moved;
};

static void visit(struct search *q, struct frame *stack, uint32_t *top)
{
	struct frame *f = &stack[*top];
	struct state s;
	uint32_t next;
	bool fresh;

	if (f->move == MOVES) {
		if (!f->moved)
			judge_stop(q, &q->states[f->state]);
		q->open[f->state] = 0;
		--*top;
		return;
	}
	s = q->states[f->state];
	if (!move(q, &s, f->move++) || q->broken)
		return;
	f->moved = true;
	canonical(q, &s);
	next = intern(q, &s, &fresh);
	if (q->open[next])
		q->broken = "a schedule without end";
	if (fresh) {
		q->open[next] = 1;
		stack[++*top] = (struct frame){.state = next};
	}
}

enum { PATH_MAX_STEPS = 4096 };

static void explore(struct search *q)
{
	static struct frame stack[PATH_MAX_STEPS];
	struct state start = {0};
	uint32_t top = 1;
	bool fresh;

	stack[1] = (struct frame){.state = intern(q, &start, &fresh)};
	q->open[0] = 1;
	while (top && !q->broken) {
		if (top + 1 == PATH_MAX_STEPS) {
			q->broken = "a schedule beyond every bound";
			break;
		}
		visit(q, stack, &top);
	}
	free(q->states);
	free(q->open);
	free(q->table);
}

/* ---- the story ---- */

static struct search search(const char *program, unsigned mutation)
{
	struct search q = {.program = program, .mutation = mutation, .ops = (int)strlen(program)};

	q.fine = q.ops < OPS;
	explore(&q);
	printf("ops model %s: %u states, %u releases, %s\n", q.program, q.count, q.releases,
	       q.broken ? q.broken : "sound");
	fflush(stdout);
	return q;
}

static const char *const programs[] = {"CC",  "CP",  "PC",  "PP",  "CCC",
				       "PCP", "CPC", "CCP", "PPC", "PPP"};
/* Programs of two come first. Each mutation below breaks one of them too, so they show all that a
 * change of the protocol can break; those of three take ten times as long, and run with HC_LONG. */
enum { QUICK = 4, PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

START_TEST(every_schedule_keeps_every_promise)
{
	struct search q = search(programs[_i], 0);

	ck_assert_msg(!q.broken, "%s: %s", q.program, q.broken ? q.broken : "");
	ck_assert_uint_gt(q.releases, 0);
}
END_TEST

/* What one scan can and cannot tell; it also shows that the search does not condemn all. */
START_TEST(collectives_alone_need_one_scan)
{
	struct search q = search(getenv("HC_LONG") ? "CCC" : "CC", NO_SECOND_SCAN);

	ck_assert_msg(!q.broken, "%s", q.broken ? q.broken : "");
}
END_TEST

static const struct {
	unsigned mutation;
	const char *program, *name;
} mutations[] = {
	{NO_FENCE, "CCC", "no fence"},
	{BEGINS_FIRST | NO_SECOND_SCAN, "CCC", "begins before ends"},
	{CUT_MINIMUM, "CCC", "the cut is the minimum"},
	{NO_WAKE_ON_WITHDRAW, "CCC", "no wake on withdraw"},
	{NO_WAKE_ON_END, "CCC", "no wake on end"},
	{GATE_BEFORE_STORE, "CCC", "gate before store"},
	{NO_SECOND_SCAN, "PCP", "no second scan"},
	{P2P_REFUSED_AT_CUT, "PCP", "point-to-point is refused at the cut"},
	{NO_LIFT, "PCP", "a closed cut stays closed"},
	{CLEARED_LATE, "CCC", "the wake-up is taken after the scan"},
};

START_TEST(each_mutation_is_found)
{
	struct search q;

	printf("%s: ", mutations[_i].name);
	q = search(mutations[_i].program, mutations[_i].mutation);
	ck_assert_msg(q.broken != NULL, "%s: no schedule breaks it", mutations[_i].name);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ops model");
	TCase *c = tcase_create("schedules");
	SRunner *r;
	int failed;

	tcase_set_timeout(c, 300);
	tcase_add_loop_test(c, every_schedule_keeps_every_promise, 0,
			    getenv("HC_LONG") ? PROGRAMS : QUICK);
	tcase_add_test(c, collectives_alone_need_one_scan);
	tcase_add_loop_test(c, each_mutation_is_found, 0,
			    (int)(sizeof(mutations) / sizeof(mutations[0])));
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
