/* Checks of a graph, nested ones too. What a user can get wrong and what only a mistake of ours can
 * break are reported alike.
 *
 *   structure     use lists, order, names, how operators are spelled
 *   collectives   each is waited for; nothing reads a result, or a buffer that is being written, before
 *
 *   start ──> wait ──> anything          a start may also be asked for its sizes;
 *   start ──> [i] ──> wait ──> anything   a list of results is taken apart first
 */
#include "fx/effect.h"
#include "fx/print.h"
#include "fx/storage.h"

#include <stdio.h>

#define NEVER UINT32_MAX

struct lint {
    struct mem mem;
    tuck_diags *diags;
    const tuck_graph *g;
    bool nested;
    bool broken; /* use lists cannot be trusted: nothing but that is checked */
    size_t errors;
    struct sigs sigs;
    VEC(const tuck_graph *) todo;
    VEC(uint32_t) pos;          /* by node: place in the order */
    VEC(uint32_t) count;        /* by node: how often it is mentioned */
    VEC(uint32_t) owner, first; /* by name: number of the graph that has it, and the node */
    VEC(uint32_t) flying;       /* a start and what was taken out of its list of results */
    uint32_t number;            /* of the graph at hand */
};

static void report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
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

static const char *name_of(const struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);

    return node->name ? graph_str(x->g, node->name) : "statement";
}

/* "defined in line 12", or NULL where that is not known. The text lives until the next call. */
static const char *line_note(struct lint *x, char *buf, size_t size, const char *what, uint32_t n)
{
    uint32_t line = node_at(x->g, n)->line;

    snprintf(buf, size, "%s line %u", what, line);
    return line ? buf : NULL;
}

/* ---- structure ---- */

/* The list of nodes, the arguments, and the use lists must tell the same story. */
static void check_uses(struct lint *x)
{
    const tuck_graph *g = x->g;
    uint32_t pos = 0, prev = 0;

    x->pos.len = x->count.len = 0;
    vec_reserve(&x->mem, &x->pos, g->node.len);
    vec_reserve(&x->mem, &x->count, g->node.len);
    memset(x->pos.at, 0, g->node.len * sizeof(*x->pos.at));
    memset(x->count.at, 0, g->node.len * sizeof(*x->count.at));
    for (uint32_t n = g->node.at[0].next; n != 0; prev = n, n = g->node.at[n].next) {
        if (!node_alive(g, n) || g->node.at[n].prev != prev || pos > g->n_nodes) {
            report(x, TUCK_ERROR, 0, NULL, "internal error: the list of nodes is broken");
            x->broken = true;
            return;
        }
        x->pos.at[n] = ++pos;
    }
    x->broken = pos != g->n_nodes || g->node.at[0].prev != prev;
    if (x->broken)
        report(x, TUCK_ERROR, 0, NULL, "internal error: %u nodes are counted, %u are there",
               g->n_nodes, pos);
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            const tuck_value *v = &node->vals[i];
            if (v->kind != TUCK_V_NODE)
                continue;
            bool alive = node_alive(g, v->a);
            bool known = alive && v->u.i > 0 && v->u.i < g->use.len &&
                         g->use.at[v->u.i].user == n && g->use.at[v->u.i].slot == i;
            if (alive)
                x->count.at[v->a]++;
            if (!known) {
                report(x, TUCK_ERROR, n, NULL, "internal error: '%s' uses a node that %s",
                       name_of(x, n), alive ? "does not know it" : "is gone");
                x->broken = true;
            }
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
        if (found != node->n_uses || found != x->count.at[n] || last != node->use_last) {
            report(x, TUCK_ERROR, n, NULL, "internal error: '%s' has %u uses and knows %u",
                   name_of(x, n), x->count.at[n], node->n_uses);
            x->broken = true;
        }
    }
}

static void check_order(struct lint *x)
{
    const tuck_graph *g = x->g;
    char note[64];

    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            uint32_t d = node->vals[i].kind == TUCK_V_NODE ? node->vals[i].a : 0;
            if (d != 0 && x->pos.at[d] >= x->pos.at[n])
                report(x, TUCK_ERROR, n, line_note(x, note, sizeof(note), "it is defined in", d),
                       "'%s' uses '%s' before it is defined", name_of(x, n), name_of(x, d));
        }
    }
    if (g->output != 0 && g->node.at[0].prev != g->output)
        report(x, TUCK_ERROR, g->node.at[0].prev, NULL, "'%s' stands behind the return",
               name_of(x, g->node.at[0].prev));
    if (g->output == 0)
        for_each_node (g, n)
            if (g->node.at[n].kind != TUCK_PLACEHOLDER) {
                report(x, TUCK_ERROR, n, NULL, "the graph has nodes and returns nothing");
                break;
            }
}

