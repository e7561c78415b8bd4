/* Reads what a runnable script (fx_graph_runnable) says around its graph: values of symbols,
 * attributes, the inputs' shapes and storages, process groups. Only lines that PyTorch writes are
 * recognized; other Python is ignored.
 */
#include <errno.h>
#include <stdlib.h>

#include "op/dtype.h"
#include "graph/groups.h"
#include "text/read.h"
#include "sym/sym.h"

/* The argument `key=` of the call on this line; NULL if absent. */
static const char *keyword(const char *s, const char *key)
{
    size_t n = strlen(key), len = strcspn(s, "\n");

    for (const char *p = s; p + n < s + len; p++)
        if (strncmp(p, key, n) == 0 && p[n] == '=' && (p == s || p[-1] == ' ' || p[-1] == '('))
            return p + n + 1;
    return NULL;
}

/* The position of `word` in from..to, or NULL. strstr() would search the rest of the file. */
static const char *find(const char *from, const char *to, const char *word)
{
    return memmem(from, (size_t)(to - from), word, strlen(word));
}

/* The inside of a parenthesized list at s, and what follows; NULL if there is none. */
static const char *inside(const char *s, const char **from, const char **to)
{
    int depth = 0;

    if (*s != '(' && *s != '[')
        return NULL;
    for (const char *p = s; *p != '\n' && *p != '\0'; p++) {
        depth += *p == '(' || *p == '[';
        depth -= *p == ')' || *p == ']';
        if (depth == 0) {
            *from = s + 1;
            *to = p;
            return p + 1;
        }
    }
    return NULL;
}

/* One element of a list, up to the next comma outside parentheses; false at the end. */
static bool element(const char **s, const char *to, const char **from, size_t *len)
{
    int depth = 0;

    while (*s < to && (**s == ' ' || **s == ','))
        ++*s;
    if (*s >= to)
        return false;
    *from = *s;
    for (; *s < to && (depth > 0 || **s != ','); ++*s) {
        depth += **s == '(';
        depth -= **s == ')';
    }
    *len = (size_t)(*s - *from);
    return true;
}

