/* The arrays of a problem, from the rows of its builder. */
#include "op/collective.h"
#include "plan/problem_rows.h"

static str_id *copy_names(struct arena *a, const str_id *from, uint32_t n)
{
    str_id *to = arena_array(a, str_id, n);

    if (n > 0)
        memcpy(to, from, n * sizeof(*to));
    return to;
}

/* Each kernel is looked at once; said: by string, 0: not yet. */
static bool says_extern(const struct problem *p, str_id kernel, uint8_t *said)
{
    enum { NOT_YET, NO, YES };

    if (said[kernel] == NOT_YET)
        said[kernel] = strstr(str_text(&p->str, kernel), "extern_kernels") != NULL ? YES : NO;
    return said[kernel] == YES;
}

static void fill_ops(struct problem_builder *b)
{
    struct problem *p = b->p;
    struct arena *a = &p->arena;
    uint32_t n = p->n_op = b->op.len;

    p->name = arena_array(a, str_id, n);
    p->kind = arena_array(a, uint8_t, n);
    p->flags = arena_array(a, uint8_t, n);
    p->ps = arena_array(a, int64_t, n);
    p->runtime = arena_array(a, double, n);
    p->group = arena_array(a, uint32_t, n);
    p->bytes = arena_array(a, int64_t, n);
    p->coll = arena_array(a, uint8_t, n);
    p->coll_name = arena_array(a, str_id, n);
    p->kernel = arena_array(a, str_id, n);
    p->member_at = arena_array(a, uint32_t, (size_t)n + 1);
    p->dep_at = arena_array(a, uint32_t, (size_t)n + 1);
    p->out_at = arena_array(a, uint32_t, (size_t)n + 1);
    uint8_t *said = arena_zeroed(a, (size_t)p->str.all.len + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct problem_op_row *x = &b->op.at[i];
        bool gemm = x->kind == PROBLEM_GEMM || says_extern(p, x->kernel, said);

        p->name[i] = x->name;
        p->kind[i] = x->kind;
        bool coll = x->kind == PROBLEM_COLLECTIVE;
        p->coll[i] = x->coll ? (uint8_t)tuck_coll_by_name(str_text(&p->str, x->coll)) : 0;
        bool fence = coll && (x->group == PROBLEM_NONE || coll_is_fence(p->coll[i]));
        p->flags[i] = (uint8_t)((coll && x->is_async ? PROBLEM_ASYNC : 0) |
                                (gemm ? PROBLEM_LIKE_GEMM : 0) | (fence ? PROBLEM_FENCE : 0));
        p->runtime[i] = x->runtime;
        p->ps[i] = ps_round(x->runtime * p->unit_ps);
        p->group[i] = x->group;
        p->bytes[i] = x->bytes;
        p->coll_name[i] = x->coll;
        p->kernel[i] = x->kernel;
        p->member_at[i] = x->member;
        p->dep_at[i] = x->dep;
        p->out_at[i] = b->n_input + x->out;
    }
    p->member_at[n] = b->member.len;
    p->dep_at[n] = b->dep.len;
    p->out_at[n] = b->buf.len;
    p->member = copy_names(a, b->member.at, b->member.len);
    p->dep = copy_names(a, b->dep.at, b->dep.len);
    p->dep_flags = arena_array(a, uint8_t, b->dep.len);
    if (b->dep.len > 0)
        memcpy(p->dep_flags, b->dep_flags.at, b->dep.len);
    p->n_group = b->group_name.len;
    p->group_name = copy_names(a, b->group_name.at, p->n_group);
}

/* The ops of each buffer, ascending and without duplicates: sorted by op first, then distributed by
 * buffer. */
