#include "support/random_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pass/pass_report.h"
#include "study/pass_table.h"

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    text_add(t, s, strlen(s));
    free(s);
}

static void random_choice(struct rng *rng, const char *choices, struct text *t)
{
    uint32_t n = 1;

    for (const char *s = choices; *s != '\0'; s++)
        n += *s == '|';
    for (n = rng_below(rng, n); n > 0; n--)
        choices = strchr(choices, '|') + 1;
    /* What only all-gathers support is mostly used with them. */
    if (strstr(t->at, "reduce") != NULL && strncmp(choices, "custom_ops_multidtype", 21) == 0 &&
        rng_below(rng, 8) != 0)
        choices = "default";
    text_add(t, choices, strcspn(choices, "|"));
}

/* Sizes of buckets, in MiB: tensors here have a hundred bytes. */
static void random_number(struct rng *rng, struct text *t)
{
    static const char *const sizes[] = {"0", "0.00001", "0.00005", "0.0001", "0.0005", "25"};

    add(t, "%s", sizes[rng_below(rng, sizeof(sizes) / sizeof(*sizes))]);
}

/* Names of nodes whose lines contain `what`, at most n, in the order of the graph from a random one
 * on. */
static void random_names(struct rng *rng, const char *graph, const char *what, uint32_t n,
                         struct text *t)
{
    uint32_t found = 0, skip = 0;

    for (int round = 0; round < 2; round++) {
        for (const char *s = strchr(graph, '\n'); s != NULL && n > 0; s = strchr(s + 1, '\n')) {
            size_t len = strcspn(s + 1, "\n"), name = strspn(s + 1, " ");
            if (memmem(s, len, " = ", 3) == NULL || memmem(s, len, what, strlen(what)) == NULL)
                continue;
            if (round == 0) {
                found++;
            } else if (skip > 0) {
                skip--;
            } else {
                text_add(t, s + 1 + name, strcspn(s + 1 + name, ": "));
                if (--n > 0)
                    add(t, ":");
            }
        }
        n = n < found ? n : found;
        skip = rng_below(rng, found - n + 1);
    }
    if (found == 0)
        add(t, "None");
}

/* Collectives of the pass's own kind, or of one kind; now and then any node. */
static void random_nodes(struct rng *rng, const char *graph, const char *pass, struct text *t)
{
    static const char *const kinds[] = {"all_gather_into_tensor.default", "all_reduce.default",
                                        "reduce_scatter_tensor.default", ""};
    uint32_t kind = rng_below(rng, 3);

    if (strstr(pass, "all_") != NULL || strstr(pass, "scatter") != NULL)
        kind = strstr(pass, "gather") != NULL ? 0 : strstr(pass, "all_reduce") != NULL ? 1 : 2;
    if (rng_below(rng, 16) == 0)
        kind = 3;
    random_names(rng, graph, kinds[kind], 2 + rng_below(rng, 3), t);
}

static void random_option(struct rng *rng, const char *graph, const char *pass,
                          const tuck_option *o, struct text *t)
{
    if (strcmp(o->type, "text") == 0) {
        random_names(rng, graph, "", 1, t);
    } else if (strcmp(o->type, "names") == 0) {
        random_nodes(rng, graph, pass, t);
    } else if (strchr(o->type, '|') != NULL) {
        random_choice(rng, o->type, t);
    } else if (strcmp(o->type, "bool") == 0) {
        add(t, "%s", rng_below(rng, 2) ? "true" : "false");
    } else if (strcmp(o->type, "int") == 0) {
        add(t, "%u", rng_below(rng, 4));
    } else if (strstr(o->name, "_kb") != NULL) {
        add(t, "%s", rng_below(rng, 4) ? "128" : "0.05");
    } else {
        random_number(rng, t);
        while (strcmp(o->type, "numbers") == 0 && rng_below(rng, 2) == 0) {
            add(t, ":");
            random_number(rng, t);
        }
    }
}

/* compat=torch is only used where its slips are expected. Lists of passes, names of clusters, the
 * limit of another option and permission for collectives to pass each other keep their defaults. */
static bool is_random(const tuck_option *o, bool torch)
{
    static const char *const fixed[] = {"unsafe", "_with_collectives", "debug"};

    if (strcmp(o->name, "compat") == 0)
        return torch;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        if (strstr(o->name, fixed[i]) != NULL)
            return false;
    return strcmp(o->name, "passes") != 0 && strcmp(o->name, "cluster") != 0 &&
           strcmp(o->name, "max_mb") != 0;
}

/* Is this option required? */
static bool is_needed(const char *pass, const tuck_option *o)
{
    return strcmp(pass, "merge_bucket") == 0 && strcmp(o->type, "names") == 0;
}

static void random_step(struct rng *rng, const char *graph, bool order, bool torch, char *to,
                        size_t size)
{
    struct text t = {NULL, 0, 0};
    size_t pass, given = 0;

    do
        pass = rng_below(rng, (uint32_t)tuck_pass_count());
    while (pass_is_on_order(all_passes.row[pass]) != order);
    add(&t, "%s(", tuck_pass_name(pass));
    for (size_t i = 0; i < tuck_pass_option_count(pass); i++) {
        tuck_option o;
        tuck_pass_option(pass, i, &o);
        if (!is_random(&o, torch) ||
            (!is_needed(tuck_pass_name(pass), &o) && rng_below(rng, 2) == 0))
            continue;
        add(&t, "%s%s=", given++ ? "," : "", o.name);
        random_option(rng, graph, tuck_pass_name(pass), &o, &t);
    }
    add(&t, ")");
    if (t.len >= size)
        abort();
    memcpy(to, t.at, t.len + 1);
    text_done(&t);
}

void random_plan(struct rng *rng, const char *graph, bool schedules, struct plan *p)
{
    *p = (struct plan){.n = 1 + (int)rng_below(rng, PLAN_STEPS),
                       .schedules = schedules,
                       .torch = rng_below(rng, 40) == 0,
                       .keep_order = rng_below(rng, 6) == 0,
                       .knows_rank = rng_below(rng, 5) < 2,
                       .twice = rng_below(rng, 8) == 0};
    for (int i = 0; i < p->n; i++) {
        bool last = schedules && (i == p->n - 1 || rng_below(rng, 2) == 0);
        random_step(rng, graph, last, p->torch, p->step[i], sizeof(p->step[i]));
    }
}

char *plan_text(const struct plan *p)
{
    struct text t = {NULL, 0, 0};

    text_clear(&t);
    for (int i = 0; i < p->n; i++)
        add(&t, "%s%s", i ? "," : "", p->step[i]);
    return t.at;
}
