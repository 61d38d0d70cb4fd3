/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the parts of the shell feed: each is one call of hc_loop_event; see loop.h. */
#include "loop.h"

void hc_loop_lost(struct hc_loop *l, uint64_t session)
{
	struct hc_event ev = {.kind = HC_EV_SESSION_LOST, .session = session};

	hc_loop_event(l, &ev);
}

void hc_loop_unread(struct hc_loop *l, uint64_t session, uint64_t events)
{
	struct hc_event ev = {.kind = HC_EV_UNREAD, .session = session, .u.unread = events};

	hc_loop_event(l, &ev);
}

void hc_loop_dead(struct hc_loop *l, uint32_t pid, uint64_t started)
{
	struct hc_event ev = {.kind = HC_EV_PROCESS_DEAD};

	ev.u.process.pid = pid;
	ev.u.process.started = started;
	hc_loop_event(l, &ev);
}

void hc_loop_device(struct hc_loop *l, const struct hc_device_fact *fact)
{
	struct hc_event ev = {.kind = HC_EV_DEVICE_FACT, .u.device = fact};

	hc_loop_event(l, &ev);
}

void hc_loop_link(struct hc_loop *l, const struct hc_link_fact *fact)
{
	struct hc_event ev = {.kind = HC_EV_LINK_FACT, .u.link = fact};

	hc_loop_event(l, &ev);
}

void hc_loop_settings(struct hc_loop *l, const struct hc_settings *settings)
{
	struct hc_event ev = {.kind = HC_EV_CONFIG, .u.settings = settings};

	hc_loop_event(l, &ev);
}

void hc_loop_persisted(void *arg, uint64_t seq)
{
	struct hc_event ev = {.kind = HC_EV_PERSISTED, .u.persisted = seq};

	hc_loop_event(arg, &ev);
}

void hc_loop_storage(void *arg, uint64_t kept)
{
	struct hc_event ev = {.kind = HC_EV_STORAGE, .u.kept = kept};

	hc_loop_event(arg, &ev);
}
