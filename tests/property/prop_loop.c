/* Fused loops against the same calls one after the other, on random regions: every result that is
 * written is equal to the bit, and what stays inside of a loop is not written.
 *
 * TUCK_SEED=n repeats one region. TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/kernel/loop.h"
#include "support/support.h"

enum { NODES = 24, TENSORS = 128, ARGS = 4, LEFT = 0xA5 };

static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F32, DTYPE_F32, DTYPE_F64,
                                    DTYPE_BF16, DTYPE_F16, DTYPE_I64, DTYPE_I32};

struct region {
    struct rng rng;
    int n_dim;
    int64_t size[4];
    struct rt_tensor tensor[TENSORS]; /* inputs, results and views of them */
    void *block[TENSORS];
    uint32_t n_tensor, n_block;
    struct loop_node node[NODES];
    struct rt_value arg[NODES][ARGS], dims[NODES][4];
    struct rt_tensor out[NODES][2];
    void *before[NODES][2];
    uint32_t n;
};

static uint32_t below(struct region *r, uint32_t n)
{
    return rng_below(&r->rng, n);
}

/* ---- tensors ---- */

static size_t bytes_of(const struct rt_tensor *t)
{
    return (size_t)rt_numel(t) * dtype_at(t->dtype)->bytes;
}

static void lay_out(struct rt_tensor *t)
{
    int64_t step = 1;

    for (int d = t->n - 1; d >= 0; d--) {
        t->stride[d] = step;
        step *= t->size[d];
    }
}

static void allocate(struct region *r, struct rt_tensor *t)
{
    lay_out(t);
    t->data = aligned_alloc(RT_ALIGN, (bytes_of(t) + RT_ALIGN) / RT_ALIGN * RT_ALIGN);
    assert_non_null(t->data);
    r->block[r->n_block++] = t->data;
}

static void swap(int64_t *x, int a, int b)
{
    int64_t was = x[a];

    x[a] = x[b];
    x[b] = was;
}

/* Small numbers, some of them with fractions: sums of them round. */
static void draw(struct region *r, struct rt_tensor *t)
{
    struct rt_call c = {.kernel = kernel_at(OP_KERNEL_copy), .n_arg = 1, .n_out = 1, .out = t};
    struct rt_tensor from = *t;
    struct rt_value arg = {.kind = RT_TENSOR, .tensor = &from};
    char error[200];

    from.dtype = DTYPE_F64;
    double *x = malloc((size_t)rt_numel(t) * sizeof(*x) + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < rt_numel(t); i++)
        x[i] = (double)below(r, 4001) / 999.5 - 2;
    from.data = x;
    c.arg = &arg;
    c.error = error;
    c.error_size = sizeof(error);
    c.scratch = malloc(kernel_scratch(&c) + 1);
    assert_true(kernel_run(&c));
    free(c.scratch);
    free(x);
}

/* Of the whole space, or without some of its dimensions; sometimes not in a row. */
static void add_input(struct region *r)
{
    struct rt_tensor *t = &r->tensor[r->n_tensor++];
    uint32_t how = below(r, 4);

    *t = (struct rt_tensor){.dtype = (uint8_t)dtypes[below(r, 8)], .n = (uint8_t)r->n_dim};
    for (int d = 0; d < r->n_dim; d++)
        t->size[d] = how == 0 && d > 0 ? 1 : how == 1 && below(r, 2) ? 1 : r->size[d];
    if (how == 2 && t->n > 1) { /* the last dimensions */
        t->n--;
        memmove(t->size, t->size + 1, t->n * sizeof(*t->size));
    }
    int a = (int)below(r, t->n), b = (int)below(r, t->n);
    swap(t->size, a, b);
    allocate(r, t);
    draw(r, t);
    swap(t->size, a, b);
    swap(t->stride, a, b);
}

/* Another look at what is there: without its dimensions of one, with one more, or turned. */
static void add_view(struct region *r)
{
    struct rt_tensor t = r->tensor[below(r, r->n_tensor)];
    int n = 0;

    switch (below(r, 3)) {
    case 0:
        for (int d = 0; d < t.n; d++)
            if (t.size[d] != 1) {
                t.size[n] = t.size[d];
                t.stride[n++] = t.stride[d];
            }
        t.n = (uint8_t)n;
        break;
    case 1:
        t.size[t.n] = 1;
        t.stride[t.n++] = 1;
        if (t.n > 3)
            return;
        break;
    default: {
        int a = t.n > 0 ? (int)below(r, t.n) : 0, b = t.n > 0 ? (int)below(r, t.n) : 0;
        swap(t.size, a, b);
        swap(t.stride, a, b);
    }
    }
    r->tensor[r->n_tensor++] = t;
}

/* ---- calls ---- */

