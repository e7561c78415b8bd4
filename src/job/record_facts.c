#include "job/record_facts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/record.h"

static json_t *record_of(const char *s, const char *end, const char *key)
{
    size_t n = strlen(key), len = (size_t)(end - s);
    json_error_t error;

    if (len < n + 3 || memcmp(s, "{\"", 2) != 0 || memcmp(s + 2, key, n) != 0 || s[n + 2] != '"')
        return NULL;
    return json_loadb(s, len, 0, &error);
}

static uint64_t add_hash(uint64_t h, const void *at, size_t n)
{
    const unsigned char *s = at;

    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u;
    return h;
}

static bool read_call(const char *s, const char *end, struct record_call *out)
{
    json_t *o = record_of(s, end, "dynamo_start"), *frame;
    const json_t *stack = json_object_get(json_object_get(o, "dynamo_start"), "stack");
    uint64_t h = 0xcbf29ce484222325u;
    size_t i;

    json_array_foreach(stack, i, frame)
    {
        int32_t at[] = {record_number(frame, "line", -1), record_number(frame, "filename", -1)};
        h = add_hash(h, at, sizeof(at));
    }
    bool known = json_array_size(stack) > 0;
    *out = (struct record_call){record_id(o), h != 0 ? h : 1};
    json_decref(o);
    return known;
}

enum { SYMBOL = 32 }; /* their names are short */

static bool read_symbol(const char *s, const char *end, struct record_symbol *out,
                        char name[SYMBOL])
{
    json_t *o = record_of(s, end, "create_symbol");
    const json_t *made = json_object_get(o, "create_symbol");
    const char *symbol = json_string_value(json_object_get(made, "symbol"));
    const char *value = json_string_value(json_object_get(made, "val"));
    char *rest = NULL;

    *out = (struct record_symbol){.id = record_id(o)};
    out->value = value != NULL ? strtoll(value, &rest, 10) : -1;
    bool known = symbol != NULL && strlen(symbol) < SYMBOL && value != NULL && rest > value &&
                 *rest == '\0' && out->value >= 0;
    if (known)
        strcpy(name, symbol);
    json_decref(o);
    return known;
}

void record_facts_take(struct record_facts *f, struct arena *a, const char *s, const char *end)
{
    struct record_call call;
    struct record_symbol symbol;
    char name[SYMBOL];

    if (read_call(s, end, &call))
        vec_push_in(a, &f->call, call);
    if (read_symbol(s, end, &symbol, name)) { /* no jump may pass by json_decref() */
        symbol.name = arena_str(a, name, strlen(name));
        symbol.order = f->symbol.len;
        vec_push_in(a, &f->symbol, symbol);
    }
}

/* ---- by compilation ---- */

static int by_id(const void *a, const void *b)
{
    const struct compile_id *x = a, *y = b; /* the first member */

    if (x->autograd != y->autograd)
        return x->autograd < y->autograd ? -1 : 1;
    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return x->compile < y->compile ? -1 : x->compile > y->compile;
}

/* Of one compilation by name, the last value first. */
static int by_symbol(const void *a, const void *b)
{
    const struct record_symbol *x = a, *y = b;
    int c = by_id(x, y);

    c = c ? c : strcmp(x->name, y->name);
    return c ? c : (x->order < y->order) - (x->order > y->order);
}

/* {"s77": 8, "s27": 64} of the symbols from `first` on that are of the same compilation. */
static const char *symbols_text(const struct record_facts *f, uint32_t first, struct arena *a)
{
    const struct record_symbol *x = f->symbol.at;
    uint32_t n = first;
    size_t at = 1;

    while (n < f->symbol.len && by_id(&x[n], &x[first]) == 0)
        n++;
    size_t room = (n - first) * (SYMBOL + 32) + 3;
    char *text = arena_array(a, char, room);
    text[0] = '{';
    for (uint32_t i = first; i < n; i++)
        if (i == first || strcmp(x[i].name, x[i - 1].name) != 0)
            at += (size_t)snprintf(text + at, room - at, "%s\"%s\": %lld", at > 1 ? ", " : "",
                                   x[i].name, (long long)x[i].value);
    memcpy(text + at, "}", 2);
    return text;
}

/* The first symbol of a compilation; the number of symbols if it has none. */
static uint32_t first_symbol(const struct record_facts *f, const struct compile_id *id)
{
    uint32_t low = 0, high = f->symbol.len;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_id(&f->symbol.at[mid], id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->symbol.len && by_id(&f->symbol.at[low], id) == 0 ? low : f->symbol.len;
}

void record_facts_give(struct record_facts *f, struct arena *a, struct piece *x, uint32_t n)
{
    const char **text = arena_zeroed(a, (f->symbol.len + 1) * sizeof(*text)); /* by first symbol */

    if (f->call.len > 0)
        qsort(f->call.at, f->call.len, sizeof(*f->call.at), by_id);
    if (f->symbol.len > 0)
        qsort(f->symbol.at, f->symbol.len, sizeof(*f->symbol.at), by_symbol);
    for (uint32_t i = 0; i < n; i++) {
        const struct record_call *c = f->call.len > 0 ? bsearch(&x[i].id, f->call.at, f->call.len,
                                                                sizeof(*f->call.at), by_id)
                                                      : NULL;
        uint32_t k = first_symbol(f, &x[i].id);
        x[i].call = c != NULL ? c->call : 0;
        if (k < f->symbol.len && text[k] == NULL)
            text[k] = symbols_text(f, k, a);
        x[i].symbols = text[k];
    }
}
