/* JSON on its way out, in pieces: a graph of a million nodes is written as it is walked. */
#ifndef TUCK_BASE_JSON_H
#define TUCK_BASE_JSON_H

#include "base/buf.h"

struct json_out {
    struct buf *b;
    uint32_t depth;
    bool first; /* nothing in the innermost object or list yet */
    bool flat;  /* keep the innermost levels on one line */
};

void json_begin(struct json_out *j, struct buf *b);
/* key == NULL: an item of a list, or the whole document. */
void json_open(struct json_out *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json_out *j, char bracket);                 /* '}' or ']' */
void json_str(struct json_out *j, const char *key, const char *s);
void json_int(struct json_out *j, const char *key, int64_t v);
void json_float(struct json_out *j, const char *key, double v); /* not finite: null */
void json_bool(struct json_out *j, const char *key, bool v);
void json_null(struct json_out *j, const char *key);
void json_end(struct json_out *j); /* the final newline */

#endif
