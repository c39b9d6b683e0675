/*
 * cpu_zone.h
 *		Time zones over the rows of a batch, for the CPU engine.
 */
#ifndef GH_CPU_ZONE_H
#define GH_CPU_ZONE_H

#include "engine/program/program_zone.h"

extern uint64_t gh_zone_shift_rows(const GhProgram *program, const GhInstruction *in, const uint64_t *timestamps,
								   uint32_t nrows, uint64_t *shifts);

#endif							/* GH_CPU_ZONE_H */
