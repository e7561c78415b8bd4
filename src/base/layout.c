#include "base/layout.h"

/* Below that, nothing is readable. */
enum { LEAST_COLUMNS = 40, LEAST_NAME = 8 };

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* The bytes of the escape at s, 0 if there is none. */
static size_t escape_at(const char *s, size_t len)
{
    size_t n = 2;

    if (len < 2 || s[0] != '\033' || s[1] != '[')
        return 0;
    while (n < len && s[n] != 'm')
        n++;
    return n < len ? n + 1 : n;
}

size_t layout_columns(const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0, skip; i < len; i += skip ? skip : 1) {
        skip = escape_at(s + i, len - i);
        n += skip == 0 && starts_character(s[i]);
    }
    return n;
}

/* Sentences are no wider than this on any terminal. */
static size_t wrap_width(const struct buf *b)
{
    return b->width == 0 || b->width > LAYOUT_COLUMNS ? LAYOUT_COLUMNS
           : b->width < LEAST_COLUMNS                 ? LEAST_COLUMNS
                                                      : b->width;
}

/* ---- wrapping ---- */

size_t wrap_begin(struct buf *b)
{
    b->hold = true;
    return b->len;
}

struct wrapped {
    const char *text;
    size_t len, at;
    size_t column, width, indent;
    bool fresh; /* nothing but spaces on this line */
};

/* The number of bytes of the first n characters. */
static size_t bytes_of(const char *s, size_t len, size_t n)
{
    size_t i = 0;

    for (; i < len; i++)
        if (starts_character(s[i]) && n-- == 0)
            break;
    return i;
}

/* The end distinguishes most names of a graph: all_gather_into_tensor_17. */
static size_t put_cut(struct buf *b, const char *s, size_t len, size_t room)
{
    size_t columns = layout_columns(s, len);

    if (b->width == 0 || columns <= room) {
        buf_add(b, s, len);
        return columns;
    }
    size_t tail = (room - 1) / 2, last = bytes_of(s, len, columns - tail);
    buf_add(b, s, bytes_of(s, len, room - 1 - tail));
    buf_str(b, "…");
    buf_add(b, s + last, len - last);
    return room;
}

/* The same for a word that may begin and end with escapes. */
static size_t put_cut_word(struct buf *b, const char *s, size_t len, size_t room)
{
    size_t at = 0, end, skip;

    while ((skip = escape_at(s + at, len - at)) > 0)
        at += skip;
    for (end = at; end < len && s[end] != '\033';)
        end++;
    buf_add(b, s, at);
    size_t columns = put_cut(b, s + at, end - at, room);
    buf_add(b, s + end, len - end);
    return columns;
}

/* Spaces and the word after them, on this line or the next. */
static void put_word(struct buf *b, struct wrapped *w)
{
    size_t word = w->at, end;

    while (word < w->len && w->text[word] == ' ')
        word++;
    for (end = word; end < w->len && w->text[end] != ' ' && w->text[end] != '\n';)
        end++;
    size_t gap = word - w->at, wide = layout_columns(w->text + word, end - word);
    if (!w->fresh && wide > 0 && w->column + gap + wide > w->width) {
        buf_chr(b, '\n');
        buf_fill(b, ' ', w->indent);
        w->column = w->indent;
    } else if (wide > 0 || word < w->len) {
        buf_fill(b, ' ', gap);
        w->column += gap;
    }
    if (b->width > 0 && wide > w->width - w->indent)
        wide = put_cut_word(b, w->text + word, end - word, w->width - w->indent);
    else
        buf_add(b, w->text + word, end - word);
    w->column += wide;
    w->fresh = w->fresh && wide == 0;
    w->at = end;
}

/* Removes what was written since `from`, to be written again with at most `more` bytes per byte.
 * The copy is in the room after it, so that a failed allocation leaks nothing. */
static const char *take_back(struct buf *b, size_t from, size_t more)
{
    size_t len = b->len - from, room = len * (more + 1);

    buf_room(b, room + len + 1);
    char *text = b->at + from + room;
    memmove(text, b->at + from, len);
    text[len] = '\0';
    b->len = from;
    b->hold = false;
    return text;
}

void wrap_end(struct buf *b, size_t from, size_t indent)
{
    struct wrapped w = {.len = b->len - from, .width = wrap_width(b), .indent = indent};

    if (layout_columns(b->at + from, w.len) <= w.width) {
        b->hold = false;
        return;
    }
    w.text = take_back(b, from, indent + 4);
    w.fresh = true;
    while (w.at < w.len)
        if (w.text[w.at] == '\n') {
            buf_chr(b, '\n');
            w.at++;
            w.column = 0;
            w.fresh = true;
        } else {
            put_word(b, &w);
        }
}

static void wrap_text(struct buf *b, enum ink k, size_t indent, size_t more, const char *fmt,
                      va_list ap) __attribute__((format(printf, 5, 0)));

