# GpuHash::RandomRows: random queries that return rows of the tables of GpuHash::RandomTables, and of their joins.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	%GpuHash::RandomRows::KIND		the kinds of queries, each with its weight
#	GpuHash::RandomRows::prepare()	SQL that makes what some kinds need
#	GpuHash::RandomRows::query(changing => 1, job => 0)	a query, as a hash:
#		held				whether it has joins, of what a device can do in the main
#		fetched				likewise, but for columns of types that programs do not hold
#		kind, sql, explain		what to run, and the statement in it whose plan is looked at
#		plain				what PostgreSQL is given in place of sql, where these differ
#		compare				exact; bag: whatever the order; part: the output has `most` rows, or as many as
#							there are, of those of the plain query; walk: a cursor's steps (see walked())
#		may_fail			whether it raises errors
#
# Rows come in any order, so that what depends on it has a complete one.
package GpuHash::RandomRows;

use strict;
use warnings;
use GpuHash::RandomExpression qw(one_of expression condition);
use GpuHash::RandomOuter;
use GpuHash::RandomPairs;
use GpuHash::RandomTables qw(@COLUMN @FACTS @CHANGING);

my %SAFE = (int => [qw(i2 i4 i8 whole g k4 k8 id late later)], numeric => [qw(n2 n5 n0 wide open_n any_n)], float => [qw(f4 f8 tame4 tame8)], bool => [qw(yes may)],
	ordered => [qw(d ts tm o tz iv u e nm rg ip)], text => [qw(x v c big)]);
my %DIMENSION = (int => [qw(dg dv)], numeric => ['dn'], float => ['df'], bool => ['db'], ordered => ['dd'], text => ['dt']);
# Equal values of these look the same.
my @DISTINCT = qw(i2 i4 i8 whole n2 n5 x v c d ts tz o g u e nm ch b j ar rg ip big k4 k8 may);

# The aliases of the query that is made: of tables with @COLUMN, of dimensions, and of what has system columns; the column
# of USING; how many joins, and whether the last is a right or full one.
my (@wide, @dimensions, @placed, $merged, $joins, $outer, $may_fail, $aliases);

