/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load libhcomm.so.1 at run time: for hosts (collective libraries, frameworks) that have to work
 * with and without hcomm and therefore must not be linked with it.
 *
 *	static struct hcomm_loader hcomm;
 *
 *	if (hcomm_load(&hcomm, NULL, HCOMM_VERSION))
 *		... no hcomm: single-device mode; hcomm.why says why, in one line ...
 *	else
 *		hcomm.open(NULL, &session);
 *
 * All or nothing: hcomm_load returns 0 and every pointer is set, or a negative HCOMM_E_* and all of
 * them are NULL. NO_DAEMON: there is no library, or HCOMM_DISABLE=1, so fall back. VERSION: there
 * is one, and it is too old or too new; `why` names both versions and the side to upgrade.
 *
 * Everything is in this header, as static inline functions: the host needs only libc (and -ldl
 * where dlopen is not in it). The library is loaded with RTLD_LOCAL, so its names do not mix with
 * others, and only by its soname, so that a library of another ABI is never taken.
 */
#ifndef HCOMM_LOADER_H
#define HCOMM_LOADER_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hcomm/hcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCOMM_LIBRARY "libhcomm.so.1"

/* X(name, result, arguments): the calls that a host needs. Rows are only appended. */
/* clang-format off */
#define HCOMM_LOADER_CALLS(X)                                                                      \
	X(version, const char *, (void))                                                           \
	X(version_number, uint32_t, (void))                                                        \
	X(check_version, int, (uint32_t))                                                          \
	X(error_string, const char *, (int))                                                       \
	X(error_name, const char *, (int))                                                         \
	X(error_explain, const char *, (int))                                                      \
	X(to_hccl, int, (int))                                                                     \
	X(to_nccl, int, (int))                                                                     \
	X(last_error, const char *, (void))                                                        \
	X(retry_after, uint32_t, (void))                                                           \
	X(open, int, (const struct hcomm_open_args *, struct hcomm_session **))                    \
	X(close, void, (struct hcomm_session *))                                                   \
	X(fd, int, (struct hcomm_session *))                                                       \
	X(dispatch, int, (struct hcomm_session *, int))                                            \
	X(ping, int, (struct hcomm_session *, int))                                                \
	X(session_get, int, (struct hcomm_session *, struct hcomm_session_info *))                 \
	X(root_info, int, (struct hcomm_session *, uint32_t, const struct hcomm_config *,          \
			   struct hcomm_root_info *))                                              \
	X(join, int, (struct hcomm_session *, const struct hcomm_root_info *, uint32_t, uint32_t,  \
		      uint32_t, const struct hcomm_config *, int, hcomm_domain *))                 \
	X(join_table, int, (struct hcomm_session *, const char *, uint32_t,                        \
			    const struct hcomm_config *, int, hcomm_domain *))                     \
	X(join_all_local, int, (struct hcomm_session *, const uint32_t *, uint32_t,                \
				const struct hcomm_config *, int, hcomm_domain *))                 \
	X(attach, int, (struct hcomm_session *, const char *, uint32_t,                            \
			const struct hcomm_config *, int, hcomm_domain *))                         \
	X(sub, int, (hcomm_domain, const uint32_t *, uint32_t, uint64_t,                           \
		     const struct hcomm_config *, int, hcomm_domain *))                            \
	X(split, int, (hcomm_domain, int32_t, int32_t, const struct hcomm_config *, int,           \
		       hcomm_domain *))                                                            \
	X(leave, int, (hcomm_domain, int))                                                         \
	X(destroy, int, (hcomm_domain, int))                                                       \
	X(abort, int, (hcomm_domain, const char *))                                                \
	X(status_get, int, (hcomm_domain, struct hcomm_status *))                                  \
	X(rank, int, (hcomm_domain, uint32_t *))                                                   \
	X(nranks, int, (hcomm_domain, uint32_t *))                                                 \
	X(members, int, (hcomm_domain, struct hcomm_member *, uint32_t *))                         \
	X(on_event, int, (struct hcomm_session *, hcomm_event_fn, void *))                         \
	X(subscribe, int, (struct hcomm_session *, uint64_t, int))                                 \
	X(op_begin, int, (hcomm_domain, enum hcomm_op_kind, uint64_t, uint32_t, struct hcomm_op *)) \
	X(op_begin_rank, int, (hcomm_domain, uint32_t, enum hcomm_op_kind, uint64_t, uint32_t,     \
			       struct hcomm_op *))                                                 \
	X(op_end, int, (struct hcomm_op *))
