/*
 * joined.c
 *		A chain of hash joins over a scan, whose rows a fragment joins by itself.
 *
 * Where the child is a GpuHashJoin whose outer side is a scan, or another such join, the rows that it joins
 * need not be put together: the scan's pages are read once, and what is on them goes, by the steps of one
 * pipeline, from one join's table to the next and into the sink (enter.c).  A row that the pipeline hands
 * back is joined by itself (joined_row.c).
 *
 * The joins stay nodes of the plan; they read their inner sides and make their tables themselves
 * (../join/probed.c). Where one of them cannot be probed so (it has outgrown memory, say), it returns its
 * rows as ever, and these are what comes in, in place of those of the scan, for the joins above it.
 *
 * Conditions on the pair of an outer row and its match are part of the program, in the probe's step; those
 * that a joined row must pass have a step of their own behind it.
 *
 * All of them return their rows where the last one is a right or full join, whose inner rows without a match
 * come out, too: but for a device, which marks those that have a match (device_joins.c).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/joined.h"
#include "expr/translate.h"

/* --------------------------------------------------------------- set-up */

/*
 * The joins of the chain, the lowest last, and *scan is below them; NIL: it is not one that can be probed.
 * owner: the fragment whose chain it is, which may have parts below it; NULL: it is an inner side's.
 */
static List *
find_joins(PlanState *ps, GhFragment *owner, int eflags, PlanState **scan)
{
	List	   *joins = NIL;
	GhLowerJoin *lower;

	while ((lower = gh_lower_join(ps)) != NULL)
	{
		/* only above all others: what it fills goes through no other join */
		if (!lower->is_plain || lower->output_columns == NULL || (gh_lower_fills_inner(lower) && joins != NIL))
			return NIL;
		joins = lappend(joins, lower);
		ps = lower->children[GH_OUTER];
	}
	if (joins == NIL)
		return NIL;
	*scan = ps;
	/* the lowest join would read it, too */
	if (((GhLowerJoin *) llast(joins))->pages[GH_OUTER] != NULL)
		return joins;
	if (owner == NULL || !gh_parts_init(owner, ps, eflags))
		return NIL;
	*scan = owner->parts[0].scan;
	return joins;
}

static GhColumnSource find_source(const GhJoined *joined, int level, int resno);

/* Where a column of the scan tuple, from 0, of the join at this level comes from. */
GhColumnSource
gh_joined_scan_source(const GhJoined *joined, int number, int column)
{
	const GhLowerColumn *from = &joined->levels[number].lower->columns[column];

	if (from->side == GH_OUTER)
		return find_source(joined, number - 1, from->column);
	return (GhColumnSource) {.level = number,.column = from->column};
}

/* Where the output column resno of the join at this level, or, -1, of the scan, comes from. */
static GhColumnSource
find_source(const GhJoined *joined, int level, int resno)
{
	GhColumnSource source = {.level = -1};

	if (level > joined->base)
		return gh_joined_scan_source(joined, level, joined->levels[level].lower->output_columns[resno - 1]);
	source.column = level < 0 ? gh_relation_attno(joined->scan, resno) : resno;
	return source;
}

static void
init_level(GhJoinLevel *level)
{
	const GhKeySide *keys = level->lower->keys[GH_OUTER];
	int			nkept = level->lower->nkept;

	level->nkeys = keys->ncolumns;
	level->keys = palloc0(sizeof(GhColumnSource) * level->nkeys);
	level->key_operands = palloc0(sizeof(GhOperand) * level->nkeys);
	level->key_vectors = palloc0(sizeof(uint16) * level->nkeys);
	level->columns = palloc0(sizeof(GhJoinedColumn) * Max(nkept, 1));
	level->place_vector = -1;
}

/* The rows that come in. */
static TupleDesc
base_desc(const GhJoined *joined)
{
	return joined->base < 0 ? joined->scan_desc :
		ExecGetResultType(joined->levels[joined->base].lower->ps);
}

/* In programs, whose columns these are. */
Index
gh_joined_varno(const GhJoined *joined)
{
	return joined->base < 0 ? ((Scan *) joined->scan->plan)->scanrelid : INDEX_VAR;
}

/*
 * From now on the rows that come in are those of the scan, or, where base is not -1, of that join; the joins
 * above it are probed here.  A program that there is has become one of other rows, if that changes.
 */