static void check_names(struct lint *x)
{
    const tuck_graph *g = x->g;
    char note[64];

    x->number++;
    for_each_node (g, n) {
        str_id id = node_at(g, n)->name;
        const struct str *s = str_at(&g->store->str, id);

        if (n == g->output || id == 0)
            continue;
        if (!is_identifier(s->at))
            report(x, TUCK_ERROR, n, NULL, "'%s' is no name that Python allows", s->at);
        else if (name_is_reserved(s->at, s->len))
            report(x, TUCK_ERROR, n, "Python or the code around the graph uses it",
                   "the name '%s' is reserved", s->at);
        if (x->owner.at[id] == x->number)
            report(x, TUCK_ERROR, n,
                   line_note(x, note, sizeof(note), "the other one is in", x->first.at[id]),
                   "two nodes are called '%s'", s->at);
        x->owner.at[id] = x->number;
        x->first.at[id] = n;
    }
}

static void check_spelling(struct lint *x)
{
    static const uint8_t wanted[] = {[OP_FORM_BINARY] = 2,
                                     [OP_FORM_UNARY] = 1,
                                     [OP_FORM_AUGMENTED] = 2,
                                     [OP_FORM_GETITEM] = 2,
                                     [OP_FORM_SETITEM] = 3};
    const tuck_graph *g = x->g;

    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        const struct op_row *row = op_at(node->op);

        if (node->syntax == FX_OPERATOR &&
            (row->form == OP_FORM_CALL || node->n_args != wanted[row->form] || node->n_kwargs != 0))
            report(x, TUCK_ERROR, n, NULL, "'%s' is spelled '%s' and has %u operands",
                   name_of(x, n), row->symbol ? row->symbol : "?", node->n_args + node->n_kwargs);
        if (node->kind == TUCK_CALL_METHOD && node->n_args == 0)
            report(x, TUCK_ERROR, n, NULL, "'%s' calls a method of nothing", name_of(x, n));
        if (node->kind == TUCK_OUTPUT && node->n_args != 1)
            report(x, TUCK_ERROR, n, NULL, "the return has %u values instead of one", node->n_args);
    }
    for (uint32_t i = 0; i < g->param.len && g->style.prologue == FX_PLAIN; i++) {
        uint32_t n = g->param.at[i].node;
        if (!node_alive(g, n) || node_at(g, n)->kind != TUCK_PLACEHOLDER)
            report(x, TUCK_ERROR, 0, NULL, "internal error: parameter '%s' is no placeholder",
                   graph_str(g, g->param.at[i].text));
    }
}

/* ---- collectives ---- */

/* Does it start something that a wait on its result must end? What gives a handle, or nothing at all, is
 * ended in another way. */
static bool is_start(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    const struct op_row *row = op_at(node->op);

    if (node->kind != TUCK_CALL_FUNCTION || (row->cls != OP_COLLECTIVE && row->cls != OP_P2P))
        return false;
    const struct op_sig *sig = sigs_get(&x->sigs, node->op);
    for (uint32_t i = 0; i < sig->n_results; i++)
        if (sig->results[i].type != OP_T_TENSOR)
            return false;
    return sig->n_results > 0;
}

static bool is_class(const struct lint *x, uint32_t n, enum op_class cls)
{
    const struct fx_node *node = node_at(x->g, n);

    return node->kind == TUCK_CALL_FUNCTION && op_at(node->op)->cls == cls;
}

/* Picks an item out of a container? Asking for an attribute is a question instead. */
static bool is_pick(const struct lint *x, uint32_t n)
{
    return is_class(x, n, OP_GETITEM) && !(op_at(node_at(x->g, n)->op)->flags & OP_F_METADATA);
}

static bool is_question(const struct lint *x, uint32_t n)
{
    uint32_t op = node_op(x->g, n);

    return (op_at(op)->flags & OP_F_METADATA) != 0;
}

/* May it do with an operand whatever it likes, as far as is known? */
static bool is_unknown(const struct lint *x, uint32_t n)
{
    uint8_t kind = node_at(x->g, n)->kind;

    return kind == TUCK_OPAQUE || kind == TUCK_RESULT || kind == TUCK_CALL_MODULE ||
           node_op(x->g, n) == 0 || is_class(x, n, OP_HOP);
}

/* What became of one result. */
struct fate {
    bool waited, returned, picked, escaped;
};

