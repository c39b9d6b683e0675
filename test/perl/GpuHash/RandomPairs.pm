# GpuHash::RandomPairs: random conditions on pairs of rows of the tables of GpuHash::RandomTables, which stand beside a
# join's keys, and subqueries with such.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomPairs::on($a, $b)	a condition on rows of two aliases: the first is of a table with @COLUMN, the
#						second a dimension, or of such a table if it begins with "b"
#	GpuHash::RandomPairs::codes($a, $b)	equality of keys that are no whole number: of a table with @COLUMN and of a dimension
#	GpuHash::RandomPairs::member()	EXISTS or NOT EXISTS of a table, by keys of "a" and by such a condition
#	GpuHash::RandomPairs::subquery()	one of: member(); a comparison with an aggregate of those rows of a table that have the keys of "a";
#						NOT IN, of columns that may be NULL and of such that are not
#	GpuHash::RandomPairs::value($column)	an aggregate, which has no digits after the point, of rows of a dimension that have the column as their key
#	GpuHash::RandomPairs::side($d, $alias, $e)	what stands in the place of a dimension: its join with another one, of alias $e
#	GpuHash::RandomPairs::is_bushy($plan)	whether an aggregate, or rows, of a plan reads joins with inner sides that are joins
#	GpuHash::RandomPairs::is_unnested($plan)	whether a plan joins with groups in place of a subquery
#	GpuHash::RandomPairs::is_coded($plan)	whether an aggregate, or rows, of a plan reads joins by such keys
#	GpuHash::RandomPairs::is_read($plan)	whether an aggregate of a plan reads joins with conditions beside their keys
#
# They raise no errors.  Some columns have values that engines hand back: NaN, numbers that are too large, long texts.
package GpuHash::RandomPairs;

use strict;
use warnings;
use GpuHash::RandomExpression 'one_of';

sub one_condition
{
	my ($a, $b) = @_;
	return one_of("$a.g <> $b.g", "$a.k8 > $b.k8", "$a.n2 <= $b.n2", "$a.n5 > $b.n2", "$a.v < $b.v", "$a.x <> $b.x", "$a.id <> $b.id", "$a.may IS DISTINCT FROM $b.may", "$a.d >= $b.d", "coalesce($a.late, 1) > $b.g", "$a.c = $b.c", "$b.tame8 > $a.tame4")
		if $b =~ /^b/;
	return one_of("$a.g <> $b.dg", "$a.k8 > $b.dg", "$a.id * 50 > $b.dv", "$a.n2 <= $b.dn", "$a.n5 > $b.dn", "$a.v <> $b.dt", "$a.x > $b.dt", "$a.big <> $b.dt", "$a.may IS DISTINCT FROM $b.db", "$a.d >= $b.dd", "coalesce($a.late, 1) > $b.dg", "$a.tame8 > $b.df",
		"$a.i4 > $b.dv", "$a.whole % 7 <> $b.dg");
}

sub on
{
	my ($a, $b) = @_;
	my $condition = one_condition($a, $b);
	my $kind = rand();
	return $condition if $kind < 0.6;
	return "($condition OR " . one_condition($a, $b) . ')' if $kind < 0.75;
	return "$condition AND " . one_condition($a, $b) if $kind < 0.85;
	return "($condition) IS NOT TRUE" if $kind < 0.92;
	return "$condition AND $a.g <> 3";
}

sub codes
{
	my ($a, $b) = @_;
	return one_of("$a.v = $b.dx", "$b.dx = $a.x", "$a.c = $b.dc", "$a.u = $b.du", "$b.du = $a.u", "$a.b = $b.dw", "$a.nm = $b.dz", "$a.n2 = $b.dm", "$a.big = $b.dy", "$a.v = $b.dy",
		"$a.u = $b.du AND $a.k8 = $b.dk", "$a.x = $b.dx AND $a.g = $b.dg", "$a.u = $b.du AND $a.may = $b.db", "$a.n2 = $b.dm AND $a.tame8 = $b.df", "$a.c = $b.dc AND $a.v = $b.dx");
}

sub member
{
	my ($table, $b, $key) = @{ one_of(['d0', 's', 'dk'], ['d1', 's', 'dk'], ['d1', 's', 'dk'], ['d2', 's', 'dk'], ['f2', 'b8', 'k4'], ['f2', 'b8', 'k8'], ['f3', 'b8', 'id'], ['f3', 'b8', 'k8']) };
	my $outer = $key eq 'id' ? one_of(qw(k4 id late)) : one_of(qw(k4 k8 k8 g i2 late));
	return about_key($outer) . (rand() < 0.5 ? 'NOT ' : '') . "EXISTS (SELECT FROM $table $b WHERE " . ($table =~ /^d/ && rand() < 0.3 ? codes('a', $b) : "$b.$key = a.$outer") .
		(rand() < 0.8 ? ' AND ' . on('a', $b) : '') . ')';
}

