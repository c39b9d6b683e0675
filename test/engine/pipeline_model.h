/*
 * pipeline_model.h
 *		What the tests of pipelines share: stages, which are pipelines that read or probe what stages
 *		before them made, and a model of what an engine must make of them, row by row.
 *
 * The model knows the value of everything, also of what no engine can compute: a text that is not in the
 * page, the result of a division by zero.  So it says which rows must go back, and plays the part of
 * PostgreSQL for these: they enter again, as columns.
 */
#ifndef PIPELINE_MODEL_H
#define PIPELINE_MODEL_H

#include "page_trial.h"
#include "engine/pipeline/pipeline.h"

#define STAGES_MAX 4
#define STAGE_PROBES_MAX 3
#define STAGE_KEPT_MAX 8
#define STAGE_PARTS_MAX 3
#define STAGE_KEYS_MAX 8		/* or values of rows */
#define STAGE_AGGREGATES_MAX 12
#define STAGE_SETS_MAX GH_SINK_SETS_MAX
#define STAGE_COLUMNS_MAX 16	/* of a source */

#define CREW_MAX 4

/*
 * Participants that fill tables together.  Each has a host with the same memory at an address of its own, and
 * only one of these can be touched at a time: that of the participant at work.
 */
typedef struct Member
{
	struct Crew *crew;
	GhHost		memory;			/* of the arena */
	GhHost		host;			/* what the engine gets */
} Member;

typedef struct Crew
{
	uint32_t	count;
	uint32_t	at_work;
	struct Arena *arena;
	HostState	state;			/* calls, and which of them fail */
	Member		members[CREW_MAX];
} Crew;

/* Of a row of leaf pages in `untold`: it goes back, whatever is read of it. */
#define UNTOLD_ENTRY 3

/* Vectors that are set by nothing that steps behind can read. */
#define NEVER UINT32_MAX

/* Rows of values, `width` each. */
typedef struct RowList
{
	uint32_t	width;
	uint64_t	count;
	uint64_t	room;
	GhValue    *values;
	bool	   *failed;			/* by row: an engine cannot have got as far with it */
} RowList;

/*
 * A table that was made: what it keeps of each row, in the order of the rows' numbers where they have some.
 */
typedef struct ModelTable
{
	GhTable    *table;
	GhTable    *tables[CREW_MAX];	/* of a crew: of its first participant the same */
	uint32_t	nkept;
	GhKept		kept[STAGE_KEPT_MAX];	/* classes and bytes */
	RowList		rows;			/* of what is kept */
	uint64_t   *keys;
	bool	   *has_key;
	bool	   *back;			/* a match with it goes back */
	bool		several;		/* of some key there are several rows */
	bool		all;			/* probes find them all */
	bool		numbered;
	/* how its key is made, so that other stages can make some that match */
	uint32_t	nparts;
	uint8_t		bits[STAGE_PARTS_MAX];
	uint8_t		domain[STAGE_PARTS_MAX];	/* values below 2 to the power of it, which are negative or not */
	bool		negative[STAGE_PARTS_MAX];
} ModelTable;

typedef struct ModelGroup
{
	uint64_t	rows;
	GhValue		keys[STAGE_KEYS_MAX];
	GhAggregateState states[STAGE_AGGREGATES_MAX];
} ModelGroup;

typedef struct Stage
{
	/* what it is */
	Parts		parts;
	Trial	   *pages;			/* of a source of pages; else NULL */
	struct Stage *source_groups;
	GhGroupColumn group_columns[STAGE_COLUMNS_MAX];
	GhProgram  *program;
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];
	uint32_t	born[GH_PROGRAM_VECTORS_MAX];	/* the first step in front of which the vector is set */
	GhPipelineOptions options;
	GhStep		steps[GH_STEPS_MAX];
	GhProbe		probes[STAGE_PROBES_MAX];
	GhKeyPart	probe_parts[STAGE_PROBES_MAX][STAGE_PARTS_MAX];
	GhProbeFill fills[STAGE_PROBES_MAX][STAGE_KEPT_MAX];
	ModelTable *probed[STAGE_PROBES_MAX];
	bool		marking[STAGE_PROBES_MAX];
	GhRecordKey	keys[STAGE_SETS_MAX * STAGE_KEYS_MAX];	/* of groups, set by set, or values of rows */
	GhAggregate aggregates[STAGE_SETS_MAX * STAGE_AGGREGATES_MAX];
	GhKeyPart	table_parts[STAGE_PARTS_MAX];
	GhKept		kept[STAGE_KEPT_MAX];
	ModelTable	made;			/* of a table: its key is drawn, the rest comes of it */
	RowList		source;			/* all rows of the source; of columns, the test puts them here */
	uint64_t	asked;			/* so many of them are asked for */
	GhBackRow  *places;			/* of pages: where each is */
	uint8_t    *untold;			/* of pages: the header does not tell whether it is visible; 2: but it is; or
								 * UNTOLD_ENTRY */
	uint64_t	cut;			/* rows, or pages, of a request */
	bool		in_spans;		/* of pages: spans are made for some of them when the stage runs */

	/* an engine's */
	const GhEngine *engine;
	GhHost		host;
	GhPipeline *pipeline;
	GhMarks    *marks[STAGE_PROBES_MAX];
	uint32_t	nspans;
	GhPageSpan *spans[GH_REQUEST_SPANS_MAX];
	/* of a crew: who takes part, and what each but the first has */
	Crew	   *crew;
	uint32_t	nmembers;		/* 0: there is no crew */
	uint32_t	first_member;
	GhRef		shared_sink;
	GhPipeline *pipelines[CREW_MAX];	/* the first one's, too */

	/* the model's */
	RowList		sink;			/* rows that are in the sink */
	bool	   *matched[STAGE_PROBES_MAX];	/* by row of the probed table */
	bool		marks_lost[STAGE_PROBES_MAX];	/* whether a row has a match, only PostgreSQL knows */
	ModelGroup *groups;
	uint64_t	ngroups;
	uint64_t	lost;			/* rows that the sink took not, which is the caller's to bear */
	uint64_t	backs;			/* rows that were handed back, each time */
	bool		scarce;			/* memory may be refused */
	uint64_t	most;			/* rows on the way at a time, and */
	uint64_t	looks;			/* at rows of tables */
	bool		too_many;
} Stage;

