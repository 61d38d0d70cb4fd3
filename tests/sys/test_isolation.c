/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to one domain is out of reach of all others.
 *
 * A victim holds channels with rings, a sync page and a value in its exchange. Attackers try to
 * reach them by every number and every descriptor that they have or can guess: a process of another
 * user, a process of the same user, and a rank of the same domain that is no end of the channel.
 * Each says with raw frames what the library never would: the victim's domain, ranks, channels,
 * numbers beside those, numbers of what is long over; and tries what the kernel would let it do
 * with the descriptors that it was given: to write where it may read, to change sizes and seals, to
 * bring one as the page of another domain. All of it is refused as not permitted, not found or
 * gone, and afterwards the victim's messages, values and barrier are as before, and so are the
 * books (ledger.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "ledger.h"
#include "raw.h"
#include "suite.h"
#include "users.h"

enum who { ANOTHER_USER, SAME_USER, SAME_DOMAIN, ATTACKERS };

static const uint32_t ranks_said[] = {0, 1, 2, 3, 0x7fffffff, 0xffffffff};
enum { RANKS_SAID = 6, GUESSES = 200 };

static struct hc_node node;

struct told { /* what the attackers know of the victim: everything but its secrets */
	uint64_t domain, channel[2], dead_domain, dead_channel;
	struct hcomm_root_info info;
};
static struct told told;
static uint8_t buf[HC_PACKET_MAX];

/* ---- the victim ---- */

struct victim {
	struct hcomm_session *s;
	hcomm_domain d[2];
	hcomm_channel ch[2], half; /* both ends of one, and one end of another */
	unsigned rounds;
};

static void must(const char *what, int r)
{
	if (r)
		hc_fail("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

static uint64_t id_of(hcomm_domain d)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);

	must("status", hcomm_status_get(d, &st));
	return st.id;
}

static uint64_t channel_id(hcomm_channel ch)
{
	struct hcomm_channel_info info = HCOMM_INIT(struct hcomm_channel_info);

	must("info", hcomm_channel_info(ch, &info));
	return info.id;
}

static struct hcomm_channel_args to(uint32_t from, uint32_t peer)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.peer = peer;
	a.rank = from;
	a.flags = HCOMM_CHANNEL_FROM;
	a.bandwidth_mbps = from < peer ? 10 : 0;
	return a;
}

/* A domain of its own with a channel that is over, like the domain. */
static void makes_the_dead(struct hcomm_session *s)
{
	const uint32_t devices[2] = {6, 7};
	const struct hcomm_channel_args a = to(0, 1);
	hcomm_channel ch;
	hcomm_domain d;

	must("join", hcomm_join_all_local(s, devices, 2, NULL, 20000, &d));
	must("acquire", hcomm_channel_acquire(d, &a, 5000, &ch));
	told.dead_domain = id_of(d);
	told.dead_channel = channel_id(ch);
	must("destroy", hcomm_destroy(d, 5000));
}

static void holds_what_is_attacked(struct victim *v)
{
	struct hcomm_channel_args a = to(0, 1), b = to(1, 0);

	a.flags = b.flags = 0;
	must("acquire", hcomm_channel_acquire(v->d[0], &a, 5000, &v->ch[0]));
	must("acquire", hcomm_channel_acquire(v->d[1], &b, 5000, &v->ch[1]));
	must("acquire", hcomm_channel_acquire(v->d[0], &a, 5000, &v->half));
	must("put", hcomm_put(v->d[0], "key", "secret", 6));
	told.domain = id_of(v->d[0]);
	told.channel[0] = channel_id(v->ch[0]);
	told.channel[1] = channel_id(v->half);
}

