/**
 * Field selectors: `metadata.name=a,spec.phase!=Done`. Knows the syntax and its escapes (`\\`, `\,`, `\=`), not which
 * fields a kind has: an unknown field is the caller's to refuse.
 */
import { badRequest } from '#kube/api-error.ts';

export type FieldRequirement = { field: string; operator: '=' | '!='; value: string };

/** All terms must hold. Empty text selects everything. */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(text).sort()) {
    if (term === '') continue;
    const requirement = parseTerm(term, text);
    if (requirement.field === '' && requirement.value === '') continue;
    requirements.push(requirement);
  }
  return requirements;
}

export function matchesFields(requirements: readonly FieldRequirement[], read: (field: string) => string): boolean {
  for (const { field, operator, value } of requirements) {
    if ((read(field) === value) !== (operator === '=')) return false;
  }
  return true;
}

export function formatFieldSelector(requirements: readonly FieldRequirement[]): string {
  return requirements.map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`).join(',');
}

/** Makes any text safe to stand as a value in a field selector. */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&');
}

/** Splits at commas that are not escaped; the escapes stay in the terms. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === ',') {
      terms.push(text.slice(start, i));
      start = i + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

/** The first operator in the term splits it: no escapes exist on the left side. */
function parseTerm(term: string, selector: string): FieldRequirement {
  const equals = term.indexOf('=');
  if (equals < 0) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  if (equals > 0 && term[equals - 1] === '!') {
    return { field: term.slice(0, equals - 1), operator: '!=', value: unescape(term.slice(equals + 1)) };
  }
  const valueAt = term[equals + 1] === '=' ? equals + 2 : equals + 1;
  return { field: term.slice(0, equals), operator: '=', value: unescape(term.slice(valueAt)) };
}

function unescape(value: string): string {
  if (!/[\\,=]/.test(value)) return value;
  let plain = '';
  for (let i = 0; i < value.length; i++) {
    let char = value[i] as string;
    // Kubernetes prints the number of the character here, not the character.
    if (char === ',' || char === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${char.charCodeAt(0)}`);
    }
    if (char === '\\') {
      const code = value.codePointAt(++i);
      char = code === undefined ? '' : String.fromCodePoint(code);
      if (char !== '\\' && char !== ',' && char !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${char}`);
      }
    }
    plain += char;
  }
  return plain;
}
