/* What the path of a file says about the graphs in it: folders of TORCH_COMPILE_DEBUG, of tlparse
 * and of tuck.torch.capture(), names of structured logs. */
#ifndef TUCK_JOB_PIECE_PATH_H
#define TUCK_JOB_PIECE_PATH_H

#include "job/piece.h"

struct path_facts {
    int32_t rank; /* -1 if the path does not say */
    struct compile_id id;
    uint8_t role;      /* enum job_role */
    int64_t order;     /* -1 if the path does not say */
    const char *title; /* NULL if the path does not say */
    const char *known; /* from a side-car; NULL if there is none */
};

void path_facts(const struct pieces *p, uint32_t source, struct path_facts *out);

#endif
