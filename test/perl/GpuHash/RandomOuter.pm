# GpuHash::RandomOuter: random joins of the tables of GpuHash::RandomTables whose last one is a right or full join.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomOuter::source(%options)	what stands in FROM, as a hash:
#		from		its text; the outer side of the last join is table "a", or joins of it with others
#		wide		aliases of tables with @COLUMN
#		dimensions	and of others
#		placed		those of all that are tables, not subqueries
#		merged		the column of USING, or undef
#	GpuHash::RandomOuter::keeps_nulls($int, $bool, $text)	a condition on such columns that rows of NULLs may pass
#	GpuHash::RandomOuter::is_read($plan, $node)	whether a node (GpuHashAggregate) of a plan reads such a join
#
# Options of source():
#		changing	 whether it reads tables that change
#		plain		what a device does in the main: inner sides that are tables, joins by whole numbers
#
# As SQL, these are a LEFT JOIN of a small table with a large one, a RIGHT JOIN, and a FULL JOIN.  Keys are NULL, come
# several times, or are missing, on both sides.
package GpuHash::RandomOuter;

use strict;
use warnings;
use GpuHash::RandomExpression 'one_of';
use GpuHash::RandomPairs;
use GpuHash::RandomTables '@CHANGING';

my $DIMENSION_COLUMNS = join ', ', qw(dg dv dn dt df db dd);

# The outer side: a table, under the joins of other kinds.  Adds to the lists of %$source.
sub outer_side
{
	my ($source, %options) = @_;
	my $table = $options{changing} && rand() < 0.7 ? one_of(@CHANGING) : one_of(qw(f0 f3 f4 f4 f4 f5 f5));
	$table = one_of('parted1', 'parted', "(SELECT * FROM $table WHERE g <> 2)", "(SELECT * FROM $table WHERE v < 't3' OR may)") if rand() < ($options{plain} ? 0.1 : 0.25);
	my $select = $table =~ /SELECT/ ? $table : "(SELECT * FROM $table)";
	my $member = rand() < 0.15 ? one_of('EXISTS (SELECT FROM d1 s WHERE s.dk = m.k8)', 'NOT EXISTS (SELECT FROM d2 s WHERE s.dk = m.k4)', 'm.g IN (SELECT dk FROM d0 WHERE dg > 2)') : undef;
	my $from = defined $member ? "(SELECT m.* FROM $select m WHERE $member) a" : "$table a";
	push @{ $source->{wide} }, 'a';
	push @{ $source->{placed} }, 'a' if $from !~ /SELECT/;
	my $joins = one_of(0, 0, 1, 1, 2);
	for my $n (1 .. $joins)
	{
		# several matches once only, or a row would become very many
		my $d = $n == 1 ? one_of(qw(d0 d0 d1 d2)) : one_of(qw(d0 d2));
		$from .= ' ' . one_of('JOIN', 'LEFT JOIN') . " $d d$n ON " . (rand() < 0.2 ? GpuHash::RandomPairs::codes('a', "d$n") : 'a.' . one_of(qw(k4 k8 k8 g i2 late)) . " = d$n.dk");
		$from .= one_of(" AND d$n.dg > 1", ' AND a.g <> 3', map { ' AND ' . GpuHash::RandomPairs::on('a', "d$n") } 1 .. 2) if rand() < ($options{plain} ? 0.1 : 0.2);
		push @{ $source->{dimensions} }, "d$n";
		push @{ $source->{placed} }, "d$n";
	}
	return $joins ? "($from)" : $from;
}

