#include "study/digest.h"

#include "graph/groups.h"
#include "graph/message.h"
#include "graph/nested.h"
#include "lower/program.h"
#include "op/collective.h"

/* ---- the sequence ---- */

struct nested { /* a graph that calls take, and the digest of its sequence */
    const tuck_graph *g;
    uint64_t digest;
    bool any; /* does it communicate at all? */
};

struct walk {
    struct arena arena;
    struct assume assume;
    struct sigs sigs;
    struct sequence *out;
    const tuck_graph *top;
    uint32_t *number; /* by group of top: from 1 in the order of their first use */
    uint32_t n_number;
    VEC(struct nested) seen;
    uint32_t *slot; /* hash of `seen`: index + 1, 0 if free */
    uint32_t n_slot;
};

static bool communicates(const tuck_graph *g, uint32_t n)
{
    uint8_t cls = op_at(acting_op(g, n))->cls;

    return cls == OP_COLLECTIVE || cls == OP_P2P || cls == OP_SYNC_COLLECTIVE;
}

/* The group of a nested graph, as one of the top graph; -1 if it is not known there. */
static int32_t group_on_top(const struct walk *s, const tuck_graph *g, int32_t group)
{
    if (g == s->top || group < 0 || g->group.at[group].node != 0)
        return g == s->top ? group : -1;
    for (uint32_t i = 0; i < s->top->group.len; i++)
        if (s->top->group.at[i].node == 0 && s->top->group.at[i].name == g->group.at[group].name)
            return (int32_t)i;
    return -1;
}

static void put_group(struct walk *s, int32_t group, struct buf *out)
{
    if (group < 0) {
        buf_str(out, " ?");
        return;
    }
    if (s->number[group] == 0)
        s->number[group] = ++s->n_number;
    buf_chr(out, ' ');
    buf_int(out, s->number[group] - 1);
}

/* One dtype, or each that differs from the one before it: "bf16", "bf16,f32"; "?" if unknown. */
static void put_dtypes(const tuck_graph *g, const struct operand *o, int *last, struct buf *out)
{
    for (const tuck_value *v = o->v, *end = value_next(o->v); v < end; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        const struct type *t = type_at(&g->store->type, node_type(g, v->a));
        int dtype = t->kind == TYPE_TENSOR ? t->dtype : DTYPE_NONE;
        if (dtype == *last)
            continue;
        const struct dtype_row *row = dtype_at((enum dtype)dtype);
        buf_chr(out, *last < 0 ? ' ' : ',');
        buf_str(out, dtype == DTYPE_NONE ? "?" : *row->abbr ? row->abbr : row->name);
        *last = dtype;
    }
}

/* Kinds without a name of their own go by the name of their operator, and so do kernels over
 * symmetric memory: those and the library's do not meet. */
static void put_kind(const struct op_row *row, struct buf *out)
{
    tuck_coll kind = op_coll(row);

    if (kind == TUCK_OTHER_COLLECTIVE || (row->flags & OP_F_SYMMETRIC))
        buf_add(out, row->name, strcspn(row->name, " "));
    else
        buf_str(out, tuck_coll_name(kind));
}

static void put_collective(struct walk *s, const tuck_graph *g, uint32_t n, int32_t group,
                           struct buf *out)
{
    struct arena_mark mark = arena_mark(&s->arena);
    uint32_t op = acting_op(g, n);
    const struct fx_node *x = acting_call(g, n, &s->arena);
    const struct op_sig *sig = sigs_get(&s->sigs, op);
    const char *reduce = "-";
    struct operand o = {.v = NULL};
    int last = -1;