static bool broadcast(struct rt_tensor *to, const struct rt_tensor *t)
{
    while (to->n < t->n) {
        memmove(to->size + 1, to->size, to->n++ * sizeof(*to->size));
        to->size[0] = 1;
    }
    for (int d = 0; d < t->n; d++) {
        int64_t *size = &to->size[to->n - t->n + d];

        if (*size != t->size[d] && *size != 1 && t->size[d] != 1)
            return false;
        *size = *size == 1 ? t->size[d] : *size;
    }
    return true;
}

static const struct {
    enum op_kernel kernel;
    int n_in;
    bool floats, compares;
} points[] = {
    {OP_KERNEL_add, 2, false, false},     {OP_KERNEL_sub, 2, false, false},
    {OP_KERNEL_mul, 2, false, false},     {OP_KERNEL_maximum, 2, false, false},
    {OP_KERNEL_neg, 1, false, false},     {OP_KERNEL_relu, 1, false, false},
    {OP_KERNEL_copy, 1, false, false},    {OP_KERNEL_exp, 1, true, false},
    {OP_KERNEL_tanh, 1, true, false},     {OP_KERNEL_sigmoid, 1, true, false},
    {OP_KERNEL_true_div, 2, true, false}, {OP_KERNEL_gt, 2, false, true},
    {OP_KERNEL_where, 3, false, false},   {OP_KERNEL_addcmul, 3, true, false},
};

static enum dtype result_dtype(const struct region *r, uint32_t i, int n_in, bool floats)
{
    enum dtype d = DTYPE_NONE;

    for (int k = 0; k < n_in; k++) {
        const struct rt_value *v = &r->arg[i][k];

        if (v->kind == RT_TENSOR)
            d = d == DTYPE_NONE ? v->tensor->dtype : dtype_promote(d, v->tensor->dtype);
    }
    if (d == DTYPE_NONE || (floats && !dtype_is_float(d)))
        d = DTYPE_F32;
    return d;
}

static bool make_point(struct region *r, uint32_t i)
{
    uint32_t row = below(r, sizeof(points) / sizeof(*points));
    struct rt_tensor *out = &r->out[i][0];
    int n_in = points[row].n_in;

    *out = (struct rt_tensor){.n = 0};
    for (int k = 0; k < ARGS; k++)
        r->arg[i][k] = (struct rt_value){.kind = RT_NONE};
    for (int k = 0; k < n_in; k++) {
        struct rt_value *v = &r->arg[i][k];

        if (k > 0 && below(r, 5) == 0) {
            *v = (struct rt_value){.kind = RT_FLOAT, .f = 0.75};
            continue;
        }
        *v = (struct rt_value){.kind = RT_TENSOR, .tensor = &r->tensor[below(r, r->n_tensor)]};
        if (!broadcast(out, v->tensor) || (points[row].floats && v->tensor->dtype == DTYPE_B8))
            return false;
    }
    out->dtype = (uint8_t)(points[row].compares ? DTYPE_B8
                                                : result_dtype(r, i, n_in, points[row].floats));
    if (out->dtype == DTYPE_B8 && !points[row].compares)
        return false;
    if (points[row].kernel == OP_KERNEL_copy)
        out->dtype = (uint8_t)dtypes[below(r, 8)];
    r->node[i].call = (struct rt_call){.kernel = kernel_at(points[row].kernel), .n_out = 1};
    return true;
}

static bool make_fold(struct region *r, uint32_t i)
{
    static const enum op_kernel kernels[] = {OP_KERNEL_sum,  OP_KERNEL_mean, OP_KERNEL_amax,
                                             OP_KERNEL_amin, OP_KERNEL_var,  OP_KERNEL_var_mean};
    enum op_kernel k = kernels[below(r, 6)];
    const struct rt_tensor *in = &r->tensor[below(r, r->n_tensor)];
    bool keep = below(r, 2), last = below(r, 3) > 0;
    int cut = in->n > 0 ? (int)below(r, in->n) : 0;
    uint32_t n = 0;

    if (in->n == 0 || in->dtype == DTYPE_B8 ||
        (!dtype_is_float(in->dtype) && k != OP_KERNEL_amax && k != OP_KERNEL_amin))
        return false;
    struct rt_tensor out = {.dtype = in->dtype};
    for (int d = 0; d < in->n; d++) {
        bool reduced = last ? d >= cut : d <= cut;

        if (reduced)
            r->dims[i][n++] = (struct rt_value){.kind = RT_INT, .i = d};
        if (!reduced || keep)
            out.size[out.n++] = reduced ? 1 : in->size[d];
    }
    r->out[i][0] = r->out[i][1] = out;
    for (int a = 0; a < ARGS; a++)
        r->arg[i][a] = (struct rt_value){.kind = RT_NONE};
    r->arg[i][0] = (struct rt_value){.kind = RT_TENSOR, .tensor = in};
    r->arg[i][1] = (struct rt_value){.kind = RT_LIST, .n = n, .item = r->dims[i]};
    if (k == OP_KERNEL_var || k == OP_KERNEL_var_mean)
        r->arg[i][2] = (struct rt_value){.kind = RT_INT, .i = below(r, 2)};
    r->node[i].call = (struct rt_call){.kernel = kernel_at(k),
                                       .n_out = k == OP_KERNEL_var_mean ? 2 : 1};
    return true;
}

