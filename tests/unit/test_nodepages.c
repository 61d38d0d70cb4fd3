/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs and arenas of the daemon: what outlives a restart, what is refused, who may write.
 *
 * Each test has a directory of its own for the slabs. What a client must not be able to do is
 * tried with a client's means, in a forked child: the descriptor that it was given.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hcomm/hcomm.h"
#include "nodepages.h"
#include "ops.h"

#define SLAB_BYTES  ((size_t)HC_SLAB_RECORDS * HC_RECORD_BYTES)
#define ARENA_BYTES ((off_t)HC_ARENA_BLOCKS * HC_BLOCK_BYTES)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static char dir[64];
static struct hc_pages *pages;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "%s/hc-pages-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(hc_pages_open(dir, &pages), 0);
}

static void teardown(void)
{
	char command[128];

	pages = hc_pages_close(pages);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static struct hc_page_record *record_of(uint32_t uid, uint32_t slot)
{
	struct hc_page_record *record;

	ck_assert_int_eq(hc_pages_record(pages, uid, slot, &record), 0);
	return record;
}

static struct hc_pages_state state_of(uint64_t id, const char *cause)
{
	return (struct hc_pages_state){.id = id,
				       .start = 2,
				       .tag = HC_TAG(1, 1),
				       .epoch = 1,
				       .number = 9,
				       .nranks = 8,
				       .state = HCOMM_DAMAGED,
				       .cause_kind = HC_W_event_code_RANK_DIED,
				       .cause_rank = 3,
				       .cause_pid = 4711,
				       .cause = {cause, (uint32_t)strlen(cause)}};
}

static const struct hc_page_record *client_map(uint32_t uid, uint32_t slab)
{
	const struct hc_page_record *at;
	int fd;

	ck_assert_int_eq(hc_pages_slab_fd(pages, uid, slab, &fd), 0);
	at = mmap(NULL, SLAB_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	return at;
}

/* ---- slabs ---- */

static void check_slab_file(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(path_of(name), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq((uint64_t)st.st_size, SLAB_BYTES);
	ck_assert_uint_lt((uint64_t)st.st_blocks * 512, SLAB_BYTES / 4); /* sparse */
}

START_TEST(each_owner_has_files_of_its_own)
{
	struct hc_page_record *a = record_of(1000, 7), *b = record_of(1001, 7);
	struct hc_page_record *far = record_of(1000, HC_SLAB_RECORDS + 7);
	struct hc_pages_state s = state_of(11, "");
	int fd;

	ck_assert_ptr_ne(a, b);
	hc_pages_publish(a, &s);
	ck_assert_uint_eq(b->id, 0);
	ck_assert_uint_eq(far->id, 0);
	check_slab_file("slab-1000-0");
	check_slab_file("slab-1001-0");
	check_slab_file("slab-1000-1");
	ck_assert_ptr_eq(record_of(1000, 7), a);
	ck_assert_int_eq(hc_pages_slab_fd(pages, 1002, 0, &fd), HC_E_NOT_FOUND);
	ck_assert_int_eq(hc_pages_slab_fd(pages, 1001, 1, &fd), HC_E_NOT_FOUND);
	ck_assert_int_eq(hc_pages_record(pages, 1, HC_SLABS_MAX * HC_SLAB_RECORDS, &a), HC_E_LIMIT);
}
END_TEST

static void count_record(uint32_t uid, uint32_t slot, struct hc_page_record *record, void *context)
{
	int *n = context;

	ck_assert_uint_eq(uid, 1000);
	ck_assert_uint_eq(slot, HC_SLAB_RECORDS + 3);
	ck_assert_uint_eq(record->id, 42);
	++*n;
}

START_TEST(a_restarted_daemon_finds_the_same_pages)
{
	struct hc_pages_state s = state_of(42, "rank 3, pid 4711, exited");
	const struct hc_page_record *client;
	struct hc_page_record *r;
	int n = 0;

	hc_pages_publish(record_of(1000, HC_SLAB_RECORDS + 3), &s);
	client = client_map(1000, 1);
	pages = hc_pages_close(pages);
	ck_assert_int_eq(hc_pages_open(dir, &pages), 0);
	hc_pages_each(pages, count_record, &n);
	ck_assert_int_eq(n, 1);
	r = record_of(1000, HC_SLAB_RECORDS + 3);
	ck_assert_uint_eq(r->gate, HC_GATE(2, HC_TAG(1, 1), HCOMM_DAMAGED));
	ck_assert_uint_eq(r->number, 9);
	ck_assert_uint_eq(r->nranks, 8);
	ck_assert_uint_eq(r->epoch, 1);
	ck_assert_uint_eq(r->cause_rank, 3);
	ck_assert_uint_eq(r->cause_pid, 4711);
	ck_assert_str_eq(r->cause, "rank 3, pid 4711, exited");
	/* the client's old mapping is still the page */
	s.start = 3;
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(client[3].gate, HC_GATE(3, HC_TAG(1, 1), HCOMM_DAMAGED));
	ck_assert_uint_eq(client[3].seq & 1, 0);
	munmap((void *)(uintptr_t)client, SLAB_BYTES);
}
END_TEST

/* What a domain was shown as: committed, of that id, epoch and use of the slot, and not over. */
START_TEST(what_was_shown_is_found)
{
	static const uint8_t states[] = {HCOMM_FORMING,   HCOMM_ACTIVATING, HCOMM_ACTIVE,
					 HCOMM_SUSPENDED, HCOMM_DAMAGED,    HCOMM_DRAINING,
					 HCOMM_DESTROYED, HCOMM_FAILED};
	struct hc_pages_state s = state_of(42, "");
	struct hc_page_record *r = record_of(1000, 3);
	uint64_t cut;
	unsigned i;

	ck_assert(!hc_pages_shown(r, 42, s.tag, &cut));
	for (i = 0; i < sizeof(states); i++) {
		s.state = states[i];
		s.locked = i & 1;
		s.start = i;
		hc_pages_publish(r, &s);
		ck_assert_uint_eq(hc_pages_shown(r, 42, s.tag, &cut),
				  i >= 2 && i < 6 ? states[i] : 0u);
		ck_assert_uint_eq(cut, 0);
	}
	s.state = HCOMM_DRAINING;
	s.cut_set = HC_CUT_SET;
	s.cut = 7;
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(hc_pages_shown(r, 42, s.tag, &cut), HCOMM_DRAINING);
	ck_assert_uint_eq(cut, 7);
	s.state = HCOMM_ACTIVE;
	hc_pages_publish(r, &s);
	ck_assert(hc_pages_shown(r, 42, s.tag, &cut));
	ck_assert(!hc_pages_shown(r, 43, s.tag, &cut));
	ck_assert(!hc_pages_shown(r, 42, HC_TAG(1, 2), &cut));
	ck_assert(!hc_pages_shown(r, 42, HC_TAG(2, 1), &cut));
	hc_pages_free(r);
	ck_assert(!hc_pages_shown(r, 42, s.tag, &cut));
	ck_assert(!hc_pages_shown(r, 0, s.tag, &cut));
}
END_TEST

/* The row of the death was not stored yet: the record says more than it, and keeps that. */
START_TEST(a_death_that_was_told_is_not_taken_back)
{
	struct hc_pages_state told = state_of(42, "rank 3, pid 4711, exited");
	struct hc_pages_state row = state_of(42, "");
	struct hc_page_record *r = record_of(1000, 3);
	uint32_t wake;

	hc_pages_publish(r, &told);
	wake = r->wake;
	row.start = 3;
	row.state = HCOMM_ACTIVE;
	row.cause_kind = row.cause_pid = 0;
	hc_pages_restore(r, &row);
	ck_assert_uint_eq(r->gate, HC_GATE(3, HC_TAG(1, 1), HCOMM_DAMAGED));
	ck_assert_str_eq(r->cause, "rank 3, pid 4711, exited");
	ck_assert_uint_eq(r->cause_pid, 4711);
	ck_assert_uint_eq(r->wake, wake);
	row.locked = true;
	hc_pages_restore(r, &row);
	ck_assert_uint_eq(r->gate, HC_GATE(3, HC_TAG(1, 1), HCOMM_DAMAGED | HC_GATE_LOCKED));
	/* of anything else the row is right: another epoch, a cause of another kind, half a word */
	row.locked = false;
	row.tag = HC_TAG(1, 2);
	hc_pages_restore(r, &row);
	ck_assert_uint_eq(r->gate, HC_GATE(3, HC_TAG(1, 2), HCOMM_ACTIVE));
	row.tag = told.tag;
	told.cause_kind = HC_W_event_code_RANK_ABORTED;
	hc_pages_publish(r, &told);
	hc_pages_restore(r, &row);
	ck_assert_uint_eq(r->gate, HC_GATE(3, HC_TAG(1, 1), HCOMM_ACTIVE));
	told.cause_kind = HC_W_event_code_RANK_DIED;
	hc_pages_publish(r, &told);
	r->seq++;
	hc_pages_restore(r, &row);
	ck_assert_uint_eq(r->gate, HC_GATE(3, HC_TAG(1, 1), HCOMM_ACTIVE));
	ck_assert_str_eq(r->cause, "");
	ck_assert_uint_eq(r->seq & 1, 0);
}
END_TEST

/* A daemon killed while it wrote a cause leaves an odd seq; the next one ends on an even one. */
START_TEST(a_cause_cut_off_by_a_kill_is_written_whole)
{
	struct hc_pages_state s = state_of(5, "x");
	struct hc_page_record *r = record_of(1000, 0);

	r->seq = 7;
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(r->seq, 8);
	ck_assert_str_eq(r->cause, "x");
}
END_TEST

START_TEST(a_long_cause_ends_at_a_character)
{
	struct hc_page_record *r = record_of(1000, 0);
	struct hc_pages_state s;
	char text[2 * HC_CAUSE_BYTES + 2] = "a";
	size_t i;

	for (i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 3);
	s = state_of(5, text);
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(strlen(r->cause), HC_CAUSE_BYTES - 1); /* 1 + 95 x 2 */
	s.cause = (struct hc_str){text + 1, (uint32_t)strlen(text + 1)};
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(strlen(r->cause), HC_CAUSE_BYTES - 2);
}
END_TEST

START_TEST(the_cut_is_not_set_back_on_the_way_out)
{
	struct hc_pages_state s = state_of(5, "");
	struct hc_page_record *r = record_of(1000, 0);

	s.state = HCOMM_DRAINING;
	s.cut_set = HC_CUT_CLOSED;
	s.cut = 17;
	hc_pages_publish(r, &s);
	s.state = HCOMM_DESTROYED;
	s.cut_set = HC_CUT_NONE;
	s.cut = 0;
	hc_pages_publish(r, &s);
	ck_assert_uint_eq(r->cut_set, HC_CUT_CLOSED);
	ck_assert_uint_eq(r->cut, 17);
	hc_pages_free(r);
	ck_assert_uint_eq(r->id, 0);
	ck_assert_uint_eq(r->gate & HC_GATE_STATE_MASK, HCOMM_DESTROYED);
}
END_TEST

START_TEST(files_that_others_could_write_are_refused)
{
	struct hc_page_record *r;
	int fd = open(path_of("slab-7-0"), O_CREAT | O_RDWR, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0620), 0);
	close(fd);
	ck_assert_int_eq(hc_pages_record(pages, 7, 0, &r), -EPERM);
	ck_assert_int_eq(symlink("/dev/null", path_of("slab-8-0")), 0);
	ck_assert_int_eq(hc_pages_record(pages, 8, 0, &r), -ELOOP);
	ck_assert_int_eq(mkfifo(path_of("slab-9-0"), 0600), 0);
	ck_assert_int_eq(hc_pages_record(pages, 9, 0, &r), -EPERM);
	/* a short file would fault its readers: it gets its length */
	close(open(path_of("slab-10-0"), O_CREAT | O_RDWR, 0600));
	ck_assert_uint_eq(record_of(10, 1)->id, 0);
	check_slab_file("slab-10-0");
}
END_TEST

START_TEST(a_failing_directory_is_reported)
{
	struct hc_pages *p = NULL;

	ck_assert_int_eq(hc_pages_open("/proc/no/such", &p), -ENOENT);
	close(open(path_of("file"), O_CREAT | O_RDWR, 0600));
	ck_assert_int_eq(hc_pages_open(path_of("file"), &p), -ENOTDIR);
	ck_assert_ptr_null(p);
}
END_TEST

/* What a client can try with what it was given. 0: all of it was refused. */
static int intrude(int fd, void *view)
{
	char c = 1;

	if (mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED ||
	    errno != EACCES)
		return 1;
	if (!mprotect(view, SLAB_BYTES, PROT_READ | PROT_WRITE) || errno != EACCES)
		return 2;
	if (write(fd, &c, 1) >= 0 || !ftruncate(fd, 0))
		return 3;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) >= 0)
		return 4;
	return 0;
}

