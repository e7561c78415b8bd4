#include "run/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/json_in.h"

struct st_file {
    struct mem mem;
    struct arena arena;
    struct st_tensor *t; /* sorted by name */
    uint32_t n;
    void *map; /* NULL if the bytes are the caller's */
    size_t len;
};

/* ---- dtypes ---- */

static const struct {
    const char *name;
    enum dtype dtype;
} names[] = {
    {"BF16", DTYPE_BF16}, {"BOOL", DTYPE_B8}, {"C64", DTYPE_C64},          {"F16", DTYPE_F16},
    {"F32", DTYPE_F32},   {"F64", DTYPE_F64}, {"F8_E4M3", DTYPE_F8E4M3FN}, {"I16", DTYPE_I16},
    {"I32", DTYPE_I32},   {"I64", DTYPE_I64}, {"F8_E5M2", DTYPE_F8E5M2},   {"I8", DTYPE_I8},
    {"U16", DTYPE_U16},   {"U32", DTYPE_U32}, {"U64", DTYPE_U64},          {"U8", DTYPE_U8},
};

enum { N_NAMES = sizeof(names) / sizeof(*names) };

const char *st_dtype_name(enum dtype d)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (names[i].dtype == d)
            return names[i].name;
    return NULL;
}

static enum dtype dtype_of(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].dtype;
    return DTYPE_NONE;
}

/* ---- reading ---- */

enum { HEAD_MOST = 100 << 20, DIMS_MOST = 64 };

struct reading {
    struct st_file *f;
    struct jin in;
    const unsigned char *bytes;
    size_t len;
    const char *name;
    tuck_diags *diags;
    tuck_status status;
};

static void complain(struct reading *r, const char *what)
{
    struct diag_source source = {.file = r->name};
    struct diag_pos at = {.source = &source};

    diag_add(r->diags, TUCK_ERROR, at, NULL, "not a safetensors file: %s", what);
    r->status = TUCK_ESYNTAX;
}

static uint64_t head_length(const unsigned char *b)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | b[i];
    return v;
}

static bool read_shape(struct reading *r, const struct jin_at *at, struct st_tensor *t,
                       int64_t *elements)
{
    if (!jin_want_list(&r->in, at))
        return false;
    t->n = (uint32_t)jin_len(at);
    if (t->n > DIMS_MOST) {
        jin_error(&r->in, at, "has %u dimensions, the most are %d", t->n, DIMS_MOST);
        return false;
    }
    int64_t *size = arena_array(&r->f->arena, int64_t, (size_t)t->n + 1);
    *elements = 1;
    for (uint32_t i = 0; i < t->n; i++) {
        struct jin_at item = jin_item(at, i);
        if (!jin_want_int(&r->in, &item, 0, INT64_MAX, &size[i]))
            return false;
        if (!size_mul(*elements, size[i], elements)) {
            jin_error(&r->in, at, "has more elements than 64 bits can count");
            return false;
        }
    }
    t->size = size;
    return true;
}

static bool read_place(struct reading *r, const struct jin_at *at, struct st_tensor *t,
                       int64_t elements, size_t head)
{
    struct jin_at first = jin_item(at, 0), last = jin_item(at, 1);
    int64_t data = (int64_t)(r->len - head), begin, end;

    if (!jin_want_list(&r->in, at))
        return false;
    if (jin_len(at) != 2) {
        jin_expected(&r->in, at, "two numbers");
        return false;
    }
    if (!jin_want_int(&r->in, &first, 0, data, &begin) ||
        !jin_want_int(&r->in, &last, begin, data, &end))
        return false;
    t->bytes = end - begin;
    t->data = r->bytes + head + begin;
    int64_t need;
    if (!size_mul(elements, dtype_at(t->dtype)->bytes, &need) || need != t->bytes) {
        jin_error(&r->in, at, "the shape needs %lld bytes, the offsets give %lld", (long long)need,
                  (long long)t->bytes);
        return false;
    }
    return true;
}

static void read_tensor(struct reading *r, const struct jin_at *at, size_t head)
{
    struct st_tensor *t = &r->f->t[r->f->n];
    struct jin_at dtype = jin_member(at, "dtype"), shape = jin_member(at, "shape"),
                  place = jin_member(at, "data_offsets");
    const char *type;
    int64_t elements;

    if (!jin_want_object(&r->in, at) || !jin_want_str(&r->in, &dtype, &type))
        return;
    t->dtype = dtype_of(type);
    if (t->dtype == DTYPE_NONE) {
        jin_error(&r->in, &dtype, "unknown dtype '%s'", type);
        return;
    }
    if (!read_shape(r, &shape, t, &elements) || !read_place(r, &place, t, elements, head))
        return;
    t->name = arena_str(&r->f->arena, at->key, strlen(at->key));
    r->f->n++;
}

