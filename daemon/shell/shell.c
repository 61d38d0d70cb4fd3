/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and stop of the daemon; see shell.h.
 *
 * Order of a start: directories, the lock, the database, who we are, the devices, the core with
 * what was stored, and the socket last, so that whoever can connect is answered. A stop: the
 * socket first, what the core still wants stored, the database. Domains stay in it: their
 * clients go on without us and come back to the next daemon.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "loopnet.h"
#include "netif.h"
#include "reload.h"
#include "rows.h"
#include "sd.h"
#include "shellimp.h"
#include "shellnet.h"

#define RANKS_OF_DOMAIN 8u      /* places for each domain, on the average */
#define ROW_RANKS_MAX   16384u  /* the row of a domain has to fit into the buffer of actions */
#define ENDED_KEPT      1024u   /* half a MiB; older ones are in the journal */
#define VALUES          524288u /* KiB of values in exchanges; taken from the system as used */
#define ENDED_KEEP_NS   3600000000000u
#define CHANNELS_MAX    65536u  /* requests for channels, waiting and granted */
#define WANTS_MAX       16384u  /* of them: that wait, and tickets */
#define PIECES_MAX      131072u /* channels that all of those are for */
#define SECOND_NS       1000000000ull
#define STOP_LIMIT_US   800000
#define SLOW_NS         SECOND_NS /* a write that takes longer is told */

static const char no_devices[] =
	"no device is known here; give [device N] sections in hcommd.conf, or a topology_file";

/* ---- what others ask ---- */

static void origin(const struct hc_conf *c, enum hc_opt_top option, const char *name, char out[128])
{
	char text[HC_CONF_ORIGIN_MAX];

	snprintf(out, 128, "%.127s",
		 hc_conf_origin_text(c, hc_opt_find(HC_CONF_TOP, name), &c->origin[option], text,
				     sizeof(text)));
}

void hc_shell_settings(const struct hc_shell *sh, const struct hc_conf *c, struct hc_settings *set)
{
	(void)sh;
	memset(set, 0, sizeof(*set));
	set->connect_timeout_ns = c->connect_timeout_s * SECOND_NS;
	set->drain_timeout_ns = c->drain_timeout_s * SECOND_NS;
	set->orphan_grace_ns = c->orphan_grace_s * SECOND_NS;
	set->prepare_limit_ns = c->prepare_limit_s * SECOND_NS;
	set->ended_keep_ns = ENDED_KEEP_NS;
	set->suspend_limit_ns = c->suspend_limit_s * SECOND_NS;
	set->bandwidth_limit_percent = c->bandwidth_limit_percent;
	set->quota_link_percent = c->quota_link_percent;
	set->channel_owner_uid = c->channel_owner == HC_CONF_channel_owner_uid;
	set->aging_ns = c->aging_s * SECOND_NS;
	set->grant_ttl_ns = c->grant_ttl_s * SECOND_NS;
	set->hint_hold_ns = c->hint_hold_s * SECOND_NS;
	hc_shellnet_settings(c, set);
	origin(c, HC_OPT_connect_timeout_s, "connect_timeout_s", set->connect_timeout_origin);
	origin(c, HC_OPT_drain_timeout_s, "drain_timeout_s", set->drain_timeout_origin);
}

static void say(char *out, size_t size, const char *text)
{
	size_t n = strlen(out);

	if (n + 3 < size)
		snprintf(out + n, size - n, "%s%s", n ? "; " : "", text);
}

unsigned hc_shell_slow_s(const struct hc_store_state *st)
{
	const uint64_t now = hc_loop_now();

	if (!st->busy_ns || now < st->busy_ns + SLOW_NS)
		return 0;
	return (unsigned)((now - st->busy_ns) / SECOND_NS);
}