/* clang-format on */

struct hcomm_loader {
	void *library; /* of dlopen, NULL while not loaded */
#define HCOMM_LOADER_FIELD(name, result, arguments) result(*name) arguments;
	HCOMM_LOADER_CALLS(HCOMM_LOADER_FIELD)
#undef HCOMM_LOADER_FIELD
	char why[512]; /* after a failure: one line for people */
};

static inline void hcomm_unload(struct hcomm_loader *l)
{
	char why[sizeof(l->why)];

	if (l->library)
		dlclose(l->library);
	memcpy(why, l->why, sizeof(why));
	memset(l, 0, sizeof(*l));
	memcpy(l->why, why, sizeof(why));
}

/* Set *call, a function pointer; ISO C has no cast for that. False when it is not there. */
static inline int hcomm_loader_find(struct hcomm_loader *l, const char *symbol, void *call,
				    size_t bytes)
{
	void *address = dlsym(l->library, symbol);

	if (address)
		memcpy(call, &address, bytes);
	return address != NULL;
}

static inline int hcomm_loader_fail(struct hcomm_loader *l, int error)
{
	hcomm_unload(l);
	return error;
}

static inline int hcomm_loader_check(struct hcomm_loader *l, uint32_t needs)
{
	uint32_t found;

	if (!hcomm_loader_find(l, "hcomm_version_number", (void *)&l->version_number,
			       sizeof(l->version_number)) ||
	    !hcomm_loader_find(l, "hcomm_check_version", (void *)&l->check_version,
			       sizeof(l->check_version))) {
		snprintf(l->why, sizeof(l->why), "%s has no hcomm_check_version: it is no libhcomm",
			 HCOMM_LIBRARY);
		return HCOMM_E_VERSION;
	}
	if (!l->check_version(needs))
		return 0;
	found = l->version_number();
	snprintf(l->why, sizeof(l->why), "found %u.%u, needs %u.%u: %s", (unsigned)(found >> 16),
		 (unsigned)(found >> 8 & 0xff), (unsigned)(needs >> 16),
		 (unsigned)(needs >> 8 & 0xff),
		 found < needs ? "upgrade hcomm" : "build the host for this hcomm");
	return HCOMM_E_VERSION;
}

/* `path` NULL: libhcomm.so.1 where the dynamic linker finds it. `needs`: HCOMM_VERSION that the
 * host was built with, or an older one that is enough for it. */
static inline int hcomm_load(struct hcomm_loader *l, const char *path, uint32_t needs)
{
	const char *disable = getenv("HCOMM_DISABLE");
	const char *missing = NULL;
	const char *fault;
	int r;

	memset(l, 0, sizeof(*l));
	if (disable && !strcmp(disable, "1")) {
		snprintf(l->why, sizeof(l->why), "HCOMM_DISABLE=1: hcomm is not to be used");
		return HCOMM_E_NO_DAEMON;
	}
	l->library = dlopen(path ? path : HCOMM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!l->library) {
		fault = dlerror();
		snprintf(l->why, sizeof(l->why), "no hcomm: %s", fault ? fault : "dlopen failed");
		return HCOMM_E_NO_DAEMON;
	}
	r = hcomm_loader_check(l, needs);
	if (r)
		return hcomm_loader_fail(l, r);
#define HCOMM_LOADER_FIND(name, result, arguments)                                                 \
	if (!missing && !hcomm_loader_find(l, "hcomm_" #name, (void *)&l->name, sizeof(l->name)))  \
		missing = "hcomm_" #name;
	HCOMM_LOADER_CALLS(HCOMM_LOADER_FIND)
#undef HCOMM_LOADER_FIND
	if (missing) {
		snprintf(l->why, sizeof(l->why), "%s %s has no %s: upgrade hcomm", HCOMM_LIBRARY,
			 l->version ? l->version() : "?", missing);
		return hcomm_loader_fail(l, HCOMM_E_VERSION);
	}
	return 0;
}

#ifdef __cplusplus
}
#endif
#endif
