#include "base/near.h"

#include <string.h>

enum { LONGEST = 32 };

size_t near_distance(const char *a, const char *b)
{
    size_t row[LONGEST], n = strlen(b);

    if (n >= LONGEST || strlen(a) >= LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
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

const char *near_word(const char *word, const char *const *known, size_t n)
{
    const char *near = NULL;
    size_t best = 4;

    for (size_t i = 0; i < n; i++) {
        size_t d = near_distance(word, known[i]);
        if (d < best && d < strlen(known[i])) {
            best = d;
            near = known[i];
        }
    }
    return near;
}
