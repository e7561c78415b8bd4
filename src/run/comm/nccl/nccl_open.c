/* The NCCL transport, experimental: ranks are processes of this machine, one GPU each. Operands are
 * in the memory of the host, so they are copied to the GPU and back around each call. Groups,
 * barriers and small exchanges are those of the shm transport, which this one opens beside NCCL.
 * Reductions are NCCL's own: equal to those of other transports within tolerance.
 *
 * It is compiled against the headers only; the libraries are loaded when it is opened, so that a
 * machine without a GPU gets a message instead of a plug-in that cannot be loaded. */
#include <dlfcn.h>
#include <nccl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/comm/comm_call.h"
#include "run/comm/plugin.h"

/* Functions of both libraries, by name: X(result, name, arguments). */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cudaError_t, cudaGetDeviceCount, (int *))                                                    \
    X(cudaError_t, cudaSetDevice, (int))                                                           \
    X(cudaError_t, cudaMalloc, (void **, size_t))                                                  \
    X(cudaError_t, cudaFree, (void *))                                                             \
    X(cudaError_t, cudaMemcpyAsync,                                                                \
      (void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t))                           \
    X(cudaError_t, cudaStreamCreate, (cudaStream_t *))                                             \
    X(cudaError_t, cudaStreamDestroy, (cudaStream_t))                                              \
    X(cudaError_t, cudaEventCreate, (cudaEvent_t *))                                               \
    X(cudaError_t, cudaEventDestroy, (cudaEvent_t))                                                \
    X(cudaError_t, cudaEventRecord, (cudaEvent_t, cudaStream_t))                                   \
    X(cudaError_t, cudaEventQuery, (cudaEvent_t))                                                  \
    X(const char *, cudaGetErrorString, (cudaError_t))
#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *))                                             \
    X(ncclResult_t, ncclCommInitRank, (ncclComm_t *, int, ncclUniqueId, int))                      \
    X(ncclResult_t, ncclCommDestroy, (ncclComm_t))                                                 \
    X(ncclResult_t, ncclCommAbort, (ncclComm_t))                                                   \
    X(ncclResult_t, ncclGroupStart, (void))                                                        \
    X(ncclResult_t, ncclGroupEnd, (void))                                                          \
    X(ncclResult_t, ncclAllReduce,                                                                 \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))       \
    X(ncclResult_t, ncclReduce,                                                                    \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t))  \
    X(ncclResult_t, ncclReduceScatter,                                                             \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))       \
    X(ncclResult_t, ncclAllGather,                                                                 \
      (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t))                    \
    X(ncclResult_t, ncclBroadcast,                                                                 \
      (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))               \
    X(ncclResult_t, ncclSend,                                                                      \
      (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))                       \
    X(ncclResult_t, ncclRecv, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))     \
    X(const char *, ncclGetErrorString, (ncclResult_t))

#define MEMBER(result, name, args) result(*name) args;
struct library {
    CUDA_FUNCTIONS(MEMBER)
    NCCL_FUNCTIONS(MEMBER)
};

struct part_memory {
    void *in, *out; /* on the GPU */
    size_t in_cap, out_cap;
};

struct request {
    struct call_keep keep;
    bool used;
    bool control; /* a barrier, made by shm */
    comm_req inner;
    cudaEvent_t done;
    struct part_memory *memory;
    uint32_t n_memory;
};

struct channel {
    ncclComm_t comm;
    cudaStream_t stream;
};

struct nccl {
    struct comm c;
    struct comm *shm;
    struct library f;
    struct channel *chan; /* by group */
    int32_t n_chan;
    struct request **req;
    uint32_t n_req;
    double timeout_s;
};

static bool cuda_ok(struct nccl *m, cudaError_t e, const char *what)
{
    return e == cudaSuccess ||
           comm_fail(&m->c, "rank %d: nccl: %s: %s", m->c.rank, what, m->f.cudaGetErrorString(e));
}

static bool nccl_ok(struct nccl *m, ncclResult_t e, const char *what)
{
    return e == ncclSuccess ||
           comm_fail(&m->c, "rank %d: nccl: %s: %s", m->c.rank, what, m->f.ncclGetErrorString(e));
}

static bool give_up(struct nccl *m)
{
    comm_abort(m->shm, m->c.error);
    for (int32_t i = 0; i < m->n_chan; i++)
        if (m->chan[i].comm != NULL) {
            m->f.ncclCommAbort(m->chan[i].comm);
            m->chan[i].comm = NULL;
        }
    return false;
}

/* What shm says is what this transport says. */
static bool same_error(struct nccl *m, bool ok)
{
    return ok || comm_fail(&m->c, "%s", comm_error(m->shm));
}

