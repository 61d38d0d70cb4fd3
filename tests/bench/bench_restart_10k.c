/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a daemon with 10,000 stored domains of 8 ranks answers its first hello, after kill -9, in
 * at most twice the time that a bare reader needs: a program linked with the same libraries that
 * is executed, opens a copy of the same database with its log, reads all rows, and says so.
 *
 * One process made the domains and lives on, so every one of them is taken back: decoded, its
 * record published, its process watched. Each round kills the daemon, lets the reader run over
 * what is left, and starts the daemon again; both from fork and exec, on the same processor. Who
 * asks the daemon again and again is on the other one, and takes nothing of its time. Beside it
 * redis loads as many keys of the size of a row until it answers PING.
 *
 * As on a real node the runtime directory is in memory (/run is a tmpfs, here /dev/shm) and the
 * database is on a disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "frame.h"
#include "harness.h"
#include "ours.h"
#include "peers.h"
#include "rawecho.h"

#define NAME "restart_10k"
#define GOAL 2.0

enum { DOMAINS = 10000, RANKS = 8, ROUNDS = 11, VALUE = 400 };

static struct hc_node node;
static char self[1024], copy[256];
static char run_dir[] = "/dev/shm/hcomm-bench.XXXXXX";
static uint64_t row_bytes;
static int cpus[2]; /* who asks, and who starts */

static void pin(void *arg)
{
	(void)arg;
	bench_pin(cpus[1]);
}

/* ---- ours ---- */

