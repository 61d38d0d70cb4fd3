/* SPDX-License-Identifier: Apache-2.0 */
/* See bed.h. */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "netns.h"

#define BFDD      "/usr/lib/frr/bfdd"
#define BFDD_USER "frr"

enum { BUSY_MAX = 16, PATH_BYTES = 256 };

static int home = -1;
static pid_t busy[BUSY_MAX];

/* ---- namespaces ---- */

static int current(void)
{
	const int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		bench_die("network namespace: %s", strerror(errno));
	return fd;
}

static void fresh(void)
{
	if (unshare(CLONE_NEWNET))
		bench_die("a network namespace: %s", strerror(errno));
	if (!hc_ip_try("link set lo up\n"))
		bench_die("the tool ip does not work");
}

bool bed_begin(const char *bench)
{
	struct bench_line l;

	if (geteuid() || unshare(CLONE_NEWNET)) {
		bench_note("%s: network namespaces want root", bench);
		bench_line_open(&l, bench);
		bench_line_bool(&l, "summary", true);
		bench_line_bool(&l, "skipped", true);
		bench_line_print(&l);
		return false;
	}
	fresh();
	home = current();
	return true;
}

int bed_home(void)
{
	return home;
}

void bed_enter(int netns)
{
	if (setns(netns, CLONE_NEWNET))
		bench_die("setns: %s", strerror(errno));
}

int bed_netns(void)
{
	const int ns = hc_netns_other();

	if (ns < 0)
		bench_die("no further network namespace");
	return ns;
}

void bed_veth(const char *link, const char *end, int netns)
{
	hc_ip("link add %s type veth peer name %s\nlink set %s netns %s\nlink set %s up\n", link,
	      end, end, hc_netns_path(netns), link);
}

/* ---- rules ---- */

static void feed_nft(const char *text)
{
	FILE *f = popen("nft -f -", "we");

	if (!f || fputs(text, f) < 0 || pclose(f))
		bench_die("nft: %s", text);
}

void bed_nft(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		bench_die("out of memory");
	va_end(ap);
	feed_nft(text);
	free(text);
}

struct bed_rules {
	FILE *nft;
};

struct bed_rules *bed_rules_open(void)
{
	struct bed_rules *r = calloc(1, sizeof(*r));

	if (!r)
		bench_die("out of memory");
	r->nft = popen("nft -i >/dev/null", "we");
	if (!r->nft)
		bench_die("nft: %s", strerror(errno));
	return r;
}

void bed_rules_say(struct bed_rules *r, const char *commands)
{
	if (fputs(commands, r->nft) < 0 || fflush(r->nft))
		bench_die("nft has ended");
}

void bed_rules_close(struct bed_rules *r)
{
	pclose(r->nft);
	free(r);
}

void bed_loss(unsigned percent, const char *ports)
{
	bed_nft("table inet loss {\n"
		" chain in {\n"
		"  type filter hook input priority 0;\n"
		"  udp dport { %s } numgen random mod 100 < %u counter drop\n"
		" }\n"
		"}\n",
		ports, percent);
}

uint64_t bed_lost(void)
{
	FILE *f = popen("nft list table inet loss", "re");
	char line[512];
	unsigned long long n = 0;
	const char *at;

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "counter packets ");
		if (at)
			n += strtoull(at + strlen("counter packets "), NULL, 10);
	}
	if (!f || pclose(f))
		bench_die("nft does not list its rules");
	return n;
}

void bed_no_rules(void)
{
	feed_nft("flush ruleset\n");
}

uint64_t bed_overflows(void)
{
	unsigned long long in, noports, errors, out, full = 0;
	FILE *f = fopen("/proc/thread-self/net/snmp", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Udp: %llu %llu %llu %llu %llu", &in, &noports, &errors, &out,
			   &full) == 5)
			break;
	if (f)
		fclose(f);
	return full;
}

/* ---- load ---- */

static _Noreturn void burn(void)
{
	volatile uint64_t n = 0;

	for (;;)
		n = n + 1;
}

void bed_busy(unsigned loops)
{
	unsigned i;

	if (loops > BUSY_MAX)
		bench_die("%u busy loops; wanted: up to %d", loops, BUSY_MAX);
	for (i = 0; i < loops; i++) {
		busy[i] = bench_fork();
		if (!busy[i])
			burn();
	}
}

