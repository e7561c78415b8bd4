/* Calls whose operands only their own rank can see: through chunks that all see, two of each, so
 * that one meeting a chunk is enough. */
#include "run/comm/reduce.h"
#include "run/comm/shm.h"

/* An operand as pieces: one, or one for each member. */
struct pieces {
    struct shm_req *r;
    const struct comm_part *p;
    struct shm_chan *ch;
    size_t size;
    int32_t n;     /* pieces of a chunk */
    size_t step;   /* bytes of a piece in a chunk */
    size_t chunks; /* of the whole call */
    bool direct;   /* a sum in two shots reads the operands, not chunks of them */
};

static bool by_member(uint8_t kind)
{
    return kind == COMM_REDUCE_SCATTER || kind == COMM_SCATTER || kind == COMM_ALL_TO_ALL;
}

static bool has_input(const struct pieces *v, int32_t i)
{
    uint8_t kind = v->r->keep.call.kind;
    return (kind != COMM_BROADCAST && kind != COMM_SCATTER) || i == v->r->keep.call.root;
}

/* Bytes that member i has for piece k. */
static size_t piece_bytes(const struct pieces *v, int32_t i, int32_t k)
{
    if (v->r->keep.call.kind == COMM_ALL_TO_ALL)
        return (size_t)chan_split(v->ch, i, v->ch->seq)[k] * v->size;
    return (size_t)v->p->count * v->size;
}

static struct pieces pieces_of(struct shm_req *r)
{
    struct pieces v = {.r = r, .p = &r->keep.part[r->at], .ch = r->chan};
    v.size = dtype_at(v.p->dtype)->bytes;
    v.n = by_member(r->keep.call.kind) ? v.ch->n : 1;
    v.step = SHM_CHUNK / (size_t)v.n / 64 * 64;
    size_t most = 0;
    int32_t last = r->keep.call.kind == COMM_ALL_TO_ALL ? v.ch->n : 1;
    for (int32_t i = 0; i < last; i++)
        for (int32_t k = 0; k < v.n; k++)
            if (piece_bytes(&v, i, k) > most)
                most = piece_bytes(&v, i, k);
    v.chunks = (most + v.step - 1) / v.step;
    return v;
}

/* The part of a piece that chunk c has: its length, *at: where it begins. */
static size_t span(const struct pieces *v, size_t bytes, size_t c, size_t *at)
{
    *at = c * v->step;
    if (*at >= bytes)
        return 0;
    return bytes - *at < v->step ? bytes - *at : v->step;
}

static void put(const struct pieces *v, size_t c)
{
    const char *from = v->p->in;
    char *to = chan_stage(v->ch, v->ch->me, c);
    if (!has_input(v, v->ch->me))
        return;
    for (int32_t k = 0; k < v->n; k++) {
        size_t bytes = piece_bytes(v, v->ch->me, k), at, len = span(v, bytes, c, &at);
        copy_run(to + (size_t)k * v->step, from + at, len, false);
        from += bytes;
    }
}

static void take_copies(const struct pieces *v, size_t c)
{
    uint8_t kind = v->r->keep.call.kind;
    int32_t me = v->ch->me, root = v->r->keep.call.root, k = v->n > 1 ? me : 0;
    char *to = v->p->out;
    if (kind == COMM_GATHER && me != root)
        return;
    for (int32_t i = 0; i < v->ch->n; i++) {
        if (!has_input(v, i))
            continue;
        size_t bytes = piece_bytes(v, i, k), at, len = span(v, bytes, c, &at);
        if (!(kind == COMM_BROADCAST && me == root && v->p->in == v->p->out))
            copy_run(to + at, chan_stage(v->ch, i, c) + (size_t)k * v->step, len, false);
        to += bytes;
    }
}

static void reduce(const struct pieces *v, char *to, size_t offset, size_t len, size_t c)
{
    struct shm *m = v->r->shm;
    for (int32_t i = 0; i < v->ch->n; i++)
        m->src[i] = v->direct
                        ? shm_at(m, chan_line(v->ch, i, v->ch->seq)->in_off) + c * v->step + offset
                        : chan_stage(v->ch, i, c) + offset;
    m->dst[0] = to;
    reduce_run(&(struct reduce_job){.src = m->src,
                                    .n_src = v->ch->n,
                                    .dst = m->dst,
                                    .n_dst = 1,
                                    .count = len / v->size,
                                    .dtype = v->p->dtype,
                                    .reduce = v->r->keep.call.reduce});
}

static void take(const struct pieces *v, size_t c)
{
    if (!kind_reduces(v->r->keep.call.kind)) {
        take_copies(v, c);
        return;
    }
    int32_t k = v->n > 1 ? v->ch->me : 0;
    size_t at, len = span(v, piece_bytes(v, v->ch->me, k), c, &at);
    if (v->r->keep.call.kind != COMM_REDUCE || v->ch->me == v->r->keep.call.root)
        reduce(v, (char *)v->p->out + at, (size_t)k * v->step, len, c);
}

/* ---- Two shots: each reduces its share of a chunk, then all copy the result ---- */

/* The share of a member in a chunk of len bytes. */
static size_t share(const struct pieces *v, int32_t i, size_t len, size_t *at)
{
    size_t per = ((len + (size_t)v->ch->n - 1) / (size_t)v->ch->n + 63) / 64 * 64;
    *at = per * (size_t)i;
    if (*at >= len)
        return 0;
    return len - *at < per ? len - *at : per;
}

static void reduce_share(const struct pieces *v, size_t c)
{
    size_t from, at, len = span(v, piece_bytes(v, v->ch->me, 0), c, &from);
    size_t mine = share(v, v->ch->me, len, &at);
    reduce(v, chan_result(v->ch, v->ch->me, c), at, mine, c);
}

static void copy_result(const struct pieces *v, size_t c)
{
    size_t from, at, len = span(v, piece_bytes(v, v->ch->me, 0), c, &from);
    for (int32_t i = 0; i < v->ch->n; i++) {
        size_t part = share(v, i, len, &at);
        copy_run((char *)v->p->out + from + at, chan_result(v->ch, i, c), part, false);
    }
}

/* Can all operands be read in place until the last share is reduced? */
static bool all_readable(const struct pieces *v)
{
    for (int32_t i = 0; i < v->ch->n; i++) {
        const struct shm_line *l = chan_line(v->ch, i, v->ch->seq);
        if (l->in_off == SHM_NOWHERE || l->in_off == l->out_off)
            return false;
    }
    return true;
}

static bool two_shots_direct(const struct pieces *v, size_t stage)
{
    if (stage >= 1)
        copy_result(v, stage - 1);
    if (stage < v->chunks)
        reduce_share(v, stage);
    return stage < v->chunks;
}

static bool two_shots(const struct pieces *v, size_t stage)
{
    if (stage >= 2)
        copy_result(v, stage - 2);
    if (stage >= 1 && stage - 1 < v->chunks)
        reduce_share(v, stage - 1);
    if (stage < v->chunks)
        put(v, stage);
    return stage < v->chunks + 1;
}

bool shm_staged(struct shm_req *r)
{
    struct pieces v = pieces_of(r);
    if (r->keep.call.kind == COMM_ALL_REDUCE && v.ch->n > 2) {
        v.direct = all_readable(&v);
        return v.direct ? two_shots_direct(&v, r->stage) : two_shots(&v, r->stage);
    }
    if (r->stage >= 1)
        take(&v, r->stage - 1);
    if (r->stage < v.chunks)
        put(&v, r->stage);
    return r->stage < v.chunks;
}
