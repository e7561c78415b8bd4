#include "cli/progress.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A signal handler reads these each second; it calls only what POSIX allows in a handler. */
static const char *volatile what;
static const char *volatile stage;
static volatile sig_atomic_t shown, running;
static struct timespec start;

static size_t append(char *to, size_t at, size_t size, const char *text)
{
    while (*text != '\0' && at < size)
        to[at++] = *text++;
    return at;
}

static void tick(int ignored)
{
    char line[160] = "\r\033[K", digits[24];
    size_t at = 4, n = sizeof(digits) - 1;
    struct timespec now;
    const char *doing = stage;

    (void)ignored;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long seconds = now.tv_sec - start.tv_sec - (now.tv_nsec < start.tv_nsec);
    digits[n] = '\0';
    do
        digits[--n] = (char)('0' + seconds % 10);
    while ((seconds /= 10) > 0);
    at = append(line, at, 70, what);
    at = append(line, at, 70, ": ");
    at = append(line, at, 70, doing ? doing : "working");
    at = append(line, at, sizeof(line), ", ");
    at = append(line, at, sizeof(line), digits + n);
    at = append(line, at, sizeof(line), " s");
    shown = write(STDERR_FILENO, line, at) > 0;
}

static void set_timer(long seconds)
{
    struct itimerval t = {{seconds, 0}, {seconds, 0}};

    setitimer(ITIMER_REAL, &t, NULL);
}

void progress_begin(const char *name)
{
    struct sigaction act = {.sa_handler = tick, .sa_flags = SA_RESTART};

    if (running || !isatty(STDERR_FILENO))
        return;
    what = name;
    stage = NULL;
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

void progress_end(void)
{
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
