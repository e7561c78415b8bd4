/* One row a pass, in the order `tuck passes` prints them; a row stands in the folder that runs it. */
#include "pipeline/table.h"

#include "pass/waits.h"

static const struct pass *const rows[] = {
    &pass_deduplicate_wait_tensors,
};

/* Keys of PyTorch's configuration, as a user of torch._inductor.config has them. */
static const struct pass_key keys[] = {
    {.name = NULL},
};

const struct pass_table all_passes = {
    .row = rows,
    .n = sizeof(rows) / sizeof(*rows),
    .key = keys,
    .n_key = sizeof(keys) / sizeof(*keys) - 1,
};
