/**
 * Separates code from comments and strings, so that a rule about code ignores sentences that mention it. A simple
 * scanner, not a parser: it knows comments, quotes, templates and regular expressions.
 */

export interface SourceText {
  /** The text with comments and the contents of strings and regular expressions blanked; same length, same lines. */
  readonly code: string;
  /** The text with everything but comments blanked. */
  readonly comments: string;
}

/** A slash after one of these starts a regular expression; after anything else it divides. */
const BEFORE_REGEX = /(?:^|[([{,;:=!&|?+\-*%<>~^]|=>|\b(?:return|typeof|case|in|of|do|else|void|await|yield))\s*$/;
const LOOK_BEHIND = 20;

export function scanSource(text: string): SourceText {
  const code = text.split('');
  const comments = code.map((char): string => (char === '\n' ? char : ' '));
  /** For every open template: the number of braces that are open inside its current `${`. */
  const templates: number[] = [];
  let at = 0;

  const blank = (end: number) => {
    for (; at < end; at++) if (code[at] !== '\n') code[at] = ' ';
  };
  const comment = (end: number) => {
    for (let i = at; i < end; i++) comments[i] = text[i] ?? ' ';
    blank(end);
  };
  const indexOrEnd = (needle: string, from: number) => {
    const found = text.indexOf(needle, from);
    return found === -1 ? text.length : found;
  };
  /** Returns the index after the closing quote of the string that starts at `at`. */
  const quotedEnd = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return at + (pattern.exec(text)?.[0].length ?? 1);
  };
  const template = () => {
    const [body = ''] = /^(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/.exec(text.slice(at)) ?? [];
    blank(at + body.length);
    if (text.startsWith('${', at)) {
      templates.push(0);
      at += 2;
    } else {
      at++;
    }
  };

  while (at < text.length) {
    const char = text[at];
    if (text.startsWith('//', at)) {
      comment(indexOrEnd('\n', at));
    } else if (text.startsWith('/*', at)) {
      comment(Math.min(text.length, indexOrEnd('*/', at + 2) + 2));
    } else if (char === "'" || char === '"') {
      const end = quotedEnd(char === "'" ? /'(?:[^'\\\n]|\\[\s\S])*'?/y : /"(?:[^"\\\n]|\\[\s\S])*"?/y);
      at++;
      blank(end - 1);
      at = end;
    } else if (char === '`') {
      at++;
      template();
    } else if (char === '/' && BEFORE_REGEX.test(code.slice(Math.max(0, at - LOOK_BEHIND), at).join(''))) {
      const end = quotedEnd(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])*\/?/y);
      at++;
      blank(end - 1);
      at = end;
    } else {
      at++;
      const open = templates.at(-1);
      if (open === undefined) continue;
      if (char === '{') templates[templates.length - 1] = open + 1;
      if (char === '}' && open > 0) templates[templates.length - 1] = open - 1;
      if (char === '}' && open === 0) {
        templates.pop();
        template();
      }
    }
  }
  return { code: code.join(''), comments: comments.join('') };
}

/** Returns the line number of an index, from 1. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}
