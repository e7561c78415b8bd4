/* Matrix products by OpenBLAS. */
#include "run/kernel/gemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { ROW_MAJOR = 101, PLAIN_ORDER = 111, TRANSPOSED = 112 };

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *,
                         int, float, float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *,
                         int, double, double *, int);
typedef void (*cgemm_fn)(int, int, int, int, int, int, const void *, const void *, int,
                         const void *, int, const void *, void *, int);

/* Loaded once a process, and never changed: the only state that kernels have. */
static struct {
    sgemm_fn s;
    dgemm_fn d;
    cgemm_fn c, z;
} blas;
static pthread_once_t loaded = PTHREAD_ONCE_INIT; /* ThreadSanitizer does not know call_once() */

/* Zen 3 and Zen 4. The latter has AVX-512, for which OpenBLAS 0.3.21 takes kernels of another
 * maker's processors; but it computes 256 bits at a time, and those for AVX2 are faster: 108
 * instead of 101 GFLOP/s in large products, 95 instead of 70 in those of 64 rows. */
static bool is_family_25(void)
{
#if defined(__x86_64__)
    unsigned max, a, b, c, d;
    if (__get_cpuid(0, &max, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
        d == signature_AMD_edx && __get_cpuid(1, &a, &b, &c, &d))
        return (a >> 8 & 15) == 15 && (a >> 20 & 255) == 10;
#endif
    return false;
}

/* It looks at the environment while it is loaded; what the user says there counts. */
static void *open_blas(void)
{
    static const char chooses[] = "OPENBLAS_CORETYPE";
    bool choose = getenv(chooses) == NULL && is_family_25() && setenv(chooses, "Zen", 0) == 0;
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);

    if (lib == NULL)
        lib = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
    if (choose)
        unsetenv(chooses);
    return lib;
}

static void load(void)
{
    void *lib = open_blas();

    if (lib == NULL)
        return;
    void (*threads)(int);
    *(void **)&threads = dlsym(lib, "openblas_set_num_threads");
    if (threads != NULL)
        threads(1); /* a rank is one thread */
    *(void **)&blas.s = dlsym(lib, "cblas_sgemm");
    *(void **)&blas.d = dlsym(lib, "cblas_dgemm");
    *(void **)&blas.c = dlsym(lib, "cblas_cgemm");
    *(void **)&blas.z = dlsym(lib, "cblas_zgemm");
}

static bool is_transposed(const struct matrix *m)
{
    return m->col_step != 1 && m->cols > 1;
}

/* Can BLAS read it as it is? */
static bool is_dense(const struct matrix *m)
{
    bool by_rows = (m->cols <= 1 || m->col_step == 1) && (m->rows <= 1 || m->row_step >= m->cols);
    bool by_cols = (m->rows <= 1 || m->row_step == 1) && (m->cols <= 1 || m->col_step >= m->rows);

    return by_rows || by_cols;
}

static int leading(const struct matrix *m)
{
    int64_t step = is_transposed(m) ? m->col_step : m->row_step;
    int64_t least = is_transposed(m) ? m->rows : m->cols;

    if ((is_transposed(m) ? m->cols : m->rows) <= 1 || step < least)
        step = least;
    return (int)(step < 1 ? 1 : step);
}

size_t gemm_room(const struct matrix *out, const struct matrix *a, const struct matrix *b)
{
    return (is_dense(out) ? 0 : (size_t)(out->rows * out->cols)) +
           (is_dense(a) ? 0 : (size_t)(a->rows * a->cols)) +
           (is_dense(b) ? 0 : (size_t)(b->rows * b->cols)) + 3 * RT_ALIGN;
}

static struct matrix copied(const struct matrix *m, enum kind k, char **room)
{
    struct matrix to = {*room, m->rows, m->cols, m->cols, 1};
    int64_t bytes = kind_bytes[k];

