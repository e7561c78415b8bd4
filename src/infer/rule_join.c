/* Shape rules of joining, repeating, padding and scattering: results are new tensors. */
#include "infer/rule.h"

/* The strides of a new tensor in the format that t suggests: channels-last or contiguous. */
static sym_id *suggested_strides(struct infer *x, const struct type *t, uint32_t n,
                                 const sym_id *size)
{
    if (n != t->n || !is_channels_last(x, t))
        return contiguous_strides(x, n, size);
    sym_id *stride = channels_last_strides(x, n, size), at = size[1];
    for (uint32_t i = n; i-- > 2; at = sym_mul(x->sym, at, size[i]))
        stride[i] = at; /* in this order a size of 0 does not count as 1 */
    stride[0] = at;
    return stride;
}

static bool fresh_of(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    return out_tensor(x, (enum dtype)t->dtype, n, size, NULL, t->device);
}

/* ---- cat ---- */

struct join {
    const struct type *const *t;
    uint32_t n, n_dim;
    enum dtype dtype;
    str_id device;
    sym_id *size;
    bool channels_last;
};

/* A vector without elements can be joined with anything. */
static bool joins_all(struct infer *x, const struct type *t)
{
    return t->n == 1 && is_zero(x, t->size[0]);
}

static bool join_types(struct infer *x, const struct type *const *t, uint32_t n, struct join *j)
{
    *j = (struct join){.t = t, .n = n, .channels_last = n > 0};
    for (uint32_t i = 0; i < n; i++) {
        if (t[i] == NULL)
            return false;
        j->dtype = i == 0 ? (enum dtype)t[i]->dtype
                          : dtype_promote(j->dtype, (enum dtype)t[i]->dtype);
        j->channels_last &= t[i]->strided && is_channels_last(x, t[i]);
    }
    j->device = common_device(x, t, n);
    return n > 0 && j->dtype != DTYPE_NONE;
}

static bool join_sizes(struct infer *x, struct join *j, int64_t dim, uint32_t *d)
{
    const struct type *like = NULL;
    int64_t v;

    for (uint32_t i = 0; i < j->n && like == NULL; i++)
        if (!joins_all(x, j->t[i]))
            like = j->t[i];
    if (like == NULL)
        like = j->t[0];
    if (like->n == 0 || !wrap_dim(dim, like->n, d))
        return false;
    j->n_dim = like->n;
    j->size = new_syms(x, like->n);
    memcpy(j->size, like->size, like->n * sizeof(*j->size));
    j->size[*d] = num(x, 0);
    for (uint32_t i = 0; i < j->n; i++) {
        const struct type *t = j->t[i];
        if (joins_all(x, t))
            continue;
        if (t->n != like->n)
            return false;
        for (uint32_t k = 0; k < t->n; k++) {
            if (k == *d)
                j->size[k] = sym_add(x->sym, j->size[k], t->size[k]);
            else if (sym_as_int(x->sym, t->size[k], &v))
                j->size[k] = t->size[k]; /* a symbol that must equal a number */
        }
    }
    return true;
}

static sym_id *join_strides(struct infer *x, const struct join *j)
{
    return j->channels_last ? channels_last_strides(x, j->n_dim, j->size)
                            : contiguous_strides(x, j->n_dim, j->size);
}

bool shape_cat(struct infer *x)
{
    const struct type *const *t;
    struct join j;
    int64_t dim;
    uint32_t n, d;

    if (!in_tensors(x, 0, &t, &n) || !join_types(x, t, n, &j) || !in_int(x, 1, &dim) ||
        !join_sizes(x, &j, dim, &d))
        return false;
    return out_tensor(x, j.dtype, j.n_dim, j.size, join_strides(x, &j), j.device);
}

bool shape_prims_cat(struct infer *x)
{
    const struct type *const *t;
    struct join j;
    int64_t dim;
    uint32_t n, d;

    if (!in_tensors(x, 0, &t, &n) || !join_types(x, t, n, &j) || !in_int(x, 1, &dim) ||
        !join_sizes(x, &j, dim, &d))
        return false;
    return fresh_of(x, t[0], j.n_dim, j.size);
}

