/*
 * layout.c
 *		Holds the numbers of engine/page.h against the server's headers.
 *
 * What is the same on every machine is asserted here and stops the build.  What depends on
 * the machine or its compiler, gh_layout_is_known tells: who reads pages by page.h asks it
 * first, when planning, and leaves the pages to PostgreSQL where the answer is no.  The
 * layout of numeric is in no header; test/t/030_pages.pl compares values.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/tupmacs.h"
#include "storage/bufpage.h"

#include "heap/layout.h"

StaticAssertDecl(BLCKSZ >= GH_PAGE_BYTES_MIN && BLCKSZ <= GH_PAGE_BYTES_MAX, "page size");
StaticAssertDecl(offsetof(PageHeaderData, pd_lower) == GH_PAGE_LOWER_AT, "pd_lower");
StaticAssertDecl(offsetof(PageHeaderData, pd_pagesize_version) == GH_PAGE_VERSION_AT,
				 "pd_pagesize_version");
StaticAssertDecl(SizeOfPageHeaderData == GH_PAGE_LINES_AT, "page header");
StaticAssertDecl(PG_PAGE_LAYOUT_VERSION == GH_PAGE_VERSION, "page version");
StaticAssertDecl(sizeof(ItemIdData) == GH_LINE_BYTES, "line pointer");
StaticAssertDecl(LP_NORMAL == GH_LINE_NORMAL, "state of a line pointer");

StaticAssertDecl(offsetof(HeapTupleHeaderData, t_infomask2) == GH_TUPLE_INFOMASK2_AT,
				 "t_infomask2");
StaticAssertDecl(offsetof(HeapTupleHeaderData, t_infomask) == GH_TUPLE_INFOMASK_AT,
				 "t_infomask");
StaticAssertDecl(offsetof(HeapTupleHeaderData, t_hoff) == GH_TUPLE_HOFF_AT, "t_hoff");
StaticAssertDecl(SizeofHeapTupleHeader == GH_TUPLE_BITS_AT, "tuple header");
StaticAssertDecl(HEAP_NATTS_MASK == GH_TUPLE_NATTS_MASK, "number of attributes");
StaticAssertDecl(HEAP_HASNULL == GH_TUPLE_HAS_NULL, "mark of NULLs");
StaticAssertDecl(offsetof(HeapTupleHeaderData, t_choice.t_heap.t_xmin) == GH_TUPLE_XMIN_AT, "t_xmin");
StaticAssertDecl(offsetof(HeapTupleHeaderData, t_choice.t_heap.t_xmax) == GH_TUPLE_XMAX_AT, "t_xmax");
StaticAssertDecl(HEAP_LOCK_MASK == GH_TUPLE_XMAX_LOCKS && HEAP_XMAX_LOCK_ONLY == GH_TUPLE_XMAX_LOCK_ONLY &&
				 HEAP_XMAX_IS_MULTI == GH_TUPLE_XMAX_IS_MULTI, "marks of locks");
StaticAssertDecl(HEAP_XMIN_COMMITTED == GH_TUPLE_XMIN_COMMITTED && HEAP_XMIN_INVALID == GH_TUPLE_XMIN_INVALID &&
				 HEAP_XMIN_FROZEN == GH_TUPLE_XMIN_FROZEN, "hints of the inserter");
StaticAssertDecl(HEAP_XMAX_COMMITTED == GH_TUPLE_XMAX_COMMITTED && HEAP_XMAX_INVALID == GH_TUPLE_XMAX_INVALID,
				 "hints of the deleter");
StaticAssertDecl(HEAP_MOVED == GH_TUPLE_MOVED, "marks of moved tuples");
StaticAssertDecl(FirstNormalTransactionId == GH_XID_FIRST_NORMAL && sizeof(TransactionId) == 4, "transaction numbers");
StaticAssertDecl(MaxHeapAttributeNumber == GH_ATTRIBUTE_MAX, "most attributes");

StaticAssertDecl(offsetof(IndexTupleData, t_tid.ip_blkid.bi_hi) == GH_LEAF_BLOCK_AT &&
				 offsetof(IndexTupleData, t_tid.ip_blkid.bi_lo) == GH_LEAF_BLOCK_AT + 2,
				 "block of an entry's row");
StaticAssertDecl(offsetof(IndexTupleData, t_info) == GH_LEAF_INFO_AT, "t_info");
StaticAssertDecl(INDEX_SIZE_MASK == GH_LEAF_BYTES_MASK && INDEX_ALT_TID_MASK == GH_LEAF_OTHER &&
				 INDEX_NULL_MASK == GH_LEAF_HAS_NULL, "marks of an entry");
StaticAssertDecl(sizeof(IndexTupleData) == GH_LEAF_BITS_AT, "an entry's header");
StaticAssertDecl(TYPEALIGN(GH_TUPLE_ALIGNMENT, GH_LEAF_BITS_AT) == GH_LEAF_DATA, "an entry's columns");
StaticAssertDecl(TYPEALIGN(GH_TUPLE_ALIGNMENT, GH_LEAF_BITS_AT + sizeof(IndexAttributeBitMapData)) ==
				 GH_LEAF_DATA_NULLS, "an entry's columns behind its bits");
StaticAssertDecl(INDEX_MAX_KEYS == GH_LEAF_ATTRIBUTES, "most columns of an index");
StaticAssertDecl(offsetof(PageHeaderData, pd_special) == GH_PAGE_SPECIAL_AT, "pd_special");
StaticAssertDecl(offsetof(BTPageOpaqueData, btpo_next) == GH_LEAF_NEXT_AT && P_NONE == 0, "btpo_next");
StaticAssertDecl(TYPEALIGN(GH_TUPLE_ALIGNMENT, sizeof(BTPageOpaqueData)) == GH_LEAF_SPECIAL_BYTES,
				 "end of a leaf page");
StaticAssertDecl(P_HIKEY == 1 && P_FIRSTKEY == 2, "first entry of a leaf page");

StaticAssertDecl(VARHDRSZ == GH_VARLENA_HEADER, "varlena header");
StaticAssertDecl(VARHDRSZ_COMPRESSED == GH_VARLENA_COMPRESSED_HEADER, "compressed varlena");
StaticAssertDecl(VARHDRSZ_EXTERNAL == GH_VARLENA_EXTERNAL_HEADER, "external varlena");
StaticAssertDecl(VARTAG_ONDISK == GH_VARLENA_TAG_ON_DISK, "tag of a toasted varlena");
StaticAssertDecl(VARHDRSZ_EXTERNAL + sizeof(varatt_external) == GH_VARLENA_ON_DISK_BYTES,
				 "toasted varlena");
StaticAssertDecl(sizeof(bool) == 1 && sizeof(float4) == 4 && sizeof(float8) == 8,
				 "widths of values");

/*
 * Whether bytes, bit fields and alignment are as page.h has them.  All is constant, and
 * compiled to one.
 */
