/* The patterns of DDP and FSDP, and whole graphs. */
#include "support/random_gen.h"

#include <stdlib.h>
#include <string.h>

static const char *const reduce_name[] = {"sum", "avg", "max"};

/* ---- patterns ---- */

static void start_something(struct gen *g)
{
    int group = gen_any_group(g),
        v = gen_pick(g, gen_one_in(g, 6) ? gen_readable : gen_readable_packed);

    if (v < 0 || gen_full(g))
        return;
    switch (gen_below(g, 8)) {
    case 0:
    case 1: gen_all_reduce(g, v, gen_any_reduce(g), group); break;
    case 2:
    case 3:
        if (gen_scatters(g, v, group)) {
            int f = gen_reduce_scatter(g, v, gen_any_reduce(g), group);
            g->flight[f].sink = gen_one_in(g, 2) ? SINK_RETURN : SINK_FREE;
        }
        break;
    case 4:
        if (g->val[v].layout == PACKED)
            gen_other_collective(g, v, group);
        break;
    default:
        if (gen_one_in(g, 2))
            v = gen_convert_to(g, v, g->dtype);
        if (g->val[v].layout == PACKED)
            gen_all_gather(g, v, group);
        break;
    }
}

/* An odd number of elements, perhaps: what is merged behind it begins anywhere. */
static int odd_input(struct gen *g)
{
    struct val type = gen_random_type(g);

    type.size[0] = (struct dim){1 + (int64_t)gen_below(g, 5), 0};
    gen_pack(&type);
    return gen_full(g) ? -1 : gen_add_input(g, type, "odd");
}

/* Gradients that are divided, reduced, and returned or copied into an input. */
static void ddp(struct gen *g)
{
    int n = 2 + (int)gen_below(g, 3), group = gen_any_group(g);
    const char *reduce = gen_any_reduce(g);
    int by = gen_one_in(g, 6) ? 3 : gen_group_size(g, group);
    bool divided = !gen_one_in(g, 3);

    for (int i = 0; i < n; i++) {
        int v = gen_one_in(g, 4) ? odd_input(g) : gen_pick(g, gen_readable);
        if (v < 0 || gen_full(g))
            return;
        v = gen_one_in(g, 5) ? v : gen_compute(g, v);
        if (divided)
            v = gen_divide(g, v, by);
        if (divided && gen_one_in(g, 12)) { /* written again: no longer a quotient */
            gen_begin(g, gen_view_of(g, v), "mul_");
            gen_call(g, "aten.mul_.Tensor", "self = %s; other = 5", g->val[v].name);
        }
        int f = gen_all_reduce(g, v, gen_one_in(g, 8) ? "max" : reduce, group);
        if (gen_one_in(g, 10) && gen_writable(g, v)) /* it took a copy */
            gen_wrapped_write(g, v);
        g->flight[f].sink = gen_one_in(g, 4) ? SINK_FREE : SINK_RETURN;
        int into = gen_pick_like(g, g->flight[f].result);
        if (gen_one_in(g, 2) && into != g->flight[f].result && g->val[into].changes) {
            g->flight[f].sink = SINK_COPY;
            g->flight[f].into = into;
        }
        if (gen_one_in(g, 4))
            gen_land_one(g);
    }
}

/* Shards, mostly converted, that are gathered. */
static void fsdp_gather(struct gen *g)
{
    int n = 2 + (int)gen_below(g, 3), group = gen_any_group(g);
    bool mixed = gen_one_in(g, 4); /* of two dtypes, with bytes that are not aligned */

    for (int i = 0; i < n && !gen_full(g); i++) {
        struct val type = gen_random_type(g);
        if (mixed || gen_one_in(g, 4)) {
            type.size[0].k = 1 + (int64_t)gen_below(g, 5);
            gen_pack(&type);
        }
        if (mixed) {
            type.dtype = gen_one_in(g, 4) ? BOOL : (int)gen_below(g, 2);
            type.device = 0;
        } else if (gen_one_in(g, 12)) {
            type.dtype = BOOL;
        }
        int v = gen_add_input(g, type, "shard");
        if (g->val[v].dtype != g->dtype && !mixed && !gen_one_in(g, 4))
            v = gen_convert_to(g, v, g->dtype);
        int f = gen_all_gather(g, v, group);
        if (g->val[v].dtype == BOOL) /* few operators take those */
            g->flight[f].sink = gen_one_in(g, 2) ? SINK_RETURN : SINK_CONVERT;
        if (gen_one_in(g, mixed ? 12 : 3))
            gen_land_one(g);
    }
}

