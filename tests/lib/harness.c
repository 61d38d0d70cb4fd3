/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private daemons, files and time of the tests; spawn.c has children and programs. See harness.h.
 *
 * The daemon is started by fork and exec with PR_SET_PDEATHSIG, so that it does not outlive a test
 * that is killed. It has "started" once it answers a hello: a listening socket alone would also
 * be there while the daemon still reads its database.
 *
 * The clean-up at exit belongs to the process that registered it: children made by fork inherit
 * the list, and must not stop their parent's daemon.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

enum { NODES_MAX = 64, DIRS_MAX = 64, START_MS = 10000, STOP_MS = 5000 };

static struct {
	pid_t owner;
	struct hc_node *nodes[NODES_MAX];
	char dirs[DIRS_MAX][128];
} cleanup;

/* ---- failing ---- */

void hc_fail_at(const char *file, int line, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void show_log(const struct hc_node *n)
{
	char *text = hc_read_file(n->log);

	if (text && *text)
		fprintf(stderr, "--- log of the daemon in %s\n%s---\n", n->dir, text);
	free(text);
}

void hc_at_exit_nodes(void)
{
	unsigned i;

	for (i = 0; i < NODES_MAX; i++) {
		struct hc_node *n = cleanup.nodes[i];

		if (!n)
			continue;
		show_log(n);
		if (n->pid) {
			kill(n->pid, SIGKILL);
			waitpid(n->pid, NULL, 0);
		}
		cleanup.nodes[i] = NULL;
	}
	for (i = 0; i < DIRS_MAX; i++) {
		if (cleanup.dirs[i][0] && !getenv("HC_KEEP"))
			hc_remove_tree(cleanup.dirs[i]);
		cleanup.dirs[i][0] = '\0';
	}
}

static void at_exit(void)
{
	if (cleanup.owner != getpid())
		return;
	hc_at_exit_children();
	hc_at_exit_nodes();
}

void hc_at_exit_arm(void)
{
	if (cleanup.owner == getpid())
		return;
	/* a fork of the process that armed it: what it inherited is not its own */
	memset(&cleanup, 0, sizeof(cleanup));
	cleanup.owner = getpid();
	atexit(at_exit);
}

/* ---- time ---- */

uint64_t hc_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hc_now_ms(void)
{
	return hc_now_ns() / 1000000u;
}

unsigned hc_patience(unsigned ms)
{
	const char *slow = getenv("HC_SLOW");
	unsigned long n = slow ? strtoul(slow, NULL, 10) : 1;

	return ms * (unsigned)(n >= 1 && n <= 100 ? n : 1);
}

bool hc_wait_until(bool (*cond)(void *ctx), void *ctx, unsigned deadline_ms)
{
	uint64_t end = hc_now_ns() + hc_patience(deadline_ms) * UINT64_C(1000000);
	struct timespec step = {.tv_nsec = 500000};

	while (!cond(ctx)) {
		if (hc_now_ns() > end)
			return cond(ctx);
		ppoll(NULL, 0, &step, NULL);
	}
	return true;
}

void hc_await(const char *what, bool (*cond)(void *ctx), void *ctx, unsigned deadline_ms)
{
	if (!hc_wait_until(cond, ctx, deadline_ms))
		hc_fail("waited %u ms in vain for: %s", hc_patience(deadline_ms), what);
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	remove(path);
	return 0;
}

void hc_remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void hc_tempdir(char *out, size_t size)
{
	const char *base = getenv("TMPDIR");
	unsigned i;

	hc_at_exit_arm();
	/* the path of a socket has to fit in 107 bytes */
	if (!base || base[0] != '/' || strlen(base) > 60)
		base = "/tmp";
	if (snprintf(out, size, "%s/hc.XXXXXX", base) >= (int)size || !mkdtemp(out))
		hc_fail("no directory below %s: %s", base, strerror(errno));
	for (i = 0; i < DIRS_MAX; i++) {
		if (cleanup.dirs[i][0])
			continue;
		snprintf(cleanup.dirs[i], sizeof(cleanup.dirs[i]), "%s", out);
		return;
	}
	hc_fail("more than %d directories at once", DIRS_MAX);
}

void hc_write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f))
		hc_fail("%s: %s", path, strerror(errno));
}

