#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* ---- options given twice ---- */

enum { OPTIONS_MOST = 128 };

struct table {
    const struct argp_option *from[OPTIONS_MOST];
    struct option longs[OPTIONS_MOST + 1];
    char shorts[3 * OPTIONS_MOST + 1];
    int n;
};

/* Parsers nest three deep: the recursion is over a command's tables, not over input. */
static void collect(const struct argp *argp, struct table *t)
{
    for (const struct argp_option *o = argp->options; o != NULL && (o->name || o->key || o->doc);
         o++) {
        if (o->name == NULL || t->n == OPTIONS_MOST)
            continue;
        t->from[t->n] = o;
        t->longs[t->n] = (struct option){o->name, o->arg ? required_argument : no_argument, NULL,
                                         OPTIONS_MOST + 1000 + t->n};
        if (o->key > 0 && o->key < 128) {
            char one[4] = {(char)o->key, o->arg ? ':' : '\0', '\0'};
            strcat(t->shorts, one);
        }
        t->n++;
    }
    for (const struct argp_child *c = argp->children; c != NULL && c->argp != NULL; c++)
        collect(c->argp, t);
}

static int place_of(const struct table *t, int key)
{
    if (key >= OPTIONS_MOST + 1000)
        return key - OPTIONS_MOST - 1000;
    for (int i = 0; i < t->n; i++)
        if (t->from[i]->key == key)
            return i;
    return -1;
}

/* Reads the words as argp will. Errors are left to argp. */
static const struct argp_option *given_twice(const struct argp *argp, int argc, char **argv)
{
    struct table t = {.n = 0};
    bool seen[OPTIONS_MOST] = {false};
    char **words = calloc((size_t)argc + 1, sizeof(*words));
    const struct argp_option *twice = NULL;
    int key;

    if (words == NULL)
        return NULL;
    memcpy(words, argv, (size_t)argc * sizeof(*words)); /* getopt reorders them */
    collect(argp, &t);
    opterr = 0;
    optind = 0;
    while (twice == NULL && (key = getopt_long(argc, words, t.shorts, t.longs, NULL)) != -1) {
        int i = key == '?' ? -1 : place_of(&t, key);
        if (i >= 0 && seen[i] && !(t.from[i]->flags & OPTION_MANY))
            twice = t.from[i];
        if (i >= 0)
            seen[i] = true;
    }
    optind = 0;
    opterr = 1;
    free(words);
    return twice;
}

void options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    const struct argp_option *twice = given_twice(argp, argc, argv);

    if (twice != NULL) {
        fprintf(stderr,
                "%s: --%s is given twice\n"
                "Try `%s --help' or `%s --usage' for more information.\n",
                argv[0], twice->name, argv[0], argv[0]);
        exit(EXIT_USAGE);
    }
    argp_parse(argp, argc, argv, 0, NULL, input);
}

/* ---- values ---- */

int64_t option_number(struct argp_state *state, const char *what, const char *arg, int64_t low,
                      int64_t high)
{
    char *end;

    errno = 0;
    long long v = strtoll(arg, &end, 10);
    if (end == arg || *end != '\0' || v < low || (errno != 0 && v < 0))
        argp_error(state, "%s must be a number from %lld on, found '%s'", what, (long long)low,
                   arg);
    if (errno != 0 || v > high)
        argp_error(state, "%s is at most %lld, found '%s'", what, (long long)high, arg);
    return v;
}

double option_factor(struct argp_state *state, const char *what, const char *arg, double most)
{
    char *end;
    double f = strtod(arg, &end);

    if (end == arg || strcmp(end, "x") != 0 || !(f > 0) || f > most)
        argp_error(state, "%s, found '%s'", what, arg);
    return f;
}

void option_form(struct argp_state *state, int *form, int chosen)
{
    if (*form != 0 && *form != chosen)
        argp_error(state, "one form at a time");
    *form = chosen;
}
