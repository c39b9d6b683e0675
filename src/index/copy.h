/*
 * copy.h
 *		copy.c: copies of an index in shared memory.
 */
#ifndef GPUHASH_INDEX_COPY_H
#define GPUHASH_INDEX_COPY_H

/* Of _PG_init. */
extern void gh_index_copy_init(void);

#endif							/* GPUHASH_INDEX_COPY_H */