# Whether it is of what a device can do: columns of types that programs hold, conditions that have programs, joins by
# whole numbers.  One time in two; else it is of anything.
my $held;
my %IS_HELD = map { $_->[0] => $_->[1] ne '' } @COLUMN, ['id', 'i4'], ['late', 'i4'], ['later', 'i4'], ['tz', 'timestamptz'];
sub allowed { return $held ? grep { $IS_HELD{$_} // 1 } @_ : @_ }

# Whether such a query puts out columns of any type, for which tuples are fetched; and whether it has some of those.
my ($any_type, $fetched);
sub any_column
{
	my @other = $any_type && !$outer ? grep { !($IS_HELD{$_} // 1) } @_ : ();
	my $column = one_of(@other && rand() < 0.5 ? @other : $any_type && !$outer ? @_ : allowed(@_));
	$fetched ||= !($IS_HELD{$column} // 1);
	return $column;
}

# ------------------------------------------------------------------ sources

sub fact
{
	my ($changing) = @_;
	return one_of(@CHANGING) if $changing && rand() < 0.6;
	return one_of(@FACTS, qw(f3 f4 f4 f5));
}

sub new_alias { my ($letter) = @_; return $letter . $aliases++ }

# The side that is joined, its alias, its key, whether it has @COLUMN, and the alias of another table in it.  d1 has several rows with a key, which are joined with once only.
sub inner_side
{
	my ($changing, $once) = @_;
	if (rand() < 0.3)
	{
		my $b = new_alias('b');
		# with an index that says that keys come once, or not
		my $table = $held && rand() < 0.6 ? one_of(qw(f3 f5)) : fact($changing);
		$table = "(SELECT * FROM $table WHERE " . one_of('g <> 2', 'id % 3 > 0', 'may', "v < 't3'") . ')' if rand() < 0.3;
		return ("$table $b", $b, 'id', 1);
	}
	my $d = new_alias('d');
	my $table = one_of(qw(d0 d0 d2), $held ? () : 'd3', $once ? () : 'd1');
	if (rand() < 0.15)
	{
		my $e = new_alias('d');
		return (GpuHash::RandomPairs::side($table, $d, $e), $d, 'dk', 0, $e);
	}
	$table = "(SELECT * FROM $table WHERE " . one_of('dg <> 2', 'dv % 3 > 0', 'db IS NOT FALSE') . ')' if rand() < 0.2;
	return ("$table $d", $d, !$held && rand() < 0.2 ? 'dg' : 'dk', 0);
}

sub outer_key
{
	return 'a.' . one_of(qw(k4 k8 k8 g i2 id late whole n2 v)) if !$held && rand() < 0.15;
	my $alias = rand() < 0.75 ? 'a' : one_of(@wide, @dimensions);
	return "$alias." . ($alias =~ /^d/ ? one_of('dg', 'dk') : one_of(qw(k4 k4 k8 k8 g i2 late)));
}

# FROM with that many joins, which fills the aliases, and conditions that are joins, too.
sub source
{
	my ($table, $joins, $changing) = @_;
	my $from = "$table a";
	my (@where, $many);
	@wide = ('a');
	@dimensions = ();
	@placed = $table =~ /barrier|both_tables|SELECT/ ? () : ('a');
	for (1 .. $joins)
	{
		my ($side, $alias, $key, $is_wide, $also) = inner_side($changing, $many);
		my $on = !$is_wide && rand() < 0.25 ? GpuHash::RandomPairs::codes('a', $alias) : outer_key() . " = $alias.$key";
		# numbers and texts have no rows in common
		$on =~ s/^(a\.v) = \w+\.(?!dx|dy).*/$1 = $alias.@{[ $is_wide ? 'v' : 'dt' ]}/;
		$many ||= $side =~ /\bd1\b/ || $key eq 'dg' || $on =~ /\.v =|\.d[xcz]\b/;
		$on .= ' AND ' . one_of("$alias." . ($is_wide ? 'g > 1' : 'dg > 1'), 'a.g <> 3', "a.k8 <> $alias." . ($is_wide ? 'k8' : 'dv'), 'a.g = ' . "$alias." . ($is_wide ? 'g' : 'dg'), map { GpuHash::RandomPairs::on('a', $alias) } 1 .. 6) if rand() < ($held ? 0.3 : 0.25);
		if (rand() < 0.3)
		{
			my $exists = "EXISTS (SELECT FROM $side WHERE $on)";
			push @where, one_of($exists, $exists, "NOT $exists", "NOT $exists", "(a.g = 2 OR $exists)");
			next;
		}
		$from .= ' ' . one_of(('JOIN', 'LEFT JOIN') x ($held ? 20 : 5), 'RIGHT JOIN', 'FULL JOIN') . " $side ON $on";
		push @{ $is_wide ? \@wide : \@dimensions }, $alias, $also // ();
		push @placed, $alias if $side !~ /SELECT/;
	}
	return ($from, @where);
}

# The same with a right or full join as the last.
sub outer_source
{
	my ($changing) = @_;
	my $source = GpuHash::RandomOuter::source(changing => $changing, plain => $held);
	@wide = @{ $source->{wide} };
	@dimensions = @{ $source->{dimensions} };
	@placed = @{ $source->{placed} };
	$merged = $source->{merged};
	$joins = 1;
	return ($source->{from}, rand() < 0.3 ? GpuHash::RandomOuter::keeps_nulls(column('int'), column('bool'), column('text')) : ());
}

# -------------------------------------------------------------- expressions

sub column
{
	my ($kind) = @_;
	return $merged if defined $merged && $kind eq 'int' && rand() < 0.2;
	my $alias = one_of(@wide, @dimensions);
	return "$alias." . one_of(allowed(@{ ($alias =~ /^d/ ? \%DIMENSION : \%SAFE)->{$kind} }));
}

# A condition that raises no error.
sub safe_condition
{
	return '(' . one_of(column('int') . one_of(' > 3', ' <= 1000', ' IS NOT NULL', ' <> 7', ' % 3 <> 1'), column('numeric') . one_of(' > 0.5', ' < 20'), column('bool') . one_of('', ' IS NOT TRUE'),
		column('text') . one_of(" <> 't1'", " <> 'name 3'"), column('float') . one_of(' < 500', ' >= 3.5')) . ')' if $held && rand() < 0.9;
	my $condition = '(' . one_of(column('int') . one_of(' > 3', ' <= 1000', ' IN (1, 2, 3, 50)', ' IS NULL', ' IS NOT NULL', ' <> 7'), column('numeric') . one_of(' > 0.5', ' < 20', " = 'NaN'"),
		column('bool') . one_of('', ' IS NOT TRUE', ' IS NULL'), column('text') . one_of(" <> 't1'", " < 't3'", " LIKE '%1'"), column('float') . one_of(' < 500', ' >= 3.5', " = 'NaN'"),
		'coalesce(' . column('int') . ', 1) % 3 <> 1', column('ordered') . ' IS NOT NULL', 'length(' . column('text') . ') > 2', $held ? () : ("a.tz > '2000-01-01'", "a.j ->> 'k' <> '3'"), 'a.g < (SELECT max(dv) FROM d2)') . ')';
	$condition = "($condition " . one_of('AND', 'OR') . ' ' . safe_condition() . ')' if rand() < 0.25;
	return $condition;
}

sub any_condition { return $may_fail ? condition(one_of(1, 1, 2)) : safe_condition() }

sub output
{
	my $kind = rand();
	my $a = one_of(@wide);
	return $a . '.' . any_column(map({ $_->[0] } @COLUMN), qw(id late later)) if $kind < 0.45;
	return column(one_of(sort keys %SAFE)) if $kind < 0.6;
	return "$a.v || " . column('text') if $held && $kind < 0.7;
	return one_of(@placed) . '.' . one_of(qw(ctid tableoid::regclass xmin)) if $kind < 0.65 && @placed;
	return one_of($a, "$a.*", one_of(@wide, @dimensions)) if $kind < 0.7;
	return expression(one_of(qw(bool i2 i4 i8 f4 f8 numeric text char date timestamp timestamptz)), one_of(1, 1, 2)) if $may_fail && $kind < 0.85;
	return one_of("$a.x || '.'", "upper($a.v)", 'coalesce(' . column('int') . ', -1)', "$a.g + 1", "$a.n2 * 2", "$a.tame8 / 4", "$a.d + 1", "CASE WHEN " . safe_condition() . ' THEN ' . column('text') . ' END', "$a.f8 IS NULL",
		'now() IS NULL', 'random() < 2', "'constant'", "ROW($a.g, $a.x)::text", '(SELECT count(*) FROM d2 WHERE dg < ' . column('int') . ')', '(SELECT ' . one_of('count(*)', 'sum(s.dv)', 'coalesce(max(s.dn), -1)') . ' FROM ' . one_of('d1', 'd2') . " s WHERE s.dk = $a.k8)", "greatest($a.g, $a.k8)", column('bool'), "length($a.big)", "substr($a.big, 900, 40)", "$a.big",
		$held ? () : ("$a.j ->> 'k'", "$a.ar[1]", "($a.cp).y", "$a.tz AT TIME ZONE 'UTC'"));
}

sub outputs { return map { output() } 1 .. one_of(1, 1, 2, 3, 5, 8) }

# As one text, which tells rows apart.
sub as_text { my (@outputs) = @_; return 'ROW(' . join(', ', @outputs) . ')::text COLLATE "C"' }

# ------------------------------------------------------------------ queries

# Sets what goes for the next parts; returns FROM and WHERE.
#	joins	how many; table: the first one; where: more conditions
sub body
{
	my (%options) = @_;
	$joins = $options{joins} // one_of($held ? () : (0, 0), 1, 1, 2, 3, 4);
	my $table = $options{table} // fact($options{changing});
	$table = one_of(qw(parted parted parted1 barrier both_tables)) if !defined $options{table} && rand() < ($held ? 0.03 : 0.15);
	$table = "(SELECT * FROM $table WHERE g <> 2 OFFSET 0)" if !defined $options{table} && rand() < ($held ? 0.01 : 0.03);
	$aliases = 0;
	$merged = undef;
	# tables that are written to or locked are the outer side of plain joins
	$outer = !defined $options{table} && $joins > 0 && rand() < 0.2;
	my ($from, @where) = $outer ? outer_source($options{changing}) : source($table, $joins, $options{changing});
	# where rows are joined, it depends on the plan which of them a condition is asked about
	$may_fail = $joins == 0 && $options{may_fail} && rand() < 0.6;
	my %by_type;
	push @{ $by_type{ $_->[1] } }, "a.$_->[0]" for grep { $_->[1] ne '' } @COLUMN;
	push @{ $by_type{i4} }, 'a.late', 'a.later';
	%GpuHash::RandomExpression::column = %by_type;
	push @where, any_condition() for 1 .. ($outer ? rand() < 0.1 : one_of(0, 1, 1, 2));
	push @where, @{ $options{where} } if $options{where};
	push @where, GpuHash::RandomPairs::subquery() if !$outer && rand() < ($held ? 0.05 : 0.15);
	my $text = "FROM $from" . (@where ? ' WHERE ' . join(' AND ', @where) : '');
	return $text;
}

sub plain_query
{
	my (%options) = @_;
	my $body = body(%options);
	return 'SELECT ' . join(', ', outputs()) . " $body";
}

sub scan { return { sql => plain_query(@_, joins => 0, may_fail => 1), compare => 'bag', may_fail => $may_fail } }
sub join_rows { return { sql => plain_query(@_, joins => one_of(1, 1, 2, 3, 4)), compare => 'bag' } }

sub ordered
{
	my $body = body(@_);
	my @outputs = outputs();
	my $first = rand() < 0.7 ? column(one_of(qw(int int ordered text numeric float))) . one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') . ', ' : '';
	my $limit = rand() < 0.5 ? ' LIMIT ' . one_of(0, 1, 20, 500) . one_of('', ' OFFSET 7') : '';
	return { sql => 'SELECT ' . join(', ', @outputs) . " $body ORDER BY $first" . as_text(@outputs) . $limit, compare => 'exact' };
}

# LIMIT over an order by columns that tell rows apart, or rows that do not come out; with ties by the first one, all of which do.
sub first
{
	my $body = body(@_);
	my @columns = map { one_of(@wide) . '.' . any_column(@DISTINCT) } 1 .. one_of(1, 2, 3, 5);
	push @columns, "a.g + 1" if rand() < 0.2;
	push @columns, "a.n2 * 2" if rand() < 0.1;
	my $first = column(one_of(qw(int int int ordered text numeric float))) . one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST');
	my $count = one_of(1, 1, 5, 20, 90);
	my $select = 'SELECT ' . join(', ', @columns) . " $body ORDER BY ";
	return { sql => "$select$first FETCH FIRST $count ROWS WITH TIES", compare => 'bag' } if rand() < 0.3;
	return { sql => "$select$first, " . join(', ', 1 .. @columns) . " LIMIT $count" . one_of('', '', ' OFFSET 7'), compare => 'exact' };
}

# LIMIT without an order: any rows.
sub some
{
	# no empty lines
	(my $query = plain_query(@_)) =~ s/^SELECT /SELECT 'row', /;
	my $most = one_of(0, 1, 5, 300, 5000);
	return { sql => "$query LIMIT $most" . one_of('', '', ' OFFSET 0'), plain => $query, compare => 'part', most => $most };
}

sub distinct
{
	my $body = body(@_);
	my @columns = map { one_of(@wide) . '.' . any_column(@DISTINCT) } 1 .. one_of(1, 2, 3);
	return { sql => 'SELECT DISTINCT ' . join(', ', @columns) . " $body", compare => 'bag' } if rand() < 0.6;
	my @outputs = (@columns, outputs());
	return { sql => "SELECT DISTINCT ON ($columns[0]) " . join(', ', @outputs) . " $body ORDER BY $columns[0], " . as_text(@outputs), compare => 'exact' };
}

sub window
{
	my $body = body(@_);
	my @outputs = outputs();
	my $order = 'ORDER BY ' . column('int') . ', ' . as_text(@outputs, column('text'));
	my $call = one_of("row_number() OVER (PARTITION BY a.g $order)", 'count(*) OVER (PARTITION BY ' . column('int') . ')', 'sum(a.n2) OVER (PARTITION BY a.k8)', 'max(' . column('text') . ') OVER (PARTITION BY a.k4)');
	return { sql => 'SELECT ' . join(', ', @outputs, $call) . " $body", compare => 'bag' };
}

sub set
{
	my $two = sub { my $body = body(@_); return "SELECT a.g, a.k8, a.x $body" };
	my $sql = $two->(@_) . ' ' . one_of('UNION ALL', 'UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL') . ' ' . $two->(@_);
	return { sql => $sql, compare => 'bag' };
}

sub with
{
	my $query = plain_query(@_, joins => one_of(0, 1, 2));
	return { sql => "WITH c AS MATERIALIZED ($query) SELECT * FROM c UNION ALL SELECT * FROM c", compare => 'bag' };
}

# Aggregates that are PostgreSQL's.
sub grouped
{
	my $body = body(@_);
	my $text = as_text(outputs());
	my $aggregate = one_of("string_agg($text, ',' ORDER BY $text)", "array_agg(a.g ORDER BY a.g)", 'percentile_disc(0.5) WITHIN GROUP (ORDER BY ' . column('int') . ')', "jsonb_agg(a.j ORDER BY a.j)",
		'count(DISTINCT ' . column('text') . ')', "sum(hashtextextended($text, 0)::numeric)", "max($text)");
	my $by = one_of('', '', 'GROUP BY a.g', 'GROUP BY ROLLUP (a.g, a.may)', 'GROUP BY a.v');
	return { sql => 'SELECT ' . ($by =~ /a\.(\w)\b/ ? "a.$1, " : '') . "$aggregate $body $by", compare => 'bag' };
}

sub lateral
{
	my $query = plain_query(@_, joins => one_of(0, 0, 1, 2), where => [one_of('a.k4 = o.dk', 'a.k8 < o.dg', 'a.g + o.dg < 6', '(a.k8 = o.dk OR o.dg > 9)')]);
	my $sql = one_of('SELECT o.dk, s.* FROM d2 o ' . one_of('', 'LEFT ') . "JOIN LATERAL ($query OFFSET 0) s ON true", "SELECT o.dk, ARRAY(SELECT s::text COLLATE \"C\" FROM ($query) s ORDER BY 1 LIMIT 5) FROM d2 o",
		"SELECT o.dk, (SELECT count(*) FROM ($query OFFSET 0) s) FROM d2 o");
	return { sql => $sql, compare => 'bag' };
}

# Statements that write; what they return and what is there then.
sub dml
{
	my (%options) = @_;
	my $w = "w$options{job}";
	my $after = "SELECT w.* FROM $w w ORDER BY w::text COLLATE \"C\"";
	my $kind = one_of(qw(insert insert table update update delete delete merge));
	if ($kind eq 'table')
	{
		my $body = body(%options);
		my @outputs = grep { !/\*$|\.xmin|^\w+$/ } outputs();
		my $query = 'SELECT ' . join(', ', map { "$outputs[$_] AS c$_" } 0 .. $#outputs) . " $body";
		return { sql => "CREATE TEMP TABLE made AS $query; SELECT * FROM made; DROP TABLE made", explain => $query, compare => 'bag' };
	}
	my $body = body(%options, table => $kind eq 'insert' ? undef : $w, joins => one_of(0, 1, 2));
	my $query = "SELECT a.ctid AS place, a.id, " . as_text(outputs()) . " AS x $body";
	my $statement = $kind eq 'insert' ? do { $body = body(%options, joins => one_of(0, 1)); "INSERT INTO $w (id, g, x, big, j) SELECT a.id, a.g, a.x, a.big, a.j $body RETURNING id, x, j" }
		: $kind eq 'update' ? "UPDATE $w w SET x = s.c0, g = s.dg FROM (SELECT a.id AS c0, d.dg FROM d0 d JOIN f4 a ON a.id = d.dk) s WHERE w.k8 = s.c0 RETURNING w.id, w.x, s"
		: $kind eq 'delete' ? "DELETE FROM $w w USING (SELECT DISTINCT s.place FROM ($query) s) s WHERE w.ctid = s.place RETURNING w.*"
		: "MERGE INTO $w w USING d0 d ON w.k8 = d.dk WHEN MATCHED AND w.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET x = d.dt WHEN NOT MATCHED THEN INSERT (id, x) VALUES (d.dk, d.dt)";
	return { sql => "$statement; $after", explain => $statement, compare => 'bag' };
}

sub locked
{
	my (%options) = @_;
	my $body = body(%options, table => "w$options{job}", joins => one_of(0, 1, 1, 2));
	$body =~ s/ (?:RIGHT|FULL) JOIN / LEFT JOIN /g;
	my @outputs = outputs();
	return { sql => 'SELECT ' . join(', ', @outputs) . " $body " . one_of('FOR UPDATE OF a', 'FOR SHARE OF a', 'FOR NO KEY UPDATE OF a SKIP LOCKED'), compare => 'bag' };
}

# Steps of a cursor, there and back; in the end all rows once more.
sub walked
{
	# no empty lines
	(my $query = plain_query(@_)) =~ s/^SELECT /SELECT 'row', /;
	my @steps = map { one_of('FETCH 1', 'FETCH 5', 'FETCH 40', 'MOVE 300', 'FETCH ALL', 'FETCH BACKWARD 1', 'FETCH BACKWARD 7', 'FETCH BACKWARD ALL', 'FETCH LAST', 'FETCH FIRST', 'FETCH ABSOLUTE 20', 'FETCH RELATIVE 0') } 1 .. one_of(2, 6, 9);
	my $sql = "DECLARE c SCROLL CURSOR FOR $query;\n" . join('', map { "$_ FROM c;\n\\echo step\n" } @steps) . "MOVE ABSOLUTE 0 FROM c;\nFETCH ALL FROM c; CLOSE c";
	return { sql => $sql, plain => $query, explain => $query, compare => 'walk', steps => \@steps };
}

# The rows that each step should give, of all rows in the cursor's order.
sub steps_of
{
	my ($steps, @rows) = @_;
	my ($at, $end, @output) = (0, @rows + 1);
	for my $step (@$steps)
	{
		my ($first, $last, $by) = (0, -1, 1);
		if ($step =~ /BACKWARD (\w+)/)
		{
			$last = $at - 1;
			$first = $1 eq 'ALL' || $1 > $last ? 1 : $at - $1;
			$at = $1 eq 'ALL' || $1 > $last ? 0 : $first;
			$by = -1;
		}
		elsif ($step =~ /RELATIVE 0/) { ($first, $last) = ($at, $at) }
		elsif ($step =~ /LAST/) { ($first, $last) = ($at = $end - 1) x 2 }
		elsif ($step =~ /FIRST|ABSOLUTE (\d+)/)
		{
			my $place = $1 // 1;
			($first, $last) = ($place, $place);
			$at = $place > $end ? $end : $place;
		}
		else
		{
			my ($count) = $step =~ /(\w+)$/;
			$first = $at + 1;
			$last = $count eq 'ALL' || $at + $count >= $end ? $end - 1 : $at + $count;
			$at = $count eq 'ALL' || $at + $count >= $end ? $end : $last;
		}
		my @numbers = grep { $_ >= 1 && $_ < $end } $first .. $last;
		@numbers = reverse @numbers if $by < 0;
		push @output, $step =~ /MOVE/ ? '' : join '', map { "$rows[$_ - 1]\n" } @numbers;
	}
	return @output;
}

# A cursor that only goes forward, a few rows at a time.
sub fetched
{
	my $query = plain_query(@_);
	return { sql => "DECLARE c NO SCROLL CURSOR FOR $query; " . join('', map { one_of('FETCH 1', 'FETCH 7', 'FETCH 100', 'FETCH 2000') . ' FROM c; ' } 1 .. one_of(1, 2, 4)) . 'FETCH ALL FROM c; CLOSE c', explain => $query, compare => 'bag' };
}

# A cursor that outlives its transaction, over tables that do not change.
sub hold
{
	my $query = plain_query(@_, changing => 0);
	return { sql => "COMMIT; BEGIN; DECLARE c " . one_of('', 'NO SCROLL ') . "CURSOR WITH HOLD FOR $query; " . one_of('', 'FETCH 3 FROM c; ') . 'COMMIT; FETCH ' . one_of('2', 'ALL') . ' FROM c; FETCH ALL FROM c; CLOSE c; BEGIN; SAVEPOINT s', explain => $query, compare => 'bag' };
}

sub prepared
{
	my $query = plain_query(@_, where => [column_of_a() . ' ' . one_of('<', '>', '<>', '=') . ' $1', rand() < 0.3 ? 'coalesce(a.k8, $1) IS NOT NULL' : ()]);
	my $asks = join ' ', map { "EXECUTE q($_);" } (5, 0, 'NULL', 3, 40, 7, 1)[0 .. one_of(2, 6)];
	(my $explain = $query) =~ s/\$1/5/g;
	$query =~ s/^SELECT /SELECT \$1, /;
	return { sql => "PREPARE q(int) AS $query; $asks DEALLOCATE q", explain => $explain, compare => 'bag' };
}

sub column_of_a { return 'a.' . one_of(@{ $SAFE{int} }) }

sub prepare
{
	return <<'SQL';
CREATE FUNCTION looped(query text, most int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; n int := 0; sum numeric := 0;
BEGIN
	FOR r IN EXECUTE query LOOP
		n := n + 1;
		sum := sum + hashtextextended(r::text, 0);
		EXIT WHEN n >= most;
	END LOOP;
	RETURN n || CASE WHEN n < most THEN ' ' || sum ELSE '' END;
END $$;
SQL
}

# A loop that ends early, or not.
sub loop
{
	my $query = plain_query(@_);
	return { sql => "SELECT looped(\$query\$$query\$query\$, " . one_of(1, 30, 1000000, 1000000) . ')', explain => $query, compare => 'exact' };
}

sub copied
{
	my $query = plain_query(@_);
	return { sql => "COPY ($query) TO STDOUT", explain => $query, compare => 'bag' };
}

our %KIND = (scan => 8, join => 10, ordered => 4, first => 5, some => 4, distinct => 2, window => 2, set => 2, with => 2, grouped => 3, lateral => 3, dml => 5, locked => 2, walk => 3, fetched => 3, hold => 2, prepared => 3, loop => 2, copy => 1);
my %MAKE = (scan => \&scan, join => \&join_rows, ordered => \&ordered, first => \&first, some => \&some, distinct => \&distinct, window => \&window, set => \&set, with => \&with, grouped => \&grouped, lateral => \&lateral,
	dml => \&dml, locked => \&locked, walk => \&walked, fetched => \&fetched, hold => \&hold, prepared => \&prepared, loop => \&loop, copy => \&copied);

sub query
{
	my (%options) = @_;
	$held = rand() < 0.5;
	$any_type = $held && rand() < 0.5;
	$fetched = 0;
	my $kind = one_of(map { ($_) x $KIND{$_} } sort keys %KIND);
	my $query = $MAKE{$kind}->(%options);
	$query->{kind} = $kind;
	$query->{held} = $held && $joins > 0 && !$outer && !$fetched;
	$query->{fetched} = $held && $joins > 0 && !$outer && $fetched;
	$query->{explain} //= $query->{sql};
	return $query;
}

1;
