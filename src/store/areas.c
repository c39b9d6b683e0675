/*
 * areas.c
 *		Areas of shared memory (dsa.h) that a process has attached: each once, however many use it.
 *
 * What may throw is run guarded: it is called with locks held.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "guard.h"
#include "store/areas.h"

/* An area that this process has attached, as it can be only once. */
typedef struct Attached
{
	dsa_area   *area;			/* NULL: the place is free */
	dsa_handle	handle;
	int			users;
} Attached;

static Attached *attached = NULL;
static int	nattached = 0;

static Attached *
find_attached(const dsa_area *area, dsa_handle handle)
{
	for (int i = 0; i < nattached; i++)
		if (attached[i].area != NULL && (area != NULL ? attached[i].area == area : attached[i].handle == handle))
			return &attached[i];
	return NULL;
}

/* Room for one more area.  May throw. */
static void
reserve_attached(void)
{
	for (int i = 0; i < nattached; i++)
		if (attached[i].area == NULL)
			return;
	if (attached == NULL)
		attached = MemoryContextAlloc(TopMemoryContext, sizeof(Attached));
	else
		attached = repalloc(attached, (nattached + 1) * sizeof(Attached));
	attached[nattached++].area = NULL;
}

/* There is room. */
static void
note_attached(dsa_area *area)
{
	int			i = 0;

	while (attached[i].area != NULL)
		i++;
	attached[i] = (Attached) {area, dsa_get_handle(area), 1};
	dsa_pin_mapping(area);
}

/* An area that is in the list, attached until it is detached. */
static dsa_area *
attach_area(dsa_handle handle)
{
	Attached   *known = find_attached(NULL, handle);
	MemoryContext saved;
	dsa_area   *area;

	if (known != NULL)
	{
		known->users++;
		return known->area;
	}
	reserve_attached();
	saved = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach(handle);
	MemoryContextSwitchTo(saved);
	note_attached(area);
	return area;
}

void
gh_area_detach(dsa_area *area)
{
	Attached   *known = find_attached(area, 0);

	if (--known->users > 0)
		return;
	known->area = NULL;
	dsa_detach(area);
}

typedef struct AttachWork
{
	dsa_handle	handle;
	dsa_area   *area;
} AttachWork;

static void
attach_work(void *arg)
{
	AttachWork *work = arg;

	work->area = attach_area(work->handle);
}

dsa_area *
gh_area_try_attach(dsa_handle handle)
{
	AttachWork	work = {handle};

	return gh_run_guarded(NULL, attach_work, &work) ? work.area : NULL;
}

typedef struct CreateWork
{
	int			tranche;
	Size		limit;
	dsa_area   *area;
} CreateWork;

static void
create_work(void *arg)
{
	CreateWork *work = arg;
	MemoryContext saved;

	reserve_attached();
	saved = MemoryContextSwitchTo(TopMemoryContext);
	work->area = dsa_create(work->tranche);
	MemoryContextSwitchTo(saved);
	note_attached(work->area);
	dsa_set_size_limit(work->area, work->limit);
}

dsa_area *
gh_area_try_create(int tranche, Size limit)
{
	CreateWork	work = {tranche, limit};

	return gh_run_guarded(NULL, create_work, &work) ? work.area : NULL;
}
