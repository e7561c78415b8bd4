#include "base/utf8.h"

/* clang-format off */
const bool byte_in_identifier[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};
/* clang-format on */

size_t utf8_next(const char *str, size_t len, uint32_t *c)
{
    const unsigned char *s = (const unsigned char *)str;

    if (len == 0)
        return 0;
    if (s[0] < 0x80) {
        *c = s[0];
        return 1;
    }
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};

    if (s[0] < 0xC2 || s[0] > 0xF4 || len < n)
        return 0;
    uint32_t v = s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        v = v << 6 | (s[i] & 0x3F);
    }
    if (v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF))
        return 0;
    *c = v;
    return n;
}

size_t utf8_check(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len) {
        uint64_t w;

        /* Eight ASCII bytes without a NUL at once: by far the usual case. */
        while (i + 8 <= len) {
            memcpy(&w, s + i, 8);
            if ((w | ((w - 0x0101010101010101u) & ~w)) & 0x8080808080808080u)
                break;
            i += 8;
        }
        for (size_t stop = i + 8 < len ? i + 8 : len; i < stop;) {
            uint32_t c;
            size_t n = utf8_next(s + i, len - i, &c);
            if (n == 0 || c == 0)
                return i;
            i += n;
        }
    }
    return len;
}

void utf8_put(struct buf *b, uint32_t c)
{
    if (c >= 0xD800 && c <= 0xDFFF)
        c = 0xFFFD;
    if (c < 0x80) {
        buf_chr(b, (char)c);
    } else if (c < 0x800) {
        buf_chr(b, (char)(0xC0 | c >> 6));
        buf_chr(b, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        buf_chr(b, (char)(0xE0 | c >> 12));
        buf_chr(b, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_chr(b, (char)(0x80 | (c & 0x3F)));
    } else {
        buf_chr(b, (char)(0xF0 | c >> 18));
        buf_chr(b, (char)(0x80 | (c >> 12 & 0x3F)));
        buf_chr(b, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_chr(b, (char)(0x80 | (c & 0x3F)));
    }
}
