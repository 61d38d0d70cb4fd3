/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample configuration and the manual page, written from the rows.
 *
 * Both are checked in and made again by `make gen`; a row that changes without them fails the
 * check of generated files. In the sample a line "#name = default" is an option to uncomment and
 * "# ..." is text, so taking one '#' off every line that starts with "#" and a letter gives a
 * file that sets everything to its default.
 */
#include <errno.h>
#include <string.h>

#include "conffile.h"
#include "confprint.h"

#define COLUMNS 92

/* Words of text, each line led by `lead`. */
static void wrap(FILE *f, const char *lead, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > COLUMNS) {
			fputc('\n', f);
			column = 0;
		}
		fputs(column ? " " : lead, f);
		column += column ? 1 : strlen(lead);
		fwrite(text, 1, len, f);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

static void sample_facts(FILE *f, const char *lead, const struct hc_opt *o)
{
	char wanted[256], env[HC_OPT_NAME_MAX + 8], line[1024];

	hc_opt_wanted(o, wanted, sizeof(wanted));
	hc_opt_env_name(o, env, sizeof(env));
	snprintf(line, sizeof(line), "%s.", o->text);
	wrap(f, lead, line);
	snprintf(line, sizeof(line), "Takes %s. %s%s%s", wanted,
		 o->reloadable ? "Follows a reload." : "Needs a restart.", *env ? " " : "", env);
	wrap(f, lead, line);
}

static const char sample_head[] =
	"# hcommd.conf: configuration of hcommd, see hcommd.conf(5).\n"
	"#\n"
	"# Every option is shown at its default. A line is NAME = VALUE; comments have a line of\n"
	"# their own. Files conf.d/*.conf beside this one are read after it, by name; then come "
	"the\n"
	"# environment variables named below, then --set NAME=VALUE of the command line.\n"
	"# hcommctl config check tells what is wrong, hcommctl config show where a value comes "
	"from.\n";

static void sample_top(FILE *f)
{
	size_t n;
	const struct hc_opt *o = hc_opt_table(HC_CONF_TOP, &n);
	const char *group = "";

	for (size_t i = 0; i < n; i++) {
		if (strcmp(group, o[i].group))
			fprintf(f, "\n# ---- %s ----\n", o[i].group);
		group = o[i].group;
		fputc('\n', f);
		sample_facts(f, "# ", &o[i]);
		fprintf(f, "#%s =%s%s\n", o[i].name, *o[i].def ? " " : "", o[i].def);
	}
}

static void sample_section(FILE *f, enum hc_conf_section section, const char *what)
{
	size_t n;
	const struct hc_opt *o = hc_opt_table(section, &n);

	fprintf(f, "\n# ---- %s ----\n\n", o[0].group);
	wrap(f, "# ", what);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "#\n#     %s\n", o[i].name);
		sample_facts(f, "#         ", &o[i]);
	}
}

static const char node_text[] =
	"Where the daemon of another node is found, by its node name or the server_id that rank "
	"tables use for it.";
static const char device_text[] =
	"A device that discovery does not find, or facts that replace what it found. N is the "
	"device number on this node.";
static const char link_text[] =
	"Facts about the link between A and B: two device numbers of this node, or two ports as "
	"NODE:INTERFACE. The order of the two does not matter. Several links between the same two "
	"have a section each, with different types; what such a section says holds for each of the "
	"parallel links of its type. Without a type it speaks of the only link that was found. "
	"[link any any] is the link of type shm that joins any two ranks of this node; it is "
	"always "
	"there, with 20000 MB/s and 4096 virtual channels unless it is said otherwise.";

int hc_conf_write_sample(FILE *f)
{
	fputs(sample_head, f);
	sample_top(f);
	sample_section(f, HC_CONF_NODE, node_text);
	sample_section(f, HC_CONF_DEVICE, device_text);
	sample_section(f, HC_CONF_LINK, link_text);
	return ferror(f) ? -EIO : 0;
}

/* ---- the manual page ---- */

/* Text on lines of its own: sentences end a line, and no line looks like a request. */
static void man_text(FILE *f, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", f);
		start = false;
		if (*text == '\\') {
			fputs("\\e", f);
		} else if (text[0] == '.' && text[1] == ' ') {
			fputs(".\n", f);
			start = true;
			text++;
		} else {
			fputc(*text, f);
		}
	}
	fputs(text[-1] == '.' ? "\n" : ".\n", f);
}

static void man_row(FILE *f, const struct hc_opt *o)
{
	char wanted[256], env[HC_OPT_NAME_MAX + 8], line[512];

	fprintf(f, ".It Ic %s\n", o->name);
	man_text(f, o->text);
	hc_opt_wanted(o, wanted, sizeof(wanted));
	snprintf(line, sizeof(line), "Takes %s", wanted);
	man_text(f, line);
	if (*o->def) {
		snprintf(line, sizeof(line), "Default: %s%s%s", o->def,
			 o->kind == HC_KIND_INT ? " " : "", o->kind == HC_KIND_INT ? o->unit : "");
		man_text(f, line);
	}
	if (o->reloadable)
		man_text(f, "Follows a reload");
	if (*hc_opt_env_name(o, env, sizeof(env)))
		fprintf(f, "Environment:\n.Ev %s .\n", env);
}

