/* SPDX-License-Identifier: Apache-2.0 */
/* Other nodes in the life of the daemon; see shellnet.h. */
#include <stdio.h>
#include <string.h>
#include "keyfile.h"
#include "log.h"
#include "loopnet.h"
#include "peers.h"
#include "shellnet.h"

#define PATHS_OF_PEER 4u /* on the average */
#define PORTS         64u
#define MAIL_KIB      65536u /* taken from the system as used */
#define HOLD_MS       2000u
#define FLUSH_MS      150u
#define CONNECT_MS    2000u /* beyond probe_timeout */
#define MS            1000000ull
#define SECOND        1000000000ull

/* ---- before the loop ---- */

static int read_key(struct hc_shell *sh, char *why, size_t size)
{
	char path[1100];
	int r;

	if (sh->conf.security == HC_CONF_security_none) {
		sh->self.peers = true;
		hc_log(HC_LOG_WARN, "security = none: other nodes are neither authenticated nor "
				    "is anything encrypted");
		return 0;
	}
	hc_keyfile_path(sh->conf.key_file, hc_conf_is_set(&sh->conf.origin[HC_OPT_key_file]), path,
			sizeof(path));
	r = hc_keyfile_read(path, sh->key, why, size);
	if (r == HC_KEYFILE_REFUSED)
		return HC_SHELLNET_REFUSED;
	sh->self.peers = r == HC_KEYFILE_OK;
	if (!sh->self.peers)
		hc_log(HC_LOG_INFO,
		       "alone: no cluster key at %s; hcommctl key generate makes one, the same "
		       "for all nodes",
		       path);
	return 0;
}

/* The digits of the kernel's uuid. */
static void read_boot_id(const char *text, uint8_t id[16])
{
	unsigned n = 0;
	int digit;

	memset(id, 0, 16);
	for (; *text && n < 32; text++) {
		if (*text >= '0' && *text <= '9')
			digit = *text - '0';
		else if (*text >= 'a' && *text <= 'f')
			digit = *text - 'a' + 10;
		else
			continue;
		id[n / 2] = (uint8_t)(id[n / 2] << 4 | digit);
		n++;
	}
}

int hc_shellnet_prepare(struct hc_shell *sh, char *why, size_t size)
{
	const struct hc_peers_want want = {sh->conf.listen_port.lo, sh->conf.listen_port.hi,
					   sh->conf.listen_address};
	struct hc_self *s = &sh->self;
	int r;

	snprintf(s->cluster, sizeof(s->cluster), "%s", sh->conf.cluster);
	read_boot_id(sh->boot_id, s->boot_id);
	hc_ident_random(&s->cookie, sizeof(s->cookie));
	s->security = sh->conf.security == HC_CONF_security_none;
	r = read_key(sh, why, size);
	if (r || !s->peers)
		return r;
	if (hc_peers_bind(&want, &sh->socks, why, size))
		return HC_SHELLNET_TAKEN;
	s->port = sh->socks.port;
	return 0;
}

void hc_shellnet_limits(struct hc_shell *sh)
{
	struct hc_limits *l = &sh->limits;

	l->peers = sh->conf.peers_max;
	l->paths = sh->conf.peers_max * PATHS_OF_PEER;
	l->ports = PORTS;
	l->mail = MAIL_KIB;
}

void hc_shellnet_settings(const struct hc_conf *c, struct hc_settings *set)
{
	set->beat_ns = c->heartbeat_interval_ms * MS;
	set->misses = c->heartbeat_misses;
	set->down_misses = c->heartbeat_down_misses;
	set->probe_timeout_ns = c->probe_timeout_ms * MS;
	set->mtu_recheck_ns = c->mtu_recheck_s * SECOND;
	set->daemon_grace_ns = c->daemon_grace_s * SECOND;
	set->flap_window_ns = c->flap_window_s * SECOND;
	set->flap_limit = c->flap_limit;
}

/* ---- with the loop ---- */

