/*
 * cpu_page.h
 *		Reading heap pages into batches on the CPU.
 */
#ifndef GPUHASH_CPU_PAGE_H
#define GPUHASH_CPU_PAGE_H

#include "engine/page/page.h"

extern GhStatus gh_cpu_page_load(const GhPageShape *shape, const uint8_t *page, uint32_t block,
								 const uint16_t *numbers, uint32_t count,
								 GhVectorBatch *batch);

#endif							/* GPUHASH_CPU_PAGE_H */
