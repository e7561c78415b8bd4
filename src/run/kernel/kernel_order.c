/* By the order of elements: the k-th of a line, running extrema, where an element belongs. */
#include <math.h>

#include "run/kernel/plain.h"

/* Elements as they are compared: whole numbers, or floats with NaN above everything. */
struct ordered {
    const int64_t *whole; /* one of both */
    const double *real;
};

static struct ordered ordered_in(struct plain *s, const struct rt_tensor *t, bool whole)
{
    return whole ? (struct ordered){plain_in(s, t, K_I64), NULL}
                 : (struct ordered){NULL, plain_in(s, t, K_F64)};
}

static bool is_whole(const struct rt_tensor *t)
{
    return kind_of(t->dtype) == K_I64 || kind_of(t->dtype) == K_BOOL;
}

static bool is_nan(struct ordered a, int64_t i)
{
    return a.real != NULL && isnan(a.real[i]);
}

static bool less(struct ordered a, int64_t i, struct ordered b, int64_t j)
{
    if (a.whole != NULL)
        return a.whole[i] < b.whole[j];
    return a.real[i] < b.real[j] || (isnan(b.real[j]) && !isnan(a.real[i]));
}

static bool takes(struct rt_call *c, const struct rt_tensor *t)
{
    return kind_of(t->dtype) < K_C64 ||
           kernel_error(c, "no kernel orders %s", dtype_at(t->dtype)->name);
}

/* ---- the k-th smallest ---- */

/* One line: where its elements are. */
struct line {
    struct ordered of;
    int64_t first, step, n;
};

static int64_t element(const struct line *l, int64_t i)
{
    return l->first + i * l->step;
}

/* Restores a heap with the largest element on top, from `at` down. */
static void sift(const struct line *l, int64_t *heap, int64_t at, int64_t n)
{
    for (int64_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
        if (child + 1 < n &&
            less(l->of, element(l, heap[child]), l->of, element(l, heap[child + 1])))
            child++;
        if (!less(l->of, element(l, heap[at]), l->of, element(l, heap[child])))
            return;
        int64_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
    }
}

/* The place of the k-th smallest element, from 0: the largest of a heap of the k + 1 smallest. */
static int64_t kth(const struct line *l, int64_t k, int64_t *heap)
{
    for (int64_t i = 0; i <= k; i++)
        heap[i] = i;
    for (int64_t i = k / 2; i >= 0; i--)
        sift(l, heap, i, k + 1);
    for (int64_t i = k + 1; i < l->n; i++)
        if (less(l->of, element(l, i), l->of, element(l, heap[0]))) {
            heap[0] = i;
            sift(l, heap, 0, k + 1);
        }
    return heap[0];
}

/* The middle one, the lower of two; the first NaN if there is one. */
static int64_t middle(const struct line *l, int64_t *heap)
{
    for (int64_t i = 0; i < l->n; i++)
        if (is_nan(l->of, element(l, i)))
            return i;
    return kth(l, (l->n - 1) / 2, heap);
}

/* (self, [k,] dim, keepdim); k: from 0, or -1 for the middle */
static bool select_lines(struct rt_call *c, int64_t k, int64_t along)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct plain s = plain_begin(c);
    int dim;

    if (!takes(c, in) || !kernel_dim(c, in, along, &dim))
        return false;
    int64_t n = in->n > 0 ? in->size[dim] : 1,
            inner = in->n > 0 ? plain_count(in, dim + 1, in->n) : 1;
    if (n == 0 || k >= n)
        return kernel_error(c, "%lld of %lld elements", (long long)(k + 1), (long long)n);
    if (!kernel_holds(c, &c->out[0], rt_numel(in) / n) ||
        !kernel_holds(c, &c->out[1], rt_numel(in) / n))
        return false;
    bool whole = is_whole(in);
    struct ordered x = ordered_in(&s, in, whole);
    void *value = plain_out(&s, &c->out[0], whole ? K_I64 : K_F64);
    int64_t *place = plain_out(&s, &c->out[1], K_I64), *heap = plain_room(&s, (size_t)n * 8);

    for (int64_t i = 0; i < rt_numel(in) / n; i++) {
        struct line l = {x, i / inner * n * inner + i % inner, inner, n};

        place[i] = k < 0 ? middle(&l, heap) : kth(&l, k, heap);
        if (whole)
            ((int64_t *)value)[i] = x.whole[element(&l, place[i])];
        else
            ((double *)value)[i] = x.real[element(&l, place[i])];
    }
    plain_done(&s, &c->out[0], value, whole ? K_I64 : K_F64);
    plain_done(&s, &c->out[1], place, K_I64);
    return true;
}

bool kernel_kthvalue(struct rt_call *c)
{
    int64_t k = arg_int(c, 1, 0);

    return k < 1 ? kernel_error(c, "element %lld of a line", (long long)k)
                 : select_lines(c, k - 1, arg_int(c, 2, -1));
}

bool kernel_median_dim(struct rt_call *c)
{
    return select_lines(c, -1, arg_int(c, 1, -1));
}

/* (self) */
bool kernel_median(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct plain s = plain_begin(c);
    int64_t n = rt_numel(in);
    double value = (double)NAN;

    if (!takes(c, in) || !kernel_holds(c, c->out, 1) || !kernel_dtype(c, c->out, in->dtype))
        return false;
    if (n == 0 && is_whole(in))
        return kernel_error(c, "the middle of no elements");
    struct line l = {ordered_in(&s, in, is_whole(in)), 0, 1, n};
    int64_t at = n > 0 ? middle(&l, plain_room(&s, (size_t)n * 8)) : 0;
    struct rt_tensor one = {.data = &value, .dtype = DTYPE_F64};
    if (is_whole(in)) {
        one.dtype = DTYPE_I64;
        one.data = (void *)(uintptr_t)&l.of.whole[at];
    } else if (n > 0) {
        value = l.of.real[at];
    }
    return copy_tensor(c, c->out, &one);
}

