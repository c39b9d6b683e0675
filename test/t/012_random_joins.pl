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

# Tables r0 to r5: columns of every kind of key, skewed, with NULLs, some empty.
my @COLUMNS = qw(i2 i4 i8 f4 f8 n t v d u);
my %FAMILY = (i2 => 'int', i4 => 'int', i8 => 'int', f4 => 'float', f8 => 'float', n => 'n', t => 'text', v => 'text', d => 'd', u => 'u');
for my $r (0 .. 5)
{
	my $rows = one_of(0, 1, 40, 300, 1500, 6000);
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

sub query
{
	my $n = one_of(2, 2, 2, 3, 3, 4);
	my $from = 'r' . int(rand(6)) . ' a0';
	for my $j (1 .. $n - 1)
	{
		my $other = 'a' . int(rand($j));
		my @on = (clause($other, "a$j"));
		push @on, clause($other, "a$j") if rand() < 0.25;
		push @on, one_of("a$j.id % 3 <> $other.id % 2", "a$j.id < 700", "length($other.w) < 40") if rand() < 0.4;
		my $type = one_of('JOIN', 'LEFT JOIN', 'LEFT JOIN');
		my $table = 'r' . int(rand(6));
		$from = rand() < 0.2
			? "$from $type (SELECT *, i4 + 5 AS x, coalesce(t, 'none') AS y FROM $table) a$j ON " . join(' AND ', @on)
			: "$from $type $table a$j ON " . join(' AND ', @on);
	}
	my $last = 'a' . ($n - 1);
	my $where = rand() < 0.4 ? 'WHERE ' . one_of("$last.id IS NULL", "$last.i4 IS DISTINCT FROM 3", "a0.id < 500", "coalesce($last.i8, 0) < 50 OR a0.id > 100") : '';
	my $output = one_of("a0.id, $last.id", "a0.t, $last.w, $last.n", "a0, $last.id", "$last.u, a0.d, $last.i2 + a0.id");
	return "SELECT $output FROM $from $where";
}

my ($offloaded, $skipped, $rows) = (0, 0, 0);
my @wrong;
my $session = $server->session;
for my $q (1 .. $queries)
{
	my $query = query();
	my $settings = 'SET work_mem = ' . one_of("'64kB'", "'64kB'", "'4MB'") . '; SET hash_mem_multiplier = 1; SET gpuhash.batch_rows = ' .
		one_of(256, 1000, 16384) . '; SET gpuhash.subtables = ' . one_of(2 .. 8) . '; SET statement_timeout = 5000';
	my $digest = "SELECT count(*), sum(hashtextextended(ROW(s.*)::text, 0)::numeric) FROM ($query) s";
	$session->do($settings);
	$session->do('SET gpuhash.enabled = off');
	my ($want, $want_error) = $session->do($digest);
	# a product of skewed keys can be too large to compare
	if ($want_error =~ /statement timeout/) { $skipped++; next }
	$session->do('SET gpuhash.enabled = on; SET gpuhash.force_offload = on; SET statement_timeout = 60000');
	my ($plan) = $session->do("EXPLAIN $digest");
	$offloaded++ if $plan =~ /GpuHashJoin/;
	my ($got, $error) = $session->do($digest, 90);
	push @wrong, "$settings;\n$digest;\n-- $got$error instead of $want$want_error" if "$got$error" ne "$want$want_error";
	$rows += $1 if $want =~ /^(\d+)/;
}
note("$offloaded offloaded, $skipped too large to compare, $rows rows in all");
is(join("\n", @wrong), '', "no difference (seed $seed)");
cmp_ok($offloaded, '>', 0.5 * $queries, 'most queries were offloaded');
cmp_ok($skipped, '<', 0.2 * $queries, 'few queries were too large to compare');
done_testing();
