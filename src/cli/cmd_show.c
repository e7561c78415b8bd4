/* tuck show: what a graph is, or the graph in another form. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "graph/symbol_values.h"
#include "op/dtype.h"
#include "graph/groups.h"
#include "infer/infer.h"
#include "op/ops.h"
#include "graph/storage.h"

enum { AS_SUMMARY, AS_TEXT, AS_CODE, AS_EXEC, AS_JSON, AS_DOT };

struct show {
    struct input in;
    int form;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "One of these instead of the summary:", 0},
    {"text", 't', NULL, 0, "The graph as it was read, byte for byte", 0},
    {"code", 'c', NULL, 0, "As gm.code prints it: a bare function without annotations", 0},
    {"exec", 'x', NULL, 0,
     "Python that exec() accepts, the globals it needs in comments at the top", 0},
    {"json", 'j', NULL, 0, "Everything about every node, for other programs", 0},
    {"dot", 'd', NULL, 0, "Graphviz: tuck show --dot F | dot -Tsvg -o f.svg", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char keys[] = "tcxjd";
    struct show *s = state->input;
    const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;

    (void)arg;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &s->in;
        return 0;
    }
    if (at == NULL)
        return ARGP_ERR_UNKNOWN;
    if (s->form != AS_SUMMARY)
        argp_error(state, "one form at a time");
    s->form = AS_TEXT + (int)(at - keys);
    return 0;
}

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE",
    "Show the graphs of FILE: a dump of print_readable, tlparse or TORCH_LOGS, gm.code, a runnable "
    "script, str(graph).",
    children,
    NULL,
    NULL};

/* ---- gathering ---- */

/* Collectives of one kind on one group. */
struct row {
    uint32_t op;
    const char *group; /* name */
    int64_t size;      /* ranks, 0 = unknown */
    size_t count, sized;
    int64_t bytes; /* of those whose size is known */
};

struct facts {
    struct mem mem;
    const tuck_graph *g;
    struct assume assume;
    struct storage_peak peak;
    int64_t output_bytes;
    size_t kind[OP_CLASS_END + 1]; /* nodes by class; the last: unknown operators */
    size_t nodes, nested, opaque;
    size_t inputs, parameters, buffers, outputs;
    int64_t input_bytes;
    size_t inputs_unsized;
    VEC(struct row) row;
    VEC(const tuck_graph *) todo;
    struct arena scratch;
    struct buf text;
};

static int64_t bytes_of(struct assume *a, const tuck_graph *g, uint32_t n)
{
    int64_t b;

    return assume_bytes(a, node_type(g, n), &b) ? b : -1;
}

/* Of an operand: a tensor, or all the tensors of a list. */
static int64_t operand_bytes(struct assume *a, const tuck_graph *g, const tuck_value *v)
{
    int64_t sum = 0;
    const tuck_value *end = value_next(v);

    for (; v < end; v++)
        if (v->kind == TUCK_V_NODE) {
            int64_t b = bytes_of(a, g, v->a);
            if (b < 0 || !size_add(sum, b, &sum))
                return -1;
        }
    return sum;
}

/* The message of a collective: the larger of what goes in and what comes out. */
static int64_t message_bytes(struct assume *a, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    const tuck_value *first = call_operand(g, x, 0);
    int64_t in = first != NULL ? operand_bytes(a, g, first) : -1, out = 0, b;

    if (t->kind == TYPE_LIST) {
        for (uint32_t i = 0; i < t->n && out >= 0; i++)
            if (!assume_bytes(a, t->item[i], &b) || !size_add(out, b, &out))
                out = -1;
    } else {
        out = bytes_of(a, g, n);
    }
    return in > out ? in : out;
}

