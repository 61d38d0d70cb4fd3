/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin, end and restart of a world; see world.h. A restart is what a kill leaves: the rows that
 * were stored, processes with their arenas, and no connection.
 */
#include "worldimp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- what the kernel of a node knows ---- */

struct world_dead *world_knows_dead(struct world *w, uint32_t node, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < w->ndead; i++)
		if (w->dead[i].node == node && w->dead[i].pid == pid)
			return &w->dead[i];
	return NULL;
}

/* Of a process that lives nothing is to be said: a test tells of its end. */
void world_watch(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_dead *d = world_knows_dead(w, node, a->u.watch.pid);

	if (d)
		d->watched = true;
}

/* After START. */
static void tell_dead(struct world *w, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < w->ndead; i++) {
		if (w->dead[i].node != node || !w->dead[i].watched)
			continue;
		w->dead[i].watched = false;
		world_dead(w, node, w->dead[i].pid);
	}
}

/* ---- begin and end ---- */

void world_defaults(struct hc_limits *limits, struct hc_settings *settings)
{
	*limits = (struct hc_limits){.sessions = 64,
				     .domains = 32,
				     .ranks = 256,
				     .ranks_per_domain = 64,
				     .devices = 16,
				     .ended = 16,
				     .quota_domains = 1u << 20,
				     .links = 64,
				     .requests = 512,
				     .pieces = 4096,
				     .channels = 256,
				     .wants = 128,
				     .quota_channels = 1u << 20,
				     .quota_waiting = 1u << 20,
				     .quota_memory = 64u << 20,
				     .values = 1024};
	*settings = (struct hc_settings){.connect_timeout_ns = 120ull * 1000 * WORLD_MS,
					 .drain_timeout_ns = 30ull * 1000 * WORLD_MS,
					 .orphan_grace_ns = 5ull * 1000 * WORLD_MS,
					 .prepare_limit_ns = 10ull * 1000 * WORLD_MS,
					 .ended_keep_ns = 3600ull * 1000 * WORLD_MS,
					 .suspend_limit_ns = 30ull * 1000 * WORLD_MS,
					 .daemon_grace_ns = 5ull * 1000 * WORLD_MS,
					 .connect_timeout_origin = "default",
					 .drain_timeout_origin = "default",
					 .bandwidth_limit_percent = 80,
					 .aging_ns = 10ull * 1000 * WORLD_MS,
					 .grant_ttl_ns = 5ull * 1000 * WORLD_MS,
					 .hint_hold_ns = 1000ull * WORLD_MS};
}

/* Rows, as the database holds them, before START. */
static void give_rows(struct world *w, uint32_t n, uint8_t what)
{
	struct hc_event ev = {.kind = what == HC_PUT_DOMAIN ? HC_EV_ROW : HC_EV_CHANNEL_ROW};
	uint32_t i;

	for (i = 0; i < w->nrows; i++) {
		if (!world_last_row(w, n, i, what))
			continue;
		ev.u.row.bytes = (struct hc_str){(const char *)w->rows[i].bytes, w->rows[i].len};
		ev.u.row.shown = w->shown = (struct hc_shown){0};
		world_event(w, n, &ev);
		ev.u.row.shown = w->shown;
		if (w->shown.asked)
			world_event(w, n, &ev);
	}
}

static void start_node(struct world *w, uint32_t n, uint64_t seed)
{
	struct hc_event ev = {.kind = HC_EV_START};
	struct hc_self self = {.incarnation = 1000 + n,
			       .start = ++w->starts[n],
			       .fence = true,
			       .seed = {seed + n + 100 * (w->starts[n] - 1), 7}};
	uint32_t i;

	self.node_id[0] = (uint8_t)(n + 1);
	snprintf(self.name, sizeof(self.name), "%s", world_name(n));
	snprintf(self.build, sizeof(self.build), "test");
	w->memory[n] = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->memory[n] == MAP_FAILED)
		abort();
	w->core[n] = hc_core_init(w->memory[n], w->bytes, &w->limits, &self, &w->settings);
	w->by_slot[n] = calloc(w->limits.sessions, sizeof(*w->by_slot[n]));
	if (!w->by_slot[n])
		abort();
	for (i = 0; i < w->nodes; i++) {
		const uint8_t id[16] = {(uint8_t)(i + 1)};

		w->node_of[n][i] = hc_core_node(w->core[n], id, world_name(i));
	}
	w->quiet_checks = true; /* deaths come after the rows */
	for (i = 0; i < w->devices && w->starts[n] > 1; i++)
		world_device(w, n, i, (uint8_t)(n * 64 + i + 1), true, "ok");
	for (i = 0; i < w->nlinks[n]; i++)
		world_tell_link(w, n, &w->links[n][i]);
	give_rows(w, n, HC_PUT_DOMAIN);
	give_rows(w, n, HC_PUT_CHANNEL);
	world_event(w, n, &ev);
	w->quiet_checks = false;
}

