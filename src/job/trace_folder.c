#include "job/trace_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "job/folder.h"

struct reading {
    struct trace_folder *f;
    const char *path;
    struct folder_names names;
    tuck_diags *diags, *own; /* own: of one file */
    uint32_t n_folder;
    tuck_status st;
};

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static bool may_be_trace(const char *path)
{
    struct stat st;

    return (ends_in(path, ".json") || ends_in(path, ".json.gz")) && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

/* What the profiler's handler writes: if it cannot be read, that is an error. */
static bool is_named_trace(const char *path)
{
    return ends_in(path, ".pt.trace.json") || ends_in(path, ".pt.trace.json.gz");
}

static void tell(struct reading *r)
{
    for (uint32_t i = 0; i < r->own->all.len; i++) {
        const tuck_diag *d = &r->own->all.at[i];
        struct diag_source src = {.file = d->file};
        diag_add(r->diags, d->severity,
                 (struct diag_pos){.source = &src, .line = d->line, .column = d->column}, d->note,
                 "%s", d->message);
    }
}

static void pass_over(struct reading *r, const char *path)
{
    vec_push(&r->f->mem, &r->f->passed, arena_str(&r->f->arena, path, strlen(path)));
}

static void add_file(struct reading *r, const char *path)
{
    struct trace_folder *f = r->f;
    struct trace *t = NULL;
    bool any;

    vec_reserve(&f->mem, &f->trace, 1);
    tuck_diags_clear(r->own);
    tuck_status st = trace_read_file(path, &f->mem.alloc, r->own, &any, &t);
    if (st == TUCK_OK && (any || is_named_trace(path))) {
        f->trace.at[f->trace.len++] = t;
        tell(r);
        return;
    }
    trace_free(t);
    if (st != TUCK_OK && (st != TUCK_ESYNTAX || any || is_named_trace(path))) {
        r->st = st;
        tell(r);
        return;
    }
    pass_over(r, path);
}

/* ---- order ---- */

static int64_t first_step(const struct trace *t)
{
    int64_t first = INT64_MAX;

    for (uint32_t i = 0; i < t->step.len; i++)
        first = t->step.at[i].number < first ? t->step.at[i].number : first;
    return first;
}

static int by_rank(const void *a, const void *b)
{
    const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;
    uint64_t i = (uint64_t)x->rank, k = (uint64_t)y->rank; /* -1 is the last */
    int64_t m = first_step(x), n = first_step(y);

    if (i != k)
        return i < k ? -1 : 1;
    return m != n ? (m < n ? -1 : 1) : strcmp(x->file, y->file);
}

/* ---- */

static void complain(struct reading *r, tuck_status st, const char *note, const char *what,
                     const char *why)
{
    struct diag_source src = {.file = r->path};

    diag_add(r->diags, TUCK_ERROR, (struct diag_pos){.source = &src}, note, "%s%s", what, why);
    r->st = st;
}

static void nothing(struct reading *r)
{
    if (r->names.all.len == 0)
        complain(r, TUCK_ESYNTAX, NULL, "the folder is empty", "");
    else
        complain(r, TUCK_ESYNTAX,
                 r->n_folder > 0
                     ? "folders in it are not looked into: name the one that has the traces"
                     : "traces are files whose names end in .json or .json.gz, as "
                       "tensorboard_trace_handler() writes them",
                 "no trace is in the folder", "");
}

static void do_read(void *arg)
{
    struct reading *r = arg;
    struct trace_folder *f = r->f;
    size_t n = strlen(r->path);

    while (n > 1 && r->path[n - 1] == '/')
        n--;
    if (!folder_list(&f->mem, arena_str(&f->arena, r->path, n), &r->names)) {
        complain(r, TUCK_EIO, NULL, "cannot read the folder: ", strerror(errno));
        return;
    }
    for (uint32_t i = 0; i < r->names.all.len && r->st == TUCK_OK; i++) {
        const char *path = r->names.all.at[i];
        r->n_folder += folder_is(path);
        if (may_be_trace(path))
            add_file(r, path);
        else
            pass_over(r, path);
    }
    if (r->st == TUCK_OK && f->trace.len == 0)
        nothing(r);
    if (f->trace.len > 0)
        qsort(f->trace.at, f->trace.len, sizeof(*f->trace.at), by_rank);
}

tuck_status trace_folder_read(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                              struct trace_folder *out)
{
    struct reading r = {.f = out, .path = path, .diags = diags, .own = tuck_diags_new(alloc)};

    *out = (struct trace_folder){.trace = {NULL, 0, 0}};
    mem_init(&out->mem, alloc);
    arena_init(&out->arena, &out->mem);
    if (r.own == NULL)
        return TUCK_ENOMEM;
    if (!mem_guard(&out->mem, do_read, &r))
        r.st = TUCK_ENOMEM;
    folder_drop(&out->mem, &r.names);
    tuck_diags_free(r.own);
    return r.st;
}

void trace_folder_free(struct trace_folder *f)
{
    for (uint32_t i = 0; i < f->trace.len; i++)
        trace_free(f->trace.at[i]);
    vec_free(&f->mem, &f->trace);
    vec_free(&f->mem, &f->passed);
    arena_destroy(&f->arena);
}
