/* The jobs of a call: which bytes go where, and what is computed from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/comm/mpi/mpi_comm.h"
#include "run/comm/reduce.h"

static const struct comm_part *part_of(const struct mpi_job *j)
{
    return &j->r->keep.part[j->part];
}

static size_t size_of(const struct mpi_job *j)
{
    return dtype_at(part_of(j)->dtype)->bytes;
}

int64_t mpi_job_range(const struct mpi_req *r, int64_t *step)
{
    const struct comm_part *p = &r->keep.part[r->at];
    *step = MPI_PIECE / dtype_at(p->dtype)->bytes;
    if (r->keep.call.kind == COMM_ALL_TO_ALL)
        *step = 1; /* one job: pairs have different sizes */
    return r->keep.call.kind == COMM_ALL_TO_ALL ? 1 : p->count;
}

/* ---- Messages ---- */

static MPI_Request *room(struct mpi *m, struct mpi_job *j, int rank, bool receive)
{
    if (j->n_q == j->cap_q) {
        int cap = j->cap_q * 2 + 8;
        MPI_Request *more = realloc(j->q, (size_t)cap * sizeof(*more));
        if (more != NULL)
            j->q = more;
        struct mpi_peer *peer = realloc(j->peer, (size_t)cap * sizeof(*peer));
        if (peer != NULL)
            j->peer = peer;
        if (more == NULL || peer == NULL) {
            comm_fail(&m->c, "out of memory");
            return NULL;
        }
        j->cap_q = cap;
    }
    j->peer[j->n_q] = (struct mpi_peer){rank, receive};
    return &j->q[j->n_q++];
}

/* A message of any size: MPI counts in int. */
static bool message(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, int32_t peer, char *at,
                    size_t bytes, bool receive)
{
    int rank = ch->member[peer];
    do {
        int n = bytes > (1 << 30) ? 1 << 30 : (int)bytes;
        MPI_Request *q = room(m, j, rank, receive);
        if (q == NULL)
            return false;
        int code = receive ? MPI_Irecv(at, n, MPI_BYTE, rank, j->tag, m->jobs, q)
                           : MPI_Isend(at, n, MPI_BYTE, rank, j->tag, m->jobs, q);
        if (code != MPI_SUCCESS) {
            j->n_q--;
            return mpi_ok(m, code, receive ? "MPI_Irecv" : "MPI_Isend");
        }
        at += n;
        bytes -= (size_t)n;
    } while (bytes > 0);
    return true;
}

static bool get(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, int32_t peer, char *to,
                size_t bytes)
{
    return bytes == 0 || message(m, ch, j, peer, to, bytes, true);
}

static bool put(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, int32_t peer,
                const char *from, size_t bytes)
{
    char *at;
    memcpy(&at, &from, sizeof(at)); /* MPI's sends take const, message() does both */
    return bytes == 0 || message(m, ch, j, peer, at, bytes, false);
}

static bool memory(struct mpi *m, struct mpi_job *j, size_t bytes)
{
    if (bytes <= j->memory_cap)
        return true;
    free(j->memory);
    j->memory = malloc(bytes);
    j->memory_cap = j->memory != NULL ? bytes : 0;
    return j->memory != NULL || comm_fail(&m->c, "out of memory");
}

/* ---- Heads ---- */

static struct mpi_head head_for(const struct mpi_job *j, int32_t peer)
{
    const struct comm_call *call = &j->r->keep.call;
    const struct comm_part *p = part_of(j);
    bool rooted = call->kind >= COMM_BROADCAST && call->kind <= COMM_SCATTER;
    struct mpi_head h = {.what = call->kind};
    if (call->kind == COMM_BARRIER)
        return h;
    h.count = p->count;
    h.what = call->kind | (uint64_t)(kind_reduces(call->kind) ? call->reduce : 0) << 8 |
             (uint64_t)p->dtype << 16 | (uint64_t)(uint32_t)(rooted ? call->root : 0) << 24;
    if (call->kind == COMM_ALL_TO_ALL) {
        h.to_you = call->in_split != NULL ? call->in_split[peer] : p->count;
        h.from_you = call->in_split != NULL ? call->out_split[peer] : p->count;
        h.count = call->in_split != NULL ? -1 : p->count;
    }
    return h;
}

