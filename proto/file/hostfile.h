/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfiles: how many ranks each host runs, in the two dialects that launchers use,
 * "name slots=N" and "name:N". A name alone is one rank. "#" begins a comment. An IPv6 address
 * is written in brackets when a count follows its colon: [fd00::1]:4.
 *
 * Ranks are given host by host in file order. Unlike the rank tables these files are not JSON,
 * so they are read line by line; a fault gives the line.
 */
#ifndef HC_HOSTFILE_H
#define HC_HOSTFILE_H

#include "jsonfile.h"

struct hc_host {
	const char *name;
	uint32_t ranks;
};

struct hc_hostfile {
	uint32_t nhosts, nranks;
	struct hc_host *hosts;
};

/* As hc_ranktable_read. */
int hc_hostfile_read(const struct hc_jsontext *in, struct hc_hostfile **hosts,
		     struct hc_verdict *v);
void hc_hostfile_free(struct hc_hostfile *hosts);

#endif
