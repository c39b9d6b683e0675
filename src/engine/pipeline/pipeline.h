/*
 * pipeline.h
 *		The pipeline ABI: rows in from one source, through operations in their order, into one sink.
 *
 * A pipeline is made once for a part of a query: the program, the source that its columns come from, the
 * steps, the sink.  Requests then bring rows.  Of each row the engine reads the columns and does the steps
 * one after the other: it runs instructions of the program, among them conditions that drop the row, or
 * probes a table, which fills more columns.  What is live behind the last step goes into the sink.
 *
 *	source		pages of a relation with what is visible on them; leaf pages of an index; the rows of a table that
 *				another pipeline has made; the groups of another pipeline.  Rows that the caller hands over as columns can
 *				enter any pipeline, before any step.
 *	step		run: the program's instructions up to a number; probe: of a table, with instructions
 *				as conditions on the pair of row and match
 *	sink		groups: keys and aggregates; a table: rows by a key; rows: values of each row; places: nothing
 *				but which rows came to the end
 *
 * A row that an engine cannot do as PostgreSQL does it is handed back, with the number of the step at which
 * that was seen, and nothing of it is in the sink: what page.h and program.h say of it, a value in a sum that
 * is very large (gh_aggregate_fits), no memory for its group or its place in a table, and a match that is marked to be
 * handed back.  A row that becomes more than GH_ROW_MATCHES_MAX rows by probes may be handed back, too: the CUDA
 * engine does so, the CPU engine does not.  Handing a row back is always right.  The caller has PostgreSQL compute what the engine could not; the row then enters the
 * pipeline again, before a step behind that one, as columns.  A page's column that cannot be read is seen when the page
 * is read, or, by an engine that reads columns late, at the first step that needs it, unless the row was dropped before.
 *
 * A row with several matches goes on once with each, and all that becomes of it reaches the sink, or it is
 * handed back as a whole.
 *
 * A request is done in full, but for what it hands back, or not at all.  It ends with GH_OK; with GH_STOPPED
 * or another error, and the sink is as it was; or with GH_DEVICE_ERROR, and the pipeline is lost.
 *
 * Requests, results and make_table look at GhHost.stop every few milliseconds.  A request that has ended with GH_STOPPED
 * can be submitted again, and is done from its start; groups that it found may be counted by stats, and marks that it
 * set stay, which are right once it is done.  Those behind it are done when the flag is no longer set.  A request of a
 * few thousand rows may be done to its end although the flag is set.
 *
 * Integers are exact.  Floats are added in an order that depends on the requests alone.
 *
 * Pages, keys and records of groups are those of record.h; of a record, rows is 1, but 0 of the one
 * group without keys where there are no rows.  Contract of every call: engine.h.  C11, C++17 and CUDA.
 */
#ifndef GPUHASH_PIPELINE_H
#define GPUHASH_PIPELINE_H

#include "engine/pipeline/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GH_STEPS_MAX 32
#define GH_PROBES_MAX 16
#define GH_VALUES_MAX 64		/* keys of a group, or values of a row: bits of GhRecordHead.nulls */

typedef struct GhPipeline GhPipeline;	/* a process's handle */
typedef struct GhMarks GhMarks; /* which rows of a table have had a match */
typedef struct GhPageSpan GhPageSpan;	/* room for pages on a device, which stay there from one request to the next */

/* ------------------------------------------------------------------- source */

typedef enum GhSourceKind
{
	GH_SOURCE_PAGES = 1,
	GH_SOURCE_GROUPS,			/* the groups of another pipeline, which takes no more requests meanwhile */
	GH_SOURCE_COLUMNS,			/* none of these: rows are handed over as columns alone */
	GH_SOURCE_LEAVES			/* leaf pages of a B-tree, of which all entries are asked for that are not known as dead */
} GhSourceKind;

/* What a column is of a group.  The column is INT for counts, else of the key's or the state's class. */
typedef enum GhGroupPart
{
	GH_GROUP_KEY = 1,
	GH_GROUP_COUNT,				/* of values of an aggregate; never NULL */
	GH_GROUP_VALUE				/* sum, least, greatest, truth: NULL where there were no values.  A sum of INT that
								 * needs more than 64 bits has its row handed back; of INT as INT128 it does not */
} GhGroupPart;

typedef struct GhGroupColumn
{
	uint8_t		part;			/* a GhGroupPart */
	uint8_t		number;			/* of the key, or of the aggregate */
} GhGroupColumn;

