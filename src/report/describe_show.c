#include "report/describe_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/layout.h"
#include "base/units.h"
#include "graph/groups.h"
#include "infer/infer.h"
#include "op/dtype.h"

/* ---- the table ---- */

static void put_title(const struct described *x, struct buf *out)
{
    const tuck_graph *g = x->d.g;
    const char *title = tuck_doc_title(x->doc, x->graph);
    int rank = tuck_doc_rank(x->doc, x->graph);

    ink_printf(out, INK_HEAD, "%s:%u: %s", x->file, tuck_doc_line(x->doc, x->graph),
               g->name ? graph_str(g, g->name) : "def forward");
    if (*title)
        buf_printf(out, ", \"%s\"", title);
    if (rank >= 0)
        buf_printf(out, ", rank %d", rank);
    if (tuck_doc_count(x->doc) > 1)
        ink_printf(out, INK_DIM, "  (graph %zu of %zu)", x->graph, tuck_doc_count(x->doc));
    buf_chr(out, '\n');
}

static void put_classes(const struct description *f, struct buf *out)
{
    size_t shown = 0;
    bool done[OP_CLASS_END + 1] = {false};

    size_t from = wrap_begin(out);
    buf_printf(out, "  operators    ");
    for (;;) { /* the most frequent first */
        int best = -1;
        for (int c = 0; c <= OP_CLASS_END; c++)
            if (!done[c] && f->kind[c] > 0 && (best < 0 || f->kind[c] > f->kind[best]))
                best = c;
        if (best < 0)
            break;
        done[best] = true;
        const char *name = best == OP_CLASS_END ? "unknown" : op_class_name((enum op_class)best);
        ink_printf(out, best == OP_CLASS_END ? INK_LIMIT : INK_PLAIN, "%s%s %zu",
                   shown == 0       ? ""
                   : shown % 6 == 0 ? "\n               "
                                    : "  ",
                   name, f->kind[best]);
        shown++;
    }
    buf_str(out, shown ? "" : "none");
    wrap_end(out, from, 15);
    buf_chr(out, '\n');
}

/* "_c10d_functional.all_reduce.default" → "all_reduce"; other namespaces keep theirs. */
static const char *short_name(uint32_t op, char out[96])
{
    const char *name = op_at(op)->name;

    if (strncmp(name, "_c10d_functional.", 17) == 0)
        name += 17;
    snprintf(out, 96, "%s", name);
    char *dot = strrchr(out, '.');
    if (dot != NULL && strcmp(dot, ".default") == 0)
        *dot = '\0';
    return out;
}

static void put_collectives(const struct description *f, struct buf *out)
{
    char bytes[32], name[96];

    if (f->row.len == 0) {
        buf_str(out, "  collectives  none\n");
        return;
    }
    buf_printf(out, "  collectives  ");
    size_t long_kind = 0, long_group = 0;
    for (uint32_t i = 0; i < f->row.len; i++) {
        long_kind = name_longer(long_kind, short_name(f->row.at[i].op, name));
        long_group = name_longer(long_group, f->row.at[i].group);
    }
    int kind = name_column(out, long_kind, 10, 48);
    int group = name_column(out, long_group, 5, 40 + kind);
    ink_line(out, INK_HEAD, "%-*s %-*s %5s %6s %10s", kind, "kind", group, "group", "ranks",
             "count", "bytes");
    for (uint32_t i = 0; i < f->row.len; i++) {
        const struct described_collectives *r = &f->row.at[i];
        char ranks[24] = "?";

        if (r->size > 0)
            snprintf(ranks, sizeof(ranks), "%" PRId64, r->size);
        if (r->sized == 0)
            snprintf(bytes, sizeof(bytes), "?");
        else
            text_of_bytes(r->bytes, bytes);
        buf_fill(out, ' ', 15);
        put_name(out, short_name(r->op, name), kind);
        buf_chr(out, ' ');
        put_name(out, r->group, group);
        buf_chr(out, ' ');
        ink_printf(out, r->size > 0 ? INK_PLAIN : INK_LIMIT, "%5s", ranks);
        buf_printf(out, " %6zu ", r->count);
        ink_printf(out, r->sized > 0 ? INK_PLAIN : INK_LIMIT, "%10s", bytes);
        buf_chr(out, '\n');
        if (r->sized > 0 && r->sized < r->count)
            wrap_line(out, INK_LIMIT, 19, "and some of unknown size");
    }
}

