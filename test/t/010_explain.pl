# EXPLAIN of a GpuHashJoin, and of the joins and the scan that a GpuHashAggregate does by itself, is well formed in
# every format, with and without ANALYZE; text leaves out what is zero or usual.
use GpuHash::Test;
use JSON::PP;

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'gpuhash.force_offload = on', "gpuhash.engine = 'cpu'", 'max_parallel_workers_per_gather = 0']);
$server->query(<<'SQL');
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k, 'text <&> "' || i % 10 || '"' AS t FROM generate_series(1, 20000) i;
CREATE TABLE inner_rows AS SELECT i AS k, 'text <&> "' || i % 10 || '"' AS t FROM generate_series(1, 500) i;
ANALYZE;
SQL

my %join = (
	'inner join' => 'SELECT * FROM outer_rows o JOIN inner_rows i ON i.k = o.k',
	'left join with a join qual' => q{SELECT * FROM outer_rows o LEFT JOIN inner_rows i ON i.k = o.k AND i.t || 'x<&>"' <> o.t},
	'right join with a join qual' => q{SELECT o.i, i.t FROM inner_rows i LEFT JOIN outer_rows o ON i.k = o.k AND i.t || 'x<&>"' <> o.t},
	'full join' => 'SELECT * FROM outer_rows o FULL JOIN inner_rows i ON i.k = o.k',
	'semi join' => 'SELECT * FROM outer_rows o WHERE EXISTS (SELECT FROM inner_rows i WHERE i.k = o.k)',
	'anti join with a join qual' => q{SELECT * FROM outer_rows o WHERE NOT EXISTS (SELECT FROM inner_rows i WHERE i.k = o.k AND i.t || 'x<&>"' <> o.t)},
	'two keys' => 'SELECT * FROM outer_rows o JOIN inner_rows i ON i.k = o.k AND i.t = o.t',
);

# The first node of a plan tree that is a GpuHashJoin.
sub find_join
{
	my ($node) = @_;
	return $node if ($node->{'Custom Plan Provider'} || '') eq 'GpuHashJoin';
	for (@{ $node->{Plans} || [] })
	{
		my $found = find_join($_);
		return $found if $found;
	}
	return;
}

# Whether tags are balanced and no bare & or < is left.
sub xml_ok
{
	my ($xml) = @_;
	my @open;
	while ($xml =~ m{\G([^<]*)(?:<(/?)([\w-]+)([^<>]*?)(/?)>|\z)}gc)
	{
		my ($text, $closing, $name, $empty) = ($1, $2, $3, $5);
		return 0 if $text =~ /&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-f]+);)/i;
		last unless defined $name;
		if ($closing) { return 0 unless @open && pop(@open) eq $name }
		elsif (!$empty) { push @open, $name }
	}
	return !@open && (pos($xml) // 0) == length $xml;
}