/* Joined along a dimension that is then split, so that the rest stays channels-last. */
bool shape_stack(struct infer *x)
{
    const struct type *const *t;
    struct join j;
    int64_t dim;
    uint32_t n, d, at;

    if (!in_tensors(x, 0, &t, &n) || !join_types(x, t, n, &j) || !in_int(x, 1, &dim) ||
        !wrap_dim(dim, t[0]->n + 1, &d))
        return false;
    uint32_t n_dim = t[0]->n + 1;
    sym_id *size = new_syms(x, n_dim);
    for (uint32_t i = 0; i < n_dim; i++)
        size[i] = i == d ? num(x, n) : t[0]->size[i - (i > d)];
    if (d == t[0]->n || !j.channels_last)
        return out_tensor(x, j.dtype, n_dim, size, NULL, j.device);
    if (!join_sizes(x, &j, (int64_t)d, &at))
        return false;
    struct type joined = {.kind = TYPE_TENSOR, .strided = true, .n = j.n_dim, .size = j.size};
    joined.stride = join_strides(x, &j);
    sym_id *stride = inner_view_strides(x, &joined, n_dim, size);
    return stride != NULL && out_tensor(x, j.dtype, n_dim, size, stride, j.device);
}

/* Adds dimensions of size 1 to each operand until there are `least`, then joins them. A vector
 * becomes a row or a column: `front` says how many new dimensions go in front. */
static bool stack_along(struct infer *x, uint32_t least, uint32_t front, uint32_t d)
{
    const struct type *const *t;
    struct join j;
    uint32_t n, at;

    if (!in_tensors(x, 0, &t, &n))
        return false;
    const struct type **wide = arena_array(x->arena, const struct type *, n);
    for (uint32_t i = 0; i < n; i++) {
        wide[i] = t[i];
        if (t[i] == NULL || t[i]->n >= least)
            continue;
        struct type *w = arena_alloc(x->arena, sizeof(*w));
        *w = *t[i];
        sym_id *size = new_syms(x, least);
        for (uint32_t k = 0; k < least; k++) {
            uint32_t before = t[i]->n == 0 ? least : front;
            bool old = k >= before && k < before + t[i]->n;
            size[k] = old ? t[i]->size[k - before] : num(x, 1);
        }
        w->n = least;
        w->size = size;
        w->stride = contiguous_strides(x, least, size);
        wide[i] = w;
    }
    if (!join_types(x, wide, n, &j))
        return false;
    if (!join_sizes(x, &j, least == 1 && wide[0]->n == 1 ? 0 : d, &at))
        return false;
    return out_tensor(x, j.dtype, j.n_dim, j.size, join_strides(x, &j), j.device);
}

bool shape_hstack(struct infer *x)
{
    return stack_along(x, 1, 0, 1);
}

bool shape_vstack(struct infer *x)
{
    return stack_along(x, 2, 1, 0);
}

bool shape_dstack(struct infer *x)
{
    const struct type *const *t;
    uint32_t n;

    /* A vector becomes [1, n, 1], a matrix [m, n, 1]. */
    return in_tensors(x, 0, &t, &n) && n > 0 && t[0] != NULL &&
           stack_along(x, 3, t[0]->n == 1 ? 1 : 0, 2);
}

bool shape_column_stack(struct infer *x)
{
    return stack_along(x, 2, 0, 1);
}

/* t padded to a multiple of `chunks` along d, the dimensions from d on viewed as [chunks, rest]. */
static struct type *chunked(struct infer *x, const struct type *t, uint32_t d, sym_id chunks)
{
    struct symtab *s = x->sym;
    struct type *padded = arena_alloc(x->arena, sizeof(*padded)), *out;
    sym_id *size = new_syms(x, t->n), *seen = new_syms(x, d + 2);

