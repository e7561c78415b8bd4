/* Pages and traces of simulated steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture.h"
#include "pipeline/explain.h"
#include "report/report.h"

enum { OPT_HTML = 0x700, OPT_TRACE };

static const struct argp_option options[] = {
    {"html", OPT_HTML, "FILE", 0, "A page to look at: the timeline, memory, every collective", 3},
    {"trace", OPT_TRACE, "FILE", 0, "The timeline for Perfetto or chrome://tracing", 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct picture *p = state->input;

    switch (key) {
    case OPT_HTML: p->html = arg; return 0;
    case OPT_TRACE: p->trace = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp picture_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

bool picture_wanted(const struct picture *p)
{
    return p->html != NULL || p->trace != NULL;
}

/* ---- one run ---- */

struct made {
    struct explanation x;
    struct report_run run;
    const char **limit;
    uint32_t *limit_op;
};

static int describe(struct made *m, tuck_graph *g, const struct evaluate_options *o,
                    const char *label, tuck_diags *diags)
{
    tuck_status st = explain_graph(g, o, NULL, NULL, diags, &m->x);

    print_diags(diags);
    if (st != TUCK_OK)
        return refused_or(st);
    const struct evaluation *e = &m->x.e;
    uint32_t n = e->program->n_op;
    m->limit = calloc(n + 1, sizeof(*m->limit));
    m->limit_op = calloc(n + 1, sizeof(*m->limit_op));
    if (m->limit == NULL || m->limit_op == NULL)
        return exit_code_of(TUCK_ENOMEM);
    memset(m->limit_op, 0xFF, (n + 1) * sizeof(*m->limit_op));
    for (uint32_t i = 0; i < m->x.n; i++) {
        m->limit[m->x.row[i].op] = explain_limit_name(m->x.row[i].limit);
        m->limit_op[m->x.row[i].op] = m->x.row[i].limit_op;
    }
    m->run = (struct report_run){.label = label,
                                 .p = e->program,
                                 .span = e->span,
                                 .time = e->time,
                                 .peak = e->peak,
                                 .bound_ps = e->any.ps,
                                 .bound_says = evaluation_meaning(e),
                                 .assumed = e->assumed,
                                 .n_assumed = e->n_assumed,
                                 .limit = m->limit,
                                 .limit_op = m->limit_op};
    return EXIT_FINE;
}

static void forget(struct made *m)
{
    explain_end(&m->x);
    free(m->limit);
    free(m->limit_op);
}

/* ---- files ---- */

struct printed {
    const struct report_run *run;
    uint32_t n;
    const char *title, *where;
};

static void print_html(struct buf *b, const void *ctx)
{
    const struct printed *x = ctx;

    report_html(x->title, x->where, x->run, x->n, b);
}

static void print_trace(struct buf *b, const void *ctx)
{
    const struct printed *x = ctx;

    report_trace(x->run, x->n, b);
}

int picture_write(const struct picture *p, const char *title, tuck_graph *const *g,
                  const char *const *label, uint32_t n, const struct evaluate_options *o,
                  tuck_diags *diags)
{
    struct made made[2] = {{.limit = NULL}};
    struct report_run run[2];
    int code = EXIT_FINE;
    uint32_t done = 0;

    for (; done < n && code == EXIT_FINE; done++) {
        code = describe(&made[done], g[done], o, label[done], diags);
        run[done] = made[done].run;
    }
    struct printed x = {run, n, title, tuck_cluster_name(o->cluster)};
    if (code == EXIT_FINE && p->html != NULL)
        code = output_print(p->html, print_html, &x);
    if (code == EXIT_FINE && p->trace != NULL)
        code = output_print(p->trace, print_trace, &x);
    for (uint32_t i = 0; i < done; i++)
        forget(&made[i]);
    return code;
}