static void fsdp_scatter(struct gen *g)
{
    int n = 2 + (int)gen_below(g, 3), group = gen_any_group(g);
    const char *reduce = gen_any_reduce(g);

    for (int i = 0; i < n && !gen_full(g); i++) {
        int v = gen_pick(g, gen_readable);
        if (v < 0)
            return;
        v = gen_compute(g, v);
        if (gen_one_in(g, 3))
            v = gen_convert_to(g, v, g->dtype);
        if (!gen_scatters(g, v, group))
            continue;
        int f = gen_reduce_scatter(g, v, reduce, group);
        g->flight[f].sink = gen_one_in(g, 5) ? SINK_FREE : SINK_RETURN;
        if (gen_one_in(g, 4))
            gen_land_one(g);
    }
}

/* RS(a) + RS(b), of two uses of one parameter. */
static void twice_scattered(struct gen *g)
{
    int group = gen_any_group(g), v = gen_pick(g, gen_readable_packed);
    const char *reduce = gen_any_reduce(g);

    if (v < 0 || gen_full(g) || !gen_scatters(g, v, group))
        return;
    int x = gen_compute(g, v), y = gen_compute(g, v), a = gen_reduce_scatter(g, x, reduce, group);
    g->val[y].taken = true;
    if (gen_one_in(g, 3))
        start_something(g);
    bool early = gen_one_in(g, 3);
    if (early)
        a = gen_land(g, &g->flight[a]);
    if (early && gen_writable(g, x)) { /* a sum of the operands would come too late */
        gen_begin(g, gen_view_of(g, x), "mul_");
        gen_call(g, "aten.mul_.Tensor", "self = %s; other = 5", g->val[x].name);
    }
    int b = gen_reduce_scatter(g, y, gen_one_in(g, 8) ? "max" : reduce, group);
    if (!early)
        a = gen_land(g, &g->flight[a]);
    b = gen_land(g, &g->flight[b]);
    int out = gen_begin(g, gen_fresh(g, a), "add");
    gen_call(g, "aten.add.Tensor", "self = %s; other = %s", g->val[a].name, g->val[b].name);
    g->val[a].taken = g->val[b].taken = !gen_one_in(g, 6);
    if (gen_one_in(g, 2))
        gen_give_back(g, out);
}

static int start_one(struct gen *g, int kind, int v, const char *reduce, int group)
{
    return kind == 0   ? gen_all_reduce(g, v, reduce, group)
           : kind == 1 ? gen_all_gather(g, v, group)
                       : gen_reduce_scatter(g, v, reduce, group);
}

/* Two pairs that could be merged: p, a, b, q start in this order and are waited for as p, q, a, b,
 * and a needs p. Between b and q is another kind of the same group, which must stay after the
 * merger of a and b. */
static void crossed(struct gen *g)
{
    int group = gen_any_group(g), kind = (int)gen_below(g, 3), v = gen_pick(g, gen_readable_packed),
        flight[4], other;
    const char *reduce = gen_any_reduce(g);

    if (v < 0 || gen_full(g) || !gen_scatters(g, v, group))
        return;
    for (int i = 0; i < 4; i++) {
        int from = i == 1 ? gen_land(g, &g->flight[flight[0]]) : v, x;
        x = gen_compute(g, from);
        if (g->val[x].layout != PACKED || (kind == 2 && !gen_scatters(g, x, group)))
            return;
        if (i == 3) {
            other = start_one(g, (kind + 1) % 2, gen_compute(g, v), reduce, group);
            if (gen_one_in(g, 3))
                gen_land(g, &g->flight[other]);
        }
        flight[i] = start_one(g, kind, x, reduce, group);
        g->flight[flight[i]].sink = gen_one_in(g, 2) ? SINK_RETURN : SINK_FREE;
        if (i == 0)
            g->flight[flight[0]].sink = SINK_FREE;
    }
    gen_land(g, &g->flight[flight[3]]);
    gen_land(g, &g->flight[flight[1]]);
    gen_land(g, &g->flight[flight[2]]);
}

