# The extension's upgrade scripts: each version that was released is created, updated to the default version,
# and has then the same objects as a new one, to the last comment and privilege.
#
# While there is one version only, nothing of gpuhash's own can be updated, and the test says so.  That the
# comparison finds what an upgrade script forgets is tried on an extension with gpuhash's objects and versions
# before them.
use GpuHash::Test;
use GpuHash::Pages qw(contents);
use FindBin;

my $top = "$FindBin::Bin/../..";

sub write_file
{
	my ($path, $text) = @_;
	open my $file, '>:encoding(UTF-8)', $path or die "$path: $!";
	print $file $text;
	close $file or die "$path: $!";
	return;
}

# A line for each object of the extension :'name', with all that a script can give it; that of an operator family
# has its operators and functions.
my $objects = <<'SQL';
CREATE TEMP VIEW member AS
	SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = :'name';
CREATE TEMP TABLE definition AS
	SELECT 'pg_proc'::regclass::oid AS classid, oid,
		format('%s privileges %s, cost %s, rows %s', pg_get_functiondef(oid), proacl, procost, prorows) AS text
	FROM pg_proc WHERE prokind IN ('f', 'p')
	UNION ALL
	SELECT 'pg_class'::regclass, oid,
		format('%s %s, options %s, privileges %s: ', relkind, pg_get_viewdef(oid), reloptions, relacl) ||
		(SELECT string_agg(format('%s %s %s "%s"', attname, format_type(atttypid, atttypmod), attacl,
				col_description(c.oid, attnum)), ', ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
	FROM pg_class c
	UNION ALL
	SELECT 'pg_am'::regclass, oid, format('%s %s', amtype, amhandler::regproc) FROM pg_am
	UNION ALL
	SELECT 'pg_type'::regclass, oid, format('%s %s %s', typtype, typrelid::regclass, typacl) FROM pg_type
	UNION ALL
	SELECT 'pg_opclass'::regclass, o.oid, format('%s for %s in %s, %s %s', opcname, opcintype::regtype, opfname,
		opcdefault, opckeytype::regtype)
	FROM pg_opclass o JOIN pg_opfamily f ON f.oid = opcfamily
	UNION ALL
	SELECT 'pg_opfamily'::regclass, oid, concat_ws(', ', opfname,
		(SELECT string_agg(format('%s %s %s', amopstrategy, amopopr::regoperator, amoppurpose), ', '
				ORDER BY amopstrategy, amopopr::regoperator::text)
			FROM pg_amop WHERE amopfamily = f.oid),
		(SELECT string_agg(format('%s %s for %s, %s', amprocnum, amproc::regprocedure, amproclefttype::regtype,
				amprocrighttype::regtype), ', '
				ORDER BY amprocnum, amproclefttype::regtype::text, amprocrighttype::regtype::text)
			FROM pg_amproc WHERE amprocfamily = f.oid))
	FROM pg_opfamily f;
SELECT format('%s: %s, comment "%s", privileges at first %s', pg_describe_object(m.classid, m.objid, 0),
	coalesce(d.text, 'this test does not know such objects'), obj_description(m.objid, m.classid::regclass::name),
	(SELECT string_agg(objsubid || ' ' || initprivs::text, ', ' ORDER BY objsubid) FROM pg_init_privs p
		WHERE p.classoid = m.classid AND p.objoid = m.objid))
FROM member m LEFT JOIN definition d ON d.classid = m.classid AND d.oid = m.objid ORDER BY 1;
SELECT format('extension: %s in %s, relocatable %s, tables to be dumped %s, comment "%s"', extversion,
	extnamespace::regnamespace, extrelocatable, extconfig, obj_description(oid, 'pg_extension'))
FROM pg_extension WHERE extname = :'name';
SQL

my $server = GpuHash::Server->new;
my $databases = 0;

# What the extension consists of in a new database after these statements.
sub objects_after
{
	my ($name, $statements) = @_;
	my $database = 'objects_' . ++$databases;
	$server->query("CREATE DATABASE $database");
	my $out = $server->query(join "\n", "\\c $database", "\\set name $name",
		'SET client_min_messages = warning;', "$statements;", $objects);
	$server->query("DROP DATABASE $database");
	return [split /\n(?=(?:function|view|type|access method|operator \w+) \S[^\n]*: |extension: )/, $out];
}

# What is in one of two lists only, a line each.
sub difference
{
	my ($fresh, $updated) = @_;
	my %count;
	$count{$_}++ for @$fresh;
	$count{$_}-- for @$updated;
	return join '', map { ($count{$_} > 0 ? '- ' : '+ ') . "$_\n" } grep { $count{$_} } sort keys %count;
}

sub after_update
{
	my ($name, $version) = @_;
	return objects_after($name, "CREATE EXTENSION $name VERSION '$version'; ALTER EXTENSION $name UPDATE");
}

# ------------------------------------------------------------------- gpuhash itself

my ($default) = contents("$top/gpuhash.control") =~ /^default_version = '([^']+)'/m;
my $fresh = objects_after('gpuhash', 'CREATE EXTENSION gpuhash');
cmp_ok(scalar @$fresh, '>', 100, "version $default has its objects");
is(join("\n", grep { /does not know/ } @$fresh), '', 'and all are of kinds that are compared');

