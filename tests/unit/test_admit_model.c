/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small worlds, walked whole: the scheduler's own code, over every order of events.
 *
 * The model. Two links with one or two channels each, three owners, four requests: two of the first
 * owner, one of each other. A request is for a channel on the first link, the second, both (a gang
 * of two) or either; of a low or a high class; it waits, or leaves a ticket. What the four are is a
 * *script*. From every state of a script whatever can happen next is tried: one that is not there
 * yet asks; one gives up, in whatever state; a ticket comes back to wait, or to fetch what it got;
 * one of the first owner's comes back without waiting, once; a grant is collected, or not; what is
 * held is given back; and twice a second passes. A request ages in two seconds, a grant lapses in
 * one, and so does a ticket after its hint. What a refused caller is told is not computed but
 * tried: no hint, or that it come in a second. So durations, declared or seen, decide nothing here
 * (the low class declares them, so that their books are kept too); hints as they are computed have
 * tests of their own.
 *
 * Not in it: hints of less or more than a second, more returns without waiting, more than one
 * channel on a link for one request, gangs that give back one of two, weights, quotas, bandwidth
 * that is short, links that change, waits with a deadline.
 *
 * Demanded in every state: the whole state agrees with itself (hc_admit_check: used and free, gangs
 * whole, nothing that fits and may go is left waiting); no grant went past an older request that
 * had aged, an older one of the same owner and class, a ticket that is awaited, or a higher class
 * that it would have served as well; nothing is in use when nobody is there; and never does
 * everybody wait. The last is enough against dead-lock. Who has a ticket or a grant can go on in
 * good manners (come back to wait; collect; give back), which brings him nearer to his end (one who
 * lends what he has not fetched goes back a step, the borrower two on), and all that is walked. So
 * whoever does, in any order, with or without time passing, ends where no such move is left: where
 * all were served, or all wait.
 *
 * `make check` walks a fixed share of the scripts; HC_LONG=1 all of them, 234 million states, some
 * eleven minutes of a processor, on as many as there are.
 */
#include "suite.h"

#include "admit_model.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum verb { ASK, ASK_HINT, AGAIN, WAIT, COLLECT, RELEASE, VERBS };
enum { MOVES = REQUESTS * VERBS + 1, DEEP = 48, TABLE_LEAST = 1 << 12, WORKERS_MAX = 64 };
enum { SHARE = 523 }; /* of them one of so many is walked in the short form: a prime */

static struct level {
	struct world w;
	uint32_t left;      /* moves that are to be tried, a bit for each */
	uint64_t hash, way; /* of what was reached from it */
	uint8_t memory[BYTES];
} level[DEEP];

static uint64_t *seen, *ways; /* hash tables: states, and what was reached from each */
static uint32_t table;
static uint64_t states, moves;
static bool compares;

/* ---- what must hold ---- */

static void judge_grant(const struct world *w, uint32_t i)
{
	const char *wrong;
	uint32_t k, l;

	for (k = 0; k < REQUESTS; k++) {
		if (k == i || w->number[k] >= DONE)
			continue;
		for (l = 0; l < LINKS; l++) {
			wrong = adm_overtaken(live, w->now, l, w->number[i], script.of[i].ticket,
					      w->number[k], w->number[k] < w->number[i]);
			if (wrong)
				ck_abort_msg("script %u (HC_SEED): %s", script.number, wrong);
		}
	}
}

static void judge_state(const struct world *w)
{
	uint32_t i, there = 0, waiting = 0;
	struct hc_admit_use use;

	for (i = 0; i < REQUESTS; i++)
		if (w->number[i] < DONE) {
			there++;
			waiting += live->request[w->number[i]].state == HC_ADMIT_WAITING;
		}
	must((!there || waiting < there) && "all wait, for nobody");
	for (i = 0; i < LINKS && !there; i++) {
		hc_admit_link_use(live, i, &use);
		must(!use.used_mbps[0] && !use.used_mbps[1] && !use.used_vcs && !use.waiting);
	}
	hc_admit_check(live);
}

/* ---- moves ---- */

static void settle(struct world *w)
{
	enum hc_admit_news news;
	uint32_t n, i;

	adm_run(live, w->now);
	while (hc_admit_news(live, &n, &news)) {
		for (i = 0; w->number[i] != n; i++)
			must(i < REQUESTS - 1);
		if (news == HC_ADMIT_NEWS_GRANTED)
			judge_grant(w, i);
		else
			w->number[i] = DONE;
	}
}

