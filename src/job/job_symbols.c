/* Graphs that were compiled one by one may call different sizes by one name. */
#include <ctype.h>
#include <string.h>

#include "job/job.h"

static const struct fx_hint *value_of(const tuck_graph *g, const char *name)
{
    for (uint32_t i = g->hint.len; i > 0; i--)
        if (strcmp(graph_str(g, g->hint.at[i - 1].symbol), name) == 0)
            return &g->hint.at[i - 1];
    return NULL;
}

static void warn(const struct job *j, const struct job_part *p, const struct job_part *q,
                 const struct fx_hint *x, const struct fx_hint *y, tuck_diags *diags)
{
    const struct piece *a = &j->pieces.all.at[p->piece], *b = &j->pieces.all.at[q->piece];
    struct diag_source src = {.file = j->sources.all.at[b->source].path};
    char first[COMPILE_ID_TEXT], second[COMPILE_ID_TEXT];

    diag_add(diags, TUCK_WARNING, (struct diag_pos){.source = &src},
             "--each shows the graphs one by one, each with its own",
             "%s is %lld in %s %s and %lld in %s %s: in the step, both have the latter",
             graph_str(p->graph, x->symbol), (long long)x->value, role_name(a->role),
             compile_id_text(a->id, false, first), (long long)y->value, role_name(b->role),
             compile_id_text(b->id, false, second));
}

/* Does the annotation of a value contain that symbol? */
static bool is_used(const tuck_graph *g, const char *name)
{
    size_t n = strlen(name);

    for_each_node (g, i) {
        uint32_t ann = node_at(g, i)->ann;
        const char *text = ann != 0 ? graph_str(g, ann_at(g->store, ann)->inner) : "";
        for (const char *s = text; (s = strstr(s, name)) != NULL; s += n)
            if (!isalnum((unsigned char)s[n]) && (s == text || !isalnum((unsigned char)s[-1])))
                return true;
    }
    return false;
}

/* Does part i use a symbol that an earlier part of the rank uses with another value? */
static bool check_part(const struct job *j, const struct job_rank *r, uint32_t i, tuck_diags *diags)
{
    const struct job_part *q = &j->part.at[i];

    for (uint32_t k = 0; k < q->graph->hint.len; k++) {
        const char *name = graph_str(q->graph, q->graph->hint.at[k].symbol);
        const struct fx_hint *y = value_of(q->graph, name);
        for (uint32_t f = r->first; f < i; f++) {
            const struct job_part *p = &j->part.at[f];
            const struct fx_hint *x = value_of(p->graph, name);
            if (x == NULL || x->value == y->value || !is_used(p->graph, name) ||
                !is_used(q->graph, name))
                continue;
            warn(j, p, q, x, y, diags);
            return false;
        }
    }
    return true;
}

void job_check_symbols(const struct job *j, tuck_diags *diags)
{
    for (uint32_t k = 0; k < j->rank.len; k++)
        for (uint32_t i = j->rank.at[k].first; i < j->rank.at[k].first + j->rank.at[k].n; i++)
            if (!check_part(j, &j->rank.at[k], i, diags))
                return; /* one says enough */
}
