/*
 * joined.c
 *		A chain of hash joins over a scan, whose rows a fragment joins by itself.
 *
 * Where the child is a GpuHashJoin whose outer side is a scan, or another such join, the rows that
 * it joins need not be put together: the scan's pages are read once, and what is on them goes, by the steps of one
 * pipeline, from one join's table to the next and into the sink (enter.c).  A row that the pipeline hands back is
 * joined by itself (joined_row.c).
 *
 * The joins stay nodes of the plan; they read their inner sides and make their tables themselves (../join/probed.c).
 * Where one of them cannot be probed so (it has outgrown memory, say), it returns its rows as ever, and these are
 * what comes in, in place of those of the scan, for the joins above it.
 *
 * All of them return their rows where the last one is a right or full join, whose inner rows without a match come
 * out, too, or has conditions beside its keys: but for a device, which marks those that have a match
 * (device_joins.c), and whose programs have the conditions.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "fragment/joined.h"
#include "expr/translate.h"

/* --------------------------------------------------------------- set-up */

/* What a row must pass to come out, beside the keys; nothing but that is evaluated for it. */
static List *
conditions_of(const GhLowerJoin *lower)
{
	return list_concat_copy(lower->join_quals, lower->ps->plan->qual);
}

/* Whether just a device can do the join, and rows of it go through no other one. */
static bool
is_for_device(const GhLowerJoin *lower)
{
	return gh_lower_fills_inner(lower) || conditions_of(lower) != NIL;
}

/* The joins of the chain, the lowest last; NIL: it is not one that can be probed. */
static List *
find_joins(GhFragment *fragment, EState *estate, int eflags)
{
	List	   *joins = NIL;
	PlanState  *ps = fragment->child;
	GhLowerJoin *lower;

	while ((lower = gh_lower_join(ps)) != NULL)
	{
		/* only above all others: what it fills goes through no other join, and what it drops came out of this one */
		if (!lower->is_plain || lower->output_columns == NULL || (is_for_device(lower) && joins != NIL))
			return NIL;
		joins = lappend(joins, lower);
		ps = lower->children[GH_OUTER];
	}
	/* the lowest join would read it, too */
	if (joins == NIL || ((GhLowerJoin *) llast(joins))->pages[GH_OUTER] == NULL)
		return NIL;
	fragment->scan = ps;
	return joins;
}

static GhColumnSource find_source(GhFragment *fragment, const GhJoined *joined, int level, int resno);

/* Where a column of the scan tuple, from 0, of the join at this level comes from. */
static GhColumnSource
find_scan_source(GhFragment *fragment, const GhJoined *joined, int level, int column)
{
	const GhLowerColumn *from = &joined->levels[level].lower->columns[column];

	if (from->side == GH_OUTER)
		return find_source(fragment, joined, level - 1, from->column);
	return (GhColumnSource) {.level = level,.column = from->column};
}

/* Where the output column resno of the join at this level, or, -1, of the scan, comes from. */
static GhColumnSource
find_source(GhFragment *fragment, const GhJoined *joined, int level, int resno)
{
	GhColumnSource source = {.level = -1};

	if (level > joined->base)
		return find_scan_source(fragment, joined, level, joined->levels[level].lower->output_columns[resno - 1]);
	source.column = level < 0 ? gh_relation_attno(fragment->scan, resno) : resno;
	return source;
}

static void
init_level(GhJoinLevel *level)
{
	const GhKeySide *keys = level->lower->keys[GH_OUTER];
	int			nkept = level->lower->nkept;

	level->nkeys = keys->ncolumns;
	level->keys = palloc0(sizeof(GhColumnSource) * level->nkeys);
	level->key_vectors = palloc0(sizeof(uint16) * level->nkeys);
	level->columns = palloc0(sizeof(GhJoinedColumn) * Max(nkept, 1));
	level->place_vector = -1;
}

/* The rows that come in. */
static TupleDesc
base_desc(const GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;

	return joined->base < 0 ? RelationGetDescr(((ScanState *) fragment->scan)->ss_currentRelation) :
		ExecGetResultType(joined->levels[joined->base].lower->ps);
}

/* In programs, whose columns these are. */
Index
gh_joined_varno(const GhFragment *fragment)
{
	return fragment->joined->base < 0 ? ((Scan *) fragment->scan->plan)->scanrelid : INDEX_VAR;
}

/*
 * From now on the rows that come in are those of the scan, or, where base is not -1, of that join; the joins above it are
 * probed here.  A program that there is has become one of other rows, if that changes.
 */
void
gh_joined_arrange(GhFragment *fragment, int base)
{
	GhJoined   *joined = fragment->joined;
	int			attno;

	if (joined->base == base)
		return;
	joined->base = base;
	attno = base_desc(fragment)->natts + 1;
	for (int i = base + 1; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];

		for (int k = 0; k < level->nkeys; k++)
			level->keys[k] = find_source(fragment, joined, i - 1, level->lower->keys[GH_OUTER]->columns[k].attno);
		level->first_attno = attno;
		attno += level->lower->nkept + 1;
	}
	for (int i = 0; i < fragment->ncolumns; i++)
		joined->sources[i] = find_source(fragment, joined, joined->nlevels - 1, i + 1);
	gh_joined_forget_columns(fragment);
}

