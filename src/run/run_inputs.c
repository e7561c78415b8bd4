/* Inputs and results in files. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "infer/infer.h"
#include "run/run.h"

/* ---- names of files ---- */

/* NAME of NAME, NAME.safetensors and NAME.rank0.safetensors. */
static size_t stem_of(const char *name)
{
    static const char end[] = ".safetensors";
    size_t n = strlen(name), e = sizeof(end) - 1;

    return n > e && strcmp(name + n - e, end) == 0 ? n - e : n;
}

static char *path_of(struct arena *a, const char *name, int rank, const char *ending)
{
    size_t n = stem_of(name), size = n + 64;
    char *path = arena_array(a, char, size);

    if (rank >= 0)
        snprintf(path, size, "%.*s.rank%d%s", (int)n, name, rank, ending);
    else
        snprintf(path, size, "%.*s%s", (int)n, name, ending);
    return path;
}

bool run_open_inputs(struct run_plan *plan)
{
    const char *name = plan->o->inputs;
    struct st_file *all = NULL;

    plan->file = arena_zeroed(&plan->arena, (size_t)plan->world * sizeof(*plan->file));
    if (name == NULL)
        return true;
    bool each = access(path_of(&plan->arena, name, 0, ".safetensors"), F_OK) == 0;
    for (int r = 0; r < plan->world; r++) {
        const char *path = path_of(&plan->arena, name, each ? r : -1, ".safetensors");
        if (!each && all != NULL) {
            plan->file[r] = all;
            continue;
        }
        plan->status = st_open(path, &plan->mem.alloc, plan->diags, &plan->file[r]);
        if (plan->status != TUCK_OK) {
            plan->file[r] = NULL;
            return false;
        }
        all = plan->file[r];
    }
    return true;
}

/* The tensor for an input: "input.x" or "x"; for an attribute "constant.x" or "x". */
static const struct st_tensor *stored(const struct st_file *f, const char *name, bool attribute)
{
    char text[512];
    const struct st_tensor *t = NULL;

    if (snprintf(text, sizeof(text), "%s.%s", attribute ? "constant" : "input", name) <
        (int)sizeof(text))
        t = st_find(f, text);
    return t != NULL ? t : st_find(f, name);
}

/* ---- numbers and symbols ---- */

struct learning {
    struct run_plan *plan;
    struct run_rank *r;
    VEC(struct exec_number) number;
};

static void learn(struct learning *l, const char *name, struct sym_num v)
{
    for (uint32_t i = 0; i < l->number.len; i++)
        if (strcmp(l->number.at[i].name, name) == 0) {
            l->number.at[i].value = v;
            return;
        }
    vec_push_in(&l->plan->arena, &l->number, ((struct exec_number){name, v}));
}

static const char *symbol_name(const tuck_graph *g, sym_id v)
{
    const struct sym_node *s = v != 0 ? sym_at(&g->store->sym, v) : NULL;

    return s != NULL && s->op == SYM_SYMBOL ? str_text(&g->store->sym.names, s->u.name) : NULL;
}

static struct sym_num of_tensor(const struct st_tensor *t)
{
    struct rt_tensor x = {.dtype = (uint8_t)t->dtype};
    int64_t aligned[2] = {0};

    memcpy(aligned, t->data,
           (size_t)t->bytes < sizeof(aligned) ? (size_t)t->bytes : sizeof(aligned));
    x.data = aligned;
    struct rt_value v = rt_item(&x);
    return v.kind == RT_FLOAT  ? (struct sym_num){.kind = SYM_T_FLOAT, .f = v.f}
           : v.kind == RT_BOOL ? (struct sym_num){.kind = SYM_T_BOOL, .i = v.b}
                               : (struct sym_num){.kind = SYM_T_INT, .i = v.i};
}

/* An input that is a number gives its symbol the value. */
static void learn_input(struct learning *l, uint32_t node, struct sym_num v)
{
    const tuck_graph *g = l->r->g;
    const struct type *t = type_at(&g->store->type, node_type(g, node));
    const char *symbol = t->kind == TYPE_SYM ? symbol_name(g, t->sym) : NULL;

    learn(l, graph_str(g, node_at(g, node)->name), v);
    if (symbol != NULL)
        learn(l, symbol, v);
}

static void learn_from_file(struct learning *l, int rank)
{
    const tuck_graph *g = l->r->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        const struct type *t = type_at(&g->store->type, node_type(g, n));
        if (x->kind != TUCK_PLACEHOLDER && x->kind != TUCK_GET_ATTR)
            continue;
        const struct st_tensor *s = stored(l->plan->file[rank], graph_str(g, x->name),
                                           x->kind == TUCK_GET_ATTR);
        if (s == NULL)
            continue;
        if (t->kind == TYPE_SYM && s->n == 0)
            learn_input(l, n, of_tensor(s));
        for (uint32_t i = 0; t->kind == TYPE_TENSOR && t->n == s->n && i < t->n; i++)
            if (symbol_name(g, t->size[i]) != NULL)
                learn(l, symbol_name(g, t->size[i]),
                      (struct sym_num){.kind = SYM_T_INT, .i = s->size[i]});
    }
}

