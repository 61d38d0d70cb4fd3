/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part: this node's side of a domain. See state.h for how it relates to the home.
 *
 * part.c       life, seats, state record; the words of the home
 * part_work.c  telling its ranks: answers to joins, notifications; the slices of that work
 * part_join.c  the ways in, up to the arrival at the home; also part_many.c, part_batch.c
 * part_stage.c domains made for others; attaching
 * part_drain.c the cut: stop admission, sample, report; ranks that leave
 * part_away.c  a home that cannot be reached
 * part_again.c a home that begins anew with this node; one that is prepared
 */
#ifndef HC_PART_H
#define HC_PART_H

#include "roll.h"
#include "state.h"

/* ---- life (part.c) ---- */
/* NULL: what hc_user_may says of HC_CHARGE_PART. */
struct hc_part *hc_part_open(struct hc_core *c, uint64_t key_a, uint64_t key_b, uint32_t uid,
			     uint32_t nranks, struct hc_str name);
/* A stored part, with the slot that its record has; NULL when that is taken. */
struct hc_part *hc_part_restore(struct hc_core *c, const struct hc_m_domain_row *m, uint32_t home,
				uint32_t seats);
/* Its busy side: taken when it has none; as it is, or as it is at rest; given back if it rests. */
struct hc_part_busy *hc_part_busy(struct hc_core *c, struct hc_part *p);
const struct hc_part_busy *hc_part_now(const struct hc_core *c, const struct hc_part *p);
void hc_part_rest(struct hc_core *c, struct hc_part *p);
/* hc_part_timeout at that time, or (HC_NEVER) not. */
void hc_part_alarm(struct hc_core *c, struct hc_part *p, uint64_t at);
void hc_part_set_id(struct hc_core *c, struct hc_part *p, uint64_t id);
void hc_part_unset_id(struct hc_core *c, struct hc_part *p);
struct hc_part *hc_part_by_id(struct hc_core *c, uint64_t id);
/* The same, when `node` is its home: the only one that it obeys. */
struct hc_part *hc_part_of_home(struct hc_core *c, uint32_t node, uint64_t id);
struct hc_part *hc_part_by_name(struct hc_core *c, uint32_t uid, struct hc_str name);
/* That rank is here, of that process (0: nobody has attached to it yet). */
bool hc_part_has(const struct hc_core *c, const struct hc_part *p, uint32_t rank, uint32_t pid);
/* Of those that are not formed: the one that has this rank; or else one that is forming still. */
struct hc_part *hc_part_by_key(struct hc_core *c, uint64_t key_a, uint64_t key_b, uint32_t rank,
			       uint32_t pid);
static inline bool hc_seat_lives(const struct hc_seat *s)
{
	return s->state != HC_W_member_state_DEAD && s->state != HC_W_member_state_LEFT;
}
/* A domain of that key that lives here, whose ranks had another table: that is not joined, but it
 * has the name. NULL: none that is known. `where`: how the tables differ, see hc_roll_differ. */
const struct hc_part *hc_part_rival(struct hc_core *c, uint64_t key_a, uint64_t key_b,
				    const struct hc_roll_other *said, char *where, size_t bytes);
/* A new seat; HC_NONE when the limit of ranks is reached. */
uint32_t hc_part_add_seat(struct hc_core *c, struct hc_part *p, uint32_t rank, uint32_t device);
void hc_part_drop_seat(struct hc_core *c, struct hc_part *p, uint32_t seat);
/* It becomes one of another part, as it is; false: no room. */
bool hc_part_give_seat(struct hc_core *c, struct hc_part *p, uint32_t seat, struct hc_part *to);
/* The seat takes its device; or lets go its process, session, block and device. */
void hc_part_take_device(struct hc_core *c, uint32_t seat, bool shared);
void hc_part_release_seat(struct hc_core *c, uint32_t seat);
/* What was last read of its operations; nothing, when it was never read. */
const struct hc_reading *hc_seat_reading(const struct hc_core *c, uint32_t seat);
uint32_t hc_part_find_seat(const struct hc_core *c, const struct hc_part *p, uint32_t rank);
/* The part has no seat left and may go at once (forming), or stays. */
void hc_part_close_if_empty(struct hc_core *c, struct hc_part *p);
void hc_part_publish(struct hc_core *c, struct hc_part *p, bool fence);
void hc_part_set_cause(struct hc_core *c, struct hc_part *p, uint16_t kind, uint32_t rank,
		       uint32_t pid, struct hc_str text);
