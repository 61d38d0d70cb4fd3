/* SPDX-License-Identifier: Apache-2.0 */
/* The worker thread; see worker.h. An eventfd carries "something is done" to the main loop. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core.h"
#include "worker.h"

struct jobs {
	struct hc_job *first, **last;
};

struct hc_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct jobs waiting, ready;
	bool stop, busy;
	int fd;
	struct event *event;
};

static void jobs_init(struct jobs *j)
{
	j->first = NULL;
	j->last = &j->first;
}

static void jobs_put(struct jobs *j, struct hc_job *job)
{
	job->next = NULL;
	*j->last = job;
	j->last = &job->next;
}

static struct hc_job *jobs_take(struct jobs *j)
{
	struct hc_job *job = j->first;

	if (!job)
		return NULL;
	j->first = job->next;
	if (!j->first)
		j->last = &j->first;
	return job;
}

static void tell_main(struct hc_worker *w)
{
	uint64_t one = 1;

	if (write(w->fd, &one, sizeof(one)) < 0)
		hc_assert(errno == EAGAIN); /* the counter is full: it was told */
}

/* By whatever: jobs would wait for ever, and nobody be told. */
static void ended(void *arg)
{
	(void)arg;
	hc_panic(__FILE__, __LINE__, "the worker thread has ended");
}

static void *work(void *arg)
{
	struct hc_worker *w = arg;
	struct hc_job *job;

	pthread_cleanup_push(ended, NULL);
	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		job = jobs_take(&w->waiting);
		if (!job) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		w->busy = true;
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
		w->busy = false;
		jobs_put(&w->ready, job);
		tell_main(w);
	}
	pthread_mutex_unlock(&w->lock);
	pthread_cleanup_pop(0);
	return NULL;
}

static void deliver(struct hc_worker *w)
{
	struct hc_job *job;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		job = jobs_take(&w->ready);
		pthread_mutex_unlock(&w->lock);
		if (!job)
			return;
		job->done(job);
	}
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		hc_assert(errno == EAGAIN || errno == EINTR);
	deliver(arg);
}

int hc_worker_start(struct event_base *base, struct hc_worker **worker)
{
	struct hc_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	jobs_init(&w->waiting);
	jobs_init(&w->ready);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd >= 0)
		w->event = event_new(base, w->fd, EV_READ | EV_PERSIST, on_ready, w);
	if (!w->event || event_add(w->event, NULL)) {
		r = w->fd < 0 ? -errno : -ENOMEM;
		goto fail;
	}
	r = -pthread_create(&w->thread, NULL, work, w);
	if (r)
		goto fail;
	*worker = w;
	return 0;
fail:
	if (w->event)
		event_free(w->event);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
	return r;
}

void hc_worker_submit(struct hc_worker *w, struct hc_job *job)
{
	pthread_mutex_lock(&w->lock);
	jobs_put(&w->waiting, job);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

bool hc_worker_stop(struct hc_worker *w)
{
	struct hc_job *job;
	bool busy;

	if (!w)
		return true;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	busy = w->busy;
	while ((job = jobs_take(&w->waiting)))
		jobs_put(&w->ready, job);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	deliver(w);
	if (busy)
		return false;
	pthread_join(w->thread, NULL);
	deliver(w);
	event_free(w->event);
	close(w->fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return true;
}
