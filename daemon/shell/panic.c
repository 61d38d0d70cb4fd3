/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end after a broken promise: say where, and stop at once.
 *
 * State that contradicts itself must not be acted upon or stored. The service manager starts the
 * daemon again and it takes its domains back from what was stored before; clients keep running
 * meanwhile. Nothing here allocates or takes a lock, since either may be what is broken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core.h"

_Noreturn void hc_panic(const char *file, int line, const char *what)
{
	char text[512];
	int n;

	n = snprintf(text, sizeof(text), "hcommd: panic: %s:%d: %s; please report this line\n",
		     file, line, what);
	if (n > 0 && write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(134); /* not even a place to complain to */
	abort();
}
