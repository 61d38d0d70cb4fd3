/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl domain create --hold: the ranks of this node, a process each.
 *
 * One process a rank, because a rank is a process to the daemon: killing one of them shows what
 * killing a worker of a job shows. Each child opens its own session, joins by the table, takes and
 * returns --ops references, and then hears events until SIGTERM or SIGINT, upon which it leaves in
 * order. It tells its parent what happens in notes, smaller than PIPE_BUF, so that the notes of
 * many children do not mix in the one pipe.
 *
 * The parent says when all its ranks are in, shows arrivals on a terminal, and ends when it is
 * interrupted or when no child is left. Children die with it (PR_SET_PDEATHSIG), so nothing holds
 * a device after the command is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <hcomm/views.h>
#include "domain.h"
#include "print.h"

#define TEXT_BYTES      512
#define PROGRESS_MS     300
#define RECONNECT_MS    200
#define LEAVE_LIMIT_MS  40000 /* above the default drain_timeout_s */
#define REFERENCE_BYTES 4096

enum note_kind { NOTE_JOINED, NOTE_FAILED, NOTE_HEARD };

struct note {
	enum note_kind kind;
	uint32_t rank, epoch;
	int error;
	uint64_t id;
	char name[HCOMM_NAME_BYTES], text[TEXT_BYTES];
};

/* ---- a rank ---- */

struct rank {
	uint32_t rank;
	int out;
	struct hcomm_session *session;
	hcomm_domain domain;
};

static volatile sig_atomic_t stop_wanted;

static void on_stop(int sig)
{
	(void)sig;
	stop_wanted = 1;
}

static void tell(const struct rank *k, enum note_kind kind, int error, const char *text)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct note n = {.kind = kind, .rank = k->rank, .error = error};

	if (k->domain && !hcomm_status_get(k->domain, &s)) {
		n.id = s.id;
		n.epoch = s.epoch;
		memcpy(n.name, s.name, sizeof(n.name));
	}
	snprintf(n.text, sizeof(n.text), "%s", text);
	if (write(k->out, &n, sizeof(n)) != (ssize_t)sizeof(n))
		stop_wanted = 1; /* the parent is gone */
}

static void on_event(const struct hcomm_event *event, void *context)
{
	if (event->code != HCOMM_EV_JOIN_DONE && event->code != HCOMM_EV_DOMAIN_ACTIVE)
		tell(context, NOTE_HEARD, 0, event->text);
}

/* The library's text of a failure, before another call replaces it. */
static int refuse(const struct rank *k, int error)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%s", hcomm_last_error());
	tell(k, NOTE_FAILED, error, text[0] ? text : hcomm_error_string(error));
	return ctl_exit_of(error);
}

static int join(struct rank *k, const struct ctl *c, const struct ctl_hold *h)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	int r;

	args.socket = c->socket;
	config.name = h->name;
	config.server = h->server;
	r = hcomm_open(&args, &k->session);
	if (!r)
		r = hcomm_join_table(k->session, h->table, k->rank, &config, c->timeout_ms,
				     &k->domain);
	return r;
}

static int run_ops(const struct rank *k, uint64_t count)
{
	struct hcomm_op op;
	int r = 0;

	for (uint64_t i = 0; !r && i < count && !stop_wanted; i++) {
		r = hcomm_op_begin(k->domain, HCOMM_OP_ALL_REDUCE, REFERENCE_BYTES, 0, &op);
		if (!r)
			r = hcomm_op_end(&op);
	}
	return r;
}

/* Signals are open only inside ppoll, so none is lost between the test and the wait. */
static void hear(const struct rank *k, const sigset_t *open)
{
	while (!stop_wanted) {
		struct pollfd p = {.fd = hcomm_fd(k->session), .events = POLLIN};
		struct timespec wait = {.tv_nsec = RECONNECT_MS * 1000000L};

		ppoll(&p, 1, p.fd < 0 ? &wait : NULL, open);
		if (hcomm_dispatch(k->session, 0) == HCOMM_E_FORKED)
			return;
	}
}