# The inner side: its text, alias and key.
sub inner_side
{
	my ($source, %options) = @_;
	if (rand() < 0.35)
	{
		# few rows with keys as the outer side's, or more of them that have an id each
		my ($table, $key) = rand() < 0.6 ? (one_of(qw(f1 f2 f2 f2)), one_of(qw(k4 k8 k8 late i2))) : ($options{changing} ? one_of(@CHANGING, 'f3') : one_of(qw(f3 f3 f5)), 'id');
		$table = "(SELECT * FROM $table WHERE " . one_of('g <> 2', 'id % 3 > 0', 'may IS NOT TRUE', "v < 't3'") . ')' if rand() < 0.25;
		push @{ $source->{wide} }, 'b9';
		push @{ $source->{placed} }, 'b9' if $table !~ /SELECT/;
		return ($table, 'b9', $key);
	}
	my ($table, $key) = (one_of(qw(d0 d0 d1 d1 d2 d3)), rand() < 0.15 ? 'dg' : 'dk');
	$table = "(SELECT * FROM $table WHERE " . one_of('dg <> 2', 'dv % 3 > 0', 'db IS NOT FALSE', 'dk > 1000') . ')' if rand() < 0.2;
	push @{ $source->{dimensions} }, 'd9';
	push @{ $source->{placed} }, 'd9' if $table !~ /SELECT/;
	return ($table, 'd9', $key);
}

sub source
{
	my (%options) = @_;
	my %source = (wide => [], dimensions => [], placed => []);
	my $outer = outer_side(\%source, %options);
	my ($table, $alias, $key) = inner_side(\%source, %options);
	my $outer_key = $alias eq 'b9' && $key eq 'id' ? one_of(qw(k4 k8 g late id)) : one_of(qw(k4 k8 k8 g i2 late));
	my $on = "ON a.$outer_key = $alias.$key";
	if (rand() < 0.25)
	{
		$source{merged} = $outer_key = $alias eq 'b9' && $key ne 'id' ? $key : 'k8';
		$table = "(SELECT dk AS k8, $DIMENSION_COLUMNS FROM $table t)" if $alias eq 'd9';
		$table = "(SELECT id AS k8, g, x, v, c, d, ts, tm, o, tz, yes, may, i2, i4, i8, whole, k4, n2, n5, n0, wide, open_n, f4, f8, tame4, tame8, id, late, later, iv, u, e, nm, rg, ip, any_n, big, ch, b, mac, j, ar, cp, bt FROM $table t)" if $key eq 'id';
		$source{placed} = [grep { $_ ne $alias } @{ $source{placed} }] if $table =~ /SELECT/;
		$on = "USING ($source{merged})";
	}
	elsif (rand() < ($options{plain} ? 0.05 : 0.2))
	{
		$on .= ' AND ' . ($alias eq 'b9' ? one_of('b9.g > 1', 'a.g = b9.g', 'a.k8 <> b9.k8') : one_of('d9.dg > 1', 'a.g = d9.dg', 'a.k8 <> d9.dv'));
		$on .= ' AND a.g <> 3' if rand() < 0.2;
	}
	my $type = one_of('LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN', 'FULL JOIN');
	$source{from} = $type eq 'LEFT JOIN' ? "$table $alias $type $outer $on" : "$outer $type $table $alias $on";
	return \%source;
}

sub keeps_nulls
{
	my ($int, $bool, $text) = @_;
	return '(' . one_of("$int IS NULL", "$int IS NULL OR $int > 3", "($int > 3) IS NOT FALSE", "$int IS DISTINCT FROM 3", "coalesce($int, 1) % 3 <> 2", "$bool IS NOT TRUE", "$bool IS NULL", "coalesce($text, 't1') < 't3'",
		"CASE WHEN $int IS NULL THEN $bool IS NULL ELSE $int < 40 END", "NOT ($int IS NOT NULL AND $text = 't1')") . ')';
}

sub is_read
{
	my ($plan, $node) = @_;
	$node //= 'GpuHashAggregate';
	return $plan =~ /\Q$node\E\)(?:(?!->).)*->  (?:Parallel )?Custom Scan \(GpuHashJoin\)(?:(?!->).)*Join Type: (?:Right|Full)$/ms;
}

1;
