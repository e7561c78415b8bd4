#include "infer/infer.h"

#include "graph/call.h"
#include "graph/effect.h"
#include "op/ops.h"
#include "infer/infer_run.h"

rule_fn rule_at(uint16_t shape)
{
    static const rule_fn table[] = {
#define X(id, ...) shape_##id,
        OP_SHAPES(X)
#undef X
    };

    return table[shape];
}

/* ---- memo: the same operator on the same types and literals ---- */

/* A call as far as rules can see it: operator, literals, types of the nodes. False: do not cache
 * it. */
static bool make_key(struct infer_run *r, const tuck_graph *g, const struct fx_node *x, uint32_t op)
{
    const struct op_row *row = op_at(op);
    bool comm = row->cls == OP_COLLECTIVE || row->cls == OP_SYNC_COLLECTIVE || row->cls == OP_FSDP;

    if (row->flags & OP_F_DATADEP || row->cls == OP_HOP)
        return false;
    r->key.len = 0;
    vec_push(r->mem, &r->key, (uint64_t)op << 32 | x->n_args);
    for (uint32_t i = 0; i < x->n_vals; i++) {
        const tuck_value *v = &x->vals[i];

        if (v->kind == TUCK_V_STR && row->form == OP_FORM_GETITEM)
            return false; /* what the name refers to depends on the operand, not on its type */
        if (v->kind == TUCK_V_NODE) {
            type_id t = g->type.at[v->a];
            if (t == 0 && comm)
                return false; /* a group that is a value: its type does not say which one */
            vec_push(r->mem, &r->key, (uint64_t)v->kind << 56 | t);
        } else {
            vec_push(r->mem, &r->key, (uint64_t)v->kind << 56 | v->a);
            vec_push(r->mem, &r->key, v->u.w);
        }
    }
    return true;
}

static uint32_t key_hash(const struct infer_run *r)
{
    return hash_bytes((const char *)r->key.at, r->key.len * sizeof(*r->key.at));
}

static struct memo *memo_probe(struct infer_run *r, uint32_t hash)
{
    uint32_t i = hash & (r->n_memo - 1);

    for (; r->memo[i].key != NULL; i = (i + 1) & (r->n_memo - 1)) {
        const struct memo *m = &r->memo[i];
        if (m->hash == hash && m->len == r->key.len &&
            memcmp(m->key, r->key.at, m->len * sizeof(*m->key)) == 0)
            break;
    }
    return &r->memo[i];
}

static void memo_grow(struct infer_run *r)
{
    uint32_t n = r->n_memo ? r->n_memo * 2 : 1024;
    struct memo *old = r->memo;
    uint32_t n_old = r->n_memo;

    r->memo = arena_array(&r->arena, struct memo, n);
    memset(r->memo, 0, n * sizeof(*r->memo));
    r->n_memo = n;
    for (uint32_t k = 0; k < n_old; k++)
        if (old[k].key != NULL) {
            uint32_t i = old[k].hash & (n - 1);
            while (r->memo[i].key != NULL)
                i = (i + 1) & (n - 1);
            r->memo[i] = old[k];
        }
}

static void memo_store(struct infer_run *r, uint32_t hash, type_id result)
{
    if (r->memo_used >= r->n_memo / 2)
        memo_grow(r);
    struct memo *m = memo_probe(r, hash);
    uint64_t *key = arena_array(&r->arena, uint64_t, r->key.len);

    memcpy(key, r->key.at, r->key.len * sizeof(*key));
    *m = (struct memo){key, r->key.len, hash, result};
    r->memo_used++;
}

/* ---- one call ---- */

static const struct op_sig *sig_of(struct infer_run *r, uint32_t op)
{
    if (r->sig[op] == NULL) {
        struct op_sig *sig = arena_new(&r->arena, struct op_sig);
        if (!op_sig_parse(&r->arena, op_at(op), sig, NULL))
            *sig = (struct op_sig){.n_params = 0};
        r->sig[op] = sig;
    }
    return r->sig[op];
}

