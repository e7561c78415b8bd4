/* Inner loops of reductions: included like hot_point.h, after it. */

/* Lanes are summed side by side, a chunk at a time, and chunks in double precision: errors stay at
 * a few units of the last place, however long a row is. */
enum { REDUCE_LANES = 32, REDUCE_CHUNK = 2048 };

#define ROW_SUM(sfx, T)                                                                            \
    static double row_sum_chunk_##sfx(const T *x, int64_t n)                                       \
    {                                                                                              \
        T lane[REDUCE_LANES] = {0};                                                                \
        int64_t i = 0;                                                                             \
        for (; i + REDUCE_LANES <= n; i += REDUCE_LANES)                                           \
            VEC_LOOP for (int k = 0; k < REDUCE_LANES; k++) lane[k] += x[i + k];                   \
        for (int k = 0; i + k < n; k++)                                                            \
            lane[k] += x[i + k];                                                                   \
        for (int half = REDUCE_LANES / 2; half > 0; half /= 2)                                     \
            for (int k = 0; k < half; k++)                                                         \
                lane[k] += lane[k + half];                                                         \
        return lane[0];                                                                            \
    }                                                                                              \
    static void row_sum_##sfx(void *to, const void *from, int64_t n)                               \
    {                                                                                              \
        const T *x = from;                                                                         \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i += REDUCE_CHUNK)                                              \
            sum += row_sum_chunk_##sfx(x + i, n - i < REDUCE_CHUNK ? n - i : REDUCE_CHUNK);        \
        *(T *)to = (T)sum;                                                                         \
    }
ROW_SUM(f32, float)
ROW_SUM(f64, double)

#define SQUARES(name, T)                                                                           \
    static double name(const T *x, T mean, int64_t n)                                              \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int64_t begin = 0; begin < n; begin += REDUCE_CHUNK) {                                \
            int64_t end = n - begin < REDUCE_CHUNK ? n : begin + REDUCE_CHUNK, i = begin;          \
            T lane[REDUCE_LANES] = {0};                                                            \
            for (; i + REDUCE_LANES <= end; i += REDUCE_LANES)                                     \
                VEC_LOOP for (int k = 0; k < REDUCE_LANES; k++)                                    \
                {                                                                                  \
                    T d = x[i + k] - mean;                                                         \
                    lane[k] += d * d;                                                              \
                }                                                                                  \
            for (int k = 0; i + k < end; k++)                                                      \
                lane[k] += (x[i + k] - mean) * (x[i + k] - mean);                                  \
            for (int half = REDUCE_LANES / 2; half > 0; half /= 2)                                 \
                for (int k = 0; k < half; k++)                                                     \
                    lane[k] += lane[k + half];                                                     \
            sum += lane[0];                                                                        \
        }                                                                                          \
        return sum;                                                                                \
    }
SQUARES(squares_f32, float)
SQUARES(squares_f64, double)

/* value: of a, the result so far, and b, the next element. */
#define ROW(name, T, first, value)                                                                 \
    static void name(void *to, const void *from, int64_t n)                                        \
    {                                                                                              \
        const T *x = from;                                                                         \
        T lane[REDUCE_LANES];                                                                      \
        int64_t i = 0;                                                                             \
        for (int k = 0; k < REDUCE_LANES; k++)                                                     \
            lane[k] = first;                                                                       \
        for (; i + REDUCE_LANES <= n; i += REDUCE_LANES)                                           \
            VEC_LOOP for (int k = 0; k < REDUCE_LANES; k++)                                        \
            {                                                                                      \
                T a = lane[k], b = x[i + k];                                                       \
                lane[k] = value;                                                                   \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            T a = lane[0], b = x[i];                                                               \
            lane[0] = value;                                                                       \
        }                                                                                          \
        for (int k = 1; k < REDUCE_LANES; k++) {                                                   \
            T a = lane[0], b = lane[k];                                                            \
            lane[0] = value;                                                                       \
        }                                                                                          \
        *(T *)to = lane[0];                                                                        \
    }
#define COLUMN(name, T, value)                                                                     \
    static void name(void *to, const void *from, int64_t n)                                        \
    {                                                                                              \
        T *acc = to;                                                                               \
        const T *x = from;                                                                         \
        VEC_LOOP for (int64_t i = 0; i < n; i++)                                                   \
        {                                                                                          \
            T a = acc[i], b = x[i];                                                                \
            acc[i] = value;                                                                        \
        }                                                                                          \
    }
#define BOTH(name, T, first, value)                                                                \
    ROW(row_##name, T, first, value)                                                               \
    COLUMN(column_##name, T, value)

BOTH(sum_i64, int64_t, 0, WRAP(a, +, b))
BOTH(sum_c64, struct c64, ((struct c64){0, 0}), c64_add(a, b))
BOTH(sum_c128, struct c128, ((struct c128){0, 0}), c128_add(a, b))
COLUMN(column_sum_f32, float, a + b)
COLUMN(column_sum_f64, double, a + b)
BOTH(prod_i64, int64_t, 1, WRAP(a, *, b))
BOTH(prod_f32, float, 1, a *b)
BOTH(prod_f64, double, 1, a *b)
BOTH(prod_c64, struct c64, ((struct c64){1, 0}), c64_mul(a, b))
BOTH(prod_c128, struct c128, ((struct c128){1, 0}), c128_mul(a, b))
BOTH(max_bool, uint8_t, 0, a | b)
BOTH(max_i64, int64_t, INT64_MIN, a > b ? a : b)
BOTH(max_f32, float, -INFINITY, f32_max(a, b))
BOTH(max_f64, double, -(double)INFINITY, f64_max(a, b))
BOTH(min_bool, uint8_t, 1, a &b)
BOTH(min_i64, int64_t, INT64_MAX, a < b ? a : b)
BOTH(min_f32, float, INFINITY, f32_min(a, b))
BOTH(min_f64, double, (double)INFINITY, f64_min(a, b))

#define REDUCE_TABLE(way)                                                                          \
    {                                                                                              \
        [REDUCE_SUM] = {[K_I64] = way##_sum_i64,                                                   \
                        [K_F32] = way##_sum_f32,                                                   \
                        [K_F64] = way##_sum_f64,                                                   \
                        [K_C64] = way##_sum_c64,                                                   \
                        [K_C128] = way##_sum_c128},                                                \
        [REDUCE_PROD] = {[K_I64] = way##_prod_i64,                                                 \
                         [K_F32] = way##_prod_f32,                                                 \
                         [K_F64] = way##_prod_f64,                                                 \
                         [K_C64] = way##_prod_c64,                                                 \
                         [K_C128] = way##_prod_c128},                                              \
        [REDUCE_MAX] = {way##_max_bool, way##_max_i64, way##_max_f32, way##_max_f64},              \
        [REDUCE_MIN] = {way##_min_bool, way##_min_i64, way##_min_f32, way##_min_f64},              \
    }

#define HOT_TABLE                                                                                  \
    {                                                                                              \
        .point = point_table.fn, .row = REDUCE_TABLE(row), .column = REDUCE_TABLE(column),         \
        .square_deviation = squares_f32, .square_deviation64 = squares_f64, .rows_f32 = &rows_f32, \
        .rows_f64 = &rows_f64,                                                                     \
    }
