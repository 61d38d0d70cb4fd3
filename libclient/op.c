/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operation references: from a handle to the inline paths of ops.h.
 *
 * These are the calls whose cost is counted in nanoseconds. The usual way is one load to the
 * table, one comparison of the handle, and the stores of hc_ops_begin or hc_ops_end; everything
 * else, texts included, stands in functions that are kept out of line.
 */
#include "client.h"

#define COLD __attribute__((noinline, cold))

static inline struct hc_ops_domain *live(hcomm_domain handle)
{
	struct hc_domain *d = hc_slot(handle);

	/* the handle of a free slot is 0, too */
	if (hc_ops_likely(handle != 0) && hc_ops_likely(d != NULL) &&
	    hc_ops_likely(atomic_load_explicit(&d->ops.handle, memory_order_acquire) == handle))
		return &d->ops;
	return NULL;
}

/* No operation can run on this handle: why? */
COLD static int not_live(hcomm_domain handle)
{
	struct hc_domain *d;
	int r;

	if (!handle)
		return -hc_refuse(HC_E_INVALID, "the handle is 0");
	r = hc_domain_lock(handle, &d);
	if (r)
		return -r;
	if (d->phase == HC_PHASE_FORMING)
		r = hc_refuse(HC_E_IN_PROGRESS, "the domain is still forming");
	else
		r = hc_refuse(d->error ? d->error : HC_E_GONE,
			      "the domain did not form, or has ended");
	hc_domain_unlock(d);
	return -r;
}

/* The cause is in the record, where it is one. */
COLD static int refused(const struct hc_ops_domain *d, int outcome)
{
	const struct hc_page_record *r = d->record;
	char cause[HC_CAUSE_BYTES + 1];
	unsigned i;

	for (i = 0; i < HC_CAUSE_BYTES && r->cause[i]; i++)
		cause[i] = r->cause[i];
	cause[i] = '\0';
	if (atomic_load_explicit(&r->id, memory_order_acquire) != d->id)
		cause[0] = '\0'; /* that of another domain */
	return -hc_refuse(outcome, "domain %016llx: %s%s%s", (unsigned long long)d->id,
			  hc_error_row(outcome)->text, cause[0] ? ": " : "", cause);
}

COLD static int bad_argument(const char *what)
{
	return -hc_refuse(HC_E_INVALID, "%s", what);
}

/* What both calls want of their arguments: 0, or the error that the caller gets. */
static inline __attribute__((always_inline)) int check(const struct hc_ops_domain *d,
						       hcomm_domain domain, uint32_t flags,
						       const struct hcomm_op *op)
{
	if (!hc_ops_likely(d != NULL))
		return not_live(domain);
	if (!hc_ops_likely(op != NULL))
		return bad_argument("op is NULL; wanted: where the token lives");
	if (!hc_ops_likely(flags <= HCOMM_OP_NOWAIT))
		return bad_argument("flags has unknown bits; wanted: 0 or HCOMM_OP_NOWAIT");
	return 0;
}

static inline __attribute__((always_inline)) int begin(struct hc_ops_domain *d, uint32_t seat,
						       enum hcomm_op_kind kind, uint32_t flags,
						       struct hcomm_op *op)
{
	int r = hc_ops_begin(d, seat, kind, flags, op);

	if (hc_ops_likely(!r))
		return 0;
	if (r == HC_E_INVALID)
		return bad_argument("kind is none of HCOMM_OP_*");
	return refused(d, r);
}

/* flatten: all of the usual way in one function */
HC_EXPORT __attribute__((flatten)) int hcomm_op_begin(hcomm_domain domain, enum hcomm_op_kind kind,
						      uint64_t bytes, uint32_t flags,
						      struct hcomm_op *op)
{
	struct hc_ops_domain *d = live(domain);
	int r = check(d, domain, flags, op);

	(void)bytes; /* for the flight recorder */
	if (!hc_ops_likely(!r))
		return r;
	return begin(d, 0, kind, flags, op);
}

HC_EXPORT int hcomm_op_begin_rank(hcomm_domain domain, uint32_t rank, enum hcomm_op_kind kind,
				  uint64_t bytes, uint32_t flags, struct hcomm_op *op)
{
	struct hc_ops_domain *d = live(domain);
	int r = check(d, domain, flags, op);
	uint32_t seat;

	(void)bytes;
	if (!hc_ops_likely(!r))
		return r;
	seat = hc_ops_seat(d, rank);
	if (seat == HC_NONE)
		return bad_argument("rank is none of this process in the domain");
	return begin(d, seat, kind, flags, op);
}

COLD static int token_lost(hcomm_domain handle)
{
	if (!handle)
		return bad_argument(
			"the token was returned already, or comes from no hcomm_op_begin");
	return -hc_domain_lost(handle);
}

HC_EXPORT int hcomm_op_end(struct hcomm_op *op)
{
	struct hc_ops_domain *d;
	int r;

	if (!hc_ops_likely(op != NULL))
		return bad_argument("op is NULL; wanted: the token of hcomm_op_begin");
	d = live(op->private_[0]);
	if (!hc_ops_likely(d != NULL))
		return token_lost(op->private_[0]);
	r = hc_ops_end(d, op);
	return hc_ops_likely(!r) ? 0 : bad_argument("the token is damaged");
}
