/* What shape rules are made of: operands, broadcasting, layouts, results. */
#include <stdio.h>
#include <stdlib.h>

#include "fx/groups.h"
#include "fx/run.h"

/* ---- operands ---- */

int in_param(const struct infer *x, const char *name)
{
    return op_param_find(x->sig, name, strlen(name));
}

static const tuck_value *given(const struct infer *x, int p)
{
    if (p < 0 || (uint32_t)p >= x->sig->n_params)
        return NULL;
    const tuck_value *v = x->arg[p];
    return v != NULL && v->kind != TUCK_V_NONE ? v : NULL;
}

/* The default of a parameter whose argument is absent (not None); NULL: none. */
static const char *fallback(const struct infer *x, int p)
{
    if (p < 0 || (uint32_t)p >= x->sig->n_params || x->arg[p] != NULL)
        return NULL;
    const char *s = x->sig->params[p].default_text;
    return s != NULL && strcmp(s, "None") != 0 ? s : NULL;
}

static type_id type_of_value(struct infer *x, const tuck_value *v)
{
    return v->kind == TUCK_V_NODE ? x->types[v->a] : 0;
}

bool in_given(const struct infer *x, int p)
{
    const tuck_value *v = given(x, p);

    if (v == NULL)
        return fallback(x, p) != NULL;
    return v->kind != TUCK_V_NODE || type_at(x->type, x->types[v->a])->kind != TYPE_NONE;
}

type_id in_type(struct infer *x, int p)
{
    const tuck_value *v = given(x, p);

    return v ? type_of_value(x, v) : 0;
}

/* A copy, since the table may move while a rule works. */
static const struct type *tensor_of(struct infer *x, type_id id)
{
    if (type_at(x->type, id)->kind != TYPE_TENSOR)
        return NULL;
    struct type *copy = arena_alloc(x->arena, sizeof(*copy));
    *copy = *type_at(x->type, id);
    return copy;
}

const struct type *in_tensor(struct infer *x, int p)
{
    return tensor_of(x, in_type(x, p));
}

static bool sym_of_value(struct infer *x, const tuck_value *v, sym_id *out)
{
    switch (v->kind) {
    case TUCK_V_INT:
        *out = sym_int(x->sym, v->u.i);
        break;
    case TUCK_V_BOOL:
        *out = sym_int(x->sym, v->u.i);
        break;
    case TUCK_V_FLOAT:
        *out = sym_float(x->sym, v->u.f);
        break;
    case TUCK_V_SYM: {
        const struct str *s = str_at(&x->store->str, v->a);
        *out = sym_parse(x->sym, s->at, s->len);
        break;
    }
    case TUCK_V_NODE: {
        const struct type *t = type_at(x->type, x->types[v->a]);
        *out = t->kind == TYPE_SYM ? t->sym : 0;
        break;
    }
    default:
        return false;
    }
    return *out != 0;
}

bool in_sym(struct infer *x, int p, sym_id *out)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);

    if (v != NULL)
        return sym_of_value(x, v, out);
    if (s == NULL)
        return false;
    *out = strcmp(s, "True") == 0    ? sym_int(x->sym, 1)
           : strcmp(s, "False") == 0 ? sym_int(x->sym, 0)
                                     : sym_parse(x->sym, s, strlen(s));
    return *out != 0;
}

bool in_int(struct infer *x, int p, int64_t *out)
{
    sym_id s;

    return in_sym(x, p, &s) && sym_as_int(x->sym, s, out);
}

bool in_bool(struct infer *x, int p, bool *out)
{
    int64_t v;

    if (!in_int(x, p, &v))
        return false;
    *out = v != 0;
    return true;
}

bool in_str(struct infer *x, int p, const char **out)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);

    if (v != NULL && v->kind == TUCK_V_STR) {
        *out = str_text(&x->store->str, v->a);
        return true;
    }
    if (s == NULL)
        return false;
    size_t n = strlen(s);
    bool quoted = n >= 2 && (*s == '\'' || *s == '"');
    *out = arena_str(x->arena, quoted ? s + 1 : s, quoted ? n - 2 : n);
    return true;
}

