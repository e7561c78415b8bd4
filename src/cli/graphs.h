/* Files with several graphs: choosing one, titles above tables, and one JSON document for all. */
#ifndef TUCK_CLI_GRAPHS_H
#define TUCK_CLI_GRAPHS_H

#include "cli/cli.h"

/* Finds the graph that a word means: its number, title or name, or a part of only one title.
 * Returns an exit code. */
int graph_pick(const struct input *in, const char *option, const char *word, long *graph);

/* Prints "graph 1 of 3: "AFTER POST GRAD", rank 0, in.txt:12" above a table; nothing if the file
 * has one graph. */
void put_graph(const struct input *in, size_t i);
tuck_status graph_title(const struct input *in, size_t i, tuck_color color, tuck_write_fn write,
                        void *ctx);

/* What a JSON document says about its graph: number `index` of a list. */
void graph_item(const struct input *in, const char *key, size_t index, size_t graph,
                tuck_print_item *out);

/* JSON documents one after another: a single one is printed alone, several become {"schema": 1,
 * "file": …, KEY: […]}. */
struct graph_list {
    const struct input *in;
    const char *key;
    bool many;
    size_t n; /* printed so far */
};
void graph_list_begin(struct graph_list *l, const struct input *in, const char *key, bool many);
/* The same for what the library prints: sets the item of `how` if there are several documents. */
void graph_list_item(struct graph_list *l, size_t graph, tuck_print_options *how,
                     tuck_print_item *item);
/* The same for results of the library. */
typedef tuck_status result_print(const void *result, const tuck_print_options *how,
                                 tuck_write_fn write, void *ctx);
int graph_list_show(struct graph_list *l, size_t graph, int64_t world, tuck_print_options *how,
                    result_print *fn, const void *result);
void graph_list_end(struct graph_list *l);

/* EXIT_USAGE, with suggestions, if a name in an option is not that of a group, or of an input, in
 * any graph. */
int graph_check_groups(const struct input *in, const char *option, const char *const *name,
                       size_t n);
int graph_check_inputs(const struct input *in, const char *option, const char *const *name,
                       size_t n);

/* One graph of several after another: a graph that is refused does not hide the others. `code` is
 * that of the graphs so far, `now` that of graph i; the result is that of all of them. */
bool graph_go_on(int code);
int graph_with(const struct input *in, size_t i, int code, int now);

/* EXIT_USAGE, with the reason, if `what` is for one graph and there are several. */
int graph_only_one(const struct input *in, const char *what, size_t from, size_t to);

#endif
