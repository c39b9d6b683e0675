# GpuHash::RandomLevels: random queries that make something of many groups: DISTINCT in aggregates, grouping sets, HAVING, a
# LIMIT above a Sort, groupings over groupings, and groupings that are read twice; offloaded and not, they give the same rows.
#
#	GpuHash::RandomLevels::test(queries => 300);
#
# With the service, most with engine = cuda.  Their table has no value that a device hands back, so that groups are whole there,
# and do not leave it (src/aggregate/README).  The others have the CPU engine, and its groups, by one process or several.  Everything follows from Perl's random numbers: srand() first.
#
# Each query is one text of all its rows; those of a LIMIT are sorted by all their columns.  Numerics that are equal and
# look different, sums of a choice, are nothing but summed and counted by a grouping above.
package GpuHash::RandomLevels;

use GpuHash::Test;
use GpuHash::RandomExpression qw(one_of);
use GpuHash::RandomRun;

my $TABLE = <<'SQL';
CREATE TABLE grouped AS SELECT i AS id, i % 2000 AS k, i * 7919::int8 % 701 AS x, i % 89::int2 AS s, (i * 31::int8 % 97 / 4.0)::numeric(10, 2) AS n, 'name ' || i % 613 AS t, (i % 37)::text::char(10) AS c,
	date '2020-01-01' + i % 1000 AS d, CASE WHEN i % 11 > 0 THEN i % 23 END AS z, CASE WHEN i % 5 > 0 THEN i % 3 = 0 END AS b, CASE WHEN i % 13 > 0 THEN i % 211 / 8.0::float8 END AS f, md5((i % 307)::text)::uuid AS u, ('n' || i % 101)::name AS nm FROM generate_series(1, 12000) i;
INSERT INTO grouped SELECT NULL, k, x, s, NULL, t, c, d, z, b, f, u, nm FROM grouped WHERE id <= 1500;
ANALYZE grouped;
SQL

# Expressions, and kinds: of keys, and of what is computed.
my %KEY = (id => 'int', k => 'int', x => 'int', s => 'int', z => 'int', 'k % 7' => 'int', "d - date '2020-01-01'" => 'int', n => 'numeric', t => 'text', c => 'text', d => 'date', b => 'bool', 'x > 300' => 'bool', u => 'text', nm => 'text');
my %AGGREGATE = ('count(*)' => 'int', 'count(z)' => 'int', 'sum(k)' => 'int', 'sum(id)' => 'int', 'min(z)' => 'int', 'max(s)' => 'int', 'min(x) + 1' => 'int', 'count(*) * 2' => 'int', 'sum(x)::int8' => 'int',
	'count(*) FILTER (WHERE x > 200)' => 'int', 'sum(n)' => 'numeric', 'max(n)' => 'numeric', 'sum(n * 2 - 1)' => 'numeric', 'sum(n) FILTER (WHERE b)' => 'numeric', 'avg(n)' => 'mean', 'avg(x)' => 'mean',
	'sum(n) / count(*)' => 'mean', 'sum(CASE WHEN b THEN n ELSE 0 END)' => 'mixed', 'variance(x)' => 'mean', 'min(d)' => 'date', 'max(d)' => 'date', 'min(d) + 3' => 'date', 'bool_or(b)' => 'bool', 'bool_and(z > 3)' => 'bool', 'max(f)' => 'float');
my @HAVING = ('count(*) > 1', 'sum(n) > 5', "max(d) > date '2020-03-01' AND sum(x) > 300", 'avg(x) > 300', 'min(z) IS NULL', 'sum(n) > (SELECT avg(n) / 2 FROM grouped)', "sum(n)::text <> '3'", 'count(*) > 1 AND min(x)::text > \'3\'');
my @WHERE = ('', '', '', 'WHERE x > 100', 'WHERE z IS NOT NULL', "WHERE t LIKE 'name 1%'", "WHERE u > '40000000-0000-0000-0000-000000000000'", "WHERE nm <> 'n7'");

sub some
{
	my ($most, @all) = @_;
	my %seen;
	return grep { !$seen{$_}++ } map { one_of(@all) } 1 .. $most;
}

# An aggregate of this argument with DISTINCT.
sub distinct_of
{
	my ($x) = @_;
	my @functions = $x =~ /^(?:d|t|u|nm)$/ ? ('count') : qw(count sum avg);
	return one_of(@functions) . "(DISTINCT $x)" . one_of('', '', ' FILTER (WHERE b)', ' FILTER (WHERE z > 5)');
}

# Such aggregates, of one argument or of several.
sub distinct
{
	my @arguments = some(one_of(1, 1, 2, 3), qw(x z n k id s d t u nm));
	return map { distinct_of($_) } @arguments, map { one_of(@arguments) } 1 .. one_of(0, 0, 1);
}