static bool send_heads(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    size_t n = (size_t)ch->n;
    if (!memory(m, j, 2 * n * sizeof(struct mpi_head)))
        return false;
    struct mpi_head *theirs = (struct mpi_head *)(void *)j->memory, *mine = theirs + n;
    for (int32_t i = 0; i < ch->n; i++) {
        mine[i] = head_for(j, i);
        if (i == ch->me)
            continue;
        if (!get(m, ch, j, i, (char *)&theirs[i], sizeof(*theirs)) ||
            !put(m, ch, j, i, (const char *)&mine[i], sizeof(*mine)))
            return false;
    }
    return true;
}

static void say_what(const struct mpi_head *h, char *text, size_t size)
{
    uint64_t w = h->what;
    bool reduces = kind_reduces(w & 255);
    snprintf(text, size, "%s%s%s of %lld %s", comm_kind_name((enum comm_kind)(w & 255)),
             reduces ? " " : "", reduces ? comm_reduce_name((enum comm_reduce)(w >> 8 & 255)) : "",
             (long long)h->count, dtype_at((enum dtype)(w >> 16 & 255))->name);
}

static bool check_heads(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct mpi_head *theirs = (const struct mpi_head *)(const void *)j->memory;
    const struct mpi_head *mine = theirs + ch->n;
    char text[256], own[160], other[160];
    call_describe(&j->r->keep.call, text, sizeof(text));
    for (int32_t i = 0; i < ch->n; i++) {
        if (i == ch->me)
            continue;
        int peer = ch->member[i];
        say_what(&mine[i], own, sizeof(own));
        say_what(&theirs[i], other, sizeof(other));
        if (theirs[i].what != mine[i].what || theirs[i].count != mine[i].count)
            return comm_fail(&m->c, "rank %d calls %s (%s), but rank %d calls %s", m->c.rank, text,
                             own, peer, other);
        if (theirs[i].to_you != mine[i].from_you || theirs[i].from_you != mine[i].to_you)
            return comm_fail(&m->c,
                             "%s: rank %d sends %lld elements to rank %d and expects %lld; that "
                             "expects %lld and sends %lld",
                             text, m->c.rank, (long long)mine[i].to_you, peer,
                             (long long)mine[i].from_you, (long long)theirs[i].from_you,
                             (long long)theirs[i].to_you);
    }
    j->r->agreed = true;
    return true;
}

/* ---- Reductions ---- */

/* The share of a member in the range of a job. */
static size_t share(const struct mpi_chan *ch, const struct mpi_job *j, int32_t i, size_t *at)
{
    size_t n = (size_t)(j->hi - j->lo), members = (size_t)ch->n;
    size_t per = (n + members - 1) / members;
    *at = per * (size_t)i < n ? per * (size_t)i : n;
    return n - *at < per ? n - *at : per;
}

/* Receives from[me] of all others into memory, and sends from[i] to each: elements of in. */
static bool trade(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, bool shares)
{
    const struct comm_part *p = part_of(j);
    size_t size = size_of(j), own_at, at;
    size_t own = shares ? share(ch, j, ch->me, &own_at) : (size_t)(j->hi - j->lo);
    if (!memory(m, j, (size_t)ch->n * own * size + 1))
        return false;
    for (int32_t k = 1; k < ch->n; k++) {
        int32_t i = (ch->me + k) % ch->n;
        if (!get(m, ch, j, i, j->memory + (size_t)i * own * size, own * size))
            return false;
    }
    for (int32_t k = 1; k < ch->n; k++) {
        int32_t i = (ch->me + k) % ch->n;
        size_t len = shares ? share(ch, j, i, &at) : own;
        size_t from = (size_t)j->lo + (shares ? at : (size_t)i * (size_t)p->count);
        if (!put(m, ch, j, i, (const char *)p->in + from * size, len * size))
            return false;
    }
    return true;
}

static void reduce(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, const char *own, char *to,
                   size_t count)
{
    void *dst[1] = {to};
    for (int32_t i = 0; i < ch->n; i++)
        m->src[i] = i == ch->me ? own : j->memory + (size_t)i * count * size_of(j);
    reduce_run(&(struct reduce_job){.src = m->src,
                                    .n_src = ch->n,
                                    .dst = dst,
                                    .n_dst = 1,
                                    .count = count,
                                    .dtype = part_of(j)->dtype,
                                    .reduce = j->r->keep.call.reduce});
}

