/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl perf: what its three files share.
 *
 * perf.c makes the domain and the channel, perfrun.c measures over it, perfshow.c prints.
 */
#ifndef HC_CTL_PERF_H
#define HC_CTL_PERF_H

#include "ctl.h"

#define PERF_SIZES_MAX 32
#define PERF_COUNT_MAX 1000000

struct perf_row { /* of one message size; nanoseconds */
	uint32_t bytes, count;
	uint64_t min, sum, p50, p99, max; /* of round trips */
	uint64_t stream; /* `count` messages one way, until the last was heard of */
};

struct perf {
	struct ctl *c;
	const char *name;
	hcomm_domain domain;
	hcomm_channel channel;
	struct hcomm_status is;
	struct hcomm_channel_info info;
	uint32_t sizes[PERF_SIZES_MAX], nsizes, iterations; /* 0: as many as each size deserves */
	struct perf_row rows[PERF_SIZES_MAX];
	uint32_t nrows;
	uint64_t served; /* messages that the server answered or took */
};

/* ---- perfrun.c ---- */
/* All sizes. An exit status, and said why. */
int perf_measure(struct perf *p);
/* Answer until the client says that it was the last. */
int perf_serve(struct perf *p);

/* ---- perfshow.c ---- */
/* Are the columns of -o known? False: said why. */
bool perf_columns(const struct ctl *c);
int perf_show(const struct perf *p);
void perf_show_server(const struct perf *p);
/* A line that the next one replaces, on a terminal alone; NULL takes it away. */
void perf_progress(const struct perf *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
