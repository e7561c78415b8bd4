/* Sizes and times as readable text. */
#ifndef TUCK_BASE_UNITS_H
#define TUCK_BASE_UNITS_H

#include <stdint.h>

/* 1536 → "1.50 KiB". */
const char *text_of_bytes(int64_t bytes, char out[32]);
/* 12.3 us, 1.23 ms, 2.00 s; "?" below 0. */
const char *text_of_us(double us, char out[32]);

#endif