bool in_dtype(struct infer *x, int p, enum dtype *out)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);

    if (v != NULL && v->kind == TUCK_V_DTYPE)
        s = str_text(&x->store->str, v->a);
    if (s == NULL)
        return false;
    *out = dtype_by_name(s, strlen(s));
    return *out != DTYPE_NONE;
}

bool in_device(struct infer *x, int p, str_id *out)
{
    const tuck_value *v = given(x, p);
    char name[64];

    if (v == NULL || (v->kind != TUCK_V_DEVICE && v->kind != TUCK_V_STR))
        return false;
    const char *s = str_text(&x->store->str, v->a);
    if (v->kind == TUCK_V_STR) {
        *out = v->a;
        return true;
    }
    const char *type = strpbrk(s, "'\""), *index = strstr(s, "index=");
    if (type == NULL)
        return false;
    type++;
    int n = (int)strcspn(type, "'\"");
    if (index != NULL)
        n = snprintf(name, sizeof(name), "%.*s:%d", n, type, atoi(index + 6));
    else
        n = snprintf(name, sizeof(name), "%.*s", n, type);
    *out = str_intern(&x->store->str, name, (size_t)n < sizeof(name) ? (size_t)n : 0);
    return true;
}

enum mem_format in_format(struct infer *x, int p)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? str_text(&x->store->str, v->a) : fallback(x, p);

    if (s == NULL || (v != NULL && v->kind != TUCK_V_FORMAT))
        return FORMAT_NONE;
    if (strncmp(s, "torch.", 6) == 0)
        s += 6;
    return strcmp(s, "contiguous_format") == 0  ? FORMAT_CONTIGUOUS
           : strcmp(s, "preserve_format") == 0  ? FORMAT_PRESERVE
           : strcmp(s, "channels_last") == 0    ? FORMAT_CHANNELS_LAST
           : strcmp(s, "channels_last_3d") == 0 ? FORMAT_CHANNELS_LAST_3D
                                                : FORMAT_NONE;
}

/* "[]", "[1, 1]", "0" of a signature. */
static bool default_syms(struct infer *x, const char *s, uint32_t want, const sym_id **out,
                         uint32_t *n)
{
    sym_id *list = arena_array(x->arena, sym_id, strlen(s) + want + 1);

    *n = 0;
    if (*s != '[') {
        sym_id v = sym_parse(x->sym, s, strlen(s));
        for (uint32_t i = 0; i < (want ? want : 1); i++)
            list[(*n)++] = v;
    } else {
        for (s++; *s && *s != ']';) {
            size_t len = strcspn(s, ",]");
            list[(*n)++] = sym_parse(x->sym, s, len);
            s += len;
            s += strspn(s, ", ");
        }
    }
    *out = list;
    return true;
}

bool in_syms(struct infer *x, int p, const sym_id **out, uint32_t *n)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);
    uint32_t want = p >= 0 && (uint32_t)p < x->sig->n_params ? x->sig->params[p].list_size : 0;

    if (s != NULL)
        return default_syms(x, s, want, out, n);
    if (v == NULL)
        return false;
    if (!value_is_container(v)) {
        sym_id one;
        if (v->kind == TUCK_V_NODE && type_at(x->type, x->types[v->a])->kind == TYPE_LIST) {
            struct type t = *type_at(x->type, x->types[v->a]);
            sym_id *list = new_syms(x, t.n);
            for (uint32_t i = 0; i < t.n; i++) {
                const struct type *item = type_at(x->type, t.item[i]);
                if (item->kind != TYPE_SYM)
                    return false;
                list[i] = item->sym;
            }
            *out = list;
            *n = t.n;
            return true;
        }
        if (!sym_of_value(x, v, &one))
            return false;
        uint32_t k = want ? want : 1;
        sym_id *list = new_syms(x, k);
        for (uint32_t i = 0; i < k; i++)
            list[i] = one;
        *out = list;
        *n = k;
        return true;
    }
    sym_id *list = new_syms(x, v->a);
    const tuck_value *item = v + 1;
    for (uint32_t i = 0; i < v->a; i++, item = value_next(item))
        if (!sym_of_value(x, item, &list[i]))
            return false;
    *out = list;
    *n = v->a;
    return true;
}

