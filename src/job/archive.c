#include "job/archive.h"

#include <string.h>
#include <zlib.h>

static const size_t most = (size_t)1 << 32; /* of what is unpacked */
static const char too_much[] = "it unpacks to more than 4 GiB";
static const char cut[] = "it is cut off";

struct unpack {
    struct mem *mem;
    archive_wanted *wanted;
    archive_file *fn;
    void *ctx;
    size_t total;
    bool enough;
};

static char *get(struct unpack *x, char *old, size_t old_size, size_t size)
{
    char *p = x->mem->alloc.resize(x->mem->alloc.ctx, old, old_size, size);

    x->enough &= p != NULL;
    return p;
}

static void drop(struct unpack *x, char *text, size_t size)
{
    if (text != NULL)
        x->mem->alloc.resize(x->mem->alloc.ctx, text, size, 0);
}

/* ---- inflating ---- */

struct flat {
    char *at;
    size_t len, size;
};

static const char *room(struct unpack *x, struct flat *f)
{
    if (f->size - f->len > 1)
        return NULL;
    if (x->total > most)
        return too_much;
    size_t size = f->size ? f->size * 2 : 1 << 16;
    char *p = get(x, f->at, f->size, size);
    if (p == NULL)
        return "out of memory";
    f->at = p;
    f->size = size;
    return NULL;
}

/* bits: 31 for gzip, also of several members; -15 for the raw data of a zip. */
static const char *inflate_all(struct unpack *x, const unsigned char *at, size_t n, int bits,
                               struct flat *f)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)at};
    const char *why = NULL;
    int st = Z_OK;

    if (inflateInit2(&z, bits) != Z_OK) {
        x->enough = false;
        return "out of memory";
    }
    while (why == NULL && st != Z_STREAM_END) {
        if ((why = room(x, f)) != NULL)
            break;
        size_t left = n - (size_t)(z.next_in - at), free = f->size - f->len - 1;
        z.avail_in = left > 1 << 30 ? 1 << 30 : (unsigned)left;
        z.avail_out = free > 1 << 30 ? 1 << 30 : (unsigned)free;
        unsigned before = z.avail_out;
        z.next_out = (unsigned char *)f->at + f->len;
        st = inflate(&z, Z_NO_FLUSH);
        f->len += before - z.avail_out;
        x->total += before - z.avail_out;
        if (st == Z_STREAM_END && bits == 31 && z.avail_in > 2 && z.next_in[0] == 0x1f &&
            inflateReset(&z) == Z_OK)
            st = Z_OK; /* another member follows */
        else if (st == Z_MEM_ERROR)
            x->enough = false;
        if (st == Z_BUF_ERROR && left == 0)
            why = cut;
        else if (st != Z_OK && st != Z_STREAM_END && st != Z_BUF_ERROR)
            why = z.msg != NULL ? "its compressed data is damaged" : "it cannot be inflated";
    }
    inflateEnd(&z);
    return why;
}

/* ---- tar ---- */

static size_t octal(const unsigned char *s, size_t n)
{
    size_t v = 0;

    if (s[0] & 0x80) { /* base 256, for files from 8 GiB on */
        for (size_t i = 1; i < n; i++)
            v = v << 8 | s[i];
        return v;
    }
    for (size_t i = 0; i < n && s[i] != '\0'; i++)
        if (s[i] >= '0' && s[i] <= '7')
            v = v << 3 | (size_t)(s[i] - '0');
    return v;
}

