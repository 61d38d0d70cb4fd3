/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a PCI device hangs; see links.h.
 *
 * The entries of bus/pci/devices are links into the tree of devices, and the tree says who is
 * below whom: .../pci0000:3a/0000:3a:00.0/0000:3b:00.0 is a device below a root port.
 *
 * Bandwidth is that of the PCI Express Base Specification, the same sum that Linux prints at boot
 * (PCIE_SPEED2MBS_ENC in drivers/pci/pci.h): transfers a second of a lane, times the share that
 * the encoding leaves (8 of 10 bits up to 5 GT/s, 128 of 130 from 8 to 32 GT/s, all at 64 GT/s,
 * where flits carry their check bytes), times lanes, one bit each. So 16 GT/s x16 is
 * 16000 * 128 / 130 * 16 / 8 = 31507 MB/s. Headers of packets are not taken off. It is the speed
 * at which the link runs now: one that was trained down shows what it really has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "links.h"

struct speed {
	uint32_t tenths; /* of a GT/s */
	uint32_t useful, sent;
};
static const struct speed speeds[] = {{25, 8, 10},     {50, 8, 10},     {80, 128, 130},
				      {160, 128, 130}, {320, 128, 130}, {640, 1, 1}};

uint32_t hc_pci_mbps(const char *speed, const char *width)
{
	unsigned whole, tenth = 0, lanes, i;
	char unit[8] = "", end;

	if (sscanf(speed, "%3u.%1u %4s", &whole, &tenth, unit) != 3 &&
	    sscanf(speed, "%3u %4s", &whole, unit) != 2)
		return 0;
	if (strcmp(unit, "GT/s") || sscanf(width, "%3u%c", &lanes, &end) != 1 || lanes > 32)
		return 0;
	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].tenths == whole * 10 + tenth)
			return (uint32_t)((uint64_t)speeds[i].tenths * 100 * speeds[i].useful *
					  lanes / (8ull * speeds[i].sent));
	return 0;
}

static uint32_t read_mbps(const char *root, const char *pci)
{
	char speed[64], width[16];

	if (!hc_pci_line(root, pci, "current_link_speed", speed, sizeof(speed)) ||
	    !hc_pci_line(root, pci, "current_link_width", width, sizeof(width)))
		return 0;
	return hc_pci_mbps(speed, width);
}

/* "0000:3a:00.0" */
static bool is_address(const char *s)
{
	return strlen(s) == 12 && strspn(s, "0123456789abcdef:.") == 12 && s[4] == ':' &&
	       s[7] == ':' && s[10] == '.';
}

static bool is_root(const char *s)
{
	return strlen(s) == 10 && !strncmp(s, "pci", 3) && s[7] == ':';
}

static bool take_part(struct hc_pci_path *p, const char *part, bool *below)
{
	if (is_root(part)) {
		*below = true;
		return true;
	}
	if (!*below)
		return true; /* what stands above the root says nothing */
	if (!is_address(part) || p->count == HC_PCI_DEPTH)
		return false;
	memcpy(p->at[p->count++], part, 13);
	return true;
}

void hc_pci_path(const char *sysfs_root, const char *pci, struct hc_pci_path *p)
{
	char path[1200], target[1200], *rest = target, *part;
	bool below = false;
	ssize_t n;
	uint32_t i;

	memset(p, 0, sizeof(*p));
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs_root, pci);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	while ((part = strsep(&rest, "/"))) {
		if (take_part(p, part, &below))
			continue;
		p->count = 0;
		return;
	}
	if (!p->count || strcmp(p->at[p->count - 1], pci))
		p->count = 0;
	for (i = 0; i < p->count; i++)
		p->mbps[i] = read_mbps(sysfs_root, p->at[i]);
}

/* Bridges that say nothing are passed over, the device itself is not. */
static uint32_t narrowest(const struct hc_pci_path *p, uint32_t from)
{
	uint32_t i, least = p->mbps[p->count - 1];

	for (i = from; i < p->count; i++)
		if (p->mbps[i] && p->mbps[i] < least)
			least = p->mbps[i];
	return least;
}

bool hc_pci_join(const struct hc_pci_path *a, const struct hc_pci_path *b, struct hc_pci_join *join)
{
	const uint32_t most = a->count < b->count ? a->count : b->count;
	uint32_t same = 0, x, y;

	while (same + 1 < most && !strcmp(a->at[same], b->at[same]))
		same++;
	if (!same)
		return false;
	x = narrowest(a, same);
	y = narrowest(b, same);
	*join = (struct hc_pci_join){.bridge = a->at[same - 1],
				     .hops = a->count + b->count - 2 * same,
				     .mbps = x < y ? x : y};
	return true;
}
