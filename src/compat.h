/*
 * compat.h
 *		What differs from PostgreSQL 15 to 19.  PG_VERSION_NUM is tested here, and for the planner in compat_plan.h, and nowhere else.
 */
#ifndef GPUHASH_COMPAT_H
#define GPUHASH_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "gpuhash needs PostgreSQL 15 or newer"
#endif

/* 16 moved the macros on varlena values out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18 split commands/explain.h. */
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#include "access/amapi.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/buffile.h"

#include "compat_plan.h"

/*
 * Reads exactly size bytes of a temporary file.  False at its end, where
 * may_end allows that; anything else is an error.  16 took over the checks.
 */
static inline bool
gh_read_temp_file(BufFile *file, void *ptr, size_t size, bool may_end)
{
#if PG_VERSION_NUM >= 160000
	if (may_end)
		return BufFileReadMaybeEOF(file, ptr, size, true) != 0;
	BufFileReadExact(file, ptr, size);
	return true;
#else
	size_t		got = BufFileRead(file, ptr, size);

	if (got == 0 && may_end)
		return false;
	if (got != size)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file: read %zu of %zu bytes", got, size)));
	return true;
#endif
}

/* What a relation's files are called by. */
#if PG_VERSION_NUM >= 160000
#define gh_relation_locator(relation) ((relation)->rd_locator)
#define gh_relation_number(relation) ((relation)->rd_locator.relNumber)
#define gh_relation_tablespace(relation) ((relation)->rd_locator.spcOid)
#else
#define gh_relation_locator(relation) ((relation)->rd_node)
#define gh_relation_number(relation) ((relation)->rd_node.relNode)
#define gh_relation_tablespace(relation) ((relation)->rd_node.spcNode)
#endif

/* The subtransaction in which the relation got the file that it has, in the place of another one. */
#if PG_VERSION_NUM >= 160000
#define gh_new_file_subid(relation) ((relation)->rd_firstRelfilelocatorSubid)
#else
#define gh_new_file_subid(relation) ((relation)->rd_firstRelfilenodeSubid)
#endif

/* 16 made a function of the macro that names a page of the pool. */
#if PG_VERSION_NUM >= 160000
#define gh_init_buffer_tag(tag, relation, block) \
	InitBufferTag(tag, &(relation)->rd_locator, MAIN_FORKNUM, block)
#else
#define gh_init_buffer_tag(tag, relation, block) \
	INIT_BUFFERTAG(*(tag), (relation)->rd_node, MAIN_FORKNUM, block)
#endif

/*
 * What is known of a buffer by its descriptor.  Before 19, a page has an LWLock, which is taken shared without a pin, too; from 19
 * on it is a part of this, and what can be told is whether somebody has it to change the page.
 */
#if PG_VERSION_NUM >= 190000
typedef uint64 GhBufferState;
#define gh_buffer_state(desc) pg_atomic_read_u64(&(desc)->state)
#define gh_unlock_header(desc, state) UnlockBufHdr(desc)
#define gh_try_share_page(desc) true
#define gh_end_sharing(desc) ((void) 0)
#define gh_page_is_locked(state) (((state) & BM_LOCK_VAL_EXCLUSIVE) != 0)
#else
typedef uint32 GhBufferState;
#define gh_buffer_state(desc) pg_atomic_read_u32(&(desc)->state)
#define gh_unlock_header(desc, state) UnlockBufHdr(desc, state)
#define gh_try_share_page(desc) LWLockConditionalAcquire(BufferDescriptorGetContentLock(desc), LW_SHARED)
#define gh_end_sharing(desc) LWLockRelease(BufferDescriptorGetContentLock(desc))
#define gh_page_is_locked(state) false
#endif

/* From 19 on, a scan says for what it is begun, and a plan's node whether its query leaves the relation as it is. */
static inline uint32
gh_scan_flags(ScanState *node)
{
#if PG_VERSION_NUM >= 190000
	return (ScanRelIsReadOnly(node) ? SO_HINT_REL_READ_ONLY : SO_NONE) |
		((node->ps.state->es_instrument & INSTRUMENT_IO) != 0 ? SO_SCAN_INSTRUMENT : SO_NONE);
#else
	(void) node;
	return 0;
#endif
}

#if PG_VERSION_NUM >= 190000
#define gh_scan_is_read_only(scan) (((scan)->rs_flags & SO_HINT_REL_READ_ONLY) != 0)
#else
#define gh_scan_is_read_only(scan) false
#endif

