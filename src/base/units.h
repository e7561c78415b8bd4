/* Times, and sizes and times as readable text.
 *
 * A time is a whole number of picoseconds in an int64_t, and its name ends in _ps; -1 means
 * unknown. Formulas of the cost models and numbers in files are doubles in other units: they become
 * times by ps_round() and nowhere else, and times become ns only when they are printed.
 */
#ifndef TUCK_BASE_UNITS_H
#define TUCK_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define PS_PER_NS 1e3
#define PS_PER_US 1e6

/* Rounds to the nearest picosecond, halves away from zero; INT64_MAX if it does not fit, unknown if
 * it is negative or not a number. */
int64_t ps_round(double ps);
/* The same for a difference of two times, which may be negative. */
int64_t ps_round_difference(double ps);

/* The sum of two times, and n times a time: INT64_MAX if it does not fit, unknown if a part is
 * unknown. */
int64_t ps_add(int64_t a, int64_t b);
int64_t ps_times(int64_t ps, int64_t n);

/* For printing. */
static inline double ns_of_ps(int64_t ps)
{
    return (double)ps / PS_PER_NS;
}

/* The picoseconds of "ns", "us", "ms", "s"; false if there is no such unit. */
bool unit_by_name(const char *name, double *ps_out);

/* 1536 → "1.50 KiB". */
const char *text_of_bytes(int64_t bytes, char out[32]);
/* 25MB: 1 KB = 1 KiB = 1024 bytes, and so on. -1: not a size. */
int64_t bytes_of_text(const char *text);
/* 12.3 us, 1.23 ms, 2.00 s; "?" if unknown. */
const char *text_of_ps(int64_t ps, char out[32]);

#endif
