/* Loops that compilers vectorize: VEC_LOOP before a `for` says that its elements do not depend on
 * each other, whatever the pointers are (a result may be one of the operands). */
#ifndef TUCK_RUN_KERNEL_VECTOR_H
#define TUCK_RUN_KERNEL_VECTOR_H

#if defined(__clang__)
#define VEC_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define VEC_LOOP _Pragma("GCC ivdep")
#else
#define VEC_LOOP
#endif

#endif
