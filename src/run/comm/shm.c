/* The shm transport: the segment, joining it, groups, heaps, and starting and ending calls. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run/comm/shm.h"

/* ---- The segment ---- */

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + SHM_ALIGN - 1) / SHM_ALIGN * SHM_ALIGN;
}

/* Address space, not memory: pages that nobody touches cost nothing. */
static size_t all_memory(void)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (size_t)(page_up(pages * page) + ((uint64_t)1 << 32));
}

static uint64_t least_bytes(int world, uint64_t *own)
{
    *own = page_up(sizeof(struct comm_shared) + (size_t)world * sizeof(struct shm_rank));
    return *own + 2 * chan_bytes(world) + page_up(pairs_bytes(world));
}

void shm_format(struct comm_shared *s, uint64_t bytes, int world, bool threads, bool spin)
{
    uint64_t own, least = least_bytes(world, &own);
    s->bytes = bytes;
    s->world = world;
    s->threads = threads;
    s->spin = spin;
    s->internal = own;
    s->all = own + chan_bytes(world);
    s->pairs = own + 2 * chan_bytes(world);
    atomic_store(&s->top, least);
    for (int r = 0; r < world; r++) {
        atomic_store(&s->rank[r].kind, COMM_KINDS);
        atomic_store(&s->rank[r].waits_for, -1);
        atomic_store(&s->rank[r].status, -1);
    }
}

struct comm_shared *shm_create(int world, size_t memory, bool threads, bool spin, char *error)
{
    uint64_t own, least = least_bytes(world, &own);
    uint64_t bytes = (memory != 0 ? page_up(memory) : all_memory()) + least;
    struct comm_shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED) {
        snprintf(error, COMM_ERROR_BYTES, "cannot map %llu bytes of shared memory: %s",
                 (unsigned long long)bytes, strerror(errno));
        return NULL;
    }
    shm_format(s, bytes, world, threads, spin);
    return s;
}

void shm_destroy(struct comm_shared *s)
{
    if (s != NULL)
        munmap(s, s->bytes);
}

/* SHM_NOWHERE: the segment is full. */
static uint64_t shm_take(struct shm *m, uint64_t bytes)
{
    bytes = page_up(bytes);
    uint64_t at = atomic_fetch_add(&m->shared->top, bytes);
    return at <= m->shared->bytes && bytes <= m->shared->bytes - at ? at : SHM_NOWHERE;
}

/* ---- Joining and leaving ---- */

static struct shm_chan *chan_new(const struct comm_group *g, int32_t id, char *base)
{
    struct shm_chan *ch = aligned_alloc(_Alignof(struct shm_chan), sizeof(*ch));
    if (ch != NULL)
        *ch = (struct shm_chan){.id = id,
                                .n = g->n,
                                .me = g->me,
                                .base = base,
                                .stride = member_bytes(g->n),
                                .slots = chan_slots(g->n)};
    return ch;
}

static bool chan_add(struct shm *m, char *base)
{
    int32_t id = m->c.n_group - 1;
    struct shm_chan **more = realloc(m->chan, (size_t)(id + 1) * sizeof(*more));
    if (more == NULL)
        return false;
    m->chan = more;
    more[id] = chan_new(&m->c.group[id], id, base);
    m->n_chan = more[id] != NULL ? id + 1 : id;
    return more[id] != NULL;
}

static void shm_close(struct comm *c)
{
    struct shm *m = (struct shm *)(void *)c;
    for (int32_t i = 0; i < m->n_chan; i++) {
        free(m->chan[i]->heap);
        free(m->chan[i]);
    }
    for (uint32_t i = 0; i < m->n_req; i++) {
        call_drop(&m->req[i]->keep);
        free(m->req[i]);
    }
    atomic_store_explicit(&m->shared->rank[c->rank].state, SHM_ENDED, memory_order_release);
    groups_free(c);
    free(m->internal);
    free(m->chan);
    free(m->req);
    free(m->spare);
    free(m->posted);
    free(m->src);
    free(m->dst);
    free(m);
}

