#include "job/source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file_open.h"
#include "job/archive.h"
#include "job/folder.h"

enum { LOOK = 4096 };

static void complain(struct sources *s, const char *path, const char *what, const char *why)
{
    struct diag_source src = {.file = path};

    diag_add(s->diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "%s: %s", what, why);
    s->failed = s->no_file = true;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Of all files of a folder, those that may have graphs or known facts. */
static bool is_wanted(const char *path)
{
    static const char *const ends[] = {".log", ".txt", ".py", ".out", ".err"};
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (ends_in(base, ends[i]))
            return true;
    return ends_in(base, ".json") && strstr(base, "provenance") == NULL;
}

/* The caller made room for one more. */
static void keep(struct sources *s, const char *path, char *text, size_t len, size_t size)
{
    size_t look = len < LOOK ? len : LOOK;

    if (memchr(text, '\0', look) != NULL && !archive_is((unsigned char *)text, len)) {
        s->n_binary++;
        mem_free(s->mem, text, size);
        return;
    }
    text[len] = '\0';
    s->all.at[s->all.len++] = (struct source){path, text, len, size};
}

static bool grow(struct sources *s, char **text, size_t *size, size_t need)
{
    if (need <= *size)
        return true;
    size_t more = need * 2;
    char *p = s->mem->alloc.resize(s->mem->alloc.ctx, *text, *size, more);
    if (p == NULL)
        return false;
    *text = p;
    *size = more;
    return true;
}

static void add_file(struct sources *s, const char *path)
{
    FILE *f = file_open(path);
    char *text = NULL;
    size_t len = 0, size = 0, n = 1;
    bool enough = true;

    vec_reserve(s->mem, &s->all, 1);
    if (f == NULL) {
        complain(s, path, "cannot open", strerror(errno));
        return;
    }
    struct stat st;
    if (fstat(fileno(f), &st) == 0 && st.st_size > 0)
        enough = grow(s, &text, &size, (size_t)st.st_size / 2 + 64);
    while (enough && n > 0) {
        enough = grow(s, &text, &size, len + (1 << 14));
        n = enough ? fread(text + len, 1, size - len - 1, f) : 0;
        len += n;
    }
    bool broken = ferror(f) != 0;
    fclose(f);
    if (!enough || broken) {
        mem_free(s->mem, text, size);
        if (!enough)
            mem_exhausted(s->mem);
        complain(s, path, "cannot read", "the file system reports an error");
        return;
    }
    keep(s, path, text, len, size);
}

/* ---- archives ---- */

struct unpacking {
    struct sources *s;
    const char *path;
    bool enough;
};

/* No jump may pass by the reader of the archive. */
static bool add_member(void *ctx, const char *name, char *text, size_t len, size_t size)
{
    struct unpacking *x = ctx;
    struct sources *s = x->s;
    struct unpacked *u;

    u = s->mem->alloc.resize(s->mem->alloc.ctx, NULL, 0,
                             sizeof(*u) + (name ? strlen(name) : 0) + 1);
    if (u == NULL) {
        mem_free(s->mem, text, size);
        x->enough = false;
        return false;
    }
    *u = (struct unpacked){.next = s->unpacked, .text = text, .len = len, .size = size};
    strcpy(u->name, name ? name : "");
    s->unpacked = u;
    return true;
}

static void drop_unpacked(struct sources *s)
{
    while (s->unpacked != NULL) {
        struct unpacked *u = s->unpacked;
        s->unpacked = u->next;
        mem_free(s->mem, u->text, u->size);
        mem_free(s->mem, u, sizeof(*u) + strlen(u->name) + 1);
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct source *)a)->path, ((const struct source *)b)->path);
}

