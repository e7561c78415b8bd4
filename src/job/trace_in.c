#include "job/trace_in.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* More bytes behind those that inflate has not used yet. */
static void fill(struct trace_in *in)
{
    unsigned char *raw = in->raw + TRACE_IN_WORD;
    size_t left = in->z.avail_in, n;

    if (in->end || left == TRACE_IN_PIECE)
        return;
    memmove(raw, in->z.next_in, left);
    if (in->f != NULL) {
        n = fread(raw + left, 1, TRACE_IN_PIECE - left, in->f);
        if (n == 0 && ferror(in->f))
            in->error = errno != 0 ? errno : EIO;
        in->end = n == 0;
    } else {
        n = in->len < TRACE_IN_PIECE - left ? in->len : TRACE_IN_PIECE - left;
        memcpy(raw + left, in->text, n);
        in->text += n;
        in->len -= n;
        in->end = in->len == 0;
    }
    in->z.next_in = raw;
    in->z.avail_in = (uInt)(left + n);
}

static bool is_gzip(const struct trace_in *in)
{
    return in->z.avail_in >= 2 && in->z.next_in[0] == 0x1F && in->z.next_in[1] == 0x8B;
}

tuck_status trace_in_open(struct trace_in *in, FILE *f, const char *text, size_t len)
{
    enum { GZIP_ONLY = 15 + 16 };

    in->f = f;
    in->text = (const unsigned char *)(text != NULL ? text : "");
    in->len = len;
    in->gzip = in->member = in->end = false;
    in->wrong = NULL;
    in->error = 0;
    in->begun = in->string = in->escape = false;
    in->n_held = 0;
    memset(&in->z, 0, sizeof(in->z));
    in->z.next_in = in->raw + TRACE_IN_WORD;
    while (in->z.avail_in < 2 && !in->end)
        fill(in);
    in->gzip = in->member = is_gzip(in);
    if (in->gzip && inflateInit2(&in->z, GZIP_ONLY) != Z_OK)
        return TUCK_ENOMEM;
    return TUCK_OK;
}

void trace_in_close(struct trace_in *in)
{
    if (in->gzip)
        inflateEnd(&in->z);
}

/* After a member: another one, or the end. Zeros behind it are padding. */
static void next_member(struct trace_in *in)
{
    while (in->z.avail_in < 2 && !in->end)
        fill(in);
    in->member = is_gzip(in);
    if (in->member) {
        inflateReset(&in->z);
        return;
    }
    while (in->z.avail_in > 0 || !in->end) {
        if (in->z.avail_in == 0) {
            fill(in);
            continue;
        }
        if (*in->z.next_in != 0) {
            in->wrong = "there are other bytes behind the end of the gzip data";
            return;
        }
        in->z.next_in++;
        in->z.avail_in--;
    }
}

