/* What was done to the graphs of several ranks, for the report. */
#ifndef TUCK_STUDY_RANKS_REPORT_H
#define TUCK_STUDY_RANKS_REPORT_H

#include "pass/pass_report.h"
#include "study/rank_programs.h"

struct ranks_row {
    const char *file;
    int64_t number;         /* -1 if unknown */
    uint64_t was, sequence; /* digests of its communication, before and after */
};

struct tuck_ranks_report {
    struct mem mem;
    struct arena arena;
    struct rank_programs programs;
    struct ranks_row *row;       /* by rank */
    struct tuck_report **report; /* by program */
    const char **where;          /* by program: how it differs from the first, or "" */
    int64_t before_ps, after_ps; /* all ranks together; -1: they cannot be simulated together */
    bool slower;                 /* together it would be slower: no graph is changed */
};

/* ranks_show.c */
void ranks_report_json(const struct tuck_ranks_report *x, const struct report_form *how,
                       struct buf *b);
void ranks_report_table(const struct tuck_ranks_report *x, const struct report_form *how,
                        struct buf *b);

#endif
