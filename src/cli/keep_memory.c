#include "cli/keep_memory.h"

#include <limits.h>
#include <malloc.h>

void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_MAX, 0); /* no pages of its own for a large block: they are given back with it */
#endif
}
