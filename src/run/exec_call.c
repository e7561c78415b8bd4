/* Operands of a kernel: the values of a call in the order of the operator's signature, with
 * defaults filled in. */
#include <stdlib.h>

#include "run/exec_core.h"
#include "run/kernel/draw.h"

/* ---- values of a graph ---- */

static struct rt_value of_number(struct sym_num n)
{
    switch (n.kind) {
    case SYM_T_FLOAT: return (struct rt_value){.kind = RT_FLOAT, .f = n.f};
    case SYM_T_BOOL: return (struct rt_value){.kind = RT_BOOL, .b = n.i != 0};
    default: return (struct rt_value){.kind = RT_INT, .i = n.i};
    }
}

static bool of_result(struct exec *x, uint32_t node, const struct exec_value *v,
                      struct rt_value *out)
{
    switch ((enum exec_kind)v->kind) {
    case EXEC_NOTHING: *out = (struct rt_value){.kind = RT_NONE}; return true;
    case EXEC_TENSOR: *out = (struct rt_value){.kind = RT_TENSOR, .tensor = &v->t}; return true;
    case EXEC_NUMBER: *out = of_number(v->number); return true;
    case EXEC_OTHER: *out = (struct rt_value){.kind = RT_OTHER}; return true;
    case EXEC_UNSET: break;
    }
    return exec_fail_at(x, node, "is used before it has a value");
}

/* All results of a node that is passed on as a list. */
static bool of_node(struct exec *x, uint32_t node, struct arena *a, struct rt_value *out)
{
    const struct exec_value *v = &x->value[x->value_at[node]];
    uint32_t n = exec_value_count(x, node);

    if (type_at(&x->g->store->type, node_type(x->g, node))->kind != TYPE_LIST)
        return n > 0 ? of_result(x, node, v, out)
                     : (*out = (struct rt_value){.kind = RT_OTHER}, true);
    struct rt_value *item = arena_array(a, struct rt_value, (size_t)n + 1);
    for (uint32_t k = 0; k < n; k++)
        if (!of_result(x, node, &v[k], &item[k]))
            return false;
    *out = (struct rt_value){.kind = RT_LIST, .n = n, .item = item};
    return true;
}

/* 1j, (2.5+3j), or an integer beyond 64 bits. */
static struct rt_value of_text(const char *s)
{
    char *end;
    double re = strtod(*s == '(' ? s + 1 : s, &end), im = 0;

    if (*end == 'j')
        return (struct rt_value){.kind = RT_COMPLEX, .z = {0, re}};
    if (*end == '+' || *end == '-')
        im = strtod(end, &end);
    if (*end == 'j')
        return (struct rt_value){.kind = RT_COMPLEX, .z = {re, im}};
    return (struct rt_value){.kind = RT_FLOAT, .f = re};
}

static bool of_plain(struct exec *x, const tuck_value *v, struct arena *a, struct rt_value *out)
{
    struct sym_num n;

    switch (v->kind) {
    case TUCK_V_NONE: *out = (struct rt_value){.kind = RT_NONE}; return true;
    case TUCK_V_BOOL: *out = (struct rt_value){.kind = RT_BOOL, .b = v->u.i != 0}; return true;
    case TUCK_V_INT: *out = (struct rt_value){.kind = RT_INT, .i = v->u.i}; return true;
    case TUCK_V_FLOAT: *out = (struct rt_value){.kind = RT_FLOAT, .f = v->u.f}; return true;
    case TUCK_V_NUMBER: *out = of_text(graph_str(x->g, v->a)); return true;
    case TUCK_V_STR:
        *out = (struct rt_value){.kind = RT_STR, .str = graph_str(x->g, v->a)};
        return true;
    case TUCK_V_DTYPE: {
        const char *name = graph_str(x->g, v->a);
        *out = (struct rt_value){.kind = RT_DTYPE,
                                 .dtype = (uint8_t)dtype_by_name(name, strlen(name))};
        return true;
    }
    case TUCK_V_NODE: return of_node(x, v->a, a, out);
    case TUCK_V_SYM: {
        const char *text = graph_str(x->g, v->a);
        /* A table of its own: ranks may be threads that share the graph. */
        if (sym_eval(&x->sym, sym_parse(&x->sym, text, strlen(text)), exec_look_up, x, &n) !=
            SYM_OK)
            return exec_fail(x, "the value of %s is not known", text);
        *out = of_number(n);
        return true;
    }
    default: *out = (struct rt_value){.kind = RT_OTHER}; return true;
    }
}

