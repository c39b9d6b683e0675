# papers.pl [FOLDER]: what goes with the code, for the part style of check.sh.
# Prints what is wrong, and nothing where nothing is.
#
#	* META.json is what the PGXN Meta Spec 1.0.0 asks for, and names files that are there.
#	* The version is the same in META.json, gpuhash.control, CHANGELOG.md, debian/ and rpm/; each version of
#	  CHANGELOG.md has its date; the oldest supported PostgreSQL is the same everywhere.
#	* All files are formed as .editorconfig says, as far as that can be seen; .clang-format says the same.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/perl";
use GpuHash::Pages ();
use JSON::PP ();

binmode STDOUT, ':encoding(UTF-8)';
my $top = $ARGV[0] // "$FindBin::Bin/..";

sub complain { my ($file, $what) = @_; print "$file: $what\n"; return }

sub contents
{
	my ($file) = @_;
	open my $in, '<:raw', "$top/$file" or do { complain($file, 'it is not there'); return '' };
	local $/;
	return scalar(<$in>) // '';
}

# ------------------------------------------------------------------------ META.json

my $name = qr/^[^\s\/\\.]{2,}$/;
my $version = qr/^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[A-Za-z][0-9A-Za-z-]*)?$/;
my %licenses = map { $_ => 1 } qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2
	gfdl_1_3 gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0
	ssleay sun zlib open_source restricted unrestricted unknown);

sub is_text { my ($value) = @_; return defined $value && !ref $value && $value =~ /\S/ }