static size_t inflate_some(struct trace_in *in)
{
    in->z.next_out = in->out + TRACE_IN_WORD;
    in->z.avail_out = TRACE_IN_PIECE;
    while (in->member && in->wrong == NULL && in->z.avail_out == TRACE_IN_PIECE) {
        if (in->z.avail_in == 0)
            fill(in);
        if (in->z.avail_in == 0 && in->end) {
            in->wrong = "the gzip data ends early: the file was cut, or is still being written";
            break;
        }
        int code = inflate(&in->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            next_member(in);
        else if (code == Z_MEM_ERROR)
            in->error = ENOMEM;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            in->wrong = in->z.msg != NULL ? in->z.msg : "the gzip data is damaged";
        if (in->error != 0)
            break;
    }
    return TRACE_IN_PIECE - in->z.avail_out;
}

/* The next bytes, in a buffer with room in front. */
static size_t next_bytes(struct trace_in *in, unsigned char **piece)
{
    size_t n;

    *piece = in->out + TRACE_IN_WORD;
    if (in->error != 0 || in->wrong != NULL)
        return 0;
    if (in->gzip)
        return inflate_some(in);
    if (in->z.avail_in == 0)
        fill(in);
    *piece = in->raw + TRACE_IN_WORD;
    n = in->error == 0 ? in->z.avail_in : 0;
    in->z.avail_in = 0;
    return n;
}

/* ---- what is not JSON ---- */

const char *trace_in_hint(const unsigned char *p, size_t n)
{
    static const struct {
        const char *magic;
        size_t at, len;
        const char *says;
    } others[] = {
        {"\x1F\x8B", 0, 2, "this is gzip within gzip: unpack it once"},
        {"\x28\xB5\x2F\xFD", 0, 4, "this is zstd: unpack it, or pack it by gzip"},
        {"\xFD\x37zXZ", 0, 5, "this is xz: unpack it, or pack it by gzip"},
        {"BZh", 0, 3, "this is bzip2: unpack it, or pack it by gzip"},
        {"PK\3\4", 0, 4, "this is a zip archive: unpack it, and name the traces in it"},
        {"ustar", 257, 5, "this is a tar archive: unpack it, and name the traces in it"},
        {"\xFF\xFE", 0, 2, "this is UTF-16 or UTF-32: JSON is UTF-8"},
        {"\xFE\xFF", 0, 2, "this is UTF-16: JSON is UTF-8"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (n >= others[i].at + others[i].len &&
            memcmp(p + others[i].at, others[i].magic, others[i].len) == 0)
            return others[i].says;
    return NULL;
}

/* NaN, inf, -Infinity as Python, C and C++ write them. */
static bool is_no_number(const unsigned char *s, size_t n)
{
    static const char *const words[] = {"nan", "inf", "infinity"};

    if (n > 0 && *s == '-')
        s++, n--;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strlen(words[i]) == n && strncasecmp((const char *)s, words[i], n) == 0)
            return true;
    return false;
}

static bool is_letter(unsigned char c)
{
    return (unsigned)((c | 32) - 'a') < 26;
}

/* Over the rest of a string; the number of bytes up to its end. */
static size_t pass_string(struct trace_in *in, const unsigned char *p, size_t n)
{
    const unsigned char *quote = in->escape ? NULL : memchr(p, '"', n);
    size_t i = 0;

    if (quote != NULL && (quote == p || quote[-1] != '\\')) {
        in->string = false;
        return (size_t)(quote - p) + 1;
    }
    for (; i < n && in->string; i++) {
        if (in->escape)
            in->escape = false;
        else if (p[i] == '\\')
            in->escape = true;
        else if (p[i] == '"')
            in->string = false;
    }
    return i;
}

/* Replaces the words of a piece. Returns how much of it is done: not the word that it ends in,
 * unless it is the last piece. */
static size_t replace(struct trace_in *in, unsigned char *p, size_t n, bool last)
{
    for (size_t i = 0, from; i < n;) {
        if (in->string) {
            i += pass_string(in, p + i, n - i);
            continue;
        }
        if (!is_letter(p[i]) && p[i] != '-') {
            in->string = p[i++] == '"';
            continue;
        }
        for (from = i++; i < n && is_letter(p[i]);)
            i++;
        if (i == n && !last && n - from < TRACE_IN_WORD)
            return from;
        if (is_no_number(p + from, i - from)) {
            memset(p + from, ' ', i - from);
            p[from] = p[from + 1] = '"';
        }
    }
    return n;
}

size_t trace_in_next(struct trace_in *in, const unsigned char **piece)
{
    size_t done = 0;

    while (done == 0) {
        unsigned char *p;
        size_t n = next_bytes(in, &p), held = in->n_held;
        bool last = n == 0;

        memcpy(p -= held, in->held, held);
        n += held;
        in->n_held = 0;
        *piece = p;
        if (n == 0)
            return 0;
        if (!in->begun && n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
            memset(p, ' ', 3);
        done = replace(in, p, n, last);
        in->begun = true;
        in->n_held = n - done;
        memcpy(in->held, p + done, n - done);
    }
    return done;
}
