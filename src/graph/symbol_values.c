#include "graph/symbol_values.h"

static bool listed(const struct assume *a, const struct fx_hint *list, size_t n, const char *name,
                   struct sym_num *out)
{
    for (size_t i = n; i > 0; i--)
        if (strcmp(str_text(&a->store->str, list[i - 1].symbol), name) == 0) {
            *out = (struct sym_num){.kind = SYM_T_INT, .i = list[i - 1].value};
            return true;
        }
    return false;
}

static bool given(const struct assume *a, const char *name, struct sym_num *out)
{
    return listed(a, a->given, a->n_given, name, out) || listed(a, a->own, a->n_own, name, out);
}

static void miss(struct assume *a, const char *name)
{
    a->missing = a->failed = true;
    for (uint32_t i = 0; i < a->n_missing; i++)
        if (strcmp(a->missing_name[i], name) == 0)
            return;
    if (a->n_missing < ASSUME_NAMED)
        a->missing_name[a->n_missing++] = name;
}

bool assume_is_unbacked(const char *name)
{
    return name[0] == 'u' && name[1] >= '0' && name[1] <= '9';
}

static bool lookup(void *ctx, const char *name, struct sym_num *out)
{
    struct assume *a = ctx;

    if (given(a, name, out) || given(a, "*", out))
        return true;
    if (assume_is_unbacked(name)) {
        a->used_default = true;
        *out = (struct sym_num){.kind = SYM_T_INT, .i = ASSUME_UNBACKED};
        return true;
    }
    /* Goes on with any value, to find other missing symbols of the expression. */
    miss(a, name);
    *out = (struct sym_num){.kind = SYM_T_INT, .i = 2};
    return true;
}

bool assume_value(struct assume *a, sym_id v, int64_t *out)
{
    struct sym_num n;

    if (sym_as_int(&a->store->sym, v, out))
        return true;
    a->failed = false;
    if (sym_eval(&a->store->sym, v, lookup, a, &n) != SYM_OK || n.kind == SYM_T_FLOAT || a->failed)
        return false;
    *out = n.i;
    return true;
}

bool assume_size(void *assume, sym_id v, int64_t *out)
{
    return assume_value(assume, v, out);
}

bool assume_bytes(struct assume *a, type_id id, int64_t *out)
{
    const struct type *t = type_at(&a->store->type, id);
    int64_t n = id != 0 && t->kind == TYPE_TENSOR ? dtype_at((enum dtype)t->dtype)->bytes : -1;

    if (n < 0)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t size;
        if (!assume_value(a, t->size[i], &size) || !size_mul(n, size, &n))
            return false;
    }
    *out = n;
    return true;
}

void assume_list_missing(const struct assume *a, struct buf *out)
{
    for (uint32_t i = 0; i < a->n_missing; i++) {
        buf_str(out, i == 0 ? "" : ", ");
        buf_str(out, a->missing_name[i]);
    }
    if (a->n_missing == ASSUME_NAMED)
        buf_str(out, ", …");
}

static void meet(struct assume *a, const struct type *t)
{
    int64_t ignored;

    for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->n; i++) {
        assume_value(a, t->size[i], &ignored);
        if (t->strided)
            assume_value(a, t->stride[i], &ignored);
    }
}

void assume_meet_all(struct assume *a, const tuck_graph *g)
{
    const struct typetab *types = &g->store->type;

    for_each_node (g, n) {
        const struct type *t = type_at(types, node_type(g, n));
        meet(a, t);
        for (uint32_t i = 0; t->kind == TYPE_LIST && i < t->n; i++)
            meet(a, type_at(types, t->item[i]));
    }
}
