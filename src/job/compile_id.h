/* What torch calls one compilation: "0/0", "0/0_1" in its second attempt, "!0/1/0" under compiled
 * autograd. "0/0.2" is the second part of a frame that was split. */
#ifndef TUCK_JOB_COMPILE_ID_H
#define TUCK_JOB_COMPILE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compile_id {
    int32_t autograd;       /* the graph of compiled autograd, -1 if none */
    int32_t frame, compile; /* -1: unknown, or none, as in "!0" */
    int32_t attempt;
    int32_t part; /* of a frame that was split; from 1, 0 if it was not */
};

#define NO_COMPILE_ID ((struct compile_id){-1, -1, -1, 0, 0})

/* Parses the whole of s. */
bool compile_id_parse(const char *s, size_t len, struct compile_id *out);

/* The same compilation, in any attempt. */
static inline bool compile_id_same(struct compile_id a, struct compile_id b)
{
    return a.autograd == b.autograd && a.frame == b.frame && a.compile == b.compile &&
           a.part == b.part;
}

enum { COMPILE_ID_TEXT = 80 };
/* "0/0"; with `attempt`, "0/0_1" if it is not the first. */
const char *compile_id_text(struct compile_id id, bool attempt, char out[COMPILE_ID_TEXT]);

#endif
