# Random joins, offloaded and not, give the same rows.
#
# GPUHASH_SEED repeats a run, GPUHASH_QUERIES says how many (default 250).
use strict;
use warnings;
use Test::More;
use GpuHash::Server;

if (my $reason = GpuHash::Server::why_not()) { plan skip_all => $reason }

my $seed = $ENV{GPUHASH_SEED} || int(rand(1 << 31));
my $queries = $ENV{GPUHASH_QUERIES} || 250;
srand($seed);
note("seed $seed, $queries queries");

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'max_parallel_workers_per_gather = 0', 'jit = off']);

sub one_of { return $_[int(rand(@_))] }

# Tables r0 to r5: columns of every kind of key, skewed, with NULLs, each of another
# size.
my %order = map { $_ => rand() } (0, 1, 40, 300, 1500, 6000);
my @COLUMNS = qw(i2 i4 i8 f4 f8 n t v d u);
my %FAMILY = (i2 => 'int', i4 => 'int', i8 => 'int', f4 => 'float', f8 => 'float', n => 'n', t => 'text', v => 'text', d => 'd', u => 'u');
my @rows = sort { $order{$a} <=> $order{$b} } keys %order;
for my $r (0 .. 5)
{
	my $rows = $rows[$r];
	my $distinct = one_of(1, 7, 100, 1000, 20000);
	my $key = one_of("(i * 7919) % $distinct", "(i * i) % $distinct", "least(i % $distinct, 5)", "i % 30000");
	my $null = one_of(2, 9, 1000000);
	$server->query(<<"SQL");
CREATE TABLE r$r AS SELECT i AS id, k::int2 AS i2, k::int4 AS i4, k::int8 AS i8, k::float4 AS f4, k::float8 AS f8,
	k::numeric AS n, k::text AS t, ('k' || k)::varchar AS v, DATE '2000-01-01' + k::int AS d, md5(k::text)::uuid AS u,
	repeat('w', (i % 90)::int) AS w
FROM (SELECT i, CASE WHEN i % $null = 1 THEN NULL ELSE ($key) % 30000 END AS k FROM generate_series(1::bigint, $rows) i) s;
ANALYZE r$r;
SQL
}

# An equality of two columns of one family, or of expressions.
sub clause
{
	my ($a, $b) = @_;
	my $x = one_of(@COLUMNS);
	my $y = one_of(grep { $FAMILY{$_} eq $FAMILY{$x} } @COLUMNS);
	return one_of("$a.$x = $b.$y", "$a.$x = $b.$y", "$b.$y = $a.$x", "$a.id = $b.id", "$a.i4 + 1 = $b.i4",
		"lower($a.t) = upper($b.t)", "coalesce($a.i8, -1) = $b.i4");
}

# What joins two rows: an equality, and perhaps more.
sub condition
{
	my ($a, $b) = @_;
	my @on = (clause($a, $b));
	push @on, clause($a, $b) if rand() < 0.25;
	push @on, one_of("$a.id % 3 <> $b.id % 2", "$b.id < 700", "length($a.w) < 40") if rand() < 0.4;
	return join(' AND ', @on);
}

my $aliases;
our $in_lateral = 0;
sub alias { return 'a' . $aliases++ }
sub table { return 'r' . int(rand(6)) }

# A table under an alias, or a subquery that computes something of its own.
sub leaf
{
	my $a = alias();
	my $table = table();
	return (rand() < 0.2 ? "(SELECT *, i4 + 5 AS x, coalesce(t, 'none') AS y FROM $table) $a" : "$table $a", $a);
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
	my $y = one_of(grep { $FAMILY{$_} eq $FAMILY{$x} } @COLUMNS);
	return one_of(
		"EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"NOT EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"NOT EXISTS (SELECT 1 FROM $inside WHERE " . condition($a, $i) . ')',
		"$a.$x IN (SELECT $i.$y FROM $inside)",
		"$a.$x IN (SELECT $i.$y FROM $inside WHERE $i.id % 3 <> 1)",
		"$a.id < 20 AND (SELECT count(*) FROM $inside WHERE $i.id < $a.id * 7) > 3");
}