static int by_place(const void *x, const void *y)
{
    const struct st_tensor *a = x, *b = y;

    if (a->data != b->data)
        return (const char *)a->data < (const char *)b->data ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct st_tensor *)x)->name, ((const struct st_tensor *)y)->name);
}

/* Elements follow each other without gaps, from the header to the end of the file. */
static void check_places(struct reading *r, size_t head)
{
    struct st_file *f = r->f;
    const char *at = (const char *)r->bytes + head;

    qsort(f->t, f->n, sizeof(*f->t), by_place);
    for (uint32_t i = 0; i < f->n; i++) {
        if ((const char *)f->t[i].data != at) {
            complain(r, "the elements of its tensors overlap or have gaps between them");
            return;
        }
        at += f->t[i].bytes;
    }
    if (at != (const char *)r->bytes + r->len)
        complain(r, "there are bytes after the last tensor");
    qsort(f->t, f->n, sizeof(*f->t), by_name);
}

static void read_members(struct reading *r, size_t head)
{
    struct jin_at root = jin_root(&r->in);

    if (!jin_want_object(&r->in, &root))
        return;
    r->f->t = arena_array(&r->f->arena, struct st_tensor, jin_len(&root) + 1);
    for (void *i = jin_first(&root); i != NULL; i = jin_next(&root, i)) {
        struct jin_at at = jin_at_iter(&root, i);
        if (strcmp(at.key, "__metadata__") != 0)
            read_tensor(r, &at, head);
    }
    if (!r->in.bad)
        check_places(r, head);
}

static void do_read(void *arg)
{
    struct reading *r = arg;
    uint64_t len = r->len >= 8 ? head_length(r->bytes) : 0;

    if (r->len < 8 || len > HEAD_MOST || len > r->len - 8) {
        complain(r,
                 r->len < 8 ? "it is shorter than 8 bytes" : "the header is longer than the file");
        return;
    }
    r->status = jin_text(&r->in, (const char *)r->bytes + 8, (size_t)len, r->name, r->diags);
    if (r->status != TUCK_OK)
        return;
    read_members(r, 8 + (size_t)len);
    if (r->in.bad)
        r->status = TUCK_ESYNTAX;
}

static struct st_file *new_file(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct st_file *f = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*f));
    if (f == NULL)
        return NULL;
    *f = (struct st_file){.n = 0};
    mem_init(&f->mem, alloc);
    arena_init(&f->arena, &f->mem);
    return f;
}

static tuck_status read_into(struct st_file *f, const void *bytes, size_t len, const char *name,
                             tuck_diags *diags)
{
    struct reading r = {.f = f, .bytes = bytes, .len = len, .name = name, .diags = diags};
    bool ok = mem_guard(&f->mem, do_read, &r);

    jin_done(&r.in);
    return ok ? r.status : TUCK_ENOMEM;
}

tuck_status st_read(const void *bytes, size_t len, const char *name, const tuck_allocator *alloc,
                    tuck_diags *diags, struct st_file **out)
{
    struct st_file *f = new_file(alloc);

    if (f == NULL)
        return TUCK_ENOMEM;
    tuck_status st = read_into(f, bytes, len, name, diags);
    if (st == TUCK_OK)
        *out = f;
    else
        st_close(f);
    return st;
}

static tuck_status refuse(const char *path, const char *what, int error, tuck_diags *diags)
{
    struct diag_source source = {.file = path};
    struct diag_pos at = {.source = &source};

    diag_add(diags, TUCK_ERROR, at, NULL, "%s: %s", what, strerror(error));
    return TUCK_EIO;
}

