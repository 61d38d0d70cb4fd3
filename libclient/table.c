/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining by a rank table: the file goes to the daemon as contents, never as a path.
 *
 * The daemon runs as another user, perhaps in another mount namespace, so it opens nothing of
 * ours: the file is read here, bounded, and travels in the message, or when it is large in a
 * memfd that is sealed before it is sent. What the table says is judged by the daemon alone.
 *
 * A scheduler often mounts a table that says "initializing" and replaces it once all addresses
 * are known, mostly by a rename or by turning a symbolic link. The daemon answers NOT_READY to
 * such a one; then the directory is watched (a watch on the file would stay with the old file)
 * and the file read again at each change, and each second in any case, since not all file
 * systems report changes made elsewhere.
 */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_BYTES_MAX (64u << 20)
#define IN_MESSAGE_MAX  32768u /* bytes; a larger table travels in a memfd */
#define LOOK_AGAIN_NS   HC_SECOND

/* ---- reading ---- */

static int open_table(const char *path, int *fd)
{
	struct stat st;

	/* O_NONBLOCK: a FIFO must not hold us up before it is seen to be one */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd < 0) {
		int error = errno;

		return hc_refuse(error == EACCES || error == EPERM     ? HC_E_PERMISSION
				 : error == ENOENT || error == ENOTDIR ? HC_E_NOT_FOUND
								       : HC_E_SYSTEM,
				 "rank table %s: cannot be opened: %s", path, strerror(error));
	}
	if (fstat(*fd, &st))
		return hc_refuse(HC_E_SYSTEM, "rank table %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return hc_refuse(HC_E_INVALID, "rank table %s: %s; wanted: a file", path,
				 strerror(EISDIR));
	if (!S_ISREG(st.st_mode))
		return hc_refuse(HC_E_INVALID, "rank table %s: not a regular file", path);
	if (st.st_size > (off_t)TABLE_BYTES_MAX)
		return hc_refuse(HC_E_LIMIT, "rank table %s: %lld bytes; wanted: at most %u", path,
				 (long long)st.st_size, TABLE_BYTES_MAX);
	return 0;
}

/* Read on, up to `max` bytes: *n of them, fewer only at the end of the file. */
static int read_some(const char *path, int fd, char *buf, size_t max, size_t *n)
{
	ssize_t got;

	for (*n = 0; *n < max; *n += (size_t)got) {
		got = read(fd, buf + *n, max - *n);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got < 0)
			return hc_refuse(HC_E_SYSTEM, "rank table %s: reading: %s", path,
					 strerror(errno));
		else if (!got)
			break;
	}
	return 0;
}

