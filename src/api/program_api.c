/* Programs in the public interface. */
#include "api/api.h"
#include "lower/estimate.h"
#include "plan/arena_plan.h"
#include "study/symbol_hints.h"
#include "api/schedule_api.h"
#include "plan/from_program.h"

struct tuck_program {
    struct program *p;
    const struct fx_store
        *store; /* of the graph it comes from, and how far it had grown; NULL: none */
    uint32_t n_node, n_nodes;
};

static tuck_status wrap(struct program *p, const tuck_graph *g, tuck_program **out)
{
    tuck_program *w = p->mem.alloc.resize(p->mem.alloc.ctx, NULL, 0, sizeof(*w));

    if (w == NULL) {
        program_free(p);
        return TUCK_ENOMEM;
    }
    *w = (tuck_program){.p = p};
    if (g != NULL)
        *w = (tuck_program){p, g->store, g->node.len, g->n_nodes};
    *out = w;
    return TUCK_OK;
}

void tuck_program_free(tuck_program *p)
{
    if (p == NULL)
        return;
    tuck_allocator alloc = p->p->mem.alloc;
    program_free(p->p);
    alloc.resize(alloc.ctx, p, sizeof(*p), 0);
}

/* ---- from a graph ---- */

static void set_options(struct lower_options *to, const tuck_lower_options *o)
{
    lower_defaults(to);
    to->no_fuse = o->no_fuse;
    to->keep_clones = o->keep_clones;
    to->auto_select = o->auto_select;
    if (o->one_shot_threshold > 0)
        to->one_shot_threshold = o->one_shot_threshold;
    to->symm_group = o->symm_group;
    to->n_symm_group = o->n_symm_group;
    to->keep = o->keep;
    to->n_keep = o->n_keep;
    to->free = o->free;
    to->n_free = o->n_free;
}

static tuck_status lower(tuck_graph *g, const tuck_lower_options *o,
                         const struct cost_options *cost, const struct hints *h, tuck_diags *diags,
                         struct program **out)
{
    struct lower_options lo;
    struct machine machine;
    tuck_cluster *made = NULL;
    struct program *p = NULL;
    tuck_status st = tuck_graph_infer(g, false, diags);

    set_options(&lo, o);
    machine_init(&machine, o->cluster);
    machine.cost = *cost;
    machine.hint = h->at;
    machine.n_hint = o->n_hints;
    lo.machine = &machine;
    if (st == TUCK_OK && o->cluster == NULL)
        st = tuck_cluster_for_graph(g, &g->store->mem.alloc, diags, &made);
    if (made != NULL)
        machine.cluster = made;
    if (st == TUCK_OK)
        st = lower_graph(g, &lo, diags, &p);
    if (st == TUCK_OK)
        st = lower_estimate(p, g, &machine);
    tuck_cluster_free(made);
    if (st == TUCK_OK)
        *out = p;
    else
        program_free(p);
    return st;
}

tuck_status tuck_graph_lower(tuck_graph *g, const tuck_lower_options *options, tuck_diags *diags,
                             tuck_program **out)
{
    tuck_lower_options o = {.size = sizeof(o)};
    struct cost_options cost;
    struct program *p = NULL;

    if (g == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK ||
        cost_options_take(&cost, o.cost) != TUCK_OK)
        return TUCK_EINVAL;
    tuck_run_options run = {.size = sizeof(run), .hints = o.hints, .n_hints = o.n_hints};
    struct hints h = {.g = g, .run = &run};
    tuck_status st = hints_intern(&h);
    if (st == TUCK_OK)
        st = lower(g, &o, &cost, &h, diags, &p);
    hints_free(&h);
    return st == TUCK_OK ? wrap(p, g, out) : st;
}

/* ---- text ---- */

