/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: is a path there, and for which size of packet.
 *
 * A round draws 64 random bits and asks up to five times within probe_timeout: one small question,
 * and padded ones that must not be cut into pieces, all at once: the size that both ends should
 * take (the smaller of the two ports'), what the kernel thinks that passes, and a ladder of usual
 * sizes below. The largest that is answered is what passes. A path whose size is known is asked
 * for that one alone first.
 *
 * Sizes are of the whole packet with its IP header, as an MTU is. Answers are small always: they
 * are never longer than the question, and so tell of one direction. The other node asks for the
 * other one.
 *
 * When the ends differ that is one notice with both values, at once. When the agreed size is lost
 * though small questions are answered in most tries of a round, the path is UNSTABLE: bulk data
 * would hang there though beats run. One lost packet does not say so: a size is lost when five
 * were.
 *
 * A small question that is answered while the size is not tells that there is no point in waiting
 * the rest of the try: the next one follows soon. So a hole is named some 30 ms after the first
 * question, and within the window of the beats on a path whose size did pass before, since there a
 * crowded switch may lose large packets for a while. What was lost there may come back as soon, so
 * it is asked again after a second, two, four, ... up to mtu_recheck.
 *
 * One padded probe may be 64 KiB, so each leaves in a unit of work of its own, from the look.
 */
#include "datagram.h"
#include "emit.h"
#include "pathimp.h"
#include "rng.h"

#include <stdio.h>
#include <string.h>

#define TRIES      5u
#define PLAIN_MOST 3u          /* so many small ones answered: it is the size that is lost */
#define ALONE      2u          /* tries with the known size alone */
#define SOON       (5 * HC_MS) /* until the next try, when the small question is answered */

static const uint16_t ladder[] = {9000, 4200, 2048, 1500, 1400, 1280};
#define STEPS (3 + (uint32_t)(sizeof(ladder) / sizeof(ladder[0])))

static uint32_t overhead(const struct hc_path *p)
{
	return (p->remote.addr.family == 6 ? 40u : 20u) + 8u + HC_DATAGRAM_TAG;
}

/* What both ends should take; 0 = not known. */
static uint32_t agreed(const struct hc_path *p)
{
	if (!p->local_mtu || !p->far_mtu)
		return 0;
	return p->local_mtu < p->far_mtu ? p->local_mtu : p->far_mtu;
}

/* ---- notices ---- */

static void tell_mismatch(struct hc_core *c, struct hc_path *p)
{
	char name[HC_PATH_TEXT], text[HC_PATH_TEXT + 128];

	if (!agreed(p) || (p->told_local == p->local_mtu && p->told_far == p->far_mtu))
		return;
	p->told_local = p->local_mtu;
	p->told_far = p->far_mtu;
	if (p->local_mtu == p->far_mtu)
		return;
	HC_TEXT(text, "MTU differs: %s: %u here, %u there; %u is used", hc_path_text(c, p, name),
		p->local_mtu, p->far_mtu, agreed(p));
	hc_notice(c, HC_LOG_WARN, HC_W_event_code_MTU_MISMATCH, c->net->peers[p->peer].node, text);
}

static void tell_hole(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	char name[HC_PATH_TEXT], text[HC_PATH_TEXT + 128], cause[160];

	HC_TEXT(cause, "packets of %u bytes are lost, %u pass", p->mtu_want,
		p->used_mtu ? p->used_mtu : overhead(p) + HC_PROBE_BYTES);
	if (p->told_used != p->used_mtu) {
		HC_TEXT(text, "%s: %s", hc_path_text(c, p, name), cause);
		hc_notice(c, HC_LOG_WARN, HC_W_event_code_MTU_MISMATCH, c->net->peers[p->peer].node,
			  text);
	}
	p->told_used = p->used_mtu;
	hc_path_event(c, x, PATH_EV_SMALL, HC_W_path_cause_MTU, cause);
}

/* ---- rounds ---- */

void hc_probe_begin(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];

	do
		p->challenge = hc_rng_u64(c);
	while (!p->challenge);
	p->tries = p->step = p->plain = p->mtu_best = 0;
	p->mtu_want = agreed(p);
	p->probe_at = c->now;
	p->mtu_at = HC_NEVER;
	hc_path_look_by(c->net, path, c->now);
}