#if PG_VERSION_NUM >= 190000
#define gh_beginscan_with(relation, snapshot, flags) table_beginscan(relation, snapshot, 0, NULL, flags)
#define gh_beginscan_parallel(node, shared) \
	table_beginscan_parallel((node)->ss_currentRelation, shared, gh_scan_flags(node))
#else
#define gh_beginscan_with(relation, snapshot, flags) ((void) (flags), table_beginscan(relation, snapshot, 0, NULL))
#define gh_beginscan_parallel(node, shared) table_beginscan_parallel((node)->ss_currentRelation, shared)
#endif

/* As SeqNext begins a scan; and one for no node. */
#define gh_beginscan(node) \
	gh_beginscan_with((node)->ss_currentRelation, (node)->ps.state->es_snapshot, gh_scan_flags(node))
#define gh_beginscan_of(relation, snapshot) gh_beginscan_with(relation, snapshot, 0)

/* From 19 on, the processes of a parallel scan may be given a part of the relation; they read all of it. */
#if PG_VERSION_NUM >= 190000
#define gh_parallelscan_init(relation, worker, shared) \
	table_block_parallelscan_startblock_init(relation, worker, shared, InvalidBlockNumber, InvalidBlockNumber)
#else
#define gh_parallelscan_init(relation, worker, shared) table_block_parallelscan_startblock_init(relation, worker, shared)
#endif

/*
 * Prunes a page as a scan does that begins with it.  From 19 on that may set the page's bits in the visibility map, of which the
 * page is pinned in *map then, where the query is known to leave the relation as it is.
 */
#if PG_VERSION_NUM >= 190000
#define gh_prune_page(relation, buffer, map, read_only) heap_page_prune_opt(relation, buffer, map, read_only)
#else
#define gh_prune_page(relation, buffer, map, read_only) \
	((void) (map), (void) (read_only), heap_page_prune_opt(relation, buffer))
#endif

/* The slot for a scan node's tuples, which are the relation's; from 19 on it is told that these obey NOT NULL. */
static inline void
gh_init_table_slot(EState *estate, ScanState *node)
{
#if PG_VERSION_NUM >= 190000
	ExecInitScanTupleSlot(estate, node, RelationGetDescr(node->ss_currentRelation),
						  table_slot_callbacks(node->ss_currentRelation), TTS_FLAG_OBEYS_NOT_NULL_CONSTRAINTS);
#else
	ExecInitScanTupleSlot(estate, node, RelationGetDescr(node->ss_currentRelation),
						  table_slot_callbacks(node->ss_currentRelation));
#endif
}

/* Who has made a row type says that it is complete, from 19 on: without, tuples of it cannot be taken apart. */
#if PG_VERSION_NUM >= 190000
#define gh_finish_desc(desc) TupleDescFinalize(desc)
#else
#define gh_finish_desc(desc) ((void) 0)
#endif

/* How long a node has taken, for EXPLAIN, in ms. */
#if PG_VERSION_NUM >= 190000
#define gh_node_ms(instrument) INSTR_TIME_GET_MILLISEC((instrument)->instr.total)
#else
#define gh_node_ms(instrument) ((instrument)->total * 1000.0)
#endif

/* From 19 on, a tranche of locks gets its name for all processes when it is made. */
#if PG_VERSION_NUM >= 190000
#define gh_new_tranche(name) LWLockNewTrancheId(name)
#define gh_name_tranche(tranche, name) ((void) 0)
#else
#define gh_new_tranche(name) LWLockNewTrancheId()
#define gh_name_tranche(tranche, name) LWLockRegisterTranche(tranche, name)
#endif

/* From 16 on, an abbreviation of a time zone may be an error that is returned, and its kind is an argument (datetime.h). */
#define GH_ABBREVIATIONS_HAVE_ERRORS (PG_VERSION_NUM >= 160000)

/* From 17 on, heap scans read pages through read streams, and 18 lets a stream batch. */
#define GH_HAVE_READ_STREAM (PG_VERSION_NUM >= 170000)
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#if PG_VERSION_NUM >= 180000
#define GH_READ_STREAM_FLAGS READ_STREAM_SEQUENTIAL
#elif PG_VERSION_NUM >= 170000
#define GH_READ_STREAM_FLAGS READ_STREAM_SEQUENTIAL
#endif

/* From 17 on, a heap scan goes on behind the page that its own stream has come to. */
#if GH_HAVE_READ_STREAM
#define gh_scan_goes_on_from(scan, block) ((scan)->rs_prefetch_block = (block))
#else
#define gh_scan_goes_on_from(scan, block) ((void) 0)
#endif