/* Of an expression that the last join evaluates, the columns as those of programs. */
static Node *
condition_mutator(Node *expr, GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;
	const Var  *var = (const Var *) expr;
	GhColumnSource source;

	if (expr == NULL)
		return NULL;
	if (!IsA(expr, Var) || var->varno != INDEX_VAR)
		return expression_tree_mutator(expr, condition_mutator, (void *) fragment);
	source = find_scan_source(fragment, joined, joined->nlevels - 1, var->varattno - 1);
	return (Node *) makeVar(gh_joined_varno(fragment), gh_joined_attno(fragment, source), var->vartype, var->vartypmod,
							var->varcollid, 0);
}

/*
 * Of a join's kept inner columns, those that a pipeline reads; NULL: all.  Rows that are collected are joined here only one by
 * one, and read keys alone.
 */
static bool *
read_columns(const GhFragment *fragment, int number)
{
	const GhJoined *joined = fragment->joined;
	bool	   *read;

	if (!fragment->methods->for_device)
		return NULL;
	read = palloc0(sizeof(bool) * Max(joined->levels[number].lower->nkept, 1));
	for (int i = number + 1; i < joined->nlevels; i++)
		for (int k = 0; k < joined->levels[i].nkeys; k++)
			if (joined->levels[i].keys[k].level == number)
				read[joined->levels[i].keys[k].column] = true;
	return read;
}

/* Makes node->joined where the child is such a chain. */
void
gh_joined_init(GhFragment *fragment, EState *estate, int eflags)
{
	List	   *joins = find_joins(fragment, estate, eflags);
	GhJoined   *joined;
	int			attno;

	if (joins == NIL)
	{
		fragment->scan = NULL;
		return;
	}
	attno = RelationGetDescr(((ScanState *) fragment->scan)->ss_currentRelation)->natts;
	joined = palloc0(sizeof(GhJoined));
	joined->nlevels = list_length(joins);
	joined->levels = palloc0(sizeof(GhJoinLevel) * joined->nlevels);
	for (int i = 0; i < joined->nlevels; i++)
		joined->levels[i].lower = list_nth(joins, joined->nlevels - 1 - i);
	for (int i = 0; i < joined->nlevels; i++)
	{
		init_level(&joined->levels[i]);
		attno += joined->levels[i].lower->nkept + 1;
	}
	if (attno > GH_COLUMN_MAX)
	{
		fragment->scan = NULL;
		return;
	}
	joined->fills_inner = gh_lower_fills_inner(linitial(joins));
	joined->for_device = is_for_device(linitial(joins));
	joined->sources = palloc(sizeof(GhColumnSource) * Max(fragment->ncolumns, 1));
	fragment->joined = joined;
	joined->base = joined->nlevels;
	gh_joined_arrange(fragment, -1);
	/* a join that may not be asked for a table that can be probed will have to return its rows */
	if (joined->nlevels <= GH_PROBES_MAX && fragment->ncolumns <= GH_VALUES_MAX && !joined->for_device)
		for (int i = 0; i < joined->nlevels; i++)
			(void) joined->levels[i].lower->methods->offer(joined->levels[i].lower, read_columns(fragment, i));
	joined->conditions = (List *) condition_mutator((Node *) conditions_of(linitial(joins)), fragment);
}

/* ------------------------------------------------------ columns in programs */

/*
 * In programs, the joins' inner columns are numbered as if they were more columns of the rows that come in, those of the
 * scan's relation; behind those of a join comes the place of the inner tuple (GH_LOAD_TID), an int8.
 */
int
gh_joined_attno(GhFragment *fragment, GhColumnSource source)
{
	return source.level < 0 ? source.column : fragment->joined->levels[source.level].first_attno + source.column;
}

/* Likewise the place of the inner tuple of a join. */
int
gh_joined_place_attno(const GhFragment *fragment, int number)
{
	const GhJoinLevel *level = &fragment->joined->levels[number];

	return level->first_attno + level->lower->nkept;
}

/* The columns of what comes in, and those. */
TupleDesc
gh_joined_desc(GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;
	TupleDesc	base = base_desc(fragment);
	TupleDesc	desc = CreateTemplateTupleDesc(gh_joined_place_attno(fragment, joined->nlevels - 1));

	for (int i = 1; i <= base->natts; i++)
	{
		TupleDescCopyEntry(desc, i, base, i);
		/* this is not copied */
		TupleDescAttr(desc, i - 1)->atthasmissing = TupleDescAttr(base, i - 1)->atthasmissing;
	}
	for (int i = joined->base + 1; i < joined->nlevels; i++)
	{
		const GhLowerJoin *lower = joined->levels[i].lower;

		for (int c = 0; c < lower->nkept; c++)
			TupleDescCopyEntry(desc, joined->levels[i].first_attno + c, gh_lower_inner_desc(lower),
							   lower->kept_attnos[c]);
		TupleDescInitEntry(desc, gh_joined_place_attno(fragment, i), NULL, INT8OID, -1, 0);
	}
	return desc;
}