/* The most that is live at once, in the graph's order, if inputs are never freed. */
static void put_peak(const struct description *f, struct buf *out)
{
    const struct storage_peak *p = &f->peak;
    char total[32], inputs[32];

    size_t from = wrap_begin(out);
    buf_printf(out, "  live storage ");
    if (p->peak == 0) {
        buf_str(out, "unknown\n");
        wrap_end(out, from, 15);
        return;
    }
    buf_printf(out, "%s at most", text_of_bytes(p->peak, total));
    if (p->node != 0)
        buf_printf(out, ", at '%s'", graph_str(f->g, f->g->node.at[p->node].name));
    buf_printf(out, "; %s of it inputs", text_of_bytes(p->inputs, inputs));
    if (p->unknown > 0)
        ink_printf(out, INK_LIMIT, "; %zu of unknown size not counted", p->unknown);
    wrap_end(out, from, 15);
    buf_chr(out, '\n');
    if (f->assume.used_default)
        buf_printf(out,
                   "  assumed      %d for sizes that depend on data (u0, u1, …);\n"
                   "               give it with --assume u0=N\n",
                   ASSUME_UNBACKED);
}

void describe_table(const struct described *x, struct buf *out)
{
    const struct description *f = &x->d;
    char bytes[32];

    put_title(x, out);
    buf_printf(out, "  nodes        %zu", f->nodes);
    if (f->nested.len > 0)
        buf_printf(out, ", %zu of them in %zu nested graph%s", f->nodes - f->g->n_nodes,
                   (size_t)f->nested.len, f->nested.len == 1 ? "" : "s");
    buf_chr(out, '\n');
    buf_printf(out, "  inputs       %zu", f->inputs);
    if (f->parameters > 0 || f->buffers > 0)
        buf_printf(out, " (%zu parameters, %zu buffers)", f->parameters, f->buffers);
    if (f->inputs > f->inputs_unsized) {
        buf_printf(out, ", %s", text_of_bytes(f->input_bytes, bytes));
        if (f->inputs_unsized > 0)
            buf_printf(out, " and %zu of unknown size", f->inputs_unsized);
    }
    buf_chr(out, '\n');
    buf_printf(out, "  outputs      %zu", f->outputs);
    if (f->output_bytes > 0)
        buf_printf(out, ", %s", text_of_bytes(f->output_bytes, bytes));
    buf_chr(out, '\n');
    put_peak(f, out);
    put_classes(f, out);
    if (f->opaque > 0)
        buf_printf(out, "  opaque       %zu statement%s kept verbatim\n", f->opaque,
                   f->opaque == 1 ? "" : "s");
    put_collectives(f, out);
}

/* ---- JSON ---- */

struct json_state {
    const struct description *d;
    struct assume assume;
    struct buf *text; /* of one expression */
};

static void json_dims(struct json_out *j, const tuck_graph *g, struct buf *text, const char *key,
                      const sym_id *dim, uint32_t n)
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++) {
        int64_t v;
        if (sym_as_int(&g->store->sym, dim[i], &v)) {
            json_int(j, NULL, v);
        } else {
            text->len = 0;
            sym_print(&g->store->sym, dim[i], text);
            json_str(j, NULL, buf_text(text));
        }
    }
    json_close(j, ']');
}

/* A node's type from the text, or else the inferred one. */
static void json_type(struct json_out *j, struct json_state *f, const tuck_graph *g, uint32_t n)
{
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    int64_t bytes;

    if (node_at(g, n)->ann != 0)
        json_str(j, "annotation", graph_str(g, ann_at(g->store, node_at(g, n)->ann)->inner));
    if (t->kind == TYPE_SYM) {
        f->text->len = 0;
        sym_print(&g->store->sym, t->sym, f->text);
        json_str(j, "value", buf_text(f->text));
    }
    if (t->kind != TYPE_TENSOR)
        return;
    json_str(j, "dtype", dtype_at((enum dtype)t->dtype)->name);
    json_dims(j, g, f->text, "shape", t->size, t->n);
    if (t->strided)
        json_dims(j, g, f->text, "stride", t->stride, t->n);
    if (t->device != 0)
        json_str(j, "device", graph_str(g, t->device));
    if (assume_bytes(&f->assume, node_type(g, n), &bytes))
        json_int(j, "bytes", bytes);
}

static const char *kind_name(uint8_t kind)
{
    static const char *const name[] = {
        "",       "placeholder", "get_attr", "call_function", "call_method", "call_module",
        "output", "opaque",      "result"};
    return name[kind];
}

