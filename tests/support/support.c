#include "support/support.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

/* ---- texts ---- */

bool text_add(void *ctx, const char *s, size_t n)
{
    struct text *t = ctx;

    if (t->cap - t->len < n + 1) {
        t->cap = (t->len + n + 1) * 2;
        t->at = realloc(t->at, t->cap);
        if (t->at == NULL)
            die("no memory for a text of %zu bytes", t->cap);
    }
    memcpy(t->at + t->len, s, n);
    t->len += n;
    t->at[t->len] = '\0';
    return true;
}

bool text_drop(void *ctx, const char *s, size_t n)
{
    (void)ctx, (void)s, (void)n;
    return true;
}

bool text_refuse(void *ctx, const char *s, size_t n)
{
    (void)ctx, (void)s, (void)n;
    return false;
}

void text_clear(struct text *t)
{
    t->len = 0;
    text_add(t, "", 0);
}

void text_done(struct text *t)
{
    free(t->at);
    *t = (struct text){NULL, 0, 0};
}

static void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void text_printf(struct text *t, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        die("no memory");
    va_end(ap);
    text_add(t, s, strlen(s));
    free(s);
}

struct text text_of_file(const char *path)
{
    struct text t = {NULL, 0, 0};
    char chunk[65536];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL)
        die("cannot open %s", path);
    text_clear(&t);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        text_add(&t, chunk, n);
    fclose(f);
    return t;
}

void text_to_file(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "w");

    if (f == NULL || fwrite(t->at, 1, t->len, f) != t->len || fclose(f) != 0)
        die("cannot write %s", path);
}

/* ---- graphs ---- */

char *graph_text(const tuck_graph *g)
{
    struct text t = {NULL, 0, 0};

    text_clear(&t);
    tuck_status st = tuck_graph_print(g, TUCK_FORM_TEXT, NULL, text_add, &t);
    if (st != TUCK_OK)
        die("cannot print: %s", tuck_status_text(st));
    return t.at;
}

char *diags_text(const tuck_diags *d)
{
    struct text t = {NULL, 0, 0};

    text_clear(&t);
    for (size_t i = 0; i < tuck_diags_count(d); i++) {
        const tuck_diag *x = tuck_diags_at(d, i);
        text_printf(&t, "%s:%u:%u: %s: %s", x->file, x->line, x->column,
                    x->severity == TUCK_ERROR ? "error" : "warning", x->message);
        if (x->note != NULL)
            text_printf(&t, " (%s)", x->note);
        text_add(&t, "\n", 1);
    }
    return t.at;
}

tuck_doc *read_or_null(const char *text, struct text *why)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_doc *doc = NULL;
    tuck_status st = tuck_doc_read_text(text, strlen(text), "t.txt", NULL, d, &doc);

    if (st != TUCK_OK && why != NULL) {
        char *s = diags_text(d);
        text_add(why, s, strlen(s));
        free(s);
    }
    tuck_diags_free(d);
    return st == TUCK_OK ? doc : NULL;
}

tuck_doc *read_or_die(const char *text)
{
    struct text why = {NULL, 0, 0};
    tuck_doc *doc;

    text_clear(&why);
    doc = read_or_null(text, &why);
    if (doc == NULL)
        die("%s\n--- in the text\n%s", why.at, text);
    text_done(&why);
    return doc;
}

/* ---- the same graph twice ---- */

/* Atom by atom; nodes by name, because numbers may differ. */
static bool same_values(const tuck_graph *g, const tuck_value *v, const tuck_graph *h,
                        const tuck_value *w)
{
    const tuck_value *end = tuck_value_next(v), *stop = tuck_value_next(w);

    for (; v < end && w < stop; v++, w++) {
        if (v->kind != w->kind || tuck_value_len(v) != tuck_value_len(w))
            return false;
        tuck_value_kind kind = tuck_value_kind_of(v);
        if (kind == TUCK_V_NODE && strcmp(tuck_node_name(g, tuck_value_node(v)),
                                          tuck_node_name(h, tuck_value_node(w))) != 0)
            return false;
        double a = tuck_value_float(v), b = tuck_value_float(w);
        if (tuck_value_int(v) != tuck_value_int(w) || (a != b && (a == a || b == b)))
            return false;
        if (kind != TUCK_V_FLOAT && strcmp(tuck_value_text(g, v), tuck_value_text(h, w)) != 0)
            return false;
    }
    return v == end && w == stop;
}

