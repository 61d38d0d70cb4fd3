/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network to break, and a machine to load, for benchmarks of what daemons say of each other.
 *
 * Network namespaces with rules of nftables of their own: nothing of the machine's is touched, and
 * all of it ends with the benchmark. Wants root, `ip` and `nft`. A process that is started is in
 * the namespace that its parent is in, so one enters, starts, and goes back.
 *
 * And FRR's bfdd, the peer that does the same on routers: it is started without the rest of FRR,
 * and says what it sees in its log, which comes through a pipe.
 */
#ifndef HC_BENCH_BED_H
#define HC_BENCH_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Into a namespace of its own; false: not root, and the line that says so (skipped) is printed. */
bool bed_begin(const char *bench);
/* A further one, with its loopback up; the caller stays where it is. */
int bed_netns(void);
/* That of bed_begin. */
int bed_home(void);
void bed_enter(int netns);
/* `link` is made in the namespace that the caller is in, its other end in `netns`. */
void bed_veth(const char *link, const char *end, int netns);

/* Commands of nft, where the caller is. */
void bed_nft(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A running nft of where the caller is now: commands take effect at once and cost no new process.
 */
struct bed_rules;
struct bed_rules *bed_rules_open(void);
void bed_rules_say(struct bed_rules *r, const char *commands);
void bed_rules_close(struct bed_rules *r);
/* Here that share of all UDP to these ports gets lost. `ports`: as nft wants them. */
void bed_loss(unsigned percent, const char *ports);
/* How many packets the rules of bed_loss have dropped. */
uint64_t bed_lost(void);
void bed_no_rules(void);
/* Datagrams that found a full buffer, here. */
uint64_t bed_overflows(void);

/* So many loops that only burn time, at the usual priority, on all processors. */
void bed_busy(unsigned loops);
void bed_idle(void);

/* ---- FRR ---- */

struct bed_bfdd {
	pid_t pid;
	int log; /* what it says, does not block */
	char line[1024];
	size_t used;
};

bool bed_bfdd_installed(void);
/* Where the caller is; `peers`: lines of its configuration within "bfd". */
void bed_bfdd_start(struct bed_bfdd *b, const char *name, unsigned interval_ms, const char *peers);
/* The next line of its log, or NULL: none is there now. */
const char *bed_bfdd_line(struct bed_bfdd *b);
void bed_bfdd_stop(struct bed_bfdd *b);
/* Before all else that runs, as another machine's would. */
void bed_urgent(pid_t pid);

#endif
