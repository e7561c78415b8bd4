/* Which of the graphs of a job make up a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

static const char *say(struct job *j, const char *fmt, const char *a, const char *b)
{
    size_t n = strlen(fmt) + strlen(a) + strlen(b);
    char *s = arena_array(&j->arena, char, n);

    snprintf(s, n, fmt, a, b);
    return s;
}

/* ---- files that say the same ---- */

static bool is_debug_folder(const char *path)
{
    return strstr(path, "/torchinductor/model__") != NULL;
}

static bool is_later(const struct piece *x, const struct piece *y)
{
    enum { WHEN = 20 }; /* "0521 09:32:52.155000" */

    return strncmp(x->when, y->when, WHEN) > 0;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_rank(const void *a, const void *b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

    return compare(x->rank, y->rank);
}

/* The pieces of one rank. any: there is a structured log of some rank. */
static void drop_repeats_of(struct job *j, struct piece **x, uint32_t n, bool any)
{
    const struct piece *last = NULL; /* of its log, the structured one if there is one */
    bool records = any && x[0]->rank < 0;

    for (uint32_t i = 0; i < n; i++)
        records |= x[i]->form == PIECE_PAYLOAD;
    for (uint32_t i = 0; i < n; i++)
        if (x[i]->form == (records ? PIECE_PAYLOAD : PIECE_LINES) &&
            (last == NULL || is_later(x[i], last)))
            last = x[i];
    for (uint32_t i = 0; i < n; i++) {
        const char *path = j->sources.all.at[x[i]->source].path;
        if ((records && x[i]->form == PIECE_LINES) ||
            (any && x[i]->form == PIECE_FILE && is_debug_folder(path)))
            x[i]->passed = "a structured log has it, too";
        else if (x[i]->when != NULL && x[i]->rank >= 0 && last->run != x[i]->run)
            x[i]->passed = "an older run of this rank";
    }
}

/* Of several runs of one rank, the last one counts; a structured log says all that a terminal log
 * or a debug folder beside it says. */
static void drop_repeats(struct job *j)
{
    uint32_t n = j->pieces.all.len;
    struct piece **x = arena_array(&j->arena, struct piece *, n + 1);
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        x[i] = &j->pieces.all.at[i];
        any |= x[i]->form == PIECE_PAYLOAD;
    }
    if (n > 0)
        qsort(x, n, sizeof(*x), by_rank);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && x[end]->rank == x[i]->rank; end++)
            continue;
        drop_repeats_of(j, x + i, end - i, any);
    }
}

/* The processes of a debug folder do not say their rank. */
static void number_processes(struct job *j)
{
    const char *last = NULL;
    size_t last_len = 0;
    int32_t rank = -1;

    for (uint32_t i = 0; i < j->pieces.all.len; i++) {
        struct piece *x = &j->pieces.all.at[i];
        const char *path = j->sources.all.at[x->source].path;
        const char *end = strstr(path, "/torchinductor/model__");

        if (end == NULL || x->rank >= 0)
            continue;
        size_t n = (size_t)(end - path);
        if (last == NULL || n != last_len || memcmp(path, last, n) != 0)
            rank++;
        last = path;
        last_len = n;
        x->rank = rank;
    }
}

/* ---- stages and attempts ---- */

static int by_id(const void *a, const void *b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;
    int c = compare(x->rank, y->rank);

    c = c ? c : compare(x->id.autograd, y->id.autograd);
    c = c ? c : compare(x->id.frame, y->id.frame);
    c = c ? c : compare(x->id.compile, y->id.compile);
    c = c ? c : compare(x->id.part, y->id.part);
    c = c ? c : compare(x->id.attempt, y->id.attempt);
    c = c ? c : compare(x->order, y->order);
    return c                               ? c
           : compare(x->source, y->source) ? compare(x->source, y->source)
                                           : compare((int64_t)x->from, (int64_t)y->from);
}

static int by_value(const void *a, const void *b)
{
    return compare(*(const int64_t *)a, *(const int64_t *)b);
}

