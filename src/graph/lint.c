/* Checks a graph and its nested graphs: use lists, order, names, spelling of operators. lint_comm.c
 * checks collectives, storage_order.c reads and writes. Users' errors and internal errors are
 * reported in the same way. */
#include "graph/lint.h"

#include <stdio.h>

#include "base/utf8.h"
#include "graph/storage.h"

void lint_report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
                 const char *fmt, ...)
{
    struct diag_source src = {.file = graph_str(x->g, x->g->source_name)};
    struct diag_pos pos = {.source = &src};
    va_list ap;

    if (n != 0) {
        pos.line = node_at(x->g, n)->line;
        pos.column = node_at(x->g, n)->column;
    } else {
        pos.line = x->g->first_line;
    }
    va_start(ap, fmt);
    diag_vadd(x->diags, severity, pos, note, fmt, ap);
    va_end(ap);
    x->errors += severity == TUCK_ERROR;
}

const char *lint_name(const struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);

    return node->name ? graph_str(x->g, node->name) : "statement";
}

/* "defined in line 12", or NULL if unknown. The text is valid until the next call. */
static const char *line_note(struct lint *x, char *buf, size_t size, const char *what, uint32_t n)
{
    uint32_t line = node_at(x->g, n)->line;

    snprintf(buf, size, "%s line %u", what, line);
    return line ? buf : NULL;
}

/* ---- one walk ----
 *
 * One walk over the nodes finds out whether anything is wrong. Only then do the functions after it
 * look again, to say what it is. It also places the nodes (x->pos) and lists what lint_comm() has
 * to look at.
 */

enum trouble {
    BAD_LIST = 1, /* of nodes */
    BAD_USE = 2,  /* lists of uses and arguments do not agree */
    BAD_ORDER = 4,
    BAD_NAME = 8,
    BAD_CALL = 16,
};

static bool name_is_bad(const struct str *s)
{
    return !is_identifier(s->at) || name_is_reserved(s->at, s->len);
}

/* The node before n that has the same name, or 0. x->first may be of another graph. */
static uint32_t name_twin(struct lint *x, uint32_t n, str_id name)
{
    uint32_t other = x->first.at[name];

    x->first.at[name] = n;
    if (other == 0 || !node_alive(x->g, other) || node_at(x->g, other)->name != name)
        return 0;
    return x->pos.at[other] != 0 && x->pos.at[other] < x->pos.at[n] ? other : 0;
}

static bool syntax_is_bad(const struct fx_node *node)
{
    static const uint8_t wanted[] = {[OP_FORM_BINARY] = 2,
                                     [OP_FORM_UNARY] = 1,
                                     [OP_FORM_AUGMENTED] = 2,
                                     [OP_FORM_GETITEM] = 2,
                                     [OP_FORM_SETITEM] = 3};
    uint8_t form = op_at(node->op)->form;

    return node->syntax == FX_OPERATOR &&
           (form == OP_FORM_CALL || node->n_args != wanted[form] || node->n_kwargs != 0);
}

static bool call_is_bad(const struct fx_node *node)
{
    return syntax_is_bad(node) || (node->kind == TUCK_CALL_METHOD && node->n_args == 0) ||
           (node->kind == TUCK_OUTPUT && node->n_args != 1);
}

/* Is the mention in vals[slot] of node n in the list of uses of a node? */
static bool mention_is_known(const tuck_graph *g, uint32_t n, uint32_t slot, const tuck_value *v)
{
    return node_alive(g, v->a) && v->u.i > 0 && v->u.i < g->use.len &&
           g->use.at[v->u.i].user == n && g->use.at[v->u.i].slot == slot;
}

static unsigned scan_values(struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    const struct fx_node *node = node_at(g, n);
    unsigned bad = 0;

    for (uint32_t i = 0; i < node->n_vals; i++) {
        const tuck_value *v = &node->vals[i];

        if (v->kind != TUCK_V_NODE)
            continue;
        if (!mention_is_known(g, n, i, v)) {
            bad |= BAD_USE;
            continue;
        }
        x->mentions++;
        x->of_use.at[v->u.i] = v->a;
        if (x->pos.at[v->a] == 0)
            bad |= BAD_ORDER;
    }
    return bad;
}

