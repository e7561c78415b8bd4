/* The algorithms of a call that need no copies through chunks, and the choice between all of them.
 * A function runs after each meeting, r->stage of them before this one; true asks for another. */
#include "run/comm/reduce.h"
#include "run/comm/shm.h"

enum {
    ONE_SHOT = 32 << 10, /* more than two ranks: above it, each reduces its share */
    APART = 1 << 20,     /* one shot: from here on, ranks begin at different places */
    STREAM = 4 << 20,    /* results from here on go around the caches, if every rank has a core */
};

static const struct comm_part *part_of(const struct shm_req *r)
{
    return &r->keep.part[r->at];
}

static size_t size_of(const struct shm_req *r)
{
    return dtype_at(part_of(r)->dtype)->bytes;
}

static const struct shm_line *line_of(const struct shm_req *r, int32_t i)
{
    return i == r->chan->me ? &r->chan->mine : chan_line(r->chan, i, r->chan->seq);
}

static bool streams(const struct shm_req *r, size_t bytes)
{
    return bytes >= STREAM && r->shm->shared->spin;
}

static void reduce(struct shm_req *r, int32_t n_dst, size_t count, bool stream)
{
    reduce_run(&(struct reduce_job){.src = r->shm->src,
                                    .n_src = r->chan->n,
                                    .dst = r->shm->dst,
                                    .n_dst = n_dst,
                                    .count = count,
                                    .dtype = part_of(r)->dtype,
                                    .reduce = r->keep.call.reduce,
                                    .stream = stream});
}

static size_t before(const int64_t *split, int32_t i)
{
    size_t sum = 0;
    for (int32_t k = 0; k < i; k++)
        sum += (size_t)split[k];
    return sum;
}

/* ---- Reading what others show: their slots, or their operands in the segment ---- */

typedef const char *source_fn(const struct shm_req *r, int32_t i, size_t bytes);

static const char *from_slot(const struct shm_req *r, int32_t i, size_t bytes)
{
    struct shm_chan *ch = r->chan;
    if (i == ch->me)
        return part_of(r)->in;
    return bytes <= SHM_INLINE ? chan_line(ch, i, ch->seq)->data : chan_slot(ch, i, ch->seq);
}

static const char *from_segment(const struct shm_req *r, int32_t i, size_t bytes)
{
    (void)bytes;
    return shm_at(r->shm, line_of(r, i)->in_off);
}

static void pull_all_to_all(struct shm_req *r, source_fn *from)
{
    struct shm_chan *ch = r->chan;
    const int64_t *mine = chan_split(ch, ch->me, ch->seq) + ch->n;
    size_t size = size_of(r), at = 0;
    for (int32_t i = 0; i < ch->n; i++) {
        const int64_t *its = chan_split(ch, i, ch->seq);
        size_t bytes = (size_t)mine[i] * size;
        if (bytes > 0) {
            const char *src = from(r, i, before(its, ch->n) * size) + before(its, ch->me) * size;
            copy_run((char *)part_of(r)->out + at, src, bytes, streams(r, bytes));
        }
        at += bytes;
    }
}

static void pull_gather(struct shm_req *r, source_fn *from, size_t bytes)
{
    for (int32_t i = 0; i < r->chan->n; i++)
        copy_run((char *)part_of(r)->out + (size_t)i * bytes, from(r, i, bytes), bytes,
                 streams(r, bytes * (size_t)r->chan->n));
}

static void pull_piece(struct shm_req *r, source_fn *from, size_t whole, size_t offset, size_t at,
                       size_t count)
{
    const struct comm_part *p = part_of(r);
    size_t size = size_of(r);
    for (int32_t i = 0; i < r->chan->n; i++)
        r->shm->src[i] = from(r, i, whole) + offset + at * size;
    r->shm->dst[0] = (char *)p->out + at * size;
    reduce(r, 1, count, streams(r, (size_t)p->count * size));
}

/* Of much, ranks begin at different places, so that they do not read the same lines at once: of
 * 64 MiB on two ranks that takes a fifth off. */
static void pull_reduce(struct shm_req *r, source_fn *from, size_t whole, size_t offset)
{
    size_t count = (size_t)part_of(r)->count, n = (size_t)r->chan->n;
    size_t begin = count * size_of(r) < APART ? 0 : count / n / 64 * 64 * (size_t)r->chan->me;
    pull_piece(r, from, whole, offset, begin, count - begin);
    if (begin > 0)
        pull_piece(r, from, whole, offset, 0, begin);
}

/* Everything this rank's result needs, from everybody. */
static void pull(struct shm_req *r, source_fn *from)
{
    const struct comm_part *p = part_of(r);
    int32_t n = r->chan->n, me = r->chan->me, root = r->keep.call.root;
    size_t bytes = (size_t)p->count * size_of(r);
    switch (r->keep.call.kind) {
    case COMM_ALL_REDUCE: pull_reduce(r, from, bytes, 0); break;
    case COMM_REDUCE_SCATTER: pull_reduce(r, from, bytes * (size_t)n, bytes * (size_t)me); break;
    case COMM_ALL_GATHER: pull_gather(r, from, bytes); break;
    case COMM_ALL_TO_ALL: pull_all_to_all(r, from); break;
    case COMM_BROADCAST:
        copy_run(p->out, me == root ? p->in : from(r, root, bytes), bytes, streams(r, bytes));
        break;
    case COMM_SCATTER:
        copy_run(p->out, from(r, root, bytes * (size_t)n) + bytes * (size_t)me, bytes,
                 streams(r, bytes));
        break;
    case COMM_REDUCE:
        if (me == root)
            pull_reduce(r, from, bytes, 0);
        break;
    case COMM_GATHER:
        if (me == root)
            pull_gather(r, from, bytes);
        break;
    default: break;
    }
}

