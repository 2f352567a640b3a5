/**
 * What this host does with a key that was sent: it uses it, or says by name that it does not. No key is ignored in silence,
 * not even one that nobody knows. Pure.
 */
import { HOST_CODES, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { suggestion } from '#lib/nearest.ts';
import { isOn, shown, textOf, type SentMap } from '#node/host-api/sent-values.ts';

/**
 *   used      the guest is made accordingly, or the value is refused elsewhere with what is wrong with it
 *   reported  what hosts report themselves; `list` has it, and sent back it says nothing
 *   noted     the guest runs without it, and the answer says so
 *   refused   a guest without it would not be the one that was meant
 */
export type KeyRule =
  | { readonly does: 'used' | 'reported' }
  | { readonly does: 'noted' | 'refused'; readonly why: string; readonly unless: (value: unknown) => boolean };

export type KeyRules = Readonly<Record<string, KeyRule>>;

/** Values that ask for nothing. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

export const isOff = (value: unknown): boolean => isEmpty(value) || !isOn(value);

/** Returns a test for values that say what this host does anyway. */
export function isOneOf(...words: readonly string[]): (value: unknown) => boolean {
  return (value) => isEmpty(value) || words.includes(textOf(value)?.toLowerCase() ?? '');
}

export function used(...keys: readonly string[]): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { does: 'used' }]));
}

export function reported(...keys: readonly string[]): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { does: 'reported' }]));
}

/** `unless`: a value that asks for nothing, or for what is so anyway. */
export function noted(why: string, keys: readonly string[], unless = isEmpty): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { does: 'noted', why, unless }]));
}

export function refusedKeys(why: string, keys: readonly string[], unless = isEmpty): KeyRules {
  return Object.fromEntries(keys.map((key) => [key, { does: 'refused', why, unless }]));
}

export interface KeyFindings {
  readonly notes: readonly string[];
  readonly faults: readonly string[];
}

export const NO_FINDINGS: KeyFindings = { notes: [], faults: [] };

/** More than anybody reads. */
const MAX_NOTES = 100;

/** Returns a note or a fault for every key that is not used. `field` is where they were sent: `devices[2].`, or nothing. */
export function findKeys(sent: SentMap, rules: KeyRules, field = ''): KeyFindings {
  const notes: string[] = [];
  const faults: string[] = [];
  for (const [key, value] of Object.entries(sent)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    const name = `${field}${key.length > 100 ? `${key.slice(0, 100)}…` : key}`;
    if (rule === undefined) notes.push(`${name} has no effect: this host does not know it${nearKey(key, rules)}`);
    else if (!('why' in rule) || rule.unless(value)) continue;
    else if (rule.does === 'noted') notes.push(`${name} has no effect: ${rule.why}`);
    else faults.push(`${name}: ${shown(value)}; ${rule.why}`);
  }
  return { notes, faults };
}

/** By verb: what a call other than `create` is made of. */
const CALL_RULES: Readonly<Record<Exclude<HostVerb, 'create'>, KeyRules>> = {
  list: used('fullStatus', 'vmList', 'onlyUUID'),
  getAllVmStats: {},
  destroy: used('vmId'),
  hotplugDisk: used('vmId', 'drive'),
  hotunplugDisk: used('vmId', 'drive'),
  hotplugNic: used('vmId', 'nic'),
  hotunplugNic: used('vmId', 'nic'),
};

/** Returns the answer with a note for each parameter that the verb does not have. */
export function withCallNotes(answer: HostAnswer, verb: HostVerb, sent: SentMap): HostAnswer {
  if (verb === 'create' || answer.status.code !== HOST_CODES.done.code) return answer;
  const notes = [...(answer.notes ?? []), ...findKeys(sent, CALL_RULES[verb]).notes];
  return notes.length === 0 ? answer : { ...answer, notes: cutNotes(notes) };
}

export function merged(...all: readonly KeyFindings[]): KeyFindings {
  return { notes: all.flatMap(({ notes }) => notes), faults: all.flatMap(({ faults }) => faults) };
}

export function cutNotes(notes: readonly string[]): readonly string[] {
  if (notes.length <= MAX_NOTES) return notes;
  return [...notes.slice(0, MAX_NOTES), `and ${notes.length - MAX_NOTES} notes more`];
}

function nearKey(key: string, rules: KeyRules): string {
  return suggestion(key, Object.keys(rules), (name) => name);
}

export function mapAt(sent: SentMap, key: string): SentMap {
  const value = sent[key];
  return isRecord(value) ? value : {};
}
