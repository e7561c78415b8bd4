/* UTF-8: checked once on the way in, so that nothing after the reader sees an invalid sequence. */
#ifndef TUCK_BASE_UTF8_H
#define TUCK_BASE_UTF8_H

#include "base/buf.h"

/* Bytes of the sequence at s, its code point in *c; 0 = invalid (overlong, surrogate, cut off). */
size_t utf8_next(const char *s, size_t len, uint32_t *c);

/* The first byte that is not part of a valid sequence, or a NUL; len if there is none. */
size_t utf8_check(const char *s, size_t len);

/* Surrogates, which an escape can name, become U+FFFD. */
void utf8_put(struct buf *b, uint32_t c);

/* By byte: may it be in a Python identifier? Bytes of longer sequences may. */
extern const bool byte_in_identifier[256];

/* Is s a Python identifier? */
static inline bool is_identifier(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;

    if (*c >= '0' && *c <= '9')
        return false;
    while (byte_in_identifier[*c])
        c++;
    return *c == '\0' && *s != '\0';
}

#endif
