#include "cli/optimize_ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/progress.h"
#include "cli/rank_files.h"

/* ---- names of the results ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* DIR/FILE, or the pattern with the rank in it, of files without a rank their number from 0. */
static char *result_name(const char *out, const struct rank_files *f, size_t i)
{
    const char *at = strchr(out, '%');
    char *name = NULL;
    int n = at == NULL ? asprintf(&name, "%s/%s", out, base_name(f->in[i].path))
                       : asprintf(&name, "%.*s%" PRId64 "%s", (int)(at - out), out,
                                  f->number[i] >= 0 ? f->number[i] : (int64_t)i, at + 1);

    return n < 0 ? NULL : name;
}

struct results {
    char **name;
    size_t n;
};

static int name_results(const struct optimize_ranks *o, const struct rank_files *f,
                        struct results *r)
{
    size_t n = f->n + 2;

    r->name = calloc(f->n, sizeof(*r->name));
    struct output_name *all = calloc(n, sizeof(*all));
    int code = r->name != NULL && all != NULL ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
    for (; r->n < f->n && code == EXIT_FINE; r->n++) {
        char *name = r->name[r->n] = result_name(o->out, f, r->n);
        code = name != NULL ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
        if (code == EXIT_FINE)
            all[r->n] = (struct output_name){f->in[r->n].path, name};
    }
    if (code == EXIT_FINE) {
        all[f->n] = (struct output_name){"--report", o->report};
        all[f->n + 1] = (struct output_name){"--decision", o->decision};
        code = outputs_apart(all, n);
        if (code != EXIT_FINE && strchr(o->out, '%') == NULL)
            fputs("  note: -o with a % in it, as in out/rank%.txt, names them by rank\n", stderr);
    }
    free(all);
    return code;
}

static int make_folder(const char *out)
{
    struct stat st;

    if (strchr(out, '%') != NULL || mkdir(out, 0777) == 0)
        return EXIT_FINE;
    if (errno == EEXIST && stat(out, &st) == 0 && !S_ISDIR(st.st_mode)) {
        fprintf(stderr,
                "tuck optimize: %s is not a folder; of several files, -o names a folder, or the "
                "files with %% for the rank\n",
                out);
        return EXIT_USAGE;
    }
    return errno == EEXIST ? EXIT_FINE : complain(out);
}

/* ---- writing ---- */

static int write_result(const struct rank_files *f, size_t i, const char *name)
{
    struct output out;
    struct input *in = &f->in[i];
    int code = input_remember(in);

    if (code == EXIT_FINE)
        code = output_open(&out, name);
    if (code != EXIT_FINE)
        return code;
    tuck_status st = in->graph < 0
                         ? tuck_doc_print(in->doc, TUCK_FORM_TEXT, in->diags, output_put, &out)
                         : tuck_graph_print(rank_files_graph(f, i), TUCK_FORM_TEXT, in->diags,
                                            output_put, &out);
    print_diags(in->diags);
    return output_close(&out, exit_code_of(st));
}

static int write_report(const struct optimize_ranks *o, const tuck_ranks_report *report)
{
    struct output f;
    tuck_print_options how = o->how;
    int code = output_open(&f, o->report);

    if (code != EXIT_FINE)
        return code;
    how.color = f.name == NULL && out_color(stdout) ? TUCK_COLORED : TUCK_PLAIN;
    how.width = f.name == NULL ? out_width(stdout) : 0;
    return output_close(&f, exit_code_of(tuck_ranks_report_print(report, &how, output_put, &f)));
}

static int write_decision(const struct optimize_ranks *o, const tuck_decision *made)
{
    struct output f;
    int code = output_open(&f, o->decision);

    if (code != EXIT_FINE)
        return code;
    return output_close(&f, exit_code_of(tuck_decision_write(made, output_put, &f)));
}

/* ---- the whole ---- */

static int run(struct optimize_ranks *o, const struct rank_files *f, tuck_ranks_report **report)
{
    tuck_rank_graph *rank = calloc(f->n, sizeof(*rank));
    tuck_machine machine;
    bool assumed;
    int code = rank != NULL ? rank_files_model(f, o->model, &assumed) : exit_code_of(TUCK_ENOMEM);

    for (size_t i = 0; i < f->n && code == EXIT_FINE; i++) {
        tuck_graph *g = rank_files_graph(f, i);
        rank[i] = (tuck_rank_graph){g, f->in[i].path, f->number[i]};
        code = exit_code_of(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, f->in[i].diags));
        if (code == EXIT_FINE)
            code = model_groups(o->model, &f->in[i], g);
        print_diags(f->in[i].diags);
    }
    if (code == EXIT_FINE) {
        model_public(o->model, o->in, &machine);
        machine.bandwidth = o->bandwidth;
        tuck_run_options all = o->run;
        all.machine = &machine;
        progress_begin("tuck optimize");
        progress_stoppable();
        tuck_status st = tuck_ranks_optimize(rank, f->n, &all, o->in->diags, report);
        progress_end();
        print_diags(o->in->diags);
        code = refused_or(st);
    }
    free(rank);
    return code;
}

static int over_limit(const tuck_ranks_report *report)
{
    tuck_gain gain;

    for (size_t k = 0; k < tuck_ranks_report_programs(report); k++)
        if (tuck_report_gain(tuck_ranks_report_at(report, k), &gain) && gain.over_limit)
            return EXIT_REFUSED;
    return EXIT_FINE;
}

int optimize_ranks(struct optimize_ranks *o)
{
    struct rank_files f;
    struct results r = {NULL, 0};
    tuck_ranks_report *report = NULL;
    tuck_decision *made = NULL;
    int code = rank_files_open(&f, "tuck optimize", o->in, o->more, o->n_more);

    if (code == EXIT_FINE && o->out != NULL)
        code = name_results(o, &f, &r);
    if (code == EXIT_FINE && o->out != NULL)
        code = make_folder(o->out);
    o->run.decision_out = o->decision != NULL ? &made : NULL;
    if (code == EXIT_FINE)
        code = run(o, &f, &report);
    if (code == EXIT_FINE)
        code = write_report(o, report);
    if (code == EXIT_FINE)
        code = over_limit(report);
    if (code == EXIT_FINE && made != NULL)
        code = write_decision(o, made);
    for (size_t i = 0; i < r.n && code == EXIT_FINE; i++)
        code = write_result(&f, i, r.name[i]);
    tuck_ranks_report_free(report);
    tuck_decision_free(made);
    for (size_t i = 0; i < r.n; i++)
        free(r.name[i]);
    free(r.name);
    rank_files_close(&f);
    return code;
}
