/* tuck optimize --verify: the graph as it was and as it is, on real ranks. A result may be right on
 * the rank it was made for alone (gathers in place begin in that rank's part), so each rank gets
 * its own where that can be done: the graph as it was, and the same decision applied to it. */
#include <stdlib.h>

#include "cli/optimizing.h"
#include "cli/progress.h"

/* Graphs of all ranks, before and after. */
struct sides {
    tuck_graph **before, **after;
    size_t n;
};

static void free_sides(struct sides *x)
{
    for (size_t i = 0; i < x->n; i++) {
        tuck_graph_free(x->before != NULL ? x->before[i] : NULL);
        tuck_graph_free(x->after != NULL ? x->after[i] : NULL);
    }
    free((void *)x->before);
    free((void *)x->after);
    *x = (struct sides){NULL, NULL, 0};
}

/* Has every group all ranks? Other groups are different ones on other ranks. */
static bool all_in_all(const tuck_graph *g, int64_t ranks)
{
    for (size_t i = 0; i < tuck_graph_group_count(g); i++)
        if (tuck_graph_group_size(g, i) != ranks)
            return false;
    return tuck_graph_rank(g) >= 0;
}

static tuck_status make_rank(const struct optimize *o, const tuck_decision *made,
                             const tuck_graph *before, int64_t rank, tuck_graph *out[2],
                             tuck_diags *diags)
{
    tuck_run_options run;
    tuck_machine machine;
    tuck_status st = TUCK_OK;

    model_public(&o->model, &o->in, &machine);
    machine.bandwidth = o->bandwidth;
    tuck_run_options_init(&run);
    run.machine = &machine;
    run.judge = TUCK_JUDGE_NOTHING;
    run.order = o->model.keep_order ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE;
    for (int k = 0; k < 2 && st == TUCK_OK; k++) {
        st = tuck_graph_copy(before, &out[k]);
        if (st == TUCK_OK)
            st = tuck_graph_set_rank(out[k], rank, diags);
    }
    return st == TUCK_OK ? tuck_decision_apply(made, out[1], &run, diags, NULL) : st;
}

/* False: there is one graph for all ranks. */
static bool make_sides(const struct optimize *o, const tuck_graph *before, struct sides *x)
{
    const tuck_decision *made = o->given != NULL ? o->given : o->made;
    size_t n = (size_t)o->verify;
    tuck_diags *diags = NULL; /* what goes wrong here is no error */

    if (made == NULL || n < 2 || !all_in_all(before, o->verify))
        return false;
    *x = (struct sides){calloc(n, sizeof(*x->before)), calloc(n, sizeof(*x->after)), n};
    diags = tuck_diags_new(NULL);
    bool ok = x->before != NULL && x->after != NULL && diags != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        tuck_graph *g[2] = {NULL, NULL};
        ok = make_rank(o, made, before, (int64_t)i, g, diags) == TUCK_OK;
        x->before[i] = g[0];
        x->after[i] = g[1];
    }
    tuck_diags_free(diags);
    if (!ok)
        free_sides(x);
    return ok;
}

/* Runs the graph as it was and as it is on real ranks. What differs is printed with the report. */
int optimize_verify(struct optimize *o, size_t i, tuck_graph *before)
{
    tuck_graph *after = tuck_doc_graph(o->in.doc, i);
    tuck_verification *v = NULL;
    tuck_print_options how;
    tuck_exec_options x;
    struct sides sides = {NULL, NULL, 0};

    tuck_exec_options_init(&x);
    x.ranks = o->verify;
    x.steps = 1;
    x.warmup = 0;
    x.hints = o->in.hints;
    x.n_hints = o->in.n_hint;
    progress_stage("running before and after");
    bool each = make_sides(o, before, &sides);
    int code = refused_or(tuck_ranks_verify(each ? sides.before : &before,
                                            each ? sides.after : &after, each ? sides.n : 1, &x,
                                            o->in.diags, &v));
    print_diags(o->in.diags);
    if (code == EXIT_FINE && tuck_verification_speaks(v)) {
        tuck_print_options_init(&how);
        how.color = out_color(stderr) ? TUCK_COLORED : TUCK_PLAIN;
        progress_clear();
        code = exit_code_of(tuck_verification_print(v, &how, to_file, stderr));
    }
    if (code == EXIT_FINE && !tuck_verification_within(v))
        code = EXIT_FOUND;
    tuck_verification_free(v);
    free_sides(&sides);
    if (o->decision == NULL) {
        tuck_decision_free(o->made);
        o->made = NULL;
    }
    return code;
}