/* Contiguous strides of the sizes from..to, as text. */
static void put_strides(struct reader *r, const char *from, const char *to)
{
    struct symtab *t = &r->store->sym;
    const char *s = from, *e;
    size_t len, n = 0;
    sym_id stride[64], size[64];

    while (element(&s, to, &e, &len) && n < 64)
        size[n++] = sym_parse(t, e, len);
    sym_id at = sym_int(t, 1);
    for (size_t i = n; i > 0; i--) {
        stride[i - 1] = at;
        at = sym_mul(t, at, size[i - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        buf_str(&r->tmp, i ? ", " : "");
        if (stride[i] != 0)
            sym_print(t, stride[i], &r->tmp);
    }
}

static void put_sizes(struct reader *r, const char *from, const char *to)
{
    const char *s = from, *e;
    size_t len;
    bool first = true;

    while (element(&s, to, &e, &len)) {
        buf_str(&r->tmp, first ? "" : ", ");
        buf_add(&r->tmp, e, len);
        first = false;
    }
}

/* device(type='cuda', index=0) as cuda:0. */
static void put_device(struct reader *r, const char *s)
{
    size_t len = strcspn(s, ")\n");
    const char *type = find(s, s + len, "type='"), *index = find(s, s + len, "index=");

    if (type != NULL) {
        buf_add(&r->tmp, type + 6, strcspn(type + 6, "'\n"));
        if (index != NULL)
            buf_printf(&r->tmp, ":%d", atoi(index + 6));
    }
}

/* The comment at the end of the line names the placeholder. */
static uint32_t named_placeholder(struct reader *r, const char *s)
{
    size_t len = strcspn(s, "\n");
    const char *hash = NULL;

    for (const char *p = s; p < s + len; p++)
        if (*p == '#')
            hash = p;
    if (hash == NULL || r->g == NULL)
        return 0;
    hash += 1 + strspn(hash + 1, " ");
    size_t n = ident_len(hash);
    str_id name = n ? str_find(&r->store->str, hash, n) : 0;
    uint32_t node = name ? read_lookup(r, name) : 0;
    return node != 0 && node_at(r->g, node)->kind == TUCK_PLACEHOLDER ? node : 0;
}

static void annotate(struct reader *r, uint32_t node)
{
    struct fx_node *x = node_at(r->g, node);

    if (x->ann == 0) {
        uint32_t ann = ann_from_inner(r->store, r->tmp.at, r->tmp.len);
        node_at(r->g, node)->ann = ann;
        if (!r->g->style.inputs_annotated)
            r->g->style.silent_inputs = true;
    }
}

static const char *abbr_of(const char *dtype)
{
    size_t n = strcspn(dtype, ",) \n");
    enum dtype d = dtype_by_name(dtype, n);

    return d != DTYPE_NONE ? dtype_at(d)->abbr : "";
}

/* buf0 = reader.storage(None, 128, device=device(type='cuda', index=0)) */
static void read_storage(struct reader *r, const char *s)
{
    const char *device = keyword(s, "device");

    r->tmp.len = 0;
    if (device != NULL)
        put_device(r, device);
    if (r->tmp.len == 0)
        buf_str(&r->tmp, "cpu");
    str_id name = read_intern(r, s, ident_len(s));
    str_id dev = read_intern(r, r->tmp.at, r->tmp.len);
    if (name >= r->storage_of.len) {
        uint32_t len = r->storage_of.len, more = r->store->str.all.len - len;
        vec_reserve(r->mem, &r->storage_of, more);
        memset(r->storage_of.at + len, 0, more * sizeof(*r->storage_of.at));
        r->storage_of.len += more;
    }
    vec_push(r->mem, &r->storage, ((struct script_storage){dev}));
    r->storage_of.at[name] = r->storage.len;
}

/* reader.tensor(buf0, (4, 8), (8, 1), dtype=torch.int64, storage_offset=4,
 * is_leaf=True)  # arg0_1 */
static void read_tensor(struct reader *r, const char *s)
{
    uint32_t node = named_placeholder(r, s);
    const char *from, *to, *from2, *to2, *p = s + 14, *dtype = keyword(s, "dtype");
    str_id name = str_find(&r->store->str, p, ident_len(p)), device = 0;
    uint32_t storage = name < r->storage_of.len ? r->storage_of.at[name] : 0;

    if (storage != 0)
        device = r->storage.at[storage - 1].device;
    p += ident_len(p);
    p += strspn(p, ", ");
    if (node == 0 || (p = inside(p, &from, &to)) == NULL)
        return;
    p += strspn(p, ", ");
    bool strided = inside(p, &from2, &to2) != NULL;
    r->tmp.len = 0;
    buf_str(&r->tmp, dtype ? abbr_of(dtype) : "f32");
    buf_chr(&r->tmp, '[');
    put_sizes(r, from, to);
    buf_str(&r->tmp, "][");
    if (strided)
        put_sizes(r, from2, to2);
    else
        put_strides(r, from, to);
    buf_chr(&r->tmp, ']');
    buf_str(&r->tmp, device ? str_text(&r->store->str, device) : "cpu");
    annotate(r, node);
    /* Parameters became nodes one after another. */
    uint32_t i = r->g->param.len > 0 ? node - r->g->param.at[0].node : 0;
    if (i < r->g->param.len && r->g->param.at[i].node == node)
        r->g->param.at[i].storage = storage;
}

/* The value that a script is run with is the symbol's value. */
static void hint_symbol(struct reader *r, const char *symbol, const char *value)
{
    size_t n = ident_len(symbol);
    char *end;

    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (n == 0 || (symbol[n] != '\'' && symbol[n] != '"' && symbol[n] != ')') || end == value ||
        errno != 0 || v < 0)
        return;
    vec_push(r->mem, &r->doc->hint, ((struct fx_hint){read_intern(r, symbol, n), v}));
}

/* reader.symint(6, expr='s77')  # arg0_1; before 2.13 without expr=, and the annotation of
 * arg0_1 names the symbol */
static void read_symint(struct reader *r, const char *s)
{
    uint32_t node = named_placeholder(r, s);
    const char *expr = keyword(s, "expr");
    const struct fx_node *x = node != 0 ? node_at(r->g, node) : NULL;
    const char *stated = x != NULL && x->ann != 0
                             ? str_text(&r->store->str, ann_at(r->store, x->ann)->inner)
                             : "";

    if (expr != NULL && (*expr == '\'' || *expr == '"'))
        hint_symbol(r, expr + 1, s + 14);
    else if (starts_with(stated, "Sym("))
        hint_symbol(r, stated + 4, s + 14);

    r->tmp.len = 0;
    buf_str(&r->tmp, "Sym(");
    if (expr != NULL && (*expr == '\'' || *expr == '"'))
        buf_add(&r->tmp, expr + 1, strcspn(expr + 1, "'\"\n"));
    else
        buf_add(&r->tmp, s + 14, strcspn(s + 14, ",)\n"));
    buf_chr(&r->tmp, ')');
    if (node != 0)
        annotate(r, node);
}

/* self.register_buffer('c', tensor([1., 2.])), self.w =
 * torch.nn.Parameter(torch.randn([4], dtype=..)) */
static void read_attribute(struct reader *r, const char *s)
{
    const char *name, *from, *to, *value, *dtype = keyword(s, "dtype");
    const char *device = keyword(s, "device");
    size_t len;

    if (starts_with(s, "self.register_buffer('")) {
        name = s + 22;
        len = strcspn(name, "'\n");
    } else {
        name = s + 5;
        len = ident_len(name);
    }
    value = name + len;
    const char *list = value + strcspn(value, "[\n");
    bool literal = find(value, list + (*list == '['), "tensor([") != NULL;
    if (inside(list, &from, &to) == NULL || len == 0)
        return;
    r->tmp.len = 0;
    if (literal) { /* at most four numbers: PyTorch writes only vectors this way */
        const char *p = from, *e;
        size_t n = 0, m;
        bool whole = true, truth = false;
        while (element(&p, to, &e, &m)) {
            n++;
            for (size_t i = 0; i < m; i++)
                whole &= e[i] != '.' && e[i] != 'e' && e[i] != 'n';
            truth |= *e == 'T' || *e == 'F';
        }
        if (memchr(from, '[', (size_t)(to - from)) != NULL)
            return;
        buf_printf(&r->tmp, "%s[%zu][1]cpu",
                   dtype   ? abbr_of(dtype)
                   : truth ? "b8"
                   : whole ? "i64"
                           : "f32",
                   n);
    } else {
        buf_str(&r->tmp, dtype ? abbr_of(dtype) : "f32");
        buf_chr(&r->tmp, '[');
        put_sizes(r, from, to);
        buf_str(&r->tmp, "][");
        put_strides(r, from, to);
        buf_chr(&r->tmp, ']');
        if (device != NULL && (*device == '"' || *device == '\''))
            buf_add(&r->tmp, device + 1, strcspn(device + 1, "\"'\n"));
        else
            buf_str(&r->tmp, "cpu");
    }
    str_id id = read_intern(r, name, len);
    uint32_t ann = ann_from_inner(r->store, r->tmp.at, r->tmp.len);
    vec_push(r->mem, &r->attribute, ((struct pending_ann){id, ann, 0}));
}

/* setup_fake_process_groups({'0': {'size': 4, 'rank': 0}, …}) */
static void read_groups(struct reader *r, const char *s)
{
    const char *eol = s + strcspn(s, "\n");

    for (;;) {
        const char *open = memchr(s, '{', (size_t)(eol - s));
        if (open == NULL)
            return;
        s = open + 1;
        if (*s != '\'' && *s != '"')
            continue;
        for (;;) {
            const char *name = s + 1;
            size_t len = strcspn(name, "'\"\n");
            const char *body = name + len + (name[len] != '\n' && name[len] != '\0');
            const char *end = body + strcspn(body, "}\n");
            const char *size = find(body, end, "'size': "), *rank = find(body, end, "'rank': ");
            struct fx_group g = {
                .name = read_intern(r, name, len), .rank = -1, .from = GROUP_SCRIPT};

            if (size != NULL)
                g.size = atoll(size + 8);
            if (rank != NULL)
                g.rank = atoll(rank + 8);
            if (g.size > 0)
                vec_push(r->mem, &r->group, g);
            s = end + (*end == '}');
            s += strspn(s, ", ");
            if (*s != '\'' && *s != '"')
                return;
        }
    }
}

bool read_script_line(struct reader *r)
{
    const char *s = r->bol + strspn(r->bol, " ");
    size_t n = ident_len(s);

    if (starts_with(s, "reader.tensor("))
        read_tensor(r, s);
    else if (starts_with(s, "reader.symint("))
        read_symint(r, s);
    else if (starts_with(s + n, " = reader.storage("))
        read_storage(r, s);
    else if (starts_with(s, "setup_fake_process_groups("))
        read_groups(r, s);
    else if (starts_with(s, "self.register_buffer('") ||
             (starts_with(s, "self.") &&
              find(s, s + strcspn(s, "\n"), " = torch.nn.Parameter(") != NULL))
        read_attribute(r, s);
    else if (n > 1 && strchr("su", *s) != NULL && starts_with(s + n, " = ") && s == r->bol &&
             strspn(s + 1, "0123456789") == n - 1 && s[n + 3] >= '0' && s[n + 3] <= '9')
        vec_push(r->mem, &r->doc->hint, ((struct fx_hint){read_intern(r, s, n), atoll(s + n + 3)}));
    else
        return false;
    return true;
}
