#include "support/program_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/call.h"
#include "infer/infer.h"
#include "lower/verify.h"
#include "cost/machine.h"
#include "plan/arena_plan.h"

enum { N_HINT = 400 };

struct hints {
    struct fx_store *store;
    struct fx_hint at[N_HINT];
};

static void do_hints(void *arg)
{
    struct hints *h = arg;

    for (uint32_t i = 0; i < N_HINT; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "%c%u", "sj"[i & 1], i / 2);
        h->at[i] = (struct fx_hint){str_intern(&h->store->str, name, (size_t)n), 6};
    }
}

struct program *lower_with_sizes(tuck_graph *g, bool fuse)
{
    struct hints h = {.store = g->store};
    struct machine machine;
    struct lower_options o;
    struct program *p = NULL;
    tuck_diags *d = tuck_diags_new(NULL);

    lower_defaults(&o);
    if (!mem_guard(&g->store->mem, do_hints, &h))
        abort();
    machine_init(&machine, NULL);
    machine.hint = h.at;
    machine.n_hint = N_HINT;
    o.machine = &machine;
    o.no_fuse = !fuse;
    if (lower_graph(g, &o, d, &p) != TUCK_OK)
        fprintf(stderr, "# %s\n",
                tuck_diags_count(d) ? tuck_diags_at(d, 0)->message : "lowering failed");
    tuck_diags_free(d);
    return p;
}

static char *wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *wrong(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    return s;
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (p == NULL)
        abort();
    return p;
}

static uint32_t at_step(const uint32_t *order, uint32_t step)
{
    return order ? order[step] : step;
}

static const char *op_name(const struct program *p, uint32_t op)
{
    return program_str(p, p->op[op].name);
}

static const char *buf_name(const struct program *p, uint32_t buf)
{
    return program_str(p, p->buf[buf].name);
}

/* ---- lives ---- */

struct span {
    long from, to; /* steps at which the bytes must be allocated */
};

static struct span *spans(const struct program *p, const uint32_t *order)
{
    struct span *s = zeroed(p->n_buf, sizeof(*s));

    for (uint32_t i = 0; i < p->n_buf; i++)
        s[i] = (struct span){p->buf[i].flags & PROGRAM_INPUT ? 0 : -1, -1};
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = at_step(order, step);
        for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++) {
            struct span *x = &s[p->use[k].buf];
            if (x->from < 0)
                x->from = step;
            x->to = step;
        }
    }
    for (uint32_t i = 0; i < p->n_buf; i++) {
        if (p->buf[i].flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED))
            s[i].to = (long)p->n_op - 1;
        if ((p->buf[i].flags & PROGRAM_INPUT) && s[i].to < 0)
            s[i].to = 0;
    }
    return s;
}

static bool counts(const struct program_buf *b)
{
    return !(b->flags & PROGRAM_INPUT) || (b->flags & PROGRAM_FREEABLE);
}

char *check_peak(const struct program *p, const uint32_t *order)
{
    struct span *s = spans(p, order);
    int64_t peak = 0;

    for (uint32_t i = 0; i < p->n_buf; i++) /* before the first op */
        peak += p->buf[i].flags & PROGRAM_FREEABLE ? p->buf[i].bytes : 0;
    for (long step = 0; step < (long)p->n_op; step++) {
        int64_t live = 0;
        for (uint32_t i = 0; i < p->n_buf; i++)
            if (counts(&p->buf[i]) && s[i].from <= step && step <= s[i].to)
                live += p->buf[i].bytes;
        peak = live > peak ? live : peak;
    }
    free(s);
    return peak == p->peak
               ? NULL
               : wrong("the peak is %lld, not %lld", (long long)peak, (long long)p->peak);
}

static bool same_memory(const struct program_buf *a, const struct program_buf *b)
{
    return (a->layout == PROGRAM_COMM) == (b->layout == PROGRAM_COMM) &&
           (a->layout != PROGRAM_COMM || a->group == b->group);
}