/*
 * Columns of the program whose attribute is at most natts come from the source.  Of pages, attribute n is the
 * tuple's, or the entry's.  Of groups it is columns[n - 1]: how such a column is loaded only says its class,
 * by the kind of GH_LOAD that has it.
 */
typedef struct GhPipelineSource
{
	uint32_t	kind;			/* a GhSourceKind */
	uint32_t	natts;
	uint32_t	page_bytes;		/* pages */
	/*
	 * Pages, where some are `hinted`: a transaction number: whatever was committed by earlier ones is
	 * seen, and none of them is still running.  0: there are no such pages.
	 */
	uint32_t	seen_before;
	const GhPageAttribute *attributes;	/* pages: natts */
	GhPipeline *groups;			/* groups: of this engine; it outlives the pipeline */
	const GhGroupColumn *columns;	/* groups: natts */
} GhPipelineSource;

static inline bool
gh_source_has_pages(const GhPipelineSource *source)
{
	return source->kind == GH_SOURCE_PAGES || source->kind == GH_SOURCE_LEAVES;
}

/* -------------------------------------------------------------------- steps */

typedef enum GhProbeKind
{
	GH_PROBE_INNER = 1,
	GH_PROBE_LEFT,				/* without a match the columns are NULL */
	GH_PROBE_SEMI,				/* rows that have a match, once; its columns are there for conditions on the pair alone */
	GH_PROBE_ANTI				/* rows that have none; likewise */
} GhProbeKind;

/* A column of the program that a match fills. */
typedef struct GhProbeFill
{
	uint16_t	column;			/* of the program: its attribute is more than the source's natts */
	uint16_t	kept;			/* number of a value that the table keeps, of the same class; 0 of a table that no
								 * pipeline made: its value, as an INT */
} GhProbeFill;

/*
 * Rows with a NULL in the key match nothing.  A match is a row of the table with the same key for which
 * the instructions of the step, which see the columns that it fills, drop nothing.
 */
typedef struct GhProbe
{
	GhTable    *table;			/* of this engine, with keys of 8 bytes and at most one value a key, or made by a
								 * pipeline; it does not change from submit on until the request has ended, and outlives
								 * this one's requests: what comes after them does not look at it */
	uint32_t	kind;			/* a GhProbeKind */
	uint32_t	nparts;			/* of the key: at least one */
	const GhKeyPart *parts;	/* vectors of INT that are set before the step */
	uint32_t	nfills;
	const GhProbeFill *fills;
	/*
	 * Of the table, or NULL: matches are marked there; INNER and LEFT.  Of a row that goes back behind this step all
	 * matches are marked; of one that goes back at it, or in front of it, none need be: that one has to enter again
	 * before it, or the marks are of no use.
	 */
	GhMarks    *marks;
	/*
	 * Keys whose rows are not those of `table`: a table as that one may be, of which keys alone matter; or NULL.  Matches of
	 * rows with such a key are looked for in `instead` alone, whose rows keep what the table's do; NULL: there are none.
	 * Without marks.
	 */
	GhTable    *changed;
	GhTable    *instead;
} GhProbe;

/*
 * The instructions of step i are those from the end of the step before it, or 0, up to `end`.  Of a run they are
 * run; of a probe they are the conditions on the pair.  The last step's end is the program's.
 */
typedef struct GhStep
{
	uint32_t	end;
	uint32_t	probe;			/* number of the probe + 1; 0: a run */
} GhStep;

/* --------------------------------------------------------------------- sinks */

typedef enum GhSinkKind
{
	GH_SINK_GROUPS = 1,
	GH_SINK_TABLE,
	GH_SINK_ROWS,
	GH_SINK_PLACES				/* rows that come to the end are listed in the request's `back` (GH_STEP_LIVE); none of
								 * them is several, so that no probe finds several rows */
} GhSinkKind;

/*
 * Few groups, behind few probes: engines add to them while they read pages, and take larger requests.  Behind
 * more probes few rows are left, which are better listed, and then added.
 */
#define GH_FEW_GROUPS 2048
#define GH_FEW_PROBES 2

/*
 * How texts compare, of an aggregate by its number: less than 0, 0, or more.  What compares as equal is the
 * same bytes. May not throw.
 */