/* Another user cannot open the descriptor anew either; that takes root to try. */
static int reopen(int fd)
{
	char path[64];

	if (geteuid())
		return 0;
	if (setgid(65534) || setuid(65534))
		return 5;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR) >= 0 ? 6 : 0;
}

START_TEST(a_client_cannot_write_a_record)
{
	const struct hc_page_record *view;
	int fd, r, status;
	pid_t pid;

	record_of(1000, 0);
	view = client_map(1000, 0);
	ck_assert_int_eq(hc_pages_slab_fd(pages, 1000, 0, &fd), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		r = intrude(fd, (void *)(uintptr_t)view);
		_exit(r ? r : reopen(fd));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(fd);
	munmap((void *)(uintptr_t)view, SLAB_BYTES);
}
END_TEST

/* ---- arenas ---- */

static int memfd(off_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, bytes), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void refused(int fd)
{
	struct hc_arena a = {.fd = -1};

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hc_arena_adopt(fd, &a), HC_E_INVALID);
	ck_assert_ptr_null(a.blocks);
	ck_assert_int_eq(close(fd), 0); /* it stays the caller's */
}

START_TEST(an_arena_of_another_shape_is_refused)
{
	struct hc_arena a = {.fd = -1};
	char path[64];
	int fd;

	refused(memfd(ARENA_BYTES, F_SEAL_SHRINK | F_SEAL_GROW));
	refused(memfd(ARENA_BYTES, F_SEAL_SHRINK | F_SEAL_SEAL));
	refused(memfd(ARENA_BYTES, F_SEAL_GROW | F_SEAL_SEAL));
	refused(memfd(ARENA_BYTES, SEALS | F_SEAL_WRITE));
	refused(memfd(ARENA_BYTES - 1, SEALS));
	refused(memfd(ARENA_BYTES + 4096, SEALS));
	refused(memfd(0, SEALS));
	refused(open(path_of("plain"), O_CREAT | O_RDWR, 0600));
	refused(open("/dev/null", O_RDWR));
	ck_assert_int_eq(hc_arena_adopt(-1, &a), HC_E_INVALID);
	fd = memfd(ARENA_BYTES, SEALS);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	refused(open(path, O_RDONLY));
	close(fd);
}
END_TEST

