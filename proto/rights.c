/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what; see rights.h. A switch made from the rows: no table in writable memory. */
#include "rights.h"

#include "wire.h"

enum hc_right hc_right_of(uint16_t type)
{
	switch (type) {
#define RIGHT(request, who, what)                                                                  \
	case HC_MSG_##request:                                                                     \
		return HC_RIGHT_##who;
#include "rights.tbl.h"
#undef RIGHT
	}
	return HC_RIGHT_NONE;
}

bool hc_right_role(uint16_t type, uint8_t role)
{
	switch (hc_right_of(type)) {
	case HC_RIGHT_NONE: return false;
	case HC_RIGHT_MEMBER:
	case HC_RIGHT_RANK:
	case HC_RIGHT_USER:
	case HC_RIGHT_OWNER: return role == HC_W_role_MEMBER || role == HC_W_role_ADMIN;
	case HC_RIGHT_ADMIN: return role == HC_W_role_ADMIN;
	}
	return false;
}

bool hc_right_owner(uint16_t type, uint8_t role, uint32_t uid, uint32_t owner)
{
	if (!hc_right_role(type, role))
		return false;
	if (hc_right_of(type) == HC_RIGHT_USER)
		return uid == owner;
	return hc_right_of(type) != HC_RIGHT_OWNER || uid == owner || role == HC_W_role_ADMIN;
}

const char *hc_right_text(uint16_t type)
{
	switch (hc_right_of(type)) {
	case HC_RIGHT_NONE: return "nobody may do that";
	case HC_RIGHT_MEMBER:
		return "only root and members of socket_group and admin_group may do that";
	case HC_RIGHT_RANK: return "only the process that holds the rank may do that";
	case HC_RIGHT_USER: return "only its owner may do that";
	case HC_RIGHT_OWNER: return "only its owner, root and members of admin_group may do that";
	case HC_RIGHT_ADMIN: return "only root and members of admin_group may do that";
	}
	return "";
}
