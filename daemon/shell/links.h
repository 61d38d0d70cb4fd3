/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links between devices of this node, and where each fact about them is known from.
 *
 * Shared memory joins any two ranks and is always there. Then three sources, the later ones
 * complete or replace the earlier: pairs of accelerators below one PCI bridge, the PEER2PEER
 * edges of the topology file (a port at each end is a link, so an edge may be several parallel
 * ones), the [link A B] sections of two device numbers. Each of type, bandwidth, latency and
 * virtual channels has a source; what nobody says is not known, and no figure is made up for it.
 *
 * The one exception is shared memory: its bandwidth is what one channel of DDR4 memory gives,
 * said to be a default, and made right by [link any any].
 *
 * The links of one PCI device share the device's own way up; each is shown with what it would
 * have alone.
 */
#ifndef HC_LINKS_H
#define HC_LINKS_H

#include "devices.h"

#define HC_LINKS_MAX 8192u

struct hc_link_facts {
	struct hc_link_fact *facts; /* the one of shared memory is the first */
	uint32_t count;
	uint32_t left_out; /* found beyond HC_LINKS_MAX */
};

/* 0; 1 and one line in `why`; -ENOMEM. Reads files: not for the main loop while it serves. */
int hc_links_find(const struct hc_conf *conf, const struct hc_devices *devices,
		  struct hc_link_facts *links, char *why, size_t size);
void hc_links_fini(struct hc_link_facts *links);
/* The one with type, ends and lane of `like`, or NULL. */
const struct hc_link_fact *hc_links_get(const struct hc_link_facts *links,
					const struct hc_link_fact *like);

/* ---- pcipath.c: the way of a device up to its root ---- */

#define HC_PCI_DEPTH 16u
struct hc_pci_path {
	uint32_t count;              /* 0: not known */
	char at[HC_PCI_DEPTH][13];   /* bridges from the root port down, the device last */
	uint32_t mbps[HC_PCI_DEPTH]; /* of the link above each, 0 = not known */
};
void hc_pci_path(const char *sysfs_root, const char *pci, struct hc_pci_path *path);
struct hc_pci_join {
	const char *bridge; /* the lowest that both are below */
	uint32_t hops;      /* PCI links from one to the other */
	uint32_t mbps;      /* of the narrowest of them; 0: not known of one of the devices */
};
/* False: no bridge is above both. */
bool hc_pci_join(const struct hc_pci_path *a, const struct hc_pci_path *b,
		 struct hc_pci_join *join);
/* "16.0 GT/s PCIe" and "16" as MB/s each way; 0: not readable. */
uint32_t hc_pci_mbps(const char *speed, const char *width);

#endif
