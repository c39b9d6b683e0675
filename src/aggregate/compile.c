/*
 * compile.c
 *		What an engine is to make of a row for groups, as a part of a program: keys, arguments and filters of the
 *		aggregates.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "expr/translate.h"

/* --------------------------------------------------------------- types */

/* One more aggregate, which keeps the largest scale of the values of aggregate a. */
static void
add_scales(GhAggregateNode *node, int a)
{
	GhAggregateSpec *spec = &node->specs[node->naggregates];

	memset(spec, 0, sizeof(*spec));
	spec->aggregate.kind = GH_AGGREGATE_MAX;
	spec->aggregate.value_class = GH_CLASS_INT;
	spec->final = GH_FINAL_VALUE;
	(void) gh_value_type_init(&spec->argument, INT4OID, GH_CLASS_INT, 0);
	spec->result = spec->argument;
	node->specs[a].scales = node->naggregates++;
}

/* The types of keys, arguments and results, for this run's parameters. */
void
gh_aggregate_types(GhAggregateNode *node)
{
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);

	for (int k = 0; k < node->nkeys; k++)
		(void) gh_fragment_init_type(&node->fragment, &node->key_types[k], list_nth(node->keys, k), true);
	node->naggregates = node->nresults;
	for (int a = 0; a < node->nresults; a++)
	{
		GhAggregateSpec *spec = &node->specs[a];
		GhValueType *argument = &spec->argument;

		if (spec->aggregate.kind == GH_AGGREGATE_COUNT_ROWS)
			continue;
		spec->scales = 0;
		if (gh_fragment_init_type(&node->fragment, argument, list_nth(node->arguments, a), false) &&
			gh_sums_numerics(spec->final))
			add_scales(node, a);
		spec->aggregate.value_class = argument->value_class;
		spec->collation = exprCollation(list_nth(node->arguments, a));
		if (spec->final == GH_FINAL_VALUE &&
			!gh_value_type_init(&spec->result, spec->result.type, argument->value_class, argument->scale))
			elog(ERROR, "type %u is not known to the engines", spec->result.type);
	}
	MemoryContextSwitchTo(saved);
}

/* ------------------------------------------------------------- the program */

/* The operands of the program's results. */
typedef struct GhResults
{
	GhOperand  *keys;
	GhOperand  *arguments;		/* also of aggregates that tell scales */
	GhOperand  *filters;
	bool	   *filtered;		/* there is one */
	/* of several sets: */
	GhOperand  *nulls;			/* by key that is an argument, a NULL */
	GhOperand	never;			/* a filter that lets no row pass */
} GhResults;

static GhResults *
make_results(const GhAggregateNode *node)
{
	GhResults  *results = palloc(sizeof(GhResults));

	results->keys = palloc0(sizeof(GhOperand) * Max(node->nkeys, 1));
	results->arguments = palloc0(sizeof(GhOperand) * Max(node->naggregates, 1));
	results->filters = palloc0(sizeof(GhOperand) * Max(node->naggregates, 1));
	results->filtered = palloc0(sizeof(bool) * Max(node->naggregates, 1));
	return results;
}

/* What is counted may be held in any way. */
static bool
translate_argument(GhAggregateNode *node, GhTranslation *translation, int a)
{
	const GhAggregateSpec *spec = &node->specs[a];
	Expr	   *argument = list_nth(node->arguments, a);
	GhOperand  *operand = &node->results->arguments[a];

	if (spec->final != GH_FINAL_COUNT)
		return gh_fragment_translate(&node->fragment, translation, argument, &spec->argument, spec->scales > 0, operand);
	return gh_translate_value(translation, gh_fragment_folded(&node->fragment, argument, &node->fragment.program.awaited),
							  operand) &&
		(operand->value_class == spec->argument.value_class ||
		 gh_translation_fails(translation, "a parameter changes the type of what is counted"));
}

/* An aggregate's filter and argument, and the scale of that. */
static bool
translate_aggregate(GhAggregateNode *node, GhTranslation *translation, int a)
{
	const GhAggregateSpec *spec = &node->specs[a];
	GhResults  *results = node->results;

	results->filtered[a] = node->filter_states[a] != NULL;
	if (results->filtered[a] &&
		!gh_translate_value(translation, gh_fragment_folded(&node->fragment, list_nth(node->filters, a),
															&node->fragment.program.awaited), &results->filters[a]))
		return false;
	if (spec->aggregate.kind == GH_AGGREGATE_COUNT_ROWS)
		return true;
	if (!translate_argument(node, translation, a))
		return false;
	if (spec->scales == 0)
		return true;
	results->filtered[spec->scales] = results->filtered[a];
	results->filters[spec->scales] = results->filters[a];
	return gh_translate_scales(translation, &results->arguments[a], &results->arguments[spec->scales]);
}

