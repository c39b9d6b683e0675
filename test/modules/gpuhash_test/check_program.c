/*
 * check_program.c
 *		Whether programs say what PostgreSQL says.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parser.h"
#include "storage/bufmgr.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "engine/page/cpu_page.h"
#include "expr/translate.h"
#include "heap/layout.h"

PG_FUNCTION_INFO_V1(gpuhash_check_program);

/* An expression, and qualifications, both ways. */
typedef struct Check
{
	Relation	relation;
	EState	   *estate;
	ExprContext *econtext;
	TupleTableSlot *slot;
	ExprState  *qual;
	ExprState  *value;
	Oid			type;			/* of the value */
	GhProgram  *program;
	GhPageShape shape;
	GhVectorBatch batch;
	GhClass		value_class;
	int			scale;
	uint16		vector;			/* that has the value */
	uint64		rows;
	uint64		dropped;
	uint64		back;
	uint64		wrong;
	StringInfoData first_wrong;
} Check;

/* The query's plan, or NULL: it is more, or less, than a scan. */
static SeqScan *
plan_query(const char *sql)
{
	RawStmt    *raw = linitial_node(RawStmt, raw_parser(sql, RAW_PARSE_DEFAULT));
	List	   *queries = pg_analyze_and_rewrite_fixedparams(raw, sql, NULL, 0, NULL);
	PlannedStmt *stmt = gh_plan_query(linitial_node(Query, queries), sql, 0, NULL);

	/* where the condition is never true there is nothing to read */
	return IsA(stmt->planTree, SeqScan) && stmt->subplans == NIL ? (SeqScan *) stmt->planTree : NULL;
}

static char *
print_int128(unsigned __int128 value)
{
	char		digits[42];
	char	   *at = digits + sizeof(digits);
	bool		negative = (__int128) value < 0;

	if (negative)
		value = -value;
	*--at = '\0';
	do
		*--at = '0' + (int) (value % 10);
	while ((value /= 10) != 0);
	if (negative)
		*--at = '-';
	return pstrdup(at);
}

static bool
is_text(Oid type)
{
	return type == TEXTOID || type == VARCHAROID || type == BPCHAROID;
}

static char *
print_bytes(const void *bytes, Size length)
{
	char	   *digits = palloc0(length * 2 + 1);

	(void) hex_encode(bytes, length, digits);
	return digits;
}

static char *
print_float(Oid type, double value)
{
	return type == FLOAT4OID ?
		DatumGetCString(DirectFunctionCall1(float4out, Float4GetDatum((float4) value))) :
		DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(value)));
}

/* What the program has, of a value that is not NULL. */
static char *
print_ours(const Check *check, uint32 row)
{
	const GhVector *vector = &check->batch.vectors[check->vector];
	uint64		low = vector->low[row];
	double		number;

	switch (check->value_class)
	{
		case GH_CLASS_FLOAT4:
		case GH_CLASS_FLOAT8:
			memcpy(&number, &low, sizeof(number));
			return print_float(check->type, number);
		case GH_CLASS_INT128:
			return print_int128(((unsigned __int128) vector->high[row] << 64) | low);
		case GH_CLASS_TEXT:
			return is_text(check->type) ? pnstrdup((const char *) (uintptr_t) low, vector->high[row]) :
				print_bytes((const void *) (uintptr_t) low, vector->high[row]);
		default:
			return psprintf(INT64_FORMAT, (int64) low);
	}
}

/* The value times 10 to the power of the scale, which makes it whole. */
static char *
print_numeric(Datum value, int scale)
{
	for (int i = 0; i < scale; i++)
		value = DirectFunctionCall2(numeric_mul, value,
									DirectFunctionCall1(int8_numeric, Int64GetDatum(10)));
	return DatumGetCString(DirectFunctionCall1(numeric_out,
											   DirectFunctionCall1(numeric_trim_scale, value)));
}