typedef struct GhTextOrder
{
	int			(*compare) (void *arg, uint32_t aggregate, const char *a, uint64_t a_bytes, const char *b,
							uint64_t b_bytes);
	void	   *arg;
} GhTextOrder;

typedef struct GhGroupsSink
{
	uint32_t	nkeys;			/* 0: all rows are one group, which is there without rows, too */
	const GhRecordKey *keys;
	uint32_t	naggregates;
	const GhAggregate *aggregates;
	uint64_t	expected;		/* groups; 0: not known */
	uint64_t	seed;			/* of the hash of keys */
	/*
	 * 1: behind a row that is handed back, all rows of the request are.  So that sums of floats can be
	 * added in the order of the rows, by who has those that were handed back computed and enter again.  Of
	 * floats, then, not those are handed back that are very large, but one with which a sum overflows.
	 * GH_UNSUPPORTED by engines that add in another order, where rows become several, and with hinted pages.
	 */
	uint32_t	in_order;
	/*
	 * For the least and the greatest of texts: MIN and MAX of TEXT, which engines have that compare texts
	 * (GhPipelineEngine.compares_texts; GH_UNSUPPORTED by others), and with nothing here no engine (GH_INVALID).  In the states of a record, `low` is where the text
	 * begins in the record, and `high` its bytes.
	 */
	GhTextOrder order;
	/*
	 * More than 1: a row is added so many times, once for each set, to a group of each.  Of set s `keys` has nkeys from
	 * s * nkeys on, and `aggregates` naggregates from s * naggregates on, of the same classes and kinds as those of the
	 * first set; arguments are the same, filters may be others.  0 is 1.  GH_UNSUPPORTED by engines without (GhPipelineEngine.adds_sets), and in order.
	 */
	uint32_t	nsets;
} GhGroupsSink;

#define GH_SINK_SETS_MAX 8

static inline uint32_t
gh_sink_sets(const GhGroupsSink *sink)
{
	return sink->nsets > 1 ? sink->nsets : 1;
}

/* A value that a table's rows keep. */
typedef struct GhKept
{
	uint16_t	vector;			/* of the program, and set at its end */
	uint8_t		value_class;	/* what it holds: a GhClass */
	uint8_t		bytes;			/* INT: 2, 4 or 8, which hold every value; else 0 */
} GhKept;

typedef enum GhTableMatches
{
	GH_MATCHES_ALL = 1,			/* a probe finds all rows of a key */
	GH_MATCHES_ANY				/* one of them is enough: which one is left open */
} GhTableMatches;

typedef struct GhTableSink
{
	uint32_t	nparts;
	const GhKeyPart *parts;	/* of the key */
	uint32_t	nkept;
	const GhKept *kept;
	uint32_t	matches;		/* a GhTableMatches */
	/*
	 * 1: the rows stay there by their numbers, so that the table can be a source and marks can be made of it, and
	 * rows whose key is NULL are among them.  0: it can only be probed, and such rows are dropped.
	 */
	uint32_t	numbered;
	/* a vector of BOOL + 1: a match with a row where it is true hands the row that probes back; 0: none */
	uint32_t	back_vector;
	uint64_t	expected;		/* rows; 0: not known */
	uint64_t	seed;			/* of the table's hash functions */
	uint32_t	subtables;		/* and its options, as of GhTableOptions */
	double		fill_min;
	double		fill_max;
} GhTableSink;

typedef struct GhRowsSink
{
	uint32_t	nvalues;
	const GhRecordKey *values;	/* padded: 0 */
} GhRowsSink;

typedef struct GhSink
{
	uint32_t	kind;			/* a GhSinkKind, and the one of these that is looked at */
	GhGroupsSink groups;
	GhTableSink table;
	GhRowsSink	rows;
} GhSink;

/* ------------------------------------------------------------------ options */

typedef struct GhPipelineOptions
{
	const GhProgram *program;	/* aligned to 16 */
	size_t		program_bytes;
	GhPipelineSource source;
	uint32_t	nsteps;
	const GhStep *steps;
	uint32_t	nprobes;
	const GhProbe *probes;
	GhSink		sink;
	/*
	 * Bytes that the sink may take; 0: no limit; of a shared sink the root's counts.  While groups are moved to other
	 * memory, that which they leave is there, too.
	 */
	uint64_t	memory_limit;
	GhRef		shared_sink;	/* 0, or the root of a sink that several participants fill (share_sink) */
	int			device;			/* CUDA device number; the CPU engine: 0 */
} GhPipelineOptions;

