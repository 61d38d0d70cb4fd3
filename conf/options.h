/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as data: what options.tbl.h expands to.
 *
 * struct hc_conf has one typed field for each TOP row, and beside it the origin of each value:
 * a setting that nobody remembers can always be traced to its file and line. The three section
 * structs are made the same way. struct hc_opt describes a row at run time; the reader, the
 * printers and the tests walk these descriptions and know no option by name.
 *
 * A value is text outside and a typed field inside. hc_opt_parse is the only way in: it takes
 * the one spelling that the row allows and never reads something odd as 0 or as "no limit".
 * hc_opt_format is the way out, and what it writes hc_opt_parse reads back to the same field.
 */
#ifndef HC_OPTIONS_H
#define HC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_CONF_VALUE_MAX 1024 /* bytes of a value as text, with the NUL */
#define HC_CONF_WHY_MAX   1280 /* bytes of "what was found; what is wanted" */
#define HC_CONF_NAME_MAX  64   /* bytes of the NAME, A or B of a section */
#define HC_OPT_NAME_MAX   64   /* bytes of an option's name, with the NUL */

/* Outcomes. Less than 0 is a fatal -errno. */
enum { HC_CONF_OK = 0, HC_CONF_REFUSED = 1 };

enum hc_opt_kind {
	HC_KIND_BOOL,      /* bool: yes or no */
	HC_KIND_INT,       /* uint32_t */
	HC_KIND_SIZE,      /* uint64_t, bytes */
	HC_KIND_MODE,      /* uint32_t, octal */
	HC_KIND_WORD,      /* char[] */
	HC_KIND_PATH,      /* char[], absolute */
	HC_KIND_ENUM,      /* uint32_t, the index of the word: HC_CONF_<option>_<word> */
	HC_KIND_PORTS,     /* struct hc_conf_ports */
	HC_KIND_IFACES,    /* char[], a list; see hc_conf_item */
	HC_KIND_ADDRS,     /* char[], a list of addresses */
	HC_KIND_ENDPOINTS, /* char[], a list of address or address:port */
	HC_KIND_LOOPBACK,  /* char[], one address:port of this host alone */
	HC_KIND_PCI,       /* char[], dddd:bb:dd.f */
};

enum hc_conf_section { HC_CONF_TOP, HC_CONF_NODE, HC_CONF_DEVICE, HC_CONF_LINK };
#define HC_CONF_SECTIONS 4

/* One port is a range of one. */
struct hc_conf_ports {
	uint16_t lo, hi;
};

struct hc_conf_endpoint {
	uint8_t family;   /* 4 or 6 */
	uint8_t addr[16]; /* IPv4 uses the first 4 bytes */
	uint16_t port;    /* 0 = not given */
};

enum hc_conf_from {
	HC_CONF_FROM_DEFAULT,
	HC_CONF_FROM_FILE,
	HC_CONF_FROM_ENV,
	HC_CONF_FROM_COMMAND_LINE,
	HC_CONF_FROM_OPTION, /* follows from another option: `via` */
	HC_CONF_FROM_HOST,   /* asked of the system */
};

struct hc_conf_origin {
	uint8_t from;  /* enum hc_conf_from */
	uint8_t file;  /* index of hc_conf.files */
	uint16_t via;  /* index of a TOP option */
	uint32_t line; /* from 1 */
};

#define HC_FIELD_BOOL(name, hi)                 bool name;
#define HC_FIELD_INT(name, hi)                  uint32_t name;
#define HC_FIELD_SIZE(name, hi)                 uint64_t name;
#define HC_FIELD_MODE(name, hi)                 uint32_t name;
#define HC_FIELD_ENUM(name, hi)                 uint32_t name;
#define HC_FIELD_PORTS(name, hi)                struct hc_conf_ports name;
#define HC_FIELD_WORD(name, hi)                 char name[(hi) + 1];
#define HC_FIELD_PATH(name, hi)                 char name[(hi) + 1];
#define HC_FIELD_IFACES(name, hi)               char name[(hi) + 1];
#define HC_FIELD_ADDRS(name, hi)                char name[(hi) + 1];
#define HC_FIELD_ENDPOINTS(name, hi)            char name[(hi) + 1];
#define HC_FIELD_LOOPBACK(name, hi)             char name[(hi) + 1];
#define HC_FIELD_PCI(name, hi)                  char name[(hi) + 1];
#define HC_FIELD(kind, name, unit, lo, hi, ...) HC_FIELD_##kind(name, hi)

/* The place of each row in the origin arrays: HC_OPT_listen_port, HC_OPT_LINK_type, ... */
enum hc_opt_top {
#define TOP(kind, name, ...) HC_OPT_##name,
#include "options.tbl.h"
	HC_OPT_COUNT
};
enum hc_opt_node {
#define NODE(kind, name, ...) HC_OPT_NODE_##name,
#include "options.tbl.h"
	HC_OPT_NODE_COUNT
};
enum hc_opt_device {
#define DEVICE(kind, name, ...) HC_OPT_DEVICE_##name,
#include "options.tbl.h"
	HC_OPT_DEVICE_COUNT
};
enum hc_opt_link {
#define LINK(kind, name, ...) HC_OPT_LINK_##name,
#include "options.tbl.h"
	HC_OPT_LINK_COUNT
};

