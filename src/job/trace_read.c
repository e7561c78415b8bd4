/* Reads a trace: yajl calls back for every token, so memory does not grow with the file. */
#include <errno.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "base/file_open.h"
#include "base/owner.h"
#include "job/trace_event.h"
#include "job/trace_in.h"

/* Where the reader is. A file may also be a bare list of events: then that list is the root. */
enum where {
    IN_FILE,
    IN_ROOT,
    IN_EVENTS,
    IN_EVENT,
    IN_ARGS,
    IN_JOB,    /* distributedInfo */
    IN_GROUPS, /* distributedInfo.pg_config */
    IN_GROUP,
    IN_DEVICES, /* deviceProperties */
    IN_DEVICE,
};

enum key {
    KEY_NONE,
    KEY_EVENTS,
    KEY_JOB,
    KEY_DEVICES,
    KEY_PH,
    KEY_CAT,
    KEY_NAME,
    KEY_PID,
    KEY_TID,
    KEY_TS,
    KEY_DUR,
    KEY_ARGS,
    KEY_RANK,
    KEY_WORLD,
    KEY_BACKEND,
    KEY_GROUPS,
    KEY_GROUP_NAME,
    KEY_GROUP_SAYS,
    KEY_GROUP_SIZE,
    KEY_GROUP_RANKS,
};

static const struct {
    enum where in;
    const char *name;
    enum key key;
} keys[] = {
    {IN_EVENT, "ph", KEY_PH},
    {IN_EVENT, "cat", KEY_CAT},
    {IN_EVENT, "name", KEY_NAME},
    {IN_EVENT, "pid", KEY_PID},
    {IN_EVENT, "tid", KEY_TID},
    {IN_EVENT, "ts", KEY_TS},
    {IN_EVENT, "dur", KEY_DUR},
    {IN_EVENT, "args", KEY_ARGS},
    {IN_ROOT, "traceEvents", KEY_EVENTS},
    {IN_ROOT, "distributedInfo", KEY_JOB},
    {IN_ROOT, "deviceProperties", KEY_DEVICES},
    {IN_JOB, "rank", KEY_RANK},
    {IN_JOB, "world_size", KEY_WORLD},
    {IN_JOB, "backend", KEY_BACKEND},
    {IN_JOB, "pg_config", KEY_GROUPS},
    {IN_GROUP, "pg_name", KEY_GROUP_NAME},
    {IN_GROUP, "pg_desc", KEY_GROUP_SAYS},
    {IN_GROUP, "pg_size", KEY_GROUP_SIZE},
    {IN_GROUP, "ranks", KEY_GROUP_RANKS},
    {IN_DEVICE, "name", KEY_NAME},
};

struct reading {
    struct trace *t;
    struct trace_in *in;
    yajl_handle parser;
    enum where at, up[8];
    int n_up;
    uint32_t skip; /* depth inside of something that is not needed */
    uint32_t keep; /* depth inside of a list that is kept as text */
    struct buf kept;
    enum key key;
    enum trace_arg arg;
    bool done, events; /* the root has ended; there was a list of events */
    bool comma;        /* in a kept list: an item came before */
    struct trace_raw raw;
    struct trace_group group;
    uint64_t line, line_at; /* of the piece being parsed: lines before it, where its line begins */
    tuck_diags *diags;
    tuck_status status;
};

/* ---- kept lists: "Input Dims" and the like become one text ---- */

static void kept_item(struct reading *r, const char *s, size_t len, bool quoted)
{
    if (r->comma)
        buf_chr(&r->kept, ',');
    if (quoted)
        buf_chr(&r->kept, '"');
    buf_add(&r->kept, s, len);
    if (quoted)
        buf_chr(&r->kept, '"');
    r->comma = true;
}

static void kept_open(struct reading *r)
{
    kept_item(r, "[", 1, false);
    r->comma = false;
    r->keep++;
}

