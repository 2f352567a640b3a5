/**
 * The transcript format: typed commands and their output. Pure: text in, steps out, and back.
 *
 *   # plane: fake                        first line: requests simulated nodes for VMs; otherwise the engine runs alone
 *   # Prose, for the reader.
 *   $ kubectl create -f - <<END          a command for sh; lines that begin with "> " continue it
 *   > kind: ConfigMap
 *   > END
 *   configmap/a created                  its golden output, stdout and stderr together
 *   [exit 1]                             its exit code, unless 0
 *
 *   $ kubectl get configmaps -w &        continues in the background when it has written something
 *   $ fg 3                               ends the background command after 3 lines; `fg` alone waits for its end
 *
 *   $ kubectl version                    if the outputs of the kubectl versions differ, each has its own
 *   [1.20]
 *   ...
 *   [1.32]
 *   ...
 *   [1.32] $ kubectl patch ...           a command for one kubectl version only
 *
 * Output lines that look like one of these begin with a backslash. session.ts runs the commands, and normalise.ts makes
 * outputs of different runs comparable.
 */
export const VERSIONS = ['1.20', '1.32'] as const;
export type Version = (typeof VERSIONS)[number];

export interface Output {
  readonly text: string;
  readonly exit: number;
}

/** The server that a transcript needs. */
export type PlaneKind = 'engine' | 'fake';

export interface Step {
  /** Comments and empty lines before the step. */
  readonly prose: readonly string[];
  readonly only?: Version | undefined;
  readonly command: string;
  readonly outputs: Readonly<Partial<Record<Version, Output>>>;
}

export interface Transcript {
  readonly steps: readonly Step[];
  /** Comments and empty lines after the last step. */
  readonly ending: readonly string[];
}

const COMMAND = /^(?:\[(1\.\d\d)\] )?\$ (.*)$/;
const SECTION = /^\[(1\.\d\d)\]$/;
const EXIT = /^\[exit (\d+)\]$/;
const RESERVED = /^(?:\\|# |#$|> |\$ |\[1\.\d\d\]|\[exit \d+\])/;

export class TranscriptError extends Error {
  override name = 'TranscriptError';
}

export function planeKindOf(text: string): PlaneKind {
  const [, kind] = /^# plane: (.*)/.exec(text) ?? [];
  if (kind === undefined) return 'engine';
  if (kind === 'fake') return kind;
  throw new TranscriptError(`line 1 asks for the unknown plane ${kind}; expected fake`);
}

export function parseTranscript(text: string): Transcript {
  const lines = text.replace(/\n$/, '').split('\n');
  const steps: Step[] = [];
  let prose: string[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const command = COMMAND.exec(line);
    if (command) {
      const { step, next } = parseStep(lines, at, prose, command);
      steps.push(step);
      prose = [];
      at = next;
    } else if (line === '' || line.startsWith('#')) {
      prose.push(line);
      at++;
    } else {
      throw new TranscriptError(`line ${at + 1} comes before the first command: ${line}`);
    }
  }
  return { steps, ending: prose };
}

function parseStep(lines: readonly string[], start: number, prose: string[], match: RegExpExecArray) {
  const only = match[1] === undefined ? undefined : versionOf(match[1], start);
  const command = [match[2] ?? ''];
  let at = start + 1;
  for (; lines[at]?.startsWith('> ') || lines[at] === '>'; at++) command.push((lines[at] ?? '').slice(2));

  const sections: { version?: Version; lines: string[]; exit: number }[] = [{ lines: [], exit: 0 }];
  let end = at;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (COMMAND.test(line) || /^#( |$)/.test(line)) break;
    const section = SECTION.exec(line);
    const exit = EXIT.exec(line);
    if (section) sections.push({ version: versionOf(section[1] ?? '', at), lines: [], exit: 0 });
    else if (exit) (sections.at(-1) as { exit: number }).exit = Number(exit[1]);
    else sections.at(-1)?.lines.push(line.replace(/^\\/, ''));
    if (line !== '') end = at + 1;
  }

  const outputs: Partial<Record<Version, Output>> = {};
  for (const { version, lines: output, exit } of sections) {
    const parsed = { text: output.join('\n').trimEnd(), exit };
    if (version !== undefined) outputs[version] = parsed;
    else if (sections.length === 1) for (const each of only ? [only] : VERSIONS) outputs[each] = parsed;
    else if (parsed.text !== '') throw new TranscriptError(`line ${start + 2}: output before the first [version]`);
  }
  return { step: { prose, only, command: command.join('\n'), outputs } satisfies Step, next: end };
}

function versionOf(text: string, at: number): Version {
  const version = VERSIONS.find((known) => known === text);
  if (version === undefined) throw new TranscriptError(`line ${at + 1} names the unknown kubectl ${text}`);
  return version;
}

export function renderTranscript({ steps, ending }: Transcript): string {
  return [...steps.flatMap(renderStep), ...ending].join('\n').trimEnd() + '\n';
}

function renderStep({ prose, only, command, outputs }: Step): string[] {
  const [first = '', ...more] = command.split('\n');
  const head = [
    ...prose,
    `${only ? `[${only}] ` : ''}$ ${first}`,
    ...more.map((line) => (line === '' ? '>' : `> ${line}`)),
  ];
  const known = VERSIONS.flatMap((version) => (outputs[version] ? [{ version, output: outputs[version] }] : []));
  const [one, ...others] = known;
  if (one === undefined) return head;
  const alike = others.every(({ output }) => sameOutput(output, one.output));
  if (only !== undefined || (alike && known.length === VERSIONS.length)) return [...head, ...renderOutput(one.output)];
  return [...head, ...known.flatMap(({ version, output }) => [`[${version}]`, ...renderOutput(output)])];
}

function renderOutput({ text, exit }: Output): string[] {
  const lines = text === '' ? [] : text.split('\n').map((line) => (RESERVED.test(line) ? `\\${line}` : line));
  return exit === 0 ? lines : [...lines, `[exit ${exit}]`];
}

export function sameOutput(a: Output, b: Output): boolean {
  return a.text === b.text && a.exit === b.exit;
}
