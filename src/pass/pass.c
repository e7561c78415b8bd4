#include "pass/pass.h"

#include <stdarg.h>

tuck_status pass_fail(struct pass_run *r, uint32_t node, const char *fmt, ...)
{
    const tuck_graph *g = r->g;
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    struct diag_pos pos = {.source = &src};
    va_list ap;

    if (node != 0) {
        pos.line = node_at(g, node)->line;
        pos.column = node_at(g, node)->column;
    }
    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, pos, NULL, fmt, ap);
    va_end(ap);
    return TUCK_EINVAL;
}
