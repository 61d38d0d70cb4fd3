/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and forbidden calls; see confine.h. */
#include "confine.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"

bool hc_confine_pids(void)
{
	return !unshare(CLONE_NEWPID);
}

bool hc_confine_users(void)
{
	if (unshare(CLONE_NEWUSER))
		return false;
	hc_write_file("/proc/self/setgroups", "deny\n");
	hc_write_file("/proc/self/uid_map", "0 0 1\n");
	hc_write_file("/proc/self/gid_map", "0 0 1\n");
	return true;
}

void hc_confine_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		hc_fail("seccomp: %s", strerror(errno));
}
