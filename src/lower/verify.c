#include "lower/verify.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE PROGRAM_NONE

/* Transfers running on a buffer. */
struct flight {
    uint32_t writer;  /* collective that writes it, or NONE */
    uint32_t readers; /* collectives that read it */
    uint32_t reader;  /* one of the readers */
};

struct verify {
    const struct program *p;
    bool races; /* look for races, too */
    struct arena *a;
    const char *why; /* the first thing found */
    uint32_t *step;  /* by op: its position + 1; 0 if not reached */
    bool *made;      /* by buffer */
    struct flight *flight;
    bool *over; /* by op that is a collective: its first wait was reached */
};

static void wrong(struct verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct verify *v, const char *fmt, ...)
{
    struct buf b;
    va_list ap;

    if (v->why != NULL)
        return;
    buf_init(&b, v->a->mem);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    v->why = arena_str(v->a, b.at, b.len);
    buf_destroy(&b);
}

static const char *op_name(const struct verify *v, uint32_t op)
{
    return program_str(v->p, v->p->op[op].name);
}

static const char *buf_name(const struct verify *v, uint32_t buf)
{
    return program_str(v->p, v->p->buf[buf].name);
}

/* ---- lists ---- */

static void check_rows(struct verify *v, const char *what, const uint32_t *at)
{
    for (uint32_t op = 0; op < v->p->n_op; op++)
        if (at[op] > at[op + 1])
            wrong(v, "the %s of %s end before they begin", what, op_name(v, op));
}

static void check_lists(struct verify *v)
{
    const struct program *p = v->p;

    check_rows(v, "uses", p->use_at);
    check_rows(v, "dependences", p->dep_at);
    check_rows(v, "nodes", p->node_at);
    check_rows(v, "waits", p->wait_at);
    for (uint32_t op = 0; op < p->n_op && v->why == NULL; op++) {
        if (p->op[op].kind >= PROGRAM_KIND_END)
            wrong(v, "%s has an invalid kind", op_name(v, op));
        for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
            if (p->use[i].buf >= p->n_buf)
                wrong(v, "%s uses a buffer that is not there", op_name(v, op));
        for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++)
            if (p->dep[i].op >= p->n_op)
                wrong(v, "%s depends on an op that is not there", op_name(v, op));
        for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
            if (p->wait[i] >= p->n_op || p->op[p->wait[i]].kind != PROGRAM_COLLECTIVE)
                wrong(v, "%s waits for something that is not a collective", op_name(v, op));
        if (p->op[op].group != NONE && p->op[op].group >= p->n_group)
            wrong(v, "%s is of a group that is not there", op_name(v, op));
    }
    for (uint32_t i = 0; i < p->n_buf && v->why == NULL; i++) {
        bool input = (p->buf[i].flags & PROGRAM_INPUT) != 0;
        if (input != (i < p->n_input) || input != (p->buf[i].producer == NONE))
            wrong(v, "%s is an input, or is not, in one place only", buf_name(v, i));
        if (p->buf[i].bytes < 0)
            wrong(v, "%s has a negative size", buf_name(v, i));
    }
}

/* ---- one op ---- */

static void check_needs(struct verify *v, uint32_t op)
{
    const struct program *p = v->p;

    for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++)
        if (v->step[p->dep[i].op] == 0)
            wrong(v, "%s comes before %s, which it depends on", op_name(v, op),
                  op_name(v, p->dep[i].op));
    for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
        if (v->step[p->wait[i]] == 0)
            wrong(v, "%s waits for %s, which has not begun", op_name(v, op),
                  op_name(v, p->wait[i]));
}

static void check_use(struct verify *v, uint32_t op, struct program_use use)
{
    const struct program *p = v->p;
    const struct flight *f = &v->flight[use.buf];
    bool writes = use.how != PROGRAM_READS;

    if (use.how == PROGRAM_WRITES) {
        if (v->made[use.buf] || p->buf[use.buf].producer != op)
            wrong(v, "%s makes %s, which something else makes", op_name(v, op),
                  buf_name(v, use.buf));
        v->made[use.buf] = true;
    } else if (!v->made[use.buf]) {
        wrong(v, "%s uses %s before it is made", op_name(v, op), buf_name(v, use.buf));
    }
    if (!v->races || p->op[op].kind == PROGRAM_WAIT)
        return; /* a wait uses no buffers itself; it names what it ends */
    if (f->writer != NONE && f->writer != op)
        wrong(v, "%s touches %s while %s writes it", op_name(v, op), buf_name(v, use.buf),
              op_name(v, f->writer));
    if (writes && f->readers > 0 && f->reader != op)
        wrong(v, "%s writes %s while %s reads it", op_name(v, op), buf_name(v, use.buf),
              op_name(v, f->reader));
}

