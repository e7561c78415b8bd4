#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 128 }; /* longer names get no suggestion */

/* At least half of the longer one must stay: every short name is a few edits away from every short
 * word. */
static bool is_alike(size_t edits, size_t len_a, size_t len_b)
{
    return edits * 2 <= (len_a > len_b ? len_a : len_b);
}

/* Edits (insert, drop, replace a character) that turn a into b. */
static size_t distance(const char *a, size_t len_a, const char *b)
{
    size_t row[LONGEST], n = strlen(b);

    if (n >= LONGEST || len_a >= LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[n];
}

const char *near_name(const char *word, size_t len, const char *(*fn)(const void *ctx, size_t i),
                      const void *ctx)
{
    const char *best = NULL, *name;
    size_t least = len < 16 ? 4 + len / 8 : 2 + len / 4; /* a long name may lack a word */

    for (size_t i = 0; (name = fn(ctx, i)) != NULL; i++) {
        size_t d = distance(word, len, name);
        if (d > 1 && len >= 3 && strncmp(word, name, len) == 0)
            d = 1; /* an abbreviation */
        if (d < least && is_alike(d, len, strlen(name))) {
            least = d;
            best = name;
        }
    }
    return best;
}

struct array {
    const char *const *at;
    size_t n;
};

static const char *array_at(const void *ctx, size_t i)
{
    const struct array *a = ctx;

    return i < a->n ? a->at[i] : NULL;
}

const char *near_word(const char *word, const char *const *known, size_t n)
{
    struct array a = {known, n};

    return near_name(word, strlen(word), array_at, &a);
}
