/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that one hcommd holds: the parts are made in order of need and end in reverse.
 *
 * Shared by main.c (start and stop), views.c (answers that the shell gives) and reload.c.
 */
#ifndef HC_SHELL_H
#define HC_SHELL_H

#include "conffile.h"
#include "datagram.h"
#include "devices.h"
#include "ident.h"
#include "links.h"
#include "loop.h"
#include "peersock.h"
#include "sd.h"
#include "sock.h"
#include "worker.h"

struct hc_shell {
	struct hc_conf_source source; /* where the configuration comes from, also at a reload */
	struct hc_conf conf;
	struct hc_devices devices;
	struct hc_link_facts links;
	struct hc_self self;
	struct hc_db_start begun;
	struct hc_limits limits;
	struct hc_caller_rules rules;
	char boot_id[HC_BOOT_BYTES];

	int lock_fd;
	struct event_base *base;
	struct hc_worker *worker;
	struct hc_store *store;
	struct hc_pages *pages;
	struct hc_registers *registers;
	struct hc_loop *loop;
	struct hc_loopnet *net; /* NULL: alone */
	struct hc_peers_socks socks;
	uint8_t key[HC_KEY_BYTES]; /* of the cluster, until `net` is made */
	struct hc_ctl *ctl;
	struct hc_sock sock;
	struct hc_sd_fds fds; /* what the service manager passed */

	uint64_t started_ns;
	uint32_t generation; /* of the configuration, for the pages of its view */
	bool reloading, storage_lost, stopping;
	unsigned
		storage_slow_s; /* the disk is at one thing for so long, and that was told; 0: no */
	char reload_failed[1600]; /* when and why; empty: the last reload was well */
	int exit_status;
};

/* The core's part of a configuration. */
void hc_shell_settings(const struct hc_shell *sh, const struct hc_conf *c, struct hc_settings *set);
/* What is missing or wrong now, in words; empty: nothing. True: enough to be called degraded. */
bool hc_shell_remark(const struct hc_shell *sh, const struct hc_core_counts *core,
		     const struct hc_store_state *st, char *out, size_t size);
/* Seconds that the store is at one thing, when that is too long; else 0. */
unsigned hc_shell_slow_s(const struct hc_store_state *st);
void hc_shell_tell_manager(struct hc_shell *sh, bool ready);

#endif
