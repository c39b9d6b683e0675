# GpuHash::RandomExpression: random expressions and conditions over columns of a few types.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	%GpuHash::RandomExpression::column = (i4 => ['a.x', 'a.y'], ...)	the columns, by type:
#		bool i2 i4 i8 f4 f8 numeric text char date timestamp time oid uuid name bytea mac, one each at least; and timestamptz, if any
#	expression($type, $depth)	an expression of a type
#	condition($depth)		one of type bool
#
# They raise errors for some values: numbers overflow, are divided by zero or have no root.
package GpuHash::RandomExpression;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(one_of leaf expression condition);
our %column;
our %constant = (bool => [qw(true false null::bool)], i2 => ['3::int2', '(-7)::int2', '32767::int2'], i4 => [0, 1, -5, 1000, 2147483647], i8 => ['2::int8', '4294967296', '9223372036854775807'],
	f4 => ['1.5::float4', "'NaN'::float4"], f8 => ['0.1::float8', "'-0'::float8", "'inf'::float8", '1e300::float8'], numeric => [1.5, -0.001, 12345678901234567890],
	text => ["'t1'", "''", "'tt5'"], char => ["'t3'::char(6)"], date => ["date '2000-01-01'", "date 'infinity'"], timestamp => ["timestamp '2000-01-01 12:00'"], timestamptz => ["timestamptz '2000-01-01 12:00 UTC'", "timestamptz '-infinity'"], time => ["time '12:00'"], oid => ['5::oid'],
	uuid => ["md5('3')::uuid", "'ffffffff-0000-0000-0000-0000000000ff'::uuid"], name => ["'name 3'::name", "''::name", "repeat('long', 16)::name"], bytea => [q{'\\x'::bytea}, q{'\\xeccbc87e4b5ce2fe28308fd9f2a7baf3'::bytea}],
	mac => ["'08:00:2b:01:02:ff'::macaddr", "'ff:00:2b:01:02:00'::macaddr"]);
our %cast = (i2 => 'int2', i4 => 'int4', i8 => 'int8', f4 => 'float4', f8 => 'float8', numeric => 'numeric');
our @numbers = qw(i2 i4 i8 f4 f8 numeric);
our @integers = qw(i2 i4 i8);
our @bytes = qw(uuid name bytea mac);

sub one_of { return $_[int(rand(@_))] }

# The left side of everything is a column or made of one, so that nothing is evaluated, and
# fails, while the query is planned.
sub leaf { my ($type) = @_; return one_of(@{ $column{$type} }) }
sub right { my ($type, $depth) = @_; return rand() < 0.4 ? one_of(@{ $constant{$type} }) : expression($type, $depth) }

sub comparison
{
	my ($depth) = @_;
	my $type = one_of(@numbers, sort keys %column);
	my $other = grep({ $_ eq $type } @integers) ? one_of(@integers) : $type;
	my $op = one_of('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM');
	# dates are compared with timestamps, too
	$other = 'timestamp' if $type eq 'date' && rand() < 0.2;
	$other = one_of(qw(date timestamp timestamptz)) if $type =~ /^(?:date|timestamp|timestamptz)$/ && has_zones() && rand() < 0.2;
	return '(' . expression($type, $depth) . " $op " . right($other, $depth) . ')';
}

our @fields = qw(year quarter month day dow isodow doy week isoyear epoch);
our @times = qw(hour minute second);
our @intervals = map { "interval '$_'" } '1 month', '-13 months', '1 year 2 months 3 days', '29 days', '36 hours', '-0.25 seconds', '1 month -31 days 00:00:01';
our @patterns = ("'t%'", "'%1%'", "'_t%'", "'%t_'", "'t1'", "'%'", "''", "'%\\_%'", "'%é%'", 'null');
our @zones = map { "'$_'" } qw(UTC Europe/Berlin America/New_York Asia/Kolkata Australia/Lord_Howe Africa/Casablanca America/Sao_Paulo EST5EDT), 'CET', '<+0530>-05:30';
our @units = qw(year quarter month week day hour minute second);
sub has_zones { return exists $column{timestamptz} }
sub day { my ($depth) = @_; my $type = one_of('date', 'timestamp'); return expression($type, $depth) }

