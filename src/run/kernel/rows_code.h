/* Norms, softmax and attention on plain arrays of T: included like hot_reduce.h, after it, for
 * float and double, with N(name) as the name of a function. Sums are kept in double: long ones are
 * made in lanes, a chunk at a time. */

static double N(total)(const T *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i += REDUCE_CHUNK)
        sum += N(row_sum_chunk)(x + i, n - i < REDUCE_CHUNK ? n - i : REDUCE_CHUNK);
    return sum;
}

/* Elements side by side. */
static void N(softmax_dense)(T *y, const T *x, int64_t n, bool logarithm)
{
    T max, e[ELEM_BLOCK];
    double sum = 0;

    N(row_max)(&max, x, n);
    for (int64_t i = 0; i < n; i += ELEM_BLOCK) {
        int64_t m = n - i < ELEM_BLOCK ? n - i : ELEM_BLOCK;
        const T *from = x + i;
        T *to = logarithm ? e : y + i;

        VEC_LOOP for (int64_t k = 0; k < m; k++) to[k] = EXP(from[k] - max);
        sum += N(row_sum_chunk)(to, m);
    }
    T by = logarithm ? (T)log(sum) : (T)(1 / sum);
    if (logarithm)
        VEC_LOOP for (int64_t i = 0; i < n; i++) y[i] = x[i] - max - by;
    else
        VEC_LOOP for (int64_t i = 0; i < n; i++) y[i] *= by;
}

/* y = exp(x - max) / sum, or x - max - log(sum). */
static void N(softmax)(T *y, const T *x, int64_t n, int64_t step, bool logarithm)
{
    T max = x[0];
    double sum = 0;

    if (step == 1) {
        N(softmax_dense)(y, x, n, logarithm);
        return;
    }
    for (int64_t i = 1; i < n; i++)
        max = MAXIMUM(max, x[i * step]);
    for (int64_t i = 0; i < n; i++) {
        T e = EXP(x[i * step] - max);

        sum += (double)e;
        y[i * step] = logarithm ? x[i * step] - max : e;
    }
    T by = logarithm ? (T)log(sum) : (T)(1 / sum);
    for (int64_t i = 0; i < n; i++)
        y[i * step] = logarithm ? y[i * step] - by : y[i * step] * by;
}

static void N(softmax_backward_dense)(T *dx, const T *g, const T *y, int64_t n, bool logarithm)
{
    T e[ELEM_BLOCK];
    double sum = logarithm ? N(total)(g, n) : 0;

    for (int64_t i = 0; !logarithm && i < n; i += ELEM_BLOCK) {
        int64_t m = n - i < ELEM_BLOCK ? n - i : ELEM_BLOCK;

        VEC_LOOP for (int64_t k = 0; k < m; k++) e[k] = g[i + k] * y[i + k];
        sum += N(row_sum_chunk)(e, m);
    }
    T all = (T)sum;
    if (logarithm)
        VEC_LOOP for (int64_t i = 0; i < n; i++) dx[i] = g[i] - EXP(y[i]) * all;
    else
        VEC_LOOP for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (g[i] - all);
}

/* dx = y (g - sum(g y)), or g - exp(y) sum(g). */
static void N(softmax_backward)(T *dx, const T *g, const T *y, int64_t n, int64_t step,
                                bool logarithm)
{
    double sum = 0;

    if (step == 1) {
        N(softmax_backward_dense)(dx, g, y, n, logarithm);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        sum += (double)(logarithm ? g[i * step] : g[i * step] * y[i * step]);
    for (int64_t i = 0; i < n; i++)
        dx[i * step] = logarithm ? g[i * step] - EXP(y[i * step]) * (T)sum
                                 : y[i * step] * (g[i * step] - (T)sum);
}

/* rms: no mean is subtracted. */
static void N(norm)(T *y, T *mean, T *rstd, const T *x, const T *w, const T *b, int64_t rows,
                    int64_t n, double eps, bool rms)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        T shift = rms ? 0 : (T)(N(total)(x, n) / (double)n);
        T scale = (T)(1 / sqrt(N(squares)(x, shift, n) / (double)n + eps));
        VEC_LOOP for (int64_t i = 0; i < n; i++)
        {
            T v = (x[i] - shift) * scale;

            v = w != NULL ? v * w[i] : v;
            y[i] = b != NULL ? v + b[i] : v;
        }
        if (mean != NULL)
            mean[r] = shift;
        if (rstd != NULL)
            rstd[r] = scale;
    }
}

