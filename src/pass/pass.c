#include "pass/pass.h"

#include <stdarg.h>

/* Where a node was read from; 0 means the whole graph. */
static struct diag_pos place_of(const tuck_graph *g, uint32_t node, struct diag_source *src)
{
    struct diag_pos pos = {.source = src};

    *src = (struct diag_source){.file = graph_str(g, g->source_name)};
    if (node != 0) {
        pos.line = node_at(g, node)->line;
        pos.column = node_at(g, node)->column;
    }
    return pos;
}

tuck_status pass_fail(struct pass_run *r, uint32_t node, const char *fmt, ...)
{
    struct diag_source src;
    struct diag_pos pos = place_of(r->g, node, &src);
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, pos, NULL, fmt, ap);
    va_end(ap);
    return TUCK_EINVAL;
}

void tuck_diags_add(tuck_diags *d, tuck_severity severity, const tuck_graph *g, tuck_node n,
                    const char *message)
{
    struct diag_source src;
    bool known = g != NULL && n.id < g->node.len && node_at(g, n.id)->kind != 0;

    diag_add(d, severity, g != NULL ? place_of(g, known ? n.id : 0, &src) : NOWHERE, NULL, "%s",
             message != NULL ? message : "");
}
