/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl: noun, verb, arguments.
 *
 * Every command is a row of `commands`: noun, verb, what follows, its own options, a line of
 * help, its function. Dispatch, the help texts and the "did you mean" of a wrong word all read
 * that table, so none of them can know a command that the others do not.
 *
 * Options that make sense for every command may stand anywhere on the line and are taken out
 * first. What then begins with a dash belongs to the command: its row lists it, or the row says
 * CTL_RAW and the command looks itself. A word that nobody knows is refused in one line, with the
 * nearest known one, and exit status 2; nothing has been asked of the daemon by then.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "options.h"

#define CTL_RAW   NULL
#define WORDS_MAX 64

struct command {
	const char *noun, *verb, *args;
	const char *options; /* "name=ARG flag", or CTL_RAW */
	const char *what;
	ctl_fn *fn;
};

/* clang-format off */
static const struct command commands[] = {
{"status", "", "", "", "the daemon: health, domains, devices; exit 1 when degraded", ctl_status},
{"domain", "list", "", "", "communication domains of this node", ctl_domain},
{"domain", "show", "ID|NAME", "", "one domain, its ranks and who is missing", ctl_domain},
{"domain", "create", "",
	"rank-table=FILE name=NAME server=SERVER ops=N hold",
	"make the domain of a rank table; --hold runs its local ranks", ctl_domain},
{"domain", "destroy", "ID|NAME", "", "end a domain, after its running operations", ctl_domain},
{"device", "list", "", "", "devices of this node and who uses them", ctl_device},
{"link", "list", "", "", "links between devices, what is granted of them, who waits", ctl_link},
{"link", "show", "NAME", "", "one link with the source of each fact", ctl_link},
{"node", "list", "", "", "other nodes: who is up, heard when, over how many paths", ctl_node},
{"node", "show", "NODE", "", "one node", ctl_node},
{"path", "list", "", "", "paths to other nodes: state, size, round trip, missed beats", ctl_path},
{"path", "show", "NODE", "", "the paths to one node, with all their counters", ctl_path},
{"port", "list", "", "", "network ports of this node, and why one is not used", ctl_port},
{"preflight", "", "", "", "is this node fit for a job; a line for each check", ctl_preflight},
{"channel", "list", "", "domain=ID|NAME", "channels that are granted, and over which link", ctl_channel},
{"channel", "show", "ID", "", "one channel", ctl_channel},
{"channel", "waiting", "", "domain=ID|NAME",
	"who waits for channels: class now, place, estimate", ctl_channel},
{"channel", "hold", "",
	"bandwidth=MB/S back=MB/S path=TYPE count=N for=SEC wait retry class=N weight=N name=NAME "
	"devices=A,B shared",
	"have channels between two devices for a while, as a job would", ctl_channel},
{"perf", "server", "", "name=NAME devices=A,B class=N weight=N",
	"answer one perf client of this node", ctl_perf},
{"perf", "client", "", "name=NAME sizes=LIST iterations=N bandwidth=MB/S buffer=BYTES wait",
	"round trips and bandwidth of a channel to the perf server", ctl_perf},
{"client", "list", "", "", "open sessions", ctl_client},
{"event", "list", "", "since=TIME domain=ID|NAME limit=N", "the event journal", ctl_event},
{"event", "follow", "", "domain=ID|NAME", "events as they happen, until interrupted", ctl_event},
{"ranktable", "check", "FILE...", CTL_RAW, "check rank tables, no daemon needed", ctl_ranktable},
{"ranktable", "show", "FILE", CTL_RAW, "what a rank table says", ctl_ranktable},
{"topology", "check", "FILE...", CTL_RAW, "check topology files, no daemon needed", ctl_topology},
{"topology", "show", "FILE", CTL_RAW, "what a topology file says", ctl_topology},
{"config", "check", "[FILE]", CTL_RAW, "check a configuration, no daemon needed", ctl_config},
{"config", "show", "[FILE]", CTL_RAW, "every option with its value and origin", ctl_config},
{"config", "diff", "OLD NEW", CTL_RAW, "what differs, and whether a reload is enough", ctl_config},
{"key", "generate", "[FILE]", "force",
	"make a cluster key, the same for all nodes; no daemon needed", ctl_key},
{"setting", "list", "", "", "the values that the running daemon uses, with their origin", ctl_setting},
{"explain", "", "CODE", "", "what an error of hcomm or HCCL means", ctl_explain},
{"log", "level", "LEVEL", "", "set the daemon's log level: error, warn, info or debug", ctl_admin},
{"reload", "", "", "", "make the daemon read its configuration again", ctl_admin},
{"drain", "", "", "off",
	"take no new domains and wait for the end of those there are; a second call ends the wait",
	ctl_drain},
{"version", "", "", "", "versions of this program, the library and the daemon", ctl_version},
};
/* clang-format on */
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *const global_names[] = {"--json",  "--no-headings", "--timeout", "--socket",
					   "--watch", "--help",        "--version"};
