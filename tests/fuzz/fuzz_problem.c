/* Any bytes as a problem file: what can be read is written and read again, and is the same; passes
 * find orders for it, and ours keep their guarantees. The first byte chooses pass and options and
 * is not part of the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/problems.h"

static const struct pass *const passes[] = {
    &pass_raise_comms,
    &pass_sink_waits,
    &pass_reorder_compute_for_overlap,
    &pass_list_overlap,
    &pass_improve_order,
    &pass_reorder_communication_preserving_peak_memory,
    &pass_sink_waits_iterative,
    &pass_simple_overlap,
    &pass_enforce_comm_ordering_for_fsdp,
    &pass_reorder_for_peak_memory,
};

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

struct text_args {
    const struct problem *p;
    struct buf out;
};

static void do_write(void *ctx)
{
    struct text_args *x = ctx;

    problem_write(x->p, NULL, &x->out);
}

static void text_of(struct problem *p, struct text_args *x)
{
    x->p = p;
    buf_init(&x->out, &p->mem);
    if (!mem_guard(&p->mem, do_write, x))
        exit(0);
}

static void round_trip(struct problem *p)
{
    struct text_args a, b;
    struct problem *q;

    text_of(p, &a);
    if (problem_read_text(a.out.at, a.out.len, "again", NULL, NULL, &q) != TUCK_OK)
        fail("what was written cannot be read");
    text_of(q, &b);
    if (a.out.len != b.out.len || memcmp(a.out.at, b.out.at, a.out.len) != 0)
        fail("what was written and read is another");
    buf_destroy(&a.out);
    buf_destroy(&b.out);
    problem_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    struct schedule_options o;
    struct schedule s;
    struct problem *p;

    if (size > 1 &&
        problem_read_text((const char *)data + 1, size - 1, "f", NULL, d, &p) == TUCK_OK) {
        bool torch = (data[0] & 8) != 0;

        round_trip(p);
        schedule_defaults(&o, torch);
        o.evaluations = 1000;
        o.reorder_iterative_use_runtime_estimations ^= (data[0] & 16) != 0;
        o.sink_waits_iterative_swap_with_collectives ^= (data[0] & 32) != 0;
        o.size_threshold_for_succ_based_strategy = data[0] & 64 ? 100 : 0;
        const struct pass *pass = passes[(data[0] & 7) + (data[0] >> 7)];
        run_pass(&s, p, &o, pass);
        enum order_rule rule = torch ? ORDER_OF_OPS : order_rule_of(pass);
        const char *why = p->n_op < 2000 ? order_fault(p, s.order, rule) : NULL;
        if (why != NULL)
            fail(why);
        if (!torch && s.report.at[0].peak_after > s.report.at[0].peak_before)
            fail("more memory than before");
        schedule_end(&s);
        problem_free(p);
    } else if (size > 1 && tuck_diags_count(d) == 0) {
        fail("refused without a word");
    }
    tuck_diags_free(d);
    return 0;
}