static void say_away(const struct hc_shell *sh, char *out, size_t size)
{
	struct hc_core_away a;
	char text[400];
	size_t n;

	hc_loop_away(sh->loop, &a);
	if (!a.domains)
		return;
	n = (size_t)snprintf(text, sizeof(text), "%u domain%s SUSPENDED", a.domains,
			     a.domains == 1 ? " is" : "s are");
	if (a.nodes)
		snprintf(text + n, sizeof(text) - n,
			 ": node%s %s cannot be reached (hcommctl node list)",
			 a.nodes == 1 ? "" : "s", a.names);
	say(out, size, text);
}

/* What keeps the daemon from doing all that it is for. */
static void say_faults(const struct hc_shell *sh, const struct hc_core_counts *core,
		       const struct hc_store_state *st, char *out, size_t size)
{
	char text[300];

	if (st->lost) {
		snprintf(text, sizeof(text),
			 "state is not persistent (%.160s); free space in state_dir", st->why);
		say(out, size, text);
	}
	if (st->damaged)
		say(out, size,
		    "the database is damaged: the next start moves it aside and begins anew");
	if (hc_shell_slow_s(st))
		say(out, size,
		    "the disk of state_dir is slow: joins and ends of domains wait for it");
	if (sh->sock.foreign)
		say(out, size, "the socket's path was taken by something else; remove it");
	if (sh->reload_failed[0])
		say(out, size, sh->reload_failed);
	if (core->peers_refused) {
		snprintf(text, sizeof(text), "%u node%s refused, and %s no part in domains: %s",
			 core->peers_refused, core->peers_refused == 1 ? " is" : "s are",
			 core->peers_refused == 1 ? "has" : "have", core->refused_first);
		say(out, size, text);
	}
	say_away(sh, out, size);
}

bool hc_shell_remark(const struct hc_shell *sh, const struct hc_core_counts *core,
		     const struct hc_store_state *st, char *out, size_t size)
{
	char text[300];
	bool degraded;

	out[0] = '\0';
	say_faults(sh, core, st, out, size);
	degraded = out[0];
	if (!sh->devices.count)
		say(out, size, no_devices);
	if (sh->net) {
		hc_loopnet_missing(sh->net, text, sizeof(text));
		if (text[0])
			say(out, size, text);
	}
	if (core->drained)
		say(out, size,
		    "the node is drained: it takes no new domains; hcommctl drain --off "
		    "ends that");
	return degraded;
}

void hc_shell_tell_manager(struct hc_shell *sh, bool ready)
{
	char text[256];
	struct hc_store_state st;

	hc_store_state(sh->store, &st);
	snprintf(text, sizeof(text), "serving on %s, %u devices%s%s", sh->sock.path,
		 sh->devices.count, st.lost ? ", state is not persistent" : "",
		 sh->reload_failed[0] ? ", last reload failed" : "");
	if (ready)
		hc_sd_ready(text);
	else
		hc_sd_status(text);
}

/* ---- the loop's calls ---- */

static void watch_slowness(struct hc_shell *sh, const struct hc_store_state *st)
{
	const unsigned slow_s = hc_shell_slow_s(st);

	if (slow_s && !sh->storage_slow_s)
		hc_log(HC_LOG_WARN,
		       "the disk of state_dir is slow: a write has taken %u s so far; what waits "
		       "for "
		       "it waits, all else goes on",
		       slow_s);
	if (!slow_s && sh->storage_slow_s)
		hc_log(HC_LOG_WARN, "the disk of state_dir goes on after %u s or more",
		       sh->storage_slow_s);
	sh->storage_slow_s = slow_s;
}

static void watch_storage(struct hc_shell *sh)
{
	struct hc_store_state st;

	hc_store_state(sh->store, &st);
	watch_slowness(sh, &st);
	if (st.lost == sh->storage_lost)
		return;
	sh->storage_lost = st.lost;
	hc_shell_tell_manager(sh, false);
}

static void on_tick(void *arg, uint64_t now_ns)
{
	struct hc_shell *sh = arg;

	(void)now_ns;
	if (hc_sock_check(&sh->sock) && hc_ctl_listen(sh->ctl, sh->sock.fd))
		hc_log(HC_LOG_ERROR, "out of memory: no client can connect");
	watch_storage(sh);
	if (sh->net)
		hc_loopnet_tick(sh->net);
}