/* Finds which argument is given for which parameter. */
static void bind(struct infer *x, const struct fx_node *n)
{
    const tuck_value *v = n->vals;

    for (uint32_t i = 0; i < x->sig->n_params; i++)
        x->arg[i] = NULL;
    for (uint32_t i = 0; i < n->n_args; i++, v = value_next(v))
        if (i < x->sig->n_params)
            x->arg[i] = v;
    for (uint32_t i = 0; i < n->n_kwargs; i++) {
        const struct str *key = str_at(&x->store->str, v->a);
        int p = op_param_find(x->sig, key->at, key->len);
        if (p >= 0)
            x->arg[p] = v + 1;
        v = value_next(v + 1);
    }
}

static type_id without_strides(struct typetab *t, type_id id)
{
    struct type x = *type_at(t, id);

    return x.kind == TYPE_TENSOR ? type_tensor(t, (enum dtype)x.dtype, x.n, x.size, NULL, x.device)
                                 : 0;
}

/* If the text has no strides, which is the default of print_readable(), rules that need them have
 * no answer. Sizes and dtypes do not depend on strides, so they are computed as for contiguous
 * operands. */
static type_id infer_packed(struct infer *x, type_id first)
{
    struct type was = *type_at(x->type, first);
    bool complete = first != 0;

    for (uint32_t i = 0; was.kind == TYPE_LIST && i < was.n; i++)
        complete &= was.item[i] != 0;
    if (complete)
        return first;
    x->packed = true;
    if (!rule_at(x->row->shape)(x))
        return first;
    struct type is = *type_at(x->type, x->result);
    if (is.kind != TYPE_LIST)
        return first != 0 ? first : without_strides(x->type, x->result);
    if (first != 0 && was.n != is.n)
        return first;
    type_id *item = arena_array(x->arena, type_id, is.n);
    for (uint32_t i = 0; i < is.n; i++)
        item[i] = first != 0 && was.item[i] != 0 ? was.item[i]
                                                 : without_strides(x->type, is.item[i]);
    return type_list(x->type, item, is.n);
}

/* Are there as many positional parameters, and these keywords? */
static bool accepts(const tuck_graph *g, const struct op_sig *sig, const struct fx_node *n)
{
    const tuck_value *v = n->vals;
    uint32_t places = 0;

    for (uint32_t i = 0; i < sig->n_params; i++) {
        if (sig->params[i].rest)
            return true;
        places += !sig->params[i].kwarg_only;
    }
    for (uint32_t i = 0; i < n->n_args; i++)
        v = value_next(v);
    for (uint32_t i = 0; i < n->n_kwargs; i++, v = value_next(v + 1)) {
        const struct str *key = str_at(&g->store->str, v->a);
        if (op_param_find(sig, key->at, key->len) < 0)
            return false;
    }
    return n->n_args <= places;
}

/* The operator of a call. For a method or a packet, the table's first overload may not fit the
 * operands: x.mean(-1, keepdim=True) is not aten.mean.default. */
static uint32_t op_of_call(struct infer_run *r, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *node = node_at(g, n);
    uint32_t op = node_op(g, n);

    if (op == 0 || op_at(op)->cls == OP_HOP || accepts(g, sig_of(r, op), node))
        return op;
    for (uint32_t k = op; k > 1 && op_same_packet(k - 1, op); k--)
        if (accepts(g, sig_of(r, k - 1), node))
            return k - 1;
    for (uint32_t k = op + 1; op_same_packet(k, op); k++)
        if (accepts(g, sig_of(r, k), node))
            return k;
    return op;
}

static void report_apart(struct infer_run *r, const tuck_graph *g, uint32_t n, const int64_t *of)
{
    const struct fx_node *x = node_at(g, n);
    struct diag_source src = {.file = graph_str(g, g->source_name)};

    diag_add(r->diags, TUCK_WARNING,
             (struct diag_pos){.source = &src, .line = x->line, .column = x->column}, NULL,
             "the operands of '%s' do not go together: a size of %lld meets one of %lld",
             graph_str(g, x->name), (long long)of[0], (long long)of[1]);
}

