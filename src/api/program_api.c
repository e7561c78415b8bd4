/* Programs in the public interface. */
#include "api/api.h"
#include "api/machine_api.h"
#include "api/schedule_api.h"
#include "plan/arena_plan.h"
#include "plan/from_program.h"
#include "plan/graph_peak.h"
#include "report/program_show.h"
#include "study/evaluate.h"

struct tuck_program {
    struct program *p;
    const struct fx_store
        *store; /* store of the graph it comes from, and its size then; NULL if none */
    uint32_t n_node, n_nodes;
    const char *machine, *notes; /* the cluster of its times and notes about them, or NULL */
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
        *w = (tuck_program){
            .p = p, .store = g->store, .n_node = g->node.len, .n_nodes = g->n_nodes};
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

void tuck_lower_options_init(tuck_lower_options *o)
{
    struct lower_options own;

    lower_defaults(&own);
    *o = (tuck_lower_options){.size = sizeof(*o), .one_shot_threshold = own.one_shot_threshold};
}

static void set_options(struct lower_options *to, const tuck_lower_options *o)
{
    lower_defaults(to);
    to->no_fuse = o->no_fuse;
    to->keep_clones = o->keep_clones;
    to->auto_select = o->auto_select;
    to->one_shot_threshold = o->one_shot_threshold;
    to->symm_group = o->symm_group;
    to->n_symm_group = o->n_symm_group;
    to->keep = o->keep;
    to->n_keep = o->n_keep;
    to->free = o->free;
    to->n_free = o->n_free;
}

struct noting {
    tuck_program *p;
    const tuck_cluster *c;
    struct buf text;
};

static void do_note(void *arg)
{
    struct noting *x = arg;
    struct program *p = x->p->p;
    const char *name = tuck_cluster_name(x->c);

    program_notes(p, x->c, &x->text);
    x->p->machine = arena_str(&p->arena, name, strlen(name));
    x->p->notes = arena_str(&p->arena, x->text.at, x->text.len);
}

/* What the program's text and summary say about the machine. */
static tuck_status note_machine(tuck_program *p, const tuck_cluster *c)
{
    struct noting x = {.p = p, .c = c};

    buf_init(&x.text, &p->p->mem);
    bool ok = mem_guard(&p->p->mem, do_note, &x);
    buf_destroy(&x.text);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

static tuck_status lower(tuck_graph *g, const tuck_lower_options *o, struct machine *m,
                         tuck_diags *diags, tuck_program **out)
{
    struct lower_options lo;
    struct program *p = NULL;
    tuck_program *made = NULL;

    set_options(&lo, o);
    if (o->times == TUCK_NO_TIMES)
        m->cluster = NULL;
    tuck_status st = evaluate_lower(g, &lo, m, diags, &p);
    if (st == TUCK_OK)
        st = wrap(p, g, &made);
    if (st == TUCK_OK && m->cluster != NULL)
        st = note_machine(made, m->cluster);
    if (st == TUCK_OK)
        *out = made;
    else
        tuck_program_free(made);
    return st;
}

tuck_status tuck_graph_lower(tuck_graph *g, const tuck_lower_options *options, tuck_diags *diags,
                             tuck_program **out)
{
    tuck_lower_options o;
    struct given_machine *given = NULL;

    tuck_lower_options_init(&o);
    if (g == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK)
        return TUCK_EINVAL;
    tuck_status st = machine_take(
        o.machine, g, o.times == TUCK_NO_TIMES ? MACHINE_SYMBOLS : MACHINE_TIMES, diags, &given);
    if (st == TUCK_OK)
        st = lower(g, &o, &given->machine, diags, out);
    machine_drop(given);
    return st;
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

static void write_text(struct buf *b, const void *arg)
{
    const tuck_program *p = arg;

    if (p->notes != NULL)
        buf_str(b, p->notes);
    program_print(p->p, b);
}

tuck_status tuck_program_write(const tuck_program *p, tuck_write_fn write, void *ctx)
{
    if (p == NULL || write == NULL)
        return TUCK_EINVAL;
    return buf_print(&p->p->mem.alloc, false, write, ctx, write_text, p);
}

static void print_summary(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_program *p = arg;

    if (how->form == TUCK_PRINT_BRIEF)
        program_peak_line(p->p, b);
    else
        program_summary(p->p, p->machine, b);
}

tuck_status tuck_program_print(const tuck_program *p, const tuck_print_options *how,
                               tuck_write_fn write, void *ctx)
{
    tuck_print_options own = {.size = sizeof(own)};

    if (p == NULL || p->p->peak < 0 || options_take(&own, sizeof(own), how) != TUCK_OK ||
        own.form == TUCK_PRINT_JSON)
        return TUCK_EINVAL;
    return api_print(&p->p->mem.alloc, how, write, ctx, print_summary, p);
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

tuck_op_kind tuck_program_op_kind(const tuck_program *p, uint32_t op)
{
    return op < p->p->n_op ? (tuck_op_kind)p->p->op[op].kind : TUCK_OP_COMPUTE;
}

int64_t tuck_program_op_ps(const tuck_program *p, uint32_t op)
{
    return op < p->p->n_op && p->p->op[op].ps >= 0 ? p->p->op[op].ps : -1;
}

uint32_t tuck_program_kernel_count(const tuck_program *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->p->n_op; i++)
        n += program_is_kernel(&p->p->op[i]);
    return n;
}

uint32_t tuck_program_buffer_count(const tuck_program *p)
{
    return p->p->n_buf;
}

uint32_t tuck_program_unknown_count(const tuck_program *p)
{
    return p->p->n_unknown;
}

tuck_status tuck_program_check_times(const tuck_program *p, tuck_unknown unknown, tuck_diags *diags)
{
    return p ? gaps_tell(p->p, unknown == TUCK_REFUSE, diags) : TUCK_EINVAL;
}

/* Does every op occur once, after what it depends on? The caller passes `place`, [n_op] zeros. */
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
    tuck_status st = p ? check_order(p->p, order) : TUCK_EINVAL;

    if (st == TUCK_OK)
        st = memory_plan(p->p, order);
    if (st == TUCK_OK && memory_out != NULL)
        *memory_out = (tuck_memory){.peak = p->p->peak,
                                    .arena = p->p->arena_bytes,
                                    .resident = p->p->resident,
                                    .comm_digest = p->p->comm_digest};
    return st;
}

tuck_status tuck_graph_torch_peak(tuck_graph *g, const tuck_hint *hints, size_t n_hints,
                                  tuck_torch_peak *peak_out)
{
    tuck_machine machine = {.size = sizeof(machine), .hints = hints, .n_hints = n_hints};
    struct given_machine *given = NULL;
    struct graph_peak peak;

    if (g == NULL || peak_out == NULL)
        return TUCK_EINVAL;
    tuck_status st = machine_take(&machine, g, MACHINE_SYMBOLS, NULL, &given);
    if (st == TUCK_OK)
        st = memory_graph_peak(g, given->machine.hint, given->machine.n_hint, &peak);
    machine_drop(given);
    if (st == TUCK_OK)
        *peak_out = (tuck_torch_peak){.peak = peak.peak,
                                      .initial = peak.initial,
                                      .node = {peak.node},
                                      .unknown = peak.unknown};
    return st;
}

tuck_status tuck_program_problem(const tuck_program *p, tuck_diags *diags, tuck_problem **out)
{
    struct problem *problem = NULL;

    if (p == NULL || out == NULL)
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
    if (p == NULL || g == NULL || p->store != g->store || p->n_node != g->node.len ||
        p->n_nodes != g->n_nodes)
        return TUCK_EINVAL;
    tuck_status st = check_order(p->p, order);
    if (st != TUCK_OK)
        return st;
    struct apply x = {.p = p->p, .order = order, .g = g};
    arena_init(&x.a, &g->store->mem);
    bool ok = mem_guard(&g->store->mem, do_apply, &x);
    arena_destroy(&x.a);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