static bool open_world(struct shm *m)
{
    size_t world = (size_t)m->c.world;
    int32_t *all = malloc(world * sizeof(*all));
    m->src = malloc(world * sizeof(*m->src));
    m->dst = malloc(world * sizeof(*m->dst));
    m->posted = calloc(world, sizeof(*m->posted));
    bool added, ok = all != NULL && m->src != NULL && m->dst != NULL && m->posted != NULL;
    for (size_t i = 0; ok && i < world; i++)
        all[i] = (int32_t)i;
    ok = ok && groups_add(&m->c, all, m->c.world, &added) == 0;
    free(all);
    if (!ok)
        return false;
    m->internal = chan_new(&m->c.group[0], -1, shm_at(m, m->shared->internal));
    return m->internal != NULL && chan_add(m, shm_at(m, m->shared->all));
}

static struct comm *shm_open_rank(const struct comm_job *job, char *error)
{
    if (job->shared == NULL || job->rank < 0 || job->rank >= job->shared->world) {
        snprintf(error, COMM_ERROR_BYTES, "shm: ranks must be started by the launcher");
        return NULL;
    }
    struct shm *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        snprintf(error, COMM_ERROR_BYTES, "out of memory");
        return NULL;
    }
    m->c.transport = &transport_shm;
    m->c.rank = job->rank;
    m->c.world = job->shared->world;
    m->shared = job->shared;
    m->timeout_s = job->timeout_s > 0 ? job->timeout_s : 60;
    if (!open_world(m)) {
        snprintf(error, COMM_ERROR_BYTES, "out of memory");
        shm_close(&m->c);
        return NULL;
    }
    struct shm_rank *k = &m->shared->rank[m->c.rank];
    atomic_store(&k->pid, (int32_t)getpid());
    atomic_store(&k->state, SHM_RUNS);
    return &m->c;
}

static void shm_abort(struct comm *c, const char *reason)
{
    struct shm *m = (struct shm *)(void *)c;
    comm_fail(c, "%s", reason);
    shm_end(m->shared, c->rank, reason);
}

/* ---- Requests ---- */

static struct shm_req *req_take(struct shm *m)
{
    if (m->n_free > 0)
        return m->spare[--m->n_free];
    size_t n = m->n_req + 1;
    struct shm_req **more = realloc(m->req, n * sizeof(*more));
    if (more != NULL)
        m->req = more;
    struct shm_req **spare = realloc(m->spare, n * sizeof(*spare));
    if (spare != NULL)
        m->spare = spare;
    struct shm_req *r = more != NULL && spare != NULL ? calloc(1, sizeof(*r)) : NULL;
    if (r == NULL)
        return NULL;
    r->id = m->n_req;
    r->shm = m;
    m->req[m->n_req++] = r;
    return r;
}

static void req_give(struct shm *m, struct shm_req *r)
{
    r->state = 0;
    m->spare[m->n_free++] = r;
}

static struct shm_req *req_make(struct shm *m, const struct comm_call *call)
{
    struct shm_req *r = req_take(m);
    if (r == NULL) {
        comm_fail(&m->c, "out of memory");
        return NULL;
    }
    if (!call_keep(&r->keep, call, m->c.group[call->group].n)) {
        req_give(m, r);
        comm_fail(&m->c, "out of memory");
        return NULL;
    }
    r->state = 1;
    r->next = NULL;
    r->at = 0;
    r->begun = false;
    r->whole = NULL;
    return r;
}

/* What this rank called last, for the messages of others. */
void shm_show_call(struct shm *m, const struct comm_call *call)
{
    struct shm_rank *k = &m->shared->rank[m->c.rank];
    const char *label = call->label != NULL ? call->label : "";
    size_t len = strnlen(label, SHM_LABEL - 1);
    atomic_store_explicit(&k->kind, call->kind, memory_order_relaxed);
    for (size_t i = 0; i <= len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, label + i, len - i < 8 ? len - i : 8);
        atomic_store_explicit(&k->label[i / 8], word, memory_order_relaxed);
    }
}

