/*
 * conformance.h
 *		What the files of the conformance program share.
 *
 * The program knows an engine through engine.h only.  A test is a function; it
 * fails when a CHECK in it fails.  What a table should hold is kept by the model
 * (model.c), which shares no code with an engine.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Context
{
	const GhEngine *engine;
	bool		on_host;		/* the engine's memory is GhHost's alone: cpu */
	bool		reduced;		/* small sizes, for slow checkers */
	uint64_t	seed;			/* of everything random */
	uint64_t	growth;			/* keys of the growth test */
	uint64_t	random;			/* state of random_next */
	int			passed;
	int			failed;
	int			skipped;
	int			failures;		/* in the test that runs */
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

typedef struct HostState
{
	uint64_t	allocated;		/* bytes outstanding */
	uint64_t	blocks;			/* outstanding */
	uint64_t	calls;			/* of alloc so far */
	uint64_t	fail_at;		/* the call of alloc that fails; 0: none */
	bool		failed;			/* it did */
	bool		damaged;		/* a free that was not of a block */
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

/* Memory shared by mappings at several addresses; refs are offsets. */
typedef struct Arena Arena;
extern Arena *arena_make(size_t bytes);
extern void arena_drop(Arena *arena);
/* A host with a mapping of its own. */
extern bool arena_host(Arena *arena, GhHost *host);
extern void arena_host_unmap(GhHost *host);
extern uint64_t arena_blocks(const Arena *arena);

/* ---------------------------------------------------- tables: operations.c */

typedef enum Kind
{
	KIND_SET,
	KIND_MAP,
	KIND_MULTI,
	KINDS
} Kind;

extern const char *const kind_name[KINDS];

/* A table with the model of what it holds. */
typedef struct Model Model;
typedef struct Subject
{
	Context    *c;
	Kind		kind;
	GhTable    *table;
	Model	   *model;
	GhHost		host;
	HostState	state;
	uint64_t	next_value;		/* values that are never used twice */
} Subject;

extern GhTableOptions options_of(const Context *c, Kind kind);
extern bool subject_open(Subject *s, Context *c, const GhTableOptions *options);
extern bool subject_open_kind(Subject *s, Context *c, Kind kind);
extern void subject_close(Subject *s);

/* submit and wait */
extern GhStatus do_request(Context *c, GhTable *table, GhRequest *request);
/* The operation on table and model; checks every result against the contract.
 * NULL values: ones not used before. */
extern bool do_checked(Subject *s, GhOp op, const uint64_t *keys, const uint64_t *values,
					   uint64_t count);
/* Every key that the model ever saw is in the table just as in the model. */
extern bool check_content(Subject *s);
extern bool check_shape(Context *c, GhTable *table, GhTableStats *stats);

/* ------------------------------------------------------- the model: model.c */

typedef struct ModelEntry
{
	uint64_t	key;
	bool		present;
	uint64_t   *values;
	uint64_t	count;			/* of values */
	uint64_t	room;
	/* scratch of one batch */
	uint64_t	batch;
	bool		was_present;
	uint64_t	was_value;
	uint64_t	positions;
	uint64_t	flags;
} ModelEntry;

struct Model
{
	ModelEntry **bucket;
	uint64_t	buckets;
	ModelEntry **entries;		/* in order of appearance */
	uint64_t	count;
	uint64_t	room;
	uint64_t	batch;			/* number of the batch that runs */
	uint64_t	keys;			/* present */
	uint64_t	values;
};

extern Model *model_make(void);
extern void model_drop(Model *model);
extern ModelEntry *model_entry(Model *model, uint64_t key);
extern void model_put(Model *model, ModelEntry *entry, uint64_t value);
extern void model_add(Model *model, ModelEntry *entry, uint64_t value);
extern void model_remove(Model *model, ModelEntry *entry);
extern void model_clear(Model *model);

/* ------------------------------------------------------------ groups of tests */

extern const Test basic_tests[];
extern const Test bounds_tests[];
extern const Test resize_tests[];
extern const Test memory_tests[];
extern const Test stop_tests[];
extern const Test sharing_tests[];
extern const Test multi_tests[];
extern const Test random_tests[];

#endif							/* CONFORMANCE_H */