static void own_domains(int ready)
{
	static const uint32_t devices[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;
	hcomm_domain d;
	int i;

	args.socket = node.socket;
	ours_must(hcomm_open(&args, &s), "hcomm_open");
	for (i = 0; i < DOMAINS; i++)
		ours_must(hcomm_join_all_local(s, devices, RANKS, NULL, 60000, &d), "join");
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t make_domains(void)
{
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		bench_die("pipe: %s", strerror(errno));
	pid = bench_fork();
	if (!pid)
		own_domains(pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1)
		bench_die("the domains were not made");
	close(pipes[0]);
	return pid;
}

static bool answers(void)
{
	struct hc_m_hello m = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("bench")};
	uint8_t buf[1024];
	size_t len;
	int fd = floor_connect_unix(node.socket, SOCK_SEQPACKET);
	bool ok;

	if (fd < 0)
		return false;
	ok = !hc_frame_write(buf, sizeof(buf), &hc_desc_hello, 1, 1, 0, &m, &len) &&
	     send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len &&
	     recv(fd, buf, sizeof(buf), 0) > (ssize_t)HC_HEAD_BYTES;
	close(fd);
	return ok;
}

static void nap(void)
{
	const struct timespec t = {.tv_nsec = 100000};

	nanosleep(&t, NULL);
}

static double our_start(void *ctx)
{
	uint64_t began, limit;

	(void)ctx;
	began = bench_now_ns();
	limit = began + 60000000000ull;
	hc_node_launch(&node);
	while (!answers()) {
		if (bench_now_ns() > limit)
			bench_die("the daemon does not answer");
		nap();
	}
	return (double)(bench_now_ns() - began);
}

/* ---- the floor ---- */

/* This program again, as a bare reader: a byte on standard output when all is read. */
static int read_all(const char *path)
{
	sqlite3_stmt *s;
	uint64_t sum = 0;
	sqlite3 *h;

	if (sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    sqlite3_exec(h, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(h, "SELECT id,row FROM domain ORDER BY seq", -1, &s, NULL) !=
		    SQLITE_OK)
		return 1;
	while (sqlite3_step(s) == SQLITE_ROW) {
		const uint8_t *row = sqlite3_column_blob(s, 1);
		int i, n = sqlite3_column_bytes(s, 1);

		for (i = 0; i < n; i++)
			sum += row[i];
	}
	/* what is not used is not read */
	if (write(1, sum ? "r" : "0", 1) != 1)
		return 1;
	_exit(0);
}

static double floor_start(void *ctx)
{
	uint64_t began, took;
	int pipes[2], status;
	char byte = 0;
	pid_t pid;

	(void)ctx;
	if (pipe2(pipes, O_CLOEXEC))
		bench_die("pipe: %s", strerror(errno));
	began = bench_now_ns();
	pid = bench_fork();
	if (!pid) {
		pin(NULL);
		dup2(pipes[1], 1);
		execl(self, self, "--read", copy, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1 || byte != 'r')
		bench_die("the bare reader read nothing");
	took = bench_now_ns() - began;
	close(pipes[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("the bare reader ended with status %d", status);
	return (double)took;
}

static void copy_file(const char *from, const char *to)
{
	char command[1200];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	if (system(command))
		bench_die("%s", command);
}

static void copy_database(void)
{
	char from[256], to[300];

	snprintf(from, sizeof(from), "%s/state/state.db", node.dir);
	copy_file(from, copy);
	snprintf(from, sizeof(from), "%s/state/state.db-wal", node.dir);
	snprintf(to, sizeof(to), "%s-wal", copy);
	if (access(from, F_OK))
		unlink(to);
	else
		copy_file(from, to);
}

/* ---- redis ---- */

static pid_t redis_exec(const char *dir, const char *path)
{
	pid_t pid = bench_fork();

	if (!pid) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		pin(NULL);
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path,
		       "--save", "", "--appendonly", "no", "--dir", dir, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Sends, and reads what comes back until it ends with the text. */
static bool redis_ask(int fd, const char *bytes, size_t n, const char *end)
{
	char in[65536];
	ssize_t got;

	if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		return false;
	got = recv(fd, in, sizeof(in) - 1, 0);
	return got >= (ssize_t)strlen(end) && !memcmp(in + got - strlen(end), end, strlen(end));
}

static double redis_start(const char *dir, const char *path, pid_t *pid)
{
	static const char ping[] = "*1\r\n$4\r\nPING\r\n";
	uint64_t began = bench_now_ns(), limit = began + 30000000000ull;
	int fd;
	bool ok = false;

	unlink(path);
	*pid = redis_exec(dir, path);
	while (!ok) {
		fd = floor_connect_unix(path, SOCK_STREAM);
		ok = fd >= 0 && redis_ask(fd, ping, sizeof(ping) - 1, "+PONG\r\n");
		if (fd >= 0)
			close(fd);
		if (bench_now_ns() > limit)
			bench_die("redis-server does not come up");
		if (!ok)
			nap();
	}
	return (double)(bench_now_ns() - began);
}

static void redis_fill(const char *path)
{
	static char value[VALUE + 1], out[VALUE + 128];
	int fd = floor_connect_unix(path, SOCK_STREAM), i, n;

	memset(value, 'v', VALUE);
	for (i = 0; i < DOMAINS; i++) {
		n = snprintf(out, sizeof(out), "*3\r\n$3\r\nSET\r\n$10\r\nd%09d\r\n$%d\r\n%s\r\n",
			     i, VALUE, value);
		if (fd < 0 || !redis_ask(fd, out, (size_t)n, "+OK\r\n"))
			bench_die("redis does not take a key");
	}
	if (!redis_ask(fd, "*1\r\n$4\r\nSAVE\r\n", 14, "+OK\r\n"))
		bench_die("redis does not save");
	close(fd);
}

/* Median of as many starts as rounds, with the keys in an RDB file; 0: not installed. */
static double ask_redis(size_t rounds)
{
	double v[BENCH_ROUNDS_MAX];
	char path[300];
	pid_t pid;
	size_t i;

	if (!peer_installed("redis-server"))
		return 0;
	snprintf(path, sizeof(path), "%s/redis.sock", bench_tmpdir());
	redis_start(bench_tmpdir(), path, &pid);
	redis_fill(path);
	bench_kill(pid);
	for (i = 0; i < rounds; i++) {
		v[i] = redis_start(bench_tmpdir(), path, &pid);
		bench_kill(pid);
	}
	return bench_median(v, rounds);
}

/* ---- the contest ---- */

static void run_in_memory(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/run", node.dir);
	if (!mkdtemp(run_dir) || rmdir(path) || symlink(run_dir, path))
		bench_die("%s: %s", run_dir, strerror(errno));
}

static void prepare(void)
{
	char *text, *at;

	hc_node_prepare(&node, RANKS, NULL, NULL);
	run_in_memory();
	node.before_exec = pin;
	text = hc_read_file(node.conf);
	at = text ? strstr(text, "log_level = debug\n") : NULL;
	if (!at)
		bench_die("no log level in %s", node.conf);
	memcpy(at, "log_level = info\n\n", 18);
	bench_write_file(node.conf, text);
	free(text);
	snprintf(copy, sizeof(copy), "%s/copy.db", bench_tmpdir());
	hc_node_run(&node);
}

static double our_round(void *ctx)
{
	hc_node_kill(&node);
	return our_start(ctx);
}

static double floor_round(void *ctx)
{
	/* of the running daemon: what it has committed is in the two files */
	copy_database();
	return floor_start(ctx);
}

static void report(const struct bench_table *t, double redis_ns)
{
	double ratio = bench_table_ratio(t, 0, 1);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "domains", DOMAINS);
	bench_line_int(&l, "ranks", RANKS);
	bench_line_num(&l, "ms", bench_table_median(t, 0) / 1e6, 2);
	bench_line_num(&l, "floor_ms", bench_table_median(t, 1) / 1e6, 2);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_int(&l, "database_bytes", row_bytes);
	if (redis_ns > 0)
		bench_line_num(&l, "redis_rdb_ms", redis_ns / 1e6, 2);
	else
		bench_line_str(&l, "redis", PEER_NOT_INSTALLED);
	bench_line_bool(&l, "met", ratio <= GOAL);
	bench_line_print(&l);
}

int main(int argc, char **argv)
{
	static const struct bench_side sides[2] = {{"ours", our_round, NULL},
						   {"bare reader", floor_round, NULL}};
	static struct bench_table t;
	size_t rounds = bench_rounds(ROUNDS);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct stat st;
	pid_t owner;

	if (argc == 3 && !strcmp(argv[1], "--read"))
		return read_all(argv[2]);
	if (n <= 0)
		bench_die("/proc/self/exe: %s", strerror(errno));
	bench_line_machine(NAME);
	bench_cpus(&cpus[0], &cpus[1]);
	prepare();
	owner = make_domains();
	bench_pin(cpus[0]);
	bench_interleave(sides, 2, rounds, &t);
	row_bytes = stat(copy, &st) ? 0 : (uint64_t)st.st_size;
	report(&t, ask_redis(rounds));
	bench_kill(owner);
	hc_node_end(&node);
	hc_remove_tree(run_dir);
	return 0;
}
