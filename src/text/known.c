#include "text/known.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file_open.h"
#include "graph/groups.h"

/* ---- JSON of known facts ---- */

struct knowing {
    tuck_graph *g;
    enum group_source from;
    tuck_diags *diags;
    struct diag_pos pos; /* for errors */
    tuck_severity severity;
    bool bad, no_memory;
};

static void complain(struct knowing *k, const char *member, const char *what)
{
    diag_add(k->diags, k->severity, k->pos,
             k->severity == TUCK_WARNING ? "the line is ignored" : NULL, "%s: %s", member, what);
    k->bad = true;
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The members of a group in a new array; NULL and an error if the list is invalid. */
static int64_t *members(struct knowing *k, const json_t *list)
{
    size_t n = json_array_size(list);
    int64_t *ranks = malloc(2 * n * sizeof(*ranks) + 1), *sorted = ranks + n;

    if (ranks == NULL) {
        k->no_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < n && !k->bad; i++) {
        const json_t *r = json_array_get(list, i);
        if (json_is_integer(r) && json_integer_value(r) >= 0)
            ranks[i] = sorted[i] = json_integer_value(r);
        else
            complain(k, "groups", "a group's ranks must be a list of integers");
    }
    if (!k->bad)
        qsort(sorted, n, sizeof(*sorted), by_value);
    for (size_t i = 1; i < n && !k->bad; i++)
        if (sorted[i] == sorted[i - 1])
            complain(k, "groups", "a rank is listed twice in one group");
    if (!k->bad)
        return ranks;
    free(ranks);
    return NULL;
}

/* Checks one group, and with `use` stores it. */
static void take_group(struct knowing *k, const char *name, const json_t *v, bool use)
{
    const json_t *size = json_object_get(v, "size"), *list = json_object_get(v, "ranks");
    const json_t *place = json_object_get(v, "rank");
    size_t n = json_array_size(list);
    struct fx_group what = {.rank = -1, .from = (uint8_t)k->from};
    int64_t *ranks = NULL;

    if (size != NULL && (!json_is_integer(size) || json_integer_value(size) <= 0)) {
        complain(k, "groups", "a group's size must be a positive integer");
        return;
    }
    if (list != NULL && !json_is_array(list)) {
        complain(k, "groups", "a group's ranks must be a list of integers");
        return;
    }
    what.size = size ? json_integer_value(size) : (int64_t)n;
    if (n > 0 && what.size != (int64_t)n) {
        complain(k, "groups", "a group's size is not the number of its ranks");
        return;
    }
    if (json_is_integer(place) && json_integer_value(place) >= 0 &&
        json_integer_value(place) < what.size)
        what.rank = json_integer_value(place);
    else if (place != NULL)
        complain(k, "groups", "a group's rank must be a place in it");
    if (n > 0 && !k->bad)
        what.ranks = ranks = members(k, list);
    if (use && !k->bad && !k->no_memory && what.size > 0)
        k->no_memory = group_learn(k->g, name, &what, k->diags) != TUCK_OK;
    free(ranks);
}

static void take_groups(struct knowing *k, const json_t *groups, bool use)
{
    const char *name;
    json_t *v;

    if (groups != NULL && !json_is_object(groups)) {
        complain(k, "groups", "must be an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)groups, name, v)
    {
        if (!k->bad && !k->no_memory)
            take_group(k, name, v, use);
    }
}

struct hint_args {
    tuck_graph *g;
    const char *name;
    int64_t value;
};

static void do_hint(void *p)
{
    struct hint_args *a = p;
    struct fx_store *s = a->g->store;
    str_id symbol = str_intern(&s->str, a->name, strlen(a->name));

    vec_push(&s->mem, &a->g->hint, ((struct fx_hint){symbol, a->value}));
}

static void take_symbols(struct knowing *k, const json_t *symbols, bool use)
{
    const char *name;
    json_t *v;

    if (symbols != NULL && !json_is_object(symbols)) {
        complain(k, "symbols", "must be an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)symbols, name, v)
    {
        struct hint_args a = {k->g, name, json_integer_value(v)};
        if (!json_is_integer(v) || a.value < 0)
            complain(k, "symbols", "a symbol's value must be an integer from 0 on");
        else if (use && !k->no_memory)
            k->no_memory = !mem_guard(&k->g->store->mem, do_hint, &a);
        if (k->bad)
            return;
    }
}

/* Takes everything, once it is known to be valid. Returns the rank, -1 if it is not given. */
static int64_t take(struct knowing *k, const json_t *root, const json_t *groups)
{
    const json_t *symbols = json_object_get(root, "symbols");
    const json_t *printed = json_object_get(root, "printed_on_rank");

    for (int use = 0; use < 2 && !k->bad && !k->no_memory; use++) {
        take_groups(k, groups, use);
        if (!k->bad)
            take_symbols(k, symbols, use);
    }
    return json_is_integer(printed) && json_integer_value(printed) >= 0 && !k->bad
               ? json_integer_value(printed)
               : -1;
}

/* ---- the line above a graph ---- */

void known_take(const struct fx_entry *e, tuck_diags *diags)
{
    tuck_graph *g = e->graph;

    if (g->known == 0)
        return;
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    size_t skip = strlen(FX_KNOWN) - 1;
    const struct str *line = str_at(&g->store->str, g->known);
    struct knowing k = {
        .g = g,
        .from = GROUP_KNOWN,
        .diags = diags,
        .pos = {.source = &src, .line = e->known_line, .column = e->known_column + (uint32_t)skip},
        .severity = TUCK_WARNING};
    json_error_t error;
    json_t *root = json_loadb(line->at + skip, line->len - skip, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL) {
        if (error.position > 0)
            k.pos.column += (uint32_t)error.position - 1;
        complain(&k, "not JSON", error.text);
        return;
    }
    int64_t rank = take(&k, root, json_object_get(root, "groups"));
    json_decref(root);
    if (!k.no_memory && rank >= 0)
        k.no_memory = tuck_graph_set_rank(g, rank, diags) == TUCK_ENOMEM;
    if (k.no_memory)
        mem_exhausted(&g->store->mem);
}

/* ---- side-car ---- */

/* "x.rank3.txt" → 3, and where ".rank3" begins; -1 if the name has no rank. */
static int64_t rank_in_name(const char *path, size_t *stem)
{
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');

    if (dot == NULL || (slash != NULL && dot < slash))
        dot = path + strlen(path);
    *stem = (size_t)(dot - path);
    const char *p = dot;
    while (p > path && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (p == dot || p - path < 5 || strncmp(p - 5, ".rank", 5) != 0 || dot - p > 9)
        return -1;
    *stem = (size_t)(p - 5 - path);
    return atoll(p);
}

static json_t *load(struct knowing *k, const char *path, bool *there)
{
    json_error_t error;
    FILE *f = file_open(path);

    *there = f != NULL;
    if (f == NULL && errno != ENOENT && errno != ENOTDIR) {
        diag_add(k->diags, TUCK_ERROR, (struct diag_pos){.source = k->pos.source}, NULL,
                 "cannot open the side-car: %s", strerror(errno));
        k->bad = true;
    }
    if (f == NULL)
        return NULL;
    json_t *root = json_loadf(f, 0, &error);
    fclose(f);
    if (root == NULL) {
        struct diag_pos pos = {.source = k->pos.source,
                               .line = (uint32_t)(error.line > 0 ? error.line : 1),
                               .column = (uint32_t)(error.column > 0 ? error.column : 1)};
        diag_add(k->diags, TUCK_ERROR, pos, NULL, "not JSON: %s", error.text);
        k->bad = true;
    }
    return root;
}

/* Takes the facts of a side-car; `file_rank`: from the file's name, if it is the side-car of
 * several files. */
static int64_t take_sidecar(struct knowing *k, const json_t *root, int64_t file_rank)
{
    const json_t *groups = json_object_get(root, "groups");
    const json_t *by_rank = json_object_get(root, "groups_by_rank");

    if (!json_is_object(root)) {
        complain(k, "side-car", "must be an object");
        return -1;
    }
    if (file_rank >= 0 && by_rank != NULL) {
        groups = json_array_get(by_rank, (size_t)file_rank);
        if (groups == NULL) {
            complain(k, "groups_by_rank", "has no entry for the rank of this file");
            return -1;
        }
    }
    int64_t rank = take(k, root, groups);
    return file_rank >= 0 ? file_rank : rank;
}

tuck_status tuck_graph_read_sidecar(tuck_graph *g, const char *graph_path, int64_t rank,
                                    tuck_diags *diags)
{
    size_t stem, len = strlen(graph_path);
    int64_t file_rank = rank_in_name(graph_path, &stem);
    const char *dot = strrchr(graph_path, '.'), *slash = strrchr(graph_path, '/');
    size_t ext = dot && (!slash || dot > slash) ? (size_t)(dot - graph_path) : len;
    char *path = malloc(len + 6);
    bool there = false;

    if (path == NULL)
        return TUCK_ENOMEM;
    struct diag_source src = {.file = path};
    struct knowing k = {.g = g,
                        .from = GROUP_SIDECAR,
                        .diags = diags,
                        .pos = {.source = &src},
                        .severity = TUCK_ERROR};
    memcpy(path, graph_path, ext);
    strcpy(path + ext, ".json");
    json_t *root = load(&k, path, &there);
    bool own = there;
    if (!there && file_rank >= 0) {
        memcpy(path, graph_path, stem);
        strcpy(path + stem, ".json");
        root = load(&k, path, &there);
    }
    if (root != NULL) {
        int64_t said = take_sidecar(&k, root, own ? -1 : file_rank);
        rank = rank >= 0 ? rank : said;
    }
    if (rank < 0)
        rank = file_rank;
    json_decref(root);
    tuck_status st = k.no_memory ? TUCK_ENOMEM : k.bad ? TUCK_ESYNTAX : TUCK_OK;
    if (st == TUCK_OK && rank >= 0)
        st = tuck_graph_set_rank(g, rank, diags);
    free(path);
    return st;
}
