/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket; see sock.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "log.h"
#include "sock.h"

#define BACKLOG 1024

static int refuse(char *why, size_t size, const char *path, const char *doing)
{
	snprintf(why, size, "socket %s: cannot %s: %s", path, doing, strerror(errno));
	return 1;
}

static void address_of(const char *path, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path, path, strlen(path) + 1);
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Does the kernel say that nobody listens there? */
static bool is_stale(const char *path, const struct stat *st)
{
	struct sockaddr_un a;
	int fd = new_socket();
	bool stale;

	if (fd < 0)
		return false;
	address_of(path, &a);
	/* one of ours that a start left behind before it had its mode: nobody may even ask */
	if (st->st_uid == geteuid() && !(st->st_mode & 0777) && chmod(path, 0600)) {
		close(fd);
		return false;
	}
	stale = connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int clear_path(const char *path, char *why, size_t size)
{
	struct stat st;

	if (lstat(path, &st)) {
		if (errno == ENOENT)
			return 0;
		return refuse(why, size, path, "look at it");
	}
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, size,
			 "socket %s: something that is no socket is there; it is left as it is. "
			 "Move "
			 "it away, or set socket to another path",
			 path);
		return 1;
	}
	if (!is_stale(path, &st)) {
		snprintf(why, size,
			 "socket %s: another process listens there; stop it, or set socket to "
			 "another "
			 "path",
			 path);
		return 1;
	}
	if (unlink(path))
		return refuse(why, size, path, "remove the socket left over");
	return 0;
}

/* Bound with mode 0, so that nobody gets in before group and mode are as configured. */
static int bind_path(struct hc_sock *s, char *why, size_t size)
{
	struct sockaddr_un a;
	struct stat st;
	mode_t mask;
	int r;

	address_of(s->path, &a);
	mask = umask(0777);
	r = bind(s->fd, (struct sockaddr *)&a, sizeof(a));
	umask(mask);
	if (r)
		return refuse(why, size, s->path, "bind");
	if (lstat(s->path, &st))
		return refuse(why, size, s->path, "find it after binding");
	s->dev = st.st_dev; /* from here on a failure takes the file away again */
	s->ino = st.st_ino;
	/* a hardened unit may not change owners, and its own group is mostly the right one */
	if (s->has_group && st.st_gid != s->group && lchown(s->path, (uid_t)-1, s->group))
		return refuse(why, size, s->path, "give it to socket_group");
	if (chmod(s->path, s->mode))
		return refuse(why, size, s->path, "set socket_mode");
	if (listen(s->fd, BACKLOG))
		return refuse(why, size, s->path, "listen");
	return 0;
}

int hc_sock_open(struct hc_sock *s, const char *path, mode_t mode, const gid_t *group, char *why,
		 size_t size)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (strlen(path) > HC_SOCK_PATH_MAX) {
		snprintf(why, size, "socket: the path has %zu bytes; a socket path has at most %u",
			 strlen(path), HC_SOCK_PATH_MAX);
		return 1;
	}
	strcpy(s->path, path);
	s->mode = mode;
	s->has_group = group != NULL;
	s->group = group ? *group : 0;
	if (clear_path(path, why, size))
		return 1;
	s->fd = new_socket();
	if (s->fd < 0)
		return refuse(why, size, path, "make a socket");
	if (bind_path(s, why, size)) {
		hc_sock_close(s);
		return 1;
	}
	return 0;
}

void hc_sock_adopt(struct hc_sock *s, int fd)
{
	struct sockaddr_un a;
	socklen_t n = sizeof(a);
	size_t len;

	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->activated = true;
	memset(&a, 0, sizeof(a));
	if (!getsockname(fd, (struct sockaddr *)&a, &n) && n > sizeof(a.sun_family)) {
		len = strnlen(a.sun_path, sizeof(a.sun_path));
		memcpy(s->path, a.sun_path, len < HC_SOCK_PATH_MAX ? len : HC_SOCK_PATH_MAX);
	}
}

static bool is_ours(const struct hc_sock *s, const struct stat *st)
{
	return st->st_dev == s->dev && st->st_ino == s->ino;
}

static bool make_again(struct hc_sock *s)
{
	struct hc_sock fresh = *s;
	char why[512];

	fresh.ino = 0;
	fresh.fd = new_socket();
	if (fresh.fd < 0 || bind_path(&fresh, why, sizeof(why))) {
		hc_log(HC_LOG_ERROR, "socket %s is gone and cannot be made again: %s", s->path,
		       fresh.fd < 0 ? strerror(errno) : why);
		hc_sock_close(&fresh);
		return false;
	}
	hc_log(HC_LOG_WARN, "socket %s was gone; it is made again", s->path);
	close(s->fd);
	*s = fresh;
	s->foreign = false;
	return true;
}

bool hc_sock_check(struct hc_sock *s)
{
	struct stat st;

	if (s->activated || s->fd < 0)
		return false;
	if (lstat(s->path, &st))
		return errno == ENOENT ? make_again(s) : false;
	if (is_ours(s, &st)) {
		s->foreign = false;
		return false;
	}
	if (!s->foreign)
		hc_log(HC_LOG_ERROR,
		       "socket %s was replaced by something that is not ours; it is left as it is, "
		       "no "
		       "new client can reach this daemon until it is removed",
		       s->path);
	s->foreign = true;
	return false;
}

void hc_sock_close(struct hc_sock *s)
{
	struct stat st;

	if (!s->activated && s->ino && !lstat(s->path, &st) && is_ours(s, &st))
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
