/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may say which request, as the tests want it; see rights.tbl.h for what the daemon does.
 *
 * The owner is the process that holds the rank. The administrator is of another uid. Joining by
 * the owner's root info, and taking a rank of its created domain, are for its own uid alone.
 */
#ifndef HC_WHOMAY_H
#define HC_WHOMAY_H

#include "wire.h"

enum who { STRANGER, OTHER, OWNER, ADMIN, WHO };

/* Requests that end the domain stand last. */
static const struct {
	uint16_t type;
	bool may[WHO];
} list[] = {
	{HC_MSG_hello, {0, 1, 1, 1}},
	{HC_MSG_ping, {0, 1, 1, 1}},
	{HC_MSG_carry, {0, 1, 1, 1}},
	{HC_MSG_root_info, {0, 1, 1, 1}},
	{HC_MSG_join_root, {0, 0, 1, 0}},
	{HC_MSG_join_table, {0, 1, 1, 1}},
	{HC_MSG_join_local, {0, 1, 1, 1}},
	{HC_MSG_create, {0, 1, 1, 1}},
	{HC_MSG_add_device, {0, 0, 1, 1}},
	{HC_MSG_activate, {0, 0, 1, 1}},
	{HC_MSG_attach, {0, 0, 1, 0}},
	{HC_MSG_sub, {0, 0, 1, 0}},
	{HC_MSG_split, {0, 0, 1, 0}},
	{HC_MSG_batch, {0, 0, 1, 0}},
	{HC_MSG_status, {0, 1, 1, 1}},
	{HC_MSG_ops_ended, {0, 1, 1, 1}},
	{HC_MSG_subscribe, {0, 1, 1, 1}},
	{HC_MSG_sync_open, {0, 0, 1, 0}},
	{HC_MSG_sync_have, {0, 0, 1, 0}},
	{HC_MSG_put, {0, 0, 1, 0}},
	{HC_MSG_get, {0, 0, 1, 0}},
	{HC_MSG_fence, {0, 0, 1, 0}},
	{HC_MSG_query, {0, 1, 1, 1}},
	{HC_MSG_admin, {0, 0, 0, 1}},
	{HC_MSG_channel_want, {0, 0, 1, 0}},
	{HC_MSG_channel_open, {0, 0, 1, 0}},
	{HC_MSG_channel_release, {0, 0, 1, 0}},
	{HC_MSG_abort, {0, 0, 1, 0}},
	{HC_MSG_leave, {0, 0, 1, 0}},
	{HC_MSG_destroy, {0, 0, 1, 1}},
};
#define ROWS (sizeof(list) / sizeof(list[0]))

#endif