    put_kind(op_at(op), out);
    put_group(s, group_on_top(s, g, group), out);
    while (operand_next(g, x, sig, &o)) {
        if (o.param == NULL)
            continue;
        if (o.param->type == OP_T_TENSOR)
            put_dtypes(g, &o, &last, out);
        else if (strcmp(o.param->name, "reduce_op") == 0)
            reduce = o.v->kind == TUCK_V_STR ? graph_str(g, o.v->a) : "?";
    }
    buf_str(out, last < 0 ? " -" : "");
    int64_t ranks = group >= 0 ? g->group.at[group].size : 0;
    int64_t bytes = message_bytes(g, n, ranks, &s->sigs, &s->assume, &s->arena);
    buf_printf(out, " %s ", reduce);
    if (bytes < 0)
        buf_chr(out, '?');
    else
        buf_int(out, bytes);
    buf_chr(out, '\n');
    arena_release(&s->arena, mark);
}

/* Its index in `seen`; *new: it was not there yet. */
static uint32_t find_nested(struct walk *s, const tuck_graph *g, bool *new)
{
    if (s->seen.len * 2 >= s->n_slot) {
        s->n_slot = s->n_slot ? s->n_slot * 2 : 16;
        s->slot = arena_zeroed(&s->arena, s->n_slot * sizeof(*s->slot));
        for (uint32_t i = 0; i < s->seen.len; i++) {
            uint32_t at = hash_u64((uintptr_t)s->seen.at[i].g) & (s->n_slot - 1);
            while (s->slot[at] != 0)
                at = (at + 1) & (s->n_slot - 1);
            s->slot[at] = i + 1;
        }
    }
    uint32_t at = hash_u64((uintptr_t)g) & (s->n_slot - 1);
    for (; s->slot[at] != 0; at = (at + 1) & (s->n_slot - 1))
        if (s->seen.at[s->slot[at] - 1].g == g)
            return s->slot[at] - 1;
    vec_push_in(&s->arena, &s->seen, ((struct nested){.g = g}));
    s->slot[at] = s->seen.len;
    *new = true;
    return s->seen.len - 1;
}

static void put_graph(struct walk *s, const tuck_graph *g, int depth, struct buf *out);

/* A graph's sequence is found once: later calls of it issue the same one. */
static void put_nested(struct walk *s, const tuck_graph *in, int depth, struct buf *out)
{
    bool new = false;
    uint32_t k = find_nested(s, in, &new);

    if (new &&depth > 0) {
        size_t from = out->len;
        put_graph(s, in, depth - 1, out);
        s->seen.at[k].any = out->len > from;
        s->seen.at[k].digest = digest_add(DIGEST_EMPTY, out->at + from, out->len - from);
        out->len = from;
    }
    if (s->seen.at[k].any)
        buf_printf(out, "nested %016llx\n", (unsigned long long)s->seen.at[k].digest);
}

/* Depth is bounded by GRAPH_DEPTH; what is deeper is left out, as it is elsewhere. */
static void put_graph(struct walk *s, const tuck_graph *g, int depth, struct buf *out)
{
    const int32_t *group = groups_of_nodes(g, &s->arena);

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        if (x->kind != TUCK_CALL_FUNCTION && x->kind != TUCK_CALL_METHOD)
            continue;
        if (communicates(g, n)) {
            put_collective(s, g, n, group[n], out);
            continue;
        }
        for (uint32_t i = 0; g->child.len > 0 && op_at(x->op)->cls == OP_HOP && i < x->n_vals;
             i++) {
            const tuck_graph *in = x->vals[i].kind == TUCK_V_NODE ? child_of(g, x->vals[i].a)
                                                                  : NULL;
            if (in != NULL)
                put_nested(s, in, depth, out);
        }
    }
}

static void do_sequence(void *arg)
{
    struct walk *s = arg;

    s->number = arena_zeroed(&s->arena, ((size_t)s->top->group.len + 1) * sizeof(*s->number));
    put_graph(s, s->top, GRAPH_DEPTH, &s->out->text);
    s->out->digest = digest_add(DIGEST_EMPTY, s->out->text.at, s->out->text.len);
}

