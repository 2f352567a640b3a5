/**
 * Parses a page of the documentation into the blocks that can be run. Pure: markdown in, blocks out.
 *
 *   ```sh        commands, one per line (more with \ or a here-document); each must exit with 0, or with another code if
 *                its comment begins with "refused" or "fails"
 *   ```console   "$ command", then its output; a line of ... matches any lines, ... within a line matches any text
 *   ```yaml      a manifest (apiVersion and kind), applied as a dry run; or a part of an object, merged as a dry run into
 *                the object that <!-- patch: vm/hello --> before it names
 *   ```text      anything else: diagrams, output without command. Every block states its language
 *
 * A comment directly before a block adds a directive:
 *
 *   <!-- not run: REASON -->          the block is not run; the reason is for readers of the source
 *   <!-- real guests, too: REASON --> npm run test:full runs the whole page once more with real guests
 *   <!-- patch: KIND/NAME [-n NS] --> the block is a part of that object
 *   <!-- hidden ... -->               on top level, with one command per line: run, but not shown
 */

export type Directive =
  | { readonly kind: 'not-run'; readonly reason: string }
  | { readonly kind: 'real-guests-too'; readonly reason: string }
  | { readonly kind: 'patch'; readonly target: string };

export interface Block {
  readonly language: string;
  readonly text: string;
  readonly line: number;
  readonly directive: Directive | undefined;
}

export interface Command {
  readonly text: string;
  readonly line: number;
  /** The command must exit with another code than 0. */
  readonly fails: boolean;
  /** The expected output, or undefined if the page shows none. */
  readonly output: string | undefined;
}

export const LANGUAGES: ReadonlySet<string> = new Set(['sh', 'console', 'yaml', 'text', 'json', 'ts', 'xml', 'hidden']);

const FENCE = /^(\s*)```(\S*)\s*$/;
const COMMENT = /^<!-- (not run|real guests, too|patch): (.+) -->$/;

export class PageError extends Error {
  override name = 'PageError';
}

export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line === '<!-- hidden') {
      const end = lines.indexOf('-->', at);
      if (end < 0) throw new PageError(`line ${at + 1}: the comment has no end`);
      blocks.push({
        language: 'hidden',
        text: lines.slice(at + 1, end).join('\n'),
        line: at + 2,
        directive: undefined,
      });
      at = end;
      continue;
    }
    const [fence, indent = '', language = ''] = FENCE.exec(line) ?? [];
    if (fence === undefined) continue;
    const end = lines.findIndex((other, index) => index > at && other.trim() === '```');
    if (end < 0) throw new PageError(`line ${at + 1}: the block has no end`);
    const text = lines
      .slice(at + 1, end)
      .map((inner) => (inner.startsWith(indent) ? inner.slice(indent.length) : inner))
      .join('\n');
    blocks.push({ language, text, line: at + 2, directive: directiveAbove(lines, at) });
    at = end;
  }
  return blocks;
}

/** Returns the directive on the line before the fence; one empty line between them is allowed. */
function directiveAbove(lines: readonly string[], fence: number): Directive | undefined {
  const above = (lines[fence - 1] ?? '').trim() === '' ? lines[fence - 2] : lines[fence - 1];
  const [, word, rest = ''] = COMMENT.exec((above ?? '').trim()) ?? [];
  switch (word) {
    case 'not run':
      return { kind: 'not-run', reason: rest };
    case 'real guests, too':
      return { kind: 'real-guests-too', reason: rest };
    case 'patch':
      return { kind: 'patch', target: rest };
    default:
      return undefined;
  }
}

/** Returns the errors of a page that can be found without a plane: unknown languages, and commands in blocks that are not run. */
export function findPageErrors(markdown: string): string[] {
  return blocksOf(markdown).flatMap(({ language, text, line, directive }) => {
    if (!LANGUAGES.has(language)) {
      const known = [...LANGUAGES].filter((name) => name !== 'hidden').join(', ');
      return [
        `line ${line - 1}: the block states ${language === '' ? 'no language' : `the language "${language}"`}; expected one of ${known}`,
      ];
    }
    if (['text', 'json', 'ts', 'xml'].includes(language) && /^\s*\$ \S/m.test(text))
      return [`line ${line}: commands must be in a console block`];
    if (directive?.kind === 'patch' && language !== 'yaml') return [`line ${line}: only yaml is merged into something`];
    if (language === 'yaml' && directive === undefined && !isWhole(text)) {
      return [`line ${line}: a part of an object needs <!-- patch: KIND/NAME --> before it`];
    }
    return [];
  });
}

const isWhole = (yaml: string) => /^apiVersion:/m.test(yaml) && /^kind:/m.test(yaml);

export function commandsOf({ language, text, line }: Block): Command[] {
  return language === 'console' ? consoleCommands(text, line) : shellCommands(text, line);
}

function shellCommands(text: string, first: number): Command[] {
  const commands: Command[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const start = at;
    if ((lines[at] ?? '').trim() === '' || (lines[at] ?? '').trimStart().startsWith('#')) continue;
    at = endOfCommand(lines, at);
    const whole = lines.slice(start, at + 1).join('\n');
    commands.push({ text: whole, line: first + start, fails: isExpectedToFail(whole), output: undefined });
  }
  return commands;
}

/** Returns the index of the last line of the command that begins at `start`. */
function endOfCommand(lines: readonly string[], start: number): number {
  const [, , word] = /<<-?(['"]?)(\w+)\1/.exec(lines[start] ?? '') ?? [];
  if (word !== undefined) {
    const end = lines.indexOf(word, start + 1);
    if (end < 0) throw new PageError(`a here-document does not end with ${word}`);
    return end;
  }
  let at = start;
  while ((lines[at] ?? '').endsWith('\\')) at++;
  return at;
}

const isExpectedToFail = (command: string) => /\s#\s*(?:refused|fails)\b/.test(command);

function consoleCommands(text: string, first: number): Command[] {
  const commands: Command[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? '';
    if (!line.startsWith('$ ')) throw new PageError(`line ${first + at}: expected a command after "$ ", not: ${line}`);
    const stripped = lines.map((other, index) => (index === at ? other.slice(2) : other));
    const end = endOfCommand(stripped, at);
    const whole = stripped.slice(at, end + 1).join('\n');
    let next = end + 1;
    while (next < lines.length && !(lines[next] ?? '').startsWith('$ ')) next++;
    const output = lines
      .slice(end + 1, next)
      .join('\n')
      .trim();
    const isError = /^(?:Error|error|The .* is invalid)/m.test(output) && !/^\.\.\./m.test(output);
    commands.push({
      text: whole,
      line: first + at,
      fails: isExpectedToFail(whole) || isError,
      output: output === '' ? undefined : output,
    });
    at = next;
  }
  return commands;
}