/* Of two that are alike the first asks first. */
static bool may_ask(const struct world *w, uint32_t i, enum verb verb)
{
	if (i % 2 && script.of[i].kind == script.of[i - 1].kind && w->number[i - 1] == HC_NONE)
		return false;
	return verb == ASK || (verb == ASK_HINT && script.of[i].ticket);
}

/* It came before its time and is told the rest of it. */
static bool is_early(const struct world *w, const struct hc_adm_request *r)
{
	return r->state != HC_ADMIT_WAITING && r->hint_at != HC_NEVER && w->now < r->hint_at;
}

static bool may_move(const struct world *w, uint32_t which)
{
	const uint32_t i = which / VERBS;
	const enum verb verb = (enum verb)(which % VERBS);
	const bool last = w->ticks == TICKS;
	const struct hc_adm_request *r;

	if (i == REQUESTS)
		return !last;
	if (w->number[i] >= DONE)
		return w->number[i] == HC_NONE && may_ask(w, i, verb);
	r = &live->request[w->number[i]];
	switch (verb) {
	case ASK:
	case ASK_HINT:
	case VERBS: return false;
	case AGAIN: return may_return(i) && w->returns < RETURNS && !r->ngranted;
	case WAIT: return r->absent || r->state == HC_ADMIT_ASLEEP || r->state == HC_ADMIT_AWAITED;
	/* given back uncollected is as given back; and nothing lapses any more after the last
	 * second */
	case COLLECT: return !last && r->state == HC_ADMIT_GRANTED && !r->absent;
	case RELEASE: return last || r->absent || r->state != HC_ADMIT_GRANTED;
	}
	return false;
}

/* What the refused is told instead of what was computed. */
static void promise(const struct world *w, uint32_t i, bool hint)
{
	struct hc_adm_request *r = &live->request[w->number[i]];

	r->hint_at = hint ? w->now + SEC : HC_NEVER;
	if (r->state == HC_ADMIT_ASLEEP)
		r->wake_at = r->hint_at;
	hc_adm_timer(live, w->number[i]);
}

static void ask(struct world *w, uint32_t i, bool hint)
{
	const struct request *q = &script.of[i];
	struct hc_admit_piece p[2] = {adm_piece(0, 1, 10, 10), adm_piece(0, 1, 10, 10)};
	struct hc_admit_ask a = adm_ask(owner_name[owner_of[i]], p, q->place == BOTH ? 2 : 1);
	uint64_t told;
	int r;

	live->requests.head = live->requests.tail = 0; /* no number twice */
	memset(live->spans.free, 0, sizeof(live->spans.free));
	p[0].type = (uint8_t)(q->place == EITHER ? 0 : q->place == SECOND ? 2 : 1);
	p[1].type = 2;
	a.order = q->order;
	a.wait = !q->ticket;
	a.hold_ns = q->order ? 0 : SEC;
	r = hc_admit_ask(live, w->now, &a, &w->number[i], &told);
	must(r == 0 || r == (q->ticket ? HC_E_AGAIN : HC_E_IN_PROGRESS));
	if (!r)
		judge_grant(w, i);
	else if (q->ticket)
		promise(w, i, hint);
}

static void again(struct world *w, uint32_t i, bool wait)
{
	const struct hc_adm_request *r = &live->request[w->number[i]];
	const bool early = is_early(w, r), had = r->absent;
	const bool hint = r->state == HC_ADMIT_WAITING || r->hint_at != HC_NEVER;
	uint64_t told;
	int e;

	w->returns += !wait;
	e = hc_admit_again(live, w->now, w->number[i], wait, HC_NEVER, &told);
	if (!e && !had)
		judge_grant(w, i);
	else if (e == HC_E_AGAIN && !early)
		promise(w, i, hint);
}

static void make_move(struct world *w, uint32_t which)
{
	const uint32_t i = which / VERBS;

	if (i == REQUESTS) {
		w->ticks++;
		w->now += SEC;
		settle(w);
		return;
	}
	switch ((enum verb)(which % VERBS)) {
	case VERBS:
	case ASK: ask(w, i, false); break;
	case ASK_HINT: ask(w, i, true); break;
	case AGAIN: again(w, i, false); break;
	case WAIT: again(w, i, true); break;
	case COLLECT: hc_admit_collect(live, w->number[i]); break;
	case RELEASE:
		hc_admit_release(live, w->now, w->number[i]);
		w->number[i] = DONE;
		break;
	}
	settle(w);
}

/* ---- the walk ---- */

static uint32_t place_in(const uint64_t *t, uint64_t h)
{
	uint32_t at = (uint32_t)(h >> 20) & (table - 1);

	while (t[at] && t[at] != h)
		at = (at + 1) & (table - 1);
	return at;
}

