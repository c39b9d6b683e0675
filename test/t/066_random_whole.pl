# Random groupings over joins that PostgreSQL does in ways of its own (nested loops over indexes, merge joins,
# joins of few rows) give the same groups where gpuhash does all of the joins as one chain, at the planner's choice.
#
#	GPUHASH_RANDOM_QUERIES		how many queries (300)
#
# Some of PostgreSQL's ways are switched off at random, so that its plans have all kinds of joins, and pages of an
# index are cheap or dear, so that more of the chains win.
use GpuHash::Test;
use GpuHash::Server;

my $seed = seed();
my $queries = $ENV{GPUHASH_RANDOM_QUERIES} || 300;
my $server = GpuHash::Server->new(conf => [
	"shared_preload_libraries = 'gpuhash'", 'shared_buffers = 128MB', 'jit = off', 'autovacuum = off', 'gpuhash.engine = cpu']);

# Tables of several sizes: keys that are unique, that come again, that are NULL, two that belong together.
my @TABLES = map { { name => "w$_->[0]", rows => $_->[1] } }
	(['a', 40000], ['b', 25000], ['c', 3000], ['d', 3000], ['e', 200], ['f', 12]);
for (@TABLES)
{
	my ($name, $rows) = @$_{qw(name rows)};
	$server->query("CREATE TABLE $name AS SELECT i AS id, (i::bigint * 7919 % $rows)::int AS k,
		CASE WHEN i % 13 <> 0 THEN (i::bigint * 104729 % ($rows / 3 + 1))::int END AS n, (i % 200)::bigint AS e, i % 10 AS v, 'text ' || i % 30 AS t,
		i / 5 AS o, i % 5 AS l FROM generate_series(0, $rows - 1) i");
	$server->query("ALTER TABLE $name ADD PRIMARY KEY (id)");
	$server->query("CREATE INDEX ON $name ($_)") for 'k', 'n', 'e', 'o, l';
}
$server->query('VACUUM ANALYZE');

sub one_of { return $_[int(rand(@_))] }

sub condition
{
	my ($alias, $rows) = @_;
	return one_of("$alias.v < " . int(rand(10)), "$alias.id < " . int(rand($rows)), "$alias.t LIKE '%1%'",
		"$alias.id BETWEEN 5 AND " . int(5 + $rows / 50), "$alias.n IS NOT NULL", "$alias.e = " . int(rand(200)), "$alias.k % 3 = 1");
}

# An equality of a table with one that is there already.
sub equality
{
	my ($new, $old) = @_;
	return one_of("$new.id = $old.k", "$new.id = $old.n", "$new.k = $old.id", "$new.n = $old.id",
		"$new.n = $old.n AND $new.v = $old.v", "$new.id = $old.o", "$new.o = $old.id", "$new.o = $old.o AND $new.l = $old.l",
		"$new.e = $old.id", "$new.id = $old.id AND $new.v >= $old.v", "$new.id = $old.id");
}

sub query
{
	my $first = one_of(@TABLES);
	my ($from, @aliases, @where, @inner) = ("$first->{name} t0", 't0');
	push @where, condition('t0', $first->{rows}) if rand() < 0.6;
	for my $i (1 .. 1 + int(rand(4)))
	{
		my ($table, $old) = (one_of(@TABLES), one_of(@aliases));
		my $on = equality("t$i", $old);
		$on .= ' AND ' . equality("t$i", one_of(@aliases)) if rand() < 0.2;
		$on .= ' AND ' . condition("t$i", $table->{rows}) if rand() < 0.5;
		my $how = rand();
		if ($how < 0.2)
		{
			push @where, one_of('', 'NOT ') . "EXISTS (SELECT FROM $table->{name} t$i WHERE $on)";
			next;
		}
		if ($how < 0.3)
		{
			push @where, "$old." . one_of('id', 'k', 'o') . " IN (SELECT t$i." . one_of('id', 'n', 'o', 'k / 2') .
				" FROM $table->{name} t$i WHERE " . condition("t$i", $table->{rows}) . ')';
			next;
		}
		$from .= ' ' . ($how < 0.45 ? 'LEFT ' : $how < 0.5 ? 'RIGHT ' : '') . "JOIN $table->{name} t$i ON $on";
		push @aliases, "t$i";
	}
	my @keys = map { one_of(@aliases) . '.' . one_of('v', 't', 'e', 'l') } 1 .. int(rand(3));
	my $keys = join(', ', @keys);
	my @sums = map { one_of('sum', 'min', 'max', 'count') . '(' . one_of(@aliases) . '.' . one_of('v', 'id', 'n', 'e') . ')' }
		0 .. int(rand(3));
	my $sums = join(', ', 'count(*)', @sums);
	return 'SELECT ' . ($keys && "$keys, ") . "$sums FROM $from" .
		(@where ? ' WHERE ' . join(' AND ', @where) : '') . ($keys && " GROUP BY $keys");
}

my $session = $server->session;
my ($whole, $compared, @wrong) = (0, 0);
$session->do("LOAD 'gpuhash'");
while ($compared < $queries)
{
	my $query = query();
	my @off = grep { rand() < 0.3 } qw(hashjoin mergejoin nestloop memoize material);
	my $settings = join('; ', 'SET max_parallel_workers_per_gather = ' . one_of(0, 0, 2),
		'SET random_page_cost = ' . one_of(1.1, 4, 40), 'SET parallel_setup_cost = ' . one_of(0, 1000),
		'SET min_parallel_table_scan_size = 0', 'SET work_mem = ' . one_of("'64kB'", "'320kB'", "'4MB'"),
		map { "SET enable_$_ = off" } @off);
	$session->do("RESET ALL; SET statement_timeout = '20s'; SET gpuhash.enabled = off; $settings");
	my ($want, $want_error) = $session->do($query);
	next if $want_error =~ /statement timeout/;
	$session->do('SET gpuhash.enabled = on; SET statement_timeout = 0');
	my ($plan) = $session->do("EXPLAIN $query");
	my ($got, $error) = $session->do($query);
	$compared++;
	$whole++ if $plan =~ /GpuHashAggregate.*GpuHashJoin/s && $plan !~ /Hash Join|Merge Join/;
	next if ($error eq '') == ($want_error eq '') &&
		join("\n", sort split /\n/, $got) eq join("\n", sort split /\n/, $want);
	push @wrong, $query;
	diag("$settings;\n$query;\n$plan\n-- $got$error\n-- instead of\n-- $want$want_error\n") if @wrong <= 3;
}
is(scalar(@wrong), 0, "$compared random groupings over joins, seed $seed");
note("joins were steps of a GpuHashAggregate in $whole");
cmp_ok($whole, '>', $compared / 50, 'of many of them all joins are done with the grouping');
$session->close;
$server->stop;
done_testing();