void hc_probe_again(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];

	if (!p->challenge || p->mtu_want != agreed(p))
		hc_probe_begin(c, path);
}

static uint64_t until_next(const struct hc_core *c, const struct hc_path *p)
{
	const uint32_t doublings = p->holes < 16 ? p->holes : 16;

	if (!p->mtu_best && !p->plain)
		return c->set.probe_timeout_ns;
	if (!p->holes)
		return c->set.mtu_recheck_ns;
	return hc_first(c->set.mtu_recheck_ns, c->set.probe_timeout_ns << (doublings - 1));
}

static void over(struct hc_core *c, struct hc_path *p)
{
	const uint64_t again = until_next(c, p);

	p->challenge = 0;
	p->probe_at = HC_NEVER;
	p->mtu_at = c->now + again - again * (hc_rng_u64(c) % 1024) / 10240;
}

static void passes(struct hc_core *c, uint32_t x, uint32_t size)
{
	struct hc_path *p = &c->net->paths[x];

	if (p->used_mtu != size)
		c->net->path_changes++;
	p->used_mtu = size;
}

/* The agreed size is answered, or there is none to ask for: the round ends at once. */
static void all_passes(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];

	passes(c, x, p->mtu_want);
	p->told_used = p->holes = 0;
	over(c, p);
	if (!p->small)
		return;
	p->small = false;
	p->odd = true;
	hc_beat_now(c, x, HC_BEAT_ASKS); /* its answer is the proof */
}

/* All tries are over and the agreed size was not answered. */
static void conclude(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	const bool hole = p->mtu_want && p->plain >= PLAIN_MOST;
	char text[160];

	p->holes += hole;
	over(c, p);
	if (hole) {
		passes(c, x, p->mtu_best);
		p->small = true;
		tell_hole(c, x);
	} else if (p->state == HC_W_path_state_UNKNOWN && !p->plain) {
		HC_TEXT(text, "no answer to %u probes in %llu ms", TRIES,
			(unsigned long long)(c->set.probe_timeout_ns / HC_MS));
		hc_path_event(c, x, PATH_EV_DEAD, HC_W_path_cause_PROBE, text);
	}
}

/* Size of a step of a try, the padding in it or not; HC_NONE: nothing to ask in this step. */
static uint32_t size_of(const struct hc_path *p, uint32_t step)
{
	uint32_t size;

	if (step == 0)
		return 0;
	if (step == 1)
		size = p->mtu_want;
	else if (p->used_mtu == p->mtu_want && p->tries < ALONE)
		return HC_NONE;
	else
		size = step == 2 ? p->mtu_hint : ladder[step - 3];
	if (size <= p->mtu_best || (step > 1 && size >= p->mtu_want))
		return HC_NONE;
	return size > overhead(p) + HC_PROBE_BYTES ? size : HC_NONE;
}

void hc_probe_ask(struct hc_core *c, uint32_t path, uint32_t size)
{
	const struct hc_path *p = &c->net->paths[path];
	const uint32_t head = overhead(p) + HC_PROBE_BYTES;
	union hc_datagram m;

	m.probe = (struct hc_m_probe){.challenge = p->challenge,
				      .sent_us = (uint32_t)(c->now / HC_US),
				      .size = (uint16_t)size,
				      .mtu = (uint16_t)p->local_mtu};
	if (size > head) {
		memset(c->scratch, 0, size - head);
		m.probe.pad = (struct hc_str){(const char *)c->scratch, size - head};
	}
	hc_beat_put(c, path, &hc_desc_probe, &m, true);
}

/* It has this path by now: when our first try came too early, the second one need not wait. */
static void hurry(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];

	if (!p->challenge || p->plain || p->tries != 1 || p->step)
		return;
	p->probe_at = c->now;
	hc_path_look_by(c->net, x, c->now);
}

