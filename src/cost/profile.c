/* Profile files: measured times of nodes. */
#include "cost/profile.h"

#include "base/json.h"
#include "base/json_in.h"
#include "base/units.h"
#include "graph/graph.h"

struct tuck_profile {
    struct mem mem;
    struct strtab name;
    VEC(int64_t) ps; /* by id of the name; ids are 1, 2, … and each has a time */
    bool lawless;
};

struct reading {
    struct jin in;
    tuck_profile *p;
};

/* Picoseconds of the file's unit. */
static double read_unit(struct jin *in, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "unit");
    const char *word;
    double ps = PS_PER_NS;

    if (at.v != NULL && jin_want_str(in, &at, &word) && !unit_by_name(word, &ps))
        jin_error(in, &at, "no unit '%.40s'; units are ns, us, ms, s", word);
    return ps;
}

static void do_read(void *arg)
{
    static const char *const known[] = {"schema", "unit", "nodes"};
    struct reading *r = arg;
    struct jin *in = &r->in;
    struct jin_at root = jin_root(in);
    int64_t schema;

    if (!jin_want_object(in, &root))
        return;
    jin_known(in, &root, known, 3);
    struct jin_at version = jin_member(&root, "schema"), nodes = jin_member(&root, "nodes");
    jin_want_int(in, &version, 1, 1, &schema);
    double unit = read_unit(in, &root);
    if (!jin_want_object(in, &nodes))
        return;
    for (void *i = jin_first(&nodes); i != NULL; i = jin_next(&nodes, i)) {
        struct jin_at at = jin_at_iter(&nodes, i);
        double v;

        if (!jin_want_number(in, &at, 0, true, 1e15, &v))
            continue;
        str_id id = str_intern(&r->p->name, at.key, strlen(at.key));
        while (r->p->ps.len <= id)
            vec_push(&r->p->mem, &r->p->ps, -1);
        r->p->ps.at[id] = ps_round(v * unit);
    }
}

tuck_status tuck_profile_read_text(const char *text, size_t len, const char *name,
                                   const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_profile **out)
{
    struct mem m;

    if (text == NULL || name == NULL || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_profile *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return TUCK_ENOMEM;
    *p = (tuck_profile){.mem = m};
    strtab_init(&p->name, &p->mem);
    struct reading r = {.p = p};
    tuck_status st = jin_text(&r.in, text, len, name, diags);
    if (st == TUCK_OK && !mem_guard(&p->mem, do_read, &r))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK && r.in.bad)
        st = TUCK_ESYNTAX;
    jin_done(&r.in);
    if (st != TUCK_OK)
        tuck_profile_free(p);
    else
        *out = p;
    return st;
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    return tuck_profile_read_text(text, len, name, alloc, diags, out);
}

tuck_status tuck_profile_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_profile **out)
{
    return file_read(path, alloc, diags, from_text, out);
}

void tuck_profile_free(tuck_profile *p)
{
    if (p == NULL)
        return;
    struct mem m = p->mem;

    vec_free(&p->mem, &p->ps);
    strtab_destroy(&p->name);
    m.alloc.resize(m.alloc.ctx, p, sizeof(*p), 0);
}

size_t tuck_profile_count(const tuck_profile *p)
{
    return p != NULL && p->ps.len > 0 ? p->ps.len - 1 : 0;
}

void profile_leave_laws(tuck_profile *p)
{
    p->lawless = true;
}

bool profile_has_laws(const tuck_profile *p)
{
    return !p->lawless;
}

bool profile_find(const tuck_profile *p, const char *name, size_t len, int64_t *ps)
{
    str_id id = str_find(&p->name, name, len);

    if (id == 0 || id >= p->ps.len || p->ps.at[id] < 0)
        return false;
    *ps = p->ps.at[id];
    return true;
}

const char *tuck_profile_name(const tuck_profile *p, size_t i)
{
    return i < tuck_profile_count(p) ? str_text(&p->name, (str_id)i + 1) : NULL;
}

bool tuck_profile_ps(const tuck_profile *p, const char *name, int64_t *ps_out)
{
    return p != NULL && name != NULL && ps_out != NULL &&
           profile_find(p, name, strlen(name), ps_out);
}

struct write_args {
    const tuck_graph *g;
    const int64_t *ps;
    struct buf b;
};

static void do_write(void *arg)
{
    struct write_args *a = arg;
    struct json_out j;

    json_begin(&j, &a->b);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    json_str(&j, "unit", "ns");
    json_open(&j, "nodes", '{');
    for_each_node (a->g, n)
        if (a->ps[n] >= 0)
            json_float(&j, graph_str(a->g, node_at(a->g, n)->name), ns_of_ps(a->ps[n]));
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
    buf_flush(&a->b);
}

tuck_status tuck_profile_write(const tuck_graph *g, const int64_t *ps, tuck_write_fn write,
                               void *ctx)
{
    struct mem m;

    if (g == NULL || ps == NULL || write == NULL)
        return TUCK_EINVAL;
    mem_init(&m, &g->store->mem.alloc);
    struct write_args a = {.g = g, .ps = ps};
    buf_to(&a.b, &m, write, ctx);
    bool ok = mem_guard(&m, do_write, &a), failed = a.b.failed;
    buf_destroy(&a.b);
    return !ok ? TUCK_ENOMEM : failed ? TUCK_EIO : TUCK_OK;
}