static void kill_node(struct world *w, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < w->nclients; i++)
		if (w->clients[i]->node == node) {
			w->clients[i]->open = false;
			w->clients[i]->nwaits = 0;
		}
	w->nscans = 0;
	w->asked[node] = w->stored[node] = 0;
	munmap(w->memory[node], w->bytes);
	free(w->by_slot[node]);
}

/* As the shell does: what no stored channel stands for is revoked. */
static void sweep_registers(struct world *w, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < WORLD_REGISTERS; i++)
		if (w->registers[node][i].id && w->registers[node][i].start != w->starts[node])
			w->registers[node][i].state = HC_W_channel_state_REVOKED;
}

void world_restart(struct world *w, uint32_t node)
{
	uint32_t i, n = 0;

	/* what was not stored is lost */
	for (i = 0; i < w->nrows; i++) {
		if (w->rows[i].node == node && w->rows[i].seq > w->stored[node]) {
			free(w->rows[i].bytes);
			continue;
		}
		w->rows[n++] = w->rows[i];
	}
	w->nrows = n;
	kill_node(w, node);
	memset(w->pages[node], 0, sizeof(w->pages[node])); /* its descriptors went with it */
	for (i = 0; i < w->nrows; i++)
		if (w->rows[i].node == node)
			w->rows[i].seq = 0; /* of another run: stored */
	start_node(w, node, 1);
	sweep_registers(w, node);
	tell_dead(w, node);
	world_settle(w);
}

void world_start_with(struct world *w, uint32_t nodes, const struct hc_limits *limits,
		      const struct hc_settings *settings, uint32_t devices, uint64_t seed)
{
	uint32_t n, i;

	memset(w, 0, sizeof(*w));
	w->nodes = nodes;
	w->limits = *limits;
	w->settings = *settings;
	w->show = SHOW_REPLIES | SHOW_EVENTS;
	w->now = w->start = 1000ull * 1000 * WORLD_MS;
	w->opt.device = HC_NONE;
	w->devices = devices;
	w->bytes = hc_core_bytes(limits);
	w->out = malloc(sizeof(*w->out));
	if (!w->out)
		abort();
	for (n = 0; n < nodes; n++)
		start_node(w, n, seed);
	for (n = 0; n < nodes; n++)
		for (i = 0; i < devices; i++)
			world_device(w, n, i, (uint8_t)(n * 64 + i + 1), true, "ok");
}

void world_start(struct world *w, uint32_t nodes)
{
	struct hc_limits limits;
	struct hc_settings settings;

	world_defaults(&limits, &settings);
	world_start_with(w, nodes, &limits, &settings, 8, 1);
}

void world_end(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nodes; i++) {
		munmap(w->memory[i], w->bytes);
		free(w->by_slot[i]);
	}
	for (i = 0; i < w->nclients; i++) {
		free(w->clients[i]->waits);
		free(w->clients[i]);
	}
	for (i = 0; i < w->nqueue; i++)
		free(w->queue[i].bytes);
	free(w->clients);
	free(w->seats);
	free(w->queue);
	for (i = 0; i < w->nrows; i++)
		free(w->rows[i].bytes);
	free(w->rows);
	free(w->dead);
	free(w->scans);
	free(w->text);
	free(w->out);
	memset(w, 0, sizeof(*w));
}
