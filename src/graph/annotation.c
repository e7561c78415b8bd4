#include "graph/annotation.h"

#include "op/dtype.h"
#include "graph/graph.h"

/* The end of a dimension: the next comma or the closing bracket outside parentheses. */
static const char *dim_end(const char *s, const char *end)
{
    int depth = 0;

    for (; s < end; s++) {
        if (*s == '(')
            depth++;
        else if (*s == ')')
            depth--;
        else if (depth == 0 && (*s == ',' || *s == ']'))
            return s;
    }
    return NULL;
}

static bool parse_int(const char *s, size_t len, int64_t *out)
{
    int64_t v = 0;
    bool negative = len > 1 && *s == '-';

    for (size_t i = negative; i < len; i++) {
        if (s[i] < '0' || s[i] > '9' || !size_mul(v, 10, &v) || !size_add(v, s[i] - '0', &v))
            return false;
    }
    *out = negative ? -v : v;
    return len > 0;
}

/* "[8, s0 + 1]" at s; returns the end, or NULL. The dimensions are in the arena. */
static const char *parse_dims(struct fx_store *st, const char *s, const char *end,
                              const struct fx_dim **out, uint32_t *n_out)
{
    uint32_t n = 0;
    const char *p;

    if (s >= end || *s != '[')
        return NULL;
    for (p = ++s; p < end && *p != ']'; n++) {
        p = dim_end(p, end);
        if (p == NULL)
            return NULL;
        p += *p == ',';
    }
    if (p >= end)
        return NULL;
    struct fx_dim *dim = arena_array(&st->arena, struct fx_dim, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *e = dim_end(s, end);
        while (s < e && *s == ' ')
            s++;
        dim[i] = (struct fx_dim){.val = 0};
        if (s == e)
            return NULL;
        if (!parse_int(s, (size_t)(e - s), &dim[i].val))
            dim[i].expr = str_intern(&st->str, s, (size_t)(e - s));
        s = e + 1;
    }
    *out = dim;
    *n_out = n;
    return p + 1;
}

static bool device_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':' || c == '_';
}

/* dtype[sizes][strides]device, all but the first two optional. */
static bool parse_plain(struct fx_store *st, const char *s, const char *end, struct fx_meta *out)
{
    const char *open = memchr(s, '[', (size_t)(end - s));
    uint32_t n_stride;

    *out = (struct fx_meta){.dtype = DTYPE_NONE};
    if (open == NULL)
        return false;
    out->dtype = (uint8_t)dtype_by_abbr(s, (size_t)(open - s));
    if (out->dtype == DTYPE_NONE)
        return false;
    s = parse_dims(st, open, end, &out->size, &out->ndim);
    if (s != NULL && s < end && *s == '[') {
        s = parse_dims(st, s, end, &out->stride, &n_stride);
        if (s != NULL && n_stride != out->ndim)
            return false;
        out->has_strides = true;
    }
    if (s == NULL)
        return false;
    for (const char *p = s; p < end; p++)
        if (!device_char(*p))
            return false;
    if (s < end)
        out->device = str_intern(&st->str, s, (size_t)(end - s));
    return true;
}

bool meta_parse(struct fx_store *st, const char *text, size_t len, struct fx_meta *out)
{
    const char *end = text + len;
    const char *open = memchr(text, '(', len), *bracket = memchr(text, '[', len);

    /* DTensor(f32[8, 4][4, 1]cuda:0, S(0)R), Parameter(f32[4]) */
    if (open != NULL && bracket != NULL && open < bracket && end[-1] == ')') {
        const char *inner = open + 1, *stop = end - 1, *p;
        int depth = 0;

        for (p = inner; p < stop; p++) {
            depth += *p == '[' || *p == '(';
            depth -= *p == ']' || *p == ')';
            if (*p == ',' && depth == 0)
                break;
        }
        if (!parse_plain(st, inner, p, out))
            return false;
        out->subclass = str_intern(&st->str, text, (size_t)(open - text));
        if (p + 2 < stop)
            out->placements = str_intern(&st->str, p + 2, (size_t)(stop - p - 2));
        return true;
    }
    return parse_plain(st, text, end, out);
}

static void analyse(struct fx_store *st, struct fx_ann *a)
{
    const struct str *s = str_at(&st->str, a->inner);
    const char *text = s->at; /* stays where it is while strings are added */
    size_t len = s->len;
    struct fx_meta m;

    if (len > 5 && memcmp(text, "Sym(", 4) == 0 && text[len - 1] == ')') {
        a->what = ANN_SYM;
        a->expr = str_intern(&st->str, text + 4, len - 5);
    } else if (len > 0 && a->form != ANN_TYPE && meta_parse(st, text, len, &m)) {
        struct fx_meta *copy = arena_new(&st->arena, struct fx_meta);
        *copy = m;
        a->what = ANN_TENSOR;
        a->meta = copy;
    }
}

uint32_t ann_intern(struct fx_store *st, const char *text, size_t len)
{
    str_id id = str_intern(&st->str, text, len);

    if (st->str.all.at[id].tag != 0)
        return st->str.all.at[id].tag;

    struct fx_ann a = {.text = id, .form = ANN_TYPE};
    const char *s = text, *end = text + len;
    bool blank = *s == ' ';

    while (s < end && (*s == ' ' || *s == ':'))
        s++;
    if (s < end && *s == '"' && end[-1] == '"' && end - s >= 2) {
        a.form = ANN_QUOTED;
        a.inner = str_intern(&st->str, s + 1, (size_t)(end - s) - 2);
    } else {
        a.inner = str_intern(&st->str, s, (size_t)(end - s));
        if (!blank)
            a.form = ANN_BARE;
    }
    analyse(st, &a);
    vec_push(&st->mem, &st->anns, a);
    st->str.all.at[id].tag = st->anns.len - 1;
    return st->anns.len - 1;
}

uint32_t ann_find(const struct fx_store *st, const char *text, size_t len)
{
    str_id id = str_find(&st->str, text, len);

    return id != 0 ? st->str.all.at[id].tag : 0;
}

struct inner_args {
    struct fx_store *st;
    const char *inner;
    size_t len;
    struct buf b;
    uint32_t out;
};

static void do_from_inner(void *p)
{
    struct inner_args *x = p;

    buf_str(&x->b, ": \"");
    buf_add(&x->b, x->inner, x->len);
    buf_chr(&x->b, '"');
    x->out = ann_intern(x->st, x->b.at, x->b.len);
}

uint32_t ann_from_inner(struct fx_store *st, const char *inner, size_t len)
{
    struct inner_args x = {.st = st, .inner = inner, .len = len};

    buf_init(&x.b, &st->mem);
    bool ok = mem_guard(&st->mem, do_from_inner, &x);
    buf_destroy(&x.b);
    if (!ok)
        mem_exhausted(&st->mem);
    return x.out;
}

const struct fx_ann *ann_at(const struct fx_store *st, uint32_t ann)
{
    return &st->anns.at[ann];
}

const struct fx_meta *ann_tensor(const struct fx_store *st, uint32_t ann)
{
    return st->anns.at[ann].meta;
}
