/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis is started by us with nothing but the socket, and ended by its process id. Open MPI's
 * program is compiled when it is wanted (peer/mpi_split.c), because the tree must build without
 * Open MPI. Ranks yield when they wait (--oversubscribe): with more ranks than processors that
 * is the setting its users are told to take, and without it a split takes milliseconds.
 */
#include "peers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rawecho.h"

enum { TOOL_REQUESTS = 60000 };

static const char ping[] = "*1\r\n$4\r\nPING\r\n";
static const char pong[] = "+PONG\r\n";

bool peer_installed(const char *program)
{
	const char *dir = getenv("PATH");
	char path[4096];
	size_t n;

	while (dir && *dir) {
		n = strcspn(dir, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, program);
		if (!access(path, X_OK))
			return true;
		dir += n + (dir[n] == ':');
	}
	return false;
}

static void silence(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
}

/* Runs a program, its standard output into `out`; its exit status. */
static int run(char *const argv[], const char *dir, char *out, size_t room)
{
	size_t used = 0;
	ssize_t n;
	int pipes[2], status;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		bench_die("pipe: %s", strerror(errno));
	pid = bench_fork();
	if (!pid) {
		silence();
		dup2(pipes[1], 1);
		setenv("TMPDIR", dir, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(pipes[1]);
	while (used + 1 < room && (n = read(pipes[0], out + used, room - 1 - used)) > 0)
		used += (size_t)n;
	out[used] = '\0';
	close(pipes[0]);
	if (waitpid(pid, &status, 0) != pid)
		bench_die("%s: waitpid: %s", argv[0], strerror(errno));
	return status;
}

bool peer_redis_start(struct peer_redis *r, const char *dir, int cpu)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t limit = bench_now_ns() + 10000000000ull;
	int fd;

	if (!peer_installed("redis-server"))
		return false;
	snprintf(r->path, sizeof(r->path), "%s/redis.sock", dir);
	r->pid = bench_fork();
	if (!r->pid) {
		bench_pin(cpu);
		silence();
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", r->path,
		       "--save", "", "--appendonly", "no", "--dir", dir, (char *)NULL);
		_exit(127);
	}
	while ((fd = floor_connect_unix(r->path, SOCK_STREAM)) < 0) {
		if (bench_now_ns() > limit || waitpid(r->pid, NULL, WNOHANG) == r->pid)
			bench_die("redis-server does not come up on %s", r->path);
		nanosleep(&pause, NULL);
	}
	close(fd);
	return true;
}

void peer_redis_stop(struct peer_redis *r)
{
	bench_kill(r->pid);
	unlink(r->path);
	r->pid = 0;
}

static int redis_connect(void *ctx)
{
	const struct peer_redis *r = ctx;

	return floor_connect_unix(r->path, SOCK_STREAM);
}

static size_t redis_burst(void *ctx, uint32_t first_id, unsigned count, uint8_t *out, size_t room)
{
	size_t one = sizeof(ping) - 1;
	unsigned i;

	(void)ctx;
	(void)first_id;
	if (one * count > room)
		bench_die("redis: %u requests do not fit in one send", count);
	for (i = 0; i < count; i++)
		memcpy(out + i * one, ping, one);
	return one * count;
}

static unsigned redis_answers(void *ctx, const uint8_t *in, size_t bytes, size_t *consumed)
{
	size_t one = sizeof(pong) - 1;
	unsigned n = 0;

	(void)ctx;
	for (; (n + 1) * one <= bytes; n++)
		if (memcmp(in + n * one, pong, one))
			bench_die("redis: an answer that is not +PONG: %.*s", (int)one,
				  (const char *)in + n * one);
	*consumed = n * one;
	return n;
}

void peer_redis_target(struct peer_redis *r, struct loadgen_target *target)
{
	*target = (struct loadgen_target){.name = "redis PING",
					  .ctx = r,
					  .connect = redis_connect,
					  .burst = redis_burst,
					  .answers = redis_answers};
}