# Whether every line is a "key: value", a "- key:" or a "- value" of YAML whose
# value is a number, a bare word or a quoted string, at an even indentation.
sub yaml_ok
{
	my ($yaml) = @_;
	my $value = qr/(?:"(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|[A-Za-z_][^":#]*)/;
	for (split /\n/, $yaml)
	{
		return 0 unless /^(?:  )*(?:- )?(?:[A-Za-z][^":]*: ?$value? *|$value)$/;
	}
	return 1;
}

for my $name (sort keys %join)
{
	my $sql = $join{$name};
	for my $options ('COSTS OFF', 'ANALYZE, BUFFERS', 'ANALYZE, TIMING OFF, VERBOSE')
	{
		my $analyze = $options =~ /ANALYZE/;
		my $tree = eval { decode_json($server->query("EXPLAIN ($options, FORMAT json) $sql")) };
		ok($tree, "$name ($options): JSON parses") or diag($@);
		my $node = $tree && find_join($tree->[0]{Plan});
		ok($node, "$name ($options): it is a GpuHashJoin") or next;
		is($node->{'Join Type'}, $name =~ /^(\w+) join/ ? ucfirst $1 : 'Inner', "$name ($options): join type");
		ok($node->{'Hash Cond'}, "$name ($options): hash condition");
		ok($name !~ /qual/ || $node->{'Join Filter'}, "$name ($options): join filter");
		is($node->{Engine}, $analyze ? 'cpu' : undef, "$name ($options): engine");
		if ($analyze)
		{
			is($node->{'Inner Rows'}, 500, "$name ($options): inner rows");
			for ('Subtables', 'Fill Factor', 'Resizes', 'Batches', 'Memory Usage')
			{
				like($node->{$_} // 'missing', qr/^[\d.]+$/, "$name ($options): $_ is a number");
			}
			my $times = grep { /Time$/ && !/^(Actual|I\/O|Shared|Local|Temp)/ } keys %$node;
			$options =~ /TIMING OFF/ ? is($times, 0, "$name ($options): no times") : cmp_ok($times, '>=', 4, "$name ($options): times");
		}

		my $xml = $server->query("EXPLAIN ($options, FORMAT xml) $sql");
		ok(xml_ok($xml), "$name ($options): XML is well formed") or diag($xml);
		my $yaml = $server->query("EXPLAIN ($options, FORMAT yaml) $sql");
		ok(yaml_ok($yaml), "$name ($options): YAML is well formed") or diag($yaml);
		like($server->query("EXPLAIN ($options) $sql"), qr/Custom Scan \(GpuHashJoin\)/, "$name ($options): text");
	}
}

# ------------------------------------------------- an aggregate and its steps
my $star = 'SELECT o.t, count(*) FROM outer_rows o JOIN inner_rows i ON i.k = o.k WHERE o.i <= 10000 GROUP BY o.t HAVING count(*) > 1';
my $text = $server->query("EXPLAIN (ANALYZE, COSTS OFF) $star");
my $steps = 'Scan o (rows=20000), Filter (rows=10000), Join i (rows=5000), Group (rows=10), Filter (rows=10)';
like($text, qr/^ *Steps: \Q$steps\E$/m, 'steps, in one line') or diag($text);
my @usual = ('Rows Handed Back', 'Wait Time', 'Merge Time', 'Queue Time', 'Kernel Time', 'Disk Usage', 'Subtables', 'Fill Factor', 'Resizes',
	'Table Values', 'Batches', 'Partitions');
for my $label (@usual)
{
	unlike($text, qr/^ *$label:/m, "text leaves out $label");
	like($server->query("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $star"), qr/^ *$label:/m, "but with VERBOSE");
}
my ($tree) = @{ decode_json($server->query("EXPLAIN (ANALYZE, FORMAT json) $star")) };
my $aggregate = $tree->{Plan};
is($aggregate->{'Custom Plan Provider'}, 'GpuHashAggregate', 'it is a GpuHashAggregate');
is_deeply([map { $_->{'Parent Relationship'} } $aggregate->{Plans}[0], @{ $aggregate->{Plans}[0]{Plans} }], [qw(Outer Outer Inner)],
	'other extensions find what is below our nodes where it is below those of PostgreSQL');
is_deeply([map { [$_->{'Step Type'}, join('+', @{ $_->{Relations} }), $_->{Rows}] } @{ $aggregate->{Steps} }],
	[['Scan', 'o', 20000], ['Filter', '', 10000], ['Join', 'i', 5000], ['Group', '', 10], ['Filter', '', 10]], 'steps in JSON');
for my $label ('Pages', 'Input Rows', 'Rows Handed Back', 'Groups', 'Memory Usage', 'Hinted Pages', 'Tuples Judged', 'Device Memory',
	'Bytes Transferred', 'Pages Pinned', 'Pages Copied', 'Disk Usage', map { "$_ Time" } qw(Build Source Wait Evaluate Merge Emit Queue Kernel))
{
	like($aggregate->{$label} // 'missing', qr/^[\d.]+$/, "JSON has $label");
}
is($aggregate->{'Page Supply'}, 'none', 'JSON has where pages came from');
my $join = find_join($aggregate);
for my $label ('Inner Rows', 'Subtables', 'Fill Factor', 'Resizes', 'Batches', 'Partitions', 'Disk Usage', 'Memory Usage', 'Device Memory',
	'Bytes Transferred', map { "$_ Time" } qw(Source Build Wait Emit Queue Transfer Kernel))
{
	like($join->{$label} // 'missing', qr/^[\d.]+$/, "JSON has $label of the join");
}
ok(xml_ok($server->query("EXPLAIN (ANALYZE, FORMAT xml) $star")), 'XML is well formed');
my $scan = decode_json($server->query('EXPLAIN (ANALYZE, FORMAT json) SELECT i FROM outer_rows WHERE k = 5'))->[0]{Plan};
for my $label ('Pages', 'Rows Handed Back', 'Pages Pinned', 'Pages Copied', map { "$_ Time" } qw(Source Wait Evaluate Emit Queue Kernel))
{
	like($scan->{$label} // 'missing', qr/^[\d.]+$/, "JSON has $label of a GpuHashScan");
}

# Many loops and processes: rows of steps are all of them.
my $loops = $server->query("EXPLAIN (ANALYZE, COSTS OFF) SELECT (SELECT count(*) FROM outer_rows o WHERE o.k < g) FROM generate_series(1, 3) g");
like($loops, qr/Steps: Scan o \(rows=60000\), Filter \(rows=120\), Aggregate \(rows=3\)/, 'rows of all loops') or diag($loops);
my $parallel = $server->query('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ' .
	"EXPLAIN (ANALYZE, COSTS OFF) $star");
like($parallel, qr/Parallel Custom Scan \(GpuHashAggregate.*Steps: \Q$steps\E/s, 'rows of all processes') or diag($parallel);

$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
