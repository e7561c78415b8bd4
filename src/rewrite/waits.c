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
    .help = "replace repeated waits of one value, also chained ones, by the first",
    .keeps = PASS_TYPES,
    .on_graph = run,
};
