/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error texts: fixed ones from the table, and the detail of a thread's last failure.
 *
 * The detail cannot live in thread-local storage itself: a library with a fast path of
 * initial-exec TLS shares a small surplus with all others that a process loads late, and a
 * kilobyte for each thread might not fit. So the texts stand in a ring in .bss, and the thread
 * keeps only which one it wrote, and its number. It uses the same place again at its next
 * failure; a thread whose place was taken (after a few hundred other threads failed) gets the
 * fixed text instead. Nothing is allocated, so nothing leaks and no failure is lost for want of
 * memory, and a dlclose takes all of it.
 */
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PLACES 256u

struct place {
	_Atomic uint64_t owner; /* number of the thread that writes here; 0 = nobody yet */
	char text[HCOMM_TEXT_BYTES];
};

static struct place ring[PLACES];
static _Atomic uint64_t numbers;

struct mine {
	uint64_t number; /* 0: this thread never failed */
	int outcome;
	uint32_t retry_after_ms;
};
static __thread struct mine mine __attribute__((tls_model("initial-exec")));

static char *my_text(void)
{
	struct place *p = &ring[mine.number % PLACES];

	if (mine.number && atomic_load_explicit(&p->owner, memory_order_relaxed) == mine.number)
		return p->text;
	mine.number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
	p = &ring[mine.number % PLACES];
	atomic_store_explicit(&p->owner, mine.number, memory_order_relaxed);
	return p->text;
}

int hc_refuse(int outcome, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(my_text(), HCOMM_TEXT_BYTES, format, ap);
	va_end(ap);
	mine.outcome = outcome;
	mine.retry_after_ms = HCOMM_UNKNOWN;
	return outcome;
}

int hc_refuse_str(int outcome, struct hc_str text, uint32_t retry_after_ms)
{
	hc_str_copy(text, my_text(), HCOMM_TEXT_BYTES);
	mine.outcome = outcome;
	mine.retry_after_ms = retry_after_ms;
	return outcome;
}

HC_EXPORT const char *hcomm_last_error(void)
{
	const struct place *p = &ring[mine.number % PLACES];

	if (!mine.number)
		return "";
	if (atomic_load_explicit(&p->owner, memory_order_relaxed) != mine.number)
		return hcomm_error_string(-mine.outcome);
	return p->text;
}

HC_EXPORT uint32_t hcomm_retry_after(void)
{
	return mine.number && mine.outcome == HC_E_AGAIN ? mine.retry_after_ms : HCOMM_UNKNOWN;
}

/* ---- the table ---- */

/* Public errors are negative; a positive number is none of ours. */
static const struct hc_error_row *row(int error)
{
	return error < 0 ? hc_error_row(error) : NULL;
}

HC_EXPORT const char *hcomm_error_string(int error)
{
	const struct hc_error_row *r = row(error);

	return r ? r->text : error ? "unknown error" : "success";
}

/* What a caller may print or look up: the name of the enumerator in hcomm.h. */
static const char *const names[] = {
	[0] = "HCOMM_OK",
#define ERR(number, name, hccl, nccl, text, explain) [number] = "HCOMM_E_" #name,
#include "errors.tbl.h"
#undef ERR
};

HC_EXPORT const char *hcomm_error_name(int error)
{
	if (error > 0 || error <= -(int)(sizeof(names) / sizeof(names[0])) || !names[-error])
		return "HCOMM_E_?";
	return names[-error];
}

HC_EXPORT const char *hcomm_error_explain(int error)
{
	const struct hc_error_row *r = row(error);

	if (r)
		return r->explain;
	return error ? "No error of this library has that number." : "Nothing went wrong.";
}

HC_EXPORT int hcomm_to_hccl(int error)
{
	const struct hc_error_row *r = row(error);

	return !error ? 0 : r ? r->hccl : hc_error_row(HC_E_INTERNAL)->hccl;
}

HC_EXPORT int hcomm_to_nccl(int error)
{
	const struct hc_error_row *r = row(error);

	return !error ? 0 : r ? r->nccl : hc_error_row(HC_E_INTERNAL)->nccl;
}
