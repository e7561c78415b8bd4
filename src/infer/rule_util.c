/* Helpers for shape rules: operands, arithmetic, results. Layouts are in rule_layout.c. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/groups.h"
#include "infer/infer_run.h"

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

/* The default of a parameter whose argument is absent (not None); NULL if none. */
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

/* A copy, because the table may move while a rule runs. */
static const struct type *tensor_of(struct infer *x, type_id id)
{
    if (type_at(x->type, id)->kind != TYPE_TENSOR)
        return NULL;
    struct type *copy = arena_alloc(x->arena, sizeof(*copy));
    *copy = *type_at(x->type, id);
    if (!copy->strided) {
        x->loose = true;
        if (x->packed) {
            copy->stride = contiguous_strides(x, copy->n, copy->size);
            copy->strided = true;
        }
    }
    return copy;
}

const struct type *in_tensor(struct infer *x, int p)
{
    return tensor_of(x, in_type(x, p));
}

static bool sym_of_value(struct infer *x, const tuck_value *v, sym_id *out)
{
    switch (v->kind) {
    case TUCK_V_INT: *out = sym_int(x->sym, v->u.i); break;
    case TUCK_V_BOOL: *out = sym_int(x->sym, v->u.i); break;
    case TUCK_V_FLOAT: *out = sym_float(x->sym, v->u.f); break;
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
    default: return false;
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
    bool host = strncmp(type, "cpu", (size_t)n) == 0 || strncmp(type, "meta", (size_t)n) == 0;
    if (index != NULL || !host) /* without an index: the current device, 0 in a trace */
        n = snprintf(name, sizeof(name), "%.*s:%d", n, type, index ? atoi(index + 6) : 0);
    else
        n = snprintf(name, sizeof(name), "%.*s", n, type);
    *out = str_intern(&x->store->str, name, (size_t)n < sizeof(name) ? (size_t)n : 0);
    return true;
}

enum mem_format in_format(struct infer *x, int p)
{
    const tuck_value *v = given(x, p);

    if (v != NULL && v->kind != TUCK_V_FORMAT)
        return FORMAT_NONE;
    const char *s = v != NULL ? str_text(&x->store->str, v->a) : fallback(x, p);
    if (s == NULL)
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

static bool number_of_value(struct infer *x, const tuck_value *v, enum dtype_category *out)
{
    switch (v->kind) {
    case TUCK_V_BOOL: *out = DTYPE_IS_BOOL; return true;
    case TUCK_V_INT: *out = DTYPE_IS_INT; return true;
    case TUCK_V_FLOAT: *out = DTYPE_IS_FLOAT; return true;
    case TUCK_V_NUMBER:
        *out = strchr(str_text(&x->store->str, v->a), 'j') ? DTYPE_IS_COMPLEX : DTYPE_IS_INT;
        return true;
    case TUCK_V_SYM:
    case TUCK_V_NODE: {
        sym_id s;
        if (!sym_of_value(x, v, &s))
            return false;
        enum sym_type t = sym_type(x->sym, s);
        *out = t == SYM_T_FLOAT ? DTYPE_IS_FLOAT : t == SYM_T_BOOL ? DTYPE_IS_BOOL : DTYPE_IS_INT;
        return true;
    }
    default: return false;
    }
}

bool in_number(struct infer *x, int p, enum dtype_category *out)
{
    const tuck_value *v = given(x, p);
    const char *s = v ? NULL : fallback(x, p);

    if (s != NULL) {
        *out = *s == 'T' || *s == 'F'        ? DTYPE_IS_BOOL
               : strpbrk(s, ".einf") != NULL ? DTYPE_IS_FLOAT
                                             : DTYPE_IS_INT;
        return true;
    }
    return v != NULL && number_of_value(x, v, out);
}

bool in_number_at(struct infer *x, int p, uint32_t i, enum dtype_category *out)
{
    const tuck_value *v = given(x, p);

    if (v == NULL || !value_is_container(v) || i >= v->a)
        return false;
    return number_of_value(x, value_item(v, i), out);
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

bool is_unit(const struct infer *x, sym_id v)
{
    struct sym_num n;

    return sym_as_number(x->sym, v, &n) && (n.kind == SYM_T_FLOAT ? n.f == 1.0 : n.i == 1);
}

bool is_zero(const struct infer *x, sym_id v)
{
    return sym_is_int(x->sym, v, 0);
}

bool same_size(struct infer *x, sym_id a, sym_id b)
{
    return a == b || sym_same(x->sym, a, b);
}

/* Symbols without a hint count as large and different from each other. */
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

bool on_cpu(const struct infer *x, const struct type *t)
{
    return t->device != 0 && strcmp(str_text(&x->store->str, t->device), "cpu") == 0;
}

enum dtype wide_dtype(enum dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16 ? DTYPE_F32 : d;
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

bool out_layout(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                const sym_id *stride, str_id device)
{
    return out_type(x, type_tensor(x->type, dtype, n, size, stride, device));
}

bool out_contiguous(struct infer *x, const struct type *t, uint32_t n, const sym_id *size,
                    const sym_id *stride)
{
    struct type made = *t;

    made.n = n;
    made.size = size;
    made.stride = stride;
    made.strided = stride != NULL;
    return out_tensor(x, (enum dtype)t->dtype, n, size, is_contiguous(x, &made) ? stride : NULL,
                      t->device);
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

/* For operators without a rule. */
bool shape_none(struct infer *x)
{
    x->result = 0;
    return false;
}
