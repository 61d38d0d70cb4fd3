/* SPDX-License-Identifier: Apache-2.0 */
/* Two hosts in network namespaces; see hosts.h. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hosts.h"

static struct hc_run run;

static void prepare(struct hc_node *n, const char *name, const char *other, const char *address,
		    const char *top)
{
	char options[512], section[128], path[200];

	snprintf(options, sizeof(options), "node_name = %s\nlisten_port = %d\n%s", name,
		 HC_HOST_PORT, top ? top : "");
	snprintf(section, sizeof(section), "[node %s]\naddress = %s\n", other, address);
	hc_node_prepare(n, 1, options, section);
	snprintf(path, sizeof(path), "%s/no.key", n->dir);
	hc_write_file(path, HC_KEY_A);
	hc_want(!chmod(path, 0400));
}

bool hc_hosts_prepare(struct hc_hosts *h, const char *top_a, const char *top_b)
{
	memset(h, 0, sizeof(*h));
	if (!hc_netns_enter())
		return false;
	h->other = hc_netns_other();
	prepare(&h->a, "hA", "hB", "10.71.0.2", top_a);
	prepare(&h->b, "hB", "hA", "10.71.0.1", top_b);
	h->b.before_exec = hc_netns_before_exec;
	h->b.arg = &h->other;
	return true;
}

void hc_hosts_join(struct hc_hosts *h)
{
	hc_netns_join(h->other, "a0", "10.71.0.1", "b0", "10.71.0.2");
}

void hc_hosts_end(struct hc_hosts *h)
{
	hc_node_end(&h->b);
	hc_node_end(&h->a);
	close(h->other);
}

bool hc_path_is(const struct hc_node *n, const char *node, const char *state)
{
	char copy[4096], *rest = copy, *line;

	hc_ctl(&run, n, "path", "list", "--no-headings", (char *)NULL);
	snprintf(copy, sizeof(copy), "%.4000s", run.out);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, node) && strstr(line, state))
			return true;
	return false;
}

struct wish {
	const struct hc_node *n;
	const char *node, *state;
};

static bool is_so(void *ctx)
{
	const struct wish *w = ctx;

	return hc_path_is(w->n, w->node, w->state);
}

void hc_path_await(const struct hc_node *n, const char *node, const char *state,
		   unsigned deadline_ms)
{
	struct wish w = {n, node, state};

	if (!hc_wait_until(is_so, &w, deadline_ms))
		hc_fail("the path to %s does not become '%s': %s", node, state, run.out);
}
