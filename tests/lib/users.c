/* SPDX-License-Identifier: Apache-2.0 */
/* Several users on one daemon; see users.h. */
#include "users.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

bool hc_users_work(void)
{
	if (!geteuid() && getgrnam(HC_MEMBER_GROUP) && getgrnam(HC_ADMIN_GROUP))
		return true;
	printf("SKIP: other users need root, and the groups " HC_MEMBER_GROUP " and " HC_ADMIN_GROUP
	       "\n");
	return false;
}

void hc_conf_set(const struct hc_node *n, const char *name, const char *value)
{
	char *text = hc_read_file(n->conf), *out, *line, *rest = text;
	const size_t len = strlen(name);
	size_t room;

	if (!text)
		hc_fail("%s: %s", n->conf, strerror(errno));
	room = strlen(text) + len + strlen(value) + 16;
	out = calloc(1, room);
	if (!out)
		hc_fail("no memory");
	snprintf(out, room, "%s = %s\n", name, value);
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, name, len) && !strncmp(line + len, " = ", 3))
			continue;
		if (*line) {
			strcat(out, line);
			strcat(out, "\n");
		}
	}
	hc_replace_file(n->conf, out);
	free(out);
	free(text);
}

void hc_users_prepare(struct hc_node *n, unsigned devices, const char *top)
{
	char run[200];

	hc_node_prepare(n, devices, top, NULL);
	hc_conf_set(n, "socket_group", HC_MEMBER_GROUP);
	hc_conf_set(n, "admin_group", HC_ADMIN_GROUP);
	snprintf(run, sizeof(run), "%s/run", n->dir);
	if (chmod(n->dir, 0711) || chmod(run, 0711))
		hc_fail("%s: %s", n->dir, strerror(errno));
}

void hc_become(uid_t uid, const char *group)
{
	struct group *g = group ? getgrnam(group) : NULL;
	gid_t list[1] = {g ? g->gr_gid : 0};

	if ((group && !g) || setgroups(g ? 1 : 0, list) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid))
		hc_fail("cannot become uid %u: %s", (unsigned)uid, strerror(errno));
	/* a change of user clears this, and the test's end must be the child's */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}
