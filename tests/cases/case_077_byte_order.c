/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 77: byte order and padding.
 *
 * Lengths in host order hung the other kind of machine, and headers written as structs differed
 * between compilers and carried bytes of the stack. Here fixed bytes go over the real socket, typed
 * from the protocol document and not made by the codec, and the answers are compared byte by
 * byte. Nothing of the sender's memory is in them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

static struct hc_node node;
static uint8_t got[HC_PACKET_MAX];

/* length, version, type, id, status; then min 1, max 1, fence, flags, build "raw", job "" */
static const char hello[] = "00000020"
			    "0001"
			    "0001"
			    "01020304"
			    "00000000"
			    "0001"
			    "0001"
			    "00"
			    "00000000"
			    "0003"
			    "726177"
			    "0000";
static const char ping[] = "00000018"
			   "0001"
			   "0005"
			   "0a0b0c0d"
			   "00000000"
			   "1122334455667788";
static const char pong[] = "0000001a"
			   "0001"
			   "0004"
			   "0a0b0c0d"
			   "00000000"
			   "1122334455667788"
			   "0000";

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (; hex[0]; hex += 2) {
		char two[3] = {hex[0], hex[1], '\0'};

		out[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static void send_hex(int fd, const char *hex)
{
	uint8_t bytes[512];

	ck_assert(hc_raw_send(fd, bytes, from_hex(hex, bytes)));
}

/* The next packet begins with these bytes; its length. */
static size_t want_hex(int fd, const char *hex)
{
	uint8_t want[512];
	size_t n = from_hex(hex, want);
	struct hc_frame f;

	ck_assert(hc_raw_recv(fd, got, &f));
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(got[i] == want[i], "byte %zu is %02x, wanted %02x", i, got[i],
			      want[i]);
	return f.head.length;
}

static int greet(void)
{
	int fd = hc_raw_connect(node.socket);

	send_hex(fd, hello);
	ck_assert(hc_raw_recv(fd, got, &(struct hc_frame){0}));
	return fd;
}

static void begin(void)
{
	hc_node_start(&node, 2, NULL);
}

static void end(void)
{
	hc_node_end(&node);
}

START_TEST(hello_and_its_answer)
{
	int fd = hc_raw_connect(node.socket);
	size_t length;

	send_hex(fd, hello);
	/* type 2, the id as sent, status 0, protocol 1 */
	ck_assert(hc_raw_recv(fd, got, &(struct hc_frame){0}));
	ck_assert_int_eq(memcmp(got + 4, "\0\1\0\2\1\2\3\4\0\0\0\0\0\1", 14), 0);
	length = (size_t)got[0] << 24 | (size_t)got[1] << 16 | (size_t)got[2] << 8 | got[3];
	/* fixed part up to the first name; a name is its length, high byte first, and its text */
	ck_assert_uint_gt(length, 57);
	ck_assert_uint_eq(got[55], 0);
	ck_assert_uint_lt(57u + got[56], length);
	/* the last eleven: uid, role, 120,000 ms of connect_timeout_s */
	ck_assert_int_eq(memcmp(got + length - 4, "\0\1\xd4\xc0", 4), 0);
	close(fd);
}
END_TEST

START_TEST(ping_comes_back_byte_by_byte)
{
	int fd = greet();

	for (int i = 0; i < 3; i++) {
		send_hex(fd, ping);
		ck_assert_uint_eq(want_hex(fd, pong), (sizeof(pong) - 1) / 2);
	}
	close(fd);
}
END_TEST

START_TEST(an_error_carries_a_negative_status_high_byte_first)
{
	int fd = greet();

	/* status of the domain 0x0102030405060708, which is not there */
	send_hex(fd, "0000001a"
		     "0001"
		     "0021"
		     "00000007"
		     "00000000"
		     "0102030405060708"
		     "0000");
	/* type 3, id 7, -11 NOT_FOUND, retry unknown */
	ck_assert(hc_raw_recv(fd, got, &(struct hc_frame){0}));
	ck_assert_int_eq(memcmp(got + 4, "\0\1\0\3\0\0\0\7\xff\xff\xff\xf5\xff\xff\xff\xff", 16),
			 0);
	/* numbers of 64 bits are read high byte first too */
	ck_assert_ptr_nonnull(memmem(got, 512, "0102030405060708", 16));
	close(fd);
}
END_TEST

/* Two frames in one packet, the second at an odd address. */
START_TEST(nothing_is_aligned)
{
	uint8_t bytes[1024];
	int fd = hc_raw_connect(node.socket);
	size_t n = from_hex("00000021"
			    "0001"
			    "0001"
			    "01020304"
			    "00000000"
			    "0001"
			    "0001"
			    "00"
			    "00000000"
			    "0004"
			    "72617721"
			    "0000",
			    bytes);
	struct hc_frame f;

	ck_assert_uint_eq(n % 2, 1);
	n += from_hex(ping, bytes + n);
	ck_assert(hc_raw_send(fd, bytes, n));
	ck_assert(hc_raw_recv(fd, got, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_hello_r);
	/* its answer stands behind that of hello, or in the next packet */
	n = from_hex(pong, bytes);
	if (!memmem(got + f.head.length, n, bytes, n))
		want_hex(fd, pong);
	close(fd);
}
END_TEST

/* The same question gives the same bytes: no remains of other answers in between. */
START_TEST(answers_hold_no_remains_of_others)
{
	static uint8_t first[HC_PACKET_MAX];
	/* view 5 (devices), cursor, snapshot, id, name, since, limit */
	static const char query[] = "00000034"
				    "0001"
				    "0032"
				    "00000009"
				    "00000000"
				    "0005"
				    "0000000000000000"
				    "0000000000000000"
				    "0000000000000000"
				    "0000"
				    "00000000"
				    "00000000";
	int fd = greet();
	struct hc_frame f;
	size_t length;

	send_hex(fd, query);
	ck_assert(hc_raw_recv(fd, first, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_query_r);
	length = f.head.length;
	for (int i = 0; i < 20; i++) {
		send_hex(fd, ping);
		want_hex(fd, pong);
		send_hex(fd, query);
		ck_assert(hc_raw_recv(fd, got, &f));
		ck_assert_uint_eq(f.head.length, length);
		ck_assert_int_eq(memcmp(got, first, length), 0);
	}
	close(fd);
}
END_TEST

/* Rows in the caller's memory have no bytes that nobody wrote. */
START_TEST(rows_have_no_hidden_bytes)
{
	struct hcomm_view_status a, b;

	memset(&a, 0x55, sizeof(a));
	memset(&b, 0xaa, sizeof(b));
	hc_ask_status(&a);
	hc_ask_status(&b);
	for (size_t i = 0; i < sizeof(a.reserved0_); i++) {
		ck_assert_uint_eq(a.reserved0_[i], 0);
		ck_assert_uint_eq(b.reserved0_[i], 0);
	}
	ck_assert_int_eq(memcmp(a.node, b.node, sizeof(a.node)), 0); /* beyond the NUL as well */
	ck_assert_int_eq(memcmp(a.remark, b.remark, sizeof(a.remark)), 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, hello_and_its_answer);
	tcase_add_test(t, ping_comes_back_byte_by_byte);
	tcase_add_test(t, an_error_carries_a_negative_status_high_byte_first);
	tcase_add_test(t, nothing_is_aligned);
	tcase_add_test(t, answers_hold_no_remains_of_others);
	tcase_add_test(t, rows_have_no_hidden_bytes);
}

int main(void)
{
	return hc_suite_run("case_077_byte_order", add, 60);
}