/* Likewise PostgreSQL's. */
static char *
print_theirs(const Check *check, Datum value)
{
	switch (check->type)
	{
		case BOOLOID:
			return psprintf("%d", DatumGetBool(value));
		case INT2OID:
			return psprintf("%d", DatumGetInt16(value));
		case INT4OID:
		case DATEOID:
			return psprintf("%d", DatumGetInt32(value));
		case OIDOID:
			return psprintf("%u", DatumGetObjectId(value));
		case FLOAT4OID:
			return print_float(FLOAT4OID, DatumGetFloat4(value));
		case FLOAT8OID:
			return print_float(FLOAT8OID, DatumGetFloat8(value));
		case NUMERICOID:
			return print_numeric(value, check->scale);
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return text_to_cstring(DatumGetTextPP(value));
		case BYTEAOID:
			return print_bytes(VARDATA_ANY(DatumGetByteaPP(value)), VARSIZE_ANY_EXHDR(DatumGetByteaPP(value)));
		case NAMEOID:
		case UUIDOID:
		case MACADDROID:
		case MACADDR8OID:
			return print_bytes(DatumGetPointer(value), get_typlen(check->type));
		default:
			return psprintf(INT64_FORMAT, DatumGetInt64(value));
	}
}

/* ------------------------------------------------------------- both ways */

static void
note_wrong(Check *check, HeapTuple tuple, const char *ours, const char *theirs)
{
	if (check->wrong++ == 0)
		appendStringInfo(&check->first_wrong, ", first: (%u,%u) %s instead of %s",
						 ItemPointerGetBlockNumber(&tuple->t_self),
						 ItemPointerGetOffsetNumber(&tuple->t_self), ours, theirs);
}

static void
compare_row(Check *check, HeapTuple tuple, uint32 row)
{
	GhRowState	state = (GhRowState) check->batch.state[row];
	bool		null;
	bool		our_null = check->batch.vectors[check->vector].null[row] != 0;
	bool		kept;
	Datum		value;

	check->rows++;
	/* the row may be one for which PostgreSQL has an error */
	if (state == GH_ROW_BACK)
	{
		check->back++;
		return;
	}
	ResetExprContext(check->econtext);
	ExecStoreHeapTuple(tuple, check->slot, false);
	check->econtext->ecxt_scantuple = check->slot;
	kept = ExecQual(check->qual, check->econtext);
	check->dropped += !kept;
	if (kept != (state == GH_ROW_LIVE))
		note_wrong(check, tuple, kept ? "dropped" : "kept", kept ? "kept" : "dropped");
	if (!kept || state != GH_ROW_LIVE)
		return;
	value = ExecEvalExprSwitchContext(check->value, check->econtext, &null);
	if (null || our_null)
	{
		if (null != our_null)
			note_wrong(check, tuple, our_null ? "NULL" : print_ours(check, row),
					   null ? "NULL" : print_theirs(check, value));
	}
	else if (strcmp(print_ours(check, row), print_theirs(check, value)) != 0)
		note_wrong(check, tuple, print_ours(check, row), print_theirs(check, value));
}

/* The tuples of a page, which lie in a copy of it. */
static void
compare_page(Check *check, const char *page, int count, const uint16 *numbers, HeapTuple *tuples)
{
	if (count == 0)
		return;
	check->batch.nrows = 0;
	if (gh_cpu_page_load(&check->shape, (const uint8 *) page, 0, numbers, count,
						 &check->batch) != GH_OK)
		elog(ERROR, "a page of the relation cannot be read");
	(void) gh_program_run(check->program, &check->batch);
	for (int i = 0; i < count; i++)
		compare_row(check, tuples[i], i);
}

static void
compare_relation(Check *check)
{
	TableScanDesc scan = gh_beginscan_of(check->relation, GetActiveSnapshot());
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash check",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	BlockNumber block = InvalidBlockNumber;
	char	   *page = NULL;
	uint16		numbers[MaxHeapTuplesPerPage];
	HeapTuple	tuples[MaxHeapTuplesPerPage];
	HeapTuple	tuple;
	int			count = 0;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		if (ItemPointerGetBlockNumber(&tuple->t_self) != block)
		{
			CHECK_FOR_INTERRUPTS();
			compare_page(check, page, count, numbers, tuples);
			MemoryContextReset(context);
			block = ItemPointerGetBlockNumber(&tuple->t_self);
			page = palloc(BLCKSZ);
			memcpy(page, BufferGetPage(((HeapScanDesc) scan)->rs_cbuf), BLCKSZ);
			count = 0;
		}
		numbers[count] = ItemPointerGetOffsetNumber(&tuple->t_self);
		tuples[count++] = heap_copytuple(tuple);
	}
	compare_page(check, page, count, numbers, tuples);
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
	table_endscan(scan);
}

