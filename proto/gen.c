/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator: writes what is made from tables into the source tree.
 *
 *   gen ROOT            write the files that differ
 *   gen --check ROOT    write nothing; name the files that differ, exit status 1
 *
 * The results are committed, so that a build needs no generator and a reader sees the header
 * and the manual without one. Each file is made in memory and compared with what is there:
 * a file that is right keeps its time stamp, and one that is half written never appears.
 *
 * This program is in no archive and is linked with the codec's tables only: print.c needs
 * hcomm/views.h, which is made here.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec.h"
#include "frame.h"
#include "confprint.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the tables, in their order ---- */

/* clang-format off */
#define F(of, type, field, since, what)
#define A(of, rec, field, max, since, what)
#define END(of)
#define REC(name)		&hc_desc_##name,
#define MSG(number, name, what)	&hc_desc_##name,
static const struct hc_desc *const messages[] = {
#include "messages.tbl.h"
};
#undef REC
#undef MSG
#undef F
#undef A
#undef END

struct view {
	const struct hc_desc *d;
	const char *owner;
};
#define VIEW(number, name, owner, what) {&hc_desc_view_##name, #owner},
#define V(of, type, field, since, heading, what)
#define ENDV(of)
static const struct view views[] = {
#include "views.tbl.h"
};
#undef VIEW
#undef V
#undef ENDV

struct word {
	const char *set;
	unsigned number;
	const char *name, *text;
};
static const struct word words[] = {
#define W(set, number, name, text) {#set, number, #name, text},
#include "words.tbl.h"
#undef W
};
struct right {
	const char *request, *who, *what;
};
static const struct right rights[] = {
#define RIGHT(request, who, what) {#request, #who, what},
#include "rights.tbl.h"
#undef RIGHT
};
/* clang-format on */

struct type {
	const char *name, *wire, *public;
	unsigned width; /* of the public form */
};

static const struct type types[] = {
	[HC_T_u8] = {"u8", "1 byte", "uint8_t", 1},
	[HC_T_u16] = {"u16", "2 bytes", "uint16_t", 2},
	[HC_T_u32] = {"u32", "4 bytes", "uint32_t", 4},
	[HC_T_u64] = {"u64", "8 bytes", "uint64_t", 8},
	[HC_T_id] = {"id", "8 bytes, shown as 16 hexadecimal digits", "uint64_t", 8},
	[HC_T_i32] = {"i32", "4 bytes, two's complement", "int32_t", 4},
	[HC_T_id16] = {"id16", "16 bytes", NULL, 0},
	[HC_T_name] = {"name", "u16 length, at most 127, and the bytes", "char", 1},
	[HC_T_text] = {"text", "u16 length, at most 1,023, and the bytes", "char", 1},
	[HC_T_blob] = {"blob", "u16 length, at most 4,352, and the bytes", NULL, 0},
	[HC_T_rest] = {"rest", "what remains of the message", NULL, 0},
	[HC_T_array] = {"array", "u32 count, and the records", NULL, 0},
};

/* ---- include/hcomm/views.h ---- */

static unsigned string_bytes(uint8_t type)
{
	return type == HC_T_name ? HC_NAME_MAX + 1 : type == HC_T_text ? HC_TEXT_MAX + 1 : 0;
}

static void write_pad(FILE *f, unsigned *at, unsigned align, unsigned *pads)
{
	unsigned n = (align - *at % align) % align;

	if (!n)
		return;
	fprintf(f, "\tuint8_t reserved%u_[%u];\n", (*pads)++, n);
	*at += n;
}

static void write_view_struct(FILE *f, const struct hc_desc *d)
{
	unsigned at = 4, widest = 4, pads = 0, i;

	fprintf(f, "\n/* %s */\nstruct hcomm_view_%s {\n\tuint32_t size;\n", d->what, d->name);
	for (i = 0; i < d->nfields; i++) {
		const struct hc_field *field = &d->fields[i];
		const struct type *t = &types[field->type];
		unsigned string = string_bytes(field->type);

		write_pad(f, &at, t->width, &pads);
		fprintf(f, "\t%s %s", t->public, field->name);
		if (string)
			fprintf(f, "[%s]",
				field->type == HC_T_name ? "HCOMM_NAME_BYTES" : "HCOMM_TEXT_BYTES");
		fprintf(f, "; /* %s */\n", field->what);
		at += string ? string : t->width;
		if (t->width > widest)
			widest = t->width;
	}
	write_pad(f, &at, widest, &pads);
	fputs("};\n", f);
}