#define GLOBALS (sizeof(global_names) / sizeof(global_names[0]))

static const char global_help[] =
	"Options, anywhere on the line:\n"
	"  --json             JSON instead of a table\n"
	"  --no-headings      a table without its first line\n"
	"  -o COLUMNS         these columns only, by heading or field name\n"
	"  --timeout SEC      give up after so many seconds\n"
	"  --socket PATH      socket of the daemon (else HCOMM_SOCKET)\n"
	"  --watch[=SEC]      repeat every SEC seconds (2)\n"
	"  -h, --help         this text, or that of a noun\n"
	"  --version          version of this program\n"
	"Exit status: 0 well, 1 degraded or failed, 2 usage or invalid input, 3 no daemon,\n"
	"4 not permitted, 75 try again, 124 timed out.\n";

/* ---- help ---- */

static void print_option_names(const char *options)
{
	char copy[256], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", options);
	while ((word = strsep(&rest, " "))) {
		char *arg = strchr(word, '=');

		if (arg)
			*arg++ = '\0';
		if (word[0])
			printf(" [--%s%s%s]", word, arg ? " " : "", arg ? arg : "");
	}
}

static void print_command(const struct command *k)
{
	printf("  hcommctl %s%s%s%s%s", k->noun, k->verb[0] ? " " : "", k->verb,
	       k->args[0] ? " " : "", k->args);
	if (k->options)
		print_option_names(k->options);
	printf("\n      %s\n", k->what);
}

/* All commands, or those of one noun. */
static int print_help(const char *noun)
{
	printf("Usage: hcommctl [OPTION...] NOUN [VERB] [ARGUMENT...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!noun || !strcmp(noun, commands[i].noun))
			print_command(&commands[i]);
	}
	printf("\n%s", global_help);
	return CTL_OK;
}

/* ---- words ---- */

const char *ctl_opt(const struct ctl *c, const char *name)
{
	for (unsigned i = 0; i < c->ngiven; i++) {
		if (!strcmp(c->given[i].name, name))
			return c->given[i].value;
	}
	return NULL;
}

bool ctl_number(const char *what, const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
	if (hc_opt_number(text, out) && *out >= lo && *out <= hi)
		return true;
	ctl_say("%s is '%s'; wanted: a whole number %llu..%llu", what, text, (unsigned long long)lo,
		(unsigned long long)hi);
	return false;
}

