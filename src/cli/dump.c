#include "cli/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/progress.h"

enum { N_OTHER = sizeof(((struct dump *)NULL)->other) / sizeof(struct output_name) };

static bool ends_in(const char *name, const char *end, const char *suffix)
{
    size_t n = strlen(name), m = strlen(end) + strlen(suffix);

    return n > m && strncmp(name + n - m, end, strlen(end)) == 0 &&
           strcmp(name + n - strlen(suffix), suffix) == 0;
}

/* "00.PASS.before.txt", "graph1.00.PASS.after.dot": names that dump_graph() makes. */
static bool is_dump(const struct dump *d, const char *name)
{
    const char *suffix = d->dot ? ".dot" : ".txt";

    if (strncmp(name, "graph", 5) == 0) {
        name += 5;
        name += strspn(name, "0123456789");
        name += *name == '.';
    }
    return *name >= '0' && *name <= '9' &&
           (ends_in(name, ".before", suffix) || ends_in(name, ".after", suffix));
}

static int refuse(const struct output_name *other, const char *path)
{
    fprintf(stderr, "tuck: --dump and %s would both write to '%s'\n", other->option, path);
    return EXIT_USAGE;
}

int dump_open(struct dump *d)
{
    char name[NAME_MAX + 1];
    bool made = mkdir(d->folder, 0777) == 0;

    if (!made && errno != EEXIST)
        return complain(d->folder);
    for (size_t i = 0; i < N_OTHER; i++) {
        const char *path = d->other[i].path;
        if (path == NULL || strcmp(path, "-") == 0 || !file_in_folder(path, d->folder, name) ||
            !is_dump(d, name))
            continue;
        if (made)
            rmdir(d->folder);
        return refuse(&d->other[i], path);
    }
    return EXIT_FINE;
}

static int path_of(struct dump *d, const char *pass, size_t step, bool after, char path[PATH_MAX])
{
    char graph[32] = "";

    if (tuck_doc_count(d->in->doc) > 1)
        snprintf(graph, sizeof(graph), "graph%zu.", d->graph);
    int n = snprintf(path, PATH_MAX, "%s/%s%0*zu.%s.%s.%s", d->folder, graph, d->numbered ? 3 : 2,
                     d->numbered ? d->n - 1 : step, pass, after ? "after" : "before",
                     d->dot ? "dot" : "txt");
    errno = ENAMETOOLONG;
    if (n < 0 || n >= PATH_MAX)
        return complain(d->folder);
    /* Through links, which their names do not show. */
    for (size_t i = 0; i < N_OTHER; i++)
        if (d->other[i].path != NULL && file_same(d->other[i].path, path))
            return refuse(&d->other[i], path);
    return EXIT_FINE;
}

bool dump_graph(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    struct dump *d = ctx;
    char path[PATH_MAX];
    struct output f;

    if (!progress_observe(NULL, pass, step, after, g))
        return false;
    d->n += !after;
    d->code = path_of(d, pass, step, after, path);
    if (d->code == EXIT_FINE)
        d->code = output_open(&f, path);
    if (d->code != EXIT_FINE)
        return false;
    tuck_status st = d->dot ? tuck_graph_dot(g, output_put, &f)
                            : tuck_graph_print(g, TUCK_FORM_TEXT, d->in->diags, output_put, &f);
    d->code = output_close(&f, exit_code_of(st));
    return d->code == EXIT_FINE;
}