/* What takes the place of keys and filters in the sets that do not have them. */
static bool
translate_sets(GhAggregateNode *node, GhTranslation *translation)
{
	GhResults  *results = node->results;
	int			nsets = gh_aggregate_nsets(node);

	results->nulls = palloc0(sizeof(GhOperand) * nsets);
	for (int s = 0; s < nsets && nsets > 1; s++)
		if (!gh_add_constant(translation, gh_vector_class(node->key_types[node->nkeys - nsets + s].value_class), true, 0, 0,
							 &results->nulls[s]))
			return false;
	return nsets == 1 || gh_add_constant(translation, GH_CLASS_BOOL, false, 0, 0, &results->never);
}

/* GhFragmentMethods */
bool
gh_aggregate_translate(GhFragment *fragment, GhTranslation *translation)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	node->results = make_results(node);
	for (int k = 0; k < node->nkeys; k++)
		if (!gh_fragment_translate(fragment, translation, list_nth(node->keys, k), &node->key_types[k], false,
								   &node->results->keys[k]))
			return false;
	for (int a = 0; a < node->nresults; a++)
		if (!translate_aggregate(node, translation, a))
			return false;
	return translate_sets(node, translation);
}

/* GhFragmentMethods */
void
gh_aggregate_keep_vectors(GhFragment *fragment, const GhTranslation *translation)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);
	const GhResults *results = node->results;

	node->key_vectors = palloc(sizeof(uint16) * Max(node->nkeys, 1));
	for (int k = 0; k < node->nkeys; k++)
		node->key_vectors[k] = gh_final_vector(translation, &results->keys[k]);
	node->aggregates = palloc(sizeof(GhAggregate) * Max(node->naggregates, 1));
	for (int a = 0; a < node->naggregates; a++)
	{
		GhAggregate *aggregate = &node->aggregates[a];

		*aggregate = node->specs[a].aggregate;
		if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
			aggregate->argument = gh_final_vector(translation, &results->arguments[a]);
		aggregate->filter = !results->filtered[a] ? GH_AGGREGATE_NO_FILTER :
			gh_final_vector(translation, &results->filters[a]);
	}
	node->null_vectors = palloc(sizeof(uint16) * gh_aggregate_nsets(node));
	for (int s = 0; s < gh_aggregate_nsets(node) && gh_aggregate_nsets(node) > 1; s++)
		node->null_vectors[s] = gh_final_vector(translation, &results->nulls[s]);
	if (gh_aggregate_nsets(node) > 1)
		node->never_vector = gh_final_vector(translation, &results->never);
}

/* GhFragmentMethods */
void
gh_aggregate_forget_program(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	if (node->final != NULL)
		gh_final_groups_add_sink(node->final, NULL);
	node->results = NULL;
	node->key_vectors = NULL;
	node->aggregates = NULL;
	node->entered = NULL;
}

/* The keys of groups, as engines know them, set by set; in the current context. */
GhRecordKey *
gh_aggregate_scan_keys(const GhAggregateNode *node)
{
	int			nsets = gh_aggregate_nsets(node);
	GhRecordKey *keys = palloc0(sizeof(GhRecordKey) * Max(nsets * node->nkeys, 1));

	for (int s = 0; s < nsets; s++)
	{
		GhRecordKey *of_set = keys + s * node->nkeys;

		gh_fragment_scan_keys(node->nkeys, node->key_types, node->key_vectors, of_set);
		for (int k = 0; k < node->nkeys; k++)
			if (!gh_set_has_key(node, s, k))
				of_set[k].vector = node->null_vectors[k - (node->nkeys - nsets)];
	}
	return keys;
}

/* Likewise the aggregates, which take rows of their own set alone. */
const GhAggregate *
gh_aggregate_set_aggregates(const GhAggregateNode *node)
{
	int			nsets = gh_aggregate_nsets(node);
	GhAggregate *aggregates = palloc(sizeof(GhAggregate) * Max(nsets * node->naggregates, 1));

	for (int s = 0; s < nsets; s++)
		for (int a = 0; a < node->naggregates; a++)
		{
			aggregates[s * node->naggregates + a] = node->aggregates[a];
			if (gh_set_of(node, a) != s)
				aggregates[s * node->naggregates + a].filter = node->never_vector;
		}
	return aggregates;
}
