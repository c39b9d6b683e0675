/*
 * joined.c
 *		Rows of a chain of hash joins over a scan, as the aggregate reads them.
 *
 * Where the child is a GpuHashJoin whose outer side is a scan, or another such join, the rows that
 * it joins need not be put together: the scan's pages are read once, and a page's rows go, as
 * vectors, from one join's table to the next.  Each drops those that have no match, and adds
 * columns of its inner side: from the table's values where the join carries them there, else
 * from the stored rows.  A row with several matches is handed back.
 *
 * The joins stay nodes of the plan; they read their inner sides and make their tables themselves.
 * Where one of them cannot be probed so (it has outgrown memory, its table is on a device, or many
 * of its keys have several rows), all of them return their rows as ever.  So they do where the last one is
 * a right or full join, whose inner rows without a match come out, too, or has conditions beside its keys: but for a
 * device, which marks those that have a match (device_joins.c), and whose programs have the conditions.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "aggregate/joined.h"
#include "expr/translate.h"
#include "service/placement.h"

/* How many rows ahead of their use stored inner rows are fetched into cache. */
#define GH_PREFETCH_ROWS 12

/* --------------------------------------------------------------- set-up */

/* Whether rows of an inner side come out that have no match. */
static bool
fills_inner(const GhJoinState *js)
{
	return js->jointype == JOIN_RIGHT || js->jointype == JOIN_FULL;
}

/* What a row must pass to come out, beside the keys; nothing but that is evaluated for it. */
static List *
conditions_of(const GhJoinState *js)
{
	return list_concat_copy(js->join_quals, js->css.ss.ps.plan->qual);
}

/* Whether just a device can do the join, and rows of it go through no other one. */
static bool
is_for_device(const GhJoinState *js)
{
	return fills_inner(js) || conditions_of(js) != NIL;
}

/* The joins of the chain, the lowest last; NIL: it is not one that can be probed. */
static List *
find_joins(GhAggregateNode *node, EState *estate, int eflags)
{
	List	   *joins = NIL;
	PlanState  *ps = node->child;
	GhJoinState *js;

	while ((js = gh_as_join(ps)) != NULL)
	{
		/* only above all others: what it fills goes through no other join, and what it drops came out of this one */
		if (!js->is_plain || js->output_columns == NULL || (is_for_device(js) && joins != NIL))
			return NIL;
		joins = lappend(joins, js);
		ps = gh_child(js, GH_OUTER);
	}
	/* the lowest join would read it, too */
	if (joins == NIL || ((GhJoinState *) llast(joins))->source[GH_OUTER] == NULL)
		return NIL;
	node->scan = ps;
	return joins;
}

static GhColumnSource find_source(GhAggregateNode *node, const GhJoined *joined, int level, int resno);

/* Where a column of the scan tuple, from 0, of the join at this level comes from. */
static GhColumnSource
find_scan_source(GhAggregateNode *node, const GhJoined *joined, int level, int column)
{
	GhColumnSource source = {.level = level};
	const GhJoinState *js = joined->levels[level].js;

	if (column >= js->nkept[GH_OUTER] + js->nkept[GH_INNER])
		column = js->copy_sources[column - js->nkept[GH_OUTER] - js->nkept[GH_INNER]];
	if (column < js->nkept[GH_OUTER])
		return find_source(node, joined, level - 1, js->scan_attnos[column]);
	source.column = column - js->nkept[GH_OUTER];
	return source;
}

/* Where the output column resno of the join at this level, or, -1, of the scan, comes from. */
static GhColumnSource
find_source(GhAggregateNode *node, const GhJoined *joined, int level, int resno)
{
	GhColumnSource source = {.level = -1};

	if (level >= 0)
		return find_scan_source(node, joined, level, joined->levels[level].js->output_columns[resno - 1]);
	source.column = gh_relation_attno(node->scan, resno);
	return source;
}

static void
init_level(GhAggregateNode *node, GhJoined *joined, int number)
{
	GhJoinLevel *level = &joined->levels[number];
	const GhKeySide *keys = &level->js->keys[GH_OUTER];
	int			nkept = level->js->nkept[GH_INNER];

	level->nkeys = keys->ncolumns;
	level->keys = palloc(sizeof(GhColumnSource) * level->nkeys);
	level->key_vectors = palloc0(sizeof(uint16) * level->nkeys);
	for (int i = 0; i < level->nkeys; i++)
		level->keys[i] = find_source(node, joined, number - 1, keys->columns[i].attno);
	level->columns = palloc0(sizeof(GhJoinedColumn) * Max(nkept, 1));
	level->place_vector = -1;
	level->values = palloc0(sizeof(Datum) * Max(nkept, 1));
	level->nulls = palloc0(sizeof(bool) * Max(nkept, 1));
}