static bool is_tar(const unsigned char *h)
{
    size_t sum = 0;

    for (size_t i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return h[0] != '\0' && sum == octal(h + 148, 8);
}

struct tar_name {
    char text[4096];
    bool given; /* by a header before the file's own */
};

/* "27 path=a/long/name\n" in a header of the pax format. */
static void pax_name(const unsigned char *at, size_t n, struct tar_name *out)
{
    const char *s = memmem(at, n, " path=", 6);

    if (s == NULL)
        return;
    s += 6;
    size_t len = n - (size_t)(s - (const char *)at);
    const char *nl = memchr(s, '\n', len);
    len = nl ? (size_t)(nl - s) : len;
    if (len >= sizeof(out->text))
        return;
    memcpy(out->text, s, len);
    out->text[len] = '\0';
    out->given = true;
}

static void own_name(const unsigned char *h, struct tar_name *out)
{
    size_t n = 0,
           prefix = memcmp(h + 257, "ustar", 5) == 0 ? strnlen((const char *)h + 345, 155) : 0;

    if (prefix > 0) {
        memcpy(out->text, h + 345, prefix);
        out->text[prefix] = '/';
        n = prefix + 1;
    }
    size_t len = strnlen((const char *)h, 100);
    memcpy(out->text + n, h, len);
    out->text[n + len] = '\0';
}

static bool give(struct unpack *x, const char *name, const unsigned char *at, size_t n)
{
    char *text = get(x, NULL, 0, n + 1);

    if (text == NULL)
        return false;
    if (n > 0)
        memcpy(text, at, n);
    return x->fn(x->ctx, name, text, n, n + 1);
}

static const char *read_tar(struct unpack *x, const unsigned char *at, size_t n)
{
    struct tar_name name = {.given = false};
    bool go = true;

    for (size_t i = 0; go && i + 512 <= n && at[i] != '\0';) {
        const unsigned char *h = at + i;
        size_t size = octal(h + 124, 12);
        if (!is_tar(h))
            return "a header of the tar file is damaged";
        i += 512;
        if (size > n - i)
            return cut;
        if (h[156] == 'L' && size < sizeof(name.text)) { /* GNU: the next file's name */
            memcpy(name.text, at + i, size);
            name.text[size] = '\0';
            name.given = true;
        } else if (h[156] == 'x') {
            pax_name(at + i, size, &name);
        } else {
            if (!name.given)
                own_name(h, &name);
            if ((h[156] == '0' || h[156] == '\0') && x->wanted(name.text))
                go = give(x, name.text, at + i, size);
            name.given = false;
        }
        i += (size + 511) / 512 * 512;
        if (i > n)
            i = n;
    }
    return NULL;
}

/* ---- zip ---- */

static size_t little(const unsigned char *s, int n)
{
    size_t v = 0;

    while (n-- > 0)
        v = v << 8 | s[n];
    return v;
}

enum { ZIP_END = 22, ZIP_ENTRY = 46, ZIP_LOCAL = 30, ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* The file that an entry of the directory is about. */
static const char *read_entry(struct unpack *x, const unsigned char *at, size_t n,
                              const unsigned char *e, const char *name, bool *go)
{
    size_t packed = little(e + 20, 4), size = little(e + 24, 4), from = little(e + 42, 4);
    size_t method = little(e + 10, 2);
    struct flat f = {.at = NULL};

    if (packed == 0xFFFFFFFF || size == 0xFFFFFFFF || from == 0xFFFFFFFF)
        return "it has a file of 4 GiB or more";
    if (from + ZIP_LOCAL > n || memcmp(at + from, "PK\3\4", 4) != 0)
        return "its directory is damaged";
    from += ZIP_LOCAL + little(at + from + 26, 2) + little(at + from + 28, 2);
    if (from > n || packed > n - from)
        return cut;
    if ((little(e + 8, 2) & 1) != 0)
        return "it is encrypted";
    if (method == ZIP_STORED) {
        *go = give(x, name, at + from, packed);
        return NULL;
    }
    if (method != ZIP_DEFLATED)
        return "it is compressed in a way that Tuck does not know: use deflate, or tar.gz";
    const char *why = inflate_all(x, at + from, packed, -15, &f);
    if (why != NULL)
        drop(x, f.at, f.size);
    else
        *go = x->fn(x->ctx, name, f.at, f.len, f.size);
    return why;
}

static const char *read_zip(struct unpack *x, const unsigned char *at, size_t n)
{
    size_t end = n < ZIP_END ? 0 : n - ZIP_END;
    char name[4096];
    bool go = true;

    while (end > 0 && memcmp(at + end, "PK\5\6", 4) != 0 && n - end < 65536 + ZIP_END)
        end--;
    if (n < ZIP_END || memcmp(at + end, "PK\5\6", 4) != 0)
        return cut;
    size_t count = little(at + end + 10, 2), i = little(at + end + 16, 4);
    const char *why = NULL;
    for (size_t k = 0; k < count && go && why == NULL; k++) {
        if (i + ZIP_ENTRY > n || memcmp(at + i, "PK\1\2", 4) != 0)
            return "its directory is damaged";
        size_t len = little(at + i + 28, 2);
        if (i + ZIP_ENTRY + len > n)
            return cut;
        if (len > 0 && len < sizeof(name) && at[i + ZIP_ENTRY + len - 1] != '/') {
            memcpy(name, at + i + ZIP_ENTRY, len);
            name[len] = '\0';
            if (x->wanted(name))
                why = read_entry(x, at, n, at + i, name, &go);
        }
        i += ZIP_ENTRY + len + little(at + i + 30, 2) + little(at + i + 32, 2);
    }
    return why;
}

/* ---- */

bool archive_is(const unsigned char *head, size_t n)
{
    return (n > 2 && head[0] == 0x1f && head[1] == 0x8b) ||
           (n > 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0)) ||
           (n >= 512 && is_tar(head));
}

const char *archive_read(struct mem *m, const unsigned char *at, size_t n, archive_wanted *wanted,
                         archive_file *fn, void *ctx, bool *enough)
{
    struct unpack x = {m, wanted, fn, ctx, 0, true};
    struct flat f = {.at = NULL};
    const char *why = NULL;

    if (n > 4 && at[0] == 'P') {
        why = read_zip(&x, at, n);
    } else if (at[0] == 0x1f) {
        why = inflate_all(&x, at, n, 31, &f);
        bool tar = why == NULL && f.len >= 512 && is_tar((unsigned char *)f.at);
        if (tar)
            why = read_tar(&x, (unsigned char *)f.at, f.len);
        if (why != NULL || tar)
            drop(&x, f.at, f.size);
        else
            fn(ctx, NULL, f.at, f.len, f.size); /* one file */
    } else {
        why = read_tar(&x, at, n);
    }
    *enough = x.enough;
    return x.enough ? why : NULL;
}
