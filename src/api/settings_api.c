/* Options by name: for bindings of other languages, which then know no layout of a struct. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"

struct tuck_settings {
    struct mem mem;
    struct arena arena;
    tuck_cluster *cluster;
    tuck_profile *profile;
    VEC(tuck_hint) hint;
    VEC(const char *) symm;
    tuck_machine machine;
    tuck_run_options run;
    tuck_print_options print;
    tuck_explain_options explain;
};

tuck_status tuck_settings_new(const tuck_allocator *alloc, tuck_settings **out)
{
    struct mem m;

    if (out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_settings *s = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*s));
    if (s == NULL)
        return TUCK_ENOMEM;
    *s = (tuck_settings){.mem = m};
    arena_init(&s->arena, &s->mem);
    tuck_machine_init(&s->machine);
    tuck_run_options_init(&s->run);
    tuck_print_options_init(&s->print);
    tuck_explain_options_init(&s->explain);
    s->run.machine = &s->machine;
    *out = s;
    return TUCK_OK;
}

void tuck_settings_free(tuck_settings *s)
{
    if (s == NULL)
        return;
    struct mem m = s->mem;

    tuck_cluster_free(s->cluster);
    tuck_profile_free(s->profile);
    vec_free(&s->mem, &s->hint);
    vec_free(&s->mem, &s->symm);
    arena_destroy(&s->arena);
    mem_free(&m, s, sizeof(*s));
}

const tuck_machine *tuck_settings_machine(const tuck_settings *s)
{
    return &s->machine;
}

const tuck_run_options *tuck_settings_run(const tuck_settings *s)
{
    return &s->run;
}

const tuck_print_options *tuck_settings_print(const tuck_settings *s)
{
    return &s->print;
}

const tuck_explain_options *tuck_settings_explain(const tuck_settings *s)
{
    return &s->explain;
}

/* ---- values ---- */

/* Which of `names`, separated by |, is it? -1: none of them. */
static int word_of(const char *names, const char *value)
{
    size_t len = strlen(value);

    for (int i = 0; len > 0; i++) {
        size_t n = strcspn(names, "|");

        if (n == len && memcmp(names, value, n) == 0)
            return i;
        if (names[n] == '\0')
            return -1;
        names += n + 1;
    }
    return -1;
}

static bool number_of(const char *value, double most, double *out)
{
    char *end;
    double v = strtod(value, &end);

    if (end == value || *end != '\0' || !(v >= 0 && v <= most))
        return false;
    *out = v;
    return true;
}

static bool count_of(const char *value, uint32_t *out)
{
    double v;

    if (!number_of(value, INT32_MAX, &v) || v != (double)(uint32_t)v)
        return false;
    *out = (uint32_t)v;
    return true;
}

/* 40GiB, +512MiB, +5% */
static bool memory_of(const char *value, tuck_run_options *o)
{
    const char *number = value + (*value == '+');
    size_t len = strlen(number);
    char *end;

    if (*value == '+' && len > 1 && number[len - 1] == '%') {
        double v = strtod(number, &end);
        if (end != number + len - 1 || *number < '0' || *number > '9' || !(v >= 0 && v <= 1e6))
            return false;
        o->memory_share = v / 100;
        return true;
    }
    int64_t bytes = tuck_parse_bytes(number);
    if (*value == '+' ? bytes < 0 : bytes <= 0)
        return false;
    *(*value == '+' ? &o->memory_more : &o->memory) = bytes;
    return true;
}

struct take {
    tuck_settings *s;
    const char *value;
    tuck_hint hint;
    const char *copy;
};

static void do_copy(void *arg)
{
    struct take *x = arg;

    x->copy = arena_str(&x->s->arena, x->value, strlen(x->value));
}

static void do_hint(void *arg)
{
    struct take *x = arg;
    size_t len = strcspn(x->value, "=");

    x->hint.symbol = arena_str(&x->s->arena, x->value, len);
    vec_push(&x->s->mem, &x->s->hint, x->hint);
}

