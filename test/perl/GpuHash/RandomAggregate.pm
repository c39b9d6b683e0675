# GpuHash::RandomAggregate: random queries that aggregate the tables of GpuHash::RandomTables.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomAggregate::query(%options)	a query, as a hash:
#		sql			what to run; its rows are two records, of exact values and of floats
#		explain		the statement in it that aggregates
#		in_order	whether floats are the same, too: see below
#		changing	(an option, too) whether it reads tables that change
#		distinct	whether it is SELECT DISTINCT
#		several		whether its aggregates with DISTINCT may have several arguments
#		limited		whether it has a LIMIT
#		outer		whether it was made so that its last join is a right or full one; as an option, how often it is
#	GpuHash::RandomAggregate::scan(%options)	a query for rows of one table, likewise; its rows are text
#		parallel	(an option) it may not depend on the order of rows
#
# Sums, averages and variances of floats depend on the order of rows, and so do the extremes
# of 0 and -0.  Where a query reads one table from its first row to its last in one process, and
# its groups stay in memory, it is in_order and takes any floats; elsewhere only such whose sums
# are exact, multiples of 1/8 of at most 1000, so that just the last digits of a variance may differ.
package GpuHash::RandomAggregate;

use strict;
use warnings;
use GpuHash::RandomExpression qw(one_of expression condition);
use GpuHash::RandomOuter;
use GpuHash::RandomPairs;
use GpuHash::RandomTables qw(@COLUMN @FACTS @CHANGING $ALL);

my @SUPPORTED = grep { $_->[1] ne '' } @COLUMN;
my %SAFE = (int => [qw(i2 i4 i8 whole g k4 k8)], numeric => [qw(n2 n5 n0 wide open_n)], float => [qw(tame4 tame8)], bool => [qw(yes may)],
	ordered => [qw(d ts tm o tz)], text => [qw(x v c)], bytes => [qw(u nm b mac)], label => ['e']);

# ------------------------------------------------------------------ sources

# The aliases of the query that is made: of tables with @COLUMN, and of dimensions; the column of USING; and whether
# the last of its joins is a right or full one.
my (@wide, @dimensions, $merged, $outer, $in_order, $parameter, $any_error);
# What aggregates with DISTINCT have as their argument, and its kind; undef: there are none.  Others: other arguments, in pairs with their kinds.
my ($distinct, $distinct_kind, @others);
# Whether the query may have grouping sets: sums of floats in them are PostgreSQL's.
my $sets;
# Whether the query is to have many groups, of which the first are wanted.
my $many;

sub column
{
	my ($kind) = @_;
	return $merged if defined $merged && $kind eq 'int' && rand() < 0.3;
	return one_of(@wide) . '.' . one_of(@{ $SAFE{$kind} }) if !@dimensions || rand() < 0.5;
	my %dimension = (int => [qw(dg dv)], numeric => ['dn'], float => ['df'], bool => ['db'], ordered => ['dd'], text => ['dt']);
	return one_of(@wide) . '.' . one_of(@{ $SAFE{$kind} }) if !$dimension{$kind};
	return one_of(@dimensions) . '.' . one_of(@{ $dimension{$kind} });
}

# FROM of a query whose last join is a right or full one, likewise.
sub outer_source
{
	my ($changing) = @_;
	my $source = GpuHash::RandomOuter::source(changing => $changing, plain => rand() < 0.7);
	@wide = @{ $source->{wide} };
	@dimensions = @{ $source->{dimensions} };
	$merged = $source->{merged};
	return $source->{from};
}

# Rows of several queries, of which one may be a join, or groups.
sub united
{
	my ($table) = @_;
	my $other = one_of("f2 WHERE g > 1", "f3 JOIN d0 ON dk = k4", "f2", "(SELECT DISTINCT $ALL FROM f3 WHERE id % 9 = 1) q");
	return "(SELECT $ALL FROM $table UNION ALL SELECT $ALL FROM $other" . one_of('', '', " UNION ALL SELECT $ALL FROM $table WHERE may") . ') a';
}

