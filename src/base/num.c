#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIGITS = 800,    /* no double, and nothing half-way between two, has this many */
    MOST_EXPONENT = 99999 /* beyond the range of a double for any digits */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *sign(const char *p, const char *end, bool *minus)
{
    *minus = p < end && *p == '-';
    return p + (p < end && (*p == '-' || *p == '+'));
}

/* The decimal point is the only character that a locale changes, so strtod() gets a text without
 * one: 12.5e-3 as 125e-4. */
bool num_float(const char *s, size_t len, double *out)
{
    char text[MOST_DIGITS + 32];
    const char *p = s, *end = s + len;
    bool minus, down, point = false, any = false, rest = false;
    size_t n = 0;
    long scale = 0, given = 0;

    p = sign(p, end, &minus);
    for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        if (n == 0 && *p == '0') { /* leading zeros only move the point */
            scale -= point;
        } else if (n < MOST_DIGITS) {
            text[1 + n++] = *p;
            scale -= point;
        } else {
            rest |= *p != '0';
            scale += !point;
        }
    }
    if (!any)
        return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p = sign(p + 1, end, &down);
        if (p == end)
            return false;
        for (; p < end && is_digit(*p); p++)
            if (given <= MOST_EXPONENT)
                given = given * 10 + (*p - '0');
        scale += down ? -given : given;
    }
    if (p != end)
        return false;
    if (n == 0) {
        *out = minus ? -0.0 : 0.0;
        return true;
    }
    if (rest) { /* dropped digits only decide on which side of half-way the number is */
        text[1 + n++] = '1';
        scale--;
    }
    text[0] = minus ? '-' : '+';
    snprintf(text + 1 + n, sizeof(text) - 1 - n, "e%ld", scale);
    *out = strtod(text, NULL);
    return true;
}
