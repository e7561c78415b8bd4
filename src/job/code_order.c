#include "job/code_order.h"

#include "base/heap.h"

uint32_t *code_ops_by_node(const struct program *p, struct arena *a)
{
    uint32_t *op_of = arena_array(a, uint32_t, p->str.all.len + 1);

    memset(op_of, 0xFF, (p->str.all.len + 1) * sizeof(*op_of));
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            op_of[p->node[k]] = i;
    return op_of;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

bool code_calls(const char *name, enum tie_class c)
{
    bool comm = starts(name, "torch.ops._c10d_functional.");

    if (c == TIE_COLLECTIVES)
        return comm && !starts(name, "torch.ops._c10d_functional.wait_tensor");
    return !comm && (starts(name, "extern_kernels.") || starts(name, "torch.ops."));
}

uint32_t code_called_op(const struct program *p, uint32_t op)
{
    bool one = op != PROGRAM_NONE && p->op[op].kind == PROGRAM_WAIT &&
               p->wait_at[op + 1] - p->wait_at[op] == 1;

    return one ? p->wait[p->wait_at[op]] : op;
}

/* May a kernel or call of that name be this op? */
static bool is_named(const char *name, const struct program_op *op)
{
    bool waits = starts(name, "torch.ops._c10d_functional.wait_tensor");

    if (op->kind == PROGRAM_WAIT || waits)
        return op->kind == PROGRAM_WAIT && waits;
    if (op->kind == PROGRAM_COLLECTIVE || code_calls(name, TIE_COLLECTIVES))
        return op->kind == PROGRAM_COLLECTIVE && code_calls(name, TIE_COLLECTIVES);
    return true;
}

/* By op: the number of the first kernel or call that is the op; 0 if there is none. */
static int64_t *numbers(const struct program *p, const struct tie_kernel *kernel, uint32_t n_kernel,
                        struct arena *a)
{
    int64_t *number = arena_zeroed(a, (p->n_op + 1) * sizeof(*number));
    const uint32_t *op_of = code_ops_by_node(p, a);

    for (uint32_t k = 0; k < n_kernel; k++)
        for (uint32_t i = 0; i < kernel[k].n; i++) {
            str_id id = str_find(&p->str, kernel[k].node[i], strlen(kernel[k].node[i]));
            uint32_t op = id != 0 ? op_of[id] : PROGRAM_NONE;
            if (code_calls(kernel[k].name, TIE_COLLECTIVES))
                op = code_called_op(p, op);
            if (op != PROGRAM_NONE && is_named(kernel[k].name, &p->op[op]) &&
                kernel[k].number > 0 && (number[op] == 0 || kernel[k].number < number[op]))
                number[op] = kernel[k].number;
        }
    return number;
}

static int by_number(const void *ctx, uint32_t x, uint32_t y)
{
    const int64_t *number = ctx;

    if (number[x] != number[y])
        return number[x] < number[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* By op: those that depend on it, as CSR. */
static uint32_t *users(const struct program *p, struct arena *a, uint32_t **at)
{
    uint32_t *from = arena_zeroed(a, (p->n_op + 2) * sizeof(*from));
    uint32_t *list = arena_array(a, uint32_t, p->dep_at[p->n_op] + 1);

    for (uint32_t k = 0; k < p->dep_at[p->n_op]; k++)
        from[p->dep[k].op + 2]++;
    for (uint32_t i = 2; i < p->n_op + 2; i++)
        from[i] += from[i - 1];
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->dep_at[i]; k < p->dep_at[i + 1]; k++)
            list[from[p->dep[k].op + 1]++] = i;
    *at = from;
    return list;
}

bool code_order(const struct program *p, const struct tie_kernel *kernel, uint32_t n_kernel,
                struct arena *a, uint32_t *order)
{
    int64_t *number = numbers(p, kernel, n_kernel, a);
    uint32_t *missing = arena_array(a, uint32_t, p->n_op + 1), *from, n = 0;
    const uint32_t *user = users(p, a, &from);
    bool moved = false;
    struct heap h;

    for (uint32_t i = 0; i < p->n_op; i++) {
        bool comm = p->op[i].kind == PROGRAM_COLLECTIVE || p->op[i].kind == PROGRAM_WAIT;
        if (comm && number[i] == 0)
            return false;
        missing[i] = p->dep_at[i + 1] - p->dep_at[i];
        for (uint32_t k = p->dep_at[i]; number[i] == 0 && k < p->dep_at[i + 1]; k++)
            if (number[p->dep[k].op] > number[i])
                number[i] = number[p->dep[k].op];
    }
    heap_begin(&h, a, p->n_op + 1, by_number, number);
    for (uint32_t i = 0; i < p->n_op; i++)
        if (missing[i] == 0)
            heap_push(&h, i);
    while (h.n > 0) {
        uint32_t op = heap_pop(&h);
        moved |= op != n;
        order[n++] = op;
        for (uint32_t k = from[op]; k < from[op + 1]; k++)
            if (--missing[user[k]] == 0)
                heap_push(&h, user[k]);
    }
    return moved && n == p->n_op;
}