tuck_status tuck_program_read_text(const char *text, size_t len, const char *name,
                                   const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_program **out)
{
    struct program *p = NULL;

    if (text == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = program_read(text, len, name ? name : "", alloc, diags, &p);
    return st == TUCK_OK ? wrap(p, NULL, out) : st;
}

tuck_status tuck_program_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_program **out)
{
    struct program *p = NULL;

    if (path == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = program_read_file(path, alloc, diags, &p);
    return st == TUCK_OK ? wrap(p, NULL, out) : st;
}

static void print(struct buf *b, const void *p)
{
    program_print(p, b);
}

tuck_status tuck_program_print(const tuck_program *p, tuck_write_fn write, void *ctx)
{
    return buf_print(&p->p->mem.alloc, false, write, ctx, print, p->p);
}

/* ---- ops ---- */

uint32_t tuck_program_op_count(const tuck_program *p)
{
    return p->p->n_op;
}

const char *tuck_program_op_name(const tuck_program *p, uint32_t op)
{
    return op < p->p->n_op ? program_str(p->p, p->p->op[op].name) : "";
}

double tuck_program_op_ns(const tuck_program *p, uint32_t op)
{
    return op < p->p->n_op ? p->p->op[op].ns : -1;
}

/* Every op once, and behind what it depends on. The array is the caller's to give: [n_op] zeroes. */
static bool is_order(const struct program *p, const uint32_t *order, uint32_t *place)
{
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (order[i] >= p->n_op || place[order[i]] != 0)
            return false;
        place[order[i]] = i + 1;
        for (uint32_t d = p->dep_at[order[i]]; d < p->dep_at[order[i] + 1]; d++)
            if (place[p->dep[d].op] == 0)
                return false;
    }
    return true;
}

static tuck_status check_order(const struct program *p, const uint32_t *order)
{
    const tuck_allocator *a = &p->mem.alloc;
    size_t bytes = ((size_t)p->n_op + 1) * sizeof(uint32_t);

    if (order == NULL)
        return TUCK_OK;
    uint32_t *place = a->resize(a->ctx, NULL, 0, bytes);
    if (place == NULL)
        return TUCK_ENOMEM;
    memset(place, 0, bytes);
    bool ok = is_order(p, order, place);
    a->resize(a->ctx, place, bytes, 0);
    return ok ? TUCK_OK : TUCK_EINVAL;
}

tuck_status tuck_program_plan(tuck_program *p, const uint32_t *order, tuck_memory *memory_out)
{
    tuck_status st = check_order(p->p, order);

    if (st == TUCK_OK)
        st = memory_plan(p->p, order);
    if (st == TUCK_OK && memory_out != NULL)
        *memory_out = (tuck_memory){.peak = p->p->peak,
                                    .arena = p->p->arena_bytes,
                                    .resident = p->p->resident,
                                    .comm_digest = p->p->comm_digest};
    return st;
}

tuck_status tuck_program_problem(const tuck_program *p, tuck_diags *diags, tuck_problem **out)
{
    struct problem *problem = NULL;

    if (out == NULL)
        return TUCK_EINVAL;
    tuck_status st = problem_of_program(p->p, diags, &problem);
    return st == TUCK_OK ? problem_wrap(problem, out) : st;
}

struct apply {
    const struct program *p;
    const uint32_t *order;
    tuck_graph *g;
    struct arena a;
};

static void do_apply(void *arg)
{
    struct apply *x = arg;

    lower_apply(x->g, x->p, x->order, &x->a);
}

tuck_status tuck_program_apply(const tuck_program *p, const uint32_t *order, tuck_graph *g)
{
    struct apply x = {.p = p->p, .order = order, .g = g};

    if (g == NULL || p->store != g->store || p->n_node != g->node.len || p->n_nodes != g->n_nodes)
        return TUCK_EINVAL;
    tuck_status st = check_order(p->p, order);
    if (st != TUCK_OK)
        return st;
    arena_init(&x.a, &g->store->mem);
    bool ok = mem_guard(&g->store->mem, do_apply, &x);
    arena_destroy(&x.a);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
