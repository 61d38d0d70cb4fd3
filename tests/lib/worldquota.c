/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does any uid hold more of a link than its quota, over all domains that it has on this node?
 *
 * Added up from the channels themselves, not from what the admission keeps of users, each way as
 * the link lies, and in virtual channels. A way out that shrinks with its ports is left out, as it
 * is for the limit of a link: what was granted before stays.
 */
#include "worldquota.h"

#include "channel.h"
#include "part.h"

static void add(struct hc_core *c, const struct hc_channel *ch, uint64_t sum[3])
{
	const struct hc_admit_piece p = hc_channel_admit_piece(c, hc_part(c, ch->part), ch);
	const bool back = p.from > p.to;

	sum[0] += p.mbps[back];
	sum[1] += p.mbps[!back];
	sum[2]++;
}

/* All of that uid on that link, found from the first of them. */
static bool is_first(const struct hc_channels *x, uint32_t n, uint32_t of)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (x->at[i].state == CHANNEL_GRANTED && x->at[i].link == x->at[of].link &&
		    x->at[i].uid == x->at[of].uid)
			return false;
	return true;
}

static const char *judge(struct hc_core *c, uint32_t first, uint32_t percent)
{
	const struct hc_channels *x = c->chan;
	const struct hc_channel *of = &x->at[first];
	const struct hc_admit_link *fact = hc_admit_link_fact(c->admit, of->link);
	struct hc_admit_use use;
	uint64_t sum[3] = {0}, most;
	uint32_t n;

	for (n = first; n < x->pool.fresh; n++)
		if (x->at[n].state == CHANNEL_GRANTED && x->at[n].link == of->link &&
		    x->at[n].uid == of->uid)
			add(c, &x->at[n], sum);
	hc_admit_link_use(c->admit, of->link, &use);
	most = (uint64_t)use.limit_mbps * percent / 100;
	if (sum[0] > most || sum[1] > most)
		return "a uid has more of a link than quota_link_percent";
	most = (uint64_t)fact->vcs * percent / 100;
	if (sum[2] > (most ? most : 1))
		return "a uid has more virtual channels of a link than quota_link_percent";
	return NULL;
}

const char *quota_wrong(struct hc_core *c, uint32_t percent)
{
	const struct hc_channels *x = c->chan;
	const char *wrong = NULL;
	uint32_t n;

	for (n = 0; n < x->pool.fresh && !wrong; n++)
		if (x->at[n].state == CHANNEL_GRANTED && x->at[n].link < c->nlinks &&
		    c->link_facts[x->at[n].link].a != HC_END_NET && is_first(x, n, n))
			wrong = judge(c, n, percent);
	return wrong;
}