static void want_as_before(struct victim *v)
{
	uint32_t bytes = 64, word, n;
	char text[64], got[64];

	n = (uint32_t)snprintf(text, sizeof(text), "message %u", v->rounds++);
	for (unsigned i = 0; i < 2; i++) {
		bytes = sizeof(got);
		must("send", hcomm_channel_send(v->ch[i], text, n, 1000));
		must("recv", hcomm_channel_recv(v->ch[!i], got, &bytes, 1000));
		hc_want(bytes == n && !memcmp(got, text, n));
		must("register", hcomm_channel_status(v->ch[i], &word));
		hc_want((word & 0xff) == HCOMM_CHANNEL_OK);
	}
	hc_want(hcomm_channel_poll(v->ch[0], HCOMM_START) == HCOMM_E_AGAIN);
	hc_want(hcomm_channel_poll(v->ch[1], HCOMM_START) == HCOMM_E_AGAIN);
	must("register", hcomm_channel_status(v->half, &word));
	hc_want((word & 0xff) == HCOMM_CHANNEL_OK);
	hc_want(hcomm_channel_poll(v->half, HCOMM_START) == HCOMM_E_AGAIN);
	bytes = sizeof(got);
	must("get", hcomm_get(v->d[1], "key", got, &bytes, 1000));
	hc_want(bytes == 6 && !memcmp(got, "secret", 6));
}

/* Ranks 0 and 1 of a domain of three; rank 2 is the attacker of the same domain. */
static int a_victim(void *arg, int in, int out)
{
	struct victim v = {0};
	struct hcomm_session *more;
	uint64_t end = hc_now_ms() + hc_patience(20000);
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	char go;

	(void)arg;
	hc_become(HC_UID_OWNER, HC_MEMBER_GROUP);
	must("open", hcomm_open(NULL, &v.s));
	must("open", hcomm_open(NULL, &more));
	makes_the_dead(v.s);
	must("root info", hcomm_root_info(v.s, 3, NULL, &told.info));
	hc_tell(out, &told, sizeof(told));
	hc_want(hcomm_join(v.s, &told.info, 3, 0, 0, NULL, HCOMM_START, &v.d[0]) ==
		HCOMM_E_IN_PROGRESS);
	must("join", hcomm_join(more, &told.info, 3, 1, 1, NULL, 20000, &v.d[1]));
	do {
		hc_want(hcomm_dispatch(v.s, 10) >= 0 && hc_now_ms() < end);
		must("status", hcomm_status_get(v.d[0], &st));
	} while (st.state != HCOMM_ACTIVE);
	holds_what_is_attacked(&v);
	hc_tell(out, &told, sizeof(told));
	for (hc_hear(in, &go, 1, 120000); go; hc_hear(in, &go, 1, 120000)) {
		want_as_before(&v);
		hc_tell(out, &go, 1);
	}
	return 0;
}

/* ---- an attacker ---- */

struct attacker {
	enum who who;
	struct hcomm_session *s;
	hcomm_domain d, second; /* its own; `second` has not had a barrier */
	int raw;
	unsigned tried;
};

static void want_refused(struct attacker *a, const struct hc_desc *d, const void *msg, int pass)
{
	struct hc_frame f;
	int code;

	if (!hc_raw_ask_fd(a->raw, d, 100 + ++a->tried, msg, pass, buf, &f))
		hc_fail("%s: the session was ended", d->name);
	code = f.head.type == HC_MSG_error ? -f.head.status : 0;
	if (code != HC_E_PERMISSION && code != HC_E_NOT_FOUND && code != HC_E_GONE)
		hc_fail("attacker %d, %s no. %u: outcome %d (message %u)", a->who, d->name,
			a->tried, code, f.head.type);
}

static void tries_channels(struct attacker *a, uint64_t channel, bool known)
{
	for (unsigned i = 0; i < RANKS_SAID; i++) {
		want_refused(a, &hc_desc_channel_open,
			     &(struct hc_m_channel_open){channel, ranks_said[i]}, -1);
		/* one that is over already is released: that is done, and does nothing */
		if (known)
			want_refused(a, &hc_desc_channel_release,
				     &(struct hc_m_channel_release){channel, ranks_said[i]}, -1);
	}
}

/* Numbers beside those that are known, and such as a bad generator might give. */
static void guesses_channels(struct attacker *a)
{
	uint64_t dice = told.channel[0];

	tries_channels(a, 0, false);
	tries_channels(a, UINT64_MAX, false);
	tries_channels(a, told.dead_channel, false);
	for (unsigned i = 0; i < GUESSES; i++) {
		struct hc_m_channel_open m = {.channel = i};

		want_refused(a, &hc_desc_channel_open, &m, -1);
		m.channel = told.channel[i & 1] + (i & 2 ? i : 0 - (uint64_t)i) + 1;
		want_refused(a, &hc_desc_channel_open, &m, -1);
		m.channel = told.channel[i & 1] ^ UINT64_C(1) << (i % 64);
		want_refused(a, &hc_desc_channel_open, &m, -1);
		dice = dice * 6364136223846793005u + 1442695040888963407u;
		m.channel = dice;
		want_refused(a, &hc_desc_channel_open, &m, -1);
	}
}

