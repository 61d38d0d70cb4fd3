/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces for tests; see netns.h. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "netns.h"

/* What it says, "" when all went well. */
static void run(const char *lines, char *said, size_t size)
{
	char path[] = "/tmp/hc-ip-XXXXXX", command[128];
	int fd = mkstemp(path), status;
	size_t n;
	FILE *f;

	hc_want(fd >= 0);
	hc_want(write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
	close(fd);
	snprintf(command, sizeof(command), "ip -batch %s 2>&1", path);
	f = popen(command, "r");
	hc_want(f != NULL);
	n = fread(said, 1, size - 1, f);
	said[n] = '\0';
	status = pclose(f);
	unlink(path);
	if (status && !n)
		snprintf(said, size, "status %d", status);
}

static char *format_lines(const char *format, va_list ap)
{
	char *lines;

	hc_want(vasprintf(&lines, format, ap) >= 0);
	return lines;
}

bool hc_ip_try(const char *format, ...)
{
	char said[2000], *lines;
	va_list ap;

	va_start(ap, format);
	lines = format_lines(format, ap);
	va_end(ap);
	run(lines, said, sizeof(said));
	free(lines);
	return !said[0];
}

void hc_ip(const char *format, ...)
{
	char said[2000], *lines;
	va_list ap;

	va_start(ap, format);
	lines = format_lines(format, ap);
	va_end(ap);
	run(lines, said, sizeof(said));
	if (said[0])
		hc_fail("ip: %.500s: %s", lines, said);
	free(lines);
}

bool hc_netns_enter(void)
{
	if (geteuid() || unshare(CLONE_NEWNET)) {
		printf("SKIP: a network namespace: %s\n",
		       geteuid() ? "needs root" : strerror(errno));
		return false;
	}
	if (hc_ip_try("link set lo up\n"))
		return true;
	printf("SKIP: a network namespace: the tool ip does not work\n");
	return false;
}
