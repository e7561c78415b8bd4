/* Sizes and times as readable text. */
#ifndef TUCK_BASE_UNITS_H
#define TUCK_BASE_UNITS_H

#include <stdint.h>

/* 1536 → "1.50 KiB". */
const char *text_of_bytes(int64_t bytes, char out[32]);
/* 25MB: 1 KB = 1 KiB = 1024 bytes, and so on. -1: not a size. */
int64_t bytes_of_text(const char *text);
/* 12.3 us, 1.23 ms, 2.00 s; "?" below 0. */
const char *text_of_us(double us, char out[32]);

#endif
