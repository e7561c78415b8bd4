/* Texts as people have them: logs with prefixes, colours, several ranks in one stream.
 * Before anything is parsed each is taken apart into plain texts, one a writer; a line
 * map leads back to the file.
 */
#ifndef TUCK_TEXT_LOG_TEXT_H
#define TUCK_TEXT_LOG_TEXT_H

#include "base/arena.h"
#include "base/vec.h"

struct fx_text {
    const char *at; /* at[len] is NUL */
    size_t len;
    char *own;            /* at, if it is ours */
    size_t own_size;      /* bytes allocated for it */
    VEC(uint32_t) line;   /* line in the file of each line here; empty = the same, plus line0 */
    VEC(uint32_t) column; /* bytes cut off in front of each line; empty = none */
    uint32_t line0;
    int rank;  /* of the lines' prefix, -1 = none */
    bool log;  /* lines had a prefix: text between graphs is noise */
    bool crlf; /* every line ended in CR LF, and nothing else was taken out */
    bool bom;  /* it began with a byte order mark */
};

struct fx_texts {
    VEC(struct fx_text) all;
};

/* Take a text apart. It is used in place where nothing has to be cleaned. */
void texts_split(struct mem *m, const char *text, size_t len, struct fx_texts *out);
void texts_free(struct mem *m, struct fx_texts *t);
void text_free(struct mem *m, struct fx_text *t);

/* From byte `from` of `src`, line `line` (from 0): copy lines without their prefix, up to the first
 * that has text but not the prefix. In a prefix a run of digits stands for any run of digits. The
 * byte after the last line taken, its line number in *end_line. */
size_t text_unprefix(struct mem *m, const struct fx_text *src, size_t from, uint32_t line,
                     const char *prefix, size_t prefix_len, struct fx_text *out,
                     uint32_t *end_line);

/* Length of what a line has of a prefix, digits standing for digits; 0 = it does not have it. */
size_t text_match_prefix(const char *s, const char *end, const char *prefix, size_t len);

#endif