/* The place of the first wait for this very value; NEVER. */
static uint32_t wait_for(const struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    uint32_t first = NEVER;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user;
        if (is_class(x, user, OP_WAIT) && x->pos.at[user] < first)
            first = x->pos.at[user];
    }
    return first;
}

/* Every use of `n`, the result of `start` or an item of it. A result that has storage of its own is read
 * through its wait alone, or nothing keeps the read behind it; one that is an operand worked on in place
 * may be read once the wait is over. */
static struct fate check_result(struct lint *x, uint32_t start, uint32_t n)
{
    const tuck_graph *g = x->g;
    const struct op_row *row = op_at(node_at(g, start)->op);
    uint32_t until = row->flags & OP_F_MUTATES ? wait_for(x, n) : NEVER;
    struct fate f = {.waited = false};
    char note[256];

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user;

        if (is_class(x, user, OP_WAIT)) {
            f.waited = true;
        } else if (x->pos.at[user] > until || is_question(x, user)) {
            continue;
        } else if (is_pick(x, user)) {
            f.picked = true;
            vec_push(&x->mem, &x->flying, user);
        } else if (user == g->output) {
            f.returned = true;
        } else if (is_unknown(x, user)) {
            f.escaped = true;
        } else {
            snprintf(note, sizeof(note), "the result of %s is good after a wait for it", row->name);
            report(x, TUCK_ERROR, user, note, "'%s' reads '%s' without a wait", name_of(x, user),
                   name_of(x, n));
            f.escaped = true; /* said enough */
        }
    }
    return f;
}

/* The place of the first wait for item `item` of a start (-1: for any of it); NEVER. */
static uint32_t first_wait(const struct lint *x, uint32_t start, int64_t item)
{
    const tuck_graph *g = x->g;
    uint32_t first = NEVER;

    for (uint32_t i = 0; i < x->flying.len; i++) {
        uint32_t n = x->flying.at[i];
        const struct fx_node *node = node_at(g, n);

        if (n != start && item >= 0 && node->n_args == 2) {
            const tuck_value *index = value_next(node->vals);
            if (index->kind == TUCK_V_INT && index->u.i != item)
                continue;
        }
        for (uint32_t u = node->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            if ((is_class(x, user, OP_WAIT) || is_unknown(x, user)) && x->pos.at[user] < first)
                first = x->pos.at[user];
        }
    }
    return first;
}

/* `buffer` is written by `start` until it is waited for: nobody else may touch it meanwhile. */
static bool check_buffer(struct lint *x, uint32_t start, uint32_t buffer, uint32_t until)
{
    const tuck_graph *g = x->g;
    bool waited = until != NEVER;

    for (uint32_t u = node_at(g, buffer)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user, pos = x->pos.at[user];

        if (is_class(x, user, OP_WAIT) && pos > x->pos.at[start]) {
            waited = true; /* a wait goes by storage: the operand will do */
            until = pos < until ? pos : until;
        }
    }
    for (uint32_t u = node_at(g, buffer)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user, pos = x->pos.at[user];

        if (pos <= x->pos.at[start] || pos >= until || user == g->output || is_question(x, user) ||
            is_unknown(x, user))
            continue;
        char note[256];
        snprintf(note, sizeof(note), "wait for '%s' first", name_of(x, start));
        report(x, TUCK_ERROR, user, note, "'%s' reads '%s' while '%s' writes it", name_of(x, user),
               name_of(x, buffer), name_of(x, start));
    }
    return waited;
}

/* The operands that a start works on in place. True: a wait for one of them ends it. */
static bool check_buffers(struct lint *x, uint32_t start)
{
    const tuck_graph *g = x->g;
    const struct fx_node *node = node_at(g, start);
    const struct op_sig *sig = sigs_get(&x->sigs, node->op);
    struct operand o = {.v = NULL};
    bool waited = false;

    if (!(op_at(node->op)->flags & OP_F_MUTATES))
        return false;
    while (operand_next(g, node, sig, &o)) {
        if (o.param == NULL || !o.param->mutated)
            continue;
        if (o.v->kind == TUCK_V_NODE)
            waited |= check_buffer(x, start, o.v->a, first_wait(x, start, -1));
        else if (value_is_container(o.v)) {
            const tuck_value *v = o.v + 1;
            for (uint32_t i = 0; i < o.v->a; i++, v = value_next(v))
                if (v->kind == TUCK_V_NODE)
                    waited |= check_buffer(x, start, v->a, first_wait(x, start, i));
        }
    }
    return waited;
}

