/* SPDX-License-Identifier: Apache-2.0 */
/* Devices; see device.h. */
#include "device.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

struct hc_device *hc_device_get(struct hc_core *c, uint32_t index)
{
	uint32_t i;

	/* mostly they are numbered from 0 on, and told in that order */
	if (index < c->ndevices && c->devices[index].fact.index == index)
		return &c->devices[index];
	for (i = 0; i < c->ndevices; i++)
		if (c->devices[i].fact.index == index)
			return &c->devices[i];
	return NULL;
}

void hc_device_fact(struct hc_core *c, const struct hc_device_fact *fact)
{
	struct hc_device *d = hc_device_get(c, fact->index);

	if (!d) {
		if (c->ndevices == c->lim.devices || fact->index > HC_DEVICE_LAST) {
			hc_emit_log(
				c, HC_LOG_WARN, 0, 0, HC_NONE,
				fact->index > HC_DEVICE_LAST
					? "a device is left out: its number is above 65534"
					: "a device is left out: the limit of devices is reached");
			return;
		}
		d = &c->devices[c->ndevices++];
		d->holder = HC_NONE;
		d->users = 0;
	}
	d->fact = *fact;
}

/* ---- may it be used ---- */

/* "4, 7" or "0 to 7"; "none" */
static void list_devices(const struct hc_core *c, char *text, size_t bytes)
{
	size_t at = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < c->ndevices && at + 24 < bytes; i++)
		if (c->devices[i].fact.present)
			at += (size_t)snprintf(text + at, bytes - at, "%s%u", at ? ", " : "",
					       c->devices[i].fact.index);
	if (i < c->ndevices)
		snprintf(text + at, bytes - at, ", ...");
	if (!at)
		snprintf(text, bytes, "none");
}

static int not_here(struct hc_core *c, uint32_t index, uint32_t rank, char *text, size_t bytes)
{
	char list[256];

	list_devices(c, list, sizeof(list));
	if (!c->ndevices)
		snprintf(text, bytes,
			 "rank %u wants device %u, but this node has no device: describe them in "
			 "[device N] sections or a topology_file",
			 rank, index);
	else
		snprintf(text, bytes, "rank %u wants device %u; devices here are %s", rank, index,
			 list);
	return HC_E_DEVICE_OFFLINE;
}

static int address_differs(const struct hc_device *d, uint32_t rank, const struct hc_addr *addr,
			   char *text, size_t bytes)
{
	char said[64], known[64];

	if (!addr || !addr->family || !d->fact.addr.family)
		return 0;
	if (addr->family == d->fact.addr.family &&
	    !memcmp(addr->bytes, d->fact.addr.bytes, sizeof(addr->bytes)))
		return 0;
	hc_addr_text(addr, said);
	hc_addr_text(&d->fact.addr, known);
	snprintf(text, bytes, "address-not-here: rank %u: table %s, this device (%u) has %s", rank,
		 said, d->fact.index, known);
	return HC_E_INVALID;
}

static bool others_use(const struct hc_device *d, uint32_t process)
{
	return d->holder != HC_NONE && (d->holder != process || d->users - d->idle - d->held > 0);
}

int hc_device_check(struct hc_core *c, uint32_t index, uint32_t rank, uint32_t process, bool shared,
		    const struct hc_addr *addr, char *text, size_t bytes)
{
	const struct hc_device *d = hc_device_get(c, index);

	if (!d || !d->fact.present)
		return not_here(c, index, rank, text, bytes);
	if (!strcmp(d->fact.health, "offline")) {
		snprintf(text, bytes, "device %u of rank %u is offline", index, rank);
		return HC_E_DEVICE_OFFLINE;
	}
	if (process != HC_NONE && others_use(d, process) && !(shared && !d->alone)) {
		snprintf(text, bytes,
			 "device %u of rank %u is held by process %u%s; to share it, both must say "
			 "so",
			 index, rank, c->processes[d->holder].pid,
			 d->holder == process ? ", which is this one, and shared by others" : "");
		return HC_E_BUSY;
	}
	return address_differs(d, rank, addr, text, bytes);
}

uint32_t hc_device_any(struct hc_core *c, uint32_t process)
{
	uint32_t i;

	for (i = 0; i < c->ndevices; i++)
		if (c->devices[i].fact.present && strcmp(c->devices[i].fact.health, "offline") &&
		    (!c->devices[i].users || c->devices[i].holder == process))
			return c->devices[i].fact.index;
	return HC_NONE;
}

void hc_device_take(struct hc_core *c, uint32_t index, uint32_t process, bool shared)
{
	struct hc_device *d = hc_device_get(c, index);

	hc_assert(d);
	if (d->holder == HC_NONE)
		d->holder = process;
	d->users++;
	d->idle += process == HC_NONE;
	d->held += process != HC_NONE && process == d->holder;
	d->alone += !shared;
}

/* The holder of a shared device has gone: another of its processes is named now. */
static void pass_on(struct hc_core *c, struct hc_device *d)
{
	const struct hc_seat *s;
	uint32_t n, i;

	d->holder = HC_NONE;
	for (n = 0; n < c->part_pool.fresh; n++)
		for (i = 0; i < c->parts[n].nseats; i++) {
			s = &c->seats[c->parts[n].seats + i];
			if (!(s->flags & SEAT_DEVICE) || s->device != d->fact.index ||
			    s->process == HC_NONE)
				continue;
			if (d->holder == HC_NONE)
				d->holder = s->process;
			d->held += s->process == d->holder;
		}
}

void hc_device_release(struct hc_core *c, uint32_t index, uint32_t process, bool shared)
{
	struct hc_device *d = hc_device_get(c, index);

	hc_assert(d && d->users);
	d->users--;
	d->alone -= !shared;
	d->idle -= process == HC_NONE;
	if (process == HC_NONE || process != d->holder || --d->held)
		return;
	if (d->users > d->idle)
		pass_on(c, d);
	else
		d->holder = HC_NONE;
}