void
gh_joined_arrange(GhJoined *joined, int base)
{
	int			attno;

	if (joined->base == base)
		return;
	joined->base = base;
	attno = base_desc(joined)->natts + 1;
	for (int i = base + 1; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];

		for (int k = 0; k < level->nkeys; k++)
			level->keys[k] = find_source(joined, i - 1, level->lower->keys[GH_OUTER]->columns[k].attno);
		level->first_attno = attno;
		attno += level->lower->nkept + 1;
	}
	for (int i = 0; i < joined->ncolumns; i++)
		joined->sources[i] = find_source(joined, joined->nlevels - 1, i + 1);
	gh_joined_forget_columns(joined);
}

/* A join's conditions, over columns of its scan tuple. */
typedef struct ConditionContext
{
	GhJoined   *joined;
	int			number;			/* of the join */
	bool		pair;			/* on the pair; else on the joined row */
} ConditionContext;

static Node *
condition_mutator(Node *expr, ConditionContext *context)
{
	const Var  *var = (const Var *) expr;
	GhColumnSource source;

	if (expr == NULL)
		return NULL;
	if (!IsA(expr, Var) || var->varno != INDEX_VAR)
		return expression_tree_mutator(expr, condition_mutator, (void *) context);
	source = gh_joined_scan_source(context->joined, context->number, var->varattno - 1);
	return (Node *) makeVar(gh_joined_varno(context->joined), gh_joined_attno(context->joined, source), var->vartype,
							var->vartypmod, var->varcollid, 0);
}

/* Expressions that a join evaluates, over the columns of programs. */
List *
gh_joined_conditions(GhJoined *joined, int number, List *exprs)
{
	ConditionContext context = {.joined = joined,.number = number};

	return (List *) condition_mutator((Node *) exprs, &context);
}

/* Whether rows of the join have no inner side: there is none to be read but where a match is looked for. */
static bool
has_no_inner_side(const GhLowerJoin *lower)
{
	return lower->jointype == JOIN_SEMI || lower->jointype == JOIN_ANTI;
}

/* A column is read of what has come out of its join. */
static void
read_source(GhJoined *joined, GhColumnSource source)
{
	if (source.level >= 0 && has_no_inner_side(joined->levels[source.level].lower))
		joined->levels[source.level].has_no_columns = true;
}

static bool
read_condition_walker(Node *expr, ConditionContext *context)
{
	GhColumnSource source;

	if (expr == NULL)
		return false;
	if (!IsA(expr, Var) || ((Var *) expr)->varno != INDEX_VAR)
		return expression_tree_walker(expr, read_condition_walker, (void *) context);
	source = gh_joined_scan_source(context->joined, context->number, ((Var *) expr)->varattno - 1);
	if (!context->pair || source.level != context->number)
		read_source(context->joined, source);
	return false;
}

/* Finds the semi and anti joins of whose inner sides columns are read behind them, as NULLs. */
static void
find_missing_columns(GhJoined *joined)
{
	for (int i = 0; i < joined->ncolumns; i++)
		read_source(joined, joined->sources[i]);
	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];
		ConditionContext context = {.joined = joined,.number = i,.pair = true};

		for (int k = 0; k < level->nkeys; k++)
			read_source(joined, level->keys[k]);
		(void) read_condition_walker((Node *) level->lower->join_quals, &context);
		context.pair = false;
		(void) read_condition_walker((Node *) level->lower->ps->plan->qual, &context);
	}
}

/*
 * Of a join's kept inner columns, those that a pipeline reads; NULL: all.  Rows that are collected are joined
 * here only one by one, and read keys alone.
 */
static bool *
read_columns(const GhFragment *fragment, int number)
{
	const GhJoined *joined = fragment->joined;
	bool	   *read;

	if (!fragment->methods->for_device)
		return NULL;
	read = palloc0(sizeof(bool) * Max(joined->levels[number].lower->nkept, 1));
	for (int k = 0; joined->levels[number].lower->is_coded && k < joined->levels[number].nkeys; k++)
		read[gh_lower_kept_key(joined->levels[number].lower, k)] = true;
	for (int i = number + 1; i < joined->nlevels; i++)
		for (int k = 0; k < joined->levels[i].nkeys; k++)
			if (joined->levels[i].keys[k].level == number)
				read[joined->levels[i].keys[k].column] = true;
	return read;
}

/*
 * Whether a row that was handed back can be joined by itself (joined_row.c): all columns that it may take
 * from one join to the next are values of a pipeline.
 */