static void catch_stop(sigset_t *open)
{
	struct sigaction act = {.sa_handler = on_stop};
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, open);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

static int be_rank(const struct ctl *c, const struct ctl_hold *h, uint32_t rank, int out)
{
	struct rank k = {.rank = rank, .out = out};
	sigset_t open;
	int r = join(&k, c, h), left;

	if (r)
		return refuse(&k, r);
	catch_stop(&open); /* until here a signal ends the process, which withdraws the rank */
	hcomm_on_event(k.session, on_event, &k);
	tell(&k, NOTE_JOINED, 0, "");
	r = run_ops(&k, h->ops);
	if (r)
		refuse(&k, r);
	hear(&k, &open);
	left = hcomm_leave(k.domain, HCOMM_DEFAULT);
	hcomm_close(k.session);
	return ctl_exit_of(r ? r : left);
}

/* ---- the parent ---- */

struct parent {
	struct ctl *c;
	const struct ctl_hold *h;
	pid_t *pids; /* by index of h->local; 0 = ended */
	int notes, signals;
	uint32_t running, joined;
	uint64_t id;
	bool stopping, progress_shown;
	int status;
};

static void stop_all(struct parent *p)
{
	p->stopping = true;
	for (uint32_t i = 0; i < p->h->nlocal; i++) {
		if (p->pids[i])
			kill(p->pids[i], SIGTERM);
	}
}

static int fork_rank(struct parent *p, uint32_t i, const int *pipe_ends, const sigset_t *open)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0) {
		ctl_say("fork: %s", strerror(errno));
		return CTL_DEGRADED;
	}
	if (pid) {
		p->pids[i] = pid;
		p->running++;
		return CTL_OK;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(CTL_DEGRADED);
	sigprocmask(SIG_SETMASK, open, NULL);
	close(pipe_ends[0]);
	close(p->signals);
	_exit(be_rank(p->c, p->h, p->h->local[i], pipe_ends[1]));
}

static void clear_progress(struct parent *p)
{
	if (p->progress_shown)
		fputs("\r\033[K", stdout);
	p->progress_shown = false;
}

static void all_joined(struct parent *p, const struct note *n)
{
	char name[HCOMM_NAME_BYTES * 6];
	struct hc_text t;

	clear_progress(p);
	hc_text_init(&t, name, sizeof(name));
	hc_json_string(&t, n->name, strlen(n->name));
	if (p->c->json)
		printf("{\"schema_version\":%d,\"id\":\"%016" PRIx64
		       "\",\"name\":%s,\"state\":\"ACTIVE\",\"epoch\":%u,\"ranks\":%u,"
		       "\"local\":%u}\n",
		       HC_SCHEMA_VERSION, n->id, name, n->epoch, p->h->nranks, p->h->nlocal);
	else
		printf("domain %016" PRIx64 " (%s) is ACTIVE: %u of %u ranks here, epoch %u\n",
		       n->id, n->name, p->h->nlocal, p->h->nranks, n->epoch);
	fflush(stdout);
}

static void take_note(struct parent *p, const struct note *n)
{
	switch (n->kind) {
	case NOTE_JOINED:
		if (++p->joined == p->h->nlocal)
			all_joined(p, n);
		break;
	case NOTE_FAILED:
		clear_progress(p);
		if (!p->stopping)
			ctl_say("rank %u: %s", n->rank, n->text);
		if (!p->status)
			p->status = ctl_exit_of(n->error);
		stop_all(p);
		break;
	case NOTE_HEARD:
		if (!p->c->json && !p->stopping && n->rank == p->h->local[0]) {
			printf("rank %u heard: %s\n", n->rank, n->text);
			fflush(stdout);
		}
		break;
	}
}