/* ---- Calls ---- */

static bool type_of(uint8_t dtype, ncclDataType_t *type)
{
    switch (dtype) {
    case DTYPE_F64: *type = ncclFloat64; return true;
    case DTYPE_F32: *type = ncclFloat32; return true;
    case DTYPE_F16: *type = ncclFloat16; return true;
    case DTYPE_BF16: *type = ncclBfloat16; return true;
    case DTYPE_I64: *type = ncclInt64; return true;
    case DTYPE_U64: *type = ncclUint64; return true;
    case DTYPE_I32: *type = ncclInt32; return true;
    case DTYPE_U32: *type = ncclUint32; return true;
    case DTYPE_I8: *type = ncclInt8; return true;
    case DTYPE_U8: *type = ncclUint8; return true;
    default: return false;
    }
}

static bool op_of(uint8_t reduce, ncclRedOp_t *op)
{
    switch (reduce) {
    case COMM_SUM: *op = ncclSum; return true;
    case COMM_AVG: *op = ncclAvg; return true;
    case COMM_MIN: *op = ncclMin; return true;
    case COMM_MAX: *op = ncclMax; return true;
    case COMM_PRODUCT: *op = ncclProd; return true;
    default: return false;
    }
}

static bool room(struct nccl *m, void **p, size_t *cap, size_t bytes)
{
    if (bytes <= *cap)
        return true;
    if (*p != NULL)
        m->f.cudaFree(*p);
    *p = NULL;
    *cap = 0;
    if (!cuda_ok(m, m->f.cudaMalloc(p, bytes), "memory of the GPU"))
        return false;
    *cap = bytes;
    return true;
}

/* Each member's piece, by sends and receives between all pairs. */
static ncclResult_t pairs(struct nccl *m, const struct request *r, const struct comm_part *p,
                          const struct part_memory *d, struct channel *ch)
{
    const struct comm_call *call = &r->keep.call;
    const struct comm_group *g = &m->c.group[call->group];
    size_t size = dtype_at(p->dtype)->bytes, in = 0, out = 0;
    ncclResult_t e = m->f.ncclGroupStart();
    for (int32_t i = 0; i < g->n && e == ncclSuccess; i++) {
        bool sends = call->kind == COMM_ALL_TO_ALL ||
                     (call->kind == COMM_GATHER && i == call->root) ||
                     (call->kind == COMM_SCATTER && g->me == call->root);
        bool gets = call->kind == COMM_ALL_TO_ALL ||
                    (call->kind == COMM_GATHER && g->me == call->root) ||
                    (call->kind == COMM_SCATTER && i == call->root);
        size_t to = (size_t)(call->in_split != NULL ? call->in_split[i] : p->count) * size;
        size_t from = (size_t)(call->out_split != NULL ? call->out_split[i] : p->count) * size;
        if (sends && to > 0)
            e = m->f.ncclSend((const char *)d->in + in, to, ncclUint8, i, ch->comm, ch->stream);
        if (gets && from > 0 && e == ncclSuccess)
            e = m->f.ncclRecv((char *)d->out + out, from, ncclUint8, i, ch->comm, ch->stream);
        in += call->kind == COMM_GATHER ? 0 : to;
        out += call->kind == COMM_SCATTER ? 0 : from;
    }
    ncclResult_t end = m->f.ncclGroupEnd();
    return e == ncclSuccess ? end : e;
}

static ncclResult_t enqueue(struct nccl *m, const struct request *r, const struct comm_part *p,
                            const struct part_memory *d, struct channel *ch)
{
    const struct comm_call *call = &r->keep.call;
    size_t n = (size_t)p->count, bytes = n * dtype_at(p->dtype)->bytes;
    ncclDataType_t type = ncclUint8;
    ncclRedOp_t op = ncclSum;
    if (kind_reduces(call->kind) && (!type_of(p->dtype, &type) || !op_of(call->reduce, &op)))
        return ncclInvalidArgument;
    switch (call->kind) {
    case COMM_ALL_REDUCE:
        return m->f.ncclAllReduce(d->in, d->out, n, type, op, ch->comm, ch->stream);
    case COMM_REDUCE:
        return m->f.ncclReduce(d->in, d->out, n, type, op, call->root, ch->comm, ch->stream);
    case COMM_REDUCE_SCATTER:
        return m->f.ncclReduceScatter(d->in, d->out, n, type, op, ch->comm, ch->stream);
    case COMM_ALL_GATHER:
        return m->f.ncclAllGather(d->in, d->out, bytes, ncclUint8, ch->comm, ch->stream);
    case COMM_BROADCAST:
        return m->f.ncclBroadcast(d->in, d->out, bytes, ncclUint8, call->root, ch->comm,
                                  ch->stream);
    case COMM_P2P: /* tags are not compared: messages of a pair come in their order */
        return p->receive ? m->f.ncclRecv(d->out, bytes, ncclUint8, p->peer, ch->comm, ch->stream)
                          : m->f.ncclSend(d->in, bytes, ncclUint8, p->peer, ch->comm, ch->stream);
    default: return pairs(m, r, p, d, ch);
    }
}

