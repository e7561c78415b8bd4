/* Internals of the printer, shared by print.c and print_exec.c. */
#ifndef TUCK_TEXT_PRINT_H
#define TUCK_TEXT_PRINT_H

#include "graph/graph.h"

struct open_value {
    const tuck_value *end; /* after its last item */
    uint32_t n;            /* items printed */
    uint8_t kind;
    bool keyed; /* a keyword was printed; its value comes next */
};

struct printer {
    struct mem *mem;
    struct buf *b;
    tuck_form form;
    bool around; /* also print the script around the graph */
    VEC(struct open_value) open;
    VEC(uint32_t) last;           /* by node: the last statement that mentions it */
    VEC(const tuck_graph *) todo; /* nested graphs still to print */
    VEC(uint32_t) todo_depth;     /* their depths */
};

void print_value(struct printer *p, const tuck_graph *g, const tuck_value *v);

/* In print_exec.c: prints the header; false and a diagnostic if there can be no such text. */
bool exec_header(struct printer *p, const tuck_graph *const *graphs, size_t n, tuck_diags *diags);

#endif