static void reap(struct parent *p)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (uint32_t i = 0; i < p->h->nlocal; i++) {
			if (p->pids[i] != pid)
				continue;
			p->pids[i] = 0;
			p->running--;
			if (WIFSIGNALED(status) && !p->stopping) {
				ctl_say("rank %u, pid %d: ended by signal %d", p->h->local[i],
					(int)pid, WTERMSIG(status));
				p->status = p->status ? p->status : CTL_DEGRADED;
			}
		}
	}
}

static void take_signals(struct parent *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(p);
		else
			stop_all(p);
	}
}

static int own_domain(const void *row, void *context)
{
	const struct hcomm_view_member *m = row;
	struct parent *p = context;

	for (uint32_t i = 0; i < p->h->nlocal; i++) {
		if (p->pids[i] && (uint32_t)p->pids[i] == m->pid)
			p->id = m->domain;
	}
	return p->id ? 1 : 0;
}

/* "5 of 8 ranks have come", on a terminal alone. Trouble with it is not the command's trouble. */
static void show_progress(struct parent *p)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);

	if (p->c->json || p->stopping || p->joined == p->h->nlocal || !isatty(STDOUT_FILENO))
		return;
	if (!p->c->session && ctl_open(p->c))
		return;
	if (!p->id)
		hcomm_query(p->c->session, HCOMM_VIEW_MEMBER, NULL, own_domain, p);
	if (!p->id || hcomm_by_name(p->c->session, p->id, NULL, &s))
		return;
	printf("\r\033[K%u of %u ranks have come", s.arrived, s.nranks);
	if (s.missing_count)
		printf("; rank %u is missing", s.missing[0]);
	fflush(stdout);
	p->progress_shown = true;
}

static void attend(struct parent *p)
{
	struct note n;
	int left_ms = LEAVE_LIMIT_MS;

	while (p->running) {
		struct pollfd fds[2] = {{.fd = p->notes, .events = POLLIN},
					{.fd = p->signals, .events = POLLIN}};
		int wait = p->joined < p->h->nlocal || p->stopping ? PROGRESS_MS : -1;
		int r = poll(fds, 2, wait);

		if (!r && p->stopping && (left_ms -= PROGRESS_MS) <= 0) {
			ctl_say("ranks that do not leave are killed");
			for (uint32_t i = 0; i < p->h->nlocal; i++) {
				if (p->pids[i])
					kill(p->pids[i], SIGKILL);
			}
			left_ms = LEAVE_LIMIT_MS;
		}
		if (!r)
			show_progress(p);
		if (fds[0].revents & POLLIN && read(p->notes, &n, sizeof(n)) == (ssize_t)sizeof(n))
			take_note(p, &n);
		take_signals(p);
	}
	while (read(p->notes, &n, sizeof(n)) == (ssize_t)sizeof(n))
		take_note(p, &n);
	clear_progress(p);
	if (!p->status && p->joined < p->h->nlocal) {
		ctl_say("ended before all ranks had come");
		p->status = CTL_DEGRADED;
	}
}

static int start(struct parent *p)
{
	sigset_t block, open;
	int ends[2], status = CTL_OK;

	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &open);
	p->signals = signalfd(-1, &block, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0 || pipe(ends)) {
		ctl_say("%s", strerror(errno));
		return CTL_DEGRADED;
	}
	fflush(stdout);
	for (uint32_t i = 0; !status && i < p->h->nlocal; i++)
		status = fork_rank(p, i, ends, &open);
	close(ends[1]);
	p->notes = ends[0];
	return status;
}

int ctl_hold_run(struct ctl *c, const struct ctl_hold *h)
{
	struct parent p = {.c = c, .h = h, .notes = -1, .signals = -1};
	int status = ctl_open(c); /* one clear line when there is no daemon, not one a rank */

	if (status)
		return status;
	ctl_close(c);
	p.pids = calloc(h->nlocal, sizeof(*p.pids));
	if (!p.pids) {
		ctl_say("out of memory");
		return CTL_DEGRADED;
	}
	p.status = start(&p);
	if (p.status)
		stop_all(&p);
	if (p.notes >= 0)
		attend(&p);
	free(p.pids);
	return p.status;
}
