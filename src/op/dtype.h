/* The dtypes of PyTorch (dtypes.def): names, sizes, promotion. */
#ifndef TUCK_OP_DTYPE_H
#define TUCK_OP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_NONE, /* unknown, or none */
#define DTYPE(id, ...) DTYPE_##id,
#include "op/dtypes.def"
#undef DTYPE
    DTYPE_END
};

/* The categories of type promotion. The first four promote among each other; the rest only with
 * themselves, and UINT with FLOAT and FLOAT4. */
enum dtype_category {
    DTYPE_IS_BOOL,
    DTYPE_IS_INT,
    DTYPE_IS_FLOAT,
    DTYPE_IS_COMPLEX,
    DTYPE_IS_UINT,   /* except uint8, which is an INT for historical reasons */
    DTYPE_IS_FLOAT8, /* floating point, but nothing promotes to it */
    DTYPE_IS_FLOAT4,
    DTYPE_IS_BITS,
    DTYPE_IS_QUANT,
    DTYPE_IS_SHELL, /* int1 … int7: names without arithmetic */
};

struct dtype_row {
    const char *name; /* "float32"; in a graph's text after "torch." */
    const char *aliases;
    const char *abbr; /* "f32", or "" */
    const char *old_abbrs;
    uint8_t category;
    uint8_t bytes;       /* of an element */
    uint8_t bits;        /* of a number: less than 8 * bytes if several are packed */
    uint8_t scalar_type; /* c10::ScalarType */
    uint8_t index_2_13;  /* in out_dtype_ints of torch 2.13 */
};

/* For DTYPE_NONE and invalid values: a row of empty strings and zeros. */
const struct dtype_row *dtype_at(enum dtype d);

enum dtype dtype_by_abbr(const char *abbr, size_t len); /* "f32" as in f32[8, 4] */
enum dtype dtype_by_name(const char *name, size_t len); /* "torch.float32", "float32", "float" */
enum dtype dtype_by_scalar_type(int64_t number);        /* 6 is float32 */

bool dtype_is_float(enum dtype d); /* torch.dtype.is_floating_point */

/* torch.promote_types(a, b); DTYPE_NONE if torch refuses. */
enum dtype dtype_promote(enum dtype a, enum dtype b);

/* torch.get_default_dtype() unless changed: integers become it in exp, sqrt, division. */
#define DTYPE_DEFAULT DTYPE_F32

/* float32 for complex64 and the reverse; the dtype itself, or NONE, if there is none. */
enum dtype dtype_real_of(enum dtype d);
enum dtype dtype_complex_of(enum dtype d);

#endif