static unsigned scan_nodes(struct lint *x)
{
    const tuck_graph *g = x->g;
    uint32_t pos = 0, prev = 0;
    unsigned bad = 0;

    for (uint32_t n = g->node.at[0].next; n != 0; prev = n, n = g->node.at[n].next) {
        if (!node_alive(g, n) || g->node.at[n].prev != prev || pos > g->n_nodes)
            return BAD_LIST;
        const struct fx_node *node = node_at(g, n);
        const struct str *name = str_at(&g->store->str, node->name);

        bad |= scan_values(x, n);
        x->pos.at[n] = ++pos;
        if (n != g->output && node->name != 0) {
            bool twin = name_twin(x, n, node->name) != 0; /* also remembers the name */
            bad |= twin || name_is_bad(name) ? BAD_NAME : 0;
        }
        if (call_is_bad(node))
            bad |= BAD_CALL;
        lint_comm_note(x, n);
    }
    return pos == g->n_nodes && g->node.at[0].prev == prev ? bad : BAD_LIST;
}

/* Does the list of uses of each node consist of its mentions? */
static unsigned scan_uses(const struct lint *x)
{
    const tuck_graph *g = x->g;
    size_t all = 0;

    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        uint32_t found = 0, last = 0;

        for (uint32_t u = node->use_first; u != 0 && found <= node->n_uses; u = g->use.at[u].next) {
            if (g->use.at[u].prev != last || x->of_use.at[u] != n)
                return BAD_USE;
            found++;
            last = u;
        }
        if (found != node->n_uses || last != node->use_last)
            return BAD_USE;
        all += found;
    }
    return all == x->mentions ? 0 : BAD_USE;
}

static unsigned scan(struct lint *x)
{
    const tuck_graph *g = x->g;

    x->pos.len = x->of_use.len = 0;
    x->mentions = 0;
    vec_reserve(&x->mem, &x->pos, g->node.len);
    vec_reserve(&x->mem, &x->of_use, g->use.len);
    memset(x->pos.at, 0, g->node.len * sizeof(*x->pos.at));
    memset(x->of_use.at, 0, g->use.len * sizeof(*x->of_use.at));
    lint_comm_begin(x);
    unsigned bad = scan_nodes(x);
    return bad & BAD_LIST ? bad : bad | scan_uses(x);
}

/* ---- what is wrong ---- */

static void report_list(struct lint *x)
{
    const tuck_graph *g = x->g;
    uint32_t pos = 0, prev = 0;

    for (uint32_t n = g->node.at[0].next; n != 0; prev = n, n = g->node.at[n].next, pos++)
        if (!node_alive(g, n) || g->node.at[n].prev != prev || pos > g->n_nodes) {
            lint_report(x, TUCK_ERROR, 0, NULL, "internal error: the list of nodes is broken");
            return;
        }
    lint_report(x, TUCK_ERROR, 0, NULL, "internal error: %u nodes are counted, %u are there",
                g->n_nodes, pos);
}

