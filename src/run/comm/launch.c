/* Starts ranks, watches them, and ends what is left of them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/comm/launch.h"
#include "run/comm/shm.h"

enum { GRACE_MS = 2000, LOOK_MS = 200 };

struct ranks {
    const struct launch_options *o;
    launch_fn fn;
    void *arg;
    struct launch_result *result;
    struct comm_shared *shared;
    cpu_set_t cores;
    int n_core;
    sigset_t old_mask;
    int signals; /* a signalfd: Ctrl-C and similar */
    /* processes */
    pid_t *pid; /* 0: ended */
    struct pollfd *watch;
    int left;
    int64_t kill_at; /* ms; 0: the job runs */
    bool killed;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool cannot(struct launch_result *result, const char *what)
{
    snprintf(result->error, COMM_ERROR_BYTES, "%s: %s", what, strerror(errno));
    return false;
}

static void pin(const struct ranks *k, int rank)
{
    if (!k->o->pin)
        return;
    int at = rank % k->n_core;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &k->cores) || at-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof(one), &one); /* of this thread; if refused, it runs anywhere */
        return;
    }
}

static struct comm_job job_of(const struct ranks *k, int rank)
{
    return (struct comm_job){.transport = k->o->transport,
                             .rank = rank,
                             .world = k->o->world,
                             .timeout_s = k->o->timeout_s,
                             .shared = k->shared,
                             .own_reductions = k->o->own_reductions};
}

static int run_rank(const struct ranks *k, int rank)
{
    struct comm_job job = job_of(k, rank);
    struct shm_rank *mine = &k->shared->rank[rank];
    atomic_store(&mine->pid, (int32_t)getpid());
    pin(k, rank);
    int status = k->fn(k->arg, &job, mine->error);
    mine->error[COMM_ERROR_BYTES - 1] = '\0';
    atomic_store(&mine->status, status);
    atomic_store(&mine->state, SHM_ENDED);
    return status;
}

/* ---- Ranks that ended ---- */

static void fail_first(struct ranks *k, int rank)
{
    if (k->result->first < 0)
        k->result->first = rank;
}

static void ended_by_signal(struct ranks *k, int rank, int sig)
{
    struct launch_rank *r = &k->result->rank[rank];
    char at[192];
    shm_whereabouts(k->shared, rank, at, sizeof(at));
    r->signal = sig;
    if (k->killed && sig == SIGKILL)
        snprintf(r->error, COMM_ERROR_BYTES, "rank %d did not end by itself (%s) and was killed",
                 rank, at);
    else
        snprintf(r->error, COMM_ERROR_BYTES, "rank %d was ended by signal %d (%s) %s", rank, sig,
                 strsignal(sig), at);
    fail_first(k, rank);
    shm_end(k->shared, -1, r->error);
}

static void ended(struct ranks *k, int rank, int how)
{
    struct launch_rank *r = &k->result->rank[rank];
    struct shm_rank *s = &k->shared->rank[rank];
    k->left--;
    if (WIFSIGNALED(how)) {
        ended_by_signal(k, rank, WTERMSIG(how));
        return;
    }
    bool returned = atomic_load(&s->status) != -1 || WEXITSTATUS(how) == 255;
    r->status = WEXITSTATUS(how);
    s->error[COMM_ERROR_BYTES - 1] = '\0';
    snprintf(r->error, COMM_ERROR_BYTES, "%s", s->error);
    if (!returned) { /* it called exit() itself */
        char at[192];
        shm_whereabouts(k->shared, rank, at, sizeof(at));
        snprintf(r->error, COMM_ERROR_BYTES, "rank %d left with status %d %s", rank, r->status, at);
        r->status = -1;
    }
    if (r->status == 0)
        return;
    fail_first(k, rank);
    if (r->error[0] == '\0')
        snprintf(r->error, COMM_ERROR_BYTES, "rank %d failed with status %d", rank, r->status);
    shm_end(k->shared, -1, r->error);
}

/* ---- Processes ---- */

static _Noreturn void child(struct ranks *k, int rank, pid_t parent)
{
    /* Even if the launcher is killed, ranks do not outlive it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    /* Ctrl-C reaches all processes of a terminal; the launcher ends the job in order. */
    signal(SIGINT, SIG_IGN);
    close(k->signals);
    pthread_sigmask(SIG_SETMASK, &k->old_mask, NULL);
    int status = run_rank(k, rank);
    fflush(NULL);
    _exit(status & 255);
}

static void kill_left(struct ranks *k)
{
    k->killed = true;
    for (int r = 0; r < k->o->world; r++)
        if (k->pid[r] > 0)
            kill(k->pid[r], SIGKILL);
}

static bool fork_all(struct ranks *k)
{
    pid_t parent = getpid();
    fflush(NULL);
    for (int r = 0; r < k->o->world; r++) {
        pid_t pid = fork();
        if (pid == 0)
            child(k, r, parent);
        if (pid < 0)
            return cannot(k->result, "cannot start a rank");
        k->pid[r] = pid;
        k->left++;
        k->watch[r].fd = (int)syscall(SYS_pidfd_open, pid, 0);
        k->watch[r].events = POLLIN;
        if (k->watch[r].fd < 0)
            return cannot(k->result, "cannot watch a rank");
    }
    return true;
}

static void reap(struct ranks *k, int rank, int flags)
{
    int how;
    if (k->pid[rank] <= 0 || waitpid(k->pid[rank], &how, flags) != k->pid[rank])
        return;
    k->pid[rank] = 0;
    if (k->watch[rank].fd >= 0)
        close(k->watch[rank].fd);
    k->watch[rank].fd = -1;
    ended(k, rank, how);
}

