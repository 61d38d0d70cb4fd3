/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for calls that may take long: parsing large tables, reading files at a reload.
 *
 * A job is a struct of the caller's that begins with struct hc_job. `run` is called in the worker
 * thread, `done` in the main thread; between submit and done the job belongs to the worker. Jobs
 * run in the order they came.
 */
#ifndef HC_WORKER_H
#define HC_WORKER_H

#include <stdbool.h>
#include <event2/event.h>

struct hc_job {
	struct hc_job *next;
	void (*run)(struct hc_job *job);
	void (*done)(struct hc_job *job);
};

struct hc_worker;

/* 0, or a negative errno. `done` is called from `base`. */
int hc_worker_start(struct event_base *base, struct hc_worker **worker);
void hc_worker_submit(struct hc_worker *worker, struct hc_job *job);
/* Gives jobs that wait to their `done` without a run. False: one is running, nothing is freed, and
 * the process should end without waiting for it. NULL is fine. */
bool hc_worker_stop(struct hc_worker *worker);

#endif
