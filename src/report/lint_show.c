#include "report/lint_show.h"

#include "base/color.h"
#include "base/json.h"

void lint_sum(const tuck_lint_sum *sum, struct buf *out)
{
    size_t errors = sum->errors, warnings = sum->warnings;

    buf_printf(out, "%zu graph%s, %zu nodes: ", sum->graphs, sum->graphs == 1 ? "" : "s",
               sum->nodes);
    ink_printf(out, errors ? INK_BAD : INK_GOOD, "%zu error%s", errors, errors == 1 ? "" : "s");
    buf_str(out, ", ");
    ink_line(out, warnings ? INK_LIMIT : INK_GOOD, "%zu warning%s", warnings,
             warnings == 1 ? "" : "s");
}

static void json_diag(struct json_out *j, const tuck_diag *d)
{
    json_open(j, NULL, '{');
    json_str(j, "severity", d->severity == TUCK_ERROR ? "error" : "warning");
    json_str(j, "file", d->file);
    if (d->line > 0)
        json_int(j, "line", d->line);
    if (d->line > 0 && d->column > 0)
        json_int(j, "column", d->column);
    json_str(j, "message", d->message);
    if (d->note != NULL)
        json_str(j, "note", d->note);
    json_close(j, '}');
}

void lint_json(const tuck_lint_sum *sum, const tuck_diags *found, struct buf *out)
{
    size_t n = tuck_diags_count(found), errors = tuck_diags_errors(found);
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "file", sum->file);
    json_int(&j, "graph_count", (int64_t)sum->graphs);
    json_int(&j, "node_count", (int64_t)sum->nodes);
    json_int(&j, "errors", (int64_t)errors);
    json_int(&j, "warnings", (int64_t)(n - errors));
    json_open(&j, "diagnostics", '[');
    for (size_t i = 0; i < n; i++)
        json_diag(&j, tuck_diags_at(found, i));
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
