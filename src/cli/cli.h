/* What the subcommands share. Only code in this folder prints and decides exit codes. */
#ifndef TUCK_CLI_CLI_H
#define TUCK_CLI_CLI_H

#include <argp.h>

#include "cli/options.h"
#include "cli/out.h"
#include "cli/output.h"
#include "tuck_experimental.h"
#include "tuck_run.h"

/* One exit code per kind of failure; `tuck --help` prints them. */
enum {
    EXIT_FINE = 0,
    EXIT_FOUND = 1, /* the command found problems: lint errors */
    EXIT_USAGE = 2,
    EXIT_INPUT = 3, /* the text is not a graph, or is invalid */
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
int cmd_trace(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

/* Reads the traces of all ranks; diagnostics go to stderr. Returns an exit code. */
int traces_open(const char *const *path, size_t n, tuck_diags *diags, tuck_traces **out);

/* Options of every command that reads a graph, as an argp child. */
struct input {
    const char *path;
    const char *graph_word; /* --graph: a number or a title; NULL means all */
    long graph;             /* its index, -1 means all */
    long rank;              /* --rank, -1 if not given */
    const char **group;     /* --group, n_group entries */
    size_t n_group;
    tuck_instances *instances; /* from --group with several lists */
    size_t n_instances;
    const char **assume; /* --assume, n_assume entries */
    size_t n_assume;
    tuck_hint *hints; /* values of symbols from --assume */
    size_t n_hint;
    char *assumed; /* the names in --assume, for hints */
    bool several;  /* the command reads other files, too: options may be about those */
    bool optional; /* the command also works without a file */
    enum { JOB_PARTS, JOB_STEPS, JOB_NOT } job_as; /* what of a job the command is about */
    bool job_logs;                                 /* a log of several graphs is a job, too */
    bool job_many;                                 /* several paths are one job */
    bool each;                                     /* --each: its graphs one by one */
    const char **more;                             /* further paths of a job */
    size_t n_more;
    size_t first, count; /* the graphs of --rank in a job; count 0: all */
    tuck_job *job;       /* NULL if the input is one text; owns doc */
    size_t n_warned;     /* number of warnings while opening */
    tuck_diags *diags;
    tuck_doc *doc;
};

extern const struct argp input_argp;

struct model;

/* Reads the file and applies --group and --rank; diagnostics go to stderr. Returns an exit code. */
int input_open(struct input *in);
void input_close(struct input *in);

/* Makes the texts of the chosen graphs contain what is known about them. Returns an exit code. */
int input_remember(struct input *in);

/* Was an option about the graph or the machine given? */
bool input_is_asked(const struct input *in);
bool model_is_asked(const struct model *m);

/* Another file, to be opened with the options of the first; close it before the first. */
struct input input_like(const struct input *first, const char *path);
void input_close_like(struct input *in);

/* For options that may be repeated: makes room for one more after n items. */
void *option_grow(struct argp_state *state, void *list, size_t n, size_t size);
void option_append(struct argp_state *state, const char ***list, size_t *n, const char *arg);

/* The chosen graphs: [*from, *to). EXIT_USAGE if --graph names none of them. */
int input_range(const struct input *in, size_t *from, size_t *to);

/* Infers types of every chosen graph; `check` reports contradictions to annotations. Returns an
 * exit code. */
int input_infer(struct input *in, bool check);

/* Options of every command that estimates times, as an argp child: --cluster, --model,
 * --profile. */
struct model {
    const char *cluster_name; /* a preset or a file; NULL: chosen by the graph */
    const char *profile_path;
    tuck_cost_model kind;
    bool strict;       /* assumptions are refused */
    bool any_name;     /* names in a profile may belong to other files */
    bool keep_order;   /* --keep-order: for commands that change orders */
    bool contention;   /* --contention: for commands that simulate */
    const char **symm; /* --symm-mem, n_symm groups */
    size_t n_symm;
    tuck_cluster *cluster;
    tuck_cluster **old; /* defaults of other graphs: simulations may still use them */
    size_t n_old;
    tuck_profile *profile;
    const char **measured; /* --measured, n_measured traces */
    size_t n_measured;
    const char *provenance;
    int64_t every, rest;    /* --measured-steps */
    tuck_traces *traces;    /* read when they are first needed */
    struct model_tie *tie;  /* of the graph that model_for() was called for, and of earlier ones */
    const char *warned[64]; /* groups whose assumed size was reported */
    size_t n_warned;
};

extern const struct argp model_argp;

/* Reads what the options name; without --cluster the cluster is NULL until model_for() makes it.
 * Returns an exit code. */
int model_open(struct model *m, tuck_diags *diags);
/* The cluster for this graph, whose types must be inferred: the named one, or the default, which
 * sets *assumed. Then calls model_groups(). */
int model_for(struct model *m, const struct input *in, tuck_graph *g, bool *assumed);
/* Warns about each group of unknown size, with what is assumed; with --strict it is an error.
 * Returns an exit code. */
int model_groups(struct model *m, const struct input *in, const tuck_graph *g);
void model_forget(struct model *m); /* drops the default made for another graph */
void model_close(struct model *m);

/* Opens both and finds the graphs: input_open(), input_range(), model_open(). Returns an exit
 * code. */
int model_input_open(struct model *m, struct input *in, size_t *from, size_t *to);
/* The machine, with known values of symbols in this file; what it points to lives as long as
 * both. */
void model_public(const struct model *m, const struct input *in, tuck_machine *out);
/* "GRAPH on MACHINE", the title of tables. */
/* With --measured: how much of the graph is measured, and the measured step beside the simulated
 * one. */
void put_tie(const struct model *m, FILE *f);
/* The same as a value for JSON; NULL without --measured. */
const char *model_measured(const struct model *m);
void put_machine(const struct model *m, const tuck_graph *g, bool assumed);

/* --json and --top, for commands that print lists. */
struct listing {
    bool json;
    uint32_t top;
};
/* The same as print options of the library, with the color of standard output. */
void listing_how(const struct listing *l, tuck_print_options *out);
enum { OPT_TOP = 0x7F0, OPT_KEEP_ORDER };
/* For the end of argp's parse functions. */
error_t listing_parse(struct listing *l, int key, char *arg, struct argp_state *state);

/* A graph on a machine, and one more word: the arguments of tuck explain and tuck diff. */
struct question {
    struct input in;
    struct model model;
    struct listing list;
    const char *word;                       /* after the file; NULL if none */
    const char *graph_before, *graph_after; /* for tuck diff */
    const char *decision;                   /* for tuck explain; or NULL */
};
extern const struct argp_child question_children[];
/* The same; `most`: the error if there are more words, "one node only". */
error_t question_parse(struct question *q, const char *most, int key, char *arg,
                       struct argp_state *state);

/* Warns about groups whose size is not given. Returns the number of warnings. */
size_t input_warn_groups(struct input *in);

void print_diags(tuck_diags *d); /* prints them to stderr and clears the list */
void keep_diags(
    tuck_diags
        *all); /* from now on collects diagnostics there instead of printing; NULL ends that */
int exit_code_of(tuck_status st);
/* the same, if EINVAL means that there is no such output for the graph */
int refused_or(tuck_status st);

#endif