double peer_redis_own_tool(const struct peer_redis *r, unsigned clients, unsigned depth)
{
	static const char label[] = "PING_MBULK: ";
	char tool[] = "redis-benchmark", q[] = "-q", t[] = "-t", test[] = "ping_mbulk";
	char s[] = "-s", c[] = "-c", p[] = "-P", n[] = "-n";
	char path[sizeof(r->path)], cs[16], ps[16], ns[16], out[16384];
	char *argv[] = {tool, q, t, test, s, path, c, cs, p, ps, n, ns, NULL};
	const char *at;
	double rate = 0;

	if (!peer_installed(tool))
		return 0;
	snprintf(path, sizeof(path), "%s", r->path);
	snprintf(cs, sizeof(cs), "%u", clients);
	snprintf(ps, sizeof(ps), "%u", depth);
	snprintf(ns, sizeof(ns), "%u", TOOL_REQUESTS * depth);
	if (run(argv, "/tmp", out, sizeof(out)))
		return 0;
	/* it overwrites lines of progress, which begin alike but hold no rate in this form */
	for (at = out; (at = strstr(at, label)); at += sizeof(label) - 1)
		if (sscanf(at + sizeof(label) - 1, "%lf requests per second", &rate) == 1)
			break;
	return rate;
}

/* Compiled once for each directory, from tests/bench/peer/NAME.c. */
static bool mpi_build(const char *compiler, const char *name, const char *dir, char *program,
		      size_t room)
{
	const char *src = getenv("HC_BENCH_SRC");
	char cc[32], o2[] = "-O2", o[] = "-o";
	char source[4096], out[256];
	char *argv[] = {cc, o2, o, program, source, NULL};

	snprintf(cc, sizeof(cc), "%s", compiler);
	snprintf(source, sizeof(source), "%s/peer/%s.c", src ? src : "tests/bench", name);
	snprintf(program, room, "%s/%s-%s", dir, name, compiler);
	return !access(program, X_OK) || !run(argv, dir, out, sizeof(out));
}

/* What the program prints. */
static bool times_of(struct peer_times *m, const char *name, char *const argv[], const char *dir)
{
	char out[512];

	snprintf(m->what, sizeof(m->what), "%s failed", argv[0]);
	if (run(argv, dir, out, sizeof(out)))
		return false;
	if (sscanf(out, "%lf %lf %127[^\n]", &m->p50_us, &m->p99_us, m->what) == 3)
		return true;
	snprintf(m->what, sizeof(m->what), "%s printed no figures", name);
	return false;
}

static bool mpi_ready(struct peer_times *m, const char *compiler, const char *launcher,
		      const char *name, const char *dir, char *program, size_t room)
{
	*m = (struct peer_times){0};
	snprintf(m->what, sizeof(m->what), PEER_NOT_INSTALLED);
	if (!peer_installed(compiler) || !peer_installed(launcher))
		return false;
	snprintf(m->what, sizeof(m->what), "%s.c does not compile", name);
	return mpi_build(compiler, name, dir, program, room);
}

bool peer_mpi_split(struct peer_times *m, const char *dir, unsigned ranks, unsigned turns)
{
	char mpirun[] = "mpirun", root[] = "--allow-run-as-root", over[] = "--oversubscribe";
	char bind[] = "--bind-to", none[] = "none", n[] = "-n", np[16], count[16];
	char program[256];
	char *argv[] = {mpirun, root, over, bind, none, n, np, program, count, NULL};

	snprintf(np, sizeof(np), "%u", ranks);
	snprintf(count, sizeof(count), "%u", turns);
	return mpi_ready(m, "mpicc", "mpirun", "mpi_split", dir, program, sizeof(program)) &&
	       times_of(m, "mpi_split.c", argv, dir);
}