sub query
{
	$aliases = 0;
	my ($from, @in) = tree(one_of(1, 2, 2, 2, 3, 3, 4));
	my ($first, $last) = ($in[0], $in[-1]);
	my @where;
	push @where, one_of("$last.id IS NULL", "$last.i4 IS DISTINCT FROM 3", "$first.id < 500",
		"coalesce($last.i8, 0) < 50 OR $first.id > 100", "coalesce($last.i4, 3) = coalesce($first.i4, 3)") if rand() < 0.4;
	push @where, membership(one_of(@in)) if @in == 1 || rand() < 0.3;
	push @where, membership(one_of(@in)) if rand() < 0.1;
	my $where = @where ? 'WHERE ' . join(' AND ', map { "($_)" } @where) : '';
	my @output = ("$first.id, $last.id", "$first.t, $last.w, $last.n", "$last.u, $first.d, $last.i2 + $first.id");
	push @output, "$first, $last.id" if $from !~ /LATERAL/;
	return "SELECT " . one_of(@output) . " FROM $from $where";
}

my ($offloaded, $skipped, $unlimited, $rows) = (0, 0, 0, 0);
my %types;
my @wrong;
my $session = $server->session;
for my $q (1 .. $queries)
{
	my $query = query();
	my $settings = 'SET work_mem = ' . one_of("'64kB'", "'64kB'", "'4MB'") . '; SET hash_mem_multiplier = 1; SET gpuhash.batch_rows = ' .
		one_of(256, 1000, 16384) . '; SET gpuhash.subtables = ' . one_of(2 .. 8) . '; SET statement_timeout = 5000; SET ' .
		one_of(map { "$_ = " . one_of('on', 'off') } qw(enable_material enable_memoize enable_hashagg enable_nestloop));
	my $limited = rand() < 0.1;
	my $digest = $limited
		? 'SELECT count(*) FROM (' . $query . ' LIMIT ' . one_of(1, 30, 1000) . ') s'
		: "SELECT count(*), sum(hashtextextended(ROW(s.*)::text, 0)::numeric) FROM ($query) s";
	$session->do($settings);
	$session->do('SET gpuhash.enabled = off');
	my ($want, $want_error) = $session->do($digest);
	# a product of skewed keys can be too large to compare
	if ($want_error =~ /statement timeout/) { $skipped++; next }
	$session->do('SET gpuhash.enabled = on; SET gpuhash.force_offload = on; SET statement_timeout = ' . ($limited ? 20000 : 60000));
	my ($plan) = $session->do('EXPLAIN ' . one_of('', 'VERBOSE ') . $digest);
	$offloaded++ if $plan =~ /GpuHashJoin/;
	$types{$_}++ for $plan =~ /Join Type: (\w+(?: \w+)?)/g;
	my ($got, $error) = $session->do($digest, 90);
	# forced plans have no regard for the LIMIT: where PostgreSQL stops early, they may make
	# a product that is too large
	if ($limited && $error =~ /statement timeout/ && $want_error eq '') { $unlimited++; next }
	push @wrong, "$settings; SET gpuhash.force_offload = on;\n$digest;\n-- $got$error instead of $want$want_error" if "$got$error" ne "$want$want_error";
	$rows += $1 if $want =~ /^(\d+)/;
}
note("$offloaded offloaded, $skipped too large to compare, $unlimited too large but for a LIMIT, $rows rows in all");
note(join(', ', map { "$types{$_} $_" } sort keys %types));
is(join("\n", @wrong), '', "no difference (seed $seed)");
cmp_ok($offloaded, '>', 0.5 * $queries, 'most queries were offloaded');
cmp_ok($skipped, '<', 0.2 * $queries, 'few queries were too large to compare');
cmp_ok($unlimited, '<=', 1 + 0.01 * $queries, 'very few were too large but for a LIMIT');
my $version = $server->query('SHOW server_version_num');
for my $type (qw(Inner Left Right Full Semi Anti), $version >= 160000 ? 'Right Anti' : (), $version >= 180000 ? 'Right Semi' : ())
{
	cmp_ok($types{$type} || 0, '>', 0, "some were joins of type $type");
}
done_testing();
