/**
 * Loads nftables rule sets, each in one transaction. A table has a set `revision` with the hash of the text that made
 * its rules: if it is in place, the rules are not replaced. Elements are added and deleted; agents of one plane may do
 * so at the same time.
 */
import { createHash } from 'node:crypto';
import type { RunOnHost } from '#node/network/linux/host/host-commands.ts';

const REVISION_LENGTH = 12;

/** A table, with the text that creates it or replaces its rules. */
export interface RuleSet {
  readonly family: 'bridge' | 'inet';
  readonly table: string;
  readonly text: string;
}

/** Loads rule sets that are not in place, and the elements, in one transaction. */
export async function loadRules(run: RunOnHost, ruleSets: readonly RuleSet[], elements: string): Promise<void> {
  const missing: RuleSet[] = [];
  for (const ruleSet of ruleSets) if (!(await isInPlace(run, ruleSet))) missing.push(ruleSet);
  const text = [...missing.map(withRevision), elements].join('');
  if (text !== '') await run('nft', ['-f', '-'], text);
}

const revisionOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, REVISION_LENGTH);

async function isInPlace(run: RunOnHost, { family, table, text }: RuleSet): Promise<boolean> {
  return (await readElements(run, family, table, 'revision')).some(([revision]) => revision === revisionOf(text));
}

function withRevision({ family, table, text }: RuleSet): string {
  const set = `${family} ${table} revision`;
  return `${text}flush set ${set}\nadd element ${set} { "${revisionOf(text)}" }\n`;
}

/** Returns the elements of a set, each as the list of its concatenated parts; nothing if there is no such set. */
export async function readElements(
  run: RunOnHost,
  family: RuleSet['family'],
  table: string,
  set: string,
): Promise<string[][]> {
  const text = await run('nft', ['-j', 'list', 'set', family, table, set]).catch((error: unknown) => {
    if (isAbsent(error)) return '';
    throw error;
  });
  return text === '' ? [] : parseElements(text);
}

const isAbsent = (error: unknown) => /No such file or directory/.test((error as Error).message);

interface ListedSet {
  readonly set?: { readonly elem?: readonly (string | { readonly concat: readonly string[] })[] };
}

function parseElements(text: string): string[][] {
  const { nftables } = JSON.parse(text) as { nftables: readonly ListedSet[] };
  return nftables.flatMap(({ set }) => (set?.elem ?? []).map((e) => (typeof e === 'string' ? [e] : [...e.concat])));
}

/** Returns the commands that delete elements. Does not fail if another process has deleted them. */
export function buildDeletion(family: RuleSet['family'], table: string, set: string, elements: readonly string[]) {
  if (elements.length === 0) return '';
  const target = `${family} ${table} ${set} { ${elements.join(', ')} }`;
  return `add element ${target}\ndelete element ${target}\n`;
}

/** Deletes a table. Does nothing if there is none. */
export async function deleteTable(run: RunOnHost, { family, table }: Omit<RuleSet, 'text'>): Promise<void> {
  await run('nft', ['-f', '-'], `add table ${family} ${table}\ndelete table ${family} ${table}\n`);
}