static struct sym_num of_json(const json_t *v)
{
    if (json_is_real(v))
        return (struct sym_num){.kind = SYM_T_FLOAT, .f = json_real_value(v)};
    if (json_is_boolean(v))
        return (struct sym_num){.kind = SYM_T_BOOL, .i = json_is_true(v)};
    return (struct sym_num){.kind = SYM_T_INT, .i = json_integer_value(v)};
}

/* NAME.json beside the tensors: {"values_by_rank": [{"primals_3": 6}, …]}. */
static bool learn_from_sidecar(struct learning *l, int rank)
{
    struct run_plan *plan = l->plan;
    const char *path = path_of(&plan->arena, plan->o->inputs, -1, ".json");
    FILE *f = fopen(path, "re");
    json_error_t error;

    if (f == NULL)
        return true;
    json_t *root = json_loadf(f, 0, &error);
    fclose(f);
    if (root == NULL) {
        struct diag_source source = {.file = path};
        diag_add(
            plan->diags, TUCK_ERROR,
            (struct diag_pos){.source = &source, .line = error.line > 0 ? (uint32_t)error.line : 1},
            NULL, "not JSON: %s", error.text);
        plan->status = TUCK_ESYNTAX;
        return false;
    }
    const json_t *own = json_array_get(json_object_get(root, "values_by_rank"), (size_t)rank);
    for_each_node (l->r->g, n) {
        const json_t *v = node_at(l->r->g, n)->kind == TUCK_PLACEHOLDER
                              ? json_object_get(own, graph_str(l->r->g, node_at(l->r->g, n)->name))
                              : NULL;
        if (json_is_number(v) || json_is_boolean(v))
            learn_input(l, n, of_json(v));
    }
    json_decref(root);
    return true;
}

bool run_learn(struct run_plan *plan, struct run_rank *r, int rank)
{
    struct learning l = {.plan = plan, .r = r};
    const tuck_graph *g = r->g;

    for (uint32_t i = 0; i < g->hint.len; i++)
        learn(&l, graph_str(g, g->hint.at[i].symbol),
              (struct sym_num){.kind = SYM_T_INT, .i = g->hint.at[i].value});
    if (plan->o->inputs != NULL && !learn_from_sidecar(&l, rank))
        return false;
    if (plan->file[rank] != NULL)
        learn_from_file(&l, rank);
    for (size_t i = 0; i < plan->o->n_hints; i++)
        learn(&l, plan->o->hints[i].symbol,
              (struct sym_num){.kind = SYM_T_INT, .i = plan->o->hints[i].value});
    r->number = l.number.at;
    r->n_number = l.number.len;
    return true;
}

/* ---- filling ---- */