char *check_plan(const struct program *p, const uint32_t *order)
{
    struct span *s = spans(p, order);
    char *why = NULL;

    for (uint32_t i = 0; i < p->n_buf && why == NULL; i++) {
        const struct program_buf *a = &p->buf[i];
        if (!counts(a) || s[i].from > s[i].to || s[i].from < 0)
            continue;
        int64_t end = a->layout == PROGRAM_COMM ? p->heap[a->group] : p->arena_bytes;
        if (a->offset < 0 || a->offset % MEMORY_ALIGN != 0 || a->offset + a->bytes > end)
            why = wrong("%s lies nowhere", buf_name(p, i));
        for (uint32_t k = 0; k < i && why == NULL; k++) {
            const struct program_buf *b = &p->buf[k];
            bool together = counts(b) && s[i].from <= s[k].to && s[k].from <= s[i].to;
            if (together && same_memory(a, b) && a->bytes > 0 && b->bytes > 0 &&
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                why = wrong("%s and %s lie over each other", buf_name(p, i), buf_name(p, k));
        }
    }
    free(s);
    return why;
}

/* ---- order ---- */

uint32_t *random_order(const struct program *p, struct rng *rng)
{
    uint32_t *order = zeroed(p->n_op, sizeof(*order)), n = 0;
    uint32_t *missing = zeroed(p->n_op, sizeof(*missing));
    uint32_t *ready = zeroed(p->n_op, sizeof(*ready)), n_ready = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        missing[i] = p->dep_at[i + 1] - p->dep_at[i];
    for (uint32_t i = 0; i < p->n_op; i++)
        if (missing[i] == 0)
            ready[n_ready++] = i;
    while (n_ready > 0) {
        uint32_t k = rng_below(rng, n_ready), op = ready[k];
        ready[k] = ready[--n_ready];
        order[n++] = op;
        for (uint32_t i = op + 1; i < p->n_op; i++)
            for (uint32_t d = p->dep_at[i]; d < p->dep_at[i + 1]; d++)
                if (p->dep[d].op == op && --missing[i] == 0)
                    ready[n_ready++] = i;
    }
    if (n != p->n_op) {
        fprintf(stderr, "a cycle, or a dependence on a later op\n");
        abort();
    }
    free(missing);
    free(ready);
    return order;
}

/* ---- the library's own check ---- */

struct verify_args {
    const struct program *p;
    const uint32_t *order;
    bool races;
    struct mem mem;
    struct arena a;
    char *why;
};

static void do_verify(void *arg)
{
    struct verify_args *x = arg;
    const char *why = x->races ? program_races(x->p, x->order, &x->a)
                               : program_wrong(x->p, x->order, &x->a);

    x->why = why ? wrong("%s", why) : NULL;
}

char *check_ops(const struct program *p, const uint32_t *order, bool races)
{
    struct verify_args x = {.p = p, .order = order, .races = races};

    mem_init(&x.mem, NULL);
    arena_init(&x.a, &x.mem);
    if (!mem_guard(&x.mem, do_verify, &x))
        abort();
    arena_destroy(&x.a);
    return x.why;
}

/* ---- aliases ---- */

/* Operators whose result shows their first operand, or the one called `out`, by name. A reshape
 * may; it is not checked. */
static bool shows_operand(const char *target)
{
    static const char *const names[] = {"aten.view.",
                                        "aten.slice.",
                                        "aten.t.",
                                        "aten.permute.",
                                        "aten.split_with_sizes.",
                                        "aten.narrow.",
                                        "aten.select.",
                                        "aten.transpose.",
                                        "aten.expand.",
                                        "aten.unsqueeze.",
                                        "aten.squeeze.",
                                        "aten.copy_.",
                                        "aten.add_.",
                                        "aten.mul_.",
                                        "wait_tensor",
                                        "getitem",
                                        "all_reduce_.",
                                        "broadcast_."};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strstr(target, names[i]) != NULL)
            return true;
    return false;
}

