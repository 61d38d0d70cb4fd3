/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain of two ranks that is the command line's own: its devices and its wishes.
 *
 * A device belongs to one process, so without --devices two are taken that nobody uses; on a node
 * whose devices all work for a job there are none, and the message says so instead of taking
 * something from the job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hcomm/views.h>
#include "channel.h"

#define DEVICE_MAX 65535

struct search {
	uint32_t devices[2], found, seen;
};

static int look(const void *row, void *context)
{
	const struct hcomm_view_device *d = row;
	struct search *s = context;

	s->seen++;
	if (s->found < 2 && !d->holder && !d->domains && strcmp(d->health, "offline"))
		s->devices[s->found++] = d->index;
	return 0;
}

static int find_free(struct ctl *c, uint32_t devices[2])
{
	struct search s;
	int r = HCOMM_E_STALE;

	for (int i = 0; i < 5 && r == HCOMM_E_STALE; i++) {
		s = (struct search){.found = 0};
		r = hcomm_query(c->session, HCOMM_VIEW_DEVICE, NULL, look, &s);
	}
	if (r)
		return ctl_fail(r, "device");
	if (s.found == 2) {
		memcpy(devices, s.devices, sizeof(s.devices));
		return CTL_OK;
	}
	if (s.seen < 2) {
		ctl_say("this node has %u device%s; wanted: two, one for each rank", s.seen,
			s.seen == 1 ? "" : "s");
		return CTL_DEGRADED;
	}
	ctl_say("of the %u devices of this node %s free; wanted: two. hcommctl device list shows "
		"who uses them",
		s.seen, s.found ? "one is" : "none is");
	return CTL_AGAIN;
}

/* "0,1" */
static bool read_two(const char *text, uint32_t devices[2])
{
	const char *comma = strchr(text, ',');
	char first[16];
	uint64_t a, b;

	if (!comma || comma - text >= (ptrdiff_t)sizeof(first)) {
		ctl_say("--devices is '%s'; wanted: two device numbers, such as 0,1", text);
		return false;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(comma - text), text);
	if (!ctl_number("first of --devices", first, 0, DEVICE_MAX, &a) ||
	    !ctl_number("second of --devices", comma + 1, 0, DEVICE_MAX, &b))
		return false;
	if (a == b) {
		ctl_say("--devices is '%s'; wanted: two different ones", text);
		return false;
	}
	devices[0] = (uint32_t)a;
	devices[1] = (uint32_t)b;
	return true;
}

int ctl_pair_devices(struct ctl *c, uint32_t devices[2])
{
	const char *text = ctl_opt(c, "devices");
	int status;

	if (text && !read_two(text, devices))
		return CTL_USAGE;
	status = ctl_open(c);
	return status || text ? status : find_free(c, devices);
}

bool ctl_opt_number(const struct ctl *c, const char *name, uint32_t lo, uint32_t hi,
		    uint32_t otherwise, uint32_t *out)
{
	const char *text = ctl_opt(c, name);
	uint64_t value = otherwise;
	char what[32];

	snprintf(what, sizeof(what), "--%s", name);
	if (text && !ctl_number(what, text, lo, hi, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

bool ctl_pair_config(const struct ctl *c, struct hcomm_config *config)
{
	config->name = ctl_opt(c, "name");
	return ctl_opt_number(c, "class", 0, 7, 0, &config->priority) &&
	       ctl_opt_number(c, "weight", 1, 100, 1, &config->weight);
}
