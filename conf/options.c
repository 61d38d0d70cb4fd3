/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of options.tbl.h at run time: finding them, reading and writing their values.
 *
 * Each kind has one parser. It looks at the whole text, so "5s", "1e3" and "0x10" are not 5, 1
 * and 0 but refused, and it writes the field only when the text is good. The refusal says what
 * was found and what the row takes; who calls adds the place. Values come from files, variables
 * and arguments of other people: nothing here trusts their length or their bytes.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define RELOAD true
#define FIXED  false
#define ENV    true
#define NOENV  false

#define ROW(owner, kind, name, unit, lo, hi, def, reload, env, group, text)                        \
	{#name, HC_KIND_##kind, unit, lo, hi, def, reload, env, group, text, offsetof(owner, name)},

static const struct hc_opt top_rows[] = {
#define TOP(...) ROW(struct hc_conf, __VA_ARGS__)
#include "options.tbl.h"
};
static const struct hc_opt node_rows[] = {
#define NODE(...) ROW(struct hc_conf_node, __VA_ARGS__)
#include "options.tbl.h"
};
static const struct hc_opt device_rows[] = {
#define DEVICE(...) ROW(struct hc_conf_device, __VA_ARGS__)
#include "options.tbl.h"
};
static const struct hc_opt link_rows[] = {
#define LINK(...) ROW(struct hc_conf_link, __VA_ARGS__)
#include "options.tbl.h"
};

/* The field of every kind fits what hc_opt_format writes. */
#define TOP(kind, name, unit, lo, hi, ...)                                                         \
	_Static_assert(HC_KIND_##kind < HC_KIND_WORD || HC_KIND_##kind == HC_KIND_ENUM ||          \
			       HC_KIND_##kind == HC_KIND_PORTS || (hi) < HC_CONF_VALUE_MAX,        \
		       #name " is longer than a value may be");
#include "options.tbl.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct hc_opt *hc_opt_table(enum hc_conf_section section, size_t *count)
{
	switch (section) {
	case HC_CONF_TOP: *count = COUNT(top_rows); return top_rows;
	case HC_CONF_NODE: *count = COUNT(node_rows); return node_rows;
	case HC_CONF_DEVICE: *count = COUNT(device_rows); return device_rows;
	case HC_CONF_LINK: *count = COUNT(link_rows); return link_rows;
	}
	*count = 0;
	return NULL;
}

const struct hc_opt *hc_opt_find(enum hc_conf_section section, const char *name)
{
	size_t n;
	const struct hc_opt *rows = hc_opt_table(section, &n);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	return NULL;
}

size_t hc_opt_edits(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t rows[3][HC_OPT_NAME_MAX + 1];
	size_t *prev2 = rows[0], *prev = rows[1], *cur = rows[2];

	for (size_t j = 0; j <= lb; j++)
		prev[j] = prev2[j] = j;
	for (size_t i = 1; i <= la; i++) {
		cur[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = prev[j - 1] + (a[i - 1] != b[j - 1]);

			best = prev[j] + 1 < best ? prev[j] + 1 : best;
			best = cur[j - 1] + 1 < best ? cur[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    prev2[j - 2] + 1 < best)
				best = prev2[j - 2] + 1;
			cur[j] = best;
		}
		size_t *spare = prev2;
		prev2 = prev;
		prev = cur;
		cur = spare;
	}
	return prev[lb];
}

const char *hc_opt_nearest(enum hc_conf_section section, const char *name)
{
	size_t n, len = strlen(name), best = len / 3 < 2 ? 3 : len / 3 + 1;
	const struct hc_opt *rows = hc_opt_table(section, &n);
	const char *found = NULL;

	if (len >= HC_OPT_NAME_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d = hc_opt_edits(name, rows[i].name);

		if (d < best && d < strlen(rows[i].name)) {
			best = d;
			found = rows[i].name;
		}
	}
	return found;
}

const char *hc_opt_env_name(const struct hc_opt *o, char *buf, size_t size)
{
	int n = o->env ? snprintf(buf, size, "HCOMM_%s", o->name) : snprintf(buf, size, "%s", "");

	for (int i = 0; i < n && (size_t)i < size; i++)
		buf[i] = (char)toupper((unsigned char)buf[i]);
	return buf;
}

const char *hc_opt_quote(const char *text, char *buf, size_t size)
{
	static const size_t shown = 72; /* enough to recognise it, short enough for one line */
	size_t w = 0;

	buf[w++] = '\'';
	for (size_t i = 0; text[i] && w + 12 < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (i == shown) {
			w += (size_t)snprintf(buf + w, size - w, "...");
			break;
		}
		if (c < 0x20 || c >= 0x7f)
			w += (size_t)snprintf(buf + w, size - w, "\\x%02x", c);
		else
			buf[w++] = (char)c;
	}
	buf[w++] = '\'';
	buf[w] = '\0';
	return buf;
}

/* ---- sizes ---- */

static const struct {
	const char *suffix;
	unsigned shift;
} size_units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

static void format_size(uint64_t v, char *buf, size_t size)
{
	for (size_t i = 0; i < COUNT(size_units); i++) {
		uint64_t unit = 1ull << size_units[i].shift;

		if (v >= unit && v % unit == 0) {
			snprintf(buf, size, "%" PRIu64 " %s", v / unit, size_units[i].suffix);
			return;
		}
	}
	snprintf(buf, size, "%" PRIu64, v);
}

bool hc_opt_number(const char *text, uint64_t *out)
{
	char *end;
	size_t len = strspn(text, "0123456789");

	if (!len || text[len] || (text[0] == '0' && len > 1))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno == ERANGE)
		*out = UINT64_MAX;
	return true;
}

static bool parse_size(const char *text, uint64_t *out)
{
	char digits[24];
	size_t len = strspn(text, "0123456789");
	const char *suffix = text + len;

	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (!hc_opt_number(digits, out))
		return false;
	if (!*suffix)
		return true;
	suffix += *suffix == ' ';
	for (size_t i = 0; i < COUNT(size_units); i++) {
		if (strcmp(suffix, size_units[i].suffix))
			continue;
		if (*out > UINT64_MAX >> size_units[i].shift)
			*out = UINT64_MAX;
		else
			*out <<= size_units[i].shift;
		return true;
	}
	return false;
}

/* ---- addresses and lists ---- */

bool hc_conf_item(const char **cursor, char *item, size_t size)
{
	const char *s = *cursor + strspn(*cursor, ", \t");
	size_t len = strcspn(s, ", \t"), keep = len < size ? len : size - 1;

	memcpy(item, s, keep);
	item[keep] = '\0';
	*cursor = s + len;
	return len > 0;
}

static bool parse_address(const char *text, struct hc_conf_endpoint *out)
{
	if (inet_pton(AF_INET, text, out->addr) == 1)
		out->family = 4;
	else if (inet_pton(AF_INET6, text, out->addr) == 1)
		out->family = 6;
	else
		return false;
	return true;
}

bool hc_conf_endpoint(const char *text, struct hc_conf_endpoint *out)
{
	char host[INET6_ADDRSTRLEN];
	bool bracket = text[0] == '[';
	const char *end = bracket ? strchr(text, ']') : strrchr(text, ':');
	const char *start = text + bracket, *port;
	uint64_t number;

	memset(out, 0, sizeof(*out));
	if (!bracket && parse_address(text, out))
		return true;
	if (!end || (size_t)(end - start) >= sizeof(host))
		return false;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	if (!parse_address(host, out) || out->family != (bracket ? 6 : 4))
		return false;
	if (bracket && !end[1])
		return true;
	if (bracket && end[1] != ':')
		return false;
	port = end + 1 + bracket;
	if (!hc_opt_number(port, &number) || number < 1 || number > 65535)
		return false;
	out->port = (uint16_t)number;
	return true;
}

static bool is_loopback(const char *text)
{
	struct hc_conf_endpoint e;
	static const uint8_t six[16] = {[15] = 1};

	if (!hc_conf_endpoint(text, &e) || !e.port)
		return false;
	return e.family == 4 ? e.addr[0] == 127 : !memcmp(e.addr, six, sizeof(six));
}

static bool is_interface(const char *text)
{
	const char *name = text + (text[0] == '^');
	size_t len = strlen(name);

	return len && len <= 15 && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static bool is_address(const char *text)
{
	struct hc_conf_endpoint e;

	return parse_address(text, &e);
}

static bool is_endpoint(const char *text)
{
	struct hc_conf_endpoint e;

	return hc_conf_endpoint(text, &e);
}

/* ---- words ---- */

static bool made_of(const char *text, const char *more)
{
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr(more, *text))
			return false;
	}
	return true;
}

