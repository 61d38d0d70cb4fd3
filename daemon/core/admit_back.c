/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission, for who looks at it from outside, and for grants of an earlier daemon; see admit.h.
 *
 * A grant that is taken back was made by the same rules before, and its owner was told its link
 * and virtual channel: it gets exactly these or nothing. It is asked for as any other, then moved.
 */
#include "admitimp.h"

const struct hc_admit_link *hc_admit_link_fact(const struct hc_admit *s, uint32_t link)
{
	return link < s->lim.links && s->link[link].known ? &s->link[link].fact : NULL;
}

uint32_t hc_admit_pieces(const struct hc_admit *s, uint32_t request)
{
	hc_assert(request < s->requests.fresh);
	return s->request[request].npieces;
}

uint32_t hc_admit_piece_first(const struct hc_admit *s, uint32_t request, uint32_t piece)
{
	hc_assert(piece < hc_admit_pieces(s, request));
	return hc_adm_choice(s, &s->piece[s->request[request].first + piece], HC_NONE);
}

bool hc_admit_could(const struct hc_admit *s, uint32_t link, const struct hc_admit_piece *piece,
		    bool *now)
{
	const bool back = piece->from > piece->to;
	const uint32_t need[2] = {piece->mbps[back], piece->mbps[!back]};
	const struct hc_adm_piece p = {.from = piece->from,
				       .to = piece->to,
				       .type = piece->type,
				       .carries = piece->carries};
	const struct hc_adm_link *l;
	uint32_t i = hc_adm_choice(s, &p, HC_NONE);

	while (i != HC_NONE && i != link)
		i = hc_adm_choice(s, &p, i);
	if (i == HC_NONE)
		return false;
	l = &s->link[link];
	*now = (uint64_t)l->used[0] + need[0] <= l->limit &&
	       (uint64_t)l->used[1] + need[1] <= l->limit && l->used_vcs < l->fact.vcs;
	return need[0] <= l->limit && need[1] <= l->limit && l->fact.vcs;
}

static bool is_free(const struct hc_admit *s, const struct hc_admit_place *place)
{
	return !(s->vcs[(size_t)place->link * (HC_ADMIT_VCS_MAX / 64) + place->vc / 64] >>
			 place->vc % 64 &
		 1);
}

int hc_admit_take_back(struct hc_admit *s, uint64_t now, const struct hc_admit_ask *ask,
		       const struct hc_admit_place *place, uint32_t *request)
{
	struct hc_adm_link *l = place->link < s->lim.links ? &s->link[place->link] : NULL;
	struct hc_admit_ask again = *ask;
	struct hc_adm_piece *p;
	uint64_t hint;
	bool room;
	int r;

	hc_assert(ask->npieces == 1);
	if (!l || place->vc >= l->fact.vcs || !hc_admit_could(s, place->link, ask->pieces, &room))
		return HC_E_LINK_UNAVAILABLE;
	again.exempt = true;
	r = hc_admit_ask(s, now, &again, request, &hint);
	if (r == HC_E_AGAIN || r == HC_E_IN_PROGRESS)
		hc_admit_release(s, now, *request);
	if (r)
		return r == HC_E_LIMIT ? r : HC_E_LINK_UNAVAILABLE;
	hc_admit_collect(s, *request);
	p = &s->piece[s->request[*request].first];
	if (p->link == place->link && p->vc == place->vc)
		return 0;
	hc_adm_give_back(s, now, s->request[*request].first, false);
	room = (uint64_t)l->used[0] + p->need[0] <= l->limit &&
	       (uint64_t)l->used[1] + p->need[1] <= l->limit && is_free(s, place);
	if (room) {
		p->link = place->link;
		l->vc_last = place->vc ? place->vc - 1 : HC_NONE;
	}
	hc_adm_take(s, now, s->request[*request].first);
	if (room)
		return 0;
	hc_admit_release(s, now, *request);
	return HC_E_LINK_UNAVAILABLE;
}
