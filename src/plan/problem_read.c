/* Reads problem files: JSON, schema 1. Unknown members are ignored. Reading stops after the first
 * op with errors. */
#include <jansson.h>
#include <math.h>

#include "base/file_open.h"
#include "base/json_in.h"
#include "plan/problem.h"

struct reader {
    struct jin in;
    struct problem_builder b;
    struct buf text;
    uint32_t n_buf; /* buffers named so far, in the first walk */
};

/* ---- names ----
 * What a name means is marked in the string table: `owner` is 1 + the op, `node` 1 + the buffer. */

static struct str *mark_of(struct reader *r, const char *name)
{
    struct strtab *t = &r->b.p->str;
    str_id id = str_intern(t, name, strlen(name)); /* this may move all.at */

    return &t->all.at[id];
}

/* The first owner of a name keeps it; problem_check() reports duplicates. */
static void claim(uint32_t *mark, uint32_t id)
{
    if (*mark == 0)
        *mark = id + 1;
}

static uint32_t find_op(struct reader *r, const char *name)
{
    return mark_of(r, name)->owner - 1; /* 0 - 1 is PROBLEM_NONE */
}

static uint32_t find_buf(struct reader *r, const char *name)
{
    return mark_of(r, name)->node - 1;
}

/* ---- members ---- */

static const char *get_name(struct reader *r, const struct jin_at *obj)
{
    struct jin_at at = jin_member(obj, "name");
    const char *name = NULL;

    return jin_want_object(&r->in, obj) && jin_want_str(&r->in, &at, &name) ? name : NULL;
}

/* An optional string. */
static const char *get_maybe(struct reader *r, const struct jin_at *obj, const char *key)
{
    struct jin_at at = jin_member(obj, key);
    const char *s = NULL;

    return jin_there(&at) && jin_want_str(&r->in, &at, &s) ? s : NULL;
}

static bool get_bool(struct reader *r, const struct jin_at *obj, const char *key, bool fallback)
{
    struct jin_at at = jin_member(obj, key);

    if (at.v == NULL)
        return fallback;
    if (!json_is_boolean(at.v))
        jin_expected(&r->in, &at, "true or false");
    return json_is_true(at.v);
}

static int64_t get_size(struct reader *r, const struct jin_at *obj, const char *key)
{
    struct jin_at at = jin_member(obj, key);
    int64_t v = 0;

    jin_want_int(&r->in, &at, 0, INT64_MAX, &v);
    return v;
}

/* A list; false if an error was reported, or if it is optional and missing. */
static bool get_list(struct reader *r, const struct jin_at *at, bool maybe)
{
    return !(maybe && at->v == NULL) && jin_want_list(&r->in, at);
}

static const char *name_at(struct reader *r, const struct jin_at *at)
{
    const char *s = NULL;

    return jin_want_str(&r->in, at, &s) ? s : NULL;
}

static uint32_t op_at(struct reader *r, const struct jin_at *at)
{
    const char *name = name_at(r, at);
    uint32_t op = name ? find_op(r, name) : PROBLEM_NONE;

    if (name != NULL && op == PROBLEM_NONE)
        jin_error(&r->in, at, "there is no op '%s'", name);
    return op;
}

/* ---- the first walk: all names, so that the second can tell "later" from "nowhere" ---- */

static void meet_op(struct reader *r, const struct jin_at *x, uint32_t op)
{
    const char *name = get_name(r, x);
    struct jin_at outs = jin_member(x, "outputs"), members = jin_member(x, "ops");

    if (name != NULL)
        claim(&mark_of(r, name)->owner, op);
    if (name != NULL && get_list(r, &members, true))
        for (size_t i = 0; i < jin_len(&members); i++) {
            struct jin_at at = jin_item(&members, i);
            if ((name = name_at(r, &at)) != NULL)
                claim(&mark_of(r, name)->owner, op);
        }
    if (r->in.bad || !get_list(r, &outs, false))
        return;
    for (size_t i = 0; i < jin_len(&outs); i++) {
        struct jin_at at = jin_item(&outs, i);
        if ((name = get_name(r, &at)) != NULL)
            claim(&mark_of(r, name)->node, r->n_buf++);
    }
}

