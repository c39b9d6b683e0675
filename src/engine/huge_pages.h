/*
 * huge_pages.h
 *		Huge pages for memory that is read at random.
 */
#ifndef GPUHASH_HUGE_PAGES_H
#define GPUHASH_HUGE_PAGES_H

#include <stdint.h>
#include <sys/mman.h>

/* Blocks from this size on ask for huge pages, whose size is 2 MiB. */
#define HUGE_PAGE_BYTES ((uintptr_t) 2 << 20)
#define HUGE_BLOCK_BYTES (2 * HUGE_PAGE_BYTES)

/*
 * Random reads of hundreds of megabytes miss the TLB each time when the pages
 * are small.  This is a hint about whole huge pages inside the block: it changes no
 * content, is harmless in a shared mapping, and where the kernel declines it
 * nothing is lost.  The includer defines _GNU_SOURCE.
 */
static inline void
gh_advise_huge_pages(void *memory, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	begin = ((uintptr_t) memory + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	uintptr_t	end = ((uintptr_t) memory + bytes) & ~(HUGE_PAGE_BYTES - 1);

	if (bytes >= HUGE_BLOCK_BYTES && end > begin)
		(void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#else
	(void) memory;
	(void) bytes;
#endif
}

#endif							/* GPUHASH_HUGE_PAGES_H */
