/*
 * join_keys.c
 *		Which clauses of a join are its keys.
 *
 * All that are equalities of both sides and can be hashed, as in PostgreSQL.  But what engines look up by
 * themselves, for a node above, is a key of 64 bits that decides alone.  Where the clauses come to more, or
 * some have no such key, those that nearly tell the inner rows apart are the keys, and the others are
 * conditions on the pair, of which there are programs.  An order's line has a key of 96 bits, say, but an
 * order has few lines.  Where that cannot be, all are keys, and a code of them is looked up (is_plain of
 * join_plan.c).
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "expr/key.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"

/*
 * So many inner rows may have the key of an outer row, on average, where further clauses decide which one is
 * the match.
 */
#define GH_MAX_CANDIDATES 4.0

/* Whether the outer side's expression is the left one. */
static bool
is_outer_left(const GhJoinInputs *inputs, const RestrictInfo *rinfo)
{
	return bms_is_subset(rinfo->left_relids, inputs->outerrel->relids) &&
		bms_is_subset(rinfo->right_relids, inputs->innerrel->relids);
}

/*
 * Whether a hash join could be made by the clause: it compares an expression over one input with one over the
 * other.
 */
bool
gh_is_hash_clause(const GhJoinInputs *inputs, const RestrictInfo *rinfo)
{
	/* an outer join is decided by its own clauses alone */
	if (IS_OUTER_JOIN(inputs->jointype) && RINFO_IS_PUSHED_DOWN(rinfo, inputs->joinrel->relids))
		return false;
	return rinfo->can_join && OidIsValid(rinfo->hashjoinoperator) &&
		(is_outer_left(inputs, rinfo) ||
		 (bms_is_subset(rinfo->left_relids, inputs->innerrel->relids) &&
		  bms_is_subset(rinfo->right_relids, inputs->outerrel->relids)));
}

/* Whether it could be one of ours, and to how many bits: gh_operator_key_bits. */
static int
hash_clause_bits(const GhJoinInputs *inputs, RestrictInfo *rinfo)
{
	if (!gh_is_hash_clause(inputs, rinfo) || !IsA(rinfo->clause, OpExpr) ||
		(inputs->may_stay_unread && !gh_key_is_quiet(rinfo, is_outer_left(inputs, rinfo))))
		return -1;
	return gh_operator_key_bits(((OpExpr *) rinfo->clause)->opno);
}

/* Of all clauses that could be keys.  False: there is none, or the core would lose a clause. */
static bool
find_equalities(GhJoinInputs *inputs)
{
	List	   *clauses = inputs->extra->restrictlist;
	int			bits = 0;
	bool		all = true;
	ListCell   *lc;

	inputs->keys_are_exact = true;
	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		int			key_bits;

		if (rinfo->pseudoconstant && !GH_CORE_GATES_JOINS)
			return false;
		key_bits = hash_clause_bits(inputs, rinfo);
		if (key_bits < 0)
		{
			/* until here the list itself would have done, as it does nearly always */
			if (all)
				inputs->equalities = list_copy_head(clauses, foreach_current_index(lc));
			all = false;
			continue;
		}
		if (!all)
			inputs->equalities = lappend(inputs->equalities, rinfo);
		bits += key_bits;
		if (key_bits == 0 || bits > GH_KEY_BITS)
			inputs->keys_are_exact = false;
	}
	if (all)
		inputs->equalities = clauses;
	inputs->keys_are_short = inputs->keys_are_exact && bits <= GH_SHORT_KEY_BITS;
	return inputs->equalities != NIL;
}

/* ------------------------------------------------- keys that decide alone */

/* A clause, and how many values its inner side has. */
typedef struct KeyCandidate
{
	RestrictInfo *rinfo;
	int			bits;
	double		values;
} KeyCandidate;

