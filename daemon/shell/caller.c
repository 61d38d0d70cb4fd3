/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of clients; see caller.h. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "caller.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define GROUPS_MAX    65536u
#define OVERFLOW_UID  65534u
#define FOREIGN_START (1ull << 63) /* start "times" of processes without a number here */

static uint32_t overflow_uid(void)
{
	unsigned v = OVERFLOW_UID;
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");

	if (f) {
		if (fscanf(f, "%u", &v) != 1)
			v = OVERFLOW_UID;
		fclose(f);
	}
	return v;
}

void hc_caller_rules(struct hc_caller_rules *rules, const char *socket_group,
		     const char *admin_group, char *warning, size_t size)
{
	struct group *g;

	memset(rules, 0, sizeof(*rules));
	rules->own = geteuid();
	rules->overflow = overflow_uid();
	warning[0] = '\0';
	g = getgrnam(socket_group);
	if (g) {
		rules->has_socket_group = true;
		rules->socket_group = g->gr_gid;
	} else {
		snprintf(
			warning, size,
			"socket_group: there is no group %s here; only root and uid %u may use the "
			"socket (groupadd --system %s)",
			socket_group, rules->own, socket_group);
	}
	g = getgrnam(admin_group);
	if (g) {
		rules->has_admin_group = true;
		rules->admin_group = g->gr_gid;
	}
}

/* ---- processes ---- */

uint64_t hc_caller_started(uint32_t pid)
{
	char path[32], buf[1024];
	unsigned field;
	ssize_t n;
	char *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	p = strrchr(buf, ')'); /* the name before it may hold anything */
	for (field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

static int open_pidfd(uint32_t pid)
{
	return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

static bool is_dead(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

int hc_caller_open(uint32_t pid, uint64_t started)
{
	int fd = open_pidfd(pid);

	if (fd < 0)
		return -1;
	if (hc_caller_started(pid) != started || is_dead(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The number that a pidfd stands for; 0: of another namespace, -1: no pidfd, or reaped. */
static long pidfd_number(int fd)
{
	char path[48], line[128];
	long pid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "Pid:", 4))
			pid = strtol(line + 4, NULL, 10);
	fclose(f);
	return pid;
}

/* ---- the other end of a socket ---- */

int hc_caller_cred(int fd, uint32_t *pid, uint32_t *uid)
{
	struct ucred u;
	socklen_t n = sizeof(u);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n))
		return -errno;
	*pid = (uint32_t)u.pid;
	*uid = u.uid;
	return 0;
}

static bool in_groups(int fd, gid_t primary, gid_t wanted)
{
	socklen_t n = 0;
	bool found = false;
	gid_t *list;
	size_t i;

	if (primary == wanted)
		return true;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &n) || errno != ERANGE ||
	    n > GROUPS_MAX * sizeof(gid_t))
		return false;
	list = malloc(n);
	if (!list)
		return false;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &n))
		for (i = 0; i < n / sizeof(gid_t) && !found; i++)
			found = list[i] == wanted;
	free(list);
	return found;
}

static uint8_t role_of(int fd, const struct ucred *u, const struct hc_caller_rules *r)
{
	if (u->uid == 0 || u->uid == r->own)
		return HC_W_role_ADMIN;
	if (r->has_admin_group && in_groups(fd, u->gid, r->admin_group))
		return HC_W_role_ADMIN;
	if (r->has_socket_group && in_groups(fd, u->gid, r->socket_group))
		return HC_W_role_MEMBER;
	return HC_W_role_NONE;
}

static int peer_pidfd(int fd)
{
	int pidfd = -1;
	socklen_t n = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n))
		return -1;
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	return pidfd;
}

static int refuse(char *why, size_t size, int code, const char *text)
{
	snprintf(why, size, "%s", text);
	return code;
}

/* Every such process is one of its own: two of them are never taken for the same. */
static uint64_t foreign_start(void)
{
	static uint64_t count;

	return FOREIGN_START | ++count;
}

static int find_foreign(int fd, int sent, const struct hc_caller_rules *rules, struct hc_caller *c,
			char *why, size_t size)
{
	c->foreign = true;
	c->cred.started = foreign_start();
	c->pidfd = peer_pidfd(fd);
	if (c->pidfd < 0 && sent >= 0 && pidfd_number(sent) >= 0)
		c->pidfd = fcntl(sent, F_DUPFD_CLOEXEC, 3);
	if (c->pidfd < 0 && !rules->allow_foreign_pidns)
		return refuse(
			why, size, HC_E_PERMISSION,
			"the process is in another pid namespace and sent no pidfd, so its end "
			"could not be seen; share the pid namespace, upgrade the library, or set "
			"allow_foreign_pidns = yes");
	return 0;
}

/* Whose process cannot be looked at for want of a descriptor is not told that it is gone. */
static bool none_free(void)
{
	return errno == EMFILE || errno == ENFILE;
}

static int refuse_full(char *why, size_t size)
{
	return refuse(why, size, HC_E_RESOURCE_EXHAUSTED,
		      "the daemon has no free descriptor (LimitNOFILE= of the unit)");
}

static int find_process(int fd, int sent, struct hc_caller *c, char *why, size_t size)
{
	uint64_t before;

	errno = 0;
	before = hc_caller_started(c->cred.pid);
	if (!before && none_free())
		return refuse_full(why, size);
	c->pidfd = peer_pidfd(fd);
	if (c->pidfd < 0 && sent >= 0 && pidfd_number(sent) == (long)c->cred.pid)
		c->pidfd = fcntl(sent, F_DUPFD_CLOEXEC, 3);
	if (c->pidfd < 0)
		c->pidfd = open_pidfd(c->cred.pid);
	if (c->pidfd < 0 && none_free())
		return refuse_full(why, size);
	if (c->pidfd < 0)
		return refuse(why, size, HC_E_SYSTEM, "the process cannot be watched: it is gone");
	errno = 0;
	c->cred.started = hc_caller_started(c->cred.pid);
	if (!c->cred.started && none_free())
		return refuse_full(why, size);
	if (c->cred.started != before || is_dead(c->pidfd))
		return refuse(why, size, HC_E_SYSTEM,
			      "the process that opened the connection is gone");
	return 0;
}

int hc_caller_identify(int fd, int sent, const struct hc_caller_rules *rules, struct hc_caller *c,
		       char *why, size_t size)
{
	struct ucred u;
	socklen_t n = sizeof(u);
	int r;

	memset(c, 0, sizeof(*c));
	c->pidfd = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n))
		return refuse(why, size, HC_E_SYSTEM, strerror(errno));
	c->cred.pid = (uint32_t)u.pid;
	c->cred.uid = u.uid;
	if (u.uid == rules->overflow)
		return refuse(why, size, HC_E_PERMISSION,
			      "the user has no number here (user namespace); map the user into the "
			      "daemon's namespace");
	c->cred.role = role_of(fd, &u, rules);
	if (c->cred.role == HC_W_role_NONE) {
		snprintf(why, size,
			 "uid %u is no member of the group that may use hcomm (socket_group, %s)",
			 u.uid,
			 rules->has_socket_group ? "see hcommctl config show"
						 : "which does not exist here");
		return HC_E_PERMISSION;
	}
	r = u.pid > 0 ? find_process(fd, sent, c, why, size)
		      : find_foreign(fd, sent, rules, c, why, size);
	if (r && c->pidfd >= 0) {
		close(c->pidfd);
		c->pidfd = -1;
	}
	return r;
}