static void write_view_number(FILE *f, const struct hc_desc *d, bool last)
{
	const char *s;

	fputs("\tHCOMM_VIEW_", f);
	for (s = d->name; *s; s++)
		fputc(toupper((unsigned char)*s), f);
	fprintf(f, " = %u%s\n", d->number, last ? "" : ",");
}

static void write_views_h(FILE *f)
{
	unsigned i;

	fputs("/* SPDX-License-Identifier: Apache-2.0 */\n"
	      "/* Made by `make gen` from proto/views.tbl.h. Do not edit. */\n"
	      "/*\n"
	      " * Rows that hcomm_query delivers. `size` says how much of the struct the library "
	      "filled;\n"
	      " * later versions append fields, they change none. Strings end with a NUL. There is "
	      "no\n"
	      " * hidden padding: the layout is the same for every compiler of a machine.\n"
	      " */\n"
	      "#ifndef HCOMM_VIEWS_H\n#define HCOMM_VIEWS_H\n\n"
	      "#include <stdint.h>\n#include <hcomm/hcomm.h>\n\n"
	      "/* clang-format off */\n"
	      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
	      "enum hcomm_view {\n",
	      f);
	for (i = 0; i < COUNT(views); i++)
		write_view_number(f, views[i].d, i + 1 == COUNT(views));
	fputs("};\n", f);
	for (i = 0; i < COUNT(views); i++)
		write_view_struct(f, views[i].d);
	fputs("\n#ifdef __cplusplus\n}\n#endif\n/* clang-format on */\n#endif\n", f);
}

/* ---- doc/protocol.md ---- */

/* Text of a table cell: a bar would end it. */
static void write_cell(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			fputc('\\', f);
		fputc(*s, f);
	}
}

static void write_type(FILE *f, const struct hc_field *field)
{
	if (field->type == HC_T_array)
		fprintf(f, "array of %s, at most %u", field->rec->name, field->max);
	else
		fputs(types[field->type].name, f);
}

static void write_fields(FILE *f, const struct hc_desc *d)
{
	unsigned i;

	fputs("| field | type | since | meaning |\n|---|---|---|---|\n", f);
	for (i = 0; i < d->nfields; i++) {
		const struct hc_field *field = &d->fields[i];

		fprintf(f, "| %s | ", field->name);
		write_type(f, field);
		fprintf(f, " | %u | ", field->since);
		write_cell(f, field->what);
		fputs(" |\n", f);
	}
}

static void write_protocol_intro(FILE *f)
{
	unsigned i;

	fprintf(f,
		"<!-- Made by `make gen` from proto/*.tbl.h. Do not edit. -->\n"
		"# The protocol of hcomm\n\n"
		"Protocol versions %d to %d are spoken by this build.\n\n"
		"## Frames\n\n"
		"A frame is a header of %u bytes and a message. A packet of the client socket\n"
		"(AF_UNIX, SOCK_SEQPACKET) holds one or more whole frames, %u bytes in all at "
		"most.\n"
		"Descriptors belong to the first message of a packet. A client may send them with\n"
		"hello; later it announces them with `carry`, and those of other packets are "
		"dropped:\n"
		"a packet that cannot bring any is cheaper to read.\n\n"
		"| bytes | field | meaning |\n|---|---|---|\n"
		"| 0..3 | length | of the frame in bytes, the header included |\n"
		"| 4..5 | version | protocol version of the message; 1 in hello and in its answer "
		"|\n"
		"| 6..7 | type | number of the message |\n"
		"| 8..11 | id | chosen by the requester, repeated in the answer; 0 in events |\n"
		"| 12..15 | status | 0; in an error the outcome as a negative number |\n\n"
		"A length below %u or beyond the packet makes the packet malformed. A message of "
		"an\n"
		"unknown type is answered with an error, and the session goes on.\n\n"
		"## Encoding\n\n"
		"Everything is big-endian, without padding, in the order of the rows below. A "
		"version\n"
		"has exactly one encoding: fields that came with a later version take no bytes. A\n"
		"message ends with its last field; one byte more or less makes it malformed.\n\n"
		"| type | bytes |\n|---|---|\n",
		HC_PROTO_MIN, HC_PROTO_MAX, HC_HEAD_BYTES, HC_PACKET_MAX, HC_HEAD_BYTES);
	for (i = 0; i < COUNT(types); i++)
		fprintf(f, "| %s | %s |\n", types[i].name, types[i].wire);
}

