/* Sends and receives. A receiver posts what it wants in the sender's mailbox; a sender that finds
 * its message wanted writes it into the receiver's memory if that lies in the segment, else in
 * packets. So tags may come in any order, and a sender never waits for a message that nobody wants
 * yet. A receiver posts up to SHM_WANTS wants for each sender; others wait for those. */
#include "run/comm/reduce.h"
#include "run/comm/shm.h"

size_t pairs_bytes(int32_t world)
{
    return (size_t)world * (size_t)world * sizeof(struct shm_pair);
}

static struct shm_pair *pair_of(const struct shm *m, int32_t from, int32_t to)
{
    struct shm_pair *all = (struct shm_pair *)(void *)shm_at(m, m->shared->pairs);
    return &all[(size_t)from * (size_t)m->c.world + (size_t)to];
}

static int32_t peer_rank(const struct shm *m, const struct shm_req *r)
{
    return m->c.group[r->keep.call.group].member[r->keep.part[0].peer];
}

static uint64_t bytes_of(const struct shm_req *r)
{
    return (uint64_t)r->keep.part[0].count * dtype_at(r->keep.part[0].dtype)->bytes;
}

static void finish(struct shm_req *r)
{
    r->state = 2;
    if (--r->whole->parts_left == 0)
        r->whole->state = 2;
}

/* ---- The receiver ---- */

static void post(struct shm *m, struct shm_req *r)
{
    struct shm_pair *pair = pair_of(m, peer_rank(m, r), m->c.rank);
    for (int32_t i = 0; i < SHM_WANTS; i++) {
        struct shm_want *w = &pair->want[i];
        if (atomic_load_explicit(&w->seq, memory_order_acquire) != 0)
            continue;
        w->group = r->keep.call.group;
        w->tag = r->keep.part[0].tag;
        w->bytes = bytes_of(r);
        w->out_off = shm_off(m, r->keep.part[0].out, w->bytes);
        r->want = i;
        uint64_t seq = ++m->posted[peer_rank(m, r)];
        atomic_store_explicit(&w->seq, seq, memory_order_release);
        m->p2p_moved = true;
        return;
    }
}

static struct shm_req *receiver_of(struct shm *m, int32_t from, uint32_t want)
{
    for (struct shm_req *r = m->p2p_head; r != NULL; r = r->next)
        if (r->state == 1 && r->keep.part[0].receive && r->want == (int32_t)want &&
            peer_rank(m, r) == from)
            return r;
    return NULL;
}

static bool take_packets(struct shm *m, int32_t from)
{
    struct shm_pair *pair = pair_of(m, from, m->c.rank);
    uint64_t put = atomic_load_explicit(&pair->put, memory_order_acquire);
    uint64_t taken = atomic_load_explicit(&pair->taken, memory_order_relaxed);
    for (; taken < put; taken++) {
        struct shm_packet *p = &pair->packet[taken & 1];
        struct shm_req *r = p->want < SHM_WANTS ? receiver_of(m, from, p->want) : NULL;
        if (r == NULL || p->bytes > SHM_PACKET || p->bytes > bytes_of(r) - r->moved)
            return comm_fail(&m->c, "rank %d sent a packet that rank %d did not want", from,
                             m->c.rank);
        if (p->bytes > 0)
            copy_run((char *)r->keep.part[0].out + r->moved, p->data, p->bytes, false);
        r->moved += p->bytes;
        if (p->last) {
            atomic_store_explicit(&pair->want[r->want].seq, 0, memory_order_release);
            finish(r);
        }
        atomic_store_explicit(&pair->taken, taken + 1, memory_order_release);
        m->p2p_moved = true;
    }
    return true;
}

/* ---- The sender ---- */

/* Is there an earlier send of the same kind that is not wanted yet? The next want is for that. */
static bool must_queue(const struct shm *m, const struct shm_req *r)
{
    for (const struct shm_req *e = m->p2p_head; e != r; e = e->next)
        if (e->state == 1 && !e->keep.part[0].receive && e->want < 0 &&
            e->keep.call.group == r->keep.call.group &&
            e->keep.part[0].tag == r->keep.part[0].tag &&
            e->keep.part[0].peer == r->keep.part[0].peer)
            return true;
    return false;
}

