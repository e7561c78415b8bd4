/* Pages and traces of simulated steps. */
#include <errno.h>
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
    tuck_status st = explain_graph(g, o, NULL, diags, &m->x);

    print_diags(diags);
    if (st != TUCK_OK)
        return st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
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
                                 .bound_says = bound_meaning(e->any.kind),
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

static bool to_file(void *f, const char *text, size_t len)
{
    return fwrite(text, 1, len, f) == len;
}

struct write_args {
    const struct report_run *run;
    uint32_t n;
    const char *title, *where;
    bool html;
    struct buf b;
};

static void do_write(void *arg)
{
    struct write_args *w = arg;

    if (w->html)
        report_html(w->title, w->where, w->run, w->n, &w->b);
    else
        report_trace(w->run, w->n, &w->b);
    buf_flush(&w->b);
}

static int write_file(const char *path, struct write_args w)
{
    struct mem m;
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        fprintf(stderr, "tuck: %s: %s\n", path, strerror(errno));
        return EXIT_FILE;
    }
    mem_init(&m, NULL);
    buf_to(&w.b, &m, to_file, f);
    bool ok = mem_guard(&m, do_write, &w), failed = w.b.failed;
    buf_destroy(&w.b);
    if (fclose(f) != 0 || failed) {
        fprintf(stderr, "tuck: %s: cannot be written\n", path);
        return EXIT_FILE;
    }
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
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
    struct write_args w = {
        .run = run, .n = n, .title = title, .where = tuck_cluster_name(o->cluster), .html = true};
    if (code == EXIT_FINE && p->html != NULL)
        code = write_file(p->html, w);
    w.html = false;
    if (code == EXIT_FINE && p->trace != NULL)
        code = write_file(p->trace, w);
    for (uint32_t i = 0; i < done; i++)
        forget(&made[i]);
    return code;
}
