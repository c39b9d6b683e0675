# EXPLAIN of a GpuHashJoin is well formed in every format, with and without ANALYZE.
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

done_testing();
