/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer of a channel: a request and its response of the same bytes over libqb's IPC in shared
 * memory, which corosync and pacemaker use.
 *
 *	qb_echo CLIENT-CPU SERVER-CPU BYTES TURNS
 *
 * The server is a child process with libqb's own loop. Prints the median of a round trip in
 * microseconds.
 */
#define _GNU_SOURCE
#include <qb/qbipcc.h>
#include <qb/qbipcs.h>
#include <qb/qbloop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 500, BATCH = 100, MESSAGE_MAX = 8192 };

struct request {
	struct qb_ipc_request_header head;
	char data[1024];
};

struct response {
	struct qb_ipc_response_header head;
	char data[1024];
};

static qb_loop_t *loop;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int32_t job_add(enum qb_loop_priority p, void *data, qb_loop_job_dispatch_fn fn)
{
	return qb_loop_job_add(loop, p, data, fn);
}

static int32_t poll_add(enum qb_loop_priority p, int32_t fd, int32_t events, void *data,
			qb_ipcs_dispatch_fn_t fn)
{
	return qb_loop_poll_add(loop, p, fd, events, data, fn);
}

static int32_t poll_mod(enum qb_loop_priority p, int32_t fd, int32_t events, void *data,
			qb_ipcs_dispatch_fn_t fn)
{
	return qb_loop_poll_mod(loop, p, fd, events, data, fn);
}

static int32_t poll_del(int32_t fd)
{
	return qb_loop_poll_del(loop, fd);
}

static int32_t on_accept(qb_ipcs_connection_t *c, uid_t uid, gid_t gid)
{
	(void)c;
	(void)uid;
	(void)gid;
	return 0;
}

static int32_t on_message(qb_ipcs_connection_t *c, void *data, size_t size)
{
	const struct request *q = data;
	struct response r;
	size_t bytes = (size_t)q->head.size - sizeof(q->head);

	(void)size;
	r.head.id = q->head.id;
	r.head.error = 0;
	r.head.size = (int32_t)(sizeof(r.head) + bytes);
	memcpy(r.data, q->data, bytes);
	qb_ipcs_response_send(c, &r, (size_t)r.head.size);
	return 0;
}

/* Its files are removed by this end alone. */
static void on_destroyed(qb_ipcs_connection_t *c)
{
	(void)c;
	qb_loop_stop(loop);
}

static int serve(const char *name)
{
	struct qb_ipcs_service_handlers h = {.connection_accept = on_accept,
					     .connection_destroyed = on_destroyed,
					     .msg_process = on_message};
	struct qb_ipcs_poll_handlers p = {.job_add = job_add,
					  .dispatch_add = poll_add,
					  .dispatch_mod = poll_mod,
					  .dispatch_del = poll_del};
	qb_ipcs_service_t *s = qb_ipcs_create(name, 0, QB_IPC_SHM, &h);

	loop = qb_loop_create();
	qb_ipcs_poll_handlers_set(s, &p);
	if (qb_ipcs_run(s))
		return 1;
	qb_loop_run(loop);
	qb_ipcs_destroy(s);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void turns(qb_ipcc_connection_t *c, size_t bytes, int count)
{
	struct request q = {{1, (int32_t)(sizeof(q.head) + bytes)}, {0}};
	struct iovec iov = {&q, (size_t)q.head.size};
	struct response r;

	while (count--)
		if (qb_ipcc_sendv_recv(c, &iov, 1, &r, sizeof(r), -1) < 0)
			exit(1);
}

int main(int argc, char **argv)
{
	qb_ipcc_connection_t *c = NULL;
	int i, n = argc == 5 ? atoi(argv[4]) / BATCH : 0;
	double *v = calloc((size_t)n + 1, sizeof(*v)), start;
	char name[64];
	pid_t pid;

	if (!n)
		return 2;
	snprintf(name, sizeof(name), "hcb-%d", (int)getpid());
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(atoi(argv[2]));
		_exit(serve(name));
	}
	pin(atoi(argv[1]));
	for (i = 0; !c && i < 500; i++) {
		c = qb_ipcc_connect(name, MESSAGE_MAX);
		if (!c)
			usleep(10000);
	}
	if (!c)
		return 1;
	turns(c, (size_t)atoi(argv[3]), WARM_UP);
	for (i = 0; i < n; i++) {
		start = now_us();
		turns(c, (size_t)atoi(argv[3]), BATCH);
		v[i] = (now_us() - start) / BATCH;
	}
	qsort(v, (size_t)n, sizeof(*v), by_value);
	printf("%.3f\n", v[n / 2]);
	qb_ipcc_disconnect(c);
	for (i = 0; i < 500; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return 0;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	return 0;
}