static void N(norm_backward)(T *dx, T *dw, T *db, const T *g, const T *x, const T *mean,
                             const T *rstd, const T *w, int64_t rows, int64_t n, bool rms)
{
    for (int64_t i = 0; i < n; i++) {
        if (dw != NULL)
            dw[i] = 0;
        if (db != NULL)
            db[i] = 0;
    }
    for (int64_t r = 0; r < rows; r++, x += n, g += n) {
        T m = rms ? 0 : mean[r], s = rstd[r];
        T part[2][ELEM_BLOCK];
        double a = 0, b = 0;

        for (int64_t i = 0; i < n; i += ELEM_BLOCK) {
            int64_t count = n - i < ELEM_BLOCK ? n - i : ELEM_BLOCK;

            VEC_LOOP for (int64_t k = 0; k < count; k++)
            {
                T gw = w != NULL ? g[i + k] * w[i + k] : g[i + k];

                part[0][k] = gw;
                part[1][k] = gw * ((x[i + k] - m) * s);
            }
            a += N(row_sum_chunk)(part[0], count);
            b += N(row_sum_chunk)(part[1], count);
        }
        T mean_a = rms ? 0 : (T)(a / (double)n), mean_b = (T)(b / (double)n);
        VEC_LOOP for (int64_t i = 0; i < n; i++)
        {
            T hat = (x[i] - m) * s, gw = w != NULL ? g[i] * w[i] : g[i];

            if (dx != NULL)
                dx[r * n + i] = (gw - mean_a - hat * mean_b) * s;
            if (dw != NULL)
                dw[i] += g[i] * hat;
            if (db != NULL)
                db[i] += g[i];
        }
    }
}

/* [outer, channels, inner]. training: statistics of the batch, and running ones updated. */
static void N(batch_norm)(const struct batch_norm *o, T *y, const T *x, const T *w, const T *b,
                          T *running_mean, T *running_var, T *save_mean, T *save_rstd)
{
    double n = (double)(o->outer * o->inner);

    for (int64_t c = 0; c < o->channels; c++) {
        double mean = 0, squares = 0;

        if (o->training) {
            for (int64_t r = 0; r < o->outer; r++)
                for (int64_t i = 0; i < o->inner; i++)
                    mean += (double)x[(r * o->channels + c) * o->inner + i];
            mean /= n;
            for (int64_t r = 0; r < o->outer; r++)
                for (int64_t i = 0; i < o->inner; i++) {
                    double d = (double)x[(r * o->channels + c) * o->inner + i] - mean;

                    squares += d * d;
                }
            if (running_mean != NULL)
                running_mean[c] = (T)((1 - o->momentum) * (double)running_mean[c] +
                                      o->momentum * mean);
            if (running_var != NULL)
                running_var[c] = (T)((1 - o->momentum) * (double)running_var[c] +
                                     o->momentum * squares / (n - 1));
        } else {
            mean = (double)running_mean[c];
            squares = (double)running_var[c] * n;
        }
        T scale = (T)(1 / sqrt(squares / n + o->eps)), shift = (T)mean;
        if (save_mean != NULL)
            save_mean[c] = shift;
        if (save_rstd != NULL)
            save_rstd[c] = scale;
        for (int64_t r = 0; r < o->outer; r++)
            for (int64_t i = 0; i < o->inner; i++) {
                int64_t at = (r * o->channels + c) * o->inner + i;

                y[at] = (x[at] - shift) * scale * (w != NULL ? w[c] : 1) + (b != NULL ? b[c] : 0);
            }
    }
}

