#include "job/read_job.h"

#include <stdio.h>
#include <string.h>

#include "graph/groups.h"

/* ---- what other records of a compilation say ---- */

/* {'0': {'size': 2, 'rank': 0}} of setup_fake_process_groups() in the script, as JSON. */
static const char *groups_in(struct job *j, const struct piece *script)
{
    static const char call[] = "setup_fake_process_groups(";
    const char *text = j->sources.all.at[script->source].text;
    const char *s = text + script->from, *end = text + script->to;
    size_t n = sizeof(call) - 1;

    do
        s = memmem(s, (size_t)(end - s), call, n);
    while (s != NULL && s[n] != '{' && (s += n) < end);
    const char *to = s != NULL ? memchr(s, '\n', (size_t)(end - s)) : NULL;
    if (to == NULL || s[n] != '{')
        return NULL;
    s += n;
    while (to > s && to[-1] != '}')
        to--;
    char *json = arena_str(&j->arena, s, (size_t)(to - s));
    for (char *p = json; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    return json;
}

/* The length of the name in "s77 = 8"; 0 if [s, eol) is not that. */
static size_t symbol_len(const char *s, const char *eol)
{
    const char *p = s, *v;

    while (p < eol && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
        p++;
    for (v = p + 3; v < eol && *v >= '0' && *v <= '9';)
        v++;
    return p > s && p + 3 < eol && memcmp(p, " = ", 3) == 0 && v == eol ? (size_t)(p - s) : 0;
}

/* The lines "s77 = 8" above the script's graph, as JSON; NULL if there are none. */
static const char *symbols_in(struct job *j, const struct piece *script)
{
    const char *text = j->sources.all.at[script->source].text;
    const char *s = text + (script->form == PIECE_FILE ? 0 : script->from);
    const char *end = memmem(s, (size_t)(text + script->to - s), "class ", 6);
    char *json = arena_array(&j->arena, char, end != NULL ? 2 * (size_t)(end - s) + 3 : 1);
    size_t at = 0;

    while (end != NULL && s < end) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *eol = nl != NULL ? nl : end;
        s += *s == '\t';
        size_t n = symbol_len(s, eol);
        if (n > 0)
            at += (size_t)sprintf(json + at, "%s\"%.*s\": %.*s", at > 0 ? ", " : "{", (int)n, s,
                                  (int)(eol - s - n - 3), s + n + 3);
        s = eol + 1;
    }
    if (at == 0)
        return NULL;
    memcpy(json + at, "}", 2);
    return json;
}

/* The runnable script of the same compilation; NULL if there is none. */
static const struct piece *script_of(const struct job *j, const struct piece *x)
{
    for (uint32_t k = 0; k < j->pieces.all.len; k++) {
        const struct piece *y = &j->pieces.all.at[k];
        if (y->rank == x->rank && y->role == x->role && compile_id_same(x->id, y->id) &&
            strstr(y->title, "fx_graph_runnable") != NULL)
            return y;
    }
    return NULL;
}

/* What the text of a part does not say: groups, and the values of symbols. */
static void learn_facts(struct job *j)
{
    for (uint32_t i = 0; i < j->part.len; i++) {
        struct piece *x = &j->pieces.all.at[j->part.at[i].piece];
        const struct piece *script = x->known == NULL ? script_of(j, x) : NULL;
        const char *groups = script != NULL ? groups_in(j, script) : NULL;
        const char *symbols = x->known == NULL ? x->symbols : NULL;
        if (symbols == NULL && script != NULL)
            symbols = symbols_in(j, script);
        size_t n = 32 + (groups ? strlen(groups) : 0) + (symbols ? strlen(symbols) : 0);

        if (groups == NULL && symbols == NULL)
            continue;
        char *json = arena_array(&j->arena, char, n);
        snprintf(json, n, "{%s%s%s%s%s}", groups ? "\"groups\": " : "", groups ? groups : "",
                 groups && symbols ? ", " : "", symbols ? "\"symbols\": " : "",
                 symbols ? symbols : "");
        x->known = json;
    }
}

/* ---- reading ---- */

struct reading {
    struct job *j;
    tuck_diags *diags;
    struct given_text *text;
    uint32_t n, made;
    uint32_t *piece; /* by text */
    tuck_status st;
};

static void add_text(struct reading *x, uint32_t piece)
{
    const struct piece *p = &x->j->pieces.all.at[piece];

    piece_text(&x->j->pieces, p, &x->text[x->made].text);
    x->text[x->made].file = x->j->sources.all.at[p->source].path;
    x->piece[x->made++] = piece;
}

static void read_graphs(struct reading *x)
{
    struct job *j = x->j;

    x->n = j->part.len + j->names.len;
    x->text = arena_zeroed(&j->arena, (x->n + 1) * sizeof(*x->text));
    x->piece = arena_array(&j->arena, uint32_t, x->n + 1);
    for (uint32_t i = 0; i < j->part.len; i++)
        add_text(x, j->part.at[i].piece);
    for (uint32_t i = 0; i < j->names.len; i++)
        add_text(x, j->names.at[i]);
    x->st = read_given_texts(x->text, x->n, &j->mem.alloc, x->diags, &j->doc);
    for (uint32_t i = 0; x->st == TUCK_OK && i < x->n; i++) {
        struct piece *p = &j->pieces.all.at[x->piece[i]];
        p->read = x->text[i].ok;
        p->entry = x->text[i].first;
        if (!p->read && p->passed == NULL)
            p->passed = "it cannot be read";
    }
}

/* Parts that could not be read are none. */
static void drop_unread(struct job *j)
{
    uint32_t parts = 0, ranks = 0;

    for (uint32_t k = 0; k < j->rank.len; k++) {
        struct job_rank r = j->rank.at[k];
        uint32_t first = parts;
        for (uint32_t i = r.first; i < r.first + r.n; i++) {
            const struct piece *x = &j->pieces.all.at[j->part.at[i].piece];
            if (!x->read)
                continue;
            j->part.at[parts] = j->part.at[i];
            j->part.at[parts++].graph = tuck_doc_graph(j->doc, x->entry);
        }
        r.first = first;
        r.n = parts - first;
        if (r.n > 0)
            j->rank.at[ranks++] = r;
    }
    j->part.len = parts;
    j->rank.len = ranks;
}

static void do_read(void *arg)
{
    struct reading *x = arg;
    struct job *j = x->j;

    pieces_find(&j->pieces);
    job_choose(j);
    learn_facts(j);
    read_graphs(x);
    if (x->st != TUCK_OK)
        return;
    drop_unread(j);
}

static void do_tie(void *arg)
{
    job_tie(arg);
    job_describe(arg);
}

/* ---- documents of the parts and of the steps ---- */

/* A document without graphs, in the store of the parts. */
static tuck_doc *empty_doc(struct job *j)
{
    struct mem *m = &j->doc->store->mem;
    tuck_doc *d = mem_resize(m, NULL, 0, sizeof(*d));

    *d = (tuck_doc){.store = j->doc->store, .tail = j->doc->store->word.empty};
    j->doc->store->refs++;
    return d;
}

static str_id title_of(struct job *j, const struct piece *x)
{
    char id[COMPILE_ID_TEXT], text[COMPILE_ID_TEXT + 32];

    snprintf(text, sizeof(text), "%s %s", role_name(x->role), compile_id_text(x->id, false, id));
    return str_intern(&j->doc->store->str, text, strlen(text));
}

/* The graphs of the parts move into a document of their own, in the order of the step. */
static void do_parts(void *arg)
{
    struct job *j = arg;

    j->parts = empty_doc(j);
    vec_reserve(&j->doc->store->mem, &j->parts->entry, j->part.len + 1);
    for (uint32_t k = 0; k < j->rank.len; k++)
        for (uint32_t i = 0; i < j->rank.at[k].n; i++) {
            const struct job_part *p = &j->part.at[j->rank.at[k].first + i];
            const struct piece *x = &j->pieces.all.at[p->piece];
            struct fx_entry e = j->doc->entry.at[x->entry];
            e.title = title_of(j, x);
            e.rank = j->rank.at[k].number;
            e.graph->gap = j->parts->entry.len > 0 ? str_intern(&j->doc->store->str, "\n\n", 2)
                                                   : j->doc->store->word.empty;
            j->parts->entry.at[j->parts->entry.len++] = e;
            j->doc->entry.at[x->entry].graph = NULL;
        }
}

struct steps_args {
    struct job *j;
    tuck_diags *diags;
    tuck_status st;
};

static void do_steps(void *arg)
{
    struct steps_args *x = arg;
    struct job *j = x->j;
    struct mem *m = &j->doc->store->mem;

    if (j->steps == NULL)
        j->steps = empty_doc(j);
    while (j->steps->entry.len > 0)
        graph_free(j->steps->entry.at[--j->steps->entry.len].graph);
    vec_reserve(m, &j->steps->entry, j->rank.len + 1);
    for (uint32_t k = 0; k < j->rank.len; k++) {
        const struct job_rank *r = &j->rank.at[k];
        tuck_graph *g = job_join(j, r);
        if (g == NULL)
            mem_exhausted(m);
        j->steps->entry.at[j->steps->entry.len++] = (struct fx_entry){
            .graph = g,
            .title = str_intern(&j->doc->store->str, "step", 4),
            .rank = r->number,
            .line = g->first_line};
    }
    groups_collect(j->steps, NULL, 0, x->diags);
    for (uint32_t k = 0; k < j->rank.len && x->st == TUCK_OK; k++) {
        const struct job_rank *r = &j->rank.at[k];
        tuck_graph *g = j->steps->entry.at[k].graph;
        for (uint32_t i = r->first; i < r->first + r->n && x->st == TUCK_OK; i++)
            x->st = groups_inherit(j->part.at[i].graph, g);
        if (x->st == TUCK_OK && r->number >= 0)
            x->st = tuck_graph_set_rank(g, r->number, x->diags);
    }
}

tuck_status job_steps(struct job *j, tuck_diags *diags)
{
    struct steps_args x = {.j = j, .diags = diags};

    return mem_guard(&j->doc->store->mem, do_steps, &x) ? x.st : TUCK_ENOMEM;
}

/* If every rank of a job has a file, a group of as many members has all of them. */
static tuck_status name_members(struct job *j, tuck_diags *diags)
{
    uint32_t n = j->rank.len;
    int64_t *all = j->mem.alloc.resize(j->mem.alloc.ctx, NULL, 0, (n + 1) * sizeof(*all));
    bool whole = n > 1;
    tuck_status st = all != NULL ? TUCK_OK : TUCK_ENOMEM;

    for (uint32_t i = 0; i < n && all != NULL; i++) {
        whole &= j->rank.at[i].number == (int32_t)i;
        all[i] = i;
    }
    for (uint32_t i = 0; i < j->part.len && whole && st == TUCK_OK; i++) {
        tuck_graph *g = j->part.at[i].graph;
        for (uint32_t k = 0; k < g->group.len && st == TUCK_OK; k++)
            if (g->group.at[k].ranks == NULL && g->group.at[k].size == (int64_t)n)
                st = tuck_graph_set_group(g, graph_str(g, g->group.at[k].name), n, all, diags);
        if (st == TUCK_EINVAL)
            st = TUCK_OK; /* what it says contradicts that: it stays as it is */
    }
    mem_free(&j->mem, all, all ? (n + 1) * sizeof(*all) : 0);
    return st;
}

/* ---- */

struct open_args {
    struct job *j;
    const char *const *path;
    size_t n;
};

static void do_open(void *arg)
{
    struct open_args *x = arg;

    for (size_t i = 0; i < x->n && !x->j->sources.failed; i++)
        sources_add(&x->j->sources, x->path[i]);
}

static tuck_status nothing(const char *path, const struct job *j, tuck_diags *diags)
{
    struct diag_source src = {.file = path};

    diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src},
             "TORCH_TRACE, TORCH_COMPILE_DEBUG, TORCH_LOGS=aot_graphs,post_grad_graphs and "
             "tuck.torch.capture() write them",
             j->pieces.all.len > 0 ? "no graph of a step in %u file%s" : "no graph in %u file%s",
             j->sources.all.len, j->sources.all.len == 1 ? "" : "s");
    return TUCK_ESYNTAX;
}