/* What must become of a row that enters. */
typedef struct Fate
{
	uint64_t	must;			/* bit s: at step s it is seen that the row goes back, and so it must */
	uint64_t	may;			/* or may */
	uint64_t	passed[GH_STEPS_MAX];
	uint64_t	pairs;			/* with the key of rows on the way */
	bool		marking;		/* matches are marked */
} Fate;

/* ------------------------------------------------------ pipeline_model.c */

extern void rows_init(RowList *rows, uint32_t width);
extern void rows_drop(RowList *rows);
extern GhValue *rows_add(RowList *rows, const GhValue *values, bool failed);
static inline GhValue *
rows_at(const RowList *rows, uint64_t row)
{
	return rows->values + row * rows->width;
}

/* A key of parts; false: it is NULL. */
extern bool model_key(const GhKeyPart *parts, uint32_t nparts, const GhValue *values, uint64_t *key);
/* Rows in front of step `from` to what they are in front of step `to`, put to `out`. */
extern void model_advance(Context *c, Stage *stage, const RowList *in, uint32_t from, uint32_t to, Fate *fate,
						  RowList *out);
/*
 * Of rows that came through all steps: whether the sink takes them; those that are none of its own are left
 * out.
 */
extern void model_sink(Stage *stage, RowList *rows, Fate *fate);
/* The row that comes out of a probe with a row of its table that has no match. */
extern void model_unmatched(Context *c, Stage *stage, uint32_t step, uint64_t row, GhValue *values);
/* Constants in their vectors, all else NULL. */
extern void model_blank(const Stage *stage, GhValue *values);
/* An order of texts that is not that of their bytes. */
extern const GhTextOrder model_order;
extern void model_groups(Stage *stage);
extern void model_table(Stage *stage);

/* A row, or a group, by the bytes that tell its keys apart. */
typedef struct Keyed
{
	char	   *bytes;
	size_t		length;
	uint64_t	row;
} Keyed;

/* values: of each key */
extern Keyed keyed_make(const GhRecordKey *keys, uint32_t nkeys, const GhValue *values, uint64_t row);
extern void keyed_sort(Keyed *keyed, uint64_t count);
extern bool keyed_same(const Keyed *a, const Keyed *b);
extern void keyed_drop(Keyed *keyed, uint64_t count);

/* ------------------------------------------------------ pipeline_stage.c */

extern Stage *stage_make(void);
extern void stage_drop(Context *c, Stage *stage);
/* Numbers of vectors: columns first, then constants, then whatever is computed. */
extern uint32_t stage_column(Stage *stage, uint8_t value_class, uint32_t attribute);
/* A row of the source: values of its columns. */
extern void stage_row(Stage *stage, const GhValue *values);
extern uint32_t stage_constant(Stage *stage, uint8_t value_class, uint64_t low);
extern uint32_t stage_null(Stage *stage, uint8_t value_class);
extern uint32_t stage_text(Stage *stage, const char *text);
extern uint32_t stage_compute(Stage *stage, GhProgramOp op, uint8_t op_class, uint32_t a, uint32_t b);
extern void stage_filter(Stage *stage, uint32_t vector);
/* Columns for what a probe fills: all that the table keeps, if it is asked for. */
extern uint32_t stage_probe(Stage *stage, ModelTable *table, GhProbeKind kind, bool fills);
extern void stage_probe_part(Stage *stage, uint32_t probe, uint32_t vector, uint8_t bits);
/* Ends a step with the instructions so far. */
extern void stage_run_step(Stage *stage);
extern void stage_probe_step(Stage *stage, uint32_t probe);
extern void stage_key(Stage *stage, uint32_t vector, uint8_t value_class);
extern void stage_aggregate(Stage *stage, GhAggregateKind kind, uint32_t vector, uint8_t value_class);
extern void stage_part(Stage *stage, uint32_t vector, uint8_t bits);
extern void stage_keep(Stage *stage, uint32_t vector, uint8_t value_class, uint8_t bytes);
/*
 * The source, before columns: what other stages made; or `pages` are the test's to set, with natts; or
 * neither,
 * and the test puts rows of all vectors to `source` once the stage is finished.
 */