struct owners {
    const struct program *p;
    const tuck_graph *g;
    uint32_t *op;   /* by node: its op + 1, 0 if none */
    uint32_t *base; /* by node: the node whose memory it shows */
};

static bool is_input(const tuck_graph *g, uint32_t n)
{
    return node_at(g, n)->kind == TUCK_PLACEHOLDER;
}

/* Is `part` another op of the node, by its name: "all_reduce.back"? */
static bool is_part(const struct program *p, uint32_t part, uint32_t op, const char *suffix)
{
    const char *name = op_name(p, op), *other = op_name(p, part);
    size_t n = strlen(name);

    return strncmp(other, name, n) == 0 && strcmp(other + n, suffix) == 0;
}

/* If a node has two ops, name.compute uses what its collective then has. */
static bool is_first_part(const struct program *p, uint32_t part, uint32_t op)
{
    return is_part(p, part, op, ".compute");
}

/* Does the op use a buffer that the base's op makes or writes, or the input's? */
static bool works_on(const struct owners *o, uint32_t op, uint32_t base)
{
    const struct program *p = o->p;

    for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++) {
        uint32_t buf = p->use[k].buf, by = o->op[base];
        if (is_input(o->g, base)) {
            if (strcmp(buf_name(p, buf), graph_str(o->g, node_at(o->g, base)->name)) == 0)
                return true;
            continue;
        }
        uint32_t from = by > 1 && is_first_part(p, by - 2, by - 1) ? by - 2 : by - 1;
        uint32_t to = by < p->n_op && is_part(p, by, by - 1, ".back") ? by + 1 : by;
        for (uint32_t i = p->use_at[from]; i < p->use_at[to]; i++)
            if (p->use[i].buf == buf && p->use[i].how != PROGRAM_READS)
                return true;
    }
    return false;
}

/* A copy that lowering inserted before an op reads instead of it. */
static bool copied_for(const struct owners *o, uint32_t op, uint32_t base)
{
    for (uint32_t k = op;
         k > 0 && (o->p->op[k - 1].kind == PROGRAM_COPY || is_first_part(o->p, k - 1, op)); k--)
        if (works_on(o, k - 1, base))
            return true;
    return false;
}

char *check_aliases(const struct program *p, const tuck_graph *g)
{
    struct owners o = {.p = p, .g = g};
    char *why = NULL;

    o.op = zeroed(g->node.len, sizeof(*o.op));
    o.base = zeroed(g->node.len, sizeof(*o.base));
    for (uint32_t op = 0; op < p->n_op; op++)
        for (uint32_t k = p->node_at[op]; k < p->node_at[op + 1]; k++)
            o.op[p->node_id[k]] = op + 1;
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        const char *target = graph_str(g, x->target);

        o.base[n] = n;
        bool shows = x->kind == TUCK_CALL_FUNCTION && shows_operand(target) &&
                     call_node(g, x, 0) != 0;
        if (shows)
            o.base[n] = o.base[call_node(g, x, 0)];
        /* The nodes that a control_deps follows, and the token of with_effects, are named but not
         * read. */
        bool wraps = strstr(target, "control_deps") != NULL ||
                     strstr(target, "with_effects") != NULL;
        uint32_t first = wraps ? (uint32_t)(value_next(x->vals) - x->vals) : 0;
        /* The wait of a clone shows the clone: any buffer that the collective's op uses. */
        for (uint32_t i = first; i < x->n_vals && why == NULL && o.op[n] != 0; i++) {
            uint32_t v = x->vals[i].kind == TUCK_V_NODE ? o.base[x->vals[i].a] : 0;
            if (v == 0 || (!is_input(g, v) && o.op[v] == 0) || o.op[v] == o.op[n])
                continue;
            const struct type *t = type_at(&g->store->type, node_type(g, x->vals[i].a));
            if (t->kind == TYPE_TENSOR && !works_on(&o, o.op[n] - 1, v) &&
                !copied_for(&o, o.op[n] - 1, v))
                why = wrong("%s does not work on what %s shows", op_name(p, o.op[n] - 1),
                            graph_str(g, node_at(g, x->vals[i].a)->name));
        }
    }
    free(o.op);
    free(o.base);
    return why;
}