void shm_enqueue(struct shm *m, struct shm_chan *ch, struct shm_req *r)
{
    r->chan = ch;
    if (ch->tail != NULL) {
        ch->tail->next = r;
        ch->tail = r;
        return;
    }
    ch->head = ch->tail = r;
    ch->active = true;
    m->n_active++;
}

/* ---- Sends and receives: a request for each, and one for the call ---- */

static bool start_p2p(struct shm *m, const struct comm_call *call, struct shm_req *whole)
{
    whole->parts_left = call->n_part;
    for (uint32_t i = 0; i < call->n_part; i++) {
        struct comm_call single = *call;
        single.n_part = 1;
        single.part = &call->part[i];
        struct shm_req *r = req_make(m, &single);
        if (r == NULL)
            return shm_fail(m);
        r->whole = whole;
        r->want = -1;
        r->moved = 0;
        if (m->p2p_tail != NULL)
            m->p2p_tail->next = r;
        else
            m->p2p_head = r;
        m->p2p_tail = r;
    }
    return p2p_advance(m) || shm_fail(m);
}

/* A call like the one before, with other operands, needs no second check. */
static bool checked(struct shm *m, const struct comm_call *call)
{
    const struct comm_part *p = call->part;
    bool plain = call->kind != COMM_P2P && call->n_part == 1 && call->in_split == NULL &&
                 call->out_split == NULL && call->group >= 0 && call->group < m->n_chan &&
                 p->in != NULL && p->out != NULL;
    if (!plain)
        return call_check(&m->c, call);
    struct shm_chan *ch = m->chan[call->group];
    uint64_t what = call_what(call);
    if (what == ch->checked && p->count == ch->checked_count)
        return true;
    if (!call_check(&m->c, call))
        return false;
    ch->checked = what;
    ch->checked_count = p->count;
    ch->checked_bytes = (uint64_t)p->count * dtype_at(p->dtype)->bytes;
    return true;
}

static bool shm_start(struct comm *c, const struct comm_call *call, comm_req *req)
{
    struct shm *m = (struct shm *)(void *)c;
    if (!shm_running(m))
        return false;
    if (shm_quick_start(m, call, req))
        return true;
    if (!checked(m, call))
        return shm_fail(m);
    struct shm_req *r = req_make(m, call);
    if (r == NULL)
        return shm_fail(m);
    *req = r->id;
    if (r->keep.call.kind == COMM_P2P) {
        shm_show_call(m, call);
        return start_p2p(m, call, r);
    }
    struct shm_chan *ch = m->chan[call->group];
    bool first = ch->head == NULL;
    shm_enqueue(m, ch, r);
    if (first)
        chan_begin(m, ch, r); /* what others wait for comes first */
    shm_show_call(m, call);
    return true;
}

/* ---- Progress ---- */

static bool move_on(struct shm *m)
{
    for (int32_t i = 0, left = (int32_t)m->n_active; i < m->n_chan && left > 0; i++)
        if (m->chan[i]->active) {
            left--;
            if (chan_advance(m, m->chan[i]) == COMM_FAILED)
                return false;
        }
    return m->p2p_head == NULL || p2p_advance(m) || shm_fail(m);
}

static bool shm_progress(struct comm *c)
{
    struct shm *m = (struct shm *)(void *)c;
    return shm_running(m) && move_on(m);
}

static struct shm_req *req_of(struct shm *m, comm_req req)
{
    if (req < m->n_req && m->req[req]->state != 0)
        return m->req[req];
    comm_fail(&m->c, "there is no request %u", req);
    return NULL;
}

static enum comm_state shm_test(struct comm *c, comm_req req)
{
    struct shm *m = (struct shm *)(void *)c;
    struct shm_req *r = req_of(m, req);
    if (r == NULL || (r->state != 2 && !shm_progress(c)))
        return COMM_FAILED;
    if (r->state != 2)
        return COMM_PENDING;
    req_give(m, r);
    return COMM_DONE;
}