bool ctl_seconds(const char *what, const char *text, uint32_t *out)
{
	static const struct {
		char unit;
		uint32_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	char digits[16];
	size_t n = strlen(text);
	uint64_t value;
	uint32_t scale = n && text[n - 1] >= '0' && text[n - 1] <= '9' ? 1 : 0;

	for (size_t i = 0; n && i < sizeof(units) / sizeof(units[0]); i++) {
		if (text[n - 1] == units[i].unit)
			scale = units[i].seconds;
	}
	if (n && scale && !(text[n - 1] >= '0' && text[n - 1] <= '9'))
		n--;
	snprintf(digits, sizeof(digits), "%.*s", (int)(n < 15 ? n : 15), text);
	if (!scale || !hc_opt_number(digits, &value) || !value || value > 100000000 / scale) {
		ctl_say("%s is '%s'; wanted: a time such as 90s, 5m, 1h or 2d", what, text);
		return false;
	}
	*out = (uint32_t)value * scale;
	return true;
}

bool ctl_ms(const char *what, const char *text, uint32_t *ms)
{
	char *end = NULL;
	double seconds;

	errno = 0;
	seconds = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
	if (!end || *end || errno || !(seconds >= 0.001 && seconds <= 86400)) {
		ctl_say("%s is '%s'; wanted: seconds, 0.001..86400", what, text);
		return false;
	}
	*ms = (uint32_t)(seconds * 1000 + 0.5);
	return true;
}

static int unknown(const char *what, const char *word, const char *const *known, size_t count)
{
	const char *near = ctl_nearest(word, known, count);

	if (near)
		return ctl_usage("unknown %s '%s'; did you mean '%s'?", what, word, near);
	return ctl_usage("unknown %s '%s'; see hcommctl --help", what, word);
}

/* ---- options that stand anywhere ---- */

struct line {
	int argc;
	char **argv; /* what is left */
	bool help, version;
};

/* The value of option argv[*i]: after '=', or the next word. NULL: said that it is missing. */
static char *value_of(char **argv, int argc, int *i, char *after)
{
	if (after)
		return after;
	if (*i + 1 < argc)
		return argv[++*i];
	ctl_say("%s needs a value", argv[*i]);
	return NULL;
}

/* Is argv[i] the long option `name`? *after: what follows '=', or NULL. */
static bool is_long(char *word, const char *name, char **after)
{
	size_t n = strlen(name);

	if (strncmp(word, name, n) || (word[n] && word[n] != '='))
		return false;
	*after = word[n] ? word + n + 1 : NULL;
	return true;
}

/* 1: taken, 0: not a global option, -1: refused (said why) */
static int take_flag(struct ctl *c, struct line *l, char *word)
{
	char *after = NULL;
	bool *flag = NULL;
	uint32_t ms = 2000;

	if (is_long(word, "--watch", &after)) {
		if (after && !ctl_ms("--watch", after, &ms))
			return -1;
		c->watch_ms = ms;
		return 1;
	}
	if (is_long(word, "--json", &after))
		flag = &c->json;
	else if (is_long(word, "--no-headings", &after))
		flag = &c->no_headings;
	else if (is_long(word, "--help", &after) || !strcmp(word, "-h"))
		flag = &l->help;
	else if (is_long(word, "--version", &after))
		flag = &l->version;
	if (!flag)
		return 0;
	if (after) {
		ctl_say("%.*s takes no value", (int)(after - word - 1), word);
		return -1;
	}
	*flag = true;
	return 1;
}

static int take_valued(struct ctl *c, char **argv, int argc, int *i)
{
	char *word = argv[*i], *after = NULL, *value;
	uint32_t ms;

	if (!strncmp(word, "-o", 2)) {
		value = value_of(argv, argc, i, word[2] ? word + 2 : NULL);
		c->columns = value;
		return value ? 1 : -1;
	}
	if (is_long(word, "--socket", &after)) {
		value = value_of(argv, argc, i, after);
		c->socket = value;
		return value ? 1 : -1;
	}
	if (!is_long(word, "--timeout", &after))
		return 0;
	value = value_of(argv, argc, i, after);
	if (!value || !ctl_ms("--timeout", value, &ms))
		return -1;
	c->timeout_ms = (int)ms;
	return 1;
}

/* Move what is not a global option to the front of argv. */
static int take_globals(struct ctl *c, struct line *l, int argc, char **argv)
{
	l->argv = argv;
	for (int i = 0; i < argc; i++) {
		int r;

		if (!strcmp(argv[i], "--")) {
			while (i < argc)
				l->argv[l->argc++] = argv[i++];
			break;
		}
		r = take_flag(c, l, argv[i]);
		if (!r)
			r = take_valued(c, argv, argc, &i);
		if (r < 0)
			return CTL_USAGE;
		if (!r)
			l->argv[l->argc++] = argv[i];
	}
	l->argv[l->argc] = NULL;
	return CTL_OK;
}

/* ---- the command and its own options ---- */

/* All names of a command's options, with dashes, and the global ones; returns how many. */
static size_t option_words(const struct command *k, char *copy, size_t size, const char **words)
{
	char *rest = copy, *word;
	size_t n = 0, used = 0;
	char spaced[256];

	for (size_t i = 0; i < GLOBALS; i++)
		words[n++] = global_names[i];
	snprintf(spaced, sizeof(spaced), "%s", k && k->options ? k->options : "");
	rest = spaced;
	while ((word = strsep(&rest, " ")) && n < WORDS_MAX) {
		int len = (int)strcspn(word, "=");
		int put = snprintf(copy + used, size - used, "--%.*s", len, word);

		if (!len || put < 0 || (size_t)put >= size - used)
			continue;
		words[n++] = copy + used;
		used += (size_t)put + 1;
	}
	return n;
}

static int unknown_option(const struct command *k, char *word)
{
	const char *words[WORDS_MAX];
	char copy[256], name[64];
	size_t n = option_words(k, copy, sizeof(copy), words);

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	return unknown("option", name, words, n);
}

/* Does the row list option `name` (len bytes)? 0 no, 1 a flag, 2 with a value. */
static int listed(const char *options, const char *name, size_t len)
{
	const char *p = options;

	while (*p) {
		size_t n = strcspn(p, "= "), all = strcspn(p, " ");

		if (n == len && !strncmp(p, name, len))
			return p[n] == '=' ? 2 : 1;
		p += all;
		p += strspn(p, " ");
	}
	return 0;
}

static int take_option(struct ctl *c, const struct command *k, struct line *l, int *i)
{
	char *word = l->argv[*i], *after = strchr(word, '='), *value = NULL;
	size_t len = after ? (size_t)(after - word) : strlen(word);
	int form = len > 2 && word[1] == '-' ? listed(k->options, word + 2, len - 2) : 0;

	if (!form)
		return unknown_option(k, word);
	if (form == 1 && after)
		return ctl_usage("%.*s takes no value", (int)len, word);
	if (form == 2) {
		value = value_of(l->argv, l->argc, i, after ? after + 1 : NULL);
		if (!value)
			return CTL_USAGE;
		if (!value[0]) /* of a shell variable that is not set */
			return ctl_usage("%.*s is empty", (int)len, word);
	}
	word[len] = '\0';
	if (ctl_opt(c, word + 2))
		return ctl_usage("%s is given twice", word);
	if (c->ngiven == CTL_OPTIONS_MAX)
		return ctl_usage("too many options");
	c->given[c->ngiven++] = (struct ctl_given){word + 2, value ? value : ""};
	return CTL_OK;
}

/* "-" is a word, and so is a negative number (explain -6). */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !(word[1] >= '0' && word[1] <= '9');
}

