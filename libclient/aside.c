/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that nobody waits for, and whose connection was lost.
 *
 * A join that was begun with HCOMM_START is ended by an event. When the daemon goes away before,
 * its forming domain is forgotten, and the blocking form of the call would ask again. So does this:
 * the request is kept as it was sent, put aside when its connection is lost, and sent over the next
 * one once the domains are taken back, with a new id. The daemon knows a repeated join for what
 * it is.
 *
 * A request is put aside a few times at most and no longer than its own time; what is too old then
 * ends as PEER_CLOSED, which becomes an event like any other failure.
 */
#include "client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int hc_aside_keep(struct hc_call *c, const uint8_t *frame, size_t len, int pass)
{
	uint8_t *copy = malloc(len);

	if (!copy)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the request");
	memcpy(copy, frame, len);
	free(c->frame); /* of a request before this one */
	c->frame = copy;
	c->frame_len = len;
	c->pass = pass >= 0 ? fcntl(pass, F_DUPFD_CLOEXEC, 3) : -1;
	if (pass < 0 || c->pass >= 0)
		return 0;
	return hc_refuse(HC_E_SYSTEM, "no descriptor for the request");
}

bool hc_aside_put(struct hcomm_session *s, struct hc_call *c)
{
	struct hc_call **end = &s->aside;

	if (!c->frame || c->outcome != HC_E_PEER_CLOSED || c->repeats >= HC_REPEATS ||
	    hc_now() >= c->until)
		return false;
	c->repeats++;
	c->done = false;
	c->outcome = 0;
	c->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = c;
	return true;
}

static struct hc_call *take(struct hc_call **p)
{
	struct hc_call *c = *p;

	*p = c->next;
	c->next = NULL;
	return c;
}

static void give_up(struct hcomm_session *s, struct hc_call *c)
{
	c->outcome = HC_E_PEER_CLOSED;
	c->done = true;
	c->finish(s, c);
}

void hc_aside_send(struct hcomm_session *s, uint64_t deadline)
{
	struct hc_call *c;

	while (s->aside && s->fd >= 0) {
		c = take(&s->aside);
		if (hc_sess_again(&s->sess, c, c->frame, c->frame_len))
			give_up(s, c); /* the new daemon speaks otherwise */
		else if (hc_wait_send(s, c->frame, c->frame_len, c->pass, deadline))
			hc_wait_drop(s, "lost while requests were sent again"); /* puts it back */
	}
}

void hc_aside_expire(struct hcomm_session *s)
{
	struct hc_call **p = &s->aside;
	uint64_t now;

	if (!*p)
		return;
	now = hc_now();
	while (*p) {
		if (now < (*p)->until)
			p = &(*p)->next;
		else
			give_up(s, take(p));
	}
}

void hc_aside_drop(struct hcomm_session *s)
{
	while (s->aside)
		give_up(NULL, take(&s->aside));
}
