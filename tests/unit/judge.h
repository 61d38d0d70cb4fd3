/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the tests of proto/file: a good file as a text, an edit that spoils it in one way,
 * and the verdict that must come. Texts use ' for ", so that they can be read.
 */
#ifndef HC_JUDGE_H
#define HC_JUDGE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hostfile.h"
#include "ranktable.h"
#include "topofile.h"

enum reader { TABLE, TOPOLOGY };

/* One edit of a good text. The first `from` is replaced; `word` must be in the message. */
struct edit {
	const char *from, *to;
	enum hc_verdict_kind kind;
	const char *path, *word;
};

static const char table_1[] =
	"{'version':'1.0','status':'completed','server_count':'2','server_list':[\n"
	" {'server_id':'node_a','host_ip':'192.0.2.1','device':[\n"
	"  {'device_id':'0','device_ip':'192.0.2.10','rank_id':'0','host_port':'60000'},\n"
	"  {'device_id':'1','device_ip':'192.0.2.11','rank_id':'1','host_port':'60001'}]},\n"
	" {'server_id':'node_b','device':[\n"
	"  {'device_id':'0','device_ip':'198.51.100.10','rank_id':'2'},\n"
	"  {'device_id':'1','device_ip':'198.51.100.11','rank_id':'3','device_port':'17000'}]}]}";

static const char table_12[] =
	"{'version':'1.2','status':'completed','server_count':'3','server_list':[\n"
	" {'server_id':'sa','device':[\n"
	"  {'device_id':'0','super_device_id':'10','device_ip':'10.0.0.1','rank_id':'0',\n"
	"   'backup_device_ip':'10.0.0.2'},\n"
	"  {'device_id':'1','super_device_id':'11','device_ip':'10.0.0.2','rank_id':'1',\n"
	"   'backup_device_ip':'10.0.0.1','backup_device_port':'16668'}]},\n"
	" {'server_id':'sb','device':[\n"
	"  {'device_id':'0','super_device_id':'12','device_ip':'10.0.0.3','rank_id':'2'}]},\n"
	" {'server_id':'sc','device':[\n"
	"  {'device_id':'0','super_device_id':'10','device_ip':'10.0.0.4','rank_id':'3'}]}],\n"
	" 'super_pod_list':[{'super_pod_id':'p0','server_list':[{'server_id':'sa'},{'server_id':'"
	"sb'}]},\n"
	"  {'super_pod_id':'p1','server_list':[{'server_id':'sc'}]}]}";

static const char table_2[] =
	"{'version':'2.0','status':'completed','rank_count':2,'rank_list':[\n"
	" {'rank_id':0,'local_id':0,'device_id':0,'device_port':17001,'level_list':[\n"
	"  {'net_layer':0,'net_instance_id':'srv-1','net_type':'TOPO_FILE_DESC','net_attr':'',\n"
	"   'rank_addr_list':[{'addr_type':'EID','addr':'000000000000002000100000df000001',\n"
	"    'ports':['0/1'],'plane_id':'0'}]},\n"
	"  {'net_layer':2,'net_instance_id':'pod','net_type':'CLOS',\n"
	"   'rank_addr_list':[{'addr_type':'IPV4','addr':'192.0.2.30','ports':['0/2','d2h']}]}]},\n"
	" {'rank_id':1,'local_id':1,'device_id':1,'level_list':[\n"
	"  {'net_layer':0,'net_instance_id':'srv-2','net_type':'TOPO_FILE_DESC',\n"
	"   'rank_addr_list':[{'addr_type':'EID','addr':'000000000000002000100000df000002',\n"
	"    'ports':['0/1']}]},\n"
	"  {'net_layer':2,'net_instance_id':'pod','net_type':'CLOS',\n"
	"   'rank_addr_list':[{'addr_type':'IPV4','addr':'192.0.2.31','ports':['0/2']}]}]}]}";

