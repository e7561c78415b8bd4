#include "run/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/diag.h"
#include "run/kernel/kernel.h"

enum { ROUNDS = 9, BESIDE = 5, HEAP_PARTS = 2 };

static const enum comm_kind kind_of[CAL_COLLS] = {
    COMM_ALL_REDUCE, COMM_ALL_GATHER, COMM_REDUCE_SCATTER, COMM_ALL_TO_ALL, COMM_BROADCAST};

tuck_coll calibrate_coll(int i)
{
    static const tuck_coll coll[CAL_COLLS] = {TUCK_ALL_REDUCE, TUCK_ALL_GATHER, TUCK_REDUCE_SCATTER,
                                              TUCK_ALL_TO_ALL, TUCK_BROADCAST};

    return coll[i];
}

int64_t calibrate_size(int i)
{
    return (int64_t)CAL_LEAST << 2 * i;
}

enum { GEMM_ROWS = 16 };

double calibrate_gemm_flops(int i)
{
    double rows = (double)(GEMM_ROWS << i);

    return 2 * rows * 4 * rows * 4 * rows;
}

int64_t calibrate_loop_bytes(int i)
{
    return (int64_t)2048 << 2 * i;
}

struct measuring {
    const tuck_exec_options *o;
    struct calibration *out; /* shared by all ranks */
};

struct cal_rank {
    struct comm *comm;
    char *heap;
    size_t half; /* bytes of the operand, and of the result */
    char *error;
    struct calibration *out;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

static bool failed(struct cal_rank *k, const char *why)
{
    if (k->error[0] == '\0')
        snprintf(k->error, COMM_ERROR_BYTES, "%s", why);
    return false;
}

/* ---- collectives ---- */

static bool once(struct cal_rank *k, const struct comm_call *c)
{
    comm_req req;

    return (comm_start(k->comm, c, &req) && comm_wait(k->comm, req)) ||
           failed(k, comm_error(k->comm));
}

static bool meet(struct cal_rank *k)
{
    return once(k, &(struct comm_call){.kind = COMM_BARRIER, .label = "calibration"});
}

/* bytes is the full message: what one member of an all-gather has in the end. */
static struct comm_call call_of(struct cal_rank *k, enum comm_kind kind, int64_t bytes,
                                struct comm_part *part)
{
    bool split = kind != COMM_ALL_REDUCE && kind != COMM_BROADCAST;

    *part = (struct comm_part){.in = k->heap,
                               .out = split ? k->heap + k->half : k->heap,
                               .count = bytes / 4 / (split ? k->comm->world : 1),
                               .dtype = DTYPE_F32};
    return (struct comm_call){
        .kind = (uint8_t)kind, .n_part = 1, .part = part, .label = "calibration"};
}

static bool time_coll(struct cal_rank *k, enum comm_kind kind, int64_t bytes, double *ns)
{
    struct comm_part part;
    struct comm_call c = call_of(k, kind, bytes, &part);
    double v[ROUNDS];
    int inner = bytes < 65536 ? 20 : 2;

    for (int i = -1; i < ROUNDS; i++) {
        if (!meet(k))
            return false;
        double t = now();
        for (int j = 0; j < inner; j++)
            if (!once(k, &c))
                return false;
        if (i >= 0)
            v[i] = (now() - t) / inner;
    }
    *ns = median(v, ROUNDS);
    return true;
}

static bool time_colls(struct cal_rank *k)
{
    double own[CAL_COLLS][CAL_SIZES], *all;

    for (int c = 0; c < CAL_COLLS; c++)
        for (int s = 0; s < CAL_SIZES; s++)
            if (!time_coll(k, kind_of[c], calibrate_size(s), &own[c][s]))
                return false;
    all = malloc(sizeof(own) * (size_t)k->comm->world);
    bool ok = all != NULL && comm_exchange(k->comm, own, sizeof(own), all);
    for (int i = 0; ok && k->comm->rank == 0 && i < CAL_COLLS * CAL_SIZES; i++) {
        double *most = &k->out->coll_ns[i / CAL_SIZES][i % CAL_SIZES];
        for (int r = 0; r < k->comm->world; r++) {
            double v = all[(size_t)r * CAL_COLLS * CAL_SIZES + (size_t)i];
            *most = v > *most ? v : *most;
        }
    }
    free(all);
    return ok || failed(k, all == NULL ? "out of memory" : comm_error(k->comm));
}

/* ---- kernels ---- */

static struct rt_tensor matrix(void *data, enum dtype d, int64_t rows, int64_t columns)
{
    return (struct rt_tensor){
        .data = data, .dtype = (uint8_t)d, .n = 2, .size = {rows, columns}, .stride = {columns, 1}};
}

/* A call of an operator on two matrices. */
struct timed {
    struct rt_value arg[3];
    struct rt_call c;
};

/* False: there is no memory. Its kernel is NULL if it has none. */
static bool begin_call(struct cal_rank *k, const char *op, struct rt_tensor *a, struct rt_tensor *b,
                       struct rt_tensor *out, struct timed *t)
{
    const struct op_row *row = op_at(op_find(op, strlen(op)));