bool
gh_layout_is_known(void)
{
	union
	{
		ItemIdData	item;
		uint32		word;
	}			line = {.word = 0};

#ifdef WORDS_BIGENDIAN
	return false;
#endif
	/* the first bit of each field, the last one of each field */
	line.item.lp_off = 0x4001;
	line.item.lp_flags = 0x3;
	line.item.lp_len = 0x4001;
	return MAXIMUM_ALIGNOF == GH_TUPLE_ALIGNMENT && ALIGNOF_DOUBLE == 8 && ALIGNOF_INT == 4 &&
		ALIGNOF_SHORT == 2 &&
		line.word == (0x4001u | 0x3u << GH_LINE_OFFSET_BITS |
					  0x4001u << (GH_LINE_OFFSET_BITS + GH_LINE_STATE_BITS));
}

/*
 * Whether tuples of two relations have the same columns in the same places: one program reads both.  A column
 * that was added later is missing in some tuples, of either.
 */
bool
gh_tuples_lie_alike(TupleDesc a, TupleDesc b)
{
	if (a->natts != b->natts)
		return false;
	for (int i = 0; i < a->natts; i++)
	{
		Form_pg_attribute left = TupleDescAttr(a, i);
		Form_pg_attribute right = TupleDescAttr(b, i);

		if (left->attlen != right->attlen || left->attalign != right->attalign || left->attbyval != right->attbyval ||
			left->attisdropped != right->attisdropped || left->atttypid != right->atttypid ||
			left->atttypmod != right->atttypmod || left->attcollation != right->attcollation)
			return false;
	}
	return true;
}

/* An attribute of a relation, from 1, for the shape of its tuples. */
GhPageAttribute
gh_page_attribute(TupleDesc desc, int attno)
{
	Form_pg_attribute att = TupleDescAttr(desc, attno - 1);
	GhPageAttribute attribute;

	attribute.length = att->attlen;
	attribute.alignment = gh_alignment_bytes(att->attalign);
	return attribute;
}
