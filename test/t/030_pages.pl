# gpuhash_check_pages: what the engine reads from pages is what
# PostgreSQL reads, for every type, alignment, NULL, missing, toasted and updated value.
use GpuHash::Test 'module';

seed();

my $server = GpuHash::Server->new(conf => ['autovacuum = off', 'max_connections = 20'], module => 1);

# What was compared: tuples, values (in all loads), rows handed back.
sub check_pages
{
	my ($table) = @_;
	my ($status, $out, $err) = $server->run("SELECT gpuhash_check_pages('$table')");
	return ($1, $2, $3) if $out =~ /^tuples (\d+), values (\d+), handed back (\d+)$/;
	diag $err;
	return (-1, -1, -1);
}

# A table all of whose values can be read; each is compared among all columns, and alone.
sub all_read
{
	my ($table, $what) = @_;
	my $rows = $server->query("SELECT count(*) FROM $table");
	my $columns = $server->query("SELECT count(*) FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0");
	is(join(' ', check_pages($table)), join(' ', $rows, 2 * $rows * $columns, 0), $what);
	return;
}

# ---- every type, in every order

my %type = (
	int2 => '(i * 7919 % 65536 - 32768)::int2', int4 => '(i * 7919 - 1000000)', int8 => '(i::int8 << 40) - (i * 5)',
	oid => '(4000000000 + i)::oid', bool => 'i % 3 = 0', '"char"' => "chr(65 + i % 26)::\"char\"",
	float4 => "CASE i % 7 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE (i / 3.0)::text END::float4",
	float8 => "CASE i % 7 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' ELSE (i / 3.0)::text END::float8",
	'numeric(12,2)' => '(i * 7919 % 100000 - 50000) / 100.0', 'numeric(38,10)' => '(i - 500) * 12345678901.0123456789',
	'numeric(5,5)' => '(i % 100000) / -100000.0', 'numeric(30,0)' => '(i - 500) * 10000000000000000',
	text => "repeat('x', i % 200)", 'varchar(20)' => "left(i::text || 'varchar', i % 20)", 'char(10)' => "'c' || i % 100",
	name => "('name' || i)::name", uuid => "md5(i::text)::uuid", date => "date '2000-01-01' + i",
	timestamp => "timestamp '2000-01-01' + i * interval '1 hour'", bytea => "decode(md5(i::text), 'hex')",
	interval => "i * interval '1 day 1 second'", inet => "'10.0.0.0'::inet + i", macaddr => "'08:00:2b:01:02:03'::macaddr",
	point => 'point(i, -i)', tid => "('(' || i || ',1)')::tid", jsonb => "jsonb_build_object('i', i)",
	'int4[]' => 'ARRAY[i, i + 1]', box => 'box(point(i, 0), point(0, i))', timetz => "timetz '12:00' + i * interval '1 second'",
	int4range => 'int4range(i, i + 10)');

# A table of so many columns in random order, a value of which is NULL so often.
sub make_table
{
	my ($name, $columns, $nulls, $rows) = @_;
	my @names = sort keys %type;
	my (@columns, @values);
	for my $n (1 .. $columns)
	{
		my $type = $names[ $n <= @names ? $n - 1 : rand @names ];
		my $at = int rand(@columns + 1);
		splice @columns, $at, 0, "c$n $type";
		splice @values, $at, 0, $nulls ? "CASE WHEN hashint4(i * 1000 + $n) % 100 + 100 < 2 * $nulls THEN NULL ELSE $type{$type} END" : $type{$type};
	}
	# many columns together may be more than is kept in a page as it is, unless that is asked for
	$server->query(sprintf 'CREATE TABLE %s (%s) WITH (toast_tuple_target = 8160); INSERT INTO %s SELECT %s FROM generate_series(1, %d) i',
		$name, join(', ', @columns), $name, join(', ', @values), $rows);
	return;
}

for my $n (1 .. 8)
{
	my ($nulls, $columns) = ((0, 5, 30, 0)[ $n % 4 ], $n < 5 ? scalar(keys %type) : 1 + int rand 12);
	make_table("types$n", $columns, $nulls, 300);
	all_read("types$n", "$columns columns, $nulls % NULLs");
}
make_table('wide', 200, 40, 30);
all_read('wide', '200 columns, more than a batch has vectors');
$server->query('CREATE TABLE fixed (a int2, b bool, c int8, d "char", e int4, f float8); INSERT INTO fixed SELECT i, i % 2 = 0, i, i::text::"char", CASE WHEN i % 50 > 0 THEN i END, i FROM generate_series(1, 5000) i');
all_read('fixed', 'columns of fixed width, a few NULLs');
$server->query('CREATE TABLE none (); INSERT INTO none DEFAULT VALUES; CREATE TABLE empty (k int)');
all_read('none', 'no columns');
all_read('empty', 'no pages');
my ($tuples, $values, $back) = check_pages('pg_class');
ok($tuples > 300 && $values > 10000 && $back == 0, "a catalog: $tuples tuples, $values values");

# ---- tuples that are older than their relation's columns