static bool
rows_can_be_joined(const GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;
	int			nvalues = fragment->ncolumns;
	int			nkept = 0;

	for (int i = 0; i < joined->nlevels; i++)
	{
		nkept += joined->levels[i].lower->nkept;
		if (gh_lower_has_conditions(joined->levels[i].lower))
			nvalues = Max(nvalues, nkept);
	}
	return nvalues <= GH_VALUES_MAX;
}

/* The lowest of the joins, from the last one down, that one pipeline has probes and steps for. */
int
gh_joined_first_within_limits(const GhJoined *joined)
{
	/* the scan's conditions, and what comes behind the joins */
	int			nsteps = 2;
	int			first = joined->nlevels;

	while (first > 0 && joined->nlevels - first < GH_PROBES_MAX)
	{
		nsteps += 1 + (joined->levels[first - 1].lower->ps->plan->qual != NIL) + joined->levels[first - 1].lower->is_coded;
		if (nsteps > GH_STEPS_MAX)
			break;
		first--;
	}
	return first;
}

/*
 * A join that is not asked for a table that can be probed will have to return its rows, and those below, too.
 */
static void
offer_to_probe(GhFragment *fragment)
{
	GhJoined   *joined = fragment->joined;

	if (joined->fills_inner || !rows_can_be_joined(fragment))
		return;
	for (int i = gh_joined_first_within_limits(joined); i < joined->nlevels; i++)
		if (!joined->levels[i].has_no_columns)
			(void) joined->levels[i].lower->methods->offer(joined->levels[i].lower, read_columns(fragment, i));
}

static GhJoined *find_inner_chain(const GhLowerJoin *lower);

/* Whether programs can have all columns. */
static bool
has_too_many_columns(const GhJoined *joined)
{
	int			natts = joined->scan_desc->natts;

	for (int i = 0; i < joined->nlevels; i++)
		natts += joined->levels[i].lower->nkept + 1;
	return natts > GH_COLUMN_MAX;
}

/*
 * The chain of joins at the top of which is a node, and of whose columns so many are read; NULL: it is none.
 * Where inner sides are such chains, too, these go with it.
 */
static GhJoined *
find_chain(PlanState *top, int ncolumns, GhFragment *owner, int eflags)
{
	PlanState  *scan;
	List	   *joins = find_joins(top, owner, eflags, &scan);
	GhJoined   *joined;

	if (joins == NIL)
		return NULL;
	joined = palloc0(sizeof(GhJoined));
	joined->scan = scan;
	joined->scan_desc = owner != NULL && owner->parts != NULL ? owner->parts_desc :
		RelationGetDescr(((ScanState *) scan)->ss_currentRelation);
	joined->ncolumns = ncolumns;
	joined->nlevels = list_length(joins);
	joined->levels = palloc0(sizeof(GhJoinLevel) * joined->nlevels);
	for (int i = 0; i < joined->nlevels; i++)
	{
		joined->levels[i].lower = list_nth(joins, joined->nlevels - 1 - i);
		init_level(&joined->levels[i]);
	}
	if (has_too_many_columns(joined))
		return NULL;
	joined->fills_inner = gh_lower_fills_inner(linitial(joins));
	joined->sources = palloc(sizeof(GhColumnSource) * Max(ncolumns, 1));
	joined->base = joined->nlevels;
	gh_joined_arrange(joined, -1);
	find_missing_columns(joined);
	for (int i = 0; i < joined->nlevels; i++)
	{
		GhJoined   *inner = joined->levels[i].inner = find_inner_chain(joined->levels[i].lower);

		if (inner == NULL)
			continue;
		inner->within = joined;
		inner->within_level = i;
	}
	return joined;
}

/* Likewise of the inner side of a join. */
static GhJoined *
find_inner_chain(const GhLowerJoin *lower)
{
	PlanState  *side = lower->children[GH_INNER];
	GhJoined   *joined = find_chain(side, ExecGetResultType(side)->natts, NULL, 0);

	/* rows of a right or full join are not complete before all are */
	return joined == NULL || joined->fills_inner ? NULL : joined;
}

/* Makes node->joined where the child is such a chain. */
void
gh_joined_init(GhFragment *fragment, int eflags)
{
	fragment->joined = find_chain(fragment->child, fragment->ncolumns, fragment, eflags);
	fragment->scan = NULL;
	if (fragment->joined == NULL)
	{
		gh_parts_drop(fragment);
		return;
	}
	fragment->scan = fragment->joined->scan;
	offer_to_probe(fragment);
}

