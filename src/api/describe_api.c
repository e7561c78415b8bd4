/* tuck_doc_describe(): describes the graphs of a document. */
#include "api/api.h"
#include "report/describe_show.h"

struct tuck_description {
    struct mem mem;
    const char *file; /* stored after the struct, like everything that follows */
    struct fx_hint *hint;
    size_t n_hint;
    struct described *at;
    size_t n, size; /* size: bytes of the whole allocation */
};

void tuck_describe_options_init(tuck_describe_options *o)
{
    *o = (tuck_describe_options){.size = sizeof(*o), .file = ""};
}

/* One allocation: the struct, the graphs, the hints, the file name. */
static tuck_description *new_description(const tuck_doc *doc, const tuck_describe_options *o,
                                         size_t n)
{
    const tuck_allocator *alloc = &doc->store->mem.alloc;
    size_t at = sizeof(tuck_description), hints = at + n * sizeof(struct described);
    size_t file = hints + o->n_hints * sizeof(struct fx_hint);
    size_t size = file + strlen(o->file) + 1;
    char *p = alloc->resize(alloc->ctx, NULL, 0, size);

    if (p == NULL)
        return NULL;
    memset(p, 0, size);
    strcpy(p + file, o->file);
    tuck_description *d = (tuck_description *)(void *)p;
    *d = (tuck_description){.file = p + file,
                            .hint = (struct fx_hint *)(void *)(p + hints),
                            .n_hint = o->n_hints,
                            .at = (struct described *)(void *)(p + at),
                            .n = n,
                            .size = size};
    mem_init(&d->mem, alloc);
    return d;
}

struct intern_args {
    struct fx_store *store;
    const tuck_describe_options *o;
    tuck_description *d;
};

static void do_intern(void *arg)
{
    struct intern_args *x = arg;

    for (size_t i = 0; i < x->o->n_hints; i++) {
        const tuck_hint *h = &x->o->hints[i];
        x->d->hint[i] = (struct fx_hint){str_intern(&x->store->str, h->symbol, strlen(h->symbol)),
                                         h->value};
    }
}

struct gather_args {
    tuck_description *d;
    struct arena scratch;
};

static void do_gather(void *arg)
{
    struct gather_args *x = arg;

    for (size_t i = 0; i < x->d->n; i++) {
        describe_graph(&x->d->mem, &x->scratch, &x->d->at[i].d);
        arena_destroy(&x->scratch);
        arena_init(&x->scratch, &x->d->mem);
    }
}

tuck_status tuck_doc_describe(const tuck_doc *doc, const tuck_describe_options *options,
                              tuck_description **out)
{
    tuck_describe_options o;

    tuck_describe_options_init(&o);
    if (doc == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK ||
        o.file == NULL || (o.n_hints > 0 && o.hints == NULL) || o.from > tuck_doc_count(doc) ||
        o.count > tuck_doc_count(doc) - o.from)
        return TUCK_EINVAL;
    size_t n = o.count > 0 ? o.count : tuck_doc_count(doc) - o.from;
    tuck_description *d = new_description(doc, &o, n);
    if (d == NULL)
        return TUCK_ENOMEM;
    struct intern_args in = {doc->store, &o, d};
    struct gather_args x = {.d = d};
    for (size_t i = 0; i < n; i++) {
        const tuck_graph *g = tuck_doc_graph(doc, o.from + i);
        d->at[i] = (struct described){.doc = doc, .file = d->file, .graph = o.from + i};
        d->at[i].d.g = g;
        d->at[i].d.assume = (struct assume){.store = g->store,
                                            .given = d->hint,
                                            .n_given = d->n_hint,
                                            .own = g->hint.at,
                                            .n_own = g->hint.len};
    }
    arena_init(&x.scratch, &d->mem);
    bool ok = mem_guard(&doc->store->mem, do_intern, &in) && mem_guard(&d->mem, do_gather, &x);
    arena_destroy(&x.scratch);
    if (!ok) {
        tuck_description_free(d);
        return TUCK_ENOMEM;
    }
    *out = d;
    return TUCK_OK;
}

void tuck_description_free(tuck_description *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n; i++)
        describe_free(&d->mem, &d->at[i].d);
    struct mem m = d->mem;
    mem_free(&m, d, d->size);
}

size_t tuck_description_count(const tuck_description *d)
{
    return d != NULL ? d->n : 0;
}

bool tuck_description_facts(const tuck_description *d, size_t i, tuck_graph_facts *out)
{
    if (i >= tuck_description_count(d) || out == NULL || out->size <= sizeof(out->size))
        return false;
    const struct description *x = &d->at[i].d;
    size_t collectives = 0, size = out->size;
    for (uint32_t k = 0; k < x->row.len; k++)
        collectives += x->row.at[k].count;
    const tuck_graph_facts all = {.size = size,
                                  .nodes = x->nodes,
                                  .nested = x->nested.len,
                                  .opaque = x->opaque,
                                  .inputs = x->inputs,
                                  .parameters = x->parameters,
                                  .buffers = x->buffers,
                                  .outputs = x->outputs,
                                  .collectives = collectives,
                                  .input_bytes = x->inputs_unsized > 0 ? -1 : x->input_bytes,
                                  .output_bytes = x->output_bytes,
                                  .peak_bytes = x->peak.unknown > 0 ? -1 : x->peak.peak};
    memcpy(out, &all, size < sizeof(all) ? size : sizeof(all));
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_description *d = arg;
    struct buf text;

    buf_init(&text, b->mem);
    if (how->form == TUCK_PRINT_JSON)
        describe_json(d->file, d->at, d->n, &text, b);
    else
        for (size_t i = 0; i < d->n; i++)
            describe_table(&d->at[i], b);
    buf_destroy(&text);
}

tuck_status tuck_description_print(const tuck_description *d, const tuck_print_options *how,
                                   tuck_write_fn write, void *ctx)
{
    return d ? api_print(&d->mem.alloc, how, write, ctx, print, d) : TUCK_EINVAL;
}
