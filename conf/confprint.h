/* SPDX-License-Identifier: Apache-2.0 */
/* What is written from the rows of options.tbl.h: conf/hcommd.conf and doc/hcommd.conf.5. */
#ifndef HC_CONFPRINT_H
#define HC_CONFPRINT_H

#include <stdio.h>

/* The whole sample file, every option commented out at its default. 0, or -errno of the stream. */
int hc_conf_write_sample(FILE *f);

/* The whole manual page hcommd.conf(5) in mdoc. 0, or -errno of the stream. */
int hc_conf_write_mdoc(FILE *f);

#endif
