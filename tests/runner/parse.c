/* Reads a test file: its commands, and the sections that belong to each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner/runner.h"

static void parse_error(testfile *t, int line, char *message)
{
    if (t->error == NULL) {
        t->error = message;
        t->error_line = line;
    }
}

static bool is_escaped(span line)
{
    return starts(line, "\\--- ") || starts(line, "\\$ ") || starts(line, "\\```") ||
           starts(line, "\\\\");
}

bool needs_escape(span line)
{
    return starts(line, "--- ") || starts(line, "$ ") || starts(line, "```") || is_escaped(line);
}

/* The content of a section: its lines without their escapes. */
span content(const section *s)
{
    buf b = {0};
    span rest = s->body;
    buf_add(&b, "", 0);
    while (rest.n > 0) {
        span line = next_line(&rest);
        size_t skip = is_escaped(line);
        buf_add(&b, line.p + skip, line.n - skip);
        buf_add(&b, "\n", 1);
    }
    if (s->no_newline && b.n > 0)
        b.n--;
    return buf_span(&b);
}

const section *find(const testcase *c, enum kind kind)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->sections[i].kind == kind)
            return &c->sections[i];
    return NULL;
}

/* Does the path stay below the test's directory? */
static bool is_safe_name(const char *name, bool markdown)
{
    return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL &&
           !(markdown && strncmp(name, "examples/", 9) == 0);
}

/* Reads the line "--- ..." into s. */
static void parse_header(testfile *t, int line, span text, section *s)
{
    static const char tail[] = " (no newline)";
    char *head = strndup(text.p + 4, text.n - 4);
    size_t n = strlen(head), k = strlen(tail);
    if (n > k && strcmp(head + n - k, tail) == 0) {
        head[n - k] = '\0';
        s->no_newline = true;
    }
    char *end;
    if (head[0] == '#') {
        s->kind = NOTE;
    } else if (strncmp(head, "file ", 5) == 0) {
        s->kind = TO_FILE;
        s->name = head + 5;
        if (!is_safe_name(s->name, t->markdown))
            parse_error(t, line, format("file name '%s' leaves the test's directory", s->name));
    } else if (strcmp(head, "stdin") == 0) {
        s->kind = TO_STDIN;
    } else if (strcmp(head, "stdout") == 0) {
        s->kind = STDOUT;
    } else if (strcmp(head, "stderr") == 0) {
        s->kind = STDERR;
    } else if (strncmp(head, "exit ", 5) == 0) {
        s->kind = EXIT;
        s->status = (int)strtol(head + 5, &end, 10);
        if (end == head + 5 || *end != '\0' || s->status < 0 || s->status > 255)
            parse_error(t, line, format("'%s' is no exit status", head + 5));
    } else {
        parse_error(
            t, line,
            format("no such section: '%s' (text that starts so is written '\\--- ')", head));
    }
}

bool is_blank(span s)
{
    while (s.n > 0 && s.p[s.n - 1] == '\n')
        s.n--;
    return s.n == 0;
}

/* The last section of c continues up to offset `to`. */
static void extend(const testfile *t, const testcase *c, size_t to)
{
    section *s = &c->sections[c->count - 1];
    s->body.n = to - (size_t)(s->body.p - t->text.p);
}

/* Ends the last section of c at offset `to`; `last`: what follows does not belong to c. */
static void close_section(testfile *t, testcase *c, int line, size_t to, bool last)
{
    const char *text = t->text.p;
    section *s = &c->sections[c->count - 1];
    size_t body = (size_t)(s->body.p - text);
    if (s->bare && is_blank(s->body)) { /* no text follows the command */
        c->append_at = s->from;
        c->separated = s->body.n > 0;
        c->count--;
        return;
    }
    if (last && to > body && text[to - 1] == '\n' && (to - 1 == body || text[to - 2] == '\n')) {
        s->body.n--;
        s->separated = true;
    }
    s->to = body + s->body.n;
    if (s->kind == NOTE)
        return;
    c->append_at = s->to;
    c->separated = s->separated;
    if (s->kind == EXIT && s->body.n > 0)
        parse_error(t, line, format("text after an exit status"));
    if (c->command == NULL && s->kind != TO_FILE)
        parse_error(t, line, format("before a command there are files only"));
    for (size_t i = 0; i + 1 < c->count; i++)
        if (c->sections[i].kind == s->kind && s->kind != TO_FILE)
            parse_error(t, line, format("the second section of this kind for one command"));
}