static type_id infer_call(struct infer_run *r, tuck_graph *g, uint32_t n)
{
    const struct fx_node *node = node_at(g, n);
    uint32_t op = op_of_call(r, g, n);
    const struct op_row *row = op_at(op);
    bool keep = make_key(r, g, node, op);
    uint32_t hash = keep ? key_hash(r) : 0;

    if (op == 0 || row->shape == OP_SHAPE_none)
        return 0;
    if (keep && r->n_memo > 0) {
        const struct memo *m = memo_probe(r, hash);
        if (m->key != NULL)
            return m->result;
    }
    struct infer x = {.store = g->store,
                      .sym = &g->store->sym,
                      .type = &g->store->type,
                      .arena = &r->scratch,
                      .g = g,
                      .node = n,
                      .types = g->type.at,
                      .row = row,
                      .sig = sig_of(r, op),
                      .run = r};
    struct arena_mark mark = arena_mark(&r->scratch);

    x.arg = arena_array(&r->scratch, const tuck_value *, x.sig->n_params);
    bind(&x, node);
    type_id result = rule_at(row->shape)(&x) ? x.result : 0;
    if (x.loose)
        result = infer_packed(&x, result);
    arena_release(&r->scratch, mark);
    if (x.apart && result == 0 && r->options->check)
        report_apart(r, g, n, x.of);
    else if (keep)
        memo_store(r, hash, result);
    return result;
}

/* The type of a returned value: lists become lists of types. Only the outermost level matters. */
static type_id value_type(struct infer_run *r, const tuck_graph *g, const tuck_value *v)
{
    struct typetab *t = &g->store->type;

    switch (v->kind) {
    case TUCK_V_NODE: return g->type.at[v->a];
    case TUCK_V_NONE: return type_none(t);
    case TUCK_V_INT:
    case TUCK_V_BOOL: return type_sym(t, sym_int(&g->store->sym, v->u.i));
    case TUCK_V_LIST:
    case TUCK_V_TUPLE: {
        struct arena_mark mark = arena_mark(&r->scratch);
        type_id *item = arena_array(&r->scratch, type_id, v->a);
        const tuck_value *k = v + 1;
        for (uint32_t i = 0; i < v->a; i++, k = value_next(k))
            item[i] = value_is_container(k) ? 0 : value_type(r, g, k);
        type_id out = type_list(t, item, v->a);
        arena_release(&r->scratch, mark);
        return out;
    }
    default: return 0;
    }
}

/* ---- graphs ---- */

/* An annotation may contain less than what was inferred (no strides, no device): take the more
 * complete one if they agree otherwise. */
static type_id fuller(struct fx_store *s, type_id stated, type_id inferred)
{
    const struct type *a = type_at(&s->type, stated), *b = type_at(&s->type, inferred);

    if (stated == 0)
        return inferred;
    if (inferred == 0 || a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->n != b->n ||
        a->dtype != b->dtype || (a->strided && a->device != 0))
        return stated;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->size[i] != b->size[i] || (a->strided && a->stride[i] != b->stride[i]))
            return stated;
    return a->device == 0 || a->device == b->device ? inferred : stated;
}

/* Do they contradict each other? Symbols for data-dependent sizes may have different names. */
static bool disagree(struct fx_store *s, type_id stated, type_id inferred)
{
    const struct type *a = type_at(&s->type, stated), *b = type_at(&s->type, inferred);

    if (stated == 0 || inferred == 0 || stated == inferred)
        return false;
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR)
        return a->kind != b->kind;
    if (a->n != b->n || a->dtype != b->dtype ||
        (a->device != 0 && b->device != 0 && a->device != b->device))
        return true;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t u, v;
        if (sym_as_int(&s->sym, a->size[i], &u) && sym_as_int(&s->sym, b->size[i], &v) && u != v)
            return true;
        if (a->strided && b->strided && sym_as_int(&s->sym, a->stride[i], &u) &&
            sym_as_int(&s->sym, b->stride[i], &v) && u != v)
            return true;
    }
    return false;
}

