#include "schedule/align.h"

#include <pthread.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

struct align {
    struct schedule *s;
    uint32_t n_rank;
    const tuck_estimates *all;
};

static void do_medians(void *ctx)
{
    struct align *x = ctx;
    struct schedule *s = x->s;
    struct arena_mark mark = arena_mark(&s->arena);
    double *row = arena_array(&s->arena, double, x->n_rank);

    for (uint32_t op = 0; op < s->p->n_op; op++) {
        for (uint32_t r = 0; r < x->n_rank; r++)
            row[r] = x->all[r].at[op];
        qsort(row, x->n_rank, sizeof(*row), by_value);
        s->runtime[op] = row[(x->n_rank - 1) / 2];
        s->worth.known = false;
    }
    arena_release(&s->arena, mark);
}

tuck_status schedule_align(struct schedule *s, const tuck_transport *t, tuck_diags *diags)
{
    struct align x = {s, t->n_rank, t->gather(t->ctx, t->rank, s->runtime, s->p->n_op)};

    if (x.all == NULL)
        return TUCK_EIO;
    for (uint32_t r = 0; r < t->n_rank; r++)
        if (x.all[r].n != s->p->n_op) {
            diag_add(diags, TUCK_WARNING, NOWHERE, NULL,
                     "rank %u schedules %u ops and rank %u %u: runtimes are not aligned", t->rank,
                     s->p->n_op, r, x.all[r].n);
            return TUCK_OK;
        }
    if (!mem_guard(&s->mem, do_medians, &x))
        return TUCK_ENOMEM;
    s->medians_of = t->n_rank;
    return TUCK_OK;
}

/* ---- ranks that are threads ---- */

struct local_ranks {
    struct mem mem;
    uint32_t n_rank, n_here; /* n_here: ranks that have delivered */
    uint64_t round;
    bool failed; /* out of memory for a caller's data */
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    tuck_estimates *row; /* of the finished round, and of the current one */
    double **copy;
    size_t *size;
};

struct local_ranks *local_ranks_new(uint32_t n_rank, const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct local_ranks *l = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*l));
    size_t n = 2 * (size_t)n_rank,
           bytes = n * (sizeof(*l->row) + sizeof(*l->copy) + sizeof(*l->size));
    void *rows = l ? m.alloc.resize(m.alloc.ctx, NULL, 0, bytes) : NULL;
    if (rows == NULL) {
        mem_free(&m, l, sizeof(*l));
        return NULL;
    }
    memset(rows, 0, bytes);
    *l = (struct local_ranks){.mem = m, .n_rank = n_rank, .row = rows};
    l->copy = (double **)(l->row + n);
    l->size = (size_t *)(l->copy + n);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->all_here, NULL);
    return l;
}

void local_ranks_free(struct local_ranks *l)
{
    if (l == NULL)
        return;
    struct mem m = l->mem;
    size_t n = 2 * (size_t)l->n_rank;

    for (size_t i = 0; i < n; i++)
        mem_free(&m, l->copy[i], l->size[i]);
    pthread_cond_destroy(&l->all_here);
    pthread_mutex_destroy(&l->lock);
    mem_free(&m, l->row, n * (sizeof(*l->row) + sizeof(*l->copy) + sizeof(*l->size)));
    mem_free(&m, l, sizeof(*l));
}

/* Rounds alternate between two sets of rows: no rank starts the round after the next before all
 * have left this one. */
static const tuck_estimates *gather(void *ctx, uint32_t rank, const double *mine, uint32_t n)
{
    struct local_ranks *l = ctx;
    size_t bytes = (size_t)n * sizeof(*mine);

    pthread_mutex_lock(&l->lock);
    uint64_t round = l->round;
    size_t i = (round & 1) * l->n_rank + rank;
    mem_free(&l->mem, l->copy[i], l->size[i]);
    l->copy[i] = bytes ? l->mem.alloc.resize(l->mem.alloc.ctx, NULL, 0, bytes) : NULL;
    l->size[i] = l->copy[i] ? bytes : 0;
    l->failed |= bytes > 0 && l->copy[i] == NULL;
    if (l->copy[i] != NULL)
        memcpy(l->copy[i], mine, bytes);
    l->row[i] = (tuck_estimates){l->copy[i], n};
    if (++l->n_here == l->n_rank) {
        l->n_here = 0;
        l->round++;
        pthread_cond_broadcast(&l->all_here);
    }
    while (l->round == round)
        pthread_cond_wait(&l->all_here, &l->lock);
    const tuck_estimates *all = l->failed ? NULL : l->row + (round & 1) * l->n_rank;
    pthread_mutex_unlock(&l->lock);
    return all;
}

tuck_transport local_ranks_transport(struct local_ranks *l, uint32_t rank)
{
    return (tuck_transport){l, rank, l->n_rank, gather};
}
