/* Which inputs of a backward are values that its forward saved: by name and shape; under compiled
 * autograd by the names that the graph of compiled autograd gives to them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "graph/call.h"
#include "job/job.h"
#include "op/ops.h"

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Equal annotations; an object that is not a tensor has none. */
static bool same_shape(const tuck_graph *a, uint32_t x, const tuck_graph *b, uint32_t y)
{
    return node_at(a, x)->ann == node_at(b, y)->ann;
}

#define NO_PLACE UINT32_MAX

/* By node: where it is returned first, NO_PLACE if it is not. */
static uint32_t *returned(const tuck_graph *g, struct arena *a)
{
    uint32_t *place = arena_array(a, uint32_t, g->node.len + (size_t)1);
    const struct fx_node *out = node_at(g, g->output);

    memset(place, 0xFF, (g->node.len + (size_t)1) * sizeof(*place));
    for (uint32_t i = 0; g->output != 0 && i < out->n_vals; i++)
        if (out->vals[i].kind == TUCK_V_NODE && place[out->vals[i].a] == NO_PLACE)
            place[out->vals[i].a] = i;
    return place;
}

uint32_t job_tied(const struct job *j, struct tie t)
{
    const tuck_graph *g = j->part.at[t.part].graph;
    const struct fx_node *out = node_at(g, g->output);
    bool there = g->output != 0 && t.place < out->n_vals && out->vals[t.place].kind == TUCK_V_NODE;

    return there ? out->vals[t.place].a : 0;
}

/* The place of the value of part f called `name` that is returned and has the shape of input n of
 * b; NO_PLACE. */
static uint32_t saved(struct job_part *f, const uint32_t *out, str_id name, const tuck_graph *b,
                      uint32_t n)
{
    uint32_t v = name_lookup(f->graph, name);

    return v != 0 && same_shape(f->graph, v, b, n) ? out[v] : NO_PLACE;
}

static void tie(struct job_part *b, uint32_t n, uint32_t part, uint32_t place)
{
    b->tie[n] = (struct tie){part, place};
    b->n_tied++;
    if (b->forward == NO_PART)
        b->forward = part;
}

/* ---- by name ---- */

static void tie_by_name(struct job *j, struct job_part *b, uint32_t part)
{
    struct job_part *f = &j->part.at[part];
    const uint32_t *out = returned(f->graph, &j->arena);

    for_each_node (b->graph, n) {
        const struct fx_node *x = node_at(b->graph, n);
        uint32_t place = x->kind == TUCK_PLACEHOLDER && b->tie[n].part == NO_PART
                             ? saved(f, out, x->name, b->graph, n)
                             : NO_PLACE;
        if (place != NO_PLACE)
            tie(b, n, part, place);
    }
}

/* What no name ties: Inductor's passes may have replaced the node that the forward returns. Saved
 * values are in the same order on both sides, at the end of what the forward returns. */
static void tie_by_place(struct job *j, struct job_part *b, uint32_t part)
{
    const struct job_part *f = &j->part.at[part];
    const struct fx_node *out = node_at(f->graph, f->graph->output);
    bool *used = arena_zeroed(&j->arena, f->graph->node.len * sizeof(*used));
    uint32_t at = 0;

    if (f->graph->output == 0)
        return;
    for_each_node (b->graph, n)
        if (b->tie[n].part == part)
            used[job_tied(j, b->tie[n])] = true;
    for_each_node (b->graph, n) {
        const struct fx_node *x = node_at(b->graph, n);
        const char *name = graph_str(b->graph, x->name);
        if (x->kind != TUCK_PLACEHOLDER || b->tie[n].part != NO_PART || x->ann == 0 ||
            starts(name, "tangents") || starts(name, "bwd_") || starts(name, "primals"))
            continue;
        for (uint32_t i = at; i < out->n_vals; i++) {
            uint32_t v = out->vals[i].a;
            if (out->vals[i].kind != TUCK_V_NODE || used[v] ||
                !same_shape(f->graph, v, b->graph, n))
                continue;
            used[v] = true;
            at = i + 1;
            tie(b, n, part, i);
            break;
        }
    }
}

/* ---- compiled autograd ---- */

/* The number of input k in `getitem = inputs[k]`; -1 if the node is not that. */
static int64_t input_number(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const tuck_value *k = x->n_args == 2 ? value_next(x->vals) : NULL;

    if (op_at(x->op)->cls != OP_GETITEM || k == NULL || k->kind != TUCK_V_INT ||
        x->vals->kind != TUCK_V_NODE ||
        strcmp(graph_str(g, node_at(g, x->vals->a)->name), "inputs") != 0)
        return -1;
    return k->u.i;
}