/* Huge pages carry seals, but touching one that the pool lacks kills the toucher. */
START_TEST(an_arena_of_huge_pages_is_refused)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0)
		return; /* this kernel has none to try with */
	ck_assert_int_eq(ftruncate(fd, ARENA_BYTES), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	refused(fd);
}
END_TEST

START_TEST(an_arena_keeps_its_size_and_comes_back)
{
	struct hc_arena_sample sample;
	struct hc_arena made, back;

	ck_assert_int_eq(hc_arena_make(&made), 0);
	ck_assert_int_ne(ftruncate(made.fd, 0), 0);
	ck_assert_int_ne(ftruncate(made.fd, 2 * ARENA_BYTES), 0);
	made.blocks[9].head.domain = 4;
	made.blocks[9].head.begun = 6;
	made.blocks[9].line[13].begins[1] = 5;
	made.blocks[9].shared.ends[1] = 2;
	ck_assert_int_eq(hc_arena_adopt(dup(made.fd), &back), 0);
	hc_arena_drop(&made);
	ck_assert_int_eq(hc_arena_scan(&back, 9, 4, 1, &sample), 0);
	ck_assert(sample.sane);
	ck_assert_uint_eq(sample.running, 3);
	ck_assert_uint_eq(sample.begun, 6);
	ck_assert_int_eq(hc_arena_scan(&back, 9, 4, 0, &sample), 0);
	ck_assert_uint_eq(sample.running, 0);
	hc_arena_drop(&back);
	hc_arena_drop(&back);
	ck_assert_int_eq(hc_arena_scan(&back, 9, 4, 0, &sample), HC_E_INVALID);
}
END_TEST

