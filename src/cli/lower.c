/* tuck lower: the program that a graph becomes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lower/program.h"
#include "memory/plan.h"

enum { OPT_NO_FUSE = 0x400, OPT_CLONES, OPT_SELECT, OPT_THRESHOLD, OPT_SYMM, OPT_KEEP, OPT_FREE };

struct lower_command {
    struct input in;
    struct lower_options o;
    const char **symm, **keep, **let_go;
};

static const struct argp_option options[] = {
    {"no-fuse", OPT_NO_FUSE, NULL, 0, "One op a node: no fused loops", 0},
    {"keep-clones", OPT_CLONES, NULL, 0,
     "Clone the operand of every all-reduce, as PyTorch's lowering does", 0},
    {"auto-select", OPT_SELECT, NULL, 0,
     "Small all-reduces become one-shot ones over symmetric memory", 0},
    {"one-shot-threshold", OPT_THRESHOLD, "BYTES", 0, "... up to this size (131072)", 0},
    {"symm-mem", OPT_SYMM, "GROUP", 0, "A group with symmetric memory; '*': all of them", 0},
    {"keep", OPT_KEEP, "INPUT", 0, "An input that the caller keeps: it is never freed", 0},
    {"free", OPT_FREE, "INPUT", 0, "An input that the caller lets go of", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static void append(struct argp_state *state, const char ***list, size_t *n, const char *arg)
{
    const char **more = realloc(*list, (*n + 1) * sizeof(*more));

    if (more == NULL)
        argp_failure(state, EXIT_MEMORY, ENOMEM, "options");
    *list = more;
    more[(*n)++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct lower_command *c = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &c->in; break;
    case OPT_NO_FUSE: c->o.no_fuse = true; break;
    case OPT_CLONES: c->o.keep_clones = true; break;
    case OPT_SELECT: c->o.auto_select = true; break;
    case OPT_THRESHOLD:
        errno = 0;
        c->o.one_shot_threshold = strtoll(arg, &end, 10);
        if (errno != 0 || *end != '\0' || end == arg || c->o.one_shot_threshold < 0)
            argp_error(state, "--one-shot-threshold must be a number of bytes, found '%s'", arg);
        break;
    case OPT_SYMM: append(state, &c->symm, &c->o.n_symm_group, arg); break;
    case OPT_KEEP: append(state, &c->keep, &c->o.n_keep, arg); break;
    case OPT_FREE: append(state, &c->let_go, &c->o.n_free, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE",
    "Print the program that each graph of FILE becomes: its buffers with layout and bytes, its ops "
    "with what they read, write and mutate. docs/lowering.md explains the text.",
    children,
    NULL,
    NULL};

struct print_args {
    const struct program *p;
    struct buf b;
};

static void do_print(void *arg)
{
    struct print_args *x = arg;

    program_print(x->p, &x->b);
    buf_flush(&x->b);
}

static int print(const struct program *p)
{
    struct mem m;
    struct print_args x = {.p = p};

    mem_init(&m, NULL);
    buf_to(&x.b, &m, to_stdout, NULL);
    bool ok = mem_guard(&m, do_print, &x);
    buf_destroy(&x.b);
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

int cmd_lower(int argc, char **argv)
{
    struct lower_command c = {.symm = NULL};
    size_t from = 0, to = 0;

    lower_defaults(&c.o);
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    int code = input_open(&c.in);
    if (code == EXIT_FINE)
        code = input_range(&c.in, &from, &to);
    c.o.symm_group = c.symm;
    c.o.keep = c.keep;
    c.o.free = c.let_go;
    c.o.hint = c.in.hint;
    c.o.n_hint = c.in.n_hint;
    for (size_t i = from; code == EXIT_FINE && i < to; i++) {
        struct program *p;
        tuck_status st = lower_graph(tuck_doc_graph(c.in.doc, i), &c.o, c.in.diags, &p);

        print_diags(c.in.diags);
        code = st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
        if (code != EXIT_FINE)
            break;
        code = exit_code_of(memory_plan(p, NULL));
        if (code == EXIT_FINE)
            code = print(p);
        program_free(p);
    }
    free(c.symm);
    free(c.keep);
    free(c.let_go);
    input_close(&c.in);
    return code;
}
