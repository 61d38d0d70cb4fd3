/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put, get and fence: values in the table that the domain's home keeps.
 *
 * Each is a request to the daemon, which holds a get or a fence until it can be answered. A value
 * of more than 1 KiB does not come with such an answer but is fetched by a second request, and only
 * a few of those are on their way at once: an answer is queued for this process, and a thousand
 * threads that wait for one long value would make that queue larger than the daemon allows.
 *
 * A fence says which one it is, so that a repeated call whose answer was lost with the daemon is
 * known for what it is.
 *
 * A domain of one rank without a daemon has its table here: what was put and kept.
 */
#include "join.h"
#include "shared.h"

#include <stdlib.h>
#include <string.h>

#define FETCHES 4u /* long values on their way to one session */

/* ---- what we put ---- */

void hc_exchange_free(struct hc_shared *sh)
{
	struct hc_kept *k;

	while ((k = sh->kept)) {
		sh->kept = k->next;
		free(k);
	}
}

static struct hc_kept *keep(struct hc_shared *sh, const char *key, const void *value,
			    uint32_t bytes)
{
	struct hc_kept *k = malloc(sizeof(*k) + bytes);

	if (!k)
		return NULL;
	memset(k, 0, sizeof(*k));
	strcpy(k->key, key); /* its length was checked */
	if (bytes)
		memcpy(k->value, value, bytes);
	k->bytes = bytes;
	k->serial = ++sh->serials;
	k->next = sh->kept;
	sh->kept = k;
	return k;
}

static void let_go(struct hc_shared *sh, struct hc_kept *k)
{
	struct hc_kept **at = &sh->kept;

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	free(k);
}

/* One that was answered, other than `but`. */
static struct hc_kept *kept_of(struct hc_shared *sh, const char *key, const struct hc_kept *but)
{
	struct hc_kept *k = sh->kept;

	while (k && (k == but || k->call || strcmp(k->key, key) != 0))
		k = k->next;
	return k;
}

/* It was answered: of one key the newest stays. */
static void settle(struct hc_shared *sh, struct hc_kept *k, uint64_t version, uint32_t start)
{
	struct hc_kept *old = kept_of(sh, k->key, k);

	k->call = NULL;
	k->version = version;
	k->told = start;
	if (old)
		let_go(sh, old->version < version ? old : k);
}

/* ---- put ---- */

static int check_key(const char *key)
{
	size_t n = key ? strlen(key) : 0, i;

	for (i = 0; i < n; i++)
		if ((unsigned char)key[i] <= ' ' || (unsigned char)key[i] >= 0x7f)
			break;
	if (n && n <= HC_NAME_MAX && i == n)
		return 0;
	return hc_refuse(HC_E_INVALID,
			 "key has %zu bytes; wanted: 1 to %u, printable ASCII without blanks", n,
			 HC_NAME_MAX);
}

static int put_there(struct hc_shared *sh, struct hc_kept *k, uint64_t *version)
{
	struct hc_m_put m = {.id = sh->id,
			     .epoch = sh->epoch,
			     .rank = sh->rank,
			     .key = hc_str(k->key),
			     .value = {(const char *)k->value, k->bytes}};
	struct hc_m_done done = {0};
	struct hc_call c;
	int r;

	hc_call_init(&c, HC_MSG_done);
	k->call = &c;
	r = hc_shared_ask(sh, &c, &hc_desc_put, &m, hc_deadline(HC_REQUEST_MS));
	if (!r && hc_call_answer(&sh->session->sess, &c, &hc_desc_done, &done))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `done`");
	*version = done.value;
	hc_call_fini(&c);
	return r;
}

/* The lock is held. */
static int put(struct hc_shared *sh, const char *key, const void *value, uint32_t bytes)
{
	struct hc_kept *k = keep(sh, key, value, bytes);
	uint64_t version = k ? k->serial : 0;
	int r = 0;

	if (!k)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for a value of %u bytes", bytes);
	if (sh->session)
		r = put_there(sh, k, &version);
	if (r)
		let_go(sh, k);
	else
		settle(sh, k, version, sh->session ? sh->session->start : 0);
	return r;
}

int hc_exchange_put(struct hc_shared *sh, const char *key, const void *value, uint32_t bytes)
{
	int r;

	pthread_mutex_lock(sh->lock);
	r = put(sh, key, value, bytes);
	pthread_mutex_unlock(sh->lock);
	return r;
}

