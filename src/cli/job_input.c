#include "cli/job_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/graphs.h"

bool job_takes(struct argp_state *state, struct input *in, const char *arg)
{
    if (!in->job_many || in->path == NULL || access(arg, F_OK) != 0)
        return false;
    option_append(state, &in->more, &in->n_more, arg);
    return true;
}

bool job_wanted(const struct input *in)
{
    if (in->job_as == JOB_NOT || in->path == NULL || strcmp(in->path, "-") == 0)
        return false;
    if (in->n_more > 0 || tuck_path_is_job(in->path))
        return true;
    return in->job_logs && !in->each && in->graph_word == NULL && tuck_path_is_job_log(in->path);
}

int job_open(struct input *in)
{
    const char **all = malloc((in->n_more + 1) * sizeof(*all));

    if (all == NULL)
        return exit_code_of(TUCK_ENOMEM);
    all[0] = in->path;
    for (size_t i = 0; i < in->n_more; i++)
        all[i + 1] = in->more[i];
    tuck_status st = tuck_job_read(all, in->n_more + 1, NULL, in->diags, &in->job);
    free(all);
    if (st == TUCK_OK)
        in->doc = tuck_job_parts(in->job);
    return exit_code_of(st);
}

/* The step of --rank, or its graphs. */
static int pick_rank(struct input *in)
{
    tuck_doc *steps = tuck_job_steps(in->job);

    for (size_t i = 0; i < tuck_doc_count(steps); i++)
        if (tuck_doc_rank(steps, i) == in->rank) {
            in->first = in->doc == steps ? i : tuck_job_first_part(in->job, i, &in->count);
            in->count = in->doc == steps ? 1 : in->count;
            return EXIT_FINE;
        }
    fprintf(stderr, "tuck: --rank %ld: %s has no graphs of that rank\n", in->rank, in->path);
    return EXIT_USAGE;
}

int job_choose_doc(struct input *in)
{
    if (in->graph_word != NULL)
        return graph_pick(in, "--graph", in->graph_word, &in->graph);
    tuck_status st = tuck_job_join(in->job, in->diags);
    if (in->job_as == JOB_STEPS && !in->each)
        in->doc = tuck_job_steps(in->job);
    if (st != TUCK_OK)
        return exit_code_of(st);
    return in->rank >= 0 ? pick_rank(in) : EXIT_FINE;
}

void put_part(const struct input *in, size_t i)
{
    tuck_print_options how = print_how(false);

    if (in->job != NULL && in->doc == tuck_job_steps(in->job))
        (void)!tuck_job_say(in->job, i, in->path, &how, to_file, stdout);
    else
        put_graph(in, i);
}
