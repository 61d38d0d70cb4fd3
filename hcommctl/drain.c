/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl drain: take no new domains, wait until those there are have ended.
 *
 * The daemon does the waiting and answers once: all are over, drain_timeout_s is up, or another
 * drain ended this wait. So a drain by a script, by the unit at shutdown and by an operator are one
 * call. On a terminal a thread beside it asks for the status twice a second and shows what is
 * left; the library lets two threads ask on one session.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <hcomm/views.h>
#include "ctl.h"

#define ANSWER_BYTES 1024
#define LIMIT_MS     3605000 /* above the highest drain_timeout_s */
#define SHOW_NS      500000000L

struct progress {
	struct hcomm_session *session;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool runs, end, shown;
};

static int show_row(const void *row, void *arg)
{
	const struct hcomm_view_status *s = row;
	struct progress *p = arg;

	fprintf(stderr, "\r\033[Kdraining: %s", s->drain);
	p->shown = true;
	return 0;
}

static bool wait_a_little(struct progress *p)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SHOW_NS;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&p->lock);
	while (!p->end && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&p->wake, &p->lock, &until);
	r = p->end;
	pthread_mutex_unlock(&p->lock);
	return !r;
}

static void *show(void *arg)
{
	struct progress *p = arg;

	while (wait_a_little(p))
		hcomm_query(p->session, HCOMM_VIEW_STATUS, NULL, show_row, p);
	return NULL;
}

static void progress_begin(struct progress *p, struct hcomm_session *session)
{
	memset(p, 0, sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->session = session;
	p->runs = isatty(STDERR_FILENO) && !pthread_create(&p->thread, NULL, show, p);
}

static void progress_end(struct progress *p)
{
	if (p->runs) {
		pthread_mutex_lock(&p->lock);
		p->end = true;
		pthread_cond_signal(&p->wake);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
	}
	if (p->shown)
		fprintf(stderr, "\r\033[K");
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

int ctl_drain(struct ctl *c, int argc, char **argv)
{
	const char *off = ctl_opt(c, "off") ? "off" : "";
	char answer[ANSWER_BYTES] = "";
	struct progress progress;
	int r = ctl_open(c);

	(void)argc;
	(void)argv;
	if (r)
		return r;
	progress_begin(&progress, c->session);
	r = hcomm_admin(c->session, "drain", off, c->timeout_ms > 0 ? c->timeout_ms : LIMIT_MS,
			answer, sizeof(answer));
	progress_end(&progress);
	if (r)
		return ctl_fail(r, "drain");
	puts(answer);
	return CTL_OK;
}