static void meet_collective(struct facts *f, const tuck_graph *g, uint32_t n)
{
    int k = group_of(g, n);
    const char *group = k >= 0 ? graph_str(g, g->group.at[k].name) : "?";
    struct row *r = NULL;

    for (uint32_t i = 0; i < f->row.len; i++)
        if (f->row.at[i].op == g->node.at[n].op && strcmp(f->row.at[i].group, group) == 0)
            r = &f->row.at[i];
    if (r == NULL) {
        vec_push(&f->mem, &f->row,
                 ((struct row){.op = g->node.at[n].op,
                               .group = group,
                               .size = k >= 0 ? g->group.at[k].size : 0}));
        r = &f->row.at[f->row.len - 1];
    }
    int64_t b = message_bytes(&f->assume, g, n);
    r->count++;
    if (b >= 0) {
        r->sized++;
        r->bytes += b;
    }
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* What the descriptor of an input says it is. */
static const char *role_of(const char *descriptor)
{
    if (starts(descriptor, "ParamAOTInput") || starts(descriptor, "PARAMETER"))
        return "parameter";
    if (starts(descriptor, "BufferAOTInput") || starts(descriptor, "BUFFER"))
        return "buffer";
    if (starts(descriptor, "TangentAOTInput"))
        return "tangent";
    return *descriptor ? "input" : "";
}

static const char *descriptor_of(const tuck_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < g->note.len; i++)
        if (g->note.at[i].node == n)
            return graph_str(g, g->note.at[i].descriptor);
    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].node == n)
            return graph_str(g, g->param.at[i].descriptor);
    return "";
}

static void start(struct facts *f, const struct show *s, const tuck_graph *g)
{
    f->g = g;
    f->assume = (struct assume){.store = g->store, .given = s->in.hint, .n_given = s->in.n_hint};
    arena_init(&f->scratch, &f->mem);
}

static void gather(void *p)
{
    struct facts *f = p;

    vec_push(&f->mem, &f->todo, f->g);
    while (f->todo.len > 0) {
        const tuck_graph *g = f->todo.at[--f->todo.len];

        f->nodes += g->n_nodes;
        for_each_node (g, n) {
            const struct fx_node *x = node_at(g, n);
            uint8_t cls = op_at(x->op)->cls;

            if (x->kind == TUCK_OPAQUE)
                f->opaque++;
            if (x->kind == TUCK_CALL_FUNCTION)
                f->kind[cls]++;
            if (x->kind == TUCK_CALL_FUNCTION &&
                (cls == OP_COLLECTIVE || cls == OP_SYNC_COLLECTIVE || cls == OP_P2P))
                meet_collective(f, g, n);
        }
        for (uint32_t i = 0; i < g->child.len; i++) {
            vec_push(&f->mem, &f->todo, g->child.at[i]);
            f->nested++;
        }
    }
    const tuck_graph *g = f->g;
    for (uint32_t i = 0; i < g->param.len; i++) {
        const char *role = role_of(graph_str(g, g->param.at[i].descriptor));
        f->parameters += strcmp(role, "parameter") == 0;
        f->buffers += strcmp(role, "buffer") == 0;
    }
    for (uint32_t i = 0; i < g->note.len; i++) {
        const char *role = role_of(graph_str(g, g->note.at[i].descriptor));
        f->parameters += strcmp(role, "parameter") == 0;
        f->buffers += strcmp(role, "buffer") == 0;
    }
    for_each_node (g, n) {
        if (node_at(g, n)->kind != TUCK_PLACEHOLDER)
            continue;
        f->inputs++;
        int64_t b = bytes_of(&f->assume, g, n);
        if (b >= 0)
            f->input_bytes += b;
        else
            f->inputs_unsized++;
    }
    if (g->output != 0) {
        const tuck_value *v = node_at(g, g->output)->vals;
        f->outputs = value_is_container(v) ? v->a : 1;
        f->output_bytes = operand_bytes(&f->assume, g, v);
    }
    struct storages s;
    storages_build(g, &f->scratch, &s);
    storage_peak(g, &s, &f->scratch, assume_size, &f->assume, &f->peak);
}

/* ---- the summary ---- */