    memcpy(size, t->size, t->n * sizeof(*size));
    sym_id part = sym_ceildiv(s, size[d], chunks);
    size[d] = sym_mul(s, part, chunks);
    *padded = *t;
    padded->size = size;
    if (!same_size(x, size[d], t->size[d]))
        padded->stride = suggested_strides(x, t, t->n, size);
    for (uint32_t k = d + 1; k < t->n; k++)
        part = sym_mul(s, part, size[k]);
    memcpy(seen, size, d * sizeof(*seen));
    seen[d] = chunks;
    seen[d + 1] = part;
    out = arena_alloc(x->arena, sizeof(*out));
    *out = *t;
    out->n = d + 2;
    out->size = seen;
    out->stride = inner_view_strides(x, padded, d + 2, seen);
    out->strided = out->stride != NULL;
    return out;
}

bool shape_chunk_cat(struct infer *x)
{
    const struct type *const *t;
    struct join j;
    int64_t dim;
    uint32_t n, d, at;
    sym_id chunks;

    if (!in_tensors(x, 0, &t, &n) || n == 0 || t[0] == NULL || t[0]->n == 0 ||
        !in_int(x, 1, &dim) || !in_sym(x, 2, &chunks) || !wrap_dim(dim, t[0]->n, &d))
        return false;
    const struct type **part = arena_array(x->arena, const struct type *, n);
    for (uint32_t i = 0; i < n; i++) {
        if (t[i] == NULL || t[i]->n <= d || !t[i]->strided)
            return false;
        part[i] = chunked(x, t[i], d, chunks);
    }
    if (!join_types(x, part, n, &j) || !join_sizes(x, &j, (int64_t)d + 1, &at))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!is_tidy(x, t[i]))
            return out_layout(x, j.dtype, j.n_dim, j.size, NULL, j.device);
    return out_tensor(x, j.dtype, j.n_dim, j.size, join_strides(x, &j), j.device);
}

/* ---- repetition ---- */

static bool repeated(struct infer *x, const struct type *t, const sym_id *times, uint32_t n)
{
    uint32_t n_out = n > t->n ? n : t->n;
    sym_id *size = new_syms(x, n_out);

    for (uint32_t i = 0; i < n_out; i++) {
        sym_id old = i < n_out - t->n ? num(x, 1) : t->size[i - (n_out - t->n)];
        sym_id by = i < n_out - n ? num(x, 1) : times[i - (n_out - n)];
        size[i] = sym_mul(x->sym, old, by);
    }
    return fresh_of(x, t, n_out, size);
}

bool shape_repeat(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *times;
    uint32_t n;

    return t != NULL && in_syms(x, 1, &times, &n) && n >= t->n && repeated(x, t, times, n);
}

bool shape_tile(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *times;
    uint32_t n;

    return t != NULL && in_syms(x, 1, &times, &n) && repeated(x, t, times, n);
}

bool shape_repeat_interleave(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int p_repeats = in_param(x, "repeats"), p_size = in_param(x, "output_size");
    sym_id total = 0, times;
    int64_t dim;
    uint32_t d = 0;

    if (t == NULL)
        return false;
    if (in_given(x, p_size) && !in_sym(x, p_size, &total))
        return false;
    if (p_repeats == 0) { /* indices to select by */
        total = total ? total : fresh_symbol(x);
        return fresh_of(x, t, 1, &total);
    }
    bool flat = !in_given(x, in_param(x, "dim"));
    if (!flat && (!in_int(x, in_param(x, "dim"), &dim) || !wrap_dim(dim, t->n, &d)))
        return false;
    sym_id old = flat ? numel(x, t) : t->n ? t->size[d] : num(x, 1);
    if (in_sym(x, p_repeats, &times))
        total = sym_mul(x->sym, old, times);
    else if (in_tensor(x, p_repeats) == NULL)
        return false;
    else
        total = total ? total : fresh_symbol(x);
    if (flat || t->n == 0)
        return out_tensor(x, (enum dtype)t->dtype, 1, &total, NULL, t->device);
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    size[d] = total;
    return fresh_of(x, t, t->n, size);
}

/* ---- padding ---- */

/* The last dimensions get more elements on either side (or fewer, if negative). If nothing is
 * added, a copy in the remaining layout; otherwise channels-last is kept, but not for reflection or
 * replication of three dimensions, or of two on devices other than the cpu. */
