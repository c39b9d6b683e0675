/*
 * conformance.h
 *		What the files of the conformance program share.
 *
 * The program knows an engine through engine.h only, but for the two files that
 * make keys which collide in its hash (adversary_*).  A test is a function; it
 * fails when a CHECK in it fails.  What a table should hold is kept by the model
 * (model.c), which shares no code with an engine.
 *
 * Keys and values are 64-bit words here, whatever their width in the table.  A
 * key's upper bytes are cut off for a table of 4-byte keys; a value is a "token"
 * of which tables.c makes as many bytes as the table wants.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../status_name.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Context
{
	const GhEngine *engine;
	const char *library;		/* the engine's; NULL: cpu */
	bool		on_host;		/* the engine's memory is GhHost's alone: cpu */
	bool		stand_in;		/* the library is that of test/fault */
	bool		reduced;		/* small sizes, for slow checkers */
	uint64_t	seed;			/* of everything random */
	uint64_t	growth;			/* keys of the growth test */
	uint64_t	operations;		/* positions of the random operations */
	uint64_t	random;			/* state of random_next */
	int			passed;
	int			failed;
	int			skipped;
	int			failures;		/* in the test that runs */
	const char *skip;			/* why the test that runs gave up; NULL: it did not */
} Context;

typedef struct Test
{
	const char *name;
	void		(*run) (Context *c);
	bool		host_only;		/* needs an engine whose memory is the host's */
} Test;

