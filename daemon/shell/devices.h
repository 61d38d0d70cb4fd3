/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this node, and where each fact about them is known from.
 *
 * Three sources, the later ones complete or replace the earlier: the walk over PCI below
 * sysfs_root, the peers of the topology file, the [device N] sections. Discovered devices are
 * numbered by their PCI addresses; a section that gives a PCI address pins that device to its
 * number. Without any source there is no device, which is a state and no error.
 *
 * A topology that speaks of another number of devices than there are is refused, naming the file
 * and where it was set: a setting that nobody remembers is the usual reason.
 */
#ifndef HC_DEVICES_H
#define HC_DEVICES_H

#include "conffile.h"
#include "core.h"

#define HC_DEVICES_MAX 1024u

struct hc_topo;

struct hc_devices {
	struct hc_device_fact *facts; /* in order of index */
	uint32_t count;
	uint32_t simulated;
	struct hc_topo *topo; /* what topology_file holds, NULL: not set */
};

/* 0; 1 and one line in `why`; -ENOMEM. Reads files: not for the main loop while it serves. */
int hc_devices_find(const struct hc_conf *conf, struct hc_devices *devices, char *why, size_t size);
void hc_devices_fini(struct hc_devices *devices);
const struct hc_device_fact *hc_devices_get(const struct hc_devices *devices, uint32_t index);

/* The first line of a file of a PCI device, without its end. False: it is not to be had. */
bool hc_pci_line(const char *sysfs_root, const char *pci, const char *file, char *out, size_t size);

/* The walk alone: known accelerators below ROOT/bus/pci/devices in order of PCI address; the
 * fact's index counts them. A missing directory is an empty one. Count, or -ENOMEM. */
int hc_pci_walk(const char *sysfs_root, struct hc_device_fact *facts, uint32_t max);

#endif