/* A graph of compiled autograd calls what it takes from the n-th forward aotN_… */
static void learn_forwards(struct job *j, struct piece *x)
{
    const char *text = j->sources.all.at[x->source].text;
    VEC(int64_t) list = {NULL, 0, 0};
    uint32_t n = 0;

    for (const char *s = text + x->from, *end = text + x->to;
         (s = memmem(s, (size_t)(end - s), "aot", 3)) != NULL;) {
        int64_t number = 0;
        const char *p = s += 3;
        for (; p < end && *p >= '0' && *p <= '9' && p - s < 9; p++)
            number = 10 * number + (*p - '0');
        if (p > s && p < end && *p == '_' && (list.len == 0 || list.at[list.len - 1] != number))
            vec_push_in(&j->arena, &list, number);
    }
    if (list.len > 0)
        qsort(list.at, list.len, sizeof(*list.at), by_value);
    for (uint32_t i = 0; i < list.len; i++)
        if (n == 0 || list.at[n - 1] != list.at[i])
            list.at[n++] = list.at[i];
    x->aot = list.at;
    x->n_aot = n;
}

/* Of the pieces of one compilation in its last attempt, the last of each role is kept. */
static void choose_stages(struct job *j, struct piece **x, uint32_t n)
{
    struct piece *best[ROLE_AUTOGRAD + 1] = {NULL};

    for (uint32_t i = 0; i < n; i++) {
        struct piece **b = &best[x[i]->role];
        if (x[i]->passed == NULL && (*b == NULL || x[i]->stage >= (*b)->stage))
            *b = x[i];
    }
    bool split = best[ROLE_FORWARD] || best[ROLE_BACKWARD] || best[ROLE_WHOLE];
    if (!split && best[ROLE_JOINT] != NULL)
        best[ROLE_NONE] = NULL; /* forward and backward in one graph */
    if (split)
        best[ROLE_NONE] = best[ROLE_JOINT] = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (x[i]->passed != NULL || x[i] == best[x[i]->role])
            continue;
        const struct piece *kept = best[x[i]->role];
        x[i]->passed = x[i]->role == ROLE_JOINT && split
                           ? "before forward and backward are separated"
                       : kept != NULL && strcmp(kept->title, x[i]->title) == 0
                           ? "printed again later"
                           : "an earlier stage";
    }
    for (enum job_role r = ROLE_NONE; r <= ROLE_JOINT; r++)
        if (best[r] != NULL && (r == ROLE_NONE || r == ROLE_JOINT))
            best[r]->role = ROLE_WHOLE;
    if (best[ROLE_AUTOGRAD] != NULL) {
        best[ROLE_AUTOGRAD]->passed = "it only names the inputs of the backward";
        learn_forwards(j, best[ROLE_AUTOGRAD]);
        vec_push(&j->mem, &j->names, (uint32_t)(best[ROLE_AUTOGRAD] - j->pieces.all.at));
    }
}

/* Nothing says which compilations they are of: each is its own. */
static void keep_all(struct piece **x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (x[i]->role == ROLE_NONE || x[i]->role == ROLE_JOINT)
            x[i]->role = ROLE_WHOLE;
        else if (x[i]->role == ROLE_AUTOGRAD)
            x[i]->passed = "it only names the inputs of a backward";
}

static void choose_in(struct job *j, struct piece **x, uint32_t n)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        int32_t last = 0;

        for (end = i;
             end < n && x[end]->rank == x[i]->rank && compile_id_same(x[end]->id, x[i]->id); end++)
            if (x[end]->passed == NULL && x[end]->id.attempt > last)
                last = x[end]->id.attempt;
        for (uint32_t k = i; k < end; k++)
            if (x[k]->passed == NULL && x[k]->id.attempt < last)
                x[k]->passed = "this attempt was given up; a later one counts";
        if (x[i]->id.frame < 0 && x[i]->id.autograd < 0) {
            keep_all(x + i, end - i);
            continue;
        }
        choose_stages(j, x + i, end - i);
    }
}

/* ---- the order of a step ---- */

struct order {
    struct job *j;
    VEC(uint32_t) list;  /* pieces */
    VEC(uint32_t) round; /* by item of list: the step in which it was compiled */
    uint32_t now;
    bool backwards; /* the last one was a backward */
};

static const char *id_of(struct job *j, const struct piece *x)
{
    char text[COMPILE_ID_TEXT];

    compile_id_text(x->id, false, text);
    return arena_str(&j->arena, text, strlen(text));
}

static void insert(struct order *o, uint32_t at, uint32_t piece)
{
    vec_push(&o->j->mem, &o->list, piece);
    vec_push(&o->j->mem, &o->round, o->now);
    for (uint32_t i = o->list.len - 1; i > at; i--) {
        o->list.at[i] = o->list.at[i - 1];
        o->round.at[i] = o->round.at[i - 1];
    }
    o->list.at[at] = piece;
    o->round.at[at] = o->now;
}

