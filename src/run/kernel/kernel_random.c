/* Random numbers. A call draws from its key, which the executor makes of the seed and the node's
 * name: a node draws the same numbers in every run, on every rank, wherever a rewrite puts it.
 * They are not torch's numbers, but they have their distributions. */
#include <math.h>

#include "run/kernel/draw.h"
#include "run/kernel/plain.h"

/* ---- one number ---- */

/* In [0, 1), with as many bits as the dtype can tell from 1. */
static double unit(uint64_t bits, enum dtype d)
{
    int n = d == DTYPE_F64 ? 53 : d == DTYPE_F16 ? 11 : d == DTYPE_BF16 ? 8 : 24;

    return ldexp((double)(bits >> (64 - n)), -n);
}

/* Number i of a standard normal distribution, by two uniform ones (Box and Muller). */
static double normal(uint64_t key, int64_t i)
{
    double u = 1 - unit(draw_bits(key, 2 * i), DTYPE_F64),
           angle = 2 * 3.14159265358979323846 * unit(draw_bits(key, 2 * i + 1), DTYPE_F64);

    return sqrt(-2 * log(u)) * cos(angle);
}

/* In [low, low + range); all of 64 bits if range is 0. */
static int64_t whole(uint64_t bits, int64_t low, uint64_t range)
{
    return (int64_t)((uint64_t)low + (range > 0 ? bits % range : bits));
}

/* ---- operands ---- */

/* A number, or one for each element of the result. */
struct each {
    const double *at; /* NULL: `all` */
    double all;
};

static double number(struct each e, int64_t i)
{
    return e.at != NULL ? e.at[i] : e.all;
}

/* Operand i, broadcast to the first result. */
static bool take_each(struct plain *s, uint32_t i, double otherwise, struct each *out)
{
    const struct rt_tensor *t = arg_tensor(s->c, i);

    *out = (struct each){NULL, arg_float(s->c, i, otherwise)};
    if (t == NULL)
        return true;
    if (kind_of(t->dtype) >= K_C64)
        return kernel_apart(s->c);
    out->at = plain_spread(s, t);
    return out->at != NULL;
}

static size_t each_scratch(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(c->out), 2, 8) + 2 * RT_ALIGN);
}

/* ---- distributions of real numbers ---- */

/* Number i with the parameters a and b. */
typedef double (*distribution)(const struct rt_call *c, int64_t i, double a, double b);

static bool draw_reals(struct rt_call *c, distribution f, uint32_t first, double a, double b)
{
    struct plain s = plain_begin(c);
    struct each x, y;

    if (kind_of(c->out->dtype) >= K_C64)
        return kernel_error(c, "no kernel draws %s", dtype_at(c->out->dtype)->name);
    if (!take_each(&s, first, a, &x) || !take_each(&s, first + 1, b, &y))
        return false;
    double *to = plain_out(&s, c->out, K_F64);
    for (int64_t i = 0; i < rt_numel(c->out); i++)
        to[i] = f(c, i, number(x, i), number(y, i));
    plain_done(&s, c->out, to, K_F64);
    return true;
}

static double drawn_unit(const struct rt_call *c, int64_t i)
{
    return unit(draw_bits(c->key, i), c->out->dtype);
}

static double between(const struct rt_call *c, int64_t i, double low, double high)
{
    return low + drawn_unit(c, i) * (high - low);
}

static double around(const struct rt_call *c, int64_t i, double mean, double deviation)
{
    return mean + deviation * normal(c->key, i);
}

static double exponential(const struct rt_call *c, int64_t i, double rate, double unused)
{
    (void)unused;
    return -log1p(-drawn_unit(c, i)) / rate;
}

/* How many tries until something of probability p happens. */
static double tries(const struct rt_call *c, int64_t i, double p, double unused)
{
    (void)unused;
    return p >= 1 ? 1 : floor(log1p(-drawn_unit(c, i)) / log1p(-p)) + 1;
}

static double cauchy(const struct rt_call *c, int64_t i, double median, double width)
{
    return median + width * tan(3.14159265358979323846 * (drawn_unit(c, i) - 0.5));
}