static void json_node(struct json_out *j, struct json_state *f, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const char *role = describe_role(g, n);

    json_open(j, NULL, '{');
    j->flat = true;
    json_str(j, "name", graph_str(g, x->name));
    json_str(j, "kind", kind_name(x->kind));
    if (x->target != 0)
        json_str(j, "target", graph_str(g, x->target));
    if (x->kind == TUCK_CALL_FUNCTION)
        json_str(j, "class", x->op ? op_class_name((enum op_class)op_at(x->op)->cls) : "unknown");
    if (*role)
        json_str(j, "role", role);
    json_type(j, f, g, n);
    json_open(j, "inputs", '[');
    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            json_str(j, NULL, graph_str(g, node_at(g, x->vals[i].a)->name));
    json_close(j, ']');
    json_int(j, "users", x->n_uses);
    int group = group_of(g, n);
    if (group >= 0) {
        int64_t b = describe_message_bytes(&f->assume, g, n);
        json_str(j, "group", graph_str(g, g->group.at[group].name));
        if (b >= 0)
            json_int(j, "message_bytes", b);
    }
    if (x->line > 0)
        json_int(j, "line", x->line);
    json_close(j, '}');
    j->flat = false;
}

static void json_groups(struct json_out *j, const tuck_graph *g)
{
    json_open(j, "groups", '[');
    for (uint32_t i = 0; i < g->group.len; i++) {
        const struct fx_group *q = &g->group.at[i];

        json_open(j, NULL, '{');
        j->flat = true;
        json_str(j, "name", graph_str(g, q->name));
        if (q->size > 0)
            json_int(j, "size", q->size);
        else
            json_null(j, "size");
        if (q->rank >= 0)
            json_int(j, "rank", q->rank);
        if (q->ranks != NULL) {
            json_open(j, "ranks", '[');
            for (int64_t k = 0; k < q->size; k++)
                json_int(j, NULL, q->ranks[k]);
            json_close(j, ']');
        }
        json_close(j, '}');
        j->flat = false;
    }
    json_close(j, ']');
}

static void json_collectives(struct json_out *j, const struct json_state *f)
{
    char name[96];

    json_open(j, "collectives", '[');
    for (uint32_t i = 0; i < f->d->row.len; i++) {
        const struct described_collectives *r = &f->d->row.at[i];

        json_open(j, NULL, '{');
        j->flat = true;
        json_str(j, "coll", short_name(r->op, name));
        json_str(j, "group", r->group);
        if (r->size > 0)
            json_int(j, "ranks", r->size);
        json_int(j, "count", (int64_t)r->count);
        if (r->sized == r->count)
            json_int(j, "bytes", r->bytes);
        json_close(j, '}');
        j->flat = false;
    }
    json_close(j, ']');
}

static void json_nodes(struct json_out *j, struct json_state *f, const tuck_graph *g)
{
    json_open(j, "nodes", '[');
    for_each_node (g, n)
        json_node(j, f, g, n);
    json_close(j, ']');
}

static void json_graph(struct json_out *j, const struct described *x, struct buf *text)
{
    const struct description *d = &x->d;
    const tuck_graph *g = d->g;
    struct json_state f = {.d = d, .assume = d->assume, .text = text};

    json_open(j, NULL, '{');
    json_str(j, "name", graph_str(g, g->name));
    json_str(j, "title", tuck_doc_title(x->doc, x->graph));
    if (tuck_doc_rank(x->doc, x->graph) >= 0)
        json_int(j, "rank", tuck_doc_rank(x->doc, x->graph));
    json_int(j, "line", tuck_doc_line(x->doc, x->graph));
    json_int(j, "node_count", (int64_t)d->nodes);
    json_int(j, "input_count", (int64_t)d->inputs);
    json_int(j, "output_count", (int64_t)d->outputs);
    json_int(j, "input_bytes", d->input_bytes);
    json_int(j, "peak_storage_bytes", d->peak.peak);
    json_groups(j, g);
    json_collectives(j, &f);
    json_nodes(j, &f, g);
    json_open(j, "nested", '[');
    for (uint32_t i = 0; i < d->nested.len; i++) {
        const tuck_graph *c = d->nested.at[i];
        json_open(j, NULL, '{');
        json_str(j, "name", graph_str(c, c->name));
        json_groups(j, c);
        json_nodes(j, &f, c);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void describe_json(const char *file, const struct described *at, size_t n, struct buf *text,
                   struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "file", file);
    json_open(&j, "graphs", '[');
    for (size_t i = 0; i < n; i++)
        json_graph(&j, &at[i], text);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
