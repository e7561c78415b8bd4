#include "report/scaling_show.h"

#include "base/color.h"
#include "base/json.h"

static void row(struct buf *b, const tuck_scaling_point *p)
{
    const tuck_times *t = &p->times;
    int64_t least = p->bound_ps > 0 ? p->bound_ps : 0;

    buf_printf(b, "%8lld %12.3f %12.3f", (long long)p->ranks, (double)t->step_ps / 1e9,
               (double)t->comm_ps / 1e9);
    ink_printf(b, t->exposed_ps > 0 ? INK_BAD : INK_GOOD, " %12.3f", (double)t->exposed_ps / 1e9);
    buf_printf(b, " %12.3f", (double)least / 1e9);
    ink_line(b, INK_DIM, " %7.1f%%",
             100 * (least > 0 ? (double)t->step_ps / (double)least - 1 : 0));
}

void scaling_table(const tuck_scaling_point *point, size_t n, struct buf *b)
{
    ink_line(b, INK_HEAD, "%8s %12s %12s %12s %12s %8s", "ranks", "step ms", "comm ms",
             "exposed ms", "bound ms", "gap");
    for (size_t i = 0; i < n; i++)
        row(b, &point[i]);
    ink_line(b, INK_DIM,
             "Full messages and compute are those of the graph;\nthe machine has as "
             "many nodes as the ranks need.");
}

void scaling_json(const tuck_scaling_point *point, size_t n, struct buf *b)
{
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_open(&j, "points", '[');
    for (size_t i = 0; i < n; i++) {
        const tuck_times *t = &point[i].times;

        json_open(&j, NULL, '{');
        json_int(&j, "world", point[i].ranks);
        json_float(&j, "step_ns", (double)t->step_ps / 1e3);
        json_float(&j, "compute_ns", (double)t->compute_ps / 1e3);
        json_float(&j, "comm_ns", (double)t->comm_ps / 1e3);
        json_float(&j, "exposed_ns", (double)t->exposed_ps / 1e3);
        json_int(&j, "peak_bytes", t->peak_bytes);
        if (point[i].bound_ps >= 0)
            json_float(&j, "bound_ns", (double)point[i].bound_ps / 1e3);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
