/* Reads a graph for a command, with the options about it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "cli/job_input.h"
#include "cli/progress.h"

enum { OPT_GRAPH = 0x100, OPT_GROUP, OPT_RANK, OPT_ASSUME, OPT_EACH };

static const struct argp_option options[] = {
    {"graph", OPT_GRAPH, "N|TITLE", 0,
     "If the file has several graphs: number N, from 0, or the one with this title or name", 1},
    {"each", OPT_EACH, NULL, 0,
     "Of a folder or a log: every graph by itself, instead of forward and backward as one step", 1},
    {"group", OPT_GROUP, "NAME=SIZE", OPTION_MANY,
     "The size of a process group, or its members: NAME=0,2,4,6 (global ranks); for --straggler "
     "all groups of a name: NAME=0,2/4,6",
     1},
    {"rank", OPT_RANK, "R", 0,
     "The global rank that the text belongs to (default: from the side-car or the file's name)", 1},
    {"assume", OPT_ASSUME, "SYMBOL=N", OPTION_MANY,
     "A value for a symbolic size, s0=4096, if bytes are needed; '*=4096': for all that nothing "
     "else gives one",
     1},
    {0},
};

static long number(struct argp_state *state, const char *what, const char *arg)
{
    char *end;

    errno = 0;
    long v = strtol(arg, &end, 10);
    if (errno != 0 || *arg == '\0' || *end != '\0' || v < 0)
        argp_error(state, "%s must be a number from 0 on, found '%s'", what, arg);
    return v;
}

void *option_grow(struct argp_state *state, void *list, size_t n, size_t size)
{
    void *more = realloc(list, (n + 1) * size);

    if (more == NULL)
        argp_failure(state, EXIT_MEMORY, ENOMEM, "options");
    return more;
}

void option_append(struct argp_state *state, const char ***list, size_t *n, const char *arg)
{
    *list = option_grow(state, *list, *n, sizeof(**list));
    (*list)[(*n)++] = arg;
}

/* NAME=…; each name may be given once. */
static void once(struct argp_state *state, const char *option, const char *const *list, size_t n,
                 const char *arg, const char *eq)
{
    size_t len = (size_t)(eq - arg) + 1;

    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i], arg, len) == 0)
            argp_error(state, "%s gives two values for '%.*s': '%s' and '%s'", option, (int)len - 1,
                       arg, list[i] + len, arg + len);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;

    switch (key) {
    case ARGP_KEY_INIT: in->graph = in->rank = -1; break;
    case OPT_GRAPH:
        if (*arg == '\0')
            argp_error(state, "--graph wants a number or a title");
        in->graph_word = arg;
        break;
    case OPT_EACH: in->each = true; break;
    case OPT_RANK: in->rank = option_number(state, "--rank", arg, 0, RANKS_MOST - 1); break;
    case OPT_GROUP:
        if (strrchr(arg, '=') == NULL || strrchr(arg, '=') == arg)
            argp_error(state, "--group wants NAME=SIZE or NAME=RANK,RANK,…, found '%s'", arg);
        once(state, "--group", in->group, in->n_group, arg, strrchr(arg, '='));
        option_append(state, &in->group, &in->n_group, arg);
        break;
    case OPT_ASSUME:
        if (strchr(arg, '=') == NULL || strchr(arg, '=') == arg)
            argp_error(state, "--assume wants SYMBOL=N, found '%s'", arg);
        number(state, "the value in --assume", strchr(arg, '=') + 1);
        once(state, "--assume", in->assume, in->n_assume, arg, strchr(arg, '='));
        option_append(state, &in->assume, &in->n_assume, arg);
        break;
    case ARGP_KEY_ARG:
        if (in->path != NULL && job_takes(state, in, arg))
            break;
        if (in->path != NULL)
            argp_error(state, "one file only, found '%s' after '%s'", arg, in->path);
        in->path = arg;
        break;
    case ARGP_KEY_END:
        if (in->path == NULL && !in->optional)
            argp_error(state, "the file is missing; `-' is standard input");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp input_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

static tuck_diags *kept; /* set by keep_diags() */

void keep_diags(tuck_diags *all)
{
    kept = all;
}

static void keep(const tuck_diags *d)
{
    for (size_t i = 0; i < tuck_diags_count(d); i++) {
        tuck_diag x = *tuck_diags_at(d, i);

        x.source = NULL;
        tuck_diags_append(kept, &x);
    }
}

void print_diags(tuck_diags *d)
{
    if (kept != NULL) {
        keep(d);
        tuck_diags_clear(d);
        return;
    }
    if (tuck_diags_count(d) > 0)
        progress_clear();
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        tuck_diag_print(tuck_diags_at(d, i), out_color(stderr), to_file, stderr);
    tuck_diags_clear(d);
}

int exit_code_of(tuck_status st)
{
    switch (st) {
    case TUCK_OK: return EXIT_FINE;
    case TUCK_ENOMEM: fputs("tuck: out of memory\n", stderr); return EXIT_MEMORY;
    case TUCK_EINVAL: return EXIT_USAGE;
    case TUCK_ESYNTAX: return EXIT_INPUT;
    case TUCK_EIO: return EXIT_FILE;
    case TUCK_ELINT: return EXIT_FOUND;
    case TUCK_EEXEC: return EXIT_REFUSED;
    }
    return EXIT_INPUT;
}

int refused_or(tuck_status st)
{
    return st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* A rank that occurs twice in a list; -1 if none. */
static int64_t listed_twice(const int64_t *ranks, size_t n)
{
    int64_t *sorted = malloc(n * sizeof(*sorted)), twice = -1;

    if (sorted == NULL)
        return -1;
    memcpy(sorted, ranks, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (size_t i = 1; i < n && twice < 0; i++)
        if (sorted[i] == sorted[i - 1])
            twice = sorted[i];
    free(sorted);
    return twice;
}

static bool member(const char **s, char next, int64_t least, int64_t most, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(*s, &end, 10);
    bool ok = errno == 0 && end != *s && **s != ' ' && *out >= least && *out <= most &&
              *end == next;
    *s = end + (*end != '\0');
    return ok;
}

/* "8", "0,2,4,6" or "0,2/4,6"; the ranks of all groups in a new array, or NULL for a plain size.
 * Returns the size of one group; 0 and `why` if it is invalid. */
static int64_t parse_members(const char *s, int64_t **ranks, size_t *n_group, char why[160])
{
    size_t n = 1;
    int64_t size;
    bool ok = true;

    snprintf(why, 160,
             "a size, a list of ranks, or such lists of one length with '/' between them must "
             "follow the '=', of at most %d ranks",
             RANKS_MOST);
    *ranks = NULL;
    *n_group = 1;
    for (const char *p = s; *p; p++) {
        n += *p == ',' || *p == '/';
        *n_group += *p == '/';
    }
    if (n == 1)
        return member(&s, '\0', 1, RANKS_MOST, &size) ? size : 0;
    size = (int64_t)(n / *n_group);
    *ranks = malloc(n * sizeof(**ranks));
    for (size_t i = 0; *ranks != NULL && i < n && ok; i++)
        ok = member(&s,
                    i + 1 == n                    ? '\0'
                    : (i + 1) % (size_t)size == 0 ? '/'
                                                  : ',',
                    0, RANKS_MOST - 1, &(*ranks)[i]);
    int64_t twice = ok && *ranks != NULL ? listed_twice(*ranks, n) : -1;
    if (twice >= 0)
        snprintf(why, 160, "rank %" PRId64 " is listed twice", twice);
    if (ok && twice < 0 && *ranks != NULL)
        return size;
    free(*ranks);
    *ranks = NULL;
    return 0;
}

/* If there are several groups of one name, the one that contains the rank, or else the first. */
static const int64_t *own_group(const int64_t *ranks, size_t n, int64_t size, int64_t rank)
{
    for (size_t i = 0; ranks != NULL && i < n * (size_t)size; i++)
        if (ranks[i] == rank)
            return ranks + i / (size_t)size * (size_t)size;
    return ranks;
}

static int apply_group(struct input *in, const char *text, size_t from, size_t to)
{
    const char *eq = strrchr(text, '=');
    char *name = strndup(text, (size_t)(eq - text));
    int64_t *ranks;
    size_t n;
    char why[160];
    int64_t size = parse_members(eq + 1, &ranks, &n, why);
    bool met = false;
    tuck_status st = name != NULL ? TUCK_OK : TUCK_ENOMEM;

    if (size == 0) {
        fprintf(stderr, "tuck: --group %s: %s\n", text, why);
        free(name);
        return EXIT_USAGE;
    }
    for (size_t i = from; i < to && st != TUCK_ENOMEM; i++) {
        tuck_graph *g = tuck_doc_graph(in->doc, i);
        st = tuck_graph_set_group(g, name, size, own_group(ranks, n, size, tuck_graph_rank(g)),
                                  in->diags);
        met |= st == TUCK_OK;
    }
    if (st != TUCK_ENOMEM && n > 1) {
        void *more = realloc(in->instances, (in->n_instances + 1) * sizeof(*in->instances));
        if (more != NULL) {
            in->instances = more;
            in->instances[in->n_instances++] = (tuck_instances){name, n, size, ranks};
        } else {
            st = TUCK_ENOMEM;
        }
    }
    bool unused = st != TUCK_ENOMEM && !met;
    if (unused && in->several)
        put_warning(in->path, "--group %s: no collective is on a group '%s'", text, name);
    else if (unused)
        fprintf(stderr, "tuck: --group %s: no collective in %s is on a group '%s'\n", text,
                in->path, name);
    if (n == 1 || st == TUCK_ENOMEM) {
        free(name);
        free(ranks);
    }
    return st == TUCK_ENOMEM ? exit_code_of(st) : unused && !in->several ? EXIT_USAGE : EXIT_FINE;
}

static int apply_groups(struct input *in, size_t from, size_t to)
{
    int code = EXIT_FINE;

    for (size_t k = 0; k < in->n_group && code == EXIT_FINE; k++)
        code = apply_group(in, in->group[k], from, to);
    return code;
}

int input_range(const struct input *in, size_t *from, size_t *to)
{
    if (in->graph < 0 && in->count > 0) {
        *from = in->first;
        *to = in->first + in->count;
        return EXIT_FINE;
    }
    *from = in->graph < 0 ? 0 : (size_t)in->graph;
    *to = in->graph < 0 ? tuck_doc_count(in->doc) : (size_t)in->graph + 1;
    return EXIT_FINE;
}

/* Copies the names in --assume, one after the other. False: out of memory. */
static bool copy_assumed(struct input *in)
{
    size_t len = 1;

    for (size_t i = 0; i < in->n_assume; i++)
        len += strlen(in->assume[i]) + 1;
    in->assumed = malloc(len);
    return in->assumed != NULL;
}

/* The values of --assume, which override those that a graph has itself. */
static int collect_hints(struct input *in)
{
    in->hints = calloc(in->n_assume + 1, sizeof(*in->hints));
    if (in->hints == NULL || !copy_assumed(in))
        return exit_code_of(TUCK_ENOMEM);
    char *name = in->assumed;
    for (size_t i = 0; i < in->n_assume; i++) {
        const char *eq = strchr(in->assume[i], '=');
        char *end = mempcpy(name, in->assume[i], (size_t)(eq - in->assume[i]));
        *end = '\0';
        in->hints[in->n_hint++] = (tuck_hint){name, strtoll(eq + 1, NULL, 10)};
        name = end + 1;
    }
    return EXIT_FINE;
}

/* Does the graph mention the symbol? Also true where that cannot be known. */
static bool mentions(const tuck_graph *g, const char *symbol)
{
    tuck_graph *copy = NULL;
    tuck_symbols *all = NULL;
    bool found = tuck_graph_copy(g, &copy) != TUCK_OK ||
                 tuck_graph_infer(copy, TUCK_TRUST_ANNOTATIONS, NULL) != TUCK_OK ||
                 tuck_graph_symbols(copy, &all) != TUCK_OK;

    for (size_t i = 0; !found && i < tuck_symbols_count(all); i++)
        found = strcmp(tuck_symbols_at(all, i)->name, symbol) == 0;
    tuck_symbols_free(all);
    tuck_graph_free(copy);
    return found;
}

/* Warns about values for symbols that no graph has. */
static void check_assumed(struct input *in, size_t from, size_t to)
{
    for (size_t k = 0; k < in->n_hint; k++) {
        bool found = strcmp(in->hints[k].symbol, "*") == 0;

        for (size_t i = from; i < to && !found; i++)
            found = mentions(tuck_doc_graph(in->doc, i), in->hints[k].symbol);
        if (found)
            continue;
        put_warning(in->path, "--assume %s=%" PRId64 ": no size depends on a symbol '%s'",
                    in->hints[k].symbol, in->hints[k].value, in->hints[k].symbol);
        in->n_warned++;
    }
}

/* Is --rank in a group with known members? If no members are known, it may be in all. */
static int check_rank(const struct input *in, size_t from, size_t to)
{
    bool listed = false;

    for (size_t i = from; i < to; i++) {
        const tuck_graph *g = tuck_doc_graph(in->doc, i);
        for (size_t k = 0; k < tuck_graph_group_count(g); k++)
            if (tuck_graph_group_ranks(g, k) != NULL) {
                listed = true;
                if (tuck_graph_group_rank(g, k) >= 0)
                    return EXIT_FINE;
            }
    }
    if (!listed)
        return EXIT_FINE;
    tuck_diags_clear(in->diags); /* they say the same for each group */
    fprintf(stderr, "tuck: --rank %ld: %s has no group with that rank in it\n", in->rank, in->path);
    return EXIT_USAGE;
}

/* Reads the text, or the job. */
static int read_input(struct input *in)
{
    in->diags = tuck_diags_new(NULL);
    if (in->diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    int code = job_wanted(in)
                   ? job_open(in)
                   : exit_code_of(tuck_doc_read_file(in->path, NULL, in->diags, &in->doc));
    in->n_warned += tuck_diags_count(in->diags) - tuck_diags_errors(in->diags);
    print_diags(in->diags);
    in->graph = -1;
    if (code == EXIT_FINE && in->graph_word != NULL && in->job == NULL)
        code = graph_pick(in, "--graph", in->graph_word, &in->graph);
    return code;
}

/* What the text does not say, from its side-car and the options. */
static int apply_known(struct input *in, size_t from, size_t to)
{
    int code = EXIT_FINE;

    for (size_t i = from; i < to && code == EXIT_FINE && in->job == NULL; i++) {
        tuck_graph *g = tuck_doc_graph(in->doc, i);
        long rank = in->rank >= 0 ? in->rank : tuck_doc_rank(in->doc, i);
        if (strcmp(in->path, "-") != 0)
            code = exit_code_of(tuck_graph_read_sidecar(g, in->path, rank, in->diags));
        else if (rank >= 0)
            code = exit_code_of(tuck_graph_set_rank(g, rank, in->diags));
    }
    if (code == EXIT_FINE)
        code = apply_groups(in, from, to);
    if (code == EXIT_FINE)
        code = collect_hints(in);
    if (code == EXIT_FINE)
        check_assumed(in, from, to);
    if (code == EXIT_FINE && in->rank >= 0 && in->n_group > 0 && in->job == NULL)
        for (size_t i = from; i < to && code == EXIT_FINE; i++)
            code = exit_code_of(
                tuck_graph_set_rank(tuck_doc_graph(in->doc, i), in->rank, in->diags));
    return code;
}

int input_open(struct input *in)
{
    size_t from, to;
    int code = read_input(in);

    if (code == EXIT_FINE)
        code = input_range(in, &from, &to);
    if (code != EXIT_FINE)
        return code;
    code = apply_known(in, from, to);
    if (code == EXIT_FINE && in->rank >= 0 && in->job == NULL)
        code = check_rank(in, from, to);
    if (code == EXIT_FINE && in->job != NULL)
        code = job_choose_doc(in);
    in->n_warned += tuck_diags_count(in->diags) - tuck_diags_errors(in->diags);
    print_diags(in->diags);
    return code;
}

static int remember(const struct input *in, tuck_graph *g)
{
    tuck_status st = TUCK_OK;

    for (size_t k = 0; k < in->n_hint && st == TUCK_OK; k++)
        st = tuck_graph_set_symbol(g, in->hints[k].symbol, in->hints[k].value);
    return exit_code_of(st == TUCK_OK ? tuck_graph_remember(g) : st);
}

int input_remember(struct input *in)
{
    size_t from, to;
    int code = input_range(in, &from, &to);

    for (size_t i = from; i < to && code == EXIT_FINE; i++)
        code = remember(in, tuck_doc_graph(in->doc, i));
    return code;
}

bool input_is_asked(const struct input *in)
{
    return in->graph_word != NULL || in->rank >= 0 || in->n_group > 0 || in->n_assume > 0;
}

void input_close(struct input *in)
{
    if (in->job == NULL)
        tuck_doc_free(in->doc);
    tuck_job_free(in->job);
    tuck_diags_free(in->diags);
    free(in->more);
    free(in->group);
    free(in->assume);
    free(in->hints);
    free(in->assumed);
    for (size_t i = 0; i < in->n_instances; i++) {
        free((char *)(uintptr_t)in->instances[i].name);
        free((int64_t *)(uintptr_t)in->instances[i].ranks);
    }
    free(in->instances);
    in->doc = NULL;
    in->job = NULL;
    in->diags = NULL;
    in->group = NULL;
    in->more = NULL;
}

struct input input_like(const struct input *first, const char *path)
{
    return (struct input){.path = path,
                          .graph = -1,
                          .graph_word = first->graph_word,
                          .several = true,
                          .job_as = first->job_as,
                          .rank = -1,
                          .group = first->group,
                          .n_group = first->n_group,
                          .assume = first->assume,
                          .n_assume = first->n_assume};
}

void input_close_like(struct input *in)
{
    in->group = in->assume = NULL; /* they belong to the first */
    input_close(in);
}

int input_infer(struct input *in, bool check)
{
    size_t from, to;
    int code = input_range(in, &from, &to);

    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = exit_code_of(tuck_graph_infer(tuck_doc_graph(in->doc, i), check, in->diags));
    return code;
}

/* Was the same reported for an earlier graph? */
static bool unknown_before(const struct input *in, size_t from, size_t to, const char *name)
{
    for (size_t i = from; i < to; i++) {
        const tuck_graph *g = tuck_doc_graph(in->doc, i);
        for (size_t k = 0; k < tuck_graph_group_count(g); k++)
            if (tuck_graph_group_size(g, k) == 0 && strcmp(tuck_graph_group_name(g, k), name) == 0)
                return true;
    }
    return false;
}

static void warn_unknown(const struct input *in, const char *name)
{
    char *message = NULL, *note = NULL;

    if (asprintf(&message, "the size of group '%s' is unknown", name) >= 0 &&
        asprintf(&note, "give it with --group '%s=SIZE', or in a side-car file", name) >= 0) {
        tuck_diag d = {
            .severity = TUCK_WARNING, .file = in->path, .message = message, .note = note};
        tuck_diags_append(in->diags, &d);
    }
    free(message);
    free(note);
    print_diags(in->diags);
}

size_t input_warn_groups(struct input *in)
{
    size_t from, to, n = 0;

    if (input_range(in, &from, &to) != EXIT_FINE)
        return 0;
    for (size_t i = from; i < to; i++) {
        const tuck_graph *g = tuck_doc_graph(in->doc, i);
        for (size_t k = 0; k < tuck_graph_group_count(g); k++) {
            const char *name = tuck_graph_group_name(g, k);
            if (tuck_graph_group_size(g, k) == 0 && !unknown_before(in, from, i, name)) {
                warn_unknown(in, name);
                n++;
            }
        }
    }
    return n;
}
