/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's socket without the library, and the daemon seen from outside.
 *
 * For tests that say what the library never would: wrong lengths, unknown messages, half packets.
 * Nothing here hides an error of the socket from the test; a read has a deadline.
 */
#ifndef HC_RAW_H
#define HC_RAW_H

#include "frame.h"
#include "harness.h"

/* A connected socket, or the test fails. */
int hc_raw_connect(const char *path);
/* Connected and greeted; the daemon's number in the arena is answered, and the arena closed. */
int hc_raw_session(const char *path);
/* The same, but the number is not answered. */
int hc_raw_session_unproved(const char *path);
/* One packet; false when the daemon has closed. */
bool hc_raw_send(int fd, const void *bytes, size_t n);
bool hc_raw_send_fd(int fd, const void *bytes, size_t n, int pass);
/* Say that the next packet has descriptors, as behind hello it must be. */
bool hc_raw_carry(int fd);
/* A frame in `buf`. Returns its bytes. */
size_t hc_raw_frame(uint8_t *buf, size_t cap, const struct hc_desc *d, uint32_t id,
		    const void *msg);
/* One packet in `buf` of HC_PACKET_MAX, and its first message; more may stand behind it. False: the
 * daemon closed. Fails at the deadline. */
bool hc_raw_recv(int fd, uint8_t *buf, struct hc_frame *f);
/* Send `msg`, and take the next message that answers `id`. */
bool hc_raw_ask(int fd, const struct hc_desc *d, uint32_t id, const void *msg, uint8_t *buf,
		struct hc_frame *f);
/* The same, with descriptor `pass` (-1: none) behind the message. */
bool hc_raw_ask_fd(int fd, const struct hc_desc *d, uint32_t id, const void *msg, int pass,
		   uint8_t *buf, struct hc_frame *f);
/* From now on descriptors that come are kept there; NULL: they are closed, as they are at first. */
struct hc_raw_kept {
	int fd[32];
	unsigned count;
};
void hc_raw_keep(struct hc_raw_kept *kept);
/* The daemon closes this connection. */
void hc_raw_want_closed(int fd);
/* It answers a ping with this connection. */
void hc_raw_want_alive(int fd);

/* Run the node's daemon in the foreground until it ends by itself (a refused start). */
int hc_raw_daemon(struct hc_run *r, const struct hc_node *n, unsigned deadline_ms);

/* Entries of /proc/PID/fd; a line of /proc/PID/status in KiB ("VmRSS"). */
unsigned hc_proc_fds(pid_t pid);
unsigned long hc_proc_kib(pid_t pid, const char *line);
/* Processor time that it has used, all its threads. */
uint64_t hc_proc_cpu_ms(pid_t pid);
/* How often `text` stands in the node's log. */
unsigned hc_log_count(const struct hc_node *n, const char *text);
/* KiB that a daemon may grow: `plain`, or far more where a sanitizer keeps freed memory. */
unsigned long hc_growth_kib(unsigned long plain);

#endif