static void put_sizes(char *out, size_t room, uint32_t n, const int64_t *size)
{
    size_t at = 0;

    for (uint32_t i = 0; i < n && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld", i ? ", " : "", (long long)size[i]);
}

/* The one dimension that is `world` times as long in the file; n if there is none. */
static uint32_t sharded_along(const struct st_tensor *s, const struct rt_tensor *t, int world)
{
    uint32_t d = t->n;

    for (uint32_t i = 0; i < t->n; i++) {
        if (s->size[i] == t->size[i])
            continue;
        if (d < t->n || s->size[i] != t->size[i] * world)
            return t->n;
        d = i;
    }
    return d;
}

static bool copy_in(const struct st_tensor *s, const struct rt_tensor *t, uint32_t d, int rank,
                    char *why)
{
    struct rt_tensor from = *t;
    struct rt_value arg = {.kind = RT_TENSOR, .tensor = &from};
    int64_t stride = 1, elem = dtype_at((enum dtype)t->dtype)->bytes;
    void *aligned = aligned_alloc(RT_ALIGN,
                                  ((size_t)s->bytes + RT_ALIGN) & ~(size_t)(RT_ALIGN - 1));

    if (aligned == NULL) {
        snprintf(why, EXEC_ERROR_BYTES, "out of memory");
        return false;
    }
    memcpy(aligned, s->data, (size_t)s->bytes);
    for (uint32_t i = t->n; i > 0; i--) {
        from.stride[i - 1] = stride;
        stride *= s->size[i - 1];
    }
    from.data = (char *)aligned + (d < t->n ? rank * t->size[d] * from.stride[d] * elem : 0);
    struct rt_tensor to = *t;
    struct rt_call c = {.kernel = kernel_at(OP_KERNEL_copy),
                        .arg = &arg,
                        .n_arg = 1,
                        .out = &to,
                        .n_out = 1,
                        .error = why,
                        .error_size = EXEC_ERROR_BYTES};
    bool ok = kernel_run(&c);
    free(aligned);
    return ok;
}

static bool fill_stored(const struct run_plan *plan, int rank, const struct exec_input *in,
                        char *why)
{
    const struct st_tensor *s = stored(plan->file[rank], in->name, in->attribute);
    const struct rt_tensor *t = in->tensor;
    char is[256] = "", wants[256] = "";

    if (s == NULL) {
        snprintf(why, EXEC_ERROR_BYTES, "the file of inputs has no '%s.%s'",
                 in->attribute ? "constant" : "input", in->name);
        return false;
    }
    if (s->dtype != t->dtype) {
        snprintf(why, EXEC_ERROR_BYTES, "input '%s' is %s in the file, the graph wants %s",
                 in->name, dtype_at(s->dtype)->name, dtype_at((enum dtype)t->dtype)->name);
        return false;
    }
    uint32_t d = s->n == t->n ? sharded_along(s, t, plan->world) : t->n;
    bool same = s->n == t->n;
    for (uint32_t i = 0; same && i < t->n; i++)
        same = s->size[i] == t->size[i];
    if (!same && d == t->n) {
        put_sizes(is, sizeof(is), s->n, s->size);
        put_sizes(wants, sizeof(wants), t->n, t->size);
        snprintf(why, EXEC_ERROR_BYTES, "input '%s' is [%s] in the file, the graph wants [%s]",
                 in->name, is, wants);
        return false;
    }
    return copy_in(s, t, same ? t->n : d, rank, why);
}

bool run_fill(const struct run_plan *plan, const struct run_rank *r, int rank,
              const struct exec_input *in, char *why)
{
    if (plan->file[rank] != NULL)
        return fill_stored(plan, rank, in, why);
    run_draw(plan->o->seed, r, rank, in);
    return true;
}

/* ---- results ---- */

struct writing {
    const struct run_plan *plan;
    int rank;
    const struct exec *x;
    struct mem mem;
    struct arena a;
    VEC(struct st_tensor) t;
    char *why;
    bool ok;
};

static const char *name_of(struct writing *w, const char *kind, const char *name, uint32_t i)
{
    char text[512];
    int n = name != NULL ? snprintf(text, sizeof(text), "%s.%s", kind, name)
                         : snprintf(text, sizeof(text), "%s.%u", kind, i);

    return arena_str(&w->a, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static bool add_tensor(struct writing *w, const char *name, const struct rt_tensor *t)
{
    struct st_tensor s = {.name = name, .dtype = (enum dtype)t->dtype, .n = t->n};
    int64_t *size = arena_array(&w->a, int64_t, (size_t)t->n + 1);

    memcpy(size, t->size, t->n * sizeof(*size));
    s.size = size;
    s.bytes = rt_numel(t) * dtype_at((enum dtype)t->dtype)->bytes;
    void *data = arena_alloc(&w->a, (size_t)s.bytes + 1);
    s.data = data;
    vec_push_in(&w->a, &w->t, s);
    return run_copy_dense(t, data, w->why);
}

static bool add_number(struct writing *w, const char *name, struct sym_num v)
{
    int64_t *at = arena_alloc(&w->a, sizeof(*at));
    struct st_tensor s = {.name = name, .data = at, .bytes = 8, .dtype = DTYPE_I64};

    *at = v.i;
    if (v.kind == SYM_T_FLOAT) {
        s.dtype = DTYPE_F64;
        memcpy(at, &v.f, sizeof(*at));
    } else if (v.kind == SYM_T_BOOL) {
        s.dtype = DTYPE_B8;
        s.bytes = 1;
    }
    s.size = at;
    vec_push_in(&w->a, &w->t, s);
    return true;
}

static void do_write(void *arg)
{
    struct writing *w = arg;
    bool ok = true;

    for (uint32_t i = 0; ok && i < exec_result_count(w->x); i++) {
        struct exec_result r = exec_result_at(w->x, i);
        if (r.kind == EXEC_RESULT_TENSOR)
            ok = add_tensor(w, name_of(w, "output", NULL, i), r.tensor);
        else if (r.kind == EXEC_RESULT_NUMBER)
            ok = add_number(w, name_of(w, "output", NULL, i), r.number);
    }
    for (uint32_t i = 0; ok && i < exec_input_count(w->x); i++) {
        const struct exec_input *in = exec_input_at(w->x, i);
        if (in->written)
            ok = add_tensor(w, name_of(w, "changed", in->name, 0), in->tensor);
    }
    w->ok = ok;
}

bool run_write(const struct run_plan *plan, int rank, const struct exec *x, char *why)
{
    struct writing w = {.plan = plan, .rank = rank, .x = x, .why = why};
    tuck_diags *diags = tuck_diags_new(NULL);

    mem_init(&w.mem, NULL);
    arena_init(&w.a, &w.mem);
    if (diags == NULL || !mem_guard(&w.mem, do_write, &w)) {
        snprintf(why, EXEC_ERROR_BYTES, "out of memory");
        w.ok = false;
    }
    if (w.ok) {
        const char *path = path_of(&w.a, plan->o->outputs, rank, ".safetensors");
        w.ok = st_write(path, w.t.at, w.t.len, NULL, diags) == TUCK_OK;
        if (!w.ok)
            snprintf(why, EXEC_ERROR_BYTES, "%s: %s", path,
                     tuck_diags_count(diags) > 0 ? tuck_diags_at(diags, 0)->message
                                                 : "cannot be written");
    }
    arena_destroy(&w.a);
    tuck_diags_free(diags);
    return w.ok;
}