/* The part of a send or receive that is waited for. */
static const struct shm_req *waited_part(const struct shm *m, const struct shm_req *r)
{
    for (const struct shm_req *p = m->p2p_head; p != NULL; p = p->next)
        if (p->whole == r)
            return p;
    return r;
}

static bool wait_for(struct shm *m, struct shm_req *r)
{
    struct shm_pause pause = {0};
    struct shm_chan *only = r->keep.call.kind != COMM_P2P && m->p2p_head == NULL && m->n_active == 1
                                ? r->chan
                                : NULL;
    while (r->state != 2) {
        if (only != NULL ? chan_advance(m, only) == COMM_FAILED : !move_on(m))
            return false;
        if (r->state == 2)
            break;
        const struct shm_req *what = r->keep.call.kind == COMM_P2P ? waited_part(m, r)
                                     : r->chan->head != NULL       ? r->chan->head
                                                                   : r;
        if (!shm_pause(m, &pause, what))
            return false;
    }
    shm_pause_end(m, &pause);
    return true;
}

static bool shm_wait(struct comm *c, comm_req req)
{
    struct shm *m = (struct shm *)(void *)c;
    struct shm_req *r = req_of(m, req);
    bool ok = r != NULL && (shm_quick_wait(m, r) || wait_for(m, r));
    if (ok)
        req_give(m, r);
    return ok;
}

/* ---- What all ranks do together before the steps ---- */

/* A call on a channel of its own, so that it does not wait for other calls of the world. */
static bool gather_on(struct shm *m, struct shm_chan *ch, const void *mine, size_t bytes, void *all)
{
    struct comm_part part = {.in = mine, .out = all, .count = (int64_t)bytes, .dtype = DTYPE_U8};
    struct comm_call call = {.kind = COMM_ALL_GATHER,
                             .group = ch->id < 0 ? 0 : ch->id,
                             .n_part = 1,
                             .part = &part,
                             .label = "exchange"};
    struct shm_req *r = shm_running(m) ? req_make(m, &call) : NULL;
    if (r == NULL)
        return shm_fail(m);
    shm_show_call(m, &call);
    shm_enqueue(m, ch, r);
    struct shm_pause pause = {0};
    while (r->state != 2) {
        if (chan_advance(m, ch) == COMM_FAILED || !move_on(m))
            return false;
        if (r->state != 2 && !shm_pause(m, &pause, ch->head))
            return false;
    }
    shm_pause_end(m, &pause);
    req_give(m, r);
    return true;
}

static bool shm_exchange(struct comm *c, const void *mine, size_t bytes, void *all)
{
    struct shm *m = (struct shm *)(void *)c;
    return gather_on(m, m->internal, mine, bytes, all);
}

static uint64_t members_hash(const int32_t *member, int32_t n)
{
    uint64_t h = 14695981039346656037u ^ (uint64_t)n;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)member[i]) * 1099511628211u;
    return h;
}

struct group_note {
    uint64_t hash, at;
};

static bool group_share(struct shm *m, const int32_t *member, int32_t n, bool added)
{
    struct group_note note = {.hash = members_hash(member, n), .at = SHM_NOWHERE};
    struct group_note *all = malloc((size_t)m->c.world * sizeof(*all));
    if (all == NULL)
        return comm_fail(&m->c, "out of memory");
    if (m->c.rank == 0 && added)
        note.at = shm_take(m, chan_bytes(n));
    bool ok = shm_exchange(&m->c, &note, sizeof(note), all);
    for (int i = 0; ok && i < m->c.world; i++)
        if (all[i].hash != note.hash)
            ok = comm_fail(&m->c, "ranks %d and %d make different groups", m->c.rank, i);
    uint64_t at = all[0].at;
    free(all);
    if (!ok || !added)
        return ok;
    if (at > m->shared->bytes || chan_bytes(n) > m->shared->bytes - at)
        return comm_fail(&m->c, "no shared memory left for a group of %d ranks", n);
    return chan_add(m, shm_at(m, at)) || comm_fail(&m->c, "out of memory");
}