static void on_signal(void *arg, int number)
{
	struct hc_shell *sh = arg;

	if (number == SIGHUP) {
		hc_reload(sh, 0, 0);
		return;
	}
	if (sh->stopping)
		return;
	sh->stopping = true;
	hc_log(HC_LOG_INFO, "%s: stopping; domains stay", strsignal(number));
	hc_sd_stopping();
	hc_shellnet_hold(sh);
	hc_loop_stop(sh->loop);
}

/* ---- start ---- */

static int fail(struct hc_shell *sh, const char *why)
{
	hc_log(HC_LOG_ERROR, "%s", why);
	sh->exit_status = HC_EXIT_FAILED;
	return 1;
}

static int fail_errno(struct hc_shell *sh, const char *what, int r)
{
	char why[1300];

	snprintf(why, sizeof(why), "%s: %s", what, strerror(-r));
	return fail(sh, why);
}

/* What people set is at fault. */
static int refuse(struct hc_shell *sh, const char *why)
{
	fail(sh, why);
	sh->exit_status = HC_EXIT_REFUSED;
	return 1;
}

/* The key, and the port: taken ones end the start before anything is touched. */
static int prepare_net(struct hc_shell *sh)
{
	char why[HC_WHY_BYTES];
	int r = hc_shellnet_prepare(sh, why, sizeof(why));

	if (!r)
		return 0;
	return r == HC_SHELLNET_REFUSED ? refuse(sh, why) : fail(sh, why);
}

static int open_files(struct hc_shell *sh, struct hc_db **db)
{
	char why[HC_WHY_BYTES], path[1100];
	bool made;
	int r;

	if (hc_ident_dir(sh->conf.state_dir, 0700, "state_dir", why, sizeof(why)) ||
	    hc_ident_dir(sh->conf.runtime_dir, 0755, "runtime_dir", why, sizeof(why)) ||
	    hc_ident_lock(sh->conf.state_dir, &sh->lock_fd, why, sizeof(why)))
		return fail(sh, why);
	r = hc_ident_boot(sh->boot_id);
	if (r)
		return fail_errno(sh, "/proc/sys/kernel/random/boot_id", r);
	snprintf(path, sizeof(path), "%s/state.db", sh->conf.state_dir);
	r = hc_db_open(path, sh->boot_id, db, &sh->begun, why, sizeof(why));
	if (r)
		return r < 0 ? fail_errno(sh, path, r) : fail(sh, why);
	if (sh->begun.problem[0])
		hc_log(HC_LOG_ERROR, "%s", sh->begun.problem);
	if (hc_ident_node(sh->conf.state_dir, sh->begun.has_node ? sh->begun.node : NULL,
			  sh->self.node_id, &made, why, sizeof(why)))
		return fail(sh, why);
	if (!sh->begun.has_node || memcmp(sh->begun.node, sh->self.node_id, 16))
		hc_db_set_node(*db, sh->self.node_id); /* a full disk is told by the next write */
	return 0;
}

static void know_self(struct hc_shell *sh)
{
	struct hc_self *s = &sh->self;

	snprintf(s->name, sizeof(s->name), "%s", sh->conf.node_name);
	snprintf(s->build, sizeof(s->build), "%s", HC_VERSION);
	s->incarnation = sh->begun.incarnation;
	s->start = sh->begun.start;
	s->fence = hc_pages_fence_supported();
	hc_ident_random(s->seed, sizeof(s->seed));
}