static void kept_close(struct reading *r)
{
    buf_chr(&r->kept, ']');
    r->comma = true;
    if (--r->keep > 0)
        return;
    if (r->at == IN_ARGS)
        trace_arg_text(&r->raw, r->arg, r->kept.at, r->kept.len);
    else
        r->group.ranks = str_intern(&r->t->str, r->kept.at, r->kept.len);
}

/* Is the list that begins here one to keep? */
static bool is_kept(const struct reading *r)
{
    return (r->at == IN_ARGS &&
            (r->arg == ARG_DIMS || r->arg == ARG_TYPES || r->arg == ARG_RANKS)) ||
           (r->at == IN_GROUP && r->key == KEY_GROUP_RANKS);
}

/* ---- containers ---- */

static void enter(struct reading *r, enum where at)
{
    r->up[r->n_up++] = r->at;
    r->at = at;
    r->key = KEY_NONE;
    r->arg = ARG_NONE;
}

static void leave(struct reading *r)
{
    r->at = r->up[--r->n_up];
    r->key = KEY_NONE;
    r->arg = ARG_NONE;
}

static int on_open_map(void *ctx)
{
    struct reading *r = ctx;

    if (r->skip > 0 || r->keep > 0) {
        r->skip++;
        return 1;
    }
    if (r->at == IN_FILE)
        enter(r, IN_ROOT);
    else if (r->at == IN_EVENTS) {
        trace_raw_clear(&r->raw);
        enter(r, IN_EVENT);
    } else if (r->at == IN_EVENT && r->key == KEY_ARGS)
        enter(r, IN_ARGS);
    else if (r->at == IN_ROOT && r->key == KEY_JOB)
        enter(r, IN_JOB);
    else if (r->at == IN_GROUPS) {
        r->group = (struct trace_group){.size = 0};
        enter(r, IN_GROUP);
    } else if (r->at == IN_DEVICES)
        enter(r, IN_DEVICE);
    else
        r->skip++;
    return 1;
}

static int on_close_map(void *ctx)
{
    struct reading *r = ctx;

    if (r->skip > 0) {
        r->skip--;
        return 1;
    }
    if (r->at == IN_EVENT)
        trace_event_add(r->t, &r->raw);
    if (r->at == IN_GROUP)
        vec_push(&r->t->mem, &r->t->group, r->group);
    leave(r);
    r->done = r->at == IN_FILE;
    return 1;
}

static int on_open_list(void *ctx)
{
    struct reading *r = ctx;

    if (r->skip > 0) {
        r->skip++;
        return 1;
    }
    if (r->keep > 0) {
        kept_open(r);
        return 1;
    }
    if (is_kept(r)) {
        r->kept.len = 0;
        r->comma = false;
        kept_open(r);
    } else if (r->at == IN_FILE || (r->at == IN_ROOT && r->key == KEY_EVENTS)) {
        r->events = true;
        enter(r, IN_EVENTS);
    } else if (r->at == IN_JOB && r->key == KEY_GROUPS)
        enter(r, IN_GROUPS);
    else if (r->at == IN_ROOT && r->key == KEY_DEVICES)
        enter(r, IN_DEVICES);
    else
        r->skip++;
    return 1;
}

static int on_close_list(void *ctx)
{
    struct reading *r = ctx;

    if (r->skip > 0) {
        r->skip--;
        return 1;
    }
    if (r->keep > 0) {
        kept_close(r);
        return 1;
    }
    leave(r);
    r->done = r->at == IN_FILE;
    return 1;
}

