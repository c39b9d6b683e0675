/*
 * index_wanted.h
 *		Which indexes' copies are to be made again: asked for by sessions, made by a process in the background.
 *
 * README, "Copies of indexes: made again", has who asks, and when they are made.
 */
#ifndef GPUHASH_INDEX_WANTED_H
#define GPUHASH_INDEX_WANTED_H

#include "postgres.h"

#include "datatype/timestamp.h"

extern void gh_index_wanted_init(void);

/* Of whoever uses a copy of an index of this database, or would. */
extern void gh_index_want(Oid index);

/*
 * For the launcher: a database of which copies are to be made; InvalidOid: there is none.  Then, that the
 * process for it has ended.
 */
extern Oid	gh_index_wanted_database(void);
extern void gh_index_wanted_end(Oid database, TimestampTz began);

/* For that process: the next one that it makes, of its database; InvalidOid: there is none. */
extern Oid	gh_index_wanted_next(void);

#endif							/* GPUHASH_INDEX_WANTED_H */