static void take_signal(struct ranks *k)
{
    struct signalfd_siginfo info;
    if (read(k->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    char text[128];
    int sig = (int)info.ssi_signo;
    if (k->result->interrupted != 0) { /* the second time: at once */
        k->kill_at = 1;
        return;
    }
    k->result->interrupted = sig;
    snprintf(text, sizeof(text), "interrupted by signal %d (%s)", sig, strsignal(sig));
    shm_end(k->shared, -1, text);
}

static void watch(struct ranks *k)
{
    int world = k->o->world;
    while (k->left > 0) {
        poll(k->watch, (nfds_t)world + 1, LOOK_MS);
        if (k->watch[world].revents & POLLIN)
            take_signal(k);
        for (int r = 0; r < world; r++)
            reap(k, r, WNOHANG);
        if (atomic_load(&k->shared->ended) == 0)
            continue;
        if (k->kill_at == 0)
            k->kill_at = now_ms() + GRACE_MS;
        else if (now_ms() >= k->kill_at && !k->killed)
            kill_left(k);
    }
}

static bool run_processes(struct ranks *k)
{
    size_t world = (size_t)k->o->world;
    k->pid = calloc(world, sizeof(*k->pid));
    k->watch = calloc(world + 1, sizeof(*k->watch));
    bool ok = k->pid != NULL && k->watch != NULL;
    if (ok) {
        for (size_t r = 0; r < world; r++)
            k->watch[r].fd = -1;
        k->watch[world] = (struct pollfd){.fd = k->signals, .events = POLLIN};
        ok = fork_all(k);
        if (!ok)
            kill_left(k);
        watch(k);
    }
    free(k->pid);
    free(k->watch);
    return ok;
}

/* ---- Threads ---- */

struct thread {
    struct ranks *k;
    int rank;
    pthread_t id;
    bool started;
};

static void *thread_main(void *arg)
{
    struct thread *t = arg;
    struct shm_rank *mine = &t->k->shared->rank[t->rank];
    if (run_rank(t->k, t->rank) != 0)
        shm_end(t->k->shared, t->rank, mine->error[0] != '\0' ? mine->error : "a rank failed");
    return NULL;
}

static bool run_threads(struct ranks *k)
{
    int world = k->o->world;
    struct thread *t = calloc((size_t)world, sizeof(*t));
    if (t == NULL)
        return cannot(k->result, "threads");
    bool ok = true;
    for (int r = 0; ok && r < world; r++) {
        t[r] = (struct thread){.k = k, .rank = r};
        errno = pthread_create(&t[r].id, NULL, thread_main, &t[r]);
        t[r].started = ok = errno == 0;
        if (!ok)
            cannot(k->result, "cannot start a rank");
    }
    if (!ok)
        shm_end(k->shared, -1, k->result->error);
    for (int r = 0; r < world; r++) {
        if (!t[r].started)
            continue;
        pthread_join(t[r].id, NULL);
        k->left++;
        int status = atomic_load(&k->shared->rank[r].status);
        ended(k, r, (status & 255) << 8);
    }
    free(t);
    return ok;
}

/* ---- Both, and ranks that somebody else started ---- */

static bool catch_signals(struct ranks *k)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, &k->old_mask);
    k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signals >= 0)
        return true;
    pthread_sigmask(SIG_SETMASK, &k->old_mask, NULL);
    return cannot(k->result, "signalfd");
}

static bool run_here(struct ranks *k)
{
    k->shared = shm_create(k->o->world, k->o->memory, k->o->threads, k->o->world <= k->n_core,
                           k->result->error);
    if (k->shared == NULL)
        return false;
    bool ok = catch_signals(k);
    if (ok) {
        ok = k->o->threads ? run_threads(k) : run_processes(k);
        close(k->signals);
        pthread_sigmask(SIG_SETMASK, &k->old_mask, NULL);
    }
    if (ok && atomic_load(&k->shared->ended) == 2) {
        snprintf(k->result->error, COMM_ERROR_BYTES, "%s", k->shared->reason);
        if (k->shared->ended_by >= 0)
            k->result->first = k->shared->ended_by;
        ok = false;
    }
    shm_destroy(k->shared);
    return ok;
}

static bool run_elsewhere(struct ranks *k)
{
    struct comm_job job = job_of(k, 0);
    struct launch_rank *r = &k->result->rank[0];
    r->status = k->fn(k->arg, &job, r->error);
    if (r->status == 0)
        return true;
    k->result->first = 0;
    snprintf(k->result->error, COMM_ERROR_BYTES, "%s", r->error);
    return false;
}

bool launch(const struct launch_options *o, launch_fn fn, void *arg, struct launch_result *result)
{
    struct ranks k = {.o = o, .fn = fn, .arg = arg, .result = result};
    bool here = !o->transport->by_mpirun;
    *result = (struct launch_result){.first = -1};
    if (here && o->world <= 0) {
        snprintf(result->error, COMM_ERROR_BYTES, "there must be at least one rank");
        return false;
    }
    result->n = here ? o->world : 1;
    result->rank = calloc((size_t)result->n, sizeof(*result->rank));
    if (result->rank == NULL) {
        result->n = 0;
        return cannot(result, "ranks");
    }
    for (int r = 0; r < result->n; r++)
        result->rank[r].status = -1;
    if (sched_getaffinity(0, sizeof(k.cores), &k.cores) != 0) {
        CPU_ZERO(&k.cores);
        CPU_SET(0, &k.cores);
    }
    k.n_core = CPU_COUNT(&k.cores);
    return here ? run_here(&k) : run_elsewhere(&k);
}

void launch_free(struct launch_result *result)
{
    free(result->rank);
    result->rank = NULL;
    result->n = 0;
}
