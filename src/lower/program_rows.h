/* Rows that belong to ops, put in order of their ops. */
#ifndef TUCK_LOWER_PROGRAM_ROWS_H
#define TUCK_LOWER_PROGRAM_ROWS_H

/* start[op + 1] is where the rows of op begin. Put down with rows[start[op + 1]++] = row, each in its turn, they move
 * the starts to where they belong: start[op] … start[op + 1] - 1 in the end. */
#define ROW_STARTS(p, rows, member, start)                                                         \
    do {                                                                                           \
        (start) = arena_zeroed(&(p)->arena, ((size_t)(p)->n_op + 2) * sizeof(*(start)));           \
        for (uint32_t i_ = 0; i_ < (rows).len; i_++)                                               \
            (start)[(rows).at[i_].member + 2]++;                                                   \
        for (uint32_t i_ = 2; i_ < (p)->n_op + 2; i_++)                                            \
            (start)[i_] += (start)[i_ - 1];                                                        \
    } while (0)

#endif
