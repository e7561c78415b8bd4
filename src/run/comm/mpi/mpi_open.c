/* The table of the MPI transport: joining, waiting, time-outs, and the thread that moves messages
 * on. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "run/comm/mpi/mpi_comm.h"
#include "run/comm/plugin.h"

/* Sleeping between looks costs 1 % of a core and nothing else: socket buffers are larger than what
 * a link brings meanwhile. */
enum { SLEEP_US = 500, SPINS = 2000, YIELDS = 20000, WAIT_US = 100, FAREWELL_MS = 1000 };

/* mpirun ends the other ranks by this when one has died. */
static atomic_int ended_by;

static void take_term(int sig)
{
    atomic_store(&ended_by, sig);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_us(long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* ---- The end of a job, under the lock ---- */

/* Every rank has one receive posted for the reason why another one gave up. */
static bool others_run(struct mpi *m)
{
    int done = 0;
    if (m->failed)
        return false;
    if (m->ended == MPI_REQUEST_NULL)
        return true;
    MPI_Test(&m->ended, &done, MPI_STATUS_IGNORE);
    if (!done)
        return true;
    m->reason[COMM_ERROR_BYTES - 1] = '\0';
    m->failed = true;
    return comm_fail(&m->c, "%s", m->reason);
}

static void tell_others(struct mpi *m)
{
    if (m->failed)
        return;
    m->failed = true;
    memcpy(m->farewell, m->c.error, COMM_ERROR_BYTES);
    for (int r = 0; r < m->c.world; r++) {
        MPI_Request q;
        if (r != m->c.rank &&
            MPI_Isend(m->farewell, COMM_ERROR_BYTES, MPI_CHAR, r, 0, m->control, &q) == MPI_SUCCESS)
            MPI_Request_free(&q);
    }
    int flag; /* let them leave */
    double until = now_s() + 0.05;
    while (now_s() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->p2p, &flag, MPI_STATUS_IGNORE);
}

static bool fail(struct mpi *m)
{
    tell_others(m);
    return false;
}

static bool move_on(struct mpi *m)
{
    return others_run(m) && (mpi_move_on(m) || fail(m));
}

/* ---- The thread ---- */

static void *thread_main(void *arg)
{
    struct mpi *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        if (m->n_busy == 0 || m->failed) {
            pthread_cond_wait(&m->work, &m->lock);
            continue;
        }
        move_on(m);
        pthread_mutex_unlock(&m->lock);
        sleep_us(m->sleep_us);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- Starting and waiting ---- */

static bool mpi_start(struct comm *c, const struct comm_call *call, comm_req *req)
{
    struct mpi *m = (struct mpi *)(void *)c;
    pthread_mutex_lock(&m->lock);
    bool ok = others_run(m);
    if (ok) {
        struct mpi_req *r = call_check(c, call) ? mpi_req_make(m, call) : NULL;
        ok = r != NULL;
        if (ok && call->kind == COMM_P2P && call->n_part > 0) {
            ok = mpi_start_p2p(m, r);
        } else if (ok) {
            mpi_enqueue(m, m->chan[call->group], r);
            ok = mpi_move_on(m);
        }
        if (ok)
            *req = r->id;
        else
            fail(m);
        pthread_cond_signal(&m->work);
    }
    pthread_mutex_unlock(&m->lock);
    return ok;
}

static bool mpi_progress(struct comm *c)
{
    struct mpi *m = (struct mpi *)(void *)c;
    pthread_mutex_lock(&m->lock);
    bool ok = move_on(m);
    pthread_mutex_unlock(&m->lock);
    return ok;
}

static bool too_late(struct mpi *m, const struct mpi_req *r, const char *why)
{
    char text[400];
    if (mpi_missing(m, r, text, sizeof(text)))
        return comm_fail(&m->c, "%s %s", text, why);
    call_describe(&r->keep.call, text, sizeof(text));
    return comm_fail(&m->c, "rank %d: %s is not done %s", m->c.rank, text, why);
}

/* One look, under the lock. */
static enum comm_state look(struct mpi *m, struct mpi_req *r, double since)
{
    char why[96];
    if (r->state == 2)
        return COMM_DONE;
    if (!move_on(m))
        return COMM_FAILED;
    if (r->state == 2)
        return COMM_DONE;
    int sig = atomic_load(&ended_by);
    if (sig != 0)
        snprintf(why, sizeof(why), "when this rank was ended by signal %d (%s)", sig,
                 strsignal(sig));
    else if (since > 0 && now_s() - since > m->timeout_s)
        snprintf(why, sizeof(why), "within %g s", m->timeout_s);
    else
        return COMM_PENDING;
    too_late(m, r, why);
    fail(m);
    return COMM_FAILED;
}

static void pause_wait(uint64_t n)
{
    if (n >= SPINS + YIELDS)
        sleep_us(WAIT_US);
    else if (n >= SPINS)
        sched_yield();
}

static enum comm_state wait_for(struct mpi *m, struct mpi_req *r)
{
    enum comm_state s;
    double since = now_s(); /* by the clock, not by counting: turns may take long */
    for (uint64_t n = 0;; n++) {
        pthread_mutex_lock(&m->lock);
        s = look(m, r, since);
        pthread_mutex_unlock(&m->lock);
        if (s != COMM_PENDING)
            return s;
        pause_wait(n);
    }
}

static struct mpi_req *req_of(struct mpi *m, comm_req req)
{
    if (req < m->n_req && m->req[req]->state != 0)
        return m->req[req];
    comm_fail(&m->c, "there is no request %u", req);
    return NULL;
}

static enum comm_state ended(struct mpi *m, struct mpi_req *r, enum comm_state s)
{
    if (s == COMM_DONE)
        mpi_req_free(m, r);
    return s;
}

static enum comm_state mpi_test(struct comm *c, comm_req req)
{
    struct mpi *m = (struct mpi *)(void *)c;
    pthread_mutex_lock(&m->lock);
    struct mpi_req *r = req_of(m, req);
    enum comm_state s = r != NULL ? ended(m, r, look(m, r, 0)) : COMM_FAILED;
    pthread_mutex_unlock(&m->lock);
    return s;
}

static bool mpi_wait(struct comm *c, comm_req req)
{
    struct mpi *m = (struct mpi *)(void *)c;
    pthread_mutex_lock(&m->lock);
    struct mpi_req *r = req_of(m, req);
    pthread_mutex_unlock(&m->lock);
    if (r == NULL)
        return false;
    enum comm_state s = wait_for(m, r);
    pthread_mutex_lock(&m->lock);
    ended(m, r, s);
    pthread_mutex_unlock(&m->lock);
    return s == COMM_DONE;
}

static void mpi_abort(struct comm *c, const char *reason)
{
    struct mpi *m = (struct mpi *)(void *)c;
    pthread_mutex_lock(&m->lock);
    comm_fail(c, "%s", reason);
    tell_others(m);
    pthread_mutex_unlock(&m->lock);
}

/* ---- What all ranks do together ---- */

static bool gather_on(struct mpi *m, struct mpi_chan *ch, const void *mine, size_t bytes, void *all)
{
    struct comm_part part = {.in = mine, .out = all, .count = (int64_t)bytes, .dtype = DTYPE_U8};
    struct comm_call call = {.kind = COMM_ALL_GATHER,
                             .group = ch->id < 0 ? 0 : ch->id,
                             .n_part = 1,
                             .part = &part,
                             .label = "exchange"};
    pthread_mutex_lock(&m->lock);
    struct mpi_req *r = others_run(m) ? mpi_req_make(m, &call) : NULL;
    if (r != NULL)
        mpi_enqueue(m, ch, r);
    pthread_mutex_unlock(&m->lock);
    if (r == NULL)
        return false;
    enum comm_state s = wait_for(m, r);
    pthread_mutex_lock(&m->lock);
    ended(m, r, s);
    pthread_mutex_unlock(&m->lock);
    return s == COMM_DONE;
}

static bool mpi_exchange(struct comm *c, const void *mine, size_t bytes, void *all)
{
    struct mpi *m = (struct mpi *)(void *)c;
    return gather_on(m, m->internal, mine, bytes, all);
}

static struct mpi_chan *chan_new(const struct comm_group *g, int32_t id)
{
    struct mpi_chan *ch = calloc(1, sizeof(*ch));
    if (ch != NULL)
        *ch = (struct mpi_chan){
            .id = id, .n = g->n, .me = g->me, .member = g->member, .own = MPI_COMM_NULL};
    return ch;
}

/* For MPI's own reductions each group needs a communicator. */
static bool own_comm(struct mpi *m, struct mpi_chan *ch)
{
    MPI_Group all, some;
    if (!m->own_reductions || ch->me < 0)
        return true;
    MPI_Comm_group(m->jobs, &all);
    MPI_Group_incl(all, ch->n, ch->member, &some);
    int code = MPI_Comm_create_group(m->jobs, some, ch->id, &ch->own);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    if (code == MPI_SUCCESS)
        MPI_Comm_set_errhandler(ch->own, MPI_ERRORS_RETURN);
    return mpi_ok(m, code, "MPI_Comm_create_group");
}

static bool chan_add(struct mpi *m)
{
    int32_t id = m->c.n_group - 1;
    struct mpi_chan **more = realloc(m->chan, (size_t)(id + 1) * sizeof(*more));
    if (more != NULL)
        m->chan = more;
    struct mpi_chan *ch = more != NULL ? chan_new(&m->c.group[id], id) : NULL;
    if (ch == NULL)
        return comm_fail(&m->c, "out of memory");
    m->chan[id] = ch;
    m->n_chan = id + 1;
    return own_comm(m, ch);
}

static int32_t mpi_group(struct comm *c, const int32_t *member, int32_t n)
{
    struct mpi *m = (struct mpi *)(void *)c;
    bool added;
    int32_t id = groups_add(c, member, n, &added);
    uint64_t hash = 14695981039346656037u ^ (uint64_t)n;
    for (int32_t i = 0; id >= 0 && i < n; i++)
        hash = (hash ^ (uint32_t)member[i]) * 1099511628211u;
    uint64_t *all = malloc((size_t)c->world * sizeof(*all));
    bool ok = id >= 0 && all != NULL && mpi_exchange(c, &hash, sizeof(hash), all);
    for (int r = 0; ok && r < c->world; r++)
        if (all[r] != hash)
            ok = comm_fail(c, "ranks %d and %d make different groups", c->rank, r);
    free(all);
    pthread_mutex_lock(&m->lock);
    if (ok && (int64_t)(id + 2) * MPI_TAGS > m->most_tag)
        ok = comm_fail(c, "this MPI has too few tags for %d groups", id);
    ok = ok && (!added || chan_add(m));
    if (!ok)
        fail(m);
    pthread_mutex_unlock(&m->lock);
    return ok ? id : -1;
}

static void *mpi_heap(struct comm *c, int32_t group, size_t bytes)
{
    struct mpi *m = (struct mpi *)(void *)c;
    struct mpi_chan *ch = group >= 0 && group < m->n_chan ? m->chan[group] : NULL;
    bool ok = ch != NULL && ch->me >= 0 && ch->heap == NULL;
    uint64_t mine = bytes, *all = ok ? malloc((size_t)ch->n * sizeof(*all)) : NULL;
    if (!ok)
        comm_fail(c, "group %d: no such group, no member of it, or it has a heap", group);
    ok = ok && all != NULL && gather_on(m, ch, &mine, sizeof(mine), all);
    for (int32_t i = 0; ok && i < ch->n; i++)
        if (all[i] != mine)
            ok = comm_fail(c, "rank %d has a heap of %llu bytes, rank %d one of %llu",
                           ch->member[i], (unsigned long long)all[i], c->rank,
                           (unsigned long long)mine);
    free(all);
    if (ok) {
        ch->heap = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
        if (ch->heap != NULL)
            return memset(ch->heap, 0, bytes);
        comm_fail(c, "no memory left for a heap of %zu bytes at rank %d", bytes, c->rank);
    }
    pthread_mutex_lock(&m->lock);
    fail(m);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void *mpi_peer(struct comm *c, int32_t group, int32_t member)
{
    (void)c;
    (void)group;
    (void)member;
    return NULL;
}

/* ---- Joining and leaving ---- */

static void stop_thread(struct mpi *m)
{
    if (!m->thread_runs)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->work);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
}

static void free_chan(struct mpi_chan *ch)
{
    if (ch == NULL)
        return;
    free(ch->heap);
    free(ch);
}

static void mpi_free(struct mpi *m)
{
    for (uint32_t i = 0; i < m->n_req; i++) {
        call_drop(&m->req[i]->keep);
        free(m->req[i]->q);
        free(m->req[i]);
    }
    while (m->spare_job != NULL) {
        struct mpi_job *j = m->spare_job;
        m->spare_job = j->next;
        free(j->q);
        free(j->peer);
        free(j->memory);
        free(j);
    }
    for (int32_t i = 0; i < m->n_chan; i++)
        free_chan(m->chan[i]);
    free_chan(m->internal);
    groups_free(&m->c);
    free(m->chan);
    free(m->req);
    free(m->spare);
    free(m->src);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->work);
    free(m);
}

/* After a failure nobody can be sure that the others come to MPI_Finalize: the process leaves
 * without it, and mpirun ends the rest. Before, others get time to say what they know. What MPI may
 * still write to is not freed then. */
static void mpi_close(struct comm *c)
{
    struct mpi *m = (struct mpi *)(void *)c;
    stop_thread(m);
    sigaction(SIGTERM, &m->old_term, NULL);
    if (m->failed) {
        sleep_us(FAREWELL_MS * 1000L);
        return;
    }
    MPI_Cancel(&m->ended);
    MPI_Wait(&m->ended, MPI_STATUS_IGNORE);
    for (int32_t i = 0; i < m->n_chan; i++)
        if (m->chan[i]->own != MPI_COMM_NULL)
            MPI_Comm_free(&m->chan[i]->own);
    MPI_Comm_free(&m->jobs);
    MPI_Comm_free(&m->p2p);
    MPI_Comm_free(&m->control);
    if (m->here)
        MPI_Finalize();
    mpi_free(m);
}

static bool refuse(char *error, const char *what)
{
    snprintf(error, COMM_ERROR_BYTES, "mpi: %s", what);
    return false;
}

/* Settings that Open MPI needs to reach a link's speed; the user's own come first. */
static bool init(struct mpi *m, char *error)
{
    int is_on, level;
    setenv("OMPI_MCA_btl_tcp_links", "2", 0);
    setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "1", 0);
    MPI_Initialized(&is_on);
    if (is_on) {
        MPI_Query_thread(&level);
    } else {
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
            return refuse(error, "MPI_Init_thread failed");
        m->here = true;
    }
    if (level < MPI_THREAD_SERIALIZED)
        return refuse(error, "this MPI cannot be called from more than one thread");
    return true;
}

static bool join(struct mpi *m, const struct comm_job *job, char *error)
{
    int *most, found = 0;
    MPI_Comm all[3];
    for (int i = 0; i < 3; i++) {
        if (MPI_Comm_dup(MPI_COMM_WORLD, &all[i]) != MPI_SUCCESS)
            return refuse(error, "MPI_Comm_dup failed");
        MPI_Comm_set_errhandler(all[i], MPI_ERRORS_RETURN);
    }
    m->jobs = all[0], m->p2p = all[1], m->control = all[2];
    MPI_Comm_rank(m->jobs, &m->c.rank);
    MPI_Comm_size(m->jobs, &m->c.world);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&most, &found);
    m->most_tag = found ? *most : 32767;
    if (job->world != 0 && job->world != m->c.world) {
        snprintf(error, COMM_ERROR_BYTES, "mpi: %d ranks were asked for, but mpirun started %d",
                 job->world, m->c.world);
        return false;
    }
    return MPI_Irecv(m->reason, COMM_ERROR_BYTES, MPI_CHAR, MPI_ANY_SOURCE, 0, m->control,
                     &m->ended) == MPI_SUCCESS ||
           refuse(error, "MPI_Irecv failed");
}

