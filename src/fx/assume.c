#include "fx/assume.h"

static bool lookup(void *ctx, const char *name, struct sym_num *out)
{
    struct assume *a = ctx;

    for (size_t i = a->n_given; i > 0; i--)
        if (strcmp(str_text(&a->store->str, a->given[i - 1].symbol), name) == 0) {
            *out = (struct sym_num){.kind = SYM_T_INT, .i = a->given[i - 1].value};
            return true;
        }
    if (name[0] == 'u' && name[1] >= '0' && name[1] <= '9') {
        a->used_default = true;
        *out = (struct sym_num){.kind = SYM_T_INT, .i = ASSUME_UNBACKED};
        return true;
    }
    a->missing = true;
    return false;
}

bool assume_value(struct assume *a, sym_id v, int64_t *out)
{
    struct sym_num n;

    if (sym_as_int(&a->store->sym, v, out))
        return true;
    if (sym_eval(&a->store->sym, v, lookup, a, &n) != SYM_OK || n.kind == SYM_T_FLOAT)
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
