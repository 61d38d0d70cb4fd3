/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives at an interface, with the kernel's times: when was the last datagram of somebody? */
#ifndef HC_BENCH_WIREWATCH_H
#define HC_BENCH_WIREWATCH_H

#include <stdint.h>

struct wirewatch;

/* In the namespace that the caller is in. */
struct wirewatch *wirewatch_open(const char *link);
/* Forgets what has come so far. */
void wirewatch_clear(struct wirewatch *w);
/* Of those since: when the last one of `from` (host order) to UDP port `port` came; 0: none did. */
uint64_t wirewatch_last(struct wirewatch *w, uint32_t from, uint16_t port);
/* The same of the first one of that type (HC_MSG_*), in or out; `from` 0: of anybody. */
uint64_t wirewatch_first(struct wirewatch *w, uint32_t from, uint16_t port, uint8_t type);
void wirewatch_close(struct wirewatch *w);

#endif
