/* Fits tables to a terminal: columns of names, and sentences that are wrapped at words. A table is
 * at most 80 columns wide if its names have at most 28 characters. Names are shortened only if
 * buf.width says how much room there is. */
#ifndef TUCK_BASE_LAYOUT_H
#define TUCK_BASE_LAYOUT_H

#include "base/color.h"

enum {
    LAYOUT_COLUMNS = 80,
    LAYOUT_SAY = 6, /* how far a sentence below a row is indented */
};

/* The columns of a text: its characters, without color escapes. */
size_t layout_columns(const char *s, size_t len);

/* What is written between the two, starting at the beginning of a line, is wrapped. Added lines
 * begin with `indent` spaces; lines in the text keep their own. A word that is longer than a line
 * stays whole, unless buf.width gives the length of a line. */
size_t wrap_begin(struct buf *b);
void wrap_end(struct buf *b, size_t from, size_t indent);

/* A line of a list of facts: a name in a column of `wide`, then the text, wrapped below itself. */
void wrap_fact(struct buf *b, int wide, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A sentence on a line of its own: all its lines begin with `indent` spaces. */
void wrap_line(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A sentence whose first line begins with `indent` spaces, the others with four more. */
void wrap_hang(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A list without spaces, broken after commas. */
void wrap_list(struct buf *b, enum ink k, size_t indent, const char *list);

/* Formats what was written since `from` (wrap_begin) as a shell command, so that a copy of its
 * lines runs: a line that continues ends with a backslash, and a list that is too long for a line
 * is quoted and broken after a comma. */
void wrap_command(struct buf *b, size_t from, enum ink k, size_t indent);

/* The width of a column of names, the longest of which has `longest` characters: at least `least`,
 * and no wider than the terminal allows next to the `rest` of the row. */
int name_column(const struct buf *b, size_t longest, int least, int rest);
/* The longest so far among the names of a column. */
size_t name_longer(size_t longest, const char *name);
/* A name, padded to `wide`; if the terminal's width is known, a longer one loses its middle. */
void put_name(struct buf *b, const char *name, int wide);
/* The same without padding. Returns its columns. */
size_t put_short(struct buf *b, const char *name, int wide);
/* The last cell of a row that began at `from` (wrap_begin), and the end of the line. It goes on its
 * own line if the row has no room for it. */
void put_last(struct buf *b, size_t from, enum ink k, const char *text);

#endif