/* ----------------------------------------------------------------- requests */

typedef enum GhInputKind
{
	GH_INPUT_PAGES = 1,			/* a source of pages, or of leaf pages: GH_PAGE_ALL_LINES of each, in no span, not hinted */
	GH_INPUT_COLUMNS,			/* any pipeline */
	GH_INPUT_SOURCE,			/* groups of a source that is groups, first up to first + count */
	GH_INPUT_UNMATCHED			/* of the table of a probe with marks, rows without a mark, numbers first up to first + count;
								 * they come out of the probe with NULLs in all columns of the source and of probes before;
								 * one that is to be handed back (back_vector) goes back at the step of the probe */
} GhInputKind;

/* Behind the last step: the sink.  Steps are numbered from 0. */
#define GH_STEP_VISIBILITY UINT16_C(0xFFFE) /* whether the tuple is visible its header does not tell */
#define GH_STEP_LIVE UINT16_C(0xFFFF)	/* places: the row came to the end */

/* A row that is handed back, or listed.  line 0: all that was asked of the page. */
typedef struct GhBackRow
{
	uint32_t	page;			/* pages: of the request's, from 0; else the row, from 0 of the request's */
	uint16_t	line;			/* pages: offset number; else 0 */
	uint16_t	step;			/* at which it was seen that it goes back */
} GhBackRow;

/*
 * The caller zeroes the struct, fills the first part, submits it and leaves it, its arrays and the
 * pages alone until poll or wait says other than GH_BUSY.
 */
typedef struct GhPipelineRequest
{
	uint32_t	kind;			/* a GhInputKind */
	bool		readable;		/* pages: each that is given is where the device reads it: registered, or its own */
	uint32_t	npages;			/* pages: of the list */
	const GhPageRef *pages;		/* the list; that of an engine that takes runs may have some */
	const uint16_t *page_lines; /* where it has: lines of each page, those of runs one by one; else it may be NULL */
	const uint64_t *bitmaps;
	uint64_t	nbitmaps;		/* words */
	/*
	 * Pages: spans that some of them are in, or are put into, of this engine and of the pipeline's device, with pages as
	 * large as the source's.  They outlive the request.  A place that a page is put into is named by no other page of
	 * requests that have not ended; it has the page when this one has ended with GH_OK, and until then anything.
	 */
	uint32_t	nspans;			/* GH_REQUEST_SPANS_MAX at most */
	GhPageSpan *const *spans;
	/*
	 * Columns: the row enters before this step.  Vectors that steps from there on or the sink read, and that
	 * nothing from there on sets, are among those that are given.  Unmatched: the step that is the probe.
	 */
	uint32_t	step;
	uint32_t	ngiven;
	const uint16_t *given;		/* columns: numbers of vectors */
	const GhVector *vectors;	/* their values, count each; high where some value of the vector has one; texts' bytes
								 * are the caller's */
	/*
	 * Instead of vectors, before step 0, of an engine that takes them (takes_packed): columns of the program, packed, of which
	 * rows first up to first + count enter: of these, where there are bitmaps, those whose bits are set.
	 */
	const struct GhPackedColumn *const *packed;
	uint64_t	first;			/* source, unmatched, packed columns: from 0 */
	uint64_t	count;			/* rows; columns: GH_REQUEST_LINES_MAX at most */
	GhBackRow  *back;			/* room for as many as the pages have lines, or there are rows */
	uint64_t	back_room;

	/* -- results, valid once the request is not busy; all 0 where it did not end with GH_OK -- */
	uint64_t	nback;			/* of back, in the order of pages and lines */
	uint64_t	seen;			/* tuples that were asked for and are visible, but for GH_STEP_VISIBILITY; rows */
	uint64_t	counted;		/* rows that went into the sink */
	uint64_t	passed[GH_STEPS_MAX];	/* rows, of those not handed back, behind each step */
	uint64_t	no_memory;		/* of back: for whose group, or place in a table, there was no memory */
	GhStatus	status;
	GhError		error;			/* when status is an error */

	/* -- the engine's own, from submit on -- */
	GhPipeline *pipeline;
	uint64_t	engine_state[4];
} GhPipelineRequest;

/* ------------------------------------------------------------------- results */