tuck_status sequence_of(const tuck_graph *g, const struct assume *assume, struct sequence *out)
{
    struct walk s = {.assume = *assume, .out = out, .top = g};

    *out = (struct sequence){.digest = 0};
    mem_init(&out->mem, &g->store->mem.alloc);
    buf_init(&out->text, &out->mem);
    arena_init(&s.arena, &out->mem);
    sigs_init(&s.sigs, &out->mem);
    bool ok = mem_guard_two(&out->mem, &g->store->mem, do_sequence, &s);
    sigs_destroy(&s.sigs);
    arena_destroy(&s.arena);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

void sequence_end(struct sequence *s)
{
    buf_destroy(&s->text);
}

/* ---- the program ---- */

struct reader {
    struct arena arena;
    struct buf text;
    struct fx_store *store;
    uint64_t *type;   /* by type: its hash, 0 if not known yet */
    uint32_t *number; /* by string: the number of the group of that name, from 1 */
    uint32_t n_number;
    uint64_t *child; /* by string: the digest of the nested graph of that name */
    struct program_digest *out;
    const tuck_graph *top;
};

/* "cuda:3" is "cuda". */
static void put_type(struct reader *r, type_id id, int depth)
{
    struct type t = *type_at(&r->store->type, id);

    if (t.kind != TYPE_LIST || depth == 0) {
        type_print(r->store, id, &r->text, true, false);
        const char *device = t.kind == TYPE_TENSOR ? str_text(&r->store->str, t.device) : "";
        buf_add(&r->text, device, strcspn(device, ":"));
        return;
    }
    for (uint32_t i = 0; i < t.n; i++) {
        buf_chr(&r->text, '(');
        put_type(r, t.item[i], depth - 1);
    }
}

static uint64_t type_digest(struct reader *r, type_id id)
{
    if (r->type[id] == 0) {
        r->text.len = 0;
        put_type(r, id, 3);
        r->type[id] = digest_add(DIGEST_EMPTY, r->text.at, r->text.len) | 1;
    }
    return r->type[id];
}

/* A group is its number and, where it is first used, its size. */
static bool put_group_name(struct reader *r, const tuck_graph *g, str_id name)
{
    uint32_t k = 0;

    while (k < g->group.len && (g->group.at[k].name != name || g->group.at[k].node != 0))
        k++;
    if (k == g->group.len)
        return false;
    if (r->number[name] == 0) {
        r->number[name] = ++r->n_number;
        buf_printf(&r->text, "of %lld", (long long)g->group.at[k].size);
    }
    buf_printf(&r->text, "group %u", r->number[name]);
    return true;
}

/* Numbers do not count: what they mean for sizes is in the types, and ranks differ in others. */
static void put_value(struct reader *r, const tuck_graph *g, const uint32_t *place,
                      const tuck_value *v)
{
    const char *text = "";

    buf_printf(&r->text, ",%d", v->kind);
    switch ((tuck_value_kind)v->kind) {
    case TUCK_V_NONE:
    case TUCK_V_BOOL:
    case TUCK_V_INT:
    case TUCK_V_FLOAT:
    case TUCK_V_NUMBER:
    case TUCK_V_TEXT:
    case TUCK_V_BYTES: break;
    case TUCK_V_NODE: buf_int(&r->text, place[v->a]); break;
    case TUCK_V_STR:
        if (!put_group_name(r, g, v->a))
            buf_str(&r->text, graph_str(g, v->a));
        break;
    case TUCK_V_DEVICE:
        text = graph_str(g, v->a); /* device(type='cuda', index=0) */
        buf_add(&r->text, text, strcspn(text, ","));
        break;
    case TUCK_V_DTYPE:
    case TUCK_V_LAYOUT:
    case TUCK_V_FORMAT:
    case TUCK_V_NAME:
    case TUCK_V_OP:
    case TUCK_V_SYM:
    case TUCK_V_KEY: buf_str(&r->text, graph_str(g, v->a)); break;
    case TUCK_V_LIST:
    case TUCK_V_TUPLE:
    case TUCK_V_SIZE:
    case TUCK_V_DICT:
    case TUCK_V_SET:
    case TUCK_V_SLICE:
    case TUCK_V_CALL:
    case TUCK_V_RAW: buf_int(&r->text, v->a); break;
    }
}

static uint64_t node_digest(struct reader *r, const tuck_graph *g, const uint32_t *place,
                            uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    uint64_t type = type_digest(r, node_type(g, n));

    r->text.len = 0;
    buf_printf(&r->text, "%d %016llx ", x->kind, (unsigned long long)type);
    if (x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD)
        buf_str(&r->text, graph_str(g, x->target));
    if (x->kind == TUCK_PLACEHOLDER)
        buf_str(&r->text, lower_is_callers(graph_str(g, x->name)) ? "kept" : "freed");
    const tuck_graph *in = child_of(g, n);
    if (in != NULL)
        buf_printf(&r->text, "%016llx", (unsigned long long)r->child[x->target]);
    for (uint32_t i = 0; i < x->n_vals; i++)
        put_value(r, g, place, &x->vals[i]);
    return digest_add(DIGEST_EMPTY, r->text.at, r->text.len);
}

/* Depth is bounded by GRAPH_DEPTH. */
static uint64_t graph_digest(struct reader *r, const tuck_graph *g, int depth, uint32_t *hash,
                             uint32_t *node)
{
    uint32_t *place = arena_zeroed(&r->arena, g->node.len * sizeof(*place)), n_place = 0;
    uint64_t *child = arena_zeroed(&r->arena, ((size_t)g->child.len + 1) * sizeof(*child));
    uint64_t all = DIGEST_EMPTY;

    for (uint32_t i = 0; depth > 0 && i < g->child.len; i++)
        child[i] = graph_digest(r, g->child.at[i], depth - 1, NULL, NULL);
    for (uint32_t i = 0; i < g->child.len; i++)
        r->child[g->child.at[i]->name] = child[i];
    for_each_node (g, n) {
        place[n] = ++n_place;
        uint64_t h = node_digest(r, g, place, n);
        for (int k = 0; k < 64; k += 8)
            all = digest_add(all, &(char){(char)(h >> k)}, 1);
        if (hash != NULL) {
            hash[n_place - 1] = (uint32_t)(h ^ h >> 32);
            node[n_place - 1] = n;
        }
    }
    return all;
}

static void do_program(void *arg)
{
    struct reader *r = arg;
    struct program_digest *d = r->out;

    r->type = arena_zeroed(&r->arena, ((size_t)r->store->type.all.len + 1) * sizeof(*r->type));
    r->number = arena_zeroed(&r->arena, r->store->str.all.len * sizeof(*r->number));
    r->child = arena_zeroed(&r->arena, r->store->str.all.len * sizeof(*r->child));
    d->n = r->top->n_nodes;
    d->hash = arena_array(&d->arena, uint32_t, d->n + 1);
    d->node = arena_array(&d->arena, uint32_t, d->n + 1);
    d->all = graph_digest(r, r->top, GRAPH_DEPTH, d->hash, d->node);
}

tuck_status program_digest_of(const tuck_graph *g, struct program_digest *out)
{
    struct reader r = {.store = g->store, .out = out, .top = g};

    *out = (struct program_digest){.n = 0};
    mem_init(&out->mem, &g->store->mem.alloc);
    arena_init(&out->arena, &out->mem);
    arena_init(&r.arena, &out->mem);
    buf_init(&r.text, &out->mem);
    bool ok = mem_guard(&out->mem, do_program, &r);
    buf_destroy(&r.text);
    arena_destroy(&r.arena);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

void program_digest_end(struct program_digest *d)
{
    arena_destroy(&d->arena);
}