/* Whether the clause compares columns that are whole numbers, and to how many bits. */
static bool
is_short_key(const GhJoinInputs *inputs, RestrictInfo *rinfo, KeyCandidate *candidate)
{
	OpExpr	   *clause = castNode(OpExpr, rinfo->clause);
	bool		outer_is_left = bms_is_subset(rinfo->left_relids, inputs->outerrel->relids);
	VariableStatData data;
	bool		is_default;

	candidate->rinfo = rinfo;
	candidate->bits = gh_operator_key_bits(clause->opno);
	if (candidate->bits <= 0 || gh_operator_encoding(clause->opno, true) > GH_KEY_OID ||
		gh_operator_encoding(clause->opno, false) > GH_KEY_OID)
		return false;
	examine_variable(inputs->root, outer_is_left ? lsecond(clause->args) : linitial(clause->args), 0, &data);
	candidate->values = get_variable_numdistinct(&data, &is_default);
	ReleaseVariableStats(data);
	return !is_default;
}

/* The candidates that fit in 64 bits together, those of most values first; *values: of all of them. */
static List *
choose_keys(KeyCandidate *candidates, int ncandidates, double *values)
{
	List	   *keys = NIL;
	int			bits = 0;

	*values = 1;
	for (int done = 0; done < ncandidates; done++)
	{
		KeyCandidate *best = &candidates[done];
		KeyCandidate taken;

		for (int i = done + 1; i < ncandidates; i++)
			if (candidates[i].values > best->values)
				best = &candidates[i];
		taken = *best;
		*best = candidates[done];
		candidates[done] = taken;
		if (bits + taken.bits > GH_KEY_BITS)
			continue;
		bits += taken.bits;
		*values *= taken.values;
		keys = lappend(keys, taken.rinfo);
	}
	return keys;
}

/* Whether all clauses are of columns whose values the engines read: else the join returns its rows anyway. */
static bool
all_are_of_columns(const GhJoinInputs *inputs)
{
	ListCell   *lc;

	foreach(lc, inputs->equalities)
	{
		const OpExpr *clause = castNode(OpExpr, lfirst_node(RestrictInfo, lc)->clause);

		if (!gh_is_key_column(linitial(clause->args)) || !gh_is_key_column(lsecond(clause->args)))
			return false;
	}
	return true;
}

/* Leaves those clauses to be keys that decide alone, if they nearly do. */
static void
leave_short_keys(GhJoinInputs *inputs)
{
	KeyCandidate *candidates;
	int			ncandidates = 0;
	double		values;
	List	   *keys;
	ListCell   *lc;

	if (list_length(inputs->equalities) < 2 || !all_are_of_columns(inputs))
		return;
	candidates = palloc(sizeof(KeyCandidate) * list_length(inputs->equalities));
	foreach(lc, inputs->equalities)
	{
		if (is_short_key(inputs, lfirst_node(RestrictInfo, lc), &candidates[ncandidates]))
			ncandidates++;
	}
	keys = choose_keys(candidates, ncandidates, &values);
	pfree(candidates);
	/* many values do not help where one of them is that of many rows on both sides */
	if (keys == NIL || inputs->innerrel->rows > values * GH_MAX_CANDIDATES ||
		inputs->innerrel->rows * gh_hash_selectivity(inputs, keys) > GH_MAX_CANDIDATES)
		return;
	inputs->hash_clauses = keys;
	inputs->keys_are_exact = true;
}

/* Fills in what the keys are.  False: there are none. */
bool
gh_find_keys(GhJoinInputs *inputs)
{
	if (!find_equalities(inputs))
		return false;
	inputs->hash_clauses = inputs->equalities;
	/* of the others no node above looks up anything where there are conditions on the pair */
	if (!inputs->keys_are_exact && (inputs->jointype == JOIN_INNER || inputs->jointype == JOIN_LEFT ||
									inputs->jointype == JOIN_SEMI || inputs->jointype == JOIN_ANTI))
		leave_short_keys(inputs);
	return true;
}