static bool is_word(const char *text)
{
	return made_of(text, "._-") && (isalnum((unsigned char)text[0]) || text[0] == '_');
}

bool hc_opt_is_name(const char *text)
{
	size_t len = strlen(text);

	return len && len <= HC_CONF_NAME_MAX && made_of(text, "._-:/");
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || (unsigned char)*text == 0x7f)
			return false;
	}
	return true;
}

static bool is_pci(const char *text)
{
	static const char shape[] = "xxxx:xx:xx.7";

	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		if (shape[i] == 'x' ? !isxdigit(c)
				    : (shape[i] == '7' ? c < '0' || c > '7' : c != shape[i]))
			return false;
	}
	return text[sizeof(shape) - 1] == '\0';
}

static bool enum_word(const struct hc_opt *o, uint64_t index, char *buf, size_t size)
{
	const char *s = o->unit;

	for (uint64_t i = 0; *s == '|'; i++) {
		size_t len = strcspn(s + 1, "|");

		if (i == index) {
			snprintf(buf, size, "%.*s", (int)len, s + 1);
			return true;
		}
		s += 1 + len;
	}
	return false;
}

static bool parse_enum(const struct hc_opt *o, const char *text, uint32_t *out)
{
	char word[HC_OPT_NAME_MAX];

	for (uint32_t i = 0; enum_word(o, i, word, sizeof(word)); i++) {
		if (!strcmp(word, text)) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* ---- what a row takes ---- */

static void wanted_words(const struct hc_opt *o, char *buf, size_t size)
{
	char word[HC_OPT_NAME_MAX];
	size_t w = 0;

	buf[0] = '\0';
	for (uint64_t i = 0; w < size && enum_word(o, i, word, sizeof(word)); i++) {
		bool last = i == o->hi;

		w += (size_t)snprintf(buf + w, size - w, "%s%s", i ? last ? " or " : ", " : "",
				      word);
	}
}

void hc_opt_wanted(const struct hc_opt *o, char *buf, size_t size)
{
	char lo[32], hi[32];
	const char *or_none = o->lo ? "" : ", or empty";
	unsigned long long most = o->hi;

	switch (o->kind) {
	case HC_KIND_BOOL: snprintf(buf, size, "yes or no"); return;
	case HC_KIND_INT:
		snprintf(buf, size, "%" PRIu64 "..%" PRIu64 "%s%s", o->lo, o->hi,
			 *o->unit ? " " : "", o->unit);
		return;
	case HC_KIND_SIZE:
		format_size(o->lo, lo, sizeof(lo));
		format_size(o->hi, hi, sizeof(hi));
		snprintf(buf, size, "%s..%s (bytes, or with KiB, MiB, GiB)", lo, hi);
		return;
	case HC_KIND_MODE:
		snprintf(buf, size, "0%03" PRIo64 "..0%03" PRIo64 ", octal", o->lo, o->hi);
		return;
	case HC_KIND_WORD:
		snprintf(buf, size, "%s%llu letters, digits, '.', '_' or '-'%s",
			 o->lo ? "1.." : "up to ", most, or_none);
		return;
	case HC_KIND_PATH:
		snprintf(buf, size, "an absolute path of at most %llu bytes%s", most, or_none);
		return;
	case HC_KIND_ENUM: wanted_words(o, buf, size); return;
	case HC_KIND_PORTS:
		snprintf(buf, size, "a port %" PRIu64 "..%" PRIu64 " or a range A-B of them", o->lo,
			 o->hi);
		return;
	case HC_KIND_IFACES:
		snprintf(buf, size, "interface names, ^NAME to exclude one, at most %llu bytes%s",
			 most, or_none);
		return;
	case HC_KIND_ADDRS:
		snprintf(buf, size, "IPv4 or IPv6 addresses, at most %llu bytes%s", most, or_none);
		return;
	case HC_KIND_ENDPOINTS:
		snprintf(buf, size, "ADDRESS or ADDRESS:PORT, several allowed, at most %llu bytes",
			 most);
		return;
	case HC_KIND_LOOPBACK:
		snprintf(buf, size, "127.0.0.1:PORT or [::1]:PORT%s", or_none);
		return;
	case HC_KIND_PCI: snprintf(buf, size, "DOMAIN:BUS:DEVICE.FUNCTION in hex"); return;
	}
}

/* ---- reading a value ---- */

__attribute__((format(printf, 4, 5))) static int refuse(const struct hc_opt *o, char *why,
							size_t size, const char *fmt, ...)
{
	char wanted[256], found[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	hc_opt_wanted(o, wanted, sizeof(wanted));
	snprintf(why, size, "%s; wanted %s", found, wanted);
	return HC_CONF_REFUSED;
}

static int parse_number(const struct hc_opt *o, const char *text, void *field, char *why,
			size_t size)
{
	char q[352];
	uint64_t v = 0;
	bool negative = text[0] == '-' && text[1] && hc_opt_number(text + 1, &v);
	bool good = o->kind == HC_KIND_SIZE ? parse_size(text, &v) : hc_opt_number(text, &v);

	hc_opt_quote(text, q, sizeof(q));
	if (!good && !negative)
		return refuse(o, why, size, "%s is not a %s", q,
			      o->kind == HC_KIND_SIZE ? "size" : "number");
	if (negative || v < o->lo || v > o->hi)
		return refuse(o, why, size, "%s is out of range", q);
	if (o->kind == HC_KIND_SIZE)
		*(uint64_t *)field = v;
	else
		*(uint32_t *)field = (uint32_t)v;
	return HC_CONF_OK;
}

static int parse_mode(const struct hc_opt *o, const char *text, void *field, char *why, size_t size)
{
	char q[352];
	size_t len = strspn(text, "01234567");

	hc_opt_quote(text, q, sizeof(q));
	if (text[0] != '0' || len < 4 || text[len])
		return refuse(o, why, size, "%s is not an octal mode of four digits", q);
	if (len > 4 || strtoul(text, NULL, 8) > o->hi)
		return refuse(o, why, size, "%s is out of range", q);
	*(uint32_t *)field = (uint32_t)strtoul(text, NULL, 8);
	return HC_CONF_OK;
}

static int parse_ports(const struct hc_opt *o, const char *text, void *field, char *why,
		       size_t size)
{
	char q[352], first[24];
	const char *dash = strchr(text + (text[0] == '-'), '-');
	size_t len = dash ? (size_t)(dash - text) : strlen(text);
	uint64_t lo = 0, hi;

	hc_opt_quote(text, q, sizeof(q));
	if (len >= sizeof(first))
		return refuse(o, why, size, "%s is not a port", q);
	memcpy(first, text, len);
	first[len] = '\0';
	if (first[0] == '-' && hc_opt_number(first + 1, &lo))
		return refuse(o, why, size, "%s is out of range", q);
	if (!hc_opt_number(first, &lo) || !hc_opt_number(dash ? dash + 1 : first, &hi))
		return refuse(o, why, size, "%s is not a port", q);
	if (lo < o->lo || hi > o->hi || hi < o->lo || lo > o->hi)
		return refuse(o, why, size, "%s is out of range", q);
	if (lo > hi)
		return refuse(o, why, size, "the range %s ends before it begins", q);
	*(struct hc_conf_ports *)field = (struct hc_conf_ports){(uint16_t)lo, (uint16_t)hi};
	return HC_CONF_OK;
}

/* Lists are kept as "a, b, c", whatever stood between the items. */
static int parse_list(const struct hc_opt *o, const char *text, bool (*good)(const char *),
		      const char *what, char *field, char *why, size_t size)
{
	char item[HC_CONF_VALUE_MAX], out[HC_CONF_VALUE_MAX + 4], q[352];
	size_t w = 0;

	while (hc_conf_item(&text, item, sizeof(item))) {
		if (!good(item))
			return refuse(o, why, size, "%s is not %s",
				      hc_opt_quote(item, q, sizeof(q)), what);
		w += (size_t)snprintf(out + w, sizeof(out) - w, "%s%s", w ? ", " : "", item);
		if (w > o->hi)
			return refuse(o, why, size, "the list is longer than %llu bytes",
				      (unsigned long long)o->hi);
	}
	if (!w)
		return refuse(o, why, size, "the list holds nothing");
	memcpy(field, out, w + 1);
	return HC_CONF_OK;
}

static int parse_text(const struct hc_opt *o, const char *text, char *field, char *why, size_t size)
{
	char q[352];
	size_t len = strlen(text);
	bool path = o->kind == HC_KIND_PATH;

	hc_opt_quote(text, q, sizeof(q));
	if (len > o->hi)
		return refuse(o, why, size, "%s is %zu bytes long", q, len);
	if (path && (text[0] != '/' || !is_printable(text)))
		return refuse(o, why, size, "%s is not an absolute path", q);
	if (o->kind == HC_KIND_WORD && !is_word(text))
		return refuse(o, why, size, "%s is not a word", q);
	if (o->kind == HC_KIND_LOOPBACK && !is_loopback(text))
		return refuse(o, why, size, "%s is not a loopback address with a port", q);
	if (o->kind == HC_KIND_PCI && !is_pci(text))
		return refuse(o, why, size, "%s is not a PCI address", q);
	memcpy(field, text, len + 1);
	return HC_CONF_OK;
}

static int parse_bool(const struct hc_opt *o, const char *text, bool *field, char *why, size_t size)
{
	static const char *const yes[] = {"yes", "on", "true"}, *const no[] = {"no", "off",
									       "false"};
	char q[352];

	for (size_t i = 0; i < COUNT(yes); i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*field = !strcmp(text, yes[i]);
			return HC_CONF_OK;
		}
	}
	return refuse(o, why, size, "%s is neither", hc_opt_quote(text, q, sizeof(q)));
}

static bool is_text(enum hc_opt_kind k)
{
	return k == HC_KIND_WORD || k == HC_KIND_PATH || k == HC_KIND_LOOPBACK ||
	       k == HC_KIND_PCI || k == HC_KIND_IFACES || k == HC_KIND_ADDRS ||
	       k == HC_KIND_ENDPOINTS;
}

int hc_opt_parse(const struct hc_opt *o, const char *text, void *field, char *why, size_t size)
{
	char q[352];

	if (!*text && is_text(o->kind) && !o->lo) {
		*(char *)field = '\0';
		return HC_CONF_OK;
	}
	if (!*text)
		return refuse(o, why, size, "the value is empty");
	switch (o->kind) {
	case HC_KIND_BOOL: return parse_bool(o, text, field, why, size);
	case HC_KIND_INT:
	case HC_KIND_SIZE: return parse_number(o, text, field, why, size);
	case HC_KIND_MODE: return parse_mode(o, text, field, why, size);
	case HC_KIND_PORTS: return parse_ports(o, text, field, why, size);
	case HC_KIND_ENUM:
		if (parse_enum(o, text, field))
			return HC_CONF_OK;
		return refuse(o, why, size, "%s is not known", hc_opt_quote(text, q, sizeof(q)));
	case HC_KIND_IFACES:
		return parse_list(o, text, is_interface, "an interface name", field, why, size);
	case HC_KIND_ADDRS: return parse_list(o, text, is_address, "an address", field, why, size);
	case HC_KIND_ENDPOINTS:
		return parse_list(o, text, is_endpoint, "an address or address:port", field, why,
				  size);
	case HC_KIND_WORD:
	case HC_KIND_PATH:
	case HC_KIND_LOOPBACK:
	case HC_KIND_PCI: return parse_text(o, text, field, why, size);
	}
	return -EINVAL;
}

/* ---- writing a value ---- */

void hc_opt_format(const struct hc_opt *o, const void *field, char *buf, size_t size)
{
	const struct hc_conf_ports *p = field;

	switch (o->kind) {
	case HC_KIND_BOOL: snprintf(buf, size, *(const bool *)field ? "yes" : "no"); return;
	case HC_KIND_INT: snprintf(buf, size, "%" PRIu32, *(const uint32_t *)field); return;
	case HC_KIND_SIZE: format_size(*(const uint64_t *)field, buf, size); return;
	case HC_KIND_MODE: snprintf(buf, size, "0%03" PRIo32, *(const uint32_t *)field); return;
	case HC_KIND_ENUM:
		if (!enum_word(o, *(const uint32_t *)field, buf, size))
			snprintf(buf, size, "?");
		return;
	case HC_KIND_PORTS:
		if (p->lo == p->hi)
			snprintf(buf, size, "%u", (unsigned)p->lo);
		else
			snprintf(buf, size, "%u-%u", (unsigned)p->lo, (unsigned)p->hi);
		return;
	case HC_KIND_WORD:
	case HC_KIND_PATH:
	case HC_KIND_IFACES:
	case HC_KIND_ADDRS:
	case HC_KIND_ENDPOINTS:
	case HC_KIND_LOOPBACK:
	case HC_KIND_PCI: snprintf(buf, size, "%s", (const char *)field); return;
	}
}
