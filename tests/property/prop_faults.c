/* What happens when ranks die, stop, are late or do something else, at every call of a small
 * program, and that nothing is left behind. Processes of this machine; started by mpirun
 * (tests/comm/mpi_faults.sh) the same program is one rank of an MPI job with one fault. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/comm/launch.h"
#include "support/support.h"

#ifdef TUCK_STRESS /* nothing of it is more likely there */
enum { RUNS = 5 };
#else
enum { RUNS = 10 };
#endif
enum { CALLS = 6, COUNT = 3000 };
enum fault { NONE, KILL, STOP, LATE, OTHER, LEAVE, FAULTS };
static const char *const fault_name[] = {"none", "kill", "stop", "late", "other", "leave"};

struct plan {
    enum fault fault;
    int who, when;
    double timeout_s;
    double late_s; /* much more than the time-out: others may be late too, on a busy machine */
};

static const struct {
    uint8_t kind;
    const char *label;
} step[CALLS] = {
    {COMM_ALL_GATHER, "weights"}, {COMM_ALL_REDUCE, "grad_0"}, {COMM_REDUCE_SCATTER, "grad_1"},
    {COMM_ALL_TO_ALL, "tokens"},  {COMM_BROADCAST, "seed"},    {COMM_BARRIER, "end"},
};