static void begin_flight(struct verify *v, uint32_t coll)
{
    const struct program *p = v->p;

    if (p->op[coll].kind != PROGRAM_COLLECTIVE || !(p->op[coll].flags & PROGRAM_ASYNC) ||
        !(p->op[coll].flags & PROGRAM_ENDED))
        return;
    for (uint32_t i = p->use_at[coll]; i < p->use_at[coll + 1]; i++) {
        struct flight *f = &v->flight[p->use[i].buf];
        if (p->use[i].how != PROGRAM_READS) {
            f->writer = coll;
        } else {
            f->readers++;
            f->reader = coll;
        }
    }
}

static void end_flight(struct verify *v, uint32_t coll)
{
    const struct program *p = v->p;

    if (v->over[coll] || !(p->op[coll].flags & PROGRAM_ASYNC))
        return;
    v->over[coll] = true;
    for (uint32_t i = p->use_at[coll]; i < p->use_at[coll + 1]; i++) {
        struct flight *f = &v->flight[p->use[i].buf];
        if (p->use[i].how == PROGRAM_READS)
            f->readers -= f->readers > 0;
        else if (f->writer == coll)
            f->writer = NONE;
    }
}

static void check_op(struct verify *v, uint32_t op)
{
    const struct program *p = v->p;

    check_needs(v, op);
    for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
        end_flight(v, p->wait[i]);
    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
        check_use(v, op, p->use[i]);
    begin_flight(v, op);
}

static const char *check(const struct program *p, const uint32_t *order, bool races,
                         struct arena *a)
{
    struct verify v = {.p = p, .races = races, .a = a};

    check_lists(&v);
    v.step = arena_zeroed(a, ((size_t)p->n_op + 1) * sizeof(*v.step));
    v.over = arena_zeroed(a, (size_t)p->n_op + 1);
    v.made = arena_zeroed(a, (size_t)p->n_buf + 1);
    v.flight = arena_array(a, struct flight, (size_t)p->n_buf + 1);
    for (uint32_t i = 0; i < p->n_buf; i++) {
        v.flight[i] = (struct flight){NONE, 0, NONE};
        v.made[i] = (p->buf[i].flags & PROGRAM_INPUT) != 0;
    }
    for (uint32_t i = 0; i < p->n_op && v.why == NULL; i++) {
        uint32_t op = order ? order[i] : i;
        if (op >= p->n_op || v.step[op] != 0) {
            wrong(&v, "place %u of the order is not an op, or one that came before", i);
            break;
        }
        check_op(&v, op);
        v.step[op] = i + 1;
    }
    return v.why;
}

const char *program_wrong(const struct program *p, const uint32_t *order, struct arena *a)
{
    return check(p, order, false, a);
}

const char *program_races(const struct program *p, const uint32_t *order, struct arena *a)
{
    return check(p, order, true, a);
}

const char *graph_order_wrong(const tuck_graph *g, struct arena *a)
{
    struct verify v = {.a = a};
    bool *there = arena_zeroed(a, g->node.len);
    uint32_t n_nodes = 0, before = 0;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        if (there[n] || x->kind == 0 || x->prev != before) {
            wrong(&v, "node %u is linked twice, erased, or does not know its neighbor", n);
            break;
        }
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE && !there[x->vals[i].a])
                wrong(&v, "'%s' comes before '%s', which it uses", graph_str(g, x->name),
                      graph_str(g, node_at(g, x->vals[i].a)->name));
        there[n] = true;
        before = n;
        n_nodes++;
    }
    if (n_nodes != g->n_nodes)
        wrong(&v, "%u nodes are linked, and %u are alive", n_nodes, g->n_nodes);
    return v.why;
}

#ifdef TUCK_CHECK

struct verify_args {
    const struct program *p;
    const uint32_t *order;
    const tuck_graph *g;
    struct arena a;
    const char *why;
};

static void do_verify(void *arg)
{
    struct verify_args *x = arg;

    if (x->g != NULL)
        x->why = graph_order_wrong(x->g, &x->a);
    else if (x->order == NULL || program_races(x->p, NULL, &x->a) != NULL)
        x->why = program_wrong(x->p, x->order, &x->a);
    else
        x->why = program_races(x->p, x->order, &x->a);
}

/* Uses memory of its own: allocations here must not count in tests that make the caller's allocator
 * fail. */
static void verify(struct verify_args *x)
{
    struct mem m;

    mem_init(&m, NULL);
    arena_init(&x->a, &m);
    if (mem_guard(&m, do_verify, x) && x->why != NULL) {
        fprintf(stderr, "tuck: a fault: %s\n", x->why);
        abort();
    }
    arena_destroy(&x->a);
}

void program_verify(const struct program *p)
{
    verify(&(struct verify_args){.p = p});
}

void program_order_verify(const struct program *p, const uint32_t *order)
{
    verify(&(struct verify_args){.p = p, .order = order});
}

void graph_order_verify(const tuck_graph *g)
{
    verify(&(struct verify_args){.g = g});
}

#endif
