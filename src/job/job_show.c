#include "job/job_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/layout.h"
#include "op/ops.h"

static const struct piece *piece_of(const struct job *j, uint32_t part)
{
    return &j->pieces.all.at[j->part.at[part].piece];
}

static const char *path_of(const struct job *j, const struct piece *x)
{
    return j->sources.all.at[x->source].path;
}

static bool cls_communicates(enum op_class c)
{
    return c == OP_COLLECTIVE || c == OP_SYNC_COLLECTIVE || c == OP_P2P;
}

static uint32_t count_collectives(const tuck_graph *g)
{
    uint32_t n = 0;

    for_each_node (g, i)
        n += cls_communicates(op_at(node_at(g, i)->op)->cls);
    return n;
}

static uint32_t count_passed(const struct job *j)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->pieces.all.len; i++)
        n += j->pieces.all.at[i].passed != NULL;
    return n;
}

static const char *stage_name(const struct piece *x)
{
    return *x->title ? x->title : "-";
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- tables ---- */

static void tied_line(const struct job *j, const struct job_rank *r, uint32_t i, struct buf *b)
{
    const struct job_part *p = &j->part.at[i];
    char id[COMPILE_ID_TEXT];

    if (piece_of(j, i)->role != ROLE_BACKWARD)
        return;
    if (p->forward == NO_PART) {
        wrap_line(b, INK_PLAIN, LAYOUT_SAY, "its forward is not here: it is simulated by itself");
        return;
    }
    wrap_line(
        b, INK_PLAIN, LAYOUT_SAY,
        "gets %u value%s that %u, %s %s, saved; %u input%s from elsewhere", p->n_tied,
        plural(p->n_tied), p->forward - r->first + 1, role_name(piece_of(j, p->forward)->role),
        compile_id_text(piece_of(j, p->forward)->id, false, id), p->n_free, plural(p->n_free));
}

static void rank_table(const struct job *j, const struct job_rank *r, const struct job_peak *peak,
                       struct buf *b)
{
    size_t longest = 0;
    char id[COMPILE_ID_TEXT];

    for (uint32_t i = r->first; i < r->first + r->n; i++)
        longest = name_longer(longest, stage_name(piece_of(j, i)));
    int wide = name_column(b, longest, 8, 46);
    if (r->number >= 0)
        buf_printf(b, "\nthe step of rank %d\n", r->number);
    else
        buf_str(b, "\nthe step\n");
    buf_printf(b, "      graph    compiled %-*s  nodes  collectives\n", wide, "stage");
    for (uint32_t i = r->first; i < r->first + r->n; i++) {
        const struct piece *x = piece_of(j, i);
        buf_printf(b, "  %2u  %-8s %-8s ", i - r->first + 1, role_name(x->role),
                   compile_id_text(x->id, true, id));
        put_name(b, stage_name(x), wide);
        buf_printf(b, "  %5u  %11u\n", j->part.at[i].graph->n_nodes,
                   count_collectives(j->part.at[i].graph));
        wrap_line(b, INK_PLAIN, LAYOUT_SAY, "%s:%u", path_of(j, x), x->line);
        tied_line(j, r, i, b);
    }
    if (peak != NULL)
        wrap_line(b, INK_PLAIN, 2, "%.2f MiB at most, as PyTorch's graph passes estimate it%s%s",
                  (double)peak->bytes / 1048576,
                  peak->unknown ? "; storages of unknown size are not counted" : "",
                  peak->bytes == 0 ? "; they count no memory of a CPU" : "");
}

struct passed {
    const char *reason, *title;
    uint32_t n;
};

static int by_reason(const void *a, const void *b)
{
    const struct passed *x = a, *y = b;
    int c = strcmp(x->reason, y->reason);

    return c ? c : strcmp(x->title, y->title);
}

/* Passed over graphs with the same title and reason are one line. */
static void passed_table(const struct job *j, struct buf *b)
{
    uint32_t n = 0, k = 0, total = count_passed(j);
    struct mem *m = b->mem;
    size_t size = (total + 1) * sizeof(struct passed);

    if (total == 0)
        return;
    struct passed *all = mem_resize(m, NULL, 0, size);
    for (uint32_t i = 0; i < j->pieces.all.len; i++)
        if (j->pieces.all.at[i].passed != NULL)
            all[n++] = (struct passed){j->pieces.all.at[i].passed, stage_name(&j->pieces.all.at[i]),
                                       1};
    qsort(all, n, sizeof(*all), by_reason);
    for (uint32_t i = 1; i < n; i++)
        if (by_reason(&all[k], &all[i]) == 0)
            all[k].n++;
        else
            all[++k] = all[i];
    buf_printf(b, "\npassed over: %u graph%s (--json says where each is)\n", total, plural(total));
    for (uint32_t i = 0; i <= k; i++) {
        if (i == 0 || strcmp(all[i].reason, all[i - 1].reason) != 0)
            wrap_line(b, INK_PLAIN, 2, "%s", all[i].reason);
        buf_printf(b, "  %5u  %s\n", all[i].n, all[i].title);
    }
    mem_free(m, all, size);
}

/* Ranks whose steps have the same parts are shown once. */
static bool alike(const struct job *j, const struct job_rank *a, const struct job_rank *b)
{
    bool same = a->n == b->n;

    for (uint32_t i = 0; i < a->n && same; i++) {
        const struct piece *x = piece_of(j, a->first + i), *y = piece_of(j, b->first + i);
        const tuck_graph *g = j->part.at[a->first + i].graph, *h = j->part.at[b->first + i].graph;
        same = x->role == y->role && compile_id_same(x->id, y->id) &&
               strcmp(x->title, y->title) == 0 && g->n_nodes == h->n_nodes &&
               j->part.at[a->first + i].n_tied == j->part.at[b->first + i].n_tied;
    }
    return same;
}

void job_table(const struct job *j, const char *name, const struct job_peak *peak, struct buf *b)
{
    uint32_t last = 0, end;

    wrap_line(b, INK_PLAIN, 0, "%s: %u graph%s in %u file%s; %u rank%s", name, j->pieces.all.len,
              plural(j->pieces.all.len), j->sources.all.len, plural(j->sources.all.len),
              j->rank.len, plural(j->rank.len));
    for (uint32_t k = 0; k < j->rank.len; k = end) {
        rank_table(j, &j->rank.at[k], &peak[k], b);
        last = k;
        for (end = k + 1; end < j->rank.len && alike(j, &j->rank.at[k], &j->rank.at[end]) &&
                          peak[end].bytes == peak[k].bytes;
             end++)
            last = end;
        if (last == k + 1)
            buf_printf(b, "  rank %d has the same graphs\n", j->rank.at[last].number);
        else if (last > k)
            buf_printf(b, "  ranks %d to %d have the same graphs\n", j->rank.at[k + 1].number,
                       j->rank.at[last].number);
    }
    passed_table(j, b);
}

void job_line(const struct job *j, const struct job_rank *r, const char *name, struct buf *b)
{
    uint32_t passed = count_passed(j);
    size_t from = wrap_begin(b);
    char id[COMPILE_ID_TEXT];

    buf_str(b, "the step");
    if (r->number >= 0)
        buf_printf(b, " of rank %d", r->number);
    for (uint32_t i = r->first; i < r->first + r->n; i++) {
        const struct piece *x = piece_of(j, i);
        buf_printf(b, "%s %s %s", i == r->first ? ":" : ",", role_name(x->role),
                   compile_id_text(x->id, false, id));
    }
    if (passed > 0)
        buf_printf(b, "; %u other graph%s passed over (tuck show %s)", passed,
                   passed == 1 ? " is" : "s are", name);
    buf_chr(b, '\n');
    wrap_end(b, from, 4);
}

/* ---- JSON ---- */

static void piece_json(const struct job *j, const struct piece *x, struct json_out *out)
{
    char id[COMPILE_ID_TEXT];

    json_str(out, "role", role_name(x->role));
    json_str(out, "compile_id", compile_id_text(x->id, true, id));
    json_str(out, "title", x->title);
    json_str(out, "file", path_of(j, x));
    json_int(out, "line", x->line);
}

static void part_json(const struct job *j, const struct job_rank *r, uint32_t i,
                      struct json_out *out)
{
    const struct job_part *p = &j->part.at[i];

    json_open(out, NULL, '{');
    piece_json(j, piece_of(j, i), out);
    json_int(out, "nodes", p->graph->n_nodes);
    json_int(out, "collectives", count_collectives(p->graph));
    if (piece_of(j, i)->role == ROLE_BACKWARD) {
        if (p->forward == NO_PART)
            json_null(out, "forward");
        else
            json_int(out, "forward", p->forward - r->first);
        json_int(out, "saved_values", p->n_tied);
        json_int(out, "other_inputs", p->n_free);
    }
    json_close(out, '}');
}

void job_json(const struct job *j, const char *name, const struct job_peak *peak, struct buf *b)
{
    struct json_out out;

    json_begin(&out, b);
    json_open(&out, NULL, '{');
    json_schema(&out, 1);
    json_str(&out, "file", name);
    json_open(&out, "ranks", '[');
    for (uint32_t k = 0; k < j->rank.len; k++) {
        const struct job_rank *r = &j->rank.at[k];
        json_open(&out, NULL, '{');
        json_int(&out, "rank", r->number);
        json_int(&out, "pytorch_peak_bytes", peak[k].bytes);
        json_open(&out, "graphs", '[');
        for (uint32_t i = r->first; i < r->first + r->n; i++)
            part_json(j, r, i, &out);
        json_close(&out, ']');
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_open(&out, "passed_over", '[');
    for (uint32_t i = 0; i < j->pieces.all.len; i++) {
        const struct piece *x = &j->pieces.all.at[i];
        if (x->passed == NULL)
            continue;
        json_open(&out, NULL, '{');
        json_int(&out, "rank", x->rank);
        piece_json(j, x, &out);
        json_str(&out, "reason", x->passed);
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_close(&out, '}');
    json_end(&out);
}
