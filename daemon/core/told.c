/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a domain, written down; see told.h. */
#include "told.h"

#include "emit.h"
#include "home.h"
#include "part.h"

#include <stdio.h>
#include <string.h>

#define LINE HC_TOLD_MAX

static void state_line(const char *name, uint8_t state, const char *text, char line[LINE])
{
	snprintf(line, LINE, "%s: %s%s%s", name, hc_word_domain_state(state),
		 text[0] ? ": " : " again", text);
}

void hc_told_damaged(const struct hc_core *c, const struct hc_home *h, char *text, size_t bytes)
{
	char name[32];

	snprintf(text, bytes, "%s: DAMAGED: %s", hc_home_name(c, h, name, sizeof(name)),
		 hc_home_cause(c, h));
}

void hc_told_active(const char *name, uint32_t nranks, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s: ACTIVE, %u ranks", name, nranks);
}

void hc_told_formed(const char *name, uint32_t nranks, uint32_t epoch, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s: %u ranks, epoch %u", name, nranks, epoch);
}

void hc_home_told(struct hc_core *c, const struct hc_home *h, const struct hc_told *t,
		  const char *text)
{
	char line[LINE], name[32];

	state_line(hc_home_name(c, h, name, sizeof(name)), h->state, text, line);
	hc_emit_log(c, t->level, t->kind, h->id, t->rank, line);
	hc_emit_journal(c, t->kind, h->id, h->epoch, t->rank, t->pid, h->uid, line);
}

/* ---- at a part ---- */

static void put(struct hc_core *c, struct hc_part *p, const struct hc_told *t, const char *line,
		const char *entry)
{
	hc_emit_log(c, t->level, t->kind, p->id, t->rank, line);
	hc_emit_journal(c, t->kind, p->id, p->epoch, t->rank, t->pid, p->uid, entry);
}

void hc_part_told_active(struct hc_core *c, struct hc_part *p)
{
	const struct hc_told t = {HC_LOG_INFO, HC_W_event_code_DOMAIN_ACTIVE, HC_NONE, 0};
	char line[LINE], entry[LINE], name[32];

	if (!hc_part_now(c, p)->formed)
		return;
	hc_part_busy(c, p)->formed = false;
	if (!hc_part_is_far(p) || hc_part_now(c, p)->quiet)
		return;
	hc_told_active(hc_part_name(c, p, name), p->nranks, line, sizeof(line));
	hc_told_formed(hc_part_name(c, p, name), p->nranks, p->epoch, entry, sizeof(entry));
	put(c, p, &t, line, entry);
}

/* What it became before comes before. */
static void say(struct hc_core *c, struct hc_part *p, const struct hc_told *t, const char *line,
		const char *entry)
{
	hc_part_told_active(c, p);
	put(c, p, t, line, entry);
}

void hc_part_told(struct hc_core *c, struct hc_part *p, const struct hc_told *t, const char *text)
{
	char line[LINE], name[32];

	if (!hc_part_is_far(p))
		return;
	state_line(hc_part_name(c, p, name), p->state, text, line);
	say(c, p, t, line, line);
}

/* A further death, which this node has seen itself. */
static bool is_own_death(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	const uint32_t seat = hc_part_find_seat(c, p, rank);

	return seat != HC_NONE && c->seats[seat].state == HC_W_member_state_DEAD;
}

void hc_part_told_state(struct hc_core *c, struct hc_part *p, const struct hc_m_state *m)
{
	const bool runs = m->state == HC_W_domain_state_ACTIVE;
	const bool calm = runs || m->kind == HC_W_event_code_RANK_LEFT ||
			  m->kind == HC_W_event_code_DOMAIN_DRAINING;
	const struct hc_told t = {calm ? HC_LOG_INFO : HC_LOG_WARN,
				  runs ? (uint16_t)HC_W_event_code_DOMAIN_ACTIVE : m->kind,
				  runs ? HC_NONE : m->rank, runs ? 0 : m->pid};
	const bool same = p->state == m->state;
	char text[HC_CAUSE_MAX], line[LINE], name[32];

	hc_str_copy(m->text, text, sizeof(text));
	if (!hc_part_is_far(p) ||
	    (same && (runs || !strcmp(text, hc_part_cause(c, p)) || is_own_death(c, p, m->rank))))
		return;
	state_line(hc_part_name(c, p, name), m->state, runs ? "" : text, line);
	say(c, p, &t, line, line);
}

void hc_part_told_end(struct hc_core *c, struct hc_part *p)
{
	const bool failed = p->state == HC_W_domain_state_FAILED;
	const struct hc_told t = {failed ? HC_LOG_WARN : HC_LOG_INFO,
				  failed ? HC_W_event_code_DOMAIN_FAILED
					 : HC_W_event_code_DOMAIN_DESTROYED,
				  HC_NONE, 0};
	char line[LINE], name[32];

	if (!hc_part_is_far(p))
		return;
	HC_TEXT(line, "%s: %s", hc_part_name(c, p, name), hc_part_cause(c, p));
	say(c, p, &t, line, hc_part_cause(c, p));
}

void hc_part_told_death(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	const struct hc_seat *s = &c->seats[seat];
	const struct hc_told t = {HC_LOG_WARN, HC_W_event_code_RANK_DIED, s->rank,
				  s->process == HC_NONE ? 0 : c->processes[s->process].pid};
	char text[HC_NAME_MAX + 64], line[LINE], name[32];

	if (p->state >= HC_W_domain_state_DESTROYED ||
	    (!hc_part_is_far(p) && p->state >= HC_W_domain_state_ACTIVE))
		return;
	HC_TEXT(text, "rank %u, pid %u on node %s, exited", t.rank, t.pid, c->self.name);
	HC_TEXT(line, "%s: %s", hc_part_name(c, p, name), text);
	say(c, p, &t, line, text);
}