/* ---- the second walk ---- */

/* Ops that keep a buffer alive, or come after it. */
static void read_users(struct reader *r, const struct jin_at *x, const char *key, uint32_t buf,
                       void (*add)(struct problem_builder *, uint32_t, uint32_t))
{
    struct jin_at list = jin_member(x, key);

    if (!get_list(r, &list, add == problem_follows))
        return;
    for (size_t i = 0; i < jin_len(&list); i++) {
        struct jin_at at = jin_item(&list, i);
        uint32_t op = op_at(r, &at);
        if (op != PROBLEM_NONE)
            add(&r->b, buf, op);
    }
}

static void read_outputs(struct reader *r, const struct jin_at *x)
{
    struct jin_at list = jin_member(x, "outputs");

    for (size_t i = 0; i < jin_len(&list); i++) {
        struct jin_at at = jin_item(&list, i);
        int64_t size_alloc = get_size(r, &at, "size_alloc"),
                size_free = get_size(r, &at, "size_free");
        uint32_t buf = problem_makes(&r->b, get_name(r, &at), size_alloc, size_free);
        read_users(r, &at, "succ", buf, problem_keeps);
        read_users(r, &at, "succ_ordering", buf, problem_follows);
    }
}

static void read_deps(struct reader *r, const struct jin_at *x)
{
    struct jin_at list = jin_member(x, "deps");

    if (!get_list(r, &list, false))
        return;
    for (size_t i = 0; i < jin_len(&list); i++) {
        struct jin_at at = jin_item(&list, i), where = jin_member(&at, "name");
        const char *name = get_name(r, &at);
        if (name == NULL)
            continue;
        unsigned flags = (get_bool(r, &at, "weak", false) ? PROBLEM_WEAK : 0) |
                         (get_bool(r, &at, "fake", false) ? PROBLEM_FAKE : 0);
        uint32_t buf = find_buf(r, name), op = find_op(r, name);
        if (buf != PROBLEM_NONE)
            problem_needs(&r->b, buf, flags);
        else if (op != PROBLEM_NONE)
            problem_needs_op(&r->b, op, flags);
        else
            jin_error(&r->in, &where, "there is no buffer or op '%s'", name);
    }
}

static enum problem_kind get_kind(struct reader *r, const struct jin_at *x)
{
    static const char *const kinds[] = {[PROBLEM_COMPUTE] = "compute",
                                        [PROBLEM_GEMM] = "gemm",
                                        [PROBLEM_COLLECTIVE] = "collective",
                                        [PROBLEM_WAIT] = "wait"};
    struct jin_at at = jin_member(x, "kind");
    const char *kind = json_string_value(at.v);

    for (int k = PROBLEM_COMPUTE; kind != NULL && k <= PROBLEM_WAIT; k++)
        if (strcmp(kind, kinds[k]) == 0)
            return (enum problem_kind)k;
    jin_expected(&r->in, &at, "compute, gemm, collective or wait");
    return PROBLEM_COMPUTE;
}

static void read_op(struct reader *r, const struct jin_at *x)
{
    struct jin_at runtime = jin_member(x, "runtime"), bytes = jin_member(x, "bytes"),
                  members = jin_member(x, "ops"), ancestors = jin_member(x, "ancestors");
    struct problem_op op = {
        .name = get_name(r, x),
        .kind = get_kind(r, x),
        .is_async = get_bool(r, x, "is_async", true),
        .group = get_maybe(r, x, "group"),
        .coll = get_maybe(r, x, "coll"),
        .kernel = get_maybe(r, x, "kernel"),
    };

    jin_want_number(&r->in, &runtime, 0, true, INFINITY, &op.runtime);
    if (jin_there(&bytes))
        jin_want_int(&r->in, &bytes, 0, INT64_MAX, &op.bytes);
    problem_op(&r->b, &op);
    for (size_t i = 0; i < jin_len(&members); i++) {
        struct jin_at at = jin_item(&members, i);
        problem_fuses(&r->b, name_at(r, &at));
    }
    read_deps(r, x);
    read_outputs(r, x);
    /* The dependences say the same, but an unknown name means that the file is broken. */
    if (get_list(r, &ancestors, true))
        for (size_t i = 0; i < jin_len(&ancestors); i++) {
            struct jin_at at = jin_item(&ancestors, i);
            op_at(r, &at);
        }
}

