/*
 * resident_tables.h
 *		Tables of joins that stay on a device, each made of a relation's rows, and are borrowed while these are the same.
 *
 * README, "Resident tables", has the rules and what they rest on.
 */
#ifndef GPUHASH_RESIDENT_TABLES_H
#define GPUHASH_RESIDENT_TABLES_H

#include "postgres.h"

#include "common/sha2.h"
#include "datatype/timestamp.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "engine/pipeline/pipeline.h"

/* What a table is made of, as seen now: which rows, and what it has of them. */
typedef struct GhTableSource GhTableSource;

extern bool gh_resident_tables_apply(Relation relation, Snapshot snapshot);
extern GhTableSource *gh_resident_table_source(Relation relation, int device,
											   const uint8 identity[PG_SHA256_DIGEST_LENGTH]);
/* All copies of indexes are of one of a device's executors (service.h), so that a query can probe several. */
#define GH_DEVICE_COPY_EXECUTOR 0

extern GhTableSource *gh_resident_table_source_of_copy(Relation index, uint64 generation, int device);
/* Whether one of that source is there, that could be borrowed. */
extern bool gh_resident_table_is_there(const GhTableSource *source);
extern bool gh_resident_table_may_stay(const GhTableSource *source, uint64 bytes);
extern const void *gh_resident_table_source_bytes(const GhTableSource *source, Size *bytes);
extern bool gh_resident_table_borrow(const GhTableSource *source, GhRef *root, uint64 *rows);
extern bool gh_resident_table_keep(const GhTableSource *source, GhRef root, uint64 rows);
extern bool gh_resident_table_hold(GhRef root);
extern void gh_resident_table_return(GhRef root);
extern uint64 gh_resident_tables_give_up(int device, uint64 bytes, int wait_ms);
extern void gh_resident_tables_forget_gone(void);
/* A copy of an index of this database, for the view. */
typedef struct GhDeviceCopyInfo
{
	Oid			relation;
	int			device;
	uint64		bytes;
	uint64		hits;			/* queries that used it */
	TimestampTz used;
} GhDeviceCopyInfo;

/* Of a database that is no more: another one may have its OID, and copies of its files. */
extern void gh_resident_copies_drop_database(Oid database);
/* palloc'd */
extern GhDeviceCopyInfo *gh_resident_copies_list(int *count);
extern void gh_resident_tables_count(int device, Oid relid, uint64 *tables, uint64 *bytes);

#endif							/* GPUHASH_RESIDENT_TABLES_H */