static int take_options(struct ctl *c, const struct command *k, struct line *l)
{
	int kept = 0;

	for (int i = 0; i < l->argc; i++) {
		if (!strcmp(l->argv[i], "--")) {
			while (++i < l->argc)
				l->argv[kept++] = l->argv[i];
		} else if (is_option(l->argv[i])) {
			int r = take_option(c, k, l, &i);

			if (r)
				return r;
		} else {
			l->argv[kept++] = l->argv[i];
		}
	}
	l->argc = kept;
	l->argv[kept] = NULL;
	return CTL_OK;
}

/* The rows of a noun, as words for a message; verbs when `noun` is given, else nouns. */
static size_t words_of(const char *noun, const char **words)
{
	size_t n = 0;

	for (size_t i = 0; i < COMMANDS && n < WORDS_MAX; i++) {
		const char *word = noun ? commands[i].verb : commands[i].noun;

		if (noun && strcmp(noun, commands[i].noun))
			continue;
		if (!n || strcmp(words[n - 1], word))
			words[n++] = word;
	}
	return n;
}

static int wrong_verb(const char *noun, const char *verb)
{
	const char *words[WORDS_MAX];
	size_t n = words_of(noun, words);
	char list[256] = "", what[64];

	if (verb) {
		snprintf(what, sizeof(what), "verb of %s", noun);
		if (ctl_nearest(verb, words, n))
			return unknown(what, verb, words, n);
	}
	for (size_t i = 0; i < n; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 words[i]);
	if (verb)
		return ctl_usage("unknown %s '%s'; wanted: %s", what, verb, list);
	return ctl_usage("%s needs a verb: %s", noun, list);
}