HC_EXPORT int hcomm_put(hcomm_domain domain, const char *key, const void *value, uint32_t bytes)
{
	struct hc_shared *sh;
	int r = check_key(key);

	if (!r && !strncmp(key, "hcomm/", 6))
		r = hc_refuse(HC_E_INVALID,
			      "key %s: those that begin with hcomm/ are the library's", key);
	if (!r && (bytes > HCOMM_VALUE_BYTES || (bytes && !value)))
		r = hc_refuse(HC_E_INVALID, "a value of %u bytes at %p; wanted: at most %u", bytes,
			      value, HCOMM_VALUE_BYTES);
	if (!r)
		r = hc_shared_enter(domain, &sh);
	if (r)
		return -r;
	r = put(sh, key, value, bytes);
	hc_shared_leave(sh);
	return -r;
}

/* ---- get ---- */

static int too_long(const char *key, uint32_t bytes, uint32_t *room)
{
	const uint32_t cap = *room;

	*room = bytes;
	return hc_refuse(HC_E_BUFFER_OVERFLOW, "the value of %s has %u bytes, the room is %u", key,
			 bytes, cap);
}

/* Into a buffer of *room bytes. */
static int give(const char *key, const void *value, uint32_t bytes, void *out, uint32_t *room)
{
	if (bytes > *room)
		return too_long(key, bytes, room);
	*room = bytes;
	if (bytes)
		memcpy(out, value, bytes);
	return 0;
}

/* One request. Its answer stays in *c. */
static int ask(struct hc_shared *sh, const struct hc_m_get *m, uint64_t deadline, struct hc_call *c,
	       struct hc_m_get_r *a)
{
	int r;

	hc_call_init(c, HC_MSG_get_r);
	r = hc_shared_ask(sh, c, &hc_desc_get, m, deadline);
	if (!r && (hc_call_answer(&sh->session->sess, c, &hc_desc_get_r, a) ||
		   (a->value.len && a->value.len != a->bytes)))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `get_r`");
	return r;
}

static int await_turn(struct hcomm_session *s, uint64_t deadline)
{
	while (s->fetching >= FETCHES)
		if (hc_wait_apart(s, &s->turn, deadline))
			return hc_refuse(HC_E_TIMEOUT, "other values are still on their way");
	return 0;
}

/* A long value, which is there. */
static int fetch(struct hc_shared *sh, struct hc_m_get *m, void *value, uint32_t *room,
		 uint64_t *version)
{
	struct hcomm_session *s = sh->session;
	uint64_t deadline = hc_deadline(HC_REQUEST_MS);
	struct hc_m_get_r a = {0};
	char key[HC_NAME_MAX + 1];
	struct hc_call c;
	int r = await_turn(s, deadline);

	if (r)
		return r;
	m->timeout_ms = 0;
	m->whole = 1;
	s->fetching++;
	r = ask(sh, m, deadline, &c, &a);
	s->fetching--;
	pthread_cond_signal(&s->turn);
	if (!r)
		r = give(hc_str_copy(m->key, key, sizeof(key)), a.value.p, a.bytes, value, room);
	*version = a.version;
	hc_call_fini(&c);
	return r;
}

/* The lock is held; waits, up to `deadline` of ours, when m->timeout_ms is not 0. */
static int get(struct hc_shared *sh, struct hc_m_get *m, uint64_t deadline, void *value,
	       uint32_t *room, uint64_t *version)
{
	struct hc_m_get_r a = {0};
	char key[HC_NAME_MAX + 1];
	struct hc_call c;
	bool more;
	int r;

	hc_str_copy(m->key, key, sizeof(key));
	r = ask(sh, m, deadline, &c, &a);
	*version = a.version;
	more = !r && a.bytes && !a.value.len && (!m->known || a.version != m->known);
	if (!r && !more)
		r = give(key, a.value.p, a.value.len, value, room);
	else if (more && a.bytes > *room) /* it need not come */
		r = too_long(key, a.bytes, room);
	else if (more)
		r = fetch(sh, m, value, room, version);
	hc_call_fini(&c);
	return r;
}

static struct hc_m_get question(const struct hc_shared *sh, const char *key)
{
	return (struct hc_m_get){
		.id = sh->id, .epoch = sh->epoch, .rank = sh->rank, .key = hc_str(key)};
}

static int get_kept(struct hc_shared *sh, const char *key, bool wait, void *value, uint32_t *room)
{
	const struct hc_kept *k = kept_of(sh, key, NULL);

	if (k)
		return give(key, k->value, k->bytes, value, room);
	return hc_refuse(wait ? HC_E_TIMEOUT : HC_E_NOT_FOUND,
			 "nobody but this rank could put the key %s, and it has not", key);
}