bool in_ints(struct infer *x, int p, const int64_t **out, uint32_t *n)
{
    const sym_id *s;

    if (!in_syms(x, p, &s, n))
        return false;
    int64_t *list = arena_array(x->arena, int64_t, *n);
    for (uint32_t i = 0; i < *n; i++)
        if (!sym_as_int(x->sym, s[i], &list[i]))
            return false;
    *out = list;
    return true;
}

bool in_tensors(struct infer *x, int p, const struct type *const **out, uint32_t *n)
{
    const tuck_value *v = given(x, p);

    if (v == NULL)
        return false;
    if (v->kind == TUCK_V_NODE) {
        struct type t = *type_at(x->type, x->types[v->a]);
        if (t.kind != TYPE_LIST)
            return false;
        const struct type **list = arena_array(x->arena, const struct type *, t.n);
        for (uint32_t i = 0; i < t.n; i++)
            list[i] = tensor_of(x, t.item[i]);
        *out = list;
        *n = t.n;
        return true;
    }
    if (v->kind != TUCK_V_LIST && v->kind != TUCK_V_TUPLE)
        return false;
    const struct type **list = arena_array(x->arena, const struct type *, v->a);
    const tuck_value *item = v + 1;
    for (uint32_t i = 0; i < v->a; i++, item = value_next(item))
        list[i] = tensor_of(x, type_of_value(x, item));
    *out = list;
    *n = v->a;
    return true;
}

bool in_number(struct infer *x, int p, enum dtype_category *out)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);

    if (s != NULL) {
        *out = *s == 'T' || *s == 'F'          ? DTYPE_IS_BOOL
               : strpbrk(s, ".einf") != NULL ? DTYPE_IS_FLOAT
                                               : DTYPE_IS_INT;
        return true;
    }
    if (v == NULL)
        return false;
    switch (v->kind) {
    case TUCK_V_BOOL:
        *out = DTYPE_IS_BOOL;
        return true;
    case TUCK_V_INT:
        *out = DTYPE_IS_INT;
        return true;
    case TUCK_V_FLOAT:
        *out = DTYPE_IS_FLOAT;
        return true;
    case TUCK_V_NUMBER:
        *out = strchr(str_text(&x->store->str, v->a), 'j') ? DTYPE_IS_COMPLEX : DTYPE_IS_INT;
        return true;
    case TUCK_V_SYM:
    case TUCK_V_NODE: {
        sym_id s2;
        if (!sym_of_value(x, v, &s2))
            return false;
        enum sym_type t = sym_type(x->sym, s2);
        *out = t == SYM_T_FLOAT ? DTYPE_IS_FLOAT : t == SYM_T_BOOL ? DTYPE_IS_BOOL : DTYPE_IS_INT;
        return true;
    }
    default:
        return false;
    }
}

bool in_group_size(struct infer *x, int64_t *out)
{
    int k = group_of(x->g, x->node);

    if (k < 0 || x->g->group.at[k].size <= 0)
        return false;
    *out = x->g->group.at[k].size;
    return true;
}

bool wrap_dim(int64_t dim, uint32_t n, uint32_t *out)
{
    int64_t span = n ? n : 1;

    if (dim < -span || dim >= span)
        return false;
    *out = (uint32_t)(dim < 0 ? dim + span : dim);
    return true;
}

/* ---- arithmetic ---- */

sym_id num(struct infer *x, int64_t v)
{
    return sym_int(x->sym, v);
}

