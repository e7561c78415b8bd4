/* What operators can query about their call. */
#include "support/sym_ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- operands ---- */

bool call_fail(const struct call *c, const char *fmt, ...)
{
    char room[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(room, sizeof(room), fmt, ap);
    va_end(ap);
    const char *parts[] = {tuck_node_name(c->g, c->n), ": ", room, "\n"};
    for (int i = 0; i < 4; i++)
        text_add(c->e->why, parts[i], strlen(parts[i]));
    return false;
}

void call_race(const struct call *c, const char *what)
{
    if (c->e->race[0] == '\0')
        snprintf(c->e->race, sizeof(c->e->race), "%s %s", tuck_node_name(c->g, c->n), what);
}

void reads(const struct call *c, const struct tensor *t)
{
    if (t->st->writes > 0)
        call_race(c, "reads what a collective has not delivered yet");
}

void writes(const struct call *c, const struct tensor *t)
{
    if (t->st->writes > 0)
        call_race(c, "writes what a collective has not delivered yet");
    else if (t->st->reads > 0)
        call_race(c, "writes what a collective may still be reading");
}

struct value tensor_value(struct ev *e, const struct tensor *t)
{
    struct value v = {.kind = V_TENSOR, .t = pool_get(&e->pool, sizeof(*t))};

    *v.t = *t;
    return v;
}

struct value list_value(struct ev *e, size_t n)
{
    return (struct value){.kind = V_LIST, .n = n, .item = POOL_ARRAY(&e->pool, struct value, n)};
}

bool operand_to_value(const struct call *c, const tuck_value *v, struct value *out)
{
    const char *s = tuck_value_text(c->g, v);

    *out = (struct value){.kind = V_NONE};
    switch (tuck_value_kind_of(v)) {
    case TUCK_V_NONE: return true;
    case TUCK_V_BOOL:
    case TUCK_V_INT: *out = (struct value){.kind = V_INT, .i = tuck_value_int(v)}; return true;
    case TUCK_V_FLOAT:
        *out = (struct value){.kind = V_FLOAT, .f = tuck_value_float(v)};
        return true;
    case TUCK_V_SYM:
        out->kind = V_INT;
        return symeval_number(c->e->w, s, strlen(s), &out->i) ||
               call_fail(c, "cannot evaluate %s", s);
    case TUCK_V_NODE: *out = c->e->rank[c->rank].of[tuck_value_node(v).id]; return true;
    case TUCK_V_LIST:
    case TUCK_V_TUPLE:
    case TUCK_V_SIZE:
        *out = list_value(c->e, tuck_value_len(v));
        for (size_t i = 0; i < out->n; i++)
            if (!operand_to_value(c, tuck_value_item(v, i), &out->item[i]))
                return false;
        return true;
    default: *out = (struct value){.kind = V_TEXT, .s = s}; return true;
    }
}

bool operand(const struct call *c, size_t pos, const char *name, struct value *out)
{
    *out = (struct value){.kind = V_NONE};
    if (pos != BY_KEYWORD)
        pos += c->skip;
    if (pos < tuck_node_arg_count(c->g, c->n))
        return operand_to_value(c, tuck_node_arg(c->g, c->n, pos), out);
    for (size_t i = 0; i < tuck_node_kwarg_count(c->g, c->n); i++)
        if (strcmp(tuck_node_kwarg_name(c->g, c->n, i), name) == 0)
            return operand_to_value(c, tuck_node_kwarg(c->g, c->n, i), out);
    return true;
}

bool tensor_operand(const struct call *c, size_t pos, const char *name, struct tensor *out)
{
    struct value v;

    if (!operand(c, pos, name, &v))
        return false;
    if (v.kind != V_TENSOR)
        return call_fail(c, "operand %s is no tensor", name);
    *out = *v.t;
    return true;
}

bool list_operand(const struct call *c, size_t pos, const char *name, struct value *out)
{
    if (!operand(c, pos, name, out))
        return false;
    if (out->kind != V_LIST)
        return call_fail(c, "operand %s is no list", name);
    for (size_t i = 0; i < out->n; i++)
        if (out->item[i].kind != V_TENSOR)
            return call_fail(c, "operand %s is no list of tensors", name);
    return true;
}

bool int_operand(const struct call *c, size_t pos, const char *name, int64_t dflt, int64_t *out)
{
    struct value v;

    if (!operand(c, pos, name, &v))
        return false;
    if (v.kind != V_INT && v.kind != V_NONE)
        return call_fail(c, "operand %s is no number", name);
    *out = v.kind == V_INT ? v.i : dflt;
    return true;
}

bool ints_operand(const struct call *c, size_t pos, const char *name, int64_t *out, int *n, int max)
{
    struct value v;

    if (!operand(c, pos, name, &v))
        return false;
    if (v.kind != V_LIST || v.n > (size_t)max)
        return call_fail(c, "operand %s is no list of at most %d numbers", name, max);
    for (size_t i = 0; i < v.n; i++) {
        if (v.item[i].kind != V_INT)
            return call_fail(c, "operand %s is no list of numbers", name);
        out[i] = v.item[i].i;
    }
    *n = (int)v.n;
    return true;
}

bool text_operand(const struct call *c, size_t pos, const char *name, const char **out)
{
    struct value v;

    if (!operand(c, pos, name, &v))
        return false;
    *out = v.kind == V_TEXT ? v.s : NULL;
    return true;
}

/* A dtype operand, or `dflt`. */
bool dtype_operand(const struct call *c, size_t pos, int dflt, int *out)
{
    const char *s;

    if (!text_operand(c, pos, "dtype", &s))
        return false;
    *out = s ? dtype_of_python(s) : dflt;
    return *out >= 0 || call_fail(c, "dtype %s is not known here", s);
}

bool dim_operand(const struct call *c, size_t pos, const char *name, int n_dim, int64_t dflt,
                 int *out)
{
    int64_t d = 0;

    if (!int_operand(c, pos, name, dflt, &d))
        return false;
    d += d < 0 ? n_dim : 0;
    *out = (int)d;
    return (d >= 0 && d < n_dim) || call_fail(c, "there is no dimension %d", (int)d);
}

bool yield_tensor(const struct call *c, const struct tensor *t, struct value *out)
{
    if (!tensor_fits(t))
        return call_fail(c, "lies outside of its storage");
    *out = tensor_value(c->e, t);
    return true;
}
bool packed_copy(const struct call *c, const struct tensor *t, struct tensor *out)
{
    struct tensor p = *t;

    reads(c, t);
    tensor_pack(&p);
    tensor_new(&c->e->pool, &p);
    tensor_copy(&p, t);
    *out = p;
    return true;
}