# Versions that scripts of the checkout name, or that CHANGELOG.md has with a date.
my %known = map { $_ => 1 } map { m{/gpuhash--(.+)\.sql$} ? split(/--/, $1) : () } glob "$top/gpuhash--*.sql";
$known{$_} = 1 for contents("$top/CHANGELOG.md") =~ /^## (\S+) \(\d{4}-\d\d-\d\d\)$/mg;
my %created = map { $_ => 1 }
	split /\n/, $server->query("SELECT version FROM pg_available_extension_versions WHERE name = 'gpuhash'");
is(join(' ', grep { !$created{$_} } sort keys %known), '', 'each version that was released can be created');

my @older = grep { $_ ne $default } sort keys %known;
SKIP: { skip "gpuhash has one version, $default: there is no upgrade to test yet", 1 unless @older }
is(difference($fresh, after_update('gpuhash', $_)), '', "$_, updated, has the objects of a new $default") for @older;

# --------------------------------------------------- an extension with versions before it

my $folder = $server->query("SELECT setting || '/extension' FROM pg_config WHERE name = 'SHAREDIR'");
my $name = 'gpuhash_upgraded';
END { unlink glob "$folder/$name*" if defined $folder && defined $name }

SKIP: {
	skip "no permission to put an extension into $folder", 8 unless -w $folder;
	my $script = contents("$top/gpuhash--$default.sql");
	my $function = qr/^CREATE FUNCTION gpuhash_compact\(.*?^COMMENT ON FUNCTION gpuhash_compact\([^;]*;\n/ms;
	my ($added) = $script =~ /($function)/ or die 'gpuhash_compact is not where it was';
	my ($closed) = $script =~ /^(REVOKE ALL ON FUNCTION gpuhash_compact.*\n)/m or die 'its privileges are not';
	my $before = $script =~ s/\Q$added\E//r =~ s/\Q$closed\E//r;
	my $control = contents("$top/gpuhash.control") =~ s/default_version = .*/default_version = '3'/r;
	write_file("$folder/$name.control", $control);
	write_file("$folder/$name--1.sql", $before);
	write_file("$folder/$name--3.sql", $script);
	write_file("$folder/$name--1--2.sql", $added);
	my $new = objects_after($name, "CREATE EXTENSION $name");
	my $try = sub {
		my ($last) = @_;
		write_file("$folder/$name--2--3.sql", $last);
		return difference($new, after_update($name, 1));
	};
	my $old = objects_after($name, "CREATE EXTENSION $name VERSION '1'");
	is(scalar @$old, @$new - 1, 'a version with a function less');
	is($try->($closed), '', 'two scripts that add it, and take its privileges');
	like($try->('SELECT 1;'), qr/\A\+ function gpuhash_compact\(text\).*^- function gpuhash_compact\(text\)/ms,
		'found: the privileges are forgotten');
	like($try->("$closed COMMENT ON FUNCTION gpuhash_compact(text) IS NULL;"),
		qr/comment "".*comment "give back|comment "give back.*comment ""/s, 'found: a comment is');
	like($try->("$closed ALTER FUNCTION gpuhash_compact(text) PARALLEL SAFE;"), qr/PARALLEL SAFE/,
		'found: a property of a function');
	like($try->("$closed COMMENT ON COLUMN gpuhash_devices.status IS 'x';"), qr/^\+ view gpuhash_devices/m,
		'found: a comment on a column');
	like($try->("$closed ALTER EXTENSION $name DROP FUNCTION gpuhash_compact(text);"),
		qr/\A- function gpuhash_compact\(text\): (?:(?!^[-+] ).)*\z/ms, 'found: a function that is no member');
	like($try->("$closed ALTER OPERATOR FAMILY integer_ops USING gpuhash DROP FUNCTION 1 (int8, int4);"),
		qr/^- operator family integer_ops/m, 'found: a function of an operator family');
}

# ------------------------------------- functions that a script of another version has made

# A new library is there before the scripts are: rows that are made by place do not fit then, and whoever asks is told so.
my %arguments = (gpuhash_table_stats => "'rows'", gpuhash_find_all => "'rows', '{1}'::bigint[]", gpuhash_find_all_bytea => "'bytes', '{1}'::bigint[]",
	gpuhash_apply_pairs => qq('pairs', '{i}'::"char"[], '{1}'::bigint[], '{2}'::bigint[]),
	gpuhash_apply_bytea_pairs => qq('wide', '{i}'::"char"[], '{1}'::bigint[], '{\\\\x00000000000000000000000000000001}'::bytea[]));
$server->query('CREATE EXTENSION gpuhash; CREATE SCHEMA older');
# they are the session's
my $tables = "DO 'BEGIN PERFORM gpuhash_create(''rows'', multi => true), gpuhash_create(''pairs''), gpuhash_create(''wide'', 16), gpuhash_create(''bytes'', 16, multi => true); END';";
my @functions = split /\n/, $server->query(<<'SQL');
SELECT p.prosrc, (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, n)),
	(SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proallargtypes, p.proargmodes) WITH ORDINALITY a(t, m, n) WHERE m IN ('o', 't'))
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpuhash') AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'c')
	AND p.proallargtypes IS NOT NULL AND 't' || array_to_string(p.proargmodes, '') ~ '[ot].*[ot]' ORDER BY 1
