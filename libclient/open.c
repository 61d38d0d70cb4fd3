/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a session, and what concerns it as a whole.
 *
 * The session is one block of memory with both packet buffers in it: requests then need no
 * allocation, and buffers that are not used cost no page. Open takes things in one order and
 * close gives them back in the other, also from the middle.
 *
 * In a child made by fork hcomm_close frees memory and nothing else: the socket is the parent's
 * (a descriptor number may be another file in the child by now), and the arenas are not even
 * mapped there.
 *
 * The log is for people who look for a fault in a job: a line for each connection and its loss,
 * to HCOMM_LOG_FILE or standard error, by one write so that processes do not mix their lines.
 */
#include "join.h"
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELLO_OP_MS 500u /* an operation waits no longer for hello */

void hc_note(struct hcomm_session *s, enum hc_say level, const char *format, ...)
{
	static const char *const words[] = {"error", "warn", "info", "debug"};
	char line[1024];
	va_list ap;
	int n, m;

	if (level > s->env.log_level)
		return;
	n = snprintf(line, sizeof(line), "hcomm[%d]: %s: ", (int)getpid(), words[level]);
	va_start(ap, format);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
	va_end(ap);
	n += m < (int)sizeof(line) - n - 1 ? m : (int)sizeof(line) - n - 2;
	line[n++] = '\n';
	if (write(s->log_fd >= 0 ? s->log_fd : STDERR_FILENO, line, (size_t)n) < 0)
		return; /* a log that cannot be written is no fault of the job */
}

void hc_give(void *to, const void *from, size_t bytes)
{
	uint32_t room;

	memcpy(&room, to, sizeof(room));
	if (bytes > room)
		bytes = room;
	if (bytes <= sizeof(room))
		return;
	/* size stays the caller's */
	memcpy((char *)to + sizeof(room), (const char *)from + sizeof(room), bytes - sizeof(room));
}

int hc_session_check(const struct hcomm_session *s)
{
	if (!s)
		return hc_refuse(HC_E_INVALID, "session is NULL; wanted: one from hcomm_open");
	if (!hc_process_same(s->stamp))
		return hc_refuse(HC_E_FORKED,
				 "the session belongs to the process that opened it; this is "
				 "a child of it by fork, which may open its own");
	return 0;
}

/* ---- hooks of the operations (ops.h): any thread, no lock held ---- */

/*
 * For a gate that shows another start number, or a drain: the daemon is there, and waits for us
 * perhaps. The pause after a lost connection is passed over once, for an operation that ends may be
 * the last call of its host, which then sleeps; after an attempt in vain the pauses are kept.
 */
static void come_back(struct hcomm_session *s)
{
	if (s->fd >= 0 && !s->reading && !s->taking)
		hc_wait_read(s, 0, false);
	if (s->fd < 0 && !s->connecting && (!s->pause_ms || hc_wait_may_connect(s)))
		hc_wait_connect(s, hc_deadline(HELLO_OP_MS));
}

static void on_wake(struct hc_ops_domain *d, void *context)
{
	struct hcomm_session *s = context;
	struct hc_m_ops_ended m = {.id = d->id};

	pthread_mutex_lock(&s->lock);
	hc_send_notice(s, &hc_desc_ops_ended, &m);
	if (s->fd < 0) {
		come_back(s);
		hc_send_notice(s, &hc_desc_ops_ended, &m);
	}
	hc_wait_pass_on(s);
	pthread_mutex_unlock(&s->lock);
}

bool hc_session_touch(struct hcomm_session *s, uint32_t start)
{
	bool same;

	if (pthread_mutex_trylock(&s->lock))
		return false;
	come_back(s);
	same = s->fd >= 0 && !s->taking && s->start == start;
	hc_wait_pass_on(s);
	pthread_mutex_unlock(&s->lock);
	return same;
}

/*
 * The gate shows another start number: hcommd was restarted, and our connection is dead or soon
 * found so. One attempt here is cheap, and asks for all domains to be taken back. Where it fails,
 * or is for another thread to do, the domain goes on expecting the old number, so its next
 * operation comes here again.
 */
