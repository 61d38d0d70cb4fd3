/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and exit statuses.
 *
 * One line each, on standard error, with the program's name in front. A failed call is said as:
 * what was tried, the detail text of the library, and when to ask again where that is known. The
 * library's text may hold names that came from other processes, so what would steer a terminal is
 * escaped on the way out.
 *
 * Scripts act on the exit status, so it comes from one switch over all errors of the library,
 * without a default: a new error makes the compiler ask what its status is.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "ctl.h"
#include "options.h"
#include "verdict.h"

#define LINE_BYTES 4096

static void say(const char *fmt, va_list args)
{
	char raw[LINE_BYTES], line[LINE_BYTES];

	vsnprintf(raw, sizeof(raw), fmt, args);
	hc_escape(line, sizeof(line), raw, strlen(raw));
	fflush(stdout);
	fprintf(stderr, "hcommctl: %s\n", line);
}

void ctl_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

int ctl_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	return CTL_USAGE;
}

static int exit_of(enum hcomm_error error)
{
	switch (error) {
	case HCOMM_OK:
	case HCOMM_E_FORCED: return error ? CTL_DEGRADED : CTL_OK;
	case HCOMM_E_INVALID:
	case HCOMM_E_MISMATCH: return CTL_USAGE;
	case HCOMM_E_NO_DAEMON: return CTL_NO_DAEMON;
	case HCOMM_E_PERMISSION: return CTL_DENIED;
	case HCOMM_E_TIMEOUT: return CTL_TIMEOUT;
	case HCOMM_E_IN_PROGRESS:
	case HCOMM_E_AGAIN:
	case HCOMM_E_NOT_READY:
	case HCOMM_E_LIMIT:
	case HCOMM_E_RESOURCE_EXHAUSTED:
	case HCOMM_E_SUSPENDED:
	case HCOMM_E_STALE:
	case HCOMM_E_BUSY:
	case HCOMM_E_PEER_CLOSED: return CTL_AGAIN;
	case HCOMM_E_NOT_SUPPORTED:
	case HCOMM_E_VERSION:
	case HCOMM_E_GONE:
	case HCOMM_E_NOT_FOUND:
	case HCOMM_E_EXISTS:
	case HCOMM_E_LINK_UNAVAILABLE:
	case HCOMM_E_DEVICE_OFFLINE:
	case HCOMM_E_BUFFER_OVERFLOW:
	case HCOMM_E_DAMAGED:
	case HCOMM_E_ABORTED:
	case HCOMM_E_PEER_LOST:
	case HCOMM_E_FORKED:
	case HCOMM_E_MALFORMED:
	case HCOMM_E_SYSTEM:
	case HCOMM_E_NO_MEMORY:
	case HCOMM_E_PORT_IN_USE:
	case HCOMM_E_STORAGE:
	case HCOMM_E_INTERNAL: return CTL_DEGRADED;
	}
	return CTL_DEGRADED; /* an error of a newer library */
}

int ctl_exit_of(int error)
{
	return exit_of((enum hcomm_error)error);
}

int ctl_fail(int error, const char *what)
{
	const char *detail = hcomm_last_error();
	uint32_t wait_ms = hcomm_retry_after();

	if (!detail[0])
		detail = hcomm_error_string(error);
	if (ctl_exit_of(error) == CTL_AGAIN && wait_ms && wait_ms != HCOMM_UNKNOWN)
		ctl_say("%s: %s; try again in %u ms", what, detail, wait_ms);
	else if (error == HCOMM_E_AGAIN && wait_ms == HCOMM_UNKNOWN)
		ctl_say("%s: %s; when to try again is not known", what, detail);
	else
		ctl_say("%s: %s", what, detail);
	return ctl_exit_of(error);
}

const char *ctl_nearest(const char *word, const char *const *words, size_t count)
{
	const char *found = NULL;
	size_t best = strlen(word) / 3 + 2; /* more edits than this is another word */

	for (size_t i = 0; i < count; i++) {
		size_t edits = hc_opt_edits(word, words[i]);

		if (edits < best && edits < strlen(words[i])) {
			best = edits;
			found = words[i];
		}
	}
	return found;
}
