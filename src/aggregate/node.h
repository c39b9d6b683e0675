/*
 * node.h
 *		GpuHashAggregate: groups, and what the node's files share of them.
 */
#ifndef GPUHASH_AGGREGATE_NODE_H
#define GPUHASH_AGGREGATE_NODE_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"

#include "compat.h"
#include "engine/page/page.h"
#include "engine/pipeline/record.h"
#include "expr/aggregates.h"
#include "fragment/records.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"

/* ---- groups.c: the groups of one process ---- */

typedef struct GhGroups GhGroups;

extern GhGroups *gh_groups_create(MemoryContext parent, int nkeys, const GhValueType *keys,
								  int naggregates, const GhAggregateSpec *specs);
extern void gh_groups_destroy(GhGroups *groups);
extern void gh_groups_reset(GhGroups *groups);
extern Size gh_groups_bytes(const GhGroups *groups);
extern uint32 gh_groups_count(const GhGroups *groups);
extern uint32 gh_groups_find_one(GhGroups *groups, const GhSqlValue *keys);
extern GhAggregateState *gh_groups_states(GhGroups *groups);
extern GhSide **gh_groups_side(GhGroups *groups, uint32 group, int aggregate);
extern const GhSide *gh_groups_side_of(const GhGroups *groups, uint32 group, int aggregate);
extern MemoryContext gh_groups_context(GhGroups *groups);
extern GhSqlValue gh_groups_key(const GhGroups *groups, uint32 group, int key);

/*
 * A group as bytes: it means the same in any process and in a file.  Its first 8 bytes are its
 * size, a multiple of 8, the next 8 the hash of its keys; it lies at a multiple of 8.  Several
 * may be merged at once, one behind the other, which is faster.
 */
typedef void (*GhPutRecord) (void *arg, const char *record, Size size);

extern void gh_groups_put_records(const GhGroups *groups, GhPutRecord put, void *arg);
extern void gh_groups_merge_records(GhGroups *groups, const char *records, Size size);
extern uint64 gh_group_record_hash(const char *record);
extern uint64 gh_group_record_part_hash(const GhGroups *groups, const char *record, Size size, const bool *is_part_key);
extern uint64 gh_group_hash(const GhGroups *groups, uint32 group);

/* Groups as engines tell them (engine/pipeline/record.h), one behind the other. */
extern const GhAggregateState *gh_record_states(const GhGroups *groups, const char *record, Size left);
extern const GhSide *gh_record_text(const GhAggregateSpec *spec, const char *record, const GhAggregateState *state,
									GhSide *side);
extern void gh_put_records(GhGroups *groups, const char *records, Size size, GhPutRecord put, void *arg);
extern void gh_groups_merge_scan(GhGroups *groups, const char *records, Size size);
extern uint64 gh_groups_absorb_scan(GhGroups *groups, const char *records, Size size, uint64 *absorbed, uint64 room,
									uint64 *turn);

/* ---- spill.c: groups that do not fit in memory ---- */

extern Size gh_records_read(GhRecordBuffer *buffer, BufFile *file);

typedef struct GhGroupFiles GhGroupFiles;

/* Parts of groups that several processes read, each part one of them. */
typedef struct GhSharedParts
{
	bool		(*next_part) (void *arg);	/* takes one; false: all are taken */
	Size		(*next_records) (void *arg, GhRecordBuffer *buffer);	/* of it, in the buffer: their bytes; 0: it has no more */
	void		(*close) (void *arg);	/* no more of them is wanted */
	void	   *arg;
} GhSharedParts;

extern GhGroupFiles *gh_group_files_create(MemoryContext context, Size memory_limit);
extern void gh_group_files_part_by(GhGroupFiles *files, const GhGroups *groups, const bool *is_part_key, double values);
extern bool gh_group_files_are_whole(const GhGroupFiles *files);
extern void gh_group_files_share(GhGroupFiles *files, const GhSharedParts *parts);
extern void gh_group_files_put(void *files, const char *record, Size size);
extern bool gh_group_files_next(GhGroupFiles *files, GhGroups *groups);
extern uint64 gh_group_files_bytes(const GhGroupFiles *files);
extern void gh_group_files_close(GhGroupFiles *files);

/* ---- final.c: groups as engines return them, each once ---- */

typedef struct GhFinalGroups GhFinalGroups;
struct GhStage;

extern GhFinalGroups *gh_final_groups_create(MemoryContext parent, Size memory_limit);
extern void gh_final_groups_put(GhFinalGroups *final, const char *records, Size size);
extern void gh_final_groups_leave_out(GhFinalGroups *final, uint64 count);
extern uint64 gh_final_groups_left_out(const GhFinalGroups *final);
extern void gh_final_groups_add_sink(GhFinalGroups *final, struct GhStage *stage);
extern uint32 gh_final_groups_next(GhFinalGroups *final, const char **records, uint32 room);
extern uint32 gh_final_groups_sample(GhFinalGroups *final, const char **records, uint32 room, uint64 step);
extern const char *gh_final_groups_take(GhFinalGroups *final, Size *bytes);
extern uint64 gh_final_groups_absorb(GhFinalGroups *final, GhGroups *groups);
extern void gh_final_groups_rewind(GhFinalGroups *final);
extern uint64 gh_final_groups_count(const GhFinalGroups *final);
extern Size gh_final_groups_memory(const GhFinalGroups *final);
extern uint64 gh_final_groups_disk(const GhFinalGroups *final);
extern void gh_final_groups_clear(GhFinalGroups *final);
extern void gh_final_groups_close(GhFinalGroups *final);

/* ---- exec.c ---- */

extern void gh_aggregate_register(void);

#endif							/* GPUHASH_AGGREGATE_NODE_H */
