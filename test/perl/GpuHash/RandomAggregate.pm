# GpuHash::RandomAggregate: random tables, and random queries that aggregate them.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomAggregate::schema()		SQL that makes the tables
#	GpuHash::RandomAggregate::change()		SQL that changes some of them, as another session may
#	GpuHash::RandomAggregate::settings()	SQL that sets what is drawn of %SETTINGS
#	GpuHash::RandomAggregate::query(%options)	a query, as a hash:
#		sql			what to run; its rows are two records, of exact values and of floats
#		explain		the statement in it that aggregates
#		in_order	whether floats are the same, too: see below
#		changing	(an option, too) whether it reads tables that change
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

# What is drawn for each query.
our %SETTINGS = (
	'gpuhash.batch_rows' => [256, 1000, 16384],
	'gpuhash.enable_scan' => [qw(on on on off)],
	'gpuhash.enable_join' => [qw(on on on off)],
	enable_partitionwise_aggregate => [qw(on off)],
	enable_partitionwise_join => [qw(on off)],
	enable_hashagg => [qw(on on off)],
	enable_nestloop => [qw(on on off)],
	enable_material => [qw(on on off)],
	plan_cache_mode => [qw(auto force_generic_plan)]);

# ------------------------------------------------------------------- tables

# Columns: name, type as GpuHash::RandomExpression calls it or '' for one that it does not
# know, SQL type, what it is made of k (small, NULL for some) and i.
my @COLUMN = (
	[yes => 'bool', 'bool', 'k % 3 = 0'],
	[may => 'bool', 'bool', 'CASE WHEN i % 3 > 0 THEN k % 2 = 0 END'],
	[i2 => 'i2', 'int2', 'CASE k % 17 WHEN 0 THEN -32768 WHEN 1 THEN 32767 ELSE k % 300 - 100 END'],
	[i4 => 'i4', 'int4', 'CASE k % 19 WHEN 0 THEN -2147483648 WHEN 1 THEN 2147483647 ELSE i * 7919 % 2000 - 1000 END'],
	[i8 => 'i8', 'int8', "CASE k % 23 WHEN 0 THEN '-9223372036854775808'::int8 WHEN 1 THEN 9223372036854775807 ELSE i * i * 1000003 * (i % 3 - 1) END"],
	[whole => 'i4', 'whole', 'i % 100'],
	[f4 => 'f4', 'float4', "(CASE k % 29 WHEN 1 THEN 'NaN' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' WHEN 5 THEN '1e30' WHEN 6 THEN '1e-40' ELSE (i / 7.0)::text END)::float4"],
	[f8 => 'f8', 'float8', "(CASE k % 31 WHEN 1 THEN 'NaN' WHEN 2 THEN '-inf' WHEN 3 THEN '0' WHEN 4 THEN '-0' WHEN 5 THEN '1e150' WHEN 6 THEN '5e-324' ELSE ((i - 1000) / 3.0)::text END)::float8"],
	[n2 => 'numeric', 'numeric(12, 2)', 'k / 100.0 - 7'],
	[n5 => 'numeric', 'numeric(25, 5)', "CASE k % 37 WHEN 0 THEN 'NaN' WHEN 1 THEN 99999999999999999999.99999 WHEN 2 THEN -0.00001 ELSE i * 1.001 - 900 END"],
	[n0 => 'numeric', 'numeric(38, 0)', 'CASE k % 11 WHEN 0 THEN 99999999999999999999999999999999999999 WHEN 1 THEN -99999999999999999999999999999999999998 ELSE i * 12345678901234567::numeric END'],
	[wide => 'numeric', 'numeric(70, 10)', 'CASE k % 13 WHEN 0 THEN 1e55 WHEN 1 THEN -1e55 WHEN 2 THEN 0 ELSE k * 1.0000000001 END'],
	[x => 'text', 'text', "CASE WHEN i % 41 = 0 THEN repeat('long ' || k, 900) ELSE repeat('t', (k % 4)::int) || k % 50 END"],
	[v => 'text', 'varchar(30)', "CASE k % 43 WHEN 0 THEN '' WHEN 1 THEN 't ' ELSE 't' || k % 40 END"],
	[c => 'char', 'char(6)', "'t' || k % 30"],
	[d => 'date', 'date', "CASE k % 47 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE (date '2000-01-01' + (k % 4000 - 2000)::int)::text END::date"],
	[ts => 'timestamp', 'timestamp', "CASE k % 53 WHEN 0 THEN 'infinity' ELSE (timestamp '1999-01-01' + k * interval '7 hours')::text END::timestamp"],
	[tz => '', 'timestamptz', "timestamptz '1999-01-01 UTC' + k * interval '7 hours'"],
	[tm => 'time', 'time', "time '00:00' + k % 1440 * interval '1 minute'"],
	[o => 'oid', 'oid', '(4294967295 - k % 20)'],
	# numbers that do not come near any limit; sums of tame4 have no rounding, which depends on the order
	[g => 'i4', 'int4', 'k % 6'],
	[tame4 => 'f4', 'float4', '(k % 800) / 8.0'],
	[tame8 => 'f8', 'float8', '(i % 8000) / 8.0'],
	# what the engines do not know
	[any_n => '', 'numeric', "CASE k % 7 WHEN 0 THEN 'inf' WHEN 1 THEN 1.0 WHEN 2 THEN 1.00 ELSE i END::numeric"],
	[iv => '', 'interval', "k * interval '15 days'"],
	[u => '', 'uuid', 'md5(k::text)::uuid'],
	[e => '', 'label', "('e' || k % 5)::label"],
	# join keys
	[k4 => 'i4', 'int4', 'k'],
	[k8 => 'i8', 'int8', 'k % 50']);
