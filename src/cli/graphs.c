#include "cli/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which graph ---- */

static bool is_number(const char *s)
{
    return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

enum match { BY_TITLE, BY_NAME, BY_PART, MATCH_END };

static bool matches(const struct input *in, size_t i, const char *word, enum match how)
{
    const char *title = tuck_doc_title(in->doc, i);

    switch (how) {
    case BY_TITLE: return strcmp(title, word) == 0;
    case BY_NAME: return strcmp(tuck_graph_name(tuck_doc_graph(in->doc, i)), word) == 0;
    default: return strcasestr(title, word) != NULL;
    }
}

/* If there are several matches, the one of --rank, if given. */
static size_t count(const struct input *in, const char *word, enum match how, bool of_rank,
                    long *graph)
{
    size_t n = 0;

    for (size_t i = 0; i < tuck_doc_count(in->doc); i++)
        if (matches(in, i, word, how) && (!of_rank || tuck_doc_rank(in->doc, i) == in->rank)) {
            *graph = (long)i;
            n++;
        }
    return n;
}

static void list_graphs(const struct input *in, const char *word, enum match how)
{
    enum { MOST = 20 };
    size_t shown = 0;

    for (size_t i = 0; i < tuck_doc_count(in->doc) && shown < MOST; i++) {
        if (how != MATCH_END && !matches(in, i, word, how))
            continue;
        const char *title = tuck_doc_title(in->doc, i);
        fprintf(stderr, "  %zu: %s", i, tuck_graph_name(tuck_doc_graph(in->doc, i)));
        if (*title)
            fprintf(stderr, ", \"%s\"", title);
        if (tuck_doc_rank(in->doc, i) >= 0)
            fprintf(stderr, ", rank %d", tuck_doc_rank(in->doc, i));
        fputc('\n', stderr);
        shown++;
    }
}

int graph_pick(const struct input *in, const char *option, const char *word, long *graph)
{
    size_t n = tuck_doc_count(in->doc);

    if (is_number(word)) {
        unsigned long k = strlen(word) < 10 ? strtoul(word, NULL, 10) : (unsigned long)-1;
        *graph = (long)k;
        if (k < n)
            return EXIT_FINE;
        fprintf(stderr, "tuck: %s %s: %s has %zu graph%s, numbered from 0\n", option, word,
                in->path, n, n == 1 ? "" : "s");
        return EXIT_USAGE;
    }
    for (enum match how = BY_TITLE; how < MATCH_END; how++) {
        size_t found = count(in, word, how, false, graph);
        if (found > 1 && in->rank >= 0 && count(in, word, how, true, graph) == 1)
            found = 1;
        if (found == 1)
            return EXIT_FINE;
        if (found > 1) {
            fprintf(stderr, "tuck: %s '%s' means %zu graphs of %s; a number picks one:\n", option,
                    word, found, in->path);
            list_graphs(in, word, how);
            return EXIT_USAGE;
        }
    }
    fprintf(stderr, "tuck: %s: no graph of %s has the title or the name '%s'; there %s:\n", option,
            in->path, word, n == 1 ? "is" : "are");
    list_graphs(in, word, MATCH_END);
    return EXIT_USAGE;
}

/* ---- titles ---- */

tuck_status graph_title(const struct input *in, size_t i, tuck_color color, tuck_write_fn write,
                        void *ctx)
{
    const char *title = tuck_doc_title(in->doc, i);
    bool on = color == TUCK_COLORED;
    char rank[32] = "", *line = NULL;

    if (tuck_doc_count(in->doc) <= 1)
        return TUCK_OK;
    if (tuck_doc_rank(in->doc, i) >= 0)
        snprintf(rank, sizeof(rank), ", rank %d", tuck_doc_rank(in->doc, i));
    int n = asprintf(&line, "%sgraph %zu of %zu%s%s%s%s%s, %s:%u\n", on ? "\033[1m" : "", i,
                     tuck_doc_count(in->doc), on ? "\033[0m" : "", *title ? ": \"" : "", title,
                     *title ? "\"" : "", rank, in->path, tuck_doc_line(in->doc, i));
    if (n < 0)
        return TUCK_ENOMEM;
    bool ok = write(ctx, line, (size_t)n);
    free(line);
    return ok ? TUCK_OK : TUCK_EIO;
}

void put_graph(const struct input *in, size_t i)
{
    (void)!graph_title(in, i, out_color(stdout) ? TUCK_COLORED : TUCK_PLAIN, to_file, stdout);
}

/* ---- JSON ---- */

void graph_item(const struct input *in, const char *key, size_t index, size_t graph,
                tuck_print_item *out)
{
    tuck_print_item_init(out);
    out->file = in->path;
    out->key = key;
    out->index = index;
    out->graph = graph;
    out->title = tuck_doc_title(in->doc, graph);
    out->line = tuck_doc_line(in->doc, graph);
    out->rank = tuck_doc_rank(in->doc, graph);
}

void graph_list_begin(struct graph_list *l, const struct input *in, const char *key, bool many)
{
    *l = (struct graph_list){.in = in, .key = key, .many = many};
}

void graph_list_item(struct graph_list *l, size_t graph, tuck_print_options *how,
                     tuck_print_item *item)
{
    if (!l->many)
        return;
    graph_item(l->in, l->key, l->n++, graph, item);
    how->item = item;
}

int graph_list_show(struct graph_list *l, size_t graph, int64_t world, tuck_print_options *how,
                    result_print *fn, const void *result)
{
    tuck_print_item item;

    graph_list_item(l, graph, how, &item);
    if (how->item != NULL)
        item.world = world;
    int code = exit_code_of(fn(result, how, to_file, stdout));
    how->item = NULL;
    return code;
}

void graph_list_end(struct graph_list *l)
{
    if (l->n > 0)
        (void)!tuck_print_items_end(to_file, stdout);
}

int graph_only_one(const struct input *in, const char *what, size_t from, size_t to)
{
    if (to - from == 1)
        return EXIT_FINE;
    fprintf(stderr, "tuck: %s is for one graph, and %s has %zu; --graph picks one\n", what,
            in->path, to - from);
    return EXIT_USAGE;
}

/* ---- names in options ---- */

/* Item number k of a graph's groups or inputs; NULL after the last. */
typedef const char *item_name(const tuck_graph *g, size_t k);

static const char *group_name(const tuck_graph *g, size_t k)
{
    return k < tuck_graph_group_count(g) ? tuck_graph_group_name(g, k) : NULL;
}

static const char *input_name(const tuck_graph *g, size_t k)
{
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
        if (tuck_node_kind(g, n) == TUCK_PLACEHOLDER && k-- == 0)
            return tuck_node_name(g, n);
    return NULL;
}

struct names {
    const struct input *in;
    item_name *at;
};

/* Names of all chosen graphs, one after the other, for tuck_suggest(). */
static const char *any_name(const void *ctx, size_t i)
{
    const struct names *x = ctx;
    size_t from, to;

    if (input_range(x->in, &from, &to) != EXIT_FINE)
        return NULL;
    for (size_t g = from; g < to; g++) {
        size_t n = 0;
        const char *s;
        while ((s = x->at(tuck_doc_graph(x->in->doc, g), n)) != NULL && n < i)
            n++;
        if (s != NULL)
            return s;
        i -= n;
    }
    return NULL;
}

static bool is_there(const struct names *x, const char *name)
{
    size_t from, to;
    const char *s;

    if (input_range(x->in, &from, &to) != EXIT_FINE)
        return false;
    for (size_t g = from; g < to; g++)
        for (size_t k = 0; (s = x->at(tuck_doc_graph(x->in->doc, g), k)) != NULL; k++)
            if (strcmp(s, name) == 0)
                return true;
    return false;
}

static int check_names(const struct names *x, const char *option, const char *what,
                       const char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_there(x, name[i]))
            continue;
        const char *near = tuck_suggest(name[i], any_name, x);
        fprintf(stderr, "tuck: %s: %s has no %s '%s'", option, x->in->path, what, name[i]);
        if (near != NULL)
            fprintf(stderr, "; did you mean '%s'?", near);
        else if (any_name(x, 0) != NULL)
            fprintf(stderr, "; there is '%s'%s", any_name(x, 0),
                    any_name(x, 1) != NULL ? " and more" : "");
        fputc('\n', stderr);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

int graph_check_groups(const struct input *in, const char *option, const char *const *name,
                       size_t n)
{
    return check_names(&(struct names){in, group_name}, option, "group", name, n);
}

int graph_check_inputs(const struct input *in, const char *option, const char *const *name,
                       size_t n)
{
    return check_names(&(struct names){in, input_name}, option, "input", name, n);
}

bool graph_go_on(int code)
{
    return code == EXIT_FINE || code == EXIT_REFUSED;
}

int graph_with(const struct input *in, size_t i, int code, int now)
{
    bool step = in->job != NULL && in->doc == tuck_job_steps(in->job);

    if (now == EXIT_REFUSED && step && tuck_doc_rank(in->doc, i) >= 0)
        fprintf(stderr, "  note: the step of rank %ld is left out\n",
                (long)tuck_doc_rank(in->doc, i));
    else if (now == EXIT_REFUSED && tuck_doc_count(in->doc) > 1)
        fprintf(stderr, "  note: graph %zu of %zu is left out\n", i, tuck_doc_count(in->doc));
    return now == EXIT_FINE ? code : now;
}
