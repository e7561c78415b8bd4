/* What a part's text does not say, in the line above it: `# tuck: {"part": 1, "saved": {…}}`. */
#include <string.h>

#include "base/json.h"
#include "job/job.h"
#include "text/known.h"

struct facts {
    struct job *j;
    const struct job_rank *r;
    struct buf line;
    struct json_out out;
};

/* Would files numbered by compilation be read in another order, or without their ties? Forwards
 * run in the order of their numbers, then backwards, the last one first. */
static bool needs_facts(const struct job *j, const struct job_rank *r)
{
    uint32_t last = 0; /* the forward of the last backward, counted from 1; 0: none yet */

    for (uint32_t i = r->first; i < r->first + r->n; i++) {
        const struct job_part *p = &j->part.at[i];
        bool backward = j->pieces.all.at[p->piece].role == ROLE_BACKWARD;
        if (p->told || (backward && p->forward == NO_PART) || (!backward && last > 0) ||
            (last > 0 && p->forward + 1 >= last))
            return true;
        last = backward ? p->forward + 1 : 0;
    }
    return false;
}

/* The number of a part among the forwards of its rank. */
static uint32_t forward_number(const struct facts *x, uint32_t part)
{
    uint32_t n = 0;

    for (uint32_t i = x->r->first; i < part; i++)
        n += x->j->pieces.all.at[x->j->part.at[i].piece].role == ROLE_FORWARD;
    return n;
}

static void put_saved(struct facts *x, const struct job_part *p)
{
    json_open(&x->out, "saved", '{');
    for_each_node (p->graph, n) {
        const struct fx_node *node = node_at(p->graph, n);
        if (node->kind != TUCK_PLACEHOLDER || p->tie[n].part == NO_PART)
            continue;
        json_open(&x->out, graph_str(p->graph, node->name), '[');
        json_int(&x->out, NULL, forward_number(x, p->tie[n].part));
        json_int(&x->out, NULL, p->tie[n].place);
        json_close(&x->out, ']');
    }
    json_close(&x->out, '}');
}

/* Behind what is known already, as members of the same object. */
static void remember(struct facts *x, struct job_part *p, uint32_t place)
{
    tuck_graph *g = p->graph;
    const struct str *old = str_at(&g->store->str, g->known);
    size_t bracket;

    if (g->known != 0 && strstr(old->at, "\"part\": ") != NULL)
        return;
    x->line.len = 0;
    if (g->known != 0) {
        buf_add(&x->line, old->at, old->len - 1);
        buf_str(&x->line, ", ");
    } else {
        buf_str(&x->line, FX_KNOWN);
    }
    bracket = x->line.len;
    json_begin(&x->out, &x->line);
    x->out.flat = true;
    json_open(&x->out, NULL, '{');
    json_int(&x->out, "part", place);
    if (p->told)
        put_saved(x, p);
    json_close(&x->out, '}');
    memmove(x->line.at + bracket, x->line.at + bracket + 1, x->line.len - bracket - 1);
    g->known = str_intern(&g->store->str, x->line.at, x->line.len - 1);
}

static void do_remember(void *arg)
{
    struct facts *x = arg;

    for (uint32_t k = 0; k < x->j->rank.len; k++) {
        x->r = &x->j->rank.at[k];
        if (!needs_facts(x->j, x->r))
            continue;
        for (uint32_t i = 0; i < x->r->n; i++)
            remember(x, &x->j->part.at[x->r->first + i], i);
    }
}

tuck_status job_remember(struct job *j)
{
    struct mem *m = &j->doc->store->mem;
    struct facts x = {.j = j};

    buf_init(&x.line, m);
    bool ok = mem_guard(m, do_remember, &x);
    buf_destroy(&x.line);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
