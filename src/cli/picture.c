/* Pages and traces of simulated steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture.h"
#include "study/explain.h"
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

/* ---- graphs ---- */

struct drawn { /* one graph of the file */
    struct made made[2];
    struct report_run run[2];
    char *label[2];
    struct report_graph graph;
    char *title, *where;
    struct drawn *next;
};

static void forget_graph(struct drawn *d)
{
    for (int i = 0; i < 2; i++) {
        forget(&d->made[i]);
        free(d->label[i]);
    }
    free(d->title);
    free(d->where);
    free(d);
}

/* "graph 1: AFTER POST GRAD, rank 0"; "" where there is no other. */
static char *title_of(const struct input *in, size_t i)
{
    const char *title = tuck_doc_title(in->doc, i);
    int rank = tuck_doc_rank(in->doc, i);
    char *out = NULL, of[32] = "";

    if (tuck_doc_count(in->doc) == 1)
        return strdup("");
    if (rank >= 0)
        snprintf(of, sizeof(of), ", rank %d", rank);
    if (asprintf(&out, "graph %zu: %s%s", i,
                 *title ? title : tuck_graph_name(tuck_doc_graph(in->doc, i)), of) < 0)
        return NULL;
    return out;
}

/* In a trace a run is a process: its name says of which graph it is. */
static char *label_of(const char *title, const char *label)
{
    char *out = NULL;

    if (asprintf(&out, "%s%s%s", title, *title ? ", " : "", label) < 0)
        return NULL;
    return out;
}

int picture_add(struct picture *p, const struct input *in, size_t i, tuck_graph *const *g,
                const char *const *label, uint32_t n, const struct evaluate_options *o)
{
    struct drawn *d = calloc(1, sizeof(*d));
    int code = EXIT_FINE;

    if (d == NULL)
        return exit_code_of(TUCK_ENOMEM);
    if (p->last != NULL)
        p->last->next = d;
    else
        p->first = d;
    p->last = d;
    d->title = title_of(in, i);
    d->where = strdup(tuck_cluster_name(o->machine->cluster));
    for (uint32_t k = 0; k < n && code == EXIT_FINE; k++) {
        d->label[k] = d->title ? label_of(d->title, label[k]) : NULL;
        if (d->label[k] == NULL || d->where == NULL)
            return exit_code_of(TUCK_ENOMEM);
        code = describe(&d->made[k], g[k], o, d->label[k], in->diags);
        d->run[k] = d->made[k].run;
    }
    d->graph = (struct report_graph){d->title, d->where, d->run, n};
    return code;
}

/* ---- files ---- */

struct printed {
    const char *title;
    const struct report_graph *graph;
    uint32_t n;
};

static void print_html(struct buf *b, const void *ctx)
{
    const struct printed *x = ctx;

    report_html(x->title, x->graph, x->n, b);
}

static void print_trace(struct buf *b, const void *ctx)
{
    const struct printed *x = ctx;

    report_trace(x->graph, x->n, b);
}

int picture_end(struct picture *p, const char *title, int code)
{
    struct report_graph *all = NULL;
    uint32_t n = 0;

    for (const struct drawn *d = p->first; d != NULL; d = d->next)
        n++;
    if (code == EXIT_FINE && n > 0) {
        all = calloc(n, sizeof(*all));
        if (all == NULL)
            code = exit_code_of(TUCK_ENOMEM);
    }
    n = 0;
    for (struct drawn *d = p->first; all != NULL && d != NULL; d = d->next)
        all[n++] = d->graph;
    struct printed x = {title, all, n};
    if (code == EXIT_FINE && all != NULL && p->html != NULL)
        code = output_print(p->html, print_html, &x);
    if (code == EXIT_FINE && all != NULL && p->trace != NULL)
        code = output_print(p->trace, print_trace, &x);
    while (p->first != NULL) {
        struct drawn *d = p->first;
        p->first = d->next;
        forget_graph(d);
    }
    p->last = NULL;
    free(all);
    return code;
}