static void tries_as_rank(struct attacker *a, uint64_t id, uint32_t epoch, uint32_t rank)
{
	struct hc_m_channel_want want = {.id = id, .epoch = epoch, .rank = rank};
	struct hc_arr ranks = {0};
	uint8_t room[2][64];

	ck_assert(!hc_arr_put(&want.pieces, room[0], sizeof(room[0]), &hc_desc_want_piece,
			      HC_PROTO_MAX, &(struct hc_m_want_piece){.peer = rank == 0}));
	ck_assert(!hc_arr_put(&ranks, room[1], sizeof(room[1]), &hc_desc_rank, HC_PROTO_MAX,
			      &(struct hc_m_rank){.rank = rank}));
	want_refused(a, &hc_desc_channel_want, &want, -1);
	want.wait = 1;
	want_refused(a, &hc_desc_channel_want, &want, -1);
	want_refused(a, &hc_desc_sync_open, &(struct hc_m_sync_open){id, epoch, rank}, -1);
	want_refused(a, &hc_desc_sync_have,
		     &(struct hc_m_sync_have){.id = id, .epoch = epoch, .ranks = ranks}, -1);
	want_refused(a, &hc_desc_put,
		     &(struct hc_m_put){.id = id,
					.epoch = epoch,
					.rank = rank,
					.key = hc_str("key"),
					.value = hc_str("other")},
		     -1);
	want_refused(a, &hc_desc_put,
		     &(struct hc_m_put){.id = id,
					.epoch = epoch,
					.rank = rank,
					.version = UINT64_MAX,
					.key = hc_str("key"),
					.value = hc_str("other")},
		     -1);
	want_refused(
		a, &hc_desc_get,
		&(struct hc_m_get){.id = id, .epoch = epoch, .rank = rank, .key = hc_str("key")},
		-1);
	want_refused(
		a, &hc_desc_fence,
		&(struct hc_m_fence){.id = id, .epoch = epoch, .timeout_ms = 50, .ranks = ranks},
		-1);
}

static void tries_domains(struct attacker *a)
{
	for (unsigned i = 0; i < RANKS_SAID; i++) {
		if (a->who == SAME_DOMAIN && ranks_said[i] == 2)
			continue; /* it is that rank */
		for (uint32_t epoch = 0; epoch < 3; epoch++)
			tries_as_rank(a, told.domain, epoch, ranks_said[i]);
	}
	for (unsigned i = 0; i < RANKS_SAID; i++) {
		tries_as_rank(a, told.dead_domain, 1, ranks_said[i]);
		tries_as_rank(a, 0, 1, ranks_said[i]);
		tries_as_rank(a, told.domain + 1 + i, 1, ranks_said[i]);
	}
}

/* ---- its own descriptors ---- */

/* What a file of the daemon's may be used for by who was given it: to be read. */
static void tries_to_write(int fd, const char *name)
{
	char path[64];
	void *map;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	errno = 0;
	if (open(path, O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES)
		hc_fail("%s can be opened anew to write: %s", name, strerror(errno));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED || errno != EACCES)
		hc_fail("%s can be mapped to write: %s", name, strerror(errno));
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || !mprotect(map, 4096, PROT_READ | PROT_WRITE))
		hc_fail("%s, mapped to read, can be made writable", name);
	munmap(map, 4096);
	if (pwrite(fd, "x", 1, 0) >= 0 || !ftruncate(fd, 0) || !fchmod(fd, 0666))
		hc_fail("%s can be written, cut, or opened for all", name);
}

/* Shared with the other end: neither can take it from under the other. */
static void tries_to_cut(int fd, const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	if (!ftruncate(fd, 0) || !ftruncate(fd, 2 * st.st_size) ||
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) || !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE))
		hc_fail("%s can be cut, grown or sealed against its other user", name);
}