static size_t select_scratch(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(arg_tensor(c, 0)), 1, 8) + RT_ALIGN);
}

size_t scratch_kthvalue(const struct rt_call *c)
{
    return select_scratch(c);
}

size_t scratch_median_dim(const struct rt_call *c)
{
    return select_scratch(c);
}

size_t scratch_median(const struct rt_call *c)
{
    return select_scratch(c);
}

/* ---- running extrema: (self, dim) ---- */

static bool run_extremes(struct rt_call *c, bool largest)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct plain s = plain_begin(c);
    int dim;

    if (!takes(c, in) || !kernel_dim(c, in, arg_int(c, 1, 0), &dim) ||
        !kernel_same(c, &c->out[0], in) || !kernel_same(c, &c->out[1], in))
        return false;
    int64_t n = in->n > 0 ? in->size[dim] : 1,
            inner = in->n > 0 ? plain_count(in, dim + 1, in->n) : 1;
    bool whole = is_whole(in);
    struct ordered x = ordered_in(&s, in, whole);
    void *value = plain_out(&s, &c->out[0], whole ? K_I64 : K_F64);
    int64_t *place = plain_out(&s, &c->out[1], K_I64);

    for (int64_t i = 0; n > 0 && i < rt_numel(in) / n; i++) {
        int64_t first = i / inner * n * inner + i % inner, best = 0;

        for (int64_t k = 0; k < n; k++) { /* the last of equal ones; once NaN, always NaN */
            int64_t at = first + k * inner, top = first + best * inner;

            if (is_nan(x, at) ||
                (!is_nan(x, top) && !(largest ? less(x, at, x, top) : less(x, top, x, at))))
                best = k;
            place[at] = best;
            if (whole)
                ((int64_t *)value)[at] = x.whole[first + best * inner];
            else
                ((double *)value)[at] = x.real[first + best * inner];
        }
    }
    plain_done(&s, &c->out[0], value, whole ? K_I64 : K_F64);
    plain_done(&s, &c->out[1], place, K_I64);
    return true;
}

bool kernel_cummax(struct rt_call *c)
{
    return run_extremes(c, true);
}

bool kernel_cummin(struct rt_call *c)
{
    return run_extremes(c, false);
}

size_t scratch_cummax(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_cummin(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* ---- where elements belong ---- */

/* As torch compares: NaN is not below anything, so it belongs to the end. */
static bool is_before(struct ordered a, int64_t i, struct ordered v, int64_t j, bool right)
{
    if (a.whole != NULL)
        return right ? a.whole[i] <= v.whole[j] : a.whole[i] < v.whole[j];
    return right ? !(a.real[i] > v.real[j]) : !(a.real[i] >= v.real[j]);
}

/* Lines of `sorted`, one for all elements or one for each line of them. */
static bool search(struct rt_call *c, const struct rt_tensor *sorted, const struct rt_tensor *of,
                   bool right, const struct rt_tensor *sorter)
{
    struct plain s = plain_begin(c);
    bool whole = is_whole(sorted) && is_whole(of);
    int64_t n = sorted->n > 0 ? sorted->size[sorted->n - 1] : 0,
            each = of->n > 0 ? of->size[of->n - 1] : 1;

    if (!takes(c, sorted) || !takes(c, of) || !kernel_same(c, c->out, of) ||
        !kernel_same(c, sorter, sorted))
        return false;
    if (sorted->n != 1 && sorted->n != of->n)
        return kernel_apart(c);
    for (int d = 0; sorted->n > 1 && d + 1 < of->n; d++)
        if (sorted->size[d] != of->size[d])
            return kernel_apart(c);
    struct ordered a = ordered_in(&s, sorted, whole), v = ordered_in(&s, of, whole);
    const int64_t *order = plain_in(&s, sorter, K_I64);
    int64_t *place = plain_out(&s, c->out, K_I64);
    for (int64_t i = 0; i < rt_numel(of); i++) {
        int64_t line = sorted->n > 1 ? i / each * n : 0, low = 0, high = n;

        while (low < high) {
            int64_t mid = low + (high - low) / 2, at = order != NULL ? order[line + mid] : mid;

            if (at < 0 || at >= n)
                return kernel_error(c, "index %lld is out of range for %lld elements",
                                    (long long)at, (long long)n);
            if (is_before(a, line + at, v, i, right))
                low = mid + 1;
            else
                high = mid;
        }
        place[i] = low;
    }
    plain_done(&s, c->out, place, K_I64);
    return true;
}

/* (sorted_sequence, self, out_int32, right, side, sorter) */
bool kernel_searchsorted(struct rt_call *c)
{
    const struct rt_value *side = arg_at(c, 4);
    bool right = side->kind == RT_STR ? strcmp(side->str, "right") == 0 : arg_bool(c, 3, false);

    return search(c, arg_tensor(c, 0), arg_tensor(c, 1), right, arg_tensor(c, 5));
}

/* (self, boundaries, out_int32, right) */
bool kernel_bucketize(struct rt_call *c)
{
    return search(c, arg_tensor(c, 1), arg_tensor(c, 0), arg_bool(c, 3, false), NULL);
}

size_t scratch_searchsorted(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_bucketize(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
