/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the core: bytes choose events, and carry frames of clients and of other nodes.
 *
 * Two nodes of small limits. The first byte of each event says what happens, the next ones with
 * whom. Some frames are built whole from the input: whatever a client or a peer sends, the core
 * keeps its promises (world.h) and no assertion is reached. Identities that a sender could know
 * (the ids of live domains) are put into peers' frames, so that they get past the first look.
 */
#include "world.h"

#include "frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world w;
static struct world_table table;
static struct world_client *client[4];
static const uint8_t *at;
static size_t left;

static uint8_t next(void)
{
	if (!left)
		return 0;
	left--;
	return *at++;
}

static struct world_client *someone(void)
{
	uint32_t i = next() % 4;

	if (!client[i] || !client[i]->open)
		client[i] = world_client(&w, i % 2, 100 + i + 4 * (next() % 2), 1000,
					 next() % 8 ? HC_W_role_MEMBER : HC_W_role_ADMIN);
	return client[i];
}

static uint64_t some_id(void)
{
	return w.nseats ? w.seats[next() % w.nseats].domain : 0;
}

/* A frame of the input's own bytes; where a message begins with an id, sometimes a real one. */
static void raw(bool peer)
{
	static uint8_t body[512];
	struct hc_frame f = {.body = body};
	uint64_t id = some_id();
	uint32_t i, to = next() % 2;

	f.head.type = (uint16_t)(peer ? 100 + next() % 40 : next() % 96);
	f.body_len = next() * 2u;
	for (i = 0; i < f.body_len; i++)
		body[i] = next();
	if (next() % 4)
		for (i = 0; i < 8; i++)
			body[i] = (uint8_t)(id >> (56 - 8 * i));
	if (peer)
		world_peer(&w, to, 1 - to, &f);
	else if (f.head.type != HC_MSG_join_table && f.head.type != HC_MSG_hello)
		world_raw(&w, someone(), &f);
}

/* A message with fields of the input, so that its form at least is right. */
static void shaped(void)
{
	_Alignas(16) uint8_t msg[512] = {0};
	const struct hc_desc *d = hc_desc_msg(100 + next() % 40);
	const uint64_t id = some_id();
	uint32_t to = next() % 2;
	uint16_t i;

	if (!d || d->size > sizeof(msg))
		return;
	for (i = 0; i < d->nfields; i++) {
		const struct hc_field *f = &d->fields[i];
		const uint32_t v = next() % 8 ? next() % 8u : next() * 0x1010101u;

		switch ((enum hc_type)f->type) {
		case HC_T_u8: msg[f->offset] = (uint8_t)v; break;
		case HC_T_u16: memcpy(msg + f->offset, &(uint16_t){(uint16_t)v}, 2); break;
		case HC_T_u32:
		case HC_T_i32: memcpy(msg + f->offset, &v, 4); break;
		case HC_T_id:
		case HC_T_u64: memcpy(msg + f->offset, i ? &(uint64_t){v} : &id, 8); break;
		case HC_T_id16:
		case HC_T_name:
		case HC_T_text:
		case HC_T_blob:
		case HC_T_rest:
		case HC_T_array: break;
		}
	}
	world_say(&w, 1 - to, to, d, msg);
}

static void join(void)
{
	struct world_client *c = someone();
	uint32_t devices[2] = {next() % 8, next() % 8};

	w.opt.shared = next() % 2;
	w.opt.timeout_ms = next() * 10u;
	switch (next() % 4) {
	case 0: world_join_local(&w, c, devices, 1 + next() % 2); return;
	case 1:
		world_root_info(&w, c, next() % 4);
		world_join_root(&w, someone(), c, 1 + next() % 3, next() % 3);
		return;
	default: world_join_table(&w, c, &table, next() % 3); return;
	}
}

static void channel(void)
{
	struct world_client *c = someone();
	struct world_piece p[2] = {{.peer = next() % 3, .mbps = next() * 10u},
				   {.peer = next() % 3, .flags = next() % 2}};
	const uint64_t known = c->ngrants ? c->grants[next() % c->ngrants].channel : next();

	p[0].type = next() % 9;
	switch (next() % 4) {
	case 0: world_open(&w, c, known, next() % 3); return;
	case 1: world_release(&w, c, known, next() % 3); return;
	default:
		world_acquire(&w, c, some_id(), next() % 3, p, 1 + next() % 2, next() % 2,
			      next() * 10u, next() * 10u);
		return;
	}
}

/* Barrier and exchange; a value of up to 8 KiB. */
static void exchange(void)
{
	static const char *const keys[] = {"a", "b", "with blank", ""};
	static uint8_t value[8192];
	struct world_client *c = someone();
	const uint64_t id = some_id();
	const uint32_t ranks[] = {next() % 3, next() % 2 ? WORLD_END : next() % 3, WORLD_END};
	const char *key = keys[next() % 8 ? next() % 2 : next() % 4];

	switch (next() % 8) {
	case 0: world_sync_open(&w, c, id, ranks[0]); return;
	case 1: world_sync_have(&w, c, id, ranks[0], next() % 2, next() * 512u, next() % 4); return;
	case 2:
	case 3:
		world_put(&w, c, id, ranks[0], key, value, next() * 33u % sizeof(value),
			  next() % 4 ? 0 : next());
		return;
	case 4:
	case 5: world_get(&w, c, id, ranks[0], key, next() * 10u, next() % 2, next() % 2); return;
	default: world_fence(&w, c, id, ranks, next() % 3, next() * 10u); return;
	}
}

static void event(void)
{
	struct world_client *c;
	uint32_t i, j;

	switch (next() % 24) {
	case 20:
	case 21:
	case 22:
	case 23: channel(); return;
	case 0:
	case 1: raw(true); return;
	case 2: raw(false); return;
	case 3:
	case 4: shaped(); return;
	case 5:
	case 6:
	case 7: join(); return;
	case 8: world_destroy(&w, someone(), some_id()); return;
	case 9: world_leave(&w, someone(), some_id(), next() % 3); return;
	case 10: world_split(&w, someone(), some_id(), next() % 3, next() % 3, 0); return;
	case 11: world_die(&w, someone()); return;
	case 12: world_lose(&w, someone()); return;
	case 13: world_advance(&w, next() * 100u); return;
	case 14:
		i = next() % 2;
		world_store_hold(&w, i, next() % 2);
		return;
	case 16:
	case 17:
	case 18: exchange(); return;
	case 19: world_restart(&w, next() % 2); return;
	default:
		i = next() % 2;
		j = next() % 2;
		world_hold(&w, i, j, next() % 2);
		c = someone();
		world_ops_ended(&w, c, some_id());
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hc_settings set;
	struct hc_limits lim;
	uint32_t n;

	at = data;
	left = size;
	memset(client, 0, sizeof(client));
	world_defaults(&lim, &set);
	lim.sessions = 8;
	lim.domains = 8;
	lim.ranks = 32;
	lim.ranks_per_domain = 8;
	world_start_with(&w, 2, &lim, &set, 8, 1);
	w.show = 0;
	for (n = 0; n < 2; n++)
		world_link(&w, n,
			   &(struct hc_link_fact){.type = HC_W_link_type_SHM,
						  .a = HC_NONE,
						  .b = HC_NONE,
						  .mbps = 1000,
						  .vcs = 4,
						  .present = true});
	world_table(&table, 3, 2);
	for (n = 0; left && n < 200; n++)
		event();
	world_end(&w);
	return 0;
}