int hc_shellnet_make(struct hc_shell *sh, char *why, size_t size)
{
	struct hc_loopnet_args args = {.base = sh->base,
				       .loop = sh->loop,
				       .self = &sh->self,
				       .conf = &sh->conf,
				       .socks = &sh->socks,
				       .key = sh->self.security ? NULL : sh->key,
				       .limit_ms = sh->conf.probe_timeout_ms + CONNECT_MS};
	int r = sh->self.peers ? hc_loopnet_new(&args, &sh->net, why, size) : 0;

	explicit_bzero(sh->key, sizeof(sh->key));
	if (sh->net)
		hc_loop_set_net(sh->loop, sh->net);
	return r;
}

/* The port that is not given is ours: all nodes of a cluster are alike unless they say so. */
static void fill_fact(const struct hc_conf *c, const struct hc_conf_node *node, bool present,
		      struct hc_node_fact *f)
{
	char item[HC_CONF_VALUE_MAX];
	const char *list = node->address;
	struct hc_conf_endpoint e;
	struct hc_endpoint *to;

	memset(f, 0, sizeof(*f));
	snprintf(f->name, sizeof(f->name), "%s", node->name);
	f->present = present;
	while (f->nendpoints < HC_NODE_ENDPOINTS && hc_conf_item(&list, item, sizeof(item))) {
		if (!hc_conf_endpoint(item, &e))
			continue;
		to = &f->endpoints[f->nendpoints++];
		to->addr.family = e.family;
		memcpy(to->addr.bytes, e.addr, sizeof(e.addr));
		to->port = e.port ? e.port : c->listen_port.lo;
	}
}

static const struct hc_conf_node *find(const struct hc_conf *c, const char *name)
{
	uint32_t i;

	for (i = 0; i < c->nnodes; i++)
		if (!strcmp(c->nodes[i].name, name))
			return &c->nodes[i];
	return NULL;
}

static void tell(struct hc_shell *sh, const struct hc_conf *c, const struct hc_conf_node *node,
		 bool present)
{
	struct hc_node_fact fact;
	struct hc_event ev = {.kind = HC_EV_NODE_FACT, .u.node = &fact};

	fill_fact(c, node, present, &fact);
	hc_loop_event(sh->loop, &ev);
}

int hc_shellnet_start(struct hc_shell *sh)
{
	uint32_t i;
	int r = sh->net ? hc_loopnet_start(sh->net) : 0;

	for (i = 0; !r && i < sh->conf.nnodes; i++)
		tell(sh, &sh->conf, &sh->conf.nodes[i], true);
	return r;
}

void hc_shellnet_reload(struct hc_shell *sh, const struct hc_conf *now)
{
	const struct hc_conf_node *known;
	uint32_t i;

	for (i = 0; i < sh->conf.nnodes; i++)
		if (!find(now, sh->conf.nodes[i].name))
			tell(sh, &sh->conf, &sh->conf.nodes[i], false);
	for (i = 0; i < now->nnodes; i++) {
		known = find(&sh->conf, now->nodes[i].name);
		if (!known || strcmp(known->address, now->nodes[i].address))
			tell(sh, now, &now->nodes[i], true);
	}
	if (sh->net)
		hc_loopnet_set_limit(sh->net, now->probe_timeout_ms + CONNECT_MS);
}

/* ---- the end ---- */

void hc_shellnet_hold(struct hc_shell *sh)
{
	const struct hc_event ev = {.kind = HC_EV_HOLD, .u.hold_ms = HOLD_MS};

	if (sh->net)
		hc_loop_event(sh->loop, &ev);
}

void hc_shellnet_flush(struct hc_shell *sh)
{
	if (sh->net)
		hc_loopnet_flush(sh->net, FLUSH_MS);
}

void hc_shellnet_stop(struct hc_shell *sh)
{
	if (sh->loop)
		hc_loop_set_net(sh->loop, NULL);
	hc_loopnet_free(sh->net);
	sh->net = NULL;
	hc_peers_unbind(&sh->socks);
	explicit_bzero(sh->key, sizeof(sh->key));
}
