/* Texts that the caller found and cut out, such as the graphs of a job's logs, read into one
 * document. */
#ifndef TUCK_TEXT_GIVEN_TEXT_H
#define TUCK_TEXT_GIVEN_TEXT_H

#include "graph/graph.h"
#include "text/log_text.h"

struct given_text {
    struct fx_text text;
    const char *file;
    bool ok;               /* result: it was read, and has a graph */
    uint32_t first, count; /* result: its graphs in the document */
};

/* A text that cannot be read is left out with a warning. There may be no graph at all. */
TUCK_MUST_CHECK tuck_status read_given_texts(struct given_text *text, size_t n,
                                             const tuck_allocator *alloc, tuck_diags *diags,
                                             tuck_doc **doc_out);

#endif
