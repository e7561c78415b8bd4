#include "report/ops_show.h"

#include <string.h>

#include "base/layout.h"
#include "base/json.h"
#include "op/ops.h"

static uint32_t exactly(const char *name)
{
    return name != NULL ? op_find(name, strlen(name)) : 0;
}

static bool matches(const char *name, uint32_t exact, uint32_t op)
{
    return exact != 0 ? op == exact : name == NULL || strstr(op_at(op)->name, name) != NULL;
}

uint32_t ops_matching(const char *name)
{
    uint32_t exact = exactly(name), n = 0;

    for (uint32_t op = 1; op <= op_count(); op++)
        n += matches(name, exact, op);
    return n;
}

static void put_flags(const struct op_row *row, struct buf *out)
{
    const char *between = "  flags      ";

    if (row->flags == 0)
        return;
    for (unsigned i = 0; op_flag_name(i) != NULL; i++)
        if (row->flags >> i & 1) {
            buf_printf(out, "%s%s", between, op_flag_name(i));
            between = " ";
        }
    buf_chr(out, '\n');
}

static void put_one(const struct op_row *row, struct buf *out)
{
    ink_line(out, INK_HEAD, "%s", row->name);
    wrap_fact(out, 10, "class", "%s: %s", op_class_name((enum op_class)row->cls),
              op_class_meaning((enum op_class)row->cls));
    if (row->symbol != NULL)
        wrap_fact(out, 10, "symbol", "%s", row->symbol);
    wrap_fact(out, 10, "signature", "%s", row->signature);
    if (row->lies != NULL)
        wrap_fact(out, 10, "corrected", "%s", row->lies);
    put_flags(row, out);
    wrap_fact(out, 10, "shape", "%s: %s", op_shape_name((enum op_shape)row->shape),
              op_shape_meaning((enum op_shape)row->shape));
    if (row->flops != OP_FLOPS_none)
        wrap_fact(out, 10, "flops", "%s: %s", op_flops_name((enum op_flops)row->flops),
                  op_flops_meaning((enum op_flops)row->flops));
    wrap_fact(out, 10, "moves", "%s: %s", op_moves_name((enum op_moves)row->moves),
              op_moves_meaning((enum op_moves)row->moves));
    if (row->kernel != OP_KERNEL_none)
        wrap_fact(out, 10, "kernel", "%s: %s", op_kernel_name((enum op_kernel)row->kernel),
                  op_kernel_meaning((enum op_kernel)row->kernel));
}

void ops_table(const char *name, struct buf *out)
{
    uint32_t exact = exactly(name);

    if (exact != 0) {
        put_one(op_at(exact), out);
        return;
    }
    for (uint32_t op = 1; op <= op_count(); op++) {
        const struct op_row *row = op_at(op);

        if (!matches(name, 0, op))
            continue;
        ink_printf(out, INK_HEAD, "%-50s", row->name);
        buf_printf(out, " %s\n", op_class_name((enum op_class)row->cls));
        wrap_line(out, INK_DIM, LAYOUT_SAY, "%s", row->signature);
    }
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
    json_str(j, "kernel", op_kernel_name((enum op_kernel)row->kernel));
    json_close(j, '}');
    j->flat = false;
}

void ops_json(const char *name, struct buf *out)
{
    uint32_t exact = exactly(name);
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_open(&j, "operators", '[');
    for (uint32_t op = 1; op <= op_count(); op++)
        if (matches(name, exact, op))
            json_one(&j, op_at(op));
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