my $ALL = join ', ', 'id', 'late', 'later', map { $_->[0] } @COLUMN;
my @SUPPORTED = grep { $_->[1] ne '' } @COLUMN;
my %SAFE = (int => [qw(i2 i4 i8 whole g k4 k8)], numeric => [qw(n2 n5 n0 wide)], float => [qw(tame4 tame8)], bool => [qw(yes may)],
	ordered => [qw(d ts tm o tz)], text => [qw(x v c)]);

my @FACTS = map { "f$_" } 0 .. 5;
my @CHANGING = qw(h0 h1);

sub rows_sql
{
	my ($rows, $first) = @_;
	my $distinct = one_of(1, 5, 60, 400, 3000);
	my $null = one_of(3, 11, 1000000);
	my $key = one_of("i % $distinct", "i * 7919 % $distinct", "i * i % $distinct");
	my $from = $first // 1;
	return 'SELECT i::int AS id, ' . join(', ', map { "($_->[3])::$_->[2]" } @COLUMN) .
		" FROM (SELECT i, CASE WHEN i % $null = 1 THEN NULL ELSE $key END AS k FROM generate_series($from\::int8, $from + $rows - 1) i) s";
}

# An empty table; its columns in any order, and some that were dropped.
sub table_sql
{
	my ($name, $options) = @_;
	my @columns = ('id int', map { "$_->[0] $_->[2]" } @COLUMN);
	my @place = map { rand } @columns;
	@columns = @columns[sort { $place[$a] <=> $place[$b] } 0 .. $#columns];
	my @gone = rand() < 0.4 ? ("gone1 " . one_of(qw(text int8 bool)), 'gone2 int') : ();
	splice @columns, int(rand(@columns)), 0, $_ for @gone;
	return "CREATE TABLE $name (" . join(', ', @columns) . ") $options;\n" .
		join('', map { "ALTER TABLE $name DROP COLUMN " . (split)[0] . ";\n" } @gone);
}

sub insert_sql
{
	my ($name, $rows, $first) = @_;
	return "INSERT INTO $name (id, " . join(', ', map { $_->[0] } @COLUMN) . ') ' . rows_sql($rows, $first) . ";\n";
}

sub schema
{
	my $sql = "CREATE DOMAIN whole AS int4;\nCREATE TYPE label AS ENUM ('e0', 'e1', 'e2', 'e3', 'e4');\n";
	my @rows = (0, 1, 90, 700, 2500, 12000);
	for my $f (0 .. $#FACTS)
	{
		$sql .= table_sql($FACTS[$f], '') . insert_sql($FACTS[$f], int($rows[$f] / 2));
		# attributes that the tuples so far lack
		$sql .= "ALTER TABLE $FACTS[$f] ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql($FACTS[$f], int(($rows[$f] + 1) / 2), 10000);
		$sql .= "UPDATE $FACTS[$f] SET late = id % 9, later = CASE WHEN id % 2 = 0 THEN id END WHERE id % 3 = 0;\nDELETE FROM $FACTS[$f] WHERE id % 17 = 5;\n";
	}
	# dimensions, by the key's values: unique ones, several of each, none; NULLs; wide rows
	$sql .= 'CREATE TABLE d0 AS SELECT i AS dk, i % 7 AS dg, i * 100000 AS dv, (i % 4)::numeric(6, 2) AS dn, \'name \' || i % 9 AS dt, i / 8.0::float8 AS df, i % 3 = 0 AS db, date \'2000-01-01\' + i AS dd FROM generate_series(0, 60) i;
CREATE TABLE d1 AS SELECT CASE WHEN i % 20 > 0 THEN (i % 40)::int8 END AS dk, i % 3 AS dg, CASE WHEN i % 5 > 0 THEN i END AS dv, (i / 3.0)::numeric(8, 3) AS dn, repeat(\'name \' || i % 30, 30) AS dt, i / 8.0::float8 AS df, NULL::bool AS db, date \'2000-01-01\' + i % 5 AS dd FROM generate_series(1, 120) i;
CREATE TABLE d2 AS SELECT i::int2 AS dk, i AS dg, i AS dv, i::numeric(5, 1) AS dn, \'one \' || i AS dt, i::float8 AS df, true AS db, date \'2000-01-01\' AS dd FROM generate_series(3, 12) i;
CREATE TABLE d3 (LIKE d0);
';
	$sql .= table_sql('parted', 'PARTITION BY HASH (g)');
	$sql .= "CREATE TABLE parted$_ PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER $_);\n" for 0 .. 2;
	$sql .= insert_sql('parted', 900) . "ALTER TABLE parted ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql('parted', 300, 2000);
	for my $h (@CHANGING)
	{
		$sql .= table_sql($h, 'WITH (fillfactor = ' . one_of(60, 100) . ', autovacuum_enabled = off)') . "ALTER TABLE $h ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql($h, 1500) . "CREATE INDEX ON $h (id);\n";
	}
	$sql .= "CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM f3 WHERE id % 5 <> 2;
CREATE VIEW both_tables AS SELECT $ALL FROM f2 WHERE g > 1 UNION ALL SELECT $ALL FROM f3 WHERE may;
";
	return $sql . "VACUUM ANALYZE;\n";
}

# One statement, or several in a transaction, of a session that changes the tables.
sub change
{
	my $h = one_of(@CHANGING);
	my ($n, $m) = (1 + int(rand(9)), 2 + int(rand(8)));
	my $first = 10000 + int(rand(1e6));
	my @kind = (
		"UPDATE $h SET i4 = $n, tame8 = tame8 + 0.125, n2 = n2 + 1 WHERE id % $m = 1",
		"UPDATE $h SET id = id + 1, x = x || '.' WHERE id % 13 = $n",
		"DELETE FROM $h WHERE id % 10 = $n; " . insert_sql($h, 150, $first),
		"DELETE FROM $h WHERE ctid IN (SELECT ctid FROM $h LIMIT 200); " . insert_sql($h, 200, $first),
		"BEGIN; UPDATE $h SET k4 = k4 + 1 WHERE id % $m = 0; ROLLBACK",
		"BEGIN; SAVEPOINT s; DELETE FROM $h WHERE id % $m = 0; ROLLBACK TO s; UPDATE $h SET g = $n WHERE id % 20 = $m; COMMIT",
		"BEGIN; SELECT count(*) FROM (SELECT 1 FROM $h WHERE id % $m = 0 FOR SHARE) s; COMMIT",
		"VACUUM $h", "VACUUM (FREEZE) $h", "VACUUM ANALYZE $h");
	return one_of(@kind);
}

sub settings
{
	return join('; ', map { "SET $_ = " . one_of(@{ $SETTINGS{$_} }) } sort keys %SETTINGS) .
		($ENV{GPUHASH_RANDOM_SETTINGS} ? "; $ENV{GPUHASH_RANDOM_SETTINGS}" : '');
}

# ------------------------------------------------------------------ sources

# The aliases of the query that is made: of tables with @COLUMN, and of dimensions.
my (@wide, @dimensions, $in_order, $parameter, $any_error);

sub column
{
	my ($kind) = @_;
	return one_of(@wide) . '.' . one_of(@{ $SAFE{$kind} }) if !@dimensions || rand() < 0.5;
	my %dimension = (int => [qw(dg dv)], numeric => ['dn'], float => ['df'], bool => ['db'], ordered => ['dd'], text => ['dt']);
	return one_of(@dimensions) . '.' . one_of(@{ $dimension{$kind} });
}

# FROM of a query, which fills @wide and @dimensions.
sub source
{
	my ($changing) = @_;
	my $table = $changing && rand() < 0.8 ? one_of(@CHANGING) : one_of(@FACTS, 'f3', 'f4', 'f5');
	my $kind = rand();
	@wide = ('a');
	if ($kind < 0.5)
	{
		$in_order = 1;
		return "$table a";
	}
	return one_of('parted', 'parted', 'parted1', 'barrier', 'both_tables') . ' a' if $kind < 0.6;
	return one_of("(SELECT * FROM $table WHERE g <> 2 OFFSET 0) a", "(SELECT $ALL FROM $table UNION ALL SELECT $ALL FROM f2) a", "$table a TABLESAMPLE SYSTEM (100)") if $kind < 0.66;
	my $from = "$table a";
	for my $n (1 .. one_of(1, 1, 1, 2, 2, 3))
	{
		my $type = one_of('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		# several rows of a dimension for one, once only
		my $d = $n > 1 ? one_of(qw(d0 d0 d2 d3)) : one_of(qw(d0 d0 d1 d2 d3));
		my $key = one_of('k4', 'k8', 'k8', 'g', 'i2');
		my $on = "a.$key = d$n.dk";
		$on .= ' AND ' . one_of("d$n.dg > 1", 'a.g <> 3', "d$n.dv <> a.g", "d$n.dt <> 'name 3'") if rand() < 0.25;
		$from .= " $type $d d$n ON $on";
		push @dimensions, "d$n";
	}
	$from .= ' JOIN f2 b ON a.g = b.id' if rand() < 0.1;
	return $from;
}

# -------------------------------------------------------------- expressions

# A condition that raises no error: where rows are joined, which of them it is asked about
# depends on the plan.
sub safe_condition
{
	my @one = (column('int') . one_of(' > 3', ' <= 1000', ' IN (1, 2, 3, 50)', ' IS NULL', ' IS NOT NULL', ' <> 7'), column('numeric') . one_of(' > 0.5', ' < 20', " = 'NaN'"),
		column('bool') . one_of('', ' IS NOT TRUE', ' IS NULL'), column('text') . one_of(" <> 't1'", " < 't3'", " LIKE '%1'"), column('float') . one_of(' < 500', ' >= 3.5'), 'coalesce(' . column('int') . ', 1) % 3 <> 1');
	my $condition = '(' . one_of(@one) . ')';
	$condition = "($condition " . one_of('AND', 'OR') . ' (' . one_of(@one) . '))' if rand() < 0.3;
	return $condition;
}

sub any_condition { return $any_error ? condition(one_of(1, 1, 2)) : safe_condition() }

# An argument: its kind, the expression, and whether equal values may look different.
sub argument
{
	my $kind = one_of(qw(int int int numeric numeric numeric float float bool ordered text));
	my ($a, $b) = (column($kind), column($kind));
	$a = 'a.' . one_of(qw(f4 f8)) if $in_order && $kind eq 'float' && rand() < 0.7;
	if ($any_error && rand() < 0.7 && ($in_order || $kind ne 'float'))
	{
		my %type = (int => [qw(i2 i4 i8)], numeric => ['numeric'], float => [qw(f4 f8)], bool => ['bool'], ordered => [qw(date timestamp time oid)], text => [qw(text char)]);
		return ($kind, expression(one_of(@{ $type{$kind} }), one_of(1, 1, 2, 3)), $kind eq 'numeric');
	}
	return ($kind, $a, 0) if rand() < 0.5 || $kind !~ /int|numeric|float/;
	return ($kind, "CASE WHEN " . safe_condition() . " THEN $a END", 0) if rand() < 0.3;
	return ($kind, one_of("coalesce($a, 1)", "coalesce($a, $b)", "nullif($a, 1)"), $kind eq 'numeric') if rand() < 0.4;
	return ($kind, one_of($kind eq 'int' ? ("$a % 10", "$a / 7") : ("-$a", "$a + $b", $kind eq 'float' ? "$a * 2" : "$a * 1.50")), 0);
}

# An aggregate, and whether its digits depend on the order of rows.
sub aggregate
{
	return ('count(*)', 0) if rand() < 0.1;
	my ($kind, $argument, $looks) = argument();
	my @functions = ('count');
	push @functions, qw(min max) if $kind ne 'bool' && ($kind ne 'text' || rand() < 0.05) && ($in_order || !$looks);
	push @functions, qw(sum sum sum avg avg stddev variance var_pop stddev_samp) if $kind =~ /int|numeric|float/;
	push @functions, qw(bool_and bool_or every) if $kind eq 'bool';
	my $function = one_of(@functions);
	my $filter = rand() < 0.25 ? ' FILTER (WHERE ' . any_condition() . ')' : '';
	return ("count(DISTINCT $argument)", 0) if rand() < 0.005;
	return ("array_agg($argument ORDER BY $argument)", 0) if rand() < 0.01 && $kind eq 'int';
	return ("$function($argument)$filter", $kind eq 'float' && $function ne 'count');
}

sub key
{
	my $kind = one_of(qw(int int int numeric bool ordered text text float));
	my $a = column($kind);
	$a = 'a.' . one_of(qw(f4 f8)) if $in_order && $kind eq 'float' && rand() < 0.7;
	return $a if rand() < 0.65;
	return 'a.' . one_of(qw(any_n iv u e)) if rand() < 0.05 && $in_order;
	return expression(one_of(qw(i2 i4 i8 bool date text), $in_order ? 'numeric' : ()), 1) if $any_error && rand() < 0.5;
	return "$a % 5" if $kind eq 'int';
	return one_of("$a * 2", "$a + 0.5") if $kind =~ /numeric|float/;
	return "CASE WHEN $a = 't1' THEN 'one' WHEN $a > 't3' THEN 'more' END" if $kind eq 'text';
	return "coalesce($a, $a)";
}

sub having
{
	return one_of('count(*) > 3', 'count(a.k4) <> 5', 'sum(a.g) > 10 OR count(*) = 1', 'min(a.n2) < 3 AND max(a.i4) > 0', 'max(a.d) IS NOT NULL', 'bool_or(a.may) IS NOT FALSE',
		'sum(a.n2) > (SELECT avg(dn) FROM d0)', 'sum(a.i8) / count(*) > -5', 'avg(a.k4) < 1000 AND NOT bool_and(a.yes)');
}

# ------------------------------------------------------------------ queries

# The SELECT: keys and exact results, then floats.
sub select_sql
{
	my ($from, $where) = @_;
	my $nkeys = one_of(0, 0, 1, 1, 1, 1, 2, 2, 3, 4);
	my @keys = map { key() } 1 .. $nkeys;
	my (@exact, @floats);
	for (1 .. one_of(1, 1, 2, 3, 4, 6))
	{
		my ($aggregate, $float) = aggregate();
		push @{ $float ? \@floats : \@exact }, $aggregate;
	}
	my @output = (@keys, @exact);
	my $sql = 'SELECT ' . join(', ', map({ "$output[$_] AS c$_" } 0 .. $#output), map({ "$floats[$_] AS r$_" } 0 .. $#floats)) . " FROM $from $where";
	$sql .= ' GROUP BY ' . join(', ', 1 .. $nkeys) if $nkeys > 0;
	$sql .= ' HAVING ' . having() if rand() < 0.2;
	return ($sql, scalar @output, scalar @floats);
}

# A condition with a subquery; all but the last become joins or are asked in an order of their own.
my @MEMBERSHIPS = ('EXISTS (SELECT FROM d1 s WHERE s.dk = a.k8)', 'NOT EXISTS (SELECT FROM d2 s WHERE s.dk = a.k8)', 'a.k4 IN (SELECT dk FROM d0 WHERE dg > 2)',
	'a.k8 NOT IN (SELECT dk FROM d2)', 'a.n2 > (SELECT avg(dn) FROM d1)');

sub where
{
	my ($member) = @_;
	my @where;
	push @where, any_condition() if rand() < 0.5;
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
	my $from = source($options{changing});
	my $member = rand() < 0.12 ? one_of(@MEMBERSHIPS) : undef;
	$in_order &&= $options{in_order} && !defined $member;
	$any_error = !@dimensions && !defined $member && rand() < 0.65;
	my $correlated = !@dimensions && rand() < 0.08;
	$parameter = !$correlated && rand() < 0.08;
	set_columns();
	my $where = where($member);
	my ($sql, $exact, $floats);
	if ($correlated)
	{
		my ($aggregate, $float) = aggregate();
		my $with = $where eq '' ? 'WHERE' : "$where AND";
		$sql = 'SELECT o.dk AS c0, ' . ($float ? '' : '0 AS r0, ') . "(SELECT $aggregate FROM $from $with (a.k4 = o.dk OR a.g > o.dg)) AS " . ($float ? 'r0' : 'c1') . ' FROM ' . one_of('d2', 'd0') . ' o';
		($exact, $floats) = ($float ? 1 : 2, 1);
	}
	else { ($sql, $exact, $floats) = select_sql($from, $where) }
	my $text = 'SELECT ROW(' . join(', ', map { "c$_" } 0 .. $exact - 1) . ')::text, ROW(' . join(', ', map { "r$_" } 0 .. $floats - 1) . ")::text FROM ($sql) s ORDER BY 1, 2";
	return { sql => $text, explain => $text, in_order => $in_order } if !$parameter;
	(my $explain = $text) =~ s/\$1/5/g;
	return { sql => "PREPARE q(int) AS $text; EXECUTE q(5); EXECUTE q(0); EXECUTE q(NULL); DEALLOCATE q", explain => $explain, in_order => $in_order };
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
