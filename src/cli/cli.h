/* What the sub-commands share. Only code in this folder prints and decides exit codes. */
#ifndef TUCK_CLI_CLI_H
#define TUCK_CLI_CLI_H

#include <argp.h>

#include "cli/options.h"
#include "cli/out.h"
#include "cli/output.h"
#include "tuck_experimental.h"

/* One exit code a kind of failure; `tuck --help` prints them. */
enum {
    EXIT_FINE = 0,
    EXIT_FOUND = 1, /* the command ran and what it looks for is there: lint errors */
    EXIT_USAGE = 2,
    EXIT_INPUT = 3, /* the text is not a graph, or a broken one */
    EXIT_FILE = 4,  /* a file cannot be read or written */
    EXIT_MEMORY = 5,
    EXIT_REFUSED = 6, /* there is no such output for this graph */
};

struct command {
    const char *name;
    const char *summary;               /* one line */
    int (*run)(int argc, char **argv); /* argv[0] is the command's full name, "tuck show" */
};

int cmd_show(int argc, char **argv);
int cmd_lint(int argc, char **argv);
int cmd_ops(int argc, char **argv);
int cmd_passes(int argc, char **argv);
int cmd_optimize(int argc, char **argv);
int cmd_lower(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_cost(int argc, char **argv);
int cmd_schedule(int argc, char **argv);

/* Options that every command which reads a graph accepts, as an argp child. */
struct input {
    const char *path;
    const char *graph_word; /* --graph: a number or a title; NULL: all */
    long graph;             /* which that is, -1 = all */
    long rank;              /* --rank, -1 = not given */
    const char **group;     /* --group, n_group of them */
    size_t n_group;
    tuck_instances *instances; /* of --group with several lists */
    size_t n_instances;
    const char **assume; /* --assume, n_assume of them */
    size_t n_assume;
    tuck_hint *hints; /* what the graphs know of symbols, then what --assume says */
    size_t n_hint;
    char *assumed;   /* the names in --assume, for hints */
    bool optional;   /* the command can do without a file */
    size_t n_warned; /* warnings while it was opened */
    tuck_diags *diags;
    tuck_doc *doc;
};

extern const struct argp input_argp;

struct model;

/* Read the file and apply --group and --rank; diagnostics go to stderr. An exit code. */
int input_open(struct input *in);
void input_close(struct input *in);

/* The texts of the chosen graphs say what is known of them, whatever told us. An exit code. */
int input_remember(struct input *in);

/* Was there an option about the graph, or about the machine? */
bool input_is_asked(const struct input *in);
bool model_is_asked(const struct model *m);

/* Another file, with the options of the first, to be opened; closed before the first is. */
struct input input_like(const struct input *first, const char *path);
void input_close_like(struct input *in);

/* What options may be repeated: room for one more after n items. */
void *option_grow(struct argp_state *state, void *list, size_t n, size_t size);
void option_append(struct argp_state *state, const char ***list, size_t *n, const char *arg);

/* The chosen graphs: [*from, *to). EXIT_USAGE if --graph names none of them. */
int input_range(const struct input *in, size_t *from, size_t *to);

/* Infer every chosen graph; `check` reports where annotations disagree. An exit code. */
int input_infer(struct input *in, bool check);

/* What every command that prices something accepts, as an argp child:
 * --cluster, --model, --profile. */
struct model {
    const char *cluster_name; /* a preset or a file; NULL: by the graph */
    const char *profile_path;
    tuck_cost_model kind;
    bool strict;     /* what rests on an assumption is refused */
    bool any_name;   /* the names of a profile may be those of other files */
    bool keep_order; /* --keep-order: of commands that change orders */
    bool contention; /* --contention: of commands that simulate */
    tuck_cluster *cluster;
    tuck_cluster **old; /* defaults of other graphs: simulations may still use them */
    size_t n_old;
    tuck_profile *profile;
    const char *warned[64]; /* groups whose assumed size was reported */
    size_t n_warned;
};

extern const struct argp model_argp;

/* Read what the options name; without --cluster the cluster is NULL until model_for()
 * makes it. An exit code. */
int model_open(struct model *m, tuck_diags *diags);
/* The cluster for this graph, which must have been inferred: the one named, or the default,
 * `*assumed` then. Then model_groups(). */
int model_for(struct model *m, const struct input *in, const tuck_graph *g, bool *assumed);
/* Groups whose size is not known: a warning each, with what is assumed; an error with --strict,
 * which is the exit code. */
int model_groups(struct model *m, const struct input *in, const tuck_graph *g);
void model_forget(struct model *m); /* the default that was made for another graph */
void model_close(struct model *m);

/* Both, and which graphs: input_open(), input_range(), model_open(). An exit code. */
int model_input_open(struct model *m, struct input *in, size_t *from, size_t *to);
/* The machine, with what is known of symbols in this file; what it points to lives as long as
 * both. */
void model_public(const struct model *m, const struct input *in, tuck_machine *out);
/* "GRAPH on MACHINE", the title of tables. */
void put_machine(const struct model *m, const tuck_graph *g, bool assumed);

/* --json and --top, of commands that list things. */
struct listing {
    bool json;
    uint32_t top;
};
/* … as the library prints results; color: of standard output. */
void listing_how(const struct listing *l, tuck_print_options *out);
enum { OPT_TOP = 0x7F0, OPT_KEEP_ORDER };
/* For argp's parse functions to end with. */
error_t listing_parse(struct listing *l, int key, char *arg, struct argp_state *state);

/* A graph on a machine, and a word more: what tuck explain and tuck diff are asked. */
struct question {
    struct input in;
    struct model model;
    struct listing list;
    const char *word;                       /* after the file; NULL: none */
    const char *graph_before, *graph_after; /* of tuck diff */
};
extern const struct argp_child question_children[];
/* The same; `most`: what is said where there are more words, "one node only". */
error_t question_parse(struct question *q, const char *most, int key, char *arg,
                       struct argp_state *state);

/* Warn about groups whose size nothing says. How many warnings. */
size_t input_warn_groups(struct input *in);

void print_diags(tuck_diags *d); /* to stderr, and forget them */
void keep_diags(
    tuck_diags
        *all); /* from now on what would be printed is collected there instead; NULL: no more */
int exit_code_of(tuck_status st);
int refused_or(tuck_status st); /* the same, where EINVAL says that the graph has no such thing */

#endif