extern void stage_from_groups(Stage *stage, Stage *groups);
/*
 * A stage of no source, with columns for all that the table keeps, which has numbered rows.  To requests for rows without
 * a match of step 0 it brings them all.
 */
extern void stage_of_table(Stage *stage, ModelTable *table);
/* Puts the program and the options together, and lists the source's rows. */
extern void stage_finish(Context *c, Stage *stage);
extern bool no_pipelines(Context *c);
static inline bool
lacks_memory(GhStatus status)
{
	return status == GH_LIMIT || status == GH_NO_MEMORY;
}

/* ------------------------------------------------------ pipeline_run.c */

/*
 * Has an engine do the stage, with whatever is handed back entering again, and checks all that comes of it.
 * False: it failed, or there was no memory where memory is scarce.
 */
extern bool stage_run(Context *c, Stage *stage, const GhHost *host);
/* Submits and waits; once more where memory is scarce. */
extern GhStatus stage_request(Stage *stage, GhPipelineRequest *request);
extern GhStatus stage_create(Stage *stage, const GhHost *host, GhError *error);
/* pipeline_results.c: all records, one behind the other: *bytes of them, malloc()ed; NULL: it failed. */
extern char *stage_records(Context *c, Stage *stage, size_t *bytes);
/* Checks what is in the sink, and makes the table; false: as stage_run. */
extern bool stage_results(Context *c, Stage *stage);
/* pipeline_read.c: puts the rows of the table that was made, or the groups, in the order of their numbers. */
extern bool stage_number(Context *c, Stage *stage);
/* pipeline_find.c: what requests find in the table that was made, which has values of so many bytes for them. */
extern void stage_find(Context *c, const Stage *stage, uint32_t value_size);
/* Ends what an engine has of the stage: but for a table, which is ended apart. */
extern void stage_end(Stage *stage);
extern void stage_end_table(Stage *stage);

/* ------------------------------------------------------ pipeline_spans.c */

/*
 * Makes spans with places for all pages of a stage, in any order.  Some of the pages are put there at once, and
 * then only there, for their memory is overwritten; some will be as they are read; some are in no span.
 */
extern GhStatus spans_open(Context *c, Stage *stage, const GhHost *host, GhError *error);
extern void spans_drop(Stage *stage);
/* The pages that have places are from now on only there. */
extern void spans_only(Context *c, Trial *pages);

/* ------------------------------------------------------ pipeline_crew.c */

/* As no_pipelines(). */
extern bool no_shared_sinks(Context *c);
/* NULL: there is no memory for it.  Each allocation may fail, as state.fail_at says. */
extern Crew *crew_of(uint32_t count);
extern void crew_end(Crew *crew);
/* The stage's participant of this number is at work; nothing without a crew. */
extern void crew_turn(const Stage *stage, uint32_t participant);
/* Those of a stage whose sink is a table are all, of others one. */
extern void crew_join(Context *c, Stage *stage);
extern GhStatus crew_create(Stage *stage, GhError *error);
/* The table of all their rows. */
extern GhStatus crew_make_table(Context *c, Stage *stage, GhMadeTable *made, GhError *error);
extern void crew_end_pipelines(Stage *stage);
extern void crew_end_table(Context *c, Stage *stage);

/* ------------------------------------------------------ test_pipeline_pages.c */

/* Rows of some columns of such pages, all values that there are; `pages` becomes the stage's. */
extern Stage *pages_stage(Context *c, Trial *pages);
/* Has both engines do the stage, which is of pages, and compares rows and what goes back. */
extern void compare_engines(Context *c, Stage *stage);

/* ------------------------------------------------------ pipeline_draw.c */

/* Stages of which later ones use what earlier ones made. */
typedef struct Chain
{
	Stage	   *stages[STAGES_MAX];
	uint32_t	count;
} Chain;

extern Stage *stage_draw(Context *c, const Chain *before, bool last);

/* ---- test_packed.c: the caller's to free ---- */

extern struct GhPackedColumn *pack_drawn(const GhColumn *column, const GhVector *vector, uint32_t nrows);

#endif							/* PIPELINE_MODEL_H */