static void report_uses(struct lint *x)
{
    const tuck_graph *g = x->g;
    size_t before = x->errors;

    x->count.len = 0;
    vec_reserve(&x->mem, &x->count, g->node.len);
    memset(x->count.at, 0, g->node.len * sizeof(*x->count.at));
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            const tuck_value *v = &node->vals[i];
            if (v->kind != TUCK_V_NODE)
                continue;
            bool alive = node_alive(g, v->a);
            if (alive)
                x->count.at[v->a]++;
            if (!mention_is_known(g, n, i, v))
                lint_report(x, TUCK_ERROR, n, NULL, "internal error: '%s' uses a node that %s",
                            lint_name(x, n), alive ? "does not know it" : "is gone");
        }
    }
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        uint32_t found = 0, last = 0;
        for (uint32_t u = node->use_first; u != 0 && found <= node->n_uses; u = g->use.at[u].next) {
            const struct fx_use *use = &g->use.at[u];
            bool ok = use->prev == last && node_alive(g, use->user) &&
                      use->slot < node_at(g, use->user)->n_vals &&
                      node_at(g, use->user)->vals[use->slot].kind == TUCK_V_NODE &&
                      node_at(g, use->user)->vals[use->slot].a == n;
            if (!ok)
                break;
            found++;
            last = u;
        }
        if (found != node->n_uses || found != x->count.at[n] || last != node->use_last)
            lint_report(x, TUCK_ERROR, n, NULL, "internal error: '%s' has %u uses and knows %u",
                        lint_name(x, n), x->count.at[n], node->n_uses);
    }
    if (x->errors == before)
        lint_report(x, TUCK_ERROR, 0, NULL, "internal error: a use belongs to another argument");
}

static void report_order(struct lint *x)
{
    const tuck_graph *g = x->g;
    char note[64];

    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            uint32_t d = node->vals[i].kind == TUCK_V_NODE ? node->vals[i].a : 0;
            if (d != 0 && x->pos.at[d] >= x->pos.at[n])
                lint_report(
                    x, TUCK_ERROR, n, line_note(x, note, sizeof(note), "it is defined in", d),
                    "'%s' uses '%s' before it is defined", lint_name(x, n), lint_name(x, d));
        }
    }
}

static void check_output(struct lint *x)
{
    const tuck_graph *g = x->g;

    if (g->output != 0 && g->node.at[0].prev != g->output)
        lint_report(x, TUCK_ERROR, g->node.at[0].prev, NULL, "'%s' comes after the return",
                    lint_name(x, g->node.at[0].prev));
    if (g->output == 0)
        for_each_node (g, n)
            if (g->node.at[n].kind != TUCK_PLACEHOLDER) {
                lint_report(x, TUCK_ERROR, n, NULL, "the graph has nodes and returns nothing");
                break;
            }
}

static void report_names(struct lint *x)
{
    const tuck_graph *g = x->g;
    char note[64];

    for_each_node (g, n) {
        str_id id = node_at(g, n)->name;
        const struct str *s = str_at(&g->store->str, id);

        if (n == g->output || id == 0)
            continue;
        if (!is_identifier(s->at))
            lint_report(x, TUCK_ERROR, n, NULL, "'%s' is not a valid Python name", s->at);
        else if (name_is_reserved(s->at, s->len))
            lint_report(x, TUCK_ERROR, n, "Python or the code around the graph uses it",
                        "the name '%s' is reserved", s->at);
        uint32_t other = name_twin(x, n, id);
        if (other != 0)
            lint_report(x, TUCK_ERROR, n,
                        line_note(x, note, sizeof(note), "the other one is in", other),
                        "two nodes are called '%s'", s->at);
    }
}

static void report_calls(struct lint *x)
{
    for_each_node (x->g, n) {
        const struct fx_node *node = node_at(x->g, n);
        const struct op_row *row = op_at(node->op);

        if (syntax_is_bad(node))
            lint_report(x, TUCK_ERROR, n, NULL, "'%s' is spelled '%s' and has %u operands",
                        lint_name(x, n), row->symbol ? row->symbol : "?",
                        node->n_args + node->n_kwargs);
        if (node->kind == TUCK_CALL_METHOD && node->n_args == 0)
            lint_report(x, TUCK_ERROR, n, NULL, "'%s' calls a method without an object",
                        lint_name(x, n));
        if (node->kind == TUCK_OUTPUT && node->n_args != 1)
            lint_report(x, TUCK_ERROR, n, NULL, "the return has %u values instead of one",
                        node->n_args);
    }
}

