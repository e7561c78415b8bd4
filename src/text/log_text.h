/* Input as it occurs in practice: logs with prefixes, colors, several ranks in one stream. Before
 * anything is parsed, each is separated into plain texts, one per writer; a line map leads back to
 * the file.
 */
#ifndef TUCK_TEXT_LOG_TEXT_H
#define TUCK_TEXT_LOG_TEXT_H

#include "base/arena.h"
#include "base/vec.h"

struct fx_text {
    const char *at; /* at[len] is NUL */
    size_t len;
    char *own;            /* `at` if this owns it */
    size_t own_size;      /* bytes allocated for it */
    VEC(uint32_t) line;   /* by line here: its line in the file; empty means the same, plus line0 */
    VEC(uint32_t) column; /* by line: bytes cut off in front of it; empty means none */
    uint32_t line0;
    int rank;  /* from the lines' prefix, -1 if none */
    bool log;  /* lines had a prefix: text between graphs is noise */
    bool crlf; /* every line ended in CR LF, and nothing else was removed */
    bool bom;  /* it began with a byte order mark */
};

struct fx_texts {
    VEC(struct fx_text) all;
};

/* What precedes the text of a log's line. */
struct log_prefix {
    const char *body; /* where the line's own text begins; the line itself if there is no prefix */
    const char
        *key; /* the writer: "[rank0]:" and the process id; what a launcher wrote is before */
    size_t key_len;
    const char *when; /* of a header: "0521 09:32:52.155000 " */
    const char *pid;
    size_t pid_len;
    const char *tag[2]; /* "0/0" of "[0/0]", "__aot_graphs" of "[__aot_graphs]"; NULL if none */
    size_t tag_len[2];
    int rank;
    bool record; /* a log header, not only a rank */
};
struct log_prefix log_prefix_of(const char *s, const char *end);

/* Appends a line [s, eol) to the text that is built in b, without its terminal escapes; `line` and
 * `column`: where it is in the file. */
struct buf;
void text_add_line(struct mem *m, struct fx_text *t, struct buf *b, const char *s, const char *eol,
                   uint32_t line, uint32_t column);

/* Separates a text. It is used in place if nothing has to be cleaned. */
void texts_split(struct mem *m, const char *text, size_t len, struct fx_texts *out);
void texts_free(struct mem *m, struct fx_texts *t);
void text_free(struct mem *m, struct fx_text *t);

/* From byte `from` of `src`, line `line` (from 0): copies lines without their prefix, up to the
 * first that has text but not the prefix. Digits in a prefix match any digits. Returns the byte
 * after the last line taken, and its line number in *end_line. */
size_t text_unprefix(struct mem *m, const struct fx_text *src, size_t from, uint32_t line,
                     const char *prefix, size_t prefix_len, struct fx_text *out,
                     uint32_t *end_line);

/* The length of the prefix in a line, where digits match any digits; 0 if it does not have it. */
size_t text_match_prefix(const char *s, const char *end, const char *prefix, size_t len);

#endif
