#include "graph/effect.h"

#include <stdio.h>

uint32_t method_op(const char *name)
{
    static const char *const homes[] = {"torch.Tensor.", "torch.ops.aten."};
    char target[96];

    for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++) {
        int n = snprintf(target, sizeof(target), "%s%s", homes[i], name);
        uint32_t op = n > 0 && (size_t)n < sizeof(target) ? op_find(target, (size_t)n) : 0;
        if (op != 0)
            return op;
    }
    return 0;
}

/* An operator passed as an operand: auto_functionalized(op, ..) writes only copies. */
static bool carries_effect(const tuck_graph *g, const struct fx_node *x)
{
    bool writes = op_at(x->op)->shape != OP_SHAPE_auto_functionalized;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_OP)
            continue;
        const struct str *s = str_at(&g->store->str, x->vals[i].a);
        uint32_t op = op_find(s->at, s->len);
        unsigned flags = op_at(op)->flags;
        if (op == 0 || (flags & (OP_F_EFFECT | OP_F_RANDOM)) || (writes && (flags & OP_F_MUTATES)))
            return true;
    }
    return false;
}

bool node_has_effect(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    if (x->kind == TUCK_GET_ATTR)
        return false;
    if (x->kind != TUCK_CALL_FUNCTION && x->kind != TUCK_CALL_METHOD)
        return true;
    uint32_t op = node_op(g, n);
    const struct op_row *row = op_at(op);
    /* Random numbers count, as in Node.is_impure() outside of Inductor: the next draw would
     * differ. */
    if (op == 0 || (row->flags & (OP_F_EFFECT | OP_F_MUTATES | OP_F_RANDOM)))
        return true;
    return row->cls == OP_HOP && carries_effect(g, x);
}

void sigs_init(struct sigs *s, struct mem *m)
{
    *s = (struct sigs){.at = NULL};
    arena_init(&s->arena, m);
}

void sigs_destroy(struct sigs *s)
{
    arena_destroy(&s->arena);
}

const struct op_sig *sigs_get(struct sigs *s, uint32_t op)
{
    size_t n = op_count() + 1;

    if (op == 0)
        return NULL;
    if (s->at == NULL) {
        s->at = arena_array(&s->arena, struct op_sig *, n);
        memset(s->at, 0, n * sizeof(*s->at));
    }
    if (s->at[op] == NULL) {
        struct op_sig *sig = arena_new(&s->arena, struct op_sig);
        if (!op_sig_parse(&s->arena, op_at(op), sig, NULL))
            *sig = (struct op_sig){.n_params = 0};
        s->at[op] = sig;
    }
    return s->at[op];
}

bool operand_next(const tuck_graph *g, const struct fx_node *x, const struct op_sig *sig,
                  struct operand *o)
{
    if (o->v == NULL) {
        o->v = x->vals;
    } else {
        o->v = value_next(o->v);
        o->i++;
    }
    o->param = NULL;
    if (o->i >= x->n_args + x->n_kwargs)
        return false;
    int p = o->i < INT32_MAX ? (int)o->i : INT32_MAX;
    if (o->i >= x->n_args) {
        const struct str *key = str_at(&g->store->str, o->v->a);
        p = sig ? op_param_find(sig, key->at, key->len) : -1;
        o->v++;
    }
    if (sig != NULL && sig->n_params > 0) {
        if (p >= 0 && (uint32_t)p < sig->n_params)
            o->param = &sig->params[p];
        else if (sig->params[sig->n_params - 1].rest)
            o->param = &sig->params[sig->n_params - 1];
    }
    return true;
}
