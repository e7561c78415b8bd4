#include "job/record.h"

#include <string.h>

int32_t record_number(const json_t *o, const char *key, int32_t none)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INT32_MAX
               ? (int32_t)json_integer_value(v)
               : none;
}

struct compile_id record_id(const json_t *o)
{
    return (struct compile_id){.autograd = record_number(o, "compiled_autograd_id", -1),
                               .frame = record_number(o, "frame_id", -1),
                               .compile = record_number(o, "frame_compile_id", -1),
                               .attempt = record_number(o, "attempt", 0)};
}

/* Most records are events and tensors: only those with "graph" in them are worth parsing. */
static bool is_about_a_graph(const char *s, size_t len)
{
    size_t head = len < 200 ? len : 200;

    return memmem(s, head, "graph", 5) != NULL && memmem(s, len, "\"has_payload\"", 13) != NULL;
}

bool record_parse(const char *s, const char *end, struct arena *a, struct record *out)
{
    char title[200];
    json_error_t error;

    if (!is_about_a_graph(s, (size_t)(end - s)))
        return false;
    json_t *o = json_loadb(s, (size_t)(end - s), 0, &error);
    const char *key = NULL;
    void *first = json_is_object(o) ? json_object_iter(o) : NULL;
    if (first != NULL) {
        key = json_object_iter_key(first);
        const json_t *name = json_object_get(json_object_iter_value(first), "name");
        if (json_is_string(name))
            key = json_string_value(name);
    }
    bool ok = key != NULL && strstr(key, "graph") != NULL && strlen(key) < sizeof(title);
    if (ok) {
        strcpy(title, key);
        out->rank = record_number(o, "rank", -1);
        out->id = record_id(o);
    }
    json_decref(o);
    if (ok) /* no jump may pass by json_decref() */
        out->title = arena_str(a, title, strlen(title));
    return ok;
}
