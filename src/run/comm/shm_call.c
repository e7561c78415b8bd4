/* Channels: the calls of a group, one after the other, from one meeting to the next. */
#include <stdio.h>
#include <string.h>

#include "run/comm/shm.h"

/* ---- Where things are in a channel ---- */

static size_t splits_bytes(int32_t n)
{
    return ((size_t)n * 2 * sizeof(int64_t) + 127) / 128 * 128;
}

size_t member_bytes(int32_t n)
{
    size_t used = 2 * sizeof(struct shm_line) + 2 * splits_bytes(n) + 2 * SHM_SLOT + 4 * SHM_CHUNK;
    return (used + SHM_ALIGN - 1) / SHM_ALIGN * SHM_ALIGN;
}

size_t chan_bytes(int32_t n)
{
    return (size_t)n * member_bytes(n);
}

int64_t *chan_split(const struct shm_chan *ch, int32_t member, uint64_t seq)
{
    char *p = chan_member(ch, member) + 2 * sizeof(struct shm_line);
    return (int64_t *)(void *)(p + (seq & 1) * splits_bytes(ch->n));
}

size_t chan_slots(int32_t n)
{
    return 2 * sizeof(struct shm_line) + 2 * splits_bytes(n);
}

char *chan_stage(const struct shm_chan *ch, int32_t member, uint64_t half)
{
    return chan_member(ch, member) + ch->stride - 4 * SHM_CHUNK + (half & 1) * SHM_CHUNK;
}

char *chan_result(const struct shm_chan *ch, int32_t member, uint64_t half)
{
    return chan_stage(ch, member, half) + 2 * SHM_CHUNK;
}

/* ---- A meeting ---- */

void chan_publish(struct shm *m, struct shm_chan *ch)
{
    atomic_store_explicit(&chan_line(ch, ch->me, ch->seq)->step, ++ch->step, memory_order_release);
    if (atomic_load_explicit(&m->shared->sleepers, memory_order_relaxed) > 0)
        shm_ring(m->shared);
}

static void publish(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    r->seen = 0;
    chan_publish(m, ch);
}

/* A load whose value is not used, so that it may race with the owner's stores. Prefetches do not
 * fetch what another core has changed. */
static inline void touch(const char *p)
{
#if defined(__x86_64__)
    char unused;
    __asm__ volatile("movb %1, %0" : "=q"(unused) : "m"(*p));
#else
    __builtin_prefetch(p);
#endif
}

/* Asks for the data of a small call of a member together with its line, not after it: on a machine
 * whose cores are far from each other that is half of the time. A guess: the member's data has the
 * size of ours, and lies at the same place. */
void chan_ask_early(const struct shm *m, const struct shm_chan *ch, int32_t i)
{
    const char *at = ch->slot_lines > 0   ? chan_slot(ch, i, ch->seq)
                     : ch->heap_lines > 0 ? shm_at(m, ch->heap[i] + ch->heap_at)
                                          : NULL;
    uint32_t n = ch->slot_lines > 0 ? ch->slot_lines : ch->heap_lines;
    for (uint32_t k = 0; k < n; k++)
        touch(at + 64 * k);
}

static bool all_came(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    for (; r->seen < ch->n; r->seen++) {
        if (r->seen == ch->me)
            continue;
        chan_ask_early(m, ch, r->seen);
        if (!chan_came(ch, r->seen))
            return false;
    }
    return true;
}

/* ---- The first meeting: what, and with which operands ---- */

static uint64_t packed(const struct comm_call *call, const struct comm_part *p)
{
    uint64_t reduce = kind_reduces(call->kind) ? call->reduce : 0;
    uint64_t root = call->kind >= COMM_BROADCAST && call->kind <= COMM_SCATTER
                        ? (uint64_t)(uint32_t)call->root
                        : 0;
    return call->kind | reduce << 8 | (uint64_t)p->dtype << 16 | root << 24;
}

/* The data of a small call is shown with it. */
static bool put_small(struct shm_chan *ch, struct shm_line *line, const void *in, uint64_t in_bytes,
                      bool stays)
{
    /* Read in place, it ends with the first meeting only if the result is elsewhere. */
    bool read_once = stays && ch->mine.out_off == SHM_NOWHERE;
    uint64_t most = ch->mine.in_off == SHM_NOWHERE ? SHM_SLOT
                    : read_once                    ? SHM_COPIED_STAYS
                                                   : SHM_COPIED;
    uint32_t lines = in_bytes < 1024 ? (uint32_t)(in_bytes + 63) / 64 : 16;
    if (in_bytes > most) {
        uint64_t at = ch->heap != NULL ? ch->mine.in_off - ch->heap[ch->me] : UINT64_MAX;
        if (at < ch->heap_bytes) {
            ch->heap_lines = lines;
            ch->heap_at = at;
        }
        return false;
    }
    if (in_bytes > SHM_INLINE)
        ch->slot_lines = lines;
    if (in_bytes > 0)
        memcpy(in_bytes <= SHM_INLINE ? line->data : chan_slot(ch, ch->me, ch->seq), in, in_bytes);
    return true;
}