void bed_idle(void)
{
	unsigned i;

	for (i = 0; i < BUSY_MAX; i++)
		if (busy[i])
			bench_kill(busy[i]);
	memset(busy, 0, sizeof(busy));
}

void bed_urgent(pid_t pid)
{
	const struct sched_param first = {.sched_priority = 1};

	if (sched_setscheduler(pid, SCHED_FIFO, &first))
		bench_die("sched_setscheduler: %s", strerror(errno));
}

/* ---- FRR ---- */

bool bed_bfdd_installed(void)
{
	return !access(BFDD, X_OK);
}

/* It changes to a user of its own, who must get at its files. */
static void open_way(void)
{
	const char *all = getenv("TMPDIR");

	if (all && strstr(all, "/hcb."))
		chmod(all, 0711);
	chmod(bench_tmpdir(), 0711);
}

static _Noreturn void exec_bfdd(const char *dir, int out)
{
	char conf[PATH_BYTES], pid[PATH_BYTES], zebra[PATH_BYTES], ctl[PATH_BYTES];
	char *argv[] = {(char *)(uintptr_t)BFDD,
			(char *)(uintptr_t) "-f",
			conf,
			(char *)(uintptr_t) "-i",
			pid,
			(char *)(uintptr_t) "--vty_socket",
			(char *)(uintptr_t)dir,
			(char *)(uintptr_t) "-z",
			zebra,
			(char *)(uintptr_t) "--bfdctl",
			ctl,
			(char *)(uintptr_t) "-P",
			(char *)(uintptr_t) "0",
			NULL};

	snprintf(conf, sizeof(conf), "%s/conf", dir);
	snprintf(pid, sizeof(pid), "%s/pid", dir);
	snprintf(zebra, sizeof(zebra), "%s/zebra", dir);
	snprintf(ctl, sizeof(ctl), "%s/ctl", dir);
	if (dup2(out, 1) < 0 || dup2(open("/dev/null", O_RDWR), 2) < 0)
		_exit(126);
	execv(argv[0], argv);
	_exit(127);
}

void bed_bfdd_start(struct bed_bfdd *b, const char *name, unsigned interval_ms, const char *peers)
{
	char dir[PATH_BYTES - 16], path[PATH_BYTES], *text;
	const struct passwd *user = getpwnam(BFDD_USER);
	int pipes[2];

	memset(b, 0, sizeof(*b));
	open_way();
	snprintf(dir, sizeof(dir), "%s/bfdd-%s", bench_tmpdir(), name);
	snprintf(path, sizeof(path), "%s/conf", dir);
	if ((mkdir(dir, 0755) && errno != EEXIST) || !user ||
	    chown(dir, user->pw_uid, user->pw_gid))
		bench_die("no directory for bfdd: %s", user ? strerror(errno) : "no user frr");
	if (asprintf(&text,
		     "log stdout debugging\ndebug bfd peer\nbfd\n profile lab\n"
		     "  detect-multiplier 3\n  receive-interval %u\n  transmit-interval %u\n"
		     " exit\n%sexit\n",
		     interval_ms, interval_ms, peers) < 0)
		bench_die("out of memory");
	bench_write_file(path, text);
	free(text);
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		bench_die("pipe: %s", strerror(errno));
	fcntl(pipes[0], F_SETPIPE_SZ, 1 << 20);
	b->pid = bench_fork();
	if (!b->pid)
		exec_bfdd(dir, pipes[1]);
	close(pipes[1]);
	b->log = pipes[0];
}

const char *bed_bfdd_line(struct bed_bfdd *b)
{
	static char line[sizeof(b->line)];
	char *end = memchr(b->line, '\n', b->used);
	ssize_t n;

	if (!end) {
		n = read(b->log, b->line + b->used, sizeof(b->line) - 1 - b->used);
		if (!n)
			bench_die("bfdd ended");
		if (n > 0)
			b->used += (size_t)n;
		end = memchr(b->line, '\n', b->used);
		if (!end && b->used == sizeof(b->line) - 1)
			b->used = 0;
		if (!end)
			return NULL;
	}
	*end++ = '\0';
	memcpy(line, b->line, (size_t)(end - b->line));
	b->used -= (size_t)(end - b->line);
	memmove(b->line, end, b->used);
	return line;
}

void bed_bfdd_stop(struct bed_bfdd *b)
{
	bench_kill(b->pid);
	close(b->log);
}