/* One shot, one meeting: the data came with the call. */
static bool run_small(struct shm_req *r)
{
    pull(r, from_slot);
    return false;
}

/* One shot from the operands; nobody may change those before all are done. */
static bool run_pull(struct shm_req *r)
{
    bool stays = true;
    if (r->stage > 0)
        return false;
    pull(r, from_segment);
    for (int32_t i = 0; i < r->chan->n; i++)
        stays &= (line_of(r, i)->what & SHM_STAYS) != 0;
    return !stays;
}

/* ---- Writing into others' results ---- */

static bool among(const void *p, const void *const *list, int32_t n)
{
    int32_t i = 0;
    while (i < n && list[i] != p)
        i++;
    return i < n;
}

/* Two shots: each reduces its share, and writes it into the results of all (or of the root). */
static bool run_shares(struct shm_req *r)
{
    if (r->stage > 0)
        return false;
    const struct comm_part *p = part_of(r);
    int32_t n = r->chan->n, n_dst = 0;
    size_t size = size_of(r), count = (size_t)p->count;
    size_t share = ((count + (size_t)n - 1) / (size_t)n + 63) / 64 * 64;
    size_t lo = share * (size_t)r->chan->me;
    if (lo >= count)
        return true;
    size_t len = count - lo < share ? count - lo : share;
    for (int32_t i = 0; i < n; i++) {
        r->shm->src[i] = shm_at(r->shm, line_of(r, i)->in_off) + lo * size;
        if (r->keep.call.kind == COMM_ALL_REDUCE || i == r->keep.call.root)
            r->shm->dst[n_dst++] = shm_at(r->shm, line_of(r, i)->out_off) + lo * size;
    }
    /* In place every line that is written was read before: stores need not go around the caches. */
    bool fresh = false;
    for (int32_t i = 0; i < n_dst; i++)
        fresh |= !among(r->shm->dst[i], r->shm->src, n);
    reduce(r, n_dst, len, fresh && streams(r, count * size));
    return true;
}

static void push_one(struct shm_req *r, int32_t i)
{
    const struct comm_part *p = part_of(r);
    struct shm_chan *ch = r->chan;
    size_t size = size_of(r), bytes = (size_t)p->count * size, from = 0, to = 0;
    switch (r->keep.call.kind) {
    case COMM_ALL_TO_ALL: {
        const int64_t *mine = chan_split(ch, ch->me, ch->seq);
        bytes = (size_t)mine[i] * size;
        from = before(mine, i) * size;
        to = before(chan_split(ch, i, ch->seq) + ch->n, ch->me) * size;
        break;
    }
    case COMM_SCATTER: from = bytes * (size_t)i; break;
    default: to = bytes * (size_t)ch->me; break;
    }
    if (bytes > 0)
        copy_run(shm_at(r->shm, line_of(r, i)->out_off) + to, (const char *)p->in + from, bytes,
                 streams(r, bytes));
}

static bool run_push(struct shm_req *r)
{
    if (r->stage > 0)
        return false;
    int32_t root = r->keep.call.root;
    switch (r->keep.call.kind) {
    case COMM_GATHER: push_one(r, root); break;
    case COMM_SCATTER:
        for (int32_t i = 0; r->chan->me == root && i < r->chan->n; i++)
            push_one(r, i);
        break;
    default: /* in turns, so that not all write to one */
        for (int32_t k = 0; k < r->chan->n; k++)
            push_one(r, (r->chan->me + k) % r->chan->n);
    }
    return true;
}

/* ---- The choice ---- */

/* Of the members that read (or write) an operand: do all have it in the segment? */
static bool placed(const struct shm_req *r, bool out)
{
    const struct shm_chan *ch = r->chan;
    uint8_t kind = r->keep.call.kind;
    bool rooted = out ? kind == COMM_REDUCE || kind == COMM_GATHER
                      : kind == COMM_BROADCAST || kind == COMM_SCATTER;
    for (int32_t i = 0; i < ch->n; i++) {
        const struct shm_line *l = line_of(r, i);
        if (rooted && i != r->keep.call.root)
            continue;
        bool none = kind == COMM_ALL_TO_ALL &&
                    before(chan_split(ch, i, ch->seq) + (out ? ch->n : 0), ch->n) == 0;
        if ((out ? l->out_off : l->in_off) == SHM_NOWHERE && !none)
            return false;
    }
    return true;
}

/* Does a member write its result where others read its operand? */
static bool any_in_place(const struct shm_req *r)
{
    for (int32_t i = 0; i < r->chan->n; i++)
        if (line_of(r, i)->in_off != SHM_NOWHERE && line_of(r, i)->in_off == line_of(r, i)->out_off)
            return true;
    return false;
}

shm_run_fn *shm_choose(struct shm_req *r)
{
    bool small = true;
    for (int32_t i = 0; i < r->chan->n; i++)
        small &= (line_of(r, i)->what & SHM_INLINED) != 0;
    if (small)
        return run_small;
    uint8_t kind = r->keep.call.kind;
    bool in = placed(r, false), out = placed(r, true);
    bool reduces = kind == COMM_ALL_REDUCE || kind == COMM_REDUCE;
    if (reduces && in && out)
        return run_shares;
    if (kind == COMM_ALL_REDUCE && r->chan->n > 2 &&
        (size_t)part_of(r)->count * size_of(r) > ONE_SHOT)
        return shm_staged;
    if (in && !(kind == COMM_ALL_REDUCE && any_in_place(r)))
        return run_pull;
    bool pushes = kind == COMM_ALL_GATHER || kind == COMM_ALL_TO_ALL || kind == COMM_GATHER ||
                  kind == COMM_SCATTER;
    return out && pushes ? run_push : shm_staged;
}
