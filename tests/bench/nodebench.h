/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that talks to other nodes, for benchmarks: on 127.0.0.1, with a key of its own. */
#ifndef HC_BENCH_NODEBENCH_H
#define HC_BENCH_NODEBENCH_H

#include <hcomm/hcomm.h>
#include <hcomm/views.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct nodebench;

/* `options`: more lines of its configuration, or NULL. */
struct nodebench *nodebench_start(uint16_t port, uint32_t interval_ms, int cpu,
				  const char *options);
pid_t nodebench_pid(const struct nodebench *n);
const char *nodebench_socket(const struct nodebench *n);
const char *nodebench_key(const struct nodebench *n);
/* A process that is a crowd of so many nodes, on 127.1.0.1 and up, for as long as it is not killed.
 */
struct crowd_log;
/* The same; `urgent`: it runs before all else, as other machines would. */
pid_t nodebench_crowd_logged(const struct nodebench *n, uint32_t nodes, uint32_t interval_ms,
			     bool urgent, struct crowd_log *log);
pid_t nodebench_crowd(const struct nodebench *n, uint32_t nodes, uint32_t interval_ms, int cpu);
/* Until so many paths are normal; the benchmark ends with a reason after that many seconds. */
void nodebench_wait_paths(const struct nodebench *n, uint32_t paths, uint32_t seconds);
void nodebench_status(const struct nodebench *n, struct hcomm_view_status *out);
void nodebench_nap(uint32_t ms);
void nodebench_stop(struct nodebench *n);

#endif
