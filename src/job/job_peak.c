/* The memory of forward and backward together, as PyTorch's estimator has it, and which inputs of a
 * backward share a storage. */
#include <string.h>

#include "job/job.h"
#include "plan/graph_peak.h"

struct peaks {
    const struct job *j;
    const struct job_rank *r;
    struct arena arena;
    struct graph_peak_more *more; /* by part of the rank */
    bool **primal;                /* by part, by storage: it is a primal's */
    struct job_peak out;
    tuck_status st;
};

static struct graph_peak_more arrays(struct peaks *x, const tuck_graph *g)
{
    size_t n = g->node.len;

    return (struct graph_peak_more){.keep = arena_zeroed(&x->arena, n * sizeof(bool)),
                                    .input_bytes = arena_zeroed(&x->arena, n * sizeof(int64_t)),
                                    .after = arena_zeroed(&x->arena, n * sizeof(bool)),
                                    .root = arena_zeroed(&x->arena, n * sizeof(uint32_t)),
                                    .bytes = arena_zeroed(&x->arena, n * sizeof(int64_t))};
}

static bool is_primal(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    return x->kind == TUCK_PLACEHOLDER && strncmp(graph_str(g, x->name), "primals", 7) == 0;
}

/* The storage of an input of a backward is that of the forward's value: its size, whether it is a
 * primal's, and with which other inputs it is shared. */
static void look_at_inputs(struct peaks *x, uint32_t at)
{
    const struct job_part *b = &x->j->part.at[x->r->first + at];
    bool *keep = (bool *)(uintptr_t)x->more[at].keep;
    int64_t *bytes = (int64_t *)(uintptr_t)x->more[at].input_bytes;

    for_each_node (b->graph, n) {
        if (node_at(b->graph, n)->kind != TUCK_PLACEHOLDER)
            continue;
        struct tie t = b->tie[n];
        if (t.part == NO_PART) {
            keep[n] = true;
            continue;
        }
        const struct graph_peak_more *m = &x->more[t.part - x->r->first];
        uint32_t from = job_tied(x->j, t);
        bytes[n] = m->bytes[from];
        keep[n] |= x->primal[t.part - x->r->first][m->root[from]];
        ((bool *)(uintptr_t)m->after)[from] = true;
    }
    for (uint32_t i = 0; i < b->graph->param.len; i++) {
        struct fx_param *q = &b->graph->param.at[i];
        struct tie t = q->node != 0 ? b->tie[q->node] : (struct tie){NO_PART, 0};
        if (t.part != NO_PART && t.part == b->forward)
            q->storage = x->more[t.part - x->r->first].root[job_tied(x->j, t)];
    }
}

static void note_primals(struct peaks *x, uint32_t at)
{
    const tuck_graph *g = x->j->part.at[x->r->first + at].graph;
    const uint32_t *root = x->more[at].root;
    uint32_t most = 0;

    for_each_node (g, n)
        most = root[n] > most ? root[n] : most;
    x->primal[at] = arena_zeroed(&x->arena, (size_t)most + 1);
    for_each_node (g, n)
        x->primal[at][root[n]] |= root[n] != 0 && is_primal(g, n);
}

static struct graph_peak peak_of(struct peaks *x, uint32_t at)
{
    tuck_graph *g = x->j->part.at[x->r->first + at].graph;
    struct graph_peak p = {.peak = 0};

    if (x->st == TUCK_OK)
        x->st = memory_graph_peak_of(g, g->hint.at, g->hint.len, &x->more[at], &p);
    x->out.unknown += p.unknown;
    return p;
}

static void do_peaks(void *arg)
{
    struct peaks *x = arg;
    int64_t *returned = arena_zeroed(&x->arena, (x->r->n + 1) * sizeof(*returned));

    x->primal = arena_array(&x->arena, bool *, x->r->n);
    x->more = arena_array(&x->arena, struct graph_peak_more, x->r->n);
    for (uint32_t i = 0; i < x->r->n; i++)
        x->more[i] = arrays(x, x->j->part.at[x->r->first + i].graph);
    for (uint32_t i = 0; i < x->r->n; i++) {
        const struct job_part *p = &x->j->part.at[x->r->first + i];
        if (p->forward != NO_PART)
            look_at_inputs(x, i);
        struct graph_peak own = peak_of(x, i);
        note_primals(x, i);
        if (p->forward != NO_PART) { /* again, now that it is known what the backward gets */
            uint32_t unknown = x->out.unknown;
            returned[i] = peak_of(x, p->forward - x->r->first).returned;
            x->out.unknown = unknown;
        }
        if (own.peak + returned[i] > x->out.bytes)
            x->out.bytes = own.peak + returned[i];
    }
}

tuck_status job_peak(const struct job *j, const struct job_rank *r, struct job_peak *out)
{
    struct mem *m = &j->part.at[r->first].graph->store->mem;
    struct peaks x = {.j = j, .r = r};

    arena_init(&x.arena, m);
    bool enough = mem_guard(m, do_peaks, &x);
    arena_destroy(&x.arena);
    *out = x.out;
    return enough ? x.st : TUCK_ENOMEM;
}
