/*
 * scan_device.cuh
 *		Scans: what is in device memory, and how kernels are told where; the host's struct; what
 *		the files scan*.cu offer each other.
 */
#ifndef GPUHASH_SCAN_DEVICE_CUH
#define GPUHASH_SCAN_DEVICE_CUH

#include "cuda/table/table.h"
#include "engine/pipeline/scan_row.h"

/* ------------------------------------------------------------- device memory */

/* What became of a line, in scan_work.state. */
enum line_state
{
	LINE_NONE,					/* not asked for, no tuple, or dropped by a filter */
	LINE_LIVE,					/* counted with its group */
	LINE_BACK,
	LINE_NO_GROUP,				/* handed back, too */
	LINE_PAGE					/* the first one of a page that is handed back whole */
};

/* scan_work.group where there is none: all bits, so that sorting puts it last. */
#define GROUP_NONE UINT32_MAX

/* A group's number in the lower half of its slot is one more; these are none. */
#define SLOT_BUSY UINT32_MAX	/* somebody is making the group */
#define SLOT_DEAD (UINT32_MAX - 1)	/* and could not */

/* What kernels change of the groups beside them. */
struct groups_used
{
	uint64_t	text_bytes;		/* may be beyond the room: then nothing more fits */
	uint32_t	groups;			/* the same */
	uint32_t	unused;
};

