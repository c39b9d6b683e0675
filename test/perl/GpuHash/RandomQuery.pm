# GpuHash::RandomQuery: random tables, and random queries that join them.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomQuery::schema(icu => 1)	SQL that makes the tables
#	GpuHash::RandomQuery::job_schema($job)	and those that one session changes
#	GpuHash::RandomQuery::settings()		SQL that sets what is drawn of %SETTINGS
#	GpuHash::RandomQuery::query($job)		a query, as a hash:
#		sql			what to run, its output is to be compared
#		explain		the statement in it that joins
#		limited		whether it stops early, at rows that it may choose
#
# A query's output does not depend on the order of rows, nor on which of equal rows is
# taken first.
package GpuHash::RandomQuery;

use strict;
use warnings;

# What is drawn for each query.
our %SETTINGS = (
	work_mem => ["'64kB'", "'320kB'", "'4MB'"],
	hash_mem_multiplier => [1, 1, 2],
	'gpuhash.batch_rows' => [256, 1000, 16384],
	'gpuhash.subtables' => [2 .. 8],
	enable_material => [qw(on on off)],
	enable_memoize => [qw(on on off)],
	enable_hashagg => [qw(on on off)],
	enable_nestloop => [qw(on on off)],
	enable_partitionwise_join => [qw(on off)],
	enable_partitionwise_aggregate => [qw(on off)],
	plan_cache_mode => [qw(auto force_generic_plan)],
	join_collapse_limit => [8, 8, 8, 1],
	role => [qw(none none none none reader)]);

sub one_of { return $_[int(rand(@_))] }

# ------------------------------------------------------------------- tables

# Columns with what they are made of k and i, and the families whose columns compare.
my @COLUMN = (
	[i2 => 'int', 'k::int2'],
	[i4 => 'int', 'k::int4'],
	[i8 => 'int', 'k::int8'],
	[dm => 'int', 'k::whole'],
	[f4 => 'float', "(CASE k % 19 WHEN 3 THEN 'NaN' WHEN 4 THEN '-0' WHEN 5 THEN '0' ELSE k::text END)::float4"],
	[f8 => 'float', "(CASE k % 19 WHEN 3 THEN 'NaN' WHEN 4 THEN '0' WHEN 5 THEN '-0' ELSE k::text END)::float8"],
	[n => 'numeric', 'CASE WHEN i % 2 = 0 THEN k::numeric(12, 2) ELSE k::numeric END'],
	[t => 'text', 'k::text'],
	[v => 'text', "('k' || k)::varchar"],
	[c => 'char', '(k % 5000)::char(8)'],
	[nd => 'folded', "CASE WHEN i % 2 = 0 THEN 'k' || k ELSE 'K' || k END COLLATE :nd"],
	[d => 'date', "DATE '2000-01-01' + k::int"],
	[ts => 'timestamp', "TIMESTAMP '2000-01-01' + k * INTERVAL '1 min'"],
	[tz => 'timestamptz', "TIMESTAMPTZ '2000-01-01 UTC' + k * INTERVAL '1 hour'"],
	[iv => 'interval', "CASE WHEN i % 2 = 0 THEN k * INTERVAL '15 days' ELSE justify_days(k * INTERVAL '15 days') END"],
	[u => 'uuid', 'md5(k::text)::uuid'],
	[b => 'bytea', "decode(md5(k::text), 'hex')"],
	[a => 'array', 'ARRAY[k::int4, k::int4 % 3]'],
	[e => 'enum', "('e' || k % 30)::label"],
	[cp => 'composite', 'ROW(k % 100, k::text)::pair']);
my @COLUMNS = map { $_->[0] } @COLUMN;
my %FAMILY = map { $_->[0] => $_->[1] } @COLUMN;

