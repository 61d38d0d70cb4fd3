/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_attach: a rank's process comes to a domain that an agent made; and a process comes back.
 */
#include "apitest.h"
#include "failing.h"

static uint64_t make(struct hcomm_session *s, const char *name, uint32_t nranks)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	uint64_t id;
	uint32_t i;

	c.name = name;
	works(hcomm_create(s, nranks, &c, &id));
	for (i = 0; i < nranks; i++)
		works(hcomm_add_device(s, id, i, i));
	works(hcomm_activate(s, id, 5000));
	return id;
}

START_TEST(by_name_and_by_id)
{
	struct hcomm_session *s;
	struct hcomm_op op;
	hcomm_domain a, b;
	struct hc_node n;
	char text[20];
	uint64_t id;
	uint32_t v;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	id = make(s, "staged", 2);
	works(hcomm_attach(s, "staged", 0, NULL, 5000, &a));
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)id);
	works(hcomm_attach(s, text, 1, NULL, 5000, &b));
	ck_assert_uint_eq(id_of(a), id);
	works(hcomm_rank(b, &v));
	ck_assert_uint_eq(v, 1);
	works(hcomm_op_begin(a, HCOMM_OP_BROADCAST, 1, 0, &op));
	works(hcomm_op_end(&op));
	refused(hcomm_attach(s, "staged", 2, NULL, 1000, &a), HCOMM_E_NOT_FOUND, "rank 2");
	refused(hcomm_attach(s, "nobody", 0, NULL, 1000, &a), HCOMM_E_NOT_FOUND, "no such domain");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

/* The session alone is lost: the domain asks to be taken back in the new arena. */
static bool closing(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_attach m;
	uint64_t *seen = arg;

	if (f->head.type == HC_MSG_subscribe)
		return false; /* the connection ends */
	if (f->head.type == HC_MSG_attach) {
		hc_want(!hc_decode(&hc_desc_attach, 1, f->body, f->body_len, &m));
		hc_want(m.rank == 1 && m.epoch == 1);
		if (m.id == 0x1001)
			return fake_joined(c, f, 0x1001, 2, 1, 1);
		return fake_error(c, f, HC_E_GONE, "it was destroyed", HC_NONE);
	}
	/* what the arena of this connection counts */
	if (f->head.type == HC_MSG_ping && c->number > 1) {
		struct hc_page_block *b = &c->arena[1];
		unsigned i;

		seen[0] = b->head.begun;
		seen[1] = b->shared.begins[1];
		seen[2] = b->shared.ends[1];
		for (i = 0; i < HC_BLOCK_LINES; i++) {
			seen[1] += b->line[i].begins[1];
			seen[2] += b->line[i].ends[1];
		}
	}
	return fake_good(c, f, got, NULL);
}

START_TEST(the_counters_go_over_to_the_new_arena)
{
	uint64_t *seen =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hcomm_root_info info;
	struct hcomm_op op[3], late;
	struct hcomm_session *s;
	struct fake f = {0};
	hcomm_domain d, other;
	int i;

	fake_start(&f, closing, seen);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &info));
	works(hcomm_join(s, &info, 2, 1, 0, NULL, 5000, &d));
	works(hcomm_join(s, &info, 2, 1, 0, NULL, 5000, &other));
	for (i = 0; i < 3; i++)
		works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op[i]));
	works(hcomm_op_end(&op[0]));
	works(hcomm_op_begin(other, HCOMM_OP_ALL_REDUCE, 1, 0, &late));
	refused(hcomm_subscribe(s, 0, 1), HCOMM_E_PEER_CLOSED, "connects again");
	works(hcomm_ping(s, 5000));
	works(hcomm_op_end(&op[1]));
	works(hcomm_ping(s, 5000));
	ck_assert_uint_eq(seen[0], 3);
	ck_assert_uint_eq(seen[1], 3);
	ck_assert_uint_eq(seen[2], 2);
	works(hcomm_op_end(&op[2]));
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op[0]));
	/* the other one was refused: it has ended */
	refused(hcomm_op_begin(other, HCOMM_OP_ALL_REDUCE, 1, 0, &op[1]), HCOMM_E_GONE, "ended");
	refused(hcomm_op_end(&late), HCOMM_E_GONE, "handle");
	works(hcomm_leave(other, 1000));
	hcomm_close(s);
	fake_end(&f);
	munmap(seen, 4096);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	char name[140];
	hcomm_domain d;

	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	refused(hcomm_attach(NULL, "x", 0, NULL, 1, &d), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_attach(s, NULL, 0, NULL, 1, &d), HCOMM_E_INVALID, "name is empty");
	refused(hcomm_attach(s, "", 0, NULL, 1, &d), HCOMM_E_INVALID, "name is empty");
	refused(hcomm_attach(s, name, 0, NULL, 1, &d), HCOMM_E_INVALID, "too long");
	refused(hcomm_attach(s, "x", 0, NULL, 1, NULL), HCOMM_E_INVALID, "domain is NULL");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_attach", by_name_and_by_id, the_counters_go_over_to_the_new_arena, refusals)