static double log_around(const struct rt_call *c, int64_t i, double mean, double deviation)
{
    return exp(around(c, i, mean, deviation));
}

/* rand(size), rand_like(self) */
bool kernel_rand(struct rt_call *c)
{
    return draw_reals(c, between, c->n_arg, 0, 1);
}

/* randn(size), randn_like(self) */
bool kernel_randn(struct rt_call *c)
{
    return draw_reals(c, around, c->n_arg, 0, 1);
}

/* (self or size, low, high) */
bool kernel_uniform(struct rt_call *c)
{
    return draw_reals(c, between, 1, 0, 1);
}

/* (self or size, mean, deviation) */
bool kernel_normal(struct rt_call *c)
{
    return draw_reals(c, around, 1, 0, 1);
}

/* (mean, deviation), each a number or a tensor */
bool kernel_normal_of(struct rt_call *c)
{
    return draw_reals(c, around, 0, 0, 1);
}

/* (self, rate) */
bool kernel_exponential(struct rt_call *c)
{
    return draw_reals(c, exponential, 1, 1, 0);
}

/* (self, p) */
bool kernel_geometric(struct rt_call *c)
{
    return draw_reals(c, tries, 1, 0.5, 0);
}

/* (self, median, width) */
bool kernel_cauchy(struct rt_call *c)
{
    return draw_reals(c, cauchy, 1, 0, 1);
}

/* (self, mean, deviation): of the logarithm */
bool kernel_log_normal(struct rt_call *c)
{
    return draw_reals(c, log_around, 1, 1, 2);
}

/* ---- one or nothing ---- */

/* With the probabilities that operand i has. */
static bool toss(struct rt_call *c, uint32_t i)
{
    struct plain s = plain_begin(c);
    struct each p;

    if (!take_each(&s, i, 0.5, &p))
        return false;
    double *to = plain_out(&s, c->out, K_F64);
    for (int64_t k = 0; k < rt_numel(c->out); k++) {
        double chance = number(p, k);

        if (!(chance >= 0 && chance <= 1))
            return kernel_error(c, "a probability of %g", chance);
        to[k] = unit(draw_bits(c->key, k), DTYPE_F64) < chance;
    }
    plain_done(&s, c->out, to, K_F64);
    return true;
}

/* (self): its elements are the probabilities */
bool kernel_bernoulli(struct rt_call *c)
{
    return toss(c, 0);
}

/* (self, p) */
bool kernel_bernoulli_of(struct rt_call *c)
{
    return toss(c, 1);
}

/* native_dropout(input, p, train) -> result, mask */
bool kernel_dropout(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    double p = arg_bool(c, 2, true) ? arg_float(c, 1, 0) : 0;

    if (!(p >= 0 && p <= 1))
        return kernel_error(c, "dropout with a probability of %g", p);
    if (!kernel_same(c, &c->out[0], in) || !kernel_same(c, &c->out[1], in))
        return false;
    struct rt_value one = {.kind = RT_INT, .i = 1};
    if (p == 0)
        return copy_tensor(c, &c->out[0], in) && fill_tensor(c, &c->out[1], &one);
    if (kind_of(in->dtype) != K_F32 && kind_of(in->dtype) != K_F64)
        return kernel_error(c, "no kernel drops elements of %s", dtype_at(in->dtype)->name);
    const double *x = plain_in(&s, in, K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64), scale = p < 1 ? 1 / (1 - p) : 0;
    uint8_t *mask = plain_out(&s, &c->out[1], K_BOOL);
    if (in->dtype != DTYPE_F64)
        scale = (double)(float)scale; /* as torch multiplies */
    for (int64_t i = 0; i < rt_numel(in); i++) {
        mask[i] = unit(draw_bits(c->key, i), DTYPE_F64) >= p;
        y[i] = x[i] * mask[i] * scale;
    }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, &c->out[1], mask, K_BOOL);
    return true;
}