typedef struct GhPipelineStats
{
	uint64_t	entries;		/* groups, rows kept, or rows of the table */
	uint64_t	counted;		/* rows that went into the sink */
	uint64_t	bytes;			/* memory of the sink: host for cpu, device for cuda */
	uint64_t	bytes_peak;
	uint64_t	work_bytes;		/* device memory that requests are worked on in, beside that */
} GhPipelineStats;

/*
 * A table that a pipeline made.  It does not change any more: of the calls of engine.h it takes GH_FIND,
 * GH_COUNT and statistics, and answers GH_INVALID to all others.  A request's keys are what the parts of the
 * sink make of a row (gh_key_part_add).  To requests it is a table of single values of value_size bytes, or a
 * set where that is 0.
 */
typedef struct GhMadeTable
{
	GhTable    *table;			/* the caller's, to be destroyed as any table */
	uint64_t	rows;			/* numbered from 0 */
	bool		several;		/* some key has several */
	/*
	 * 8: the value is what the key's row keeps, an INT, or what is absent where that is NULL.  0: its rows keep something
	 * else, a probe finds several of a key, or some row hands back.
	 */
	uint32_t	value_size;
} GhMadeTable;

/* ------------------------------------------------------------------ overlays */

/* In GhTableOverlay.from: the column is part number from - GH_OVERLAY_KEY of the key that looks the row up. */
#define GH_OVERLAY_KEY UINT16_C(0x8000)

/*
 * A table that a pipeline made, as this handle is to show it: with other columns, and without some keys, the
 * rows of which are looked up in another table.  Which keys these are is what the filter says: all that it
 * may have, also those that were never added.
 */
typedef struct GhTableOverlay
{
	uint32_t	nkept;			/* columns that probes see */
	const GhKept *kept;			/* and what they hold; `vector` is not looked at */
	const uint16_t *from;		/* by column: which of the table's own it is, or of the key (GH_OVERLAY_KEY) */
	const struct GhKeyFilter *filter;	/* its keys are looked up in `instead` alone; NULL: none are.  As long as the handle */
	GhTable    *instead;		/* a table that a pipeline made, with these columns; NULL: it has no rows */
} GhTableOverlay;

/* ------------------------------------------------------------------- engines */

struct GhPipelineEngine
{
	/*
	 * GH_INVALID: the options; GH_UNSUPPORTED: legal, but not by this engine; GH_LIMIT, GH_NO_MEMORY,
	 * GH_DEVICE_ERROR.  The options' arrays are copied, then checked.
	 */
	GhStatus	(*create) (const GhHost *host, const GhPipelineOptions *options, GhPipeline **pipeline,
						   GhError *error);
	void		(*destroy) (GhPipeline *pipeline);	/* waits for what is in flight, looks at no request */

	/* As GhEngine's; requests take effect in the order of submission. */
	GhStatus	(*submit) (GhPipeline *pipeline, GhPipelineRequest *request);
	GhStatus	(*poll) (GhPipelineRequest *request);
	GhStatus	(*wait) (GhPipelineRequest *request);

	/*
	 * Of groups and rows: writes records (GhRecordHead) that the cursor has not passed to buffer, aligned to
	 * 8.  *bytes is how many bytes came, also 0.  GH_TOO_SMALL: the next record alone needs *bytes.  Waits
	 * for all requests.  GH_STOPPED: none came, and the cursor is good for the next call; requests that had not
	 * ended may have been stopped, too.  Of groups on the CPU the cursor's position is how many groups it has passed,
	 * and may be set to any number.
	 */
	GhStatus	(*results) (GhPipeline *pipeline, GhCursor *cursor, size_t capacity, void *buffer,
							size_t *bytes, GhError *error);
	/* Empties the sink, but for a table; it keeps its memory. */
	GhStatus	(*clear) (GhPipeline *pipeline, GhError *error);
	/*
	 * Makes the table of the rows of all requests; there may be no more requests after it.  GH_STOPPED: there is no
	 * table, and the rows are as they were, so that it can be called again.  Requests that had not ended may have been
	 * stopped, too, and their rows are missing unless they are submitted again before.  GH_NO_MEMORY, GH_LIMIT: only
	 * destroy is left.
	 */
	GhStatus	(*make_table) (GhPipeline *pipeline, GhMadeTable *made, GhError *error);
	GhStatus	(*stats) (GhPipeline *pipeline, GhPipelineStats *stats, GhError *error);
	/*
	 * What the requests through this handle took so far, in all: from submission until the engine had them, and in it.
	 * NULL: nobody takes the time.
	 */
	void		(*times) (const GhPipeline *pipeline, uint64_t *queue_ns, uint64_t *device_ns);

