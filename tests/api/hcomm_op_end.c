/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_op_end: by any thread, once.
 */
#include "apitest.h"

#include <pthread.h>

static void *end_it(void *arg)
{
	works(hcomm_op_end(arg));
	return NULL;
}

START_TEST(another_thread_may_return_it)
{
	struct hcomm_session *s = NULL;
	struct hcomm_op op[20];
	pthread_t threads[20];
	struct hc_node n;
	hcomm_domain d;
	int i;

	hc_node_start(&n, 1, NULL);
	form(&s, &d, 1, NULL);
	for (i = 0; i < 20; i++) {
		works(hcomm_op_begin(d, HCOMM_OP_ALL_GATHER, 1, 0, &op[i]));
		ck_assert_int_eq(pthread_create(&threads[i], NULL, end_it, &op[i]), 0);
	}
	for (i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	works(hcomm_leave(d, 2000)); /* the daemon, too, counts none left */
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

static void *begin_and_end(void *arg)
{
	struct hcomm_op op;
	int i;

	for (i = 0; i < 20000; i++) {
		works(hcomm_op_begin(*(hcomm_domain *)arg, HCOMM_OP_SEND, 1, 0, &op));
		works(hcomm_op_end(&op));
	}
	return NULL;
}

/* Domains are many, and op_begin of one belongs to one thread at a time: a thread for each. */
START_TEST(threads_in_different_domains_do_not_disturb_each_other)
{
	struct hcomm_session *s[4] = {0};
	pthread_t threads[4];
	hcomm_domain d[4];
	struct hc_node n;
	int i;

	hc_node_start(&n, 4, NULL);
	form(s, d, 4, NULL);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, begin_and_end, &d[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 4; i++)
		works(hcomm_leave(d[i], 5000));
	close_all(s, 4);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_op op, none = {{0, 0}};
	hcomm_domain d;

	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	works(hcomm_op_end(&op));
	refused(hcomm_op_end(&op), HCOMM_E_INVALID, "returned already");
	refused(hcomm_op_end(&none), HCOMM_E_INVALID, "returned already");
	refused(hcomm_op_end(NULL), HCOMM_E_INVALID, "op is NULL");
	none.private_[0] = UINT64_MAX;
	refused(hcomm_op_end(&none), HCOMM_E_GONE, "handle");
	none.private_[0] = d; /* a seat that is not there */
	none.private_[1] = 0xfffc;
	refused(hcomm_op_end(&none), HCOMM_E_INVALID, "damaged");
	works(hcomm_leave(d, 0));
}
END_TEST

TESTS("hcomm_op_end", another_thread_may_return_it,
      threads_in_different_domains_do_not_disturb_each_other, refusals)