static bool copy_in(struct nccl *m, struct request *r, uint32_t i, struct channel *ch)
{
    const struct comm_part *p = &r->keep.part[i];
    struct part_memory *d = &r->memory[i];
    size_t size = dtype_at(p->dtype)->bytes;
    size_t in = (size_t)call_in_count(&m->c, &r->keep.call, p) * size;
    size_t out = (size_t)call_out_count(&m->c, &r->keep.call, p) * size;
    if (!room(m, &d->in, &d->in_cap, in) || !room(m, &d->out, &d->out_cap, out))
        return false;
    return in == 0 ||
           cuda_ok(m, m->f.cudaMemcpyAsync(d->in, p->in, in, cudaMemcpyHostToDevice, ch->stream),
                   "copy to the GPU");
}

static bool copy_out(struct nccl *m, struct request *r, uint32_t i, struct channel *ch)
{
    const struct comm_part *p = &r->keep.part[i];
    size_t out = (size_t)call_out_count(&m->c, &r->keep.call, p) * dtype_at(p->dtype)->bytes;
    return out == 0 || cuda_ok(m,
                               m->f.cudaMemcpyAsync(p->out, r->memory[i].out, out,
                                                    cudaMemcpyDeviceToHost, ch->stream),
                               "copy from the GPU");
}

static bool run_parts(struct nccl *m, struct request *r)
{
    struct channel *ch = &m->chan[r->keep.call.group];
    uint32_t n = r->keep.call.n_part;
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = copy_in(m, r, i, ch);
    ok = ok && nccl_ok(m, m->f.ncclGroupStart(), "a group of calls");
    for (uint32_t i = 0; ok && i < n; i++)
        ok = nccl_ok(m, enqueue(m, r, &r->keep.part[i], &r->memory[i], ch),
                     comm_kind_name(r->keep.call.kind));
    ok = ok && nccl_ok(m, m->f.ncclGroupEnd(), comm_kind_name(r->keep.call.kind));
    for (uint32_t i = 0; ok && i < n; i++)
        ok = copy_out(m, r, i, ch);
    return ok && cuda_ok(m, m->f.cudaEventRecord(r->done, ch->stream), "an event");
}

static struct request *request_take(struct nccl *m)
{
    for (uint32_t i = 0; i < m->n_req; i++)
        if (!m->req[i]->used)
            return m->req[i];
    struct request **more = realloc(m->req, (m->n_req + 1) * sizeof(*more));
    if (more != NULL)
        m->req = more;
    struct request *r = more != NULL ? calloc(1, sizeof(*r)) : NULL;
    if (r == NULL || m->f.cudaEventCreate(&r->done) != cudaSuccess) {
        free(r);
        comm_fail(&m->c, "out of memory");
        return NULL;
    }
    r->inner = m->n_req;
    return m->req[m->n_req++] = r;
}

static bool request_fill(struct nccl *m, struct request *r, const struct comm_call *call)
{
    if (!call_keep(&r->keep, call, m->c.group[call->group].n))
        return comm_fail(&m->c, "out of memory");
    if (call->n_part <= r->n_memory)
        return true;
    struct part_memory *more = realloc(r->memory, call->n_part * sizeof(*more));
    if (more == NULL)
        return comm_fail(&m->c, "out of memory");
    memset(more + r->n_memory, 0, (call->n_part - r->n_memory) * sizeof(*more));
    r->memory = more;
    r->n_memory = call->n_part;
    return true;
}

static bool nccl_start(struct comm *c, const struct comm_call *call, comm_req *req)
{
    struct nccl *m = (struct nccl *)(void *)c;
    if (!call_check(c, call))
        return give_up(m);
    uint32_t at = 0;
    struct request *r = request_take(m);
    if (r == NULL || !request_fill(m, r, call))
        return give_up(m);
    while (m->req[at] != r)
        at++;
    *req = at;
    r->used = true;
    r->control = r->keep.call.kind == COMM_BARRIER;
    if (r->control)
        return same_error(m, comm_start(m->shm, call, &r->inner));
    return run_parts(m, r) || give_up(m);
}