static void make_table(uint32_t size)
{
	uint64_t *old = seen, *old_ways = ways;
	uint32_t i, n = table, at;

	table = size;
	seen = calloc(size, sizeof(*seen));
	ways = calloc(size, sizeof(*ways));
	must(seen && ways);
	for (i = 0; i < n; i++)
		if (old[i]) {
			at = place_in(seen, old[i]);
			seen[at] = old[i];
			ways[at] = old_ways[i];
		}
	free(old);
	free(old_ways);
}

/* Here is another state of that hash: does it go the same ways? */
static void compare(const struct world *w, uint64_t way)
{
	static uint8_t memory[BYTES];
	struct world to;
	uint64_t other = 0;
	uint32_t m;

	save(memory);
	for (m = 0; m < MOVES; m++) {
		if (!may_move(w, m))
			continue;
		to = *w;
		make_move(&to, m);
		other = mix(other, hash_of(&to) + m);
		load(memory);
	}
	must(other == way && "two states were taken for one");
}

static uint32_t moves_of(const struct world *w)
{
	uint32_t m, all = 0;

	for (m = 0; m < MOVES; m++)
		all |= may_move(w, m) ? 1u << m : 0;
	return all;
}

static struct level *enter(struct level *l, uint64_t hash)
{
	must(memory_holds(live));
	l->hash = hash;
	l->way = 0;
	l->left = moves_of(&l->w);
	save(l->memory); /* before the check, which looks again at all who wait */
	judge_state(&l->w);
	return l;
}

static bool is_new(uint64_t h, const struct world *w)
{
	const uint32_t at = place_in(seen, h);

	if (seen[at]) {
		if (compares) /* the other one is left already: no way leads back to where it began
			       */
			compare(w, ways[at]);
		return false;
	}
	seen[at] = h;
	if (++states > table / 2)
		make_table(2 * table);
	return true;
}

/* Depth first. Each way takes something that does not come back, so there is no circle. */
static void walk(void)
{
	struct level *l = enter(level, 1);
	uint32_t m;
	uint64_t h;

	for (;;) {
		if (!l->left) {
			if (l == level)
				return;
			if (compares)
				ways[place_in(seen, l->hash)] = l->way;
			l--;
			continue;
		}
		m = (uint32_t)__builtin_ctz(l->left);
		l->left &= l->left - 1;
		must(l + 1 < level + DEEP);
		load(l->memory);
		l[1].w = l->w;
		make_move(&l[1].w, m);
		moves++;
		h = hash_of(&l[1].w);
		l->way = mix(l->way, h + m);
		if (is_new(h, &l[1].w))
			l = enter(l + 1, h);
	}
}

/* ---- scripts ---- */

static void start(void)
{
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = AGING,
					      .grant_ttl_ns = 1 * SEC,
					      .hint_hold_ns = 1 * SEC};
	const struct hc_admit_limits lim = {
		.links = LINKS, .requests = REQUESTS, .pieces = 2 * REQUESTS};
	struct hc_admit_link fact = {
		.a = 0, .b = 1, .carries = true, .up = true, .mbps = 100, .vcs = script.channels};
	struct hc_mem m = {0};
	uint32_t i;

	hc_admit_init(&m, &lim);
	if (!live)
		live = aligned_alloc(LINE, m.used);
	memset(live, 0, m.used);
	m = (struct hc_mem){.base = (uint8_t *)live, .size = m.used};
	must(hc_admit_init(&m, &lim) == live);
	memory_init(m.size);
	hc_admit_set(live, &set);
	for (i = 0; i < LINKS; i++) {
		fact.type = (uint8_t)(1 + i);
		hc_admit_link_set(live, 1, i, &fact);
	}
	level[0].w = (struct world){.now = SEC};
	for (i = 0; i < REQUESTS; i++)
		level[0].w.number[i] = HC_NONE;
	adm_run(live, SEC);
}

static void walk_script(uint32_t number)
{
	read_script(number);
	start();
	table = 0;
	make_table(TABLE_LEAST);
	states = moves = 0;
	walk();
	free(seen);
	free(ways);
	seen = ways = NULL;
	if (getenv("HC_LOUD"))
		fprintf(stderr, "script %u: %llu states, %llu moves\n", number,
			(unsigned long long)states, (unsigned long long)moves);
}

/* ---- tests ---- */

/* One of how many, where all is slow one of five times as many. */
static uint32_t share(uint32_t of_many)
{
	return hc_patience(1) > 1 ? 5 * of_many : of_many;
}

struct sum {
	uint32_t scripts, found;
	uint64_t states;
};

static struct sum walk_share(uint32_t worker, uint32_t workers)
{
	const uint32_t of_many = hc_long() ? workers : share(SHARE);
	struct sum sum = {0};
	uint32_t n;