static void wrap_text(struct buf *b, enum ink k, size_t indent, size_t more, const char *fmt,
                      va_list ap)
{
    size_t from = wrap_begin(b);

    buf_fill(b, ' ', indent);
    ink_begin(b, k);
    buf_vprintf(b, fmt, ap);
    ink_end(b, k);
    wrap_end(b, from, indent + more);
    buf_chr(b, '\n');
}

void wrap_line(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    wrap_text(b, k, indent, 0, fmt, ap);
    va_end(ap);
}

void wrap_fact(struct buf *b, int wide, const char *what, const char *fmt, ...)
{
    size_t from = wrap_begin(b);
    va_list ap;

    buf_printf(b, "  %-*s ", wide, what);
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
    wrap_end(b, from, (size_t)wide + 3);
    buf_chr(b, '\n');
}

void wrap_hang(struct buf *b, enum ink k, size_t indent, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    wrap_text(b, k, indent, 4, fmt, ap);
    va_end(ap);
}

/* ---- commands ---- */

/* The end of a word of a shell command; a quoted part belongs to it. */
static size_t shell_word(const char *s)
{
    size_t n = 0;

    for (bool quoted = false; s[n] != '\0' && (quoted || s[n] != ' '); n++)
        if (s[n] == '\'')
            quoted = !quoted;
    return n;
}

/* A list, with new lines after commas. Returns the column it ends at. */
static size_t put_list(struct buf *b, const char *s, size_t len, size_t indent, size_t width)
{
    size_t column = indent, item;

    for (size_t at = 0; at < len; at += item) {
        for (item = 0; at + item < len && s[at + item] != ',';)
            item++;
        item += at + item < len;
        size_t wide = layout_columns(s + at, item);
        if (at > 0 && column + wide + 1 > width) {
            buf_chr(b, '\n');
            buf_fill(b, ' ', indent);
            column = indent;
        }
        buf_add(b, s + at, item);
        column += wide;
    }
    return column;
}

void wrap_list(struct buf *b, enum ink k, size_t indent, const char *list)
{
    buf_fill(b, ' ', indent);
    ink_begin(b, k);
    put_list(b, list, strlen(list), indent, wrap_width(b));
    ink_end(b, k);
    buf_chr(b, '\n');
}

void wrap_command(struct buf *b, size_t from, enum ink k, size_t indent)
{
    size_t width = wrap_width(b), column = indent;
    const char *command = take_back(b, from, indent + 64), *s = command;

    buf_fill(b, ' ', indent);
    ink_begin(b, k);
    while (*s != '\0') {
        size_t len = shell_word(s), wide = layout_columns(s, len);
        bool first = s == command;
        if (!first && column + 1 + wide + 2 > width) {
            buf_str(b, " \\\n");
            buf_fill(b, ' ', indent + 4);
            column = indent + 4;
        } else if (!first) {
            buf_chr(b, ' ');
            column++;
        }
        if (column + wide + 2 > width && memchr(s, ',', len) != NULL) {
            const char *quote = memchr(s, '\'', len) != NULL ? "" : "'";
            buf_str(b, quote);
            column = put_list(b, s, len, indent + 4, width - 2) + 2;
            buf_str(b, quote);
        } else {
            buf_add(b, s, len);
            column += wide;
        }
        s += len;
        while (*s == ' ')
            s++;
    }
    ink_end(b, k);
    buf_chr(b, '\n');
}

/* ---- names ---- */

size_t name_longer(size_t longest, const char *name)
{
    size_t n = layout_columns(name, strlen(name));

    return n > longest ? n : longest;
}

int name_column(const struct buf *b, size_t longest, int least, int rest)
{
    int wide = longest > INT32_MAX ? INT32_MAX : (int)longest;

    if (wide < least)
        wide = least;
    int room = (int)b->width - rest > LEAST_NAME ? (int)b->width - rest : LEAST_NAME;
    return b->width > 0 && wide > room ? room : wide;
}

void put_name(struct buf *b, const char *name, int wide)
{
    size_t columns = put_cut(b, name, strlen(name), (size_t)wide);

    if (columns < (size_t)wide)
        buf_fill(b, ' ', (size_t)wide - columns);
}

size_t put_short(struct buf *b, const char *name, int wide)
{
    return put_cut(b, name, strlen(name), wide > LEAST_NAME ? (size_t)wide : LEAST_NAME);
}

void put_last(struct buf *b, size_t from, enum ink k, const char *text)
{
    size_t row = layout_columns(b->at + from, b->len - from);

    b->hold = false;
    if (row + 1 + layout_columns(text, strlen(text)) <= wrap_width(b)) {
        buf_chr(b, ' ');
        ink_line(b, k, "%s", text);
        return;
    }
    while (b->len > from && b->at[b->len - 1] == ' ')
        b->len--;
    buf_chr(b, '\n');
    wrap_line(b, k, LAYOUT_SAY, "%s", text);
}