/* The groups (scan_groups.cu). */
struct groups_view
{
	uint64_t   *slots;			/* upper half of the hash, number + 1; 0: free */
	uint64_t	mask;			/* slots - 1 */
	char	   *records;		/* by group: GhScanGroup and keys */
	uint32_t	record_bytes;
	uint32_t	room;			/* groups: half the slots */
	GhAggregateState *states;	/* by group, of all aggregates */
	uint32_t   *begin;			/* by group: its rows in the sorted ones of a request */
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

/* What the table's values are: the rows' one value each, or numbers of rows. */
enum table_values
{
	VALUES_OF_ROWS,				/* of one word, none NULL, and each key has one row */
	VALUES_NUMBERS
};

/* With VALUES_NUMBERS: the row is one of several with its key; or the number is a place among members. */
#define ROW_SEVERAL ((uint64_t) 1 << 63)
/* Of a member: the next one has another key. */
#define MEMBER_LAST ((uint32_t) 1 << 31)

/* Which rows of a table have a key: where matches are marked, some have none. */
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

/* A table that was made. */
struct made_table
{
	table_view	view;			/* of 8-byte keys with 8-byte values */
	table_values values;
	const uint64_t *words;		/* of rows, one behind the other */
	uint32_t	row_words;
	const char *texts;
	const uint32_t *members;	/* rows by key, where joins find all of several; else NULL */
	/*
	 * A bit for each row, and then one for each place among members: of the one that a key has for its value, 1:
	 * a join found it.  NULL: there are none.
	 */
	uint32_t   *marks;
	const uint64_t *keys;		/* by row, where there are marks */
	keyed_rows	keyed;
	uint64_t	rows;
};

/* A join; parts and fills are in the plan. */
struct join_view
{
	uint32_t	kind;			/* a GhScanJoinKind */
	uint32_t	multiplies;		/* 1: a row may become several */
	uint32_t	nparts;
	uint32_t	nfills;
	const GhScanPart *parts;
	const join_fill *fills;
	made_table	table;
};

/* The plan; all of it is read only. */
struct plan_view
{
	const GhProgram *program;
	const GhPageShape *shape;
	const GhScanKey *keys;
	const GhAggregate *aggregates;
	const scan_input *inputs;
	const uint8_t *input_of;	/* by aggregate */
	const join_view *joins;
	const GhScanPart *parts;	/* of the key of the table that is made */
	const kept_value *kept;		/* of rows, of a table or that are returned */
	uint32_t	nkeys;
	uint32_t	naggregates;
	uint32_t	ninputs;		/* words of a row, where rows are kept */
	uint32_t	njoins;
	uint32_t	joins_at;
	uint32_t	multiplies;		/* 1: one of the joins does */
	uint32_t	marks_matches;	/* of the table that is made */
	uint32_t	keyless_bit;	/* where it does; see scan_keyless_bit() */
	uint32_t	nparts;			/* not 0: a table is made */
	uint32_t	each_row;		/* 1: rows are returned, which keep their keys */
	uint32_t	nkept;
	uint32_t	page_bytes;
	uint32_t	seen_before;
	uint64_t	seed;
};

/* What a request counts, zero at first. */
struct scan_counters
{
	uint32_t	counted;
	uint32_t	seen;
	uint32_t	back;			/* rows and whole pages, also those without a group */
	uint32_t	no_group;
	uint32_t	groups_full;	/* 1: there were more groups than room */
	uint32_t	texts_full;
	uint32_t	segments;		/* groups that have rows */
	uint32_t	longs;			/* of them, more than SEGMENT_SHORT */
	uint32_t	chunks;
	uint32_t	unfit;			/* 1: a sum did not fit, which cannot be */
	uint32_t	extras;			/* places behind the lines that were asked for */
	uint32_t	extras_full;	/* 1: there were fewer */
	/* rows that came to the joins and no further, behind the first one..., and did not go back */
	uint32_t	came[GH_SCAN_JOINS_MAX + 1];
	/* in place of that where rows may become several; see match_tally */
	uint64_t	live[GH_SCAN_JOINS_MAX + 1];
	uint64_t	dropped[GH_SCAN_JOINS_MAX + 1];
	uint64_t	rows;
	uint64_t	wanted;			/* places behind the lines */
};

/* Of a row behind the lines. */
struct row_origin
{
	uint32_t	line;
	uint32_t	number;			/* among the line's rows, from 1 */
};

/*
 * What is known of a request's lines, page after page.  Where rows may become several, behind the lines
 * there are places for those that are not the first ones of their lines.
 */
struct lines_view
{
	uint32_t	count;
	uint32_t	extras;			/* places behind them */
	row_origin *origins;		/* of these */
	uint32_t   *derived;		/* by line, if it is live: rows that it became; NULL: one */
	uint32_t   *base;			/* by line: rows that are live before it */
	void	   *space;			/* to find that out */
	size_t		space_bytes;
	uint8_t    *state;			/* a line_state */
	uint32_t   *group;
	/* bit a: aggregate a takes the row; 0 where it is not live.  Of a table: the row's key */
	uint64_t   *takes;
	uint64_t   *low;			/* by input: an array of values; of rows that are kept: by word */
	uint64_t   *high;			/* by number of such an array */
	uint64_t	stride;			/* elements from one array to the next */
};

/* Values of the rows that the threads of a grid have at a time: vector by vector. */
struct scratch_view
{
	uint64_t   *low;
	uint64_t   *high;
	uint8_t    *null;
	uint32_t	threads;		/* of the grid: elements from one vector to the next */
};

/* The texts of rows that are kept, in no particular order. */
struct texts_view
{
	char	   *bytes;
	uint64_t	room;
	uint64_t   *used;			/* may be beyond the room: then nothing more fits */
};

struct pages_job
{
	plan_view	plan;
	groups_view groups;			/* or */
	texts_view	texts;			/* where rows are kept */
	lines_view	lines;
	scratch_view scratch;
	const GhScanPage *pages;
	const uint32_t *firsts;		/* by page: its first line in lines */
	const uint64_t *bitmaps;
	uint32_t	npages;
	scan_counters *counters;
};

/* A group's rows in a request; those of short segments are added at once. */
#define SEGMENT_SHORT 32
/* Rows of a long segment that a warp adds: its boundaries count from the segment's begin. */
#define CHUNK_ROWS 1024

struct long_segment
{
	uint32_t	group;
	uint32_t	first;			/* chunk */
	uint32_t	chunks;
};

/* Where the rows of a request become states; one for all requests of a scan. */
struct reduce_view
{
	uint32_t   *numbers;		/* 0, 1, 2... */
	uint32_t   *list;			/* places of rows, in their order, where there are extras, and */
	uint32_t   *groups;			/* their groups */
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

/* -------------------------------------------------------------------- the host */

#define SCAN_LANES 2			/* one has its pages read, the other is reduced */
#define SCAN_THREADS 128		/* of a block, which reads one page at a time */
/* Blocks on a multiprocessor: reading needs but a few, and other kernels shall have room. */
#define SCAN_BLOCKS 3

struct scan_block
{
	char	   *memory;			/* device */
	uint64_t	bytes;
};

enum lane_phase
{
	PHASE_READING,				/* pages into lines */
	PHASE_REDUCING				/* lines into states */
};

struct scan_lane
{
	cudaStream_t stream;
	cudaEvent_t read;			/* the pages are, and counters on the host */
	cudaEvent_t reduced;
	scan_block	block;			/* of all that follows, but host memory */
	scan_block	scratch_block;
	uint32_t	extras;			/* places behind the lines that a request has at least */
	lines_view	lines;
	GhScanPage *pages;
	uint32_t   *firsts;
	uint64_t   *bitmaps;
	scan_counters *counters;
	/* page-locked */
	char	   *host;			/* of pages, firsts and bitmaps, to be sent; of state */
	size_t		host_bytes;
	char	   *staged;			/* pages that the device cannot read where they are */
	size_t		staged_bytes;
	scan_counters *host_counters;
	GhScanPage *host_pages;
	uint32_t   *host_firsts;
	uint64_t   *host_bitmaps;
	uint8_t    *host_state;