/* fsdp.all_gather_copy_in and the all-gather after it. */
static void copy_in(struct gen *g)
{
    int group = gen_any_group(g), size = gen_group_size(g, group), list;
    struct val flat = {.n_dim = 1, .dtype = g->dtype, .changes = true}, mine;
    int shard[2];
    int64_t n[2];

    if (gen_full(g))
        return;
    for (int i = 0; i < 2; i++) {
        n[i] = 1 + (int64_t)gen_below(g, 4);
        flat.size[0] = (struct dim){n[i], 0};
        gen_pack(&flat);
        shard[i] = gen_add_input(g, flat, "shard");
    }
    flat.size[0].k = (n[0] + n[1]) * size;
    int all = gen_one_in(g, 2) ? gen_empty_like(g, &flat)
                               : gen_compute(g, gen_add_input(g, flat, "buffer"));
    g->val[all].taken = true;
    list = g->n_name++;
    gen_put(&g->body, "        copy_in_%d = torch.ops.", list);
    gen_call(
        g, "fsdp.all_gather_copy_in.default",
        "all_gather_inputs = [%s, %s]; all_gather_output = %s; inp_split_sizes = [%lld, %lld]; "
        "all_gather_input_numel = %lld; rank = %c%d",
        g->val[shard[0]].name, g->val[shard[1]].name, g->val[all].name, (long long)n[0],
        (long long)n[1], (long long)(n[0] + n[1]), RANK_MARK, group);
    g->literal = true;
    flat.storage = g->val[all].storage;
    mine = flat;
    mine.size[0].k /= size;
    int in = gen_add_val(g, mine, "getitem");
    gen_put(&g->body, "        %s = copy_in_%d[0]\n", g->val[in].name, list);
    bool other = gen_one_in(g, 2);
    int whole = -1;
    if (other) {
        whole = gen_add_val(g, flat, "getitem");
        gen_put(&g->body, "        %s = copy_in_%d[1]\n", g->val[whole].name, list);
        g->val[whole].taken = true;
    }
    g->val[in].taken = true;
    bool inside = whole >= 0 && gen_one_in(g, 2);
    struct val f = flat;
    if (!inside)
        f.storage = gen_new_storage(g);
    int out = gen_begin(g, f, "all_gather_into_tensor");
    gen_put_gather(g, in, inside ? whole : -1, group);
    int f_gather = gen_fly(g, out, in);
    if (whole >= 0 && !inside && gen_one_in(g, 2)) { /* the rest of the buffer is used */
        gen_land(g, &g->flight[f_gather]);
        gen_give_back(g, gen_compute(g, whole));
    }
}

static void put_resize(struct gen *g, int v, long long bytes)
{
    gen_put(&g->body, "        resize_%d = torch.ops.", g->n_name++);
    gen_call(g, "inductor.resize_storage_bytes_.default", "variable = %s; new_size = %lld",
             g->val[v].name, bytes);
}

