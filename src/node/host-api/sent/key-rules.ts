/**
 * Rules for the keys of a request. No key is ignored silently: a key that is not used, even an unknown one, gets a note
 * or an error with its name. Pure.
 */
import { HOST_CODES, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { suggestion } from '#lib/text/nearest.ts';
import { isEnabled, quoteSentValue, readText, type SentMap } from '#node/host-api/sent/sent-values.ts';

/**
 *   used      the guest is defined accordingly; other code checks the value
 *   reported  `list` reports it; when it is sent back it has no effect, and there is no note
 *   noted     the guest runs without it, and the answer has a note
 *   refused   without it the guest would not be the requested one
 */
type KeyRule =
  | { readonly handling: 'used' | 'reported' }
  | { readonly handling: 'noted' | 'refused'; readonly why: string; readonly unless: (value: unknown) => boolean };

export type KeyRules = Readonly<Record<string, KeyRule>>;

/** Reports whether a value asks for nothing. */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

export const isDisabled = (value: unknown): boolean => isBlank(value) || !isEnabled(value);

/** Returns a predicate for values that are blank or one of `words`, in any case. */
export function isBlankOrOneOf(...words: readonly string[]): (value: unknown) => boolean {
  return (value) => isBlank(value) || words.includes(readText(value)?.toLowerCase() ?? '');
}

export function usedKeys(...keys: readonly string[]): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { handling: 'used' }]));
}

export function reportedKeys(...keys: readonly string[]): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { handling: 'reported' }]));
}

/** `unless` matches values that need no note: those that ask for nothing, or for what the host does anyway. */
export function notedKeys(why: string, keys: readonly string[], unless = isBlank): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { handling: 'noted', why, unless }]));
}

export function refusedKeys(why: string, keys: readonly string[], unless = isBlank): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { handling: 'refused', why, unless }]));
}

export interface KeyFindings {
  readonly notes: readonly string[];
  readonly errors: readonly string[];
}

export const NO_FINDINGS: KeyFindings = { notes: [], errors: [] };

/** Bounds the size of an answer. */
const MAX_NOTES = 100;

/**
 * Returns a note or an error for every key that is not used. `field` is the prefix for messages: `devices[2].`, or
 * empty.
 */
export function checkKeys(sent: SentMap, rules: KeyRules, field = ''): KeyFindings {
  const notes: string[] = [];
  const errors: string[] = [];
  for (const [key, value] of Object.entries(sent)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    const name = `${field}${key.length > 100 ? `${key.slice(0, 100)}…` : key}`;
    if (rule === undefined) notes.push(`${name} has no effect: this host does not know it${suggestKey(key, rules)}`);
    else if (!('why' in rule) || rule.unless(value)) continue;
    else if (rule.handling === 'noted') notes.push(`${name} has no effect: ${rule.why}`);
    else errors.push(`${name}: ${quoteSentValue(value)}; ${rule.why}`);
  }
  return { notes, errors: errors };
}

/** The parameters of each verb except `create`. */
const CALL_RULES: Readonly<Record<Exclude<HostVerb, 'create'>, KeyRules>> = {
  list: usedKeys('fullStatus', 'vmList', 'onlyUUID'),
  getAllVmStats: {},
  destroy: usedKeys('vmId'),
  hotplugDisk: usedKeys('vmId', 'drive'),
  hotunplugDisk: usedKeys('vmId', 'drive'),
  hotplugNic: usedKeys('vmId', 'nic'),
  hotunplugNic: usedKeys('vmId', 'nic'),
};

/** Adds a note to the answer for each parameter that the verb does not have. */
export function addCallNotes(answer: HostAnswer, verb: HostVerb, sent: SentMap): HostAnswer {
  if (verb === 'create' || answer.status.code !== HOST_CODES.done.code) return answer;
  const notes = [...(answer.notes ?? []), ...checkKeys(sent, CALL_RULES[verb]).notes];
  return notes.length === 0 ? answer : { ...answer, notes: limitNotes(notes) };
}

export function mergeFindings(...all: readonly KeyFindings[]): KeyFindings {
  return { notes: all.flatMap(({ notes }) => notes), errors: all.flatMap(({ errors }) => errors) };
}

export function limitNotes(notes: readonly string[]): readonly string[] {
  if (notes.length <= MAX_NOTES) return notes;
  return [...notes.slice(0, MAX_NOTES), `and ${notes.length - MAX_NOTES} more notes`];
}

function suggestKey(key: string, rules: KeyRules): string {
  return suggestion(key, Object.keys(rules), (name) => name);
}

export function readMapAt(sent: SentMap, key: string): SentMap {
  const value = sent[key];
  return isRecord(value) ? value : {};
}
