#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_THREADS = 64 };

struct work {
    void (*fn)(void *arg);
    void **arg;
    uint32_t n;
    atomic_uint next;
};

uint32_t threads_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}

static void *take(void *arg)
{
    struct work *w = arg;

    for (unsigned i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        w->fn(w->arg[i]);
    return NULL;
}

void threads_run(void (*fn)(void *arg), void **arg, uint32_t n, uint32_t most)
{
    struct work w = {.fn = fn, .arg = arg, .n = n};
    pthread_t other[MOST_THREADS];
    uint32_t n_other = 0;

    if (most == 0)
        most = threads_cores();
    if (most > n)
        most = n;
    if (most > MOST_THREADS)
        most = MOST_THREADS;
    atomic_init(&w.next, 0);
    while (n_other + 1 < most && pthread_create(&other[n_other], NULL, take, &w) == 0)
        n_other++;
    take(&w);
    while (n_other > 0)
        pthread_join(other[--n_other], NULL);
}