static void put_splits(struct shm_req *r)
{
    struct shm_chan *ch = r->chan;
    int64_t *split = chan_split(ch, ch->me, ch->seq), count = r->keep.part[r->at].count;
    for (int32_t i = 0; i < 2 * ch->n; i++)
        split[i] = r->keep.call.in_split != NULL ? r->keep.split[i] : count;
}

void chan_show(struct shm *m, struct shm_chan *ch, const struct comm_call *call,
               const struct comm_part *p, uint64_t in_bytes, uint64_t out_bytes)
{
    struct shm_line *line = chan_line(ch, ch->me, ++ch->seq), *mine = &ch->mine;
    uint64_t what = packed(call, p);
    line->in_off = mine->in_off = in_bytes > 0 ? shm_off(m, p->in, in_bytes) : SHM_NOWHERE;
    line->out_off = mine->out_off = out_bytes > 0 ? shm_off(m, p->out, out_bytes) : SHM_NOWHERE;
    line->count = mine->count = call->in_split != NULL ? -1 : p->count;
    ch->shown_bytes = in_bytes;
    ch->slot_lines = ch->heap_lines = 0;
    if (put_small(ch, line, p->in, in_bytes, call->in_stays))
        what |= SHM_INLINED;
    line->what = mine->what = call->in_stays ? what | SHM_STAYS : what;
}

void chan_begin(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    static const struct comm_part nothing = {.dtype = DTYPE_U8};
    const struct comm_call *call = &r->keep.call;
    const struct comm_part *p = call->n_part > 0 ? &r->keep.part[r->at] : &nothing;
    uint64_t size = dtype_at(p->dtype)->bytes;
    uint64_t in_bytes = 0, out_bytes = 0;
    if (call->kind != COMM_BARRIER && call->n_part > 0) {
        in_bytes = (uint64_t)call_in_count(&m->c, call, p) * size;
        out_bytes = (uint64_t)call_out_count(&m->c, call, p) * size;
    }
    chan_show(m, ch, call, p, in_bytes, out_bytes);
    if (call->kind == COMM_ALL_TO_ALL)
        put_splits(r);
    r->begun = true;
    r->stage = 0;
    r->run = NULL;
    publish(m, ch, r);
}

static void say_what(const struct shm_line *l, char *text, size_t size)
{
    uint64_t w = l->what & ~SHM_FLAGS;
    int n = snprintf(text, size, "%s", comm_kind_name((enum comm_kind)(w & 255)));
    if (kind_reduces(w & 255))
        n += snprintf(text + n, size - (size_t)n, " %s",
                      comm_reduce_name((enum comm_reduce)(w >> 8 & 255)));
    if ((w & 255) == COMM_BARRIER)
        return;
    n += snprintf(text + n, size - (size_t)n, " of ");
    if (l->count >= 0)
        n += snprintf(text + n, size - (size_t)n, "%lld ", (long long)l->count);
    n += snprintf(text + n, size - (size_t)n, "%s", dtype_at((enum dtype)(w >> 16 & 255))->name);
    if ((w & 255) >= COMM_BROADCAST)
        snprintf(text + n, size - (size_t)n, ", root %llu", (unsigned long long)(w >> 24));
}

static bool differ(struct shm *m, struct shm_chan *ch, struct shm_req *r, int32_t i)
{
    const struct shm_line *mine = &ch->mine, *its = chan_line(ch, i, ch->seq);
    char text[256], own[160], other[160], at[192];
    call_describe(&r->keep.call, text, sizeof(text));
    say_what(mine, own, sizeof(own));
    say_what(its, other, sizeof(other));
    int32_t peer = m->c.group[ch->id < 0 ? 0 : ch->id].member[i];
    shm_whereabouts(m->shared, peer, at, sizeof(at));
    return comm_fail(&m->c, "rank %d calls %s (%s), but rank %d calls %s (%s)", m->c.rank, text,
                     own, peer, other, at);
}

