/* SPDX-License-Identifier: Apache-2.0 */
/* The drain of a node; see drain.h. */
#include "drain.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 8u

static const char no_new[] = "this node is being drained: it takes no new domains";

/* Those whose home is here, and those that have ranks here. */
static uint32_t left(const struct hc_core *c)
{
	return c->home_pool.used + c->nfar;
}

/* Domain number `i` of both tables, one after the other; NULL: none that counts. */
static const char *name_of(const struct hc_core *c, uint32_t i, char text[32])
{
	const uint32_t homes = c->home_pool.fresh;

	if (i < homes)
		return c->homes[i].id ? hc_home_name(c, &c->homes[i], text, 32) : NULL;
	return hc_part_is_far(&c->parts[i - homes]) ? hc_part_name(c, &c->parts[i - homes], text)
						    : NULL;
}

/* "3 domains are left: a, b and others" */
static void left_text(const struct hc_core *c, char *text, size_t bytes)
{
	char buf[32];
	const char *name;
	uint32_t i, shown = 0;
	size_t n;

	n = (size_t)snprintf(text, bytes, "%u domain%s left", left(c),
			     left(c) == 1 ? " is" : "s are");
	for (i = 0; shown < left(c) && i < c->home_pool.fresh + c->part_pool.fresh && n < bytes;
	     i++) {
		name = name_of(c, i, buf);
		if (!name)
			continue;
		if (shown++ == NAMES_SHOWN) {
			snprintf(text + n, bytes - n, " and others");
			return;
		}
		n += (size_t)snprintf(text + n, bytes - n, "%s%s", shown == 1 ? ": " : ", ", name);
	}
}

/* Whoever waits is answered; nobody does from now on. */
static void end_wait(struct hc_core *c, int code, const char *text)
{
	const uint64_t session = c->drain.session;

	c->drain.session = 0;
	hc_timers_set(&c->timers, hc_drain_timer(c), HC_NEVER);
	if (code)
		hc_emit_error(c, session, c->drain.request, code, text);
	else
		hc_emit_done(c, session, c->drain.request, 0, text);
}

static void begin(struct hc_core *c, struct hc_session *s, uint32_t request)
{
	char text[HC_TEXT_MAX + 1], rest[600];

	if (!c->drain.on) {
		left_text(c, rest, sizeof(rest));
		HC_TEXT(text, "process %u drains this node: it takes no new domains; %s",
			c->processes[s->process].pid, rest);
		hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, text);
	}
	c->drain.on = true;
	c->drain.homes = c->home_pool.fresh;
	c->drain.parts = c->part_pool.fresh;
	c->drain.session = s->id;
	c->drain.request = request;
	c->drain.until = c->now + c->set.drain_timeout_ns;
	hc_timers_set(&c->timers, hc_drain_timer(c), c->drain.until);
}

static void begin_or_end(struct hc_core *c, struct hc_session *s, uint32_t request)
{
	char text[HC_TEXT_MAX + 1], rest[600];

	if (!c->drain.session) {
		begin(c, s, request);
		return;
	}
	left_text(c, rest, sizeof(rest));
	HC_TEXT(text, "process %u ended the wait; the node takes no new domains, %s",
		c->processes[s->process].pid, rest);
	end_wait(c, HC_E_IN_PROGRESS, text);
	HC_TEXT(text, "the wait is ended; the node takes no new domains, %s", rest);
	hc_emit_done(c, s->id, request, 0, text);
}

static void off(struct hc_core *c, struct hc_session *s, uint32_t request)
{
	if (c->drain.session)
		end_wait(c, HC_E_IN_PROGRESS, "the drain was called off");
	if (c->drain.on)
		hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE,
			    "the drain is over: this node takes new domains");
	hc_emit_done(c, s->id, request, 0,
		     c->drain.on ? "the node takes new domains" : "the node was not drained");
	c->drain = (struct hc_drain){0};
}

void hc_drain_admin(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_admin *m)
{
	char text[HC_NAME_MAX + 96];

	if (!hc_str_eq(m->verb, hc_str("drain"))) {
		HC_TEXT(text, "'%.*s' is no operator's word; wanted: reload, log-level or drain",
			(int)m->verb.len, m->verb.p);
		hc_emit_error(c, s->id, request, HC_E_NOT_SUPPORTED, text);
	} else if (!m->argument.len) {
		begin_or_end(c, s, request);
	} else if (hc_str_eq(m->argument, hc_str("off"))) {
		off(c, s, request);
	} else {
		hc_emit_error(c, s->id, request, HC_E_INVALID, "drain takes no argument, or off");
	}
}

bool hc_drain_has_work(const struct hc_core *c)
{
	return c->drain.homes || c->drain.parts || (c->drain.session && !left(c));
}

static void fail_home(struct hc_core *c, struct hc_home *h)
{
	if (h->id && h->state == HC_W_domain_state_FORMING && !h->step)
		hc_home_cancel(c, h, HC_NONE, HC_E_AGAIN, no_new);
}

/* Its home is told once, and fails it for all. */
static void fail_part(struct hc_core *c, struct hc_part *p)
{
	uint32_t i;

	if (!hc_part_is_far(p) || p->state != HC_W_domain_state_FORMING)
		return;
	for (i = 0; i < p->nseats; i++)
		if (c->seats[p->seats + i].process != HC_NONE) {
			hc_part_depart(c, p, p->seats + i, HC_W_depart_DRAINED, "", 0);
			return;
		}
}

bool hc_drain_work(struct hc_core *c)
{
	if (!hc_drain_has_work(c))
		return false;
	if (c->drain.homes)
		fail_home(c, &c->homes[--c->drain.homes]);
	else if (c->drain.parts)
		fail_part(c, &c->parts[--c->drain.parts]);
	else
		end_wait(c, 0, "no domain is left; the node takes no new ones");
	return true;
}

void hc_drain_timeout(struct hc_core *c)
{
	char text[HC_TEXT_MAX + 1], rest[600];

	left_text(c, rest, sizeof(rest));
	HC_TEXT(text, "%s after %u s (drain_timeout_s, %s); the node takes no new ones", rest,
		(unsigned)(c->set.drain_timeout_ns / 1000000000u), c->set.drain_timeout_origin);
	if (c->drain.session)
		end_wait(c, HC_E_TIMEOUT, text);
}

void hc_drain_session_lost(struct hc_core *c, uint64_t session)
{
	if (c->drain.session != session)
		return;
	c->drain.session = 0; /* the node stays drained */
	hc_timers_set(&c->timers, hc_drain_timer(c), HC_NEVER);
}