# Plain tables by size, partitioned ones with the same bounds, one with row-level security
# and views of them.
my @SIZES = (0, 1, 40, 300, 1500, 4000);
my @TABLES = (map({ "r$_" } 0 .. $#SIZES), map({ "r$_" } 0 .. $#SIZES), 'q0', 'q1', 'q0', 'q1', 'secured', 'barrier', 'plain_view');

sub rows_sql
{
	my ($rows, $collation) = @_;
	# very few keys only where rows are few
	my $distinct = one_of($rows > 1000 ? (100, 1000, 20000) : (1, 7, 100, 1000, 20000));
	my $key = one_of("(i * 7919) % $distinct", "(i * i) % $distinct", "i % 30000", $rows > 1000 ? () : "least(i % $distinct, 5)");
	my $null = one_of(2, 9, 1000000);
	my $columns = join(', ', map { "$_->[2] AS $_->[0]" } @COLUMN) =~ s/:nd/$collation/r;
	return "SELECT i::int AS id, $columns, repeat('w', (i % 90)::int) AS w FROM (SELECT i, CASE WHEN i % $null = 1 THEN NULL ELSE ($key) % 30000 END AS k FROM generate_series(1::bigint, $rows) i) s";
}

my $collation;

sub schema
{
	my (%options) = @_;
	$collation = $options{icu} ? 'folded' : '"C"';
	my $labels = join ', ', map { "'e$_'" } 0 .. 29;
	my $sql = <<"SQL";
@{[ $options{icu} ? "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);" : '' ]}
CREATE ROLE reader;
CREATE DOMAIN whole AS int4;
CREATE TYPE label AS ENUM ($labels);
CREATE TYPE pair AS (x int8, y text);
CREATE FUNCTION leaky(int4) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 1 AS 'BEGIN RETURN \$1 % 3 <> 1; END';
SQL
	my %place = map { $_ => rand } @SIZES;
	my @sizes = sort { $place{$a} <=> $place{$b} } @SIZES;
	for my $r (0 .. $#sizes)
	{
		$sql .= "CREATE TABLE r$r AS " . rows_sql($sizes[$r], $collation) . ";\n";
	}
	for my $q (0, 1)
	{
		$sql .= "CREATE TABLE q$q (LIKE r0) PARTITION BY HASH (i4);\n";
		$sql .= "CREATE TABLE q${q}_$_ PARTITION OF q$q FOR VALUES WITH (MODULUS 3, REMAINDER $_);\n" for 0 .. 2;
		$sql .= "INSERT INTO q$q " . rows_sql(one_of(30, 900), $collation) . ";\n";
	}
	$sql .= 'CREATE TABLE secured AS ' . rows_sql(500, $collation) . ";\n";
	$sql .= <<'SQL';
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY part ON secured USING (leaky(id) AND i4 IS DISTINCT FROM 3);
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM r3 WHERE leaky(id);
CREATE VIEW plain_view AS SELECT * FROM r2 WHERE id % 5 <> 2;
GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
VACUUM ANALYZE;
SQL
	return $sql;
}

sub job_schema
{
	my ($job) = @_;
	my $sql = '';
	for my $w ("w$job", "wp$job")
	{
		my $parted = $w =~ /^wp/ ? 'PARTITION BY HASH (id)' : '';
		$sql .= "CREATE TABLE $w (LIKE r0) $parted;\n";
		$sql .= join '', map { "CREATE TABLE ${w}_$_ PARTITION OF $w FOR VALUES WITH (MODULUS 2, REMAINDER $_);\n" } 0, 1 if $parted;
		$sql .= "INSERT INTO $w " . rows_sql(400, $collation) . ";\nGRANT ALL ON $w TO reader;\nANALYZE $w;\n";
	}
	return $sql;
}

# All that are drawn, and those of GPUHASH_RANDOM_SETTINGS, SQL that goes for every query.
sub settings
{
	return join('; ', map { "SET $_ = " . one_of(@{ $SETTINGS{$_} }) } sort keys %SETTINGS) .
		($ENV{GPUHASH_RANDOM_SETTINGS} ? "; $ENV{GPUHASH_RANDOM_SETTINGS}" : '');
}

# ---------------------------------------------------------------- join trees

my $aliases;
our $in_lateral = 0;
sub alias { return 'a' . $aliases++ }
sub table { return one_of(@TABLES) }

sub column { my ($family) = @_; return one_of(grep { $FAMILY{$_} eq $family } @COLUMNS) }

# An equality of two columns of one family, or of expressions.
sub clause
{
	my ($a, $b) = @_;
	# half of the time the common types, which the partitions have too
	my $x = rand() < 0.5 ? one_of(qw(i4 i4 i8 t)) : one_of(@COLUMNS);
	my $y = column($FAMILY{$x});
	$y = $x if $x eq 'i4' && rand() < 0.5;
	return one_of("$a.$x = $b.$y", "$a.$x = $b.$y", "$a.$x = $b.$y", "$b.$y = $a.$x", "$a.id = $b.id", "$a.i4 + 1 = $b.i4",
		"lower($a.t) = upper($b.t)", "coalesce($a.i8, -1) = $b.i4", "($a.$x, $a.id % 7) = ($b.$y, $b.id % 7)");
}

# What joins two rows: an equality, and perhaps more.
sub condition
{
	my ($a, $b) = @_;
	my @on = (clause($a, $b));
	push @on, clause($a, $b) if rand() < 0.25;
	push @on, one_of("$a.id % 3 <> $b.id % 2", "$b.id < 700", "length($a.w) < 40", "$a.n <= $b.f8 + 10") if rand() < 0.4;
	return join(' AND ', @on);
}

# A table under an alias, or a subquery that has something of its own.
sub leaf
{
	my $a = alias();
	my $table = table();
	return ("$table $a", $a) if rand() < 0.75;
	return (one_of(
		"(SELECT *, i4 + 5 AS x, coalesce(t, 'none') AS y FROM $table) $a",
		"(SELECT *, random() * 0 AS x FROM $table) $a",
		"(SELECT * FROM $table ORDER BY id LIMIT 50) $a",
		"(SELECT * FROM $table UNION ALL SELECT * FROM r1) $a",
		"(SELECT DISTINCT ON (i4) * FROM $table ORDER BY i4, id) $a",
		"(SELECT s.* FROM (SELECT i8, count(*) AS n, min(id) AS low FROM $table GROUP BY i8) g JOIN $table s ON s.id = g.low) $a"), $a);
}

# A join tree of n tables, with the aliases in it.
sub tree
{
	my ($n) = @_;
	return leaf() if $n == 1;
	my $left = rand() < 0.7 ? $n - 1 : 1 + int(rand($n - 1));
	my ($l, @l) = tree($left);
	if ($left == $n - 1 && !$in_lateral && rand() < 0.08)
	{
		my $lateral = lateral(@l);
		return ("($l $lateral)", @l, 'a' . ($aliases - 1));
	}
	my ($r, @r) = tree($n - $left);
	my $type = one_of('JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
	return ("($l $type $r ON " . condition(one_of(@l), one_of(@r)) . ')', @l, @r);
}

# A lateral join of a join that reads the outer rows; its alias is the last one given out.
sub lateral
{
	my @outer = @_;
	my $o = one_of(@outer);
	# one in another would be run too often
	local $in_lateral = 1;
	my ($inside, @inside) = tree(2);
	my ($i, $j) = (one_of(@inside), $inside[-1]);
	my $where = one_of("$i.id < $o.id % 40", "$i.i4 = $o.i4 AND $o.id < 60", "$i.i8 = $o.i4 + 1 AND $j.id < 100");
	my $barrier = one_of('', 'OFFSET 0');
	my $a = alias();
	my $type = one_of('JOIN', 'LEFT JOIN');
	return "$type LATERAL (SELECT $i.*, $j.id AS jid, $o.i4 AS oi FROM $inside WHERE $where $barrier) $a ON " .
		one_of('true', "$a.id % 2 = 0", "$a.oi IS NOT NULL");
}

# A condition on a row that asks for others: semi and anti joins, and what stays a subplan.
sub membership
{
	my ($a) = @_;
	my ($inside, @inside) = tree(one_of(1, 1, 1, 2));
	my $i = one_of(@inside);
	my $x = one_of(@COLUMNS);
	my $y = column($FAMILY{$x});
	return one_of(
		"EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"NOT EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"NOT EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"($a.id % 4 = 1 OR EXISTS (SELECT 1 FROM $inside WHERE $a.$x = $i.$y AND $i.id % 3 <> 1))",
		"$a.$x IN (SELECT $i.$y FROM $inside)",
		"$a.$x IN (SELECT $i.$y FROM $inside WHERE $i.id % 3 <> 1)",
		"$a.$x NOT IN (SELECT $i.$y FROM $inside WHERE $i.$y IS NOT NULL)",
		"$a.id < 20 AND (SELECT count(*) FROM $inside WHERE $i.id < $a.id * 7) > 3");
}

# FROM and WHERE of a query, and the aliases.
sub body
{
	my ($from, @in) = tree(one_of(@_ ? @_ : (1, 2, 2, 2, 3, 3, 4)));
	my ($first, $last) = ($in[0], $in[-1]);
	my @where;
	push @where, one_of("$last.id IS NULL", "$last.i4 IS DISTINCT FROM 3", "$first.id < 500",
		"coalesce($last.i8, 0) < 50 OR $first.id > 100", "coalesce($last.i4, 3) = coalesce($first.i4, 3)") if rand() < 0.4;
	push @where, membership(one_of(@in)) if @in == 1 || rand() < 0.3;
	push @where, membership(one_of(@in)) if rand() < 0.1;
	my $where = @where ? 'WHERE ' . join(' AND ', map { "($_)" } @where) : '';
	return ("FROM $from $where", @in);
}

# ------------------------------------------------------------------- queries

sub digest { my ($query) = @_; return "SELECT count(*), sum(hashtextextended(ROW(s.*)::text, 0)::numeric) FROM ($query) s" }

sub rows_query
{
	my ($body, @in) = body();
	my ($first, $last) = ($in[0], $in[-1]);
	my @output = ("$first.id, $last.id", "$first.t, $last.w, $last.n", "$last.u, $first.d, $last.i2 + $first.id",
		"$last.cp, $first.a, $last.iv", "$first.nd, $last.e, $last.c", '1');
	push @output, "$first, $last.id" if $body !~ /LATERAL/;
	return 'SELECT ' . one_of(@output) . " $body";
}

sub group_query
{
	my ($body, @in) = body();
	my ($a, $b) = (one_of(@in), one_of(@in));
	my $by = one_of("$a.i4", "$a.t, $b.i8", "$a.u", "$a.e, $b.id % 5", "GROUPING SETS (($a.i4), ($b.e), ())");
	my $having = one_of('', '', 'HAVING count(*) > 1');
	my $shown = $by =~ /^GROUPING/ ? "$a.i4, $b.e" : $by;
	return "SELECT $shown, count(*) AS n, sum($b.id) AS s, sum($a.n) AS m, count(DISTINCT $b.i4) AS c $body GROUP BY $by $having";
}

sub distinct_query
{
	my ($body, @in) = body();
	my ($a, $b) = (one_of(@in), one_of(@in));
	return 'SELECT DISTINCT ' . one_of("$a.i4, $b.e", "$a.id", "$a.t, $b.d", "$a.cp") . " $body";
}

sub set_query
{
	my ($one, @one) = body(1, 2, 2, 3);
	my ($two, @two) = body(1, 2, 2);
	my $op = one_of('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL');
	return "SELECT $one[0].id AS x, $one[-1].i4 AS y $one $op SELECT $two[-1].id, $two[0].i4 $two";
}

# The first rows in an order that leaves nothing open.
sub ordered_query
{
	my ($body, @in) = body();
	my $a = one_of(@in);
	# a lateral subquery's rows have no number of their own
	my $order = join ', ', one_of("$a.i4 DESC", "$a.t", "$a.n NULLS FIRST"), map { "$_.id" } @in;
	my $output = join ', ', map { "$_.id AS $_" } @in;
	return "SELECT $output $body ORDER BY $order LIMIT " . one_of(1, 20, 500) . ' OFFSET ' . one_of(0, 0, 7);
}

sub window_query
{
	my ($body, @in) = body();
	my ($a, $b) = (one_of(@in), one_of(@in));
	return "SELECT $b.id, count(*) OVER (PARTITION BY $a.i4) AS n, sum($b.id) OVER (PARTITION BY $b.e) AS s $body";
}

sub with_query
{
	my ($body, @in) = body();
	my ($a, $b) = ($in[0], $in[-1]);
	my $c = alias();
	my $kind = one_of('MATERIALIZED', 'MATERIALIZED', 'NOT MATERIALIZED');
	return "WITH c AS $kind (SELECT $a.id, $b.i4, $b.t $body) SELECT c.id, x.id AS xid, $c.i4 FROM c " .
		one_of('JOIN', 'LEFT JOIN', 'FULL JOIN') . " c x ON x.i4 = c.i4 AND x.id < 20 LEFT JOIN " . table() . " $c ON $c.id = c.id";
}

my @SHAPES = ((\&rows_query) x 10, \&group_query, \&group_query, \&distinct_query, \&set_query, \&ordered_query, \&ordered_query,
	\&window_query, \&with_query);

# UPDATE, DELETE or MERGE of a table of the job's; what it says and what is there then.
sub change
{
	my ($job) = @_;
	my $w = one_of("w$job", "w$job", "w$job", "wp$job");
	my ($body, @in) = body(1, 1, 2);
	my $a = one_of(@in);
	my $source = "(SELECT $a.id, $a.i4, $a.t $body) src";
	my $on = one_of('w.i4 = src.i4', 'w.t = src.t', 'w.id = src.id', 'w.i8 = src.i4 AND src.id % 3 <> w.id % 2');
	my $kind = one_of('UPDATE', 'UPDATE', 'DELETE', 'DELETE', 'MERGE');
	my $after = digest("SELECT * FROM $w");
	my $merge = "MERGE INTO $w w USING $source ON $on WHEN MATCHED AND w.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET f8 = 7";
	return { sql => "BEGIN; $merge; $after; ROLLBACK", explain => $merge } if $kind eq 'MERGE';
	# which of the matches is taken does not show
	my $dml = $kind eq 'UPDATE' ? "UPDATE $w w SET f8 = w.id + 0.5, i2 = w.i2 + 1 FROM $source WHERE $on RETURNING w.id, w.f8"
		: "DELETE FROM $w w USING $source WHERE $on RETURNING w.*";
	my $with = "WITH changed AS ($dml) " . digest('SELECT * FROM changed');
	return { sql => "BEGIN; $with; $after; ROLLBACK", explain => $with };
}

sub query
{
	my ($job) = @_;
	$aliases = 0;
	return change($job) if rand() < 0.06;
	my $shape = one_of(@SHAPES);
	my $query = $shape->();
	my $limited = $shape != \&ordered_query && rand() < 0.1;
	my $digest = $limited ? "SELECT count(*) FROM ($query LIMIT " . one_of(1, 30, 1000) . ') s' : digest($query);
	# as a prepared statement
	if ($digest =~ /\.id < 500\b/ && rand() < 0.5)
	{
		(my $with = $digest) =~ s/\.id < 500\b/.id < \$1/;
		return { sql => "PREPARE q(int) AS $with; EXECUTE q(500); EXECUTE q(7); DEALLOCATE q", explain => $digest, limited => $limited };
	}
	return { sql => $digest, explain => $digest, limited => $limited };
}

1;