static TupleDesc
scan_desc(const GhAggregateNode *node)
{
	return RelationGetDescr(((ScanState *) node->scan)->ss_currentRelation);
}

/* Of an expression that the last join evaluates, the columns as those of programs. */
static Node *
condition_mutator(Node *expr, GhAggregateNode *node)
{
	const GhJoined *joined = node->joined;
	const Var  *var = (const Var *) expr;
	GhColumnSource source;

	if (expr == NULL)
		return NULL;
	if (!IsA(expr, Var) || var->varno != INDEX_VAR)
		return expression_tree_mutator(expr, condition_mutator, (void *) node);
	source = find_scan_source(node, joined, joined->nlevels - 1, var->varattno - 1);
	return (Node *) makeVar(((Scan *) node->scan->plan)->scanrelid, gh_joined_attno(node, source), var->vartype,
							var->vartypmod, var->varcollid, 0);
}

/* Makes node->joined where the child is such a chain. */
void
gh_joined_init(GhAggregateNode *node, EState *estate, int eflags)
{
	List	   *joins = find_joins(node, estate, eflags);
	GhJoined   *joined;
	int			attno;

	if (joins == NIL)
	{
		node->scan = NULL;
		return;
	}
	attno = scan_desc(node)->natts + 1;
	joined = palloc0(sizeof(GhJoined));
	joined->nlevels = list_length(joins);
	joined->levels = palloc0(sizeof(GhJoinLevel) * joined->nlevels);
	for (int i = 0; i < joined->nlevels; i++)
		joined->levels[i].js = list_nth(joins, joined->nlevels - 1 - i);
	for (int i = 0; i < joined->nlevels; i++)
	{
		init_level(node, joined, i);
		joined->levels[i].first_attno = attno;
		attno += joined->levels[i].js->nkept[GH_INNER] + 1;
	}
	if (attno > GH_COLUMN_MAX)
	{
		node->scan = NULL;
		return;
	}
	joined->fills_inner = fills_inner(linitial(joins));
	joined->for_device = is_for_device(linitial(joins));
	joined->sources = palloc(sizeof(GhColumnSource) * Max(node->ncolumns, 1));
	for (int i = 0; i < node->ncolumns; i++)
		joined->sources[i] = find_source(node, joined, joined->nlevels - 1, i + 1);
	joined->keys = palloc(sizeof(uint64) * GH_VECTOR_ROWS);
	joined->found = palloc(sizeof(uint64) * GH_VECTOR_ROWS);
	joined->rows = palloc(sizeof(uint16) * GH_VECTOR_ROWS);
	node->joined = joined;
	joined->conditions = (List *) condition_mutator((Node *) conditions_of(linitial(joins)), node);
}

/* ------------------------------------------------------ columns in programs */

/*
 * In programs, the joins' inner columns are numbered as if they were more columns of the scan's
 * relation; behind those of a join comes the place of the inner tuple (GH_LOAD_TID), an int8.
 */
int
gh_joined_attno(GhAggregateNode *node, GhColumnSource source)
{
	return source.level < 0 ? source.column : node->joined->levels[source.level].first_attno + source.column;
}

/* Likewise the place of the inner tuple of a join. */
int
gh_joined_place_attno(const GhAggregateNode *node, int number)
{
	const GhJoinLevel *level = &node->joined->levels[number];

	return level->first_attno + level->js->nkept[GH_INNER];
}

/* The relation's columns, and those. */
TupleDesc
gh_joined_desc(GhAggregateNode *node)
{
	const GhJoined *joined = node->joined;
	TupleDesc	relation = scan_desc(node);
	TupleDesc	desc = CreateTemplateTupleDesc(gh_joined_place_attno(node, joined->nlevels - 1));

	for (int i = 1; i <= relation->natts; i++)
	{
		TupleDescCopyEntry(desc, i, relation, i);
		/* this is not copied */
		TupleDescAttr(desc, i - 1)->atthasmissing = TupleDescAttr(relation, i - 1)->atthasmissing;
	}
	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhJoinState *js = joined->levels[i].js;

		for (int c = 0; c < js->nkept[GH_INNER]; c++)
			TupleDescCopyEntry(desc, joined->levels[i].first_attno + c,
							   ExecGetResultType(gh_child(js, GH_INNER)), js->columns[GH_INNER].attnos[c]);
		TupleDescInitEntry(desc, gh_joined_place_attno(node, i), NULL, INT8OID, -1, 0);
	}
	return desc;
}

