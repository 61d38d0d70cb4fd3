/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a damaged database aside; see dbaside.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "db.h"
#include "dbaside.h"

#define MARK ".damaged-"

/* Names carry their time, so that order of name is order of age. */
static int is_aside(const struct dirent *e)
{
	const char *mark = strstr(e->d_name, MARK);
	size_t n = strlen(e->d_name);

	return mark && !(n > 4 && !strcmp(e->d_name + n - 4, "-wal"));
}

static void forget_old(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[HC_DB_ASIDE_BYTES], old[HC_DB_ASIDE_BYTES + 300];
	struct dirent **list;
	int n, i;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	n = scandir(dir, &list, is_aside, alphasort);
	if (n < 0)
		return;
	for (i = 0; i < n; i++) {
		if (i < n - HC_DB_ASIDE_KEPT) {
			snprintf(old, sizeof(old), "%s/%s", dir, list[i]->d_name);
			unlink(old);
			strncat(old, "-wal", sizeof(old) - strlen(old) - 1);
			unlink(old);
		}
		free(list[i]);
	}
	free(list);
}

int hc_db_move_aside(const char *path, char *aside, size_t size)
{
	char stamp[32], from[HC_DB_ASIDE_BYTES + 8], to[HC_DB_ASIDE_BYTES + 8];
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	snprintf(aside, size, "%s" MARK "%s.%09ldZ", path, stamp, now.tv_nsec);
	if (rename(path, aside))
		return -errno;
	snprintf(from, sizeof(from), "%s-wal", path);
	snprintf(to, sizeof(to), "%s-wal", aside);
	if (rename(from, to) && errno != ENOENT)
		unlink(from); /* an old log must not be played into a new file */
	snprintf(from, sizeof(from), "%s-shm", path);
	unlink(from);
	forget_old(path);
	return 0;
}
