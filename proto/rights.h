/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what; the rows are in rights.tbl.h.
 *
 * A request passes two looks. By its role alone, before anything of it is read:
 * hc_right_role. Then, once the domain is known, by its owner: hc_right_owner. What a RANK may do
 * is the third look, at the process that holds the seat, where the seat is found.
 */
#ifndef HC_RIGHTS_H
#define HC_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum hc_right {
	HC_RIGHT_NONE, /* no request */
	HC_RIGHT_MEMBER,
	HC_RIGHT_RANK,
	HC_RIGHT_USER,
	HC_RIGHT_OWNER,
	HC_RIGHT_ADMIN
};

/* The right that a request of this type needs. */
enum hc_right hc_right_of(uint16_t type);
/* May somebody of this role (HC_W_role_*) say it at all? False for what is no request. */
bool hc_right_role(uint16_t type, uint8_t role);
/* May uid, of this role, say it of a domain that belongs to `owner`? */
bool hc_right_owner(uint16_t type, uint8_t role, uint32_t uid, uint32_t owner);
/* For a refusal: who may. */
const char *hc_right_text(uint16_t type);

#endif
