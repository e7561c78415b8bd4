#include "graph/type.h"

#include "graph/graph.h"

const struct type type_unknown = {.kind = TYPE_UNKNOWN};

void typetab_init(struct typetab *t, struct mem *m)
{
    *t = (struct typetab){.mem = m};
    arena_init(&t->arena, m);
}

void typetab_destroy(struct typetab *t)
{
    mem_free(t->mem, t->slot, t->n_slot * sizeof(*t->slot));
    vec_free(t->mem, &t->all);
    arena_destroy(&t->arena);
    t->slot = NULL;
    t->n_slot = 0;
}

static uint32_t mix(uint32_t h, uint32_t x)
{
    return hash_u64(((uint64_t)h << 32) ^ x ^ 0x9E3779B9u);
}

static uint32_t hash_of(const struct type *x)
{
    uint32_t h = mix(x->kind, (uint32_t)x->dtype << 1 | x->strided);

    h = mix(mix(mix(h, x->n), x->device), x->sym);
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->kind == TYPE_LIST)
            h = mix(h, x->item[i]);
        else if (x->kind == TYPE_TENSOR)
            h = mix(mix(h, x->size[i]), x->strided ? x->stride[i] : 0);
    }
    return h;
}

static bool same(const struct type *a, const struct type *b)
{
    if (a->hash != b->hash || a->kind != b->kind || a->dtype != b->dtype ||
        a->strided != b->strided || a->n != b->n || a->device != b->device || a->sym != b->sym)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->kind == TYPE_LIST && a->item[i] != b->item[i])
            return false;
        if (a->kind == TYPE_TENSOR &&
            (a->size[i] != b->size[i] || (a->strided && a->stride[i] != b->stride[i])))
            return false;
    }
    return true;
}

static void grow(struct typetab *t)
{
    uint32_t n = t->n_slot ? t->n_slot * 2 : 64;
    uint32_t *slot = mem_resize(t->mem, NULL, 0, mem_times(t->mem, n, sizeof(*slot)));

    memset(slot, 0, n * sizeof(*slot));
    for (uint32_t id = 1; id < t->all.len; id++) {
        uint32_t i = t->all.at[id].hash & (n - 1);
        while (slot[i] != 0)
            i = (i + 1) & (n - 1);
        slot[i] = id;
    }
    mem_free(t->mem, t->slot, t->n_slot * sizeof(*slot));
    t->slot = slot;
    t->n_slot = n;
}

static const uint32_t *copy_ids(struct typetab *t, const uint32_t *ids, uint32_t n)
{
    uint32_t *copy = arena_array(&t->arena, uint32_t, n);

    if (n > 0)
        memcpy(copy, ids, n * sizeof(*copy));
    return copy;
}

static type_id intern(struct typetab *t, struct type x)
{
    x.hash = hash_of(&x);
    if (t->all.len == 0)
        vec_push(t->mem, &t->all, (struct type){.kind = TYPE_UNKNOWN});
    if (t->all.len >= t->n_slot / 2)
        grow(t);
    uint32_t i = x.hash & (t->n_slot - 1);
    for (; t->slot[i] != 0; i = (i + 1) & (t->n_slot - 1))
        if (same(&t->all.at[t->slot[i]], &x))
            return t->slot[i];
    vec_reserve(t->mem, &t->all, 1);
    if (x.kind == TYPE_TENSOR) {
        x.size = copy_ids(t, x.size, x.n);
        x.stride = x.strided ? copy_ids(t, x.stride, x.n) : NULL;
    } else if (x.kind == TYPE_LIST) {
        x.item = copy_ids(t, x.item, x.n);
    }
    t->slot[i] = t->all.len;
    t->all.at[t->all.len] = x;
    return t->all.len++;
}

type_id type_tensor(struct typetab *t, enum dtype dtype, uint32_t n, const sym_id *size,
                    const sym_id *stride, str_id device)
{
    for (uint32_t i = 0; i < n; i++)
        if (size[i] == 0 || (stride != NULL && stride[i] == 0))
            return 0;
    if (dtype == DTYPE_NONE)
        return 0;
    return intern(t, (struct type){.kind = TYPE_TENSOR,
                                   .dtype = (uint8_t)dtype,
                                   .strided = stride != NULL,
                                   .n = n,
                                   .size = size,
                                   .stride = stride,
                                   .device = device});
}