static void check_nonsense(struct hc_arena *a, bool sane)
{
	struct hc_arena_sample sample;

	ck_assert_int_eq(hc_arena_scan(a, 0, 1, 0, &sample), 0);
	ck_assert_int_eq(sample.sane, sane);
	if (!sane)
		ck_assert_uint_eq(sample.begun + sample.running + sample.kind, 0);
	memset(&a->blocks[0], 0, sizeof(a->blocks[0]));
	a->blocks[0].head.domain = 1;
}

START_TEST(nonsense_in_a_block_is_called_so)
{
	struct hc_arena_sample sample;
	struct hc_arena a;

	ck_assert_int_eq(hc_arena_make(&a), 0);
	a.blocks[0].head.domain = 1;
	check_nonsense(&a, true);
	a.blocks[0].line[0].ends[0] = 1; /* more ends than begins */
	check_nonsense(&a, false);
	a.blocks[0].line[3].begins[0] = HC_ARENA_RUNNING_MAX;
	check_nonsense(&a, true);
	a.blocks[0].line[3].begins[0] = HC_ARENA_RUNNING_MAX + 1;
	check_nonsense(&a, false);
	a.blocks[0].head.begun = UINT64_MAX;
	check_nonsense(&a, false);
	a.blocks[0].head.begun = 1;
	a.blocks[0].head.last_kind = 0xffffffff00ull;
	ck_assert_int_eq(hc_arena_scan(&a, 0, 1, 0, &sample), 0);
	ck_assert(sample.sane);
	ck_assert_uint_eq(sample.kind, 0);
	memset(&a.blocks[0], 0xff, sizeof(a.blocks[0]));
	ck_assert_int_eq(hc_arena_scan(&a, 0, UINT64_MAX, 0, &sample), 0);
	ck_assert(!sample.sane);
	ck_assert_int_eq(hc_arena_scan(&a, HC_ARENA_BLOCKS, 1, 0, &sample), HC_E_INVALID);
	ck_assert_int_eq(hc_arena_scan(&a, UINT32_MAX, 1, 0, &sample), HC_E_INVALID);
	ck_assert_int_eq(hc_arena_scan(&a, HC_ARENA_BLOCKS - 1, 1, 7, &sample), 0);
	hc_arena_drop(&a);
}
END_TEST