static enum comm_state nccl_test(struct comm *c, comm_req req)
{
    struct nccl *m = (struct nccl *)(void *)c;
    if (req >= m->n_req || !m->req[req]->used) {
        comm_fail(c, "there is no request %u", req);
        return COMM_FAILED;
    }
    struct request *r = m->req[req];
    enum comm_state s = COMM_DONE;
    if (r->control) {
        s = comm_test(m->shm, r->inner);
        same_error(m, s != COMM_FAILED);
    } else {
        cudaError_t e = m->f.cudaEventQuery(r->done);
        s = e == cudaErrorNotReady                             ? COMM_PENDING
            : cuda_ok(m, e, comm_kind_name(r->keep.call.kind)) ? COMM_DONE
                                                               : COMM_FAILED;
        /* Another rank may have given up: then this one would wait for nothing. */
        if (s == COMM_PENDING && !same_error(m, comm_progress(m->shm)))
            s = COMM_FAILED;
    }
    r->used = s == COMM_PENDING;
    return s;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool nccl_wait(struct comm *c, comm_req req)
{
    struct nccl *m = (struct nccl *)(void *)c;
    double until = now_s() + m->timeout_s;
    enum comm_state s;
    while ((s = nccl_test(c, req)) == COMM_PENDING) {
        if (now_s() > until) {
            char text[256];
            call_describe(&m->req[req]->keep.call, text, sizeof(text));
            comm_fail(c, "rank %d: %s is not done within %g s", c->rank, text, m->timeout_s);
            return give_up(m);
        }
        sched_yield();
    }
    return s == COMM_DONE;
}

static bool nccl_progress(struct comm *c)
{
    struct nccl *m = (struct nccl *)(void *)c;
    return same_error(m, comm_progress(m->shm));
}

/* ---- Groups, heaps, exchanges: as on shm ---- */

static bool channel_open(struct nccl *m, const struct comm_group *g, int32_t id)
{
    struct channel *more = realloc(m->chan, (size_t)(id + 1) * sizeof(*more));
    if (more == NULL)
        return comm_fail(&m->c, "out of memory");
    m->chan = more;
    m->chan[id] = (struct channel){0};
    m->n_chan = id + 1;
    ncclUniqueId mine, *all = malloc((size_t)m->c.world * sizeof(*all));
    memset(&mine, 0, sizeof(mine));
    bool ok = all != NULL &&
              (g->me != 0 || nccl_ok(m, m->f.ncclGetUniqueId(&mine), "ncclGetUniqueId")) &&
              same_error(m, comm_exchange(m->shm, &mine, sizeof(mine), all));
    if (ok && g->me >= 0)
        ok = cuda_ok(m, m->f.cudaStreamCreate(&m->chan[id].stream), "a stream") &&
             nccl_ok(m, m->f.ncclCommInitRank(&m->chan[id].comm, g->n, all[g->member[0]], g->me),
                     "ncclCommInitRank");
    free(all);
    return ok;
}

static int32_t nccl_group(struct comm *c, const int32_t *member, int32_t n)
{
    struct nccl *m = (struct nccl *)(void *)c;
    int32_t before = m->shm->n_group, id = comm_group(m->shm, member, n);
    bool added;
    if (!same_error(m, id >= 0) || groups_add(c, member, n, &added) != id)
        return -1;
    if (id < before || channel_open(m, &c->group[id], id))
        return id;
    give_up(m);
    return -1;
}

static void *nccl_heap(struct comm *c, int32_t group, size_t bytes)
{
    struct nccl *m = (struct nccl *)(void *)c;
    void *p = comm_heap(m->shm, group, bytes);
    same_error(m, p != NULL);
    return p;
}

static void *nccl_peer(struct comm *c, int32_t group, int32_t member)
{
    return comm_peer(((struct nccl *)(void *)c)->shm, group, member);
}

static bool nccl_exchange(struct comm *c, const void *mine, size_t bytes, void *all)
{
    struct nccl *m = (struct nccl *)(void *)c;
    return same_error(m, comm_exchange(m->shm, mine, bytes, all));
}

static void nccl_abort(struct comm *c, const char *reason)
{
    struct nccl *m = (struct nccl *)(void *)c;
    comm_fail(c, "%s", reason);
    give_up(m);
}

/* ---- Joining and leaving ---- */

static void nccl_close(struct comm *c)
{
    struct nccl *m = (struct nccl *)(void *)c;
    for (uint32_t i = 0; i < m->n_req; i++) {
        for (uint32_t k = 0; k < m->req[i]->n_memory; k++) {
            m->f.cudaFree(m->req[i]->memory[k].in);
            m->f.cudaFree(m->req[i]->memory[k].out);
        }
        m->f.cudaEventDestroy(m->req[i]->done);
        call_drop(&m->req[i]->keep);
        free(m->req[i]->memory);
        free(m->req[i]);
    }
    for (int32_t i = 0; i < m->n_chan; i++) {
        if (m->chan[i].comm != NULL)
            m->f.ncclCommDestroy(m->chan[i].comm);
        if (m->chan[i].stream != NULL)
            m->f.cudaStreamDestroy(m->chan[i].stream);
    }
    comm_close(m->shm);
    groups_free(c);
    free(m->req);
    free(m->chan);
    free(m);
}

static void *open_library(const char *const *name, const char *what, char *error)
{
    void *file = NULL;
    for (int i = 0; name[i] != NULL && file == NULL; i++)
        file = dlopen(name[i], RTLD_NOW | RTLD_GLOBAL);
    if (file == NULL)
        snprintf(error, COMM_ERROR_BYTES,
                 "nccl: this machine has no %s (%s cannot be loaded): the transport needs an "
                 "NVIDIA GPU with CUDA 12 and NCCL; use shm or mpi",
                 what, name[0]);
    return file;
}

static bool find(void *file, const char *name, void *function, char *error)
{
    void *symbol = dlsym(file, name);
    memcpy(function, &symbol, sizeof(symbol));
    if (symbol == NULL)
        snprintf(error, COMM_ERROR_BYTES, "nccl: the library has no %s", name);
    return symbol != NULL;
}

static bool load(struct library *f, char *error)
{
    static const char *const cudart[] = {"libcudart.so.12", "libcudart.so", NULL};
    static const char *const library[] = {"libnccl.so.2", NULL};
    void *cuda = open_library(cudart, "CUDA", error);
    void *nccl = cuda != NULL ? open_library(library, "NCCL", error) : NULL;
    bool ok = nccl != NULL;
#define FIND_CUDA(result, name, args) ok = ok && find(cuda, #name, &f->name, error);
#define FIND_NCCL(result, name, args) ok = ok && find(nccl, #name, &f->name, error);
    CUDA_FUNCTIONS(FIND_CUDA)
    NCCL_FUNCTIONS(FIND_NCCL)
    return ok;
}

static bool take_gpu(struct nccl *m, int rank, char *error)
{
    int n = 0;
    cudaError_t e = m->f.cudaGetDeviceCount(&n);
    if (e == cudaSuccess && n > 0)
        e = m->f.cudaSetDevice(rank % n);
    if (e == cudaSuccess && n > 0)
        return true;
    snprintf(error, COMM_ERROR_BYTES, "nccl: this machine has no GPU that CUDA can use%s%s",
             e != cudaSuccess ? ": " : "", e != cudaSuccess ? m->f.cudaGetErrorString(e) : "");
    return false;
}

extern const struct transport transport_nccl;

static struct comm *nccl_open(const struct comm_job *job, char *error)
{
    struct nccl *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        snprintf(error, COMM_ERROR_BYTES, "out of memory");
        return NULL;
    }
    m->c.transport = &transport_nccl;
    m->timeout_s = job->timeout_s > 0 ? job->timeout_s : 60;
    if (!load(&m->f, error) || !take_gpu(m, job->rank, error)) {
        free(m);
        return NULL;
    }
    m->shm = transport_shm.open(job, error);
    if (m->shm == NULL) {
        free(m);
        return NULL;
    }
    m->c.rank = m->shm->rank;
    m->c.world = m->shm->world;
    bool added;
    if (groups_add(&m->c, m->shm->group[0].member, m->c.world, &added) == 0 &&
        channel_open(m, &m->c.group[0], 0))
        return &m->c;
    snprintf(error, COMM_ERROR_BYTES, "%s", m->c.error);
    nccl_close(&m->c);
    return NULL;
}

const struct transport transport_nccl = {
    .name = "nccl",
    .help = "ranks are processes of this machine with a GPU each; experimental",
    .open = nccl_open,
    .close = nccl_close,
    .abort = nccl_abort,
    .group = nccl_group,
    .heap = nccl_heap,
    .peer = nccl_peer,
    .start = nccl_start,
    .test = nccl_test,
    .wait = nccl_wait,
    .progress = nccl_progress,
    .exchange = nccl_exchange,
};

__attribute__((visibility("default"))) tuck_transport_fn tuck_transport;

const struct transport *tuck_transport(const char *version, size_t call_bytes)
{
    bool same = strcmp(version, TUCK_VERSION) == 0 && call_bytes == sizeof(struct comm_call);
    return same ? &transport_nccl : NULL;
}
