/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must agree inside of one core, whoever drives it: the world of the unit tests or the
 * simulator.
 *
 * Each check counts the same thing in two places that are kept apart in the core: seats by part,
 * by process and by session; users of a device; tickets; homes by state; digests by domain. A leak
 * or a stale number shows at the step that made it.
 */
#ifndef WORLDCORE_H
#define WORLDCORE_H

#include "state.h"

/* What does not agree, with its place in the source; or NULL. */
const char *world_core_wrong(struct hc_core *c);
/* What is left after all has ended but sessions, or NULL. */
const char *world_core_left(const struct hc_core *c);

#endif
