/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets; see ask.h. A ticket is the number of an ask and a generation, so an old one is nothing.
 */
#include "ask.h"

#include "emit.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

uint64_t hc_ask_open(struct hc_core *c, uint64_t session, uint32_t request)
{
	uint32_t n = hc_pool_get(&c->ask_pool);

	if (n == HC_NONE)
		return 0;
	c->asks[n] = (struct hc_ask){.ticket = (uint64_t)++c->ask_generation << 32 | n,
				     .session = session,
				     .request = request};
	return c->asks[n].ticket;
}

static struct hc_ask *find(struct hc_core *c, uint64_t ticket)
{
	uint32_t n = (uint32_t)ticket;

	if (!ticket || n >= c->ask_pool.fresh || c->asks[n].ticket != ticket || !c->asks[n].session)
		return NULL;
	return &c->asks[n];
}

void hc_ask_drop(struct hc_core *c, uint64_t ticket)
{
	struct hc_ask *a = find(c, ticket);

	if (!a)
		return;
	*a = (struct hc_ask){0};
	hc_pool_put_front(&c->ask_pool, (uint32_t)ticket);
}

void hc_ask_forget(struct hc_core *c, struct hc_list *asks, uint32_t n)
{
	hc_list_del(asks, &c->ask_links, n);
	c->asks[n] = (struct hc_ask){0};
	hc_pool_put_front(&c->ask_pool, n);
}

bool hc_ask_take(struct hc_core *c, uint64_t ticket, uint64_t *session, uint32_t *request)
{
	const struct hc_ask *a = find(c, ticket);

	if (!a)
		return false;
	*session = a->session;
	*request = a->request;
	hc_ask_drop(c, ticket);
	return hc_session_get(c, *session) != NULL;
}

void hc_ask_answer(struct hc_core *c, uint64_t ticket, int code, const char *text)
{
	uint64_t session;
	uint32_t request;

	if (!hc_ask_take(c, ticket, &session, &request))
		return;
	if (code)
		hc_emit_error(c, session, request, code, text);
	else
		hc_emit_done(c, session, request, 0, text);
}

void hc_ask_to(struct hc_core *c, uint64_t ticket, uint32_t node, bool leaves)
{
	struct hc_ask *a = find(c, ticket);

	if (!a)
		return;
	a->node = node;
	a->life = c->nodes[node].life;
	a->leaves = leaves;
}

void hc_ask_keep(struct hc_core *c, uint64_t ticket, const struct hc_desc *d, const void *msg)
{
	struct hc_ask *a = find(c, ticket);

	hc_assert(d->size <= sizeof(a->asked));
	if (!a)
		return;
	a->question = d;
	memcpy(a->asked, msg, d->size);
}

void hc_ask_after(struct hc_core *c, uint64_t ticket, uint64_t stored)
{
	struct hc_ask *a = find(c, ticket);

	if (a)
		a->stored = stored;
}

/* As at a home: answered from the list of those that wait for a row. */
static bool waits_for_row(struct hc_core *c, const struct hc_ask *a)
{
	uint32_t n;

	if (!a || a->stored <= c->persisted)
		return false;
	n = hc_pool_get(&c->ask_pool);
	if (n == HC_NONE)
		return false;
	c->asks[n] =
		(struct hc_ask){.ticket = a->ticket, .node = HC_SELF_NODE, .stored = a->stored};
	hc_list_push(&c->departed, &c->ask_links, n);
	return true;
}

void hc_ask_on_answer(struct hc_core *c, const struct hc_m_control_r *m)
{
	char text[HC_TEXT_MAX + 1];

	if (!m->code && waits_for_row(c, find(c, m->ticket)))
		return;
	hc_ask_answer(c, m->ticket, m->code, hc_str_copy(m->text, text, sizeof(text)));
}

bool hc_ask_again(struct hc_core *c, uint32_t n, uint32_t node)
{
	const struct hc_ask *a = &c->asks[n];

	if (!a->ticket || !a->session || !a->question || a->node != node)
		return false;
	hc_emit_send(c, node, a->question, a->asked);
	return true;
}

bool hc_ask_lost(struct hc_core *c)
{
	char text[HC_NAME_MAX + 64];
	uint32_t i;

	for (i = 0; i < c->ask_pool.fresh; i++) {
		const struct hc_ask *a = &c->asks[i];

		if (!a->ticket || !a->session || a->life == c->nodes[a->node].life)
			continue;
		if (!hc_emit_room(c))
			return false;
		HC_TEXT(text, "the home of the domain is lost: node %s", c->nodes[a->node].name);
		hc_ask_answer(c, a->ticket, a->leaves ? 0 : HC_E_GONE, a->leaves ? "" : text);
	}
	return true;
}