static void N(batch_norm_backward)(const struct batch_norm *o, T *dx, T *dw, T *db, const T *g,
                                   const T *x, const T *w, const T *mean, const T *rstd)
{
    double n = (double)(o->outer * o->inner);

    for (int64_t c = 0; c < o->channels; c++) {
        double sum = 0, dot = 0;

        for (int64_t r = 0; r < o->outer; r++)
            for (int64_t i = 0; i < o->inner; i++) {
                int64_t at = (r * o->channels + c) * o->inner + i;

                sum += (double)g[at];
                dot += (double)g[at] * ((double)x[at] - (double)mean[c]);
            }
        double s = (double)rstd[c], scale = (w != NULL ? (double)w[c] : 1) * s;
        for (int64_t r = 0; dx != NULL && r < o->outer; r++)
            for (int64_t i = 0; i < o->inner; i++) {
                int64_t at = (r * o->channels + c) * o->inner + i;
                double d = (double)g[at];

                if (o->training)
                    d -= sum / n + ((double)x[at] - (double)mean[c]) * s * s * dot / n;
                dx[at] = (T)(d * scale);
            }
        if (dw != NULL)
            dw[c] = (T)(dot * s);
        if (db != NULL)
            db[c] = (T)sum;
    }
}

static int64_t N(seen)(const struct attention_block *o, int64_t i)
{
    return o->causal && o->first + i + 1 < o->keys ? o->first + i + 1 : o->keys;
}

/* scale * s, with the mask added. */
static void N(attention_scale)(const struct attention_block *o, T *s, const T *mask, int64_t i,
                               int64_t n)
{
    T scale = (T)o->scale;

    if (mask == NULL)
        VEC_LOOP for (int64_t j = 0; j < n; j++) s[j] *= scale;
    else
        VEC_LOOP for (int64_t j = 0; j < n; j++) s[j] = s[j] * scale + mask[i * o->mask_step + j];
}

/* Some rows of one head: s is [rows, keys], probabilities afterwards; lse [rows]. */
static void N(attention)(const struct attention_block *o, T *s, T *lse, const T *mask)
{
    for (int64_t i = 0; i < o->rows; i++, s += o->keys) {
        int64_t n = N(seen)(o, i);
        T max;

        N(attention_scale)(o, s, mask, i, n);
        N(row_max)(&max, s, n);
        T low = max == -(T)INFINITY ? 0 : max;
        VEC_LOOP for (int64_t j = 0; j < n; j++) s[j] = EXP(s[j] - low);
        double sum = N(total)(s, n);
        T by = sum > 0 ? (T)(1 / sum) : sum == 0 ? 0 : (T)sum;
        VEC_LOOP for (int64_t j = 0; j < n; j++) s[j] *= by;
        for (int64_t j = n; j < o->keys; j++)
            s[j] = 0;
        if (lse != NULL)
            lse[i] = (T)((double)low + log(sum));
    }
}

/* s becomes probabilities again, from lse. */
static void N(attention_again)(const struct attention_block *o, T *s, const T *lse, const T *mask)
{
    for (int64_t i = 0; i < o->rows; i++, s += o->keys) {
        int64_t n = N(seen)(o, i);
        T low = lse[i];

        N(attention_scale)(o, s, mask, i, n);
        VEC_LOOP for (int64_t j = 0; j < n; j++) s[j] = EXP(s[j] - low);
        for (int64_t j = n; j < o->keys; j++)
            s[j] = 0;
    }
}

/* dp [rows, keys] becomes the gradient of the scaled scores: p (dp - sum(g o)) scale. */
static void N(attention_scores)(const struct attention_block *o, T *dp, const T *p, const T *g,
                                int64_t g_step, const T *y, int64_t y_step, int64_t width)
{
    T scale = (T)o->scale;

    for (int64_t i = 0; i < o->rows; i++, dp += o->keys, p += o->keys) {
        double sum = 0;

        for (int64_t j = 0; j < width; j++)
            sum += (double)(g[i * g_step + j] * y[i * y_step + j]);
        T dot = (T)sum;
        VEC_LOOP for (int64_t j = 0; j < o->keys; j++) dp[j] = p[j] * (dp[j] - dot) * scale;
    }
}

#define ROWS_TABLE                                                                                 \
    {                                                                                              \
        N(softmax), N(softmax_backward), N(norm), N(norm_backward), N(batch_norm),                 \
            N(batch_norm_backward), N(attention), N(attention_again), N(attention_scores)          \
    }
