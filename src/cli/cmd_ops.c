/* tuck ops: the operator table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "op/ops.h"

struct ops {
    const char *name;
    bool json;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "As JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ops *o = state->input;

    switch (key) {
    case 'j': o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->name != NULL)
            argp_error(state, "one name only");
        o->name = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "[NAME]",
    "The operators Tuck knows, one a line: name, class, what it reads, writes and returns. With "
    "NAME "
    "(aten.mm.default, torch.ops.aten.mm.default, aten.mm, or a part of a name) only those.",
    NULL,
    NULL,
    NULL};

static void flags_of(const struct op_row *row, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (unsigned i = 0; op_flag_name(i) != NULL; i++)
        if (row->flags >> i & 1 && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", op_flag_name(i));
}

static void put_one(const struct op_row *row)
{
    char flags[512];

    flags_of(row, flags, sizeof(flags));
    put_line(INK_HEAD, "%s", row->name);
    printf("  class      %s: %s\n", op_class_name((enum op_class)row->cls),
           op_class_meaning((enum op_class)row->cls));
    if (row->symbol != NULL)
        printf("  symbol     %s\n", row->symbol);
    printf("  signature  %s\n", row->signature);
    if (row->lies != NULL)
        put_line(INK_LIMIT, "  in truth   %s", row->lies);
    if (*flags)
        printf("  flags      %s\n", flags);
    printf("  shape      %s: %s\n", op_shape_name((enum op_shape)row->shape),
           op_shape_meaning((enum op_shape)row->shape));
    if (row->flops != OP_FLOPS_none)
        printf("  flops      %s: %s\n", op_flops_name((enum op_flops)row->flops),
               op_flops_meaning((enum op_flops)row->flops));
    printf("  moves      %s: %s\n", op_moves_name((enum op_moves)row->moves),
           op_moves_meaning((enum op_moves)row->moves));
}

static void json_one(struct json_out *j, const struct op_row *row)
{
    json_open(j, NULL, '{');
    j->flat = true;
    json_str(j, "name", row->name);
    json_str(j, "class", op_class_name((enum op_class)row->cls));
    json_str(j, "signature", row->signature);
    if (row->lies != NULL)
        json_str(j, "lies", row->lies);
    json_open(j, "flags", '[');
    for (unsigned i = 0; op_flag_name(i) != NULL; i++)
        if (row->flags >> i & 1)
            json_str(j, NULL, op_flag_name(i));
    json_close(j, ']');
    json_str(j, "shape", op_shape_name((enum op_shape)row->shape));
    json_str(j, "flops", op_flops_name((enum op_flops)row->flops));
    json_str(j, "moves", op_moves_name((enum op_moves)row->moves));
    json_close(j, '}');
    j->flat = false;
}

static bool wanted(const struct ops *o, uint32_t op)
{
    return o->name == NULL || strstr(op_at(op)->name, o->name) != NULL;
}

static void put_json(struct buf *b, const void *ctx)
{
    const struct ops *o = ctx;
    struct json_out j;
    uint32_t exact = o->name ? op_find(o->name, strlen(o->name)) : 0;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    json_open(&j, "operators", '[');
    for (uint32_t op = 1; op <= op_count(); op++)
        if (exact ? op == exact : wanted(o, op))
            json_one(&j, op_at(op));
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static int list_json(const struct ops *o)
{
    bool found = o->name == NULL || op_find(o->name, strlen(o->name)) != 0;
    int code = print_through(put_json, o);

    for (uint32_t op = 1; op <= op_count() && !found; op++)
        found = wanted(o, op);
    return code != EXIT_FINE ? code : found ? EXIT_FINE : EXIT_FOUND;
}

int cmd_ops(int argc, char **argv)
{
    struct ops o = {.name = NULL};
    size_t found = 0;

    options_parse(&argp, argc, argv, &o);
    if (o.json)
        return list_json(&o);
    uint32_t exact = o.name ? op_find(o.name, strlen(o.name)) : 0;
    if (exact != 0) {
        put_one(op_at(exact));
        return EXIT_FINE;
    }
    for (uint32_t op = 1; op <= op_count(); op++)
        if (wanted(&o, op)) {
            const struct op_row *row = op_at(op);
            put(INK_HEAD, "%-50s", row->name);
            printf(" %-16s", op_class_name((enum op_class)row->cls));
            put_line(INK_DIM, " %s", row->signature);
            found++;
        }
    if (found == 0) {
        fprintf(stderr,
                "tuck: no operator '%s' in the table; unknown ones are kept and never "
                "moved across\n",
                o.name);
        return EXIT_FOUND;
    }
    return EXIT_FINE;
}
