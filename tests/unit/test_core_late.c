/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that comes late, with another table than those who have formed its domain.
 *
 * A name is of one domain of its owner on a node, so this rank would wait in vain. It is refused
 * at once and told where the tables differ; those who have formed notice nothing. What may come
 * about still waits as ever: a job that forms anew under the same name, from whatever node.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t, other;
static struct world_client *member[5];

static struct world_client *client(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* In `tab` the rank is that device of that node. */
static void put(struct world_table *tab, uint32_t rank, uint32_t node, uint32_t device)
{
	tab->ranks[rank].server = node;
	tab->ranks[rank].device = device;
	tab->ranks[rank].addr = (struct hc_addr){
		.family = 4, .bytes = {192, 0, 2, (uint8_t)(node * 64 + device + 1)}};
	if (rank >= tab->roster.nranks)
		tab->roster.nranks = rank + 1;
	world_table_seal(tab);
}

static void join(struct world_client *cl, const struct world_table *tab, uint32_t rank,
		 const char *name)
{
	w.opt.name = name;
	world_join_table(&w, cl, tab, rank);
}

/* Ranks 0, 2 on node a, 1, 3 on node b; pids 100 to 103. `other` is the same table still. */
static void form(const char *name)
{
	uint32_t i;

	world_start(&w, 3);
	world_table(&t, 4, 2);
	for (i = 0; i < 4; i++) {
		member[i] = client(i % 2, 100 + i);
		join(member[i], &t, i, name);
	}
	for (i = 0; i < 4; i++)
		ck_assert(!member[i]->code && member[i]->id == member[0]->id);
	world_forget(&w);
	other = t;
	other.roster.ranks = other.ranks;
	other.roster.servers = other.servers;
}

/* The domain runs on as if nobody had come. */
static void undisturbed(void)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(world_record(&w, i, member[0]->id)->state,
				  HC_W_domain_state_ACTIVE);
}

