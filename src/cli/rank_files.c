#include "cli/rank_files.h"

#include <stdio.h>
#include <stdlib.h>

/* The global rank of a graph, if it is known, or if its groups or the file name give it. */
static int64_t rank_of(const struct input *in, size_t i)
{
    const tuck_graph *g = tuck_doc_graph(in->doc, i);

    if (tuck_graph_rank(g) >= 0)
        return tuck_graph_rank(g);
    for (size_t k = 0; k < tuck_graph_group_count(g); k++)
        if (tuck_graph_group_ranks(g, k) != NULL && tuck_graph_group_rank(g, k) >= 0)
            return tuck_graph_group_ranks(g, k)[tuck_graph_group_rank(g, k)];
    return tuck_doc_rank(in->doc, i);
}

tuck_graph *rank_files_graph(const struct rank_files *f, size_t i)
{
    return tuck_doc_graph(f->in[i].doc, f->in[i].graph < 0 ? 0 : (size_t)f->in[i].graph);
}

static int check_file(struct rank_files *f, const char *command, size_t i)
{
    size_t from = 0, to = 0;
    int code = input_range(&f->in[i], &from, &to);

    if (code == EXIT_FINE && to - from != 1) {
        fprintf(stderr, "%s: %s has %zu graphs; --graph says which one a rank runs\n", command,
                f->in[i].path, to - from);
        code = EXIT_USAGE;
    }
    if (code != EXIT_FINE)
        return code;
    f->number[i] = rank_of(&f->in[i], from);
    if (f->number[i] > f->number[f->last])
        f->last = i;
    return EXIT_FINE;
}

int rank_files_open(struct rank_files *f, const char *command, const struct input *first,
                    const char *const *more, size_t n_more)
{
    *f = (struct rank_files){.n = n_more + 1};
    f->in = calloc(f->n, sizeof(*f->in));
    f->number = calloc(f->n, sizeof(*f->number));
    int code = f->in && f->number ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);

    for (size_t i = 0; i < f->n && code == EXIT_FINE; i++) {
        if (i == 0) {
            f->in[0] = *first;
        } else {
            f->in[i] = input_like(first, more[i - 1]);
            f->opened = i;
            code = input_open(&f->in[i]);
        }
        if (code == EXIT_FINE)
            code = check_file(f, command, i);
    }
    return code;
}

int rank_files_model(const struct rank_files *f, struct model *m, bool *assumed)
{
    tuck_graph *g = rank_files_graph(f, f->last);
    int code = exit_code_of(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL));

    *assumed = false;
    return code == EXIT_FINE ? model_for(m, &f->in[0], g, assumed) : code;
}

void rank_files_close(struct rank_files *f)
{
    for (size_t i = 1; i <= f->opened; i++)
        input_close_like(&f->in[i]);
    free(f->in);
    free(f->number);
}
