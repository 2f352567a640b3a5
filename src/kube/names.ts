/**
 * Rules for names, label keys and values, and annotation keys, with exactly Kubernetes' messages. Each function returns
 * all violations, or an empty list; callers turn them into field errors. All patterns match in linear time: every part
 * is anchored, and its delimiters are not part of another part.
 */

export type NameRule = 'subdomain' | 'label' | 'label1035' | 'path-segment';

const SUBDOMAIN_MAX = 253;
const LABEL_MAX = 63;

const LABEL_FORMAT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN_FORMAT = `${LABEL_FORMAT}(\\.${LABEL_FORMAT})*`;
const LABEL_1035_FORMAT = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED_FORMAT = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE_FORMAT = `(${QUALIFIED_FORMAT})?`;

const LABEL = new RegExp(`^${LABEL_FORMAT}$`);
const SUBDOMAIN = new RegExp(`^${SUBDOMAIN_FORMAT}$`);
const LABEL_1035 = new RegExp(`^${LABEL_1035_FORMAT}$`);
const QUALIFIED = new RegExp(`^${QUALIFIED_FORMAT}$`);

const SUBDOMAIN_TEXT = patternText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN_FORMAT,
  ['example.com'],
);
const LABEL_TEXT = patternText(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL_FORMAT,
  ['my-name', '123-abc'],
);
const LABEL_1035_TEXT = patternText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  LABEL_1035_FORMAT,
  ['my-name', 'abc-123'],
);
const QUALIFIED_TEXT = patternText(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  QUALIFIED_FORMAT,
  ['MyName', 'my.name', '123-abc'],
);
const LABEL_VALUE_TEXT = patternText(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  LABEL_VALUE_FORMAT,
  ['MyValue', 'my_value', '12345'],
);

/** Formats a message. Kubernetes joins its examples with `,  or `, two spaces included. */
function patternText(text: string, format: string, examples: readonly string[]): string {
  const list = examples.map((example) => `'${example}', `).join(' or ');
  return `${text} (e.g. ${list}regex used for validation is '${format}')`;
}

const tooLongText = (max: number) => `must be no more than ${max} characters`;
const NON_EMPTY = 'must be non-empty';

const utf8 = new TextEncoder();

/**
 * Compares bytes, as Kubernetes does. Encodes only texts that can be too long, as a character has at most three bytes.
 */
function isLongerThan(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  return text.length * 3 > maxBytes && utf8.encode(text).length > maxBytes;
}

export function nameErrors(rule: NameRule, name: string): string[] {
  switch (rule) {
    case 'subdomain':
      return subdomainErrors(name);
    case 'label':
      return labelErrors(name);
    case 'label1035':
      return patternErrors(name, LABEL_1035, LABEL_MAX, LABEL_1035_TEXT);
    case 'path-segment':
      if (name === '.' || name === '..') return [`may not be '${name}'`];
      return pathPrefixErrors(name);
  }
}

/** Checks `metadata.generateName`. It may end with a dash, because a suffix follows. */
export function namePrefixErrors(rule: NameRule, prefix: string): string[] {
  if (rule === 'path-segment') return pathPrefixErrors(prefix);
  const trimmed = prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix;
  return nameErrors(rule, trimmed);
}

function patternErrors(text: string, pattern: RegExp, maxBytes: number, patternError: string): string[] {
  const errors: string[] = [];
  if (isLongerThan(text, maxBytes)) errors.push(tooLongText(maxBytes));
  if (!pattern.test(text)) errors.push(patternError);
  return errors;
}

function subdomainErrors(name: string): string[] {
  return patternErrors(name, SUBDOMAIN, SUBDOMAIN_MAX, SUBDOMAIN_TEXT);
}

function labelErrors(name: string): string[] {
  const errors = patternErrors(name, LABEL, LABEL_MAX, LABEL_TEXT);
  if (errors.at(-1) === LABEL_TEXT && SUBDOMAIN.test(name)) return [...errors.slice(0, -1), 'must not contain dots'];
  return errors;
}

function pathPrefixErrors(name: string): string[] {
  return ['/', '%'].filter((part) => name.includes(part)).map((part) => `may not contain '${part}'`);
}

/** Checks `name` or `prefix/name`, where the prefix is a DNS subdomain. */
export function qualifiedNameErrors(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash >= 0 && text.indexOf('/', slash + 1) >= 0) {
    return [
      `a qualified name ${QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  if (slash === 0) errors.push(`prefix part ${NON_EMPTY}`);
  if (slash > 0) errors.push(...subdomainErrors(text.slice(0, slash)).map((error) => `prefix part ${error}`));

  const name = slash < 0 ? text : text.slice(slash + 1);
  if (name === '') errors.push(`name part ${NON_EMPTY}`);
  else if (isLongerThan(name, LABEL_MAX)) errors.push(`name part ${tooLongText(LABEL_MAX)}`);
  if (!QUALIFIED.test(name)) errors.push(`name part ${QUALIFIED_TEXT}`);
  return errors;
}

export function labelKeyErrors(key: string): string[] {
  return qualifiedNameErrors(key);
}

/** Annotation keys may be written in any case. */
export function annotationKeyErrors(key: string): string[] {
  return qualifiedNameErrors(key.toLowerCase());
}

export function labelValueErrors(value: string): string[] {
  if (value === '') return [];
  return patternErrors(value, QUALIFIED, LABEL_MAX, LABEL_VALUE_TEXT);
}
