/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager; see sd.h. */
#include <string.h>
#include <fcntl.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>
#include "log.h"
#include "sd.h"

#define WATCHDOG_LEAST_US 100000u

void hc_sd_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void hc_sd_status(const char *status)
{
	sd_notifyf(0, "STATUS=%s", status);
}

void hc_sd_reloading(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		   (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u);
}

void hc_sd_stopping(void)
{
	sd_notify(0,
		  "STOPPING=1\nSTATUS=stopping; domains stay and are taken back at the next start");
}

void hc_sd_watchdog(void)
{
	sd_notify(0, "WATCHDOG=1");
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

int hc_sd_listen_fd(void)
{
	int n = sd_listen_fds(1), fd = -1, i;

	for (i = SD_LISTEN_FDS_START; i < SD_LISTEN_FDS_START + n; i++) {
		if (fd < 0 && sd_is_socket_unix(i, SOCK_SEQPACKET, 1, NULL, 0) > 0) {
			fd = i;
			/* the manager's is blocking, and the main loop accepts until EAGAIN */
			if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
				hc_log(HC_LOG_WARN, "descriptor %d: %s", i, strerror(errno));
			continue;
		}
		hc_log(HC_LOG_WARN,
		       "descriptor %d of the service manager is not used; wanted: one Unix socket "
		       "with ListenSequentialPacket=",
		       i);
		close(i);
	}
	return fd;
}