#define HC_WORD_CONSTANT(option, word) HC_CONF_##option##_##word,
enum hc_conf_security { HC_WORDS_security(HC_WORD_CONSTANT) };
enum hc_conf_profile { HC_WORDS_profile(HC_WORD_CONSTANT) };
enum hc_conf_log_target { HC_WORDS_log_target(HC_WORD_CONSTANT) };
enum hc_conf_channel_owner { HC_WORDS_channel_owner(HC_WORD_CONSTANT) };
enum hc_conf_log_level { HC_WORDS_log_level(HC_WORD_CONSTANT) };
enum hc_conf_device_kind { HC_WORDS_kind(HC_WORD_CONSTANT) };
enum hc_conf_link_type { HC_WORDS_type(HC_WORD_CONSTANT) };

/* In a section an option that was not given has the origin HC_CONF_FROM_DEFAULT and value zero. */
struct hc_conf_node {
	char name[HC_CONF_NAME_MAX + 1];
	struct hc_conf_origin at; /* of the section's head */
#define NODE(...) HC_FIELD(__VA_ARGS__)
#include "options.tbl.h"
	struct hc_conf_origin origin[HC_OPT_NODE_COUNT];
};

struct hc_conf_device {
	uint32_t index;
	struct hc_conf_origin at;
#define DEVICE(...) HC_FIELD(__VA_ARGS__)
#include "options.tbl.h"
	struct hc_conf_origin origin[HC_OPT_DEVICE_COUNT];
};

struct hc_conf_link {
	char a[HC_CONF_NAME_MAX + 1], b[HC_CONF_NAME_MAX + 1];
	struct hc_conf_origin at;
#define LINK(...) HC_FIELD(__VA_ARGS__)
#include "options.tbl.h"
	struct hc_conf_origin origin[HC_OPT_LINK_COUNT];
};

struct hc_conf {
#define TOP(...) HC_FIELD(__VA_ARGS__)
#include "options.tbl.h"
	struct hc_conf_origin origin[HC_OPT_COUNT];
	struct hc_conf_node *nodes;
	struct hc_conf_device *devices;
	struct hc_conf_link *links;
	uint32_t nnodes, ndevices, nlinks;
	char **files; /* every file that was read, in order */
	uint32_t nfiles;
};

struct hc_opt {
	const char *name;
	enum hc_opt_kind kind;
	const char *unit; /* ENUM: "|word|word" */
	uint64_t lo, hi;
	const char *def; /* as hc_opt_format writes it; "" = none */
	bool reloadable, env;
	const char *group, *text;
	size_t offset; /* of the field in its struct */
};

/* All rows of a section, in order. */
const struct hc_opt *hc_opt_table(enum hc_conf_section section, size_t *count);

/* The row of that name, or NULL. */
const struct hc_opt *hc_opt_find(enum hc_conf_section section, const char *name);

/* The known name nearest to `name` by edits, or NULL when none is near. */
const char *hc_opt_nearest(enum hc_conf_section section, const char *name);

/* Edits (insert, delete, change, swap of neighbours) from a to b; b has at most HC_OPT_NAME_MAX
 * bytes. */
size_t hc_opt_edits(const char *a, const char *b);

/* "HCOMM_CONNECT_TIMEOUT_S", or "" for a row that has no variable. */
const char *hc_opt_env_name(const struct hc_opt *o, char *buf, size_t size);

/* "1..7200 seconds": what the row takes, for messages and manuals. */
void hc_opt_wanted(const struct hc_opt *o, char *buf, size_t size);

/*
 * Reads text into the row's field. HC_CONF_REFUSED leaves the field alone and writes into `why`
 * what was found and what is wanted.
 */
int hc_opt_parse(const struct hc_opt *o, const char *text, void *field, char *why, size_t size);

/* The field as text that hc_opt_parse reads back. Needs HC_CONF_VALUE_MAX bytes. */
void hc_opt_format(const struct hc_opt *o, const void *field, char *buf, size_t size);

/* A plain decimal number: digits alone, no sign, no blank, no leading zero. */
bool hc_opt_number(const char *text, uint64_t *out);

/* A name as sections use it: letters, digits and . _ - : / */
bool hc_opt_is_name(const char *text);

/* Text from outside made fit for a one-line message: escaped, cut, in quotes. */
const char *hc_opt_quote(const char *text, char *buf, size_t size);

/* The next item of a list ("a, b c"); false at its end. Start with *cursor = the list. */
bool hc_conf_item(const char **cursor, char *item, size_t size);

/* Reads 10.0.0.1, 10.0.0.1:80, fd00::1 or [fd00::1]:80. */
bool hc_conf_endpoint(const char *text, struct hc_conf_endpoint *out);

#endif
