#include "job/record.h"

#include <jansson.h>
#include <string.h>

static int32_t number(const json_t *o, const char *key, int32_t none)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INT32_MAX
               ? (int32_t)json_integer_value(v)
               : none;
}

static struct compile_id id_of(const json_t *o)
{
    return (struct compile_id){number(o, "compiled_autograd_id", -1), number(o, "frame_id", -1),
                               number(o, "frame_compile_id", -1), number(o, "attempt", 0)};
}

static uint64_t add_hash(uint64_t h, const void *at, size_t n)
{
    const unsigned char *s = at;

    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u;
    return h;
}

bool record_call(const char *s, const char *end, struct compile_id *id, uint64_t *hash)
{
    static const char head[] = "{\"dynamo_start\"";
    size_t len = (size_t)(end - s), i;
    uint64_t h = 0xcbf29ce484222325u;
    json_error_t error;
    json_t *frame;

    if (len < sizeof(head) || memcmp(s, head, sizeof(head) - 1) != 0)
        return false;
    json_t *o = json_loadb(s, len, 0, &error);
    const json_t *stack = json_object_get(json_object_get(o, "dynamo_start"), "stack");
    json_array_foreach(stack, i, frame)
    {
        int32_t at[] = {number(frame, "line", -1), number(frame, "filename", -1)};
        h = add_hash(h, at, sizeof(at));
    }
    bool known = json_array_size(stack) > 0;
    *id = id_of(o);
    *hash = h != 0 ? h : 1;
    json_decref(o);
    return known;
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
        out->rank = number(o, "rank", -1);
        out->id = id_of(o);
    }
    json_decref(o);
    if (ok) /* no jump may pass by json_decref() */
        out->title = arena_str(a, title, strlen(title));
    return ok;
}