static bool in_range(const struct hc_desc *d, unsigned lo, unsigned hi)
{
	return d->number >= lo && d->number <= hi;
}

static void write_messages(FILE *f, const char *title, unsigned lo, unsigned hi)
{
	unsigned i;

	fprintf(f, "\n## %s\n", title);
	for (i = 0; i < COUNT(messages); i++) {
		const struct hc_desc *d = messages[i];

		if (!in_range(d, lo, hi))
			continue;
		if (d->number)
			fprintf(f, "\n### %u %s\n\n%s\n\n", d->number, d->name, d->what);
		else
			fprintf(f, "\n### %s\n\n", d->name);
		write_fields(f, d);
	}
}

static void write_views_md(FILE *f)
{
	unsigned i;

	fputs("\n## Views\n\nRows of query_r. A row is the fields below, encoded as in a "
	      "message.\n",
	      f);
	for (i = 0; i < COUNT(views); i++) {
		fprintf(f, "\n### view %u %s\n\n%s\n\n", views[i].d->number, views[i].d->name,
			views[i].d->what);
		write_fields(f, views[i].d);
	}
}

static void write_errors_md(FILE *f)
{
	const struct hc_error_row *e;

	fputs("\n## Outcomes\n\n"
	      "On the wire and in the library an outcome is the number below, negative\n"
	      "(`HCOMM_E_<name>`). The last two columns are the values that a host library built "
	      "for\n"
	      "those interfaces gets.\n\n"
	      "| number | name | text | meaning | HcclResult | ncclResult_t |\n"
	      "|---|---|---|---|---|---|\n",
	      f);
	for (e = hc_error_rows; e->number; e++) {
		fprintf(f, "| %d | %s | %s | ", -e->number, e->name, e->text);
		write_cell(f, e->explain);
		fprintf(f, " | %d | %d |\n", e->hccl, e->nccl);
	}
}

static void write_words_md(FILE *f)
{
	const char *set = "";
	unsigned i;

	fputs("\n## Words\n\nNumbers of enumerations. A number that is not listed is shown as "
	      "`?`.\n",
	      f);
	for (i = 0; i < COUNT(words); i++) {
		if (strcmp(set, words[i].set) != 0) {
			set = words[i].set;
			fprintf(f, "\n### %s\n\n| number | name | text |\n|---|---|---|\n", set);
		}
		fprintf(f, "| %u | %s | %s |\n", words[i].number, words[i].name, words[i].text);
	}
}

static void write_rights_md(FILE *f)
{
	unsigned i;

	fputs("\n## Rights\n\n"
	      "Who a caller is comes from the kernel. A *member* is root, the daemon's own user, "
	      "or "
	      "in\n"
	      "`admin_group` or `socket_group`; nobody else may say anything. *rank*: a member, "
	      "for a "
	      "rank\n"
	      "that its own process holds. *user*: a member, for domains of its own uid. *owner*: "
	      "the\n"
	      "same, and root and `admin_group` for all domains. *admin*: root, the daemon's own "
	      "user "
	      "and\n"
	      "`admin_group`. A refusal is `PERMISSION`, and is logged with the uid.\n\n"
	      "| request | who | may |\n|---|---|---|\n",
	      f);
	for (i = 0; i < COUNT(rights); i++) {
		const char *s;

		fprintf(f, "| %s | ", rights[i].request);
		for (s = rights[i].who; *s; s++)
			fputc(tolower((unsigned char)*s), f);
		fprintf(f, " | %s |\n", rights[i].what);
	}
}