/* ---- around the ops ---- */

static void read_inputs(struct reader *r, const struct jin_at *root)
{
    struct jin_at freeable = jin_member(root, "freeable_inputs"),
                  inputs = jin_member(root, "graph_inputs");

    if (get_list(r, &freeable, true))
        for (size_t i = 0; i < jin_len(&freeable); i++) {
            struct jin_at at = jin_item(&freeable, i);
            const char *name = get_name(r, &at);
            if (name == NULL)
                return;
            uint32_t buf = problem_input(&r->b, name, get_size(r, &at, "size_free"),
                                         PROBLEM_FREEABLE);
            claim(&mark_of(r, name)->node, buf);
        }
    if (get_list(r, &inputs, true))
        for (size_t i = 0; i < jin_len(&inputs); i++) {
            struct jin_at at = jin_item(&inputs, i);
            const char *name = name_at(r, &at);
            if (name == NULL)
                return;
            vec_push(&r->b.p->mem, &r->b.graph_input, str_intern(&r->b.p->str, name, strlen(name)));
            if (find_buf(r, name) == PROBLEM_NONE) {
                uint32_t buf = problem_input(&r->b, name, 0, 0);
                claim(&mark_of(r, name)->node, buf);
            }
        }
    r->n_buf = r->b.n_input;
}

/* Users of inputs are ops, which are known only after the first walk. */
static void read_input_users(struct reader *r, const struct jin_at *root)
{
    struct jin_at list = jin_member(root, "freeable_inputs");

    for (size_t i = 0; i < jin_len(&list); i++) {
        struct jin_at at = jin_item(&list, i);
        read_users(r, &at, "succ", (uint32_t)i, problem_keeps);
    }
}

static void read_outer(struct reader *r, const struct jin_at *root)
{
    struct problem_builder *b = &r->b;
    struct jin_at outputs = jin_member(root, "graph_outputs"),
                  map = jin_member(root, "mutation_real_name");

    /* Not every output is a buffer: torch also lists None and inputs that are returned
     * unchanged. */
    if (get_list(r, &outputs, false))
        for (size_t i = 0; i < jin_len(&outputs); i++) {
            struct jin_at at = jin_item(&outputs, i);
            const char *name = name_at(r, &at);
            if (name == NULL)
                return;
            vec_push(&b->p->mem, &b->graph_output, str_intern(&b->p->str, name, strlen(name)));
            if (find_buf(r, name) != PROBLEM_NONE)
                problem_returns(b, find_buf(r, name));
        }
    if (map.v == NULL || !jin_want_object(&r->in, &map))
        return;
    for (void *i = jin_first(&map); i != NULL; i = jin_next(&map, i)) {
        struct jin_at at = jin_at_iter(&map, i);
        const char *real = name_at(r, &at);
        if (real == NULL)
            return;
        vec_push(&b->p->mem, &b->mutation, str_intern(&b->p->str, at.key, strlen(at.key)));
        vec_push(&b->p->mem, &b->mutation, str_intern(&b->p->str, real, strlen(real)));
    }
}

static void read_unit(struct reader *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "unit");
    const char *unit = get_maybe(r, root, "unit");

    if (unit == NULL)
        return;
    if (!unit_by_name(unit, &r->b.p->unit_ps))
        jin_expected(&r->in, &at, "ns, us, ms or s");
    r->b.p->unit = str_intern(&r->b.p->str, unit, strlen(unit));
}

