/*
 * cpu_overlay.c
 *		How a handle shows a table that a pipeline made on the CPU: with other columns, and with another
 *		table's rows for some keys (GhTableOverlay).  cpu_pipeline_probe.c looks rows up so.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

static bool
same_kept(const GhKept *a, const GhKept *b)
{
	return a->value_class == b->value_class && gh_cpu_kept_bytes(a) == gh_cpu_kept_bytes(b);
}

/* Whether each column is one of the table's own, or of a key. */
static bool
columns_agree(const GhTableShape *own, const GhTableOverlay *overlay)
{
	for (uint32_t k = 0; k < overlay->nkept; k++)
	{
		uint16_t	from = overlay->from[k];

		if (from >= GH_OVERLAY_KEY ? overlay->kept[k].value_class != GH_CLASS_INT :
			from >= own->nkept || !same_kept(&own->kept[from], &overlay->kept[k]))
			return false;
	}
	return true;
}

static bool
has_columns(const GhTableShape *shape, const GhTableOverlay *overlay)
{
	bool		same = shape->nkept == overlay->nkept;

	for (uint32_t k = 0; same && k < overlay->nkept; k++)
		same = same_kept(&shape->kept[k], &overlay->kept[k]);
	return same;
}

GhStatus
gh_cpu_table_overlay(GhTable *table, const GhTableOverlay *overlay, GhError *error)
{
	GhCpuTable *handle = (GhCpuTable *) table;
	GhTableShape instead = {0};
	GhCpuOverlay *made;

	if (handle->rows == NULL || handle->overlay != NULL || handle->rows->any_back ||
		overlay->nkept > GH_TABLE_KEPT_MAX || !columns_agree(&handle->rows->shape, overlay))
		return gh_error_set(error, GH_INVALID, "a table does not have the columns of its overlay");
	if (overlay->instead != NULL && (overlay->filter == NULL || !gh_cpu_table_describe(overlay->instead, &instead) ||
									 gh_cpu_rows_of(overlay->instead) == NULL || !has_columns(&instead, overlay)))
		return gh_error_set(error, GH_INVALID, "a table of other rows does not have the columns of an overlay");
	made = calloc(1, sizeof(GhCpuOverlay));
	if (made == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for an overlay");
	made->filter = overlay->filter;
	made->instead = overlay->instead;
	made->shape.nkept = overlay->nkept;
	if (overlay->nkept > 0)
	{
		memcpy(made->shape.kept, overlay->kept, overlay->nkept * sizeof(GhKept));
		memcpy(made->from, overlay->from, overlay->nkept * sizeof(uint16_t));
	}
	made->shape.several = handle->rows->shape.several || instead.several;
	handle->overlay = made;
	/* to requests it is none any more */
	handle->made_value_size = 0;
	return GH_OK;
}
