/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home: the one place in the cluster that decides over a domain. See state.h.
 *
 * home.c       make, find, state, store, end
 * home_form.c  arrivals, contradictions, deadlines, the two phases
 * home_differ.c arrivals that contradict
 * home_life.c  departures, the drain, those who wait for the end
 * home_again.c a node that begins anew with this one
 */
#ifndef HC_HOME_H
#define HC_HOME_H

#include "roll.h"
#include "state.h"

/* ---- home.c ---- */
uint64_t hc_home_draw_id(struct hc_core *c);
/* A forming domain with that id. 0, LIMIT, EXISTS or INVALID with the reason. */
int hc_home_make(struct hc_core *c, uint64_t id, uint64_t key_a, uint64_t key_b, uint32_t uid,
		 uint32_t nranks, struct hc_str name, bool staged, char *text, size_t bytes);
/* What the row says of a home that was just made, before and after its places are taken. */
void hc_home_restore(struct hc_core *c, struct hc_home *h, const struct hc_m_domain_row *m);
void hc_home_unmake(struct hc_core *c, uint64_t id);
struct hc_home *hc_home_by_id(struct hc_core *c, uint64_t id);
struct hc_home *hc_home_by_key(struct hc_core *c, uint64_t key_a, uint64_t key_b);
/* By its name, also a derived one. any: of whatever owner, when the user has none of that name. */
struct hc_home *hc_home_named(struct hc_core *c, uint32_t uid, bool any, struct hc_str name);
/* Its busy side: taken when it has none; as it is, or as it is at rest; given back if it rests. */
struct hc_home_busy *hc_home_busy(struct hc_core *c, struct hc_home *h);
const struct hc_home_busy *hc_home_now(const struct hc_core *c, const struct hc_home *h);
void hc_home_rest(struct hc_core *c, struct hc_home *h);
/* hc_home_timeout at that time, or (HC_NEVER) not. */
void hc_home_alarm(struct hc_core *c, struct hc_home *h, uint64_t at);
const char *hc_home_name(const struct hc_core *c, const struct hc_home *h, char *text,
			 size_t bytes);
const char *hc_home_cause(const struct hc_core *c, const struct hc_home *h);
void hc_home_set_cause(struct hc_core *c, struct hc_home *h, uint16_t kind, uint32_t rank,
		       uint32_t pid, const char *text);
void hc_home_set_state(struct hc_core *c, struct hc_home *h, uint8_t state);
/* Room for `nranks` places; false when ranks_max is reached. */
bool hc_home_set_nranks(struct hc_core *c, struct hc_home *h, uint32_t nranks);
struct hc_place *hc_home_place(struct hc_core *c, struct hc_home *h, uint32_t rank);
/* Has a rank come from that node? */
bool hc_home_has_node(const struct hc_core *c, const struct hc_home *h, uint32_t node);
/* Call fn once for each node that has a live member. Returns how many. */
typedef void (*hc_home_node_fn)(struct hc_core *c, struct hc_home *h, uint32_t node);
uint32_t hc_home_each_node(struct hc_core *c, struct hc_home *h, hc_home_node_fn fn);
/* The same for a question: `pending` answers are wanted, one of each node. */
void hc_home_ask_each(struct hc_core *c, struct hc_home *h, hc_home_node_fn fn);
/* Such an answer has come; false when the node was not asked, or has answered already. */
bool hc_home_heard(struct hc_core *c, struct hc_home *h, uint32_t node);
/* Put the row (or take it away) and a journal entry (event 0: none); the home goes on with `step`
 * when stored. */
void hc_home_store(struct hc_core *c, struct hc_home *h, enum hc_home_step step, uint16_t event,
		   const char *text);
/* Put the row as it is now; returns its number. */
uint64_t hc_home_put(struct hc_core *c, struct hc_home *h);
/* The domain is over: store that, then tell all. state: DESTROYED or FAILED. */
void hc_home_end(struct hc_core *c, struct hc_home *h, uint8_t state, int code, const char *text);
void hc_home_stored(struct hc_core *c, struct hc_home *h);
/* Keep why it ended. */
const struct hc_ended *hc_home_ended(const struct hc_core *c, uint64_t id);
void hc_home_remember(struct hc_core *c, struct hc_home *h, uint8_t state);
/* The same of a domain of another home that has ended here, and of either; nothing but what is
 * shown and said follows from these. */
void hc_ended_far(struct hc_core *c, const struct hc_part *p, struct hc_str cause);
const struct hc_ended *hc_ended_any(const struct hc_core *c, uint64_t id);
/* All have been told: answer those who wait, a few in each unit of work, and forget it. */
void hc_home_over(struct hc_core *c, struct hc_home *h);
bool hc_home_work(struct hc_core *c);
void hc_home_timeout(struct hc_core *c, struct hc_home *h);
/* Tell the state to every node. */
/* Of a domain that is not here any more, to a node that has a part of it. */
void hc_home_say_over(struct hc_core *c, uint32_t node, uint64_t id, uint32_t epoch);
void hc_home_tell_one(struct hc_core *c, struct hc_home *h, uint32_t node); /* who missed it */
void hc_home_tell_state(struct hc_core *c, struct hc_home *h);

/* ---- home_form.c ---- */
void hc_home_on_arrive(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m);
void hc_home_on_arrivals(struct hc_core *c, uint32_t node, const struct hc_m_arrivals *m);
void hc_home_on_prepared(struct hc_core *c, uint32_t node, const struct hc_m_prepared *m);
/* While it forms: a rank whose node is lost. If that was only out of reach, it hears of it. */
void hc_home_drop(struct hc_core *c, struct hc_home *h, uint32_t rank);
void hc_home_withdraw(struct hc_core *c, struct hc_home *h, struct hc_place *pl,
		      const struct hc_m_depart *m);