static void make_region(struct region *r)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 33, 64, 130, 513, 600};
    int64_t most = 30000;

    r->n_dim = 1 + (int)below(r, 3);
    for (int d = 0; d < r->n_dim; d++) {
        do
            r->size[d] = sizes[below(r, 9)];
        while (r->size[d] > most);
        most /= r->size[d];
    }
    for (uint32_t i = 0, n = 1 + below(r, 4); i < n; i++)
        add_input(r);
    uint32_t want = 2 + below(r, NODES - 2);
    for (uint32_t tries = 0; r->n < want && tries < 400; tries++) {
        uint32_t i = r->n;

        if (r->n_tensor > TENSORS - 4)
            break;
        if (below(r, 4) == 0)
            add_view(r);
        if (!(below(r, 3) == 0 ? make_fold(r, i) : make_point(r, i)))
            continue;
        struct rt_call *c = &r->node[i].call;
        if (rt_numel(&r->out[i][0]) > 60000)
            continue;
        for (uint32_t k = 0; k < c->n_out; k++) {
            allocate(r, &r->out[i][k]);
            r->tensor[r->n_tensor++] = r->out[i][k];
        }
        c->arg = r->arg[i];
        c->n_arg = ARGS;
        c->out = r->out[i];
        r->node[i].inside = below(r, 2) ? below(r, 4) : 0;
        r->n++;
    }
}

/* ---- running ---- */

static void run_calls(struct region *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct rt_call c = r->node[i].call;
        char error[200] = "";

        c.error = error;
        c.error_size = sizeof(error);
        c.scratch = aligned_alloc(RT_ALIGN, (kernel_scratch(&c) + RT_ALIGN) / RT_ALIGN * RT_ALIGN);
        if (!kernel_run(&c))
            fail_msg("%s: %s", c.kernel->name, error);
        free(c.scratch);
        for (uint32_t k = 0; k < c.n_out; k++) {
            r->before[i][k] = malloc(bytes_of(&c.out[k]) + 1);
            memcpy(r->before[i][k], c.out[k].data, bytes_of(&c.out[k]));
        }
    }
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->node[i].call.n_out; k++)
            memset(r->out[i][k].data, LEFT, bytes_of(&r->out[i][k]));
}

static bool is_left(const struct rt_tensor *t)
{
    const unsigned char *p = t->data;

    for (size_t i = 0; i < bytes_of(t); i++)
        if (p[i] != LEFT)
            return false;
    return true;
}

static uint32_t run_loop(struct region *r, struct arena *a, uint64_t seed)
{
    struct loop *l = loop_build(a, r->node, r->n);
    char error[200] = "";
    uint32_t at, left = 0;
    void *scratch = aligned_alloc(RT_ALIGN, (loop_scratch(l) + RT_ALIGN) / RT_ALIGN * RT_ALIGN);

    if (!loop_run(l, scratch, error, sizeof(error), &at))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error);
    free(scratch);
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->node[i].call.n_out; k++) {
            const struct rt_tensor *t = &r->out[i][k];

            if ((r->node[i].inside >> k & 1) && is_left(t)) {
                left++;
                continue;
            }
            if (memcmp(t->data, r->before[i][k], bytes_of(t)) != 0)
                fail_msg("seed %llu: node %u (%s) of %u: result %u differs",
                         (unsigned long long)seed, i, r->node[i].call.kernel->name, r->n, k);
        }
    if (left != loop_kept_inside(l))
        fail_msg("seed %llu: %u results were not written, %u should not", (unsigned long long)seed,
                 left, loop_kept_inside(l));
    return left;
}

static uint32_t one(struct arena *a, uint64_t seed, uint32_t *nodes)
{
    struct region *r = calloc(1, sizeof(*r));
    uint32_t left;

    assert_non_null(r);
    r->rng.state = seed;
    make_region(r);
    run_calls(r);
    left = run_loop(r, a, seed);
    *nodes += r->n;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->node[i].call.n_out; k++)
            free(r->before[i][k]);
    for (uint32_t i = 0; i < r->n_block; i++)
        free(r->block[i]);
    free(r);
    return left;
}

static void random_regions(void **state)
{
    uint64_t seed = seed_of("random_regions");
    size_t n = getenv("TUCK_SEED") != NULL ? 1 : rounds(1500);
    uint32_t left = 0, nodes = 0;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct mem m;
        struct arena a;

        mem_init(&m, NULL);
        arena_init(&a, &m);
        left += one(&a, seed + i, &nodes);
        arena_destroy(&a);
    }
    print_message("# %zu regions of %u nodes, %u results stayed inside\n", n, nodes, left);
    if (n > 1 && left * 8 < nodes)
        fail_msg("only %u of %u results stayed inside", left, nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_regions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
