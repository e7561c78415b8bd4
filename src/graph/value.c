#include "graph/value.h"

#include <string.h>

#include "base/utf8.h"

const tuck_value *value_item(const tuck_value *v, size_t i)
{
    if (!value_is_container(v) || i >= v->a)
        return NULL;
    if (v->u.i == (int64_t)v->a)
        return v + 1 + i; /* items without nested values */
    const tuck_value *item = v + 1;
    while (i-- > 0)
        item = value_next(item);
    return item;
}

void values_free(struct mem *m, struct value_list *l)
{
    vec_free(m, &l->v);
    vec_free(m, &l->open);
}

void values_push(struct mem *m, struct value_list *l, tuck_value v)
{
    if (l->open.len > 0)
        l->v.at[l->open.at[l->open.len - 1]].a++;
    vec_push(m, &l->v, v);
}

void values_open(struct mem *m, struct value_list *l, tuck_value_kind kind)
{
    vec_reserve(m, &l->open, 1);
    values_push(m, l, (tuck_value){.kind = (uint8_t)kind});
    vec_push(m, &l->open, l->v.len - 1);
}

void values_close(struct value_list *l)
{
    assert(l->open.len > 0);
    uint32_t at = l->open.at[--l->open.len];

    l->v.at[at].u.i = l->v.len - 1 - at;
}

/* ---- strings ---- */

static bool printable(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7F && c < 0xA1) || c == 0xAD)
        return false;
    /* The separators, format and private characters that Python escapes; unassigned ones are
     * printed raw. This is only for strings made by Tuck: those that were read keep their
     * spelling. */
    if ((c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) ||
        (c >= 0x205F && c <= 0x206F))
        return false;
    return c != 0x3000 && c != 0xFEFF && !(c >= 0xD800 && c <= 0xF8FF) && c < 0xF0000;
}

void value_str_repr(struct buf *b, const char *s, size_t len)
{
    bool single = memchr(s, '\'', len) != NULL, twice = memchr(s, '"', len) != NULL;
    char quote = single && !twice ? '"' : '\'';
    const char *end = s + len;

    buf_chr(b, quote);
    while (s < end) {
        uint32_t c;
        size_t n = utf8_next(s, (size_t)(end - s), &c);

        if (n == 0) { /* not UTF-8: only possible through the public interface */
            buf_printf(b, "\\x%02x", (unsigned char)*s);
            s++;
            continue;
        }
        if (c == (uint32_t)quote || c == '\\') {
            buf_chr(b, '\\');
            buf_chr(b, (char)c);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            buf_str(b, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
        } else if (printable(c)) {
            buf_add(b, s, n);
        } else {
            buf_printf(b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }
        s += n;
    }
    buf_chr(b, quote);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `most` hex digits at s; the number of digits read. */
static size_t hex(const char *s, const char *end, size_t most, uint32_t *out)
{
    size_t n = 0;

    *out = 0;
    while (n < most && s + n < end && hex_digit(s[n]) >= 0)
        *out = *out * 16 + (uint32_t)hex_digit(s[n++]);
    return n;
}

/* One escape, s just after the backslash; returns its number of characters. */
static size_t unescape(struct buf *b, const char *s, const char *end)
{
    static const char plain[] = "\\\\''\"\"n\nt\tr\ra\ab\bf\fv\v";
    uint32_t c;

    for (const char *p = plain; *p; p += 2)
        if (*s == *p) {
            buf_chr(b, p[1]);
            return 1;
        }
    size_t want = *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0;
    if (want > 0 && hex(s + 1, end, want, &c) == want && c <= 0x10FFFF) {
        utf8_put(b, c);
        return want + 1;
    }
    if (*s >= '0' && *s <= '7') {
        size_t n = 0;
        for (c = 0; n < 3 && s + n < end && s[n] >= '0' && s[n] <= '7'; n++)
            c = c * 8 + (uint32_t)(s[n] - '0');
        utf8_put(b, c);
        return n;
    }
    if (*s == '\n')
        return 1;
    buf_chr(b, '\\'); /* Python keeps the backslash of an unknown escape */
    return 0;
}

bool value_str_decode(struct buf *b, const char *s, size_t len)
{
    if (len < 2 || (*s != '\'' && *s != '"') || s[len - 1] != *s)
        return false;
    size_t q = len >= 6 && s[1] == *s && s[2] == *s ? 3 : 1;
    const char *end = s + len - q;

    s += q;
    while (s < end) {
        const char *slash = memchr(s, '\\', (size_t)(end - s));

        if (slash == NULL || slash + 1 >= end) {
            buf_add(b, s, (size_t)(end - s));
            break;
        }
        buf_add(b, s, (size_t)(slash - s));
        s = slash + 1;
        s += unescape(b, s, end);
    }
    return true;
}