/* A program's column that is one of those: a join is to fill the vector. */
void
gh_joined_add_column(GhAggregateNode *node, const GhColumn *column, int vector)
{
	GhJoined   *joined = node->joined;
	int			i = joined->nlevels - 1;
	GhJoinLevel *level;
	GhJoinedColumn *added;

	while (joined->levels[i].first_attno > column->attribute)
		i--;
	level = &joined->levels[i];
	if (column->attribute == gh_joined_place_attno(node, i))
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
gh_joined_forget_columns(GhAggregateNode *node)
{
	for (int i = 0; i < node->joined->nlevels; i++)
	{
		node->joined->levels[i].ncolumns = 0;
		node->joined->levels[i].place_vector = -1;
	}
}

/* ------------------------------------------------------------ look-ups */

static void
look_up(GhJoinLevel *level, uint64 count, const uint64 *keys, uint64 *found)
{
	GhJoinState *js = level->js;
	GhRequest	request = {
		.op = GH_FIND,
		.count = count,
		.keys = keys,
		.values_out = found,
		.absent = js->carry.absent,
	};
	GhStatus	status;

	if (js->table == NULL)
	{
		for (uint64 i = 0; i < count; i++)
			found[i] = js->carry.absent;
		return;
	}
	status = js->engine->submit(js->table, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = gh_wait_request(js->table, &request);
	if (status != GH_OK)
		gh_report_error(&request.error, "join through the hash table");
}

static inline bool
keeps_matches(const GhJoinState *js)
{
	return js->jointype != JOIN_ANTI;
}

/* -------------------------------------------------- a page's rows in vectors */

/* Gathers the keys of the live rows that have one; the others have no match. */
static int
gather_keys(GhJoined *joined, const GhJoinLevel *level, GhVectorBatch *batch)
{
	const GhKeyColumn *columns = level->js->keys[GH_OUTER].columns;
	int			n = 0;

	for (uint32 i = 0; i < batch->nrows; i++)
	{
		joined->rows[n] = i;
		n += batch->state[i] == GH_ROW_LIVE;
	}
	for (int k = 0; k < level->nkeys; k++)
	{
		const GhVector *vector = &batch->vectors[level->key_vectors[k]];
		int			bits = columns[k].bits;

		if (level->nkeys == 1 && bits == GH_KEY_BITS)
			for (int i = 0; i < n; i++)
				joined->keys[i] = vector->low[joined->rows[i]];
		else
			for (int i = 0; i < n; i++)
				joined->keys[i] = (k == 0 ? 0 : joined->keys[i] << bits) |
					gh_code_bits(vector->low[joined->rows[i]], bits);
	}
	return n;
}

/* Rows with a NULL in their key have no match, whatever was found. */
static void
forget_null_keys(GhJoined *joined, const GhJoinLevel *level, const GhVectorBatch *batch, int n)
{
	uint64		absent = level->js->carry.absent;

	for (int k = 0; k < level->nkeys; k++)
	{
		const uint8 *null = batch->vectors[level->key_vectors[k]].null;

		for (int i = 0; i < n; i++)
			joined->found[i] = null[joined->rows[i]] ? absent : joined->found[i];
	}
}

/* Drops rows that do not come out of the join. */
static void
drop_rows(const GhJoined *joined, const GhJoinState *js, GhVectorBatch *batch, int n)
{
	uint64		absent = js->carry.absent;
	uint8		match = keeps_matches(js) ? GH_ROW_LIVE : GH_ROW_DROPPED;
	uint8		other = js->fill_outer ? GH_ROW_LIVE : GH_ROW_DROPPED;

	for (int i = 0; i < n; i++)
		batch->state[joined->rows[i]] = joined->found[i] != absent ? match : other;
}

/* Inner columns of rows that have no match, where such rows come out. */
static void
store_nulls(const GhJoinLevel *level, const GhJoined *joined, GhVectorBatch *batch, int n)
{
	for (int c = 0; c < level->ncolumns; c++)
	{
		uint8	   *null = batch->vectors[level->columns[c].vector].null;

		for (int i = 0; i < n; i++)
			if (joined->found[i] == level->js->carry.absent)
				null[joined->rows[i]] = 1;
	}
}

/* What is done with each row: `row` of the batch, and a column's bytes in what was found for it. */
#define EACH_FOUND(statement) \
	do { \
		for (int i = 0; i < n; i++) \
		{ \
			int			row = joined->rows[i]; \
			const uint8 *at = (const uint8 *) &joined->found[i] + offset; \
			statement; \
		} \
	} while (0)

/* A column that the table has in its values; those of rows without a match are anything. */
static void
store_carried(const GhJoined *joined, const GhCarry *carry, const GhJoinedColumn *column,
			  GhVectorBatch *batch, int n)
{
	int			offset = GH_CARRY_NULLS;
	uint64	   *low = batch->vectors[column->vector].low;
	uint8	   *null = batch->vectors[column->vector].null;

	if (carry->has_nulls)
		EACH_FOUND(null[row] = *at >> column->column & 1);
	else
		EACH_FOUND((void) at; null[row] = 0);
	offset = carry->offsets[column->column];
	switch ((GhLoad) column->load)
	{
		case GH_LOAD_INT2:
			EACH_FOUND(low[row] = (uint64) (int64) (int16) gh_read_u16(at));
			break;
		case GH_LOAD_INT4:
			EACH_FOUND(low[row] = (uint64) (int64) (int32) gh_read_u32(at));
			break;
		case GH_LOAD_OID:
			EACH_FOUND(low[row] = gh_read_u32(at));
			break;
		case GH_LOAD_INT8:
		case GH_LOAD_FLOAT8:
			EACH_FOUND(low[row] = gh_read_u64(at));
			break;
		case GH_LOAD_FLOAT4:
			EACH_FOUND(low[row] = gh_float4_bits(gh_read_u32(at)));
			break;
		case GH_LOAD_BOOL:
			EACH_FOUND(low[row] = *at != 0);
			break;
		default:
			/* it cannot be read here */
			for (int i = 0; i < n; i++)
				if (joined->found[i] != carry->absent)
					batch->state[joined->rows[i]] = GH_ROW_BACK;
			break;
	}
}

/* The columns of stored rows. */
static void
store_rows(const GhJoinLevel *level, const GhJoined *joined, GhVectorBatch *batch, int n)
{
	GhJoinState *js = level->js;
	const GhColumns *columns = &js->columns[GH_INNER];

	for (int i = 0; i < n; i++)
	{
		int			row = joined->rows[i];
		GhRow	   *inner;

		if (i + GH_PREFETCH_ROWS < n && joined->found[i + GH_PREFETCH_ROWS] != 0)
		{
			const char *ahead = (const char *) gh_row_at(&js->store, joined->found[i + GH_PREFETCH_ROWS]);

			__builtin_prefetch(ahead);
			__builtin_prefetch(ahead + js->prefetch_span);
		}
		if (joined->found[i] == 0)
			continue;
		inner = gh_row_at(&js->store, joined->found[i]);
		/* several matches are several rows */
		if (!js->single_match && gh_row_next(inner) != 0)
		{
			batch->state[row] = GH_ROW_BACK;
			continue;
		}
		for (int c = 0; c < level->ncolumns; c++)
		{
			const GhJoinedColumn *column = &level->columns[c];
			GhVector   *vector = &batch->vectors[column->vector];

			vector->null[row] = gh_row_nulls(inner)[column->column];
			if (!vector->null[row] &&
				!gh_store_value((GhLoad) column->load, column->scale,
								gh_row_value(columns, inner, column->column), vector, row))
				batch->state[row] = GH_ROW_BACK;
		}
	}
}

static void
probe_level(GhJoined *joined, GhJoinLevel *level, GhVectorBatch *batch)
{
	GhJoinState *js = level->js;
	int			n = gather_keys(joined, level, batch);

	if (n == 0)
		return;
	look_up(level, n, joined->keys, joined->found);
	forget_null_keys(joined, level, batch, n);
	drop_rows(joined, js, batch, n);
	/* where nothing of an inner row is needed, it only matters that it is there */
	if (keeps_matches(js) && js->looks_at_inner)
	{
		if (!js->carry.in_use)
			store_rows(level, joined, batch, n);
		else
			for (int c = 0; c < level->ncolumns; c++)
				store_carried(joined, &js->carry, &level->columns[c], batch, n);
	}
	if (js->fill_outer)
		store_nulls(level, joined, batch, n);
}

/*
 * Joins the live rows of a batch: those without a match that is needed are dropped.  Rows that
 * are handed back count when they are added.
 */
void
gh_joined_probe(GhAggregateNode *node, GhVectorBatch *batch)
{
	GhJoined   *joined = node->joined;
	uint32		live;
	uint32		back;
	uint32		before;

	gh_batch_count(batch, &live, &before);
	for (int i = 0; i < joined->nlevels && live > 0; i++)
	{
		probe_level(joined, &joined->levels[i], batch);
		gh_batch_count(batch, &live, &back);
		gh_joined_uncount(node, i, back - before);
		joined->levels[i].rows += live;
		before = back;
	}
}

/* So many rows that came out of the joins below a level are handed back, and count again. */
void
gh_joined_uncount(GhAggregateNode *node, int level, uint32 rows)
{
	for (int i = 0; i < level; i++)
		node->joined->levels[i].rows -= rows;
}

/* ----------------------------------------- one row, by PostgreSQL's values */

static Datum
source_value(GhAggregateNode *node, GhColumnSource source, bool *null)
{
	const GhJoinLevel *level;

	if (source.level < 0)
		return slot_getattr(((ScanState *) node->scan)->ss_ScanTupleSlot, source.column, null);
	level = &node->joined->levels[source.level];
	*null = level->nulls[source.column];
	return level->values[source.column];
}

/* The outer row's key; false: it has none. */
static bool
level_key(GhAggregateNode *node, GhJoinLevel *level, uint64 *key)
{
	GhKeyColumn *columns = level->js->keys[GH_OUTER].columns;
	uint64		result = 0;

	for (int k = 0; k < level->nkeys; k++)
	{
		bool		null;
		Datum		value = source_value(node, level->keys[k], &null);
		uint64		code;

		if (null)
			return false;
		code = gh_encode_value(&columns[k], value);
		result = columns[k].bits == GH_KEY_BITS ? code :
			(result << columns[k].bits) | gh_code_bits(code, columns[k].bits);
	}
	*key = result;
	return true;
}

static void
load_carried(GhJoinLevel *level, uint64 value)
{
	const GhColumns *columns = &level->js->columns[GH_INNER];
	const GhCarry *carry = &level->js->carry;
	GhCarried	carried = {.value = value};

	if (!carry->needs_columns)
		return;
	for (int c = 0; c < columns->ncolumns; c++)
	{
		level->nulls[c] = carry->has_nulls && (carried.bytes[GH_CARRY_NULLS] >> c & 1) != 0;
		level->values[c] = fetch_att(carried.bytes + carry->offsets[c], true, columns->typlens[c]);
	}
}

static void
add_joined(GhAggregateNode *node, int number)
{
	GhJoined   *joined = node->joined;
	TupleTableSlot *to = node->css.ss.ss_ScanTupleSlot;
	GhJoinLevel *level;
	GhJoinState *js;
	uint64		key;
	uint64		found;
	bool		matches;

	CHECK_FOR_INTERRUPTS();
	if (number == joined->nlevels)
	{
		ResetExprContext(node->css.ss.ps.ps_ExprContext);
		for (int c = 0; c < node->ncolumns; c++)
			to->tts_values[c] = source_value(node, joined->sources[c], &to->tts_isnull[c]);
		gh_add_input_row(node);
		return;
	}
	level = &joined->levels[number];
	js = level->js;
	found = js->carry.absent;
	if (level_key(node, level, &key))
		look_up(level, 1, &key, &found);
	matches = found != js->carry.absent;
	if (matches ? !keeps_matches(js) : !js->fill_outer)
		return;
	if (!matches || js->carry.in_use)
	{
		if (matches)
			load_carried(level, found);
		else
			memset(level->nulls, true, js->nkept[GH_INNER]);
		level->rows++;
		add_joined(node, number + 1);
		return;
	}
	while (found != 0)
	{
		GhRow	   *inner = gh_row_at(&js->store, found);

		gh_row_load(&js->columns[GH_INNER], inner, level->nulls, level->values);
		level->rows++;
		add_joined(node, number + 1);
		found = js->single_match ? 0 : gh_row_next(inner);
	}
}

/* Adds all joined rows of the tuple in the scan's slot, which has passed its conditions. */
void
gh_joined_add_tuple(GhAggregateNode *node)
{
	add_joined(node, 0);
}
