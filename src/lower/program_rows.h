/* Sorts rows that belong to ops by their ops. */
#ifndef TUCK_LOWER_PROGRAM_ROWS_H
#define TUCK_LOWER_PROGRAM_ROWS_H

#include "base/csr.h"

/* Counts the rows of each op; store them with rows[csr_place(start, op)] = row. */
#define ROW_STARTS(a, p, rows, member, start)                                                      \
    do {                                                                                           \
        (start) = csr_begin((a), (p)->n_op);                                                       \
        for (uint32_t i_ = 0; i_ < (rows).len; i_++)                                               \
            csr_count((start), (rows).at[i_].member);                                              \
        csr_sum((start), (p)->n_op);                                                               \
    } while (0)

#endif