/* ------------------------------------------------------------ the program */

static void
prepare_shape(Check *check)
{
	TupleDesc	desc = RelationGetDescr(check->relation);
	GhPageAttribute *attributes = palloc(sizeof(GhPageAttribute) * desc->natts);
	GhError		error;

	for (int i = 0; i < desc->natts; i++)
		attributes[i] = gh_page_attribute(desc, i + 1);
	if (gh_page_shape_init(&check->shape, BLCKSZ, desc->natts, attributes, check->program->ncolumns,
						   gh_program_columns(check->program), &error) != GH_OK)
		elog(ERROR, "%s", error.message);
}

/* False: with a word on why in *why_not. */
static bool
prepare(Check *check, SeqScan *plan, const char **why_not)
{
	Expr	   *value;
	GhTranslation *translation;
	GhOperand	operand;
	GhError		error;
	bool		done = true;
	ListCell   *lc;

	*why_not = "the query's plan is no plain scan";
	if (plan == NULL)
		return false;
	value = linitial_node(TargetEntry, plan->scan.plan.targetlist)->expr;
	translation = gh_translate_begin(RelationGetDescr(check->relation), plan->scan.scanrelid);
	foreach(lc, plan->scan.plan.qual)
		done = done && gh_translate_filter(translation, lfirst(lc));
	if (done && gh_translate_value(translation, value, &operand))
		check->program = gh_translate_end(translation);
	*why_not = translation->why_not;
	if (check->program == NULL)
		return false;
	if (gh_program_check(check->program, check->program->bytes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	check->vector = gh_final_vector(translation, &operand);
	check->value_class = operand.value_class;
	check->scale = operand.scale;
	check->type = getBaseType(exprType((Node *) value));
	prepare_shape(check);
	gh_batch_prepare(&check->batch, check->program,
					 (void *) TYPEALIGN(64, palloc(gh_batch_bytes(check->program) + 64)));
	check->qual = ExecInitQual(plan->scan.plan.qual, NULL);
	check->value = ExecInitExpr(value, NULL);
	return true;
}

/*
 * gpuhash_check_program(regclass, value text, condition text): evaluates the value for the
 * rows of the table for which the condition is true, by a program and by PostgreSQL, and
 * tells what came of it; or why there is no such program.
 */
Datum
gpuhash_check_program(PG_FUNCTION_ARGS)
{
	Check		check = {0};
	Oid			relid = PG_GETARG_OID(0);
	const char *why_not;
	char	   *sql;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to check programs")));
	sql = psprintf("SELECT %s FROM ONLY %s WHERE %s", text_to_cstring(PG_GETARG_TEXT_PP(1)),
				   DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(relid))),
				   text_to_cstring(PG_GETARG_TEXT_PP(2)));
	initStringInfo(&check.first_wrong);
	check.relation = table_open(relid, AccessShareLock);
	check.estate = CreateExecutorState();
	check.econtext = GetPerTupleExprContext(check.estate);
	check.slot = MakeSingleTupleTableSlot(RelationGetDescr(check.relation), &TTSOpsHeapTuple);
	if (!prepare(&check, plan_query(sql), &why_not))
		appendStringInfo(&check.first_wrong, "no program: %s", why_not);
	else
		compare_relation(&check);
	ExecDropSingleTupleTableSlot(check.slot);
	FreeExecutorState(check.estate);
	table_close(check.relation, AccessShareLock);
	if (check.program == NULL)
		PG_RETURN_TEXT_P(cstring_to_text(check.first_wrong.data));
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("rows " UINT64_FORMAT ", dropped " UINT64_FORMAT ", back " UINT64_FORMAT ", wrong " UINT64_FORMAT "%s",
											  check.rows, check.dropped, check.back, check.wrong, check.first_wrong.data)));
}
