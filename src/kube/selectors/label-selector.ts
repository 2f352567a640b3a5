/**
 * Label selectors: the text form of `?labelSelector=` and the object form of metav1.LabelSelector, converted to a list
 * of requirements that must all be met. Errors are 400s in Kubernetes' words.
 */
import { badRequest } from '#kube/api-error.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { type SelectorToken, type SelectorTokenKind, tokenize } from '#kube/selectors/label-selector-lexer.ts';
import { labelKeyErrors, labelValueErrors } from '#kube/names.ts';

export type LabelOperator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!exists' | '>' | '<';

export type LabelRequirement = { key: string; operator: LabelOperator; values: readonly string[] };

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Record<string, string> | undefined,
): boolean {
  if (requirements.length > MAX_UNINDEXED) return matchesIndex(indexOf(requirements), labels);
  for (const requirement of requirements) if (!isMet(requirement, labels)) return false;
  return true;
}

/** Longer selectors are indexed, so that a match takes time in proportion to the labels, not to the selector. */
const MAX_UNINDEXED = 16;

/** All requirements for one key. */
interface KeyRule {
  /** True if an object without the key meets them. */
  readonly allowsAbsence: boolean;
  isMetBy(value: string): boolean;
}

interface RequirementIndex {
  readonly byKey: ReadonlyMap<string, KeyRule>;
  /** The number of keys that an object must have. */
  readonly required: number;
}

const indexes = new WeakMap<readonly LabelRequirement[], RequirementIndex>();

function indexOf(requirements: readonly LabelRequirement[]): RequirementIndex {
  let index = indexes.get(requirements);
  if (index === undefined) {
    const byKey = new Map<string, KeyRule>();
    for (const [key, ofKey] of Map.groupBy(requirements, (requirement) => requirement.key)) {
      byKey.set(key, keyRule(ofKey));
    }
    const required = [...byKey.values()].filter(({ allowsAbsence }) => !allowsAbsence).length;
    indexes.set(requirements, (index = { byKey, required }));
  }
  return index;
}

function keyRule(requirements: readonly LabelRequirement[]): KeyRule {
  const denied = new Set<string>();
  let allowed: Set<string> | undefined;
  /** The strictest requirement of each other operator: the largest `>`, the smallest `<`. */
  const strictest = new Map<LabelOperator, LabelRequirement>();
  for (const requirement of requirements) {
    const { operator, values } = requirement;
    if (operator === '!=' || operator === 'notin') for (const value of values) denied.add(value);
    else if (operator === '=' || operator === 'in') {
      allowed = allowed === undefined ? new Set(values) : allowed.intersection(new Set(values));
    } else {
      const known = strictest.get(operator);
      if (known === undefined || isStricter(requirement, known)) strictest.set(operator, requirement);
    }
  }
  const others = [...strictest.values()];
  return {
    allowsAbsence: requirements.every((requirement) => isMet(requirement, undefined)),
    isMetBy: (value) =>
      !denied.has(value) && allowed?.has(value) !== false && others.every((one) => isMetByValue(one, value)),
  };
}

/** Compares two requirements of the same operator. A bound that is not a number matches nothing. */
function isStricter({ operator, values }: LabelRequirement, than: LabelRequirement): boolean {
  if (operator !== '>' && operator !== '<') return false;
  const [bound, known] = [parseInt64(values[0]), parseInt64(than.values[0])];
  if (bound === undefined || known === undefined) return known !== undefined;
  return operator === '>' ? bound > known : bound < known;
}

function matchesIndex({ byKey, required }: RequirementIndex, labels: Readonly<Record<string, string>> = {}): boolean {
  let missing = required;
  for (const key of Object.keys(labels)) {
    const rule = byKey.get(key);
    if (rule === undefined) continue;
    if (!rule.isMetBy(labels[key]!)) return false;
    if (!rule.allowsAbsence) missing--;
  }
  return missing === 0;
}

function isMet(requirement: LabelRequirement, labels: Readonly<Record<string, string>> | undefined): boolean {
  const { key } = requirement;
  return isMetByValue(requirement, labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined);
}

function isMetByValue({ operator, values }: LabelRequirement, value: string | undefined): boolean {
  switch (operator) {
    case '=':
    case 'in':
      return value !== undefined && values.includes(value);
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value);
    case 'exists':
      return value !== undefined;
    case '!exists':
      return value === undefined;
    case '>':
    case '<': {
      const left = parseInt64(value);
      const right = parseInt64(values[0]);
      if (left === undefined || right === undefined) return false;
      return operator === '>' ? left > right : left < right;
    }
  }
}

const INT64_MAX = 2n ** 63n - 1n;

function parseInt64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,63}$/.test(text)) return undefined;
  const value = BigInt(text.replace('+', ''));
  return value > INT64_MAX || value < -INT64_MAX - 1n ? undefined : value;
}

/** Formats a selector. Parsing the text returns the same requirements. */
export function formatLabelSelector(requirements: readonly LabelRequirement[]): string {
  return requirements.map(formatRequirement).join(',');
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!exists':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.toSorted().join(',')})`;
    default:
      return `${key}${operator}${values[0] ?? ''}`;
  }
}

/**
 * Converts the object form. An empty selector matches everything; callers handle an absent one, which matches nothing.
 */