    for (int64_t i = 0; i < m->rows; i++)
        elem_move((char *)to.p + i * m->cols * bytes, 1, (char *)m->p + i * m->row_step * bytes,
                  m->col_step, (size_t)bytes, m->cols);
    *room += (m->rows * m->cols * bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
    return to;
}

static void copy_back(const struct matrix *to, const struct matrix *from, enum kind k)
{
    int64_t bytes = kind_bytes[k];

    for (int64_t i = 0; i < to->rows; i++)
        elem_move((char *)to->p + i * to->row_step * bytes, to->col_step,
                  (char *)from->p + i * from->cols * bytes, 1, (size_t)bytes, to->cols);
}

/* OpenBLAS sets the result to zero before it adds to it, by a loop that is four times slower than
 * memset(): 4 % of a product whose inner size is 256, 10 % of one of 64. */
static void clear(enum kind k, const struct matrix *o)
{
    size_t row = (size_t)o->cols * (size_t)kind_bytes[k];
    size_t step = (size_t)leading(o) * (size_t)kind_bytes[k];
    char *p = o->p;

    if (row == step)
        memset(p, 0, row * (size_t)o->rows);
    else
        for (int64_t i = 0; i < o->rows; i++)
            memset(p + (size_t)i * step, 0, row);
}

static void call_blas(enum kind k, const struct matrix *o, const struct matrix *a,
                      const struct matrix *b, double alpha, double beta)
{
    if (beta == 0) {
        clear(k, o);
        beta = 1;
    }
    int ta = is_transposed(a) ? TRANSPOSED : PLAIN_ORDER,
        tb = is_transposed(b) ? TRANSPOSED : PLAIN_ORDER;
    int m = (int)o->rows, n = (int)o->cols, depth = (int)a->cols;

    if (k == K_F32) {
        blas.s(ROW_MAJOR, ta, tb, m, n, depth, (float)alpha, a->p, leading(a), b->p, leading(b),
               (float)beta, o->p, leading(o));
    } else if (k == K_F64) {
        blas.d(ROW_MAJOR, ta, tb, m, n, depth, alpha, a->p, leading(a), b->p, leading(b), beta,
               o->p, leading(o));
    } else if (k == K_C64) {
        float x[] = {(float)alpha, 0}, y[] = {(float)beta, 0};

        blas.c(ROW_MAJOR, ta, tb, m, n, depth, x, a->p, leading(a), b->p, leading(b), y, o->p,
               leading(o));
    } else {
        double x[] = {alpha, 0}, y[] = {beta, 0};

        blas.z(ROW_MAJOR, ta, tb, m, n, depth, x, a->p, leading(a), b->p, leading(b), y, o->p,
               leading(o));
    }
}

static void multiply_ints(const struct matrix *o, const struct matrix *a, const struct matrix *b,
                          int64_t alpha, int64_t beta)
{
    const int64_t *x = a->p, *y = b->p;
    int64_t *z = o->p;

    for (int64_t i = 0; i < o->rows; i++)
        for (int64_t j = 0; j < o->cols; j++) {
            uint64_t sum = 0;
            int64_t *to = &z[i * o->row_step + j * o->col_step];

            for (int64_t l = 0; l < a->cols; l++)
                sum += (uint64_t)x[i * a->row_step + l * a->col_step] *
                       (uint64_t)y[l * b->row_step + j * b->col_step];
            *to = (int64_t)((uint64_t)alpha * sum +
                            (beta != 0 ? (uint64_t)beta * (uint64_t)*to : 0));
        }
}

static void scale(const struct matrix *o, enum kind k, double beta)
{
    int64_t bytes = kind_bytes[k];

    for (int64_t i = 0; i < o->rows; i++)
        for (int64_t j = 0; j < o->cols; j++) {
            char *p = (char *)o->p + (i * o->row_step + j * o->col_step) * bytes;

            for (int part = 0; part < (k == K_C64 || k == K_C128 ? 2 : 1); part++) {
                if (k == K_F32 || k == K_C64)
                    ((float *)p)[part] = beta == 0 ? 0 : ((float *)p)[part] * (float)beta;
                else
                    ((double *)p)[part] = beta == 0 ? 0 : ((double *)p)[part] * beta;
            }
        }
}

bool gemm(struct rt_call *c, enum kind k, struct matrix out, struct matrix a, struct matrix b,
          double alpha, double beta, void *room)
{
    char *rest = room;

    if (out.rows == 0 || out.cols == 0)
        return true;
    if (k == K_I64) {
        multiply_ints(&out, &a, &b, (int64_t)alpha, (int64_t)beta);
        return true;
    }
    if (a.cols == 0) {
        scale(&out, k, beta);
        return true;
    }
    pthread_once(&loaded, load);
    if (blas.s == NULL || blas.d == NULL || blas.c == NULL || blas.z == NULL)
        return kernel_error(c, "matrix products need OpenBLAS, and there is no libopenblas.so.0; "
                               "on Debian: apt install libopenblas0-pthread");
    if (out.rows > INT32_MAX || out.cols > INT32_MAX || a.cols > INT32_MAX)
        return kernel_error(c, "a matrix has more than 2^31 rows or columns");
    if (!is_dense(&a))
        a = copied(&a, k, &rest);
    if (!is_dense(&b))
        b = copied(&b, k, &rest);
    struct matrix to = is_dense(&out) ? out : copied(&out, k, &rest);
    if (is_transposed(&to)) { /* o' = b' a' */
        struct matrix at = {a.p, a.cols, a.rows, a.col_step, a.row_step};
        struct matrix bt = {b.p, b.cols, b.rows, b.col_step, b.row_step};
        struct matrix ot = {to.p, to.cols, to.rows, to.col_step, to.row_step};

        call_blas(k, &ot, &bt, &at, alpha, beta);
    } else {
        call_blas(k, &to, &a, &b, alpha, beta);
    }
    if (to.p != out.p)
        copy_back(&out, &to, k);
    return true;
}

struct matrix gemm_matrix(const struct rt_tensor *t, const void *data)
{
    int n = t->n;

    return (struct matrix){(void *)(uintptr_t)data, t->size[n - 2], t->size[n - 1],
                           t->stride[n - 2], t->stride[n - 1]};
}

bool gemm_natural(const struct rt_tensor *t, enum kind k)
{
    return kind_of(t->dtype) == k && dtype_at(t->dtype)->bytes == kind_bytes[k];
}

struct rt_tensor gemm_operand(struct plain *s, const struct rt_tensor *t, enum kind k, bool read)
{
    struct rt_tensor x = *t;

    if (gemm_natural(t, k))
        return x;
    x.data = plain_room(s, (size_t)rt_numel(t) * kind_bytes[k]);
    x.dtype = (uint8_t)(k == K_F32   ? DTYPE_F32
                        : k == K_F64 ? DTYPE_F64
                        : k == K_I64 ? DTYPE_I64
                        : k == K_C64 ? DTYPE_C64
                                     : DTYPE_C128);
    int64_t step = 1;
    for (int d = t->n - 1; d >= 0; d--) {
        x.stride[d] = step;
        step *= t->size[d];
    }
    if (read)
        copy_tensor(s->c, &x, t);
    return x;
}