static void set_limits(struct hc_shell *sh)
{
	struct hc_limits *l = &sh->limits;

	l->sessions = sh->conf.clients_max;
	l->domains = sh->conf.domains_max;
	l->ranks = sh->conf.domains_max * RANKS_OF_DOMAIN;
	if (l->ranks < sh->conf.ranks_max)
		l->ranks = sh->conf.ranks_max;
	l->ranks_per_domain =
		sh->conf.ranks_max < ROW_RANKS_MAX ? sh->conf.ranks_max : ROW_RANKS_MAX;
	l->devices = HC_DEVICES_MAX;
	l->ended = sh->conf.domains_max < ENDED_KEPT ? sh->conf.domains_max : ENDED_KEPT;
	l->quota_domains = sh->conf.quota_domains;
	l->links = HC_LINKS_MAX;
	l->requests = CHANNELS_MAX + WANTS_MAX;
	l->pieces = PIECES_MAX;
	l->channels = CHANNELS_MAX;
	l->wants = WANTS_MAX;
	l->quota_channels = sh->conf.quota_channels;
	l->quota_waiting = sh->conf.quota_waiting;
	l->quota_memory = (uint64_t)sh->conf.quota_memory_mib << 20;
	l->values = VALUES;
	hc_shellnet_limits(sh);
}

static int make_net(struct hc_shell *sh)
{
	char why[HC_WHY_BYTES];
	int r = hc_shellnet_make(sh, why, sizeof(why));

	if (r < 0)
		return fail_errno(sh, "what talks to other nodes cannot be made", r);
	return r ? refuse(sh, why) : 0;
}

static int start_net(struct hc_shell *sh)
{
	int r = hc_shellnet_start(sh);

	return r ? fail_errno(sh, "other nodes cannot be watched", r) : 0;
}

static int make_loop(struct hc_shell *sh)
{
	struct hc_loop_args args = {.limits = sh->limits,
				    .self = sh->self,
				    .pages = sh->pages,
				    .registers = sh->registers,
				    .on_tick = on_tick,
				    .on_signal = on_signal,
				    .arg = sh};
	struct event_config *cfg = event_config_new();
	int r;

	if (!cfg)
		return fail(sh, "out of memory");
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
	sh->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!sh->base)
		return fail(sh, "the event loop cannot be made");
	args.base = sh->base;
	hc_shell_settings(sh, &sh->conf, &args.settings);
	r = hc_loop_new(&args, &sh->loop);
	return r ? fail_errno(sh, "the main loop cannot be made", r) : 0;
}

/* Signals are the main thread's; threads inherit the mask. */
static int started(struct hc_shell *sh, int r, const sigset_t *old)
{
	pthread_sigmask(SIG_SETMASK, old, NULL);
	return r ? fail_errno(sh, "a thread cannot be started", r) : 0;
}

static int start_worker(struct hc_shell *sh)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	return started(sh, hc_worker_start(sh->base, &sh->worker), &old);
}

/* The database is the store's from now on. */
static int start_store(struct hc_shell *sh, struct hc_db *db)
{
	struct hc_store_limits limits = {sh->conf.journal_days, sh->conf.journal_rows};
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = hc_store_start(sh->base, db, &sh->begun, &limits, hc_loop_persisted, sh->loop,
			   &sh->store);
	if (r) {
		hc_db_close(db);
	} else {
		hc_loop_set_store(sh->loop, sh->store);
		hc_store_on_storage(sh->store, hc_loop_storage);
	}
	return started(sh, r, &old);
}

static int make_ctl(struct hc_shell *sh)
{
	struct hc_ctl_args args = {.base = sh->base,
				   .loop = sh->loop,
				   .shell = sh,
				   .worker = sh->worker,
				   .sessions_max = sh->limits.sessions,
				   .start = sh->self.start,
				   .table_bytes_max = sh->conf.table_bytes_max};
	char warning[256];
	int r;

	hc_caller_rules(&sh->rules, sh->conf.socket_group, sh->conf.admin_group, warning,
			sizeof(warning));
	if (warning[0])
		hc_log(HC_LOG_WARN, "%s", warning);
	sh->rules.allow_foreign_pidns = sh->conf.allow_foreign_pidns;
	args.rules = sh->rules;
	r = hc_ctl_new(&args, &sh->ctl);
	if (r)
		return fail_errno(sh, "the client socket cannot be made", r);
	hc_loop_set_ctl(sh->loop, sh->ctl);
	return 0;
}