/* An unsharded parameter: allocated, filled, used, freed; perhaps repeatedly. */
static void unsharded(struct gen *g)
{
    struct val type = gen_random_type(g);
    int rounds = 1 + (int)gen_below(g, 2), p;

    if (gen_full(g) || gen_is_symbolic(&type) || gen_numel(&type).k == 0)
        return;
    type.device = 0;
    p = gen_add_input(g, type, "param");
    g->val[p].taken = true;
    long long bytes = (long long)(gen_numel(&type).k * gen_dtype_size[type.dtype]);
    for (int i = 0; i < rounds; i++) {
        struct val like = g->val[p];
        int shard = gen_add_input(g, like, "gathered");
        g->val[shard].taken = false;
        int from = gen_compute(g, shard);
        put_resize(g, p, bytes);
        gen_put(&g->body, "        copy_%d = torch.ops.", g->n_name++);
        gen_call(g, "fsdp.copy_.default", "tensor = %s; data = %s", g->val[p].name,
                 g->val[from].name);
        int uses = 1 + (int)gen_below(g, 2);
        for (int u = 0; u < uses; u++) {
            int out = gen_begin(g, gen_fresh(g, p), "relu");
            gen_call(g, "aten.relu.default", "self = %s", g->val[p].name);
            g->val[out].taken = false;
            if (gen_one_in(g, 2))
                start_something(g);
        }
        put_resize(g, p, 0);
    }
}

/* ---- a whole graph ---- */

static void make_world(struct gen *g)
{
    struct random_graph *x = g->x;
    int n = gen_one_in(g, 8) ? 4 : 2;
    bool turned = gen_one_in(g, 4);
    static const char *const names[] = {"0", "1", "2", "solo"};

    x->world = (struct sym_world){.n_ranks = n,
                                  .group = x->group,
                                  .n_group = RANDOM_GROUPS,
                                  .symbol = x->symbol,
                                  .n_symbol = 2,
                                  .seed = rng_next(g->rng)};
    for (int i = 0; i < RANDOM_GROUPS; i++) {
        int size = i == 0 ? n : i == 3 ? 1 : 2;
        x->group[i] = (struct sym_group){names[i], size, x->ranks[i]};
        for (int r = 0; r < n; r++)
            for (int k = 0; k < size; k++) {
                int at = i == 1 && turned ? size - 1 - k : k;
                x->ranks[i][r * size + at] = size == n   ? k
                                             : size == 1 ? r
                                             : i == 1    ? r / 2 * 2 + k
                                                         : r % 2 + 2 * k;
            }
    }
    x->symbol[0] = (struct sym_symbol){"s0", 2 + (int64_t)gen_below(g, 3)};
    x->symbol[1] = (struct sym_symbol){"s1", 2 + (int64_t)gen_below(g, 3)};
    x->n_hint = 1 + gen_below(g, 2);
    for (size_t i = 0; i < x->n_hint; i++)
        x->hint[i] = (tuck_hint){x->symbol[i].name, x->symbol[i].value};
}

static void steps(struct gen *g)
{
    int n = 2 + (int)gen_below(g, 8);

    for (int i = 0; i < n && !gen_full(g); i++) {
        int v = gen_pick(g, gen_readable);
        switch (gen_below(g, 22)) {
        case 0: ddp(g); break;
        case 1: fsdp_gather(g); break;
        case 2: fsdp_scatter(g); break;
        case 3: twice_scattered(g); break;
        case 4: gen_one_in(g, 2) ? copy_in(g) : unsharded(g); break;
        case 5:
        case 6:
        case 7: start_something(g); break;
        case 8:
        case 9: gen_view(g); break;
        case 10:
        case 14: gen_write_something(g); break;
        case 11:
            if (v >= 0)
                gen_convert_to(g, v, (int)gen_below(g, 4));
            break;
        case 12:
            if (v >= 0 && gen_one_in(g, 6))
                gen_put_wait(g, v); /* for something already available */
            break;
        case 13: gen_land_one(g); break;
        case 16: crossed(g); break;
        case 17: gen_reinterpret(g, gen_pick(g, gen_readable_packed)); break;
        case 18: gen_one_in(g, 2) ? gen_effect(g) : gen_control_deps(g); break;
        case 19: gen_one_in(g, 2) ? gen_subgraph(g) : gen_cond(g); break;
        case 20:
            if (g->annotated) /* else its sizes are not known */
                gen_unknown(g);
            break;
        default:
            if (v >= 0)
                gen_compute(g, v);
            break;
        }
    }
}

