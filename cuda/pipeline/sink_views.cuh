/*
 * sink_views.cuh
 *		What the kernels of pipelines work on in device memory: groups, lines and their sums, what rows keep.
 */
#ifndef GPUHASH_SINK_VIEWS_CUH
#define GPUHASH_SINK_VIEWS_CUH

#include "cuda/table/table.h"
#include "engine/pipeline/record_row.h"

/* ------------------------------------------------------------- device memory */

/* What became of a line, in lines_view.state. */
enum line_state
{
	LINE_NONE,					/* its row goes back */
	LINE_LIVE					/* counted with its group */
};

/* lines_view.group where there is none: all bits, so that sorting puts it last. */
#define GROUP_NONE UINT32_MAX

/* A group's number in the lower half of its slot is one more; these are none. */
#define SLOT_BUSY UINT32_MAX	/* somebody is making the group */
#define SLOT_DEAD (UINT32_MAX - 1)	/* and could not */

/* What kernels change of the groups beside them. */
struct groups_used
{
	uint64_t	text_bytes;		/* may be beyond the room: then nothing more fits */
	uint32_t	groups;
	uint32_t	claims;			/* to room for a group: made, being made, or dead */
	uint32_t	dead;			/* slots of groups that could not be made */
	uint32_t	unused;
};

/* The groups. */
struct groups_view
{
	uint64_t   *slots;			/* upper half of the hash, number + 1; 0: free */
	uint64_t	mask;			/* slots - 1 */
	char	   *records;		/* by group: GhRecordHead and keys */
	uint32_t	record_bytes;
	uint32_t	room;			/* groups: half the slots */
	GhAggregateState *states;	/* by group, of all aggregates */
	uint32_t   *begin;			/* by group: its lines in the sorted ones */
	uint32_t   *end;
	char	   *texts;
	uint64_t	text_room;		/* bytes */
	groups_used *used;
};

/* An argument of aggregates that need its values. */
struct scan_input
{
	uint16_t	vector;
	uint16_t	high;			/* number of its array of high words + 1; 0: it has none */
};

/* A value that a table keeps, in the words of its rows. */
struct kept_value
{
	uint16_t	vector;			/* of the program whose rows they are */
	uint16_t	word;			/* its first one of a row's */
	uint16_t	null_word;
	uint8_t		null_bit;
	uint8_t		value_class;
};

/* The same as it fills a column. */
struct join_fill
{
	uint16_t	column;
	kept_value	kept;
};

/* Of a value of a table's index: the key has several rows, and the value is a place among members. */
#define ROW_SEVERAL ((uint64_t) 1 << 63)
/* Of a member: the next one has another key. */
#define MEMBER_LAST ((uint32_t) 1 << 31)

/* Which rows of a table have a key: where rows are numbered, some have none. */
struct keyed_rows
{
	const uint64_t *words;		/* of rows, one behind the other; NULL: all have one */
	uint32_t	row_words;
	uint32_t	bit;			/* of a row's: 1: it has none */
};

static __device__ __forceinline__ bool
has_key(const keyed_rows &keyed, uint64_t row)
{
	return keyed.words == nullptr ||
		(keyed.words[row * keyed.row_words + keyed.bit / 64] >> keyed.bit % 64 & 1) == 0;
}

/* Of the plan, what the program, groups and their sums need; all of it is read only. */
struct plan_view
{
	const GhProgram *program;
	const GhRecordKey *keys;
	const GhAggregate *aggregates;
	const scan_input *inputs;
	const uint8_t *input_of;	/* by aggregate */
	uint32_t	nkeys;			/* of a set */
	uint32_t	naggregates;	/* likewise */
	uint32_t	ninputs;
	uint32_t	nsets;			/* of groups to which each line is added: 1, or GhGroupsSink.nsets */
	uint64_t	seed;
};

/* The plan, with the keys and aggregates of a set; all else is the same of all sets. */
static __host__ __device__ __forceinline__ plan_view
plan_of_set(plan_view plan, uint32_t set)
{
	plan.keys += set * plan.nkeys;
	plan.aggregates += set * plan.naggregates;
	return plan;
}

/* What groups count, zero at first; what is in front of unfit, before each piece. */
struct scan_counters
{
	uint32_t	no_group;
	uint32_t	groups_full;	/* 1: there were more groups than room */
	uint32_t	texts_full;
	uint32_t	segments;		/* groups that have rows */
	uint32_t	longs;			/* of them, more than SEGMENT_SHORT */
	uint32_t	chunks;
	uint32_t	unfit;			/* 1: a sum did not fit, which cannot be */
};

/* What is known of the lines that go to the sink. */
struct lines_view
{
	uint32_t	count;
	uint8_t    *state;			/* a line_state */
	uint32_t   *group;			/* of a set; all sets have an array of `stride` each, one behind the other */
	uint64_t   *takes;			/* bit a: aggregate a of that set takes the row; 0 where it is not live */
	uint64_t   *low;			/* by input: an array of values */
	uint64_t   *high;			/* by number of such an array */
	uint64_t	stride;			/* elements from one array to the next */
};

/* A group's lines; those of short segments are added at once. */
#define SEGMENT_SHORT 32
/* Rows of a long segment that a warp adds: its boundaries count from the segment's begin. */
#define CHUNK_ROWS 1024

struct long_segment
{
	uint32_t	group;
	uint32_t	first;			/* chunk */
	uint32_t	chunks;
};

/* Where lines become states. */
struct reduce_view
{
	uint32_t   *numbers;		/* 0, 1, 2... */
	uint32_t   *sorted;			/* the lines' groups */
	uint32_t   *order;			/* lines, by group and then in their order */
	void	   *sort_space;
	size_t		sort_bytes;
	uint32_t   *segments;		/* their groups */
	long_segment *longs;
	uint2	   *chunks;			/* from and up to which of order */
	GhAggregateState *partial;	/* by chunk, of all aggregates */
	uint32_t   *partial_rows;	/* by chunk */
};

#endif							/* GPUHASH_SINK_VIEWS_CUH */
