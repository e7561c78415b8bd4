/* Shows the expected and the actual output, line by line. */
#include <stdlib.h>

#include "runner/runner.h"

typedef struct {
    span *line;
    size_t count;
    bool no_newline;
} lines;

static lines split_lines(span s)
{
    lines l = {.no_newline = s.n > 0 && s.p[s.n - 1] != '\n'};
    while (s.n > 0) {
        span line = next_line(&s);
        *PUSH(l.line, l.count) = line;
    }
    return l;
}

static void print_line(FILE *f, char mark, span line)
{
    fprintf(f, "  %c", mark);
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        bool visible = (c >= ' ' && c != 0x7f) || c == '\t';
        if (visible && !(c == ' ' && i + 1 == line.n))
            fputc(c, f);
        else
            fprintf(f, "\\x%02x", c);
    }
    fputc('\n', f);
}

typedef struct {
    char mark; /* ' ', '-', '+' */
    span line;
    size_t at; /* its line number in what was expected */
} edit;

/* The edits from a to b: a longest common subsequence of what differs, if that is affordable. */
static edit *compare(lines a, lines b, size_t *count_out)
{
    edit *edits = NULL;
    size_t count = 0, head = 0, tail = 0;
    while (head < a.count && head < b.count && span_eq(a.line[head], b.line[head]))
        head++;
    while (tail < a.count - head && tail < b.count - head &&
           span_eq(a.line[a.count - 1 - tail], b.line[b.count - 1 - tail]))
        tail++;
    size_t n = a.count - head - tail, m = b.count - head - tail, w = m + 1;
    unsigned *len = NULL; /* len[i * w + j]: of the sequence common to a[i..] and b[j..] */
    if (n < 4000 && m < 4000) {
        len = calloc((n + 1) * w, sizeof *len);
        if (len == NULL)
            die("out of memory");
        for (size_t i = n; i-- > 0;)
            for (size_t j = m; j-- > 0;) {
                unsigned down = len[(i + 1) * w + j], right = len[i * w + j + 1];
                len[i * w + j] = span_eq(a.line[head + i], b.line[head + j])
                                     ? len[(i + 1) * w + j + 1] + 1
                                     : (down > right ? down : right);
            }
    }
    for (size_t i = 0; i < head; i++)
        *PUSH(edits, count) = (edit){' ', a.line[i], i + 1};
    for (size_t i = 0, j = 0; i < n || j < m;) {
        span none = {0}, la = i < n ? a.line[head + i] : none, lb = j < m ? b.line[head + j] : none;
        if (i < n && j < m && len != NULL && span_eq(la, lb)) {
            *PUSH(edits, count) = (edit){' ', la, head + i + 1};
            i++, j++;
        } else if (i < n && (j == m || len == NULL || len[(i + 1) * w + j] >= len[i * w + j + 1])) {
            *PUSH(edits, count) = (edit){'-', la, head + i + 1};
            i++;
        } else {
            *PUSH(edits, count) = (edit){'+', lb, head + i + 1};
            j++;
        }
    }
    for (size_t i = a.count - tail; i < a.count; i++)
        *PUSH(edits, count) = (edit){' ', a.line[i], i + 1};
    free(len);
    *count_out = count;
    return edits;
}

void print_difference(FILE *f, const char *what, span expected, span actual)
{
    enum { CONTEXT = 3, MOST = 120 };
    lines a = split_lines(expected), b = split_lines(actual);
    size_t count, shown = 0, after = 0; /* after: the first edit not yet printed */
    edit *edits = compare(a, b, &count);
    fprintf(f, "  --- %s, expected\n  +++ %s, actual\n", what, what);
    for (size_t i = 0; i < count; i++) {
        if (edits[i].mark == ' ')
            continue;
        size_t from = i > CONTEXT ? i - CONTEXT : 0, to = i;
        for (size_t k = i; k < count && k <= to + 2 * CONTEXT; k++)
            if (edits[k].mark != ' ')
                to = k;
        from = from < after ? after : from;
        after = to + 1 + CONTEXT < count ? to + 1 + CONTEXT : count;
        fprintf(f, "  @@ line %zu @@\n", edits[from].at);
        for (size_t k = from; k < after; k++) {
            if (shown++ >= MOST && !opt.verbose) {
                fprintf(f, "  ... and more (-v shows all)\n");
                return;
            }
            print_line(f, edits[k].mark, edits[k].line);
        }
        i = after - 1;
    }
    if (a.no_newline != b.no_newline)
        fprintf(f, "  the %s text has no newline at its end\n",
                a.no_newline ? "expected" : "actual");
}
