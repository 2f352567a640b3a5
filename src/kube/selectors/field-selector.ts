/**
 * Field selectors: `metadata.name=a,spec.phase!=Done`. Parses the syntax with its escapes (`\\`, `\,`, `\=`). Callers
 * refuse fields that the kind does not have.
 */
import { badRequest } from '#kube/api-error.ts';

export type FieldRequirement = { field: string; operator: '=' | '!='; value: string };

/** Returns the terms of a selector, all of which must match. An empty selector matches everything. */
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

/** Splits at unescaped commas. The terms keep their escapes. */
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

/** Splits a term at its first operator; a field name cannot contain escapes. */
function parseTerm(term: string, selector: string): FieldRequirement {
  const equalsAt = term.indexOf('=');
  if (equalsAt < 0) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  if (equalsAt > 0 && term[equalsAt - 1] === '!') {
    return { field: term.slice(0, equalsAt - 1), operator: '!=', value: unescape(term.slice(equalsAt + 1)) };
  }
  const valueAt = term[equalsAt + 1] === '=' ? equalsAt + 2 : equalsAt + 1;
  return { field: term.slice(0, equalsAt), operator: '=', value: unescape(term.slice(valueAt)) };
}

function unescape(value: string): string {
  if (!/[\\,=]/.test(value)) return value;
  let plain = '';
  for (let i = 0; i < value.length; i++) {
    let char = value[i] as string;
    // Kubernetes prints the code of the character here, not the character.
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