bool shape_pad(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const char *mode = "constant";
    const sym_id *pad;
    bool more = false;
    int64_t v;
    uint32_t n;

    if (t == NULL || !in_syms(x, 1, &pad, &n) || n % 2 != 0 || n / 2 > t->n || !t->strided)
        return false;
    bool constant = in_param(x, "value") >= 0;
    if (in_param(x, "mode") >= 0) {
        if (!in_str(x, in_param(x, "mode"), &mode))
            return false;
        constant = strcmp(mode, "constant") == 0;
    }
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t d = t->n - 1 - i;
        size[d] = sym_add(x->sym, size[d], sym_add(x->sym, pad[2 * i], pad[2 * i + 1]));
    }
    for (uint32_t i = 0; i < n; i++)
        more |= !sym_as_int(x->sym, pad[i], &v) || v > 0;
    bool plain = !constant && (n == 6 || !is_cpu(x, t->device));
    const sym_id *stride = plain ? contiguous_strides(x, t->n, size)
                                 : suggested_strides(x, t, t->n, size);
    if (constant && !more) {
        struct type *rest = arena_alloc(x->arena, sizeof(*rest));
        *rest = *t;
        rest->size = size;
        stride = like_strides(x, rest, FORMAT_PRESERVE);
    }
    return out_tensor(x, (enum dtype)t->dtype, t->n, size, stride, t->device);
}

/* ---- scattering ---- */

/* A copy of operand 0 that keeps its strides, unless elements overlap. */
bool shape_scatter_into(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || !t->strided)
        return false;
    bool overlaps = false;
    for (uint32_t i = 0; i < t->n; i++)
        overlaps |= is_zero(x, t->stride[i]) && !is_one(x, t->size[i]);
    return out_tensor(x, (enum dtype)t->dtype, t->n, t->size,
                      overlaps ? like_strides(x, t, FORMAT_PRESERVE) : t->stride, t->device);
}

bool shape_pixel_shuffle(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct symtab *s = x->sym;
    sym_id by;

    if (t == NULL || t->n < 3 || !t->strided || !in_sym(x, 1, &by))
        return false;
    bool up = in_param(x, "upscale_factor") >= 0;
    sym_id *size = new_syms(x, t->n), area = sym_mul(s, by, by);
    memcpy(size, t->size, t->n * sizeof(*size));
    uint32_t c = t->n - 3;
    size[c] = up ? sym_floordiv(s, size[c], area) : sym_mul(s, size[c], area);
    for (uint32_t i = c + 1; i < t->n; i++)
        size[i] = up ? sym_mul(s, size[i], by) : sym_floordiv(s, size[i], by);
    bool plain = up && !is_cpu(x, t->device);
    return out_tensor(x, (enum dtype)t->dtype, t->n, size,
                      plain ? NULL : suggested_strides(x, t, t->n, size), t->device);
}

/* ---- lists of broadcast operands ---- */

bool shape_meshgrid(struct infer *x)
{
    const struct type *const *t;
    const char *indexing;
    uint32_t n;

    if (!in_tensors(x, 0, &t, &n) || n == 0)
        return false;
    bool swap = in_str(x, in_param(x, "indexing"), &indexing) && strcmp(indexing, "xy") == 0;
    sym_id *full = new_syms(x, n), *one = new_syms(x, n);
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = swap && n > 1 && i < 2 ? 1 - i : i;
        if (t[i] == NULL || !t[i]->strided || t[i]->n > 1)
            return false;
        full[at] = t[i]->n ? t[i]->size[0] : num(x, 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = swap && n > 1 && i < 2 ? 1 - i : i;
        for (uint32_t k = 0; k < n; k++)
            one[k] = k == at ? full[at] : num(x, 1);
        struct type seen = *t[i];
        seen.n = n;
        seen.size = one;
        seen.stride = view_strides(x, t[i], n, one);
        sym_id *size = new_syms(x, n), *stride = new_syms(x, n);
        if (seen.stride == NULL || !expand_to(x, &seen, n, full, size, stride))
            return false;
        item[i] = new_tensor(x, (enum dtype)t[i]->dtype, n, size, stride, t[i]->device);
    }
    return out_list(x, item, n);
}

