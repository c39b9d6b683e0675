/*
 * keys.h
 *		GpuHashKeys: what its files share.
 */
#ifndef GPUHASH_SCAN_KEYS_H
#define GPUHASH_SCAN_KEYS_H

#include "postgres.h"

#include "access/relscan.h"
#include "nodes/execnodes.h"

#include "expr/values.h"
#include "heap/pages.h"
#include "store/index_copies.h"

/* Rows that are found together. */
#define GH_KEYS_FOUND 64

typedef enum KeysPhase
{
	KEYS_START,
	KEYS_COPY,					/* entries of the copy */
	KEYS_HEAP,					/* rows of blocks that it is not right for */
	KEYS_CHILD,					/* rows of the child */
	KEYS_END
} KeysPhase;

/* A column that is read: the table's, where it is in the node's rows, and where the copy has it. */
typedef struct KeysColumn
{
	AttrNumber	attno;
	GhValueType type;
	bool		is_key;			/* else */
	const uint64 *low;
	const uint64 *high;			/* or NULL: the class has none */
	const uint8 *null;			/* or NULL: none is */
	uint64		base;			/* of texts: what low is from */
} KeysColumn;

typedef struct GhKeysNode
{
	CustomScanState css;		/* must be first */
	KeysPhase	phase;
	ExprState  *array;			/* NULL: the keys are rows of the inner child */
	Oid			element;		/* type of the keys */
	MemoryContext context;		/* of one run */
	MemoryContextCallback cleanup;

	int64	   *keys;			/* sorted, each once */
	Size		nkeys;
	Size		key;			/* whose entries come */

	/* the copy */
	GhCopyHold	hold;
	GhCopyBlocks blocks;
	const uint64 *entries;		/* their keys */
	const uint32 *entry_blocks;
	uint64		entry;			/* from which the next ones are looked for */
	bool		all_right;		/* the copy is, for all blocks of the table */
	uint64		found[GH_KEYS_FOUND];	/* entries that are rows */
	int			nfound;
	int			found_next;
	KeysColumn *columns;
	int			ncolumns;
	int			nothers;		/* of them, but for the key */

	/* the table */
	TableScanDesc scan;
	GhPages		pages;
	TupleTableSlot *tuple;
	AttrNumber	key_attno;
	int			key_width;
	AttrNumber	max_attno;
	int			next;			/* of the page's tuples */

	/* EXPLAIN */
	bool		ran;
	const char *why_child;		/* the rows are the child's: why */
	uint64		looked_up;		/* keys */
	uint64		copy_blocks;
	uint64		heap_blocks;
	uint64		heap_rows;
} GhKeysNode;

/* ---- keys_copy.c: the keys, and the copy ---- */

extern void gh_keys_read_array(GhKeysNode *node);
extern bool gh_keys_read_rows(GhKeysNode *node);
extern int64 gh_keys_number(Datum value, int width);
extern bool gh_keys_have(const GhKeysNode *node, int64 value);
extern const char *gh_keys_open_copy(GhKeysNode *node, Relation index);
extern void gh_keys_find_from_first(GhKeysNode *node);
extern bool gh_keys_next_entry(GhKeysNode *node, TupleTableSlot *slot);

/* ---- keys.c: the scan of the table ---- */

extern void gh_keys_begin_scan(GhKeysNode *node);

#endif							/* GPUHASH_SCAN_KEYS_H */
