/* Suggests the name that was probably meant, as in "unknown option 'cap'; did you mean
 * 'cap_mb'?". */
#ifndef TUCK_BASE_SUGGEST_H
#define TUCK_BASE_SUGGEST_H

#include <stddef.h>

/* Of all names that fn returns for 0, 1, … (until NULL), the one with the fewest edits from the
 * word, or that begins with it; NULL if none is close. */
const char *near_name(const char *word, size_t len, const char *(*fn)(const void *ctx, size_t i),
                      const void *ctx);

/* The same for n words in an array. */
const char *near_word(const char *word, const char *const *known, size_t n);

#endif
