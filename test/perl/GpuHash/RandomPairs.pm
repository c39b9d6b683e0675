# GpuHash::RandomPairs: random conditions on pairs of rows of the tables of GpuHash::RandomTables, which stand beside a
# join's keys, and subqueries with such.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomPairs::on($a, $b)	a condition on rows of two aliases: the first is of a table with @COLUMN, the
#						second a dimension, or of such a table if it begins with "b"
#	GpuHash::RandomPairs::member()	EXISTS or NOT EXISTS of a table, by keys of "a" and by such a condition
#	GpuHash::RandomPairs::side($d, $alias, $e)	what stands in the place of a dimension: its join with another one, of alias $e
#	GpuHash::RandomPairs::is_bushy($plan)	whether an aggregate, or rows, of a plan reads joins with inner sides that are joins
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

sub member
{
	my ($table, $b, $key) = @{ one_of(['d0', 's', 'dk'], ['d1', 's', 'dk'], ['d1', 's', 'dk'], ['d2', 's', 'dk'], ['f2', 'b8', 'k4'], ['f2', 'b8', 'k8'], ['f3', 'b8', 'id'], ['f3', 'b8', 'k8']) };
	my $outer = $key eq 'id' ? one_of(qw(k4 id late)) : one_of(qw(k4 k8 k8 g i2 late));
	return (rand() < 0.5 ? 'NOT ' : '') . "EXISTS (SELECT FROM $table $b WHERE $b.$key = a.$outer AND " . on('a', $b) . ')';
}

sub side
{
	my ($d, $alias, $e) = @_;
	my $on = "$alias." . one_of(qw(dg dg dk)) . " = $e.dk";
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

sub is_read { my ($plan) = @_; return $plan =~ /GpuHash(?:Aggregate|Rows)\)(?:(?!->).)*(?:->  (?:Parallel )?Custom Scan \(GpuHashJoin\)(?:(?!->).)*)+Join Filter/s }

1;