bool is_one(const struct infer *x, sym_id v)
{
    return sym_is_int(x->sym, v, 1);
}

bool is_zero(const struct infer *x, sym_id v)
{
    return sym_is_int(x->sym, v, 0);
}

bool same_size(struct infer *x, sym_id a, sym_id b)
{
    return a == b || sym_same(x->sym, a, b);
}

/* Symbols without a hint count as large and unlike each other. */
static bool default_hint(void *ctx, const char *name, struct sym_num *out)
{
    (void)ctx;
    *out = (struct sym_num){.kind = SYM_T_INT, .i = 1000 + hash_bytes(name, strlen(name)) % 97};
    return true;
}

int64_t hint_of(struct infer *x, sym_id v)
{
    struct sym_num out;

    if (sym_eval(x->sym, v, default_hint, NULL, &out) != SYM_OK)
        return INT64_MAX;
    return out.kind == SYM_T_FLOAT ? (int64_t)out.f : out.i;
}

sym_id numel(struct infer *x, const struct type *t)
{
    sym_id n = num(x, 1);

    for (uint32_t i = 0; i < t->n; i++)
        n = sym_mul(x->sym, n, t->size[i]);
    return n;
}

sym_id fresh_symbol(struct infer *x)
{
    char name[16];
    int n = snprintf(name, sizeof(name), "u%u", x->run->next_fresh++);

    return sym_symbol(x->sym, name, (size_t)n);
}

/* ---- layouts ---- */

sym_id *new_syms(struct infer *x, uint32_t n)
{
    return arena_array(x->arena, sym_id, n);
}

/* A size of 0 counts as 1, as in PyTorch; for symbols that is Max(1, s), unless it is known to be more. */
static sym_id at_least_one(struct infer *x, sym_id size)
{
    int64_t v;

    if (sym_as_int(x->sym, size, &v))
        return v < 1 ? num(x, 1) : size;
    return size;
}

sym_id *contiguous_strides(struct infer *x, uint32_t n, const sym_id *size)
{
    sym_id *s = new_syms(x, n), at = num(x, 1);

    for (uint32_t i = n; i > 0; i--) {
        s[i - 1] = at;
        at = sym_mul(x->sym, at, at_least_one(x, size[i - 1]));
    }
    return s;
}

sym_id *channels_last_strides(struct infer *x, uint32_t n, const sym_id *size)
{
    static const uint8_t order[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    sym_id *s = new_syms(x, n), at = num(x, 1);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = order[n == 5][i];
        s[d] = at;
        at = sym_mul(x->sym, at, at_least_one(x, size[d]));
    }
    return s;
}

bool is_contiguous(struct infer *x, const struct type *t)
{
    sym_id at = num(x, 1);

    if (!t->strided)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (is_zero(x, t->size[i]))
            return true;
    for (uint32_t i = t->n; i > 0; i--) {
        if (is_one(x, t->size[i - 1]))
            continue;
        if (!same_size(x, t->stride[i - 1], at))
            return false;
        at = sym_mul(x->sym, at, t->size[i - 1]);
    }
    return true;
}

bool is_channels_last(struct infer *x, const struct type *t)
{
    static const uint8_t order[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t least = 0;

    if ((t->n != 4 && t->n != 5) || !t->strided || hint_of(x, t->stride[1]) == 0)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t d = order[t->n == 5][i];
        int64_t size = hint_of(x, t->size[d]), stride = hint_of(x, t->stride[d]);

        if (size == 0 || stride < least)
            return false;
        /* A tensor of one channel in plain order looks like both; plain wins. */
        if (d == 0 && least == hint_of(x, t->stride[1]))
            return false;
        least = stride;
        if (size > 1 && !__builtin_mul_overflow(stride, size, &least))
            continue;
    }
    return true;
}

struct ordered_dim {
    uint32_t dim;
    int64_t stride, size;
};