/* Lists are at most a few levels deep: deeper ones are no operands of kernels. */
enum { LIST_DEEPEST = 4 };

static bool of_value(struct exec *x, const tuck_value *v, struct arena *a, int deep,
                     struct rt_value *out)
{
    if (v->kind != TUCK_V_LIST && v->kind != TUCK_V_TUPLE && v->kind != TUCK_V_SIZE)
        return of_plain(x, v, a, out);
    if (deep == LIST_DEEPEST)
        return exec_fail(x, "lists are nested too deep for a kernel");
    struct rt_value *list = arena_array(a, struct rt_value, (size_t)v->a + 1);
    const tuck_value *item = v + 1;
    for (uint32_t i = 0; i < v->a; i++, item = value_next(item))
        if (!of_value(x, item, a, deep + 1, &list[i]))
            return false;
    *out = (struct rt_value){.kind = RT_LIST, .n = v->a, .item = list};
    return true;
}

bool exec_value_list(struct exec *x, const tuck_value *v, struct arena *a, struct rt_value *out)
{
    return of_value(x, v, a, 0, out);
}

/* ---- defaults ---- */

static struct rt_value of_default(const char *s, size_t len, const struct op_param *p)
{
    char *end;

    if (len == 4 && memcmp(s, "None", 4) == 0)
        return (struct rt_value){.kind = RT_NONE};
    if ((len == 4 && memcmp(s, "True", 4) == 0) || (len == 5 && memcmp(s, "False", 5) == 0))
        return (struct rt_value){.kind = RT_BOOL, .b = len == 4};
    if (p->type == OP_T_DTYPE)
        return (struct rt_value){.kind = RT_DTYPE, .dtype = (uint8_t)dtype_by_name(s, len)};
    long long i = strtoll(s, &end, 10);
    if (end == s + len)
        return (struct rt_value){.kind = RT_INT, .i = i};
    double f = strtod(s, &end);
    if (end == s + len)
        return (struct rt_value){.kind = RT_FLOAT, .f = f};
    return (struct rt_value){.kind = RT_OTHER};
}

static struct rt_value default_list(const char *s, const struct op_param *p, struct arena *a)
{
    size_t most = strlen(s);
    struct rt_value *list = arena_array(a, struct rt_value, most + 1);
    uint32_t n = 0;

    for (s++; *s != ']' && *s != ')' && *s != '\0';) {
        size_t len = strcspn(s, ",)]");
        list[n++] = of_default(s, len, p);
        s += len;
        s += strspn(s, ", ");
    }
    return (struct rt_value){.kind = RT_LIST, .n = n, .item = list};
}

static struct rt_value fill_default(const struct op_param *p, struct arena *a)
{
    const char *s = p->default_text;

    if (s == NULL)
        return (struct rt_value){.kind = RT_NONE};
    if (*s == '[' || *s == '(')
        return default_list(s, p, a);
    if (*s == '\'') {
        size_t len = strlen(s);
        return (struct rt_value){.kind = RT_STR, .str = arena_str(a, s + 1, len > 1 ? len - 2 : 0)};
    }
    return of_default(s, strlen(s), p);
}

/* i[2]: one int stands for both. */
static struct rt_value spread(struct rt_value v, const struct op_param *p, struct arena *a)
{
    if (p->depth != 1 || p->list_size == 0 || v.kind == RT_LIST || v.kind == RT_NONE)
        return v;
    struct rt_value *list = arena_array(a, struct rt_value, p->list_size);
    for (uint32_t i = 0; i < p->list_size; i++)
        list[i] = v;
    return (struct rt_value){.kind = RT_LIST, .n = p->list_size, .item = list};
}

/* ---- the call ---- */

static void fill_results(struct exec *x, struct exec_step *s, struct arena *a)
{
    uint32_t first = acting_result(x->g, s->node), n = exec_value_count(x, s->node);
    const struct exec_value *v = &x->value[x->value_at[s->node]];

    s->call.out = arena_array(a, struct rt_tensor, (size_t)n + 1);
    s->call.n_out = 0;
    for (uint32_t k = first; k < n; k++) {
        if (v[k].kind == EXEC_TENSOR)
            s->call.out[s->call.n_out++] = v[k].t;
        else if (n > 1)
            s->call.out[s->call.n_out++] = (struct rt_tensor){.dtype = DTYPE_NONE};
    }
}