static void put_title(const struct show *s, size_t i)
{
    const tuck_graph *g = tuck_doc_graph(s->in.doc, i);
    const char *title = tuck_doc_title(s->in.doc, i);
    int rank = tuck_doc_rank(s->in.doc, i);

    put(INK_HEAD, "%s:%u: %s", s->in.path, tuck_doc_line(s->in.doc, i),
        g->name ? graph_str(g, g->name) : "def forward");
    if (*title)
        printf(", \"%s\"", title);
    if (rank >= 0)
        printf(", rank %d", rank);
    if (tuck_doc_count(s->in.doc) > 1)
        put(INK_DIM, "  (graph %zu of %zu)", i, tuck_doc_count(s->in.doc));
    putchar('\n');
}

static void put_classes(const struct facts *f)
{
    size_t shown = 0;
    bool done[OP_CLASS_END + 1] = {false};

    printf("  operators    ");
    for (;;) { /* the most frequent first */
        int best = -1;
        for (int c = 0; c <= OP_CLASS_END; c++)
            if (!done[c] && f->kind[c] > 0 && (best < 0 || f->kind[c] > f->kind[best]))
                best = c;
        if (best < 0)
            break;
        done[best] = true;
        const char *name = best == OP_CLASS_END ? "unknown" : op_class_name((enum op_class)best);
        put(best == OP_CLASS_END ? INK_LIMIT : INK_PLAIN, "%s%s %zu",
            shown == 0       ? ""
            : shown % 6 == 0 ? "\n               "
                             : "  ",
            name, f->kind[best]);
        shown++;
    }
    puts(shown ? "" : "none");
}

/* "_c10d_functional.all_reduce.default" → "all_reduce"; other namespaces keep theirs. */
static const char *short_name(uint32_t op, char out[96])
{
    const char *name = op_at(op)->name;

    if (starts(name, "_c10d_functional."))
        name += 17;
    snprintf(out, 96, "%s", name);
    char *dot = strrchr(out, '.');
    if (dot != NULL && strcmp(dot, ".default") == 0)
        *dot = '\0';
    return out;
}

static void put_collectives(const struct facts *f)
{
    char bytes[32], name[96];

    if (f->row.len == 0) {
        puts("  collectives  none");
        return;
    }
    printf("  collectives  ");
    put_line(INK_HEAD, "%-30s %-24s %5s %6s %12s", "kind", "group", "ranks", "count", "bytes");
    for (uint32_t i = 0; i < f->row.len; i++) {
        const struct row *r = &f->row.at[i];
        char ranks[24] = "?";

        if (r->size > 0)
            snprintf(ranks, sizeof(ranks), "%" PRId64, r->size);
        if (r->sized == 0)
            snprintf(bytes, sizeof(bytes), "?");
        else
            human_bytes(r->bytes, bytes);
        printf("               %-30s %-24s ", short_name(r->op, name), r->group);
        put(r->size > 0 ? INK_PLAIN : INK_LIMIT, "%5s", ranks);
        printf(" %6zu ", r->count);
        put(r->sized > 0 ? INK_PLAIN : INK_LIMIT, "%12s", bytes);
        put_line(INK_LIMIT, "%s", r->sized > 0 && r->sized < r->count ? " and unknown" : "");
    }
}

/* The most that is live at once, in the order of the graph, inputs never freed. */
static void put_peak(const struct facts *f)
{
    const struct storage_peak *p = &f->peak;
    char total[32], inputs[32];

    printf("  live storage ");
    if (p->peak == 0) {
        puts("unknown");
        return;
    }
    printf("%s at most", human_bytes(p->peak, total));
    if (p->node != 0)
        printf(", at '%s'", graph_str(f->g, f->g->node.at[p->node].name));
    printf("; %s of it inputs", human_bytes(p->inputs, inputs));
    if (p->unknown > 0)
        put(INK_LIMIT, "; %zu of unknown size not counted", p->unknown);
    putchar('\n');
    if (f->assume.used_default)
        printf("  assumed      %d for sizes that only data decides (u0, u1, …); say it with "
               "--assume u0=N\n",
               ASSUME_UNBACKED);
}

