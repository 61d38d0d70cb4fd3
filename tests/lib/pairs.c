/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons that know each other; see pairs.h. */
#include "pairs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netns.h"

static struct hc_run run;

static void wait_for_others(const char *program)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "/tmp/hcomm-ports-%s.lock", program);
	/* the kernel may refuse O_CREAT on a file of another user in /tmp */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		hc_fail("%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX)) /* kept until this process ends */
		hc_fail("%s: %s", path, strerror(errno));
}

void hc_ports_own(const char *program)
{
	if (geteuid() || unshare(CLONE_NEWNET))
		wait_for_others(program);
	else
		hc_netns_loopback();
}

void hc_pair_prepare(struct hc_node *n, unsigned i, unsigned count, unsigned port, const char *key,
		     const char *top)
{
	char options[1024], sections[1024] = "", path[200];
	unsigned k;

	snprintf(options, sizeof(options),
		 "node_name = node%u\nlisten_address = 127.0.0.%u\nlisten_port = %u\n%s", i, i + 1,
		 port, top ? top : "");
	for (k = 0; k < count; k++) {
		size_t at = strlen(sections);

		if (k != i)
			snprintf(sections + at, sizeof(sections) - at,
				 "[node node%u]\naddress = 127.0.0.%u\n", k, k + 1);
	}
	hc_node_prepare(n, 2, options, sections);
	snprintf(path, sizeof(path), "%s/no.key", n->dir);
	if (!key)
		return;
	hc_write_file(path, key);
	hc_want(!chmod(path, 0400));
}

int hc_port_hold(const char *addr, unsigned port, bool udp)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int on = 1, fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	hc_want(fd >= 0 && inet_pton(AF_INET, addr, &sa.sin_addr) == 1);
	if (!udp) /* connections of an earlier test may still be ending */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || (!udp && listen(fd, 8)))
		hc_fail("%s port %u: %s", addr, port, strerror(errno));
	return fd;
}

bool hc_pair_shows(const struct hc_node *n, const char *node, const char *word)
{
	char copy[4096], *rest = copy, *line;

	hc_ctl(&run, n, "node", "list", "--no-headings", (char *)NULL);
	snprintf(copy, sizeof(copy), "%.4000s", run.out);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, node) && strstr(line, word))
			return true;
	return false;
}

struct wish {
	const struct hc_node *n;
	const char *node, *word;
};

static bool shows(void *ctx)
{
	const struct wish *w = ctx;

	return hc_pair_shows(w->n, w->node, w->word);
}

static bool has_logged(void *ctx)
{
	const struct wish *w = ctx;

	return hc_node_logged(w->n, w->word);
}

void hc_pair_await(const struct hc_node *n, const char *node, const char *word)
{
	struct wish w = {n, node, word};

	if (!hc_wait_until(shows, &w, 10000))
		hc_fail("%s does not become '%s': %s", node, word, run.out);
}

void hc_pair_await_log(const struct hc_node *n, const char *text)
{
	struct wish w = {n, NULL, text};

	hc_await(text, has_logged, &w, 10000);
}

void hc_pair_table(const struct hc_node *n, char *path, size_t bytes)
{
	static const char entry[] = "{\"server_id\":\"node%u\",\"device\":["
				    "{\"device_id\":\"0\",\"device_ip\":\"192.0.2.%u\","
				    "\"rank_id\":\"%u\"},"
				    "{\"device_id\":\"1\",\"device_ip\":\"192.0.2.%u\","
				    "\"rank_id\":\"%u\"}]}";
	char a[300], b[300], text[800];

	snprintf(path, bytes, "%s/table.json", n->dir);
	snprintf(a, sizeof(a), entry, 0u, 1u, 0u, 2u, 1u);
	snprintf(b, sizeof(b), entry, 1u, 3u, 2u, 4u, 3u);
	snprintf(text, sizeof(text),
		 "{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"2\","
		 "\"server_list\":[%s,%s]}",
		 a, b);
	hc_write_file(path, text);
}
