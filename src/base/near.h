/* What was probably meant: the known word that is closest to a misspelt one. */
#ifndef TUCK_BASE_NEAR_H
#define TUCK_BASE_NEAR_H

#include <stddef.h>

/* Edits (insert, drop, replace a character) that turn a into b; a large number for words beyond 31. */
size_t near_distance(const char *a, const char *b);

/* The closest of n words, or NULL where none is close. */
const char *near_word(const char *word, const char *const *known, size_t n);

#endif
