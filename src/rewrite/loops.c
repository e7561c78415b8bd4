/* join_loops: fuses loops that passes on schedules keep apart (see lower/region.h). */
#include "rewrite/loops.h"

#include "pass/pass_report.h"

static tuck_status run(struct pass_run *r, const void *options)
{
    uint64_t n = 0;

    (void)options;
    for_each_node (r->g, k) {
        n += node_at(r->g, k)->apart;
        node_at(r->g, k)->apart = false;
    }
    if (n > 0)
        graph_edited(r->g, false);
    r->changed = n > 0;
    report_count(r->report, "loops joined", n);
    return TUCK_OK;
}

const struct pass pass_join_loops = {
    .name = "join_loops",
    .help =
        "fuse loops that a new order made adjacent: fewer reads and writes, perhaps more memory",
    .keeps = PASS_TYPES,
    .on_graph = run,
};