# FROM of a query, which fills @wide and @dimensions.
sub source
{
	my ($changing) = @_;
	my $table = $many ? 'f5' : $changing && rand() < 0.8 ? one_of(@CHANGING) : one_of(@FACTS, 'f3', 'f4', 'f5');
	my $kind = rand();
	@wide = ('a');
	if ($kind < 0.5)
	{
		$in_order = 1;
		return "$table a";
	}
	return one_of('parted', 'parted', 'parted1', 'barrier', 'both_tables') . ' a' if $kind < 0.6;
	return one_of("(SELECT * FROM $table WHERE g <> 2 OFFSET 0) a", united($table), united($table), "$table a TABLESAMPLE SYSTEM (100)") if $kind < 0.68;
	my $from = rand() < 0.1 ? united($table) : "$table a";
	for my $n (1 .. one_of(1, 1, 1, 2, 2, 3))
	{
		my $type = one_of('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		# several rows of a dimension for one, once only
		my $d = $n > 1 ? one_of(qw(d0 d0 d2 d3)) : one_of(qw(d0 d0 d1 d2 d3));
		my $key = one_of('k4', 'k8', 'k8', 'g', 'i2');
		my $on = rand() < 0.3 ? GpuHash::RandomPairs::codes('a', "d$n") : "a.$key = d$n.dk";
		$on .= ' AND ' . one_of("d$n.dg > 1", 'a.g <> 3', "d$n.dt <> 'name 3'", map { GpuHash::RandomPairs::on('a', "d$n") } 1 .. 4) if rand() < 0.35;
		my $bushy = rand() < 0.15;
		$from .= " $type " . ($bushy ? GpuHash::RandomPairs::side($d, "d$n", "e$n") : "$d d$n") . " ON $on";
		push @dimensions, "d$n", $bushy ? "e$n" : ();
	}
	$from .= ' JOIN f2 b ON a.g = b.id' if rand() < 0.1;
	return $from;
}

# -------------------------------------------------------------- expressions

sub bytes_condition
{
	my $alias = one_of(@wide);
	my $column = one_of(@{ $SAFE{bytes} });
	my %type = (u => 'uuid', nm => 'name', b => 'bytea', mac => 'mac');
	my @constants = @{ $GpuHash::RandomExpression::constant{ $type{$column} } };
	return "$alias.$column IN (" . join(', ', @constants, one_of(@constants, 'NULL')) . ')' if rand() < 0.3;
	return "$alias.$column" . one_of(' = ', ' <> ', ' < ', ' <= ', ' > ', ' >= ', ' IS DISTINCT FROM ') . one_of(@constants, one_of(@wide) . ".$column");
}

# A condition that raises no error: where rows are joined, which of them it is asked about
# depends on the plan.
sub safe_condition
{
	my @one = (column('int') . one_of(' > 3', ' <= 1000', ' IN (1, 2, 3, 50)', ' IS NULL', ' IS NOT NULL', ' <> 7'), column('numeric') . one_of(' > 0.5', ' < 20', " = 'NaN'"),
		column('bool') . one_of('', ' IS NOT TRUE', ' IS NULL'), column('text') . one_of(" <> 't1'", " < 't3'", " LIKE '%1'"), column('float') . one_of(' < 500', ' >= 3.5'), column('label') . one_of(" = 'e1'", " <> 'e3'", " IN ('e4', 'e0')", " NOT IN ('e2', NULL)", " IS NULL", " IS DISTINCT FROM 'e2'", " > 'e1'"), bytes_condition(), 'coalesce(' . column('int') . ', 1) % 3 <> 1');
	my $condition = '(' . one_of(@one) . ')';
	$condition = "($condition " . one_of('AND', 'OR') . ' (' . one_of(@one) . '))' if rand() < 0.3;
	return $condition;
}

sub any_condition { return $any_error ? condition(one_of(1, 1, 2)) : safe_condition() }

# Whether equal values of a text expression may look different: the lesser of a char and a varchar is a char,
# with the blanks of whichever it is.  Which of them a group shows, or is the minimum, depends on the order of rows.
sub blanks_vary { my ($expression) = @_; return $expression =~ /\b(?:greatest|least)\(/ }

# An argument: its kind, the expression, and whether equal values may look different.
sub argument
{
	my $kind = one_of(qw(int int int numeric numeric numeric float float bool ordered text bytes label));
	my ($a, $b) = (column($kind), column($kind));
	$a = 'a.' . one_of(qw(f4 f8)) if $in_order && $kind eq 'float' && rand() < 0.7;
	if ($any_error && rand() < 0.7 && ($in_order || $kind ne 'float'))
	{
		my %type = (int => [qw(i2 i4 i8)], numeric => ['numeric'], float => [qw(f4 f8)], bool => ['bool'], ordered => [qw(date timestamp timestamptz time oid)], text => [qw(text char)], bytes => [qw(uuid name bytea mac)], label => ['bool']);
		my $expression = expression(one_of(@{ $type{$kind} }), one_of(1, 1, 2, 3));
		return ($kind, $expression, $kind eq 'numeric' || $kind eq 'text' && blanks_vary($expression));
	}
	return ($kind, $a, 0) if rand() < 0.5 || $kind !~ /int|numeric|float/;
	return ($kind, "CASE WHEN " . safe_condition() . " THEN $a END", 0) if rand() < 0.3;
	return ($kind, one_of("coalesce($a, 1)", "coalesce($a, $b)", "nullif($a, 1)"), $kind eq 'numeric') if rand() < 0.4;
	my $computed = one_of($kind eq 'int' ? ("$a % 10", "$a / 7") : ("-$a", "$a + $b", $kind eq 'float' ? ("$a * 2", "floor($a)") : ("$a * 1.50", "$a / 7.0", "$a / 2", "$a * 1000 / 0.8 - 50", "coalesce($a / 100, $b)", "$a / (abs($b) + 1)", "round($a / 3, 2)", "$a % 3")));
	# a zero has the digits that its divisor asks for
	return ($kind, $computed, $kind eq 'numeric' && $computed =~ m{/ \(});
}

# Chooses the arguments of aggregates with DISTINCT.
sub choose_distinct
{
	@others = ();
	for (1 .. one_of(0, 0, 1, 1, 2))
	{
		choose_argument();
		push @others, [$distinct, $distinct_kind];
	}
	choose_argument();
	return;
}

# One of them.  None fails: these aggregates have filters.
sub choose_argument
{
	my $before = $any_error;
	$any_error = 0;
	($distinct_kind, $distinct, my $looks) = argument();
	$any_error = $before;
	$distinct = column('int') if $looks && rand() < 0.9;
	$distinct_kind = 'int' if $distinct =~ /^\w+\.(i2|i4|i8|whole|g|k4|k8|dg|dv)$/;
	return;
}

# An aggregate with DISTINCT, likewise.
sub distinct_aggregate
{
	my ($filter) = @_;
	my ($argument, $kind) = @{ one_of([$distinct, $distinct_kind], @others) };
	my @functions = ('count', 'count');
	push @functions, qw(sum avg variance stddev_pop) if $kind =~ /int|numeric/;
	push @functions, qw(min max) if $kind =~ /int|ordered|text/;
	push @functions, qw(bool_and bool_or) if $kind eq 'bool';
	return (one_of(@functions) . "(DISTINCT $argument)$filter", 0);
}

# An aggregate, and whether its digits depend on the order of rows.
sub aggregate
{
	return ('count(*)', 0) if rand() < 0.1;
	my ($kind, $argument, $looks) = argument();
	my @functions = ('count');
	push @functions, qw(min max) if $kind !~ /bool|bytes|label/ && ($in_order || !$looks);
	push @functions, qw(sum sum sum avg avg stddev variance var_pop stddev_samp) if $kind =~ /int|numeric|float/;
	push @functions, qw(bool_and bool_or every) if $kind eq 'bool';
	my $function = one_of(@functions);
	$argument = "($argument) COLLATE \"C\"" if $kind eq 'text' && $function ne 'count' && rand() < 0.2;
	my $filter = rand() < 0.25 ? ' FILTER (WHERE ' . any_condition() . ')' : '';
	return distinct_aggregate($filter) if defined $distinct && rand() < (@others ? 0.9 : 0.5);
	return ("count(DISTINCT $argument)", 0) if rand() < 0.005 && !$in_order;
	return ("array_agg($argument ORDER BY $argument)", 0) if rand() < 0.01 && $kind eq 'int';
	return ("$function($argument)$filter", $kind eq 'float' && $function ne 'count');
}

sub key
{
	my $kind = one_of(qw(int int int numeric bool ordered text text bytes float label));
	my $a = column($kind);
	$a = 'a.' . one_of(qw(f4 f8)) if $in_order && $kind eq 'float' && rand() < 0.7;
	return $a if rand() < 0.65;
	return 'a.' . one_of(qw(any_n iv e)) if rand() < 0.05 && $in_order;
	if ($any_error && rand() < 0.5)
	{
		my $type = one_of(qw(i2 i4 i8 bool date timestamptz timestamp text uuid name), $in_order ? 'numeric' : ());
		my $expression = expression($type, 1);
		return $type eq 'text' && !$in_order && blanks_vary($expression) ? "($expression)::text" : $expression;
	}
	return "$a % 5" if $kind eq 'int';
	return one_of("$a * 2", "$a + 0.5") if $kind =~ /numeric|float/;
	return "CASE WHEN $a = 't1' THEN 'one' WHEN $a > 't3' THEN 'more' END" if $kind eq 'text';
	return "coalesce($a, $a)";
}

# A comparison of an aggregate, or of two, or of a key; no digits of a float depend on the order of rows.
sub having_comparison
{
	my ($key) = @_;
	my ($int, $numeric, $float, $ordered, $text) = map { column($_) } qw(int numeric float ordered text);
	my $op = one_of('=', '<>', '<', '<=', '>', '>=');
	my $number = one_of(0, 1, 3, 50, 1000, -7, 123456, '2.5', '-0.125', '1e20');
	return one_of(map({ "$_ $op $number" } 'count(*)', "count($int)", "sum($int)", "sum($numeric)", "min($int)", "max($numeric)", "avg($int)", "avg($numeric)", "sum($numeric * 2 + 1)",
			"sum(CASE WHEN $int > 3 THEN $numeric ELSE 0 END)", "sum($int) FILTER (WHERE $int > 5)", "sum($int) - count(*)"),
		"sum($numeric) $op 'NaN'", "max($numeric) $op 'NaN'", "sum($numeric) $op sum($int)", "sum($numeric) BETWEEN 1 AND 500.25", "max($ordered) $op min($ordered)", "max($text) $op min($text)", "min($text) $op 't1'", "bool_or(" . column('bool') . ')',
		$in_order ? "count(*) $op 2" : ("sum($float) $op $number", "avg($float) $op $number", "max($float) $op $number"), defined $key ? ("$key IS NULL OR count(*) $op 3", "$key = $key AND count(*) $op 2") : ());
}

sub having
{
	my ($key) = @_;
	return one_of("count(DISTINCT $distinct) > 2", "count(*) > count(DISTINCT $distinct) FILTER (WHERE a.g > 2)") if defined $distinct && rand() < 0.5;
	return join(one_of(' AND ', ' AND ', ' OR '), map { one_of('', '', '', 'NOT ') . '(' . having_comparison($key) . ')' } 1 .. one_of(1, 1, 2, 3)) if rand() < 0.7;
	return one_of('count(*) > 3', 'count(a.k4) <> 5', 'sum(a.g) > 10 OR count(*) = 1', 'min(a.n2) < 3 AND max(a.i4) > 0', 'max(a.d) IS NOT NULL', 'bool_or(a.may) IS NOT FALSE',
		'sum(a.n2) > (SELECT avg(dn) FROM d0)', 'sum(a.i8) / count(*) > -5', 'avg(a.k4) < 1000 AND NOT bool_and(a.yes)');
}

# ------------------------------------------------------------------ queries

# Grouping sets of so many keys.
sub grouping_sets
{
	my ($nkeys) = @_;
	my $all = join ', ', 1 .. $nkeys;
	return one_of("ROLLUP ($all)", "CUBE ($all)") if rand() < 0.6;
	my @sets = map { '(' . join(', ', grep { rand() < 0.5 } 1 .. $nkeys) . ')' } 1 .. one_of(1, 2, 3, 5);
	return one_of('', '', 'DISTINCT ') . "GROUPING SETS (($all), " . join(', ', @sets) . ')' . one_of('', '', '', ', ROLLUP (1)');
}

# SELECT DISTINCT, likewise.  DISTINCT ON has a sort: which of equal floats comes out is open.
sub distinct_sql
{
	my ($from, $where) = @_;
	my @keys = map { key() } 1 .. one_of(1, 1, 2, 2, 3);
	my $on = !$in_order && rand() < 0.1 ? 'ON (' . join(', ', @keys) . ') ' : '';
	return ("SELECT DISTINCT $on" . join(', ', map { "$keys[$_] AS c$_" } 0 .. $#keys) . " FROM $from $where", scalar @keys, 0);
}

# The SELECT: keys and exact results, then floats.
sub select_sql
{
	my ($from, $where) = @_;
	if (!$sets && rand() < 0.1)
	{
		my ($sql, $nkeys, $nfloats) = distinct_sql($from, $where);
		return (first($sql, $nkeys), $nkeys, $nfloats);
	}
	my $nkeys = $sets ? one_of(1, 2, 2, 3, 3) : one_of(0, 0, 1, 1, 1, 1, 2, 2, 3, 4);
	my @keys = map { key() } 1 .. $nkeys;
	$keys[-1] = one_of('a.id', 'a.id', 'a.id % 4000', 'a.i8') if $many && @keys && $from =~ /\bf5 a\b/;
	my (@exact, @floats);
	for (1 .. one_of(1, 1, 2, 3, 4, 6))
	{
		my ($aggregate, $float) = aggregate();
		$aggregate = 'count(*)', $float = 0 if $float && $sets && rand() < 0.9;
		push @{ $float ? \@floats : \@exact }, $aggregate;
	}
	if (!$in_order && !$any_error && rand() < 0.12)
	{
		my ($value, @plain) = (GpuHash::RandomPairs::value('a.' . one_of(qw(k4 k8 g))), grep { /^a\.(?:k4|k8|g|i2)$/ } @keys);
		push @exact, @plain && !$sets && rand() < 0.5 ? GpuHash::RandomPairs::value(one_of(@plain)) : one_of("count($value)", "sum($value)", "max($value)", "count(*) FILTER (WHERE a.g > $value)");
	}
	if (!$in_order && !$any_error && !$outer && rand() < 0.06)
	{
		(my $value = GpuHash::RandomPairs::value('a.' . one_of(qw(k4 k8 g)))) =~ s/ FROM / AS v FROM /;
		$from .= one_of(" CROSS JOIN LATERAL $value l", " LEFT JOIN LATERAL $value l ON true");
		push @exact, one_of('sum(l.v)', 'count(l.v)', 'max(l.v)', 'count(*) FILTER (WHERE l.v > a.g)');
	}
	push @exact, 'GROUPING(' . join(', ', @keys[0 .. int(rand($nkeys))]) . ')' if $sets && rand() < 0.5;
	my @output = (@keys, @exact);
	my $sql = 'SELECT ' . join(', ', map({ "$output[$_] AS c$_" } 0 .. $#output), map({ "$floats[$_] AS r$_" } 0 .. $#floats)) . " FROM $from $where";
	$sql .= ' GROUP BY ' . ($sets ? grouping_sets($nkeys) : join(', ', 1 .. $nkeys)) if $nkeys > 0;
	$sql .= ' HAVING ' . having($keys[0]) if rand() < 0.3;
	$sql .= ' HAVING count(*) > ' . GpuHash::RandomPairs::value($keys[0]) if $sql !~ /HAVING/ && !$sets && !$any_error && !$in_order && ($keys[0] // '') =~ /^a\.(?:k4|k8|g|i2)$/ && rand() < 0.15;
	# PostgreSQL orders by one of two keys that are the same, also where they are of other grouping sets
	my %seen;
	$sql = first($sql, scalar @output) if !$sets || !grep { $seen{$_}++ } @keys;
	return ($sql, scalar @output, scalar @floats);
}

# Maybe just the first rows, in an order by all columns that are the same any way: these have keys that tell groups apart.  What raises
# an error may not come to it, then.
sub first
{
	my ($sql, $columns) = @_;
	return $sql if $any_error || $sql !~ /GROUP BY|^SELECT DISTINCT (?!ON)/ || rand() > ($many ? 0.9 : 0.05);
	my @columns = sort { rand() <=> 0.5 } 1 .. $columns;
	return "$sql ORDER BY " . join(', ', map { $_ . one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') } @columns) . ' LIMIT ' . one_of(1, 1, 2, 4, 12, 60) . one_of('', '', '', ' OFFSET 4');
}

# A condition with a subquery; all but the last become joins or are asked in an order of their own.
my @MEMBERSHIPS = ('(a.k4 < 3 OR EXISTS (SELECT FROM d1 s WHERE s.dk = a.k8 AND s.dg > 1))', 'EXISTS (SELECT FROM d1 s WHERE s.dk = a.k8)', 'NOT EXISTS (SELECT FROM d2 s WHERE s.dk = a.k8)', 'a.k4 IN (SELECT dk FROM d0 WHERE dg > 2)',
	'a.k8 NOT IN (SELECT dk FROM d2)', 'a.n2 > (SELECT avg(dn) FROM d1)');

sub where
{
	my ($member) = @_;
	my @where;
	push @where, GpuHash::RandomOuter::keeps_nulls(column('int'), column('bool'), column('text')) if $outer && rand() < 0.3;
	push @where, any_condition() if rand() < ($outer ? 0.1 : 0.5);
	push @where, 'a.k4 ' . one_of('<', '>', '<>') . ' $1' if $parameter;
	push @where, $member if defined $member;
	return @where ? 'WHERE ' . join(' AND ', @where) : '';
}

# Sets the columns that random expressions may have.
sub set_columns
{
	my %by_type;
	push @{ $by_type{ $_->[1] } }, "a.$_->[0]" for @SUPPORTED;
	push @{ $by_type{i4} }, 'a.late', 'a.later';
	@by_type{qw(f4 f8)} = (['a.tame4'], ['a.tame8']) if !$in_order;
	%GpuHash::RandomExpression::column = %by_type;
	return;
}

sub query
{
	my (%options) = @_;
	@dimensions = ();
	$in_order = 0;
	$merged = undef;
	$outer = rand() < ($options{outer} // 0);
	$many = !$outer && rand() < 0.12;
	my $from = $outer ? outer_source($options{changing}) : source($options{changing});
	my $member = rand() < ($outer ? 0.05 : 0.2) ? one_of(@MEMBERSHIPS, map { GpuHash::RandomPairs::subquery() } @MEMBERSHIPS) : undef;
	$member .= ' AND ' . GpuHash::RandomPairs::subquery() if defined $member && rand() < 0.2;
	$in_order &&= $options{in_order} && !defined $member;
	$any_error = !@dimensions && !$outer && !defined $member && !$many && rand() < 0.65;
	my $correlated = (!@dimensions || $outer) && rand() < 0.08;
	$parameter = !$correlated && rand() < ($outer ? 0.04 : 0.08);
	undef $distinct;
	if (rand() < 0.18)
	{
		$in_order = 0;
		choose_distinct();
	}
	$sets = !$correlated && !defined $distinct && rand() < 0.12;
	$in_order &&= !$sets;
	set_columns();
	my $where = where($member);
	my ($sql, $exact, $floats);
	if ($correlated)
	{
		my ($aggregate, $float) = aggregate();
		my $with = $where eq '' ? 'WHERE' : "$where AND";
		my $asked = $outer ? 'coalesce(a.g, o.dg) >= o.dg' : '(a.k4 = o.dk OR a.g > o.dg)';
		$sql = 'SELECT o.dk AS c0, ' . ($float ? '' : '0 AS r0, ') . "(SELECT $aggregate FROM $from $with $asked) AS " . ($float ? 'r0' : 'c1') . ' FROM ' . one_of('d2', 'd2', 'd2', 'd0') . ' o';
		($exact, $floats) = ($float ? 1 : 2, 1);
	}
	else { ($sql, $exact, $floats) = select_sql($from, $where) }
	my $text = 'SELECT ROW(' . join(', ', map { "c$_" } 0 .. $exact - 1) . ')::text, ROW(' . join(', ', map { "r$_" } 0 .. $floats - 1) . ")::text FROM ($sql) s ORDER BY 1, 2";
	my $several = defined $distinct && grep { $_->[0] ne $distinct } @others;
	my $selects = $sql =~ /^SELECT DISTINCT/ ? 1 : 0;
	return { sql => $text, explain => $text, in_order => $in_order, outer => $outer, distinct => $selects, several => $several, limited => scalar($sql =~ / LIMIT \d/) } if !$parameter;
	(my $explain = $text) =~ s/\$1/5/g;
	return { sql => "PREPARE q(int) AS $text; EXECUTE q(5); EXECUTE q(0); EXECUTE q(NULL); DEALLOCATE q", explain => $explain, in_order => $in_order, outer => $outer, distinct => $selects, several => $several, limited => scalar($sql =~ / LIMIT \d/) };
}

# Steps of a cursor over a query, there and back.
sub walked
{
	my ($query) = @_;
	my @step = map { one_of('FETCH 1', 'FETCH 5', 'FETCH 40', 'MOVE 300', 'FETCH ALL', 'FETCH BACKWARD 1', 'FETCH BACKWARD 7', 'FETCH BACKWARD ALL', 'FETCH LAST', 'FETCH FIRST', 'FETCH ABSOLUTE 20') . ' FROM c' } 1 .. 8;
	return "DECLARE c SCROLL CURSOR FOR $query; " . join('; ', @step) . '; CLOSE c';
}

sub scan
{
	my (%options) = @_;
	@dimensions = ();
	@wide = ('a');
	($merged, $outer) = (undef, 0);
	$in_order = 1;
	$any_error = rand() < 0.6;
	set_columns();
	my $table = $options{changing} && rand() < 0.8 ? one_of(@CHANGING) : one_of(@FACTS, qw(f3 f4 f5 parted parted1 barrier));
	my $count = one_of(1, 1, 2, 2, 3);
	my @where = map { any_condition() } 1 .. $count;
	push @where, "a.x LIKE '%1'" if rand() < 0.15;
	push @where, 'a.k4 < (SELECT max(dv) FROM d2)' if rand() < 0.1;
	my @output = map { one_of('a.' . one_of(map { $_->[0] } @COLUMN), 'a.id', 'a.late', 'a.later', 'a', 'a.ctid', 'a.tableoid::regclass', column('text') . " || '.'") } 1 .. one_of(1, 2, 4);
	@output = grep { !/ctid/ } @output, 'a.g' if $table eq 'barrier';
	@output = grep { !/tableoid/ } @output if $table eq 'barrier';
	my $correlated = !$options{parallel} && rand() < 0.1;
	push @where, one_of('a.k4 = o.dk', 'a.k8 > o.dg', 'a.g + o.dg < 6') if $correlated;
	my $sql = 'SELECT ROW(' . join(', ', @output) . ")::text FROM $table a WHERE " . join(' AND ', @where);
	$sql .= ' LIMIT ' . one_of(1, 3, 50) if !$options{parallel} && rand() < 0.25;
	$sql = "SELECT ROW(dk, ARRAY($sql))::text FROM d2 o" if $correlated;
	return { sql => $sql, explain => $sql } if $correlated || rand() < 0.8 || $options{parallel};
	return { sql => walked($sql), explain => $sql } if $table !~ /barrier|parted$/;
	(my $parameter = $sql) =~ s/ WHERE / WHERE a.k4 <> \$1 AND /;
	return { sql => "PREPARE q(int) AS $parameter; EXECUTE q(5); EXECUTE q(0); EXECUTE q(NULL); DEALLOCATE q", explain => $sql };
}

1;