export function labelRequirementsOf(selector: LabelSelector): readonly LabelRequirement[] {
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push(checkRequirement({ key, operator: '=', values: [value] }));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const known = EXPRESSION_OPERATORS.get(operator);
    if (known === undefined) throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`);
    requirements.push(checkRequirement({ key, operator: known, values: [...(values ?? [])] }));
  }
  return requirements.sort(byKey);
}

const EXPRESSION_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!exists'],
]);

const byKey = (a: LabelRequirement, b: LabelRequirement) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

/** Returns the requirements sorted by key, with sorted sets without duplicates. An empty text matches everything. */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  if (text === '') return [];
  return new Parser(tokenize(text)).parse().sort(byKey);
}

const BINARY: Partial<Record<SelectorTokenKind, LabelOperator>> = {
  in: 'in',
  notin: 'notin',
  '=': '=',
  '==': '=',
  '!=': '!=',
  '>': '>',
  '<': '<',
};

class Parser {
  readonly #tokens: readonly SelectorToken[];
  #at = 0;

  constructor(tokens: readonly SelectorToken[]) {
    this.#tokens = tokens;
  }

  /** Parses requirements separated by commas. */
  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      if (first.kind === 'end') return requirements;
      if (!startsRequirement(first)) {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#parseRequirement());
      const separator = this.#take();
      if (separator.kind === 'end') return requirements;
      if (separator.kind !== ',') throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`);
      const next = this.#peek();
      if (!startsRequirement(next)) throw badRequest(`found '${next.text}', expected: identifier after ','`);
    }
  }

  #parseRequirement(): LabelRequirement {
    const negated = this.#peek().kind === '!';
    if (negated) this.#take();
    const key = this.#take();
    if (!isWord(key)) throw parseError(`found '${key.text}', expected: identifier`);
    const keyErrors = labelKeyErrors(key.text);
    if (keyErrors.length > 0) throw parseError(errorText(invalidValue('<nil>', key.text, keyErrors.join('; '))));
    if (negated) return { key: key.text, operator: '!exists', values: [] };

    const next = this.#peek();
    if (next.kind === 'end' || next.kind === ',') return { key: key.text, operator: 'exists', values: [] };
    const operator = BINARY[this.#take().kind];
    if (operator === undefined) {
      throw parseError(`found '${next.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const values = operator === 'in' || operator === 'notin' ? this.#parseValues() : [this.#parseValue()];
    return checkRequirement({ key: key.text, operator, values }, 'unable to parse requirement: ');
  }

  #parseValue(): string {
    const next = this.#peek();
    if (next.kind === 'end' || next.kind === ',') return '';
    const token = this.#take();
    if (!isWord(token)) throw parseError(`found '${token.text}', expected: identifier`);
    return token.text;
  }

  /** Parses `(a,b)`. Nothing between two delimiters is the empty value. */
  #parseValues(): string[] {
    const open = this.#take();
    if (open.kind !== '(') throw parseError(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    if (!isWord(first) && first.kind !== ',' && first.kind !== ')') {
      throw parseError(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    let expectsValue = true;
    for (;;) {
      const token = this.#take();
      if (isWord(token) && expectsValue) {
        values.add(token.text);
        expectsValue = false;
        continue;
      }
      if (token.kind !== ',' && token.kind !== ')') {
        const expected = expectsValue ? "',', or identifier" : "',' or ')'";
        throw parseError(`found '${token.text}', expected: ${expected}`);
      }
      if (expectsValue) values.add('');
      if (token.kind === ')') return [...values].sort();
      expectsValue = true;
    }
  }

  #peek(): SelectorToken {
    return this.#tokens[this.#at] as SelectorToken;
  }

  #take(): SelectorToken {
    return this.#tokens[this.#at++] as SelectorToken;
  }
}

/** `in` and `notin` are ordinary words except in the position of an operator. */
const isWord = ({ kind }: SelectorToken) => kind === 'identifier' || kind === 'in' || kind === 'notin';
const startsRequirement = (token: SelectorToken) => token.kind === '!' || isWord(token);
const parseError = (problem: string) => badRequest(`unable to parse requirement: ${problem}`);
const errorText = ({ field, message }: FieldError) => `${field}: ${message}`;

function checkRequirement(requirement: LabelRequirement, context = ''): LabelRequirement {
  const errors = requirementErrors(requirement).map(errorText);
  if (errors.length === 0) return requirement;
  throw badRequest(context + (errors.length === 1 ? errors[0] : `[${[...new Set(errors)].join(', ')}]`));
}

/** Validates a requirement, also for selectors inside objects. The fields are relative to the requirement. */
function requirementErrors({ key, operator, values }: LabelRequirement): FieldError[] {
  const errors: FieldError[] = [];
  const keyErrors = labelKeyErrors(key);
  if (keyErrors.length > 0) errors.push(invalidValue('key', key, keyErrors.join('; ')));
  if ((operator === 'in' || operator === 'notin') && values.length === 0) {
    errors.push(invalidValue('values', values, "for 'in', 'notin' operators, values set can't be empty"));
  }
  if ((operator === 'exists' || operator === '!exists') && values.length > 0) {
    errors.push(invalidValue('values', values, 'values set must be empty for exists and does not exist'));
  }
  if (operator === '>' || operator === '<') {
    values.forEach((value, i) => {
      if (parseInt64(value) !== undefined) return;
      errors.push(invalidValue(`values[${i}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer"));
    });
  }
  values.forEach((value, i) => {
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length > 0) errors.push(invalidValue(`values[${i}][${key}]`, value, valueErrors.join('; ')));
  });
  return errors;
}
