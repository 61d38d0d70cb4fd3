/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What path.c, path_state.c, beat.c, beat_judge.c and probe.c share and nobody else needs.
 *
 * A path has two times: due (when it is looked at) and beats (when it sends). Both arrays are
 * scanned whole when the least of them has come: a thousand paths are 8 KiB, and a frame that
 * arrives writes neither of them.
 */
#ifndef HC_PATHIMP_H
#define HC_PATHIMP_H

#include "net.h"

#define HC_MS           1000000ull
#define HC_US           1000ull
#define HC_PROOF_NO_AGE 0xffffffffu /* held_us: nothing was heard yet */

enum hc_path_event {
	PATH_EV_PROOF,     /* both directions are proven, and nothing else is wrong */
	PATH_EV_PROOF_BUT, /* they are, but it is held out, or large packets are lost */
	PATH_EV_MISSES,    /* nothing came for the window */
	PATH_EV_DEAF,      /* the peer says that it hears nothing */
	PATH_EV_DEAD,      /* nothing came for the longer window, or probes had no answer */
	PATH_EV_GONE,      /* a port, the route or the node is gone */
	PATH_EV_SMALL,     /* the agreed size does not pass */
	PATH_EV_LOAD,
	PATH_EV_RELIEF,
};

/* The state machine; pure. */
uint8_t hc_path_next(uint8_t state, enum hc_path_event event);
void hc_path_event(struct hc_core *c, uint32_t path, enum hc_path_event event, uint8_t cause,
		   const char *text);
/* A frame proves both directions. */
void hc_path_proof(struct hc_core *c, uint32_t path);
/* "path to b over eth0 (192.0.2.1:16660 to 192.0.2.2:16660)" */
#define HC_PATH_TEXT 256u
const char *hc_path_text(const struct hc_core *c, const struct hc_path *p, char buf[HC_PATH_TEXT]);
/* HC_NONE when there is no room. `port`: fact.index of ours. */
uint32_t hc_path_make(struct hc_core *c, uint32_t peer, uint32_t id, uint32_t port,
		      const struct hc_endpoint *local, const struct hc_endpoint *remote);
void hc_path_drop(struct hc_core *c, uint32_t path);
void hc_path_tell_gone(struct hc_core *c, uint32_t path);
/* The path to that endpoint, HC_NONE; then the next one of them. */
uint32_t hc_path_to(const struct hc_core *c, const struct hc_endpoint *remote, uint32_t after);
uint32_t hc_path_clamp_mtu(uint32_t mtu);
/* A probe says what the far port takes; true: that is new. */
bool hc_path_far_mtu(struct hc_core *c, uint32_t path, uint32_t mtu);
/* Our port, or what is known of it, has changed. */
void hc_path_check_port(struct hc_core *c, uint32_t path);
bool hc_path_work(struct hc_core *c); /* ask for routes; false: nothing to do */
/* Ask another node whether it hears that one; the answer labels the cause. */
void hc_path_ask_third(struct hc_core *c, uint32_t path);

/* Interval at which a path sends: not longer than what it is judged by. */
uint64_t hc_beat_interval(const struct hc_core *c, const struct hc_path *p);
union hc_datagram { /* they begin alike */
	struct hc_m_beat beat;
	struct hc_m_probe probe;
	struct hc_m_probed probed;
};
/* Put one out on the path; its head is filled in here. */
void hc_beat_put(struct hc_core *c, uint32_t path, const struct hc_desc *d, union hc_datagram *m,
		 bool urgent);
void hc_beat_rtt(struct hc_core *c, struct hc_path *p, uint32_t rtt_us);
/* Something was due and not done in time. */
void hc_beat_note_late(struct hc_core *c);
/* A frame came after silence: what was missed. */
void hc_beat_silence_over(struct hc_core *c, uint32_t path);
/* Look at all that is due; false: nothing is, or it is not the time to judge. */
bool hc_beat_look(struct hc_core *c);

static inline bool hc_path_good(const struct hc_path *p)
{
	return p->state == HC_W_path_state_NORMAL || p->state == HC_W_path_state_CONGESTED;
}

static inline uint64_t hc_first(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t hc_longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Look at the path at that time; a scan under way comes by again. */
static inline void hc_path_look_at(struct hc_net *n, uint32_t path, uint64_t at)
{
	n->due[path] = at;
	n->look_at = hc_first(n->look_at, at);
}

static inline void hc_path_look_by(struct hc_net *n, uint32_t path, uint64_t at)
{
	if (at < n->due[path])
		hc_path_look_at(n, path, at);
}

static inline void hc_path_beat_by(struct hc_net *n, uint32_t path, uint64_t at)
{
	if (at >= n->beats[path])
		return;
	n->beats[path] = at;
	n->tick_at = hc_first(n->tick_at, at);
}

#endif