static const char topo_2[] =
	"{'version':'2.0','peer_count':3,'peer_list':[{'local_id':0},{'local_id':1},{'local_id':7}]"
	",\n"
	" 'edge_count':3,'edge_list':[\n"
	" {'net_layer':0,'link_type':'PEER2PEER','protocols':['UB_CTP','HCCS'],'local_a':0,\n"
	"  'local_a_ports':['1/0'],'local_b':1,'local_b_ports':['1/0'],'topo_type':'1DMESH'},\n"
	" {'net_layer':1,'link_type':'PEER2NET','protocols':['ROCE'],'local_a':0,\n"
	"  'local_a_ports':['0/4','d2h'],'topo_instance_id':3,'position':'HOST'},\n"
	" {'net_layer':1,'link_type':'PEER2NET','protocols':['TCP'],'local_a':7,\n"
	"  'local_a_ports':['0/4','d2h']}]}";

static struct hc_verdict v;
static struct hc_roster *roster;
static struct hc_topo *topo;

static inline char *quoted(const char *text)
{
	char *s = strdup(text), *p;

	ck_assert_ptr_nonnull(s);
	for (p = s; *p; p++)
		if (*p == '\'')
			*p = '"';
	return s;
}

/* `text` with its first `from` replaced by `to`. */
static inline char *edited(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	size_t n = strlen(text) + strlen(to) + 1;
	char *s = malloc(n);

	ck_assert_msg(at != NULL, "the text has no %s", from);
	ck_assert_ptr_nonnull(s);
	snprintf(s, n, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return s;
}

static inline void let_go(void)
{
	hc_ranktable_free(roster);
	hc_topofile_free(topo);
	roster = NULL;
	topo = NULL;
}

/* The bytes as they are; the verdict is in v, the result in roster or topo. */
static inline int judge_bytes(enum reader reader, const void *data, size_t len)
{
	struct hc_jsontext in;
	char *copy = malloc(len ? len : 1); /* exactly as long, so that sanitizers see overreads */
	int r;

	ck_assert_ptr_nonnull(copy);
	if (len)
		memcpy(copy, data, len);
	let_go();
	hc_verdict_init(&v);
	r = hc_jsontext_set(copy, len, 64 << 20, &in, &v);
	if (!r)
		r = reader == TABLE ? hc_ranktable_read(&in, &roster, &v)
				    : hc_topofile_read(&in, &topo, &v);
	free(copy);
	ck_assert_int_eq(r == 0, v.kind == HC_V_NONE);
	ck_assert_int_eq(r == 0, (reader == TABLE ? (void *)roster : (void *)topo) != NULL);
	return r;
}

static inline int judge(enum reader reader, const char *text)
{
	char *s = quoted(text);
	int r = judge_bytes(reader, s, strlen(s));

	free(s);
	return r;
}

static inline void check_edit(enum reader reader, const char *good, const struct edit *e)
{
	char *text = edited(good, e->from, e->to);

	judge(reader, text);
	ck_assert_msg(v.kind == e->kind, "%s -> %s: kind is '%s', wanted '%s': %s", e->from, e->to,
		      hc_verdict_name(v.kind), hc_verdict_name(e->kind), v.message);
	ck_assert_msg(!e->path || !strcmp(v.path, e->path), "%s -> %s: path is %s, wanted %s",
		      e->from, e->to, v.path, e->path);
	ck_assert_msg(strstr(v.message, e->word) != NULL, "%s -> %s: no '%s' in: %s", e->from,
		      e->to, e->word, v.message);
	ck_assert_msg(!e->path || v.line > 0, "%s -> %s: no position", e->from, e->to);
	free(text);
	let_go();
}

static inline void check_edits(enum reader reader, const char *good, const struct edit *edits,
			       size_t n)
{
	size_t i;

	ck_assert_msg(!judge(reader, good), "the good text is refused: %s", v.message);
	for (i = 0; i < n; i++)
		check_edit(reader, good, &edits[i]);
}

#define CHECK_EDITS(reader, good, edits)                                                           \
	check_edits(reader, good, edits, sizeof(edits) / sizeof((edits)[0]))

#endif