type_id type_sym(struct typetab *t, sym_id value)
{
    return value ? intern(t, (struct type){.kind = TYPE_SYM, .sym = value}) : 0;
}

type_id type_list(struct typetab *t, const type_id *item, uint32_t n)
{
    return intern(t, (struct type){.kind = TYPE_LIST, .n = n, .item = item});
}

type_id type_none(struct typetab *t)
{
    return intern(t, (struct type){.kind = TYPE_NONE});
}

static sym_id dim_sym(struct fx_store *s, const struct fx_dim *d)
{
    if (d->expr == 0)
        return sym_int(&s->sym, d->val);
    const struct str *text = str_at(&s->str, d->expr);
    return sym_parse(&s->sym, text->at, text->len);
}

type_id type_of_ann(struct fx_store *s, uint32_t ann)
{
    struct fx_ann *a = &s->anns.at[ann];

    if (ann == 0 || a->type_known)
        return a->type;
    type_id id = 0;
    if (a->what == ANN_SYM) {
        const struct str *text = str_at(&s->str, a->expr);
        id = type_sym(&s->type, sym_parse(&s->sym, text->at, text->len));
    } else if (a->what == ANN_TENSOR) {
        const struct fx_meta *m = a->meta;
        sym_id *size = arena_array(&s->arena, sym_id, (size_t)m->ndim * 2);
        sym_id *stride = size + m->ndim;

        for (uint32_t i = 0; i < m->ndim; i++) {
            size[i] = dim_sym(s, &m->size[i]);
            stride[i] = m->has_strides ? dim_sym(s, &m->stride[i]) : 0;
        }
        id = type_tensor(&s->type, (enum dtype)m->dtype, m->ndim, size,
                         m->has_strides ? stride : NULL, m->device);
    }
    a = &s->anns.at[ann];
    a->type = id;
    a->type_known = true;
    return id;
}

static void print_dims(const struct fx_store *s, const sym_id *dim, uint32_t n, struct buf *b)
{
    buf_chr(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        buf_str(b, i ? ", " : "");
        sym_print(&s->sym, dim[i], b);
    }
    buf_chr(b, ']');
}

/* Everything except lists. */
static void print_flat(const struct fx_store *s, const struct type *x, struct buf *b, bool strides,
                       bool devices)
{
    switch (x->kind) {
    case TYPE_NONE: buf_str(b, "None"); break;
    case TYPE_TENSOR:
        buf_str(b, dtype_at((enum dtype)x->dtype)->abbr);
        print_dims(s, x->size, x->n, b);
        if (strides && x->strided)
            print_dims(s, x->stride, x->n, b);
        if (devices && x->device != 0)
            buf_str(b, str_text(&s->str, x->device));
        break;
    case TYPE_SYM:
        buf_str(b, "Sym(");
        sym_print(&s->sym, x->sym, b);
        buf_chr(b, ')');
        break;
    default: buf_chr(b, '?'); break;
    }
}

/* A list's items, and those of the lists in it. */
static void print_list(const struct fx_store *s, const struct type *x, struct buf *b, bool strides,
                       bool devices, bool inner)
{
    buf_chr(b, '(');
    for (uint32_t i = 0; i < x->n; i++) {
        const struct type *item = type_at(&s->type, x->item[i]);
        buf_str(b, i ? ", " : "");
        if (item->kind != TYPE_LIST)
            print_flat(s, item, b, strides, devices);
        else if (!inner)
            print_list(s, item, b, strides, devices, true);
        else
            buf_printf(b, "(%u items)", item->n); /* deeper levels are not shown */
    }
    buf_chr(b, ')');
}

void type_print(const struct fx_store *s, type_id id, struct buf *b, bool strides, bool devices)
{
    const struct type *x = type_at(&s->type, id);

    if (x->kind == TYPE_LIST)
        print_list(s, x, b, strides, devices, false);
    else
        print_flat(s, x, b, strides, devices);
}
