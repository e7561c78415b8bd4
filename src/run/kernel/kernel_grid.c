/* Images sampled where a grid says: grid_sampler_2d. */
#include <math.h>

#include "run/kernel/plain.h"

enum way { BILINEAR, NEAREST };
enum edge { ZEROS, BORDER, REFLECTION };

struct grid {
    int64_t images, channels, h, w, points; /* points: of one image */
    enum way way;
    enum edge edge;
    bool corners;
};

/* Back into [low / 2, high / 2] by reflection; *slope is turned round with it. */
static double reflected(double x, double low, double high, double *slope)
{
    double from = low / 2, span = (high - low) / 2;

    if (span <= 0)
        return *slope = 0;
    x -= from;
    if (x < 0) {
        x = -x;
        *slope = -*slope;
    }
    double turns = floor(x / span), rest = fmod(x, span);
    if (fmod(turns, 2) == 0)
        return rest + from;
    *slope = -*slope;
    return span - rest + from;
}

static double clipped(double x, int64_t n, double *slope)
{
    if (x > 0 && x < (double)(n - 1))
        return x;
    *slope = 0;
    return x > 0 ? (double)(n - 1) : 0;
}

/* A place in [-1, 1] as one among n elements; *slope: what it changes with that. */
static double place_of(const struct grid *g, double x, int64_t n, double *slope)
{
    double size = (double)n;

    *slope = g->corners ? (size - 1) / 2 : size / 2;
    x = g->corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
    if (g->edge == BORDER)
        x = clipped(x, n, slope);
    if (g->edge == REFLECTION) {
        x = g->corners ? reflected(x, 0, 2 * (size - 1), slope)
                       : reflected(x, -1, 2 * size - 1, slope);
        x = clipped(x, n, slope);
    }
    return x > -0x1p40 && x < 0x1p40 ? x : -100; /* outside, and NaN */
}

/* (input, grid, interpolation_mode, padding_mode, align_corners) from operand `first` on; small has
 * what is sampled. */
static bool describe(struct rt_call *c, struct grid *g, uint32_t first,
                     const struct rt_tensor *small)
{
    const struct rt_tensor *in = arg_tensor(c, first), *grid = arg_tensor(c, first + 1);
    int64_t way = arg_int(c, first + 2, 0), edge = arg_int(c, first + 3, 0);

    if (way < BILINEAR || way > NEAREST || edge < ZEROS || edge > REFLECTION ||
        kind_of(in->dtype) >= K_C64 || kind_of(grid->dtype) >= K_C64)
        return kernel_error(c, "no kernel samples images in this way");
    if (in->n != 4 || grid->n != 4 || small->n != 4 || grid->size[3] != 2 ||
        grid->size[0] != in->size[0] || small->size[0] != in->size[0] ||
        small->size[1] != in->size[1] || small->size[2] != grid->size[1] ||
        small->size[3] != grid->size[2] || in->size[2] < 1 || in->size[3] < 1 ||
        in->size[2] > INT32_MAX || in->size[3] > INT32_MAX)
        return kernel_apart(c);
    *g = (struct grid){in->size[0],
                       in->size[1],
                       in->size[2],
                       in->size[3],
                       grid->size[1] * grid->size[2],
                       (enum way)way,
                       (enum edge)edge,
                       arg_bool(c, first + 4, false)};
    return true;
}

/* The four elements around a place, with their shares and how those change; of which `n` count. */
struct around {
    int64_t at[4];
    double share[4], dx[4], dy[4];
    int n;
};

static void add_corner(const struct grid *g, struct around *a, double y, double x, double share,
                       double dx, double dy)
{
    if (!(y >= 0 && y < (double)g->h && x >= 0 && x < (double)g->w))
        return;
    a->at[a->n] = (int64_t)y * g->w + (int64_t)x;
    a->share[a->n] = share;
    a->dx[a->n] = dx;
    a->dy[a->n++] = dy;
}

static struct around around(const struct grid *g, const double *xy)
{
    struct around a = {.n = 0};
    double sx, sy, x = place_of(g, xy[0], g->w, &sx), y = place_of(g, xy[1], g->h, &sy);

    if (g->way == NEAREST) {
        add_corner(g, &a, nearbyint(y), nearbyint(x), 1, 0, 0);
        return a;
    }
    double left = floor(x), top = floor(y), u = x - left, v = y - top;
    add_corner(g, &a, top, left, (1 - u) * (1 - v), -sx * (1 - v), -sy * (1 - u));
    add_corner(g, &a, top, left + 1, u * (1 - v), sx * (1 - v), -sy * u);
    add_corner(g, &a, top + 1, left, (1 - u) * v, -sx * v, sy * (1 - u));
    add_corner(g, &a, top + 1, left + 1, u * v, sx * v, sy * u);
    return a;
}

bool kernel_grid_sampler(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct grid g;

    if (!describe(c, &g, 0, c->out))
        return false;
    const double *image = plain_in(&s, arg_tensor(c, 0), K_F64),
                 *grid = plain_in(&s, arg_tensor(c, 1), K_F64);
    double *out = plain_out(&s, c->out, K_F64);

    for (int64_t i = 0; i < g.images * g.points; i++) {
        int64_t k = i / g.points, p = i % g.points;
        struct around a = around(&g, grid + 2 * i);

        for (int64_t ch = k * g.channels; ch < (k + 1) * g.channels; ch++) {
            double sum = 0;

            for (int j = 0; j < a.n; j++)
                sum += a.share[j] * image[ch * g.h * g.w + a.at[j]];
            out[ch * g.points + p] = sum;
        }
    }
    plain_done(&s, c->out, out, K_F64);
    return true;
}

/* (grad, input, grid, …, output_mask): gradients of both */
bool kernel_grid_sampler_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *of[2] = {out_at(c, 0), out_at(c, 1)};
    struct grid g;

    if (!describe(c, &g, 1, arg_tensor(c, 0)) || !kernel_same(c, of[0], arg_tensor(c, 1)) ||
        !kernel_same(c, of[1], arg_tensor(c, 2)))
        return false;
    const double *grad = plain_in(&s, arg_tensor(c, 0), K_F64),
                 *image = plain_in(&s, arg_tensor(c, 1), K_F64),
                 *grid = plain_in(&s, arg_tensor(c, 2), K_F64);
    double *d[2] = {plain_out(&s, of[0], K_F64), plain_out(&s, of[1], K_F64)};

    for (int i = 0; i < 2; i++)
        if (d[i] != NULL)
            memset(d[i], 0, (size_t)rt_numel(of[i]) * sizeof(double));
    for (int64_t i = 0; i < g.images * g.points; i++) {
        int64_t k = i / g.points, p = i % g.points;
        struct around a = around(&g, grid + 2 * i);

        for (int64_t ch = k * g.channels; ch < (k + 1) * g.channels; ch++)
            for (int j = 0; j < a.n; j++) {
                double dy = grad[ch * g.points + p];
                int64_t at = ch * g.h * g.w + a.at[j];

                if (d[0] != NULL)
                    d[0][at] += dy * a.share[j];
                if (d[1] != NULL) {
                    d[1][2 * i] += dy * image[at] * a.dx[j];
                    d[1][2 * i + 1] += dy * image[at] * a.dy[j];
                }
            }
    }
    for (int i = 0; i < 2; i++)
        plain_done(&s, of[i], d[i], K_F64);
    return true;
}

size_t scratch_grid_sampler(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_grid_sampler_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