/* Backwards that were printed when their forward was compiled run after all forwards, the last
 * one first. */
static uint32_t end_of_forwards(const struct order *o)
{
    for (uint32_t i = 0; i < o->list.len; i++) {
        const struct piece *x = &o->j->pieces.all.at[o->list.at[i]];
        if (x->role == ROLE_BACKWARD && x->stage <= STAGE_READABLE && x->id.autograd < 0)
            return i;
    }
    return o->list.len;
}

/* Were they compiled for the same call of the program, as far as is known? */
static bool same_call(const struct piece *x, const struct piece *y)
{
    return x->call == y->call || x->call == 0 || y->call == 0;
}

/* Is the forward of this backward part of the step? */
static bool has_forward(const struct order *o, const struct piece *backward)
{
    for (uint32_t i = 0; i < o->list.len; i++) {
        const struct piece *y = &o->j->pieces.all.at[o->list.at[i]];
        if (y->role == ROLE_FORWARD && y->id.autograd == backward->id.autograd &&
            y->id.frame == backward->id.frame && y->id.compile == backward->id.compile &&
            y->id.part == backward->id.part)
            return true;
    }
    return false;
}

static int by_order(const void *a, const void *b);

/* Was the backward of this forward compiled after x? Then it ran after x was compiled. */
static bool runs_after(const struct order *o, const struct piece *forward, const struct piece *x)
{
    for (uint32_t i = 0; i < o->j->pieces.all.len; i++) {
        const struct piece *y = &o->j->pieces.all.at[i];
        if (y->role == ROLE_BACKWARD && y->passed == NULL && y->rank == forward->rank &&
            compile_id_same(y->id, forward->id) && by_order(&y, &x) > 0)
            return true;
    }
    return false;
}

/* The item of an earlier round that a new compilation of the same frame replaces. Another call of
 * the frame is another part of the step; what runs backward only after x was compiled is
 * still there; and a backward stays as long as its forward. */
static uint32_t replaced_by(const struct order *o, const struct piece *x)
{
    if (x->id.frame < 0)
        return NO_PART;
    for (uint32_t i = 0; i < o->list.len; i++) {
        const struct piece *y = &o->j->pieces.all.at[o->list.at[i]];
        if (o->round.at[i] < o->now && y->role == x->role && y->id.autograd == x->id.autograd &&
            y->id.frame == x->id.frame && y->id.part == x->id.part &&
            y->id.compile != x->id.compile && same_call(x, y) &&
            (y->role != ROLE_BACKWARD || !has_forward(o, y)) &&
            (y->role != ROLE_FORWARD || !runs_after(o, y, x)))
            return i;
    }
    return NO_PART;
}

static void put(struct order *o, uint32_t piece, uint32_t at)
{
    struct job *j = o->j;
    struct piece *x = &j->pieces.all.at[piece];
    uint32_t old = replaced_by(o, x);

    if (old == NO_PART) {
        insert(o, at, piece);
        return;
    }
    j->pieces.all.at[o->list.at[old]].passed = say(j, "compiled again as %s%s", id_of(j, x), "");
    o->list.at[old] = piece;
    o->round.at[old] = o->now;
}

static bool is_trained(const struct order *o, const struct piece *x)
{
    for (uint32_t i = 0; i < o->list.len && x->id.frame >= 0; i++) {
        const struct piece *y = &o->j->pieces.all.at[o->list.at[i]];
        if (y->role == ROLE_FORWARD && y->id.autograd == x->id.autograd &&
            y->id.frame == x->id.frame)
            return true;
    }
    return false;
}

static const struct piece *names_of(const struct job *j, const struct piece *x)
{
    for (uint32_t i = 0; i < j->names.len; i++) {
        const struct piece *y = &j->pieces.all.at[j->names.at[i]];
        if (y->rank == x->rank && y->id.autograd == x->id.autograd)
            return y;
    }
    return NULL;
}

