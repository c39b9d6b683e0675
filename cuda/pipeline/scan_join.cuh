/*
 * scan_join.cuh
 *		A row's match in a table that another scan made, and a row that is kept: of the table that
 *		this one makes, or to be returned.
 *
 * Nobody changes a table that was made.
 */
#ifndef GPUHASH_SCAN_JOIN_CUH
#define GPUHASH_SCAN_JOIN_CUH

#include "cuda/pipeline/scan_find.cuh"
#include "cuda/pipeline/scan_locate.cuh"

/* ---------------------------------------------------------------------- joins */

/* The mark of a key whose value was found: its word; *bit: in the word. */
static __device__ __forceinline__ uint32_t *
mark_of(const made_table &table, uint64_t found, uint32_t *bit)
{
	uint64_t	mark = found & ~ROW_SEVERAL;

	/* numbers of rows, and places among members, are counted from 0 both */
	if ((found & ROW_SEVERAL) != 0)
		mark += table.rows;
	*bit = (uint32_t) 1 << mark % 32;
	return &table.marks[mark / 32];
}

/* Many rows find the same few keys: only the first of them waits for the word. */
static __device__ __forceinline__ void
mark_key(const made_table &table, uint64_t found)
{
	uint32_t	bit;
	uint32_t   *word = mark_of(table, found, &bit);

	if ((load_relaxed(word) & bit) == 0)
		atomicOr(word, bit);
}

/* False: a part is NULL. */
static __device__ __forceinline__ bool
row_key(const GhScanPart *parts, uint32_t nparts, const row_values &row, uint64_t *key)
{
	*key = 0;
	for (uint32_t k = 0; k < nparts; k++)
	{
		GhScanPart	part = parts[k];
		GhValue		value = row.get(part.vector);

		if (value.null)
			return false;
		*key = gh_scan_key_add(*key, &part, value.low);
	}
	return true;
}

/* found: the value of the row's key in the table; without a match the columns are NULL. */
static __device__ void
fill_columns(const join_view &join, const row_values &row, bool match, uint64_t found)
{
	const made_table &table = join.table;

	for (uint32_t f = 0; f < join.nfills; f++)
	{
		join_fill	fill = join.fills[f];
		GhValue		value = {0, 0, 1};

		if (match && table.values == VALUES_OF_ROWS)
		{
			value.low = found;
			value.null = 0;
		}
		else if (match)
		{
			const uint64_t *words = table.words + (found & ~ROW_SEVERAL) * table.row_words;

			value.null = (uint8_t) (words[fill.kept.null_word] >> fill.kept.null_bit & 1);
			value.low = words[fill.kept.word];
			if (gh_scan_has_high(fill.kept.value_class))
				value.high = words[fill.kept.word + 1];
			if (fill.kept.value_class == GH_CLASS_TEXT)
				value.low += (uint64_t) (uintptr_t) table.texts;
		}
		row.set(fill.column, value);
	}
}

static __device__ GhRowState
join_row(const join_view &join, const row_values &row)
{
	bool		all = gh_scan_kind_fills(join.kind);
	uint64_t	found = 0;
	uint64_t	key;
	bool		match = row_key(join.parts, join.nparts, row, &key) &&
		scan_locate(join.table.view, key, &found) != nullptr;

	if (all && match && join.table.values == VALUES_NUMBERS && (found & ROW_SEVERAL) != 0)
		return GH_ROW_BACK;
	if (match && gh_scan_kind_marks(join.kind))
		mark_key(join.table, found);
	if (!gh_scan_kind_goes_on(join.kind, match))
		return GH_ROW_DROPPED;
	fill_columns(join, row, match, found);
	return GH_ROW_LIVE;
}

/* ---------------------------------------------------------- rows that are kept */

/*
 * Bytes of the heap of texts, for all threads that come here together with one atomic: where every row
 * has a text, one for each would take longer than the pages.
 */