void hc_part_add_work(struct hc_core *c, struct hc_part *p, unsigned bits);
/* A slice of the oldest work; false when there is none. */
bool hc_part_work(struct hc_core *c);
void hc_part_answer_joined(struct hc_core *c, struct hc_part *p, uint32_t seat);

const char *hc_part_cause(const struct hc_core *c, const struct hc_part *p);
/* Its name, or one made of its id in `text`. */
const char *hc_part_name(const struct hc_core *c, const struct hc_part *p, char text[32]);
/* Where its home is: this node, or another one. */
void hc_part_of_node(struct hc_core *c, struct hc_part *p, uint32_t node);
#define HC_PART_SINCE_NS 100000000u
static inline void hc_part_become(const struct hc_core *c, struct hc_part *p, uint8_t state)
{
	if (p->state != state)
		p->since_ds = (uint32_t)(c->now / HC_PART_SINCE_NS);
	p->state = state;
}
static inline bool hc_part_is_far(const struct hc_part *p)
{
	return p->state != HC_W_domain_state_NONE && p->home_node != HC_SELF_NODE;
}
void hc_part_free(struct hc_core *c, struct hc_part *p);
/* The seat waits for the answer to that request of its session, or that item of a batch. */
void hc_part_wait(struct hc_core *c, uint32_t seat, uint32_t request, bool batch);
/* Seat `from` becomes seat `to` of that part. */
void hc_part_move_request(struct hc_core *c, uint32_t from, struct hc_part *p, uint32_t to);
/* Refuse the join that a seat waits for, once for all seats of the request. */
void hc_part_fail_join(struct hc_core *c, struct hc_part *p, uint32_t seat, int code,
		       const char *text);
/* The same, and the seat goes on waiting (for another request). */
void hc_part_refuse(struct hc_core *c, uint32_t seat, int code, const char *text);

/* Words of the home (part.c, part_many.c). */
void hc_part_on_accepted(struct hc_core *c, uint32_t node, const struct hc_m_accepted *m);
void hc_part_on_verdict(struct hc_core *c, uint32_t node, const struct hc_m_verdict *m);
void hc_part_on_missing(struct hc_core *c, uint32_t node, const struct hc_m_missing *m);
/* "waiting for rank ...", for a part that forms at another node. */
void hc_part_missing(const struct hc_core *c, const struct hc_part *p, char *text, size_t bytes);
void hc_part_on_prepare(struct hc_core *c, uint32_t node, const struct hc_m_prepare *m);
void hc_part_on_commit(struct hc_core *c, uint32_t node, const struct hc_m_commit *m);
void hc_part_on_cancel(struct hc_core *c, uint32_t node, const struct hc_m_cancel *m);
void hc_part_on_state(struct hc_core *c, uint32_t node, const struct hc_m_state *m);
void hc_part_on_gone(struct hc_core *c, uint32_t node, const struct hc_m_gone *m);
void hc_part_stored(struct hc_core *c, struct hc_part *p);
/* What PREPARE asked for is reserved, or not. persist: store before the answer. */
void hc_part_reserved(struct hc_core *c, struct hc_part *p, bool persist, int code,
		      uint32_t retry_ms, const char *text);

/* The domain will not be; it is over here: tell all, and let go. */
void hc_part_fail(struct hc_core *c, struct hc_part *p, uint16_t code, uint32_t retry_ms,
		  struct hc_str text);
void hc_part_end(struct hc_core *c, struct hc_part *p, uint8_t state, struct hc_str text);

/* What is being stored is not waited for any more. */
void hc_part_forget_step(struct hc_core *c, struct hc_part *p);

/* ---- its home begins anew with this node (part_again.c) ---- */
/* Tell the home what is here. */
void hc_part_say(struct hc_core *c, const struct hc_part *p);
bool hc_part_again(struct hc_core *c, struct hc_part *p, uint32_t node);
void hc_part_arrive_again(struct hc_core *c, const struct hc_part *p, uint32_t seat);
void hc_part_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_part_ask *m);
void hc_part_on_form_again(struct hc_core *c, uint32_t node, const struct hc_m_form_again *m);
/* It has prepared: ask the home now and then. */
void hc_part_await_home(struct hc_core *c, struct hc_part *p);
void hc_part_await_timeout(struct hc_core *c, struct hc_part *p);

/* ---- its home cannot be reached, or is lost (part_away.c) ---- */
/* Follow what is known of the home's node; false when nothing has changed. */
bool hc_part_look(struct hc_core *c, struct hc_part *p);
/* End an orphan that nobody here needs any more. */
/* Nothing was formed, and the home cannot be reached: those who wait are refused, and join again
 * when it is back. */
