/* All-reduce over shared memory beside MPI_Allreduce, on two ranks, interleaved in one run:
 *
 *     mpirun -n 2 build/release/bench/allreduce [ROUNDS [MOST_BYTES]]      (bench/run.sh does it)
 *
 * mpirun starts the ranks, and both ways run in the same two processes; Tuck's segment is a file
 * that is removed before it is used. In each round all rows of a size are measured, one after the
 * other, so that what disturbs the machine disturbs all; the median of a round's calls, then the
 * median of the rounds. Before each call its operand is written again, as a kernel would, and the
 * ranks meet; the time of a call is that of the slower rank. The latency of a barrier stands beside
 * every row: the same machine may be four times slower an hour later.
 *
 * From 16 MiB on, MPI works in pieces of 1 MiB (else it is slowed down by its own temporary), and
 * Tuck is also compared with a loop that reads and writes as many bytes and does not communicate.
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "run/comm/shm.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { RANKS = 2, MOST_CALLS = 2000, MOST_ROUNDS = 101 };
enum { LARGE = 16 << 20, PIECE = 1 << 20 };

static const size_t sizes[] = {8,        64,       256,       512,     1 << 10,  4 << 10, 16 << 10,
                               32 << 10, 64 << 10, 128 << 10, 1 << 20, 16 << 20, 64 << 20};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

enum way { BARRIER, MPI, PRIVATE, IN_HEAP, IN_PLACE, LIMIT_PRIVATE, LIMIT_HEAP, WAYS };

struct bench {
    struct comm *c;
    float *heap; /* the operand, in the symmetric heap */
    float *in, *out, *more;
    double *mine, *both; /* [MOST_CALLS] */
    int rank;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3; /* us */
}