	GhScanRequest *request;		/* NULL: the lane is free */
	lane_phase	phase;
	bool		refused;		/* its rows are to go back: a table has no room for them */
	uint64_t	generation;		/* of the groups, when its pages were read */
};

/* The rows of a table, and then the table (scan_table.cu); of rows that are returned, some of it. */
struct scan_rows
{
	scan_block	block;			/* keys and words */
	scan_block	texts_block;
	scan_block	used_block;		/* bytes of texts */
	scan_block	members_block;	/* the table's, as its marks are */
	scan_block	marks_block;
	uint64_t   *keys;			/* NULL when the table is made, but with marks */
	uint64_t   *words;			/* row by row */
	uint64_t	count;
	uint64_t	room;
	texts_view	texts;
	cuda_table *table;
	table_values values;
	uint64_t	table_bytes;	/* of table */
	bool		made;			/* or it was tried */
};

/* Memory of rows, one behind the other. */
struct records_piece
{
	scan_block	block;
	uint64_t   *words;
	uint64_t	first;			/* row */
};

/* Where rows are that are returned (scan_rows.cu); scan_rows has their number, and their texts. */
struct scan_records
{
	records_piece *pieces;
	uint32_t	count;
	uint32_t	places;			/* for pieces */
	uint64_t	room;			/* rows, of all pieces */
	scan_block	stage_block;	/* what records are made in */
	size_t		space_bytes;	/* of it, CUB's */
};

struct cuda_scan
{
	GhScan		base;			/* first: it is the handle */
	GhHost		host;
	GhScanPlan	plan;
	plan_view	view;
	scan_rows	rows;
	scan_records records;
	groups_view groups;
	uint64_t	generation;		/* of the groups: how often they have grown */
	uint32_t	nhighs;			/* inputs with a high word */
	uint32_t	multiprocessors;
	bool		direct;			/* the device reads registered memory by the host's addresses */
	bool		failed;			/* the device did; error says how */
	GhError		error;

	scan_block	plan_block;
	scan_block	groups_block;
	scan_block	texts_block;
	scan_block	reduce_block;
	reduce_view reduce;
	uint32_t	reduce_lines;	/* room */
	cudaStream_t reduce_stream;
	scan_lane  *reading;		/* whose pages were enqueued last, or NULL */

	scan_lane	lanes[SCAN_LANES];
	scan_lane  *flight[SCAN_LANES];	/* in use, oldest first */
	uint32_t	flying;
	GhScanRequest *pending;		/* not begun, oldest first */
	GhScanRequest *pending_last;