static bool is_noun(const char *word)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(word, commands[i].noun))
			return true;
	}
	return false;
}

static int find_command(const struct line *l, const struct command **out)
{
	const char *words[WORDS_MAX];
	const char *noun = l->argv[0], *verb = l->argv[1];

	if (!is_noun(noun))
		return unknown("command", noun, words, words_of(NULL, words));
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct command *k = &commands[i];

		if (!strcmp(noun, k->noun) && (!k->verb[0] || (verb && !strcmp(verb, k->verb)))) {
			*out = k;
			return CTL_OK;
		}
	}
	return wrong_verb(noun, verb);
}

/* How many words may stand after the verb: none, one, or any number. */
static int check_args(const struct command *k, const struct line *l)
{
	int words = k->verb[0] ? 2 : 1, wanted = k->args[0] ? 1 : 0;

	if (!k->options)
		return CTL_OK;
	if (l->argc < words + wanted)
		return ctl_usage("%s%s%s needs %s", k->noun, k->verb[0] ? " " : "", k->verb,
				 k->args);
	if (l->argc > words + wanted)
		return ctl_usage("'%s' is one word too many; see hcommctl %s --help",
				 l->argv[words + wanted], k->noun);
	/* it would mean the first one that there is */
	if (wanted && !l->argv[words][0])
		return ctl_usage("%s of %s %s is empty", k->args, k->noun, k->verb);
	return CTL_OK;
}

static int run(struct ctl *c, struct line *l)
{
	const struct command *k;
	int r;

	if (l->version) {
		printf("hcommctl %s\n", HC_VERSION);
		return CTL_OK;
	}
	if (l->argc && l->argv[0][0] == '-')
		return unknown_option(NULL, l->argv[0]);
	if (l->help && !l->argc)
		return print_help(NULL);
	if (!l->argc)
		return ctl_usage("no command; see hcommctl --help");
	if (l->help && is_noun(l->argv[0]))
		return print_help(l->argv[0]);
	r = find_command(l, &k);
	if (!r && k->options)
		r = take_options(c, k, l);
	if (!r)
		r = check_args(k, l);
	return r ? r : k->fn(c, l->argc, l->argv);
}

int main(int argc, char **argv)
{
	struct ctl c = {.timeout_ms = HCOMM_DEFAULT};
	struct line l = {0};
	int r;

	signal(SIGPIPE, SIG_IGN); /* a pager that closed is no death, and no news */
	r = take_globals(&c, &l, argc ? argc - 1 : 0, argv + 1);
	if (!r)
		r = run(&c, &l);
	ctl_close(&c);
	if ((fflush(stdout) || ferror(stdout)) && !r) {
		if (errno != EPIPE)
			ctl_say("standard output: %s", strerror(errno));
		r = CTL_DEGRADED;
	}
	return r;
}