static const char *difference(const tuck_graph *g, tuck_node n, const tuck_graph *h, tuck_node m)
{
    if (tuck_node_kind(g, n) != tuck_node_kind(h, m))
        return "kind";
    if (strcmp(tuck_node_target(g, n), tuck_node_target(h, m)) != 0 &&
        tuck_node_kind(g, n) != TUCK_OUTPUT)
        return "target";
    if (tuck_node_arg_count(g, n) != tuck_node_arg_count(h, m) ||
        tuck_node_kwarg_count(g, n) != tuck_node_kwarg_count(h, m))
        return "number of arguments";
    for (size_t i = 0; i < tuck_node_arg_count(g, n); i++)
        if (!same_values(g, tuck_node_arg(g, n, i), h, tuck_node_arg(h, m, i)))
            return "arguments";
    for (size_t i = 0; i < tuck_node_kwarg_count(g, n); i++)
        if (strcmp(tuck_node_kwarg_name(g, n, i), tuck_node_kwarg_name(h, m, i)) != 0 ||
            !same_values(g, tuck_node_kwarg(g, n, i), h, tuck_node_kwarg(h, m, i)))
            return "keyword arguments";
    return tuck_node_use_count(g, n) != tuck_node_use_count(h, m) ? "number of uses" : NULL;
}

/* The next node from n on that is (or is not) an input. */
static tuck_node next_of(const tuck_graph *g, tuck_node n, bool input)
{
    while (!tuck_is_none(n) && (tuck_node_kind(g, n) == TUCK_PLACEHOLDER) != input)
        n = tuck_graph_next(g, n);
    return n;
}

/* Compares inputs in order, and all others in order. str(graph) mixes them; no other text does. */
static bool same_order(const tuck_graph *g, const tuck_graph *h)
{
    for (int input = 0; input < 2; input++) {
        tuck_node n = next_of(g, tuck_graph_first(g), input);
        tuck_node m = next_of(h, tuck_graph_first(h), input);

        while (!tuck_is_none(n) && !tuck_is_none(m)) {
            if (strcmp(tuck_node_name(g, n), tuck_node_name(h, m)) != 0 &&
                tuck_node_kind(g, n) != TUCK_OUTPUT)
                return false;
            n = next_of(g, tuck_graph_next(g, n), input);
            m = next_of(h, tuck_graph_next(h, m), input);
        }
        if (n.id != 0 || m.id != 0)
            return false;
    }
    return true;
}

/* Compares nodes by name; opaque statements without a name are only counted. */
static bool same_graph(const tuck_graph *g, tuck_graph *h, struct text *why)
{
    if (tuck_graph_size(g) != tuck_graph_size(h) ||
        tuck_graph_child_count(g) != tuck_graph_child_count(h)) {
        text_printf(why, "%zu nodes printed, %zu read\n", tuck_graph_size(g), tuck_graph_size(h));
        return false;
    }
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n)) {
        tuck_node m = tuck_graph_find(h, tuck_node_name(g, n));
        const char *what = "name";

        if (tuck_node_kind(g, n) == TUCK_OUTPUT)
            m = tuck_graph_output(h);
        else if (*tuck_node_name(g, n) == '\0')
            continue;
        if (!tuck_is_none(m))
            what = difference(g, n, h, m);
        if (what != NULL) {
            text_printf(why, "'%s' comes back with another %s\n", tuck_node_name(g, n), what);
            return false;
        }
    }
    if (!same_order(g, h)) {
        text_printf(why, "the nodes come back in another order\n");
        return false;
    }
    for (size_t i = 0; i < tuck_graph_child_count(g); i++) /* tests do not nest deeply */
        if (!same_graph(tuck_graph_child(g, i), tuck_graph_child(h, i), why))
            return false;
    return true;
}

char *check_fixpoint(const tuck_graph *g)
{
    struct text why = {NULL, 0, 0};
    char *once = graph_text(g), *twice = NULL;

    text_clear(&why);
    tuck_doc *doc = read_or_null(once, &why);
    if (doc == NULL) {
        text_printf(&why, "--- cannot be read\n%s", once);
        free(once);
        return why.at;
    }
    tuck_graph *h = tuck_doc_graph(doc, 0);
    twice = graph_text(h);
    bool same = strcmp(once, twice) == 0;
    if (!same)
        text_printf(&why, "--- printed\n%s\n--- read and printed again\n%s", once, twice);
    else if (!same_graph(g, h, &why)) {
        text_printf(&why, "%s", once);
        same = false;
    }
    tuck_doc_free(doc);
    free(once);
    free(twice);
    if (!same)
        return why.at;
    text_done(&why);
    return NULL;
}

/* ---- users ---- */

struct mention {
    uint32_t def, user;
};

struct mentions {
    struct mention *at;
    size_t n, cap;
};

static void mention(struct mentions *m, uint32_t def, uint32_t user)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->at = realloc(m->at, m->cap * sizeof(*m->at));
        if (m->at == NULL)
            die("no memory");
    }
    m->at[m->n++] = (struct mention){def, user};
}

