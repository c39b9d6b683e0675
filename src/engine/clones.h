/*
 * clones.h
 *		Functions that are compiled for several processors.
 *
 * A package is compiled for any processor of 64 bits, whose vectors compare and multiply no integers of 64
 * bits.  GCC compiles a function with GH_CLONES in front once more for AVX2, which does, and the one for the
 * processor at hand is chosen when the library is loaded.  What such a function calls has to be inlined, to
 * be compiled so, too.  They are static: of others GCC exports the name from the library, whatever its
 * visibility.
 */
#ifndef GPUHASH_CLONES_H
#define GPUHASH_CLONES_H

#include <stdint.h>

#define gh_always_inline inline __attribute__((always_inline))

/* glibc chooses; sanitizers are not ready by then, nor are counters of a profile (the Makefile) */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(GH_NO_CLONES)
#define GH_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GH_CLONES
#endif

#endif							/* GPUHASH_CLONES_H */
