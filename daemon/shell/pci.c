/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over PCI; see devices.h.
 *
 * What counts as an accelerator is a table: Huawei's Ascend devices by number, and processing
 * accelerators (class 12h) and 3D controllers (class 0302h) of any vendor. Whatever a file holds
 * that cannot be read as it should means "not known", never a wrong number.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devices.h"

#define VENDOR_HUAWEI     0x19e5u
#define CLASS_ACCELERATOR 0x1200u
#define CLASS_3D          0x0302u

static const uint16_t ascend[] = {0xd100, 0xd500, 0xd801, 0xd802, 0xd803};

bool hc_pci_line(const char *root, const char *pci, const char *file, char *out, size_t size)
{
	char path[1400];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/%s", root, pci, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(out, (int)size, f) != NULL;
	fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

static bool read_hex(const char *root, const char *pci, const char *file, uint32_t *out)
{
	char text[32], *end;
	unsigned long v;

	if (!hc_pci_line(root, pci, file, text, sizeof(text)))
		return false;
	errno = 0;
	v = strtoul(text, &end, 16);
	if (errno || end == text || *end || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static int32_t read_numa(const char *root, const char *pci)
{
	char text[32], *end;
	long v;

	if (!hc_pci_line(root, pci, "numa_node", text, sizeof(text)))
		return -1;
	v = strtol(text, &end, 10);
	return end == text || *end || v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
}

static bool is_pci_address(const char *name)
{
	unsigned domain, bus, device, function;
	int used = 0;

	return sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) == 4 &&
	       used == 12 && !name[12];
}

static const char *kind_of(uint32_t vendor, uint32_t device, uint32_t class)
{
	unsigned i;

	for (i = 0; vendor == VENDOR_HUAWEI && i < sizeof(ascend) / sizeof(ascend[0]); i++)
		if (device == ascend[i])
			return "npu";
	if (class >> 8 == CLASS_ACCELERATOR)
		return "npu";
	if (class >> 8 == CLASS_3D)
		return "gpu";
	return NULL;
}

static bool look_at(const char *root, const char *pci, struct hc_device_fact *f)
{
	uint32_t vendor, device, class;
	const char *kind;

	if (!read_hex(root, pci, "vendor", &vendor) || !read_hex(root, pci, "device", &device) ||
	    !read_hex(root, pci, "class", &class))
		return false;
	kind = kind_of(vendor, device, class);
	if (!kind)
		return false;
	memset(f, 0, sizeof(*f));
	snprintf(f->kind, sizeof(f->kind), "%s", kind);
	snprintf(f->model, sizeof(f->model), "%04x:%04x", vendor & 0xffffu, device & 0xffffu);
	snprintf(f->pci, sizeof(f->pci), "%.12s", pci);
	snprintf(f->health, sizeof(f->health), "unknown"); /* PCI alone does not tell */
	snprintf(f->source, sizeof(f->source), "sysfs");
	f->numa = read_numa(root, pci);
	f->present = true;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct hc_device_fact *x = a, *y = b;

	return strcmp(x->pci, y->pci);
}

int hc_pci_walk(const char *sysfs_root, struct hc_device_fact *facts, uint32_t max)
{
	char path[1100];
	struct dirent *e;
	uint32_t n = 0, i;
	DIR *d;

	snprintf(path, sizeof(path), "%s/bus/pci/devices", sysfs_root);
	d = opendir(path);
	if (!d)
		return errno == ENOMEM ? -ENOMEM : 0;
	while (n < max && (e = readdir(d)))
		if (is_pci_address(e->d_name) && look_at(sysfs_root, e->d_name, &facts[n]))
			n++;
	closedir(d);
	qsort(facts, n, sizeof(*facts), by_address);
	for (i = 0; i < n; i++)
		facts[i].index = i;
	return (int)n;
}
