#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"

static const struct command commands[] = {
    {"show", "what a graph is; or print it as text, code, executable Python, JSON, DOT", cmd_show},
    {"lint", "check a graph: uses, order, collectives and their waits", cmd_lint},
    {"cost", "the time of a collective on a cluster, or of every node of a graph", cmd_cost},
    {"ops", "what Tuck knows about operators", cmd_ops},
    {"passes", "the passes and their options", cmd_passes},
    {"optimize", "run passes over a graph and print it, with a report of what they did",
     cmd_optimize},
    {"lower", "lower a graph to a program: buffers, kernels, what each reads and writes",
     cmd_lower},
    {"schedule", "an order for a schedule problem or a graph, and its time and memory",
     cmd_schedule},
    {"simulate", "a graph on a machine: time, exposed communication, memory, bounds", cmd_simulate},
    {"diff",
     "two graphs of a step: what moved, merged, appeared, vanished; time and memory of both",
     cmd_diff},
    {"trace", "what a profiler recorded: steps, exposed communication, every collective",
     cmd_trace},
    {"explain", "why communication is exposed, and what would help", cmd_explain},
    {"run", "a graph on real ranks: what it returns, and its measured timeline", cmd_run},
    {"calibrate", "measure this machine: a cluster file, and how well it predicts steps",
     cmd_calibrate},
    {"verify", "two graphs on the same inputs on real ranks: do they return the same?", cmd_verify},
};

enum { N_COMMANDS = sizeof(commands) / sizeof(*commands) };

static void print_help(FILE *f)
{
    fputs("Usage: tuck COMMAND [OPTION...] [FILE...]\n"
          "Tuck tucks communication under computation: it reads the graph of a training step\n"
          "as PyTorch prints it.\n\nCommands:\n",
          f);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs(
        "  help       the options of a command: tuck help show\n\n"
        "  -?, --help     this text\n"
        "  -V, --version  the version\n"
        "  --color WHEN   color in tables and messages: auto (on a terminal, unless NO_COLOR is\n"
        "                 set), always, never; of every command\n"
        "  --width N      shorten names so that tables have at most N columns, 0: never; else the\n"
        "                 variable COLUMNS or the terminal says it; of every command\n\n"
        "A FILE of `-` is standard input.\n\n"
        "Exit codes: 0 fine; 1 problems found (lint); 2 wrong usage; 3 invalid input text;\n"
        "4 a file cannot be read or written; 5 out of memory; 6 refused: there is no such\n"
        "output for this graph.\n",
        f);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const char *command_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < N_COMMANDS ? commands[i].name : NULL;
}

static int unknown(const char *name)
{
    const char *near = tuck_suggest(name, command_name, NULL);

    fprintf(stderr, "tuck: unknown command '%s'", name);
    if (near != NULL)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs("\nTry `tuck --help'.\n", stderr);
    return EXIT_USAGE;
}

static int run(const struct command *c, int argc, char **argv)
{
    char name[64];

    snprintf(name, sizeof(name), "tuck %s", c->name);
    argv[0] = name;
    return c->run(argc, argv);
}

int main(int argc, char **argv)
{
    output_start();
    argp_err_exit_status = EXIT_USAGE;
    if (!out_options(&argc, argv))
        return EXIT_USAGE;
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-?") == 0 || strcmp(word, "-h") == 0 ||
        (strcmp(word, "help") == 0 && argc == 2)) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("tuck %s\n", tuck_version());
        return EXIT_FINE;
    }
    if (strcmp(word, "help") == 0) {
        char help[] = "--help";
        char *args[] = {argv[0], help, NULL};
        const struct command *c = find(argv[2]);
        return c ? run(c, 2, args) : unknown(argv[2]);
    }
    const struct command *c = find(word);
    return c ? run(c, argc - 1, argv + 1) : unknown(word);
}