/* The second half of an all-reduce: my share of the result to all, theirs to me. */
static bool spread(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    char *out = (char *)part_of(j)->out + (size_t)j->lo * size_of(j);
    size_t size = size_of(j), own_at, at, own = share(ch, j, ch->me, &own_at);
    for (int32_t k = 1; k < ch->n; k++) {
        int32_t i = (ch->me + k) % ch->n;
        size_t len = share(ch, j, i, &at);
        if (!get(m, ch, j, i, out + at * size, len * size) ||
            !put(m, ch, j, i, out + own_at * size, own * size))
            return false;
    }
    return true;
}

static void reduce_own_share(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t at, len = share(ch, j, ch->me, &at), byte = ((size_t)j->lo + at) * size_of(j);
    reduce(m, ch, j, (const char *)p->in + byte, (char *)p->out + byte, len);
}

static void reduce_scattered(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t lo = (size_t)j->lo * size_of(j);
    size_t own = (size_t)p->count * (size_t)ch->me * size_of(j);
    reduce(m, ch, j, (const char *)p->in + own + lo, (char *)p->out + lo, (size_t)(j->hi - j->lo));
}

/* ---- MPI's own reductions ---- */

static MPI_Datatype own_type(uint8_t dtype)
{
    switch (dtype) {
    case DTYPE_F32: return MPI_FLOAT;
    case DTYPE_F64: return MPI_DOUBLE;
    case DTYPE_I64: return MPI_INT64_T;
    case DTYPE_I32: return MPI_INT32_T;
    default: return MPI_DATATYPE_NULL;
    }
}

static bool by_mpi(const struct mpi_chan *ch, const struct mpi_job *j)
{
    uint8_t op = j->r->keep.call.reduce;
    return ch->own != MPI_COMM_NULL && j->r->keep.call.kind == COMM_ALL_REDUCE &&
           (op == COMM_SUM || op == COMM_AVG) && own_type(part_of(j)->dtype) != MPI_DATATYPE_NULL;
}

static bool start_own(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t byte = (size_t)j->lo * size_of(j);
    char *out = (char *)p->out + byte;
    MPI_Request *q = room(m, j, -1, true);
    if (q == NULL)
        return false;
    int code = MPI_Iallreduce(p->in == p->out ? MPI_IN_PLACE : (const char *)p->in + byte, out,
                              (int)(j->hi - j->lo), own_type(p->dtype), MPI_SUM, ch->own, q);
    return code == MPI_SUCCESS || mpi_ok(m, code, "MPI_Iallreduce");
}

static void divide_own(const struct mpi_chan *ch, struct mpi_job *j)
{
    size_t byte = (size_t)j->lo * size_of(j), n = (size_t)(j->hi - j->lo);
    char *out = (char *)part_of(j)->out + byte;
    for (size_t i = 0; j->r->keep.call.reduce == COMM_AVG && i < n; i++)
        if (part_of(j)->dtype == DTYPE_F32)
            ((float *)(void *)out)[i] /= (float)ch->n;
        else
            ((double *)(void *)out)[i] /= ch->n;
}

/* ---- Copies ---- */

static bool gather(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t lo = (size_t)j->lo * size_of(j), len = (size_t)(j->hi - j->lo) * size_of(j);
    size_t whole = (size_t)p->count * size_of(j);
    bool all = j->r->keep.call.kind == COMM_ALL_GATHER;
    int32_t root = j->r->keep.call.root;
    if (all || ch->me == root)
        copy_run((char *)p->out + whole * (size_t)ch->me + lo, (const char *)p->in + lo, len,
                 false);
    for (int32_t k = 1; k < ch->n; k++) {
        int32_t i = (ch->me + k) % ch->n;
        if ((all || ch->me == root) &&
            !get(m, ch, j, i, (char *)p->out + whole * (size_t)i + lo, len))
            return false;
        if ((all || i == root) && !put(m, ch, j, i, (const char *)p->in + lo, len))
            return false;
    }
    return true;
}