static void check_start(struct lint *x, uint32_t start)
{
    const char *op = op_at(node_at(x->g, start)->op)->name;
    char note[256];

    x->flying.len = 0;
    vec_push(&x->mem, &x->flying, start);
    snprintf(note, sizeof(note), "%s starts it, a wait ends it", op);
    struct fate all = {.waited = false};
    for (uint32_t i = 0; i < x->flying.len; i++) {
        uint32_t n = x->flying.at[i];
        struct fate f = check_result(x, start, n);

        if (i == 0) {
            all = f;
            continue;
        }
        if (f.waited || f.escaped || f.picked || all.waited)
            continue;
        if (f.returned && !x->nested)
            report(x, TUCK_WARNING, n, "whoever takes it has to wait",
                   "'%s' of '%s' is returned without a wait", name_of(x, n), name_of(x, start));
        else if (!f.returned)
            report(x, TUCK_WARNING, n, note, "'%s' of '%s' is never waited for", name_of(x, n),
                   name_of(x, start));
    }
    bool by_operand = check_buffers(x, start);
    if (all.waited || all.escaped || all.picked || by_operand)
        return;
    if (all.returned && !x->nested)
        report(x, TUCK_WARNING, start, "whoever takes it has to wait",
               "'%s' is returned without a wait", name_of(x, start));
    else if (!all.returned)
        report(x, TUCK_WARNING, start, note, "'%s' is never waited for", name_of(x, start));
}

/* Could there be something to wait for behind this value? */
static bool may_fly(struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;

    for (;;) {
        const struct fx_node *node = node_at(g, n);
        enum op_class cls = (enum op_class)op_at(node->op)->cls;

        if (node->kind != TUCK_CALL_FUNCTION || node->op == 0 || cls == OP_COLLECTIVE ||
            cls == OP_P2P || cls == OP_SYNC_COLLECTIVE || cls == OP_WAIT || cls == OP_HOP)
            return true;
        for (uint32_t u = node->use_first; u != 0; u = g->use.at[u].next)
            if (is_start(x, g->use.at[u].user) &&
                (op_at(node_at(g, g->use.at[u].user)->op)->flags & OP_F_MUTATES))
                return true; /* the buffer of one */
        if ((cls != OP_GETITEM && cls != OP_VIEW) || node->n_vals == 0 ||
            node->vals[0].kind != TUCK_V_NODE || x->pos.at[node->vals[0].a] >= x->pos.at[n])
            return false;
        n = node->vals[0].a;
    }
}

static void check_wait(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);

    if (node->n_vals > 0 && node->vals[0].kind == TUCK_V_NODE && !may_fly(x, node->vals[0].a))
        report(x, TUCK_WARNING, n, NULL, "'%s' waits for '%s', which is no collective",
               name_of(x, n), name_of(x, node->vals[0].a));
}

/* ---- graphs ---- */

static void check_graph(struct lint *x)
{
    x->broken = false;
    check_uses(x);
    if (x->broken)
        return;
    check_order(x);
    check_names(x);
    check_spelling(x);
    tuck_status order = storage_order_check(x->g, x->diags);
    if (order == TUCK_ENOMEM)
        mem_exhausted(&x->mem);
    x->errors += order != TUCK_OK;
    for_each_node (x->g, n) {
        if (is_start(x, n))
            check_start(x, n);
        else if (is_class(x, n, OP_WAIT))
            check_wait(x, n);
    }
}

static void do_lint(void *p)
{
    struct lint *x = p;
    const tuck_graph *root = x->g;
    uint32_t names = root->store->str.all.len;

    vec_reserve(&x->mem, &x->owner, names);
    vec_reserve(&x->mem, &x->first, names);
    memset(x->owner.at, 0, names * sizeof(*x->owner.at));
    vec_push(&x->mem, &x->todo, root);
    while (x->todo.len > 0) {
        x->g = x->todo.at[--x->todo.len];
        x->nested = x->g != root;
        check_graph(x);
        for (uint32_t i = x->g->child.len; i > 0; i--)
            vec_push(&x->mem, &x->todo, x->g->child.at[i - 1]);
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
    vec_free(&x.mem, &x.todo);
    vec_free(&x.mem, &x.pos);
    vec_free(&x.mem, &x.count);
    vec_free(&x.mem, &x.owner);
    vec_free(&x.mem, &x.first);
    vec_free(&x.mem, &x.flying);
    return !enough ? TUCK_ENOMEM : x.errors > 0 ? TUCK_ELINT : TUCK_OK;
}