static void man_rows(FILE *f, enum hc_conf_section section)
{
	size_t n;
	const struct hc_opt *o = hc_opt_table(section, &n);
	const char *group = "";

	for (size_t i = 0; i < n; i++) {
		if (section == HC_CONF_TOP && strcmp(group, o[i].group))
			fprintf(f, "%s.Ss %s\n.Bl -tag -width Ds\n", *group ? ".El\n" : "",
				o[i].group);
		group = o[i].group;
		man_row(f, &o[i]);
	}
	fputs(".El\n", f);
}

static void man_section(FILE *f, enum hc_conf_section section, const char *what)
{
	size_t n;

	fprintf(f, ".Ss %s\n", hc_opt_table(section, &n)->group);
	man_text(f, what);
	fputs(".Bl -tag -width Ds\n", f);
	man_rows(f, section);
}

static const char man_head[] =
	".\\\" SPDX-License-Identifier: Apache-2.0\n"
	".\\\" Made from conf/options.tbl.h by `make gen`; do not edit.\n"
	".Dd November 29, 2026\n"
	".Dt HCOMMD.CONF 5\n"
	".Os\n"
	".Sh NAME\n"
	".Nm hcommd.conf\n"
	".Nd configuration of hcommd\n"
	".Sh DESCRIPTION\n"
	".Xr hcommd 8\n"
	"runs without a configuration file: every option has a default.\n"
	"The file holds lines of the form\n"
	".Pp\n"
	".D1 Ar name No = Ar value\n"
	".Pp\n"
	"and sections with options of their own.\n"
	"Blanks around name and value do not count.\n"
	"A line that starts with # or ; is a comment; so is the rest of a line from a blank and ;\n"
	"on.\n"
	"A line is at most 2048 bytes long and is never continued on the next.\n"
	"Options outside of any section stand above the first one.\n"
	".Ss Precedence\n"
	"A value is taken from the first of these that gives one:\n"
	".Bl -enum -compact\n"
	".It\n"
	"the command line,\n"
	".Fl -set Ar name Ns = Ns Ar value ;\n"
	".It\n"
	"the environment variable that the option names below;\n"
	".It\n"
	"the files\n"
	".Pa conf.d/*.conf\n"
	"beside the main file, the last by name first;\n"
	".It\n"
	"the main file;\n"
	".It\n"
	"another option that it follows from:\n"
	".Ic profile ,\n"
	".Ic instance ,\n"
	".Ic runtime_dir ;\n"
	".It\n"
	"its default.\n"
	".El\n"
	".Pp\n"
	".Ql hcommctl config show\n"
	"prints every value with the place that it comes from.\n"
	".Ss Errors\n"
	"Unknown names, values that an option does not take, options given twice in one file and\n"
	"options that contradict each other are refused, each with file and line, the value found\n"
	"and what is wanted.\n"
	"The daemon then does not start; on a reload it keeps what it has, and its status shows\n"
	"the error.\n"
	"Numbers are plain decimal digits.\n"
	"Nothing else is read as a number, and no number means\n"
	".Dq no limit .\n"
	".Ql hcommctl config check\n"
	"looks for errors without starting anything.\n"
	".Ss Reload\n"
	"On SIGHUP or\n"
	".Ql hcommctl reload\n"
	"the whole configuration is read again.\n"
	"Options that follow a reload say so below; when any other option has changed, nothing is\n"
	"taken over.\n"
	".Sh OPTIONS\n";

static const char man_middle[] = ".Sh SECTIONS\n"
				 "A section may stand once in a file; a later file adds to it.\n";

static const char man_tail[] =
	".Sh FILES\n"
	".Bl -tag -width Ds\n"
	".It Pa " HC_CONF_FILE_DEFAULT "\n"
	"The main file.\n"
	".It Pa /etc/hcomm/conf.d/*.conf\n"
	"Files read after it, by name.\n"
	"A later one wins.\n"
	".El\n"
	".Sh EXAMPLES\n"
	"A slow network between two sites, and a node that is reached at a given address:\n"
	".Bd -literal -offset indent\n"
	"profile = wan\n"
	"connect_timeout_s = 600\n"
	"\n"
	"[node worker-1]\n"
	"address = 10.71.0.2:16660\n"
	".Ed\n"
	".Sh SEE ALSO\n"
	".Xr hcommctl 1 ,\n"
	".Xr hcomm 7 ,\n"
	".Xr hcommd 8\n";

int hc_conf_write_mdoc(FILE *f)
{
	fputs(man_head, f);
	man_rows(f, HC_CONF_TOP);
	fputs(man_middle, f);
	man_section(f, HC_CONF_NODE, node_text);
	man_section(f, HC_CONF_DEVICE, device_text);
	man_section(f, HC_CONF_LINK, link_text);
	fputs(man_tail, f);
	return ferror(f) ? -EIO : 0;
}