/* Reports a fault of the whole problem at the JSON member that causes it. */
static void report(struct reader *r, const struct jin_at *root, const struct problem_fault *f)
{
    bool input = f->other == PROBLEM_NONE;
    struct jin_at ops = jin_member(root, "snodes"), inputs = jin_member(root, "freeable_inputs"),
                  op, list, item, at;

    problem_fault_text(&r->b, f, &r->text);
    switch (f->kind) {
    case PROBLEM_FINE:
    case PROBLEM_LATE_INPUT: return; /* cannot happen: inputs are added first */
    case PROBLEM_NAME_TWICE:
    case PROBLEM_TIME:
        op = jin_item(&ops, f->op);
        at = jin_member(&op, f->kind == PROBLEM_TIME ? "runtime" : "name");
        break;
    case PROBLEM_LATE:
    case PROBLEM_CYCLE:
        op = jin_item(&ops, f->op);
        list = jin_member(&op, "deps");
        at = jin_item(&list, f->item);
        break;
    case PROBLEM_BUF_TWICE:
    case PROBLEM_EARLY_USE:
    case PROBLEM_BYTES:
        op = jin_item(&ops, input ? 0 : f->other);
        list = jin_member(&op, "outputs");
        item = jin_item(input ? &inputs : &list, f->item);
        at = f->kind == PROBLEM_BYTES
                 ? item
                 : jin_member(&item, f->kind == PROBLEM_BUF_TWICE ? "name" : "succ");
        break;
    }
    jin_error(&r->in, &at, "%s", buf_text(&r->text));
}

static void do_read(void *ctx)
{
    struct reader *r = ctx;
    struct jin_at root = jin_root(&r->in), schema = jin_member(&root, "schema"),
                  ops = jin_member(&root, "snodes");

    if (!jin_want_object(&r->in, &root))
        return;
    if (!json_is_integer(schema.v) || json_integer_value(schema.v) != 1) {
        jin_expected(&r->in, &schema, "1");
        return;
    }
    read_unit(r, &root);
    if (jin_want_list(&r->in, &ops))
        read_inputs(r, &root);
    for (size_t i = 0; !r->in.bad && i < jin_len(&ops); i++) {
        struct jin_at x = jin_item(&ops, i);
        meet_op(r, &x, (uint32_t)i);
    }
    if (!r->in.bad)
        read_input_users(r, &root);
    for (size_t i = 0; !r->in.bad && i < jin_len(&ops); i++) {
        struct jin_at x = jin_item(&ops, i);
        read_op(r, &x);
    }
    if (!r->in.bad)
        read_outer(r, &root);
    if (r->in.bad)
        return;
    struct problem_fault fault = problem_check(&r->b);
    report(r, &root, &fault);
}

tuck_status problem_read_text(const char *text, size_t len, const char *name,
                              const tuck_allocator *alloc, tuck_diags *diags,
                              struct problem **p_out)
{
    struct reader r = {.n_buf = 0};
    tuck_status st = jin_text(&r.in, text, len, name, diags);

    if (st != TUCK_OK)
        return st;
    if (!problem_begin(&r.b, alloc, name)) {
        jin_done(&r.in);
        return TUCK_ENOMEM;
    }
    buf_init(&r.text, &r.b.p->mem);
    bool ok = mem_guard(&r.b.p->mem, do_read, &r);
    buf_destroy(&r.text);
    jin_done(&r.in);
    if (ok && !r.in.bad)
        return problem_finish(&r.b, diags, p_out);
    problem_abandon(&r.b);
    return ok ? TUCK_ESYNTAX : TUCK_ENOMEM;
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    return problem_read_text(text, len, name, alloc, diags, out);
}

tuck_status problem_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                              struct problem **p_out)
{
    return file_read(path, alloc, diags, from_text, p_out);
}

bool problem_is_file(const char *path)
{
    bool std = strcmp(path, "-") == 0;
    size_t len = strlen(path);
    int c;

    if (len > 5 && strcmp(path + len - 5, ".json") == 0)
        return true;
    FILE *f = std ? stdin : file_open(path);
    if (f == NULL)
        return true;
    do
        c = getc(f);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    if (std && c != EOF)
        ungetc(c, f);
    else if (!std)
        fclose(f);
    return c == '{' || c == EOF;
}