static __device__ uint64_t
take_text_bytes(uint64_t *used, uint64_t bytes)
{
	uint32_t	together = __activemask();
	uint32_t	lane = threadIdx.x & 31;
	int			leader = __ffs((int) together) - 1;
	unsigned long long all = 0;
	unsigned long long before = 0;
	unsigned long long first = 0;

	for (uint32_t rest = together; rest != 0; rest &= rest - 1)
	{
		int			other = __ffs((int) rest) - 1;
		unsigned long long its = __shfl_sync(together, (unsigned long long) bytes, other);

		before += (uint32_t) other < lane ? its : 0;
		all += its;
	}
	if (lane == (uint32_t) leader)
		first = atomicAdd(reinterpret_cast<unsigned long long *>(used), all);
	return __shfl_sync(together, first, leader) + before;
}

/* Copies the texts of a row to the heap; false: there is no room. */
static __device__ bool
store_texts(const pages_job &job, const row_values &row, uint64_t *at)
{
	const plan_view &plan = job.plan;
	uint64_t	bytes = 0;
	uint64_t	to;

	for (uint32_t k = 0; k < plan.nkept; k++)
	{
		GhValue		value;

		if (plan.kept[k].value_class != GH_CLASS_TEXT)
			continue;
		value = row.get(plan.kept[k].vector);
		bytes += value.null ? 0 : value.high;
	}
	*at = 0;
	if (bytes == 0)
		return true;
	to = *at = take_text_bytes(job.texts.used, bytes);
	if (to > job.texts.room || bytes > job.texts.room - to)
	{
		job.counters->texts_full = 1;
		return false;
	}
	for (uint32_t k = 0; k < plan.nkept; k++)
	{
		GhValue		value;
		const char *from;

		if (plan.kept[k].value_class != GH_CLASS_TEXT)
			continue;
		value = row.get(plan.kept[k].vector);
		from = reinterpret_cast<const char *>((uintptr_t) value.low);
		for (uint64_t i = 0; !value.null && i < value.high; i++)
			job.texts.bytes[to++] = from[i];
	}
	return true;
}

/* The words of a row, in the order of what is kept; its texts are at text_at.  keyless: it has no key. */
static __device__ void
store_words(const pages_job &job, const row_values &row, uint32_t line, uint64_t text_at, bool keyless)
{
	const plan_view &plan = job.plan;
	uint64_t   *words = job.lines.low + line;
	uint64_t	nulls = 0;

	for (uint32_t k = 0; k < plan.nkept; k++)
	{
		kept_value	kept = plan.kept[k];
		GhValue		value = row.get(kept.vector);

		if (kept.null_bit == 0)
			nulls = 0;
		nulls |= (uint64_t) (value.null != 0) << kept.null_bit;
		if (value.null)
			value.low = value.high = 0;
		else if (kept.value_class == GH_CLASS_TEXT)
		{
			value.low = text_at;
			text_at += value.high;
		}
		words[kept.word * job.lines.stride] = value.low;
		if (gh_scan_has_high(kept.value_class))
			words[(kept.word + 1) * job.lines.stride] = value.high;
		/* the last one of these words is whole with the last value */
		words[kept.null_word * job.lines.stride] = nulls;
	}
	if (plan.marks_matches == 0)
		return;
	if (plan.keyless_bit % 64 == 0)
		nulls = 0;
	nulls |= (uint64_t) keyless << plan.keyless_bit % 64;
	words[plan.keyless_bit / 64 * job.lines.stride] = nulls;
}

/* A live row among the lines, from where it goes to the rows that are kept; *key: a table's. */
static __device__ line_state
store_row(const pages_job &job, const row_values &row, uint32_t line, uint64_t *key)
{
	uint64_t	text_at;
	bool		keyless = job.plan.nparts > 0 && !row_key(job.plan.parts, job.plan.nparts, row, key);

	if (keyless && job.plan.marks_matches == 0)
		return LINE_NONE;
	if (keyless)
		*key = 0;
	if (!store_texts(job, row, &text_at))
		return LINE_NO_GROUP;
	store_words(job, row, line, text_at, keyless);
	return LINE_LIVE;
}

#endif							/* GPUHASH_SCAN_JOIN_CUH */
