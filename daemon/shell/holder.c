/* SPDX-License-Identifier: Apache-2.0 */
/* Which process holds a port; see holder.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "holder.h"

#define LIMIT_MS 500
#define LISTENS  0x0au

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- its inode ---- */

/* Words of 8 digits, each four bytes of the address as a number of the host. */
static bool read_addr(const char *text, unsigned words, uint8_t out[16])
{
	char word[9] = {0};
	uint32_t value;
	unsigned i;

	for (i = 0; i < words; i++) {
		if (strlen(text) < 8)
			return false;
		memcpy(word, text, 8);
		value = (uint32_t)strtoul(word, NULL, 16);
		memcpy(out + 4 * i, &value, 4);
		text += 8;
	}
	return true;
}

/* All addresses, or the same: then both cannot have it. */
static bool collides(const uint8_t *a, const uint8_t *b, size_t n)
{
	static const uint8_t all[16];

	return !memcmp(a, b, n) || !memcmp(a, all, n) || !memcmp(b, all, n);
}

/* The inode of the socket in this line, if it is what is in our way; else 0. */
static unsigned long inode_of(const char *line, const struct hc_endpoint *at, bool udp,
			      unsigned words)
{
	unsigned port, state;
	unsigned long inode;
	uint8_t addr[16];
	char text[33];

	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %lu",
		   text, &port, &state, &inode) != 4)
		return 0;
	if (port != at->port || (!udp && state != LISTENS) || !read_addr(text, words, addr))
		return 0;
	return collides(addr, at->addr.bytes, 4 * words) ? inode : 0;
}

static unsigned long find_in(const char *path, const struct hc_endpoint *at, bool udp,
			     unsigned words)
{
	unsigned long inode = 0;
	char line[512];
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	while (!inode && fgets(line, sizeof(line), f))
		inode = inode_of(line, at, udp, words);
	fclose(f);
	return inode;
}

/* An IPv4 address is also taken by a socket of IPv6 for all addresses of both. */
static unsigned long find_inode(const struct hc_endpoint *at, bool udp)
{
	static const uint8_t none[16] = {0xff};
	struct hc_endpoint any = {.port = at->port};
	unsigned long inode = 0;

	if (at->addr.family == 4)
		inode = find_in(udp ? "/proc/net/udp" : "/proc/net/tcp", at, udp, 1);
	memcpy(any.addr.bytes, at->addr.family == 4 ? none : at->addr.bytes, 16);
	if (!inode)
		inode = find_in(udp ? "/proc/net/udp6" : "/proc/net/tcp6", &any, udp, 4);
	return inode;
}

/* ---- its process ---- */

static bool has_socket(const char *pid, const char *wanted)
{
	char path[300], target[64];
	struct dirent *e;
	bool found = false;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	d = opendir(path);
	if (!d)
		return false;
	while (!found && (e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		found = !strcmp(target, wanted);
	}
	closedir(d);
	return found;
}

static void name_process(const char *pid, char *out, size_t size)
{
	char path[300], name[32] = "?";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(name, sizeof(name), f))
			strcpy(name, "?");
		name[strcspn(name, "\n")] = '\0';
		fclose(f);
	}
	snprintf(out, size, "pid %.10s (%s)", pid, name);
}

void hc_holder_find(const struct hc_endpoint *at, bool udp, char *out, size_t size)
{
	unsigned long inode = find_inode(at, udp);
	uint64_t limit = now_ms() + LIMIT_MS;
	struct dirent *e;
	char wanted[40];
	DIR *d;

	out[0] = '\0';
	d = inode ? opendir("/proc") : NULL;
	if (!d)
		return;
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	while (!out[0] && now_ms() < limit && (e = readdir(d))) {
		if (e->d_name[strspn(e->d_name, "0123456789")] || !has_socket(e->d_name, wanted))
			continue;
		name_process(e->d_name, out, size);
	}
	closedir(d);
}