bool exec_fill_call(struct exec *x, struct exec_step *s, struct arena *a)
{
    const struct fx_node *c = x->call[s->node];
    const struct op_sig *sig = sigs_get(&x->sigs, c->op);
    uint32_t n = sig != NULL ? sig->n_params : 0;
    struct rt_value *arg = arena_array(a, struct rt_value, (size_t)n + 1);

    x->at_node = s->node;
    for (uint32_t p = 0; p < n; p++) {
        const tuck_value *v = call_operand(x->g, c, p);
        if (v == NULL)
            arg[p] = fill_default(&sig->params[p], a);
        else if (!of_value(x, v, a, 0, &arg[p]))
            return false;
        arg[p] = spread(arg[p], &sig->params[p], a);
    }
    s->call.arg = arg;
    s->call.n_arg = n;
    if ((op_at(c->op)->flags & OP_F_RANDOM) != 0)
        s->call.key = draw_key(draw_mix(x->o.seed + 1),
                               graph_str(x->g, node_at(x->g, s->node)->name));
    s->call.error = x->error;
    s->call.error_size = sizeof(x->error);
    fill_results(x, s, a);
    return true;
}

/* ---- copies ---- */

/* The buffer that the copy writes. */
static uint32_t copied_into(const struct exec *x, uint32_t op)
{
    const struct program *p = x->p;

    for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++)
        if (p->use[k].how != PROGRAM_READS)
            return p->use[k].buf;
    return PROGRAM_NONE;
}

static uint32_t copied_from(const struct exec *x, uint32_t op)
{
    const struct program *p = x->p;

    for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++)
        if (p->use[k].how == PROGRAM_READS)
            return p->use[k].buf;
    return PROGRAM_NONE;
}

/* The result that is in this buffer, or NULL. */
static const struct exec_value *result_in(struct exec *x, uint32_t node, uint32_t buf)
{
    for (uint32_t k = 0; k < exec_value_count(x, node); k++) {
        const struct exec_value *v = &x->value[x->value_at[node] + k];
        if (v->kind == EXEC_TENSOR && v->place == buf)
            return v;
    }
    return NULL;
}

/* Contiguous; but a result, which later nodes see, has the layout that its type says. */
static struct rt_tensor laid_out(struct exec *x, uint32_t node, uint32_t buf,
                                 const struct rt_tensor *like)
{
    const struct exec_value *seen = result_in(x, node, buf);
    struct rt_tensor t = *like;
    int64_t stride = 1;

    if (seen != NULL)
        return seen->t;
    for (uint32_t i = t.n; i > 0; i--) {
        t.stride[i - 1] = stride;
        stride *= t.size[i - 1] > 0 ? t.size[i - 1] : 1;
    }
    t.data = x->place.at[buf].base;
    return t;
}

bool exec_fill_copy(struct exec *x, struct exec_step *s, struct arena *a)
{
    const struct program_op *op = &x->p->op[s->op];
    const struct exec_value *of = &x->value[x->value_at[op->from] + op->item];
    uint32_t to = copied_into(x, s->op), from = copied_from(x, s->op);
    struct rt_value *arg = arena_array(a, struct rt_value, 1);
    struct rt_tensor *t = arena_array(a, struct rt_tensor, 2);

    if (of->kind != EXEC_TENSOR || to == PROGRAM_NONE || from == PROGRAM_NONE)
        return exec_fail_at(x, s->node, "what is copied for it is not known");
    bool back = of->place != from; /* from a copy into the operand */
    if (!back && s->dynamic && result_in(x, s->node, to) == NULL) {
        x->place.at[to].where = WHERE_GROWN;
        x->place.at[to].bytes = rt_numel(&of->t) * dtype_at((enum dtype)of->t.dtype)->bytes;
        x->place.at[to].base = exec_grow(x, (size_t)x->place.at[to].bytes);
    }
    t[0] = back ? laid_out(x, s->node, from, &of->t) : of->t;
    t[1] = back ? of->t : laid_out(x, s->node, to, &of->t);
    const struct rt_tensor *made = &t[back ? 0 : 1];
    if (exec_span(made) > x->place.at[back ? from : to].bytes)
        return exec_fail_at(x, s->node, "the copy for it needs more memory than was planned");
    *arg = (struct rt_value){.kind = RT_TENSOR, .tensor = &t[0]};
    s->call = (struct rt_call){.kernel = kernel_at(OP_KERNEL_copy),
                               .arg = arg,
                               .n_arg = 1,
                               .out = &t[1],
                               .n_out = 1,
                               .scratch = x->scratch,
                               .error = x->error,
                               .error_size = sizeof(x->error)};
    return true;
}
