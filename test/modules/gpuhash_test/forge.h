/*
 * forge.h
 *		Requests that no client of ours would make, past all checks of the client (forge.c).
 */
#ifndef GPUHASH_TEST_FORGE_H
#define GPUHASH_TEST_FORGE_H

#include "service/client.h"

/* Changes fields of a request: "name=number", with blanks between them. */
extern void gh_forge_fields(GhSlot *slot, char *fields);
/*
 * Submits the slot to that device, by its own number or another one in its place, and waits for
 * the answer; false: there was none.  The slot is this process's again in any case.
 */
extern bool gh_forge_submit(uint32 number, uint32 device, uint32 appended);

#endif							/* GPUHASH_TEST_FORGE_H */