size_t scratch_dropout(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* ---- whole numbers ---- */

static bool draw_wholes(struct rt_call *c, int64_t low, uint64_t range)
{
    struct plain s = plain_begin(c);

    if (kind_of(c->out->dtype) >= K_C64)
        return kernel_error(c, "no kernel draws %s", dtype_at(c->out->dtype)->name);
    int64_t *to = plain_out(&s, c->out, K_I64);
    for (int64_t i = 0; i < rt_numel(c->out); i++)
        to[i] = whole(draw_bits(c->key, i), low, range);
    plain_done(&s, c->out, to, K_I64);
    return true;
}

static bool draw_below(struct rt_call *c, int64_t low, int64_t high)
{
    return low < high ? draw_wholes(c, low, (uint64_t)high - (uint64_t)low)
                      : kernel_error(c, "no whole number is from %lld up to, but not, %lld",
                                     (long long)low, (long long)high);
}

/* ([self,] [low,] high, …) */
bool kernel_randint(struct rt_call *c)
{
    uint32_t first = arg_tensor(c, 0) != NULL;
    bool both = arg_at(c, first + 1)->kind == RT_INT;

    return draw_below(c, both ? arg_int(c, first, 0) : 0, arg_int(c, both ? first + 1 : first, 0));
}

/* How many whole numbers from 0 on a dtype can hold; 0: all of 64 bits. */
static uint64_t numbers_of(enum dtype d)
{
    int bytes = dtype_at(d)->bytes;
    bool has_sign = dtype_at(d)->category == DTYPE_IS_INT && d != DTYPE_U8;

    switch (d) {
    case DTYPE_B8: return 2;
    case DTYPE_F64: return ((uint64_t)1 << 53) + 1;
    case DTYPE_F32: return ((uint64_t)1 << 24) + 1;
    case DTYPE_F16: return ((uint64_t)1 << 11) + 1;
    case DTYPE_BF16: return ((uint64_t)1 << 8) + 1;
    default:
        return bytes == 8 ? (has_sign ? (uint64_t)1 << 63 : 0)
                          : (uint64_t)1 << (8 * bytes - has_sign);
    }
}

/* random(self, [to]) */
bool kernel_random(struct rt_call *c)
{
    return arg_at(c, 1)->kind == RT_INT ? draw_below(c, 0, arg_int(c, 1, 0))
                                        : draw_wholes(c, 0, numbers_of(c->out->dtype));
}

/* random(self, from, to), up to what the dtype can hold without `to` */
bool kernel_random_from(struct rt_call *c)
{
    uint64_t most = numbers_of(c->out->dtype);
    int64_t low = arg_int(c, 1, 0);

    if (arg_at(c, 2)->kind == RT_INT)
        return draw_below(c, low, arg_int(c, 2, 0));
    return draw_wholes(c, low, most - (uint64_t)low);
}

/* randperm(n): each number below n once */
bool kernel_randperm(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    int64_t n = arg_int(c, 0, 0);

    if (!kernel_holds(c, c->out, n))
        return false;
    int64_t *to = plain_out(&s, c->out, K_I64);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = whole(draw_bits(c->key, i), 0, (uint64_t)i + 1);

        if (at < i)
            to[i] = to[at];
        to[at] = i;
    }
    plain_done(&s, c->out, to, K_I64);
    return true;
}

/* ---- samples by weight ---- */

/* The element at which the running sum of weights passes `until`: one with a weight. */
static int64_t passes(const double *weight, int64_t n, double until)
{
    int64_t last = 0;

    for (int64_t i = 0; i < n; i++)
        if (weight[i] > 0) {
            last = i;
            until -= weight[i];
            if (until < 0)
                break;
        }
    return last;
}