bool is_dense(struct infer *x, const struct type *t)
{
    struct ordered_dim *d = arena_array(x->arena, struct ordered_dim, t->n);
    uint32_t n = 0;
    sym_id at = num(x, 1);

    if (!t->strided)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (!is_one(x, t->size[i])) {
            struct ordered_dim one = {i, hint_of(x, t->stride[i]), hint_of(x, t->size[i])};
            uint32_t k = n++;
            for (; k > 0 && d[k - 1].stride > one.stride; k--)
                d[k] = d[k - 1];
            d[k] = one;
        }
    for (uint32_t i = 0; i < n; i++) {
        if (!same_size(x, t->stride[d[i].dim], at))
            return false;
        at = sym_mul(x->sym, at, t->size[d[i].dim]);
    }
    return true;
}

/* Dimensions from the innermost out, by the strides of one or several operands: of two dimensions the one
 * with the smaller stride is inner; an operand that repeats either (stride 0) does not say; equal strides
 * are decided by size. As TensorIterator sorts. */
static int compare_dims(struct infer *x, const struct type *const *t, uint32_t n, uint32_t n_dim,
                        const sym_id *size, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL || !t[k]->strided)
            continue;
        uint32_t missing = n_dim - t[k]->n;
        bool has_a = a >= missing, has_b = b >= missing;
        /* A broadcast dimension has stride 0. */
        int64_t sa = has_a && !(is_one(x, t[k]->size[a - missing]) && !is_one(x, size[a]))
                         ? hint_of(x, t[k]->stride[a - missing])
                         : 0;
        int64_t sb = has_b && !(is_one(x, t[k]->size[b - missing]) && !is_one(x, size[b]))
                         ? hint_of(x, t[k]->stride[b - missing])
                         : 0;
        if (sa == 0 || sb == 0)
            continue;
        if (sa < sb)
            return -1;
        if (sa > sb)
            return 1;
        if (hint_of(x, size[a]) > hint_of(x, size[b]))
            return 1;
    }
    return 0;
}

/* Dense strides in the order that the operands suggest. */
static sym_id *ordered_strides(struct infer *x, const struct type *const *t, uint32_t n,
                               uint32_t n_dim, const sym_id *size)
{
    uint32_t *order = arena_array(x->arena, uint32_t, n_dim);
    sym_id *out = new_syms(x, n_dim), at = num(x, 1);

    for (uint32_t i = 0; i < n_dim; i++)
        order[i] = n_dim - 1 - i;
    /* The insertion sort that TensorIterator uses: comparisons are not transitive, so the order of the
     * comparisons matters. */
    for (uint32_t i = 1; i < n_dim; i++) {
        uint32_t at1 = i;
        for (uint32_t k = i; k > 0; k--) {
            int c = compare_dims(x, t, n, n_dim, size, order[k - 1], order[at1]);
            if (c > 0) {
                uint32_t swap = order[k - 1];
                order[k - 1] = order[at1];
                order[at1] = swap;
                at1 = k - 1;
            } else if (c < 0) {
                break;
            }
        }
    }
    for (uint32_t i = 0; i < n_dim; i++) {
        out[order[i]] = at;
        at = sym_mul(x->sym, at, at_least_one(x, size[order[i]]));
    }
    return out;
}

sym_id *like_strides(struct infer *x, const struct type *t, enum mem_format format)
{
    switch (format) {
    case FORMAT_CONTIGUOUS:
        return contiguous_strides(x, t->n, t->size);
    case FORMAT_CHANNELS_LAST:
    case FORMAT_CHANNELS_LAST_3D:
        if (t->n != (format == FORMAT_CHANNELS_LAST ? 4u : 5u))
            return NULL;
        return channels_last_strides(x, t->n, t->size);
    default:
        break;
    }
    if (!t->strided)
        return NULL;
    if (is_dense(x, t)) {
        sym_id *s = new_syms(x, t->n);
        if (t->n > 0)
            memcpy(s, t->stride, t->n * sizeof(*s));
        return s;
    }
    return ordered_strides(x, &t, 1, t->n, t->size);
}

