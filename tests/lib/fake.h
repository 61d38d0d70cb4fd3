/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that does as the test says: for what the real one never does.
 *
 * It is a child process with a listening socket. Each request goes to a function of the test,
 * which answers, answers wrongly, keeps silent or ends the connection. Hello is answered well,
 * with an arena, unless the test takes that over. It can hand out domains too: one slab with
 * records that the function writes as it likes.
 */
#ifndef HC_FAKE_H
#define HC_FAKE_H

#include "harness.h"
#include "frame.h"
#include "pages.h"

#define FAKE_BLOCKS  256u
#define FAKE_START   7u
#define FAKE_CHANNEL 0x2000u /* ids of channels: this and the slot of the register, 1, 2, ... */

struct fake_conn {
	int fd;
	unsigned number; /* 1 for the first connection, ... */
	bool slab_sent, status_sent;
	struct hc_page_block *arena;
	struct fake *fake;
};

/* Answer one frame. `got` is the descriptor of its packet, or -1; the caller closes it. False
 * ends the connection. */
typedef bool (*fake_fn)(struct fake_conn *c, const struct hc_frame *f, int got, void *arg);

struct fake {
	struct hc_child child;
	char dir[128];
	char socket[160];
	fake_fn fn;
	void *arg;
	bool own_hello; /* fn gets hello too */
	int listener;
	struct hc_page_record *slab; /* shared with the test */
	int slab_fd;
	struct hc_page_register *registers; /* shared with the test */
	int registers_fd;
};

/* Starts listening at once; HCOMM_SOCKET is set for this process. */
void fake_start(struct fake *f, fake_fn fn, void *arg);
/* The socket alone: it listens, and nobody ever accepts. */
void fake_listen(struct fake *f);
/* Kill the process; the path stays, or goes. */
void fake_kill(struct fake *f);
/* Again at the same path. */
void fake_again(struct fake *f);
void fake_end(struct fake *f);

/* In the function. */
bool fake_reply(struct fake_conn *c, const struct hc_frame *f, const struct hc_desc *d,
		const void *msg, int pass);
bool fake_done(struct fake_conn *c, const struct hc_frame *f, uint64_t value, const char *text);
bool fake_error(struct fake_conn *c, const struct hc_frame *f, int outcome, const char *text,
		uint32_t retry_after_ms);
bool fake_event(struct fake_conn *c, const struct hc_m_event *e);
bool fake_hello(struct fake_conn *c, const struct hc_frame *f, uint16_t proto);
bool fake_raw(struct fake_conn *c, const void *bytes, size_t n);
/* `joined` for one seat; slot = its record, whose gate becomes ACTIVE. */
bool fake_joined(struct fake_conn *c, const struct hc_frame *f, uint64_t id, uint32_t nranks,
		 uint32_t rank, uint32_t slot);
/* A message that is no answer. */
bool fake_notice(struct fake_conn *c, const struct hc_desc *d, const void *msg, int pass);
/* fakechan.c: what is asked for of channels, well answered. */
bool fake_channel(struct fake_conn *c, const struct hc_frame *f);
/* By the test or the fake: the register says REVOKED. */
void fake_revoke(struct fake *f, uint32_t slot);
/* Good answers to everything: ping, root_info, join_*, attach, split, sub, leave, destroy, ... */
bool fake_good(struct fake_conn *c, const struct hc_frame *f, int got, void *arg);

#endif
