/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks of a rank's death have in common: those who wait, and who is killed. */
#ifndef HC_BENCH_DEATHS_H
#define HC_BENCH_DEATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Has that struct hc_child gone to sleep, waiting? */
bool deaths_sleeps(void *child);
/* In memory. */
size_t deaths_pages(pid_t pid);

/* For hc_spawn: tells when each byte came that it is told. */
_Noreturn int deaths_listener(void *arg, int in, int out);
/* Tells a byte when it has as many pages as the size_t at arg says, and waits to be killed. */
int deaths_victim(void *arg, int in, int out);

#endif