static int on_key(void *ctx, const unsigned char *s, size_t len)
{
    struct reading *r = ctx;

    if (r->skip > 0)
        return 1;
    r->key = KEY_NONE;
    if (r->at == IN_ARGS) {
        r->arg = trace_arg_find((const char *)s, len);
        return 1;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (keys[i].in == r->at && strlen(keys[i].name) == len && memcmp(keys[i].name, s, len) == 0)
            r->key = keys[i].key;
    return 1;
}

/* ---- values ---- */

static void set(struct buf *b, const char *s, size_t len)
{
    b->len = 0;
    buf_add(b, s, len);
}

static int64_t whole_of(const char *s, size_t len, int64_t low, int64_t none)
{
    struct trace_time t;

    trace_time_read(&t, s, len);
    return t.good && t.us >= low && t.ps == 0 && t.us <= INT32_MAX ? t.us : none;
}

static void event_value(struct reading *r, const char *s, size_t len, bool number)
{
    switch (r->key) {
    case KEY_PH: r->raw.ph = len == 1 ? *s : 0; break;
    case KEY_CAT: set(&r->raw.cat, s, len); break;
    case KEY_NAME: set(&r->raw.name, s, len); break;
    case KEY_PID: set(&r->raw.pid, s, len); break;
    case KEY_TID: set(&r->raw.tid, s, len); break;
    case KEY_TS:
    case KEY_DUR: {
        struct trace_time *t = r->key == KEY_TS ? &r->raw.ts : &r->raw.dur;
        if (number)
            trace_time_read(t, s, len);
        else
            *t = (struct trace_time){.given = true};
        break;
    }
    default: break;
    }
}

static void value(struct reading *r, const char *s, size_t len, bool number)
{
    if (r->skip > 0)
        return;
    if (r->keep > 0) {
        kept_item(r, s, len, !number);
        return;
    }
    if (r->at == IN_EVENT)
        event_value(r, s, len, number);
    else if (r->at == IN_ARGS && r->arg != ARG_NONE && number)
        trace_arg_number(&r->raw, r->arg, s, len);
    else if (r->at == IN_ARGS && r->arg != ARG_NONE)
        trace_arg_text(&r->raw, r->arg, s, len);
    else if (r->key == KEY_RANK)
        r->t->rank = whole_of(s, len, 0, -1);
    else if (r->key == KEY_WORLD)
        r->t->world = whole_of(s, len, 1, 0);
    else if (r->key == KEY_BACKEND)
        r->t->backend = str_intern(&r->t->str, s, len);
    else if (r->key == KEY_GROUP_NAME)
        r->group.name = str_intern(&r->t->str, s, len);
    else if (r->key == KEY_GROUP_SAYS)
        r->group.says = str_intern(&r->t->str, s, len);
    else if (r->key == KEY_GROUP_SIZE)
        r->group.size = whole_of(s, len, 1, 0);
    else if (r->key == KEY_GROUP_RANKS) {
        r->kept.len = 0;
        trace_add_ranks(&r->kept, s, len);
        r->group.ranks = str_intern(&r->t->str, buf_text(&r->kept), r->kept.len);
    } else if (r->at == IN_DEVICE && r->key == KEY_NAME && r->t->device == 0)
        r->t->device = str_intern(&r->t->str, s, len);
}

static int on_number(void *ctx, const char *s, size_t len)
{
    value(ctx, s, len, true);
    return 1;
}

static int on_string(void *ctx, const unsigned char *s, size_t len)
{
    value(ctx, (const char *)s, len, false);
    return 1;
}

static int on_null(void *ctx)
{
    struct reading *r = ctx;

    if (r->keep > 0 && r->skip == 0)
        kept_item(r, "", 0, true);
    return 1;
}

static int on_bool(void *ctx, int v)
{
    (void)v;
    return on_null(ctx);
}

static const yajl_callbacks callbacks = {
    on_null,     on_bool, NULL,         NULL,         on_number,     on_string,
    on_open_map, on_key,  on_close_map, on_open_list, on_close_list,
};

/* ---- yajl's memory ---- */

static void *take(void *ctx, void *p, size_t size)
{
    struct owner *o = ctx;
    tuck_allocator a = owner_allocator(o);
    void *q = a.resize(a.ctx, p, 0, size > 0 ? size : 1);

    if (q == NULL)
        mem_exhausted(&o->from);
    return q;
}

static void *yajl_take(void *ctx, size_t size)
{
    return take(ctx, NULL, size);
}

static void yajl_drop(void *ctx, void *p)
{
    tuck_allocator a = owner_allocator(ctx);

    if (p != NULL)
        a.resize(a.ctx, p, 0, 0);
}

/* ---- the file ---- */

static void complain(struct reading *r, uint64_t line, uint64_t column, const char *note,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void complain(struct reading *r, uint64_t line, uint64_t column, const char *note,
                     const char *fmt, ...)
{
    struct diag_source source = {.file = r->t->file};
    struct diag_pos pos = {.source = &source,
                           .line = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX,
                           .column = column < UINT32_MAX ? (uint32_t)column : UINT32_MAX};
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, pos, note, fmt, ap);
    va_end(ap);
    r->status = TUCK_ESYNTAX;
}

/* Counts the lines of a piece, or of its part before an error. */
static void count_lines(struct reading *r, const unsigned char *p, size_t n)
{
    const unsigned char *end = p + n, *q;

    while (p < end && (q = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        r->line++;
        r->line_at = r->t->n_bytes + n - (uint64_t)(end - q - 1);
        p = q + 1;
    }
    r->t->n_bytes += n;
}

static const char packed[] = "positions count the unpacked text";

static void syntax(struct reading *r, const unsigned char *p, size_t n)
{
    bool ended = r->done;
    size_t used = yajl_get_bytes_consumed(r->parser);
    char *why = (char *)yajl_get_error(r->parser, 0, p, n);
    const char *hint = r->t->n_bytes == 0 ? trace_in_hint(p, n) : NULL;
    const char *note = hint != NULL ? hint : r->in->gzip ? packed : NULL;

    why[strcspn(why, ".\n")] = '\0';
    count_lines(r, p, used < n ? used : n);
    uint64_t column = r->t->n_bytes - r->line_at + (used < n);
    if (ended)
        complain(r, r->line, column, note,
                 "byte %llu: more text follows the end of the trace; are these two files in one?",
                 (unsigned long long)r->t->n_bytes);
    else
        complain(r, r->line, column, note, "byte %llu: not JSON: %s",
                 (unsigned long long)r->t->n_bytes, why);
}

static void finish(struct reading *r)
{
    uint64_t column = r->t->n_bytes - r->line_at + 1;

    if (r->in->error != 0) {
        struct diag_source source = {.file = r->t->file};
        diag_add(r->diags, TUCK_ERROR, (struct diag_pos){.source = &source}, NULL,
                 "cannot read: %s", strerror(r->in->error));
        r->status = r->in->error == ENOMEM ? TUCK_ENOMEM : TUCK_EIO;
    } else if (r->in->wrong != NULL) {
        complain(r, r->line, column, packed, "gzip: %s, after %llu bytes of text", r->in->wrong,
                 (unsigned long long)r->t->n_bytes);
    } else if (r->t->n_bytes == 0) {
        complain(r, 1, 1, NULL, "the file is empty");
    } else if (!r->done && r->n_up > 0) {
        complain(r, r->line, column, NULL,
                 "the text ends after %llu bytes, in the middle of the trace: the file was cut, or "
                 "is still being written",
                 (unsigned long long)r->t->n_bytes);
    } else if (!r->events) {
        complain(r, 1, 1, "torch.profiler's export_chrome_trace() writes traces",
                 "not a trace: it has no list \"traceEvents\"");
    }
}

static void do_read(void *arg)
{
    struct reading *r = arg;
    const unsigned char *p;
    size_t n;

    while (r->status == TUCK_OK && (n = trace_in_next(r->in, &p)) > 0) {
        if (yajl_parse(r->parser, p, n) != yajl_status_ok)
            syntax(r, p, n);
        else
            count_lines(r, p, n);
    }
    if (r->status == TUCK_OK && r->in->wrong == NULL && r->in->error == 0 &&
        yajl_complete_parse(r->parser) != yajl_status_ok && (r->done || r->n_up == 0) &&
        r->t->n_bytes > 0)
        syntax(r, (const unsigned char *)"", 0);
    if (r->status == TUCK_OK)
        finish(r);
}

struct start {
    struct reading *r;
    yajl_alloc_funcs *funcs;
};

static void do_start(void *arg)
{
    struct start *s = arg;
    struct reading *r = s->r;
    const char *file = r->t->file;

    r->t->file = str_text(&r->t->str, str_intern(&r->t->str, file, strlen(file)));
    vec_push(&r->t->mem, &r->t->more,
             ((struct trace_more){.in_n = -1, .out_n = -1, .bytes = -1, .exposed = -1}));
    vec_push(&r->t->mem, &r->t->operand, ((struct trace_operands){.dims = 0}));
    r->parser = yajl_alloc(&callbacks, s->funcs, r);
    do_read(r);
}

static tuck_status read_in(struct trace_in *in, const char *name, const tuck_allocator *alloc,
                           tuck_diags *diags, bool *any, struct trace **out)
{
    struct owner own;
    yajl_alloc_funcs funcs = {yajl_take, take, yajl_drop, &own};
    struct reading r = {.in = in, .diags = diags, .line = 1, .t = trace_new(alloc)};
    struct start s = {&r, &funcs};

    if (r.t == NULL)
        return TUCK_ENOMEM;
    r.t->file = name;
    owner_init(&own, alloc);
    trace_raw_init(&r.raw, &r.t->mem);
    buf_init(&r.kept, &r.t->mem);
    if (!mem_guard_two(&r.t->mem, &own.from, do_start, &s))
        r.status = TUCK_ENOMEM;
    trace_raw_destroy(&r.raw);
    buf_destroy(&r.kept);
    owner_end(&own);
    if (r.status == TUCK_OK && r.t->n_skipped > 0)
        diag_add(diags, TUCK_WARNING,
                 (struct diag_pos){.source = &(struct diag_source){.file = r.t->file}}, NULL,
                 "%llu events are passed over: times that are not numbers, negative durations, or "
                 "months "
                 "away from the others",
                 (unsigned long long)r.t->n_skipped);
    *any = r.t->any;
    if (r.status == TUCK_OK)
        *out = r.t;
    else
        trace_free(r.t);
    return r.status;
}

/* Opens, reads and closes; f or text. */
static tuck_status read_all(FILE *f, const char *text, size_t len, const char *name,
                            const tuck_allocator *alloc, tuck_diags *diags, bool *any,
                            struct trace **out)
{
    struct mem m;

    mem_init(&m, alloc);
    struct trace_in *in = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*in));
    if (in == NULL)
        return TUCK_ENOMEM;
    tuck_status st = trace_in_open(in, f, text, len);
    if (st == TUCK_OK) {
        st = read_in(in, name, alloc, diags, any, out);
        trace_in_close(in);
    }
    mem_free(&m, in, sizeof(*in));
    return st;
}