$server->query(<<'SQL');
CREATE TABLE altered (a int, b text, c int8, d numeric(8,2));
INSERT INTO altered SELECT i, 'row ' || i, CASE WHEN i % 4 > 0 THEN i END, i / 4.0 FROM generate_series(1, 1000) i;
ALTER TABLE altered ADD e int8;
ALTER TABLE altered DROP b;
INSERT INTO altered SELECT i, i, i, i FROM generate_series(1001, 1500) i;
ALTER TABLE altered ADD f text;
ALTER TABLE altered DROP a;
INSERT INTO altered SELECT i, i, i, 'row ' || i FROM generate_series(1501, 2000) i;
SQL
all_read('altered', 'columns dropped, and added as NULL');
$server->query(<<'SQL');
CREATE TABLE missing (a int);
INSERT INTO missing SELECT generate_series(1, 700);
ALTER TABLE missing ADD b int8 DEFAULT 5, ADD c text DEFAULT 'c', ADD d int;
INSERT INTO missing SELECT i, i, i, i FROM generate_series(1, 300) i;
SQL
# 1000 rows alone in a and d, 300 in b and c and in all four
is(join(' ', check_pages('missing')), join(' ', 1000, 2000 + 600 + 4 * 300, 3 * 700), 'columns added with a value');

# ---- toasted and compressed values

$server->query(<<'SQL');
CREATE TABLE toasted (a int, external text, b text, compressed text, c int8);
ALTER TABLE toasted ALTER external SET STORAGE external;
INSERT INTO toasted SELECT i, CASE i % 4 WHEN 0 THEN repeat('e', 3000) ELSE 'e' || i END, 'b' || i,
	CASE i % 4 WHEN 1 THEN repeat('c', 10000) ELSE repeat('c', i % 300) END, i FROM generate_series(1, 400) i;
CREATE TABLE long (a int, b text, c int);
ALTER TABLE long ALTER b SET STORAGE plain;
INSERT INTO long SELECT i, repeat('l', i * 13 % 4000), i FROM generate_series(1, 300) i;
SQL
# of the columns alone 100 rows each, and of all of them together these 200
is(join(' ', check_pages('toasted')), join(' ', 400, 5 * 400 - 200 + 5 * 200, 400), 'values that are elsewhere');
all_read('long', 'long values in the page');

# ---- numerics

$server->query(<<'SQL');
CREATE TABLE numerics (id int, v numeric);
INSERT INTO numerics SELECT i, (i - 500) * 0.01 FROM generate_series(1, 1000) i;
INSERT INTO numerics SELECT i, CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END * round(power(10::numeric, i) * 1.23, 2) FROM generate_series(-2, 36) i;
INSERT INTO numerics SELECT i, round(9999.99 * power(10::numeric, 4 * i), 2) FROM generate_series(-2, 8) i;
INSERT INTO numerics VALUES (0, 0.00), (0, -0.00), (0, 1701411834604692317316873037158841057.27), (0, -1701411834604692317316873037158841057.27);
CREATE TABLE refused (id int, v numeric);
INSERT INTO refused VALUES (0, 'NaN'), (0, 'Infinity'), (0, '-Infinity'), (0, 0), (0, 1.5), (0, 1.500), (0, 1e40), (0, 1e-40),
	(0, 1701411834604692317316873037158841057.28), (0, -1701411834604692317316873037158841057.28), (0, 12345678901234567890123456789012345678.90);
CREATE TABLE declared (v numeric(10,3), w numeric(40,37), x numeric(100,40), y numeric(5,-2), z numeric(10,3));
INSERT INTO declared SELECT i / 1000.0, i, i, i * 100, CASE WHEN i % 10 = 0 THEN 'NaN'::numeric ELSE i END FROM generate_series(1, 200) i;
SQL
all_read('numerics', 'numerics of one scale');
is(join(' ', check_pages('refused')), '11 11 22', 'numerics of other scales, none at all, too wide');
($tuples, $values, $back) = check_pages('declared');
# w is too wide from 18 on, and z is NaN in 20 rows; x is of a scale that no column has, and is taken as bytes
is("$tuples $values $back", join(' ', 200, 3 * 200 + 17 + 180 + 5 * 16, 183 + 20 + 184), 'numerics of declared scales');

# ---- what updates, deletes and vacuum leave

$server->query(<<'SQL');
CREATE TABLE updated (k int PRIMARY KEY, v int, t text) WITH (fillfactor = 50);
INSERT INTO updated SELECT i, i, repeat('u', i % 30) FROM generate_series(1, 2000) i;
UPDATE updated SET v = v + 1 WHERE k % 3 = 0;
DELETE FROM updated WHERE k % 5 = 0;
BEGIN; UPDATE updated SET v = NULL WHERE k % 7 = 0; ROLLBACK;
SELECT k FROM updated WHERE k % 11 = 0 FOR UPDATE;
SQL
($tuples, $values, $back) = check_pages('updated');
ok($tuples > 1600 && $values == 6 * $tuples && $back == 0, "$tuples versions of 1600 rows, as far as they are not pruned");
$server->query('VACUUM updated; INSERT INTO updated SELECT i, i, NULL FROM generate_series(3000, 3400) i');
all_read('updated', 'vacuumed, and filled up');
$server->query('VACUUM FULL updated; VACUUM (FREEZE) updated');
all_read('updated', 'frozen');

done_testing();
