/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two nodes that begin anew with each other: one of their daemons was restarted, or messages
 * between them were lost.
 *
 * What was under way is gone then: a word of the home, an answer, an arrival. Each side tells the
 * other what it has, domain by domain, and both go on from there:
 *
 *   home                                   participant
 *     PART_ASK ------------------------->  what do you have of it?
 *     <--------------------- PART_BACK     its state and ranks, or nothing; also by itself
 *     COMMIT, STATE, CUT_ASK, CUT, GONE -> what it lacks
 *     FORM_AGAIN ----------------------->  it is not known here: ranks that wait arrive again
 *
 * Ranks that the participant has no more are lost, those that left have left. A domain that forms
 * is stored nowhere: the home lets go of the ranks of that node, and the parts of that home arrive
 * again; so does one that had prepared and whose home does not know it (presumed abort). Requests
 * of clients that wait for the other node are sent again.
 *
 * It happens in slices, and pauses while the other side is behind in reading.
 */
#ifndef HC_AGAIN_H
#define HC_AGAIN_H

#include "state.h"

void hc_again(struct hc_core *c, uint32_t node);
/* Is there something to be done now? A unit of it; false when there is nothing. */
bool hc_again_ready(const struct hc_core *c);
bool hc_again_work(struct hc_core *c);

#endif
