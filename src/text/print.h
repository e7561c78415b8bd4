/* Inside the printer: what print.c and print_exec.c share. */
#ifndef TUCK_TEXT_PRINT_H
#define TUCK_TEXT_PRINT_H

#include "graph/graph.h"

struct open_value {
    const tuck_value *end; /* behind its last item */
    uint32_t n;            /* items printed */
    uint8_t kind;
    bool keyed; /* a keyword was printed, its value comes next */
};

struct printer {
    struct mem *mem;
    struct buf *b;
    tuck_form form;
    bool around; /* the script around the graph is printed, too */
    VEC(struct open_value) open;
    VEC(uint32_t) last;           /* per node: the last statement that mentions it */
    VEC(const tuck_graph *) todo; /* nested graphs still to print, … */
    VEC(uint32_t) todo_depth;     /* … and how deep */
};

void print_value(struct printer *p, const tuck_graph *g, const tuck_value *v);

/* print_exec.c: the header, or false and a diagnostic where there can be no such text. */
bool exec_header(struct printer *p, const tuck_graph *const *graphs, size_t n, tuck_diags *diags);

#endif