bool peer_mpi_barrier(struct peer_times *m, const char *dir, bool mpich, unsigned ranks,
		      unsigned turns, const int cpus[2])
{
	char openmpi[] = "mpirun", root[] = "--allow-run-as-root", over[] = "--oversubscribe";
	char bind[] = "--bind-to", none[] = "none", n[] = "-n", np[16], count[16], cpu[2][16];
	char hydra[] = "mpirun.mpich", program[256];
	char *theirs[] = {openmpi, root,    over,  bind,   none,   n,
			  np,      program, count, cpu[0], cpu[1], NULL};
	char *other[] = {hydra, n, np, program, count, cpu[0], cpu[1], NULL};

	snprintf(np, sizeof(np), "%u", ranks);
	snprintf(count, sizeof(count), "%u", turns);
	snprintf(cpu[0], sizeof(cpu[0]), "%d", cpus[0]);
	snprintf(cpu[1], sizeof(cpu[1]), "%d", cpus[1]);
	if (mpich)
		return mpi_ready(m, "mpicc.mpich", hydra, "mpi_barrier", dir, program,
				 sizeof(program)) &&
		       times_of(m, "mpi_barrier.c", other, dir);
	return mpi_ready(m, "mpicc", "mpirun", "mpi_barrier", dir, program, sizeof(program)) &&
	       times_of(m, "mpi_barrier.c", theirs, dir);
}

/* Debian's python, whose package torch is; another one on the path does not have it. */
bool peer_gloo_group(struct peer_times *m, const char *dir, unsigned ranks, unsigned turns)
{
	const char *src = getenv("HC_BENCH_SRC");
	char python[] = "/usr/bin/python3", script[4096], np[16], count[16], at[256];
	char *argv[] = {python, script, np, count, at, NULL};
	bool have;

	*m = (struct peer_times){0};
	snprintf(m->what, sizeof(m->what), PEER_NOT_INSTALLED);
	if (access(python, X_OK) || access("/usr/lib/python3/dist-packages/torch", R_OK))
		return false;
	snprintf(script, sizeof(script), "%s/peer/gloo_group.py", src ? src : "tests/bench");
	snprintf(np, sizeof(np), "%u", ranks);
	snprintf(count, sizeof(count), "%u", turns);
	snprintf(at, sizeof(at), "%s/gloo.XXXXXX", dir);
	if (!mkdtemp(at))
		bench_die("%s: %s", at, strerror(errno));
	have = times_of(m, "gloo_group.py", argv, dir);
	strcat(at, "/gloo");
	unlink(at);
	*strrchr(at, '/') = '\0';
	rmdir(at);
	return have;
}

static bool qb_run(char *program, int client_cpu, int server_cpu, unsigned bytes, unsigned turns,
		   const char *dir, double *us)
{
	char client[16], server[16], size[16], count[16], out[256];
	char *argv[] = {program, client, server, size, count, NULL};

	snprintf(client, sizeof(client), "%d", client_cpu);
	snprintf(server, sizeof(server), "%d", server_cpu);
	snprintf(size, sizeof(size), "%u", bytes);
	snprintf(count, sizeof(count), "%u", turns);
	return !run(argv, dir, out, sizeof(out)) && sscanf(out, "%lf", us) == 1;
}

bool peer_qb_echo(struct peer_qb *q, const char *dir, int client_cpu, int server_cpu,
		  unsigned turns)
{
	const char *src = getenv("HC_BENCH_SRC");
	char cc[] = "cc", o2[] = "-O2", o[] = "-o", lib[] = "-lqb";
	char source[4096], program[256], out[256];
	char *argv[] = {cc, o2, o, program, source, lib, NULL};

	*q = (struct peer_qb){0};
	snprintf(q->what, sizeof(q->what), PEER_NOT_INSTALLED);
	snprintf(source, sizeof(source), "%s/peer/qb_echo.c", src ? src : "tests/bench");
	snprintf(program, sizeof(program), "%s/qb_echo", dir);
	if (access("/usr/include/qb/qbipcs.h", R_OK) || !peer_installed(cc))
		return false;
	snprintf(q->what, sizeof(q->what), "qb_echo.c does not compile");
	if (access(program, X_OK) && run(argv, dir, out, sizeof(out)))
		return false;
	snprintf(q->what, sizeof(q->what), "qb_echo failed");
	if (!qb_run(program, client_cpu, server_cpu, 8, turns, dir, &q->us_8) ||
	    !qb_run(program, client_cpu, server_cpu, 64, turns, dir, &q->us_64))
		return false;
	snprintf(q->what, sizeof(q->what), "installed");
	return true;
}
