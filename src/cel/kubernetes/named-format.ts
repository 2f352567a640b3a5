/** Kubernetes' named formats: `format.dns1123Label().validate(text)` returns the violations, or none. */
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { findUrlError } from '#cel/kubernetes/parse-url.ts';
import type { Library } from '#cel/library.ts';
import { STRING, listOf, opaque, optionalOf } from '#cel/type.ts';
import { CelOpaque, CelOptional } from '#cel/value.ts';
import { labelValueErrors, nameErrors, namePrefixErrors, qualifiedNameErrors } from '#kube/names.ts';

const NAMED_FORMAT = opaque('kubernetes.NamedFormat');

export class CelNamedFormat extends CelOpaque {
  override readonly type = NAMED_FORMAT;
  readonly name: string;
  /** The length of an equivalent pattern, for which Kubernetes charges. */
  readonly patternLength: number;
  readonly validate: (text: string) => readonly string[];

  constructor(name: string, patternLength: number, validate: (text: string) => readonly string[]) {
    super();
    this.name = name;
    this.patternLength = patternLength;
    this.validate = validate;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelNamedFormat && other.name === this.name;
  }
}

const violationUnless = (isValid: (text: string) => boolean, violation: string) => (text: string) =>
  isValid(text) ? [] : [violation];

const formats: ReadonlyMap<string, CelNamedFormat> = new Map(
  [
    new CelNamedFormat('dns1123Label', 30, (text) => nameErrors('label', text)),
    new CelNamedFormat('dns1123Subdomain', 60, (text) => nameErrors('subdomain', text)),
    new CelNamedFormat('dns1035Label', 30, (text) => nameErrors('label1035', text)),
    new CelNamedFormat('qualifiedName', 60, qualifiedNameErrors),
    new CelNamedFormat('dns1123LabelPrefix', 30, (text) => namePrefixErrors('label', text)),
    new CelNamedFormat('dns1123SubdomainPrefix', 60, (text) => namePrefixErrors('subdomain', text)),
    new CelNamedFormat('dns1035LabelPrefix', 30, (text) => namePrefixErrors('label1035', text)),
    new CelNamedFormat('labelValue', 40, labelValueErrors),
    new CelNamedFormat('uri', 1500, (text) => [findUrlError(text)].filter((violation) => violation !== undefined)),
    new CelNamedFormat('uuid', 75, violationUnless(isUuid, 'does not match the UUID format')),
    new CelNamedFormat('byte', 90, violationUnless(isBase64, 'invalid base64')),
    new CelNamedFormat('date', 80, violationUnless(isDate, 'invalid date')),
    new CelNamedFormat('datetime', 80, violationUnless(isDateTime, 'invalid datetime')),
  ].map((format) => [format.name, format]),
);

export const namedFormatLibrary: Library = {
  functions: {
    'format.named': [
      func<[string]>('format-named', [STRING], optionalOf(NAMED_FORMAT), (_budget, name) => {
        return new CelOptional(formats.get(name));
      }),
    ],
    validate: [
      method<[CelNamedFormat, string]>(
        'format-validate',
        [NAMED_FORMAT, STRING],
        optionalOf(listOf(STRING)),
        (budget, format, text) => {
          budget.charge(Math.ceil((text.length + 1) / 10) * Math.ceil(format.patternLength / 4));
          const violations = format.validate(text);
          return new CelOptional(violations.length === 0 ? undefined : new ArrayList([...violations]));
        },
      ),
    ],
    ...Object.fromEntries(
      [...formats.values()].map((format) => {
        const name = `format.${format.name}`;
        return [name, [func<[]>(name, [], NAMED_FORMAT, () => format)]];
      }),
    ),
  },
};

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text);
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function isDate(text: string): boolean {
  const [, year, month, day] = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(text) ?? [];
  if (year === undefined) return false;
  const days = daysIn(Number(year), Number(month));
  return Number(day) >= 1 && Number(day) <= days;
}

/** Returns 0 if the month does not exist. */
function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return [0, 31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month] ?? 0;
}

/** Follows strfmt: ignores case and everything after a second `t`. */
function isDateTime(text: string): boolean {
  const [date = '', time] = text.toLowerCase().split('t', 2);
  if (time === undefined || !isDate(date)) return false;
  const pattern = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$/;
  const [, hours, minutes, seconds] = pattern.exec(time) ?? [];
  return hours !== undefined && Number(hours) <= 23 && Number(minutes) <= 59 && Number(seconds) <= 59;
}
