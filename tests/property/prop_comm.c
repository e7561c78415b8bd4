/* Every kind of collective, dtype and reduction against a serial reference, to the bit, on 1 to 9
 * ranks: processes of this machine, or threads (TUCK_COMM_THREADS, for V=tsan). Started by mpirun
 * the same program is one rank of the MPI transport (tests/comm/mpi.sh). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/comm/launch.h"
#include "support/comm_case.h"
#include "support/support.h"

enum { HEAP = 24 << 20, MOST_RANKS = 9, FLIGHT = 12 };
enum { LONG_S = 7200 }; /* ranks wait for those that have more groups; the caller has a limit */

struct plan {
    uint64_t seed;
    uint64_t cases; /* of each group */
    uint64_t flights;
    uint64_t part, parts; /* cases whose number is `part` modulo `parts` */
};

static int say(struct comm *c, char *error, const struct comm_case *k, const char *what)
{
    char text[256];
    case_text(k, text, sizeof(text));
    snprintf(error, COMM_ERROR_BYTES, "%s: %s", text, what);
    comm_abort(c, error);
    comm_close(c);
    return 1;
}

static bool valid(const struct comm_case *k)
{
    bool reduces = k->kind == COMM_ALL_REDUCE || k->kind == COMM_REDUCE ||
                   k->kind == COMM_REDUCE_SCATTER;
    return reduces ? comm_can_reduce(k->reduce, k->dtype) : k->reduce == 0;
}

/* ---- One call after the other ---- */

/* A call, and small all-reduces again with other data: the second one takes a shorter way. */
static int run_case(struct comm *c, struct comm_case *k, struct case_heap *h, uint64_t *calls,
                    char *error)
{
    int turns = k->kind == COMM_ALL_REDUCE && k->count < 3000 ? 4 : 1;
    for (int turn = 0; turn < turns; turn++, k->seed++) {
        struct case_run run;
        /* Two halves in turns, so that operands stay until the next call is done. */
        h->used = ++*calls % 2 != 0 ? HEAP / 2 : 0;
        if (!case_start(c, k, h, &run) || !comm_wait(c, run.req))
            return say(c, error, k, comm_error(c));
        const char *wrong = case_check(c, k, &run);
        if (wrong != NULL)
            return say(c, error, k, wrong);
    }
    return 0;
}

static int run_cases(struct comm *c, int32_t group, struct case_heap *h, const struct plan *plan,
                     char *error)
{
    const struct comm_group *g = &c->group[group];
    uint64_t all = 0, done = 0, calls = 0;
    struct comm_case k;
    while (case_number(all, group, g->n, &k))
        all++;
    struct rng rng = {plan->seed ^ (uint64_t)group};
    for (uint64_t i = 0; done < plan->cases && i < all; i++) {
        uint64_t at = plan->cases < all ? rng_next(&rng) % all : i;
        case_number(at, group, g->n, &k);
        if (at % plan->parts != plan->part)
            continue;
        if (!valid(&k) || (k.count > 9000 && k.dtype != DTYPE_F32 && at % 8 != 0))
            continue;
        done++;
        if (g->me < 0)
            continue;
        k.stays = at % 3 == 0;
        int status = run_case(c, &k, h, &calls, error);
        if (status != 0)
            return status;
    }
    /* The next group uses the same memory. */
    char mine = 0, from[MOST_RANKS];
    return comm_exchange(c, &mine, 1, from) ? 0 : say(c, error, &k, comm_error(c));
}

/* ---- Several at once, in several groups, with sends and receives, waited for in any order ---- */

struct letter {
    struct comm_part part;
    comm_req req;
    int64_t seed;
};

static uint8_t letter_byte(int64_t seed, int64_t i)
{
    return (uint8_t)((uint64_t)(seed * 31 + i) * 2654435761u >> 24);
}

/* Each rank sends one message to each, with tags that come in another order at the receiver. */
static bool post_letters(struct comm *c, uint64_t seed, struct letter *box, uint32_t *n)
{
    *n = 0;
    for (int way = 0; way < 2; way++)
        for (int32_t peer = 0; peer < c->world; peer++)
            for (int64_t t = 0; t < 3; t++) {
                bool receive = (way ^ c->rank) & 1;
                int64_t tag = receive ? 2 - t : t;
                int32_t from = receive ? peer : c->rank, to = receive ? c->rank : peer;
                struct letter *l = &box[(*n)++];
                l->seed = (int64_t)(seed % 1000) + from * 100 + to * 10 + tag;
                l->part = (struct comm_part){.count = (l->seed * 7919) % 200000,
                                             .dtype = DTYPE_U8,
                                             .receive = receive,
                                             .peer = peer,
                                             .tag = tag};
                uint8_t *data = malloc((size_t)l->part.count + 1);
                if (data == NULL)
                    abort();
                for (int64_t i = 0; i < l->part.count; i++)
                    data[i] = receive ? 0 : letter_byte(l->seed, i);
                l->part.in = l->part.out = data;
                struct comm_call call = {
                    .kind = COMM_P2P, .n_part = 1, .part = &l->part, .label = "letter"};
                if (!comm_start(c, &call, &l->req))
                    return false;
            }
    return true;
}

static const char *read_letter(struct letter *l)
{
    const uint8_t *data = l->part.out;
    const char *wrong = NULL;
    for (int64_t i = 0; i < l->part.count; i++)
        if (data[i] != letter_byte(l->seed, i))
            wrong = "a message arrived wrong";
    free(l->part.out);
    return wrong;
}