void hc_part_withdraw(struct hc_core *c, struct hc_part *p, const char *text);
void hc_part_orphan_timeout(struct hc_core *c, struct hc_part *p);

/* Told by sessions. */
void hc_part_seat_died(struct hc_core *c, uint32_t seat);
void hc_part_seat_detached(struct hc_core *c, uint32_t seat);
void hc_part_depart(struct hc_core *c, struct hc_part *p, uint32_t seat, uint8_t why,
		    const char *text, uint64_t ticket);

/* ---- ways in (part_join.c): requests of clients ---- */
void hc_join_root_info(struct hc_core *c, struct hc_session *s, uint32_t request,
		       const struct hc_m_root_info *m);
void hc_join_root(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_join_root *m);
void hc_join_table(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_join_table *m, const struct hc_roster *roster);
void hc_join_local(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_join_local *m);
void hc_join_sub(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_sub *m);

/* ---- many sub-domains in one request (part_batch.c) ---- */
void hc_batch(struct hc_core *c, struct hc_session *s, uint32_t request,
	      const struct hc_m_batch *m);
/* The outcome of an item. Ignored when it is not (or no more) one of that session's. */
void hc_batch_refused(struct hc_core *c, uint64_t session, uint32_t item, int code,
		      const char *text);
void hc_batch_joined(struct hc_core *c, uint64_t session, uint32_t item, struct hc_part *p);
void hc_batch_session_lost(struct hc_core *c, uint64_t session);
/* A slice: an item more, or the answer. False when there is none. */
bool hc_batch_work(struct hc_core *c);
/* Are there items whose rows come in the next steps? */
bool hc_batch_more(const struct hc_core *c);

/* The caller's own seat in an ACTIVE domain, or HC_NONE with the outcome and the reason. */
uint32_t hc_part_own_seat(struct hc_core *c, const struct hc_session *s, uint64_t id,
			  uint32_t epoch, uint32_t rank, bool split, int *code, char *text,
			  size_t bytes);
/* A domain that sub-domains may be made of, NULL: it is not ACTIVE, with the reason. split: of
 * ranks that agreed on it while it was; then it may drain. */
struct hc_part *hc_part_parent(struct hc_core *c, uint64_t id, uint32_t epoch, bool split,
			       int *code, char *text, size_t bytes);
void hc_join_create(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_create *m);
void hc_join_add_device(struct hc_core *c, struct hc_session *s, uint32_t request,
			const struct hc_m_add_device *m);
void hc_join_activate(struct hc_core *c, struct hc_session *s, uint32_t request,
		      const struct hc_m_activate *m);

/* ---- coming back (part_attach.c) ---- */
void hc_join_attach(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_attach *m);
/* A repeated join whose first answer was lost finds its place in the domain that was formed
 * meanwhile. True: it is answered. */
bool hc_part_come_back(struct hc_core *c, struct hc_session *s, uint32_t request, uint64_t key_a,
		       uint64_t key_b, uint32_t rank);
/* The same for all local devices, which have no key: name, devices and process must be the same. */
bool hc_part_local_back(struct hc_core *c, struct hc_session *s, uint32_t request,
			struct hc_str name, const uint32_t *devices, uint32_t n);

/* ---- the cut (part_drain.c) ---- */
void hc_part_on_cut_ask(struct hc_core *c, uint32_t node, const struct hc_m_cut_ask *m);
void hc_part_on_cut(struct hc_core *c, uint32_t node, const struct hc_m_cut *m);
void hc_part_sample(struct hc_core *c, const struct hc_event *ev);
void hc_part_ask_sample(struct hc_core *c, struct hc_part *p, uint32_t seat);
void hc_part_ops_ended(struct hc_core *c, struct hc_session *s, uint64_t id);
void hc_part_timeout(struct hc_core *c, struct hc_part *p);
void hc_part_leave(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_leave *m);
void hc_part_abort(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_abort *m);
void hc_part_destroy(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_destroy *m);
/* Every seat is done, or not any more: look, and tell the home. */
void hc_part_judge_drain(struct hc_core *c, struct hc_part *p);
/*
 * Answer the leave requests that wait for this seat (HC_NONE: for any). False when there was no
 * room for all; the rest is taken up at once by the part's timer.
 */
bool hc_part_answer_leave(struct hc_core *c, struct hc_part *p, uint32_t seat, int code,
			  const char *text);

#endif
