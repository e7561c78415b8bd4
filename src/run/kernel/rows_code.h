/* Norms, softmax and attention on plain arrays of T: included by rows.c for float and
 * double, with N(name) as the name of a function. Sums are kept in double. */

/* y = exp(x - max) / sum, or x - max - log(sum). */
static void N(softmax)(T *y, const T *x, int64_t n, int64_t step, bool logarithm)
{
    T max = x[0];
    double sum = 0;

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

/* dx = y (g - sum(g y)), or g - exp(y) sum(g). */
static void N(softmax_backward)(T *dx, const T *g, const T *y, int64_t n, int64_t step,
                                bool logarithm)
{
    double sum = 0;

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
        double sum = 0, squares = 0;

        for (int64_t i = 0; i < n && !rms; i++)
            sum += (double)x[i];
        double m = rms ? 0 : sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += ((double)x[i] - m) * ((double)x[i] - m);
        T scale = (T)(1 / sqrt(squares / (double)n + eps)), shift = (T)m;
        for (int64_t i = 0; i < n; i++) {
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
        double a = 0, b = 0;

        for (int64_t i = 0; i < n; i++) {
            T gw = w != NULL ? g[i] * w[i] : g[i];

            a += (double)gw;
            b += (double)(gw * ((x[i] - m) * s));
        }
        T mean_a = rms ? 0 : (T)(a / (double)n), mean_b = (T)(b / (double)n);
        for (int64_t i = 0; i < n; i++) {
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

/* One head: s is [q, k], probabilities afterwards; lse [q]. */
static void N(attention_rows)(T *s, T *lse, const T *mask, int64_t q, int64_t k, T scale,
                              bool causal)
{
    for (int64_t i = 0; i < q; i++, s += k) {
        int64_t n = causal && i + 1 < k ? i + 1 : k;
        T max = -(T)INFINITY;
        double sum = 0;

        for (int64_t j = 0; j < n; j++) {
            s[j] = s[j] * scale + (mask != NULL ? mask[i * k + j] : 0);
            max = s[j] > max ? s[j] : max;
        }
        T low = max == -(T)INFINITY ? 0 : max;
        for (int64_t j = 0; j < n; j++)
            s[j] = EXP(s[j] - low);
        for (int64_t j = 0; j < n; j++)
            sum += (double)s[j];
        T by = sum > 0 ? (T)(1 / sum) : 0;
        for (int64_t j = 0; j < n; j++)
            s[j] *= by;
        for (int64_t j = n; j < k; j++)
            s[j] = 0;
        if (lse != NULL)
            lse[i] = (T)((double)low + log(sum));
    }
}

/* s becomes probabilities again, from lse. */
static void N(attention_again)(T *s, const T *lse, const T *mask, int64_t q, int64_t k, T scale,
                               bool causal)
{
    for (int64_t i = 0; i < q; i++, s += k) {
        int64_t n = causal && i + 1 < k ? i + 1 : k;

        for (int64_t j = 0; j < n; j++)
            s[j] = s[j] * scale + (mask != NULL ? mask[i * k + j] : 0);
        for (int64_t j = 0; j < n; j++)
            s[j] = EXP(s[j] - lse[i]);
        for (int64_t j = n; j < k; j++)
            s[j] = 0;
    }
}

/* dp [q, k] becomes the gradient of the scaled scores: p (dp - sum(g o)) scale. */
static void N(attention_scores)(T *dp, const T *p, const T *g, const T *o, int64_t q, int64_t k,
                                int64_t width, T scale)
{
    for (int64_t i = 0; i < q; i++) {
        double dot = 0;

        for (int64_t j = 0; j < width; j++)
            dot += (double)(g[i * width + j] * o[i * width + j]);
        for (int64_t j = 0; j < k; j++)
            dp[i * k + j] = p[i * k + j] * (dp[i * k + j] - (T)dot) * scale;
    }
}