static void mention_all(struct mentions *m, const tuck_value *v, uint32_t user)
{
    const tuck_value *end = tuck_value_next(v);

    for (; v < end; v++)
        if (!tuck_is_none(tuck_value_node(v)))
            mention(m, tuck_value_node(v).id, user);
}

static int by_def(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;

    if (x->def != y->def)
        return x->def < y->def ? -1 : 1;
    return (x->user > y->user) - (x->user < y->user);
}

char *check_users(const tuck_graph *g)
{
    struct mentions said = {NULL, 0, 0}, kept = {NULL, 0, 0};
    struct text why = {NULL, 0, 0};
    size_t n_nodes = 0;
    tuck_node last = {0};

    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n)) {
        for (size_t i = 0; i < tuck_node_arg_count(g, n); i++)
            mention_all(&said, tuck_node_arg(g, n, i), n.id);
        for (size_t i = 0; i < tuck_node_kwarg_count(g, n); i++)
            mention_all(&said, tuck_node_kwarg(g, n, i), n.id);
        size_t uses = 0;
        for (tuck_use u = tuck_node_uses(g, n); u.id; u = tuck_use_next(g, u), uses++)
            mention(&kept, n.id, tuck_use_user(g, u).id);
        if (uses != tuck_node_use_count(g, n))
            text_printf(&why, "%s has %zu uses and counts %zu\n", tuck_node_name(g, n), uses,
                        tuck_node_use_count(g, n));
        if (tuck_graph_prev(g, n).id != last.id)
            text_printf(&why, "%s has another before it than behind it\n", tuck_node_name(g, n));
        last = n;
        n_nodes++;
    }
    if (n_nodes != tuck_graph_size(g) || tuck_graph_last(g).id != last.id)
        text_printf(&why, "%zu nodes in the list, %zu counted\n", n_nodes, tuck_graph_size(g));
    if (said.n > 0)
        qsort(said.at, said.n, sizeof(*said.at), by_def);
    if (kept.n > 0)
        qsort(kept.at, kept.n, sizeof(*kept.at), by_def);
    if (said.n != kept.n ||
        (said.n > 0 && memcmp(said.at, kept.at, said.n * sizeof(*said.at)) != 0))
        text_printf(&why, "users are not what the arguments say (%zu mentions, %zu uses)\n", said.n,
                    kept.n);
    free(said.at);
    free(kept.at);
    return why.at;
}

/* ---- files ---- */

struct paths {
    char **at;
    size_t n;
    const char *end;
};

static void walk(struct paths *p, const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    if (d == NULL)
        die("cannot open %s", dir);
    while ((e = readdir(d)) != NULL) {
        char *path = NULL;

        if (e->d_name[0] == '.')
            continue;
        if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
            die("no memory");
        size_t n = strlen(path), m = strlen(p->end);
        if (e->d_type == DT_DIR) {
            walk(p, path);
        } else if (n >= m && strcmp(path + n - m, p->end) == 0) {
            p->at = realloc(p->at, (p->n + 1) * sizeof(*p->at));
            if (p->at == NULL)
                die("no memory");
            p->at[p->n++] = path;
            continue;
        }
        free(path);
    }
    closedir(d);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **find_paths(const char *dir, const char *end, size_t *n_out)
{
    struct paths p = {NULL, 0, end};

    walk(&p, dir);
    if (p.n > 0)
        qsort(p.at, p.n, sizeof(*p.at), by_text);
    *n_out = p.n;
    return p.at;
}

void free_paths(char **paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
}

/* ---- memory ---- */

static void *faulty_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct faulty *f = ctx;

    if (new_size == 0) {
        f->live -= p ? old_size : 0;
        free(p);
        return NULL;
    }
    f->calls++;
    if (f->fail_at != 0 && (f->calls == f->fail_at || (f->stay && f->calls > f->fail_at))) {
        f->failed = true;
        return NULL;
    }
    /* Always a new block, so that pointers kept across a resize are detected. */
    void *q = malloc(new_size);
    if (q == NULL)
        die("no memory");
    if (p != NULL)
        memcpy(q, p, old_size < new_size ? old_size : new_size);
    free(p);
    f->live += new_size - (p ? old_size : 0);
    return q;
}

tuck_allocator faulty_allocator(struct faulty *f)
{
    return (tuck_allocator){f, faulty_resize};
}

/* ---- random numbers ---- */

uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
    return n ? (uint32_t)((rng_next(r) >> 32) * n >> 32) : 0;
}

uint64_t seed_of(const char *test)
{
    const char *s = getenv("TUCK_SEED");
    uint64_t drawn = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    uint64_t seed = s ? strtoull(s, NULL, 0) : getenv("TUCK_SOAK") ? drawn : 1;

    printf("# %s: TUCK_SEED=%llu\n", test, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

size_t rounds(size_t n)
{
    return getenv("TUCK_SOAK") ? 10 * n : n;
}