tuck_status job_read(struct job *j, const char *const *path, size_t n, tuck_diags *diags)
{
    struct open_args o = {j, path, n};
    struct reading r = {.j = j, .diags = diags};

    if (!mem_guard(&j->mem, do_open, &o))
        return TUCK_ENOMEM;
    if (j->sources.failed)
        return j->sources.no_file ? TUCK_EIO : TUCK_ESYNTAX;
    bool enough = mem_guard(&j->mem, do_read, &r);
    for (uint32_t i = 0; i < r.made; i++)
        text_free(&j->mem, &r.text[i].text);
    if (!enough || r.st != TUCK_OK)
        return enough ? r.st : TUCK_ENOMEM;
    if (j->part.len == 0)
        return nothing(path[0], j, diags);
    if (!mem_guard_two(&j->mem, &j->doc->store->mem, do_tie, j) ||
        !mem_guard(&j->doc->store->mem, do_parts, j))
        return TUCK_ENOMEM;
    job_check_symbols(j, diags);
    tuck_status st = name_members(j, diags);
    return st == TUCK_OK ? job_steps(j, diags) : st;
}

static void do_look(void *arg)
{
    struct open_args *x = arg;

    do_open(x);
    if (!x->j->sources.failed)
        pieces_find(&x->j->pieces);
}

