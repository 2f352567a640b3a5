/**
 * The language rules of CONTRIBUTING.md that a program can check: banned words with a better one, the beginning of doc
 * comments, exported names that two modules use for different things, and files that no longer exist.
 */
import { isTest, type Finding, type Rule, type SourceFile } from '#test/tidy/rules.ts';
import { lineAt, scanSource } from '#test/tidy/source-text.ts';

interface BannedWord {
  readonly pattern: RegExp;
  /** The better wording. */
  readonly instead: string;
}

/** Words of prose: in comments, strings, test names and documents. */
const BANNED_PROSE: readonly BannedWord[] = [
  {
    pattern: /\b(?:is|are|was|were|be|been|being) told\b|\btold (?:of|to|by|about)\b/i,
    instead: 'report, send, notify or write',
  },
  { pattern: /\bwhoever\b|\bwhomever\b/i, instead: 'the actor: the user, the node agent, the controller' },
  { pattern: /\bfine where\b/i, instead: '"Does nothing if ..."' },
  { pattern: /\bwhere there is none\b/i, instead: '"if there is none"' },
  { pattern: /\bclusters? of others\b|\bimages of others\b/i, instead: 'existing cluster, third-party images' },
  {
    pattern: /\bis no (?:way|key|name|number|address|machine|file|disk|claim|device) of\b/i,
    instead: '"is not a ... of"',
  },
  { pattern: /\bmended\b/i, instead: 'fixed, repaired or corrected' },
  { pattern: /\bgoes on there\b|\bthe next look\b/i, instead: '"the next reconcile"' },
];

/** Parts of names: `toldOf`, `isTold`, `Purse`. */
const BANNED_NAMES: readonly BannedWord[] = [
  {
    pattern: /\b(?:told|meant|goOn|purse|bell|desk)(?:[A-Z]\w*)?\b/,
    instead: 'a verb or a noun that says what it is',
  },
  {
    pattern: /\b\w*(?:Told|Meant|Purse|Bell|Desk|Trouble|Complaint|Obstacle)(?![a-z])\w*/,
    instead: 'report, Refusal, Error or a noun of the field',
  },
];

const isDocument = (path: string) => path.endsWith('.md');
const isTypeScript = (path: string) => path.endsWith('.ts');
/** This rule and its tests quote what they forbid. */
const isExempt = (path: string) => path.startsWith('test/tidy/');

function matches({ path, text }: SourceFile, searched: string, banned: readonly BannedWord[]): Finding[] {
  return banned.flatMap(({ pattern, instead }) =>
    [...searched.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(({ 0: word, index }) => ({
      path,
      line: lineAt(text, index),
      problem: `says "${word}"; write ${instead}`,
    })),
  );
}

export const bannedWords: Rule = (file) => {
  const { path, text } = file;
  if (isExempt(path)) return [];
  if (isDocument(path)) return matches(file, text, BANNED_PROSE);
  if (!isTypeScript(path)) return [];
  const { code } = scanSource(text);
  return [...matches(file, withoutCode(text, code), BANNED_PROSE), ...matches(file, code, BANNED_NAMES)];
};

/** Returns the text with everything blanked except comments and the insides of strings. */
function withoutCode(text: string, code: string): string {
  return text.replaceAll(/[^\n]/g, (char, index: number) => (code[index] === ' ' ? char : ' '));
}

const RELATIVE =
  /\/\*\*\s+(?:\*\s+)?(?:What|Whatever|Whether|Where|Wherever|Who|Whoever|Whom|Whose|Which|How|When|That|Told|Fine)\s/;

export const docComments: Rule = (file) => {
  if (!isTypeScript(file.path) || isExempt(file.path)) return [];
  const { comments } = scanSource(file.text);
  return [...comments.matchAll(new RegExp(RELATIVE, 'g'))].map(({ index }) => ({
    path: file.path,
    line: lineAt(file.text, index),
    problem: 'begins with a relative clause; start with what the thing is or does: "Returns ...", "A lease on ..."',
  }));
};

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm;

/** Returns the exported names of src/ that several modules define, with the modules. Test support may repeat names. */
export function repeatedExports(files: readonly SourceFile[]): Map<string, string[]> {
  const modules = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (!path.startsWith('src/') || !isTypeScript(path) || isTest(path)) continue;
    for (const [, name = ''] of scanSource(text).code.matchAll(EXPORT)) {
      modules.set(name, [...(modules.get(name) ?? []), path]);
    }
  }
  return new Map([...modules].filter(([, paths]) => new Set(paths).size > 1));
}

/** Names that several modules may export, each with the reason. */
export const SHARED_NAMES: Readonly<Record<string, string>> = {};

/** Returns the problems with repeated names: those without a reason, and reasons that are no longer needed. */
export function sharedNameProblems(
  files: readonly SourceFile[],
  allowed: Readonly<Record<string, string>> = SHARED_NAMES,
): string[] {
  const repeated = repeatedExports(files);
  return [
    ...[...repeated]
      .filter(([name]) => !Object.hasOwn(allowed, name))
      .map(([name, paths]) => `${name} is exported by ${paths.join(', ')}: give each its own name, or share one`),
    ...Object.keys(allowed)
      .filter((name) => !repeated.has(name))
      .map((name) => `${name} is exported once: remove it from SHARED_NAMES`),
  ];
}

const MENTIONED_FILE = /(?<![\w./#-])(?:[\w-]+\/)*[a-z][\w-]*(?:\.test)?\.ts\b/g;

/** Returns the files that comments and documents mention and that do not exist. A mention may leave out leading folders. */
export function missingFiles(files: readonly SourceFile[]): string[] {
  const paths = files.map(({ path }) => `/${path}`);
  const exists = (name: string) => paths.some((path) => path.endsWith(`/${name}`));
  return files
    .filter(({ path }) => !isExempt(path) && (isDocument(path) || isTypeScript(path)))
    .flatMap(({ path, text }) => {
      const prose = isDocument(path) ? text : scanSource(text).comments;
      const missing = [...prose.matchAll(MENTIONED_FILE)].filter(([name]) => name !== 'x.test.ts' && !exists(name));
      return missing.map(
        ({ 0: name, index }) => `${path}:${lineAt(prose, index)} mentions ${name}, which does not exist`,
      );
    });
}
