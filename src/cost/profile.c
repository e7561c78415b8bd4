/* Profile files: measured times of nodes. */
#include "cost/profile.h"

#include <math.h>

#include "base/json.h"
#include "base/json_in.h"
#include "graph/graph.h"

struct tuck_profile {
    struct mem mem;
    struct strtab name;
    VEC(double) ns; /* by id of the name; ids are 1, 2, … and each has a time */
};

struct reading {
    struct jin in;
    tuck_profile *p;
};

/* Factors to ns, by the unit of the file. */
static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

static double read_unit(struct jin *in, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "unit");
    const char *word;

    if (at.v == NULL || !jin_want_str(in, &at, &word))
        return 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strcmp(units[i].name, word) == 0)
            return units[i].ns;
    jin_error(in, &at, "no unit '%.40s'; units are ns, us, ms, s", word);
    return 1;
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
    double factor = read_unit(in, &root);
    if (!jin_want_object(in, &nodes))
        return;
    for (void *i = jin_first(&nodes); i != NULL; i = jin_next(&nodes, i)) {
        struct jin_at at = jin_at_iter(&nodes, i);
        double v;

        if (!jin_want_number(in, &at, 0, true, 1e15, &v))
            continue;
        str_id id = str_intern(&r->p->name, at.key, strlen(at.key));
        while (r->p->ns.len <= id)
            vec_push(&r->p->mem, &r->p->ns, -1.0);
        r->p->ns.at[id] = v * factor;
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

    vec_free(&p->mem, &p->ns);
    strtab_destroy(&p->name);
    m.alloc.resize(m.alloc.ctx, p, sizeof(*p), 0);
}

size_t tuck_profile_count(const tuck_profile *p)
{
    return p != NULL && p->ns.len > 0 ? p->ns.len - 1 : 0;
}

bool profile_find(const tuck_profile *p, const char *name, size_t len, double *ns)
{
    str_id id = str_find(&p->name, name, len);

    if (id == 0 || id >= p->ns.len || p->ns.at[id] < 0)
        return false;
    *ns = p->ns.at[id];
    return true;
}

const char *tuck_profile_name(const tuck_profile *p, size_t i)
{
    return i < tuck_profile_count(p) ? str_text(&p->name, (str_id)i + 1) : NULL;
}

bool tuck_profile_ns(const tuck_profile *p, const char *name, double *ns_out)
{
    return p != NULL && name != NULL && ns_out != NULL &&
           profile_find(p, name, strlen(name), ns_out);
}

struct write_args {
    const tuck_graph *g;
    const double *ns;
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
        if (a->ns[n] >= 0 && isfinite(a->ns[n]))
            json_float(&j, graph_str(a->g, node_at(a->g, n)->name), a->ns[n]);
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
    buf_flush(&a->b);
}

tuck_status tuck_profile_write(const tuck_graph *g, const double *ns, tuck_write_fn write,
                               void *ctx)
{
    struct mem m;

    if (g == NULL || ns == NULL || write == NULL)
        return TUCK_EINVAL;
    mem_init(&m, &g->store->mem.alloc);
    struct write_args a = {.g = g, .ns = ns};
    buf_to(&a.b, &m, write, ctx);
    bool ok = mem_guard(&m, do_write, &a), failed = a.b.failed;
    buf_destroy(&a.b);
    return !ok ? TUCK_ENOMEM : failed ? TUCK_EIO : TUCK_OK;
}