tuck_status trace_read_text(const char *text, size_t len, const char *name,
                            const tuck_allocator *alloc, tuck_diags *diags, struct trace **out)
{
    bool any;

    return read_all(NULL, text, len, name, alloc, diags, &any, out);
}

tuck_status trace_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                            bool *any, struct trace **out)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : file_open(path);

    *any = false;
    if (f == NULL) {
        struct diag_source source = {.file = path};
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &source}, NULL, "cannot open: %s",
                 strerror(errno));
        return TUCK_EIO;
    }
    tuck_status st = read_all(f, NULL, 0, standard ? "<stdin>" : path, alloc, diags, any, out);
    if (!standard)
        fclose(f);
    return st;
}

/* ---- the object ---- */

struct trace *trace_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct trace *t = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*t));
    if (t == NULL)
        return NULL;
    *t = (struct trace){.mem = m, .rank = -1, .file = ""};
    strtab_init(&t->str, &t->mem);
    return t;
}

void trace_free(struct trace *t)
{
    if (t == NULL)
        return;
    struct mem m = t->mem;

    vec_free(&t->mem, &t->gpu);
    vec_free(&t->mem, &t->cpu);
    vec_free(&t->mem, &t->more);
    vec_free(&t->mem, &t->operand);
    vec_free(&t->mem, &t->launch);
    vec_free(&t->mem, &t->step);
    vec_free(&t->mem, &t->region);
    vec_free(&t->mem, &t->group);
    vec_free(&t->mem, &t->process);
    strtab_destroy(&t->str);
    mem_free(&m, t, sizeof(*t));
}