/* The join whose inner side has a column; that below those that are probed: it is one of what comes in. */
int
gh_joined_level_of(const GhFragment *fragment, int attno)
{
	const GhJoined *joined = fragment->joined;
	int			i = joined->nlevels - 1;

	while (i > joined->base && joined->levels[i].first_attno > attno)
		i--;
	return i;
}

/* A program's column: if it is one of those, a join is to fill the vector. */
static void
add_column(GhFragment *fragment, const GhColumn *column, int vector)
{
	int			i = gh_joined_level_of(fragment, column->attribute);
	GhJoinLevel *level;
	GhJoinedColumn *added;

	if (i == fragment->joined->base)
		return;
	level = &fragment->joined->levels[i];
	if (column->attribute == gh_joined_place_attno(fragment, i))
	{
		level->place_vector = vector;
		return;
	}
	added = &level->columns[level->ncolumns++];
	added->column = column->attribute - level->first_attno;
	added->vector = vector;
	added->load = column->load;
	added->scale = column->scale;
}

void
gh_joined_take_columns(GhFragment *fragment, const GhProgram *program)
{
	for (uint32 v = 0; v < program->ncolumns; v++)
		add_column(fragment, &gh_program_columns(program)[v], v);
}

void
gh_joined_forget_columns(GhFragment *fragment)
{
	for (int i = 0; i < fragment->joined->nlevels; i++)
	{
		fragment->joined->levels[i].ncolumns = 0;
		fragment->joined->levels[i].place_vector = -1;
	}
}

/* --------------------------------------------------------------- probes */

/* marked: matches are marked, and the table's rows without a mark are asked for by themselves. */
static GhProbeKind
probe_kind(JoinType type, bool marked)
{
	if (marked && type == JOIN_RIGHT)
		return GH_PROBE_INNER;
	if (marked && type == JOIN_FULL)
		return GH_PROBE_LEFT;
	switch (type)
	{
		case JOIN_INNER:
			return GH_PROBE_INNER;
		case JOIN_LEFT:
			return GH_PROBE_LEFT;
		case JOIN_SEMI:
			return GH_PROBE_SEMI;
		case JOIN_ANTI:
			return GH_PROBE_ANTI;
		default:
			elog(ERROR, "join type %d is not done by probes", (int) type);
	}
}

/* Joins that are probed here. */
int
gh_joined_nprobes(const GhFragment *fragment)
{
	return fragment->joined == NULL ? 0 : fragment->joined->nlevels - 1 - fragment->joined->base;
}

/* Columns of what comes in. */
int
gh_joined_natts(const GhFragment *fragment)
{
	return base_desc(fragment)->natts;
}

/* The outer side's key of a join, of vectors of a program. */
static GhScanPart *
key_parts(const GhJoinLevel *level, const uint16 *vectors)
{
	GhScanPart *parts = palloc0(sizeof(GhScanPart) * level->nkeys);

	for (int k = 0; k < level->nkeys; k++)
	{
		parts[k].vector = vectors[k];
		parts[k].bits = level->lower->keys[GH_OUTER]->columns[k].bits;
	}
	return parts;
}

/* A probe of a join's table, but for what it fills.  marks: of a right or full join, else NULL. */
void
gh_joined_probe(const GhJoinLevel *level, const uint16 *key_vectors, GhTable *table, GhMarks *marks, GhProbe *probe)
{
	memset(probe, 0, sizeof(*probe));
	probe->table = table;
	probe->marks = marks;
	probe->kind = probe_kind(level->lower->jointype, marks != NULL);
	probe->nparts = level->nkeys;
	probe->parts = key_parts(level, key_vectors);
}

/* The probes of a pipeline of the node's program, in the current context. */
GhProbe *
gh_joined_probes(const GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;
	int			nprobes = gh_joined_nprobes(fragment);
	GhProbe    *probes = palloc(sizeof(GhProbe) * Max(nprobes, 1));

	for (int p = 0; p < nprobes; p++)
	{
		const GhJoinLevel *level = &joined->levels[joined->base + 1 + p];
		GhProbeFill *fills = palloc0(sizeof(GhProbeFill) * Max(level->ncolumns, 1));

		for (int c = 0; c < level->ncolumns; c++)
		{
			fills[c].column = level->columns[c].vector;
			fills[c].kept = level->columns[c].column;
		}
		gh_joined_probe(level, level->key_vectors, level->lower->table, NULL, &probes[p]);
		probes[p].nfills = level->ncolumns;
		probes[p].fills = fills;
	}
	return probes;
}

/* So many rows have come behind each of the probes. */
void
gh_joined_count(GhFragment *fragment, const uint64 *passed)
{
	GhJoined   *joined = fragment->joined;

	for (int i = joined->base + 1; i < joined->nlevels; i++)
		joined->levels[i].rows += passed[i - joined->base - 1];
}