static void tries_descriptors(const struct hc_raw_kept *k, uid_t uid)
{
	unsigned files = 0, memory = 0;
	char link[64], name[256], own[32];

	snprintf(own, sizeof(own), "-%u-", (unsigned)uid);
	for (unsigned i = 0; i < k->count; i++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", k->fd[i]);
		n = readlink(link, name, sizeof(name) - 1);
		ck_assert_int_gt(n, 0);
		name[n] = '\0';
		if (!strncmp(name, "/memfd:", 7)) {
			memory++;
			tries_to_cut(k->fd[i], name);
			continue;
		}
		files++;
		if (!strstr(name, own))
			hc_fail("uid %u was given %s", (unsigned)uid, name);
		tries_to_write(k->fd[i], name);
	}
	ck_assert_uint_ge(files, 1);  /* the registers */
	ck_assert_uint_eq(memory, 2); /* rings and sync page */
}

static void tries_paths(void)
{
	static const char *const names[] = {"status-%u-0", "slab-%u-0"};
	char name[64], path[400];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), names[i], (unsigned)HC_UID_OWNER);
		snprintf(path, sizeof(path), "%s/run/pages/%s", node.dir, name);
		errno = 0;
		if (open(path, O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
			hc_fail("%s: %s; wanted: there, and not for us", path, strerror(errno));
	}
}

static void asks(struct attacker *a, const struct hc_desc *d, const void *msg, uint16_t answer,
		 struct hc_frame *f)
{
	if (!hc_raw_ask(a->raw, d, 100 + ++a->tried, msg, buf, f) || f->head.type != answer)
		hc_fail("%s of its own: message %u, %d", d->name, f->head.type, f->head.status);
}

/* Its own channel and sync page by raw frames, so that it has the descriptors themselves. */
static int collects(struct attacker *a, struct hc_raw_kept *kept)
{
	const uint64_t id = id_of(a->d);
	struct hc_m_channel_want want = {.id = id, .epoch = 1};
	struct hc_m_channel_want_r r;
	struct hc_m_channel_grant g;
	struct hc_frame f;
	uint8_t room[64];

	ck_assert(!hc_arr_put(&want.pieces, room, sizeof(room), &hc_desc_want_piece, HC_PROTO_MAX,
			      &(struct hc_m_want_piece){.peer = 1}));
	hc_raw_keep(kept);
	asks(a, &hc_desc_channel_want, &want, HC_MSG_channel_want_r, &f);
	ck_assert(!hc_decode(&hc_desc_channel_want_r, HC_PROTO_MAX, f.body, f.body_len, &r));
	ck_assert(hc_arr_next(&r.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &g));
	asks(a, &hc_desc_channel_open, &(struct hc_m_channel_open){g.channel, 0},
	     HC_MSG_channel_open_r, &f);
	asks(a, &hc_desc_sync_open, &(struct hc_m_sync_open){id, 1, 0}, HC_MSG_sync_open_r, &f);
	hc_raw_keep(NULL);
	/* the far end was not given to its rank, which is ours: too early is refused as well */
	want_refused(a, &hc_desc_channel_open, &(struct hc_m_channel_open){g.channel, 1}, -1);
	return kept->fd[kept->count - 1];
}

/* A descriptor is brought where it does not belong. */
static void replays(struct attacker *a, const struct hc_raw_kept *kept)
{
	const uint64_t second = id_of(a->second);
	struct hc_arr ranks = {0};
	struct hc_m_sync_have m = {.id = told.domain, .epoch = 1, .page = 1};
	struct hc_frame f;
	uint8_t room[64];

	ck_assert(!hc_arr_put(&ranks, room, sizeof(room), &hc_desc_rank, HC_PROTO_MAX,
			      &(struct hc_m_rank){.rank = 0}));
	m.ranks = ranks;
	for (unsigned i = 0; i < kept->count; i++) {
		m.id = told.domain;
		want_refused(a, &hc_desc_sync_have, &m, kept->fd[i]);
		/* nor as a page of its own other domain */
		m.id = second;
		ck_assert(hc_raw_ask_fd(a->raw, &hc_desc_sync_have, 100 + ++a->tried, &m,
					kept->fd[i], buf, &f));
		if (f.head.type != HC_MSG_error || -f.head.status != HC_E_INVALID)
			hc_fail("descriptor %u was taken for a page of another domain", i);
	}
	must("barrier", hcomm_barrier(a->second, 5000));
}