/* Replaces the archive, which was read as the last file, by what is in it. */
static void add_archive(struct sources *s, const char *path)
{
    struct source whole = s->all.at[s->all.len - 1];
    struct unpacking x = {s, path, true};
    bool enough;

    const char *why = archive_read(s->mem, (const unsigned char *)whole.text, whole.len, is_wanted,
                                   add_member, &x, &enough);
    if (!enough || !x.enough)
        mem_exhausted(s->mem); /* what is left is freed with the sources */
    if (why != NULL) {
        complain(s, path, "cannot unpack", why);
        return;
    }
    uint32_t first = s->all.len;
    while (s->unpacked != NULL) {
        struct unpacked *u = s->unpacked;
        size_t n = strlen(path) + strlen(u->name) + 2;
        char *name = arena_array(s->arena, char, n);
        vec_reserve(s->mem, &s->all, 1);
        snprintf(name, n, *u->name ? "%s/%s" : "%s%s", path, u->name);
        s->unpacked = u->next;
        keep(s, name, u->text, u->len, u->size);
        mem_free(s->mem, u, sizeof(*u) + strlen(u->name) + 1);
    }
    mem_free(s->mem, whole.text, whole.size);
    memmove(s->all.at + first - 1, s->all.at + first, (s->all.len - first) * sizeof(*s->all.at));
    s->all.len--;
    if (s->all.len >= first)
        qsort(s->all.at + first - 1, s->all.len - first + 1, sizeof(*s->all.at), by_path);
}

/* By its content, not by its name. */
static bool is_archive(const char *path)
{
    unsigned char head[ARCHIVE_LOOK];
    FILE *f = file_open(path);
    size_t n = f != NULL ? fread(head, 1, sizeof(head), f) : 0;

    if (f != NULL)
        fclose(f);
    return archive_is(head, n);
}

/* ---- folders ---- */

struct walk {
    struct sources *s;
    VEC(const char *) todo; /* folders, the next one last */
    struct folder_names now;
};

/* Links are not followed: a folder may contain itself. */
static bool is_kind(const char *path, mode_t kind)
{
    struct stat st;

    return lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

static void do_walk(void *p)
{
    struct walk *w = p;
    struct sources *s = w->s;

    while (w->todo.len > 0 && !s->failed) {
        const char *folder = w->todo.at[--w->todo.len];
        if (!folder_list(s->mem, folder, &w->now)) {
            complain(s, folder, "cannot read the folder", strerror(errno));
            return;
        }
        for (uint32_t i = 0; i < w->now.all.len && !s->failed; i++) {
            const char *path = w->now.all.at[i];
            if (is_wanted(path) && is_kind(path, S_IFREG))
                add_file(s, arena_str(s->arena, path, strlen(path)));
        }
        for (uint32_t i = w->now.all.len; i > 0; i--) { /* the first one comes off the end first */
            const char *path = w->now.all.at[i - 1];
            if (is_kind(path, S_IFDIR))
                vec_push(s->mem, &w->todo, arena_str(s->arena, path, strlen(path)));
        }
        folder_drop(s->mem, &w->now);
    }
}

static void add_folder(struct sources *s, const char *path)
{
    struct walk w = {.s = s};
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    vec_push(s->mem, &w.todo, arena_str(s->arena, path, n));
    bool ok = mem_guard(s->mem, do_walk, &w);
    folder_drop(s->mem, &w.now);
    vec_free(s->mem, &w.todo);
    if (!ok)
        mem_exhausted(s->mem);
}

/* ---- */

bool source_is_many(const char *path)
{
    struct stat st;

    if (folder_is(path))
        return true;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && is_archive(path);
}

void sources_add(struct sources *s, const char *path)
{
    const char *own = arena_str(s->arena, path, strlen(path));

    if (folder_is(path)) {
        add_folder(s, own);
        return;
    }
    uint32_t n = s->all.len;
    add_file(s, own);
    if (s->all.len > n && archive_is((unsigned char *)s->all.at[n].text, s->all.at[n].len))
        add_archive(s, own);
}

void sources_free(struct sources *s)
{
    drop_unpacked(s);
    for (uint32_t i = 0; i < s->all.len; i++)
        mem_free(s->mem, s->all.at[i].text, s->all.at[i].size);
    vec_free(s->mem, &s->all);
}
