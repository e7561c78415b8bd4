/* Prints what was done to the graphs of several ranks. */
#include <stdio.h>

#include "base/json.h"
#include "base/layout.h"
#include "base/units.h"
#include "study/ranks_report.h"

static double ms(int64_t ps)
{
    return (double)ps / 1e9;
}

/* ---- JSON ---- */

static void digest_json(struct json_out *j, uint64_t digest)
{
    char text[17];

    snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
    json_str(j, "sequence", text);
}

static void rank_json(const struct tuck_ranks_report *x, uint32_t i, struct json_out *j)
{
    json_open(j, NULL, '{');
    json_str(j, "file", x->row[i].file);
    if (x->row[i].number >= 0)
        json_int(j, "rank", x->row[i].number);
    json_int(j, "program", x->programs.of[i]);
    digest_json(j, x->row[i].sequence);
    json_close(j, '}');
}

static void program_json(const struct tuck_ranks_report *x, uint32_t k,
                         const struct report_form *how, struct json_out *j)
{
    const struct rank_program *p = &x->programs.program[k];

    json_open(j, NULL, '{');
    json_int(j, "ranks", p->n);
    if (*x->where[k])
        json_str(j, "differs", x->where[k]);
    json_bool(j, "keeps_order", p->meets);
    if (p->meets) {
        json_int(j, "meets_program", p->other);
        json_str(j, "in_group", p->group);
    }
    report_json_in(x->report[k], how, j);
    json_close(j, '}');
}

void ranks_report_json(const struct tuck_ranks_report *x, const struct report_form *how,
                       struct buf *b)
{
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_open(&j, "ranks", '[');
    for (uint32_t i = 0; i < x->programs.n_rank; i++)
        rank_json(x, i, &j);
    json_close(&j, ']');
    if (x->before_ps >= 0) {
        json_float(&j, "before_ns", ns_of_ps(x->before_ps));
        json_float(&j, "after_ns", ns_of_ps(x->slower ? x->before_ps : x->after_ps));
        json_bool(&j, "together_slower", x->slower);
    }
    json_open(&j, "programs", '[');
    for (uint32_t k = 0; k < x->programs.n_program; k++)
        program_json(x, k, how, &j);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* ---- tables ---- */

static void put_rank(struct buf *b, const struct ranks_row *row)
{
    if (row->number >= 0)
        buf_printf(b, "%lld", (long long)row->number);
    else
        buf_printf(b, "%s", *row->file ? row->file : "?");
}

/* "ranks 0, 1, 2", the first few of them. */
static void put_ranks_of(struct buf *b, const struct tuck_ranks_report *x, uint32_t k)
{
    enum { MOST = 8 };
    uint32_t n = 0;

    buf_str(b, x->programs.program[k].n == 1 ? "rank " : "ranks ");
    for (uint32_t i = 0; i < x->programs.n_rank && n <= MOST; i++) {
        if (x->programs.of[i] != k)
            continue;
        if (n == MOST)
            buf_printf(b, " and %u more", x->programs.program[k].n - n);
        else
            buf_str(b, n > 0 ? ", " : "");
        if (n < MOST)
            put_rank(b, &x->row[i]);
        n++;
    }
}

static void put_meeting(struct buf *b, const struct rank_program *p)
{
    if (!p->meets)
        return;
    if (*p->group)
        wrap_line(
            b, INK_LIMIT, LAYOUT_SAY,
            "it shares group '%s' with program %u, or may: the order of communication is kept",
            p->group, p->other);
    else
        wrap_line(
            b, INK_LIMIT, LAYOUT_SAY,
            "it communicates in groups that are not known, perhaps with program %u: the order "
            "of communication is kept",
            p->other);
}

static void put_program(struct buf *b, const struct tuck_ranks_report *x, uint32_t k)
{
    size_t from = wrap_begin(b);

    ink_printf(b, INK_HEAD, "program %u", k);
    buf_str(b, ": ");
    put_ranks_of(b, x, k);
    wrap_end(b, from, LAYOUT_SAY);
    buf_chr(b, '\n');
    if (*x->where[k])
        wrap_line(b, INK_LIMIT, LAYOUT_SAY, "%s", x->where[k]);
    put_meeting(b, &x->programs.program[k]);
}

static void put_together(struct buf *b, const struct tuck_ranks_report *x)
{
    if (x->before_ps < 0)
        wrap_hang(b, INK_LIMIT, 0,
                  "before, these ranks do not finish together: `tuck simulate` says why");
    else if (x->slower)
        wrap_hang(b, INK_BAD, 0,
                  "all ranks together would take %.3f ms instead of %.3f: nothing is changed",
                  ms(x->after_ps), ms(x->before_ps));
    else
        buf_printf(b, "all ranks together take %.3f ms, before %.3f\n", ms(x->after_ps),
                   ms(x->before_ps));
}

void ranks_report_table(const struct tuck_ranks_report *x, const struct report_form *how,
                        struct buf *b)
{
    const struct rank_programs *p = &x->programs;

    if (p->n_program == 1)
        buf_printf(b, "%u ranks run one program: one decision for all\n", p->n_rank);
    else
        buf_printf(b, "%u ranks run %u programs: one decision for each\n", p->n_rank, p->n_program);
    for (uint32_t k = 0; k < p->n_program && p->n_program > 1; k++)
        put_program(b, x, k);
    put_together(b, x);
    for (uint32_t k = 0; k < p->n_program; k++) {
        buf_chr(b, '\n');
        if (p->n_program > 1) {
            size_t from = wrap_begin(b);
            ink_printf(b, INK_HEAD, "program %u", k);
            buf_str(b, ", ");
            put_ranks_of(b, x, k);
            wrap_end(b, from, LAYOUT_SAY);
            buf_chr(b, '\n');
        }
        report_table(x->report[k], how, b);
    }
}