void hc_replace_file(const char *path, const char *text)
{
	char beside[1024];

	if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
		hc_fail("%s: too long", path);
	hc_write_file(beside, text);
	if (rename(beside, path))
		hc_fail("%s: %s", path, strerror(errno));
}

char *hc_read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t have = 0, n, room = 65536;
	char *text = malloc(room + 1);

	if (!f || !text) {
		free(text);
		if (f)
			fclose(f);
		return NULL;
	}
	while ((n = fread(text + have, 1, room - have, f)) > 0) {
		char *more;

		have += n;
		if (have < room)
			continue;
		room *= 2;
		more = realloc(text, room + 1);
		if (!more)
			hc_fail("%s: no memory", path);
		text = more;
	}
	fclose(f);
	text[have] = '\0';
	return text;
}

const char *hc_program(const char *name, char *out, size_t size)
{
	const char *given = getenv("HC_BIN");
	char dir[1024];
	ssize_t n;
	int up;

	if (given && *given) {
		snprintf(out, size, "%s/%s", given, name);
		return out;
	}
	n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	if (n <= 0)
		hc_fail("/proc/self/exe: %s", strerror(errno));
	dir[n] = '\0';
	for (up = 0; up < 4; up++) {
		char *slash = strrchr(dir, '/');

		if (!slash || slash == dir)
			break;
		*slash = '\0';
		snprintf(out, size, "%s/%s", dir, name);
		if (!access(out, F_OK))
			return out;
	}
	hc_fail("%s is not above this test; build it, or set HC_BIN to its directory", name);
}

void hc_table_write(const char *path, unsigned nranks, unsigned nservers)
{
	unsigned rank = 0, s, d, each = nranks / nservers;
	FILE *f = fopen(path, "we");

	if (!f)
		hc_fail("%s: %s", path, strerror(errno));
	fprintf(f,
		"{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"%u\",\n"
		" \"server_list\":[",
		nservers);
	for (s = 0; s < nservers; s++) {
		fprintf(f, "%s\n  {\"server_id\":\"node_%u\",\"device\":[", s ? "," : "", s);
		for (d = 0; d < each || (s == nservers - 1 && rank < nranks); d++, rank++)
			fprintf(f,
				"%s\n   {\"device_id\":\"%u\",\"device_ip\":\"192.0.%u.%u\","
				"\"rank_id\":\"%u\"}",
				d ? "," : "", d, 2 + s, 10 + d, rank);
		fputs("]}", f);
	}
	fputs("]}\n", f);
	if (fclose(f))
		hc_fail("%s: %s", path, strerror(errno));
}

static unsigned count_dir(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		hc_fail("%s: %s", path, strerror(errno));
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

unsigned hc_count_fds(void)
{
	return count_dir("/proc/self/fd") - 1; /* that of the listing */
}

unsigned hc_count_threads(void)
{
	return count_dir("/proc/self/task");
}

unsigned hc_count_maps(const char *text)
{
	char *maps = hc_read_file("/proc/self/maps"), *line, *rest = maps;
	unsigned n = 0;

	while ((line = strsep(&rest, "\n")))
		n += strstr(line, text) != NULL;
	free(maps);
	return n;
}

/* ---- all tests of a program ---- */

static char tests_dir[128];

void hc_tests_begin(void)
{
	hc_tempdir(tests_dir, sizeof(tests_dir));
	/* tests that become another user pass through */
	if (chmod(tests_dir, 0711) || setenv("TMPDIR", tests_dir, 1))
		hc_fail("%s: %s", tests_dir, strerror(errno));
}

void hc_tests_end(bool failed)
{
	DIR *d = failed ? opendir(tests_dir) : NULL;
	struct hc_node n = {0};
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (snprintf(n.dir, sizeof(n.dir), "%s/%s", tests_dir, e->d_name) >=
		    (int)sizeof(n.dir))
			continue;
		if (snprintf(n.log, sizeof(n.log), "%s/log", n.dir) < (int)sizeof(n.log))
			show_log(&n);
	}
	if (d)
		closedir(d);
	if (!getenv("HC_KEEP"))
		hc_remove_tree(tests_dir);
}