static void put_summary(const struct show *s, size_t i, const struct facts *f)
{
    char bytes[32];

    put_title(s, i);
    printf("  nodes        %zu", f->nodes);
    if (f->nested > 0)
        printf(", %zu of them in %zu nested graph%s", f->nodes - f->g->n_nodes, f->nested,
               f->nested == 1 ? "" : "s");
    putchar('\n');
    printf("  inputs       %zu", f->inputs);
    if (f->parameters > 0 || f->buffers > 0)
        printf(" (%zu parameters, %zu buffers)", f->parameters, f->buffers);
    if (f->inputs > f->inputs_unsized) {
        printf(", %s", human_bytes(f->input_bytes, bytes));
        if (f->inputs_unsized > 0)
            printf(" and %zu of unknown size", f->inputs_unsized);
    }
    putchar('\n');
    printf("  outputs      %zu", f->outputs);
    if (f->output_bytes > 0)
        printf(", %s", human_bytes(f->output_bytes, bytes));
    putchar('\n');
    put_peak(f);
    put_classes(f);
    if (f->opaque > 0)
        printf("  opaque       %zu statement%s kept word for word\n", f->opaque,
               f->opaque == 1 ? "" : "s");
    put_collectives(f);
}

/* ---- JSON ---- */

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

/* What the text says of a node, or else what was inferred. */
static void json_type(struct json_out *j, struct facts *f, const tuck_graph *g, uint32_t n)
{
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    int64_t bytes;

    if (node_at(g, n)->ann != 0)
        json_str(j, "annotation", graph_str(g, ann_at(g->store, node_at(g, n)->ann)->inner));
    if (t->kind == TYPE_SYM) {
        f->text.len = 0;
        sym_print(&g->store->sym, t->sym, &f->text);
        json_str(j, "value", buf_text(&f->text));
    }
    if (t->kind != TYPE_TENSOR)
        return;
    json_str(j, "dtype", dtype_at((enum dtype)t->dtype)->name);
    json_dims(j, g, &f->text, "shape", t->size, t->n);
    if (t->strided)
        json_dims(j, g, &f->text, "stride", t->stride, t->n);
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

static void json_node(struct json_out *j, struct facts *f, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const char *role = x->kind == TUCK_PLACEHOLDER ? role_of(descriptor_of(g, n)) : "";

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
        int64_t b = message_bytes(&f->assume, g, n);
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

static void json_collectives(struct json_out *j, const struct facts *f)
{
    char name[96];

    json_open(j, "collectives", '[');
    for (uint32_t i = 0; i < f->row.len; i++) {
        const struct row *r = &f->row.at[i];

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

static void json_nodes(struct json_out *j, struct facts *f, const tuck_graph *g)
{
    json_open(j, "nodes", '[');
    for_each_node (g, n)
        json_node(j, f, g, n);
    json_close(j, ']');
}

struct json_args {
    const struct show *s;
    struct facts *f;
    struct buf *b;
    size_t from, to;
};

static void put_json(void *p)
{
    struct json_args *a = p;
    struct json_out j;

    json_begin(&j, a->b);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    json_str(&j, "file", a->s->in.path);
    json_open(&j, "graphs", '[');
    for (size_t i = a->from; i < a->to; i++) {
        const tuck_graph *g = tuck_doc_graph(a->s->in.doc, i);
        struct facts *f = a->f;

        arena_destroy(&f->scratch);
        *f = (struct facts){.mem = f->mem, .row = f->row, .todo = f->todo, .text = f->text};
        f->row.len = f->todo.len = 0;
        start(f, a->s, g);
        gather(f);
        json_open(&j, NULL, '{');
        json_str(&j, "name", graph_str(g, g->name));
        json_str(&j, "title", tuck_doc_title(a->s->in.doc, i));
        if (tuck_doc_rank(a->s->in.doc, i) >= 0)
            json_int(&j, "rank", tuck_doc_rank(a->s->in.doc, i));
        json_int(&j, "line", tuck_doc_line(a->s->in.doc, i));
        json_int(&j, "node_count", (int64_t)f->nodes);
        json_int(&j, "input_count", (int64_t)f->inputs);
        json_int(&j, "output_count", (int64_t)f->outputs);
        json_int(&j, "input_bytes", f->input_bytes);
        json_int(&j, "peak_storage_bytes", f->peak.peak);
        json_groups(&j, g);
        json_collectives(&j, f);
        json_nodes(&j, f, g);
        json_open(&j, "nested", '[');
        /* Flat, in the order of the text, with the path of names to each. */
        f->todo.len = 0;
        for (uint32_t k = g->child.len; k > 0; k--)
            vec_push(&f->mem, &f->todo, g->child.at[k - 1]);
        while (f->todo.len > 0) {
            const tuck_graph *c = f->todo.at[--f->todo.len];
            json_open(&j, NULL, '{');
            json_str(&j, "name", graph_str(c, c->name));
            json_groups(&j, c);
            json_nodes(&j, f, c);
            json_close(&j, '}');
            for (uint32_t k = c->child.len; k > 0; k--)
                vec_push(&f->mem, &f->todo, c->child.at[k - 1]);
        }
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    buf_flush(a->b);
}

/* ---- the command ---- */

static int show_summary(struct show *s, size_t from, size_t to)
{
    int code = EXIT_FINE;

    for (size_t i = from; i < to && code == EXIT_FINE; i++) {
        struct facts f = {.g = NULL};
        mem_init(&f.mem, NULL);
        start(&f, s, tuck_doc_graph(s->in.doc, i));
        if (mem_guard(&f.mem, gather, &f))
            put_summary(s, i, &f);
        else
            code = exit_code_of(TUCK_ENOMEM);
        vec_free(&f.mem, &f.row);
        vec_free(&f.mem, &f.todo);
        arena_destroy(&f.scratch);
    }
    input_warn_groups(&s->in);
    return code;
}

static int show_json(struct show *s, size_t from, size_t to)
{
    struct facts f = {.g = NULL};
    struct buf b;

    mem_init(&f.mem, NULL);
    arena_init(&f.scratch, &f.mem);
    buf_init(&f.text, &f.mem);
    buf_to(&b, &f.mem, to_file, stdout);
    struct json_args a = {s, &f, &b, from, to};
    bool ok = mem_guard(&f.mem, put_json, &a);
    buf_destroy(&b);
    buf_destroy(&f.text);
    vec_free(&f.mem, &f.row);
    vec_free(&f.mem, &f.todo);
    arena_destroy(&f.scratch);
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

static int show_form(struct show *s, size_t from, size_t to)
{
    static const tuck_form forms[] = {
        [AS_TEXT] = TUCK_FORM_TEXT, [AS_CODE] = TUCK_FORM_CODE, [AS_EXEC] = TUCK_FORM_EXEC};
    tuck_status st = TUCK_OK;

    if (s->form == AS_DOT) {
        for (size_t i = from; i < to && st == TUCK_OK; i++)
            st = tuck_graph_dot(tuck_doc_graph(s->in.doc, i), to_file, stdout);
    } else if (s->in.graph < 0) {
        st = tuck_doc_print(s->in.doc, forms[s->form], s->in.diags, to_file, stdout);
    } else {
        st = tuck_graph_print(tuck_doc_graph(s->in.doc, from), forms[s->form], s->in.diags, to_file,
                              stdout);
    }
    print_diags(s->in.diags);
    return exit_code_of(st);
}

int cmd_show(int argc, char **argv)
{
    struct show s = {.form = AS_SUMMARY};
    size_t from, to;

    options_parse(&argp, argc, argv, &s);
    int code = input_open(&s.in);
    if (code == EXIT_FINE)
        code = input_range(&s.in, &from, &to);
    if (code == EXIT_FINE && (s.form == AS_SUMMARY || s.form == AS_JSON))
        code = input_infer(&s.in, false);
    if (code == EXIT_FINE)
        code = s.form == AS_SUMMARY ? show_summary(&s, from, to)
               : s.form == AS_JSON  ? show_json(&s, from, to)
                                    : show_form(&s, from, to);
    input_close(&s.in);
    return code;
}
