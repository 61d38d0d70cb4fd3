/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with rails between them; see lab.h. */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eye.h"
#include "pairs.h"

static int own_ns(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		hc_fail("/proc/self/ns/net: %s", strerror(errno));
	return fd;
}

static void enter(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		hc_fail("setns: %s", strerror(errno));
}

void hc_lab_go(struct hc_lab *lab, unsigned i)
{
	hc_want(i < lab->nnodes);
	enter(lab->at[i].ns);
}

void hc_lab_home(struct hc_lab *lab)
{
	enter(lab->home);
}

static void make_node(struct hc_lab *lab, unsigned i, unsigned mtu)
{
	char path[64];
	unsigned r;

	if (unshare(CLONE_NEWNET))
		hc_fail("unshare: %s", strerror(errno));
	lab->at[i].ns = own_ns();
	hc_ip("link set lo up\n");
	hc_lab_home(lab);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), lab->at[i].ns);
	for (r = 0; r < lab->rails; r++) {
		hc_ip("link add p%ur%u mtu %u type veth peer name rail%u mtu %u netns %s\n"
		      "link set p%ur%u master switch%u up\n",
		      i, r, mtu, r, mtu, path, i, r, r);
		hc_lab_ip(lab, i, "addr add 10.71.%u.%u/24 dev rail%u\nlink set rail%u up\n", r,
			  i + 1, r, r);
	}
}

bool hc_lab_enter(struct hc_lab *lab, unsigned nnodes, unsigned rails, unsigned mtu)
{
	unsigned i;

	hc_want(nnodes <= LAB_NODES);
	memset(lab, 0, sizeof(*lab));
	if (!hc_netns_enter())
		return false;
	lab->nnodes = nnodes;
	lab->rails = rails;
	lab->devices = 1;
	lab->home = own_ns();
	for (i = 0; i < rails; i++)
		hc_ip("link add switch%u mtu %u type bridge\nlink set switch%u up\n", i, mtu, i);
	for (i = 0; i < nnodes; i++)
		make_node(lab, i, mtu);
	return true;
}

/* In the child that becomes the daemon. */
static void move_in(void *arg)
{
	const struct hc_lab_node *at = arg;

	if (setns(at->ns, CLONE_NEWNET))
		_exit(126);
	if (at->host && (unshare(CLONE_NEWUTS) || sethostname(at->host, strlen(at->host))))
		_exit(126);
}

void hc_lab_prepare(struct hc_lab *lab, unsigned i, bool named, const char *top)
{
	char options[1024], sections[1024] = "", path[200];
	struct hc_node *n = &lab->at[i].node;
	unsigned k, r;

	for (k = 0; k < lab->nnodes; k++) {
		size_t at = strlen(sections);

		if (k == i)
			continue;
		at += (size_t)snprintf(sections + at, sizeof(sections) - at, "[node node%u]\n", k);
		for (r = 0; r < lab->rails; r++)
			at += (size_t)snprintf(sections + at, sizeof(sections) - at,
					       "%s10.71.%u.%u", r ? "," : "address = ", r, k + 1);
		snprintf(sections + at, sizeof(sections) - at, "\n");
	}
	snprintf(options, sizeof(options), named ? "node_name = node%u\n%s" : "# node %u\n%s", i,
		 top ? top : "");
	hc_node_prepare(n, lab->devices, options, sections);
	snprintf(path, sizeof(path), "%s/no.key", n->dir);
	hc_write_file(path, HC_KEY_A);
	hc_want(!chmod(path, 0400));
	n->before_exec = move_in;
	n->arg = &lab->at[i];
}

struct wish {
	const struct hc_node *n;
	unsigned paths, peers;
	struct hcomm_view_status row;
};

static bool all_normal(void *ctx)
{
	struct wish *w = ctx;

	hc_row_status(w->n, &w->row);
	/* a section is told from its node only once it was dialled */
	return w->row.peers_up == w->peers && w->row.peers == w->peers &&
	       w->row.paths == w->paths && w->row.paths_good == w->paths;
}

void hc_lab_await_normal(struct hc_lab *lab, unsigned deadline_ms)
{
	unsigned i;

	for (i = 0; i < lab->nnodes; i++) {
		struct wish w = {.n = &lab->at[i].node,
				 .peers = lab->nnodes - 1,
				 .paths = (lab->nnodes - 1) * lab->rails};

		if (!hc_wait_until(all_normal, &w, deadline_ms))
			hc_fail("node%u sees %u nodes up, %u of %u paths normal after %u ms", i,
				w.row.peers_up, w.row.paths_good, w.row.paths,
				hc_patience(deadline_ms));
	}
}

void hc_lab_start(struct hc_lab *lab, const char *top)
{
	unsigned i;

	for (i = 0; i < lab->nnodes; i++) {
		hc_lab_prepare(lab, i, true, top);
		hc_node_run(&lab->at[i].node);
	}
	for (i = 0; i < lab->nnodes; i++)
		hc_pair_await_log(&lab->at[i].node, "ports towards other nodes");
	hc_lab_await_normal(lab, 10000);
}

void hc_lab_end(struct hc_lab *lab)
{
	unsigned i;

	for (i = 0; i < lab->nnodes; i++)
		hc_node_end(&lab->at[i].node);
}

bool hc_nft(const char *format, ...)
{
	char path[] = "/tmp/hc-nft-XXXXXX", command[128];
	int fd = mkstemp(path), status;
	va_list ap;

	hc_want(fd >= 0);
	va_start(ap, format);
	vdprintf(fd, format, ap);
	va_end(ap);
	close(fd);
	snprintf(command, sizeof(command), "nft -f %s >/dev/null 2>&1", path);
	status = system(command);
	unlink(path);
	return status == 0;
}
