/**
 * Label selectors: the text form of `?labelSelector=` and the object form of metav1.LabelSelector, compiled to a list
 * of requirements that must all hold. Errors are 400s in Kubernetes' words.
 */
import { badRequest } from '#kube/api-error.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { type Token, type TokenKind, tokenize } from '#kube/label-selector-lexer.ts';
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
  for (const requirement of requirements) if (!holds(requirement, labels)) return false;
  return true;
}

function holds({ key, operator, values }: LabelRequirement, labels: Record<string, string> | undefined): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
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
      const left = int64(value);
      const right = int64(values[0]);
      if (left === undefined || right === undefined) return false;
      return operator === '>' ? left > right : left < right;
    }
  }
}

const INT64_MAX = 2n ** 63n - 1n;

function int64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,63}$/.test(text)) return undefined;
  const value = BigInt(text.replace('+', ''));
  return value > INT64_MAX || value < -INT64_MAX - 1n ? undefined : value;
}

/** The text of a selector; parsing it gives the same requirements again. */
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

/** An empty selector selects everything. An absent one selects nothing, which is for the caller to know. */
export function labelRequirementsOf(selector: LabelSelector): readonly LabelRequirement[] {
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push(checked({ key, operator: '=', values: [value] }));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const known = EXPRESSION_OPERATORS.get(operator);
    if (known === undefined) throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`);
    requirements.push(checked({ key, operator: known, values: [...(values ?? [])] }));
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

/** Sorted by key, with the values of sets sorted and free of duplicates. Empty text selects everything. */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  if (text === '') return [];
  return new Parser(tokenize(text)).parse().sort(byKey);
}

const BINARY: Partial<Record<TokenKind, LabelOperator>> = {
  in: 'in',
  notin: 'notin',
  '=': '=',
  '==': '=',
  '!=': '!=',
  '>': '>',
  '<': '<',
};

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** Selector: requirements with commas between them. */
  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      if (first.kind === 'end') return requirements;
      if (!startsRequirement(first)) {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#requirement());
      const separator = this.#take();
      if (separator.kind === 'end') return requirements;
      if (separator.kind !== ',') throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`);
      const next = this.#peek();
      if (!startsRequirement(next)) throw badRequest(`found '${next.text}', expected: identifier after ','`);
    }
  }

  #requirement(): LabelRequirement {
    const negated = this.#peek().kind === '!';
    if (negated) this.#take();
    const key = this.#take();
    if (!isWord(key)) throw unparsable(`found '${key.text}', expected: identifier`);
    const keyErrors = labelKeyErrors(key.text);
    if (keyErrors.length > 0) throw unparsable(errorText(invalidValue('<nil>', key.text, keyErrors.join('; '))));
    if (negated) return { key: key.text, operator: '!exists', values: [] };

    const next = this.#peek();
    if (next.kind === 'end' || next.kind === ',') return { key: key.text, operator: 'exists', values: [] };
    const operator = BINARY[this.#take().kind];
    if (operator === undefined) {
      throw unparsable(`found '${next.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const values = operator === 'in' || operator === 'notin' ? this.#values() : [this.#value()];
    return checked({ key: key.text, operator, values }, 'unable to parse requirement: ');
  }

  #value(): string {
    const next = this.#peek();
    if (next.kind === 'end' || next.kind === ',') return '';
    const token = this.#take();
    if (!isWord(token)) throw unparsable(`found '${token.text}', expected: identifier`);
    return token.text;
  }

  /** `(a,b)`; nothing between two delimiters is the empty value. */
  #values(): string[] {
    const open = this.#take();
    if (open.kind !== '(') throw unparsable(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    if (!isWord(first) && first.kind !== ',' && first.kind !== ')') {
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`);
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
        const wanted = expectsValue ? "',', or identifier" : "',' or ')'";
        throw unparsable(`found '${token.text}', expected: ${wanted}`);
      }
      if (expectsValue) values.add('');
      if (token.kind === ')') return [...values].sort();
      expectsValue = true;
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] as Token;
  }

  #take(): Token {
    return this.#tokens[this.#at++] as Token;
  }
}

/** `in` and `notin` are ordinary words wherever no operator may stand. */
const isWord = ({ kind }: Token) => kind === 'identifier' || kind === 'in' || kind === 'notin';
const startsRequirement = (token: Token) => token.kind === '!' || isWord(token);
const unparsable = (why: string) => badRequest(`unable to parse requirement: ${why}`);
const errorText = ({ field, message }: FieldError) => `${field}: ${message}`;

function checked(requirement: LabelRequirement, context = ''): LabelRequirement {
  const errors = requirementErrors(requirement).map(errorText);
  if (errors.length === 0) return requirement;
  throw badRequest(context + (errors.length === 1 ? errors[0] : `[${[...new Set(errors)].join(', ')}]`));
}

/** Also for validation of selectors inside objects: fields are relative to the requirement. */
export function requirementErrors({ key, operator, values }: LabelRequirement): FieldError[] {
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
      if (int64(value) !== undefined) return;
      errors.push(invalidValue(`values[${i}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer"));
    });
  }
  values.forEach((value, i) => {
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length > 0) errors.push(invalidValue(`values[${i}][${key}]`, value, valueErrors.join('; ')));
  });
  return errors;
}