/* Is this what an older release returned? Up to 2.6 flash attention returned its random state as
 * two numbers, up to 2.1 where sequences begin. */
static bool older_result(const tuck_graph *g, uint32_t n, type_id stated)
{
    const struct fx_node *x = node_at(g, n);
    const struct type *t = type_at(&g->store->type, stated);

    if (op_at(x->op)->form != OP_FORM_GETITEM || x->n_args != 2 || x->vals[0].kind != TUCK_V_NODE ||
        x->vals[1].kind != TUCK_V_INT || t->kind != TYPE_TENSOR ||
        op_at(node_op(g, x->vals[0].a))->shape != OP_SHAPE_sdpa_flash)
        return false;
    switch (x->vals[1].u.i) {
    case 2:
    case 3: return t->dtype == DTYPE_I32 && t->n == 1;
    case 6:
    case 7: return t->dtype == DTYPE_I64 && t->n == 0;
    default: return false;
    }
}

static void report(struct infer_run *r, const tuck_graph *g, uint32_t n, type_id stated,
                   type_id inferred)
{
    const struct fx_node *x = node_at(g, n);
    struct diag_source src = {.file = graph_str(g, g->source_name)};

    r->text.len = 0;
    type_print(g->store, inferred, &r->text, true, true);
    buf_chr(&r->text, '\0');
    size_t at = r->text.len;
    type_print(g->store, stated, &r->text, true, true);
    buf_text(&r->text);
    diag_add(r->diags, TUCK_WARNING,
             (struct diag_pos){.source = &src, .line = x->line, .column = x->column},
             "the annotation is used; it may be older than the graph",
             "'%s' is annotated %s, but its operands give %s", graph_str(g, x->name),
             r->text.at + at, r->text.at);
}

/* Enters a graph: its nodes are unknown, and the walk starts at the first. */
static void enter(struct infer_run *r, tuck_graph *g)
{
    vec_reserve(r->mem, &g->type, g->node.len);
    g->type.len = g->node.len;
    memset(g->type.at, 0, g->node.len * sizeof(*g->type.at));
    g->result = 0;
    struct infer_walk at_first = {g, g->node.at[0].next};
    vec_push(r->mem, &r->walk, at_first);
}

/* After an edit: may the annotation be out of date? */
static bool outdated(const struct infer_options *o, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    if (o->before == NULL || g != o->edited)
        return false;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t a = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
        if (a != 0 && (a >= o->n_before || o->before[a] != g->type.at[a]))
            return true;
    }
    return n >= o->n_before;
}

/* What a call gives of which nothing is known, as the annotations of what is taken out of it tell:
 * texts have none for lists. 0: nothing is taken out. */
static type_id taken_out(struct infer_run *r, const tuck_graph *g, uint32_t n)
{
    enum { MOST = 65536 };
    uint32_t items = 0, k;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        const struct fx_node *y = node_at(g, g->use.at[u].user);
        if (op_at(y->op)->form == OP_FORM_GETITEM && g->use.at[u].slot == 0 &&
            call_item(g, y, &k) && k < MOST && k >= items)
            items = k + 1;
    }
    if (items == 0)
        return 0;
    struct arena_mark mark = arena_mark(&r->scratch);
    type_id *item = arena_zeroed(&r->scratch, items * sizeof(*item));
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        const struct fx_node *y = node_at(g, g->use.at[u].user);
        if (op_at(y->op)->form == OP_FORM_GETITEM && g->use.at[u].slot == 0 &&
            call_item(g, y, &k) && k < items)
            item[k] = type_of_ann(g->store, y->ann);
    }
    type_id list = type_list(&g->store->type, item, items);
    arena_release(&r->scratch, mark);
    return list;
}