/* ------------------------------------------------------ columns in programs */

/*
 * In programs, the joins' inner columns are numbered as if they were more columns of the rows that come in,
 * those of the scan's relation; behind those of a join comes the place of the inner tuple (GH_LOAD_TID), an
 * int8.
 */
int
gh_joined_attno(const GhJoined *joined, GhColumnSource source)
{
	return source.level < 0 ? source.column : joined->levels[source.level].first_attno + source.column;
}

/* Likewise the place of the inner tuple of a join. */
int
gh_joined_place_attno(const GhJoined *joined, int number)
{
	const GhJoinLevel *level = &joined->levels[number];

	return level->first_attno + level->lower->nkept;
}

/* The columns of what comes in, and those. */
TupleDesc
gh_joined_desc(const GhJoined *joined)
{
	TupleDesc	base = base_desc(joined);
	TupleDesc	desc = CreateTemplateTupleDesc(gh_joined_place_attno(joined, joined->nlevels - 1));

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
		TupleDescInitEntry(desc, gh_joined_place_attno(joined, i), NULL, INT8OID, -1, 0);
	}
	gh_joined_note_shown(joined, desc);
	gh_finish_desc(desc);
	return desc;
}

/* The join whose inner side has a column; that below those that are probed: it is one of what comes in. */
int
gh_joined_level_of(const GhJoined *joined, int attno)
{
	int			i = joined->nlevels - 1;

	while (i > joined->base && joined->levels[i].first_attno > attno)
		i--;
	return i;
}

/* A program's column: if it is one of those, a join is to fill the vector. */
static void
add_column(GhJoined *joined, const GhColumn *column, int vector)
{
	int			i = gh_joined_level_of(joined, column->attribute);
	GhJoinLevel *level;
	GhJoinedColumn *added;

	if (i == joined->base)
		return;
	level = &joined->levels[i];
	if (column->attribute == gh_joined_place_attno(joined, i))
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

/*
 * A join's key, of which the key columns are there: of one that is coded, the code takes the place of the
 * first.
 */
bool
gh_lower_translate_key(const GhLowerJoin *lower, GhTranslation *translation, GhOperand *keys)
{
	GhOperand	code;

	if (!lower->is_coded)
		return true;
	if (!gh_translate_key_code(translation, lower->key_clauses, keys, &code))
		return false;
	keys[0] = code;
	return true;
}

/* Where a program that was made has the joins' keys. */
void
gh_joined_take_keys(GhJoined *joined, const GhTranslation *translation)
{
	for (int i = joined->base + 1; i < joined->nlevels; i++)
		for (int k = 0; k < gh_lower_nparts(joined->levels[i].lower); k++)
			joined->levels[i].key_vectors[k] = gh_final_vector(translation, &joined->levels[i].key_operands[k]);
}

void
gh_joined_take_columns(GhJoined *joined, const GhProgram *program)
{
	for (uint32 v = 0; v < program->ncolumns; v++)
		add_column(joined, &gh_program_columns(program)[v], v);
}

void
gh_joined_forget_columns(GhJoined *joined)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		joined->levels[i].ncolumns = 0;
		joined->levels[i].place_vector = -1;
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
gh_joined_natts(const GhJoined *joined)
{
	return base_desc(joined)->natts;
}

/* The outer side's key of a join, of vectors of a program. */
static GhKeyPart *
key_parts(const GhJoinLevel *level, const uint16 *vectors)
{
	GhKeyPart *parts = palloc0(sizeof(GhKeyPart) * level->nkeys);

	for (int k = 0; k < gh_lower_nparts(level->lower); k++)
	{
		parts[k].vector = vectors[k];
		parts[k].bits = level->lower->key_bits != 0 && !level->lower->is_coded ? level->lower->key_bits :
			gh_lower_part_bits(level->lower, GH_OUTER, k);
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
	probe->nparts = gh_lower_nparts(level->lower);
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

/* So many rows have come behind each step of a pipeline of the node's program. */
void
gh_joined_count(GhJoined *joined, const uint64 *passed)
{
	for (int i = joined->base + 1; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];

		level->rows += passed[level->last_step];
		InstrCountFiltered1(level->lower->ps, passed[level->step] - passed[level->last_step]);
	}
}
