/* deduplicate_wait_tensors, as a separate pass. */
#include "rewrite/comm_order.h"
#include "rewrite/waits.h"

static tuck_status run(struct pass_run *r, const void *options)
{
    (void)options;
    report_count(r->report, "waits removed", comm_dedup_waits(r));
    return TUCK_OK;
}

const struct pass pass_deduplicate_wait_tensors = {
    .name = "deduplicate_wait_tensors",
    .help = "several waits of one value, chained ones too, become the first",
    .keeps = PASS_TYPES,
    .on_graph = run,
};
