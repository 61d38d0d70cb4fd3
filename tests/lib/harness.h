/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Harness of the tests that run real programs.
 *
 * A struct hc_node is a private hcommd: its own fresh directory with configuration, socket,
 * state and log, and simulated devices. Nothing is shared with another test or with a daemon that
 * the machine may run. Programs are found beside the test ($O/hcommd above $O/tests/...), or
 * where HC_BIN says.
 *
 * A test waits for conditions, never for time: every wait has a deadline and fails naming what it
 * waited for. HC_SLOW=n multiplies all deadlines (sanitizers, emulation).
 *
 * What goes wrong ends the process by exit(1), so that the clean-up at exit runs: the log of a
 * daemon that was not stopped in order is shown, all processes that this one started are killed,
 * directories go. Nothing here needs libcheck, so the benchmarks use it too.
 *
 * A daemon that ends by itself, is killed by a signal, or does not exit 0 at SIGTERM fails the
 * test.
 */
#ifndef HC_HARNESS_H
#define HC_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Prints file, line and text, and ends the process with 1. */
#define hc_fail(...) hc_fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define hc_want(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			hc_fail("not so: %s", #x);                                                 \
	} while (0)
_Noreturn void hc_fail_at(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Around all tests of a program: libcheck ends a test that failed by _exit, so its clean-up does
 * not run. Directories then lie below one of this process, which shows the logs that it finds
 * there when a test failed, and removes it.
 */
void hc_tests_begin(void);
void hc_tests_end(bool failed);

/* ---- time ---- */
uint64_t hc_now_ns(void);
uint64_t hc_now_ms(void);
/* `ms` times HC_SLOW. */
unsigned hc_patience(unsigned ms);
/* Polls about twice a millisecond. False when the deadline passed; `deadline_ms` is patience. */
bool hc_wait_until(bool (*cond)(void *ctx), void *ctx, unsigned deadline_ms);
/* As above, but failing the test with `what`. */
void hc_await(const char *what, bool (*cond)(void *ctx), void *ctx, unsigned deadline_ms);

/* ---- files ---- */
/* A fresh directory, removed at exit unless HC_KEEP is set. */
void hc_tempdir(char *out, size_t size);
void hc_write_file(const char *path, const char *text);
/* By rename, so that a reader sees the old or the new one whole. */
void hc_replace_file(const char *path, const char *text);
/* Whole file, with NUL; free it. NULL when it cannot be read. */
char *hc_read_file(const char *path);
void hc_remove_tree(const char *path);
/* Path of a built program or library ("hcommd", "hcommctl", "libhcomm.so.1"). */
const char *hc_program(const char *name, char *out, size_t size);
/* What this process executes from now on loads tests/preload/NAME first, also before a sanitizer.
 */
void hc_preload(const char *name);
/* A complete rank table (1.0): `nranks` spread evenly over `nservers`; devices 0.. on each. */
void hc_table_write(const char *path, unsigned nranks, unsigned nservers);
/* Entries of /proc/self/fd, and threads, of this process. */
unsigned hc_count_fds(void);
unsigned hc_count_threads(void);
/* Lines of /proc/self/maps that have `text`. */
unsigned hc_count_maps(const char *text);

/* ---- a daemon ---- */
struct hc_node {
	char dir[128];
	char socket[160];
	char conf[160];
	char log[160];
	pid_t pid; /* 0: not running */
	unsigned starts;
	void (*before_exec)(void *arg); /* in the child, or NULL */
	void *arg;
};

/* Make directory and configuration; `top` are more options, `sections` more sections, or NULL. */
void hc_node_prepare(struct hc_node *n, unsigned devices, const char *top, const char *sections);
/* Start, or start again, and wait until it answers a hello. */
void hc_node_run(struct hc_node *n);
/* Start without waiting. */
void hc_node_launch(struct hc_node *n);
/* prepare and run; `top` may be NULL. HCOMM_SOCKET is set for this process and its children. */
void hc_node_start(struct hc_node *n, unsigned devices, const char *top);
/* SIGTERM; must exit 0 within its time. The directory stays. */
void hc_node_stop(struct hc_node *n);
void hc_node_kill(struct hc_node *n); /* SIGKILL, and wait */
/* Stop (if it runs) and remove the directory. */
void hc_node_end(struct hc_node *n);
bool hc_node_alive(struct hc_node *n);
/* Does the log hold `text`? */
bool hc_node_logged(const struct hc_node *n, const char *text);
/* Does a daemon answer a hello at this socket? */
bool hc_socket_answers(const char *path);

/* ---- children: rank processes ---- */
struct hc_child {
	pid_t pid; /* 0: ended and waited for */
	int in;    /* what the child writes to its `out` */
	int out;   /* what the child reads from its `in` */
	int status;
};
/* The function's result (0..125) becomes the exit status. It may use check's assertions. */
typedef int (*hc_child_fn)(void *arg, int in, int out);
void hc_spawn(struct hc_child *c, hc_child_fn fn, void *arg);
/* Exit status, or 128 + signal. Fails the test at the deadline. */
int hc_child_wait(struct hc_child *c, unsigned deadline_ms);
void hc_child_kill(struct hc_child *c); /* SIGKILL, and wait */
/* Read exactly `n` bytes from the child, or fail. */
void hc_child_read(struct hc_child *c, void *buf, size_t n, unsigned deadline_ms);
void hc_child_tell(struct hc_child *c, const void *buf, size_t n);
/* The child's ends: exactly `n` bytes, or the process ends with 1. */
void hc_tell(int fd, const void *buf, size_t n);
void hc_hear(int fd, void *buf, size_t n, unsigned deadline_ms);
/* Kill everything that this process spawned. */
void hc_children_kill(void);

/* ---- programs ---- */
#define HC_RUN_BYTES (256u * 1024u)
struct hc_run {
	int status; /* exit status, or 128 + signal; 124: killed at the deadline */
	size_t out_bytes, err_bytes;
	char out[HC_RUN_BYTES]; /* NUL-terminated, cut if longer */
	char err[HC_RUN_BYTES];
};
/* Run a program (a path) with arguments up to NULL; standard input is empty. */
int hc_run(struct hc_run *r, unsigned deadline_ms, char *const argv[]);
/* hcommctl of this build with HCOMM_SOCKET of the node; arguments up to NULL. Returns the status.
 */
int hc_ctl(struct hc_run *r, const struct hc_node *n, ...) __attribute__((sentinel));

/* Of the harness itself. */
void hc_at_exit_arm(void);
void hc_at_exit_nodes(void);
void hc_at_exit_children(void);
int hc_wait_pid(pid_t pid, unsigned deadline_ms); /* -1 at the deadline */

#endif
