/* Dtypes: look-up and promotion, all from dtypes.def. */
#include "op/dtype.h"

#include <string.h>

static const struct dtype_row rows[DTYPE_END] = {
    [DTYPE_NONE] = {.name = "", .aliases = "", .abbr = "", .old_abbrs = ""},
#define DTYPE(id, name, aliases, abbr, old, category, bytes, bits, scalar, index)                  \
    [DTYPE_##id] = {name, aliases, abbr, old, DTYPE_IS_##category, bytes, bits, scalar, index},
#include "op/dtypes.def"
#undef DTYPE
};

const struct dtype_row *dtype_at(enum dtype d)
{
    return &rows[(unsigned)d < DTYPE_END ? d : DTYPE_NONE];
}

static bool same(const char *a, const char *s, size_t len)
{
    return strlen(a) == len && memcmp(a, s, len) == 0;
}

/* Is s one of the words of `list`, which are separated by blanks? */
static bool among(const char *list, const char *s, size_t len)
{
    while (*list) {
        size_t word = strcspn(list, " ");

        if (word == len && memcmp(list, s, len) == 0)
            return true;
        list += word;
        list += strspn(list, " ");
    }
    return false;
}

enum dtype dtype_by_abbr(const char *abbr, size_t len)
{
    if (len == 0)
        return DTYPE_NONE;
    for (unsigned d = 1; d < DTYPE_END; d++)
        if (same(rows[d].abbr, abbr, len))
            return (enum dtype)d;
    for (unsigned d = 1; d < DTYPE_END; d++)
        if (among(rows[d].old_abbrs, abbr, len))
            return (enum dtype)d;
    return DTYPE_NONE;
}

enum dtype dtype_by_name(const char *name, size_t len)
{
    static const char prefix[] = "torch.";
    const size_t skip = sizeof(prefix) - 1;

    if (len > skip && memcmp(name, prefix, skip) == 0) {
        name += skip;
        len -= skip;
    }
    if (len == 0)
        return DTYPE_NONE;
    for (unsigned d = 1; d < DTYPE_END; d++)
        if (same(rows[d].name, name, len) || among(rows[d].aliases, name, len))
            return (enum dtype)d;
    return DTYPE_NONE;
}

enum dtype dtype_by_scalar_type(int64_t number)
{
    for (unsigned d = 1; d < DTYPE_END; d++)
        if (rows[d].scalar_type == number)
            return (enum dtype)d;
    return DTYPE_NONE;
}

bool dtype_is_float(enum dtype d)
{
    unsigned c = dtype_at(d)->category;

    return d != DTYPE_NONE && (c == DTYPE_IS_FLOAT || c == DTYPE_IS_FLOAT8 || c == DTYPE_IS_FLOAT4);
}

enum dtype dtype_complex_of(enum dtype d)
{
    switch (d) {
    case DTYPE_F16: return DTYPE_C32;
    case DTYPE_BF16: /* there is no complex of two bfloat16 */
    case DTYPE_F32: return DTYPE_C64;
    case DTYPE_F64: return DTYPE_C128;
    default: return dtype_at(d)->category == DTYPE_IS_COMPLEX ? d : DTYPE_NONE;
    }
}

enum dtype dtype_real_of(enum dtype d)
{
    switch (d) {
    case DTYPE_C32: return DTYPE_F16;
    case DTYPE_C64: return DTYPE_F32;
    case DTYPE_C128: return DTYPE_F64;
    default: return d;
    }
}

/* Two of one category, both of which take part in promotion. */
static enum dtype wider(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    if (rows[a].bytes != rows[b].bytes)
        return rows[a].bytes > rows[b].bytes ? a : b;
    /* Same width but different: neither holds the other, so the next one that holds both. */
    return rows[a].category == DTYPE_IS_FLOAT ? DTYPE_F32 : DTYPE_I16;
}

enum dtype dtype_promote(enum dtype a, enum dtype b)
{
    unsigned ca = dtype_at(a)->category, cb = dtype_at(b)->category;

    if (a == b || a == DTYPE_NONE || b == DTYPE_NONE)
        return a == b ? a : DTYPE_NONE;
    if (ca == DTYPE_IS_UINT || cb == DTYPE_IS_UINT) {
        unsigned other = ca == DTYPE_IS_UINT ? cb : ca;

        if (other != DTYPE_IS_FLOAT && other != DTYPE_IS_FLOAT4)
            return DTYPE_NONE;
        return ca == DTYPE_IS_UINT ? b : a;
    }
    if (ca > DTYPE_IS_COMPLEX || cb > DTYPE_IS_COMPLEX)
        return DTYPE_NONE;
    if (ca == cb)
        return wider(a, b);
    if (ca == DTYPE_IS_COMPLEX && cb == DTYPE_IS_FLOAT)
        return wider(a, dtype_complex_of(b));
    if (cb == DTYPE_IS_COMPLEX && ca == DTYPE_IS_FLOAT)
        return wider(dtype_complex_of(a), b);
    return ca > cb ? a : b;
}