static void stop(const char *what)
{
    fprintf(stderr, "allreduce: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Private results: of operands that are used in turns. */
static void call(struct bench *b, uint8_t kind, const void *in, void *out, size_t count)
{
    struct comm_part part = {.in = in, .out = out, .count = (int64_t)count, .dtype = DTYPE_F32};
    struct comm_call call = {.kind = kind, .n_part = kind != COMM_BARRIER, .part = &part};
    comm_req req;
    call.label = "bench";
    call.in_stays = in != out;
    if (!comm_start(b->c, &call, &req) || !comm_wait(b->c, req))
        stop(comm_error(b->c));
}

static void by_mpi(struct bench *b, size_t count)
{
    size_t piece = count * sizeof(float) >= LARGE ? PIECE / sizeof(float) : count;
    for (size_t at = 0; at < count; at += piece)
        MPI_Allreduce(b->in + at, b->out + at, (int)(count - at < piece ? count - at : piece),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* ---- The limit: as many bytes of the same memory, no communication ---- */

static float *operand(const struct bench *b, int i)
{
    return b->heap + (i % 2 != 0 ? sizes[SIZES - 1] / sizeof(float) : 0);
}

static void store(float *to, const float *x, const float *y, bool around)
{
#if defined(__SSE2__)
    for (int k = 0; k < 16; k += 4) {
        __m128 v = _mm_add_ps(_mm_loadu_ps(x + k), _mm_loadu_ps(y + k));
        if (around)
            _mm_stream_ps(to + k, v);
        else
            _mm_store_ps(to + k, v);
    }
#else
    (void)around;
    for (int k = 0; k < 16; k++)
        to[k] = x[k] + y[k];
#endif
}

/* Reads two arrays and writes one. */
static void loop_private(struct bench *b, size_t count, bool around)
{
    for (size_t i = 0; i < count; i += 16)
        store(b->out + i, b->in + i, b->more + i, around);
}

/* In the heap, as the call: reads both halves of an array and writes both halves of another. */
static void loop_heap(struct bench *b, size_t count, bool around)
{
    const float *in = b->heap;
    float *out = operand(b, 1);
    size_t n = count / 2;
    for (size_t i = 0; i < n; i += 16) {
        store(out + i, in + i, in + n + i, around);
        store(out + n + i, in + i, in + n + i, around);
    }
}

/* ---- Measuring ---- */

static void one(struct bench *b, enum way way, size_t count, int i)
{
    switch (way) {
    case BARRIER: call(b, COMM_BARRIER, NULL, NULL, 0); break;
    case MPI: by_mpi(b, count); break;
    case PRIVATE: call(b, COMM_ALL_REDUCE, operand(b, i), b->out, count); break;
    case IN_HEAP: call(b, COMM_ALL_REDUCE, b->heap, operand(b, 1), count); break;
    case IN_PLACE: call(b, COMM_ALL_REDUCE, b->heap, b->heap, count); break;
    case LIMIT_PRIVATE: loop_private(b, count, i % 2 == 0); break;
    default: loop_heap(b, count, i % 2 == 0); break;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof(*x), compare);
    return x[n / 2];
}

/* The median of calls of one way; of large ones the best: the loop of the limit has two forms. */
static double measure(struct bench *b, enum way way, size_t bytes)
{
    size_t count = bytes / sizeof(float);
    int calls = bytes < 64 << 10 ? 300 : bytes < LARGE ? 60 : 6;
    for (int i = 0; i < calls; i++) {
        bool in_heap = way == PRIVATE || way == IN_HEAP || way == IN_PLACE || way == LIMIT_HEAP;
        float *read = !in_heap ? b->in : way == PRIVATE ? operand(b, i) : b->heap;
        for (size_t k = 0; k < count; k++)
            read[k] = (float)(b->rank + i);
        call(b, COMM_BARRIER, NULL, NULL, 0);
        double start = now();
        one(b, way, count, i);
        b->mine[i] = now() - start;
        const float *result = way == IN_PLACE ? b->heap : way == IN_HEAP ? operand(b, 1) : b->out;
        if (way >= MPI && way <= IN_PLACE &&
            (result[0] != (float)(2 * i + 1) || result[count - 1] != (float)(2 * i + 1)))
            stop("a wrong result");
    }
    MPI_Allreduce(b->mine, b->both, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (bytes < LARGE)
        return median(b->both, calls);
    qsort(b->both, (size_t)calls, sizeof(*b->both), compare);
    return b->both[0];
}

/* The time per call of many barriers: with one, half of it is the clock. */
static double barrier(struct bench *b)
{
    enum { N = 1000 };
    call(b, COMM_BARRIER, NULL, NULL, 0);
    double start = now();
    for (int i = 0; i < N; i++)
        call(b, COMM_BARRIER, NULL, NULL, 0);
    return (now() - start) / N;
}

static struct comm_shared *segment(int rank)
{
    char name[64];
    snprintf(name, sizeof(name), "/tuck-bench-%d", (int)getppid());
    size_t bytes = (size_t)1 << 30;
    int fd = rank == 0 ? shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600) : -1;
    if (rank == 0 && (fd < 0 || ftruncate(fd, (off_t)bytes) != 0))
        stop("no shared memory");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
        fd = shm_open(name, O_RDWR, 0);
    void *p = fd >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        shm_unlink(name);
    if (p == MAP_FAILED)
        stop("no shared memory");
    if (rank == 0)
        shm_format(p, bytes, RANKS, false, true);
    MPI_Barrier(MPI_COMM_WORLD);
    return p;
}

static float *room(size_t bytes)
{
    float *p = aligned_alloc(4096, bytes);
    if (p == NULL)
        stop("out of memory");
    memset(p, 0, bytes);
    return p;
}

/* ---- The table ---- */

static bool row(size_t bytes, double t[WAYS][MOST_ROUNDS], int rounds)
{
    double m[WAYS], worst = 0;
    bool ok = true;
    for (int w = 0; w < WAYS; w++)
        m[w] = median(t[w], rounds);
    printf("%9zu %9.2f", bytes, m[MPI]);
    for (int w = PRIVATE; w <= IN_PLACE; w++) {
        double ratio = m[w] / m[MPI];
        worst = ratio > worst ? ratio : worst;
        printf(" %9.2f %4.2f", m[w], ratio);
    }
    printf(" %8.2f", m[BARRIER]);
    if (bytes >= LARGE) { /* what the executor does: results in the heap */
        double heap = 100 * m[LIMIT_HEAP] / m[IN_HEAP];
        double place = 100 * m[LIMIT_HEAP] / m[IN_PLACE];
        ok = heap >= 80 && place >= 80;
        printf("  %3.0f %%, %3.0f %% and %3.0f %% of the memory's limit (80 in the heap)",
               100 * m[LIMIT_PRIVATE] / m[PRIVATE], heap, place);
    } else if (bytes <= 128 << 10) {
        ok = worst <= (bytes >= 512 ? 0.5 : 1.0);
        printf("  at most %.2f", bytes >= 512 ? 0.5 : 1.0);
    }
    printf("%s\n", ok ? "" : "  MISSED");
    return ok;
}

static bool measure_all(struct bench *b, int rounds, size_t most)
{
    static double t[WAYS][MOST_ROUNDS];
    bool ok = true;
    if (b->rank == 0)
        printf("all-reduce of f32 on 2 ranks, us, median of %d rounds\n"
               "%9s %9s %9s %4s %9s %4s %9s %4s %8s\n",
               rounds, "bytes", "MPI", "private", "", "in heap", "", "in place", "", "barrier");
    for (int s = 0; s < SIZES && sizes[s] <= most; s++) {
        bool large = sizes[s] >= LARGE;
        int n = large && rounds > 7 ? 7 : rounds;
        for (int i = 0; i < n; i++) {
            t[BARRIER][i] = barrier(b);
            for (int w = MPI; w < (large ? WAYS : LIMIT_PRIVATE); w++)
                t[w][i] = measure(b, (enum way)w, sizes[s]);
        }
        if (b->rank == 0)
            ok &= row(sizes[s], t, n);
    }
    return ok;
}

int main(int argc, char **argv)
{
    char error[COMM_ERROR_BYTES];
    struct bench b = {0};
    int world, rounds = argc > 1 ? atoi(argv[1]) : 15;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (world != RANKS || rounds < 1 || rounds > MOST_ROUNDS)
        stop("mpirun -n 2 allreduce [1 … 101 rounds]");
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(b.rank, &core);
    sched_setaffinity(0, sizeof(core), &core);
    size_t most = sizes[SIZES - 1];
    struct comm_job job = {.transport = &transport_shm, .rank = b.rank, .world = RANKS};
    job.shared = segment(b.rank);
    b.c = comm_open(&job, error);
    b.heap = b.c != NULL ? comm_heap(b.c, 0, 2 * most) : NULL;
    if (b.heap == NULL)
        stop(b.c != NULL ? comm_error(b.c) : error);
    b.in = room(most), b.out = room(most), b.more = room(most);
    b.mine = malloc(MOST_CALLS * sizeof(double)), b.both = malloc(MOST_CALLS * sizeof(double));
    bool ok = measure_all(&b, rounds, argc > 2 ? (size_t)atol(argv[2]) : most);
    comm_close(b.c);
    MPI_Finalize();
    return b.rank == 0 && !ok;
}
