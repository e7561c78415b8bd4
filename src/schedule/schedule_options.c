#include "schedule/schedule_options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/suggest.h"

static const struct row {
    struct pass_option option;
    const char *torch;
} rows[] = {
#define OPTION(for, name, type, own, torch, help)                                                  \
    {{#name, type, offsetof(struct schedule_options, name), own, NULL, help}, torch},
#include "schedule/schedule_options.def"
#undef OPTION
};

enum { N_ROWS = sizeof(rows) / sizeof(*rows) };

const struct schedule_slip_row schedule_slip_table[] = {
    {"fake-deps-ignored", SLIP_FAKE_DEPS_IGNORED,
     "the iterative passes do not see dependences that only keep collectives in order"},
    {"stale-group-peak", SLIP_STALE_GROUP_PEAK,
     "the peak of what moves together is that of where each op joined, not of where it is now"},
    {"first-op-owns-inputs", SLIP_FIRST_OP_OWNS_INPUTS,
     "freeable inputs are allocated by the op that came first, wherever it goes"},
    {"sink-last-use-stale", SLIP_SINK_LAST_USE_STALE,
     "sink_waits_iterative forgets that the last user of a buffer changed"},
    {"sink-group-runtime", SLIP_SINK_GROUP_RUNTIME,
     "sink_waits_iterative does not count compute that a wait takes along"},
    {"exposure-past-waits", SLIP_EXPOSURE_PAST_WAITS,
     "compute after the wait of a later collective still counts as hiding an earlier one"},
    {"skip-end-op", SLIP_SKIP_END_OP,
     "a collective that is the last op, and a wait that is the first, are not looked at"},
};
const size_t n_schedule_slips = sizeof(schedule_slip_table) / sizeof(*schedule_slip_table);

/* Values of these types need no arena. */
static bool set(struct schedule_options *o, const struct pass_option *x, const char *value,
                size_t len, const char **wanted)
{
    return pass_option_set(x, o, value, len, NULL, wanted);
}

void schedule_defaults(struct schedule_options *o, bool torch)
{
    const char *wanted;

    *o = (struct schedule_options){.torch = torch, .slips = torch ? SLIP_ALL : 0};
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *value = torch ? rows[i].torch : rows[i].option.dflt;
        set(o, &rows[i].option, value, strlen(value), &wanted);
    }
}

bool schedule_compat(struct schedule_options *o, const char *text, char why[160])
{
    const char *names[sizeof(schedule_slip_table) / sizeof(*schedule_slip_table)];
    unsigned left_out = 0;
    size_t n = strcspn(text, ",");

    if (n != 5 || strncmp(text, "torch", 5) != 0) {
        snprintf(why, 160, "must begin with 'torch', found '%.60s'", text);
        return false;
    }
    for (const char *s = text + n; *s != '\0'; s += n) {
        const struct schedule_slip_row *row = NULL;
        char word[64];

        s++;
        n = strcspn(s, ",");
        snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), s);
        for (size_t i = 0; i < n_schedule_slips; i++) {
            names[i] = schedule_slip_table[i].name;
            if (word[0] == '-' && strcmp(word + 1, names[i]) == 0)
                row = &schedule_slip_table[i];
        }
        if (row == NULL) {
            const char *near = near_word(word + (word[0] == '-'), names, n_schedule_slips);
            snprintf(why, 160, "'%s' is not -NAME of a deviation%s%s%s", word,
                     near ? "; did you mean '-" : "", near ? near : "", near ? "'?" : "");
            return false;
        }
        left_out |= row->slip;
    }
    schedule_defaults(o, true);
    o->slips &= ~left_out;
    return true;
}

static const char *option_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < N_ROWS ? rows[i].option.name : NULL;
}

static const struct pass_option *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].option.name) == len && memcmp(rows[i].option.name, name, len) == 0)
            return &rows[i].option;
    return NULL;
}

bool schedule_set(struct schedule_options *o, const char *text, char why[160])
{
    size_t n = strcspn(text, "=");
    const struct pass_option *x = find_option(text, n);
    const char *wanted;

    if (x == NULL) {
        const char *near = near_name(text, n, option_name, NULL);
        snprintf(why, 160, "unknown option '%.*s'%s%s%s", (int)(n < 60 ? n : 60), text,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return false;
    }
    const char *value = text + n + (text[n] == '=');
    if (!set(o, x, value, strlen(value), &wanted)) {
        snprintf(why, 160, "%s must be %s, found '%.40s'", x->name, wanted, value);
        return false;
    }
    return true;
}

void schedule_overlay(struct schedule_options *o, const struct schedule_options *step,
                      const char *given)
{
    static const size_t size[] = {
        [PASS_BOOL] = sizeof(bool), [PASS_INT] = sizeof(int64_t), [PASS_FLOAT] = sizeof(double)};

    for (const char *s = given; *s != '\0'; s += strcspn(s, ","), s += *s == ',') {
        const struct pass_option *x = find_option(s, strcspn(s, "=,"));
        if (x != NULL)
            memcpy((char *)o + x->at, (const char *)step + x->at, size[x->type]);
    }
}