static void do_symm(void *arg)
{
    struct take *x = arg;

    do_copy(x);
    vec_push(&x->s->mem, &x->s->symm, x->copy);
}

static tuck_status set_symm_mem(tuck_settings *s, const char *value)
{
    struct take x = {.s = s, .value = value};

    if (*value == '\0')
        return TUCK_EINVAL;
    if (!mem_guard(&s->mem, do_symm, &x))
        return TUCK_ENOMEM;
    s->machine.symm_groups = s->symm.at;
    s->machine.n_symm_groups = s->symm.len;
    return TUCK_OK;
}

/* s0=8 */
static tuck_status set_symbol(tuck_settings *s, const char *value)
{
    struct take x = {.s = s, .value = value};
    const char *eq = strchr(value, '=');
    char *end;

    if (eq == NULL || eq == value || eq[1] < '0' || eq[1] > '9')
        return TUCK_EINVAL;
    errno = 0;
    x.hint.value = strtoll(eq + 1, &end, 10);
    if (errno != 0 || *end != '\0')
        return TUCK_EINVAL;
    if (!mem_guard(&s->mem, do_hint, &x))
        return TUCK_ENOMEM;
    s->machine.hints = s->hint.at;
    s->machine.n_hints = s->hint.len;
    return TUCK_OK;
}

static tuck_status set_text(tuck_settings *s, const char *value, const char **out)
{
    struct take x = {.s = s, .value = value};

    if (!mem_guard(&s->mem, do_copy, &x))
        return TUCK_ENOMEM;
    *out = x.copy;
    return TUCK_OK;
}

static bool is_path(const char *s)
{
    size_t n = strlen(s);

    return strchr(s, '/') != NULL || (n > 5 && strcmp(s + n - 5, ".json") == 0) ||
           access(s, F_OK) == 0;
}

static tuck_status set_cluster(tuck_settings *s, const char *value, tuck_diags *diags)
{
    tuck_cluster *c = NULL;
    tuck_status st = is_path(value) ? tuck_cluster_read_file(value, &s->mem.alloc, diags, &c)
                                    : tuck_cluster_preset(value, &s->mem.alloc, diags, &c);

    if (st != TUCK_OK)
        return st;
    tuck_cluster_free(s->cluster);
    s->machine.cluster = s->cluster = c;
    return TUCK_OK;
}

static tuck_status set_profile(tuck_settings *s, const char *value, tuck_diags *diags)
{
    tuck_profile *p = NULL;
    tuck_status st = tuck_profile_read_file(value, &s->mem.alloc, diags, &p);

    if (st != TUCK_OK)
        return st;
    tuck_profile_free(s->profile);
    s->machine.profile = s->profile = p;
    return TUCK_OK;
}

/* ---- keys ---- */

enum key {
    KEY_CLUSTER,
    KEY_PROFILE,
    KEY_MODEL,
    KEY_SYMBOL,
    KEY_SYMM_MEM,
    KEY_BANDWIDTH,
    KEY_CONTENTION,
    KEY_STRICT,
    KEY_ORDER,
    KEY_MEMORY,
    KEY_JUDGE,
    KEY_FORM,
    KEY_TOP,
    KEY_WIDTH,
    KEY_COLOR,
    KEY_TIMES,
    KEY_TIMELINE,
    KEY_NODE,
    KEY_SUBJECT,
};

