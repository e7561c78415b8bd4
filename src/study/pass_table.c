/* One row per pass, in the order in which `tuck passes` prints them; a row is in the folder of its
 * code. */
#include "study/pass_table.h"

#include "rewrite/bucket/bucket.h"
#include "rewrite/fsdp/fsdp_passes.h"
#include "rewrite/ddp/ddp_passes.h"
#include "overlap/overlap.h"
#include "rewrite/control_deps.h"
#include "rewrite/loops.h"
#include "rewrite/one_shot.h"
#include "rewrite/split_fused.h"
#include "rewrite/waits.h"
#include "schedule/schedule.h"

/* clang-format off */
static const struct pass *const rows[] = {
    &pass_deduplicate_wait_tensors,
    &pass_fuse_ddp_communication,
    &pass_fuse_ddp_with_concat_op,
    &pass_fuse_ddp_with_coalesced_op,
    &pass_schedule_comm_wait,
    &pass_bucket_all_gather,
    &pass_bucket_reduce_scatter,
    &pass_bucket_all_reduce,
    &pass_bucket_fsdp_all_gather,
    &pass_bucket_fsdp_reduce_scatter,
    &pass_bucket_all_gather_by_mb,
    &pass_bucket_reduce_scatter_by_mb,
    &pass_bucket_all_reduce_by_mb,
    &pass_merge_bucket,
    &pass_reinplace_fsdp_all_gather,
    &pass_remove_fsdp2_unsharded_param_graph_input_usage,
    &pass_dedup_fsdp_reduce_scatter,
    &pass_pre_bucket_fsdp_collectives,
    &pass_estimate_op_runtime,
    &pass_align_runtime_estimations_across_all_distributed_ranks,
    &pass_decide_global_ordering_of_comms,
    &pass_raise_comms,
    &pass_sink_waits,
    &pass_reorder_compute_for_overlap,
    &pass_list_overlap,
    &pass_gather_loops,
    &pass_improve_order,
    &pass_issue_late,
    &pass_reorder_communication_preserving_peak_memory,
    &pass_sink_waits_iterative,
    &pass_simple_overlap,
    &pass_enforce_comm_ordering_for_fsdp,
    &pass_reorder_for_peak_memory,
    &pass_reorder_compute_and_comm_for_overlap,
    &pass_schedule_overlap_bucketing,
    &pass_overlap_scheduling,
    &pass_one_shot_all_reduce,
    &pass_split_fused_collectives,
    &pass_join_loops,
    &pass_repeat_constants,
    &pass_insert_control_deps,
};
/* clang-format on */

/* Which pass each value of a flag turns on. */
#define FLAG(pass) "True=" pass "|true=" pass "|1=" pass "|False=|false=|0="

/* An option of the overlap scheduler. */
#define OVERLAP(key, text)                                                                         \
    {                                                                                              \
        .name = "aten_distributed_optimizations." key, .help = text, .option = key,                \
        .passes = "schedule_overlap_bucketing|overlap_scheduling"                                  \
    }