static void joins(struct attacker *a)
{
	const uint32_t own[2] = {2, 3}, second[2] = {4, 5};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.shared = 1;
	must("open", hcomm_open(NULL, &a->s));
	must("join", hcomm_join_all_local(a->s, own, 2, &config, 20000, &a->d));
	must("join", hcomm_join_all_local(a->s, second, 2, &config, 20000, &a->second));
	if (a->who == SAME_DOMAIN)
		must("join", hcomm_join(a->s, &told.info, 3, 2, 2, &config, 20000, &d));
}

static int an_attacker(void *arg, int in, int out)
{
	struct attacker a = {.who = *(const enum who *)arg};
	const uid_t uid = a.who == ANOTHER_USER ? HC_UID_OTHER : HC_UID_OWNER;
	struct hc_raw_kept kept = {.count = 0};
	char go = 1;

	hc_become(uid, HC_MEMBER_GROUP);
	joins(&a);
	a.raw = hc_raw_session(node.socket); /* of the same process: it has the same ranks */
	hc_tell(out, &go, 1);
	hc_hear(in, &told, sizeof(told), 60000);
	tries_channels(&a, told.channel[0], true);
	tries_channels(&a, told.channel[1], true);
	guesses_channels(&a);
	tries_domains(&a);
	collects(&a, &kept);
	tries_descriptors(&kept, uid);
	tries_paths();
	replays(&a, &kept);
	hc_tell(out, &a.tried, sizeof(a.tried));
	hc_hear(in, &go, 1, 60000);
	return 0;
}

/* ---- the story ---- */

static void want_same_books(const struct hc_ledger *was, const struct hc_ledger *is)
{
	ck_assert(was->whole && is->whole);
	ck_assert_uint_eq(is->links, was->links);
	ck_assert_uint_eq(is->channels, was->channels + 1); /* without bandwidth */
	ck_assert_uint_eq(is->waits + is->tickets, 0);
	for (uint32_t i = 0; i < was->links; i++) {
		ck_assert_uint_eq(is->link[i].used[0], was->link[i].used[0]);
		ck_assert_uint_eq(is->link[i].used[1], was->link[i].used[1]);
	}
}

static bool all_but_one_have_ended(void *ctx)
{
	struct hc_ledger l;

	hc_ledger_read(*(const int *)ctx, &l);
	return l.channels == 3;
}

static void want_alive(struct hc_child *victim)
{
	char go = 1;

	hc_child_tell(victim, &go, 1);
	hc_child_read(victim, &go, 1, 20000);
}

START_TEST(nothing_of_another_domain_can_be_reached)
{
	enum who who[ATTACKERS] = {ANOTHER_USER, SAME_USER, SAME_DOMAIN};
	struct hc_child victim, attacker[ATTACKERS];
	struct hc_ledger was, is;
	unsigned tried;
	int books;
	char go;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 8, "log_rate = 1\norphan_grace_s = 1");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	books = hc_ledger_open(&node);
	hc_spawn(&victim, a_victim, NULL);
	hc_child_read(&victim, &told, sizeof(told), 20000);
	for (unsigned i = 0; i < ATTACKERS; i++) {
		hc_spawn(&attacker[i], an_attacker, &who[i]);
		hc_child_read(&attacker[i], &go, 1, 20000);
	}
	hc_child_read(&victim, &told, sizeof(told), 20000);
	want_alive(&victim);
	hc_ledger_read(books, &was);
	ck_assert_uint_eq(was.channels, 2);
	for (unsigned i = 0; i < ATTACKERS; i++) {
		hc_child_tell(&attacker[i], &told, sizeof(told));
		hc_child_read(&attacker[i], &tried, sizeof(tried), 60000);
		ck_assert_uint_gt(tried, 1000);
		want_alive(&victim);
		hc_ledger_read(books, &is);
		ck_assert_uint_eq(is.channels, 3 + i); /* each has one of its own */
	}
	for (unsigned i = 0; i < 2; i++) /* the third ends the victim's domain with it */
		hc_child_kill(&attacker[i]);
	hc_await("the attackers' channels to end", all_but_one_have_ended, &books, 5000);
	hc_ledger_read(books, &is);
	want_same_books(&was, &is);
	want_alive(&victim);
	close(books);
	hc_child_kill(&attacker[2]);
	hc_child_kill(&victim);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, nothing_of_another_domain_can_be_reached);
}

int main(void)
{
	return hc_suite_run("isolation", add, 90);
}
