/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster key; see keyfile.h. What was read is wiped, also on the ways out that fail. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "keyfile.h"

#define DIGITS     (2 * HC_KEY_BYTES)
#define CREDENTIAL "cluster.key"
#define FORBIDDEN  0037u /* the group may read: root's file, the daemon's group */

void hc_keyfile_path(const char *key_file, bool is_set, char *path, size_t size)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");

	snprintf(path, size, "%s", key_file);
	if (is_set || !dir || dir[0] != '/')
		return;
	snprintf(path, size, "%s/" CREDENTIAL, dir);
	if (access(path, F_OK))
		snprintf(path, size, "%s", key_file);
}

static int refuse(char *why, size_t size, const char *path, const char *text)
{
	snprintf(why, size, "%s: %s", path, text);
	return HC_KEYFILE_REFUSED;
}

static int judge_owner(const char *path, const struct stat *st, char *why, size_t size)
{
	if (!S_ISREG(st->st_mode))
		return refuse(why, size, path, "is no plain file; wanted: a cluster key");
	if (st->st_mode & FORBIDDEN) {
		snprintf(why, size,
			 "%s: others than its owner may use the key (mode %04o); do: chmod 0400 %s",
			 path, (unsigned)st->st_mode & 07777u, path);
		return HC_KEYFILE_REFUSED;
	}
	if (st->st_uid && st->st_uid != geteuid()) {
		snprintf(why, size,
			 "%s: belongs to uid %u, who could change the key; wanted: root or uid %u",
			 path, (unsigned)st->st_uid, (unsigned)geteuid());
		return HC_KEYFILE_REFUSED;
	}
	return 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int take(const char *path, const char *text, size_t n, uint8_t *key, char *why, size_t size)
{
	size_t i;

	if (n == 5 && !memcmp(text, "none\n", 5))
		return HC_KEYFILE_ABSENT;
	if (n == 4 && !memcmp(text, "none", 4)) /* what SetCredential= writes */
		return HC_KEYFILE_ABSENT;
	for (i = 0; i < n && i < DIGITS && digit(text[i]) >= 0; i++)
		key[i / 2] = (uint8_t)(key[i / 2] << 4 | digit(text[i]));
	if (i == DIGITS && n == DIGITS + 1 && text[DIGITS] == '\n')
		return 0;
	explicit_bzero(key, HC_KEY_BYTES);
	snprintf(why, size,
		 "%s:1:%zu: is no cluster key; wanted: %u hexadecimal digits and a newline, as "
		 "hcommctl key generate writes them",
		 path, i + 1, DIGITS);
	return HC_KEYFILE_REFUSED;
}

static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t got = 0;
	ssize_t n;

	do {
		n = read(fd, text + got, size - got);
		if (n > 0)
			got += (size_t)n;
	} while ((n > 0 && got < size) || (n < 0 && errno == EINTR));
	return n < 0 ? -1 : (ssize_t)got;
}

int hc_keyfile_read(const char *path, uint8_t key[HC_KEY_BYTES], char *why, size_t size)
{
	char text[DIGITS + 2];
	struct stat st;
	ssize_t n;
	int r, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	memset(key, 0, HC_KEY_BYTES);
	if (fd < 0)
		return errno == ENOENT ? HC_KEYFILE_ABSENT
				       : refuse(why, size, path, strerror(errno));
	if (fstat(fd, &st)) {
		r = refuse(why, size, path, strerror(errno));
	} else {
		r = judge_owner(path, &st, why, size);
	}
	if (!r) {
		n = read_all(fd, text, sizeof(text));
		r = n < 0 ? refuse(why, size, path, strerror(errno))
			  : take(path, text, (size_t)n, key, why, size);
		explicit_bzero(text, sizeof(text));
	}
	close(fd);
	return r;
}
