/* Waiting for other ranks, and saying for whom when it takes too long. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "run/comm/shm.h"

/* Spinning is fastest if every rank has a core. If not, the core is given to another rank at once.
 * Sleeping costs tens of microseconds to wake from, so it is for long waits only. */
enum { SPINS = 4000, YIELD_NS = 10000000, LOOK_NS = 1000000, SLEEP_NS = 1000000 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- The end of a job ---- */

void shm_ring(struct comm_shared *s)
{
    atomic_fetch_add_explicit(&s->bell, 1, memory_order_release);
    syscall(SYS_futex, &s->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void shm_end(struct comm_shared *s, int by, const char *reason)
{
    uint32_t running = 0;
    if (!atomic_compare_exchange_strong(&s->ended, &running, 1))
        return;
    s->ended_by = by;
    snprintf(s->reason, sizeof(s->reason), "%s", reason);
    atomic_store_explicit(&s->ended, 2, memory_order_release);
    shm_ring(s);
}

bool shm_fail(struct shm *m)
{
    shm_end(m->shared, m->c.rank, m->c.error);
    return false;
}

bool shm_running(struct shm *m)
{
    uint32_t ended = atomic_load_explicit(&m->shared->ended, memory_order_acquire);
    if (ended == 0)
        return true;
    for (int i = 0; ended == 1 && i < 1000; i++) { /* the reason is being written */
        sched_yield();
        ended = atomic_load_explicit(&m->shared->ended, memory_order_acquire);
    }
    return comm_fail(&m->c, "%s", ended == 2 ? m->shared->reason : "the job was ended");
}

/* ---- Where a rank is ---- */

void shm_whereabouts(const struct comm_shared *s, int rank, char *text, size_t size)
{
    const struct shm_rank *k = &s->rank[rank];
    char label[SHM_LABEL + 1];
    for (size_t i = 0; i < SHM_LABEL / 8; i++) {
        uint64_t word = atomic_load_explicit(&k->label[i], memory_order_relaxed);
        memcpy(label + 8 * i, &word, 8);
    }
    label[SHM_LABEL] = '\0';
    uint32_t state = atomic_load_explicit(&k->state, memory_order_relaxed);
    uint32_t kind = atomic_load_explicit(&k->kind, memory_order_relaxed);
    const char *name = comm_kind_name((enum comm_kind)kind);
    if (kind == COMM_KINDS)
        snprintf(text, size, "before its first call");
    else if (label[0] == '\0')
        snprintf(text, size, "%s %s", state == SHM_WAITS ? "in" : "after the call of", name);
    else
        snprintf(text, size, "%s %s '%s'", state == SHM_WAITS ? "in" : "after the call of", name,
                 label);
}

/* 'T': stopped by a signal, 'Z': dead. */
static char process_state(int pid)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 'Z';
    size_t n = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[n] = '\0';
    const char *end = strrchr(line, ')');
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static const char *rank_state(const struct comm_shared *s, int rank)
{
    const struct shm_rank *k = &s->rank[rank];
    if (atomic_load_explicit(&k->state, memory_order_relaxed) == SHM_ENDED)
        return "it has ended";
    if (s->threads)
        return "it runs";
    switch (process_state(atomic_load_explicit(&k->pid, memory_order_relaxed))) {
    case 'T':
    case 't': return "it is stopped";
    case 'Z':
    case 'X': return "it is dead";
    default: return "it runs";
    }
}

/* The rank that is waited for, or the one that that rank waits for, and so on: it is to blame. */
static int culprit(const struct comm_shared *s, int rank)
{
    for (int hops = 0; hops < s->world; hops++) {
        const struct shm_rank *k = &s->rank[rank];
        int next = atomic_load_explicit(&k->waits_for, memory_order_relaxed);
        if (atomic_load_explicit(&k->state, memory_order_relaxed) != SHM_WAITS || next < 0)
            break;
        rank = next;
    }
    return rank;
}

static int first_missing(const struct shm *m, const struct shm_req *r)
{
    if (r->keep.call.kind == COMM_P2P)
        return m->c.group[r->keep.call.group].member[r->keep.part[0].peer];
    const struct shm_chan *ch = r->chan;
    if (!r->begun || r->seen >= ch->n)
        return -1;
    return m->c.group[ch->id < 0 ? 0 : ch->id].member[r->seen];
}

static bool is_stopped(const struct shm *m, int rank)
{
    char state = m->shared->threads ? 'R' : process_state(m->shared->rank[rank].pid);
    return state == 'T' || state == 't';
}

/* Of several that have not come, on a busy machine, one that is stopped will not come at all. */
static int missing_most(const struct shm *m, const struct shm_req *r)
{
    int first = first_missing(m, r);
    if (first < 0 || r->keep.call.kind == COMM_P2P)
        return first;
    const struct shm_chan *ch = r->chan;
    for (int32_t i = r->seen; i < ch->n; i++) {
        int rank = m->c.group[ch->id < 0 ? 0 : ch->id].member[i];
        if (i != ch->me && !chan_came(ch, i) && is_stopped(m, rank))
            return rank;
    }
    return first;
}

static bool too_late(struct shm *m, const struct shm_req *r, int missing)
{
    char text[256], at[192], also[256] = "";
    call_describe(&r->keep.call, text, sizeof(text));
    if (missing < 0)
        return comm_fail(&m->c, "rank %d: %s is not done after %g s", m->c.rank, text,
                         m->timeout_s);
    int blame = culprit(m->shared, missing);
    shm_whereabouts(m->shared, blame, at, sizeof(at));
    if (blame != missing) {
        char other[192];
        shm_whereabouts(m->shared, missing, other, sizeof(other));
        snprintf(also, sizeof(also), "; rank %d waits for it %s", missing, other);
    }
    return comm_fail(&m->c, "rank %d did not come to %s within %g s: %s, %s%s", blame, text,
                     m->timeout_s, rank_state(m->shared, blame), at, also);
}

/* ---- Waiting ---- */

static void show_waiting(struct shm *m, const struct shm_req *r, bool waits)
{
    struct shm_rank *k = &m->shared->rank[m->c.rank];
    if (waits)
        atomic_store_explicit(&k->waits_for, r != NULL ? first_missing(m, r) : -1,
                              memory_order_relaxed);
    atomic_store_explicit(&k->state, waits ? SHM_WAITS : SHM_RUNS, memory_order_relaxed);
}

static void sleep_a_little(struct comm_shared *s)
{
    struct timespec t = {.tv_nsec = SLEEP_NS};
    uint32_t bell = atomic_load_explicit(&s->bell, memory_order_acquire);
    atomic_fetch_add(&s->sleepers, 1);
    syscall(SYS_futex, &s->bell, FUTEX_WAIT, bell, &t, NULL, 0);
    atomic_fetch_sub(&s->sleepers, 1);
}

/* A rank that has ended cannot come any more: no need to wait for the time-out. */
static bool has_ended(struct shm *m, const struct shm_req *r)
{
    int missing = first_missing(m, r);
    if (missing < 0 || r->keep.call.kind == COMM_P2P)
        return false;
    struct shm_rank *k = &m->shared->rank[missing];
    if (atomic_load_explicit(&k->state, memory_order_acquire) != SHM_ENDED)
        return false;
    /* It may have come in the meantime, before it ended. */
    struct shm_line *l = chan_line(r->chan, r->seen, r->chan->seq);
    if (atomic_load_explicit(&l->step, memory_order_acquire) >= r->chan->step)
        return false;
    char text[256], at[192];
    call_describe(&r->keep.call, text, sizeof(text));
    shm_whereabouts(m->shared, missing, at, sizeof(at));
    comm_fail(&m->c, "rank %d has ended %s and will not come to %s", missing, at, text);
    return true;
}

static bool look_around(struct shm *m, uint64_t waited, const struct shm_req *r)
{
    show_waiting(m, r, true);
    if (has_ended(m, r))
        return shm_fail(m);
    if ((double)waited * 1e-9 < m->timeout_s)
        return true;
    too_late(m, r, missing_most(m, r));
    return shm_fail(m);
}

bool shm_pause(struct shm *m, struct shm_pause *p, const struct shm_req *r)
{
    if (atomic_load_explicit(&m->shared->ended, memory_order_relaxed) != 0)
        return shm_running(m);
    if (m->shared->spin && p->n++ < SPINS) {
        relax();
        return true;
    }
    /* By the clock, not by counting: on a busy machine each turn may take long. */
    uint64_t now = now_ns();
    if (p->since == 0)
        p->since = p->looked = now;
    if (now - p->since < YIELD_NS)
        sched_yield();
    else
        sleep_a_little(m->shared);
    if (now - p->looked < LOOK_NS)
        return true;
    p->looked = now;
    return look_around(m, now - p->since, r);
}

void shm_pause_end(struct shm *m, const struct shm_pause *p)
{
    if (p->since != 0)
        show_waiting(m, NULL, false);
}