/* Wants that were found have the top bit. */
#define FOUND ((uint64_t)1 << 63)

/* The first matching want; -1 if there is none. */
static int32_t find_want(struct shm_pair *pair, const struct shm_req *r)
{
    int32_t best = -1;
    uint64_t first = FOUND;
    for (int32_t i = 0; i < SHM_WANTS; i++) {
        struct shm_want *w = &pair->want[i];
        uint64_t seq = atomic_load_explicit(&w->seq, memory_order_acquire);
        if (seq != 0 && seq < first && w->group == r->keep.call.group &&
            w->tag == r->keep.part[0].tag) {
            first = seq;
            best = i;
        }
    }
    if (best >= 0)
        atomic_fetch_or_explicit(&pair->want[best].seq, FOUND, memory_order_acq_rel);
    return best;
}

static bool match(struct shm *m, struct shm_req *r, struct shm_pair *pair)
{
    r->want = must_queue(m, r) ? -1 : find_want(pair, r);
    if (r->want < 0)
        return true;
    const struct shm_want *w = &pair->want[r->want];
    if (w->bytes == bytes_of(r))
        return true;
    char text[256];
    call_describe(&r->keep.call, text, sizeof(text));
    return comm_fail(&m->c,
                     "%s: rank %d sends %llu bytes to rank %d, which expects %llu (tag %lld)", text,
                     m->c.rank, (unsigned long long)bytes_of(r), peer_rank(m, r),
                     (unsigned long long)w->bytes, (long long)r->keep.part[0].tag);
}

static void put_packets(struct shm *m, struct shm_req *r, struct shm_pair *pair)
{
    uint64_t bytes = bytes_of(r), off = pair->want[r->want].out_off;
    bool direct = off < m->shared->bytes && bytes <= m->shared->bytes - off;
    uint64_t put = atomic_load_explicit(&pair->put, memory_order_relaxed);
    while (put - atomic_load_explicit(&pair->taken, memory_order_acquire) < 2) {
        struct shm_packet *p = &pair->packet[put & 1];
        if (direct && bytes > 0) {
            copy_run(shm_at(m, off), r->keep.part[0].in, bytes, false);
            r->moved = bytes;
        }
        uint64_t len = bytes - r->moved < SHM_PACKET ? bytes - r->moved : SHM_PACKET;
        if (len > 0)
            copy_run(p->data, (const char *)r->keep.part[0].in + r->moved, len, false);
        r->moved += len;
        p->want = (uint32_t)r->want;
        p->bytes = len;
        p->last = r->moved == bytes;
        bool last = p->last;
        atomic_store_explicit(&pair->put, ++put, memory_order_release);
        m->p2p_moved = true;
        if (last) {
            finish(r);
            return;
        }
    }
}

/* ---- Both ---- */

static void drop_finished(struct shm *m)
{
    struct shm_req **at = &m->p2p_head, *last = NULL;
    while (*at != NULL) {
        struct shm_req *r = *at;
        if (r->state == 2) {
            *at = r->next;
            r->state = 0;
            m->spare[m->n_free++] = r;
        } else {
            last = r;
            at = &r->next;
        }
    }
    m->p2p_tail = last;
}

static bool send_on(struct shm *m, struct shm_req *r)
{
    struct shm_pair *pair = pair_of(m, m->c.rank, peer_rank(m, r));
    if (r->want < 0 && !match(m, r, pair))
        return false;
    if (r->want >= 0)
        put_packets(m, r, pair);
    return true;
}

bool p2p_advance(struct shm *m)
{
    m->p2p_moved = false;
    for (struct shm_req *r = m->p2p_head; r != NULL; r = r->next)
        if (r->keep.part[0].receive && r->want < 0)
            post(m, r);
    for (struct shm_req *r = m->p2p_head; r != NULL; r = r->next) {
        if (r->state != 1)
            continue;
        if (r->keep.part[0].receive ? !take_packets(m, peer_rank(m, r)) : !send_on(m, r))
            return false;
    }
    drop_finished(m);
    if (m->p2p_moved && atomic_load_explicit(&m->shared->sleepers, memory_order_relaxed) > 0)
        shm_ring(m->shared);
    return true;
}