void hc_home_activate(struct hc_core *c, uint64_t id, struct hc_session *s, uint32_t request,
		      uint32_t timeout_ms);
void hc_home_attached(struct hc_core *c, uint64_t id, uint32_t rank, uint32_t process);
/* What is stored of a member of this node has changed: store it again. */
void hc_home_changed(struct hc_core *c, uint64_t id);
void hc_home_form_timeout(struct hc_core *c, struct hc_home *h);
void hc_home_commit(struct hc_core *c, struct hc_home *h);
/* Everybody is told at once, and node `also` even if no rank of it has come; nothing stays. */
void hc_home_cancel(struct hc_core *c, struct hc_home *h, uint32_t also, int code,
		    const char *text);
/* Who is missing, told to other nodes (missing.c): it has changed by a rank of that node; is it
 * time, and it is told; the alarm for that and the deadline. */
void hc_missing_changed(struct hc_core *c, struct hc_home *h, uint32_t node);
bool hc_missing_tell(struct hc_core *c, struct hc_home *h);
void hc_missing_alarm(struct hc_core *c, struct hc_home *h);
/* Who did not say within the limit that it can take part, as a reason. */
void hc_missing_prepared(struct hc_core *c, struct hc_home *h, char *text, size_t bytes);
/* "3 (192.0.2.4, device 1)"; `e` may be NULL. Returns its length, as snprintf does. */
size_t hc_missing_one(const struct hc_roll_entry *e, uint32_t rank, bool first, char *text,
		      size_t bytes);
/* The last sign of life from the node of a rank that has not come: "heard 40 ms ago". */
void hc_missing_sign(const struct hc_core *c, const struct hc_roll_entry *e, char *text,
		     size_t bytes);
/* "1, 3, 5 to 7 (4 of 8)" of the ranks that have not come. */
void hc_home_missing(struct hc_core *c, struct hc_home *h, char *text, size_t bytes);

/* ---- home_differ.c ---- */
bool hc_home_agrees(const struct hc_core *c, const struct hc_home *h, const struct hc_m_arrive *m);
/* What this arrival, which does not agree, says against those before it. */
void hc_home_contradiction(struct hc_core *c, struct hc_home *h, uint32_t node,
			   const struct hc_m_arrive *m, char *text, size_t bytes);
/* Goes on in a text that says who has the name: how the table of these differs. */
void hc_home_name_taken(struct hc_core *c, const struct hc_m_arrive *m, char *text, size_t bytes);
/* Those who have the name on this node had another table, and may not come: "; domain ...", or "".
 */
void hc_home_say_rival(struct hc_core *c, const struct hc_home *h, struct hc_str name,
		       const struct hc_roll_other *said, char *text, size_t bytes);
void hc_home_log_rival(struct hc_core *c, const struct hc_home *h, const struct hc_m_arrive *m);

/* ---- home_again.c ---- */
/* The node begins anew: at once, those of it who wait in forming domains; then home by home. */
void hc_home_node_again(struct hc_core *c, uint32_t node);
bool hc_home_again(struct hc_core *c, struct hc_home *h, uint32_t node);
/* An arrival of a rank that has arrived, and that was preparing. */
bool hc_home_comes_again(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m);
/* It prepares, and that node has lost its preparation: from the beginning. */
void hc_home_form_again(struct hc_core *c, struct hc_home *h, uint32_t node);
void hc_home_on_part_back(struct hc_core *c, uint32_t node, const struct hc_m_part_back *m);

/* ---- home_life.c ---- */
void hc_home_ask_cut(struct hc_core *c, struct hc_home *h);
void hc_home_send_cut(struct hc_core *c, struct hc_home *h, uint32_t node);
/* `ticket` of `node` waits for this home's end or activation; false when too many do. */
bool hc_home_wait(struct hc_core *c, struct hc_home *h, uint32_t node, uint64_t ticket,
		  bool active);
/* Begin to drain for a destroy. timeout_ms 0: drain_timeout_s. */
void hc_home_drain(struct hc_core *c, struct hc_home *h, uint32_t timeout_ms, uint32_t uid);
/* Answer the ranks whose departure is stored; false when there is none. */
bool hc_home_departed(struct hc_core *c);
/* The row of a damage is stored: tell it. */
void hc_home_damaged(struct hc_core *c, struct hc_home *h);
/* Nothing is under way any more: take up what came meanwhile. */
void hc_home_settle(struct hc_core *c, struct hc_home *h);
/* All that came from nodes which have lost it since are lost; `first` is one of them. */
void hc_home_lose(struct hc_core *c, struct hc_home *h, uint32_t first);
/* Its members are read from its row: one without a living one ends as any other. */
void hc_home_restored(struct hc_core *c, struct hc_home *h);
void hc_home_on_depart(struct hc_core *c, uint32_t node, const struct hc_m_depart *m);
void hc_home_on_control(struct hc_core *c, uint32_t node, const struct hc_m_control *m);
void hc_home_on_cut_report(struct hc_core *c, uint32_t node, const struct hc_m_cut_report *m);
void hc_home_on_drain_report(struct hc_core *c, uint32_t node, const struct hc_m_drain_report *m);
void hc_home_life_timeout(struct hc_core *c, struct hc_home *h);
/* Answer one who waits for this home; the text is the home's cause. */
void hc_home_answer(struct hc_core *c, struct hc_home *h, uint32_t ask, int code);
/* The same for the one who waits for its activation, if any. */
void hc_home_answer_active(struct hc_core *c, struct hc_home *h);

#endif
