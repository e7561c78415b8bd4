/* tuck passes: the table of passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "study/pass_table.h"

enum { OPT_REASONS = 0x200 };

struct passes {
    const char *name;
    bool json, reasons;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "The whole table, for other programs", 0},
    {"reasons", OPT_REASONS, NULL, 0, "The reasons for which a pass leaves a candidate alone", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct passes *p = state->input;

    switch (key) {
    case 'j': p->json = true; return 0;
    case OPT_REASONS: p->reasons = true; return 0;
    case ARGP_KEY_ARG:
        if (p->name != NULL)
            argp_error(state, "one pass only, found '%s' after '%s'", arg, p->name);
        p->name = arg;
        return 0;
    case ARGP_KEY_END:
        if (p->json + p->reasons + (p->name != NULL) > 1)
            argp_error(state, "a PASS, --json or --reasons: one of them");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "[PASS]",
    "List the passes, or the options of PASS.\vA pipeline is a list of passes, "
    "`name(option=value,option=value),name`, for `tuck optimize --passes` or a file with one pass "
    "a line. Of a list of values (50:500) the last one repeats.",
    NULL,
    NULL,
    NULL};

static void print_one(const struct pass *p)
{
    put_line(INK_HEAD, "%s", p->name);
    printf("    %s\n", p->help);
    for (uint32_t i = 0; i < p->n_options; i++) {
        const struct pass_option *o = &p->options[i];
        char head[128];

        snprintf(head, sizeof(head), "%s=%s", o->name, o->dflt);
        printf("    %-28s ", head);
        put_line(INK_DIM, "%s%s%s", o->help, o->choices ? "; one of " : "",
                 o->choices ? o->choices : "");
    }
}

static void print_table(const struct pass_table *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        print_one(t->row[i]);
    if (t->n_key > 0)
        put_line(INK_HEAD,
                 "\nKeys of PyTorch's configuration, accepted in a pipeline and by --set as "
                 "KEY=VALUE:");
    for (uint32_t i = 0; i < t->n_key; i++) {
        if (t->key[i].option != NULL && t->key[i].passes == NULL)
            continue; /* listed as an option already */
        printf("    %-52s ", t->key[i].name);
        put_line(INK_DIM, "%s", t->key[i].help);
    }
}

static void print_json(struct buf *b, const void *table)
{
    const struct pass_table *t = table;
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    json_open(&j, "passes", '[');
    for (uint32_t i = 0; i < t->n; i++) {
        const struct pass *p = t->row[i];

        json_open(&j, NULL, '{');
        json_str(&j, "name", p->name);
        json_str(&j, "help", p->help);
        json_str(&j, "level", pass_is_on_order(p) ? "schedule" : "graph");
        json_open(&j, "options", '[');
        for (size_t k = 0; k < p->n_options; k++) {
            tuck_option o;

            tuck_pass_option(i, k, &o);
            json_open(&j, NULL, '{');
            json_str(&j, "name", o.name);
            json_str(&j, "type", o.type);
            json_str(&j, "default", o.dflt);
            json_str(&j, "help", o.help);
            json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_open(&j, "keys", '[');
    for (uint32_t i = 0; i < t->n_key; i++) {
        json_open(&j, NULL, '{');
        json_str(&j, "name", t->key[i].name);
        json_str(&j, "help", t->key[i].help);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return tuck_pass_name(i);
}

int cmd_passes(int argc, char **argv)
{
    struct passes p = {.name = NULL};

    options_parse(&argp, argc, argv, &p);
    if (p.reasons) {
        for (int i = 0; i < LEFT_END; i++)
            put(INK_HEAD, "%-14s", left_reason_name((enum left_reason)i)),
                printf(" %s\n", left_reason_meaning((enum left_reason)i));
    } else if (p.json) {
        return print_through(print_json, &all_passes);
    } else if (p.name != NULL) {
        const struct pass *one = pass_find(&all_passes, p.name, strlen(p.name));
        if (one == NULL) {
            const char *near = near_name(p.name, strlen(p.name), name_at, NULL);
            fprintf(stderr, "tuck passes: unknown pass '%s'%s%s%s\n", p.name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
            return EXIT_USAGE;
        }
        print_one(one);
    } else {
        print_table(&all_passes);
    }
    return EXIT_FINE;
}
