#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t ps_round(double ps)
{
    return ps > -0.5 ? ps_round_difference(ps) : -1;
}

int64_t ps_round_difference(double ps)
{
    return !(ps < 0x1p63) ? INT64_MAX : ps > -0x1p63 ? llround(ps) : INT64_MIN;
}

int64_t ps_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (a < 0 || b < 0)
        return -1;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t ps_times(int64_t ps, int64_t n)
{
    int64_t product;

    if (ps < 0 || n < 0)
        return -1;
    return __builtin_mul_overflow(ps, n, &product) ? INT64_MAX : product;
}

bool unit_by_name(const char *name, double *ps_out)
{
    static const struct {
        const char *name;
        double ps;
    } units[] = {{"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strcmp(units[i].name, name) == 0) {
            *ps_out = units[i].ps;
            return true;
        }
    return false;
}

const char *text_of_bytes(int64_t bytes, char out[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;

    while (v >= 1024 && u < 4) {
        v /= 1024;
        u++;
    }
    snprintf(out, 32,
             u == 0    ? "%.0f %s"
             : v < 10  ? "%.2f %s"
             : v < 100 ? "%.1f %s"
                       : "%.0f %s",
             v, unit[u]);
    return out;
}

int64_t bytes_of_text(const char *text)
{
    static const char *const unit[] = {"", "K", "M", "G", "T"};
    char *end;
    double v = strtod(text, &end);

    if (end == text || !(v >= 0) || (text[0] < '0' || text[0] > '9'))
        return -1;
    for (int u = 0; u < 5; u++) {
        size_t n = strlen(unit[u]);
        if (strncmp(end, unit[u], n) != 0)
            continue;
        const char *rest = end + n;
        if (*rest != '\0' && strcmp(rest, "B") != 0 && (u == 0 || strcmp(rest, "iB") != 0))
            continue;
        for (int i = 0; i < u; i++)
            v *= 1024;
        return v <= 9.0e18 ? (int64_t)v : -1;
    }
    return -1;
}

const char *text_of_ps(int64_t ps, char out[32])
{
    double us = (double)ps / PS_PER_US;

    if (ps < 0)
        snprintf(out, 32, "?");
    else if (us < 1000)
        snprintf(out, 32, us < 10 ? "%.2f us" : "%.1f us", us);
    else if (us < 1e6)
        snprintf(out, 32, us < 1e4 ? "%.2f ms" : "%.1f ms", us / 1e3);
    else
        snprintf(out, 32, "%.2f s", us / 1e6);
    return out;
}