void hc_probe_on_probe(struct hc_core *c, uint32_t path, const struct hc_m_probe *m)
{
	struct hc_path *p = &c->net->paths[path];
	const uint32_t size = overhead(p) + HC_PROBE_BYTES + m->pad.len;
	union hc_datagram r;

	if (m->size ? m->size != size : m->pad.len) {
		p->refused++;
		return;
	}
	r.probed = (struct hc_m_probed){.challenge = m->challenge,
					.sent_us = m->sent_us,
					.size = m->size,
					.mtu = (uint16_t)p->local_mtu};
	hc_beat_put(c, path, &hc_desc_probed, &r, true);
	if (hc_path_far_mtu(c, path, m->mtu))
		hc_probe_again(c, path);
	hurry(c, path);
	tell_mismatch(c, p);
}

/* The small question was answered. On the way are still the others of this try. */
static void hasten(struct hc_core *c, uint32_t x, uint32_t rtt_us)
{
	struct hc_path *p = &c->net->paths[x];
	const bool passed = p->used_mtu && p->used_mtu == p->mtu_want;
	const uint64_t soon = passed ? hc_path_window(c, p) / TRIES : SOON;

	if (!p->mtu_want)
		return;
	p->probe_at = hc_first(p->probe_at, c->now + hc_longer(soon, 2 * rtt_us * HC_US));
	hc_path_look_by(c->net, x, p->probe_at);
}

/* An answer proves both directions as a beat does: the question was ours, and it is fresh. */
static void proven(struct hc_core *c, uint32_t x, uint32_t rtt_us)
{
	struct hc_path *p = &c->net->paths[x];

	if (rtt_us * HC_US > hc_path_window(c, p))
		return;
	p->proof_at = p->proof_of = c->now;
	if (!hc_path_good(p))
		hc_path_proof(c, x);
}

void hc_probe_on_answer(struct hc_core *c, uint32_t path, const struct hc_m_probed *m)
{
	struct hc_path *p = &c->net->paths[path];
	const uint32_t rtt = (uint32_t)(c->now / HC_US) - m->sent_us;

	if (!p->challenge || m->challenge != p->challenge || m->size > p->mtu_want) {
		p->late++;
		return;
	}
	if (!m->size) {
		p->plain++;
		hc_beat_rtt(c, p, rtt);
	}
	proven(c, path, rtt);
	if (hc_path_far_mtu(c, path, m->mtu)) {
		hc_probe_begin(c, path);
		tell_mismatch(c, p);
		return;
	}
	tell_mismatch(c, p);
	if (m->size > p->mtu_best)
		p->mtu_best = m->size;
	if (p->mtu_best == p->mtu_want)
		all_passes(c, path);
	else if (!m->size)
		hasten(c, path, rtt);
}

void hc_probe_too_big(struct hc_core *c, uint32_t path, uint32_t mtu)
{
	struct hc_path *p = &c->net->paths[path];

	if (mtu)
		p->mtu_hint = hc_path_clamp_mtu(mtu);
	hc_probe_again(c, path);
}

static void next_try(struct hc_core *c, struct hc_path *p)
{
	p->step = 0;
	p->tries++;
	p->probe_at = c->now + c->set.probe_timeout_ns / TRIES;
}

/* One question, or what follows when all were asked. */
void hc_probe_timeout(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];
	uint32_t size = HC_NONE;

	if (!p->challenge) {
		hc_probe_begin(c, path);
		return;
	}
	if (p->tries == TRIES) {
		conclude(c, path);
		return;
	}
	while (p->step < STEPS && size == HC_NONE)
		size = size_of(p, p->step++);
	if (size != HC_NONE)
		hc_probe_ask(c, path, size);
	if (p->step == STEPS)
		next_try(c, p);
}

uint64_t hc_probe_deadline(const struct hc_core *c, const struct hc_path *p)
{
	(void)c;
	return hc_first(p->probe_at, p->mtu_at);
}
