/* Descriptions of graphs: a table and JSON. */
#ifndef TUCK_REPORT_DESCRIBE_SHOW_H
#define TUCK_REPORT_DESCRIBE_SHOW_H

#include "base/json.h"
#include "study/describe.h"

/* One graph of a document. */
struct described {
    const tuck_doc *doc;
    const char *file;
    size_t graph;
    struct description d;
};

void describe_table(const struct described *x, struct buf *out);
/* {"schema": 1, "file": ..., "graphs": [...]}. `text` is a buffer for one expression. */
void describe_json(const char *file, const struct described *at, size_t n, struct buf *text,
                   struct buf *out);

#endif
