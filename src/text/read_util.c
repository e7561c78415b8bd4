/* Helpers of the reader: positions, errors, blanks, names. */
#include <stdio.h>

#include "text/read.h"

bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

uint32_t read_file_line(const struct reader *r, uint32_t line)
{
    uint32_t n = r->text->line.len;

    if (n > 0) /* the end of the text counts as a line after the last */
        return line < n ? r->text->line.at[line] : r->text->line.at[n - 1] + 1;
    return r->text->line0 + line + 1;
}

/* `at` is in the cursor's line or, if an operand spans lines, in one above. */
struct diag_pos read_pos(struct reader *r, const char *at, size_t len)
{
    const char *bol = r->bol;
    uint32_t line = r->line;

    if (r->pin != NULL) {
        at = r->pin;
        len = 1;
    }
    while (at < bol) {
        bol--;
        while (bol > r->text->at && bol[-1] != '\n')
            bol--;
        line--;
    }
    for (const char *s = bol; s < at; s++)
        if (*s == '\n') {
            bol = s + 1;
            line++;
        }
    uint32_t cut = line < r->text->column.len ? r->text->column.at[line] : 0;
    return (struct diag_pos){.source = &r->source,
                             .at = at,
                             .line = read_file_line(r, line),
                             .column = (uint32_t)(at - bol) + cut + 1,
                             .length = (uint32_t)(len < 200 ? len : 200)};
}

bool read_error(struct reader *r, const char *at, size_t len, const char *note, const char *fmt,
                ...)
{
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, read_pos(r, at, len), note, fmt, ap);
    va_end(ap);
    r->failed = true;
    return false;
}

void read_warn(struct reader *r, const char *at, size_t len, const char *note, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_WARNING, read_pos(r, at, len), note, fmt, ap);
    va_end(ap);
}

void read_again(struct reader *r)
{
    r->p = r->stmt;
    r->bol = r->stmt_bol;
    r->line = r->stmt_line;
    values_clear(&r->vals);
    r->open_at_text.len = 0;
    r->brackets = 0;
    r->lenient = 0;
    r->freed.len = 0;
}

void read_newline(struct reader *r)
{
    r->p++;
    r->line++;
    r->bol = r->p;
}

void read_blanks(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\t')
        r->p++;
}

void read_space(struct reader *r)
{
    for (;;) {
        if (*r->p == ' ' || *r->p == '\t')
            r->p++;
        else if (*r->p == '\n')
            read_newline(r);
        else if (*r->p == '#')
            r->p += strcspn(r->p, "\n");
        else if (*r->p == '\\' && r->p[1] == '\n')
            r->p++;
        else
            break;
    }
}

void read_skip_line(struct reader *r)
{
    r->p += strcspn(r->p, "\n");
    if (*r->p == '\n') {
        read_newline(r);
    } else if (r->p != r->bol) { /* treated as if it ended in a newline: no line is read twice */
        r->line++;
        r->bol = r->p;
    }
}

void read_go_to(struct reader *r, const char *p, const char *bol, uint32_t line)
{
    r->p = p;
    r->bol = bol;
    r->line = line;
}

uint32_t read_lookup(struct reader *r, str_id name)
{
    const struct str *s = str_at(&r->store->str, name);

    if (r->by_name)
        return name_lookup(r->g, name);
    return s->owner == r->g->serial ? s->node : 0;
}

uint32_t read_define(struct reader *r, str_id name, const char *at, struct fx_node init)
{
    struct diag_pos pos = {.line = 0};

    if (name != 0) {
        uint32_t known = read_lookup(r, name);
        if (known != 0) {
            char note[64];
            const char *text = str_text(&r->store->str, name);
            uint32_t line = node_at(r->g, known)->line;
            snprintf(note, sizeof(note), "first defined in line %u", line);
            if (init.line != 0) /* a parameter, from a line above */
                diag_add(r->diags, TUCK_ERROR,
                         (struct diag_pos){
                             .source = &r->source, .line = init.line, .column = init.column},
                         line ? note : NULL, "name '%s' is defined twice", text);
            else
                read_error(r, at, strlen(text), line ? note : NULL, "name '%s' is defined twice",
                           text);
            r->failed = true;
            return 0;
        }
        init.name = name;
    }
    if (init.line != 0) {
        /* the caller gives the position */
    } else if (at != NULL && at >= r->bol &&
               r->pin == NULL) { /* the usual case: no need to search for the line */
        init.line = read_file_line(r, r->line);
        init.column = (uint32_t)(at - r->bol) + 1;
    } else if (at != NULL) {
        pos = read_pos(r, at, 1);
        init.line = pos.line;
        init.column = pos.column;
    }
    uint32_t n = graph_add_node(r->g, 0, init);
    if (name != 0) {
        struct str *s = &r->store->str.all.at[name];
        s->owner = r->g->serial;
        s->node = n;
    }
    return n;
}

bool read_balanced(struct reader *r)
{
    static const char pairs[] = "()[]{}";
    uint32_t base = r->open_at_text.len;

    for (;;) {
        char c = *r->p;
        const char *open = c ? strchr(pairs, c) : NULL;

        if (c == '\0' || ((c == '\n' || c == '#') && r->open_at_text.len == base)) {
            if (r->open_at_text.len > base) {
                const char *at = r->open_at_text.at[r->open_at_text.len - 1];
                return read_error(r, at, 1, NULL, "'%c' is never closed", *at);
            }
            return true;
        }
        if (c == '\n') {
            read_newline(r);
        } else if (c == '#') {
            r->p += strcspn(r->p, "\n");
        } else if (c == '\'' || c == '"') {
            const char *s = r->p;
            bool three = s[1] == c && s[2] == c;
            for (s += three ? 3 : 1;; s++) {
                if (*s == '\0' || (*s == '\n' && !three))
                    return read_error(r, r->p, 1, NULL, "string is never closed");
                if (*s == '\\' && s[1] != '\0')
                    s++;
                else if (*s == c && (!three || (s[1] == c && s[2] == c)))
                    break;
            }
            s += three ? 3 : 1;
            for (; r->p < s; r->p++)
                if (*r->p == '\n') {
                    r->line++;
                    r->bol = r->p + 1;
                }
        } else if (open != NULL && (open - pairs) % 2 == 0) {
            vec_push(r->mem, &r->open_at_text, r->p);
            r->p++;
        } else if (open != NULL) {
            if (r->open_at_text.len == base)
                return read_error(r, r->p, 1, NULL, "'%c' closes nothing", c);
            const char *at = r->open_at_text.at[--r->open_at_text.len];
            if (*at != open[-1])
                return read_error(r, r->p, 1, NULL, "'%c' does not close the '%c' before it", c,
                                  *at);
            r->p++;
        } else if (c == ';' && r->open_at_text.len == base) {
            return true;
        } else {
            r->p++;
        }
    }
}