static int32_t shm_group(struct comm *c, const int32_t *member, int32_t n)
{
    struct shm *m = (struct shm *)(void *)c;
    bool added;
    int32_t id = groups_add(c, member, n, &added);
    if (id >= 0 && group_share(m, member, n, added))
        return id;
    shm_fail(m);
    return -1;
}

struct heap_note {
    uint64_t at, bytes;
};

/* Touches the pages now: a step must not, and if there are too few it is better to know. */
static bool populate(struct shm *m, char *p, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (bytes == 0 || madvise(p, page_up(bytes), MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return comm_fail(&m->c, "rank %d cannot have %zu bytes of shared memory: %s", m->c.rank,
                         bytes, strerror(errno));
#endif
    memset(p, 0, bytes);
    return true;
}

static bool heap_share(struct shm *m, struct shm_chan *ch, uint64_t bytes)
{
    struct heap_note note = {.at = shm_take(m, bytes > 0 ? bytes : 1), .bytes = bytes};
    struct heap_note *all = malloc((size_t)ch->n * sizeof(*all));
    ch->heap = malloc((size_t)ch->n * sizeof(*ch->heap));
    bool ok = all != NULL && ch->heap != NULL;
    if (!ok)
        comm_fail(&m->c, "out of memory");
    else if (note.at != SHM_NOWHERE)
        ok = populate(m, shm_at(m, note.at), bytes);
    ok = ok && gather_on(m, ch, &note, sizeof(note), all);
    for (int32_t i = 0; ok && i < ch->n; i++) {
        int32_t rank = m->c.group[ch->id].member[i];
        if (all[i].bytes != bytes)
            ok = comm_fail(&m->c, "rank %d has a heap of %llu bytes, rank %d one of %llu", rank,
                           (unsigned long long)all[i].bytes, m->c.rank, (unsigned long long)bytes);
        else if (all[i].at > m->shared->bytes || bytes > m->shared->bytes - all[i].at)
            ok = comm_fail(&m->c, "no shared memory left for a heap of %llu bytes at rank %d",
                           (unsigned long long)bytes, rank);
        else
            ch->heap[i] = all[i].at;
    }
    free(all);
    ch->heap_bytes = bytes;
    return ok;
}

static void *shm_heap(struct comm *c, int32_t group, size_t bytes)
{
    struct shm *m = (struct shm *)(void *)c;
    struct shm_chan *ch = group >= 0 && group < c->n_group ? m->chan[group] : NULL;
    if (ch == NULL || ch->me < 0 || ch->heap != NULL) {
        comm_fail(c, "group %d: %s", group,
                  ch == NULL   ? "there is none"
                  : ch->me < 0 ? "not a member"
                               : "it has a heap");
        shm_fail(m);
        return NULL;
    }
    if (!heap_share(m, ch, bytes)) {
        shm_fail(m);
        return NULL;
    }
    return shm_at(m, ch->heap[ch->me]);
}

static void *shm_peer(struct comm *c, int32_t group, int32_t member)
{
    struct shm *m = (struct shm *)(void *)c;
    if (group < 0 || group >= c->n_group || m->chan[group]->heap == NULL || member < 0 ||
        member >= m->chan[group]->n)
        return NULL;
    return shm_at(m, m->chan[group]->heap[member]);
}

const struct transport transport_shm = {
    .name = "shm",
    .help = "ranks are processes of this machine; shared memory",
    .open = shm_open_rank,
    .close = shm_close,
    .abort = shm_abort,
    .group = shm_group,
    .heap = shm_heap,
    .peer = shm_peer,
    .start = shm_start,
    .test = shm_test,
    .wait = shm_wait,
    .progress = shm_progress,
    .exchange = shm_exchange,
};
