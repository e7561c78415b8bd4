/* Comparisons in the public interface. */
#include "api/api.h"
#include "api/simulate_api.h"
#include "rewrite/comm_order.h"
#include "study/diff.h"
#include "study/judge.h"

enum { CHANGES = TUCK_MOVED + 1 };

struct tuck_diff {
    struct diff d;
    tuck_changed *list[CHANGES];
    size_t n[CHANGES];
};

/* ---- making ---- */

static void add(tuck_diff *x, tuck_change change, tuck_changed what)
{
    x->list[change][x->n[change]++] = what;
}

static void do_list(void *arg)
{
    tuck_diff *x = arg;
    struct diff *d = &x->d;
    const size_t most[CHANGES] = {d->b.n, d->a.n, d->a.n, d->n_move};

    for (int i = 0; i < CHANGES; i++)
        x->list[i] = arena_array(&d->arena, tuck_changed, most[i] + 1);
    for (uint32_t i = 0; i < d->a.n; i++) {
        uint32_t n = d->a.node[i], into = d->a.became[n];
        if (d->a.match[n] == 0)
            add(x, into != 0 ? TUCK_MERGED : TUCK_VANISHED,
                (tuck_changed){.before = {n}, .after = {into}});
    }
    for (uint32_t i = 0; i < d->b.n; i++)
        if (d->b.match[d->b.node[i]] == 0)
            add(x, TUCK_APPEARED, (tuck_changed){.after = {d->b.node[i]}});
    for (uint32_t i = 0; i < d->n_move; i++) {
        const struct diff_move *m = &d->move[i];
        add(x, TUCK_MOVED,
            (tuck_changed){{d->b.match[m->node]}, {m->node}, m->from, m->to, m->places});
    }
}

tuck_status tuck_simulation_diff(const tuck_simulation *before, const tuck_simulation *after,
                                 tuck_diff **out)
{
    if (before == NULL || after == NULL || out == NULL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &before->mem.alloc;
    tuck_diff *x = alloc->resize(alloc->ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_diff){.n = {0}};
    tuck_status st = diff_graphs(before->g, before->e, after->g, after->e, &x->d);
    if (st == TUCK_OK && !mem_guard(&x->d.mem, do_list, x))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK)
        *out = x;
    else
        tuck_diff_free(x);
    return st;
}

void tuck_diff_free(tuck_diff *x)
{
    if (x == NULL)
        return;
    struct mem m = x->d.mem;
    diff_end(&x->d);
    mem_free(&m, x, sizeof(*x));
}

/* ---- reading ---- */

static void fill_side(const struct diff_side *s, tuck_diff_side *out)
{
    *out = (tuck_diff_side){.bound_ps = evaluation_is_bounded(s->e) ? s->e->any.ps : -1,
                            .nodes = s->n};
    judge_times(s->e, &out->times);
    for (uint32_t i = 0; i < s->n; i++)
        out->collectives += comm_communicates(s->g, s->node[i]);
}

void tuck_diff_before(const tuck_diff *x, tuck_diff_side *out)
{
    fill_side(&x->d.a, out);
}

void tuck_diff_after(const tuck_diff *x, tuck_diff_side *out)
{
    fill_side(&x->d.b, out);
}

size_t tuck_diff_same(const tuck_diff *x)
{
    return x->d.b.n - x->n[TUCK_APPEARED];
}

static tuck_node other(const struct diff_side *s, tuck_node n)
{
    return (tuck_node){n.id < s->g->node.len ? s->match[n.id] : 0};
}

tuck_node tuck_diff_node_after(const tuck_diff *x, tuck_node before)
{
    return other(&x->d.a, before);
}

tuck_node tuck_diff_node_before(const tuck_diff *x, tuck_node after)
{
    return other(&x->d.b, after);
}

size_t tuck_diff_count(const tuck_diff *x, tuck_change change)
{
    return x != NULL && (unsigned)change < CHANGES ? x->n[change] : 0;
}

bool tuck_diff_at(const tuck_diff *x, tuck_change change, size_t i, tuck_changed *out)
{
    if (i >= tuck_diff_count(x, change) || out == NULL)
        return false;
    *out = x->list[change][i];
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_diff *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        diff_json(&x->d, b);
    else
        diff_table(&x->d, api_top(how, 10), b);
}

tuck_status tuck_diff_print(const tuck_diff *x, const tuck_print_options *how, tuck_write_fn write,
                            void *ctx)
{
    return x ? api_print(&x->d.mem.alloc, how, write, ctx, print, x) : TUCK_EINVAL;
}