/* How many relations there are to tell apart; 18 has the groups as one of them. */
#if PG_VERSION_NUM >= 180000
#define gh_explained_relations(es) ((es)->rtable_size)
#else
#define gh_explained_relations(es) list_length((es)->rtable)
#endif

/* From 17 on, what EXPLAIN does where there is no hook is a function. */
#define GH_HAVE_STANDARD_EXPLAIN (PG_VERSION_NUM >= 170000)

/* 17 did away with old_snapshot_threshold, and with the test that each page needs for it. */
#if PG_VERSION_NUM >= 170000
#define gh_test_old_snapshot(snapshot, relation, page) ((void) 0)
#define gh_old_snapshots_end() false
#else
#define gh_test_old_snapshot(snapshot, relation, page) TestForOldSnapshot(snapshot, relation, page)
#define gh_old_snapshots_end() (old_snapshot_threshold >= 0)
#endif

/* Bytes of an area (dsa.h), or, before 17, what is thought. */
#if PG_VERSION_NUM >= 170000
#define gh_area_size(area, thought) ((uint64) dsa_get_total_size(area))
#else
#define gh_area_size(area, thought) (thought)
#endif

/* From 17 on, an extension's wait events have names of their own. */
#define GH_HAVE_NAMED_WAIT_EVENTS (PG_VERSION_NUM >= 170000)

/* This process's number in the array of processes, and that of any. */
#if PG_VERSION_NUM >= 170000
#define gh_my_procno() ((int) MyProcNumber)
#define gh_procno(proc) ((int) GetNumberFromPGProc(proc))
#else
#define gh_my_procno() (MyProc->pgprocno)
#define gh_procno(proc) ((proc)->pgprocno)
#endif

/* From 17 on, a set of wait events has an owner; this one lives as long as the process. */
#if PG_VERSION_NUM >= 170000
#define gh_create_wait_event_set(n) CreateWaitEventSet(NULL, n)
#else
#define gh_create_wait_event_set(n) CreateWaitEventSet(TopMemoryContext, n)
#endif

/* From 17 on, a shared hash table is told how to copy a key. */
#if PG_VERSION_NUM >= 170000
#define GH_DSHASH_PARAMETERS(key_size, entry_size, tranche) \
	{key_size, entry_size, dshash_memcmp, dshash_memhash, dshash_memcpy, tranche}
#else
#define GH_DSHASH_PARAMETERS(key_size, entry_size, tranche) \
	{key_size, entry_size, dshash_memcmp, dshash_memhash, tranche}
#endif

/*
 * Whether a collation orders text by its bytes.  The header that says so includes ICU's where
 * the server was built with ICU, and a machine with the server's headers need not have these.
 * What stands below differs in nothing that is used here.
 */
#pragma push_macro("USE_ICU")
#undef USE_ICU
#include "utils/pg_locale.h"
#pragma pop_macro("USE_ICU")
#if PG_VERSION_NUM >= 180000
#define gh_collation_is_c(collation) (pg_newlocale_from_collation(collation)->collate_is_c)
#define gh_folds_as_c(collation) (pg_newlocale_from_collation(collation)->ctype_is_c)
#else
#define gh_collation_is_c(collation) lc_collate_is_c(collation)
#define gh_folds_as_c(collation) lc_ctype_is_c(collation)
#endif

/*
 * What an index may be that is a B-tree by another access method's name.  Before 18, ON CONFLICT, foreign
 * keys and constraints of the whole table fail where such an index is unique.  Workers that build an index
 * together open it by themselves: before 18, and where it has assertions, their sort refuses it.
 */
static inline void
gh_limit_index(IndexAmRoutine *routine)
{
#if PG_VERSION_NUM < 180000
	routine->amcanunique = false;
#endif
#if PG_VERSION_NUM >= 170000 && (PG_VERSION_NUM < 180000 || defined(USE_ASSERT_CHECKING))
	routine->amcanbuildparallel = false;
#endif
}

/* From 18 on, the planner asks any access method how many levels an index has. */
#define GH_INDEXES_KNOW_HEIGHT (PG_VERSION_NUM >= 180000)

/* 18 puts the mark of a function that does not return in front. */
#if PG_VERSION_NUM >= 180000
#define GH_NORETURN pg_noreturn
#else
#define GH_NORETURN pg_attribute_noreturn()
#endif

#endif							/* GPUHASH_COMPAT_H */
