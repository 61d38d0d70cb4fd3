/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl key: make the key of a cluster.
 *
 * 32 bytes of the kernel's random source as 64 hexadecimal digits and a newline, readable by the
 * owner alone. The file appears whole or not at all: it is written beside, and linked to its name,
 * which fails when there is one already. A key that is lost cannot be had again and all nodes need
 * the same, so an older one is replaced only with --force.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ctl.h"

#define KEY_FILE  "/etc/hcomm/cluster.key"
#define KEY_BYTES 32u
#define TEXT      (2 * KEY_BYTES + 1)

static bool draw(char text[TEXT + 1])
{
	uint8_t key[KEY_BYTES];
	unsigned i;
	ssize_t n;

	do
		n = getrandom(key, sizeof(key), 0);
	while (n < 0 && errno == EINTR);
	for (i = 0; i < KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
	explicit_bzero(key, sizeof(key));
	text[TEXT - 1] = '\n';
	text[TEXT] = '\0';
	return n == (ssize_t)KEY_BYTES;
}

static int failed(const char *file, const char *doing)
{
	ctl_say("%s: cannot %s: %s", file, doing, strerror(errno));
	return errno == EACCES || errno == EPERM ? CTL_DENIED : CTL_DEGRADED;
}

/* The new file under a name of its own; mkostemp gives it mode 0600. */
static int write_beside(char *temp, const char *file)
{
	char text[TEXT + 1];
	int r = CTL_OK, fd = mkostemp(temp, O_CLOEXEC);

	if (fd < 0)
		return failed(file, "make the file");
	if (!draw(text) || write(fd, text, TEXT) != TEXT || fchmod(fd, 0400) || fsync(fd))
		r = failed(file, "write the key");
	explicit_bzero(text, sizeof(text));
	close(fd);
	if (r)
		unlink(temp);
	return r;
}

static int put_in_place(const char *temp, const char *file, bool force)
{
	int r = CTL_OK;

	if (force) {
		if (!rename(temp, file))
			return CTL_OK;
		r = failed(file, "replace the file");
	} else if (link(temp, file)) {
		if (errno != EEXIST) {
			r = failed(file, "make the file");
		} else {
			ctl_say("%s: is there already, and other nodes may use that key; --force "
				"replaces it",
				file);
			r = CTL_DEGRADED;
		}
	}
	unlink(temp);
	return r;
}

/* So that a power cut does not take the name away again. */
static void sync_dir(const char *file)
{
	char dir[1100];
	char *slash;
	int fd;

	snprintf(dir, sizeof(dir), "./%s", file);
	slash = strrchr(dir, '/');
	slash[1] = '\0';
	fd = open(file[0] == '/' ? dir + 2 : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int ctl_key(struct ctl *c, int argc, char **argv)
{
	const char *file = argc > 2 ? argv[2] : KEY_FILE;
	char temp[1100];
	int r;

	if (argc > 3)
		return ctl_usage("key generate takes one FILE, '%s' is one too many", argv[3]);
	if (!file[0] || strlen(file) > 1023)
		return ctl_usage("FILE has %zu bytes; wanted: 1..1023", strlen(file));
	snprintf(temp, sizeof(temp), "%s.XXXXXX", file);
	r = write_beside(temp, file);
	if (!r)
		r = put_in_place(temp, file, ctl_opt(c, "force") != NULL);
	if (r)
		return r;
	sync_dir(file);
	printf("%s: a new cluster key\n"
	       "Next: copy this file to all nodes of the cluster, mode 0400, over a channel that "
	       "you trust;\n"
	       "then restart hcommd on each. Whoever has it can speak as any node.\n",
	       file);
	return CTL_OK;
}