static int take_back(struct hc_shell *sh, struct hc_db *db, struct hc_rows *channels)
{
	uint32_t i;
	size_t n;

	for (n = 0; n < sh->fds.narenas; n++)
		hc_ctl_take_back(sh->ctl, &sh->fds.arenas[n]);
	sh->fds.narenas = 0;
	/* what is taken back needs them */
	for (i = 0; i < sh->devices.count; i++)
		hc_loop_device(sh->loop, &sh->devices.facts[i]);
	for (i = 0; i < sh->links.count; i++)
		hc_loop_link(sh->loop, &sh->links.facts[i]);
	return hc_rows_take_back(channels, db, sh->loop) ? fail(sh, "stored domains cannot be read")
							 : 0;
}

static void begin(struct hc_shell *sh, const struct hc_rows *channels)
{
	char text[160];

	hc_rows_feed_channels(channels, sh->loop);
	hc_loop_begin(sh->loop);
	if (sh->links.left_out)
		hc_log(HC_LOG_WARN, "%u links are left out: this daemon keeps %u",
		       sh->links.left_out, HC_LINKS_MAX);
	if (!sh->devices.count)
		hc_log(HC_LOG_WARN, "%s", no_devices);
	else
		hc_log(HC_LOG_INFO, "%u devices, %u of them simulated", sh->devices.count,
		       sh->devices.simulated);
	snprintf(text, sizeof(text), "hcommd %s started, start number %u", HC_VERSION,
		 sh->self.start);
	hc_store_note(sh->store, HC_W_event_code_DAEMON_STARTED, text);
}

static int open_socket(struct hc_shell *sh)
{
	char why[512];

	if (sh->fds.listen >= 0) {
		hc_sock_adopt(&sh->sock, sh->fds.listen);
	} else if (hc_sock_open(&sh->sock, sh->conf.socket, (mode_t)sh->conf.socket_mode,
				sh->rules.has_socket_group ? &sh->rules.socket_group : NULL, why,
				sizeof(why))) {
		return fail(sh, why);
	}
	if (hc_ctl_listen(sh->ctl, sh->sock.fd))
		return fail(sh, "out of memory");
	hc_log(HC_LOG_INFO, "hcommd %s serves %s, start %u", HC_VERSION, sh->sock.path,
	       sh->self.start);
	hc_shell_tell_manager(sh, true);
	return 0;
}

static int find_devices(struct hc_shell *sh)
{
	char why[HC_WHY_BYTES];
	int r = hc_devices_find(&sh->conf, &sh->devices, why, sizeof(why));

	if (!r)
		r = hc_netif_check(&sh->conf, why, sizeof(why));
	if (!r)
		r = hc_links_find(&sh->conf, &sh->devices, &sh->links, why, sizeof(why));
	if (r < 0)
		return fail_errno(sh, "devices", r);
	return r ? refuse(sh, why) : 0;
}

static int open_pages(struct hc_shell *sh)
{
	char path[1100];
	int r;

	snprintf(path, sizeof(path), "%s/pages", sh->conf.runtime_dir);
	r = hc_pages_open(path, &sh->pages);
	if (!r)
		r = hc_registers_open(path, &sh->registers);
	return r ? fail_errno(sh, path, r < 0 ? r : -EINVAL) : 0;
}

static void see_start(uint32_t uid, uint32_t slot, struct hc_page_record *record, void *highest)
{
	uint32_t start = (uint32_t)(atomic_load(&record->gate) >> 40), *most = highest;

	(void)uid;
	(void)slot;
	if (start > *most)
		*most = start;
}