static tuck_status map_file(struct st_file *f, const char *path, tuck_diags *diags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat s;
    tuck_status st = TUCK_OK;

    if (fd < 0)
        return refuse(path, "cannot be read", errno, diags);
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        st = refuse(path, "cannot be read", S_ISDIR(s.st_mode) ? EISDIR : EINVAL, diags);
    f->len = st == TUCK_OK ? (size_t)s.st_size : 0;
    if (f->len > 0) {
        f->map = mmap(NULL, f->len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (f->map == MAP_FAILED) {
            f->map = NULL;
            st = refuse(path, "cannot be read", errno, diags);
        }
    }
    close(fd);
    return st;
}

tuck_status st_open(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                    struct st_file **out)
{
    struct st_file *f = new_file(alloc);

    if (f == NULL)
        return TUCK_ENOMEM;
    tuck_status st = map_file(f, path, diags);
    if (st == TUCK_OK)
        st = read_into(f, f->map, f->len, path, diags);
    if (st == TUCK_OK)
        *out = f;
    else
        st_close(f);
    return st;
}

void st_close(struct st_file *f)
{
    if (f == NULL)
        return;
    struct mem m = f->mem;
    if (f->map != NULL)
        munmap(f->map, f->len);
    arena_destroy(&f->arena);
    mem_free(&m, f, sizeof(*f));
}

uint32_t st_count(const struct st_file *f)
{
    return f->n;
}

const struct st_tensor *st_at(const struct st_file *f, uint32_t i)
{
    return &f->t[i];
}

const struct st_tensor *st_find(const struct st_file *f, const char *name)
{
    struct st_tensor key = {.name = name};

    return f->n ? bsearch(&key, f->t, f->n, sizeof(key), by_name) : NULL;
}

/* ---- writing ---- */

struct writing {
    const struct st_tensor *t;
    uint32_t n;
    struct buf head;
};

static void do_head(void *arg)
{
    struct writing *w = arg;
    struct json_out j;
    int64_t at = 0;

    json_begin(&j, &w->head);
    json_open(&j, NULL, '{');
    for (uint32_t i = 0; i < w->n; i++) {
        const struct st_tensor *t = &w->t[i];
        json_open(&j, t->name, '{');
        json_str(&j, "dtype", st_dtype_name(t->dtype));
        json_open(&j, "shape", '[');
        for (uint32_t k = 0; k < t->n; k++)
            json_int(&j, NULL, t->size[k]);
        json_close(&j, ']');
        json_open(&j, "data_offsets", '[');
        json_int(&j, NULL, at);
        json_int(&j, NULL, at += t->bytes);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, '}');
    while ((w->head.len & 7) != 0) /* elements are aligned */
        buf_chr(&w->head, ' ');
}

static bool put_all(const struct writing *w, FILE *f)
{
    unsigned char len[8];

    for (int i = 0; i < 8; i++)
        len[i] = (unsigned char)((uint64_t)w->head.len >> 8 * i);
    bool ok = fwrite(len, 8, 1, f) == 1 && fwrite(w->head.at, w->head.len, 1, f) == 1;
    for (uint32_t i = 0; i < w->n && ok; i++)
        ok = w->t[i].bytes == 0 || fwrite(w->t[i].data, (size_t)w->t[i].bytes, 1, f) == 1;
    return ok;
}

static tuck_status put_file(const struct writing *w, const char *path, const char *new_path,
                            tuck_diags *diags)
{
    FILE *f = fopen(new_path, "we");

    if (f == NULL)
        return refuse(path, "cannot be written", errno, diags);
    bool ok = put_all(w, f);
    int error = errno;
    if (fclose(f) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(new_path, path) != 0) {
        ok = false;
        error = errno;
    }
    if (ok)
        return TUCK_OK;
    unlink(new_path);
    return refuse(path, "cannot be written", error, diags);
}

tuck_status st_write(const char *path, const struct st_tensor *t, uint32_t n,
                     const tuck_allocator *alloc, tuck_diags *diags)
{
    struct writing w = {.t = t, .n = n};
    struct mem m;

    for (uint32_t i = 0; i < n; i++)
        if (st_dtype_name(t[i].dtype) == NULL) {
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "'%s' is %s, which safetensors cannot hold",
                     t[i].name, dtype_at(t[i].dtype)->name);
            return TUCK_EINVAL;
        }
    mem_init(&m, alloc);
    buf_init(&w.head, &m);
    size_t size = strlen(path) + 32;
    char *new_path = m.alloc.resize(m.alloc.ctx, NULL, 0, size);
    tuck_status st = new_path != NULL && mem_guard(&m, do_head, &w) ? TUCK_OK : TUCK_ENOMEM;
    if (st == TUCK_OK) {
        snprintf(new_path, size, "%s.%ld.new", path, (long)getpid());
        st = put_file(&w, path, new_path, diags);
    }
    buf_destroy(&w.head);
    if (new_path != NULL)
        m.alloc.resize(m.alloc.ctx, new_path, size, 0);
    return st;
}