/* ---- a daemon ---- */

static void remember(struct hc_node *n)
{
	unsigned i;

	hc_at_exit_arm();
	for (i = 0; i < NODES_MAX; i++) {
		if (cleanup.nodes[i])
			continue;
		cleanup.nodes[i] = n;
		return;
	}
	hc_fail("more than %d daemons at once", NODES_MAX);
}

static void forget(struct hc_node *n)
{
	unsigned i;

	for (i = 0; i < NODES_MAX; i++) {
		if (cleanup.nodes[i] == n)
			cleanup.nodes[i] = NULL;
	}
}

static void write_conf(const struct hc_node *n, unsigned devices, const char *top,
		       const char *sections)
{
	struct group *g = getgrgid(getgid());
	FILE *f = fopen(n->conf, "we");
	unsigned i;

	if (!f || !g)
		hc_fail("%s: %s", n->conf, f ? "the own group has no name" : strerror(errno));
	fprintf(f, "runtime_dir = %s/run\nstate_dir = %s/state\nsocket = %s\n", n->dir, n->dir,
		n->socket);
	fprintf(f, "socket_group = %s\nkey_file = %s/no.key\nmetrics_socket =\n", g->gr_name,
		n->dir);
	fprintf(f, "log_target = stderr\nlog_level = debug\nsysfs_root = %s/sys\n", n->dir);
	fprintf(f, "%s\n", top ? top : "");
	for (i = 0; i < devices; i++)
		fprintf(f, "[device %u]\nkind = npu\nsimulated = yes\n", i);
	fprintf(f, "%s\n", sections ? sections : "");
	if (fclose(f))
		hc_fail("%s: %s", n->conf, strerror(errno));
}

void hc_node_prepare(struct hc_node *n, unsigned devices, const char *top, const char *sections)
{
	static const char *const subdirs[] = {"run", "state", "sys"};
	char path[256];
	unsigned i;

	memset(n, 0, sizeof(*n));
	hc_tempdir(n->dir, sizeof(n->dir));
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", n->dir, subdirs[i]);
		if (mkdir(path, 0700))
			hc_fail("%s: %s", path, strerror(errno));
	}
	snprintf(n->socket, sizeof(n->socket), "%s/run/hcommd.sock", n->dir);
	snprintf(n->conf, sizeof(n->conf), "%s/hcommd.conf", n->dir);
	snprintf(n->log, sizeof(n->log), "%s/log", n->dir);
	write_conf(n, devices, top, sections);
}

