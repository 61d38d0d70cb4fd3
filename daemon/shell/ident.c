/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of the node and the one-instance lock; see ident.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core.h"
#include "ident.h"
#include "log.h"

#define PATH_BYTES 1100
#define ID_TEXT    32 /* hexadecimal digits */

static int refuse(char *why, size_t size, const char *path, const char *doing)
{
	snprintf(why, size, "%s: cannot %s: %s", path, doing, strerror(errno));
	return HC_IDENT_REFUSED;
}

int hc_ident_dir(const char *path, mode_t mode, const char *setting, char *why, size_t size)
{
	struct stat st;

	if (mkdir(path, mode) && errno != EEXIST) {
		snprintf(why, size, "%s: cannot make the directory: %s; it is the setting %s", path,
			 strerror(errno), setting);
		return HC_IDENT_REFUSED;
	}
	if (stat(path, &st))
		return refuse(why, size, path, "look at the directory");
	if (!S_ISDIR(st.st_mode)) {
		snprintf(why, size, "%s: is no directory; it is the setting %s", path, setting);
		return HC_IDENT_REFUSED;
	}
	return 0;
}

static void read_holder(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	out[strspn(out, "0123456789")] = '\0';
	if (!out[0])
		snprintf(out, size, "unknown");
}

int hc_ident_lock(const char *state_dir, int *fd, char *why, size_t size)
{
	char path[PATH_BYTES], pid[16];
	int lock, n;

	snprintf(path, sizeof(path), "%s/lock", state_dir);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0)
		return refuse(why, size, path, "open the lock");
	if (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK) {
			close(lock);
			return refuse(why, size, path, "lock");
		}
		read_holder(lock, pid, sizeof(pid));
		snprintf(why, size, "already running, pid %s (it holds %s)", pid, path);
		close(lock);
		return HC_IDENT_BUSY;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	/* written over: a file system may bring one that is cut to nothing to the disk at once */
	if (pwrite(lock, pid, (size_t)n, 0) != n || ftruncate(lock, n))
		hc_log(HC_LOG_WARN, "%s: cannot write the process number: %s", path,
		       strerror(errno));
	*fd = lock;
	return 0;
}

int hc_ident_boot(char boot[HC_BOOT_BYTES])
{
	const char *path = getenv("HCOMMD_BOOT_ID"); /* for tests: another file */
	int fd = open(path ? path : "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, boot, HC_BOOT_BYTES - 1);
	close(fd);
	if (n != HC_BOOT_BYTES - 1)
		return -EIO;
	boot[n] = '\0';
	return 0;
}

void hc_ident_random(void *out, size_t bytes)
{
	uint8_t *p = out;

	while (bytes) {
		ssize_t n = getrandom(p, bytes, 0);

		hc_assert(n > 0 || errno == EINTR);
		if (n > 0) {
			p += n;
			bytes -= (size_t)n;
		}
	}
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool id_from_text(const char *text, size_t len, uint8_t id[16])
{
	unsigned any = 0;
	size_t i;

	if (len != ID_TEXT && !(len == ID_TEXT + 1 && text[ID_TEXT] == '\n'))
		return false;
	for (i = 0; i < 16; i++) {
		int hi = nibble(text[2 * i]), lo = nibble(text[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		id[i] = (uint8_t)(hi << 4 | lo);
		any |= id[i];
	}
	return any != 0;
}

/* Written beside and renamed over: a reader or a crash sees the old file or the new one, whole. */
static int write_id(const char *path, const uint8_t id[16], char *why, size_t size)
{
	char temp[PATH_BYTES + 8], text[ID_TEXT + 2];
	int fd, i;
	bool ok;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	text[ID_TEXT] = '\n';
	snprintf(temp, sizeof(temp), "%s.new", path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return refuse(why, size, temp, "create");
	ok = write(fd, text, ID_TEXT + 1) == ID_TEXT + 1 && !fsync(fd);
	if (close(fd) || !ok || rename(temp, path)) {
		refuse(why, size, path, "write the node id");
		unlink(temp);
		return HC_IDENT_REFUSED;
	}
	return 0;
}

int hc_ident_node(const char *state_dir, const uint8_t *mirror, uint8_t id[16], bool *made,
		  char *why, size_t size)
{
	char path[PATH_BYTES], text[ID_TEXT + 4];
	ssize_t n = 0;
	int fd;

	*made = false;
	snprintf(path, sizeof(path), "%s/node-id", state_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return refuse(why, size, path, "open");
	if (fd >= 0) {
		n = read(fd, text, sizeof(text));
		close(fd);
		if (n >= 0 && id_from_text(text, (size_t)n, id))
			return 0;
		hc_log(HC_LOG_ERROR, "%s: is damaged; wanted: %d hexadecimal digits; %s", path,
		       ID_TEXT, mirror ? "the copy in the database is used" : "a new id is made");
	}
	if (mirror) {
		memcpy(id, mirror, 16);
	} else {
		hc_ident_random(id, 16);
		*made = true;
	}
	return write_id(path, id, why, size);
}