# A grouping of the table: its SELECT, its columns' kinds, and how many of them are keys.
sub grouping
{
	my ($nkeys) = @_;
	my @keys = some($nkeys, sort keys %KEY);
	my @aggregates = some(one_of(0, 1, 2, 3), sort keys %AGGREGATE);
	my %kind = (%KEY, %AGGREGATE);
	my $distinct = rand() < 0.35;
	my $sets = !$distinct && @keys && rand() < 0.25;
	# aggregates of floats beside DISTINCT are PostgreSQL's
	@aggregates = grep { !/\(f\)/ } @aggregates if $distinct && rand() < 0.9;
	@aggregates = grep { !/variance/ } @aggregates if $sets && rand() < 0.8;
	push @aggregates, distinct() if $distinct;
	push @aggregates, 'count(*)' if !@keys && !@aggregates;
	my @output = (@keys, @aggregates);
	my $sql = 'SELECT ' . join(', ', map { "$output[$_] AS c$_" } 0 .. $#output) . ' FROM grouped ' . one_of(@WHERE);
	my $all = join(', ', 1 .. @keys);
	$all = one_of("ROLLUP ($all)", "CUBE ($all)", "GROUPING SETS (($all), (1), ())", "GROUPING SETS ((1), (" . join(', ', 2 .. @keys) . '))') if $sets;
	$sql .= " GROUP BY $all" if @keys;
	$sql .= ' HAVING ' . one_of(@HAVING) if rand() < 0.4;
	return ($sql, [map { $kind{$_} // (/^avg/ ? 'mean' : /^count/ ? 'int' : 'sum') } @output], scalar @keys);
}

# What a grouping above computes of a column.
sub above
{
	my ($column, $kind) = @_;
	my %of = (int => ["sum($column)", "avg($column)", "max($column)", "min($column + 1)", "sum($column) FILTER (WHERE $column > 3)", "count(DISTINCT $column)"], date => ["min($column)", "max($column)"],
		numeric => ["max($column)", "sum($column)", "min($column * 2)"], mixed => ["sum($column)"], mean => ["sum($column)"], bool => ["bool_or($column)"], float => ["max($column)"], text => ["count(DISTINCT $column)"]);
	return one_of('count(*)', "count($column)", @{ $of{$kind} // [] });
}

# A grouping over a grouping, likewise.
sub nested
{
	my ($below, $kinds) = grouping(one_of(1, 2, 2, 3));
	my @may = grep { $kinds->[$_] !~ /mixed|mean|sum|float/ } 0 .. $#$kinds;
	my @keys = map { $kinds->[$_] eq 'int' && rand() < 0.3 ? "c$_ % 5" : "c$_" } some(one_of(0, 1, 1, 2), @may);
	my @output = (@keys, map { my $c = int(rand(@$kinds)); above("c$c", $kinds->[$c]) } 1 .. one_of(1, 1, 2, 3));
	my $sql = 'SELECT ' . join(', ', map { "$output[$_] AS e$_" } 0 .. $#output) . " FROM ($below) q" . (@keys ? ' GROUP BY ' . join(', ', 1 .. @keys) : '');
	$sql .= ' HAVING count(*) > 2' if rand() < 0.3;
	return ($sql, [@output], scalar @keys);
}

# A grouping in WITH that is read twice, or two times the same in FROM: with a condition on what all of it comes to, by two
# groupings of its own, or joined with itself.
sub twice
{
	my ($below, $kinds, $nkeys) = grouping(one_of(1, 1, 2, 2));
	my @compared = grep { $kinds->[$_] =~ /int|date|numeric/ } 0 .. $#$kinds;
	my $reads = sub { my $c = int(rand(@$kinds)); return above("c$c", $kinds->[$c]) };
	my $how = rand();
	my $from = one_of('w', 'w', "($below) w");
	my $with = $from eq 'w' ? "WITH w AS ($below) " : '';
	my $read_once = $from eq 'w' ? 'w' : "($below) w2";
	if ($how < 0.55 && @compared)
	{
		my $c = 'c' . one_of(@compared);
		return "${with}SELECT * FROM $from WHERE $c " . one_of('=', '=', '>=', '<') . " (SELECT " . one_of('max', 'min') . "($c) FROM $read_once)" . one_of('', '', ' AND c0 IS NOT NULL');
	}
	return "${with}SELECT 1, " . $reads->() . "::text FROM $from UNION ALL SELECT 2, " . $reads->() . "::text FROM $read_once" if $how < 0.8 || !$nkeys;
	$read_once =~ s/ w2$//;
	# by all keys, lest millions of rows come out
	my $pairs = join(' AND ', map { "b.c$_ = a.c$_" } 0 .. $nkeys - 1, $#$kinds);
	return "${with}SELECT a.*, b.c$#$kinds AS other FROM " . ($from eq 'w' ? 'w a' : "($below) a") . " JOIN $read_once b ON $pairs";
}

sub query
{
	if (rand() < 0.2)
	{
		my $text = "SELECT count(*), md5(string_agg(q::text, '|' ORDER BY q::text)) FROM (" . twice() . ') q';
		return { sql => $text, explain => $text, nested => 0 };
	}
	my $is_nested = rand() < 0.5;
	my ($sql, $columns, $nkeys) = $is_nested ? nested() : grouping(one_of(0, 1, 1, 2, 2, 3));
	my $order = 'ORDER BY q::text';
	if ($nkeys > 0 && rand() < 0.65)
	{
		my @columns = sort { rand() <=> 0.5 } 1 .. @$columns;
		$sql .= ' ORDER BY ' . join(', ', map { $_ . one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') } @columns) . ' LIMIT ' . one_of(1, 3, 10, 40) . one_of('', '', ' OFFSET 5');
		$order = '';
	}
	my $text = "SELECT count(*), md5(string_agg(q::text, '|' $order)) FROM ($sql) q";
	return { sql => $text, explain => $text, nested => $is_nested };
}

# One query both ways; adds to the job's counts.
sub compare
{
	my ($session, $count, $changing) = @_;
	my $query = query();
	my $settings = 'SET gpuhash.batch_rows = ' . one_of(256, 256, 1024) . '; SET work_mem = ' . one_of("'64kB'", "'4MB'", "'4MB'") . '; SET enable_sort = on; SET enable_hashagg = on; SET gpuhash.enable_resident = ' . one_of('on', 'off');
	my $on_host = rand() < 0.3;
	my $forced = $on_host ? "SET gpuhash.engine = cpu; SET hash_mem_multiplier = " . one_of(1, 2) . '; SET max_parallel_workers_per_gather = ' . one_of(0, 0, 0, 1, 2) :
		'SET gpuhash.engine = cuda; SET hash_mem_multiplier = 2; SET max_parallel_workers_per_gather = 0';
	my $answer = GpuHash::RandomRun::both_ways($session, %$query, settings => $settings, forced => $forced, shown => 1);
	my $same = $answer->{error} eq $answer->{want_error} && $answer->{got} eq $answer->{want};
	push @{ $count->{wrong} }, $answer->{printed} if !$same;
	push @{ $count->{invalid} }, $answer->{printed} if $answer->{want_error} ne '';
	$count->{compared}++;
	$count->{on_host} += $on_host;
	$count->{first_on_host} += $on_host && $answer->{shown} =~ /, First \(rows=/ ? 1 : 0;
	return if $on_host;
	$count->{left} += $answer->{shown} =~ /Groups Left on Device: [1-9]/ ? 1 : 0;
	$count->{distinct} += $answer->{shown} =~ /Distinct Key.*Distinct \(rows=(\d+)\).*Groups Left on Device: [1-9]/s ? 1 : 0;
	$count->{several} += $answer->{shown} =~ /Distinct Key: [^\n]*, .*Distinct \(rows=(\d+)\).*Groups Left on Device: [1-9]/s ? 1 : 0;
	$count->{sets} += $answer->{shown} =~ /Grouping Sets.*Engine: cuda.*Groups Left on Device: [1-9]/s ? 1 : 0;
	$count->{shared} += $answer->{shown} =~ /Groups Shared: [1-9]/ ? 1 : 0;
	$count->{first} += $answer->{shown} =~ /, First \(rows=/ ? 1 : 0;
	$count->{nested} += $query->{nested} && $answer->{shown} =~ /Rows q_1 .*\n *Engine: cuda/ ? 1 : 0;
	return;
}

sub test
{
	my (%options) = @_;
	my $run = GpuHash::RandomRun->new(queries => $options{queries});
	$run->start(device => 1);
	$run->{server}->query($TABLE);
	my $sum = $run->all(\&compare);
	$sum->{$_} //= 0 for qw(compared left distinct several sets first nested shared on_host first_on_host);
	my $device = $sum->{compared} - $sum->{on_host};
	my $wrong = @{ $sum->{wrong} };
	note(sprintf '%d right, %d wrong: queries compared, seed %d, %d jobs; of %d groups stayed on the device; %d with DISTINCT, %d of several arguments, %d with grouping sets, %d of which the first were wanted, %d groupings over groupings; of %d groups were shared; %d by the CPU engine, of %d of which the first were wanted; %.0f s',
		$sum->{compared} - $wrong, $wrong, $run->{seed}, $run->{jobs}, @$sum{qw(left distinct several sets first nested shared on_host first_on_host seconds)});
	$run->check($sum);
	cmp_ok($sum->{shared}, '>', 0.02 * $device, 'of some two nodes had the same groups');
	cmp_ok($sum->{left}, '>', 0.25 * $device, 'of many queries groups stayed on the device');
	cmp_ok($sum->{distinct}, '>', 0.04 * $device, 'of some with DISTINCT');
	cmp_ok($sum->{several}, '>', 0, 'also of several arguments');
	cmp_ok($sum->{sets}, '>', 0, 'of some with grouping sets');
	cmp_ok($sum->{first}, '>', 0, 'of some as they were not among the first');
	cmp_ok($sum->{first_on_host}, '>', 0.02 * $sum->{on_host}, 'and of some of the CPU engine');
	cmp_ok($sum->{nested}, '>', 0.1 * $device, 'and of some for the grouping above');
	return;
}

1;