bool shape_broadcast_tensors(struct infer *x)
{
    const struct type *const *t;
    const sym_id *full;
    uint32_t n, n_dim;

    if (!in_tensors(x, 0, &t, &n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (t[i] == NULL)
            return false;
    if (!broadcast_sizes(x, t, n, &n_dim, &full))
        return false;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++) {
        sym_id *size = new_syms(x, n_dim), *stride = new_syms(x, n_dim);
        if (!expand_to(x, t[i], n_dim, full, size, stride))
            return false;
        item[i] = new_tensor(x, (enum dtype)t[i]->dtype, n_dim, size, stride, t[i]->device);
    }
    return out_list(x, item, n);
}

/* ---- diagonals ---- */

/* t with its last dimension at b and one of size 1 at a, then where() over a mask of the diagonal,
 * that tensor, and a number. a < b. */
static bool embedded(struct infer *x, const struct type *t, sym_id side, uint32_t a, uint32_t b)
{
    static const struct type number = {.kind = TYPE_TENSOR, .strided = true};
    uint32_t n = t->n + 1;
    struct type padded = *t, spread, mask;
    sym_id *size = new_syms(x, n), *wide = new_syms(x, n), *stride = new_syms(x, n);
    sym_id *ones = new_syms(x, n), *old_size = new_syms(x, n), one = num(x, 1);

    if (!same_size(x, side, t->size[t->n - 1])) { /* an offset other than 0 makes a copy */
        memcpy(old_size, t->size, t->n * sizeof(*old_size));
        old_size[t->n - 1] = side;
        padded.size = old_size;
        padded.stride = contiguous_strides(x, t->n, old_size);
    }
    for (uint32_t i = 0, k = 0; i < n; i++) {
        bool diagonal = i == a || i == b;
        uint32_t old = i == b ? t->n - 1 : i == a ? 0 : k++;
        size[i] = diagonal ? side : t->size[old];
        wide[i] = i == a ? one : size[i];
        ones[i] = diagonal ? side : one;
        stride[i] = i == a ? sym_mul(x->sym, padded.size[a], padded.stride[a]) : padded.stride[old];
    }
    spread = mask = padded;
    spread.n = mask.n = n;
    spread.size = wide;
    spread.stride = stride;
    mask.size = ones;
    mask.stride = contiguous_strides(x, n, ones);
    const struct type *all[] = {&mask, &spread, &number};
    return out_contiguous(x, t, n, size, reference_strides(x, all, 3, n, size));
}

bool shape_diag(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct symtab *s = x->sym;
    int64_t offset, first, second;
    uint32_t a, b;

    if (t == NULL || !in_int(x, 1, &offset))
        return false;
    sym_id more = num(x, offset < 0 ? -offset : offset);
    if (in_param(x, "dim1") >= 0) { /* diag_embed */
        if (t->n == 0 || !in_int(x, 2, &first) || !in_int(x, 3, &second) ||
            !wrap_dim(first, t->n + 1, &a) || !wrap_dim(second, t->n + 1, &b) || a == b)
            return false;
        sym_id side = sym_add(s, t->size[t->n - 1], more);
        return t->strided && embedded(x, t, side, a < b ? a : b, a < b ? b : a);
    }
    if (in_param(x, "diagonal") >= 0 && t->n == 2) {
        sym_id rows = t->size[0], cols = t->size[1], zero = num(x, 0);
        if (offset < 0)
            rows = sym_sub(s, rows, more);
        else
            cols = sym_sub(s, cols, more);
        sym_id length = sym_max(s, zero, sym_min(s, rows, cols));
        return fresh_of(x, t, 1, &length);
    }
    if (in_param(x, "diagonal") >= 0 && t->n != 1)
        return false;
    sym_id side = sym_add(s, numel(x, t), more);
    return fresh_of(x, t, 2, (sym_id[]){side, side});
}
