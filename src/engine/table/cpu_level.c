/*
 * cpu_level.c
 *		The sizes of a table: of a slot, of a subtable at a level, of its block.
 *
 * A block is a subtable's buckets and, where values are beside them, the values in
 * the order of the slots.
 */
#include "engine/table/cpu_internal.h"

/*
 * While some subtables are twice as large as others the larger ones get fewer keys
 * a bucket, and no sequence of evictions fills them: such tables were measured to
 * hold 0.915 to 0.95 of their slots (src/engine/README).
 */
#define FILL_UNEVEN_MAX 0.90

/* Bytes that a slot has for its value: the value, or a multi table's value word. */
uint32_t
gh_cpu_stride(const GhTableOptions *options)
{
	return options->multi ? (uint32_t) sizeof(uint64_t) : options->value_size;
}

GhCpuShape
gh_cpu_shape(const GhTableOptions *options)
{
	bool		inside = gh_cpu_stride(options) == options->key_size;

	if (options->key_size == 8)
		return inside ? GH_CPU_K8V8 : GH_CPU_K8;
	return inside ? GH_CPU_K4V4 : GH_CPU_K4;
}

/*
 * Buckets of a subtable at a level.  Level l + 1 has the first of the smallest
 * subtables of level l doubled; so all sizes follow from the level, no subtable is
 * more than twice another, and a downsize undoes the last upsize.
 */
uint64_t
gh_cpu_level_buckets(uint32_t subtables, uint32_t level, uint32_t index)
{
	uint32_t	shift = level / subtables + (index < level % subtables ? 1 : 0);

	return (uint64_t) GH_CPU_BUCKETS_MIN << shift;
}

uint64_t
gh_cpu_level_slots(const GhTableOptions *options, uint32_t level)
{
	uint64_t	buckets = 0;
	uint32_t	i;

	for (i = 0; i < options->subtables; i++)
		buckets += gh_cpu_level_buckets(options->subtables, level, i);
	return buckets * gh_cpu_slots(gh_cpu_shape(options));
}

/* Bytes of the block of a subtable of that many buckets. */
uint64_t
gh_cpu_block_bytes(const GhTableOptions *options, uint64_t buckets)
{
	GhCpuShape	shape = gh_cpu_shape(options);
	uint64_t	bytes = buckets << GH_CPU_BUCKET_SHIFT;

	if (!gh_cpu_has_values_inside(shape))
		bytes += buckets * gh_cpu_slots(shape) * gh_cpu_stride(options);
	return bytes;
}

/* The level at which so many keys fit under fill_max; false: beyond any table. */
bool
gh_cpu_level_for(const GhTableOptions *options, uint64_t keys, uint32_t *level)
{
	uint32_t	last = options->subtables *
		(GH_CPU_BUCKETS_SHIFT_MAX - __builtin_ctz(GH_CPU_BUCKETS_MIN));
	uint32_t	l;

	for (l = 0; l <= last; l++)
	{
		uint64_t	slots = gh_cpu_level_slots(options, l);
		double		fill = options->fill_max;

		if (l % options->subtables != 0 && fill > FILL_UNEVEN_MAX)
			fill = FILL_UNEVEN_MAX;
		if ((uint64_t) (fill * (double) slots) >= keys)
		{
			*level = l;
			return true;
		}
	}
	return false;
}
