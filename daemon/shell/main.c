/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommd: the command line, and the three calls that are the daemon's life.
 *
 * It stays in the foreground; a service manager takes care of the rest. Exit status: 0 after
 * SIGTERM or SIGINT, 1 when it could not run, 2 when the command line or the configuration is
 * refused, each with one clear line for each fault.
 */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "netif.h"
#include "shellimp.h"

#define SETS_MAX 64

enum { OPT_CONFIG = 256, OPT_CONF_DIR, OPT_SET, OPT_CHECK, OPT_FOREGROUND, OPT_VERSION, OPT_HELP };

static const char help[] =
	"usage: hcommd [--config FILE] [--conf-dir DIR] [--set NAME=VALUE]... [--check-config]\n"
	"\n"
	"  --config FILE      main configuration file (default " HC_CONF_FILE_DEFAULT ")\n"
	"  --conf-dir DIR     directory of further files (default: conf.d beside the main file)\n"
	"  --set NAME=VALUE   set an option; stronger than files and environment; repeatable\n"
	"  --check-config     check the configuration and exit\n"
	"  --foreground       stay in the foreground (always so)\n"
	"  --version          print the version and exit\n"
	"  --help             print this and exit\n";

struct command {
	const char *sets[SETS_MAX];
	struct hc_conf_source source;
	bool check;
};

static const struct option options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"conf-dir", required_argument, NULL, OPT_CONF_DIR},
	{"set", required_argument, NULL, OPT_SET},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"foreground", no_argument, NULL, OPT_FOREGROUND},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int add_set(struct command *cmd, const char *text)
{
	if (cmd->source.nsets == SETS_MAX) {
		fprintf(stderr, "hcommd: more than %d --set options\n", SETS_MAX);
		return HC_EXIT_REFUSED;
	}
	cmd->sets[cmd->source.nsets++] = text;
	return -1;
}

static int print(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) ? HC_EXIT_FAILED : HC_EXIT_OK;
}

/* -1: go on; else the exit status. */
static int take_option(struct command *cmd, int option)
{
	switch (option) {
	case OPT_CONFIG: cmd->source.file = optarg; return -1;
	case OPT_CONF_DIR: cmd->source.dir = optarg; return -1;
	case OPT_SET: return add_set(cmd, optarg);
	case OPT_CHECK: cmd->check = true; return -1;
	case OPT_FOREGROUND: return -1;
	case OPT_VERSION: return print("hcommd " HC_VERSION "\n");
	case OPT_HELP: return print(help);
	default: return HC_EXIT_REFUSED; /* getopt said what is wrong */
	}
}

static int read_command(int argc, char **argv, struct command *cmd)
{
	int option, r = -1;

	cmd->source.env = environ;
	cmd->source.sets = cmd->sets;
	while (r < 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		r = take_option(cmd, option);
	if (r < 0 && optind < argc) {
		fprintf(stderr, "hcommd: '%s' is no option; hcommd --help lists them\n",
			argv[optind]);
		r = HC_EXIT_REFUSED;
	}
	return r;
}

static int load(struct hc_shell *sh)
{
	struct hc_conf_error *err = calloc(1, sizeof(*err));
	int r = err ? hc_conf_load(&sh->conf, &sh->source, err) : -1;
	unsigned i;

	if (r < 0)
		fprintf(stderr, "hcommd: out of memory\n");
	for (i = 0; r > 0 && i < err->count; i++)
		fprintf(stderr, "hcommd: %s\n", err->line[i]);
	if (r > 0 && err->more)
		fprintf(stderr, "hcommd: and %u more\n", err->more);
	free(err);
	if (!r)
		return 0;
	return r < 0 ? HC_EXIT_FAILED : HC_EXIT_REFUSED;
}

static int check(struct hc_shell *sh)
{
	struct hc_devices devices;
	struct hc_link_facts links;
	char why[HC_WHY_BYTES];
	int r = hc_netif_check(&sh->conf, why, sizeof(why));

	if (!r)
		r = hc_devices_find(&sh->conf, &devices, why, sizeof(why));
	if (!r) {
		r = hc_links_find(&sh->conf, &devices, &links, why, sizeof(why));
		if (r)
			hc_devices_fini(&devices);
	}
	if (r) {
		fprintf(stderr, "hcommd: %s\n", r < 0 ? "out of memory" : why);
		return r < 0 ? HC_EXIT_FAILED : HC_EXIT_REFUSED;
	}
	printf("configuration is well: %u files, %u devices\n", sh->conf.nfiles, devices.count);
	hc_links_fini(&links);
	hc_devices_fini(&devices);
	return HC_EXIT_OK;
}

int main(int argc, char **argv)
{
	static struct hc_shell sh;
	struct command cmd = {.check = false};
	int r = read_command(argc, argv, &cmd);

	if (r >= 0)
		return r;
	mallopt(M_ARENA_MAX, 1);               /* two quiet threads need no heaps of their own */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* always: what a rush needed goes back after it */
	mallopt(M_TRIM_THRESHOLD, 256 * 1024); /* and the end of the heap not page by page */
	sh.lock_fd = sh.sock.fd = -1;
	sh.source = cmd.source;
	r = load(&sh);
	if (r)
		return r;
	if (cmd.check) {
		r = check(&sh);
		hc_conf_fini(&sh.conf);
		return r;
	}
	hc_log_open((enum hc_log_target)sh.conf.log_target, (enum hc_level)sh.conf.log_level,
		    sh.conf.log_rate);
	if (!hc_shell_start(&sh))
		hc_shell_run(&sh);
	hc_shell_stop(&sh);
	return sh.exit_status;
}
