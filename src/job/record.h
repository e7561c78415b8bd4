/* The records of a structured log (TORCH_TRACE): one JSON object, after the header of a line. */
#ifndef TUCK_JOB_RECORD_H
#define TUCK_JOB_RECORD_H

#include "base/arena.h"
#include "job/compile_id.h"

struct record {
    const char *title; /* its first key, or the name of an artifact or dump */
    int32_t rank;      /* -1 if it is not given */
    struct compile_id id;
};

/* Which call of the program a frame was compiled for: a hash of the stack. False if the record
 * [s, end) does not say it. */
bool record_call(const char *s, const char *end, struct compile_id *id, uint64_t *hash);

/* Parses the record [s, end) if it may announce a graph: false for all others. */
bool record_parse(const char *s, const char *end, struct arena *a, struct record *out);

#endif
