/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl topology: is a topology file right, and which edges does it hold. Exit status 0
 * accepted, 2 refused.
 */
#include <stdio.h>
#include <string.h>
#include "filecheck.h"
#include "topofile.h"

#define CELL_MAX 640

static const char *link_name(enum hc_topo_link l)
{
	return l == HC_TOPO_PEER2PEER ? "PEER2PEER" : "PEER2NET";
}

static const char *type_name(enum hc_topo_type t)
{
	return t == HC_TOPO_CLOS ? "CLOS" : "1DMESH";
}

static void port_text(const struct hc_port_name *p, char buf[16])
{
	if (p->d2h)
		snprintf(buf, 16, "d2h");
	else
		snprintf(buf, 16, "%u/%u", p->die, p->port);
}

/* ---- JSON ---- */

static json_t *ports_json(const struct hc_topo_end *end)
{
	json_t *list = json_array();
	char text[16];
	uint32_t i;

	for (i = 0; list && i < end->nports; i++) {
		port_text(&end->ports[i], text);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *end_json(const struct hc_topo_end *end)
{
	if (!end->present)
		return json_null();
	return json_pack("{s:I, s:o}", "device", (json_int_t)end->local_id, "ports",
			 ports_json(end));
}

static json_t *protocols_json(uint32_t bits)
{
	json_t *list = json_array();
	unsigned i;

	for (i = 0; list && i < HC_TOPO_PROTOCOL_COUNT; i++)
		if (bits & 1u << i)
			json_array_append_new(
				list, json_string(hc_topo_protocol_name((enum hc_topo_protocol)i)));
	return list;
}

static int show_json(const struct hc_topo *topo, const char *file)
{
	json_t *peers = json_array(), *edges = json_array();
	const struct hc_topo_edge *e;
	char name[4096];
	uint32_t i;

	for (i = 0; i < topo->npeers; i++)
		json_array_append_new(peers, json_integer(topo->peers[i]));
	for (i = 0; i < topo->nedges; i++) {
		e = &topo->edges[i];
		json_array_append_new(edges, json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}",
						       "net_layer", (json_int_t)e->net_layer,
						       "link_type", link_name(e->link_type),
						       "topo_type", type_name(e->topo_type),
						       "protocols", protocols_json(e->protocols),
						       "a", end_json(&e->a), "b", end_json(&e->b)));
	}
	hc_escape(name, sizeof(name), file, strlen(file));
	return ctl_print_json(json_pack("{s:i, s:s, s:o, s:o}", "schema_version", 1, "file", name,
					"peers", peers, "edges", edges));
}

/* ---- table ---- */

static void append(char *buf, const char *lead, const char *text)
{
	size_t n = strlen(buf);

	snprintf(buf + n, CELL_MAX - n, "%s%s", n ? lead : "", text);
}

static void end_text(const struct hc_topo_end *end, char *buf)
{
	char text[16];
	uint32_t i;

	snprintf(buf, CELL_MAX, "%s", end->present ? "" : "net");
	if (!end->present)
		return;
	snprintf(buf, CELL_MAX, "%u:", end->local_id);
	for (i = 0; i < end->nports; i++) {
		port_text(&end->ports[i], text);
		append(buf, i ? "," : "", text);
	}
}

static bool add_row(struct file_table *t, const struct hc_topo_edge *e, uint32_t number)
{
	char edge[16], layer[16], a[CELL_MAX], b[CELL_MAX], protocols[CELL_MAX] = "";
	unsigned i;

	snprintf(edge, sizeof(edge), "%u", number);
	snprintf(layer, sizeof(layer), "%u", e->net_layer);
	for (i = 0; i < HC_TOPO_PROTOCOL_COUNT; i++)
		if (e->protocols & 1u << i)
			append(protocols, ",", hc_topo_protocol_name((enum hc_topo_protocol)i));
	end_text(&e->a, a);
	end_text(&e->b, b);
	return ctl_table_row(
		t, (const char *const[]){edge, layer, link_name(e->link_type), a, b, protocols});
}

static int show_table(const struct ctl *c, const struct hc_topo *topo, const char *file,
		      const struct hc_verdict *v)
{
	static const char *const headings[] = {"EDGE", "LAYER", "LINK", "A", "B", "PROTOCOLS"};
	static const bool right[] = {true, true, false, false, false, false};
	struct file_table *t = ctl_table_new(c, headings, right, 6);
	char line[1024];
	uint32_t i;
	int r;

	if (!t)
		return CTL_USAGE;
	for (i = 0; i < topo->nedges; i++) {
		if (!add_row(t, &topo->edges[i], i)) {
			ctl_say("out of memory");
			break;
		}
	}
	r = ctl_table_print(t);
	if (!r && i == topo->nedges && !c->no_headings) {
		hc_verdict_line(v, file, line, sizeof(line));
		printf("\n%s\n", line);
	}
	return i < topo->nedges ? CTL_DEGRADED : r;
}

static int read_topology(struct ctl *c, const char *file, const struct hc_jsontext *text,
			 struct hc_verdict *v, bool show, int *status)
{
	struct hc_topo *topo;
	int r = hc_topofile_read(text, &topo, v);

	if (!r && show)
		*status = c->json ? show_json(topo, file) : show_table(c, topo, file, v);
	hc_topofile_free(topo);
	return r;
}

int ctl_topology(struct ctl *c, int argc, char **argv)
{
	static const struct file_noun noun = {"topology", HC_TOPO_BYTES_MAX, read_topology};

	return ctl_files(c, &noun, argc, argv);
}
