/*
 * remember.h
 *		Which relations have pages on devices, as a list that outlives the server, and who loads them again.
 *
 * README, "Resident pages: after a restart", tells when it is written and read.
 */
#ifndef GPUHASH_REMEMBER_H
#define GPUHASH_REMEMBER_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "storage/block.h"

/* Relations in a list, at most. */
#define GH_REMEMBERED_MAX 16384

/* A relation's file; as it is in the list's file, without padding. */
typedef struct GhRemembered
{
	int32		device;			/* CUDA's number */
	Oid			database;
	Oid			tablespace;
	uint32		number;			/* relfilenumber */
	Oid			relid;
	BlockNumber blocks;			/* that were on the device */
	TimestampTz used;			/* when a query used them last */
} GhRemembered;

/* In the order in which they are loaded: by device, and of each one what was used last comes first. */
typedef struct GhRememberedList
{
	GhRemembered *entries;		/* palloc()ed */
	int			count;
	bool		loading;		/* a load has begun, and has not come to its end */
} GhRememberedList;

/* ---- remember.c: the list's file ---- */

extern bool gh_remembered_read(GhRememberedList *list, int elevel);
extern void gh_remembered_write(const GhRememberedList *list);
extern void gh_remembered_forget(void);

/*
 * While columns are made there is a file; whether there was one when the server began, of which nothing is
 * left then.
 */
extern void gh_making_begin(void);
extern void gh_making_end(void);
extern bool gh_making_was_cut_off(void);

/* ---- reload.c ---- */

/* Of _PG_init, while the postmaster loads the library. */
extern void gh_reload_init(void);
extern PGDLLEXPORT void gh_reload_launcher_main(Datum arg);

/* What a process that loads a database's relations is given. */
typedef struct GhReloadTask
{
	int			device;
} GhReloadTask;

#endif							/* GPUHASH_REMEMBER_H */
