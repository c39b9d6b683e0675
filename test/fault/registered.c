/*
 * registered.c
 *		Memory that was registered with the stand-in's devices (fault_engine.c).
 *
 * A list of ranges for all threads.  It tells apart what a device can copy from
 * and to, so that a caller's mistake shows without a GPU.
 */
#include <pthread.h>
#include <stdlib.h>

#include "fault.h"

typedef struct Range
{
	uintptr_t	begin;
	uintptr_t	end;
	bool		read_only;
	struct Range *next;
} Range;

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static Range *ranges;			/* under the lock */

static bool
range_overlaps(const Range *range, uintptr_t begin, uintptr_t end)
{
	return begin < range->end && range->begin < end;
}

/* The range is the list's from then on; false: it overlaps another.  Under the lock. */
static bool
range_add(Range *range)
{
	for (const Range *other = ranges; other != NULL; other = other->next)
	{
		if (range_overlaps(other, range->begin, range->end))
			return false;
	}
	range->next = ranges;
	ranges = range;
	return true;
}

GhStatus
range_register(void *memory, size_t bytes, bool read_only, GhError *error)
{
	Range	   *range = calloc(1, sizeof(*range));
	bool		added;

	if (range == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	range->begin = (uintptr_t) memory;
	range->end = range->begin + bytes;
	range->read_only = read_only;
	pthread_mutex_lock(&ranges_lock);
	added = range_add(range);
	pthread_mutex_unlock(&ranges_lock);
	if (added)
		return GH_OK;
	free(range);
	return gh_error_set(error, GH_UNSUPPORTED, "the memory is registered already");
}

void
range_unregister(void *memory)
{
	pthread_mutex_lock(&ranges_lock);
	for (Range **link = &ranges; *link != NULL; link = &(*link)->next)
	{
		Range	   *range = *link;

		if (range->begin == (uintptr_t) memory)
		{
			*link = range->next;
			free(range);
			break;
		}
	}
	pthread_mutex_unlock(&ranges_lock);
}

bool
can_transfer(const void *array, uint64_t bytes, bool written)
{
	uintptr_t	begin = (uintptr_t) array;
	uintptr_t	end = begin + bytes;
	bool		can = true;

	pthread_mutex_lock(&ranges_lock);
	for (const Range *range = ranges; range != NULL && can; range = range->next)
	{
		if (range_overlaps(range, begin, end))
			can = begin >= range->begin && end <= range->end && !(written && range->read_only);
	}
	pthread_mutex_unlock(&ranges_lock);
	return can;
}

bool
is_registered(const void *array, uint64_t bytes)
{
	uintptr_t	begin = (uintptr_t) array;
	bool		is = false;

	pthread_mutex_lock(&ranges_lock);
	for (const Range *range = ranges; range != NULL && !is; range = range->next)
		is = begin >= range->begin && begin + bytes <= range->end;
	pthread_mutex_unlock(&ranges_lock);
	return is;
}
