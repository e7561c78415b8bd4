/* tuck optimize of a job: graphs are compiled one by one, so each is optimized by itself, and all
 * ranks that run the same graph get the same result. The step is shown before and after. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/graphs.h"
#include "cli/job_input.h"
#include "cli/optimizing.h"
#include "cli/progress.h"

struct job_run {
    struct optimize *o;
    const tuck_pipeline *p;
    size_t n; /* parts */
    char (*digest)[TUCK_DIGEST_TEXT];
    size_t *like;         /* by part: the first part with the same program, on a lower rank */
    tuck_decision **made; /* by part that was searched */
    tuck_report **report; /* by part; NULL if it was done like another */
    size_t n_apart;       /* parts that are left alone: ranks run different programs */
};

int optimize_job_check(const struct optimize *o)
{
    const char *what = o->decision != NULL      ? "--decision"
                       : o->apply != NULL       ? "--apply"
                       : o->dump.folder != NULL ? "--dump"
                       : o->verify > 0          ? "--verify"
                                                : NULL;

    if (what == NULL)
        return EXIT_FINE;
    fprintf(stderr, "tuck optimize: %s is for one graph; --graph picks one of %s\n", what,
            o->in.path);
    return EXIT_USAGE;
}

/* Part number `place` of every rank must be the same program, or its ranks could not agree. */
static int compare_ranks(struct job_run *x)
{
    const tuck_job *j = x->o->in.job;
    tuck_doc *parts = tuck_job_parts(j);
    size_t n_first, n_ranks = tuck_doc_count(tuck_job_steps(j));
    tuck_status st = TUCK_OK;

    for (size_t i = 0; i < x->n && st == TUCK_OK; i++)
        st = tuck_graph_program_digest(tuck_doc_graph(parts, i), x->digest[i]);
    tuck_job_first_part(j, 0, &n_first);
    for (size_t r = 0; r < n_ranks && st == TUCK_OK; r++) {
        size_t n, first = tuck_job_first_part(j, r, &n);
        for (size_t k = 0; k < n; k++)
            x->like[first + k] = r == 0 ? first + k
                                 : k < n_first && n == n_first &&
                                         strcmp(x->digest[k], x->digest[first + k]) == 0
                                     ? k
                                     : x->n;
    }
    /* One rank that differs keeps the others from changing. */
    for (size_t i = 0; i < x->n && st == TUCK_OK; i++)
        if (x->like[i] == x->n) {
            x->n_apart++;
            for (size_t k = 0; k < n_first; k++)
                x->like[k] = x->n;
        }
    return exit_code_of(st);
}

static int run_part(struct job_run *x, size_t i)
{
    struct optimize *o = x->o;
    struct both both = {{NULL}};
    struct picture wanted = o->picture;

    if (x->like[i] == x->n || x->like[x->like[i]] == x->n)
        return EXIT_FINE;
    o->picture = (struct picture){.html = NULL}; /* of the steps, later */
    o->given = x->like[i] != i ? x->made[x->like[i]] : NULL;
    o->decision = x->p == NULL ? "" : NULL;
    o->made = NULL;
    int code = optimize_run(o, x->p, i, &both, &x->report[i]);
    x->made[i] = o->made;
    o->picture = wanted;
    o->given = o->made = NULL;
    o->decision = NULL;
    return code;
}

/* The steps of the first rank, simulated; on the machine of `like` if that is given. */
static int simulate_step(struct optimize *o, const tuck_simulation *like, tuck_graph *g,
                         tuck_simulation **out)
{
    tuck_machine machine;
    bool assumed;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);
    int code = st == TUCK_OK ? model_for(&o->model, &o->in, g, &assumed) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    model_public(&o->model, &o->in, &machine);
    machine.like = like;
    code = refused_or(tuck_graph_simulate(g, &machine, o->in.diags, out));
    print_diags(o->in.diags);
    return code;
}

static int show_step(struct optimize *o, tuck_simulation *const *s)
{
    tuck_diff *d = NULL;
    tuck_print_options how = print_how(o->form == TUCK_PRINT_JSON);
    tuck_status st = tuck_simulation_diff(s[0], s[1], &d);

    how.top = TUCK_NO_ROWS;
    if (st == TUCK_OK && how.form != TUCK_PRINT_JSON) {
        put_part(&o->in, 0);
        printf("\n");
    }
    if (st == TUCK_OK)
        st = tuck_diff_print(d, &how, to_file, stdout);
    tuck_diff_free(d);
    return exit_code_of(st);
}

static int compare_steps(struct job_run *x, tuck_simulation **s)
{
    struct optimize *o = x->o;
    tuck_doc *parts = o->in.doc;
    static const char *const label[] = {"before", "after"};
    int code = exit_code_of(tuck_job_join(o->in.job, o->in.diags));

    o->in.doc = tuck_job_steps(o->in.job);
    if (code == EXIT_FINE)
        code = simulate_step(o, s[0], tuck_doc_graph(o->in.doc, 0), &s[1]);
    if (code == EXIT_FINE)
        code = show_step(o, s);
    if (code == EXIT_FINE && picture_wanted(&o->picture)) {
        code = picture_add(&o->picture, &o->in, 0, s, label, 2);
        s[0] = s[1] = NULL;
    }
    o->in.doc = parts;
    return code;
}

