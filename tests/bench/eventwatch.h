/* SPDX-License-Identifier: Apache-2.0 */
/* A client that listens to all that a daemon says, with the time at which it heard it. */
#ifndef HC_BENCH_EVENTWATCH_H
#define HC_BENCH_EVENTWATCH_H

#include <hcomm/hcomm.h>
#include <stdbool.h>
#include <stdint.h>

struct eventwatch;
/* `at_ns`: CLOCK_MONOTONIC, in the client when it was called. */
typedef void (*eventwatch_fn)(const struct hcomm_event *e, uint64_t at_ns, void *arg);

struct eventwatch *eventwatch_open(const char *socket, eventwatch_fn fn, void *arg);
/* Calls the function for what comes until then; for what is there when that is past. */
void eventwatch_run(struct eventwatch *w, uint64_t until_ns);
/* The same; ends sooner when *done became true. */
void eventwatch_until(struct eventwatch *w, uint64_t until_ns, const bool *done);
void eventwatch_close(struct eventwatch *w);

#endif
