#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A signal handler reads these each second; it calls only what POSIX allows in a handler. */
static const char *volatile what;
static const char *volatile stage;
static volatile sig_atomic_t shown, running;
static struct timespec start;
static bool asked; /* lines, also where there is no terminal */

/* The best so far, as text: one of two, so that a signal never meets a half one. */
static char best[2][80];
static const char *volatile found;

/* Set by the first SIGINT. */
static volatile sig_atomic_t interrupted, stoppable;
static struct sigaction usual;

static size_t append(char *to, size_t at, size_t size, const char *text)
{
    while (*text != '\0' && at < size)
        to[at++] = *text++;
    return at;
}

static void tick(int ignored)
{
    char line[240] = "\r\033[K", digits[24];
    size_t at = asked ? 0 : 4, n = sizeof(digits) - 1;
    struct timespec now;
    const char *doing = stage, *so_far = found;

    (void)ignored;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long seconds = now.tv_sec - start.tv_sec - (now.tv_nsec < start.tv_nsec);
    digits[n] = '\0';
    do
        digits[--n] = (char)('0' + seconds % 10);
    while ((seconds /= 10) > 0);
    at = append(line, at, 70, what);
    at = append(line, at, 70, ": ");
    at = append(line, at, 150, so_far ? so_far : "");
    at = append(line, at, 220, doing ? doing : "working");
    at = append(line, at, sizeof(line), ", ");
    at = append(line, at, sizeof(line), digits + n);
    at = append(line, at, sizeof(line), asked ? " s\n" : " s");
    shown = write(STDERR_FILENO, line, at) > 0 && !asked;
}

static void set_timer(long seconds)
{
    struct itimerval t = {{seconds, 0}, {seconds, 0}};

    setitimer(ITIMER_REAL, &t, NULL);
}

void progress_ask(void)
{
    asked = true;
}

void progress_begin(const char *name)
{
    struct sigaction act = {.sa_handler = tick, .sa_flags = SA_RESTART};

    if (running || (!asked && !isatty(STDERR_FILENO)))
        return;
    what = name;
    stage = NULL;
    found = NULL;
    clock_gettime(CLOCK_MONOTONIC, &start);
    sigemptyset(&act.sa_mask);
    if (sigaction(SIGALRM, &act, NULL) == 0) {
        running = 1;
        set_timer(1);
    }
}

void progress_stage(const char *name)
{
    stage = name;
}

void progress_clear(void)
{
    if (shown) {
        shown = 0;
        if (write(STDERR_FILENO, "\r\033[K", 4) < 0)
            return; /* not a terminal */
    }
}

/* ---- stopping a search ---- */

static void interrupt(int sig)
{
    if (interrupted) { /* the second time */
        sigaction(sig, &usual, NULL);
        raise(sig);
    }
    interrupted = 1;
}

void progress_stoppable(void)
{
    struct sigaction act = {.sa_handler = interrupt, .sa_flags = SA_RESTART};

    interrupted = 0;
    if (sigaction(SIGINT, NULL, &usual) != 0 || usual.sa_handler == SIG_IGN)
        return;
    sigemptyset(&act.sa_mask);
    stoppable = sigaction(SIGINT, &act, NULL) == 0;
}

bool progress_search(void *ctx, const tuck_progress *p)
{
    char *text = best[found == best[0]];
    double gap = p->bound_ps > 0 ? 100 * ((double)p->step_ps / (double)p->bound_ps - 1) : 0;

    (void)ctx;
    if (p->step_ps >= 0)
        snprintf(text, sizeof(best[0]), "best %.3f ms, %.1f %% above the bound, %.0f %% done, ",
                 (double)p->step_ps / 1e9, gap, 100 * p->done);
    else
        snprintf(text, sizeof(best[0]), "nothing fits yet, %.0f %% done, ", 100 * p->done);
    found = text;
    return !interrupted;
}

void progress_end(void)
{
    if (stoppable)
        sigaction(SIGINT, &usual, NULL);
    stoppable = 0;
    if (!running)
        return;
    set_timer(0);
    running = 0;
    progress_clear();
}

bool progress_observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    (void)ctx;
    (void)step;
    (void)g;
    progress_stage(after ? "simulating the result" : pass);
    return true;
}
