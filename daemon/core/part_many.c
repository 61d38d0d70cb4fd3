/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranks of one process come to a domain together; see join.h.
 *
 * They are seated all or none, and then told to the home in one message (ARRIVALS), which it
 * answers by one (ACCEPTED): two messages for a process, not two for each of its ranks. Nothing
 * is told before all are seated, so a refusal has nothing to take back.
 */
#include "join.h"

#include "device.h"
#include "emit.h"
#include "home.h"
#include "rng.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define SCRATCH_HALF                                                                               \
	(HC_OUT_BYTES / 2)   /* lists in the first half, their encoding in the second              \
			      */
#define ARRIVALS_BYTES 1024u /* of the message, with the longest name */
#define COMER_BYTES    16u   /* of a rank in it, and in what answers it */

static void arrive(struct hc_core *c, const struct hc_part *p, const struct join *j,
		   struct hc_arr *ranks)
{
	const struct hc_process *who = &c->processes[j->s->process];
	struct hc_m_arrivals m = {.key_a = j->key_a,
				  .key_b = j->key_b,
				  .uid = p->uid,
				  .name = j->name,
				  .nranks = j->nranks,
				  .pid = who->pid,
				  .started = who->started,
				  .list_a = j->list_a,
				  .list_b = j->list_b,
				  .timeout_ms = j->timeout_ms,
				  .priority = j->priority,
				  .weight = j->weight ? j->weight : 1,
				  .incarnation = c->self.incarnation,
				  .quiet = j->batch,
				  .ranks = *ranks,
				  .channels = j->wish.channels,
				  .channel_mbps = j->wish.mbps,
				  .channel_hold_ms = j->wish.hold_ms,
				  .channel_wait = j->wish.wait,
				  .parent = j->parent};

	hc_emit_send(c, p->home_node, &hc_desc_arrivals, &m);
}

static bool check_all(struct hc_core *c, struct join *j, const struct hc_comer *list, uint32_t n)
{
	char text[512];
	uint32_t i;
	int r;

	for (i = 0; i < n; i++) {
		j->rank = list[i].rank;
		j->device = list[i].device;
		j->shared = list[i].shared;
		r = hc_join_check(c, j, text, sizeof(text));
		if (!r)
			continue;
		hc_join_refuse(c, j, r, text);
		return false;
	}
	return true;
}

/* Those who sit already wait for this request now; false when one of them is refused. */
static bool again_all(struct hc_core *c, struct hc_part *p, struct join *j,
		      const struct hc_comer *list, uint32_t n)
{
	uint32_t i;

	for (i = 0; p->nseats && i < n; i++) {
		j->rank = list[i].rank;
		j->device = list[i].device;
		if (hc_join_again(c, p, j) == AGAIN_REFUSED)
			return false;
	}
	return true;
}

static bool sit(struct hc_core *c, struct hc_part *p, const struct join *j,
		const struct hc_comer *who)
{
	uint32_t seat = hc_part_add_seat(c, p, who->rank, who->device);

	if (seat == HC_NONE)
		return false;
	hc_session_bind(c, seat, j->s);
	hc_part_take_device(c, seat, who->shared);
	hc_part_wait(c, seat, j->request, j->batch);
	return true;
}

/* Seats for those who have none. */
static bool sit_all(struct hc_core *c, struct hc_part *p, const struct join *j,
		    const struct hc_comer *list, uint32_t n, struct hc_arr *came)
{
	const bool fresh = !p->nseats;
	uint32_t i, done = 0;

	for (i = 0; i < n; i++) {
		struct hc_m_arrival r = {.rank = list[i].rank, .device = list[i].device};

		if (!fresh && hc_part_find_seat(c, p, list[i].rank) != HC_NONE)
			continue;
		if (!sit(c, p, j, &list[i]))
			break;
		done++;
		hc_assert(!hc_arr_put(came, c->scratch + SCRATCH_HALF, SCRATCH_HALF,
				      &hc_desc_arrival, HC_PROTO_MAX, &r));
	}
	if (i == n)
		return true;
	while (done--)
		hc_part_drop_seat(c, p, p->seats + p->nseats - 1);
	hc_join_refuse(c, j, HC_E_LIMIT, "ranks_max is reached on this node");
	return false;
}