static int write_all(int fd, const char *bytes, size_t n)
{
	ssize_t put;

	while (n) {
		put = write(fd, bytes, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return hc_refuse(HC_E_SYSTEM, "copying a rank table: %s", strerror(errno));
		bytes += put;
		n -= (size_t)put;
	}
	return 0;
}

/* What was read so far and the rest of the file go into `to`. */
static int copy(const char *path, int from, char *buf, size_t n, int to)
{
	size_t total = 0;
	int r = 0;

	while (!r && n) {
		total += n; /* it may grow while it is read */
		if (total > TABLE_BYTES_MAX)
			return hc_refuse(HC_E_LIMIT, "rank table %s: more than %u bytes", path,
					 TABLE_BYTES_MAX);
		r = write_all(to, buf, n);
		if (!r)
			r = read_some(path, from, buf, IN_MESSAGE_MAX, &n);
	}
	return r;
}

static int seal(const char *path, int from, char *buf, size_t n, int *out)
{
	int to = memfd_create("hcomm-table", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

	if (to < 0)
		return hc_refuse(HC_E_SYSTEM, "memfd_create: %s", strerror(errno));
	r = copy(path, from, buf, n, to);
	if (!r && fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		r = hc_refuse(HC_E_SYSTEM, "sealing a memfd: %s", strerror(errno));
	if (r)
		close(to);
	else
		*out = to;
	return r;
}

/* The contents of the file: in `buf` (*text), or when they are more, in a sealed memfd (*out). */
static int read_table(const char *path, char *buf, struct hc_str *text, int *out)
{
	int from, r = open_table(path, &from);
	size_t n;

	if (!r)
		r = read_some(path, from, buf, IN_MESSAGE_MAX, &n);
	if (!r && n < IN_MESSAGE_MAX)
		*text = (struct hc_str){buf, (uint32_t)n};
	else if (!r)
		r = seal(path, from, buf, n, out);
	if (from >= 0)
		close(from);
	return r;
}

/* ---- waiting for another one ---- */

static int watch_directory(const char *path)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char *copy_of = strdup(path);

	/* without a watch (a limit is reached) there is still the look each second */
	if (fd >= 0 && copy_of)
		inotify_add_watch(fd, dirname(copy_of),
				  IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB);
	free(copy_of);
	return fd;
}

static void wait_change(int watch, uint64_t deadline)
{
	struct pollfd p = {.fd = watch, .events = POLLIN};
	uint64_t now = hc_now(), left = deadline > now ? deadline - now : 0;
	struct timespec t;
	char events[4096];

	if (left > LOOK_AGAIN_NS)
		left = LOOK_AGAIN_NS;
	t = (struct timespec){.tv_sec = (time_t)(left / HC_SECOND),
			      .tv_nsec = (long)(left % HC_SECOND)};
	if (ppoll(&p, 1, &t, NULL) <= 0)
		return;
	while (read(watch, events, sizeof(events)) > 0)
		;
}

/* ---- the call ---- */

struct table {
	struct hcomm_session *session;
	const char *path;
	struct hc_m_join_table m;
	int timeout_ms;
	uint64_t began, deadline;
	bool asked;
};

static int ask(struct table *t, hcomm_domain *domain)
{
	struct hc_join j = {.desc = &hc_desc_join_table,
			    .msg = &t->m,
			    .rank = t->m.rank,
			    .timeout_ms = t->timeout_ms,
			    .deadline = t->deadline,
			    .pass = -1};
	uint64_t now = hc_now();
	char *buf = malloc(IN_MESSAGE_MAX);
	int r = buf ? 0 : hc_refuse(HC_E_NO_MEMORY, "no memory to read a rank table");

	t->m.table = (struct hc_str){0};
	if (!r)
		r = read_table(t->path, buf, &t->m.table, &j.pass);
	if (r) {
		free(buf);
		return r;
	}
	/* what is left of the caller's time, when there was waiting before; else as it was said,
	 * since messages repeat it */
	if (t->m.timeout_ms && t->asked)
		t->m.timeout_ms =
			t->deadline > now + HC_MS ? (uint32_t)((t->deadline - now) / HC_MS) : 1;
	t->asked = true;
	r = hc_join_run(t->session, &j, domain);
	if (j.pass >= 0)
		close(j.pass);
	free(buf);
	return r;
}

static int give_up(const struct table *t)
{
	return hc_refuse(HC_E_NOT_READY,
			 "rank table %s: still not complete (status initializing) after %.1f s",
			 t->path, (double)(hc_now() - t->began) / (double)HC_SECOND);
}

static int ask_until_ready(struct table *t, hcomm_domain *domain)
{
	int watch = -1, r;

	for (;;) {
		/* first the watch, then the look: no change falls between */
		r = ask(t, domain);
		if (r == HC_E_NOT_READY && watch < 0) {
			watch = watch_directory(t->path);
			r = ask(t, domain);
		}
		/* between two tables there may be none for a moment */
		if (r != HC_E_NOT_READY && (r != HC_E_NOT_FOUND || watch < 0))
			break;
		if (hc_now() >= t->deadline) {
			r = r == HC_E_NOT_READY ? give_up(t) : r;
			break;
		}
		wait_change(watch, t->deadline);
	}
	if (watch >= 0)
		close(watch);
	return r;
}

HC_EXPORT int hcomm_join_table(struct hcomm_session *session, const char *path, uint32_t rank,
			       const struct hcomm_config *config, int timeout_ms,
			       hcomm_domain *domain)
{
	struct table t = {.session = session, .path = path, .timeout_ms = timeout_ms};
	struct hc_wishes w;
	int r = hc_session_check(session);

	if (!r && (!domain || !path || !*path))
		r = hc_refuse(HC_E_INVALID, "%s is NULL or empty", domain ? "path" : "domain");
	if (!r)
		r = hc_wishes(config, &w);
	if (!r)
		r = hc_timeout(session, timeout_ms, session->connect_timeout_ms, &t.m.timeout_ms,
			       &t.deadline);
	if (!r && timeout_ms == HCOMM_START && t.m.timeout_ms)
		t.deadline = hc_deadline(t.m.timeout_ms);
	if (r)
		return -r;
	*domain = 0;
	t.began = hc_now();
	t.m.rank = rank;
	t.m.name = w.name;
	t.m.server = w.server;
	t.m.origin = hc_str(path);
	if (t.m.origin.len > HC_TEXT_MAX)
		t.m.origin.len = HC_TEXT_MAX;
	t.m.shared = w.shared;
	t.m.priority = w.priority;
	t.m.weight = w.weight;
	HC_WISH_CHANNELS(&t.m, &w);
	if (timeout_ms == HCOMM_START)
		return -ask(&t, domain);
	return -ask_until_ready(&t, domain);
}