/* Do these two of compiled autograd run the backward of a common forward, as far as is known? */
static bool same_forwards(const struct job *j, const struct piece *x, const struct piece *y)
{
    const struct piece *a = names_of(j, x), *b = names_of(j, y);
    uint32_t i = 0, k = 0;

    if (a == NULL || b == NULL || a->n_aot == 0 || b->n_aot == 0)
        return true;
    while (i < a->n_aot && k < b->n_aot) {
        if (a->aot[i] == b->aot[k])
            return true;
        if (a->aot[i] < b->aot[k])
            i++;
        else
            k++;
    }
    return false;
}

/* Under compiled autograd each backward() is a graph of its own, and a later one of the same
 * forwards is a new compilation. */
static void put_autograd(struct order *o, uint32_t piece)
{
    struct job *j = o->j;
    const struct piece *x = &j->pieces.all.at[piece];

    for (uint32_t i = 0; i < o->list.len; i++) {
        struct piece *y = &j->pieces.all.at[o->list.at[i]];
        if (y->role != ROLE_BACKWARD || y->id.autograd < 0 || y->id.autograd >= x->id.autograd ||
            !same_forwards(j, x, y))
            continue;
        y->passed = say(j, "compiled again as %s%s", id_of(j, x), "");
        o->list.at[i] = piece;
        o->round.at[i] = o->now;
        return;
    }
    insert(o, end_of_forwards(o), piece);
}

static void put_piece(struct order *o, uint32_t piece, const char *autograd)
{
    struct job *j = o->j;
    struct piece *x = &j->pieces.all.at[piece];

    switch (x->role) {
    case ROLE_FORWARD:
        o->now += o->backwards;
        o->backwards = false;
        put(o, piece, end_of_forwards(o));
        break;
    case ROLE_BACKWARD:
        o->backwards = true;
        if (x->id.autograd >= 0)
            put_autograd(o, piece);
        else if (autograd != NULL && x->stage <= STAGE_READABLE)
            x->passed = say(j, "compiled autograd runs it: %s%s", autograd, "");
        else
            put(o, piece, x->stage <= STAGE_READABLE ? end_of_forwards(o) : o->list.len);
        break;
    default:
        if (is_trained(o, x))
            x->passed = "this frame is trained, and this is its inference graph";
        else
            put(o, piece, x->stage == STAGE_UNKNOWN ? o->list.len : end_of_forwards(o));
    }
}

static int by_order(const void *a, const void *b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;
    int c = compare(x->rank, y->rank);

    c = c ? c : compare(x->order, y->order);
    return c                               ? c
           : compare(x->source, y->source) ? compare(x->source, y->source)
                                           : compare((int64_t)x->from, (int64_t)y->from);
}

static void order_rank(struct order *o, struct piece **x, uint32_t n)
{
    struct job *j = o->j;
    const char *autograd = NULL;

    o->list.len = o->round.len = 0;
    o->now = 0;
    o->backwards = false;
    for (uint32_t i = 0; i < n; i++)
        if (x[i]->passed == NULL && x[i]->role == ROLE_BACKWARD && x[i]->id.autograd >= 0)
            autograd = id_of(j, x[i]);
    for (uint32_t i = 0; i < n; i++)
        if (x[i]->passed == NULL)
            put_piece(o, (uint32_t)(x[i] - j->pieces.all.at), autograd);
    if (o->list.len == 0)
        return;
    struct job_rank r = {.number = x[0]->rank, .first = j->part.len, .n = o->list.len};
    vec_push(&j->mem, &j->rank, r);
    for (uint32_t i = 0; i < o->list.len; i++)
        vec_push(&j->mem, &j->part,
                 ((struct job_part){.piece = o->list.at[i], .forward = NO_PART}));
}

static void do_order(void *p)
{
    struct order *o = p;
    struct job *j = o->j;
    uint32_t n = j->pieces.all.len;
    struct piece **x = arena_array(&j->arena, struct piece *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        x[i] = &j->pieces.all.at[i];
    if (n > 0)
        qsort(x, n, sizeof(*x), by_id);
    choose_in(j, x, n);
    if (n > 0)
        qsort(x, n, sizeof(*x), by_order);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && x[end]->rank == x[i]->rank; end++)
            continue;
        order_rank(o, x + i, end - i);
    }
}

void job_choose(struct job *j)
{
    struct order o = {.j = j};

    drop_repeats(j);
    job_number_parts(j);
    number_processes(j);
    bool ok = mem_guard(&j->mem, do_order, &o);
    vec_free(&j->mem, &o.list);
    vec_free(&j->mem, &o.round);
    if (!ok)
        mem_exhausted(&j->mem);
}