static void on_reattach(struct hc_ops_domain *ops, void *context)
{
	struct hc_domain *d = (struct hc_domain *)(void *)ops; /* its first member */
	struct hcomm_session *s = context;

	if (pthread_mutex_trylock(&s->lock)) {
		hc_ops_rebase(ops, 0, d->tag); /* no start has that number */
		return;
	}
	come_back(s);
	hc_ops_rebase(ops, s->start, d->tag);
	hc_wait_pass_on(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- open ---- */

static int check_args(const struct hcomm_open_args *a, struct hcomm_open_args *full)
{
	memset(full, 0, sizeof(*full));
	if (a) {
		if (a->size < offsetof(struct hcomm_open_args, socket))
			return hc_refuse(HC_E_INVALID,
					 "args->size is %u; wanted: set by HCOMM_INIT", a->size);
		memcpy(full, a, a->size < sizeof(*full) ? a->size : sizeof(*full));
	}
	if (full->flags)
		return hc_refuse(HC_E_INVALID, "args->flags is %#x; wanted: 0", full->flags);
	if (full->job && strlen(full->job) > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID, "args->job has %zu bytes; wanted: at most %u",
				 strlen(full->job), HC_NAME_MAX);
	return 0;
}

static int open_log(struct hcomm_session *s)
{
	if (!s->env.log_file)
		return 0;
	s->log_fd =
		open(s->env.log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (s->log_fd >= 0)
		return 0;
	return hc_refuse(HC_E_INVALID,
			 "HCOMM_LOG_FILE is '%.400s': %s; wanted: a file to append to",
			 s->env.log_file, strerror(errno));
}

static int set_up(struct hcomm_session *s, const struct hcomm_open_args *a)
{
	int r = 0;

	memcpy(s->socket, s->env.socket, sizeof(s->socket));
	if (a->socket)
		r = hc_env_socket(a->socket, "args->socket", s->socket);
	if (!r)
		r = open_log(s);
	if (r)
		return r;
	if (a->job)
		strcpy(s->env.job, a->job); /* its length was checked */
	s->registered = !hc_ops_register();
	s->hooks = (struct hc_ops_hooks){.wake = on_wake, .reattach = on_reattach, .context = s};
	pthread_mutex_lock(&s->lock);
	r = hc_wait_connect(s, hc_deadline(a->timeout_ms ? a->timeout_ms : HC_HELLO_MS));
	pthread_mutex_unlock(&s->lock);
	return r;
}

static struct hcomm_session *make(const struct hc_env *env)
{
	struct hcomm_session *s = calloc(1, sizeof(*s));

	if (!s) {
		hc_refuse(HC_E_NO_MEMORY, "no memory for the session (%zu bytes)", sizeof(*s));
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turn, NULL);
	s->env = *env;
	s->fd = s->poll_fd = s->wake_fd = s->log_fd = -1;
	s->last_event = &s->first_event;
	hc_sess_init(&s->sess);
	return s;
}

HC_EXPORT int hcomm_open(const struct hcomm_open_args *args, struct hcomm_session **session)
{
	struct hcomm_open_args full;
	struct hcomm_session *s;
	struct hc_env env;
	int r;

	if (!session)
		return -hc_refuse(HC_E_INVALID, "session is NULL; wanted: where to put it");
	*session = NULL;
	r = check_args(args, &full);
	if (!r)
		r = hc_env_read(&env);
	if (!r && env.disabled)
		r = hc_refuse(HC_E_NO_DAEMON, "HCOMM_DISABLE=1: this process uses no hcommd");
	if (r)
		return -r;
	s = make(&env);
	if (!s)
		return HCOMM_E_NO_MEMORY;
	r = hc_process_enter(&s->stamp);
	if (r) {
		free(s);
		return -r;
	}
	r = set_up(s, &full);
	if (r) {
		hcomm_close(s);
		return -r;
	}
	*session = s;
	return 0;
}

/* ---- close ---- */

/* `mapped`: false in a child, where the arenas are not, and the slabs are left alone. */
static void free_maps(struct hcomm_session *s, bool mapped)
{
	while (s->arenas) {
		struct hc_arena *a = s->arenas;

		s->arenas = a->next;
		hc_arena_free(a, mapped);
	}
	while (s->slabs) {
		struct hc_slab *slab = s->slabs;
		union {
			const void *from;
			void *to;
		} map = {.from = slab->records};

		s->slabs = slab->next;
		if (mapped)
			munmap(map.to, (size_t)HC_SLAB_RECORDS * HC_RECORD_BYTES);
		free(slab);
	}
	hc_chan_slabs_free(s, mapped);
	while (s->seats) {
		struct hc_seats *seats = s->seats;

		s->seats = seats->next;
		free(seats);
	}
}

static void close_in_child(struct hcomm_session *s, const struct hc_sink *quiet)
{
	hc_sess_lost(&s->sess, quiet);
	hc_aside_drop(s);
	s->wake_fd = -1;
	hc_events_free(s);
	hc_shared_free_all(s, false);
	free_maps(s, false);
	free(s);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

HC_EXPORT void hcomm_close(struct hcomm_session *session)
{
	struct hc_sink quiet = hc_wait_quiet();

	if (!session)
		return;
	if (!hc_process_same(session->stamp)) {
		close_in_child(session, &quiet);
		return;
	}
	/* what HCOMM_START began frees itself; it finds no domain to report on */
	while (session->domains)
		hc_domain_free(session->domains);
	session->event_fn = NULL;
	hc_sess_lost(&session->sess, &quiet);
	hc_aside_drop(session);
	hc_chans_close(session);
	close_fd(session->fd);
	close_fd(session->poll_fd);
	close_fd(session->wake_fd);
	close_fd(session->log_fd);
	hc_events_free(session);
	hc_shared_free_all(session, true);
	free_maps(session, true);
	hc_process_leave(session->stamp);
	pthread_cond_destroy(&session->turn);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

/* ---- the session as a whole ---- */

HC_EXPORT int hcomm_ping(struct hcomm_session *session, int timeout_ms)
{
	struct hc_m_ping m = {.value = 0x68636f6d6d};
	struct hc_request q = {&hc_desc_ping, &m, -1, 0, 0};
	struct hc_m_done done;
	struct hc_call c;
	uint32_t ms;
	int r = hc_session_check(session);

	if (!r && !timeout_ms)
		r = hc_refuse(HC_E_INVALID,
			      "timeout_ms is 0; wanted: a time to wait for the answer");
	if (!r)
		r = hc_timeout(session, timeout_ms, HC_REQUEST_MS, &ms, &q.deadline);
	if (r)
		return -r;
	hc_call_init(&c, HC_MSG_done);
	r = hc_call_run(session, &c, &q);
	if (!r &&
	    (hc_call_answer(&session->sess, &c, &hc_desc_done, &done) || done.value != m.value))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave back another value than it was sent");
	hc_call_fini(&c);
	return -r;
}

HC_EXPORT int hcomm_session_get(struct hcomm_session *session, struct hcomm_session_info *info)
{
	struct hcomm_session_info full = HCOMM_INIT(struct hcomm_session_info);
	int r = hc_session_check(session);

	if (!r && (!info || info->size < sizeof(info->size)))
		r = hc_refuse(HC_E_INVALID,
			      "info is NULL or has no size; wanted: set by HCOMM_INIT");
	if (r)
		return -r;
	pthread_mutex_lock(&session->lock);
	full.start = session->start;
	full.session = session->number;
	full.incarnation = session->incarnation;
	full.uid = session->uid;
	full.fence = session->fence;
	full.protocol = session->sess.version;
	memcpy(full.node, session->node, sizeof(full.node));
	memcpy(full.build, session->build, sizeof(full.build));
	memcpy(full.socket, session->socket, sizeof(session->socket));
	pthread_mutex_unlock(&session->lock);
	hc_give(info, &full, sizeof(full));
	return 0;
}
