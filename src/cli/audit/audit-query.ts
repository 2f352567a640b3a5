/** Parses the flags of `selfsame audit`. Pure. */
import type { AuditLine } from '#cli/audit/audit-line.ts';
import { CommandError, parseArgs, switchFlag, textFlag } from '#cli/parsing/flags.ts';

export const AUDIT_FLAGS = {
  follow: switchFlag({ name: 'follow', short: 'f', help: 'keep running and show new events' }),
  since: textFlag(
    { name: 'since', help: 'only newer events: 90s, 10m, 2h, 7d, or a time like 2026-01-31T12:00:00Z' },
    'TIME',
  ),
  user: textFlag({ name: 'user', help: 'the user or the impersonated user' }, 'NAME'),
  verb: textFlag({ name: 'verb', help: 'create, update, patch, delete, ...' }, 'VERB'),
  resource: textFlag({ name: 'resource', help: 'pods, virtualmachines.kubevirt.io, pods/eviction' }, 'NAME'),
  namespace: textFlag({ name: 'namespace', short: 'n', help: 'namespace of the object' }, 'NAME'),
  name: textFlag({ name: 'name', help: 'name of the object' }, 'NAME'),
  refused: switchFlag({ name: 'refused', help: 'only requests that were refused or failed' }),
  output: textFlag({ name: 'output', short: 'o', help: 'table, or json for the raw lines' }, 'FORMAT'),
  dataDir: textFlag({ name: 'data-dir', help: 'data directory of the server' }, 'DIR'),
};

export const AUDIT_USAGE: readonly string[] = [
  ...Object.values(AUDIT_FLAGS)
    .filter((flag) => flag !== AUDIT_FLAGS.dataDir)
    .map(({ name, short, value, help }: { name: string; short?: string; value: string; help: string }) => {
      const shown = `${short === undefined ? '' : `-${short}, `}--${name} ${value}`.trimEnd();
      return `  ${shown.padEnd(26)}${help}`;
    }),
  '',
  '--user, --verb, --resource, --namespace and --name accept several values, separated by commas.',
];

export interface AuditQuery {
  readonly follow: boolean;
  readonly output: 'table' | 'json';
  readonly dataDir: string | undefined;
  readonly sinceMs: number | undefined;
  matches(line: AuditLine): boolean;
}

/** Throws CommandError. */
export function parseAuditQuery(words: readonly string[], nowMs: number): AuditQuery {
  const { flags, args } = parseArgs(AUDIT_FLAGS, words);
  if (args[0] !== undefined) throw new CommandError(`unexpected argument ${JSON.stringify(args[0])}`);
  const { follow, output = 'table', dataDir, refused } = flags;
  if (output !== 'table' && output !== 'json') {
    throw new CommandError(`--output must be table or json, not ${JSON.stringify(output)}`);
  }
  if (dataDir === '') throw new CommandError('--data-dir must be a path');
  const sinceMs = flags.since === undefined ? undefined : parseSince(flags.since, nowMs);
  const tests = [
    matchAny(flags.user, (line) => [line.user, line.impersonatedUser]),
    matchAny(flags.verb, ({ verb }) => [verb]),
    matchAny(flags.resource, resourceNames),
    matchAny(flags.namespace, ({ namespace }) => [namespace]),
    matchAny(flags.name, ({ name }) => [name]),
    ...(refused ? [({ code }: AuditLine) => code >= 400] : []),
    ...(sinceMs === undefined ? [] : [({ receivedMs }: AuditLine) => receivedMs >= sinceMs]),
  ];
  return { follow, output, dataDir, sinceMs, matches: (line) => tests.every((test) => test(line)) };
}

function matchAny(text: string | undefined, values: (line: AuditLine) => string[]): (line: AuditLine) => boolean {
  if (text === undefined) return () => true;
  const wanted = new Set(text.split(',').map((word) => word.trim()));
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
    throw new CommandError(
      `--since must be like 90s, 10m, 2h, 7d or 2026-01-31T12:00:00Z, not ${JSON.stringify(text)}`,
    );
  }
  return ms;
}
