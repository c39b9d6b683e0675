/*
 * forge.h
 *		Requests that no client of ours would make, past all checks of the client (forge.c).
 */
#ifndef GPUHASH_TEST_FORGE_H
#define GPUHASH_TEST_FORGE_H

#include "common/pg_prng.h"

#include "compat.h"
#include "service/client.h"

/* Changes fields of a request: "name=number", with blanks between them. */
extern void gh_forge_fields(GhSlot *slot, char *fields);
/*
 * Submits the slot to that device, by its own number or another one in its place, and waits for
 * the answer; false: there was none.  The slot is this process's again in any case.
 */
extern bool gh_forge_submit(uint32 number, uint32 device, uint32 appended);

/* Where the copy of a page is in the buffer of a forged request. */
#define GH_FORGE_PAGE_AT 65536

extern void gh_forge_copy_page(Oid relid, void *to);
/* An address by a name: "own" is where the copy of the page is, a number a slot's buffer. */
extern const char *gh_forge_address(const char *name, const char *buffer);
/* What became of a request on a pipeline, in words (forge_pipeline.c). */
extern char *gh_forge_pipeline_answer(const GhSlot *slot);
/* Some words of a block, mostly of its head, become others. */
extern void gh_forge_damage(char *block, Size bytes, pg_prng_state *random);

#endif							/* GPUHASH_TEST_FORGE_H */
