/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of a test: rank processes made by fork, and programs with captured output.
 *
 * A child dies with the process that made it (PR_SET_PDEATHSIG), and is waited for through a
 * pidfd, so that a deadline needs neither a signal nor a sleep. A child has a pipe each way; both
 * ends are close-on-exec.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MAX = 1024, ARGS_MAX = 64, CTL_MS = 20000 };

static struct hc_child *children[CHILDREN_MAX];
static pid_t children_of;

/* ---- waiting ---- */

static int poll_until(struct pollfd *p, nfds_t n, uint64_t end_ns)
{
	uint64_t now = hc_now_ns();
	int r;

	if (now >= end_ns)
		return poll(p, n, 0);
	r = poll(p, n, (int)((end_ns - now + 999999) / 1000000));
	return r < 0 && errno == EINTR ? 1 : r;
}

int hc_wait_pid(pid_t pid, unsigned deadline_ms)
{
	uint64_t end = hc_now_ns() + hc_patience(deadline_ms) * UINT64_C(1000000);
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), status = -1;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		hc_fail("pidfd_open %d: %s", (int)pid, strerror(errno));
	while (waitpid(pid, &status, WNOHANG) != pid) {
		status = -1;
		if (!poll_until(&p, 1, end))
			break;
	}
	close(fd);
	return status;
}

static int plain(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- children ---- */

void hc_at_exit_children(void)
{
	hc_children_kill();
}

static void keep(struct hc_child *c)
{
	unsigned i;

	hc_at_exit_arm();
	if (children_of != getpid()) {
		memset(children, 0, sizeof(children));
		children_of = getpid();
	}
	for (i = 0; i < CHILDREN_MAX; i++) {
		if (children[i])
			continue;
		children[i] = c;
		return;
	}
	hc_fail("more than %d children at once", CHILDREN_MAX);
}

static void drop(struct hc_child *c)
{
	unsigned i;

	c->pid = 0;
	close(c->in);
	close(c->out);
	for (i = 0; i < CHILDREN_MAX; i++) {
		if (children[i] == c)
			children[i] = NULL;
	}
}

void hc_spawn(struct hc_child *c, hc_child_fn fn, void *arg)
{
	pid_t parent = getpid();
	int up[2], down[2];

	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC))
		hc_fail("pipe: %s", strerror(errno));
	fflush(NULL);
	*c = (struct hc_child){.in = up[0], .out = down[1]};
	keep(c);
	c->pid = fork();
	if (c->pid < 0)
		hc_fail("fork: %s", strerror(errno));
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() && getppid() != parent) /* 0: it is outside of our namespace */
			_exit(1);
		close(up[0]);
		close(down[1]);
		exit(fn(arg, down[0], up[1]));
	}
	close(up[1]);
	close(down[0]);
}

int hc_child_wait(struct hc_child *c, unsigned deadline_ms)
{
	int status;

	if (!c->pid)
		return c->status;
	status = hc_wait_pid(c->pid, deadline_ms);
	if (status < 0)
		hc_fail("child %d still runs after %u ms", (int)c->pid, hc_patience(deadline_ms));
	c->status = plain(status);
	drop(c);
	return c->status;
}

void hc_child_kill(struct hc_child *c)
{
	int status = 0;

	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, &status, 0);
	c->status = plain(status);
	drop(c);
}

void hc_children_kill(void)
{
	unsigned i;

	if (children_of != getpid())
		return;
	for (i = 0; i < CHILDREN_MAX; i++) {
		if (children[i])
			hc_child_kill(children[i]);
	}
}

void hc_hear(int fd, void *buf, size_t n, unsigned deadline_ms)
{
	uint64_t end = hc_now_ns() + hc_patience(deadline_ms) * UINT64_C(1000000);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char *to = buf;
	ssize_t got;

	while (n) {
		if (!poll_until(&p, 1, end))
			hc_fail("nothing heard for %u ms", hc_patience(deadline_ms));
		got = read(fd, to, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			hc_fail("the other end closed, %zu bytes early", n);
		to += got;
		n -= (size_t)got;
	}
}

void hc_tell(int fd, const void *buf, size_t n)
{
	const char *from = buf;
	ssize_t put;

	while (n) {
		put = write(fd, from, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			hc_fail("cannot tell the other end: %s", strerror(errno));
		from += put;
		n -= (size_t)put;
	}
}

void hc_child_read(struct hc_child *c, void *buf, size_t n, unsigned deadline_ms)
{
	hc_hear(c->in, buf, n, deadline_ms);
}

void hc_child_tell(struct hc_child *c, const void *buf, size_t n)
{
	hc_tell(c->out, buf, n);
}

/* ---- programs ---- */

_Noreturn static void exec_program(char *const argv[], pid_t parent, int out, int err)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || null < 0)
		_exit(127);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	execv(argv[0], argv);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* False at the end of the stream. What does not fit is read and dropped. */
static bool take(int fd, char *buf, size_t *have)
{
	char rest[4096];
	size_t room = HC_RUN_BYTES - 1 - *have;
	ssize_t n = room ? read(fd, buf + *have, room) : read(fd, rest, sizeof(rest));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (room)
		*have += (size_t)n;
	return true;
}

/* Until both streams end. False at the deadline. */
static bool collect(struct hc_run *r, int out, int err, uint64_t end)
{
	struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (!poll_until(p, 2, end))
			return false;
		if (p[0].revents && !take(out, r->out, &r->out_bytes))
			p[0].fd = -1;
		if (p[1].revents && !take(err, r->err, &r->err_bytes))
			p[1].fd = -1;
	}
	return true;
}

int hc_run(struct hc_run *r, unsigned deadline_ms, char *const argv[])
{
	uint64_t end = hc_now_ns() + hc_patience(deadline_ms) * UINT64_C(1000000);
	int out[2], err[2], status = -1;
	pid_t parent = getpid(), pid;

	r->out_bytes = r->err_bytes = 0;
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		hc_fail("pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		hc_fail("fork: %s", strerror(errno));
	if (!pid)
		exec_program(argv, parent, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (collect(r, out[0], err[0], end))
		status = hc_wait_pid(pid, deadline_ms);
	if (status < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(out[0]);
	close(err[0]);
	r->out[r->out_bytes] = r->err[r->err_bytes] = '\0';
	r->status = status < 0 ? 124 : plain(status);
	return r->status;
}

int hc_ctl(struct hc_run *r, const struct hc_node *n, ...)
{
	char program[1200], *argv[ARGS_MAX];
	unsigned argc = 0;
	va_list ap;

	argv[argc++] = program;
	va_start(ap, n);
	while (argc < ARGS_MAX - 1 && (argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	argv[argc] = NULL;
	hc_program("hcommctl", program, sizeof(program));
	setenv("HCOMM_SOCKET", n->socket, 1);
	return hc_run(r, CTL_MS, argv);
}