int hc_exchange_look(struct hc_shared *sh, const char *key, uint64_t known, void *value,
		     uint32_t *room, uint64_t *version)
{
	struct hc_m_get m = question(sh, key);
	int r;

	m.known = known;
	*version = 0;
	pthread_mutex_lock(sh->lock);
	if (sh->session)
		r = get(sh, &m, hc_deadline(HC_REQUEST_MS), value, room, version);
	else
		r = get_kept(sh, key, false, value, room);
	pthread_mutex_unlock(sh->lock);
	return r;
}

static int get_from(struct hc_shared *sh, const char *key, void *value, uint32_t *room,
		    int timeout_ms)
{
	struct hc_m_get m = question(sh, key);
	uint64_t deadline, version;
	uint32_t ms;
	int r;

	if (!sh->session)
		return get_kept(sh, key, timeout_ms != HCOMM_START, value, room);
	r = hc_timeout(sh->session, timeout_ms, sh->session->connect_timeout_ms, &ms, &deadline);
	if (r)
		return r;
	if (timeout_ms == HCOMM_START)
		return get(sh, &m, hc_deadline(HC_REQUEST_MS), value, room, &version);
	m.timeout_ms = ms ? ms : sh->session->connect_timeout_ms;
	if (deadline < HC_FOREVER - HC_SLACK_MS * HC_MS)
		deadline += HC_SLACK_MS * HC_MS; /* the daemon answers at its own */
	return get(sh, &m, deadline, value, room, &version);
}

HC_EXPORT int hcomm_get(hcomm_domain domain, const char *key, void *value, uint32_t *bytes,
			int timeout_ms)
{
	struct hc_shared *sh;
	int r = check_key(key);

	if (!r && (!bytes || (*bytes && !value)))
		r = hc_refuse(HC_E_INVALID, "bytes or value is NULL; wanted: where to put it");
	if (!r && timeout_ms < HCOMM_DEFAULT)
		r = hc_refuse(
			HC_E_INVALID,
			"timeout_ms is %d; wanted: milliseconds, HCOMM_START or HCOMM_DEFAULT",
			timeout_ms);
	if (!r)
		r = hc_shared_enter(domain, &sh);
	if (r)
		return -r;
	r = get_from(sh, key, value, bytes, timeout_ms);
	hc_shared_leave(sh);
	return -r;
}

/* ---- fence ---- */

static int fence(struct hc_shared *sh, uint32_t ms, uint64_t deadline)
{
	struct hc_m_fence m = {.id = sh->id,
			       .epoch = sh->epoch,
			       .number = sh->counted ? sh->fences + 1 : 0,
			       .timeout_ms = ms};
	struct hc_m_done done = {0};
	struct hc_call c;
	uint8_t *bytes;
	int r = hc_shared_ranks(sh, &m.ranks, &bytes);

	hc_call_init(&c, HC_MSG_done);
	if (!r)
		r = hc_shared_ask(sh, &c, &hc_desc_fence, &m, deadline);
	if (!r && hc_call_answer(&sh->session->sess, &c, &hc_desc_done, &done))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `done`");
	if (!r) {
		sh->fences = done.value;
		sh->counted = true;
	}
	hc_call_fini(&c);
	free(bytes);
	return r;
}

static int begin_fence(struct hc_shared *sh, int timeout_ms)
{
	uint64_t deadline;
	uint32_t ms;
	int r;

	if (!sh->session)
		return 0;
	if (sh->fencing)
		return hc_refuse(HC_E_INVALID, "another thread is in hcomm_fence of this handle");
	r = hc_timeout(sh->session, timeout_ms, sh->session->connect_timeout_ms, &ms, &deadline);
	if (r)
		return r;
	if (deadline < HC_FOREVER - HC_SLACK_MS * HC_MS)
		deadline += HC_SLACK_MS * HC_MS;
	sh->fencing = true;
	r = fence(sh, ms, deadline);
	sh->fencing = false;
	return r;
}

HC_EXPORT int hcomm_fence(hcomm_domain domain, int timeout_ms)
{
	struct hc_shared *sh;
	int r = 0;

	if (timeout_ms == HCOMM_START)
		r = hc_refuse(HC_E_INVALID, "timeout_ms is 0; wanted: a time to wait");
	if (!r)
		r = hc_shared_enter(domain, &sh);
	if (r)
		return -r;
	r = begin_fence(sh, timeout_ms);
	hc_shared_leave(sh);
	return -r;
}