static void fill_list(struct problem *p, const struct problem_pair *pair, uint32_t n,
                      uint32_t **at_out, uint32_t **list_out)
{
    struct arena *a = &p->arena;
    uint32_t *at = arena_array(a, uint32_t, (size_t)p->n_buf + 1);
    uint32_t *list = arena_array(a, uint32_t, n);
    struct arena_mark mark = arena_mark(a);
    uint32_t *by_op = arena_zeroed(a, ((size_t)p->n_op + 1) * sizeof(*by_op));
    uint32_t *place = arena_array(a, uint32_t, n);
    uint32_t *fill = arena_zeroed(a, ((size_t)p->n_buf + 1) * sizeof(*fill));

    for (uint32_t i = 0; i < n; i++) {
        by_op[pair[i].op + 1]++;
        fill[pair[i].buf + 1]++;
    }
    for (uint32_t i = 0; i < p->n_op; i++)
        by_op[i + 1] += by_op[i];
    for (uint32_t i = 0; i < p->n_buf; i++)
        fill[i + 1] += fill[i];
    for (uint32_t i = 0; i < n; i++)
        place[by_op[pair[i].op]++] = i;
    memcpy(at, fill, ((size_t)p->n_buf + 1) * sizeof(*at));
    for (uint32_t i = 0; i < n; i++) {
        const struct problem_pair *x = &pair[place[i]];
        if (fill[x->buf] == at[x->buf] || list[fill[x->buf] - 1] != x->op)
            list[fill[x->buf]++] = x->op;
    }
    /* Closes the gaps that duplicates left. */
    uint32_t to = 0;
    for (uint32_t i = 0; i < p->n_buf; i++) {
        uint32_t from = at[i], end = fill[i];
        at[i] = to;
        for (; from < end; from++)
            list[to++] = list[from];
    }
    at[p->n_buf] = to;
    arena_release(a, mark);
    *at_out = at;
    *list_out = list;
}

static void fill_bufs(struct problem_builder *b)
{
    struct problem *p = b->p;
    struct arena *a = &p->arena;
    uint32_t n = p->n_buf = b->buf.len;

    p->n_input = b->n_input;
    p->buf_name = arena_array(a, str_id, n);
    p->buf_flags = arena_array(a, uint8_t, n);
    p->producer = arena_array(a, uint32_t, n);
    p->size_alloc = arena_array(a, int64_t, n);
    p->size_free = arena_array(a, int64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct problem_buf_row *x = &b->buf.at[i];
        p->buf_name[i] = x->name;
        p->buf_flags[i] = x->flags;
        p->producer[i] = x->producer;
        p->size_alloc[i] = x->size_alloc;
        p->size_free[i] = x->size_free;
    }
    fill_list(p, b->succ.at, b->succ.len, &p->succ_at, &p->succ);
    if (b->order.len == 0) { /* nothing to add */
        p->order_at = p->succ_at;
        p->order = p->succ;
    } else {
        for (uint32_t i = 0; i < b->succ.len; i++)
            vec_push(&p->mem, &b->order, b->succ.at[i]);
        fill_list(p, b->order.at, b->order.len, &p->order_at, &p->order);
    }
    p->n_graph_input = b->graph_input.len;
    p->graph_input = copy_names(a, b->graph_input.at, p->n_graph_input);
    p->n_graph_output = b->graph_output.len;
    p->graph_output = copy_names(a, b->graph_output.at, p->n_graph_output);
    p->n_mutation = b->mutation.len / 2;
    p->mutation = copy_names(a, b->mutation.at, b->mutation.len);
}

/* Waits, in order: a wait may wait for what an earlier one waits for. */
static void fill_waits(struct problem *p)
{
    struct arena *a = &p->arena;
    uint32_t *seen = arena_zeroed(a, (size_t)p->n_op * sizeof(*seen)), len = 0, cap = 0;

    p->wait_at = arena_array(a, uint32_t, (size_t)p->n_op + 1);
    p->wait = NULL;
    for (uint32_t w = 0; w < p->n_op; w++) {
        p->wait_at[w] = len;
        for (int through = 0; p->kind[w] == PROBLEM_WAIT && through < 2 && len == p->wait_at[w];
             through++)
            for (uint32_t d = p->dep_at[w]; d < p->dep_at[w + 1]; d++) {
                uint32_t x = problem_dep_op(p, d);
                if (x == PROBLEM_NONE || p->dep_flags[d] & PROBLEM_FAKE)
                    continue;
                bool direct = !through && p->kind[x] == PROBLEM_COLLECTIVE;
                uint32_t n = direct ? 1 : through ? p->wait_at[x + 1] - p->wait_at[x] : 0;
                if (len + n > cap) {
                    uint32_t *old = p->wait;
                    cap = 2 * cap + n + 16;
                    p->wait = arena_array(a, uint32_t, cap);
                    if (len > 0)
                        memcpy(p->wait, old, len * sizeof(*old));
                }
                for (uint32_t k = 0; k < n; k++) {
                    uint32_t c = direct ? x : p->wait[p->wait_at[x] + k];
                    if (seen[c] != w + 1)
                        p->wait[len++] = c;
                    seen[c] = w + 1;
                }
            }
    }
    p->wait_at[p->n_op] = len;
}

void problem_fill(struct problem_builder *b)
{
    fill_ops(b);
    fill_bufs(b);
    fill_waits(b->p);
}