# A condition that a subquery may be asked for keys by, which is about a key alone, and AND; or nothing.
sub about_key
{
	my ($column) = @_;
	return '' if rand() < 0.6;
	return one_of("a.$column LIKE 't1%'", "a.$column < 't3'", "a.$column <> 't'", "(a.$column IS NULL OR a.$column > 't')") . ' AND ' if $column =~ /^[vc]$/;
	return one_of("a.$column < 3", "a.$column IS NOT NULL", "(a.$column IS NULL OR a.$column > 1)", "a.$column IN (1, 2, 5, 30)", "a.$column IN (SELECT dk FROM d0 WHERE dg > 2)", "a.$column NOT IN (SELECT dg FROM d2 WHERE dg IS NOT NULL)",
		"EXISTS (SELECT FROM d1 t WHERE t.dk = a.$column AND t.dg < 4)", "NOT EXISTS (SELECT FROM d2 t WHERE t.dk = a.$column)") . ' AND ';
}

sub of_group
{
	my $table = one_of(qw(d0 d1 d1 d2 d3 f2 f2));
	my ($key, $g, $aggregates) = $table eq 'f2' ? (one_of(qw(k4 k8 g v c n2)), 'g', [qw(sum(s.whole) max(s.n2) min(s.d) count(s.late) avg(s.n2))])
		: ('dk', 'dg', ['sum(s.dv)', 'avg(s.dn)', 'min(s.dn)', 'max(s.dv)', 'count(s.dv)', 'count(*)', 'count(*)', 'count(DISTINCT s.dg)', 'coalesce(max(s.dv), 1)', '0.5 * sum(s.dn)']);
	my $aggregate = one_of(@$aggregates);
	my $outer = $key =~ /^(?:[vc]|n2)$/ ? $key : one_of(qw(k4 k8 k8 g i2 late));
	my $where = "s.$key = a.$outer";
	$where .= ' AND ' . one_of("s.$g = a.g", "s.$g <> 2", "s.$g > 1", "s.$g < a.g", "s.$g IN (SELECT dg FROM d2)") if rand() < 0.4;
	my $value = "(SELECT $aggregate FROM $table s WHERE $where)";
	my $column = $aggregate =~ /s\.d\)/ ? 'a.d' : one_of('a.n2', 'a.k8', 'a.g');
	my $condition = "$column " . one_of('<', '>', '>=') . " $value";
	return about_key($outer) . one_of($condition, $condition, "$value IS NULL", "($condition) IS NOT TRUE", "($condition OR a.g = 1)", "coalesce($condition, a.may)");
}

sub value
{
	my ($column) = @_;
	my $where = one_of('', '', ' AND s.dg <> 1', ' AND s.dg > 2');
	return '(SELECT ' . one_of('sum(s.dv)', 'count(*)', 'count(s.dv)', 'max(s.dv)', 'min(s.dg)', 'coalesce(max(s.dg), 7)') . ' FROM ' . one_of(qw(d0 d1 d1 d2)) . " s WHERE s.dk = $column$where)";
}

sub not_in
{
	my $where = one_of('', '', ' WHERE s.dg <> 1', " WHERE s.dt <> 'name 3'");
	return 'a.' . one_of(qw(id id id k4 k8)) . ' NOT IN (SELECT ' . one_of("s.dk FROM d0 s$where", "s.dk FROM d2 s$where", "s.dk FROM d1 s$where", 's.id FROM f2 s WHERE s.g > 2') . ')';
}

sub subquery { my $kind = rand(); return $kind < 0.5 ? member() : $kind < 0.85 ? of_group() : not_in() }

sub side
{
	my ($d, $alias, $e) = @_;
	my $on = rand() < 0.25 ? one_of(map { "$alias.$_ = $e.$_" } qw(dx dy dc du dw dz dm)) : "$alias." . one_of(qw(dg dg dk)) . " = $e.dk";
	$on .= ' AND ' . one_of("$alias.dv > $e.dg", "$e.dg <> 2", "$alias.dn < $e.dn", "$alias.dt <> $e.dt", "$alias.dd < $e.dd") if rand() < 0.4;
	return "($d $alias " . one_of('JOIN', 'JOIN', 'LEFT JOIN') . ' ' . one_of(qw(d0 d0 d2)) . " $e ON $on)";
}

# The inner side of a join is the second of what lies one step below it.
sub is_bushy
{
	my ($plan) = @_;
	for my $node (split /(?=GpuHash(?:Aggregate|Rows)\))/, $plan)
	{
		my %joins;
		for (split /\n/, $node)
		{
			next if !/^( *)->  /;
			my $depth = length $1;
			delete $joins{$_} for grep { $_ >= $depth } keys %joins;
			my ($above) = sort { $b <=> $a } keys %joins;
			return 1 if defined $above && $joins{$above}++ == 1 && /GpuHashJoin/;
			$joins{$depth} = 0 if /GpuHashJoin/;
		}
	}
	return 0;
}

sub is_unnested { my ($plan) = @_; return $plan =~ /\bgroups(?:_\d+)?\.(?:key|agg)/ }

sub is_coded { my ($plan) = @_; return $plan =~ /GpuHash(?:Aggregate|Rows)\)(?:(?!->).)*(?:->  (?:Parallel )?Custom Scan \(GpuHashJoin\)(?:(?!->).)*)+Hash Cond: [^\n]*\bd\w*\.d[xyucwzm]\b/s }

sub is_read { my ($plan) = @_; return $plan =~ /GpuHash(?:Aggregate|Rows)\)(?:(?!->).)*(?:->  (?:Parallel )?Custom Scan \(GpuHashJoin\)(?:(?!->).)*)+Join Filter/s }

1;
