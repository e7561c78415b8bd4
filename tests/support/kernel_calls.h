/* Runs calls of kernels from a file. */
#ifndef TUCK_TESTS_KERNEL_CALLS_H
#define TUCK_TESTS_KERNEL_CALLS_H

/* An exit code. */
int kernel_calls(const char *in, const char *out);

#endif