static void end(void)
{
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

/* ---- refused at once ---- */

#define TAKEN "refused EXISTS: name train is taken by domain #1 of the same owner, which is ACTIVE"

START_TEST(another_entry)
{
	form("train");
	put(&other, 3, 1, 5);
	join(client(1, 200), &other, 3, "train");
	ck_transcript(&w, "[    0ms] b 200 rank 3: " TAKEN
			  ", with process 103 on node b as rank 3; its ranks had another table; "
			  "the first that differs is rank 3: 192.0.2.66, device 1 of server b "
			  "against 192.0.2.70, device 5 of server b\n");
	undisturbed();
	end();
}
END_TEST

/* The home has never seen that table; it knows the entry of the one who came. */
START_TEST(another_entry_from_afar)
{
	form("train");
	other.roster.nservers = 3;
	other.servers[2].name = "c";
	put(&other, 3, 2, 0);
	join(client(2, 200), &other, 3, "train");
	ck_transcript(&w, "[    0ms] c 200 rank 3: " TAKEN
			  "; its ranks had another table; they differ in rank 3: 192.0.2.66, "
			  "device 1 of server b against device 0 there\n");
	undisturbed();
	end();
}
END_TEST

START_TEST(one_rank_more)
{
	const uint32_t node = _i ? 1 : 0;

	form("train");
	put(&other, 4, node, 6);
	join(client(node, 200), &other, 4, "train");
	if (node)
		ck_transcript(&w, "[    0ms] b 200 rank 4: " TAKEN
				  "; its ranks had another table; they differ in the number of "
				  "ranks: 4 against 5\n");
	else
		ck_transcript(&w, "[    0ms] a 200 rank 4: " TAKEN
				  "; its ranks had another table; they differ in the number of "
				  "ranks: 4 against 5\n");
	undisturbed();
	end();
}
END_TEST

/* The home that its table says has never heard of the name. */
START_TEST(another_home)
{
	form("train");
	put(&other, 0, 1, 7);
	put(&other, 3, 1, 6);
	join(client(1, 200), &other, 3, "train");
	ck_transcript(&w, "[    0ms] b 200 rank 3: " TAKEN
			  ", with process 103 on node b as rank 3; its ranks had another table; "
			  "the first that differs is rank 0: 192.0.2.1, device 0 of server a "
			  "against 192.0.2.72, device 7 of server b\n");
	undisturbed();
	end();
}
END_TEST

/* While it still forms it is a matter of all, and said with the same words. */
START_TEST(before_they_have_formed)
{
	struct world_client *late;

	world_start(&w, 2);
	w.show = SHOW_REPLIES;
	world_table(&t, 2, 2);
	other = t;
	other.roster.ranks = other.ranks;
	other.roster.servers = other.servers;
	put(&other, 1, 1, 5);
	member[0] = client(0, 100);
	late = client(1, 101);
	join(member[0], &t, 0, "train");
	join(late, &other, 1, "train");
#define DIFFER                                                                                     \
	": refused MISMATCH: the ranks have different tables or member lists: rank 0 (pid 100 on " \
	"node a) has #1, rank 1 (pid 101 on node b) has #2; they differ in rank 1: 192.0.2.65, "   \
	"device 0 of server b against device 5 there\n"
	ck_transcript(&w, "[    0ms] a 100 rank 0" DIFFER "[    0ms] b 101 rank 1" DIFFER);
	end();
}
END_TEST

/* ---- what waits, and forms ---- */

/* All come again, with one rank more and from another home, before and after they left. */
START_TEST(a_job_that_grows)
{
	struct world_client *fifth;
	uint32_t i;

	form("train");
	put(&other, 0, 1, 7);
	put(&other, 4, 1, 6);
	fifth = client(1, 200);
	w.show |= SHOW_LOG;
	join(fifth, &other, 4, "train");
	ck_transcript(&w, "[    0ms] b log: train: forms with rank 4; domain #1 (ACTIVE) has that "
			  "name and another table; the first that differs is rank 0: 192.0.2.1, "
			  "device 0 of server a against 192.0.2.72, device 7 of server b\n");
	ck_assert(world_waits(fifth));
	undisturbed();
	for (i = 0; i < 4; i++)
		world_leave(&w, member[i], member[i]->id, i);
	member[0] = client(1, 300);
	for (i = 0; i < 4; i++)
		join(member[i], &other, i, "train");
	for (i = 0; i < 4; i++)
		ck_assert(!member[i]->code && member[i]->id == fifth->id);
	ck_assert_int_eq(fifth->code, 0);
	end();
}
END_TEST

/* They do not come: it is told where they are. */
START_TEST(nobody_comes)
{
	struct world_client *fifth;

	form("train");
	put(&other, 0, 1, 7);
	put(&other, 4, 1, 6);
	w.show = SHOW_REPLIES;
	fifth = client(1, 200);
	w.opt.timeout_ms = 5000;
	join(fifth, &other, 4, "train");
	world_advance(&w, 5001);
	ck_transcript(&w, "[ 5000ms] b 200 rank 4: refused TIMEOUT: train: no sign of rank 0 "
			  "(192.0.2.72, device 7), 1 (192.0.2.65, device 0), 2 (192.0.2.2, device "
			  "1), 3 (192.0.2.66, device 1) (4 of 5 missing) within 5.0 s (limit of "
			  "the call or HCOMM_TIMEOUT_SEC); domain #1 (ACTIVE) has that name and "
			  "another table; the first that differs is rank 0: 192.0.2.1, device 0 of "
			  "server a against 192.0.2.72, device 7 of server b\n");
	undisturbed();
	end();
}
END_TEST

/* One of the old ones has died: they are over, whatever its home says by now. */
START_TEST(after_a_death)
{
	struct world_client *fresh;

	form("train");
	world_die(&w, member[1]);
	put(&other, 0, 1, 7);
	put(&other, 3, 1, 6);
	fresh = client(1, 200);
	join(fresh, &other, 3, "train");
	ck_assert(world_waits(fresh));
	end();
}
END_TEST

/* Without a name another table is another domain. */
START_TEST(tables_without_a_name)
{
	struct world_client *fresh;

	form("");
	put(&other, 3, 1, 6);
	fresh = client(1, 200);
	join(fresh, &other, 3, "");
	ck_assert(world_waits(fresh));
	join(member[0], &other, 0, "");
	join(member[1], &other, 1, "");
	join(member[2], &other, 2, "");
	ck_assert_int_eq(fresh->code, 0);
	ck_assert(fresh->id && fresh->id == member[0]->id);
	end();
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, another_entry);
	tcase_add_test(tc, another_entry_from_afar);
	tcase_add_loop_test(tc, one_rank_more, 0, 2);
	tcase_add_test(tc, another_home);
	tcase_add_test(tc, before_they_have_formed);
	tcase_add_test(tc, a_job_that_grows);
	tcase_add_test(tc, nobody_comes);
	tcase_add_test(tc, after_a_death);
	tcase_add_test(tc, tables_without_a_name);
}

int main(void)
{
	return hc_suite_run("core_late", add, 30);
}