SQL
cmp_ok(scalar @functions, '>=', 12, 'functions with rows: ' . scalar @functions);
for (@functions)
{
	my ($source, $in, $out) = split /\|/;
	my @columns = split /, /, $out;
	my $set = $server->query("SELECT proretset FROM pg_proc WHERE prosrc = '$source' LIMIT 1") eq 't' ? 'SETOF ' : '';
	my $call = sub {
		my (@declared) = @_;
		my $outs = join ', ', map { "OUT c$_ $declared[$_]" } 0 .. $#declared;
		$server->query("DROP FUNCTION IF EXISTS older.f; CREATE FUNCTION older.f(" . join(', ', grep { $_ ne '' } $in, $outs) . ") RETURNS ${set}record AS '\$libdir/gpuhash', '$source' LANGUAGE C");
		my (undef, undef, $err) = $server->run("$tables SELECT * FROM older.f(" . ($arguments{$source} // '') . ')');
		return $err;
	};
	my $refused = qr/ERROR:  55000: function older\.f\(.*\) is of another version of the extension than the library.*ALTER EXTENSION gpuhash UPDATE/s;
	my $err = $call->(@columns);
	is($err, '', "$source as this version declares it");
	like($call->(@columns, 'text'), $refused, 'with a column more');
	like($call->(@columns[0 .. $#columns - 1]), $refused, 'with one less') if @columns > 2;
	like($call->(map { $_ eq $columns[-1] ? 'date' : $_ } @columns), $refused, 'with another type');
}

$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
done_testing();
