/*
 * prewarm_columns.c
 *		gpuhash_prewarm() of a table whose queries the CPU engine does: makes its columns in shared memory before the first scan.
 *		Likewise those that the planner asks for (reload_columns.c), part by part.
 *
 * gpuhash_prewarm(): of all attributes that programs can read, as they read them, but for long texts, which
 * queries seldom compute with and which take most of a table's memory; each stripe's, where reading one costs
 * the others no block (../store/columns_make.c).  What is left out is made when queries ask for it, as ever.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "expr/translate.h"
#include "fragment/prewarm.h"
#include "fragment/stage.h"
#include "service/progress.h"
#include "store/columns.h"
#include "store/shared_copies.h"

/* Bytes of a text, on the average, by ANALYZE: of more, it is left out. */
#define GH_TEXT_WIDTH_MAX 32

/* wanted: a bit for each attribute; 0: those that queries mostly compute with */
static bool
is_wanted(Relation relation, Form_pg_attribute attribute, uint64 wanted)
{
	GhClass		class = attribute->attisdropped ? (GhClass) 0 : gh_class_of_type(attribute->atttypid);

	if (wanted != 0)
		return class != 0 && attribute->attnum <= GH_FACTS_COLUMNS && (wanted >> (attribute->attnum - 1) & 1) != 0;
	return class != 0 &&
		(class != GH_CLASS_TEXT || get_attavgwidth(RelationGetRelid(relation), attribute->attnum) <= GH_TEXT_WIDTH_MAX);
}

/* Columns as programs have them; of a table that has more, the first ones. */
static const GhTranslation *
list_columns(Relation relation, uint64 wanted)
{
	TupleDesc	desc = RelationGetDescr(relation);
	GhTranslation *all = gh_translate_begin(desc, 1);

	for (int i = 0; i < desc->natts && all->ncolumns < GH_STORED_COLUMNS_MAX; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		GhOperand	ignored;

		if (is_wanted(relation, attribute, wanted))
			(void) gh_translate_attribute(all, attribute->attnum, &ignored);
	}
	return all;
}

static void
fill(Relation relation, const GhPages *pages, GhColumnsLoad *load)
{
	const GhTranslation *all = list_columns(relation, load->columns);
	BlockNumber end = (BlockNumber) Min((uint64) load->first + load->most_blocks, pages->nblocks);
	GhColumnsUse *use = gh_columns_open_to_fill(pages, RelationGetDescr(relation)->natts, gh_scan_attributes(relation),
												all->ncolumns, all->columns, CurrentMemoryContext);

	load->pages = 0;
	load->ended = use == NULL || end == pages->nblocks;
	if (use == NULL)
		return;
	load->pages = gh_columns_fill(use, load->first, end);
	/* there is no room for more */
	if (!gh_columns_may_grow(use))
		load->ended = true;
	load->first = end;
	gh_columns_close(use);
}

/* By the active snapshot. */
void
gh_load_columns(Relation relation, GhColumnsLoad *load)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash_prewarm", ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	TableScanDesc scan = gh_begin_scan_aside(relation, GetActiveSnapshot(), 0);
	GhPages		pages;

	gh_progress_begin(context, GH_PROGRESS_PREWARM, RelationGetRelid(relation), -1);
	gh_pages_init(&pages, context);
	gh_pages_of_scan(&pages, scan);
	fill(relation, &pages, load);
	gh_pages_end(&pages);
	table_endscan(scan);
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
}