/* What tying a backward of compiled autograd needs. */
struct named {
    struct job *j;
    struct job_part *b;
    const struct job_rank *r;
    const tuck_graph *g; /* the graph with the names */
    const struct piece *names;
    /* by part of the rank: where a forward returns its values; NULL for others */
    const uint32_t *const *out;
    /* by number of a forward in `names`: its part in the rank; NULL if that is not known */
    const uint32_t *forward;
    const uint32_t *input; /* placeholders of the backward, in order */
    int64_t n_input;
};

/* "aot0_tanh_1" → "tanh_1", of number 0; NULL if it is not such a name. */
static const char *after_aot(const char *s, int64_t *number)
{
    for (const char *want = "aot"; *want != '\0'; want++)
        if (*s++ != *want)
            return NULL;
    const char *p = s + strspn(s, "0123456789");
    *number = strtoll(s, NULL, 10);
    return p > s && *p == '_' ? p + 1 : NULL;
}

/* May the value with that number be of part i of the rank? */
static bool may_be_of(const struct named *w, int64_t number, uint32_t i)
{
    if (w->out[i] == NULL)
        return false;
    for (uint32_t k = 0; w->forward != NULL && k < w->names->n_aot; k++)
        if (w->names->aot[k] == number)
            return w->forward[k] == i;
    return true;
}

/* One value that the graph of compiled autograd names: item `at` of what a prologue returns is
 * the item at the same place of its first operand, an input. */
static void tie_named(const struct named *w, uint32_t n)
{
    const tuck_graph *g = w->g;
    const struct fx_node *x = node_at(g, n);
    int64_t number = -1;
    const char *name = after_aot(graph_str(g, x->name), &number);
    const tuck_value *at = x->n_args == 2 ? value_next(x->vals) : NULL;

    if (name == NULL || op_at(x->op)->cls != OP_GETITEM || at == NULL || at->kind != TUCK_V_INT ||
        x->vals->kind != TUCK_V_NODE)
        return;
    const struct fx_node *prologue = node_at(g, x->vals->a);
    if (prologue->n_args < 1 || !value_is_container(prologue->vals) || at->u.i < 0 ||
        at->u.i >= prologue->vals->a)
        return;
    const tuck_value *item = value_item(prologue->vals, (size_t)at->u.i);
    int64_t k = item->kind == TUCK_V_NODE ? input_number(g, item->a) : -1;
    str_id id = str_find(&g->store->str, name, strlen(name));
    if (k < 0 || k >= w->n_input || id == 0)
        return;
    uint32_t input = w->input[k];
    for (uint32_t i = 0; i < w->r->n; i++) {
        struct job_part *f = &w->j->part.at[w->r->first + i];
        uint32_t place = may_be_of(w, number, i) ? saved(f, w->out[i], id, w->b->graph, input)
                                                 : NO_PLACE;
        if (place != NO_PLACE && w->b->tie[input].part == NO_PART)
            tie(w->b, input, w->r->first + i, place);
    }
}

static const struct piece *names_for(const struct job *j, const struct piece *x)
{
    for (uint32_t i = 0; i < j->names.len; i++) {
        const struct piece *y = &j->pieces.all.at[j->names.at[i]];
        if (y->rank == x->rank && y->id.autograd == x->id.autograd && y->read)
            return y;
    }
    return NULL;
}

/* The forwards that a backward names, in the order of their numbers, are those before it that no
 * other backward has, if they are as many. */
static const uint32_t *forwards_of(struct job *j, const struct job_part *b,
                                   const struct job_rank *r, const struct piece *names)
{
    uint32_t *list = arena_array(&j->arena, uint32_t, r->n + 1), n = 0;

    for (uint32_t i = 0; i < r->n && &j->part.at[r->first + i] < b; i++) {
        const struct job_part *f = &j->part.at[r->first + i];
        if (j->pieces.all.at[f->piece].role == ROLE_FORWARD && !f->claimed)
            list[n++] = i;
    }
    return n == names->n_aot ? list : NULL;
}

