/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces for tests; see netns.h. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
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

void hc_netns_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		hc_fail("the loopback of a new namespace: %s", strerror(errno));
	close(fd);
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

/* ---- a second host ---- */

static int here(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	hc_want(fd >= 0);
	return fd;
}

static void go(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		hc_fail("setns: %s", strerror(errno));
}

int hc_netns_other(void)
{
	int home = here(), ns;

	hc_want(!unshare(CLONE_NEWNET));
	hc_ip("link set lo up\n");
	ns = here();
	go(home);
	close(home);
	return ns;
}

const char *hc_netns_path(int ns)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), ns);
	return path;
}

void hc_ip_in(int ns, const char *format, ...)
{
	char said[2000], *lines;
	int home = here();
	va_list ap;

	va_start(ap, format);
	lines = format_lines(format, ap);
	va_end(ap);
	go(ns);
	run(lines, said, sizeof(said));
	go(home);
	close(home);
	if (said[0])
		hc_fail("ip, the other host: %.500s: %s", lines, said);
	free(lines);
}

void hc_netns_before_exec(void *ns)
{
	if (setns(*(const int *)ns, CLONE_NEWNET))
		_exit(127);
}

void hc_netns_join(int ns, const char *a, const char *addr_a, const char *b, const char *addr_b)
{
	hc_ip("link add %s type veth peer name %s\nlink set %s netns %s\n"
	      "addr add %s/24 dev %s\nlink set %s up\n",
	      a, b, b, hc_netns_path(ns), addr_a, a, a);
	hc_ip_in(ns, "addr add %s/24 dev %s\nlink set %s up\n", addr_b, b, b);
}