bool job_is_log(struct job *j, const char *path)
{
    struct open_args x = {j, &path, 1};
    uint32_t n = 0;

    if (!mem_guard(&j->mem, do_look, &x))
        return false;
    for (uint32_t i = 0; i < j->pieces.all.len; i++) {
        const struct piece *p = &j->pieces.all.at[i];
        n += p->form != PIECE_FILE && p->id.frame >= 0;
    }
    return n > 1;
}

void job_init(struct job *j, const tuck_allocator *alloc, tuck_diags *diags)
{
    *j = (struct job){.doc = NULL};
    mem_init(&j->mem, alloc);
    arena_init(&j->arena, &j->mem);
    j->sources = (struct sources){.mem = &j->mem, .arena = &j->arena, .diags = diags};
    j->pieces = (struct pieces){.mem = &j->mem, .arena = &j->arena, .sources = &j->sources};
}

void job_end(struct job *j)
{
    tuck_doc_free(j->steps);
    tuck_doc_free(j->parts);
    tuck_doc_free(j->doc);
    sources_free(&j->sources);
    vec_free(&j->mem, &j->pieces.all);
    vec_free(&j->mem, &j->part);
    vec_free(&j->mem, &j->rank);
    vec_free(&j->mem, &j->names);
    arena_destroy(&j->arena);
}