static bool open_world(struct mpi *m, char *error)
{
    size_t world = (size_t)m->c.world;
    int32_t *all = malloc(world * sizeof(*all));
    bool added, ok = all != NULL;
    m->src = malloc(world * sizeof(*m->src));
    for (size_t i = 0; ok && i < world; i++)
        all[i] = (int32_t)i;
    ok = ok && m->src != NULL && groups_add(&m->c, all, m->c.world, &added) == 0;
    free(all);
    m->internal = ok ? chan_new(&m->c.group[0], -1) : NULL;
    if (m->internal == NULL || !chan_add(m))
        return refuse(error, "out of memory");
    m->thread_runs = pthread_create(&m->thread, NULL, thread_main, m) == 0;
    return m->thread_runs || refuse(error, "no thread could be started");
}

extern const struct transport transport_mpi;

static struct comm *mpi_open(const struct comm_job *job, char *error)
{
    struct mpi *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        refuse(error, "out of memory");
        return NULL;
    }
    const char *set = getenv("TUCK_MPI_SLEEP_US");
    m->c.transport = &transport_mpi;
    m->timeout_s = job->timeout_s > 0 ? job->timeout_s : 60;
    m->own_reductions = job->own_reductions;
    m->sleep_us = set != NULL && atol(set) > 0 ? atol(set) : SLEEP_US;
    m->ended = MPI_REQUEST_NULL;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->work, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if mpirun is killed */
    if (!init(m, error) || !join(m, job, error) || !open_world(m, error)) {
        mpi_free(m);
        return NULL;
    }
    struct sigaction term = {.sa_handler = take_term};
    sigaction(SIGTERM, &term, &m->old_term);
    return &m->c;
}

const struct transport transport_mpi = {
    .name = "mpi",
    .help = "ranks are started by mpirun, on any number of machines",
    .by_mpirun = true,
    .open = mpi_open,
    .close = mpi_close,
    .abort = mpi_abort,
    .group = mpi_group,
    .heap = mpi_heap,
    .peer = mpi_peer,
    .start = mpi_start,
    .test = mpi_test,
    .wait = mpi_wait,
    .progress = mpi_progress,
    .exchange = mpi_exchange,
};

__attribute__((visibility("default"))) tuck_transport_fn tuck_transport;

const struct transport *tuck_transport(const char *version, size_t call_bytes)
{
    bool same = strcmp(version, TUCK_VERSION) == 0 && call_bytes == sizeof(struct comm_call);
    return same ? &transport_mpi : NULL;
}