sub condition
{
	my ($depth) = @_;
	return leaf('bool') if $depth <= 0;
	my $kind = rand();
	return '(' . expression('timestamp', $depth - 1) . ' - ' . right('timestamp', $depth - 1) . one_of(' < ', ' >= ', ' = ', ' <> ') . one_of(@intervals) . ')' if $kind < 0.03;
	return comparison($depth - 1) if $kind < 0.5;
	return '(' . condition($depth - 1) . one_of(' AND ', ' OR ') . condition($depth - 1) . ')' if $kind < 0.7;
	return '(NOT ' . condition($depth - 1) . ')' if $kind < 0.76;
	return '(' . condition($depth - 1) . one_of(' IS TRUE', ' IS NOT TRUE', ' IS FALSE', ' IS NOT FALSE', ' IS UNKNOWN', ' IS NOT UNKNOWN') . ')' if $kind < 0.84;
	return '(' . expression(one_of(sort keys %column), $depth - 1) . one_of(' IS NULL', ' IS NOT NULL') . ')' if $kind < 0.88;
	return 'starts_with(' . expression('text', $depth - 1) . ', ' . right('text', $depth - 1) . ')' if $kind < 0.89;
	return '(' . expression(one_of('text', 'char'), $depth - 1) . one_of(' LIKE ', ' NOT LIKE ', ' ILIKE ') . one_of(@patterns) . ')' if $kind < 0.94;
	my $type = one_of(@integers, 'text', 'char', 'date', 'oid', @bytes);
	return '(' . expression($type, $depth - 1) . one_of(' IN (', ' NOT IN (') . join(', ', map { one_of(@{ $constant{$type} }, 'null') } 1 .. 1 + int(rand(4))) . ', ' . $constant{$type}[0] . '))';
}

# A part of a date, a time, or of what lies between two timestamps.
sub part
{
	my ($type, $depth) = @_;
	return part_of($type, one_of(@fields, @times), expression('timestamptz', $depth)) if has_zones() && rand() < 0.3;
	my ($field, $of) = rand() < 0.6 ? (one_of(@fields), day($depth)) : rand() < 0.6 ? (one_of(@times), expression(one_of(qw(timestamp time)), $depth)) :
		(one_of('day', $type eq 'numeric' ? 'epoch' : ()), '(' . expression('timestamp', $depth) . ' - ' . right('timestamp', $depth) . ')');
	return part_of($type, $field, $of);
}

sub part_of { my ($type, $field, $of) = @_; return $type eq 'numeric' ? "extract($field FROM $of)" : "date_part('$field', $of)" }

# A moment, and what it is to clocks: a date, a time, a timestamp.
sub moment
{
	my ($depth) = @_;
	my $kind = rand();
	return "date_trunc('" . one_of(@units) . "', " . expression('timestamptz', $depth) . (rand() < 0.4 ? ', ' . one_of(@zones) : '') . ')' if $kind < 0.5;
	return '(' . expression('timestamp', $depth) . ' AT TIME ZONE ' . one_of(@zones) . ')' if $kind < 0.7;
	return '(' . expression('timestamptz', $depth) . one_of(' + ', ' - ') . one_of(@intervals) . ')' if $kind < 0.8;
	return '(' . expression(one_of(qw(date timestamp)), $depth) . ')::timestamptz';
}

sub of_moment
{
	my ($type, $depth) = @_;
	my $of = expression('timestamptz', $depth);
	return $type eq 'timestamp' && rand() < 0.5 ? "($of AT TIME ZONE " . one_of(@zones) . ')' : "($of)::$type";
}

sub text_part
{
	my ($depth) = @_;
	my $of = expression(one_of('text', 'text', 'char'), $depth);
	return one_of('left', 'right') . "($of, " . (rand() < 0.5 ? int(rand(9)) - 4 : expression('i4', $depth)) . ')' if rand() < 0.5;
	return one_of('greatest', 'least') . "($of, " . right('text', $depth) . ')' if rand() < 0.2;
	return one_of('btrim', 'ltrim', 'rtrim') . "($of" . one_of('', map { ", '$_'" } 't', 't1', 'a0123456789_', '') . ')';
}

sub text_number
{
	my ($depth) = @_;
	return one_of('length', 'length', 'octet_length') . '(' . expression('text', $depth) . ')' if rand() < 0.5;
	return 'length(' . expression('char', $depth) . ')' if rand() < 0.3;
	return 'strpos(' . expression('text', $depth) . ', ' . right('text', $depth) . ')';
}

