#include "job/piece_path.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The part of a path before its last one: its length. */
static size_t folder_len(const char *path)
{
    return (size_t)(base_of(path) - path);
}

/* "dedicated_log_torch_trace_rank_3_x.log", "0.backward.rank3.txt", "rank_3/…": the number after
 * the last "rank". */
static int32_t rank_in(const char *path)
{
    int32_t rank = -1;

    for (const char *s = path; (s = strstr(s, "rank")) != NULL;) {
        s += 4;
        s += *s == '_';
        char *end;
        long v = strtol(s, &end, 10);
        if (end > s && *s != '-' && *s != '+' && *s != ' ' && v >= 0 && v < INT32_MAX)
            rank = (int32_t)v;
    }
    return rank;
}

/* torchinductor/model__0_forward_1.0/: number, role and place of a compilation. */
static void debug_folder(const char *path, struct path_facts *out)
{
    const char *at = strstr(path, "/model__");
    char role[16];
    int aot, n, order;

    if (at == NULL || sscanf(at, "/model__%d_%15[a-z]_%d.%d/", &aot, role, &n, &order) != 4)
        return;
    out->id = (struct compile_id){.autograd = -1, .frame = aot, .compile = -1};
    out->order = order;
    out->role = strcmp(role, "forward") == 0    ? ROLE_FORWARD
                : strcmp(role, "backward") == 0 ? ROLE_BACKWARD
                                                : ROLE_WHOLE;
}

/* tlparse: "-_0_0_1/aot_forward_graph_7.txt", "-_0_0_1": no compiled autograd, frame, compilation,
 * attempt; the number at the end is the order. */
static void tlparse_folder(const char *path, struct path_facts *out)
{
    size_t n = folder_len(path);
    const char *end = path + n, *s = end > path ? end - 1 : path;
    char autograd[12];
    struct compile_id id = NO_COMPILE_ID;

    while (s > path && s[-1] != '/')
        s--;
    if (sscanf(s, "%11[-!0-9]_%d_%d_%d/", autograd, &id.frame, &id.compile, &id.attempt) != 4)
        return;
    id.autograd = *autograd == '!' ? atoi(autograd + 1) : -1;
    const char *dot = strrchr(end, '.'), *d = dot ? dot : end;
    while (d > end && d[-1] >= '0' && d[-1] <= '9')
        d--;
    if (d > end && d[-1] == '_')
        out->order = atoll(d);
    out->id = id;
}

/* tuck.torch.capture(): "0.backward.rank1.txt". Backwards come after all forwards: then the last
 * one runs first. */
static void capture_file(const char *path, struct path_facts *out)
{
    char role[16];
    int n, rank;

    if (sscanf(base_of(path), "%d.%15[a-z].rank%d.txt", &n, role, &rank) != 3 || n < 0)
        return;
    out->id = (struct compile_id){.autograd = -1, .frame = n, .compile = -1};
    out->rank = rank;
    out->role = strcmp(role, "forward") == 0    ? ROLE_FORWARD
                : strcmp(role, "backward") == 0 ? ROLE_BACKWARD
                                                : ROLE_WHOLE;
    out->order = out->role == ROLE_BACKWARD ? ((int64_t)1 << 40) + n : n;
    out->title = "captured";
}

/* The facts in a side-car that the reader understands, as one line. */
static const char *known_of(struct arena *a, const char *text, size_t len)
{
    static const char *const keys[] = {"groups", "printed_on_rank", "symbols"};
    char *line = arena_array(a, char, len + 1); /* no jump may pass by json_decref() */
    json_error_t error;
    json_t *all = json_loadb(text, len, 0, &error), *some = json_object();
    size_t n = 0;

    for (size_t i = 0; json_is_object(all) && i < sizeof(keys) / sizeof(*keys); i++)
        if (json_object_get(all, keys[i]) != NULL)
            json_object_set(some, keys[i], json_object_get(all, keys[i]));
    if (json_object_size(some) > 0)
        n = json_dumpb(some, line, len, JSON_COMPACT);
    json_decref(all);
    json_decref(some);
    if (n == 0 || n > len)
        return NULL;
    line[n] = '\0';
    return line;
}

/* X.json comes directly before X.txt in the order of paths. */
static const char *sidecar(const struct pieces *p, uint32_t source)
{
    const struct source *s = &p->sources->all.at[source];
    size_t n = strlen(s->path);

    if (source == 0 || n < 5 || strcmp(s->path + n - 4, ".txt") != 0)
        return NULL;
    const struct source *other = s - 1;
    if (strncmp(other->path, s->path, n - 4) != 0 || strcmp(other->path + n - 4, ".json") != 0)
        return NULL;
    return known_of(p->arena, other->text, other->len);
}

int64_t facts_place(const char *known)
{
    json_error_t error;
    json_t *all = known != NULL ? json_loads(known, 0, &error) : NULL;
    const json_t *part = json_object_get(all, "part");
    int64_t place = json_is_integer(part) ? json_integer_value(part) : -1;

    json_decref(all);
    return place >= 0 && place < UINT32_MAX ? place : -1;
}

void path_facts(const struct pieces *p, uint32_t source, struct path_facts *out)
{
    const char *path = p->sources->all.at[source].path;

    *out = (struct path_facts){.rank = rank_in(path), .id = NO_COMPILE_ID, .order = -1};
    debug_folder(path, out);
    if (out->id.frame < 0)
        tlparse_folder(path, out);
    if (out->id.frame < 0)
        capture_file(path, out);
    if (out->title == NULL && (strncmp(base_of(path), "fx_graph_", 9) == 0 || out->id.frame >= 0))
        out->title = arena_str(p->arena, base_of(path), strcspn(base_of(path), "."));
    out->known = sidecar(p, source);
}
