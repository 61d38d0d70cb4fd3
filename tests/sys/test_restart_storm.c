/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of creates and ends while the daemon is killed again and again.
 *
 * Eight processes make domains, run operations in them, leave or destroy them, and write down in
 * shared memory what was acknowledged. The daemon is killed at random moments. Each time the
 * database is looked at before the next start: sound, every acknowledged domain in it, every
 * acknowledged end not. Meanwhile no operation fails and no domain is torn down. At last all end
 * their domains, and nothing is left.
 */
#include "dbcheck.h"
#include "ranks.h"
#include "suite.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCS = 8, LIVE = 3, ENTRIES = 65536, WAIT_MS = 60000 };

enum phase { UNKNOWN, CREATED, ENDING, ENDED };

struct entry {
	uint64_t id;
	uint32_t phase;
};

struct ledger { /* of one process */
	uint32_t used, stop;
	uint64_t operations;
	struct entry entry[ENTRIES];
};

static struct hc_node node;
static struct ledger *ledgers;

/* ---- one of the processes ---- */

struct life {
	struct hcomm_session *session;
	struct ledger *ledger;
	unsigned number, made;
	struct {
		hcomm_domain domain;
		struct entry *entry;
	} live[LIVE];
};

static void must(int r, const char *what)
{
	if (r)
		hc_fail("pid %d: %s: %s: %s", (int)getpid(), what, hcomm_error_name(r),
			hcomm_last_error());
}

static void make(struct life *l, unsigned i)
{
	uint32_t devices[2] = {2 * l->number, 2 * l->number + 1};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct entry *e = &l->ledger->entry[l->ledger->used];
	char name[32];

	if (l->ledger->used == ENTRIES)
		hc_fail("more than %d domains", ENTRIES);
	snprintf(name, sizeof(name), "s%u-%u", l->number, l->made++);
	c.name = l->made & 1 ? name : NULL;
	must(hcomm_join_all_local(l->session, devices, 2, &c, WAIT_MS, &l->live[i].domain),
	     "create");
	must(hcomm_status_get(l->live[i].domain, &s), "status");
	e->id = s.id;
	__atomic_store_n(&e->phase, CREATED, __ATOMIC_RELEASE);
	__atomic_store_n(&l->ledger->used, l->ledger->used + 1, __ATOMIC_RELEASE);
	l->live[i].entry = e;
}

static void finish(struct life *l, unsigned i)
{
	struct entry *e = l->live[i].entry;

	__atomic_store_n(&e->phase, ENDING, __ATOMIC_SEQ_CST);
	if (random() & 1)
		must(hcomm_leave(l->live[i].domain, WAIT_MS), "leave");
	else
		must(hcomm_destroy(l->live[i].domain, WAIT_MS), "destroy");
	__atomic_store_n(&e->phase, ENDED, __ATOMIC_RELEASE);
	l->live[i].domain = 0;
}

static void operate(struct life *l, unsigned i)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct hcomm_op op;
	uint32_t rank;

	for (rank = 0; rank < 2; rank++) {
		must(hcomm_op_begin_rank(l->live[i].domain, rank, HCOMM_OP_ALL_REDUCE, 64,
					 HCOMM_OP_NOWAIT, &op),
		     "op_begin");
		must(hcomm_op_end(&op), "op_end");
	}
	l->ledger->operations++;
	must(hcomm_status_get(l->live[i].domain, &s), "status");
	if (s.state != HCOMM_ACTIVE || s.id != l->live[i].entry->id)
		hc_fail("domain %016llx is in state %d: %s", (unsigned long long)s.id,
			(int)s.state, s.cause);
}

