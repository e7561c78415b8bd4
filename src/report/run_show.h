/* What was measured on real ranks, as tables and JSON. */
#ifndef TUCK_REPORT_RUN_SHOW_H
#define TUCK_REPORT_RUN_SHOW_H

#include "study/evaluate.h"
#include "tuck_run.h"

struct run_show {
    const struct evaluation *e; /* measured, of the median step */
    int64_t ranks;
    const char *transport;
    const int64_t *step_ns; /* of all measured steps */
    uint32_t n_step;
    tuck_exec_memory memory;
};

void run_table(const struct run_show *r, uint32_t n, bool timeline, struct buf *out);
void run_json(const struct run_show *r, bool timeline, struct buf *out);

void verify_table(const tuck_compared *row, size_t n, int64_t ranks, struct buf *out);
void verify_json(const tuck_compared *row, size_t n, int64_t ranks, struct buf *out);

#endif
