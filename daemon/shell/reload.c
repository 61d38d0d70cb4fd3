/* SPDX-License-Identifier: Apache-2.0 */
/* Reload; see reload.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "log.h"
#include "reload.h"
#include "sd.h"
#include "shellnet.h"

#define NAMES_BYTES 600

struct reload {
	struct hc_job job; /* first */
	struct hc_shell *sh;
	uint64_t session;
	uint32_t id;
	struct hc_conf conf;
	struct hc_devices devices;
	struct hc_link_facts links;
	bool loaded;
	char why[1400];          /* empty: all is well */
	char fixed[NAMES_BYTES]; /* changed options that need a restart */
};

/* ---- the worker's part: reading ---- */

static void read_all(struct hc_job *job)
{
	struct reload *r = (struct reload *)job;
	struct hc_conf_error *err = calloc(1, sizeof(*err));
	int rc;

	r->why[0] = '\0';
	rc = err ? hc_conf_load(&r->conf, &r->sh->source, err) : -ENOMEM;
	if (rc) {
		snprintf(r->why, sizeof(r->why), "%.1300s%s",
			 rc == HC_CONF_REFUSED ? err->line[0] : "out of memory",
			 rc == HC_CONF_REFUSED && err->count + err->more > 1 ? " (and more)" : "");
		free(err);
		return;
	}
	free(err);
	r->loaded = true;
	rc = hc_devices_find(&r->conf, &r->devices, r->why, sizeof(r->why));
	if (!rc)
		rc = hc_links_find(&r->conf, &r->devices, &r->links, r->why, sizeof(r->why));
	if (rc < 0)
		snprintf(r->why, sizeof(r->why), "out of memory");
}

/* ---- the main loop's part: judging and taking over ---- */

static void note_change(void *arg, const struct hc_conf_change *change)
{
	struct reload *r = arg;
	size_t n = strlen(r->fixed);

	if (!change->reloadable && n + strlen(change->label) + 3 < sizeof(r->fixed))
		snprintf(r->fixed + n, sizeof(r->fixed) - n, "%s%s", n ? ", " : "", change->label);
}

static bool judge(struct reload *r)
{
	if (r->why[0])
		return false;
	if (hc_conf_diff(&r->sh->conf, &r->conf, note_change, r)) {
		snprintf(r->why, sizeof(r->why), "changed, but only a restart takes it: %s",
			 r->fixed);
		return false;
	}
	return true;
}

static bool same_fact(const struct hc_device_fact *a, const struct hc_device_fact *b)
{
	return !memcmp(a, b, sizeof(*a)); /* both were zeroed before they were filled */
}

static void tell_devices(struct hc_shell *sh, const struct hc_devices *now)
{
	const struct hc_device_fact *known;
	struct hc_device_fact gone;
	uint32_t i;

	for (i = 0; i < sh->devices.count; i++) {
		if (hc_devices_get(now, sh->devices.facts[i].index))
			continue;
		gone = sh->devices.facts[i];
		gone.present = false;
		hc_loop_device(sh->loop, &gone);
	}
	for (i = 0; i < now->count; i++) {
		known = hc_devices_get(&sh->devices, now->facts[i].index);
		if (!known || !same_fact(known, &now->facts[i]))
			hc_loop_device(sh->loop, &now->facts[i]);
	}
}

static void tell_links(struct hc_shell *sh, const struct hc_link_facts *now)
{
	const struct hc_link_fact *known;
	struct hc_link_fact gone;
	uint32_t i;

	for (i = 0; i < sh->links.count; i++) {
		if (hc_links_get(now, &sh->links.facts[i]))
			continue;
		gone = sh->links.facts[i];
		gone.present = false;
		hc_loop_link(sh->loop, &gone);
	}
	for (i = 0; i < now->count; i++) {
		known = hc_links_get(&sh->links, &now->facts[i]);
		if (!known || memcmp(known, &now->facts[i], sizeof(*known)))
			hc_loop_link(sh->loop, &now->facts[i]);
	}
}

static void take_over(struct reload *r)
{
	struct hc_shell *sh = r->sh;
	struct hc_store_limits limits = {r->conf.journal_days, r->conf.journal_rows};
	struct hc_settings set;

	tell_devices(sh, &r->devices);
	tell_links(sh, &r->links);
	hc_shellnet_reload(sh, &r->conf);
	hc_devices_fini(&sh->devices);
	sh->devices = r->devices;
	hc_links_fini(&sh->links);
	sh->links = r->links;
	hc_conf_fini(&sh->conf);
	sh->conf = r->conf;
	sh->generation++;
	hc_log_set((enum hc_level)sh->conf.log_level, sh->conf.log_rate);
	hc_ctl_set(sh->ctl, sh->conf.table_bytes_max, sh->conf.allow_foreign_pidns);
	hc_store_set_limits(sh->store, &limits);
	hc_shell_settings(sh, &sh->conf, &set);
	hc_loop_settings(sh->loop, &set);
	sh->reload_failed[0] = '\0';
	hc_log(HC_LOG_INFO, "configuration reloaded");
	hc_store_note(sh->store, HC_W_event_code_CONFIG_RELOADED, "configuration reloaded");
}

static void refuse(struct reload *r)
{
	struct hc_shell *sh = r->sh;
	time_t now = time(NULL);
	char stamp[40];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(sh->reload_failed, sizeof(sh->reload_failed), "reload failed at %s: %s", stamp,
		 r->why);
	hc_log(HC_LOG_ERROR, "reload failed, nothing is changed: %s", r->why);
	hc_store_note(sh->store, HC_W_event_code_CONFIG_REFUSED, r->why);
	hc_links_fini(&r->links);
	hc_devices_fini(&r->devices);
	if (r->loaded)
		hc_conf_fini(&r->conf);
}

static void finish(struct hc_job *job)
{
	struct reload *r = (struct reload *)job;
	struct hc_shell *sh = r->sh;

	if (judge(r)) {
		take_over(r);
		if (r->session)
			hc_ctl_done(sh->ctl, r->session, r->id, "configuration reloaded");
	} else {
		refuse(r);
		if (r->session)
			hc_ctl_refuse(sh->ctl, r->session, r->id, HC_E_INVALID, r->why);
	}
	sh->reloading = false;
	hc_shell_tell_manager(sh, true);
	free(r);
}

void hc_reload(struct hc_shell *sh, uint64_t session, uint32_t id)
{
	struct reload *r = sh->reloading ? NULL : calloc(1, sizeof(*r));

	if (!r) {
		if (session)
			hc_ctl_refuse(sh->ctl, session, id, HC_E_BUSY,
				      "a reload is under way already");
		return;
	}
	sh->reloading = true;
	hc_sd_reloading();
	r->job.run = read_all;
	r->job.done = finish;
	r->sh = sh;
	r->session = session;
	r->id = id;
	strcpy(r->why, "the daemon is stopping"); /* unless it is read */
	hc_worker_submit(sh->worker, &r->job);
}
