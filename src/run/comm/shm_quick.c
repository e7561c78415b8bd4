/* A small all-reduce without the general machinery: one like the last one, on a channel that has no
 * other call. What members show each other is the same, so some may take this way and others the
 * usual one. The line goes out before anything that others need not wait for, and the result is
 * computed as soon as their lines are there; what is unusual is left to chan_advance(). */
#include <string.h>

#include "run/comm/reduce.h"
#include "run/comm/shm.h"

enum { LOOKS = 2000 }; /* a few microseconds, if every rank has a core */

bool shm_quick_start(struct shm *m, const struct comm_call *call, comm_req *req)
{
    const struct comm_part *p = call->part;
    if (call->kind != COMM_ALL_REDUCE || call->n_part != 1 || call->group < 0 ||
        call->group >= m->n_chan || m->n_free == 0)
        return false;
    struct shm_chan *ch = m->chan[call->group];
    if (ch->head != NULL || call_what(call) != ch->checked || p->count != ch->checked_count ||
        ch->checked_bytes > SHM_SLOT || p->in == NULL || p->out == NULL)
        return false;
    chan_show(m, ch, call, p, ch->checked_bytes, ch->checked_bytes);
    chan_publish(m, ch);
    struct shm_req *r = m->spare[--m->n_free];
    call_keep(&r->keep, call, ch->n); /* of one part, it needs no memory */
    r->state = 1;
    r->next = NULL;
    r->whole = NULL;
    r->run = NULL;
    r->at = r->stage = 0;
    r->seen = 0;
    r->begun = true;
    shm_enqueue(m, ch, r);
    shm_show_call(m, call);
    *req = r->id;
    return true;
}

static bool came(const struct shm *m, const struct shm_chan *ch, int32_t member)
{
    int looks = m->shared->spin ? LOOKS : 1;
    do {
        chan_ask_early(m, ch, member);
        if (chan_came(ch, member))
            return true;
    } while (--looks > 0);
    return false;
}

/* Where the operand of another member is, if it can be read until a later call; else NULL. */
static const char *operand(const struct shm *m, const struct shm_chan *ch, int32_t member)
{
    const struct shm_line *mine = &ch->mine, *its = chan_line(ch, member, ch->seq);
    uint64_t bytes = ch->shown_bytes;
    if (mine->what != its->what || mine->count != its->count)
        return NULL;
    if (its->what & SHM_INLINED)
        return bytes <= SHM_INLINE ? its->data : chan_slot(ch, member, ch->seq);
    bool outside = its->in_off == SHM_NOWHERE || its->out_off != SHM_NOWHERE;
    if (outside || !in_segment(m, its->in_off, bytes))
        return NULL;
    return shm_at(m, its->in_off);
}

/* Can the call end with its first meeting, as far as this member knows? */
static bool one_meeting(const struct shm *m, const struct shm_req *r)
{
    const struct shm_chan *ch = r->chan;
    const struct comm_call *call = &r->keep.call;
    bool small = call->kind == COMM_ALL_REDUCE && call->n_part == 1 && ch->head == r && r->begun &&
                 r->stage == 0 && ch->shown_bytes <= SHM_SLOT;
    return small && m->n_active == 1 && m->p2p_head == NULL &&
           ((ch->mine.what & SHM_INLINED) != 0 ||
            ((ch->mine.what & SHM_STAYS) != 0 && ch->mine.out_off == SHM_NOWHERE));
}

bool shm_quick_wait(struct shm *m, struct shm_req *r)
{
    struct shm_chan *ch = r->chan;
    const struct comm_call *call = &r->keep.call;
    if (!one_meeting(m, r))
        return false;
    const struct comm_part *p = call->part;
    m->src[ch->me] = p->in;
    if (!(ch->mine.what & SHM_INLINED)) { /* before others read it, and have it in their caches */
        memcpy(p->out, p->in, ch->shown_bytes);
        m->src[ch->me] = p->out;
    }
    for (int32_t i = 0; i < ch->n; i++)
        if (i != ch->me && !came(m, ch, i))
            return false;
    for (int32_t i = 0; i < ch->n; i++) {
        if (i != ch->me)
            m->src[i] = operand(m, ch, i);
        if (m->src[i] == NULL)
            return false;
    }
    m->dst[0] = p->out;
    reduce_run(&(struct reduce_job){.src = m->src,
                                    .n_src = ch->n,
                                    .dst = m->dst,
                                    .n_dst = 1,
                                    .count = (size_t)p->count,
                                    .dtype = p->dtype,
                                    .reduce = call->reduce});
    ch->heap_lines = 0;
    chan_finish(m, ch, r);
    return true;
}
