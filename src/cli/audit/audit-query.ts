/** The flags of `selfsame audit`, and which events they select. Pure. */
import { UsageError } from '#lib/command-line/command-error.ts';
import { choiceFlag, commaListFlag, switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';
import type { AuditLine } from '#cli/audit/audit-line.ts';

export const AUDIT_FLAGS = {
  follow: switchFlag({ name: 'follow', short: 'f', help: 'keep running and show new events' }),
  since: textFlag(
    { name: 'since', help: 'only newer events: 90s, 10m, 2h, 7d, or a time like 2026-01-31T12:00:00Z' },
    'TIME',
  ),
  user: commaListFlag({ name: 'user', help: 'the user or the impersonated user' }, 'NAME'),
  verb: commaListFlag({ name: 'verb', help: 'create, update, patch, delete, ...' }, 'VERB'),
  resource: commaListFlag({ name: 'resource', help: 'pods, virtualmachines.kubevirt.io, pods/eviction' }, 'NAME'),
  namespace: commaListFlag({ name: 'namespace', short: 'n', help: 'namespace of the object' }, 'NAME'),
  name: commaListFlag({ name: 'name', help: 'name of the object' }, 'NAME'),
  refused: switchFlag({ name: 'refused', help: 'only requests that were refused or failed' }),
  output: choiceFlag(
    { name: 'output', short: 'o', value: 'FORMAT', help: 'table, or json for the raw lines' },
    ['table', 'json'],
    'table',
  ),
};

interface AuditQuery {
  readonly sinceMs: number | undefined;
  matches(line: AuditLine): boolean;
}

/** Throws UsageError. */
export function parseAuditQuery(flags: FlagValues<typeof AUDIT_FLAGS>, nowMs: number): AuditQuery {
  const sinceMs = flags.since === undefined ? undefined : parseSince(flags.since, nowMs);
  const tests = [
    matchAny(flags.user, (line) => [line.user, line.impersonatedUser]),
    matchAny(flags.verb, ({ verb }) => [verb]),
    matchAny(flags.resource, resourceNames),
    matchAny(flags.namespace, ({ namespace }) => [namespace]),
    matchAny(flags.name, ({ name }) => [name]),
    ...(flags.refused ? [({ code }: AuditLine) => code >= 400] : []),
    ...(sinceMs === undefined ? [] : [({ receivedMs }: AuditLine) => receivedMs >= sinceMs]),
  ];
  return { sinceMs, matches: (line) => tests.every((test) => test(line)) };
}

function matchAny(
  words: readonly string[] | undefined,
  values: (line: AuditLine) => string[],
): (line: AuditLine) => boolean {
  if (words === undefined) return () => true;
  // An empty value selects events without one: --namespace= those of cluster-scoped objects.
  const wanted = new Set(words.length === 0 ? [''] : words.map((word) => word.trim()));
  return (line) => values(line).some((value) => wanted.has(value));
}

/** Returns all names that --resource may use for the resource. */
function resourceNames({ resource, group, subresource }: AuditLine): string[] {
  const names = group === '' ? [resource] : [resource, `${resource}.${group}`];
  return subresource === '' ? names : [...names, ...names.map((name) => `${name}/${subresource}`)];
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

function parseSince(text: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) return nowMs - Number(count) * UNITS_MS[unit]!;
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new UsageError(`--since must be like 90s, 10m, 2h, 7d or 2026-01-31T12:00:00Z, not ${JSON.stringify(text)}`);
  }
  return ms;
}