/* Are the strides of a view, an item or an operand that is returned those that the operand gives?
 * If sizes are others, too, the annotation is taken, and checked when it runs. */
static bool follows(const struct infer_options *o, tuck_graph *g, uint32_t n, type_id stated,
                    type_id inferred)
{
    const struct type *a = type_at(&g->store->type, stated),
                      *b = type_at(&g->store->type, inferred);
    const struct op_row *row = op_at(node_op(g, n));
    bool shares = row->cls == OP_VIEW || row->cls == OP_GETITEM || row->shape == OP_SHAPE_self;

    if (!o->views_follow || !shares || b->kind != TYPE_TENSOR || a->kind != TYPE_TENSOR ||
        a->dtype != b->dtype || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->size[i] != b->size[i])
            return false;
    return b->strided;
}

/* Is the annotation taken, whatever the operands give? Then they need not be looked at. New symbols
 * are counted, so what makes them is always inferred. */
static bool is_settled(const struct infer_options *o, const tuck_graph *g, uint32_t n,
                       type_id stated)
{
    const struct type *t = type_at(&g->store->type, stated);
    const struct op_row *row = op_at(node_at(g, n)->op);

    if (stated == 0 || o->check || o->each != NULL || o->ignore_annotations || o->views_follow)
        return false;
    if (node_at(g, n)->kind != TUCK_CALL_FUNCTION || node_at(g, n)->op == 0 || row->cls == OP_HOP ||
        row->flags & OP_F_DATADEP)
        return false;
    return (t->kind != TYPE_TENSOR || (t->strided && t->device != 0)) && !outdated(o, g, n);
}

/* The same tensor, contiguous if its text has no strides. */
static type_id dense(struct infer_run *r, struct fx_store *s, type_id id)
{
    struct type t = *type_at(&s->type, id);
    int64_t size;

    if (t.kind != TYPE_TENSOR || t.strided)
        return id;
    struct arena_mark mark = arena_mark(&r->scratch);
    sym_id *stride = arena_array(&r->scratch, sym_id, (size_t)t.n + 1), step = sym_int(&s->sym, 1);
    for (uint32_t i = t.n; i > 0; i--) {
        stride[i - 1] = step;
        if (!sym_as_int(&s->sym, t.size[i - 1], &size) || size > 0)
            step = sym_mul(&s->sym, step, t.size[i - 1]);
    }
    type_id out = type_tensor(&s->type, (enum dtype)t.dtype, t.n, t.size, stride, t.device);
    arena_release(&r->scratch, mark);
    return out != 0 ? out : id;
}

static void visit(struct infer_run *r, tuck_graph *g, uint32_t n)
{
    const struct infer_options *o = r->options;
    const struct fx_node *x = node_at(g, n);
    type_id stated = type_of_ann(g->store, x->ann);

    if (x->kind == TUCK_OUTPUT) {
        g->result = value_type(r, g, x->vals);
    } else if (is_settled(o, g, n, stated)) {
        g->type.at[n] = stated;
    } else if (x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD) {
        type_id inferred = infer_call(r, g, n);
        if (o->each != NULL)
            o->each(o->ctx, g, n, inferred, stated);
        if (o->check && disagree(g->store, stated, inferred) && !older_result(g, n, stated))
            report(r, g, n, stated, inferred);
        bool anew = o->ignore_annotations || (inferred != 0 && outdated(o, g, n)) ||
                    follows(o, g, n, stated, inferred);
        g->type.at[n] = anew ? inferred : fuller(g->store, stated, inferred);
        if (g->type.at[n] == 0 && !o->ignore_annotations)
            g->type.at[n] = taken_out(r, g, n);
    } else if (stated != 0) {
        /* otherwise what the caller passes, if anything */
        g->type.at[n] = o->dense_inputs ? dense(r, g->store, stated) : stated;
    }
}