	/*
	 * Room for so many pages on a device, GH_SPAN_PAGES_MAX at most, what is in it undefined.  Pipelines may use it at the
	 * same time, each in a thread of its own, and any thread may destroy it when no request that names it is in
	 * flight.  GH_INVALID, GH_NO_MEMORY, GH_LIMIT, GH_DEVICE_ERROR.
	 */
	GhStatus	(*span_create) (const GhHost *host, int device, uint32_t page_bytes, uint32_t npages, GhPageSpan **span,
								GhError *error);
	void		(*span_destroy) (GhPageSpan *span);

	bool		takes_runs;		/* pages of a request may be runs (GhPageRef.run) */
	bool		takes_packed;	/* columns may be packed (packed.h) */

	/* Marks of a table that a pipeline made, none at first.  They belong to a query, the table does not. */
	GhStatus	(*marks_create) (const GhHost *host, GhTable *table, GhMarks **marks, GhError *error);
	void		(*marks_destroy) (GhMarks *marks);

	/* Gives back what pipelines that ended have left for others to come; NULL: nothing is left. */
	void		(*give_back) (void);

	/*
	 * A table that several participants make, each in a process of its own, with memory that they share: each has
	 * a GhHost, with a lock, that names it by the same refs.  The steps, between which the caller has everybody wait
	 * for everybody:
	 *
	 *	share_sink		One participant; its options are those of all.
	 *	create			Each, with the root in its options; then requests.
	 *	finish			Each, when none of its rows is to come any more: its rows go to all.
	 *	index_begin		One.
	 *	index_enter		Each that likes to take part: enters rows until none is left.  *ready: the table was ready before.
	 *					Else, index_begin and index_enter again.
	 *	table_attach	Each: a handle on the table, as make_table gives one, at any time from then on.
	 *
	 * Handles are given back by table_detach; by table_destroy, the last one, the table goes with all.  Before there is
	 * a handle, and where none is to come, unshare_sink frees it, when the pipelines that fill it are gone.
	 *
	 * Errors.  finish: GH_NO_MEMORY, GH_LIMIT, GH_STOPPED; it can be called again.  A pipeline with requests that is destroyed
	 * without it has lost its rows: index_begin says GH_INVALID.  So it does where not all have finished, and where
	 * somebody went away from index_enter with rows half done.  It may say GH_NO_MEMORY and GH_LIMIT, too.  After an
	 * error of it everybody gets that from index_enter, and only unshare_sink is left.  index_enter: GH_STOPPED, with
	 * nothing lost: it can be called again, or left to others; likewise GH_NO_MEMORY and GH_LIMIT, unless it was the
	 * index that had none, of which index_begin then knows.
	 *
	 * A process that ends without a word leaves its memory to whoever frees the host's as a whole.
	 */
	bool		shares_sinks;	/* false: the functions from here on are NULL */
	GhStatus	(*share_sink) (const GhHost *host, const GhPipelineOptions *options, GhRef *root, GhError *error);
	void		(*unshare_sink) (const GhHost *host, GhRef root);
	GhStatus	(*finish) (GhPipeline *pipeline, GhError *error);
	GhStatus	(*index_begin) (const GhHost *host, GhRef root, GhError *error);
	GhStatus	(*index_enter) (const GhHost *host, GhRef root, bool *ready, GhError *error);
	GhStatus	(*table_attach) (const GhHost *host, GhRef root, GhMadeTable *made, GhError *error);
	/*
	 * The handle shows the table so to pipelines that are created after this.  The other two tables are of this engine, and
	 * outlive it.  It can be probed, without marks, and takes no requests of engine.h any more.  GH_INVALID: columns do not
	 * agree.  GH_NO_MEMORY.
	 */
	GhStatus	(*table_overlay) (GhTable *table, const GhTableOverlay *overlay, GhError *error);

	bool		compares_texts;	/* groups may have the least and the greatest of texts (GhGroupsSink.order) */
	bool		adds_sets;		/* rows may be added for several sets (GhGroupsSink.nsets) */
};

/* The first fields of every handle. */
struct GhPipeline
{
	const GhPipelineEngine *engine;
	const struct GhPipelinePlan *plan;
};

