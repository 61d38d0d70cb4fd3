/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon under test is $O/hcommd with a configuration of its own below the temporary
 * directory: no discovery (an empty tree stands for sysfs), simulated devices, no key and so no
 * port to other nodes, no metrics. What is left is what every node does. It counts as started
 * when it answers a hello, and it dies with the benchmark.
 */
#include "ours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "rawecho.h"

enum {
	START_SECONDS_MAX = 20,
	DEVICES_MAX = 64,
};

struct ours {
	pid_t pid;
	char dir[128];
	char socket[160];
	char config[160];
	char log[160];
};

void ours_must(int r, const char *what)
{
	if (r < 0)
		bench_die("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

const char *ours_socket(const struct ours *o)
{
	return o->socket;
}

pid_t ours_pid(const struct ours *o)
{
	return o->pid;
}

static void make_dir(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mkdir(path, 0700) && errno != EEXIST)
		bench_die("cannot make %s: %s", path, strerror(errno));
}

static void write_config(const struct ours *o, unsigned devices)
{
	char text[8192];
	size_t used;
	unsigned i;

	used = (size_t)snprintf(text, sizeof(text),
				"instance = bench\n"
				"node_name = bench\n"
				"runtime_dir = %s/run\n"
				"state_dir = %s/state\n"
				"sysfs_root = %s/sys\n"
				"key_file = %s/no.key\n"
				"socket = %s\n"
				"socket_mode = 0600\n"
				"metrics_socket =\n"
				"log_target = stderr\n"
				"log_level = warn\n",
				o->dir, o->dir, o->dir, o->dir, o->socket);
	for (i = 0; i < devices && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "[device %u]\nkind = npu\nsimulated = yes\n", i);
	if (used >= sizeof(text))
		bench_die("a configuration with %u devices is too long", devices);
	bench_write_file(o->config, text);
}

_Noreturn static void be_daemon(const struct ours *o, int cpu)
{
	const char *dir = getenv("O");
	char program[4096];
	int fd;

	snprintf(program, sizeof(program), "%s/hcommd", dir && *dir ? dir : "build");
	bench_pin(cpu);
	fd = open(o->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		bench_die("cannot write %s: %s", o->log, strerror(errno));
	dup2(fd, 1);
	dup2(fd, 2);
	execl(program, "hcommd", "--config", o->config, (char *)NULL);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static void show_log(const struct ours *o)
{
	FILE *f = fopen(o->log, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		fprintf(stderr, "bench:   %s", line);
	if (f)
		fclose(f);
}

static void wait_answer(struct ours *o)
{
	uint64_t limit = bench_now_ns() + START_SECONDS_MAX * 1000000000ull;
	const struct timespec pause = {.tv_nsec = 5000000};
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;

	args.socket = o->socket;
	while (hcomm_open(&args, &s) < 0) {
		if (waitpid(o->pid, NULL, WNOHANG) == o->pid || bench_now_ns() > limit) {
			show_log(o);
			bench_die("hcommd does not answer on %s: %s", o->socket,
				  hcomm_last_error());
		}
		nanosleep(&pause, NULL);
	}
	hcomm_close(s);
}

struct ours *ours_start(unsigned devices, int cpu)
{
	struct ours *o = calloc(1, sizeof(*o));

	if (!o || !devices || devices > DEVICES_MAX)
		bench_die("a daemon with %u devices; wanted: 1 to %d", devices, DEVICES_MAX);
	snprintf(o->dir, sizeof(o->dir), "%s/d", bench_tmpdir());
	snprintf(o->socket, sizeof(o->socket), "%s/s", o->dir);
	snprintf(o->config, sizeof(o->config), "%s/conf", o->dir);
	snprintf(o->log, sizeof(o->log), "%s/log", o->dir);
	make_dir(o->dir, "");
	make_dir(o->dir, "run");
	make_dir(o->dir, "state");
	make_dir(o->dir, "sys");
	write_config(o, devices);
	o->pid = bench_fork();
	if (!o->pid)
		be_daemon(o, cpu);
	wait_answer(o);
	return o;
}

struct ours *ours_stop(struct ours *o)
{
	bench_kill(o->pid);
	free(o);
	return NULL;
}

void ours_write_table(const char *path, unsigned first_device, unsigned ranks)
{
	char text[8192];
	size_t used;
	unsigned r;

	used = (size_t)snprintf(text, sizeof(text),
				"{\"version\": \"1.0\", \"status\": \"completed\", "
				"\"server_count\": \"1\", \"server_list\": [\n"
				"  {\"server_id\": \"bench\", \"host_ip\": \"127.0.0.1\", "
				"\"device\": [");
	for (r = 0; r < ranks && used < sizeof(text); r++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s\n    {\"device_id\": \"%u\", \"rank_id\": \"%u\"}",
					 r ? "," : "", first_device + r, r);
	if (used < sizeof(text))
		used += (size_t)snprintf(text + used, sizeof(text) - used, "]}]}\n");
	if (used >= sizeof(text))
		bench_die("a rank table of %u ranks is too long", ranks);
	bench_write_file(path, text);
}