START_TEST(shared_memory_is_proved_by_an_answer)
{
	struct hc_arena a, other;

	ck_assert_int_eq(hc_arena_make(&a), 0);
	ck_assert_int_eq(hc_arena_make(&other), 0);
	ck_assert_int_eq(hc_arena_nonce_put(&a, 2, 0xfeed), 0);
	ck_assert(!hc_arena_nonce_proved(&a, 2, 0xfeed));
	hc_ops_nonce_answer(&other.blocks[2]); /* not the same memory */
	ck_assert(!hc_arena_nonce_proved(&a, 2, 0xfeed));
	hc_ops_nonce_answer(&a.blocks[2]);
	ck_assert(hc_arena_nonce_proved(&a, 2, 0xfeed));
	ck_assert(!hc_arena_nonce_proved(&a, 2, 0xfeee));
	ck_assert_int_eq(hc_arena_nonce_put(&a, HC_ARENA_BLOCKS, 1), HC_E_INVALID);
	ck_assert(!hc_arena_nonce_proved(&a, HC_ARENA_BLOCKS, 1));
	hc_arena_drop(&other);
	hc_arena_drop(&a);
}
END_TEST

/* ---- the fence ---- */

/* From here on the kernel refuses membarrier to this process: all of it, or one command. */
static int refuse_membarrier(bool all, uint32_t command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, command, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (all)
		code[3].jf = 0;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int without_membarrier(bool all)
{
	if (refuse_membarrier(all, MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		return 1;
	if (!all)
		return hc_pages_fence() == HC_E_NOT_SUPPORTED ? 0 : 2;
	if (hc_pages_fence() != -EPERM || hc_pages_fence_supported())
		return 3;
	return hc_ops_register() == HC_E_NOT_SUPPORTED ? 0 : 4;
}

START_TEST(a_fence_that_fails_is_reported)
{
	int status;
	pid_t pid;

	ck_assert(hc_pages_fence_supported());
	ck_assert_int_eq(hc_pages_fence(), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(without_membarrier(_i));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nodepages");
	TCase *c = tcase_create("shared memory");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, each_owner_has_files_of_its_own);
	tcase_add_test(c, a_restarted_daemon_finds_the_same_pages);
	tcase_add_test(c, what_was_shown_is_found);
	tcase_add_test(c, a_death_that_was_told_is_not_taken_back);
	tcase_add_test(c, a_cause_cut_off_by_a_kill_is_written_whole);
	tcase_add_test(c, a_long_cause_ends_at_a_character);
	tcase_add_test(c, the_cut_is_not_set_back_on_the_way_out);
	tcase_add_test(c, files_that_others_could_write_are_refused);
	tcase_add_test(c, a_failing_directory_is_reported);
	tcase_add_test(c, a_client_cannot_write_a_record);
	tcase_add_test(c, an_arena_of_another_shape_is_refused);
	tcase_add_test(c, an_arena_of_huge_pages_is_refused);
	tcase_add_test(c, an_arena_keeps_its_size_and_comes_back);
	tcase_add_test(c, nonsense_in_a_block_is_called_so);
	tcase_add_test(c, shared_memory_is_proved_by_an_answer);
	tcase_add_loop_test(c, a_fence_that_fails_is_reported, 0, 2);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