static void tie_autograd(struct job *j, struct job_part *b, const struct job_rank *r)
{
    const struct piece *names = names_for(j, &j->pieces.all.at[b->piece]);
    const tuck_graph *g = names != NULL ? tuck_doc_graph(j->doc, names->entry) : NULL;
    const uint32_t **out = arena_zeroed(&j->arena, (r->n + 1) * sizeof(*out));
    uint32_t *input = arena_array(&j->arena, uint32_t, b->graph->node.len);
    struct named w = {j, b, r, g, names, out, NULL, input, 0};

    if (g == NULL)
        return;
    w.forward = forwards_of(j, b, r, names);
    for_each_node (b->graph, n)
        if (node_at(b->graph, n)->kind == TUCK_PLACEHOLDER)
            input[w.n_input++] = n;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct job_part *f = &j->part.at[r->first + i];
        if (j->pieces.all.at[f->piece].role == ROLE_FORWARD)
            out[i] = returned(f->graph, &j->arena);
    }
    for_each_node (g, n)
        tie_named(&w, n);
    for_each_node (b->graph, n)
        if (b->tie[n].part != NO_PART)
            j->part.at[b->tie[n].part].claimed = true;
}

/* ---- facts: the line above a graph that was written with its job ---- */

/* The part of the rank that is forward number k of it; NO_PART. */
static uint32_t forward_at(const struct job *j, const struct job_rank *r, int64_t k)
{
    for (uint32_t i = r->first; i < r->first + r->n; i++)
        if (j->pieces.all.at[j->part.at[i].piece].role == ROLE_FORWARD && k-- == 0)
            return i;
    return NO_PART;
}

/* "saved": {"arg1_1": [0, 3]}: input arg1_1 is what forward 0 of the rank returns at place 3. */
static void tie_fact(struct job *j, struct job_part *b, const struct job_rank *r, const char *name,
                     const json_t *to)
{
    tuck_graph *g = b->graph;
    str_id id = str_find(&g->store->str, name, strlen(name));
    uint32_t n = id != 0 ? name_lookup(g, id) : 0,
             part = forward_at(j, r, json_integer_value(json_array_get(to, 0)));
    int64_t place = json_integer_value(json_array_get(to, 1));

    if (json_array_size(to) != 2 || n == 0 || node_at(g, n)->kind != TUCK_PLACEHOLDER ||
        part == NO_PART || place < 0 || place >= NO_PLACE)
        return;
    uint32_t v = job_tied(j, (struct tie){part, (uint32_t)place});
    if (v != 0 && same_shape(j->part.at[part].graph, v, g, n))
        tie(b, n, part, (uint32_t)place);
}

/* False: there are none. */
static bool tie_by_facts(struct job *j, struct job_part *b, const struct job_rank *r,
                         const char *known)
{
    json_error_t error;
    json_t *all = known != NULL ? json_loads(known, 0, &error) : NULL,
           *told = json_object_get(all, "saved"), *to;
    const char *name;
    bool any = json_is_object(told);

    json_object_foreach(told, name, to) tie_fact(j, b, r, name, to);
    json_decref(all);
    return any;
}

/* ---- */

static void count_free(struct job_part *b)
{
    for_each_node (b->graph, n) {
        const struct fx_node *x = node_at(b->graph, n);
        b->n_free += x->kind == TUCK_PLACEHOLDER && b->tie[n].part == NO_PART &&
                     !starts(graph_str(b->graph, x->name), "tangents");
    }
}

static void tie_backward(struct job *j, const struct job_rank *r, uint32_t at)
{
    struct job_part *b = &j->part.at[at];
    const struct piece *x = &j->pieces.all.at[b->piece];

    b->tie = arena_array(&j->arena, struct tie, b->graph->node.len);
    for (uint32_t n = 0; n < b->graph->node.len; n++)
        b->tie[n] = (struct tie){NO_PART, 0};
    b->told = x->id.autograd >= 0 || tie_by_facts(j, b, r, x->known);
    if (x->id.autograd >= 0) {
        tie_autograd(j, b, r);
    } else if (!b->told) {
        for (uint32_t i = r->first; i < r->first + r->n; i++) {
            const struct piece *y = &j->pieces.all.at[j->part.at[i].piece];
            if (y->role != ROLE_FORWARD || !compile_id_same(x->id, y->id))
                continue;
            tie_by_name(j, b, i);
            tie_by_place(j, b, i);
            b->forward = i;
        }
    }
    count_free(b);
}

void job_tie(struct job *j)
{
    for (uint32_t k = 0; k < j->rank.len; k++) {
        const struct job_rank *r = &j->rank.at[k];
        for (uint32_t i = r->first; i < r->first + r->n; i++)
            if (j->pieces.all.at[j->part.at[i].piece].role == ROLE_BACKWARD)
                tie_backward(j, r, i);
    }
}