/* Keys of torch._inductor.config, as PyTorch's users know them. */
static const struct pass_key keys[] = {
    {.name = "bucket_all_gathers_fx",
     .help = "merge all-gathers: none, all or only_fsdp",
     .turns_on = "none=|all=bucket_all_gather|only_fsdp=bucket_fsdp_all_gather"},
    {.name = "bucket_all_gathers_fx_bucket_size_determinator",
     .help = "MiB a bucket of all-gathers may hold, a list by bucket instead of a function",
     .option = "cap_mb",
     .passes = "bucket_all_gather|bucket_fsdp_all_gather|bucket_all_gather_by_mb"},
    {.name = "bucket_all_gathers_bucket_mode",
     .help = "how all-gathers are merged",
     .option = "mode",
     .passes = "bucket_all_gather|bucket_fsdp_all_gather|bucket_all_gather_by_mb"},
    {.name = "bucket_reduce_scatters_fx",
     .help = "merge reduce-scatters: none, all or only_fsdp",
     .turns_on = "none=|all=bucket_reduce_scatter|only_fsdp=bucket_fsdp_reduce_scatter"},
    {.name = "bucket_reduce_scatters_fx_bucket_size_determinator",
     .help = "MiB a bucket of reduce-scatters may hold",
     .option = "cap_mb",
     .passes = "bucket_reduce_scatter|bucket_fsdp_reduce_scatter|bucket_reduce_scatter_by_mb"},
    {.name = "bucket_reduce_scatters_bucket_mode",
     .help = "how reduce-scatters are merged",
     .option = "mode",
     .passes = "bucket_reduce_scatter|bucket_fsdp_reduce_scatter|bucket_reduce_scatter_by_mb"},
    {.name = "bucket_all_reduces_fx",
     .help = "merge all-reduces: none or all",
     .turns_on = "none=|all=bucket_all_reduce"},
    {.name = "bucket_all_reduces_fx_bucket_size_determinator",
     .help = "MiB a bucket of all-reduces may hold",
     .option = "cap_mb",
     .passes = "bucket_all_reduce|bucket_all_reduce_by_mb"},
    {.name = "dedup_reduce_scatters",
     .help = "True or False: dedup_fsdp_reduce_scatter",
     .turns_on = FLAG("dedup_fsdp_reduce_scatter")},
    {.name = "aten_distributed_optimizations.pre_bucketing_fsdp_collectives",
     .help = "True or False: pre_bucket_fsdp_collectives",
     .turns_on = FLAG("pre_bucket_fsdp_collectives")},
    {.name = "aten_distributed_optimizations.pre_bucketing_fsdp_collectives_bucket_cap_mb",
     .help = "its cap_mb",
     .option = "cap_mb",
     .passes = "pre_bucket_fsdp_collectives"},
    {.name = "aten_distributed_optimizations.pre_bucketing_fsdp_collectives_min_bucket_cap_mb",
     .help = "its min_mb",
     .option = "min_mb",
     .passes = "pre_bucket_fsdp_collectives"},
    {.name = "aten_distributed_optimizations.pre_bucketing_fsdp_collectives_max_bucket_cap_mb",
     .help = "its max_mb",
     .option = "max_mb",
     .passes = "pre_bucket_fsdp_collectives"},
    {.name = "aten_distributed_optimizations.pre_bucketing_fsdp_collectives_saturation_calibration_"
             "multiplier",
     .help = "its multiplier",
     .option = "multiplier",
     .passes = "pre_bucket_fsdp_collectives"},
    {.name = "aten_distributed_optimizations.enable_overlap_scheduling",
     .help = "True or False: schedule_overlap_bucketing",
     .turns_on = FLAG("schedule_overlap_bucketing")},
    OVERLAP("collective_bucketing", "True or False: its own buckets"),
    OVERLAP("max_compute_pre_fetch", "how many matrix products ahead a collective may start"),
    OVERLAP("compute_overlap_multipler", "factor on what a kernel can hide"),
    OVERLAP("max_memory_increase_gb", "GiB above the peak of the graph as it came"),
    OVERLAP("max_memory_increase_ratio", "the same as a share of it"),
    OVERLAP("max_in_flight_gb", "GiB of collectives in flight"),
    OVERLAP("max_coll_distance", "candidates that are looked at"),
    OVERLAP("bucket_exposed_first", "None, True or False: merge exposed collectives first"),
    OVERLAP("bucket_only_internode_comms",
            "True or False: merge only on groups that gather parameters"),
    OVERLAP("enable_fusion_regions", "True or False: times of kernels that Inductor fuses"),
    OVERLAP("bucket_mode", "how collectives are merged"),
    OVERLAP("prioritize_bucketing_during_scheduling",
            "True or False: start together what could be merged"),
    OVERLAP("overlap_scheduling_autofix_cycles",
            "True or False: drop edges that contradict the schedule"),
    OVERLAP("insert_overlap_deps", "False; insert_control_deps is a pass"),
    {.name = "aten_distributed_optimizations.collective_estimator",
     .help = "analytical or benchmark: accepted; the machine or a profile gives the times",
     .turns_on = "analytical=|benchmark="},
    {.name = "aten_distributed_optimizations.compute_estimator",
     .help = "analytical or benchmark: accepted; the machine or a profile gives the times",
     .turns_on = "analytical=|benchmark="},
    {.name = "_fuse_ddp_communication",
     .help = "True or False: fuse_ddp_communication",
     .turns_on = FLAG("fuse_ddp_communication")},
    {.name = "_fuse_ddp_bucket_size",
     .help = "bucket_size_mb of DDP fusion",
     .option = "bucket_size_mb",
     .passes = "fuse_ddp_communication|fuse_ddp_with_concat_op|fuse_ddp_with_coalesced_op"},
    {.name = "_fuse_ddp_communication_passes",
     .help = "what fuse_ddp_communication runs",
     .option = "passes",
     .passes = "fuse_ddp_communication"},
    {.name = "reorder_for_compute_comm_overlap",
     .help = "True or False: reorder_compute_and_comm_for_overlap",
     .turns_on = FLAG("reorder_compute_and_comm_for_overlap")},
    {.name = "reorder_for_compute_comm_overlap_passes",
     .help = "what reorder_compute_and_comm_for_overlap runs",
     .option = "passes",
     .passes = "reorder_compute_and_comm_for_overlap"},
    {.name = "reorder_for_peak_memory",
     .help = "True or False: reorder_for_peak_memory",
     .turns_on = FLAG("reorder_for_peak_memory")},
    {.name = "aten_distributed_optimizations.enable_simple_overlap",
     .help = "True or False: simple_overlap",
     .turns_on = FLAG("simple_overlap")},
    {.name = "estimate_op_runtime",
     .help = "\"default\" is all that can be said here; a profile, or a function in C, says more",
     .turns_on = "default="},
    {.name = "runtime_estimations_mms_benchmark",
     .help = "True or False: accepted; nothing is run to be measured, a profile gives it",
     .turns_on = FLAG("")},
    {.name = "runtime_estimations_use_nccl_lib_estimations",
     .help = "True or False: accepted; use --model nccl",
     .turns_on = FLAG("")},
/* Each scheduler option is also a key that applies to all schedulers. */
#define OPTION(for, option_name, type, own, torch, text)                                           \
    {.name = #option_name, .help = text, .option = #option_name},
#include "schedule/schedule_options.def"
#undef OPTION
    {.name = NULL},
};

const struct pass_table all_passes = {
    .row = rows,
    .n = sizeof(rows) / sizeof(*rows),
    .key = keys,
    .n_key = sizeof(keys) / sizeof(*keys) - 1,
};
