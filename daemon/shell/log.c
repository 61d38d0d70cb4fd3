/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log records; see log.h.
 *
 * The journal gets fields beside the text, so that `journalctl HCOMM_DOMAIN=...` finds all that
 * was said of one domain. The MESSAGE_ID of an event is a fixed prefix and the event's code: it
 * stays the same for ever and can be looked up without a table.
 *
 * A line on standard error begins with the wall clock in UTC (RFC 3339). It is shown to people
 * and compared with nothing.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include "log.h"
#include "verdict.h"

#define TEXT_BYTES 2048
#define SECOND_NS  1000000000u
#define CODE_KINDS 0x10000u /* kinds below are codes of events, above addresses of formats */

static struct {
	pthread_mutex_t lock;
	struct hc_log_limit limit;
	enum hc_level level;
	uint32_t rate;
	int fd;
	bool journal;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = HC_LOG_INFO, .rate = 10, .fd = 2};

static const char *level_word(enum hc_level level)
{
	switch (level) {
	case HC_LOG_ERROR: return "error";
	case HC_LOG_WARN: return "warn";
	case HC_LOG_INFO: return "info";
	case HC_LOG_DEBUG: return "debug";
	}
	return "?";
}

static int priority(enum hc_level level)
{
	switch (level) {
	case HC_LOG_ERROR: return LOG_ERR;
	case HC_LOG_WARN: return LOG_WARNING;
	case HC_LOG_INFO: return LOG_INFO;
	case HC_LOG_DEBUG: return LOG_DEBUG;
	}
	return LOG_INFO;
}

/* ---- limit ---- */

/* A full table shares its places: kinds that meet there are judged together. */
static struct hc_limit_kind *limit_place(struct hc_log_limit *limit, uint64_t kind)
{
	uint32_t at = (uint32_t)((kind * 0x9e3779b97f4a7c15u) >> 56) % HC_LIMIT_KINDS;
	uint32_t i;

	for (i = 0; i < 16; i++) {
		struct hc_limit_kind *k = &limit->kinds[(at + i) % HC_LIMIT_KINDS];

		if (k->kind == kind)
			return k;
		if (!k->kind) {
			k->kind = kind;
			return k;
		}
	}
	return &limit->kinds[at];
}

bool hc_log_limit_pass(struct hc_log_limit *limit, uint64_t kind, uint32_t rate, uint64_t now_ns,
		       uint32_t *held)
{
	struct hc_limit_kind *k = limit_place(limit, kind ? kind : 1);
	uint64_t second = now_ns / SECOND_NS + 1; /* never 0, so a new kind begins a window */

	*held = 0;
	if (k->second != second) {
		k->second = second;
		k->passed = 0;
	}
	if (k->passed >= rate) {
		k->held++;
		return false;
	}
	k->passed++;
	*held = k->held;
	k->held = 0;
	return true;
}

/* ---- where lines go ---- */

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

void hc_log_open(enum hc_log_target target, enum hc_level level, uint32_t rate)
{
	pthread_mutex_lock(&the.lock);
	switch (target) {
	case HC_LOG_AUTO: the.journal = stderr_is_journal(); break;
	case HC_LOG_STDERR: the.journal = false; break;
	case HC_LOG_JOURNAL: the.journal = true; break;
	}
	the.level = level;
	the.rate = rate;
	pthread_mutex_unlock(&the.lock);
}

void hc_log_to(int fd)
{
	pthread_mutex_lock(&the.lock);
	the.fd = fd;
	the.journal = false;
	pthread_mutex_unlock(&the.lock);
}

void hc_log_set(enum hc_level level, uint32_t rate)
{
	pthread_mutex_lock(&the.lock);
	the.level = level;
	the.rate = rate;
	pthread_mutex_unlock(&the.lock);
}

enum hc_level hc_log_level(void)
{
	enum hc_level level;

	pthread_mutex_lock(&the.lock);
	level = the.level;
	pthread_mutex_unlock(&the.lock);
	return level;
}

static void to_stderr(enum hc_level level, const char *text)
{
	char line[TEXT_BYTES + 128];
	struct timespec now;
	struct tm tm;
	size_t n;
	int r;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	r = snprintf(line + n, sizeof(line) - n, ".%03ldZ hcommd[%d] %s: %s\n",
		     now.tv_nsec / 1000000, (int)getpid(), level_word(level), text);
	if (r < 0)
		return;
	n = strlen(line);
	if (write(the.fd, line, n) < 0)
		return; /* a full or closed standard error stops nobody */
}

static void to_journal(enum hc_level level, const struct hc_log_about *about, const char *text)
{
	if (!about || !about->code) {
		sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", priority(level),
				"SYSLOG_IDENTIFIER=hcommd", NULL);
		return;
	}
	sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", priority(level),
			"SYSLOG_IDENTIFIER=hcommd", "HCOMM_DOMAIN=%016llx",
			(unsigned long long)about->domain, "HCOMM_RANK=%lld",
			about->rank == HC_NONE ? -1ll : (long long)about->rank, "HCOMM_EVENT=%s",
			hc_word_event_code(about->code),
			"MESSAGE_ID=8f6c2d1ab0b44c3d9e5a7f1c43d0%04x", about->code, NULL);
}

static void write_record(enum hc_level level, const struct hc_log_about *about, const char *text)
{
	if (the.journal)
		to_journal(level, about, text);
	else
		to_stderr(level, text);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void record(enum hc_level level, uint64_t kind, const struct hc_log_about *about,
		   const char *raw, size_t len)
{
	char text[TEXT_BYTES];
	uint32_t held;
	size_t n;

	n = hc_escape(text, sizeof(text) - 64, raw, len);
	pthread_mutex_lock(&the.lock);
	if (level <= the.level && hc_log_limit_pass(&the.limit, kind, the.rate, now_ns(), &held)) {
		if (held)
			snprintf(text + n, sizeof(text) - n, " (%u more like this were held back)",
				 held);
		write_record(level, about, text);
	}
	pthread_mutex_unlock(&the.lock);
}

void hc_log(enum hc_level level, const char *fmt, ...)
{
	char raw[TEXT_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(raw, sizeof(raw), fmt, args);
	va_end(args);
	if (n < 0)
		return;
	record(level, (uint64_t)(uintptr_t)fmt + CODE_KINDS, NULL, raw, strlen(raw));
}

void hc_log_event(enum hc_level level, const struct hc_log_about *about, struct hc_str text)
{
	record(level, about->code ? about->code : 0x8000u + (uint64_t)level, about, text.p,
	       text.len);
}

void hc_log_tick(void)
{
	uint64_t second = now_ns() / SECOND_NS + 1;
	uint32_t i, held = 0;
	char text[96];

	pthread_mutex_lock(&the.lock);
	for (i = 0; i < HC_LIMIT_KINDS; i++) {
		struct hc_limit_kind *k = &the.limit.kinds[i];

		if (k->held && k->second + 1 < second) {
			held += k->held;
			k->held = 0;
		}
	}
	if (held) {
		snprintf(text, sizeof(text), "%u log records were held back (log_rate %u a second)",
			 held, the.rate);
		write_record(HC_LOG_WARN, NULL, text);
	}
	pthread_mutex_unlock(&the.lock);
}
