/**
 * Rules for the whole repository that no compiler checks. Each rule is pure: it takes one file and returns findings.
 * The import layers are in layers.ts.
 */
import { lineAt, scanSource } from '#test/tidy/source-text.ts';

export interface SourceFile {
  /** The path from the root of the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly problem: string;
}

export type Rule = (file: SourceFile) => Finding[];

const MAX_LINES = 600;

const isTypeScript = (path: string) => path.endsWith('.ts');
const isInSource = (path: string) => path.startsWith('src/') && isTypeScript(path);
/** Reports whether the file is a test or used only by tests: fakes, builders, conformance suites. */
export const isTest = (path: string) => /\.test\.ts$|^test\/|\/testing\//.test(path);

export const fileSize: Rule = ({ path, text }) => {
  if (!isTypeScript(path)) return [];
  const lines = text.trimEnd().split('\n').length;
  if (lines <= MAX_LINES) return [];
  return [{ path, line: MAX_LINES, problem: `has ${lines} lines, more than ${MAX_LINES}: split it by aspect` }];
};

/** Returns a rule that finds a pattern in the code (not in comments or strings) of the files that it applies to. */
function codeRule(pattern: RegExp, applies: (path: string) => boolean, problem: string): Rule {
  return (file) => (applies(file.path) ? findings(file, scanSource(file.text).code, pattern, problem) : []);
}

function findings({ path }: SourceFile, text: string, pattern: RegExp, problem: string): Finding[] {
  return [...text.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(({ index }) => ({
    path,
    line: lineAt(text, index),
    problem,
  }));
}

const ENVIRONMENT_READERS = new Set(['src/cli/main.ts', 'src/main.ts']);

export const environment = codeRule(
  /\bprocess\s*(?:\?\.|\.)\s*(?:env|argv)\b/,
  (path) => isInSource(path) && !ENVIRONMENT_READERS.has(path),
  'reads argv or the environment; only src/main.ts and src/cli/main.ts may, so that every setting has its flag and help',
);

export const systemClock = codeRule(
  /\bDate\s*\.\s*now\b|\bnew\s+Date\s*(?:\(\s*\)|(?![\s\w(]))|(?<!\bnew\s+)\bDate\s*\(/,
  (path) => isInSource(path) && !isTest(path) && path !== 'src/lib/clock.ts',
  'reads the system clock; take a Clock (src/lib/clock.ts), so that tests can set the time',
);

/** node:test loads a reporter by its default export. */
const DEFAULT_EXPORTS = new Set(['scripts/report.ts']);

export const defaultExport = codeRule(
  /\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/,
  (path) => isTypeScript(path) && !DEFAULT_EXPORTS.has(path),
  'has a default export; name it, so that it has one name everywhere',
);

export const anyType = codeRule(
  /(?:[:<|&]|\b(?:as|extends|is|keyof)|\btype\s+\w+\s*=)\s*any\b(?!\s*[.(])|,\s*any\s*>/,
  // Test support reads responses without types; the linter requires a mark there.
  (path) => isTypeScript(path) && !path.startsWith('test/support/'),
  'uses the type any; say unknown at an edge and parse it',
);

export const unexplainedSkip = codeRule(
  /\b(?:test|it|describe|suite)\s*\.\s*(?:only|skip|todo)\b|\b(?:skip|todo|only)\s*:\s*true\b|\bt\s*\.\s*(?:skip|todo)\s*\(\s*\)/,
  (path) => isTypeScript(path) && isTest(path),
  'leaves tests out without a reason; use { skip: "the reason" }',
);

export const suppressedTypes: Rule = (file) => {
  if (!isTypeScript(file.path)) return [];
  // A test uses it to prove that something does not compile.
  const pattern = isTest(file.path) ? /@ts-(?:ignore|nocheck)\b/ : /@ts-(?:ignore|nocheck|expect-error)\b/;
  return findings(file, scanSource(file.text).comments, pattern, 'silences the type checker; fix the type');
};

export const vagueName: Rule = ({ path }) => {
  const vague = path.split('/').find((part) => /^(?:utils?|helpers?|common|misc)(?:\.|$)/.test(part));
  if (vague === undefined) return [];
  return [{ path, line: 1, problem: `"${vague}" says nothing; name it after what it does` }];
};

export const kebabCase: Rule = ({ path }) => {
  const name = path.split('/').at(-1) ?? '';
  if (!isTypeScript(path) || /^[a-z0-9]+(?:[-.][a-z0-9]+)*\.ts$/.test(name)) return [];
  return [{ path, line: 1, problem: 'is not in kebab-case' }];
};

export const registryAddress: Rule = (file) =>
  findings(
    file,
    file.text,
    /\bhttps?:\/\/[^/\s"'`]*(?:registry|npmjs|yarnpkg|verdaccio|artifactory|nexus)[^/\s"'`]*/,
    'names a package registry; which one to use is the setting of each machine',
  );

export const lockHosts: Rule = (file) =>
  file.path.endsWith('package-lock.json')
    ? findings(
        file,
        file.text,
        /"resolved":\s*"(?:https?|git)/,
        'the lock names the host of a package; npm with omit-lockfile-registry-resolved=true leaves it out',
      )
    : [];

export const rules: Readonly<Record<string, Rule>> = {
  fileSize,
  environment,
  systemClock,
  defaultExport,
  anyType,
  unexplainedSkip,
  suppressedTypes,
  vagueName,
  kebabCase,
  registryAddress,
  lockHosts,
};

/** Returns the runtime dependencies that no decision record mentions. */
export function unjustified(dependencies: readonly string[], records: readonly string[]): string[] {
  const text = records.join('\n');
  return dependencies.filter((name) => !text.includes(`\`${name}\``));
}