/* Does a file at this point belong to the next command? It does if the output of c is complete, or
 * if a comment or blank line right after the command ended it. */
static bool is_complete(const testcase *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const section *s = &c->sections[i];
        if (s->kind == TO_FILE || s->kind == TO_STDIN || s->from < c->output_at)
            continue;
        if (!s->bare || s->body.n > 0)
            return true;
    }
    return c->command != NULL && c->separated;
}

/* Cases in the lines of [from, to), which start at line number `line`. */
static void parse_block(testfile *t, size_t from, size_t to, int line)
{
    span rest = {t->text.p + from, to - from};
    int opened = 0; /* the line of the open section, or 0 */
    for (; rest.n > 0; line++) {
        size_t at = (size_t)(rest.p - t->text.p);
        span text = next_line(&rest);
        size_t next = (size_t)(rest.p - t->text.p);
        bool is_command = starts(text, "$ ");
        if (!is_command && !starts(text, "--- ")) {
            if (opened == 0 && text.n > 0 && text.p[0] != '#')
                parse_error(t, line, format("expected '# comment', '--- file' or '$ command'"));
            continue;
        }
        section s = {.kind = STDOUT, .bare = true, .from = next, .body = {rest.p, 0}};
        if (!is_command) {
            s = (section){.from = at, .body = s.body};
            parse_header(t, line, text, &s);
        }
        testcase *c = t->count > 0 ? &t->cases[t->count - 1] : NULL;
        if (opened > 0)
            extend(t, c, at);
        bool for_next = is_command || (s.kind == TO_FILE && c != NULL && is_complete(c));
        if (opened > 0)
            close_section(t, c, opened, at, for_next || s.kind == NOTE);

        /* Files before a command belong to it, also those from an earlier block. */
        if (c == NULL || (c->command != NULL && (for_next || opened == 0))) {
            c = PUSH(t->cases, t->count);
            *c = (testcase){.line = line};
        }
        if (is_command) {
            c->line = line;
            c->command = strndup(text.p + 2, text.n - 2);
            c->output_at = next;
        }
        *PUSH(c->sections, c->count) = s;
        opened = line;
    }
    if (opened > 0) {
        extend(t, &t->cases[t->count - 1], to);
        close_section(t, &t->cases[t->count - 1], opened, to, true);
    }
}

/* The number of characters of the fence that opens or closes a block in Markdown, or 0. */
static size_t fence(span line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == line.p[0])
        n++;
    return n >= 3 && (line.p[0] == '`' || line.p[0] == '~') ? n : 0;
}

static void parse_markdown(testfile *t)
{
    span rest = buf_span(&t->text);
    size_t open = 0, from = 0; /* the length of the open fence; where its block begins */
    char mark = 0;
    bool ours = false;
    int from_line = 0;
    for (int line = 1; rest.n > 0; line++) {
        size_t at = (size_t)(rest.p - t->text.p);
        span text = next_line(&rest);
        size_t n = fence(text);
        if (n == 0)
            continue;
        if (open == 0) {
            open = n;
            mark = text.p[0];
            ours = span_eq((span){text.p + n, text.n - n}, (span){"tuck-test", 9});
            from = at + text.n + 1;
            from_line = line + 1;
        } else if (text.p[0] == mark && n >= open && n == text.n) {
            open = 0;
            if (ours)
                parse_block(t, from, at, from_line);
        }
    }
    if (open > 0 && ours)
        parse_error(t, from_line - 1, format("this block is not closed"));
}

void parse(testfile *t)
{
    if (!read_file(t->path, &t->text)) {
        parse_error(t, 0, format("%s", strerror(errno)));
        return;
    }
    size_t n = strlen(t->path);
    t->markdown = n > 3 && strcmp(t->path + n - 3, ".md") == 0;
    if (t->text.n > 0 && t->text.p[t->text.n - 1] != '\n')
        parse_error(t, 0, format("the last line has no newline"));
    else if (t->markdown)
        parse_markdown(t);
    else
        parse_block(t, 0, t->text.n, 1);
    if (t->count > 0 && t->cases[t->count - 1].command == NULL)
        parse_error(t, t->cases[t->count - 1].line, format("no command follows"));
    else if (t->count == 0 && !t->markdown)
        parse_error(t, 0, format("there is no command in it"));
}