static int one_process(void *arg, int in, int out)
{
	static struct life l;
	unsigned i;

	(void)in;
	(void)out;
	l.ledger = arg;
	l.number = (unsigned)(l.ledger - ledgers);
	srandom(l.number + 1);
	must(hcomm_open(NULL, &l.session), "open");
	while (!__atomic_load_n(&l.ledger->stop, __ATOMIC_RELAXED)) {
		i = (unsigned)random() % LIVE;
		if (!l.live[i].domain)
			make(&l, i);
		operate(&l, i);
		if (random() % 4 == 0)
			finish(&l, i);
	}
	for (i = 0; i < LIVE; i++)
		if (l.live[i].domain)
			finish(&l, i);
	hcomm_close(l.session);
	return 0;
}

/* ---- the story ---- */

/* No daemon runs, so nothing is acknowledged that was not before the database was read. */
static void check_stored(unsigned round)
{
	struct hc_dbcheck db;
	unsigned p;
	uint32_t i, used;

	hc_dbcheck_read(&db, &node);
	ck_assert_msg(!strcmp(db.integrity, "ok"), "round %u: %s", round, db.integrity);
	for (p = 0; p < PROCS; p++) {
		used = __atomic_load_n(&ledgers[p].used, __ATOMIC_ACQUIRE);
		for (i = 0; i < used; i++) {
			const struct entry *e = &ledgers[p].entry[i];
			uint32_t phase = __atomic_load_n(&e->phase, __ATOMIC_SEQ_CST);
			bool stored = hc_dbcheck_has(&db, e->id);

			ck_assert_msg(phase != CREATED || stored,
				      "round %u: domain %016llx was acknowledged and is lost", round,
				      (unsigned long long)e->id);
			ck_assert_msg(phase != ENDED || !stored,
				      "round %u: the end of %016llx was acknowledged and is lost",
				      round, (unsigned long long)e->id);
		}
	}
	hc_dbcheck_fini(&db);
}

static bool work_goes_on(void *arg)
{
	const uint64_t *from = arg;
	unsigned p;

	for (p = 0; p < PROCS; p++)
		if (ledgers[p].operations == from[p])
			return false;
	return true;
}

static void pause_ms(long ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000};

	ppoll(NULL, 0, &t, NULL);
}

static bool none_left(void *arg)
{
	struct hcomm_view_status s;

	(void)arg;
	hc_ask_status(&s);
	return !s.domains;
}

START_TEST(storm)
{
	unsigned rounds = hc_long() ? 300 : 15, i, p;
	struct hc_child child[PROCS];
	uint64_t from[PROCS], ops = 0, made = 0;

	ledgers = mmap(NULL, PROCS * sizeof(*ledgers), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(ledgers, MAP_FAILED);
	hc_node_start(&node, 2 * PROCS, NULL);
	for (p = 0; p < PROCS; p++)
		hc_spawn(&child[p], one_process, &ledgers[p]);
	for (i = 0; i < rounds; i++) {
		for (p = 0; p < PROCS; p++)
			from[p] = ledgers[p].operations;
		hc_await("every process works", work_goes_on, from, 30000);
		pause_ms(random() % 150); /* the moment is what is random here */
		hc_node_kill(&node);
		check_stored(i);
		hc_node_run(&node);
	}
	for (p = 0; p < PROCS; p++)
		__atomic_store_n(&ledgers[p].stop, 1, __ATOMIC_RELAXED);
	for (p = 0; p < PROCS; p++) {
		ck_assert_int_eq(hc_child_wait(&child[p], WAIT_MS), 0);
		ops += ledgers[p].operations;
		made += ledgers[p].used;
	}
	hc_await("no domain is left", none_left, NULL, 10000);
	hc_node_stop(&node);
	check_stored(rounds);
	printf("%u kills, %llu domains, %llu operations\n", rounds, (unsigned long long)made,
	       (unsigned long long)ops);
	hc_node_end(&node);
	munmap(ledgers, PROCS * sizeof(*ledgers));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, storm);
}

int main(void)
{
	return hc_suite_run("restart_storm", add, hc_long() ? 800 : 100);
}