# By key, what its value must be; the spec's required keys come first.
my @required = qw(abstract license maintainer meta-spec name provides version);
my %meta = (
	abstract => \&is_text,
	description => \&is_text,
	generated_by => \&is_text,
	release_status => sub { ($_[0] // '') =~ /^(?:stable|testing|unstable)$/ },
	name => sub { is_text($_[0]) && $_[0] =~ $name },
	version => sub { is_text($_[0]) && $_[0] =~ $version },
	maintainer => sub { is_text($_[0]) || is_list($_[0], \&is_text) },
	license => \&is_license,
	'meta-spec' => \&is_meta_spec,
	provides => \&are_provided,
	prereqs => \&is_prereqs,
	tags => sub { is_list($_[0], \&is_tag) },
	no_index => sub { has_keys($_[0], qr/^(?:file|directory)$/) },
	resources => sub { has_keys($_[0], qr/^(?:homepage|bugtracker|repository|x_.+)$/i) },
);

sub is_tag { my ($tag) = @_; return is_text($tag) && $tag !~ m{[/\\[:cntrl:]]} && length $tag <= 255 }

sub is_list
{
	my ($list, $is) = @_;
	return ref $list eq 'ARRAY' && @$list && !grep { !$is->($_) } @$list;
}

sub has_keys
{
	my ($hash, $pattern) = @_;
	return ref $hash eq 'HASH' && !grep { !/$pattern/ } keys %$hash;
}

sub is_meta_spec
{
	my ($spec) = @_;
	return 0 unless ref $spec eq 'HASH' && ($spec->{version} // '') =~ $version;
	return !exists $spec->{url} || is_text($spec->{url});
}

sub is_license
{
	my ($license) = @_;
	return !grep { !is_text($_) } values %$license if ref $license eq 'HASH' && %$license;
	my @all = ref $license eq 'ARRAY' ? @$license : ($license);
	return @all && !grep { !is_text($_) || !$licenses{$_} } @all;
}

sub are_provided
{
	my ($provides) = @_;
	return ref $provides eq 'HASH' && %$provides && !grep { !is_provided($_, $provides->{$_}) } keys %$provides;
}

sub is_provided
{
	my ($extension, $what) = @_;
	return 0 unless $extension =~ $name && ref $what eq 'HASH';
	return 0 unless is_text($what->{file}) && ($what->{version} // '') =~ $version;
	for my $file (grep { defined } @$what{qw(file docfile)})
	{
		complain('META.json', "there is no $file") unless -f "$top/$file";
	}
	return has_keys($what, qr/^(?:file|version|abstract|docfile|x_.+)$/i);
}

# phase => relation => name => version, or several versions with signs before them, or 0
sub is_prereqs
{
	my ($prereqs) = @_;
	return 0 unless ref $prereqs eq 'HASH';
	for my $phase (grep { !/^x_/i } keys %$prereqs)
	{
		return 0 unless $phase =~ /^(?:configure|build|test|runtime|develop)$/ && ref $prereqs->{$phase} eq 'HASH';
		for my $relation (grep { !/^x_/i } keys %{ $prereqs->{$phase} })
		{
			my $of = $prereqs->{$phase}{$relation};
			return 0 unless $relation =~ /^(?:requires|recommends|suggests|conflicts)$/ && ref $of eq 'HASH';
			return 0 if grep { !is_range($_) } values %$of;
		}
	}
	return 1;
}

sub is_range
{
	my ($range) = @_;
	return is_text($range) && !grep { s/^\s*(?:[<>]=?|[!=]=)?\s*//r !~ /$version|^0$/ } split /,/, $range;
}

sub check_meta
{
	my $meta = eval { JSON::PP->new->utf8->decode(contents('META.json')) };
	return complain('META.json', 'it is no JSON: ' . ($@ =~ s/ at \S+ line.*//sr)) unless ref $meta eq 'HASH';
	for my $key (@required) { complain('META.json', "it lacks $key") unless exists $meta->{$key} }
	for my $key (sort keys %$meta)
	{
		next if $key =~ /^x_/i;
		if (!$meta{$key}) { complain('META.json', "the specification has no $key") }
		elsif (!$meta{$key}->($meta->{$key})) { complain('META.json', "its $key is not as specified") }
	}
	return $meta;
}

# ------------------------------------------------------------------------- versions

# The numbers of two versions: -1, 0 or 1.
sub compare
{
	my ($p, $q) = map { [split /\./] } @_;
	for my $i (0 .. 2)
	{
		my $order = ($p->[$i] // 0) <=> ($q->[$i] // 0);
		return $order if $order;
	}
	return 0;
}

# check_same FILE WHAT PATTERN EXPECTED: what PATTERN finds first in FILE
sub check_same
{
	my ($file, $what, $pattern, $expected) = @_;
	my ($found) = contents($file) =~ $pattern;
	return complain($file, "it names no $what") unless defined $found;
	complain($file, "its $what is $found, not $expected") unless $found eq $expected;
	return;
}

sub check_versions
{
	my ($meta) = @_;
	my ($default) = contents('gpuhash.control') =~ /^default_version = '([^']+)'/m
		or return complain('gpuhash.control', 'it names no default_version');
	my $full = $default =~ /^\d+\.\d+$/ ? "$default.0" : $default;
	my $provided = $meta->{provides}{gpuhash} // {};
	for ([version => $meta->{version}, $full], ['version of the extension' => $provided->{version}, $full],
		[file => $provided->{file}, "gpuhash--$default.sql"])
	{
		my ($what, $found, $expected) = @$_;
		complain('META.json', "its $what is $found, not $expected") if defined $found && $found ne $expected;
	}

	my $date = qr/\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])/;
	my @versions;
	for my $heading (contents('CHANGELOG.md') =~ /^## (.*)$/mg)
	{
		my ($number, $when) = $heading =~ /^(\d+(?:\.\d+)+) \((in development since )?$date\)$/;
		if (!defined $number)
		{
			complain('CHANGELOG.md', "\"$heading\" is no version with its date, as in \"0.1 (2026-01-31)\"");
			next;
		}
		complain('CHANGELOG.md', "$number is in development, below a newer version") if $when && @versions;
		complain('CHANGELOG.md', "$number stands below $versions[-1]")
			if @versions && compare($number, $versions[-1]) >= 0;
		push @versions, $number;
	}
	return complain('CHANGELOG.md', 'it has no version') unless @versions;
	complain('CHANGELOG.md', "its newest version is $versions[0], not $default")
		if compare($versions[0], $default) != 0;

	check_same('debian/changelog', 'version', qr/^gpuhash \((\d[^-)]*)-/, $full);
	check_same('rpm/gpuhash.spec', 'version', qr/^Version:\s*(\S+)/m, $full);
	my ($oldest) = contents('test/lib.sh') =~ /^GH_PG_OLDEST=(\d+)$/m;
	check_same('META.json', 'oldest PostgreSQL', qr/"PostgreSQL": "(\d+)\.0\.0"/, $oldest);
	check_same('debian/pgversions', 'oldest PostgreSQL', qr/^(\d+)\+$/m, $oldest);
	return;
}

# -------------------------------------------------------------------- .editorconfig

# The sections of .editorconfig: [ pattern of paths, { property => value } ]
sub editorconfig
{
	my @sections;
	for my $line (split /\n/, contents('.editorconfig'))
	{
		next if $line =~ /^\s*(?:[#;].*)?$/ || (!@sections && $line =~ /^root\s*=/);
		if ($line =~ /^\[(.+)\]$/) { push @sections, [pattern($1), {}] }
		elsif (@sections && $line =~ /^(\w+)\s*=\s*(\S+)$/) { $sections[-1][1]{$1} = $2 }
		else { complain('.editorconfig', "a line is not understood: $line") }
	}
	return @sections;
}

# Of names without folders: * and {a,b}.
sub pattern
{
	my ($glob) = @_;
	my $depth = 0;
	my $text = join '', map {
		$_ eq '*' ? '[^/]*'
			: $_ eq '{' ? (++$depth, '(?:')[1]
			: $_ eq '}' ? (--$depth, ')')[1]
			: $_ eq ',' && $depth ? '|'
			: quotemeta
	} split //, $glob;
	return qr{(?:^|/)$text$};
}

# Text files, by their names; what is built or fetched is none of them.
my $text_file = qr/\.(?:c|h|cu|cuh|sh|pl|pm|py|sql|out|tsv|csv|md|yml|json|control|in|txt|spec)$
	|^\.(?:editorconfig|clang-format|gitignore|dockerignore)$ | ^[^.]+$/x;
my $not_ours = qr{^(?:build(?:-\d+)?|results|output_iso|tmp_check|\.git|\.gpu|debian/(?:\.debhelper|postgresql-.*))$};

sub text_files
{
	return grep { m{([^/]*)$} && $1 =~ $text_file } GpuHash::Pages::files($top, sub { return $_[0] =~ $not_ours });
}

sub check_file
{
	my ($file, $rules) = @_;
	my $text = contents($file);
	return if $text eq '' || $text =~ /\A\x7fELF/;
	my $is = sub { my ($property, $value) = @_; return ($rules->{$property} // '') eq $value };
	my $unlike = sub {
		my ($property, $value, $pattern, $what) = @_;
		return unless $is->($property, $value) && $text =~ $pattern;
		complain("$file:" . (1 + (substr($text, 0, $-[0]) =~ tr/\n//)), $what);
	};
	complain($file, 'it is not UTF-8') if $is->(charset => 'utf-8') && !utf8::decode(my $copy = $text);
	complain($file, 'its last line has no end') if $is->(insert_final_newline => 'true') && $text !~ /\n\z/;
	$unlike->(end_of_line => 'lf', qr/\r/, 'it has a carriage return');
	$unlike->(trim_trailing_whitespace => 'true', qr/[ \t]+$/m, 'a line ends with blanks');
	# a space before a tab, or as many spaces as a tab has, and not in a comment's
	$unlike->(indent_style => 'tab', qr/^(?:\t* +\t| {4,}(?! *\*))/m, 'a line begins with spaces, not with a tab');
	$unlike->(indent_style => 'space', qr/^ *\t/m, 'a line begins with a tab, not with spaces');
	return;
}

sub check_files
{
	my @sections = editorconfig() or return complain('.editorconfig', 'it has no rules');
	for my $file (text_files())
	{
		my %rules = map { $file =~ $_->[0] ? %{ $_->[1] } : () } @sections;
		check_file($file, \%rules);
	}
	my %rules = map { 'x.c' =~ $_->[0] ? %{ $_->[1] } : () } @sections;
	check_same('.clang-format', 'ColumnLimit', qr/^ColumnLimit: (\S+)$/m, $rules{max_line_length});
	check_same('.clang-format', 'TabWidth', qr/^TabWidth: (\S+)$/m, $rules{tab_width});
	check_same('.clang-format', 'IndentWidth', qr/^IndentWidth: (\S+)$/m, $rules{indent_size});
	check_same('.clang-format', 'UseTab', qr/^UseTab: (\S+)$/m, $rules{indent_style} eq 'tab' ? 'Always' : 'Never');
	return;
}

check_versions(check_meta() || {});
check_files();
