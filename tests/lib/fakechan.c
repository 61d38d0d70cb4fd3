/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of the daemon of fake.h: whatever is asked for is granted.
 *
 * The k-th request of one rank for another and the k-th of that other for it meet in one channel,
 * whatever their domains are. The registers are shared with the test, which writes into them what
 * a real daemon never would, or plays the daemon that revokes.
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHANNELS_MAX = 2048 };

struct channel {
	uint32_t rank[2]; /* the lower one is side 0 */
	bool given[2];
	bool grant_only;
	uint32_t buffer;
	int fd;
};

static struct channel channels[CHANNELS_MAX]; /* the index is the slot of the register; 0: none */
static uint32_t count = 1;

void fake_revoke(struct fake *f, uint32_t slot)
{
	struct hc_page_register *r = &f->registers[slot];

	atomic_store(&r->state, HC_STATUS_WORD(HC_W_channel_state_REVOKED, (r->state >> 8) + 1));
	atomic_fetch_add(&r->wake, 1);
	syscall(SYS_futex, &r->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int make_file(size_t bytes)
{
	int fd = memfd_create("fake-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		hc_fail("memfd: %s", strerror(errno));
	return fd;
}

static uint32_t make_channel(struct fake *f, const uint32_t rank[2],
			     const struct hc_m_want_piece *p)
{
	struct channel *ch = &channels[count];
	struct hc_page_register *r = &f->registers[count];

	hc_want(count < CHANNELS_MAX);
	*ch = (struct channel){.rank = {rank[0], rank[1]}, .grant_only = p->flags == 1, .fd = -1};
	ch->buffer =
		p->buffer_bytes ? (p->buffer_bytes + 4095) & ~4095u : HC_CHANNEL_BUFFER_DEFAULT;
	if (!ch->grant_only)
		ch->fd = make_file(HC_RING_FILE_BYTES((size_t)ch->buffer));
	r->id = FAKE_CHANNEL + count;
	r->state = HC_STATUS_WORD(HC_W_channel_state_OK, 1);
	return count++;
}

static uint32_t find_channel(struct fake *f, uint32_t from, const struct hc_m_want_piece *p)
{
	uint32_t rank[2] = {from < p->peer ? from : p->peer, from < p->peer ? p->peer : from};
	unsigned side = from == rank[1];
	uint32_t i;

	for (i = 1; i < count; i++) {
		if (channels[i].rank[0] == rank[0] && channels[i].rank[1] == rank[1] &&
		    !channels[i].given[side])
			break;
	}
	if (i == count)
		i = make_channel(f, rank, p);
	channels[i].given[side] = true;
	return i;
}

static bool want(struct fake_conn *c, const struct hc_frame *f)
{
	static uint8_t buf[HC_PACKET_MAX];
	struct hc_m_status_slab slab = {.slab = 0};
	struct hc_m_channel_want_r r = {0};
	struct hc_m_channel_grant g;
	struct hc_m_channel_want m;
	struct hc_m_want_piece p;
	uint32_t slot;

	hc_want(!hc_decode(&hc_desc_channel_want, 1, f->body, f->body_len, &m));
	while (hc_arr_next(&m.pieces, &hc_desc_want_piece, 1, &p)) {
		slot = find_channel(c->fake, m.rank, &p);
		g = (struct hc_m_channel_grant){
			.channel = FAKE_CHANNEL + slot,
			.slot = slot,
			.peer = p.peer,
			.link = hc_str("0-1"),
			.path_type = 7,
			.mbps = p.mbps,
			.back_mbps = p.back_mbps,
			.vc = slot,
			.service_level = 3,
			.dscp = 26,
			.latency_us = 2,
			.side = m.rank > p.peer,
			.buffer_bytes = channels[slot].grant_only ? 0 : channels[slot].buffer,
			.carries = !channels[slot].grant_only,
		};
		hc_want(!hc_arr_put(&r.grants, buf, sizeof(buf), &hc_desc_channel_grant, 1, &g));
	}
	if (!c->status_sent && !fake_notice(c, &hc_desc_status_slab, &slab, c->fake->registers_fd))
		return false;
	c->status_sent = true;
	return fake_reply(c, f, &hc_desc_channel_want_r, &r, -1);
}

static bool open_end(struct fake_conn *c, const struct hc_frame *f)
{
	struct hc_m_channel_open_r r = {0};
	struct hc_m_channel_open m;
	struct channel *ch;

	hc_want(!hc_decode(&hc_desc_channel_open, 1, f->body, f->body_len, &m));
	if (m.channel <= FAKE_CHANNEL || m.channel >= FAKE_CHANNEL + count)
		return fake_error(c, f, HC_E_GONE, "the fake has no such channel", HC_NONE);
	ch = &channels[m.channel - FAKE_CHANNEL];
	r.channel = m.channel;
	r.bytes = ch->fd < 0 ? 0 : (uint32_t)HC_RING_FILE_BYTES((size_t)ch->buffer);
	r.side = m.rank == ch->rank[1];
	return fake_reply(c, f, &hc_desc_channel_open_r, &r, ch->fd);
}

bool fake_channel(struct fake_conn *c, const struct hc_frame *f)
{
	struct hc_m_channel_release m;

	switch (f->head.type) {
	case HC_MSG_channel_want: return want(c, f);
	case HC_MSG_channel_open: return open_end(c, f);
	default: break;
	}
	hc_want(!hc_decode(&hc_desc_channel_release, 1, f->body, f->body_len, &m));
	/* also one of an earlier process */
	if (m.channel > FAKE_CHANNEL && m.channel < FAKE_CHANNEL + HC_STATUS_SLAB)
		fake_revoke(c->fake, (uint32_t)(m.channel - FAKE_CHANNEL));
	return fake_done(c, f, 0, "");
}