struct GhPageSpan
{
	const GhPipelineEngine *engine;
	int			device;
	uint32_t	page_bytes;
	uint32_t	npages;
};

/* cpu_pipeline.c */
extern const GhPipelineEngine gh_cpu_pipelines;

/* --------------------------------------------- for the engines: pipeline.c */

/* What an engine says of a table, for the check of those who probe it. */
typedef struct GhTableShape
{
	uint32_t	nkept;
	GhKept		kept[GH_TABLE_KEPT_MAX];
	bool		several;		/* some key may have several rows */
	bool		numbered;		/* its rows are there by number */
	uint64_t	rows;			/* if so: how many */
} GhTableShape;

/* The value_size of a table of that shape; back: some row hands back. */
static inline uint32_t
gh_made_value_size(const GhTableShape *shape, bool back)
{
	bool		is_value = shape->nkept == 1 && shape->kept[0].value_class == GH_CLASS_INT;

	return is_value && !shape->several && !back ? sizeof(uint64_t) : 0;
}

/* Options that were copied and accepted, with what follows from them. */
typedef struct GhPipelinePlan
{
	GhPipelineOptions options;	/* what it points to is the plan's */
	GhPageShape shape;			/* pages: of the columns that are in the page */
	uint8_t		wide[GH_PROGRAM_VECTORS_MAX];	/* 1: some value of the vector has a high word */
	/* by step, and behind the last: bit v: vector v, no constant, is read from there on and set before */
	uint64_t	needed[GH_STEPS_MAX + 1][GH_PROGRAM_VECTORS_MAX / 64];
	GhTableShape *probed;		/* by probe */
	uint32_t	group_bytes;	/* of GhRecordHead and the keys, in an engine's memory */
	bool		keeps_texts;	/* groups: some aggregate is the least or the greatest of texts */
	void	   *memory;			/* malloc()ed */
} GhPipelinePlan;

/* Tells the shape of a table of the engine; false: it is no table that can be probed. */
typedef bool (*GhTableDescribe) (const GhTable *table, GhTableShape *shape);

extern GhStatus gh_pipeline_plan_init(GhPipelinePlan *plan, const GhPipelineEngine *engine, GhTableDescribe describe,
									  const GhPipelineOptions *options, GhError *error);
extern void gh_pipeline_plan_drop(GhPipelinePlan *plan);
/* Results as they are of a request that has none. */
extern void gh_pipeline_request_clear(GhPipelineRequest *request);

/* What the engine knows of a pipeline that is to take a request. */
typedef struct GhPipelineIntake
{
	uint64_t	groups;			/* of a source that is groups: how many there are now */
	bool		made;			/* its table was: it takes no more */
	uint64_t	submitted;		/* rows so far, of all requests that it has taken */
} GhPipelineIntake;

/*
 * A request that is submitted.  GH_BUSY: it is one that the pipeline takes, and is the engine's to do; it is
 * counted in the intake, and *rows are lines of all pages, or rows.  Else the error, which the request has,
 * too.
 */
extern GhStatus gh_pipeline_request_take(GhPipeline *pipeline, GhPipelineRequest *request, GhPipelineIntake *intake,
										 uint64_t *rows);
/* May an engine make a span of these? */
extern GhStatus gh_span_check(uint32_t page_bytes, uint32_t npages, GhError *error);
/* How many pages a list has, those of runs one by one. */
extern uint64_t gh_request_pages(const GhPageRef *list, uint32_t count);
/* The keys of groups, or the values of rows: *count of them. */
extern const GhRecordKey *gh_pipeline_keys(const GhPipelineOptions *options, uint32_t *count);
/* Of a set of groups: may some aggregate of it take a row?  Else rows just have their groups there. */
extern bool gh_sink_set_adds(const GhPipelineOptions *options, uint32_t set);
/* The first instruction of a step. */
extern uint32_t gh_step_begin(const GhPipelineOptions *options, uint32_t step);
/* May a row become several in this probe, of an accepted plan? */
extern bool gh_probe_multiplies(const GhPipelinePlan *plan, uint32_t probe);
/* pipeline_check.c: of options whose arrays were copied. */
extern GhStatus gh_pipeline_check(GhPipelinePlan *plan, const GhPipelineEngine *engine, GhTableDescribe describe,
								  GhError *error);

#ifdef __cplusplus
}
#endif

#endif							/* GPUHASH_PIPELINE_H */
