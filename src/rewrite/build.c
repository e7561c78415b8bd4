/* The public editing functions, for use in passes: when memory runs out they jump to the runner's
 * guard, and an invalid edit is a bug of the pass. */
#include "rewrite/build.h"

#include "graph/edit.h"

static void must(struct pass_run *r, tuck_status st)
{
    if (st == TUCK_ENOMEM)
        mem_exhausted(r->mem);
    assert(st == TUCK_OK);
    r->changed = true;
    (void)st;
}

struct build build_at(struct pass_run *r, uint32_t before)
{
    const tuck_graph *g = r->g;

    return (struct build){.r = r, .before = before, .comment = node_at(g, before)->comment};
}

struct build build_behind(struct pass_run *r, uint32_t node)
{
    struct build b = build_at(r, node_at(r->g, node)->next);

    b.comment = node_at(r->g, node)->comment;
    return b;
}

void build_call(struct build *b, const char *op)
{
    tuck_args_clear(b->r->args);
    b->target = op;
}

void build_node(struct build *b, uint32_t n)
{
    tuck_args_node(b->r->args, (tuck_node){n});
}

void build_int(struct build *b, int64_t v)
{
    tuck_args_int(b->r->args, v);
}

void build_str(struct build *b, const char *s)
{
    tuck_args_str(b->r->args, s);
}

void build_none(struct build *b)
{
    tuck_args_none(b->r->args);
}

void build_text(struct build *b, const char *s)
{
    tuck_args_text(b->r->args, s);
}

void build_value(struct build *b, const tuck_value *v)
{
    tuck_args_value(b->r->args, v);
}

void build_open(struct build *b)
{
    tuck_args_open(b->r->args, TUCK_V_LIST);
}

void build_close(struct build *b)
{
    tuck_args_close(b->r->args);
}

void build_key(struct build *b, const char *name)
{
    tuck_args_key(b->r->args, name);
}

/* "operator.getitem" stays as it is; everything else is in torch.ops. */
static const char *full_target(struct build *b)
{
    struct arena *a = &b->r->arena;
    size_t len = strlen(b->target);

    if (strncmp(b->target, "operator.", 9) == 0)
        return b->target;
    char *s = arena_alloc(a, len + sizeof("torch.ops."));
    memcpy(s, "torch.ops.", 10);
    memcpy(s + 10, b->target, len + 1);
    return s;
}

/* Calls made before. The first of each kind is a normal edit, which looks up the operator, its
 * spelling and reserved words; later ones copy it. */
struct build_known {
    struct known_call {
        const char *op; /* compared by address: callers pass literals */
        uint16_t row;
        uint8_t syntax;
        str_id target;
    } at[32];
    uint32_t n;
};

static struct known_call *find_known(const struct build *b)
{
    struct build_known *k = b->r->known;

    for (uint32_t i = 0; k != NULL && i < k->n; i++)
        if (k->at[i].op == b->target)
            return &k->at[i];
    return NULL;
}

/* Is it spelled like the first one, without words that need to be recorded? */
static bool is_alike(const struct build *b, const struct known_call *k)
{
    const tuck_args *a = b->r->args;

    if (a->error != TUCK_OK || a->list.open.len > 0 || a->keyed)
        return false;
    for (uint32_t i = 0; i < a->list.v.len; i++)
        if (a->list.v.at[i].kind == TUCK_V_NAME || a->list.v.at[i].kind == TUCK_V_SYM)
            return false;
    return edit_spelling(b->r->g, k->row, a->list.v.at, a->n_args, a->n_kwargs) == k->syntax;
}

static void remember(const struct build *b, uint32_t n)
{
    struct pass_run *r = b->r;
    const struct fx_node *x = node_at(r->g, n);

    if (r->known == NULL)
        r->known = arena_new(&r->arena, struct build_known);
    if (r->known->n < sizeof(r->known->at) / sizeof(*r->known->at))
        r->known->at[r->known->n++] = (struct known_call){
            .op = b->target, .row = x->op, .syntax = x->syntax, .target = x->target};
}

static uint32_t add_alike(struct build *b, const struct known_call *k, const char *name)
{
    tuck_graph *g = b->r->g;
    const tuck_args *a = b->r->args;
    struct fx_node init = {
        .kind = TUCK_CALL_FUNCTION, .op = k->row, .syntax = k->syntax, .target = k->target};

    init.name = name_create(g, name, strlen(name));
    uint32_t n = graph_add_node(g, b->before ? b->before : g->output, init);
    graph_set_vals(g, n, a->list.v.at, a->list.v.len, a->n_args, a->n_kwargs);
    name_enter(g, init.name, n);
    graph_edited(g, true);
    b->r->changed = true;
    return n;
}

uint32_t build_end(struct build *b, const char *name)
{
    struct pass_run *r = b->r;
    const struct known_call *known = find_known(b);
    tuck_node n = {0};

    if (known != NULL && is_alike(b, known)) {
        n.id = add_alike(b, known, name);
    } else {
        tuck_where where = b->before ? tuck_before((tuck_node){b->before}) : tuck_at_end();
        must(r, tuck_graph_add(r->g, where, TUCK_CALL_FUNCTION, full_target(b), r->args, name, NULL,
                               &n));
        if (known == NULL)
            remember(b, n.id);
    }
    node_at(r->g, n.id)->comment = b->comment;
    return n.id;
}

uint32_t build_copy(struct pass_run *r, uint32_t n, uint32_t before)
{
    tuck_graph *g = r->g;
    const struct fx_node x = *node_at(g, n);
    const char *name = graph_str(g, x.name);
    size_t len = strlen(name), end = len;

    while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    if (end > 1 && end < len && name[end - 1] == '_')
        len = end - 1;
    char *base = arena_alloc(&r->arena, len + 1);
    memcpy(base, name, len);
    base[len] = '\0';
    struct fx_node init = {
        .kind = x.kind, .op = x.op, .syntax = x.syntax, .target = x.target, .comment = x.comment};
    init.name = name_create(g, base, len);
    uint32_t copy = graph_add_node(g, before, init);
    graph_set_vals(g, copy, x.vals, x.n_vals, x.n_args, x.n_kwargs);
    name_enter(g, init.name, copy);
    graph_edited(g, true);
    r->changed = true;
    return copy;
}

uint32_t build_getitem(struct build *b, uint32_t n, int64_t i)
{
    build_call(b, "operator.getitem");
    build_node(b, n);
    build_int(b, i);
    return build_end(b, "getitem");
}

void build_replace(struct pass_run *r, uint32_t old, uint32_t with)
{
    must(r, tuck_node_replace_uses(r->g, (tuck_node){old}, (tuck_node){with}, (tuck_node){0}));
}

void build_replace_in(struct pass_run *r, uint32_t user, uint32_t slot, uint32_t with)
{
    const tuck_value *v = &node_at(r->g, user)->vals[slot];

    assert(v->kind == TUCK_V_NODE);
    graph_redirect_use(r->g, (uint32_t)v->u.i, with);
    graph_edited(r->g, false);
    r->changed = true;
}

bool build_may_erase(struct pass_run *r, uint32_t n)
{
    names_need(r->g);
    return (name_flags(r->g, node_at(r->g, n)->name) & NAME_INNER) == 0;
}

void build_erase(struct pass_run *r, uint32_t n)
{
    must(r, tuck_node_erase(r->g, (tuck_node){n}));
}

void build_move(struct pass_run *r, uint32_t n, uint32_t before)
{
    must(r, tuck_node_move(r->g, (tuck_node){n}, tuck_before((tuck_node){before})));
}