    t->arg[0] = (struct rt_value){.kind = RT_TENSOR, .tensor = a};
    t->arg[1] = (struct rt_value){.kind = RT_TENSOR, .tensor = b};
    t->arg[2] = (struct rt_value){.kind = RT_INT, .i = 1};
    t->c = (struct rt_call){.kernel = kernel_at((enum op_kernel)row->kernel),
                            .arg = t->arg,
                            .out = out,
                            .n_arg = strcmp(op, "aten.add.Tensor") == 0 ? 3 : 2,
                            .n_out = 1,
                            .error = k->error,
                            .error_size = COMM_ERROR_BYTES};
    size_t need = t->c.kernel != NULL ? kernel_scratch(&t->c) : 0;
    if (need > 0)
        t->c.scratch = aligned_alloc(RT_ALIGN, (need + RT_ALIGN) & ~(size_t)(RT_ALIGN - 1));
    return need == 0 || t->c.scratch != NULL || failed(k, "out of memory");
}

/* The next call takes its second operand and its result elsewhere, `apart` bytes on in each half of
 * the heap: in a step operands seldom lie in the first cache. 0: at the same places. */
static void move_operands(struct cal_rank *k, struct rt_tensor *b, struct rt_tensor *out,
                          size_t apart)
{
    char *second = k->heap + k->half;

    if (apart == 0)
        return;
    b->data = (char *)b->data + apart;
    out->data = (char *)out->data + apart;
    if ((char *)b->data + apart > second)
        b->data = k->heap;
    if ((char *)out->data + apart > second + k->half)
        out->data = second;
}

/* Nanoseconds of such a call; 0 if it has no kernel. */
static bool time_kernel(struct cal_rank *k, const char *op, struct rt_tensor *a,
                        struct rt_tensor *b, struct rt_tensor *out, int inner, size_t apart,
                        double *ns)
{
    struct timed t;
    double v[ROUNDS];

    *ns = 0;
    if (!begin_call(k, op, a, b, out, &t))
        return false;
    if (t.c.kernel == NULL)
        return true; /* not measured */
    bool ok = true;
    for (int i = -1; ok && i < ROUNDS; i++) {
        double from = now();
        for (int j = 0; ok && j < inner; j++) {
            ok = kernel_run(&t.c);
            move_operands(k, b, out, apart);
        }
        if (i >= 0)
            v[i] = (now() - from) / inner;
    }
    free(t.c.scratch);
    *ns = ok ? median(v, ROUNDS) : 0;
    return ok || failed(k, "a kernel failed");
}

/* Per second; 0 if it was not measured. */
static double rate(double amount, double ns)
{
    return ns > 0 ? amount * 1e9 / ns : 0;
}

static struct rt_tensor turned(struct rt_tensor t)
{
    return (struct rt_tensor){.data = t.data,
                              .dtype = t.dtype,
                              .n = 2,
                              .size = {t.size[1], t.size[0]},
                              .stride = {t.stride[1], t.stride[0]}};
}

/* Products of growing size: the mean of that of a forward, whose weights are transposed, and of the
 * two of a backward. All have as many operations; the gradient of the weights is the largest result
 * with the shortest sums. */
static bool time_gemms(struct cal_rank *k)
{
    for (int i = 0; i < CAL_GEMMS; i++) {
        int64_t rows = GEMM_ROWS << i, wide = 4 * rows;
        size_t apart = (size_t)(wide * wide * 4);
        double sum = 0;

        for (int form = 0; form < 3; form++) {
            char *a = k->heap + k->half - rows * wide * 4; /* the end of the first half */
            struct rt_tensor x = matrix(a, DTYPE_F32, rows, wide),
                             y = matrix(k->heap, DTYPE_F32, wide, wide),
                             z = matrix(k->heap + k->half, DTYPE_F32, rows, wide);
            double ns;

            if (form == 1) {
                x = turned(x);
                y = matrix(k->heap, DTYPE_F32, rows, wide);
                z = matrix(k->heap + k->half, DTYPE_F32, wide, wide);
            }
            if (form == 2)
                y = turned(y);
            if (!meet(k) ||
                !time_kernel(k, "aten.mm.default", &x, &y, &z, i < 2 ? 60 : 4, apart, &ns))
                return false;
            sum += ns;
        }
        if (k->comm->rank == 0)
            k->out->gemm_ns[i] = sum / 3;
    }
    return true;
}

/* Loops of growing size: one tensor read, one written. */
static bool time_loops(struct cal_rank *k)
{
    for (int i = 0; i < CAL_LOOPS; i++) {
        int64_t n = calibrate_loop_bytes(i) / 8;
        struct rt_tensor x = matrix(k->heap, DTYPE_F32, 1, n),
                         z = matrix(k->heap + k->half, DTYPE_F32, 1, n);
        double ns;

        if (!meet(k) || !time_kernel(k, "aten.neg.default", &x, &x, &z, i < 5 ? 64 : 4,
                                     (size_t)calibrate_loop_bytes(i) / 2, &ns))
            return false;
        if (k->comm->rank == 0)
            k->out->loop_ns[i] = ns;
    }
    return true;
}

/* How much longer products take while a collective moves bytes, the transport's work between
 * kernels included; and how long that collective takes. */
static bool time_beside(struct cal_rank *k, int coll, struct timed *t, double alone, double *factor,
                        double *took)
{
    struct comm_part part;
    struct comm_call c = call_of(k, kind_of[coll], calibrate_size(CAL_SIZES - 1), &part);
    double v[BESIDE], all[BESIDE];

    for (int i = 0; i < BESIDE; i++) {
        enum comm_state state;
        comm_req req;
        int done = 0;

        if (!meet(k) || !comm_start(k->comm, &c, &req))
            return failed(k, comm_error(k->comm));
        double from = now();
        do {
            if (!kernel_run(&t->c))
                return failed(k, "a kernel failed");
            done++;
            state = comm_test(k->comm, req);
        } while (state == COMM_PENDING);
        if (state == COMM_FAILED)
            return failed(k, comm_error(k->comm));
        all[i] = now() - from;
        v[i] = all[i] / (done * alone);
    }
    *factor = median(v, BESIDE);
    *took = median(all, BESIDE);
    return true;
}

static bool time_all_beside(struct cal_rank *k)
{
    enum { SIDE = 256 };
    static const size_t bytes = SIDE * SIDE * 4;
    char *room = malloc(3 * bytes);
    double alone, factor = 1, took = 0;
    struct timed t;

    if (k->comm->transport == &transport_shm) {
        k->out->on_cores = true;
        free(room);
        return true;
    }
    if (room == NULL)
        return failed(k, "out of memory");
    memset(room, 0, 3 * bytes);
    struct rt_tensor x = matrix(room, DTYPE_F32, SIDE, SIDE),
                     y = matrix(room + bytes, DTYPE_F32, SIDE, SIDE),
                     z = matrix(room + 2 * bytes, DTYPE_F32, SIDE, SIDE);
    bool ok = time_kernel(k, "aten.mm.default", &x, &y, &z, 4, 0, &alone) &&
              begin_call(k, "aten.mm.default", &x, &y, &z, &t);
    for (int i = 0; ok && alone > 0 && i < CAL_COLLS; i++) {
        ok = time_beside(k, i, &t, alone, &factor, &took);
        if (k->comm->rank == 0) {
            k->out->beside[i] = factor;
            k->out->held[i] = took / k->out->coll_ns[i][CAL_SIZES - 1];
        }
    }
    if (ok)
        free(t.c.scratch);
    free(room);
    return ok;
}

/* All ranks compute at once, as in a step. */
static bool time_kernels(struct cal_rank *k)
{
    struct calibration *o = k->out;
    bool notes = k->comm->rank == 0;
    double ns;
    int64_t side = 512, n = (int64_t)(k->half / 4);
    char *a = k->heap, *b = k->heap + side * side * 8, *c = b + side * side * 8;

    memset(k->heap, 0, 2 * k->half);
    for (int wide = 0; wide < 2; wide++) {
        enum dtype d = wide ? DTYPE_F64 : DTYPE_F32;
        struct rt_tensor x = matrix(a, d, side, side), y = matrix(b, d, side, side),
                         z = matrix(c, d, side, side);
        if (!meet(k) || !time_kernel(k, "aten.mm.default", &x, &y, &z, 4, 0, &ns))
            return false;
        if (notes)
            *(wide ? &o->gemm64_flops : &o->gemm_flops) = rate(2 * (double)(side * side * side),
                                                               ns);
    }
    struct rt_tensor x = matrix(k->heap, DTYPE_F32, 1, n),
                     z = matrix(k->heap + k->half, DTYPE_F32, 1, n);
    if (!meet(k) || !time_kernel(k, "aten.clone.default", &x, &x, &z, 1, 0, &ns))
        return false;
    if (notes)
        o->copy_bytes = rate(8 * (double)n, ns);
    if (!meet(k) || !time_kernel(k, "aten.add.Tensor", &x, &x, &z, 1, 0, &ns))
        return false;
    if (notes)
        o->loop_bytes = rate(8 * (double)n, ns);
    x = matrix(k->heap, DTYPE_F32, 1, 4);
    z = matrix(k->heap + 64, DTYPE_F32, 1, 4);
    if (!meet(k) || !time_kernel(k, "aten.add.Tensor", &x, &x, &z, 1000, 0, &ns))
        return false;
    if (notes)
        o->kernel_ns = ns;
    return true;
}

/* ---- the job ---- */

static bool measure(struct cal_rank *k)
{
    k->half = (size_t)calibrate_size(CAL_SIZES - 1) + 64;
    k->heap = comm_heap(k->comm, 0, HEAP_PARTS * k->half);
    if (k->heap == NULL)
        return failed(k, comm_error(k->comm));
    memset(k->heap, 0, HEAP_PARTS * k->half);
    if (!time_kernels(k) || !time_gemms(k) || !time_loops(k) || !time_colls(k) ||
        !time_all_beside(k))
        return false;
    if (k->comm->rank == 0) {
        k->out->world = k->comm->world;
        k->out->speaks = true;
    }
    return meet(k);
}

static int rank_main(void *arg, const struct comm_job *job, char *error)
{
    struct measuring *m = arg;
    struct cal_rank k = {.error = error, .out = m->out};

    error[0] = '\0';
    k.comm = comm_open(job, error);
    if (k.comm == NULL)
        return 1;
    bool ok = measure(&k);
    if (!ok)
        comm_abort(k.comm, error);
    comm_close(k.comm);
    return ok ? 0 : 1;
}

tuck_status calibrate(const tuck_exec_options *o, tuck_diags *diags, struct calibration *out)
{
    char error[COMM_ERROR_BYTES];
    struct launch_options lo = {.world = (int)o->ranks,
                                .pin = !o->no_pin,
                                .timeout_s = o->timeout_s,
                                .transport = transport_find(o->transport, error)};
    struct launch_result result;
    struct measuring m = {.o = o};

    if (lo.transport == NULL) {
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "%s", error);
        return TUCK_EINVAL;
    }
    m.out = mmap(NULL, sizeof(*m.out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m.out == MAP_FAILED)
        return TUCK_ENOMEM;
    bool ok = launch(&lo, rank_main, &m, &result);
    if (!ok)
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "%s",
                 result.first >= 0 && result.first < result.n ? result.rank[result.first].error
                                                              : result.error);
    *out = *m.out;
    launch_free(&result);
    munmap(m.out, sizeof(*m.out));
    return ok ? TUCK_OK : TUCK_EINVAL;
}