static void sleep_s(double s)
{
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* True: this rank leaves the program. */
static bool do_fault(const struct plan *p, int rank, int at, int64_t *count)
{
    if (rank != p->who || at != p->when)
        return false;
    switch (p->fault) {
    case KILL: raise(SIGKILL); break;
    case STOP: raise(SIGSTOP); break;
    case LATE: sleep_s(p->late_s); break;
    case OTHER: *count = COUNT - 1; break;
    case LEAVE: return true;
    default: break;
    }
    return false;
}

static int rank_main(void *arg, const struct comm_job *job, char *error)
{
    const struct plan *p = arg;
    static float in[COUNT * 9], out[COUNT * 9];
    struct comm *c = comm_open(job, error);
    if (c == NULL)
        return 1;
    for (int i = 0; i < CALLS; i++) {
        int64_t count = COUNT;
        if (do_fault(p, c->rank, i, &count)) {
            comm_close(c);
            return 0;
        }
        struct comm_part part = {.in = in, .out = out, .count = count, .dtype = DTYPE_F32};
        struct comm_call call = {.kind = step[i].kind,
                                 .n_part = step[i].kind != COMM_BARRIER,
                                 .part = &part,
                                 .label = step[i].label};
        comm_req req;
        if (step[i].kind == COMM_BARRIER && count != COUNT) /* another call instead */
            call.kind = COMM_ALL_REDUCE, call.n_part = 1;
        if (!comm_start(c, &call, &req) || !comm_wait(c, req)) {
            snprintf(error, COMM_ERROR_BYTES, "%s", comm_error(c));
            comm_close(c);
            return 1;
        }
    }
    comm_close(c);
    return 0;
}

/* ---- What must be said, and what must not be left ---- */

static bool names(const char *text, int rank)
{
    char word[32];
    snprintf(word, sizeof(word), "rank %d", rank);
    return strstr(text, word) != NULL;
}

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (d == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.' && strncmp(e->d_name, "sem.", 4) != 0;
    closedir(d);
    return n;
}

static int own_files(void)
{
    return count_entries("/proc/self/fd");
}

static void check_end(const struct plan *p, int world, bool ok, const struct launch_result *r,
                      double took)
{
    bool fails = p->fault != NONE && !(p->fault == LATE && p->late_s < p->timeout_s);
    if (p->fault == LEAVE && p->when >= CALLS)
        fails = false;
    if (ok == fails)
        fail_msg("%s of rank %d at call %d: %s", fault_name[p->fault], p->who, p->when,
                 ok ? "nobody noticed" : r->error);
    if (!fails)
        return;
    if (!names(r->error, p->who))
        fail_msg("%s of rank %d at call %d is said to be: %s", fault_name[p->fault], p->who,
                 p->when, r->error);
    /* A rank that is killed dies between two calls: either may be named. */
    if (p->fault != KILL && strstr(r->error, step[p->when].label) == NULL)
        fail_msg("'%s' is not named: %s", step[p->when].label, r->error);
    for (int i = 0; i < world; i++)
        if (i != p->who && r->rank[i].error[0] == '\0' && r->rank[i].status != 0)
            fail_msg("rank %d said nothing", i);
    if (took > p->timeout_s + 12)
        fail_msg("%s took %.1f s", fault_name[p->fault], took);
}

static void run_fault(const struct plan *p, int world)
{
    struct launch_options o = {
        .transport = &transport_shm, .world = world, .pin = true, .timeout_s = p->timeout_s};
    struct launch_result result;
    int files = own_files();
    double start = now_s();
    bool ok = launch(&o, rank_main, (void *)(uintptr_t)p, &result);
    check_end(p, world, ok, &result, now_s() - start);
    launch_free(&result);
    assert_int_equal(own_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void test_faults(void **state)
{
    (void)state;
    int runs = getenv("TUCK_SOAK") != NULL ? 200 : RUNS;
    struct rng rng = {seed_of("faults")};
    for (int i = 0; i < runs; i++) {
        int world = 2 + (int)rng_below(&rng, 4);
        struct plan p = {.fault = (enum fault)(1 + i % (FAULTS - 1)),
                         .who = (int)rng_below(&rng, (uint32_t)world),
                         .when = (i % (FAULTS - 1) + i / (FAULTS - 1)) % CALLS,
                         .timeout_s = 2,
                         .late_s = 30};
        run_fault(&p, world);
    }
}

static void test_late_but_in_time(void **state)
{
    (void)state;
    struct plan p = {.fault = LATE, .who = 1, .when = 2, .timeout_s = 60, .late_s = 0.2};
    run_fault(&p, 3);
    p.fault = NONE;
    run_fault(&p, 1);
}

/* ---- The launcher is killed, or gets Ctrl-C ---- */

static bool alive(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[2] != 'Z' && end[2] != 'X';
}

struct told {
    int fd;
};

static int tell_and_sleep(void *arg, const struct comm_job *job, char *error)
{
    struct told *t = arg;
    struct comm *c = comm_open(job, error);
    pid_t pid = getpid();
    char mine = 0, all[16];
    if (c == NULL || write(t->fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        return 1;
    for (int i = 0; i < 600; i++) { /* until the job is ended */
        sleep_s(0.05);
        if (!comm_exchange(c, &mine, 1, all)) {
            snprintf(error, COMM_ERROR_BYTES, "%s", comm_error(c));
            comm_close(c);
            return 1;
        }
    }
    comm_close(c);
    return 0;
}

/* A launcher in a process of its own; ends with the status 42 if it was interrupted in order. */
static pid_t start_launcher(int fd)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct told t = {.fd = fd};
    struct launch_options o = {.transport = &transport_shm, .world = 3, .timeout_s = 30};
    struct launch_result result;
    bool ok = launch(&o, tell_and_sleep, &t, &result);
    _exit(ok ? 1 : result.interrupted == SIGINT && strstr(result.error, "interrupted") ? 42 : 2);
}

static void end_launcher(int sig, int *how)
{
    int pipes[2];
    pid_t rank[3];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = start_launcher(pipes[1]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read(pipes[0], &rank[i], sizeof(*rank)), sizeof(*rank));
    kill(pid, sig);
    assert_int_equal(waitpid(pid, how, 0), pid);
    double until = now_s() + 10;
    for (int i = 0; i < 3; i++)
        while (alive(rank[i])) {
            if (now_s() > until)
                fail_msg("rank %d outlives its launcher", i);
            sleep_s(0.01);
        }
    close(pipes[0]);
    close(pipes[1]);
}

static void test_launcher_dies(void **state)
{
    (void)state;
    int how, before = count_entries("/dev/shm");
    end_launcher(SIGKILL, &how);
    assert_true(WIFSIGNALED(how));
    end_launcher(SIGINT, &how);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 42);
    assert_true(count_entries("/dev/shm") <= before || before > 0);
}

/* ---- Plans that differ ---- */

static int compare_plans(void *arg, const struct comm_job *job, char *error)
{
    struct comm_planned row[40];
    struct comm *c = comm_open(job, error);
    int differ = *(int *)arg;
    if (c == NULL)
        return 1;
    static char what[40][64];
    for (int i = 0; i < 40; i++) {
        snprintf(what[i], sizeof(what[i]), "all_reduce sum float32 %d 'g%d'",
                 c->rank == 2 && i == differ ? 7 : 8, i);
        row[i] = (struct comm_planned){.group = 0, .what = what[i]};
    }
    bool ok = comm_compare(c, row, c->rank == 1 && differ == 50 ? 39 : 40);
    if (!ok)
        snprintf(error, COMM_ERROR_BYTES, "%s", comm_error(c));
    comm_close(c);
    return !ok;
}

static void test_plans(void **state)
{
    (void)state;
    static const int differ[] = {-1, 0, 17, 39, 50};
    struct launch_options o = {.transport = &transport_shm, .world = 3, .timeout_s = 60};
    for (size_t i = 0; i < sizeof(differ) / sizeof(*differ); i++) {
        struct launch_result result;
        int arg = differ[i];
        bool ok = launch(&o, compare_plans, &arg, &result);
        assert_int_equal(ok, arg < 0);
        if (!ok) {
            char call[64];
            snprintf(call, sizeof(call), "call %d of group 0", arg == 50 ? 40 : arg + 1);
            if (strstr(result.error, call) == NULL || !names(result.error, arg == 50 ? 1 : 2))
                fail_msg("%s", result.error);
        }
        launch_free(&result);
    }
}

/* ---- One rank of an MPI job ---- */

static int under_mpi(char **arg)
{
    char error[COMM_ERROR_BYTES];
    struct plan p = {.timeout_s = 5, .late_s = 50}; /* on a busy machine a message may take long */
    for (int f = 0; f < FAULTS; f++)
        if (strcmp(arg[1], fault_name[f]) == 0)
            p.fault = (enum fault)f;
    p.who = atoi(arg[2]);
    p.when = atoi(arg[3]);
    struct launch_options o = {.transport = transport_find("mpi", error), .timeout_s = p.timeout_s};
    struct launch_result result;
    if (o.transport == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    bool ok = launch(&o, rank_main, &p, &result);
    if (!ok)
        fprintf(stderr, "said: %s\n", result.error);
    launch_free(&result);
    return !ok;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_late_but_in_time),
        cmocka_unit_test(test_launcher_dies),
        cmocka_unit_test(test_plans),
    };
    if (argc == 4)
        return under_mpi(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
