/* How tables fit a terminal: columns of names, and sentences that are wrapped at words. A table is
 * at most 80 columns wide where its names have at most 28 characters. Names are cut only where
 * buf.width says how much room there is. */
#ifndef TUCK_BASE_LAYOUT_H
#define TUCK_BASE_LAYOUT_H

#include "base/colour.h"

enum {
    LAYOUT_COLUMNS = 80,
    LAYOUT_SAY = 6, /* how far a sentence below a row is indented */
};

/* Columns of a text: characters, without the escapes of colours. */
size_t layout_columns(const char *s, size_t len);

/* What is written between the two, from the start of a line on, is wrapped. Lines that it adds
 * begin with `indent` spaces; those that are written as lines keep their own. A word that is longer
 * than a line stays whole, unless buf.width says how long a line is. */
size_t wrap_begin(struct buf *b);
void wrap_end(struct buf *b, size_t from, size_t indent);

/* A sentence on a line of its own: all its lines begin with `indent` spaces. */
void wrap_line(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A sentence whose first line begins with `indent` spaces, the others with four more. */
void wrap_hang(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A list without spaces, broken after commas. */
void wrap_list(struct buf *b, enum ink k, size_t indent, const char *list);

/* What was written since `from` (wrap_begin) as a shell command, such that a copy of its lines
 * runs: a line that goes on ends with a backslash, and a list that is too long for a line is quoted
 * and broken after a comma. */
void wrap_command(struct buf *b, size_t from, enum ink k, size_t indent);

/* How wide a column of names is, of which the longest has `longest` characters: at least `least`,
 * and no wider than the terminal leaves beside the `rest` of the row. */
int name_column(const struct buf *b, size_t longest, int least, int rest);
/* The longest so far, of names of a column. */
size_t name_longer(size_t longest, const char *name);
/* A name, padded to `wide`; where the terminal's width is known, a longer one loses its middle. */
void put_name(struct buf *b, const char *name, int wide);
/* … without padding. Returns its columns. */
size_t put_short(struct buf *b, const char *name, int wide);
/* The last cell of a row that began at `from` (wrap_begin), and the end of the line. On a line of
 * its own where the row has no room for it. */
void put_last(struct buf *b, size_t from, enum ink k, const char *text);

#endif
