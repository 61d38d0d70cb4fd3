/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a process that opens a session.
 *
 * Read once, at open, and kept by the session: a later setenv changes nothing half-way. A value
 * that is not understood is refused with the variable, the value and what is allowed, because a
 * time-out that is silently the default is found out only when it matters. A variable that is
 * empty counts as not set: that is how job launchers and unit files take one away.
 *
 * secure_getenv: a set-user-id program must not be sent to another socket or made to append to
 * a file by its caller.
 */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *value_of(const char *name)
{
	const char *v = secure_getenv(name);

	return v && *v ? v : NULL;
}

int hc_env_socket(const char *path, const char *from, char *out)
{
	size_t len = strlen(path);

	if (len > HC_SOCKET_PATH_MAX)
		return hc_refuse(
			HC_E_INVALID,
			"%s: the socket path has %zu bytes; at most %u are possible: %.200s", from,
			len, HC_SOCKET_PATH_MAX, path);
	if (path[0] != '/')
		return hc_refuse(HC_E_INVALID, "%s is '%s'; wanted: an absolute path", from, path);
	memcpy(out, path, len + 1);
	return 0;
}

static int read_socket(struct hc_env *env)
{
	const char *v = value_of("HCOMM_SOCKET");

	return hc_env_socket(v ? v : HC_SOCKET_DEFAULT, "HCOMM_SOCKET", env->socket);
}

static int read_timeout(struct hc_env *env)
{
	const char *v = value_of("HCOMM_TIMEOUT_SEC");
	char *end;
	unsigned long n;

	if (!v)
		return 0;
	errno = 0;
	n = strtoul(v, &end, 10);
	if (v[0] < '0' || v[0] > '9' || *end || errno || n < 1 || n > 86400)
		return hc_refuse(HC_E_INVALID,
				 "HCOMM_TIMEOUT_SEC is '%.200s'; wanted: seconds, 1 to 86400", v);
	env->timeout_ms = (uint32_t)n * 1000;
	return 0;
}

static int read_log(struct hc_env *env)
{
	static const char *const words[] = {"error", "warn", "info", "debug"};
	const char *v = value_of("HCOMM_LOG_LEVEL");
	unsigned i;

	env->log_level = HC_SAY_ERROR;
	env->log_file = value_of("HCOMM_LOG_FILE");
	if (!v)
		return 0;
	for (i = 0; i < 4; i++) {
		if (!strcmp(v, words[i])) {
			env->log_level = (enum hc_say)i;
			return 0;
		}
	}
	return hc_refuse(HC_E_INVALID,
			 "HCOMM_LOG_LEVEL is '%.200s'; wanted: error, warn, info or debug", v);
}

static int read_job(struct hc_env *env)
{
	const char *v = value_of("HCOMM_JOB_ID");
	size_t i, len = v ? strlen(v) : 0;

	if (len > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID,
				 "HCOMM_JOB_ID has %zu bytes; wanted: at most %u: %.200s", len,
				 HC_NAME_MAX, v);
	for (i = 0; i < len; i++) {
		if (v[i] < ' ' || v[i] == 0x7f)
			return hc_refuse(HC_E_INVALID,
					 "HCOMM_JOB_ID has a control character at byte %zu; "
					 "wanted: printable text",
					 i + 1);
	}
	memcpy(env->job, v ? v : "", len + 1);
	return 0;
}

static int read_disable(struct hc_env *env)
{
	const char *v = value_of("HCOMM_DISABLE");

	if (v && strcmp(v, "0") != 0 && strcmp(v, "1") != 0)
		return hc_refuse(HC_E_INVALID, "HCOMM_DISABLE is '%.200s'; wanted: 0 or 1", v);
	env->disabled = v && *v == '1';
	return 0;
}

int hc_env_read(struct hc_env *env)
{
	int r;

	memset(env, 0, sizeof(*env));
	r = read_disable(env);
	if (!r)
		r = read_socket(env);
	if (!r)
		r = read_timeout(env);
	if (!r)
		r = read_log(env);
	if (!r)
		r = read_job(env);
	return r;
}