static int write_reports(struct job_run *x)
{
    size_t n, first = tuck_job_first_part(x->o->in.job, 0, &n);
    tuck_print_form form = x->o->form;

    if (x->n_apart > 0)
        put_warning(x->o->in.path,
                    "ranks run different programs, so their graphs stay as they are");
    if (x->n_apart > 0 || (form == TUCK_PRINT_JSON && x->o->report == NULL))
        return EXIT_FINE; /* JSON of the step alone, unless there is a file for the rest */
    if (x->o->report == NULL && x->o->form == TUCK_PRINT_TABLE)
        x->o->form = TUCK_PRINT_BRIEF;
    int code = optimize_write_reports(x->o, x->report + first, first, n);
    x->o->form = form;
    return code;
}

static bool communicates(const tuck_graph *g)
{
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
        if (tuck_node_group(g, n) >= 0)
            return true;
    return false;
}

static int run_all(struct job_run *x)
{
    struct optimize *o = x->o;
    tuck_simulation *s[2] = {NULL, NULL};
    int code = compare_ranks(x);

    o->is_part = communicates(tuck_doc_graph(tuck_job_steps(o->in.job), 0));
    /* The steps as they were, which optimizing the parts does not change. */
    if (code == EXIT_FINE)
        code = simulate_step(o, NULL, tuck_doc_graph(tuck_job_steps(o->in.job), 0), &s[0]);
    tuck_graph *kept = NULL;
    if (code == EXIT_FINE) /* tuck_job_join() frees the graph that s[0] is about */
        code = exit_code_of(tuck_graph_copy(tuck_doc_graph(tuck_job_steps(o->in.job), 0), &kept));
    tuck_simulation_free(s[0]);
    s[0] = NULL;
    if (code == EXIT_FINE)
        code = simulate_step(o, NULL, kept, &s[0]);
    progress_begin("tuck optimize");
    for (size_t i = 0; i < x->n && code == EXIT_FINE; i++)
        code = run_part(x, i);
    progress_end();
    if (code == EXIT_FINE)
        code = write_reports(x);
    if (code == EXIT_FINE)
        code = compare_steps(x, s);
    tuck_simulation_free(s[1]);
    tuck_simulation_free(s[0]);
    o->kept = kept;
    return code;
}

int optimize_job(struct optimize *o, const tuck_pipeline *p)
{
    struct job_run x = {.o = o, .p = p, .n = tuck_doc_count(tuck_job_parts(o->in.job))};

    x.digest = calloc(x.n + 1, sizeof(*x.digest));
    x.like = calloc(x.n + 1, sizeof(*x.like));
    x.made = calloc(x.n + 1, sizeof(*x.made));
    x.report = calloc(x.n + 1, sizeof(*x.report));
    int code = x.digest && x.like && x.made && x.report ? run_all(&x) : exit_code_of(TUCK_ENOMEM);
    for (size_t i = 0; i < x.n && x.made && x.report; i++) {
        tuck_decision_free(x.made[i]);
        tuck_report_free(x.report[i]);
    }
    free(x.digest);
    free(x.like);
    free(x.made);
    free(x.report);
    return code;
}

/* ---- the folder ---- */

/* "0.forward.rank1.txt", as tuck.torch.capture() calls them, so that the folder is a job again. */
static int write_part(struct optimize *o, size_t i, size_t *number)
{
    tuck_doc *parts = tuck_job_parts(o->in.job);
    const char *title = tuck_doc_title(parts, i), *blank = strchr(title, ' ');
    char path[PATH_MAX];
    struct output f;
    int rank = tuck_doc_rank(parts, i);

    int n = snprintf(path, sizeof(path), "%s/%zu.%.*s.rank%d.txt", o->out, number[i],
                     blank ? (int)(blank - title) : (int)strlen(title), title, rank < 0 ? 0 : rank);
    errno = ENAMETOOLONG;
    if (n < 0 || n >= PATH_MAX)
        return complain(o->out);
    int code = output_open(&f, path);
    if (code != EXIT_FINE)
        return code;
    tuck_status st = tuck_graph_print(tuck_doc_graph(parts, i), TUCK_FORM_TEXT, o->in.diags,
                                      output_put, &f);
    print_diags(o->in.diags);
    return output_close(&f, exit_code_of(st));
}

/* A backward has the number of its forward, which has the same compilation in its title. */
static void number_parts(const struct optimize *o, size_t *number)
{
    tuck_doc *parts = tuck_job_parts(o->in.job);
    size_t n_ranks = tuck_doc_count(tuck_job_steps(o->in.job));

    for (size_t r = 0; r < n_ranks; r++) {
        size_t n, first = tuck_job_first_part(o->in.job, r, &n), next = 0;
        for (size_t i = first; i < first + n; i++) {
            const char *id = strchr(tuck_doc_title(parts, i), ' ');
            size_t same = first;
            while (same < i && strcmp(strchr(tuck_doc_title(parts, same), ' '), id) != 0)
                same++;
            number[i] = same < i ? number[same] : next++;
        }
    }
}

int optimize_job_write(struct optimize *o)
{
    size_t n = tuck_doc_count(tuck_job_parts(o->in.job));
    int code = EXIT_FINE;

    if (o->out == NULL)
        return EXIT_FINE; /* the step was shown */
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST)
        return complain(o->out);
    size_t *number = calloc(n + 1, sizeof(*number));
    if (number == NULL)
        return exit_code_of(TUCK_ENOMEM);
    number_parts(o, number);
    code = exit_code_of(tuck_job_remember(o->in.job));
    for (size_t i = 0; i < n && code == EXIT_FINE; i++)
        code = write_part(o, i, number);
    free(number);
    return code;
}
