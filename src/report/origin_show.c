#include "report/origin_show.h"

#include <stdio.h>

#include "base/layout.h"

const char *origin_line(const struct program *p, const struct program_op *op, char out[200])
{
    const char *s = op->origin != 0 ? strstr(program_str(p, op->origin), "File: ") : NULL;

    out[0] = '\0';
    if (s == NULL)
        return out;
    s += 6;
    size_t n = strcspn(s, ",\n");
    size_t path = strcspn(s, ":");
    for (size_t i = 0; i < path && i < n; i++)
        if (s[i] == '/') { /* the file's own name is enough */
            s += i + 1;
            n -= i + 1;
            path -= i + 1;
            i = (size_t)-1;
        }
    snprintf(out, 200, "%.*s", (int)(n < 190 ? n : 190), s);
    return out;
}

void origin_json(struct json_out *j, const struct program *p, const struct program_op *op)
{
    char line[200];

    if (*origin_line(p, op, line) != '\0')
        json_str(j, "source", line);
    if (op->parameter != 0)
        json_str(j, "parameter", program_str(p, op->parameter));
}

void origin_say(struct buf *b, const struct program *p, const struct program_op *op)
{
    char line[200];
    const char *what = op->parameter != 0 ? program_str(p, op->parameter) : "";

    origin_line(p, op, line);
    if (b->origins && (*line || *what))
        wrap_line(b, INK_DIM, LAYOUT_SAY, "from %s%s%s", line, *line && *what ? ": " : "", what);
}
