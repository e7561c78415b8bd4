#include "base/json.h"

#include <assert.h>
#include <math.h>

enum { LIST_DEPTH = 2 }; /* of an item of a list of documents */

void json_begin(struct json_out *j, struct buf *b)
{
    uint32_t base = b->head != NULL ? LIST_DEPTH : 0;

    *j = (struct json_out){.b = b, .first = true, .depth = base, .base = base};
}

static void put_string(struct buf *b, const char *s)
{
    buf_chr(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\') {
            buf_chr(b, '\\');
            buf_chr(b, *s);
        } else if (c < 0x20 || c == 0x7F) {
            buf_printf(b, "\\u%04x", c);
        } else {
            buf_chr(b, *s);
        }
    }
    buf_chr(b, '"');
}

/* What comes before a value: comma, line break, key. */
static void lead(struct json_out *j, const char *key)
{
    if (j->depth > j->base) {
        if (!j->first)
            buf_chr(j->b, ',');
        if (j->flat) {
            if (!j->first)
                buf_chr(j->b, ' ');
        } else {
            buf_chr(j->b, '\n');
            buf_fill(j->b, ' ', 2 * (size_t)j->depth);
        }
    }
    j->first = false;
    if (key != NULL) {
        put_string(j->b, key);
        buf_str(j->b, ": ");
    }
}

void json_open(struct json_out *j, const char *key, char bracket)
{
    lead(j, key);
    buf_chr(j->b, bracket);
    j->depth++;
    j->first = true;
}

void json_close(struct json_out *j, char bracket)
{
    assert(j->depth > 0);
    j->depth--;
    if (!j->first && !j->flat) {
        buf_chr(j->b, '\n');
        buf_fill(j->b, ' ', 2 * (size_t)j->depth);
    }
    buf_chr(j->b, bracket);
    j->first = false;
}

void json_str(struct json_out *j, const char *key, const char *s)
{
    lead(j, key);
    put_string(j->b, s);
}

void json_int(struct json_out *j, const char *key, int64_t v)
{
    lead(j, key);
    buf_int(j->b, v);
}

void json_float(struct json_out *j, const char *key, double v)
{
    lead(j, key);
    if (isfinite(v))
        buf_float(j->b, v);
    else
        buf_str(j->b, "null");
}

void json_bool(struct json_out *j, const char *key, bool v)
{
    lead(j, key);
    buf_str(j->b, v ? "true" : "false");
}

void json_null(struct json_out *j, const char *key)
{
    lead(j, key);
    buf_str(j->b, "null");
}

void json_end(struct json_out *j)
{
    assert(j->depth == j->base);
    if (j->b->head == NULL)
        buf_chr(j->b, '\n');
}

void json_schema(struct json_out *j, int version)
{
    const struct json_head *h = j->b->head;

    json_int(j, "schema", version);
    if (h != NULL) {
        json_int(j, "graph", h->graph);
        if (*h->title)
            json_str(j, "title", h->title);
        if (h->rank >= 0)
            json_int(j, "rank", h->rank);
        json_int(j, "line", h->line);
        if (h->world > 0)
            json_int(j, "world", h->world);
    }
    if (j->b->measured != NULL) {
        lead(j, "measured_runs");
        buf_str(j->b, j->b->measured);
    }
}

void json_list_open(struct buf *b, const char *file, const char *key)
{
    buf_str(b, "{\n  \"schema\": 1,\n  \"file\": ");
    put_string(b, file);
    buf_printf(b, ",\n  \"%s\": [", key);
}

void json_list_item(struct buf *b, bool first)
{
    buf_str(b, first ? "\n    " : ",\n    ");
}

void json_list_close(struct buf *b)
{
    buf_str(b, "\n  ]\n}\n");
}
