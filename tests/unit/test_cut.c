/* Buckets that are cut by the memory at hand: none has more than its share of what is free from its
 * first member to its last, and less memory never makes fewer of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/liveness.h"
#include "study/cut.h"
#include "support/support.h"

enum { MB = 1 << 20 };

struct setup {
    tuck_doc *doc;
    tuck_graph *g;
    tuck_cluster *cluster;
    struct machine machine;
    struct evaluation e;
    struct arena a;
    struct cut_how how;
    uint32_t n_begins, n_several; /* buckets after the first; with several members */
};

static void begin(struct setup *s)
{
    static const char path[] = "tests/graphs/fsdp/llama_regather_bw.txt";
    struct evaluate_options o;

    *s = (struct setup){.doc = NULL};
    assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &s->doc), TUCK_OK);
    s->g = tuck_doc_graph(s->doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(s->g, path, -1, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_infer(s->g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_for_graph(s->g, NULL, NULL, &s->cluster), TUCK_OK);
    machine_init(&s->machine, s->cluster);
    evaluate_defaults(&o, &s->machine);
    assert_int_equal(evaluate_graph(s->g, &o, NULL, &s->e), TUCK_OK);
    arena_init(&s->a, &s->e.mem);
}

static void end(struct setup *s)
{
    arena_destroy(&s->a);
    evaluate_end(&s->e);
    tuck_cluster_free(s->cluster);
    tuck_doc_free(s->doc);
}

struct bucket {
    uint32_t n, first, last; /* members; the places of the first and the last */
    int64_t bytes;
};

static void check_bucket(struct setup *s, const struct bucket *b, const struct live *live)
{
    if (b->n < 2)
        return;
    s->n_several++;
    assert_true(b->bytes <= s->how.most);
    for (uint32_t i = b->first; i <= b->last && s->how.share > 0; i++) {
        int64_t room = s->how.limit - live->post_alloc[i];
        assert_true(room > 0 && (double)b->bytes <= (double)room * s->how.share);
    }
}

/* In this graph each collective is waited for before the next one of its kind is. */
static void do_cut(void *arg)
{
    struct setup *s = arg;
    const struct problem *p = s->e.problem;
    bool *begins = cut_graph(s->g, &s->e, &s->how, &s->a);
    uint32_t *order = arena_array(&s->a, uint32_t, p->n_op);
    struct bucket b = {.n = 0};
    struct live live;

    for (uint32_t i = 0; i < p->n_op; i++)
        order[i] = i;
    live_of(p, order, &s->a, &live);
    s->n_begins = s->n_several = 0;
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++) {
            const struct program_op *o = &s->e.program->op[p->wait[k]];
            uint32_t place = s->how.coll == TUCK_ALL_GATHER ? i : p->wait[k];
            if (o->coll != s->how.coll)
                continue;
            if (begins != NULL && begins[o->node]) {
                check_bucket(s, &b, &live);
                b = (struct bucket){.n = 0};
                s->n_begins++;
            }
            b.first = b.n++ == 0 ? place : b.first;
            b.last = place;
            b.bytes += o->message;
        }
    check_bucket(s, &b, &live);
}

static uint32_t cut(struct setup *s, tuck_coll coll, bool by_time, int64_t limit, double share)
{
    s->how = (struct cut_how){.m = &s->machine,
                              .coll = coll,
                              .by_time = by_time,
                              .most = INT64_C(4096) * MB,
                              .limit = limit,
                              .share = share};
    assert_true(mem_guard(&s->e.mem, do_cut, s));
    return s->n_begins;
}

static void fits_where_it_is(void **unused)
{
    static const tuck_coll kind[] = {TUCK_ALL_GATHER, TUCK_REDUCE_SCATTER};
    struct setup s;

    (void)unused;
    begin(&s);
    for (int k = 0; k < 2; k++) {
        uint32_t free = cut(&s, kind[k], false, s.e.peak, 0);
        uint32_t more = cut(&s, kind[k], false, s.e.peak + s.e.peak / 2, 0.5);
        assert_true(s.n_several > 0);
        uint32_t own = cut(&s, kind[k], false, s.e.peak, 0.5);
        assert_true(s.n_several > 0);
        assert_true(free <= more && more <= own && free < own);
        cut(&s, kind[k], true, s.e.peak, 0.5);
        assert_true(s.n_several > 0);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
