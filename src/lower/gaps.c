#include "lower/gaps.h"

#include "base/buf.h"
#include "base/diag.h"
#include "infer/infer.h"

const char gaps_how_symbols[] =
    "give each a value with --assume SYMBOL=N, or all of them with --assume '*=N'";
const char gaps_how[] =
    "print the graph with its types: TORCH_LOGS=aot_graphs,post_grad_graphs, "
    "gm.print_readable(include_stride=True, include_device=True), or take the files that tlparse "
    "writes; gm.code and str(graph) have no sizes";
static const char how_operators[] =
    "Tuck does not know what these operators return: give their times with --profile";

/* Does the simulator count time for it? */
static bool takes_time(const struct program_op *op)
{
    return op->kind != PROGRAM_WAIT && !(op->flags & PROGRAM_NOP);
}

/* Resident inputs do not depend on the order. */
static bool counts_in_peak(const struct program_buf *b)
{
    return !(b->flags & PROGRAM_INPUT) || (b->flags & PROGRAM_FREEABLE);
}

/* Is the size of something that the op reads or writes in place unknown? Not of its results. */
static bool is_unsized(const struct program *p, uint32_t op)
{
    for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++)
        if (p->use[k].how != PROGRAM_WRITES && (p->buf[p->use[k].buf].flags & PROGRAM_UNKNOWN))
            return true;
    return false;
}

struct gaps gaps_of(const struct program *p)
{
    struct gaps g = {.first = PROGRAM_NONE, .last = PROGRAM_NONE};

    for (uint32_t i = 0; i < p->n_buf && p->n_unknown > 0; i++)
        g.n_buf += (p->buf[i].flags & PROGRAM_UNKNOWN) != 0 && counts_in_peak(&p->buf[i]);
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (!takes_time(&p->op[i]))
            continue;
        g.n_op++;
        if (p->op[i].ps >= 0)
            continue;
        g.n_unknown++;
        g.n_coll += p->op[i].kind == PROGRAM_COLLECTIVE;
        g.n_unsized += p->op[i].kind == PROGRAM_COLLECTIVE || is_unsized(p, i);
        g.first = g.first == PROGRAM_NONE ? i : g.first;
        g.last = i;
    }
    return g;
}

bool gaps_refuse(const struct gaps *g)
{
    return g->n_coll > 0 || (uint64_t)g->n_unknown * GAPS_SHARE > g->n_op;
}

struct telling {
    const struct program *p;
    const struct gaps *gaps;
    struct buf names;
};

/* Inputs without a size explain most gaps, so they come first. */
static void list_inputs(struct telling *t, uint32_t *n)
{
    for (uint32_t i = 0; i < t->p->n_input && *n < GAPS_NAMED; i++)
        if (t->p->buf[i].flags & PROGRAM_UNKNOWN) {
            buf_printf(&t->names, "%s%s", *n > 0 ? ", " : "", program_str(t->p, t->p->buf[i].name));
            ++*n;
        }
}

static void do_list(void *arg)
{
    struct telling *t = arg;
    uint32_t n = 0, of = t->gaps->n_unknown;

    for (uint32_t i = 0; i < t->p->n_input; i++)
        of += (t->p->buf[i].flags & PROGRAM_UNKNOWN) != 0;
    list_inputs(t, &n);
    for (uint32_t i = t->gaps->first; n < GAPS_NAMED && i <= t->gaps->last && i < t->p->n_op; i++)
        if (takes_time(&t->p->op[i]) && t->p->op[i].ps < 0) {
            buf_printf(&t->names, "%s%s", n > 0 ? ", " : "", program_str(t->p, t->p->op[i].name));
            n++;
        }
    if (n < of)
        buf_printf(&t->names, ", … (%u more)", of - n);
}

static tuck_status tell(const struct program *p, const struct gaps *gaps, bool refused,
                        tuck_diags *diags)
{
    struct mem m;
    struct telling t = {.p = p, .gaps = gaps};
    struct diag_source source = {.file = program_str(p, p->source)};
    struct diag_pos at = {.source = &source};

    mem_init(&m, &p->mem.alloc);
    buf_init(&t.names, &m);
    bool ok = mem_guard(&m, do_list, &t);
    if (ok && refused && gaps->n_unsized == 0)
        diag_add(diags, TUCK_ERROR, at, how_operators,
                 "the time of %u of %u ops is not known, so nothing can be said about the step: %s",
                 gaps->n_unknown, gaps->n_op, buf_text(&t.names));
    else if (ok && refused)
        diag_add(diags, TUCK_ERROR, at, gaps_how,
                 "the sizes of %u of %u ops are unknown, so no time can be given: %s",
                 gaps->n_unknown, gaps->n_op, buf_text(&t.names));
    else if (ok)
        diag_add(diags, TUCK_WARNING, at,
                 "their time and memory are not counted: the real step takes longer, and no bound "
                 "is given",
                 "the time of %u of %u ops is unknown: %s", gaps->n_unknown, gaps->n_op,
                 buf_text(&t.names));
    buf_destroy(&t.names);
    return !ok ? TUCK_ENOMEM : refused ? TUCK_EINVAL : TUCK_OK;
}

tuck_status gaps_tell(const struct program *p, bool strict, tuck_diags *diags)
{
    struct gaps gaps = gaps_of(p);

    if (gaps.n_unknown == 0)
        return TUCK_OK;
    return tell(p, &gaps, strict || gaps_refuse(&gaps), diags);
}

tuck_status gaps_check(const struct program *p, tuck_diags *diags)
{
    struct gaps gaps = gaps_of(p);

    return gaps_refuse(&gaps) ? tell(p, &gaps, true, diags) : TUCK_OK;
}
