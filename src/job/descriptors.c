/* Which inputs are parameters, and which results their gradients: AOTAutograd's graphs say it, in
 * comments after each, Inductor's do not. The graph of the same compilation lends its own. */
#include <string.h>

#include "job/job.h"

struct borrow {
    struct job *j;
    struct job_part *p;
    VEC(str_id) out; /* descriptors of the results, in order */
};

/* The same compilation, as AOTAutograd printed it. */
static const struct piece *printed_by_aot(const struct job *j, const struct piece *x)
{
    for (uint32_t i = 0; i < j->pieces.all.len; i++) {
        const struct piece *y = &j->pieces.all.at[i];
        if (y->rank == x->rank && y->role == x->role && y->stage == STAGE_AOT &&
            y->id.attempt == x->id.attempt && compile_id_same(x->id, y->id))
            return y;
    }
    return NULL;
}

static size_t name_len(const char *s, const char *end)
{
    size_t n = 0;

    while (s + n < end && (s[n] == '_' || (s[n] >= '0' && s[n] <= '9') ||
                           (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z')))
        n++;
    return n;
}

/* `primals_1: "f32[4]",  # ParamAOTInput(target='w')` and, after the return, `mm,  # …`. */
static void take_line(struct borrow *w, const char *s, const char *eol, bool returned)
{
    const char *mark = memmem(s, (size_t)(eol - s), "  # ", 4);
    struct fx_store *store = w->p->graph->store;

    while (s < eol && (*s == ' ' || *s == '\t'))
        s++;
    if (mark == NULL || mark < s)
        return;
    str_id text = str_intern(&store->str, mark + 2, (size_t)(eol - mark) - 2);
    if (returned) {
        vec_push(&store->mem, &w->out, text);
        return;
    }
    str_id name = str_find(&store->str, s, name_len(s, eol));
    uint32_t n = name != 0 ? name_lookup(w->p->graph, name) : 0;
    for (uint32_t i = 0; n != 0 && i < w->p->graph->param.len; i++)
        if (w->p->graph->param.at[i].node == n)
            w->p->graph->param.at[i].descriptor = text;
}

static void take(struct borrow *w, const struct piece *y)
{
    const struct source *s = &w->j->sources.all.at[y->source];
    const char *at = s->text + y->from, *end = s->text + y->to;
    enum { BEFORE, INPUTS, BODY, RESULTS } where = BEFORE;

    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *eol = nl ? nl : end;
        size_t n = (size_t)(eol - at);
        if (y->form == PIECE_LINES &&
            (n < y->prefix_len || memcmp(at, y->prefix, y->prefix_len) != 0)) {
            at = eol + 1;
            continue;
        }
        const char *body = y->form == PIECE_LINES ? at + y->prefix_len : at;
        size_t len = (size_t)(eol - body);
        if (where == BEFORE && memmem(body, len, "def forward(", 12) != NULL)
            where = INPUTS;
        else if (where == INPUTS && memmem(body, len, "):", 2) != NULL)
            where = BODY;
        else if (where == INPUTS || where == RESULTS)
            take_line(w, body, eol, where == RESULTS);
        else if (where == BODY && memmem(body, len, "        return (", 16) != NULL)
            where = RESULTS;
        at = eol + 1;
    }
}

static void describe(struct borrow *w)
{
    tuck_graph *g = w->p->graph;
    const struct fx_node *out = node_at(g, g->output);
    const struct piece *y = printed_by_aot(w->j, &w->j->pieces.all.at[w->p->piece]);

    w->out.len = 0;
    if (y == NULL || g->out_descriptor.len > 0)
        return;
    take(w, y);
    if (g->output != 0 && out->n_vals > 0 && out->vals[0].a == w->out.len)
        for (uint32_t i = 0; i < w->out.len; i++)
            vec_push(&g->store->mem, &g->out_descriptor, w->out.at[i]);
}

static void do_describe(void *arg)
{
    struct borrow *w = arg;

    for (uint32_t i = 0; i < w->j->part.len; i++) {
        w->p = &w->j->part.at[i];
        describe(w);
    }
}

void job_describe(struct job *j)
{
    struct borrow w = {.j = j};
    struct mem *m = &j->doc->store->mem;
    bool ok = mem_guard(m, do_describe, &w);

    vec_free(m, &w.out);
    if (!ok)
        mem_exhausted(m);
}