static const struct {
    const char *name;
    const char *wants; /* words that it may be, or what it is */
} keys[] = {
    [KEY_CLUSTER] = {"cluster", "the name of a cluster or a file"},
    [KEY_PROFILE] = {"profile", "a file"},
    [KEY_MODEL] = {"model", "auto|table|law|nccl|alpha-beta|torch|torch-old"},
    [KEY_SYMBOL] = {"symbol", "a value of a symbol such as s0=8"},
    [KEY_SYMM_MEM] = {"symm_mem", "a group with symmetric memory, or *"},
    [KEY_BANDWIDTH] = {"bandwidth", "a factor"},
    [KEY_CONTENTION] = {"contention", "no|yes"},
    [KEY_STRICT] = {"strict", "no|yes"},
    [KEY_ORDER] = {"order", "free|groups|all"},
    [KEY_MEMORY] = {"memory", "a peak such as 40GiB, or an increase such as +5% or +512MiB"},
    [KEY_JUDGE] = {"judge", "no|yes"},
    [KEY_FORM] = {"form", "table|json|brief"},
    [KEY_TOP] = {"top", "a number of rows"},
    [KEY_WIDTH] = {"width", "a number of columns"},
    [KEY_COLOR] = {"color", "no|yes"},
    [KEY_TIMES] = {"times", "no|yes"},
    [KEY_TIMELINE] = {"timeline", "no|yes"},
    [KEY_NODE] = {"node", "the name of a node"},
    [KEY_SUBJECT] = {"subject", "a text"},
};

enum { N_KEYS = sizeof(keys) / sizeof(*keys) };

static const char *key_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < N_KEYS ? keys[i].name : NULL;
}

static void set_detail(tuck_settings *s, tuck_detail flag, int on)
{
    s->print.detail = (s->print.detail & ~(uint32_t)flag) | (on ? (uint32_t)flag : 0);
}

static tuck_status ok_if(bool ok)
{
    return ok ? TUCK_OK : TUCK_EINVAL;
}

/* Settings that are one of a few words. */
static tuck_status set_word(tuck_settings *s, enum key key, const char *value)
{
    int w = word_of(keys[key].wants, value);

    if (w < 0)
        return TUCK_EINVAL;
    switch (key) {
    case KEY_MODEL: s->machine.model = (tuck_cost_model)w; break;
    case KEY_CONTENTION: s->machine.contention = (tuck_contention)w; break;
    case KEY_STRICT: s->machine.unknown = (tuck_unknown)w; break;
    case KEY_ORDER: s->run.order = s->explain.order = (tuck_order_rule)w; break;
    case KEY_JUDGE: s->run.judge = (tuck_judge)w; break;
    case KEY_FORM: s->print.form = (tuck_print_form)w; break;
    case KEY_COLOR: s->print.color = (tuck_color)w; break;
    case KEY_TIMES: set_detail(s, TUCK_DETAIL_TIMES, w); break;
    case KEY_TIMELINE: set_detail(s, TUCK_DETAIL_TIMELINE, w); break;
    default: return TUCK_EINVAL;
    }
    return TUCK_OK;
}

static tuck_status set(tuck_settings *s, enum key key, const char *value)
{
    switch (key) {
    case KEY_SYMBOL: return set_symbol(s, value);
    case KEY_SYMM_MEM: return set_symm_mem(s, value);
    case KEY_BANDWIDTH: return ok_if(number_of(value, 1e6, &s->machine.bandwidth));
    case KEY_MEMORY: return ok_if(memory_of(value, &s->run));
    case KEY_TOP: return ok_if(count_of(value, &s->print.top));
    case KEY_WIDTH: return ok_if(count_of(value, &s->print.width));
    case KEY_NODE: return set_text(s, value, &s->explain.node);
    case KEY_SUBJECT: return set_text(s, value, &s->explain.subject);
    default: return set_word(s, key, value);
    }
}

tuck_status tuck_settings_set(tuck_settings *s, const char *key, const char *value,
                              tuck_diags *diags)
{
    size_t i = 0;

    if (s == NULL || key == NULL || value == NULL)
        return TUCK_EINVAL;
    while (i < N_KEYS && strcmp(keys[i].name, key) != 0)
        i++;
    if (i == N_KEYS) {
        const char *meant = tuck_suggest(key, key_name, NULL);
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "there is no setting '%s'%s%s%s", key,
                 meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        return TUCK_EINVAL;
    }
    if (i == KEY_CLUSTER)
        return set_cluster(s, value, diags);
    if (i == KEY_PROFILE)
        return set_profile(s, value, diags);
    tuck_status st = set(s, (enum key)i, value);
    if (st == TUCK_EINVAL)
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "setting '%s' wants %s, found '%s'", key,
                 keys[i].wants, value);
    return st;
}