/* What is still in flight is waited for, or dropped, or returned as it is. */
static void finish(struct gen *g)
{
    gen_land_some(g, gen_one_in(g, 4) ? 4 : 1000000);
    for (int i = 0; i < g->n_flight; i++)
        if (!g->flight[i].landed && gen_one_in(g, 2) && g->flight[i].from != g->flight[i].to)
            g->returned[g->n_returned++] = g->flight[i].result;
    for (int v = 0; v < g->n_val; v++)
        if (gen_readable(g, v) && gen_one_in(g, 4) && g->n_returned < MAX_VALS)
            g->returned[g->n_returned++] = v;
    if (g->token >= 0)
        g->returned[g->n_returned++] = g->token;
    gen_put(&g->body, "        return (");
    for (int i = 0; i < g->n_returned; i++)
        gen_put(&g->body, "%s, ", g->val[g->returned[i]].name);
    gen_put(&g->body, ")\n");
}

static char *text_for(const struct gen *g, int rank)
{
    struct text t = {NULL, 0, 0};
    const struct random_graph *x = g->x;

    gen_put(&t, "class GraphModule(torch.nn.Module):\n    def forward(self");
    text_add(&t, g->head.at, g->head.len);
    gen_put(&t, "):\n");
    for (const char *s = g->body.at; *s != '\0';) {
        size_t n = strcspn(s, "\1");
        text_add(&t, s, n);
        s += n;
        if (*s != '\0') {
            const struct sym_group *q = &x->group[s[1] - '0'];
            for (int k = 0; k < q->size; k++)
                if (q->ranks[rank * q->size + k] == rank)
                    gen_put(&t, "%d", k);
            s += 2;
        }
    }
    text_add(&t, g->tail.at, g->tail.len);
    return t.at;
}

void random_graph_make(struct rng *rng, struct random_graph *x)
{
    struct gen *g = calloc(1, sizeof(*g));

    if (g == NULL)
        abort();
    *x = (struct random_graph){.n_hint = 0};
    g->rng = rng;
    g->x = x;
    text_clear(&g->head);
    text_clear(&g->body);
    text_clear(&g->tail);
    g->token = -1;
    make_world(g);
    g->annotated = !gen_one_in(g, 8);
    g->group = (int)gen_below(g, gen_one_in(g, 10) ? RANDOM_GROUPS : 3);
    g->dtype = (int)gen_below(g, 2);
    g->reduce = reduce_name[gen_below(g, gen_one_in(g, 4) ? 3 : 2)];
    for (int s = 0; s < 2; s++) /* symbols that no size mentions do not exist */
        if (gen_one_in(g, 2))
            gen_put(&g->head, ", sym_%d: \"Sym(s%d)\"", s, s);
    for (int i = 2 + (int)gen_below(g, 4); i > 0; i--)
        gen_add_input(g, gen_random_type(g), "arg");
    steps(g);
    finish(g);
    x->alike = !g->literal;
    for (int r = 0; r < x->world.n_ranks; r++)
        x->text[r] = text_for(g, r);
    text_done(&g->head);
    text_done(&g->body);
    text_done(&g->tail);
    free(g);
}

void random_graph_free(struct random_graph *x)
{
    for (int r = 0; r < RANDOM_RANKS; r++)
        free(x->text[r]);
    *x = (struct random_graph){.n_hint = 0};
}

void random_graph_tell(const struct random_graph *x, int rank, bool knows_rank, tuck_graph *g)
{
    for (size_t i = 0; i < x->world.n_group; i++) {
        const struct sym_group *q = &x->group[i];
        int64_t ranks[RANDOM_RANKS];
        bool ok = true;

        for (int k = 0; k < q->size; k++)
            ranks[k] = q->ranks[rank * q->size + k];
        for (size_t k = 0; k < tuck_graph_group_count(g); k++)
            if (strcmp(tuck_graph_group_name(g, k), q->name) == 0)
                ok &= tuck_graph_set_group(g, q->name, q->size, ranks, NULL) == TUCK_OK;
        if (!ok)
            abort();
    }
    if (knows_rank && tuck_graph_set_rank(g, rank, NULL) != TUCK_OK)
        abort();
}