_Noreturn static void exec_daemon(const struct hc_node *n, pid_t parent, const char *program)
{
	int log = open(n->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* an interrupt at the terminal is for the test, which then ends the daemon itself */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* 0: the parent is outside of our pid namespace */
	if ((getppid() && getppid() != parent) || log < 0 || null < 0)
		_exit(127);
	dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("HCOMM_SOCKET");
	if (n->before_exec)
		n->before_exec(n->arg);
	execl(program, program, "--config", n->conf, (char *)NULL);
	dprintf(2, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

void hc_node_launch(struct hc_node *n)
{
	char program[1200];
	pid_t parent = getpid();

	if (n->pid)
		hc_fail("the daemon in %s runs already", n->dir);
	hc_program("hcommd", program, sizeof(program));
	if (!n->starts++)
		remember(n);
	n->pid = fork();
	if (n->pid < 0)
		hc_fail("fork: %s", strerror(errno));
	if (!n->pid)
		exec_daemon(n, parent, program);
}

static bool send_hello(int fd)
{
	struct hc_m_hello m = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("harness")};
	uint8_t buf[512];
	size_t len;

	return !hc_frame_write(buf, sizeof(buf), &hc_desc_hello, 1, 1, 0, &m, &len) &&
	       send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool hc_socket_answers(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 2};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static uint8_t buf[HC_PACKET_MAX];
	bool ok;

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		hc_fail("%s: no socket for it", path);
	memcpy(a.sun_path, path, strlen(path));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	ok = !connect(fd, (struct sockaddr *)&a, sizeof(a)) && send_hello(fd) &&
	     recv(fd, buf, sizeof(buf), 0) > (ssize_t)HC_HEAD_BYTES;
	close(fd);
	return ok;
}

static bool ended(struct hc_node *n, int *status)
{
	if (!n->pid || waitpid(n->pid, status, WNOHANG) != n->pid)
		return false;
	n->pid = 0;
	return true;
}

static void fail_ended(const struct hc_node *n, int status, const char *when)
{
	if (WIFSIGNALED(status))
		hc_fail("the daemon in %s was killed by signal %d (%s) %s", n->dir,
			WTERMSIG(status), strsignal(WTERMSIG(status)), when);
	hc_fail("the daemon in %s ended with status %d %s", n->dir, WEXITSTATUS(status), when);
}

static bool answers_or_ended(void *ctx)
{
	struct hc_node *n = ctx;
	int status;

	if (ended(n, &status))
		fail_ended(n, status, "while starting");
	return hc_socket_answers(n->socket);
}

void hc_node_run(struct hc_node *n)
{
	hc_node_launch(n);
	hc_await("the daemon answers a hello", answers_or_ended, n, START_MS);
}

void hc_node_start(struct hc_node *n, unsigned devices, const char *top)
{
	hc_node_prepare(n, devices, top, NULL);
	setenv("HCOMM_SOCKET", n->socket, 1);
	hc_node_run(n);
}

bool hc_node_alive(struct hc_node *n)
{
	int status;

	if (ended(n, &status))
		fail_ended(n, status, "by itself");
	return n->pid != 0;
}

void hc_node_stop(struct hc_node *n)
{
	int status;

	if (!hc_node_alive(n))
		hc_fail("the daemon in %s does not run", n->dir);
	kill(n->pid, SIGTERM);
	status = hc_wait_pid(n->pid, STOP_MS);
	if (status < 0)
		hc_fail("the daemon in %s lives %u ms after SIGTERM", n->dir, hc_patience(STOP_MS));
	n->pid = 0;
	if (status)
		fail_ended(n, status, "at SIGTERM");
}

void hc_node_kill(struct hc_node *n)
{
	if (!hc_node_alive(n))
		hc_fail("the daemon in %s does not run", n->dir);
	kill(n->pid, SIGKILL);
	waitpid(n->pid, NULL, 0);
	n->pid = 0;
}

void hc_node_end(struct hc_node *n)
{
	unsigned i;

	if (n->pid)
		hc_node_stop(n);
	forget(n);
	if (getenv("HC_KEEP"))
		return;
	hc_remove_tree(n->dir);
	for (i = 0; i < DIRS_MAX; i++) {
		if (!strcmp(cleanup.dirs[i], n->dir))
			cleanup.dirs[i][0] = '\0';
	}
}

bool hc_node_logged(const struct hc_node *n, const char *text)
{
	char *log = hc_read_file(n->log);
	bool found = log && strstr(log, text);

	free(log);
	return found;
}

void hc_preload(const char *name)
{
	const char *before = getenv("ASAN_OPTIONS");
	char path[1200], relative[200], options[600];

	snprintf(relative, sizeof(relative), "tests/preload/%s", name);
	setenv("LD_PRELOAD", hc_program(relative, path, sizeof(path)), 1);
	snprintf(options, sizeof(options), "%s%sverify_asan_link_order=0", before ? before : "",
		 before ? ":" : "");
	setenv("ASAN_OPTIONS", options, 1);
}
