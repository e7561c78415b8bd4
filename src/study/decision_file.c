/* Decisions as JSON: docs/files.md. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_in.h"
#include "base/units.h"
#include "study/decision.h"

/* ---- writing ---- */

static void put_list(struct json_out *j, const char *key, const uint32_t *at, uint32_t n)
{
    json_open(j, key, '[');
    bool flat = j->flat;
    j->flat = true;
    for (uint32_t i = 0; i < n; i++)
        json_int(j, NULL, at[i]);
    json_close(j, ']');
    j->flat = flat;
}

static void put_digest(struct json_out *j, const char *key, uint64_t digest)
{
    char text[20];

    snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
    json_str(j, key, text);
}

static void put_step(struct json_out *j, const struct decision_step *s)
{
    json_open(j, NULL, '{');
    if (s->pass != NULL) {
        json_str(j, "pass", s->pass);
        json_str(j, "options", s->options);
    } else {
        put_list(j, "order", s->order, s->n_order);
        put_list(j, "apart", s->apart, s->n_apart);
    }
    json_close(j, '}');
}

void decision_write(const struct tuck_decision *d, struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_int(&j, "tuck_decision", DECISION_VERSION);
    put_digest(&j, "program", d->program);
    put_digest(&j, "sequence", d->sequence);
    json_str(&j, "machine", d->machine);
    if (d->step_ps >= 0)
        json_float(&j, "step_ns", ns_of_ps(d->step_ps));
    if (d->peak >= 0)
        json_int(&j, "peak_bytes", d->peak);
    json_open(&j, "steps", '[');
    for (uint32_t i = 0; i < d->step.len; i++)
        put_step(&j, &d->step.at[i]);
    json_close(&j, ']');
    json_open(&j, "buckets", '[');
    for (uint32_t i = 0; i < d->bucket.len; i++)
        put_list(&j, NULL, d->bucket.at[i].member, d->bucket.at[i].n);
    json_close(&j, ']');
    put_list(&j, "nodes", d->node, d->n_node);
    json_close(&j, '}');
    json_end(&j);
}

/* ---- reading ---- */

struct reading {
    struct jin in;
    struct tuck_decision *d;
};

static uint64_t get_digest(struct reading *r, const struct jin_at *root, const char *key)
{
    struct jin_at at = jin_member(root, key);
    const char *text;
    char *end;

    if (!jin_want_str(&r->in, &at, &text))
        return 0;
    uint64_t v = strtoull(text, &end, 16);
    if (strlen(text) != 16 || end != text + 16 || strspn(text, "0123456789abcdef") != 16)
        jin_expected(&r->in, &at, "a digest of 16 hexadecimal digits");
    return v;
}

static uint32_t *get_list(struct reading *r, const struct jin_at *at, uint32_t *n)
{
    *n = 0;
    if (!jin_want_list(&r->in, at))
        return NULL;
    size_t len = jin_len(at);
    uint32_t *list = arena_array(&r->d->arena, uint32_t, len + 1);
    for (size_t i = 0; i < len; i++) {
        struct jin_at item = jin_item(at, i);
        int64_t v = 0;
        jin_want_int(&r->in, &item, 0, UINT32_MAX, &v);
        list[(*n)++] = (uint32_t)v;
    }
    return list;
}

static const char *get_str(struct reading *r, const struct jin_at *at)
{
    const char *s;

    return jin_want_str(&r->in, at, &s) ? arena_str(&r->d->arena, s, strlen(s)) : "";
}

