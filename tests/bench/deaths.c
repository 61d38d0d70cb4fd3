/* SPDX-License-Identifier: Apache-2.0 */
/* See deaths.h. */
#include "deaths.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "harness.h"

enum { WAIT_MS = 600000 };

bool deaths_sleeps(void *child)
{
	const struct hc_child *c = child;
	char path[64], *text, *at;
	bool asleep;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)c->pid);
	text = hc_read_file(path);
	at = text ? strrchr(text, ')') : NULL;
	asleep = at && !strncmp(at, ") S", 3);
	free(text);
	return asleep;
}

size_t deaths_pages(pid_t pid)
{
	unsigned long resident = 0;
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	text = hc_read_file(path);
	if (!text || sscanf(text, "%*u %lu", &resident) != 1)
		bench_die("%s cannot be read", path);
	free(text);
	return resident;
}

int deaths_listener(void *arg, int in, int out)
{
	uint64_t now;
	char byte;

	(void)arg;
	for (;;) {
		hc_hear(in, &byte, 1, WAIT_MS);
		now = hc_now_ns();
		hc_tell(out, &now, sizeof(now));
	}
}

int deaths_victim(void *arg, int in, int out)
{
	const size_t want = *(const size_t *)arg, have = deaths_pages(getpid());
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), more = want > have ? want - have : 1;
	volatile char *memory = malloc(more * page);
	char byte = 1;
	size_t i;

	for (i = 0; memory && i < more; i++)
		memory[i * page] = 1;
	hc_tell(out, &byte, 1);
	hc_hear(in, &byte, 1, WAIT_MS);
	return 0;
}