static void check_params(struct lint *x)
{
    const tuck_graph *g = x->g;

    for (uint32_t i = 0; i < g->param.len && g->style.prologue == FX_PLAIN; i++) {
        uint32_t n = g->param.at[i].node;
        if (!node_alive(g, n) || node_at(g, n)->kind != TUCK_PLACEHOLDER)
            lint_report(x, TUCK_ERROR, 0, NULL,
                        "internal error: parameter '%s' is not a placeholder",
                        graph_str(g, g->param.at[i].text));
    }
}

/* ---- graphs ---- */

static void check_graph(struct lint *x)
{
    unsigned bad = scan(x);

    if (bad & BAD_LIST) {
        report_list(x);
        return; /* nothing else can be checked */
    }
    if (bad & BAD_USE) {
        report_uses(x);
        return;
    }
    if (bad & BAD_ORDER)
        report_order(x);
    check_output(x);
    if (bad & BAD_NAME)
        report_names(x);
    if (bad & BAD_CALL)
        report_calls(x);
    check_params(x);
    tuck_status order = storage_order_check(x->g, x->diags);
    if (order == TUCK_ENOMEM)
        mem_exhausted(&x->mem);
    x->errors += order != TUCK_OK;
    lint_comm(x);
}

/* Lists every graph and its nested graphs: parents first, children of one graph adjacent. */
static void collect(struct lint *x)
{
    vec_push(&x->mem, &x->all, ((struct lint_graph){.g = x->g}));
    for (uint32_t i = 0; i < x->all.len; i++) {
        const tuck_graph *g = x->all.at[i].g;

        x->all.at[i].first_child = x->all.len;
        for (uint32_t k = 0; k < g->child.len; k++)
            vec_push(&x->mem, &x->all, ((struct lint_graph){.g = g->child.at[k]}));
    }
}

static void do_lint(void *p)
{
    struct lint *x = p;
    uint32_t names = x->g->store->str.all.len;

    collect(x);
    vec_reserve(&x->mem, &x->first, names);
    memset(x->first.at, 0, names * sizeof(*x->first.at));
    if (x->all.len > 1) {
        vec_reserve(&x->mem, &x->child, names);
        memset(x->child.at, 0, names * sizeof(*x->child.at));
    }
    for (uint32_t i = x->all.len; i > 0; i--)
        lint_results(x, i - 1);
    vec_push(&x->mem, &x->todo, 0);
    while (x->todo.len > 0) { /* in the order of the text */
        uint32_t i = x->todo.at[--x->todo.len];

        lint_enter(x, i);
        check_graph(x);
        for (uint32_t k = x->g->child.len; k > 0; k--)
            vec_push(&x->mem, &x->todo, x->all.at[i].first_child + k - 1);
    }
}

tuck_status tuck_graph_lint(const tuck_graph *g, tuck_diags *diags)
{
    if (g == NULL)
        return TUCK_EINVAL;
    struct lint x = {.g = g, .diags = diags};

    mem_init(&x.mem, &g->store->mem.alloc);
    sigs_init(&x.sigs, &x.mem);
    bool enough = mem_guard(&x.mem, do_lint, &x);
    sigs_destroy(&x.sigs);
    vec_free(&x.mem, &x.all);
    vec_free(&x.mem, &x.results);
    vec_free(&x.mem, &x.todo);
    vec_free(&x.mem, &x.pos);
    vec_free(&x.mem, &x.count);
    vec_free(&x.mem, &x.of_use);
    vec_free(&x.mem, &x.first);
    vec_free(&x.mem, &x.child);
    vec_free(&x.mem, &x.flying);
    vec_free(&x.mem, &x.alias);
    vec_free(&x.mem, &x.base);
    vec_free(&x.mem, &x.comm);
    vec_free(&x.mem, &x.wait);
    vec_free(&x.mem, &x.waits_of);
    vec_free(&x.mem, &x.waits);
    vec_free(&x.mem, &x.wait_pos);
    return !enough ? TUCK_ENOMEM : x.errors > 0 ? TUCK_ELINT : TUCK_OK;
}