/* multinomial(self, num_samples, replacement): of each line of weights */
bool kernel_multinomial(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t samples = arg_int(c, 1, 0), n = in->n > 0 ? in->size[in->n - 1] : 0,
            lines = in->n > 1 ? in->size[0] : 1;

    if (in->n < 1 || in->n > 2 || kind_of(in->dtype) >= K_C64 || n == 0 || samples < 1 ||
        !kernel_holds(c, c->out, lines * samples))
        return kernel_apart(c);
    const double *given = plain_in(&s, in, K_F64);
    int64_t *to = plain_out(&s, c->out, K_I64);
    double *weight = plain_room(&s, (size_t)n * sizeof(*weight));
    for (int64_t i = 0; i < lines * samples; i++) {
        double all = 0;

        if (i % samples == 0)
            memcpy(weight, given + i / samples * n, (size_t)n * sizeof(*weight));
        for (int64_t k = 0; k < n; k++) {
            if (!(weight[k] >= 0 && isfinite(weight[k])))
                return kernel_error(c, "a weight of %g", weight[k]);
            all += weight[k];
        }
        if (all <= 0)
            return kernel_error(c, "no weight is left for sample %lld", (long long)(i % samples));
        to[i] = passes(weight, n, all * unit(draw_bits(c->key, i), DTYPE_F64));
        if (!arg_bool(c, 2, false))
            weight[to[i]] = 0;
    }
    plain_done(&s, c->out, to, K_I64);
    return true;
}

size_t scratch_multinomial(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(arg_tensor(c, 0)), 1, 8) + RT_ALIGN);
}

/* ---- Inductor's: numbers that depend on a seed in a tensor, and on nothing else ---- */

/* inductor_seeds(count, device), inductor_seed(device) */
bool kernel_seeds(struct rt_call *c)
{
    return draw_wholes(c, 0, INT64_MAX);
}

/* inductor_lookup_seed(seeds, index) */
bool kernel_lookup_seed(struct rt_call *c)
{
    struct rt_tensor one = *arg_tensor(c, 0);
    int64_t i = arg_int(c, 1, 0);

    if (one.n != 1 || i < 0 || i >= one.size[0])
        return kernel_error(c, "seed %lld of %lld", (long long)i, (long long)rt_numel(&one));
    one.data = (char *)one.data + i * one.stride[0] * dtype_at(one.dtype)->bytes;
    one.n = 0;
    return copy_tensor(c, c->out, &one);
}

/* The call with the key that the seed in operand i makes. */
static bool take_seed(struct rt_call *c, uint32_t i, struct rt_call *by)
{
    const struct rt_tensor *seed = arg_tensor(c, i);

    if (rt_numel(seed) != 1)
        return kernel_error(c, "%lld seeds instead of one", (long long)rt_numel(seed));
    *by = *c;
    by->key = draw_mix((uint64_t)rt_item(seed).i);
    return true;
}

/* inductor_random(size, seed, "rand" or "randn") */
bool kernel_seeded(struct rt_call *c)
{
    const struct rt_value *mode = arg_at(c, 2);
    bool is_normal = mode->kind == RT_STR && strcmp(mode->str, "randn") == 0;
    struct rt_call by;

    return take_seed(c, 1, &by) && (is_normal ? kernel_randn(&by) : kernel_rand(&by));
}

/* inductor_randint(low, high, size, seed) */
bool kernel_seeded_int(struct rt_call *c)
{
    struct rt_call by;

    return take_seed(c, 3, &by) && draw_below(&by, arg_int(c, 0, 0), arg_int(c, 1, 0));
}

/* ---- scratch ---- */

#define LIKE_RESULT(name)                                                                          \
    size_t scratch_##name(const struct rt_call *c)                                                 \
    {                                                                                              \
        return each_scratch(c);                                                                    \
    }
LIKE_RESULT(rand)
LIKE_RESULT(randn)
LIKE_RESULT(uniform)
LIKE_RESULT(normal)
LIKE_RESULT(normal_of)
LIKE_RESULT(exponential)
LIKE_RESULT(geometric)
LIKE_RESULT(cauchy)
LIKE_RESULT(log_normal)
LIKE_RESULT(bernoulli)
LIKE_RESULT(bernoulli_of)
LIKE_RESULT(randint)
LIKE_RESULT(random)
LIKE_RESULT(random_from)
LIKE_RESULT(randperm)
LIKE_RESULT(seeds)
LIKE_RESULT(seeded)
LIKE_RESULT(seeded_int)
