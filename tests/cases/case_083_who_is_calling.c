/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 83: who may come in.
 *
 * The mode of a socket was set a moment after the file was there, or by the umask of whoever
 * started the daemon; and credentials came from the wrong field. Under every umask the socket has
 * its group and mode exactly; nothing that the daemon makes may be written by others, ever, and
 * its state is not even readable. Members by their first or by another group come in, strangers
 * do not, and one user does not end another's domain unless it is root. Requests one by one are
 * in tests/sys/test_rights.c, namespaces in tests/sys/test_confined.c.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "raw.h"
#include "suite.h"
#include "users.h"

static struct hc_node node;

static mode_t mode_of(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		hc_fail("%s: %s", path, strerror(errno));
	return st.st_mode & 07777;
}

/* Nothing in the directory may be written by anybody but the daemon; `read`: nor read. */
static void want_private(const char *dir, bool read)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d))) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] == '.' || lstat(path, &st) || S_ISSOCK(st.st_mode))
			continue;
		ck_assert_msg(!(st.st_mode & 022), "%s has mode %o", path, st.st_mode & 0777);
		ck_assert_msg(!read || !(st.st_mode & 077), "%s has mode %o", path,
			      st.st_mode & 0777);
		if (S_ISDIR(st.st_mode))
			want_private(path, read);
	}
	closedir(d);
}

static void under_umask(mode_t mask, const char *mode_text, mode_t mode)
{
	struct hcomm_session *s;
	char path[256];
	struct stat st;
	hcomm_domain d;
	mode_t old;

	hc_users_prepare(&node, 1, NULL);
	hc_conf_set(&node, "socket_mode", mode_text);
	setenv("HCOMM_SOCKET", node.socket, 1);
	old = umask(mask);
	hc_node_run(&node);
	umask(old);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d), 0);
	ck_assert_uint_eq(mode_of(node.socket), mode);
	ck_assert_int_eq(lstat(node.socket, &st), 0);
	ck_assert_uint_eq(st.st_gid, getgrnam(HC_MEMBER_GROUP)->gr_gid);
	snprintf(path, sizeof(path), "%s/state", node.dir);
	want_private(path, true);
	snprintf(path, sizeof(path), "%s/run", node.dir);
	want_private(path, false);
	hcomm_close(s);
	hc_node_end(&node);
}

START_TEST(modes_are_as_configured_under_every_umask)
{
	if (!hc_users_work())
		return;
	under_umask(0000, "0660", 0660);
	under_umask(0077, "0660", 0660);
	under_umask(0777, "0660", 0660);
	under_umask(0000, "0600", 0600);
	under_umask(0077, "0666", 0666);
}
END_TEST

struct who {
	uid_t uid;
	const char *group;
	bool primary; /* by its first group, with no other */
	int want;     /* errno of connect, or 0 */
};

static int comes_in(void *arg, int in, int out)
{
	const struct who *w = arg;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	(void)in;
	(void)out;
	if (w->primary) {
		gid_t g = getgrnam(w->group)->gr_gid;

		if (setgroups(0, NULL) || setresgid(g, g, g) || setresuid(w->uid, w->uid, w->uid))
			hc_fail("cannot become uid %u", (unsigned)w->uid);
	} else {
		hc_become(w->uid, w->group);
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, node.socket, strnlen(node.socket, sizeof(a.sun_path) - 1));
	errno = 0;
	connect(fd, (struct sockaddr *)&a, sizeof(a));
	if (errno != w->want)
		hc_fail("connect of uid %u: %s", (unsigned)w->uid, strerror(errno));
	if (!w->want)
		hc_raw_want_alive(hc_raw_session(node.socket));
	return 0;
}

START_TEST(members_come_in_and_strangers_do_not)
{
	struct who list[] = {
		{HC_UID_OTHER, HC_MEMBER_GROUP, false, 0},
		{HC_UID_OTHER, HC_MEMBER_GROUP, true, 0},
		{HC_UID_STRANGER, NULL, false, EACCES},
		{HC_UID_STRANGER, "nogroup", false, EACCES},
	};
	struct hc_child c;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 1, NULL);
	hc_node_run(&node);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		hc_spawn(&c, comes_in, &list[i]);
		ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	}
	hc_raw_want_alive(hc_raw_session(node.socket)); /* root */
	hc_node_end(&node);
}
END_TEST

static int owns_a_domain(void *arg, int in, int out)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	hcomm_domain d;
	int word = 1;

	(void)arg;
	config.name = "mine";
	hc_become(HC_UID_OWNER, HC_MEMBER_GROUP);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, &config, 5000, &d), 0);
	hc_tell(out, &word, sizeof(word));
	hc_hear(in, &word, sizeof(word), 60000);
	return 0;
}

static int destroys(void *arg, int in, int out)
{
	static struct hc_run r;
	const uid_t uid = *(const uid_t *)arg;
	int status;

	(void)in;
	(void)out;
	if (uid)
		hc_become(uid, HC_MEMBER_GROUP);
	status = hc_ctl(&r, &node, "domain", "destroy", "mine", NULL);
	if (uid && status == 0)
		hc_fail("uid %u has destroyed it: %s", (unsigned)uid, r.out);
	if (!uid && status)
		hc_fail("root may not: %d: %s", status, r.err);
	return 0;
}

START_TEST(one_does_not_end_anothers_domain_unless_root)
{
	uid_t uids[] = {HC_UID_OTHER, HC_UID_OTHER, 0};
	struct hc_child owner, c;
	int word;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 1, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	hc_spawn(&owner, owns_a_domain, NULL);
	hc_child_read(&owner, &word, sizeof(word), 20000);
	for (int i = 0; i < 3; i++) {
		hc_spawn(&c, destroys, &uids[i]);
		ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	}
	hc_child_kill(&owner);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, modes_are_as_configured_under_every_umask);
	tcase_add_test(t, members_come_in_and_strangers_do_not);
	tcase_add_test(t, one_does_not_end_anothers_domain_unless_root);
}

int main(void)
{
	return hc_suite_run("case 83", add, 60);
}
