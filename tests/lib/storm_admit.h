/* SPDX-License-Identifier: Apache-2.0 */
/* Our admission as a policy of a storm: one link, a channel of equal bandwidth for each client. */
#ifndef HC_STORM_ADMIT_H
#define HC_STORM_ADMIT_H

#include "admit.h"
#include "storm.h"

struct storm_admit {
	struct hc_admit *s;
	uint32_t request[STORM_CLIENTS], client[2 * STORM_CLIENTS];
	uint8_t order[STORM_CLIENTS], weight[STORM_CLIENTS];
	uint32_t mbps;
	uint64_t (*clock)(void); /* when set: every call's time goes to `took` */
	void (*took)(void *ctx, uint64_t ns);
	void *took_ctx;
};

/* A link with room for that many channels. */
struct storm_policy storm_admit_new(struct storm_admit *a, uint32_t channels);
void storm_admit_end(struct storm_admit *a);

#endif