/* From the root: the same to all, or a part to each. */
static bool from_root(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t lo = (size_t)j->lo * size_of(j), len = (size_t)(j->hi - j->lo) * size_of(j);
    size_t whole = j->r->keep.call.kind == COMM_SCATTER ? (size_t)p->count * size_of(j) : 0;
    int32_t root = j->r->keep.call.root;
    if (ch->me != root)
        return get(m, ch, j, root, (char *)p->out + lo, len);
    for (int32_t i = 0; i < ch->n; i++) {
        const char *from = (const char *)p->in + whole * (size_t)i + lo;
        if (i == ch->me)
            copy_run((char *)p->out + lo, from, len, false);
        else if (!put(m, ch, j, i, from, len))
            return false;
    }
    return true;
}

static bool to_root(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_part *p = part_of(j);
    size_t lo = (size_t)j->lo * size_of(j), len = (size_t)(j->hi - j->lo) * size_of(j);
    int32_t root = j->r->keep.call.root;
    if (ch->me != root)
        return put(m, ch, j, root, (const char *)p->in + lo, len);
    if (!memory(m, j, (size_t)ch->n * len + 1))
        return false;
    for (int32_t i = 0; i < ch->n; i++)
        if (i != ch->me && !get(m, ch, j, i, j->memory + (size_t)i * len, len))
            return false;
    return true;
}

static bool all_to_all(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    const struct comm_call *call = &j->r->keep.call;
    const struct comm_part *p = part_of(j);
    size_t size = size_of(j);
    const char *in = p->in;
    char *out = p->out;
    for (int32_t i = 0; i < ch->n; i++) {
        size_t to = (size_t)(call->in_split != NULL ? call->in_split[i] : p->count) * size;
        size_t from = (size_t)(call->out_split != NULL ? call->out_split[i] : p->count) * size;
        if (i != ch->me && (!get(m, ch, j, i, out, from) || !put(m, ch, j, i, in, to)))
            return false;
        in += to;
        out += from;
    }
    /* What stays here, after all is under way. */
    in = p->in, out = p->out;
    for (int32_t i = 0; i < ch->me; i++) {
        in += (size_t)(call->in_split != NULL ? call->in_split[i] : p->count) * size;
        out += (size_t)(call->out_split != NULL ? call->out_split[i] : p->count) * size;
    }
    copy_run(out, in, (size_t)(call->in_split != NULL ? call->in_split[ch->me] : p->count) * size,
             false);
    return true;
}

/* ---- Phases ---- */

bool mpi_job_begin(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j)
{
    if (j->heads)
        return send_heads(m, ch, j);
    switch (j->r->keep.call.kind) {
    case COMM_ALL_REDUCE: return by_mpi(ch, j) ? start_own(m, ch, j) : trade(m, ch, j, true);
    case COMM_REDUCE_SCATTER: return trade(m, ch, j, false);
    case COMM_ALL_GATHER:
    case COMM_GATHER: return gather(m, ch, j);
    case COMM_BROADCAST:
    case COMM_SCATTER: return from_root(m, ch, j);
    case COMM_REDUCE: return to_root(m, ch, j);
    case COMM_ALL_TO_ALL: return all_to_all(m, ch, j);
    default: return true;
    }
}

bool mpi_job_next(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, bool *over)
{
    const struct comm_part *p = part_of(j);
    size_t lo = j->heads ? 0 : (size_t)j->lo * size_of(j);
    *over = true;
    if (j->heads)
        return check_heads(m, ch, j);
    switch (j->r->keep.call.kind) {
    case COMM_ALL_REDUCE:
        if (by_mpi(ch, j)) {
            divide_own(ch, j);
        } else if (j->phase == 0) {
            reduce_own_share(m, ch, j);
            *over = false;
            return spread(m, ch, j);
        }
        break;
    case COMM_REDUCE_SCATTER: reduce_scattered(m, ch, j); break;
    case COMM_REDUCE:
        if (ch->me == j->r->keep.call.root)
            reduce(m, ch, j, (const char *)p->in + lo, (char *)p->out + lo,
                   (size_t)(j->hi - j->lo));
        break;
    default: break;
    }
    return true;
}