# What rounds a number, or tells its sign.
sub whole
{
	my ($type, $depth) = @_;
	my $of = expression($type, $depth);
	return one_of('round(', 'trunc(') . "$of, " . (int(rand(8)) - 2) . ')' if $type eq 'numeric' && rand() < 0.4;
	return "($of)::numeric(" . one_of('12, 2', '20, 6', '5, 1', '38, 9') . ')' if $type eq 'numeric' && rand() < 0.4;
	return one_of('round', 'trunc', 'ceil', 'floor', 'sign') . "($of)";
}

sub number
{
	my ($type, $depth) = @_;
	my $kind = rand();
	return one_of('greatest(', 'least(') . expression($type, $depth) . ', ' . expression($type, $depth) . ')' if $kind > 0.95 && $type ne 'numeric';
	return part($type, $depth) if $kind > 0.9 && $type =~ /^(?:f8|numeric)$/;
	return whole($type, $depth) if $kind > 0.84 && $type =~ /^(?:f8|numeric)$/;
	return '(- ' . expression($type, $depth) . ')' if $kind < 0.1;
	return 'abs(' . expression($type, $depth) . ')' if $kind < 0.2;
	return '(' . expression($type, $depth) . ')::' . $cast{$type} if $kind < 0.25;
	if ($kind < 0.4)
	{
		my $from = $type eq 'numeric' ? one_of(@integers) : one_of(@numbers);
		return '(' . expression($from, $depth) . ")::$cast{$type}" unless $from eq 'f4' && $type eq 'numeric';
	}
	return text_number($depth) if $type eq 'i4' && $kind > 0.9;
	if (grep { $_ eq $type } @integers)
	{
		return '(' . expression($type, $depth) . one_of(' & ', ' | ', ' # ') . right($type, $depth) . ')' if $kind < 0.5;
		return '(' . expression($type, $depth) . one_of(' << ', ' >> ') . int(rand(16)) . ')' if $kind < 0.55;
	}
	return 'sqrt(' . expression('f8', $depth) . ')' if $type eq 'f8' && $kind < 0.45;
	return '(' . expression($type, $depth) . ' ' . one_of('+', '-', '*', '/', $type =~ /^f/ ? () : '%') . ' ' . right($type, $depth) . ')';
}

sub expression
{
	my ($type, $depth) = @_;
	return leaf($type) if $depth <= 0 || rand() < 0.2;
	return condition($depth) if $type eq 'bool';
	my $kind = rand();
	return 'CASE WHEN ' . condition($depth - 1) . ' THEN ' . right($type, $depth - 1) . ' ELSE ' . expression($type, $depth - 1) . ' END' if $kind < 0.08;
	return 'coalesce(' . expression($type, $depth - 1) . ', ' . right($type, $depth - 1) . ')' if $kind < 0.14;
	return 'nullif(' . expression($type, $depth - 1) . ', ' . right($type, $depth - 1) . ')' if $kind < 0.18;
	return number($type, $depth - 1) if grep { $_ eq $type } @numbers;
	return moment($depth - 1) if $type eq 'timestamptz';
	return of_moment($type, $depth - 1) if $type =~ /^(?:date|time|timestamp)$/ && has_zones() && rand() < 0.25;
	return '(' . expression('timestamp', $depth - 1) . ')::date' if $type eq 'date' && $kind < 0.4;
	return '(' . expression('date', $depth - 1) . one_of(' + ', ' - ') . right('i4', $depth - 1) . ')' if $type eq 'date';
	return '(' . expression(one_of('timestamp', 'date'), $depth - 1) . one_of(' + ', ' - ') . one_of(@intervals) . ')' if $type eq 'timestamp' && $kind < 0.6;
	return expression('timestamp', $depth - 1) . '::time' if $type eq 'time' && $kind < 0.5;
	return "date_trunc('" . one_of(@units) . "', " . expression('timestamp', $depth - 1) . ')' if $type eq 'timestamp';
	return text_part($depth - 1) if $type eq 'text' && $kind < 0.6;
	return 'substring(' . expression(one_of('text', 'char'), $depth - 1) . ', ' . int(rand(5) - 1) . one_of('', ', ' . int(rand(4))) . ')' if $type eq 'text';
	return one_of('greatest(', 'least(') . expression($type, $depth - 1) . ', ' . right($type, $depth - 1) . ')' if $kind < 0.3 && grep { $_ eq $type } @bytes;
	return leaf($type);
}

1;