/* The database was lost, and its counter with it: what clients hold must not look fresh. */
static void pass_older_starts(struct hc_shell *sh, struct hc_db *db)
{
	uint32_t highest = 0;

	hc_pages_each(sh->pages, see_start, &highest);
	if (sh->self.start > highest)
		return;
	sh->self.start = sh->begun.start = highest + 1;
	hc_db_set_start(db, sh->self.start); /* a full disk is told by the next write */
}

static void raise_descriptors(void)
{
	struct rlimit l;

	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* Until the loop takes them, signals wait: a start is not ended half-way. */
static void hold_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(how, &set, NULL);
}

int hc_shell_start(struct hc_shell *sh)
{
	struct hc_rows channels = {0};
	struct hc_db *db = NULL;
	int r;

	hold_signals(SIG_BLOCK);
	raise_descriptors();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file limit is an error code, as a full disk is */
	sh->started_ns = hc_loop_now();
	sh->generation = 1;
	r = hc_sd_take_fds(&sh->fds);
	if (r)
		return fail_errno(sh, "descriptors of the service manager", r);
	r = find_devices(sh);
	if (!r)
		r = open_files(sh, &db);
	if (!r)
		r = prepare_net(sh);
	if (!r) {
		know_self(sh);
		set_limits(sh);
		r = open_pages(sh);
	}
	if (!r && sh->begun.made)
		pass_older_starts(sh, db);
	if (!r)
		r = make_loop(sh);
	if (!r)
		r = make_net(sh);
	if (!r)
		r = start_worker(sh);
	if (!r)
		r = make_ctl(sh);
	if (!r)
		r = take_back(sh, db, &channels);
	if (r) {
		hc_db_close(db);
		return r;
	}
	r = start_store(sh, db);
	if (!r) {
		begin(sh, &channels);
		r = start_net(sh);
	}
	if (!r)
		r = open_socket(sh);
	hc_rows_fini(&channels);
	return r;
}

int hc_shell_run(struct hc_shell *sh)
{
	int r;

	hold_signals(SIG_UNBLOCK);
	r = hc_loop_run(sh->loop);
	hc_shellnet_flush(sh);
	if (r) {
		hc_sd_stopping();
		return fail_errno(sh, "the main loop failed", r);
	}
	return 0;
}

/* ---- stop ---- */

static int status_at_stop;

static void on_late(int number)
{
	(void)number;
	_exit(status_at_stop);
}

/*
 * A disk that takes its time must not make the machine wait: what was acknowledged is in the log
 * already, and the next start folds it in.
 */
static void limit_stop(const struct hc_shell *sh)
{
	struct itimerval t = {.it_value.tv_usec = STOP_LIMIT_US};
	struct sigaction a = {.sa_handler = on_late};
	sigset_t set;

	status_at_stop = sh->exit_status;
	sigaction(SIGALRM, &a, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

void hc_shell_stop(struct hc_shell *sh)
{
	bool idle;

	limit_stop(sh);
	if (sh->ctl)
		hc_ctl_listen(sh->ctl, -1);
	if (sh->sock.path[0])
		hc_sock_close(&sh->sock);
	idle = hc_worker_stop(sh->worker);
	if (sh->store && sh->ctl) {
		hc_store_note(sh->store, HC_W_event_code_DAEMON_STOPPED, "hcommd stopped");
		hc_store_stop(sh->store);
		hc_ctl_turn(sh->ctl); /* answers that waited for the store */
	} else {
		hc_store_stop(sh->store);
	}
	if (!idle)
		_exit(sh->exit_status); /* a long parse is not worth waiting for */
	hc_ctl_free(sh->ctl);
	hc_shellnet_stop(sh);
	hc_loop_free(sh->loop);
	if (sh->base)
		event_base_free(sh->base);
	hc_pages_close(sh->pages);
	hc_registers_close(sh->registers);
	hc_sd_fds_fini(&sh->fds);
	hc_links_fini(&sh->links);
	hc_devices_fini(&sh->devices);
	hc_conf_fini(&sh->conf);
	if (sh->lock_fd >= 0)
		close(sh->lock_fd);
}
