/* Documents: the graphs of one text. */
#include "graph/graph.h"

void tuck_doc_free(tuck_doc *doc)
{
    if (doc == NULL)
        return;
    struct fx_store *s = doc->store;
    struct mem *m = &s->mem;

    for (uint32_t i = 0; i < doc->entry.len; i++)
        graph_free(doc->entry.at[i].graph);
    vec_free(m, &doc->entry);
    vec_free(m, &doc->hint);
    mem_free(m, doc, sizeof(*doc));
    store_release(s);
}

size_t tuck_doc_count(const tuck_doc *doc)
{
    return doc->entry.len;
}

tuck_graph *tuck_doc_graph(const tuck_doc *doc, size_t i)
{
    return i < doc->entry.len ? doc->entry.at[i].graph : NULL;
}

const char *tuck_doc_title(const tuck_doc *doc, size_t i)
{
    return i < doc->entry.len ? str_text(&doc->store->str, doc->entry.at[i].title) : "";
}

int tuck_doc_rank(const tuck_doc *doc, size_t i)
{
    return i < doc->entry.len ? doc->entry.at[i].rank : -1;
}

uint32_t tuck_doc_line(const tuck_doc *doc, size_t i)
{
    return i < doc->entry.len ? doc->entry.at[i].line : 0;
}
