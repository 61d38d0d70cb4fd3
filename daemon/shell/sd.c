/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager; see sd.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>
#include "log.h"
#include "sd.h"

#define WATCHDOG_LEAST_US 100000u
#define TELL_MS           100

/* ---- what the manager is told ---- */

static ssize_t transmit(int fd, const char *text, int pass)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	union {
		const char *from;
		void *to;
	} bytes = {.from = text}; /* iovec has no const */
	struct iovec iov = {bytes.to, strlen(text)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &pass, sizeof(int));
		h.msg_control = control.room;
		h.msg_controllen = sizeof(control.room);
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL);
}

/*
 * The main loop must not wait for a manager that does not read; sd_notify would. So its words go
 * out without waiting for longer than a moment, and are lost if there is no room.
 */
static void say(const char *text, int pass, int wait_ms)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	struct pollfd p = {.events = POLLOUT};

	if (!n || n >= sizeof(a.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(a.sun_path, path, n);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	p.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p.fd < 0)
		return;
	if (connect(p.fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) ||
	    poll(&p, 1, wait_ms) < 0 || transmit(p.fd, text, pass) < 0)
		hc_log(HC_LOG_DEBUG, "the service manager was not told: %s", strerror(errno));
	close(p.fd);
}

static void tell(const char *text)
{
	say(text, -1, TELL_MS);
}

static void tellf(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tellf(const char *format, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tell(text);
}

void hc_sd_ready(const char *status)
{
	tellf("READY=1\nSTATUS=%s", status);
}

void hc_sd_status(const char *status)
{
	tellf("STATUS=%s", status);
}

void hc_sd_reloading(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	tellf("RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	      (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u);
}

void hc_sd_stopping(void)
{
	tell("STOPPING=1\nSTATUS=stopping; domains stay and are taken back at the next start");
}

void hc_sd_watchdog(void)
{
	tell("WATCHDOG=1");
}

uint64_t hc_sd_watchdog_ns(void)
{
	uint64_t usec;

	if (sd_watchdog_enabled(0, &usec) <= 0)
		return 0;
	if (usec < WATCHDOG_LEAST_US)
		hc_log(HC_LOG_WARN,
		       "watchdog of %" PRIu64
		       " us is shorter than a busy machine allows; wanted: at "
		       "least %u us (WatchdogSec= of the unit)",
		       usec, WATCHDOG_LEAST_US);
	return usec * 1000u / 2u;
}

void hc_sd_store_fd(const char *name, int fd)
{
	char text[128];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void hc_sd_store_fd_now(const char *name, int fd)
{
	char text[128];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	say(text, fd, 0);
}

void hc_sd_unstore_fd(const char *name)
{
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

/* The manager's socket is blocking, and the main loop accepts until EAGAIN. */
static bool take_socket(struct hc_sd_fds *fds, int fd)
{
	if (fds->listen >= 0 || sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
		return false;
	fds->listen = fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		hc_log(HC_LOG_WARN, "descriptor %d: %s", fd, strerror(errno));
	return true;
}

static bool take_arena(struct hc_sd_fds *fds, int fd, const char *name)
{
	struct hc_stored_arena a;

	if (!hc_fdstore_parse(name, &a))
		return false;
	a.fd = fd;
	fds->arenas[fds->narenas++] = a;
	return true;
}

int hc_sd_take_fds(struct hc_sd_fds *fds)
{
	char **names = NULL;
	int n, i;

	*fds = (struct hc_sd_fds){.listen = -1};
	n = sd_listen_fds_with_names(1, &names);
	if (n <= 0)
		return n == -ENOMEM ? n : 0;
	fds->arenas = calloc((size_t)n, sizeof(*fds->arenas));
	for (i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;
		const char *name = names && names[i] ? names[i] : "";

		if (fds->arenas && (take_arena(fds, fd, name) || take_socket(fds, fd)))
			continue;
		hc_log(HC_LOG_WARN,
		       "descriptor %d (%.64s) of the service manager is not used; wanted: one Unix "
		       "socket with ListenSequentialPacket=, and arenas that hcommd stored",
		       fd, name);
		close(fd);
	}
	for (i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return fds->arenas ? 0 : -ENOMEM;
}

void hc_sd_fds_fini(struct hc_sd_fds *fds)
{
	while (fds->narenas)
		close(fds->arenas[--fds->narenas].fd);
	free(fds->arenas);
	fds->arenas = NULL;
}