/* A graph among the operands of a call that has not been inferred yet. */
static tuck_graph *waits_for(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    if (op_at(x->op)->cls != OP_HOP)
        return NULL;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        tuck_graph *child = x->vals[i].kind == TUCK_V_NODE ? child_of(g, x->vals[i].a) : NULL;
        if (child != NULL && child->type.len == 0)
            return child;
    }
    return NULL;
}

/* Graphs that a call takes come before the call; their inputs without annotation get the types that
 * the call passes. */
static void infer_from(struct infer_run *r, tuck_graph *top)
{
    enter(r, top);
    while (r->walk.len > 0) {
        struct infer_walk *w = &r->walk.at[r->walk.len - 1];
        tuck_graph *g = w->g, *child;
        uint32_t n = w->at, k = 0;

        if (n == 0) {
            r->walk.len--;
        } else if ((child = waits_for(g, n)) != NULL) {
            enter(r, child);
            for_each_node (child, p)
                if (node_at(child, p)->kind == TUCK_PLACEHOLDER)
                    child->type.at[p] = passed_type(g, n, k++);
        } else {
            visit(r, g, n);
            w->at = node_at(g, n)->next;
        }
    }
}

/* The first u<number> that no annotation of the store mentions. */
static uint32_t first_fresh(const struct fx_store *s)
{
    uint64_t next = 0;

    for (uint32_t i = 1; i < s->anns.len; i++) {
        const char *p = str_text(&s->str, s->anns.at[i].inner);
        for (char before = ' '; *p; before = *p++) {
            bool word = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                        (before >= '0' && before <= '9') || before == '_';
            if (*p != 'u' || word)
                continue;
            uint64_t v = 0;
            const char *d = p + 1;
            for (; *d >= '0' && *d <= '9' && v < 1000000000; d++)
                v = v * 10 + (uint64_t)(*d - '0');
            if (d > p + 1 && v + 1 > next)
                next = v + 1;
        }
    }
    return (uint32_t)next;
}

static void do_infer(void *p)
{
    struct infer_run *r = p;

    r->sig = arena_zeroed(&r->arena, (op_count() + 1) * sizeof(*r->sig));
    r->next_fresh = first_fresh(r->top->store);
    type_none(&r->top->store->type); /* the first type also creates the unknown one */
    vec_push(r->mem, &r->order, r->top);
    for (uint32_t i = 0; i < r->order.len; i++) { /* the list grows during the walk */
        r->order.at[i]->type.len = 0;
        for (uint32_t k = 0; k < r->order.at[i]->child.len; k++)
            vec_push(r->mem, &r->order, r->order.at[i]->child.at[k]);
    }
    for (uint32_t i = 0; i < r->order.len; i++) /* the first one, and graphs that no call takes */
        if (r->order.at[i]->type.len == 0)
            infer_from(r, r->order.at[i]);
}

void infer_graph(tuck_graph *g, const struct infer_options *options, tuck_diags *diags)
{
    static const struct infer_options plain = {.check = false};
    struct infer_run r = {
        .mem = &g->store->mem, .top = g, .options = options ? options : &plain, .diags = diags};

    arena_init(&r.arena, r.mem);
    arena_init(&r.scratch, r.mem);
    buf_init(&r.text, r.mem);
    bool ok = mem_guard(r.mem, do_infer, &r);
    vec_free(r.mem, &r.key);
    vec_free(r.mem, &r.order);
    vec_free(r.mem, &r.walk);
    buf_destroy(&r.text);
    arena_destroy(&r.scratch);
    arena_destroy(&r.arena);
    g->typed_at = 0;
    if (!ok)
        mem_exhausted(r.mem);
    if (!r.options->ignore_annotations)
        g->typed_at = g->revision;
}

void infer_need(tuck_graph *g)
{
    if (g->typed_at != g->revision)
        infer_graph(g, NULL, NULL);
    assert(g->typed_at == g->revision && g->type.len >= g->node.len);
}