	uint64_t	lines_total;	/* of all requests */
	uint64_t	counted;
	uint64_t	bytes;			/* of groups and texts: under the limit */
	uint64_t	bytes_peak;
	uint64_t	work_bytes;		/* all other device memory */
};

/* For CUDA calls after which nothing of the scan can be trusted when they fail. */
#define SCAN_TRY(scan, call, error) \
	do { \
		cudaError_t scan_try_status = (call); \
		if (scan_try_status != cudaSuccess) \
			return scan_failed(scan, scan_try_status, #call, error); \
	} while (0)

/* --------------------------------------------------------------- scan_memory.cu */

extern GhStatus scan_failed(cuda_scan *scan, cudaError_t status, const char *call, GhError *error);
extern GhStatus scan_alloc(cuda_scan *scan, uint64_t bytes, bool limited, scan_block *block,
						   GhError *error);
extern void scan_free(cuda_scan *scan, bool limited, scan_block *block);
extern GhStatus scan_host_reserve(cuda_scan *scan, char **memory, size_t *room, size_t bytes,
								  GhError *error);
extern GhStatus scan_send(cuda_scan *scan, void *to, const void *from, uint64_t bytes,
						  cudaStream_t stream, GhError *error);
extern GhStatus scan_lane_reserve(cuda_scan *scan, scan_lane *lane, const GhScanRequest *request,
								  uint32_t lines, GhError *error);

/* ---------------------------------------------------------------- scan_plan.cu */

extern GhStatus scan_plan_upload(cuda_scan *scan, GhError *error);
/* Where a row that is kept has its value k, in the words of its rows. */
extern kept_value scan_kept_place(const GhScanPlan *plan, uint32_t k);
/* The bit of a row's words that says that it has no key, in a table that marks matches. */
extern uint32_t scan_keyless_bit(const GhScanPlan *plan);
/* Are rows kept: of a table, or to be returned? */
extern bool scan_keeps_rows(const cuda_scan *scan);
extern bool scan_keeps_texts(const cuda_scan *scan);

/* --------------------------------------------------------------- scan_groups.cu */

extern GhStatus groups_create(cuda_scan *scan, GhError *error);
extern void groups_destroy(cuda_scan *scan);
extern GhStatus groups_grow(cuda_scan *scan, const scan_counters *counters, bool *grown,
							GhError *error);
extern GhStatus groups_count(cuda_scan *scan, uint32_t *count, GhError *error);

/* ---------------------------------------------------------------- scan_table.cu */

extern GhStatus rows_create(cuda_scan *scan, GhError *error);
extern void rows_destroy(cuda_scan *scan);
extern GhStatus rows_grow_texts(cuda_scan *scan, bool *grown, GhError *error);
extern GhStatus rows_append(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint64_t rows,
							bool *refused, GhError *error);
extern GhStatus rows_refuse(cuda_scan *scan, const lines_view *lines, GhError *error);
extern GhStatus rows_extra_alloc(cuda_scan *scan, uint64_t bytes, scan_block *block, GhError *error);
extern GhStatus rows_make_table(cuda_scan *scan, GhScanTable *made, GhError *error);
extern keyed_rows rows_keyed(const cuda_scan *scan);
extern made_table rows_table(const cuda_scan *scan);

/* --------------------------------------------------------------- scan_chains.cu */

extern GhStatus chains_make(cuda_scan *scan, GhError *error);

/* ------------------------------------------------------------ scan_unmatched.cu */

extern GhStatus marks_make(cuda_scan *scan, GhError *error);
extern GhStatus unmatched_launch(cuda_scan *scan, const pages_job *job, uint64_t first_row,
								 cudaStream_t stream, GhError *error);

/* -------------------------------------------------------------- scan_collect.cu */

extern GhStatus collect_bytes(cuda_scan *scan, uint32_t lines, size_t *bytes, GhError *error);
extern GhStatus collect_launch(cuda_scan *scan, const lines_view *lines, GhError *error);
extern GhStatus collect_list(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint32_t *list,
							 uint32_t *groups, GhError *error);

/* Is there a row at a place of the lines or behind them?  *number: how many are before it. */
static __device__ __forceinline__ bool
row_at(const lines_view &lines, uint32_t place, uint32_t *number)
{
	row_origin	origin = {place, 0};

	if (place >= lines.count)
		origin = lines.origins[place - lines.count];
	if (lines.state[origin.line] != LINE_LIVE)
		return false;
	*number = lines.base[origin.line] + origin.number;
	return true;
}

/* ---------------------------------------------------------------- scan_rows.cu */

extern GhStatus records_create(cuda_scan *scan, GhError *error);
extern void records_destroy(cuda_scan *scan);
extern GhStatus records_reserve(cuda_scan *scan, uint64_t more, GhError *error);
extern GhStatus records_append(cuda_scan *scan, const lines_view *lines, uint32_t extras,
							   GhError *error);
extern GhStatus records_fetch(cuda_scan *scan, GhCursor *cursor, size_t capacity, char *buffer,
							  size_t *bytes, GhError *error);

/* ---------------------------------------------------------------- scan_pages.cu */

extern GhStatus pages_launch(cuda_scan *scan, const pages_job *job, cudaStream_t stream,
							 GhError *error);
extern uint32_t pages_blocks(const cuda_scan *scan);

/* --------------------------------------------------------------- scan_reduce.cu */

extern GhStatus reduce_reserve(cuda_scan *scan, uint32_t lines, GhError *error);
extern GhStatus reduce_launch(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint32_t rows,
							  scan_counters *counters, GhError *error);

/* ------------------------------------------------------------------ scan.cu */

extern const GhScanEngine cuda_scans;
extern GhStatus scan_wait_streams(cuda_scan *scan, GhError *error);

/* ------------------------------------------------------------ scan_counts.cu */

extern uint64_t counted_rows(const cuda_scan *scan, const scan_lane *lane);
extern uint32_t used_extras(const scan_lane *lane);
extern void tell_counts(const cuda_scan *scan, const scan_lane *lane, GhScanRequest *request);
extern void list_back(const cuda_scan *scan, const scan_lane *lane, GhScanRequest *request);

/* ---------------------------------------------------- scan_results.cu */

extern GhStatus scan_fetch(cuda_scan *scan, GhCursor *cursor, size_t capacity, char *buffer,
						   size_t *bytes, GhError *error);

#endif							/* GPUHASH_SCAN_DEVICE_CUH */
