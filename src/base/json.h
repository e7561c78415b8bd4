/* Writes JSON in pieces: a graph of a million nodes is written as it is walked. */
#ifndef TUCK_BASE_JSON_H
#define TUCK_BASE_JSON_H

#include "base/buf.h"

struct json_out {
    struct buf *b;
    uint32_t depth, base; /* base: where the document begins in a list of documents */
    bool first;           /* nothing in the innermost object or list yet */
    bool flat;            /* keep the innermost levels on one line */
};

/* What an item of a list of documents says about itself, after its schema. */
struct json_head {
    int64_t graph;     /* its number in the file */
    const char *title; /* "" if none */
    uint32_t line;
    int rank;      /* -1 if none */
    int64_t world; /* 0 if none */
};

void json_begin(struct json_out *j, struct buf *b);
void json_schema(struct json_out *j, int version); /* "schema", head and measured of b */
/* key == NULL: an item of a list, or the whole document. */
void json_open(struct json_out *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json_out *j, char bracket);                 /* '}' or ']' */
void json_str(struct json_out *j, const char *key, const char *s);
void json_int(struct json_out *j, const char *key, int64_t v);
void json_float(struct json_out *j, const char *key, double v); /* null if not finite */
void json_bool(struct json_out *j, const char *key, bool v);
void json_null(struct json_out *j, const char *key);
void json_end(struct json_out *j); /* writes the final newline */

/* {"schema": 1, "file": …, KEY: [ … ]}: b->head is set before each item, which is a
 * document from json_begin() on. */
void json_list_open(struct buf *b, const char *file, const char *key);
void json_list_item(struct buf *b, bool first);
void json_list_close(struct buf *b);

#endif
