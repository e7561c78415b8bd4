/* The records of a structured log (TORCH_TRACE): one JSON object, after the header of a line. */
#ifndef TUCK_JOB_RECORD_H
#define TUCK_JOB_RECORD_H

#include <jansson.h>

#include "base/arena.h"
#include "job/compile_id.h"

struct record {
    const char *title; /* its first key, or the name of an artifact or dump */
    int32_t rank;      /* -1 if it is not given */
    struct compile_id id;
};

/* A member of a record that is a number from 0 on, or `none`; the compilation that it is of. */
int32_t record_number(const json_t *o, const char *key, int32_t none);
struct compile_id record_id(const json_t *o);

/* Parses the record [s, end) if it may announce a graph: false for all others. */
bool record_parse(const char *s, const char *end, struct arena *a, struct record *out);

#endif