/* ---- all of it ---- */

static char *check(struct program *p, const uint32_t *order, bool races)
{
    char *why = check_ops(p, order, races);

    if (why == NULL && memory_plan(p, order) != TUCK_OK)
        why = wrong("no memory");
    if (why == NULL)
        why = check_peak(p, order);
    return why != NULL ? why : check_plan(p, order);
}

char *check_program_plan(struct program *p, const uint32_t *order)
{
    return check(p, order, false);
}

char *check_program(struct program *p, const uint32_t *order)
{
    return check(p, order, true);
}

struct print_args {
    struct mem mem;
    struct buf b;
    const struct program *p;
};

static void do_print(void *arg)
{
    struct print_args *t = arg;

    program_print(t->p, &t->b);
    buf_text(&t->b);
}

static void print(struct print_args *t, const struct program *p)
{
    mem_init(&t->mem, NULL);
    buf_init(&t->b, &t->mem);
    t->p = p;
    if (!mem_guard(&t->mem, do_print, t))
        abort();
}

char *check_program_text(const struct program *p)
{
    struct print_args a, b;
    struct program *q = NULL;
    tuck_diags *d = tuck_diags_new(NULL);
    char *why = NULL;

    print(&a, p);
    if (program_read(a.b.at, a.b.len, "text", NULL, d, &q) != TUCK_OK) {
        why = diags_text(d);
    } else {
        q->peak = p->peak;
        q->arena_bytes = p->arena_bytes;
        q->resident = p->resident;
        q->comm_digest = p->comm_digest;
        print(&b, q);
        if (a.b.len != b.b.len || memcmp(a.b.at, b.b.at, a.b.len) != 0)
            why = wrong("another program when it is read:\n%s", b.b.at);
        buf_destroy(&b.b);
    }
    buf_destroy(&a.b);
    program_free(q);
    tuck_diags_free(d);
    return why;
}

/* ---- the order in the graph ---- */

struct apply_args {
    tuck_graph *g;
    const struct program *p;
    const uint32_t *order;
    struct arena a;
};

static void do_apply(void *arg)
{
    struct apply_args *x = arg;

    lower_apply(x->g, x->p, x->order, &x->a);
}

char *check_apply(tuck_graph *g, const struct program *p, const uint32_t *order)
{
    struct apply_args x = {.g = g, .p = p, .order = order};
    tuck_diags *d = tuck_diags_new(NULL);

    arena_init(&x.a, &g->store->mem);
    if (!mem_guard(&g->store->mem, do_apply, &x))
        abort();
    arena_destroy(&x.a);
    char *why = tuck_graph_lint(g, d) == TUCK_OK ? NULL : diags_text(d);
    tuck_diags_free(d);
    return why;
}

/* The next op of q that belongs to nodes of the graph. */
static uint32_t with_nodes(const struct program *q, uint32_t op)
{
    while (op < q->n_op && q->node_at[op] == q->node_at[op + 1])
        op++;
    return op;
}

char *check_same_order(const struct program *p, const uint32_t *order, const struct program *q)
{
    uint32_t k = 0;

    if (q->n_op > p->n_op)
        return wrong("%u ops became %u", p->n_op, q->n_op);
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = at_step(order, step), a = p->node_at[op], n = p->node_at[op + 1] - a;

        if (n == 0)
            continue; /* a copy: it is next to the node that needs it */
        k = with_nodes(q, k);
        if (k == q->n_op || q->node_at[k + 1] - q->node_at[k] != n)
            return wrong("%s has %u nodes, others than now", op_name(p, op), n);
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(program_str(p, p->node[a + i]),
                       program_str(q, q->node[q->node_at[k] + i])) != 0)
                return wrong("%s stands elsewhere", program_str(p, p->node[a + i]));
        k++;
    }
    return with_nodes(q, k) == q->n_op ? NULL : wrong("%s came to it", op_name(q, k));
}