static void write_protocol_md(FILE *f)
{
	write_protocol_intro(f);
	write_messages(f, "Records that arrays hold", 0, 0);
	write_messages(f, "Messages of the client socket", 1, 89);
	write_messages(f, "Stored rows", 90, 99);
	write_messages(f, "Messages between home and participant of a domain", 100, HC_MSG_MAX - 1);
	write_rights_md(f);
	write_views_md(f);
	write_errors_md(f);
	write_words_md(f);
}

/* ---- tests/fuzz/hcomm.dict ---- */

/* Headers that are right for each message, and the lengths at which decoders break. */
static void write_dict(FILE *f)
{
	static const char *const lengths[] = {
		"00000000", "0000000f", "00000010", "00010000", "40000000",
		"7fffffff", "80000000", "fffffff0", "ffffffff", "007f",
		"0080",     "03ff",     "0400",     "1100",     "1101",
	};
	unsigned i, j;

	fputs("# Made by `make gen` from proto/messages.tbl.h. Do not edit.\n", f);
	for (i = 0; i < COUNT(messages); i++) {
		if (messages[i]->number)
			fprintf(f, "%s=\"\\x00\\x01\\x%02x\\x%02x\"\n", messages[i]->name,
				messages[i]->number >> 8, messages[i]->number & 0xff);
	}
	for (i = 0; i < COUNT(lengths); i++) {
		fprintf(f, "length_%s=\"", lengths[i]);
		for (j = 0; lengths[i][j]; j += 2)
			fprintf(f, "\\x%.2s", lengths[i] + j);
		fputs("\"\n", f);
	}
}

/* ---- files ---- */

static void write_sample(FILE *f)
{
	hc_conf_write_sample(f); /* an error of the stream stays in it, and make() asks */
}

static void write_mdoc(FILE *f)
{
	hc_conf_write_mdoc(f);
}

struct target {
	const char *path;
	void (*write)(FILE *f);
};

static const struct target targets[] = {
	{"include/hcomm/views.h", write_views_h}, {"doc/protocol.md", write_protocol_md},
	{"tests/fuzz/hcomm.dict", write_dict},    {"conf/hcommd.conf", write_sample},
	{"doc/hcommd.conf.5", write_mdoc},
};

static int fail(const char *what, const char *path)
{
	fprintf(stderr, "gen: %s: %s: %s\n", path, what, strerror(errno));
	return 2;
}

static bool same(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "r");
	char *have = malloc(len + 1);
	bool is = f && have && fread(have, 1, len + 1, f) == len && !memcmp(have, text, len);

	free(have);
	if (f)
		fclose(f);
	return is;
}

static int replace(const char *path, const char *text, size_t len)
{
	char temp[4096];
	FILE *f;
	int bad;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.new", path) >= sizeof(temp)) {
		errno = ENAMETOOLONG;
		return fail("cannot write", path);
	}
	f = fopen(temp, "w");
	if (!f)
		return fail("cannot write", temp);
	bad = fwrite(text, 1, len, f) != len;
	bad |= fclose(f) != 0;
	if (bad || rename(temp, path) != 0) {
		bad = fail("cannot write", path);
		remove(temp);
		return bad;
	}
	printf("gen: wrote %s\n", path);
	return 0;
}

static int make(const struct target *t, const char *root, bool check)
{
	char path[4096], *text = NULL;
	size_t len = 0;
	FILE *f;
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", root, t->path) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return fail("cannot write", t->path);
	}
	f = open_memstream(&text, &len);
	if (!f)
		return fail("cannot make", path);
	t->write(f);
	r = ferror(f);
	if (fclose(f) != 0 || r)
		return fail("cannot make", path);
	if (!same(path, text, len)) {
		if (check) {
			fprintf(stderr, "gen: %s is not what the tables give; run: make gen\n",
				t->path);
			r = 1;
		} else {
			r = replace(path, text, len);
		}
	}
	free(text);
	return r;
}

int main(int argc, char **argv)
{
	bool check = argc == 3 && !strcmp(argv[1], "--check");
	int worst = 0, r;
	unsigned i;

	if (argc != 2 && !check) {
		fputs("usage: gen [--check] ROOT\n", stderr);
		return 2;
	}
	for (i = 0; i < COUNT(targets); i++) {
		r = make(&targets[i], argv[argc - 1], check);
		if (r > worst)
			worst = r;
	}
	return worst;
}
