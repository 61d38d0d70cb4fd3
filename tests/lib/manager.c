/* SPDX-License-Identifier: Apache-2.0 */
/* A service manager for tests; see manager.h. */
#include "manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3, ASIDE_FD = 600 };

/* ---- a start: in the child ---- */

static void hand_over(void *arg)
{
	const struct hc_manager *m = arg;
	static char names[MANAGER_FDS * 100], number[16];
	size_t used = 0;
	unsigned i;

	setenv("NOTIFY_SOCKET", m->path, 1);
	if (!m->nstored)
		return;
	/* out of the way first: a descriptor may stand where another one goes */
	for (i = 0; i < m->nstored; i++)
		if (dup2(m->stored[i].fd, ASIDE_FD + (int)i) < 0)
			_exit(126);
	for (i = 0; i < m->nstored; i++) {
		if (dup2(ASIDE_FD + (int)i, FIRST_FD + (int)i) < 0)
			_exit(126);
		close(ASIDE_FD + (int)i);
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ":" : "",
					 m->stored[i].name);
	}
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
	snprintf(number, sizeof(number), "%u", m->nstored);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

/* ---- notifications ---- */

static const char *value_of(const char *text, const char *key, char *out, size_t size)
{
	const char *at = text;
	size_t n = strlen(key), len;

	while (at && strncmp(at, key, n)) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	len = strcspn(at + n, "\n");
	snprintf(out, size, "%.*s", (int)len, at + n);
	return out;
}

void hc_manager_put(struct hc_manager *m, const char *name, int fd)
{
	if (m->nstored == MANAGER_FDS)
		hc_fail("more than %d descriptors are stored", MANAGER_FDS);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	m->stored[m->nstored].fd = fd;
	snprintf(m->stored[m->nstored++].name, sizeof(m->stored[0].name), "%s", name);
}

static void remove_named(struct hc_manager *m, const char *name)
{
	unsigned i, n = 0;

	for (i = 0; i < m->nstored; i++) {
		if (strcmp(m->stored[i].name, name) != 0) {
			m->stored[n++] = m->stored[i];
			continue;
		}
		close(m->stored[i].fd);
		m->removed++;
	}
	m->nstored = n;
}

static void take(struct hc_manager *m, const char *text, int fd)
{
	char value[256];

	if (value_of(text, "READY=1", value, sizeof(value))) {
		m->ready++;
		m->ready_told = true;
	}
	if (value_of(text, "STOPPING=1", value, sizeof(value))) {
		m->stopping++;
		m->stopping_ns = hc_now_ns();
	}
	value_of(text, "STATUS=", m->status, sizeof(m->status));
	if (value_of(text, "FDSTOREREMOVE=1", value, sizeof(value)) &&
	    value_of(text, "FDNAME=", value, sizeof(value)))
		remove_named(m, value);
	else if (fd >= 0 && value_of(text, "FDSTORE=1", value, sizeof(value)) &&
		 value_of(text, "FDNAME=", value, sizeof(value)))
		hc_manager_put(m, value, fd);
	else if (fd >= 0)
		close(fd);
}

void hc_manager_read(struct hc_manager *m)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	char text[4096];
	ssize_t n;

	for (;;) {
		struct iovec iov = {text, sizeof(text) - 1};
		struct msghdr h = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = control.room,
				   .msg_controllen = sizeof(control.room)};
		struct cmsghdr *c;
		int fd = -1;

		n = recvmsg(m->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0)
			return;
		text[n] = '\0';
		for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
			if (c->cmsg_type == SCM_RIGHTS)
				memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		take(m, text, fd);
	}
}

struct wanted {
	struct hc_manager *m;
	unsigned count;
};

static bool are_stored(void *arg)
{
	struct wanted *w = arg;

	hc_manager_read(w->m);
	return w->m->nstored == w->count;
}

void hc_manager_await_stored(struct hc_manager *m, unsigned count, unsigned deadline_ms)
{
	struct wanted w = {m, count};

	if (!hc_wait_until(are_stored, &w, deadline_ms))
		hc_fail("%u descriptors are stored; wanted: %u", m->nstored, count);
}

/* ---- life ---- */

void hc_manager_start(struct hc_manager *m, struct hc_node *n)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memset(m, 0, sizeof(*m));
	snprintf(m->path, sizeof(m->path), "%s/notify", n->dir);
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (m->fd < 0 || strlen(m->path) >= sizeof(a.sun_path))
		hc_fail("%s: no socket", m->path);
	strcpy(a.sun_path, m->path);
	if (bind(m->fd, (struct sockaddr *)&a, sizeof(a)))
		hc_fail("%s: %s", m->path, strerror(errno));
	n->before_exec = hand_over;
	n->arg = m;
}

void hc_manager_end(struct hc_manager *m)
{
	while (m->nstored)
		close(m->stored[--m->nstored].fd);
	close(m->fd);
}