bool broadcast_sizes(struct infer *x, const struct type *const *t, uint32_t n, uint32_t *n_out,
                     const sym_id **size_out)
{
    uint32_t n_dim = 0;

    for (uint32_t k = 0; k < n; k++)
        if (t[k] != NULL && t[k]->n > n_dim)
            n_dim = t[k]->n;
    sym_id *size = new_syms(x, n_dim);
    for (uint32_t i = 0; i < n_dim; i++)
        size[i] = num(x, 1);
    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL)
            continue;
        uint32_t missing = n_dim - t[k]->n;
        for (uint32_t i = 0; i < t[k]->n; i++) {
            sym_id *to = &size[missing + i], from = t[k]->size[i];
            int64_t a, b;

            if (is_one(x, from) || *to == from)
                continue;
            if (is_one(x, *to))
                *to = from;
            else if (sym_as_int(x->sym, *to, &a) && sym_as_int(x->sym, from, &b))
                return false; /* two numbers that differ */
            else if (sym_as_int(x->sym, from, &b))
                *to = from; /* a symbol that must equal a number */
        }
    }
    *n_out = n_dim;
    *size_out = size;
    return true;
}

sym_id *elementwise_strides(struct infer *x, const struct type *const *t, uint32_t n,
                            uint32_t n_dim, const sym_id *size)
{
    /* All operands of the full size with equal dense strides: theirs. */
    const struct type *first = NULL;
    bool alike = true, contiguous = true, known = true;

    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL)
            continue;
        known &= t[k]->strided;
        bool full = t[k]->n == n_dim;
        for (uint32_t i = 0; full && i < n_dim; i++)
            full = same_size(x, t[k]->size[i], size[i]);
        alike &= full;
        contiguous &= full && is_contiguous(x, t[k]);
        if (first == NULL)
            first = t[k];
        else if (alike && known && first->n == n_dim)
            for (uint32_t i = 0; i < n_dim; i++)
                alike &= first->stride[i] == t[k]->stride[i];
    }
    if (!known)
        return NULL;
    if (contiguous || first == NULL)
        return contiguous_strides(x, n_dim, size);
    if (alike && is_dense(x, first)) {
        sym_id *s = new_syms(x, n_dim);
        if (n_dim > 0)
            memcpy(s, first->stride, n_dim * sizeof(*s));
        return s;
    }
    return ordered_strides(x, t, n, n_dim, size);
}

str_id common_device(struct infer *x, const struct type *const *t, uint32_t n)
{
    str_id device = 0;

    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL || t[k]->device == 0)
            continue;
        const char *name = str_text(&x->store->str, t[k]->device);
        if (device == 0 || (t[k]->n > 0 && strcmp(name, "cpu") != 0))
            device = t[k]->device;
        if (strcmp(name, "cpu") != 0)
            return device;
    }
    return device;
}

/* ---- results ---- */

bool out_type(struct infer *x, type_id t)
{
    x->result = t;
    return t != 0;
}

type_id new_tensor(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                   const sym_id *stride, str_id device)
{
    if (stride == NULL)
        stride = contiguous_strides(x, n, size);
    return type_tensor(x->type, dtype, n, size, stride, device);
}

type_id new_like(struct infer *x, const struct type *t, enum dtype dtype)
{
    const sym_id *stride = t->strided ? like_strides(x, t, FORMAT_PRESERVE) : NULL;

    return type_tensor(x->type, dtype, t->n, t->size, stride, t->device);
}

bool out_tensor(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                const sym_id *stride, str_id device)
{
    return out_type(x, new_tensor(x, dtype, n, size, stride, device));
}

bool out_sym(struct infer *x, sym_id v)
{
    return out_type(x, type_sym(x->type, v));
}

bool out_list(struct infer *x, const type_id *item, uint32_t n)
{
    return out_type(x, type_list(x->type, item, n));
}

bool out_none(struct infer *x)
{
    return out_type(x, type_none(x->type));
}