int hc_join_together(struct hc_core *c, struct join *j, const struct hc_comer *list, uint32_t n)
{
	struct hc_arr came = {0};
	struct hc_part *p;

	hc_assert(n && n <= SCRATCH_HALF / sizeof(*list));
	if (j->batch && hc_join_back_together(c, j, list, n))
		return 0;
	if (!check_all(c, j, list, n))
		return -1;
	j->rank = list[0].rank;
	p = hc_join_part(c, j);
	if (!p)
		return -1;
	if (!again_all(c, p, j, list, n) || !sit_all(c, p, j, list, n, &came)) {
		hc_part_close_if_empty(c, p);
		return -1;
	}
	if (came.count)
		arrive(c, p, j, &came);
	return 0;
}

/* Ranks that have gone meanwhile are told as any other is: by the verdict on each. */
void hc_part_on_accepted(struct hc_core *c, uint32_t node, const struct hc_m_accepted *m)
{
	struct hc_m_verdict v = {
		.key_a = m->key_a, .key_b = m->key_b, .id = m->id, .pid = m->pid, .text = m->name};
	struct hc_part *p = NULL;
	struct hc_arr a = m->ranks;
	struct hc_m_rank r;

	while (hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r)) {
		v.rank = r.rank;
		if (p && hc_part_find_seat(c, p, r.rank) != HC_NONE)
			continue;
		hc_part_on_verdict(c, node, &v);
		p = hc_part_of_home(c, node, m->id);
	}
}

/* ---- way 5: all local devices ---- */

static uint32_t list_all(const struct hc_core *c, uint32_t *devices, uint32_t max)
{
	uint32_t i, n = 0;

	for (i = 0; i < c->ndevices && n < max; i++)
		if (c->devices[i].fact.present)
			devices[n++] = c->devices[i].fact.index;
	return n;
}

#define LOCAL_MAX 1024u

static uint32_t list_wanted(const struct hc_core *c, const struct hc_m_join_local *m,
			    uint32_t *devices)
{
	struct hc_arr a = m->devices;
	struct hc_m_device d;
	uint32_t n = 0;

	if (!a.count)
		return list_all(c, devices, LOCAL_MAX);
	while (n < LOCAL_MAX && hc_arr_next(&a, &hc_desc_device, HC_PROTO_MAX, &d))
		devices[n++] = d.index;
	return n;
}

static int local_check(const struct join *j, const uint32_t *devices, char *text, size_t bytes)
{
	uint32_t i, k;

	if (!j->nranks) {
		snprintf(text, bytes,
			 "this node has no device: describe them in [device N] sections "
			 "or a topology_file");
		return HC_E_DEVICE_OFFLINE;
	}
	for (i = 0; i < j->nranks; i++) {
		for (k = 0; k < i; k++)
			if (devices[k] == devices[i]) {
				snprintf(text, bytes,
					 "device %u is listed twice, as rank %u and rank %u",
					 devices[i], k, i);
				return HC_E_INVALID;
			}
	}
	return 0;
}

void hc_join_local(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_join_local *m)
{
	struct hc_comer *list = (struct hc_comer *)(void *)c->scratch;
	struct join j = {.s = s,
			 .request = request,
			 .name = m->name,
			 .timeout_ms = m->timeout_ms,
			 .priority = m->priority,
			 .weight = m->weight,
			 .wish = HC_WISH_OF(m),
			 .key_a = hc_rng_u64(c),
			 .key_b = hc_rng_u64(c)};
	uint32_t devices[LOCAL_MAX], i;
	char text[512];
	int r;

	j.nranks = list_wanted(c, m, devices);
	if (hc_part_local_back(c, s, request, m->name, devices, j.nranks))
		return;
	r = local_check(&j, devices, text, sizeof(text));
	if (!r && !hc_emit_ring_holds(c, ARRIVALS_BYTES + j.nranks * COMER_BYTES)) {
		r = HC_E_AGAIN;
		HC_TEXT(text, "the daemon is busy");
	}
	if (r) {
		hc_join_refuse(c, &j, r, text);
		return;
	}
	for (i = 0; i < j.nranks; i++)
		list[i] = (struct hc_comer){i, devices[i], m->shared == 1};
	hc_join_together(c, &j, list, j.nranks);
}