static int fly(struct comm *c, uint64_t seed, struct case_heap *h, char *error)
{
    struct comm_case k[FLIGHT];
    struct case_run run[FLIGHT];
    struct letter box[2 * MOST_RANKS * 3];
    uint32_t order[FLIGHT], n = 0, letters;
    struct rng rng = {seed}, own = {seed ^ ((uint64_t)c->rank << 32)};
    h->used = 0;
    for (uint32_t i = 0; i < FLIGHT; i++) {
        int32_t group = (int32_t)rng_below(&rng, (uint32_t)c->n_group);
        do
            case_number(rng_next(&rng) % 1000000, group, c->group[group].n, &k[i]);
        while (!valid(&k[i]) || k[i].count > 9000);
        if (c->group[group].me < 0)
            continue;
        if (!case_start(c, &k[i], h, &run[i]))
            return say(c, error, &k[i], comm_error(c));
        order[n++] = i;
        if (rng_below(&own, 3) == 0 && !comm_progress(c))
            return say(c, error, &k[i], comm_error(c));
    }
    if (!post_letters(c, seed, box, &letters))
        return say(c, error, &k[0], comm_error(c));
    for (uint32_t i = n; i > 1; i--) {
        uint32_t at = rng_below(&own, i), swap = order[at];
        order[at] = order[i - 1];
        order[i - 1] = swap;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < n || next < letters; i++) {
        if (i < n) {
            if (!comm_wait(c, run[order[i]].req))
                return say(c, error, &k[order[i]], comm_error(c));
            const char *wrong = case_check(c, &k[order[i]], &run[order[i]]);
            if (wrong != NULL)
                return say(c, error, &k[order[i]], wrong);
        }
        if (next < letters) {
            struct letter *l = &box[(next++ * 11 + (uint32_t)c->rank) % letters];
            enum comm_state s = comm_test(c, l->req);
            if (s == COMM_FAILED || (s == COMM_PENDING && !comm_wait(c, l->req)))
                return say(c, error, &k[0], comm_error(c));
            const char *wrong = read_letter(l);
            if (wrong != NULL)
                return say(c, error, &k[0], wrong);
        }
    }
    return 0;
}

/* ---- One rank ---- */

static bool make_groups(struct comm *c)
{
    int32_t even[MOST_RANKS], back[MOST_RANKS], n = 0;
    for (int32_t r = 0; r < c->world; r += 2)
        even[n++] = r;
    for (int32_t r = 0; r < c->world; r++)
        back[r] = c->world - 1 - r;
    int32_t last[1] = {c->world - 1};
    return comm_group(c, even, n) >= 0 && comm_group(c, back, c->world) >= 0 &&
           comm_group(c, last, 1) >= 0 && comm_group(c, even, n) == (c->world > 1 ? 1 : 0);
}

static int rank_main(void *arg, const struct comm_job *job, char *error)
{
    const struct plan *plan = arg;
    struct comm *c = comm_open(job, error);
    struct case_heap h;
    int status = 0;
    if (c == NULL)
        return 1;
    if (!make_groups(c) || !case_heap(c, HEAP, &h)) {
        snprintf(error, COMM_ERROR_BYTES, "%s", comm_error(c));
        comm_close(c);
        return 1;
    }
    for (int32_t g = 0; g < c->n_group && status == 0; g++)
        status = run_cases(c, g, &h, plan, error);
    for (uint64_t i = 0; i < plan->flights && status == 0; i++)
        status = fly(c, plan->seed + i * 77, &h, error);
    if (status == 0)
        comm_close(c);
    return status;
}

static void run_on(int world, const struct plan *plan)
{
    struct launch_options o = {.transport = &transport_shm,
                               .world = world,
                               .threads = getenv("TUCK_COMM_THREADS") != NULL,
                               .pin = true,
                               .timeout_s = LONG_S};
    struct launch_result result;
    if (!launch(&o, rank_main, (void *)(uintptr_t)plan, &result))
        fail_msg("%d ranks: %s", world, result.error);
    launch_free(&result);
}

/* TUCK_PART=3/10: a tenth of the cases, so that a long run can be cut. */
static void take_part(struct plan *plan)
{
    const char *said = getenv("TUCK_PART");
    char *end = NULL;

    plan->part = said != NULL ? strtoull(said, &end, 10) : 0;
    plan->parts = said != NULL && *end == '/' ? strtoull(end + 1, NULL, 10) : 1;
    if (plan->parts == 0)
        plan->parts = 1;
}

static void test_all_ranks(void **state)
{
    (void)state;
    bool soak = getenv("TUCK_SOAK") != NULL, threads = getenv("TUCK_COMM_THREADS") != NULL;
    struct plan plan = {.seed = seed_of("comm"),
                        .cases = soak      ? UINT64_MAX
                                 : threads ? 24
                                           : 100,
                        .flights = soak      ? 100
                                   : threads ? 2
                                             : 4};
    const char *only = getenv("TUCK_WORLD"); /* this number of ranks */
    take_part(&plan);
    for (int world = 1; world <= MOST_RANKS; world++)
        if (only == NULL || atoi(only) == world)
            run_on(world, &plan);
}

/* One rank of a job that mpirun started: prints only what is wrong. */
static int under_mpi(void)
{
    const char *n = getenv("TUCK_CASES");
    struct plan plan = {.seed = 7, .cases = n != NULL ? strtoull(n, NULL, 10) : 40, .flights = 3};
    char error[COMM_ERROR_BYTES];
    take_part(&plan);
    struct launch_options o = {.transport = transport_find("mpi", error), .timeout_s = LONG_S};
    struct launch_result result;
    if (o.transport == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    bool ok = launch(&o, rank_main, &plan, &result);
    if (!ok)
        fprintf(stderr, "%s\n", result.error);
    launch_free(&result);
    return !ok;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_ranks)};
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL)
        return under_mpi();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
