/*
 * page.c
 *		The shape of a relation's tuples, for the columns of a program: checked, and with
 *		the places that do not depend on the tuple worked out.
 */
#include "engine/page/page.h"

static GhStatus
check_attribute(const GhPageAttribute *attribute, uint32_t number, GhError *error)
{
	if (attribute->length != -1 && attribute->length <= 0)
		return gh_error_set(error, GH_INVALID, "attribute %u is neither of fixed length nor a "
							"varlena: %d", number, attribute->length);
	if (attribute->alignment != 1 && attribute->alignment != 2 &&
		attribute->alignment != 4 && attribute->alignment != GH_TUPLE_ALIGNMENT)
		return gh_error_set(error, GH_INVALID, "attribute %u is aligned to %d bytes", number,
							attribute->alignment);
	return GH_OK;
}

/* The length that an attribute has which is read that way; 0: there is no such way. */
static int
length_to_load(const GhColumn *column)
{
	switch (column->load)
	{
		case GH_LOAD_BOOL:
			return 1;
		case GH_LOAD_INT2:
			return 2;
		case GH_LOAD_INT4:
		case GH_LOAD_OID:
		case GH_LOAD_FLOAT4:
			return 4;
		case GH_LOAD_INT8:
		case GH_LOAD_FLOAT8:
			return 8;
		case GH_LOAD_NUMERIC:
		case GH_LOAD_TEXT:
			return -1;
		case GH_LOAD_FIXED:
			return column->length;
	}
	return 0;
}

static GhStatus
check_column(const GhColumn *column, uint32_t natts, const GhPageAttribute *attributes,
			 GhError *error)
{
	int			length = length_to_load(column);

	if (column->attribute < 1 || column->attribute > natts)
		return gh_error_set(error, GH_INVALID, "a column is attribute %d of %u",
							column->attribute, natts);
	if (length == 0 || length != attributes[column->attribute - 1].length)
		return gh_error_set(error, GH_INVALID, "attribute %d has length %d and cannot be "
							"loaded as a column of kind %d", column->attribute,
							attributes[column->attribute - 1].length, column->load);
	if (column->scale > GH_SCALE_MAX)
		return gh_error_set(error, GH_INVALID, "a column has %d digits after the point",
							column->scale);
	if (column->missing > GH_MISSING_BACK)
		return gh_error_set(error, GH_INVALID, "a column is %d where it is missing",
							column->missing);
	return GH_OK;
}

/* Puts a column where it belongs in the order of the attributes; each is read once. */
static GhStatus
add_column(GhPageShape *shape, const GhColumn *column, uint32_t vector, GhError *error)
{
	uint32_t	at = shape->ncolumns;

	while (at > 0 && shape->columns[at - 1].column.attribute > column->attribute)
		at--;
	if (at > 0 && shape->columns[at - 1].column.attribute == column->attribute)
		return gh_error_set(error, GH_INVALID, "attribute %d is two columns", column->attribute);
	memmove(&shape->columns[at + 1], &shape->columns[at],
			(shape->ncolumns - at) * sizeof(GhPageColumn));
	shape->columns[at].column = *column;
	shape->columns[at].vector = vector;
	shape->columns[at].place = 0;
	shape->ncolumns++;
	if (column->attribute > shape->natts)
		shape->natts = column->attribute;
	return GH_OK;
}

static GhStatus
add_tids(GhPageShape *shape, const GhColumn *column, uint32_t vector, GhError *error)
{
	if (column->attribute != 0 || column->scale != 0 || column->length != 0 || column->missing != 0)
		return gh_error_set(error, GH_INVALID, "a column of tuples' places is attribute %d",
							column->attribute);
	if (shape->tids != 0)
		return gh_error_set(error, GH_INVALID, "tuples' places are two columns");
	shape->tids = vector + 1;
	return GH_OK;
}

/* Attributes up to the first whose place depends on the tuple, or is in no page. */
static void
find_prefix(GhPageShape *shape)
{
	for (; shape->prefix < shape->natts; shape->prefix++)
	{
		GhPageAttribute attribute = shape->attributes[shape->prefix];
		uint32_t	place = gh_align_up(shape->prefix_bytes, attribute.alignment);

		if (attribute.length < 0 || place + (uint32_t) attribute.length > shape->page_bytes)
			return;
		if (shape->nfixed < shape->ncolumns &&
			shape->columns[shape->nfixed].column.attribute == shape->prefix + 1)
			shape->columns[shape->nfixed++].place = place;
		shape->prefix_bytes = place + (uint32_t) attribute.length;
	}
}

GhStatus
gh_page_shape_init(GhPageShape *shape, uint32_t page_bytes, uint32_t natts,
				   const GhPageAttribute *attributes, uint32_t ncolumns,
				   const GhColumn *columns, GhError *error)
{
	memset(shape, 0, sizeof(*shape));
	if (page_bytes < GH_PAGE_BYTES_MIN || page_bytes > GH_PAGE_BYTES_MAX ||
		(page_bytes & (page_bytes - 1)) != 0)
		return gh_error_set(error, GH_INVALID, "a page has %u bytes", page_bytes);
	if (natts > GH_ATTRIBUTE_MAX || ncolumns > GH_PROGRAM_VECTORS_MAX)
		return gh_error_set(error, GH_INVALID, "%u columns of %u attributes are too many",
							ncolumns, natts);
	shape->page_bytes = page_bytes;
	shape->attributes = attributes;
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		GhStatus	status = columns[i].load == GH_LOAD_TID ?
			add_tids(shape, &columns[i], i, error) :
			check_column(&columns[i], natts, attributes, error);

		if (status == GH_OK && columns[i].load != GH_LOAD_TID)
			status = add_column(shape, &columns[i], i, error);
		if (status != GH_OK)
			return status;
	}
	/* attributes behind the last column may be of any kind */
	for (uint32_t i = 0; i < shape->natts; i++)
	{
		GhStatus	status = check_attribute(&attributes[i], i + 1, error);

		if (status != GH_OK)
			return status;
	}
	find_prefix(shape);
	return GH_OK;
}
