/* One row a pass, in the order `tuck passes` prints them; a row stands in the folder that runs it. */
#include "pipeline/table.h"

#include "fsdp/fsdp.h"
#include "pass/waits.h"

static const struct pass *const rows[] = {
    &pass_deduplicate_wait_tensors,
    &pass_reinplace_fsdp_all_gather,
    &pass_remove_fsdp2_unsharded_param_graph_input_usage,
    &pass_dedup_fsdp_reduce_scatter,
};

/* Keys of PyTorch's configuration, as a user of torch._inductor.config has them. */
static const struct pass_key keys[] = {
    {"dedup_reduce_scatters", "True or False: dedup_fsdp_reduce_scatter",
     "True=dedup_fsdp_reduce_scatter|true=dedup_fsdp_reduce_scatter|1=dedup_fsdp_reduce_scatter|"
     "False=|"
     "false=|0=",
     NULL, NULL},
    {.name = NULL},
};

const struct pass_table all_passes = {
    .row = rows,
    .n = sizeof(rows) / sizeof(*rows),
    .key = keys,
    .n_key = sizeof(keys) / sizeof(*keys) - 1,
};