	for (n = 0; n < SCRIPTS; n++)
		if (canonical(n) == n && sum.found++ % of_many == worker) {
			walk_script(n);
			sum.scripts++;
			sum.states += states;
		}
	return sum;
}

/* Waits for one of them, which is not in the list any more; false: it found something. */
static bool one_ends(pid_t worker[], uint32_t workers)
{
	int status = 0;
	const pid_t pid = wait(&status);
	uint32_t i;

	for (i = 0; i < workers; i++)
		if (worker[i] == pid)
			worker[i] = 0;
	return pid > 0 && status == 0;
}

/* The long form takes as many processes as there are processors, or as HC_WORKERS says. */
static struct sum walk_all(uint32_t workers)
{
	struct sum *of = mmap(NULL, workers * sizeof(*of), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		   all = {0};
	pid_t worker[WORKERS_MAX] = {0};
	bool sound = of != MAP_FAILED;
	uint32_t i;

	for (i = 0; i < workers && sound; i++) {
		worker[i] = fork();
		if (!worker[i]) {
			of[i] = walk_share(i, workers);
			_exit(0);
		}
		sound = worker[i] > 0;
	}
	for (i = 0; i < workers && sound; i++)
		sound = one_ends(worker, workers);
	for (i = 0; i < workers; i++)
		if (worker[i] > 0)
			kill(worker[i], SIGKILL);
	must(sound && "a worker says why not, or could not be had");
	for (i = 0; i < workers; i++) {
		all.scripts += of[i].scripts;
		all.states += of[i].states;
		all.found = of[i].found;
	}
	munmap(of, workers * sizeof(*of));
	return all;
}

/* HC_SEED: that script alone; HC_LOUD: a line for each. */
START_TEST(every_order_of_events)
{
	const char *only = getenv("HC_SEED"), *asked = getenv("HC_WORKERS");
	const long workers = asked ? strtol(asked, NULL, 0) : sysconf(_SC_NPROCESSORS_ONLN);
	struct sum sum;

	if (only) {
		walk_script((uint32_t)strtoul(only, NULL, 0) % SCRIPTS);
		return;
	}
	if (hc_long() && workers > 1)
		sum = walk_all(workers < WORKERS_MAX ? (uint32_t)workers : WORKERS_MAX);
	else
		sum = walk_share(0, 1);
	printf("%u scripts%s, %llu states, all sound\n", sum.scripts, hc_long() ? "" : " of 33216",
	       (unsigned long long)sum.states);
	fflush(stdout);
	must(sum.found == CANONICAL && sum.states > 1000ull * sum.scripts);
	must(!hc_long() || sum.scripts == CANONICAL);
}
END_TEST

/* What canonical() says, tried: by another name, and of owners by other names, it is as large. */
START_TEST(names_decide_nothing)
{
	static const uint32_t every[3] = {1009, 1511, 20011}; /* plain ones, high ones, others */
	static const uint64_t name[OWNERS] = {1, 2, 3}, other[OWNERS] = {1ull << 40, 7, 2};
	uint32_t n, least, kind, met[3] = {0}, pairs = 0;
	uint64_t before[2];

	for (n = 0; n < SCRIPTS; n++) {
		least = canonical(n);
		read_script(n);
		kind = is_plain() ? 0 : is_high() ? 1 : 2;
		if (least == n || ++met[kind] % share(every[kind]))
			continue;
		walk_script(n);
		before[0] = states;
		before[1] = moves;
		memcpy(owner_name, other, sizeof(other));
		walk_script(least);
		memcpy(owner_name, name, sizeof(name));
		must(states == before[0] && moves == before[1]);
		pairs++;
	}
	must(pairs > 1);
}
END_TEST

/* What hash_of() leaves out, tried: from states of one hash all moves lead to the same hashes. */
START_TEST(one_hash_one_future)
{
	uint32_t n, found = 0;

	compares = true;
	for (n = 0; n < SCRIPTS; n++)
		if (canonical(n) == n && found++ % share(11 * SHARE) == 7)
			walk_script(n);
	compares = false;
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, every_order_of_events);
	tcase_add_test(t, names_decide_nothing);
	tcase_add_test(t, one_hash_one_future);
}

/* An assertion of the core does not know which script it was. */
static void on_abort(int signal_number)
{
	(void)signal_number;
	dprintf(STDERR_FILENO, "script %u (HC_SEED)\n", script.number);
}

int main(void)
{
	signal(SIGABRT, on_abort);
	return hc_suite_run("admit_model", add, hc_long() ? 850 : 60);
}