/* conformance.c */
extern bool check_failed(Context *c, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
extern uint64_t random_next(Context *c);
extern uint64_t random_below(Context *c, uint64_t bound);
extern uint64_t mix(uint64_t x);
extern uint64_t sized(const Context *c, uint64_t full, uint64_t reduced);
extern void *make_memory(size_t bytes);
extern uint64_t *make_words(uint64_t count);
extern double seconds_now(void);

/* Counts a failure and says what was wrong; the value tells whether it held. */
#define CHECK(c, condition, ...) \
	((condition) ? true : check_failed(c, __FILE__, __LINE__, __VA_ARGS__))
#define CHECK_U64(c, what, got, expected) \
	check_u64(c, __FILE__, __LINE__, what, got, expected)
#define CHECK_STATUS(c, what, got, expected) \
	check_status(c, __FILE__, __LINE__, what, got, expected)

extern bool check_u64(Context *c, const char *file, int line, const char *what,
					  uint64_t got, uint64_t expected);
extern bool check_status(Context *c, const char *file, int line, const char *what,
						 GhStatus got, GhStatus expected);

/* ------------------------------------------------------------ hosts: host.c */

/* Device memory that tables of several threads take from; taken is atomic. */
typedef struct Budget
{
	uint64_t	limit;			/* bytes */
	uint64_t	taken;			/* bytes */
} Budget;

typedef struct HostState
{
	uint64_t	allocated;		/* bytes outstanding */
	uint64_t	blocks;			/* outstanding */
	uint64_t	room;			/* bytes that may be outstanding; 0: many */
	uint64_t	calls;			/* of alloc so far */
	uint64_t	fail_at;		/* the call of alloc that fails; 0: none */
	bool		fail_after;		/* and all later ones */
	bool		failed;			/* one did */
	bool		damaged;		/* a free that was not of a block */
	Budget	   *budget;			/* NULL: no end of it */
	uint64_t	device_bytes;	/* taken from it and not given back */
	Budget	   *host_budget;	/* of page-locked memory; NULL: no end of it */
	uint64_t	host_bytes;		/* taken from that and not given back */
	uint64_t	takes;			/* calls of take_device and take_host so far */
	uint64_t	refuse_at;		/* the call that is refused; 0: none */
	bool		refuse_after;	/* and all later ones */
	bool		refused;		/* one was */
	bool		overdrawn;		/* more was given back than taken */
	int			lock_depth;
	GhLockMode	lock_mode;
	uint64_t	locks_shared;
	uint64_t	locks_exclusive;
	uint64_t	stop_at_lock;	/* the lock that sets stop; 0: none */
	bool		lock_misused;
	volatile sig_atomic_t stop;
} HostState;

extern void host_init(HostState *state, GhHost *host);
/* with lock and unlock that check how they are called */
extern void host_init_locked(HostState *state, GhHost *host);
extern uint64_t budget_taken(const Budget *budget);

/* Memory shared by mappings at several addresses; refs are offsets. */
typedef struct Arena Arena;
extern Arena *arena_make(size_t bytes);
extern void arena_drop(Arena *arena);
/* A host with a mapping of its own. */
extern bool arena_host(Arena *arena, GhHost *host);
extern void arena_host_unmap(GhHost *host);
extern uint64_t arena_blocks(const Arena *arena);

/* ------------------------------------------------------- the model: model.c */

typedef struct ModelEntry
{
	uint64_t	key;
	uint64_t	value;			/* where a key has one */
	uint64_t   *values;			/* multi tables: the key's are among these `held` */
	uint64_t	count;			/* values the key has; 0: it is absent */
	uint64_t	held;			/* more than count after delete-one: whichever */
	uint64_t	room;			/* of values */
	/* scratch of one stage of a batch, or of an export */
	uint64_t	was_value;
	uint64_t	positions;
	uint64_t	sum;
	uint32_t	stage;
	uint32_t	flags;
	bool		was_present;
} ModelEntry;

typedef struct ModelSlot
{
	uint64_t	key;
	ModelEntry *entry;			/* NULL: free */
} ModelSlot;

typedef struct Model
{
	bool		multi;
	ModelSlot  *slot;			/* open addressing, at most half full */
	uint64_t	slots;
	ModelEntry **chunk;			/* entries in order of appearance */
	uint64_t	chunks;
	uint64_t	count;			/* of entries */
	uint32_t	stage;			/* number of the stage that is checked */
	uint64_t	keys;			/* present */
	uint64_t	values;
} Model;

extern Model *model_make(bool multi);
extern void model_drop(Model *model);
/* The key's entry, made if need be; it stays where it is. */
extern ModelEntry *model_entry(Model *model, uint64_t key);
/* Entry number i, in order of appearance. */
extern ModelEntry *model_at(const Model *model, uint64_t i);
extern void model_put(Model *model, ModelEntry *entry, uint64_t value);
extern void model_add(Model *model, ModelEntry *entry, uint64_t value);
extern void model_remove(Model *model, ModelEntry *entry);
extern void model_remove_one(Model *model, ModelEntry *entry);
extern void model_clear(Model *model);
/* A sum over values that tells multisets apart. */
extern uint64_t value_sum(uint64_t value);
extern uint64_t model_sum(const ModelEntry *entry);
/* Are got, which it sorts, values that the key may have?  Then it has these. */
extern bool model_settle(ModelEntry *entry, uint64_t *got, uint64_t count);

/* --------------------------------------------------------- tables: tables.c */

typedef enum Kind
{
	KIND_SET,
	KIND_MAP,
	KIND_MULTI,
	KINDS
} Kind;

extern const char *const kind_name[KINDS];

/* A kind of table at some width. */
typedef struct TableType
{
	Kind		kind;
	uint32_t	key_size;
	uint32_t	value_size;
} TableType;

/* Number i of those to test, or false: there are fewer. */
extern bool type_at(const Context *c, uint32_t i, TableType *type);
extern TableType type_of_kind(Kind kind);	/* 8-byte keys and values */

/* A table with the model of what it holds. */
typedef struct Subject
{
	Context    *c;
	Kind		kind;
	uint32_t	key_size;
	uint32_t	value_size;
	GhTable    *table;
	Model	   *model;
	GhHost		host;
	HostState	state;
	uint64_t	next_value;		/* tokens not used before, as far as the width goes */
	bool		bare;			/* requests without the arrays that may be left out */
	bool		patient;		/* failures are being made: without memory, or stopped, a
								 * request is tried again */
	bool		lost;			/* patient, and the device failed: nothing is done any more */
	bool		concurrent;		/* exchanges may do positions behind `done`, too */
} Subject;

/* After a failure that may have been made: shall the call be tried again? */
extern bool subject_again(Subject *s, GhStatus status, int tries);

extern GhTableOptions options_of(const Context *c, TableType type);
/* The handle is the model's too; false: it was not made, and that is a failure. */
extern bool subject_open(Subject *s, Context *c, const GhTableOptions *options);
extern bool subject_open_type(Subject *s, Context *c, TableType type);
extern bool subject_open_kind(Subject *s, Context *c, Kind kind);
/* With device memory of that budget. */
extern bool subject_open_budget(Subject *s, Context *c, const GhTableOptions *options,
								Budget *budget);
/* As subject_open, but the status is the caller's to judge. */
extern GhStatus subject_try(Subject *s, Context *c, const GhTableOptions *options);
extern void subject_close(Subject *s);
extern void subject_clear(Subject *s);

extern uint64_t key_cut(const Subject *s, uint64_t key);
extern uint64_t value_cut(const Subject *s, uint64_t token);
extern void value_write(uint32_t size, uint64_t token, void *to);
/* The token of a value; false: its other bytes are not what the token makes them. */
extern bool value_read(uint32_t size, const void *from, uint64_t *token);
extern bool value_is(uint32_t size, const void *from, uint64_t token);
extern bool value_is_absent(uint32_t size, const void *from, uint64_t absent);
/* So many tokens in an array of values. */
extern void *make_values(uint32_t size, const uint64_t *tokens, uint64_t count);
extern void *make_keys(uint32_t size, const uint64_t *keys, uint64_t count);
extern uint64_t key_read(uint32_t size, const void *from);

/* Every key that the model ever saw is in the table just as in the model. */
extern bool check_content(Subject *s);
/* Every entry once, in exports of so many. */
extern bool check_export(Subject *s, uint64_t capacity);
extern bool check_shape(Context *c, GhTable *table, GhTableStats *stats);
/* Bytes of a new table of these options. */
extern uint64_t bytes_when_new(Context *c, const GhTableOptions *options);
extern uint64_t slots_of(const GhTableStats *stats);

/* Keys that an implementation might mistake for its marks. */
#define SPECIALS 28
extern const uint64_t special_keys[SPECIALS];

/* ---------------------------------------- operations: operations.c, checks.c */

extern bool op_fits(const Subject *s, GhOp op);
extern const char *op_name(GhOp op);
/* An operation that stores, of those that the table has. */
extern GhOp storing_op(const Subject *s);

/*
 * A batch, beside the model's entry of every position.  It is run once or, where
 * runs end early, several times; after each the positions that became done are
 * checked as a batch of their own (a "stage"), which is what the contract makes
 * of them.
 */
typedef struct Batch
{
	Subject    *s;
	GhRequest	request;		/* its arrays are the batch's */
	uint64_t	count;
	uint64_t	checked;		/* positions done and checked */
	uint64_t   *tokens;			/* each position's value */
	ModelEntry **entry;
	uint64_t	values_room;	/* elements of values_out */
	/* the counters that the request must show */
	uint64_t	matched;
	uint64_t	inserted;
	uint64_t	replaced;
	uint64_t	removed;
	uint64_t	values_count;
} Batch;

/* NULL values: ones not used before.  ops is for GH_MIXED. */
extern void batch_begin(Subject *s, Batch *b, GhOp op, const uint64_t *keys,
						const uint64_t *values, const uint8_t *ops, uint64_t count);
/* Submits and waits; then checks what was done.  The status is the caller's to judge. */
extern GhStatus batch_run(Batch *b);
extern void batch_end(Batch *b);
/* test_stop.c: until it is done, stopped now and then; returns how often. */
extern uint64_t run_with_alarms(Batch *b, long microseconds);

/* test_regions.c: a batch whose arrays are where the device reads them. */
typedef struct DeviceBatch
{
	Batch		batch;
	GhRequest	host;			/* with the arrays that it had */
	char	   *buffer;
} DeviceBatch;

extern bool device_batch_fits(const Context *c);
extern bool device_batch_begin(Subject *s, DeviceBatch *d, GhOp op, const uint64_t *keys,
							   uint64_t count, bool with_flags);
extern void device_batch_end(DeviceBatch *d);

/* checks.c: positions from b->checked to `to` are done; tells the model so */
extern void check_stage(Batch *b, uint64_t to);
extern void check_found_all(Batch *b);

/* submit and wait */
extern GhStatus do_request(Context *c, GhTable *table, GhRequest *request);
/* The operation on table and model, which must go well; every result is checked. */
extern bool do_checked(Subject *s, GhOp op, const uint64_t *keys, const uint64_t *values,
					   uint64_t count);
extern bool do_mixed(Subject *s, const uint8_t *ops, const uint64_t *keys,
					 const uint64_t *values, uint64_t count);

/* ------------------------------------------- keys that collide: adversary_*.c */

/*
 * Keys whose two candidate buckets are, in one pair of subtables, each among the same
 * 2^-bits of the buckets, whatever their number.  Tried are the keys from *next
 * on; stops after `tries` of them.  Returns how many of `most` were found.
 */
extern uint64_t adversary_keys_cpu(GhTable *table, uint32_t key_size, uint32_t bits, uint64_t *next,
								   uint64_t tries, uint64_t *keys, uint64_t most);
#ifdef WITH_CUDA_HASH
extern uint64_t adversary_keys_cuda(const GhTableOptions *options, uint32_t bits, uint64_t *next,
									uint64_t tries, uint64_t *keys, uint64_t most);
/* The same for 8-byte keys and many bits: the hash is computed backwards. */
extern uint64_t adversary_twins_cuda(const GhTableOptions *options, uint32_t bits, uint64_t *keys,
									 uint64_t most);
#endif

/* test_paging.c: beyond the device's memory, tables can be in the host's */
extern bool pages_tables(Context *c);

/* -------------------------------------------------------- failures: test_fault.c */

/* What a table goes through. */
typedef struct Scenario
{
	uint64_t	count;
	uint64_t   *keys;			/* count of them, some more than once */
	uint8_t    *ops;			/* of a mixed batch */
} Scenario;

extern void scenario_make(Context *c, Scenario *scenario, uint64_t count);
extern void scenario_drop(Scenario *scenario);
/* A table's life with every operation that may need memory. */
extern void scenario_play(Subject *s, const Scenario *scenario);

typedef void (*FaultArm) (uint64_t allocation, uint64_t launch);

/* NULL: the engine cannot be told to fail, and the test that asks is skipped. */
extern FaultArm find_fault_arm(Context *c);

/* ------------------------------------------------------------ groups of tests */

extern const Test width_tests[];
extern const Test store_tests[];
extern const Test find_tests[];
extern const Test delete_tests[];
extern const Test build_tests[];
extern const Test region_tests[];
extern const Test region_change_tests[];
extern const Test mixed_tests[];
extern const Test export_tests[];
extern const Test table_tests[];
extern const Test option_tests[];
extern const Test request_tests[];
extern const Test resize_tests[];
extern const Test reserve_tests[];
extern const Test multi_tests[];
extern const Test memory_tests[];
extern const Test budget_tests[];
extern const Test paging_tests[];
extern const Test registered_tests[];
extern const Test registered_page_tests[];
extern const Test fault_tests[];
extern const Test adversary_tests[];
extern const Test stop_tests[];
extern const Test sharing_tests[];
extern const Test thread_tests[];
extern const Test exchange_tests[];
extern const Test random_tests[];
extern const Test page_tests[];
extern const Test page_numeric_tests[];
extern const Test packed_tests[];
extern const Test program_tests[];
extern const Test program_check_tests[];
extern const Test aggregate_tests[];
extern const Test header_tests[];
extern const Test pipeline_tests[];
extern const Test pipeline_refused_tests[];
extern const Test pipeline_request_tests[];
extern const Test pipeline_column_tests[];
extern const Test pipeline_overlay_tests[];
extern const Test pipeline_page_tests[];
extern const Test pipeline_leaf_tests[];
extern const Test pipeline_span_tests[];
extern const Test pipeline_integer_tests[];
extern const Test pipeline_large_tests[];
extern const Test pipeline_many_tests[];
extern const Test pipeline_fault_tests[];
extern const Test pipeline_group_tests[];
extern const Test pipeline_set_tests[];
extern const Test pipeline_stop_tests[];
extern const Test pipeline_random_tests[];
extern const Test pipeline_shared_tests[];
extern const Test pipeline_shared_refused_tests[];

#ifdef __cplusplus
}
#endif

#endif							/* CONFORMANCE_H */