/* Bytes of the operands of a member that has them. */
static uint64_t part_bytes(const struct shm_req *r, bool by_member)
{
    const struct comm_part *p = &r->keep.part[r->at];
    uint64_t bytes = (uint64_t)p->count * dtype_at(p->dtype)->bytes;
    return by_member ? bytes * (uint64_t)r->chan->n : bytes;
}

static bool operands_fit(const struct shm *m, const struct shm_req *r, const struct shm_line *l)
{
    uint8_t kind = r->keep.call.kind;
    bool many_in = kind == COMM_REDUCE_SCATTER || kind == COMM_SCATTER;
    bool many_out = kind == COMM_ALL_GATHER || kind == COMM_GATHER;
    return in_segment(m, l->in_off, part_bytes(r, many_in)) &&
           in_segment(m, l->out_off, part_bytes(r, many_out));
}

static uint64_t split_bytes(const int64_t *split, int32_t n, uint64_t size)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        if (split[i] < 0 || (uint64_t)split[i] > INT64_MAX / 16 / (uint64_t)n)
            return UINT64_MAX;
        sum += (uint64_t)split[i] * size;
    }
    return sum;
}

static bool check_splits(struct shm *m, struct shm_chan *ch, struct shm_req *r, int32_t i)
{
    const struct shm_line *its = chan_line(ch, i, ch->seq);
    const int64_t *mine = chan_split(ch, ch->me, ch->seq), *other = chan_split(ch, i, ch->seq);
    uint64_t size = dtype_at(r->keep.part[r->at].dtype)->bytes;
    char text[256];
    call_describe(&r->keep.call, text, sizeof(text));
    int32_t peer = m->c.group[ch->id < 0 ? 0 : ch->id].member[i];
    if (other[ch->me] != mine[ch->n + i])
        return comm_fail(&m->c, "%s: rank %d sends %lld elements to rank %d, which expects %lld",
                         text, peer, (long long)other[ch->me], m->c.rank,
                         (long long)mine[ch->n + i]);
    if (other[ch->n + ch->me] != mine[i])
        return comm_fail(&m->c, "%s: rank %d sends %lld elements to rank %d, which expects %lld",
                         text, m->c.rank, (long long)mine[i], peer,
                         (long long)other[ch->n + ch->me]);
    if (!in_segment(m, its->in_off, split_bytes(other, ch->n, size)) ||
        !in_segment(m, its->out_off, split_bytes(other + ch->n, ch->n, size)))
        return comm_fail(&m->c, "%s: rank %d has operands outside of the segment", text, peer);
    return true;
}

static bool agree(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    const struct shm_line *mine = &ch->mine;
    for (int32_t i = 0; i < ch->n; i++) {
        const struct shm_line *its = chan_line(ch, i, ch->seq);
        if (i == ch->me)
            continue;
        if (((mine->what ^ its->what) & ~SHM_FLAGS) != 0 || mine->count != its->count)
            return differ(m, ch, r, i);
        if (r->keep.call.kind == COMM_BARRIER)
            continue;
        if (r->keep.call.kind == COMM_ALL_TO_ALL) {
            if (!check_splits(m, ch, r, i))
                return false;
        } else if (!operands_fit(m, r, its)) {
            return comm_fail(&m->c, "rank %d has operands outside of the segment",
                             m->c.group[ch->id < 0 ? 0 : ch->id].member[i]);
        }
    }
    return true;
}

/* ---- From call to call ---- */

bool chan_finish(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    r->begun = false;
    if (++r->at < r->keep.call.n_part)
        return false;
    r->state = 2;
    ch->head = r->next;
    if (ch->head == NULL) {
        ch->tail = NULL;
        ch->active = false;
        m->n_active--;
    }
    return true;
}

enum comm_state chan_advance(struct shm *m, struct shm_chan *ch)
{
    struct shm_req *r;
    while ((r = ch->head) != NULL) {
        if (!r->begun)
            chan_begin(m, ch, r);
        if (!all_came(m, ch, r))
            return COMM_PENDING;
        if (r->stage == 0) {
            ch->heap_lines = 0; /* of the first meeting only */
            if (!agree(m, ch, r)) {
                shm_fail(m);
                return COMM_FAILED;
            }
            r->run = r->keep.call.kind == COMM_BARRIER ? NULL : shm_choose(r);
        }
        bool again = r->run != NULL && r->run(r);
        r->stage++;
        if (again)
            publish(m, ch, r);
        else
            chan_finish(m, ch, r);
    }
    return COMM_DONE;
}