static void read_step(struct reading *r, const struct jin_at *at)
{
    static const char *const keys[] = {"pass", "options", "order", "apart"};
    struct jin_at pass = jin_member(at, "pass"), options = jin_member(at, "options"),
                  order = jin_member(at, "order"), apart = jin_member(at, "apart");
    struct decision_step s = {.pass = NULL};

    if (!jin_want_object(&r->in, at))
        return;
    jin_known(&r->in, at, keys, sizeof(keys) / sizeof(*keys));
    if (jin_there(&pass) == jin_there(&order)) {
        jin_error(&r->in, at, "a step is a pass or an order");
        return;
    }
    if (jin_there(&pass)) {
        s.pass = get_str(r, &pass);
        s.options = jin_there(&options) ? get_str(r, &options) : "";
    } else {
        s.order = get_list(r, &order, &s.n_order);
        if (jin_there(&apart))
            s.apart = get_list(r, &apart, &s.n_apart);
    }
    vec_push_in(&r->d->arena, &r->d->step, s);
}

static void read_lists(struct reading *r, const struct jin_at *root)
{
    struct jin_at steps = jin_member(root, "steps"), buckets = jin_member(root, "buckets"),
                  nodes = jin_member(root, "nodes");

    r->d->node = get_list(r, &nodes, &r->d->n_node);
    if (jin_want_list(&r->in, &steps))
        for (size_t i = 0; i < jin_len(&steps); i++) {
            struct jin_at at = jin_item(&steps, i);
            read_step(r, &at);
        }
    if (!jin_there(&buckets) || !jin_want_list(&r->in, &buckets))
        return;
    for (size_t i = 0; i < jin_len(&buckets); i++) {
        struct jin_at at = jin_item(&buckets, i);
        struct decision_bucket b;
        b.member = get_list(r, &at, &b.n);
        vec_push_in(&r->d->arena, &r->d->bucket, b);
    }
}

static void read_promise(struct reading *r, const struct jin_at *root)
{
    struct jin_at machine = jin_member(root, "machine"), ns = jin_member(root, "step_ns"),
                  peak = jin_member(root, "peak_bytes");
    double v = 0;

    if (jin_there(&machine))
        r->d->machine = get_str(r, &machine);
    if (jin_there(&ns) && jin_want_number(&r->in, &ns, 0, true, 9e15, &v))
        r->d->step_ps = (int64_t)(v * 1000 + 0.5);
    if (jin_there(&peak))
        jin_want_int(&r->in, &peak, 0, INT64_MAX, &r->d->peak);
}

static void do_read(void *arg)
{
    static const char *const keys[] = {"tuck_decision", "program", "sequence", "machine", "step_ns",
                                       "peak_bytes",    "steps",   "buckets",  "nodes"};
    struct reading *r = arg;
    struct jin_at root = jin_root(&r->in), version = jin_member(&root, "tuck_decision");
    int64_t v = 0;

    if (!jin_want_object(&r->in, &root) || !jin_want_int(&r->in, &version, 1, INT64_MAX, &v))
        return;
    if (v != DECISION_VERSION) {
        jin_error(&r->in, &version, "this is version %lld, and version %d can be read",
                  (long long)v, DECISION_VERSION);
        return;
    }
    jin_known(&r->in, &root, keys, sizeof(keys) / sizeof(*keys));
    r->d->program = get_digest(r, &root, "program");
    r->d->sequence = get_digest(r, &root, "sequence");
    read_promise(r, &root);
    read_lists(r, &root);
}

tuck_status decision_read(const char *text, size_t len, const char *name,
                          const tuck_allocator *alloc, tuck_diags *diags,
                          struct tuck_decision **out)
{
    struct reading r = {.d = decision_new(alloc)};

    if (r.d == NULL)
        return TUCK_ENOMEM;
    tuck_status st = jin_text(&r.in, text, len, name, diags);
    if (st == TUCK_OK) {
        st = mem_guard(&r.d->mem, do_read, &r) ? TUCK_OK : TUCK_ENOMEM;
        jin_done(&r.in);
    }
    if (st == TUCK_OK && r.in.bad)
        st = TUCK_ESYNTAX;
    if (st == TUCK_OK)
        *out = r.d;
    else
        tuck_decision_free(r.d);
    return st;
}
